"""The batches of CIFAR: dicts of an array of images, as rows of colour planes, and lists of labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .. import config
from ._plain import loads

__all__ = ["images", "labels", "load_batch"]


def load_batch(path: Path, label_key: str) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 [n, 3072] and labels of a batch.

    Raises:
        ValueError: the file is damaged, or holds something else.
    """
    pickled = loads(path.read_bytes())
    if not isinstance(pickled, dict):
        raise ValueError(f"{path} is no batch of CIFAR.")
    batch = {key.decode() if isinstance(key, bytes) else key: value for key, value in pickled.items()}
    data, marks = batch.get("data"), batch.get(label_key)
    if not isinstance(data, np.ndarray) or data.shape[1:] != (3072,) or not isinstance(marks, list):
        raise ValueError(f"{path} is no batch of CIFAR: it has no images of 3072 bytes, or no {label_key!r}.")
    if len(marks) != len(data):
        raise ValueError(f"{path} is damaged: {len(data)} images and {len(marks)} labels.")
    return data, np.asarray(marks)


def images(rows: np.ndarray) -> np.ndarray:
    """Rows as images, [n, 32, 32, 3], or [n, 3, 32, 32] where `tf.keras.config.image_data_format()` says so."""
    planes = rows.reshape(-1, 3, 32, 32)
    return planes.transpose(0, 2, 3, 1) if config.image_data_format() == "channels_last" else planes


def labels(values: np.ndarray, dtype: type) -> np.ndarray:
    """Labels as a column."""
    return values.astype(dtype).reshape(-1, 1)
