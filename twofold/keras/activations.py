"""`tf.keras.activations`: the functions that layers apply to their outputs, by Keras 3's formulas.

All take and give floating tensors of one shape, except `glu`, which halves an axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import twofold as tf
from twofold._front.api import public, same_axis
from twofold._front.dispatch import CompositeTensor, implements
from twofold._front.namespace import publish

from ._identifiers import read, resolve
from .scalars import number
from .serialization import by_name, serialize_keras_object

__all__ = [
    "celu", "deserialize", "elu", "exponential", "gelu", "get", "glu", "hard_shrink", "hard_sigmoid", "hard_silu",
    "hard_swish", "hard_tanh", "leaky_relu", "linear", "log_sigmoid", "log_softmax", "mish", "relu", "relu6", "selu",
    "serialize", "sigmoid", "silu", "soft_shrink", "softmax", "softplus", "softsign", "sparse_plus", "sparse_sigmoid",
    "sparsemax", "squareplus", "swish", "tanh", "tanh_shrink", "threshold",
]


@public
def relu(x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Any:
    """`x` where it is above `threshold`, else `negative_slope * (x - threshold)`; at most `max_value`.

    Args:
        x: floating tensor.
        negative_slope, threshold: numbers.
        max_value: a number, or None for no limit.

    >>> import twofold as tf
    >>> tf.keras.activations.relu(tf.constant([-4.0, 3.0, 8.0]), 0.5, max_value=6.0).numpy().tolist()
    [-2.0, 3.0, 6.0]
    """
    x = tf.convert_to_tensor(x)
    if not threshold and max_value is None:
        return tf.nn.leaky_relu(x, negative_slope) if negative_slope else tf.nn.relu(x)
    limit = None if max_value is None else number(max_value, x.dtype)
    if threshold:
        above = tf.where(x > number(threshold, x.dtype), x, tf.zeros((), x.dtype))
    elif max_value == 6:
        above, limit = tf.nn.relu6(x), None
    else:
        above = tf.nn.relu(x)
    if limit is not None:
        above = tf.clip_by_value(above, tf.zeros((), x.dtype), limit)
    if not negative_slope:
        return above
    return above - number(negative_slope, x.dtype) * tf.nn.relu(number(threshold, x.dtype) - x)


@public
def leaky_relu(x: Any, negative_slope: float = 0.2) -> Any:
    """`x` where it is positive, else `negative_slope * x`.

    >>> import twofold as tf
    >>> tf.keras.activations.leaky_relu(tf.constant([-1.0, 2.0]), 0.5).numpy().tolist()
    [-0.5, 2.0]
    """
    return tf.nn.leaky_relu(x, negative_slope)


@public
def relu6(x: Any) -> Any:
    """`x` between 0 and 6, and the nearer of them beyond.

    >>> import twofold as tf
    >>> tf.keras.activations.relu6(tf.constant([-1.0, 2.0, 8.0])).numpy().tolist()
    [0.0, 2.0, 6.0]
    """
    return tf.nn.relu6(x)


@public
def softmax(x: Any, axis: Any = -1) -> Any:
    """exp(x) over its sum along an axis, or along several together.

    Args:
        x: floating tensor.
        axis: an integer, or several.

    >>> import twofold as tf
    >>> tf.keras.activations.softmax(tf.constant([[1.0, 1.0]])).numpy().tolist()
    [[0.5, 0.5]]
    """
    if isinstance(x, tf.RaggedTensor):
        return tf.nn.softmax(x, axis)
    x = tf.convert_to_tensor(x)
    axis = same_axis(axis, x)
    if isinstance(axis, int):
        return tf.nn.softmax(x, axis=axis)
    powers = tf.exp(x - tf.stop_gradient(tf.reduce_max(x, axis=axis, keepdims=True)))
    return powers / tf.reduce_sum(powers, axis=axis, keepdims=True)


@public
def log_softmax(x: Any, axis: int = -1) -> Any:
    """The logarithm of `softmax`, without overflow.

    >>> import twofold as tf
    >>> tf.keras.activations.log_softmax(tf.constant([[1000.0, 0.0]])).numpy().tolist()
    [[0.0, -1000.0]]
    """
    return tf.nn.log_softmax(x, axis=axis)


@public
def elu(x: Any, alpha: float = 1.0) -> Any:
    """`x` where it is positive, else `alpha * (exp(x) - 1)`.

    >>> import twofold as tf
    >>> tf.keras.activations.elu(tf.constant([-100.0, 2.0]), 0.5).numpy().tolist()
    [-0.5, 2.0]
    """
    x = tf.convert_to_tensor(x)
    y = tf.nn.elu(x)
    return y if alpha == 1 else tf.where(x > 0, y, number(alpha, x.dtype) * y)


@public
def celu(x: Any, alpha: float = 1.0) -> Any:
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.

    >>> import twofold as tf
    >>> tf.keras.activations.celu(tf.constant([-100.0, 2.0]), 0.5).numpy().tolist()
    [-0.5, 2.0]
    """
    x = tf.convert_to_tensor(x)
    zero, alpha = tf.zeros((), x.dtype), number(alpha, x.dtype)
    return tf.maximum(x, zero) + alpha * tf.math.expm1(tf.minimum(x, zero) / alpha)


