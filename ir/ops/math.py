"""Functions of one number, elementwise: rounding, exponentials, logarithms, trigonometry, erf and gamma.

Owns their declarations and gradients; what they do to one number is in `ir/scalar_math.py`. Powers and
roots are in `arithmetic.py`, activations of neural networks in `activations.py`.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import dtypes as dt
from .. import ops, rules
from ..dtypes import DType
from ..grad import chain, conj, unbroadcast, zeros_like
from ..op import primitive
from ..reference import evaluate
from ..scalar import Scalar, ScalarBuilder, ScalarFunction, build
from ..types import AnyTensor, Cotangents, Spec
from .arithmetic import masked_quotient

__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh", "digamma", "erf", "erfc",
           "erfinv", "exp", "expm1", "floor", "lgamma", "log", "log10", "log1p", "log2", "log_sigmoid", "masked_exp",
           "ndtri", "nextafter", "polygamma", "polygamma_of", "rint", "round_", "sigmoid", "sigmoid_grad", "sin",
           "sinh", "tan", "tanh", "tanh_grad", "xdivy", "xlog1py", "xlogy"]

_FLOAT = rules.unary(dt.FLOATING)
_INEXACT = rules.unary(dt.DIFFERENTIABLE)
_INEXACT2 = rules.elementwise(dt.DIFFERENTIABLE)


# -- rounding -----------------------------------------------------------------------------------------
@primitive(infer=_FLOAT, vjp=None, body=lambda s, x: s.floor(x))
def floor(x: AnyTensor) -> AnyTensor:
    """Largest whole number that is not above `x`, a float tensor."""


@primitive(infer=_FLOAT, vjp=None, body=lambda s, x: s.ceil(x))
def ceil(x: AnyTensor) -> AnyTensor:
    """Smallest whole number that is not below `x`, a float tensor."""


@primitive(infer=_FLOAT, vjp=None, body=lambda s, x: s.rint(x))
def rint(x: AnyTensor) -> AnyTensor:
    """Nearest whole number, halves to the even one, of a float tensor."""


@primitive(infer=rules.unary(dt.REAL), vjp=None, body=lambda s, x: s.round(x))
def round_(x: AnyTensor) -> AnyTensor:
    """Nearest whole number, halves to the even one; integers are themselves."""


def _nextafter_vjp(ct: AnyTensor, out: Spec, x: Spec, y: Spec) -> Cotangents:
    return lambda: unbroadcast(ct, x), lambda: zeros_like(y)


@primitive(infer=rules.elementwise(frozenset({dt.float32, dt.float64})), vjp=_nextafter_vjp, saves=(),
           body=lambda s, x, y: s.nextafter(x, y))
def nextafter(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """The float next to `x` towards `y`, of float32 or float64 tensors. Gradient: as of `x`."""


# -- exponentials and logarithms ----------------------------------------------------------------------
@primitive(infer=_INEXACT, vjp=lambda ct, out, x: ops.multiply(ct, conj(out)), saves=("out",),
           body=lambda s, x: s.exp(x))
def exp(x: AnyTensor) -> AnyTensor:
    """e to the power of `x`, a float or complex tensor.

    Its gradient is the plain product: where `exp(x)` overflowed and the cotangent is 0 it is NaN, which TensorFlow's
    guides show for `log(1 + exp(100.0))` and mend with a custom gradient.
    """


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: chain(ct, conj(out)), saves=("out",),
           body=lambda s, x: s.exp(x))
def masked_exp(x: AnyTensor) -> AnyTensor:
    """`exp(x)`, whose gradient is 0 where the cotangent is, though `exp(x)` overflowed. For gradient rules."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: chain(ct, conj(ops.masked_exp(x))), saves=("x",),
           body=lambda s, x: s.expm1(x))
def expm1(x: AnyTensor) -> AnyTensor:
    """`exp(x) - 1`, exact for small `x` too, of a float or complex tensor."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: ops.masked_divide(ct, conj(x)), saves=("x",),
           body=lambda s, x: s.log(x))
def log(x: AnyTensor) -> AnyTensor:
    """Natural logarithm of a float or complex tensor; -inf at 0, NaN below it."""


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.masked_divide(ops.multiply(ct, 1 / math.log(2)), x), saves=("x",),
           body=lambda s, x: s.log2(x))
def log2(x: AnyTensor) -> AnyTensor:
    """Logarithm to base 2 of a float tensor; exact for powers of two, -inf at 0, NaN below it."""


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.masked_divide(ops.multiply(ct, 1 / math.log(10)), x), saves=("x",),
           body=lambda s, x: s.log10(x))
def log10(x: AnyTensor) -> AnyTensor:
    """Logarithm to base 10 of a float tensor; -inf at 0, NaN below it."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: ops.masked_divide(ct, conj(ops.add(x, 1))), saves=("x",),
           body=lambda s, x: s.log1p(x))
