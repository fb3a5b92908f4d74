"""What both kernels of convolutions (`conv_forward.py`, `conv_filters.py`) are written with.

How their arguments are laid out is `conv_shapes.py`'s.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from twofold.ir.dtypes import DType

from . import llvm_ops
from .conv_shapes import symbol
from .gemm_shapes import Tiling, panel_width
from .gemm_tile import I64, POINTER, Code, size_of

__all__ = ["ConvKernel", "looped", "BYTE"]

BYTE = ir.IntType(8)


class ConvKernel(abc.ABC):
    """A kernel being written: its arguments, and what both have in common."""

    def __init__(self, module: ir.Module, dtype: DType, shape: Tiling, name: str, vectors: int,
                 words: tuple[str, ...]) -> None:
        self.module, self.dtype, self.shape = module, dtype, shape
        self.kind, self.lanes = llvm_ops.llvm_type(dtype), shape.lanes
        self.size = size_of(self.kind)
        self.width = panel_width(shape, False)
        self.vector = ir.VectorType(self.kind, self.lanes)
        self.name, self.vectors, self.words = f"{name}_{vectors}", range(1, vectors + 1), words

    @abc.abstractmethod
    def write(self) -> None:
        """Writes the kernel."""

    def begin(self) -> Code:
        """The function, its arguments loaded into attributes of this object's `v`."""
        c = Code(self.module, symbol(self.name, self.dtype), I64, [I64, I64, POINTER], internal=False)
        loaded = {word: c.element(c.fn.args[2], n, I64) for n, word in enumerate(self.words)}
        for name in ("out", "x", "b"):
            loaded[name] = c.inttoptr(loaded[name], POINTER)
        self.v: Any = type("Arguments", (), loaded)
        return c

    def bytes(self, c: Code, elements: Any) -> Any:
        return c.mul(elements, I64(self.size))

    def line(self, c: Code, number: Any) -> Any:
        """Where line `number` of a window begins, in bytes."""
        v = self.v
        rest = c.udiv(number, v.lines_x)
        z = c.udiv(rest, v.lines_y)
        x, y = c.sub(number, c.mul(rest, v.lines_x)), c.sub(rest, c.mul(z, v.lines_y))
        return self.bytes(c, c.add(c.add(c.mul(z, v.line_z), c.mul(y, v.line_y)), c.mul(x, v.line_x)))

    def masks(self, c: Code, n: Any, vectors: int) -> list[Any]:
        return [c.mask(c.sub(n, I64(j * self.lanes)), self.lanes) for j in range(vectors)]

    def rows_of(self, c: Code, address: Any, vectors: int, masks: list[Any]) -> list[Any]:
        """The vectors of B at `address`."""
        return [c.vector(c.at(address, j * self.lanes, self.kind), self.vector,
                         masks[j] if self.shape.masks else None) for j in range(vectors)]

    def add(self, c: Code, sums: list[Any], out: Any, masks: list[Any], fresh: Any) -> None:
        """Adds sums to a row of the result, which holds nothing yet where `fresh`, an i1, says so."""
        here, before, after = c.block, c.fn.append_basic_block(), c.fn.append_basic_block()
        c.cbranch(fresh, after, before)
        c.position_at_end(before)
        olds = [c.vector(c.at(out, j * self.lanes, self.kind), self.vector, masks[j]) for j in range(len(sums))]
        before = c.block
        c.branch(after)
        c.position_at_end(after)
        held = [c.phi(self.vector) for _ in olds]
        for phi, old in zip(held, olds, strict=True):
            phi.add_incoming(ir.Constant(self.vector, None), here)
            phi.add_incoming(old, before)
        for j, (phi, sum_) in enumerate(zip(held, sums, strict=True)):
            c.put(c.fadd(phi, sum_), c.at(out, j * self.lanes, self.kind), masks[j])

    def by_width(self, c: Code, columns: Any, write: Callable[[int], None]) -> None:
        """Code that depends on how many vectors so many columns take: `write(vectors)` writes it."""
        done = c.fn.append_basic_block()
        for vectors in self.vectors[:-1]:
            this, wider = c.fn.append_basic_block(), c.fn.append_basic_block()
            c.cbranch(c.icmp_signed("<=", columns, I64(vectors * self.lanes)), this, wider)
            c.position_at_end(this)
            write(vectors)
            c.branch(done)
            c.position_at_end(wider)
        write(self.vectors[-1])
        c.branch(done)
        c.position_at_end(done)

    def zeros(self, count: int) -> list[Any]:
        return [ir.Constant(self.vector, None)] * count


def looped(c: Code, start: list[Any], more: Callable[[list[Any]], Any],
           body: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """Replaces values by `body(values)` while `more(values)`."""
    before, test, inside, after = c.block, *(c.fn.append_basic_block() for _ in range(3))
    c.branch(test)
    c.position_at_end(test)
    phis = [c.phi(value.type) for value in start]
    for phi, value in zip(phis, start, strict=True):
        phi.add_incoming(value, before)
    c.cbranch(more(phis), inside, after)
    c.position_at_end(inside)
    for phi, value in zip(phis, body(phis), strict=True):
        phi.add_incoming(value, c.block)
    c.branch(test)
    c.position_at_end(after)
    return phis
