"""Layers that bring means and variances of their inputs to fixed values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import twofold as tf

from .. import initializers
from ..scalars import number
from ._declared import DeclaredLayer, InputSpec, Shape, from_front

__all__ = ["BatchNormalization", "GroupNormalization", "LayerNormalization", "RMSNormalization", "UnitNormalization"]

_SCALE_AND_OFFSET = ("center", "scale", "beta_initializer", "gamma_initializer", "beta_regularizer",
                     "gamma_regularizer", "beta_constraint", "gamma_constraint")


class _Normalization(DeclaredLayer):
    """What normalisations with a scale gamma and an offset beta share."""

    supports_masking = True
    center: bool
    scale: bool
    gamma: Any = None
    beta: Any = None

    def _scale_and_offset(self, shape: Shape) -> None:
        """Make gamma and beta, as far as they are wanted."""
        if self.scale:
            self.gamma = self._weight("gamma", shape, autocast=False)
        if self.center:
            self.beta = self._weight("beta", shape, autocast=False)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape


def _known(shape: Any, axis: int) -> int:
    """The size of an axis, which a layer needs to know."""
    shape = tuple(shape)
    from_front(axis, len(shape))
    if shape[axis] is None:
        raise ValueError(f"Axis {axis} of the inputs must have a known size. Received input shape {shape}.")
    return shape[axis]


def _wide(x: Any) -> Any:
    """`x` in the precision of statistics: float32 for 16-bit floats and for integers."""
    return tf.cast(x, tf.float32) if x.dtype.size < 4 or not x.dtype.is_floating else x


class BatchNormalization(_Normalization):
    """Each channel brought to mean 0 and variance 1 over the batch, then scaled and moved (Ioffe & Szegedy 2015).

    In training the batch's own mean and variance are used, and moving averages of them follow; otherwise, and where
    the layer is frozen (`trainable = False`), the moving averages are used.

    Args:
        axis: the axis of channels.
        momentum: how much of the moving averages stays at a step.
        epsilon: added to the variance.
        center, scale: whether there is an offset beta, and a factor gamma.
        beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer: for the weights.
        beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint: for beta and gamma.
        renorm: whether statistics in training are corrected towards moving ones (Ioffe 2017).
        renorm_clipping: bounds of that correction: a dict with "rmin", "rmax", "dmax".
        renorm_momentum: how much of the averages for the correction stays at a step.
        synchronized: accepted: there is one device.
        kwargs: those of `Layer`.
    Inputs: floating, of any rank. With a `mask`, which has no last axis, only what it leaves counts.
    Outputs: of that shape.
    Weights: gamma, beta, moving_mean, moving_variance [channels].

    >>> import twofold as tf
    >>> layer = tf.keras.layers.BatchNormalization(momentum=0.5, epsilon=0.0)
    >>> layer(tf.constant([[1.0], [3.0]]), training=True).numpy().tolist()
    [[-1.0], [1.0]]
    >>> float(layer.moving_mean[0]), float(layer.moving_variance[0])
    (1.0, 1.0)
    """

    _arguments = ("axis", "momentum", "epsilon", "center", "scale", "beta_initializer", "gamma_initializer",
                  "moving_mean_initializer", "moving_variance_initializer", "beta_regularizer", "gamma_regularizer",
                  "beta_constraint", "gamma_constraint", "synchronized", "renorm", "renorm_clipping",
                  "renorm_momentum")

    moving_variance_initializer: Any
    moving_mean_initializer: Any

    def __init__(self, axis: int = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True,
                 scale: bool = True, beta_initializer: Any = "zeros", gamma_initializer: Any = "ones",
                 moving_mean_initializer: Any = "zeros", moving_variance_initializer: Any = "ones",
                 beta_regularizer: Any = None, gamma_regularizer: Any = None, beta_constraint: Any = None,
                 gamma_constraint: Any = None, renorm: bool = False,
                 renorm_clipping: Mapping[str, float] | None = None, renorm_momentum: float = 0.99,
                 synchronized: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        if isinstance(axis, (list, tuple)) and len(axis) == 1:
            axis = axis[0]
        self.axis, self.momentum, self.epsilon = int(axis), float(momentum), float(epsilon)
        self.center, self.scale, self.synchronized = center, scale, synchronized
        self.renorm, self.renorm_momentum = renorm, renorm_momentum
        self.renorm_clipping = _checked_clipping(dict(renorm_clipping or {})) if renorm else renorm_clipping
        self._take(beta_initializer=beta_initializer, gamma_initializer=gamma_initializer,
                   moving_mean_initializer=moving_mean_initializer,
                   moving_variance_initializer=moving_variance_initializer, beta_regularizer=beta_regularizer,
                   gamma_regularizer=gamma_regularizer, beta_constraint=beta_constraint,
                   gamma_constraint=gamma_constraint)

    def build(self, input_shape: Any) -> None:
        """Make the weights."""
        size = _known(input_shape, self.axis)
        self._scale_and_offset((size,))
        frozen: dict[str, Any] = {"trainable": False, "autocast": False, "aggregation": "mean",
                                  "synchronization": tf.VariableSynchronization.ON_READ}
        self.moving_mean = self._weight("moving_mean", (size,), **frozen)
        self.moving_variance = self._weight("moving_variance", (size,), **frozen)
        if self.renorm:
            self.moving_stddev = self.add_weight("moving_stddev", (size,), initializer=self._stddev, **frozen)
            self.renorm_mean = self._weight("renorm_mean", (size,), "moving_mean", **frozen)
            self.renorm_stddev = self.add_weight("renorm_stddev", (size,), initializer=self._stddev, **frozen)
        rank = len(input_shape)
        self.input_spec = InputSpec(ndim=rank, axes={self.axis: size})
        self._others = tuple(axis for axis in range(rank) if axis != self.axis % rank)
        self.built = True

    def _stddev(self, shape: Any, dtype: Any = None) -> Any:
        variance = self.moving_variance_initializer
        again = variance.clone() if isinstance(variance, initializers.Initializer) else variance
        return tf.sqrt(again(shape, dtype=dtype))

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The outputs for `inputs`."""
        if tf.is_tensor(training):
            return tf.cond(training, lambda: self.call(inputs, True, mask), lambda: self.call(inputs, False, mask))
        x = _wide(inputs)
        gamma, beta = self.gamma, self.beta
        if training and self.trainable:
            mean, variance = self._moments(x, mask)
            if self.renorm:
                gamma, beta = self._renormalized(mean, variance)
            else:
                self._follow(self.moving_mean, mean, self.momentum)
                self._follow(self.moving_variance, variance, self.momentum)
        else:
            mean, variance = self.moving_mean, self.moving_variance
        mean, variance, beta, gamma = (None if value is None else self._along(tf.cast(value, x.dtype), len(x.shape))
                                       for value in (mean, variance, beta, gamma))
        normal = tf.nn.batch_normalization(x, mean, variance, beta, gamma, self.epsilon)
        return tf.cast(normal, self.compute_dtype)

    def _along(self, value: Any, rank: int) -> Any:
        """A vector as a factor along the axis of channels."""
        behind = rank - 1 - self.axis % rank
        return tf.reshape(value, (-1, *(1,) * behind)) if behind else value

    def _moments(self, x: Any, mask: Any) -> tuple[Any, Any]:
        if mask is None:
            return tf.nn.moments(x, self._others)
        if len(mask.shape) != len(x.shape) - 1:
            raise ValueError("The mask provided should be one dimension less than the inputs. "
                             f"Received: mask.shape={mask.shape}, inputs.shape={x.shape}")
        kept = tf.broadcast_to(tf.cast(mask, tf.bool)[..., tf.newaxis], tf.shape(x))
        tiny = tf.keras.config.epsilon()
        count = tf.reduce_sum(tf.cast(kept, x.dtype), self._others, keepdims=True) + tiny
        zero = tf.zeros((), x.dtype)
        mean = tf.reduce_sum(tf.where(kept, x, zero), self._others, keepdims=True) / count
        off = tf.where(kept, x - mean, zero)
        variance = tf.reduce_sum(tf.square(off), self._others, keepdims=True) / count
        return tf.reshape(mean, (-1,)), tf.reshape(variance, (-1,))

    def _follow(self, average: Any, value: Any, momentum: float) -> None:
        """Move an average towards a value."""
        value = tf.cast(value, average.dtype)
        average._change(lambda now: now * momentum + value * (1.0 - momentum))

    def _renormalized(self, mean: Any, variance: Any) -> tuple[Any, Any]:
        """Factor and offset with the correction towards the moving statistics, which follow."""
        stddev, clip = tf.sqrt(variance + self.epsilon), self.renorm_clipping or {}
        usual = tf.maximum(tf.cast(self.renorm_stddev, mean.dtype), number(self.epsilon, mean.dtype) ** 0.5)
        r, d = stddev / usual, (mean - tf.cast(self.renorm_mean, mean.dtype)) / usual
        if clip.get("rmin") is not None:
            r = tf.maximum(r, clip["rmin"])
        if clip.get("rmax") is not None:
            r = tf.minimum(r, clip["rmax"])
        if clip.get("dmax") is not None:
            d = tf.clip_by_value(d, -clip["dmax"], clip["dmax"])
        r, d = tf.stop_gradient(r), tf.stop_gradient(d)
        self._follow(self.renorm_mean, mean, self.renorm_momentum)
        self._follow(self.renorm_stddev, stddev, self.renorm_momentum)
        self._follow(self.moving_mean, mean, self.momentum)
        self._follow(self.moving_stddev, stddev, self.momentum)
        self.moving_variance.assign(tf.nn.relu(tf.square(self.moving_stddev) - self.epsilon))
        gamma = None if self.gamma is None else tf.cast(self.gamma, mean.dtype)
        beta = d if gamma is None else d * gamma
        return (r if gamma is None else r * gamma,
                beta if self.beta is None else beta + tf.cast(self.beta, mean.dtype))


