"""Maps over memory of every layout, against NumPy and the handler of scalar bodies."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_sample import ALL, assert_same, edges, random

from twofold.ir import dtypes as dt
from twofold.ir import reference, scalar
from twofold.runtime import calls, geometry, kernels, launch, sharing, threads
from twofold.runtime.launch import KernelCheck, MapFamily


def subtract(s: Any, x: Any, y: Any) -> Any:
    return s.sub(x, y)


@pytest.fixture(scope="module")
def family() -> MapFamily:
    return MapFamily("subtract", subtract, (dt.float32,) * 2, (dt.float32,))


def check(family: MapFamily, x: np.ndarray, y: np.ndarray) -> None:
    expected = np.asarray(x - y)
    got, = family((x, y), expected.shape)
    assert_same(got, expected, (x.shape, x.strides, y.shape, y.strides))
    assert got.flags.c_contiguous and got.flags.owndata | (got.base is not None)


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


LAYOUTS = {
    "contiguous": (f32(5, 7), f32(5, 7, seed=1)),
    "scalar left": (f32(), f32(5, 7)),
    "scalar right": (f32(5, 7), f32()),
    "both scalars": (f32(), f32(seed=1)),
    "row": (f32(5, 7), f32(7)),
    "column": (f32(5, 7), f32(5, 1)),
    "outer": (f32(5, 1), f32(1, 7)),
    "middle": (f32(2, 1, 7), f32(3, 1)),
    "long row, short column": (f32(3, 500), f32(3, 1)),
    "long column, short row": (f32(500, 3), f32(3)),
    "transposed": (f32(7, 5).T, f32(5, 7)),
    "both transposed": (f32(7, 5).T, f32(7, 5, seed=1).T),
    "reversed": (f32(5, 7)[::-1, ::-1], f32(5, 7)),
    "stepped": (f32(10, 21)[::2, ::3], f32(5, 7)),
    "permuted": (f32(2, 3, 4, 5).transpose(2, 0, 3, 1), f32(4, 1, 5, 3)),
    "repeated": (np.broadcast_to(f32(1, 7), (5, 7)), f32(5, 7)),
    "empty": (f32(0, 7), f32(7)),
    "empty outer": (f32(5, 0), f32(5, 1)),
    "many dimensions": (f32(*[2] * 12).transpose(), f32(*[2] * 12)),
    "length one": (f32(1, 1, 1), f32(1)),
    "offset": (f32(50)[13:20], f32(5, 1)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout(family: MapFamily, layout: str) -> None:
    check(family, *LAYOUTS[layout])
    check(family, *LAYOUTS[layout][::-1])
    check(family, *LAYOUTS[layout])  # a geometry already planned


@st.composite
def views(draw: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two operands that broadcast together, cut and turned in any way."""
    shape = draw(st.lists(st.integers(0, 5), max_size=4))

    def operand(seed: int) -> np.ndarray:
        own = [1 if draw(st.booleans()) and n else n for n in shape]
        steps = [draw(st.sampled_from([1, 2, 3, -1, -2])) for _ in own]
        order = draw(st.permutations(range(len(own))))
        stored = f32(*[own[d] * abs(steps[d]) for d in order], seed=seed)
        turned = stored.transpose(np.argsort(order)) if own else stored
        view = turned[tuple(slice(None, None, s) for s in steps)]
        skip = draw(st.integers(0, len(shape)))
        return view[(0,) * skip] if all(n == 1 for n in own[:skip]) else view
    return operand(1), operand(2)


