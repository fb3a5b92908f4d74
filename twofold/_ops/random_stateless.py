"""Stateless draws: the seed, two integers, is an argument, and the same seed gives the same numbers every time."""

from __future__ import annotations

from typing import Any

from twofold._front.api import one_size, public, shape_arg, tensor
from twofold._ops import random_draws as draws
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.ops.random import LIKE_TENSORFLOW

__all__ = ["fold_in", "index_shuffle", "split", "stateless_binomial", "stateless_categorical", "stateless_gamma",
           "stateless_normal", "stateless_parameterized_truncated_normal", "stateless_poisson", "stateless_shuffle",
           "stateless_truncated_normal", "stateless_uniform"]


def _stream(seed: Any, like: str = LIKE_TENSORFLOW, kind: str = "draw") -> draws.Stream:
    """The stream of a seed; of twofold's, draws of different kinds share no bits."""
    return lambda blocks: ops.random_seed_state(seed, purpose=kind if like != LIKE_TENSORFLOW else "draw", like=like)


@public
def stateless_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dt.float32,
                     name: str | None = None, alg: Any = "auto_select") -> Any:
    """Normally distributed numbers that the seed decides.

    Args:
        shape: of the result.
        seed: int32 or int64 tensor of shape [2].
        mean, stddev: of the distribution; they broadcast with `shape`. Differentiable.
        dtype: a floating one.
        name: has no effect.
        alg: "auto_select" and "philox" for TensorFlow's numbers, "twofold" for its own, some of which take less time.
    Returns:
        Tensor of `dtype` and of `shape`.
    Raises:
        tf.errors.InvalidArgumentError: `seed` does not have shape [2], or the dtype is not floating.

    >>> import twofold as tf
    >>> a = tf.random.stateless_normal([3], seed=[1, 2])
    >>> bool(tf.reduce_all(a == tf.random.stateless_normal([3], seed=[1, 2])))
    True
    """
    like = draws.like_of(alg)
    return draws.normal(_stream(seed, like, "normal"), shape_arg(shape), mean, stddev, dt.as_dtype(dtype), like)


@public
def stateless_truncated_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dt.float32,
                               name: str | None = None, alg: Any = "auto_select") -> Any:
    """Normally distributed numbers within two deviations of the mean, that the seed decides.

    Args:
        shape: of the result.
        seed: int32 or int64 tensor of shape [2].
        mean, stddev: of the normal distribution that is cut; they broadcast with `shape`. Differentiable.
        dtype: a floating one.
        name: has no effect.
        alg: "auto_select" and "philox" for TensorFlow's numbers, "twofold" for its own, some of which take less time.
    Returns:
        Tensor of `dtype` and of `shape`.
    Raises:
        tf.errors.InvalidArgumentError: `seed` does not have shape [2], or the dtype is not floating.

    >>> import twofold as tf
    >>> bool(tf.reduce_max(tf.abs(tf.random.stateless_truncated_normal([100], seed=[1, 2]))) <= 2.0)
    True
    """
    like = draws.like_of(alg)
    stream = _stream(seed, like, "truncated_normal")
    return draws.truncated_normal(stream, shape_arg(shape), mean, stddev, dt.as_dtype(dtype), like)


@public
def stateless_uniform(shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dt.float32,
                      name: str | None = None, alg: Any = "auto_select") -> Any:
    """Numbers uniform in [minval, maxval) that the seed decides.

    Args:
        shape: of the result.
        seed: int32 or int64 tensor of shape [2].
        minval: lower bound; None, with `maxval` None, for integers of which every bit is random.
        maxval: upper bound, which does not occur; 1 for floats by default.
        dtype: floating or integer.
        name: has no effect.
        alg: "auto_select" and "philox" for TensorFlow's numbers, "twofold" for its own, some of which take less time.
    Returns:
        Tensor of `dtype` and of `shape`.
    Raises:
        ValueError: one bound is missing for integers.
        tf.errors.InvalidArgumentError: `seed` does not have shape [2], or integer bounds do not rise.

    >>> import twofold as tf
    >>> tf.random.stateless_uniform([], seed=[1, 2], minval=4, maxval=5, dtype=tf.int32).numpy().item()
    4
    """
    dtype, like = dt.as_dtype(dtype), draws.like_of(alg)
    if dtype.is_integer and minval is None and maxval is None:
        return draws.full_integers(_stream(seed, like, "full_integers"), shape_arg(shape), dtype)
    if minval is None:
        raise ValueError("stateless_uniform: minval is missing.")
    stream = _stream(seed, like, "integers" if dtype.is_integer else "draw")
    return draws.uniform(stream, shape_arg(shape), minval, maxval, dtype, like)


