"""Activations of neural networks, elementwise, each one pass forwards and one backwards.

Owns the rectifiers and their smooth kin with fused gradients; `sigmoid` and `tanh` are in `math.py`.
Where a gradient can be told from the result, that is what is saved, so the operand's memory goes.
"""

from __future__ import annotations

import math

from .. import dtypes as dt
from .. import ops, rules
from ..grad import chain, unbroadcast, zeros_like
from ..op import primitive
from ..scalar import Scalar, ScalarBody, ScalarBuilder
from ..types import AnyTensor, Cotangents, Spec

__all__ = ["elu", "elu_grad", "gelu", "gelu_grad", "gelu_tanh", "gelu_tanh_grad", "leaky_relu", "leaky_relu_grad",
           "relu", "relu6", "relu6_grad", "relu_grad", "selu", "selu_grad", "silu", "silu_grad", "softplus",
           "softsign", "softsign_grad"]

_FLOAT = rules.unary(dt.FLOATING)
_FLOAT2 = rules.elementwise(dt.FLOATING)


# -- rectifiers ---------------------------------------------------------------------------------------
@primitive(infer=rules.unary(dt.REAL), vjp=lambda ct, out, x: ops.relu_grad(ct, out), saves=("out",),
           body=lambda s, x: s.select(s.lt(x, 0), s.const(0, x.dtype), x))
def relu(x: AnyTensor) -> AnyTensor:
    """`x` where it is positive, else 0, of a real tensor; NaN stays NaN. Gradient: 0 at 0."""


@primitive(infer=_FLOAT2, vjp=lambda ct, out, g, y: (lambda: ops.relu_grad(ct, y), lambda: zeros_like(y)),
           saves=("y",), body=lambda s, g, y: s.select(s.gt(y, 0), g, s.const(0, g.dtype)))
def relu_grad(g: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Cotangent `g` where `y` is positive, else 0: the gradient of `relu` from its operand or result."""


def _relu6_body(s: ScalarBuilder, x: Scalar) -> Scalar:
    return s.select(s.lt(x, 0), s.const(0, x.dtype), s.select(s.gt(x, 6), s.const(6, x.dtype), x))


@primitive(infer=rules.unary(dt.REAL), vjp=lambda ct, out, x: ops.relu6_grad(ct, out), saves=("out",),
           body=_relu6_body)
def relu6(x: AnyTensor) -> AnyTensor:
    """`x` between 0 and 6, and the nearer of them beyond, of a real tensor; NaN stays NaN."""


@primitive(infer=_FLOAT2, vjp=lambda ct, out, g, y: (lambda: ops.relu6_grad(ct, y), lambda: zeros_like(y)),
           saves=("y",), body=lambda s, g, y: s.select(s.and_(s.gt(y, 0), s.lt(y, 6)), g, s.const(0, g.dtype)))
def relu6_grad(g: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Cotangent `g` where `0 < y < 6`, else 0: the gradient of `relu6` from its operand or result."""


def _leaky_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, alpha: AnyTensor) -> Cotangents:
    return (lambda: unbroadcast(ops.leaky_relu_grad(ct, x, alpha), x),
            lambda: unbroadcast(ops.where(ops.greater(x, 0), 0, chain(ct, x)), alpha))


@primitive(infer=_FLOAT2, vjp=_leaky_vjp, saves=("x", "alpha"),
           body=lambda s, x, alpha: s.select(s.gt(x, 0), x, s.mul(x, alpha)))
def leaky_relu(x: AnyTensor, alpha: AnyTensor) -> AnyTensor:
    """`x` where it is positive, else `alpha * x`, of float tensors."""


def _leaky_grad_vjp(ct: AnyTensor, out: Spec, g: AnyTensor, x: AnyTensor, alpha: AnyTensor) -> Cotangents:
    return (lambda: unbroadcast(ops.leaky_relu_grad(ct, x, alpha), g), lambda: zeros_like(x),
            lambda: unbroadcast(ops.where(ops.greater(x, 0), 0, ops.multiply(ct, g)), alpha))


@primitive(infer=_FLOAT2, vjp=_leaky_grad_vjp, saves=("g", "x", "alpha"),
           body=lambda s, g, x, alpha: s.select(s.gt(x, 0), g, s.mul(g, alpha)))
def leaky_relu_grad(g: AnyTensor, x: AnyTensor, alpha: AnyTensor) -> AnyTensor:
    """Cotangent `g` where `x` is positive, else `alpha * g`: the gradient of `leaky_relu`."""


