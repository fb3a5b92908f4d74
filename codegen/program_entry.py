"""The entry of a program as LLVM instructions: a plan's steps with what they get, shared among threads where the plan
says so, control flow, checks.

`program.py` says what the entry takes and gives.
"""

from __future__ import annotations

import time
from typing import Any

from llvmlite import ir

from twofold.ir import graph as g

from . import llvm_cpu, sizes
from .operands import Library, Partial, Slot, Within, Work, bytes_of
from .plan import INTERRUPTED, Branch, Copy, Plan, Shares, Step, Tree, While

__all__ = ["EntryWriter"]

_MANY = 48  # steps from which an entry is written for quick compilation: optimising it would take most of the time
_FEW = 3  # known arguments up to which they are written one by one
_ROUNDS = 4  # of loops to the first poll
_POLL = 9  # the word that holds the address of `poll`
_I64, _PTR = ir.IntType(64), ir.PointerType()
_ENTRY = ir.FunctionType(_I64, [_PTR, _PTR, _PTR, _PTR])


class EntryWriter(sizes.Arithmetic):
    """Writes the entry function."""

    def __init__(self, plan: Plan, module: ir.Module, name: str, calls: list[tuple[Any, list[Any]]],
                 timed: bool) -> None:
        """Args:
            calls: for each step its function, or the number of a library kernel, and its arguments.
            timed: whether to count how long each step takes.
        """
        self.plan, self.calls, self.timed = plan, calls, timed
        self.fn = ir.Function(module, _ENTRY, name)
        self.fn.attributes.add("nounwind")
        self.b = ir.IRBuilder(self.fn.append_basic_block("entry"))
        self.first = self.b.block
        self.row: list[Any] = []  # pointers to the arguments of a step, where all steps share the memory for them
        if len(plan.steps) >= _MANY:
            sizes.compiled_as_written(self.fn)
            most = max(len(arguments) for _, arguments in calls) or 1
            row = self.b.alloca(_I64, most)
            self.row = [row, *[self.b.gep(row, [_I64(n)], source_etype=_I64) for n in range(1, most)]]
        self.buffers, values, self.arena, self.threads = self.fn.args
        super().__init__(self.b, values, plan.symbols)
        self.sums(plan.sums)
        self.addresses: dict[Any, Any] = {}
        self.rows = 0
        self.polled: Any = None  # what `poll` keeps
        self.sharing: dict[tuple[int, int], ir.Function] = {}  # what runs steps on threads

    def write(self) -> None:
        b = self.b
        self.failed = self.fn.append_basic_block("failed")
        after = ir.IRBuilder(self.failed)
        self.status = after.phi(_I64)
        if any(not isinstance(part, int) for part in self.plan.tree):
            self.prepare()
        self.write_tree(self.plan.tree)
        b.ret(_I64(0))
        if self.status.incomings:
            after.ret(self.status)
        else:
            self.fn.blocks.remove(self.failed)

    def prepare(self) -> None:
        """Computes all sizes and addresses where the entry begins, so that they hold in every branch."""
        for size in self.plan.sizes():
            self.size(size)
        memory = [a for step in self.plan.steps for a in step.memory()]
        for owner in self.plan.owners([*memory, *self.plan.touched()]):
            self.address(owner)

    def write_tree(self, tree: Tree) -> None:
        for part in tree:
            if isinstance(part, int):
                self.checked(part)
            elif isinstance(part, Copy):
                self.copy(part)
            elif isinstance(part, Branch):
                with self.b.if_else(self.holds(part.test)) as (then, otherwise):
                    with then:
                        self.write_tree(part.then)
                    with otherwise:
                        self.write_tree(part.otherwise)
            else:
                self.loop(part)

    def loop(self, loop: While) -> None:
        b = self.b
        head, body, done = (self.fn.append_basic_block(name) for name in ("test", "round", "done"))
        b.branch(head)
        b.position_at_end(head)
        self.write_tree(loop.before)
        b.cbranch(self.holds(loop.test), body, done)
        b.position_at_end(body)
        self.write_tree(loop.body)
        if self.plan.interruptible:
            self.poll()
        b.branch(head)
        b.position_at_end(done)

    def poll(self) -> None:
        """Counts a round, and every so many asks whether the user wants the program to end (`runtime/interrupts.py`).

        The count is one for all loops of the entry, so that those of few rounds take part.
        """
        b = self.b
        if self.polled is None:
            with b.goto_block(self.first):
                b.position_at_start(self.first)
                self.polled = b.alloca(_I64, 4)
                for n, value in enumerate((_ROUNDS, _ROUNDS, 0, 0)):
                    b.store(_I64(value), b.gep(self.polled, [_I64(n)], source_etype=_I64))
        left = b.sub(b.load(self.polled, typ=_I64), _I64(1))
        b.store(left, self.polled)
        ask, on = self.fn.append_basic_block("ask"), self.fn.append_basic_block("on")
        b.cbranch(b.icmp_signed(">", left, _I64(0)), on, ask)
        b.position_at_end(ask)
        words = b.inttoptr(self.word(3 + len(self.plan.libraries)), _PTR)
        function = b.load(b.gep(words, [_I64(_POLL)], source_etype=_I64), typ=_I64)
        target = _Typed(b.inttoptr(function, _PTR), ir.FunctionType(_I64, [_PTR, _PTR]))
        answer = b.call(target, [words, self.polled])
        self.status.add_incoming(_I64(INTERRUPTED), b.block)
        b.cbranch(b.icmp_unsigned("!=", answer, _I64(0)), self.failed, on)
        b.position_at_end(on)

    def holds(self, value: g.Value) -> Any:
        b = self.b
        byte = b.load(b.inttoptr(self.address(value), _PTR), typ=ir.IntType(8))
        return b.icmp_unsigned("!=", byte, ir.IntType(8)(0))

    def copy(self, copy: Copy) -> None:
        b = self.b
        source, to = self.address(copy.source), self.address(copy.to)
        if source is to:
            return
        move = b.module.declare_intrinsic("llvm.memcpy", [_PTR, _PTR, _I64])
        b.call(move, [b.inttoptr(to, _PTR), b.inttoptr(source, _PTR), self.size(bytes_of(copy.to)), ir.IntType(1)(0)])

    def checked(self, number: int) -> None:
        """Runs a step, and ends the entry if the step's status is not 0."""
        b, step = self.b, self.plan.steps[number]
        start = self.now() if self.timed else None
        function, arguments = self.calls[number]
        result = self.step(step, function, arguments)
        if start is not None:
            self.count(number, b.sub(self.now(), start))
        if step.codes or isinstance(function, int):
            bad = b.icmp_unsigned("!=", result, _I64(0))
            told = b.or_(result, _I64((number + 1) << 16))
            follow = self.fn.append_basic_block("next")
            self.status.add_incoming(told, b.block)
            b.cbranch(bad, self.failed, follow)
            b.position_at_end(follow)

    def step(self, step: Step, function: Any, arguments: list[Any]) -> Any:
        b = self.b
        if self.row:
            args = self.fill(arguments)
        else:
            with b.goto_block(self.first):
                b.position_at_start(self.first)
                args = b.alloca(_I64, len(arguments) or 1)
            for n, a in enumerate(arguments):
                b.store(self.argument(a), b.gep(args, [_I64(n)], source_etype=_I64))
        total = self.size(step.total)
        target = self.link(function) if isinstance(function, int) else function
        if step.shares is None:
            return b.call(target, [_I64(0), total, args])
        return self.shared(target, total, args, step.shares)

    def fill(self, arguments: list[Any]) -> Any:
        """Writes the arguments of a step to the memory that all steps share: what is known, in one go."""
        b, values = self.b, [None if type(a) is int else self.argument(a) for a in arguments]
        known = [_I64(a if type(a) is int else 0) for a in arguments]
        if sum(value is None for value in values) > _FEW:
            row = ir.GlobalVariable(b.module, ir.ArrayType(_I64, len(known)), f"{self.fn.name}_row{self.rows}")
            row.linkage, row.global_constant, row.unnamed_addr = "private", True, True
            row.initializer = ir.Constant(row.value_type, known)
            self.rows += 1
            move = b.module.declare_intrinsic("llvm.memcpy", [_PTR, _PTR, _I64])
            b.call(move, [self.row[0], b.bitcast(row, _PTR), _I64(8 * len(known)), ir.IntType(1)(0)])
        else:
            values = [given if value is None else value for value, given in zip(values, known, strict=True)]
        for value, place in zip(values, self.row, strict=False):
            if value is not None:
                b.store(value, place)
        return self.row[0]

    def now(self) -> Any:
        """Nanoseconds by the system's clock that only goes ahead."""
        b = self.b
        with b.goto_block(self.first):
            b.position_at_start(self.first)
            moment = b.alloca(_I64, 2)
        clock = _Typed(b.inttoptr(self.word(4 + len(self.plan.libraries)), _PTR),
                       ir.FunctionType(ir.IntType(32), [ir.IntType(32), _PTR]))
        b.call(clock, [ir.IntType(32)(time.CLOCK_MONOTONIC), moment])
        part = b.load(b.gep(moment, [_I64(1)], source_etype=_I64), typ=_I64)
        return b.add(b.mul(b.load(moment, typ=_I64), _I64(1_000_000_000)), part)

    def count(self, number: int, spent: Any) -> None:
        """Adds to the time of a step."""
        b = self.b
        counts = b.inttoptr(self.word(5 + len(self.plan.libraries)), _PTR)
        place = b.gep(counts, [_I64(number)], source_etype=_I64)
        b.store(b.add(b.load(place, typ=_I64), spent), place)

    def link(self, number: int) -> Any:
        """The address of a library kernel, from the table behind the threads' words."""
        word = self.b.load(self.b.gep(self.threads, [_I64(3 + number)], source_etype=_I64), typ=_I64)
        return _Typed(self.b.inttoptr(word, _PTR), llvm_cpu.KERNEL)

    def shared(self, target: Any, total: Any, args: Any, how: Shares) -> Any:
        """Runs a kernel, on several threads if its work is worth it. The steps of a long entry call one function that
        does so, which would otherwise be repeated for each of them."""
        work = self.size(how.work)
        if not self.row:
            return _shared(self.b, self.threads, target, total, args, work, how)
        key = how.grain, how.least
        if key not in self.sharing:
            self.sharing[key] = _sharing(self.b.module, f"{self.fn.name}_shared{len(self.sharing)}", how)
        pointer = target.pointer if isinstance(target, _Typed) else target
        return self.b.call(self.sharing[key], [self.threads, pointer, total, args, work])

    def word(self, n: int) -> Any:
        return self.b.load(self.b.gep(self.threads, [_I64(n)], source_etype=_I64), typ=_I64)

    def argument(self, a: Any) -> Any:
        if isinstance(a, Within):
            at = self.address(a.value)
            return at if a.offset == 0 else self.b.add(at, self.size(a.offset * a.value.dtype.size))
        if isinstance(a, (g.Value, Partial, Work)):
            return self.address(a)
        if isinstance(a, Library):
            number = 3 + self.plan.libraries.index(a)
            return self.b.load(self.b.gep(self.threads, [_I64(number)], source_etype=_I64), typ=_I64)
        return self.size(a)

    def address(self, of: Any) -> Any:
        of = self.plan.memory_of(of)
        if isinstance(of, Slot):
            return self.slot(of)
        address = self.addresses.get(of)
        if address is None:
            b = self.b
            if of in self.plan.buffers:
                address = b.load(b.gep(self.buffers, [_I64(self.plan.buffers[of])], source_etype=_I64), typ=_I64)
            else:
                address = b.add(b.ptrtoint(self.arena, _I64), self.size(self.plan.offsets[of]))
            self.addresses[of] = address
        return address

    def slot(self, slot: Slot) -> Any:
        """The address of a slot at this point of the run."""
        b, kind = self.b, slot.index.dtype
        at = b.add(self.address(slot.index), self.size(slot.skip * kind.size))
        index = b.load(b.inttoptr(at, _PTR), typ=ir.IntType(8 * kind.size))
        index = index if kind.size == 8 else b.sext(index, _I64)
        size = slot.base.dtype.size
        place = b.add(b.mul(index, self.size(slot.stride * size)), self.size(slot.offset * size))
        return b.add(self.address(slot.base), place)


