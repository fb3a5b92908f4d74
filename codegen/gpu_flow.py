"""Branches and loops of a plan as one kernel of a GPU: what decides is read by its threads, and the host waits for none
of it.

One block of threads goes through all of it, in the plan's order: each step is the kernel that would be launched, which
the threads share (`loop.TeamBuilder.spread`), so that bodies, order of additions and bits are those of launches. Behind
a barrier all threads read the flag that decides, or the index of an item. Where a step can fail, they read its status
word, too, and go to the end of the kernel if it has failed; and they do nothing where a step before has failed, since
what decides may then be anything.

A block has a small part of a GPU. `unfit` says, for sizes that are known, which control flow costs more there than
launches, and a host that waits for flags.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike, numel
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .loop import TEAM, Cell, LoopBuilder, Pointer, TeamBuilder
from .operands import Argument, Memory, Slot, memory_in
from .plan import Branch, Copy, Plan, Step, Tree, While, parts_of
from .statements import Kernel

__all__ = ["MOST_ARGUMENTS", "THREADS", "FlowKernel", "flow_kernel", "steps_in", "unfit"]

Flow: TypeAlias = "Branch | While"

THREADS = 256  # of the block: as many as kernels' teams have at most, and a thread has 255 registers
# Guesses in cycles, of which only the order of magnitude matters: until the host has read a flag and handed in what
# follows, until a launch begins behind another, until memory has been read and written, and until one of the simple
# operations in which plans count is done, which are some 8 instructions, each of which waits for the one before.
_FLAG, _LAUNCH, _MEMORY, _OPERATION = 20_000, 4_000, 800, 32
_STEPS = 64  # whose kernels are compiled as one
MOST_ARGUMENTS = 480  # a kernel has no more than 4 KiB of them
_FOR_EVER = 1 << 62  # rounds


class FlowKernel(NamedTuple):
    """Control flow as a kernel that runs one iteration, by one block.

    Attributes:
        arguments: what fills its args array, behind the address of the plan's status words.
        steps: the numbers of the steps in it.
        tests: whether it reads status words.
    """

    kernel: Kernel
    arguments: Sequence[Argument]
    steps: Sequence[int]
    tests: bool


def steps_in(tree: Tree) -> Iterator[int]:
    """The numbers of the steps of a tree, in order."""
    for part in tree:
        if isinstance(part, int):
            yield part
        elif isinstance(part, (Branch, While)):
            for side in _sides(part):
                yield from steps_in(side)


def _sides(part: Flow) -> tuple[Tree, Tree]:
    return (part.then, part.otherwise) if isinstance(part, Branch) else (part.before, part.body)


# -- what fits ----------------------------------------------------------------------------------------
def unfit(plan: Plan, part: Flow, number: Callable[[DimLike], int]) -> str | None:
    """Why a block should not run some control flow, in words; None where it should.

    Args:
        number: a size as a number.
    """
    steps = [plan.steps[at] for at in steps_in([part])]
    kernels = [one.kernel for step in steps for one in parts_of(step)]
    if len(kernels) > _STEPS:
        return f"it is more than {_STEPS} kernels"
    if any(not isinstance(kernel, Kernel) or kernel.team > THREADS for kernel in kernels):
        return f"it has a kernel that needs more than {THREADS} threads"
    if isinstance(part, Branch):
        fits = _fits([part], plan, number)
    else:
        fits = _fits([*part.before, *part.body], plan, number, flags=1)
    return None if fits else "what runs between two flags is much for one block of threads"


def _fits(tree: Tree, plan: Plan, number: Callable[[DimLike], int], flags: int = 0) -> bool:
    """Whether what a tree does takes one block less than the host waits for launches and flags; loops in it likewise,
    each for itself, as nobody knows how often they run."""
    cost, allowed, left = 0, _FLAG * flags, list(tree)
    while left:
        part = left.pop()
        if isinstance(part, While):
            if not _fits([*part.before, *part.body], plan, number, flags=1):
                return False
            allowed += _FLAG
        elif isinstance(part, Branch):
            left += [*part.then, *part.otherwise]
            allowed += _FLAG
        else:
            assert isinstance(part, (int, Copy))
            cost += _copied(part, number) if isinstance(part, Copy) else _cycles(plan.steps[part], number)
            allowed += _LAUNCH
    return cost <= allowed


def _cycles(step: Step, number: Callable[[DimLike], int]) -> int:
    """How long a block takes for a step."""
    cycles = 0
    for part in parts_of(step):
        assert isinstance(part.kernel, Kernel)
        team = part.kernel.team
        rounds = -(-number(part.total) // (THREADS // team if team <= TEAM else 1))
        cycles += rounds * (_MEMORY + _OPERATION * number(part.weight) // team)
    return cycles


def _copied(copy: Copy, number: Callable[[DimLike], int]) -> int:
    return -(-number(numel(copy.to.dims)) // THREADS) * _MEMORY


# -- the kernel ---------------------------------------------------------------------------------------
def flow_kernel(plan: Plan, part: Flow) -> FlowKernel:
    """The kernel of a branch or a loop of a plan, for all sizes."""
    return _FlowRecorder(plan, part).recorded()


class _FlowRecorder:
    """Records the kernel of some control flow."""

    def __init__(self, plan: Plan, part: Flow) -> None:
        self.plan, self.part = plan, part
        self.steps = list(steps_in([part]))
        what = "branch" if isinstance(part, Branch) else "loop"
        self.b = TeamBuilder(f"{what} of {len(self.steps)} steps", THREADS)
        self.arguments: list[Argument] = []
        self.status = self.b.pointer("status", dt.int64)
        self.memory: dict[Memory, Pointer] = {}
        self.sizes: dict[Dim, Scalar] = {}
        self.failed: Cell | None = None

    def recorded(self) -> FlowKernel:
        """All of it."""
        b, checked = self.b, [number for number, step in enumerate(self.plan.steps) if step.codes]
        with b.for_(b.start, b.stop):
            if checked:
                self.failed = b.local(False, dt.bool_)
                b.barrier()
            for number in checked:
                b.break_(self.has_failed(number))
            self.tree([self.part])
        return FlowKernel(b.finish(), self.arguments, self.steps, bool(checked))

    def has_failed(self, number: int) -> Scalar:
        """Whether the check of a step has failed, as its status word tells."""
        return self.b.ne(self.b.load(self.status, number), -1)

    def tree(self, tree: Tree) -> None:
        for part in tree:
            if isinstance(part, int):
                self.step(part)
            elif isinstance(part, Copy):
                self.copy(part)
            elif isinstance(part, Branch):
                self.branch(part)
            else:
                assert isinstance(part, While)
                self.loop(part)

    def step(self, number: int) -> None:
        b, step = self.b, self.plan.steps[number]
        b.barrier()
        status = b.at(self.status, number) if step.codes else None
        for part in parts_of(step):
            assert isinstance(part.kernel, Kernel)
            b.spread(part.kernel, self.number(part.total), [self.word(a) for a in part.arguments], status)
        if step.codes:
            assert self.failed is not None
            b.barrier()
            self.failed.set(self.has_failed(number))
            b.break_(self.failed.get())

    def copy(self, copy: Copy) -> None:
        to, source = self.plan.memory_of(copy.to), self.plan.memory_of(copy.source)
        if to is source:
            return
        words = max(copy.to.dtype.size // 8, 1)  # of an element
        self.b.barrier()
        self.b.spread(_copies(copy.to.dtype), self.number(numel(copy.to.dims) * words),
                      [self.word(copy.to), self.word(copy.source)])

    def branch(self, part: Branch) -> None:
        with self.b.if_(self.flag(part.test)):
            self.tree(part.then)
        if part.otherwise:
            with self.b.else_():
                self.tree(part.otherwise)

    def loop(self, part: While) -> None:
        b = self.b
        with b.for_(0, _FOR_EVER):
            self.tree(part.before)
            b.break_(b.not_(self.flag(part.test)))
            self.tree(part.body)
        if self.failed is not None:
            b.break_(self.failed.get())

    # -- memory -----------------------------------------------------------------------------------
    def flag(self, test: g.Value) -> Scalar:
        """The flag that decides, once all threads have done what is before."""
        self.b.barrier()
        return self.load(test, 0, dt.bool_)

    def load(self, of: Memory, index: DimLike, dtype: DType) -> Scalar:
        """An element of some memory."""
        pointer, at = self.spot(of, index)
        return self.b.load(self.b.view(pointer, dtype), self.b.shr(at, dtype.size.bit_length() - 1))

    def spot(self, of: Memory, index: DimLike) -> tuple[Pointer, Scalar]:
        """The argument that some memory is part of, and the byte in it at which element `index` begins."""
        b, memory = self.b, self.plan.memory_of(of)
        at = self.number(index * of.dtype.size)
        if not isinstance(memory, Slot):
            return self.pointer(memory), at
        pointer, base = self.spot(memory.base, memory.offset)
        item = self.load(memory.index, memory.skip, memory.index.dtype)
        if item.dtype is not dt.int64:
            item = b.cast(item, dt.int64)
        return pointer, base + item * self.number(memory.stride * memory.base.dtype.size) + at

    def pointer(self, memory: Memory) -> Pointer:
        """The argument for memory as a whole, as bytes."""
        pointer = self.memory.get(memory)
        if pointer is None:
            self.arguments.append(memory)
            pointer = self.memory[memory] = self.b.pointer(f"m{self.b.next_slot}", dt.uint8)
        return pointer

    def number(self, size: DimLike) -> Scalar:
        if not isinstance(size, Dim):
            return self.b.const(int(size), dt.int64)
        known = self.sizes.get(size)
        if known is None:
            self.arguments.append(size)
            known = self.sizes[size] = self.b.late_integer()
        return known

    def word(self, argument: Argument) -> Scalar:
        """What a kernel gets for an argument: an address, or a number."""
        memory = memory_in(argument)
        if memory is not None:
            pointer, at = self.spot(*memory)
            return self.b.at(pointer, at)
        assert isinstance(argument, (int, Dim))
        return self.number(argument)


@functools.cache
def _copies(dtype: DType) -> Kernel:
    """Copies elements of a type, or halves of those of 16 bytes; the range counts them, and the args are two addresses.
    """
    unit = {1: dt.uint8, 2: dt.uint16, 4: dt.uint32}.get(dtype.size, dt.uint64)
    b = LoopBuilder(f"copy {unit.short}")
    to, source = b.pointer("to", unit), b.pointer("source", unit)
    with b.for_(b.start, b.stop) as i:
        b.store(to, i, b.load(source, i))
    return b.finish()
