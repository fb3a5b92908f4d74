"""ONNX ops that are products of matrices, and what is made of such: Gemm, Einsum, determinants."""

from __future__ import annotations

import math
import re
from typing import Any

import twofold as tf

from .import_table import Call, op
from .import_values import Turned, Value, tensor_of

__all__: list[str] = []


@op("MatMul")
def _matmul(call: Call, x: Any, y: Any) -> Any:
    """NumPy's: vectors are rows on the left and columns on the right, and leading axes broadcast."""
    if not x.dims or not y.dims:
        raise call.fail("a scalar has no matrix product")
    if len(x.dims) == 1 and len(y.dims) == 1:
        return tf.tensordot(x, y, 1)
    if len(x.dims) == 1:
        return tf.squeeze(tf.matmul(x[None, :], y), axis=-2)
    if len(y.dims) == 1:
        return tf.squeeze(tf.matmul(x, y[:, None]), axis=-1)
    if len(y.dims) == 2 and len(x.dims) > 2:  # one product of all rows
        rows = tf.matmul(tf.reshape(x, (math.prod(x.dims[:-1]), x.dims[-1])), y)
        return tf.reshape(rows, (*x.dims[:-1], y.dims[-1]))
    return tf.matmul(x, y)


def _columns(node: Any, rank: int) -> tuple[int, ...] | None:
    """Weights that are transposed are kept as they are used."""
    return (1, 0) if rank == 2 and node.attrs.get("transB") else None


@op("Gemm", layout=True, turned={1: _columns})
def _gemm(call: Call, a: Value, b: Value, c: Value = None) -> Any:
    a, c = tensor_of(a), tensor_of(c)
    turned = bool(call.attr("transB", 0))
    if isinstance(b, Turned) and turned:
        b, turned = b.kept, False
    b = tensor_of(b)
    alpha, beta = call.attr("alpha", 1.0), call.attr("beta", 1.0)
    whole = a.dtype.is_integer
    y = tf.matmul(a, b, transpose_a=bool(call.attr("transA", 0)), transpose_b=turned)
    y = y if alpha == 1 else tf.cast(tf.cast(y, tf.float64) * alpha, a.dtype) if whole else alpha * y
    if c is None or beta == 0:
        return y
    return y + (c if beta == 1 else tf.cast(tf.cast(c, tf.float64) * beta, a.dtype) if whole else beta * c)


@op("Einsum")
def _einsum(call: Call, *values: Any) -> Any:
    return tf.einsum(re.sub(r"\s", "", call.need("equation")), *values)


@op("Det")
def _determinant(call: Call, x: Any) -> Any:
    return tf.linalg.det(x)
