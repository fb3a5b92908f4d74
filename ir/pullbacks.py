"""Gradients of the constructs of the graph IR: calls, branches, loops, functions with gradients of their own, stacks.

A pullback is made while `ir/linearise.py` copies a graph: it appends its construct again, with regions that give
residuals, and later `emit`s the construct that computes the gradient. No effect happens twice: the gradient only reads
what was kept.

    cond    the residuals of both sides are further results, in slots that the sides share; zeros where a side has none
    while   what a round's gradient reads is pushed on stacks, and a loop over the rounds, last first, pops it. The
            stacks have their full length from the start where the number of rounds is known, else they grow.
    call    has none: whoever differentiates a graph inlines what it calls, since a call is the ops that it runs

Loops and branches continue the sums that they are given instead of adding to them in the end, so that sums have the
order in which a tape makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from . import dims as dm
from . import dtypes as dt
from . import graph as g
from . import ops, symbols
from .build import Builder
from .dims import Dim, DimLike, Shape
from .dtypes import DType
from .grad import copied, nothing, scalar, zeros_like
from .graph import Graph, Node, Value
from .linearise import (
    FLOWS,
    PULLBACKS,
    Backward,
    Emitted,
    Flow,
    GraphWriter,
    Linearised,
    Mask,
    Popped,
    Pullback,
    Scope,
    Starts,
    reached,
    reaching,
    told,
)
from .loop_pullback import LOOP_FLOW, LoopPullback
from .op import use_interpreter
from .pullback import (
    by_flag,
    chosen,
    guards_within,
    late_of,
    number_inputs,
    played,
    seeds_of,
    sizes_of,
    tensors_of,
    touched_by,
    with_distinct,
    zeros_of,
)
from .spec import spec
from .sums import Exists, Link, Sums, filled
from .types import AnyTensor, Results, Spec

__all__ = ["Pullback", "Starts"]

_BOOL = spec((), dt.bool_)


# -- calls --------------------------------------------------------------------------------------------
def _call_forward(node: Node, mask: Mask) -> Mask:
    varied = reached(node.regions[0], mask)
    return tuple([v in varied for v in node.regions[0].outputs])


def _call_backward(node: Node, mask: Mask) -> Mask:
    useful = reaching(node.regions[0], mask)
    return tuple([v in useful for v in node.regions[0].inputs])


# -- branches -----------------------------------------------------------------------------------------
def _cond_forward(node: Node, mask: Mask) -> Mask:
    varied = [reached(r, mask[1:]) for r in node.regions]
    return tuple([any(v in f for v, f in zip(pair, varied, strict=True))
                  for pair in zip(*[r.outputs for r in node.regions], strict=True)])


def _cond_backward(node: Node, mask: Mask) -> Mask:
    useful = [reaching(r, mask) for r in node.regions]
    return (False, *[any(v in f for v, f in zip(pair, useful, strict=True))
                     for pair in zip(*[r.inputs for r in node.regions], strict=True)])


class _CondPullback(Pullback):
    def __init__(self, node: Node, operands: list[Value], wanted: Mask, seeded: Mask, scope: Scope,
                 builder: Builder) -> None:
        outer = symbols.symbols_in(operands)
        self.count = len(node.outputs)

        def owned(k: int, place: int) -> bool:
            """Whether what a result is on a side can share its sum."""
            has_sum = wanted[1 + place] if place >= 0 else seeded[-1 - place]
            return seeded[k] and has_sum
        self.lins = [Linearised(with_distinct(r, operands[1:]), wanted[1:], seeded, scope, outer, owned=owned)
                     for r in node.regions]
        self.slots: list[tuple[DType, Shape]] = []  # dtype and sizes of each slot
        self.own: set[Dim] = set()  # sizes of slots that a side alone knows; on the other side they are 0
        self.places = [self._placed(lin, scope) for lin in self.lins]
        self.names = [{**lin.named, **self._handed_on(lin, places)}
                      for lin, places in zip(self.lins, self.places, strict=True)]
        flags = sorted({key for names in self.names for key, holds in names.items() if holds is not None})
        specs = [spec(dims, dtype) for dtype, dims in self.slots] + [spec((), dt.bool_)] * len(flags)
        regions = [self._region(n, flags) for n in range(2)]
        self.node = builder.graph.add(g.COND, operands, node.attrs, [*node.outputs, *specs], regions, node.loc)
        self.sizes = [self._kept(side, lin.sources[n]) for side, lin in enumerate(self.lins) for n in lin.sized()]
        conditions = dict(zip(flags, self.node.outputs[self.count + len(self.slots):], strict=True))
        self.joined = []
        for k, place in sorted({key for names in self.names for key in names}):
            name = self.node.outputs[k]
            value = self.node.inputs[1 + place] if place >= 0 else self.node.outputs[-1 - place]
            if (k, place) in conditions:
                self.joined.append((name, value, conditions[k, place], True))
            else:
                self.joined += [(name, value, operands[0], side == 0) for side, names in enumerate(self.names)
                                if (k, place) in names]
        self.moves = "past" in node.attrs
        maker = node.regions[1].outputs[0].node if self.moves and not node.attrs["past"] else None
        if maker is not None:
            stack, at = maker.inputs
            self.popped = [Popped(self.node.outputs[0], operands[1 + stack.index], operands[1 + at.index],
                                  operands[0])]

    def _placed(self, lin: Linearised, scope: Scope) -> dict[int, int]:
        """A slot for each result of a side that is a residual only."""
        free = list(range(len(self.slots)))
        places: dict[int, int] = {}
        names: dict[Dim, Dim] = {}

        def size(d: DimLike) -> DimLike:
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
            key = (value.dtype, tuple(map(size, value.dims)))
            slot = next((n for n in free if self.slots[n] == key), None)
            if slot is None:
                slot = len(self.slots)
                self.slots.append(key)
            else:
                free.remove(slot)
            places[source] = slot
        return places

    def _handed_on(self, lin: Linearised, places: dict[int, int]) -> dict[tuple[int, int], Value]:
        """The slots that a result may be, on one side, as names of it, in the form of `Linearised.names`."""
        return {(self.count + places[lin.sources[n]], -1 - k): holds
                for n, ways in lin.handed_on().items() for k, holds in ways}

    def _region(self, side: int, flags: Sequence[tuple[int, int]]) -> Graph:
        lin, places, names = self.lins[side], self.places[side], self.names[side]
        region, copies = lin.forward.copy_with()
        builder = Builder(region)
        filled = {slot: region.outputs[source] for source, slot in places.items()}
        with use_interpreter(builder):
            region.outputs[self.count:] = [filled.get(n) or zeros_of(dtype, [0 if d in self.own else d for d in dims])
                                           for n, (dtype, dims) in enumerate(self.slots)]
        for key in flags:
            holds = names.get(key)
            flag = builder.constant(np.array(key in names)) if holds is None else copies[holds]
            region.outputs.append(flag)
        return region

    def emit(self, b: GraphWriter, ends: Starts, starts: Starts, links: Sequence[Link]) -> Emitted:
        node, starts = self.node, starts[1:]
        sums = [start for start, _ in starts]
        seeded = [tuple([s and None not in lin.elsewhere.get(k, ()) for k, s in enumerate(seeds_of(lin, ends))])
                  for lin in self.lins]
        grown = [lin.backward(s).connected for lin, s in zip(self.lins, seeded, strict=True)]
        grow = tuple(map(any, zip(*grown, strict=True)))
        touched = touched_by(grow, links, 1)
        links = [link for link in links if touched[link.one - 1]]
        late = [late_of(s, ends) for s in seeded]
        plays = [played(lin, s, x, starts, touched, links, 1)
                 for lin, s, x in zip(self.lins, seeded, late, strict=True)]
        plays = [self._alike(n, s, x, starts, touched, links, plays)
                 for n, (s, x) in enumerate(zip(seeded, late, strict=True))]
        connected = [any(back.connected[i] for back, _ in plays) for i in range(len(starts))]
        operands: list[AnyTensor] = [node.inputs[0]]
        regions = []
        for n, (lin, (back, started)) in enumerate(zip(self.lins, plays, strict=True)):
            residuals = [self._kept(n, lin.sources[k]) for k in back.reads]
            own = [*residuals, *tensors_of(seeded[n], late[n], ends, sums, started, links)]
            for x in own:
                if not any(x is o for o in operands[1:]):
                    operands.append(x)
            regions.append((lin, back, own))
        operands += [s for s, x in zip(sums, connected, strict=True)
                     if x and s is not None and not any(s is o for o in operands[1:])]
        backs = [back for back, _ in plays]
        conditional = [any(back.conditional[i] for back in backs) for i in range(len(starts))]
        gradients = [self._gradient(lin, back, own, operands[1:], sums, connected, conditional)
                     for lin, back, own in regions]
        specs: list[Spec] = [*chosen(node.inputs[1:], connected), *[_BOOL] * sum(conditional)]
        results = iter(b.construct(g.COND, operands, {}, specs, gradients))
        totals = [next(results) if x else None for x in connected]
        taken = cache(lambda: b.lift(node.inputs[0]))
        ways: list[Exists] = [taken, cache(lambda: ops.logical_not(taken()))]
        added: list[Exists] = []
        for i, (start, begun) in enumerate(starts):
            sides = [way for way, back in zip(ways, backs, strict=True) if back.connected[i]]
            by_side = sides[0] if len(sides) == 1 and (start is None or begun is not None) else None
            added.append(by_flag(next(results)) if conditional[i] else by_side)
        return [(None, None), *zip(totals, added, strict=True)]

    def _alike(self, side: int, seeded: Mask, late: Mask, starts: Starts, touched: Mask, links: Sequence[Link],
               plays: Sequence[tuple[Backward, Mask]]) -> tuple[Backward, Mask]:
        """What one side plays, which gives the sum of a value that has another name there if the other side gives it:
        names of one value have one sum, whichever side runs."""
        named = {place - 1 for link in links for place in link[:2]}
        pairs = zip(plays[side][0].connected, plays[1 - side][0].connected, strict=True)
        shared = tuple([i in named and there and not here for i, (here, there) in enumerate(pairs)])
        if True not in shared:
            return plays[side]
        return played(self.lins[side], seeded, late, starts, touched, links, 1, shared)

    def _kept(self, side: int, source: int) -> Value:
        if source < 0:
            return self.node.inputs[-source]
        return self.node.outputs[source if source < self.count else self.count + self.places[side][source]]

    def _gradient(self, lin: Linearised, back: Backward, own: list[AnyTensor], operands: list[AnyTensor],
                  starts: Sequence[AnyTensor | None], connected: Sequence[bool],
                  conditional: Sequence[bool]) -> Graph:
        """The gradient of one side, over what both sides take.

        Args:
            conditional: for which of the operands it tells whether anything was added.
        """
        graph = back.graph.copy()
        graph.guards = guards_within(lin, back)
        sizes = {name: size for v, x in zip(graph.inputs, own, strict=True) for name, size in sizes_of(v, x).items()}
        symbols.rename(graph, {name: size for name, size in sizes.items() if name in lin.local})
        taken: dict[int, Value] = {}
        same = {v: taken.setdefault(id(x), v) for x, v in zip(own, graph.inputs, strict=True)}
        for read in graph.nodes:  # what is given twice, as the cotangent of two results, is one input
            read.inputs = [same.get(v, v) for v in read.inputs]
        graph.outputs = [same.get(v, v) for v in graph.outputs]
        graph.inputs = [taken.get(id(x)) or Value(x.dims, x.dtype) for x in operands]
        number_inputs(graph)
        gradients = iter(graph.outputs)
        at = {id(x): v for x, v in zip(operands, graph.inputs, strict=True)}
        outputs, builder = [], Builder(graph)
        with use_interpreter(builder):
            for i, x in enumerate(connected):
                if back.connected[i]:
                    outputs.append(next(gradients))
                elif x:
                    like = self.node.inputs[1 + i]
                    outputs.append(at[id(starts[i])] if starts[i] is not None else builder.value(nothing(like)))
            for x, by_side, is_asked in zip(back.connected, back.conditional, conditional, strict=True):
                if is_asked:
                    outputs.append(next(gradients) if by_side else builder.constant(np.array(x)))
        graph.outputs = outputs
        return graph


# -- functions with gradients of their own ------------------------------------------------------------
def _custom_forward(node: Node, mask: Mask) -> Mask:
    start, count = node.attrs["results"], node.attrs["inputs"]
    return (any(mask[start:start + count]),) * len(node.outputs)


def _custom_backward(node: Node, mask: Mask) -> Mask:
    start, given = node.attrs["results"], node.attrs["given"]
    rest = len(node.inputs) - start - len(given)
    return (False,) * start + tuple([x and any(mask) for x in given]) + (False,) * rest


class _CustomPullback(Pullback):
    def __init__(self, node: Node, operands: list[Value], wanted: Mask, seeded: Mask, scope: Scope,
                 builder: Builder) -> None:
        self.count = len(node.outputs)
        self.node = builder.graph.add(node.op, operands, node.attrs, node.outputs, [node.regions[0].copy()], node.loc)

    def emit(self, b: GraphWriter, ends: Starts, starts: Starts, links: Sequence[Link]) -> Emitted:
        node, start, given = self.node, self.node.attrs["results"], self.node.attrs["given"]
        if "error" in node.attrs:
            raise node.attrs["error"]
        full = [zeros_like(v) if ct is None else filled(ct, exists)
                for (ct, exists), v in zip(ends, node.outputs, strict=True)]
        gradients = iter(b.inline(node.regions[0], [*full, *node.inputs[start:]]))
        results = [None] * start + [next(gradients) if x else None for x in given]
        results += [None] * (len(node.inputs) - len(results))
        sums = Sums({i: s for i, (s, _) in enumerate(starts) if s is not None}, lambda i: node.inputs[i])
        for link in links:
            sums.join(link.other, link.one, link.holds)
        for v, ct in zip(node.inputs, results, strict=True):
            if ct is not None:
                sums.add(node.inputs.index(v), copied(ct, full))
        return [(sums.get(i), None) for i in range(len(results))]


# -- stacks -------------------------------------------------------------------------------------------
class _Push(Pullback):
    moves = True

    def __init__(self, node: Node, operands: list[Value], wanted: Mask, seeded: Mask, scope: Scope,
                 builder: Builder) -> None:
        self.count = 1
        self.node = builder.graph.add(g.PUSH, operands, node.attrs, node.outputs, (), node.loc)

    def emit(self, b: GraphWriter, ends: Starts, starts: Starts, links: Sequence[Link]) -> Emitted:
        # A place is written once, so that what was there before has no part in anything.
        _, value, at = self.node.inputs
        total, exists = ends[0]
        assert total is not None  # the node has one result, and a gradient
        more = {"told": self.node.attrs["told"]} if "told" in self.node.attrs else {}
        ct = b.construct(g.POP, (total, at), {"dims": value.dims, **more}, (value,))[0]
        totals = [part if start is None else ops.add(start, part)
                  for part, (start, _) in zip((total, ct), starts, strict=False)]
        is_read: Exists = None
        if more and (exists is not None or "past" in self.node.attrs):
            is_read = told(b, total, at, more["told"])
        return [(totals[0], None), (totals[1], is_read), (None, None)]


def _rest(flat: AnyTensor) -> Results:
    """A vector without its first element."""
    return ops.slice_(flat, begin=(1,), size=(flat.dims[0] - 1,))


class _Pop(Pullback):
    moves = True

    def __init__(self, node: Node, operands: list[Value], wanted: Mask, seeded: Mask, scope: Scope,
                 builder: Builder) -> None:
        self.count = 1
        # What a gradient reads of a stack, gradients of that gradient read there, too (`ir/linearise.py: _read_again`).
        more = {"begins": True} if scope.whole and "told" in node.attrs and "past" not in node.attrs else {}
        self.node = builder.graph.add(g.POP, operands, {**node.attrs, **more}, node.outputs, (), node.loc)
        self.begins = "begins" in self.node.attrs
        if self.begins:
            stack, at = operands
            self.popped = [Popped(self.node.outputs[0], stack, at, builder.constant(np.array(False)))]

    def emit(self, b: GraphWriter, ends: Starts, starts: Starts, links: Sequence[Link]) -> Emitted:
        stack, at = self.node.inputs
        total = starts[0][0] if starts[0][0] is not None else zeros_like(stack)
        attrs: dict[str, Any] = {"add": "past" not in self.node.attrs and not self.begins}
        ct, exists = ends[0]
        assert ct is not None  # likewise
        if "told" in self.node.attrs:  # together with what tells whether it is there
            lead, attrs["told"] = self.node.attrs["told"], 0
            flag = scalar(1, stack) if exists is None else ops.where(exists(), scalar(1, stack), scalar(0, stack))
            flat = ops.reshape(ct, shape=(dm.numel(ct.dims),))
            ct = ops.concat(ops.reshape(flag, shape=(1,)), flat if lead else _rest(flat), axis=0)
            at = ops.subtract(b.lift(at), lead) if lead else at
        pushed, = b.construct(g.PUSH, (total, ct, at), attrs, (stack,))
        return [(pushed, None), (None, None)]


PULLBACKS.update({
    g.COND: _CondPullback, g.WHILE: LoopPullback, g.CUSTOM: _CustomPullback,
    g.PUSH: _Push, g.POP: _Pop})

FLOWS.update({
    g.COND: Flow(_cond_forward, _cond_backward),
    g.WHILE: LOOP_FLOW,
    g.CALL: Flow(_call_forward, _call_backward),
    g.CUSTOM: Flow(_custom_forward, _custom_backward),
    g.PUSH: Flow(lambda node, mask: (mask[0] or mask[1],), lambda node, mask: (mask[0], mask[0], False)),
    g.POP: Flow(lambda node, mask: (mask[0],), lambda node, mask: (mask[0], False)),
})
