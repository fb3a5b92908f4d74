"""`tf.nest`: nested structures of tensors and other leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from twofold._front.api import public
from twofold._front.namespace import publish
from twofold.ir import nest as _nest

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]


@public
def is_nested(structure: Any) -> bool:
    """Whether a value is a container: a dict, list, tuple, dataclass or attrs class. Composite values are leaves.

    >>> import twofold as tf
    >>> tf.nest.is_nested([1]), tf.nest.is_nested(tf.ones([1]))
    (True, False)
    """
    return _nest.is_nested(structure, expand_composites=False)


@public
def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves of a structure, left to right; dicts go in the order of their sorted keys.

    Args:
        structure: containers of leaves, or a leaf alone.
        expand_composites: whether composite values, such as ragged tensors, are taken apart into their tensors.
    Returns:
        A list.

    >>> import twofold as tf
    >>> tf.nest.flatten({"b": [1, 2], "a": (3,)})
    [3, 1, 2]
    """
    return _nest.flatten(structure, bool(expand_composites))


@public
def pack_sequence_as(structure: Any, flat_sequence: Iterable[Any], expand_composites: bool = False) -> Any:
    """A structure like `structure` with other leaves.

    Args:
        structure: containers of leaves, or a leaf alone.
        flat_sequence: the leaves, in the order of `flatten`.
        expand_composites: whether composite values are made of the leaves.
    Raises:
        ValueError: there are too few or too many leaves.

    >>> import twofold as tf
    >>> tf.nest.pack_sequence_as({"b": [1, 2], "a": (3,)}, "xyz")
    {'b': ['y', 'z'], 'a': ('x',)}
    """
    return _nest.pack(structure, flat_sequence, bool(expand_composites))


@public
def map_structure(func: Callable[..., Any], *structure: Any, expand_composites: bool = False,
                  check_types: bool = True) -> Any:
    """A function applied to the corresponding leaves of structures of one form.

    Args:
        func: takes a leaf of each structure.
        structure: one or more structures.
        expand_composites: whether the function gets the tensors of composite values.
        check_types: whether containers must have the same types.
    Returns:
        A structure like the first one.
    Raises:
        TypeError, ValueError: the structures differ.

    >>> import twofold as tf
    >>> tf.nest.map_structure(lambda x, y: x + y, [1, (2, 3)], [10, (20, 30)])
    [11, (22, 33)]
    """
    if not callable(func):
        raise TypeError(f"Argument `func` must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    expand = bool(expand_composites)
    for other in structure[1:]:
        _nest.assert_same_structure(structure[0], other, bool(check_types), expand)
    leaves = [_nest.flatten(s, expand) for s in structure]
    return _nest.pack(structure[0], [func(*each) for each in zip(*leaves, strict=True)], expand)


@public
def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raise unless two structures have the same containers in the same places.

    Args:
        nest1, nest2: the structures.
        check_types: whether containers must have the same types; else lists and tuples are alike.
        expand_composites: whether composite values must have the same class, dtypes and ranks.
    Raises:
        TypeError: a container has another type. ValueError: sizes or keys differ.

    >>> import twofold as tf
    >>> tf.nest.assert_same_structure([1, (2,)], [3, (4,)])
    """
    _nest.assert_same_structure(nest1, nest2, bool(check_types), bool(expand_composites))


publish(__name__)
