"""The mathematical functions of complex values.

Branch cuts and the signs of zeros on them are C's (Annex G) and NumPy's. Where parts cancel or squares
could overflow, complex64 is computed in complex128 and rounded once. Formulas of the inverse functions:
W. Kahan, "Branch Cuts for Complex Elementary Functions", in The State of the Art in Numerical
Analysis (1987). Errors are small beside the modulus of the result; a single part may be less accurate
where it is much smaller than the other.
"""

from __future__ import annotations

import math

from .instructions import InstructionBuilder, Scalar
from .math_core import format_of, scale, through_double, two_product, two_sum
from .math_exp import clamp, exp_parts
from .math_exp import cosh as real_cosh
from .math_exp import exp as real_exp
from .math_exp import expm1 as real_expm1
from .math_exp import sinh as real_sinh
from .math_log import asinh as real_asinh
from .math_log import log as real_log
from .math_log import log1p as real_log1p
from .math_pow import hypot
from .math_trig import atan2
from .math_trig import cos as real_cos
from .math_trig import sin as real_sin
from .math_trig import tan as real_tan

__all__ = ["acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "complex_abs", "complex_sqrt", "cos", "cosh",
           "exp", "expm1", "log", "log1p", "pow", "reciprocal", "rsqrt", "sigmoid", "sign", "sin", "sinh", "tan",
           "tanh"]

# Beyond this 1 is nothing beside z, and z*z still does not overflow in float64.
_HUGE = 2.0**500


def _parts(s: InstructionBuilder, z: Scalar) -> tuple[Scalar, Scalar]:
    return s.real(z), s.imag(z)


def _times_i(s: InstructionBuilder, z: Scalar) -> Scalar:
    x, y = _parts(s, z)
    return s.complex(-y, x)


def _over_i(s: InstructionBuilder, z: Scalar) -> Scalar:
    x, y = _parts(s, z)
    return s.complex(y, -x)


def _damped(s: InstructionBuilder, small: Scalar, large: Scalar) -> Scalar:
    """small * large, where 0 times infinity is 0."""
    one = s.const(1.0, small.dtype)
    return s.select(s.eq(small, 0.0), small * s.copysign(one, large), small * large)


