"""tf.random: TensorFlow's numbers, from counter-based streams, the same for the same seed on any number of threads.

Draws such as `tf.random.normal` take the next part of a stream that `tf.random.set_seed` governs; a
`tf.random.Generator` holds a stream of its own (`twofold/_ops/random_generator.py`); the `stateless_` forms
(`twofold/_ops/random_stateless.py`) take a seed and give the same numbers every time. All go through
`twofold/_ops/random_draws.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from twofold._front.api import one_size, public, shape_arg, tensor
from twofold._front.namespace import publish
from twofold._ops import random_draws as draws
from twofold._ops.random_generator import (
    Algorithm,
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
)
from twofold._ops.random_stateless import (
    fold_in,
    split,
    stateless_binomial,
    stateless_categorical,
    stateless_gamma,
    stateless_normal,
    stateless_parameterized_truncated_normal,
    stateless_poisson,
    stateless_shuffle,
    stateless_truncated_normal,
    stateless_uniform,
)
from twofold.ir import dtypes as dt
from twofold.runtime import random as streams

from . import experimental

__all__ = ["experimental", "set_seed", "normal", "uniform", "truncated_normal", "shuffle", "categorical", "gamma",
           "poisson", "Algorithm", "Generator", "create_rng_state", "get_global_generator", "set_global_generator",
           "fold_in", "split", "stateless_binomial", "stateless_categorical", "stateless_gamma", "stateless_normal",
           "stateless_parameterized_truncated_normal", "stateless_poisson", "stateless_shuffle",
           "stateless_truncated_normal", "stateless_uniform"]


def _stream(kind: str, seed: Any) -> draws.Stream:
    return draws.op_stream(kind, draws.seed_number(seed))


@public
def set_seed(seed: int) -> None:
    """Sets the global seed: the draws that follow are those that followed it before.

    A draw without a seed of its own gets one, which the global seed decides: another at each call, and in a function
    another at each place. A draw with `seed=` continues the stream of both seeds; in functions each place has a stream
    of its own. Without a global seed, draws with a seed repeat from one run of a program to the next, and the others do
    not. Numbers are those of TensorFlow.

    Args:
        seed: an integer, or None to go back to unpredictable numbers.

    >>> import twofold as tf
    >>> tf.random.set_seed(5)
    >>> a, b = tf.random.uniform([]), tf.random.uniform([])
    >>> tf.random.set_seed(5)
    >>> bool(tf.random.uniform([]) == a), bool(a == b)
    (True, False)
    """
    streams.set_seed(draws.seed_number(seed))


@public
def normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dt.float32, seed: int | None = None,
           name: str | None = None) -> Any:
    """Normally distributed numbers.

    Args:
        shape: of the result.
        mean, stddev: of the distribution; numbers or tensors that broadcast with `shape`. Differentiable.
        dtype: a floating one.
        seed: op seed, see `tf.random.set_seed`.
        name: has no effect.
    Returns:
        Tensor of `dtype` and of `shape`.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not floating, or shapes do not broadcast.

    Source: Box & Muller (1958), on Philox4x32-10 (Salmon et al., SC 2011).

    >>> import twofold as tf
    >>> x = tf.random.normal([1000], mean=3.0, seed=1)
    >>> bool(tf.abs(tf.reduce_mean(x) - 3.0) < 0.2)
    True
    """
    dtype = dt.as_dtype(dtype)
    return draws.normal(_stream(f"normal {dtype.name}", seed), shape_arg(shape), mean, stddev, dtype)


@public
def truncated_normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dt.float32, seed: int | None = None,
                     name: str | None = None) -> Any:
    """Normally distributed numbers, none of them more than two standard deviations from the mean.

    Args:
        shape: of the result.
        mean, stddev: of the normal distribution that is cut; they broadcast with `shape`. Differentiable.
        dtype: a floating one.
        seed: op seed, see `tf.random.set_seed`.
        name: has no effect.
    Returns:
        Tensor of `dtype` and of `shape`.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not floating, or shapes do not broadcast.

    >>> import twofold as tf
    >>> bool(tf.reduce_max(tf.abs(tf.random.truncated_normal([1000]))) <= 2.0)
    True
    """
    dtype = dt.as_dtype(dtype)
    stream = _stream(f"truncated_normal {dtype.name}", seed)
    return draws.truncated_normal(stream, shape_arg(shape), mean, stddev, dtype)


@public
def uniform(shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dt.float32, seed: int | None = None,
            name: str | None = None) -> Any:
    """Numbers uniform in [minval, maxval).

    Args:
        shape: of the result.
        minval: lower bound; it can occur.
        maxval: upper bound; 1 for floats by default. Integers need one; it does not occur.
        dtype: floating or integer.
        seed: op seed, see `tf.random.set_seed`.
        name: has no effect.
    Returns:
        Tensor of `dtype` and of `shape`; rounding may make a float reach `maxval`. No integer's probability is off by
        more than a part in 2**32 of the span, in 2**64 for 64-bit ones.
    Raises:
        ValueError: `maxval` is missing for integers.
        tf.errors.InvalidArgumentError: integer bounds do not rise, or shapes do not broadcast.

    >>> import twofold as tf
    >>> dice = tf.random.uniform([100], 1, 7, tf.int32)
    >>> bool(tf.reduce_all((dice >= 1) & (dice <= 6)))
    True
    """
    dtype = dt.as_dtype(dtype)
    return draws.uniform(_stream(f"uniform {dtype.name}", seed), shape_arg(shape), minval, maxval, dtype)


@public
def shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Any:
    """The rows of a tensor in random order.

    Args:
        value: tensor of rank 1 or more.
        seed: op seed, see `tf.random.set_seed`.
        name: has no effect.
    Returns:
        Tensor like `value`, shuffled along its first axis. Differentiable.
    Raises:
        tf.errors.InvalidArgumentError: `value` is a scalar.

    >>> import twofold as tf
    >>> sorted(tf.random.shuffle([1, 2, 3, 4]).numpy().tolist())
    [1, 2, 3, 4]
    """
    value = tensor(value)
    return draws.shuffle(_stream(f"shuffle {value.dtype.name}", seed), value)


@public
def categorical(logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None,
                name: str | None = None) -> Any:
    """Classes drawn with the probabilities that rows of logits stand for.

    Args:
        logits: floating matrix, a row of unnormalised log-probabilities for each distribution.
        num_samples: how many draws from each row.
        dtype: int32 or int64 (default).
        seed: op seed, see `tf.random.set_seed`.
        name: has no effect.
    Returns:
        Integer matrix, a row of `num_samples` classes for each row of `logits`.
    Raises:
        tf.errors.InvalidArgumentError: `logits` is no floating matrix, or has no columns.

    >>> import twofold as tf
    >>> tf.random.categorical([[0.0, float("-inf")], [float("-inf"), 0.0]], 3).numpy().tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    logits, dtype = tensor(logits), dt.int64 if dtype is None else dt.as_dtype(dtype)
    stream = _stream(f"categorical {logits.dtype.name} {dtype.name}", seed)
    return draws.categorical(stream, logits, one_size(num_samples, "num_samples"), dtype)


