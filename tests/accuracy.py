"""How far the mathematical functions are off, in units in the last place; and the table of `docs/numerics.md`.

    python tests/accuracy.py            measures and rewrites the table (some minutes)
    python tests/accuracy.py log cbrt   measures these and prints them

The public functions are measured, as eager kernels run them: float32 against float64 of NumPy and SciPy, float64
against mpmath. Operands are random bit patterns (subnormals and infinities among them), the intervals where a function
is most curved or changes its formula, special values, and then the neighbourhoods of the worst operands so far; all
seeded. The table gives the largest error seen, rounded up to a multiple of 0.05. `tests/ir/test_accuracy.py` measures
another sample and holds it to the table; the bodies' tests (`tests/ir/test_scalar_math.py`) use the same operands and
oracles.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import scipy.special as sp

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e-30, -1e-30, 1e30, -1e30]


def specials(dtype):
    info = np.finfo(dtype)
    edges = [info.max, info.tiny, info.smallest_subnormal, info.tiny * (1 - info.eps), 1 + info.eps, 1 - info.epsneg]
    return np.array(SPECIAL + edges + [-e for e in edges], dtype)


def operands(dtype, ranges, n, seed, bits=True):
    """n bit patterns, n values in each range (given as (low, high), logarithmic if both are positive and far apart).

    Without `bits` the ranges alone, with no special values either.
    """
    rng = np.random.default_rng(seed)
    width = np.dtype(dtype).itemsize
    out = []
    if bits:
        out = [specials(dtype), rng.integers(0, 2 ** (8 * width), n, dtype=f"u{width}").view(dtype)]
    for low, high in ranges:
        if low > 0 and high > 1e3 * low:
            out.append(np.exp(rng.uniform(np.log(low), np.log(high), n)).astype(dtype))
        else:
            out.append(rng.uniform(low, high, n).astype(dtype))
    return np.concatenate(out)


def _unit(size: Any, dtype: type) -> Any:
    """The unit in the last place of numbers of that size."""
    info = np.finfo(dtype)
    return np.ldexp(1.0, np.maximum(np.frexp(np.maximum(size, info.tiny))[1] - 1, info.minexp) - info.nmant)


def ulps(got, high, low, dtype, floor=0.0):
    """|got - exact| in units in the last place of max(|high|, floor); infinite where the kinds differ.

    The exact value is `high` and `low` units in the last place of `high` as a float64.
    """
    with np.errstate(all="ignore"):
        unit = _unit(np.maximum(np.abs(high), floor), dtype)
        error = np.abs((got.astype(np.float64) - high) / unit - low * (_unit(np.abs(high), np.float64) / unit))
        rounded = high.astype(dtype)
        same = (np.isnan(got) & np.isnan(high)) | (~np.isfinite(got) & (got == rounded))
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))


def exact(function, *arrays):
    """An mpmath function, element by element, as `ulps` takes it; `function` handles what is not finite."""
    pairs = []
    for point in zip(*(a.tolist() for a in arrays), strict=True):
        value = mp.nan if any(np.isnan(v) for v in point) else function(*(mp.mpf(v) for v in point))
        high = float(value)
        unit = float(_unit(np.abs(np.float64(high)), np.float64)) if np.isfinite(high) else 1.0
        pairs.append((high, float((value - mp.mpf(high)) / mp.mpf(unit)) if np.isfinite(high) else 0.0))
    return tuple(np.array(column) for column in zip(*pairs, strict=True))


# -- exact functions with their limits ----------------------------------------------------------------
INF = mp.inf


def outside(low, high, below, above, function):
    """`function` within [low, high]; beyond, the values that it rounds to in float64."""
    return lambda x: below if x < low else above if x > high else function(x)


def m_log(function, pole=0):
    return lambda x: function(x) if pole < x < INF else -INF if x == pole else mp.nan if x < pole else INF


def m_sigmoid(x):
    e = mp.exp(-min(abs(x), 2000))
    return (1 if x >= 0 else e) / (1 + e)


def m_softplus(x):
    return max(x, 0) + mp.log1p(mp.exp(-min(abs(x), 2000)))


def m_finite(function):
    return lambda x: mp.nan if abs(x) == INF else function(x)


def m_unit(function):
    return lambda x: function(x) if abs(x) <= 1 else mp.nan


def m_erfcinv(q):
    """Newton's rule for log(erfc(x)) = log(q)."""
    x = mp.sqrt(-mp.log(q)) * mp.mpf("0.9") if q < 0.1 else mp.mpf("0.6")
    for _ in range(60):
        e = mp.erfc(x)
        step = mp.log(e / q) * e * mp.sqrt(mp.pi) * mp.exp(x * x) / 2
        x += step
        if abs(step) < mp.mpf(10) ** -30:
            break
    return x


