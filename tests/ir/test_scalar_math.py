"""Mathematical functions: errors in ulps over the whole range, and special values.

float32 results are compared with float64 ones of NumPy and SciPy, float64 results with mpmath. Operands
are random bit patterns (subnormals and infinities among them), the intervals where a function is most
curved or changes its formula, and special values; all seeded.
"""

from __future__ import annotations

import itertools

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp
from accuracy import (
    INF,
    exact,
    m_digamma,
    m_erfinv,
    m_finite,
    m_lgamma,
    m_log,
    m_ndtri,
    m_sigmoid,
    m_softplus,
    m_unit,
    operands,
    outside,
    specials,
    ulps,
)

from twofold.ir import dtypes as dt
from twofold.ir import reference, scalar


def call(name, *arrays):
    """The function `name` of the arrays, through the NumPy handler."""
    fn = scalar.build(lambda s, *v: getattr(s, name)(*v), tuple(dt.from_numpy(a.dtype) for a in arrays), name=name)
    return reference.evaluate(fn, *arrays)[0]


# name: (bound in float32, bound in float64, float64 oracle, mpmath oracle, ranges)
CURVED = [(-1, 1), (-10, 10)]
TABLE = {
    "exp": (1, 1, np.exp, outside(-2000, 2000, mp.mpf(0), INF, mp.exp), [(-104, 89), (-746, 710), (-2, 2)]),
    "exp2": (1, 1, np.exp2, outside(-2000, 2000, mp.mpf(0), INF, lambda x: mp.mpf(2) ** x), [(-151, 129), (-1, 1)]),
    "expm1": (1, 1, np.expm1, outside(-2000, 2000, mp.mpf(-1), INF, mp.expm1), [(-30, 89), (-40, 710), (-2, 2)]),
    "log": (1, 1, np.log, m_log(mp.log), [(0, 10), (0.5, 2), (0.99, 1.01)]),
    "log2": (1, 1, np.log2, m_log(lambda x: mp.log(x) / mp.log(2)), [(0, 10), (0.5, 2), (0.99, 1.01)]),
    "log10": (1, 1, np.log10, m_log(mp.log10), [(0, 10), (0.5, 2), (0.99, 1.01)]),
    "log1p": (1, 1, np.log1p, m_log(mp.log1p, -1), [(-1, 1), (-0.01, 0.01), (1, 1e5)]),
    "tanh": (1, 1, np.tanh, mp.tanh, [(-1, 1), (-10, 10), (0.9, 1.1)]),
    "sinh": (2, 2, np.sinh, outside(-2000, 2000, -INF, INF, mp.sinh), [(-2, 2), (-90, 90), (-711, 711)]),
    "cosh": (2, 2, np.cosh, outside(-2000, 2000, INF, INF, mp.cosh), [(-2, 2), (-90, 90), (-711, 711)]),
    "sigmoid": (1, 1, sp.expit, m_sigmoid, [(-2, 2), (-20, 20), (-104, 90), (-746, 40)]),
    "softplus": (2, 2, lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), m_softplus,
                 [(-2, 2), (-20, 20), (-104, 90)]),
    "log_sigmoid": (2, 2, lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))), lambda x: -m_softplus(-x),
                    [(-2, 2), (-20, 20), (-90, 104)]),
    "sin": (1, 1, np.sin, m_finite(mp.sin), [*CURVED, (-2e5, 2e5), (-2e9, 2e9), (1e5, 3e38)]),
    "cos": (1, 1, np.cos, m_finite(mp.cos), [*CURVED, (-2e5, 2e5), (-2e9, 2e9), (1e5, 3e38)]),
    "tan": (1, 1, np.tan, m_finite(mp.tan), [*CURVED, (-2e5, 2e5), (-2e9, 2e9), (1e5, 3e38)]),
    "asin": (1, 1, np.arcsin, m_unit(mp.asin), [(-1, 1), (-0.6, 0.6), (0.9, 1)]),
    "acos": (1, 1, np.arccos, m_unit(mp.acos), [(-1, 1), (-0.6, 0.6), (0.9, 1)]),
    "atan": (2, 2, np.arctan, mp.atan, [(-5, 5), (0.3, 0.5), (2.3, 2.6)]),
    "asinh": (1, 2, np.arcsinh, mp.asinh, [*CURVED, (1e-5, 1e20)]),
    "acosh": (1, 2, np.arccosh, lambda x: mp.acosh(x) if x >= 1 else mp.nan, [(1, 1.1), (1, 10), (1, 1e20)]),
    "atanh": (1, 2, np.arctanh, m_unit(mp.atanh), [(-1, 1), (-0.1, 0.1), (0.9, 1)]),
    "erf": (1, 2, sp.erf, mp.erf, [(-4, 4), (-6, 6), (0.9, 1.3)]),
    "erfc": (1, 2, sp.erfc, lambda x: mp.erfc(x) if x < 100 else mp.mpf(0), [(-6, 11), (0.4, 3), (5, 27.5)]),
    "erfinv": (1, 2, sp.erfinv, m_erfinv, [(-1, 1), (0.4, 0.6), (0.99, 1)]),
    "ndtri": (1, 2, sp.ndtri, m_ndtri, [(0, 1), (0.15, 0.3), (1e-44, 0.4)]),
    "rsqrt": (1, 1, lambda x: 1 / np.sqrt(x),
              lambda x: mp.mpf(1) / mp.sqrt(x) if x > 0 else INF if x == 0 else mp.nan, [(1, 4), (0, 1)]),
    "cbrt": (1, 1, np.cbrt, lambda x: mp.sign(x) * mp.cbrt(abs(x)), [(-8, 8)]),
    "lgamma": (1, 4, sp.gammaln, m_lgamma, [(0, 3), (3, 10), (0.9, 1.1), (1.9, 2.1), (10, 1e30)]),
    "digamma": (1, 4, sp.digamma, m_digamma, [(0, 3), (3, 10), (1.4, 1.5), (10, 1e30)]),
}
# Near zeros that neither a factor nor a series carries the error is one of max(|f|, this).
FLOOR = {"lgamma": 0.5, "digamma": 0.5}
# The oracle of float32 has its own way at these.
NOT_COMPARED = {"lgamma": [-np.inf], "digamma": [0.0], "rsqrt": [0.0]}
SMALL = 150


