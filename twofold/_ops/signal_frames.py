"""Frames of signals: windows, short-time Fourier transforms, cosine transforms and the mel scale.

Sources: Harris, "On the use of windows for harmonic analysis" (1978); Griffin and Lim, "Signal estimation from modified
short-time Fourier transform" (1984); Stevens, Volkmann and Newman, "A scale for the measurement of the psychological
magnitude pitch" (1937), with the constants of the HTK.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import is_open, one_int, one_number, one_part, one_size, public
from twofold._front.hosted import hosted
from twofold._ops.array_creation import as_scalar
from twofold._ops.array_shape import one_axis
from twofold._ops.signal_fft import irfft, rfft
from twofold.tracer.checks import check

__all__ = ["dct", "frame", "hamming_window", "hann_window", "idct", "inverse_mdct", "inverse_stft",
           "inverse_stft_window_fn", "kaiser_bessel_derived_window", "kaiser_window", "linear_to_mel_weight_matrix",
           "mdct", "mfccs_from_log_mel_spectrograms", "overlap_and_add", "stft", "vorbis_window"]


# -- windows -------------------------------------------------------------------------------------------
def _raised_cosine(count: int, periodic: bool, a: float, b: float) -> np.ndarray:
    if count == 1:
        return np.ones(1)
    whole = count + (1 - count % 2) * int(periodic) - 1
    return a - b * np.cos(2 * np.pi * np.arange(count) / whole)


def _half_sums(count: int, beta: float) -> np.ndarray:
    sums = np.cumsum(np.kaiser(count // 2 + 1, beta))
    half = np.sqrt(sums[:-1] / sums[-1])
    return np.concatenate([half, half[::-1]])


#: the numbers of a window by its kind, from their count and the window's own parameters
_KINDS: dict[str, Callable[..., np.ndarray]] = {
    "raised_cosine": _raised_cosine, "kaiser": np.kaiser, "kaiser_bessel_derived": _half_sums,
    "vorbis": lambda count: np.sin(np.pi / 2 * np.sin(np.pi * (np.arange(count) + 0.5) / count) ** 2)}


def _window(kind: str, length: Any, dtype: Any, *parameters: Any) -> Any:
    """The window of a kind: a constant, or what Python computes where only running can tell the length."""
    size = one_size(length, "window_length")
    if isinstance(size, int):
        return tf.constant(_KINDS[kind](size, *parameters), tf.as_dtype(dtype))
    return tf.reshape(window_numbers(kind, as_scalar(size), tf.as_dtype(dtype), parameters), [size])


@hosted
def window_numbers(kind: str, count: Any, dtype: Any, parameters: tuple[Any, ...]) -> Any:
    """The numbers of a window whose length is a tensor."""
    def window_of(tensor: Any) -> list[Any]:
        made = _KINDS[kind](int(engine.array_of(tensor)), *parameters)
        return [engine.tensor_of(made.astype(dtype.as_numpy_dtype))]
    return engine.host_call(window_of, kind, [count], [tf.TensorSpec([None], dtype)])[0]


@public
def hann_window(window_length: Any, periodic: Any = True, dtype: Any = tf.float32, name: str | None = None) -> Any:
    """Hann's window: half a cosine, raised.

    Args:
        window_length: how many numbers.
        periodic: whether it is a part of a periodic one, for lengths that are even.
        dtype: of the window.
        name: accepted, without effect.

    >>> import twofold as tf
    >>> tf.signal.hann_window(4).numpy().round(3).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    return _window("raised_cosine", window_length, dtype, bool(periodic), 0.5, 0.5)


@public
def hamming_window(window_length: Any, periodic: Any = True, dtype: Any = tf.float32, name: str | None = None) -> Any:
    """Hamming's window; see `hann_window`. `name` has no effect."""
    return _window("raised_cosine", window_length, dtype, bool(periodic), 0.54, 0.46)


@public
def kaiser_window(window_length: Any, beta: Any = 12.0, dtype: Any = tf.float32, name: str | None = None) -> Any:
    """Kaiser's window.

    Args:
        window_length: how many numbers.
        beta: how narrow it is.
        dtype: of the window.
        name: accepted, without effect.
    """
    return _window("kaiser", window_length, dtype, one_number(beta, "beta"))


