"""The functions of `tf.sparse`: conversions, order, joins and parts, arithmetic, reductions and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import ints, one_int, one_size, public
from twofold._front.demands import demand
from twofold._front.dispatch import dispatch_for_unary_elementwise_apis, implements
from twofold.ir import ops

from .sparse_tensor import SparseTensor, is_sparse, like, linear, sparse_of

__all__ = ["add", "bincount", "combined_rows", "concat", "expand_dims", "eye", "fill_empty_rows", "from_dense",
           "map_values", "last_segment", "mask", "maximum", "minimum", "reduce_max", "reduce_sum", "reorder",
           "reset_shape", "reshape", "retain", "sampled_addmm", "segment_mean", "segment_sqrt_n", "segment_sum",
           "slice", "softmax", "sparse_dense_matmul", "split", "to_dense", "to_indicator", "transpose"]


def _size(st: SparseTensor) -> Any:
    return tf.reduce_prod(st.dense_shape)


def _of_rank(st: SparseTensor, rank: int) -> SparseTensor:
    """A sparse tensor whose rank, if it was not known, is this."""
    if st.indices.shape[1] is not None and st.dense_shape.shape[0] is not None:
        return st
    made = SparseTensor(tf.reshape(st.indices, [-1, rank]), st.values, tf.reshape(st.dense_shape, [rank]))
    made.set_shape(st.shape)
    return made


def _at(places: Any, values: Any, shape: Any, static: Any = None) -> SparseTensor:
    """A sparse tensor by places in row-major order."""
    rank = shape.shape[0]
    columns = []
    for axis in reversed(range(rank)):
        size = tf.maximum(shape[axis], 1)
        columns.append(places % size)
        places = places // size
    made = SparseTensor(tf.stack(columns[::-1], 1) if rank else tf.zeros([tf.shape(values)[0], 0], tf.int64), values,
                        shape)
    if static is not None:
        made.set_shape(static)
    return made


# -- conversions --------------------------------------------------------------------------------------------------
@public
def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The values of a dense tensor that are not 0 (or not the empty string). `name` has no effect.

    >>> import twofold as tf
    >>> tf.sparse.from_dense([[0, 7], [8, 0]]).indices.numpy().tolist()
    [[0, 1], [1, 0]]
    """
    tensor = tf.convert_to_tensor(tensor)
    indices = tf.where(tf.not_equal(tensor, tf.zeros([], tensor.dtype)))
    made = SparseTensor(indices, tf.gather_nd(tensor, indices), tf.shape(tensor, tf.int64))
    made.set_shape(tensor.shape)
    return made


@public
def to_dense(sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None) -> Any:
    """The dense tensor of a sparse one.

    Args:
        sp_input: a sparse tensor with coordinates in row-major order.
        default_value: the value everywhere else; 0 by default.
        validate_indices: whether the order is checked, and that no coordinate is there twice.
        name: has no effect.
    Raises:
        InvalidArgumentError: coordinates are out of order, there twice, or out of bounds.

    >>> import twofold as tf
    >>> tf.sparse.to_dense(tf.SparseTensor([[0, 1]], [5], [2, 2]), default_value=-1).numpy().tolist()
    [[-1, 5], [-1, -1]]
    """
    st = sparse_of(sp_input)
    default = tf.zeros([], st.dtype) if default_value is None else tf.convert_to_tensor(default_value, st.dtype)
    inside = tf.reduce_all((st.indices >= 0) & (st.indices < st.dense_shape))
    demand(inside, "indices are out of bounds of the dense shape")
    if validate_indices and st.indices.shape[1]:
        places = linear(st.indices, st.dense_shape)
        demand(tf.reduce_all(places[1:] >= places[:-1]), "indices are out of order. Many sparse ops require sorted "
               "indices. Use `tf.sparse.reorder` to create a correctly ordered copy.")
        demand(tf.reduce_all(tf.not_equal(places[1:], places[:-1])), "an index is repeated")
    dense = tf.tensor_scatter_nd_update(tf.fill(st.dense_shape, default), st.indices, st.values)
    return tf.ensure_shape(dense, st.shape)


@public
def to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Any:
    """A dense bool tensor that says which numbers stand in each row of a sparse tensor of integers.

    Args:
        sp_input: integers, of shape `[..., n]`.
        vocab_size: the size of the result's last axis.
        name: has no effect.

    >>> import twofold as tf
    >>> tf.sparse.to_indicator(tf.SparseTensor([[0, 0], [1, 0]], [2, 0], [2, 1]), 3).numpy().tolist()
    [[False, False, True], [True, False, False]]
    """
    st = sparse_of(sp_input)
    if not st.dtype.is_integer:
        raise TypeError(f"to_indicator takes integers; got {st.dtype.name}.")
    indices = tf.concat([st.indices[:, :-1], tf.cast(st.values, tf.int64)[:, None]], 1)
    shape = tf.concat([st.dense_shape[:-1], tf.cast(tf.reshape(vocab_size, [1]), tf.int64)], 0)
    counts = tf.scatter_nd(indices, tf.ones_like(st.values, tf.int32), shape)
    size = tf.get_static_value(tf.convert_to_tensor(vocab_size))
    return tf.ensure_shape(counts > 0, [*st.shape[:-1], None if size is None else int(size)])


