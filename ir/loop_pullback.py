"""The gradient of loops: what a round's gradient reads is pushed on stacks, and a loop over the rounds pops it.

The rounds go last to first, and each continues the sums of cotangents of the rounds after it and of what the loop's
results are used for, in the order of a tape.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from . import dims as dm
from . import dtypes as dt
from . import graph as g
from . import ops, symbols
from .build import Builder, one_of
from .counting import counting, surely_runs
from .dims import Dim, DimLike
from .dtypes import DType
from .grad import nothing, refitted
from .graph import Graph, Node, Value
from .linearise import Backward, Emitted, Flow, GraphWriter, Linearised, Mask, Pullback, Scope, Starts
from .loop_parts import (
    FurtherCarried,
    JoinedInputs,
    ResidualStack,
    StackPlace,
    is_positive,
    loop_backward,
    loop_forward,
    loop_seeds,
)
from .loop_places import Past, Pasts, Places, ValuePlace, ValueReader
from .names import carried_roots, roots
from .op import use_interpreter
from .pullback import by_flag, chosen, guards_within, hand_on_guards, number_inputs, sizes_of, with_distinct, zeros_of
from .spec import spec
from .sums import Exists, Holds, Link, anyone, both, either, present
from .types import AnyTensor, Spec

__all__ = ["LOOP_FLOW", "LoopPullback"]

_FILLED = 1 << 24  # bytes of a stack up to which it has its full length from the start
_TYPICAL = 64  # what an unknown size is taken for in that


class LoopPullback(Pullback):
    """A loop that keeps what its rounds' gradients read, and counts the rounds."""

    def __init__(self, node: Node, operands: list[Value], wanted: Mask, seeded: Mask, scope: Scope,
                 builder: Builder) -> None:
        self.count = count = node.attrs["carried"]
        self.operands, self.result_dims = operands, [v.dims for v in node.outputs]
        test, body = node.regions
        counted = counting(node)
        self.trips = node.attrs.get("trips") if counted is None else counted.rounds
        self.runs = surely_runs(node)
        self.scope = scope
        depends = loop_forward(node, wanted)
        seeds = loop_seeds(node, seeded)
        active = tuple([a and b for a, b in zip(depends, seeds, strict=True)])
        body, outer = with_distinct(body, operands, count).copy(), symbols.symbols_in(operands)
        operands, wanted, test, body = self._with_constants(operands, wanted, test, body)
        self.named = self._named(body, active)
        if self.named:
            operands, wanted, test, body = self._with_first_values(operands, wanted, test, body)
        # The loop's results may have sizes of the same names, which mean those of the last round.
        names = {name: scope.fresh() for name in sorted(symbols.bound(body) - outer)}
        symbols.rename(body, names)
        scope.rename(names)
        self.lin = lin = Linearised(body, active + wanted[count:], active, scope, outer,
                                    tuple([i >= count for i in range(len(operands))]), shapes_bind=False)
        # By the residuals that a round may hand on: what tells it, and what the round gives, by their numbers.
        self.handed_on = {n: [(lin.number(holds), lin.number(lin.forward.outputs[k])) for k, holds in ways]
                          for n, ways in lin.handed_on().items()}
        self.kept_pasts, self.held = self._kept_already()
        aliases = {key: holds for key, holds in lin.names(count).items() if key[0] in self.named}
        conditional = [key for key, holds in aliases.items() if holds is not None]
        flags = {key: len(lin.forward.outputs) + n for n, key in enumerate(conditional)}
        lin.forward.outputs += [v for v in aliases.values() if v is not None]
        first, specs, body = self._body(lin.forward.copy(), builder, {key: flags.get(key) for key in aliases})
        self.rest = len(operands) - count
        extra = len(first)
        test = test.copy()
        test.inputs[count:count] = [Value(v.dims, v.dtype) for v in body.inputs[count:count + extra]]
        number_inputs(test)
        attrs = {**node.attrs, "carried": count + extra, "trips": self.trips}
        self.node = builder.graph.add(g.WHILE, [*operands[:count], *first, *operands[count:]], attrs,
                                      [*node.outputs, *specs], [test, body], node.loc)
        stacks = {s.residual: s for s in self.stacks}
        self.sizes = [self._kept(n, stacks) for n in lin.sized()]
        self.idle = sorted(self.named) if self.named else [] if self.runs else [
            i for i in range(count) if wanted[i] and seeded[i]]
        with use_interpreter(builder):
            if self.named:
                self.joined = self._joined(wanted, seeded)
            elif self.idle:
                none = ops.equal(self.node.outputs[count], 0)
                self.joined = [(self.node.outputs[i], operands[i], none, True) for i in self.idle]

    def _with_constants(self, operands: list[Value], wanted: Mask, test: Graph,
                        body: Graph) -> tuple[list[Value], Mask, Graph, Graph]:
        """With what every round hands on unchanged read as an operand that no round changes: it is one value, and has
        one sum, in all rounds."""
        count, test, operands = self.count, test.copy(), list(operands)
        same: dict[Value, Value] = {}
        memo: dict[Value, frozenset[Value]] = {}
        for i, (v, operand) in enumerate(zip(body.inputs[:count], operands, strict=False)):
            if roots(body.outputs[i], memo) == {v}:
                body.outputs[i] = v
                at = next((n for n in range(count, len(operands)) if operands[n] is operand), len(operands))
                if at == len(operands):
                    operands, wanted = [*operands, operand], (*wanted, wanted[i])
                    test.add_input(operand.dims, operand.dtype)
                    body.add_input(operand.dims, operand.dtype)
                same[v] = body.inputs[at]
                symbols.rename(body, sizes_of(v, operand))
        for node in body.nodes if same else ():
            node.inputs = [same.get(v, v) for v in node.inputs]
        body.outputs = [v if v is u else same.get(v, v) for v, u in zip(body.outputs, body.inputs, strict=False)]
        self.operands = operands
        return operands, wanted, test, body

    def _kept_already(self) -> tuple[dict[int, ResidualStack], dict[int, StackPlace]]:
        """What rounds put on stacks already, for the gradient that this loop is part of: the pasts of carried values,
        by the numbers of these, and where residuals are, by theirs.

        Whoever reads such a value reads it from that stack: its cotangents are one sum, in their order.
        """
        lin, body = self.lin, self.lin.forward
        pasts, held = dict[int, ResidualStack](), dict[int, StackPlace]()
        pushes = {v.node: j for j, v in enumerate(body.outputs[:self.count] if self.scope.whole else ())
                  if v.node is not None and v.node.op is g.PUSH and v.node.inputs[0] is body.inputs[j]}
        for node, j in pushes.items():
            _, value, at = node.inputs
            if "told" not in node.attrs or at.node is None:
                continue
            if "past" not in node.attrs:
                if value in lin.residuals and value.node is not None and value not in body.outputs[:self.count]:
                    held[lin.residuals.index(value)] = StackPlace(j, lin.number(at))
            elif value.node is None and value.index < self.count:
                start = at.node.inputs[0]  # what tells the item's cotangent comes before the item
                starts = next((n for push, n in pushes.items() if push.inputs[1] is start), None)
                if starts is not None or self._has_one_size(value.index, body):
                    pasts[value.index] = ResidualStack(-1, j, None, starts)
        return pasts, held

    # -- names ------------------------------------------------------------------------------------
    def _named(self, body: Graph, active: Mask) -> dict[int, frozenset[Value]]:
        """For each carried value the values that it may be an alias of, if one of them may be a different one in a
        later round; else nothing.

        Inputs of the body stand for what they are before the first round. Each such value has an identity, an integer:
        the first place of an operand, or a number that no other value has.
        """
        memo: dict[Value, frozenset[Value]] = {}
        results = [roots(v, memo) for v in body.outputs]
        every = carried_roots(body.inputs[:self.count], results)
        named = {i: every[i] for i in range(self.count) if active[i]}
        becomes = [v for i in named for v in results[i]]
        return named if len(set(becomes)) < len(becomes) or any(v.node is None for v in becomes) else {}

    def _with_first_values(self, operands: list[Value], wanted: Mask, test: Graph,
                           body: Graph) -> tuple[list[Value], Mask, Graph, Graph]:
        """With first values that may be there in later rounds as operands that no round changes, too."""
        more: list[Value] = []
        for i in self.named:
            if wanted[i] and not any(v is operands[i] for v in (*operands[self.count:], *more)):
                more.append(operands[i])
        test = test.copy()
        for v in more:
            test.add_input(v.dims, v.dtype)
            body.add_input(v.dims, v.dtype)
        self.operands = [*operands, *more]
        return self.operands, wanted + (True,) * len(more), test, body

    def _place(self, i: int) -> int:
        """The first place of an operand."""
        return self.operands.index(self.operands[i])

    def _may_be(self, i: int, j: int) -> bool:
        """Whether two inputs of the body may have the same identity, and so be one value."""
        one, other = [{self._place(v.index) if v.node is None else v for v in self.named.get(n, ())} or {self._place(n)}
                      for n in (i, j)]
        return not one.isdisjoint(other)

    def _joined(self, wanted: Mask, seeded: Mask) -> list[tuple[Value, Value, Value, bool]]:
        """The results that may be operands or earlier results."""
        joins = []
        results = [i for i in self.named if seeded[i]]
        ends = {i: self.node.outputs[self.identities[i].place - 1] for i in results}
        for i in results:
            for at in range(len(self.operands)):
                if wanted[at] and any(v.node is None and self._place(v.index) == at for v in self.named[i]):
                    joins.append((self.node.outputs[i], self.operands[at], ops.equal(ends[i], at), True))
            joins += [(self.node.outputs[i], self.node.outputs[j], ops.equal(ends[i], ends[j]), True)
                      for j in results if j < i and self._may_be(i, j)]
        return joins

    def _next_identity(self, k: int, identities: dict[int, Value], after: dict[int, Value], rounds: Value,
                       body: Graph, flags: dict[tuple[int, int], int | None]) -> Value:
        """The identity of a carried value after a round."""
        fresh = ops.add(ops.multiply(rounds, self.count), len(self.operands) + k)
        for (result, place), flag in flags.items():
            if result != k or (place < 0 and -1 - place not in after) or (0 <= place < self.count
                                                                        and place not in identities):
                continue
            it = (after[-1 - place] if place < 0 else identities[place] if place < self.count
                  else np.array(self._place(place), np.int64))
            fresh = it if flag is None else ops.where(body.outputs[flag], it, fresh)
        return fresh

    def _body(self, body: Graph, builder: Builder,
              flags: dict[tuple[int, int], int | None]) -> tuple[list[Value], list[Spec], Graph]:
        """First values and specs of what is carried besides, and the body that carries it.

        Args:
            flags: for results that may be inputs or earlier results, the outputs that tell it, None where certain.
        """
        lin, count = self.lin, self.count
        with use_interpreter(builder):
            zero = builder.constant(np.array(0, np.int64))
        inner, further = Builder(body), FurtherCarried(count)
        self.stacks: list[ResidualStack] = []
        self.past: dict[int, tuple[int, bool]] = {}  # by residual: what is carried, and whether it is the next value
        with use_interpreter(inner):
            rounds = Value((), dt.int64)
            further.add(zero, rounds, inner.value(ops.add(rounds, 1)))
            for n, source in enumerate(lin.sources):
                if (source < 0 and -1 - source >= count) or n in self.held:
                    continue
                at_carried = -1 - source if source < 0 else source
                if self._has_past(at_carried, body):
                    self.past[n] = at_carried, source >= 0
                else:
                    value = body.inputs[at_carried] if source < 0 else body.outputs[source]
                    varies = not lin.local.isdisjoint(dm.symbols_of((dm.numel(value.dims),)))
                    self.stacks.append(self._pushed(n, value, varies, False, builder, inner, further, rounds))
            self.pasts: dict[int, ResidualStack] = {}  # by what is carried
            for i in self._with_pasts():
                if i in self.kept_pasts:
                    self.pasts[i] = self.kept_pasts[i]
                    continue
                varies = not self._has_one_size(i, body)
                self.pasts[i] = self._pushed(-1, body.inputs[i], varies, True, builder, inner, further, rounds)
            self.identities: dict[int, ResidualStack] = {}
            identities = {i: Value((), dt.int64) for i in self.named}
            becomes: dict[int, Value] = {}
            for i, identity in identities.items():
                becomes[i] = inner.value(self._next_identity(i, identities, becomes, rounds, body, flags), dt.int64)
                first = builder.constant(np.array(self._place(i), np.int64))
                further.add(first, identity, becomes[i])
                place = further.count  # of the stack, which stands after the identity
                if not self.scope.only_names:
                    place = self._on_stack(builder, inner, further, identity, 1, rounds)
                self.identities[i] = ResidualStack(-1, place, None)
        body.inputs[count:count] = further.inputs
        number_inputs(body)
        body.outputs = [*body.outputs[:count], *further.results]
        return further.first, further.specs, body

    def _pushed(self, residual: int, value: Value, varies: bool, is_past: bool, builder: Builder, inner: Builder,
                further: FurtherCarried, rounds: Value) -> ResidualStack:
        """Push a value of the body on a stack in each round.

        Args:
            residual: its number, or -1 where it is no residual itself.
            varies: whether its size may change from round to round.
            is_past: whether it is carried, and read at the places of `ir/loop_places.py`.
        """
        lead = self._lead(value)
        size = dm.numel(value.dims) + lead
        offset, starts = None, None
        if varies:
            at = Value((), dt.int64)
            offset = further.add(further.first[0], at, inner.value(ops.add(at, size)))
            if is_past:
                starts = self._on_stack(builder, inner, further, at, 1, rounds)
        else:
            at = inner.value(ops.multiply(rounds, size), dt.int64)
        attrs = {**({"past": True} if is_past else {}), **({"told": lead} if lead else {})}
        at = inner.value(ops.add(at, lead)) if lead else at
        place = self._on_stack(builder, inner, further, value, None if varies else size, at, attrs)
        return ResidualStack(residual, place, offset, starts)

    def _on_stack(self, builder: Builder, inner: Builder, further: FurtherCarried, value: Value, size: DimLike | None,
                  at: Value, attrs: Mapping[str, Any] = MappingProxyType({})) -> int:
        """Carry a stack on which rounds put `value` at a place; the stack's number among what is carried.

        Args:
            size: of items, with those that tell; None where it varies. Items of integers stand at multiples of it.
        """
        start, here, after = self._stack(builder, value, size)
        pushed, = inner.construct(g.PUSH, (here, value, at), {"add": False, **attrs}, (after[0],))
        return further.add(start, here, pushed, after[1])

    def _with_pasts(self) -> list[int]:
        """The carried values whose pasts are kept: those that rules read, and those that may be one value with these,
        in whichever rounds."""
        return sorted({i for i, _ in self.past.values()} | set(self._located({i for i, _ in self.past.values()})))

    def _located(self, read: Collection[int]) -> list[int]:
        """The carried values that may have several names and may, by some of these, be one with those that are
        read."""
        located = {i for i in read if i in self.named}
        while more := {j for j in self.named if any(self._may_be(i, j) for i in located)} - located:
            located |= more
        return sorted(located)

    def _has_past(self, i: int, body: Graph) -> bool:
        """Whether the values that a carried one had in the rounds are kept on a stack, for rules to read.

        In one round it is the next value, in the other the one before: its cotangent is one sum. The first value is
        the operand, the last one the result, so that a stack holds them all, one a round, and none twice.
        """
        return i < self.count and self.scope.whole and body.inputs[i].dtype.is_differentiable

    def _has_one_size(self, i: int, body: Graph) -> bool:
        """Whether a carried value has the same size in every round, as far as is known."""
        return self.operands[i].dims == body.inputs[i].dims == body.outputs[i].dims == self.result_dims[i]

    def _lead(self, value: Spec) -> int:
        """How many elements a stack has before each of its items: one, in which cotangents tell whether there are any.

        A round may read an item for the gradient that another round does not read.
        """
        return int(self.scope.whole and value.dtype.is_differentiable)

    def _length(self, dtype: DType, size: DimLike | None) -> DimLike | None:
        """The length of a stack of items of a size, where it has it from the start; None where it grows."""
        if size is None or self.trips is None:
            return None
        whole = size * self.trips
        if isinstance(whole, Dim) and not whole.symbols().isdisjoint(self.lin.local):
            return None
        usual = whole.evaluate(dict.fromkeys(whole.symbols(), _TYPICAL)) if isinstance(whole, Dim) else whole
        return whole if usual * dtype.size <= _FILLED else None

    def _stack(self, builder: Builder, value: Value, size: DimLike | None) -> tuple[Value, Value, tuple[Spec, Spec]]:
        """A stack for `value`: the empty one, the body's input, and its specs after a push and after the loop."""
        length = self._length(value.dtype, size)
        with use_interpreter(builder):
            start = zeros_of(value.dtype, (0 if length is None else length,))
        if length is not None:
            same = spec((length,), value.dtype)
            return start, Value((length,), value.dtype), (same, same)
        a, b, c = [(self.scope.fresh(),) for _ in range(3)]
        return start, Value(a, value.dtype), (spec(b, value.dtype), spec(c, value.dtype))

    # -- backwards --------------------------------------------------------------------------------
    def emit(self, b: GraphWriter, ends: Starts, starts: Starts, links: Sequence[Link]) -> Emitted:
        count, node = self.count, self.node
        shift = len(node.inputs) - self.rest - count
        own = [*starts[:count], *starts[count + shift:]]  # without those of what is carried besides
        own = [own[self.operands.index(v)] for v in self.operands]
        so_far = [start for start, _ in own]
        back, seeds = self._settled(tuple([ct is not None for ct, _ in ends]))
        if not any(back.connected):
            return [(None, None)] * len(node.inputs)
        named = {i for i in self.named if seeds[i]}
        first = {v: i for i, v in reversed(list(enumerate(self.operands))) if i >= count}  # which alone the body reads
        totals = [i for i in range(count, len(back.connected)) if back.connected[i] or (
            self.lin.wanted[i] and first[self.operands[i]] == i and any(self._may_be(k, i) for k in named))]
        every = [*chosen(range(count), seeds), *totals]
        place = [i if i < count else i + shift for i in range(len(back.connected))]
        pairs = self._pairs([(i, place[i]) for i in every], links)
        begun = self._begun_first(seeds, so_far, pairs)
        started = tuple([i in begun or i in totals for i in range(len(back.connected))])
        asked = tuple([start is None or i < count or begins is not None for i, (start, begins) in enumerate(own)])
        joined = [pair[:2] for pair in pairs]
        grow = {i for pair in joined for i in pair if not self.named and any(back.connected[k] for k in pair)}
        shared = tuple([i in grow and not x for i, x in enumerate(back.connected)])  # by what they are one value with
        back, late = self._late(seeds, ends, started, joined, asked, shared)
        hand_on_guards(self.lin, back)
        conditional = [*[i for i in every if i in late], *[i for i in totals if back.conditional[i]]]
        carried, operands, regions = self._reverse(b, back, seeds, totals, ends, so_far, pairs, begun, conditional)
        fixed = len(carried) - len(every) - len(conditional)
        specs: list[Spec] = [*[spec((), dt.int64)] * fixed, *[self._of_operand(i, place[i]) for i in every]]
        results = b.construct(g.WHILE, [*carried, *operands], {"carried": len(carried), "trips": self.trips},
                              [*specs, *[spec((), dt.bool_)] * len(conditional)], regions)[fixed:]
        sums, flags = results[:len(every)], dict(zip(conditional, results[len(every):], strict=True))
        ran = None if self.runs else cache(lambda: ops.greater(b.lift(node.outputs[count]), 0))
        added: dict[int, Exists] = {}
        for i in every:
            added[i] = by_flag(flags[i]) if i in flags else None
            if i in self.idle or (i not in flags and (i >= count or ends[i][0] is None)):
                added[i] = both(added[i], ran)
            elif i not in flags and ran is not None:  # a round surely adds something
                added[i] = either(ran, ends[i][1])
        for pair in pairs:  # what is one value before the first round has what the other one had from later rounds, too
            if pair.first and pair.one < count <= pair.other:
                for *_, holds in pair.conditions:
                    added[pair.one] = either(added[pair.one], both(holds, added[pair.other]))
        return self._summed(b, dict(zip(every, sums, strict=True)), place, so_far, added)

    def _of_operand(self, i: int, place: int) -> Spec:
        """The spec of an operand's cotangent: that of a stack, which holds nothing at first, has the size that the
        stack has in the end."""
        operand = self.node.inputs[place]
        filled = operand.node is not None and operand.node.op in (ops.fill, g.CONSTANT)
        if i < self.count and filled and operand.dims == (0,) != self.node.outputs[i].dims:
            return spec((self.scope.fresh(),), operand.dtype)
        return operand

    def _late(self, seeds: Mask, ends: Starts, started: Mask, joined: Sequence[tuple[int, int]],
              asked: Mask, shared: Mask) -> tuple[Backward, set[int]]:
        """The gradient of one round, and the carried values of which only running tells that they have cotangents."""
        carried = range(self.count)
        late = {i for i in chosen(range(self.count), seeds)
                if ends[i][0] is None or ends[i][1] is not None or i in self.named}
        while True:
            back = self.lin.backward(seeds, started, joined, asked, tuple([i in late for i in carried]), shared)
            more = {i for i in chosen(range(self.count), seeds) if back.conditional[i] or not back.connected[i]} - late
            if not more:
                break
            late |= more
        # Where a round surely gives a cotangent, and reads nowhere whether there was one before, nobody has to know.
        read = {v for node in back.graph.nodes for v in node.inputs} | set(back.graph.outputs)
        flags = dict(zip(sorted(late), back.graph.inputs[len(back.graph.inputs) - len(late):], strict=True))
        idle = {i for i, flag in flags.items() if flag not in read and back.connected[i] and not back.conditional[i]
                and i not in self.named}
        if idle:
            late -= idle
            back = self.lin.backward(seeds, started, joined, asked, tuple([i in late for i in carried]), shared)
        return back, late

    def _pairs(self, every: Sequence[tuple[int, int]], links: Sequence[Link]) -> list[JoinedInputs]:
        """Those of the inputs `every` of the body, with their operands' places, that may be one value."""
        operand = {i: self.node.inputs[at] for i, at in every}
        holds = {(self.node.inputs[link.one], self.node.inputs[link.other]): link.holds for link in links}
        if self.named:
            return self._named_pairs(list(operand), holds)
        pairs = []
        for i, v in operand.items():
            for j, u in operand.items():
                if j <= i:
                    continue
                if u is v:
                    pairs.append(JoinedInputs(i, j, True, ()))
                elif condition := holds.get((v, u)) or holds.get((u, v)):
                    pairs.append(JoinedInputs(i, j, i < self.count, ((i, j, condition),)))
        return pairs

    def _named_pairs(self, every: Sequence[int], holds: dict[tuple[Value, Value], Holds]) -> list[JoinedInputs]:
        """The pairs of a loop whose values have identities."""
        links = [(self.operands.index(v), self.operands.index(u), condition) for (v, u), condition in holds.items()]
        pairs = []
        for n, j in enumerate(every):
            for i in every[:n]:
                one, other = [{self._place(v.index) for v in self.named[k] if v.node is None} if k in self.named
                              else {self._place(k)} for k in (i, j)]
                conditions = tuple([link for link in links if (link[0] in one and link[1] in other)
                                    or (link[1] in one and link[0] in other)])
                if conditions or (self._may_be(i, j) and (i in self.named or j in self.named)):
                    # The later of what is carried is a name of the earlier, whose sum goes on to the round before.
                    places = (j, i) if j < self.count else (i, j)
                    pairs.append(JoinedInputs(*places, False, conditions))
        return pairs

    def _begun_first(self, seeds: Mask, starts: Sequence[AnyTensor | None], pairs: list[JoinedInputs]) -> list[int]:
        """The carried values whose sums begin, in the first round, with the sums of their operands."""
        shared = {pair.one for pair in pairs if pair.other >= self.count and not pair.conditions}
        return [i for i in chosen(range(self.count), seeds)
                if starts[i] is not None and i not in shared and i not in self.named]

    def _summed(self, b: GraphWriter, sums: dict[int, AnyTensor], place: Sequence[int],
                starts: Sequence[AnyTensor | None], added: dict[int, Exists]) -> Emitted:
        """The cotangents of the operands, from what the loop over the rounds gives, and whether anything was added.

        Without rounds the results are the operands themselves, which share their sums.
        """
        node, count = self.node, self.count
        totals: Emitted = [(None, None)] * len(node.inputs)
        groups: dict[Value, list[int]] = {}  # in the first round one value, the one that no round changes last
        for i in sums:
            groups.setdefault(node.inputs[place[i]], []).append(i)
        for v, members in groups.items():
            first = node.inputs.index(v)
            own, total = starts[members[0]], sums[members[-1]]
            if members[-1] < count and not self.runs and (own is not None or len(members) > 1):
                ran = ops.greater(b.lift(node.outputs[count]), 0)
                total = ops.select(ran, total, nothing(total) if own is None else own)
            totals[first] = total, anyone([added[i] for i in members])
        return totals

    def _settled(self, has_cotangent: Mask) -> tuple[Backward, Mask]:
        """The gradient of one round, and the carried values that have a cotangent in some round."""
        lin = self.lin
        seeds = tuple([g and s for g, s in zip(has_cotangent, lin.seeded, strict=True)])
        while True:  # up to what may have one
            more = lin.backward(seeds).connected
            wider = tuple([s or m for s, m in zip(seeds, more, strict=False)])
            if wider == seeds:
                return lin.backward(seeds), seeds
            seeds = wider

    def _reverse(self, b: GraphWriter, back: Backward, seeds: Mask, totals: list[int], results: Starts,
                 starts: Sequence[AnyTensor | None], pairs: list[JoinedInputs], begun: list[int], conditional: list[int]
                 ) -> tuple[list[AnyTensor], list[AnyTensor], list[Graph]]:
        """The loop over the rounds, last first: carried values, other operands, regions."""
        lin, node, count = self.lin, self.node, self.count
        body = Graph(node.regions[1].name + "_grad")
        body.guards = guards_within(lin, back)
        stacks, need = {s.residual: s for s in self.stacks}, self._needed(back)
        carried: list[AnyTensor] = [node.outputs[count]]
        at = body.add_input((), dt.int64)
        offsets: dict[int, Value] = {}
        for n in need:
            if n in stacks and stacks[n].offset is not None:
                carried.append(node.outputs[stacks[n].offset])  # type: ignore[index]
                offsets[n] = body.add_input((), dt.int64)
        located = self._located({self.past[n][0] for n in need if n in self.past})
        places = Places(located, len(self.operands), count, self._may_be)
        ends = {k: b.lift(node.outputs[self.identities[k].place - 1]) for k in self.named
                if results[k][0] is not None}
        after_all = {k: b.lift(node.outputs[self.identities[k].place - 1]) for k in located}
        later: dict[int, tuple[Value, ValuePlace]] = {}  # identities and places of what is there after a round
        for k, place in places.after_all(after_all).items():
            carried += [after_all[k], *[b.lift(x) for x in place]]
            identity, *own_place = [body.add_input((), dt.int64) for _ in range(3)]
            later[k] = identity, ValuePlace(*own_place)
        sums, cotangents, sum_of = self._carried_sums(body, seeds, totals, results, starts, ends)
        carried += sums
        flags: dict[int, Value] = {}  # whether what is carried has a cotangent, and rounds have added to totals
        for i in conditional:
            ct, begins = results[i] if i < count else (None, None)
            if begins is None:
                begins = by_flag(ops.fill(np.array(ct is not None), shape=()))
            carried.append(both(begins, self._own(i, ends) if i in ends else None)())  # type: ignore[misc]
            flags[i] = body.add_input((), dt.bool_, "begun")
        residuals = [n for n in need if n not in self.past]
        operands: list[AnyTensor] = [self._kept(n, stacks) for n in residuals]
        sources = {n: body.add_input(x.dims, x.dtype) for n, x in zip(residuals, operands, strict=True)}
        earlier, pasts, first = self._past_values(body, need, located)
        operands += earlier
        total = None
        if pasts:
            operands.append(node.outputs[count])
            total = body.add_input((), dt.int64)
        for i in begun:
            start = starts[i]
            assert start is not None  # `_begun_first` names no others
            operands.append(start)
            sum_of[i] = body.add_input(start.dims, start.dtype, "ct")
        holds: dict[JoinedInputs, list[Value]] = {}
        for pair in pairs:
            operands += [condition() for *_, condition in pair.conditions]
            holds[pair] = [body.add_input((), dt.bool_) for _ in pair.conditions]
        identities: dict[int, Value] = {}
        for i in [i for i in self.named if seeds[i] or i in located]:
            operands.append(node.outputs[self.identities[i].place])
            identities[i] = body.add_input(operands[-1].dims, dt.int64)
        with use_interpreter(Builder(body)) as inner:
            body.outputs = self._round(inner, back, at, offsets, sources, stacks, cotangents, seeds,  # type: ignore
                                       holds, sum_of, Pasts(places, pasts, first, later, total), identities, flags)
        return carried, operands, [is_positive(node.regions[0].name + "_grad", body.inputs), body]

    def _carried_sums(self, body: Graph, seeds: Mask, totals: list[int], results: Starts,
                      starts: Sequence[AnyTensor | None], ends: dict[int, Value]
                      ) -> tuple[list[AnyTensor], list[Value], dict[int, Value]]:
        """The cotangents of what the loop gives and the sums of its other operands: as they begin, as inputs of a
        round, and of the latter with what first rounds begin."""
        lin, node = self.lin, self.node
        carried: list[AnyTensor] = []
        cotangents: list[Value] = []
        bound: set[str] = set()
        sum_of: dict[int, Value] = {}
        for i in chosen(range(self.count), seeds):
            ct = results[i][0]
            carried.append(nothing(node.outputs[i]) if ct is None else
                           present(ct, self._own(i, ends)) if i in ends else ct)
            dims = tuple([self._size_around(after, before, bound) for after, before
                          in zip(lin.forward.outputs[i].dims, lin.forward.inputs[i].dims, strict=True)])
            cotangents.append(body.add_input(dims, node.outputs[i].dtype, "ct"))
        for i in totals:
            like, start = lin.forward.inputs[i], starts[i]
            carried.append(start if start is not None else nothing(like))
            sum_of[i] = body.add_input(like.dims, like.dtype, "ct")
            cotangents.append(sum_of[i])
        return carried, cotangents, sum_of

    def _past_values(self, body: Graph, need: list[int], located: list[int]
                     ) -> tuple[list[AnyTensor], dict[int, Past], dict[int, Value]]:
        """What carried values were in earlier rounds: operands, with those by number as a round finds them, and what
        they were before the loop."""
        node = self.node
        operands: list[AnyTensor] = []
        first: dict[int, Value] = {}
        pasts: dict[int, Past] = {}
        for i in sorted({*[self.past[n][0] for n in need if n in self.past], *located}):
            stack = self.pasts[i]
            own_past = [node.outputs[stack.place], node.outputs[i]]
            own_past += [node.outputs[stack.starts]] if stack.starts is not None else []
            operands += own_past
            past = [body.add_input(v.dims, v.dtype) for v in own_past]
            like = self.lin.forward.inputs[i]
            size = dm.numel(like.dims) + self._lead(like)
            pasts[i] = Past(past[0], past[1], past[2] if len(past) > 2 else None, size, like)
            for at_first in self._first_values(i) if i in located else (i,):
                if at_first not in first:
                    operands.append(self._operand(at_first))
                    first[at_first] = body.add_input(operands[-1].dims, operands[-1].dtype)
        return operands, pasts, first

    def _needed(self, back: Backward) -> list[int]:
        """The numbers of the residuals that the gradient of a round reads, of those that these may be, and of those
        that tell their sizes."""
        lin = self.lin
        reads = {*back.reads, *[m for n in back.reads for way in self.handed_on.get(n, ()) for m in way]}
        reads |= {self.held[n].at for n in reads if n in self.held}
        return sorted({*reads, *[lin.sizes[name] for n in reads for name in
                                 sorted(dm.symbols_of(lin.residuals[n].dims)) if name in lin.sizes]})

    def _kept(self, residual: int, stacks: dict[int, ResidualStack]) -> Value:
        """The operand that holds a residual: a stack, or a value that no round changes."""
        if residual in self.held:
            return self.node.outputs[self.held[residual].stack]
        if residual in stacks:
            return self.node.outputs[stacks[residual].place]
        shift = len(self.node.inputs) - self.rest - self.count
        return self.node.inputs[-1 - self.lin.sources[residual] + shift]

    def _size_around(self, after: DimLike, before: DimLike, bound: set[str]) -> DimLike:
        """A size of what goes around the reversed loop: one of its own, unless a value has one size in all rounds.

        It is the size that the value has after a round, and in the end that of the first operand. A symbol of the round
        is bound by the first cotangent of that size.
        """
        if after == before and dm.symbols_of((after,)).isdisjoint(self.lin.local):
            return after
        name = after.name_alone() if isinstance(after, Dim) else None
        if name is None or name not in self.lin.local or name in bound:
            return self.scope.fresh()
        bound.add(name)
        return after

    def _in_round(self, body: Graph, cotangents: list[Value], seeds: Mask) -> list[Value]:
        """The cotangents with the sizes that the values have after a round."""
        values = chosen(self.lin.forward.outputs[:self.count], seeds)
        with dm.recording() as guards:
            sized = [ct if ct.dims == v.dims else ops.reshape(ct, shape=v.dims)
                     for ct, v in zip(cotangents, values, strict=False)]
        body.guards += guards
        return [*sized, *cotangents[len(sized):]]

    def _round(self, inner: Builder, back: Backward, rounds: Value, offsets: dict[int, Value],
               sources: dict[int, Value], stacks: dict[int, ResidualStack], cotangents: list[Value], seeds: Mask,
               pairs: dict[JoinedInputs, list[Value]], sum_of: dict[int, Value],
               pasts: Pasts, identities: dict[int, Value], flags: dict[int, Value]) -> list[Value]:
        """One round of the gradient; gives the next carried values."""
        lin = self.lin
        at = ops.subtract(rounds, 1)
        bound = {name for v in cotangents for name in symbols.alone(v.dims)}  # by the cotangents
        values, after = self._popped(inner, at, offsets, sources, stacks, bound)
        identity = {i: inner.construct(g.POP, (stack, at), {"dims": ()}, (spec((), dt.int64),))[0]
                    for i, stack in identities.items()}
        places = pasts.before(at, identity)
        reader = ValueReader(inner, pasts.places, pasts.pasts, pasts.first, self.scope.fresh)
        for n in self._needed(back):
            if n in self.past:
                i, is_next = self.past[n]
                place = places.get(i) if not is_next else pasts.later[i][1] if i in pasts.later else None
                values[n] = (pasts.read(inner, lin.residuals[n], i, at, is_next) if place is None else
                             reader.read(i, place, lin.residuals[n], self._first_values(i)))
        for n in back.reads:
            for told, given in self.handed_on.get(n, ()):
                values[n] = one_of(inner, values[told], values[given], values[n], lin.residuals[n])
        popped = {i: v for i, v in identity.items() if seeds[i]}
        begun = self._begun(at, seeds, self._in_round(inner.graph, cotangents, seeds), pairs, sum_of, popped)
        begun += [flag for i, flag in flags.items() if i < self.count]
        gradients = iter(inner.inline(back.graph, [*[values[n] for n in back.reads], *begun]))
        results = [next(gradients) if x else None for x in back.connected]
        added = [next(gradients) if t else None for t in back.conditional]
        own = {i: self._own(i, popped) for i in popped}
        carried = [nothing(v) if r is None else present(r, own.get(i)) for i, (r, v)
                   in enumerate(zip(results, lin.forward.inputs, strict=True)) if i < self.count and seeds[i]]
        after_round = []
        for i, flag in flags.items():
            is_added = added[i]
            if i >= self.count:
                after_round.append(flag if is_added is None else ops.logical_or(flag, is_added))
                continue
            exists = np.array(results[i] is not None) if is_added is None else is_added
            after_round.append(ops.logical_and(exists, own[i]()) if i in own else inner.value(exists, dt.bool_))
        located = [x for i, place in places.items() for x in (identity[i], *map(inner.value, place))]
        return [at, *[after[n] for n in offsets], *located, *carried,
                *[r for r in results[self.count:] if r is not None], *after_round]

    def _popped(self, inner: Builder, at: Value, offsets: dict[int, Value], sources: dict[int, Value],
                stacks: dict[int, ResidualStack], bound: set[str]) -> tuple[dict[int, Value], dict[int, Value]]:
        """The residuals of round `at`, with their sizes bound that are not yet, and where those of the round before
        end whose sizes differ."""
        lin = self.lin
        values: dict[int, Value] = {}
        after: dict[int, Value] = {}
        names = {n: name for name, n in lin.sizes.items()}
        for n in sorted(sources, key=lambda n: (n not in names, n in self.held)):  # sizes first
            if n in self.held:
                value = lin.residuals[n]
                attrs = {"dims": value.dims, "told": 1, "begins": True}
                values[n] = inner.construct(g.POP, (sources[n], values[self.held[n].at]), attrs, (value,))[0]
            elif n not in stacks:
                values[n] = sources[n]
            else:
                value = lin.residuals[n]
                lead = self._lead(value)
                size = dm.numel(value.dims) + lead
                start = ops.multiply(at, size) if n not in offsets else ops.subtract(offsets[n], size)
                if n in offsets:
                    after[n] = start
                attrs = {"dims": value.dims, "told": lead} if lead else {"dims": value.dims}
                start = ops.add(start, lead) if lead else start
                values[n] = inner.construct(g.POP, (sources[n], start), attrs, (value,))[0]
            if n in names and names[n] not in bound:
                inner.construct(g.BIND, (values[n],), {"symbol": names[n]}, ())
        return values, after

    def _first_values(self, i: int) -> list[int]:
        """The places of the operands that a carried value may be in some round."""
        return sorted({self._place(v.index) for v in self.named[i] if v.node is None})

    def _operand(self, place: int) -> Value:
        """The operand of the loop as it is now that was at a place."""
        return self.node.inputs[place if place < self.count else place + len(self.node.inputs) - len(self.operands)]

    def _own(self, i: int, identities: Mapping[int, AnyTensor]) -> Holds:
        """Whether the cotangent of a carried value is in no other sum: an operand's or an earlier one's."""
        def own() -> AnyTensor:
            elsewhere = ops.less(identities[i], len(self.operands))
            for j in identities:
                if j < i and self._may_be(i, j):
                    elsewhere = ops.logical_or(elsewhere, ops.equal(identities[i], identities[j]))
            return ops.logical_not(elsewhere)
        return cache(own)

    def _joint(self, pair: JoinedInputs, holds: list[Value], is_first: Value, identities: dict[int, Value]) -> Value:
        """A bool scalar: whether a pair is one value in a round."""
        if not self.named:
            joined = holds[0] if holds else is_first
            return ops.logical_and(is_first, joined) if pair.first and holds else joined
        one, other = [identities[i] if i in identities else np.array(self._place(i), np.int64) for i in pair[:2]]
        joint = ops.equal(one, other) if pair.one in identities or pair.other in identities else None
        for (first, second, _), joined in zip(pair.conditions, holds, strict=True):
            if joint is not None:
                p, q = np.array(first, np.int64), np.array(second, np.int64)
                there = ops.logical_and(ops.equal(one, p), ops.equal(other, q))
                back = ops.logical_and(ops.equal(one, q), ops.equal(other, p))
                joined = ops.logical_and(joined, ops.logical_or(there, back))
            joint = joined if joint is None else ops.logical_or(joint, joined)
        assert joint is not None  # a pair has identities, or something that tells
        return joint

    def _begun(self, at: Value, seeds: Mask, cotangents: list[Value], pairs: dict[JoinedInputs, list[Value]],
               sum_of: dict[int, Value], identities: dict[int, Value]) -> list[Value]:
        """The cotangents that a round's gradient is given: of its results, sums so far, whether inputs are joined."""
        count = sum(seeds)
        is_first = ops.equal(at, 0)
        begun: list[Value] = []
        for i in [i for i in sorted(sum_of) if i < self.count]:
            start, like = sum_of[i], self.lin.forward.inputs[i]
            for pair, holds in pairs.items():
                if pair.one == i and pair.other >= self.count:  # what no round changes has the sum of later rounds
                    start = ops.select(holds[0], refitted(sum_of[pair.other], start), start)
            begun.append(ops.select(is_first, refitted(start, like), nothing(like)))
        joint = [self._joint(pair, holds, is_first, identities) for pair, holds in pairs.items()]
        return [*cotangents[:count], *begun, *cotangents[count:], *joint]


LOOP_FLOW = Flow(loop_forward, loop_backward)
