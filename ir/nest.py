"""Nested structures: dicts, lists, tuples, namedtuples, dataclasses, attrs classes and composite values with leaves.

`flatten` and `pack` are inverse to each other; dict entries go in the order of their sorted keys, as in
TensorFlow. What a leaf is the caller knows: anything that is not one of the containers.

Composite values (`ir/type_spec.py`) are containers of their tensors here, so that whatever takes structures of tensors
takes them, too; their specs are containers of the specs of these. To users they are leaves: with `expand_composites`
false they are here as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

Leaf: TypeAlias = Any  # a tensor, a spec, or whatever else the caller puts into containers
Structure: TypeAlias = Any  # a leaf, or a container of structures, as a user builds it

__all__ = ["Leaf", "Structure", "is_nested", "is_composite", "flatten", "pack", "map_structure",
           "assert_same_structure", "children", "rebuilt", "keys_of", "kind_of"]


_nested: dict[type, int] = {}  # asked for every operand of every gradient, so remembered by type
_TYPES = 1024
_LEAF, _CONTAINER, _COMPOSITE = range(3)
_PYTHONS = frozenset({dict, list, tuple})  # most containers are of these, which are no composite values


def is_nested(value: Structure, expand_composites: bool = True) -> bool:
    """Whether `value` is a container rather than a leaf."""
    nested = _nested.get(type(value))
    if nested is None:
        nested = _sort_of(value)
    return nested == _CONTAINER or (nested == _COMPOSITE and expand_composites)


def is_composite(value: Structure) -> bool:
    """Whether `value` is a composite value, or the spec of one."""
    nested = _nested.get(type(value))
    return (_sort_of(value) if nested is None else nested) == _COMPOSITE


def _sort_of(value: Structure) -> int:
    if len(_nested) >= _TYPES:
        _nested.clear()
    composite = getattr(type(value), "__composite__", None)
    if composite is not None:
        sort = _COMPOSITE if composite else _LEAF
    else:
        sort = _CONTAINER if isinstance(value, (list, tuple, Mapping)) or _is_record(value) else _LEAF
    _nested[type(value)] = sort
    return sort


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


def kind_of(value: Structure) -> type:
    """The type of a container; of a composite value, and of its spec, the type of the spec."""
    kind = type(value)
    return type(value.__composite_spec__) if kind not in _PYTHONS and is_composite(value) else kind


def keys_of(value: Structure) -> Any:
    """The keys of a container, or its length: containers of one kind differ in these and in their children alone."""
    if type(value) not in _PYTHONS and is_composite(value):
        return value.__composite_spec__._form()
    return tuple(_sorted_keys(value)) if isinstance(value, Mapping) else 0 if _is_record(value) else len(value)


def children(value: Structure) -> list[Structure]:
    """The items of a container, in the order of `flatten`."""
    if type(value) not in _PYTHONS and is_composite(value):
        return [value.__components__()]
    if isinstance(value, Mapping):
        return [value[k] for k in _sorted_keys(value)]
    if _is_record(value):
        return [getattr(value, name) for name in _fields(value)]
    return list(value)


def rebuilt(value: Structure, items: list[Structure]) -> Structure:
    """A container like `value` that holds `items` instead of its children.

    A composite value or its spec gives a composite value where the items are tensors, a spec where they are specs.
    """
    if type(value) not in _PYTHONS and is_composite(value):
        return value.__composite_spec__._of(items[0])
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


def _leaves(value: Structure, expand: bool) -> Iterator[Leaf]:
    if not is_nested(value, expand):
        yield value
        return
    for child in children(value):
        yield from _leaves(child, expand)


def flatten(structure: Structure, expand_composites: bool = True) -> list[Leaf]:
    """The leaves of `structure`, left to right; a leaf alone gives a list of one.

    >>> flatten({"b": [1, 2], "a": (3,)})
    [3, 1, 2]
    """
    return list(_leaves(structure, expand_composites))


def pack(structure: Structure, leaves: Iterable[Leaf], expand_composites: bool = True) -> Structure:
    """A structure like `structure` with `leaves` in its places.

    Raises:
        ValueError: there are too few or too many leaves.

    >>> pack({"b": [1, 2], "a": (3,)}, "xyz")
    {'b': ['y', 'z'], 'a': ('x',)}
    """
    expected = len(flatten(structure, expand_composites))
    items = list(itertools.islice(leaves, expected + 1))
    if len(items) != expected:
        count = "more" if len(items) > expected else len(items)
        raise ValueError(f"the structure has {expected} leaves; got {count}: {structure!r}")
    return _pack(structure, iter(items), expand_composites)


def _pack(structure: Structure, leaves: Iterator[Leaf], expand: bool) -> Structure:
    if not is_nested(structure, expand):
        return next(leaves)
    return rebuilt(structure, [_pack(child, leaves, expand) for child in children(structure)])


def map_structure(fn: Callable[..., Leaf], *structures: Structure, expand_composites: bool = True) -> Structure:
    """`fn` applied to corresponding leaves of structures of one form.

    >>> map_structure(lambda x, y: x + y, [1, (2, 3)], [10, (20, 30)])
    [11, (22, 33)]
    """
    for other in structures[1:]:
        assert_same_structure(structures[0], other, expand_composites=expand_composites)
    flat = [flatten(s, expand_composites) for s in structures]
    return pack(structures[0], [fn(*leaves) for leaves in zip(*flat, strict=True)], expand_composites)


def assert_same_structure(first: Structure, second: Structure, check_types: bool = True,
                          expand_composites: bool = True) -> None:
    """Raise unless both have the same containers in the same places.

    Args:
        first, second: the structures.
        check_types: whether containers must have the same types; else lists and tuples, and mappings, are alike.
        expand_composites: whether composite values are containers.

    Raises:
        TypeError: a container has another type. ValueError: sizes or keys differ.
    """
    nested = is_nested(first, expand_composites)
    if nested != is_nested(second, expand_composites):
        raise ValueError(f"the two structures differ: {first!r} and {second!r}")
    if not nested:
        return
    composite = is_composite(first)
    if check_types or composite != is_composite(second):
        same_kind = isinstance(second, Mapping) if isinstance(first, Mapping) else kind_of(first) is kind_of(second)
        if not same_kind:
            raise TypeError(f"the two structures differ in type: {type(first).__name__} and {type(second).__name__}")
    a, b = children(first), children(second)
    mapping = isinstance(first, Mapping)
    if len(a) != len(b) or (mapping and isinstance(second, Mapping) and set(first) != set(second)):
        raise ValueError(f"the two structures differ in their entries: {first!r} and {second!r}")
    if composite and keys_of(first) != keys_of(second):
        raise ValueError(f"the two structures differ in their entries: {first!r} and {second!r}")
    for x, y in zip(a, b, strict=True):
        assert_same_structure(x, y, check_types, expand_composites)