def log1p(x: AnyTensor) -> AnyTensor:
    """`log(1 + x)`, exact for small `x` too, of a float or complex tensor."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: ops.sigmoid_grad(ct, out), saves=("out",),
           body=lambda s, x: s.sigmoid(x))
def sigmoid(x: AnyTensor) -> AnyTensor:
    """`1 / (1 + exp(-x))` of a float or complex tensor."""


def _sigmoid_grad_vjp(ct: AnyTensor, out: Spec, g: AnyTensor, y: AnyTensor) -> Cotangents:
    def to_y() -> AnyTensor:
        slope = ops.subtract(1, ops.multiply(conj(y), 2))
        return ops.multiply(ops.multiply(conj(ct), g), slope)  # it depends on the conjugate of y
    return lambda: ops.sigmoid_grad(ct, conj(y)), to_y


def _sigmoid_grad_body(s: ScalarBuilder, g: Scalar, y: Scalar) -> Scalar:
    if y.dtype.is_complex:
        y = s.complex(s.real(y), -s.imag(y))
    return s.mul(s.mul(g, y), s.sub(1, y))


@primitive(infer=_INEXACT2, vjp=_sigmoid_grad_vjp, saves=("g", "y"), body=_sigmoid_grad_body)
def sigmoid_grad(g: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Cotangent `g` times the conjugate of `y * (1 - y)`: the gradient of `sigmoid` from its result `y`."""


def _log_sigmoid_vjp(ct: AnyTensor, out: Spec, x: AnyTensor) -> Cotangents:
    return ops.multiply(ct, ops.sigmoid(ops.negative(x)))


@primitive(infer=_FLOAT, vjp=_log_sigmoid_vjp, saves=("x",), body=lambda s, x: s.log_sigmoid(x))
def log_sigmoid(x: AnyTensor) -> AnyTensor:
    """`log(sigmoid(x))` without overflow, of a float tensor."""


def _not_zero(x: AnyTensor) -> AnyTensor:
    return ops.cast(ops.not_equal(x, 0), dtype=x.dtype)


def _times_or_zero(s: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    return s.select(s.eq(x, 0), s.const(0, x.dtype), s.mul(x, y))


def _xlogy_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, y: AnyTensor) -> Cotangents:
    return (lambda: unbroadcast(chain(ct, conj(ops.xlogy(_not_zero(x), y))), x),
            lambda: unbroadcast(chain(ct, conj(ops.xdivy(x, y))), y))


@primitive(infer=_INEXACT2, vjp=_xlogy_vjp, saves=("x", "y"), body=lambda s, x, y: _times_or_zero(s, x, s.log(y)))
def xlogy(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x * log(y)`, and 0 where `x` is 0, of float or complex tensors."""


def _xlog1py_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, y: AnyTensor) -> Cotangents:
    return (lambda: unbroadcast(chain(ct, conj(ops.xlog1py(_not_zero(x), y))), x),
            lambda: unbroadcast(chain(ct, conj(ops.xdivy(x, ops.add(y, 1)))), y))


@primitive(infer=_INEXACT2, vjp=_xlog1py_vjp, saves=("x", "y"),
           body=lambda s, x, y: _times_or_zero(s, x, s.log1p(y)))
def xlog1py(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x * log1p(y)`, and 0 where `x` is 0, of float or complex tensors."""


def _xdivy_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, y: AnyTensor) -> Cotangents:
    def to_y() -> AnyTensor:
        slope = ops.negative(ops.xdivy(ops.xdivy(x, y), y))
        return unbroadcast(chain(ct, conj(slope)), y)
    return lambda: unbroadcast(chain(ct, conj(ops.xdivy(_not_zero(x), y))), x), to_y


@primitive(infer=_INEXACT2, vjp=_xdivy_vjp, saves=("x", "y"),
           body=masked_quotient)
def xdivy(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x / y`, and 0 where `x` is 0, of float or complex tensors."""


# -- trigonometry -------------------------------------------------------------------------------------
def _one_less_square(x: AnyTensor) -> AnyTensor:
    """1 - x**2 without cancellation near 1."""
    return ops.multiply(ops.subtract(1, x), ops.add(x, 1))


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: chain(ct, conj(ops.cos(x))), saves=("x",),
           body=lambda s, x: s.sin(x))
