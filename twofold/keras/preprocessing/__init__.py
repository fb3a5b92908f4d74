"""`tf.keras.preprocessing`: the older home of `tf.keras.utils`' helpers for sequences and texts."""

from __future__ import annotations

from ..sequences import text_dataset_from_directory, timeseries_dataset_from_array
from . import sequence

__all__ = ["sequence", "text_dataset_from_directory", "timeseries_dataset_from_array"]
