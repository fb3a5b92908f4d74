"""Kernels run by NumPy, all iterations of their range at once: slow and exact, without machine code.

Every value of a kernel is an array with a lane for each iteration of the outermost range, which the lanes go through in
lockstep, as the threads of a graphics processor do. Instructions are those of `ir/reference.py`, memory is bytes. What
a kernel leaves behind does not depend on how its range is split, so this gives the bits that every backend must give,
and tells what is wrong with a kernel or a plan where another backend's result differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from twofold.ir import reference
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Instr, Value

from .loop import Break, Check, Fail, For, Get, If, Kernel, Load, Pointer, Set, Slot, Statement, Store

__all__ = ["Memory", "run"]



class Memory(NamedTuple):
    """What a pointer points into, as bytes, and the byte that it points to."""

    held: np.ndarray
    at: int = 0

    def beside(self, offset: int) -> Memory:
        """The memory so many bytes further on."""
        return Memory(self.held, self.at + offset)


def run(kernel: Kernel, total: int, args: Sequence[Memory | int]) -> int:
    """Runs a kernel over [0, total); gives its status.

    Args:
        kernel: one that calls no others.
        args: what fills its args array: memory for each pointer, and integers.
    """
    if total <= 0:
        return 0
    lanes = _Lanes(kernel, total, args)
    with np.errstate(all="ignore"):
        lanes.block(kernel.body, np.ones(total, bool))
    return min(lanes.failed) + 1 if lanes.failed else lanes.status


class _Lanes:
    """The state of a run: for each value an array with an element for each lane, or one for all."""

    def __init__(self, kernel: Kernel, total: int, args: Sequence[Any]) -> None:
        self.total, self.kernel, self.args = total, kernel, args
        start = np.arange(total, dtype=np.int64)
        self.values: dict[int, np.ndarray] = {kernel.start.id: start, kernel.stop.id: start + 1}
        self.variables: dict[int, np.ndarray] = {}
        self.scratch = {p.name: np.zeros((total, p.size), p.dtype.np) for p in kernel.scratch}
        self.left: list[np.ndarray] = []  # for each loop around, the lanes that have left it
        self.failed: set[int] = set()
        self.status = 0

    def every(self, value: Value) -> np.ndarray:
        """A value with an element for each lane."""
        return np.broadcast_to(self.values[value.id], (self.total,))

    def block(self, block: list[Statement], mask: np.ndarray) -> None:
        for statement in block:
            self.statement(statement, mask & ~self.left[-1] if self.left else mask)

    def statement(self, statement: Statement, mask: np.ndarray) -> None:
        match statement:
            case Instr(out=out):
                self.values[out.id] = reference.apply(statement, self.values)
            case Slot(out=out, index=index):
                self.values[out.id] = np.int64(self.args[index])  # type: ignore[assignment]
            case Load(out=out, ptr=ptr, index=index):
                self.values[out.id] = self.load(ptr, self.every(index), mask).astype(out.dtype.np)
            case Store(ptr=ptr, index=index, value=value):
                self.store(ptr, self.every(index)[mask], self.every(value)[mask], mask)
            case Set(var=var, value=value):
                new, old = self.every(value), self.variables.get(var)
                self.variables[var] = new if old is None else np.where(mask, new, old)
            case Get(out=out, var=var):
                self.values[out.id] = self.variables[var]
            case For():
                self.loop(statement, mask)
            case If(cond=cond, body=body):
                inside = mask & self.every(cond)
                if inside.any():
                    self.block(body, inside)
            case Break(cond=cond):
                self.left[-1] = self.left[-1] | (mask & self.every(cond))
            case Check(cond=cond, code=code):
                if (mask & ~self.every(cond)).any():
                    self.failed.add(code)
            case Fail(status=status):
                told = self.every(status)[mask]
                self.status = self.status or next((int(s) for s in told if s), 0)
            case _:
                raise NotImplementedError(f"lockstep: a kernel of a plan does not {type(statement).__name__.lower()}")

    def loop(self, loop: For, mask: np.ndarray) -> None:
        index, end = self.every(loop.lo), self.every(loop.hi)
        down = isinstance(loop.step, int) and loop.step < 0
        step = loop.step if isinstance(loop.step, int) else self.every(loop.step)
        self.left.append(np.zeros(self.total, bool))
        while True:
            inside = mask & ~self.left[-1] & ((index > end) if down else (index < end))
            if not inside.any():
                break
            self.values[loop.index.id] = index
            self.block(loop.body, inside)
            index = index + step
        self.left.pop()

    def load(self, ptr: Pointer, index: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """The elements at `index`; anything where `mask` is false."""
        result = np.zeros(self.total, ptr.dtype.np)
        if ptr is self.kernel.args:
            integers = np.array([a if isinstance(a, int) else 0 for a in self.args], np.int64)
            result[mask] = integers[index[mask]]
        elif ptr.slot is None:
            result[mask] = self.scratch[ptr.name][mask, index[mask]]
        else:
            elements, places = self.elements(ptr, index[mask])
            result[mask] = elements[places]
        return result

    def store(self, ptr: Pointer, index: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
        rounded = _rounded(values, ptr.dtype)
        if ptr.slot is None:
            self.scratch[ptr.name][mask, index] = rounded
        else:
            elements, places = self.elements(ptr, index)
            elements[places] = rounded

    def elements(self, ptr: Pointer, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What a pointer points into, as elements of its type, and which of them are those at `index`.

        Raises:
            IndexError: one lies outside. (NumPy would count negative numbers from the end.)
        """
        memory: Memory = self.args[ptr.slot]  # type: ignore[index]
        size = ptr.dtype.np.itemsize
        held = memory.held[memory.at % size:]
        elements = held[:len(held) // size * size].view(ptr.dtype.np)
        places = index + memory.at // size
        if len(index) and (places.min() < 0 or places.max() >= len(elements)):
            raise IndexError(f"{ptr.name}[{index.min()}..{index.max()}] lies outside of memory")
        return elements, places


def _rounded(values: np.ndarray, dtype: DType) -> np.ndarray:
    """`values` as memory of `dtype` holds them, rounded once."""
    if values.dtype == np.float64 and dtype.name == "bfloat16":  # whose conversion goes by way of float32
        values = _odd(values)
    return values.astype(dtype.np)


def _odd(x: np.ndarray) -> np.ndarray:
    """float32 of float64, toward zero, with the last bit set where anything was lost: rounding it again to fewer bits
    is then rounding once (Boldo and Melquiond, 2008)."""
    near = x.astype(np.float32)
    bits = near.view(np.uint32)
    bits = np.where(np.abs(near.astype(np.float64)) > np.abs(x), bits - np.uint32(1), bits)
    toward = bits.view(np.float32)
    lost = np.isfinite(x) & (toward.astype(np.float64) != x)
    return np.where(lost, bits | np.uint32(1), bits).view(np.float32)
