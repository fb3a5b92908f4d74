"""Transposes of the last two axes become attributes of the matrix product that reads them.

    %2 = transpose(%1) {perm: [1, 0]} : f32[3,n]                ->        %2 = matmul(%0, %1) {transpose_b: true}
    %3 = matmul(%0, %2) : f32[m,n]                                        return %2
    return %3

Products are packed by strides, so a transposed operand costs nothing and no additions change places. For complex
numbers a conjugate turns a transposed operand into an adjoint one, and back.
"""

from __future__ import annotations

from .. import graph as g
from .. import ops
from .rewriting import Replacement, Rewriter, Table, rewrite
from .views import order_of

__all__ = ["fold_transposes", "MATMULS"]

MATMULS = Table()


def fold_transposes(graph: g.Graph) -> bool:
    """Fold transposes into the products that read them, in place. Returns whether anything changed."""
    return rewrite(graph, MATMULS)


@MATMULS.rule("matmul")
def transposed_operand(r: Rewriter, node: g.Node) -> Replacement:
    """matmul(transpose(x), y) -> matmul(x, y) {transpose_a: true}; matmul(conj(x), y) {transpose_a} -> {adjoint_a}"""
    operands, attrs = list(node.inputs), dict(node.attrs)
    for i, side in enumerate("ab"):
        while True:
            inner = operands[i].node
            if inner is not None and inner.op is ops.transpose and _swaps_last(inner):
                transpose, adjoint = attrs[f"transpose_{side}"], attrs[f"adjoint_{side}"]
                if adjoint and operands[i].dtype.is_complex:
                    break  # what is left is a conjugate, which has no attribute
                attrs[f"transpose_{side}"], attrs[f"adjoint_{side}"] = not (transpose or adjoint), False
            elif inner is not None and inner.op is ops.conj and attrs[f"transpose_{side}"] != attrs[f"adjoint_{side}"]:
                attrs[f"transpose_{side}"], attrs[f"adjoint_{side}"] = (attrs[f"adjoint_{side}"],
                                                                        attrs[f"transpose_{side}"])
            else:
                break
            operands[i] = inner.inputs[0]
    return None if operands == node.inputs else r.op(ops.matmul, *operands, **attrs)


@MATMULS.rule("int8_matmul")
def transposed_integers(r: Rewriter, node: g.Node) -> Replacement:
    """int8_matmul(transpose(x), y) -> int8_matmul(x, y) {transpose_a: true}"""
    operands, attrs = list(node.inputs), dict(node.attrs)
    for i, side in enumerate("ab"):
        while (inner := operands[i].node) is not None and inner.op is ops.transpose and _swaps_last(inner):
            attrs[f"transpose_{side}"] = not attrs[f"transpose_{side}"]
            operands[i] = inner.inputs[0]
    return None if operands == node.inputs else r.op(ops.int8_matmul, *operands, **attrs)


def _swaps_last(node: g.Node) -> bool:
    order = order_of(node)
    rank = len(order)
    return rank >= 2 and order == (*range(rank - 2), rank - 1, rank - 2)