def m_erfinv(y):
    if abs(y) >= 1:
        return mp.sign(y) * INF if abs(y) == 1 else mp.nan
    return mp.erfinv(y) if abs(y) < 0.5 else mp.sign(y) * m_erfcinv(1 - abs(y))


def m_ndtri(p):
    if not 0 < p < 1:
        return -INF if p == 0 else INF if p == 1 else mp.nan
    if 0.25 < p < 0.75:
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)
    return mp.sqrt(2) * (m_erfcinv(2 * (1 - p)) if p > 0.5 else -m_erfcinv(2 * p))


def m_lgamma(x):
    if abs(x) == INF or (x <= 0 and x == mp.floor(x)):
        return INF
    return mp.re(mp.loggamma(x)) if x < 2.56e305 else INF


def m_digamma(x):
    if x == 0 or abs(x) == INF:
        return INF if x > 0 else -INF if x == 0 else mp.nan
    return mp.nan if x < 0 and x == mp.floor(x) else mp.psi(0, x)


def m_far(function):
    """A function with a factor that falls like a normal tail: 0 far to the left, the number itself far to the right."""
    return lambda x: mp.nan if x == -INF else mp.mpf(0) if x < -2000 else x if x > 2000 else function(x)


def m_atan2(y, x):
    return mp.atan2(y, x)


# -- the table ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Function:
    """A row of the table.

    Attributes:
        name: below `tf`.
        wide: the oracle in float64, for float32.
        exact: the oracle in mpmath, for float64; for two operands only where all is finite and not 0.
        ranges: for each operand the intervals besides random bit patterns.
        share: of the usual number of float64 operands, where mpmath is slow.
        precision: of mpmath, in bits.
        call: what is measured, if not the function of that name.
        beside: what the error is small beside where the function crosses 0, from the operands.
        bits: whether random bit patterns and special values are among the operands.
    """

    name: str
    wide: Callable[..., Any]
    exact: Callable[..., Any]
    ranges: tuple[list[tuple[float, float]], ...]
    share: float = 1.0
    precision: int = 160
    call: Callable[..., Any] | None = None
    beside: Callable[..., Any] | None = None
    bits: bool = True


def _one(name: str, wide: Any, exact: Any, *ranges: tuple[float, float], **rest: Any) -> Function:
    return Function(name, wide, exact, (list(ranges),), **rest)


_ANGLES = [(-1, 1), (-10, 10), (-2e5, 2e5), (-2e9, 2e9), (1e5, 3e38)]
_SMALL = [(1e-44, 1e-36), (1e-322, 1e-306)]
_EXPM = [(-30, 89), (-40, 710), (-2, 2)]


def _special(name: str, wide: Any, exact: Any, *ranges: list[tuple[float, float]], **rest: Any) -> Function:
    """A special function, which mpmath cannot compute everywhere."""
    return Function(f"math.{name}", wide, exact, ranges, share=rest.pop("share", 0.1), bits=False, **rest)


def m_besselk(order, x):
    """The integral of exp(-x cosh t) cosh(order t) over t >= 0 by the trapezoidal rule; mpmath's own takes 100 times as
    long."""
    step = mp.mpf(1) / 16
    points = range(1, int(mp.acosh(1 + 90 / x) / step) + 2)
    values = (mp.exp(-x * mp.cosh(k * step)) * mp.cosh(order * k * step) for k in points)
    return (mp.exp(-x) / 2 + mp.fsum(values)) * step


def _bessel(name: str, function: Any, order: int, ranges: list[tuple[float, float]], **rest: Any) -> Function:
    scale = {"i": lambda x: mp.exp(-abs(x)), "k": mp.exp}.get(name[0]) if name.endswith("e") else None
    def exact(x: Any) -> Any:
        return function(order, x) * scale(x) if scale else function(order, x)
    return _special(f"special.bessel_{name}", getattr(sp, name), exact, ranges, **rest)


