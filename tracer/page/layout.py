"""Where the boxes of a drawing lie: layers by dataflow, boxes within boxes.

In: boxes with sizes, some inside of others, and edges between any of them. Out: coordinates for each, and the points
that each piece of an edge goes through. The texts that a box shows are not seen here.

Each box that holds others is laid out by itself, the innermost first, after Sugiyama, Tagawa and Toda ("Methods for
visual understanding of hierarchical system structures", 1981): layers along the longest paths, empty places where an
edge passes a layer, an order within layers by the means of the neighbours, and coordinates that are closest to those
means without overlap (least squares under order constraints: pool adjacent violators). Parts that are not connected
stand in rows. An edge that leaves a box does so by a port at its lower border, and enters by one at the upper border;
edges from one source share ports. The work is proportional to the size of the graph: an edge past more layers than
the budget allows is drawn straight.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

__all__ = ["Box", "Edge", "EdgeSegment", "lay_out"]

GAP_X, GAP_Y = 18.0, 26.0  # between boxes of one layer, and between layers
PADDING = 14.0  # between a box and what it holds
_SWEEPS = 8
_PASSES, _PLACES = 2, 8000  # empty places for each box, and for a small graph, up to which edges get them
_DEEP = 80  # layers of a drawing that is long
_PORT = 6.0  # the part of a layer's width that a port takes
_ASPECT = 1.7  # wanted width by height of parts in rows


@dataclass(eq=False)
class Box:
    """One box.

    Attributes:
        width, height: of a box without children; the least for one that has any.
        header: room that its own text takes above its children.
        children: the boxes inside of it, in the order of the program.
        x, y: the upper left corner, found by `lay_out`.
    """

    width: float
    height: float
    header: float = 0.0
    children: list[Box] = field(default_factory=list)
    parent: Box | None = None
    x: float = 0.0
    y: float = 0.0

    def add(self, child: Box) -> Box:
        """Puts `child` inside."""
        child.parent = self
        self.children.append(child)
        return child


@dataclass(eq=False)
class EdgeSegment:
    """The part of an edge within one box: of all edges from `source` that go the same way there.

    Attributes:
        source: where the edges begin.
        within: the innermost box that it lies in.
        points: x and y of each place that it goes through.
    """

    source: Box
    within: Box
    points: list[tuple[float, float]] = field(default_factory=list)


@dataclass(eq=False)
class Edge:
    """From one box to another, and the segments that it is made of, in order."""

    source: Box
    target: Box
    segments: list[EdgeSegment] = field(default_factory=list)


_Way = tuple[Box, Box | None, Box | None]  # the source of edges, and the boxes between which they go


class _Spot:
    """A place in a layer: of a box, of a port of the box around it, or of an edge that passes."""

    __slots__ = ("box", "width", "height", "layer", "x", "above", "below", "weight", "order", "side")

    def __init__(self, box: Box | None, width: float, height: float, side: int = 0) -> None:
        self.box, self.width, self.height, self.side = box, width, height, side
        self.layer, self.x, self.order = 0, 0.0, 0
        self.weight = 1.0
        self.above: list[tuple[_Spot, float]] = []  # with where on the other the link ends: -0.5 left, 0.5 right
        self.below: list[tuple[_Spot, float]] = []

    @property
    def shown(self) -> Box:
        """The box of a spot that is no edge's."""
        assert self.box is not None, "an edge that passes begins and ends nowhere"
        return self.box


class _SegmentLink:
    """One segment while its box is laid out: between which spots, by which ports of theirs, past which spots."""

    __slots__ = ("segment", "start", "end", "out", "into", "via", "flipped")

    def __init__(self, segment: EdgeSegment, start: _Spot, end: _Spot, out: Box | None, into: Box | None) -> None:
        self.segment, self.start, self.end, self.out, self.into = segment, start, end, out, into
        self.via: list[_Spot] = []
        self.flipped = False


def lay_out(root: Box, edges: Sequence[Edge]) -> None:
    """Sets the coordinates of every box in `root`, and gives each of `edges` its segments with their points."""
    _Drawing(root, edges).arrange_all()


