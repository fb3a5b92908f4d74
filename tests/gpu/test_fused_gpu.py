"""Kernels of fused groups for GPUs in lockstep: of several chunks, of unknown sizes, with edges, side by side.

The op table runs through their text in `test_ops.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpu_reference import check, kernels

import twofold as tf

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "map": lambda x: (tf.tanh(x) + tf.reverse(x, [1]), tf.transpose(x) * 2),
    "rows": lambda x: tf.reduce_sum(x * x, 1),
    "columns": lambda x: (tf.reduce_sum(x * 2, 0), tf.reduce_max(x, 0)),
    "all": lambda x: tf.reduce_sum(tf.exp(x)),
    "passes": lambda x: (x - tf.reduce_mean(x, 1, keepdims=True)) * tf.math.rsqrt(
        tf.reduce_mean(tf.square(x), 1, keepdims=True) + 1e-3) + x[0],
    "softmax written out": lambda x: tf.exp(x - tf.reduce_max(x, 1, keepdims=True)) / tf.reduce_sum(
        tf.exp(x - tf.reduce_max(x, 1, keepdims=True)), 1, keepdims=True),
    "arguments": lambda x: (tf.argmax(x, 0), tf.argmin(x, 1)),
    "complex": lambda x: tf.reduce_sum(tf.complex(x, x * 2), 0),
    "halves": lambda x: (tf.reduce_sum(tf.cast(x, tf.bfloat16), 0), tf.reduce_mean(tf.cast(x, tf.float16), 1)),
    "sums that maps store, too": lambda x: (y := x * 3, tf.reduce_sum(y, 0), tf.reduce_sum(y, 1)),
}
SHAPES = [(1, 1), (3, 5), (40, 33), (9, 128), (4200, 3), (2, 9000), (70, 8)]


def some(shape: tuple[int, ...]) -> tf.Tensor:
    return tf.constant(np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32))


@pytest.mark.parametrize("known", [True, False], ids=["known sizes", "unknown sizes"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits(name: str, known: bool) -> None:
    for shape in SHAPES:
        check(FUNCTIONS[name], [some(shape)], None if known else [[None, None]])


@pytest.mark.parametrize("axes", [(0, 2), (1,), (0,), (2,), (1, 3), (0, 1, 2, 3), (3,)])
def test_axes(axes: tuple[int, ...]) -> None:
    check(lambda x: tf.reduce_sum(tf.transpose(x, [1, 0, 3, 2]) * x[0, 0], axes), [some((5, 5, 12, 12))])


@pytest.mark.parametrize("known", [True, False], ids=["known sizes", "unknown sizes"])
@pytest.mark.parametrize("count", [4096 * 65 + 5, 4096 * 100, 1 << 20])
def test_many_chunks(known: bool, count: int) -> None:
    """Blocks of threads join what chunks give, with partners and without."""
    def f(x: Any) -> Any:
        return tf.reduce_sum(x * 2), tf.reduce_logsumexp(x), tf.argmax(x)
    x = some((count,))
    plan = check(f, [x], None if known else [[None]])
    assert any("blocks" in kernel.name for kernel in kernels(plan))


def test_who_runs_an_iteration() -> None:
    """Threads of maps are alone, rows have warps, and columns blocks."""
    teams = {name: [kernel.team for kernel in kernels(check(FUNCTIONS[name], [some((40, 64))]))]
             for name in ("map", "rows", "columns", "passes")}
    assert set(teams["map"]) == {1} and teams["rows"] == [32] and teams["columns"] == [256] and 32 in teams["passes"]
