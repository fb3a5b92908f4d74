"""Gradients of the constructs of the graph IR: calls, branches, loops, functions with gradients of their own, stacks.

A pullback is made while `ir/autodiff.py` copies a graph: it appends its construct again, with regions that give
residuals, and later `emit`s the construct that computes the gradient. No effect happens twice: the gradient only reads
what was kept.

    cond    the residuals of both sides are further results, in slots that the sides share; zeros where a side has none
    while   what a round's gradient reads is pushed on stacks, and a loop over the rounds, last first, pops it. The
            stacks have their full length from the start where the number of rounds is known, else they grow.
    call    the callee is differentiated once, whoever calls it

Loops and branches continue the sums that they are given instead of adding to them in the end, so that sums have the
order in which a tape makes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import dims as dm
from . import dtypes as dt
from . import graph as g
from . import ops, symbols
from .autodiff import Backward, Linearised, Mask, Scope, reached, reaching, scope_of
from .build import Builder
from .counting import counting
from .dims import Dim
from .grad import nothing, zeros_like
from .graph import Graph, Node, Value
from .op import use_interpreter
from .spec import TensorSpec, spec

__all__ = ["PULLBACKS", "FLOWS", "Flow", "Pullback"]

_FILLED = 1 << 24  # bytes of a stack up to which it has its full length from the start
_TYPICAL = 64  # what an unknown size is taken for in that

Cts = Sequence[Any]


class Flow(NamedTuple):
    """What depends differentiably on what, as masks: of results on operands, and of operands for results."""

    forward: Callable[[Node, Mask], Mask]
    backward: Callable[[Node, Mask], Mask]


class Pullback(ABC):
    """A construct in a forward graph, and its gradient.

    Attributes:
        node: the construct, with residuals among its results.
        count: how many results it has without them.
        joined: results that are another value where a condition of the graph is true, or where it is false. Whoever
            emits the gradient adds their cotangents to that value's (`ir/sums.py`).
        popped: results that come from a stack, the stack, and where they were: their cotangents begin with what is
            there in the stack's, which takes the sum in its place.
    """

    node: Node
    count: int
    joined: Sequence[tuple[Value, Value, Value, bool]] = ()
    popped: Sequence[tuple[Value, Value, Value]] = ()

    @property
    def outputs(self) -> list[Value]:
        """The results that it had before."""
        return self.node.outputs[:self.count]

    @abstractmethod
    def emit(self, b: Any, cts: Cts, starts: Cts) -> list[Any]:
        """Append the gradient.

        Args:
            b: a `Builder`, or what has its `construct`, `lift` and `inline`.
            cts: a cotangent or None for each of the first `count` results.
            starts: for each operand of `node`, what its cotangent is so far, or None; of an operand that is there
                twice, at its first place alone.
        Returns:
            For each operand None, or its cotangent, which continues what it was so far; of an operand that is there
            twice, at its first place alone.
        """

    def once(self, found: list[Any]) -> list[Any]:
        """Cotangents of the operands, with all of an operand that is there twice at its first place."""
        first: dict[Value, int] = {}
        for i, v in enumerate(self.node.inputs):
            place = first.setdefault(v, i)
            if place != i and found[i] is not None:
                found[place] = found[i] if found[place] is None else ops.add(found[place], found[i])
                found[i] = None
        return found


def _played(lin: Linearised, seeded: Mask, starts: Cts) -> tuple[Backward, Mask]:
    """The gradient that continues those of `starts` that it adds to, and which these are."""
    plain = lin.backward(seeded)
    started = tuple([s is not None and given for s, given in zip(starts, plain.given, strict=True)])
    back = lin.backward(seeded, started) if any(started) else plain
    for q in back.graph.guards:
        if q.symbols().isdisjoint(lin.local):
            dm.require(q.left, q.op, q.right)
    return back, started


def _seeds(lin: Linearised, cts: Cts) -> Mask:
    return tuple([ct is not None and s for ct, s in zip(cts, lin.seeded, strict=True)])


# -- calls --------------------------------------------------------------------------------------------
def _call_forward(node: Node, mask: Mask) -> Mask:
    found = reached(node.regions[0], mask)
    return tuple([v in found for v in node.regions[0].outputs])


def _call_backward(node: Node, mask: Mask) -> Mask:
    found = reaching(node.regions[0], mask)
    return tuple([v in found for v in node.regions[0].inputs])


class _Call(Pullback):
    def __init__(self, node: Node, operands: list[Value], wanted: Mask, seeded: Mask, scope: Scope,
                 builder: Builder) -> None:
        callee = node.regions[0]
        key = ("vjp", wanted, seeded, scope.whole)
        if key not in callee.derived:
            callee.derived[key] = Linearised(callee, wanted, seeded, scope_of(callee, scope.whole))
        self.lin: Linearised = callee.derived[key]
        self.count = len(node.outputs)
        sizes = dict(node.attrs["sizes"])
        for v, operand in zip(callee.inputs, operands, strict=True):
            sizes.update(_told(v, operand))
        for v, result in zip(self.lin.forward.outputs, node.outputs, strict=False):
            sizes = {**_told(v, result), **sizes}  # sizes that the callee brings have the names that its results give
        further = _renamed([v.spec for v in self.lin.forward.outputs[self.count:]], sizes, self.lin.local, scope)
        node = builder.graph.add(g.CALL, operands, node.attrs, [*node.outputs, *further], [self.lin.forward.copy()],
                                 node.loc)
        self.node = node

    def emit(self, b: Any, cts: Cts, starts: Cts) -> list[Any]:
        lin, node = self.lin, self.node
        seeded = _seeds(lin, cts)
        back, started = _played(lin, seeded, starts)
        kept = [node.inputs[-1 - s] if s < 0 else node.outputs[s] for s in (lin.sources[n] for n in back.reads)]
        operands = [*kept, *_chosen(cts, seeded), *_chosen(starts, started)]
        sizes: dict[str, Any] = {}
        for v, operand in zip(back.graph.inputs, operands, strict=True):
            sizes.update(_told(v, operand))
        attrs = {"name": back.graph.name, "sizes": tuple(sorted(sizes.items()))}
        results = iter(b.construct(g.CALL, operands, attrs, [v.spec for v in _chosen(node.inputs, back.given)],
                                   [back.graph.copy()]))
        return [next(results) if given else None for given in back.given]


def _told(value: Value, operand: Any) -> dict[str, Any]:
    """What the symbols are that an input's shape binds."""
    return {name: size for d, size in zip(value.dims, operand.dims, strict=True)
            if isinstance(d, Dim) and (name := d.name_alone()) is not None}


