"""`tf.compat.v1.sparse`: the names of `tf.sparse`, and sparse tensors of graphs."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.namespace import publish

from .composite_placeholders import sparse_placeholder as placeholder

__all__ = ["placeholder"]


def __getattr__(name: str) -> Any:
    return getattr(tf.sparse, name)


publish(__name__)
