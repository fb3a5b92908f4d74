"""Layers of no particular family: Dense, EinsumDense, Embedding, Lambda, Masking, Identity."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import twofold as tf
from twofold._front.api import listed, mapped, refusable

from ..composites import in_ops, is_composite
from ..configs import config_of
from ..scalars import number
from ..serialization import deserialize_keras_object, serialize_keras_object
from ._declared import DeclaredLayer, InputSpec, Layer, Shape, as_floats, positive
from ._equations import dense_shapes

__all__ = ["Dense", "EinsumDense", "Embedding", "Identity", "Lambda", "Masking", "ReversibleEmbedding"]


class Dense(DeclaredLayer):
    """`activation(inputs @ kernel + bias)`, over the last axis of inputs of any rank.

    Args:
        units: the size of the outputs' last axis.
        activation: a function or its name; none by default.
        use_bias: whether there is a bias.
        kernel_initializer, bias_initializer: see `tf.keras.initializers`.
        kernel_regularizer, bias_regularizer, activity_regularizer: see `tf.keras.regularizers`.
        kernel_constraint, bias_constraint: see `tf.keras.constraints`.
        kwargs: those of `Layer`.
    Inputs: floating [batch, .., inputs], also sparse. Outputs: [batch, .., units].
    Weights: kernel [inputs, units], bias [units].
    Raises:
        ValueError: `units` is not a positive integer.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.Dense(2, kernel_initializer="ones", activation="relu")
    >>> layer(tf.constant([[1.0, 2.0], [-3.0, 1.0]])).numpy().tolist()
    [[3.0, 3.0], [0.0, 0.0]]
    """

    _checkpoint_names = MappingProxyType({"_kernel": "kernel"})
    _arguments = ("units", "activation", "use_bias", "kernel_initializer", "bias_initializer", "kernel_regularizer",
                  "bias_regularizer", "kernel_constraint", "bias_constraint")

    def __init__(self, units: int, activation: Any = None, use_bias: bool = True,
                 kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None,
                 kernel_constraint: Any = None, bias_constraint: Any = None, **kwargs: Any):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.units = positive(units, "units")
        self.use_bias = use_bias
        self._take(activation=activation, kernel_initializer=kernel_initializer, bias_initializer=bias_initializer,
                   kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
                   kernel_constraint=kernel_constraint, bias_constraint=bias_constraint)
        self.input_spec = InputSpec(min_ndim=2)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Make the kernel and the bias."""
        inputs = input_shape[-1]
        if inputs is None:
            raise ValueError(f"The last dimension of the inputs to Dense must be known. Received {input_shape}.")
        self.kernel = self._weight("kernel", (inputs, self.units))
        self.bias = self._weight("bias", (self.units,)) if self.use_bias else None
        self.input_spec = InputSpec(min_ndim=2, axes={-1: inputs})
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        x = as_floats(inputs, self.compute_dtype)
        outputs = in_ops("matmul", x, self.kernel) if is_composite(x) else tf.matmul(x, self.kernel)
        if self.bias is not None:
            outputs = outputs + self.bias
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        return (*input_shape[:-1], self.units)


