"""`tf.compat`: names of other versions of TensorFlow; `v1` is its first, `v2` is what there is."""

from __future__ import annotations

import sys
from typing import Any

import twofold as v2
from twofold._api import public

from . import v1

__all__ = ["as_bytes", "as_str", "as_str_any", "as_text", "v1", "v2"]

sys.modules[f"{__name__}.v2"] = v2


@public
def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Text as bytes; bytes as they are.

    Raises:
        TypeError: it is neither.

    >>> import twofold as tf
    >>> tf.compat.as_bytes("é")
    b'\\xc3\\xa9'
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


@public
def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Bytes as text; text as it is.

    Raises:
        TypeError: it is neither.

    >>> import twofold as tf
    >>> tf.compat.as_text(b"abc")
    'abc'
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text).decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


@public
def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Bytes as text; anything else as `str` gives it.

    >>> import twofold as tf
    >>> tf.compat.as_str_any(3)
    '3'
    """
    return as_text(value, encoding) if isinstance(value, (bytes, bytearray)) else str(value)
