"""`twofold.array_api.fft`: Fourier transforms along any axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import listed, public
from twofold._front.namespace import publish
from twofold._ops.numpy_arrays import moved
from twofold._ops.numpy_operands import axes_of, axis_of

from ._rules import default_float, on, operand

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]

_NORMS = ("backward", "ortho", "forward")


def _complex(x: Any) -> Any:
    return x if x.dtype.is_complex else tf.cast(x, tf.complex128 if x.dtype == tf.float64 else tf.complex64)


def _sized(x: Any, n: int | None, axis: int) -> Any:
    """A tensor cut, or filled with zeros, to a size of an axis."""
    if n is None or n == x.shape[axis]:
        return x
    x = moved(x, axis, -1)[..., :n]
    missing = n - x.shape[-1]
    return moved(tf.pad(x, [[0, 0]] * (x.ndim - 1) + [[0, missing]]), -1, axis)


def _scaled(x: Any, n: int, norm: str, inverse: bool) -> Any:
    """A transform that divides by `n` as an inverse does, and otherwise not, with the factor that a norm asks for."""
    if norm not in _NORMS:
        raise ValueError(f"norm must be one of {', '.join(_NORMS)}; got {norm!r}.")
    if norm == "backward":
        return x
    factor = math.sqrt(n) if norm == "ortho" else float(n)
    return x * tf.constant(factor if inverse else 1 / factor, x.dtype)


def _along(compute: Callable[[Any], Any], x: Any, axis: int) -> Any:
    """A function of the last axis, along another."""
    return moved(compute(moved(x, axis, -1)), -1, axis)


def _one(compute: Callable[[Any], Any], x: Any, n: int | None, axis: int, norm: str, inverse: bool) -> Any:
    x = _sized(x, n, axis)
    return _scaled(_along(compute, x, axis), x.shape[axis], norm, inverse)


def _axes(x: Any, s: Sequence[int] | None, axes: Sequence[int] | None) -> list[tuple[int | None, int]]:
    """The sizes and the axes of a transform of several."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    numbers = axes_of(listed(axes, "axes"), x.ndim)
    sizes: Sequence[int | None] = s or [None] * len(numbers)
    return list(zip(sizes, numbers, strict=True))


@public
def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """Fourier transform along an axis.

    Args:
        x: a floating or complex tensor.
        n: the size to which the axis is cut or filled with zeros first.
        axis: along which.
        norm: what divides by the number of elements: "backward" for the inverse, "forward" for this one, "ortho" for
            each by its root.
    Raises:
        ValueError: the norm is another.

    >>> import twofold.array_api as xp
    >>> xp.fft.fft(xp.asarray([1.0, 0.0])).numpy().tolist()
    [(1+0j), (1+0j)]
    """
    return _one(tf.signal.fft, _complex(operand(x)), n, axis, norm, False)


@public
def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """The inverse of `fft`; arguments as there.

    >>> import twofold.array_api as xp
    >>> xp.fft.ifft(xp.asarray([1.0, 1.0])).numpy().tolist()
    [(1+0j), 0j]
    """
    return _one(tf.signal.ifft, _complex(operand(x)), n, axis, norm, True)


@public
def fftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
    """Fourier transform along several axes.

    Args:
        x: a floating or complex tensor.
        s: the sizes to which the axes are cut or filled with zeros first.
        axes: which; by default the last as many as `s` has, or all.
        norm: as for `fft`.

    >>> import twofold.array_api as xp
    >>> xp.fft.fftn(xp.asarray([[1.0, 0.0]])).numpy().tolist()
    [[(1+0j), (1+0j)]]
    """
    x = operand(x)
    for n, axis in _axes(x, s, axes):
        x = fft(x, n=n, axis=axis, norm=norm)
    return _complex(x)


@public
def ifftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
    """The inverse of `fftn`; arguments as there.

    >>> import twofold.array_api as xp
    >>> xp.fft.ifftn(xp.asarray([[1.0, 1.0]])).numpy().tolist()
    [[(1+0j), 0j]]
    """
    x = operand(x)
    for n, axis in _axes(x, s, axes):
        x = ifft(x, n=n, axis=axis, norm=norm)
    return _complex(x)


@public
def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """Fourier transform of real numbers along an axis: the half that is not redundant. Arguments as for `fft`.

    >>> import twofold.array_api as xp
    >>> xp.fft.rfft(xp.asarray([1.0, 0.0, 0.0])).shape
    TensorShape([2])
    """
    return _one(tf.signal.rfft, operand(x), n, axis, norm, False)


