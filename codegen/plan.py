"""The plan of a program: which kernels run in which order, over what memory, before any machine code is made.

A `Plan` says what a run of a graph does, for any machine: the steps and the branches and loops around them, where each
value lies (a buffer of the caller's, the scratch memory called arena, or the memory of another value), which results
take over memory of inputs, the sizes that must be computed, and how much work threads may share. `planner.py` makes
it of a graph; a backend turns it into code (`program.py`: LLVM for processors). `plan_text.py` prints it for people.

A run gets the addresses of the buffers (inputs, then outputs, then constants, all row-major, then packings), the values
of the symbols, and `arena` bytes aligned to a cache line. It ends with a status: 0; (number of a step + 1) << 16 | what
its kernel told; or `backend.INTERRUPTED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from twofold.ir import graph as g
from twofold.ir.data_class import data_class, field
from twofold.ir.dims import Dim, DimLike, ceil_div

from .arena import ALIGNED, Block
from .operands import (
    Argument,
    Detail,
    Epilogue,
    Library,
    Memory,
    PackedInput,
    PartialResults,
    Rows,
    Slot,
    Within,
    Work,
    bytes_of,
)
from .statements import Kernel, accesses
from .units import FusionItem, Grouping

__all__ = ["UNBOUNDED", "Plan", "Step", "Shares", "RowShares", "Batch", "Branch", "While", "Copy",
           "RowBlocks", "Tree", "Aliases", "parts_of", "batch_arguments", "memory_of", "owners", "slots_of"]

_ROUNDS = 64  # that a loop is taken to run, where that is not known
_MANY = 48  # steps that make a plan long
UNBOUNDED = 1 << 62  # the work of a plan with loops
Aliases: TypeAlias = dict[g.Value, g.Value | Slot]  # value -> the one whose memory it has, or the slot it lies in


class Shares(NamedTuple):
    """How the iterations of a step may be shared: where `work`, in simple operations, is `least` or more, each thread
    gets `grain` of it or more."""

    work: DimLike
    least: int
    grain: int


@data_class(eq=False)
class Step:
    """One kernel run.

    Attributes:
        kernel: of the program, outside of it, or several run as one.
        arguments: what fills its args array: memory, places in it (`Within`), library kernels, and sizes.
        total: its range is [0, total).
        weight: the work of an iteration, in simple operations.
        items: what was fused into it.
        node: the node that it is for, where it is for one.
        codes: the meanings of its kernel's statuses from 1 on; none where it cannot fail.
        detail: what the message of a failed check shows besides.
        loops: the loops around it, the outermost first.
        shares: how threads may share it; None where one runs it.
        rows: the ways in which it goes over rows, the fewest rows first.
        epilogue: what a product does with each tile of its result; its kernel and arguments are among those here.
        inside: the steps of control flow that runs as one kernel, which this one stands for.
    """

    kernel: Kernel | Library | Batch
    arguments: Sequence[Argument]
    total: DimLike
    weight: DimLike
    items: list[FusionItem] = field(default_factory=list)
    node: g.Node | None = None
    codes: tuple[str, ...] = ()
    detail: Detail | None = None
    loops: tuple[g.Node, ...] = ()
    shares: Shares | None = None
    rows: Sequence[Rows] = ()
    epilogue: Epilogue | None = None
    inside: Sequence[Step] = ()

    @property
    def name(self) -> str:
        """That of its kernel, and of an epilogue."""
        return self.kernel.name + (f" then {self.epilogue.kernel.name}" if self.epilogue is not None else "")

    @property
    def nodes(self) -> list[g.Node]:
        """The nodes that it computes, in order."""
        nodes = [item.node for item in self.items if item.node is not None]
        nodes += [node for step in self.inside for node in step.nodes]
        return nodes if self.node is None else [self.node, *nodes]

    def memory(self) -> list[Memory]:
        """The values, and other memory, that the arguments are addresses of."""
        arguments = [a.value if type(a) is Within else a for a in self.arguments if type(a) is not int]
        return [a for a in arguments if isinstance(a, (g.Value, PartialResults, Work))]

    def written(self) -> list[Memory]:
        """The memory that it may write."""
        if isinstance(self.kernel, Library):  # results come first, if they have memory
            return Step(self.kernel, [self.arguments[n] for n in self.results()], 0, 0).memory()
        if not self.items or isinstance(self.kernel, Batch):  # kernels may run others
            return self.memory()
        writes = accesses(self.kernel)[1]
        return Step(self.kernel, [a for n, a in enumerate(self.arguments) if n in writes], 0, 0).memory()

    def results(self) -> list[int]:
        """The places of what a library kernel, and its epilogue, writes."""
        if self.epilogue is None:
            return [0]
        first = len(self.arguments) - len(self.epilogue.arguments)
        return [0, *[first + n for n in self.epilogue.writes]]

    def by_rows(self, count: DimLike) -> Rows | None:
        """How it goes over so many rows, where it does."""
        return next((rows for rows in self.rows if rows.count == count), None)

    def failed(self, status: int) -> tuple[g.Node | None, str]:
        """The node whose check a nonzero status reports, and the check's text."""
        code = self.codes[status - 1] if 0 < status <= len(self.codes) else f"status {status}"
        number, colon, text = code.partition(":")
        if colon and number.isdigit() and self.items:
            return self.items[int(number)].node, text
        return self.node, code


