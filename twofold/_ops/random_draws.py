"""How draws of each kind are made from a stream; who holds the stream is the callers' affair.

A `Stream` is a function from the number of blocks that a draw reserves to the stream to draw it from, moved on by as
many. It is asked when nothing can be refused any more: a draw that is refused leaves its stream where it was. How many
are reserved is TensorFlow's choice: mostly 256 for an element, more than it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from twofold._front import replica
from twofold._front.api import one_int, tensor
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.dtypes import DType
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.math_draws import SKIP
from twofold.ir.op import Op, tracing
from twofold.ir.ops.random import LIKE_TENSORFLOW, LIKE_TWOFOLD, mix
from twofold.ir.spec import TensorSpec
from twofold.runtime import random as streams
from twofold.tracer.trace import current

__all__ = ["Stream", "seed_number", "op_stream", "replica_stream", "reserved", "normal", "truncated_normal",
           "uniform", "full_integers", "shuffle", "categorical", "gamma", "like_of", "poisson", "binomial",
           "one_integer", "cut_normal", "pair_stream", "pass_over", "seeding"]

_SEEDS = 2**31 - 1

Stream: TypeAlias = Callable[[Any], Any]
Shape: TypeAlias = tuple[Any, ...]


def seed_number(given: Any) -> Any:
    """An op's seed as an integer or None; of a float the whole part, as TensorFlow takes it."""
    if isinstance(given, (float, np.floating)) and math.isfinite(given):
        return int(given)
    if isinstance(given, int) and not isinstance(given, bool):
        return given % _SEEDS  # as large as users like: TensorFlow takes what is left
    return None if given is None else one_int(given, "seed")


def pass_over(seed: Any) -> None:
    """Take the seeds of a draw that is not made."""
    trace = current()
    streams.op_seeds(seed_number(seed), None if trace is None else trace.next_op_seed)


def op_stream(kind: str, seed: int | None) -> Stream:
    """The stream of a draw that `tf.random.set_seed` governs.

    Args:
        kind: what is drawn, with its dtypes: such draws with the same seeds share a stream.
        seed: the op's.
    """
    def state(blocks: Any) -> Any:
        of, trace = replica.here.get().number, current()
        seeds = streams.op_seeds(seed, None if trace is None else trace.next_op_seed)
        if seeds is None:
            purpose = kind if not of else f"{kind} of replica {of}"  # others than the first draw for one of their own
            return ops.random_state(blocks, purpose=purpose)
        return _continued(blocks, seeds, kind if seed is not None or trace is not None else "")
    return state


def pair_stream(kind: str, seeds: tuple[int, int]) -> Stream:
    """The stream of a draw whose two seeds are given, as those of TensorFlow's raw ops are; unpredictable without."""
    if seeds == (0, 0):
        return lambda blocks: ops.random_state(blocks, purpose=kind)
    return lambda blocks: _continued(blocks, seeds, kind)


def _continued(blocks: Any, seeds: tuple[int, int], kind: str) -> Any:
    """The next part of the stream of two seeds."""
    of, trace = replica.here.get().number, current()
    made = ops.random_op_state(blocks, seeds=seeds, kind=kind, place=() if trace is None else trace.new_place())
    return made if not of else replica_stream(made, of)


def replica_stream(state: Any, of: int) -> Any:
    """The stream with a key of its own for a replica."""
    word = (mix(of) + (1 << 63)) % (1 << 64) - (1 << 63)
    return ops.bitwise_xor(state, tensor(np.array([0, 0, word]), dt.int64))


def like_of(alg: Any) -> str:
    """Whose numbers an `alg` argument stands for.

    Raises:
        ValueError: it names no algorithm, or one that draws nothing here.
    """
    name = getattr(alg, "name", alg)
    if isinstance(name, str) and name.lower() == LIKE_TWOFOLD:
        return LIKE_TWOFOLD
    if name in (1, 3) or isinstance(name, str) and name.lower() in ("philox", "auto_select"):
        return LIKE_TENSORFLOW
    raise ValueError(f"alg must be 'philox', 'auto_select' or 'twofold'; got {alg!r}.")


