"""ONNX ops on integers that stand for floats by a scale and a zero point."""

from __future__ import annotations

from typing import Any

import twofold as tf

from .import_reductions import one_axis
from .import_table import Call, find, op

__all__: list[str] = []


def _along(call: Call, v: Any, x: Any) -> Any:
    """A scale or zero point beside a tensor: one for all, or one for each place along an axis."""
    if not v.dims or v.dims == (1,):
        return tf.reshape(v, ())
    if len(v.dims) != 1:
        raise call.fail("scales by blocks are not supported")
    axis = one_axis(call, call.attr("axis", 1), len(x.dims))
    return tf.reshape(v, [-1 if i == axis else 1 for i in range(len(x.dims))])


@op("DequantizeLinear")
def _dequantize(call: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    by = _along(call, scale, x)
    wide = tf.cast(x, tf.int32)
    if zero is not None:
        wide = wide - tf.cast(_along(call, zero, x), tf.int32)
    return tf.cast(wide, by.dtype) * by


@op("QuantizeLinear")
def _quantize(call: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    to = tf.uint8 if zero is None else zero.dtype
    y = tf.round(tf.cast(x, tf.float32) / tf.cast(_along(call, scale, x), tf.float32))
    return tf.saturate_cast(y if zero is None else y + tf.cast(_along(call, zero, x), tf.float32), to)


def _centred(x: Any, zero: Any, by_rows: bool) -> Any:
    wide = tf.cast(x, tf.int32)
    if zero is None:
        return wide
    zero = tf.cast(zero, tf.int32)
    if len(zero.dims) == 1 and zero.dims != (1,) and by_rows:
        zero = zero[:, None]
    return wide - (tf.reshape(zero, ()) if zero.dims == (1,) else zero)


@op("MatMulInteger")
def _matmul_integer(call: Call, a: Any, b: Any, zero_a: Any = None, zero_b: Any = None) -> Any:
    return tf.matmul(_centred(a, zero_a, True), _centred(b, zero_b, False))


@op("ConvInteger")
def _conv_integer(call: Call, x: Any, w: Any, zero_x: Any = None, zero_w: Any = None) -> Any:
    """In float64, which holds each sum exactly."""
    filters = _centred(w, None if zero_w is None else tf.reshape(zero_w, [-1, *[1] * (len(w.dims) - 1)]), False)
    conv = find("", "Conv", 22)
    assert conv is not None
    y = conv.run(call, tf.cast(_centred(x, zero_x, False), tf.float64), tf.cast(filters, tf.float64))
    return tf.cast(y.tensor(), tf.int32)
