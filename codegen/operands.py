"""The operands of kernel runs: memory, places in it, and kernels that lie outside of a program.

Lowerings name these when they ask for a `Run`; a plan (`plan.py`) says where each piece of memory lies. A value of the
graph is memory by itself; here is what memory there is besides, and how an argument names a part of any.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.data_class import data_class
from twofold.ir.dims import DimLike, Shape
from twofold.ir.dtypes import DType

from .statements import Kernel

__all__ = ["Work", "PartialResults", "Within", "Slot", "LibraryKey", "Library", "PackedInput", "Detail", "Blocking",
           "Rows", "Tiles", "Loads", "Epilogue", "Run", "Memory", "Argument", "RunKernel", "bytes_of", "memory_in",
           "operand_of"]

LibraryKey: TypeAlias = tuple[str, ...]  # a kind that somebody provides, then what tells its kernels apart


@data_class(frozen=True, eq=False)
class Work:
    """Scratch memory of a step: `size` elements of `dtype`."""

    dtype: DType
    size: DimLike


@data_class(frozen=True, eq=False)
class PartialResults:
    """Memory between the two kernels of a reduction: `size` accumulators of `dtype`."""

    dtype: DType
    size: DimLike


@data_class(frozen=True, eq=False)
class Within:
    """A place in the memory of `value`: `offset` elements from its beginning."""

    value: Memory
    offset: DimLike


@data_class(frozen=True, eq=False)
class Slot:
    """Memory inside of another value's, at a place that an index decides: it begins `offset` + `stride` times the index
    elements after the beginning of `base`. The index is an int32 or int64, the first element of `index` after
    `skip`."""

    base: g.Value
    index: g.Value
    skip: DimLike
    stride: DimLike
    offset: DimLike


@data_class(frozen=True)
class Library:
    """A kernel outside of the program."""

    key: LibraryKey

    @property
    def name(self) -> str:
        """The key as one word."""
        return "/".join(self.key)


class PackedInput(NamedTuple):
    """What is packed once for many runs, in which an input stays the same: a run of a library kernel.

    Attributes:
        kernel: it takes the address of the memory that it fills, then that of the input as often as `addresses` says,
            then `integers`.
        input: the number of the input. offset: the byte of it at which what is packed begins.
        total: the range of the kernel.
        size, dtype: of the memory.
    """

    kernel: Library
    input: int
    offset: int
    addresses: int
    integers: tuple[int, ...]
    total: int
    size: int
    dtype: DType

    @property
    def bytes(self) -> int:
        """Of the memory that it fills."""
        return self.size * self.dtype.size


@data_class(frozen=True, eq=False)
class Detail:
    """The operands that the message of a failed check shows besides the check's text.

    `codegen/kernels/indexing.py: detail` makes the text, from `kind`, the arrays that `arrays` describe, (a `Within`,
    its shape) each, and the integers `sizes`.
    """

    kind: str
    arrays: tuple[tuple[Within, Shape], ...]
    sizes: tuple[DimLike, ...] = ()


# Memory by itself. A value of the graph has its own, or that of another value (`Plan.aliases`).
Memory: TypeAlias = g.Value | Work | PartialResults
# What fills a word of an args array: the address of memory or of a kernel, outside of the program or of its own, or a
# number.
Argument: TypeAlias = Memory | Within | Library | Kernel | DimLike
# In plans a `loop.Kernel` or a `Library`; where an op runs at once, a `Library` or what has been compiled and loaded.
RunKernel: TypeAlias = Any


@data_class(frozen=True, eq=False)
class Blocking:
    """How a product is run for blocks of its rows.

    Attributes:
        tall: the rows that are computed together; the last of a block may be fewer.
        most: the most rows of a block.
        runs: gives the runs for blocks of so many rows: the last one goes over the blocks, those before it prepare what
            it reads for all of them.
    """

    tall: int
    most: int
    runs: Callable[[int], Sequence[Run]]


@data_class(frozen=True, eq=False)
class Rows:
    """One way in which the range of a run goes over rows, and which memory it takes row by row.

    Attributes:
        count: how many rows there are.
        grain: how many of them iterations take together; the last of a matrix may be fewer.
        steps: the iterations that do so. They follow one another, as the rows do.
        spans: memory -> the elements of a row. What iterations for a row touch of it lies in `span` elements, from
            number `span` times the row on. Memory that is not here may be touched anywhere.
        matrices: how many matrices the rows are of, and the rows of each, with the last of which a `grain` ends; None
            where it makes no difference.
        blocking: how it can be run for other grains.
    """

    count: DimLike
    grain: int
    steps: DimLike
    spans: Mapping[g.Value, DimLike]
    matrices: tuple[DimLike, DimLike] | None = None
    blocking: Blocking | None = None


@data_class(frozen=True, eq=False)
class Tiles:
    """How a run computes products of matrices tile by tile, each of which it can hand to an epilogue.

    Attributes:
        matrices, rows, columns: how many matrices the result has, one after another, and the sizes of each.
        tall, wide: the rows and columns of a tile; the last ones of a matrix may have fewer.
        once: whether a tile is complete as soon as it is computed at all, so that it needs no memory before.
        hurried: whether it takes less time than what it writes takes to come into the caches.
        held: where threads hold tiles in registers, the function that builds the kernel with an epilogue.
    """

    matrices: DimLike
    rows: DimLike
    columns: DimLike
    tall: int
    wide: int
    once: bool
    hurried: bool
    held: Callable[..., Kernel] | None = None


@data_class(frozen=True, eq=False)
class Loads:
    """Which operands a run of a product can compute from something else while it loads them.

    Attributes:
        times: how often it loads each element of an operand, by the operand's place among the arguments.
        build: builds the kernel for some `beginnings`, by these places.
    """

    times: Mapping[int, DimLike]
    build: Callable[..., Kernel]


@data_class(frozen=True, eq=False)
class Epilogue:
    """What a product does with each tile of its result: a kernel of the program's own (`fused_tile.py`).

    Attributes:
        kernel: over the rows of a tile; its args tell of the tile, and go on with `arguments`.
        writes: the places among these of memory that it writes.
        spans: as of `Rows`, for what it reads and writes.
        work: simple operations for all tiles.
    """

    kernel: Kernel
    arguments: Sequence[Argument]
    writes: Collection[int]
    spans: Mapping[g.Value, DimLike]
    work: DimLike


@data_class(eq=False)
class Run:
    """A kernel run as a lowering asks for it: what fills its args array, its range, and the work of an iteration.

    fixed: it does the same in every round of the loop around it, and may run once, before.
    rows: the ways in which it goes over rows, the fewest rows first.
    tiles: how it computes a product, if it can have an epilogue.
    epilogue: the one that it has.
    loads: which operands can have prologues.
    """

    kernel: RunKernel
    arguments: Sequence[Argument]
    total: DimLike
    weight: DimLike
    detail: Detail | None = None
    fixed: bool = False
    rows: Sequence[Rows] = ()
    tiles: Tiles | None = None
    epilogue: Epilogue | None = None
    loads: Loads | None = None

    def values(self) -> list[g.Value]:
        """The values whose memory the kernel gets."""
        memory = [a.value if isinstance(a, Within) else a for a in self.arguments]
        return [a for a in memory if isinstance(a, g.Value)]


def bytes_of(memory: Memory) -> DimLike:
    """How large a piece of memory is."""
    size = memory.size if isinstance(memory, (PartialResults, Work)) else dm.numel(memory.dims)
    return size * memory.dtype.size


def memory_in(argument: Argument) -> tuple[Memory, DimLike] | None:
    """The memory that an argument is a place in, and the number of the element; None for what is no memory."""
    if isinstance(argument, Within):
        return argument.value, argument.offset
    return (argument, 0) if isinstance(argument, (g.Value, PartialResults, Work)) else None


def operand_of(argument: Argument, anywhere: bool = False) -> g.Value | None:
    """The value at the beginning of whose memory an argument is a place, or anywhere in whose memory it is."""
    memory = memory_in(argument)
    if memory is None or not isinstance(memory[0], g.Value) or not (anywhere or dm.is_exactly(memory[1], 0)):
        return None
    return memory[0]
