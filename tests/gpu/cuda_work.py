"""Work that a fake device has to do: streams, events, captures, and the order in which things really happen.

Nothing runs when it is given to a stream. Each piece of work names what it needs: what is before it in its stream, an
event that the stream waits for, and what the legacy stream orders. It runs when somebody waits for it, and which other
work ran before is drawn by a seed: so a program that forgets to wait reads old data. What work does, and what memory it
touches, is `fake_cuda.py`'s affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from threading import get_ident

import numpy as np
from gpu.cuda_names import CudaError

__all__ = ["Capture", "Event", "Graph", "GraphExec", "Launch", "Node", "Schedule", "Stream", "Work"]

Action = Callable[[], None]


class Work:
    """Something to do once other things are done."""

    def __init__(self, action: Action | None, needs: Iterable[Work]) -> None:
        self.action, self.done, self.time = action, False, 0
        self.needs = {w for w in needs if not w.done}
        self.then: list[Work] = []
        for needed in self.needs:
            needed.then.append(self)


@dataclass(frozen=True)
class Launch:
    """A kernel and with what it runs."""

    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic: int
    parameters: bytes


@dataclass(eq=False)
class Node:
    """A node of a graph; that of a kernel has the launch."""

    handle: int
    action: Action | None
    launch: Launch | None
    needs: list[Node]
    kept: list[object] = field(default_factory=list)  # what a caller was given the address of


@dataclass(eq=False)
class Graph:
    """What was captured."""

    nodes: list[Node]


@dataclass(eq=False)
class GraphExec:
    """A graph that is ready to be launched, with the launches of its own."""

    nodes: list[Node]
    launches: dict[int, Launch]
    last: Work | None = None


class Capture:
    """A graph that is being made from what streams are given."""

    def __init__(self, origin: Stream, mode: int) -> None:
        self.origin, self.mode, self.nodes, self.valid = origin, mode, list[Node](), True
        self.thread = get_ident()
        self.ends: dict[Stream, list[Node]] = {origin: []}  # of each stream that takes part


@dataclass(eq=False)
class Stream:
    """A queue of work; the legacy one and those that are blocking wait for each other."""

    device: int
    blocking: bool = True
    legacy: bool = False
    alive: bool = True
    last: Work | None = None
    capture: Capture | None = None


@dataclass(eq=False)
class Event:
    """A moment in a stream."""

    timing: bool
    work: Work | None = None
    captured: tuple[Capture, list[Node]] | None = None


class Schedule:
    """All work that is not done yet."""

    def __init__(self, seed: int, lazy: bool) -> None:
        self.rng, self.lazy, self.ready, self.now = np.random.default_rng(seed), lazy, list[Work](), 0

    def add(self, stream: Stream, streams: Iterable[Stream], action: Action | None,
            needs: Iterable[Work | None] = ()) -> Work:
        """Gives work to a stream."""
        others = [s.last for s in streams if s.device == stream.device and s.blocking and stream.blocking
                  and (stream.legacy or s.legacy)]
        work = Work(action, [w for w in (stream.last, *needs, *others) if w is not None])
        stream.last = work
        if not work.needs:
            self.ready.append(work)
        if not self.lazy:
            self.finish([work])
        return work

    def finish(self, wanted: Iterable[Work | None]) -> None:
        """Runs at least what some work needs, and it."""
        manner = int(self.rng.integers(3))  # nothing else, all else that can come before, or some of it
        for target in [w for w in wanted if w is not None]:
            needed = _ancestors(target)
            while not target.done:
                own = [w for w in self.ready if w in needed]
                rest = [w for w in self.ready if w not in needed]
                choice = own if manner == 0 or not rest else rest if manner == 1 else self.ready
                self.run(choice[int(self.rng.integers(len(choice)))])

    def some(self) -> None:
        """Time goes by: perhaps something is done."""
        if self.ready and self.rng.integers(2):
            self.run(self.ready[int(self.rng.integers(len(self.ready)))])

    def run(self, work: Work) -> None:
        self.ready.remove(work)
        action, work.action = work.action, None
        if action is not None:
            action()
        work.done = True
        self.now += 1
        work.time = self.now
        for later in work.then:
            later.needs.discard(work)
            if not later.needs:
                self.ready.append(later)
        work.then = []


def _ancestors(target: Work) -> set[Work]:
    """Work that is needed for some, and it."""
    found, left = {target}, [target]
    while left:
        for needed in left.pop().needs:
            if needed not in found and not needed.done:
                found.add(needed)
                left.append(needed)
    return found


def in_some_order(nodes: list[Node], rng: np.random.Generator) -> Iterator[Node]:
    """The nodes of a graph, each after those that it needs, else in an order that is drawn."""
    left, done = list(nodes), set[Node]()
    while left:
        ready = [n for n in left if all(m in done for m in n.needs)]
        node = ready[int(rng.integers(len(ready)))]
        left.remove(node)
        done.add(node)
        yield node


def captured(capture: Capture, stream: Stream, node: Node) -> None:
    """Adds a node behind what a stream has captured."""
    if not capture.valid:
        raise CudaError(901)
    node.needs.extend(capture.ends[stream])
    capture.nodes.append(node)
    capture.ends[stream] = [node]
