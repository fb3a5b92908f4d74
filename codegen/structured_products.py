"""The lowering of matrix products: what a product of any dtype consists of, whatever computes that of real numbers.

A backend says which kernels compute products of floats, int8, and integers of 32 bits or more (`Backend.product`).
"""

from __future__ import annotations

from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.scalar import Scalar, ScalarBuilder

from .backend import Backend, lowering
from .layout import contiguous
from .placer import Placer
from .units import Source

__all__ = ["install", "transposed"]


def install() -> None:
    """Does nothing: importing the module registers its lowering."""


def _has_few_batches(node: g.Node, backend: Backend) -> bool:
    return backend.most_batches is None or len(node.outputs[0].dims) - 2 <= backend.most_batches


@lowering("matmul", handles=_has_few_batches)
def _matmul(p: Placer) -> None:
    dtype = p.out.dtype
    a, b = _turned(p)
    if dtype.is_complex:
        _complex_product(p, a, b)
    elif dtype.is_integer and dtype.size < dt.int32.size:
        _short_product(p, a, b)
    else:
        order = p.wanted_order()
        if order is not None and order[-1] == len(order) - 1 and dtype.compute is dtype:
            out = g.Value(tuple(p.out.dims[n] for n in order), dtype)  # as the transpose that reads it wants it
            layout = contiguous(out.dims).transpose(tuple(order.index(n) for n in range(len(order))))
        else:
            out, layout = p.target(dtype.compute), contiguous(p.out.dims)
        p.product(out, a, b, layout)
        p.give(out, layout)


@lowering("int8_matmul", handles=_has_few_batches)
def _int8_matmul(p: Placer) -> None:
    a, b = _turned(p)
    p.product(p.out, a, b, contiguous(p.out.dims))


def _turned(p: Placer) -> list[Source]:
    """The operands as they are multiplied."""
    return [transposed(s) if p.attrs[f"transpose_{name}"] or p.attrs.get(f"adjoint_{name}") else s
            for s, name in zip(p.operands, "ab", strict=True)]


def transposed(source: Source) -> Source:
    """The matrices of a source, each with rows for columns."""
    rank = len(source.layout.shape)
    return Source(source.base, source.layout.transpose((*range(rank - 2), rank - 1, rank - 2)))


def _complex_product(p: Placer, a: Source, b: Source) -> None:
    """Four real products of the parts, as eager execution adds them up."""
    half = p.out.dtype.real_dtype
    flips = [p.attrs["adjoint_a"], p.attrs["adjoint_b"]]
    parts = [(p.copy(s, half, _real), p.copy(s, half, _negative_imag if flip else _imag))
             for s, flip in zip((a, b), flips, strict=True)]
    real = []
    for i, j in ((0, 0), (1, 1), (0, 1), (1, 0)):
        out = g.Value(p.out.dims, half)
        p.product(out, parts[0][i], parts[1][j], contiguous(out.dims))
        real.append(Source(out, contiguous(out.dims)))
    p.item(real, p.out, _joined)


def _real(s: ScalarBuilder, x: Scalar) -> Scalar:
    return s.real(x)


def _imag(s: ScalarBuilder, x: Scalar) -> Scalar:
    return s.imag(x)


def _negative_imag(s: ScalarBuilder, x: Scalar) -> Scalar:
    return -s.imag(x)


def _joined(s: ScalarBuilder, rr: Scalar, ii: Scalar, ri: Scalar, ir: Scalar) -> Scalar:
    return s.complex(rr - ii, ri + ir)


def _short_product(p: Placer, a: Source, b: Source) -> None:
    """The product in int32: what integers of fewer bits keep of it does not depend on the bits above, nor on whether
    operands count as signed."""
    out = g.Value(p.out.dims, dt.int32)
    taken = dt.int8 if p.out.dtype.size == 1 else dt.int32
    a, b = (s if s.base.dtype is taken else p.copy(s, taken, _as_int8 if taken is dt.int8 else _widened)
            for s in (a, b))
    p.product(out, a, b, contiguous(out.dims))
    p.give(out)


def _as_int8(s: ScalarBuilder, x: Scalar) -> Scalar:
    return s.cast(x, dt.int8)


def _widened(s: ScalarBuilder, x: Scalar) -> Scalar:
    return s.cast(x, dt.int32)
