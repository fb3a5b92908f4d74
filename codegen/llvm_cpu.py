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
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from llvmlite import ir

from twofold.ir import dtypes as dt
from twofold.ir.scalar import Instr, Scalar

from . import llvm_lanes, llvm_memory, llvm_module, llvm_ops, llvm_teams, llvm_vectors, loop_verify
from . import target as targets
from .apart import apart
from .llvm_memory import AliasScopes, Unique
from .llvm_teams import BlockAround
from .llvm_variables import Contents, Exit, settled
from .llvm_writer import TextBuilder
from .statements import (
    TEAM_OPS,
    VECTOR_OPS,
    At,
    Barrier,
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
    shared_bytes,
    walk,
)
from .target import CACHES
from .value_types import Vector, lanes_of

__all__ = ["emit_kernel", "emit_function", "compile_kernel", "KERNEL"]

_I1, _I64, _POINTER = ir.IntType(1), ir.IntType(64), ir.PointerType()
KERNEL = ir.FunctionType(_I64, [_I64, _I64, _POINTER])  # (start, stop, args) -> status
# The instructions of a vector wait for each other. From _CHAIN of them on a processor sees too few vectors ahead to
# fill that time, so the loop takes several at once, written side by side; beyond _LONG the code grows too much.
_INTERLEAVE, _CHAIN, _LONG = 4, 12, 256
_STATUS = -1  # the variable of a kernel's status; those of its checks come before it, its own after it
_SHORT = 8  # vectors that a loop of known length may be written as


@apart
def compile_kernel(kernel: Kernel, name: str, *, first: bool = False) -> bytes:
    """An object file with `kernel` as its one function, the symbol `name`; its pointers may lead to the same memory.

    It is emitted quickly (docs/performance.md says what that costs), since calls may wait for it.

    Args:
        first: whether to make code of the first tier, in a fraction of the time and with the same results.
    """
    module = ir.Module()
    emit_kernel(module, kernel, name, apart=False)
    return llvm_module.first_tier(module)[0] if first else llvm_module.machine_code(module, quick=True)


def emit_kernel(module: ir.Module, kernel: Kernel, name: str, *, inline: bool = False, short: bool = False,
                alone: bool = False, apart: bool = True, heap: bool = False, numbers: Mapping[int, int] | None = None,
                constants: Mapping[int, int] | None = None, around: BlockAround | None = None) -> ir.Function:
    """Writes `kernel` into `module`, and the functions and kernels that it runs, where they are not there yet.

    Args:
        module: takes the function.
        kernel: what it does.
        name: the function's symbol, new in the module.
        inline: for a kernel that only this module calls: the symbol is internal, and calls disappear.
        short: whether its ranges are short, so that vectors side by side would cost more to compile than they save.
        alone: whether it only ever runs over [0, 1).
        apart: whether memory that it stores to never overlaps what other pointers lead to.
        heap: whether rooms (`statements.Room`) of more than a little memory come from C's `malloc`, so that threads
            with small stacks can run the kernel; if not, they are on the stack.
        numbers: integer arguments that are always the same, by their place in args.
        constants: constants of the kernel that are arguments in fact: number of the value -> place in args, which holds
            the constant less 1 (`loop.LoopBuilder.stride` says why).
        around: for a kernel whose iterations the threads of a block share, the block.
    Raises:
        NotImplementedError: iterations belong to teams of threads, and the target is no GPU.
    Returns:
        `int64 name(int64 start, int64 stop, int64* args)`: 0, or 1 + the number of the first failed check, or the
        first status of a call that was not 0.
    """
    if loop_verify.CHECKING:
        loop_verify.verify(kernel)
    if kernel.team > 1 and not targets.current().is_gpu:
        raise NotImplementedError(f"{kernel.name}: processors have no teams of threads")
    fn = ir.Function(module, KERNEL, name)
    fn.attributes.add("nounwind")
    fn.args[2].add_attribute("noalias")
    if inline:
        fn.linkage = "internal"
        fn.attributes.add("alwaysinline")
    start, stop, args = fn.args
    if alone:
        start, stop = _I64(0), _I64(1)
    bounds = {kernel.start.id: start, kernel.stop.id: stop}
    if kernel.team > 1:
        fn.attributes.add("convergent")
    emitter = _FunctionEmitter(fn, kernel, bounds, short, apart, heap, numbers or {}, around)
    emitter.begin(kernel.args, args, constants or {})
    emitter.emit(len(kernel.codes))
    emitter.b.ret(emitter.result(len(kernel.codes)))
    return fn