@public
def selu(x: Any) -> Any:
    """Scaled `elu`, whose outputs keep mean 0 and variance 1 (Klambauer et al. 2017).

    >>> import twofold as tf
    >>> tf.keras.activations.selu(tf.constant([1.0])).numpy().round(4).tolist()
    [1.0506999492645264]
    """
    return tf.nn.selu(x)


@public
def softplus(x: Any) -> Any:
    """log(1 + exp(x)), without overflow.

    >>> import twofold as tf
    >>> tf.keras.activations.softplus(tf.constant([-1000.0, 1000.0])).numpy().tolist()
    [0.0, 1000.0]
    """
    return tf.math.softplus(x)


@public
def softsign(x: Any) -> Any:
    """`x / (1 + abs(x))`.

    >>> import twofold as tf
    >>> tf.keras.activations.softsign(tf.constant([-1.0, 3.0])).numpy().tolist()
    [-0.5, 0.75]
    """
    return tf.nn.softsign(x)


@public
def soft_shrink(x: Any, threshold: float = 0.5) -> Any:
    """`x` moved towards 0 by `threshold`, and 0 where it is nearer than that.

    >>> import twofold as tf
    >>> tf.keras.activations.soft_shrink(tf.constant([-1.0, 0.25, 2.0])).numpy().tolist()
    [-0.5, 0.0, 1.5]
    """
    x = tf.convert_to_tensor(x)
    zero, threshold = tf.zeros((), x.dtype), number(threshold, x.dtype)
    return tf.where(x > threshold, x - threshold, tf.where(x < -threshold, x + threshold, zero))


@public
def hard_shrink(x: Any, threshold: float = 0.5) -> Any:
    """`x` where it is farther from 0 than `threshold`, else 0.

    >>> import twofold as tf
    >>> tf.keras.activations.hard_shrink(tf.constant([-1.0, 0.25, 2.0])).numpy().tolist()
    [-1.0, 0.0, 2.0]
    """
    x = tf.convert_to_tensor(x)
    return tf.where(tf.abs(x) > number(threshold, x.dtype), x, tf.zeros((), x.dtype))


@public
def tanh_shrink(x: Any) -> Any:
    """`x - tanh(x)`.

    >>> import twofold as tf
    >>> tf.keras.activations.tanh_shrink(tf.constant([0.0, 100.0])).numpy().tolist()
    [0.0, 99.0]
    """
    x = tf.convert_to_tensor(x)
    return x - tf.tanh(x)


@public
def threshold(x: Any, threshold: float, default_value: float) -> Any:
    """`x` where it is above `threshold`, else `default_value`.

    >>> import twofold as tf
    >>> tf.keras.activations.threshold(tf.constant([-1.0, 2.0]), 1.0, 7.0).numpy().tolist()
    [7.0, 2.0]
    """
    x = tf.convert_to_tensor(x)
    return tf.where(x > number(threshold, x.dtype), x, number(default_value, x.dtype))


@public
def sparse_plus(x: Any) -> Any:
    """0 up to -1, `(x + 1)**2 / 4` up to 1, and `x` from there.

    >>> import twofold as tf
    >>> tf.keras.activations.sparse_plus(tf.constant([-2.0, 0.0, 3.0])).numpy().tolist()
    [0.0, 0.25, 3.0]
    """
    x = tf.convert_to_tensor(x)
    return tf.where(x <= -1, tf.zeros((), x.dtype), tf.where(x < 1, tf.square(x + 1) / 4, x))


