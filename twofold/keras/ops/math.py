"""Functions of Keras's `ops.math`: segments, the largest elements, transforms of signals, special functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf

from ..keras_ops import operation
from ..operands import floating, same, size_of, tensor

__all__ = [
    "cdist", "erf", "erfc", "erfinv", "extract_sequences", "fft", "fft2", "ifft2", "in_top_k", "irfft", "istft",
    "logdet", "logsumexp", "rfft", "rsqrt", "segment_max", "segment_min", "segment_prod", "segment_sum", "stft",
    "top_k", "view_as_complex", "view_as_real",
]


def _special(name: str, compute: Callable[[Any], Any], text: str, x: float, y: str) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        return compute(floating(x))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        x: a tensor of numbers; integers and bools count as `floatx()`.
    Returns:
        A floating tensor of the same shape.

    >>> import twofold as tf
    >>> print("%.4f" % tf.keras.ops.{name}({x}))
    {y}
    """
    return operation("math")(function)


erf = _special("erf", tf.math.erf, "The error function.", 0.5, "0.5205")
erfc = _special("erfc", tf.math.erfc, "One less the error function.", 0.5, "0.4795")
erfinv = _special("erfinv", tf.math.erfinv, "The inverse of the error function.", 0.5, "0.4769")
rsqrt = _special("rsqrt", tf.math.rsqrt, "One over the square root.", 4.0, "0.5000")


def _segments(name: str, compute: Callable[..., Any], text: str, y: Any) -> Callable[..., Any]:
    def function(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Any:
        data, ids = tensor(data), tensor(segment_ids)
        if ids.dtype not in (tf.int32, tf.int64):
            ids = tf.cast(ids, tf.int32)
        count = tf.reduce_max(ids) + 1 if num_segments is None else num_segments
        return compute(data, ids, count)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text} of the slices along axis 0 that have one number.

    Args:
        data: a tensor.
        segment_ids: the numbers of its slices, integers; negative ones count nowhere.
        num_segments: how many there are; by default one more than the largest number.
        sorted: accepted, without effect: numbers may come in any order.

    >>> import twofold as tf
    >>> tf.keras.ops.{name}([2, 3, 4], [0, 1, 1]).numpy().tolist()
    {y}
    """
    return operation("math")(function)


segment_sum = _segments("segment_sum", tf.math.unsorted_segment_sum, "The sums", [2, 7])
segment_max = _segments("segment_max", tf.math.unsorted_segment_max, "The largest elements", [2, 4])
segment_min = _segments("segment_min", tf.math.unsorted_segment_min, "The smallest elements", [2, 3])
segment_prod = _segments("segment_prod", tf.math.unsorted_segment_prod, "The products", [2, 12])


@operation("math", tensors="x")
def top_k(x: Any, k: int, sorted: bool = True) -> Any:
    """The largest elements along the last axis, and their places.

    Args:
        x: a tensor.
        k: how many.
        sorted: accepted, without effect: the largest always comes first.
    Returns:
        Values, and int32 places.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.keras.ops.top_k([3, 1, 2], 2)]
    [[3, 2], [0, 2]]
    """
    return tf.math.top_k(tensor(x), k, sorted)


@operation("math", tensors="targets predictions")
def in_top_k(targets: Any, predictions: Any, k: int) -> Any:
    """Whether the score of the right class is among the largest `k`.

    Args:
        targets: the right classes, integers [n].
        predictions: scores [n, classes].
        k: how many.

    >>> import twofold as tf
    >>> tf.keras.ops.in_top_k([1, 0], [[0.1, 0.9], [0.2, 0.8]], 1).numpy().tolist()
    [True, False]
    """
    return tf.math.in_top_k(tensor(targets), tensor(predictions), k)


@operation("math")
def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The logarithm of the sum of exponentials, without overflow.

    >>> import twofold as tf
    >>> print("%.2f" % tf.keras.ops.logsumexp([1000.0, 1000.0]))
    1000.69
    """
    return tf.reduce_logsumexp(floating(x), axis=axis, keepdims=keepdims)


@operation("math")
def logdet(x: Any) -> Any:
    """The logarithm of the determinant of Hermitian positive definite matrices.

    >>> import twofold as tf
    >>> print("%.4f" % tf.keras.ops.logdet([[2.0, 0.0], [0.0, 1.0]]))
    0.6931
    """
    return tf.linalg.logdet(floating(x))


