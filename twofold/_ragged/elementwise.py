"""Elementwise functions of ragged tensors: operands get the same rows, and the function runs on their values.

Where operands have the same rows, which most do since they come from one another, that is all. Else each level of rows
is broadcast like an axis of dense tensors: axes of the size 1 are repeated. Which values are gathered is computed from
the row splits, so that functions need not know these when they are traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import told
from twofold._front.demands import demand
from twofold._front.dispatch import (
    dispatch_for_binary_elementwise_apis,
    dispatch_for_binary_elementwise_assert_apis,
    dispatch_for_unary_elementwise_apis,
)

from .conversions import as_ragged
from .ragged_tensor import RaggedTensor, is_ragged, ragged_or_dense, same_splits_dtype
from .row_partition import RowPartition, is_known, split_lengths

__all__ = ["aligned", "flat_map", "must_have_same_rows", "same_rows"]


def same_rows(tensors: Sequence[RaggedTensor]) -> bool:
    """Whether ragged tensors are known to have the same rows."""
    first = tensors[0]
    if any(t.ragged_rank != first.ragged_rank for t in tensors):
        return False
    for splits in zip(*[t.nested_row_splits for t in tensors], strict=True):
        for other in splits[1:]:
            if other is splits[0]:
                continue
            if not (is_known(other) and is_known(splits[0])):
                return False
            if not np.array_equal(other.numpy(), splits[0].numpy()):
                return False
    return True


def must_have_same_rows(a: RaggedTensor, b: RaggedTensor, message: str) -> None:
    """Raise where the outermost rows of two ragged tensors have different lengths.

    Raises:
        InvalidArgumentError: now, or when the function runs.
    """
    x, y = a.row_splits, b.row_splits
    if x is y:
        return
    if is_known(x) and is_known(y):
        demand(tf.constant(np.array_equal(x.numpy(), y.numpy())), message)
    else:
        demand(tf.equal(tf.shape(x)[0], tf.shape(y)[0]), message)
        demand(tf.reduce_all(tf.equal(x, y)), message)


def aligned(tensors: Sequence[Any]) -> tuple[RaggedTensor, list[Any]]:
    """A ragged tensor with the rows that operands have in common, and the operands' flat values for these.

    Args:
        tensors: dense and ragged tensors, of which one is ragged at least.
    Raises:
        InvalidArgumentError: rows of several values have different lengths. ValueError: that is known before.
    """
    tensors = same_splits_dtype([ragged_or_dense(t) for t in tensors])
    ragged = [t for t in tensors if is_ragged(t)]
    first = max(ragged, key=lambda t: t.shape.rank or 0)
    inner = None if first.shape.rank is None else first.flat_values.shape.rank - 1
    if all(is_ragged(t) or (t.shape.rank is not None and inner is not None and t.shape.rank <= inner) for t in tensors):
        full = [t for t in ragged if t.shape.rank == first.shape.rank]
        if len(full) == len(ragged) and same_rows(ragged):
            return first, [t.flat_values if is_ragged(t) else t for t in tensors]
    return _broadcast(tensors)


def _broadcast(tensors: Sequence[Any]) -> tuple[RaggedTensor, list[Any]]:
    ranks = [t.shape.rank for t in tensors]
    if any(r is None for r in ranks):
        raise ValueError("Unable to broadcast: unknown rank")
    rank = max(ranks)
    levels = max(t.ragged_rank + rank - t.shape.rank for t in tensors if is_ragged(t))
    operands = []
    for t in tensors:
        if t.shape.rank < rank and not is_ragged(t):
            t = tf.reshape(t, tf.concat([[1] * (rank - t.shape.rank), tf.shape(t)], 0))
        while t.shape.rank < rank:
            t = RaggedTensor(t, RowPartition.from_uniform_row_length(
                t.nrows(), nrows=1, dtype=t.row_splits.dtype, validate=False))
        operands.append(as_ragged(t, levels))
    operands = same_splits_dtype(operands)
    dtype = operands[0].row_splits.dtype
    counts = [t.nrows(dtype) for t in operands]
    count = counts[0]
    for other in counts[1:]:
        count = tf.where(tf.equal(count, 1), other, count)
    places = [_repeated(tf.range(count), own, count, tf.zeros([], dtype)) for own in counts]
    partitions: list[RowPartition] = []
    values: list[Any] = list(operands)
    for _ in range(levels):
        levels_of = [v._row_partition for v in values]
        own_lengths = [tf.gather(p.row_lengths(), at) for p, at in zip(levels_of, places, strict=True)]
        lengths = _common_lengths(levels_of, own_lengths, len(partitions) + 1)
        partition = RowPartition(split_lengths(lengths), None, _uniform(levels_of))
        partitions.append(partition)
        rowids = partition.value_rowids()
        offsets = partition.offsets_in_rows(rowids)
        places = [tf.gather(v.row_splits, tf.gather(p, rowids)) + tf.minimum(offsets, tf.gather(own, rowids) - 1)
                  for v, p, own in zip(values, places, own_lengths, strict=True)]
        values = [v.values for v in values]
    flats = [tf.gather(v, p) for v, p in zip(values, places, strict=True)]
    return RaggedTensor._from_nested_row_partitions(flats[0], partitions, validate=False), flats


def _common_lengths(partitions: Sequence[RowPartition], own_lengths: Sequence[Any], axis: int) -> Any:
    """The lengths of rows that operands broadcast to. Axes of one size, 1, are repeated; ragged ones must agree."""
    fixed = [own for p, own in zip(partitions, own_lengths, strict=True) if not p.is_uniform()]
    lengths = (fixed or list(own_lengths))[0]
    if not fixed:
        for other in own_lengths[1:]:
            lengths = tf.where(tf.equal(lengths, 1), other, lengths)
    for p, own in zip(partitions, own_lengths, strict=True):
        if own is not lengths:
            fits = tf.equal(own, lengths) | tf.equal(own, 1) if p.is_uniform() else tf.equal(own, lengths)
            demand(tf.reduce_all(fits), f"Unable to broadcast: dimension size mismatch in dimension {axis}: rows have "
                                       "different lengths")
    return lengths


def _repeated(places: Any, own: Any, count: Any, zero: Any) -> Any:
    """The rows of an operand with `own` rows, for a result of `count`."""
    demand(tf.equal(own, count) | tf.equal(own, 1), "Unable to broadcast: dimension size mismatch in dimension 0: "
                                                   "operands have different numbers of rows")
    return tf.minimum(places, tf.maximum(own - 1, zero))


def _uniform(partitions: Sequence[RowPartition]) -> int | None:
    """The length of all rows of a result, where it is known."""
    lengths = [p.static_uniform_row_length for p in partitions]
    if any(n is None for n in lengths):
        return None
    return max((n for n in lengths if n != 1), default=1)  # type: ignore[type-var]


def flat_map(function: Callable[..., Any], tensors: Sequence[Any]) -> RaggedTensor:
    """An elementwise function of dense and ragged tensors, which broadcast."""
    rows, flats = aligned(tensors)
    return rows.with_flat_values(function(*flats))


@dispatch_for_unary_elementwise_apis(RaggedTensor)
def _unary(api: Callable[..., Any], x: Any) -> Any:
    if isinstance(x, (list, tuple)):  # `add_n`
        rows, flats = aligned(x)
        return rows.with_flat_values(api(flats))
    return x.with_flat_values(api(x.flat_values))


def _binary(api: Callable[..., Any], x: Any, y: Any) -> Any:
    x, y = ragged_or_dense(x, hint=getattr(y, "dtype", None)), ragged_or_dense(y, hint=getattr(x, "dtype", None))
    return flat_map(api, [x, y])


def _assertion(api: Callable[..., Any], x: Any, y: Any) -> None:
    _, flats = aligned([ragged_or_dense(x, hint=getattr(y, "dtype", None)),
                        ragged_or_dense(y, hint=getattr(x, "dtype", None))])
    api(*flats)


for _types in ((RaggedTensor, Any), (Any, RaggedTensor)):
    dispatch_for_binary_elementwise_apis(*_types)(_binary)
    dispatch_for_binary_elementwise_assert_apis(*_types)(_assertion)


# -- operators ----------------------------------------------------------------------------------------------------
def _install() -> None:
    names = {"add": tf.add, "sub": tf.subtract, "mul": tf.multiply, "truediv": tf.truediv, "floordiv": tf.math.floordiv,
             "mod": tf.math.floormod, "pow": tf.pow}
    for name, function in names.items():
        setattr(RaggedTensor, f"__{name}__", _operator(function))
        setattr(RaggedTensor, f"__r{name}__", _reflected(function))
    for name, function in {"lt": tf.less, "le": tf.less_equal, "gt": tf.greater, "ge": tf.greater_equal}.items():
        setattr(RaggedTensor, f"__{name}__", _operator(function))
    for name, on_bool, on_int in (("and", tf.logical_and, tf.bitwise.bitwise_and),
                                  ("or", tf.logical_or, tf.bitwise.bitwise_or),
                                  ("xor", tf.math.logical_xor, tf.bitwise.bitwise_xor)):
        setattr(RaggedTensor, f"__{name}__", _logical(on_bool, on_int, False))
        setattr(RaggedTensor, f"__r{name}__", _logical(on_bool, on_int, True))
    for name, unary in {"neg": tf.negative, "abs": tf.abs, "invert": tf.logical_not}.items():
        setattr(RaggedTensor, f"__{name}__", _of_one(unary))
    for name, equality in {"eq": tf.equal, "ne": tf.not_equal}.items():
        setattr(RaggedTensor, f"__{name}__", _equality(equality, name == "ne"))


def _named(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose errors say the function that the operator stands for."""
    call.__name__ = call.__qualname__ = name
    return told(call)


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    return _named(function.__name__, lambda self, other: function(self, other))


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return _named(function.__name__, lambda self, other: function(other, self))


def _of_one(function: Callable[..., Any]) -> Callable[..., Any]:
    return _named(function.__name__, lambda self: function(self))


def _logical(on_bool: Callable[..., Any], on_int: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def call(self: RaggedTensor, other: Any) -> Any:
        function = on_bool if self.dtype is tf.bool else on_int
        return function(other, self) if reflected else function(self, other)
    return _named(on_bool.__name__, call)


def _equality(function: Callable[..., Any], otherwise: bool) -> Callable[..., Any]:
    def call(self: RaggedTensor, other: Any) -> Any:
        if other is None:
            return otherwise
        try:
            return function(self, other)
        except (TypeError, ValueError):
            if isinstance(other, (RaggedTensor, tf.Tensor, tf.Variable, np.ndarray, list, tuple)):
                raise
            return otherwise
    return _named(function.__name__, call)


_install()