_WAVES = {"beside": lambda x: np.sqrt(2 / (np.pi * np.abs(x)))}
_BOTH, _ABOVE = [(-8, 8), (8, 80), (-700, 700)], [(0, 1), (1, 80), (1e-30, 1)]
_BESSEL = (
    *(_bessel(n, mp.besseli, int(n[1]), _BOTH if n.endswith("e") else [*_BOTH[:1], (8, 80)])
      for n in ("i0", "i0e", "i1", "i1e")),
    *(_bessel(n, m_besselk, int(n[1]), _ABOVE)
      for n in ("k0", "k0e", "k1", "k1e")),
    *(_bessel(n, mp.besselj, int(n[1]), [(-8, 8), (8, 30), (-2000, 2000)], **_WAVES) for n in ("j0", "j1")),
    *(_bessel(n, mp.bessely, int(n[1]), [(1e-9, 1), (0.5, 8), (8, 2000)], **_WAVES) for n in ("y0", "y1")),
)
_INTEGRALS = (
    _special("special.dawsn", sp.dawsn, lambda x: mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2,
             [(-2, 2), (2, 7), (-100, 100)]),
    _special("special.expint", sp.expi, mp.ei, [(0, 3), (3, 15), (15, 80)], beside=lambda x: 0.3 + 0 * x),
    _special("special.fresnel_cos", lambda x: sp.fresnel(x)[1], mp.fresnelc, [(-2, 2), (2, 9), (-100, 100)]),
    _special("special.fresnel_sin", lambda x: sp.fresnel(x)[0], mp.fresnels, [(-2, 2), (2, 9), (-100, 100)]),
    _special("special.spence", sp.spence, lambda x: mp.re(mp.polylog(2, 1 - x)), [(0, 0.3), (0.2, 4.5), (4, 1e4)]),
)


def _both(*ranges: tuple[float, float]) -> tuple[list[tuple[float, float]], ...]:
    return list(ranges), list(ranges)


def m_zeta(x, q):
    """Sixty terms and Euler's and Maclaurin's formula: mpmath's own takes ten times as long."""
    total = mp.fsum((q + k) ** -x for k in range(60))
    w = q + 60
    corrections = (mp.bernoulli(2 * k) / mp.factorial(2 * k) * mp.rf(x, 2 * k - 1) * w ** (1 - 2 * k)
                   for k in range(1, 20))
    return total + w ** -x * (w / (x - 1) + mp.mpf(1) / 2 + mp.fsum(corrections))


_INCOMPLETE = (
    _special("igamma", sp.gammainc, lambda a, x: mp.gammainc(a, 0, x, regularized=True),
             *_both((0.01, 3), (1, 30), (20, 300)), share=0.05),
    _special("igammac", sp.gammaincc, lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
             *_both((0.01, 3), (1, 30), (20, 300)), share=0.05),
    _special("zeta", sp.zeta, m_zeta, [(1.01, 20), (20, 60)], [(0.1, 50), (0.5, 50)], share=0.05),
    _special("betainc", sp.betainc, lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
             *_both((0.1, 5), (1, 50)), [(0, 1), (0, 1)], share=0.05),
)
FUNCTIONS = {f.name.rsplit(".", 1)[-1]: f for f in (
    _one("exp", np.exp, outside(-2000, 2000, mp.mpf(0), INF, mp.exp), (-104, 89), (-746, 710), (-2, 2)),
    _one("keras.ops.exp2", np.exp2, outside(-2000, 2000, mp.mpf(0), INF, lambda x: mp.mpf(2) ** x), (-151, 129),
         (-1, 1)),
    _one("math.expm1", np.expm1, outside(-2000, 2000, mp.mpf(-1), INF, mp.expm1), *_EXPM),
    _one("math.log", np.log, m_log(mp.log), (0, 10), (0.5, 2), (0.7, 1.42), (0.99, 1.01)),
    _one("keras.ops.log2", np.log2, m_log(lambda x: mp.log(x) / mp.log(2)), (0, 10), (0.5, 2), (0.7, 1.42)),
    _one("keras.ops.log10", np.log10, m_log(mp.log10), (0, 10), (0.5, 2), (0.7, 1.42)),
    _one("math.log1p", np.log1p, m_log(mp.log1p, -1), (-1, 1), (-0.01, 0.01), (-0.3, 0.42), (1, 1e5)),
    _one("sigmoid", sp.expit, m_sigmoid, (-2, 2), (-20, 20), (-104, 90), (-746, 40)),
    _one("math.log_sigmoid", lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))), lambda x: -m_softplus(-x),
         (-2, 2), (-20, 20), (-90, 104)),
    _one("math.softplus", lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), m_softplus,
         (-2, 2), (-20, 20), (-104, 90)),
    _one("nn.silu", lambda x: x * sp.expit(x), m_far(lambda x: x * m_sigmoid(x)), (-2, 2), (-20, 20), (-110, 90),
         (-754, 40)),
    _one("nn.gelu", lambda x: x * sp.ndtr(x), m_far(lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2), (-2, 2), (-15, 6),
         (-39, 0)),
    _one("sin", np.sin, m_finite(mp.sin), *_ANGLES, precision=1250),
    _one("cos", np.cos, m_finite(mp.cos), *_ANGLES, precision=1250),
    _one("tan", np.tan, m_finite(mp.tan), *_ANGLES, precision=1250),
    _one("asin", np.arcsin, m_unit(mp.asin), (-1, 1), (-0.6, 0.6), (0.9, 1)),
    _one("acos", np.arccos, m_unit(mp.acos), (-1, 1), (-0.6, 0.6), (0.9, 1)),
    _one("atan", np.arctan, mp.atan, (-5, 5), (0.3, 0.5), (2.3, 2.6)),
    Function("atan2", np.arctan2, m_atan2, ([(-5, 5), (-1, 1), *_SMALL], [(-5, 5), (-3, 3), *_SMALL])),
    _one("sinh", np.sinh, outside(-2000, 2000, -INF, INF, mp.sinh), (-2, 2), (-90, 90), (-711, 711)),
    _one("cosh", np.cosh, outside(-2000, 2000, INF, INF, mp.cosh), (-2, 2), (-90, 90), (-711, 711)),
    _one("tanh", np.tanh, outside(-2000, 2000, mp.mpf(-1), mp.mpf(1), mp.tanh), (-1, 1), (-10, 10), (0.9, 1.1)),
    _one("asinh", np.arcsinh, mp.asinh, (-1, 1), (-10, 10), (1e-5, 1e20)),
    _one("acosh", np.arccosh, lambda x: mp.acosh(x) if x >= 1 else mp.nan, (1, 1.1), (1, 10), (1, 1e20)),
    _one("atanh", np.arctanh, m_unit(mp.atanh), (-1, 1), (-0.1, 0.1), (0.9, 1)),
    _one("math.erf", sp.erf, mp.erf, (-4, 4), (-6, 6), (0.9, 1.3)),
    _one("math.erfc", sp.erfc, lambda x: mp.erfc(x) if x < 100 else mp.mpf(0), (-6, 11), (0.4, 3), (5, 27.5)),
    _one("math.erfinv", lambda x: np.copysign(sp.erfinv(x), x), m_erfinv, (-1, 1), (0.4, 0.6), (0.99, 1), share=0.2),
    _one("math.ndtri", sp.ndtri, m_ndtri, (0, 1), (0.15, 0.3), (1e-44, 0.4), share=0.2),
    Function("pow", np.power, mp.power, ([(0, 5), (0.9, 1.1), (1e-30, 1e30)], [(-5, 5), (-700, 700), (-1.5, 1.5)])),
    Function("keras.ops.hypot", np.hypot, lambda a, b: mp.sqrt(a * a + b * b), ([(-5, 5), *_SMALL],) * 2),
    _one("keras.ops.cbrt", np.cbrt, lambda x: mp.sign(x) * mp.cbrt(abs(x)), (-8, 8), (1, 2)),
    _one("math.rsqrt", lambda x: 1 / np.sqrt(x),
         lambda x: mp.mpf(1) / mp.sqrt(x) if x > 0 else INF if x == 0 else mp.nan, (1, 4), (0, 1), (1e-44, 1e-30)),
    *_BESSEL, *_INTEGRALS, *_INCOMPLETE,
)}


def error(function: Function, operands: list[np.ndarray]) -> np.ndarray:
    """The error of a public function at each of the operands, in units in the last place."""
    import twofold as tf

    dtype = operands[0].dtype.type
    call: Any = function.call or operator.attrgetter(function.name)(tf)
    got = call(*map(tf.constant, operands)).numpy()
    with np.errstate(all="ignore"):
        high = np.array(function.wide(*(x.astype(np.float64) for x in operands)))
    low = np.zeros_like(high)
    if dtype == np.float64:
        # mpmath has no -0, nor C's rules for two operands at infinities: NumPy has
        plain = np.logical_and.reduce([x != 0 for x in operands])
        if len(operands) > 1:
            plain &= np.isfinite(high) & (high != 0) & np.isfinite(operands[0]) & np.isfinite(operands[1])
        with mp.workprec(function.precision):
            high[plain], low[plain] = exact(function.exact, *(x[plain] for x in operands))
    floor = function.beside(*operands) if function.beside else 0.0
    return ulps(got, high, low, dtype, floor)


