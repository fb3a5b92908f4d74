"""Algebraic simplification: identities that cost less on one side.

    %1 = constant 1.0 : f32[]
    %2 = multiply(%0, %1) : f32[n]          ->        return %0
    return %2

The rules in `EXACT` keep results to the bit, for NaN, infinities and both zeros (which NaN, IEEE 754 leaves open):
`x * 1`, but not `x + 0`, which makes 0 of -0, nor `x * 0` of floats. Those in `FAST` do not; they are applied only
where fast math was asked for. Rules on the arrangement of elements are in `views.py`.

Identities, `stop_gradient` and `custom` gradients become their operands: graphs are differentiated before.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import dtypes as dt
from .. import graph as g
from .. import ops
from ..dtypes import DType
from ..op import Op
from .rewriting import Replacement, Rewriter, Rule, Table, rewrite

__all__ = ["simplify", "simplify_fast", "EXACT", "FAST"]

EXACT = Table()
FAST = Table()


def simplify(graph: g.Graph) -> bool:
    """Apply the exact rules to `graph`, in place. Returns whether anything changed."""
    return rewrite(graph, EXACT)


def simplify_fast(graph: g.Graph) -> bool:
    """Apply all rules, those that round otherwise included. Returns whether anything changed."""
    return rewrite(graph, _ALL)


def _result_of(value: g.Value, op: Op | g.Construct) -> g.Node | None:
    node = value.node
    return node if node is not None and node.op is op else None


def _real(value: g.Value) -> bool:
    return not value.dtype.is_complex


# -- what only matters to gradients -------------------------------------------------------------------
@EXACT.rule("identity", "stop_gradient")
def drop_identity(r: Rewriter, node: g.Node) -> Replacement:
    """identity(x) -> x"""
    return node.inputs[0]


@EXACT.rule("custom")
def drop_custom(r: Rewriter, node: g.Node) -> Replacement:
    """custom(results, ...) -> results"""
    return node.inputs[:len(node.outputs)]


# -- sums ---------------------------------------------------------------------------------------------
@EXACT.rule("add")
def add_nothing(r: Rewriter, node: g.Node) -> Replacement:
    """x + 0 -> x for integers; for floats x + -0.0 -> x, because -0.0 + 0.0 is 0.0"""
    x, y = node.inputs
    nothing = 0 if x.dtype.is_integer else -0.0
    if _real(x) and r.is_uniform(y, nothing):
        return r.shaped(x, node.outputs[0])
    if _real(x) and r.is_uniform(x, nothing):
        return r.shaped(y, node.outputs[0])
    return None


@EXACT.rule("subtract")
def subtract_nothing(r: Rewriter, node: g.Node) -> Replacement:
    """x - 0 -> x; 0 - x -> negative(x) for signed integers, -0.0 - x -> negative(x) for floats"""
    x, y = node.inputs
    if not _real(x):
        return None
    if r.is_uniform(y, 0):
        return r.shaped(x, node.outputs[0])
    if not x.dtype.is_unsigned and r.is_uniform(x, 0 if x.dtype.is_integer else -0.0):
        return r.shaped(r.op(ops.negative, y), node.outputs[0])
    return None


@EXACT.rule("add")
def add_negative(r: Rewriter, node: g.Node) -> Replacement:
    """x + negative(y) -> x - y; negative(x) + y -> y - x"""
    x, y = node.inputs
    if (inner := _result_of(y, ops.negative)) is not None:
        return r.op(ops.subtract, x, inner.inputs[0])
    if (inner := _result_of(x, ops.negative)) is not None:
        return r.op(ops.subtract, y, inner.inputs[0])
    return None


@EXACT.rule("subtract")
def subtract_negative(r: Rewriter, node: g.Node) -> Replacement:
    """x - negative(y) -> x + y"""
    inner = _result_of(node.inputs[1], ops.negative)
    return None if inner is None else r.op(ops.add, node.inputs[0], inner.inputs[0])


@EXACT.rule("subtract", "bitwise_xor")
def subtract_itself(r: Rewriter, node: g.Node) -> Replacement:
    """x - x -> 0, x ^ x -> 0 for integers"""
    x, y = node.inputs
    return r.full(np.zeros((), x.dtype.np), node.outputs[0]) if x is y and x.dtype.is_integer else None


@EXACT.rule("add_n")
def add_one(r: Rewriter, node: g.Node) -> Replacement:
    """add_n(x) -> x, add_n(x, y) -> x + y"""
    if len(node.inputs) > 2:
        return None
    return node.inputs[0] if len(node.inputs) == 1 else r.op(ops.add, *node.inputs)


# -- products and quotients ---------------------------------------------------------------------------
@EXACT.rule("multiply")
def multiply_by_one(r: Rewriter, node: g.Node) -> Replacement:
    """x * 1 -> x, for real x; x * -1 -> negative(x) for signed ones"""
    x, y = node.inputs
    if not _real(x):
        return None
    for one, other in ((y, x), (x, y)):
        if r.is_uniform(one, 1):
            return r.shaped(other, node.outputs[0])
        if not x.dtype.is_unsigned and r.is_uniform(one, -1):
            return r.shaped(r.op(ops.negative, other), node.outputs[0])
    return None


@EXACT.rule("multiply", "bitwise_and")
def multiply_by_zero(r: Rewriter, node: g.Node) -> Replacement:
    """x * 0 -> 0, x & 0 -> 0 for integers; not for floats, where infinity * 0 is NaN"""
    if not node.inputs[0].dtype.is_integer or not any(r.is_uniform(v, 0) for v in node.inputs):
        return None
    return r.full(np.zeros((), node.outputs[0].dtype.np), node.outputs[0])


@EXACT.rule("multiply", "divide")
def two_signs(r: Rewriter, node: g.Node) -> Replacement:
    """negative(x) * negative(y) -> x * y, and quotients of floats alike"""
    negations = [_result_of(v, ops.negative) for v in node.inputs]
    if not _real(node.outputs[0]) or any(f is None for f in negations):
        return None
    if node.op is ops.divide and node.inputs[0].dtype.is_integer:
        return None
    return r.op(node.op, *[f.inputs[0] for f in negations if f is not None])  # type: ignore[arg-type]


def _not_zero(r: Rewriter, value: g.Value) -> bool:
    scalar = r.uniform(value)
    return scalar is not None and bool(scalar != 0)


def _all_zero(r: Rewriter, value: g.Value) -> bool:
    scalar = r.uniform(value)
    return scalar is not None and bool(scalar == 0)


@EXACT.rule("multiply_no_nan")
def multiply_no_nan_known(r: Rewriter, node: g.Node) -> Replacement:
    """multiply_no_nan(x, c) -> x * c where c is not 0, and 0 where it is"""
    x, y = node.inputs
    if _not_zero(r, y):
        return r.op(ops.multiply, x, y)
    return r.full(np.zeros((), x.dtype.np), node.outputs[0]) if _all_zero(r, y) else None


@EXACT.rule("masked_multiply")
def masked_multiply_known(r: Rewriter, node: g.Node) -> Replacement:
    """masked_multiply(x, c) -> multiply_no_nan(c, x) where c is not 0, and 0 where it is; for real x"""
    x, y = node.inputs
    if any(_all_zero(r, v) for v in node.inputs):
        return r.full(np.zeros((), x.dtype.np), node.outputs[0])
    if not _real(x):
        return None
    if _not_zero(r, y):
        return r.op(ops.multiply_no_nan, y, x)
    return r.op(ops.multiply_no_nan, x, y) if _not_zero(r, x) else None


@EXACT.rule("masked_divide")
def masked_divide_known(r: Rewriter, node: g.Node) -> Replacement:
    """masked_divide(c, y) -> c / y where c is not 0, and 0 where it is"""
    x, y = node.inputs
    if _not_zero(r, x):
        return r.op(ops.divide, x, y)
    return r.full(np.zeros((), x.dtype.np), node.outputs[0]) if _all_zero(r, x) else None


@EXACT.rule("divide_no_nan")
def divide_no_nan_known(r: Rewriter, node: g.Node) -> Replacement:
    """divide_no_nan(x, c) -> x / c where c is not 0, and 0 where it is"""
    x, y = node.inputs
    if _not_zero(r, y):
        return r.op(ops.divide, x, y)
    return r.full(np.zeros((), node.outputs[0].dtype.np), node.outputs[0]) if _all_zero(r, y) else None


@EXACT.rule("divide")
def divide_by_power(r: Rewriter, node: g.Node) -> Replacement:
    """x / 1 -> x; x / c -> x * (1/c) where c is a power of two and 1/c another normal number: both round once"""
    x, y = node.inputs
    scalar = r.uniform(y)
    if scalar is None or not x.dtype.is_floating:
        return None
    number = float(scalar)
    if number == 1.0:
        return r.shaped(x, node.outputs[0])
    if not _power_of_two(number, x.dtype):
        return None
    return r.op(ops.multiply, x, r.constant(np.array(1.0 / number, np.float64).astype(x.dtype.np)))


def _power_of_two(number: float, dtype: DType) -> bool:
    """Whether the number and its inverse are both powers of two that `dtype` holds as normal numbers."""
    if not math.isfinite(number) or number == 0 or abs(math.frexp(number)[0]) != 0.5:
        return False
    low = float(np.finfo(dtype.np).tiny) if dtype is not dt.bfloat16 else 2.0 ** -126
    return low <= abs(number) <= 1 / low and low <= abs(1 / number)


@EXACT.rule("pow")
def power_of_known(r: Rewriter, node: g.Node) -> Replacement:
    """x**1 -> x, x**2 -> square(x) for real x: `pow` is defined to give these bits"""
    x, y = node.inputs
    if not _real(x):
        return None
    if r.is_uniform(y, 1):
        return r.shaped(x, node.outputs[0])
    return r.shaped(r.op(ops.square, x), node.outputs[0]) if r.is_uniform(y, 2) else None


@EXACT.rule("pow_derivative")
def derivative_of_square(r: Rewriter, node: g.Node) -> Replacement:
    """pow_derivative(x, 2) -> x * 2 for real x"""
    x, y = node.inputs
    return r.op(ops.multiply, x, y) if _real(x) and r.is_uniform(y, 2) else None


# -- twice, and of oneself ----------------------------------------------------------------------------
@EXACT.rule("negative", "logical_not", "invert", "conj")
def twice(r: Rewriter, node: g.Node) -> Replacement:
    """negative(negative(x)) -> x, and so for the negations of truth values and bits, and for conjugates"""
    inner = _result_of(node.inputs[0], node.op)
    return None if inner is None else inner.inputs[0]


@EXACT.rule("negative")
def negative_of_difference(r: Rewriter, node: g.Node) -> Replacement:
    """negative(x - y) -> y - x for integers; not for floats, where x - x is 0 both ways round"""
    inner = _result_of(node.inputs[0], ops.subtract)
    if inner is None or not node.inputs[0].dtype.is_integer:
        return None
    return r.op(ops.subtract, inner.inputs[1], inner.inputs[0])


@EXACT.rule("abs", "relu", "floor", "ceil", "rint", "round", "relu6", "sign")
def once_is_enough(r: Rewriter, node: g.Node) -> Replacement:
    """f(f(x)) -> f(x) where f leaves its own results alone, for real x"""
    inner = _result_of(node.inputs[0], node.op)
    return None if inner is None or not _real(inner.inputs[0]) else inner.outputs[0]


@EXACT.rule("abs", "square")
def sign_does_not_matter(r: Rewriter, node: g.Node) -> Replacement:
    """abs(negative(x)) -> abs(x), square(negative(x)) -> square(x), square(abs(x)) -> square(x), for real x"""
    x = node.inputs[0]
    inner = _result_of(x, ops.negative) or _result_of(x, ops.abs)
    if inner is None or not _real(inner.inputs[0]) or inner.op is node.op:
        return None
    return r.op(node.op, inner.inputs[0])  # type: ignore[arg-type]


@EXACT.rule("maximum", "minimum", "logical_and", "logical_or", "bitwise_and", "bitwise_or")
def of_itself(r: Rewriter, node: g.Node) -> Replacement:
    """maximum(x, x) -> x, and so for minimum, and, or"""
    x, y = node.inputs
    return x if x is y else None


@EXACT.rule("logical_and", "logical_or", "logical_xor")
def logic_with_known(r: Rewriter, node: g.Node) -> Replacement:
    """x and true -> x, x and false -> false; x or false -> x, x or true -> true; x xor false -> x, true -> not x"""
    for constant, other in (node.inputs[::-1], node.inputs):
        scalar = r.uniform(constant)
        if scalar is None:
            continue
        if bool(scalar) == (node.op is ops.logical_and):
            return r.shaped(other, node.outputs[0])
        if node.op is not ops.logical_xor:
            return r.full(scalar, node.outputs[0])
        return r.shaped(r.op(ops.logical_not, other) if scalar else other, node.outputs[0])
    return None


_OPPOSITE = {"equal": "not_equal", "not_equal": "equal"}
_OPPOSITE_ORDER = {"less": "greater_equal", "greater_equal": "less", "greater": "less_equal", "less_equal": "greater"}


@EXACT.rule("logical_not")
def opposite(r: Rewriter, node: g.Node) -> Replacement:
    """not (x == y) -> x != y; for integers not (x < y) -> x >= y, which is false for a NaN as well"""
    inner = node.inputs[0].node
    if inner is None or isinstance(inner.op, g.Construct):
        return None
    name = _OPPOSITE.get(inner.op.name)
    if name is None and inner.op.name in _OPPOSITE_ORDER and inner.inputs[0].dtype.is_integer:
        name = _OPPOSITE_ORDER[inner.op.name]
    return None if name is None else r.op(getattr(ops, name), *inner.inputs)


# -- choice and conversion ----------------------------------------------------------------------------
@EXACT.rule("select")
def one_choice(r: Rewriter, node: g.Node) -> Replacement:
    """select(c, x, y) -> where(c, x, y)"""
    return r.op(ops.where, *node.inputs)


@EXACT.rule("where")
def known_choice(r: Rewriter, node: g.Node) -> Replacement:
    """where(true, x, y) -> x; where(false, x, y) -> y; where(c, x, x) -> x"""
    condition, x, y = node.inputs
    if x is y:
        return r.shaped(x, node.outputs[0])
    scalar = r.uniform(condition)
    return None if scalar is None else r.shaped(x if scalar else y, node.outputs[0])


@EXACT.rule("where")
def turned_choice(r: Rewriter, node: g.Node) -> Replacement:
    """where(not c, x, y) -> where(c, y, x)"""
    inner = _result_of(node.inputs[0], ops.logical_not)
    return None if inner is None else r.op(ops.where, inner.inputs[0], node.inputs[2], node.inputs[1])


@EXACT.rule("cast")
def same_dtype(r: Rewriter, node: g.Node) -> Replacement:
    """cast(x) to its own dtype -> x"""
    return node.inputs[0] if node.inputs[0].dtype is node.outputs[0].dtype else None


@EXACT.rule("cast")
def through_wider(r: Rewriter, node: g.Node) -> Replacement:
    """cast(cast(x, wide), dtype) -> cast(x, dtype) where `wide` holds every value of the dtype of x"""
    inner = _result_of(node.inputs[0], ops.cast)
    if inner is None:
        return None
    narrow, wide, to = inner.inputs[0].dtype, node.inputs[0].dtype, node.outputs[0].dtype
    if not _holds(wide, narrow):
        return None
    if narrow.is_integer and wide.is_floating and to.is_integer and not _holds(to, narrow):
        return None  # from the float it is cut to the limits, from the integer it wraps around
    return r.op(ops.cast, inner.inputs[0], dtype=node.outputs[0].dtype)


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of `narrow` is one of `wide`; bool and complex are not among them."""
    if narrow.is_integer and wide.is_integer:
        low, high = narrow.limits
        return wide.min <= low and high <= wide.max
    if narrow.is_integer and wide.is_floating:
        return 8 * narrow.size <= {2: 8, 4: 24, 8: 53}[wide.size]
    return narrow.is_floating and wide.is_floating and (narrow is wide or wide.size > narrow.size)