def _checked_clipping(clipping: dict[str, float]) -> dict[str, float]:
    unknown = set(clipping) - {"rmin", "rmax", "dmax"}
    low, high, far = (clipping.get(key) for key in ("rmin", "rmax", "dmax"))
    if unknown or (low is not None and high is not None and low > high) or (far is not None and far < 0):
        raise ValueError("`renorm_clipping` holds 'rmin' up to 'rmax', and a 'dmax' that is not negative. "
                         f"Received: {clipping}")
    return clipping


class LayerNormalization(_Normalization):
    """Each example brought to mean 0 and variance 1 along axes, then scaled and moved (Ba, Kiros & Hinton 2016).

    Args:
        axis: the axis or axes.
        epsilon: added to the variance.
        center, scale: whether there is an offset beta, and a factor gamma.
        beta_initializer, gamma_initializer, beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint: for
            beta and gamma.
        kwargs: those of `Layer`.
    Inputs: floating. Outputs: of that shape.
    Weights: gamma, beta, of the sizes of the axes.

    >>> import twofold as tf
    >>> tf.keras.layers.LayerNormalization(epsilon=0.0)(tf.constant([[1.0, 3.0]])).numpy().tolist()
    [[-1.0, 1.0]]
    """

    _arguments = ("axis", "epsilon", *_SCALE_AND_OFFSET)
    autocast = False

    def __init__(self, axis: Any = -1, epsilon: float = 1e-3, center: bool = True, scale: bool = True,
                 beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", beta_regularizer: Any = None,
                 gamma_regularizer: Any = None, beta_constraint: Any = None, gamma_constraint: Any = None,
                 **kwargs: Any):
        super().__init__(**kwargs)
        self.axis = list(axis) if isinstance(axis, (list, tuple)) else int(axis)
        self.epsilon, self.center, self.scale = epsilon, center, scale
        self._take(beta_initializer=beta_initializer, gamma_initializer=gamma_initializer,
                   beta_regularizer=beta_regularizer, gamma_regularizer=gamma_regularizer,
                   beta_constraint=beta_constraint, gamma_constraint=gamma_constraint)

    def _axes(self, rank: int) -> tuple[int, ...]:
        given = self.axis if isinstance(self.axis, list) else [self.axis]
        return tuple(sorted(from_front(axis, rank) for axis in given))

    def build(self, input_shape: Any) -> None:
        """Make gamma and beta."""
        sizes = tuple(_known(input_shape, axis) for axis in self._axes(len(input_shape)))
        self._scale_and_offset(sizes)
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        rank = len(inputs.shape)
        axes = self._axes(rank)
        scale, offset = self._spread(self.gamma, axes, rank), self._spread(self.beta, axes, rank)
        x = _wide(inputs)
        return tf.cast(tf.nn.layer_normalization(x, scale, offset, axes, self.epsilon), self.compute_dtype)

    def _spread(self, weight: Any, axes: tuple[int, ...], rank: int) -> Any:
        """A weight with axes of size 1 where the inputs have axes that are not normalised together."""
        if weight is None or axes == tuple(range(rank - len(axes), rank)):
            return weight
        sizes = dict(zip(axes, weight.shape, strict=True))
        return tf.reshape(weight, [sizes.get(axis, 1) for axis in range(rank)])


