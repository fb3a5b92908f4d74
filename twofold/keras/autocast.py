"""Weights that are read in the dtype of a layer's computation, while its `call` runs."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import twofold as tf

__all__ = ["AutoCastVariable", "reading_as"]

_dtype: contextvars.ContextVar[Any] = contextvars.ContextVar("autocast_dtype", default=None)


@contextmanager
def reading_as(dtype: tf.DType) -> Iterator[None]:
    """A block in which the weights of mixed layers are read as `dtype`."""
    token = _dtype.set(dtype)
    try:
        yield
    finally:
        _dtype.reset(token)


class AutoCastVariable(tf.Variable):
    """A variable that ops read in another dtype within `reading_as`; its own dtype, and assignments, stay."""

    def _read_tensor(self) -> Any:
        value = super()._read_tensor()
        wanted = _dtype.get()
        return value if wanted is None or wanted is value.dtype else tf.cast(value, wanted)