def emit_function(module: ir.Module, function: LoopFunction) -> ir.Function:
    """Writes a function that the kernels of a module share, once."""
    existing = module.globals.get(function.name)
    if existing is not None:
        return existing
    kinds = [llvm_ops.llvm_type(p.dtype) for _, p in function.params]
    fn = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), function.name)
    fn.linkage = "internal"
    for attribute in ("nounwind", "noinline"):
        fn.attributes.add(attribute)
    emitter = _FunctionEmitter(fn, function, {p.id: a for (_, p), a in zip(function.params, fn.args, strict=True)})
    emitter.emit()
    emitter.b.ret_void()
    return fn


class _FunctionEmitter:
    """The state of one function being written."""

    def __init__(self, fn: ir.Function, of: Kernel | LoopFunction, values: dict[int, ir.Value], short: bool = False,
                 apart: bool = False, heap: bool = False, numbers: Mapping[int, int] | None = None,
                 around: BlockAround | None = None) -> None:
        self.fn, self.values, self.short, self.heap, self.numbers = fn, values, short, heap, numbers or {}
        self.entry = fn.append_basic_block("entry")
        self.b = TextBuilder(self.entry)
        self.passed: dict[int, ir.Value] = {}  # constants that are arguments
        self.args_pointer: Pointer | None = None
        self.args: ir.Value | None = None
        self.bases: dict[str, ir.Value] = {}  # scratch memory
        self.slots: dict[int, ir.Value] = {}  # memory of arguments
        self.variables: dict[int, Contents] = {}  # at the place at hand
        self.exits: list[Exit] = []  # of the loops around the place at hand
        self.scratch, self.body = of.scratch, of.body
        self.shared, self.team = (of.shared, of.team) if isinstance(of, Kernel) else ([], 1)
        self.around = around
        self.rooms: dict[str, ir.GlobalVariable] = {}  # memory that a block shares
        self.spreads: dict[int, ir.Function] = {}  # the functions of kernels that a block shares, by identity
        self.statements = list(walk(of.body))
        self.sets: dict[int, frozenset[int]] = {}  # by block: the variables that are set in it
        self.scopes = AliasScopes(fn.module, self.statements, apart)

    def begin(self, pointer: Pointer, args: ir.Value, constants: Mapping[int, int]) -> None:
        """Makes the args array known, and which constants lie there."""
        self.args_pointer, self.args = pointer, args
        read: dict[int, ir.Value] = {}
        for slot in constants.values():
            if slot not in read:
                read[slot] = self.b.add(self.argument(slot), _I64(1))
        self.passed = {constant: read[slot] for constant, slot in constants.items()}

    def emit(self, checks: int = 0) -> None:
        """Writes the body, which has so many checks, up to what the function gives back."""
        for scratch in self.scratch:
            kind = ir.ArrayType(llvm_ops.llvm_type(scratch.dtype, memory=True), scratch.size)
            elements = self.b.alloca(kind, name=scratch.name)
            elements.align = CACHES.line
            elements.type = _POINTER  # the elements' type is that of each access
            self.bases[scratch.name] = elements
        self.share()
        self.scopes.declare(self.b)
        slots = {s.ptr.slot for s in self.statements if isinstance(s, (Load, Store, At, Prefetch))}
        for slot in sorted(slot for slot in slots if slot is not None):
            self.slots[slot] = self.b.inttoptr(self.argument(slot), _POINTER)
        self.variables = {_STATUS: _I64(0), **{_failed(code): _I1(0) for code in range(checks)}}
        self.block(self.body)

    def share(self) -> None:
        """Finds memory for what the threads of a team share: that of the block around, or memory of its own."""
        room, at = None if self.around is None else self.around.room, 0
        for shared in self.shared:
            if room is not None:
                self.bases[shared.name] = llvm_teams.address_of(self.b, room, at)
                at += shared_bytes(shared)
                continue
            own = self.rooms[shared.name] = llvm_teams.shared(self.fn.module, shared, f"{self.fn.name}_{shared.name}")
            self.bases[shared.name] = llvm_teams.address_of(self.b, own)

    def argument(self, slot: int) -> ir.Value:
        if slot in self.numbers:
            return _I64(self.numbers[slot])
        return self.b.load(self.b.gep(self.args, [llvm_ops.integer(slot)], source_etype=_I64), typ=_I64)

    def result(self, checks: int) -> ir.Value:
        """The status of a kernel with so many checks, where it ends."""
        b, result = self.b, settled(self.b, self.variables[_STATUS])
        for code in reversed(range(checks)):
            failed = settled(b, self.variables[_failed(code)])
            result = b.select(failed, _I64(code + 1), result)
        return result

    def block(self, block: list[Statement]) -> None:
        for statement in block:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        """Writes one statement."""
        b, values = self.b, self.values
        match statement:
            case Instr(op="const", out=out, const=const):
                values[out.id] = self.passed.get(out.id) or _constant(out, const)
            case Instr(out=out):
                values[out.id] = self.instruction(statement)
            case Load(out=out):
                values[out.id] = self.load(statement)
            case Store():
                self.store(statement)
            case At(out=out, ptr=ptr, index=index):
                values[out.id] = self.address(ptr, values[index.id])
            case Prefetch(ptr=ptr, index=index, write=write):
                llvm_vectors.prefetch(b, self.address(ptr, values[index.id]), write)
            case IntegerArgument(out=out, index=index):
                values[out.id] = self.argument(index)
            case Set(var=var, value=value):
                self.variables[var] = values[value.id]
            case Get(out=out, var=var):
                values[out.id] = settled(self.b, self.variables[var])
            case For():
                self.loop(statement)
            case If():
                self.condition(statement)
            case Room(out=out, count=count, body=body):
                def inside(address: ir.Value) -> None:
                    values[out.id] = address
                    self.block(body)
                llvm_memory.room(b, statement, values[count.id], self.heap, inside)
            case Barrier():
                self.barrier()
            case Break(cond=cond):
                rest = self.fn.append_basic_block("rest")
                self.exits[-1].arrive(b.block, self.variables)
                b.cbranch(values[cond.id], self.exits[-1].block, rest)
                b.position_at_end(rest)
            case _:
                self.report(statement)

    def report(self, statement: Statement) -> None:
        """Writes a statement about the status of this kernel, or about another function."""
        b, values = self.b, self.values
        match statement:
            case Check(cond=cond, code=code):
                before = settled(b, self.variables[_failed(code)])
                self.variables[_failed(code)] = b.or_(before, b.not_(values[cond.id]))
            case Fail(status=status):
                now = settled(b, self.variables[_STATUS])
                self.variables[_STATUS] = b.select(b.icmp_signed("==", now, _I64(0)), values[status.id], now)
            case Call(out=out):
                values[out.id] = self.call(statement)
            case Invoke(function=function, args=args):
                b.call(emit_function(self.fn.module, function), [values[a.id] for a in args])
            case Spread():
                self.spread(statement)
            case _:
                raise TypeError(f"not a statement: {statement!r}")

    def instruction(self, instr: Instr) -> ir.Value:
        """The value of an instruction."""
        at, args = [self.values[a.id] for a in instr.args], instr.args
        if instr.op in TEAM_OPS:
            return llvm_teams.emit(self.b, instr.op, at, instr.const)
        if instr.op in VECTOR_OPS:
            if instr.op == "shuffle":
                return llvm_vectors.shuffle(self.b, at[0], at[1], instr.const)
            if instr.op in ("add_pairs", "add_quads"):
                return getattr(llvm_vectors, instr.op)(self.b, *at)
            if instr.op == "pack":
                return llvm_vectors.pack(self.b, at)
            if instr.op in ("extract", "aligned"):
                return getattr(llvm_vectors, instr.op)(self.b, at[0], instr.const)
            return getattr(llvm_vectors, instr.op)(self.b, at[0], lanes_of(instr.out.dtype))
        folded = _folded(instr.op, at, args) if args[0].dtype is dt.int64 or instr.op == "select" else None
        return folded if folded is not None else \
            llvm_ops.emit(self.b, instr.op, tuple(at), args[-1].dtype, instr.out.dtype)

    # -- threads --------------------------------------------------------------------------------------------------
    def barrier(self) -> None:
        """Has the threads of the team wait for one another."""
        part = self.around is not None and self.team < self.around.threads
        llvm_teams.barrier(self.b, self.team if part else None)

    def spread(self, spread: Spread) -> None:
        """Has the threads of the block share a kernel, which is written in place."""
        b, kernel, status = self.b, spread.kernel, spread.status
        fn = self.spreads.get(id(kernel))
        if fn is None:
            around = BlockAround(self.team, None if spread.room is None else self.rooms[spread.room.name])
            fn = self.spreads[id(kernel)] = emit_kernel(
                self.fn.module, kernel, f"{self.fn.name}_{len(self.spreads)}", inline=True, short=True, around=around)
        with b.goto_entry_block():
            args = b.alloca(_I64, max(len(spread.args), 1))  # which LLVM dissolves, as the kernel is written in place
        args.type = _POINTER
        for n, argument in enumerate(spread.args):
            value = self.values[argument.id]
            word = b.ptrtoint(value, _I64) if isinstance(value.type, ir.PointerType) else value
            b.store(word, b.gep(args, [llvm_ops.integer(n)], source_etype=_I64))

        def run(iteration: ir.Value) -> None:
            if kernel.shared:
                llvm_teams.barrier(b, kernel.team if kernel.team < self.team else None)
            result = b.call(fn, [iteration, b.add(iteration, _I64(1), flags=("nsw",)), args])
            if kernel.codes and status is not None:
                llvm_teams.reported(b, result, self.values[status.id])
        llvm_teams.iterate(b, kernel, self.team, self.values[spread.total.id], run)

    # -- control --------------------------------------------------------------------------------------------------
    def condition(self, branch: If) -> None:
        """Writes what runs where a condition holds, and where it does not."""
        b, cond = self.b, self.values[branch.cond.id]
        if isinstance(cond, ir.Constant):
            self.block(branch.body if cond.constant else branch.otherwise)
            return
        join = Exit(self.fn.append_basic_block("after"), self.carried(branch.body, branch.otherwise))
        then, other = self.fn.append_basic_block("then"), join.block
        before = dict(self.variables)
        if branch.otherwise:
            other = self.fn.append_basic_block("else")
        else:
            join.arrive(b.block, before)
        b.cbranch(cond, then, other)
        for block, start in ((branch.body, then), (branch.otherwise, other)):
            if block or start is then:
                b.position_at_end(start)
                self.variables = dict(before)
                self.block(block)
                join.arrive(b.block, self.variables)
                b.branch(join.block)
        b.position_at_end(join.block)
        self.variables = before | join.values()

    def carried(self, *inside: list[Statement]) -> list[int]:
        """The variables from before that the statements of some blocks set."""
        return sorted(frozenset().union(*map(self.set_in, inside)) & self.variables.keys())

    def set_in(self, block: list[Statement]) -> frozenset[int]:
        """The variables that the statements of a block set, those inside them included."""
        variables = self.sets.get(id(block))
        if variables is None:
            inner = [self.set_in(b) for s in block if isinstance(s, (For, If, Room)) for b in blocks(s)]
            own = frozenset([var for s in block if (var := _set_by(s)) is not None])
            variables = self.sets[id(block)] = own.union(*inner)
        return variables

    def loop(self, loop: For) -> None:
        """Writes a loop: tested at its end, with what variables hold in registers from round to round."""
        b, low, high = self.b, self.values[loop.lo.id], self.values[loop.hi.id]
        constant = isinstance(loop.step, int) and isinstance(low, ir.Constant) and isinstance(high, ir.Constant)
        if constant and self.unrolled(loop, low.constant, high.constant):
            return
        step = llvm_ops.integer(loop.step) if isinstance(loop.step, int) else self.values[loop.step.id]
        order = ">" if isinstance(loop.step, int) and loop.step < 0 else "<"
        before, body = b.block, self.fn.append_basic_block("loop")
        done = Exit(self.fn.append_basic_block("done"), self.carried(loop.body))
        outside = dict(self.variables)
        done.arrive(before, outside)
        b.cbranch(b.icmp_signed(order, low, high), body, done.block)
        b.position_at_end(body)
        index = self.values[loop.index.id] = b.phi(_I64)
        index.add_incoming(low, before)
        rounds = {}
        for var in done.carried:
            first = settled(b, outside[var])
            rounds[var] = b.phi(first.type)
            rounds[var].add_incoming(first, before)
        self.variables = outside | rounds
        self.exits.append(done)
        self.block(loop.body)
        self.exits.pop()
        after = b.add(index, step, flags=("nsw",))
        index.add_incoming(after, b.block)
        for var, phi in rounds.items():
            phi.add_incoming(settled(self.b, self.variables[var]), b.block)
        done.arrive(b.block, self.variables)
        latch = b.cbranch(b.icmp_signed(order, after, high), body, done.block)
        self.interleave(loop, latch, low, high)
        b.position_at_end(done.block)
        self.variables = outside | done.values()

    def interleave(self, loop: For, latch: ir.ConditionalBranch, low: ir.Value, high: ir.Value) -> None:
        """Tells the vectoriser how many vectors of a loop to write side by side."""
        if isinstance(low, ir.Constant) and isinstance(high, ir.Constant):
            together = _rounds_at_once(loop, high.constant - low.constant)
        else:
            together = _INTERLEAVE if _is_interleaved(loop) and not self.short else 1
        if together > 1:
            latch.set_metadata("llvm.loop", self.interleaved(together))

    def unrolled(self, loop: For, low: int, high: int) -> bool:
        """Writes a loop of known length that needs no loop; whether it was one."""
        assert isinstance(loop.step, int)
        count = len(range(low, high, loop.step))
        if count > 1:
            return llvm_lanes.written(self, loop, low, count)
        if any(isinstance(s, Break) for s in walk(loop.body)):
            return False
        if count:
            self.values[loop.index.id] = llvm_ops.integer(low)
            self.block(loop.body)
        return True

    def interleaved(self, together: int) -> ir.MDValue:
        """Metadata that makes the vectoriser write `together` vectors side by side."""
        module = self.fn.module
        count = module.add_metadata(["llvm.loop.interleave.count", ir.IntType(32)(together)])
        return Unique(module, (count,))

    # -- memory ---------------------------------------------------------------------------------------------------
    def address(self, ptr: Pointer, index: ir.Value) -> ir.Value:
        if isinstance(index, ir.Constant) and index.constant == 0:
            return self.base(ptr)
        return self.b.gep(self.base(ptr), [index], source_etype=llvm_ops.llvm_type(ptr.dtype, memory=True))

    def base(self, ptr: Pointer) -> ir.Value:
        if ptr.at is not None:
            return self.values[ptr.at.id]
        if ptr is self.args_pointer:
            return self.args
        return self.bases[ptr.name] if ptr.slot is None else self.slots[ptr.slot]

    def load(self, load: Load) -> ir.Value:
        b, ptr, dtype = self.b, load.ptr, load.ptr.dtype
        kind, address = llvm_ops.llvm_type(dtype, memory=True), self.address(ptr, self.values[load.index.id])
        if isinstance(load.out.dtype, Vector):
            mask = None if load.mask is None else self.values[load.mask.id]
            size = dtype.size * (load.out.dtype.lanes if load.aligned else 1)
            value = llvm_vectors.load(b, address, llvm_ops.Lanes(kind, load.out.dtype.lanes), size, mask)
        else:
            value = b.load(address, typ=kind)
        self.scopes.mark(value, ptr)
        if dtype.is_bool:
            return b.icmp_unsigned("!=", value, value.type(0))
        return llvm_ops.widen(b, value, dtype) if _is_half(ptr) else value

    def store(self, store: Store) -> None:
        b, ptr, dtype, value = self.b, store.ptr, store.ptr.dtype, self.values[store.value.id]
        vector = isinstance(store.value.dtype, Vector)
        if dtype.is_bool:
            kind = llvm_ops.llvm_type(dtype, memory=True)
            value = b.zext(value, llvm_ops.Lanes(kind, value.type.count) if vector else kind)
        elif _is_half(ptr):
            value = llvm_ops.narrow(b, value, dtype)
        address = self.address(ptr, self.values[store.index.id])
        if vector:
            mask = None if store.mask is None else self.values[store.mask.id]
            size = dtype.size * (lanes_of(store.value.dtype) if store.aligned else 1)
            self.scopes.mark(llvm_vectors.store(b, value, address, size, mask), ptr)
        else:
            self.scopes.mark(b.store(value, address), ptr)

    def call(self, call: Call) -> ir.Value:
        b, values, kernel = self.b, self.values, call.kernel
        if isinstance(kernel, Kernel):
            module = self.fn.module
            fn = module.globals.get(kernel.name) or emit_kernel(module, kernel, kernel.name, apart=False,
                                                                heap=self.heap)
        else:
            fn = b.inttoptr(values[kernel.word.id], KERNEL.as_pointer())
        return b.call(fn, [values[call.start.id], values[call.stop.id], self.base(call.args)])