@public
def eye(num_rows: Any, num_columns: Any = None, dtype: Any = tf.float32, name: str | None = None) -> SparseTensor:
    """The identity matrix. `name` has no effect.

    >>> import twofold as tf
    >>> tf.sparse.to_dense(tf.sparse.eye(2)).numpy().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows = tf.cast(num_rows, tf.int64)
    columns = rows if num_columns is None else tf.cast(num_columns, tf.int64)
    count = tf.minimum(rows, columns)
    places = tf.range(count)
    return SparseTensor(tf.stack([places, places], 1), tf.ones([count], dtype), tf.stack([rows, columns]))


# -- order and shape ----------------------------------------------------------------------------------------------
@public
def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The same values with coordinates in row-major order. `name` has no effect.

    >>> import twofold as tf
    >>> tf.sparse.reorder(tf.SparseTensor([[1, 0], [0, 1]], [8, 7], [2, 2])).values.numpy().tolist()
    [7, 8]
    """
    st = sparse_of(sp_input)
    order = tf.argsort(linear(st.indices, st.dense_shape), stable=True)
    made = SparseTensor(tf.gather(st.indices, order), tf.gather(st.values, order), st.dense_shape)
    made.set_shape(st.shape)
    return made


@public
def reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The same values in another shape, in which one size may be -1. `name` has no effect.

    >>> import twofold as tf
    >>> tf.sparse.reshape(tf.SparseTensor([[0, 1], [1, 0]], [7, 8], [2, 2]), [-1]).indices.numpy().tolist()
    [[1], [2]]
    """
    st = sparse_of(sp_input)
    wanted = tf.cast(tf.convert_to_tensor(shape, dtype_hint=tf.int64), tf.int64)
    static = tf.get_static_value(wanted)
    if static is not None and (static < 0).sum() > 1:
        raise ValueError("At most one dimension can be inferred (-1) in `shape`.")
    total = _size(st)
    rest = tf.reduce_prod(tf.where(wanted < 0, tf.ones_like(wanted), wanted))
    inferred = tf.where(wanted < 0, total // tf.maximum(rest, 1), wanted)
    demand(tf.equal(tf.reduce_prod(inferred), total), "Cannot reshape a tensor: the shapes hold different numbers of "
                                                      "values")
    return _at(linear(st.indices, st.dense_shape), st.values, inferred)


@public
def reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same values and coordinates in a larger shape, or in the smallest one that holds them.

    Args:
        sp_input: a sparse tensor.
        new_shape: of its rank and in no axis smaller; by default the smallest that holds all coordinates.
    Raises:
        ValueError, InvalidArgumentError: the shape is smaller or of another rank.
    """
    st = sparse_of(sp_input)
    if new_shape is None:
        smallest = tf.reduce_max(tf.concat([st.indices, tf.zeros([1, st.indices.shape[1]], tf.int64) - 1], 0), 0) + 1
        return SparseTensor(st.indices, st.values, smallest)
    wanted = tf.cast(tf.convert_to_tensor(new_shape, dtype_hint=tf.int64), tf.int64)
    if wanted.shape[0] is not None and st.indices.shape[1] is not None and wanted.shape[0] != st.indices.shape[1]:
        raise ValueError(f"Dimensions {wanted.shape[0]} and {st.indices.shape[1]} are not compatible")
    larger = tf.reduce_all(wanted >= st.dense_shape)
    if not tf.is_symbolic_tensor(larger) and not bool(larger):
        raise ValueError(f"Requested new_shape should have dimension sizes >= sp_input.shape. Found new_shape "
                         f"({wanted.numpy()}), sp_input.shape ({st.dense_shape.numpy()}).")
    demand(larger, "the new shape is smaller than the old one")
    return SparseTensor(st.indices, st.values, wanted)


