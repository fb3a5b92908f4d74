"""Raw ops of matrices."""

from __future__ import annotations

from typing import Any

import twofold as tf

from .declared import op, pulled, refuse_others

__all__ = ["ROWS"]

ROWS = """
SparseMatMul(a, b, transpose_a=False, transpose_b=False, a_is_sparse=False, b_is_sparse=False) \
= matmul(a, b, transpose_a, transpose_b, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse)
"""


@op()
def matrix_solve_ls(matrix: Any, rhs: Any, l2_regularizer: Any, fast: bool = True) -> Any:
    matrix = tf.convert_to_tensor(matrix)
    return tf.linalg.lstsq(matrix, rhs, tf.cast(l2_regularizer, matrix.dtype), fast)


@op("e v")
def eig(input: Any, Tout: Any, compute_v: bool = True) -> Any:
    values, vectors = tf.linalg.eig(input) if compute_v else (tf.linalg.eigvals(input), tf.zeros([0]))
    refuse_others("Eig", Tout=(tf.as_dtype(Tout), values.dtype))
    return values, tf.cast(vectors, Tout)


@op("e v", name="SelfAdjointEigV2")
def self_adjoint_eig_v2(input: Any, compute_v: bool = True) -> Any:
    matrix = tf.convert_to_tensor(input)
    return tf.linalg.eigh(matrix) if compute_v else (tf.linalg.eigvalsh(matrix), tf.zeros([0], matrix.dtype))


@op("s u v")
def svd(input: Any, compute_uv: bool = True, full_matrices: bool = False) -> Any:
    matrix = tf.convert_to_tensor(input)
    if compute_uv:
        return tf.linalg.svd(matrix, full_matrices)
    nothing = tf.zeros([0], matrix.dtype)
    return tf.linalg.svd(matrix, compute_uv=False), nothing, nothing


@op()
def cholesky_grad(l: Any, grad: Any) -> Any:  # noqa: E741  # TensorFlow's name
    factor = tf.convert_to_tensor(l)
    return pulled(tf.linalg.cholesky, [tf.matmul(factor, factor, adjoint_b=True)], tf.convert_to_tensor(grad))[0]


@op()
def tridiagonal_mat_mul(superdiag: Any, maindiag: Any, subdiag: Any, rhs: Any) -> Any:
    diagonals = [tf.convert_to_tensor(x)[..., 0, :] for x in (superdiag, maindiag, subdiag)]
    return tf.linalg.tridiagonal_matmul(diagonals, rhs, "sequence")
