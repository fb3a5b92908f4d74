"""The loop IR: an imperative, typed loop nest that every backend takes.

A kernel is a C function `int64 kernel(int64 start, int64 stop, int64* args)` over the half-open range [start, stop)
of its outermost iteration; `args` holds addresses and integers. Its body is a list of statements: the pure
instructions of `ir/scalar.py`, loads and stores, loops, conditions, mutable cells, and checks.

A kernel, once finished, holds values of the scalar compute types only. Complex numbers are pairs of floats by then;
16-bit floats are float32 from the load to the store, which rounds once. Every value is used inside the block that
makes it or a block nested there.

This module owns the statements, the builder and the text form. What loops a given op needs is the schedules' affair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Instr, ScalarBuilder, ScalarFunction, Value

__all__ = ["Pointer", "Cell", "Kernel", "LoopBuilder", "Load", "Store", "Slot", "Set", "Get", "For", "If", "Break",
           "Check", "Fail", "Call", "Statement", "Printer", "uses", "instruction_count"]


@dataclass(frozen=True, eq=False, slots=True)
class Pointer:
    """Typed memory. `slot` is its place in the args array, or None for `size` elements of the kernel's own stack."""

    name: str
    dtype: DType
    slot: int | None = None
    size: int = 0
    base: Pointer | None = None  # the pointer that this one views as another type


@dataclass(frozen=True, eq=False, slots=True)
class Load:
    """`out = ptr[index]`; a 16-bit float widens to float32."""

    out: Value
    ptr: Pointer
    index: Value


@dataclass(frozen=True, eq=False, slots=True)
class Store:
    """`ptr[index] = value`, rounded once where `ptr` holds 16-bit floats (from float32 or float64)."""

    ptr: Pointer
    index: Value
    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class Slot:
    """`out = args[index]`: an integer argument."""

    out: Value
    index: int


@dataclass(frozen=True, eq=False, slots=True)
class Set:
    """Gives mutable variable number `var` a value; the first Set of a variable declares it."""

    var: int
    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class Get:
    """`out` = what variable `var` holds now."""

    out: Value
    var: int


@dataclass(eq=False, slots=True)
class For:
    """`for index in range(lo, hi, step)`; a constant step may be negative."""

    index: Value
    lo: Value
    hi: Value
    step: Value | int
    body: list[Statement]


@dataclass(eq=False, slots=True)
class If:
    cond: Value
    body: list[Statement]


@dataclass(frozen=True, eq=False, slots=True)
class Break:
    """Leaves the innermost loop where `cond` holds."""

    cond: Value


@dataclass(frozen=True, eq=False, slots=True)
class Check:
    """Where `cond` is false the kernel, having run to its end, returns 1 + `code`."""

    cond: Value
    code: int


@dataclass(frozen=True, eq=False, slots=True)
class Fail:
    """The kernel, having run to its end, returns the first `status` that is not 0."""

    status: Value


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """`out = kernel(start, stop, args)` for the kernel at `address`; `args` is memory of int64."""

    out: Value
    address: Value
    start: Value
    stop: Value
    args: Pointer


Statement = Instr | Load | Store | Slot | Set | Get | For | If | Break | Check | Fail | Call


@dataclass(slots=True)
class Kernel:
    """A finished loop nest; `str` gives its text."""

    name: str
    start: Value
    stop: Value
    args: Pointer
    pointers: list[Pointer]
    scratch: list[Pointer]
    body: list[Statement]
    codes: tuple[str, ...]

    def __str__(self) -> str:
        return Printer(self).text()


@dataclass(slots=True)
class Cell:
    """A mutable variable of a kernel, declared with its first value."""

    builder: LoopBuilder
    dtype: DType
    vars: tuple[int, ...]

    def get(self) -> Value:
        """The value held at this point."""
        b = self.builder
        if self.dtype.is_complex:
            re, im = (b.read_variable(v, self.dtype.real_dtype) for v in self.vars)
            return b.complex(re, im)
        return b.read_variable(self.vars[0], self.dtype)

    def set(self, value: Any) -> None:
        b = self.builder
        value = b.coerce(value, self.dtype)
        if value.dtype is not self.dtype:
            raise TypeError(f"a cell of {self.dtype.short} cannot take {value.dtype.short}")
        parts = (b.real(value), b.imag(value)) if self.dtype.is_complex else (value,)
        for var, part in zip(self.vars, parts, strict=True):
            b.append(Set(var, part))


