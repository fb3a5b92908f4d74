"""Functions that make tensors, with NumPy's names; floating ones are of dtype `floatx()` where none is given."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._ops import numpy_creation as _shared

from ..config import floatx
from ..keras_ops import operation
from ..operands import meeting, tensor
from ..promotion import kind_of, result_type

__all__ = [
    "arange", "array", "bartlett", "blackman", "diag", "diagflat", "empty", "empty_like", "eye", "full", "full_like",
    "geomspace", "hamming", "hanning", "identity", "kaiser", "linspace", "logspace", "ones", "ones_like", "tri",
    "vander", "zeros", "zeros_like",
]


@operation("numpy")
def array(x: Any, dtype: Any = None) -> Any:
    """A tensor of a value.

    >>> import twofold as tf
    >>> tf.keras.ops.array([1, 2], dtype="float32").numpy().tolist()
    [1.0, 2.0]
    """
    return tensor(x, dtype)


@public
def zeros(shape: Any, dtype: Any = None) -> Any:
    """A tensor of zeros.

    >>> import twofold as tf
    >>> tf.keras.ops.zeros((2,)).numpy().tolist()
    [0.0, 0.0]
    """
    return tf.zeros(shape, floatx() if dtype is None else dtype)


@public
def ones(shape: Any, dtype: Any = None) -> Any:
    """A tensor of ones.

    >>> import twofold as tf
    >>> tf.keras.ops.ones((2,), dtype="int32").numpy().tolist()
    [1, 1]
    """
    return tf.ones(shape, floatx() if dtype is None else dtype)


@public
def empty(shape: Any, dtype: Any = None) -> Any:
    """A tensor of a shape, whose elements are there to be replaced; they are zeros.

    >>> import twofold as tf
    >>> tf.keras.ops.empty((2,)).shape
    TensorShape([2])
    """
    return zeros(shape, dtype)


@operation("numpy", tensors="fill_value")
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """A tensor of one value throughout.

    Args:
        shape: its shape.
        fill_value: a number, or a tensor that broadcasts to the shape.
        dtype: `floatx()` by default.

    >>> import twofold as tf
    >>> tf.keras.ops.full((2,), 3).numpy().tolist()
    [3.0, 3.0]
    """
    return tf.broadcast_to(tensor(fill_value, floatx() if dtype is None else dtype), shape)


@operation("numpy")
def zeros_like(x: Any, dtype: Any = None) -> Any:
    """Zeros in the shape of a tensor, and in its dtype unless another is given.

    >>> import twofold as tf
    >>> tf.keras.ops.zeros_like([1, 2]).numpy().tolist()
    [0, 0]
    """
    return tf.zeros_like(tensor(x), dtype)


@operation("numpy")
def ones_like(x: Any, dtype: Any = None) -> Any:
    """Ones in the shape of a tensor, and in its dtype unless another is given.

    >>> import twofold as tf
    >>> tf.keras.ops.ones_like([1, 2]).numpy().tolist()
    [1, 1]
    """
    return tf.ones_like(tensor(x), dtype)


@operation("numpy")
def empty_like(x: Any, dtype: Any = None) -> Any:
    """A tensor of the shape of another, whose elements are there to be replaced; they are zeros.

    >>> import twofold as tf
    >>> tf.keras.ops.empty_like([1, 2]).shape
    TensorShape([2])
    """
    return tf.zeros_like(tensor(x), dtype)


@operation("numpy")
def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Any:
    """One value in the shape of a tensor, and in its dtype unless another is given.

    >>> import twofold as tf
    >>> tf.keras.ops.full_like([1, 2], 7).numpy().tolist()
    [7, 7]
    """
    x = tensor(x)
    return tf.broadcast_to(tensor(fill_value, x.dtype if dtype is None else dtype), tf.shape(x))


@operation("numpy", tensors="start stop step")
def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Any:
    """Numbers at equal distances, up to a last one that is not among them.

    Args:
        start: the first number; the last one, from 0, if `stop` is None.
        stop: the last one.
        step: how far each is from the one before; 1 by default.
        dtype: by default that in which the numbers meet.

    >>> import twofold as tf
    >>> tf.keras.ops.arange(1, 2, 0.25).numpy().tolist()
    [1.0, 1.25, 1.5, 1.75]
    """
    step = 1 if step is None else step
    given = (start, step) if stop is None else (start, stop, step)
    target = tf.as_dtype(result_type(*[kind_of(x) for x in given]) if dtype is None else dtype)
    first, last = (0, start) if stop is None else (start, stop)
    return _shared.arange(first, last, step, target)


def _spread_dtypes(start: Any, stop: Any, dtype: Any) -> tuple[Any, Any]:
    """The dtype of numbers between two, and that in which they are computed."""
    target = tf.as_dtype(meeting(start, stop, at_least=float) if dtype is None else dtype)
    return target, target if target.is_floating and target.size >= 4 else tf.as_dtype(floatx())


def _spread(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int,
            through: Callable[[Any], Any] | None) -> tuple[Any, Any]:
    """Numbers at equal distances, through a function, and the distance."""
    target, computed = _spread_dtypes(start, stop, dtype)
    return _shared.spread(tensor(start, computed), tensor(stop, computed), num, endpoint, target, axis, through)


@operation("numpy")
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
             axis: int = 0) -> Any:
    """Numbers at equal distances between two.

    Args:
        start, stop: the first and the last, numbers or tensors.
        num: how many.
        endpoint: whether the last is among them.
        retstep: whether the distance is returned besides.
        dtype: of the result; by default that in which the two meet, floating.
        axis: the new axis of the result.
    Raises:
        ValueError: num is negative.

    >>> import twofold as tf
    >>> tf.keras.ops.linspace(0, 1, 5).numpy().tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    numbers, step = _spread(start, stop, num, endpoint, dtype, axis, None)
    return (numbers, step) if retstep else numbers


