"""Floats as integers of few bits and back: `quantize`, `dequantize`, both at once, and joining what was quantised.

The integers are tensors of the library's integer dtypes, which `tf.qint8` and its like name. Composed of ops.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from twofold._front.api import axis_span, listed, one_int, one_number, public, tensor
from twofold._front.tensors import get_static_value
from twofold.eager.custom import custom_gradient
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.dtypes import DType
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.grad import zeros_like

__all__ = ["Quantized", "dequantize", "quantize", "quantize_and_dequantize", "quantize_and_dequantize_v2",
           "quantized_concat"]

_INTEGERS = frozenset({dt.int8, dt.uint8, dt.int16, dt.uint16, dt.int32})
_MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")
_LARGEST = 3.4028234663852886e38  # of float32
_BOUNDS = -2147483648.0, 2147483520.0  # floats that an int32 can hold


class Quantized(NamedTuple):
    """What `tf.quantization.quantize` gives.

    Attributes:
        output: integers.
        output_min, output_max: the range that their limits stand for.

    >>> import twofold as tf
    >>> tf.quantization.quantize([0.0, 1.0], 0.0, 1.0, tf.quint8).output.numpy().tolist()
    [0, 255]
    """

    output: Any
    output_min: Any
    output_max: Any


# -- rounding -----------------------------------------------------------------------------------------
def _away(x: Any) -> Any:
    """The nearest integers, halves away from 0."""
    size = ops.abs(x)
    below = ops.floor(size)
    nearest = ops.add(below, ops.cast(ops.greater_equal(ops.subtract(size, below), 0.5), dtype=x.dtype))
    return ops.where(ops.less(x, 0.0), ops.negative(nearest), nearest)


def _up(x: Any) -> Any:
    """The nearest integers, halves up."""
    return ops.floor(ops.add(x, 0.5))


def _clipped(x: Any, low: Any, high: Any) -> Any:
    return ops.maximum(ops.minimum(x, high), low)


# -- operands -----------------------------------------------------------------------------------------
def _axis(axis: Any, x: Any) -> int | None:
    """The axis whose entries have ranges of their own; None where all have one."""
    return None if axis is None else one_int(axis, "axis", axis_span(x)) % len(x.dims)


def _bounds(low: Any, high: Any, axis: int | None, x: Any, dtype: DType, what: str) -> tuple[Any, Any]:
    """The ends of a range, or of one for each entry of an axis.

    Raises:
        InvalidArgumentError: they have another shape.
    """
    wanted = x.shape[:0] if axis is None else x.shape[axis:axis + 1]
    ends = tensor(low, dtype), tensor(high, dtype)
    for name, end in zip(("min", "max"), ends, strict=True):
        if not end.shape.is_compatible_with(wanted):
            raise InvalidArgumentError(None, what,
                                       f"the {name} of the range must have the shape {wanted}; got {end.shape}")
    return ends


def _along(end: Any, axis: int | None, x: Any) -> Any:
    """The end of a range for each entry of an axis, in the shape that broadcasts with a tensor."""
    if axis is None:
        return end
    return ops.reshape(end, shape=tuple(x.dims[axis] if n == axis else 1 for n in range(len(x.dims))))


def _integers(dtype: Any, what: str) -> DType:
    named = dt.as_dtype(dtype)
    if named not in _INTEGERS:
        raise InvalidArgumentError(None, what, f"{what}: T must be one of qint8, quint8, qint16, quint16 and qint32; "
                                               f"got {named.name}")
    return named


def _mode(mode: Any, what: str) -> str:
    if mode not in _MODES:
        raise InvalidArgumentError(None, what, f"{what}: mode must be one of {', '.join(_MODES)}; got {mode!r}")
    return mode


def _half(dtype: DType) -> float:
    """Half of how many integers there are, where half of them are negative."""
    return 0.0 if dtype.is_unsigned else float(1 << 8 * dtype.size - 1)


def _steps(dtype: DType) -> float:
    return float((1 << 8 * dtype.size) - 1)


# -- to integers --------------------------------------------------------------------------------------
@public
def quantize(input: Any, min_range: Any, max_range: Any, T: Any, mode: str = "MIN_COMBINED",
             round_mode: str = "HALF_AWAY_FROM_ZERO", name: str | None = None, narrow_range: bool = False,
             axis: int | None = None, ensure_minimum_range: float = 0.01) -> Quantized:
    """Floats as integers.

    Args:
        input: float32.
        min_range, max_range: what the limits of the integers stand for, scalars; with `axis`, a vector of its entries.
            The range is widened so that it holds 0.
        T: of the result: tf.qint8, quint8, qint16, quint16 or qint32, which name the integer dtypes of their sizes.
        mode: "MIN_COMBINED" and "MIN_FIRST" use the range as it is, and "SCALED" one around 0, in which 0 is exact.
        round_mode: "HALF_AWAY_FROM_ZERO", or for "SCALED" also "HALF_TO_EVEN".
        name: accepted, without effect.
        narrow_range: with "SCALED", whether the least integer is left out.
        axis: whose entries have ranges of their own.
        ensure_minimum_range: how wide the range is at least, in parts of its ends.
    Returns:
        `(output, output_min, output_max)`: integers, and the range that was used.
    Raises:
        InvalidArgumentError: a dtype, a mode or a shape is another.

    >>> import twofold as tf
    >>> made = tf.quantization.quantize([-1.0, 0.0, 0.5, 2.0], -1.0, 1.0, tf.qint8, mode="SCALED")
    >>> made.output.numpy().tolist()
    [-127, 0, 64, 127]
    """
    what = "QuantizeV2"
    dtype, how = _integers(T, what), _mode(mode, what)
    if round_mode not in ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN") or round_mode == "HALF_TO_EVEN" and how != "SCALED":
        raise InvalidArgumentError(None, what, f"Round mode {round_mode!r} is none, or is only supported for mode "
                                               "'SCALED'")
    x = tensor(input, dt.float32)
    at = _axis(axis, x)
    low, high = _bounds(min_range, max_range, at, x, dt.float32, what)
    least = ops.minimum(low, 0.0)
    ends = ops.maximum(ops.abs(low), ops.abs(high))
    width = ops.multiply(ops.maximum(ends, 1.0), float(one_number(ensure_minimum_range, "ensure_minimum_range")))
    most = ops.maximum(ops.maximum(high, ops.add(least, width)), 0.0)
    if how == "SCALED":
        least, most, scale = _scaled_range(least, most, dtype, bool(narrow_range))
        inside = ops.multiply(_clipped(x, _along(least, at, x), _along(most, at, x)), _along(scale, at, x))
        made = ops.rint(inside) if round_mode == "HALF_TO_EVEN" else _away(inside)
    else:
        to_steps = _combined if how == "MIN_COMBINED" else _first
        made = to_steps(x, _along(least, at, x), _along(most, at, x), dtype)
    return Quantized(ops.cast(made, dtype=dtype), least, most)


def _combined(x: Any, low: Any, high: Any, dtype: DType) -> Any:
    scale = _quotient(_steps(dtype), ops.subtract(high, low))
    steps = ops.multiply(ops.subtract(_clipped(x, low, high), low), scale)
    return ops.add(steps, 0.5) if dtype.is_unsigned else _away(ops.subtract(steps, _half(dtype)))


def _quotient(steps: float, width: Any) -> Any:
    """Steps by a width, in float64, since a float32 cannot hold all numbers of steps."""
    return ops.cast(ops.divide(steps, ops.cast(width, dtype=dt.float64)), dtype=dt.float32)


def _first(x: Any, low: Any, high: Any, dtype: DType) -> Any:
    same = ops.equal(low, high)
    scale = ops.where(same, 0.0, _quotient(_steps(dtype), ops.subtract(high, low)))
    zero = ops.subtract(_away(ops.multiply(low, scale)), float(dtype.min))
    least, most = max(float(dtype.min), _BOUNDS[0]), min(float(dtype.max), _BOUNDS[1])
    return ops.minimum(ops.maximum(ops.subtract(_away(ops.multiply(x, scale)), zero), least), most)


def _side(limit: float, end: Any) -> Any:
    """The scale by which the end of a range becomes the limit of the integers; the largest where it is at the other
    side of 0."""
    fits = ops.greater(ops.multiply(end, limit), 0.0)
    return ops.where(fits, ops.divide(limit, ops.where(fits, end, 1.0)), float(_LARGEST))


def _scaled_range(low: Any, high: Any, dtype: DType, narrow: bool) -> tuple[Any, Any, Any]:
    least, most = float(dtype.min + int(narrow)), float(dtype.max)
    scale = ops.minimum(_side(least, low), _side(most, high))
    return ops.divide(least, scale), ops.divide(most, scale), scale


# -- and back -----------------------------------------------------------------------------------------
@public
def dequantize(input: Any, min_range: Any, max_range: Any, mode: str = "MIN_COMBINED", name: str | None = None,
               axis: int | None = None, narrow_range: bool = False, dtype: Any = dt.float32) -> Any:
    """The floats that integers stand for; see `quantize`.

    Args:
        input: integers that `quantize` gives.
        min_range, max_range, mode, axis, narrow_range: as given to `quantize`, or the range that it gave.
        name: accepted, without effect.
        dtype: of the result, float32 or bfloat16.
    Raises:
        InvalidArgumentError: a dtype, a mode or a shape is another.

    >>> import twofold as tf
    >>> tf.quantization.dequantize(tf.constant([-128, 127], tf.int8), -1.0, 1.0).numpy().tolist()
    [-1.0, 1.0]
    """
    what = "Dequantize"
    x, result, how = tensor(input), dt.as_dtype(dtype), _mode(mode, what)
    _integers(x.dtype, what)
    if result not in (dt.float32, dt.bfloat16):
        raise InvalidArgumentError(None, what, f"Dequantize: dtype must be float32 or bfloat16; got {result.name}")
    if how == "MIN_FIRST" and result is not dt.float32:
        raise InvalidArgumentError(None, what, "When output type is bfloat16, mode must be MIN_COMBINED or SCALED")
    at = _axis(axis, x)
    low, high = (_along(end, at, x) for end in _bounds(min_range, max_range, at, x, dt.float32, what))
    ways: dict[str, Callable[..., Any]] = {
        "MIN_COMBINED": _from_combined, "MIN_FIRST": _from_first,
        "SCALED": functools.partial(_from_scaled, narrow=bool(narrow_range))}
    return ops.cast(ways[how](ops.cast(x, dtype=dt.float32), low, high, x.dtype), dtype=result)


def _from_combined(x: Any, low: Any, high: Any, dtype: DType) -> Any:
    scale = ops.divide(ops.subtract(high, low), _steps(dtype))
    return ops.add(ops.multiply(ops.add(x, _half(dtype)), scale), low)


def _from_first(x: Any, low: Any, high: Any, dtype: DType) -> Any:
    width = ops.cast(ops.subtract(high, low), dtype=dt.float64)
    scale = ops.cast(ops.divide(width, _steps(dtype)), dtype=dt.float32)
    least = ops.where(ops.equal(low, high), low, ops.multiply(_away(ops.divide(low, scale)), scale))
    return ops.add(ops.subtract(least, ops.multiply(float(dtype.min), scale)), ops.multiply(x, scale))


def _from_scaled(x: Any, low: Any, high: Any, dtype: DType, narrow: bool) -> Any:
    scale = ops.divide(high, float(dtype.max))
    if not dtype.is_unsigned:
        scale = ops.maximum(ops.divide(low, float(dtype.min + int(narrow))), scale)
    return ops.multiply(x, scale)


# -- there and back -----------------------------------------------------------------------------------
def _there_and_back(x: Any, low: Any, high: Any, levels: tuple[int, int], at: int | None, given: bool,
                    round_mode: str) -> Any:
    """Values that some integers stand for."""
    if not given:
        axes = tuple(n for n in range(len(x.dims)) if n != at)
        low, high = ops.reduce_min(x, axis=axes), ops.reduce_max(x, axis=axes)
    least, most = (float(level) for level in levels)
    largest = float(x.dtype.max)
    fits_low, fits_high = ops.greater(ops.multiply(low, least), 0.0), ops.greater(ops.multiply(high, most), 0.0)
    by_low = ops.where(fits_low, ops.divide(least, low), largest)
    by_high = ops.where(fits_high, ops.divide(most, high), largest)
    low_decides = ops.less(by_low, by_high)
    scale = ops.where(low_decides, by_low, by_high)
    step = ops.where(low_decides, ops.divide(low, least) if least else 0.0, ops.divide(high, most))
    if given:
        bottom = ops.where(low_decides, low, ops.multiply(least, step))
        top = ops.where(low_decides, ops.multiply(most, step), high)
        x = _clipped(x, _along(bottom, at, x), _along(top, at, x))
    steps = ops.multiply(x, _along(scale, at, x))
    whole = ops.rint(steps) if round_mode == "HALF_TO_EVEN" else _up(steps)
    return ops.multiply(whole, _along(step, at, x))


def _quantised_and_back(input: Any, low: Any, high: Any, signed: bool, num_bits: Any, given: bool, round_mode: str,
                        narrow: bool, axis: int | None, passes_all: bool) -> Any:
    what = "QuantizeAndDequantizeV4"
    bits = one_int(num_bits, "num_bits")
    if not 0 < bits < (62 if signed else 63):
        raise InvalidArgumentError(None, what, f"num_bits is out of range: {bits} with signed_input {bool(signed)}")
    if round_mode not in ("HALF_TO_EVEN", "HALF_UP"):
        raise InvalidArgumentError(None, what, f"Round mode must be 'HALF_TO_EVEN' or 'HALF_UP'; got {round_mode!r}")
    x = tensor(input)
    if not x.dtype.is_floating:
        raise InvalidArgumentError(None, what, f"{what}: expected floats; got {x.dtype.name}")
    at = _axis(axis, x)
    half = 1 << bits - 1
    levels = (-half + int(narrow), half - 1) if signed else (0, (1 << bits) - 1)

    @custom_gradient
    def quantise(x: Any, least: Any, most: Any) -> Any:
        def gradient(ct: Any) -> list[Any]:
            if passes_all:
                return [ct, None, None]
            inside = ops.logical_and(ops.greater_equal(x, _along(least, at, x)), ops.less_equal(x, _along(most, at, x)))
            return [ops.where(inside, ct, 0.0), zeros_like(least), zeros_like(most)]
        return _there_and_back(x, least, most, levels, at, bool(given), round_mode), gradient
    ends = _bounds(low, high, at, x, x.dtype, what)
    known = [get_static_value(end) for end in ends]
    if given and all(end is not None for end in known) and (known[0] > known[1]).any():
        raise InvalidArgumentError(None, what, f"Invalid range: input_min {known[0]} > input_max {known[1]}")
    return quantise(x, *ends)


@public
def quantize_and_dequantize_v2(input: Any, input_min: Any, input_max: Any, signed_input: bool = True,
                               num_bits: int = 8, range_given: bool = False, round_mode: str = "HALF_TO_EVEN",
                               name: str | None = None, narrow_range: bool = False, axis: int | None = None) -> Any:
    """Values that integers of few bits stand for, the nearest ones; 0 is one of them.

    The gradient passes where a value lies between `input_min` and `input_max`.

    Args:
        input: floats.
        input_min, input_max: the range, scalars; with `axis`, a vector of its entries.
        signed_input: whether the integers have signs.
        num_bits: of the integers.
        range_given: whether values are quantised in that range; else in the one that they are in.
        round_mode: "HALF_TO_EVEN" or "HALF_UP".
        name: accepted, without effect.
        narrow_range: whether the least of signed integers is left out.
        axis: whose entries have ranges of their own.
    Raises:
        InvalidArgumentError: a dtype, a shape or a mode is another, or the range is known to be none.

    >>> import twofold as tf
    >>> tf.quantization.quantize_and_dequantize_v2([0.1, 0.9, 3.0], 0.0, 1.5, signed_input=False, num_bits=2,
    ...                                            range_given=True).numpy().tolist()
    [0.0, 1.0, 1.5]
    """
    return _quantised_and_back(input, input_min, input_max, signed_input, num_bits, range_given, round_mode,
                               narrow_range, axis, False)


@public
def quantize_and_dequantize(input: Any, input_min: Any, input_max: Any, signed_input: bool = True, num_bits: int = 8,
                            range_given: bool = False, round_mode: str = "HALF_TO_EVEN", name: str | None = None,
                            narrow_range: bool = False, axis: int | None = None) -> Any:
    """`quantize_and_dequantize_v2`, but with a gradient that passes everywhere.

    Args:
        input, input_min, input_max, signed_input, num_bits, range_given, round_mode, narrow_range, axis: see there.
        name: accepted, without effect.

    >>> import twofold as tf
    >>> tf.quantization.quantize_and_dequantize([0.1, 1.5], 0.0, 0.0, signed_input=False, num_bits=2).numpy().tolist()
    [0.0, 1.5]
    """
    return _quantised_and_back(input, input_min, input_max, signed_input, num_bits, range_given, round_mode,
                               narrow_range, axis, True)


# -- joining ------------------------------------------------------------------------------------------
@public
def quantized_concat(concat_dim: Any, values: Sequence[Any], input_mins: Sequence[Any], input_maxes: Sequence[Any],
                     name: str | None = None) -> Quantized:
    """Tensors of integers with ranges of their own, one behind another, in one range.

    Args:
        concat_dim: the axis.
        values: integers that `quantize` gives with "MIN_FIRST".
        input_mins, input_maxes: their ranges, scalars.
        name: accepted, without effect.
    Returns:
        `(output, output_min, output_max)`: integers, and the range, which holds all others and 0.
    Raises:
        InvalidArgumentError: shapes or numbers of tensors do not fit.

    >>> import twofold as tf
    >>> one, other = tf.constant([0, 255], tf.uint8), tf.constant([128], tf.uint8)
    >>> tf.quantization.quantized_concat(0, [one, other], [0.0, 0.0], [1.0, 2.0]).output.numpy().tolist()
    [0, 128, 128]
    """
    what = "QuantizedConcat"
    given = [tensor(v) for v in listed(values, "values")]
    lows, highs = ([tensor(end, dt.float32) for end in listed(ends, named)]
                   for ends, named in ((input_mins, "input_mins"), (input_maxes, "input_maxes")))
    if not given or not len(given) == len(lows) == len(highs):
        raise InvalidArgumentError(None, what, f"there must be a range for each tensor; got {len(given)} tensors, "
                                               f"{len(lows)} and {len(highs)} ends of ranges")
    dtype = _integers(given[0].dtype, what)
    low = ops.minimum(functools.reduce(ops.minimum, lows), 0.0)
    high = functools.reduce(ops.maximum, highs)
    if not dtype.is_unsigned:
        high = ops.maximum(ops.abs(low), ops.abs(high))
        low = ops.negative(high)
    moved = [_moved(x, least, most, low, high, dtype) for x, least, most in zip(given, lows, highs, strict=True)]
    axis = one_int(concat_dim, "concat_dim", axis_span(given[0]))
    return Quantized(ops.concat(*moved, axis=axis), low, high)


def _moved(x: Any, low: Any, high: Any, new_low: Any, new_high: Any, dtype: DType) -> Any:
    """Integers of another range, for the same floats."""
    floats = _from_first(ops.cast(x, dtype=dt.float32), low, high, dtype)
    same = ops.logical_and(ops.equal(low, new_low), ops.equal(high, new_high))
    return ops.where(same, x, ops.cast(_first(floats, new_low, new_high, dtype), dtype=dtype))