@given(views())
def test_any_views(pair: tuple[np.ndarray, np.ndarray]) -> None:
    check(MapFamily("subtract", subtract, (dt.float32,) * 2, (dt.float32,)), *pair)


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
def test_every_type_and_layout_matches_the_reference(dtype: dt.DType) -> None:
    def body(s: Any, x: Any, y: Any) -> tuple[Any, Any]:
        return s.select(s.ne(x, y), x, y), s.eq(x, y)

    family = MapFamily("choose", body, (dtype, dtype), (dtype, dt.bool_))
    fn = scalar.build(body, (dtype, dtype))
    x, y = random(dtype, (6, 40), 1), random(dtype, (6, 40), 2)
    for a, b in [(x, y), (x, y[0]), (x[:, :1], y), (x[:, ::3], y[:, ::-3]), (x.T, y[0, :6]), (x[0, 0], y)]:
        a = np.asarray(a)
        shape = np.broadcast_shapes(a.shape, b.shape)
        wide = [v.astype(np.float32) if dtype.compute is not dtype else v for v in (a, b)]
        chosen, same = reference.evaluate(fn, *wide)
        got, equal = family((a, b), shape)
        assert_same(got, chosen.astype(dtype.np).reshape(shape))
        assert_same(equal, same.reshape(shape))


TURNED = {
    "transposed": f32(200, 310).T, "transposed in planes": f32(3, 70, 90).transpose(0, 2, 1),
    "channels last": f32(4, 30, 40, 11).transpose(0, 2, 3, 1), "reversed axes": f32(17, 33, 29).transpose(2, 1, 0),
    "backwards": f32(130, 140).T[::-1, ::-1], "stepped": f32(260, 140).T[:, ::2], "in pairs": f32(120, 280)[:, ::2].T,
    "a power of two": f32(128, 1024).T,
}


@pytest.mark.parametrize("layout", TURNED)
@pytest.mark.parametrize("count", [1, 3])
def test_tiles(family: MapFamily, layout: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "AT_ONCE", sharing.SMALL)  # threads share the work of small arrays too
    x = TURNED[layout]
    try:
        threads.set_num_threads(count)
        check(family, x, f32(*x.shape, seed=1))
        check(family, f32(*x.shape[1:]), x)
        check(family, x, x)
    finally:
        threads.set_num_threads(0)
    copied = launch.contiguous(x)
    assert copied.flags.c_contiguous
    assert_same(copied, np.array(x, order="C"))


def test_tiles_are_used_for_what_is_turned(family: MapFamily) -> None:
    drivers = {}
    for name, x in {**TURNED, "small": f32(30, 40).T, "rows": f32(300, 1)}.items():
        plan = geometry.plan_map(x.shape, [np.empty(x.shape, np.float32).strides, x.strides], (4, 4))
        drivers[name] = plan.grid.driver if plan.grid else None
    assert drivers == {**dict.fromkeys(TURNED, "tiles"), "small": "grid", "rows": None}


def test_strides_that_are_no_whole_elements_are_copied(family: MapFamily) -> None:
    packed = np.zeros(9, np.dtype([("tag", "u1"), ("x", "<f4")]))
    packed["x"] = np.arange(9)
    check(family, packed["x"], f32(9))
    check(family, packed["x"][::2], f32(3, 5))


def test_large_work_is_split_over_threads_with_the_same_result(family: MapFamily) -> None:
    x, y = f32(3000, 101), f32(101)
    whole = x - y
    try:
        for count in (1, 2, 3, 7):
            threads.set_num_threads(count)
            assert_same(family((x, y), x.shape)[0], whole, count)
            assert_same(family((x.T, y[:, None]), x.T.shape)[0], np.ascontiguousarray(whole.T), count)
    finally:
        threads.set_num_threads(0)


def test_into_writes_where_it_is_told(family: MapFamily) -> None:
    target, x, y = np.zeros((8, 9), np.float32), f32(4, 3), f32(3)
    family.into([target[::2, ::3]], [x, y])
    expected = np.zeros_like(target)
    expected[::2, ::3] = x - y
    assert_same(target, expected)
    z = f32(1000)
    expected = z - y[0]
    family.into([z], [z, y[:1]])
    assert_same(z, expected)
    with pytest.raises(ValueError, match="output's strides are not whole elements"):
        family.into([np.zeros(3, "u1,f4")["f1"]], [x[0], y])


