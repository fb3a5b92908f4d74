"""The error function, its complement and its inverse, and the quantiles of the normal distribution.

erf is native in the type of its argument. The others, which are rarely hot, compute float32 in float64
with shorter polynomials and round once. Bodies take real values. Sources: the definitions,
DLMF chapter 7 (https://dlmf.nist.gov/7).
"""

from __future__ import annotations

import math

from . import dtypes as dt
from .instructions import InstructionBuilder, Scalar
from .math_core import Double, divide_double, fast_two_sum, poly, pow2, scale, two_product, two_sum
from .math_exp import clamp, exp_double, exp_parts, exp_short
from .math_log import log_double, log_short

__all__ = ["erf", "erfc", "erfinv", "ndtri"]

# erf(x)/x - 1 in x**2: 2**-30 on [0, 0.98**2] and 2**-56.3 on [0, 1.25**2]
_ERF = {
    dt.float32: (0.12837917, -0.3761263, 0.11283625, -0.02685568, 0.005192288, -0.00080488075, 7.994571e-05),
    dt.float64: (0.1283791670955126, -0.37612638903184004, 0.11283791670963583, -0.026866170646252567,
                 0.0052239776331591496, -0.0008548327338141184, 0.00012055341144409733, -1.4925789878574162e-05,
                 1.6463696534560368e-06, -1.6377398454149441e-07, 1.485549960524705e-08, -1.2346021049541078e-09,
                 8.94212125497882e-11, -4.239126614431418e-12),
}
# Where the odd polynomial ends, and where erf rounds to 1.
_ERF_RANGE = {dt.float32: (0.98, 4.0), dt.float64: (1.25, 6.0)}
# log(erfc(c + u)) between those, error times erfc: 2**-29.6 with c the number below, where log(erfc(c))
# is almost a float32 (so that its rounding costs nothing), and 2**-55.8 with c = 0.
_LOG_ERFC_AT = {dt.float32: 0.9756237268447876, dt.float64: 0.0}
_LOG_ERFC = {
    dt.float32: (-1.7857777, -2.597938, -0.8400414, -0.042496085, 0.010143501, -0.00187152, 0.00018984207),
    dt.float64: (-3.2759826120142493e-06, -1.1283499687680647, -0.6367410752670485, -0.10246060029058657,
                 0.01857213690469753, 0.0009381447499395529, -0.002421153132570694, 0.0011456880383602678,
                 -0.00035350858977678106, 8.013665812500722e-05, -1.3583079277957514e-05, 1.686629399027404e-06,
                 -1.4539175228886927e-07, 7.783968516123363e-09, -1.9495008941707183e-10),
}
# exp(x**2) * erfc(x) * (1 + 2x) in t = (x - a)/(x + a): for x in [1/2, 28], 2**-55.2, with a where the
# constant term is almost a float64; and for float32 for x in [1/2, 11], 2**-32.3
_ERFCX_AT = 4.134765625
_ERFCX = (1.2306865908298008, -0.1390191086745805, 0.020894740821006903, 0.06094796105641444, -0.09648514886732008,
          0.09352295017208463, -0.06952525801839649, 0.04153724383339396, -0.019853911044390576, 0.0072207894097289635,
          -0.0016848926231671584, 3.080423059713634e-05, 0.0001594950421057605, -5.756675694734338e-05,
          -7.385201150299212e-07, 7.070005017724823e-06, -1.5597716752772946e-06, -5.921474730072097e-07,
          2.9862103681509563e-07, 3.2394204981442303e-08, -3.302033914970155e-08)
_ERFCX_SHORT_AT = 4.0
_ERFCX_SHORT = (1.2329951188501278, -0.13962111590008694, 0.0153796071967823, 0.06809697544739228, -0.10103764696444197,
                0.09373512638220353, -0.06634582913320329, 0.03713923712509072, -0.016133384992805477,
                0.005182011333953346, -0.0008132913423935114, -0.0004857140885792692)
# erfinv(y)/y in y**2 on [0, 0.5625**2], less 0.886226925452758: 2**-59.32; and for float32: 2**-31.07
_ERFINV_INNER, _ERFINV_ONE = 0.5625, 0.886226925452758
_ERFINV = (-3.95613276612339e-17, 0.23201366653465644, 0.12755617530508326, 0.08655212929533565, 0.06495961479952533,
           0.0517313793070621, 0.042834616550650025, 0.03649723883194351, 0.03135814490906447, 0.030507923513317676,
           0.010979858401267743, 0.07906854500730223, -0.1404507376268582, 0.3313937090839095, -0.36005861058859207,
           0.24354828495644118)