@public
def expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor with a new axis of size 1; by default the last one. `name` has no effect."""
    st = sparse_of(sp_input)
    rank = st.indices.shape[1]
    at = -1 if axis is None else one_int(axis, "axis", (-rank - 1, rank + 1))
    if not -rank - 1 <= at <= rank:
        raise ValueError(f"axis={at} out of bounds: expected {-rank - 1}<=axis<{rank + 1}")
    at %= rank + 1
    column = tf.zeros_like(st.indices[:, :1]) if rank else tf.zeros([tf.shape(st.indices)[0], 1], tf.int64)
    indices = tf.concat([st.indices[:, :at], column, st.indices[:, at:]], 1)
    shape = tf.concat([st.dense_shape[:at], [1], st.dense_shape[at:]], 0)
    made = SparseTensor(indices, st.values, shape)
    made.set_shape([*st.shape[:at], 1, *st.shape[at:]])
    return made


@public
def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor with its axes in another order; in the opposite one by default. `name` has no effect.

    >>> import twofold as tf
    >>> tf.sparse.transpose(tf.SparseTensor([[0, 2]], [7], [2, 3])).indices.numpy().tolist()
    [[2, 0]]
    """
    st = sparse_of(sp_input)
    rank = st.indices.shape[1]
    order = list(range(rank))[::-1] if perm is None else list(ints(perm, "perm", (0, rank)))
    if sorted(order) != list(range(rank)):
        raise ValueError(f"perm must be a permutation of the axes; got {perm!r}")
    turned = SparseTensor(tf.gather(st.indices, order, axis=1), st.values, tf.gather(st.dense_shape, order))
    if st.shape.rank is not None:
        turned.set_shape([st.shape[a] for a in order])
    return reorder(turned)


# -- joins and parts ----------------------------------------------------------------------------------------------
@public
def concat(axis: Any, sp_inputs: Sequence[Any], expand_nonconcat_dims: bool = False, name: str | None = None) -> Any:
    """Sparse tensors one behind the other along an axis.

    Args:
        axis: the axis.
        sp_inputs: sparse tensors of one rank and dtype.
        expand_nonconcat_dims: whether the other axes may differ; the result has the largest sizes then.
        name: has no effect.
    Raises:
        InvalidArgumentError: other axes differ.

    >>> import twofold as tf
    >>> st = tf.SparseTensor([[0, 1]], [7], [1, 2])
    >>> tf.sparse.concat(0, [st, st]).indices.numpy().tolist()
    [[0, 1], [1, 1]]
    """
    tensors = [sparse_of(t) for t in sp_inputs]
    if not tensors:
        raise ValueError("concat takes one sparse tensor at least")
    rank = tensors[0].indices.shape[1]
    at = one_int(axis, "axis", (-rank, rank))
    if not -rank <= at < rank:
        raise ValueError(f"axis={at} out of bounds: expected {-rank}<=axis<{rank}")
    at %= rank
    shape = tensors[0].dense_shape
    if expand_nonconcat_dims:
        for other in tensors[1:]:
            shape = tf.maximum(shape, other.dense_shape)
    indices, begin = [], tf.zeros([], tf.int64)
    for st in tensors:
        if not expand_nonconcat_dims:
            alike = tf.equal(shape, st.dense_shape) | tf.equal(tf.range(rank), at)
            demand(tf.reduce_all(alike), "concat: the other axes of sparse tensors have different sizes")
        step = tf.one_hot(at, rank, begin, tf.zeros([], tf.int64), dtype=tf.int64)
        indices.append(st.indices + step)
        begin = begin + st.dense_shape[at]
    shape = tf.where(tf.equal(tf.range(rank), at), begin, shape)
    joined = SparseTensor(tf.concat(indices, 0), tf.concat([t.values for t in tensors], 0), shape)
    if not expand_nonconcat_dims:
        joined.set_shape([_joined_size(sizes, n == at) for n, sizes in enumerate(zip(*[t.shape for t in tensors],
                                                                                     strict=True))])
    return joined if at == 0 else reorder(joined)


def _joined_size(sizes: Sequence[int | None], added: bool) -> int | None:
    """The static size of an axis along which sizes add up, or are all the same."""
    known = [n for n in sizes if n is not None]
    if added:
        return sum(known) if len(known) == len(sizes) else None
    return known[0] if known else None


@public
def split(sp_input: Any = None, num_split: Any = None, axis: Any = None, name: str | None = None) -> list[Any]:
    """Parts of a sparse tensor along an axis; the first ones are larger by one where it does not divide.

    Args:
        sp_input: a sparse tensor.
        num_split: how many.
        axis: the axis.
        name: has no effect.
    """
    if num_split is None or axis is None:
        raise ValueError("Argument `num_split` and `axis` must be given")
    st, count = sparse_of(sp_input), one_int(num_split, "num_split")
    rank = st.indices.shape[1]
    at = one_int(axis, "axis", (-rank, rank))
    if not -rank <= at < rank:
        raise ValueError(f"axis={at} out of bounds: expected {-rank}<=axis<{rank}")
    at %= rank
    size = st.dense_shape[at]
    if count < 1:
        raise ValueError(f"num_split={count} out of bounds: there must be one part at least")
    demand(size >= count, f"split: num_split={count} is larger than the size of the axis")
    parts, begin = [], tf.zeros([], tf.int64)
    for n in range(count):
        width = size // count + tf.cast(n < size % count, tf.int64)
        parts.append(_part(st, tf.one_hot(at, rank, begin, tf.zeros([], tf.int64), dtype=tf.int64),
                           tf.where(tf.equal(tf.range(rank), at), width, st.dense_shape)))
        begin = begin + width
    return parts


