"""Constant folding: what depends on constants and known sizes alone is computed now.

    %0 = constant 2.0 : f32[]                          %0 = constant 4.0 : f32[]
    %1 = multiply(%0, %0) : f32[]            ->        return %0
    return %1

    %1 = shape(%0) : i32[2]   (%0: f32[n,3])           %1 = size_of() {size: n, dtype: i32} : i32[]
    %2 = strided_slice(%1) {spec: [0]} : i32[]  ->     return %1
    return %2

Elementwise ops are computed by the NumPy handler of their scalar bodies, views by the view itself, host ops by their
function: bits are those that kernels give. Float reductions and products of matrices stay, as their order of additions
belongs to kernels. Constants never get more elements than the largest operand has: a `fill` stays a view. What would
fail at run time (a division of integers by 0) is left to fail there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from .. import dtypes as dt
from .. import graph as g
from .. import ops, reference, scalar
from ..dims import Dim, all_static, evaluate, numel
from ..dtypes import DType
from ..errors import OpError
from ..op import REGISTRY, Op
from ..types import Attr
from .rewriting import Replacement, Rewriter, Table, rewrite

__all__ = ["fold_constants", "FOLDING", "computed", "has_checks"]

_BYTES = 64 << 10  # of a result
_SIZES = (dt.int32, dt.int64)  # what `size_of` gives


def fold_constants(graph: g.Graph) -> bool:
    """Compute what is known; see the module's text. Returns whether anything changed."""
    return rewrite(graph, FOLDING)


def _fold(r: Rewriter, node: g.Node) -> Replacement:
    arrays = []
    for value in node.inputs:
        array = g.constant_of(value)
        if array is None:
            return _fold_uniform(r, node)
        arrays.append(array)
    if not arrays:
        return None
    if not _fits(node, arrays):
        return _fold_uniform(r, node)
    results = computed(node, arrays)
    return None if results is None else [r.constant(array) for array in results]


def _fold_uniform(r: Rewriter, node: g.Node) -> Replacement:
    """An elementwise op of operands that are each one number throughout: compute it once, and repeat the result."""
    op = node.op
    assert isinstance(op, Op)
    if op.body is None:
        return None
    scalars = []
    for value in node.inputs:
        uniform = r.uniform(value)
        if uniform is None:
            return None
        scalars.append(uniform)
    results = computed(node, scalars)
    return None if results is None else [r.full(a, v) for a, v in zip(results, node.outputs, strict=True)]


def _fits(node: g.Node, arrays: list[np.ndarray]) -> bool:
    """Whether the results are small, and no larger than the largest operand."""
    largest = sum(a.size for a in arrays) if node.op is ops.concat else max(a.size for a in arrays)
    for value in node.outputs:
        if not all_static(value.dims):
            return False
        count = math.prod(evaluate(value.dims, {}))
        if count > max(largest, 1) or count * value.dtype.size > _BYTES:
            return False
    return True


def computed(node: g.Node, arrays: list[np.ndarray]) -> list[np.ndarray] | None:
    """The results of an op for these operands, to the bit as kernels give them; None where that is not known here."""
    op = node.op
    assert isinstance(op, Op)
    if any(_unknown(a) for a in node.attrs.values()):
        return None
    with np.errstate(all="ignore"):
        if op.body is not None:
            return _mapped(op, node, arrays)
        if op.view is not None:
            return [np.array(op.view(*arrays, **node.attrs), order="C")]
        exact = _EXACT.get(op.name)
        if exact is not None:
            return None if node.outputs[0].dtype.kind in "fc" else [exact(arrays, node)]
        if op is ops.concat:
            return [np.concatenate(arrays, axis=node.attrs["axis"])]
        if op.host is not None:
            return _hosted(op, node, arrays)
    return None


def _unknown(attr: Attr) -> bool:
    return isinstance(attr, Dim) or type(attr) is tuple and any(map(_unknown, attr))


