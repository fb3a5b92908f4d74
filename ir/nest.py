"""Nested structures: dicts, lists, tuples, namedtuples, dataclasses and attrs classes with leaves.

`flatten` and `pack` are inverse to each other; dict entries go in the order of their sorted keys, as in
TensorFlow. What a leaf is the caller knows: anything that is not one of the containers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

Leaf: TypeAlias = Any  # a tensor, a spec, or whatever else the caller puts into containers
Structure: TypeAlias = Any  # a leaf, or a container of structures, as a user builds it

__all__ = ["Leaf", "Structure", "is_nested", "flatten", "pack", "map_structure", "assert_same_structure", "children",
           "rebuilt", "keys_of"]


_nested: dict[type, bool] = {}  # asked for every operand of every gradient, so remembered by type
_TYPES = 1024


def is_nested(value: Structure) -> bool:
    """Whether `value` is a container rather than a leaf."""
    nested = _nested.get(type(value))
    if nested is None:
        if len(_nested) >= _TYPES:
            _nested.clear()
        nested = _nested[type(value)] = isinstance(value, (list, tuple, Mapping)) or _is_record(value)
    return nested


def _is_record(value: Structure) -> bool:
    return not isinstance(value, type) and (
        hasattr(type(value), "__dataclass_fields__") or hasattr(value, "__attrs_attrs__"))


def _fields(value: Structure) -> list[str]:
    """The names of the fields of a record."""
    import dataclasses
    declared = value.__attrs_attrs__ if hasattr(value, "__attrs_attrs__") else dataclasses.fields(value)
    return [f.name for f in declared]


def _sorted_keys(value: Mapping[Any, Structure]) -> list[Any]:
    try:
        return sorted(value)
    except TypeError:
        return list(value)  # keys of several types have no order but their own


def keys_of(value: Structure) -> Any:
    """The keys of a container, or its length: containers of one type differ in these and in their children alone."""
    return tuple(_sorted_keys(value)) if isinstance(value, Mapping) else 0 if _is_record(value) else len(value)


def children(value: Structure) -> list[Structure]:
    """The items of a container, in the order of `flatten`."""
    if isinstance(value, Mapping):
        return [value[k] for k in _sorted_keys(value)]
    if _is_record(value):
        return [getattr(value, name) for name in _fields(value)]
    return list(value)


def rebuilt(value: Structure, items: list[Structure]) -> Structure:
    """A container like `value` that holds `items` instead of its children."""
    if isinstance(value, Mapping):
        packed = dict(zip(_sorted_keys(value), items, strict=True))
        ordered = {k: packed[k] for k in value}
        return ordered if type(value) is dict else type(value)(ordered)  # type: ignore[call-arg]
    if _is_record(value):
        import copy
        record = copy.copy(value)  # fields that the constructor does not take are set, too
        for name, child in zip(_fields(value), items, strict=True):
            object.__setattr__(record, name, child)
        return record
    if hasattr(value, "_fields"):
        return type(value)(*items)
    return items if type(value) is list else type(value)(items)


def _leaves(value: Structure) -> Iterator[Leaf]:
    if not is_nested(value):
        yield value
        return
    for child in children(value):
        yield from _leaves(child)


def flatten(structure: Structure) -> list[Leaf]:
    """The leaves of `structure`, left to right; a leaf alone gives a list of one.

    >>> flatten({"b": [1, 2], "a": (3,)})
    [3, 1, 2]
    """
    return list(_leaves(structure))


def pack(structure: Structure, leaves: Iterable[Leaf]) -> Structure:
    """A structure like `structure` with `leaves` in its places.

    Raises:
        ValueError: there are too few or too many leaves.

    >>> pack({"b": [1, 2], "a": (3,)}, "xyz")
    {'b': ['y', 'z'], 'a': ('x',)}
    """
    expected = len(flatten(structure))
    items = list(itertools.islice(leaves, expected + 1))
    if len(items) != expected:
        count = "more" if len(items) > expected else len(items)
        raise ValueError(f"the structure has {expected} leaves; got {count}: {structure!r}")
    return _pack(structure, iter(items))


def _pack(structure: Structure, leaves: Iterator[Leaf]) -> Structure:
    if not is_nested(structure):
        return next(leaves)
    return rebuilt(structure, [_pack(child, leaves) for child in children(structure)])


def map_structure(fn: Callable[..., Leaf], *structures: Structure) -> Structure:
    """`fn` applied to corresponding leaves of structures of one form.

    >>> map_structure(lambda x, y: x + y, [1, (2, 3)], [10, (20, 30)])
    [11, (22, 33)]
    """
    for other in structures[1:]:
        assert_same_structure(structures[0], other)
    return pack(structures[0], [fn(*leaves) for leaves in zip(*map(flatten, structures), strict=True)])


def assert_same_structure(first: Structure, second: Structure) -> None:
    """Raise unless both have the same containers in the same places.

    Raises:
        TypeError: a container has another type. ValueError: sizes or keys differ.
    """
    if is_nested(first) != is_nested(second):
        raise ValueError(f"the two structures differ: {first!r} and {second!r}")
    if not is_nested(first):
        return
    same_kind = isinstance(second, Mapping) if isinstance(first, Mapping) else type(first) is type(second)
    if not same_kind:
        raise TypeError(f"the two structures differ in type: {type(first).__name__} and {type(second).__name__}")
    a, b = children(first), children(second)
    if len(a) != len(b) or (isinstance(first, Mapping) and set(first) != set(second)):
        raise ValueError(f"the two structures differ in their entries: {first!r} and {second!r}")
    for x, y in zip(a, b, strict=True):
        assert_same_structure(x, y)
