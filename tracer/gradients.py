"""Gradients of constructs that a trace stages as one node: tapes inside of the trace record each with its own rule.

The node is staged as it is. Only when a gradient is asked for does it become one that gives residuals
(`ir/pullbacks.py`) in the same place with the same results, and the construct of the gradient is staged where the tape
is played. The new results are recorded as well, so that tapes around see where they come from: that is all there is to
higher orders.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache, reduce
from itertools import zip_longest
from typing import Any, TypeAlias

from twofold.eager import record
from twofold.eager.tensor import Tensor
from twofold.ir import graph as g
from twofold.ir import ops, symbols
from twofold.ir.autodiff import Scope
from twofold.ir.build import Builder
from twofold.ir.connection import connections_of, staged
from twofold.ir.grad import nothing, refitted, zeros_like
from twofold.ir.linearise import FLOWS, PULLBACKS
from twofold.ir.names import roots
from twofold.ir.op import interpreter, use_interpreter
from twofold.ir.passes.inlining import inline_calls
from twofold.ir.pullbacks import Pullback, Starts
from twofold.ir.replay import replay
from twofold.ir.sums import Exists, Link, Start
from twofold.ir.types import Attrs, Spec

from .following import followed
from .staging import restage
from .symbolic import SymbolicTensor, symbolic
from .trace import StagedConstruct, current, differentiated
from .types import Cotangent

__all__ = ["Condition", "Connection", "RecordedConstruct", "record_construct", "recorded"]

#: whether a value depends on what is watched: certainly, not at all, or where one of some bool scalars is true
Connection: TypeAlias = bool | tuple[Tensor, ...]

#: gives a bool scalar of the trace under way
Condition: TypeAlias = Callable[[], Tensor]


def record_construct(construct: StagedConstruct) -> None:
    """Tell the recorders of this context of a construct that was staged: for `trace.records_constructs`."""
    if construct.node.op not in FLOWS or not any(o.dtype.is_differentiable for o in construct.results):
        return
    wanted = followed(construct.operands)
    if any(wanted):
        construct.recorded = RecordedConstruct(construct, wanted)
        record.record_custom(construct.recorded, tuple(construct.operands), tuple(construct.results), True)


def recorded(construct: StagedConstruct) -> RecordedConstruct:
    """What knows the names of a construct's results, whether recorders know of it or not."""
    if construct.recorded is None:
        construct.recorded = RecordedConstruct(construct, (False,) * len(construct.operands))
    known: RecordedConstruct = construct.recorded
    return known


def _joined(before: Cotangent, part: Tensor, holds: Tensor, like: Spec) -> Tensor:
    """The sum `before`, or None, and `part` where `holds`, with the sizes of `like`; zeros where neither is there."""
    part = refitted(part, like)
    if before is None:
        return ops.select(holds, part, zeros_like(part))
    return ops.add(before, ops.select(holds, part, nothing(part)))