def complex_abs(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Modulus, without undue overflow."""
    return hypot(s, *_parts(s, z)) if z.dtype.is_complex else s.abs(z)


def angle(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Argument in [-pi, pi]; of a real number 0 or pi, and NaN of NaN."""
    if z.dtype.is_complex:
        return atan2(s, s.imag(z), s.real(z))
    turned = s.select(s.lt(z, 0.0), s.const(math.pi, z.dtype), 0.0)
    return s.select(s.isnan(z), z, turned)


def sign(s: InstructionBuilder, z: Scalar) -> Scalar:
    """z / |z|, and 0 of 0."""
    x, y = _parts(s, z)
    r = complex_abs(s, z)
    zero = s.eq(r, 0.0)
    return s.complex(s.select(zero, 0.0, x / r), s.select(zero, 0.0, y / r))


def reciprocal(s: InstructionBuilder, z: Scalar) -> Scalar:
    """1 / z."""
    return s.div(s.const(1.0, z.dtype), z)


def exp(s: InstructionBuilder, z: Scalar) -> Scalar:
    """e**z; a part is finite where the modulus alone would overflow."""
    x, y = _parts(s, z)
    limit = 1.35 * format_of(x).bias
    (h, _), k = exp_parts(s, clamp(s, x, -limit, limit))
    sine, cosine = real_sin(s, y), real_cos(s, y)
    vanishes = s.eq(x, -math.inf)
    sine = s.select(vanishes, s.copysign(s.const(0.0, y.dtype), sine), sine)
    cosine = s.select(vanishes, s.copysign(s.const(0.0, y.dtype), cosine), cosine)
    return s.complex(scale(s, h * cosine, k), scale(s, h * sine, k))


@through_double
def expm1(s: InstructionBuilder, z: Scalar) -> Scalar:
    """e**z - 1 without cancellation near 0."""
    x, y = _parts(s, z)
    half = real_sin(s, y * 0.5)
    near = s.fma(real_expm1(s, x), real_cos(s, y), half * half * -2.0)
    e = exp(s, z)
    return s.complex(s.select(s.lt(s.abs(x), 1.0), near, s.real(e) - 1.0), s.imag(e))


def _log_modulus(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    """log(hypot(x, y)) in float64, accurate where the modulus is near 1."""
    a, b = s.maximum(s.abs(x), s.abs(y)), s.minimum(s.abs(x), s.abs(y))
    p, p_low = two_product(s, a, a)
    q, q_low = two_product(s, b, b)
    t, t_low = two_sum(s, p - 1.0, q)  # p is in [1/2, 2] where this is used, so p - 1 is exact
    t = t + (t_low + (p_low + q_low))
    near = s.and_(s.gt(p, 0.5), s.lt(p + q, 2.0))
    ratio = s.select(s.or_(s.eq(b, 0.0), s.isinf(a)), 0.0, b / a)
    rest = real_log1p(s, s.select(near, t, ratio * ratio)) * 0.5
    value = s.select(near, rest, real_log(s, a) + rest)
    return s.select(s.or_(s.isinf(x), s.isinf(y)), math.inf, value)


@through_double
def log(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Principal logarithm, imaginary part in [-pi, pi]."""
    x, y = _parts(s, z)
    return s.complex(_log_modulus(s, x, y), atan2(s, y, x))


@through_double
def log1p(s: InstructionBuilder, z: Scalar) -> Scalar:
    """log(1 + z) without cancellation near 0."""
    x, y = _parts(s, z)
    near = s.and_(s.lt(s.abs(x), 0.5), s.lt(s.abs(y), 0.5))
    a = x + 1.0
    # |1 + z|**2 - 1 = x*(2 + x) + y**2
    p, p_low = two_product(s, x, x + 2.0)
    q, q_low = two_product(s, y, y)
    t, t_low = two_sum(s, p, q)
    small = real_log1p(s, t + (t_low + (p_low + q_low))) * 0.5
    return s.complex(s.select(near, small, _log_modulus(s, a, y)), atan2(s, y, a))


@through_double
def _sqrt(s: InstructionBuilder, z: Scalar) -> Scalar:
    x, y = _parts(s, z)
    size = s.maximum(s.abs(x), s.abs(y))
    large, small = s.gt(size, 2.0**1000), s.lt(size, 2.0**-900)
    factor = s.select(large, 2.0**-100, s.select(small, s.const(2.0**200, x.dtype), 1.0))
    back = s.select(large, 2.0**50, s.select(small, s.const(2.0**-100, x.dtype), 1.0))
    a, b = x * factor, y * factor
    # the larger part first, then the other from 2 * re * im = b
    root = s.sqrt((hypot(s, a, b) + s.abs(a)) * 0.5)
    other = s.select(s.eq(root, 0.0), 0.0, s.abs(b) / (root + root))
    right = s.ge(a, 0.0)
    re, im = s.select(right, root, other) * back, s.select(right, other, root) * back
    tall = s.isinf(y)
    re = s.select(tall, math.inf, s.select(s.eq(x, -math.inf), s.select(s.isnan(y), y, 0.0), re))
    im = s.select(s.eq(x, math.inf), s.select(s.isnan(y), y, 0.0), im)
    im = s.select(s.or_(tall, s.eq(x, -math.inf)), math.inf, im)
    return s.complex(re, s.copysign(im, y))


def complex_sqrt(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Principal square root, with a real part that is not negative."""
    return _sqrt(s, z) if z.dtype.is_complex else s.sqrt(z)


@through_double
def rsqrt(s: InstructionBuilder, z: Scalar) -> Scalar:
    """1 / sqrt(z)."""
    return reciprocal(s, _sqrt(s, z))


def sinh(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Hyperbolic sine."""
    x, y = _parts(s, z)
    return s.complex(_damped(s, real_cos(s, y), real_sinh(s, x)), _damped(s, real_sin(s, y), real_cosh(s, x)))


def cosh(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Hyperbolic cosine."""
    x, y = _parts(s, z)
    return s.complex(_damped(s, real_cos(s, y), real_cosh(s, x)), _damped(s, real_sin(s, y), real_sinh(s, x)))


def sin(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Sine: sinh(iz) / i."""
    return _over_i(s, sinh(s, _times_i(s, z)))


def cos(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Cosine: cosh(iz)."""
    return cosh(s, _times_i(s, z))


@through_double
def tanh(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Hyperbolic tangent, from tan(y) and sinh(x); beyond 20 its limit and the first term of the imaginary part."""
    x, y = _parts(s, z)
    t, sh = real_tan(s, y), real_sinh(s, clamp(s, x, -20.0, 20.0))
    beta = s.fma(t, t, 1.0)
    den = s.fma(beta * sh, sh, 1.0)
    re, im = beta * s.sqrt(s.fma(sh, sh, 1.0)) * sh / den, t / den
    far = s.gt(s.abs(x), 20.0)
    far_im = real_sin(s, y) * real_cos(s, y) * real_exp(s, s.abs(x) * -2.0) * 4.0
    far_im = s.select(s.isinf(x), s.copysign(s.const(0.0, x.dtype), y), far_im)
    return s.complex(s.select(far, s.copysign(s.const(1.0, x.dtype), x), re), s.select(far, far_im, im))


def tan(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Tangent: tanh(iz) / i."""
    return _over_i(s, tanh(s, _times_i(s, z)))


@through_double
def sigmoid(s: InstructionBuilder, z: Scalar) -> Scalar:
    """1 / (1 + e**-z), from the exponential that does not overflow."""
    positive = s.ge(s.real(z), 0.0)
    e = exp(s, s.select(positive, -z, z))
    num = s.select(positive, s.const(1.0, z.dtype), e)
    return s.div(num, s.add(e, 1.0))


@through_double
def pow(s: InstructionBuilder, z: Scalar, w: Scalar) -> Scalar:
    """z**w = exp(w * log(z)); 1 for w = 0, and 0 to a power with positive real part is 0."""
    value = exp(s, s.mul(w, log(s, z)))
    x, y = _parts(s, z)
    zero = s.and_(s.and_(s.eq(x, 0.0), s.eq(y, 0.0)), s.gt(s.real(w), 0.0))
    value = s.select(zero, s.const(0.0, z.dtype), value)
    return s.select(s.eq(w, 0.0), s.const(1.0, z.dtype), value)


# -- inverse functions --------------------------------------------------------------------------------
def _conj_times(s: InstructionBuilder, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """(real, imaginary) of conj(a) * b."""
    ar, ai = _parts(s, a)
    br, bi = _parts(s, b)
    return s.fma(ar, br, ai * bi), s.fma(ar, bi, -(ai * br))


def _shifted_roots(s: InstructionBuilder, z: Scalar) -> tuple[Scalar, Scalar]:
    """sqrt(1 - z) and sqrt(1 + z), with the sign of a zero imaginary part kept."""
    x, y = _parts(s, z)
    return _sqrt(s, s.complex(1.0 - x, -y)), _sqrt(s, s.complex(x + 1.0, y))


def _is_huge(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    return s.gt(s.maximum(s.abs(x), s.abs(y)), _HUGE)


@through_double
def asin(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Inverse sine, cut along the real axis beyond -1 and 1."""
    x, y = _parts(s, z)
    minus, plus = _shifted_roots(s, z)
    huge = _is_huge(s, x, y)
    re = atan2(s, x, s.real(s.mul(minus, plus)))
    _, im = _conj_times(s, minus, plus)
    far = _log_modulus(s, x, y) + math.log(2.0)
    re = s.select(huge, atan2(s, x, s.abs(y)), re)
    return s.complex(re, s.select(huge, s.copysign(far, y), real_asinh(s, im)))


@through_double
def acos(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Inverse cosine, cut along the real axis beyond -1 and 1."""
    x, y = _parts(s, z)
    minus, plus = _shifted_roots(s, z)
    huge = _is_huge(s, x, y)
    re = atan2(s, s.real(minus), s.real(plus)) * 2.0
    _, im = _conj_times(s, plus, minus)
    far = _log_modulus(s, x, y) + math.log(2.0)
    re = s.select(huge, atan2(s, s.abs(y), x), re)
    return s.complex(re, s.select(huge, s.copysign(far, -y), real_asinh(s, im)))


@through_double
def acosh(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Inverse hyperbolic cosine, cut along the real axis below 1."""
    x, y = _parts(s, z)
    below, above = _sqrt(s, s.complex(x - 1.0, y)), _sqrt(s, s.complex(x + 1.0, y))
    huge = _is_huge(s, x, y)
    re, _ = _conj_times(s, below, above)
    far = _log_modulus(s, x, y) + math.log(2.0)
    im = atan2(s, s.imag(below), s.real(above)) * 2.0
    return s.complex(s.select(huge, far, real_asinh(s, re)), s.select(huge, atan2(s, y, x), im))


def asinh(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Inverse hyperbolic sine: asin(iz) / i."""
    return _over_i(s, asin(s, _times_i(s, z)))


@through_double
def atanh(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Inverse hyperbolic tangent, cut along the real axis beyond -1 and 1."""
    x, y = _parts(s, z)
    size = s.abs(x)
    a, b = 1.0 - size, s.abs(y)
    # log1p(4|x| / ((1-|x|)**2 + y**2)) / 4, the quotient in steps that neither overflow nor underflow
    m = hypot(s, a, b)
    re = real_log1p(s, size * 4.0 / m / m) * 0.25
    re = s.select(s.isinf(m), 0.0, re)
    huge = _is_huge(s, x, y)
    im = atan2(s, b + b, s.fma(a, size + 1.0, -(b * b))) * 0.5
    im = s.select(huge, math.pi / 2, im)
    return s.complex(s.copysign(re, x), s.copysign(im, y))


def atan(s: InstructionBuilder, z: Scalar) -> Scalar:
    """Inverse tangent: atanh(iz) / i."""
    return _over_i(s, atanh(s, _times_i(s, z)))
