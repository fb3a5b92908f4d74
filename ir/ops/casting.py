"""Conversion and choice: cast, bitcast, where, identity and the cut in the gradient.

Owns the ops that give an operand's own values back, in another dtype or by a condition.
"""

from __future__ import annotations

import numpy as np

from .. import dtypes as dt
from .. import ops, rules
from ..dtypes import DType
from ..errors import DTypeError
from ..grad import unbroadcast
from ..op import Op, primitive
from ..scalar import Scalar, ScalarBuilder
from ..spec import spec
from ..types import AnyTensor, Cotangents, Spec

__all__ = ["bitcast", "cast", "convert_small", "identity", "reinterpret", "stop_gradient", "where"]


def _cast_rule(op: Op, x: Spec, *, dtype: DType) -> Spec:
    rules.require_dtype(op, (x,), 0, dt.ALL)
    if dtype not in dt.ALL:
        raise rules.fail(op, (x,), f"cannot convert to {dtype.name}.", DTypeError)
    return spec(x.dims, dtype)


def _cast_vjp(ct: AnyTensor, out: Spec, x: Spec, *, dtype: DType) -> Cotangents:
    if not x.dtype.is_differentiable or not dtype.is_differentiable:
        return None
    return ops.cast(ct, dtype=x.dtype)


@primitive(infer=_cast_rule, vjp=_cast_vjp, saves=(), body=lambda s, x, dtype: s.cast(x, dtype))
def cast(x: AnyTensor, *, dtype: DType) -> AnyTensor:
    """`x` converted to `dtype`, elementwise.

    Floats become integers toward zero, out of range the nearest limit, NaN 0. Integers wrap around in narrower
    ones. Complex numbers lose the imaginary part. What is not 0 is true.

    Args:
        x: tensor of any dtype but string.
        dtype: the DType of the result, any but string.
    Gradient: the cotangent converted back, between float and complex dtypes.
    """


def _convert_small_rule(op: Op, x: Spec, *, dtype: DType) -> Spec:
    rules.require_dtype(op, (x,), 0, dt.ALL | dt.SMALL)
    if dtype not in dt.ALL | dt.SMALL:
        raise rules.fail(op, (x,), f"cannot convert to {dtype.name}.", DTypeError)
    return spec(x.dims, dtype)


def _convert_small_host(x: np.ndarray, *, dtype: DType) -> np.ndarray:
    x = np.asarray(x)  # of a GPU a copy on the host
    if dtype.is_integer or dtype.is_bool or dtype.is_complex:  # of which NumPy knows no casts
        x = x.astype(np.float32)
    if dtype.is_integer:
        low, high = float(dtype.min), float(dtype.max)
        return np.nan_to_num(np.clip(np.trunc(x), low, high), nan=0.0).astype(dtype.np)
    with np.errstate(over="ignore", invalid="ignore"):
        return (x.real if x.dtype.kind == "c" and not dtype.is_complex else x).astype(dtype.np)


@primitive(infer=_convert_small_rule, vjp=None, host=_convert_small_host, traits=("total",))
def convert_small(x: AnyTensor, *, dtype: DType) -> AnyTensor:
    """`x` converted to `dtype` where one of the two is a float of 8 bits, elementwise; see `cast`.

    A float, as a float32, is rounded to nearest, ties to even. What is too large becomes infinite, or NaN where there
    is no infinity. Runs in NumPy.

    Args:
        x: tensor of any dtype but string.
        dtype: the DType of the result, any but string.
    """


