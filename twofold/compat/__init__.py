"""`tf.compat`: the names of other versions of TensorFlow: `v1` has those of TensorFlow 1, `v2` is this package."""

from __future__ import annotations

import datetime
import importlib
import numbers
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import twofold as v2
from twofold._front.api import block, public
from twofold._front.namespace import publish

__all__ = ["as_bytes", "as_str", "as_str_any", "as_text", "bytes_or_text_types", "complex_types",
           "dimension_value", "forward_compatibility_horizon", "forward_compatible",
           "integral_types", "path_to_str", "real_types", "v1", "v2"]

#: classes for `isinstance`
bytes_or_text_types = (bytes, str)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)

sys.modules[f"{__name__}.v2"] = v2


def __getattr__(name: str) -> Any:
    if name == "v1":  # it stands on nearly all there is, and few programs need it
        return importlib.import_module(f"{__name__}.v1")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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


@public
def path_to_str(path: Any) -> Any:
    """A path as text; anything else as it is.

    >>> import pathlib
    >>> import twofold as tf
    >>> tf.compat.path_to_str(pathlib.PurePosixPath("a") / "b")
    'a/b'
    """
    return as_str_any(os.fspath(path)) if hasattr(path, "__fspath__") else path


@public
def dimension_value(dimension: Any) -> Any:
    """A size of a shape: an integer or None, as it is; of an object that has a `value`, that.

    >>> import twofold as tf
    >>> tf.compat.dimension_value(tf.TensorShape([3])[0])
    3
    """
    return getattr(dimension, "value", dimension)


@public
def forward_compatible(year: int, month: int, day: int) -> bool:
    """Whether programs of a date in the past may be left behind: always, unless `forward_compatibility_horizon` says.

    >>> import twofold as tf
    >>> tf.compat.forward_compatible(2020, 1, 1)
    True
    """
    return _horizon[-1] > datetime.date(year, month, day)


_horizon = [datetime.date.max]


@block
def forward_compatibility_horizon(year: int, month: int, day: int) -> Iterator[None]:
    """A block in which `forward_compatible` compares with a date.

    >>> import twofold as tf
    >>> with tf.compat.forward_compatibility_horizon(2019, 6, 1):
    ...     tf.compat.forward_compatible(2020, 1, 1)
    False
    """
    _horizon.append(datetime.date(year, month, day))
    try:
        yield
    finally:
        _horizon.pop()


publish(__name__)
