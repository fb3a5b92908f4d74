"""Segment reductions and counting into bins of `tf.math`; `twofold/math.py` re-exports them.

The ops are in `ir/ops/segments.py`.
"""

from __future__ import annotations

from typing import Any

from twofold._front.api import is_open, one_part, one_size, public, tensor
from twofold._ops.array_creation import as_scalar, constant_of
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.dims import require_same
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.op import tracing
from twofold.tracer.checks import check

__all__ = ["segment_sum", "segment_mean", "segment_prod", "segment_max", "segment_min", "unsorted_segment_sum",
           "unsorted_segment_mean", "unsorted_segment_sqrt_n", "unsorted_segment_prod", "unsorted_segment_max",
           "unsorted_segment_min", "bincount", "histogram_fixed_width", "histogram_fixed_width_bins",
           "confusion_matrix"]


def _sizes(data: Any, ids: Any, total: Any) -> Any:
    """How many rows each segment has, at least one, in the dtype of `data` and ready to divide by."""
    ones = ops.fill(tensor(1, data.dtype), shape=ids.dims)
    counts = ops.maximum(ops.cast(total(ones, ids), dtype=data.dtype.real_dtype), 1)
    counts = ops.cast(counts, dtype=data.dtype)
    return ops.reshape(counts, shape=(*counts.dims, *[1] * (len(data.dims) - len(ids.dims))))


def _over(sums: Any, counts: Any) -> Any:
    return ops.truncatediv(sums, counts) if sums.dtype.is_integer else ops.divide(sums, counts)


@public
def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """Sums of rows by segment.

    Args:
        data: numeric tensor.
        segment_ids: one integer for each row of `data`; not negative, and never falling.
        name: has no effect.
    Returns:
        As many rows as the last id plus one; zero where a segment has none.
    Raises:
        tf.errors.InvalidArgumentError: ids fall or are negative, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.math.segment_sum([[1., 2.], [3., 4.], [5., 6.]], [0, 0, 1]).numpy().tolist()
    [[4.0, 6.0], [5.0, 6.0]]
    """
    return ops.segment_sum(data, segment_ids)


@public
def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """Means of rows by segment. Integers divide toward zero.

    Args:
        data: numeric tensor.
        segment_ids: one integer for each row of `data`; not negative, and never falling.
        name: has no effect.
    Returns:
        As many rows as the last id plus one; zero where a segment has none.
    Raises:
        tf.errors.InvalidArgumentError: ids fall or are negative, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.math.segment_mean([[1., 2.], [3., 4.], [5., 6.]], [0, 0, 1]).numpy().tolist()
    [[2.0, 3.0], [5.0, 6.0]]
    """
    data, ids = tensor(data), tensor(segment_ids)
    return _over(ops.segment_sum(data, ids), _sizes(data, ids, ops.segment_sum))


