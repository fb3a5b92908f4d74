"""`tf.losses`: Keras's losses, and TensorFlow 1's functions that give one number."""

from typing import Any

from twofold._front import older as _older
from twofold._front.namespace import publish
from twofold.keras import losses as _keras
from twofold.keras.losses import *  # noqa: F403

#: the names that stand for what TensorFlow 1 has under them
_FROM_V1 = ("Reduction", "absolute_difference", "mean_squared_error", "sigmoid_cross_entropy", "softmax_cross_entropy",
            "sparse_softmax_cross_entropy")

__all__ = [*[name for name in _keras.__all__ if name not in _FROM_V1], *_FROM_V1]
del Reduction, mean_squared_error  # noqa: F821


def __getattr__(name: str) -> Any:
    if name not in _FROM_V1:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_older.module("losses"), name)


publish(__name__)
