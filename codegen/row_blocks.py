"""Which steps run block by block of rows: those that go over the same rows, and hand each other memory.

Attention is such a chain: a product gives scores, a map masks them, a softmax goes over each row of them, a product
takes its rows. No row needs another one, so that all of the steps can be done for some rows before the first of them is
done for the next. What only these steps read is then no larger than a block of rows for each thread, a *window*, and
stays in a near cache. Each element is computed by the same kernels from the same elements: bits do not depend on it.

In: steps that run one after another, with the rows that their makers say they go over (`operands.Rows`). Out: the same
steps, some of them in `RowRegion`s. A chain of steps grows from a product: to it come the steps that share a window
with one of its steps, and then those behind it that go on with the rows of what it writes. What lies between them, and
is no part of it, runs before, or behind where it needs what the chain writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence, Set

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.data_class import data_class
from twofold.ir.dims import Dim, DimLike

from .operands import Memory, Rows, Slot, Work
from .plan import Aliases, Step, memory_of, owners
from .target import Caches

__all__ = ["RowRegion", "regions", "parts"]

_WORTH = 2  # times what the second cache holds: memory that windows must save
_PARTS = 4  # of the blocks for each thread
_NEAR = 8  # steps behind a chain that may join it
_TYPICAL = 4  # tiles of a block where a row's size is not known
_EACH = 16  # blocks for each thread from which it does not matter that some get one more


@data_class(eq=False)
class RowRegion:
    """Steps that run block by block of rows.

    Attributes:
        steps: in order.
        matrices, matrix: how many matrices there are, and the rows of each, with the last of which a block ends.
        grain: the rows of a block; the last of a matrix may have fewer.
        windows: memory of which there is no more than a block's rows at a time, with the elements of a row.
    """

    steps: list[Step]
    matrices: DimLike
    matrix: DimLike
    grain: int
    windows: dict[Memory, DimLike]


def regions(steps: Sequence[Step], aliases: Aliases, passing: Callable[[Memory], bool], caches: Caches, threads: int,
            run: Callable[[Step, int], Sequence[Step]]) -> list[Step | RowRegion]:
    """The steps, some of them in regions, in an order that gives the same.

    Args:
        steps: that run one after another.
        aliases: whose memory values take over.
        passing: whether no other step needs what lies in memory.
        caches: that windows are to stay in.
        threads: how many there may be.
        run: gives, for a product, the steps that compute it for blocks of so many rows (`Blocking.runs`).
    """
    line = _StepLine(steps, aliases, passing)
    chains: list[_Chain] = []
    for number, step in enumerate(steps):
        if any(rows.blocking for rows in step.rows) and not any(number in chain.members for chain in chains):
            chain = _Chain(line, number)
            if chain.windows and not any(chain.meets(other) for other in chains):
                chains.append(chain)
    for chain in list(chains):
        while chain in chains and chain.goes_on(chains):
            pass
    kept = [chain for chain in chains if _is_worth(chain, caches, threads)]
    return list(_ordered(line, sorted(kept, key=lambda chain: chain.first), run, caches))


def parts(threads: int) -> int:
    """Into how many parts the blocks of a region fall: several for each thread, so that who is done early helps."""
    return _PARTS * threads if threads > 1 else 1


def _ordered(line: _StepLine, chains: Sequence[_Chain], run: Callable[[Step, int], Sequence[Step]],
             caches: Caches) -> Iterator[Step | RowRegion]:
    """The steps in their new order; `chains` in theirs."""
    planned = {chain: chain.region(run, caches) for chain in chains}
    gone = {memory for chain in chains for memory in chain.packed()}
    members = {n for chain in chains for n in chain.members}
    others = [n for n in range(len(line.steps)) if n not in members and line.written(n).isdisjoint(gone)]
    at = 0
    for chain, (ahead, region) in planned.items():
        behind = line.behind(chain.members) or []
        yield from [line.steps[n] for n in others if at <= n < chain.last and n not in behind]
        yield from ahead
        yield region
        yield from [line.steps[n] for n in others if n in behind]
        at = chain.last + 1
    yield from [line.steps[n] for n in others if at <= n]


class _StepLine:
    """Steps in a line, with the memory that each touches."""

    def __init__(self, steps: Sequence[Step], aliases: Aliases, passing: Callable[[Memory], bool]) -> None:
        self.steps, self.aliases, self.passing = steps, aliases, passing
        self.values = [_by_owner(aliases, step.memory()) for step in steps]
        self.touched = [values.keys() for values in self.values]
        self._written: dict[int, Set[Memory]] = {}
        self._spans: dict[tuple[int, Memory, DimLike], DimLike | None] = {}
        self.users: dict[Memory, list[int]] = {}
        for number, touched in enumerate(self.touched):
            for memory in touched:
                self.users.setdefault(memory, []).append(number)

    def written(self, number: int) -> Set[Memory]:
        """The memory that a step may write."""
        if number not in self._written:
            self._written[number] = dict.fromkeys(owners(self.aliases, self.steps[number].written())).keys()
        return self._written[number]

    def span(self, number: int, memory: Memory, count: DimLike) -> DimLike | None:
        """The elements of `memory` that a step takes for a row of `count`; None where it may touch others."""
        key = (number, memory, count)
        if key not in self._spans:
            rows, spans = self.steps[number].by_rows(count), set()
            for value in self.values[number].get(memory, ()):
                known = rows is not None and isinstance(value, g.Value) and \
                    not isinstance(memory_of(self.aliases, value), Slot)
                spans.add(rows.spans.get(value) if known else None)  # type: ignore[union-attr, arg-type]
            self._spans[key] = spans.pop() if len(spans) == 1 else None
        return self._spans[key]

    def window(self, memory: Memory, count: DimLike) -> DimLike | None:
        """The elements of a row of memory that may be a window; None where it may not."""
        users = self.users[memory]
        if not isinstance(memory, g.Value) or len(users) < 2 or memory not in self.written(users[0]) or \
                not self.passing(memory):
            return None
        spans = {self.span(n, memory, count) for n in users}
        span = spans.pop()
        return None if spans or span is None or span * count != dm.numel(memory.dims) else span

    def may_run(self, members: set[int], count: DimLike) -> bool:
        """Whether some steps can run block by block, and what lies between them before or behind."""
        ways = [self.steps[n].by_rows(count) for n in members if not self.steps[n].codes]
        of_products = [way for way in ways if way is not None and way.matrices is not None]
        if len(ways) < len(members) or None in ways or any(way.blocking is None for way in of_products) or \
                len({way.matrices for way in of_products}) > 1:
            return False
        if self.behind(members) is None:
            return False
        for memory in set().union(*map(self.written, members)):
            users = [n for n in members if memory in self.touched[n]]
            if len(users) > 1 and (len(spans := {self.span(n, memory, count) for n in users}) > 1 or None in spans):
                return False
        return True

    def behind(self, members: set[int]) -> list[int] | None:
        """What lies between members and can run behind them alone; None where something can run on neither side."""
        behind: list[int] = []
        later, earlier = _Accesses(self), _Accesses(self)
        touching: dict[Memory, int] = {}  # the last member that touches some memory
        writing: dict[Memory, int] = {}
        for n in sorted(members):
            later.add(n)
            touching.update(dict.fromkeys(self.touched[n], n))
            writing.update(dict.fromkeys(self.written(n), n))
        for n in range(min(members), max(members)):
            if n in members:
                later.touched -= {memory for memory in self.touched[n] if touching[memory] == n}
                later.written -= {memory for memory in self.written(n) if writing[memory] == n}
            elif not earlier.meets(n):
                continue
            elif later.meets(n):
                return None
            else:
                behind.append(n)
            earlier.add(n)
        return behind


class _Accesses:
    """The memory that some of the steps of a line touch, and what they may write of it."""

    def __init__(self, line: _StepLine) -> None:
        self.line = line
        self.touched: set[Memory] = set()
        self.written: set[Memory] = set()

    def add(self, number: int) -> None:
        """Adds a step."""
        self.touched.update(self.line.touched[number])
        self.written.update(self.line.written(number))

    def meets(self, number: int) -> bool:
        """Whether a step touches what one of them writes, or the other way round."""
        touched, written = self.line.touched[number], self.line.written(number)
        return not (touched.isdisjoint(self.written) and written.isdisjoint(self.touched))


def _by_owner(aliases: Aliases, values: Sequence[Memory]) -> dict[Memory, list[Memory]]:
    """The values that lie in each piece of memory."""
    lying: dict[Memory, list[Memory]] = {}
    for value in values:
        for owner in owners(aliases, [value]):
            lying.setdefault(owner, []).append(value)
    return lying


class _Chain:
    """The steps that come to a product, for its rows."""

    def __init__(self, line: _StepLine, seed: int) -> None:
        self.line, self.members = line, {seed}
        rows = next(rows for rows in line.steps[seed].rows if rows.blocking)
        assert rows.matrices is not None
        self.count, (self.matrices, self.matrix) = rows.count, rows.matrices
        self.windows: dict[Memory, DimLike] = {}
        self.grow()

    @property
    def first(self) -> int:
        """The number of the first member."""
        return min(self.members)

    @property
    def last(self) -> int:
        """The number of the last member."""
        return max(self.members)

    def meets(self, other: _Chain) -> bool:
        """Whether steps of both come in turn."""
        return self.first <= other.last and other.first <= self.last

    def take(self, steps: Sequence[int]) -> bool:
        """Adds steps, if they may be members."""
        members = self.members | set(steps)
        if not self.line.may_run(members, self.count):
            return False
        self.members = members
        return True

    def grow(self) -> None:
        """Takes all windows of members, with the steps that use them."""
        tried: set[Memory] = set(self.windows)
        while new := [m for n in sorted(self.members) for m in self.line.touched[n] if m not in tried]:
            tried.update(new)
            for memory in sorted(new, key=lambda m: self.line.users[m]):
                span = self.line.window(memory, self.count)
                if span is not None and self.take(self.line.users[memory]):
                    self.windows[memory] = span

    def goes_on(self, chains: list[_Chain]) -> bool:
        """Takes the next step behind that reads rows which members write, with its chain."""
        written = set().union(*map(self.line.written, self.members))
        for n in range(self.last + 1, min(self.last + 1 + _NEAR, len(self.line.steps))):
            chain = next((chain for chain in chains if chain.first <= n <= chain.last), None)
            joins = not written.isdisjoint(self.line.touched[n]) and \
                self.take([n] if chain is None else sorted(chain.members))
            if chain is not None and joins:
                self.windows.update(chain.windows)
                chains.remove(chain)
            if chain is not None or joins:
                return joins
        return False

    def rows(self, number: int) -> Rows:
        """How a member goes over the rows."""
        rows = self.line.steps[number].by_rows(self.count)
        assert rows is not None
        return rows

    def near(self) -> dict[Memory, DimLike]:
        """What several members touch row by row, with the elements of a row."""
        spans = {memory: self.line.span(n, memory, self.count) for n in self.members for memory in self.line.touched[n]
                 if sum(memory in self.line.touched[other] for other in self.members) > 1}
        return {memory: span for memory, span in spans.items() if span is not None}

    def grain(self, caches: Caches) -> int:
        """The rows of a block: as many as the second cache holds, and as products take; about equal ones."""
        blockings = [b for n in self.members if (b := self.rows(n).blocking) is not None]
        tall, most = max(b.tall for b in blockings), min(b.most for b in blockings)
        spans = [span * memory.dtype.size for memory, span in self.near().items()]
        known = [span for span in spans if not isinstance(span, Dim)]
        tiles = max(caches.second // max(sum(known), 1) // tall, 1) if len(known) == len(spans) else _TYPICAL
        tiles = min(tiles, most // tall)
        if isinstance(self.matrix, Dim):
            return tiles * tall
        blocks = math.ceil(self.matrix / (tiles * tall))
        return max(math.ceil(self.matrix / blocks / tall), 1) * tall

    def packed(self) -> list[Memory]:
        """What lies packed for products as they were: they are planned anew."""
        return [memory for n in self.members for memory in self.line.touched[n] if isinstance(memory, Work)]

    def region(self, run: Callable[[Step, int], Sequence[Step]], caches: Caches) -> tuple[list[Step], RowRegion]:
        """What runs before it, of its products, and the region."""
        grain = self.grain(caches)
        before: list[Step] = []
        steps: list[Step] = []
        for number in sorted(self.members):
            step = self.line.steps[number]
            if self.rows(number).blocking is None:
                steps.append(step)
            else:
                *ahead, blocked = run(step, grain)
                before += ahead
                steps.append(blocked)
        return before, RowRegion(steps, self.matrices, self.matrix, grain, self.windows)


def _is_worth(chain: _Chain, caches: Caches, threads: int) -> bool:
    """Whether windows save memory that is far, and threads get enough blocks."""
    sizes = [memory.dtype.size * span * chain.count for memory, span in chain.windows.items()]
    known = [size for size in sizes if not isinstance(size, Dim)]
    if len(known) == len(sizes) and sum(known) < _WORTH * caches.second:
        return False
    if isinstance(chain.matrices, Dim) or isinstance(chain.matrix, Dim):
        return chain.matrices != 1
    blocks = chain.matrices * math.ceil(chain.matrix / chain.grain(caches))
    return blocks >= _EACH * threads or blocks % threads == 0
