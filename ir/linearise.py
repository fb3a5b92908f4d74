"""Linearisation: from a graph, the forward graph that also gives residuals, and the backward graphs that read them.

What gradients of graphs are is told in `ir/autodiff.py`, by which the rest of the package asks for them. Control flow
is `ir/pullbacks.py`'s: it puts what it knows of each construct into the tables here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import compress
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from . import dims as dm
from . import dtypes as dt
from . import graph as g
from . import ops, symbols
from .build import Builder, copy_node, one_of
from .dims import Dim, Guard
from .grad import apply_rule, copied, needed, nothing, scalar
from .graph import Construct, Graph, Node, Value
from .op import Op, use_interpreter
from .spec import spec
from .sums import Exists, Link, Start, Sums, both, continued, filled, present, shared, taken
from .types import AnyTensor, Attrs, Results, Spec

__all__ = ["Backward", "Emitted", "Flow", "GraphWriter", "Linearised", "Mask", "Pullback", "Scope", "Starts",
           "PULLBACKS", "FLOWS", "STAYS", "TAKEN_OUT", "Popped", "scope_of", "fits", "reached", "reaching", "told"]

Mask = tuple[bool, ...]

# How a branch that gives a stack's item reads it, its attribute `past`: others may read it, too, or it is taken out.
STAYS, TAKEN_OUT = False, True

_CHEAP = frozenset((  # one instruction or two an element
    "abs", "add", "cast", "complex", "conj", "equal", "greater", "greater_equal", "imag", "less", "less_equal",
    "logical_and", "logical_not", "logical_or", "maximum", "minimum", "multiply", "negative", "not_equal", "real",
    "sign", "square", "subtract", "where"))


class Flow(NamedTuple):
    """Which results of a construct depend differentiably on which operands, as functions of masks, in both
    directions."""

    forward: Callable[[Node, Mask], Mask]
    backward: Callable[[Node, Mask], Mask]


class GraphWriter(Protocol):
    """A `Builder`, or a trace that tells recorders of what it stages (`tracer/gradients.py`): operands and results are
    values there, and tensors here."""

    def construct(self, op: Construct, operands: Sequence[Any], attrs: Attrs, specs: Sequence[Spec],
                  regions: Sequence[Graph] = ()) -> Sequence[Any]: ...

    def inline(self, graph: Graph, inputs: Sequence[Any]) -> Sequence[Any]: ...

    def lift(self, value: Any) -> Any: ...


Starts: TypeAlias = Sequence[Start]  # sums of cotangents so far: of each operand, or of each result
# For each operand its cotangent, in the mode of the writer, or None; and whether anything was added to what was there
Emitted: TypeAlias = list[tuple[Results, Exists]]


class Popped(NamedTuple):
    """A result that comes from a stack: its cotangent begins with what is there in the stack's, which takes the sum in
    its place.

    Attributes:
        name: the result. stack, at: where it was. elsewhere: a bool scalar, whether it comes from elsewhere.
    """

    name: Value
    stack: Value
    at: Value
    elsewhere: Value


class Pullback(ABC):
    """A construct in a forward graph, and its gradient.

    Attributes:
        node: the construct, with residuals among its results.
        count: how many results it has without them.
        joined: results that are another value where a condition of the graph is true, or where it is false. Whoever
            emits the gradient adds their cotangents to that value's (`ir/sums.py`).
        popped: results that may come from stacks.
        moves: whether the gradient only moves cotangents.
        sizes: values that tell sizes: gradients for fewer cotangents may read more of them, for zeros.
    """

    node: Node
    count: int
    joined: Sequence[tuple[Value, Value, Value, bool]] = ()
    popped: Sequence[Popped] = ()
    moves = False
    sizes: Sequence[Value] = ()

    @property
    def outputs(self) -> list[Value]:
        """The results that it had before."""
        return self.node.outputs[:self.count]

    @abstractmethod
    def emit(self, b: GraphWriter, ends: Starts, starts: Starts, links: Sequence[Link]) -> Emitted:
        """Append the gradient.

        Args:
            b: writes the gradient.
            ends: for each of the first `count` results its cotangent, or None for 0, and what tells whether it is there
                if one of them is.
            starts: for each operand of `node`, its cotangent so far, or None, and whether it has begun; of an operand
                that is there twice, at its first place alone.
            links: which operands may be one value; the sums of those that are, are one.
        Returns:
            For each operand None, or its cotangent, which continues the one so far, and whether anything was added
            (unless the cotangent had surely begun); of an operand that is there twice, at its first place alone. What
            has not begun is -0.0.
        """


# For each construct its `Flow`, and the class of its `Pullback`; `ir/pullbacks.py` fills both tables.
FLOWS: dict[Op | Construct, Flow] = {}
PULLBACKS: dict[Op | Construct, Callable[[Node, list[Value], Mask, Mask, Scope, Builder], Pullback]] = {}


class Scope(NamedTuple):
    """The things that regions share with the graph around them.

    Attributes:
        fresh: gives names for new sizes.
        guards: what is assumed of sizes.
        whole: whether everything differentiable that a rule reads is a residual, nothing of it computed again. What is
            computed again is a value of its own, whose cotangent does not join that of the first: gradients of the
            gradient would add up in another order.
        only_names: whether nothing is asked but which results are other values, so that nothing is kept.
    """

    fresh: Callable[[], Dim]
    guards: list[Guard]
    whole: bool = False
    only_names: bool = False

    def rename(self, names: Mapping[str, Dim]) -> None:
        """Repeat the guards on some sizes under the new names of these."""
        for guard in list(self.guards):
            if not guard.symbols().isdisjoint(names):
                left, right = dm.substitute((guard.left, guard.right), names)
                self.guards.append(Guard(left, guard.op, right))


def scope_of(graph: Graph, whole: bool = False) -> Scope:
    """The scope of a graph that no other surrounds."""
    return Scope(symbols.fresh_names(graph), list(graph.guards), whole)


class Backward(NamedTuple):
    """A gradient as a graph.

    Attributes:
        graph: inputs: the residuals `reads`, a cotangent for each seeded result, what the cotangents of inputs
            start from, for each pair of joined inputs whether they are one, for each `late` result whether it has a
            cotangent; outputs: a cotangent for each `connected` input, then for each `conditional` one whether
            anything was added to it.
        reads: numbers of residuals.
        connected: for each input of the function, whether there is a cotangent; others are unconnected or unwanted.
        conditional: for each input, whether only running tells that anything is added to its cotangent, which is asked.
    """

    graph: Graph
    reads: tuple[int, ...]
    connected: Mask
    conditional: Mask


class Linearised:
    """A graph with its forward and backward form.

    Args:
        graph, wanted, seeded: as in `ir/autodiff.py: vjp`.
        scope: of the outermost graph.
        outer: the symbols that the surrounding graph binds; None where there is none.
        free: for each input, whether keeping it costs nothing; all by default.
        shapes_bind: whether sizes may be taken from the shapes of what the gradient is given; else all of them are
            residuals, `sizes`, and whoever calls the gradient binds them.
        owned: for an output and a place as in `names`, whether the output's cotangent is in that one's sum already
            where it is that very value; `named` has these.

    Attributes:
        forward: like the graph, with residuals as further outputs.
        sources: what each residual is: n for output n of `forward`, -1 - i for its input i.
        residuals: the same as values of `forward`.
        sizes: the numbers of those residuals that are the values of symbols.
        further_sizes: the numbers of those residuals that tell the sizes in constructs (`Pullback.sizes`).
        local: the symbols that the graph binds itself.
        guards: what a region assumes of sizes, which may hold only where it runs.
    """

    def __init__(self, graph: Graph, wanted: Mask, seeded: Mask, scope: Scope, outer: frozenset[str] | None = None,
                 free: Mask | None = None, shapes_bind: bool = True,
                 owned: Callable[[int, int], bool] | None = None) -> None:
        self.wanted = tuple([w and v.dtype.is_differentiable for w, v in zip(wanted, graph.inputs, strict=True)])
        self.seeded = tuple([s and v.dtype.is_differentiable for s, v in zip(seeded, graph.outputs, strict=True)])
        self.scope, self.free = scope, free or (True,) * len(graph.inputs)
        self.shapes_bind = shapes_bind
        self.count = len(graph.outputs)
        self._copy(graph)
        self.local = symbols.bound(self.forward) - (outer or frozenset())
        self.guards = [] if outer is None else list(graph.guards)
        self.forward.guards = scope.guards if outer is None else list(graph.guards)
        self.residuals: list[Value] = []
        self.sources: list[int] = []
        self.sizes: dict[str, int] = {}
        self.further_sizes: list[int] = []
        self._made: dict[tuple[Mask, Mask, tuple[tuple[int, int], ...], Mask | None, Mask, Mask], Backward] = {}
        self._full = False
        self.elsewhere: dict[int, list[Value | None]] = {}  # for outputs, the values whose sums hold their cotangents
        self.named = {} if owned is None else {key: holds for key, holds in self.names().items() if owned(*key)}
        for (k, _), condition in self.named.items():
            self.elsewhere.setdefault(k, []).append(condition)
        if not scope.only_names:
            self.backward()

    def _copy(self, graph: Graph) -> None:
        """`forward` without residuals, with those constructs replaced that gradients go through."""
        reach = reached(graph, self.wanted)
        cover = reaching(graph, self.seeded)
        self.forward = forward = Graph(graph.name)
        copies: dict[Value, Value] = {v: forward.add_input(v.dims, v.dtype, v.name) for v in graph.inputs}
        builder = Builder(forward)
        self._steps: list[tuple[Node, Pullback | None]] = []
        self.joined: list[tuple[Value, Value, Value, bool]] = []  # names, values, conditions, when these hold
        self.links: dict[Value, list[tuple[Value, Value, bool]]] = {}  # by names
        self._aliases_of: dict[Value, dict[Value, Value | None]] = {}
        self.popped: list[Popped] = []
        for node in graph.nodes:
            active = any(v in reach for v in node.inputs) and any(v in cover for v in node.outputs)
            pull = PULLBACKS.get(node.op) if active else None
            if pull is None:
                copy = copy_node(forward, node, copies)
                if active:
                    self._steps.append((copy, None))
                continue
            builder.loc = node.loc
            staged = pull(node, [copies[v] for v in node.inputs], tuple([v in reach for v in node.inputs]),
                          tuple([v in cover for v in node.outputs]), self.scope, builder)
            for old, new in zip(node.outputs, staged.outputs, strict=True):
                copies[old] = new
            self._steps.append((staged.node, staged))
            self.joined += staged.joined
            self.popped += staged.popped
        for name, value, condition, when in self.joined:
            self.links.setdefault(name, []).append((value, condition, when))
        forward.outputs = [copies[v] for v in graph.outputs]
        self._reach = {copies[v] for v in reach}
        self._own = set(forward.inputs).union(*[n.outputs for n in forward.nodes])
        self._places = {v: i for i, v in reversed(list(enumerate(forward.outputs)))}
        self._order = {v: i for i, node in enumerate(forward.nodes) for v in node.outputs}

    def _aliases(self, name: Value) -> dict[Value, Value | None]:
        """The values that `name` may be, itself among them, with the condition under which it is; `forward` is the
        graph that is written to."""
        if name not in self._aliases_of:
            aliases: dict[Value, Value | None] = {name: None}
            self._aliases_of[name] = aliases
            for value, condition, when in self.links.get(name, ()):
                holds = condition if when else ops.logical_not(condition)
                for root, further in self._aliases(value).items():
                    both = holds if further is None else ops.logical_and(holds, further)
                    before = aliases.get(root)
                    aliases[root] = both if before is None else ops.logical_or(before, both)
        return self._aliases_of[name]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Ops go to `forward`."""
        count = len(self.forward.nodes)
        with use_interpreter(Builder(self.forward)):
            yield
        self._own.update(v for node in self.forward.nodes[count:] for v in node.outputs)

    def names(self, count: int | None = None) -> dict[tuple[int, int], Value | None]:
        """The outputs that may be an input or an earlier output, with the condition under which they are; None where it
        always holds.

        The key is the output's number and a place: the number of an input, or -1 - that of an output.

        Args:
            count: how many outputs are looked at; all by default.
        """
        named: dict[tuple[int, int], Value | None] = {}
        with self._writing():
            outputs = {k: self._aliases(v) for k, v in enumerate(self.forward.outputs[:count]) if v in self._reach}
            for k, values in outputs.items():
                for root, holds in values.items():
                    if root.node is None:
                        named[k, root.index] = holds
                        continue
                    for n in [n for n in outputs if n < k and root in outputs[n]]:
                        other = outputs[n][root]
                        both = holds if other is None else other if holds is None else ops.logical_and(holds, other)
                        before = named.get((k, -1 - n), both)
                        if both is None or before is None:
                            named[k, -1 - n] = None
                        else:
                            named[k, -1 - n] = both if before is both else ops.logical_or(before, both)
        return named

    def handed_on(self) -> dict[int, list[tuple[int, Value]]]:
        """The residuals that an output may be, under a name of its own: by their numbers, the outputs' numbers and the
        conditions under which they are.

        Gradients that will be differentiated read such a value where the output is read, too: they are one value.
        """
        ways: dict[int, list[tuple[int, Value]]] = {}
        if not self.scope.whole or not self.links:
            return ways
        numbers = {v: n for n, v in enumerate(self.residuals) if v.node is not None and v.dtype.is_differentiable}
        with self._writing():
            for k, output in enumerate(self.forward.outputs[:self.count]):
                for value, holds in self._aliases(output).items() if output in self._reach else ():
                    if holds is not None and value in numbers and value not in self.forward.outputs[:self.count]:
                        ways.setdefault(numbers[value], []).append((k, holds))
        return ways

    # -- the gradient -----------------------------------------------------------------------------
    def backward(self, seeded: Mask | None = None, started: Mask | None = None, joined: Sequence[tuple[int, int]] = (),
                 asked: Mask | None = None, late: Mask = (), shared: Mask = ()) -> Backward:
        """The gradient for cotangents of the results `seeded`, all that may have one by default.

        Where nothing is added to a cotangent that has no start, it is zeros, or -0.0 if it is asked for.

        Args:
            started: for each input, whether the graph is given what its cotangent starts from (what other uses of
                that input add up to), so that it gives totals.
            joined: pairs of inputs that are one value where a condition holds, which is then a further input: what
                one's cotangent grows by, the other's grows by, too.
            asked: for each input, whether the graph tells if anything is added to its cotangent.
            late: for each of the first results, whether only running tells that it has a cotangent, by a further input.
            shared: for each input, whether its cotangent is also wanted where only that of another one, which may be
                the same value, has grown.
        """
        seeded = self.seeded if seeded is None else seeded
        started = (False,) * len(self.wanted) if started is None else started
        key = (seeded, started, tuple(joined), asked, late, shared)
        backward = self._made.get(key)
        if backward is None:
            backward = self._made[key] = _Play(self, *key).result()
            self._full = True
        return backward

    def sized(self) -> list[int]:
        """The numbers of the residuals that tell sizes."""
        return sorted({*self.sizes.values(), *self.further_sizes})

    def told(self) -> list[Value]:
        """What constructs give that tells which value is which and where it is: gradients for fewer cotangents may read
        more of it."""
        return [v for _, pull in self._steps if pull is not None for v in pull.node.outputs[pull.count:]
                if not v.dtype.is_differentiable]

    def number(self, value: Value) -> int:
        """The number of a residual, which `value` of `forward` becomes if it is none."""
        return self.residuals.index(value) if value in self.residuals else self.keep(value)

    def keep(self, value: Value) -> int:
        """Adds `value` of `forward` to the residuals; its number among these."""
        self.residuals.append(value)
        if value.node is None:
            self.sources.append(-1 - value.index)
        else:
            if value not in self._places:
                self._places[value] = len(self.forward.outputs)
                self.forward.outputs.append(value)
            self.sources.append(self._places[value])
        return len(self.residuals) - 1


