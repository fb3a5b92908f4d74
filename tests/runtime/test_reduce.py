"""Reductions: one order of combination for every layout and number of threads, bit for bit.

The order is written out again here in plain Python (`in_order`); results are compared with it and, for accuracy, with
exactly rounded sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_sample import ALL, assert_same, random

from twofold.ir import dtypes as dt
from twofold.ir.scalar import Reduction
from twofold.runtime import threads
from twofold.runtime.launch import KernelCheck, ReduceFamily

CHUNK, LANES = 4096, 32


def in_order(elements: list[Any], identity: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """The elements combined in the order that every reduction promises."""
    def chunk(part: list[Any]) -> Any:
        lanes = [identity] * LANES
        for i, e in enumerate(part):
            lanes[i % LANES] = combine(lanes[i % LANES], e)
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [combine(lanes[j], lanes[j + half]) for j in range(half)]
        return lanes[0]

    def tree(parts: list[Any]) -> Any:
        if len(parts) == 1:
            return parts[0]
        left = 1 << (len(parts) - 1).bit_length() - 1
        return combine(tree(parts[:left]), tree(parts[left:]))

    return tree([chunk(elements[i:i + CHUNK]) for i in range(0, len(elements), CHUNK)] or [identity])


def elements_of(x: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
    """A row of reduced elements for each output, and the outputs' shape."""
    kept = [d for d in range(x.ndim) if d not in axes]
    shape = tuple(x.shape[d] for d in kept)
    count = math.prod(x.shape[d] for d in axes)
    return x.transpose(*kept, *sorted(axes)).reshape(math.prod(shape), count), shape


SUM = Reduction(lambda s, a, b: s.add(a[0], b[0]), lambda dtypes: (0,))


def plain_sum(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    rows, shape = elements_of(x, axes)
    with np.errstate(all="ignore"):
        sums = [in_order(list(r), x.dtype.type(0), lambda a, b: a + b) for r in rows]
    return np.array(sums, x.dtype).reshape(shape)


@pytest.fixture(scope="module")
def total() -> ReduceFamily:
    return ReduceFamily("sum", SUM, (dt.float32,), (dt.float32,))


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


CASES = {
    "few": (f32(5), (0,)), "one": (f32(1), (0,)), "lanes": (f32(32), (0,)), "more than lanes": (f32(45), (0,)),
    "a chunk": (f32(4096), (0,)), "a chunk and one": (f32(4097), (0,)), "seven chunks": (f32(4096 * 6 + 3), (0,)),
    "eight chunks": (f32(4096 * 8), (0,)), "rank 0": (f32(1).reshape(()), ()), "no axes": (f32(3, 4), ()),
    "rows": (f32(30, 40), (1,)), "short rows": (f32(300, 3), (1,)), "long rows": (f32(3, 9000), (1,)),
    "columns": (f32(40, 300), (0,)), "two columns": (f32(400, 2), (0,)), "long columns": (f32(9000, 20), (0,)),
    "long, three columns": (f32(9000, 3), (0,)), "stack of columns": (f32(2, 9000, 20), (1,)),
    "all": (f32(30, 40, 10), (0, 1, 2)), "first two": (f32(30, 40, 10), (0, 1)),
    "last two": (f32(30, 40, 10), (1, 2)), "apart": (f32(6, 5, 8, 7), (0, 2)), "apart, last": (f32(6, 5, 8, 7), (1, 3)),
    "all but one": (f32(6, 50, 9, 70), (0, 2, 3)),
    "transposed": (f32(300, 40).T, (0,)), "transposed all": (f32(300, 40).T, (0, 1)),
    "reversed": (f32(300, 40)[::-1, ::-2], (1,)), "stepped": (f32(20000)[::-2], (0,)),
    "repeated": (np.broadcast_to(f32(40, 1), (40, 300)), (1,)),
    "repeated columns": (np.broadcast_to(f32(40, 1), (40, 300)), (0,)),
    "empty axis": (f32(3, 0, 4), (1,)), "no outputs": (f32(0, 4), (1,)), "length one": (f32(3, 1, 4), (1,)),
}


@pytest.mark.parametrize("case", CASES)
def test_order(total: ReduceFamily, case: str) -> None:
    x, axes = CASES[case]
    expected = plain_sum(x, axes)
    assert_same(total((x,), axes, False)[0], expected)
    kept = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    assert_same(total((x,), axes, True)[0], expected.reshape(kept))


@given(st.data())
def test_any_view(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))
    order = data.draw(st.permutations(range(len(shape))))
    steps = [data.draw(st.sampled_from([1, 2, -1])) for _ in shape]
    stored = f32(*[shape[d] * abs(steps[d]) for d in order], seed=len(shape))
    x = stored.transpose(np.argsort(order))[tuple(slice(None, None, s) for s in steps)]
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, len(shape) - 1)))))
    assert_same(ReduceFamily("sum", SUM, (dt.float32,), (dt.float32,))((x,), axes)[0], plain_sum(x, axes))


