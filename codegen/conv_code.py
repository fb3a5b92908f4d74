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
from . import target as targets
from .conv_shapes import symbol
from .gemm_shapes import Tiling, panel_width

__all__ = ["Code", "ConvKernel", "looped", "size_of", "BYTE", "I64", "POINTER", "VOID"]

BYTE, I32, I64, POINTER, VOID = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.PointerType(), ir.VoidType()


class Code(ir.IRBuilder):
    """A builder at the start of a new function."""

    def __init__(self, module: ir.Module, name: str, result: ir.Type, arguments: list[ir.Type], internal: bool = True):
        self.fn = ir.Function(module, ir.FunctionType(result, arguments), name)
        self.fn.attributes.add("nounwind")
        if internal:
            self.fn.linkage = "internal"
            self.fn.attributes.add("noinline")
        super().__init__(self.fn.append_basic_block("entry"))

    def at(self, base: Any, index: Any, kind: ir.Type) -> Any:
        """The address of element `index` of the array of `kind` at `base`."""
        return self.gep(base, [I64(index) if isinstance(index, int) else index], source_etype=kind)

    def element(self, base: Any, index: Any, kind: ir.Type) -> Any:
        """That element."""
        return self.load(self.at(base, index, kind), typ=kind)

    def less(self, x: Any, y: Any) -> Any:
        """Whether x < y, for signed integers."""
        return self.icmp_signed("<", x, y)

    def least(self, x: Any, y: Any) -> Any:
        """The smaller of two signed integers."""
        return self.select(self.less(x, y), x, y)

    def most(self, x: Any, y: Any) -> Any:
        """The larger of two signed integers."""
        return self.select(self.less(x, y), y, x)

    def each(self, start: Any, stop: Any, step: Any, body: Callable[[Any], None]) -> None:
        """Runs `body(index)` for start, start + step, ... below stop."""
        before, test, inside, after = self.block, *(self.fn.append_basic_block() for _ in range(3))
        self.branch(test)
        self.position_at_end(test)
        index = self.phi(I64)
        index.add_incoming(start, before)
        self.cbranch(self.less(index, stop), inside, after)
        self.position_at_end(inside)
        body(index)
        index.add_incoming(self.add(index, step), self.block)
        self.branch(test)
        self.position_at_end(after)

    def room(self, kind: ir.Type, count: int) -> Any:
        """The address of `count` elements on the stack, on a cache line of their own."""
        held = self.alloca(ir.ArrayType(kind, count))
        held.align = 64
        return self.inttoptr(self.ptrtoint(held, I64), POINTER)

    def mask(self, count: Any, lanes: int) -> Any:
        """The mask of the first `count` lanes; none for a negative count, all for a large one."""
        count = self.select(self.less(count, I64(0)), I64(0), self.least(count, I64(lanes)))
        bits = self.sub(self.shl(I64(1), count), I64(1))
        return self.bitcast(self.trunc(bits, ir.IntType(lanes)), ir.VectorType(ir.IntType(1), lanes))

    def vector(self, base: Any, kind: ir.VectorType, mask: Any = None) -> Any:
        """The vector at `base`, aligned as an element is; 0 in lanes that are masked out."""
        size = size_of(kind.element)
        if mask is None:
            return self.load(base, typ=kind, align=size)
        name = f"llvm.masked.load.v{kind.count}{_suffix(kind.element)}.p0"
        fn = self._declared(name, ir.FunctionType(kind, [POINTER, I32, mask.type, kind]))
        return self.call(fn, [base, I32(size), mask, ir.Constant(kind, None)])

    def put(self, value: Any, base: Any, mask: Any = None) -> None:
        """Stores the lanes of `value` that `mask` has."""
        kind = value.type
        size = size_of(kind.element)
        if mask is None:
            self.store(value, base, align=size)
            return
        name = f"llvm.masked.store.v{kind.count}{_suffix(kind.element)}.p0"
        fn = self._declared(name, ir.FunctionType(VOID, [kind, POINTER, I32, mask.type]))
        self.call(fn, [value, base, I32(size), mask])

    def fetch(self, address: Any, write: bool = False) -> None:
        """Asks the second cache for the line at `address`, or the first if it is to be written. It may be no memory."""
        fn = self._declared("llvm.prefetch.p0", ir.FunctionType(VOID, [POINTER, I32, I32, I32]))
        self.call(fn, [address, I32(int(write)), I32(3 if write else 2), I32(1)])

    def spread(self, x: Any, lanes: int) -> Any:
        """The vector with `x` in all lanes."""
        kind = ir.VectorType(x.type, lanes)
        one = self.insert_element(ir.Constant(kind, ir.Undefined), x, I32(0))
        return self.shuffle(one, one, [0] * lanes)

    def shuffle(self, x: Any, y: Any, lanes: list[int]) -> Any:
        """The given lanes of `x` and `y` put together."""
        return self.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """x y + z on vectors, rounded once; where the target has no instruction for it, the product is rounded too."""
        if not targets.current().fused:
            return self.fadd(self.fmul(x, y), z)
        kind = x.type
        name = f"llvm.fma.v{kind.count}{_suffix(kind.element)}"
        return self.call(self._declared(name, ir.FunctionType(kind, [kind] * 3)), [x, y, z])

    def _declared(self, name: str, kind: ir.FunctionType) -> Any:
        return self.module.globals.get(name) or ir.Function(self.module, kind, name)


def _suffix(kind: ir.Type) -> str:
    return {"float": "f32", "double": "f64"}.get(str(kind), str(kind))


def size_of(kind: ir.Type) -> int:
    """Bytes of a number of type `kind`."""
    return {"float": 4, "double": 8}.get(str(kind)) or int(str(kind)[1:]) // 8


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