@public
def kaiser_bessel_derived_window(window_length: Any, beta: Any = 12.0, dtype: Any = tf.float32,
                                 name: str | None = None) -> Any:
    """The window of roots of sums of Kaiser's, whose squares half a window apart add up to 1; see `kaiser_window`.

    `name` has no effect.
    """
    return _window("kaiser_bessel_derived", window_length, dtype, one_number(beta, "beta"))


@public
def vorbis_window(window_length: Any, dtype: Any = tf.float32, name: str | None = None) -> Any:
    """Vorbis's window, whose squares half a window apart add up to 1; see `hann_window`. `name` has no effect."""
    return _window("vorbis", window_length, dtype)


# -- frames --------------------------------------------------------------------------------------------
def _positive(value: Any, what: str) -> Any:
    """A number of samples: an integer, or an int32 scalar where only running can tell it."""
    part = one_part(value, what)
    if isinstance(part, int):
        if part < 1:
            raise ValueError(f"frame: {what} must be positive; got {part}")
        return part
    number = tf.cast(as_scalar(part), tf.int32)
    check(number > 0, f"frame: {what} must be positive.", [number])
    return number


@public
def frame(signal: Any, frame_length: Any, frame_step: Any, pad_end: bool = False, pad_value: Any = 0, axis: int = -1,
          name: str | None = None) -> Any:
    """Pieces of signals, which may overlap.

    Args:
        signal: [.., samples, ..].
        frame_length: samples of a piece.
        frame_step: samples from one piece to the next.
        pad_end: whether the last pieces are filled with `pad_value`, rather than left out.
        pad_value: a number.
        axis: which axis is cut.
        name: accepted, without effect.
    Returns:
        [.., pieces, frame_length, ..].
    Raises:
        ValueError: a length is not positive.

    >>> import twofold as tf
    >>> tf.signal.frame([1, 2, 3, 4, 5], 3, 1, pad_end=False).numpy().tolist()
    [[1, 2, 3], [2, 3, 4], [3, 4, 5]]
    """
    x: Any = tf.convert_to_tensor(signal)
    length, step = _positive(frame_length, "frame_length"), _positive(frame_step, "frame_step")
    at = one_axis(axis, x.shape.rank)
    known = None if is_open(length) or is_open(step) else x.shape.as_list()[at]
    samples = tf.shape(x)[at] if known is None else known
    if pad_end:
        count = -(-samples // step)
        rest = (count - 1) * step + length - samples
        most: Any = max(rest, 0) if known is not None else tf.maximum(rest, 0)
        x = tf.pad(x, [[0, most] if i == at else [0, 0] for i in range(x.shape.rank)], constant_values=pad_value)
    else:
        count = (samples - length) // step + 1
        count = max(count, 0) if known is not None else tf.maximum(count, 0)
    places = tf.range(count)[:, tf.newaxis] * step + tf.range(length)[tf.newaxis]
    return tf.gather(x, places, axis=at)


@public
def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Any:
    """The sum of pieces, each a step behind the one before.

    Args:
        signal: [.., pieces, length].
        frame_step: samples from one piece to the next.
        name: accepted, without effect.
    Returns:
        [.., (pieces - 1) * frame_step + length].
    Raises:
        ValueError: `signal` has a rank below 2, or its pieces are of unknown length.

    >>> import twofold as tf
    >>> tf.signal.overlap_and_add([[1, 1, 1], [2, 2, 2]], 2).numpy().tolist()
    [1, 1, 3, 2, 2]
    """
    step = one_int(frame_step, "frame_step")
    x: Any = tf.convert_to_tensor(signal)
    rank = x.shape.rank
    length = x.shape.as_list()[-1] if rank is not None and rank >= 2 else None
    if length is None:
        raise ValueError(f"overlap_and_add: signal must be [.., pieces, length] of known length; got {x.shape}")
    parts = -(-length // step)
    lead = [[0, 0]] * (rank - 2)
    x = tf.pad(x, [*lead, [0, 0], [0, parts * step - length]])
    head, pieces = tf.shape(x)[:-2], tf.shape(x)[-2]
    x = tf.reshape(x, tf.concat([head, [pieces, parts, step]], 0))
    total = None
    for n in range(parts):  # the nth part of each piece, n steps behind
        part = tf.pad(x[..., n, :], [*lead, [n, parts - 1 - n], [0, 0]])
        total = part if total is None else total + part
    flat = tf.reshape(total, tf.concat([head, [(pieces + parts - 1) * step]], 0))
    return flat[..., :(pieces - 1) * step + length]


@public
def stft(signals: Any, frame_length: Any, frame_step: Any, fft_length: Any = None,
         window_fn: Callable[..., Any] | None = hann_window, pad_end: bool = False, name: str | None = None) -> Any:
    """Short-time Fourier transforms.

    Args:
        signals: real [.., samples].
        frame_length, frame_step, pad_end: as for `frame`.
        fft_length: samples of a transform; by default the smallest power of two that holds a piece.
        window_fn: gives the window for a length and `dtype`; None for none.
        name: accepted, without effect.
    Returns:
        complex [.., pieces, fft_length // 2 + 1].

    >>> import twofold as tf
    >>> tf.signal.stft(tf.zeros([100]), 16, 8).shape
    TensorShape([11, 9])
    """
    pieces = frame(signals, frame_length, frame_step, pad_end)
    if window_fn is not None:
        pieces = pieces * window_fn(one_int(frame_length, "frame_length"), dtype=pieces.dtype)
    return rfft(pieces, [_transform_length(frame_length, fft_length)])


def _transform_length(frame_length: Any, fft_length: Any) -> int:
    if fft_length is not None:
        return one_int(fft_length, "fft_length")
    return 1 << max(one_int(frame_length, "frame_length") - 1, 0).bit_length()


@public
def inverse_stft(stfts: Any, frame_length: Any, frame_step: Any, fft_length: Any = None,
                 window_fn: Callable[..., Any] | None = hann_window, name: str | None = None) -> Any:
    """Signals of short-time Fourier transforms.

    Args:
        stfts: complex [.., pieces, fft_length // 2 + 1].
        frame_length, frame_step, fft_length: as for `stft`.
        window_fn: as for `stft`; with that of `inverse_stft_window_fn` the signal comes back that `stft` was given.
        name: accepted, without effect.
    Returns:
        real [.., samples].

    >>> import twofold as tf
    >>> window = tf.signal.inverse_stft_window_fn(8)
    >>> back = tf.signal.inverse_stft(tf.signal.stft(tf.ones([64]), 16, 8), 16, 8, window_fn=window)
    >>> back.numpy()[8:12].round(4).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    length, whole = one_int(frame_length, "frame_length"), _transform_length(frame_length, fft_length)
    pieces = irfft(stfts, [whole])[..., :length]
    if whole < length:
        pieces = tf.pad(pieces, [[0, 0]] * (pieces.shape.rank - 1) + [[0, length - whole]])
    if window_fn is not None:
        pieces = pieces * window_fn(length, dtype=pieces.dtype)
    return overlap_and_add(pieces, frame_step)


@public
def inverse_stft_window_fn(frame_step: Any, forward_window_fn: Callable[..., Any] = hann_window,
                           name: str | None = None) -> Callable[..., Any]:
    """The function for windows of `inverse_stft` that undo those of `stft`.

    Args:
        frame_step: samples from one piece to the next.
        forward_window_fn: the windows of `stft`.
        name: accepted, without effect.
    Returns:
        A function of a length and `dtype`.
    """
    def window(frame_length: Any, dtype: Any) -> Any:
        length, step = one_int(frame_length, "frame_length"), one_int(frame_step, "frame_step")
        forward = forward_window_fn(length, dtype=dtype)
        overlaps = -(-length // step)
        squares = tf.reshape(tf.pad(tf.square(forward), [[0, overlaps * step - length]]), [overlaps, 1, step])
        sums = tf.tile(tf.reduce_sum(squares, axis=0, keepdims=True), [overlaps, 1, 1])
        return forward / tf.reshape(sums, [-1])[:length]
    return window


# -- cosine transforms ---------------------------------------------------------------------------------
def _cosines(kind: int, count: int, norm: str | None, size: int) -> np.ndarray:
    """The matrix of a cosine transform [samples, frequencies], in float64."""
    n, k = np.arange(count)[:, None], np.arange(count)[None, :]
    if kind == 1:
        matrix = 2 * np.cos(np.pi * n * k / max(count - 1, 1))
        matrix[[0, -1]] /= 2
        return matrix
    if kind == 2:
        matrix = 2 * np.cos(np.pi * k * (2 * n + 1) / (2 * count))
        if norm == "ortho":
            matrix *= math.sqrt(0.5 / count)
            matrix[:, 0] *= math.sqrt(0.5)
        return matrix
    if kind == 3:
        if norm == "ortho":
            return _cosines(2, count, norm, size).T
        matrix = 2 * np.cos(np.pi * n * (2 * k + 1) / (2 * count))
        matrix[0] /= 2
        return matrix
    matrix = 2 * np.cos(np.pi * (2 * n + 1) * (2 * k + 1) / (4 * count))
    return matrix * math.sqrt(0.5 / count) if norm == "ortho" else matrix


def _checked(kind: int, axis: int, norm: str | None, count: int | None) -> int:
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if kind not in (1, 2, 3, 4):
        raise ValueError("Types I, II, III and IV (I)DCT are supported.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")
    if kind == 1 and norm == "ortho":
        raise ValueError("Normalization is not supported for the Type-I DCT.")
    if count is None:
        raise ValueError("the number of samples must be known")
    if kind == 1 and count < 2:
        raise ValueError("DCT-I requires the dimension to be greater than one.")
    return count


@public
def dct(input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
        name: str | None = None) -> Any:
    """Cosine transforms over the last axis, as products with a matrix.

    Args:
        input: real [.., samples].
        type: 1, 2, 3 or 4.
        n: to how many samples they are cut or filled with zeros.
        axis: -1.
        norm: "ortho" for an orthogonal transform, or None.
        name: accepted, without effect.
    Raises:
        ValueError: a setting is none of these.

    >>> import twofold as tf
    >>> print(tf.signal.dct([1.0, 1.0], norm="ortho").numpy().round(3))
    [1.414 0.   ]
    """
    x: Any = tf.convert_to_tensor(input)
    if n is not None:
        if n < 1:
            raise ValueError(f"n should be a positive integer or None; got {n}")
        have = x.shape.as_list()[-1]
        x = x[..., :n] if have >= n else tf.pad(x, [[0, 0]] * (x.shape.rank - 1) + [[0, n - have]])
    count = _checked(type, axis, norm, x.shape.as_list()[-1])
    return tf.tensordot(x, tf.constant(_cosines(type, count, norm, x.dtype.size), x.dtype), axes=1)


@public
def idct(input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
         name: str | None = None) -> Any:
    """The inverse of `dct`, but for a factor of twice the samples where `norm` is None; see there.

    `name` has no effect.

    Raises:
        ValueError: a setting is none of these, or `n` is given.
    """
    if n is not None:
        raise NotImplementedError("n must be None for idct")
    return dct(input, {1: 1, 2: 3, 3: 2, 4: 4}.get(type, type), None, axis, norm)


# -- the mel scale -------------------------------------------------------------------------------------
@public
def mdct(signals: Any, frame_length: Any, window_fn: Callable[..., Any] | None = vorbis_window, pad_end: bool = False,
         norm: str | None = None, name: str | None = None) -> Any:
    """Modified cosine transforms of pieces of signals that overlap by half.

    Args:
        signals: floats [.., samples].
        frame_length: samples of a piece, a multiple of 4.
        window_fn: a function of a length and `dtype` that gives what pieces are multiplied by; None for a constant.
        pad_end: whether pieces that go beyond the end are filled with zeros, or left out.
        norm: "ortho" for a transform that keeps lengths.
        name: accepted, without effect.
    Returns:
        floats [.., pieces, frame_length // 2].
    Raises:
        ValueError: `frame_length` is no multiple of 4, or another `norm`.

    >>> import twofold as tf
    >>> tf.signal.mdct(tf.ones([16]), 8).shape
    TensorShape([3, 4])
    """
    length = one_int(frame_length, "frame_length")
    if length <= 0 or length % 4:
        raise ValueError(f"mdct: The frame length must be a multiple of 4; got {length}.")
    pieces = frame(signals, length, length // 2, pad_end)
    pieces = pieces * (math.sqrt(0.5) if window_fn is None else window_fn(length, dtype=pieces.dtype))
    a, b, c, d = tf.split(pieces, 4, axis=-1)
    turned = tf.concat([-tf.reverse(c, [-1]) - d, a - tf.reverse(b, [-1])], axis=-1)
    return dct(turned, type=4, norm=norm)


@public
def inverse_mdct(mdcts: Any, window_fn: Callable[..., Any] | None = vorbis_window, norm: str | None = None,
                 name: str | None = None) -> Any:
    """Signals of modified cosine transforms.

    Args:
        mdcts: floats [.., pieces, half of a piece's samples].
        window_fn, norm: as for `tf.signal.mdct`; with the same ones the signal comes back, but for its first and last
            half of a piece.
        name: accepted, without effect.
    Returns:
        floats [.., samples].
    Raises:
        ValueError: another `norm`.

    >>> import twofold as tf
    >>> back = tf.signal.inverse_mdct(tf.signal.mdct(tf.ones([16]), 8))
    >>> back.numpy()[4:12].round(4).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    mdcts = tf.convert_to_tensor(mdcts)
    half = mdcts.shape[-1]
    inner = dct(mdcts, type=4, norm=norm)
    if norm is None:
        inner = inner * (0.5 / half)
    a, b = tf.split(inner, 2, axis=-1)
    pieces = tf.concat([b, -tf.reverse(b, [-1]), -tf.reverse(a, [-1]), -a], axis=-1)
    pieces = pieces * (math.sqrt(0.5) if window_fn is None else window_fn(2 * half, dtype=pieces.dtype))
    return overlap_and_add(pieces, half)


def _mel(frequencies: Any) -> Any:
    return 1127.0 * np.log1p(np.asarray(frequencies, np.float64) / 700.0)


@public
def linear_to_mel_weight_matrix(num_mel_bins: int = 20, num_spectrogram_bins: int = 129, sample_rate: Any = 8000,
                                lower_edge_hertz: float = 125.0, upper_edge_hertz: float = 3800.0,
                                dtype: Any = tf.float32, name: str | None = None) -> Any:
    """What to multiply spectra [.., bins] with to get their parts in triangles that are even on the mel scale.

    Args:
        num_mel_bins: how many triangles.
        num_spectrogram_bins: of a spectrum, from 0 to half the sample rate.
        sample_rate: samples per second.
        lower_edge_hertz, upper_edge_hertz: where the first triangle begins, and the last one ends.
        dtype: of the matrix.
        name: accepted, without effect.
    Returns:
        [num_spectrogram_bins, num_mel_bins].
    Raises:
        ValueError: a number is out of its range.

    >>> import twofold as tf
    >>> tf.signal.linear_to_mel_weight_matrix(4, 9).shape
    TensorShape([9, 4])
    """
    rate = one_number(sample_rate, "sample_rate")
    if num_mel_bins <= 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {num_mel_bins}")
    if lower_edge_hertz < 0.0 or lower_edge_hertz >= upper_edge_hertz or upper_edge_hertz > rate / 2:
        raise ValueError(f"the edges must be 0 <= lower < upper <= {rate / 2}; got {lower_edge_hertz} and "
                         f"{upper_edge_hertz}")
    lines = _mel(np.linspace(0.0, rate / 2, num_spectrogram_bins)[1:])[:, None]
    edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), num_mel_bins + 2)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    weights = np.maximum(0.0, np.minimum((lines - low) / (middle - low), (high - lines) / (high - middle)))
    return tf.constant(np.pad(weights, [[1, 0], [0, 0]]), dtype)


@public
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Any:
    """Mel-frequency cepstral coefficients, scaled as the HTK does.

    Args:
        log_mel_spectrograms: [.., bins].
        name: accepted, without effect.
    Returns:
        A tensor of that shape.
    """
    x = tf.convert_to_tensor(log_mel_spectrograms)
    count = x.shape.as_list()[-1]
    if not count:
        raise ValueError(f"num_mel_bins must be known and positive; got shape {x.shape}")
    return dct(x) * tf.cast(1.0 / math.sqrt(2.0 * count), x.dtype)
