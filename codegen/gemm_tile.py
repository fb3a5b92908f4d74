"""The micro-kernel of the matrix product as an LLVM function, and the builder that its parts are written with.

A *micro-kernel* keeps a tile of C in registers, `rows` by `vectors` vectors, and runs over one block of the inner
dimension. It reads rows of A and columns of B as they lie, where one of their strides is 1, or *panels*: for each inner
index, neighbouring rows of A (or columns of B) side by side.

Panels are made by `gemm_pack.py`; how tiles make up a product, and in which order a sum is taken, is `gemm.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from twofold.ir.dtypes import DType

from . import llvm_ops
from . import target as targets
from .gemm_shapes import Tiling

__all__ = ["Code", "micro", "size_of", "POINTER", "I64", "I32", "VOID", "LINE"]

LINE = 64  # bytes that are fetched as one
_HURRIED = 100  # inner indices below which C is not there by itself when it is to be written
I64, POINTER, VOID, I32 = ir.IntType(64), ir.PointerType(), ir.VoidType(), ir.IntType(32)


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


def micro(module: ir.Module, tiling: Tiling, dtype: DType, rows: int, vectors: int) -> ir.Function:
    """The micro-kernel `(A, a_m, a_k, B, ldb, old, ldo, C, ldc, k, m, n, next)`: C = old + A B on a tile.

    The sum over k is taken in order. `next` is where the B of a later call begins, which is fetched meanwhile.

    Args:
        module: takes the function.
        dtype: float32 or float64.
        rows, vectors: the largest tile. It reads that many rows of A, and writes the first m rows and n columns.
    """
    lanes, kind = tiling.lanes, llvm_ops.llvm_type(dtype)
    vector = ir.VectorType(kind, lanes)
    arguments = [POINTER, I64, *[I64, POINTER] * 3, *[I64] * 4, POINTER]
    c = Code(module, f"micro_{rows}x{vectors}", VOID, arguments)
    a, a_m, a_k, b, ldb, old, ldo, out, ldc, k, m, n, ahead = c.fn.args
    masks = [c.mask(c.sub(n, I64(j * lanes)), lanes) for j in range(vectors)]
    places = [c.mul(a_m, I64(i)) for i in range(rows)]
    beyond = c.mul(a_m, I64(2 * rows - 1))
    zero = ir.Constant(vector, None)
    if rows == tiling.tall and vectors > 1:
        with c.if_then(c.less(k, I64(_HURRIED))):
            for i in range(rows):
                for j in range(0, vectors * lanes, LINE // size_of(kind)):
                    c.fetch(c.at(out, c.add(c.mul(ldc, I64(i)), I64(j)), kind), True)
    entry, loop, done = c.block, c.fn.append_basic_block("loop"), c.fn.append_basic_block("done")
    c.cbranch(c.less(I64(0), k), loop, done)
    c.position_at_end(loop)
    left, pa, pb, pn = c.phi(I64), c.phi(POINTER), c.phi(POINTER), c.phi(POINTER)
    sums = [[c.phi(vector) for _ in range(vectors)] for _ in range(rows)]
    right = [c.vector(c.at(pb, j * lanes, kind), vector, masks[j] if tiling.masks else None) for j in range(vectors)]
    for j in range(0, vectors * lanes, LINE // size_of(kind)):
        c.fetch(c.at(pn, j, kind))
    if rows > 1:  # where rows are neighbours, the next tile's
        c.fetch(c.at(pa, beyond, kind))
    after = []
    for i in range(rows):
        x = c.spread(c.element(pa, places[i], kind), lanes)
        after.append([c.fma(x, right[j], sums[i][j]) for j in range(vectors)])
    steps = ((left, c.sub(left, I64(1)), k), (pa, c.at(pa, a_k, kind), a), (pb, c.at(pb, ldb, kind), b),
             (pn, c.at(pn, ldb, kind), ahead))
    for phi, value, first in steps:
        phi.add_incoming(first, entry)
        phi.add_incoming(value, loop)
    for phi, value in zip(sum(sums, []), sum(after, []), strict=True):
        phi.add_incoming(zero, entry)
        phi.add_incoming(value, loop)
    c.cbranch(c.less(I64(0), steps[0][1]), loop, done)
    c.position_at_end(done)
    ends = [[c.phi(vector) for _ in range(vectors)] for _ in range(rows)]
    for phi, value in zip(sum(ends, []), sum(after, []), strict=True):
        phi.add_incoming(zero, entry)
        phi.add_incoming(value, loop)
    finish = c.fn.append_basic_block("finish")
    for i in range(rows):
        row = c.fn.append_basic_block()
        c.cbranch(c.less(I64(i), m), row, finish)
        c.position_at_end(row)
        from_, to = c.at(old, c.mul(ldo, I64(i)), kind), c.at(out, c.mul(ldc, I64(i)), kind)
        for j in range(vectors):
            before = c.vector(c.at(from_, j * lanes, kind), vector, masks[j])
            c.put(c.fadd(before, ends[i][j]), c.at(to, j * lanes, kind), masks[j])
    c.branch(finish)
    c.position_at_end(finish)
    c.ret_void()
    return c.fn
