"""Batches of matrix products as kernels take them: sizes and strides, and as few products as there can be.

How a batch is computed, by tiles and threads, is the affair of each backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from twofold.ir import dims as dm
from twofold.ir.dims import Size

if TYPE_CHECKING:  # eager products import this module, and plan nothing at first
    from .layout import Layout
    from .units import Source

__all__ = ["Matrices", "matrices_of", "with_longer_rows"]


class Matrices(NamedTuple):
    """A batch of products C = A B: sizes, and strides in elements, which may be unknown.

    a: of A from row to row and along the inner index. b: of B along the inner index and from column to column. ldc: of
    C from row to row; its columns are neighbours. batch: for each batch dimension, outermost first, its length and the
    strides of A, B and C along it.
    """

    m: Size
    n: Size
    k: Size
    a: tuple[Size, Size]
    b: tuple[Size, Size]
    ldc: Size
    batch: tuple[tuple[Size, Size, Size, Size], ...] = ()

    @property
    def batches(self) -> Size:
        """How many products there are."""
        return dm.numel([length for length, *_ in self.batch])


def matrices_of(left: Source, right: Source, out: Layout) -> Matrices:
    """The products of two sources that broadcast to the batch of `out`, as few as can be."""
    from .layout import merged

    *batch, m, n = out.shape
    a = left.layout.broadcast_to((*batch, *left.layout.shape[-2:]))
    b = right.layout.broadcast_to((*batch, *right.layout.shape[-2:]))
    dims = merged(batch, [a.strides[:-2], b.strides[:-2], out.strides[:-2]])
    return with_longer_rows(Matrices(m, n, a.shape[-1], a.strides[-2:], b.strides[-2:], out.strides[-2],
                                     tuple((d, *s) for d, s in dims)))


def with_longer_rows(x: Matrices) -> Matrices:
    """The same with the innermost batch dimension as further rows, where B is the same for all of it and they follow
    one another: one long product is quicker than many short ones."""
    if not x.batch:
        return x
    *outer, (length, a, b, c) = x.batch
    if b != 0 or c != x.m * x.ldc or (a != x.m * x.a[0] and x.m != 1):
        return x
    return x._replace(m=length * x.m, a=(a if x.m == 1 else x.a[0], x.a[1]), batch=tuple(outer))
