"""Loop IR as Python source that numba compiles: one readable function per kernel.

Each value is one line. Arithmetic that Python operators mean exactly (floats, and int64) is written with them; the
rest goes through the helpers of `numba_cpu.helpers`, each of which is one instruction of `ir/scalar.py`:
`idiv(x, y)`, `to_u8(x)` (cast), `bits_f32(x)` (bitcast), `pointer_f32(address)`, `scratch_f32(n)`,
`widen_bf16(bits)` and `narrow_bf16(x)`. A check gathers into a flag, which is read once at the end.
"""

from __future__ import annotations

import math

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Instr, Scalar

from .statements import (
    Break,
    Call,
    Check,
    Fail,
    For,
    Get,
    If,
    IntegerArgument,
    Invoke,
    Kernel,
    Load,
    Pointer,
    Room,
    Set,
    Statement,
    Store,
    result_of,
    uses,
    walk,
)
from .value_types import Address, Vector

__all__ = ["source"]

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_RESERVED = {"and": "and_", "or": "or_", "not": "not_", "abs": "abs_"}


def source(kernel: Kernel) -> str:
    """The Python source of `kernel`: constants, then `def kernel(start, stop, args)`.

    Raises:
        NotImplementedError: it has teams, vectors, addresses or functions, which numba's kernels do not have.
    """
    if kernel.team > 1:
        raise NotImplementedError(f"{kernel.name}: processors have no teams of threads")
    for statement in walk(kernel.body):
        values = [result_of(statement), *uses(statement)]
        other = isinstance(statement, (Invoke, Room)) or \
            isinstance(statement, Call) and isinstance(statement.kernel, Kernel)
        if other or any(v is not None and isinstance(v.dtype, (Vector, Address)) for v in values):
            raise NotImplementedError(f"{kernel.name}: numba has no {type(statement).__name__.lower()} of this kind")
    return _SourceWriter(kernel).text()


def memory_type(dtype: DType) -> str:
    """How helpers spell the type of an element in memory: bool and 8-bit floats as bytes, 16-bit floats as
    words, complex as parts."""
    if dtype.is_bool or dtype in dt.SMALL:
        return "u8"
    return "u16" if _is_half(dtype) else dtype.real_dtype.short


def helper_name(op: str) -> str:
    """The name of the helper for an instruction."""
    return _RESERVED.get(op, op)


def _is_half(dtype: DType) -> bool:
    return dtype.is_floating and dtype.size == 2