# -- exponential units --------------------------------------------------------------------------------
# Klambauer et al., "Self-Normalizing Neural Networks" (2017): the fixed point of mean 0 and variance 1.
_ALPHA, _SCALE = 1.6732632423543772, 1.0507009873554805


def _elu_body(scale: float, alpha: float) -> ScalarBody:
    def body(s: ScalarBuilder, x: Scalar) -> Scalar:
        # clipped, for expm1 of what is not taken may be infinite
        low = s.expm1(s.select(s.lt(x, 0), x, s.const(0, x.dtype)))
        return s.select(s.lt(x, 0), low if alpha == 1 else s.mul(low, scale * alpha),
                        x if scale == 1 else s.mul(x, scale))
    return body


def _elu_grad_body(scale: float, alpha: float) -> ScalarBody:
    return lambda s, g, y: s.mul(g, s.select(s.lt(y, 0), s.add(y, scale * alpha), s.const(scale, y.dtype)))


def _elu_grad_vjp(ct: AnyTensor, out: Spec, g: AnyTensor, y: AnyTensor) -> Cotangents:
    return (lambda: ops.elu_grad(ct, y), lambda: ops.where(ops.less(y, 0), ops.multiply(ct, g), 0))


def _selu_grad_vjp(ct: AnyTensor, out: Spec, g: AnyTensor, y: AnyTensor) -> Cotangents:
    return (lambda: ops.selu_grad(ct, y), lambda: ops.where(ops.less(y, 0), ops.multiply(ct, g), 0))


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.elu_grad(ct, out), saves=("out",), body=_elu_body(1, 1))
def elu(x: AnyTensor) -> AnyTensor:
    """`x` where it is positive, else `exp(x) - 1`, of a float tensor."""


@primitive(infer=_FLOAT2, vjp=_elu_grad_vjp, saves=("g", "y"), body=_elu_grad_body(1, 1))
def elu_grad(g: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Cotangent `g` times the slope of `elu` where its result is `y`."""


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.selu_grad(ct, out), saves=("out",), body=_elu_body(_SCALE, _ALPHA))
def selu(x: AnyTensor) -> AnyTensor:
    """`scale * x` where `x` is positive, else `scale * alpha * (exp(x) - 1)`, of a float tensor.

    scale is 1.0507..., alpha 1.6732...: Klambauer et al., "Self-Normalizing Neural Networks" (2017).
    """


@primitive(infer=_FLOAT2, vjp=_selu_grad_vjp, saves=("g", "y"), body=_elu_grad_body(_SCALE, _ALPHA))
def selu_grad(g: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Cotangent `g` times the slope of `selu` where its result is `y`."""


# -- smooth units -------------------------------------------------------------------------------------
def _times_slope(s: ScalarBuilder, g: Scalar, slope: Scalar) -> Scalar:
    """`g * slope`, and 0 where `g` is 0: beyond what squares hold, slopes are NaN."""
    return s.select(s.eq(g, 0), s.const(0, g.dtype), s.mul(g, slope))


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.multiply(ct, ops.sigmoid(x)), saves=("x",),
           body=lambda s, x: s.softplus(x))
def softplus(x: AnyTensor) -> AnyTensor:
    """`log(1 + exp(x))` without overflow, of a float tensor."""


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.softsign_grad(ct, x), saves=("x",),
           body=lambda s, x: s.div(x, s.add(s.abs(x), 1)))
def softsign(x: AnyTensor) -> AnyTensor:
    """`x / (1 + abs(x))` of a float tensor."""


def _softsign_grad_body(s: ScalarBuilder, g: Scalar, x: Scalar) -> Scalar:
    d = s.add(s.abs(x), 1)
    return s.div(g, s.mul(d, d))


def _softsign_grad_vjp(ct: AnyTensor, out: Spec, g: AnyTensor, x: AnyTensor) -> Cotangents:
    def to_x() -> AnyTensor:
        d = ops.add(ops.abs(x), 1)
        slope = ops.divide(ops.multiply(ops.sign(x), -2), ops.multiply(d, ops.square(d)))
        return chain(ops.multiply(ct, g), slope)
    return lambda: ops.softsign_grad(ct, x), to_x


@primitive(infer=_FLOAT2, vjp=_softsign_grad_vjp, saves=("g", "x"), body=_softsign_grad_body)
def softsign_grad(g: AnyTensor, x: AnyTensor) -> AnyTensor:
    """Cotangent `g` over `(1 + abs(x))**2`: the gradient of `softsign`."""


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.silu_grad(ct, x), saves=("x",),
           body=lambda s, x: s.silu(x))
def silu(x: AnyTensor) -> AnyTensor:
    """`x * sigmoid(x)` of a float tensor."""


