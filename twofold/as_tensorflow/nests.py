"""`tensorflow.python.util.nest`: structures that are walked as far as another one goes, and the paths of their leaves.

Libraries import it for what `tf.nest` does not have (TensorFlow Probability, tf_keras). Composite values are leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import twofold as tf
from twofold.ir import nest as _nest

__all__ = ["names"]

Path = tuple[Any, ...]


def _is_nested(value: Any) -> bool:
    return _nest.is_nested(value, expand_composites=False)


def _keys(value: Any) -> list[Any]:
    """What a path says of the children of a container: keys, names of fields, or places."""
    if isinstance(value, Mapping):
        try:
            return sorted(value)
        except TypeError:
            return list(value)
    if hasattr(value, "_fields"):
        return list(value._fields)
    return list(range(len(_nest.children(value))))


def is_namedtuple(value: Any, strict: bool = False) -> bool:
    """Whether a value is of a class that `collections.namedtuple` made."""
    return isinstance(value, tuple) and hasattr(value, "_fields") and (not strict or type(value).__mro__[1] is tuple)


def sequence_like(instance: Any, args: Any) -> Any:
    """A container like `instance` with other children."""
    return _nest.rebuilt(instance, list(args))


def yield_value(iterable: Any) -> Iterator[Any]:
    """The children of a container."""
    yield from _nest.children(iterable)


def yield_sorted_items(iterable: Any) -> Iterator[tuple[Any, Any]]:
    """The children of a container with their keys."""
    yield from zip(_keys(iterable), _nest.children(iterable), strict=True)


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True,
                             expand_composites: bool = False) -> None:
    """Raise unless `input_tree` has the containers of `shallow_tree`, and whatever it likes in the place of its leaves.

    Raises:
        TypeError: a container has another type. ValueError: sizes or keys differ.
    """
    if not _nest.is_nested(shallow_tree, expand_composites):
        return
    if not _nest.is_nested(input_tree, expand_composites):
        raise TypeError("If shallow structure is a sequence, input must also be a sequence. Input has type: "
                        f"{type(input_tree)}.")
    mappings = isinstance(shallow_tree, Mapping) and isinstance(input_tree, Mapping)
    if check_types and not mappings and _nest.kind_of(shallow_tree) is not _nest.kind_of(input_tree) and not (
            is_namedtuple(shallow_tree) and is_namedtuple(input_tree)):
        raise TypeError("The two structures don't have the same sequence type. Input structure has type "
                        f"{type(input_tree)}, while shallow structure has type {type(shallow_tree)}.")
    below, above = _nest.children(input_tree), _nest.children(shallow_tree)
    if len(below) != len(above):
        raise ValueError("The two structures don't have the same sequence length. Input structure has length "
                         f"{len(below)}, while shallow structure has length {len(above)}.")
    if mappings and set(shallow_tree) != set(input_tree):
        raise ValueError("The two structures don't have the same keys. Input structure has keys "
                         f"{list(input_tree)}, while shallow structure has keys {list(shallow_tree)}.")
    for shallow, deep in zip(above, below, strict=True):
        assert_shallow_structure(shallow, deep, check_types, expand_composites)


def _up_to(shallow: Any, deep: Any, path: Path, expand: bool) -> Iterator[tuple[Path, Any]]:
    if not _nest.is_nested(shallow, expand):
        yield path, deep
        return
    for key, above, below in zip(_keys(shallow), _nest.children(shallow), _nest.children(deep), strict=True):
        yield from _up_to(above, below, (*path, key), expand)


def flatten_with_tuple_paths_up_to(shallow_tree: Any, input_tree: Any, check_types: bool = True,
                                   expand_composites: bool = False) -> list[tuple[Path, Any]]:
    """What `input_tree` has in the place of the leaves of `shallow_tree`, each with its path."""
    assert_shallow_structure(shallow_tree, input_tree, check_types, expand_composites)
    return list(_up_to(shallow_tree, input_tree, (), expand_composites))


def flatten_up_to(shallow_tree: Any, input_tree: Any, check_types: bool = True,
                  expand_composites: bool = False) -> list[Any]:
    """What `input_tree` has in the place of the leaves of `shallow_tree`."""
    pairs = flatten_with_tuple_paths_up_to(shallow_tree, input_tree, check_types, expand_composites)
    return [value for _, value in pairs]


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list[tuple[Path, Any]]:
    """The leaves of a structure, each with its path."""
    return list(_up_to(structure, structure, (), expand_composites))


def flatten_with_joined_string_paths(structure: Any, separator: str = "/",
                                     expand_composites: bool = False) -> list[tuple[str, Any]]:
    """The leaves of a structure, each with its path as text."""
    return [(separator.join(map(str, path)), leaf)
            for path, leaf in flatten_with_tuple_paths(structure, expand_composites)]


def yield_flat_paths(nest: Any, expand_composites: bool = False) -> Iterator[Path]:
    """The paths of the leaves of a structure."""
    for path, _ in flatten_with_tuple_paths(nest, expand_composites):
        yield path


def map_structure_with_tuple_paths_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any,
                                         check_types: bool = True, expand_composites: bool = False) -> Any:
    """`func` of a path and of what each input has there, in the structure of `shallow_tree`."""
    if not inputs:
        raise ValueError("Argument `inputs` is empty. Cannot map over no sequences.")
    for tree in inputs:
        assert_shallow_structure(shallow_tree, tree, check_types, expand_composites)
    paths = list(yield_flat_paths(shallow_tree, expand_composites))
    flat = [[value for _, value in _up_to(shallow_tree, tree, (), expand_composites)] for tree in inputs]
    results = [func(path, *values) for path, *values in zip(paths, *flat, strict=True)]
    return tf.nest.pack_sequence_as(shallow_tree, results, expand_composites=expand_composites)


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any, check_types: bool = True,
                        expand_composites: bool = False) -> Any:
    """`func` of what each input has in the place of a leaf of `shallow_tree`, in its structure."""
    return map_structure_with_tuple_paths_up_to(shallow_tree, lambda _, *values: func(*values), *inputs,
                                                check_types=check_types, expand_composites=expand_composites)


def map_structure_with_tuple_paths(func: Callable[..., Any], *structure: Any, check_types: bool = True,
                                   expand_composites: bool = False) -> Any:
    """`func` of a path and of the leaf that each structure has there."""
    for other in structure[1:]:
        tf.nest.assert_same_structure(structure[0], other, check_types=check_types,
                                      expand_composites=expand_composites)
    return map_structure_with_tuple_paths_up_to(structure[0], func, *structure, check_types=check_types,
                                                expand_composites=expand_composites)


def get_traverse_shallow_structure(traverse_fn: Callable[[Any], Any], structure: Any,
                                   expand_composites: bool = False) -> Any:
    """The part of a structure that a function wants to walk, with booleans in the place of leaves.

    Args:
        traverse_fn: gives for a container whether to walk into it, or which of its children, as a container of bools.
    """
    wanted = traverse_fn(structure)
    if not _nest.is_nested(structure, expand_composites):
        if not isinstance(wanted, bool):
            raise ValueError(f"traverse_fn returned structure: {wanted} for non-structure: {structure}")
        return wanted
    if isinstance(wanted, bool):
        if not wanted:
            return False
        wanted = tf.nest.map_structure(lambda _: True, structure) if not _nest.children(structure) else sequence_like(
            structure, [True] * len(_nest.children(structure)))
    assert_shallow_structure(wanted, structure, expand_composites=expand_composites)
    return sequence_like(wanted, [
        get_traverse_shallow_structure(traverse_fn, child, expand_composites) if chosen else False
        for chosen, child in zip(_nest.children(wanted), _nest.children(structure), strict=True)])


def list_to_tuple(structure: Any) -> Any:
    """A structure with tuples in the place of its lists."""
    if not _is_nested(structure):
        return structure
    items = [list_to_tuple(child) for child in _nest.children(structure)]
    return tuple(items) if isinstance(structure, list) else _nest.rebuilt(structure, items)


def names() -> dict[str, Any]:
    """The names of the module."""
    own = [assert_shallow_structure, flatten_up_to, flatten_with_joined_string_paths, flatten_with_tuple_paths,
           flatten_with_tuple_paths_up_to, get_traverse_shallow_structure, list_to_tuple, map_structure_up_to,
           map_structure_with_tuple_paths, map_structure_with_tuple_paths_up_to, yield_flat_paths]
    public = ("assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as")
    return {**{function.__name__: function for function in own}, **{name: getattr(tf.nest, name) for name in public},
            "is_sequence": tf.nest.is_nested, "is_nested_or_composite": _nest.is_nested,
            "is_mapping": lambda value: isinstance(value, Mapping),
            "is_attrs": lambda value: hasattr(type(value), "__attrs_attrs__"), "is_namedtuple": is_namedtuple,
            "_is_namedtuple": is_namedtuple, "_sequence_like": sequence_like, "sequence_like": sequence_like,
            "_yield_value": yield_value, "_yield_sorted_items": yield_sorted_items}
