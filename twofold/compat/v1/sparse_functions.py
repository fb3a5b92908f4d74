"""Functions of sparse tensors with the arguments that TensorFlow 1 gives them, in its order and by its names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import public

from .functions import one_of

__all__ = [
    "serialize_many_sparse", "serialize_sparse", "sparse_add", "sparse_concat", "sparse_matmul", "sparse_merge",
    "sparse_reduce_max", "sparse_reduce_max_sparse", "sparse_reduce_sum", "sparse_reduce_sum_sparse",
    "sparse_segment_mean", "sparse_segment_sqrt_n", "sparse_segment_sum", "sparse_split", "sparse_to_dense",
]


@public
def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """`tf.sparse.add`; `thresh` is the older name of `threshold`."""
    threshold = one_of(threshold, thresh, "threshold", "thresh")
    return tf.sparse.add(a, b, 0 if threshold is None else threshold)


@public
def sparse_concat(axis: Any = None, sp_inputs: Any = None, name: str | None = None, expand_nonconcat_dim: bool = False,
                  concat_dim: Any = None, expand_nonconcat_dims: bool | None = None) -> Any:
    """`tf.sparse.concat`; `concat_dim` and `expand_nonconcat_dim` are older names of arguments. `name` has no effect.
    """
    return tf.sparse.concat(one_of(axis, concat_dim, "axis", "concat_dim"), sp_inputs,
                            bool(expand_nonconcat_dim or expand_nonconcat_dims))


@public
def sparse_split(*, sp_input: Any = None, num_split: Any = None, axis: Any = None, name: str | None = None,
                 split_dim: Any = None) -> list[Any]:
    """`tf.sparse.split`; `split_dim` is the older name of `axis`. `name` has no effect."""
    return tf.sparse.split(sp_input, num_split, one_of(axis, split_dim, "axis", "split_dim"))


def _reduction(function: Callable[..., Any], of: str, sparse: bool) -> Callable[..., Any]:
    def reduce(sp_input: Any, axis: Any = None, keepdims: bool | None = None, reduction_axes: Any = None,
               keep_dims: bool | None = None) -> Any:
        return function(sp_input, one_of(axis, reduction_axes, "axis", "reduction_axes"),
                        bool(one_of(keepdims, keep_dims, "keepdims", "keep_dims")), sparse)
    reduce.__name__ = reduce.__qualname__ = f"sparse_{of}{'_sparse' if sparse else ''}"
    reduce.__doc__ = (f"`tf.sparse.{of}`{', with a sparse result' if sparse else ''}; `reduction_axes` is the older "
                      "name of `axis`, `keep_dims` that of `keepdims`.")
    return public(reduce)


sparse_reduce_sum = _reduction(tf.sparse.reduce_sum, "reduce_sum", False)
sparse_reduce_sum_sparse = _reduction(tf.sparse.reduce_sum, "reduce_sum", True)
sparse_reduce_max = _reduction(tf.sparse.reduce_max, "reduce_max", False)
sparse_reduce_max_sparse = _reduction(tf.sparse.reduce_max, "reduce_max", True)


@public
def sparse_merge(sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None,
                 already_sorted: bool = False) -> Any:
    """The values of one sparse tensor at the ids of others, which take the place of the last axis.

    Args:
        sp_ids: a sparse tensor of integers, or several.
        sp_values: a sparse tensor of as many values in the same places.
        vocab_size: the size of the axis of ids, or one size for each tensor of them.
        name: accepted, without effect.
        already_sorted: whether the places are in row-major order as they are, and need not be sorted.
    Returns:
        A `tf.SparseTensor`.
    Raises:
        TypeError: an operand is no sparse tensor, or sizes are not given as the ids are.
        ValueError: there are more tensors of ids than sizes, or fewer.

    >>> import twofold as tf
    >>> ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [4, 2, 1], [2, 2])
    >>> weights = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0.5, 2.0, 1.0], [2, 2])
    >>> tf.sparse.to_dense(tf.compat.v1.sparse_merge(ids, weights, 5)).numpy().tolist()
    [[0.0, 0.0, 2.0, 0.0, 0.5], [0.0, 1.0, 0.0, 0.0, 0.0]]
    """
    tensors, sizes = _ids_and_sizes(sp_ids, vocab_size)
    for value in (*tensors, sp_values):
        if not isinstance(value, tf.SparseTensor):
            raise TypeError(f"sparse_merge takes sparse tensors; got {type(value).__name__}")
    first = tensors[0]
    columns = [tf.cast(ids.values, tf.int64)[:, tf.newaxis] for ids in tensors]
    merged = tf.SparseTensor(tf.concat([first.indices[:, :-1], *columns], 1), sp_values.values,
                             tf.concat([first.dense_shape[:-1], tf.stack(sizes)], 0))
    return merged if already_sorted else tf.sparse.reorder(merged)


def _ids_and_sizes(ids: Any, sizes: Any) -> tuple[list[Any], list[Any]]:
    """Tensors of ids and the sizes of their axes, each in a list."""
    if isinstance(ids, tf.SparseTensor):
        if isinstance(sizes, Sequence):
            raise TypeError(f"vocab_size has to be a Tensor or Python int. Found {type(sizes)}")
        ids, sizes = [ids], [sizes]
    elif not isinstance(sizes, Sequence):
        raise TypeError(f"vocab_size has to be a list of Tensors or Python ints. Found {type(sizes)}")
    if len(ids) != len(sizes):
        raise ValueError("sp_ids and vocab_size have to have equal lengths.")
    return list(ids), [tf.cast(size, tf.int64) for size in sizes]


@public
def sparse_to_dense(sparse_indices: Any, output_shape: Any, sparse_values: Any, default_value: Any = 0,
                    validate_indices: bool = True, name: str | None = None) -> Any:
    """A dense tensor with values at indices, and another one elsewhere; see `tf.sparse.to_dense`.

    Args:
        sparse_indices: of one place, of elements of a vector, or a row for each.
        output_shape: of the result.
        sparse_values: a value for each place, or one for all.
        default_value: for all other places.
        validate_indices: whether the places must be in row-major order, without repetitions.
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: places are outside of the shape, or not in order.

    >>> import twofold as tf
    >>> tf.compat.v1.sparse_to_dense([1, 3], [5], [7, 9], default_value=-1).numpy().tolist()
    [-1, 7, -1, 9, -1]
    """
    values = tf.convert_to_tensor(sparse_values)
    return tf.raw_ops.SparseToDense(sparse_indices=sparse_indices, output_shape=output_shape, sparse_values=values,
                                    default_value=tf.convert_to_tensor(default_value, values.dtype),
                                    validate_indices=validate_indices)


@public
def sparse_matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, a_is_sparse: bool = False,
                  b_is_sparse: bool = False, name: str | None = None) -> Any:
    """The product of two dense matrices. `a_is_sparse`, `b_is_sparse` and `name` have no effect."""
    return tf.raw_ops.SparseMatMul(a=a, b=b, transpose_a=transpose_a, transpose_b=transpose_b)


def _segments(of: str) -> Callable[..., Any]:
    def segments(data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None,
                 sparse_gradient: bool = False) -> Any:
        return now(data, indices, segment_ids, num_segments, sparse_gradient)
    now = getattr(tf.sparse, f"segment_{of}")
    segments.__name__ = segments.__qualname__ = f"sparse_segment_{of}"
    segments.__doc__ = f"`tf.sparse.segment_{of}`. `name` has no effect."
    return public(segments)


sparse_segment_mean, sparse_segment_sqrt_n, sparse_segment_sum = map(_segments, ("mean", "sqrt_n", "sum"))


@public
def serialize_sparse(sp_input: Any, name: str | None = None, out_type: Any = "string") -> Any:
    """`tf.io.serialize_sparse`. `name` has no effect."""
    return tf.io.serialize_sparse(sp_input, out_type)


@public
def serialize_many_sparse(sp_input: Any, name: str | None = None, out_type: Any = "string") -> Any:
    """`tf.io.serialize_many_sparse`. `name` has no effect."""
    return tf.io.serialize_many_sparse(sp_input, out_type)