@pytest.mark.parametrize("name", TABLE)
def test_float32(name):
    bound, _, oracle, _, ranges = TABLE[name]
    x = operands(np.float32, ranges, 20000, seed=11)
    x = x[~np.isin(x, NOT_COMPARED.get(name, []))]
    with np.errstate(all="ignore"):
        want = oracle(x.astype(np.float64))
    got = call(name, x)
    error = ulps(got, want, 0.0, np.float32, FLOOR.get(name, 0.0))
    worst = error.argmax()
    assert error[worst] <= bound, f"{name}({x[worst]!r}) = {got[worst]!r}, not {want[worst]!r}: {error[worst]:.3f} ulp"


@pytest.mark.parametrize("name", TABLE)
def test_float64(name):
    _, bound, _, oracle, ranges = TABLE[name]
    x = operands(np.float64, ranges, SMALL, seed=12)
    x = x[~np.isin(x, NOT_COMPARED.get(name, []))]
    if name in ("lgamma", "digamma"):
        x = x[(x > 0) | (x == np.floor(x)) | np.isnan(x)]  # the others have a test of their own
    with mp.workprec(1250 if name in ("sin", "cos", "tan") else 160):
        high, low = exact(oracle, x)
    got = call(name, x)
    error = ulps(got, high, low, np.float64, FLOOR.get(name, 0.0))
    worst = error.argmax()
    assert error[worst] <= bound, f"{name}({x[worst]!r}) = {got[worst]!r}, not {high[worst]!r}: {error[worst]:.3f} ulp"


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_gamma_functions_of_negative_numbers(name):
    """Reflection subtracts numbers of the size of |x|*log(|x|): the error is measured against that."""
    x = np.random.default_rng(3).uniform(-10, 0, 400)
    high, low = exact(TABLE[name][3], x)
    assert ulps(call(name, x), high, low, np.float64, floor=8.0).max() <= 4
    narrow = np.random.default_rng(4).uniform(-10, 0, 20000).astype(np.float32)
    want = TABLE[name][2](narrow.astype(np.float64))
    assert ulps(call(name, narrow), want, 0.0, np.float32, floor=1e-6).max() <= 1


ODD = ["expm1", "tanh", "sinh", "sin", "tan", "asin", "atan", "asinh", "atanh", "erf", "erfinv", "cbrt", "log1p"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ODD)
def test_tiny_arguments_keep_their_sign_and_value(name, dtype):
    info = np.finfo(dtype)
    x = np.array([0.0, -0.0, info.smallest_subnormal, -info.smallest_subnormal, info.tiny, -info.tiny], dtype)
    got = call(name, x)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))
    if name not in ("erf", "erfinv", "cbrt"):
        np.testing.assert_array_equal(got, x)


def test_exact_powers():
    for dtype in (np.float32, np.float64):
        info = np.finfo(dtype)
        k = np.arange(info.minexp - info.nmant, info.maxexp, dtype=dtype)
        np.testing.assert_array_equal(call("exp2", k), np.ldexp(dtype(1), k.astype(int)))
        np.testing.assert_array_equal(call("log2", np.ldexp(dtype(1), k.astype(int))), k)
        thousand = np.array([1, 10, 100, 1000, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9, 10**10], dtype)
        np.testing.assert_array_equal(call("log10", thousand), np.arange(11, dtype=dtype))


