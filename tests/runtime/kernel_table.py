"""What a process computes with library kernels, as bits: products and convolutions with their gradients, op by op and
compiled, on one to three threads. `test_generated.py` runs it in one tier and in the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf

SPECIAL = [np.nan, np.inf, -0.0, 1e-40, 1e30]
PRODUCTS = [  # shapes of the operands, and whether they are transposed
    ((1, 5), (5, 7), False, False), ((20, 33), (33, 45), False, False), ((33, 20), (33, 45), True, False),
    ((20, 33), (45, 33), False, True), ((33, 20), (45, 33), True, True), ((1, 300), (300, 500), False, False),
    ((1, 300), (500, 300), False, True), ((500, 300), (300, 1), False, False), ((3, 4, 5), (3, 5, 6), False, False),
    ((2, 1, 40, 30), (5, 30, 9), False, False), ((200, 300), (300, 210), False, False), ((4, 0), (0, 5), False, False),
    ((0, 4), (4, 5), False, False),
]
CONVOLUTIONS = [  # images, filters, strides, dilations, paddings
    ((2, 9, 8, 5), (3, 2, 5, 20), 1, 1, ("VALID", "SAME")), ((2, 12, 11, 3), (3, 3, 3, 70), (2, 1), 1, ("SAME",)),
    ((1, 7, 7, 130), (3, 3, 130, 40), 1, 1, ("VALID",)), ((2, 12, 13, 3), (3, 3, 3, 17), 1, (1, 2), ("SAME",)),
    ((2, 6, 6, 37), (3, 3, 37, 100), 1, 1, ("SAME",)), ((9, 40, 30, 2), (3, 3, 2, 2), 1, 1, ("VALID",)),
    ((2, 8, 7, 12), (3, 3, 4, 18), 1, 1, ("SAME",)), ((2, 5, 35, 20), (3, 3, 20, 40), 1, 1, ("VALID",)),
    ((2, 9, 21, 28), (3, 3, 4, 28), 1, 1, ("SAME",)), ((2, 4, 4, 16), (1, 1, 16, 16), 1, 1, ("VALID",)),
]


def drawn(seed: int, shape: tuple[int, ...], dtype: Any, special: bool) -> Any:
    """A tensor, some of whose numbers are special."""
    rng = np.random.default_rng(seed)
    if dtype.is_integer:
        return tf.cast(tf.constant(rng.integers(-100, 100, shape)), dtype)
    x = rng.normal(size=shape)
    if special and x.size:
        x.reshape(-1)[rng.integers(0, x.size, 2)] = rng.choice(SPECIAL, 2)
    return tf.cast(tf.constant(x), dtype)


def products() -> list[Any]:
    """Of all dtypes that kernels take."""
    results = []
    for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int32, tf.int64):
        for n, (first, second, flip, flop) in enumerate(PRODUCTS):
            x, y = drawn(n, first, dtype, n % 2 == 0), drawn(n + 50, second, dtype, False)
            results.append(tf.matmul(x, y, transpose_a=flip, transpose_b=flop))
    return results


def convolutions() -> list[Any]:
    """And their gradients."""
    results = []
    for dtype in (tf.float32, tf.float64):
        for n, (images, filters, strides, dilations, paddings) in enumerate(CONVOLUTIONS):
            for padding in paddings:
                x, w = drawn(n, images, dtype, n % 3 == 0), drawn(n + 50, filters, dtype, False)
                with tf.GradientTape() as tape:
                    tape.watch([x, w])
                    y = tf.nn.conv2d(x, w, strides, padding, dilations=dilations)
                    loss = tf.reduce_sum(y * tf.cast(tf.range(y.shape[-1]), dtype))
                results += [y, *tape.gradient(loss, [x, w])]
    for padding in ("VALID", "SAME"):
        x, w = drawn(1, (2, 9, 10, 6), tf.float32, False), drawn(2, (3, 3, 6, 2), tf.float32, False)
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], padding)
        results += [y, *tape.gradient(y, [x, w])]
    return results


def bits(results: list[Any]) -> list[bytes]:
    """With one NaN for all: its sign and payload are not specified."""
    arrays = [tf.cast(r, tf.float64).numpy() for r in results]
    return [np.where(np.isnan(a), np.nan, a).tobytes() for a in arrays]


def everything(compiled: list[Callable[[], list[Any]]]) -> list[list[bytes]]:
    """The bits of all of it; `compiled` keeps the functions for the next time."""
    if not compiled:
        compiled += [tf.function(products), tf.function(convolutions)]
    kept = []
    for threads in (1, 2, 3):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        kept.append(bits([*products(), *convolutions()]))
    kept.append(bits([r for function in compiled for r in function()]))
    return kept