@public
def slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The part of a sparse tensor that begins at `start` and has `size`, as far as the tensor goes.
    `name` has no effect.

    >>> import twofold as tf
    >>> st = tf.SparseTensor([[0, 1], [1, 2]], [7, 8], [2, 3])
    >>> tf.sparse.slice(st, [0, 1], [2, 2]).indices.numpy().tolist()
    [[0, 0], [1, 1]]
    """
    return _part(sparse_of(sp_input), start, size)


def _part(st: SparseTensor, start: Any, size: Any) -> SparseTensor:
    begin = tf.cast(tf.convert_to_tensor(start, dtype_hint=tf.int64), tf.int64)
    end = tf.minimum(begin + tf.cast(tf.convert_to_tensor(size, dtype_hint=tf.int64), tf.int64), st.dense_shape)
    inside = tf.reduce_all((st.indices >= begin) & (st.indices < end), 1)
    kept = tf.boolean_mask(st.indices, inside) - begin
    return SparseTensor(kept, tf.boolean_mask(st.values, inside), tf.maximum(end - begin, 0))


@public
def retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The values of a sparse tensor for which a bool vector is true."""
    st = sparse_of(sp_input)
    keep = tf.convert_to_tensor(to_retain, tf.bool)
    if not st.values.shape.is_compatible_with(keep.shape):
        raise ValueError(f"Dimensions {st.values.shape} and {keep.shape} are not compatible")
    made = SparseTensor(tf.boolean_mask(st.indices, keep), tf.boolean_mask(st.values, keep), st.dense_shape)
    made.set_shape(st.shape)
    return made


@public
def fill_empty_rows(sp_input: Any, default_value: Any, name: str | None = None) -> tuple[SparseTensor, Any]:
    """A sparse tensor in which rows without a value have one, in the first column; and which rows those were.

    Args:
        sp_input: of rank 2.
        default_value: the value.
        name: has no effect.
    Returns:
        The tensor, and a bool vector.
    """
    st = sparse_of(sp_input)
    default = tf.convert_to_tensor(default_value, st.dtype)
    rows = st.dense_shape[0]
    counts = tf.math.unsorted_segment_sum(tf.ones_like(st.indices[:, 0]), st.indices[:, 0], rows)
    empty = tf.equal(counts, 0)
    if st.shape.rank is not None and st.shape[0] is not None:
        empty = tf.ensure_shape(empty, [st.shape[0]])
    missing = tf.where(empty)
    indices = tf.concat([st.indices, tf.concat([missing, tf.zeros_like(missing)], 1)], 0)
    values = tf.concat([st.values, tf.fill([tf.shape(missing)[0]], default)], 0)
    order = tf.argsort(indices[:, 0], stable=True)
    made = SparseTensor(tf.gather(indices, order), tf.gather(values, order), st.dense_shape)
    made.set_shape(st.shape)
    return made, empty


@public
def mask(a: Any, mask_indices: Any, name: str | None = None) -> Any:
    """A `tf.IndexedSlices` without the slices at some indices. `name` has no effect."""
    gone = tf.convert_to_tensor(mask_indices, a.indices.dtype)
    keep = tf.reduce_all(tf.not_equal(a.indices[:, None], gone[None, :]), 1)
    return tf.IndexedSlices(tf.boolean_mask(a.values, keep), tf.boolean_mask(a.indices, keep), a.dense_shape)


def _runs(ordered: Any) -> tuple[Any, Any]:
    """Of values in order each once; and for all of them the number of its value among those."""
    first = tf.concat([tf.ones_like(ordered[:1], tf.bool), tf.not_equal(ordered[1:], ordered[:-1])], 0)
    return tf.boolean_mask(ordered, first), tf.cumsum(tf.cast(first, tf.int64)) - 1


# -- arithmetic ---------------------------------------------------------------------------------------------------
def _union(a: SparseTensor, b: SparseTensor) -> tuple[Any, Any, Any]:
    """The places at which one of two tensors has a value, and for each value of both which of them is its."""
    demand(tf.reduce_all(tf.equal(a.dense_shape, b.dense_shape)), "the operands have different shapes")
    places = tf.concat([linear(a.indices, a.dense_shape), linear(b.indices, b.dense_shape)], 0)
    order = tf.argsort(places, stable=True)
    distinct, ids = _runs(tf.gather(places, order))
    return distinct, order, ids


