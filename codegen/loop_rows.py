"""Which loops threads may share as a whole: those whose rounds treat the rows of what they carry apart.

A recurrence over a batch goes over the batch's rows in every step of a round, and no row reads another's. Then a thread
may take some rows through all rounds, and threads need not wait for one another in between; what a thread works on
stays in its cache. Counters and other single numbers that rounds compute are computed by each thread for itself.

In: the steps of a loop, with the rows that their makers say they go over (`operands.Rows`), and who shares memory with
whom. Out: `RowShares`, or None where it is not certain that no thread meets what another one writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from twofold.ir import dims as dm
from twofold.ir import graph as g

from .operands import Memory, Rows, Slot
from .plan import Aliases, Copy, RowShares, Shares, Step, While, memory_of, parts_of

__all__ = ["row_shares", "runs_of"]


def runs_of(step: Step) -> list[tuple[int, Step]]:
    """The kernel runs of a step, each with where its range begins in the step's."""
    begin, runs = 0, []
    for part in parts_of(step) or [step]:
        runs.append((begin, part))
        begin += part.total if isinstance(part.total, int) else 0
    return runs


def row_shares(loop: While, steps: Sequence[Step], aliases: Aliases,
               how: Callable[[int], Shares | None]) -> RowShares | None:
    """How threads may share all rounds of `loop`; None where they may not.

    Args:
        loop: a loop.
        steps: of the plan, by number.
        aliases: whose memory values take over.
        how: from how much work of a round on it is worth it, for so many parts; None for never.
    """
    tree = [*loop.before, *loop.body]
    numbers = [part for part in tree if isinstance(part, int)]
    copies = [part for part in tree if isinstance(part, Copy)]
    if len(numbers) + len(copies) != len(tree) or any(steps[n].codes for n in numbers):
        return None
    runs = [run for n in numbers for _, run in runs_of(steps[n])]
    count = _common_count(runs)
    if count is None:
        return None
    grain = math.lcm(*[rows.grain for run in runs if (rows := run.by_rows(count)) is not None])
    touched = _Touched(count, aliases)
    if grain >= count or not all(map(touched.run, runs)) or not all(map(touched.copy, copies)):
        return None
    touched.somewhere(loop.test)
    if not touched.apart() or (shares := how(-(-count // grain))) is None:
        return None
    return RowShares(count, grain, touched.private(), shares)


def _common_count(runs: Sequence[Step]) -> int | None:
    """The rows that all runs over rows can go over: the fewest; None where there are none."""
    counts = [[rows.count for rows in run.rows if rows.matrices is None or rows.matrices[0] == 1]
              for run in runs if run.rows]
    if not counts:
        return None
    return next((n for n in counts[0] if isinstance(n, int) and all(n in of for of in counts)), None)


class _Touched:
    """What a round touches of each piece of memory.

    Attributes:
        written: memory that it writes.
        spans: for memory taken row by row, the elements of a row.
        whole: memory that is touched anywhere.
        numbers: memory of single numbers that it computes.
    """

    def __init__(self, count: int, aliases: Aliases) -> None:
        self.count, self.aliases = count, aliases
        self.written: set[Memory] = set()
        self.spans: dict[Memory, set[int]] = {}
        self.whole: set[Memory] = set()
        self.numbers: set[g.Value] = set()

    def run(self, run: Step) -> bool:
        """Notes what a kernel run touches; whether that is known."""
        memory, written = set(run.memory()), set(run.written())
        rows = run.by_rows(self.count)
        if rows is None:
            return self.single(run, memory, written)
        for value in memory:
            self.by_rows(value, rows, value in written)
        return True

    def single(self, run: Step, memory: set[Memory], written: set[Memory]) -> bool:
        """A run that is no more than the computation of numbers, from others."""
        if not run.items or run.total != 1 or not all(self.number(value) for value in written):
            return False
        for value in memory:
            self.somewhere(value)
        return True

    def number(self, value: Memory) -> bool:
        """Notes that a single number is written, if that is what a value is."""
        place = memory_of(self.aliases, value)
        if not isinstance(place, g.Value) or any(d != 1 for d in place.dims) or place.dtype.size > 8:
            return False
        self.numbers.add(place)
        self.written.add(place)
        return True

    def by_rows(self, value: Memory, rows: Rows, writes: bool) -> None:
        """Notes that a run over rows touches `value`."""
        span = rows.spans.get(value) if isinstance(value, g.Value) else None
        span = span if isinstance(span, int) else None
        place = memory_of(self.aliases, value)
        if isinstance(place, Slot):
            self.somewhere(place.index)
            items = self.count * span if span is not None else 0
            if not items or not _is_multiple(place.stride, items) or not _is_multiple(place.offset, items):
                span = None
            place = memory_of(self.aliases, place.base)
        if span is None or isinstance(place, Slot):
            self.somewhere(value)
        else:
            self.spans.setdefault(place, set()).add(span)
        if writes:
            self.written.update(self.around(value))

    def copy(self, copy: Copy) -> bool:
        """Notes what is copied at the end of a round; whether that is known."""
        source, to = (memory_of(self.aliases, v) for v in (copy.source, copy.to))
        if source is to:
            return True
        if isinstance(source, Slot) or isinstance(to, Slot):
            return False
        if self.number(to):
            self.somewhere(source)
            return True
        if not dm.all_static(copy.to.dims) or (size := math.prod(dm.evaluate(copy.to.dims, {}))) % self.count:
            return False
        for place in (source, to):
            self.spans.setdefault(place, set()).add(size // self.count)
        self.written.add(to)
        return True

    def somewhere(self, value: Memory) -> None:
        """Notes that `value` is touched, who knows where."""
        self.whole.update(self.around(value))

    def around(self, value: Memory) -> Iterator[Memory]:
        """The memory in which a value lies, and that of the index which says where."""
        place = memory_of(self.aliases, value)
        while isinstance(place, Slot):
            yield from self.around(place.index)
            place = memory_of(self.aliases, place.base)
        yield place

    def private(self) -> list[g.Value]:
        """The numbers of which each thread has its own."""
        return sorted(self.numbers, key=lambda value: value.index)

    def apart(self) -> bool:
        """Whether all that is written is a thread's own, or taken row by row, in one way."""
        by_rows = self.written - self.numbers
        return self.numbers.isdisjoint(self.spans) and by_rows.isdisjoint(self.whole) and \
            all(len(self.spans.get(place, ())) == 1 for place in by_rows)


def _is_multiple(number: object, of: int) -> bool:
    return isinstance(number, int) and number % of == 0