@public
def sparse_sigmoid(x: Any) -> Any:
    """`(x + 1) / 2` between -1 and 1, 0 below and 1 above.

    >>> import twofold as tf
    >>> tf.keras.activations.sparse_sigmoid(tf.constant([-2.0, 0.0, 3.0])).numpy().tolist()
    [0.0, 0.5, 1.0]
    """
    x = tf.convert_to_tensor(x)
    zero, one = tf.zeros((), x.dtype), tf.ones((), x.dtype)
    return tf.where(x <= -1, zero, tf.where(x >= 1, one, (x + 1) / 2))


@public
def sparsemax(x: Any, axis: int = -1) -> Any:
    """The point of the probability simplex that is nearest to `x` along an axis (Martins & Astudillo 2016).

    >>> import twofold as tf
    >>> tf.keras.activations.sparsemax(tf.constant([[1.0, 0.5, -3.0]])).numpy().tolist()
    [[0.75, 0.25, 0.0]]
    """
    x = tf.convert_to_tensor(x)
    axis = same_axis(axis, x)
    falling = tf.sort(x, axis=axis, direction="DESCENDING")
    sums = tf.cumsum(falling, axis=axis)
    counts = tf.cumsum(tf.ones_like(x), axis=axis)
    inside = 1 + counts * falling > sums
    k = tf.reduce_sum(tf.cast(inside, x.dtype), axis=axis, keepdims=True)
    total = tf.reduce_sum(tf.where(inside, falling, tf.zeros((), x.dtype)), axis=axis, keepdims=True)
    return tf.maximum(x - (total - 1) / k, tf.zeros((), x.dtype))


@public
def silu(x: Any) -> Any:
    """`x * sigmoid(x)`.

    >>> import twofold as tf
    >>> tf.keras.activations.silu(tf.constant([0.0, 100.0])).numpy().tolist()
    [0.0, 100.0]
    """
    return tf.nn.silu(x)


@public
def squareplus(x: Any, b: float = 4) -> Any:
    """`(x + sqrt(x**2 + b)) / 2`.

    >>> import twofold as tf
    >>> tf.keras.activations.squareplus(tf.constant([0.0])).numpy().tolist()
    [1.0]
    """
    x = tf.convert_to_tensor(x)
    return (x + tf.sqrt(tf.square(x) + number(b, x.dtype))) / 2


@public
def gelu(x: Any, approximate: bool = False) -> Any:
    """`x` times the probability that a standard normal variable is below it.

    Args:
        x: floating tensor.
        approximate: whether to use an approximation by tanh.

    >>> import twofold as tf
    >>> tf.keras.activations.gelu(tf.constant([0.0, 100.0])).numpy().tolist()
    [0.0, 100.0]
    """
    return tf.nn.gelu(x, approximate)


@public
def glu(x: Any, axis: int = -1) -> Any:
    """One half of `x` along `axis`, times the sigmoid of the other half.

    >>> import twofold as tf
    >>> tf.keras.activations.glu(tf.constant([3.0, 0.0])).numpy().tolist()
    [1.5]
    """
    value, gate = tf.split(tf.convert_to_tensor(x), 2, axis=axis)
    return value * tf.sigmoid(gate)


@public
def tanh(x: Any) -> Any:
    """Hyperbolic tangent.

    >>> import twofold as tf
    >>> tf.keras.activations.tanh(tf.constant([0.0, 100.0])).numpy().tolist()
    [0.0, 1.0]
    """
    return tf.tanh(x)


@public
def hard_tanh(x: Any) -> Any:
    """`x` between -1 and 1, and the nearer of them beyond.

    >>> import twofold as tf
    >>> tf.keras.activations.hard_tanh(tf.constant([-3.0, 0.5])).numpy().tolist()
    [-1.0, 0.5]
    """
    x = tf.convert_to_tensor(x)
    return tf.clip_by_value(x, number(-1, x.dtype), tf.ones((), x.dtype))


@public
def sigmoid(x: Any) -> Any:
    """`1 / (1 + exp(-x))`.

    >>> import twofold as tf
    >>> tf.keras.activations.sigmoid(tf.constant([0.0])).numpy().tolist()
    [0.5]
    """
    return tf.sigmoid(x)


