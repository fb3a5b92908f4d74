"""Weights that are read in the dtype of a layer's computation, while its `call` runs."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.mixed import dtype_of_reads

__all__ = ["AutoCastVariable"]


class AutoCastVariable(tf.Variable):
    """A variable that ops read in another dtype within the call of a mixed layer (`_front/mixed.py`); its own dtype
    stays, and assignments are in that."""

    def _read_tensor(self) -> Any:
        value = super()._read_tensor()
        wanted = dtype_of_reads()
        return value if wanted is None or wanted is value.dtype else tf.cast(value, wanted)
