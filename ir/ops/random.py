"""Random draws as pure ops: a stream goes in as an operand, numbers come out.

A stream is an int64 vector `(low, high, key)`: a Philox counter of 128 bits and its key (`ir/math_random.py`). A draw
of n elements uses at most the next n blocks; whoever holds the stream moves it on by as many (`random_skip`). The one
op that reads and changes something outside its operands is `random_state`, which takes the next part of the streams
that `tf.random.set_seed` governs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import dims as dm
from .. import dtypes as dt
from .. import math_words, rules
from ..dims import DimLike, Shape
from ..dtypes import DType
from ..errors import DTypeError
from ..op import Op, primitive
from ..spec import spec
from ..types import AnyTensor, ShapeRule, Spec

if TYPE_CHECKING:
    from ..graph import Node

__all__ = ["random_state", "random_skip", "random_seed_state", "random_bits", "random_uniform", "random_normal",
           "random_truncated_normal", "random_integers", "random_gamma", "random_poisson", "random_binomial",
           "random_permutation", "random_place", "random_op_state", "random_cut_normal", "placed_under",
           "LIKE_TENSORFLOW", "LIKE_TWOFOLD", "mix"]

_STATE = spec((3,), dt.int64)
_BITS = frozenset({dt.int32, dt.int64, dt.uint32, dt.uint64})
_COUNTS = dt.FLOATING | {dt.int32, dt.int64}
_WORD = (1 << 64) - 1
LIKE_TWOFOLD, LIKE_TENSORFLOW = "twofold", "tensorflow"  # whose numbers a draw gives


# -- streams ------------------------------------------------------------------------------------------
def mix(*seeds: int) -> int:
    """64 bits that each of `seeds` changes: the finaliser of SplitMix64, once for every seed.

    Source: Steele, Lea & Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
    """
    z = 0
    for seed in seeds:
        z = (z + seed + 0x9E3779B97F4A7C15) & _WORD
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
        z ^= z >> 31
    return z


def _require_state(op: Op, operands: Sequence[Spec]) -> None:
    rules.require_dtype(op, operands, 0, {dt.int64})
    if len(operands[0].dims) != 1 or not dm.require_eq(operands[0].dims[0], 3):
        raise rules.fail(op, operands, "a stream is a vector of three int64: counter (two) and key.")


def _parts(state: np.ndarray) -> list[int]:
    return [int(v) & _WORD for v in state]


def _state_of(low: int, high: int, key: int) -> np.ndarray:
    return np.array([v & _WORD for v in (low, high, key)], np.uint64).view(np.int64)


def _take_infer(op: Op, blocks: Spec, *, seed: int | None, purpose: str) -> Spec:
    rules.require_dtype(op, (blocks,), 0, {dt.int32, dt.int64})
    rules.require_rank(op, (blocks,), 0, 0, 0)
    return _STATE


@primitive(infer=_take_infer, vjp=None, lower="random", traits=("random", "effect"))
def random_state(blocks: AnyTensor, *, seed: int | None = None, purpose: str = "draw") -> AnyTensor:
    """The next part of a stream that `tf.random.set_seed` governs.

    Args:
        blocks: int32 or int64 scalar, by how many blocks the stream moves on.
        seed: number of the stream among those of `purpose`; None for the one that all such draws share.
        purpose: what is drawn, so that draws of different kinds with one seed have streams of their own.
    Returns:
        A stream, int64[3].
    Raises:
        ShapeError: `blocks` is no scalar.
    """


def _op_infer(op: Op, blocks: Spec, *, seeds: tuple[int, int], kind: str, place: tuple[int, ...]) -> Spec:
    rules.require_dtype(op, (blocks,), 0, {dt.int32, dt.int64})
    rules.require_rank(op, (blocks,), 0, 0, 0)
    return _STATE


@primitive(infer=_op_infer, vjp=None, lower="random", traits=("random", "effect"))
def random_op_state(blocks: AnyTensor, *, seeds: tuple[int, int], kind: str = "",
                    place: tuple[int, ...] = ()) -> AnyTensor:
    """The next part of the stream of an op that draws with TensorFlow's seeds.

    Args:
        blocks: int32 or int64 scalar, by how many blocks the stream moves on.
        seeds: the global one and the op's.
        kind: what is drawn: ops with the same seeds share a stream if it is the same. Empty for one that draws once.
        place: where the op is in functions, whose ops have streams of their own; empty outside of them.
    Returns:
        A stream, int64[3].
    Raises:
        ShapeError: `blocks` is no scalar.
    """


def placed_under(nodes: Iterable[Node], place: tuple[int, ...]) -> None:
    """Give those of `nodes` that draw with seeds places under `place`, so that they have streams of their own."""
    for node in nodes:
        if node.op is random_op_state:
            node.attrs = {**node.attrs, "place": (*place, *node.attrs["place"])}


def _skip_infer(op: Op, state: Spec, count: Spec) -> Spec:
    _require_state(op, (state, count))
    rules.require_dtype(op, (state, count), 1, {dt.int32, dt.int64})
    rules.require_rank(op, (state, count), 1, 0, 0)
    return _STATE


def _skip_host(state: np.ndarray, count: np.ndarray) -> np.ndarray:
    low, high, key = _parts(state)
    counter = low + (high << 64) + int(count)
    return _state_of(counter, counter >> 64, key)


@primitive(infer=_skip_infer, vjp=None, host=_skip_host, traits=("random",))
def random_skip(state: AnyTensor, count: AnyTensor) -> AnyTensor:
    """The stream `state` moved on by `count` blocks.

    Args:
        state: int64[3].
        count: int32 or int64 scalar.
    Returns:
        A stream, int64[3].
    Raises:
        ShapeError: `state` is no vector of three, or `count` no scalar.
    """


def _require_like(op: Op, operands: Sequence[Spec], like: str) -> None:
    if like not in (LIKE_TWOFOLD, LIKE_TENSORFLOW):
        raise rules.fail(op, operands, f'like is {like!r}; expected "{LIKE_TWOFOLD}" or "{LIKE_TENSORFLOW}".')


def _seed_infer(op: Op, seed: Spec, *, purpose: str, like: str) -> Spec:
    _require_like(op, (seed,), like)
    rules.require_dtype(op, (seed,), 0, {dt.int32, dt.int64})
    if len(seed.dims) != 1 or not dm.require_eq(seed.dims[0], 2):
        raise rules.fail(op, (seed,), "seed must have shape [2].")
    return _STATE


def _seed_host(seed: np.ndarray, purpose: str, like: str) -> np.ndarray:
    if like == LIKE_TENSORFLOW:
        return _state_of(*math_words.scrambled(*map(int, seed)))
    import zlib
    words = [int(v) & _WORD for v in seed] + [zlib.crc32(purpose.encode())]
    return _state_of(0, mix(*words, 1), mix(*words, 2))


@primitive(infer=_seed_infer, vjp=None, traits=("random",), host=_seed_host)
def random_seed_state(seed: AnyTensor, *, purpose: str = "draw", like: str = LIKE_TWOFOLD) -> AnyTensor:
    """The stream of a stateless draw.

    Args:
        seed: int32 or int64 vector of two.
        purpose: seeds made of a seed have streams apart from its draws, where it is twofold's.
        like: "twofold", or "tensorflow" for TensorFlow's stream.
    Returns:
        A stream, int64[3], that each bit of the seed decides.
    Raises:
        ShapeError: `seed` does not have shape [2].
    """


# -- draws without parameters -------------------------------------------------------------------------
def _draw_infer(dtypes: Collection[DType]) -> ShapeRule:
    def rule(op: Op, state: Spec, *, shape: Shape, dtype: DType, like: str = LIKE_TWOFOLD) -> Spec:
        _require_state(op, (state,))
        _require_like(op, (state,), like)
        _require_choice(op, (state,), dtype, dtypes)
        return spec(_sizes(op, (state,), shape), dtype)
    return rule


def _sizes(op: Op, operands: Sequence[Spec], shape: Shape) -> Shape:
    if any(dm.decide(d, "<", 0) for d in shape):
        raise rules.fail(op, operands, f"shape is {tuple(shape)}; its sizes must not be negative.")
    return tuple(shape)


def _require_choice(op: Op, operands: Sequence[Spec], dtype: DType, dtypes: Collection[DType]) -> None:
    if dtype not in dtypes:
        raise rules.fail(op, operands, f"dtype is {dtype.name}; expected {rules.names_of(dtypes)}.", DTypeError)


@primitive(infer=_draw_infer(_BITS), vjp=None, lower="random", traits=("random", "total"))
def random_bits(state: AnyTensor, *, shape: Shape, dtype: DType = dt.uint32) -> AnyTensor:
    """Integers of which every bit is random.

    Args:
        state: a stream, int64[3].
        shape: of the result.
        dtype: int32, int64, uint32 or uint64.
    Returns:
        Tensor of `shape` and `dtype`.
    """


@primitive(infer=_draw_infer(dt.FLOATING), vjp=None, lower="random", traits=("random", "total"))
def random_uniform(state: AnyTensor, *, shape: Shape, dtype: DType = dt.float32,
                   like: str = LIKE_TWOFOLD) -> AnyTensor:
    """Numbers uniform in [0, 1): multiples of 2**-24, of 2**-53 (float64), 2**-11 (float16) or 2**-8 (bfloat16); of
    twice that where they are TensorFlow's.

    Args:
        state: a stream, int64[3].
        shape: of the result.
        dtype: a floating one.
        like: "twofold", or "tensorflow" for TensorFlow's numbers.
    Returns:
        Tensor of `shape` and `dtype`.
    """


@primitive(infer=_draw_infer(dt.FLOATING), vjp=None, lower="random", traits=("random", "total"))
def random_normal(state: AnyTensor, *, shape: Shape, dtype: DType = dt.float32,
                  like: str = LIKE_TWOFOLD) -> AnyTensor:
    """Standard normal numbers.

    Args:
        state: a stream, int64[3].
        shape: of the result.
        dtype: a floating one.
        like: "twofold", or "tensorflow" for TensorFlow's numbers.
    Returns:
        Tensor of `shape` and `dtype`.
    Source: Box & Muller, "A note on the generation of random normal deviates", Ann. Math. Stat. 29 (1958).
    """


@primitive(infer=_draw_infer(dt.FLOATING), vjp=None, lower="random", traits=("random", "total"))
def random_truncated_normal(state: AnyTensor, *, shape: Shape, dtype: DType = dt.float32,
                            like: str = LIKE_TWOFOLD) -> AnyTensor:
    """Standard normal numbers within two of zero: by the inverse of their distribution function, or, as TensorFlow has
    it, those of more normal numbers that are.

    Args:
        state: a stream, int64[3].
        shape: of the result.
        dtype: a floating one.
        like: "twofold", or "tensorflow" for TensorFlow's numbers.
    Returns:
        Tensor of `shape` and `dtype`.
    """


# -- draws with parameters ----------------------------------------------------------------------------
def _integers_infer(op: Op, state: Spec, low: Spec, high: Spec, *, shape: Shape, like: str = LIKE_TWOFOLD) -> Spec:
    operands = (state, low, high)
    _require_state(op, operands)
    _require_like(op, operands, like)
    dtype = rules.same_dtype(op, operands, (1, 2))
    rules.require_dtype(op, operands, 1, dt.INTEGER)
    rules.require_rank(op, operands, 1, 0, 0)
    rules.require_rank(op, operands, 2, 0, 0)
    return spec(_sizes(op, operands, shape), dtype)


@primitive(infer=_integers_infer, vjp=None, lower="random", traits=("random",), match=(1, 2))
def random_integers(state: AnyTensor, low: AnyTensor, high: AnyTensor, *, shape: Shape,
                    like: str = LIKE_TWOFOLD) -> AnyTensor:
    """Integers uniform in [low, high).

    Args:
        state: a stream, int64[3].
        low, high: integer scalars of one dtype.
        shape: of the result.
        like: "twofold", or "tensorflow" for TensorFlow's numbers.
    Returns:
        Tensor of `shape`. No number's probability is off by more than a part in 2**64 of high - low; of TensorFlow's by
        a part in 2**32 (2**64 for 64-bit integers).
    Raises:
        InvalidArgumentError: `low` is not less than `high`.
    """


def _param_infer(op: Op, state: Spec, *params: Spec, shape: Shape, dtype: DType, like: str = LIKE_TWOFOLD) -> Spec:
    operands = (state, *params)
    _require_state(op, operands)
    _require_like(op, operands, like)
    _require_choice(op, operands, dtype, _COUNTS)
    shape = _sizes(op, operands, shape)
    for n, param in enumerate(params, 1):
        rules.require_dtype(op, operands, n, dt.FLOATING)
        if not rules.broadcasts_to(param.dims, shape):
            raise rules.fail(op, operands, f"{op.params[n]} does not broadcast to shape {shape}.")
    return spec(shape, dtype)


@primitive(infer=_param_infer, vjp=None, lower="random", traits=("random",))
def random_gamma(state: AnyTensor, alpha: AnyTensor, *, shape: Shape, dtype: DType = dt.float32,
                 like: str = LIKE_TWOFOLD) -> AnyTensor:
    """Gamma numbers of scale 1.

    Args:
        state: a stream, int64[3].
        alpha: floating tensor, the distribution's shape; it broadcasts to `shape`.
        shape: of the result.
        dtype: floating, of the result; numbers are made in float64.
        like: "twofold", or "tensorflow" for TensorFlow's numbers.
    Returns:
        Tensor of `shape` and `dtype`; NaN where alpha is not positive.
    Raises:
        ShapeError: `alpha` does not broadcast to `shape`.
    Source: Marsaglia & Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000).
    """


@primitive(infer=_param_infer, vjp=None, lower="random", traits=("random",))
def random_poisson(state: AnyTensor, mean: AnyTensor, *, shape: Shape, dtype: DType = dt.float32,
                   like: str = LIKE_TWOFOLD) -> AnyTensor:
    """Poisson numbers.

    Args:
        state: a stream, int64[3].
        mean: floating tensor that broadcasts to `shape`.
        shape: of the result.
        dtype: floating, int32 or int64, of the result.
        like: "twofold", or "tensorflow" for TensorFlow's numbers.
    Returns:
        Tensor of `shape` and `dtype`; NaN (integers: 0) where the mean is negative or not finite.
    Raises:
        ShapeError: `mean` does not broadcast to `shape`.
    Source: Hoermann, "The transformed rejection method for generating Poisson random variables" (1993), from means of
        10 on; sequential search below.
    """


@primitive(infer=_param_infer, vjp=None, lower="random", traits=("random",))
def random_binomial(state: AnyTensor, counts: AnyTensor, probs: AnyTensor, *, shape: Shape,
                    dtype: DType = dt.float32, like: str = LIKE_TWOFOLD) -> AnyTensor:
    """Binomial numbers.

    Args:
        state: a stream, int64[3].
        counts: floating tensor, how many trials; it broadcasts to `shape`.
        probs: floating tensor, how likely each succeeds; it broadcasts to `shape`.
        shape: of the result.
        dtype: floating, int32 or int64, of the result.
        like: "twofold", or "tensorflow" for TensorFlow's numbers.
    Returns:
        Tensor of `shape` and `dtype`; NaN (integers: 0) where a parameter is not valid.
    Raises:
        ShapeError: a parameter does not broadcast to `shape`.
    Source: Hoermann, "The generation of binomial random variates", J. Stat. Comput. Simul. 46 (1993), from means of 10
        on; sequential search below, where TensorFlow adds up geometric numbers.
    """


def _cut_infer(op: Op, state: Spec, *params: Spec, shape: Shape) -> Spec:
    operands = (state, *params)
    _require_state(op, operands)
    dtype = rules.same_dtype(op, operands, (1, 2, 3, 4))
    rules.require_dtype(op, operands, 1, {dt.float16, dt.float32, dt.float64})
    shape = _sizes(op, operands, shape)
    for n, param in enumerate(params, 1):
        if not rules.broadcasts_to(param.dims, shape):
            raise rules.fail(op, operands, f"{op.params[n]} does not broadcast to shape {shape}.")
    return spec(shape, dtype)


@primitive(infer=_cut_infer, vjp=None, lower="random", traits=("random",), match=(1, 2, 3, 4))
def random_cut_normal(state: AnyTensor, mean: AnyTensor, deviation: AnyTensor, low: AnyTensor, high: AnyTensor, *,
                      shape: Shape) -> AnyTensor:
    """Normal numbers between bounds, TensorFlow's.

    Args:
        state: a stream, int64[3].
        mean, deviation: of the normal distribution.
        low, high: the bounds. All four are of one floating dtype and broadcast to `shape`.
        shape: of the result.
    Returns:
        Tensor of `shape`. One thread draws it.
    Raises:
        InvalidArgumentError: a deviation is not positive, a lower bound not below the upper, or none of both finite.
    Source: Robert, "Simulation of truncated normal variables", Statistics and Computing 5 (1995).
    """


# -- orders -------------------------------------------------------------------------------------------
def _permutation_infer(op: Op, state: Spec, *, size: DimLike, dtype: DType) -> Spec:
    _require_state(op, (state,))
    _require_choice(op, (state,), dtype, {dt.int32, dt.int64})
    return spec(_sizes(op, (state,), (size,)), dtype)


@primitive(infer=_permutation_infer, vjp=None, lower="random", traits=("random", "total"))
def random_permutation(state: AnyTensor, *, size: DimLike, dtype: DType = dt.int64) -> AnyTensor:
    """The numbers 0, 1, ... size - 1 in random order, by exchanges of each with one of those that follow.

    Args:
        state: a stream, int64[3]; a word of it for each number but the last.
        size: how many.
        dtype: int32 or int64.
    Returns:
        Vector of `size` integers: TensorFlow's order.
    Source: Fisher & Yates, "Statistical tables" (1938); Durstenfeld, "Algorithm 235: Random permutation" (1964).
    """


def _place_infer(op: Op, index: Spec, seed: Spec, most: Spec) -> Spec:
    operands = (index, seed, most)
    dtype = rules.same_dtype(op, operands, (0, 2))
    rules.require_dtype(op, operands, 0, _BITS)
    rules.require_dtype(op, operands, 1, _BITS)
    if not seed.dims or not dm.require_eq(seed.dims[-1], 2):
        raise rules.fail(op, operands, "seed must have shape [2] or [n, 2].")
    for n, dims in ((1, seed.dims[:-1]), (2, most.dims)):
        if not rules.broadcasts_to(dims, index.dims):
            raise rules.fail(op, operands, f"{op.params[n]} does not broadcast to index.")
    return spec(index.dims, dtype)


@primitive(infer=_place_infer, vjp=None, lower="random", traits=("random",), match=(0, 2))
def random_place(index: AnyTensor, seed: AnyTensor, most: AnyTensor) -> AnyTensor:
    """Where indices go in an order of [0, most] that the seed decides; no order is made for it.

    Args:
        index: int32, int64, uint32 or uint64 numbers within [0, most].
        seed: integers of 32 or 64 bits, [2] for all or [n, 2]; of each the low 32 bits.
        most: the largest indices; they broadcast to `index`.
    Returns:
        Tensor like `index`, TensorFlow's places.
    Source: the block cipher Simon with four rounds, on as many bits as `most` has, repeated until it is in range.
    """
