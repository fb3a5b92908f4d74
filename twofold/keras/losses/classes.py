"""The losses as classes: a function, its settings, and how the values of a batch become one."""

from __future__ import annotations

from typing import Any

from .crossentropy import (
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_generalized_cross_entropy,
    sparse_categorical_crossentropy,
)
from .loss import LossFunctionWrapper
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

_MEAN = "sum_over_batch_size"

__all__ = ["BinaryCrossentropy", "BinaryFocalCrossentropy", "CTC", "CategoricalCrossentropy",
           "CategoricalFocalCrossentropy", "CategoricalGeneralizedCrossEntropy", "CategoricalHinge", "Circle",
           "CosineSimilarity", "Dice", "Hinge", "Huber", "KLDivergence", "LogCosh", "MeanAbsoluteError",
           "MeanAbsolutePercentageError", "MeanSquaredError", "MeanSquaredLogarithmicError", "Poisson",
           "SparseCategoricalCrossentropy", "SquaredHinge", "Tversky"]


class MeanSquaredError(LossFunctionWrapper):
    """The mean of squared differences.

    Args:
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.MeanSquaredError()([[0.0, 1.0]], [[1.0, 3.0]]).numpy()
    np.float32(2.5)
    """

    _SETTINGS = ()

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "mean_squared_error", dtype: Any = None):
        super().__init__(mean_squared_error, reduction, name, dtype)


class MeanAbsoluteError(LossFunctionWrapper):
    """The mean of absolute differences.

    Args:
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.MeanAbsoluteError()([[0.0, 1.0]], [[1.0, 3.0]]).numpy()
    np.float32(1.5)
    """

    _SETTINGS = ()

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "mean_absolute_error", dtype: Any = None):
        super().__init__(mean_absolute_error, reduction, name, dtype)


class MeanAbsolutePercentageError(LossFunctionWrapper):
    """100 times the mean of differences over what should be.

    Args:
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.MeanAbsolutePercentageError()([[2.0, 4.0]], [[1.0, 5.0]]).numpy()
    np.float32(37.5)
    """

    _SETTINGS = ()

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "mean_absolute_percentage_error",
                 dtype: Any = None):
        super().__init__(mean_absolute_percentage_error, reduction, name, dtype)


class MeanSquaredLogarithmicError(LossFunctionWrapper):
    """The mean of squared differences of `log(y + 1)`.

    Args:
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.MeanSquaredLogarithmicError()([[0.0, 1.0]], [[0.0, 3.0]]).numpy().round(4).item() < 0.2403
    True
    """

    _SETTINGS = ()

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "mean_squared_logarithmic_error",
                 dtype: Any = None):
        super().__init__(mean_squared_logarithmic_error, reduction, name, dtype)


class CosineSimilarity(LossFunctionWrapper):
    """Minus the cosine of the angle between two vectors: -1 for the same direction.

    Args:
        axis: the axis of the vectors.
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.CosineSimilarity()([[0.0, 1.0]], [[0.0, 2.0]]).numpy()
    np.float32(-1.0)
    """

    _SETTINGS = ("axis",)

    def __init__(self, axis: int = -1, reduction: str | None = _MEAN, name: str | None = "cosine_similarity",
                 dtype: Any = None):
        super().__init__(cosine_similarity, reduction, name, dtype, axis=axis)


class Huber(LossFunctionWrapper):
    """Half the square of a small error, and a line for one beyond `delta`.

    Args:
        delta: where the line begins.
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.Huber()([[0.0, 0.0]], [[1.0, 3.0]]).numpy()
    np.float32(1.5)
    """

    _SETTINGS = ("delta",)

    def __init__(self, delta: float = 1.0, reduction: str | None = _MEAN, name: str | None = "huber_loss",
                 dtype: Any = None):
        super().__init__(huber, reduction, name, dtype, delta=delta)


class LogCosh(LossFunctionWrapper):
    """The mean of `log(cosh(y_pred - y_true))`.

    Args:
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.LogCosh()([[1.0, 3.0]], [[1.0, 3.0]]).numpy()
    np.float32(0.0)
    """

    _SETTINGS = ()

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "log_cosh", dtype: Any = None):
        super().__init__(log_cosh, reduction, name, dtype)


class Hinge(LossFunctionWrapper):
    """The mean of `max(1 - y_true * y_pred, 0)`, of labels -1 and 1, or 0 and 1.

    Args:
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.Hinge()([[-1.0, 1.0]], [[-2.0, 0.0]]).numpy()
    np.float32(0.5)
    """

    _SETTINGS = ()

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "hinge", dtype: Any = None):
        super().__init__(hinge, reduction, name, dtype)


