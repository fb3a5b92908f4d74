"""The loop IR: an imperative, typed loop nest that every backend takes.

A kernel is a C function `int64 kernel(int64 start, int64 stop, int64* args)` over the half-open range [start, stop)
of its outermost iteration, which threads share; `args` holds addresses and integers. Its body is a list of statements
(`statements.py`): the pure instructions of `ir/scalar.py`, loads and stores, loops, conditions, mutable cells, and
checks. A `LoopFunction` is shared by kernels of one module: statements over parameters.

A kernel, once finished, holds values of the scalar compute types, vectors of these, masks and addresses. Complex
numbers are pairs of floats by then; 16-bit floats are float32 from the load to the store, which rounds once. Every
value is used inside the block that makes it or a block nested there.

**Most kernels are written an element at a time**, and the backend makes vectors of their loops. Where a schedule is
what a kernel is about, as in matrix products, it says registers, vectors and memory itself:

- A *vector* is a value of a type from `value_types.vector(dtype, lanes)`. `load(x, i, lanes)` gives one, `store` takes
  one, `splat`, `shuffle` and `const` make one, and all instructions go lane by lane, on operands with the same number
  of lanes. A comparison gives a *mask*, and so does `first(n, lanes)`; loads and stores take masks, and `select` a mask
  or one condition for all lanes.
- A *register tile* is a list of cells (`local`) of vectors: read by `get`, replaced by `set`. Cells never are memory;
  what loops carry in them stays in registers as long as there are enough.
- An *address* is a value, too: `at(x, i)` gives that of an element, and `load`, `store`, `at` and `prefetch` take an
  address wherever they take a pointer. So tiles are selected, carried in cells, and handed to functions.
- *Local memory* is `scratch(dtype, n)` for few elements, and a block `with b.room(dtype, count, most) as address` for
  as many as a run needs.
- A *team*, in a kernel from a `TeamBuilder`, is the threads of a graphics processor that run an iteration together: a
  *warp* of TEAM threads, each a lane of it, which hand values to one another; or a *block* of several warps, which
  write what they tell one another to memory that they share (`shared`), and wait for one another (`barrier`). A block
  runs other kernels, whose iterations its threads share, by `spread`.
- A *function*, from a `FunctionBuilder`, is recorded once and run by `invoke(function, ...)`; `call` runs a kernel of
  the same module. What depends on how large a tile is, is Python: a schedule is called with the numbers, and records.

This module owns the builders. What loops a given op needs is the schedules' affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from twofold.ir import dtypes as dt
from twofold.ir.data_class import data_class
from twofold.ir.dtypes import DType
from twofold.ir.instructions import Immediate, ScalarLike
from twofold.ir.scalar import Instr, Scalar, ScalarBuilder, ScalarFunction

from . import value_types
from .statements import (
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
    blocks,
    instruction_count,
    result_of,
    shared_bytes,
    uses,
)
from .value_types import Address, Vector

__all__ = ["TEAM", "Cell", "BlockBuilder", "LoopBuilder", "TeamBuilder", "FunctionBuilder", "Kernel", "LoopFunction",
           "Pointer", "instruction_count"]

TEAM = 32  # threads that a GPU runs in lockstep, a warp


@data_class()
class Cell:
    """A mutable variable of a kernel, declared with its first value."""

    builder: BlockBuilder
    dtype: DType
    vars: tuple[int, ...]

    def get(self) -> Scalar:
        """The value held at this point."""
        b = self.builder
        if self.dtype.is_complex:
            re, im = (b.read_variable(v, self.dtype.real_dtype) for v in self.vars)
            return b.complex(re, im)
        return b.read_variable(self.vars[0], self.dtype)

    def set(self, value: ScalarLike) -> None:
        b = self.builder
        value = b.coerce(value, self.dtype)
        if value.dtype is not self.dtype:
            raise TypeError(f"a cell of {self.dtype.short} cannot take {value.dtype.short}")
        parts = (b.real(value), b.imag(value)) if self.dtype.is_complex else (value,)
        for var, part in zip(self.vars, parts, strict=True):
            b.append(Set(var, part))


class BlockBuilder(ScalarBuilder):
    """Records statements: a scalar builder that also has memory, loops, variables, vectors and addresses."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self._scratch: list[Pointer] = []
        self._codes: list[str] = []
        self._vars = 0
        self._blocks: list[list[Statement]] = [[]]

    # -- memory -----------------------------------------------------------------------------------
    def scratch(self, dtype: DType, n: int) -> Pointer:
        """`n` uninitialised elements on the kernel's stack."""
        size = 2 * n if dtype.is_complex else n
        elements = Pointer(f"scratch{len(self._scratch)}", dtype.real_dtype, None, size)
        self._scratch.append(elements)
        return Pointer(elements.name, dtype, None, n, elements) if dtype.is_complex else elements

    @contextmanager
    def room(self, dtype: DType, count: ScalarLike, most: int) -> Iterator[Scalar]:
        """The address of `count` uninitialised elements, at most `most`, on a cache line of their own, for a block.

        They are on the stack, or from the heap if they are many and what the kernel is written for has one.
        """
        count, out = self.coerce(count, dt.int64), self.new(value_types.address(dtype))
        with self._block() as body:
            yield out
        self.append(Room(out, dtype, count, most, body))

    def view(self, ptr: Pointer, dtype: DType) -> Pointer:
        """The memory of an argument as elements of another type."""
        return ptr if ptr.dtype is dtype else Pointer(ptr.name, dtype, ptr.slot, base=ptr)

    def at(self, ptr: Pointer | Scalar, index: ScalarLike) -> Scalar:
        """The address of element `index`, which need not exist."""
        ptr, index = self._pointed(ptr), self.coerce(index, dt.int64)
        key = ("at", id(ptr) if ptr.at is None else ptr.at.id, index.id)
        out = self._memo.get(key)
        if out is None:
            out = self._memo[key] = self.new(value_types.address(ptr.dtype))
            self.append(At(out, ptr, index))
        return out

    def prefetch(self, ptr: Pointer | Scalar, index: ScalarLike, write: bool = False) -> None:
        """Asks for the cache line of element `index`, which need not exist, for reading it or for writing it."""
        self.append(Prefetch(self._pointed(ptr), self.coerce(index, dt.int64), write))

    def _pointed(self, ptr: Pointer | Scalar) -> Pointer:
        """The memory that a pointer or an address leads to."""
        if isinstance(ptr, Pointer):
            return ptr
        if not isinstance(ptr.dtype, Address):
            raise TypeError(f"{self.name}: expected a pointer or an address, got {ptr.dtype.short}")
        return Pointer("", ptr.dtype.element, at=ptr)

    def load(self, ptr: Pointer | Scalar, index: ScalarLike, lanes: int = 0, mask: Scalar | None = None,
             aligned: bool = False) -> Scalar:
        """Element `index` of `ptr`: float32 for the 16-bit floats.

        Args:
            lanes: where it is given, the vector of so many neighbours from `index` on.
            mask: its lanes that are read; the others are 0.
            aligned: whether the vector is known to lie at a multiple of its size.
        """
        ptr, index = self._pointed(ptr), self.coerce(index, dt.int64)
        if ptr.dtype.is_complex:
            part, at = _parts_of(ptr), index * 2
            return self.complex(self.load(part, at), self.load(part, at + 1))
        out = self.new(value_types.vector(ptr.dtype.compute, lanes) if lanes else ptr.dtype.compute)
        self.append(Load(out, ptr, index, mask, aligned))
        return out

    def store(self, ptr: Pointer | Scalar, index: ScalarLike, value: ScalarLike, mask: Scalar | None = None,
              aligned: bool = False) -> None:
        """Writes element `index` of `ptr`; or, of a vector, the lanes in `mask` as neighbours from there on.

        Args:
            aligned: as for `load`.
        Raises:
            TypeError: `value` is neither of the compute type of `ptr` nor float64 for a 16-bit float.
        """
        ptr, index = self._pointed(ptr), self.coerce(index, dt.int64)
        value = self.coerce(value, ptr.dtype)
        lane = value_types.lane_type(value.dtype)
        narrowed = ptr.dtype.size == 2 and ptr.dtype.is_floating and value.dtype is dt.float64
        if lane is not ptr.dtype.compute and not narrowed:
            raise TypeError(f"{self.name}: cannot store {value.dtype.short} to {ptr.dtype.short} {ptr.name}")
        if ptr.dtype.is_complex:
            part, at = _parts_of(ptr), index * 2
            self.store(part, at, self.real(value))
            self.store(part, at + 1, self.imag(value))
            return
        self.append(Store(ptr, index, value, mask, aligned))

    def local(self, init: ScalarLike, dtype: DType | None = None) -> Cell:
        """A mutable variable with a first value; `dtype` is needed where that is a Python number."""
        if not isinstance(init, Scalar):
            init = self.const(init, dtype or dt.int64)
        count = 2 if init.dtype.is_complex else 1
        cell = Cell(self, init.dtype, tuple(range(self._vars, self._vars + count)))
        self._vars += count
        cell.set(init)
        return cell

    def read_variable(self, var: int, dtype: DType) -> Scalar:
        out = self.new(dtype)
        self.append(Get(out, var))
        return out

    # -- control ----------------------------------------------------------------------------------
    @contextmanager
    def for_(self, lo: ScalarLike, hi: ScalarLike, step: Scalar | int = 1) -> Iterator[Scalar]:
        """`for i in range(lo, hi, step)`; a step that is a Scalar must be positive."""
        lo, hi, index = self.coerce(lo, dt.int64), self.coerce(hi, dt.int64), self.new(dt.int64)
        with self._block() as body:
            yield index
        self.append(For(index, lo, hi, step, body))

    @contextmanager
    def if_(self, cond: Scalar) -> Iterator[None]:
        """Runs the block where `cond` holds."""
        with self._block() as body:
            yield
        self.append(If(cond, body))

    @contextmanager
    def else_(self) -> Iterator[None]:
        """Runs the block where the condition of the `if_` right before does not hold."""
        before = self._blocks[-1][-1] if self._blocks[-1] else None
        if not isinstance(before, If) or before.otherwise:
            raise ValueError(f"{self.name}: else_ without an if_ right before")
        with self._block() as before.otherwise:
            yield

    def repeat(self, count: int, step: Callable[..., Sequence[Scalar]], *values: Scalar) -> tuple[Scalar, ...]:
        """What `count` rounds of `values = step(round, *values)` come to, as a loop."""
        number = self.local(self.const(0, values[0].dtype))
        cells = [self.local(v) for v in values]
        with self.for_(0, count):
            now = number.get()
            for cell, value in zip(cells, step(now, *[c.get() for c in cells]), strict=True):
                cell.set(value)
            number.set(now + 1.0)
        return tuple([c.get() for c in cells])

    def break_(self, cond: Scalar) -> None:
        """Leaves the innermost loop where `cond` holds."""
        if len(self._blocks) == 1:
            raise ValueError("break_ outside of a loop")
        self.append(Break(cond))

    def check(self, cond: Scalar, code: str) -> None:
        """Require `cond`. The kernel runs on and reports at its end, so what follows must be safe where it is false."""
        if code not in self._codes:
            self._codes.append(code)
        self.append(Check(cond, self._codes.index(code)))

    def call(self, kernel: Kernel | Callee, start: ScalarLike, stop: ScalarLike, args: Pointer) -> Scalar:
        """The status of a kernel, of this module or an argument, run over [start, stop) with `args`."""
        out = self.new(dt.int64)
        self.append(Call(out, kernel, self.coerce(start, dt.int64), self.coerce(stop, dt.int64), args))
        return out

    def invoke(self, function: LoopFunction, *args: ScalarLike) -> None:
        """Runs a function of this module.

        Raises:
            TypeError: the arguments are not what it takes.
        """
        values = tuple([self.coerce(a, p.dtype) for a, (_, p) in zip(args, function.params, strict=True)])
        for value, (name, param) in zip(values, function.params, strict=True):
            if value.dtype is not param.dtype:
                raise TypeError(f"{self.name}: {function.name} takes {param.dtype.short} as {name}, got "
                                f"{value.dtype.short}")
        self.append(Invoke(function, values))

    def fail(self, status: Scalar) -> None:
        """Makes the kernel's result the first `status` given here that is not 0, whatever its own checks say."""
        self.append(Fail(status))

    @contextmanager
    def _block(self) -> Iterator[list[Statement]]:
        before = len(self._memo)
        self._blocks.append([])
        yield self._blocks[-1]
        self._blocks.pop()
        while len(self._memo) > before:  # insertion order: what the block added is last
            self._memo.popitem()

    def append(self, statement: Statement) -> None:
        self._blocks[-1].append(statement)

    def _append(self, instr: Instr) -> None:
        self.append(instr)

    def _finished(self) -> list[Statement]:
        if len(self._blocks) != 1:
            raise ValueError(f"{self.name}: finish inside a block")
        # Its values know this builder: what it knows of them would keep all alive until garbage is looked for.
        self._memo.clear()
        self._parts.clear()
        return _prune(self._blocks[0], set())

    # -- vectors ----------------------------------------------------------------------------------
    def splat(self, x: Scalar, lanes: int) -> Scalar:
        """The vector with `x` in all lanes."""
        return self._emit("splat", (x,), value_types.vector(x.dtype, lanes))

    def first(self, count: ScalarLike, lanes: int) -> Scalar:
        """The mask of the first `count` lanes: none where that is negative, all where there are no more lanes."""
        return self._emit("first", (self.coerce(count, dt.int64),), value_types.vector(dt.bool_, lanes))

    def shuffle(self, x: Scalar, y: Scalar, picked: Sequence[int]) -> Scalar:
        """The lanes of `x`, and after them those of `y`, picked by number."""
        dtype = value_types.vector(value_types.lane_type(x.dtype), len(picked))
        return self._emit("shuffle", (x, y), dtype, tuple(picked))

    def extract(self, x: Scalar, lane: int) -> Scalar:
        """A lane of a vector."""
        return self._emit("extract", (x,), value_types.lane_type(x.dtype), lane)

    def pack(self, values: Sequence[Scalar]) -> Scalar:
        """The vector of some numbers."""
        return self._emit("pack", tuple(values), value_types.vector(values[0].dtype, len(values)))

    def aligned(self, address: Scalar, size: int) -> Scalar:
        """Whether an address is a multiple of `size` bytes, a power of 2."""
        return self._emit("aligned", (address,), dt.bool_, size)

    def add_pairs(self, x: Scalar, y: Scalar, total: Scalar) -> Scalar:
        """`total` and the products of the pairs of bfloat16 numbers that lanes of float32 hold, that in their high bits
        first; only for targets that have `pairs`."""
        return self._emit("add_pairs", (x, y, total), total.dtype)

    def add_quads(self, x: Scalar, y: Scalar, total: Scalar) -> Scalar:
        """`total` and the products of the four unsigned bytes in each lane of `x` with the signed ones of `y`; only for
        targets that have `quads`."""
        return self._emit("add_quads", (x, y, total), total.dtype)

    def select(self, cond: Scalar, x: ScalarLike, y: ScalarLike) -> Scalar:
        """`x` where `cond` holds, else `y`; of vectors lane by lane, or for all lanes."""
        if not isinstance(cond.dtype, Vector):
            return super().select(cond, x, y)
        dtype = next(v.dtype for v in (x, y) if isinstance(v, Scalar))
        return self._emit("select", (cond, self.coerce(x, dtype), self.coerce(y, dtype)), dtype)

    # -- scalar bodies ----------------------------------------------------------------------------
    def _emit(self, op: str, args: tuple[Scalar, ...], dtype: DType, const: Immediate = None) -> Scalar:
        if op == "select" and dtype.is_complex:
            cond, x, y = args
            return self.complex(self.select(cond, self.real(x), self.real(y)),
                                self.select(cond, self.imag(x), self.imag(y)))
        if args and isinstance(args[0].dtype, Vector) and op not in VECTOR_OPS:  # a comparison or conversion
            dtype = value_types.like(dtype, args[0].dtype)
        return super()._emit(op, args, dtype, const)

    def inline(self, fn: ScalarFunction, *values: Scalar) -> tuple[Scalar, ...]:
        """Records `fn` here for the given arguments; returns its results."""
        recorded = {p.id: v for p, v in zip(fn.params, values, strict=True)}
        for instr in fn.instrs:
            args = tuple(recorded[a.id] for a in instr.args)
            if instr.op in ("complex", "real", "imag"):
                recorded[instr.out.id] = getattr(self, instr.op)(*args)
            else:
                recorded[instr.out.id] = self._emit(instr.op, args, instr.out.dtype, instr.const)
        for cond, code in fn.checks:
            self.check(recorded[cond.id], code)
        return tuple(recorded[r.id] for r in fn.results)