@EXACT.rule("real", "imag")
def part_of_parts(r: Rewriter, node: g.Node) -> Replacement:
    """real(complex(x, y)) -> x, imag(complex(x, y)) -> y"""
    inner = _result_of(node.inputs[0], ops.complex)
    return None if inner is None else r.shaped(inner.inputs[node.op is ops.imag], node.outputs[0])


# -- structure ----------------------------------------------------------------------------------------
@EXACT.rule("concat")
def concat_one(r: Rewriter, node: g.Node) -> Replacement:
    """concat(x) -> x, and pieces without elements are left out"""
    axis = node.attrs["axis"]
    parts = [v for v in node.inputs if not (type(v.dims[axis]) is int and v.dims[axis] == 0)] or node.inputs[:1]
    if len(parts) == 1:
        return parts[0]
    return None if len(parts) == len(node.inputs) else r.op(ops.concat, *parts, axis=axis)


@EXACT.rule("pad")
def pad_nothing(r: Rewriter, node: g.Node) -> Replacement:
    """pad(x) by nothing -> x"""
    return node.inputs[0] if all(p == (0, 0) for p in node.attrs["paddings"]) else None


_WHOLE = ("reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all",
          "count_nonzero", "reduce_logsumexp", "reduce_euclidean_norm")
_REARRANGED = (ops.reshape, ops.expand_dims, ops.squeeze)