@data_class(eq=False)
class Batch:
    """Independent maps run as one kernel, so that threads share the work of all: their ranges, one after another.

    args: the length of each range, then the args of each map.
    """

    parts: list[Step]

    @property
    def name(self) -> str:
        """The names of the maps."""
        return " | ".join(part.kernel.name for part in self.parts)

    def __str__(self) -> str:
        return "\n".join(str(part.kernel) for part in self.parts)


@data_class(eq=False)
class Branch:
    """Runs one of two trees, as the bool in memory of `test` says; `node` is what it is of."""

    test: g.Value
    then: Tree
    otherwise: Tree
    node: g.Node


class RowShares(NamedTuple):
    """How threads share all rounds of a loop: each has some rows in all of them (`loop_rows.py`).

    Attributes:
        rows: how many there are.
        grain: a thread's rows begin at a multiple of it.
        private: numbers, such as a counter, of which each thread has its own.
        how: from how much work on, as for the rows of one round.
    """

    rows: int
    grain: int
    private: Sequence[g.Value]
    how: Shares


@data_class(eq=False)
class While:
    """Runs `before`, and while the bool in memory of `test` holds then `body` and `before` again; `node` is what it is
    of, and `rows` says how threads share the rounds, if not step by step."""

    before: Tree
    test: g.Value
    body: Tree
    node: g.Node
    rows: RowShares | None = None


@data_class(eq=False)
class Copy:
    """Copies the whole memory of one value to another's."""

    source: g.Value
    to: g.Value


@data_class(eq=False)
class RowBlocks:
    """Runs steps block by block of rows, all of them for one block before the next (`row_blocks.py`).

    Attributes:
        steps: their numbers, one after another.
        matrices, matrix, grain: how many matrices there are, and the rows of each, and of a block; the last block of a
            matrix may have fewer.
        windows: memory of which there is a block's rows for each part, with the elements of a row.
        parts: into how many parts the blocks fall at most, which threads take one by one.
        how: from how much work on threads share the blocks; None where one runs them.
    """

    steps: list[int]
    matrices: DimLike
    matrix: DimLike
    grain: int
    windows: dict[Memory, DimLike]
    parts: int
    how: Shares | None

    @property
    def blocks(self) -> DimLike:
        """How many blocks there are."""
        return self.matrices * ceil_div(self.matrix, self.grain)

    def window(self, memory: Memory) -> DimLike:
        """The bytes of a window, in whole lines of a cache."""
        return ceil_div(self.grain * self.windows[memory] * memory.dtype.size, ALIGNED) * ALIGNED


