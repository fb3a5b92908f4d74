"""ONNX ops that compute each element by itself: arithmetic, comparisons, functions, activations, casts."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

import twofold as tf
from twofold.ir.dims import decide_eq

from .import_table import FOLDED, Call, on_sizes, op
from .import_tensors import dtype_of as dtype_of_number
from .import_values import ChannelsLast, Sizes, Value, channels_last, dims_of, dtype_of, known_array, tensor_of
from .types import DTYPES

__all__ = ["activation"]


# -- layouts ------------------------------------------------------------------------------------------
def _each(fn: Callable[..., Any]) -> Callable[..., Value]:
    """An elementwise function on values, whose channels stay last where those of an operand are."""
    def run(call: Call, *values: Value) -> Value:
        given = [v for v in values if v is not None]
        kept = [v for v in given if isinstance(v, ChannelsLast)]
        if not kept:
            return fn(call, *[tensor_of(v) for v in values])
        rank = len(kept[0].kept.dims)
        turned = [_turned(v, rank) for v in values]
        if any(t is None for t, v in zip(turned, values, strict=True) if v is not None):
            return fn(call, *[tensor_of(v) for v in values])
        return ChannelsLast(fn(call, *turned))
    return run


def _turned(value: Value, rank: int) -> Any:
    """An operand beside one of `rank` axes with channels last; None where it does not fit that layout."""
    if value is None:
        return None
    dims = dims_of(value)
    if isinstance(value, ChannelsLast):
        return value.kept if len(dims) == rank else None
    if len(dims) == rank:
        return channels_last(value)
    if all(type(d) is int and d == 1 for d in dims):
        return tf.reshape(tensor_of(value), ())
    if len(dims) == rank - 1 and all(type(d) is int and d == 1 for d in dims[1:]):
        return tf.reshape(tensor_of(value), (dims[0],))
    return None


def _unary(**functions: Callable[[Any], Any]) -> None:
    for name, fn in functions.items():
        op(name, layout=True)(_each(lambda call, x, fn=fn: fn(x)))


_unary(Abs=tf.abs, Acos=tf.acos, Acosh=tf.acosh, Asin=tf.asin, Asinh=tf.asinh, Atan=tf.atan, Atanh=tf.atanh,
       Ceil=tf.math.ceil, Cos=tf.cos, Cosh=tf.cosh, Erf=tf.math.erf, Exp=tf.exp, Floor=tf.floor, IsNaN=tf.math.is_nan,
       Log=tf.math.log, Neg=tf.negative, Not=tf.logical_not, Reciprocal=lambda x: 1 / x, Relu=tf.nn.relu,
       Round=tf.round, Sigmoid=tf.sigmoid, Sin=tf.sin, Sinh=tf.sinh, Softplus=tf.math.softplus, Sqrt=tf.sqrt,
       Softsign=tf.nn.softsign, Tan=tf.tan, Tanh=tf.tanh, BitwiseNot=tf.bitwise.invert,
       Mish=lambda x: x * tf.tanh(tf.math.softplus(x)), HardSwish=lambda x: x * tf.clip_by_value(x / 6 + 0.5, 0.0, 1.0))


@op("Sign", layout=True)
@_each
def _sign(call: Call, x: Any) -> Any:
    return tf.sign(x)


# -- arithmetic ---------------------------------------------------------------------------------------
def _with_older_axis(call: Call, x: Any, y: Any) -> Any:
    """The second operand, laid along the axis that versions before 7 name."""
    if call.version >= 7 or not call.attr("broadcast", 0) or "axis" not in call.node.attrs:
        return y
    rank, axis = len(x.dims), call.attr("axis")
    after = rank - axis % rank - len(y.dims) if rank else 0
    return tf.reshape(y, (*y.dims, *(1,) * after)) if after > 0 else y


def _binary(*names: str) -> Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
    def register(fn: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        op(*names, layout=True)(_each(lambda call, x, y: fn(x, _with_older_axis(call, x, y))))
        return fn
    return register


_binary("Add")(tf.add)
_binary("Sub")(tf.subtract)
_binary("Mul")(tf.multiply)
_binary("And")(tf.logical_and)
_binary("Or")(tf.logical_or)
_binary("Xor")(tf.math.logical_xor)
_binary("Equal")(tf.equal)
_binary("Less")(tf.less)
_binary("LessOrEqual")(tf.less_equal)
_binary("Greater")(tf.greater)
_binary("GreaterOrEqual")(tf.greater_equal)
_binary("BitwiseAnd")(tf.bitwise.bitwise_and)
_binary("BitwiseOr")(tf.bitwise.bitwise_or)
_binary("BitwiseXor")(tf.bitwise.bitwise_xor)


@_binary("Div")
def _divided(x: Any, y: Any) -> Any:
    """Integers toward zero."""
    return tf.truncatediv(x, y) if x.dtype.is_integer else tf.divide(x, y)


@op("PRelu", layout=True)
@_each
def _prelu(call: Call, x: Any, slope: Any) -> Any:
    """Before version 7 a vector of slopes is one for each channel."""
    if call.version < 7 and len(slope.dims) == 1 and len(x.dims) > 1:
        slope = tf.reshape(slope, (*slope.dims, *(1,) * (len(x.dims) - 2)))
    return tf.where(tf.less(x, tf.zeros((), x.dtype)), slope * x, x)


@op("Mod", layout=True)
@_each
def _mod(call: Call, x: Any, y: Any) -> Any:
    """With the divisor's sign, or, as C has it, with the dividend's."""
    return tf.truncatemod(x, y) if call.attr("fmod", 0) else tf.math.floormod(x, y)


@op("Pow", layout=True)
@_each
def _pow(call: Call, x: Any, y: Any) -> Any:
    """The result has the dtype of the base, whatever the exponent's."""
    y = _with_older_axis(call, x, y)
    if x.dtype == y.dtype:
        return tf.pow(x, y)
    if x.dtype.is_floating:
        return tf.pow(x, tf.cast(y, x.dtype))
    return tf.cast(tf.pow(tf.cast(x, tf.float64), tf.cast(y, tf.float64)), x.dtype)