def test_any_number_of_threads_and_any_layout_give_the_same_bits(total: ReduceFamily) -> None:
    x = f32(700, 1100)
    results: list[list[np.ndarray]] = []
    try:
        for count in (1, 2, 3, 5):
            threads.set_num_threads(count)
            results.append([total((v,), axes)[0] for axes in [(0,), (1,), (0, 1)]
                            for v in (x, np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2])])
    finally:
        threads.set_num_threads(0)
    for values in results:
        for n, value in enumerate(values):
            assert_same(value, results[0][n - n % 3], n)


def test_sums_are_accurate(total: ReduceFamily) -> None:
    x = np.random.default_rng(1).random(1_000_000).astype(np.float32)
    exact = math.fsum(x.tolist())
    assert abs(float(total((x,), (0,))[0]) - exact) <= 4e-7 * exact
    doubles = ReduceFamily("sum", SUM, (dt.float64,), (dt.float64,))
    y = np.random.default_rng(2).standard_normal(1_000_000)
    assert abs(float(doubles((y,), (0,))[0]) - math.fsum(y)) <= 1e-15 * math.fsum(abs(y))


@pytest.mark.parametrize("dtype", [d for d in ALL if not d.is_bool], ids=lambda d: d.name)
def test_sums_of_every_type_keep_it(dtype: dt.DType) -> None:
    family = ReduceFamily("sum", SUM, (dtype,), (dtype,))
    x = (np.random.default_rng(3).standard_normal((70, 90)) * 20).astype(dtype.np)
    if dtype.is_complex:
        x = x + x[::-1, ::-1] * dtype.np.type(1j)
    wide = x.astype(dtype.compute.np)
    for axes in [(0,), (1,), (0, 1)]:
        for view in (x, np.asfortranarray(x)):
            assert_same(family((view,), axes)[0], plain_sum(wide, axes).astype(dtype.np))


def _greater(s: Any, a: Any, b: Any) -> Any:
    """Whether element b goes before a: larger, or equal and earlier; NaN is larger than everything."""
    (x, i), (y, j) = a, b
    larger = s.or_(s.gt(y, x), s.and_(s.isnan(y), s.not_(s.isnan(x))))
    equal = s.or_(s.eq(x, y), s.and_(s.isnan(x), s.isnan(y)))
    return s.or_(larger, s.and_(equal, s.lt(j, i)))


def _take_greater(s: Any, a: Any, b: Any) -> tuple[Any, Any]:
    better = _greater(s, a, b)
    return s.select(better, b[0], a[0]), s.select(better, b[1], a[1])


ARGMAX = Reduction(_take_greater, lambda dtypes: (-math.inf, 2**63 - 1), pre=lambda s, x, i: (x, i),
                   post=lambda s, acc, count: acc[1], acc=lambda dtypes: (dtypes[0], dt.int64), indexed=True)


@pytest.mark.parametrize("case", [c for c in CASES if 0 not in CASES[c][0].shape])
def test_argmax_counts_in_row_major_order(case: str) -> None:
    x, axes = CASES[case]
    x = np.round(x * 3)  # many ties
    rows, shape = elements_of(x, axes)
    family = ReduceFamily("argmax", ARGMAX, (dt.float32,), (dt.int64,))
    assert_same(family((x,), axes)[0], np.argmax(rows, axis=1).reshape(shape))


