"""The control flow of a plan on a GPU: what can be decided before it runs is decided once, for a set of sizes.

Which side a branch takes, how many rounds a loop runs, and which item of an array a round takes often follow from
constants and sizes alone, such as a counter. Where they do (`cuda_known.py` says), rounds are written one behind
another, up to a budget; what is left is few long sequences of work, which the host hands in without waiting for the
GPU. What depends on data, and is small, is a launch that decides on the GPU (`cuda_flow.py`). Elsewhere the host reads
the flag or index that decides while the program runs (`HostBranch`, `HostLoop`, slots). Work whose results nobody reads
then, such as that of a flag or of an index that is known to be inside, is left out.

A program that is run again to tell of a failed check has its control flow as the plan has it (`as_planned`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from twofold.codegen.operands import Memory, bytes_of, memory_in
from twofold.codegen.plan import Branch, Copy, RowBlocks, Step, Tree, While, parts_of
from twofold.codegen.statements import Call, Invoke, Kernel, accesses, walk
from twofold.ir import graph as g

from .cuda_flow import FlowLaunch
from .cuda_known import Knowledge, ScalarKernel, scalar_kernel
from .cuda_places import Place, PlanPlaces, SlotPlace
from .cuda_work import LEADING, DeviceCopy, DeviceWork, KernelLaunch, LaunchSequence, places_of

__all__ = ["Decision", "HostBranch", "HostLoop", "Lines", "Unrolled", "as_planned", "running", "unrolled"]

_MOST_LAUNCHES = 4096  # of the rounds of a program that are written one behind another
_EFFORT = 8 * _MOST_LAUNCHES  # pieces of work that are looked at, those of attempts that come to nothing included


class HostBranch(NamedTuple):
    """A branch that the host decides, by the flag at `test`."""

    test: Place
    then: Lines
    otherwise: Lines


class HostLoop(NamedTuple):
    """A loop that the host decides, by the flag at `test` behind `before`."""

    test: Place
    before: Lines
    body: Lines


Lines: TypeAlias = list[LaunchSequence | HostBranch | HostLoop]
Flow: TypeAlias = "Branch | While"
FlowOf: TypeAlias = Callable[[Flow], "FlowLaunch | str"]  # one launch for control flow, or why there is none


class Decision(NamedTuple):
    """Who decides some control flow, in words; `rank` is the higher the more the host does."""

    rank: int
    text: str


_BEFORE = Decision(0, "decided before it runs")
_ON_GPU = Decision(1, "one kernel, which decides on the GPU")


class Unrolled(NamedTuple):
    """What there is to do.

    Attributes:
        can_fail: whether a check of it can fail.
        decisions: who decides each part of the plan.
    """

    lines: Lines
    can_fail: bool
    decisions: dict[Flow, Decision]


class _Effect(NamedTuple):
    """The memory that work reads and writes, by its owners."""

    reads: Collection[Memory]
    writes: Collection[Memory]


class _WorkItem(NamedTuple):
    """Work in the order of the program, whether a check of it can fail, and whether it reads status words."""

    work: DeviceWork
    effect: _Effect
    can_fail: bool
    tests: bool = False


class _Choice(NamedTuple):
    """A branch or loop of the host's: where its flag lies, the memory that this takes to read, and two sides."""

    kind: type[HostBranch] | type[HostLoop]
    test: Place
    reads: list[Memory]
    first: list[_WorkItem | _Choice]
    second: list[_WorkItem | _Choice]


_WorkItems: TypeAlias = list[_WorkItem | _Choice]


_NOTHING = _Effect((), ())  # where nothing is left out, nobody asks


class _TooMuch(Exception):
    """Rounds take more than the budget."""


