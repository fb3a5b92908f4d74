"""How draws of each kind are made from a stream; who holds the stream is the callers' affair.

A `Stream` is a function from the shape of a draw to the stream to draw it from, moved on by as many blocks as the shape
has elements. It is asked when nothing can be refused any more: a draw that is refused leaves its stream where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from twofold._front.api import one_int, tensor
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.dtypes import DType
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.op import Op, tracing
from twofold.ir.ops.random import mix
from twofold.ir.spec import TensorSpec
from twofold.runtime import random as streams

__all__ = ["Stream", "seed_number", "normal", "truncated_normal", "uniform", "full_integers", "shuffle", "categorical",
           "gamma", "poisson", "binomial", "one_integer"]

Stream: TypeAlias = Callable[[tuple[Any, ...]], Any]
Shape: TypeAlias = tuple[Any, ...]


def seed_number(given: Any) -> Any:
    """An op's seed as an integer or None; of a float the whole part, as TensorFlow takes it."""
    if isinstance(given, (float, np.floating)) and math.isfinite(given):
        return int(given)
    return None if given is None else one_int(given, "seed")


def _is(value: Any, number: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == number


_STATE = TensorSpec([3], dt.int64)  # of any stream
_NO_STREAM = np.zeros(3, np.int64)


def _refuse(draw: Op, shape: Shape, dtype: DType, *parameters: Any) -> list[Any]:
    """The parameters that a draw is multiplied by or added to, as tensors, once the shape rules accept all of it."""
    drawn = draw.infer(draw, _STATE, shape=shape, dtype=dtype)
    given = [p if isinstance(p, float) else tensor(p, hint=dtype) for p in parameters]
    for parameter in given:
        if not isinstance(parameter, float):
            ops.add.infer(ops.add, drawn, parameter)
    return given


def _scaled(draw: Op, stream: Stream, shape: Shape, mean: Any, stddev: Any, dtype: DType) -> Any:
    mean, stddev = _refuse(draw, shape, dtype, mean, stddev)
    z = draw(stream(shape), shape=shape, dtype=dtype)
    if not _is(stddev, 1):
        z = ops.multiply(z, stddev)
    return z if _is(mean, 0) else ops.add(z, mean)


def normal(stream: Stream, shape: Shape, mean: Any, stddev: Any, dtype: DType) -> Any:
    return _scaled(ops.random_normal, stream, shape, mean, stddev, dtype)


def truncated_normal(stream: Stream, shape: Shape, mean: Any, stddev: Any, dtype: DType) -> Any:
    return _scaled(ops.random_truncated_normal, stream, shape, mean, stddev, dtype)


def uniform(stream: Stream, shape: Shape, minval: Any, maxval: Any, dtype: DType) -> Any:
    if dtype.is_integer:
        if maxval is None:
            raise ValueError(f"uniform: integers ({dtype.name}) need maxval.")
        low, high = tensor(minval, dtype), tensor(maxval, dtype)
        ops.random_integers.infer(ops.random_integers, _STATE, low, high, shape=shape)
        if tracing() is None and not low._array < high._array:
            return ops.random_integers(_NO_STREAM, low, high, shape=shape)  # which refuses
        return ops.random_integers(stream(shape), low, high, shape=shape)
    if _is(minval, 0) and (maxval is None or _is(maxval, 1)):
        _refuse(ops.random_uniform, shape, dtype)
        return ops.random_uniform(stream(shape), shape=shape, dtype=dtype)
    low, high = tensor(minval, dtype), tensor(1 if maxval is None else maxval, dtype)
    _refuse(ops.random_uniform, shape, dtype, low, high)
    u = ops.random_uniform(stream(shape), shape=shape, dtype=dtype)
    value = ops.add(ops.multiply(u, ops.subtract(high, low)), low)
    return ops.where(ops.equal(value, high), low, value)  # rounding may reach the upper bound, which must not occur


def one_integer(low: int, high: int) -> int:
    """The next integer in [low, high) of the stream that `tf.random.set_seed` governs, in Python."""
    return streams.integer(low, high, mix)


def full_integers(stream: Stream, shape: Shape, dtype: DType) -> Any:
    _refuse(ops.random_bits, shape, dtype)
    return ops.random_bits(stream(shape), shape=shape, dtype=dtype)


def shuffle(stream: Stream, value: Any) -> Any:
    if not value.dims:
        raise InvalidArgumentError("shuffle: value must have rank 1 or more; got a scalar.")
    keys = full_integers(stream, value.dims[:1], dt.uint64)
    return ops.gather(value, ops.argsort(keys), axis=0)


def categorical(stream: Stream, logits: Any, count: int, dtype: DType) -> Any:
    """By the inverse of the distribution function in float64: the first class at which it exceeds a uniform number."""
    if len(logits.dims) != 2 or not logits.dtype.is_floating or logits.dims[1] == 0:
        raise InvalidArgumentError(f"categorical: logits must be a floating matrix with columns; got "
                                   f"{logits.dtype.name} of shape {logits.shape}.")
    if isinstance(count, int) and count < 0:
        raise InvalidArgumentError(f"categorical: num_samples must not be negative; got {count}.")
    wide = ops.cast(logits, dtype=dt.float64)
    sums = ops.cumsum(ops.exp(ops.subtract(wide, ops.reduce_max(wide, axis=(1,), keepdims=True))), axis=1)
    shape = (logits.dims[0], count)
    u = ops.random_uniform(stream(shape), shape=shape, dtype=dt.float64)
    total = ops.reduce_max(sums, axis=(1,), keepdims=True)
    level = ops.minimum(ops.multiply(u, total), ops.nextafter(total, np.float64(0.0)))
    return ops.cast(ops.searchsorted(sums, level, side="right", out_type=dt.int64), dtype=dtype)


def _outer(shape: Shape, params: Shape, before: bool) -> Shape:
    """The shape of a draw: with `before` it is `shape` followed by that of the parameters, else `shape` alone."""
    return (*shape, *params) if before else shape


def gamma(stream: Stream, shape: Shape, alpha: Any, beta: Any, dtype: DType, before: bool) -> Any:
    alpha = tensor(alpha, dtype)
    beta = None if beta is None else tensor(beta, dtype)
    dims = alpha.dims if beta is None else dm.broadcast_shapes(alpha.dims, beta.dims)
    full = _outer(shape, dims, before)
    ops.random_gamma.infer(ops.random_gamma, _STATE, alpha, shape=full, dtype=dtype)
    z = ops.random_gamma(stream(full), alpha, shape=full, dtype=dtype)
    return z if beta is None else ops.divide(z, beta)


def poisson(stream: Stream, shape: Shape, lam: Any, dtype: DType, before: bool) -> Any:
    lam = _floating(lam)
    full = _outer(shape, lam.dims, before)
    ops.random_poisson.infer(ops.random_poisson, _STATE, lam, shape=full, dtype=dtype)
    return ops.random_poisson(stream(full), lam, shape=full, dtype=dtype)


def binomial(stream: Stream, shape: Shape, counts: Any, probs: Any, dtype: DType) -> Any:
    counts, probs = _floating(counts), _floating(probs)
    ops.random_binomial.infer(ops.random_binomial, _STATE, counts, probs, shape=shape, dtype=dtype)
    return ops.random_binomial(stream(shape), counts, probs, shape=shape, dtype=dtype)


def _floating(value: Any) -> Any:
    value = tensor(value)
    return value if value.dtype.is_floating else ops.cast(value, dtype=dt.float64)