_ERFINV_SHORT = (0.8862269250593688, 0.23201382114975877, 0.12754624104876347, 0.08679362120132457, 0.06211057993109048,
                 0.06960246299309782, -0.016669537887659923, 0.12878991258786981)
# x/w in t = (w - a)/(w + a), where erfc(x) = exp(-w**2): for w in [0.83, 6.1], 2**-55.2, and [6.1, 27.5],
# 2**-54; and for float32 in [0.83, 10.3], 2**-29.3
_TAIL_NEAR_AT, _TAIL_FAR_AT, _TAIL_SPLIT, _TAIL_SHORT_AT = 2.25, 12.95, 6.1, 2.92
_TAIL_NEAR = (0.8580170499169126, 0.3818320480274467, -0.4080030871370051, 0.24423258621878152, -0.06293581947101547,
              -0.07330809919165157, 0.12861580039707238, -0.11159639979126433, 0.05007633058228608,
              0.018107246043601935, -0.06348976348447659, 0.07143320172845377, -0.046196504095239066,
              0.0044878931828789, 0.03264307331064973, -0.04937350273394903, 0.04049839673285684, -0.01605405628816607,
              -0.008368513762249412, 0.0339594457729386, -0.054422294435968833, 0.02307740033375481,
              0.03837998792343065, -0.03192271614062762, -0.003955426533386251)
_TAIL_FAR = (0.9906328779788749, 0.03156701041599214, -0.05139627190666878, 0.0635207708517207, -0.07188952508374873,
             0.0772662304224331, -0.08042744125934016, 0.08170969001890409, -0.08146389930112392, 0.07990172924187823,
             -0.07724406121016372, 0.0736674668287965, -0.0693747132792393, 0.06428271037351099, -0.05828631223935795,
             0.053761527547573504, -0.05121666570175591, 0.03695727240557923, -0.018631876124628615,
             0.04107134131068408, -0.05098156104631148)
_TAIL_SHORT = (0.9011595667741724, 0.2829286713519137, -0.34651176926634475, 0.2788573826817785, -0.17150961553762722,
               0.05789117073260707, 0.03269208842101379, -0.08658837444523387, 0.09710219666972303,
               -0.08389873581897472, 0.07079627822173445, -0.011423017054970262, -0.08972728041175693,
               0.07780778212045528)
# sqrt(2) as a double word
_SQRT_TWO = (1.4142135623730951, -9.667293313452913e-17)