class _Play:
    """Builds one backward graph of `lin`: goes through the steps in reverse, and gets the values that rules read."""

    def __init__(self, lin: Linearised, seeded: Mask, started: Mask, joined: tuple[tuple[int, int], ...],
                 asked: Mask | None, late: Mask, shared: Mask) -> None:
        self.lin, self.asked, self.shared = lin, asked, shared
        self.graph = Graph(lin.forward.name + "_grad")
        self.builder = Builder(self.graph, self._lift)
        self.read: dict[Value, Value] = {}  # values of `forward` -> what stands for them
        self.named: dict[Value, Value] = {}  # the same for names of other values; see `_by_names`
        self.front: list[Node] = []  # nodes before all others
        self.cts: dict[Value, Value] = {}
        self.sums = Sums(self.cts, lambda v: v)
        self.cotangents: list[Value] = []  # inputs for cotangents
        self.start(seeded, started, joined, late)
        with use_interpreter(self.builder), dm.recording() as guards:
            for guard in (*lin.scope.guards, *lin.guards):
                dm.require(guard.left, guard.op, guard.right)
            for node, pull in reversed(lin._steps):
                self.step(node, pull)
        self.graph.guards = list(guards)

    def start(self, seeded: Mask, started: Mask, joined: tuple[tuple[int, int], ...], late: Mask) -> None:
        """The cotangents that are given."""
        own = Graph()  # only to make inputs, which are numbered in the end
        inputs = self.lin.forward.inputs
        seeds = {k: own.add_input(v.dims, v.dtype, "ct") for k, (v, s)
                 in enumerate(zip(self.lin.forward.outputs, seeded, strict=False)) if s}
        starts = [(v, own.add_input(v.dims, v.dtype, "ct")) for v, s in zip(inputs, started, strict=True) if s]
        for i, j in joined:
            joint = own.add_input((), dt.bool_, "joint")
            self.sums.join(inputs[i], inputs[j], lambda joint=joint: joint)  # type: ignore[misc]
        begun = {k: own.add_input((), dt.bool_, "begun") for k, x in enumerate(late) if x}
        for popped in self.lin.popped:
            self.sums.begins[popped.name] = self.entry(popped)
        for name, value, holds, when in self.lin.joined:
            self.sums.join(name, value, self.holds(holds, when))
        self.cotangents = own.inputs
        self.seeds = len(seeds)
        with use_interpreter(self.builder):
            self.cts.update({v: ct for v, ct in starts if v in self.lin._reach})
            for v, is_asked in zip(inputs, self.asked or (), strict=False):
                if is_asked and v in self.cts:
                    self.sums.exists[v] = self._never
            for k, seed in seeds.items():
                ct = seed
                v, elsewhere = self.lin.forward.outputs[k], self.lin.elsewhere.get(k, ())
                if v not in self.lin._reach or None in elsewhere:
                    continue
                exists: Exists = (lambda flag=begun[k]: flag) if k in begun else None
                for condition in [c for c in elsewhere if c is not None]:
                    ct = self.builder.value(ops.select(condition, nothing(ct), ct))
                    exists = both(exists, self.holds(condition, False))
                self.sums.add(v, ct, exists)

    def _never(self) -> Value:
        return self.builder.constant(np.array(False))

    def holds(self, condition: Value, when: bool) -> Callable[[], Value]:
        """A function that gives, in the backward graph, whether a condition of the forward graph is `when`."""
        flags: list[Value] = []

        def holds() -> Value:
            if not flags:
                flags.append(self.builder.lift(condition) if when else ops.logical_not(self.builder.lift(condition)))
            return flags[0]
        return holds

    def entry(self, popped: Popped) -> Callable[[], tuple[Value | None, Exists]]:
        """A function that gives the sum so far of the cotangents of a value that was read from a stack, and whether
        there is one: where anything was added to what is in the stack."""
        def read() -> tuple[Value | None, Exists]:
            total = self.sums.get(popped.stack)
            if total is None:
                return None, None
            return taken_out(self.builder, popped, total), told(self.builder, total, popped.at, 1)
        return read

    def step(self, node: Node, pull: Pullback | None) -> None:
        """Apply the gradient rule of one node."""
        ends: list[Start] = [self.sums.pop(v) for v in node.outputs]
        if all(ct is None for ct, _ in ends):
            return
        self.builder.loc = node.loc
        each, (ends, exists) = ends, shared(ends)
        if pull is not None:
            self.construct(node, pull, each if pull.moves else ends, exists)
            return
        given = [None if ct is None else self.builder.value(filled(ct, there)) for ct, there in ends]
        if node.op is ops.select:
            self.select(node, given[0], exists)
            return
        parts = apply_rule(node.op, node.attrs, node.inputs, node.outputs, given)  # type: ignore[arg-type]
        for v, ct in zip(node.inputs, parts, strict=True):
            if ct is not None and v in self.lin._reach and (ct := needed(ct)) is not None:
                self.sums.add(v, self.builder.value(present(copied(ct, given), exists)), exists)

    def select(self, node: Node, ct: Value | None, exists: Exists) -> None:
        """Hand a cotangent on to the one of two values that was taken."""
        condition, *values = node.inputs
        for v, when in zip(values, (True, False), strict=True):
            if v in self.lin._reach:
                part, there = taken(ct, v, self.holds(condition, when), exists)
                self.sums.add(v, self.builder.value(part), there)

    def construct(self, node: Node, pull: Pullback, ends: Starts, exists: Exists) -> None:
        """Emit the gradient of a construct, which continues the sums of the cotangents of its operands."""
        own = {v: place for place, v in reversed(list(enumerate(node.inputs))) if v in self.lin._reach}
        first = [v if own.get(v) == place else None for place, v in enumerate(node.inputs)]
        starts = [(None, None) if v is None else self.sums.begun(v) for v in first]
        emitted = pull.emit(self.builder, ends[:pull.count], starts, self.sums.links(first))
        cts, begun = continued(starts, emitted, exists, pull.moves)
        self.sums.totals({v: self.builder.value(ct) for v, place in own.items() if (ct := cts[place]) is not None},
                         {v: begun[place] for v, place in own.items()})

    # -- residuals --------------------------------------------------------------------------------
    def _lift(self, value: Value) -> Value:
        """The value of the backward graph that stands for a value of `forward`."""
        if value not in self.lin._own:
            return value
        if self.lin.scope.whole and value.dtype.is_differentiable:
            return self._by_names(value)
        return self._read(value)

    def _by_names(self, value: Value) -> Value:
        """What stands for a value that may be another one: where it is, that one, so that gradients of this gradient
        find one value with one sum, by whatever names rules read it."""
        if value not in self.named and (again := self._read_again(value)) is not None:
            self.named[value] = again
        if value not in self.named:
            ways = [way for way in self.lin.links.get(value, ()) if fits(way[0], value)]
            sides = {(condition, when) for _, condition, when in ways}
            last = next((way for way in ways if way[0].dims == value.dims and (way[1], not way[2]) in sides), None)
            chosen = self._read(value) if last is None else self._by_names(last[0])
            for other, condition, when in ways:
                if last is None or other is not last[0]:
                    pair = (self._by_names(other), chosen) if when else (chosen, self._by_names(other))
                    chosen = one_of(self.builder, self._read(condition), *pair, value)
            self.named[value] = chosen
        return self.named[value]

    def _read_again(self, value: Value) -> Value | None:
        """An item of a stack of the surrounding graph read from there once more, so that all who read it have one sum;
        None for other values."""
        node = value.node
        if node is None or not self._is_item(node):
            return None
        if node.op is g.POP:
            return self.builder.construct(g.POP, node.inputs, {**node.attrs, "begins": True}, (value,))[0]
        regions = [region.copy() for region in node.regions]
        for region in regions:
            region.outputs = region.outputs[:1]
        return self.builder.construct(g.COND, node.inputs, node.attrs, (value,), regions)[0]

    def _is_item(self, node: Node) -> bool:
        """Whether a node reads an item of a stack that does not change, for a gradient."""
        if node.op is g.COND and node.attrs.get("past") is STAYS:
            maker = node.regions[1].outputs[0].node
            stack = node.inputs[1 + maker.inputs[0].index] if maker is not None else None
        else:
            stack = node.inputs[0] if node.op is g.POP and "told" in node.attrs else None
        return stack is not None and stack.node is None and self.lin.free[stack.index]

    def _read(self, value: Value) -> Value:
        """The input, constant or size of the backward graph that stands for a value of `forward`."""
        substitute = self.read.get(value)
        if substitute is None:
            substitute = self._easy(value)
            if substitute is None:
                substitute = Value(value.dims, value.dtype, None, 0, value.name)
            self.read[value] = substitute
        return substitute

    def _easy(self, value: Value) -> Value | None:
        """A constant or a size made again; None for other values."""
        node = value.node
        if node is None or node.op not in (g.CONSTANT, g.SIZE):
            return None
        copy = Node(node.op, (), node.attrs, node.outputs, (), node.loc)
        self.front.append(copy)
        return copy.outputs[0]

    def result(self) -> Backward:
        """The finished graph."""
        lin, graph = self.lin, self.graph
        with use_interpreter(self.builder):
            for v in compress(lin.forward.inputs, self.shared):
                total, exists = self.sums.begun(v)
                if total is not None:
                    self.sums.totals({v: total}, {v: exists})
            ends = [(v, self.sums.get(v) if w else None) for v, w in zip(lin.forward.inputs, lin.wanted, strict=True)]
            asked = self.asked or (False,) * len(ends)
            totals = [ct if ct is None or a else self.sums.result(v) for (v, ct), a in zip(ends, asked, strict=True)]
            late = [a and ct is not None and v in self.sums.exists for (v, ct), a in zip(ends, asked, strict=True)]
            flags = [self.sums.exists[v]() for (v, _), t in zip(ends, late, strict=True) if t]
        connected = tuple([ct is not None for ct in totals])
        graph.outputs = [self.builder.value(ct) for ct in [*totals, *flags] if ct is not None]
        further = [] if lin._full else [v for _, pull in lin._steps if pull is not None for v in pull.sizes]
        for v in [*further, *([] if lin._full or not lin.scope.whole else lin.told())]:
            self.builder.lift(v)
        residuals = self._chosen() if not lin._full else {v: n for n, v in reversed(list(enumerate(lin.residuals)))}
        for v in sorted([v for v in self.read if v not in residuals], key=lambda v: lin._order.get(v, -1)):
            self._again(v, residuals)
        if not lin._full:
            for v in residuals:
                residuals[v] = lin.keep(v)
            lin.further_sizes = [residuals[v] for v in further if v in residuals]
        inputs = sorted([(residuals[v], here) for v, here in self.read.items() if v in residuals], key=lambda p: p[0])
        inputs = self._sized(inputs)
        graph.inputs = [*[v for _, v in inputs], *self.cotangents]
        for i, v in enumerate(graph.inputs):
            v.index = i
        graph.nodes[:0] = self.front
        return Backward(graph, tuple([n for n, _ in inputs]), connected, tuple(late))

    def _chosen(self) -> dict[Value, int]:
        """Which of the values that are read become residuals; the others are cheap to compute from these."""
        order, depth = self.lin._order, dict[Value, int]()
        residuals: dict[Value, int] = {}
        for v in sorted(self.read, key=lambda v: order.get(v, -1)):
            if self.read[v].node is not None:
                continue  # made again already
            leaves: list[Value] = []
            rank = None if self.lin.scope.whole and v.dtype.is_differentiable else self._rank(v, depth, leaves)
            if rank is None:
                residuals[v] = 0
                depth[v] = 0
            else:
                depth[v] = rank
                residuals.update(dict.fromkeys(leaves, 0))
        return residuals

    def _rank(self, v: Value, depth: dict[Value, int], leaves: list[Value], room: int = 3) -> int | None:
        """How many instructions give `v` from what is kept and the inputs `leaves`; None for too many."""
        node = v.node
        if node is None or isinstance(node.op, g.Construct) or not room:
            return None
        view = node.op.view is not None
        if not view and node.op.name not in _CHEAP:
            return None
        deepest = 0
        for u in node.inputs:
            if u in depth:
                deepest = max(deepest, depth[u])
            elif u.node is None:
                if not self.lin.free[u.index] and (len(node.inputs) > 1 or u.dims != v.dims):
                    return None
                leaves.append(u)
            elif u.node.op is not g.CONSTANT and u.node.op is not g.SIZE:
                below = self._rank(u, depth, leaves, room - 1)
                if below is None:
                    return None
                deepest = max(deepest, below)
        rank = deepest + (not view)
        return rank if rank <= 2 else None

    def _again(self, v: Value, residuals: dict[Value, int]) -> Value:
        """Compute `v`, which is read but no residual, from residuals."""
        here = self.read.get(v)
        if here is not None and here.node is not None:
            return here
        if v in residuals:
            return here if here is not None else self.read.setdefault(v, Value(v.dims, v.dtype, None, 0, v.name))
        easy = self._easy(v)
        if easy is not None:
            self.read[v] = easy
            return easy
        node = v.node
        assert node is not None  # inputs are kept
        copy = Node(node.op, [self._again(u, residuals) for u in node.inputs], node.attrs, node.outputs, (), node.loc)
        if here is None:
            here = self.read[v] = copy.outputs[0]
        here.node, here.index = copy, v.index
        copy.outputs[v.index] = here
        self.front.append(copy)
        return here

    def _sized(self, inputs: list[tuple[int, Value]]) -> list[tuple[int, Value]]:
        """Adds residuals for the sizes that the graph speaks of and nothing binds."""
        lin, graph = self.lin, self.graph
        graph.inputs = [*[v for _, v in inputs], *self.cotangents]
        graph.nodes[:0], front = self.front, len(self.front)
        if lin.shapes_bind:  # cotangents bind where there is one only: else they may be left out another time
            binding = [v for _, v in inputs] + (self.cotangents[:self.seeds] if sum(lin.seeded) == 1 else [])
            have = {name for v in binding for name in symbols.alone(v.dims)}
            names = symbols.symbols_in(graph.inputs) - have
        else:
            have, names = set(), symbols.symbols_in(graph.inputs) | self._zero_sizes()
        if not lin._full:  # gradients for other cotangents may speak of any size that one has, or need what binds one
            smooth = [v for v in (*lin.forward.inputs, *lin.forward.outputs[:lin.count]) if v in lin._reach]
            names |= (symbols.symbols_in(smooth) | symbols.needed(graph)) - have
        missing = sorted((symbols.unbound(graph, have) | names) & lin.local)
        del graph.nodes[:front]
        bound = {name for v in graph.inputs for name in symbols.alone(v.dims)}
        for name in missing:
            number = self._size(name)
            here = next((v for n, v in inputs if n == number), None)
            if here is None:
                here = Value(lin.residuals[number].dims, lin.residuals[number].dtype)
                inputs.append((number, here))
            if lin.shapes_bind and number in lin.sizes.values() and name not in bound:
                self.front.insert(0, Node(g.BIND, (here,), {"symbol": name}, ()))
        return inputs

    def _zero_sizes(self) -> frozenset[str]:
        """The sizes of inputs that get no cotangent: rounds of a loop hand on zeros of these sizes."""
        lin = self.lin
        names = symbols.symbols_in([v for v, w in zip(lin.forward.inputs, lin.wanted, strict=True)
                                    if w and v not in self.cts])
        return names & lin.sizes.keys() if lin._full else names

    def _size(self, name: str) -> int:
        """The number of a residual that tells the size `name`."""
        lin = self.lin
        if name not in lin.sizes:
            if lin._full:
                return next(n for n, v in enumerate(lin.residuals) if name in symbols.alone(v.dims))
            node = lin.forward.add(g.SIZE, (), {"size": dm.symbol(name), "dtype": dt.int64},
                                   (spec((), dt.int64),))
            lin.sizes[name] = lin.keep(node.outputs[0])
        return lin.sizes[name]


