"""Images as PNG files: grey, grey with alpha, RGB and RGBA of 8 or 16 bits, without interlacing.

The format is that of the W3C's recommendation (PNG, third edition, sections 5, 9 and 11); every row has filter 0.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

__all__ = ["encode"]

_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}  # channels -> colour type


def encode(image: np.ndarray, compression: int = -1) -> bytes:
    """The bytes of a PNG file.

    Args:
        image: uint8 or uint16 [height, width, channels] with 1 to 4 channels, or [height, width].
        compression: 0 (quick) to 9 (small); -1 for the usual one.
    Raises:
        ValueError: it has another shape or dtype, or no pixels.

    >>> import numpy as np
    >>> from twofold import _png
    >>> _png.encode(np.zeros((2, 3, 3), np.uint8))[:4]
    b'\\x89PNG'
    """
    image = np.asarray(image)
    pixels = image[..., None] if image.ndim == 2 else image
    if pixels.ndim != 3 or pixels.shape[2] not in _COLOURS or pixels.dtype not in (np.uint8, np.uint16) \
            or 0 in pixels.shape:
        raise ValueError("a PNG image is uint8 or uint16 [height, width, 1 to 4] with pixels in it; got "
                         f"{image.dtype}{list(image.shape)}")
    height, width, channels = pixels.shape
    size = pixels.dtype.itemsize
    rows = np.zeros((height, 1 + width * channels * size), np.uint8)
    rows[:, 1:] = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder(">")).view(np.uint8).reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8 * size, _COLOURS[channels], 0, 0, 0)
    data = zlib.compress(rows.tobytes(), compression)
    parts = _chunk(b"IHDR", header), _chunk(b"IDAT", data), _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
