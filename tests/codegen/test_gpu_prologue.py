"""Prologues of products and convolutions on a GPU, in lockstep: the bits of the ops one by one, and fewer kernels."""

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


def widened(x: Any, w: Any) -> Any:
    return tf.cast(x, tf.float32) @ w


def positive(x: Any, w: Any) -> Any:
    return tf.nn.relu(x) @ (w * 0.5)


def masked(x: Any, w: Any) -> Any:
    """A gradient behind relu, by what went into that."""
    return tf.where(x > 0, x * 2, 0.0) @ w


# rows, inner and columns: tiles of every kind, edges, vectors that are aligned or not, and parts that are joined
SIZES = [(3, 5, 7), (33, 20, 64), (130, 9, 132), (5, 300, 6), (40, 1030, 36), (2, 7, 1), (1, 40, 9), (64, 0, 8)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sizes(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    x, w, parts = tensor(0, m, k), tensor(1, k, n), k > 512
    check(widened, tf.cast(x, tf.bfloat16), w, steps=1 + parts)
    check(positive, x, w, steps=1 + parts)
    check(masked, x, w, steps=1 + parts)
    exact = np.maximum(x.numpy().astype(np.float64), 0) @ w.numpy() * 0.5
    np.testing.assert_allclose(positive(x, w).numpy(), exact, atol=1e-4)


@pytest.mark.parametrize("dtype", [tf.float64, tf.float16, tf.bfloat16, tf.int32], ids=lambda d: d.name)
def test_dtypes(dtype: Any) -> None:
    """16-bit floats are rounded where their map would round them."""
    x, w = tf.cast(tensor(0, 20, 8) * 4, dtype), tf.cast(tensor(1, 8, 36) * 4, dtype)
    check(lambda x, w: tf.nn.relu(x * 3) @ (w + 1), x, w, steps=1)
    check(lambda x, w: tf.matmul(x, w * 3, transpose_a=True), tf.transpose(x), w, steps=1)


def test_gradients_of_a_layer() -> None:
    """The mask of relu is in the products that read what it masks, which are two: it stays a map; with one it does not.
    """
    def f(ct: Any, y: Any, w: Any) -> Any:
        return tf.matmul(ct * tf.cast(y > 0, tf.float32), w, transpose_b=True)
    check(f, tensor(0, 33, 6), tensor(1, 33, 6), tensor(2, 5, 6), steps=1)

    def both(ct: Any, y: Any, w: Any, x: Any) -> Any:
        through = ct * tf.cast(y > 0, tf.float32)
        return tf.matmul(through, w, transpose_b=True), tf.matmul(x, through, transpose_a=True)
    check(both, tensor(0, 33, 6), tensor(1, 33, 6), tensor(2, 20, 6), tensor(3, 33, 20), steps=3)


def test_what_stays_a_map() -> None:
    """What takes many instructions, what others read, and what reads more than it saves."""
    x, w = tensor(0, 33, 6), tensor(1, 6, 20)
    check(lambda x, w: tf.tanh(x) @ w, x, w, steps=2)
    check(lambda x, w: (y := tf.nn.relu(x), y @ w), x, w, steps=2)
    check(lambda x, w: (y := tf.nn.relu(x)) @ w + tf.reduce_sum(y), x, w, steps=2)
    check(lambda x, w: (y := x * 2) @ tf.transpose(y), x, w, steps=2)
    check(lambda x, y, w: (x * y) @ w, x, x + 1, tensor(2, 6, 5), steps=1)
    check(lambda x, y, w: (x * y) @ w, x, x + 1, w, steps=2)
    check(lambda x, y, w: (x * y) @ w, x, x + 1, w, steps=2, dims=[[None, 6], [None, 6], [6, None]])
    check(lambda x, b, w: (x + b) @ w, x, tensor(2, 6), w, steps=2)


def test_scalars_and_single_elements() -> None:
    """Sizes and scalars, which are arguments beside those of an epilogue."""
    def sized(x: Any, w: Any, bias: Any) -> Any:
        return (x * tf.shape(x)[0]) @ w * tf.shape(w)[1] + bias
    operands = [tensor(0, 33, 6, dtype=tf.int32), tensor(1, 6, 20, dtype=tf.int32), tensor(2, 20, dtype=tf.int32)]
    kernels = check(sized, *operands, steps=1, dims=[[None, 6], [6, None], [None]])
    assert kernels[0].name.startswith("multiply then product") and kernels[0].name.endswith("then multiply_add")
    x, w, scale = tensor(0, 33, 6), tensor(1, 6, 20), tensor(2, 1, 1)
    check(lambda x, w, s: (x * s) @ w, x, w, scale, steps=1)
    check(lambda x, w, s: (x * s[0, 0]) @ w, x, w, scale, steps=1)


def test_batches_and_unknown_sizes() -> None:
    check(positive, tensor(0, 2, 3, 20, 8), tensor(1, 2, 3, 8, 12), steps=1)
    check(positive, tensor(0, 33, 6), tensor(1, 6, 20), steps=1, dims=[[None, 6], [6, None]])
    check(widened, tensor(0, 33, 6, dtype=tf.float16), tensor(1, 6, 20), steps=1, dims=[[None, None], [None, None]])


def test_before_and_behind() -> None:
    """A product with both: their operands and results lie in memory of their own."""
    def f(x: Any, w: Any, bias: Any) -> Any:
        return tf.nn.relu(tf.nn.relu(x) @ (w * 2) + bias + x[:, :1])
    check(f, tensor(0, 33, 20), tensor(1, 20, 20), tensor(2, 20), steps=1)

    def deeper(x: Any, w: Any, bias: Any, v: Any) -> Any:
        return tf.nn.relu(f(x, w, bias)) @ (v + 1)
    check(deeper, tensor(0, 33, 20), tensor(1, 20, 20), tensor(2, 20), tensor(3, 20, 9), steps=2)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("strides", "padding"), [(1, "SAME"), (2, "VALID")])
def test_convolutions(strides: int, padding: str, groups: int) -> None:
    """Padding is zeros, whatever the map makes of zeros."""
    x, w = tensor(0, 2, 7, 9, 4), tensor(1, 3, 3, 4 // groups, 10)

    def f(x: Any, w: Any) -> Any:
        return tf.nn.conv2d(x + 1, w * 2, strides, padding)
    check(f, x, w, steps=1)
    check(f, *[tf.cast(t, tf.bfloat16) for t in (x, w)], steps=1)
    check(f, x, w, steps=1, dims=[[None, None, None, 4], w.shape])


def test_gradients_of_convolutions() -> None:
    def f(x: Any, w: Any, ct: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_sum(tf.nn.conv2d(tf.cast(x, tf.float32), w, 1, "SAME") * ct)
        return tape.gradient(loss, w)
    x, w, ct = tensor(0, 2, 7, 9, 4, dtype=tf.float16), tensor(1, 3, 3, 4, 10), tensor(2, 2, 7, 9, 10)
    kernels = check(f, x, w, ct, steps=1)
    assert "cast then" in kernels[0].name


@pytest.mark.parametrize("sizes", [(64, 64, 64), (4096, 4096, 4096), (4096, 4096, 1)], ids=str)
def test_kernels_assemble(sizes: tuple[int, int, int], tmp_path: Path) -> None:
    """No registers are spilled beside those of the largest tiles."""
    m, k, n = sizes
    plans = []
    for f, dtype in ((widened, tf.bfloat16), (positive, tf.float32), (masked, tf.float32), (positive, tf.float64)):
        other = tf.float32 if f is widened else dtype
        plans.append(gpu_reference.planned(f, [tf.TensorSpec([m, k], dtype), tf.TensorSpec([k, n], other)]))
    if n == 64:
        image, window = tf.TensorSpec([8, 32, 32, 64], tf.bfloat16), tf.TensorSpec([3, 3, 64, 128], tf.bfloat16)
        plans.append(gpu_reference.planned(lambda x, w: tf.nn.relu(tf.nn.conv2d(x, w, 1, "SAME")), [image, window]))
    table = {f"kernel_{n}_{i}": kernel for n, plan in enumerate(plans)
             for i, kernel in enumerate(gpu_reference.kernels(plan))}
    clean(table, tmp_path)
