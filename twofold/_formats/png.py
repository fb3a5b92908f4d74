"""Images as PNG files, written and read: all colour types, depths, filters and the interlaced form.

The format is that of the W3C's recommendation (PNG, third edition, sections 5 to 13). What is written is not
interlaced, and its rows have filter 0. What is read may come from anywhere: every size is checked against the bytes
that are there before memory is asked for, and every checksum. What channels mean to `tf.io` is `image_files.py`'s.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from twofold.codegen.kernels import file_bytes as generated
from twofold.runtime import kernels
from twofold.runtime.calls import address_of, run_alone

__all__ = ["MAGIC", "Picture", "decode", "encode", "size_of"]

MAGIC = b"\x89PNG\r\n\x1a\n"
_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}  # channels -> colour type
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # colour type -> samples of a pixel
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PALETTE = 3
_WHOLE = ((0, 0, 1, 1),)
# Adam7: the first column and row of each pass, and the steps between its columns and rows
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_LAST_FILTER = 4
_MOST = 1 << 29  # pixels of an image
_DENSEST = 1032  # bytes that a byte of deflated data can stand for (zlib's technical details)


# -- writing --------------------------------------------------------------------------------------
def encode(image: np.ndarray, compression: int = -1) -> bytes:
    """The bytes of a PNG file.

    Args:
        image: uint8 or uint16 [height, width, channels] with 1 to 4 channels, or [height, width].
        compression: 0 (quick) to 9 (small); -1 for the usual one.
    Raises:
        ValueError: it has another shape or dtype, or no pixels.

    >>> import numpy as np
    >>> from twofold._formats import png
    >>> png.encode(np.zeros((2, 3, 3), np.uint8))[:4]
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
    return MAGIC + b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# -- reading --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Picture:
    """The contents of a PNG file.

    Attributes:
        pixels: uint8 or uint16 [height, width, 1 to 4], grey or RGB, with alpha where the pixels themselves have it; a
            palette's colours stand in the places of their numbers, and depths below 8 bits are stretched to 8.
        alpha: [height, width, 1] where one follows from the file's list of transparent colours, else None.
        listed: whether the file has a palette.
    """

    pixels: np.ndarray
    alpha: np.ndarray | None
    listed: bool