def test_argmax_of_nan_and_of_minus_infinity() -> None:
    family = ReduceFamily("argmax", ARGMAX, (dt.float32,), (dt.int64,))
    x = f32(6, 10000)
    x[0, 7000] = x[0, 9000] = np.nan
    x[1] = -np.inf
    assert family((x,), (1,))[0].tolist() == [7000, 0, *np.argmax(x[2:], axis=1)]
    assert_same(family((np.asfortranarray(x),), (1,))[0], family((x,), (1,))[0])


ALL_TRUE = Reduction(lambda s, a, b: s.and_(a[0], b[0]), lambda dtypes: (True,))


def test_booleans() -> None:
    family = ReduceFamily("all", ALL_TRUE, (dt.bool_,), (dt.bool_,))
    x = np.random.default_rng(4).random((50, 60)) < 0.97
    for axes in [(0,), (1,), (0, 1)]:
        assert_same(family((x,), axes)[0], np.asarray(np.all(x, axis=axes)))
    assert family((np.zeros((3, 0), bool),), (1,))[0].tolist() == [True] * 3


MOMENTS = Reduction(
    lambda s, a, b: (s.add(a[0], b[0]), s.add(a[1], b[1])), lambda dtypes: (0, 0),
    pre=lambda s, x, y, scale: (s.mul(s.cast(x, dt.float64), s.cast(y, dt.float64)), s.cast(y, dt.float64)),
    post=lambda s, acc, count, scale: (s.mul(s.div(acc[0], s.cast(count, dt.float64)), scale), acc[1]),
    acc=lambda dtypes: (dt.float64, dt.float64))


def test_two_operands_two_results_and_attributes() -> None:
    family = ReduceFamily("moments", MOMENTS, (dt.float32, dt.bfloat16), (dt.float64, dt.float32), {"scale": 2.0})
    x, y = f32(50, 5000), random(dt.float32, (50, 5000), 5).clip(-9, 9).astype(dt.bfloat16.np)
    y = np.where(np.isnan(y.astype(np.float32)), dt.bfloat16.np.type(1), y)
    wide = x.astype(np.float64), y.astype(np.float64)
    for axes, a, b in [((1,), x, y), ((0,), x, y), ((0,), np.asfortranarray(x), y), ((0, 1), x, np.asfortranarray(y))]:
        mean, second = family((a, b), axes)
        products, shape = elements_of(wide[0] * wide[1], axes)
        plain, _ = elements_of(wide[1], axes)
        sums = [in_order(list(r), 0.0, lambda p, q: p + q) for r in products]
        assert_same(mean, (np.array(sums) / products.shape[1] * 2).reshape(shape))
        again = [in_order(list(r), 0.0, lambda p, q: p + q) for r in plain]
        assert_same(second, np.array(again, np.float32).reshape(shape))


def test_empty_reductions_give_the_identity_through_post() -> None:
    family = ReduceFamily("moments", MOMENTS, (dt.float32, dt.float32), (dt.float64, dt.float64), {"scale": 1.0})
    x = np.zeros((2, 0, 3), np.float32)
    mean, second = family((x, x), (1,))
    assert np.isnan(mean).all() and mean.shape == (2, 3) and second.tolist() == [[0.0] * 3] * 2


def test_a_failed_check_is_reported() -> None:
    def pre(s: Any, x: Any) -> Any:
        s.check(s.ge(x, 0), "negative")
        return x

    family = ReduceFamily("checked", Reduction(SUM.combine, SUM.identity, pre=pre), (dt.float32,), (dt.float32,))
    x = np.abs(f32(60, 9000))
    assert_same(family((x,), (1,))[0], plain_sum(x, (1,)))
    x[59, 8999] = -1
    for axes in [(0,), (1,), (0, 1)]:
        with pytest.raises(KernelCheck, match="negative"):
            family((x,), axes)


def test_unaligned_operands() -> None:
    packed = np.zeros((40, 50), np.dtype([("tag", "u1"), ("x", "<f4")]))
    packed["x"] = f32(40, 50)
    family = ReduceFamily("sum", SUM, (dt.float32,), (dt.float32,))
    assert_same(family((packed["x"],), (0,))[0], plain_sum(packed["x"], (0,)))
