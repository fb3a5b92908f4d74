"""The rounds of a loop for some of its rows (`loop_rows.py`), and steps block by block of rows (`row_blocks.py`), as
functions that threads run.

Each is a kernel: `int64 rows(int64 start, int64 stop, int64* words)` over parts of the rows, of which there are
words[0]. Behind that there are the addresses of buffers, values of symbols, arena and threads, as the entry got them
(`program.py`), and the first values of the numbers of which each thread has its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from twofold.ir import dims as dm
from twofold.ir import graph as g

from . import llvm_cpu, step_calls
from .loop_rows import runs_of
from .operands import Argument, Memory, Rows, bytes_of
from .plan import Copy, RowBlocks, RowShares, Step, While
from .program_entry import EntryWriter

__all__ = ["write"]

_I64, _PTR = ir.IntType(64), ir.PointerType()
_GIVEN = 5  # words before the numbers


def write(entry: EntryWriter, part: While | RowBlocks) -> ir.Function:
    """The function of a loop, or of blocks of rows, of the plan that `entry` is written for."""
    name = f"{entry.fn.name}_rows"
    number = sum(1 for fn in entry.fn.module.functions if fn.name.startswith(name))
    fn = ir.Function(entry.fn.module, llvm_cpu.KERNEL, f"{name}{number}")
    fn.linkage = "internal"
    fn.attributes.add("noinline")
    if isinstance(part, RowBlocks):
        _BlocksWriter(entry, fn, part).write_blocks()
    else:
        assert part.rows is not None
        _RoundsWriter(entry, fn, part.rows).write_loop(part)
    return fn


class _PartWriter(EntryWriter):
    """Writes a function that does some parts of the rows for an entry."""

    def __init__(self, entry: EntryWriter, fn: ir.Function, numbers: int) -> None:
        """Args:
            numbers: how many there are of which each thread has its own.
        """
        self._numbers = numbers
        super().__init__(entry.plan, fn, entry.calls, entry.timed, entry.by_rows, tabled=False)
        self._begin = self.b.icmp_signed("==", fn.args[0], _I64(0))

    def given(self) -> Sequence[ir.Value]:
        b, words = self.b, self.fn.args[2]
        self._given = [step_calls.word(b, words, _I64(n)) for n in range(_GIVEN + self._numbers)]
        return [b.inttoptr(word, _PTR) for word in self._given[1:_GIVEN]]

    def bounds(self, units: ir.Value) -> list[ir.Value]:
        """The first of the units that the parts have, and the one behind the last."""
        b = self.b
        return [b.udiv(b.mul(units, part), self._given[0]) for part in self.fn.args[:2]]

    def least(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """The smaller of two sizes."""
        return self.b.select(self.b.icmp_unsigned("<", x, y), x, y)

    def add_time(self, number: int, since: ir.Value) -> None:
        """Counts the time of one of the threads, for all of them run at once."""
        with self.b.if_then(self._begin):
            super().add_time(number, since)


class _BlocksWriter(_PartWriter):
    """Writes the function of blocks of rows: all steps for a block, then for the next."""

    def __init__(self, entry: EntryWriter, fn: ir.Function, blocks: RowBlocks) -> None:
        super().__init__(entry, fn, 0)
        self.blocks = blocks
        self._places: dict[Memory, ir.Value] = {}  # where row 0 would lie, of windows
        self._block: tuple[ir.Value, ...] = ()  # its number, its first row, and the one behind the last

    def write_blocks(self) -> None:
        """Writes the loop over blocks."""
        b, blocks = self.b, self.blocks
        low, high = self.bounds(self.size(blocks.blocks))
        in_matrix, rows = self.size(dm.ceil_div(blocks.matrix, blocks.grain)), self.size(blocks.matrix)
        windows = {memory: (b.add(self.address(memory), b.mul(self.fn.args[0], self.size(blocks.window(memory)))),
                            self.size(span * memory.dtype.size)) for memory, span in blocks.windows.items()}
        self.prepare_steps()
        before, body, done = b.block, *(self.fn.append_basic_block(name) for name in ("block", "done"))
        b.cbranch(b.icmp_unsigned("<", low, high), body, done)
        b.position_at_end(body)
        number = b.phi(_I64)
        number.add_incoming(low, before)
        matrix = b.udiv(number, in_matrix)
        top = b.mul(b.sub(number, b.mul(matrix, in_matrix)), _I64(blocks.grain))
        first = b.add(b.mul(matrix, rows), top)
        self._block = number, first, b.add(first, self.least(b.sub(rows, top), _I64(blocks.grain)))
        self._places = {memory: b.sub(at, b.mul(first, span)) for memory, (at, span) in windows.items()}
        for n in blocks.steps:
            self.checked(n)
        following = b.add(number, _I64(1))
        number.add_incoming(following, b.block)
        b.cbranch(b.icmp_unsigned("<", following, high), body, done)
        b.position_at_end(done)
        self.finish()

    def prepare_steps(self) -> None:
        """Computes what is the same for all blocks."""
        for n in self.blocks.steps:
            self.size(self.rows_of(self.plan.steps[n]).steps)
            for a in self.calls[n][1]:
                self.argument(a)

    def rows_of(self, step: Step) -> Rows:
        """How a step goes over the rows."""
        rows = step.by_rows(self.blocks.matrices * self.blocks.matrix)
        assert rows is not None
        return rows

    def address(self, memory: Memory) -> ir.Value:
        place = self._places.get(self.plan.memory_of(memory))  # type: ignore[arg-type]
        return super().address(memory) if place is None else place

    def step(self, step: Step, function: ir.Function | int,
             arguments: Sequence[Argument | ir.Function]) -> ir.Value:
        target, args = self.call_of(function, arguments)
        rows = self.rows_of(step)
        number, first, last = self._block
        if rows.matrices is not None:
            first, last = number, self.b.add(number, _I64(1))
        each = self.size(rows.steps)
        return self.b.call(target, [self.b.mul(first, each), self.b.mul(last, each), args])


class _RoundsWriter(_PartWriter):
    """Writes the function of a loop: the entry's steps, over a part of their ranges."""

    def __init__(self, entry: EntryWriter, fn: ir.Function, shares: RowShares) -> None:
        super().__init__(entry, fn, len(shares.private))
        self.share = shares
        b = self.b
        self.low, self.high = (self.least(b.mul(unit, _I64(shares.grain)), _I64(shares.rows))
                               for unit in self.bounds(_I64(-(-shares.rows // shares.grain))))
        self._ranges: dict[tuple[int, int], tuple[ir.Value, ir.Value]] = {}
        self._own: dict[Memory, ir.Value] = {}
        for value, first in zip(shares.private, self._given[_GIVEN:], strict=True):
            place = b.alloca(_I64)
            b.store(first, place)
            self._own[value] = place

    def write_loop(self, loop: While) -> None:
        """Writes all rounds of the loop, and leaves its numbers where others find them."""
        self.prepare()
        self.loop(loop)
        for value in self.share.private:
            self.store_number(value)
        self.finish()

    def store_number(self, value: g.Value) -> None:
        """Copies a number of this thread's to the memory that all see: every thread has the same."""
        b, kind = self.b, ir.IntType(8 * value.dtype.size)
        place = b.inttoptr(super().address(value), _PTR)
        b.store(b.load(self._own[value], typ=kind), place)

    def address(self, memory: Memory) -> ir.Value:
        own = self._own.get(self.plan.memory_of(memory))  # type: ignore[arg-type]
        return super().address(memory) if own is None else self.b.ptrtoint(own, _I64)

    def rows_of(self, rows: Rows) -> tuple[ir.Value, ir.Value]:
        """The iterations for this thread's rows."""
        assert isinstance(rows.steps, int)
        key = rows.grain, rows.steps
        if key not in self._ranges:
            b = self.b
            with b.goto_block(self.first):
                ends = [b.udiv(b.add(row, _I64(rows.grain - 1)), _I64(rows.grain)) for row in (self.low, self.high)]
                self._ranges[key] = b.mul(ends[0], _I64(rows.steps)), b.mul(ends[1], _I64(rows.steps))
        return self._ranges[key]

    def step(self, step: Step, function: ir.Function | int,
             arguments: Sequence[Argument | ir.Function]) -> ir.Value:
        target, args = self.call_of(function, arguments)
        status: ir.Value = _I64(0)
        for begin, run in runs_of(step):
            assert isinstance(run.total, int)
            rows = run.by_rows(self.share.rows)
            low, high = (_I64(0), _I64(run.total)) if rows is None else self.rows_of(rows)
            result = self.b.call(target, [self.b.add(low, _I64(begin)), self.b.add(high, _I64(begin)), args])
            status = self.b.or_(status, result)
        return status

    def copy(self, copy: Copy) -> None:
        source, to = (self.plan.memory_of(v) for v in (copy.source, copy.to))
        if source is to:
            return
        if to in self._own:
            super().copy(copy)
            return
        size = bytes_of(copy.to)
        assert isinstance(size, int) and dm.all_static(copy.to.dims)
        span = size // self.share.rows
        begin = self.b.mul(self.low, _I64(span))
        self.move(self.b.add(self.address(copy.to), begin), self.b.add(self.address(copy.source), begin),
                  self.b.sub(self.b.mul(self.high, _I64(span)), begin))