class _Part:
    """One launch of a step, and what it means to what is known."""

    def __init__(self, launch: KernelLaunch, part: Step, places: PlanPlaces) -> None:
        self.launch, self.can_fail = launch, bool(launch.step.codes)
        self._part, self._places = part, places
        self.slots = [n for n, word in enumerate(launch.words) if isinstance(word, SlotPlace)]
        self._made: dict[tuple[Place | None, ...], KernelLaunch] = {}

    def at(self, places: tuple[Place | None, ...]) -> KernelLaunch:
        """It with these places for its slots, as far as they are given."""
        made = self._made.get(places)
        if made is None:
            words = list(self.launch.words)
            for n, place in zip(self.slots, places, strict=True):
                words[n] = words[n] if place is None else place
            made = self._made[places] = self.launch._replace(words=words)
        return made

    @functools.cached_property
    def effect(self) -> _Effect:
        """What it reads and writes, where the places of all slots are known."""
        kernel, arguments = self._part.kernel, self._part.arguments
        assert isinstance(kernel, Kernel)
        calls = any(isinstance(s, (Call, Invoke)) for s in walk(kernel.body))
        return _Effect(*[{self._places.owner(m[0]) for n, a in enumerate(arguments)
                          if (calls or n in touched) and (m := memory_in(a)) is not None}
                         for touched in accesses(kernel)])

    @functools.cached_property
    def with_indices(self) -> _Effect:
        """The same, where the host must read an index."""
        return _Effect({*self.effect.reads, *self._places.plan.owners(self._part.memory())}, self.effect.writes)

    @functools.cached_property
    def scalar(self) -> ScalarKernel | None:
        """What it computes, if that is a few numbers."""
        return scalar_kernel(self._part, self._places)

    def memory(self) -> list[Memory]:
        """What its arguments are addresses of."""
        return self._part.memory()

    def argument(self, word: int) -> tuple[Memory, int]:
        """The memory that a word of it is a place in, and the byte there."""
        memory = memory_in(self._part.arguments[word - LEADING])
        assert memory is not None
        return memory[0], self._places.number(memory[1]) * memory[0].dtype.size


class _TreeWalk:
    """Goes through the tree of a plan, and writes down what there is to do."""

    def __init__(self, places: PlanPlaces, launches: Sequence[Sequence[KernelLaunch]]) -> None:
        """Args:
            launches: of each step.
        """
        plan = places.plan
        self.plan, self.places = plan, places
        self.parts = [[_Part(launch, part, places) for launch, part in zip(made, running(step, places), strict=True)]
                      for made, step in zip(launches, plan.steps, strict=True)]
        self.items: _WorkItems = []

    def tree(self, tree: Tree) -> None:
        for part in tree:
            if isinstance(part, int):
                for one in self.parts[part]:
                    self.launch(one)
            elif isinstance(part, Copy):
                self.copy(part)
            elif isinstance(part, Branch):
                self.branch(part)
            else:
                assert not isinstance(part, RowBlocks)  # which begin at products of a processor
                self.loop(part)

    def inside(self, tree: Tree) -> _WorkItems:
        """What there is to do in a tree of a branch or loop of the host's."""
        around, self.items = self.items, []
        self.tree(tree)
        around, self.items = self.items, around
        return around

    def launch(self, part: _Part) -> None:
        self.items.append(_WorkItem(part.launch, _NOTHING, part.can_fail))

    def copy(self, part: Copy) -> None:
        made = self.copied(part)
        if made is not None:
            self.items.append(_WorkItem(made, _NOTHING, False))

    def copied(self, part: Copy) -> DeviceCopy | None:
        """The copy, if there is anything to copy."""
        size, to, source = self.places.number(bytes_of(part.to)), self.place(part.to), self.place(part.source)
        return DeviceCopy(to, source, size) if size and to != source else None

    def place(self, of: g.Value) -> Place:
        return self.places.place(of)

    def branch(self, part: Branch) -> None:
        test = self.place(part.test)
        self.choose(HostBranch, part.test, test, self.inside(part.then), self.inside(part.otherwise))

    def loop(self, part: While) -> None:
        before, test = self.inside(part.before), self.place(part.test)
        self.choose(HostLoop, part.test, test, before, self.inside(part.body))

    def choose(self, kind: type[HostBranch] | type[HostLoop], test: g.Value, place: Place, first: _WorkItems,
               second: _WorkItems) -> None:
        self.items.append(_Choice(kind, place, self.plan.owners([test]), first, second))


def running(step: Step, places: PlanPlaces) -> list[Step]:
    """The parts of a step that run any iteration."""
    return [part for part in parts_of(step) if places.number(part.total) > 0]


