"""Ops of neural networks that are neither elementwise nor products: the softmax family and the loss of labels.

Losses and normalisations are composites in `twofold/nn.py`; convolution and pooling have modules of their own.
"""

from __future__ import annotations

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops, rules
from twofold.ir.op import Op, primitive
from twofold.ir.spec import spec
from twofold.ir.types import AnyTensor, Cotangents, Spec

__all__ = ["softmax", "log_softmax", "sparse_cross_entropy"]


def _infer(op: Op, x: Spec, *, axis: int) -> Spec:
    rules.require_dtype(op, (x,), 0, dt.FLOATING)
    rank = rules.require_rank(op, (x,), 0, 1)
    rules.normalize_axis(op, (x,), axis, rank)
    return spec(x.dims, x.dtype)


def _softmax_vjp(ct: AnyTensor, out: AnyTensor, x: Spec, *, axis: int) -> Cotangents:
    inner = ops.reduce_sum(ops.multiply(ct, out), axis=(axis,), keepdims=True)
    return (ops.multiply(ops.subtract(ct, inner), out),)


def _log_softmax_vjp(ct: AnyTensor, out: AnyTensor, x: Spec, *, axis: int) -> Cotangents:
    total = ops.reduce_sum(ct, axis=(axis,), keepdims=True)
    return (ops.subtract(ct, ops.multiply(ops.exp(out), total)),)


@primitive(infer=_infer, vjp=_softmax_vjp, saves=("out",), lower="softmax", traits=("total",))
def softmax(x: AnyTensor, *, axis: int = -1) -> AnyTensor:
    """exp(x) / sum(exp(x)) along `axis`, computed from x - max(x) so that nothing overflows.

    Args:
        x: a floating tensor of rank 1 or more.
        axis: where the sum is 1.
    Returns:
        A tensor like `x`; 16-bit floats are computed in float32 and rounded once.
    Raises:
        DTypeError: `x` is not floating. ShapeError: it is a scalar. InvalidArgumentError: no such axis.
    """


@primitive(infer=_infer, vjp=_log_softmax_vjp, saves=("out",), lower="softmax", traits=("total",))
def log_softmax(x: AnyTensor, *, axis: int = -1) -> AnyTensor:
    """x - log(sum(exp(x))) along `axis`, computed from x - max(x) so that nothing overflows.

    Args:
        x: a floating tensor of rank 1 or more.
        axis: where the sum of exponentials is taken.
    Returns:
        A tensor like `x`; 16-bit floats are computed in float32 and rounded once.
    Raises:
        DTypeError: `x` is not floating. ShapeError: it is a scalar. InvalidArgumentError: no such axis.
    """


def _cross_entropy_infer(op: Op, logits: Spec, labels: Spec) -> Spec:
    operands = (logits, labels)
    rules.require_dtype(op, operands, 0, dt.FLOATING)
    rules.require_dtype(op, operands, 1, dt.INTEGER)
    rank = rules.require_rank(op, operands, 0, 1)
    rules.require_rank(op, operands, 1, rank - 1, rank - 1)
    if not all(dm.require_eq(m, n) for m, n in zip(logits.dims, labels.dims, strict=False)):
        raise rules.fail(op, operands, "labels must have the shape of logits without the last axis.")
    return spec(labels.dims, logits.dtype)


def _cross_entropy_vjp(ct: AnyTensor, out: Spec, logits: AnyTensor, labels: AnyTensor) -> Cotangents:
    """ct * (softmax - 1 at the label)."""
    batch = len(labels.dims)
    column = ops.expand_dims(ct, axis=batch)
    base = ops.multiply(ops.softmax(logits, axis=-1), column)
    where = ops.expand_dims(labels, axis=batch)
    return ops.scatter_add(base, where, ops.negative(column), axis=batch, batch_dims=batch), None


@primitive(infer=_cross_entropy_infer, vjp=_cross_entropy_vjp, saves=("logits", "labels"), lower="softmax")
def sparse_cross_entropy(logits: AnyTensor, labels: AnyTensor) -> AnyTensor:
    """The negative log probability of each label under the softmax of `logits` along the last axis.

    Args:
        logits: floating [.., classes].
        labels: integers [..] in [0, classes).
    Returns:
        A tensor of the shape of `labels` and the dtype of `logits`.
    Raises:
        InvalidArgumentError: a label is out of range. DTypeError, ShapeError: operands do not fit.
    """
