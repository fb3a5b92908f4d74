"""Reductions: ops that join the elements along axes into one.

Owns their declarations: what is done to each element, the result's shape and dtype, and the gradient. The order in
which elements meet is fixed for every layout (`ir.scalar.Reduction`); kernels are made in `codegen/reduce.py`. What
TensorFlow composes from these (variance, standard deviation) is composed in `twofold/_ops/math_reductions.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .. import dims as dm
from .. import dtypes as dt
from .. import grad, ops, rules
from ..dims import DimLike
from ..dtypes import DType
from ..errors import DTypeError, InvalidArgumentError
from ..op import Op, primitive
from ..scalar import Reduction, Scalar, ScalarBuilder
from ..spec import spec
from ..types import AnyTensor, Attr, Axes, Cotangents, Spec

__all__ = ["reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all",
           "reduce_logsumexp", "reduce_euclidean_norm", "centred_variance", "count_nonzero", "argmax", "argmin",
           "keep_axes", "spread"]

_INDEX_TYPES = frozenset({dt.int16, dt.int32, dt.int64, dt.uint16})


# -- shapes of gradients ------------------------------------------------------------------------------
def keep_axes(value: AnyTensor, x: Spec, axis: Axes, keepdims: bool) -> AnyTensor:
    """`value`, a reduction of `x`, with the reduced axes in place as axes of size 1."""
    rank = len(x.dims)
    axes = range(rank) if axis is None else {a % rank for a in (axis if isinstance(axis, tuple) else (axis,))}
    if keepdims or not rank:
        return value
    return ops.reshape(value, shape=rules.reduced_dims(x.dims, axes, True))


def spread(value: AnyTensor, x: Spec, axis: Axes, keepdims: bool) -> AnyTensor:
    """`value`, a reduction of `x`, repeated over the shape of `x`."""
    with_axes = keep_axes(value, x, axis, keepdims) if value.dims else value
    return ops.broadcast_to(with_axes, shape=x.dims)


def _count(x: Spec, axis: tuple[int, ...] | None) -> DimLike:
    """How many elements each result of reducing `x` over `axis` stands for."""
    return dm.numel(x.dims if axis is None else [x.dims[a] for a in axis])


# -- sums ---------------------------------------------------------------------------------------------
def _zeros(dtypes: tuple[DType, ...]) -> tuple[int, ...]:
    return (0,)


def _add(s: ScalarBuilder, a: tuple[Scalar, ...], b: tuple[Scalar, ...]) -> Scalar:
    return a[0] + b[0]


def _reduce_sum_vjp(ct: AnyTensor, out: Spec, x: Spec, *, axis: Axes, keepdims: bool) -> Cotangents:
    return spread(ct, x, axis, keepdims)


@primitive(infer=rules.reduction(dt.NUMERIC), vjp=_reduce_sum_vjp, saves=(), reduction=Reduction(_add, _zeros))
def reduce_sum(x: AnyTensor, *, axis: Axes = None, keepdims: bool = False) -> AnyTensor:
    """Sum of the elements along `axis`; 0 where there are none.

    Args:
        x: numeric tensor. float16 and bfloat16 are added up in float32 and rounded once; integers wrap around.
        axis: tuple of axes to reduce, None for all.
        keepdims: whether reduced axes stay, with size 1.
    Returns:
        Tensor of the dtype of `x`.
    Raises:
        InvalidArgumentError: an axis is out of range or named twice. DTypeError: `x` is not numeric.
    Gradient: the same for each element.
    """


def _mean_acc(dtypes: tuple[DType, ...]) -> tuple[DType, ...]:
    dtype = dtypes[0]
    if dtype.is_integer:
        return (dt.uint64 if dtype.is_unsigned else dt.int64,)
    return (dtype,)


def _mean_post(s: ScalarBuilder, acc: tuple[Scalar, ...], count: Scalar, **attrs: Attr) -> Scalar:
    total = acc[0]
    return s.idiv(total, s.cast(count, total.dtype)) if total.dtype.is_integer else total / s.cast(count, total.dtype)


def _reduce_mean_vjp(ct: AnyTensor, out: Spec, x: Spec, *, axis: tuple[int, ...] | None, keepdims: bool) -> Cotangents:
    return spread(ops.divide(ct, grad.scalar(_count(x, axis), like=ct)), x, axis, keepdims)


@primitive(infer=rules.reduction(dt.NUMERIC), vjp=_reduce_mean_vjp, saves=(),
           reduction=Reduction(_add, _zeros, acc=_mean_acc, post=_mean_post))
def reduce_mean(x: AnyTensor, *, axis: tuple[int, ...] | None = None, keepdims: bool = False) -> AnyTensor:
    """Mean of the elements along `axis`; NaN where there are none.

    Args:
        x: numeric tensor. Integers are added up in 64 bits and divided toward zero; the mean of none of them is 0.
        axis: tuple of axes to reduce, None for all.
        keepdims: whether reduced axes stay, with size 1.
    Returns:
        Tensor of the dtype of `x`.
    Raises:
        InvalidArgumentError: an axis is out of range or named twice. DTypeError: `x` is not numeric.
    Gradient: the same for each element.
    """


# -- products -----------------------------------------------------------------------------------------
def _reduce_prod_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, *, axis: Axes, keepdims: bool) -> Cotangents:
    """Each element gets the product of the others: those before it times those after it, so that zeros do no harm."""
    rank = len(x.dims)
    axes = rules.normalize_axes(reduce_prod, [x], axis, rank)
    perm = tuple(i for i in range(rank) if i not in axes) + axes
    rest = tuple(x.dims[i] for i in perm[:rank - len(axes)])
    rows = ops.reshape(ops.transpose(x, perm=perm), shape=(*rest, dm.numel([x.dims[a] for a in axes])))
    last = len(rest)
    others = ops.multiply(ops.cumprod(rows, axis=last, exclusive=True),
                          ops.cumprod(rows, axis=last, exclusive=True, reverse=True))
    others = ops.reshape(others, shape=tuple(x.dims[i] for i in perm))
    others = ops.transpose(others, perm=tuple(perm.index(i) for i in range(rank)))
    return ops.multiply(spread(ct, x, axis, keepdims), grad.conj(others))


@primitive(infer=rules.reduction(dt.NUMERIC), vjp=_reduce_prod_vjp, saves=("x",),
           reduction=Reduction(lambda s, a, b: a[0] * b[0], lambda dtypes: (1,)))
def reduce_prod(x: AnyTensor, *, axis: Axes = None, keepdims: bool = False) -> AnyTensor:
    """Product of the elements along `axis`; 1 where there are none.

    Args:
        x: numeric tensor. float16 and bfloat16 multiply in float32 and round once; integers wrap around.
        axis: tuple of axes to reduce, None for all.
        keepdims: whether reduced axes stay, with size 1.
    Returns:
        Tensor of the dtype of `x`.
    Raises:
        InvalidArgumentError: an axis is out of range or named twice. DTypeError: `x` is not numeric.
    Gradient: to each element the product of the others, also where elements are zero.
    """


# -- extremes -----------------------------------------------------------------------------------------
def _lowest(dtype: DType) -> complex:
    return -math.inf if dtype.is_floating else dtype.min


def _highest(dtype: DType) -> complex:
    return math.inf if dtype.is_floating else dtype.max


def _extreme_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor, *, axis: Axes, keepdims: bool) -> Cotangents:
    """Elements equal to the result share its gradient."""
    wins = ops.equal(x, spread(out, x, axis, keepdims))
    share = ops.reduce_sum(ops.cast(wins, dtype=ct.dtype), axis=axis, keepdims=keepdims)
    part = spread(ops.divide(ct, share), x, axis, keepdims)
    return ops.where(wins, part, grad.zeros_like(part))


@primitive(infer=rules.reduction(dt.REAL), vjp=_extreme_vjp, saves=("x", "out"),
           reduction=Reduction(lambda s, a, b: s.maximum(a[0], b[0]), lambda dtypes: (_lowest(dtypes[0]),)))
def reduce_max(x: AnyTensor, *, axis: Axes = None, keepdims: bool = False) -> AnyTensor:
    """Largest of the elements along `axis`; NaN where one of them is.

    Args:
        x: real tensor.
        axis: tuple of axes to reduce, None for all.
        keepdims: whether reduced axes stay, with size 1.
    Returns:
        Tensor of the dtype of `x`; where there are no elements, minus infinity or the lowest integer.
    Raises:
        InvalidArgumentError: an axis is out of range or named twice. DTypeError: `x` is not real.
    Gradient: shared equally by the elements that equal the result.
    """


@primitive(infer=rules.reduction(dt.REAL), vjp=_extreme_vjp, saves=("x", "out"),
           reduction=Reduction(lambda s, a, b: s.minimum(a[0], b[0]), lambda dtypes: (_highest(dtypes[0]),)))
def reduce_min(x: AnyTensor, *, axis: Axes = None, keepdims: bool = False) -> AnyTensor:
    """Smallest of the elements along `axis`; NaN where one of them is.

    Args:
        x: real tensor.
        axis: tuple of axes to reduce, None for all.
        keepdims: whether reduced axes stay, with size 1.
    Returns:
        Tensor of the dtype of `x`; where there are no elements, infinity or the highest integer.
    Raises:
        InvalidArgumentError: an axis is out of range or named twice. DTypeError: `x` is not real.
    Gradient: shared equally by the elements that equal the result.
    """


# -- truth and counting -------------------------------------------------------------------------------
@primitive(infer=rules.reduction(dt.BOOL), vjp=None,
           reduction=Reduction(lambda s, a, b: s.or_(a[0], b[0]), lambda dtypes: (False,)))
def reduce_any(x: AnyTensor, *, axis: Axes = None, keepdims: bool = False) -> AnyTensor:
    """Whether an element along `axis` is true; false where there are none.

    Args:
        x: bool tensor.
        axis: tuple of axes to reduce, None for all.
        keepdims: whether reduced axes stay, with size 1.
    Raises:
        InvalidArgumentError: an axis is out of range or named twice. DTypeError: `x` is not bool.
    """


@primitive(infer=rules.reduction(dt.BOOL), vjp=None,
           reduction=Reduction(lambda s, a, b: s.and_(a[0], b[0]), lambda dtypes: (True,)))
def reduce_all(x: AnyTensor, *, axis: Axes = None, keepdims: bool = False) -> AnyTensor:
    """Whether all elements along `axis` are true; true where there are none.

    Args:
        x: bool tensor.
        axis: tuple of axes to reduce, None for all.
        keepdims: whether reduced axes stay, with size 1.
    Raises:
        InvalidArgumentError: an axis is out of range or named twice. DTypeError: `x` is not bool.
    """


def _count_infer(op: Op, x: Spec, *, axis: Axes, keepdims: bool, dtype: DType) -> Spec:
    rules.require_dtype(op, [x], 0, dt.ALL)
    if dtype not in dt.NUMERIC:
        raise rules.fail(op, [x], f"dtype is {dtype.name}; expected a numeric one.", DTypeError)
    axes = rules.normalize_axes(op, [x], axis, len(x.dims))
    return spec(rules.reduced_dims(x.dims, axes, keepdims), dtype)


def _count_pre(s: ScalarBuilder, x: Scalar, **attrs: Attr) -> Scalar:
    return s.cast(x if x.dtype.is_bool else s.ne(x, 0), dt.int64)


@primitive(infer=_count_infer, vjp=None,
           reduction=Reduction(_add, _zeros, pre=_count_pre, acc=lambda dtypes: (dt.int64,),
                               post=lambda s, acc, count, dtype: acc[0]))
def count_nonzero(x: AnyTensor, *, axis: Axes = None, keepdims: bool = False, dtype: DType = dt.int64) -> AnyTensor:
    """How many elements along `axis` are not zero (or false).

    Args:
        x: tensor of any dtype but string.
        axis: tuple of axes to reduce, None for all.
        keepdims: whether reduced axes stay, with size 1.
        dtype: the result's, numeric.
    Raises:
        InvalidArgumentError: an axis is out of range or named twice. DTypeError: `dtype` is not numeric.
    """


# -- logarithm of a sum, length of a vector -----------------------------------------------------------
def _logsumexp_join(s: ScalarBuilder, a: tuple[Scalar, ...], b: tuple[Scalar, ...]) -> tuple[Scalar, Scalar]:
    """Accumulators (m, t) stand for t * exp(m), m the largest element so far."""
    (m, t), (n, u) = a, b
    zero = s.const(0.0, m.dtype)
    ratio = s.exp(s.select(s.eq(m, n), zero, -s.abs(m - n)))
    return s.maximum(m, n), s.select(s.ge(m, n), s.fma(u, ratio, t), s.fma(t, ratio, u))


def _logsumexp_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor, *, axis: Axes, keepdims: bool) -> Cotangents:
    """Softmax; elements of minus infinity get none, also where there is nothing else."""
    total = spread(out, x, axis, keepdims)
    zero = grad.scalar(0, like=x)
    gone = ops.equal(x, grad.scalar(-math.inf, like=x))
    part = ops.exp(ops.where(gone, zero, ops.subtract(x, ops.where(gone, zero, total))))
    return ops.where(gone, zero, ops.multiply(spread(ct, x, axis, keepdims), part))


@primitive(infer=rules.reduction(dt.FLOATING), vjp=_logsumexp_vjp, saves=("x", "out"),
           reduction=Reduction(_logsumexp_join, lambda dtypes: (-math.inf, 0.0),
                               pre=lambda s, x: (x, s.const(1.0, x.dtype)),
                               post=lambda s, acc, count: acc[0] + s.log(acc[1]),
                               acc=lambda dtypes: (dtypes[0], dtypes[0])))
def reduce_logsumexp(x: AnyTensor, *, axis: Axes = None, keepdims: bool = False) -> AnyTensor:
    """log(sum(exp(x))) along `axis` without overflow, in one pass.

    Args:
        x: floating tensor.
        axis: tuple of axes to reduce, None for all.
        keepdims: whether reduced axes stay, with size 1.
    Returns:
        Tensor of the dtype of `x`; minus infinity where all elements are, or there are none.
    Raises:
        InvalidArgumentError: an axis is out of range or named twice. DTypeError: `x` is not floating.
    Gradient: the softmax of the elements; zero to those of minus infinity.
    Source: the running maximum and rescaled sum of Milakov & Gimelshein, "Online normalizer calculation for softmax"
        (2018), here as a reduction that joins in any order.
    """


def _norm_acc(dtypes: tuple[DType, ...]) -> tuple[DType, ...]:
    return (dt.float64 if dtypes[0].is_integer else dtypes[0].real_dtype,)


def _norm_pre(s: ScalarBuilder, x: Scalar, **attrs: Attr) -> Scalar:
    if x.dtype.is_complex:
        return s.real(x) * s.real(x) + s.imag(x) * s.imag(x)
    value = s.cast(x, dt.float64) if x.dtype.is_integer else x
    return value * value


def _norm_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor, *, axis: Axes, keepdims: bool) -> Cotangents:
    """x / norm(x), and zero where the norm is."""
    if ct.dtype.is_complex:
        ct = ops.cast(ops.real(ct), dtype=ct.dtype)
    zero, one = grad.scalar(0, like=out), grad.scalar(1, like=out)
    none = ops.equal(out, zero)
    scale = ops.where(none, zero, ops.divide(ct, ops.where(none, one, out)))
    return ops.multiply(x, spread(scale, x, axis, keepdims))


@primitive(infer=rules.reduction(dt.NUMERIC), vjp=_norm_vjp, saves=("x", "out"),
           reduction=Reduction(_add, _zeros, pre=_norm_pre, acc=_norm_acc,
                               post=lambda s, acc, count: s.sqrt(acc[0])))
def reduce_euclidean_norm(x: AnyTensor, *, axis: Axes = None, keepdims: bool = False) -> AnyTensor:
    """Square root of the sum of squared magnitudes along `axis`; 0 where there are no elements.

    Args:
        x: numeric tensor. float16 and bfloat16 are computed in float32; integers in float64, cut to an integer.
        axis: tuple of axes to reduce, None for all.
        keepdims: whether reduced axes stay, with size 1.
    Returns:
        Tensor of the dtype of `x`; for complex `x` with imaginary parts 0.
    Raises:
        InvalidArgumentError: an axis is out of range or named twice. DTypeError: `x` is not numeric.
    Gradient: x / norm; zero where the norm is zero.
    """


# -- spread about the mean ----------------------------------------------------------------------------
def _both(s: ScalarBuilder, a: tuple[Scalar, ...], b: tuple[Scalar, ...]) -> tuple[Scalar, Scalar]:
    return a[0] + b[0], a[1] + b[1]


def _variance_post(s: ScalarBuilder, acc: tuple[Scalar, ...], count: Scalar, **attrs: Attr) -> Scalar:
    total, squares = acc
    n = s.cast(count, total.dtype)
    return s.maximum((squares - total * (total / n)) / n, 0.0)


def _variance_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, *, axis: tuple[int, ...] | None,
                  keepdims: bool) -> Cotangents:
    """2 (x - mean) / n."""
    apart = ops.subtract(x, ops.reduce_mean(x, axis=axis, keepdims=True))
    part = ops.divide(ops.multiply(ct, 2), grad.scalar(_count(x, axis), like=ct))
    return ops.multiply(apart, spread(part, x, axis, keepdims))


@primitive(infer=rules.reduction(dt.FLOATING), vjp=_variance_vjp, saves=("x",),
           reduction=Reduction(_both, lambda dtypes: (0, 0), pre=lambda s, x, **attrs: (x, x * x),
                               acc=lambda dtypes: (dtypes[0], dtypes[0]), post=_variance_post))
def centred_variance(x: AnyTensor, *, axis: tuple[int, ...] | None = None, keepdims: bool = False) -> AnyTensor:
    """Variance along `axis` of numbers whose mean is near 0: their mean square less the square of their mean.

    The second pass of the corrected two-pass algorithm: what is left of a mean that was subtracted in rounded form no
    longer counts. Source: Chan, Golub & LeVeque, "Algorithms for computing the sample variance: analysis and
    recommendations", The American Statistician 37 (1983), formula 1.7.

    Args:
        x: floating tensor, 16-bit floats are added up in float32. Numbers far from 0 cancel: subtract their mean first.
        axis: tuple of axes to reduce, None for all.
        keepdims: whether reduced axes stay, with size 1.
    Returns:
        Tensor of the dtype of `x`; never negative, NaN where there are no elements.
    Raises:
        InvalidArgumentError: an axis is out of range or named twice. DTypeError: `x` is not floating.
    Gradient: `2 * (x - mean(x)) / n`.
    """


# -- where the extremes are ---------------------------------------------------------------------------
def _arg_infer(op: Op, x: Spec, *, axis: int, output_type: DType) -> Spec:
    rules.require_dtype(op, [x], 0, dt.REAL | dt.BOOL)
    if output_type not in _INDEX_TYPES:
        raise rules.fail(op, [x], f"output_type is {output_type.name}; expected {rules.names_of(_INDEX_TYPES)}.",
                         DTypeError)
    axis = rules.normalize_axis(op, [x], axis, len(x.dims))
    if x.dims[axis] == 0:
        raise rules.fail(op, [x], f"axis {axis} is empty.", InvalidArgumentError)
    return spec(rules.reduced_dims(x.dims, (axis,), False), output_type)


def _arg_pre(s: ScalarBuilder, x: Scalar, index: Scalar, **attrs: Attr) -> tuple[Scalar, Scalar]:
    return (s.cast(x, dt.uint8) if x.dtype.is_bool else x), index


def _arg_acc(dtypes: tuple[DType, ...]) -> tuple[DType, ...]:
    return dt.uint8 if dtypes[0].is_bool else dtypes[0], dt.int64


def _arg_join(beats: str) -> Callable[[ScalarBuilder, tuple[Scalar, ...], tuple[Scalar, ...]], tuple[Scalar, Scalar]]:
    def join(s: ScalarBuilder, a: tuple[Scalar, ...], b: tuple[Scalar, ...]) -> tuple[Scalar, Scalar]:
        """The side that wins, and of equal ones the first; NaN beats all but an earlier NaN."""
        (x, i), (y, j) = a, b
        wins, level = getattr(s, beats)(x, y), s.eq(x, y)
        if x.dtype.is_floating:
            x_nan, y_nan = s.isnan(x), s.isnan(y)
            wins = s.or_(wins, s.and_(x_nan, s.not_(y_nan)))
            level = s.or_(level, s.and_(x_nan, y_nan))
        first = s.or_(wins, s.and_(level, s.le(i, j)))
        return s.select(first, x, y), s.select(first, i, j)
    return join


def _arg_reduction(beats: str, worst: Callable[[DType], complex]) -> Reduction:
    return Reduction(_arg_join(beats), lambda dtypes: (worst(_arg_acc(dtypes)[0]), dt.int64.max), pre=_arg_pre,
                     acc=_arg_acc, post=lambda s, acc, count, output_type: acc[1], indexed=True)


@primitive(infer=_arg_infer, vjp=None, reduction=_arg_reduction("gt", _lowest))
def argmax(x: AnyTensor, *, axis: int = 0, output_type: DType = dt.int64) -> AnyTensor:
    """Where along `axis` the largest element is: the first of equal ones, the first NaN if there is one.

    Args:
        x: real or bool tensor.
        axis: the axis to search; it must not be empty.
        output_type: int16, int32, int64 or uint16.
    Returns:
        Indices, in the shape of `x` without `axis`.
    Raises:
        InvalidArgumentError: the axis is out of range or empty. DTypeError: a dtype is none of those.
    """


@primitive(infer=_arg_infer, vjp=None, reduction=_arg_reduction("lt", _highest))
def argmin(x: AnyTensor, *, axis: int = 0, output_type: DType = dt.int64) -> AnyTensor:
    """Where along `axis` the smallest element is: the first of equal ones, the first NaN if there is one.

    Args:
        x: real or bool tensor.
        axis: the axis to search; it must not be empty.
        output_type: int16, int32, int64 or uint16.
    Returns:
        Indices, in the shape of `x` without `axis`.
    Raises:
        InvalidArgumentError: the axis is out of range or empty. DTypeError: a dtype is none of those.
    """