class LoopBuilder(ScalarBuilder):
    """Records a kernel: a scalar builder that also has memory, loops and variables.

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
        super().__init__()
        self.name = name
        self.start = self.new(dt.int64)
        self.stop = self.new(dt.int64)
        self.args = Pointer("args", dt.int64)
        self.pointers: list[Pointer] = []
        self._scratch: list[Pointer] = []
        self._codes: list[str] = []
        self._slots = 0
        self._vars = 0
        self._late = 0
        self._blocks: list[list[Statement]] = [[]]

    # -- parameters -------------------------------------------------------------------------------
    def pointer(self, name: str, dtype: DType) -> Pointer:
        """The next argument: the address of elements of `dtype`."""
        pointer = Pointer(name, dtype, self._slots)
        self._slots += 1
        self.pointers.append(pointer)
        return pointer

    def integer(self) -> Value:
        """The next argument: an integer, read where the kernel begins."""
        if len(self._blocks) > 1:
            raise ValueError("integer arguments are read at the top of a kernel")
        out = self.new(dt.int64)
        self.append(Slot(out, self._slots))
        self._slots += 1
        return out

    def late_integer(self) -> Value:
        """The next argument, asked for inside a block: an integer, read where the kernel begins."""
        out = self.new(dt.int64)
        self._blocks[0].insert(self._late, Slot(out, self._slots))
        self._late += 1
        self._slots += 1
        return out

    def stride(self) -> Value:
        """The next argument: a stride, passed less 1.

        A sum is not a plain argument to LLVM, which would guess that it is 1, specialise the loop for that, and leave
        all other strides scalar.
        """
        return self.integer() + 1

    @property
    def next_slot(self) -> int:
        """How many arguments have been declared: where a table at the end of the args array begins."""
        return self._slots

    def scratch(self, dtype: DType, n: int) -> Pointer:
        """`n` uninitialised elements on the kernel's stack."""
        size = 2 * n if dtype.is_complex else n
        held = Pointer(f"scratch{len(self._scratch)}", dtype.real_dtype, None, size)
        self._scratch.append(held)
        return Pointer(held.name, dtype, None, n, held) if dtype.is_complex else held

    # -- memory -----------------------------------------------------------------------------------
    def load(self, ptr: Pointer, index: Any) -> Value:
        """Element `index` of `ptr`: float32 for the 16-bit floats."""
        index = self.coerce(index, dt.int64)
        if ptr.dtype.is_complex:
            part, at = _parts_of(ptr), index * 2
            return self.complex(self.load(part, at), self.load(part, at + 1))
        out = self.new(ptr.dtype.compute)
        self.append(Load(out, ptr, index))
        return out

    def store(self, ptr: Pointer, index: Any, value: Any) -> None:
        """Writes element `index` of `ptr`.

        Raises:
            TypeError: `value` is neither of the compute type of `ptr` nor float64 for a 16-bit float.
        """
        index, value = self.coerce(index, dt.int64), self.coerce(value, ptr.dtype)
        narrowed = ptr.dtype.size == 2 and ptr.dtype.is_floating and value.dtype is dt.float64
        if value.dtype is not ptr.dtype.compute and not narrowed:
            raise TypeError(f"{self.name}: cannot store {value.dtype.short} to {ptr.dtype.short} {ptr.name}")
        if ptr.dtype.is_complex:
            part, at = _parts_of(ptr), index * 2
            self.store(part, at, self.real(value))
            self.store(part, at + 1, self.imag(value))
            return
        self.append(Store(ptr, index, value))

    def local(self, init: Any, dtype: DType | None = None) -> Cell:
        """A mutable variable with a first value; `dtype` is needed where that is a Python number."""
        if not isinstance(init, Value):
            init = self.const(init, dtype or dt.int64)
        count = 2 if init.dtype.is_complex else 1
        cell = Cell(self, init.dtype, tuple(range(self._vars, self._vars + count)))
        self._vars += count
        cell.set(init)
        return cell

    def read_variable(self, var: int, dtype: DType) -> Value:
        out = self.new(dtype)
        self.append(Get(out, var))
        return out

    # -- control ----------------------------------------------------------------------------------
    @contextmanager
    def for_(self, lo: Any, hi: Any, step: Any = 1) -> Iterator[Value]:
        """`for i in range(lo, hi, step)`; a step that is a Value must be positive."""
        lo, hi, index = self.coerce(lo, dt.int64), self.coerce(hi, dt.int64), self.new(dt.int64)
        with self._block() as body:
            yield index
        self.append(For(index, lo, hi, step, body))

    @contextmanager
    def if_(self, cond: Value) -> Iterator[None]:
        """Runs the block where `cond` holds."""
        with self._block() as body:
            yield
        self.append(If(cond, body))

    def break_(self, cond: Value) -> None:
        """Leaves the innermost loop where `cond` holds."""
        if len(self._blocks) == 1:
            raise ValueError("break_ outside of a loop")
        self.append(Break(cond))

    def check(self, cond: Value, code: str) -> None:
        """Require `cond`. The kernel runs on and reports at its end, so what follows must be safe where it is false."""
        if code not in self._codes:
            self._codes.append(code)
        self.append(Check(cond, self._codes.index(code)))

    def call(self, address: Value, start: Any, stop: Any, args: Pointer) -> Value:
        """The status of the kernel at `address`, run over [start, stop) with `args`."""
        out = self.new(dt.int64)
        self.append(Call(out, address, self.coerce(start, dt.int64), self.coerce(stop, dt.int64), args))
        return out

    def fail(self, status: Value) -> None:
        """Makes the kernel's result the first `status` given here that is not 0, whatever its own checks say."""
        self.append(Fail(status))

    @contextmanager
    def _block(self) -> Iterator[list[Statement]]:
        known = len(self._memo)
        self._blocks.append([])
        yield self._blocks[-1]
        self._blocks.pop()
        while len(self._memo) > known:  # insertion order: what the block added is last
            self._memo.popitem()

    def append(self, statement: Statement) -> None:
        self._blocks[-1].append(statement)

    def _append(self, instr: Instr) -> None:
        self.append(instr)

    # -- scalar bodies ----------------------------------------------------------------------------
    def _emit(self, op: str, args: tuple[Value, ...], dtype: DType, const: Any = None) -> Value:
        if op == "select" and dtype.is_complex:
            cond, x, y = args
            return self.complex(self.select(cond, self.real(x), self.real(y)),
                                self.select(cond, self.imag(x), self.imag(y)))
        return super()._emit(op, args, dtype, const)

    def inline(self, fn: ScalarFunction, *values: Value) -> tuple[Value, ...]:
        """Records `fn` here for the given arguments; returns its results."""
        known = {p.id: v for p, v in zip(fn.params, values, strict=True)}
        for instr in fn.instrs:
            args = tuple(known[a.id] for a in instr.args)
            if instr.op in ("complex", "real", "imag"):
                known[instr.out.id] = getattr(self, instr.op)(*args)
            else:
                known[instr.out.id] = self._emit(instr.op, args, instr.out.dtype, instr.const)
        for cond, code in fn.checks:
            self.check(known[cond.id], code)
        return tuple(known[r.id] for r in fn.results)

    def finish(self) -> Kernel:
        """The recorded kernel, without the instructions whose results nothing uses."""
        if len(self._blocks) != 1:
            raise ValueError(f"{self.name}: finish inside a block")
        body = _prune(self._blocks[0], set())
        return Kernel(self.name, self.start, self.stop, self.args, self.pointers, self._scratch, body,
                      tuple(self._codes))


