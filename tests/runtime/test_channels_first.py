"""Convolutions of single pixels with channels before the pixels: nothing is turned, and the bits stay."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import twofold as tf
from twofold.codegen import plan_text, planner
from twofold.ir import passes
from twofold.runtime.cpu import cpu
from twofold.tracer.traced import trace

SHAPES = [(1, 16, 16), (3, 16, 17), (2, 5, 7), (2, 300, 1), (0, 16, 16)]  # images, and their pixels


def convolve(x: Any, filters: Any) -> Any:
    return tf.nn.convolution(x, filters, data_format="NCHW")


def gradient(x: Any, filters: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch([x, filters])
        y = tf.square(convolve(x, filters))
    return tape.gradient(y, [x, filters])


def channels_last(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The same function by a convolution of images that were turned before."""
    def turned(x: Any, filters: Any) -> Any:
        return tf.transpose(tf.nn.convolution(tf.transpose(x, (0, 2, 3, 1)), filters), (0, 3, 1, 2))

    def call(x: Any, filters: Any) -> Any:
        if fn is convolve:
            return turned(x, filters)
        with tf.GradientTape() as tape:
            tape.watch([x, filters])
            y = tf.square(turned(x, filters))
        return tape.gradient(y, [x, filters])
    return call


def operands(shape: tuple[int, int, int], dtype: Any, channels: int = 19, outputs: int = 35) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(shape))
    images, *pixels = shape
    return [rng.normal(size=size).astype(dtype) for size in ((images, channels, *pixels), (1, 1, channels, outputs))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16],
                         ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("fn", [convolve, gradient])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bits_are_those_of_channels_last(fn: Callable[..., Any], shape: tuple[int, int, int], dtype: Any) -> None:
    arrays = list(map(tf.constant, operands(shape, dtype)))
    want = [t.numpy().tobytes() for t in tf.nest.flatten(channels_last(fn)(*arrays))]
    unknown = [tf.TensorSpec((None, 19, None, None), dtype), tf.TensorSpec((1, 1, 19, 35), dtype)]
    for call in (fn, tf.function(fn), tf.function(fn, input_signature=unknown)):
        assert [t.numpy().tobytes() for t in tf.nest.flatten(call(*arrays))] == want


@pytest.mark.parametrize("shape", SHAPES[:2], ids=str)
def test_values_are_those_of_numpy(shape: tuple[int, int, int]) -> None:
    x, filters = operands(shape, np.float32)
    want = np.einsum("nchw,co->nohw", x.astype(np.float64), filters[0, 0].astype(np.float64))
    np.testing.assert_allclose(tf.function(convolve)(x, filters), want, atol=2e-5)


def steps(fn: Callable[..., Any], *specs: tf.TensorSpec) -> list[str]:
    """The steps of a function's plan."""
    text = plan_text.text(planner.plan(passes.optimise(trace(fn, specs, "f").graph), cpu))
    return re.findall(r"^  \d+: (.*)$", text, re.MULTILINE)


def test_nothing_is_turned() -> None:
    """The plan of a forward pass, and of its gradient for images, has products and nothing besides."""
    def for_images(x: Any, filters: Any, ct: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = convolve(x, filters)
        return tape.gradient(y, x, ct)

    filters = tf.TensorSpec((1, 1, 19, 35))
    for size, kinds in ((16, ["gemm"]), (7, ["copy", "gemm", "copy"])):  # the smaller ones are turned
        x, ct = tf.TensorSpec((2, 19, size, size)), tf.TensorSpec((2, 35, size, size))
        for lines in (steps(convolve, x, filters), steps(for_images, x, filters, ct)):
            assert [step.split(" = ")[1][:4] for step in lines] == kinds