class SquaredHinge(LossFunctionWrapper):
    """The mean of `max(1 - y_true * y_pred, 0)**2`, of labels -1 and 1, or 0 and 1.

    Args:
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.SquaredHinge()([[-1.0, 1.0]], [[-2.0, -1.0]]).numpy()
    np.float32(2.0)
    """

    _SETTINGS = ()

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "squared_hinge", dtype: Any = None):
        super().__init__(squared_hinge, reduction, name, dtype)


class CategoricalHinge(LossFunctionWrapper):
    """`max(other - right + 1, 0)`, with the highest score of the other classes.

    Args:
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.CategoricalHinge()([[0.0, 1.0]], [[0.5, 0.75]]).numpy()
    np.float32(0.75)
    """

    _SETTINGS = ()

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "categorical_hinge", dtype: Any = None):
        super().__init__(categorical_hinge, reduction, name, dtype)


class KLDivergence(LossFunctionWrapper):
    """The Kullback-Leibler divergence of two distributions.

    Args:
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.KLDivergence()([[0.5, 0.5]], [[0.5, 0.5]]).numpy()
    np.float32(0.0)
    """

    _SETTINGS = ()

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "kl_divergence", dtype: Any = None):
        super().__init__(kl_divergence, reduction, name, dtype)


class Poisson(LossFunctionWrapper):
    """The mean of `y_pred - y_true * log(y_pred)`.

    Args:
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.Poisson()([[1.0, 0.0]], [[1.0, 3.0]]).numpy()
    np.float32(2.0)
    """

    _SETTINGS = ()

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "poisson", dtype: Any = None):
        super().__init__(poisson, reduction, name, dtype)


class BinaryCrossentropy(LossFunctionWrapper):
    """The cross entropy of two classes, 0 and 1.

    Args:
        from_logits: whether predictions are logits rather than probabilities.
        label_smoothing: how far labels are moved to 0.5: by half of this.
        axis: the axis of the mean.
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.BinaryCrossentropy(from_logits=True)([[0.0, 1.0]], [[0.0, 1000.0]]).numpy().round(4)
    np.float32(0.3466)
    """

    _SETTINGS = ("from_logits", "label_smoothing", "axis")

    def __init__(self, from_logits: bool = False, label_smoothing: float = 0.0, axis: Any = -1,
                 reduction: str | None = _MEAN, name: str | None = "binary_crossentropy", dtype: Any = None):
        super().__init__(binary_crossentropy, reduction, name, dtype, from_logits=from_logits,
                         label_smoothing=label_smoothing, axis=axis)


class BinaryFocalCrossentropy(LossFunctionWrapper):
    """The cross entropy of two classes, in which samples count less that are right already.

    Args:
        apply_class_balancing: whether class 1 counts `alpha` and class 0 `1 - alpha`.
        alpha: the weight of class 1.
        gamma: how much less samples count that are right already.
        from_logits: whether predictions are logits rather than probabilities.
        label_smoothing: how far labels are moved to 0.5: by half of this.
        axis: the axis of the mean.
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.BinaryFocalCrossentropy()([[1.0]], [[0.5]]).numpy().round(4)
    np.float32(0.1733)
    """

    _SETTINGS = ("apply_class_balancing", "alpha", "gamma", "from_logits", "label_smoothing", "axis")

    def __init__(self, apply_class_balancing: bool = False, alpha: float = 0.25, gamma: float = 2.0,
                 from_logits: bool = False, label_smoothing: float = 0.0, axis: Any = -1,
                 reduction: str | None = _MEAN, name: str | None = "binary_focal_crossentropy", dtype: Any = None):
        super().__init__(binary_focal_crossentropy, reduction, name, dtype,
                         apply_class_balancing=apply_class_balancing, alpha=alpha, gamma=gamma,
                         from_logits=from_logits, label_smoothing=label_smoothing, axis=axis)


class CategoricalCrossentropy(LossFunctionWrapper):
    """The cross entropy of several classes, with one-hot labels.

    Args:
        from_logits: whether predictions are logits rather than probabilities.
        label_smoothing: which part of each label is spread over all classes.
        axis: the axis of the classes.
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.CategoricalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]]).numpy().round(4)
    np.float32(0.6931)
    """

    _SETTINGS = ("from_logits", "label_smoothing", "axis")

    def __init__(self, from_logits: bool = False, label_smoothing: float = 0.0, axis: Any = -1,
                 reduction: str | None = _MEAN, name: str | None = "categorical_crossentropy", dtype: Any = None):
        super().__init__(categorical_crossentropy, reduction, name, dtype, from_logits=from_logits,
                         label_smoothing=label_smoothing, axis=axis)