def fits(other: Spec, value: Spec) -> bool:
    """Whether two may be one value, as far as their sizes are known."""
    return all(isinstance(a, Dim) or isinstance(b, Dim) or a == b for a, b in zip(other.dims, value.dims, strict=True))


def taken_out(b: Builder, popped: Popped, total: Value) -> Value:
    """What is in the sum of a stack's cotangents for one item; -0.0 where the item comes from elsewhere.

    It is taken out, and the larger sum put in its place later: gradients of this take theirs out before they put one
    there.
    """
    then, otherwise = Graph("elsewhere"), Graph("taken_out")
    for region in (then, otherwise):
        region.add_input(total.dims, total.dtype)
        region.add_input((), dt.int64)
    builder, name = Builder(then), popped.name
    with use_interpreter(builder):
        then.outputs = [builder.value(nothing(name))]
    attrs = {"dims": name.dims, "past": True, "told": 1}
    otherwise.outputs = otherwise.add(g.POP, otherwise.inputs, attrs, (name,)).outputs
    return b.construct(g.COND, (popped.elsewhere, total, popped.at), {"past": TAKEN_OUT}, (name,), [then, otherwise])[0]


def told(b: GraphWriter, stack: AnyTensor, at: Any, lead: int) -> Exists:
    """Whether the cotangents of a stack have one for the item at a place, as the element `lead` before tells.

    It is read now: what is pushed later may be written in place.
    """
    place = ops.subtract(b.lift(at), lead) if lead else b.lift(at)
    flag = b.construct(g.POP, (stack, place), {"dims": ()}, (spec((), stack.dtype),))[0]
    there = ops.not_equal(flag, scalar(0, stack))
    return lambda: there


