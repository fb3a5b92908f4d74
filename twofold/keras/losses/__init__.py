"""Losses (`tf.keras.losses`), as functions and as classes.

`loss.py` has the base, `regression.py`, `crossentropy.py`, `overlap.py` and `temporal.py` the functions, and
`classes.py` the classes made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twofold._front.api import public
from twofold._front.namespace import publish

from .._identifiers import read, resolve
from ..serialization import serialize_keras_object
from .classes import (
    CTC,
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    CategoricalGeneralizedCrossEntropy,
    CategoricalHinge,
    Circle,
    CosineSimilarity,
    Dice,
    Hinge,
    Huber,
    KLDivergence,
    LogCosh,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    SparseCategoricalCrossentropy,
    SquaredHinge,
    Tversky,
)
from .crossentropy import (
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_generalized_cross_entropy,
    sparse_categorical_crossentropy,
)
from .loss import Loss, LossFunctionWrapper, Reduction
from .overlap import circle, dice, tversky
from .regression import (
    categorical_hinge,
    cosine_similarity,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    squared_hinge,
)
from .temporal import ctc

mse = MSE = mean_squared_error
mae = MAE = mean_absolute_error
mape = MAPE = mean_absolute_percentage_error
msle = MSLE = mean_squared_logarithmic_error
kld = KLD = kullback_leibler_divergence = kl_divergence
bce = BCE = binary_crossentropy
logcosh = log_cosh

__all__ = ["BCE", "BinaryCrossentropy", "BinaryFocalCrossentropy", "CTC", "CategoricalCrossentropy",
           "CategoricalFocalCrossentropy", "CategoricalGeneralizedCrossEntropy", "CategoricalHinge", "Circle",
           "CosineSimilarity", "Dice", "Hinge", "Huber", "KLD", "KLDivergence", "LogCosh", "Loss",
           "LossFunctionWrapper", "MAE", "MAPE", "MSE", "MSLE", "MeanAbsoluteError", "MeanAbsolutePercentageError",
           "MeanSquaredError", "MeanSquaredLogarithmicError", "Poisson", "Reduction",
           "SparseCategoricalCrossentropy", "SquaredHinge", "Tversky", "bce", "binary_crossentropy",
           "binary_focal_crossentropy", "categorical_crossentropy", "categorical_focal_crossentropy",
           "categorical_generalized_cross_entropy", "categorical_hinge", "circle", "cosine_similarity", "ctc",
           "deserialize", "dice", "get", "hinge", "huber", "kl_divergence", "kld", "kullback_leibler_divergence",
           "log_cosh", "logcosh", "mae", "mape", "mean_absolute_error", "mean_absolute_percentage_error",
           "mean_squared_error", "mean_squared_logarithmic_error", "mse", "msle", "poisson", "serialize",
           "sparse_categorical_crossentropy", "squared_hinge", "tversky"]

_NOT_LOSSES = frozenset({"Reduction", "deserialize", "get", "serialize"})

#: what may be given where one is wanted
_EXPECTED = ("Expected a function of y_true and y_pred, a tf.keras.losses.Loss, or a name such as 'mse' or "
             "'binary_crossentropy'.")


def _table() -> dict[str, Any]:
    return {name: globals()[name] for name in __all__ if name not in _NOT_LOSSES}


@public
def serialize(loss: Any) -> Any:
    """A loss, or the function of one, as values that JSON can hold.

    Raises:
        ValueError: it has no such form.

    >>> import twofold as tf
    >>> tf.keras.losses.serialize(tf.keras.losses.Huber())["class_name"]
    'Huber'
    """
    return serialize_keras_object(loss)


@public
def deserialize(name: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The loss of a config that `serialize` gave, or of a name.

    Args:
        name: the config or the name.
        custom_objects: names that are the user's own, with what they stand for.
    Raises:
        ValueError: a name is not known.

    >>> import twofold as tf
    >>> tf.keras.losses.deserialize(tf.keras.losses.serialize(tf.keras.losses.MeanSquaredError())).name
    'mean_squared_error'
    """
    return read(name, _table(), custom_objects)


@public
def get(identifier: Any) -> Any:
    """The loss that `identifier` stands for.

    Args:
        identifier: a function or loss, the name of one, a class, or a config; None for none.
    Returns:
        A callable of `y_true` and `y_pred`, or None.
    Raises:
        ValueError: it stands for no loss.

    >>> import twofold as tf
    >>> tf.keras.losses.get("mse") is tf.keras.losses.mean_squared_error
    True
    """
    if identifier is None:
        return None
    return resolve("loss", identifier, _table(), _EXPECTED)


publish(__name__)
