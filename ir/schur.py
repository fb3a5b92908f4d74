"""The Schur form of a matrix, and square roots and logarithms of triangular matrices, in NumPy's double precision.

NumPy has no Schur form. It is found here by Householder's reduction to Hessenberg form and the QR algorithm with
Wilkinson's shifts (Golub & Van Loan, "Matrix Computations", 4th ed., 7.4 and 7.5). The square root is the recurrence of
Bjorck & Hammarling (1983), the logarithm inverse scaling and squaring with Gauss and Legendre's rule for the rest
(Higham, "Functions of Matrices", 2008, sections 6.2 and 11.5).
"""

from __future__ import annotations

import numpy as np

__all__ = ["schur", "triangular_logarithm", "triangular_root"]

_EPSILON = float(np.finfo(np.float64).eps)
_ROUNDS = 60  # of the QR algorithm for an eigenvalue; two or three are usual
_NEAR = 0.25  # how far from 1 a matrix is whose logarithm the rule takes
_POINTS = 10
_ROOTS = 100  # of a matrix; a regular one is near 1 after a dozen


def schur(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unitary Q and upper triangular T, complex128, with Q T Q^H = x.

    Raises:
        LinAlgError: an element is not finite, or the QR algorithm does not end.
    """
    t = np.array(x, np.complex128)
    if not np.isfinite(t).all():
        raise np.linalg.LinAlgError("not finite")
    q = np.eye(len(t), dtype=np.complex128)
    _to_hessenberg(t, q)
    high, rounds = len(t) - 1, 0
    while high > 0:
        low = _first_of_block(t, high)
        if low == high:
            high, rounds = high - 1, 0
            continue
        if rounds == _ROUNDS:
            raise np.linalg.LinAlgError("no convergence")
        rounds += 1
        shift = _wilkinson(t, high) if rounds % 10 else abs(t[high, high - 1]) + t[high, high]
        _step(t, q, low, high, shift)
    return q, np.triu(t)


def _to_hessenberg(t: np.ndarray, q: np.ndarray) -> None:
    for k in range(len(t) - 2):
        v = t[k + 1:, k].copy()
        size = np.linalg.norm(v)
        if size == 0:
            continue
        v[0] += size * (v[0] / abs(v[0]) if v[0] != 0 else 1)
        v /= np.linalg.norm(v)
        t[k + 1:, k:] -= 2 * np.outer(v, v.conj() @ t[k + 1:, k:])
        t[:, k + 1:] -= 2 * np.outer(t[:, k + 1:] @ v, v.conj())
        q[:, k + 1:] -= 2 * np.outer(q[:, k + 1:] @ v, v.conj())


def _first_of_block(t: np.ndarray, high: int) -> int:
    """Where the unreduced block begins that ends at `high`; elements below the diagonal that vanish become 0."""
    for k in range(high, 0, -1):
        if abs(t[k, k - 1]) <= _EPSILON * (abs(t[k, k]) + abs(t[k - 1, k - 1])):
            t[k, k - 1] = 0
            return k
    return 0


def _wilkinson(t: np.ndarray, high: int) -> complex:
    """The eigenvalue of the last two rows and columns that is nearer to the last element."""
    a, b, c, d = (complex(t[i, j]) for i in (high - 1, high) for j in (high - 1, high))
    middle, distance = (a + d) / 2, np.sqrt(((a - d) / 2) ** 2 + b * c)
    first, second = middle + distance, middle - distance
    return first if abs(first - d) < abs(second - d) else second


def _step(t: np.ndarray, q: np.ndarray, low: int, high: int, shift: complex) -> None:
    """T - shift = Q R by rotations, then T becomes R Q + shift."""
    diagonal = np.arange(len(t))
    t[diagonal, diagonal] -= shift
    turns = []
    for k in range(low, high):
        a, b = t[k, k], t[k + 1, k]
        size = np.hypot(abs(a), abs(b))
        turn = np.eye(2, dtype=np.complex128) if size == 0 else np.array([[np.conj(a), np.conj(b)], [-b, a]]) / size
        t[k:k + 2, k:] = turn @ t[k:k + 2, k:]
        turns.append(turn.conj().T)
    for k, turn in zip(range(low, high), turns, strict=True):
        t[:k + 2, k:k + 2] = t[:k + 2, k:k + 2] @ turn
        q[:, k:k + 2] = q[:, k:k + 2] @ turn
    t[diagonal, diagonal] += shift


def triangular_root(t: np.ndarray) -> np.ndarray:
    """The upper triangular matrix with the principal roots on its diagonal whose square is `t`."""
    root = np.diag(np.sqrt(np.diagonal(t)))
    for j in range(1, len(t)):
        for i in range(j - 1, -1, -1):
            rest = t[i, j] - root[i, i + 1:j] @ root[i + 1:j, j]
            root[i, j] = rest / (root[i, i] + root[j, j]) if rest != 0 else 0
    return root


def triangular_logarithm(t: np.ndarray) -> np.ndarray:
    """The principal logarithm of an upper triangular matrix; NaN where it is singular."""
    one = np.eye(len(t))
    for roots in range(_ROOTS):
        if np.abs(t - one).sum(axis=0).max(initial=0.0) <= _NEAR:
            return _near_one(t - one) * 2.0 ** roots
        t = triangular_root(t)
    return np.full(t.shape, np.nan, np.complex128)


def _near_one(x: np.ndarray) -> np.ndarray:
    """log(1 + x): the integral of x / (1 + s x) over s from 0 to 1."""
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    one = np.eye(len(x))
    return sum((w / 2 * np.linalg.solve(one + (p + 1) / 2 * x, x) for p, w in zip(points, weights, strict=True)),
               np.zeros(x.shape, np.complex128))
