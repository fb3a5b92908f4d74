"""The classes of loaded objects."""

from __future__ import annotations

from typing import Any

from twofold.eager.variable import Variable
from twofold.saved_model.loading import CallableModule, LoadedModule

__all__ = ["CallableObject", "LoadedObject"]


class LoadedObject(LoadedModule):
    """An object of a folder that TensorFlow wrote. What it kept in lists of its variables is what these names give."""

    def _listed(self, name: str) -> Any:
        kept = self._hidden.get(name)
        return kept if isinstance(kept, list) and all(isinstance(v, Variable) for v in kept) else None

    @property
    def variables(self) -> Any:
        """The variables: those that the object listed itself, else all that it leads to."""
        kept = self._listed("variables")
        return super().variables if kept is None else tuple(kept)

    @property
    def trainable_variables(self) -> Any:
        """The variables that tapes watch: those that the object listed itself, else all that it leads to."""
        kept = self._listed("trainable_variables")
        return super().trainable_variables if kept is None else tuple(kept)


class CallableObject(LoadedObject, CallableModule):
    """A loaded object that can be called, as the original could."""
