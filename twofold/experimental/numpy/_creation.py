"""Functions that make tensors."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._ops import numpy_creation as _shared

from ._rules import Kind, as_dtype, default_float, meeting, promoted, tensor

__all__ = [
    "arange", "array", "asanyarray", "asarray", "ascontiguousarray", "diag", "diag_indices", "diagflat", "empty",
    "empty_like", "eye", "full", "full_like", "geomspace", "identity", "linspace", "logspace", "ones", "ones_like",
    "tri", "vander", "zeros", "zeros_like",
]


def _sizes(shape: Any) -> Any:
    return [shape] if isinstance(shape, int) else shape


@public
def array(val: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Any:
    """A tensor of a value.

    Args:
        val: a tensor, array, number, or a list of these.
        dtype: by default that in which they meet.
        copy: accepted, without effect: tensors never change.
        ndmin: how many axes there are at least; new ones come first.

    >>> import twofold as tf
    >>> tf.experimental.numpy.array([1, 2.5], ndmin=2)
    <tf.Tensor: shape=(1, 2), dtype=float64, numpy=array([[1. , 2.5]])>
    """
    made = tensor(val, None if dtype is None else as_dtype(dtype))
    missing = ndmin - made.ndim
    return made if missing <= 0 else tf.reshape(made, tf.concat([[1] * missing, tf.shape(made)], 0))


@public
def asarray(a: Any, dtype: Any = None) -> Any:
    """A value as a tensor; a tensor of the dtype itself.

    >>> import twofold as tf
    >>> tf.experimental.numpy.asarray([1, 2], float).numpy().tolist()
    [1.0, 2.0]
    """
    return tensor(a, None if dtype is None else as_dtype(dtype))


@public
def asanyarray(a: Any, dtype: Any = None) -> Any:
    """A value as a tensor; the same as `asarray`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.asanyarray([1, 2]).numpy().tolist()
    [1, 2]
    """
    return asarray(a, dtype)


@public
def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """A value as a tensor of one axis at least; all tensors are contiguous.

    >>> import twofold as tf
    >>> tf.experimental.numpy.ascontiguousarray(1).numpy().tolist()
    [1]
    """
    return array(a, dtype, ndmin=1)


@public
def zeros(shape: Any, dtype: Any = float) -> Any:
    """A tensor of zeros.

    >>> import twofold as tf
    >>> tf.experimental.numpy.zeros(2).numpy().tolist()
    [0.0, 0.0]
    """
    return tf.zeros(_sizes(shape), default_float() if dtype is None else as_dtype(dtype))


@public
def ones(shape: Any, dtype: Any = float) -> Any:
    """A tensor of ones.

    >>> import twofold as tf
    >>> tf.experimental.numpy.ones(2, dtype=int).numpy().tolist()
    [1, 1]
    """
    return tf.ones(_sizes(shape), default_float() if dtype is None else as_dtype(dtype))


@public
def empty(shape: Any, dtype: Any = float) -> Any:
    """A tensor of a shape; its elements are zeros.

    >>> import twofold as tf
    >>> tf.experimental.numpy.empty((2, 3)).shape
    TensorShape([2, 3])
    """
    return zeros(shape, dtype)


@public
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """A tensor of one value throughout.

    Args:
        shape: its shape.
        fill_value: a number, or a tensor that broadcasts to the shape.
        dtype: that of the value by default.

    >>> import twofold as tf
    >>> tf.experimental.numpy.full(2, 3).numpy().tolist()
    [3, 3]
    """
    target = meeting(fill_value).dtype if dtype is None else as_dtype(dtype)
    return tf.broadcast_to(tensor(fill_value, target), _sizes(shape))


def _like(a: Any, dtype: Any) -> tuple[Any, Any]:
    a = tensor(a)
    return a, a.dtype if dtype is None else as_dtype(dtype)


@public
def zeros_like(a: Any, dtype: Any = None) -> Any:
    """Zeros in the shape of a tensor, and in its dtype unless another is given.

    >>> import twofold as tf
    >>> tf.experimental.numpy.zeros_like([1, 2]).numpy().tolist()
    [0, 0]
    """
    return tf.zeros_like(*_like(a, dtype))


@public
def ones_like(a: Any, dtype: Any = None) -> Any:
    """Ones in the shape of a tensor, and in its dtype unless another is given.

    >>> import twofold as tf
    >>> tf.experimental.numpy.ones_like([1, 2]).numpy().tolist()
    [1, 1]
    """
    return tf.ones_like(*_like(a, dtype))


@public
def empty_like(a: Any, dtype: Any = None) -> Any:
    """A tensor of the shape of another; its elements are zeros.

    >>> import twofold as tf
    >>> tf.experimental.numpy.empty_like([1, 2]).shape
    TensorShape([2])
    """
    return zeros_like(a, dtype)


@public
def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True,
              shape: Any = None) -> Any:
    """One value in the shape of a tensor, and in its dtype unless another is given.

    Args:
        a: a tensor.
        fill_value: a number, or a tensor that broadcasts.
        dtype: of the result.
        order: must be "K".
        subok: must be True.
        shape: must be None.
    Raises:
        ValueError: the last three are anything else.

    >>> import twofold as tf
    >>> tf.experimental.numpy.full_like([1, 2], 7).numpy().tolist()
    [7, 7]
    """
    if order != "K" or not subok or shape is not None:
        raise ValueError('full_like: order must be "K", subok True and shape None.')
    a, target = _like(a, dtype)
    return tf.broadcast_to(tensor(fill_value, target), tf.shape(a))


@public
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """Numbers at equal distances, up to a last one that is not among them.

    Args:
        start: the first number; the last one, from 0, if `stop` is None.
        stop: the last one.
        step: how far each is from the one before.
        dtype: by default that in which the numbers meet.
    Raises:
        ValueError: the step is 0.

    >>> import twofold as tf
    >>> tf.experimental.numpy.arange(1, 2, 0.25).numpy().tolist()
    [1.0, 1.25, 1.5, 1.75]
    """
    if isinstance(step, (int, float)) and not step:
        raise ValueError("step must be non-zero")
    given = (start, step) if stop is None else (start, stop, step)
    kind = meeting(*given) if dtype is None else Kind(as_dtype(dtype))
    first, last = (0, start) if stop is None else (start, stop)
    if kind.dtype.is_integer and not all(isinstance(x, int) for x in given):  # of floats, which are counted as such
        met = meeting(first, last, step)
        first, last, step = promoted((first, last, step), met)
        return tf.cast(_shared.arange(first, last, step, met.dtype), kind.dtype)
    if not (kind.dtype.is_integer or kind.dtype.is_floating):
        return tf.cast(_shared.arange(first, last, step, tf.int64), kind.dtype)
    first, last, step = (tensor(x, kind.dtype) for x in (first, last, step))
    return promoted([_shared.arange(first, last, step, kind.dtype)], kind)[0]


def _ends(start: Any, stop: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """Both ends as floating tensors, and the dtype of the numbers between."""
    if dtype is not None:
        target = as_dtype(dtype)
        computed = target if target.is_floating and target.size >= 4 else default_float()
        return tensor(start, computed), tensor(stop, computed), target
    kind = meeting(start, stop, 0.0)  # floating at least
    start, stop = (tensor(x, kind.dtype) for x in (start, stop))
    return start, stop, kind.dtype


@public
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = float,
             axis: int = 0) -> Any:
    """Numbers at equal distances between two.

    Args:
        start, stop: the first and the last, numbers or tensors.
        num: how many.
        endpoint: whether the last is among them.
        retstep: whether the distance is returned besides.
        dtype: of the result; for None that in which the two meet, floating.
        axis: the new axis of the result.
    Raises:
        ValueError: num is negative.

    >>> import twofold as tf
    >>> tf.experimental.numpy.linspace(0, 1, 5).numpy().tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    first, last, target = _ends(start, stop, None if dtype is float else dtype)
    numbers, step = _shared.spread(first, last, num, endpoint, target, axis)
    return (numbers, step) if retstep else numbers


