"""`tf.compat.v1.ragged`: the names of `tf.ragged`, and ragged tensors of graphs and their values."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.namespace import publish

from .composite_placeholders import ragged_placeholder as placeholder
from .composites import RaggedTensorValue, constant_value

__all__ = ["RaggedTensorValue", "constant_value", "placeholder"]


def __getattr__(name: str) -> Any:
    return getattr(tf.ragged, name)


publish(__name__)