@public
def log_sigmoid(x: Any) -> Any:
    """The logarithm of `sigmoid`, without overflow.

    >>> import twofold as tf
    >>> tf.keras.activations.log_sigmoid(tf.constant([-1000.0, -500.0])).numpy().tolist()
    [-1000.0, -500.0]
    """
    return tf.math.log_sigmoid(x)


@public
def exponential(x: Any) -> Any:
    """exp(x).

    >>> import twofold as tf
    >>> tf.keras.activations.exponential(tf.constant([0.0])).numpy().tolist()
    [1.0]
    """
    return tf.exp(x)


@public
def hard_sigmoid(x: Any) -> Any:
    """`x / 6 + 0.5` between 0 and 1, and the nearer of them beyond.

    >>> import twofold as tf
    >>> tf.keras.activations.hard_sigmoid(tf.constant([-3.0, 0.0, 9.0])).numpy().tolist()
    [0.0, 0.5, 1.0]
    """
    x = tf.convert_to_tensor(x)
    return tf.nn.relu6(x + 3) / 6


@public
def hard_silu(x: Any) -> Any:
    """`x * hard_sigmoid(x)`.

    >>> import twofold as tf
    >>> tf.keras.activations.hard_silu(tf.constant([0.0, 3.0, 9.0])).numpy().tolist()
    [0.0, 3.0, 9.0]
    """
    x = tf.convert_to_tensor(x)
    return x * hard_sigmoid(x)


@public
def linear(x: Any) -> Any:
    """`x` itself.

    >>> import twofold as tf
    >>> tf.keras.activations.linear(3.0)
    3.0
    """
    return x


@public
def mish(x: Any) -> Any:
    """`x * tanh(softplus(x))` (Misra 2019).

    >>> import twofold as tf
    >>> tf.keras.activations.mish(tf.constant([0.0, 100.0])).numpy().tolist()
    [0.0, 100.0]
    """
    x = tf.convert_to_tensor(x)
    return x * tf.tanh(tf.math.softplus(x))


swish, hard_swish = silu, hard_silu
_FUNCTIONS = (relu, leaky_relu, relu6, softmax, celu, elu, selu, softplus, softsign, squareplus, soft_shrink,
              sparse_plus, silu, gelu, glu, tanh, tanh_shrink, threshold, sigmoid, sparse_sigmoid, exponential,
              hard_sigmoid, hard_silu, hard_tanh, hard_shrink, linear, mish, log_softmax, log_sigmoid, sparsemax)
_TABLE = {**{function.__name__: function for function in _FUNCTIONS}, "swish": silu, "hard_swish": hard_silu}


@public
def serialize(activation: Any) -> Any:
    """The name of an activation of this module, or the config of another.

    >>> import twofold as tf
    >>> tf.keras.activations.serialize(tf.keras.activations.relu)
    'relu'
    """
    name = getattr(activation, "__name__", None)
    if name in _TABLE and activation in (_TABLE[name], getattr(tf.nn, name, None)):  # tf.nn.relu is "relu" too
        return name
    return serialize_keras_object(activation)


@public
def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The activation of a config or name; `custom_objects` are further ones by name.

    >>> import twofold as tf
    >>> tf.keras.activations.deserialize("tanh") is tf.keras.activations.tanh
    True
    """
    if isinstance(config, str) and config in _TABLE and config not in by_name(custom_objects):
        return _TABLE[config]
    return read(config, _TABLE, custom_objects)


@public
def get(identifier: Any) -> Any:
    """The activation that `identifier` stands for: None (gives `linear`), a name, a config or a callable.

    Raises:
        ValueError: it stands for none.

    >>> import twofold as tf
    >>> tf.keras.activations.get(None) is tf.keras.activations.linear
    True
    """
    return linear if identifier is None else resolve("activation", identifier, _TABLE)


def _of_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """An activation of the elements of a ragged tensor."""
    def of_rows(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(x, tf.RaggedTensor):
            raise TypeError(f"{function.__name__} takes dense and ragged tensors; got a {type(x).__name__}.")
        return x.with_flat_values(function(x.flat_values, *args, **kwargs))
    return of_rows


for _name in ("celu", "elu", "exponential", "gelu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_tanh",
              "leaky_relu", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink",
              "softplus", "softsign", "sparse_plus", "sparse_sigmoid", "squareplus", "tanh", "tanh_shrink",
              "threshold"):
    implements(globals()[_name], {"x": CompositeTensor})(_of_rows(globals()[_name]))

publish(__name__)
