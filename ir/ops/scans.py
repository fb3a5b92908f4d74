"""Scans: ops that keep every step of going along an axis.

Owns cumsum, cumprod, cumulative_logsumexp and the first-order linear recurrence in which gradients of the other two
are written. The steps themselves are in `codegen/kernels/scan.py`: one after another, in the order of the axis.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from .. import dims as dm
from .. import dtypes as dt
from .. import grad, ops, rules
from ..dtypes import DType
from ..op import Op, primitive
from ..spec import spec
from ..types import AnyTensor, Attr, Cotangents, ShapeRule, Spec

__all__ = ["cumsum", "cumprod", "cumulative_logsumexp", "linear_recurrence", "shifted"]


def _infer(dtypes: Collection[DType]) -> ShapeRule:
    def rule(op: Op, *operands: Spec, axis: int, **attrs: Attr) -> Spec:
        rules.require_dtype(op, operands, 0, dtypes)
        rules.normalize_axis(op, operands, axis, len(operands[0].dims))
        return spec(operands[0].dims, operands[0].dtype)
    return rule


def shifted(x: AnyTensor, axis: int, steps: int, value: complex = 0) -> AnyTensor:
    """`x` moved along `axis` by one place, forward (`steps` 1) or back (-1), with `value` in the place left free."""
    axis = axis % len(x.dims)
    before, after = (1, 0) if steps > 0 else (0, 1)
    paddings = tuple((before, after) if i == axis else (0, 0) for i in range(len(x.dims)))
    wide = ops.pad(x, grad.scalar(value, like=x), paddings=paddings)
    begin = tuple(after if i == axis else 0 for i in range(len(x.dims)))
    return ops.slice(wide, begin=begin, size=tuple(x.dims))


# -- sums ---------------------------------------------------------------------------------------------
def _cumsum_vjp(ct: AnyTensor, out: Spec, x: Spec, *, axis: int, exclusive: bool, reverse: bool) -> Cotangents:
    return ops.cumsum(ct, axis=axis, exclusive=exclusive, reverse=not reverse)


@primitive(infer=_infer(dt.NUMERIC), vjp=_cumsum_vjp, saves=(), lower="scan", traits=("total",))
def cumsum(x: AnyTensor, *, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> AnyTensor:
    """Sums of the elements up to each one along `axis`.

    Args:
        x: numeric tensor. float16 and bfloat16 are added up in float32, each sum rounded once; integers wrap around.
        axis: the axis to go along.
        exclusive: leave the element itself out; the first sum is 0.
        reverse: go from the end to the start.
    Returns:
        Tensor like `x`.
    Raises:
        InvalidArgumentError: the axis is out of range. DTypeError: `x` is not numeric.
    """


# -- linear recurrence --------------------------------------------------------------------------------
def _recurrence_infer(op: Op, a: Spec, b: Spec, *, axis: int, reverse: bool) -> Spec:
    rules.same_dtype(op, [a, b])
    rules.require_dtype(op, [a, b], 0, dt.NUMERIC)
    if not dm.require_same(a.dims, b.dims):
        raise rules.fail(op, [a, b], "the operands must have one shape.")
    rules.normalize_axis(op, [a, b], axis, len(b.dims))
    return spec(b.dims, b.dtype)


def _recurrence_vjp(ct: AnyTensor, out: AnyTensor, a: AnyTensor, b: Spec, *, axis: int, reverse: bool) -> Cotangents:
    step = -1 if reverse else 1
    factor = grad.conj(a)
    back = ops.linear_recurrence(shifted(factor, axis, -step), ct, axis=axis, reverse=not reverse)
    before = shifted(out, axis, step)
    return lambda: ops.multiply(back, grad.conj(before)), back


@primitive(infer=_recurrence_infer, vjp=_recurrence_vjp, saves=("a", "out"), lower="scan", match=(0, 1),
           traits=("total",))
def linear_recurrence(a: AnyTensor, b: AnyTensor, *, axis: int = 0, reverse: bool = False) -> AnyTensor:
    """y[k] = a[k] * y[k-1] + b[k] along `axis`, with y[-1] = 0.

    Args:
        a, b: numeric tensors of one dtype and shape. float16 and bfloat16 are computed in float32.
        axis: the axis to go along.
        reverse: go from the end to the start, y[k] = a[k] * y[k+1] + b[k].
    Returns:
        Tensor like `b`.
    Raises:
        InvalidArgumentError: the axis is out of range, or shapes differ. DTypeError: dtypes differ.
    Gradient: the recurrence run backwards, so that it has derivatives of every order.
    """


# -- products -----------------------------------------------------------------------------------------
def _cumprod_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, *, axis: int, exclusive: bool, reverse: bool) -> Cotangents:
    """The product of the elements before, times the sum over those behind of ct times the product in between.

    That sum is a linear recurrence; nothing is divided by elements, which may be zero.
    """
    step = -1 if reverse else 1
    factor = grad.conj(x)
    before = ops.cumprod(factor, axis=axis, exclusive=True, reverse=reverse)
    if exclusive:
        after = shifted(ops.linear_recurrence(factor, ct, axis=axis, reverse=not reverse), axis, -step)
    else:
        after = ops.linear_recurrence(shifted(factor, axis, -step), ct, axis=axis, reverse=not reverse)
    return ops.multiply(before, after)


@primitive(infer=_infer(dt.NUMERIC), vjp=_cumprod_vjp, saves=("x",), lower="scan", traits=("total",))
def cumprod(x: AnyTensor, *, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> AnyTensor:
    """Products of the elements up to each one along `axis`.

    Args:
        x: numeric tensor. float16 and bfloat16 multiply in float32, each product rounded once; integers wrap around.
        axis: the axis to go along.
        exclusive: leave the element itself out; the first product is 1.
        reverse: go from the end to the start.
    Returns:
        Tensor like `x`.
    Raises:
        InvalidArgumentError: the axis is out of range. DTypeError: `x` is not numeric.
    Gradient: right also where elements are zero.
    """


# -- logarithms of sums -------------------------------------------------------------------------------
def _gone(x: AnyTensor) -> AnyTensor:
    return ops.equal(x, grad.scalar(-math.inf, like=x))


def _cumulative_logsumexp_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor, *, axis: int, reverse: bool) -> Cotangents:
    """sum over j >= k of ct[j] * exp(x[k] - out[j]), as exp(x[k] - out[k]) * h[k] with the recurrence
    h[k] = ct[k] + exp(out[k] - out[k+1]) * h[k+1]: no exponent is positive, so nothing overflows."""
    step = -1 if reverse else 1
    zero = grad.scalar(0, like=x)
    none = _gone(out)
    finite = ops.where(none, zero, out)
    # finite[k] - inf at the end, where there is no next one: exp gives 0
    fall = ops.where(none, zero, ops.subtract(finite, shifted(finite, axis, -step, math.inf)))
    ratio = ops.where(none, zero, ops.exp(fall))
    total = ops.linear_recurrence(ratio, ops.where(none, zero, ct), axis=axis, reverse=not reverse)
    gone = _gone(x)
    part = ops.exp(ops.where(gone, zero, ops.subtract(x, finite)))
    return ops.where(gone, zero, ops.multiply(total, part))


@primitive(infer=_infer(dt.FLOATING), vjp=_cumulative_logsumexp_vjp, saves=("x", "out"), lower="scan",
           traits=("total",))
def cumulative_logsumexp(x: AnyTensor, *, axis: int = 0, reverse: bool = False) -> AnyTensor:
    """log(sum(exp(x))) of the elements up to each one along `axis`, without overflow.

    Args:
        x: floating tensor. float16 and bfloat16 are computed in float32, each result rounded once.
        axis: the axis to go along.
        reverse: go from the end to the start.
    Returns:
        Tensor like `x`.
    Raises:
        InvalidArgumentError: the axis is out of range. DTypeError: `x` is not floating.
    Gradient: finite also where elements are minus infinity.
    """
