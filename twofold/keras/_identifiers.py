"""How a name, a config, a class or a callable becomes the object it stands for.

Initialisers, regularisers, constraints, activations, losses and metrics are all given in these ways. The configs
themselves are written and read by `serialization.py`; which names there are is for the module of each kind.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .configs import config_of
from .naming import to_snake_case
from .serialization import deserialize_keras_object, get_registered_object

__all__ = ["Configured", "read", "resolve", "table_of"]


class Configured:
    """An object that its arguments describe: `from_config(get_config())` makes its equal."""

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Any:
        """An object made from what `get_config` gave."""
        return cls(**config_of(config))

    def clone(self) -> Any:
        """An equal object; random ones that have no seed get a new stream."""
        return self.__class__.from_config(self.get_config())


def table_of(*classes: type) -> dict[str, Any]:
    """Classes by their names and by those in snake case."""
    return {**{cls.__name__: cls for cls in classes}, **{to_snake_case(cls.__name__): cls for cls in classes}}


def read(config: Any, table: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The object of a config: `{"class_name": .., "config": ..}` or a name, of `table`, registered or custom."""
    return deserialize_keras_object(config, custom_objects=custom_objects, module_objects=table)


def resolve(kind: str, identifier: Any, table: Mapping[str, Any], expected: str | None = None) -> Callable[..., Any]:
    """The callable that `identifier` stands for.

    Args:
        kind: what is looked for, for the error.
        identifier: a name, a config, a class (which is called without arguments), or a callable.
        table: the names of this kind; a name that is not in it may be that of a custom object.
        expected: what the error says of what may be given; by default that it is a name such as the first of `table`.
    Raises:
        ValueError: it stands for nothing.
    """
    wrong = f"Could not interpret {kind} identifier: {identifier!r}. "
    if isinstance(identifier, str):
        resolved = table[identifier] if identifier in table else get_registered_object(identifier)
        if resolved is None:
            raise ValueError(wrong + (expected or f"Known are {', '.join(sorted(table))}."))
    elif isinstance(identifier, Mapping):
        resolved = read(identifier, table)
    else:
        resolved = identifier
    if inspect.isclass(resolved):
        resolved = resolved()
    if not callable(resolved):
        raise ValueError(wrong + (expected or f"Expected a name such as {sorted(table)[0]!r}, a config, a class or a "
                                              "callable."))
    return resolved
