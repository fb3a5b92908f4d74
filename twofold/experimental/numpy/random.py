"""`tf.experimental.numpy.random`: random numbers with NumPy's names, from the streams of `tf.random`."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import public
from twofold._front.namespace import publish

from ._rules import as_dtype, default_float, tensor

__all__ = ["poisson", "rand", "randint", "randn", "random", "seed", "standard_normal", "uniform"]


def _shape(size: Any) -> Any:
    return () if size is None else (size,) if isinstance(size, int) else size


@public
def seed(s: int) -> None:
    """Set the seed of the streams; the same as `tf.random.set_seed`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.random.seed(3)
    """
    tf.random.set_seed(s)


@public
def randn(*args: int) -> Any:
    """Numbers of the standard normal distribution, in a shape whose sizes are the arguments.

    >>> import twofold as tf
    >>> tf.experimental.numpy.random.randn(2, 3).shape
    TensorShape([2, 3])
    """
    return standard_normal(args)


@public
def standard_normal(size: Any = None) -> Any:
    """Numbers of the standard normal distribution.

    Args:
        size: the shape; by default a single number.

    >>> import twofold as tf
    >>> tf.experimental.numpy.random.standard_normal(4).shape
    TensorShape([4])
    """
    return tf.random.normal(_shape(size), dtype=default_float())


@public
def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    """Numbers spread evenly between two.

    Args:
        low, high: numbers or tensors, which broadcast.
        size: the shape; by default that in which the two broadcast.

    >>> import twofold as tf
    >>> tf.experimental.numpy.random.uniform(2.0, 3.0, [4]).shape
    TensorShape([4])
    """
    low, high = tensor(low, default_float()), tensor(high, default_float())
    shape = tf.broadcast_dynamic_shape(tf.shape(low), tf.shape(high)) if size is None else _shape(size)
    return low + (high - low) * tf.random.uniform(shape, dtype=default_float())


@public
def rand(*size: int) -> Any:
    """Numbers spread evenly between 0 and 1, in a shape whose sizes are the arguments.

    >>> import twofold as tf
    >>> tf.experimental.numpy.random.rand(2, 3).shape
    TensorShape([2, 3])
    """
    return uniform(0.0, 1.0, size)


@public
def random(size: Any = None) -> Any:
    """Numbers spread evenly between 0 and 1.

    Args:
        size: the shape; by default a single number.

    >>> import twofold as tf
    >>> tf.experimental.numpy.random.random((2,)).shape
    TensorShape([2])
    """
    return uniform(0.0, 1.0, size)


@public
def randint(low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64) -> Any:
    """Integers spread evenly from a first one up to a last one that is not among them.

    Args:
        low: the first; the last, from 0, if `high` is None.
        high: the last.
        size: the shape; by default a single number.
        dtype: int32 or int64.
    Raises:
        ValueError: the dtype is another.

    >>> import twofold as tf
    >>> bool(tf.reduce_all(tf.experimental.numpy.random.randint(3, size=9) < 3))
    True
    """
    target = as_dtype(dtype)
    if target not in (tf.int32, tf.int64):
        raise ValueError(f"randint: dtype must be int32 or int64; got {target.name}.")
    low, high = (0, low) if high is None else (low, high)
    return tf.random.uniform(_shape(size), tensor(low, target), tensor(high, target), dtype=target)


@public
def poisson(lam: Any = 1.0, size: Any = None) -> Any:
    """Counts of Poisson's distribution, as int64.

    Args:
        lam: their mean, a number or a tensor.
        size: the shape; by default that of `lam`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.random.poisson(3.0, 5).shape
    TensorShape([5])
    """
    if size is None:
        return tf.random.poisson((), tensor(lam, default_float()), dtype=tf.int64)
    return tf.random.poisson(_shape(size), lam, dtype=tf.int64)


publish(__name__)