class _Drawing:
    def __init__(self, root: Box, edges: Sequence[Edge]) -> None:
        self.root = root
        self.links: dict[Box, dict[_Way, EdgeSegment]] = {}
        self.exits: dict[Box | None, dict[Box, float]] = {}  # box -> source inside of it -> x of its port
        self.entries: dict[Box | None, dict[Box, float]] = {}  # likewise by the source outside
        for edge in edges:
            self.route(edge)

    def route(self, edge: Edge) -> None:
        """Splits an edge where it crosses borders."""
        up, down = _ancestors(edge.source), _ancestors(edge.target)
        while up and down and up[-1] is down[-1]:
            around = up.pop()
            down.pop()
        if not up or not down:  # from a box to what it holds, or back
            return
        for inner, outer in zip(up, up[1:], strict=False):
            self.exits.setdefault(outer, {})[edge.source] = 0.0
            edge.segments.append(self.link(outer, edge.source, inner, None))
        edge.segments.append(self.link(around, edge.source, up[-1], down[-1]))
        for outer, inner in reversed([*zip(down[1:], down, strict=False)]):
            self.entries.setdefault(outer, {})[edge.source] = 0.0
            edge.segments.append(self.link(outer, edge.source, None, inner))

    def link(self, within: Box, source: Box, start: Box | None, end: Box | None) -> EdgeSegment:
        """The segment between two children of `within`; None stands for a port of its own."""
        return self.links.setdefault(within, {}).setdefault((source, start, end), EdgeSegment(source, within))

    def arrange_all(self) -> None:
        for box in _inside_out(self.root):
            if box.children:
                self.arrange(box)
        _settle(self.root, 0.0, 0.0, self.links)

    def arrange(self, box: Box) -> None:
        """Lays out what `box` holds, relative to its upper left corner, and sets its size."""
        spots = {child: _Spot(child, child.width, child.height) for child in box.children}
        tops = {source: _Spot(source, _PORT, 0.0, -1) for source in self.entries.get(box, ())}
        bottoms = {source: _Spot(source, _PORT, 0.0, 1) for source in self.exits.get(box, ())}
        links = [_SegmentLink(segment, tops[source] if start is None else spots[start],
                       bottoms[source] if end is None else spots[end],
                       source if start is not source else None, source if end is not None else None)
                 for (source, start, end), segment in self.links.get(box, {}).items()]
        everything = [*tops.values(), *spots.values(), *bottoms.values()]
        parts = [everything] if tops or bottoms else _components(everything, links)
        blocks = []
        for part in parts:
            inside = set(part)
            own = [link for link in links if link.start in inside]
            blocks.append((part, own, *_Layers(part, own, self.side).place()))
        width, height = _shelve(blocks)
        wide = max(width + 2 * PADDING, box.width)
        shift = (wide - width) / 2
        for spot in everything:
            spot.x += shift
        for child, spot in spots.items():
            child.x, child.y = spot.x - child.width / 2, child.y + box.header + PADDING
        box.width, box.height = wide, max(height + box.header + 2 * PADDING, box.height)
        for source, spot in tops.items():
            self.entries[box][source] = spot.x
        for source, spot in bottoms.items():
            self.exits[box][source] = spot.x
        self.draw(box, links, shift)

    def side(self, link: _SegmentLink, leaving: bool) -> float:
        """Where on its box a link begins, or ends: -0.5 at the left, 0 in the middle, 0.5 at the right."""
        spot, ports = (link.start, self.exits) if leaving else (link.end, self.entries)
        port = None if spot.side else ports.get(spot.box, {}).get(link.segment.source)
        return 0.0 if port is None else port / spot.width - 0.5

    def draw(self, box: Box, links: list[_SegmentLink], shift: float) -> None:
        """The points of the segments in `box`, relative to its corner."""
        arriving: dict[_Spot, list[_SegmentLink]] = {}
        for link in links:
            arriving.setdefault(link.end, []).append(link)
        ends: dict[_SegmentLink, float] = {}
        for spot, arrivals in arriving.items():
            own = [k for k in arrivals if spot.side == 0 and not self._port(k, spot)]
            own.sort(key=lambda k: (k.via[-1] if k.via else k.start).x)
            room = spot.width * 0.7
            for n, k in enumerate(own):
                ends[k] = spot.x - room / 2 + room * (n + 0.5) / len(own)
        for link in links:
            start, end = link.start, link.end
            if start.side:
                first = (start.x, 0.0)
            else:
                port = self.exits.get(start.box, {}).get(link.segment.source)
                x = start.x if port is None else start.shown.x + port
                first = (x, start.shown.y + start.height)
            if end.side:
                last = (end.x, box.height)
            else:
                x = end.shown.x + port if (port := self._port(link, end)) else ends[link]
                last = (x, end.shown.y)
            middle = []
            for spot in link.via:
                at = spot.height  # of the middle of its layer
                middle.append((spot.x, at + box.header + PADDING))
            link.segment.points = [first, *middle, last]

    def _port(self, link: _SegmentLink, spot: _Spot) -> float | None:
        return self.entries.get(spot.box, {}).get(link.segment.source)