def test_an_output_may_be_an_operand() -> None:
    swap = MapFamily("swap", lambda s, x, y, z: (s.sub(y, z), s.add(x, z)), (dt.float32,) * 3, (dt.float32,) * 2)
    x, y, z = f32(30, 41), f32(30, 41, seed=1), f32(30, 1)
    for cut in (np.s_[:], np.s_[:, :7], np.s_[::-2, ::3]):
        a, b = x.copy(), y.copy()
        expected = b[cut] - z[:a[cut].shape[0]], a[cut] + z[:a[cut].shape[0]]
        swap.into([a[cut], b[cut]], [a[cut], b[cut], z[:a[cut].shape[0]]])
        assert_same(a[cut], expected[0])
        assert_same(b[cut], expected[1])
    total = np.ones(100_000, np.float64)
    double = MapFamily("double", lambda s, x, y: s.add(x, y), (dt.float64,) * 2, (dt.float64,))
    double.into([total], [total, total])
    assert_same(total, np.full(100_000, 2.0))
    with pytest.raises(TypeError, match="outputs must be NumPy arrays"):
        double.into([np.float64(1)], [total[:1], total[:1]])  # type: ignore[list-item]


def test_several_outputs_and_attributes() -> None:
    def body(s: Any, x: Any, *, low: float, names: list[str]) -> tuple[Any, Any]:
        return s.maximum(x, low), s.cast(x, dt.int32)

    family = MapFamily("clip", body, (dt.float32,), (dt.float32, dt.int32), {"low": 0.5, "names": ["unhashable"]})
    x = f32(6, 5) * 3
    for v in (x, x.T):
        clipped, whole = family((v,), v.shape)
        assert_same(clipped, np.maximum(v, np.float32(0.5)))
        assert_same(whole, np.ascontiguousarray(v.astype(np.int32)))


def test_too_many_operands_are_refused() -> None:
    def total(s: Any, *xs: Any) -> Any:
        return sum(xs[1:], start=xs[0])

    xs = [f32(3, 4, seed=n)[:, ::2] if n % 2 else f32(3, 4, seed=n).T[:2].T for n in range(63)]
    got, = MapFamily("total", total, (dt.float32,) * 63, (dt.float32,))(xs, (3, 2))
    assert_same(got, sum(xs[1:], start=xs[0]))
    with pytest.raises(ValueError, match="at most 64 operands and results"):
        MapFamily("total", total, (dt.float32,) * 64, (dt.float32,))


def test_address_runs_the_contiguous_kernel(family: MapFamily) -> None:
    import ctypes
    x, y, out = f32(9), f32(1), np.zeros(9, np.float32)
    args = (ctypes.c_int64 * 3)(*(launch.address_of(v) for v in (out, x, y)))
    addresses: list[int] = []
    family.when_best("vs", addresses.append)
    kernels.settle(family.name)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(*addresses)
    assert call(2, 7, ctypes.addressof(args)) == 0
    expected = np.zeros(9, np.float32)
    expected[2:7] = x[2:7] - y
    assert_same(out, expected)


def test_a_failed_check_names_the_first_code() -> None:
    def body(s: Any, x: Any) -> Any:
        s.check(s.ge(x, 0), "negative")
        s.check(s.lt(x, 100), "too large")
        return s.sqrt(x)

    family = MapFamily("root", body, (dt.float32,), (dt.float32,))
    good = np.linspace(0, 99, 5000, dtype=np.float32).reshape(50, 100)
    assert_same(family((good,), good.shape)[0], np.sqrt(good))
    for place, value, code in [((0, 0), 100, "too large"), ((49, 99), -1, "negative"), ((25, 3), np.nan, "negative")]:
        bad = good.copy()
        bad[place] = value
        for view in (bad, bad.T, bad[::-1, ::-1], np.concatenate([bad] * 40)):
            with pytest.raises(KernelCheck) as caught:
                family((view,), view.shape)
            assert caught.value.code == code
    with pytest.raises(KernelCheck, match="too large"):
        family((np.float32(1000) * np.ones(()).astype(np.float32),), ())


