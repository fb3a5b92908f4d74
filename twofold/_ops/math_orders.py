"""Orders of elements, and the beta function of many variables: small functions of `tf.math`, re-exported by it."""

from __future__ import annotations

from typing import Any

from twofold._front.api import public, tensor
from twofold._ops.array_shape import reshape
from twofold._ops.math_comparison import less, less_equal
from twofold._ops.math_functions import lgamma
from twofold._ops.math_reductions import reduce_all, reduce_sum

__all__ = ["is_non_decreasing", "is_strictly_increasing", "lbeta"]


@public
def is_non_decreasing(x: Any, name: str | None = None) -> Any:
    """Whether no element, in row-major order, is smaller than the one before: a bool scalar.

    Args:
        x: real tensor.
        name: has no effect.

    >>> import twofold as tf
    >>> bool(tf.math.is_non_decreasing([1, 1, 2])), bool(tf.math.is_non_decreasing([2, 1]))
    (True, False)
    """
    flat = reshape(tensor(x), [-1])
    return reduce_all(less_equal(flat[:-1], flat[1:]))


@public
def is_strictly_increasing(x: Any, name: str | None = None) -> Any:
    """Whether each element, in row-major order, is larger than the one before: a bool scalar.

    Args:
        x: real tensor.
        name: has no effect.

    >>> import twofold as tf
    >>> bool(tf.math.is_strictly_increasing([1, 2, 3])), bool(tf.math.is_strictly_increasing([1, 1]))
    (True, False)
    """
    flat = reshape(tensor(x), [-1])
    return reduce_all(less(flat[:-1], flat[1:]))


@public
def lbeta(x: Any, name: str | None = None) -> Any:
    """The logarithm of the absolute beta function over the last axis: `sum(lgamma(x)) - lgamma(sum(x))`.

    Args:
        x: floating [.., numbers].
        name: has no effect.

    >>> import twofold as tf
    >>> print(f"{float(tf.math.lbeta([2.0, 3.0])):.4f}")  # log(1 / 12)
    -2.4849
    """
    x = tensor(x)
    return reduce_sum(lgamma(x), axis=-1) - lgamma(reduce_sum(x, axis=-1))