# -- what depends on what -----------------------------------------------------------------------------
def reached(graph: Graph, wanted: Sequence[bool]) -> set[Value]:
    """The values of `graph` that depend differentiably on the inputs `wanted`."""
    varied = {v for v, w in zip(graph.inputs, wanted, strict=True) if w and v.dtype.is_differentiable}
    for node in graph.nodes:
        if varied.isdisjoint(node.inputs):
            continue
        if isinstance(node.op, g.Construct):
            flow = FLOWS.get(node.op)
            mask = flow.forward(node, tuple([v in varied for v in node.inputs])) if flow is not None else ()
            varied.update(v for v, m in zip(node.outputs, mask, strict=False) if m and v.dtype.is_differentiable)
        elif node.op.vjp is not None:
            varied.update(v for v in node.outputs if v.dtype.is_differentiable)
    return varied


def reaching(graph: Graph, seeded: Sequence[bool]) -> set[Value]:
    """The values of `graph` on which the outputs `seeded` depend differentiably."""
    useful = {v for v, s in zip(graph.outputs, seeded, strict=True) if s and v.dtype.is_differentiable}
    for node in reversed(graph.nodes):
        if useful.isdisjoint(node.outputs):
            continue
        if isinstance(node.op, g.Construct):
            flow = FLOWS.get(node.op)
            mask = flow.backward(node, tuple([v in useful for v in node.outputs])) if flow is not None else ()
            useful.update(v for v, m in zip(node.inputs, mask, strict=False) if m and v.dtype.is_differentiable)
        elif node.op.vjp is not None:
            useful.update(v for v in node.inputs if v.dtype.is_differentiable)
    return useful