def test_run_takes_integers_and_reports_checks() -> None:
    from twofold.codegen.loop import LoopBuilder

    b = LoopBuilder("fill")
    out, value = b.pointer("out", dt.int64), b.integer()
    with b.for_(b.start, b.stop) as i:
        b.check(b.lt(i, 10), "out of range")
        b.store(out, b.minimum(i, 9), value + i)
    compiled = kernels.get("test fill", b.finish)
    target = np.zeros(10, np.int64)
    launch.run(compiled, 10, [launch.address_of(target), 5], 10)
    assert target.tolist() == list(range(5, 15))
    with pytest.raises(KernelCheck, match="out of range"):
        launch.run(compiled, 11, [launch.address_of(target), 5], 11)


def test_data_addresses_agree_with_numpy() -> None:
    for value in (f32(3), f32(3, 4)[1:, ::2], f32(), f32(0), f32(5)[::-1]):
        assert launch.address_of(value) == value.__array_interface__["data"][0]


def test_another_python_reads_addresses_the_documented_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.implementation.name", "other", raising=False)
    assert calls._find_pointer_field() is None
    monkeypatch.setattr(calls, "_pointer_field", None)
    family = MapFamily("subtract", subtract, (dt.float32,) * 2, (dt.float32,))
    for pair in LAYOUTS.values():
        check(family, *pair)


def test_plans_are_bounded(family: MapFamily) -> None:
    for n in range(1, 2 * launch._PLANS):
        family((f32(n), f32(1)), (n,))
    assert len(family._plans) <= launch._PLANS
    check(family, f32(1), f32(1))


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
def test_contiguous_copies_bit_for_bit(dtype: dt.DType) -> None:
    x = random(dtype, (137, 153), 3)  # also its half has more elements than NumPy copies
    assert launch.contiguous(x) is x
    raw = np.ascontiguousarray(x.T)
    for view in (x.T, x.T[::2, ::-1]):
        got = launch.contiguous(view)
        assert got.flags.c_contiguous and got.dtype == dtype.np
        assert got.tobytes() == np.ascontiguousarray(view).tobytes()
    assert launch.contiguous(x.T).tobytes() == raw.tobytes()
    assert launch.contiguous(edges(dtype)[::-1][::-1]).tobytes() == edges(dtype).tobytes()


def test_threads_may_share_a_family() -> None:
    family = MapFamily("shared", subtract, (dt.float64,) * 2, (dt.float64,))
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal((seed + 1, 50))
        for _ in range(200):
            if not (family((x, x[0]), x.shape)[0] == x - x[0]).all():
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


@pytest.mark.parametrize(("shape", "other"), [
    ((300, 64, 16), (16,)), ((300, 64, 16), (300, 1, 16)), ((5, 4096, 3), (5, 1, 1)), ((4, 3, 2000, 6), (3, 1, 6)),
    ((2, 9001, 4), (4,)), ((7000, 5), (5,)), ((20, 40, 12, 8), (20, 1, 12, 8)), ((60, 60, 2, 8), (1, 60, 1, 8)),
])
def test_operands_that_repeat_a_few_elements(shape, other):
    rng = np.random.default_rng(0)
    wide, small = rng.normal(size=shape).astype(np.float32), rng.normal(size=other).astype(np.float32)
    family = MapFamily("less", lambda s, x, y: s.sub(x, y), (dt.float32,) * 2, (dt.float32,))
    strided = np.zeros((*small.shape[:-1], 2 * small.shape[-1]), np.float32)[..., ::2]
    strided[...] = small
    for y in (small, strided):
        np.testing.assert_array_equal(family((wide, y), shape)[0], wide - y)
        np.testing.assert_array_equal(family((y, wide), shape)[0], y - wide)
        out = wide.copy()
        family.into((out,), (out, y))
        np.testing.assert_array_equal(out, wide - y)
    turned = np.ascontiguousarray(np.moveaxis(wide, 0, -1))
    np.testing.assert_array_equal(family((np.moveaxis(turned, -1, 0), small), shape)[0], wide - small)
