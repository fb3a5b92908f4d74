"""The entry of a program as LLVM instructions: a plan's steps with what they get, shared among threads where the plan
says so, control flow, checks.

`program.py` says what the entry takes and gives. A long entry has its steps in a table (`step_table.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from llvmlite import ir

from twofold.ir import graph as g
from twofold.ir.dims import Dim

from . import sizes, step_calls
from .llvm_writer import TextBuilder
from .operands import Argument, Library, Memory, PartialResults, Slot, Within, Work, bytes_of
from .plan import Branch, Copy, Plan, RowBlocks, Shares, Step, Tree, While
from .statements import Kernel
from .step_calls import LIBRARIES, StepCall
from .step_table import Base, Row, StepTable

__all__ = ["EntryWriter", "RowsWriting", "entry_function"]

_ALONE = Shares(0, 1, 1)  # of a step that one thread runs
_ROUNDS = 4  # of loops to the first poll
_POLL = 9  # the word that holds the address of `poll`
_I64, _PTR = ir.IntType(64), ir.PointerType()
_ENTRY = ir.FunctionType(_I64, [_PTR, _PTR, _PTR, _PTR])
# Writes, for the writer of an entry, the kernel that runs a loop, or blocks of rows, for a range of parts of the rows
# (`program_rows.py`).
RowsWriting: TypeAlias = "Callable[[EntryWriter, While | RowBlocks], ir.Function]"


def entry_function(module: ir.Module, name: str) -> ir.Function:
    """The function of an entry, without a body."""
    return ir.Function(module, _ENTRY, name)


class EntryWriter(sizes.Arithmetic):
    """Writes the entry function."""

    def __init__(self, plan: Plan, fn: ir.Function, calls: list[StepCall], timed: bool, by_rows: RowsWriting,
                 tabled: bool = True) -> None:
        """Args:
            fn: the function, without a body yet.
            calls: one for each step.
            timed: whether to count how long each step takes.
            by_rows: writes the functions of loops, and blocks of rows, that threads share as a whole.
            tabled: whether the steps of a long plan are a table.
        """
        self.plan, self.fn, self.calls, self.timed = plan, fn, calls, timed
        self.by_rows = by_rows
        self.fn.attributes.add("nounwind")
        self.b = TextBuilder(self.fn.append_basic_block("entry"))
        self.first = self.b.block
        self.table = StepTable(fn.module, fn.name) if plan.is_long and tabled else None
        self.rows: dict[int, int] = {}  # of steps, by their number
        self.moving: dict[int, list[tuple[int, Argument | ir.Function]]] = {}  # arguments in slots, with their places
        if self.table is not None:
            sizes.compiled_as_written(self.fn)
        self.buffers, self.values, self.arena, self.threads = self.given()
        self.arena_at = self.b.ptrtoint(self.arena, _I64)  # the address of the arena
        super().__init__(self.b, self.values, plan.symbols)
        self.products(plan.graph)
        self.sums(plan.sums)
        self.addresses: dict[Memory, ir.Value] = {}
        self.polled: ir.Value | None = None  # the words that `poll` counts in
        self.failed = self.fn.append_basic_block("failed")
        self.status = ir.IRBuilder(self.failed).phi(_I64)

    def given(self) -> Sequence[ir.Value]:
        """Buffers, values of symbols, arena and threads, as `program.py` says."""
        return self.fn.args

    def write(self) -> None:
        if self.table is not None:
            self.tabulate(self.table)
        elif any(not isinstance(part, int) for part in self.plan.tree):
            self.prepare()
        self.write_tree(self.plan.tree)
        self.finish()

    def finish(self) -> None:
        """Ends the function: all went well here, and not where a status was kept."""
        self.b.ret(_I64(0))
        if self.status.incomings:
            ir.IRBuilder(self.failed).ret(self.status)
        else:
            self.fn.blocks.remove(self.failed)

    def prepare(self) -> None:
        """Computes all sizes and addresses where the entry begins, so that they hold in every branch. Addresses that
        steps get from the table alone are none of them."""
        for size in self.plan.sizes():
            self.size(size)
            self.cut()
        memory = [a for n, step in enumerate(self.plan.steps) if n in self.moving or n not in self.rows
                  for a in step.memory()]
        for owner in self.plan.owners([*memory, *self.plan.touched()]):
            self.address(owner)
            self.cut()

    def tabulate(self, table: StepTable) -> None:
        """Brings all steps into the table, and what has to be computed into its values."""
        for number in _steps_of(self.plan.tree):
            self.rows[number] = table.add(self.row(table, number))
        table.write(len(self.plan.libraries), self.timed)
        table.begin(self.b, self.arena, self.buffers, max(self.plan.buffers.values(), default=-1) + 1)
        if any(not isinstance(part, int) for part in self.plan.tree):
            self.prepare()
        for place, of in table.computed.items():
            table.store(self.b, place, self.argument(of))
            self.cut()

    def row(self, table: StepTable, number: int) -> Row:
        """A step of the table; its arguments that lie in slots get places of their own."""
        step, (kernel, arguments) = self.plan.steps[number], self.calls[number]
        how = _ALONE if step.shares is None else step.shares
        places = [self.place(table, a) for a in arguments]
        for n, a in enumerate(arguments):
            if places[n] < 0:
                places[n] = table.reserve()
                self.moving.setdefault(number, []).append((places[n], a))
        return Row(kernel, self.place(table, step.total), self.place(table, how.work), how.grain, how.least,
                   bool(step.codes) or isinstance(kernel, int), number, places)

    def place(self, table: StepTable, a: Argument | ir.Function) -> int:
        """The place of an argument among the table's values; -1 for one in a slot, which is elsewhere each time."""
        if isinstance(a, (Dim, Library, ir.Function)):
            return table.place(a, a)
        assert not isinstance(a, Kernel)  # which is a function here
        if not isinstance(a, (g.Value, PartialResults, Work, Within)):
            return table.place(int(a), Base(0, int(a)))
        within = a if isinstance(a, Within) else Within(a, 0)
        memory = self.plan.memory_of(within.value)
        if isinstance(memory, Slot):
            return -1
        buffer = self.plan.buffers.get(memory)
        begin = self.plan.offsets[memory] if buffer is None else 0
        past = within.offset * within.value.dtype.size if within.offset != 0 else 0
        if isinstance(begin, Dim) or isinstance(past, Dim):
            return table.place((memory, past), a)
        base = Base(1 if buffer is None else buffer + 2, begin + past)
        return table.place(base, base)

    def write_tree(self, tree: Tree) -> None:
        row: list[int] = []  # steps that run one after another
        for part in tree:
            if self.table is not None:
                if row and (not isinstance(part, int) or part in self.moving):
                    self.tabled(self.table, row)
                    row = []
                if isinstance(part, int):
                    row.append(part)
                    continue
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
            elif isinstance(part, RowBlocks):
                self.shared_rows(part, self.size(part.blocks), _I64(part.parts), part.how or _ALONE)
            elif part.rows is not None:
                units = -(-part.rows.rows // part.rows.grain)
                self.shared_rows(part, _I64(units), self.thread_count(), part.rows.how, part.rows.private)
            else:
                self.loop(part)
        if self.table is not None and row:
            self.tabled(self.table, row)

    def tabled(self, table: StepTable, steps: list[int]) -> None:
        """Runs steps of the table, of which the first alone may have arguments in slots."""
        for place, of in self.moving.get(steps[0], ()):
            table.store(self.b, place, self.argument(of))
        self.leave_if(table.run(self.b, self.threads, self.rows[steps[0]], len(steps)))

    def thread_count(self) -> ir.Value:
        """How many threads there are."""
        return self.b.load(self.b.inttoptr(self.word(2), _PTR), typ=_I64)

    def shared_rows(self, part: While | RowBlocks, units: ir.Value, most: ir.Value, how: Shares,
                    private: Sequence[g.Value] = ()) -> None:
        """Has threads run a loop, or blocks of rows, each for some of the units in which rows come.

        Args:
            most: into how many parts they fall at most.
            private: numbers of which each thread gets its own.
        """
        b = self.b
        given = [b.ptrtoint(self.buffers, _I64), b.ptrtoint(self.values, _I64), self.arena_at,
                 b.ptrtoint(self.threads, _I64)]
        given += [self.number(value) for value in private]
        parts = b.select(b.icmp_unsigned("<", units, most), units, most)
        parts = b.select(b.icmp_unsigned("==", parts, _I64(0)), _I64(1), parts)
        with b.goto_block(self.first):
            b.position_at_start(self.first)
            words = b.alloca(_I64, len(given) + 1)
        for n, word in enumerate([parts, *given]):
            b.store(word, b.gep(words, [_I64(n)], source_etype=_I64))
        function = self.by_rows(self, part)
        self.leave_if(step_calls.shared_call(b, self.threads, function, parts, words, self.size(how.work),
                                             _I64(how.grain), _I64(how.least)))

    def number(self, value: g.Value) -> ir.Value:
        """A number in memory, as the low bytes of a word."""
        kind = ir.IntType(8 * value.dtype.size)
        word = self.b.load(self.b.inttoptr(self.address(value), _PTR), typ=kind)
        return word if value.dtype.size == 8 else self.b.zext(word, _I64)

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
        """Counts a round, and every so many asks whether the program is to end, and with which status
        (`runtime/interrupts.py`).

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
        words = b.inttoptr(self.word(LIBRARIES + len(self.plan.libraries)), _PTR)
        function = b.load(b.gep(words, [_I64(_POLL)], source_etype=_I64), typ=_I64)
        target = step_calls.Typed(b.inttoptr(function, _PTR), ir.FunctionType(_I64, [_PTR, _PTR]))
        answer = b.call(target, [words, self.polled])
        self.status.add_incoming(answer, b.block)
        b.cbranch(b.icmp_unsigned("!=", answer, _I64(0)), self.failed, on)
        b.position_at_end(on)

    def holds(self, value: g.Value) -> ir.Value:
        b = self.b
        byte = b.load(b.inttoptr(self.address(value), _PTR), typ=ir.IntType(8))
        return b.icmp_unsigned("!=", byte, ir.IntType(8)(0))

    def copy(self, copy: Copy) -> None:
        source, to = self.address(copy.source), self.address(copy.to)
        if source is not to:
            self.move(to, source, self.size(bytes_of(copy.to)))

    def move(self, to: ir.Value, source: ir.Value, size: ir.Value) -> None:
        """Copies bytes from one address to another."""
        b = self.b
        move = b.module.declare_intrinsic("llvm.memcpy", [_PTR, _PTR, _I64])
        b.call(move, [b.inttoptr(to, _PTR), b.inttoptr(source, _PTR), size, ir.IntType(1)(0)])

    def checked(self, number: int) -> None:
        """Runs a step, and ends the entry if the step's status is not 0."""
        b, step, libraries = self.b, self.plan.steps[number], len(self.plan.libraries)
        start = step_calls.nanoseconds(b, self.threads, libraries) if self.timed else None
        function, arguments = self.calls[number]
        result = self.step(step, function, arguments)
        if start is not None:
            self.add_time(number, start)
        if step.codes or isinstance(function, int):
            self.leave_if(result, number)

    def add_time(self, number: int, since: ir.Value) -> None:
        """Counts what has passed since a time for a step."""
        step_calls.add_time(self.b, self.threads, len(self.plan.libraries), _I64(number), since)

    def leave_if(self, result: ir.Value, number: int | None = None) -> None:
        """Ends the entry with a status that is not 0: that of a step, where its number is given."""
        b = self.b
        bad = b.icmp_unsigned("!=", result, _I64(0))
        status = result if number is None else b.or_(result, _I64((number + 1) << 16))
        follow = self.fn.append_basic_block("next")
        self.status.add_incoming(status, b.block)
        b.cbranch(bad, self.failed, follow)
        b.position_at_end(follow)

    def call_of(self, function: ir.Function | int,
                arguments: Sequence[Argument | ir.Function]) -> tuple[ir.Function | step_calls.Typed, ir.Value]:
        """What a step runs, and its args, filled in."""
        b = self.b
        with b.goto_block(self.first):
            b.position_at_start(self.first)
            args = b.alloca(_I64, len(arguments) or 1)
        for n, a in enumerate(arguments):
            b.store(self.argument(a), b.gep(args, [_I64(n)], source_etype=_I64))
        if isinstance(function, int):
            return step_calls.kernel_at(b.inttoptr(self.word(LIBRARIES + function), _PTR)), args
        return function, args

    def step(self, step: Step, function: ir.Function | int,
             arguments: Sequence[Argument | ir.Function]) -> ir.Value:
        b = self.b
        target, args = self.call_of(function, arguments)
        total = self.size(step.total)
        if step.shares is None:
            return b.call(target, [_I64(0), total, args])
        how = step.shares
        return step_calls.shared_call(b, self.threads, target, total, args, self.size(how.work), _I64(how.grain),
                                      _I64(how.least))

    def word(self, n: int) -> ir.Value:
        return step_calls.word(self.b, self.threads, _I64(n))

    def argument(self, a: Argument | ir.Function) -> ir.Value:
        if isinstance(a, ir.Function):
            return self.b.ptrtoint(a, _I64)
        if isinstance(a, Within):
            at = self.address(a.value)
            return at if a.offset == 0 else self.b.add(at, self.size(a.offset * a.value.dtype.size))
        if isinstance(a, (g.Value, PartialResults, Work)):
            return self.address(a)
        if isinstance(a, Library):
            return self.word(LIBRARIES + self.plan.libraries.index(a))
        assert not isinstance(a, Kernel)  # which is a function here
        return self.size(a)

    def address(self, memory: Memory) -> ir.Value:
        of = self.plan.memory_of(memory)
        if isinstance(of, Slot):
            return self.slot(of)
        address = self.addresses.get(of)
        if address is None:
            b = self.b
            if of in self.plan.buffers:
                address = b.load(b.gep(self.buffers, [_I64(self.plan.buffers[of])], source_etype=_I64), typ=_I64)
            else:
                address = b.add(self.arena_at, self.size(self.plan.offsets[of]))
            self.addresses[of] = address
        return address

    def slot(self, slot: Slot) -> ir.Value:
        """The address of a slot at this point of the run."""
        b, kind = self.b, slot.index.dtype
        at = b.add(self.address(slot.index), self.size(slot.skip * kind.size))
        index = b.load(b.inttoptr(at, _PTR), typ=ir.IntType(8 * kind.size))
        index = index if kind.size == 8 else b.sext(index, _I64)
        size = slot.base.dtype.size
        place = b.add(b.mul(index, self.size(slot.stride * size)), self.size(slot.offset * size))
        return b.add(self.address(slot.base), place)


def _steps_of(tree: Tree) -> Iterator[int]:
    """The numbers of the steps in a tree, in the order in which they are written."""
    for part in tree:
        if isinstance(part, int):
            yield part
        elif isinstance(part, Branch):
            yield from _steps_of(part.then)
            yield from _steps_of(part.otherwise)
        elif isinstance(part, While):
            yield from _steps_of(part.before)
            yield from _steps_of(part.body)
