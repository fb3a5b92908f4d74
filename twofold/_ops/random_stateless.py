"""Stateless draws: the seed, two integers, is an argument, and the same seed gives the same numbers every time."""

from __future__ import annotations

from typing import Any

from twofold._front.api import one_size, public, shape_arg, tensor
from twofold._ops import random_draws as draws
from twofold.ir import dtypes as dt
from twofold.ir import ops

__all__ = ["fold_in", "split", "stateless_binomial", "stateless_categorical", "stateless_gamma", "stateless_normal",
           "stateless_poisson", "stateless_shuffle", "stateless_truncated_normal", "stateless_uniform"]


def _stream(seed: Any, kind: str = "draw") -> draws.Stream:
    """The stream of a seed for draws of a kind, so that those of different kinds share no bits."""
    return lambda shape: ops.random_seed_state(seed, purpose=kind)


@public
def stateless_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dt.float32,
                     name: str | None = None, alg: Any = "auto_select") -> Any:
    """Normally distributed numbers that the seed decides.

    Args:
        shape: of the result.
        seed: int32 or int64 tensor of shape [2].
        mean, stddev: of the distribution; they broadcast with `shape`. Differentiable.
        dtype: a floating one.
        name, alg: have no effect.
    Returns:
        Tensor of `dtype` and of `shape`.
    Raises:
        tf.errors.InvalidArgumentError: `seed` does not have shape [2], or the dtype is not floating.

    >>> import twofold as tf
    >>> a = tf.random.stateless_normal([3], seed=[1, 2])
    >>> bool(tf.reduce_all(a == tf.random.stateless_normal([3], seed=[1, 2])))
    True
    """
    return draws.normal(_stream(seed, "normal"), shape_arg(shape), mean, stddev, dt.as_dtype(dtype))


@public
def stateless_truncated_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dt.float32,
                               name: str | None = None, alg: Any = "auto_select") -> Any:
    """Normally distributed numbers within two deviations of the mean, that the seed decides.

    Args:
        shape: of the result.
        seed: int32 or int64 tensor of shape [2].
        mean, stddev: of the normal distribution that is cut; they broadcast with `shape`. Differentiable.
        dtype: a floating one.
        name, alg: have no effect.
    Returns:
        Tensor of `dtype` and of `shape`.
    Raises:
        tf.errors.InvalidArgumentError: `seed` does not have shape [2], or the dtype is not floating.

    >>> import twofold as tf
    >>> bool(tf.reduce_max(tf.abs(tf.random.stateless_truncated_normal([100], seed=[1, 2]))) <= 2.0)
    True
    """
    return draws.truncated_normal(_stream(seed, "truncated_normal"), shape_arg(shape), mean, stddev, dt.as_dtype(dtype))


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
        name, alg: have no effect.
    Returns:
        Tensor of `dtype` and of `shape`.
    Raises:
        ValueError: one bound is missing for integers.
        tf.errors.InvalidArgumentError: `seed` does not have shape [2], or integer bounds do not rise.

    >>> import twofold as tf
    >>> tf.random.stateless_uniform([], seed=[1, 2], minval=4, maxval=5, dtype=tf.int32).numpy().item()
    4
    """
    dtype = dt.as_dtype(dtype)
    if dtype.is_integer and minval is None and maxval is None:
        return draws.full_integers(_stream(seed, "full_integers"), shape_arg(shape), dtype)
    if minval is None:
        raise ValueError("stateless_uniform: minval is missing.")
    return draws.uniform(_stream(seed, "integers" if dtype.is_integer else "draw"), shape_arg(shape), minval, maxval,
                         dtype)


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
    return draws.categorical(_stream(seed, "categorical"), tensor(logits), count, dt.as_dtype(dtype))


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
    return draws.shuffle(_stream(seed, "shuffle"), tensor(value))


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
    return draws.gamma(_stream(seed, "gamma"), shape_arg(shape), alpha, beta, dt.as_dtype(dtype), before=False)


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
    return draws.poisson(_stream(seed, "poisson"), shape_arg(shape), lam, dt.as_dtype(dtype), before=False)


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
    return draws.binomial(_stream(seed, "binomial"), shape_arg(shape), counts, probs, dt.as_dtype(output_dtype))


@public
def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Any:
    """A seed made of a seed and a number. In TensorFlow also `tf.random.experimental.stateless_fold_in`.

    Args:
        seed: int32 or int64 tensor of shape [2].
        data: integer scalar.
        alg: has no effect.
    Returns:
        Tensor like `seed`.
    Raises:
        tf.errors.InvalidArgumentError: `seed` does not have shape [2].

    >>> import twofold as tf
    >>> tf.random.fold_in([1, 2], 3).shape
    TensorShape([2])
    """
    seed = tensor(seed)
    state = ops.random_seed_state(seed, purpose="fold_in")
    state = ops.random_skip(state, ops.cast(tensor(data), dtype=dt.int64))
    return ops.random_bits(state, shape=(2,), dtype=seed.dtype)


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
    >>> tf.random.split([1, 2], num=3).shape
    TensorShape([3, 2])
    """
    seed = tensor(seed)
    state = ops.random_seed_state(seed, purpose="split")
    return ops.random_bits(state, shape=(one_size(num, "num"), 2), dtype=seed.dtype)
