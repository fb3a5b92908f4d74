"""Chains of views: reshapes of reshapes, transposes of transposes and their like become one view, or none.

    %1 = transpose(%0) {perm: [1, 0, 2]} : f32[3,n,4]
    %2 = transpose(%1) {perm: [1, 0, 2]} : f32[n,3,4]         ->        %3 = reshape(%0) {shape: [4*n]...
    %3 = reshape(%2) {shape: [12*n]} : f32[12*n]                        return %3
    return %3

Nothing is computed by views, so all of this is exact. What is left of them is a matter of the kernels' index
arithmetic. Operands that were repeated only to meet their partner's shape are handed over as they are.
"""

from __future__ import annotations

from .. import graph as g
from .. import ops
from ..op import REGISTRY, Op
from .rewriting import Replacement, Rewriter, Table, rewrite

__all__ = ["fold_views", "VIEWS"]

VIEWS = Table()
_RESHAPES = (ops.reshape, ops.expand_dims, ops.squeeze)


def fold_views(graph: g.Graph) -> bool:
    """Shorten chains of views in `graph`, in place. Returns whether anything changed."""
    return rewrite(graph, VIEWS)


def _result_of(value: g.Value, *kinds: Op) -> g.Node | None:
    node = value.node
    return node if node is not None and node.op in kinds else None


@VIEWS.rule("reshape", "expand_dims", "squeeze", "transpose", "broadcast_to", "slice", "strided_slice", "reverse")
def view_of_fill(r: Rewriter, node: g.Node) -> Replacement:
    """view(fill(c)) -> fill(c), in the view's shape"""
    inner = _result_of(node.inputs[0], ops.fill)
    if inner is None:
        return None
    value = inner.inputs[0]
    return value if node.outputs[0].dims == () else r.op(ops.fill, value, shape=node.outputs[0].dims)


@VIEWS.rule("fill")
def fill_of_nothing(r: Rewriter, node: g.Node) -> Replacement:
    """fill(c) to a scalar -> c"""
    return node.inputs[0] if node.outputs[0].dims == () else None


@VIEWS.rule("reshape", "expand_dims", "squeeze", "broadcast_to")
def same_shape(r: Rewriter, node: g.Node) -> Replacement:
    """reshape(x) or broadcast_to(x) to the shape of x -> x"""
    x = node.inputs[0]
    return x if r.same_dims(x.dims, node.outputs[0].dims) else None


@VIEWS.rule("strided_slice_assign")
def all_is_replaced(r: Rewriter, node: g.Node) -> Replacement:
    """strided_slice_assign(x, y) to all of x -> y, of the shape of x"""
    whole = all(entry in ((None, None, None), Ellipsis) for entry in node.attrs["spec"])
    return node.inputs[1] if whole and r.same_dims(node.inputs[1].dims, node.outputs[0].dims) else None


@VIEWS.rule("reshape", "expand_dims", "squeeze")
def reshape_of_reshape(r: Rewriter, node: g.Node) -> Replacement:
    """reshape(reshape(x)) -> reshape(x), and so with axes of size 1 added or taken away"""
    inner = _result_of(node.inputs[0], *_RESHAPES)
    return None if inner is None else r.op(ops.reshape, inner.inputs[0], shape=node.outputs[0].dims)


@VIEWS.rule("broadcast_to")
def broadcast_of_broadcast(r: Rewriter, node: g.Node) -> Replacement:
    """broadcast_to(broadcast_to(x)) -> broadcast_to(x); of a scalar -> fill"""
    x = node.inputs[0]
    if x.dims == ():
        return r.op(ops.fill, x, shape=node.outputs[0].dims)
    inner = _result_of(x, ops.broadcast_to)
    return None if inner is None else r.op(ops.broadcast_to, inner.inputs[0], shape=node.outputs[0].dims)


def order_of(node: g.Node) -> tuple[int, ...]:
    """The order of axes of a transpose, counted from 0."""
    rank, perm = len(node.inputs[0].dims), node.attrs["perm"]
    return tuple(range(rank))[::-1] if perm is None else tuple([p % rank for p in perm])


@VIEWS.rule("transpose")
def transpose_of_transpose(r: Rewriter, node: g.Node) -> Replacement:
    """transpose(transpose(x)) -> transpose(x), or x; one that moves axes of size 1 alone -> reshape"""
    x, order = node.inputs[0], order_of(node)
    if order == tuple(range(len(order))):
        return x
    inner = _result_of(x, ops.transpose)
    if inner is not None:
        before = order_of(inner)
        return r.op(ops.transpose, inner.inputs[0], perm=tuple([before[p] for p in order]))
    moved = [p for p in order if x.dims[p] != 1]
    return r.op(ops.reshape, x, shape=node.outputs[0].dims) if moved == sorted(moved) else None


@VIEWS.rule("reverse")
def reverse_of_reverse(r: Rewriter, node: g.Node) -> Replacement:
    """reverse(reverse(x)) -> reverse(x) along the axes that are in one of both, or x"""
    x = node.inputs[0]
    rank = len(x.dims)
    axes = {a % rank for a in node.attrs["axis"]} if rank else set()
    needed = {a for a in axes if x.dims[a] != 1}
    inner = _result_of(x, ops.reverse)
    if inner is not None:
        x, needed = inner.inputs[0], needed ^ {a % rank for a in inner.attrs["axis"]}
    elif needed == axes and axes:
        return None
    return r.op(ops.reverse, x, axis=tuple(sorted(needed))) if needed else x


@VIEWS.rule("slice")
def slice_of_all(r: Rewriter, node: g.Node) -> Replacement:
    """slice(x) of all of x -> x; slice(slice(x)) -> slice(x)"""
    x, begin, dims = node.inputs[0], node.attrs["begin"], node.outputs[0].dims
    if all(b == 0 for b in begin) and r.same_dims(x.dims, dims):
        return x
    inner = _result_of(x, ops.slice)
    if inner is None:
        return None
    start = tuple([a + b for a, b in zip(inner.attrs["begin"], begin, strict=True)])
    return r.op(ops.slice, inner.inputs[0], begin=start, size=dims)


@VIEWS.rule("strided_slice")
def slice_whole_axes(r: Rewriter, node: g.Node) -> Replacement:
    """strided_slice(x) that keeps every axis whole -> x"""
    spec = node.attrs["spec"]
    whole = all(type(e) is tuple and e[0] in (None, 0) and e[1] is None and e[2] in (None, 1) for e in spec)
    return node.inputs[0] if whole else None


_PLAIN = [op.name for op in REGISTRY.values()
          if op.body is not None and len(op.params) > 1 and op is not ops.clip_by_value and not op.variadic]


@VIEWS.rule(*_PLAIN)
def drop_broadcast(r: Rewriter, node: g.Node) -> Replacement:
    """f(x, broadcast_to(y)) -> f(x, y) where x has the result's shape by itself"""
    operands = list(node.inputs)
    dims = node.outputs[0].dims
    for i, value in enumerate(operands):
        inner = _result_of(value, ops.broadcast_to, ops.fill)
        if inner is not None and any(v.dims == dims for k, v in enumerate(operands) if k != i):
            operands[i] = inner.inputs[0]
    return None if operands == node.inputs else r.ops(node.op, *operands, **node.attrs)  # type: ignore[arg-type]
