"""Layers of sound: spectrograms by windowed Fourier transforms, on linear and on mel scales."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

import twofold as tf

from .. import config, initializers
from ._declared import DeclaredLayer, InputSpec, Shape, data_format_of

__all__ = ["MelSpectrogram", "STFTSpectrogram"]


class MelSpectrogram(DeclaredLayer):
    """How strong the bands of a mel scale are in a sound, window by window.

    The mel of a frequency f is 1127 log(1 + f / 700); weights are triangles over the bands.

    Args:
        fft_length: how many numbers are transformed.
        sequence_stride: how far each window is from the one before.
        sequence_length: how long windows are; `fft_length` by default.
        window: "hann", "hamming", values [sequence_length], or None for ones.
        sampling_rate: of the sound, in Hertz.
        num_mel_bins: how many bands there are.
        min_freq, max_freq: the lowest and the highest frequency; up to half of the sampling rate by default.
        power_to_db: whether results are in decibels.
        top_db: how far below the loudest place results go.
        mag_exp: the exponent of magnitudes: 2 for powers.
        min_power: what powers are at least.
        ref_power: the power of 0 decibels.
        kwargs: those of `Layer`.
    Inputs: floating [samples] or [batch, samples]. Outputs: [bands, windows] or [batch, bands, windows].
    Raises:
        ValueError: windows are longer than what is transformed.

    >>> import twofold as tf
    >>> tf.keras.layers.MelSpectrogram(64, 16, num_mel_bins=8)(tf.ones([2, 160])).shape
    TensorShape([2, 8, 11])
    """

    _arguments = ("fft_length", "sequence_stride", "sequence_length", "window", "sampling_rate", "num_mel_bins",
                  "min_freq", "max_freq", "power_to_db", "top_db", "mag_exp", "min_power", "ref_power")

    def __init__(self, fft_length: int = 2048, sequence_stride: int = 512, sequence_length: int | None = None,
                 window: Any = "hann", sampling_rate: int = 16000, num_mel_bins: int = 128, min_freq: float = 20.0,
                 max_freq: float | None = None, power_to_db: bool = True, top_db: float = 80.0, mag_exp: float = 2.0,
                 min_power: float = 1e-10, ref_power: float = 1.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.fft_length, self.sequence_stride = fft_length, sequence_stride
        self.sequence_length = sequence_length or fft_length
        if self.fft_length < self.sequence_length:
            raise ValueError("`fft_length` must be greater than or equal to `sequence_length`. Received: "
                             f"sequence_length={self.sequence_length}, fft_length={fft_length}.")
        self.window, self.sampling_rate, self.num_mel_bins = window, sampling_rate, num_mel_bins
        self.min_freq, self.max_freq = min_freq, max_freq or int(sampling_rate / 2)
        self.power_to_db, self.top_db, self.mag_exp = power_to_db, top_db, mag_exp
        self.min_power, self.ref_power = min_power, ref_power

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        from ..ops.math import stft
        x = tf.cast(inputs, self.compute_dtype if self.compute_dtype == "float64" else tf.float32)
        real, imaginary = stft(x, self.sequence_length, self.sequence_stride, self.fft_length, self.window)
        magnitude = tf.sqrt(tf.square(real) + tf.square(imaginary))
        bands = tf.tensordot(tf.pow(magnitude, self.mag_exp), tf.cast(self._weights(), x.dtype), 1)
        if self.power_to_db:
            bands = self._decibels(bands)
        return tf.cast(tf.linalg.matrix_transpose(bands), self.compute_dtype)

    def _weights(self) -> Any:
        """The share that each frequency of a transform has in each band, [fft_length // 2 + 1, bands]."""
        with np.errstate(divide="ignore", invalid="ignore"):
            frequencies = np.linspace(0.0, self.sampling_rate / 2.0, self.fft_length // 2 + 1)
            low, high = (1127.0 * np.log1p(f / 700.0) for f in (float(self.min_freq), float(self.max_freq)))
            edges = np.linspace(low, high, self.num_mel_bins + 2)
            mel = (1127.0 * np.log1p(frequencies / 700.0))[:, np.newaxis]
            rising = (mel - edges[:-2]) / (edges[1:-1] - edges[:-2])
            falling = (edges[2:] - mel) / (edges[2:] - edges[1:-1])
            weights = np.maximum(0.0, np.minimum(rising, falling))
        weights[0] = 0.0  # the constant part counts in no band
        return tf.constant(weights, tf.float64)

    def _decibels(self, power: Any) -> Any:
        least = tf.cast(self.min_power, power.dtype)
        reference = max(abs(float(self.ref_power)), float(self.min_power))
        level = 10.0 * tf.math.log(tf.maximum(power, least)) / math.log(10.0) - 10.0 * math.log10(reference)
        return tf.maximum(level, tf.reduce_max(level) - self.top_db)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        *batch, samples = tuple(input_shape)
        over = self.fft_length // 2 * 2 - self.fft_length
        windows = None if samples is None else (samples + over) // self.sequence_stride + 1
        return (*batch, self.num_mel_bins, windows)


class STFTSpectrogram(DeclaredLayer):
    """The spectrum of a signal, window by window, by convolutions whose kernels are sines and cosines.

    Args:
        mode: "log", "magnitude", "psd" (powers), "real", "imag", "angle", or "stft" for real and imaginary parts.
        frame_length: how long windows are.
        frame_step: how far each is from the one before; half a window by default.
        fft_length: how many numbers are transformed; the next power of 2 by default.
        window: a name, values [frame_length], or None for ones.
        periodic: whether the window is periodic.
        scaling: "density" or "spectrum" for windows of length or sum 1, or None.
        padding: "valid" or "same".
        expand_dims: whether the channels have an axis of their own.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs: [batch, time, channels], or channels second. Outputs: [batch, windows, channels * frequencies], or [batch,
        windows, frequencies, channels] with `expand_dims`; with channels first [batch, channels * frequencies,
        windows] and [batch, channels, windows, frequencies].
    Weights: real_kernel and imag_kernel, those that the mode needs, [frame_length, 1, frequencies].
    Raises:
        ValueError: an argument is not one of these.

    >>> import twofold as tf
    >>> tf.keras.layers.STFTSpectrogram("magnitude", frame_length=8)(tf.ones([2, 32, 1])).shape
    TensorShape([2, 7, 5])
    """

    _arguments = ("mode", "frame_length", "frame_step", "fft_length", "window", "periodic", "scaling", "padding",
                  "data_format", "expand_dims")
    _MODES = ("log", "magnitude", "psd", "real", "imag", "angle", "stft")

    def __init__(self, mode: str = "log", frame_length: int = 256, frame_step: int | None = None,
                 fft_length: int | None = None, window: Any = "hann", periodic: bool = False,
                 scaling: str | None = "density", padding: str = "valid", expand_dims: bool = False,
                 data_format: str | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        if frame_step is not None and not 1 <= frame_step <= frame_length:
            raise ValueError("`frame_step` should be a positive integer not greater than `frame_length`. Received "
                             f"frame_step={frame_step}, frame_length={frame_length}")
        if fft_length is not None and fft_length < frame_length:
            raise ValueError("`fft_length` should be not less than `frame_length`. Received "
                             f"fft_length={fft_length}, frame_length={frame_length}")
        if fft_length is not None and fft_length & -fft_length != fft_length:
            warnings.warn(f"`fft_length` is recommended to be a power of two. Received fft_length={fft_length}",
                          stacklevel=2)
        for name, value, allowed in (("mode", mode, self._MODES), ("scaling", scaling, (None, "density", "spectrum")),
                                     ("padding", padding, ("valid", "same"))):
            if value not in allowed:
                raise ValueError(f"`{name}` must be one of {allowed}. Received: {name}={value!r}")
        self.mode, self.frame_length, self.frame_step, self.fft_length = mode, frame_length, frame_step, fft_length
        self._step = frame_step or frame_length // 2
        self._bands = (fft_length or 2 ** math.ceil(math.log2(frame_length))) // 2 + 1
        self.window, self.periodic, self.scaling, self.padding = window, periodic, scaling, padding
        self.expand_dims, self.data_format = expand_dims, data_format_of(data_format)
        self.input_spec = InputSpec(ndim=3)

    def build(self, input_shape: Any) -> None:
        """Make the kernels."""
        for side, unused in (("real", "imag"), ("imag", "real")):
            if self.mode != unused:
                kernel = initializers.STFT(side, self.window, self.scaling, self.periodic)
                setattr(self, f"{side}_kernel", self.add_weight(
                    name=f"{side}_kernel", shape=(self.frame_length, 1, self._bands), initializer=kernel))
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        if not inputs.dtype.is_floating or inputs.dtype == tf.bfloat16:
            raise TypeError("Invalid input type. Expected `float16`, `float32` or `float64`. Received: input type="
                            f"{inputs.dtype.name}")
        x = inputs if self.data_format == "channels_first" else tf.transpose(inputs, (0, 2, 1))
        return self._arranged(self._spectrum(x))

    real_kernel: Any
    imag_kernel: Any

    def _spectrum(self, x: Any) -> Any:
        """The values of the mode, [batch, channels, windows, frequencies], of signals [batch, channels, time]."""
        mode, least = self.mode, config.epsilon()
        if mode in ("real", "imag"):
            return self._projected(x, getattr(self, f"{mode}_kernel"))
        real, imaginary = self._projected(x, self.real_kernel), self._projected(x, self.imag_kernel)
        if mode == "angle":
            return tf.atan2(imaginary, real)
        if mode == "stft":
            return tf.concat([real, imaginary], axis=-1)
        power = tf.square(real) + tf.square(imaginary)
        if mode == "psd":  # what lies between the first and the last frequency stands for its mirror image, too
            return power + tf.pad(power[..., 1:-1], [[0, 0], [0, 0], [0, 0], [1, 1]])
        magnitude = tf.sqrt(tf.maximum(power, tf.cast(least, power.dtype)))
        return magnitude if mode == "magnitude" else tf.math.log(tf.maximum(magnitude, tf.cast(least, power.dtype)))

    def _projected(self, x: Any, kernel: Any) -> Any:
        shape = tf.shape(x)
        flat = tf.reshape(x, [-1, shape[2], 1])
        product = tf.nn.conv1d(flat, tf.cast(kernel, x.dtype), self._step, self.padding.upper())
        return tf.reshape(product, tf.concat([shape[:2], tf.shape(product)[1:]], 0))

    def _arranged(self, x: Any) -> Any:
        """[batch, channels, windows, frequencies] as the outputs are laid out."""
        last = self.data_format == "channels_last"
        if self.expand_dims:
            return tf.transpose(x, (0, 2, 3, 1)) if last else x
        shape = tf.shape(x)
        channels = x.shape[1] if x.shape[1] is not None else shape[1]
        joined = tf.reshape(tf.transpose(x, (0, 2, 1, 3)), [shape[0], shape[2], channels * x.shape[3]])
        return joined if last else tf.transpose(joined, (0, 2, 1))

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        last = self.data_format == "channels_last"
        batch, time, channels = input_shape if last else (input_shape[0], input_shape[2], input_shape[1])
        bands = self._bands * (2 if self.mode == "stft" else 1)
        if time is None:
            windows = None
        else:
            windows = -(-time // self._step) if self.padding == "same" else (time - self.frame_length) // self._step + 1
        if self.expand_dims:
            return (batch, windows, bands, channels) if last else (batch, channels, windows, bands)
        joined = None if channels is None else channels * bands
        return (batch, windows, joined) if last else (batch, joined, windows)