@public
def add(a: Any, b: Any, threshold: Any = 0) -> Any:
    """The sum of two tensors, of which one at least is sparse.

    Args:
        a, b: tensors of one shape and dtype.
        threshold: where both have a value, sums of a smaller magnitude are left out.
    Returns:
        A sparse tensor if both are sparse, else a dense one.
    Raises:
        TypeError: none is sparse.

    >>> import twofold as tf
    >>> a, b = tf.SparseTensor([[0]], [7], [2]), tf.SparseTensor([[0]], [1], [2])
    >>> tf.sparse.add(a, b).values.numpy().tolist()
    [8]
    """
    if not is_sparse(a) and not is_sparse(b):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if not (is_sparse(a) and is_sparse(b)):
        st, dense = (a, b) if is_sparse(a) else (b, a)
        dense = tf.convert_to_tensor(dense, dtype_hint=st.dtype)
        return tf.tensor_scatter_nd_add(dense, st.indices, st.values)
    places, order, ids = _union(a, b)
    values = tf.gather(tf.concat([a.values, b.values], 0), order)
    sums = tf.math.unsorted_segment_sum(values, ids, tf.shape(places)[0])
    limit = tf.get_static_value(tf.convert_to_tensor(threshold))
    if limit is None or limit > 0:
        both = tf.math.unsorted_segment_sum(tf.ones_like(ids), ids, tf.shape(places)[0]) > 1
        keep = (tf.abs(sums) >= tf.cast(threshold, tf.abs(sums).dtype)) | tf.logical_not(both)
        places, sums = tf.boolean_mask(places, keep), tf.boolean_mask(sums, keep)
    return _at(places, sums, a.dense_shape, a.shape)


def _extreme(function: Callable[..., Any], x: Any, y: Any) -> Any:
    a, b = sparse_of(x), sparse_of(y)
    places, order, ids = _union(a, b)
    count = tf.shape(places)[0]
    zeros_a, zeros_b = tf.zeros_like(a.values), tf.zeros_like(b.values)
    of_a = tf.gather(tf.concat([a.values, zeros_b], 0), order)
    of_b = tf.gather(tf.concat([zeros_a, b.values], 0), order)
    left, right = (tf.math.unsorted_segment_sum(v, ids, count) for v in (of_a, of_b))
    return _at(places, function(left, right), a.dense_shape, a.shape)


@public
def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> Any:
    """The larger values of two sparse tensors, where one of them has a value; the other one's is 0 there.
    `name` has no effect."""
    return _extreme(tf.maximum, sp_a, sp_b)


@public
def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> Any:
    """The smaller values of two sparse tensors, where one of them has a value; the other one's is 0 there.
    `name` has no effect."""
    return _extreme(tf.minimum, sp_a, sp_b)


