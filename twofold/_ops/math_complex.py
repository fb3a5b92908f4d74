"""Parts of complex numbers of `tf.math`, under TensorFlow's names; `twofold/math.py` re-exports them.

The ops are in `ir/ops/complex_parts.py`; `tf.complex` itself is `twofold/_front/convert.py`'s.
"""

from __future__ import annotations

from typing import Any

from twofold._front.api import public, public_op, tensor
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.grad import zeros_like

__all__ = ["angle", "conj", "imag", "real"]


@public
def real(input: Any, name: str | None = None) -> Any:
    """Real part, elementwise.

    Args:
        input: numeric tensor.
        name: has no effect.
    Returns:
        Tensor of the shape of `input` and the dtype of a part; a real tensor is itself.
    Raises:
        tf.errors.InvalidArgumentError: `input` is not numeric.

    >>> import twofold as tf
    >>> tf.math.real([1.5 + 2.5j])
    <tf.Tensor: shape=(1,), dtype=float64, numpy=array([1.5])>
    """
    x = tensor(input)
    return x if x.dtype in dt.REAL else ops.real(x)


@public
def imag(input: Any, name: str | None = None) -> Any:
    """Imaginary part, elementwise.

    Args:
        input: numeric tensor.
        name: has no effect.
    Returns:
        Tensor of the shape of `input` and the dtype of a part; zeros for a real tensor.
    Raises:
        tf.errors.InvalidArgumentError: `input` is not numeric.

    >>> import twofold as tf
    >>> tf.math.imag([1.5 + 2.5j])
    <tf.Tensor: shape=(1,), dtype=float64, numpy=array([2.5])>
    """
    x = tensor(input)
    return zeros_like(x) if x.dtype in dt.REAL else ops.imag(x)


@public
def conj(x: Any, name: str | None = None) -> Any:
    """Complex conjugate, elementwise.

    Args:
        x: numeric tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`. A real tensor is itself.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not numeric.

    >>> import twofold as tf
    >>> tf.math.conj([1.5 + 2.5j])
    <tf.Tensor: shape=(1,), dtype=complex128, numpy=array([1.5-2.5j])>
    """
    x = tensor(x)
    return x if x.dtype in dt.REAL else ops.conj(x)


@public_op(ops.angle)
def angle(input: Any, name: str | None = None) -> Any:
    """Argument of `input`, elementwise, between -pi and pi; of floats pi below 0, else 0.

    Args:
        input: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape of `input` and the dtype of a part.
    Raises:
        tf.errors.InvalidArgumentError: `input` is not floating or complex.

    >>> import twofold as tf
    >>> tf.math.angle([1.0 + 1.0j])
    <tf.Tensor: shape=(1,), dtype=float64, numpy=array([0.78539816])>
    >>> tf.math.angle([-2.0, 3.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3.1415927, 0.       ], dtype=float32)>
    """
    return ops.angle(input)
