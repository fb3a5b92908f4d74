"""`tf.compat.v1.layers`: Keras's layers, whose weights are made with `get_variable` in scopes, and functions for them.

A layer's scope has its name, or the name of its kind with a number where that is taken; with `reuse` it finds the
weights that another one made there. Losses of regularizers go into the collection REGULARIZATION_LOSSES of the graph,
updates of moving averages into UPDATE_OPS, for the program to run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._front.namespace import publish
from twofold.keras import layers as _layers
from twofold.keras.input_spec import InputSpec

from .building import named
from .graph import current_graph
from .keys import GraphKeys
from .operations import Operation
from .variables import get_variable, variable_scope

__all__ = [
    "AveragePooling1D", "AveragePooling2D", "AveragePooling3D", "BatchNormalization", "Conv1D", "Conv2D",
    "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Dense", "Dropout", "Flatten", "InputSpec", "Layer",
    "MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "SeparableConv1D", "SeparableConv2D", "average_pooling1d",
    "average_pooling2d", "average_pooling3d", "batch_normalization", "conv1d", "conv2d", "conv2d_transpose", "conv3d",
    "conv3d_transpose", "dense", "dropout", "flatten", "max_pooling1d", "max_pooling2d", "max_pooling3d",
    "separable_conv1d", "separable_conv2d",
]


_keras: Any = _layers


class Layer(_keras.Layer):
    """The base of layers whose weights are made with `get_variable`.

    Args:
        trainable: whether the weights are.
        name: of the scope of the weights; by default that of the class in lower case, with a number where it is taken.
        dtype: of the weights.
        kwargs: those of Keras's layer, and `_reuse`: whether weights are found rather than made, and `_scope`: that of
            the weights, where it is not the name.
    """

    _kind = "layer"

    def __init__(self, *args: Any, **kwargs: Any):
        self.__dict__["_reuse"] = kwargs.pop("_reuse", None)
        scope = kwargs.pop("_scope", None)
        self.__dict__["_given_name"] = kwargs.get("name") if scope is None else scope
        super().__init__(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.built:
            return super().__call__(*args, **kwargs)
        own = self.__dict__
        with variable_scope(own["_given_name"], self._kind, reuse=own["_reuse"]) as scope:
            own["_scope"] = scope
            return super().__call__(*args, **kwargs)

    apply = __call__

    @property
    def scope_name(self) -> str:
        """The name of the scope of the weights.

        Raises:
            ValueError: they are not made yet.
        """
        if "_scope" not in self.__dict__:
            raise ValueError(f"No name available for layer scope: the layer {self.name!r} has not been used yet.")
        return str(self.__dict__["_scope"].name)

    def add_weight(self, name: Any = None, shape: Any = None, dtype: Any = None, initializer: Any = None,
                   regularizer: Any = None, trainable: bool | None = None, constraint: Any = None,
                   **ignored: Any) -> Any:
        """A weight, made or found in the scope of the layer; see `get_variable`.

        Other arguments, `ignored`, have no effect.
        """
        first = tf.keras.initializers.get(initializer) if initializer is not None else None
        made = get_variable(name or "variable", shape, dtype or self.variable_dtype, first,
                            tf.keras.regularizers.get(regularizer), (trainable is not False) and self.trainable,
                            constraint=tf.keras.constraints.get(constraint))
        self.__dict__["_added_weights"].append(made)
        return made

    add_variable = add_weight


def _of_scopes(base: Any, kind: str) -> Any:
    """Keras's layer of a kind, with weights of scopes."""
    return type(base.__name__, (Layer, base), {"_kind": kind, "__doc__": base.__doc__, "__module__": __name__})


Conv1D: Any = _of_scopes(_layers.Conv1D, "conv1d")
Conv2D: Any = _of_scopes(_layers.Conv2D, "conv2d")
Conv3D: Any = _of_scopes(_layers.Conv3D, "conv3d")
Conv2DTranspose: Any = _of_scopes(_layers.Conv2DTranspose, "conv2d_transpose")
Conv3DTranspose: Any = _of_scopes(_layers.Conv3DTranspose, "conv3d_transpose")
SeparableConv1D: Any = _of_scopes(_layers.SeparableConv1D, "separable_conv1d")
SeparableConv2D: Any = _of_scopes(_layers.SeparableConv2D, "separable_conv2d")
Dense: Any = _of_scopes(_layers.Dense, "dense")
Flatten: Any = _of_scopes(_layers.Flatten, "flatten")
MaxPooling1D, MaxPooling2D, MaxPooling3D = (  # those without weights are Keras's
    _layers.MaxPooling1D, _layers.MaxPooling2D, _layers.MaxPooling3D)