def _silu_grad_vjp(ct: AnyTensor, out: Spec, g: AnyTensor, x: AnyTensor) -> Cotangents:
    def to_x() -> AnyTensor:
        p = ops.sigmoid(x)
        slope = ops.multiply(ops.multiply(p, ops.subtract(1, p)),
                             ops.add(ops.multiply(x, ops.subtract(1, ops.multiply(p, 2))), 2))
        return chain(ops.multiply(ct, g), slope)
    return lambda: ops.silu_grad(ct, x), to_x


@primitive(infer=_FLOAT2, vjp=_silu_grad_vjp, saves=("g", "x"),
           body=lambda s, g, x: _times_slope(s, g, s.silu_slope(x)))
def silu_grad(g: AnyTensor, x: AnyTensor) -> AnyTensor:
    """Cotangent `g` times the slope of `silu` at `x`."""


# Hendrycks & Gimpel, "Gaussian Error Linear Units" (2016), with its approximation by tanh.
_CUBE = 0.044715
_ROOT_2_OVER_PI = math.sqrt(2 / math.pi)
_INV_ROOT_2PI = 1 / math.sqrt(2 * math.pi)


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.gelu_grad(ct, x), saves=("x",),
           body=lambda s, x: s.gelu(x))
def gelu(x: AnyTensor) -> AnyTensor:
    """`x` times the probability that a standard normal variable stays below it, of a float tensor."""


def _gelu_grad_vjp(ct: AnyTensor, out: Spec, g: AnyTensor, x: AnyTensor) -> Cotangents:
    def to_x() -> AnyTensor:
        square = ops.square(x)
        bell = ops.multiply(ops.exp(ops.multiply(square, -0.5)), _INV_ROOT_2PI)
        return chain(ops.multiply(ct, g), ops.multiply(bell, ops.subtract(2, square)))
    return lambda: ops.gelu_grad(ct, x), to_x


@primitive(infer=_FLOAT2, vjp=_gelu_grad_vjp, saves=("g", "x"),
           body=lambda s, g, x: _times_slope(s, g, s.gelu_slope(x)))
def gelu_grad(g: AnyTensor, x: AnyTensor) -> AnyTensor:
    """Cotangent `g` times the slope of `gelu` at `x`."""


def _gelu_tanh_of(s: ScalarBuilder, x: Scalar) -> Scalar:
    return s.tanh(s.mul(s.add(s.mul(s.mul(x, s.mul(x, x)), _CUBE), x), _ROOT_2_OVER_PI))


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.gelu_tanh_grad(ct, x), saves=("x",),
           body=lambda s, x: s.mul(s.mul(x, 0.5), s.add(_gelu_tanh_of(s, x), 1)))
def gelu_tanh(x: AnyTensor) -> AnyTensor:
    """`gelu` approximated by tanh: `x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3)))`, of a float tensor."""


def _gelu_tanh_grad_body(s: ScalarBuilder, g: Scalar, x: Scalar) -> Scalar:
    t = _gelu_tanh_of(s, x)
    inner = s.mul(s.add(s.mul(s.mul(x, x), 3 * _CUBE), 1), _ROOT_2_OVER_PI)
    slope = s.mul(s.mul(x, s.sub(1, s.mul(t, t))), inner)
    return _times_slope(s, g, s.mul(s.add(s.add(t, 1), slope), 0.5))


def _gelu_tanh_grad_vjp(ct: AnyTensor, out: Spec, g: AnyTensor, x: AnyTensor) -> Cotangents:
    def to_x() -> AnyTensor:
        square = ops.square(x)
        t = ops.tanh(ops.multiply(ops.add(ops.multiply(ops.multiply(square, x), _CUBE), x), _ROOT_2_OVER_PI))
        inner = ops.multiply(ops.add(ops.multiply(square, 3 * _CUBE), 1), _ROOT_2_OVER_PI)
        bend = ops.multiply(square, 3 * _CUBE * _ROOT_2_OVER_PI)  # x/2 times the derivative of inner
        tail = ops.multiply(x, ops.multiply(t, ops.square(inner)))
        slope = ops.multiply(ops.subtract(1, ops.square(t)), ops.subtract(ops.add(inner, bend), tail))
        return chain(ops.multiply(ct, g), slope)
    return lambda: ops.gelu_tanh_grad(ct, x), to_x


@primitive(infer=_FLOAT2, vjp=_gelu_tanh_grad_vjp, saves=("g", "x"), body=_gelu_tanh_grad_body)
def gelu_tanh_grad(g: AnyTensor, x: AnyTensor) -> AnyTensor:
    """Cotangent `g` times the slope of `gelu_tanh` at `x`."""
