"""Sorting, top k, distinct values and search in sorted rows: `tf.sort`, `tf.math.top_k`, `tf.unique` and their like.

`twofold/math.py`, `twofold/nn.py` and `twofold/__init__.py` re-export them. The ops are in `ir/ops/sorting.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from twofold._front.api import axis_span, one_int, one_part, one_size, public, tensor
from twofold._ops.array_creation import as_scalar
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.errors import InvalidArgumentError

__all__ = ["sort", "argsort", "top_k", "in_top_k", "unique", "unique_with_counts", "first_equal", "searchsorted",
           "invert_permutation"]


class TopK(NamedTuple):
    """The result of `tf.math.top_k`."""

    values: Any
    indices: Any


class Unique(NamedTuple):
    """What `tf.unique` gives."""

    y: Any
    idx: Any


class UniqueWithCounts(NamedTuple):
    """What `tf.unique_with_counts` gives."""

    y: Any
    idx: Any
    count: Any


def _descending(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"direction must be 'ASCENDING' or 'DESCENDING'; got {direction!r}.")
    return direction == "DESCENDING"


def _on_axis(op: Any, values: Any, axis: Any, **attrs: Any) -> Any:
    """The result of `op`, which works on the last axis, for another one."""
    x = tensor(values)
    axis = one_int(axis, "axis", axis_span(x))
    rank = len(x.dims)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"{op.name}: axis {axis} is out of range for a tensor of shape {x.shape}.")
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    last = axis % rank == rank - 1
    result = op(x if last else ops.transpose(x, perm=tuple(perm)), **attrs)
    return result if last else ops.transpose(result, perm=tuple(perm))


@public
def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Any:
    """Sorts along an axis. NaN comes last when ascending, first when descending. Differentiable.

    Args:
        values: real tensor of rank 1 or more.
        axis: the axis to sort.
        direction: "ASCENDING" or "DESCENDING".
        name: has no effect.
    Returns:
        Tensor like `values`.
    Raises:
        ValueError: no such direction. tf.errors.InvalidArgumentError: the axis is out of range.

    >>> import twofold as tf
    >>> tf.sort([1, 10, 26.9, 2.8], direction="DESCENDING").numpy().tolist()
    [26.899999618530273, 10.0, 2.799999952316284, 1.0]
    """
    return _on_axis(ops.sort, values, axis, descending=_descending(direction))


@public
def argsort(values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False,
            name: str | None = None) -> Any:
    """The indices that sort along an axis. Equal elements keep their order in either direction.

    Args:
        values: real tensor of rank 1 or more.
        axis: the axis to sort.
        direction: "ASCENDING" or "DESCENDING".
        stable: has no effect: the order is stable anyway.
        name: has no effect.
    Returns:
        int32 indices, of the shape of `values`.
    Raises:
        ValueError: no such direction. tf.errors.InvalidArgumentError: the axis is out of range.

    >>> import twofold as tf
    >>> tf.argsort([1, 10, 2, 10], direction="DESCENDING").numpy().tolist()
    [1, 3, 2, 0]
    """
    return _on_axis(ops.argsort, values, axis, descending=_descending(direction))


@public
def top_k(input: Any, k: Any = 1, sorted: bool = True, index_type: Any = dt.int32, name: str | None = None) -> Any:
    """The `k` largest elements of the last axis, and where they are. Differentiable.

    Args:
        input: real tensor of rank 1 or more.
        k: how many.
        sorted: has no effect: the largest always comes first.
        index_type: dtype of the indices, int32 or int64.
        name: has no effect.
    Returns:
        `(values, indices)`; of equal elements the first comes first, and NaN before all numbers.
    Raises:
        tf.errors.InvalidArgumentError: there are fewer than `k` elements, or `input` is a scalar.

    >>> import twofold as tf
    >>> top = tf.math.top_k([1, 2, 98, 1, 1, 99, 3, 1, 3, 96, 4, 1], k=3)
    >>> top.values.numpy().tolist(), top.indices.numpy().tolist()
    ([99, 98, 96], [5, 2, 9])
    """
    count = one_size(k, "k")
    return TopK(*ops.top_k(input, k=count, index_type=dt.as_dtype(index_type)))


@public
def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> Any:
    """Whether each target is among the `k` classes of the highest prediction.

    Args:
        targets: vector of classes.
        predictions: float32 matrix, a row of class scores for each target.
        k: how many classes count. Those level with the last of them count as well.
        name: has no effect.
    Returns:
        bool vector; false where the target's score is not finite or the target is no class.
    Raises:
        tf.errors.InvalidArgumentError: shapes do not fit.

    >>> import twofold as tf
    >>> tf.math.in_top_k([0, 1], [[0.1, 0.9, 0.5], [0.3, 0.4, 0.2]], 2).numpy().tolist()
    [False, True]
    """
    targets, predictions = tensor(targets), tensor(predictions)
    if len(targets.dims) != 1 or len(predictions.dims) != 2 or targets.dims[0] != predictions.dims[0]:
        raise InvalidArgumentError(f"in_top_k: targets must be a vector, predictions a matrix with as many rows; got "
                                   f"shapes {targets.shape} and {predictions.shape}.")
    count = one_part(k, "k")
    classes = predictions.dims[1]
    inside = ops.logical_and(ops.greater_equal(targets, 0), ops.less(targets, classes))
    places = ops.expand_dims(ops.where(inside, targets, ops.cast(0, dtype=targets.dtype)), axis=1)
    score = ops.gather(predictions, places, axis=1, batch_dims=1)
    higher = ops.count_nonzero(ops.greater(predictions, score), axis=(1,))
    fine = ops.logical_and(inside, ops.is_finite(ops.squeeze(score, axis=(1,))))
    return ops.logical_and(fine, ops.less(ops.cast(higher, dtype=dt.int64), as_scalar(count)))


@public
def unique(x: Any, out_idx: Any = dt.int32, name: str | None = None) -> Any:
    """The distinct values of a vector, in order of first appearance.

    Args:
        x: vector.
        out_idx: dtype of the indices, int32 or int64.
        name: has no effect.
    Returns:
        `(y, idx)`: the values, and for each element of `x` the index of its value, so that `y[idx]` is `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is no vector.

    >>> import twofold as tf
    >>> y, idx = tf.unique([1, 1, 2, 4, 4, 4, 7, 8, 8])
    >>> y.numpy().tolist(), idx.numpy().tolist()
    ([1, 2, 4, 7, 8], [0, 0, 1, 2, 2, 2, 3, 4, 4])
    """
    return Unique(*ops.unique(x, out_idx=dt.as_dtype(out_idx))[:2])


@public
def unique_with_counts(x: Any, out_idx: Any = dt.int32, name: str | None = None) -> Any:
    """The distinct values of a vector, in order of first appearance, and how often each appears.

    Args:
        x: vector.
        out_idx: dtype of the indices and counts, int32 or int64.
        name: has no effect.
    Returns:
        `(y, idx, count)`: the values, for each element of `x` the index of its value, and the counts.
    Raises:
        tf.errors.InvalidArgumentError: `x` is no vector.

    >>> import twofold as tf
    >>> y, idx, count = tf.unique_with_counts([1, 1, 2, 4, 4, 4, 7, 8, 8])
    >>> count.numpy().tolist()
    [2, 1, 3, 1, 2]
    """
    return UniqueWithCounts(*ops.unique(x, out_idx=dt.as_dtype(out_idx)))


@public
def searchsorted(sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = dt.int32,
                 name: str | None = None) -> Any:
    """Where values would go in sorted rows so that these stay sorted.

    Args:
        sorted_sequence: real tensor, each row of its last axis sorted.
        values: tensor of the same dtype and leading dimensions.
        side: "left" of equal elements, or "right".
        out_type: int32 or int64.
        name: has no effect.
    Returns:
        Indices, of the shape of `values`.
    Raises:
        tf.errors.InvalidArgumentError: leading dimensions or dtypes differ, or there is no such side.

    >>> import twofold as tf
    >>> tf.searchsorted([1, 3, 5, 7], [3, 4], side="right").numpy().tolist()
    [2, 2]
    """
    return ops.searchsorted(sorted_sequence, values, side=side, out_type=dt.as_dtype(out_type))


@public
def invert_permutation(x: Any, name: str | None = None) -> Any:
    """The permutation that undoes `x`: y[x[i]] = i.

    Args:
        x: int32 or int64 vector that holds each number below its size once.
        name: has no effect.
    Returns:
        Tensor like `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is no permutation.

    >>> import twofold as tf
    >>> tf.math.invert_permutation([3, 4, 0, 2, 1]).numpy().tolist()
    [2, 4, 3, 0, 1]
    """
    return ops.invert_permutation(x)


def first_equal(x: Any) -> Any:
    """For each number of an integer vector the place of the first that equals it, as int32."""
    return ops.first_equal(x)