class LoopBuilder(BlockBuilder):
    """Records a kernel: statements over a range, with what the args array holds.

    >>> from twofold.ir import dtypes as dt
    >>> b = LoopBuilder("double")
    >>> out, x = b.pointer("out", dt.float32), b.pointer("x", dt.float32)
    >>> with b.for_(b.start, b.stop) as i:
    ...     v = b.load(x, i)
    ...     b.store(out, i, v + v)
    >>> print(b.finish())
    kernel double(start, stop, out: f32* = args[0], x: f32* = args[1]) {
      for %0 in start..stop {
        %1 = load x[%0]
        %2 = add %1 %1 : f32
        store out[%0] = %2
      }
    }
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.start = self.new(dt.int64)
        self.stop = self.new(dt.int64)
        self.args = Pointer("args", dt.int64)
        self.pointers: list[Pointer] = []
        self._slots = 0
        self._late = 0

    # -- parameters -------------------------------------------------------------------------------
    def pointer(self, name: str, dtype: DType) -> Pointer:
        """The next argument: the address of elements of `dtype`."""
        pointer = Pointer(name, dtype, self._slots)
        self._slots += 1
        self.pointers.append(pointer)
        return pointer

    def integer(self) -> Scalar:
        """The next argument: an integer, read where the kernel begins."""
        if len(self._blocks) > 1:
            raise ValueError("integer arguments are read at the top of a kernel")
        out = self.new(dt.int64)
        self.append(IntegerArgument(out, self._slots))
        self._slots += 1
        return out

    def callee(self) -> Callee:
        """The next argument: a kernel that this one calls."""
        return Callee(self.integer())

    def late_integer(self) -> Scalar:
        """The next argument, asked for inside a block: an integer, read where the kernel begins."""
        out = self.new(dt.int64)
        self._blocks[0].insert(self._late, IntegerArgument(out, self._slots))
        self._late += 1
        self._slots += 1
        return out

    def stride(self) -> Scalar:
        """The next argument: a stride, passed less 1.

        A sum is not a plain argument to LLVM, which would guess that it is 1, specialise the loop for that, and leave
        all other strides scalar.
        """
        return self.integer() + 1

    @property
    def next_slot(self) -> int:
        """How many arguments have been declared: where a table at the end of the args array begins."""
        return self._slots

    def finish(self) -> Kernel:
        """The recorded kernel, without the instructions whose results nothing uses."""
        body = self._finished()
        return Kernel(self.name, self.start, self.stop, self.args, self.pointers, self._scratch, body,
                      tuple(self._codes))


class TeamBuilder(LoopBuilder):
    """Records a kernel for a GPU, whose outermost iterations each belong to a team of threads: a warp or a block.

    All threads of a warp come to `further` and `leading` together, and all of a block to `barrier`: these stand in no
    condition, and no loop, that some of the threads are in and others are not.

    >>> from twofold.ir import dtypes as dt
    >>> b = TeamBuilder("last")
    >>> out, x = b.pointer("out", dt.float32), b.pointer("x", dt.float32)
    >>> with b.for_(b.start, b.stop) as row:
    ...     b.store(out, row, b.further(b.load(x, row * TEAM + b.lane()), TEAM - 1))
    >>> print(b.finish())
    kernel last(start, stop, out: f32* = args[0], x: f32* = args[1]) of teams of 32 {
      for %0 in start..stop {
        %1 = mul %0 32 : i64
        %2 = lane : i64
        %3 = add %1 %2 : i64
        %4 = load x[%3]
        %5 = further %4 31 : f32
        store out[%0] = %5
      }
    }
    """

    def __init__(self, name: str, threads: int = TEAM) -> None:
        """Args:
            threads: of a team; a warp, or several.
        """
        super().__init__(name)
        self.threads = threads
        self._shared: list[Pointer] = []
        self._room: Pointer | None = None

    def thread(self) -> Scalar:
        """The number of this thread in its team."""
        return self.lane() if self.threads == TEAM else self._emit("thread", (), dt.int64)

    def lane(self) -> Scalar:
        """The number of this thread in its warp."""
        return self._emit("lane", (), dt.int64)

    def shared(self, dtype: DType, n: int) -> Pointer:
        """`n` uninitialised elements that the threads of a team share, at a multiple of 16 bytes.

        What a thread has written, others read only behind a barrier, and what others have read, it writes only behind
        one.
        """
        size = 2 * n if dtype.is_complex else n
        elements = Pointer(f"shared{len(self._shared)}", dtype.real_dtype, None, size)
        self._shared.append(elements)
        return Pointer(elements.name, dtype, None, n, elements) if dtype.is_complex else elements

    def barrier(self) -> None:
        """Has the threads of a block wait for one another."""
        self.append(Barrier())

    def spread(self, kernel: Kernel, total: ScalarLike, args: Sequence[Scalar], status: Scalar | None = None) -> None:
        """Runs a kernel over [0, total), shared by the threads of this block; see `statements.Spread`.

        Args:
            args: what fills the kernel's args array: addresses and integers.
            status: the address of its status word.
        """
        need = shared_bytes(*kernel.shared)
        if need and self._room is None:
            self._room = self.shared(dt.uint8, 0)
        if self._room is not None:
            self._room.size = max(self._room.size, need)
        self.append(Spread(kernel, self.coerce(total, dt.int64), tuple(args), status, self._room if need else None))

    def further(self, x: Scalar, n: int) -> Scalar:
        """The `x` of the thread `n` further on in the warp, and this one's own where there is none."""
        return self._of_team("further", x, n)

    def leading(self, x: Scalar) -> Scalar:
        """The `x` of the first thread of the warp."""
        return self._of_team("leading", x)

    def mma(self, of: str, x: Scalar, y: Scalar, z: Scalar) -> Scalar:
        """This thread's fragment of z + x y, by the warp's tensor core.

        Thread 4g + t has of x, 16 rows of 8 words, those at (g, t), (g + 8, t), (g, t + 4) and (g + 8, t + 4); of y,
        8 words by 8 columns, those at (t, g) and (t + 4, g); of z and the result, 16 rows by 8 columns of float32,
        those at (g, 2t), (g, 2t + 1), (g + 8, 2t) and (g + 8, 2t + 1).

        Args:
            of: what a word of 32 bits holds: "tf32", a float32 whose last 13 bits do not count; "bf16" or "f16", two
                such numbers that follow one another along the inner index, the first in the low bits.
        """
        return self._emit("mma", (x, y, z), z.dtype, of)

    def _of_team(self, op: str, x: Scalar, n: int | None = None) -> Scalar:
        if x.dtype.is_complex:
            return self.complex(self._of_team(op, self.real(x), n), self._of_team(op, self.imag(x), n))
        return self._emit(op, (x,), x.dtype, n)

    def finish(self) -> Kernel:
        kernel = super().finish()
        kernel.team, kernel.shared = self.threads, self._shared
        return kernel