def _bitcast_rule(op: Op, x: Spec, *, dtype: DType) -> Spec:
    rules.require_dtype(op, (x,), 0, dt.NUMERIC | dt.SMALL)
    if dtype not in dt.NUMERIC | dt.SMALL:
        raise rules.fail(op, (x,), f"cannot reinterpret as {dtype.name}.", DTypeError)
    have, want = x.dtype.size, dtype.size
    if have == want:
        return spec(x.dims, dtype)
    if have > want:
        return spec((*x.dims, have // want), dtype)
    if not x.dims or x.dims[-1] != want // have:
        raise rules.fail(op, (x,), f"the last axis must have size {want // have} to be read as {dtype.name}.")
    return spec(x.dims[:-1], dtype)


def _bitcast_host(x: np.ndarray, *, dtype: DType) -> np.ndarray:
    have, want = x.dtype.itemsize, dtype.size
    shape = x.shape if have == want else (*x.shape, have // want) if have > want else x.shape[:-1]
    return np.array(x, order="C", copy=True).reshape(-1).view(dtype.np).reshape(shape)


@primitive(infer=_bitcast_rule, vjp=None, host=_bitcast_host, traits=("total",))
def bitcast(x: AnyTensor, *, dtype: DType) -> AnyTensor:
    """The bits of `x` read as `dtype`; a wider element is an axis of narrower ones at the end, low bits first.

    Runs in NumPy: it copies memory and computes nothing.
    """


# Types whose elements are in scalar bodies what they are in memory: bools and 16-bit floats are converted when loaded.
_AS_STORED = dt.INTEGER | {dt.float32, dt.float64}


def can_reinterpret(have: DType, want: DType) -> bool:
    """Whether `reinterpret` reads elements of one type as the other; `bitcast` reads all.

    >>> [can_reinterpret(dt.float32, want) for want in (dt.int32, dt.uint8, dt.float16)]
    [True, False, False]
    """
    return have in _AS_STORED and want in _AS_STORED and have.size == want.size


def _reinterpret_rule(op: Op, x: Spec, *, dtype: DType) -> Spec:
    rules.require_dtype(op, (x,), 0, _AS_STORED)
    if not can_reinterpret(x.dtype, dtype):
        raise rules.fail(op, (x,), f"cannot read its elements as {dtype.name}, which has another width or is not an "
                         "integer type, float32 or float64.", DTypeError)
    return spec(x.dims, dtype)


@primitive(infer=_reinterpret_rule, vjp=None, saves=(), body=lambda s, x, dtype: s.bitcast(x, dtype))
def reinterpret(x: AnyTensor, *, dtype: DType) -> AnyTensor:
    """The bits of each element read as `dtype`, elementwise.

    Args:
        x: tensor of integers, float32 or float64.
        dtype: one of these DTypes, whose elements are as wide.
    """


def _where_rule(op: Op, condition: Spec, x: Spec, y: Spec) -> Spec:
    operands = (condition, x, y)
    rules.require_dtype(op, operands, 0, dt.BOOL)
    return rules.elementwise(dt.ALL, same=(1, 2))(op, *operands)


def _where_vjp(ct: AnyTensor, out: Spec, condition: AnyTensor, x: Spec, y: Spec) -> Cotangents:
    return (None, lambda: unbroadcast(ops.where(condition, ct, 0), x),
            lambda: unbroadcast(ops.where(condition, 0, ct), y))


def _where_body(s: ScalarBuilder, condition: Scalar, x: Scalar, y: Scalar) -> Scalar:
    return s.select(condition, x, y)


@primitive(infer=_where_rule, vjp=_where_vjp, saves=("condition",), body=_where_body, match=(1, 2))
def where(condition: AnyTensor, x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x` where `condition` holds, else `y`, elementwise.

    Args:
        condition: bool tensor.
        x, y: tensors of one dtype; all three broadcast together.
    Gradient: to the one that was taken; nothing reaches the other.
    """


@primitive(infer=_where_rule, vjp=_where_vjp, saves=("condition",), body=_where_body, match=(1, 2))
def select(condition: AnyTensor, x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x` if the scalar `condition` holds, else `y`: which of two sums of cotangents a value has.

    Passes make a `where` of it. Unlike in a `where`, the value that was not taken has no part in gradients: where tapes
    and gradients of graphs keep sums that may not have begun (`ir/sums.py`), its sum does not begin with zeros.

    Args:
        condition: bool scalar.
        x, y: tensors of one dtype that broadcast together.
    """


@primitive(infer=rules.like_first, vjp=lambda ct, out, x: ct, saves=(), view=lambda x: x[...])
def identity(x: AnyTensor) -> AnyTensor:
    """`x` itself, as a tensor of its own."""


@primitive(infer=rules.like_first, vjp=None, view=lambda x: x[...])
def stop_gradient(x: AnyTensor) -> AnyTensor:
    """`x` itself, through which no gradient passes."""
