"""`tf.keras.preprocessing`: the older home of `tf.keras.utils`' helpers for images, sequences and texts."""

from __future__ import annotations

from twofold._front.namespace import publish

from ..folders import text_dataset_from_directory
from ..images import image_dataset_from_directory
from ..sequences import timeseries_dataset_from_array
from . import image, sequence, text

__all__ = ["image", "image_dataset_from_directory", "sequence", "text", "text_dataset_from_directory",
           "timeseries_dataset_from_array"]


publish(__name__)
