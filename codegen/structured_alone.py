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
from .operands import Argument, Run, Within, Work
from .placer import Placer
from .structured import place_order
from .units import Source

__all__ = ["install"]

_WORK = 16  # of an element of a row that is sorted, in simple operations


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
def _ordered(p: Placer, x: Source, descending: bool, out: Argument | None) -> tuple[list[Run], Argument]:
    """What finds the indices that sort the rows of x, and where these are."""
    *rows, length = x.layout.shape
    size = dm.numel(x.layout.shape)
    indices = Work(dt.int32, size) if out is None else out
    kernel = order.argsort(x.base.dtype, descending)
    arguments: list[Argument] = [indices, Work(dt.int32, size), p.at(x), length]
    return [Run(kernel, arguments, dm.numel(rows), length * _WORK)], indices


@lowering("argsort", "sort", "top_k", handles=_is_elsewhere, table=library.LOWERINGS)
def _sort(p: Placer) -> None:
    place_order(p, _ordered, by_elements=False)