Tree = list[int | Branch | While | Copy | RowBlocks]  # numbers of steps, and control flow, in order


@data_class(eq=False)
class Plan:
    """The work of a run of a graph, step by step.

    Attributes:
        graph: of native nodes only.
        outputs: the values whose memory the results are, in the order of the graph's.
        constants: arrays that the caller holds, too.
        symbols: the order in which a run gets sizes.
        steps: the kernel runs.
        tree: in which order they run.
        buffers: the number of the buffer in which a value lies.
        offsets: the byte of the arena at which memory begins.
        arena: bytes of scratch memory.
        blocks: what lies in it, with the steps at which it lives.
        sums: how offsets follow from each other (`arena.Arena.sums`).
        aliases: values that have the memory of another one, and slots.
        donated: output number -> the number of the input whose memory it takes.
        libraries: the kernels outside of the program that it calls.
        work: simple operations of a run.
        groupings: the units of the graph and of its regions.
        interruptible: whether loops ask if they are to end.
        packings: what is packed before the first run. The memory of each is a buffer, behind the constants.
        worth_packing: the numbers of inputs that products read so that it would be worth packing them once for many
            runs, if they stay the same.
    """

    graph: g.Graph
    outputs: list[g.Value]
    constants: list[np.ndarray]
    symbols: list[str]
    steps: list[Step]
    tree: Tree
    buffers: dict[Memory, int]
    offsets: dict[Memory, DimLike]
    arena: DimLike
    blocks: list[Block]
    sums: list[tuple[DimLike, DimLike, DimLike]]
    aliases: Aliases
    donated: dict[int, int]
    libraries: list[Library]
    work: DimLike
    groupings: list[Grouping]
    interruptible: bool = False
    packings: Sequence[PackedInput] = ()
    worth_packing: Sequence[int] = ()

    @property
    def is_long(self) -> bool:
        """Whether there are so many steps that machine code is made for quick compilation: it would take longer than
        what more care saves."""
        return len(self.steps) >= _MANY

    def is_shared(self, tree: Tree | None = None) -> bool:
        """Whether threads may share some of the work."""
        return any(map(self._is_part_shared, self.tree if tree is None else tree))

    def _is_part_shared(self, part: int | Branch | While | Copy | RowBlocks) -> bool:
        if isinstance(part, Branch):
            return self.is_shared([*part.then, *part.otherwise])
        if isinstance(part, While):
            return part.rows is not None or self.is_shared([*part.before, *part.body])
        if isinstance(part, RowBlocks):
            return part.how is not None
        return isinstance(part, int) and self.steps[part].shares is not None

    def own_work(self) -> DimLike:
        """The simple operations of a run in kernels of the program's own, where each loop runs some rounds."""
        work: DimLike = 0
        for step in self.steps:
            own = step.total * step.weight if not isinstance(step.kernel, Library) else \
                0 if step.epilogue is None else step.epilogue.work
            work = work + own * _ROUNDS ** len(step.loops)
        return work

    @property
    def inputs(self) -> list[g.Value]:
        """The graph's."""
        return self.graph.inputs

    def memory_of(self, value: Memory) -> Memory | Slot:
        """The value whose memory `value` has, or the slot that it lies in."""
        return memory_of(self.aliases, value)

    def place_of(self, value: Memory) -> tuple[int | None, DimLike] | None:
        """The buffer, or None for the arena, and the byte in it at which the memory of a value begins; None for one in
        a slot, which lies elsewhere in every round."""
        memory = self.memory_of(value)
        if isinstance(memory, Slot):
            return None
        return (self.buffers[memory], 0) if memory in self.buffers else (None, self.offsets[memory])

    def owners(self, values: Iterable[Memory]) -> list[Memory]:
        """The memory in which values are found: for one in a slot, what that lies in, and the index."""
        return owners(self.aliases, values)

    def slots_of(self, values: Iterable[Memory]) -> list[Slot]:
        """The slots that tell where values are found."""
        return slots_of(self.aliases, values)

    def touched(self, tree: Tree | None = None) -> Iterator[g.Value]:
        """The values that control flow itself reads or writes."""
        for part in self.tree if tree is None else tree:
            if isinstance(part, Copy):
                yield from (part.source, part.to)
            elif isinstance(part, Branch):
                yield part.test
                yield from self.touched(part.then)
                yield from self.touched(part.otherwise)
            elif isinstance(part, While):
                yield part.test
                yield from self.touched(part.before)
                yield from self.touched(part.body)

    def sizes(self) -> list[Dim]:
        """The expressions of unknown sizes that a run computes, in the order in which it needs them."""
        needed: dict[Dim, None] = {}

        def need(size: DimLike) -> None:
            if isinstance(size, Dim):
                needed.setdefault(size)
        for step in self.steps:
            for a in step.arguments:
                if isinstance(a, Within):
                    need(a.offset * a.value.dtype.size)
                elif not isinstance(a, (g.Value, PartialResults, Work, Library, Kernel)):
                    need(a)
            self._places(step.memory(), need)
            need(step.total)
            if step.shares is not None:
                need(step.shares.work)
        for value in self.touched():
            self._places([value], need)
            need(bytes_of(value))
        for blocks in self.row_blocks():
            need(blocks.blocks)
            if blocks.how is not None:
                need(blocks.how.work)
        return list(needed)

    def row_blocks(self, tree: Tree | None = None) -> Iterator[RowBlocks]:
        """The steps that run block by block of rows."""
        for part in self.tree if tree is None else tree:
            if isinstance(part, RowBlocks):
                yield part
            elif isinstance(part, Branch):
                yield from self.row_blocks([*part.then, *part.otherwise])
            elif isinstance(part, While):
                yield from self.row_blocks([*part.before, *part.body])

    def _places(self, values: Iterable[Memory], need: Callable[[DimLike], None]) -> None:
        for owner in self.owners(values):
            if owner not in self.buffers:
                need(self.offsets[owner])
        for slot in self.slots_of(values):
            for size in (slot.skip * slot.index.dtype.size, slot.stride * slot.base.dtype.size,
                         slot.offset * slot.base.dtype.size):
                need(size)

    def reasons(self) -> dict[g.Value, str]:
        """For values that one kernel leaves to others, in loops and branches too, why they are not one."""
        return {value: text for grouping in self.groupings for value, text in grouping.reasons().items()}