@public
def segment_prod(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """Products of rows by segment. Gradients are right also at zeros.

    Args:
        data: numeric tensor.
        segment_ids: one integer for each row of `data`; not negative, and never falling.
        name: has no effect.
    Returns:
        As many rows as the last id plus one; one where a segment has none.
    Raises:
        tf.errors.InvalidArgumentError: ids fall or are negative, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.math.segment_prod([[1., 2.], [3., 4.], [5., 6.]], [0, 0, 1]).numpy().tolist()
    [[3.0, 8.0], [5.0, 6.0]]
    """
    return ops.segment_prod(data, segment_ids)


@public
def segment_max(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """Largest elements of rows by segment. Equal elements share the gradient.

    Args:
        data: real tensor.
        segment_ids: one integer for each row of `data`; not negative, and never falling.
        name: has no effect.
    Returns:
        As many rows as the last id plus one; zero where a segment has none.
    Raises:
        tf.errors.InvalidArgumentError: ids fall or are negative, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.math.segment_max([[1., 2.], [3., 4.], [5., 6.]], [0, 0, 1]).numpy().tolist()
    [[3.0, 4.0], [5.0, 6.0]]
    """
    return ops.segment_max(data, segment_ids)


@public
def segment_min(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """Smallest elements of rows by segment. Equal elements share the gradient.

    Args:
        data: real tensor.
        segment_ids: one integer for each row of `data`; not negative, and never falling.
        name: has no effect.
    Returns:
        As many rows as the last id plus one; zero where a segment has none.
    Raises:
        tf.errors.InvalidArgumentError: ids fall or are negative, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.math.segment_min([[1., 2.], [3., 4.], [5., 6.]], [0, 0, 1]).numpy().tolist()
    [[1.0, 2.0], [5.0, 6.0]]
    """
    return ops.segment_min(data, segment_ids)


@public
def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """Sums of rows by segment, with ids in any order.

    Args:
        data: numeric tensor, its shape starting with that of `segment_ids`.
        segment_ids: integers below `num_segments`; rows with negative ones are dropped.
        num_segments: how many segments there are.
        name: has no effect.
    Returns:
        `num_segments` rows; zero where a segment has none.
    Raises:
        tf.errors.InvalidArgumentError: an id is too large, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.math.unsorted_segment_sum([[1., 2.], [3., 4.], [5., 6.]], [1, 0, 1], 2).numpy().tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    return ops.unsorted_segment_sum(data, segment_ids, num_segments=one_size(num_segments, "num_segments"))


@public
def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """Means of rows by segment, with ids in any order. Integers divide toward zero.

    Args:
        data: numeric tensor, its shape starting with that of `segment_ids`.
        segment_ids: integers below `num_segments`; rows with negative ones are dropped.
        num_segments: how many segments there are.
        name: has no effect.
    Returns:
        `num_segments` rows; zero where a segment has none.
    Raises:
        tf.errors.InvalidArgumentError: an id is too large, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.math.unsorted_segment_mean([[1., 2.], [3., 4.], [5., 6.]], [1, 0, 1], 2).numpy().tolist()
    [[3.0, 4.0], [3.0, 4.0]]
    """
    data, ids, count = tensor(data), tensor(segment_ids), one_size(num_segments, "num_segments")
    sums = ops.unsorted_segment_sum(data, ids, num_segments=count)
    return _over(sums, _sizes(data, ids, lambda x, i: ops.unsorted_segment_sum(x, i, num_segments=count)))


@public
def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """Sums, divided by the square root of their number, of rows by segment, with ids in any order.

    Args:
        data: floating or complex tensor, its shape starting with that of `segment_ids`.
        segment_ids: integers below `num_segments`; rows with negative ones are dropped.
        num_segments: how many segments there are.
        name: has no effect.
    Returns:
        `num_segments` rows; zero where a segment has none.
    Raises:
        tf.errors.InvalidArgumentError: an id is too large, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.math.unsorted_segment_sqrt_n([1.0, 1.0, 1.0, 1.0, 5.0], [1, 1, 1, 1, 0], 2).numpy().tolist()
    [5.0, 2.0]
    """
    data, ids, count = tensor(data), tensor(segment_ids), one_size(num_segments, "num_segments")
    sums = ops.unsorted_segment_sum(data, ids, num_segments=count)
    sizes = _sizes(data, ids, lambda x, i: ops.unsorted_segment_sum(x, i, num_segments=count))
    return ops.divide(sums, ops.sqrt(sizes))


@public
def unsorted_segment_prod(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """Products of rows by segment, with ids in any order. Gradients are right also at zeros.

    Args:
        data: numeric tensor, its shape starting with that of `segment_ids`.
        segment_ids: integers below `num_segments`; rows with negative ones are dropped.
        num_segments: how many segments there are.
        name: has no effect.
    Returns:
        `num_segments` rows; one where a segment has none.
    Raises:
        tf.errors.InvalidArgumentError: an id is too large, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.math.unsorted_segment_prod([[1., 2.], [3., 4.], [5., 6.]], [1, 0, 1], 2).numpy().tolist()
    [[3.0, 4.0], [5.0, 12.0]]
    """
    return ops.unsorted_segment_prod(data, segment_ids, num_segments=one_size(num_segments, "num_segments"))


@public
def unsorted_segment_max(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """Largest elements of rows by segment, with ids in any order. Equal elements share the gradient.

    Args:
        data: real tensor, its shape starting with that of `segment_ids`.
        segment_ids: integers below `num_segments`; rows with negative ones are dropped.
        num_segments: how many segments there are.
        name: has no effect.
    Returns:
        `num_segments` rows; the dtype's last number where a segment has none.
    Raises:
        tf.errors.InvalidArgumentError: an id is too large, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.math.unsorted_segment_max([[1., 2.], [3., 4.], [5., 6.]], [1, 0, 1], 2).numpy().tolist()
    [[3.0, 4.0], [5.0, 6.0]]
    """
    return ops.unsorted_segment_max(data, segment_ids, num_segments=one_size(num_segments, "num_segments"))


@public
def unsorted_segment_min(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """Smallest elements of rows by segment, with ids in any order. Equal elements share the gradient.

    Args:
        data: real tensor, its shape starting with that of `segment_ids`.
        segment_ids: integers below `num_segments`; rows with negative ones are dropped.
        num_segments: how many segments there are.
        name: has no effect.
    Returns:
        `num_segments` rows; the dtype's last number where a segment has none.
    Raises:
        tf.errors.InvalidArgumentError: an id is too large, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.math.unsorted_segment_min([[1., 2.], [3., 4.], [5., 6.]], [1, 0, 1], 2).numpy().tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """
    return ops.unsorted_segment_min(data, segment_ids, num_segments=one_size(num_segments, "num_segments"))


@public
def bincount(arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = dt.int32,
             name: str | None = None, axis: int | None = None, binary_output: bool = False) -> Any:
    """How often each number from 0 on appears, or the sum of the weights that go with it.

    Args:
        arr: integers, not negative.
        weights: real tensor of the shape of `arr`, added up in place of ones.
        minlength: the least number of bins; a negative number is none.
        maxlength: the most; larger numbers are left out.
        dtype: of the counts, where there are no weights.
        name: has no effect.
        axis: None or 0 to count all elements together, -1 for the rows of a matrix apart.
        binary_output: give 1 for each number that appears, however often.
    Returns:
        Vector, or a row of bins for each row of `arr`; as many bins as the largest number plus one, within the bounds.
    Raises:
        ValueError: `axis` is another; `weights` and `binary_output` exclude each other.
        tf.errors.InvalidArgumentError: a number is negative, or shapes differ.

    >>> import twofold as tf
    >>> tf.math.bincount([1, 1, 2, 4]).numpy().tolist()
    [0, 2, 1, 0, 1]
    >>> tf.math.bincount([1, 1, 2], weights=[0.5, 1.0, 3.0], minlength=4).numpy().tolist()
    [0.0, 1.5, 3.0, 0.0]
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"bincount: axis must be None, 0 or -1; got {axis!r}.")
    if weights is not None and binary_output:
        raise ValueError("bincount: weights and binary_output exclude each other.")
    arr = tensor(arr)
    held = ops.fill(tensor(1, dt.as_dtype(dtype)), shape=arr.dims) if weights is None else tensor(weights)
    if axis != -1:
        arr, held = ops.reshape(arr, shape=(-1,)), ops.reshape(held, shape=(-1,))
    sums = ops.bincount(arr, held, minlength=0 if minlength is None else _least_bins(minlength),
                        maxlength=None if maxlength is None else one_size(maxlength, "maxlength"))
    return ops.minimum(sums, 1) if binary_output else sums


def _least_bins(minlength: Any) -> Any:
    least = one_part(minlength, "minlength")
    if is_open(least):
        least = ops.maximum(as_scalar(least), 0)
    return max(least, 0) if isinstance(least, int) else one_size(least, "minlength")


@public
def histogram_fixed_width_bins(values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dt.int32,
                               name: str | None = None) -> Any:
    """Which of `nbins` bins of equal width each value falls into; values beyond the range go to the outer bins.

    Args:
        values: real tensor.
        value_range: two numbers, the lower and the upper end.
        nbins: how many bins.
        dtype: int32 or int64, of the result.
        name: has no effect.
    Returns:
        Bin numbers, of the shape of `values`.
    Raises:
        tf.errors.InvalidArgumentError: the range is empty, or `nbins` is not positive.

    >>> import twofold as tf
    >>> tf.histogram_fixed_width_bins([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5).numpy().tolist()
    [0, 0, 1, 2, 4, 4]
    """
    values, count = tensor(values), one_size(nbins, "nbins")
    low, high = tensor(value_range, values.dtype).numpy().tolist()
    if isinstance(count, int) and count <= 0:
        raise InvalidArgumentError(f"histogram_fixed_width_bins: nbins must be positive; got {count}.")
    many = ops.cast(as_scalar(count), dtype=dt.float64)
    if not isinstance(count, int):
        check(ops.greater(many, 0.0), "histogram_fixed_width_bins: nbins must be positive.", [many])
    if not low < high:
        raise InvalidArgumentError(f"histogram_fixed_width_bins: value_range must rise; got [{low}, {high}].")
    share = (ops.cast(values, dtype=dt.float64) - low) / (high - low)
    bins = ops.floor(ops.minimum(ops.maximum(share * many, 0.0), many - 1.0))
    return ops.cast(bins, dtype=dt.as_dtype(dtype))


@public
def histogram_fixed_width(values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dt.int32,
                          name: str | None = None) -> Any:
    """How many values fall into each of `nbins` bins of equal width; values beyond the range go to the outer bins.

    Args:
        values: real tensor.
        value_range: two numbers, the lower and the upper end.
        nbins: how many bins.
        dtype: int32 or int64, of the result.
        name: has no effect.
    Returns:
        Vector of `nbins` counts.
    Raises:
        tf.errors.InvalidArgumentError: the range is empty, or `nbins` is not positive.

    >>> import twofold as tf
    >>> tf.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5).numpy().tolist()
    [2, 1, 1, 0, 2]
    """
    bins = histogram_fixed_width_bins(values, value_range, nbins)
    ones = ops.fill(tensor(1, dt.as_dtype(dtype)), shape=bins.dims)
    return ops.unsorted_segment_sum(ones, bins, num_segments=one_size(nbins, "nbins"))


@public
def confusion_matrix(labels: Any, predictions: Any, num_classes: Any = None, weights: Any = None, dtype: Any = dt.int32,
                     name: str | None = None) -> Any:
    """How often each label (row) is predicted as each class (column).

    Args:
        labels: vector of integers, not negative.
        predictions: vector of integers, not negative.
        num_classes: how many classes there are; None for the largest number plus one.
        weights: vector added up in place of ones.
        dtype: of the result.
        name: has no effect.
    Returns:
        Matrix of shape `[num_classes, num_classes]`.
    Raises:
        tf.errors.InvalidArgumentError: a number is negative or not below `num_classes`, or shapes differ.

    >>> import twofold as tf
    >>> tf.math.confusion_matrix([1, 2, 2], [2, 2, 2]).numpy().tolist()
    [[0, 0, 0], [0, 0, 1], [0, 0, 2]]
    """
    labels = ops.cast(tensor(labels), dtype=dt.int64)
    predictions = ops.cast(tensor(predictions), dtype=dt.int64)
    if len(labels.dims) != 1 or not require_same(labels.dims, predictions.dims):
        raise InvalidArgumentError(f"confusion_matrix: labels and predictions must be vectors of one size; got shapes "
                                   f"{labels.shape} and {predictions.shape}.")
    both = ops.concat(labels, predictions, axis=0)
    both = ops.concat(both, constant_of([-1], dt.int64), axis=0)
    count = one_size(ops.add(ops.reduce_max(both), 1) if num_classes is None else num_classes, "num_classes")
    high = ops.less(ops.reduce_max(both), count)
    low = ops.logical_not(ops.reduce_any(ops.logical_or(ops.less(labels, 0), ops.less(predictions, 0))))
    text = f"confusion_matrix: labels and predictions must be from 0 to {count - 1}"
    if tracing() is not None:
        check(ops.logical_and(high, low), text, [labels, predictions])
    elif not (high and low):
        raise InvalidArgumentError(f"{text}; got {labels.numpy().tolist()} and {predictions.numpy().tolist()}.")
    dtype = dt.as_dtype(dtype)
    held = ops.fill(tensor(1, dtype), shape=labels.dims) if weights is None else ops.cast(tensor(weights), dtype=dtype)
    sums = ops.unsorted_segment_sum(held, labels * count + predictions, num_segments=count * count)
    return ops.reshape(sums, shape=(count, count))

