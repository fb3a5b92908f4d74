"""Fused groups on a GPU, in lockstep: programs give the bits of eager execution on the processor. The op table runs in
`tests/gpu/test_ops.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpu_reference
import numpy as np
import pytest
from ptx_checks import clean

import twofold as tf
from twofold.codegen import gpu_reduce


def tensor(seed: int, *shape: int, dtype: Any = tf.float32) -> tf.Tensor:
    return tf.cast(np.random.default_rng(seed).normal(size=shape) * 3, dtype)


def softmax(x: Any) -> Any:
    e = tf.exp(x - tf.reduce_max(x, -1, keepdims=True))
    return e / tf.reduce_sum(e, -1, keepdims=True)


def layer_norm(x: Any) -> Any:
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(x - mean), -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-3), tf.squeeze(mean, -1)


DTYPES = [tf.float32, tf.float64, tf.bfloat16, tf.float16]
FUNCTIONS = {
    "map": lambda x: tf.tanh(x) * 2 + x,
    "turned": lambda x: tf.transpose(x) + 1,
    "broadcast": lambda x: x * x[:1] + x[:, :1],
    "slices": lambda x: x[1:, 1:] + x[:-1, :-1],
    "backward": lambda x: x[:, ::-1] * 2 + x[:, ::2][:, :1],
    "parts": lambda x: tf.concat([x * 2, x + 1], 1),
    "compared": lambda x: (x > 1, tf.where(x > 0, x, -x)),
    "softmax": softmax,
    "layer_norm": layer_norm,
    "rows": lambda x: (tf.reduce_sum(x * x, 1), tf.reduce_max(x, 1)),
    "columns": lambda x: (tf.reduce_sum(x * x, 0), tf.reduce_max(x, 0)),
    "all": lambda x: tf.reduce_mean(tf.abs(x)),
    "complex": lambda x: tf.reduce_sum(tf.complex(tf.cast(x, tf.float32), tf.cast(x, tf.float32) * 2), 0),
    "stored": lambda x: (y := x * 3, tf.reduce_sum(y, 0), tf.reduce_sum(y, 1)),
    "places": lambda x: (tf.argmax(x, 0), tf.argmin(x, 1)),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(9, 40), (7, 33), (70, 12)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, shape: tuple[int, int], dtype: Any) -> None:
    plan = gpu_reference.check(FUNCTIONS[name], [tensor(0, *shape, dtype=dtype)])
    if name in ("softmax", "layer_norm"):
        assert [kernel.team for kernel in gpu_reference.kernels(plan)] == [32]  # one kernel, of a warp a row


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dims", [[None, 40], [None, None]], ids=str)
def test_unknown_sizes(name: str, dims: list[Any]) -> None:
    gpu_reference.check(FUNCTIONS[name], [tensor(0, 9, 40)], [dims])


@pytest.mark.parametrize("axes", [(0, 2), (1,), (0,), (1, 3), (0, 1, 2, 3), (3,)], ids=str)
def test_axes(axes: tuple[int, ...]) -> None:
    gpu_reference.check(lambda x: tf.reduce_sum(tf.transpose(x, [1, 0, 3, 2]) * x[0, 0], axes),
                        [tensor(0, 5, 5, 12, 12)])


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("count", [4096 * 129 + 5, 4096 * 300])
def test_many_chunks(known: bool, count: int) -> None:
    """Blocks of threads join what chunks give, with partners and without."""
    plan = gpu_reference.check(lambda x: (tf.reduce_sum(x * 2), tf.reduce_logsumexp(x), tf.argmax(x)),
                               [tensor(0, count)], None if known else [[None]])
    assert any("tree by blocks" in kernel.name for kernel in gpu_reference.kernels(plan))


def test_several_chunks() -> None:
    gpu_reference.check(lambda x: (tf.reduce_sum(x), tf.reduce_logsumexp(x)), [tensor(0, 10000)])
    gpu_reference.check(lambda x: tf.reduce_sum(tf.sin(x), 0), [tensor(1, 5000, 9)])
    gpu_reference.check(lambda x: tf.reduce_sum(x, 0), [tensor(2, 4100, 2100)])  # a thread for each output's tree


def test_rows_of_ops_belong_to_warps() -> None:
    x, labels = tensor(0, 5, 70), tf.constant([0, 69, 3, 4, 5])
    for f, given in ((tf.nn.softmax, [x]), (tf.nn.log_softmax, [x]),
                     (lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(y, x), [x, labels])):
        plan = gpu_reference.check(f, given)
        assert [kernel.team for kernel in gpu_reference.kernels(plan)] == [32]


def test_neighbours_are_taken_together() -> None:
    plan = gpu_reference.check(lambda x, y: tf.maximum(x, y) + y[0], [tensor(0, 4, 8), tensor(1, 4, 8)])
    assert plan is not None and [step.total for step in plan.steps] == [8]
    plan = gpu_reference.check(lambda x: x * 2, [tensor(0, 3, 7)])
    assert plan is not None and [step.total for step in plan.steps] == [21]


def test_operands_that_are_overwritten() -> None:
    x = tensor(0, 6, 40)
    gpu_reference.check(lambda x: softmax(softmax(tf.sin(x) * 2)) + 1, [x])
    gpu_reference.check(lambda x: layer_norm(tf.cos(tf.matmul(x, x, transpose_b=True)))[0], [x])


def test_kernels_assemble(tmp_path: Path) -> None:
    table = {}
    for name, f in FUNCTIONS.items():
        for dtype in DTYPES:
            for shape in ((9, 40), (7, 33)):
                plan = gpu_reference.planned(f, [tf.TensorSpec(shape, dtype)])
                table |= {f"{name}_{dtype.name}_{shape[1]}_{n}": kernel
                          for n, kernel in enumerate(gpu_reference.kernels(plan))}
    text, _ = clean(table, tmp_path)
    assert "ld.global.v4" in text and "st.global.v4" in text
    assert {kernel.team for kernel in table.values()} == {1, 32, gpu_reduce.THREADS}
