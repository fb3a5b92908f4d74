"""`Input` and `InputLayer`: where a functional model begins."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import listed, public

from . import op_layer  # noqa: F401 - functions of tf on KerasTensors become layers of it
from .keras_tensor import KerasTensor, Node
from .layer import Layer
from .shapes import InputShape

__all__ = ["Input", "InputLayer"]


class InputLayer(Layer):
    """The entry of a model: it says the shape and the dtype of an input.

    Args:
        shape: without the batch.
        batch_size: the size of the batch, None for any.
        dtype: the dtype of the input; "float32" by default.
        sparse, ragged: whether the values are sparse, or ragged, tensors.
        batch_shape: the shape with the batch, instead of the two.
        input_tensor: a KerasTensor to begin with.
        optional: whether None may be passed.
        name: the layer's name.
    Raises:
        ValueError: there is no shape, or two; or the input is to be sparse and ragged.

    >>> import twofold as tf
    >>> tf.keras.layers.InputLayer(shape=(4,)).batch_shape
    (None, 4)
    """

    def __init__(self, shape: Any = None, batch_size: int | None = None, dtype: Any = None, sparse: Any = None,
                 ragged: Any = None, batch_shape: Any = None, input_tensor: Any = None, optional: bool = False,
                 name: str | None = None, input_shape: Any = None, batch_input_shape: Any = None, **kwargs: Any):
        super().__init__(name=name or None, dtype=None)
        shape = input_shape if shape is None else shape
        batch_shape = batch_input_shape if batch_shape is None else batch_shape
        if kwargs:
            raise ValueError(f"Unrecognized keyword arguments passed to InputLayer: {sorted(kwargs)}")
        if shape is not None and batch_shape is not None:
            raise ValueError("You cannot pass both `shape` and `batch_shape` at the same time.")
        if input_tensor is not None:
            batch_shape, dtype = input_tensor.shape, dtype or input_tensor.dtype.name
            sparse, ragged = input_tensor.sparse, input_tensor.ragged
        elif shape is not None:
            batch_shape = (batch_size, *([shape] if isinstance(shape, int) else listed(shape, "shape")))
        if batch_shape is None:
            raise ValueError("You must pass a `shape` argument.")
        own = self.__dict__
        own["_batch_shape"] = InputShape(listed(batch_shape, "batch_shape"))
        own["_input_dtype"] = tf.as_dtype(dtype or "float32").name
        self.optional, self.sparse, self.ragged = optional, bool(sparse), bool(ragged)
        self.built = True
        output = KerasTensor(own["_batch_shape"], own["_input_dtype"], self.name, sparse, ragged)
        Node(self, (), {}, output)

    @property
    def batch_shape(self) -> InputShape:
        """The shape of the input, batch included."""
        return self.__dict__["_batch_shape"]

    @property
    def dtype(self) -> str:
        """The name of the dtype of the input."""
        return self.__dict__["_input_dtype"]

    def call(self, inputs: Any = None) -> Any:
        """The input itself."""
        return inputs

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer."""
        return {"batch_shape": tuple(self.batch_shape), "dtype": self.dtype, "sparse": self.sparse,
                "ragged": self.ragged, "name": self.name}


@public
def Input(shape: Any = None, batch_size: int | None = None, dtype: Any = None, sparse: Any = None,
          batch_shape: Any = None, name: str | None = None, tensor: Any = None, optional: bool = False,
          ragged: Any = None) -> KerasTensor:
    """The beginning of a functional model: a tensor without a value that layers can be called on.

    Args:
        shape: without the batch, None for sizes that may be any.
        batch_size: the size of the batch, None for any.
        dtype: the dtype; "float32" by default.
        sparse, ragged: whether the values are sparse, or ragged, tensors.
        batch_shape: the shape with the batch, instead of the two.
        name: the name of the input, by which dicts of data name it.
        tensor: a KerasTensor whose shape and dtype are taken.
        optional: whether None may be passed.
    Returns:
        A KerasTensor.
    Raises:
        ValueError: there is no shape, or two; or the input is to be sparse and ragged.

    >>> import twofold as tf
    >>> x = tf.keras.Input(shape=(8,))
    >>> model = tf.keras.Model(x, tf.keras.layers.Dense(1)(x))
    >>> model.output_shape
    (None, 1)
    """
    layer = InputLayer(shape=shape, batch_size=batch_size, dtype=dtype, sparse=sparse, batch_shape=batch_shape,
                       input_tensor=tensor, optional=optional, name=name, ragged=ragged)
    return layer.output