class _Decided(_TreeWalk):
    """The same, with branches and loops decided as far as what is known tells.

    Attributes:
        known: at this point of the program.
    """

    def __init__(self, places: PlanPlaces, launches: Sequence[Sequence[KernelLaunch]], flow_of: FlowOf) -> None:
        """Args:
            flow_of: gives one launch for control flow.
        """
        super().__init__(places, launches)
        self.decisions: dict[Flow, Decision] = {}
        self._flow_of = flow_of
        self._flows: dict[Flow, _WorkItem | str] = {}
        self._inside = 0  # flows whose kernels go through what is looked at
        asked = self._asked_for()
        self.known = Knowledge(places, asked)
        for part in self._all_parts():
            if part.scalar is not None:
                part.scalar.keep(asked, places)
        self._hosts: set[int] = set()  # loops, by identity, that are the host's
        self._copies: dict[int, _WorkItem | None] = {}
        self._attempts = 0  # at loops around this point whose rounds are written one behind another
        self._count, self._effort = 0, _EFFORT

    def _all_parts(self) -> Iterator[_Part]:
        return (part for parts in self.parts for part in parts)

    def _asked_for(self) -> set[Memory]:
        """The owners of memory that flags and indices, and checks of single numbers, depend on."""
        plan, owner = self.plan, self.places.owner
        choices, copies = [], []
        for part in _walk(plan.tree):
            if isinstance(part, Copy):
                copies.append((owner(part.to), owner(part.source)))
            elif isinstance(part, (Branch, While)):
                choices.append(part.test)
        slots = plan.slots_of([*plan.touched(), *[m for part in self._all_parts() for m in part.memory()]])
        asked = {*map(owner, choices), *[owner(slot.index) for slot in slots]}
        scalars = [(part.can_fail, part.scalar) for part in self._all_parts() if part.scalar is not None]
        before = -1
        while before != len(asked):
            before = len(asked)
            asked.update(source for to, source in copies if to in asked)
            for can_fail, scalar in scalars:
                if can_fail or not asked.isdisjoint(scalar.writes):
                    asked |= scalar.reads
        return asked

    # -- work -------------------------------------------------------------------------------------
    def launch(self, part: _Part) -> None:
        self.spend()
        work, effect = part.launch, part.effect
        if part.slots:
            work, effect = self._placed(part)
        can_fail = part.can_fail
        if part.scalar is not None:
            can_fail = part.scalar.run(self.known) and can_fail
        else:
            for owner in part.effect.writes:
                self.known.forget(owner)
        self.items.append(_WorkItem(work, effect, can_fail))

    def _placed(self, part: _Part) -> tuple[KernelLaunch, _Effect]:
        """A launch with the places of the items that it takes now, as far as their indices are known."""
        spots = [self.known.spot(*part.argument(n)) for n in part.slots]
        places = tuple([None if spot is None else self.places.beside(*spot) for spot in spots])
        return part.at(places), part.with_indices if None in places else part.effect

    def copy(self, part: Copy) -> None:
        self.spend()
        if id(part) in self._copies:
            item = self._copies[id(part)]
        else:
            item = self._copy(part)
            if not self.plan.slots_of([part.to, part.source]):
                self._copies[id(part)] = item
        if item is not None:
            self.items.append(item)
            self.known.copy(part.to, part.source)

    def _copy(self, part: Copy) -> _WorkItem | None:
        made = self.copied(part)
        if made is None:
            return None
        reads = {self.places.owner(part.source)}
        if any(isinstance(place, SlotPlace) for place in made[:2]):
            reads.update(self.plan.owners([part.source, part.to]))
        return _WorkItem(made, _Effect(reads, {self.places.owner(part.to)}), False)

    def place(self, of: g.Value) -> Place:
        spot = self.known.spot(of)
        return super().place(of) if spot is None else self.places.beside(*spot)

    def spend(self) -> None:
        """Counts a piece of work.

        Raises:
            _TooMuch: the rounds that it belongs to are too many.
        """
        self._effort -= 1
        if self._attempts:
            self._count += 1
            if self._count > _MOST_LAUNCHES or self._effort < 0:
                raise _TooMuch

    # -- control flow -----------------------------------------------------------------------------
    def branch(self, part: Branch) -> None:
        known = self.known
        flag = known.flag(part.test)
        if flag is not None:
            self.decide(part, _BEFORE)
            self.tree(part.then if flag else part.otherwise)
            return
        whole, count = self._whole(part), self._count
        self._inside += whole is not None
        test, before = self.place(part.test), known.taken()
        then, after = self.inside(part.then), known.taken()
        known.back(before)
        otherwise = self.inside(part.otherwise)
        known.meet(after)
        if whole is not None:  # both sides were looked at for what is known behind them
            self._inside, self._count = self._inside - 1, count
            self.items.append(whole)
            return
        self.choose(HostBranch, part.test, test, then, otherwise)

    def loop(self, part: While) -> None:
        if id(part) not in self._hosts and self._effort >= 0 and self._unrolled(part):
            self.decide(part, _BEFORE)
            return
        self._hosts.add(id(part))
        for owner in self._written([*part.before, *part.body]):
            self.known.forget(owner)
        whole = self._whole(part)
        if whole is None:
            self._left(part)
        else:
            self.items.append(whole)

    def _whole(self, part: Flow) -> _WorkItem | None:
        """The one launch for control flow that nothing known decides, if it can be one."""
        if self._inside:
            return None
        item = self._flows.get(part)
        if item is None:
            launch = self._flow_of(part)
            item = self._flows[part] = launch if isinstance(launch, str) else _WorkItem(
                launch.launch, self._effect_of(part), launch.can_fail, launch.tests)
        if isinstance(item, str):
            self.decide(part, Decision(2, f"the host reads what decides: {item}"))
            return None
        self.decide(part, _ON_GPU)
        self.spend()
        return item

    def _effect_of(self, part: Flow) -> _Effect:
        reads: set[Memory] = set()
        for inner in _walk([part]):
            if isinstance(inner, int):
                for one in self.parts[inner]:
                    reads.update((one.with_indices if one.slots else one.effect).reads)
            elif isinstance(inner, Copy):
                reads.update(self.plan.owners([inner.source, inner.to]))
            elif isinstance(inner, (Branch, While)):
                reads.update(self.plan.owners([inner.test]))
        return _Effect(reads, set(self._written([part])))

    def decide(self, part: Flow, decision: Decision) -> None:
        """Notes who decides; where parts of a plan come more than once, what takes the host most."""
        if not self._inside:
            self.decisions[part] = max(decision, self.decisions.get(part, decision))

    def _unrolled(self, part: While) -> bool:
        """Writes the rounds one behind another; False where nothing was done, since a flag is not known or the rounds
        are too many."""
        items, length, moment, count = self.items, len(self.items), self.known.taken(), self._count
        inside = self._inside
        self._attempts += 1
        try:
            while True:
                self.tree(part.before)
                flag = self.known.flag(part.test)
                if flag is None:
                    break
                if not flag:
                    return True
                self.spend()
                self.tree(part.body)
        except _TooMuch:
            if self._attempts > 1:
                raise  # the outermost of the loops is too long
        finally:
            self._attempts -= 1
        self.items, self._count, self._inside = items, count, inside
        del items[length:]
        self.known.back(moment)
        return False

    def _left(self, part: While) -> None:
        """Leaves a loop to the host: what its rounds write is not known when one begins."""
        before, test, moment = self.inside(part.before), self.place(part.test), self.known.taken()
        body = self.inside(part.body)
        self.known.back(moment)
        self.choose(HostLoop, part.test, test, before, body)

    def _written(self, tree: Tree) -> Iterator[Memory]:
        for part in _walk(tree):
            if isinstance(part, int):
                for one in self.parts[part]:
                    yield from one.effect.writes
            elif isinstance(part, Copy):
                yield self.places.owner(part.to)