@EXACT.rule(*_WHOLE)
def reduce_all_of_reshaped(r: Rewriter, node: g.Node) -> Replacement:
    """A reduction of all axes of a reshaped x is one of x: elements meet in row-major order"""
    inner = node.inputs[0].node
    if inner is None or inner.op not in _REARRANGED or node.attrs["keepdims"]:
        return None
    if node.outputs[0].dims != ():
        return None
    return r.op(node.op, inner.inputs[0], **{**node.attrs, "axis": None})  # type: ignore[arg-type]


@EXACT.rule("reduce_max", "reduce_min", "reduce_any", "reduce_all", "reduce_prod")
def reduce_one(r: Rewriter, node: g.Node) -> Replacement:
    """A reduction over axes of size 1 -> a reshape; not a sum, which makes 0 of -0.0"""
    x, axis = node.inputs[0], node.attrs["axis"]
    axes = range(len(x.dims)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not _real(x) or any(x.dims[a] != 1 for a in axes):
        return None
    return r.op(ops.reshape, x, shape=node.outputs[0].dims)


# -- fast math ----------------------------------------------------------------------------------------
def _float_rule(name: str) -> Callable[[Rule], Rule]:
    """A rule of fast math for floats alone."""
    def add(rule: Rule) -> Rule:
        def guarded(r: Rewriter, node: g.Node) -> Replacement:
            return rule(r, node) if node.inputs[0].dtype.is_floating else None
        guarded.__name__, guarded.__doc__ = rule.__name__, rule.__doc__
        return FAST.rule(name)(guarded)
    return add


@_float_rule("add")
def fast_add_zero(r: Rewriter, node: g.Node) -> Replacement:
    """x + 0 -> x; wrong for the sign of -0.0"""
    x, y = node.inputs
    if _all_zero(r, y):
        return r.shaped(x, node.outputs[0])
    return r.shaped(y, node.outputs[0]) if _all_zero(r, x) else None


@_float_rule("multiply")
def fast_multiply_by_zero(r: Rewriter, node: g.Node) -> Replacement:
    """x * 0 -> 0; wrong for infinities, NaN and signs of zeros"""
    if not any(_all_zero(r, v) for v in node.inputs):
        return None
    return r.full(np.zeros((), node.outputs[0].dtype.np), node.outputs[0])


@_float_rule("subtract")
def fast_subtract_itself(r: Rewriter, node: g.Node) -> Replacement:
    """x - x -> 0; wrong for infinities and NaN"""
    x, y = node.inputs
    return r.full(np.zeros((), x.dtype.np), node.outputs[0]) if x is y else None


@_float_rule("divide")
def fast_divide_by_known(r: Rewriter, node: g.Node) -> Replacement:
    """x / c -> x * (1/c); rounds twice"""
    scalar = r.uniform(node.inputs[1])
    if scalar is None or float(scalar) == 0 or not math.isfinite(1.0 / float(scalar)):
        return None
    inverse = (1.0 / scalar.astype(np.float64)).astype(scalar.dtype)
    if not np.isfinite(inverse.astype(np.float64)) or inverse == 0:
        return None
    return r.op(ops.multiply, node.inputs[0], r.constant(np.asarray(inverse)))


@_float_rule("multiply_no_nan")
def fast_multiply(r: Rewriter, node: g.Node) -> Replacement:
    """multiply_no_nan(x, y) -> x * y; wrong where y is 0 and x is not finite"""
    return r.op(ops.multiply, *node.inputs)


@_float_rule("pow")
def fast_power(r: Rewriter, node: g.Node) -> Replacement:
    """x**0.5 -> sqrt(x), x**-0.5 -> rsqrt(x), x**-1 -> reciprocal(x), x**3 -> square(x) * x; rounds otherwise"""
    x, y = node.inputs
    scalar = r.uniform(y)
    if scalar is None:
        return None
    unary = {0.5: ops.sqrt, -0.5: ops.rsqrt, -1.0: ops.reciprocal}.get(float(scalar))
    if unary is not None:
        return r.shaped(r.op(unary, x), node.outputs[0])
    return r.shaped(r.op(ops.multiply, r.op(ops.square, x), x), node.outputs[0]) if float(scalar) == 3.0 else None


_ALL = {name: [*EXACT.get(name, ()), *FAST.get(name, ())] for name in {*EXACT, *FAST}}