@public
def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A function of the values of sparse tensors, with the coordinates that these have.

    Args:
        op: takes vectors in the places of sparse tensors, and gives a vector of the same size.
        args, kwargs: its arguments, in which there are sparse tensors with the same coordinates.

    >>> import twofold as tf
    >>> tf.sparse.map_values(tf.add, tf.SparseTensor([[1]], [7], [3]), 10).values.numpy().tolist()
    [17]
    """
    given = [*args, *kwargs.values()]
    tensors = [x for x in given if is_sparse(x)]
    if not tensors:
        raise ValueError("No SparseTensor in argument list of map_values")
    first = tensors[0]
    for other in tensors[1:]:
        if other.indices is not first.indices:
            problem = "the sparse tensors have different coordinates"
            demand(tf.equal(tf.shape(first.indices)[0], tf.shape(other.indices)[0]), problem)
            demand(tf.reduce_all(tf.equal(first.indices, other.indices)), problem)
    plain = [x.values if is_sparse(x) else x for x in args]
    named = {k: x.values if is_sparse(x) else x for k, x in kwargs.items()}
    return like(first, op(*plain, **named))


# -- reductions ---------------------------------------------------------------------------------------------------
def _reduced(segment: Callable[..., Any], st: SparseTensor, axis: Any, keepdims: Any, sparse: bool, empty: Any) -> Any:
    rank = st.indices.shape[1]
    given = range(rank) if axis is None else ints(axis, "axis", (-rank, rank))
    axes = sorted({a % rank for a in given}) if rank else []
    if any(not -rank <= a < rank for a in given):
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    kept = [n for n in range(rank) if n not in axes]
    places = linear(tf.gather(st.indices, kept, axis=1), tf.gather(st.dense_shape, kept)) if kept else tf.zeros_like(
        st.indices[:, 0])
    shape = tf.stack([tf.constant(1, tf.int64) if n in axes else st.dense_shape[n] for n in range(rank)
                      if keepdims or n not in axes]) if keepdims or kept else tf.zeros([0], tf.int64)
    static = [1 if n in axes else st.shape[n] for n in range(rank) if keepdims or n not in axes]
    if sparse:
        order = tf.argsort(places, stable=True)
        present_at, ids = _runs(tf.gather(places, order))
        values = segment(tf.gather(st.values, order), ids, tf.shape(present_at)[0])
        return _at(present_at, values, shape, static)
    count = tf.reduce_prod(shape) if kept else tf.constant(1, tf.int64)
    values = segment(st.values, places, count)
    if empty is not None:
        present = tf.math.unsorted_segment_sum(tf.ones_like(places), places, count)
        values = tf.where(present > 0, values, tf.zeros_like(values))
    return tf.ensure_shape(tf.reshape(values, shape), static)


@public
def reduce_sum(sp_input: Any, axis: Any = None, keepdims: bool | None = None, output_is_sparse: bool = False,
               name: str | None = None) -> Any:
    """The sums of the values of a sparse tensor over axes.

    Args:
        sp_input: a sparse tensor.
        axis: one axis, several, or None for all.
        keepdims: whether reduced axes stay, with the size 1.
        output_is_sparse: whether the result is sparse.
        name: has no effect.

    >>> import twofold as tf
    >>> st = tf.SparseTensor([[0, 0], [0, 2], [1, 1]], [1, 1, 1], [2, 3])
    >>> tf.sparse.reduce_sum(st, 0).numpy().tolist()
    [1, 1, 1]
    """
    return _reduced(tf.math.unsorted_segment_sum, sparse_of(sp_input), axis, keepdims, output_is_sparse, None)


@public
def reduce_max(sp_input: Any, axis: Any = None, keepdims: bool | None = None, output_is_sparse: bool = False,
               name: str | None = None) -> Any:
    """The largest of the values of a sparse tensor over axes; 0 where there are none, which else do not count.

    Args:
        sp_input: a sparse tensor.
        axis: one axis, several, or None for all.
        keepdims: whether reduced axes stay, with the size 1.
        output_is_sparse: whether the result is sparse.
        name: has no effect.
    """
    return _reduced(tf.math.unsorted_segment_max, sparse_of(sp_input), axis, keepdims, output_is_sparse, 0)


@public
def softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The softmax over the last axis, of the values that are there. `name` has no effect.

    >>> import twofold as tf
    >>> tf.sparse.softmax(tf.SparseTensor([[0, 0], [0, 2]], [1.0, 1.0], [1, 3])).values.numpy().tolist()
    [0.5, 0.5]
    """
    st = sparse_of(sp_input)
    if st.indices.shape[1] is not None and st.indices.shape[1] < 2:
        raise ValueError("softmax takes sparse tensors of rank 2 or more")
    rows = linear(st.indices[:, :-1], st.dense_shape[:-1])
    count = tf.reduce_prod(st.dense_shape[:-1])
    largest = tf.gather(tf.math.unsorted_segment_max(st.values, rows, count), rows)
    powers = tf.exp(st.values - tf.stop_gradient(largest))
    return like(st, powers / tf.gather(tf.math.unsorted_segment_sum(powers, rows, count), rows))


# -- products -----------------------------------------------------------------------------------------------------
@public
def sparse_dense_matmul(sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
                        ) -> Any:
    """The product of a sparse and a dense matrix, in either order.

    Args:
        sp_a: a sparse matrix (or a dense one, beside a sparse `b`).
        b: a dense matrix (or a sparse one, beside a dense `sp_a`).
        adjoint_a, adjoint_b: whether an operand is transposed and conjugated.
        name: has no effect.
    Returns:
        A dense matrix.

    >>> import twofold as tf
    >>> a = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
    >>> tf.sparse.sparse_dense_matmul(a, tf.constant([[1.0], [10.0]])).numpy().tolist()
    [[20.0], [3.0]]
    """
    if is_sparse(b):
        product = sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a)
        product = tf.transpose(product)
        return tf.math.conj(product) if product.dtype.is_complex else product
    st = sparse_of(sp_a)
    dense = tf.convert_to_tensor(b, st.dtype if not hasattr(b, "dtype") else None)
    if st.indices.shape[1] not in (None, 2) or dense.shape.rank not in (None, 2):
        raise ValueError(f"sparse_dense_matmul takes matrices; got shapes {st.shape} and {dense.shape}")
    if dense.dtype is not st.dtype:
        raise TypeError(f"sparse_dense_matmul: dtypes {st.dtype.name} and {dense.dtype.name} differ.")
    if adjoint_b:
        dense = tf.transpose(tf.math.conj(dense) if dense.dtype.is_complex else dense)
    st = _of_rank(st, 2)
    rows, columns, values = st.indices[:, 0], st.indices[:, 1], st.values
    outer, inner = st.dense_shape[0], st.dense_shape[1]
    if adjoint_a:
        rows, columns, outer, inner = columns, rows, inner, outer
        values = tf.math.conj(values) if values.dtype.is_complex else values
    demand(tf.equal(inner, tf.shape(dense, tf.int64)[0]), "Cannot multiply A and B because inner dimension does not "
                                                          "match")
    size = st.shape[1 if adjoint_a else 0] if st.shape.rank is not None else None
    size = outer if size is None else size
    if dense.dtype in (tf.float32, tf.float64):
        return ops.sparse_matmul(rows, columns, values, dense, size=one_size(size, "dense_shape"))
    return tf.math.unsorted_segment_sum(tf.gather(dense, columns) * values[:, None], rows, size)


