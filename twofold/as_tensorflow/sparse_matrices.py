"""Products of sparse matrices, by the functions of TensorFlow's private module `sparse_csr_matrix_ops`.

A matrix in compressed rows is a variant in TensorFlow; here it is the sparse tensor itself, and its rows are found
where a product needs them. Of several dimensions, all but the last two count matrices.
"""

from __future__ import annotations

import typing
from typing import Any

import twofold as tf

__all__ = ["SparseParts", "csr_sparse_matrix_to_sparse_tensor", "sparse_matrix_sparse_mat_mul",
           "sparse_tensor_to_csr_sparse_matrix"]


class SparseParts(typing.NamedTuple):
    """The parts of a sparse tensor, as a raw op of TensorFlow returns them."""

    indices: Any
    values: Any
    dense_shape: Any


def sparse_tensor_to_csr_sparse_matrix(indices: Any, values: Any, dense_shape: Any, name: str | None = None) -> Any:
    """The matrices of a sparse tensor, whose indices are in order."""
    return tf.SparseTensor(indices, values, dense_shape)


def csr_sparse_matrix_to_sparse_tensor(sparse_matrix: Any, type: Any, name: str | None = None) -> SparseParts:
    """The parts of the sparse tensor that has a matrix's values."""
    return SparseParts(sparse_matrix.indices, tf.cast(sparse_matrix.values, type), sparse_matrix.dense_shape)


def sparse_matrix_sparse_mat_mul(a: Any, b: Any, type: Any, name: str | None = None) -> Any:
    """The product of sparse matrices: what lies where any two values meet, zeros that come of them included.

    Each value of `a` meets the values of one row of `b`; products of one place are added in the order of `a`.
    """
    (*batch, height, depth), width = tf.unstack(a.dense_shape), b.dense_shape[-1]
    matrices, rows_of_a, columns_of_a = _places(a)
    numbers_of_b, rows_of_b, columns_of_b = _places(b)
    first = tf.searchsorted(numbers_of_b * depth + rows_of_b, matrices * depth + columns_of_a, out_type=tf.int64)
    after = tf.searchsorted(numbers_of_b * depth + rows_of_b, matrices * depth + columns_of_a, side="right",
                            out_type=tf.int64)
    of_b = tf.ragged.range(first, after)
    of_a = of_b.value_rowids()
    of_b = of_b.values
    places = ((tf.gather(matrices * height + rows_of_a, of_a)) * width + tf.gather(columns_of_b, of_b))
    products = tf.gather(tf.cast(a.values, type), of_a) * tf.gather(tf.cast(b.values, type), of_b)
    order = tf.argsort(places, stable=True)
    distinct, which = tf.unique(tf.gather(places, order), out_idx=tf.int64)
    values = tf.math.unsorted_segment_sum(tf.gather(products, order), which, tf.size(distinct, tf.int64))
    shape = tf.stack([*batch, height, width])
    return tf.SparseTensor(tf.transpose(tf.unravel_index(distinct, shape)), values, shape)


def _places(matrix: Any) -> tuple[Any, Any, Any]:
    """For each value the number of its matrix, its row and its column."""
    *batch, rows, columns = tf.unstack(matrix.indices, axis=1)
    number = tf.zeros_like(rows)
    for index, size in zip(batch, tf.unstack(matrix.dense_shape[:-2]), strict=True):
        number = number * size + index
    return number, rows, columns
