"""Lowerings of the processor for programs of another process: sorting, and telling of assertions.

In this process NumPy sorts, and Python tells what an assertion was about.
"""

from __future__ import annotations

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g

from . import library, target
from .backend import Backend, lowering
from .kernels import checks, order
from .operands import Run, Within, Work
from .placer import Placer
from .units import Source

__all__ = ["install"]

_WORK = 16  # of an element of a row that is sorted, in simple operations
_PLAIN = {1: dt.uint8, 2: dt.uint16, 4: dt.uint32, 8: dt.uint64, 16: dt.uint64}


def install() -> None:
    """Does nothing: importing the module registers its lowerings."""


# -- assertions ---------------------------------------------------------------------------------------
def _is_elsewhere(node: g.Node, backend: Backend) -> bool:
    """Whether a program is for another process: in this one NumPy sorts, and Python tells of assertions."""
    return not target.current().is_host


@lowering("assert", handles=_is_elsewhere, table=library.LOWERINGS)
def _assertion(p: Placer) -> None:
    """A check of a program for another process: there is no Python to print the data of the error."""
    source = p.in_memory(p.operands[0])
    p.fill([], Run(checks.holds(p.attrs["message"]), [Within(source.base, 0)], 1, 1))


# -- order --------------------------------------------------------------------------------------------
def _ordered(p: Placer, descending: bool, out: g.Value | None = None) -> tuple[Source, g.Value]:
    """The operand in memory, and the indices that sort its rows."""
    x = p.dense(p.operands[0])
    *rows, length = x.layout.shape
    indices = out or g.Value(x.layout.shape, dt.int32)
    kernel = order.argsort(x.base.dtype, descending)
    arguments = [indices, Work(dt.int32, dm.numel(x.layout.shape)), p.at(x), length]
    p.fill([indices], Run(kernel, arguments, dm.numel(rows), length * _WORK))
    return x, indices


@lowering("argsort", handles=_is_elsewhere, table=library.LOWERINGS)
def _argsort(p: Placer) -> None:
    _ordered(p, p.attrs["descending"], p.out)


@lowering("sort", handles=_is_elsewhere, table=library.LOWERINGS)
def _sort(p: Placer) -> None:
    x, indices = _ordered(p, p.attrs["descending"])
    *rows, length = x.layout.shape
    kernel = order.pick(_PLAIN[p.out.dtype.size], None)
    p.fill([p.out], Run(kernel, [p.out, p.at(x), indices, length, length], dm.numel(rows), length))


@lowering("top_k", handles=_is_elsewhere, table=library.LOWERINGS)
def _top_k(p: Placer) -> None:
    x, indices = _ordered(p, True)
    *rows, length = x.layout.shape
    values, places = p.node.outputs
    kernel, count = order.pick(_PLAIN[values.dtype.size], places.dtype), values.dims[-1]
    p.fill([values, places], Run(kernel, [values, places, p.at(x), indices, count, length], dm.numel(rows), count))
