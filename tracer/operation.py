"""`Operation`: a node of a graph as programs see it, with TensorFlow's names for what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from twofold.ir import graph as g

if TYPE_CHECKING:
    from twofold.eager.tensor import Tensor

__all__ = ["Operation", "kind_of", "operation_of", "title"]

#: names that are not ours with capitals
_TITLES = {
    "argmax": "ArgMax", "argmin": "ArgMin", "constant": "Const", "divide": "RealDiv", "divide_no_nan": "DivNoNan",
    "floordiv": "FloorDiv", "floormod": "FloorMod", "matmul": "MatMul", "multiply": "Mul",
    "multiply_no_nan": "MulNoNan", "negative": "Neg", "nextafter": "NextAfter", "nonzero": "Where", "reduce_all": "All",
    "reduce_any": "Any", "reduce_euclidean_norm": "EuclideanNorm", "reduce_max": "Max", "reduce_mean": "Mean",
    "reduce_min": "Min", "reduce_prod": "Prod", "reduce_sum": "Sum", "select": "SelectV2", "subtract": "Sub",
    "truncatediv": "TruncateDiv", "truncatemod": "TruncateMod", "where": "SelectV2"}
#: types that are not titles: later versions of an op, and constructs
_KINDS = {"add": "AddV2", "bincount": "DenseBincount", "call": "StatefulPartitionedCall", "concat": "ConcatV2",
          "cond": "If", "gather": "GatherV2", "host": "EagerPyFunc", "top_k": "TopKV2"}
#: those whose type says the rank
_RANKED = {"avg_pool": {4: "AvgPool", 5: "AvgPool3D"}, "conv": {4: "Conv2D", 5: "Conv3D"},
           "matmul": {2: "MatMul"}, "max_pool": {4: "MaxPool", 5: "MaxPool3D"}}


def title(name: str) -> str:
    """The name that TensorFlow gives an operation of ours, such as "Sum" for "reduce_sum".

    Args:
        name: of the op.
    """
    return _TITLES.get(name) or "".join([part[:1].upper() + part[1:] for part in name.split("_")])


def kind_of(node: g.Node | None) -> str:
    """The type of an operation, as TensorFlow has it.

    Args:
        node: None for an input of the graph.
    """
    if node is None:
        return "Placeholder"
    name = node.op.name
    if name in _RANKED:
        return _RANKED[name].get(len(node.inputs[0].dims), "BatchMatMulV2" if name == "matmul" else title(name))
    return _KINDS.get(name) or title(name)


class Staged(Protocol):
    """The part of a trace that operations need."""

    graph: Any

    def tensor_of(self, value: g.Value) -> Any:
        """The tensor that stands for a value of the graph."""


class Operation:
    """What computes a tensor of a graph.

    Attributes:
        graph: the graph that it is of.
        name: its name.
        type: its kind, as TensorFlow names it.
        nodes: the nodes of the graph that it stands for; none for an input.
        outputs: its results.
    """

    def __init__(self, graph: Any, trace: Staged, name: str, kind: str, nodes: Sequence[g.Node],
                 outputs: Sequence[Tensor]) -> None:
        self.graph, self.name, self.type = graph, name, kind
        self.nodes, self.outputs = list(nodes), list(outputs)
        self._trace = trace

    @property
    def inputs(self) -> list[Any]:
        """Its operands."""
        return [self._trace.tensor_of(v) for node in self.nodes for v in node.inputs]

    @property
    def control_inputs(self) -> list[Any]:
        """The operations that come first, without being read: none, as the order of a program is kept."""
        return []

    @property
    def device(self) -> str:
        """Empty: where it runs is decided for all of a graph."""
        return ""

    def values(self) -> tuple[Any, ...]:
        """Its results."""
        return tuple(self.outputs)

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"


def operation_of(value: g.Value, trace: Staged, name: str) -> Operation:
    """The operation of which a value of a trace's graph is a result.

    Args:
        name: of the operation.
    """
    node = value.node
    results = [value] if node is None else node.outputs
    return Operation(trace.graph, trace, name, kind_of(node), [] if node is None else [node],
                     [trace.tensor_of(v) for v in results])
