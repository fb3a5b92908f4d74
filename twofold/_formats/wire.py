"""The wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding/): numbers and fields.

What messages mean is for whoever reads or writes them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

__all__ = ["field", "fields", "number", "varint"]


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number at a place, and the place after it.

    Raises:
        ValueError: it has more than 64 bits. IndexError: the data end before it does.
    """
    value = shift = 0
    while True:
        if shift > 63:
            raise ValueError("a number has more than 64 bits")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: numbers as integers, texts and messages as bytes.

    Raises:
        ValueError, IndexError, struct.error: the message is damaged.
    """
    at, end = 0, len(data)
    while at < end:
        tag, at = (data[at], at + 1) if data[at] < 0x80 else varint(data, at)  # most numbers take a byte
        kind = tag & 7
        value: Any
        if kind == 2:
            size, at = (data[at], at + 1) if data[at] < 0x80 else varint(data, at)
            if at + size > end:
                raise ValueError("a field ends after its message")
            value, at = data[at:at + size], at + size
        elif kind == 0:
            value, at = varint(data, at)
        elif kind in (1, 5):
            width = 8 if kind == 1 else 4
            value, at = struct.unpack_from("<Q" if kind == 1 else "<I", data, at)[0], at + width
        else:
            raise ValueError(f"a field of wire type {kind}")
        yield tag >> 3, value


def number(value: int) -> bytes:
    """The encoding of a number: seven bits a byte, the lowest first; negative ones in 64 bits."""
    value &= (1 << 64) - 1
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def field(tag: int, content: bytes) -> bytes:
    """A field that is a text or a message."""
    return number(tag << 3 | 2) + number(len(content)) + content
