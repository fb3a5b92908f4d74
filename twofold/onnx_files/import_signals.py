"""ONNX ops on signals: Fourier transforms and what goes with them."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf

from .import_reductions import one_axis
from .import_table import Call, op
from .import_tensors import dtype_of as dtype_of_number
from .import_values import Value, int_list, known_array

__all__: list[str] = []

_LARGE = 1 << 24  # elements of a matrix that is made when a graph is traced


def _complex(x: Any) -> Any:
    """Numbers whose parts lie in the last axis, which has one part for real ones."""
    wide = x if x.dtype.size >= 4 else tf.cast(x, tf.float32)
    return tf.complex(wide[..., 0], wide[..., 1] if x.dims[-1] == 2 else tf.zeros_like(wide[..., 0]))


def _parts(z: Any, dtype: Any) -> Any:
    return tf.cast(tf.stack([tf.math.real(z), tf.math.imag(z)], axis=-1), dtype)


def _of_length(z: Any, length: Any) -> Any:
    """The last axis cut, or padded with zeros, to a length."""
    have = z.dims[-1]
    if isinstance(have, int) and isinstance(length, int):
        return z[..., :length] if have >= length else tf.pad(z, [(0, 0)] * (len(z.dims) - 1) + [(0, length - have)])
    return z


def _dft_of(call: Call, x: Any, length: Value, axis: int) -> Any:
    rank = len(x.dims) - 1
    order = [*(i for i in range(rank) if i != axis), axis]
    z = tf.transpose(_complex(x), order)
    inverse, half = bool(call.attr("inverse", 0)), bool(call.attr("onesided", 0))
    default = 2 * (x.dims[axis] - 1) if inverse and half else x.dims[axis]
    count = default if length is None else int_list(length, "dft_length")[0]
    if inverse and half:
        y = tf.signal.irfft(_of_length(z, count // 2 + 1), [count])[..., None]
        made = tf.cast(y, x.dtype)
    else:
        z = _of_length(z, count)
        z = tf.signal.ifft(z) if inverse else tf.signal.fft(z)
        made = _parts(z[..., :count // 2 + 1] if half else z, x.dtype)
    return tf.transpose(made, [*(order.index(i) for i in range(rank)), rank])


@op("DFT", since=20, static=(1, 2))
def _dft(call: Call, x: Any, length: Value = None, axis: Value = None) -> Any:
    where = -2 if axis is None else int_list(axis, "axis")[0]
    return _dft_of(call, x, length, one_axis(call, where, len(x.dims)))


@op("DFT", static=(1,))
def _older_dft(call: Call, x: Any, length: Value = None) -> Any:
    return _dft_of(call, x, length, one_axis(call, call.attr("axis", 1), len(x.dims)))


@op("STFT", static=(1, 3))
def _stft(call: Call, x: Any, step: Value, window: Any = None, length: Value = None) -> Any:
    z = _complex(x if len(x.dims) == 3 else x[..., None])
    count = (window.dims[0] if length is None else int_list(length, "frame_length")[0]) if (
        window is not None or length is not None) else z.dims[-1]
    by = int_list(step, "frame_step")[0]
    parts = [tf.signal.frame(p, count, by) for p in (tf.math.real(z), tf.math.imag(z))]
    if window is not None:
        parts = [p * tf.cast(window, p.dtype) for p in parts]
    y = tf.signal.fft(tf.complex(*parts))
    return _parts(y[..., :count // 2 + 1] if call.attr("onesided", 1) else y, x.dtype)


@op("MelWeightMatrix", static=(0, 1, 2, 3, 4))
def _mel_weights(call: Call, *values: Value) -> np.ndarray:
    """Triangles on the scale of mels, as the reference rounds their corners to bins."""
    mels, length, rate, low, high = (known_array(v, "an input").item() for v in values)
    bins = length // 2 + 1
    if not (mels >= 0 and length >= 0 and rate > 0) or (mels + 2) * max(bins, 1) > _LARGE:
        raise call.fail(f"a matrix of {bins} bins and {mels} mels")
    ends = [2595 * np.log1p(f / 700) / np.log(10) for f in (low, high)]
    numbers = np.arange(mels + 2) * ((ends[1] - ends[0]) / (mels + 2)) + ends[0]
    hertz = 700 * np.expm1(numbers / 2595 * np.log(10))
    corners = np.clip(((length + 1) * hertz) // rate, 0, bins - 1).astype(int)
    made = np.zeros((bins, mels))
    for i in range(mels):
        first, middle, last = corners[i:i + 3]
        if first == middle:
            made[middle, i] = 1
        else:
            made[first:middle + 1, i] = np.arange(middle + 1 - first) / (middle - first)
        if last > middle:
            made[middle:last, i] = (last - np.arange(middle, last)) / (last - middle)
    return made.astype(dtype_of_number(call.attr("output_datatype", 1), "the result").np)