def parts_of(step: Step) -> list[Step]:
    """The kernel runs that a step consists of; none where it is a library's."""
    if isinstance(step.kernel, Library):
        return []
    return step.kernel.parts if isinstance(step.kernel, Batch) else [step]


def batch_arguments(parts: Sequence[Step], arguments: Sequence[Sequence[Argument]]) -> list[Argument]:
    """The args of a `Batch` whose parts have these."""
    return [part.total for part in parts] + [a for args in arguments for a in args]


# -- whose memory a value has --------------------------------------------------------------------------
def memory_of(aliases: Aliases, value: Memory) -> Memory | Slot:
    """The value whose memory `value` has, or the slot that it lies in; `aliases` says of each whose it takes over."""
    of: Memory | Slot = value
    while isinstance(of, g.Value) and of in aliases:
        of = aliases[of]
    return of


def owners(aliases: Aliases, values: Iterable[Memory]) -> list[Memory]:
    """The memory in which values are found: for one in a slot, what that lies in, and the index."""
    return [a for a in _places(aliases, values) if not isinstance(a, Slot)]


def slots_of(aliases: Aliases, values: Iterable[Memory]) -> list[Slot]:
    """The slots that tell where values are found."""
    return [a for a in _places(aliases, values) if isinstance(a, Slot)]


def _places(aliases: Aliases, values: Iterable[Memory]) -> list[Memory | Slot]:
    places = [memory_of(aliases, a) for a in values]
    for a in places:  # which grows meanwhile
        if isinstance(a, Slot):
            places += [memory_of(aliases, a.base), memory_of(aliases, a.index)]
    return places