class EinsumDense(DeclaredLayer):
    """`activation(einsum(equation, inputs, kernel) + bias)`.

    Args:
        equation: of `tf.einsum`, such as "ab,bc->ac" or "...x,xy->...y".
        output_shape: the sizes of the outputs without the batch, None where the inputs decide.
        activation: a function or its name; none by default.
        bias_axes: the letters of the outputs that the bias has; none by default.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
        kernel_constraint, bias_constraint: as for `Dense`.
        kwargs: those of `Layer`.
    Weights: kernel of the shape of the equation's second operand, bias.
    Raises:
        ValueError: the equation is not of one of these forms, when the layer is built.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.EinsumDense("abc,cd->abd", output_shape=(None, 64), bias_axes="d")
    >>> layer(tf.zeros([2, 32, 128])).shape, layer.bias.shape
    (TensorShape([2, 32, 64]), TensorShape([64]))
    """

    _checkpoint_names = MappingProxyType({"_kernel": "kernel"})
    _arguments = ("output_shape", "equation", "activation", "bias_axes", "kernel_initializer", "bias_initializer",
                  "kernel_regularizer", "bias_regularizer", "activity_regularizer", "kernel_constraint",
                  "bias_constraint")

    def __init__(self, equation: str, output_shape: Any, activation: Any = None, bias_axes: str | None = None,
                 kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, bias_regularizer: Any = None, kernel_constraint: Any = None,
                 bias_constraint: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.equation, self.bias_axes = equation, bias_axes
        sizes = [output_shape] if isinstance(output_shape, int) else listed(output_shape, "output_shape")
        self.partial_output_shape = tuple(sizes)
        self._take(activation=activation, kernel_initializer=kernel_initializer, bias_initializer=bias_initializer,
                   kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
                   kernel_constraint=kernel_constraint, bias_constraint=bias_constraint)

    def _argument(self, name: str) -> Any:
        return self.partial_output_shape if name == "output_shape" else super()._argument(name)

    def build(self, input_shape: Any) -> None:
        """Make the kernel and the bias."""
        kernel, bias, self.full_output_shape = dense_shapes(
            self.equation, self.bias_axes, tuple(input_shape), self.partial_output_shape)
        self.kernel = self._weight("kernel", kernel)
        self.bias = None if bias is None else self._weight("bias", bias)
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        outputs = tf.einsum(self.equation, as_floats(inputs, self.compute_dtype), self.kernel)
        if self.bias is not None:
            outputs = outputs + self.bias
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        return dense_shapes(self.equation, self.bias_axes, tuple(input_shape), self.partial_output_shape)[2]


class Embedding(DeclaredLayer):
    """A vector for each of `input_dim` integers.

    Args:
        input_dim: how many integers there are: 0 to `input_dim - 1`.
        output_dim: the length of the vectors.
        embeddings_initializer, embeddings_regularizer, embeddings_constraint: as for `Dense`.
        mask_zero: whether 0 stands for padding, so that layers behind get a mask.
        weights: a matrix to start from.
        kwargs: those of `Layer`; `input_length` is accepted, without effect.
    Inputs: integers of any shape; of ragged ones outputs are ragged, of sparse ones dense. Outputs: their shape and
        `output_dim`.
    Weights: embeddings [input_dim, output_dim].

    >>> import twofold as tf
    >>> layer = tf.keras.layers.Embedding(10, 4, mask_zero=True)
    >>> layer(tf.constant([[1, 2, 0]])).shape, layer.compute_mask(tf.constant([[1, 2, 0]])).numpy().tolist()
    (TensorShape([1, 3, 4]), [[True, True, False]])
    """

    _arguments: tuple[str, ...] = ("input_dim", "output_dim", "embeddings_initializer", "embeddings_regularizer",
                                   "activity_regularizer", "embeddings_constraint", "mask_zero")

    embeddings_initializer: Any
    autocast = False

    _checkpoint_names = MappingProxyType({"_embeddings": "embeddings"})

    def __init__(self, input_dim: int, output_dim: int, embeddings_initializer: Any = "uniform",
                 embeddings_regularizer: Any = None, embeddings_constraint: Any = None, mask_zero: bool = False,
                 weights: Any = None, **kwargs: Any):
        length = kwargs.pop("input_length", None)
        if length is not None and "input_shape" not in kwargs and "batch_input_shape" not in kwargs:
            kwargs["input_shape"] = (length,) if isinstance(length, int) else tuple(length)
        super().__init__(**kwargs)
        self.input_dim, self.output_dim = positive(input_dim, "input_dim"), positive(output_dim, "output_dim")
        self._take(embeddings_initializer=embeddings_initializer, embeddings_regularizer=embeddings_regularizer,
                   embeddings_constraint=embeddings_constraint)
        self.mask_zero = self.supports_masking = mask_zero
        if weights is not None:
            with refusable():
                self.build()
                self.set_weights(weights if isinstance(weights, list) and len(weights) == 1 else [weights])

    def build(self, input_shape: Any = None) -> None:
        """Make the matrix."""
        if not self.built:
            self.embeddings = self._weight("embeddings", (self.input_dim, self.output_dim))
            self.built = True

    def call(self, inputs: Any) -> Any:
        """The vectors of `inputs`."""
        if isinstance(inputs, tf.SparseTensor):
            inputs = tf.sparse.to_dense(inputs)
        if inputs.dtype not in (tf.int32, tf.int64):
            inputs = tf.cast(inputs, tf.int32)
        return tf.cast(tf.gather(self.embeddings, inputs), self.compute_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Where the inputs are not 0, if that is padding."""
        return tf.not_equal(inputs, 0) if self.mask_zero and not is_composite(inputs) else None

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        return (*input_shape, self.output_dim)


class ReversibleEmbedding(Embedding):
    """An `Embedding` whose matrix, or another, also turns vectors into scores of the integers.

    Args:
        input_dim, output_dim, embeddings_initializer, embeddings_regularizer, embeddings_constraint, mask_zero: as for
            `Embedding`.
        tie_weights: whether the way back uses the same matrix.
        reverse_dtype: the dtype of the way back; the layer's by default.
        logit_soft_cap: scores are kept within this distance of 0 by tanh; no limit by default.
        kwargs: those of `Layer`.
    Inputs: integers of any shape; with `reverse=True` floats [.., output_dim].
    Weights: embeddings [input_dim, output_dim], and if not tied reverse_embeddings [output_dim, input_dim].

    >>> import twofold as tf
    >>> layer = tf.keras.layers.ReversibleEmbedding(10, 4)
    >>> layer(layer(tf.constant([1, 2])), reverse=True).shape
    TensorShape([2, 10])
    """

    _arguments = (*Embedding._arguments, "tie_weights", "reverse_dtype", "logit_soft_cap")

    def __init__(self, input_dim: int, output_dim: int, tie_weights: bool = True,
                 embeddings_initializer: Any = "uniform", embeddings_regularizer: Any = None,
                 embeddings_constraint: Any = None, mask_zero: bool = False, reverse_dtype: Any = None,
                 logit_soft_cap: float | None = None, **kwargs: Any):
        super().__init__(input_dim, output_dim, embeddings_initializer, embeddings_regularizer, embeddings_constraint,
                         mask_zero, **kwargs)
        self.tie_weights, self.reverse_dtype, self.logit_soft_cap = tie_weights, reverse_dtype, logit_soft_cap

    def build(self, input_shape: Any = None) -> None:
        """Make the matrices."""
        super().build(input_shape)
        if not self.tie_weights and not hasattr(self, "reverse_embeddings"):
            self.reverse_embeddings = self._weight("reverse_embeddings", (self.output_dim, self.input_dim),
                                                   "embeddings")

    def call(self, inputs: Any, reverse: bool = False) -> Any:
        """The vectors of integers, or the scores of vectors."""
        if not reverse:
            return super().call(inputs)
        kernel = tf.transpose(self.embeddings) if self.tie_weights else tf.convert_to_tensor(self.reverse_embeddings)
        dtype = tf.as_dtype(self.compute_dtype if self.reverse_dtype is None else self.reverse_dtype)
        scores = tf.matmul(tf.cast(inputs, dtype), tf.cast(kernel, dtype))
        if self.logit_soft_cap is None:
            return scores
        return tf.tanh(scores / self.logit_soft_cap) * self.logit_soft_cap


class Identity(Layer):
    """The inputs, unchanged.

    Args:
        kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> tf.keras.layers.Identity()(tf.constant([1.0])).numpy().tolist()
    [1.0]
    """

    supports_masking = True

    def call(self, inputs: Any) -> Any:
        """The inputs."""
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape


class Lambda(Layer):
    """A function as a layer.

    Args:
        function: takes the inputs, and `mask` and `training` if it has arguments of these names. For a file it must be
            a public or registered function: the code of a Python lambda is not written to files.
        output_shape: the shape of the outputs without the batch, or a function from shape to shape; found by tracing
            by default.
        mask: the mask of the outputs, or a function that makes it from inputs and mask.
        arguments: further arguments of the function, by name.
        kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> tf.keras.layers.Lambda(lambda x: x ** 2)(tf.constant([3.0])).numpy().tolist()
    [9.0]
    """

    def __init__(self, function: Callable[..., Any], output_shape: Any = None, mask: Any = None,
                 arguments: Mapping[str, Any] | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.function, self.mask = function, mask
        self.arguments = dict(mapped(arguments or {}, "arguments"))
        self.supports_masking = mask is not None
        self._output_shape = output_shape
        names = _parameters(function)
        self._passed = tuple(name for name in ("mask", "training") if name in names)

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:
        """The result of the function."""
        given = {"mask": mask, "training": training}
        return self.function(inputs, **self.arguments, **{name: given[name] for name in self._passed})

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs for inputs of a shape."""
        if self._output_shape is None:
            return super().compute_output_shape(input_shape)
        if callable(self._output_shape):
            return self._output_shape(input_shape)
        first = input_shape[0]
        return (first[0] if isinstance(first, (tuple, list)) else first, *self._output_shape)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer.

        Raises:
            ValueError: the function has no name under which it could be found again.
        """
        config = {**super().get_config(), "function": serialize_keras_object(self.function)}
        if self._output_shape is not None:
            config["output_shape"] = serialize_keras_object(self._output_shape)
        if self.mask is not None:
            config["mask"] = serialize_keras_object(self.mask)
        return {**config, "arguments": serialize_keras_object(self.arguments)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Lambda:
        """A layer made from what `get_config` gave."""
        config = config_of(config)
        for name in ("function", "output_shape", "mask"):
            if isinstance(config.get(name), Mapping):
                config[name] = deserialize_keras_object(config[name], custom_objects=custom_objects)
        return cls(**config)


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


class Masking(Layer):
    """Masks the steps at which all features have one value, and sets them to 0.

    Args:
        mask_value: the value.
        kwargs: those of `Layer`.
    Inputs: [batch, steps, features]. Outputs: of that shape.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.Masking(9.0)
    >>> layer.compute_mask(tf.constant([[[9.0, 9.0], [9.0, 1.0]]])).numpy().tolist()
    [[False, True]]
    """

    supports_masking = True

    def __init__(self, mask_value: Any = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.mask_value = mask_value

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Which steps count."""
        return tf.reduce_any(tf.not_equal(inputs, number(self.mask_value, inputs.dtype)), axis=-1)

    def call(self, inputs: Any) -> Any:
        """The inputs, 0 at the masked steps."""
        kept = self.compute_mask(inputs)
        return tf.where(kept[..., tf.newaxis], inputs, tf.zeros((), inputs.dtype))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain values."""
        return {**super().get_config(), "mask_value": self.mask_value}