def _neighbours(rng: np.random.Generator, worst: np.ndarray, n: int) -> np.ndarray:
    """n operands around each of the worst, at relative distances from a hundredth down to the last bits."""
    distance = 10.0 ** rng.uniform(-15, -2, (n, len(worst))) * rng.choice([-1.0, 1.0], (n, len(worst)))
    with np.errstate(all="ignore"):
        return (worst * (1 + distance)).astype(worst.dtype).ravel()


def worst(name: str, dtype: type, n: int, seed: int, rounds: int = 0) -> float:
    """The largest error of a function seen.

    Args:
        name: a key of FUNCTIONS.
        dtype: np.float32 or np.float64.
        n: how many bit patterns, and how many operands in each range.
        seed: of the operands.
        rounds: how often the neighbourhoods of the worst operands are looked at.
    """
    function, rng = FUNCTIONS[name], np.random.default_rng(seed)
    columns = [operands(dtype, ranges, n, seed + i, function.bits) for i, ranges in enumerate(function.ranges)]
    if len(columns) == 2 and function.bits:  # each special value meets each
        few = np.meshgrid(specials(dtype), specials(dtype))
        columns = [np.concatenate([f.ravel(), c]) for f, c in zip(few, columns, strict=True)]
    size = min(map(len, columns))
    xs = [c[:size] for c in columns]
    errors = error(function, xs)
    for _ in range(rounds):
        at = np.argsort(-errors)[:12]
        near = [_neighbours(rng, x[at], max(20, n // 100)) for x in xs]
        xs = [np.concatenate([x[at], more]) for x, more in zip(xs, near, strict=True)]
        errors = np.concatenate([errors[at], error(function, near)])
    return float(errors.max())


# -- the page -----------------------------------------------------------------------------------------
PAGE = Path(__file__).parent.parent / "docs" / "numerics.md"
BEGIN, END = "<!-- accuracy -->\n", "<!-- /accuracy -->\n"
SIZES = {np.float32: 2**19, np.float64: 6000}
COLUMNS = 3


def measured(name: str, seed: int = 1) -> tuple[float, float]:
    """The largest errors seen of a function, in float32 and in float64."""
    share = FUNCTIONS[name].share
    return (worst(name, np.float32, SIZES[np.float32], seed, rounds=3),
            worst(name, np.float64, int(SIZES[np.float64] * share), seed, rounds=3))


def stated(text: str) -> dict[str, tuple[float, float]]:
    """The bounds that a page's table states: function -> (float32, float64)."""
    rows = text[text.index(BEGIN) + len(BEGIN):text.index(END)].splitlines()[2:]
    cells = [cell.strip() for row in rows for cell in row.strip("|").split("|") if cell.strip()]
    return {cells[i]: (float(cells[i + 1]), float(cells[i + 2])) for i in range(0, len(cells), 3)}


def table(bounds: dict[str, tuple[float, float]]) -> str:
    """The table in Markdown, several functions side by side, read downwards."""
    names = list(bounds)
    height = -(-len(names) // COLUMNS)
    lines = ["| " + " | | ".join(["function | float32 | float64"] * COLUMNS) + " |",
             "|" + " --- |" * (4 * COLUMNS - 1)]
    for row in range(height):
        cells = [f"{n} | {bounds[n][0]:.2f} | {bounds[n][1]:.2f}" for n in names[row::height]]
        lines.append("| " + " | | ".join(cells + [" | | "] * (COLUMNS - len(cells))) + " |")
    return "\n".join(lines) + "\n"


def bound(error: float) -> float:
    """An error rounded up to a multiple of 0.05, and a little more where it is just below one."""
    return math.ceil((error + 0.005) * 20) / 20


def main() -> None:
    """Measure, and write the table or print it."""
    names = sys.argv[1:]
    bounds = {}
    for name in names or FUNCTIONS:
        errors = measured(name)
        bounds[name] = (bound(errors[0]), bound(errors[1]))
        print(f"{name:12} {errors[0]:.3f} {errors[1]:.3f}", flush=True)
    if not names:
        text = PAGE.read_text()
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text(before + BEGIN + table(bounds) + END + after)


if __name__ == "__main__":
    main()
