"""Activations as layers."""

from __future__ import annotations

from typing import Any

import twofold as tf

from .. import activations
from ..scalars import number
from ._declared import DeclaredLayer, InputSpec, from_front

__all__ = ["ELU", "Activation", "LeakyReLU", "PReLU", "ReLU", "Softmax", "ThresholdedReLU"]


class _Elementwise(DeclaredLayer):
    """A layer whose outputs have the shape of the inputs."""

    supports_masking = True

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape


class Activation(_Elementwise):
    """An activation function as a layer.

    Args:
        activation: a function of `tf.keras.activations`, its name, or another callable.
        kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> tf.keras.layers.Activation("relu")(tf.constant([-1.0, 2.0])).numpy().tolist()
    [0.0, 2.0]
    """

    _arguments = ("activation",)

    def __init__(self, activation: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self._take(activation=activation)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        return self.activation(inputs)


class ReLU(_Elementwise):
    """`x` where it is above `threshold`, else `negative_slope * (x - threshold)`; at most `max_value`.

    Args:
        max_value: a number that is not negative, or None for no limit.
        negative_slope, threshold: numbers that are not negative.
        kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> tf.keras.layers.ReLU(max_value=6.0)(tf.constant([-1.0, 2.0, 9.0])).numpy().tolist()
    [0.0, 2.0, 6.0]
    """

    _arguments = ("max_value", "negative_slope", "threshold")

    def __init__(self, max_value: float | None = None, negative_slope: float = 0.0, threshold: float = 0.0,
                 **kwargs: Any):
        super().__init__(**kwargs)
        self.max_value = None if max_value is None else _not_negative(max_value, "max_value")
        self.negative_slope = _not_negative(negative_slope, "negative_slope")
        self.threshold = _not_negative(threshold, "threshold")

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)


def _not_negative(value: Any, name: str) -> Any:
    if value is None or value < 0:
        raise ValueError(f"`{name}` must be a number that is not negative. Received: {name}={value}")
    return value


class LeakyReLU(_Elementwise):
    """`x` where it is positive, else `negative_slope * x`.

    Args:
        negative_slope: a number that is not negative; `alpha` is its older name.
        kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> tf.keras.layers.LeakyReLU(0.5)(tf.constant([-1.0, 2.0])).numpy().tolist()
    [-0.5, 2.0]
    """

    _arguments = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.3, **kwargs: Any):
        negative_slope = kwargs.pop("alpha", negative_slope)
        super().__init__(**kwargs)
        self.negative_slope = _not_negative(negative_slope, "negative_slope")

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        return activations.leaky_relu(inputs, self.negative_slope)


class PReLU(_Elementwise):
    """`x` where it is positive, else `alpha * x` with a learned alpha for each element (He et al. 2015).

    Args:
        alpha_initializer, alpha_regularizer, alpha_constraint: for alpha.
        shared_axes: axes along which alpha is one number, such as (1, 2) for images.
        kwargs: those of `Layer`.
    Weights: alpha, of the inputs' shape without the batch, with size 1 along shared axes.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.PReLU(alpha_initializer="ones", shared_axes=[1])
    >>> layer(tf.constant([[[-1.0, 2.0]]])).numpy().tolist(), layer.alpha.shape
    ([[[-1.0, 2.0]]], TensorShape([1, 2]))
    """

    _arguments = ("alpha_initializer", "alpha_regularizer", "alpha_constraint", "shared_axes")

    def __init__(self, alpha_initializer: Any = "Zeros", alpha_regularizer: Any = None, alpha_constraint: Any = None,
                 shared_axes: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.shared_axes = (None if shared_axes is None else list(shared_axes) if isinstance(shared_axes, (list, tuple))
                            else [shared_axes])
        self._take(alpha_initializer=alpha_initializer, alpha_regularizer=alpha_regularizer,
                   alpha_constraint=alpha_constraint)

    def build(self, input_shape: Any) -> None:
        """Make alpha."""
        shared = {from_front(axis, len(input_shape)) for axis in self.shared_axes or ()}
        self.alpha = self._weight("alpha", [1 if axis in shared else size
                                            for axis, size in enumerate(input_shape)][1:])
        axes = {axis: size for axis, size in enumerate(input_shape) if axis and axis not in shared} if shared else {}
        self.input_spec = InputSpec(ndim=len(input_shape), axes=axes)
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        return tf.nn.relu(inputs) - self.alpha * tf.nn.relu(-inputs)


class ELU(_Elementwise):
    """`x` where it is positive, else `alpha * (exp(x) - 1)`.

    Args:
        alpha: a number.
        kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> tf.keras.layers.ELU(0.5)(tf.constant([-100.0, 2.0])).numpy().tolist()
    [-0.5, 2.0]
    """

    _arguments = ("alpha",)

    def __init__(self, alpha: float = 1.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        return activations.elu(inputs, self.alpha)


class Softmax(_Elementwise):
    """exp(x) over its sum along an axis, or along several together.

    Args:
        axis: an integer, or several.
        kwargs: those of `Layer`.
    Inputs: floating, and a `mask` that broadcasts to them: where it is false the outputs are 0.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.Softmax()
    >>> layer(tf.constant([[1.0, 1.0, 5.0]]), mask=tf.constant([[True, True, False]])).numpy().tolist()
    [[0.5, 0.5, 0.0]]
    """

    _arguments = ("axis",)

    def __init__(self, axis: Any = -1, **kwargs: Any):
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """The outputs for `inputs`."""
        if mask is None:
            return activations.softmax(inputs, self.axis)
        if len(mask.shape) > len(inputs.shape):
            raise ValueError("The `mask` must be broadcastable to `inputs` and must not have more dimensions. "
                             f"Received: inputs.shape={inputs.shape}, mask.shape={mask.shape}")
        kept = mask if mask.dtype == tf.bool else mask > number(0.5, mask.dtype)
        # not the lowest float: sums of such numbers must stay finite
        low = number(-3e4 if inputs.dtype == tf.float16 else -1e9, inputs.dtype)
        weights = activations.softmax(tf.where(kept, inputs, low), self.axis)
        return tf.where(kept, weights, tf.zeros((), weights.dtype))


class ThresholdedReLU(_Elementwise):
    """`x` where it is above a threshold, else 0: an older layer, for which `ReLU(threshold=..)` serves as well.

    Args:
        theta: the threshold, not negative.
        kwargs: those of `Layer`.
    Raises:
        ValueError: the threshold is negative, or None.

    >>> import twofold as tf
    >>> tf.keras.layers.ThresholdedReLU(1.5)(tf.constant([-3.0, 1.0, 2.0])).numpy().tolist()
    [0.0, 0.0, 2.0]
    """

    _arguments = ("theta",)

    def __init__(self, theta: float = 1.0, **kwargs: Any):
        super().__init__(**kwargs)
        if theta is None or theta < 0:
            raise ValueError(f"The theta value of a ThresholdedReLU layer should be >= 0. Received: {theta}")
        self.theta = float(theta)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        return tf.where(inputs > self.theta, inputs, tf.zeros((), inputs.dtype))