@dataclass(frozen=True)
class _Header:
    width: int
    height: int
    depth: int
    colour: int
    interlaced: bool

    @property
    def bits(self) -> int:
        """The bits of a pixel."""
        return self.depth * _SAMPLES[self.colour]

    def parts(self) -> Iterator[tuple[int, int, int, int, int, int, int]]:
        """The passes with pixels in them: place and steps, then height, width and the bytes of a row."""
        for x, y, across, down in _PASSES if self.interlaced else _WHOLE:
            width, height = -((x - self.width) // across), -((y - self.height) // down)
            if width > 0 and height > 0:
                yield x, y, across, down, height, width, -(-width * self.bits // 8)


def size_of(data: bytes) -> tuple[int, int]:
    """The height and width that a PNG file states.

    Raises:
        ValueError: it has no good header.

    >>> import numpy as np
    >>> from twofold._formats import png
    >>> png.size_of(png.encode(np.zeros((2, 3, 3), np.uint8)))
    (2, 3)
    """
    header = _header_of(next(_chunks(data), (b"", b""))[1])
    return header.height, header.width


def decode(data: bytes) -> Picture:
    """The image in a PNG file.

    Args:
        data: the whole file.
    Raises:
        ValueError: it is no PNG file, is damaged or incomplete, or has more than 2**29 pixels.

    >>> import numpy as np
    >>> from twofold._formats import png
    >>> image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    >>> np.array_equal(png.decode(png.encode(image)).pixels, image)
    True
    """
    header, palette, clear, packed = _contents(data)
    rows = _inflated(packed, sum(part[4] * (1 + part[6]) for part in header.parts()))
    samples = np.empty((header.height, header.width, _SAMPLES[header.colour]),
                       np.uint16 if header.depth == 16 else np.uint8)
    at = 0
    for x, y, across, down, height, width, size in header.parts():
        plain = _unfiltered(rows[at:at + height * (1 + size)], height, size, max(1, header.bits // 8))
        samples[y::down, x::across] = _unpacked(plain, header.depth, width, samples.shape[2])
        at += height * (1 + size)
    return _coloured(samples, header, palette, clear)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The kind and content of each chunk that means something here."""
    if data[:len(MAGIC)] != MAGIC:
        raise ValueError("this is no PNG file")
    view, at = memoryview(data), len(MAGIC)
    while True:
        if at + 12 > len(data):
            raise ValueError(f"the PNG file ends too early, after {len(data)} bytes")
        size, kind = int.from_bytes(view[at:at + 4], "big"), bytes(view[at + 4:at + 8])
        if at + 12 + size > len(data):
            raise ValueError(f"the PNG file ends inside of a chunk {_name(kind)} of {size} bytes")
        critical = not kind[0] & 32
        if critical or kind == b"tRNS":
            if zlib.crc32(view[at + 4:at + 8 + size]) != int.from_bytes(view[at + 8 + size:at + 12 + size], "big"):
                raise ValueError(f"the PNG file is damaged: the checksum of a chunk {_name(kind)} is wrong")
            yield kind, view[at + 8:at + 8 + size]  # type: ignore[misc]
        if kind == b"IEND":
            return
        at += 12 + size


def _name(kind: bytes) -> str:
    return kind.decode("ascii", "backslashreplace")


def _header_of(data: bytes) -> _Header:
    if len(data) != 13:
        raise ValueError(f"the header of a PNG file has 13 bytes; got {len(data)}")
    width, height, depth, colour, compression, filters, interlaced = struct.unpack(">IIBBBBB", data)
    if not (0 < width < 1 << 31 and 0 < height < 1 << 31):
        raise ValueError(f"a PNG image of {width} by {height} pixels cannot be")
    if depth not in _DEPTHS.get(colour, ()):
        raise ValueError(f"there is no PNG colour type {colour} with {depth} bits")
    if compression or filters or interlaced > 1:
        raise ValueError(f"unknown methods of a PNG file: compression {compression}, filters {filters}, interlacing "
                         f"{interlaced}")
    if width * height >= _MOST:
        raise ValueError(f"a PNG image of {width} by {height} pixels is too large: fewer than 2**29 are allowed")
    return _Header(width, height, depth, colour, bool(interlaced))


def _contents(data: bytes) -> tuple[_Header, np.ndarray | None, bytes | None, bytes]:
    """The header, the palette [colours, 3], the content of tRNS, and the compressed rows."""
    header, palette, clear, last = None, None, None, b""
    packed: list[bytes] = []
    for kind, content in _chunks(data):
        if (kind == b"IHDR") != (header is None):
            raise ValueError("a PNG file begins with its one chunk IHDR")
        if kind == b"IHDR":
            header = _header_of(content)
        elif kind == b"PLTE":
            if palette is not None or packed or len(content) % 3 or not 0 < len(content) <= 768:
                raise ValueError(f"a palette of {len(content)} bytes cannot be here in a PNG file")
            palette = np.frombuffer(content, np.uint8).reshape(-1, 3)
        elif kind == b"tRNS":
            clear = bytes(content) if not packed else clear
        elif kind == b"IDAT":
            if packed and last != b"IDAT":
                raise ValueError("the chunks IDAT of a PNG file must follow one another")
            packed.append(content)
        elif kind != b"IEND":
            raise ValueError(f"a PNG file with a chunk {_name(kind)} that is necessary and unknown")
        last = kind
    if header is None or not packed:
        raise ValueError("the PNG file has no image in it")
    if header.colour == _PALETTE and palette is None:
        raise ValueError("the PNG file has no palette, and its pixels are numbers of colours")
    return header, palette, clear, b"".join(packed)


def _inflated(packed: bytes, size: int) -> np.ndarray:
    """The `size` bytes of all rows; bytes after them are left alone, as libpng does."""
    if size > _DENSEST * len(packed) + 64:
        raise ValueError(f"the PNG file is incomplete: {len(packed)} bytes cannot hold an image of {size}")
    reader = zlib.decompressobj()
    try:
        inflated = reader.decompress(packed, size)
        if len(inflated) == size and not reader.eof:
            more = reader.decompress(reader.unconsumed_tail, 1)  # the checksum at the end
            if not more and not reader.eof:
                raise ValueError("the PNG file is incomplete: the checksum of its rows is not there")
    except zlib.error as error:
        raise ValueError(f"the PNG file is damaged: {error}") from None
    if len(inflated) < size:
        raise ValueError(f"the PNG file is incomplete: it has {len(inflated)} of the {size} bytes of its rows")
    return np.frombuffer(inflated, np.uint8)


def _unfiltered(rows: np.ndarray, height: int, size: int, ahead: int) -> np.ndarray:
    """Rows [height, size] without their filters; `ahead` is how many bytes lie between a byte and its left one."""
    filters = rows[::1 + size]
    if filters.max() > _LAST_FILTER:
        raise ValueError(f"the PNG file is damaged: row {(filters > _LAST_FILTER).argmax()} has a filter that does not "
                         f"exist")
    unfiltered = np.zeros((1 + height, size), np.uint8)  # what lies above the image counts as zeros
    run_alone(kernels.get(("png unfilter", ahead), lambda: generated.unfilter(ahead)), height,
              [address_of(rows), address_of(unfiltered), size], rows.size)
    return unfiltered[1:]


def _unpacked(rows: np.ndarray, depth: int, width: int, samples: int) -> np.ndarray:
    """Samples [height, width, samples] from the bytes of rows."""
    if depth == 16:
        rows = np.ascontiguousarray(rows).view(">u2")
    elif depth < 8:
        shifts = np.arange(8 - depth, -1, -depth, dtype=np.uint8)
        rows = (rows[:, :, None] >> shifts & np.uint8((1 << depth) - 1)).reshape(len(rows), -1)[:, :width]
    return rows.reshape(len(rows), width, samples)


def _coloured(samples: np.ndarray, header: _Header, palette: np.ndarray | None, clear: bytes | None) -> Picture:
    if header.colour == _PALETTE:
        assert palette is not None
        if samples.max() >= len(palette):
            raise ValueError(f"the PNG file is damaged: it has no colour {samples.max()} in a palette of "
                             f"{len(palette)}")
        numbers, alpha = samples[..., 0], None
        if clear is not None:
            listed = np.full(len(palette), 255, np.uint8)
            known = np.frombuffer(clear, np.uint8)[:len(palette)]
            listed[:len(known)] = known
            alpha = listed[numbers][..., None]
        return Picture(palette[numbers], alpha, True)
    alpha = None
    if clear is not None and header.colour in (0, 2) and len(clear) == 2 * samples.shape[2]:
        key = np.frombuffer(clear, ">u2") & (1 << header.depth) - 1
        full = samples.dtype.type(np.iinfo(samples.dtype).max)
        alpha = np.where((samples == key).all(-1, keepdims=True), samples.dtype.type(0), full)
    if header.depth < 8:
        samples = samples * np.uint8(255 // ((1 << header.depth) - 1))
    return Picture(samples, alpha, False)
