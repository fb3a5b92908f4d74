"""Dropout: random zeros. Re-exported by `twofold/nn.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold import random
from twofold._front.api import ints, public, tensor
from twofold._ops import random_draws
from twofold.ir import dtypes as dt
from twofold.ir import grad, ops
from twofold.ir.errors import DTypeError, InvalidArgumentError, op_error
from twofold.ir.spec import TensorSpec

__all__ = ["dropout", "general_dropout", "stateless_dropout"]


def _noise_dims(x: Any, noise_shape: Any) -> tuple[Any, ...]:
    """The shape of the random choices: `None` in `noise_shape` stands for the size of `x` there."""
    if noise_shape is None:
        return x.dims
    given = list(noise_shape) if isinstance(noise_shape, (list, tuple)) else ints(noise_shape, "noise_shape")
    if len(given) != len(x.dims):
        raise op_error(InvalidArgumentError, "dropout", "noise_shape must have as many sizes as x has axes.",
                       [("x", x), ("noise_shape", noise_shape)])
    return tuple(size if g is None else ints(g, "noise_shape")[0] for g, size in zip(given, x.dims, strict=True))


@public
def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None) -> Any:
    """Sets elements to 0 at random and divides the others by `1 - rate`, so that the expected value stays.

    Source: Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting" (2014).

    Args:
        x: floating tensor.
        rate: how probable a 0 is: a number in [0, 1), or a scalar tensor.
        noise_shape: the shape of the random choices, which broadcast to `x`; None for one choice per element.
        seed: see `tf.random.set_seed`.
        name: has no effect.
    Returns:
        Tensor like `x`; `x` itself where `rate` is the number 0.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating, `rate` is out of range, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.random.set_seed(1)
    >>> y = tf.nn.dropout(tf.ones([1000]), rate=0.5, seed=7)
    >>> sorted(set(y.numpy().tolist()))
    [0.0, 2.0]
    """
    return _dropped(x, rate, noise_shape, lambda dims, kind: random.uniform(dims, dtype=kind, seed=seed),
                    lambda: random_draws.pass_over(seed))  # as in TensorFlow: what follows does not depend on the rate


def _dropped(x: Any, rate: Any, noise_shape: Any, draw: Callable[[Any, Any], Any],
             spared: Callable[[], None] = lambda: None) -> Any:
    """Dropout by what `draw` gives for a shape and a dtype, numbers in [0, 1); `spared` where there is none to draw."""
    x = tensor(x)
    if not x.dtype.is_floating:
        raise op_error(DTypeError, "dropout", f"x must be floating; got {x.dtype.name}.", [("x", x)])
    noise_dims = _noise_dims(x, noise_shape)
    if isinstance(rate, (int, float)):
        if not 0 <= rate < 1:
            raise op_error(InvalidArgumentError, "dropout", "rate must be a scalar tensor or a number in [0, 1).",
                           [("x", x), ("rate", rate)])
        if rate == 0:
            spared()
            return x
    ops.where.infer(ops.where, TensorSpec(noise_dims, dt.bool_), x, TensorSpec([], x.dtype))  # before anything is drawn
    if isinstance(rate, (int, float)):
        share, scaled = tensor(rate, x.dtype), ops.multiply(x, tensor(1 / (1 - rate), x.dtype))
    else:
        share = ops.cast(rate, dtype=x.dtype)
        scaled = ops.divide(x, ops.subtract(grad.scalar(1, x), share))
    keep = ops.greater_equal(draw(noise_dims, x.dtype), share)
    return ops.where(keep, scaled, grad.scalar(0, x))


@public
def general_dropout(x: Any, rate: Any, uniform_sampler: Any, noise_shape: Any = None, name: str | None = None) -> Any:
    """`tf.nn.dropout` by random numbers that a function gives.

    Args:
        x: floating tensor.
        rate: how probable a 0 is: a number in [0, 1), or a scalar tensor.
        uniform_sampler: called with a shape and `dtype=`; gives a tensor of numbers in [0, 1).
        noise_shape: the shape of the random choices, which broadcast to `x`; None for one choice per element.
        name: has no effect.
    Returns:
        Tensor like `x`; `x` itself where `rate` is the number 0.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating, `rate` is out of range, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.nn.experimental.general_dropout(tf.ones([3]), 0.5, lambda shape, dtype: tf.ones(shape, dtype) * 0.75).numpy()
    array([2., 2., 2.], dtype=float32)
    """
    return _dropped(x, rate, noise_shape, lambda dims, kind: tensor(uniform_sampler(dims, dtype=kind), kind))


@public
def stateless_dropout(x: Any, rate: Any, seed: Any, rng_alg: Any = None, noise_shape: Any = None,
                      name: str | None = None) -> Any:
    """`tf.nn.dropout` whose choices depend on the seed alone.

    Args:
        x: floating tensor.
        rate: how probable a 0 is: a number in [0, 1), or a scalar tensor.
        seed: integers [2].
        rng_alg: "philox", "auto_select" or None: there is one algorithm.
        noise_shape: the shape of the random choices, which broadcast to `x`; None for one choice per element.
        name: has no effect.
    Returns:
        Tensor like `x`; `x` itself where `rate` is the number 0.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating, `rate` is out of range, or shapes do not fit.

    >>> import twofold as tf
    >>> y = tf.nn.experimental.stateless_dropout(tf.ones([1000]), 0.5, seed=[1, 2])
    >>> sorted(set(y.numpy().tolist()))
    [0.0, 2.0]
    """
    kind = "auto_select" if rng_alg is None else rng_alg
    return _dropped(x, rate, noise_shape,
                    lambda dims, drawn: random.stateless_uniform(dims, seed, dtype=drawn, alg=kind))