@operation("math", "CDist", tensors="x y")
def cdist(x: Any, y: Any) -> Any:
    """The Euclidean distances of all rows of one matrix from all rows of another.

    Args:
        x: [..., n, k]. y: [..., m, k].
    Returns:
        [..., n, m].

    >>> import twofold as tf
    >>> tf.keras.ops.cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]]).numpy().tolist()
    [[5.0, 1.0]]
    """
    x, y = same(x, y, at_least=float)
    apart = tf.expand_dims(x, -2) - tf.expand_dims(y, -3)
    squares = tf.reduce_sum(tf.square(apart), axis=-1)
    # the root has no slope at 0, where gradients are 0 instead
    there = squares > 0
    return tf.where(there, tf.sqrt(tf.where(there, squares, tf.ones_like(squares))), tf.zeros_like(squares))


# -- transforms -----------------------------------------------------------------------------------
def _complex(x: Any) -> Any:
    """A complex tensor of its two parts, or of a complex one."""
    if isinstance(x, (tuple, list)):
        if len(x) != 2:
            raise ValueError(f"Input `x` should be a tuple of two tensors - real and imaginary. Received: {len(x)}")
        parts = same(floating(x[0]), floating(x[1]))
        return tf.complex(*[p if p.dtype.size >= 4 else tf.cast(p, tf.float32) for p in parts])
    x = tensor(x)
    return x if x.dtype.is_complex else tf.cast(x, tf.complex128 if x.dtype == tf.float64 else tf.complex64)


def _parts(x: Any) -> tuple[Any, Any]:
    return tf.math.real(x), tf.math.imag(x)


