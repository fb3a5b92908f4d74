"""Cases of special functions: Bessel functions, integrals, the incomplete gamma and beta functions, zeta."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import scipy.special as sc
from ops.case import SPECIAL, Bad, Case

import twofold as tf
from twofold.ir import dtypes as dt

INF, NAN = math.inf, math.nan
INVALID = tf.errors.InvalidArgumentError
WIDE = frozenset({dt.float32, dt.float64})
SOME = frozenset({dt.float32})  # the body computes in float64, whatever it is given; two cases have other dtypes
PAIR = [[(3, 4), (4,)], [(2, 1, 3), (4, 1)], [(1,), (0,)]]


def one(name, oracle, dtypes=SOME, **rest):
    rest.setdefault("ulps", 4)
    rest.setdefault("half_ulps", 1)
    return Case(name, f"math.special.{name}", [(3, 4)], oracle, dtypes, grad_dtypes=frozenset({dt.float32}),
                **rest)


def positive(oracle, outside):
    """TensorFlow's value where SciPy says NaN or, at 0, has another sign."""
    return lambda x: np.where(x <= 0, outside, oracle(x))


def at_waves_end(oracle):
    """NaN where x is infinite, as in TensorFlow."""
    return lambda x: np.where(np.isinf(x), NAN, oracle(x))


def expint(x):
    return np.where(x < 0, NAN, np.where(x == 0, -INF, sc.expi(x)))


def precisely(function):
    """mpmath's function, element by element, NaN beyond its domain: SciPy is tens of units off in float64."""
    def at(*point):
        return float(function(*point)) if min(point) >= 0 else NAN
    return np.vectorize(at, otypes=[np.float64])


def upper(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


def lower(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


K, Y = (0.3, 6), (0.5, 20)
CASES = [
    one("bessel_i0", sc.i0, WIDE, special=(0.0, -0.0, NAN)),
    one("bessel_i0e", sc.i0e, grad_domain=(0.2, 20), domain=(-20, 20)),
    one("bessel_i1", sc.i1, special=(0.0, -0.0, NAN), zeros=False),
    one("bessel_i1e", sc.i1e, grad_domain=(0.2, 20), domain=(-20, 20)),
    one("bessel_k0", positive(sc.k0, INF), domain=K, special=SPECIAL), one("bessel_k0e", sc.k0e, domain=K),
    one("bessel_k1", positive(sc.k1, INF), domain=K, special=SPECIAL), one("bessel_k1e", sc.k1e, domain=K),
    one("bessel_j0", at_waves_end(sc.j0), WIDE, domain=(-20, 20), atol=4, special=SPECIAL),
    one("bessel_j1", at_waves_end(sc.j1), domain=(-20, 20), atol=4, special=SPECIAL),
    one("bessel_y0", positive(at_waves_end(sc.y0), -INF), domain=Y, atol=4, special=SPECIAL),
    one("bessel_y1", positive(at_waves_end(sc.y1), -INF), domain=Y, atol=4, special=SPECIAL),
    one("dawsn", sc.dawsn, frozenset({dt.float32, dt.bfloat16}), special=SPECIAL),
    one("expint", expint, domain=(0.1, 6), atol=4, special=SPECIAL),
    one("fresnel_cos", lambda x: sc.fresnel(x)[1], special=SPECIAL, zeros=False),
    one("fresnel_sin", lambda x: sc.fresnel(x)[0], special=SPECIAL, zeros=False),
    one("spence", sc.spence, domain=(0.1, 9), special=(0.0, -0.0, -1.0, 1.0, NAN)),
    Case("igamma", "math.igamma", PAIR, precisely(lower), WIDE, domain=[(0.2, 40), (0.1, 40)], ulps=16,
         special=(0.0, 1.0, -1.0, 3.0, NAN), special_ops=(1,), grad_domain=[(0.8, 4), (0.5, 5)],
         second="TensorFlow has no derivative of the one by the parameter"),
    Case("igammac", "math.igammac", PAIR, precisely(upper), WIDE, domain=[(0.2, 40), (0.1, 40)], ulps=16,
         special=(0.0, 1.0, -1.0, 3.0, NAN), special_ops=(1,), grad_domain=[(0.8, 4), (0.5, 5)],
         second="TensorFlow has no derivative of the one by the parameter"),
    Case("igamma_grad_a", "ops.igamma_grad_a", [(3, 4), (4,)],
         precisely(lambda a, x: mp.diff(lambda b: lower(b, x), a)), dt.float32, domain=[(0.8, 9), (0.5, 9)], ulps=2,
         grad=False),
    Case("zeta", "math.zeta", PAIR, precisely(mp.zeta), WIDE, domain=[(1.2, 9), (0.2, 9)], ulps=8, grad=(1,),
         grad_domain=[(1.5, 4), (0.8, 3)]),
    Case("betainc", "math.betainc", [[(3, 4), (4,), (3, 1)], [(), (2,), ()]],
         precisely(lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True)), WIDE,
         domain=[(0.2, 20), (0.2, 20), (0.05, 0.95)], ulps=60, grad=(2,), grad_domain=[(0.5, 4), (0.5, 4), (0.1, 0.9)]),
]

F = tf.constant([1.0, 2.0])
ERRORS = [
    Bad("bessel_i0: integer", lambda: tf.math.bessel_i0(tf.constant([1])), INVALID, "bessel_i0: x has dtype int32"),
    Bad("igamma: half", lambda: tf.math.igamma(tf.cast(F, tf.float16), 1.0), INVALID, "igamma: a has dtype float16"),
    Bad("zeta: dtypes", lambda: tf.math.zeta(F, tf.constant(1.0, tf.float64)), INVALID, "float32 and float64"),
    Bad("betainc: shapes", lambda: tf.math.betainc(F, F, tf.ones([3])), INVALID, r"betainc: shapes"),
]
