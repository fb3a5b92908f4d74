"""Cases of triangular factors, roots and logarithms of matrices, and tridiagonal systems."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.linalg as sl
from ops.case import Bad, Case

import twofold as tf
from twofold.ir import dtypes as dt

INVALID = tf.errors.InvalidArgumentError
LAPACK = (dt.float32, dt.float64, dt.complex64, dt.complex128)
Row = partial(Case, elementwise=False)


def near_one(rng, shape):
    """Matrices near a multiple of the identity."""
    return rng.uniform(-1, 1, shape) + 3 * np.eye(*shape[-2:])


def mixed(rng, shape):
    """Diagonals whose elimination needs rows to change places."""
    return rng.uniform(1, 2, shape) * np.array([1.0, 0.3, -2.0])[:, None]


def each(function, x):
    return np.stack([function(m) for m in x.reshape(-1, *x.shape[-2:])]).reshape(x.shape) if x.size else x


def factors(x):
    def packed(m):
        _, lower, upper = sl.lu(m, p_indices=True)
        return np.tril(lower, -1) + upper
    return each(packed, x)


def whole(diagonals):
    above, main, below = (diagonals[..., n, :] for n in range(3))
    size = main.shape[-1]
    out = np.zeros((*main.shape, size), diagonals.dtype)
    rows = np.arange(size)
    out[..., rows, rows] = main
    out[..., rows[:-1], rows[1:]] = above[..., :-1]
    out[..., rows[1:], rows[:-1]] = below[..., 1:]
    return out


def solved(diagonals, rhs):
    return np.linalg.solve(whole(diagonals), rhs)


CASES = [
    Row("lu", lambda x: tf.linalg.lu(x).lu, [[(3, 3)], [(2, 4, 4)], [(1, 1)]], factors, LAPACK, domain=near_one, ulps=8,
        atol=8, second="the rows' order is not differentiable"),
    Row(("lu", "matrix_triangular_solve"), lambda a, b: tf.linalg.lu_solve(*tf.linalg.lu(a), rhs=b),
        [[(3, 3), (3, 2)], [(2, 1, 3, 3), (4, 3, 2)]], np.linalg.solve, LAPACK[:2], domain=[near_one, (-3, 3)],
        atol=16, ulps=16, second=False, id="lu_solve"),
    Row("lu", lambda x: tf.linalg.lu_reconstruct(*tf.linalg.lu(x)), [[(2, 3, 3)]], lambda x: x, dt.float32, ulps=4,
        atol=4, domain=(-3, 3), grad=False, id="lu_reconstruct"),
    Row("lu", lambda x: tf.linalg.lu_matrix_inverse(*tf.linalg.lu(x)), [[(3, 3)]], np.linalg.inv, dt.complex64, ulps=16,
        atol=8, domain=near_one, grad=False, id="lu_matrix_inverse"),
    Row("matrix_square_root", "linalg.sqrtm", [[(3, 3)], [(2, 4, 4)], [(1, 1)]], lambda x: each(sl.sqrtm, x), LAPACK,
        domain=near_one, ulps=4, atol=16),
    Row("matrix_logarithm", "linalg.logm", [[(3, 3)], [(2, 4, 4)]], lambda x: each(sl.logm, x), LAPACK[2:],
        domain=near_one, ulps=64, atol=64, grad=False),
    Row("tridiagonal_solve", "linalg.tridiagonal_solve", [[(3, 4), (4, 2)], [(2, 3, 5), (2, 5, 1)], [(3, 1), (1, 1)]],
        solved, LAPACK, domain=[mixed, (-3, 3)], ulps=40, atol=40),
    Row("tridiagonal_solve", lambda d, x: tf.linalg.tridiagonal_solve(d, x, partial_pivoting=False), [(3, 4), (4,)],
        solved, dt.float32, domain=[lambda rng, shape: mixed(rng, shape)[::-1, ::-1] * np.array([[1], [20], [1]]),
                                    (-3, 3)], ulps=8, atol=4, grad=False, id="tridiagonal_solve without pivots"),
]

F, SINGULAR = tf.constant([[1.0, 2.0, 3.0]]), tf.constant([[1.0, 2.0], [2.0, 4.0]])
ERRORS = [
    Bad("lu: singular", lambda: tf.linalg.lu(SINGULAR), INVALID, "lu: Input is not invertible"),
    Bad("lu: not square", lambda: tf.linalg.lu(F), INVALID, "lu: Input matrix must be square"),
    Bad("lu: order", lambda: tf.linalg.lu(SINGULAR, tf.int8), INVALID, "lu: output_idx_type must be int32 or int64"),
    Bad("logm: real", lambda: tf.linalg.logm(SINGULAR), INVALID, "matrix_logarithm: x has dtype float32"),
    Bad("sqrtm: NaN", lambda: tf.linalg.sqrtm([[np.nan]]), INVALID, "matrix_square_root: the input holds a NaN"),
    Bad("tridiagonal_solve: format", lambda: tf.linalg.tridiagonal_solve(F, F, "wide"), ValueError,
        "tridiagonal_solve: Unrecognized diagonals_format: wide"),
    Bad("tridiagonal_solve: diagonals", lambda: tf.linalg.tridiagonal_solve(F, [[1.0]] * 3), INVALID,
        "tridiagonal_solve: expected 3 diagonals, got 1"),
    Bad("eigh_tridiagonal: select", lambda: tf.linalg.eigh_tridiagonal([1.0], [], select="x"), ValueError,
        "eigh_tridiagonal: 'select' must have a value in"),
]
