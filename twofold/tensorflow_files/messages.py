"""Protocol buffers of TensorFlow's as plain values: single fields, maps, signed numbers.

What is read here is a view of the file's bytes, so that messages within messages take no copies.
"""

from __future__ import annotations

import struct
from typing import Any

from twofold._formats.wire import fields, varint

__all__ = ["Message", "floats", "numbers", "signed", "text", "zigzag"]

_WORD = 1 << 64


class Message:
    """The fields of one message by number; those that are not there have their defaults.

    Args:
        data: its bytes.
    Raises:
        ValueError, IndexError, struct.error: they are no message.
    """

    __slots__ = ("_fields",)

    def __init__(self, data: Any) -> None:
        self._fields: dict[int, list[Any]] = {}
        for number, value in fields(data):
            self._fields.setdefault(number, []).append(value)

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def all(self, number: int) -> list[Any]:
        """The values of a field that may come several times, as bytes or integers."""
        return self._fields.get(number, [])

    def bytes(self, number: int) -> Any:
        """A field that is bytes; of several the last."""
        value = self._fields[number][-1] if number in self._fields else b""
        if isinstance(value, int):
            raise ValueError(f"field {number} is a number where bytes are expected")
        return value

    def text(self, number: int) -> str:
        """A field that is a text."""
        return text(self.bytes(number))

    def texts(self, number: int) -> list[str]:
        """The values of a field that holds texts."""
        return [text(value) for value in self.all(number)]

    def number(self, number: int, default: int = 0) -> int:
        """A field that is a number, with its sign."""
        value = self._fields[number][-1] if number in self._fields else default
        if not isinstance(value, int):
            raise ValueError(f"field {number} is no number")
        return signed(value)

    def real(self, number: int) -> float:
        """A field that is a float32."""
        return float(struct.unpack("<f", struct.pack("<I", self._fields.get(number, [0])[-1]))[0])

    def double(self, number: int) -> float:
        """A field that is a float64."""
        return float(struct.unpack("<d", struct.pack("<Q", self._fields.get(number, [0])[-1]))[0])

    def message(self, number: int) -> Message:
        """A field that is a message."""
        return Message(self.bytes(number))

    def messages(self, number: int) -> list[Message]:
        """The values of a field that holds messages."""
        return [Message(value) for value in self.all(number)]

    def map(self, number: int) -> dict[str, Any]:
        """A map from texts to messages, whose bytes it gives."""
        entries = self.messages(number)
        return {entry.text(1): entry.bytes(2) for entry in entries}

    def map_of_texts(self, number: int) -> dict[str, str]:
        """A map from texts to texts."""
        return {name: text(value) for name, value in self.map(number).items()}


def text(data: Any) -> str:
    """Bytes as a text.

    Raises:
        ValueError: they are none.
    """
    if isinstance(data, int):
        raise ValueError("a number where a text is expected")
    return bytes(data).decode("utf-8")


def signed(value: int) -> int:
    """A number of 64 bits with its sign."""
    return value - _WORD if value >> 63 else value


def zigzag(value: int) -> int:
    """The number that an `sint64` stands for."""
    return value >> 1 ^ -(value & 1)


def numbers(values: list[Any]) -> list[int]:
    """The numbers of a repeated field, packed or one by one."""
    out: list[int] = []
    for value in values:
        if isinstance(value, int):
            out.append(signed(value))
            continue
        at = 0
        while at < len(value):
            one, at = varint(value, at)
            out.append(signed(one))
    return out


def floats(values: list[Any], kind: str) -> list[bytes]:
    """The bytes of a repeated field of floats, packed or one by one; `kind` is "f" or "d"."""
    return [struct.pack("<I" if kind == "f" else "<Q", v) if isinstance(v, int) else bytes(v) for v in values]