@public
def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """The inverse of `rfft`.

    Args:
        x: a complex tensor.
        n: the size of the result; by default twice that of the axis, less 2.
        axis: along which.
        norm: as for `fft`.

    >>> import twofold.array_api as xp
    >>> xp.fft.irfft(xp.asarray([1.0 + 0j, 1.0 + 0j])).numpy().tolist()
    [1.0, 0.0]
    """
    x = _complex(operand(x))
    n = 2 * (x.shape[axis] - 1) if n is None else n
    return _scaled(_along(lambda x: tf.signal.irfft(x, [n]), _sized(x, n // 2 + 1, axis), axis), n, norm, True)


@public
def rfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
    """Fourier transform of real numbers along several axes, the last of which keeps the half that is not redundant.
    Arguments as for `fftn`.

    >>> import twofold.array_api as xp
    >>> xp.fft.rfftn(xp.zeros((2, 3))).shape
    TensorShape([2, 2])
    """
    x = operand(x)
    *others, (n, last) = _axes(x, s, axes)
    x = rfft(x, n=n, axis=last, norm=norm)
    for n, axis in others:
        x = fft(x, n=n, axis=axis, norm=norm)
    return x


@public
def irfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
    """The inverse of `rfftn`.

    Args:
        x: a complex tensor.
        s: the sizes of the result; that of the last axis is by default twice that of x, less 2.
        axes: which; by default the last as many as `s` has, or all.
        norm: as for `fft`.

    >>> import twofold.array_api as xp
    >>> xp.fft.irfftn(xp.zeros((2, 3))).shape
    TensorShape([2, 4])
    """
    x = _complex(operand(x))
    *others, (n, last) = _axes(x, s, axes)
    for size, axis in others:
        x = ifft(x, n=size, axis=axis, norm=norm)
    return irfft(x, n=n, axis=last, norm=norm)


@public
def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """Fourier transform of numbers of which the half that is not redundant is given; the result is real. Arguments as
    for `irfft`.

    >>> import twofold.array_api as xp
    >>> xp.fft.hfft(xp.asarray([1.0 + 0j, 0j])).numpy().tolist()
    [1.0, 1.0]
    """
    opposite = {"backward": "forward", "forward": "backward"}.get(norm, norm)
    return irfft(tf.math.conj(_complex(operand(x))), n=n, axis=axis, norm=opposite)


@public
def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """The inverse of `hfft`; arguments as for `fft`.

    >>> import twofold.array_api as xp
    >>> xp.fft.ihfft(xp.asarray([1.0, 1.0])).numpy().tolist()
    [(1-0j), -0j]
    """
    opposite = {"backward": "forward", "forward": "backward"}.get(norm, norm)
    return tf.math.conj(rfft(x, n=n, axis=axis, norm=opposite))


@public
def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of what `fft` gives for `n` samples.

    Args:
        n: how many.
        d: how far each is from the one before.
        dtype: float32 by default.
        device: where the result is to be.

    >>> import twofold.array_api as xp
    >>> xp.fft.fftfreq(4).numpy().tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return on(device, lambda: tf.cast(tf.constant(np.fft.fftfreq(n, d)), dtype or default_float))


@public
def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of what `rfft` gives for `n` samples; arguments as for `fftfreq`.

    >>> import twofold.array_api as xp
    >>> xp.fft.rfftfreq(4).numpy().tolist()
    [0.0, 0.25, 0.5]
    """
    return on(device, lambda: tf.cast(tf.constant(np.fft.rfftfreq(n, d)), dtype or default_float))


def _shifted(x: Any, axes: Any, half: Callable[[int], int]) -> Any:
    x = operand(x)
    numbers = axes_of(axes if axes is None or isinstance(axes, int) else listed(axes, "axes"), x.ndim)
    for axis in numbers:
        x = tf.roll(x, half(x.shape[axis]), axis_of(axis, x.ndim))
    return x


@public
def fftshift(x: Any, /, *, axes: Any = None) -> Any:
    """A tensor with frequency 0 in the middle of axes, all by default.

    >>> import twofold.array_api as xp
    >>> xp.fft.fftshift(xp.asarray([0, 1, 2, -2, -1])).numpy().tolist()
    [-2, -1, 0, 1, 2]
    """
    return _shifted(x, axes, lambda n: n // 2)


@public
def ifftshift(x: Any, /, *, axes: Any = None) -> Any:
    """The inverse of `fftshift`.

    >>> import twofold.array_api as xp
    >>> xp.fft.ifftshift(xp.asarray([-2, -1, 0, 1, 2])).numpy().tolist()
    [0, 1, 2, -2, -1]
    """
    return _shifted(x, axes, lambda n: -(n // 2))


publish(__name__)
