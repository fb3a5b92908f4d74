"""GIF files as arrays of frames.

The blocks of a file are read here (GIF89a specification, CompuServe 1990): frames are laid over one another as
TensorFlow's decoder does, which keeps what a frame leaves transparent or uncovered and does not look at the method of
disposal. The compressed numbers of a frame's colours are Pillow's work, which gets each frame as a file of its own.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["decode"]

_MOST = 1 << 29  # pixels of all frames together
_IMAGE, _EXTENSION, _END, _CONTROL = 0x2C, 0x21, 0x3B, 0xF9


@dataclass(frozen=True)
class _Frame:
    left: int
    top: int
    width: int
    height: int
    colours: np.ndarray  # uint8 [n, 3]
    clear: int  # the transparent colour, or -1
    bits: bytes  # the packed field with the bit of interlacing alone, then the compressed numbers


def decode(data: bytes, every: bool = True) -> np.ndarray:
    """The frames of a GIF file.

    Args:
        data: the whole file.
        every: whether all frames are wanted, or the first alone.
    Returns:
        uint8 [frames, height, width, 3].
    Raises:
        ValueError: it is no GIF file, is damaged or incomplete, or has 2**29 or more pixels.
        ImportError: Pillow is not there.
    """
    frames = list(_frames(data))
    if not frames:
        raise ValueError("the GIF file has no frames")
    frames = frames if every else frames[:1]
    width, height = max(f.width for f in frames), max(f.height for f in frames)
    if len(frames) * width * height >= _MOST:
        raise ValueError(f"a GIF file of {len(frames)} frames of {width} by {height} pixels is too large: fewer than "
                         "2**29 pixels are allowed")
    images = np.zeros((len(frames), height, width, 3), np.uint8)
    for n, frame in enumerate(frames):
        if n:
            images[n] = images[n - 1]
        numbers = _numbers(frame)
        here = images[n, frame.top:frame.top + frame.height, frame.left:frame.left + frame.width]
        numbers = numbers[:here.shape[0], :here.shape[1]]
        _lay(here, numbers, frame, n)
    return images


def _lay(here: np.ndarray, numbers: np.ndarray, frame: _Frame, place: int) -> None:
    """Write a frame's colours where it is not transparent."""
    seen = None if frame.clear < 0 else numbers != frame.clear
    last = int(numbers.max(initial=0, where=True if seen is None else seen))
    if last >= len(frame.colours):
        raise ValueError(f"the GIF file is damaged: frame {place} has a colour {last} of {len(frame.colours)}")
    for channel in range(3):
        colours = np.zeros(256, np.uint8)
        colours[:len(frame.colours)] = frame.colours[:, channel]
        if seen is None:
            here[..., channel] = colours[numbers]
        else:
            np.copyto(here[..., channel], colours[numbers], where=seen)


def _frames(data: bytes) -> Iterator[_Frame]:
    if data[:6] not in (b"GIF87a", b"GIF89a"):
        raise ValueError("this is no GIF file")
    at, common, clear = 13, None, -1
    _bounds(data, at)
    if data[10] & 128:
        common, at = _colours(data, at, data[10])
    while True:
        _bounds(data, at + 1)
        kind = data[at]
        if kind == _END:
            return
        if kind == _EXTENSION:
            _bounds(data, at + 2)
            label, at = data[at + 1], at + 2
            end, blocks = _blocks(data, at)
            if label == _CONTROL and len(blocks) >= 4:
                clear = blocks[3] if blocks[0] & 1 else -1
            at = end
        elif kind == _IMAGE:
            _bounds(data, at + 10)
            left, top, width, height, packed = struct.unpack_from("<HHHHB", data, at + 1)
            if not (width and height):
                raise ValueError(f"the GIF file has a frame of {width} by {height} pixels")
            colours, at = _colours(data, at + 10, packed) if packed & 128 else (common, at + 10)
            if colours is None:
                raise ValueError("the GIF file has a frame without colours")
            _bounds(data, at + 1)
            end, _ = _blocks(data, at + 1, False)
            yield _Frame(left, top, width, height, colours, clear, bytes([packed & 64]) + data[at:end])
            at, clear = end, -1
        else:
            raise ValueError(f"the GIF file is damaged: there is no block {kind:#04x}")


def _bounds(data: bytes, end: int) -> None:
    if end > len(data):
        raise ValueError(f"the GIF file ends too early, after {len(data)} bytes")


def _colours(data: bytes, at: int, packed: int) -> tuple[np.ndarray, int]:
    end = at + 3 * (2 << (packed & 7))
    _bounds(data, end)
    return np.frombuffer(data[at:end], np.uint8).reshape(-1, 3), end


def _blocks(data: bytes, at: int, wanted: bool = True) -> tuple[int, bytes]:
    """The end of the chain of blocks that begins at `at`, and the bytes in these blocks if they are `wanted`."""
    parts = []
    while True:
        _bounds(data, at + 1)
        size = data[at]
        _bounds(data, at + 1 + size)
        if wanted:
            parts.append(data[at + 1:at + 1 + size])
        at += 1 + size
        if not size:
            return at, b"".join(parts)


def _numbers(frame: _Frame) -> np.ndarray:
    """The numbers of the colours of a frame's pixels, [height, width]."""
    from .jpeg import pillow
    size = struct.pack("<HH", frame.width, frame.height)
    # without a table of colours, numbers are left as they are
    file = b"".join([b"GIF89a", size, bytes(3), bytes([_IMAGE]), bytes(4), size, frame.bits, bytes([_END])])
    plugin = pillow("GifImagePlugin")
    try:
        with plugin.GifImageFile(io.BytesIO(file)) as image:
            pixels = np.asarray(image)
    except (OSError, SyntaxError, EOFError, ValueError, struct.error) as error:
        raise ValueError(f"the GIF file is damaged: {error}") from None
    if pixels.shape != (frame.height, frame.width) or pixels.dtype != np.uint8:
        raise ValueError("the GIF file is damaged: a frame has not the size that it states")
    return pixels
