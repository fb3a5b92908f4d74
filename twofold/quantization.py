"""`tf.quantization`: floats as integers of few bits, and back."""

from __future__ import annotations

from ._front.namespace import publish
from ._ops.quantization_fake import (
    fake_quant_with_min_max_args,
    fake_quant_with_min_max_args_gradient,
    fake_quant_with_min_max_vars,
    fake_quant_with_min_max_vars_gradient,
    fake_quant_with_min_max_vars_per_channel,
    fake_quant_with_min_max_vars_per_channel_gradient,
)
from ._ops.quantization_ranges import (
    dequantize,
    quantize,
    quantize_and_dequantize,
    quantize_and_dequantize_v2,
    quantized_concat,
)

__all__ = ["dequantize", "fake_quant_with_min_max_args", "fake_quant_with_min_max_args_gradient",
           "fake_quant_with_min_max_vars", "fake_quant_with_min_max_vars_gradient",
           "fake_quant_with_min_max_vars_per_channel", "fake_quant_with_min_max_vars_per_channel_gradient", "quantize",
           "quantize_and_dequantize", "quantize_and_dequantize_v2", "quantized_concat"]


publish(__name__)
