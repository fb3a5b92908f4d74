"""Metrics (`tf.keras.metrics`): what is measured over all batches of an epoch.

`metric.py` has the base and `reduction.py` sums and means; `accuracy.py`, `regression.py` and `loss_means.py` are means
of functions; `confusion.py` and `auc.py` count right and wrong answers, `f_score.py` and `iou.py` compute from counts
of classes.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from twofold._front.api import public
from twofold._front.namespace import publish

from .._identifiers import read, resolve
from ..losses import (
    KLD,
    MAE,
    MAPE,
    MSE,
    MSLE,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_hinge,
    hinge,
    huber,
    kl_divergence,
    kld,
    kullback_leibler_divergence,
    log_cosh,
    logcosh,
    mae,
    mape,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    mse,
    msle,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
)
from ..naming import to_snake_case
from ..serialization import serialize_keras_object
from .accuracy import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    SparseCategoricalAccuracy,
    SparseTopKCategoricalAccuracy,
    TopKCategoricalAccuracy,
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy,
)
from .auc import AUC
from .confusion import (
    FalseNegatives,
    FalsePositives,
    Precision,
    PrecisionAtRecall,
    Recall,
    RecallAtPrecision,
    SensitivityAtSpecificity,
    SpecificityAtSensitivity,
    TrueNegatives,
    TruePositives,
)
from .f_score import F1Score, FBetaScore
from .iou import BinaryIoU, IoU, MeanIoU, OneHotIoU, OneHotMeanIoU
from .loss_means import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    CategoricalHinge,
    Hinge,
    KLDivergence,
    Poisson,
    SparseCategoricalCrossentropy,
    SquaredHinge,
)
from .metric import Metric
from .reduction import Mean, MeanMetricWrapper, Sum
from .regression import (
    ConcordanceCorrelation,
    CosineSimilarity,
    LogCoshError,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    PearsonCorrelation,
    R2Score,
    RootMeanSquaredError,
    concordance_correlation,
    pearson_correlation,
)

__all__ = ["AUC", "Accuracy", "BinaryAccuracy", "BinaryCrossentropy", "BinaryIoU", "CategoricalAccuracy",
           "CategoricalCrossentropy", "CategoricalHinge", "ConcordanceCorrelation", "CosineSimilarity", "F1Score",
           "FBetaScore", "FalseNegatives", "FalsePositives", "Hinge", "IoU", "KLD", "KLDivergence", "LogCoshError",
           "MAE", "MAPE", "MSE", "MSLE", "Mean", "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanIoU",
           "MeanMetricWrapper", "MeanSquaredError", "MeanSquaredLogarithmicError", "Metric", "OneHotIoU",
           "OneHotMeanIoU", "PearsonCorrelation", "Poisson", "Precision", "PrecisionAtRecall", "R2Score", "Recall",
           "RecallAtPrecision", "RootMeanSquaredError", "SensitivityAtSpecificity", "SparseCategoricalAccuracy",
           "SparseCategoricalCrossentropy", "SparseTopKCategoricalAccuracy", "SpecificityAtSensitivity",
           "SquaredHinge", "Sum", "TopKCategoricalAccuracy", "TrueNegatives", "TruePositives", "binary_accuracy",
           "binary_crossentropy", "binary_focal_crossentropy", "categorical_accuracy", "categorical_crossentropy",
           "categorical_focal_crossentropy", "categorical_hinge", "concordance_correlation", "deserialize", "get",
           "hinge", "huber", "kl_divergence", "kld", "kullback_leibler_divergence", "log_cosh", "logcosh", "mae",
           "mape", "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_error",
           "mean_squared_logarithmic_error", "mse", "msle", "pearson_correlation", "poisson", "serialize",
           "sparse_categorical_accuracy", "sparse_categorical_crossentropy", "sparse_top_k_categorical_accuracy",
           "squared_hinge", "top_k_categorical_accuracy"]

_OLDER = {"bce": BinaryCrossentropy, "BCE": BinaryCrossentropy, "mse": MeanSquaredError, "MSE": MeanSquaredError,
          "mae": MeanAbsoluteError, "MAE": MeanAbsoluteError, "mape": MeanAbsolutePercentageError,
          "MAPE": MeanAbsolutePercentageError, "msle": MeanSquaredLogarithmicError,
          "MSLE": MeanSquaredLogarithmicError}

#: what may be given where one is wanted
_EXPECTED = ("Expected a tf.keras.metrics.Metric, a function of y_true and y_pred, or a name such as 'accuracy' or "
             "'auc'.")


def _table() -> dict[str, Any]:
    """The metrics by name: functions, and classes by their names in both forms, which take precedence."""
    functions = {name: globals()[name] for name in __all__ if not inspect.isclass(globals()[name])}
    classes = {name: globals()[name] for name in __all__ if inspect.isclass(globals()[name])}
    table = {**functions, **_OLDER, **classes, **{to_snake_case(name): value for name, value in classes.items()}}
    return {name: value for name, value in table.items() if name not in ("get", "serialize", "deserialize")}


@public
def serialize(metric: Any) -> Any:
    """A metric's settings, or a function, as values that JSON can hold.

    Raises:
        ValueError: it has no such form.

    >>> import twofold as tf
    >>> tf.keras.metrics.serialize(tf.keras.metrics.AUC())["config"]["curve"]
    'ROC'
    """
    return serialize_keras_object(metric)


@public
def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The metric of a config that `serialize` gave, or of a name, without state.

    Args:
        config: the config or the name.
        custom_objects: names that are the user's own, with what they stand for.
    Raises:
        ValueError: a name is not known.

    >>> import twofold as tf
    >>> tf.keras.metrics.deserialize(tf.keras.metrics.serialize(tf.keras.metrics.AUC(curve="PR"))).curve
    'PR'
    """
    return read(config, _table(), custom_objects)


@public
def get(identifier: Any) -> Any:
    """The metric that `identifier` stands for.

    Args:
        identifier: a metric or function, the name of one, a class, or a config; None for none.
    Returns:
        A `Metric`, or a callable of `y_true` and `y_pred`; None for None.
    Raises:
        ValueError: it stands for no metric.

    >>> import twofold as tf
    >>> tf.keras.metrics.get("mean_squared_error")
    <MeanSquaredError name=mean_squared_error>
    """
    if identifier is None:
        return None
    return resolve("metric", identifier, _table(), _EXPECTED)


publish(__name__)