def _sharing(module: ir.Module, name: str, how: Shares) -> ir.Function:
    """The function `(threads, kernel, total, args, work)` that does what `_shared` writes."""
    fn = ir.Function(module, ir.FunctionType(_I64, [_PTR, _PTR, _I64, _PTR, _I64]), name)
    fn.linkage = "internal"
    for attribute in ("nounwind", "noinline"):
        fn.attributes.add(attribute)
    b = ir.IRBuilder(fn.append_basic_block("shared"))
    threads, kernel, total, args, work = fn.args
    b.ret(_shared(b, threads, _Typed(kernel, llvm_cpu.KERNEL), total, args, work, how))
    return fn


def _shared(b: ir.IRBuilder, threads: Any, target: Any, total: Any, args: Any, work: Any, how: Shares) -> Any:
    """Runs a kernel on threads where its work is worth it."""
    def word(n: int) -> Any:
        return b.load(b.gep(threads, [_I64(n)], source_etype=_I64), typ=_I64)

    shares = b.udiv(work, _I64(how.grain))
    count = b.load(b.inttoptr(word(2), _PTR), typ=_I64)
    used = b.select(b.icmp_unsigned("<", shares, count), shares, count)
    used = b.select(b.icmp_unsigned("<", total, used), total, used)
    parallel = b.and_(b.icmp_unsigned(">=", work, _I64(how.least)), b.icmp_unsigned(">", used, _I64(1)))
    with b.if_else(parallel) as (many, one):
        with many:
            fork = _Typed(b.inttoptr(word(0), _PTR), ir.FunctionType(_I64, [_I64, _I64, _I64, _I64, _PTR]))
            pointer = target.pointer if isinstance(target, _Typed) else target
            first = b.call(fork, [b.ptrtoint(pointer, _I64), total, b.ptrtoint(args, _I64), used,
                                  b.inttoptr(word(1), _PTR)])
            from_many = b.block
        with one:
            second = b.call(target, [_I64(0), total, args])
            from_one = b.block
    result = b.phi(_I64)
    result.add_incoming(first, from_many)
    result.add_incoming(second, from_one)
    return result


class _Typed:
    """A function known by its address: what llvmlite's `call` asks of a callee."""

    def __init__(self, pointer: Any, function_type: ir.FunctionType) -> None:
        self.pointer = pointer
        self.function_type = function_type
        self.type = pointer.type
        self.callingconvention = ""
        self.attributes: Any = None

    def get_reference(self) -> str:
        """The operand's text."""
        return self.pointer.get_reference()