def erf(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Error function: an odd polynomial, further out 1 - exp(polynomial)."""
    size, y = s.abs(x), x * x
    near, one = _ERF_RANGE[x.dtype]
    small = s.fma(x, poly(s, y, _ERF[x.dtype]), x)
    tail = poly(s, clamp(s, size, near, one) - _LOG_ERFC_AT[x.dtype], _LOG_ERFC[x.dtype])
    (h, _), k = exp_parts(s, tail)
    large = s.copysign(1.0 - h * pow2(s, k, x.dtype), x)
    return s.select(s.lt(size, near), small, large)


def erfc(s: InstructionBuilder, x: Scalar) -> Scalar:
    """1 - erf(x) without cancellation: exp(-x**2) times a polynomial beyond 1/2."""
    wide = s.cast(x, dt.float64)
    size = s.abs(wide)
    inner = 1.0 - erf_inner(s, wide)
    tail = _erfc_tail_short(s, size) if x.dtype is dt.float32 else _erfc_tail(s, size)
    outer = s.select(s.lt(wide, 0.0), 2.0 - tail, tail)
    return s.cast(s.select(s.lt(size, 0.5), inner, outer), x.dtype)


def erf_inner(s: InstructionBuilder, x: Scalar) -> Scalar:
    """erf(x) for |x| <= 1/2, float64."""
    return s.fma(x, poly(s, x * x, _ERF[dt.float64]), x)


def erfc_over_exp(s: InstructionBuilder, x: Scalar) -> Scalar:
    """exp(x**2) * erfc(x) for x in [1/2, 28], float64."""
    x = clamp(s, x, 0.5, 28.0)
    return poly(s, (x - _ERFCX_AT) / (x + _ERFCX_AT), _ERFCX) / s.fma(x, 2.0, 1.0)


def _erfc_tail(s: InstructionBuilder, x: Scalar) -> Scalar:
    x = clamp(s, x, 0.5, 28.0)
    y, y_low = two_product(s, x, x)
    (e, e_low), k = exp_double(s, (-y, -y_low))
    g = poly(s, (x - _ERFCX_AT) / (x + _ERFCX_AT), _ERFCX)
    num, num_low = two_product(s, e, g)
    den = two_sum(s, x + x, s.const(1.0, x.dtype))
    return scale(s, divide_double(s, (num, s.fma(e_low, g, num_low)), den), k)


def _erfc_tail_short(s: InstructionBuilder, x: Scalar) -> Scalar:
    x = clamp(s, x, 0.5, 11.0)
    t = (x - _ERFCX_SHORT_AT) / (x + _ERFCX_SHORT_AT)
    return exp_short(s, -(x * x)) * poly(s, t, _ERFCX_SHORT) / s.fma(x, 2.0, 1.0)


def _erfinv_inner(s: InstructionBuilder, y: Scalar, short: bool) -> Double:
    """erfinv(y) for |y| <= 0.5625, float64."""
    w = y * y
    if short:
        return y * poly(s, w, _ERFINV_SHORT), s.const(0.0, y.dtype)
    high, low = two_product(s, y, s.const(_ERFINV_ONE, y.dtype))
    return fast_two_sum(s, high, s.fma(y, poly(s, w, _ERFINV), low))


def _erfcinv(s: InstructionBuilder, q: Scalar, short: bool) -> Double:
    """x with erfc(x) = q for q in (0, 1/2], float64."""
    if short:
        w = s.sqrt(-log_short(s, q))
        x = w * poly(s, (w - _TAIL_SHORT_AT) / (w + _TAIL_SHORT_AT), _TAIL_SHORT)
        return x, s.const(0.0, q.dtype)
    high, low = log_double(s, q)
    root = s.sqrt(-high)
    w, w_low = fast_two_sum(s, root, (s.fma(root, root, high) + low) / (root * -2.0))
    far = s.gt(w, _TAIL_SPLIT)
    at = s.select(far, s.const(_TAIL_FAR_AT, q.dtype), _TAIL_NEAR_AT)
    t = (w - at) / (w + at)
    g = s.select(far, poly(s, t, _TAIL_FAR), poly(s, t, _TAIL_NEAR))
    x, x_low = two_product(s, w, g)
    return x, s.fma(w_low, g, x_low)


def erfinv(s: InstructionBuilder, y: Scalar) -> Scalar:
    """x with erf(x) = y: infinite at -1 and 1, NaN beyond."""
    short = y.dtype is dt.float32
    wide = s.cast(y, dt.float64)
    size = s.abs(wide)
    x, x_low = _erfcinv(s, 1.0 - size, short)
    outer = s.select(s.eq(size, 1.0), math.inf, s.select(s.gt(size, 1.0), math.nan, x + x_low))
    inner, _ = _erfinv_inner(s, wide, short)
    return s.cast(s.copysign(s.select(s.gt(size, _ERFINV_INNER), outer, inner), wide), y.dtype)


def ndtri(s: InstructionBuilder, p: Scalar) -> Scalar:
    """x with P(X <= x) = p for a standard normal X: infinite at 0 and 1, NaN beyond."""
    short = p.dtype is dt.float32
    wide = s.cast(p, dt.float64)
    lower = s.lt(wide, 0.5)
    q = s.select(lower, wide, 1.0 - wide)
    x, x_low = _erfcinv(s, q + q, short)
    x, x_low = s.select(lower, -x, x), s.select(lower, -x_low, x_low)
    middle = wide - 0.5
    inner, inner_low = _erfinv_inner(s, middle + middle, short)
    central = s.le(s.abs(middle), _ERFINV_INNER / 2)
    x, x_low = s.select(central, inner, x), s.select(central, inner_low, x_low)
    value = s.fma(x, _SQRT_TWO[0], s.fma(x_low, _SQRT_TWO[0], x * _SQRT_TWO[1]))
    value = s.select(s.eq(wide, 0.0), -math.inf, s.select(s.eq(wide, 1.0), math.inf, value))
    inside = s.and_(s.ge(wide, 0.0), s.le(wide, 1.0))
    return s.cast(s.select(inside, value, math.nan), p.dtype)
