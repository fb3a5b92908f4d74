"""A kernel of the loop IR as an LLVM function, through llvmlite.

In: a finished `loop.Kernel`. Out: a function with the kernel ABI in a module of the caller's, written so that LLVM's
loop vectoriser takes it: loops with one counter, tested at their end; variables that become registers; and what is
known of overlapping memory. The arithmetic is `llvm_ops`; optimising and machine code are `llvm_module.py`'s.

Memory: what a kernel stores does not lie in the args array. In programs, what it stores through one pointer argument
it does not access through another: where an output is an input, the kernel must have been built so, with one pointer
for both. Of kernels for eager calls that is not said, so that they may be given any memory.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from llvmlite import ir

from twofold.ir.scalar import Instr, Value

from . import llvm_lanes, llvm_module, llvm_ops
from .loop import (
    Break,
    Call,
    Check,
    Fail,
    For,
    Get,
    If,
    Kernel,
    Load,
    Pointer,
    Set,
    Slot,
    Statement,
    Store,
    instruction_count,
    uses,
)

__all__ = ["emit_kernel", "compile_kernel", "KERNEL"]

_I1, _I64, _POINTER = ir.IntType(1), ir.IntType(64), ir.PointerType()
KERNEL = ir.FunctionType(_I64, [_I64, _I64, _POINTER])  # (start, stop, args) -> status
_CACHE_LINE = 64  # bytes, and those of the widest vector
# The instructions of a vector wait for each other. From _CHAIN of them on a processor sees too few vectors ahead to
# fill that time, so the loop takes several at once, written side by side; beyond _LONG the code grows too much.
_INTERLEAVE, _CHAIN, _LONG = 4, 12, 256
_SHORT = 8  # vectors that a loop of known length may be written as


def compile_kernel(kernel: Kernel, name: str) -> bytes:
    """An object file with `kernel` as its one function, the symbol `name`; its pointers may lead to the same memory."""
    module = ir.Module()
    emit_kernel(module, kernel, name, apart=False)
    return llvm_module.object_code(llvm_module.optimise(module))


def emit_kernel(module: ir.Module, kernel: Kernel, name: str, *, inline: bool = False, short: bool = False,
                alone: bool = False, apart: bool = True, numbers: Mapping[int, int] | None = None,
                constants: Mapping[int, int] | None = None) -> ir.Function:
    """Writes `kernel` into `module`.

    Args:
        module: takes the function.
        kernel: what it does.
        name: the function's symbol, new in the module.
        inline: for a kernel that only this module calls: the symbol is internal, and calls disappear.
        short: whether its ranges are short, so that vectors side by side would cost more to compile than they save.
        alone: whether it only ever runs over [0, 1).
        apart: whether memory that it stores to never overlaps what other pointers lead to.
        numbers: integer arguments that are always the same, by their place in args.
        constants: constants of the kernel that are arguments in fact: number of the value -> place in args, which holds
            the constant less 1 (`loop.LoopBuilder.stride` says why).
    Returns:
        `int64 name(int64 start, int64 stop, int64* args)`: 0, or 1 + the number of the first failed check, or the
        first status of a call that was not 0.
    """
    fn = ir.Function(module, KERNEL, name)
    fn.attributes.add("nounwind")
    fn.args[2].add_attribute("noalias")
    if inline:
        fn.linkage = "internal"
        fn.attributes.add("alwaysinline")
    _Emitter(fn, kernel, short, alone, apart, numbers or {}, constants or {}).emit()
    return fn


class _Emitter:
    """The state of one function being written."""

    def __init__(self, fn: ir.Function, kernel: Kernel, short: bool, alone: bool, apart: bool,
                 numbers: Mapping[int, int], constants: Mapping[int, int]) -> None:
        self.fn, self.kernel, self.short, self.numbers = fn, kernel, short, numbers
        self.entry = fn.append_basic_block("entry")
        self.b = ir.IRBuilder(self.entry)
        start, stop, self.args = fn.args
        if alone:
            start, stop = _I64(0), _I64(1)
        self.values: dict[int, Any] = {kernel.start.id: start, kernel.stop.id: stop}
        read: dict[int, Any] = {}
        for slot in constants.values():
            if slot not in read:
                read[slot] = self.b.add(self.argument(slot), _I64(1))
        self.given = {constant: read[slot] for constant, slot in constants.items()}
        self.bases: dict[str, Any] = {}  # scratch memory
        self.slots: dict[int, Any] = {}  # memory of arguments
        self.variables: dict[int, Any] = {}
        self.exits: list[ir.Block] = []  # of the loops around the place at hand
        self.failed: list[Any] = []
        self.status: Any = None
        self.scopes = _Scopes(fn.module, kernel, apart)

    def emit(self) -> None:
        k = self.kernel
        for scratch in k.scratch:
            kind = ir.ArrayType(llvm_ops.llvm_type(scratch.dtype, memory=True), scratch.size)
            held = self.b.alloca(kind, name=scratch.name)
            held.align = _CACHE_LINE
            held.type = _POINTER  # its elements' type is that of each access
            self.bases[scratch.name] = held
        self.scopes.declare(self.b)
        for slot in sorted({p.slot for s in _statements(k.body) if (p := _pointer(s)) and p.slot is not None}):
            self.slots[slot] = self.b.inttoptr(self.argument(slot), _POINTER)
        self.failed = [self.flag(_I1(0)) for _ in k.codes]
        if any(isinstance(s, Fail) for s in _statements(k.body)):
            self.status = self.flag(_I64(0))
        self.block(k.body)
        self.b.ret(self.result())

    def argument(self, slot: int) -> Any:
        if slot in self.numbers:
            return _I64(self.numbers[slot])
        return self.b.load(self.b.gep(self.args, [_I64(slot)], source_etype=_I64), typ=_I64)

    def flag(self, first: Any) -> Any:
        """A variable declared where the function begins."""
        held = self.variable(first.type)
        self.b.store(first, held)
        return held

    def variable(self, kind: ir.Type) -> Any:
        # Registers in the end, wherever this stands: LLVM promotes what is allocated in the entry block.
        with self.b.goto_block(self.entry):
            if self.entry.is_terminated:
                self.b.position_before(self.entry.terminator)
            return self.b.alloca(kind)

    def result(self) -> Any:
        b = self.b
        result = b.load(self.status, typ=_I64) if self.status is not None else _I64(0)
        for n in reversed(range(len(self.failed))):
            result = b.select(b.load(self.failed[n], typ=_I1), _I64(n + 1), result)
        return result

    def block(self, block: list[Statement]) -> None:
        for statement in block:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        at = [self.values[v.id] for v in uses(statement)]
        b = self.b
        match statement:
            case Instr(op="const", out=out, const=const):
                self.values[out.id] = self.given.get(out.id) or _constant(out, const)
            case Instr(op=op, out=out, args=args):
                known = _folded(op, at, args)
                self.values[out.id] = known if known is not None else \
                    llvm_ops.emit(b, op, tuple(at), args[-1].dtype, out.dtype)
            case Load(out=out, ptr=ptr):
                self.values[out.id] = self.load(ptr, at[0])
            case Store(ptr=ptr):
                self.store(ptr, at[0], at[1])
            case Slot(out=out, index=index):
                self.values[out.id] = self.argument(index)
            case Set(var=var):
                if var not in self.variables:
                    self.variables[var] = self.variable(at[0].type)
                b.store(at[0], self.variables[var])
            case Get(out=out, var=var):
                self.values[out.id] = b.load(self.variables[var], typ=llvm_ops.llvm_type(out.dtype))
            case For():
                self.loop(statement, at)
            case If(body=body):
                if isinstance(at[0], ir.Constant):
                    self.block(body if at[0].constant else [])
                    return
                with b.if_then(at[0]):
                    self.block(body)
            case Break():
                rest = self.fn.append_basic_block("rest")
                b.cbranch(at[0], self.exits[-1], rest)
                b.position_at_end(rest)
            case Check(code=code):
                held = self.failed[code]
                b.store(b.or_(b.load(held, typ=_I1), b.not_(at[0])), held)
            case Fail():
                now = b.load(self.status, typ=_I64)
                b.store(b.select(b.icmp_signed("==", now, _I64(0)), at[0], now), self.status)
            case Call(out=out, args=args):
                self.values[out.id] = self.call(at, args)

    def loop(self, loop: For, at: list[Any]) -> None:
        b, low, high = self.b, at[0], at[1]
        known = isinstance(loop.step, int) and isinstance(low, ir.Constant) and isinstance(high, ir.Constant)
        if known and self.unrolled(loop, low.constant, high.constant):
            return
        step = at[2] if len(at) == 3 else _I64(loop.step)
        order = ">" if isinstance(loop.step, int) and loop.step < 0 else "<"
        before, body, done = b.block, self.fn.append_basic_block("loop"), self.fn.append_basic_block("done")
        b.cbranch(b.icmp_signed(order, low, high), body, done)
        b.position_at_end(body)
        index = self.values[loop.index.id] = b.phi(_I64)
        index.add_incoming(low, before)
        self.exits.append(done)
        self.block(loop.body)
        self.exits.pop()
        after = b.add(index, step, flags=("nsw",))
        index.add_incoming(after, b.block)
        latch = b.cbranch(b.icmp_signed(order, after, high), body, done)
        if isinstance(low, ir.Constant) and isinstance(high, ir.Constant):
            together = _rounds_at_once(loop, high.constant - low.constant)
        else:
            together = _INTERLEAVE if _is_interleaved(loop) and not self.short else 1
        if together > 1:
            latch.set_metadata("llvm.loop", self.interleaved(together))
        b.position_at_end(done)

    def unrolled(self, loop: For, low: int, high: int) -> bool:
        """Writes a loop of known length that needs no loop; whether it was one."""
        assert isinstance(loop.step, int)
        count = len(range(low, high, loop.step))
        if count > 1:
            return llvm_lanes.written(self, loop, low, count)
        if any(isinstance(s, Break) for s in _statements(loop.body)):
            return False
        if count:
            self.values[loop.index.id] = _I64(low)
            self.block(loop.body)
        return True

    def interleaved(self, together: int) -> Any:
        """Metadata that makes the vectoriser write `together` vectors side by side."""
        module = self.fn.module
        count = module.add_metadata(["llvm.loop.interleave.count", ir.IntType(32)(together)])
        return _Unique(module, (count,))

    # -- memory ---------------------------------------------------------------------------------------------------
    def address(self, ptr: Pointer, index: Any) -> Any:
        if isinstance(index, ir.Constant) and index.constant == 0:
            return self.base(ptr)
        return self.b.gep(self.base(ptr), [index], source_etype=llvm_ops.llvm_type(ptr.dtype, memory=True))

    def base(self, ptr: Pointer) -> Any:
        if ptr is self.kernel.args:
            return self.args
        return self.bases[ptr.name] if ptr.slot is None else self.slots[ptr.slot]

    def load(self, ptr: Pointer, index: Any) -> Any:
        b, dtype = self.b, ptr.dtype
        held = b.load(self.address(ptr, index), typ=llvm_ops.llvm_type(dtype, memory=True))
        self.scopes.mark(held, ptr)
        if dtype.is_bool:
            return b.icmp_unsigned("!=", held, held.type(0))
        return llvm_ops.widen(b, held, dtype) if _is_half(ptr) else held

    def store(self, ptr: Pointer, index: Any, value: Any) -> None:
        b, dtype = self.b, ptr.dtype
        if dtype.is_bool:
            value = b.zext(value, llvm_ops.llvm_type(dtype, memory=True))
        elif _is_half(ptr):
            value = llvm_ops.narrow(b, value, dtype)
        self.scopes.mark(b.store(value, self.address(ptr, index)), ptr)

    def call(self, at: list[Any], args: Pointer) -> Any:
        address, start, stop = at
        return self.b.call(self.b.inttoptr(address, KERNEL.as_pointer()), [start, stop, self.base(args)])


def _is_half(ptr: Pointer) -> bool:
    return ptr.dtype.is_floating and ptr.dtype.size == 2


def _is_interleaved(loop: For) -> bool:
    """Whether each round is a chain of instructions, independent of the other rounds."""
    plain = all(isinstance(s, (Instr, Load, Store, Check)) for s in loop.body)
    return plain and loop.step == 1 and _CHAIN <= instruction_count(loop.body) <= _LONG


def _rounds_at_once(loop: For, rounds: int) -> int:
    """How many vectors make a short loop one round, so that what it keeps in memory of the stack becomes registers."""
    if loop.step != 1 or not all(isinstance(s, (Instr, Load, Store, Check)) for s in loop.body):
        return 1
    sizes = [s.ptr.dtype.compute.size for s in loop.body if isinstance(s, (Load, Store))]
    width = llvm_module.vector_bits() // 8 // max(sizes, default=8)
    return rounds // width if width and rounds % width == 0 and rounds // width <= _SHORT else 1


def _constant(out: Value, value: Any) -> Any:
    kind = llvm_ops.llvm_type(out.dtype)
    return kind(float(value) if out.dtype.is_floating else int(value))


_SAME = {("add", 0, 0): 1, ("add", 1, 0): 0, ("sub", 1, 0): 0, ("mul", 0, 1): 1, ("mul", 1, 1): 0,
         ("mul", 0, 0): 0, ("mul", 1, 0): 1, ("idiv", 1, 1): 0}  # (op, operand, its number) -> the operand it equals
_EXACT: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "eq": operator.eq, "ne": operator.ne,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "and": operator.and_, "or": operator.or_, "shr": lambda x, n: x >> (n & 63), "idiv": lambda x, y: _quotient(x, y)}


def _quotient(x: int, y: int) -> int:
    """x / y toward zero; 0 where y is 0."""
    size = abs(x) // abs(y) if y else 0
    return size if (x < 0) == (y < 0) else -size


def _folded(op: str, at: list[Any], args: Sequence[Value]) -> Any:
    """What an instruction on sizes and places gives, where that is known now; else None.

    It saves LLVM, and the text that it reads, what would vanish at once.
    """
    numbers = [x.constant if isinstance(x, ir.Constant) else None for x in at]
    if op == "select" and numbers[0] is not None:
        return at[1] if numbers[0] else at[2]
    if not args or any(a.dtype.name != "int64" for a in args):
        return None
    for n, number in enumerate(numbers):
        if number in (0, 1) and (op, n, number) in _SAME:
            return at[_SAME[op, n, number]]
    if op not in _EXACT or None in numbers:
        return None
    result = _EXACT[op](*numbers)
    if isinstance(result, bool):
        return _I1(int(result))
    return _I64(result) if -(1 << 63) <= result < 1 << 63 else None


def _statements(block: list[Statement]) -> Iterator[Statement]:
    for statement in block:
        yield statement
        if isinstance(statement, (For, If)):
            yield from _statements(statement.body)


def _pointer(statement: Statement) -> Pointer | None:
    return statement.ptr if isinstance(statement, (Load, Store)) else None


class _Scopes:
    """What may overlap what, as LLVM's alias scopes: one for each argument that is stored to.

    An access names the scope it belongs to, and those it has nothing to do with. The declarations at the head of the
    function keep scopes of several inlined copies, or of several rounds of a loop around them, apart.
    """

    def __init__(self, module: ir.Module, kernel: Kernel, apart: bool) -> None:
        self.module = module
        used = [p for s in _statements(kernel.body) if (p := _pointer(s)) is not None]
        stored = [s.ptr for s in _statements(kernel.body) if isinstance(s, Store)]
        self.slots = sorted({p.slot for p in stored if p.slot is not None})
        if not apart or len({(p.slot, p.name) for p in used}) < 2:
            self.slots = []
        domain = _Unique(module, ()) if self.slots else None
        self.scopes = {slot: _Unique(module, (domain,)) for slot in self.slots}
        self.lists: dict[tuple[int, ...], Any] = {}

    def declare(self, b: ir.IRBuilder) -> None:
        for slot in self.slots:
            kind = ir.FunctionType(ir.VoidType(), [ir.MetaDataType()])
            fn = self.module.declare_intrinsic("llvm.experimental.noalias.scope.decl", (), kind)
            b.call(fn, [self.list((slot,))])

    def mark(self, access: ir.Instruction, ptr: Pointer) -> None:
        """Says of a load or store through `ptr` what it does not touch."""
        if ptr.slot in self.scopes:
            access.set_metadata("alias.scope", self.list((ptr.slot,)))
        others = tuple(s for s in self.slots if s != ptr.slot)
        if others:
            access.set_metadata("noalias", self.list(others))

    def list(self, slots: tuple[int, ...]) -> Any:
        found = self.lists.get(slots)
        if found is None:
            found = self.lists[slots] = self.module.add_metadata([self.scopes[s] for s in slots])
        return found


class _Unique(ir.MDValue):
    """A metadata node whose first operand is itself, which makes it one of its kind."""

    def __init__(self, module: ir.Module, operands: tuple[Any, ...]) -> None:
        super().__init__(module, (), str(len(module.metadata)))
        self.operands = (self, *operands)

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__
