"""Kernels run by NumPy, all iterations of their range at once: slow and exact, without machine code.

Every value of a kernel is an array with an element for each iteration of the outermost range (of a vector: a row of
lanes), and the iterations go through the statements in lockstep, as the threads of a graphics processor do.
Instructions are those of `ir/reference.py`, addresses are numbers (`lockstep_memory.py`). What a kernel leaves behind
does not depend on how its range is split, so this gives the bits that every backend must give, and tells what is wrong
with a kernel or a plan where another backend's result differs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from twofold.ir import dtypes as dt
from twofold.ir import reference
from twofold.ir.scalar import Instr, Scalar

from .lockstep_memory import AddressSpace, ByteMemory
from .lockstep_teams import SharedMemory, mma
from .loop import TEAM
from .statements import (
    TEAM_OPS,
    VECTOR_OPS,
    At,
    Barrier,
    Break,
    Call,
    Callee,
    Check,
    Fail,
    For,
    Get,
    If,
    IntegerArgument,
    Invoke,
    Kernel,
    Load,
    LoopFunction,
    Pointer,
    Prefetch,
    Room,
    Set,
    Spread,
    Statement,
    Store,
)
from .value_types import lanes_of

__all__ = ["ByteMemory", "run"]

_NOWHERE = np.int64(0)


def run(kernel: Kernel, total: int, args: Sequence[ByteMemory | Kernel | int]) -> int:
    """Runs a kernel over [0, total); gives its status.

    Args:
        kernel: what to run.
        args: what fills its args array: memory for each pointer, kernels that it calls, and integers.
    Raises:
        IndexError: it reads or writes outside of memory.
        ValueError: threads of a team that come to an instruction of teams, or to a barrier, are not all there; or they
            read and write the same shared memory without a barrier between.
    """
    if total <= 0:
        return 0
    space = AddressSpace()
    words = np.array([a if isinstance(a, int) else space.word(a) for a in args], np.int64)
    start, mask = np.repeat(np.arange(total, dtype=np.int64), kernel.team), np.ones(total * kernel.team, bool)
    with np.errstate(all="ignore"):
        status = _called(space, kernel, start, start + 1, np.int64(space.place(ByteMemory(words.view(np.uint8)))), mask)
    checked = status[(status > 0) & (status <= len(kernel.codes))]
    return int(checked.min()) if len(checked) else next((int(s) for s in status if s), 0)


def _called(space: AddressSpace, kernel: Kernel, start: np.ndarray, stop: np.ndarray, args: np.ndarray | np.int64,
            mask: np.ndarray) -> np.ndarray:
    """The status of a run over the range [start, stop) of each iteration in `mask`; 0 for the others."""
    frame = _Frame(space, kernel, {kernel.start.id: start, kernel.stop.id: stop}, len(mask), args)
    frame.run(mask)
    status = frame.status
    for code in reversed(range(len(kernel.codes))):
        status = np.where(frame.failed.get(code, False), code + 1, status)
    return status


class _Frame:
    """A kernel or function that runs: for each value an array with an element for each iteration, or one for all."""

    def __init__(self, space: AddressSpace, of: Kernel | LoopFunction, values: Mapping[int, np.ndarray], total: int,
                 args: np.ndarray | np.int64 = _NOWHERE) -> None:
        """Args:
            args: the address of a kernel's args array.
        """
        self.space, self.of, self.total, self.args = space, of, total, args
        self.values: dict[int, np.ndarray] = dict(values)
        self.variables: dict[int, np.ndarray] = {}
        self.operations: dict[int, tuple[Callable[..., np.ndarray], list[int]]] = {}  # of instructions that have run
        self.scratch: dict[str, np.ndarray] = {}
        self.shared: list[SharedMemory] = []
        self.bases: dict[int, np.ndarray] = {}  # of what arguments point to
        self.left: list[np.ndarray] = []  # for each loop around, the iterations that have left it
        self.breaks = 0
        self.failed: dict[int, np.ndarray] = {}  # by check
        self.status = np.zeros(total, np.int64)
        self.asked: np.ndarray | None = None  # the mask that `everywhere` was asked about last, and what it said
        self.answer = False

    def run(self, mask: np.ndarray) -> None:
        """Runs it for the iterations in `mask`."""
        pieces = len(self.space.pieces)
        self.scratch = {p.name: self.space.allocate(self.total, p.size, p.dtype) for p in self.of.scratch}
        if isinstance(self.of, Kernel):
            self.shared = [SharedMemory(self.space, p, self.total, self.of.team) for p in self.of.shared]
            self.scratch |= {s.name: s.addresses for s in self.shared}
        self.block(self.of.body, mask)
        self.space.release(pieces)

    def every(self, value: Scalar) -> np.ndarray:
        """A value with an element, or a row of lanes, for each iteration."""
        lanes, array = lanes_of(value.dtype), self.values[value.id]
        shape = (self.total, lanes) if lanes else (self.total,)
        return array if array.shape == shape else _filled(array, shape)

    def everywhere(self, mask: np.ndarray) -> bool:
        """Whether a mask has all iterations. Masks never change, and one serves many statements."""
        if mask is not self.asked:
            self.asked, self.answer = mask, np.count_nonzero(mask) == self.total
        return self.answer

    def block(self, block: list[Statement], mask: np.ndarray) -> None:
        """Runs the statements of a block for the iterations in `mask`, as long as they do not leave the loop."""
        operations, values = self.operations, self.values
        for statement in block:
            if type(statement) is Instr and (known := operations.get(statement.out.id)) is not None:  # most there are
                apply, operands = known
                values[statement.out.id] = apply(*[values[i] for i in operands])
                continue
            breaks = self.breaks
            _RUNS[type(statement)](self, statement, mask)
            if self.breaks != breaks and self.left:
                mask = mask & ~self.left[-1]
                if not np.count_nonzero(mask):
                    break

    def argument(self, statement: IntegerArgument, mask: np.ndarray) -> None:
        """Reads an integer of the args array."""
        self.values[statement.out.id] = self.space.load(np.atleast_1d(self.args + 8 * statement.index),
                                                        statement.out.dtype)

    def get(self, statement: Get, mask: np.ndarray) -> None:
        """Reads a variable."""
        self.values[statement.out.id] = self.variables[statement.var]

    def at(self, statement: At, mask: np.ndarray) -> None:
        """Takes the address of an element."""
        self.values[statement.out.id] = self.address(statement.ptr, statement.index)

    def leave(self, statement: Break, mask: np.ndarray) -> None:
        """Ends the loop around for the iterations whose condition holds."""
        self.left[-1] = self.left[-1] | (mask & self.every(statement.cond))
        self.breaks += 1

    def prefetch(self, statement: Prefetch, mask: np.ndarray) -> None:
        """Does nothing: values do not depend on it."""

    def set(self, statement: Set, mask: np.ndarray) -> None:
        """Gives a variable a value, for the iterations in `mask`."""
        new, old = self.every(statement.value), self.variables.get(statement.var)
        if old is not None and not self.everywhere(mask):
            new = np.where(mask[:, None] if new.ndim == 2 else mask, new, old)
        self.variables[statement.var] = new

    def branch(self, statement: If, mask: np.ndarray) -> None:
        """Runs each side for the iterations that take it."""
        taken = self.every(statement.cond)
        for body, holds in ((statement.body, True), (statement.otherwise, False)):
            if body:
                inside = mask & taken if holds else mask & ~taken
                if np.count_nonzero(inside):
                    self.block(body, inside)

    def room(self, room: Room, mask: np.ndarray) -> None:
        """Runs a block that has memory of its own."""
        pieces = len(self.space.pieces)
        count = int(self.every(room.count)[mask].max())
        self.values[room.out.id] = self.space.allocate(self.total, count, room.dtype)
        self.block(room.body, mask)
        self.space.release(pieces)

    def check(self, check: Check, mask: np.ndarray) -> None:
        """Notes which iterations fail a check."""
        self.failed[check.code] = self.failed.get(check.code, False) | (mask & ~self.every(check.cond))

    def fail(self, fail: Fail, mask: np.ndarray) -> None:
        """Gives iterations a status, unless they have one."""
        self.status = np.where(mask & (self.status == 0), self.every(fail.status), self.status)

    def call(self, call: Call, mask: np.ndarray) -> None:
        """Runs another kernel."""
        kernel = call.kernel
        called = self.space.kernels[int(self.every(kernel.word)[0])] if isinstance(kernel, Callee) else kernel
        at = np.broadcast_to(self.base(call.args), (self.total,))
        self.values[call.out.id] = _called(self.space, called, self.every(call.start), self.every(call.stop), at, mask)

    def invoke(self, invoke: Invoke, mask: np.ndarray) -> None:
        """Runs a function."""
        params = {p.id: self.values[a.id] for (_, p), a in zip(invoke.function.params, invoke.args, strict=True)}
        _Frame(self.space, invoke.function, params, self.total).run(mask)

    def spread(self, spread: Spread, mask: np.ndarray) -> None:
        """Runs a kernel that the threads of each block share."""
        assert isinstance(self.of, Kernel)
        for team in np.flatnonzero(self.together("spread", mask, self.of.team)).tolist():
            total, words = self.word(spread.total, team), [self.word(a, team) for a in spread.args]
            if total <= 0:
                continue
            pieces = len(self.space.pieces)
            args = np.int64(self.space.place(ByteMemory(np.array(words, np.int64).view(np.uint8))))
            start = np.repeat(np.arange(total, dtype=np.int64), spread.kernel.team)
            codes = _called(self.space, spread.kernel, start, start + 1, args, np.ones(len(start), bool))
            self.space.release(pieces)
            if spread.status is not None and codes.any():
                at = np.array([self.word(spread.status, team)])
                least = np.minimum(self.space.load(at, dt.int64).view(np.uint64), np.uint64(codes[codes > 0].min() - 1))
                self.space.store(at, least.view(np.int64), dt.int64)

    def word(self, value: Scalar, team: int) -> int:
        """A value that all threads of a team have alike."""
        assert isinstance(self.of, Kernel)
        own = self.every(value)[team * self.of.team:(team + 1) * self.of.team]
        if (own != own[0]).any():
            raise ValueError(f"{self.of.name}: spread: threads of a block have different arguments")
        return int(own[0])

    def instruction(self, instr: Instr, mask: np.ndarray) -> None:
        """Runs an instruction: of teams, or one that `block` knows from then on."""
        if instr.op in TEAM_OPS:
            self.values[instr.out.id] = self.of_team(instr, mask)
            return
        apply, operands = self.operations[instr.out.id] = self.operation(instr)
        self.values[instr.out.id] = apply(*[self.values[i] for i in operands])

    def operation(self, instr: Instr) -> tuple[Callable[..., np.ndarray], list[int]]:
        """What an instruction does, and to which values."""
        lanes = lanes_of(instr.out.dtype)
        if instr.op in VECTOR_OPS:
            return lambda: self.of_vectors(instr, lanes), []
        operands = [a.id for a in instr.args]
        if lanes and instr.op == "select" and not lanes_of(instr.args[0].dtype):  # one condition for all lanes
            return _chosen, operands
        return reference.operation(instr), operands

    def of_vectors(self, instr: Instr, lanes: int) -> np.ndarray:
        """The value of an instruction that has vectors alone."""
        at = [self.every(a) for a in instr.args]
        if instr.op == "splat":
            return _filled(at[0][:, None], (self.total, lanes))
        if instr.op == "first":
            return _numbers(lanes) < at[0][:, None]
        if instr.op in ("add_pairs", "add_quads"):
            return getattr(reference, instr.op)(*at)
        if instr.op == "extract":
            return at[0][:, instr.const]
        if instr.op == "pack":
            return np.stack(at, axis=1)
        if instr.op == "aligned":
            return at[0] % instr.const == 0
        return np.concatenate(at, axis=1)[:, list(instr.const)]

    def of_team(self, instr: Instr, mask: np.ndarray) -> np.ndarray:
        """The value of an instruction of teams."""
        assert isinstance(self.of, Kernel)
        number = np.arange(self.total) % (self.of.team if instr.op == "thread" else TEAM)
        if instr.op in ("lane", "thread"):
            return number
        self.together(instr.op, mask, TEAM)
        if instr.op == "mma":
            return mma(str(instr.const), *[self.every(a) for a in instr.args])
        values = self.every(instr.args[0])
        if instr.op == "leading":
            return values[np.arange(self.total) - number]
        return values[np.arange(self.total) + np.where(number + instr.const < TEAM, instr.const, 0)]

    def together(self, what: str, mask: np.ndarray, team: int) -> np.ndarray:
        """Requires that of teams of so many threads all come to something together, or none; which teams do."""
        there = mask.reshape(-1, team)
        if (there.any(1) & ~there.all(1)).any():
            raise ValueError(f"{self.of.name}: {what}: some threads of a team are elsewhere")
        return there[:, 0]

    def barrier(self, statement: Barrier, mask: np.ndarray) -> None:
        """Has the threads of blocks wait for one another."""
        assert isinstance(self.of, Kernel)
        teams = self.together("barrier", mask, self.of.team)
        for shared in self.shared:
            shared.settle(teams)

    def loop(self, loop: For, mask: np.ndarray) -> None:
        """Runs a loop as long as some iterations have rounds left."""
        index, end = self.every(loop.lo), self.every(loop.hi)
        down = isinstance(loop.step, int) and loop.step < 0
        step = loop.step if isinstance(loop.step, int) else self.every(loop.step)
        self.left.append(np.zeros(self.total, bool))
        while True:
            inside = mask & ~self.left[-1] & ((index > end) if down else (index < end))
            if not np.count_nonzero(inside):
                break
            self.values[loop.index.id] = index
            self.block(loop.body, inside)
            index = index + step
        self.left.pop()

    # -- memory -----------------------------------------------------------------------------------
    def base(self, ptr: Pointer) -> np.ndarray | np.int64:
        """Where the memory of a pointer begins, for each iteration or all."""
        if ptr.at is not None:
            return self.values[ptr.at.id]
        if isinstance(self.of, Kernel) and ptr is self.of.args:
            return self.args
        if ptr.slot is None:
            return self.scratch[ptr.name]
        if ptr.slot not in self.bases:
            self.bases[ptr.slot] = self.space.load(np.atleast_1d(self.args + 8 * ptr.slot), dt.int64)
        return self.bases[ptr.slot]

    def address(self, ptr: Pointer, index: Scalar) -> np.ndarray:
        """The addresses of an element, one for each iteration."""
        addresses = self.base(ptr) + self.values[index.id] * ptr.dtype.np.itemsize
        return addresses if addresses.shape == (self.total,) else _filled(addresses, (self.total,))

    def accessed(self, access: Load | Store, value: Scalar, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The addresses that an access touches, and where they are among those of all iterations; None for all."""
        addresses, lanes = self.address(access.ptr, access.index), lanes_of(value.dtype)
        touched = None if self.everywhere(mask) else mask
        if access.ptr.size:
            index = self.every(access.index)
            index = index if touched is None else index[mask]
            if index.min() < 0 or index.max() + max(lanes, 1) > access.ptr.size:
                raise self.outside(access, mask)
        if access.aligned and (addresses[mask] % (lanes * access.ptr.dtype.np.itemsize)).any():
            raise ValueError(f"{self.of.name}: {access.ptr.name or 'memory'} is not aligned as an access says")
        if lanes:
            addresses = addresses[:, None] + _numbers(lanes, access.ptr.dtype.np.itemsize)
            if access.mask is not None:
                touched = self.every(access.mask) & mask[:, None]
            elif touched is not None:
                touched = np.broadcast_to(mask[:, None], addresses.shape)
        addresses = addresses if touched is None else addresses[touched]
        for shared in self.shared:
            if shared.touch(addresses, touched, isinstance(access, Store)):
                raise ValueError(f"{self.of.name}: {shared.name} is read and written without a barrier between")
        return addresses, touched

    def outside(self, access: Load | Store, mask: np.ndarray) -> IndexError:
        """The error of an access outside of memory."""
        index = self.every(access.index)[mask]
        return IndexError(f"{access.ptr.name or 'memory'}[{index.min()}..{index.max()}] lies outside of memory")

    def load(self, load: Load, mask: np.ndarray) -> None:
        """Reads elements; what is not read is zero."""
        addresses, touched = self.accessed(load, load.out, mask)
        try:
            loaded = self.space.load(addresses, load.ptr.dtype)
        except IndexError:
            raise self.outside(load, mask) from None
        if touched is not None:
            elements = np.zeros(touched.shape, load.ptr.dtype.np)
            elements[touched] = loaded
            loaded = elements
        self.values[load.out.id] = loaded.astype(load.out.dtype.np, copy=False)

    def store(self, store: Store, mask: np.ndarray) -> None:
        """Writes the elements."""
        addresses, touched = self.accessed(store, store.value, mask)
        values = self.every(store.value)
        try:
            self.space.store(addresses, values if touched is None else values[touched], store.ptr.dtype)
        except IndexError:
            raise self.outside(store, mask) from None


# By the class of a statement.
_RUNS: dict[type, Callable[[_Frame, Any, np.ndarray], None]] = {
    Instr: _Frame.instruction, Get: _Frame.get, Set: _Frame.set, Load: _Frame.load, Store: _Frame.store,
    If: _Frame.branch, For: _Frame.loop, IntegerArgument: _Frame.argument, At: _Frame.at, Prefetch: _Frame.prefetch,
    Barrier: _Frame.barrier, Break: _Frame.leave, Room: _Frame.room, Check: _Frame.check, Fail: _Frame.fail,
    Call: _Frame.call, Invoke: _Frame.invoke, Spread: _Frame.spread,
}


@functools.cache
def _numbers(count: int, step: int = 1) -> np.ndarray:
    """0, step, 2 * step ..., `count` of them."""
    return np.arange(count) * step


def _chosen(cond: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Vectors, of which one condition for all lanes chooses."""
    return np.where(cond[..., None], x, y)


def _filled(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A value for all as one for each: what `numpy.broadcast_to` gives, in a third of its time."""
    array = np.empty(shape, value.dtype)
    array[...] = value
    return array
