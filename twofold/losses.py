"""`tf.losses`: Keras's losses, and TensorFlow 1's functions that give one number."""

from twofold._namespace import publish
from twofold.compat.v1.losses import (
    Reduction,
    absolute_difference,
    mean_squared_error,
    sigmoid_cross_entropy,
    softmax_cross_entropy,
    sparse_softmax_cross_entropy,
)
from twofold.keras import losses as _keras
from twofold.keras.losses import *  # noqa: F403

__all__ = [
    *[name for name in _keras.__all__ if name not in ("Reduction", "mean_squared_error")],
    "Reduction", "absolute_difference", "mean_squared_error", "sigmoid_cross_entropy", "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]

publish(__name__)