class _Layers:
    """One connected part of a box."""

    def __init__(self, spots: list[_Spot], links: list[_SegmentLink],
                 side: Callable[[_SegmentLink, bool], float]) -> None:
        self.spots, self.links, self.side = list(spots), links, side

    def place(self) -> tuple[float, float]:
        """Sets the x of all spots and the y of all boxes from (0, 0); the width and height taken."""
        self.layer()
        self.bend()
        self.order()
        self.align()
        return self.measure()

    def layer(self) -> None:
        """Numbers layers along the longest paths; links against the order of the program are turned round."""
        ahead = _sorted(self.spots, self.links)
        number = {spot: n for n, spot in enumerate(ahead)}
        below: dict[_Spot, list[_Spot]] = {spot: [] for spot in ahead}
        above: dict[_Spot, list[_Spot]] = {spot: [] for spot in ahead}
        for link in self.links:
            link.flipped = number[link.start] > number[link.end]
            a, b = (link.end, link.start) if link.flipped else (link.start, link.end)
            below[a].append(b)
            above[b].append(a)
        for spot in ahead:
            spot.layer = max([s.layer + 1 for s in above[spot]], default=0 if spot.side < 0 else 1)
        deepest = max(spot.layer for spot in ahead)
        bottom = max(deepest, 1) + any(not s.side and s.layer == deepest for s in ahead)
        light = {spot for spot in ahead if not any(above[s] for s in above[spot])}  # reads at most what begins here
        for spot in reversed(ahead):  # goes down to what reads it, where that makes links shorter
            heavy = sum(s not in light for s in above[spot])
            if spot.side > 0:
                spot.layer = bottom
            elif spot.side == 0 and below[spot] and (not heavy or heavy < len(below[spot])):
                spot.layer = max(min(s.layer for s in below[spot]) - 1, spot.layer)

    def bend(self) -> None:
        """Puts empty places where links pass layers, as far as the budget goes; links from one port share them."""
        places = max(_PASSES * len(self.spots), _PLACES)
        points = 8 * places
        trunks: dict[tuple[_Spot, Box | None], list[_Spot]] = {}
        for link in sorted(self.links, key=lambda k: abs(k.end.layer - k.start.layer)):
            a, b = (link.end, link.start) if link.flipped else (link.start, link.end)
            trunk = [] if link.flipped else trunks.setdefault((a, link.out), [])
            length = max(b.layer - a.layer - 1, 0)
            if length - len(trunk) > places or length > points:
                continue
            places -= max(length - len(trunk), 0)
            points -= length
            out, into = (0.0, 0.0) if link.flipped else (self.side(link, True), self.side(link, False))
            for layer in range(a.layer + 1 + len(trunk), b.layer):
                spot = _Spot(None, _PORT, 0.0)
                spot.layer, spot.weight = layer, 32.0
                _join(trunk[-1] if trunk else a, spot, 0.0 if trunk else out, 0.0)
                trunk.append(spot)
                self.spots.append(spot)
            _join(trunk[length - 1] if length else a, b, 0.0 if length else out, into)
            link.via = trunk[:length]
            if link.flipped:
                link.via.reverse()

    def order(self) -> None:
        """Orders each layer by the means of the neighbours, down and up in turn; keeps the best of small drawings."""
        layers: dict[int, list[_Spot]] = {}
        for n, spot in enumerate(self.spots):
            spot.order = n
            layers.setdefault(spot.layer, []).append(spot)
        self.rows = [layers[n] for n in sorted(layers)]
        for row in self.rows:
            _number(row)
        counted = len(self.spots) < 3000
        best = (self.crossings(), [list(row) for row in self.rows]) if counted else None
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            for row in self.rows[1:] if down else self.rows[-2::-1]:
                row.sort(key=lambda s: _mean(s.above if down else s.below, s.order))
                _number(row)
            if best is not None and (crossings := self.crossings()) < best[0]:
                best = crossings, [list(row) for row in self.rows]
        if best is not None:
            self.rows = best[1]
            for row in self.rows:
                _number(row)

    def crossings(self) -> int:
        """How many pairs of links between neighbouring layers cross."""
        total = 0
        for row in self.rows:
            ends = [o.order for s in row for o, _ in sorted(s.below, key=lambda end: end[0].order)]
            total += _inversions(ends)
        return total

    def align(self) -> None:
        """Coordinates along the layers.

        Sweeps that look to one side only carry far, which straightens small drawings and lets long ones drift.
        """
        one_sided = _SWEEPS if len(self.rows) <= _DEEP else 0
        for row in self.rows:
            at = -sum(spot.width + GAP_X for spot in row) / 2
            for spot in row:
                spot.x = at + spot.width / 2
                at += spot.width + GAP_X
        for sweep in range(_SWEEPS + 2):
            down = sweep % 2 == 0
            for row in self.rows if down else self.rows[::-1]:
                wanted = []
                for spot in row:
                    near = (spot.above if down else spot.below) or (spot.below if down else spot.above)
                    if sweep >= one_sided:
                        near = [*spot.above, *spot.below]
                    if spot.box is None:  # an edge that passes goes straight on
                        near = [(o, side) for o, side in near if o.box is None] or near
                    wanted.append(sum(o.x + side * o.width for o, side in near) / len(near) if near else spot.x)
                _spread(row, wanted)

    def measure(self) -> tuple[float, float]:
        left = min(spot.x - spot.width / 2 for spot in self.spots)
        right = max(spot.x + spot.width / 2 for spot in self.spots)
        at = 0.0
        for n, row in enumerate(self.rows):
            tall = max(spot.height for spot in row)
            for spot in row:
                spot.x -= left
                if spot.box is None:
                    spot.height = at + tall / 2
                elif not spot.side:
                    spot.box.y = at + (tall - spot.height) / 2
            ports = all(spot.side for spot in row)
            crowd = min(sum(len(s.below) for s in row) * 0.6, 40.0) if n + 1 < len(self.rows) else 0.0
            at += tall + (0.0 if ports and n == 0 else GAP_Y + crowd)
        return right - left, at - GAP_Y