def test_overflow_thresholds():
    for dtype in (np.float32, np.float64):
        info = np.finfo(dtype)
        top = np.log(np.float64(info.max)) if dtype == np.float32 else 709.782712893384
        last = dtype(top) if dtype(top) <= top else np.nextafter(dtype(top), dtype(0))
        got = call("exp", np.array([last, np.nextafter(last, dtype(np.inf))]))
        assert np.isfinite(got[0])
        assert got[1] == np.inf


# -- two operands -------------------------------------------------------------------------------------
def pairs(dtype, seed, *ranges, n):
    grid = np.array(list(itertools.product(specials(dtype), repeat=2)), dtype)
    columns = [operands(dtype, r, n, seed + i)[len(specials(dtype)):] for i, r in enumerate(ranges)]
    return [np.concatenate([grid[:, i], columns[i]]) for i in range(2)]


def check_pairs(name, oracle, exact_oracle, dtype, x, y, bound):
    got = call(name, x, y)
    with np.errstate(all="ignore"):
        high = np.asarray(oracle(x.astype(np.float64), y.astype(np.float64)))
    low = np.zeros_like(high)
    if dtype == np.float64:  # mpmath where everything is an ordinary number, NumPy for the rules at the edges
        plain = np.isfinite(x) & np.isfinite(y) & np.isfinite(high) & (x != 0) & (y != 0) & (high != 0)
        with mp.workprec(200):
            high[plain], low[plain] = exact(exact_oracle, x[plain], y[plain])
    error = ulps(got, high, low, dtype)
    worst = error.argmax()
    assert error[worst] <= bound, f"{name}({x[worst]!r}, {y[worst]!r}) = {got[worst]!r}, not {high[worst]!r}"
    known = ~np.isnan(high)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(high[known]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pow(dtype):
    n = 20000 if dtype == np.float32 else 400
    x, y = pairs(dtype, 21, [(0, 5), (0.9, 1.1), (1e-30, 1e30)], [(-5, 5), (-700, 700), (-1.5, 1.5)], n=n)
    check_pairs("pow", np.power, mp.power, dtype, x, y, 1)
    whole = np.random.default_rng(1).integers(-9, 9, n).astype(dtype)
    check_pairs("pow", np.power, lambda a, b: a ** int(b), dtype, -np.abs(x[-n:]), whole, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hypot(dtype):
    x, y = pairs(dtype, 22, [(-5, 5)], [(-5, 5)], n=20000 if dtype == np.float32 else 400)
    check_pairs("hypot", np.hypot, lambda a, b: mp.sqrt(a * a + b * b), dtype, x, y, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_atan2(dtype):
    y, x = pairs(dtype, 23, [(-5, 5), (-1, 1)], [(-5, 5), (-3, 3)], n=20000 if dtype == np.float32 else 400)
    check_pairs("atan2", np.arctan2, mp.atan2, dtype, y, x, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_remainders_are_exact(dtype):
    x, y = pairs(dtype, 24, [(-50, 50), (0, 1e9)], [(-5, 5), (0, 3)], n=4000)
    rng = np.random.default_rng(2)
    x = np.concatenate([x, rng.integers(-1000, 1000, 4000).astype(dtype)])
    y = np.concatenate([y, rng.integers(-10, 10, 4000).astype(dtype)])
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
        within = (np.abs(y) >= 2.0**-1000) & (np.abs(x) / np.abs(y) < 2.0**979)
        stated = within | (np.abs(x) < np.abs(y)) | np.isnan(want) | (dtype == np.float32)
        x, y, want = x[stated], y[stated], want[stated]
        python = np.where((want != 0) & ((want < 0) != (y < 0)), want + y, want)
    got = call("truncatemod", x, y)
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))
    np.testing.assert_array_equal(call("floormod", x, y), python)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32])
def test_integer_functions(dtype):
    info = np.iinfo(dtype)
    values = [info.min, info.max, info.max // 2, 0, 1, 2, 3, 7] + ([-1, -2, -3, -7] if info.min else [])
    x, y = (np.array(column, dtype) for column in zip(*itertools.product(values, repeat=2), strict=True))
    x, y = x[y != 0], y[y != 0]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(call("floordiv", x, y), x // y)
        np.testing.assert_array_equal(call("floormod", x, y), x % y)
        np.testing.assert_array_equal(call("truncatemod", x, y), np.fmod(x, y))
    np.testing.assert_array_equal(call("sign", x), np.sign(x))
    np.testing.assert_array_equal(call("round", x), x)
    small = np.arange(len(x)).astype(dtype) % 20
    np.testing.assert_array_equal(call("pow", x, small), x**small)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_signs_and_rounding(dtype):
    x, y = pairs(dtype, 25, [(-5, 5)], [(-5, 5)], n=500)
    with np.errstate(all="ignore"):
        got, want = call("nextafter", x, y), np.nextafter(x, y)
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))
    np.testing.assert_array_equal(call("sign", x), np.sign(x))
    np.testing.assert_array_equal(call("round", np.array([0.5, 1.5, 2.5, -0.5, -1.5], dtype)), [0, 2, 2, -0.0, -2])
    quotients = call("floordiv", np.array([7, -7, 7.5], dtype), np.array([2, 2, -2], dtype))
    np.testing.assert_array_equal(quotients, [3, -4, -4])