class CategoricalFocalCrossentropy(LossFunctionWrapper):
    """The cross entropy of several classes, in which samples count less that are right already.

    Args:
        alpha: a weight, or one for each class.
        gamma: how much less samples count that are right already.
        from_logits: whether predictions are logits rather than probabilities.
        label_smoothing: which part of each label is spread over all classes.
        axis: the axis of the classes.
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.CategoricalFocalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]]).numpy().round(4)
    np.float32(0.0433)
    """

    _SETTINGS = ("alpha", "gamma", "from_logits", "label_smoothing", "axis")

    def __init__(self, alpha: Any = 0.25, gamma: float = 2.0, from_logits: bool = False, label_smoothing: float = 0.0,
                 axis: Any = -1, reduction: str | None = _MEAN, name: str | None = "categorical_focal_crossentropy",
                 dtype: Any = None):
        super().__init__(categorical_focal_crossentropy, reduction, name, dtype, alpha=alpha, gamma=gamma,
                         from_logits=from_logits, label_smoothing=label_smoothing, axis=axis)


class SparseCategoricalCrossentropy(LossFunctionWrapper):
    """The cross entropy of several classes, with labels that are their numbers.

    Args:
        from_logits: whether predictions are logits rather than probabilities.
        ignore_class: the number that stands for no class: such samples do not count.
        axis: the axis of the classes.
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)([1], [[0.0, 0.0]]).numpy().round(4)
    np.float32(0.6931)
    """

    _SETTINGS = ("from_logits", "ignore_class", "axis")
    _converts_labels = False  # a float would not hold the number of every class

    def __init__(self, from_logits: bool = False, ignore_class: int | None = None, axis: Any = -1,
                 reduction: str | None = _MEAN, name: str | None = "sparse_categorical_crossentropy",
                 dtype: Any = None):
        super().__init__(sparse_categorical_crossentropy, reduction, name, dtype, from_logits=from_logits,
                         ignore_class=ignore_class, axis=axis)


class CTC(LossFunctionWrapper):
    """Connectionist temporal classification: labels [batch, most labels], 0 for none; logits [batch, time, classes].

    Args:
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.CTC()([[1]], tf.zeros([1, 2, 2])).numpy().round(4)
    np.float32(0.2877)
    """

    _SETTINGS = ()
    _converts_labels = False  # a float would not hold the number of every class

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "ctc", dtype: Any = None):
        super().__init__(ctc, reduction, name, dtype)


class Dice(LossFunctionWrapper):
    """1 minus twice the overlap of two regions over the sum of both.

    Args:
        axis: the axes of a region; by default all.
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.Dice()([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]).numpy()
    np.float32(0.5)
    """

    _SETTINGS = ("axis",)

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "dice", axis: Any = None, dtype: Any = None):
        super().__init__(dice, reduction, name, dtype, axis=axis)


class Tversky(LossFunctionWrapper):
    """1 minus the overlap of two regions over it and weighted parts of what lies outside.

    Args:
        alpha: the weight of what is missed.
        beta: the weight of what is too much.
        axis: the axes of a region; by default all.
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.Tversky()([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]).numpy()
    np.float32(0.5)
    """

    _SETTINGS = ("alpha", "beta", "axis")

    def __init__(self, alpha: float = 0.5, beta: float = 0.5, reduction: str | None = _MEAN,
                 name: str | None = "tversky", axis: Any = None, dtype: Any = None):
        super().__init__(tversky, reduction, name, dtype, alpha=alpha, beta=beta, axis=axis)


class Circle(LossFunctionWrapper):
    """Vectors of one label close together, the others apart: labels [batch], vectors of length 1 [batch, size].

    Args:
        gamma: how sharp the loss is.
        margin: how far apart the two kinds of pairs should be.
        remove_diagonal: whether a vector is not compared with itself.
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.Circle()([0, 0, 1], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).numpy() < 1e-3
    np.True_
    """

    _SETTINGS = ("gamma", "margin", "remove_diagonal")

    def __init__(self, gamma: float = 80.0, margin: float = 0.4, remove_diagonal: bool = True,
                 reduction: str | None = _MEAN, name: str | None = "circle", dtype: Any = None):
        super().__init__(circle, reduction, name, dtype, gamma=gamma, margin=margin, remove_diagonal=remove_diagonal)


class CategoricalGeneralizedCrossEntropy(LossFunctionWrapper):
    """`(1 - p**q) / q`, p the probability of the right class; labels are numbers of classes.

    Args:
        q: between 0, which would be cross entropy, and 1, which would be an absolute error.
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> tf.keras.losses.CategoricalGeneralizedCrossEntropy()([1], [[0.75, 0.25]]).numpy()
    np.float32(1.0)
    """

    _SETTINGS = ("q",)
    _converts_labels = False  # a float would not hold the number of every class

    def __init__(self, q: float = 0.5, reduction: str | None = _MEAN,
                 name: str | None = "categorical_generalized_cross_entropy", dtype: Any = None):
        if not 0 < q < 1:
            raise ValueError(f"q must be in the interval (0, 1); got {q}.")
        super().__init__(categorical_generalized_cross_entropy, reduction, name, dtype, q=q)
