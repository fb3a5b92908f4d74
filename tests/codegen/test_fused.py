"""Fused kernels: random programs of maps, reductions, views and copies give the bits of eager execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compiled import assert_same_bits, compiled
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold as tf
from twofold.ir import ops
from twofold.runtime import threads

DTYPES = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.complex64, np.bool_, np.int8, np.uint32, np.int64)
SIZES = (1, 2, 3, 5, 8, 33)


def values(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray:
    """Numbers with some zeros, infinities and NaNs among the floats."""
    rng, kind = np.random.default_rng(seed), np.dtype(dtype)
    x = rng.standard_normal(shape) * 3
    if kind == np.bool_:
        return x > 0
    if kind.kind in "iu":
        return (np.abs(x) * 9).astype(dtype)
    special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape)
    x = np.where(rng.random(shape) < 0.02, special, x)
    return (x + 1j * rng.standard_normal(shape)).astype(dtype) if kind.kind == "c" else x.astype(dtype)


# -- random programs ----------------------------------------------------------------------------------
class Writer:
    """Draws a program step by step; its values are described by shape, and it is a list of functions of values."""

    def __init__(self, draw: Any, dtype: Any, shape: tuple[int, ...]) -> None:
        self.draw, self.dtype = draw, np.dtype(dtype)
        self.shapes = [shape]
        self.steps: list[tuple[Callable[..., Any], tuple[int, ...]]] = []

    def add(self, fn: Callable[..., Any], *operands: int) -> None:
        shape = tuple(fn(*[tf.zeros(self.shapes[n], tf.as_dtype(self.dtype)) for n in operands]).shape)
        self.shapes.append(shape)
        self.steps.append((fn, operands))

    def pick(self, least: int = 0) -> int:
        fit = [n for n, s in enumerate(self.shapes) if len(s) >= least]
        return self.draw(st.sampled_from(fit)) if fit else -1

    def step(self) -> None:
        getattr(self, self.draw(st.sampled_from(("unary", "binary", "reduce", "view", "join", "rows"))))()

    def unary(self) -> None:
        if self.dtype == np.bool_:
            self.add(ops.logical_not, self.pick())
            return
        real = self.dtype.kind not in "iuc"
        names = ("negative", "square", *(("exp", "tanh", "abs") if real else ()))
        name = self.draw(st.sampled_from(names if self.dtype.kind != "u" else ("square",)))
        self.add(getattr(ops, name), self.pick())

    def binary(self) -> None:
        a = self.pick()
        same = [n for n, s in enumerate(self.shapes) if s == self.shapes[a] or not s or (
            s == (*self.shapes[a][:-1], 1) and s)]
        b = self.draw(st.sampled_from(same))
        if self.dtype == np.bool_:
            self.add(ops.logical_xor, a, b)
        else:
            names = ("add", "multiply", "subtract", *(("maximum",) if self.dtype.kind != "c" else ()))
            self.add(getattr(ops, self.draw(st.sampled_from(names))), a, b)

    def axes(self, rank: int) -> tuple[int, ...]:
        return tuple(self.draw(st.sets(st.integers(0, rank - 1), min_size=1)))

    def reduce(self) -> None:
        n = self.pick(1)
        if n < 0:
            return
        axes, keep = self.axes(len(self.shapes[n])), self.draw(st.booleans())
        if self.dtype == np.bool_:
            self.add(lambda x: tf.reduce_any(x, axes, keep), n)
            return
        fits = (("sum", "max", "mean", "logsumexp") if self.dtype.kind not in "iuc" else
                ("sum", "prod") if self.dtype.kind == "c" else ("sum", "max"))
        fn = getattr(tf, f"reduce_{self.draw(st.sampled_from(fits))}")
        self.add(lambda x: fn(x, axes, keep), n)

    def rows(self) -> None:
        """What a normalisation of rows consists of."""
        n = self.pick(1)
        if n >= 0 and self.dtype.kind not in "iucb":
            self.add(lambda x: tf.exp(x - tf.reduce_max(x, -1, True)), n)
            self.add(lambda x: x / tf.reduce_sum(x, -1, keepdims=True), len(self.shapes) - 1)

    def view(self) -> None:
        n = self.pick(1)
        if n < 0:
            return
        rank = len(self.shapes[n])
        kind = self.draw(st.sampled_from(("transpose", "reverse", "slice", "flat", "repeat")))
        if kind == "transpose":
            perm = self.draw(st.permutations(range(rank)))
            self.add(lambda x: tf.transpose(x, perm), n)
        elif kind == "reverse":
            axes = self.axes(rank)
            self.add(lambda x: tf.reverse(x, axes), n)
        elif kind == "slice":
            step = self.draw(st.sampled_from((1, 2, -1, -2)))
            self.add(lambda x: x[..., ::step], n)
        elif kind == "flat":
            self.add(lambda x: tf.reshape(x, (-1,)), n)
        else:
            self.add(lambda x: tf.broadcast_to(x[:1], tf.shape(x)), n)

    def join(self) -> None:
        n = self.pick(1)
        if n >= 0 and np.prod(self.shapes[n]) < 4000:
            self.add(lambda x: tf.concat([x, x[::-1]], 0), n)

    def program(self) -> Callable[[Any], Any]:
        steps, count = self.steps, len(self.steps)
        wanted = self.draw(st.sets(st.integers(0, count), min_size=1, max_size=3)) | {count}

        def run(x: Any) -> Any:
            made = [x]
            for fn, operands in steps:
                made.append(fn(*[made[n] for n in operands]))
            return [made[n] for n in sorted(wanted)]
        return run


@st.composite
def programs(draw: Any) -> tuple[Callable[[Any], Any], np.ndarray]:
    dtype = draw(st.sampled_from(DTYPES))
    shape = tuple(draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=4)))
    writer = Writer(draw, dtype, shape)
    for _ in range(draw(st.integers(1, 8))):
        writer.step()
    return writer.program(), values(shape, dtype, draw(st.integers(0, 99)))


@given(programs())
@settings(max_examples=60)
def test_random_programs(drawn: Any) -> None:
    fn, x = drawn
    assert_same_bits(fn, [x])


@given(programs())
@settings(max_examples=25)
def test_random_programs_of_unknown_sizes(drawn: Any) -> None:
    fn, x = drawn
    assert_same_bits(fn, [x], [[None] * x.ndim], native=False)


# -- shapes that kernels treat apart ------------------------------------------------------------------
def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (3,), (0, 2), (1, 3), (0, 1, 3), (0, 3), (0, 1, 2), (1, 2, 3)])
@pytest.mark.parametrize("shape", [(3, 5, 4, 70), (40, 3, 50, 2), (2, 3, 0, 4), (1, 33, 1, 9), (30, 2, 3, 333)])
def test_reductions_over_any_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    assert_same_bits(lambda x: (tf.reduce_sum(x * 2, axes), tf.reduce_max(x, axes), tf.reduce_mean(x, axes, True)),
                     [numbers(*shape)])


@pytest.mark.parametrize("perm", [(1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize("shape", [(3, 4, 5), (70, 33, 40), (1, 65, 130)])
def test_transposes_in_maps(shape: tuple[int, ...], perm: tuple[int, ...]) -> None:
    x = numbers(*shape)
    assert_same_bits(lambda x: tf.transpose(x, perm) * 2 + 1, [x])
    assert_same_bits(lambda x, y: tf.transpose(x, perm) + y, [x, np.ascontiguousarray(x.transpose(perm))])
    assert_same_bits(lambda x: tf.transpose(x, perm) * 2, [x], [[None] * 3])


@pytest.mark.parametrize("channels", [2, 3, 4, 5])
def test_few_channels_that_come_first_are_turned(channels: int) -> None:
    x = numbers(2, channels, 37, 29)
    (moved, scaled), _ = compiled(lambda x: (tf.transpose(x, [0, 2, 3, 1]), tf.transpose(x[1], [1, 2, 0]) * 2), [x])
    np.testing.assert_array_equal(moved, x.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(scaled, x[1].transpose(1, 2, 0) * 2)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_number_of_threads_changes_no_bit(count: int) -> None:
    before = threads.get_num_threads()
    threads.set_num_threads(count)
    x = numbers(300, 1000)
    try:
        assert_same_bits(lambda x: (tf.reduce_sum(x * x), tf.reduce_sum(tf.exp(x), 0), tf.transpose(x) * 2,
                                    tf.exp(x - tf.reduce_max(x, 1, True)), tf.reduce_logsumexp(x)), [x])
    finally:
        threads.set_num_threads(before)


def test_parts_of_results_are_written_where_they_belong() -> None:
    """Parts that the kernel of their operands writes, and operands that are still needed afterwards."""
    x = numbers(6, 5)

    def f(x: Any) -> Any:
        doubled = x * 2
        joined = tf.concat([doubled, doubled + 1, x[::-1]], 1)
        return joined, doubled - 1, tf.pad(tf.concat([joined, joined], 0)[1:3], [[1, 1], [0, 2]]) * 2
    assert_same_bits(f, [x])
    assert_same_bits(f, [x], [[None, None]])


def test_a_failed_check_in_a_fused_kernel_names_the_line() -> None:
    x = np.array([4, 0, 2], np.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="test_fused.py"):
        compiled(lambda x: tf.math.floordiv(x * 2, x) + 1, [x])
