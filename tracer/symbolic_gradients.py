"""Gradients by tensors of a trace without a tape around what computed them: `tf.gradients`.

The nodes between are in the trace's graph, so a tape is told of them afterwards, in their order, and played at once:
the rules, and the order in which cotangents add up, are a tape's that had been there from the start. The results
become part of the trace like anything else, and can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.eager import record
from twofold.eager.tape import GradientTape
from twofold.eager.tensor import Tensor
from twofold.ir import graph as g
from twofold.ir import ops
from twofold.ir.errors import UnimplementedError
from twofold.ir.grad import zeros_like

from .gradients import record_construct
from .staging import stage_graph
from .symbolic import SymbolicTensor, symbolic
from .trace import StagedConstruct, Trace
from .types import Captured, Cotangent

__all__ = ["gradients"]


def gradients(trace: Trace, ys: Sequence[Tensor], xs: Sequence[Captured], weights: Sequence[Cotangent],
              stopped: Sequence[Captured] = (), zeros: bool = False) -> list[Cotangent]:
    """The gradient of the sum of `ys` by each of `xs`.

    Args:
        trace: the trace under way.
        ys: tensors.
        xs: tensors or variables.
        weights: for each of `ys` the weights of its elements, or None for ones.
        stopped: tensors or variables that are taken for constants where anything is computed from them.
        zeros: whether an x that no y depends on gives zeros; else None.
    """
    sources = [_values(trace, x)[0] for x in xs]
    replay = _TapeReplay(trace, set(sources), {v for x in stopped for v in _values(trace, x)})
    targets = [replay.tensor(trace.lift(y)) for y in ys]
    totals = replay.tape.gradient(targets, [replay.sources[v] for v in sources], output_gradients=list(weights))
    trace.differentiated()
    return [zeros_like(x) if total is None and zeros else total for x, total in zip(xs, totals, strict=True)]


def _values(trace: Trace, x: Captured) -> list[g.Value]:
    """The values of `x` in the graph: of a variable that was assigned, the value before and the one now."""
    if isinstance(x, Tensor):
        return [trace.lift(x)]
    state = trace._state(x)
    return list(dict.fromkeys([state.first.value, state.tensor.value]))


class _TapeReplay:
    """Tells a tape of the nodes of a trace that depend on `wanted`.

    Attributes:
        sources: the watched tensor of each wanted value.
    """

    def __init__(self, trace: Trace, wanted: set[g.Value], stopped: set[g.Value]) -> None:
        self.trace, self.stopped = trace, stopped
        self.tape = GradientTape(persistent=True, watch_accessed_variables=False)
        self._tensors: dict[g.Value, SymbolicTensor] = {}
        self._identities = {t.value: t._id for t in trace.input_tensors if getattr(t, "_id", 0)} | trace.identities
        self._live: set[g.Value] = set(wanted)
        self.sources = {value: self.tensor(value) for value in wanted}
        smooth = [t for t in self.sources.values() if t.dtype.is_differentiable]
        with record.telling(()), self.tape:
            for tensor in smooth:  # of all that hands it on the tape is told
                self.tape._follow(tensor)
            for node in list(trace.graph.nodes):
                if not self._live.isdisjoint(node.inputs):
                    self._tell(node)

    def tensor(self, value: g.Value) -> SymbolicTensor:
        """The tensor that stands for a value of the graph."""
        if value not in self._tensors:
            self._tensors[value] = self._new_tensor(value)
        return self._tensors[value]

    def _new_tensor(self, value: g.Value) -> SymbolicTensor:
        tensor = symbolic(value, self.trace)
        if value in self._identities:
            tensor._id = self._identities[value]  # tapes of the trace know it by this
        return tensor

    def _inline(self, call: g.Node) -> None:
        """Put the nodes that a call runs in its place, where they give its results, and tell the tape of them."""
        trace, nodes = self.trace, self.trace.graph.nodes
        before = len(nodes)
        with record.telling(()), trace.after(None):
            results = stage_graph(call.regions[0], [self.tensor(v) for v in call.inputs], dict(call.attrs["sizes"]))
            for value, result in zip(call.outputs, results, strict=True):
                same = trace.lift(ops.identity(result))
                trace.same_sizes(value.dims, same.dims)
                assert same.node is not None, "the result of an op has a node"
                same.node.outputs[0], value.node, value.index = value, same.node, 0
            inlined = nodes[before:]
            del nodes[before:]
            at = next(i for i, node in enumerate(nodes) if node is call)
            nodes[at:at + 1] = inlined
            trace.inlined(call, inlined)
        for node in inlined:
            if not self._live.isdisjoint(node.inputs):
                self._tell(node)

    def _tell(self, node: g.Node) -> None:
        if node.op is g.CALL:
            self._inline(node)
            return
        inputs = tuple([self.tensor(v) for v in node.inputs])
        outputs = tuple([self._result(v) for v in node.outputs])
        if not isinstance(node.op, g.Construct):
            for output in outputs:
                record.identity(output)
            self.tape._record(node.op, node.attrs, inputs, outputs)
        elif node.op is g.HOST and node.attrs.get("smooth"):
            raise UnimplementedError(None, "gradients", f"tf.gradients does not follow tf.py_function "
                                     f"({node.attrs['name']}, {node.loc}): use a tf.GradientTape around it")
        else:
            record_construct(StagedConstruct(self.trace, node, inputs, outputs))

    def _result(self, value: g.Value) -> SymbolicTensor:
        """The tensor of a result; of a stopped one, nodes that read it get another tensor, which is not followed."""
        if value in self.stopped:
            self.tensor(value)
            return symbolic(value, self.trace)
        self._live.add(value)
        return self.tensor(value)