@public
def stateless_categorical(logits: Any, num_samples: Any, seed: Any, dtype: Any = dt.int64,
                          name: str | None = None) -> Any:
    """Classes drawn with the probabilities that rows of logits stand for, as the seed decides.

    Args:
        logits: floating matrix, a row of unnormalised log-probabilities for each distribution.
        num_samples: how many draws from each row.
        seed: int32 or int64 tensor of shape [2].
        dtype: int32 or int64.
        name: has no effect.
    Returns:
        Integer matrix, a row of `num_samples` classes for each row of `logits`.
    Raises:
        tf.errors.InvalidArgumentError: `logits` is no floating matrix, or `seed` does not have shape [2].

    >>> import twofold as tf
    >>> tf.random.stateless_categorical([[0.0, float("-inf")]], 3, seed=[1, 2]).numpy().tolist()
    [[0, 0, 0]]
    """
    count = one_size(num_samples, "num_samples")
    return draws.categorical(_stream(seed), tensor(logits), count, dt.as_dtype(dtype))


@public
def stateless_shuffle(value: Any, seed: Any, alg: Any = "auto_select", name: str | None = None) -> Any:
    """The rows of a tensor in an order that the seed decides. In TensorFlow this is `tf.random.experimental`'s.

    Args:
        value: tensor of rank 1 or more.
        seed: int32 or int64 tensor of shape [2].
        alg, name: have no effect.
    Returns:
        Tensor like `value`, shuffled along its first axis. Differentiable.
    Raises:
        tf.errors.InvalidArgumentError: `value` is a scalar, or `seed` does not have shape [2].

    >>> import twofold as tf
    >>> sorted(tf.random.stateless_shuffle([1, 2, 3, 4], seed=[1, 2]).numpy().tolist())
    [1, 2, 3, 4]
    """
    return draws.shuffle(_stream(seed), tensor(value))


@public
def stateless_gamma(shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = dt.float32,
                    name: str | None = None) -> Any:
    """Gamma-distributed numbers that the seed decides.

    Args:
        shape: of the result; the parameters broadcast to it.
        seed: int32 or int64 tensor of shape [2].
        alpha: floating tensor, the distribution's shape parameter. No gradient by it.
        beta: its rate, 1 by default. Differentiable.
        dtype: floating, of parameters and result.
        name: has no effect.
    Returns:
        Tensor of `dtype` and `shape`; NaN where alpha is not positive.
    Raises:
        tf.errors.InvalidArgumentError: `seed` does not have shape [2], or the parameters do not broadcast to `shape`.

    Source: Marsaglia & Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000).

    >>> import twofold as tf
    >>> tf.random.stateless_gamma([10, 2], seed=[12, 34], alpha=[0.5, 1.5]).shape
    TensorShape([10, 2])
    """
    return draws.gamma(_stream(seed), shape_arg(shape), alpha, beta, dt.as_dtype(dtype), before=False)


@public
def stateless_poisson(shape: Any, seed: Any, lam: Any, dtype: Any = dt.int32, name: str | None = None) -> Any:
    """Poisson-distributed numbers that the seed decides.

    Args:
        shape: of the result; `lam` broadcasts to it.
        seed: int32 or int64 tensor of shape [2].
        lam: floating tensor of means.
        dtype: of the result: floating, int32 or int64.
        name: has no effect.
    Returns:
        Tensor of `dtype` and `shape`.
    Raises:
        tf.errors.InvalidArgumentError: `seed` does not have shape [2], or `lam` does not broadcast to `shape`.

    Source: Hoermann, "The transformed rejection method for generating Poisson random variables" (1993).

    >>> import twofold as tf
    >>> tf.random.stateless_poisson([10, 2], seed=[12, 34], lam=[5.0, 15.0]).shape
    TensorShape([10, 2])
    """
    return draws.poisson(_stream(seed), shape_arg(shape), lam, dt.as_dtype(dtype), before=False)


@public
def stateless_binomial(shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = dt.int32,
                       name: str | None = None) -> Any:
    """Binomial numbers that the seed decides.

    Args:
        shape: of the result; the parameters broadcast to it.
        seed: int32 or int64 tensor of shape [2].
        counts: how many trials.
        probs: how likely each succeeds.
        output_dtype: of the result: floating, int32 or int64.
        name: has no effect.
    Returns:
        Tensor of `output_dtype` and `shape`.
    Raises:
        tf.errors.InvalidArgumentError: `seed` does not have shape [2], or a parameter does not broadcast to `shape`.

    Source: Hoermann, "The generation of binomial random variates", J. Stat. Comput. Simul. 46 (1993).

    >>> import twofold as tf
    >>> tf.random.stateless_binomial([3], seed=[1, 2], counts=10.0, probs=1.0).numpy().tolist()
    [10, 10, 10]
    """
    return draws.binomial(_stream(seed), shape_arg(shape), counts, probs, dt.as_dtype(output_dtype))


