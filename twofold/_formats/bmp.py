"""Images in BMP files: 8, 24 and 32 bits a pixel without compression, as TensorFlow reads them.

Pixels of 8 bits are taken as grey, whatever colours the file lists for them.
"""

from __future__ import annotations

import struct

import numpy as np

__all__ = ["decode"]

_MOST = 1 << 29  # pixels


def decode(data: bytes) -> np.ndarray:
    """The image in a BMP file.

    Args:
        data: the whole file.
    Returns:
        uint8 [height, width, channels]: grey, RGB, or RGB and alpha.
    Raises:
        ValueError: it is no BMP file or is incomplete, or of another kind.
    """
    if data[:2] != b"BM":
        raise ValueError("this is no BMP file")
    if len(data) < 34:
        raise ValueError(f"the BMP file is incomplete: it has {len(data)} bytes")
    first, _, width, height, _, bits, compression = struct.unpack_from("<IIiiHHI", data, 10)
    if bits not in (8, 24, 32):
        raise ValueError(f"a BMP image must have 8, 24 or 32 bits a pixel; got {bits}")
    if compression not in (0, 3):  # 3: which bits are which, as tools write it for 32 bits
        raise ValueError(f"a BMP image must not be compressed; got compression {compression}")
    rows, channels = abs(height), bits // 8
    if width <= 0 or rows == 0 or width * rows >= _MOST:
        raise ValueError(f"a BMP image of {width} by {rows} pixels cannot be read")
    size = (channels * width + 3) // 4 * 4
    if first + size * (rows - 1) + channels * width > len(data):
        raise ValueError(f"the BMP file is incomplete: it has {len(data)} bytes for an image of {width} by {rows} "
                         "pixels")
    strides = (size, channels, 1)
    pixels = np.ndarray((rows, width, channels), np.uint8, data, first, strides)
    pixels = pixels if height < 0 else pixels[::-1]
    made = np.empty((rows, width, channels), np.uint8)
    for channel, place in enumerate((2, 1, 0, 3)[:channels] if channels > 1 else (0,)):
        made[..., channel] = pixels[..., place]
    return made
