"""`tf.verify`: a traced function run both ways, compiled and op by op, and compared node by node.

Nothing else happens: variables keep their values, and what has an effect (a draw of random numbers, a call of Python)
runs once, for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from twofold.eager import record
from twofold.eager.constructs import run_graph
from twofold.eager.executing import Host, failed
from twofold.eager.tensor import Tensor
from twofold.ir import errors, passes
from twofold.ir import graph as g
from twofold.ir.data_class import data_class
from twofold.runtime.calls import NodeFailure

from .types import Sizes

if TYPE_CHECKING:
    from twofold.runtime.program import Improve

__all__ = ["Verification", "verify_graph"]


@data_class(frozen=True)
class Verification:
    """The outcome of a comparison.

    Attributes:
        equal: whether all results and all values inside agree to the bit.
        compared: how many values were compared.
        op: the name of the first op whose result differs, else None.
        line: the user's line of that op, as "file:line".
        text: the finding in words.
    """

    equal: bool
    compared: int
    op: str | None
    line: str | None
    text: str

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        return self.text


def verify_graph(graph: g.Graph, tensors: Sequence[Tensor]) -> Verification:
    """Compares the compiled `graph` with its ops run one by one.

    Args:
        graph: the graph to run; control flow counts as one op.
        tensors: its inputs.
    """
    eager: dict[g.Value, np.ndarray] = {}

    def watch(node: g.Node, results: Sequence[Tensor]) -> None:
        for value, result in zip(node.outputs, results, strict=True):
            eager[value] = result._array

    with record.telling(()):
        expected = [t._array for t in run_graph(graph, tensors, watch=watch)]
        compared = 0
        # First as it is run, improved and fused as ever; then with every value inside kept, to see where they part.
        outputs = _run(graph, tensors, eager, graph.outputs, _improve(graph))
        differ = [n for n, (a, b) in enumerate(zip(expected, outputs, strict=True)) if not same_bits(a, b)]
        inside = [v for node in graph.nodes for v in node.outputs
                  if v.dtype.name != "string" and g.is_pure(node)]
        shown = _run(graph, tensors, eager, inside)
        for value, array in zip(inside, shown, strict=True):
            compared += 1
            if not same_bits(eager[value], array):
                return _difference(value, eager[value], array, compared)
    if differ:
        value = graph.outputs[differ[0]]
        return _difference(value, expected[differ[0]], outputs[differ[0]], compared,
                           "Every op gives what it gives eagerly when its result is kept: passes or fusion change it.")
    count = compared + len(expected)
    return Verification(True, count, None, None, f"equal: {count} values agree to the bit")


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are equal to the bit; any NaN equals any other."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind not in "fcV":
        return False
    parts = [(x.astype(np.float32) if x.dtype.itemsize == 2 else x) for x in (a, b)]
    real = [p.reshape(-1).view(p.real.dtype) for p in map(np.ascontiguousarray, parts)]
    nan = np.isnan(real[0]) & np.isnan(real[1])
    words = np.dtype(f"u{real[0].dtype.itemsize}")
    return bool((nan | (real[0].view(words) == real[1].view(words))).all())


def _run(graph: g.Graph, tensors: Sequence[Tensor], eager: dict[g.Value, np.ndarray],
         outputs: Sequence[g.Value], improve: Improve | None = None) -> list[np.ndarray]:
    """The compiled values of `outputs`; nodes with effects give what they gave before."""
    copy, copies = graph.copy_with()
    copy.outputs = [copies[v] for v in outputs]
    from twofold.runtime.cpu import cpu  # imports compilers, which eager code does not need
    from twofold.runtime.program import Executable

    host = _Recorded({copies[v]: array for v, array in eager.items()})
    try:
        return Executable(copy, host, cpu, improve=improve, label="passes")([t._array for t in tensors])
    except NodeFailure as failure:
        raise failed(failure) from None


class _Recorded(Host):
    """Runs nodes that need Python; those with effects give what they gave before."""

    def __init__(self, values: dict[g.Value, np.ndarray]) -> None:
        from twofold.runtime.cpu import cpu

        super().__init__(cpu)
        self._values = values

    def __call__(self, node: g.Node, arrays: list[np.ndarray], sizes: Sizes) -> Sequence[np.ndarray]:
        known = self._known(node)
        return super().__call__(node, arrays, sizes) if known is None else known

    def begin(self, node: g.Node, arrays: list[np.ndarray], sizes: Sizes) -> Callable[[], Sequence[np.ndarray]]:
        known = self._known(node)
        return super().begin(node, arrays, sizes) if known is None else lambda: known

    def _known(self, node: g.Node) -> list[np.ndarray] | None:
        if g.is_pure(node) or node.op is g.BIND or any(v not in self._values for v in node.outputs):
            return None
        return [self._values[v] for v in node.outputs]


def _improve(graph: g.Graph) -> Improve | None:
    """The passes; none where nodes have effects, whose results are recognised by the node."""
    return None if any(not g.is_pure(n) and n.op is not g.BIND for n in graph.nodes) else passes.optimise


def _difference(value: g.Value, eager: np.ndarray, compiled: np.ndarray, compared: int,
                remark: str | None = None) -> Verification:
    node = value.node
    name = "an input" if node is None else node.op.name
    loc = None if node is None else node.loc
    line = None if loc is None else str(loc)
    lines = [f"{name}: compiled and eager results differ."]
    if eager.dtype != compiled.dtype or eager.shape != compiled.shape:
        lines.append(f"  eager {eager.dtype}{list(eager.shape)}, compiled {compiled.dtype}{list(compiled.shape)}")
    else:
        at = next(i for i in np.ndindex(eager.shape) if not same_bits(np.asarray(eager[i]), np.asarray(compiled[i])))
        where = f" at {list(at)}" if at else ""
        lines.append(f"  eager {eager[at]!r}, compiled {compiled[at]!r}{where}")
    if remark is not None:
        lines.append(f"  {remark}")
    if loc is not None:
        lines.append("  " + errors.line_text(*loc))
    return Verification(False, compared, name, line, "\n".join(lines))