AveragePooling1D, AveragePooling2D, AveragePooling3D = (
    _layers.AveragePooling1D, _layers.AveragePooling2D, _layers.AveragePooling3D)


class Dropout(Layer, _keras.Dropout):
    """Some elements zeroed while `training`, which may be a tensor, and the others scaled up for it.

    Args:
        rate: the part that is zeroed.
        noise_shape, seed: as for `tf.nn.dropout`.
    """

    _kind = "dropout"

    def __init__(self, rate: float = 0.5, noise_shape: Any = None, seed: Any = None, **kwargs: Any):
        super().__init__(rate, noise_shape=noise_shape, seed=seed, **kwargs)
        self._settings = (rate, noise_shape, seed)

    def call(self, inputs: Any, training: Any = False) -> Any:
        """The outputs for `inputs`."""
        rate, noise_shape, seed = self._settings
        return _when(training, lambda: tf.nn.dropout(inputs, rate, noise_shape, seed), lambda: tf.identity(inputs))


def _when(training: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """The result of one of two functions, as `training` decides, which may be a tensor."""
    if tf.is_tensor(training) or isinstance(training, tf.Variable):
        return tf.cond(tf.cast(training, tf.bool), then, otherwise)
    return then() if training else otherwise()


class BatchNormalization(Layer, _keras.BatchNormalization):
    """Each channel brought to mean 0 and variance 1: of the batch while `training`, else by moving averages.

    The updates of the averages are in the collection UPDATE_OPS of the graph; where ops run at once, they are made.

    Args:
        axis, momentum, epsilon, center, scale: as for `tf.keras.layers.BatchNormalization`.
        fused: whether moving averages take the variance over one less than the number of elements; by default for
            inputs of rank 4.
        kwargs: those of Keras's layer.
    """

    _kind = "batch_normalization"

    def __init__(self, axis: int = -1, momentum: float = 0.99, epsilon: float = 1e-3, fused: bool | None = None,
                 **kwargs: Any):
        if kwargs.pop("renorm", False) or kwargs.pop("virtual_batch_size", None) or kwargs.pop("adjustment", None):
            raise ValueError("batch_normalization: renorm, virtual_batch_size and adjustment are not supported")
        for name in ("renorm_clipping", "renorm_momentum", "virtual_batch_size", "adjustment"):
            kwargs.pop(name, None)
        super().__init__(axis=axis, momentum=momentum, epsilon=epsilon, **kwargs)
        self._fused = fused

    def call(self, inputs: Any, training: Any = False, mask: Any = None) -> Any:
        """The outputs for `inputs`."""
        x = tf.cast(inputs, tf.float32) if inputs.dtype.size < 4 else inputs
        rank = x.shape.rank
        axes = [axis for axis in range(rank) if axis != self.axis % rank]
        kept = [self.moving_mean._read_tensor(), self.moving_variance._read_tensor()]
        if training is False or training is None or not self.trainable:
            mean, variance = kept
        else:
            now = list(tf.nn.moments(x, axes))
            mean, variance = _when(training, lambda: tuple(now), lambda: tuple(kept))
            self._update(kept, [now[0], self._unbiased(now[1], x, axes)], training)
        along = [1] * rank
        along[self.axis % rank] = -1
        mean, variance, beta, gamma = (None if part is None else tf.cast(tf.reshape(part, along), x.dtype)
                                       for part in (mean, variance, self.beta, self.gamma))
        return tf.cast(tf.nn.batch_normalization(x, mean, variance, beta, gamma, self.epsilon), inputs.dtype)

    def _unbiased(self, variance: Any, x: Any, axes: list[int]) -> Any:
        if not (x.shape.rank == 4 if self._fused is None else self._fused):
            return variance
        count = tf.cast(tf.reduce_prod([tf.shape(x)[axis] for axis in axes]), variance.dtype)
        return variance * (count / tf.maximum(count - 1.0, 1.0))

    def _update(self, kept: list[Any], now: list[Any], training: Any) -> None:
        """Let the moving averages follow, or make what does it when it runs."""
        new = [old * self.momentum + value * (1.0 - self.momentum) for old, value in zip(kept, now, strict=True)]
        new = list(_when(training, lambda: tuple(new), lambda: tuple(kept)))
        updates = list(zip([self.moving_mean, self.moving_variance], new, strict=True))
        graph = current_graph()
        if graph is None:
            for variable, value in updates:
                variable.assign(value)
            return
        for update in updates:
            graph.add_to_collection(GraphKeys.UPDATE_OPS, Operation(graph, [update], graph.scoped("AssignMovingAvg")))


# -- functions -----------------------------------------------------------------------------------------
def _function(make: Any, what: str, *lead: str) -> Callable[..., Any]:
    """The function that makes a layer of a kind, and calls it."""
    def apply(inputs: Any, *args: Any, name: str | None = None, reuse: Any = None, **options: Any) -> Any:
        options.update(zip(lead, args, strict=False))
        if len(args) > len(lead):
            raise TypeError(f"{what}: give arguments after {lead[-1]!r} by their names")
        return make(name=name, _reuse=reuse, **options)(inputs)
    apply.__name__ = apply.__qualname__ = what
    apply.__doc__ = f"""The output of a new `tf.compat.v1.layers.{make.__name__}` for `inputs`.

    Args:
        inputs: what the layer is called with.
        args, options: the arguments of the layer; the first are {', '.join(lead)}.
        name: of the scope of the weights.
        reuse: whether weights are found there rather than made.
    """
    return public(apply)


_KERNELS = ("filters", "kernel_size", "strides", "padding", "data_format")
dense = _function(Dense, "dense", "units", "activation", "use_bias")
conv1d, conv2d, conv3d = (_function(make, what, *_KERNELS) for make, what in (
    (Conv1D, "conv1d"), (Conv2D, "conv2d"), (Conv3D, "conv3d")))
conv2d_transpose = _function(Conv2DTranspose, "conv2d_transpose", *_KERNELS)
conv3d_transpose = _function(Conv3DTranspose, "conv3d_transpose", *_KERNELS)
separable_conv1d = _function(SeparableConv1D, "separable_conv1d", *_KERNELS)
separable_conv2d = _function(SeparableConv2D, "separable_conv2d", *_KERNELS)


@public
def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Any:
    """`inputs` with all axes but the first made one.

    >>> import twofold as tf
    >>> tf.compat.v1.layers.flatten(tf.zeros([2, 3, 4])).shape
    TensorShape([2, 12])
    """
    return named(_layers.Flatten(data_format=data_format)(inputs), name)


@public
def dropout(inputs: Any, rate: float = 0.5, noise_shape: Any = None, seed: Any = None, training: Any = False,
            name: str | None = None) -> Any:
    """`inputs` with some elements zeroed while `training`, which may be a tensor."""
    return named(Dropout(rate, noise_shape, seed)(inputs, training=training), name)


@public
def batch_normalization(inputs: Any, axis: int = -1, momentum: float = 0.99, epsilon: float = 1e-3,
                        center: bool = True, scale: bool = True, *, training: Any = False, name: str | None = None,
                        reuse: Any = None, **options: Any) -> Any:
    """`inputs` normalised by the batch while `training`, else by moving averages.

    Args:
        inputs: floating tensor.
        axis, momentum, epsilon, center, scale, options: as for `BatchNormalization`.
        training: a bool, or a bool scalar. What updates the averages is in the collection UPDATE_OPS.
        name: of the scope of the weights.
        reuse: whether weights are found there rather than made.
    """
    made = BatchNormalization(axis, momentum, epsilon, center=center, scale=scale, name=name, _reuse=reuse, **options)
    return made(inputs, training=training)


def _pooling(make: Any, what: str) -> Callable[..., Any]:
    def pool(inputs: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
             name: str | None = None) -> Any:
        return named(make(pool_size, strides, padding, data_format=data_format)(inputs), name)
    pool.__name__ = pool.__qualname__ = what
    pool.__doc__ = f"The output of `tf.keras.layers.{make.__name__}` for `inputs`."
    return public(pool)


max_pooling1d = _pooling(_layers.MaxPooling1D, "max_pooling1d")
max_pooling2d = _pooling(_layers.MaxPooling2D, "max_pooling2d")
max_pooling3d = _pooling(_layers.MaxPooling3D, "max_pooling3d")
average_pooling1d = _pooling(_layers.AveragePooling1D, "average_pooling1d")
average_pooling2d = _pooling(_layers.AveragePooling2D, "average_pooling2d")
average_pooling3d = _pooling(_layers.AveragePooling3D, "average_pooling3d")

publish(__name__)