@op("BitShift")
def _shift(call: Call, x: Any, y: Any) -> Any:
    """Shifts by as many bits as there are, by more or by less than none, leave nothing (of negative numbers to the
    right, all ones)."""
    left = call.need("direction") == "LEFT"
    bits = x.dtype.size * 8
    inside = tf.less(y, tf.constant(bits, y.dtype))
    inside = tf.logical_and(inside, y >= 0) if x.dtype.kind == "i" else inside
    by = tf.where(inside, y, tf.zeros_like(y))
    if left:
        return tf.where(inside, tf.bitwise.left_shift(x, by), tf.zeros_like(x))
    rest = tf.where(x < 0, tf.zeros_like(x) - 1, tf.zeros_like(x)) if x.dtype.kind == "i" else tf.zeros_like(x)
    return tf.where(inside, tf.bitwise.right_shift(x, by), rest)


def _of_many(name: str, fn: Callable[[Any, Any], Any]) -> None:
    op(name, layout=True)(_each(lambda call, *values: reduce(fn, values)))


_of_many("Max", tf.maximum)
_of_many("Min", tf.minimum)
_of_many("Sum", tf.add)


@op("Mean", layout=True)
@_each
def _mean(call: Call, *values: Any) -> Any:
    return reduce(tf.add, values) / len(values)


@op("Where")
def _where(call: Call, condition: Any, x: Any, y: Any) -> Any:
    return tf.where(condition, x, y)


@op("Clip", since=11, layout=True)
@_each
def _clip(call: Call, x: Any, low: Any = None, high: Any = None) -> Any:
    """The lower bound first: where it is the larger, the upper one wins."""
    x = x if low is None else tf.maximum(x, low)
    return x if high is None else tf.minimum(x, high)


@op("Clip", layout=True)
@_each
def _older_clip(call: Call, x: Any) -> Any:
    low, high = call.attr("min"), call.attr("max")
    x = x if low is None else tf.maximum(x, tf.constant(low, x.dtype))
    return x if high is None else tf.minimum(x, tf.constant(high, x.dtype))


# -- activations --------------------------------------------------------------------------------------
def _hard_sigmoid(x: Any, alpha: float, beta: float) -> Any:
    return tf.clip_by_value(x * alpha + beta, 0.0, 1.0)


def _elu(x: Any, alpha: float) -> Any:
    return tf.nn.elu(x) if alpha == 1 else tf.where(x < 0, alpha * tf.nn.elu(x), x)


def _leaky(x: Any, alpha: float) -> Any:
    return tf.where(x < 0, alpha * x, x)


def _thresholded(x: Any, alpha: float) -> Any:
    return tf.where(x > alpha, x, tf.zeros_like(x))