def _renamed(specs: Sequence[Any], sizes: dict[str, Any], local: set[str], scope: Scope) -> list[Any]:
    """Specs as the surrounding graph sees them: sizes that it does not know are new ones."""
    known: dict[Any, Any] = {}

    def size(d: Any) -> Any:
        if not isinstance(d, Dim):
            return d
        if d.symbols() <= sizes.keys():
            return d.substitute(sizes)
        if d.symbols().isdisjoint(local):
            return d
        if d not in known:
            known[d] = scope.fresh()
        return known[d]
    return [spec(tuple(map(size, s.dims)), s.dtype) for s in specs]


def _chosen(items: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    return [x for x, m in zip(items, mask, strict=True) if m]


def _with_distinct(region: Graph, operands: Sequence[Value], first: int = 0) -> Graph:
    """The region, reading of inputs for equal operands, from number `first` on, the first alone."""
    places: dict[Value, Value] = {}
    same = {v: places.setdefault(x, v) for v, x in zip(region.inputs[first:], operands[first:], strict=True)}
    if len(places) == len(same):
        return region
    region, known = region.copy_with()
    same = {known[v]: known[by] for v, by in same.items()}
    for node in region.nodes:
        node.inputs = [same.get(v, v) for v in node.inputs]
    region.outputs = [same.get(v, v) for v in region.outputs]
    return region


# -- branches -----------------------------------------------------------------------------------------
def _cond_forward(node: Node, mask: Mask) -> Mask:
    found = [reached(r, mask[1:]) for r in node.regions]
    return tuple([any(v in f for v, f in zip(pair, found, strict=True))
                  for pair in zip(*[r.outputs for r in node.regions], strict=True)])


def _cond_backward(node: Node, mask: Mask) -> Mask:
    found = [reaching(r, mask) for r in node.regions]
    return (False, *[any(v in f for v, f in zip(pair, found, strict=True))
                     for pair in zip(*[r.inputs for r in node.regions], strict=True)])


def joined_results(node: Node, operands: Sequence[Value], wanted: Mask, seeded: Mask) -> list[tuple[int, int, int]]:
    """The results of a branch that are, on a side, an operand or another result: number, place, side.

    A place of an operand is its number, that of result n is -1 - n.
    """
    found = []
    for side, region in enumerate(node.regions):
        first: dict[Value, int] = {}
        for k, (v, out, seed) in enumerate(zip(region.outputs, node.outputs, seeded, strict=True)):
            if not seed or not v.dtype.is_differentiable:
                continue
            if v.node is None:
                at = 1 + v.index
                if wanted[at] and operands[at].dims == out.dims:
                    found.append((k, at, side))
            elif v in first and node.outputs[first[v]].dims == out.dims:
                found.append((k, -1 - first[v], side))
            else:
                first.setdefault(v, k)
    return found


class _Cond(Pullback):
    def __init__(self, node: Node, operands: list[Value], wanted: Mask, seeded: Mask, scope: Scope,
                 builder: Builder) -> None:
        outer = symbols.symbols_in(operands)
        self.count = len(node.outputs)
        self.names = joined_results(node, operands, wanted, seeded)
        self.lins = [Linearised(_with_distinct(r, operands[1:]), wanted[1:], seeded, scope, outer)
                     for r in node.regions]
        self.slots: list[tuple[Any, ...]] = []  # dtype and sizes of each slot
        self.own: set[Dim] = set()  # sizes of slots that a side alone knows; on the other side they are 0
        self.places = [self._placed(lin, scope) for lin in self.lins]
        specs = [spec(tuple(dims), dtype) for dtype, *dims in self.slots]
        regions = [self._region(lin, places) for lin, places in zip(self.lins, self.places, strict=True)]
        self.node = builder.graph.add(g.COND, operands, node.attrs, [*node.outputs, *specs], regions, node.loc)
        self.joined = [(self.node.outputs[k], self.node.inputs[at] if at >= 0 else self.node.outputs[-1 - at],
                        operands[0], side == 0) for k, at, side in self.names]
        made = node.regions[1].outputs[0].node if "past" in node.attrs else None
        if made is not None:
            stack, at = made.inputs
            self.popped = [(self.node.outputs[0], operands[1 + stack.index], operands[1 + at.index])]

    def _placed(self, lin: Linearised, scope: Scope) -> dict[int, int]:
        """A slot for each result of a side that is a residual only."""
        free = list(range(len(self.slots)))
        places: dict[int, int] = {}
        names: dict[Any, Dim] = {}

        def size(d: Any) -> Any:
            if not isinstance(d, Dim) or d.symbols().isdisjoint(lin.local):
                return d
            if d not in names:
                names[d] = scope.fresh()
                self.own.add(names[d])
            return names[d]
        for source in lin.sources:
            if source < self.count:
                continue
            value = lin.forward.outputs[source]
            key = (value.dtype, *map(size, value.dims))
            slot = next((n for n in free if self.slots[n] == key), None)
            if slot is None:
                slot = len(self.slots)
                self.slots.append(key)
            else:
                free.remove(slot)
            places[source] = slot
        return places

    def _region(self, lin: Linearised, places: dict[int, int]) -> Graph:
        region = lin.forward.copy()
        filled = {slot: region.outputs[source] for source, slot in places.items()}
        with use_interpreter(Builder(region)):
            region.outputs[self.count:] = [filled.get(n) or _zeros(dtype, [0 if d in self.own else d for d in dims])
                                           for n, (dtype, *dims) in enumerate(self.slots)]
        return region

    def emit(self, b: Any, cts: Cts, starts: Cts) -> list[Any]:
        node, starts = self.node, starts[1:]
        named = {(k, side) for k, _, side in self.names}  # what the sums of others have already
        seeded = [tuple([s and (k, side) not in named for k, s in enumerate(_seeds(lin, cts))])
                  for side, lin in enumerate(self.lins)]
        plays = [_played(lin, s, starts) for lin, s in zip(self.lins, seeded, strict=True)]
        given = [any(back.given[i] for back, _ in plays) for i in range(len(starts))]
        operands: list[Any] = [node.inputs[0]]
        regions = []
        for n, (lin, (back, started)) in enumerate(zip(self.lins, plays, strict=True)):
            kept = [self._kept(n, lin.sources[k]) for k in back.reads]
            own = [*kept, *_chosen(cts, seeded[n]), *_chosen(starts, started)]
            operands += [x for x in own if not any(x is o for o in operands)]
            regions.append((back, own, lin.local))
        operands += [s for s, x in zip(starts, given, strict=True)
                     if x and s is not None and not any(s is o for o in operands)]
        made = [self._gradient(back, own, local, operands[1:], starts, given) for back, own, local in regions]
        specs = [v.spec for v in _chosen(node.inputs[1:], given)]
        results = iter(b.construct(g.COND, operands, {}, specs, made))
        return [None, *[next(results) if x else None for x in given]]

    def _kept(self, side: int, source: int) -> Value:
        if source < 0:
            return self.node.inputs[-source]
        return self.node.outputs[source if source < self.count else self.count + self.places[side][source]]

    def _gradient(self, back: Backward, own: list[Any], local: set[str], operands: list[Any], starts: Cts,
                  given: Sequence[bool]) -> Graph:
        """The gradient of one side, over what both sides take."""
        graph = back.graph.copy()
        graph.guards = []
        sizes = {name: size for v, x in zip(graph.inputs, own, strict=True) for name, size in _told(v, x).items()}
        symbols.rename(graph, {name: size for name, size in sizes.items() if name in local})
        taken: dict[int, Value] = {}
        same = {v: taken.setdefault(id(x), v) for x, v in zip(own, graph.inputs, strict=True)}
        for read in graph.nodes:  # what is given twice, as the cotangent of two results, is one input
            read.inputs = [same.get(v, v) for v in read.inputs]
        graph.outputs = [same.get(v, v) for v in graph.outputs]
        graph.inputs = [taken.get(id(x)) or Value(x.dims, x.dtype) for x in operands]
        _number(graph)
        found = iter(graph.outputs)
        at = {id(x): v for x, v in zip(operands, graph.inputs, strict=True)}
        outputs = []
        with use_interpreter(Builder(graph)):
            for i, x in enumerate(given):
                if back.given[i]:
                    outputs.append(next(found))
                elif x:
                    like = self.node.inputs[1 + i]
                    outputs.append(at[id(starts[i])] if starts[i] is not None else zeros_like(like))
        graph.outputs = outputs
        return graph


def _zeros(dtype: Any, dims: Sequence[Any]) -> Any:
    return ops.fill(np.zeros((), dtype.np), shape=tuple(dims))


def _number(graph: Graph) -> None:
    for i, v in enumerate(graph.inputs):
        v.index = i


# -- loops --------------------------------------------------------------------------------------------
def _loop_forward(node: Node, mask: Mask) -> Mask:
    body, count = node.regions[1], node.attrs["carried"]
    while True:
        found = reached(body, mask)
        more = tuple([m or v in found for m, v in zip(mask, body.outputs, strict=False)]) + mask[count:]
        if more == mask:
            return mask[:count]
        mask = more


def _loop_seeds(node: Node, mask: Mask) -> Mask:
    """Which carried values have cotangents in some round."""
    body = node.regions[1]
    while True:
        found = reaching(body, mask)
        more = tuple([m or v in found for m, v in zip(mask, body.inputs, strict=False)])
        if more == mask:
            return mask
        mask = more


def _loop_backward(node: Node, mask: Mask) -> Mask:
    body, count = node.regions[1], node.attrs["carried"]
    mask = _loop_seeds(node, mask)
    found = reaching(body, mask)
    return mask + tuple([v in found for v in body.inputs[count:]])


class _Stack(NamedTuple):
    """Where a residual of the rounds is kept: numbers among the carried values of the loop."""

    residual: int
    place: int
    offset: int | None  # where the sizes vary from round to round: the carried number of elements so far


class _Begun(NamedTuple):
    """A value that goes into a loop's first round as something carried, and whose sum has begun or has other names.

    Attributes:
        members: the inputs of the body that it is then; what no round changes comes last, if that is among them.
        start: its sum so far, or None.
    """

    members: tuple[int, ...]
    start: Any


class _Loop(Pullback):
    """A loop that keeps what its rounds' gradients read, and counts the rounds."""

    def __init__(self, node: Node, operands: list[Value], wanted: Mask, seeded: Mask, scope: Scope,
                 builder: Builder) -> None:
        self.count = count = node.attrs["carried"]
        self.operands, self.result_dims = operands, [v.dims for v in node.outputs]
        test, body = node.regions
        counted = counting(node)
        self.trips = node.attrs.get("trips") if counted is None else counted.rounds
        self.scope = scope
        depends = _loop_forward(node, wanted)
        seeds = _loop_seeds(node, seeded)
        active = tuple([a and b for a, b in zip(depends, seeds, strict=True)])
        body, outer = _with_distinct(body, operands, count).copy(), symbols.symbols_in(operands)
        # The loop's results may have sizes of the same names, which mean those of the last round.
        names = {name: scope.fresh() for name in sorted(symbols.bound(body) - outer)}
        symbols.rename(body, names)
        scope.rename(names)
        self.lin = lin = Linearised(body, active + wanted[count:], active, scope, outer,
                                    tuple([i >= count for i in range(len(operands))]), shapes_bind=False)
        first, specs, body = self._body(lin.forward.copy(), builder)
        self.rest = len(operands) - count
        extra = len(first)
        test = test.copy()
        test.inputs[count:count] = [Value(v.dims, v.dtype) for v in body.inputs[count:count + extra]]
        _number(test)
        attrs = {**node.attrs, "carried": count + extra, "trips": self.trips}
        self.node = builder.graph.add(g.WHILE, [*operands[:count], *first, *operands[count:]], attrs,
                                      [*node.outputs, *specs], [test, body], node.loc)

    def _body(self, body: Graph, builder: Builder) -> tuple[list[Value], list[Any], Graph]:
        """First values and specs of what is carried besides, and the body that carries it."""
        lin, count = self.lin, self.count
        scalar_spec = TensorSpec((), dt.int64)
        with use_interpreter(builder):
            zero = builder.constant(np.array(0, np.int64))
        first, specs, inputs = [zero], [scalar_spec], [Value((), dt.int64)]
        self.stacks: list[_Stack] = []
        self.past: dict[int, tuple[int, bool]] = {}  # by residual: what is carried, and whether it is the next value
        self.pasts: dict[int, _Stack] = {}  # by what is carried
        inner = Builder(body)
        with use_interpreter(inner):
            results = [ops.add(inputs[0], 1)]
            for n, source in enumerate(lin.sources):
                if source < 0 and -1 - source >= count:
                    continue
                at_carried = -1 - source if source < 0 else source
                value = body.inputs[at_carried] if source < 0 else body.outputs[source]
                if self._has_past(at_carried, body):
                    self.past[n] = at_carried, source >= 0
                    if at_carried in self.pasts:
                        continue
                    value = body.inputs[at_carried]
                size = dm.numel(value.dims)
                offset, at = None, None
                if isinstance(size, Dim) and size.symbols() & lin.local:
                    offset, at = count + len(first), Value((), dt.int64)
                    first, specs, inputs = [*first, zero], [*specs, scalar_spec], [*inputs, at]
                    results.append(ops.add(at, size))
                else:
                    at = ops.multiply(inputs[0], size)
                stack = _Stack(n, count + len(first), offset)
                if n in self.past:
                    self.pasts[at_carried] = stack
                else:
                    self.stacks.append(stack)
                start, here, after = self._stack(builder, value, size if offset is None else None)
                first, specs, inputs = [*first, start], [*specs, after[1]], [*inputs, here]
                results.append(inner.construct(g.PUSH, (here, value, at), {"add": False}, (after[0],))[0])
        body.inputs[count:count] = inputs
        _number(body)
        body.outputs = [*body.outputs[:count], *results]
        return first, specs, body

    def _has_past(self, i: int, body: Graph) -> bool:
        """Whether rules may read the values that a carried one had as those that they were.

        In one round it is the next value, in the other the one before: its cotangent is one sum. The first value is
        the operand, the last one the result, so that a stack holds them all, one a round, and none twice.
        """
        v = self.operands[i] if i < self.count else None
        return (v is not None and self.scope.whole and v.dtype.is_differentiable
                and v.dims == body.inputs[i].dims == body.outputs[i].dims == self.result_dims[i]
                and type(self._length(v.dtype, dm.numel(v.dims))) is int)

    def _length(self, dtype: Any, size: Any) -> Any:
        """The length of a stack of items of a size, where it has it from the start; None where it grows."""
        if size is None or self.trips is None:
            return None
        whole = size * self.trips
        if isinstance(whole, Dim) and not whole.symbols().isdisjoint(self.lin.local):
            return None
        usual = whole.evaluate(dict.fromkeys(whole.symbols(), _TYPICAL)) if isinstance(whole, Dim) else whole
        return whole if usual * dtype.size <= _FILLED else None

    def _stack(self, builder: Builder, value: Value, size: Any) -> tuple[Value, Value, tuple[Any, Any]]:
        """A stack for `value`: empty, as the body gets it, and the specs of it after a push and after the loop."""
        length = self._length(value.dtype, size)
        with use_interpreter(builder):
            start = _zeros(value.dtype, (0 if length is None else length,))
        if length is not None:
            same = spec((length,), value.dtype)
            return start, Value((length,), value.dtype), (same, same)
        a, b, c = [(self.scope.fresh(),) for _ in range(3)]
        return start, Value(a, value.dtype), (spec(b, value.dtype), spec(c, value.dtype))

    # -- backwards --------------------------------------------------------------------------------
    def emit(self, b: Any, cts: Cts, starts: Cts) -> list[Any]:
        count, node = self.count, self.node
        starts = [*starts[:count], *starts[len(starts) - self.rest:]]  # without those of what is carried besides
        back, seeds = self._settled(tuple([ct is not None for ct in cts]))
        runs = type(self.trips) is int and self.trips > 0
        if not any(back.given) and (runs or not any(seeds)):  # without rounds, results are what went in
            return [None] * len(node.inputs)
        totals = [i for i in range(count, len(back.given)) if back.given[i]]
        first = self._first_rounds(seeds, totals, starts)
        joined = tuple([sums.members for sums in first if len(sums.members) > 1])
        begun = {i for sums in first for i in sums.members}.union(totals)
        back = self.lin.backward(seeds, tuple([i in begun for i in range(len(back.given))]), joined)
        for q in back.graph.guards:
            if q.symbols().isdisjoint(self.lin.local):
                dm.require(q.left, q.op, q.right)
        carried, operands, regions = self._reverse(back, seeds, totals, cts, starts, first)
        shift = len(node.inputs) - self.rest - count
        place = [i if i < count else i + shift for i in range(len(back.given))]
        fixed = len(carried) - sum(seeds) - len(totals)
        chosen = [*_chosen(range(count), seeds), *totals]
        specs = [TensorSpec((), dt.int64)] * fixed + [node.inputs[place[i]].spec for i in chosen]
        results = b.construct(g.WHILE, [*carried, *operands], {"carried": len(carried), "trips": self.trips}, specs,
                              regions)[fixed:]
        sums = dict(zip(chosen, results, strict=True))
        for begin in first:
            self._joined(b, begin, sums, cts)
        found: list[Any] = [None] * len(node.inputs)
        own = {i for begin in first for i in begin.members}
        for i, ct in sums.items():
            late = i < count and i not in own and starts[i] is not None  # of a size that changes from round to round
            found[place[i]] = ops.add(starts[i], ct) if late else ct
        return self.once(found)

    def _first_rounds(self, seeds: Mask, totals: list[int], starts: Cts) -> list[_Begun]:
        """Which carried values are, in the first round, something whose sum has begun or that goes by other names."""
        node, count = self.node, self.count
        shift = len(node.inputs) - self.rest - count
        named: dict[Value, list[int]] = {}
        for i in [*_chosen(range(count), seeds), *totals]:
            v = node.inputs[i if i < count else i + shift]
            if i >= count or v.dims == self.lin.forward.inputs[i].dims == node.outputs[i].dims:
                named.setdefault(v, []).append(i)
        so_far = {node.inputs[i if i < count else i + shift]: s for i, s in enumerate(starts) if s is not None}
        return [_Begun(tuple(members), so_far.get(v)) for v, members in named.items()
                if members[0] < count and (len(members) > 1 or v in so_far)]

    def _joined(self, b: Any, begin: _Begun, sums: dict[int, Any], cts: Cts) -> None:
        """The one sum of what was one value in the first round; without rounds it has the results' cotangents."""
        members = [i for i in begin.members if i < self.count]
        last = begin.members[-1]
        total, idle = sums[last], begin.start
        for i in members:
            if cts[i] is not None:
                idle = cts[i] if idle is None else ops.add(idle, b.lift(cts[i]))
        for i in begin.members:
            sums[i] = None
        if idle is None:
            idle = nothing(total)
        ran = ops.greater(b.lift(self.node.outputs[self.count]), 0)
        sums[begin.members[0]] = ops.where(ran, total, idle)

    def _settled(self, given: Mask) -> tuple[Backward, Mask]:
        """The gradient of one round, and the carried values that have a cotangent in some round."""
        lin = self.lin
        seeds = tuple([g and s for g, s in zip(given, lin.seeded, strict=True)])
        while True:  # up to what may have one
            more = lin.backward(seeds).given
            wider = tuple([s or m for s, m in zip(seeds, more, strict=False)])
            if wider == seeds:
                return lin.backward(seeds), seeds
            seeds = wider

    def _reverse(self, back: Backward, seeds: Mask, totals: list[int], cts: Cts, starts: Cts,
                 first: list[_Begun]) -> tuple[list[Any], list[Any], list[Graph]]:
        """The loop over the rounds, last first: carried values, other operands, regions."""
        lin, node, count = self.lin, self.node, self.count
        body = Graph(node.regions[1].name + "_grad")
        stacks = {s.residual: s for s in self.stacks}
        need = sorted({*back.reads, *[lin.sizes[name] for n in back.reads for name in
                                      sorted(dm.symbols_of(lin.residuals[n].dims)) if name in lin.sizes]})
        carried: list[Any] = [node.outputs[count]]
        at = body.add_input((), dt.int64)
        offsets: dict[int, Value] = {}
        for n in need:
            if n in stacks and stacks[n].offset is not None:
                carried.append(node.outputs[stacks[n].offset])  # type: ignore[index]
                offsets[n] = body.add_input((), dt.int64)
        given: list[Value] = []
        sum_of: dict[int, Value] = {}  # what first rounds begin with
        for i in _chosen(range(count), seeds):
            carried.append(cts[i] if cts[i] is not None else nothing(node.outputs[i]))
            dims = tuple(map(self._input_size, lin.forward.outputs[i].dims))
            given.append(body.add_input(dims, node.outputs[i].dtype, "ct"))
        for i in totals:
            like = lin.forward.inputs[i]
            start = starts[i] if starts[i] is not None else next(
                (sums.start for sums in first if i in sums.members and sums.start is not None), None)
            carried.append(start if start is not None else nothing(like))
            sum_of[i] = body.add_input(like.dims, like.dtype, "ct")
            given.append(sum_of[i])
        kept = [n for n in need if n not in self.past]
        operands = [self._kept(n, stacks) for n in kept]
        sources = {n: body.add_input(x.dims, x.dtype) for n, x in zip(kept, operands, strict=True)}
        pasts: dict[int, list[Value]] = {}
        for i in sorted({self.past[n][0] for n in need if n in self.past}):
            given_past = [node.inputs[i], node.outputs[self.pasts[i].place], node.outputs[i]]
            operands += given_past
            pasts[i] = [body.add_input(v.dims, v.dtype) for v in given_past]
        if pasts:
            operands.append(node.outputs[count])
            self.total = body.add_input((), dt.int64)
        for sums in first:
            if sums.start is not None and sums.members[-1] < count:
                operands.append(sums.start)
                sum_of[sums.members[-1]] = body.add_input(sums.start.dims, sums.start.dtype, "ct")
        test = Graph(node.regions[0].name + "_grad")
        for v in body.inputs:
            test.add_input(v.dims, v.dtype)
        with use_interpreter(Builder(test)):
            test.outputs = [ops.greater(test.inputs[0], 0)]
        with use_interpreter(Builder(body)) as inner:
            body.outputs = self._round(inner, back, at, offsets, sources, stacks, given, seeds,  # type: ignore
                                       first, sum_of, pasts)
        return carried, operands, [test, body]

    def _kept(self, residual: int, stacks: dict[int, _Stack]) -> Value:
        """The operand that holds a residual: a stack, or a value that no round changes."""
        if residual in stacks:
            return self.node.outputs[stacks[residual].place]
        shift = len(self.node.inputs) - self.rest - self.count
        return self.node.inputs[-1 - self.lin.sources[residual] + shift]

    def _input_size(self, size: Any) -> Any:
        """A size of a round as an input of the body has it: what is no symbol of its own becomes one."""
        if not isinstance(size, Dim) or size.name_alone() is not None or size.symbols().isdisjoint(self.lin.local):
            return size
        fresh = self.scope.fresh()
        dm.require(fresh, "==", size)
        return fresh

    def _round(self, inner: Builder, back: Backward, rounds: Value, offsets: dict[int, Value],
               sources: dict[int, Value], stacks: dict[int, _Stack], given: list[Value], seeds: Mask,
               first: list[_Begun], sum_of: dict[int, Value], pasts: dict[int, list[Value]]) -> list[Value]:
        """One round of the gradient: what is carried on."""
        lin = self.lin
        at = ops.subtract(rounds, 1)
        values: dict[int, Value] = {}
        after: dict[int, Value] = {}
        told = {name for v in given for name in symbols.alone(v.dims)}  # by the cotangents
        names = {n: name for name, n in lin.sizes.items()}
        for n in sorted(sources, key=lambda n: n not in names):  # sizes first
            if n not in stacks:
                values[n] = sources[n]
            else:
                value = lin.residuals[n]
                size = dm.numel(value.dims)
                start = ops.multiply(at, size) if n not in offsets else ops.subtract(offsets[n], size)
                if n in offsets:
                    after[n] = start
                values[n] = inner.construct(g.POP, (sources[n], start), {"dims": value.dims}, (value.spec,))[0]
            if n in names and names[n] not in told:
                inner.construct(g.BIND, (values[n],), {"symbol": names[n]}, ())
        for n in back.reads:
            if n in self.past:
                i, later = self.past[n]
                values[n] = self._past(inner, lin.residuals[n], pasts[i], at, later)
        begun = self._begun(at, seeds, given, first, sum_of)
        found = iter(inner.inline(back.graph, [*[values[n] for n in back.reads], *begun]))
        results = [next(found) if x else None for x in back.given]
        carried = [r if r is not None else nothing(v) for r, v, s
                   in zip(results, lin.forward.inputs, (*seeds, *[False] * self.rest), strict=True) if s]
        return [at, *[after[n] for n in offsets], *carried,
                *[r for r in results[self.count:] if r is not None]]


    def _past(self, inner: Builder, value: Value, past: list[Value], at: Value, later: bool) -> Value:
        """What a carried value was before a round, or `later` after it."""
        begin, stack, end = past
        place = ops.add(at, 1) if later else at
        size = dm.numel(value.dims)
        known = end if later else begin
        is_known = ops.equal(place, self.total) if later else ops.equal(place, 0)
        then, otherwise = Graph("known"), Graph("past")
        operands = (known, stack, ops.multiply(place, size))
        for region in (then, otherwise):
            for v in operands:
                region.add_input(v.dims, v.dtype)
        then.outputs = [then.inputs[0]]
        otherwise.outputs = otherwise.add(g.POP, otherwise.inputs[1:], {"dims": value.dims, "past": True},
                                          (value.spec,)).outputs
        return inner.construct(g.COND, (is_known, *operands), {"past": True}, (value.spec,), [then, otherwise])[0]

    def _begun(self, at: Value, seeds: Mask, given: list[Value], first: list[_Begun],
               sum_of: dict[int, Value]) -> list[Value]:
        """The cotangents that a round's gradient is given: of its results, sums so far, whether inputs are joined."""
        if not first:
            return given
        count = sum(seeds)
        is_first = ops.equal(at, 0)
        begun: dict[int, Value] = {}
        for sums in first:
            like = self.lin.forward.inputs[sums.members[0]]
            start = sum_of.get(sums.members[-1])
            for i in sums.members:
                if i < self.count:
                    begun[i] = nothing(like) if start is None else ops.where(is_first, start, nothing(like))
        joint = [is_first] if any(len(sums.members) > 1 for sums in first) else []
        return [*given[:count], *[begun[i] for i in sorted(begun)], *given[count:], *joint]


# -- functions with gradients of their own ------------------------------------------------------------
def _custom_forward(node: Node, mask: Mask) -> Mask:
    start, count = node.attrs["results"], node.attrs["inputs"]
    return (any(mask[start:start + count]),) * len(node.outputs)


def _custom_backward(node: Node, mask: Mask) -> Mask:
    start, given = node.attrs["results"], node.attrs["given"]
    rest = len(node.inputs) - start - len(given)
    return (False,) * start + tuple([x and any(mask) for x in given]) + (False,) * rest


class _Custom(Pullback):
    def __init__(self, node: Node, operands: list[Value], wanted: Mask, seeded: Mask, scope: Scope,
                 builder: Builder) -> None:
        self.count = len(node.outputs)
        self.node = builder.graph.add(node.op, operands, node.attrs, node.outputs, [node.regions[0].copy()], node.loc)

    def emit(self, b: Any, cts: Cts, starts: Cts) -> list[Any]:
        node, start, given = self.node, self.node.attrs["results"], self.node.attrs["given"]
        if "error" in node.attrs:
            raise node.attrs["error"]
        full = [zeros_like(v) if ct is None else ct for ct, v in zip(cts, node.outputs, strict=True)]
        found = iter(b.inline(node.regions[0], [*full, *node.inputs[start:]]))
        results = [None] * start + [next(found) if x else None for x in given]
        results += [None] * (len(node.inputs) - len(results))
        return self.once([ct if ct is None or s is None else ops.add(s, ct)
                          for s, ct in zip(starts, results, strict=True)])


# -- stacks -------------------------------------------------------------------------------------------
class _Push(Pullback):
    def __init__(self, node: Node, operands: list[Value], wanted: Mask, seeded: Mask, scope: Scope,
                 builder: Builder) -> None:
        self.count = 1
        self.node = builder.graph.add(g.PUSH, operands, node.attrs, node.outputs, (), node.loc)

    def emit(self, b: Any, cts: Cts, starts: Cts) -> list[Any]:
        # A place is written once, so that what was there before has no part in anything.
        _, value, at = self.node.inputs
        ct = b.construct(g.POP, (cts[0], at), {"dims": value.dims}, (value.spec,))[0]
        return [cts[0] if starts[0] is None else ops.add(starts[0], cts[0]),
                ct if starts[1] is None else ops.add(starts[1], ct), None]


class _Pop(Pullback):
    def __init__(self, node: Node, operands: list[Value], wanted: Mask, seeded: Mask, scope: Scope,
                 builder: Builder) -> None:
        self.count = 1
        self.node = builder.graph.add(g.POP, operands, node.attrs, node.outputs, (), node.loc)

    def emit(self, b: Any, cts: Cts, starts: Cts) -> list[Any]:
        stack, at = self.node.inputs
        total = starts[0] if starts[0] is not None else zeros_like(stack)
        return [b.construct(g.PUSH, (total, cts[0], at), {"add": "past" not in self.node.attrs}, (stack.spec,))[0],
                None]


PULLBACKS: dict[Any, Callable[..., Pullback]] = {
    g.COND: _Cond, g.WHILE: _Loop, g.CALL: _Call, g.CUSTOM: _Custom, g.PUSH: _Push, g.POP: _Pop}

FLOWS: dict[Any, Flow] = {
    g.COND: Flow(_cond_forward, _cond_backward),
    g.WHILE: Flow(_loop_forward, _loop_backward),
    g.CALL: Flow(_call_forward, _call_backward),
    g.CUSTOM: Flow(_custom_forward, _custom_backward),
    g.PUSH: Flow(lambda node, mask: (mask[0] or mask[1],), lambda node, mask: (mask[0], mask[0], False)),
    g.POP: Flow(lambda node, mask: (mask[0],), lambda node, mask: (mask[0], False)),
}
