"""`tf.sets`: sets in the last axis of tensors, dense or sparse ones.

A dense tensor holds in each row what is in it, each element once or several times; a sparse tensor holds what has a
value. Results are sparse tensors whose rows rise. Python computes them each time that they are reached.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.namespace import publish
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.spec import TensorSpec

from ._front.api import public, tensor
from ._front.hosted import hosted

__all__ = ["difference", "intersection", "size", "union"]

_DTYPES = frozenset({tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.string})
_OPERATIONS = {"intersection": lambda a, b: a & b, "difference": lambda a, b: a - b, "union": lambda a, b: a | b}


def _is_sparse(value: Any) -> bool:
    return isinstance(value, tf.SparseTensor)


def _components(value: Any, hint: Any = None) -> list[Any]:
    """The tensors that sets are made of: one of a dense tensor, three of a sparse one.

    Raises:
        TypeError: elements cannot be in sets.
    """
    parts = [value.indices, value.values, value.dense_shape] if _is_sparse(value) else [tensor(value, hint=hint)]
    dtype = parts[-2 if len(parts) == 3 else 0].dtype
    if dtype not in _DTYPES:
        raise TypeError(f"Invalid dtype `{dtype}` not in supported dtypes: integers up to int64, uint16, and strings.")
    return parts


class _Rows:
    """The sets of a tensor.

    Attributes:
        outer: the sizes of the axes before the last one.
        sets: by the coordinates of a row; those that are empty may be missing.
    """

    def __init__(self, parts: list[np.ndarray], validate: bool) -> None:
        self.sets: dict[tuple[int, ...], set[Any]] = {}
        if len(parts) == 1:
            array = parts[0]
            self.outer = array.shape[:-1]
            rows = array.reshape(int(np.prod(self.outer)), array.shape[-1]).tolist()
            self.sets = dict(zip(np.ndindex(*self.outer), map(set, rows), strict=True))
            return
        indices, values, shape = parts
        self.outer = tuple(int(n) for n in shape[:-1])
        if validate:
            _check_order(indices, shape)
        for place, value in zip(map(tuple, indices[:, :-1].tolist()), values.tolist(), strict=True):
            self.sets.setdefault(place, set()).add(value)


def _check_order(indices: np.ndarray, shape: np.ndarray) -> None:
    """Refuse coordinates that are outside, or do not rise."""
    outside = ((indices < 0) | (indices >= shape)).any(axis=1)
    if outside.any():
        at = int(outside.argmax())
        raise InvalidArgumentError(None, "SetOperation", f"index {indices[at].tolist()} is out of the bounds of a "
                                                         f"sparse tensor of shape {shape.tolist()}")
    places = list(map(tuple, indices.tolist()))
    for at, (one, next_one) in enumerate(zip(places, places[1:], strict=False), 1):
        if next_one <= one:
            raise InvalidArgumentError(None, "SetOperation", f"indices[{at}] = {list(next_one)} is "
                                       f"{'repeated' if one == next_one else 'out of order'}.")


@hosted
def set_operation(kind: str, first: list[Any], second: list[Any], validate: bool) -> tuple[Any, Any, Any]:
    """The indices, values and shape of a set for each row of two tensors.

    Args:
        kind: "intersection", "difference" or "union".
        first, second: the tensors that each is made of.
        validate: whether the order of sparse indices is tested.
    """
    combine, count = _OPERATIONS[kind], len(first)
    dtype = first[-2 if count == 3 else 0].dtype
    rank = first[-1].shape[0] if count == 3 else first[0].shape.rank

    def compute(*tensors: Any) -> list[Any]:
        arrays = [engine.array_of(t) for t in tensors]
        return [engine.tensor_of(part) for part in _computed(arrays[:count], arrays[count:], combine, validate, dtype)]
    return tuple(engine.host_call(compute, f"Set{kind.title()}", [*first, *second], [
        TensorSpec([None, rank], tf.int64), TensorSpec([None], dtype), TensorSpec([rank], tf.int64)]))


def _computed(first: list[np.ndarray], second: list[np.ndarray], combine: Any, validate: bool,
              dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = _Rows(first, validate), _Rows(second, validate)
    if len(a.outer) != len(b.outer) or a.outer != b.outer:
        raise InvalidArgumentError(None, "SetOperation", f"Mismatched group shapes {list(a.outer)} and {list(b.outer)}")
    indices, values, longest = [], [], 0
    for place in sorted({*a.sets, *b.sets}):
        made = sorted(combine(a.sets.get(place, set()), b.sets.get(place, set())))
        indices += [(*place, n) for n in range(len(made))]
        values += made
        longest = max(longest, len(made))
    flat = np.empty(len(values), dtype.as_numpy_dtype)
    flat[:] = values
    return (np.array(indices, np.int64).reshape(-1, len(a.outer) + 1), flat,
            np.array([*a.outer, longest], np.int64))


def _combined(kind: str, a: Any, b: Any, validate: bool) -> Any:
    first = _components(a)
    second = _components(b, first[-2 if len(first) == 3 else 0].dtype)
    dtypes = [parts[-2 if len(parts) == 3 else 0].dtype for parts in (first, second)]
    if dtypes[0] is not dtypes[1]:
        raise TypeError(f"Types don't match, {dtypes[0]} vs {dtypes[1]}.")
    for parts in (first, second):
        if len(parts) == 1 and parts[0].shape.rank is not None and parts[0].shape.rank < 2:
            raise InvalidArgumentError(None, "SetOperation", "Input group shape of a dense tensor must have at least "
                                                             f"one axis before the sets; got {parts[0].shape}")
    return tf.SparseTensor(*set_operation(kind, first, second, bool(validate)))


@public
def size(a: Any, validate_indices: bool = True) -> Any:
    """How many elements the sets of a sparse tensor have.

    Args:
        a: a sparse tensor.
        validate_indices: whether the order of its indices is tested.
    Returns:
        int32, of its shape without the last axis.
    Raises:
        TypeError: it is no sparse tensor, or holds elements of another kind.

    >>> import twofold as tf
    >>> tf.sets.size(tf.sparse.from_dense([[1, 2], [3, 0]])).numpy().tolist()
    [2, 1]
    """
    if not _is_sparse(a):
        raise TypeError(f"Expected `SparseTensor`, got {a!r}.")
    indices, values, dense_shape = _components(a)
    return set_sizes(indices, values, dense_shape, bool(validate_indices))


@hosted
def set_sizes(indices: Any, values: Any, dense_shape: Any, validate: bool) -> Any:
    """How many elements each row of a sparse tensor has, given by its parts."""
    def count(*tensors: Any) -> list[Any]:
        rows = _Rows([engine.array_of(t) for t in tensors], validate)
        made = np.zeros(rows.outer, np.int32)
        for place, members in rows.sets.items():
            made[place] = len(members)
        return [engine.tensor_of(made)]
    known = tf.get_static_value(dense_shape)
    rank = dense_shape.shape[0]
    outer = [None] * (rank - 1) if known is None else known[:-1].tolist()
    return engine.host_call(count, "SetSize", [indices, values, dense_shape], [TensorSpec(outer, tf.int32)])[0]


@public
def intersection(a: Any, b: Any, validate_indices: bool = True) -> Any:
    """What is in both sets, for each row of two tensors.

    Args:
        a, b: dense or sparse tensors of one rank, at least 2, whose axes but the last are the same.
        validate_indices: whether the order of sparse indices is tested.
    Returns:
        A sparse tensor; the elements of a row rise.
    Raises:
        TypeError: dtypes differ, or are no integers or strings. InvalidArgumentError: shapes do not fit.

    >>> import twofold as tf
    >>> tf.sparse.to_dense(tf.sets.intersection([[1, 2, 2], [3, 4, 5]], [[2, 3, 4], [5, 3, 9]])).numpy().tolist()
    [[2, 0], [3, 5]]
    """
    return _combined("intersection", a, b, validate_indices)


@public
def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> Any:
    """What is in one set and not in the other, for each row of two tensors.

    Args:
        a, b: see `intersection`.
        aminusb: whether it is what is in `a` alone; else in `b` alone.
        validate_indices: whether the order of sparse indices is tested.
    Returns:
        A sparse tensor; the elements of a row rise.
    Raises:
        TypeError, InvalidArgumentError: as of `intersection`.

    >>> import twofold as tf
    >>> tf.sparse.to_dense(tf.sets.difference([[1, 2, 2], [3, 4, 5]], [[2, 3, 4], [5, 3, 9]])).numpy().tolist()
    [[1], [4]]
    """
    return _combined("difference", *((a, b) if aminusb else (b, a)), validate_indices)


@public
def union(a: Any, b: Any, validate_indices: bool = True) -> Any:
    """What is in one of two sets, for each row of two tensors.

    Args:
        a, b, validate_indices: see `intersection`.
    Returns:
        A sparse tensor; the elements of a row rise.
    Raises:
        TypeError, InvalidArgumentError: as of `intersection`.

    >>> import twofold as tf
    >>> tf.sparse.to_dense(tf.sets.union([[1, 2]], [[2, 3]])).numpy().tolist()
    [[1, 2, 3]]
    """
    return _combined("union", a, b, validate_indices)


publish(__name__)
