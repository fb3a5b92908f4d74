"""Epilogues of products and convolutions on a GPU, in lockstep: the bits of the ops one by one, and fewer kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpu_reference
import numpy as np
import pytest
from gpu_reference import check_steps as check
from gpu_reference import tensor
from ptx_checks import clean

import twofold as tf


def dense(x: Any, w: Any, bias: Any) -> Any:
    return tf.nn.relu(tf.matmul(x, w) + bias)


def residual(x: Any, w: Any, bias: Any, y: Any) -> Any:
    return tf.matmul(x, w) * 0.5 + bias + y


# rows, inner and columns: tiles of every kind, edges, vectors that are aligned or not, and parts that are joined
SIZES = [(3, 5, 7), (33, 20, 64), (130, 9, 132), (5, 300, 6), (40, 1030, 36), (2, 7, 1), (64, 0, 8)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sizes(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    x, w, bias, y = tensor(0, m, k), tensor(1, k, n), tensor(2, n), tensor(3, m, n)
    parts = k > 512
    check(dense, x, w, bias, steps=1 + parts)
    check(residual, x, w, bias, y, steps=1 + parts)
    exact = np.maximum(x.numpy().astype(np.float64) @ w.numpy() + bias.numpy(), 0)
    np.testing.assert_allclose(dense(x, w, bias).numpy(), exact, atol=1e-4)


@pytest.mark.parametrize("dtype", [tf.float64, tf.float16, tf.bfloat16, tf.int32], ids=lambda d: d.name)
def test_dtypes(dtype: Any) -> None:
    """Of 16-bit floats, the cast of the sums is part of the epilogue."""
    x, w, bias = tensor(0, 20, 8) * 4, tensor(1, 8, 36) * 4, tensor(2, 36) * 4
    operands = [tf.cast(t, dtype) for t in (x, w, bias)]
    check(lambda x, w, b: tf.matmul(x, w) + b if dtype is tf.int32 else dense(x, w, b), *operands, steps=1)
    check(lambda x, w: tf.cast(tf.matmul(x, w), tf.float64), *operands[:2], steps=1)


def test_what_others_need_is_stored() -> None:
    def f(x: Any, w: Any, bias: Any) -> Any:
        y = tf.matmul(x, w)
        return y, tf.nn.relu(y + bias), y - bias
    check(f, tensor(0, 33, 6), tensor(1, 6, 20), tensor(2, 20), steps=1)


def test_batches_rows_and_unknown_sizes() -> None:
    x, w, scale = tensor(0, 2, 3, 20, 8), tensor(1, 2, 3, 8, 12), tensor(2, 2, 1, 20, 1)
    check(lambda x, w, s: tf.matmul(x, w) * s, x, w, scale, steps=1)
    check(dense, tensor(0, 33, 6), tensor(1, 6, 20), tensor(2, 20), steps=1, dims=[[None, 6], [6, 20], [20]])
    check(dense, tensor(0, 3, 20, 6), tensor(1, 6, 20), tensor(2, 20), steps=1, dims=[[None, None, 6], [6, 20], [20]])


def test_gradients_of_a_layer() -> None:
    def f(x: Any, w: Any, bias: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, w, bias])
            loss = tf.reduce_sum(dense(x, w, bias) ** 2)
        return tape.gradient(loss, [x, w, bias])
    gpu_reference.check(f, [tensor(0, 33, 6), tensor(1, 6, 20), tensor(2, 20)])


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("strides", "padding"), [(1, "SAME"), (2, "VALID")])
def test_convolutions(strides: int, padding: str, groups: int) -> None:
    x, w, bias = tensor(0, 2, 7, 9, 4), tensor(1, 3, 3, 4 // groups, 10), tensor(2, 10)

    def f(x: Any, w: Any, bias: Any) -> Any:
        return tf.nn.relu(tf.nn.conv2d(x, w, strides, padding) + bias)
    check(f, x, w, bias, steps=1)
    check(f, *[tf.cast(t, tf.bfloat16) for t in (x, w, bias)], steps=1)  # which widens its operands as it loads them
    check(f, x, w, bias, steps=1, dims=[[None, None, None, 4], w.shape, [10]])


def test_convolutions_of_parts_and_of_single_pixels() -> None:
    def f(x: Any, w: Any, bias: Any) -> Any:
        return tf.nn.relu(tf.nn.conv2d(x, w, 1, "SAME") + bias)
    check(f, tensor(0, 1, 4, 4, 64), tensor(1, 3, 3, 64, 4), tensor(2, 4), steps=2)
    check(f, tensor(0, 2, 4, 5, 8), tensor(1, 1, 1, 8, 12), tensor(2, 12), steps=1)


@pytest.mark.parametrize("sizes", [(64, 64, 64), (4096, 4096, 4096)], ids=str)
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16], ids=lambda d: d.name)
def test_kernels_assemble(sizes: tuple[int, int, int], dtype: Any, tmp_path: Path) -> None:
    """No registers are spilled beside those of the largest tiles."""
    m, k, n = sizes
    specs = [tf.TensorSpec(s, dtype) for s in ([m, k], [k, n], [n], [m, n])]
    plans = [gpu_reference.planned(dense, specs[:3]), gpu_reference.planned(residual, specs)]
    table = {f"kernel_{n}_{i}": kernel for n, plan in enumerate(plans)
             for i, kernel in enumerate(gpu_reference.kernels(plan))}
    clean(table, tmp_path)