# name -> function of the tensor and two numbers, and what these are by default
_ACTIVATIONS: dict[str, tuple[Callable[[Any, float, float], Any], float, float]] = {
    "Relu": (lambda x, a, b: tf.nn.relu(x), 0, 0), "Tanh": (lambda x, a, b: tf.tanh(x), 0, 0),
    "Sigmoid": (lambda x, a, b: tf.sigmoid(x), 0, 0), "Softsign": (lambda x, a, b: tf.nn.softsign(x), 0, 0),
    "Softplus": (lambda x, a, b: tf.math.softplus(x), 0, 0), "Elu": (lambda x, a, b: _elu(x, a), 1, 0),
    "LeakyRelu": (lambda x, a, b: _leaky(x, a), 0.01, 0), "HardSigmoid": (_hard_sigmoid, 0.2, 0.5),
    "ThresholdedRelu": (lambda x, a, b: _thresholded(x, a), 1, 0), "Affine": (lambda x, a, b: a * x + b, 1, 0),
    "ScaledTanh": (lambda x, a, b: a * tf.tanh(b * x), 1, 1)}


def activation(name: str, alpha: float | None = None, beta: float | None = None) -> Callable[[Any], Any]:
    """The function that ONNX calls by a name, in any case of letters.

    Raises:
        ValueError: there is none.
    """
    known = {n.lower(): entry for n, entry in _ACTIVATIONS.items()}.get(name.lower())
    if known is None:
        raise ValueError(f"there is no activation {name!r}")
    fn, a, b = known
    first, second = a if alpha is None else alpha, b if beta is None else beta
    return lambda x: fn(x, first, second)


def _parametric(name: str) -> None:
    fn, first, second = _ACTIVATIONS[name]
    op(name, layout=True)(_each(lambda call, x: fn(x, call.attr("alpha", first), call.attr("beta", second))))


for _name in ("Elu", "LeakyRelu", "HardSigmoid", "ThresholdedRelu"):
    _parametric(_name)


@op("Selu", layout=True)
@_each
def _selu(call: Call, x: Any) -> Any:
    alpha, gamma = call.attr("alpha", 1.67326319217681884765625), call.attr("gamma", 1.05070102214813232421875)
    return gamma * _elu(x, alpha)


@op("Celu", layout=True)
@_each
def _celu(call: Call, x: Any) -> Any:
    alpha = call.attr("alpha", 1.0)
    return tf.nn.elu(x) if alpha == 1 else alpha * tf.nn.elu(x / alpha)


@op("Gelu", layout=True)
@_each
def _gelu(call: Call, x: Any) -> Any:
    return tf.nn.gelu(x, approximate=call.attr("approximate", "none") == "tanh")


@op("Swish", layout=True)
@_each
def _swish(call: Call, x: Any) -> Any:
    alpha = call.attr("alpha", 1.0)
    return x * tf.sigmoid(x if alpha == 1 else alpha * x)


@op("Shrink", layout=True)
@_each
def _shrink(call: Call, x: Any) -> Any:
    lambd, bias = call.attr("lambd", 0.5), call.attr("bias", 0.0)
    wide = x if x.dtype.is_floating else tf.cast(x, tf.float64)
    y = tf.where(wide < -lambd, wide + bias, tf.where(wide > lambd, wide - bias, tf.zeros_like(wide)))
    return tf.cast(y, x.dtype)


@op("IsInf")
def _is_inf(call: Call, x: Any) -> Any:
    both = tf.math.is_inf(x)
    if not call.attr("detect_positive", 1):
        both = tf.logical_and(both, x < 0)
    return both if call.attr("detect_negative", 1) else tf.logical_and(both, x > 0)


# -- dtypes -------------------------------------------------------------------------------------------
def _cast_to(x: Any, dtype: Any) -> Any:
    if x.dtype == tf.string or dtype == tf.string:
        raise ValueError("casts from and to strings are not supported")
    if x.dtype.is_floating and dtype.is_integer and dtype.size < 8:  # beyond the range NumPy's casts go by int64
        x = tf.cast(x, tf.int64) if dtype.size < 4 else x
    return tf.cast(x, dtype)


@op("Cast", since=6, layout=True)
@_each
def _cast(call: Call, x: Any) -> Any:
    return _cast_to(x, dtype_of_number(call.need("to"), "the result"))


@op("Cast", layout=True)
@_each
def _older_cast(call: Call, x: Any) -> Any:
    """Before version 6 the dtype has a name."""
    names = {"FLOAT": tf.float32, "DOUBLE": tf.float64}
    return _cast_to(x, names.get(call.need("to")) or tf.as_dtype(call.need("to").lower()))