def _mapped(op: Op, node: g.Node, arrays: list[np.ndarray]) -> list[np.ndarray] | None:
    dtypes = tuple(v.dtype for v in node.inputs)
    body = _body(op, dtypes, tuple(node.attrs.items()))
    operands = [a.astype(d.compute.np) for a, d in zip(arrays, dtypes, strict=True)]
    if body.checks and not all(holds.all() for holds, _ in reference.checks(body, *operands)):
        return None
    results = reference.evaluate(body, *operands)
    return [np.asarray(a.astype(v.dtype.np)) for a, v in zip(results, node.outputs, strict=True)]


@lru_cache(maxsize=512)
def _body(op: Op, dtypes: tuple[DType, ...], attrs: tuple[tuple[str, Attr], ...]) -> scalar.ScalarFunction:
    return scalar.build(op.body, dtypes, dict(attrs), op.name)  # type: ignore[arg-type]


def has_checks(node: g.Node) -> bool:
    """Whether an elementwise op may refuse some values, as a division of integers does."""
    body = _body(node.op, tuple(v.dtype for v in node.inputs), tuple(node.attrs.items()))
    return bool(body.checks)


def _hosted(op: Op, node: g.Node, arrays: list[np.ndarray]) -> list[np.ndarray] | None:
    try:
        returned = op.host(*arrays, **node.attrs)  # type: ignore[misc]
    except (ValueError, TypeError, ArithmeticError, LookupError, OpError):  # it will say so at run time
        return None
    results = [np.asarray(a, v.dtype.np) for a, v
               in zip(returned if len(node.outputs) > 1 else (returned,), node.outputs, strict=True)]
    return results if all(a.shape == v.dims for a, v in zip(results, node.outputs, strict=True)) else None


def _reduction(reduce: Callable[..., np.ndarray]) -> Callable[[list[np.ndarray], g.Node], np.ndarray]:
    """Reductions of integers and truth values, which have one result in whatever order."""
    def apply(arrays: list[np.ndarray], node: g.Node) -> np.ndarray:
        x, = arrays
        more = {"dtype": x.dtype} if reduce in (np.sum, np.prod) else {}
        return np.asarray(reduce(x, axis=node.attrs["axis"], keepdims=node.attrs["keepdims"], **more))
    return apply


_EXACT = {"reduce_sum": _reduction(np.sum), "reduce_prod": _reduction(np.prod), "reduce_any": _reduction(np.any),
          "reduce_all": _reduction(np.all)}


# -- sizes --------------------------------------------------------------------------------------------
def _fold_shape(r: Rewriter, node: g.Node) -> Replacement:
    """The shape of a tensor of known sizes is a constant, and so is the number of its elements."""
    dims = node.inputs[0].dims
    if not all_static(dims):
        return None
    return r.constant(np.array(dims if node.op is ops.shape else numel(dims), node.attrs["out_type"].np))


def _fold_size_of(r: Rewriter, node: g.Node) -> Replacement:
    size = node.attrs["size"]
    return None if isinstance(size, Dim) else r.constant(np.array(size, node.attrs["dtype"].np))


def _fold_size(r: Rewriter, node: g.Node) -> Replacement:
    """The number of elements, of which some size is unknown, is a size."""
    if node.attrs["out_type"] not in _SIZES:
        return None
    return r.size(numel(node.inputs[0].dims), node.attrs["out_type"])


def _fold_element(r: Rewriter, node: g.Node) -> Replacement:
    """One element of a shape is a size."""
    maker, spec = node.inputs[0].node, node.attrs["spec"]
    if maker is None or maker.op is not ops.shape or len(spec) != 1 or type(spec[0]) is not int:
        return None
    if maker.attrs["out_type"] not in _SIZES:
        return None
    return r.size(maker.inputs[0].dims[spec[0]], maker.attrs["out_type"])


def _table() -> Table:
    table = Table()
    table.rule("shape", "size")(_fold_shape)
    table.rule("size")(_fold_size)
    table.rule("size_of")(_fold_size_of)
    table.rule("strided_slice")(_fold_element)
    for op in REGISTRY.values():
        if _folds(op):
            table.rule(op.name)(_fold)
    return table


def _folds(op: Op) -> bool:
    if op.traits & {"effect", "random", "dynamic", "shape_only"} or op in (ops.identity, ops.stop_gradient):
        return False
    return op.body is not None or op.view is not None or op.host is not None or op is ops.concat or op.name in _EXACT


FOLDING = _table()
