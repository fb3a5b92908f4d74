"""`tf.compat.v1.layers`: layers as TensorFlow 1 named them; Keras's, with upper-case paddings too."""

from __future__ import annotations

from typing import Any

from twofold._api import public
from twofold.keras import layers as _layers

__all__ = ["AveragePooling2D", "BatchNormalization", "Conv2D", "Dense", "Dropout", "Flatten", "Layer", "MaxPooling2D",
           "average_pooling2d", "batch_normalization", "conv2d", "dense", "dropout", "flatten", "max_pooling2d"]

AveragePooling2D: Any = _layers.AveragePooling2D
BatchNormalization: Any = _layers.BatchNormalization
Conv2D: Any = _layers.Conv2D
Dense: Any = _layers.Dense
Dropout: Any = _layers.Dropout
Flatten: Any = _layers.Flatten
Layer: Any = _layers.Layer
MaxPooling2D: Any = _layers.MaxPooling2D


@public
def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Any:
    """`inputs` with all axes but the first made one.

    >>> import twofold as tf
    >>> tf.compat.v1.layers.flatten(tf.zeros([2, 3, 4])).shape
    TensorShape([2, 12])
    """
    return Flatten(data_format=data_format)(inputs)


@public
def dense(inputs: Any, units: int, activation: Any = None, use_bias: bool = True, **options: Any) -> Any:
    """A new dense layer's output; its variables are of the current graph.

    >>> import twofold as tf
    >>> tf.compat.v1.layers.dense(tf.zeros([2, 3]), 4).shape
    TensorShape([2, 4])
    """
    return Dense(units, activation=activation, use_bias=use_bias, **_known(options))(inputs)


@public
def conv2d(inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
           activation: Any = None, **options: Any) -> Any:
    """A new convolution's output; its variables are of the current graph."""
    made = Conv2D(filters, kernel_size, strides=strides, padding=padding, activation=activation, **_known(options))
    return made(inputs)


@public
def max_pooling2d(inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
                  data_format: str = "channels_last", name: str | None = None) -> Any:
    """The largest of each window."""
    return MaxPooling2D(pool_size, strides, padding, data_format=data_format)(inputs)


@public
def average_pooling2d(inputs: Any, pool_size: Any, strides: Any, padding: str = "valid",
                      data_format: str = "channels_last", name: str | None = None) -> Any:
    """The mean of each window."""
    return AveragePooling2D(pool_size, strides, padding, data_format=data_format)(inputs)


@public
def dropout(inputs: Any, rate: float = 0.5, noise_shape: Any = None, seed: Any = None, training: Any = False,
            name: str | None = None) -> Any:
    """`inputs` with some elements zeroed while `training`."""
    return Dropout(rate, noise_shape=noise_shape, seed=seed)(inputs, training=training)


@public
def batch_normalization(inputs: Any, axis: int = -1, momentum: float = 0.99, epsilon: float = 1e-3,
                        training: Any = False, **options: Any) -> Any:
    """`inputs` normalised by the batch while `training`, else by moving statistics."""
    made = BatchNormalization(axis=axis, momentum=momentum, epsilon=epsilon, **_known(options))
    return made(inputs, training=training)


def _known(options: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in options.items() if k not in ("reuse", "fused", "renorm")}