def _transform(name: str, cls: str, compute: Callable[[Any], Any], text: str, sample: str, y: Any) -> Any:
    def function(x: Any) -> Any:
        return _parts(compute(_complex(x)))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        x: a pair of tensors of one shape: real and imaginary part.
    Returns:
        A pair of such tensors.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.keras.ops.{name}({sample})]
    {y}
    """
    return operation("math", cls)(function)


fft = _transform("fft", "FFT", tf.signal.fft, "The discrete Fourier transform along the last axis.",
                 "([1.0, 1.0], [0.0, 0.0])", [[2.0, 0.0], [0.0, 0.0]])
fft2 = _transform("fft2", "FFT2", tf.signal.fft2d, "The discrete Fourier transform of the last two axes.",
                  "([[1.0, 1.0]], [[0.0, 0.0]])", [[[2.0, 0.0]], [[0.0, 0.0]]])
ifft2 = _transform("ifft2", "IFFT2", tf.signal.ifft2d, "The inverse of `fft2`.", "([[2.0, 0.0]], [[0.0, 0.0]])",
                   [[[1.0, 1.0]], [[0.0, 0.0]]])


def _real(x: Any) -> Any:
    x = floating(x)
    return x if x.dtype.size >= 4 else tf.cast(x, tf.float32)


@operation("math", "RFFT")
def rfft(x: Any, fft_length: int | None = None) -> Any:
    """The discrete Fourier transform of real numbers along the last axis, up to the highest frequency there is.

    Args:
        x: a tensor of real numbers.
        fft_length: how many to transform; they are cut, or filled up with zeros.
    Returns:
        A pair of tensors: real and imaginary part.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.keras.ops.rfft([1.0, 1.0])]
    [[2.0, 0.0], [0.0, 0.0]]
    """
    return _parts(tf.signal.rfft(_real(x), None if fft_length is None else [fft_length]))


@operation("math", "IRFFT")
def irfft(x: Any, fft_length: int | None = None) -> Any:
    """The inverse of `rfft`.

    Args:
        x: a pair of tensors: real and imaginary part.
        fft_length: how many numbers come out; by default an even number.

    >>> import twofold as tf
    >>> tf.keras.ops.irfft(([2.0, 0.0], [0.0, 0.0])).numpy().tolist()
    [1.0, 1.0]
    """
    return tf.signal.irfft(_complex(x), None if fft_length is None else [fft_length])


@operation("math", tensors="x")
def extract_sequences(x: Any, sequence_length: int, sequence_stride: int) -> Any:
    """Windows of the last axis.

    Args:
        x: a tensor.
        sequence_length: how long they are.
        sequence_stride: how far each begins from the one before.
    Returns:
        [..., windows, sequence_length].

    >>> import twofold as tf
    >>> tf.keras.ops.extract_sequences([1, 2, 3], 2, 1).numpy().tolist()
    [[1, 2], [2, 3]]
    """
    return tf.signal.frame(tensor(x), sequence_length, sequence_stride)


_WINDOWS: dict[str, Any] = {"hann": tf.signal.hann_window, "hamming": tf.signal.hamming_window}


def _window(window: Any, sequence_length: int, fft_length: int, like: Any) -> Any:
    """A window in the middle of as many places as are transformed."""
    if isinstance(window, str):
        if window not in _WINDOWS:
            raise ValueError(f"If a string is passed to `window`, it must be one of \"hann\", \"hamming\". Received: "
                             f"window={window}")
        weights = _WINDOWS[window](sequence_length, dtype=like)
    elif window is None:
        weights = tf.ones([sequence_length], like)
    else:
        weights = tensor(window, like)
        if weights.ndim != 1 or weights.shape[0] != sequence_length:
            raise ValueError(f"The shape of `window` must be equal to [sequence_length]. Received: window shape="
                             f"{weights.shape}")
    before = (fft_length - sequence_length) // 2
    return tf.pad(weights, [[before, fft_length - sequence_length - before]])


def _check_lengths(sequence_length: int, fft_length: int) -> None:
    if fft_length < sequence_length:
        raise ValueError("`fft_length` must equal or larger than `sequence_length`. Received: "
                         f"sequence_length={sequence_length}, fft_length={fft_length}")


@operation("math", "STFT", tensors="x")
def stft(x: Any, sequence_length: int, sequence_stride: int, fft_length: int, window: Any = "hann",
         center: bool = True) -> Any:
    """The Fourier transforms of windows of the last axis.

    Args:
        x: a tensor of real numbers.
        sequence_length: how long the windows are.
        sequence_stride: how far each is from the one before.
        fft_length: how many numbers are transformed; zeros are around a window that is shorter.
        window: "hann", "hamming", a tensor [sequence_length], or None for ones.
        center: whether the first window is around the first number; the signal is mirrored at its ends.
    Returns:
        A pair of tensors [..., windows, fft_length // 2 + 1]: real and imaginary part.
    Raises:
        ValueError: the lengths do not fit, or the window is another.

    >>> import twofold as tf
    >>> tf.keras.ops.stft(tf.ones([16]), 4, 2, 4)[0].shape
    TensorShape([9, 3])
    """
    _check_lengths(sequence_length, fft_length)
    x = _real(x)
    taper = _window(window, sequence_length, fft_length, x.dtype)
    if center:
        x = tf.pad(x, [[0, 0]] * (x.ndim - 1) + [[fft_length // 2] * 2], "REFLECT")
    return _parts(tf.signal.rfft(tf.signal.frame(x, fft_length, sequence_stride) * taper))


@operation("math", "ISTFT", tensors="x")
def istft(x: Any, sequence_length: int, sequence_stride: int, fft_length: int, length: int | None = None,
          window: Any = "hann", center: bool = True) -> Any:
    """The signal of which `stft` gives this: windows added up, over the sum of the squares of their weights.

    Args:
        x: a pair of tensors: real and imaginary part.
        sequence_length, sequence_stride, fft_length, window, center: as `stft` had them.
        length: how long the signal is; by default as long as the windows tell.
    Returns:
        A tensor of real numbers [..., length].
    Raises:
        ValueError: the lengths do not fit, or the window is another.

    >>> import twofold as tf
    >>> samples = tf.keras.ops.istft(tf.keras.ops.stft(tf.range(16.0), 4, 2, 4), 4, 2, 4)
    >>> samples.numpy().round(3).tolist()[:3]
    [0.0, 1.0, 2.0]
    """
    _check_lengths(sequence_length, fft_length)
    frames = tf.signal.irfft(_complex(x), [fft_length])
    taper = _window(window, sequence_length, fft_length, frames.dtype)
    total = tf.signal.overlap_and_add(frames * taper, sequence_stride)
    weights = tf.broadcast_to(tf.square(taper), [size_of(frames, -2), fft_length])
    weight = tf.signal.overlap_and_add(weights, sequence_stride)
    total = tf.where(weight > 1e-11, total / tf.where(weight > 1e-11, weight, tf.ones_like(weight)), total)
    start = fft_length // 2 if center else 0
    if length is not None:
        return total[..., start:start + length]
    return total[..., start:size_of(total, -1) - start]


@operation("math")
def view_as_complex(x: Any) -> Any:
    """Pairs of numbers along the last axis as complex numbers.

    Raises:
        ValueError: the last axis is not of size 2.

    >>> import twofold as tf
    >>> tf.keras.ops.view_as_complex([[1.0, 2.0]]).numpy().tolist()
    [(1+2j)]
    """
    x = _real(x)
    if not x.ndim or x.shape[-1] != 2:
        raise ValueError("Last dimension of input must be size 2 (real and imaginary). Received shape: "
                         f"{tuple(x.shape)}")
    return tf.complex(x[..., 0], x[..., 1])


@operation("math")
def view_as_real(x: Any) -> Any:
    """Complex numbers as pairs of real and imaginary part, along a new last axis.

    >>> import twofold as tf
    >>> tf.keras.ops.view_as_real([1 + 2j]).numpy().tolist()
    [[1.0, 2.0]]
    """
    x = tensor(x)
    return tf.stack([tf.math.real(x), tf.math.imag(x) if x.dtype.is_complex else tf.zeros_like(x)], axis=-1)


