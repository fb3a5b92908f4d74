"""`tf.compat.v1.random`: `tf.random`, with TensorFlow 1's names."""

from __future__ import annotations

from typing import Any

from twofold import random as _random
from twofold._front.namespace import publish
from twofold.random import *  # noqa: F403
from twofold.random import __all__ as _same

from .functions import multinomial, set_random_seed

__all__ = [*_same, "multinomial", "set_random_seed"]


def __getattr__(name: str) -> Any:
    return getattr(_random, name)


publish(__name__)