def sin(x: AnyTensor) -> AnyTensor:
    """Sine of a float or complex tensor, in radians."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: ops.negative(chain(ct, conj(ops.sin(x)))), saves=("x",),
           body=lambda s, x: s.cos(x))
def cos(x: AnyTensor) -> AnyTensor:
    """Cosine of a float or complex tensor, in radians."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: chain(ct, conj(ops.add(chain(out, out), 1))),
           saves=("out",), body=lambda s, x: s.tan(x))
def tan(x: AnyTensor) -> AnyTensor:
    """Tangent of a float or complex tensor, in radians."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: chain(ct, conj(ops.rsqrt(_one_less_square(x)))),
           saves=("x",), body=lambda s, x: s.asin(x))
def asin(x: AnyTensor) -> AnyTensor:
    """Inverse sine of a float or complex tensor; NaN for a float beyond -1 and 1."""


@primitive(infer=_INEXACT, saves=("x",), body=lambda s, x: s.acos(x),
           vjp=lambda ct, out, x: ops.negative(chain(ct, conj(ops.rsqrt(_one_less_square(x))))))
def acos(x: AnyTensor) -> AnyTensor:
    """Inverse cosine of a float or complex tensor; NaN for a float beyond -1 and 1."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: ops.masked_divide(ct, conj(ops.add(ops.square(x), 1))), saves=("x",),
           body=lambda s, x: s.atan(x))
def atan(x: AnyTensor) -> AnyTensor:
    """Inverse tangent of a float or complex tensor."""


def _atan2_vjp(ct: AnyTensor, out: Spec, y: AnyTensor, x: AnyTensor) -> Cotangents:
    share = ops.divide_no_nan(ct, ops.add(ops.square(x), ops.square(y)))
    return (lambda: unbroadcast(chain(share, x), y),
            lambda: ops.negative(unbroadcast(chain(share, y), x)))


@primitive(infer=rules.elementwise(dt.FLOATING), vjp=_atan2_vjp, saves=("y", "x"), body=lambda s, y, x: s.atan2(y, x))
def atan2(y: AnyTensor, x: AnyTensor) -> AnyTensor:
    """Angle of the point (x, y), between -pi and pi, of float tensors. Gradient: 0 at the origin."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: chain(ct, conj(ops.cosh(x))), saves=("x",),
           body=lambda s, x: s.sinh(x))
def sinh(x: AnyTensor) -> AnyTensor:
    """Hyperbolic sine of a float or complex tensor."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: chain(ct, conj(ops.sinh(x))), saves=("x",),
           body=lambda s, x: s.cosh(x))
def cosh(x: AnyTensor) -> AnyTensor:
    """Hyperbolic cosine of a float or complex tensor."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: ops.tanh_grad(ct, out), saves=("out",),
           body=lambda s, x: s.tanh(x))
def tanh(x: AnyTensor) -> AnyTensor:
    """Hyperbolic tangent of a float or complex tensor."""


def _tanh_grad_vjp(ct: AnyTensor, out: Spec, g: AnyTensor, y: AnyTensor) -> Cotangents:
    return (lambda: ops.tanh_grad(ct, conj(y)),
            lambda: ops.multiply(ops.multiply(conj(ct), g), ops.multiply(conj(y), -2)))


def _tanh_grad_body(s: ScalarBuilder, g: Scalar, y: Scalar) -> Scalar:
    if y.dtype.is_complex:
        y = s.complex(s.real(y), -s.imag(y))
    return s.mul(g, s.sub(1, s.mul(y, y)))


@primitive(infer=_INEXACT2, vjp=_tanh_grad_vjp, saves=("g", "y"), body=_tanh_grad_body)
def tanh_grad(g: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Cotangent `g` times the conjugate of `1 - y**2`: the gradient of `tanh` from its result `y`."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: ops.masked_divide(ct, conj(ops.cosh(out))), saves=("out",),
           body=lambda s, x: s.asinh(x))
def asinh(x: AnyTensor) -> AnyTensor:
    """Inverse hyperbolic sine of a float or complex tensor."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: ops.masked_divide(ct, conj(ops.sinh(out))), saves=("out",),
           body=lambda s, x: s.acosh(x))
def acosh(x: AnyTensor) -> AnyTensor:
    """Inverse hyperbolic cosine of a float or complex tensor; NaN for a float below 1."""


@primitive(infer=_INEXACT, vjp=lambda ct, out, x: ops.masked_divide(ct, conj(_one_less_square(x))), saves=("x",),
           body=lambda s, x: s.atanh(x))
def atanh(x: AnyTensor) -> AnyTensor:
    """Inverse hyperbolic tangent of a float or complex tensor; infinite at -1 and 1, NaN for a float beyond."""


