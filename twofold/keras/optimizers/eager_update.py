"""Updates outside of a `tf.function`, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["EagerUpdate"]


class EagerUpdate:
    def __init__(self, optimizer: Any):
        self._optimizer = optimizer

    def __call__(self, grads: Sequence[Any], variables: Sequence[Any]) -> bool:
        return False