def _parts_of(ptr: Pointer) -> Pointer:
    """The memory of a complex pointer as the floats it consists of."""
    return ptr.base or Pointer(ptr.name, ptr.dtype.real_dtype, ptr.slot, 0)


def uses(statement: Statement) -> Sequence[Value]:
    """The values that a statement reads itself, blocks apart."""
    match statement:
        case Instr(args=args):
            return args
        case Load(index=index):
            return (index,)
        case Store(index=index, value=value):
            return (index, value)
        case Set(value=value):
            return (value,)
        case For(lo=lo, hi=hi, step=step):
            return (lo, hi, step) if isinstance(step, Value) else (lo, hi)
        case If(cond=cond) | Break(cond=cond) | Check(cond=cond):
            return (cond,)
        case Fail(status=status):
            return (status,)
        case Call(address=address, start=start, stop=stop):
            return (address, start, stop)
    return ()


def instruction_count(block: list[Statement]) -> int:
    """How many instructions, constants apart, a block and those inside it hold."""
    inner = sum(instruction_count(s.body) for s in block if isinstance(s, (For, If)))
    return inner + sum(isinstance(s, Instr) and s.op != "const" for s in block)


def _prune(block: list[Statement], used: set[int]) -> list[Statement]:
    """`block` without dead values; `used` gathers the ids of values that are read."""
    kept: list[Statement] = []
    for statement in reversed(block):
        if isinstance(statement, (Instr, Load, Get, Slot)) and statement.out.id not in used:
            continue
        if isinstance(statement, (For, If)):
            statement.body = _prune(statement.body, used)
            if not statement.body:
                continue
        used.update(v.id for v in uses(statement))
        kept.append(statement)
    return kept[::-1]


