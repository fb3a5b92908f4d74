"""Fake quantisation: float32 values moved to those that integers of few bits stand for, with gradients.

Composed of ops, so that both modes give the same bits. The range is moved first so that 0 is one of the values, as the
paper on integer inference says (Jacob et al. 2018, section 3). What turns floats into integers is
`quantization_ranges.py`'s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from twofold._front.api import one_int, one_number, public, tensor
from twofold.eager.custom import custom_gradient
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.errors import InvalidArgumentError

__all__ = ["fake_quant_with_min_max_args", "fake_quant_with_min_max_args_gradient", "fake_quant_with_min_max_vars",
           "fake_quant_with_min_max_vars_gradient", "fake_quant_with_min_max_vars_per_channel",
           "fake_quant_with_min_max_vars_per_channel_gradient"]


class _Levels(NamedTuple):
    """The first and the last integer."""

    first: int
    last: int


def _levels(num_bits: Any, narrow_range: Any, what: str) -> _Levels:
    bits = one_int(num_bits, "num_bits")
    if not 2 <= bits <= 16:
        raise InvalidArgumentError(None, what, f"num_bits must be between 2 and 16, inclusive; got {bits}")
    return _Levels(1 if narrow_range else 0, (1 << bits) - 1)


class _Range(NamedTuple):
    """A range of floats in which 0 is a value that an integer stands for, and the step from one to the next."""

    low: Any
    high: Any
    step: Any


def _rounded(x: Any) -> Any:
    """The nearest integers of numbers that are not negative, halves up."""
    below = ops.floor(x)
    return ops.add(below, ops.cast(ops.greater_equal(ops.subtract(x, below), 0.5), dtype=x.dtype))


def _nudged(low: Any, high: Any, levels: _Levels) -> _Range:
    first, last = levels
    step = ops.divide(ops.subtract(high, low), float(last - first))
    exact = ops.subtract(float(first), ops.divide(low, step))
    zero = ops.where(ops.less(exact, float(first)), float(first),
                     ops.where(ops.greater(exact, float(last)), float(last), _rounded(exact)))
    return _Range(ops.multiply(ops.subtract(float(first), zero), step),
                  ops.multiply(ops.subtract(float(last), zero), step), step)


def _empty(low: Any, high: Any) -> Any:
    """Whether a range is that of 0 alone, of which nothing is asked."""
    return ops.logical_and(ops.equal(low, 0.0), ops.equal(high, 0.0))


def _quantised(x: Any, r: _Range) -> Any:
    per_step = ops.divide(1.0, r.step)
    zero = ops.floor(ops.add(ops.multiply(ops.negative(r.low), per_step), 0.5))
    inside = ops.maximum(ops.minimum(x, r.high), r.low)
    steps = ops.subtract(ops.multiply(ops.subtract(inside, r.low), per_step), zero)
    return ops.multiply(ops.floor(ops.add(steps, 0.5)), r.step)


def _inside(x: Any, r: _Range) -> Any:
    return ops.logical_and(ops.greater_equal(x, r.low), ops.less_equal(x, r.high))


def _within(ct: Any, x: Any, r: _Range) -> Any:
    """A cotangent where a value lies in the range, else 0."""
    return ops.multiply(ct, ops.cast(_inside(x, r), dtype=ct.dtype))


# -- a fixed range ------------------------------------------------------------------------------------
def _fixed(low: Any, high: Any, levels: _Levels, what: str) -> _Range:
    least, most = one_number(low, "min"), one_number(high, "max")
    if not least < most:
        raise InvalidArgumentError(None, what, f"min has to be smaller than max, was: {least} >= {most}")
    return _nudged(tensor(least, dt.float32), tensor(most, dt.float32), levels)


@public
def fake_quant_with_min_max_args(inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8,
                                 narrow_range: bool = False, name: str | None = None) -> Any:
    """Values as integers of few bits would keep them, in a fixed range.

    The gradient passes where a value lies in the range.

    Args:
        inputs: float32.
        min, max: the range, which is moved so that 0 is kept as it is.
        num_bits: from 2 to 16.
        narrow_range: whether there is one level less.
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: the range is empty, or there are fewer or more bits.

    >>> import twofold as tf
    >>> tf.quantization.fake_quant_with_min_max_args([-1.0, 0.3, 9.0], 0.0, 1.5, num_bits=2).numpy().tolist()
    [0.0, 0.5, 1.5]
    """
    what = "FakeQuantWithMinMaxArgs"
    levels = _levels(num_bits, narrow_range, what)

    @custom_gradient
    def quantise(x: Any) -> Any:
        r = _fixed(min, max, levels, what)
        return _quantised(x, r), lambda ct: _within(ct, x, r)
    return quantise(tensor(inputs, dt.float32))


@public
def fake_quant_with_min_max_args_gradient(gradients: Any, inputs: Any, min: float = -6, max: float = 6,
                                          num_bits: int = 8, narrow_range: bool = False,
                                          name: str | None = None) -> Any:
    """The gradient of `fake_quant_with_min_max_args`: `gradients` where a value lies in the range, else 0.

    Args:
        gradients, inputs: float32 of one shape.
        min, max, num_bits, narrow_range: see `fake_quant_with_min_max_args`.
        name: accepted, without effect.
    """
    what = "FakeQuantWithMinMaxArgsGradient"
    r = _fixed(min, max, _levels(num_bits, narrow_range, what), what)
    ct, x = _same_shapes(gradients, inputs, what)
    return _within(ct, x, r)


def _same_shapes(gradients: Any, inputs: Any, what: str) -> tuple[Any, Any]:
    ct, x = tensor(gradients, dt.float32), tensor(inputs, dt.float32)
    if not ct.shape.is_compatible_with(x.shape):
        raise InvalidArgumentError(None, what,
                                   f"gradient and input must be the same size; got {ct.shape} and {x.shape}")
    return ct, x


# -- a range that is learnt ---------------------------------------------------------------------------
def _learnt(inputs: Any, low: Any, high: Any, channels: bool, what: str) -> tuple[Any, Any, Any]:
    """The operands, whose shapes fit.

    Raises:
        InvalidArgumentError: they do not.
    """
    x, least, most = (tensor(v, dt.float32) for v in (inputs, low, high))
    if channels and x.shape.rank == 0:
        raise InvalidArgumentError(None, what, "inputs must have at least one axis, that of channels")
    wanted = x.shape[-1:] if channels else x.shape[:0]
    for name, bound in (("min", least), ("max", most)):
        if not bound.shape.is_compatible_with(wanted):
            raise InvalidArgumentError(None, what, f"{name} must have the shape {wanted}; got {bound.shape}")
    return x, least, most


def _values(x: Any, low: Any, high: Any, levels: _Levels) -> Any:
    return ops.where(_empty(low, high), 0.0, _quantised(x, _nudged(low, high, levels)))


def _cotangents(ct: Any, x: Any, low: Any, high: Any, levels: _Levels) -> tuple[Any, Any, Any]:
    """The gradients by the values and by the bounds of the range: of what lies outside, by the bound there."""
    r, empty = _nudged(low, high, levels), _empty(low, high)
    outer = tuple(range(len(x.dims) - len(low.dims)))

    def total(where: Any) -> Any:
        sums = ops.reduce_sum(ops.multiply(ct, ops.cast(where, dtype=ct.dtype)), axis=outer)
        return ops.where(empty, 0.0, sums)
    return ops.where(empty, ct, _within(ct, x, r)), total(ops.less(x, r.low)), total(ops.greater(x, r.high))


def _with_learnt(inputs: Any, low: Any, high: Any, num_bits: Any, narrow: Any, channels: bool, what: str) -> Any:
    levels = _levels(num_bits, narrow, what)

    @custom_gradient
    def quantise(x: Any, least: Any, most: Any) -> Any:
        return _values(x, least, most, levels), lambda ct: list(_cotangents(ct, x, least, most, levels))
    return quantise(*_learnt(inputs, low, high, channels, what))


def _learnt_gradient(gradients: Any, inputs: Any, low: Any, high: Any, num_bits: Any, narrow: Any, channels: bool,
                     what: str) -> tuple[Any, Any, Any]:
    levels = _levels(num_bits, narrow, what)
    x, least, most = _learnt(inputs, low, high, channels, what)
    return _cotangents(_same_shapes(gradients, x, what)[0], x, least, most, levels)


@public
def fake_quant_with_min_max_vars(inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False,
                                 name: str | None = None) -> Any:
    """Values as integers of few bits would keep them, in a range that may be learnt.

    The gradient passes to a value that lies in the range, else to the bound at its side.

    Args:
        inputs: float32.
        min, max: the range, float32 scalars; it is moved so that 0 is kept as it is.
        num_bits: from 2 to 16.
        narrow_range: whether there is one level less.
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: shapes do not fit, or there are fewer or more bits.

    >>> import twofold as tf
    >>> top = tf.Variable(1.5)
    >>> with tf.GradientTape() as tape:
    ...     y = tf.quantization.fake_quant_with_min_max_vars([-1.0, 0.3, 9.0], 0.0, top, num_bits=2)
    >>> y.numpy().tolist(), float(tape.gradient(y, top))
    ([0.0, 0.5, 1.5], 1.0)
    """
    return _with_learnt(inputs, min, max, num_bits, narrow_range, False, "FakeQuantWithMinMaxVars")


@public
def fake_quant_with_min_max_vars_gradient(gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8,
                                          narrow_range: bool = False, name: str | None = None) -> Any:
    """The gradients of `fake_quant_with_min_max_vars` by its inputs, `min` and `max`.

    Args:
        gradients, inputs: float32 of one shape.
        min, max, num_bits, narrow_range: see `fake_quant_with_min_max_vars`.
        name: accepted, without effect.
    """
    return _learnt_gradient(gradients, inputs, min, max, num_bits, narrow_range, False,
                            "FakeQuantWithMinMaxVarsGradient")


@public
def fake_quant_with_min_max_vars_per_channel(inputs: Any, min: Any, max: Any, num_bits: int = 8,
                                             narrow_range: bool = False, name: str | None = None) -> Any:
    """Values as integers of few bits would keep them, in a range for each entry of the last axis.

    Args:
        inputs: float32 [.., channels].
        min, max: the ranges, float32 [channels].
        num_bits, narrow_range: see `fake_quant_with_min_max_vars`.
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: shapes do not fit, or there are fewer or more bits.

    >>> import twofold as tf
    >>> tf.quantization.fake_quant_with_min_max_vars_per_channel(
    ...     [[0.3, 0.3]], min=[0.0, 0.0], max=[1.5, 3.0], num_bits=2).numpy().tolist()
    [[0.5, 0.0]]
    """
    return _with_learnt(inputs, min, max, num_bits, narrow_range, True, "FakeQuantWithMinMaxVarsPerChannel")


@public
def fake_quant_with_min_max_vars_per_channel_gradient(gradients: Any, inputs: Any, min: Any, max: Any,
                                                      num_bits: int = 8, narrow_range: bool = False,
                                                      name: str | None = None) -> Any:
    """The gradients of `fake_quant_with_min_max_vars_per_channel` by its inputs, `min` and `max`.

    Args:
        gradients, inputs: float32 of one shape.
        min, max, num_bits, narrow_range: see `fake_quant_with_min_max_vars_per_channel`.
        name: accepted, without effect.
    """
    return _learnt_gradient(gradients, inputs, min, max, num_bits, narrow_range, True,
                            "FakeQuantWithMinMaxVarsPerChannelGradient")
