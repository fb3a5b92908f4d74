"""What runs of kernels take: memory, places in it, and kernels that lie outside of a program.

Lowerings name these when they ask for a `Run`; a plan (`plan.py`) says where each piece of memory lies. A value of the
graph is memory by itself; here is what memory there is besides, and how an argument names a part of any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import DimLike
from twofold.ir.dtypes import DType

__all__ = ["Work", "Partial", "Within", "Slot", "Library", "Detail", "Run", "bytes_of"]


@dataclass(frozen=True, eq=False, slots=True)
class Work:
    """Scratch memory of a step: `size` elements of `dtype`."""

    dtype: DType
    size: DimLike


@dataclass(frozen=True, eq=False, slots=True)
class Partial:
    """Memory between the two kernels of a reduction: `size` accumulators of `dtype`."""

    dtype: DType
    size: DimLike


@dataclass(frozen=True, eq=False, slots=True)
class Within:
    """A place in the memory of `value`: `offset` elements from its beginning."""

    value: Any
    offset: DimLike


@dataclass(frozen=True, eq=False, slots=True)
class Slot:
    """Memory inside of another value's, at a place that an index decides: it begins `offset` + `stride` times the index
    elements after the beginning of `base`. The index is an int32 or int64, the first element of `index` after
    `skip`."""

    base: g.Value
    index: g.Value
    skip: DimLike
    stride: DimLike
    offset: DimLike


@dataclass(frozen=True, slots=True)
class Library:
    """A kernel outside of the program: its key is a kind that somebody provides, then text and numbers."""

    key: tuple[Any, ...]

    @property
    def name(self) -> str:
        """The key as one word."""
        return "/".join(map(str, self.key))


@dataclass(frozen=True, eq=False, slots=True)
class Detail:
    """What the message of a failed check shows besides the check's text.

    `codegen/kernels/indexing.py: detail` makes the text, from `kind`, the arrays that `arrays` describe, (a `Within`,
    its shape) each, and the integers `sizes`.
    """

    kind: str
    arrays: tuple[tuple[Within, tuple[Any, ...]], ...]
    sizes: tuple[DimLike, ...] = ()


@dataclass(eq=False, slots=True)
class Run:
    """A kernel run as a lowering asks for it: what fills its args array, its range, and the work of an iteration.

    fixed: it does the same in every round of the loop around it, and may run once, before.
    """

    kernel: Any  # a loop.Kernel or a Library
    arguments: list[Any]
    total: DimLike
    weight: Any
    detail: Detail | None = None
    fixed: bool = False

    def values(self) -> list[g.Value]:
        """The values whose memory the kernel gets."""
        given = [a.value if isinstance(a, Within) else a for a in self.arguments]
        return [a for a in given if isinstance(a, g.Value)]


def bytes_of(memory: g.Value | Work | Partial) -> DimLike:
    """How large a piece of memory is."""
    size = memory.size if isinstance(memory, (Partial, Work)) else dm.numel(memory.dims)
    return size * memory.dtype.size