@public
def stateless_parameterized_truncated_normal(shape: Any, seed: Any, means: Any = 0.0, stddevs: Any = 1.0,
                                             minvals: Any = -2.0, maxvals: Any = 2.0, name: str | None = None) -> Any:
    """Normally distributed numbers between bounds, that the seed decides.

    Args:
        shape: of the result; the parameters broadcast to it.
        seed: int32 or int64 tensor of shape [2].
        means, stddevs: of the normal distributions that are cut; floating, all parameters of one dtype.
        minvals, maxvals: the bounds. One of the two may be infinite.
        name: has no effect.
    Returns:
        Tensor of `shape`. One thread draws it, number by number.
    Raises:
        tf.errors.InvalidArgumentError: `seed` does not have shape [2], a parameter does not broadcast, or is not valid.

    Source: Robert, "Simulation of truncated normal variables", Statistics and Computing 5 (1995).

    >>> import twofold as tf
    >>> x = tf.random.stateless_parameterized_truncated_normal([1000], [1, 2], minvals=3.0, maxvals=4.0)
    >>> bool(tf.reduce_all((x >= 3) & (x <= 4)))
    True
    """
    parameters = [tensor(x) for x in (means, stddevs, minvals, maxvals)]
    return draws.cut_normal(_stream(seed), shape_arg(shape), *parameters)


@public
def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Any:
    """A seed made of a seed and a number. In TensorFlow also `tf.random.experimental.stateless_fold_in`.

    Args:
        seed: int32 or int64 tensor of shape [2].
        data: integer scalar.
        alg: has no effect.
    Returns:
        Tensor of shape [2] and the dtype of `data`: a number that the seed decides, and `data`.
    Raises:
        tf.errors.InvalidArgumentError: `seed` does not have shape [2].

    >>> import twofold as tf
    >>> tf.random.fold_in([1, 2], 3).numpy().tolist()
    [1105988140, 3]
    """
    data = tensor(data)
    first = draws.full_integers(_stream(seed), (), data.dtype)
    return ops.concat(*[ops.expand_dims(x, axis=0) for x in (first, data)], axis=0)


@public
def split(seed: Any, num: Any = 2, alg: Any = "auto_select") -> Any:
    """Seeds made of one seed. In TensorFlow also `tf.random.experimental.stateless_split`.

    Args:
        seed: int32 or int64 tensor of shape [2].
        num: how many.
        alg: has no effect.
    Returns:
        Tensor of shape [num, 2] and the dtype of `seed`.
    Raises:
        tf.errors.InvalidArgumentError: `seed` does not have shape [2].

    >>> import twofold as tf
    >>> tf.random.split([1, 2], num=2).numpy().tolist()
    [[1105988140, 1738052849], [-335576002, 370444179]]
    """
    seed = tensor(seed)
    return draws.full_integers(_stream(seed), (one_size(num, "num"), 2), seed.dtype)


@public
def index_shuffle(index: Any, seed: Any, max_index: Any) -> Any:
    """Where indices go in an order of `[0, max_index]` that the seed decides, without making the order.

    Args:
        index: an integer within `[0, max_index]`, or a vector of them, of 32 or 64 bits.
        seed: int32, int64, uint32 or uint64 tensor of shape [2], or [n, 2] for a seed for each index.
        max_index: the largest index; it broadcasts with `index`.
    Returns:
        Tensor like `index`: each of `[0, max_index]` once for all indices. Small ranges take long: on average
        65536 / (max_index + 1) rounds of a cipher for an index.
    Raises:
        tf.errors.InvalidArgumentError: `seed` does not end in 2, or shapes do not broadcast.

    Source: Black & Rogaway, "Ciphers with arbitrary finite domains" (2002), by Simon with four rounds (Beaulieu et al.,
    2013).

    >>> import twofold as tf
    >>> tf.random.experimental.index_shuffle(tf.range(4), seed=[5, 9], max_index=3).numpy().tolist()
    [2, 0, 1, 3]
    """
    index, seed = tensor(index), tensor(seed)
    most = tensor(max_index, index.dtype)
    dims = dm.broadcast_shapes(index.dims, dm.broadcast_shapes(most.dims, seed.dims[:-1]))
    if len(dims) != len(index.dims) or dims != index.dims:
        index = ops.broadcast_to(index, shape=dims)
    return ops.random_place(index, seed, most)
