"""The text format of protocol buffers, for the messages of `example.py`: lines of fields, numbers and quoted bytes.

Source: https://protobuf.dev/reference/protobuf/textformat-spec/.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["block", "field_lines"]

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def block(name: str, inner: Iterable[str]) -> Iterator[str]:
    """A field that is a message, of these lines."""
    yield f"{name} {{"
    yield from [f"  {line}" for line in inner]
    yield "}"


def field_lines(name: str, value: Any) -> Iterator[str]:
    """The lines of a field: one value or message, or several; none where a message has no lines."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from block(name, [f"key: {_value(key)}", *block("value", item._lines())])
    elif isinstance(value, (list, tuple)):
        for item in value:
            if hasattr(item, "_lines"):
                yield from block(name, item._lines())
            else:
                yield f"{name}: {_value(item)}"
    elif lines := list(value._lines()):
        yield from block(name, lines)


def _value(value: Any) -> str:
    if isinstance(value, (str, bytes)):
        return _quoted(value.encode() if isinstance(value, str) else value)
    return _float(value) if isinstance(value, float) else str(value)


def _quoted(data: bytes) -> str:
    letters = [_NAMED.get(chr(b), chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in data]
    return f'"{"".join(letters)}"'


def _float(value: float) -> str:
    """Six digits if they read as the same float32, else the nine that always do, as protocol buffers print it."""
    with np.errstate(over="ignore"):
        number = np.float32(value)
        text = f"{float(number):.6g}"
        return text if np.float32(text) == number or number != number else f"{float(number):.9g}"
