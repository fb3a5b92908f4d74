"""Operations of Keras as layers: what Keras 3 writes into functional models for its `ops`, and for masks.

A model that Keras saved holds a node for each operation on symbolic tensors, such as the `NotEqual` by which an
`Embedding` makes its mask. Reading makes a layer of it, which is written again as Keras wrote it. The names are a
closed list; models made here have `TFOpLambda` layers instead (`op_layer.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import twofold as tf

from . import activations
from .layer import Layer

__all__ = ["KerasOperation", "operation_class"]


def _over(reduce: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis=None, keepdims=False: reduce(x, axis=axis, keepdims=keepdims)


def _cast(x: Any, dtype: Any) -> Any:
    return tf.cast(x, dtype)


def _squeeze(x: Any, axis: Any = None) -> Any:
    return tf.squeeze(x, axis)


def _reshape(x: Any, newshape: Any) -> Any:
    """The batch is unknown where the model was made, and written as None."""
    return tf.reshape(x, [-1 if size is None else size for size in newshape])


_NUMPY: dict[str, Callable[..., Any]] = {
    "Absolute": tf.abs, "Add": tf.add, "All": _over(tf.reduce_all), "Any": _over(tf.reduce_any), "Cos": tf.cos,
    "Divide": tf.divide, "Equal": tf.equal, "Exp": tf.exp, "ExpandDims": tf.expand_dims, "Floor": tf.floor,
    "Greater": tf.greater, "GreaterEqual": tf.greater_equal, "Less": tf.less, "LessEqual": tf.less_equal,
    "Log": tf.math.log, "Log1p": tf.math.log1p, "LogicalAnd": tf.logical_and, "LogicalNot": tf.logical_not,
    "LogicalOr": tf.math.logical_or,
    "Matmul": tf.matmul, "Max": _over(tf.reduce_max), "Maximum": tf.maximum, "Mean": _over(tf.reduce_mean),
    "Min": _over(tf.reduce_min), "Minimum": tf.minimum, "Multiply": tf.multiply, "Negative": tf.negative,
    "NotEqual": tf.not_equal, "Power": tf.pow, "Prod": _over(tf.reduce_prod), "Reshape": _reshape, "Sin": tf.sin,
    "Sqrt": tf.sqrt, "Square": tf.square, "Squeeze": _squeeze, "Subtract": tf.subtract, "Sum": _over(tf.reduce_sum),
    "Tanh": tf.tanh, "Transpose": lambda x, axes=None: tf.transpose(x, axes), "TrueDivide": tf.divide,
    "Where": tf.where,
    "Concatenate": lambda xs, axis=0: tf.concat(xs, axis), "Stack": lambda xs, axis=0: tf.stack(xs, axis),
}
_NN: dict[str, Callable[..., Any]] = {
    "Relu": tf.nn.relu, "Relu6": tf.nn.relu6, "Sigmoid": tf.sigmoid, "Silu": tf.nn.silu, "Softplus": tf.math.softplus,
    "Softsign": tf.nn.softsign, "Elu": activations.elu, "Selu": tf.nn.selu, "Gelu": activations.gelu,
    "LeakyRelu": activations.leaky_relu, "LogSoftmax": activations.log_softmax, "Softmax": activations.softmax,
    "HardSigmoid": activations.hard_sigmoid, "HardSilu": activations.hard_silu,
}
_OPERATIONS: dict[str, dict[str, Callable[..., Any]]] = {
    "keras.src.ops.numpy": _NUMPY, "keras.src.ops.nn": _NN, "keras.src.ops.core": {"Cast": _cast},
    "keras.src.ops.math": {"Rsqrt": tf.math.rsqrt, "Erf": tf.math.erf, "Logsumexp": _over(tf.reduce_logsumexp)},
}


class KerasOperation(Layer):
    """An operation of Keras as a layer; its settings are those of the config.

    Args:
        name: the layer's name.
        settings: arguments of the operation that are no tensors.
    """

    autocast = False
    _keras_home: tuple[str, str]  # the module and the class that configs name
    _operation: Callable[..., Any]

    def __init__(self, name: str | None = None, **settings: Any):
        super().__init__(name=name)
        self._settings = settings
        self.built = True

    def _converted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs  # numbers take the dtype of the tensors beside them

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operation."""
        return type(self)._operation(*args, **kwargs, **self._settings)

    def get_config(self) -> dict[str, Any]:
        """The settings, and the layer's name."""
        return {"name": self.name, **self._settings}

    def get_build_config(self) -> None:
        """None: there is nothing to build."""
        return None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> KerasOperation:
        """A layer made from what Keras, or `get_config`, wrote."""
        return cls(**{key: value for key, value in config.items() if key not in ("trainable", "dtype")})


@functools.cache
def operation_class(module: str, name: str) -> Any:
    """The layer class of an operation that a config names; None if it is not known.

    >>> from twofold.keras.keras_ops import operation_class
    >>> bool(operation_class("keras.src.ops.numpy", "NotEqual")()(3, 0))
    True
    """
    function = _OPERATIONS.get(module, {}).get(name)
    if function is None:
        return None
    return type(name, (KerasOperation,), {"_keras_home": (module, name), "_operation": staticmethod(function),
                                          "__module__": __name__})
