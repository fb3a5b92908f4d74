"""Special functions, elementwise: Bessel functions, integrals without a closed form, incomplete gamma and beta.

Owns their declarations and gradients, which are TensorFlow's but where it is wrong at a single point; what they do to
one number is in `ir/math_bessel.py`, `ir/math_integrals.py` and `ir/math_incomplete.py`.
"""

from __future__ import annotations

import math

from .. import dtypes as dt
from .. import ops, rules
from ..grad import chain, unbroadcast
from ..op import primitive
from ..types import AnyTensor, Cotangents, Spec

__all__ = ["bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bessel_j0", "bessel_j1", "bessel_k0", "bessel_k0e",
           "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1", "betainc", "dawsn", "expint", "fresnel_cos",
           "fresnel_sin", "igamma", "igamma_grad_a", "igammac", "spence", "zeta"]

_FLOAT = rules.unary(dt.FLOATING)
_WIDE = rules.elementwise(frozenset({dt.float32, dt.float64}))


def _over(y: AnyTensor, x: AnyTensor) -> AnyTensor:
    """y / x for an odd function y with the slope 1/2 at 0, which is its value there."""
    at_zero = ops.equal(x, 0)
    return ops.where(at_zero, 0.5, ops.divide(y, ops.where(at_zero, 1.0, x)))


# -- Bessel functions ---------------------------------------------------------------------------------
def _i0e_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor) -> Cotangents:
    return chain(ct, ops.subtract(ops.bessel_i1e(x), ops.multiply(ops.sign(x), out)))


def _i1_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor) -> Cotangents:
    return chain(ct, ops.subtract(ops.bessel_i0(x), _over(out, x)))


def _i1e_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor) -> Cotangents:
    slope = ops.subtract(ops.bessel_i0e(x), _over(out, x))
    return chain(ct, ops.subtract(slope, ops.multiply(ops.sign(x), out)))


def _j1_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor) -> Cotangents:
    return chain(ct, ops.subtract(ops.bessel_j0(x), _over(out, x)))


def _k0e_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor) -> Cotangents:
    return chain(ct, ops.subtract(out, ops.bessel_k1e(x)))


def _k1_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor) -> Cotangents:
    return ops.negative(chain(ct, ops.add(ops.bessel_k0(x), ops.divide(out, x))))


def _k1e_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor) -> Cotangents:
    slope = ops.subtract(out, ops.divide(out, x))
    return chain(ct, ops.subtract(slope, ops.bessel_k0e(x)))


def _y1_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor) -> Cotangents:
    return chain(ct, ops.subtract(ops.bessel_y0(x), ops.divide(out, x)))


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: chain(ct, ops.bessel_i1(x)), saves=("x",),
           body=lambda s, x: s.bessel_i0(x))
def bessel_i0(x: AnyTensor) -> AnyTensor:
    """The modified Bessel function of the first kind, of order 0, of a float tensor."""


@primitive(infer=_FLOAT, vjp=_i0e_vjp, saves=("x", "out"), body=lambda s, x: s.bessel_i0e(x))
def bessel_i0e(x: AnyTensor) -> AnyTensor:
    """`exp(-abs(x)) bessel_i0(x)` of a float tensor."""


@primitive(infer=_FLOAT, vjp=_i1_vjp, saves=("x", "out"), body=lambda s, x: s.bessel_i1(x))
def bessel_i1(x: AnyTensor) -> AnyTensor:
    """The modified Bessel function of the first kind, of order 1, of a float tensor."""


@primitive(infer=_FLOAT, vjp=_i1e_vjp, saves=("x", "out"), body=lambda s, x: s.bessel_i1e(x))
def bessel_i1e(x: AnyTensor) -> AnyTensor:
    """`exp(-abs(x)) bessel_i1(x)` of a float tensor."""


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.negative(chain(ct, ops.bessel_k1(x))), saves=("x",),
           body=lambda s, x: s.bessel_k0(x))
def bessel_k0(x: AnyTensor) -> AnyTensor:
    """The modified Bessel function of the second kind, of order 0; infinite where `x` is not above 0."""


@primitive(infer=_FLOAT, vjp=_k0e_vjp, saves=("x", "out"), body=lambda s, x: s.bessel_k0e(x))
def bessel_k0e(x: AnyTensor) -> AnyTensor:
    """`exp(x) bessel_k0(x)` of a float tensor; infinite where `x` is not above 0."""


