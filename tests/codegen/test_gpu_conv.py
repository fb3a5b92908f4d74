"""Convolutions and their gradients on a GPU, in lockstep: the bits of the processor's, and what the assembler says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpu_reference
import numpy as np
import pytest
from ptx_checks import clean

import twofold as tf
from twofold.codegen import gpu_conv, loop_verify
from twofold.codegen.gpu_gemm import SHAPES
from twofold.codegen.gpu_tile import TileShape
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType


def tensor(seed: int, *shape: int, dtype: Any = tf.float32) -> tf.Tensor:
    return tf.cast(np.random.default_rng(seed).normal(size=shape), dtype)


def check(image: tuple[int, ...], filters: tuple[int, ...], dtype: Any = tf.float32, dims: list[Any] | None = None,
          strides: Any = 1, padding: Any = "SAME", dilations: Any = None) -> list[str]:
    """Requires the processor's bits of a convolution and of both gradients; the names of the kernels."""
    def convolved(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = tf.nn.convolution(x, w, strides, padding, dilations=dilations)
            loss = tf.reduce_sum(y * tf.cast(tf.sin(tf.cast(y, tf.float32)), y.dtype))
        return y, *tape.gradient(loss, [x, w])

    plan = gpu_reference.check(convolved, [tensor(0, *image, dtype=dtype), tensor(1, *filters, dtype=dtype)], dims)
    return [kernel.name for kernel in gpu_reference.kernels(plan)]


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.bfloat16, tf.float16], ids=lambda d: d.name)
@pytest.mark.parametrize("channels", [3, 8])
def test_dtypes(dtype: Any, channels: int) -> None:
    check((2, 5, 6, channels), (3, 3, channels, 5), dtype)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("strides", "dilations"), [((2, 1), None), ((2, 3), None), (1, (2, 1)), (1, (3, 2))], ids=str)
def test_strides_dilations_and_padding(strides: Any, dilations: Any, padding: str) -> None:
    check((2, 9, 10, 4), (3, 2, 4, 5), strides=strides, dilations=dilations, padding=padding)


def test_strides_past_the_window() -> None:
    """No tap falls on some pixels, whose gradients are 0."""
    check((1, 9, 9, 4), (2, 1, 4, 4), strides=(3, 2), padding="VALID")


@pytest.mark.parametrize(("image", "filters"), [((2, 20, 4), (5, 4, 6)), ((1, 4, 5, 6, 4), (2, 3, 2, 4, 3))], ids=str)
def test_ranks(image: tuple[int, ...], filters: tuple[int, ...]) -> None:
    check(image, filters)
    check(image, filters, strides=2)


@pytest.mark.parametrize(("groups", "inner"), [(2, 4), (3, 5)])
def test_groups(groups: int, inner: int) -> None:
    check((2, 5, 5, groups * inner), (3, 3, inner, groups * 4))
    check((2, 5, 5, groups * inner), (3, 3, inner, groups * 2), strides=2)


def test_each_pixel_alone() -> None:
    check((2, 4, 5, 8), (1, 1, 8, 12))
    check((2, 4, 5, 8), (1, 1, 8, 12), strides=2)


def test_windows_of_more_than_one_block() -> None:
    """They are parted, and the parts added up."""
    assert "joined f32" in check((1, 4, 4, 64), (3, 3, 64, 4))


def test_shares_of_filters() -> None:
    assert "add_up f32" in check((3, 54, 54, 2), (2, 2, 2, 3))


def test_padding_counts() -> None:
    """A zero of the padding is multiplied by the filter, which may be infinite."""
    x, w = np.ones((1, 3, 3, 4), np.float32), np.ones((3, 3, 4, 2), np.float32)
    w[0, 0, 0, 0] = np.inf
    given = [tf.constant(x), tf.constant(w)]
    want = tf.nn.conv2d(*given, 1, "SAME").numpy()
    assert np.isnan(want).any() and not np.isnan(want).all()
    (got,), _ = gpu_reference.interpreted(lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), given)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("strides", [1, 2])
def test_filters_of_one_channel_each(strides: int, multiplier: int, known: bool) -> None:
    def convolved(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = tf.nn.depthwise_conv2d(x, w, [1, strides, strides, 1], "SAME")
            loss = tf.reduce_sum(y * tf.sin(y))
        return y, *tape.gradient(loss, [x, w])
    plan = gpu_reference.check(convolved, [tensor(0, 2, 6, 7, 5), tensor(1, 3, 3, 5, multiplier)],
                               None if known else [[None, 6, 7, 5], [3, 3, 5, multiplier]])
    gpu_reference.kernels(plan)


def test_unknown_sizes() -> None:
    check((2, 7, 6, 4), (3, 3, 4, 5), dims=[[None, None, None, 4], [3, 3, 4, 5]])
    check((2, 8, 6, 4), (3, 3, 4, 5), dims=[[None, 8, 6, 4], [3, 3, 4, 5]], strides=2)


# -- code -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("number", "dtype", "architecture"),
                         [*[(n, (dt.float32, dt.float64)[n % 2], "sm_90") for n in range(6)], (0, dt.float64, "sm_75")],
                         ids=lambda v: getattr(v, "name", v))
def test_kernels_assemble(number: int, dtype: DType, architecture: str, tmp_path: Path) -> None:
    shape: TileShape = SHAPES[dtype.size][number % len(SHAPES[dtype.size])]
    if number in (1, 2):  # one tile of each dtype for channels that fill vectors, and the others for all else
        table = {"forward": gpu_conv.forward(dtype, shape, (1, 3, 3), True, False),
                 "filters": gpu_conv.filters(dtype, shape, (1, 3, 3), True)}
    else:
        table = {"forward_parts": gpu_conv.forward(dtype, shape, (3, 3, 3), False, True),
                 "filters_odd": gpu_conv.filters(dtype, shape, (3, 3, 3), False)}
    if not number:  # whose tiles are their own
        table |= {build.__name__: build(dtype) for build in (gpu_conv.depthwise, gpu_conv.depthwise_input_grad,
                                                            gpu_conv.depthwise_filter_grad)}
    for kernel in table.values():
        loop_verify.verify(kernel)
    _, registers = clean(table, tmp_path, architecture)
    assert max(registers) * shape.threads <= 65536
