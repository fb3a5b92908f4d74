"""JPEG files read and written by Pillow, an optional library: `pip install twofold[image]`.

Sizes are checked before memory is asked for: they must be below 2**29 pixels, and such as the bytes of the file can
hold. What arguments `tf.io` has for it is `image_files.py`'s.
"""

from __future__ import annotations

import importlib
import io
import struct
from typing import Any

import numpy as np

__all__ = ["MAGIC", "decode", "encode", "pillow", "size_of"]

MAGIC = b"\xff\xd8\xff"
_MOST = 1 << 29  # pixels
_DENSEST = 64 * 8  # pixels of a component that a byte can stand for: each block of 8 by 8 takes a bit
_ARITHMETIC = (9, 10, 11, 13, 14, 15)  # frames of this coding may take less
_XMP = b"http://ns.adobe.com/xap/1.0/\x00"


def pillow(module: str) -> Any:
    """A module of Pillow.

    Raises:
        ImportError: it is not there.
    """
    try:
        return importlib.import_module(f"PIL.{module}")
    except ImportError:
        raise ImportError("JPEG and GIF files, and pictures for Keras, need Pillow: pip install "
                          "twofold[image]") from None


def _frame(data: bytes) -> tuple[int, int, int, int]:
    """The coding, height, width and components that a JPEG file states.

    Raises:
        ValueError: it states nothing.
    """
    if data[:3] != MAGIC:
        raise ValueError("this is no JPEG file")
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            break
        kind = data[at + 1]
        if kind == 0xFF:
            at += 1
            continue
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            if at + 10 > len(data):
                break
            height, width, components = struct.unpack_from(">HHB", data, at + 5)
            return kind & 15, height, width, components
        if kind in (0xD9, 0xDA):
            break
        at += 2 if kind == 1 or 0xD0 <= kind <= 0xD8 else 2 + int.from_bytes(data[at + 2:at + 4], "big")
    raise ValueError("the JPEG file is damaged or incomplete: it has no frame")


def size_of(data: bytes) -> tuple[int, int, int]:
    """The height, width and components that a JPEG file states.

    Raises:
        ValueError: it states nothing.
    """
    return _frame(data)[1:]


def decode(data: bytes, channels: int = 0, ratio: int = 1, recover: bool = False) -> np.ndarray:
    """The image in a JPEG file.

    Args:
        data: the whole file.
        channels: 1 for grey, 3 for RGB, 0 for what it has.
        ratio: by what its sizes are divided: 1, 2, 4 or 8.
        recover: whether the beginning of an incomplete file is taken, with grey in the place of the rest.
    Returns:
        uint8 [height, width, channels].
    Raises:
        ValueError: it is no JPEG file, is damaged or incomplete, is too large, or cannot be made grey.
        ImportError: Pillow is not there.
    """
    plugin = pillow("JpegImagePlugin")
    coding, height, width, components = _frame(data)
    if not (width and height) or width * height >= _MOST:
        raise ValueError(f"a JPEG image of {width} by {height} pixels cannot be read: fewer than 2**29 pixels are")
    if width * height > _DENSEST * (len(data) + 64) and coding not in _ARITHMETIC and not recover:
        raise ValueError(f"the JPEG file is incomplete: {len(data)} bytes cannot hold {width} by {height} pixels")
    if components == 4 and channels == 1:
        raise ValueError("a JPEG file with four components cannot be made grey")
    file = io.BytesIO(data + b"\xff\xd9" if recover else data)  # the mark of the end, where it may be missing
    try:
        with plugin.JpegImageFile(file) as image:
            image.draft("L" if channels == 1 else "RGB" if components == 3 else None,
                        (image.width / ratio, image.height / ratio))
            pixels = np.asarray(image)
    except (OSError, SyntaxError, EOFError, ValueError, struct.error, IndexError, KeyError) as error:
        raise ValueError(f"the JPEG file is damaged or incomplete: {error}") from None
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.shape[2] == 4:  # Pillow gives how much ink there is
        light = 255 - pixels.astype(np.uint32)
        pixels = (light[..., :3] * light[..., 3:] // 255).astype(np.uint8)
    if pixels.shape[2] == 1 and channels == 3:
        pixels = np.repeat(pixels, 3, axis=2)
    return pixels


def encode(pixels: np.ndarray, quality: int, progressive: bool, small: bool, halved: bool, unit: str,
           density: tuple[int, int], xmp: bytes) -> bytes:
    """The bytes of a JPEG file.

    Args:
        pixels: uint8 [height, width, 1 or 3] with pixels in it.
        quality: 0 to 100.
        progressive: whether it shows coarsely before it is loaded.
        small: whether more time is taken to make it smaller.
        halved: whether colours are kept at half the resolution.
        unit: "in" or "cm", of which `density` gives the pixels across and down.
        xmp: metadata, or nothing.
    """
    image = pillow("Image").fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    file = io.BytesIO()
    # a quality of 0 would be Pillow's word for its own default
    image.save(file, "JPEG", quality=max(1, quality), progressive=progressive, optimize=small,
               subsampling=2 if halved else 0)
    made = file.getvalue()
    head = made[:13] + struct.pack(">BHH", 1 if unit == "in" else 2, *density) + made[18:20]
    extra = _XMP + xmp if xmp else b""
    added = b"\xff\xe1" + struct.pack(">H", 2 + len(extra)) + extra if extra else b""
    return head + added + made[20:]
