"""Gradients wherever tapes and decorators stand: what tests of their order share (docs/numerics.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf

__all__ = ["Function", "assert_bits", "compiled", "derived", "numbers", "placements", "two_placements"]

Function = Callable[..., Any]


def numbers(count: int = 300, seed: int = 0) -> tf.Tensor:
    """A vector of random numbers."""
    return tf.constant(np.random.default_rng(seed).normal(size=count).astype(np.float32))


def compiled(f: Function) -> Function:
    """`f` as a `tf.function` that must be traced."""
    return tf.function(f, fallback=False)


def derived(f: Function, order: int = 1, persistent: bool = False) -> Function:
    """The gradient of the sum of `f` by its first argument, taken `order` times; other arguments are only handed on."""
    def gradient(b: tf.Tensor, *others: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(b)
            y = f(b, *others)
        return tape.gradient(y, b)
    return derived(gradient, order - 1, persistent) if order else f


def placements(f: Function, order: int) -> list[Function]:
    """The gradient of an order with `tf.function` around `f`, around each gradient of a lower order, around all, and
    around `f` and all."""
    every = [derived(compiled(derived(f, n)), order - n) for n in range(order + 1)]
    return [*every, compiled(derived(compiled(f), order))]


def two_placements(f: Function, number: int) -> list[Function]:
    """The first derivative with `tf.function` around `f`, and around all or around both, in turns by the number."""
    around, *others = placements(f, 1)
    return [around, others[number % 2]]


def assert_bits(results: Any, wanted: Any) -> None:
    """Require the same tensors to the bit."""
    for a, b in zip(tf.nest.flatten(results), tf.nest.flatten(wanted), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()
