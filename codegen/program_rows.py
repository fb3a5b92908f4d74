"""The rounds of a loop for some of its rows, as a function that threads run: see `loop_rows.py`.

It is a kernel: `int64 rounds(int64 start, int64 stop, int64* words)` over parts of the rows, of which there are
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
from .plan import Copy, RowShares, Step, While
from .program_entry import EntryWriter

__all__ = ["write_rounds"]

_I64, _PTR = ir.IntType(64), ir.PointerType()
_GIVEN = 5  # words before the numbers


def write_rounds(entry: EntryWriter, loop: While, rows: RowShares) -> ir.Function:
    """The function of a loop of the plan that `entry` is written for."""
    number = sum(1 for fn in entry.fn.module.functions if fn.name.startswith(f"{entry.fn.name}_rounds"))
    fn = ir.Function(entry.fn.module, llvm_cpu.KERNEL, f"{entry.fn.name}_rounds{number}")
    fn.linkage = "internal"
    fn.attributes.add("noinline")
    _RoundsWriter(entry, fn, rows).write_loop(loop)
    return fn


class _RoundsWriter(EntryWriter):
    """Writes the function: the entry's steps, over a part of their ranges."""

    def __init__(self, entry: EntryWriter, fn: ir.Function, shares: RowShares) -> None:
        self.share = shares
        super().__init__(entry.plan, fn, entry.calls, entry.timed, entry.rounds, tabled=False)
        b, (start, stop, _) = self.b, fn.args
        units = -(-shares.rows // shares.grain)
        self.low, self.high = (self._least(b.mul(b.udiv(b.mul(_I64(units), part), self._given[0]), _I64(shares.grain)),
                                           shares.rows) for part in (start, stop))
        self._ranges: dict[tuple[int, int], tuple[ir.Value, ir.Value]] = {}
        self._own: dict[Memory, ir.Value] = {}
        self._begin = b.icmp_signed("==", start, _I64(0))
        for value, first in zip(shares.private, self._given[_GIVEN:], strict=True):
            place = b.alloca(_I64)
            b.store(first, place)
            self._own[value] = place

    def given(self) -> Sequence[ir.Value]:
        b, words = self.b, self.fn.args[2]
        self._given = [step_calls.word(b, words, _I64(n)) for n in range(_GIVEN + len(self.share.private))]
        return [b.inttoptr(word, _PTR) for word in self._given[1:_GIVEN]]

    def _least(self, x: ir.Value, most: int) -> ir.Value:
        return self.b.select(self.b.icmp_unsigned("<", x, _I64(most)), x, _I64(most))

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
        key = rows.grain, rows.steps
        if key not in self._ranges:
            b = self.b
            with b.goto_block(self.first):
                ends = [b.udiv(b.add(row, _I64(rows.grain - 1)), _I64(rows.grain)) for row in (self.low, self.high)]
                self._ranges[key] = b.mul(ends[0], _I64(rows.steps)), b.mul(ends[1], _I64(rows.steps))
        return self._ranges[key]

    def step(self, step: Step, function: ir.Function | int, arguments: Sequence[Argument]) -> ir.Value:
        target, args = self.call_of(function, arguments)
        status: ir.Value = _I64(0)
        for begin, run in runs_of(step):
            assert isinstance(run.total, int)
            low, high = (_I64(0), _I64(run.total)) if run.rows is None else self.rows_of(run.rows)
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

    def add_time(self, number: int, since: ir.Value) -> None:
        """Counts the time of one of the threads, for all of them run at once."""
        with self.b.if_then(self._begin):
            super().add_time(number, since)
