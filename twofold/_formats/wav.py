"""WAV files of 16-bit samples: `tf.audio.decode_wav` and `encode_wav`."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from twofold._front import iteration as engine
from twofold._front.api import one_int, public, tensor
from twofold._front.hosted import hosted
from twofold.ir import dtypes as dt
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.spec import TensorSpec

__all__ = ["decode_wav", "encode_wav", "samples_of"]

_SCALE = np.float32(1 << 15)
_PCM = 1
_SKIPPED = frozenset({b"JUNK", b"bext", b"iXML", b"qlty", b"mext", b"levl", b"link", b"axml"})  # before the format
_HEADER = 44  # bytes before the samples of what is written


def _wrong(problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, "DecodeWav", problem)


@public
@hosted
def decode_wav(contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None) -> Any:
    """The samples of a WAV file of 16 bits, as numbers from -1 to 1.

    Args:
        contents: of the file, a string scalar.
        desired_channels: how many channels the result has: the first ones, or the last one again; -1 for all.
        desired_samples: how many samples the result has: the first ones, or zeros behind them; -1 for all.
        name: accepted, without effect.
    Returns:
        `(audio, sample_rate)`: float32 [samples, channels], and an int32 scalar.
    Raises:
        InvalidArgumentError: the contents are no WAV file, or one of other samples.

    >>> import twofold as tf
    >>> audio, rate = tf.audio.decode_wav(tf.audio.encode_wav([[0.0], [0.5], [-1.0]], 8000))
    >>> audio.numpy().ravel().tolist(), int(rate)
    ([0.0, 0.5, -1.0], 8000)
    """
    given = tensor(contents, dt.string)
    channels, samples = one_int(desired_channels, "desired_channels"), one_int(desired_samples, "desired_samples")
    if channels < -1 or samples < -1:
        raise _wrong(f"desired_channels and desired_samples must be at least -1; got {channels} and {samples}")
    if given.shape.rank not in (0, None):
        raise _wrong(f"Input contents should be scalar: {given.shape}")

    def decode(text: Any) -> list[Any]:
        audio, rate = samples_of(engine.array_of(text).item(), samples)
        if channels > 0:
            audio = audio[:, np.minimum(np.arange(channels), audio.shape[1] - 1)]
        if samples > len(audio):
            audio = np.concatenate([audio, np.zeros((samples - len(audio), audio.shape[1]), np.float32)])
        return [engine.tensor_of(audio), engine.tensor_of(np.array(rate, np.int32))]
    shape = [None if samples < 0 else samples, None if channels <= 0 else channels]
    return tuple(engine.host_call(decode, "DecodeWav", [given], [TensorSpec(shape, dt.float32),
                                                                 TensorSpec([], dt.int32)]))


def samples_of(contents: bytes, most: int = -1) -> tuple[np.ndarray, int]:
    """The samples of a file, float32 [samples, channels], and how many there are in a second.

    Args:
        contents: of the file.
        most: how many samples are read; -1 for all.
    Raises:
        InvalidArgumentError: it is no file of 16-bit samples.
    """
    at = _expected(contents, 0, b"RIFF") + 4
    at = _expected(contents, at, b"WAVE")
    name, size, at = _chunk(contents, at)
    while name != b"fmt ":
        if name not in _SKIPPED:
            raise _wrong(f"Unexpected chunk {name!r} before the format of a WAV file")
        name, size, at = _chunk(contents, _after(contents, at, size))
    channels, rate = _format(contents, at, size)
    at = _after(contents, at, size)
    audio = None
    while at < len(contents):
        name, size, at = _chunk(contents, at)
        if size > (1 << 31) - 1:
            raise _wrong(f"WAV data chunk {name!r} is too large: {size} bytes")
        if name == b"data":
            if audio is not None:
                raise _wrong("More than one data chunk found in WAV")
            count = size // (2 * channels)
            _after(contents, at, count * 2 * channels)  # before memory is taken for them
            audio = np.frombuffer(contents, "<i2", count * channels, at).reshape(count, channels)
            size = count * 2 * channels
        at = _after(contents, at, size)
    if audio is None:
        raise _wrong("No data chunk found in WAV")
    return audio[:most if most >= 0 else None].astype(np.float32) / _SCALE, rate


def _expected(contents: bytes, at: int, name: bytes) -> int:
    if len(contents) < at + len(name):
        raise _wrong("Data too short when trying to read string")
    if contents[at:at + len(name)] != name:
        raise _wrong(f"Header mismatch: Expected {name.decode()} but found {contents[at:at + len(name)]!r}")
    return at + len(name)


def _chunk(contents: bytes, at: int) -> tuple[bytes, int, int]:
    """The name and the size of a chunk, and where its contents begin."""
    if len(contents) < at + 8:
        raise _wrong("Data too short when trying to read a chunk of a WAV file")
    return contents[at:at + 4], int.from_bytes(contents[at + 4:at + 8], "little"), at + 8


def _after(contents: bytes, at: int, size: int) -> int:
    if size > len(contents) - at:
        raise _wrong(f"Data too short when trying to read {size} bytes of a WAV file")
    return at + size


def _format(contents: bytes, at: int, size: int) -> tuple[int, int]:
    """The number of channels and of samples in a second."""
    if size not in (16, 18):
        raise _wrong(f"Bad format chunk size for WAV: Expected 16 or 18, but got {size}")
    _after(contents, at, size)
    kind, channels, rate, in_second, in_sample, bits = struct.unpack_from("<HHIIHH", contents, at)
    if kind != _PCM:
        raise _wrong(f"Bad audio format for WAV: Expected 1 (PCM), but got {kind}")
    if not channels:
        raise _wrong("Bad number of channels for WAV: Expected at least 1, but got 0")
    if bits != 16:
        raise _wrong(f"Can only read 16-bit WAV files, but received {bits}")
    if in_sample != 2 * channels:
        raise _wrong(f"Bad bytes per sample in WAV header: Expected {2 * channels} but got {in_sample}")
    if in_second != in_sample * rate:
        raise _wrong(f"Bad bytes per second in WAV header: Expected {in_sample * rate} but got {in_second} "
                     f"(sample_rate={rate}, bytes_per_sample={in_sample})")
    if rate >= 1 << 31:
        raise _wrong(f"a sample rate of {rate} does not fit in an int32")
    return channels, rate


@public
@hosted
def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Any:
    """A WAV file of 16-bit samples.

    Args:
        audio: float32 [samples, channels]; what is not between -1 and 1 is cut.
        sample_rate: how many samples there are in a second, an integer scalar.
        name: accepted, without effect.
    Returns:
        The contents of the file, a string scalar.
    Raises:
        InvalidArgumentError: a shape is another, or the rate is not positive.

    >>> import twofold as tf
    >>> len(tf.audio.encode_wav(tf.zeros([10, 2]), 44100).numpy())
    84
    """
    sound, rate = tensor(audio, dt.float32), tensor(sample_rate, dt.int32)
    if sound.shape.rank not in (2, None):
        raise InvalidArgumentError(None, "EncodeWav", f"audio must be 2-dimensional; got {sound.shape}")
    if rate.shape.rank not in (0, None):
        raise InvalidArgumentError(None, "EncodeWav", f"sample_rate must be a scalar; got {rate.shape}")

    def encode(*tensors: Any) -> list[Any]:
        samples, per_second = engine.array_of(tensors[0]), int(engine.array_of(tensors[1]))
        made = np.empty((), object)
        made[()] = _written(samples, per_second)
        return [engine.tensor_of(made)]
    return engine.host_call(encode, "EncodeWav", [sound, rate], [TensorSpec([], dt.string)])[0]


def _written(audio: np.ndarray, rate: int) -> bytes:
    count, channels = audio.shape
    size = 2 * count * channels
    if rate <= 0:
        raise InvalidArgumentError(None, "EncodeWav", f"sample_rate must be in (0, 2^32), got: {rate}")
    if not 0 < channels < 1 << 16:
        raise InvalidArgumentError(None, "EncodeWav", f"num_channels must be in (0, 2^16), got: {channels}")
    if size + _HEADER >= 1 << 32 or 2 * channels * rate >= 1 << 32:
        raise InvalidArgumentError(None, "EncodeWav", "Provided channels and samples cannot be encoded as a WAV.")
    scaled = audio * _SCALE
    away = np.trunc(scaled + np.copysign(np.float32(0.5), scaled), where=np.abs(scaled) < 1 << 23, out=scaled.copy())
    samples = np.nan_to_num(np.clip(away, -(1 << 15), (1 << 15) - 1), nan=0.0).astype("<i2")
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", size + _HEADER - 8, b"WAVE", b"fmt ", 16, _PCM, channels, rate,
                       2 * channels * rate, 2 * channels, 16, b"data", size)
    return head + samples.tobytes()