@operation("numpy")
def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10, dtype: Any = None,
             axis: int = 0) -> Any:
    """A base to the power of numbers at equal distances; arguments as for `linspace`.

    >>> import twofold as tf
    >>> tf.keras.ops.logspace(0, 2, 3).numpy().round(3).tolist()
    [1.0, 10.0, 100.0]
    """
    return _spread(start, stop, num, endpoint, dtype, axis, lambda x: tf.pow(tensor(base, x.dtype), x))[0]


@operation("numpy")
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Numbers of equal ratios between two of one sign; arguments as for `linspace`.

    >>> import twofold as tf
    >>> tf.keras.ops.geomspace(1, 4, 3).numpy().round(3).tolist()
    [1.0, 2.0, 4.0]
    """
    target, computed = _spread_dtypes(start, stop, dtype)
    return _shared.geometric(tensor(start, computed), tensor(stop, computed), num, endpoint, target, axis)


@operation("numpy")
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """A matrix of ones up to diagonal `k`, and zeros above it.

    Args:
        N, M: the numbers of rows and of columns, which are as many by default.
        k: how far above the main diagonal.
        dtype: `floatx()` by default.

    >>> import twofold as tf
    >>> tf.keras.ops.tri(2).numpy().tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return _shared.tri(N, M, k, floatx() if dtype is None else dtype)


@public
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """A matrix of ones on diagonal `k`, and zeros elsewhere; arguments as for `tri`.

    >>> import twofold as tf
    >>> tf.keras.ops.eye(2, k=1).numpy().tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    return _shared.eye(N, M, k, floatx() if dtype is None else dtype)


@public
def identity(n: int, dtype: Any = None) -> Any:
    """A square matrix of ones on the diagonal, and zeros elsewhere.

    >>> import twofold as tf
    >>> tf.keras.ops.identity(2).numpy().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, dtype=dtype)


@operation("numpy")
def diag(x: Any, k: int = 0) -> Any:
    """A matrix with a vector on diagonal `k`; of a matrix, that diagonal.

    Raises:
        ValueError: it is neither.

    >>> import twofold as tf
    >>> tf.keras.ops.diag([1, 2]).numpy().tolist()
    [[1, 0], [0, 2]]
    """
    return _shared.diag(tensor(x), k)


@operation("numpy")
def diagflat(x: Any, k: int = 0) -> Any:
    """A matrix with all elements of a tensor on diagonal `k`.

    >>> import twofold as tf
    >>> tf.keras.ops.diagflat([[1], [2]]).numpy().tolist()
    [[1, 0], [0, 2]]
    """
    return tf.linalg.diag(tf.reshape(tensor(x), [-1]), k=k)


@operation("numpy")
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of each element of a vector, in a row.

    Args:
        x: a vector.
        N: how many powers, from 0; as many as elements by default.
        increasing: whether the first power is 0, and not the last.
    Raises:
        ValueError: x is no vector.

    >>> import twofold as tf
    >>> tf.keras.ops.vander([2, 3], 3).numpy().tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    return _shared.vander(tensor(x), N, increasing)


# -- windows --------------------------------------------------------------------------------------
def _window(x: Any, at: Callable[[Any, Any], Any]) -> Any:
    """A symmetric window by its value at places from 0 to 1; a single place has 1."""
    count = tf.cast(tensor(x), tf.int32)
    last = tf.cast(count - 1, floatx())
    values = at(tf.cast(tf.range(count), floatx()) / tf.maximum(last, 1), last)
    return tf.where(tf.equal(last, 0), tf.ones_like(values), values)


@public
def bartlett(x: Any) -> Any:
    """The triangular window of `x` places, 0 at its ends.

    >>> import twofold as tf
    >>> tf.keras.ops.bartlett(5).numpy().tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window(x, lambda t, last: 1 - tf.abs(2 * t - 1))


@public
def blackman(x: Any) -> Any:
    """Blackman's window of `x` places.

    >>> import twofold as tf
    >>> tf.keras.ops.blackman(3).numpy().round(3).tolist()
    [-0.0, 1.0, -0.0]
    """
    turn = 2 * math.pi
    return _window(x, lambda t, last: 0.42 - 0.5 * tf.cos(turn * t) + 0.08 * tf.cos(2 * turn * t))


@public
def hamming(x: Any) -> Any:
    """Hamming's window of `x` places, symmetric.

    >>> import twofold as tf
    >>> tf.keras.ops.hamming(3).numpy().round(3).tolist()
    [0.07999999821186066, 1.0, 0.07999999821186066]
    """
    return tf.signal.hamming_window(x, periodic=False)


@public
def hanning(x: Any) -> Any:
    """Hann's window of `x` places, symmetric, 0 at its ends.

    >>> import twofold as tf
    >>> tf.keras.ops.hanning(3).numpy().round(3).tolist()
    [0.0, 1.0, 0.0]
    """
    return tf.signal.hann_window(x, periodic=False)


@public
def kaiser(x: Any, beta: Any) -> Any:
    """Kaiser's window of `x` places.

    Args:
        x: an integer.
        beta: how narrow it is.

    >>> import twofold as tf
    >>> tf.keras.ops.kaiser(3, 2.0).numpy().round(3).tolist()
    [0.4390000104904175, 1.0, 0.4390000104904175]
    """
    return tf.signal.kaiser_window(x, beta)