class Printer:
    """Kernel text: values are numbered in order of appearance."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names = {kernel.start.id: "start", kernel.stop.id: "stop"}
        self.count = 0
        self.lines: list[str] = []

    def text(self) -> str:
        k = self.kernel
        params = "".join(f", {p.name}: {p.dtype.short}* = args[{p.slot}]" for p in k.pointers)
        self.lines = [f"kernel {k.name}(start, stop{params}) {{"]
        self.lines += [f"  {p.name} = scratch {p.size} x {p.dtype.short}" for p in k.scratch]
        self.block(k.body, 1)
        self.lines += [f"  check {n} is {code!r}" for n, code in enumerate(k.codes)]
        return "\n".join([*self.lines, "}"])

    def new(self, value: Value) -> str:
        name = self.names[value.id] = f"%{self.count}"
        self.count += 1
        return name

    def block(self, block: list[Statement], depth: int) -> None:
        for statement in block:
            if isinstance(statement, Instr) and statement.op == "const":
                self.names[statement.out.id] = repr(statement.const)
                continue
            self.lines.append("  " * depth + self.line(statement))
            if isinstance(statement, (For, If)):
                self.block(statement.body, depth + 1)
                self.lines.append("  " * depth + "}")

    def line(self, statement: Statement) -> str:
        at = [self.names[v.id] for v in uses(statement)]
        match statement:
            case Instr(op=op, out=out):
                return f"{self.new(out)} = {op} {' '.join(at)} : {out.dtype.short}"
            case Load(out=out, ptr=ptr):
                return f"{self.new(out)} = load {ptr.name}[{at[0]}]"
            case Store(ptr=ptr):
                return f"store {ptr.name}[{at[0]}] = {at[1]}"
            case Slot(out=out, index=index):
                return f"{self.new(out)} = args[{index}]"
            case Set(var=var):
                return f"var{var} = {at[0]}"
            case Get(out=out, var=var):
                return f"{self.new(out)} = var{var}"
            case For(index=index, step=step):
                by = "" if step == 1 else f" by {at[2] if len(at) == 3 else step}"
                return f"for {self.new(index)} in {at[0]}..{at[1]}{by} {{"
            case If():
                return f"if {at[0]} {{"
            case Break():
                return f"break if {at[0]}"
            case Check(code=code):
                return f"check {code} {at[0]}"
            case Fail():
                return f"fail {at[0]}"
            case Call(out=out, args=args):
                return f"{self.new(out)} = call {at[0]}({at[1]}, {at[2]}, {args.name})"
        raise TypeError(f"not a statement: {statement!r}")
