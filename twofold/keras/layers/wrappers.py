"""Layers around a layer: for each step of a sequence, or with a kernel of bounded norm."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front import replica

from .. import initializers
from ..configs import config_of
from ..serialization import deserialize_keras_object, serialize_keras_object
from ._declared import InputSpec, Layer, Shape, build_within

__all__ = ["SpectralNormalization", "TimeDistributed", "Wrapper"]


class Wrapper(Layer):
    """The base of layers that hold one layer, as `layer`.

    Args:
        layer: the layer.
        kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> class Doubled(tf.keras.layers.Wrapper):
    ...     def call(self, x):
    ...         return 2 * self.layer(x)
    >>> Doubled(tf.keras.layers.ReLU())(tf.constant([1.0])).numpy().tolist()
    [2.0]
    """

    def __init__(self, layer: Any, **kwargs: Any):
        if not isinstance(layer, Layer):
            raise ValueError(f"Layer {layer} supplied to {type(self).__name__} isn't a supported layer type. Please "
                             "ensure wrapped layer is a valid Keras layer.")
        super().__init__(**kwargs)
        self.layer = layer

    def build(self, input_shape: Any = None) -> None:
        """Build the layer within."""
        build_within(self.layer, self, input_shape)
        self.built = True

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain values."""
        return {**super().get_config(), "layer": serialize_keras_object(self.layer)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """A layer made from what `get_config` gave."""
        config = config_of(config)
        layer = deserialize_keras_object(config.pop("layer"), custom_objects=custom_objects)
        return cls(layer, **config)


class TimeDistributed(Wrapper):
    """A layer applied to each step of sequences.

    Args:
        layer: the layer; its inputs have no axis of steps.
        kwargs: those of `Layer`.
    Inputs: [batch, steps, ..]. Outputs: likewise.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.TimeDistributed(tf.keras.layers.Conv2D(4, 3))
    >>> layer(tf.zeros([2, 5, 8, 8, 1])).shape
    TensorShape([2, 5, 6, 6, 4])
    """

    supports_masking = True

    def __init__(self, layer: Any, **kwargs: Any):
        super().__init__(layer, **kwargs)

    @staticmethod
    def _inner(input_shape: Any) -> Shape:
        if len(input_shape) < 3:
            raise ValueError("`TimeDistributed` Layer should be passed an `input_shape` with at least 3 dimensions, "
                             f"received: {input_shape}")
        return (input_shape[0], *input_shape[2:])

    def build(self, input_shape: Any = None) -> None:
        """Build the layer within."""
        super().build(self._inner(tuple(input_shape)))

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The outputs for `inputs`."""
        spec = self.layer._call_spec
        flags = {"training": training} if spec.takes_training and training is not None else {}
        steps_apart = mask is not None and "mask" in spec.names
        if mask is not None and tuple(mask.shape)[:2] != tuple(inputs.shape)[:2] and None not in (
                *tuple(mask.shape)[:2], *tuple(inputs.shape)[:2]):
            raise ValueError(f"The `mask` passed to the `TimeDistributed` layer has a shape {tuple(mask.shape)} that "
                             f"is incompatible with the input shape {tuple(inputs.shape)}.")
        if self._works_by_example() and not steps_apart:
            sizes = tf.shape(inputs)
            merged = self.layer(tf.reshape(inputs, tf.concat([[-1], sizes[2:]], 0)), **flags)
            known = inputs.shape[1]
            outputs = tf.reshape(merged, tf.concat([sizes[:2], tf.shape(merged)[1:]], 0))
            outputs.set_shape([inputs.shape[0], known, *merged.shape[1:]])
            return outputs
        if inputs.shape[1] is None:
            raise ValueError(f"TimeDistributed needs to know the number of steps for {type(self.layer).__name__}: its "
                             "outputs depend on the batch as a whole.")
        outputs = [self.layer(inputs[:, t], **flags, **({"mask": mask[:, t]} if steps_apart else {}))
                   for t in range(inputs.shape[1])]
        return tf.stack(outputs, axis=1)

    def _works_by_example(self) -> bool:
        """Whether steps can be examples of one large batch: nothing within looks at, or draws for, a batch."""
        return all(not layer.stateful and not hasattr(layer, "moving_mean") and not hasattr(layer, "seed_generator")
                   and type(layer).__module__.startswith(_OWN) for layer in self.layer._flatten_layers())

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        inner = self.layer.compute_output_shape(self._inner(tuple(input_shape)))
        return (inner[0], input_shape[1], *inner[1:])


_OWN = __name__.rpartition(".")[0]


class SpectralNormalization(Wrapper):
    """A layer whose kernel is divided by its largest singular value at each step of training (Miyato et al. 2018).

    Args:
        layer: a layer with a `kernel` or `embeddings`.
        power_iterations: how many rounds of the power method a step has.
        kwargs: those of `Layer`.
    Weights: those of the layer, and vector_u [1, outputs].
    Raises:
        ValueError: the layer has no kernel.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.SpectralNormalization(tf.keras.layers.Dense(2), power_iterations=20)
    >>> y = layer(tf.ones([1, 3]), training=True)
    >>> bool(abs(tf.linalg.svd(layer.layer.kernel, compute_uv=False)[0] - 1) < 1e-3)
    True
    """

    def __init__(self, layer: Any, power_iterations: int = 1, **kwargs: Any):
        super().__init__(layer, **kwargs)
        if power_iterations <= 0:
            raise ValueError("`power_iterations` should be greater than zero. Received: "
                             f"`power_iterations={power_iterations}`")
        self.power_iterations = power_iterations

    def build(self, input_shape: Any = None) -> None:
        """Build the layer within, and make the vector."""
        super().build(input_shape)
        kernel = getattr(self.layer, "kernel", getattr(self.layer, "embeddings", None))
        if kernel is None:
            raise ValueError(f"{type(self.layer).__name__} object has no attribute 'kernel' nor 'embeddings'")
        self.kernel = kernel
        self.input_spec = InputSpec(min_ndim=1, axes={-1: input_shape[-1]})
        self.vector_u = self.add_weight(name="vector_u", shape=(1, kernel.shape[-1]), trainable=False,
                                        initializer=initializers.TruncatedNormal(stddev=0.02), dtype=kernel.dtype)

    def call(self, inputs: Any, training: Any = False) -> Any:
        """The outputs for `inputs`."""
        if not training:
            return tf.cast(self.layer(inputs), inputs.dtype)
        own = self.kernel, self.vector_u
        before = [tf.convert_to_tensor(variable) for variable in own]
        with replica.assigning_alike():
            self._normalize()
        try:
            return tf.cast(self.layer(inputs), inputs.dtype)
        except Exception:  # inputs that the layer refuses change nothing
            with replica.assigning_alike():
                for variable, value in zip(own, before, strict=True):
                    variable.assign(value)
            raise

    def _normalize(self) -> None:
        kernel, u = tf.convert_to_tensor(self.kernel), tf.convert_to_tensor(self.vector_u)
        matrix = tf.reshape(kernel, (-1, kernel.shape[-1]))
        for _ in range(self.power_iterations):
            v = tf.math.l2_normalize(tf.matmul(u, matrix, transpose_b=True))
            u = tf.math.l2_normalize(tf.matmul(v, matrix))
        u, v = tf.stop_gradient(u), tf.stop_gradient(v)
        sigma = tf.matmul(tf.matmul(v, matrix), u, transpose_b=True)[0, 0]
        # a kernel of zeros has no direction, and stays
        empty = tf.reduce_all(tf.equal(kernel, tf.zeros((), kernel.dtype)))
        self.vector_u.assign(tf.where(empty, tf.convert_to_tensor(self.vector_u), tf.cast(u, self.vector_u.dtype)))
        scaled = tf.where(empty, kernel, kernel / tf.where(empty, tf.ones_like(sigma), sigma))
        self.kernel.assign(tf.cast(scaled, self.kernel.dtype))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs for inputs of a shape."""
        return self.layer.compute_output_shape(input_shape)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain values."""
        return {**super().get_config(), "power_iterations": self.power_iterations}