def reserved(shape: Shape) -> Any:
    """How many blocks a draw of a shape moves its stream on by."""
    return dm.numel(shape) * SKIP


def _is(value: Any, number: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == number


_STATE = TensorSpec([3], dt.int64)  # of any stream
_LIKE = LIKE_TENSORFLOW
_NO_STREAM = np.zeros(3, np.int64)


def _refuse(draw: Op, shape: Shape, dtype: DType, *parameters: Any) -> list[Any]:
    """The parameters that a draw is multiplied by or added to, as tensors, once the shape rules accept all of it."""
    drawn = draw.infer(draw, _STATE, shape=shape, dtype=dtype)
    given = [p if isinstance(p, float) else tensor(p, hint=dtype) for p in parameters]
    for parameter in given:
        if not isinstance(parameter, float):
            ops.add.infer(ops.add, drawn, parameter)
    return given


def _scaled(draw: Op, stream: Stream, shape: Shape, mean: Any, stddev: Any, dtype: DType, like: str) -> Any:
    mean, stddev = _refuse(draw, shape, dtype, mean, stddev)
    z = draw(stream(reserved(shape)), shape=shape, dtype=dtype, like=like)
    if not _is(stddev, 1):
        z = ops.multiply(z, stddev)
    return z if _is(mean, 0) else ops.add(z, mean)


def normal(stream: Stream, shape: Shape, mean: Any, stddev: Any, dtype: DType, like: str = _LIKE) -> Any:
    return _scaled(ops.random_normal, stream, shape, mean, stddev, dtype, like)


def truncated_normal(stream: Stream, shape: Shape, mean: Any, stddev: Any, dtype: DType, like: str = _LIKE) -> Any:
    return _scaled(ops.random_truncated_normal, stream, shape, mean, stddev, dtype, like)


def uniform(stream: Stream, shape: Shape, minval: Any, maxval: Any, dtype: DType,
            like: str = _LIKE) -> Any:
    if dtype.is_integer:
        if maxval is None:
            raise ValueError(f"uniform: integers ({dtype.name}) need maxval.")
        low, high = tensor(minval, dtype), tensor(maxval, dtype)
        ops.random_integers.infer(ops.random_integers, _STATE, low, high, shape=shape)
        if tracing() is None and not low._array < high._array:
            return ops.random_integers(_NO_STREAM, low, high, shape=shape)  # which refuses
        return ops.random_integers(stream(reserved(shape)), low, high, shape=shape, like=like)
    if _is(minval, 0) and (maxval is None or _is(maxval, 1)):
        _refuse(ops.random_uniform, shape, dtype)
        return ops.random_uniform(stream(reserved(shape)), shape=shape, dtype=dtype, like=like)
    low, high = tensor(minval, dtype), tensor(1 if maxval is None else maxval, dtype)
    _refuse(ops.random_uniform, shape, dtype, low, high)
    u = ops.random_uniform(stream(reserved(shape)), shape=shape, dtype=dtype, like=like)
    return ops.add(ops.multiply(u, ops.subtract(high, low)), low)


def one_integer(low: int, high: int) -> int:
    """The next integer in [low, high) of the stream that `tf.random.set_seed` governs, in Python."""
    return streams.integer(low, high, mix)


def seeding() -> tuple[int, bool]:
    """How often the global seed was set, and whether there is one."""
    return streams.seeding()


def full_integers(stream: Stream, shape: Shape, dtype: DType) -> Any:
    _refuse(ops.random_bits, shape, dtype)
    return ops.random_bits(stream(reserved(shape)), shape=shape, dtype=dtype)


def shuffle(stream: Stream, value: Any) -> Any:
    if not value.dims:
        raise InvalidArgumentError("shuffle: value must have rank 1 or more; got a scalar.")
    size = value.dims[0]
    return ops.gather(value, ops.random_permutation(stream((size + 2) // 4), size=size), axis=0)


def categorical(stream: Stream, logits: Any, count: int, dtype: DType) -> Any:
    """By the inverse of the distribution function in float64: the first class at which it exceeds a uniform number."""
    if len(logits.dims) != 2 or not logits.dtype.is_floating or logits.dims[1] == 0:
        raise InvalidArgumentError(f"categorical: logits must be a floating matrix with columns; got "
                                   f"{logits.dtype.name} of shape {logits.shape}.")
    if isinstance(count, int) and count < 0:
        raise InvalidArgumentError(f"categorical: num_samples must not be negative; got {count}.")
    wide, finite = ops.cast(logits, dtype=dt.float64), ops.is_finite(logits)
    largest = ops.reduce_max(ops.where(finite, wide, tensor(-np.inf, dt.float64)), axis=(1,), keepdims=True)
    none = tensor(0.0, dt.float64)
    sums = ops.cumsum(ops.where(finite, ops.exp(ops.subtract(wide, largest)), none), axis=1)
    shape = (logits.dims[0], count)
    state = stream(reserved((logits.dims[0], (count + 3) // 4 * 8)))
    u = ops.random_uniform(state, shape=shape, dtype=dt.float64, like=_LIKE)
    total = ops.reduce_max(sums, axis=(1,), keepdims=True)
    level = ops.minimum(ops.multiply(u, total), ops.nextafter(total, np.float64(0.0)))
    return ops.cast(ops.searchsorted(sums, level, side="right", out_type=dt.int64), dtype=dtype)


def _outer(shape: Shape, params: Shape, before: bool) -> Shape:
    """The shape of a draw: with `before` it is `shape` followed by that of the parameters, else `shape` alone."""
    return (*shape, *params) if before else shape


def _tiny(dtype: DType) -> float:
    """The smallest normal number."""
    return float(ml_dtypes.finfo(dtype.np).tiny)


def gamma(stream: Stream, shape: Shape, alpha: Any, beta: Any, dtype: DType, before: bool) -> Any:
    alpha = tensor(alpha, dtype)
    beta = None if beta is None else tensor(beta, dtype)
    dims = alpha.dims if beta is None else dm.broadcast_shapes(alpha.dims, beta.dims)
    full = _outer(shape, dims, before)
    ops.random_gamma.infer(ops.random_gamma, _STATE, alpha, shape=full, dtype=dtype)
    alpha = alpha if len(alpha.dims) == len(dims) else ops.broadcast_to(alpha, shape=dims)
    z = ops.random_gamma(stream(reserved(full)), alpha, shape=full, dtype=dtype, like=_LIKE)
    return ops.maximum(z if beta is None else ops.divide(z, beta), tensor(_tiny(dtype), dtype))


def poisson(stream: Stream, shape: Shape, lam: Any, dtype: DType, before: bool) -> Any:
    lam = _floating(lam)
    full = _outer(shape, lam.dims, before)
    ops.random_poisson.infer(ops.random_poisson, _STATE, lam, shape=full, dtype=dtype)
    return ops.random_poisson(stream(reserved(full)), lam, shape=full, dtype=dtype, like=_LIKE)


def binomial(stream: Stream, shape: Shape, counts: Any, probs: Any, dtype: DType) -> Any:
    counts, probs = _floating(counts), _floating(probs)
    ops.random_binomial.infer(ops.random_binomial, _STATE, counts, probs, shape=shape, dtype=dtype)
    kinds = dm.numel(dm.broadcast_shapes(counts.dims, probs.dims))
    times = dm.numel(shape[:len(shape) - max(len(counts.dims), len(probs.dims))])
    state = stream(kinds * 200 * (times + 3) // 4 * SKIP)
    return ops.random_binomial(state, counts, probs, shape=shape, dtype=dtype, like=_LIKE)


def cut_normal(stream: Stream, shape: Shape, *parameters: Any) -> Any:
    op = ops.random_cut_normal
    op.infer(op, _STATE, *parameters, shape=shape)
    return op(stream(reserved(shape)), *parameters, shape=shape)


def _floating(value: Any) -> Any:
    value = tensor(value)
    return value if value.dtype.is_floating else ops.cast(value, dtype=dt.float64)
