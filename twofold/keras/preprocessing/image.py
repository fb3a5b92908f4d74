"""`tf.keras.preprocessing.image`: pictures and arrays."""

from __future__ import annotations

from twofold._front.namespace import publish

from ..images import array_to_img, img_to_array, load_img, save_img, smart_resize

__all__ = ["array_to_img", "img_to_array", "load_img", "save_img", "smart_resize"]

publish(__name__)
