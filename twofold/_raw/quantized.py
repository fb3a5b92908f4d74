"""Raw ops of quantisation, of floats that stand for few levels."""

from __future__ import annotations

from typing import Any

import twofold as tf

from .declared import known, op, rank_of

__all__ = ["ROWS"]

ROWS = """
FakeQuantWithMinMaxVarsGradient(gradients, inputs, min, max, num_bits=8, narrow_range=False) \
-> backprops_wrt_input, backprop_wrt_min, backprop_wrt_max \
= quantization.fake_quant_with_min_max_vars_gradient(gradients, inputs, min, max, num_bits, narrow_range)
FakeQuantWithMinMaxVarsPerChannelGradient(gradients, inputs, min, max, num_bits=8, narrow_range=False) \
-> backprops_wrt_input, backprop_wrt_min, backprop_wrt_max \
= quantization.fake_quant_with_min_max_vars_per_channel_gradient(gradients, inputs, min, max, num_bits, narrow_range)
"""


@op("output output_min output_max", name="QuantizeV2")
def quantize_v2(input: Any, min_range: Any, max_range: Any, T: Any, mode: str = "MIN_COMBINED",
                round_mode: str = "HALF_AWAY_FROM_ZERO", narrow_range: bool = False, axis: int = -1,
                ensure_minimum_range: float = 0.01) -> Any:
    return tf.quantization.quantize(input, min_range, max_range, T, mode, round_mode, narrow_range=narrow_range,
                                    axis=None if axis < 0 else axis, ensure_minimum_range=ensure_minimum_range)


@op()
def dequantize(input: Any, min_range: Any, max_range: Any, mode: str = "MIN_COMBINED", narrow_range: bool = False,
               axis: int = -1, dtype: Any = tf.float32) -> Any:
    return tf.quantization.dequantize(input, min_range, max_range, mode, narrow_range=narrow_range,
                                      axis=None if axis < 0 else axis, dtype=dtype)


@op("output output_min output_max", lists="values input_mins input_maxes")
def quantized_concat(concat_dim: Any, values: Any, input_mins: Any, input_maxes: Any) -> Any:
    return tf.quantization.quantized_concat(concat_dim, values, input_mins, input_maxes)


@op(name="QuantizeAndDequantizeV2")
def quantize_and_dequantize_v2(input: Any, input_min: Any, input_max: Any, signed_input: bool = True,
                               num_bits: int = 8, range_given: bool = False, round_mode: str = "HALF_TO_EVEN",
                               narrow_range: bool = False, axis: int = -1) -> Any:
    return tf.quantization.quantize_and_dequantize(input, input_min, input_max, signed_input, num_bits, range_given,
                                                   round_mode, narrow_range=narrow_range,
                                                   axis=None if axis < 0 else axis)


@op(name="QuantizeAndDequantizeV4")
def quantize_and_dequantize_v4(input: Any, input_min: Any, input_max: Any, signed_input: bool = True,
                               num_bits: int = 8, range_given: bool = False, round_mode: str = "HALF_TO_EVEN",
                               narrow_range: bool = False, axis: int = -1) -> Any:
    return tf.quantization.quantize_and_dequantize_v2(input, input_min, input_max, signed_input, num_bits,
                                                      range_given, round_mode, narrow_range=narrow_range,
                                                      axis=None if axis < 0 else axis)


@op(name="QuantizeAndDequantizeV3")
def quantize_and_dequantize_v3(input: Any, input_min: Any, input_max: Any, num_bits: Any, signed_input: bool = True,
                               range_given: bool = True, narrow_range: bool = False, axis: int = -1) -> Any:
    bits = int(known(num_bits, "num_bits"))
    return tf.quantization.quantize_and_dequantize(input, input_min, input_max, signed_input, bits, range_given,
                                                   narrow_range=narrow_range, axis=None if axis < 0 else axis)


@op("input_backprop input_min_backprop input_max_backprop", name="QuantizeAndDequantizeV4Grad")
def quantize_and_dequantize_v4_grad(gradients: Any, input: Any, input_min: Any, input_max: Any,
                                    axis: int = -1) -> Any:
    """Gradients pass where the input lies within the range, and reach no end of it."""
    x, low, high = (tf.convert_to_tensor(v) for v in (input, input_min, input_max))
    shape = [-1 if n == axis else 1 for n in range(rank_of(x))] if axis >= 0 else []
    inside = (x >= tf.reshape(low, shape)) & (x <= tf.reshape(high, shape))
    passed = tf.where(inside, gradients, tf.zeros([], x.dtype))
    return passed, tf.zeros_like(low), tf.zeros_like(high)