class RMSNormalization(DeclaredLayer):
    """Each example divided by the root of its mean square along axes, then scaled (Zhang & Sennrich 2019).

    Args:
        axis: the axis or axes.
        epsilon: added to the mean square.
        kwargs: those of `Layer`.
    Inputs: floating. Outputs: of that shape.
    Weights: scale, of the sizes of the axes.

    >>> import twofold as tf
    >>> tf.keras.layers.RMSNormalization(epsilon=0.0)(tf.constant([[3.0, 3.0]])).numpy().tolist()
    [[1.0, 1.0]]
    """

    _arguments = ("axis", "epsilon")

    def __init__(self, axis: Any = -1, epsilon: float = 1e-6, **kwargs: Any):
        super().__init__(**kwargs)
        self.axis, self.epsilon = axis, epsilon

    def _axes(self, rank: int) -> tuple[int, ...]:
        given = self.axis if isinstance(self.axis, (list, tuple)) else [self.axis]
        return tuple(sorted(from_front(axis, rank) for axis in given))

    def build(self, input_shape: Any) -> None:
        """Make the scale."""
        sizes = tuple(_known(input_shape, axis) for axis in self._axes(len(input_shape)))
        self.scale = self.add_weight(name="scale", shape=sizes, initializer="ones")
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        x, axes = _wide(inputs), self._axes(len(inputs.shape))
        root = tf.math.rsqrt(tf.reduce_mean(tf.square(x), axis=axes, keepdims=True) + self.epsilon)
        sizes = dict(zip(axes, self.scale.shape, strict=True))
        scale = tf.reshape(tf.cast(self.scale, x.dtype), [sizes.get(axis, 1) for axis in range(len(x.shape))])
        return tf.cast(x * root * scale, inputs.dtype)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape


class GroupNormalization(_Normalization):
    """Groups of channels of each example brought to mean 0 and variance 1, then scaled and moved (Wu & He 2018).

    Args:
        groups: how many groups; -1 for each channel by itself.
        axis: the axis of channels.
        epsilon: added to the variance.
        center, scale: whether there is an offset beta, and a factor gamma.
        beta_initializer, gamma_initializer, beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint: for
            beta and gamma.
        kwargs: those of `Layer`.
    Inputs: floating [batch, ..]. Outputs: of that shape.
    Weights: gamma, beta [channels].
    Raises:
        ValueError: the channels cannot be divided into so many groups.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.GroupNormalization(2, epsilon=0.0)
    >>> layer(tf.constant([[1.0, 3.0, 10.0, 20.0]])).numpy().tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """

    _arguments = ("groups", "axis", "epsilon", *_SCALE_AND_OFFSET)
    autocast = False

    def __init__(self, groups: int = 32, axis: int = -1, epsilon: float = 1e-3, center: bool = True,
                 scale: bool = True, beta_initializer: Any = "zeros", gamma_initializer: Any = "ones",
                 beta_regularizer: Any = None, gamma_regularizer: Any = None, beta_constraint: Any = None,
                 gamma_constraint: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        if not isinstance(groups, int) or (groups <= 0 and groups != -1):
            raise ValueError("Received an invalid value for argument `groups`, expected a positive integer, or `-1` "
                             f"for instance normalization. Received: groups={groups}")
        self.groups, self.axis, self.epsilon, self.center, self.scale = groups, axis, epsilon, center, scale
        self._take(beta_initializer=beta_initializer, gamma_initializer=gamma_initializer,
                   beta_regularizer=beta_regularizer, gamma_regularizer=gamma_regularizer,
                   beta_constraint=beta_constraint, gamma_constraint=gamma_constraint)

    def build(self, input_shape: Any) -> None:
        """Make gamma and beta."""
        size = _known(input_shape, self.axis)
        if self.groups == -1:
            self.groups = size
        if size % self.groups:
            raise ValueError(f"The number of channels ({size}) must be a multiple of the number of groups "
                             f"({self.groups}).")
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: size})
        self._scale_and_offset((size,))
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        x, rank = _wide(inputs), len(inputs.shape)
        axis, sizes = self.axis % rank, tf.shape(inputs)
        each = inputs.shape[axis] // self.groups
        grouped = tf.reshape(x, tf.concat([sizes[:axis], [self.groups, each], sizes[axis + 1:]], 0))
        others = [a for a in range(1, rank + 1) if a != axis]
        mean, variance = tf.nn.moments(grouped, others, keepdims=True)
        behind = (1,) * (rank - 1 - axis)
        gamma, beta = (None if weight is None else tf.reshape(tf.cast(weight, x.dtype), (self.groups, each, *behind))
                       for weight in (self.gamma, self.beta))
        normal = tf.nn.batch_normalization(grouped, mean, variance, beta, gamma, self.epsilon)
        return tf.cast(tf.reshape(normal, sizes), self.compute_dtype)


class UnitNormalization(DeclaredLayer):
    """Each example divided by its Euclidean length along axes.

    Args:
        axis: the axis or axes.
        kwargs: those of `Layer`.
    Inputs: floating. Outputs: of that shape.

    >>> import twofold as tf
    >>> tf.keras.layers.UnitNormalization()(tf.constant([[0.0, 5.0]])).numpy().tolist()
    [[0.0, 1.0]]
    """

    _arguments = ("axis",)
    supports_masking = True

    def __init__(self, axis: Any = -1, **kwargs: Any):
        super().__init__(**kwargs)
        if not isinstance(axis, (int, list, tuple)):
            raise TypeError("Invalid value for `axis` argument: expected an int or a list/tuple of ints. "
                            f"Received: axis={axis}")
        self.axis = axis if isinstance(axis, int) else list(axis)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        return tf.math.l2_normalize(inputs, axis=self.axis)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape
