"""`tf.keras.tree`: nested structures as Keras has them: lists, tuples, namedtuples, dicts and deques.

Unlike in `tf.nest`, the entries of an `OrderedDict` go in its own order, and records are leaves.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from twofold._front.api import public
from twofold._front.namespace import publish

__all__ = ["MAP_TO_NONE", "assert_same_paths", "assert_same_structure", "flatten", "flatten_with_path", "is_nested",
           "lists_to_tuples", "map_shape_structure", "map_structure", "map_structure_up_to", "pack_sequence_as",
           "traverse"]

_CONTAINERS = (list, tuple, dict, collections.deque)


class MAP_TO_NONE:
    """What the function of `traverse` returns to have None in a place."""


@public
def is_nested(structure: Any) -> bool:
    """Whether a value is a list, a tuple, a dict or a deque.

    >>> import twofold as tf
    >>> tf.keras.tree.is_nested([1]), tf.keras.tree.is_nested(1)
    (True, False)
    """
    return isinstance(structure, _CONTAINERS)


def _items(container: Any) -> list[tuple[Any, Any]]:
    """The keys or positions of a container with what is there."""
    if not isinstance(container, dict):
        return list(enumerate(container))
    if isinstance(container, collections.OrderedDict):
        return list(container.items())
    try:
        return sorted(container.items(), key=lambda item: item[0])
    except TypeError:  # keys of several types have no order but their own
        return list(container.items())


def _rebuilt(container: Any, values: list[Any]) -> Any:
    """A container like another, with other values in the order of `_items`."""
    if isinstance(container, dict):
        given = dict(zip([key for key, _ in _items(container)], values, strict=True))
        inside = {key: given[key] for key in container}
        if isinstance(container, collections.defaultdict):
            return type(container)(container.default_factory, inside)
        return type(container)(inside)
    if isinstance(container, collections.deque):
        return type(container)(values, container.maxlen)
    return type(container)(*values) if hasattr(container, "_fields") else type(container)(values)


def _pairs(structure: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if not is_nested(structure):
        yield path, structure
        return
    for key, value in _items(structure):
        yield from _pairs(value, (*path, key))


@public
def flatten(structure: Any) -> list[Any]:
    """The leaves of a structure, left to right.

    >>> import twofold as tf
    >>> tf.keras.tree.flatten({"b": [1, 2], "a": (3,)})
    [3, 1, 2]
    """
    return [leaf for _, leaf in _pairs(structure)]


@public
def flatten_with_path(structure: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """The leaves of a structure, each behind the keys and positions that lead to it.

    >>> import twofold as tf
    >>> tf.keras.tree.flatten_with_path([{"a": 42}])
    [((0, 'a'), 42)]
    """
    return list(_pairs(structure))


@public
def pack_sequence_as(structure: Any, flat_sequence: Iterable[Any]) -> Any:
    """A structure like `structure` with other leaves.

    Args:
        structure: containers of leaves, or a leaf alone.
        flat_sequence: the leaves, in the order of `flatten`.
    Raises:
        TypeError: `flat_sequence` is not iterable.
        ValueError: there are too few or too many leaves.

    >>> import twofold as tf
    >>> tf.keras.tree.pack_sequence_as({"b": [1, 2], "a": (3,)}, "xyz")
    {'b': ['y', 'z'], 'a': ('x',)}
    """
    leaves, count = list(flat_sequence), len(flatten(structure))
    if len(leaves) != count:
        raise ValueError(f"There are {len(leaves)} leaves, where the structure has places for {count}.")
    left = iter(leaves)

    def packed(part: Any) -> Any:
        if not is_nested(part):
            return next(left)
        return _rebuilt(part, [packed(value) for _, value in _items(part)])
    return packed(structure)


def _together(first: Any, others: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """What containers have in the same places.

    Raises:
        ValueError: they differ.
    """
    parts = [[value for _, value in _items(first)]]
    for other in others:
        both_dicts = isinstance(first, dict) and isinstance(other, dict)
        if type(first) is not type(other) and not both_dicts:
            raise ValueError(f"The structures differ: expected an instance of {type(first).__name__}, got {other!r}.")
        if both_dicts:
            if first.keys() != other.keys():
                raise ValueError(f"The structures differ: keys {list(first)} and {list(other)}.")
            parts.append([other[key] for key, _ in _items(first)])
        elif len(first) != len(other):
            raise ValueError(f"The structures differ: {len(first)} values and {len(other)} values.")
        else:
            parts.append(list(other))
    return list(zip(*parts, strict=True))


def _mapped(shallow: Any, func: Callable[..., Any], structures: tuple[Any, ...]) -> Any:
    """`func` of what structures have where `shallow` has leaves."""
    if not is_nested(shallow):
        return func(*structures)
    return _rebuilt(shallow, [_mapped(parts[0], func, parts[1:]) for parts in _together(shallow, structures)])


def _alike(first: Any, others: tuple[Any, ...]) -> None:
    """Raise ValueError where structures differ in containers, or one has a leaf where another has none."""
    if is_nested(first):
        for part in _together(first, others):
            _alike(part[0], part[1:])
    elif any(map(is_nested, others)):
        raise ValueError(f"The structures differ: {first!r} is a leaf, where others have containers.")


@public
def map_structure(func: Callable[..., Any], *structures: Any, none_is_leaf: bool = True) -> Any:
    """`func` of the leaves of structures, in a structure like the first.

    Args:
        func: takes a leaf of each structure.
        structures: one or more that are alike.
        none_is_leaf: whether `func` is given None, too; otherwise None stays as it is.
    Raises:
        TypeError: `func` cannot be called.
        ValueError: there is no structure, or they differ.

    >>> import twofold as tf
    >>> tf.keras.tree.map_structure(lambda a, b: a + b, [1, {"x": 2}], [3, {"x": 4}])
    [4, {'x': 6}]
    """
    _callable(func)
    if not structures:
        raise ValueError("map_structure takes at least one structure.")
    _alike(structures[0], structures[1:])

    def of_leaves(*leaves: Any) -> Any:
        if none_is_leaf or leaves[0] is not None:
            return func(*leaves)
        if any(leaf is not None for leaf in leaves):
            raise ValueError(f"The structures differ: None and {leaves[1:]!r}.")
        return None
    return _mapped(structures[0], of_leaves, structures)


@public
def map_structure_up_to(shallow_structure: Any, func: Callable[..., Any], *structures: Any) -> Any:
    """`func` of what structures have where `shallow_structure` has leaves.

    Args:
        shallow_structure: with what all structures begin.
        func: takes a part of each structure.
        structures: one or more.
    Raises:
        TypeError: `func` cannot be called.
        ValueError: there is no structure, or one does not begin like the shallow one.

    >>> import twofold as tf
    >>> tf.keras.tree.map_structure_up_to([0, 0], len, [[1, 2], [3]])
    [2, 1]
    """
    _callable(func)
    if not structures:
        raise ValueError("map_structure_up_to takes at least one structure.")
    return _mapped(shallow_structure, func, structures)


def _callable(func: Any) -> None:
    if not callable(func):
        raise TypeError(f"func must be callable, got {func!r}.")


@public
def assert_same_structure(a: Any, b: Any, check_types: bool | None = None) -> None:
    """Raise if structures have not the same containers with the same keys and lengths.

    Args:
        a, b: structures; dicts of all kinds are alike.
        check_types: has no effect.
    Raises:
        ValueError: they differ.

    >>> import twofold as tf
    >>> tf.keras.tree.assert_same_structure([1, (2,)], [3, (4,)])
    """
    _alike(a, (b,))


@public
def assert_same_paths(a: Any, b: Any) -> None:
    """Raise if the leaves of structures are not in the same places, whatever the containers are.

    Args:
        a, b: structures.
    Raises:
        ValueError: they differ.

    >>> import twofold as tf
    >>> tf.keras.tree.assert_same_paths([1, {"a": 2}], (3, {"a": 4}))
    """
    ours, theirs = {path for path, _ in _pairs(a)}, {path for path, _ in _pairs(b)}
    if ours != theirs:
        raise ValueError(f"The structures have not the same paths: {sorted(ours - theirs, key=str)} are in the first "
                         f"alone, {sorted(theirs - ours, key=str)} in the second.")


@public
def lists_to_tuples(structure: Any) -> Any:
    """The structure with tuples in place of lists.

    >>> import twofold as tf
    >>> tf.keras.tree.lists_to_tuples([1, {"a": [2]}])
    (1, {'a': (2,)})
    """
    if not is_nested(structure):
        return structure
    values = [lists_to_tuples(value) for _, value in _items(structure)]
    return tuple(values) if isinstance(structure, list) else _rebuilt(structure, values)


@public
def map_shape_structure(func: Callable[[Any], Any], structure: Any) -> Any:
    """`func` of the shapes in a structure: tuples and lists of integers and None are shapes, as is None alone.

    >>> import twofold as tf
    >>> tf.keras.tree.map_shape_structure(len, {"a": (1, None), "b": [(2,)]})
    {'a': 2, 'b': [1]}
    """
    _callable(func)
    if structure is None or (isinstance(structure, (list, tuple)) and all(
            size is None or isinstance(size, int) for size in structure)):
        return func(structure)
    if not is_nested(structure):
        raise ValueError(f"There is no shape in {structure!r}.")
    return _rebuilt(structure, [map_shape_structure(func, value) for _, value in _items(structure)])


@public
def traverse(func: Callable[[Any], Any], structure: Any, top_down: bool = True) -> Any:
    """Visit a structure and all that is inside, and put in what the function returns.

    Args:
        func: takes a container or a leaf, and returns None to have it stay, `MAP_TO_NONE` to have None there, or what
            is to be there.
        structure: containers of leaves, or a leaf alone.
        top_down: whether containers come before what they hold, which is not visited where they are replaced.
    Returns:
        The structure with what was put in.
    Raises:
        TypeError: `func` cannot be called.

    >>> import twofold as tf
    >>> tf.keras.tree.traverse(lambda part: part * 10 if isinstance(part, int) else None, [1, (2, "a")])
    [10, (20, 'a')]
    """
    _callable(func)
    return _traversed(func, structure, top_down)


def _traversed(func: Callable[[Any], Any], part: Any, top_down: bool) -> Any:
    if top_down:
        instead = func(part)
        if instead is not None:
            return None if instead is MAP_TO_NONE else instead
    inside = _rebuilt(part, [_traversed(func, value, top_down) for _, value in _items(part)]) if is_nested(
        part) else part
    instead = None if top_down else func(inside)
    if instead is None:
        return inside
    return None if instead is MAP_TO_NONE else instead


publish(__name__)
