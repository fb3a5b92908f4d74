"""The native entry that reduces a small tensor to one element: the bits of the plain path, and its gradients."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf
from twofold.eager.entries import ENTRIES
from twofold.ir import ops
from twofold.ir.op import REGISTRY, apply

TOTALS = sorted(n for n, op in REGISTRY.items() if op.reduction is not None and op in ENTRIES)


def test_the_usual_reductions_have_one() -> None:
    assert {"reduce_sum", "reduce_mean", "reduce_max", "reduce_all"} <= set(TOTALS)


@pytest.mark.parametrize("name", TOTALS)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (33,), (5, 13), (4096,), (4097,), (2, 3, 0)])
def test_bits_are_those_of_the_door(name: str, shape: tuple[int, ...]) -> None:
    op = REGISTRY[name]
    for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int32, tf.bool):
        x = tf.cast(np.random.default_rng(0).normal(size=shape) * 3, dtype)
        try:
            expected = apply(op, (x,), {}).numpy()
        except tf.errors.InvalidArgumentError:
            continue  # the op does not take this dtype
        for _ in range(2):  # the first call may teach the entry its kernel, the second uses it
            got = op(x).numpy()
            assert got.dtype == expected.dtype
            assert got.tobytes() == expected.tobytes() or (got != got and expected != expected)


def test_gradients_pass_through_it() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    for _ in range(2):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(x * x * x)
            first = inner.gradient(y, x)
            total = ops.reduce_sum(first)
        assert first.numpy().tolist() == [3.0, 12.0, 27.0]
        assert outer.gradient(total, x).numpy().tolist() == [6.0, 12.0, 18.0]