@public
def gamma(shape: Any, alpha: Any, beta: Any = None, dtype: Any = dt.float32, seed: int | None = None,
          name: str | None = None) -> Any:
    """Gamma-distributed numbers, `shape` of them for each pair of parameters.

    Args:
        shape: how many for each pair; goes before the parameters' shape.
        alpha: floating tensor, the distribution's shape parameter. No gradient by it.
        beta: its rate, 1 by default; broadcasts with `alpha`. Differentiable.
        dtype: floating, of parameters and result.
        seed: op seed, see `tf.random.set_seed`.
        name: has no effect.
    Returns:
        Tensor of shape `shape + broadcast(alpha, beta).shape`; NaN where alpha is not positive.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not floating, or the parameters do not broadcast.

    Source: Marsaglia & Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000).

    >>> import twofold as tf
    >>> tf.random.gamma([10], [[1.0], [3.0], [5.0]], beta=[[3.0, 4.0]]).shape
    TensorShape([10, 3, 2])
    """
    dtype = dt.as_dtype(dtype)
    return draws.gamma(_stream(f"gamma {dtype.name}", seed), shape_arg(shape), alpha, beta, dtype, before=True)


@public
def poisson(shape: Any, lam: Any, dtype: Any = dt.float32, seed: int | None = None, name: str | None = None) -> Any:
    """Poisson-distributed numbers, `shape` of them for each mean.

    Args:
        shape: how many for each mean; goes before the shape of `lam`.
        lam: floating tensor of means.
        dtype: of the result: floating, int32 or int64.
        seed: op seed, see `tf.random.set_seed`.
        name: has no effect.
    Returns:
        Tensor of shape `shape + lam.shape`.
    Raises:
        tf.errors.InvalidArgumentError: a dtype is none of those.

    Source: Hoermann, "The transformed rejection method for generating Poisson random variables" (1993).

    >>> import twofold as tf
    >>> tf.random.poisson([10], [12.2, 3.3]).shape
    TensorShape([10, 2])
    """
    lam, dtype = tensor(lam), dt.as_dtype(dtype)
    stream = _stream(f"poisson {lam.dtype.name} {dtype.name}", seed)
    return draws.poisson(stream, shape_arg(shape), lam, dtype, before=True)


#: names by the module of `_ops` that is loaded for them when one is first asked for
_LATER = {"nn_sampled": ("all_candidate_sampler", "fixed_unigram_candidate_sampler", "log_uniform_candidate_sampler",
                         "uniform_candidate_sampler")}
_HOMES = {name: module for module, names in _LATER.items() for name in names}
__all__ += _HOMES


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"twofold._ops.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


publish(__name__)
