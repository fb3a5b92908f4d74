"""Images as PNG files: 8-bit grey, grey with alpha, RGB and RGBA, without interlacing.

The format is that of the W3C's recommendation (PNG, third edition, sections 5, 9 and 11); every row has filter 0.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

__all__ = ["encode"]

_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}  # channels -> colour type


def encode(image: np.ndarray) -> bytes:
    """The bytes of a PNG file.

    Args:
        image: uint8 [height, width, channels] with 1 to 4 channels, or [height, width].
    Raises:
        ValueError: it has another shape or dtype, or no pixels.

    >>> import numpy as np
    >>> from twofold import _png
    >>> _png.encode(np.zeros((2, 3, 3), np.uint8))[:4]
    b'\\x89PNG'
    """
    image = np.asarray(image)
    pixels = image[..., None] if image.ndim == 2 else image
    if pixels.ndim != 3 or pixels.shape[2] not in _COLOURS or pixels.dtype != np.uint8 or 0 in pixels.shape:
        raise ValueError("a PNG image is uint8 [height, width, 1 to 4] with pixels in it; got "
                         f"{image.dtype}{list(image.shape)}")
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    parts = _chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(rows.tobytes())), _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
