"""Matrix products, determinants, and the softmax family."""

from __future__ import annotations

from twofold.ir import dtypes as dt
from twofold.ir import graph as g

from .export_table import meaning
from .export_writer import Ref, Writer, require_real


@meaning("matmul")
def matmul(w: Writer, node: g.Node, a: Ref, b: Ref, *, transpose_a: bool, transpose_b: bool, adjoint_a: bool,
           adjoint_b: bool, precision: str) -> Ref:
    """The matrices of the last two axes; 16-bit floats are summed in float32."""
    require_real(a.dtype)
    dtype = a.dtype
    a, b = w.cast(a, dtype.compute), w.cast(b, dtype.compute)
    flipped_a, flipped_b = transpose_a or adjoint_a, transpose_b or adjoint_b
    a = turned(w, a, len(node.inputs[0].dims)) if flipped_a else a
    b = turned(w, b, len(node.inputs[1].dims)) if flipped_b else b
    return w.cast(w.op("MatMul", a, b), dtype)


def turned(w: Writer, x: Ref, rank: int) -> Ref:
    """The matrices of the last two axes with rows for columns."""
    return w.op("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])


@meaning("int8_matmul")
def int8_matmul(w: Writer, node: g.Node, a: Ref, b: Ref, *, transpose_a: bool, transpose_b: bool) -> Ref:
    """`MatMulInteger`, without zero points; runtimes leave products over nothing as they find memory."""
    if 0 in node.inputs[0].dims:
        return w.op("Expand", w.constant(0, dt.int32), w.shape(node.outputs[0].dims))
    a = turned(w, a, len(node.inputs[0].dims)) if transpose_a else a
    b = turned(w, b, len(node.inputs[1].dims)) if transpose_b else b
    return w.op("MatMulInteger", a, b, dtype=dt.int32)


@meaning("matrix_determinant")
def determinant(w: Writer, node: g.Node, x: Ref) -> Ref:
    """`Det`, of real matrices."""
    require_real(x.dtype)
    return w.op("Det", x)


@meaning("softmax", "log_softmax")
def softmax(w: Writer, node: g.Node, x: Ref, *, axis: int) -> Ref:
    """16-bit floats in float32, rounded once."""
    kind = "Softmax" if node.op.name == "softmax" else "LogSoftmax"
    at = axis % len(node.inputs[0].dims)
    return w.cast(w.op(kind, w.cast(x, x.dtype.compute), axis=at), x.dtype)


@meaning("sparse_cross_entropy")
def cross_entropy(w: Writer, node: g.Node, logits: Ref, labels: Ref) -> Ref:
    """Minus the logarithm of the softmax at each label."""
    last = len(node.inputs[1].dims)
    scores = w.op("LogSoftmax", w.cast(logits, logits.dtype.compute), axis=last)
    column = w.op("Unsqueeze", w.cast(labels, dt.int64), w.ints([last]))
    picked = w.op("Squeeze", w.op("GatherElements", scores, column, axis=last), w.ints([last]))
    return w.cast(w.op("Neg", picked), logits.dtype)