@op("CastLike", layout=True)
def _cast_like(call: Call, x: Value, like: Value) -> Value:
    dtype = dtype_of(like)
    if isinstance(x, np.ndarray) and x.size <= FOLDED:
        with tf.init_scope():
            return np.asarray(_cast_to(tf.constant(x), dtype).numpy())
    return _cast_to(tensor_of(x), dtype)


@op("BitCast")
def _bitcast(call: Call, x: Any) -> Any:
    to = dtype_of_number(call.need("to"), "the result")
    if tf.bool in (x.dtype, to):
        inner = tf.cast(x, tf.uint8) if x.dtype == tf.bool else x
        return tf.cast(inner, tf.bool) if to == tf.bool else tf.bitcast(inner, to)
    return tf.bitcast(x, to)


@op("Identity", layout=True, static=(0,))
def _identity(call: Call, x: Value) -> Value:
    return x


@op("Dropout", since=12, layout=True, folds=False, static=(1, 2))
def _dropout(call: Call, x: Value, ratio: Value = None, training: Value = None) -> Any:
    """In training elements are dropped by numbers of `tf.random`."""
    mode = False if training is None else bool(known_array(training, "training_mode").item())
    rate = 0.5 if ratio is None else float(known_array(ratio, "ratio").item())
    ones = tf.ones(dims_of(x), tf.bool)
    if not mode or rate == 0:
        return x, ones
    x = tensor_of(x)
    mask = tf.random.uniform(x.dims, dtype=tf.float32) >= rate
    return tf.where(mask, x / (1 - rate), tf.zeros_like(x)), mask


@op("Dropout", layout=True)
def _older_dropout(call: Call, x: Value) -> Any:
    mask = tf.ones(dims_of(x), tf.bool)
    return x, mask if call.version >= 10 else tf.cast(mask, tensor_of(x).dtype)


# -- sizes --------------------------------------------------------------------------------------------
_ON_SIZES: dict[str, Callable[[Any, Any], Any]] = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b,
                                                   "Mul": lambda a, b: a * b}


def _pairwise(fn: Callable[[Any, Any], Any]) -> Callable[[Any, Any], np.ndarray]:
    return np.frompyfunc(fn, 2, 1)


@on_sizes("Add", "Sub", "Mul")
def _arithmetic_on_sizes(call: Call, x: np.ndarray, y: np.ndarray) -> Any:
    if x.dtype != object and y.dtype != object:
        return NotImplemented  # NumPy would not wrap around without a warning
    return np.asarray(_pairwise(_ON_SIZES[call.name])(_objects(x), _objects(y)), object)


def _objects(x: np.ndarray) -> np.ndarray:
    made = np.empty(x.shape, object)
    made[...] = x if x.dtype == object else np.array(x.tolist(), object).reshape(x.shape)
    return made


@on_sizes("Div")
def _divided_sizes(call: Call, x: np.ndarray, y: np.ndarray) -> Any:
    """Sizes are not negative, so that rounding down is rounding toward zero."""
    if x.dtype != object and y.dtype != object or not all(isinstance(v, int) and v > 0 for v in _objects(y).ravel()):
        return NotImplemented
    return np.asarray(_pairwise(lambda a, b: a // b)(_objects(x), _objects(y)), object)


@on_sizes("Identity")
def _same_sizes(call: Call, x: np.ndarray) -> Any:
    return x


@on_sizes("Cast")
def _cast_sizes(call: Call, x: np.ndarray) -> Any:
    dtype = DTYPES.get(call.attr("to", 0)) if call.version >= 6 else None
    if dtype is None or not dtype.is_integer or dtype.size < 4 or x.dtype != object:
        return NotImplemented
    return Sizes(x, dtype)


@on_sizes("Equal")
def _equal_sizes(call: Call, x: np.ndarray, y: np.ndarray) -> Any:
    """Known where no size can be the number, as with -1."""
    if x.dtype != object and y.dtype != object:
        return NotImplemented
    pairs = np.broadcast(_objects(x), _objects(y))
    told = [decide_eq(a, b) for a, b in pairs]
    return NotImplemented if None in told else np.array(told, bool).reshape(pairs.shape)


@on_sizes("Where")
def _chosen_sizes(call: Call, condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> Any:
    if condition.dtype != bool or x.dtype != object and y.dtype != object:
        return NotImplemented
    return np.where(condition, _objects(x), _objects(y))


