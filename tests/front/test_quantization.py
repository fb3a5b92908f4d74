"""Quantisation in ways that TensorFlow refuses or does not have; all else is in `test_library.py`."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

VALUES = np.array([[0.5, -0.5, 0.1, 1.5], [2.5, -2.5, -3.7, 7.0]], np.float32)
LOW, HIGH = np.array([-1.0, 0.0, -3.0, -0.1], np.float32), np.array([1.0, 1.5, 0.7, 4.0], np.float32)


@pytest.mark.parametrize("given", [True, False])
def test_ranges_along_an_axis_are_those_of_its_entries(given: bool) -> None:
    def quantised(x, low, high, axis=None):
        return tf.quantization.quantize_and_dequantize_v2(x, low, high, range_given=given, axis=axis)
    whole = quantised(VALUES, LOW, HIGH, axis=-1)
    for n in range(4):
        np.testing.assert_array_equal(whole[:, n], quantised(VALUES[:, n], LOW[n], HIGH[n]), strict=True)
    for mode in ("MIN_COMBINED", "MIN_FIRST"):
        whole = tf.quantization.quantize(VALUES, LOW, HIGH, tf.qint16, mode, axis=1)
        back = tf.quantization.dequantize(whole.output, LOW, HIGH, mode, axis=1)
        for n in range(4):
            one = tf.quantization.quantize(VALUES[:, n], LOW[n], HIGH[n], tf.qint16, mode)
            np.testing.assert_array_equal(whole.output[:, n], one.output, strict=True)
            np.testing.assert_array_equal(
                back[:, n], tf.quantization.dequantize(one.output, LOW[n], HIGH[n], mode), strict=True)


def test_joined_tensors_stand_for_the_same_floats() -> None:
    parts = [tf.quantization.quantize(VALUES, *r, tf.quint16, "MIN_FIRST") for r in ((-4.0, 8.0), (-3.7, 7.0))]
    joined = tf.quantization.quantized_concat(1, [p.output for p in parts], [p.output_min for p in parts],
                                              [p.output_max for p in parts])
    floats = tf.quantization.dequantize(joined.output, joined.output_min, joined.output_max, "MIN_FIRST")
    np.testing.assert_allclose(floats, np.clip(np.concatenate([VALUES, VALUES], 1), -3.7, 7.0), atol=4e-4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="a range for each"):
        tf.quantization.quantized_concat(1, [parts[0].output], [], [])


def test_both_modes_and_a_saved_function_agree(tmp_path) -> None:
    module = tf.Module()
    module.low, module.high = tf.Variable(LOW), tf.Variable(HIGH)

    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.quantization.fake_quant_with_min_max_vars_per_channel(x, module.low, module.high)
        return y, tape.gradient(y, [module.low, module.high])
    module.step = step
    tf.saved_model.save(module, tmp_path)
    expected = tf.nest.flatten(step.python_function(tf.constant(VALUES)))
    for fn in (module.step, tf.saved_model.load(tmp_path).step):
        for actual, value in zip(tf.nest.flatten(fn(VALUES)), expected, strict=True):
            np.testing.assert_array_equal(actual, value, strict=True)