@public
def sampled_addmm(indices: Any, values: Any, dense_shape: Any, mat1: Any, mat2: Any, beta: Any = 1.0, alpha: Any = 1.0,
                  output_type: Any = tf.float32) -> tuple[Any, Any, Any]:
    """`beta * values + alpha * (mat1 @ mat2)` at the coordinates of a sparse matrix alone.

    Args:
        indices, values, dense_shape: of the sparse matrix (or batch of matrices, whose first columns are the batch).
        mat1, mat2: dense matrices, or batches of them.
        beta, alpha: factors.
        output_type: the dtype of the product's sums: float32.
    Returns:
        `(indices, values, dense_shape)`.
    """
    indices = tf.convert_to_tensor(indices, dtype_hint=tf.int64)
    mat1, mat2 = tf.convert_to_tensor(mat1), tf.convert_to_tensor(mat2)
    left = tf.gather_nd(mat1, indices[..., :-1]) if indices.shape[-1] > 1 else tf.gather(mat1, indices[..., 0])
    turned = tf.linalg.matrix_transpose(mat2)
    right = tf.gather_nd(turned, tf.concat([indices[..., :-2], indices[..., -1:]], -1))
    sums = tf.reduce_sum(tf.cast(left, output_type) * tf.cast(right, output_type), -1)
    return indices, sums * alpha + tf.cast(values, output_type) * beta, dense_shape


def _segments(data: Any, indices: Any, segment_ids: Any, num_segments: Any, combiner: str) -> Any:
    ids = tf.convert_to_tensor(segment_ids)
    count = last_segment(ids) if num_segments is None else num_segments
    return combined_rows(tf.gather(tf.convert_to_tensor(data), tf.convert_to_tensor(indices)), ids, count, combiner)


def last_segment(segment_ids: Any) -> Any:
    """How many segments there are: one more than the last id."""
    return tf.reduce_max(tf.concat([segment_ids, [tf.constant(-1, segment_ids.dtype)]], 0)) + 1


def combined_rows(rows: Any, segment_ids: Any, count: Any, combiner: str) -> Any:
    """Rows by segments: "sum", "mean" or "sqrtn" of those in each, 0 where there is none.

    Args:
        rows: a tensor.
        segment_ids: the segment of each row; rows with negative ones are left out.
        count: how many segments there are.
        combiner: which.
    """
    sums = tf.math.unsorted_segment_sum(rows, segment_ids, count)
    if combiner == "sum":
        return sums
    counts = tf.math.unsorted_segment_sum(tf.ones_like(segment_ids), segment_ids, count)
    shaped = tf.reshape(tf.cast(tf.maximum(counts, 1), rows.dtype), [-1] + [1] * (rows.shape.rank - 1))
    return sums / shaped if combiner == "mean" else sums * (1 / tf.sqrt(shaped))


@public
def segment_sum(data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, sparse_gradient: bool = False,
                name: str | None = None) -> Any:
    """The sums of the rows of `data` at indices, by segments.

    Args:
        data: a tensor.
        indices: which rows.
        segment_ids: the segment of each, which do not decrease.
        num_segments: how many segments there are; by default one more than the last id.
        sparse_gradient: has no effect.
        name: has no effect.

    >>> import twofold as tf
    >>> tf.sparse.segment_sum([[1, 2], [3, 4]], [0, 1, 1], [0, 0, 1]).numpy().tolist()
    [[4, 6], [3, 4]]
    """
    return _segments(data, indices, segment_ids, num_segments, "sum")


@public
def segment_mean(data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, sparse_gradient: bool = False,
                 name: str | None = None) -> Any:
    """The means of the rows of `data` at indices, by segments; see `segment_sum`.
    `sparse_gradient` and `name` have no effect."""
    return _segments(data, indices, segment_ids, num_segments, "mean")


@public
def segment_sqrt_n(data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, sparse_gradient: bool = False,
                   name: str | None = None) -> Any:
    """The sums of the rows of `data` at indices divided by the roots of their numbers, by segments; see `segment_sum`.
    `sparse_gradient` and `name` have no effect."""
    return _segments(data, indices, segment_ids, num_segments, "sqrtn")


