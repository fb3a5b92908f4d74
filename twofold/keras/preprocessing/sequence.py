"""`tf.keras.preprocessing.sequence`: padding of sequences."""

from __future__ import annotations

from ..sequences import pad_sequences

__all__ = ["pad_sequences"]