@public
def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None,
             axis: int = 0) -> Any:
    """A base to the power of numbers at equal distances; arguments as for `linspace`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.logspace(0, 2, 3).numpy().round(3).tolist()
    [1.0, 10.0, 100.0]
    """
    first, last, target = _ends(start, stop, dtype)
    return _shared.spread(first, last, num, endpoint, target, axis, lambda x: tf.pow(tensor(base, x.dtype), x))[0]


@public
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Numbers of equal ratios between two of one sign; arguments as for `linspace`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.geomspace(1, 4, 3).numpy().round(3).tolist()
    [1.0, 2.0, 4.0]
    """
    first, last, target = _ends(start, stop, dtype)
    return _shared.geometric(first, last, num, endpoint, target, axis)


@public
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:
    """A matrix of ones on a diagonal, and zeros elsewhere.

    Args:
        N, M: the numbers of rows and of columns, which are as many by default.
        k: how far above the main diagonal.
        dtype: of the result.

    >>> import twofold as tf
    >>> tf.experimental.numpy.eye(2, k=1).numpy().tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    return _shared.eye(N, M, k, default_float() if dtype is None else as_dtype(dtype))


@public
def identity(n: int, dtype: Any = float) -> Any:
    """A square matrix of ones on the diagonal, and zeros elsewhere.

    >>> import twofold as tf
    >>> tf.experimental.numpy.identity(2).numpy().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, dtype=dtype)


@public
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """A matrix of ones up to diagonal `k`, and zeros above it; arguments as for `eye`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.tri(2).numpy().tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return _shared.tri(N, M, k, default_float() if dtype is None else as_dtype(dtype))


@public
def diag(v: Any, k: int = 0) -> Any:
    """A matrix with a vector on diagonal `k`; of a matrix, that diagonal.

    Raises:
        ValueError: it is neither.

    >>> import twofold as tf
    >>> tf.experimental.numpy.diag([1, 2]).numpy().tolist()
    [[1, 0], [0, 2]]
    """
    return _shared.diag(tensor(v), k)


@public
def diagflat(v: Any, k: int = 0) -> Any:
    """A matrix with all elements of a tensor on diagonal `k`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.diagflat([[1], [2]]).numpy().tolist()
    [[1, 0], [0, 2]]
    """
    return _shared.diag(tf.reshape(tensor(v), [-1]), k)


@public
def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """The places of the main diagonal of a tensor of `ndim` axes of size `n`.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.experimental.numpy.diag_indices(2)]
    [[0, 1], [0, 1]]
    """
    return (tf.range(n),) * ndim


@public
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of each element of a vector, in a row.

    Args:
        x: a vector.
        N: how many powers, from 0; as many as elements by default.
        increasing: whether the first power is 0, and not the last.
    Raises:
        ValueError: x is no vector.

    >>> import twofold as tf
    >>> tf.experimental.numpy.vander([2, 3], 3).numpy().tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    return _shared.vander(tensor(x), N, increasing)
