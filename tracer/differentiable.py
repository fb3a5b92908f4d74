"""`Differentiable`: a compiled graph that tapes see as one function, with a compiled gradient.

Under a tape the graph runs in the form that gives residuals, for those of its inputs that the tape follows, and the
tape gets a rule that runs the gradient graph. That one is a `Differentiable` too, and residuals are results that tapes
know, so tapes over tapes work to any order. Op by op runs what compiled gradients would not give as they should: under
accumulators, whose tangents are those of single ops, and graphs with effects when residuals of residuals may be asked
for, which would have to be computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np

from twofold.eager import record
from twofold.eager.constructs import run_graph
from twofold.eager.executing import executable, execute
from twofold.eager.playing import NOTHING
from twofold.eager.tape import GradientTape
from twofold.eager.tensor import Tensor, wrap
from twofold.ir import graph as g
from twofold.ir import passes
from twofold.ir.dims import Shape
from twofold.ir.grad import nothing
from twofold.ir.replay import bind_sizes
from twofold.ir.sums import Link

from .following import followed
from .types import Cotangent

if TYPE_CHECKING:
    from twofold.ir.autodiff import Backward, Linearised
    from twofold.runtime.program import Executable

__all__ = ["Differentiable"]

Mask: TypeAlias = tuple[bool, ...]

#: a gradient rule that continues sums; see `eager/record.py: record_custom`
Rule: TypeAlias = Callable[[Sequence[Cotangent], Sequence[Cotangent], Sequence[Link]], list[Cotangent]]


class Differentiable:
    """A graph that runs compiled, also while recorders (tapes) watch.

    Args:
        graph: it must not change any more.
    """

    def __init__(self, graph: g.Graph) -> None:
        self.graph = graph
        self._program: Executable | None = None
        self._gradients: dict[tuple[Mask, bool], _Gradient] = {}
        self._merged: dict[tuple[int, ...], Differentiable] = {}
        self._effects: bool | None = None
        self._smooth: bool | None = None

    def __call__(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs for tensors; recorders of the context are told."""
        recorders = record.active.get()
        if not recorders:
            return self.run(inputs)
        if any(getattr(r, "watches_numerics", False) for r in recorders):
            return run_graph(self.graph, inputs)
        wanted = followed(inputs)
        if not any(wanted):
            return self.run(inputs)
        tapes = [r for r in recorders if any(r._follows(t) for t in inputs)]
        order = len(tapes) + any(t._persistent for t in tapes if type(t) is GradientTape)
        if any(type(r) is not GradientTape for r in tapes) or self.smooth_host or (self.effects and order > 1):
            return run_graph(self.graph, inputs)
        places = self._first_places(inputs, wanted)
        if places is None:
            return self.gradient(wanted, order > 1).record(inputs, order)
        merged = self._merged.get(places)
        if merged is None:
            merged = self._merged[places] = Differentiable(_merged(self.graph, places))
        return merged([t for n, t in enumerate(inputs) if places[n] == n])

    def _first_places(self, inputs: Sequence[Tensor], wanted: Mask) -> tuple[int, ...] | None:
        """For each input, the first place of the same tensor under the same sizes; None where there is none twice.

        Where the graph has other sizes for it, its sums are linked when the gradient is played (`eager/playing.py`).
        """
        first: dict[tuple[int, Shape], int] = {}
        places = [first.setdefault((t._id, v.dims), n) if want else n
                  for n, (t, v, want) in enumerate(zip(inputs, self.graph.inputs, wanted, strict=True))]
        return None if len(first) == sum(wanted) else tuple(places)

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs for tensors; recorders are not told."""
        if self._program is None:
            sizes: dict[str, int] = {}
            for value, tensor in zip(self.graph.inputs, inputs, strict=True):
                bind_sizes(value.dims, tensor.dims, sizes)
            self._program = executable(self.graph, improve=passes.optimise, label="passes", sizes=sizes)
        return [wrap(a) for a in execute(self._program, [t._memory for t in inputs])]

    @property
    def smooth_host(self) -> bool:
        """Whether Python is called whose gradient only a tape that watches it can give (`tf.py_function`)."""
        if self._smooth is None:
            self._smooth = any(n.op is g.HOST and n.attrs.get("smooth", False) for n in self.graph.walk())
        return self._smooth

    @property
    def effects(self) -> bool:
        """Whether the graph has effects, so that running it twice differs from running it once."""
        if self._effects is None:
            self._effects = any(g.effect_of(n) in ("host", "random") and n.op is not g.ASSERT and not n.regions
                                for n in self.graph.walk())
        return self._effects

    def gradient(self, wanted: Mask, whole: bool) -> _Gradient:
        """The gradient by the inputs `wanted`.

        Args:
            whole: whether it may be differentiated, too; see `ir.autodiff.Scope`.
        """
        gradient = self._gradients.get((wanted, whole))
        if gradient is None:
            from twofold.ir.autodiff import vjp
            gradient = self._gradients[wanted, whole] = _Gradient(vjp(self.graph, wanted, whole=whole))
        return gradient


def _merged(graph: g.Graph, places: Sequence[int]) -> g.Graph:
    """The graph with one input for those that are the same tensor, which has one cotangent."""
    merged = graph.copy()
    inputs = list(merged.inputs)
    same = {v: inputs[place] for v, place in zip(inputs, places, strict=True)}
    for node in merged.nodes:
        node.inputs = [same.get(v, v) for v in node.inputs]
    merged.outputs = [same.get(v, v) for v in merged.outputs]
    merged.inputs = [v for n, v in enumerate(inputs) if places[n] == n]
    for n, v in enumerate(merged.inputs):
        v.index = n
    return merged


class _Pull(NamedTuple):
    """A compiled backward graph (None where no input gets a cotangent), its description, which cotangents and sums it
    takes, and for which of the cotangents it takes whether they are there."""

    run: Differentiable | None
    back: Backward
    seeded: Mask
    started: Mask
    late: Mask


class _Gradient:
    """The compiled gradient of a graph by some of its inputs."""

    def __init__(self, lin: Linearised) -> None:
        self.lin = lin
        flags = {key: holds for key, holds in lin.names().items() if holds is not None}
        # For each result that may be an input or an earlier one: places as in `Linearised.names`, each with the
        # number of the further result that tells it.
        self._flags: dict[int, list[tuple[int, int]]] = {}
        for n, (number, place) in enumerate(sorted(flags), len(lin.forward.outputs)):
            self._flags.setdefault(number, []).append((place, n))
        lin.forward.outputs += [flags[key] for key in sorted(flags)]
        self.forward = Differentiable(lin.forward)
        self._backward: dict[tuple[Mask, Mask, tuple[tuple[int, int], ...], Mask], _Pull] = {}
        self._late: set[int] = set()  # results whose cotangent was `NOTHING` some time
        outputs = lin.forward.outputs
        first: dict[g.Value, int] = {}
        # For each output: -1 - n where it is input n itself, else the first output that is the same value.
        self._same = [-1 - v.index if v.node is None else first.setdefault(v, n) for n, v in enumerate(outputs)]
        self._own = [n for n, place in enumerate(self._same) if place == n]
        self._connected: dict[Mask, list[bool | None]] = {}
        self._all = all(x is not False or not v.dtype.is_differentiable
                        for x, v in zip(self.connected(lin.wanted), outputs, strict=False))

    def record(self, inputs: Sequence[Tensor], order: int) -> list[Tensor]:
        """The outputs of the graph, and recorders told how their gradient goes.

        Args:
            order: how many gradients of gradients may be asked for. From the third on residuals are differentiated
                twice, and so theirs must be kept, too.
        """
        levels = [self]
        for _ in range(order - 2):
            levels.append(levels[-1].deeper())
        last = levels[-1]
        outputs_of_run = last.forward.run(inputs)
        if len(last._own) == len(outputs_of_run) and not last._flags:
            rule = _rule(levels, inputs, outputs_of_run, None)
            record.record_custom(self.with_connections(rule, range(len(outputs_of_run))), tuple(inputs),
                                 tuple(outputs_of_run), True)
            return outputs_of_run[:self.lin.count]
        outputs, own = last.named(inputs, outputs_of_run)
        record.record_custom(self.with_connections(_rule(levels, inputs, outputs, own), own), tuple(inputs),
                             tuple([outputs[n] for n in own]), True)
        return outputs[:self.lin.count]

    def named(self, inputs: Sequence[Tensor], outputs_of_run: Sequence[Tensor]) -> tuple[list[Tensor], tuple[int, ...]]:
        """The results, of which each that is an input or an earlier result is that very tensor, and the numbers of the
        others."""
        outputs, own = list(outputs_of_run), []
        for n, same in enumerate(self._same):
            if same < 0:
                outputs[n] = inputs[-1 - same]
            elif same < n:
                outputs[n] = outputs[same]
            else:
                for place, flag in self._flags.get(n, ()):
                    if bool(outputs_of_run[flag]._array):
                        outputs[n] = inputs[place] if place >= 0 else outputs[-1 - place]
                        break
                else:
                    own.append(n)
        return outputs, tuple(own)

    def with_connections(self, rule: Rule, own: Sequence[int]) -> Rule:
        """The rule, which says which results depend on which inputs where some tape might be wrong about it.

        Args:
            own: the numbers of those results that the rule is given cotangents of.
        """
        if len(record.active.get()) > 1 or not self._all:
            def connected(inputs: Sequence[bool], surely: bool = False) -> list[bool | None]:
                connections = self.connected(tuple(inputs))
                return [connections[n] if n < len(connections) else True for n in own]
            rule.connected = connected  # type: ignore[attr-defined]  # tapes ask for it by `getattr`
        return rule

    def connected(self, inputs: Mask) -> list[bool | None]:
        """Whether the results depend on some of the inputs; None where only running tells."""
        connections = self._connected.get(inputs)
        if connections is None:
            from twofold.ir.connection import of_outputs
            connections = self._connected[inputs] = of_outputs(self.lin.forward, inputs)[:self.lin.count]
        return connections

    def deeper(self) -> _Gradient:
        """The gradient of the graph that gives residuals, too."""
        return self.forward.gradient(self.lin.wanted, self.lin.scope.whole)

    def residuals(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> list[Tensor]:
        """The residuals."""
        return [outputs[n] if n >= 0 else inputs[-1 - n] for n in self.lin.sources]

    def pull(self, residuals: Sequence[Tensor], outputs: Sequence[Tensor], cts: Sequence[Cotangent],
             starts: Sequence[Cotangent], links: Sequence[Link]) -> list[Cotangent]:
        """A cotangent for each input, which includes the sum so far that is given in `starts`; None for those that are
        unconnected, `NOTHING` for those to which what ran added nothing.

        Args:
            outputs: the results that `cts` are the cotangents of.
        """
        self._late.update(n for n, ct in enumerate(cts) if ct is NOTHING)
        key = (tuple([ct is not None for ct in cts]), tuple([s is not None for s in starts]),
               tuple([link[:2] for link in links]), tuple([n in self._late for n in range(len(cts))]))
        pull = self._backward.get(key)
        if pull is None:
            pull = self._backward[key] = self._compiled(*key)
        if pull.run is None:
            return list(starts)
        if all(ct is None or ct is NOTHING for ct in cts):
            return [NOTHING if start is None and x else start
                    for start, x in zip(starts, pull.back.connected, strict=True)]
        operands = [residuals[n] for n in pull.back.reads]
        operands += [cast("Tensor", nothing(out)) if ct is NOTHING else ct
                     for ct, out, s in zip(cts, outputs, pull.seeded, strict=True) if s and ct is not None]
        operands += [start for start, s in zip(starts, pull.started, strict=True) if s and start is not None]
        operands += [link.holds() for link in links]
        operands += [wrap(np.array(ct is not NOTHING)) for ct, x in zip(cts, pull.late, strict=True) if x]
        results = iter(pull.run(operands))
        totals: list[Cotangent] = [next(results) if x else None for x in pull.back.connected]
        for n, is_asked in enumerate(pull.back.conditional):
            if is_asked and not bool(next(results)):
                totals[n] = NOTHING
        return totals

    def _compiled(self, present: Mask, begun: Mask, joined: tuple[tuple[int, int], ...], late: Mask) -> _Pull:
        """The gradient for cotangents of the results `present`, where those of the inputs `begun` have parts already,
        those of pairs `joined` may be one value, and those of `late` results may be `NOTHING`."""
        seeded = tuple([ct and s for ct, s in zip(present, self.lin.seeded, strict=True)])
        back = self.lin.backward(seeded)
        started = tuple([s and (x or bool(joined)) for s, x in zip(begun, back.connected, strict=True)])
        late = tuple([s and x for s, x in zip(seeded, late, strict=True)])
        run = None
        if any(back.connected):
            back = self.lin.backward(seeded, started, joined, tuple([not s for s in started]), late)
            run = Differentiable(back.graph)
        return _Pull(run, back, seeded, started, late)


def _rule(levels: Sequence[_Gradient], inputs: Sequence[Tensor], outputs: Sequence[Tensor],
          own: Sequence[int] | None) -> Rule:
    """The gradient rule of `outputs`: results, then the residuals of each level, and the flags that tell names.

    Args:
        own: the numbers of those that the rule is given cotangents of; None for all.
    """
    last = levels[-1]
    residuals_of = [level.residuals(inputs, outputs) for level in levels]

    def rule(own_cts: Sequence[Cotangent], starts: Sequence[Cotangent], links: Sequence[Link]) -> list[Cotangent]:
        cts = list(own_cts)
        if own is not None:
            cts = [None] * len(outputs)
            for n, ct in zip(own, own_cts, strict=True):
                cts[n] = ct
        for level, residuals in zip(levels, residuals_of, strict=True):
            count = level.lin.count
            if all(ct is None for ct in cts[count:]):
                return level.pull(residuals, outputs[:count], cts[:count], starts, links)
        # The values that the gradient of the last residuals reads are no residuals, and are computed anew.
        again = last.deeper()
        return again.pull(again.residuals(inputs, again.forward(inputs)), outputs, cts, starts, links)
    return rule
