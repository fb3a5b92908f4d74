"""Collects everything that is saved with an object: the objects that it leads to, and their functions.

The graph of objects is `twofold.tracking`'s, with functions added: the `tf.function`s among an object's attributes,
its methods, and in its containers. A class that knows better which functions of its own are to be saved has a method
`_functions_to_save()` that gives them by name. How objects are written is `writing.py`'s part.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from twofold.eager.variable import Variable
from twofold.ir.errors import InvalidArgumentError
from twofold.tracer.concrete import AnyRank, ConcreteFunction
from twofold.tracer.function import Function
from twofold.tracking import Trackable, is_tracked

from .asset import Asset

__all__ = ["Entry", "collect", "functions_of"]

_FUNCTIONS = (Function, ConcreteFunction)


@dataclass
class Entry:
    """One object of the graph.

    Attributes:
        value: the object.
        kind: what files call it.
        path: the shortest path of names from the root.
        children: numbers of objects by name.
    """

    value: Any
    kind: str
    path: tuple[str, ...]
    children: dict[str, int] = field(default_factory=dict)


def collect(root: Any) -> list[Entry]:
    """The objects that `root` leads to, itself first, breadth first.

    Raises:
        InvalidArgumentError: a dict has variables under a key that is no string.
    """
    entries = [Entry(root, _kind(root), ())]
    numbers = {id(root): 0}
    for entry in entries:
        for name, child in _children(entry.value, entry.path).items():
            number = numbers.get(id(child))
            if number is None:
                number = numbers[id(child)] = len(entries)
                entries.append(Entry(child, _kind(child), (*entry.path, name)))
            entry.children[name] = number
    return entries


def _kind(value: Any) -> str:
    if isinstance(value, Variable):
        return "variable"
    if isinstance(value, (Function, AnyRank)):
        return "function"
    if isinstance(value, ConcreteFunction):
        return "concrete"
    if isinstance(value, Asset):
        return "asset"
    if isinstance(value, Trackable):
        return getattr(value, "_saved_kind", "object")
    if isinstance(value, Mapping):
        return "dict"
    if isinstance(value, tuple):
        return "record" if hasattr(value, "_fields") else "tuple"
    return "list"


def _children(value: Any, path: tuple[str, ...]) -> dict[str, Any]:
    if isinstance(value, (Variable, Asset, *_FUNCTIONS)):
        return {}
    if isinstance(value, Trackable):
        own = getattr(value, "_functions_to_save", None)
        return {**value._tracked_children(), **(functions_of(value) if own is None else own())}
    if isinstance(value, Mapping):
        strange = [key for key, item in value.items() if not isinstance(key, str) and _is_saved(item)]
        if strange:
            raise InvalidArgumentError(
                None, None, f"the dict at {_spelt(path)} has what is to be saved under the key {strange[0]!r}, which "
                "is no string: the names of objects in a saved model are strings.")
        return {key: item for key, item in value.items() if isinstance(key, str) and _is_saved(item)}
    names = getattr(value, "_fields", None) or map(str, range(len(value)))
    return {name: item for name, item in zip(names, value, strict=True) if _is_saved(item)}


def _spelt(path: tuple[str, ...]) -> str:
    return ".".join(("root", *path))


def functions_of(value: Any) -> dict[str, Any]:
    """The `tf.function`s among an object's attributes and methods, and the containers of such, by name."""
    functions = {}
    for name in dir(type(value)):
        if name.startswith("__") and name != "__call__":
            continue
        plain = inspect.getattr_static(type(value), name)
        if isinstance(getattr(plain, "__func__", plain), Function):  # static and class methods hold theirs
            functions[name] = getattr(value, name)
    for name, item in vars(value).items():
        if not name.startswith("__") and not isinstance(item, (Trackable, Variable)) and _is_saved(item):
            functions[name] = item
    return functions


def _is_saved(value: Any) -> bool:
    if isinstance(value, _FUNCTIONS):
        return True
    if isinstance(value, Mapping):
        return any(_is_saved(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(_is_saved(item) for item in value)
    return is_tracked(value)