@primitive(infer=_FLOAT, vjp=_k1_vjp, saves=("x", "out"), body=lambda s, x: s.bessel_k1(x))
def bessel_k1(x: AnyTensor) -> AnyTensor:
    """The modified Bessel function of the second kind, of order 1; infinite where `x` is not above 0."""


@primitive(infer=_FLOAT, vjp=_k1e_vjp, saves=("x", "out"), body=lambda s, x: s.bessel_k1e(x))
def bessel_k1e(x: AnyTensor) -> AnyTensor:
    """`exp(x) bessel_k1(x)` of a float tensor; infinite where `x` is not above 0."""


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.negative(chain(ct, ops.bessel_j1(x))), saves=("x",),
           body=lambda s, x: s.bessel_j0(x))
def bessel_j0(x: AnyTensor) -> AnyTensor:
    """The Bessel function of the first kind, of order 0, of a float tensor."""


@primitive(infer=_FLOAT, vjp=_j1_vjp, saves=("x", "out"), body=lambda s, x: s.bessel_j1(x))
def bessel_j1(x: AnyTensor) -> AnyTensor:
    """The Bessel function of the first kind, of order 1, of a float tensor."""


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: ops.negative(chain(ct, ops.bessel_y1(x))), saves=("x",),
           body=lambda s, x: s.bessel_y0(x))
def bessel_y0(x: AnyTensor) -> AnyTensor:
    """The Bessel function of the second kind, of order 0, of a float tensor; -inf where `x` is not above 0."""


@primitive(infer=_FLOAT, vjp=_y1_vjp, saves=("x", "out"), body=lambda s, x: s.bessel_y1(x))
def bessel_y1(x: AnyTensor) -> AnyTensor:
    """The Bessel function of the second kind, of order 1, of a float tensor; -inf where `x` is not above 0."""


# -- integrals ----------------------------------------------------------------------------------------
def _dawsn_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor) -> Cotangents:
    return chain(ct, ops.subtract(1, ops.multiply(ops.multiply(x, 2), out)))


def _expint_vjp(ct: AnyTensor, out: Spec, x: AnyTensor) -> Cotangents:
    return chain(ct, ops.divide(ops.masked_exp(x), x))


def _fresnel_phase(x: AnyTensor) -> AnyTensor:
    return ops.multiply(ops.square(x), math.pi / 2)


def _spence_vjp(ct: AnyTensor, out: Spec, x: AnyTensor) -> Cotangents:
    at_one = ops.equal(x, 1)
    apart = ops.where(at_one, 0.0, x)
    return chain(ct, ops.where(at_one, -1.0, ops.divide(ops.log(apart), ops.subtract(1, apart))))


@primitive(infer=_FLOAT, vjp=_dawsn_vjp, saves=("x", "out"), body=lambda s, x: s.dawsn(x))
def dawsn(x: AnyTensor) -> AnyTensor:
    """Dawson's integral of a float tensor: `exp(-x**2)` times the integral of `exp(t**2)` from 0 to `x`."""


@primitive(infer=_FLOAT, vjp=_expint_vjp, saves=("x",), body=lambda s, x: s.expint(x))
def expint(x: AnyTensor) -> AnyTensor:
    """The exponential integral Ei of a float tensor; -inf at 0, NaN below it."""


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: chain(ct, ops.cos(_fresnel_phase(x))), saves=("x",),
           body=lambda s, x: s.fresnel_cos(x))
def fresnel_cos(x: AnyTensor) -> AnyTensor:
    """The integral of `cos(pi t**2 / 2)` from 0 to `x`, a float tensor."""


@primitive(infer=_FLOAT, vjp=lambda ct, out, x: chain(ct, ops.sin(_fresnel_phase(x))), saves=("x",),
           body=lambda s, x: s.fresnel_sin(x))
def fresnel_sin(x: AnyTensor) -> AnyTensor:
    """The integral of `sin(pi t**2 / 2)` from 0 to `x`, a float tensor."""


@primitive(infer=_FLOAT, vjp=_spence_vjp, saves=("x",), body=lambda s, x: s.spence(x))
def spence(x: AnyTensor) -> AnyTensor:
    """The integral of `log(t) / (1 - t)` from 1 to `x`, a float tensor; NaN below 0."""


