"""Pooling, scans, scatters, segments and sorting on a GPU, in lockstep: the bits of the processor's, and no stacks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpu_reference
import numpy as np
import pytest
from codegen.test_teams import run
from ptx_checks import clean

import twofold as tf
from twofold.codegen import gpu_pool, gpu_scan, gpu_scatter, gpu_sort, loop_verify
from twofold.codegen.kernels import indexing, scan, segment
from twofold.codegen.loop import Kernel
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.dtypes import DType

FLOATS = [tf.float32, tf.float64, tf.float16, tf.bfloat16]


def tensor(seed: int, *shape: int, dtype: Any = tf.float32) -> tf.Tensor:
    """Numbers of which many are equal, with zeros of both signs."""
    values = np.random.default_rng(seed).integers(-9, 9, shape) / 2
    return tf.cast(np.where((values == 0) & (np.indices(shape).sum(0) % 2 == 1), -0.0, values), dtype)


def check(f: Callable[..., Any], *tensors: tf.Tensor, dims: list[Any] | None = None) -> list[str]:
    """Requires the processor's bits; the names of the kernels, none of which has memory of its own."""
    every = gpu_reference.kernels(gpu_reference.check(f, list(tensors), dims))
    for kernel in every:
        loop_verify.verify(kernel)
        assert all(p.size == 1 for p in kernel.scratch), kernel.name  # single numbers become registers
    return [kernel.name for kernel in every]


# -- pooling ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [*FLOATS, tf.int32], ids=lambda d: d.name)
@pytest.mark.parametrize(("size", "strides", "padding", "dilations"), [
    (2, 2, "VALID", 1), (3, 2, "SAME", 1), (3, 1, "SAME", 2), ((1, 3), (3, 1), "VALID", 1)], ids=str)
def test_pooling(size: Any, strides: Any, padding: str, dilations: int, dtype: Any) -> None:
    def pools(x: Any, share: Any) -> Any:
        results = []
        for kind in ("MAX", "AVG") if dtype.is_floating else ("MAX",):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.nn.pool(x, size, kind, strides, padding, dilations=dilations)
                loss = tf.reduce_sum(y * share[..., :y.shape[1], :y.shape[2], :])
            results += [y, tape.gradient(loss, x)] if dtype.is_floating else [y]
        return results
    x = tensor(0, 2, 6, 8, 5, dtype=dtype)
    if dtype.is_floating:
        x = tf.where(x == 4, tf.cast(np.nan, dtype), x)
    names = check(pools, x, tensor(1, 2, 6, 8, 5, dtype=dtype))
    assert ("max_pool_grad tiled by elements" in " ".join(names)) == (size == 2 and dtype.is_floating)


def test_the_largest_of_unknown_sizes() -> None:
    def pools(x: Any) -> Any:
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y, where = tf.nn.max_pool_with_argmax(x, 3, 2, "SAME")
            first = tape.gradient(y, x)
        return y, where, first
    check(pools, tensor(0, 1, 5, 7, 3), dims=[[None, None, None, 3]])


def test_the_gradient_of_a_gradient() -> None:
    def twice(x: Any, ct: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(ct)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.nn.max_pool2d(x, 3, 2, "SAME")
            loss = tf.reduce_sum(tape.gradient(y, x, ct) * x)
        return outer.gradient(loss, ct)
    assert any("gather" in name for name in check(twice, tensor(0, 1, 5, 7, 3), tensor(1, 1, 3, 4, 3)))


# -- scans --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("flags", [(False, False), (True, True), (False, True)], ids=str)
@pytest.mark.parametrize(("shape", "axis"), [((3, 70), 1), ((7, 5), 0), ((2, 9, 3), 1), ((1, 4200), 1)], ids=str)
def test_sums_of_what_came_before(shape: tuple[int, ...], axis: int, flags: tuple[bool, bool]) -> None:
    for dtype in (tf.float32, tf.bfloat16, tf.int32):
        names = check(lambda x: tf.cumsum(x, axis, *flags), tensor(0, *shape, dtype=dtype))
        assert any("lines of 1" in n for n in names) == (axis == len(shape) - 1)


@pytest.mark.parametrize("name", ["cumprod", "cumulative_logsumexp", "linear_recurrence"])
@pytest.mark.parametrize("axis", [0, 1])
def test_scans(name: str, axis: int) -> None:
    for reverse in (False, True):
        operands = [tensor(n, 11, 13) * 0.25 for n in range(2 if name == "linear_recurrence" else 1)]
        check(functools.partial(getattr(ops, name), axis=axis, reverse=reverse), *operands)


def test_many_lines() -> None:
    """A block goes along several; the last has fewer."""
    assert any("lines of 32" in n for n in check(lambda x: tf.cumsum(x, 1), tensor(0, 1030, 5)))
    assert any("lines of 32" in n for n in check(lambda x: tf.cumsum(x, 1), tensor(0, 5, 300), dims=[[None, None]]))


# -- places given as data -----------------------------------------------------------------------------
def test_gathers() -> None:
    x, indices = tensor(0, 2, 5, 3), tf.constant([[4, 0, 4], [1, 1, 2]])
    check(lambda x, i: (tf.gather(x, i, axis=1), tf.gather(x, i, axis=1, batch_dims=1), tf.gather(x, i[0, :2] // 4)),
          x, indices)
    check(lambda x, i: tf.gather_nd(x, i), tf.cast(x, tf.complex128), tf.constant([[0, 1], [1, 4], [0, 1]]))


@pytest.mark.parametrize("count", [3, 70, 1500])
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.int64], ids=lambda d: d.name)
def test_scatters(dtype: Any, count: int) -> None:
    """Many updates of a place are joined in the order in which they lie."""
    rng = np.random.default_rng(count)
    base, updates = tensor(0, 9, 3, dtype=dtype), tf.cast(rng.normal(size=(count, 3)) * 9, dtype)
    indices = tf.constant(rng.integers(0, 9, (count, 1)))
    known = None if count < 1500 else [[9, 3], [None, 1], [None, 3]]
    names = check(lambda x, i, u: (
        tf.tensor_scatter_nd_add(x, i, u), tf.tensor_scatter_nd_update(x, i, u), tf.tensor_scatter_nd_max(x, i, u),
        tf.scatter_nd(i, u, [9, 3])), base, indices, updates, dims=known)
    assert ("sort tiles i64" in names) == (count > gpu_scatter.FEW)


def test_gradients_of_gathers() -> None:
    def f(x: Any, i: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.sin(tf.gather(x, i, axis=1, batch_dims=1)) * 3)
        return tape.gradient(loss, x)
    indices = np.random.default_rng(0).integers(0, 6, (2, 80))
    check(f, tensor(0, 2, 6, 3), tf.constant(indices))


@pytest.mark.parametrize("count", [5, 90])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float16, tf.int32], ids=lambda d: d.name)
def test_segments(dtype: Any, count: int) -> None:
    ids = np.random.default_rng(count).integers(-2, 7, count).astype(np.int32)
    check(lambda x, i: [f(x, i, 9) for f in (
        tf.math.unsorted_segment_sum, tf.math.unsorted_segment_prod, tf.math.unsorted_segment_max,
        tf.math.unsorted_segment_min)], tensor(1, count, 4, dtype=dtype), tf.constant(ids))