def _walk(tree: Tree) -> Iterator[int | Branch | While | Copy | RowBlocks]:
    """The parts of a tree and of those inside it."""
    for part in tree:
        yield part
        if isinstance(part, (Branch, While)):
            for inner in (part.then, part.otherwise) if isinstance(part, Branch) else (part.before, part.body):
                yield from _walk(inner)


# -- what is left -------------------------------------------------------------------------------------
def _all_items(items: _WorkItems) -> Iterator[_WorkItem | _Choice]:
    for item in items:
        yield item
        if isinstance(item, _Choice):
            yield from _all_items(item.first)
            yield from _all_items(item.second)


def _needed(items: _WorkItems, outside: Collection[Memory]) -> set[Memory]:
    """The owners of memory that somebody reads: whoever has some of it besides, the host, and work that is needed."""
    needed, left = set(outside), {}
    for item in _all_items(items):
        if isinstance(item, _Choice):
            needed.update(item.reads)
        elif item.can_fail:
            needed.update(item.effect.reads)
        else:
            left[id(item.effect)] = item.effect
    more = True
    while more:
        more = False
        for key, effect in list(left.items()):
            if not needed.isdisjoint(effect.writes):
                needed.update(effect.reads)
                del left[key]
                more = True
    return needed


class _LineMaker:
    """Makes lines of what is needed."""

    def __init__(self, needed: Collection[Memory] | None,
                 sequence: Callable[[list[DeviceWork]], LaunchSequence]) -> None:
        """Args:
            needed: the memory that somebody reads; None where nothing is left out.
        """
        self._memory, self._sequence = needed, sequence
        self._made: dict[tuple[int, ...], LaunchSequence] = {}

    def lines(self, items: _WorkItems, work: list[DeviceWork]) -> Lines:
        """The lines of items, which begin with some work."""
        lines: Lines = []
        for item in items:
            if isinstance(item, _Choice):
                sides = self.lines(item.first, []), self.lines(item.second, [])
                lines += [*self._of(work), item.kind(item.test, *sides)]
                work = []
            elif self._is_needed(item):
                if work and any(isinstance(p, SlotPlace) for p in places_of(item.work)):
                    lines += self._of(work)  # which may compute the index of the place
                    work = []
                work.append(item.work)
        return [*lines, *self._of(work)]

    def _is_needed(self, item: _WorkItem) -> bool:
        memory = self._memory
        return memory is None or item.can_fail or any(owner in memory for owner in item.effect.writes)

    def _of(self, work: list[DeviceWork]) -> list[LaunchSequence]:
        if not work:
            return []
        key = tuple(map(id, work))  # rounds of a loop share their work, and the graphs of it
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._sequence(work)
        return [made]