@public
def bincount(values: Any, weights: Any = None, axis: Any = 0, minlength: Any = None, maxlength: Any = None,
             binary_output: bool = False, name: str | None = None) -> SparseTensor:
    """How often each number stands in a tensor, or in each of its rows, as a sparse tensor.

    Args:
        values: integers, dense, sparse or ragged, of rank 1 or 2.
        weights: of the form of `values`: what each counts.
        axis: 0 for all values together, -1 for each row.
        minlength: the least size of the result's last axis.
        maxlength: numbers from here on do not count.
        binary_output: whether each count is 1.
        name: has no effect.
    """
    if is_sparse(values):
        numbers = values.values
        rows = values.indices[:, 0] if values.indices.shape[1] == 2 else tf.zeros_like(values.indices[:, 0])
        height = values.dense_shape[0]
        rank = values.indices.shape[1]
        amounts = None if weights is None else weights.values
    elif isinstance(values, tf.RaggedTensor):
        numbers, rows = values.flat_values, tf.cast(values.value_rowids(), tf.int64)
        rank, height = 2, tf.cast(values.nrows(), tf.int64)
        amounts = None if weights is None else weights.flat_values
    else:
        dense = tf.convert_to_tensor(values)
        rank, height = dense.shape.rank, tf.shape(dense, tf.int64)[0]
        numbers = tf.reshape(dense, [-1])
        width = tf.shape(dense, tf.int64)[-1]
        rows = tf.range(tf.shape(numbers, tf.int64)[0]) // tf.maximum(width, 1) if rank == 2 else tf.zeros_like(
            numbers, tf.int64)
        amounts = None if weights is None else tf.reshape(tf.convert_to_tensor(weights), [-1])
    by_row, counted = axis in (-1, 1) and rank == 2, numbers.dtype
    numbers = tf.cast(numbers, tf.int64)
    size = tf.reduce_max(tf.concat([numbers + 1, [0 if minlength is None else tf.cast(minlength, tf.int64)]], 0))
    if maxlength is not None:
        size = tf.minimum(size, tf.cast(maxlength, tf.int64)) if minlength is None else tf.maximum(tf.minimum(
            size, tf.cast(maxlength, tf.int64)), tf.cast(minlength, tf.int64))
    keep = numbers < size
    places = tf.boolean_mask(rows * size + numbers if by_row else numbers, keep)
    order = tf.argsort(places, stable=True)
    at, ids = _runs(tf.gather(places, order))
    if amounts is not None:
        counts = tf.math.unsorted_segment_sum(tf.gather(tf.boolean_mask(amounts, keep), order), ids, tf.shape(at)[0])
    else:
        counts = tf.ones_like(at) if binary_output else tf.math.unsorted_segment_sum(
            tf.ones_like(ids), ids, tf.shape(at)[0])
        counts = tf.cast(counts, counted)
    shape = tf.stack([height, size]) if by_row else tf.reshape(size, [1])
    return _at(at, counts, shape)


# -- public functions that take sparse tensors --------------------------------------------------------------------
_ZERO_TO_ZERO = frozenset({"abs", "asin", "asinh", "atan", "atanh", "cast", "ceil", "conj", "erf", "expm1", "floor",
                           "identity", "imag", "log1p", "negative", "real", "relu", "rint", "round", "saturate_cast",
                           "sign", "sin", "sinh", "sqrt", "square", "stop_gradient", "tan", "tanh"})


@dispatch_for_unary_elementwise_apis(SparseTensor)
def _unary(api: Callable[..., Any], x: Any) -> Any:
    if api.__name__ not in _ZERO_TO_ZERO:
        raise TypeError(f"{api.__name__} of a SparseTensor: 0 does not stay 0; use tf.sparse.map_values, or "
                        "tf.sparse.to_dense.")
    return like(x, api(x.values))


@implements(tf.shape, {"input": SparseTensor})
def _shape(input: Any, out_type: Any = None, name: Any = None) -> Any:
    return tf.cast(input.dense_shape, out_type or tf.int32)


@implements(tf.size, {"input": SparseTensor})
def _numel(input: Any, out_type: Any = tf.int32, name: Any = None) -> Any:
    return tf.cast(tf.reduce_prod(input.dense_shape), out_type)


@implements(tf.rank, {"input": SparseTensor})
def _rank(input: Any, name: Any = None) -> Any:
    return tf.size(input.dense_shape)


@implements(tf.math.multiply, {"x": SparseTensor})
def _multiply(x: Any, y: Any, name: Any = None) -> Any:
    return x * y


@implements(tf.truediv, {"x": SparseTensor})
def _divide(x: Any, y: Any, name: Any = None) -> Any:
    return x / y