class _SourceWriter:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names: dict[int, str] = {kernel.start.id: "start", kernel.stop.id: "stop"}
        self.constants: dict[str, str] = {}
        self.lines: list[str] = []
        self.values = 0
        self.loops = 0

    def text(self) -> str:
        k = self.kernel
        fails = any(isinstance(s, Fail) for s in walk(k.body))
        for p in k.pointers:
            self.put(1, f"{p.name} = pointer_{memory_type(p.dtype)}(args[{p.slot}])")
        for p in k.scratch:
            self.put(1, f"{p.name} = scratch_{memory_type(p.dtype)}({p.size})")
        for n in range(len(k.codes)):
            self.put(1, f"failed{n} = False")
        if fails:
            self.put(1, "status = 0")
        self.block(k.body, 1)
        for n, code in enumerate(k.codes):
            self.put(1, f"if failed{n}:")
            self.put(2, f"return {n + 1}  # {code}")
        self.put(1, "return status" if fails else "return 0")
        constants = [f"{name} = {text}" for text, name in self.constants.items()]
        head = [f"# {k.name}", "import numpy as np", *constants, "", "", "def kernel(start, stop, args):"]
        return "\n".join(head + self.lines) + "\n"

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def new(self, value: Scalar) -> str:
        name = self.names[value.id] = f"v{self.values}"
        self.values += 1
        return name

    def block(self, block: list[Statement], depth: int) -> None:
        for statement in block:
            self.statement(statement, depth)

    def statement(self, statement: Statement, depth: int) -> None:
        at = [self.names[v.id] for v in uses(statement)]
        match statement:
            case Instr(op="const", out=out, const=const):
                self.names[out.id] = self.constant(const, out.dtype)
            case Instr(out=out):
                expression = _expression(statement, at)
                self.put(depth, f"{self.new(out)} = {expression}")
            case Load(out=out, ptr=ptr):
                self.put(depth, f"{self.new(out)} = {_loaded(ptr, at[0])}")
            case Store(ptr=ptr, value=value):
                self.put(depth, f"{ptr.name}[{at[0]}] = {_stored(ptr, value, at[1])}")
            case IntegerArgument(out=out, index=index):
                self.put(depth, f"{self.new(out)} = args[{index}]")
            case Set(var=var):
                self.put(depth, f"var{var} = {at[0]}")
            case Get(out=out, var=var):
                self.put(depth, f"{self.new(out)} = var{var}")
            case For():
                self.loop(statement, at, depth)
            case If(body=body, otherwise=otherwise):
                self.put(depth, f"if {at[0]}:")
                self.block(body, depth + 1)
                if otherwise:
                    self.put(depth, "else:")
                    self.block(otherwise, depth + 1)
            case Break():
                self.put(depth, f"if {at[0]}:")
                self.put(depth + 1, "break")
            case Check(code=code):
                self.put(depth, f"failed{code} = or_(failed{code}, not_({at[0]}))")
            case Fail():
                self.put(depth, f"status = select(status == 0, {at[0]}, status)")
            case Call(out=out, args=args):
                start, stop, address = at
                self.put(depth, f"{self.new(out)} = call_kernel({address}, {start}, {stop}, {args.name})")

    def loop(self, loop: For, at: list[str], depth: int) -> None:
        # A while loop: numba takes half the time over it that it takes over a range.
        index = self.names[loop.index.id] = f"i{self.loops}"
        self.loops += 1
        step = at[2] if len(at) == 3 else str(loop.step)
        self.put(depth, f"{index} = {at[0]}")
        self.put(depth, f"while {index} {'>' if step.startswith('-') else '<'} {at[1]}:")
        self.block(loop.body, depth + 1)
        self.put(depth + 1, f"{index} = {index} + {step}")

    def constant(self, value: float, dtype: DType) -> str:
        """The text of a constant: a literal where a literal has the right type, else a named constant."""
        if dtype is dt.bool_ or dtype is dt.int64:
            return repr(value)
        if dtype is dt.float64 and math.isfinite(value):
            return repr(value)
        text = repr(value) if not dtype.is_floating or math.isfinite(value) else f"float('{value!r}')"
        text = f"np.{dtype.name}({text})"
        return self.constants.setdefault(text, f"k{len(self.constants)}")


def _expression(instr: Instr, at: list[str]) -> str:
    op, dtype = instr.op, instr.args[-1].dtype
    exact = dtype.is_floating or dtype is dt.int64
    if exact and op in _INFIX:
        return f"{at[0]} {_INFIX[op]} {at[1]}"
    if exact and op in _COMPARE:
        return f"{at[0]} {_COMPARE[op]} {at[1]}"
    if op == "cast":
        return f"to_{instr.out.dtype.short}({at[0]})"
    if op == "bitcast":
        return f"bits_{instr.out.dtype.short}({at[0]})"
    return f"{helper_name(op)}({', '.join(at)})"


def _loaded(ptr: Pointer, index: str) -> str:
    element = f"{ptr.name}[{index}]"
    if ptr.dtype.is_bool:
        return f"{element} != 0"
    return f"widen_{ptr.dtype.short}({element})" if _is_half(ptr.dtype) else element


def _stored(ptr: Pointer, value: Scalar, text: str) -> str:
    if ptr.dtype.is_bool:
        return f"to_u8({text})"
    return f"narrow_{ptr.dtype.short}({text})" if _is_half(ptr.dtype) else text
