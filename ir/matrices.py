"""Matrices in gradient rules: adjoints, diagonals and triangles of the last two axes, made of ops.

Masks select rather than multiply, so that an infinite element outside of a triangle stays out of it.
"""

from __future__ import annotations

from . import grad, ops
from .dims import DimLike
from .types import AnyTensor

__all__ = ["adjoint", "transposed", "diagonal_mask", "lower_mask", "masked", "diag_part", "diag", "scale_diagonal",
           "product"]


def transposed(x: AnyTensor) -> AnyTensor:
    """`x` with its last two axes exchanged."""
    rank = len(x.dims)
    return ops.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2))


def adjoint(x: AnyTensor) -> AnyTensor:
    """The conjugated and transposed matrices."""
    return grad.conj(transposed(x))


def product(a: AnyTensor, b: AnyTensor, left: bool = False, right: bool = False) -> AnyTensor:
    """`a @ b`, with the adjoint of `a` if `left` and of `b` if `right`."""
    return ops.matmul(a, b, adjoint_a=left, adjoint_b=right)


def _numbers(size: DimLike) -> AnyTensor:
    return ops.range_(0, size, 1, size=size)


def diagonal_mask(rows: DimLike, columns: DimLike) -> AnyTensor:
    """bool[rows, columns], True on the main diagonal."""
    return ops.equal(ops.expand_dims(_numbers(rows), axis=1), _numbers(columns))


def lower_mask(rows: DimLike, columns: DimLike, strictly: bool = False) -> AnyTensor:
    """bool[rows, columns], True below the main diagonal, and on it unless `strictly`."""
    compare = ops.greater if strictly else ops.greater_equal
    return compare(ops.expand_dims(_numbers(rows), axis=1), _numbers(columns))


def masked(x: AnyTensor, mask: AnyTensor) -> AnyTensor:
    """`x` where `mask` holds, else 0."""
    return ops.where(mask, x, grad.scalar(0, x))


def diag_part(x: AnyTensor) -> AnyTensor:
    """The main diagonals [.., n] of square matrices [.., n, n]."""
    size = x.dims[-1]
    return ops.reduce_sum(masked(x, diagonal_mask(size, size)), axis=(-1,))


def diag(v: AnyTensor) -> AnyTensor:
    """Diagonal matrices with `v` on the diagonal."""
    size = v.dims[-1]
    return masked(ops.expand_dims(v, axis=-1), diagonal_mask(size, size))


def scale_diagonal(x: AnyTensor, factor: float) -> AnyTensor:
    """Square matrices with the elements of the diagonal multiplied by `factor`."""
    size = x.dims[-1]
    return ops.where(diagonal_mask(size, size), ops.multiply(x, grad.scalar(factor, x)), x)
