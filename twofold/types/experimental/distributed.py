"""`tf.types.experimental.distributed`: kinds of `tf.distribute.DistributedValues`, to test for."""

from __future__ import annotations

from twofold._front.namespace import publish
from twofold.distribute._values import Mirrored, PerReplica

__all__ = ["Mirrored", "PerReplica"]

publish(__name__)