class FunctionBuilder(BlockBuilder):
    """Records a function.

    >>> from twofold.ir import dtypes as dt
    >>> b = FunctionBuilder("scale")
    >>> x, factor = b.parameter("x", value_types.address(dt.float32)), b.parameter("factor", dt.float32)
    >>> mask = b.first(3, 4)
    >>> b.store(x, 0, b.load(x, 0, 4, mask) * b.splat(factor, 4), mask)
    >>> print(b.finish())
    function scale(x: f32*, factor: f32) {
      %0 = first 3 : i1x4
      %1 = load x[0] where %0 : f32x4
      %2 = splat factor : f32x4
      %3 = mul %1 %2 : f32x4
      store x[0] where %0 = %3
    }
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._params: list[tuple[str, Scalar]] = []

    def parameter(self, name: str, dtype: DType) -> Scalar:
        """The next parameter: a number or an address."""
        value = self.new(dtype)
        self._params.append((name, value))
        return value

    def finish(self) -> LoopFunction:
        """The recorded function, without the instructions whose results nothing uses."""
        return LoopFunction(self.name, tuple(self._params), self._scratch, self._finished())


def _parts_of(ptr: Pointer) -> Pointer:
    """The memory of a complex pointer as the floats it consists of."""
    return ptr.base or Pointer(ptr.name, ptr.dtype.real_dtype, ptr.slot, 0)


def _prune(block: list[Statement], used: set[int]) -> list[Statement]:
    """`block` without dead values; `used` gathers the ids of values that are read."""
    live: list[Statement] = []
    for statement in reversed(block):
        if type(statement) is Instr:  # most of all
            if statement.out.id in used:
                used.update([value.id for value in statement.args])
                live.append(statement)
            continue
        out = None if isinstance(statement, Call) else result_of(statement)
        if out is not None and out.id not in used:
            continue
        if isinstance(statement, (For, If, Room)):
            if isinstance(statement, If):
                statement.otherwise = _prune(statement.otherwise, used)
            statement.body = _prune(statement.body, used)
            if not any(blocks(statement)):
                continue
        for value in uses(statement):
            used.add(value.id)
        live.append(statement)
    return live[::-1]