# -- of several operands ------------------------------------------------------------------------------
def _gamma_slope(a: AnyTensor, x: AnyTensor) -> AnyTensor:
    """The derivative of `igamma` by x: x**(a-1) exp(-x) / gamma(a)."""
    return ops.masked_exp(ops.subtract(ops.subtract(ops.xlogy(ops.subtract(a, 1), x), x), ops.lgamma(a)))


def _igamma_vjp(ct: AnyTensor, out: Spec, a: AnyTensor, x: AnyTensor) -> Cotangents:
    return (lambda: unbroadcast(chain(ct, ops.igamma_grad_a(a, x)), a),
            lambda: unbroadcast(chain(ct, _gamma_slope(a, x)), x))


@primitive(infer=_WIDE, vjp=_igamma_vjp, saves=("a", "x"), body=lambda s, a, x: s.igamma(a, x))
def igamma(a: AnyTensor, x: AnyTensor) -> AnyTensor:
    """The lower incomplete gamma function over the gamma function, of float32 or float64 tensors.

    Args:
        a: the parameter, above 0; else NaN. x: the upper limit of the integral, from 0 on; else NaN.
    """


def _igammac_vjp(ct: AnyTensor, out: Spec, a: AnyTensor, x: AnyTensor) -> Cotangents:
    return (lambda: ops.negative(unbroadcast(chain(ct, ops.igamma_grad_a(a, x)), a)),
            lambda: ops.negative(unbroadcast(chain(ct, _gamma_slope(a, x)), x)))


@primitive(infer=_WIDE, vjp=_igammac_vjp, saves=("a", "x"), body=lambda s, a, x: s.igammac(a, x))
def igammac(a: AnyTensor, x: AnyTensor) -> AnyTensor:
    """The upper incomplete gamma function over the gamma function, of float32 or float64 tensors.

    Args:
        a: the parameter, above 0; else NaN. x: the lower limit of the integral, from 0 on; else NaN.
    """


@primitive(infer=_WIDE, vjp=None, body=lambda s, a, x: s.igamma_grad_a(a, x))
def igamma_grad_a(a: AnyTensor, x: AnyTensor) -> AnyTensor:
    """The derivative of `igamma` by `a`, of float32 or float64 tensors; not differentiable, as in TensorFlow."""


def _zeta_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, q: AnyTensor) -> Cotangents:
    def to_q() -> AnyTensor:
        return ops.negative(unbroadcast(chain(ct, ops.multiply(x, ops.zeta(ops.add(x, 1), q))), q))
    return None, to_q


@primitive(infer=_WIDE, vjp=_zeta_vjp, saves=("x", "q"), body=lambda s, x, q: s.zeta(x, q))
def zeta(x: AnyTensor, q: AnyTensor) -> AnyTensor:
    """Hurwitz' zeta function, the sum of `(q + k)**-x` over `k >= 0`, of float32 or float64 tensors.

    Args:
        x: above 1; at 1 infinite, NaN below it.
        q: where it is below 0, `x` must be whole. Gradient: by `q` alone.
    """


def _betainc_vjp(ct: AnyTensor, out: Spec, a: AnyTensor, b: AnyTensor, x: AnyTensor) -> Cotangents:
    def to_x() -> AnyTensor:
        powers = ops.add(ops.xlog1py(ops.subtract(b, 1), ops.negative(x)), ops.xlogy(ops.subtract(a, 1), x))
        beta = ops.subtract(ops.add(ops.lgamma(a), ops.lgamma(b)), ops.lgamma(ops.add(a, b)))
        return unbroadcast(chain(ct, ops.masked_exp(ops.subtract(powers, beta))), x)
    return None, None, to_x


@primitive(infer=_WIDE, vjp=_betainc_vjp, saves=("a", "b", "x"), body=lambda s, a, b, x: s.betainc(a, b, x))
def betainc(a: AnyTensor, b: AnyTensor, x: AnyTensor) -> AnyTensor:
    """The incomplete beta function over the beta function, of float32 or float64 tensors.

    Args:
        a, b: the parameters, above 0 and finite; else NaN.
        x: the upper limit of the integral, from 0 to 1; else NaN. Gradient: by `x` alone.
    """