# -- complex values -----------------------------------------------------------------------------------
COMPLEX = {
    "exp": mp.exp, "expm1": lambda z: mp.exp(z) - 1, "log": mp.log, "log1p": lambda z: mp.log(1 + z),
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh,
    "asin": mp.asin, "acos": mp.acos, "atan": mp.atan, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh,
    "complex_sqrt": mp.sqrt, "rsqrt": lambda z: 1 / mp.sqrt(z), "reciprocal": lambda z: 1 / z,
    "sigmoid": lambda z: 1 / (1 + mp.exp(-z)), "sign": lambda z: z / abs(z), "complex_abs": abs, "angle": mp.arg,
}


def complex_operands(dtype, n):
    rng = np.random.default_rng(31)
    square = rng.uniform(-3, 3, n) + 1j * rng.uniform(-3, 3, n)
    spiral = np.exp(rng.uniform(-60, 4, n) + 1j * rng.uniform(-4, 4, n))
    circle = np.exp(1j * rng.uniform(-4, 4, n))
    return np.concatenate([square, spiral, circle, 1e-3 * square, 1 + 1e-5 * square]).astype(dtype)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name):
    """The error is at most 2 units beside the modulus of the result."""
    for dtype in (np.complex64, np.complex128):
        z = complex_operands(dtype, 40)
        got = call(name, z)
        with mp.workprec(200):
            error = [abs(mp.mpc(g) - w) / abs(w) for g, w in
                     ((g, COMPLEX[name](mp.mpc(v))) for v, g in zip(z.tolist(), got.tolist(), strict=True))]
        assert float(max(error)) <= 2 * np.finfo(dtype).eps


NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
               "atanh": "arctanh", "complex_sqrt": "sqrt", "complex_abs": "abs"}


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "sin", "cos", "sinh", "cosh", "tanh", "tan", "asin", "acos",
                                  "atan", "asinh", "acosh", "atanh", "complex_sqrt", "complex_abs", "angle"])
def test_complex_zeros_cuts_and_large_values(name):
    """Both sides of every branch cut, signed zeros, and moduli whose square overflows."""
    values = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 1e300, -1e300]
    z = np.array([complex(a, b) for a, b in itertools.product(values, repeat=2)])
    got = call(name, z)
    with np.errstate(all="ignore"):
        want = getattr(np, NUMPY_NAMES.get(name, name))(z)
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(got), part(want), rtol=1e-14, atol=1e-15)
        known = ~np.isnan(part(want))
        np.testing.assert_array_equal(np.signbit(part(got))[known], np.signbit(part(want))[known])


def test_complex_pow():
    rng = np.random.default_rng(32)
    z = rng.uniform(-3, 3, 200) + 1j * rng.uniform(-3, 3, 200)
    w = rng.uniform(-3, 3, 200) + 1j * rng.uniform(-3, 3, 200)
    with mp.workprec(200):
        want = [mp.mpc(a) ** mp.mpc(b) for a, b in zip(z.tolist(), w.tolist(), strict=True)]
        error = [float(abs(mp.mpc(g) - e) / abs(e)) for g, e in zip(call("pow", z, w).tolist(), want, strict=True)]
    # the exponent w*log(z) has a rounding error of its size
    assert max(error) <= 16 * np.finfo(np.float64).eps
    np.testing.assert_array_equal(call("pow", np.array([0j, 0j, 2j]), np.array([2 + 1j, 0j, 0j])), [0, 1, 1])


@pytest.mark.parametrize("name", ["igamma", "igamma_grad_a", "zeta", "betainc"])
def test_rounds_give_the_same_bits_one_by_one_and_as_a_loop(name):
    """NumPy's handler gets every round of a series recorded, a kernel a loop."""
    from twofold.ir import ops

    rng = np.random.default_rng(6)
    columns = [rng.uniform(0.1, 30, 64), rng.uniform(0.1, 30, 64), rng.uniform(0, 1, 64)]
    if name == "zeta":
        columns = [columns[0] + 1, columns[1]]
    columns = columns[:2] if name != "betainc" else columns
    np.testing.assert_array_equal(call(name, *columns), getattr(ops, name)(*columns).numpy())