def _failed(code: int) -> int:
    """The variable that tells whether a check failed."""
    return _STATUS - 1 - code


def _set_by(statement: Statement) -> int | None:
    """The variable that a statement sets."""
    match statement:
        case Set(var=var):
            return var
        case Check(code=code):
            return _failed(code)
        case Fail():
            return _STATUS
    return None


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


def _constant(out: Scalar, value: float) -> ir.Constant:
    if out.dtype is dt.int64:
        return llvm_ops.integer(int(value))
    kind = llvm_ops.llvm_type(out.dtype)
    number = float(value) if out.dtype.is_floating else int(value)
    if out.dtype in dt.SMALL:
        number = int(np.array(value, out.dtype.np).view(np.int8))
    if isinstance(out.dtype, Vector):
        return ir.Constant(kind, number if number or str(number).startswith("-") else None)
    return kind(number)


_SAME = {("add", 0, 0): 1, ("add", 1, 0): 0, ("sub", 1, 0): 0, ("mul", 0, 1): 1, ("mul", 1, 1): 0,
         ("mul", 0, 0): 0, ("mul", 1, 0): 1, ("idiv", 1, 1): 0}  # (op, operand, its number) -> the operand it equals
_EXACT: dict[str, Callable[..., int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "eq": operator.eq, "ne": operator.ne,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "and": operator.and_, "or": operator.or_, "shr": lambda x, n: x >> (n & 63), "idiv": lambda x, y: _quotient(x, y)}


def _quotient(x: int, y: int) -> int:
    """x / y toward zero; 0 where y is 0."""
    size = abs(x) // abs(y) if y else 0
    return size if (x < 0) == (y < 0) else -size


def _folded(op: str, at: list[ir.Value], args: Sequence[Scalar]) -> ir.Value | None:
    """The value of an instruction on sizes and places, where that is known now; else None.

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
    return llvm_ops.integer(result) if -(1 << 63) <= result < 1 << 63 else None