def _ancestors(box: Box) -> list[Box]:
    """The box and all around it, the root last."""
    boxes = [box]
    while boxes[-1].parent is not None:
        boxes.append(boxes[-1].parent)
    return boxes


def _inside_out(root: Box) -> list[Box]:
    boxes, waiting = [], [root]
    while waiting:
        box = waiting.pop()
        boxes.append(box)
        waiting += box.children
    return boxes[::-1]


def _settle(root: Box, x: float, y: float, links: dict[Box, dict[_Way, EdgeSegment]]) -> None:
    """Makes coordinates relative to a box absolute, the outermost first."""
    root.x, root.y = x, y
    waiting = [root]
    while waiting:
        box = waiting.pop()
        for child in box.children:
            child.x += box.x
            child.y += box.y
            waiting.append(child)
        for segment in links.get(box, {}).values():
            segment.points = [(px + box.x, py + box.y) for px, py in segment.points]


def _components(spots: list[_Spot], links: list[_SegmentLink]) -> list[list[_Spot]]:
    """The connected parts, in the order of their first members."""
    head = {spot: spot for spot in spots}

    def find(spot: _Spot) -> _Spot:
        while head[spot] is not spot:
            head[spot] = head[head[spot]]
            spot = head[spot]
        return spot

    for link in links:
        a, b = find(link.start), find(link.end)
        if a is not b:
            head[b] = a
    components: dict[_Spot, list[_Spot]] = {}
    for spot in spots:
        components.setdefault(find(spot), []).append(spot)
    return list(components.values())