def test_bad_indices() -> None:
    """What names no place is not written, and told of as on the processor."""
    out, updates, sizes = np.zeros((5, 2), np.float32), np.ones((3, 2), np.float32), [1, 4, 3, 2]
    indices, order = np.array([-1, 2, 4], np.int32), np.array([0, 1, 2], np.int32)
    for ordered in (False, True):
        kernel = gpu_scatter.scatter(dt.float32, dt.int32, "add", ordered)
        assert run(kernel, 6, [out, updates, indices, *[order][:ordered]], sizes) == 1
    np.testing.assert_array_equal(out, [[0, 0], [0, 0], [2, 2], [0, 0], [0, 0]])
    kernel = gpu_scatter.segments("sum", dt.float32, dt.int32, False)
    assert run(kernel, 6, [out, updates, indices], [3, 4, 2]) == 1
    assert run(kernel, 6, [out, updates, indices], [3, 5, 2]) == 0


# -- order --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [*FLOATS, tf.int8, tf.uint64, tf.bool], ids=lambda d: d.name)
def test_sorting(dtype: Any) -> None:
    """Of equal elements, such as zeros, the first comes first; NaN comes behind all, or before the largest."""
    x = tensor(0, 3, 41, dtype=dtype)
    if dtype.is_floating:
        x = tf.where(x == 1, tf.cast(np.nan, dtype), x)
    check(lambda x: [tf.sort(x, direction=d) for d in ("ASCENDING", "DESCENDING")] + [
        tf.argsort(x, direction=d) for d in ("ASCENDING", "DESCENDING")], x)
    if dtype is not tf.bool:
        check(lambda x: tf.math.top_k(x, 7), x)


@pytest.mark.parametrize("length", [1, 8, gpu_sort.TILE, gpu_sort.TILE + 1, 5000])
@pytest.mark.parametrize("known", [True, False])
def test_runs_are_merged(length: int, known: bool) -> None:
    x = tensor(length, 2, length)
    names = check(lambda x: (tf.sort(x), tf.argsort(x)), x, dims=None if known else [[None, None]])
    assert not known or ("sort merge f32" in names) == (length > gpu_sort.TILE)


# -- code ---------------------------------------------------------------------------------------------
def kernels(dtype: DType) -> dict[str, Kernel]:
    pools = [gpu_pool.maximum, gpu_pool.average, gpu_pool.argmax, gpu_pool.gather, gpu_pool.winners,
             gpu_pool.maximum_grad, gpu_pool.maximum_grad_tiled, gpu_pool.average_grad]
    table = {build.__name__: build(dtype) for build in pools}
    table |= {build.__name__: build(dtype, True) for build in (gpu_sort.tiles, gpu_sort.merge)}
    for name in scan.SCANS:
        table |= {f"{name}_columns": gpu_scan.columns(name, dtype, True, True),
                  f"{name}_line": gpu_scan.lines(name, dtype, False, True, 1),
                  f"{name}_lines": gpu_scan.lines(name, dtype, True, False, gpu_scan.TOGETHER)}
    for ordered in (False, True):
        table |= {f"scatter_{mode}_{ordered}": gpu_scatter.scatter(dtype, dt.int64, mode, ordered)
                  for mode in indexing.COMBINE}
        table |= {f"segment_{kind}_{ordered}": gpu_scatter.segments(kind, dtype, dt.int32, ordered)
                  for kind in segment.COMBINE}
    return table


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
def test_kernels_assemble(dtype: DType, tmp_path: Path) -> None:
    clean(kernels(dtype), tmp_path)