# -- error function -----------------------------------------------------------------------------------
def _bell(x: AnyTensor, factor: float, sign: float) -> AnyTensor:
    """factor * exp(sign * x**2)."""
    square = chain(x, x)
    return ops.multiply(ops.masked_exp(ops.negative(square) if sign < 0 else square), factor)


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.multiply(ct, _bell(x, 2 / math.sqrt(math.pi), -1)), saves=("x",),
           body=lambda s, x: s.erf(x))
def erf(x: AnyTensor) -> AnyTensor:
    """Error function of a float tensor: the integral of `2 / sqrt(pi) * exp(-t**2)` from 0 to `x`."""


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.multiply(ct, _bell(x, -2 / math.sqrt(math.pi), -1)), saves=("x",),
           body=lambda s, x: s.erfc(x))
def erfc(x: AnyTensor) -> AnyTensor:
    """`1 - erf(x)`, exact where that is small, of a float tensor."""


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: chain(ct, _bell(out, math.sqrt(math.pi) / 2, 1)),
           saves=("out",), body=lambda s, x: s.erfinv(x))
def erfinv(x: AnyTensor) -> AnyTensor:
    """The number whose `erf` is `x`, of a float tensor; infinite at -1 and 1, NaN beyond."""


def _ndtri_vjp(ct: AnyTensor, out: AnyTensor, x: Spec) -> Cotangents:
    return chain(ct, ops.multiply(ops.masked_exp(ops.multiply(chain(out, out), 0.5)), math.sqrt(2 * math.pi)))


@primitive(infer=_FLOAT, vjp=_ndtri_vjp, saves=("out",), body=lambda s, x: s.ndtri(x))
def ndtri(x: AnyTensor) -> AnyTensor:
    """The number that a standard normal variable stays below with probability `x`, of a float tensor."""


# -- gamma --------------------------------------------------------------------------------------------
@primitive(infer=_FLOAT, vjp=lambda ct, out, x: chain(ct, ops.digamma(x)), saves=("x",),
           body=lambda s, x: s.lgamma(x))
def lgamma(x: AnyTensor) -> AnyTensor:
    """Logarithm of the magnitude of the gamma function of a float tensor; infinite at 0, -1, -2, ..."""


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: chain(ct, ops.polygamma(x, order=1)), saves=("x",),
           body=lambda s, x: s.digamma(x))
def digamma(x: AnyTensor) -> AnyTensor:
    """Derivative of `lgamma`, of a float tensor; NaN at -1, -2, ..."""


def _polygamma_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, *, order: int) -> Cotangents:
    return chain(ct, ops.polygamma(x, order=order + 1))


@primitive(infer=_FLOAT, vjp=_polygamma_vjp, saves=("x",), body=lambda s, x, order: s.polygamma(x, order=order))
def polygamma(x: AnyTensor, *, order: int) -> AnyTensor:
    """Derivative number `order` (1 or more) of `digamma`, of a float tensor; infinite or NaN at 0, -1, -2, ..."""


MOST_ORDERS = 170  # of which the factorial is still a float64


@functools.cache
def _of_order(order: int, dtype: DType) -> ScalarFunction:
    def body(s: ScalarBuilder, x: Scalar) -> Scalar:
        return s.polygamma(x, order=order) if order else s.digamma(x)
    return build(body, (dtype,), name="polygamma")


def _orders_host(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    a, x = np.broadcast_arrays(a, x)
    out = np.full(x.shape, math.nan, x.dtype)
    dtype = dt.from_numpy(x.dtype)
    with np.errstate(over="ignore"):
        for order in range(MOST_ORDERS + 1):
            at = a == order
            if at.any():
                out[at] = evaluate(_of_order(order, dtype), x[at].astype(dtype.compute.np))[0].astype(x.dtype)
    return out


def _orders_vjp(ct: AnyTensor, out: Spec, a: AnyTensor, x: AnyTensor) -> Cotangents:
    return None, lambda: unbroadcast(chain(ct, ops.polygamma_of(ops.add(a, 1), x)), x)


@primitive(infer=rules.elementwise(dt.FLOATING), vjp=_orders_vjp, saves=("a", "x"), host=_orders_host, match=(0, 1),
           traits=("total",))
def polygamma_of(a: AnyTensor, x: AnyTensor) -> AnyTensor:
    """Derivative number `a` of `digamma` at `x`, elementwise, of float tensors; no gradient by `a`.

    Args:
        a: whole numbers from 0 to 170; others give NaN.
        x: of the same dtype; its shape broadcasts with that of `a`.
    """