def _shelve(blocks: list[tuple[list[_Spot], list[_SegmentLink], float, float]]) -> tuple[float, float]:
    """Moves parts into rows below one another; the width and height taken."""
    if len(blocks) == 1:
        return blocks[0][2], blocks[0][3]
    area = sum((w + GAP_X) * (h + GAP_Y) for _, _, w, h in blocks)
    limit = max((area * _ASPECT) ** 0.5, max(w for _, _, w, _ in blocks))
    x = y = tall = widest = 0.0
    for part, links, w, h in blocks:
        if x and x + w > limit:
            x, y, tall = 0.0, y + tall + GAP_Y, 0.0
        for spot in {*part, *[s for link in links for s in link.via]}:
            spot.x += x
            if spot.box is None:
                spot.height += y
            else:
                spot.box.y += y
        x, tall, widest = x + w + GAP_X, max(tall, h), max(widest, x + w)
    return widest, y + tall


def _sorted(spots: list[_Spot], links: list[_SegmentLink]) -> list[_Spot]:
    """The spots so that links lead ahead; where they go round, the order of the program decides."""
    number = {spot: n for n, spot in enumerate(spots)}
    waits = dict.fromkeys(spots, 0)
    below: dict[_Spot, list[_Spot]] = {spot: [] for spot in spots}
    for link in links:
        if link.start is not link.end:
            waits[link.end] += 1
            below[link.start].append(link.end)
    ready = [n for n, spot in enumerate(spots) if not waits[spot]]
    left = iter(range(len(spots)))
    ordered: list[_Spot] = []
    done: set[int] = set()
    while len(ordered) < len(spots):
        if ready:
            n = heapq.heappop(ready)
        else:
            n = next(k for k in left if k not in done)
        if n in done:
            continue
        done.add(n)
        ordered.append(spots[n])
        for spot in below[spots[n]]:
            waits[spot] -= 1
            if not waits[spot]:
                heapq.heappush(ready, number[spot])
    return ordered


def _mean(near: Sequence[tuple[_Spot, float]], otherwise: float) -> float:
    """Between which places of the next layer the neighbours stand."""
    return sum(o.order + side for o, side in near) / len(near) if near else otherwise


def _join(a: _Spot, b: _Spot, out: float, into: float) -> None:
    a.below.append((b, into))
    b.above.append((a, out))


def _number(row: Iterable[_Spot]) -> None:
    for n, spot in enumerate(row):
        spot.order = n


def _inversions(numbers: list[int]) -> int:
    """How many pairs are out of order, by a binary indexed tree (Fenwick, 1994)."""
    if not numbers:
        return 0
    tree = [0] * (max(numbers) + 2)
    total = 0
    for seen, number in enumerate(numbers):
        at, before = number + 1, 0
        while at:
            before += tree[at]
            at &= at - 1
        total += seen - before
        at = number + 1
        while at < len(tree):
            tree[at] += 1
            at += at & -at
    return total


def _spread(row: list[_Spot], wanted: list[float]) -> None:
    """The coordinates nearest to `wanted`, by weighted least squares, at which neighbours keep their distance."""
    blocks: list[tuple[float, float, int]] = []  # mean of what is wanted less what stands before, weight, spots
    before = 0.0
    offsets = []
    for n, (spot, x) in enumerate(zip(row, wanted, strict=True)):
        if n:
            before += (row[n - 1].width + spot.width) / 2 + GAP_X
        offsets.append(before)
        mean, weight, count = x - before, spot.weight, 1
        while blocks and blocks[-1][0] > mean:
            other, heavy, many = blocks.pop()
            mean = (mean * weight + other * heavy) / (weight + heavy)
            weight, count = weight + heavy, count + many
        blocks.append((mean, weight, count))
    at = 0
    for mean, _, count in blocks:
        for n in range(at, at + count):
            row[n].x = mean + offsets[n]
        at += count
