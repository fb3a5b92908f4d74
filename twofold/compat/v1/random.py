"""`tf.compat.v1.random`: `tf.random`, with TensorFlow 1's names."""

from __future__ import annotations

from typing import Any

from twofold import random as _random
from twofold._front.api import public as _public
from twofold._front.namespace import publish
from twofold.random import *  # noqa: F403
from twofold.random import __all__ as _same

from .functions import multinomial, set_random_seed

__all__ = [*_same, "multinomial", "set_random_seed", "stateless_multinomial"]


@_public
def stateless_multinomial(logits: Any, num_samples: Any, seed: Any, output_dtype: Any = "int64",
                          name: str | None = None) -> Any:
    """`tf.random.stateless_categorical`. `name` has no effect."""
    return _random.stateless_categorical(logits, num_samples, seed, output_dtype)


def __getattr__(name: str) -> Any:
    return getattr(_random, name)


publish(__name__)