class RecordedConstruct:
    """A construct that recorders know, and the rule of its gradient that they are given; `eager/playing.py` says what
    it asks of a rule.

    Args:
        wanted: for each operand, whether a recorder follows it.

    Attributes:
        node: as it was when it was last looked at; `present` gives it.
        places: for each tensor of `inputs`, which operand of `node` it is.
        outputs: a tensor for each result of `node`, of which the first `count` are those that it had from the start.
        moves: whether the gradient only moves cotangents.
    """

    only_names = False

    def __init__(self, construct: StagedConstruct, wanted: tuple[bool, ...]) -> None:
        self.trace, self.node, self.wanted = construct.trace, construct.node, wanted
        self.inputs, self.outputs = tuple(construct.operands), list(construct.results)
        self.count = len(self.outputs)
        self.places = list(range(len(self.inputs)))
        self.recorders = record.active.get()
        self.tensors: dict[g.Value, Tensor] = dict(zip(self.node.inputs, self.inputs, strict=True))
        self.tensors.update(zip(self.node.outputs, self.outputs, strict=True))
        self.staged: dict[tuple[bool, tuple[bool, ...]], tuple[Pullback, list[int]]] = {}
        self.naming: tuple[Pullback, list[int]] | None = None  # that for `names`
        self.moves = self.node.op in (g.PUSH, g.POP)
        self.connections: dict[Hashable, list[Connection]] = {}  # those that running tells, by those of the inputs

    def __call__(self, cts: Sequence[Cotangent], starts: Sequence[Cotangent] | None = None,
                 links: Sequence[Link] = ()) -> list[Cotangent]:
        """The whole gradient, for recorders that do not join sums themselves."""
        assert starts is None, "sums in a trace are played by `continued`"
        return self.alone([*cts, *[None] * (len(self.present().outputs) - len(cts))])

    def joined(self) -> list[tuple[int, int, Condition]]:
        """The results that are an operand or another result where a condition holds; see `eager/playing.py`."""
        node = self.present()
        roots_of: dict[g.Value, frozenset[g.Value]] = {}
        if node.op not in (g.COND, g.WHILE, g.CALL) or all(roots(v, roots_of) == {v} for v in node.outputs):
            return []
        return self.joins(*self.pullback(tuple([v.dtype.is_differentiable for v in node.outputs])))

    def names(self) -> list[tuple[int, int, Condition]]:
        """`joined` for all operands, whether recorders follow them or not: what the construct hands on."""
        if self.naming is None:
            node = self.present()
            seeded = tuple([k < self.count and v.dtype.is_differentiable for k, v in enumerate(node.outputs)])
            wanted = self.mask([t.dtype.is_differentiable for t in self.inputs])
            self.naming = self.stage(wanted, seeded, only_names=True), list(self.places)
        return self.joins(*self.naming)

    def joins(self, pullback: Pullback, places: Sequence[int]) -> list[tuple[int, int, Condition]]:
        """Results that may be other values, in the form of `joined`."""
        operands = {pullback.node.inputs[p]: i for i, p in reversed(list(enumerate(places)))}
        results = {v: -1 - k for k, v in enumerate(pullback.node.outputs)}
        emitter = _TraceEmitter(self)

        def holds(condition: g.Value, when: bool) -> Condition:
            return cache(lambda: emitter.lift(condition) if when else ops.logical_not(emitter.lift(condition)))
        return [(-1 - results[name], operands[value] if value in operands else results[value], holds(condition, when))
                for name, value, condition, when in pullback.joined]

    def connected(self, inputs: Sequence[Connection], surely: bool = False) -> Sequence[Connection | None]:
        """Whether the results depend on what is watched, from whether the inputs do; see `eager/playing.py`."""
        operands: list[Connection] = [False] * len(self.present().inputs)
        for place, x in zip(self.places, inputs, strict=True):
            operands[place] = x
        connections = connections_of(self.node, [x if isinstance(x, bool) else None for x in operands])
        if None not in connections or not surely:
            return list(connections)
        key = tuple([x if isinstance(x, bool) else tuple([self.trace.lift(t) for t in x]) for x in inputs])
        if key not in self.connections:
            self.connections[key] = self.staged_connections(operands)
        return self.connections[key]

    def staged_connections(self, operands: Sequence[Connection]) -> list[Connection]:
        """The same as tensors, further results of the node, where it is known only when the function runs."""
        old, builder = self.node, Builder(g.Graph())
        flags_of: list[bool | g.Value] = []
        with use_interpreter(builder):
            for x in operands:
                flags = [] if isinstance(x, bool) else [self.trace.lift(t) for t in x]
                flags_of.append(x if isinstance(x, bool) else reduce(ops.logical_or, flags))
        count = len(old.outputs)
        node, connections = staged(builder, old, flags_of)
        self.replace(node, builder.graph)
        return [x if isinstance(x, bool) else (_TraceEmitter(self).lift(x),) for x in connections[:count]]

    def pullback(self, seeded: tuple[bool, ...]) -> tuple[Pullback, list[int]]:
        """The construct as it gives what the gradient reads, and the places of `inputs` among its operands."""
        # The gradient may be recorded, too: by a tape of the trace, or by one around the function, for which a few more
        # values are no burden where there is no loop. Where there is one, the function is traced again for it.
        looped = self.node.op is g.WHILE or any(n.op is g.WHILE for r in self.node.regions for n in r.walk())
        whole = differentiated(current()) or not looped
        self.trace.residuals.spared |= not whole
        for (was_whole, before), earlier in self.staged.items():
            if was_whole is whole and all(s or not x for s, x in zip_longest(before, seeded, fillvalue=False)):
                return earlier
        pullback = self.staged[whole, seeded] = self.stage(self.mask(self.wanted), seeded, whole), list(self.places)
        return pullback

    def mask(self, wanted: Sequence[bool]) -> tuple[bool, ...]:
        """For each operand of the node as it is, whether it is one of those of `inputs` that are wanted."""
        values = {self.node.inputs[place] for place, want in zip(self.places, wanted, strict=True) if want}
        return tuple([v in values for v in self.node.inputs])

    def continued(self, ends: Starts, starts: Starts, links: Sequence[Link]) -> list[tuple[Cotangent, Exists]]:
        """Stage the gradient where the trace is now; see `ir.linearise.Pullback.emit`, for each of `inputs`."""
        # Of all results there are when it is played.
        ends = [*ends, *[(None, None)] * (len(self.present().outputs) - len(ends))]
        pullback, places = self.pullback(tuple([ct is not None for ct, _ in ends]))
        begun: list[Start] = [(None, None)] * len(pullback.node.inputs)
        for place, start in zip(places, starts, strict=True):
            begun[place] = start
        links = [Link(places[link.one], places[link.other], link.holds) for link in links]
        emitted = pullback.emit(_TraceEmitter(self), ends[:pullback.count], begun, links)
        return [emitted[place] for place in places]

    def alone(self, cts: list[Cotangent]) -> list[Cotangent]:
        """The cotangents of the inputs from those of all results, with those of joined results in one sum."""
        joined = self.joined()
        for k, at, holds in joined:
            if at < 0 and (part := cts[k]) is not None:
                cts[-1 - at] = _joined(cts[-1 - at], part, holds(), self.outputs[-1 - at])
        parts: list[Cotangent] = []
        if any(ct is not None for ct in cts):
            ends: list[Start] = [(ct, None) for ct in cts]
            parts = [ct for ct, _ in self.continued(ends, [(None, None)] * len(self.inputs), ())]
        for k, at, holds in joined:
            if at >= 0 and (part := cts[k]) is not None:
                parts[at] = _joined(parts[at], part, holds(), self.inputs[at])
        return parts

    def stage(self, wanted: tuple[bool, ...], seeded: tuple[bool, ...], whole: bool = False,
              only_names: bool = False) -> Pullback:
        """Make the node give what the gradient by the operands `wanted` reads, in its place among the nodes."""
        self.inline_calls()
        trace, old, segment = self.trace, self.node, g.Graph()
        builder = Builder(segment)
        builder.loc = old.loc
        guards = list(trace.guards or ())
        scope = Scope(lambda: trace.fresh("r"), list(guards), whole, only_names)
        pullback: Pullback = PULLBACKS[old.op](old, list(old.inputs), wanted, seeded, scope, builder)
        for guard in scope.guards[len(guards):]:
            assert trace.guards is not None, "a trace that has nodes has been active"
            trace.guards.assume(guard)
        node = pullback.node
        same = dict(zip(node.outputs, old.outputs, strict=False))
        # What is kept may be a result by another name, too: gradients of this gradient, for which it is a result like
        # others, find that by themselves.
        pullback.joined = [(same[name], same.get(value, value), condition, when)
                           for name, value, condition, when in pullback.joined if name in same]
        self.replace(node, segment)
        return pullback

    def inline_calls(self) -> None:
        """Put what is called in the regions in the place of the calls: a call is the ops that it runs, in their
        order."""
        node, graph = self.node, self.trace.graph

        def around() -> set[str]:
            return set().union(symbols.symbols_in(graph.inputs), *map(symbols.brought, graph.nodes))
        if any(inner.op is g.CALL for region in node.regions for inner in region.walk()):
            node.regions = tuple([region.copy() for region in node.regions])
            for region in node.regions:
                inline_calls(region, lambda: self.trace.fresh("s"), around)

    def replace(self, node: g.Node, segment: g.Graph) -> None:
        """Put a node with further results in the place of the present one, together with the nodes that compute its
        operands."""
        old = self.node
        for i, value in enumerate(old.outputs):
            node.outputs[i] = value
            value.node = node
        nodes = self.trace.graph.nodes
        at = next(i for i in range(len(nodes) - 1, -1, -1) if nodes[i] is old)
        nodes[at:at + 1] = segment.nodes
        self.present()

    def present(self) -> g.Node:
        """The node as it is now: for a gradient that was asked for, here or by `tf.gradients`, another has taken its
        place, whose first results are the same values."""
        old, node = self.node, self.outputs[0].value.node
        assert node is not None, "a result has a node"
        if node is not old:
            self.node = node
            if old.op is g.WHILE:  # further carried values stand between those before and the rest
                more = node.attrs["carried"] - old.attrs["carried"]
                self.places = [p if p < old.attrs["carried"] else p + more for p in self.places]
            self.record_further(node)
        return node

    def record_further(self, node: g.Node) -> None:
        """Tell recorders that the new results come from this construct."""
        first = len(self.outputs)
        further = [symbolic(v, self.trace) for v in node.outputs[first:]]
        self.outputs += further
        self.tensors.update(zip(node.outputs[first:], further, strict=True))
        if not any(self.wanted):  # nobody knows it
            return
        now = record.active.get()
        with record.telling((*now, *[r for r in self.recorders if not any(r is other for other in now)])):
            record.record_further(self, self.inputs, tuple(further), first)


class _TraceEmitter:
    """Where a pullback stages the gradient: the trace under way, with the tensors that recorders know."""

    def __init__(self, construct: RecordedConstruct) -> None:
        self.recorded = construct

    def lift(self, value: g.Value | Tensor) -> Tensor:
        """The tensor of a value of the construct's trace; a tensor stays itself."""
        if not isinstance(value, g.Value):
            return value
        tensors = self.recorded.tensors
        if value not in tensors:
            tensors[value] = symbolic(value, self.recorded.trace)
        return tensors[value]

    def construct(self, op: g.Construct, operands: Sequence[g.Value | Tensor], attrs: Attrs, specs: Sequence[Spec],
                  regions: Sequence[g.Graph] = ()) -> tuple[SymbolicTensor, ...]:
        """Stage a construct, and tell recorders."""
        trace: Any = interpreter()  # a trace, which an interpreter need not be
        results: tuple[SymbolicTensor, ...] = trace.construct(op, [self.lift(x) for x in operands], attrs, specs,
                                                              regions)
        return results

    def inline(self, graph: g.Graph, inputs: Sequence[g.Value | Tensor]) -> list[Tensor]:
        """Stage the nodes of a graph."""
        return replay(graph, [self.lift(x) for x in inputs], restage)
