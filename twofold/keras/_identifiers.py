"""How a name, a config, a class or a callable becomes the object it stands for.

Initialisers, regularisers, constraints and activations are all given to layers in these ways. The configs themselves
are written and read by `serialization.py`; which names there are is for the module of each kind.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

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
        return cls(**config)

    def clone(self) -> Any:
        """An equal object; random ones that have no seed get a new stream."""
        return self.__class__.from_config(self.get_config())


def table_of(*classes: type) -> dict[str, Any]:
    """Classes by their names and by those in snake case."""
    return {**{cls.__name__: cls for cls in classes}, **{to_snake_case(cls.__name__): cls for cls in classes}}


def read(config: Any, table: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The object of a config: `{"class_name": .., "config": ..}` or a name, of `table`, registered or custom."""
    return deserialize_keras_object(config, custom_objects=custom_objects, module_objects=table)


def resolve(kind: str, identifier: Any, table: Mapping[str, Any]) -> Callable[..., Any]:
    """The callable that `identifier` stands for.

    Args:
        kind: what is looked for, for the error.
        identifier: a name, a config, a class (which is called without arguments), or a callable.
        table: the names of this kind.
    Raises:
        ValueError: it stands for nothing.
    """
    if isinstance(identifier, str):
        found = table[identifier] if identifier in table else _registered(kind, identifier, table)
    elif isinstance(identifier, Mapping):
        found = read(identifier, table)
    else:
        found = identifier
    if inspect.isclass(found):
        found = found()
    if not callable(found):
        raise ValueError(f"Could not interpret {kind} identifier: {identifier!r}. Expected a name such as "
                         f"{sorted(table)[0]!r}, a config, a class or a callable.")
    return found


def _registered(kind: str, name: str, table: Mapping[str, Any]) -> Any:
    """A custom object by its name."""
    found = get_registered_object(name)
    if found is None:
        raise ValueError(f"Could not interpret {kind} identifier: {name!r}. Known are {', '.join(sorted(table))}.")
    return found
