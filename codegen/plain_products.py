"""Matrix products as loop IR, for backends that have no products of their own: the same sums in the same order."""

from __future__ import annotations

from twofold.ir import dims as dm
from twofold.ir import graph as g

from .kernels import products
from .layout import Layout, contiguous
from .operands import Run
from .placer import Placer
from .units import Source

__all__ = ["product"]


def product(p: Placer, out: g.Value, left: Source, right: Source, layout: Layout | None = None) -> list[Run]:
    """The run of a kernel of plain loops; see `Placer.product`. The result is row-major."""
    layout = layout or contiguous((left.layout.shape[-2], right.layout.shape[-1]))
    *batch, m, n = layout.shape
    a, b = (p.dense(Source(s.base, s.layout.broadcast_to((*batch, *s.layout.shape[-2:])))) for s in (left, right))
    inner = a.layout.shape[-1]
    kernel = p.kernel(products.floats, a.base.dtype)
    return [Run(kernel, [out, p.at(a), p.at(b), m, n, inner], dm.numel(layout.shape[:-1]), n * inner + 1)]