def as_planned(places: PlanPlaces, launches: Sequence[Sequence[KernelLaunch]], begin: Sequence[DeviceWork],
               sequence: Callable[[list[DeviceWork]], LaunchSequence]) -> Lines:
    """All that a plan says, with each branch and loop decided by the host.

    Args:
        launches: of each step.
        begin: work that comes first.
        sequence: makes one of work.
    """
    walked = _TreeWalk(places, launches)
    walked.tree(places.plan.tree)
    return _LineMaker(None, sequence).lines(walked.items, list(begin))


def unrolled(places: PlanPlaces, launches: Sequence[Sequence[KernelLaunch]], begin: Sequence[DeviceWork],
             sequence: Callable[[list[DeviceWork]], LaunchSequence], flow_of: FlowOf) -> Unrolled:
    """What there is to do where all is decided that can be. If nothing can fail or asks whether something has, it does
    not have the work that comes first.

    Args:
        flow_of: gives one launch for control flow that depends on data.
    """
    plan = places.plan
    if not any(isinstance(part, (Branch, While)) for part in plan.tree):
        return Unrolled(as_planned(places, launches, begin, sequence), any(step.codes for step in plan.steps), {})
    walked = _Decided(places, launches, flow_of)
    with np.errstate(all="ignore"):
        walked.tree(plan.tree)
    items = walked.items
    work = [item for item in _all_items(items) if isinstance(item, _WorkItem)]
    needed = _needed(items, plan.buffers)
    asked = any(item.can_fail or item.tests for item in work)
    lines = _LineMaker(needed, sequence).lines(items, list(begin) if asked else [])
    return Unrolled(lines, any(item.can_fail for item in work), walked.decisions)
