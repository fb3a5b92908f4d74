"""Maps over transposed operands that come again, whose tiles are turned in registers: the bits stay those of NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import twofold as tf
from twofold.codegen import gemm_shapes, squares
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.runtime import kernels, launch, threads, tiers
from twofold.runtime.launch import MapFamily

DTYPES = [np.float32, np.float64, np.int32, np.int64, np.uint32, np.uint64, np.float16, ml_dtypes.bfloat16]
UNTURNED = [np.int8, np.uint16, np.bool_, np.complex64]
takes_vectors = pytest.mark.skipif(not kernels.with_vectors(), reason="numba compiles kernels")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call of a layout runs the other kernel."""
    monkeypatch.setattr(launch, "_REPAID", 1)
    monkeypatch.setenv("TWOFOLD_TIERS", "0")


@pytest.fixture(params=[1, 3])
def some_threads(request: pytest.FixtureRequest) -> Iterator[None]:
    threads.set_num_threads(request.param)
    yield
    threads.set_num_threads(0)


def some(seed: int, shape: Sequence[int], dtype: Any) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.integers(0, 2, shape) if dtype == np.bool_ else rng.integers(-9, 9, shape) * 0.75).astype(dtype)


def turns(family: MapFamily) -> list[bool]:
    """For each layout that a family has met, whether its tiles are turned by now."""
    return [getattr(plan.call, "better", None) is not None for plan in family._plans.values()]


def check(family: MapFamily, wanted: np.ndarray, arrays: Sequence[np.ndarray]) -> None:
    for _ in range(3):
        result, = family(arrays, wanted.shape)
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        assert result.tobytes() == np.ascontiguousarray(wanted).tobytes()


def copying(dtype: Any) -> MapFamily:
    kind = dt.from_numpy(np.dtype(dtype))
    return MapFamily("copy", lambda s, x: x, (kind,), (kind,))


@pytest.mark.usefixtures("some_threads")
@pytest.mark.parametrize("dtype", [*DTYPES, *UNTURNED], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(200, 300), (129, 257), (256, 512), (1000, 64), (16, 4000)])
def test_transposes(dtype: Any, shape: tuple[int, int]) -> None:
    family, x = copying(dtype), some(0, shape, dtype)
    check(family, x.T, [x.T])
    assert turns(family) == [kernels.with_vectors() and dtype not in UNTURNED]


LAYOUTS = {
    "batches": lambda x: x.reshape(4, 100, 200).transpose(0, 2, 1),
    "channels last": lambda x: np.moveaxis(x.reshape(8, 50, 200), 1, 2),
    "channels first": lambda x: np.moveaxis(x.reshape(8, 50, 200), 0, 2),
    "backwards": lambda x: x.reshape(200, 400)[::-1].T,
    "backwards along rows": lambda x: x.reshape(200, 400)[:, ::-1].T,
    "every second row": lambda x: x.reshape(200, 400)[::2].T,
    "a part": lambda x: x.reshape(200, 400)[3:, 5:].T,
    "four axes": lambda x: x.reshape(10, 20, 20, 20).transpose(3, 1, 2, 0),
    "inner": lambda x: x.reshape(2, 200, 200).transpose(2, 1, 0)}


@pytest.mark.usefixtures("some_threads")
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_layouts(name: str, dtype: Any) -> None:
    x = LAYOUTS[name](some(1, (80_000,), dtype))
    y = some(2, x.shape, dtype)
    check(copying(dtype), x, [x])
    kind = dt.from_numpy(np.dtype(dtype))
    family = MapFamily("subtract", ops.subtract.body, (kind, kind), (kind,))
    for left, right in ((x, y), (y, x), (x, x), (x, y[..., :1])):
        check(family, left - right, [left, right])


@takes_vectors
def test_several_operands_are_turned() -> None:
    x = [some(n, (300, 200), np.float32) for n in range(5)]
    family = MapFamily("sum", lambda s, *v: s.add(s.add(s.add(v[0], v[1]), s.add(v[2], v[3])), v[4]),
                       (dt.float32,) * 5, (dt.float32,))
    operands = [a.T for a in x]
    check(family, ((operands[0] + operands[1]) + (operands[2] + operands[3])) + operands[4], operands)
    assert turns(family) == [True]


@takes_vectors
def test_operands_of_several_dtypes() -> None:
    x, y = some(0, (300, 200), np.float64), some(1, (300, 200), np.bool_)
    family = MapFamily("select", lambda s, c, x: s.select(c, x, 0.0), (dt.bool_, dt.float64), (dt.float64,))
    check(family, np.where(y.T, x.T, 0.0), [y.T, x.T])
    assert turns(family) == [True]


def test_results_that_lie_in_any_way() -> None:
    x, y = some(0, (300, 200), np.float32), some(1, (200, 300), np.float32)
    family = MapFamily("subtract", ops.subtract.body, (dt.float32,) * 2, (dt.float32,))
    for out in (np.empty((200, 600), np.float32)[:, ::2], np.empty((300, 200), np.float32).T, y.copy()):
        for _ in range(3):
            out[...] = y
            family.into((out,), (out, x.T))
            np.testing.assert_array_equal(out, y - x.T)


def test_bits_are_copied_as_they_are() -> None:
    x = np.arange(200 * 300, dtype=np.uint32).reshape(200, 300) + np.uint32(0x7F80_0000)  # NaNs that signal
    for _ in range(3):
        out = np.empty((300, 200), np.float32)
        launch.copy_into(out, x.view(np.float32).T)
        np.testing.assert_array_equal(out.view(np.uint32), x.T)


def test_checks_of_the_body_are_reported() -> None:
    x = some(0, (300, 200), np.int32)
    x[x == 0] = 1
    family = MapFamily("divide", ops.truncatediv.body, (dt.int32,) * 2, (dt.int32,))
    y = np.ones((200, 300), np.int32)
    check(family, np.fix(y / x.T).astype(np.int32), [y, x.T])
    x[150, 100] = 0
    with pytest.raises(launch.KernelCheck, match="zero"):
        family((y, x.T), y.shape)


@takes_vectors
@pytest.mark.parametrize("masks", [True, False])
def test_other_vectors(masks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(squares, "tiling", lambda dtype: gemm_shapes.Tiling(
        16 // gemm_shapes.summed(dtype).size, (4, 2), masks))
    x = some(0, (301, 203), np.float32)
    family = MapFamily(f"copy {masks}", lambda s, x: s.add(x, 1.0), (dt.float32,), (dt.float32,))
    check(family, x.T + np.float32(1), [x.T])
    assert turns(family) == [True]


@takes_vectors
def test_the_kernel_is_made_in_the_background_when_it_repays_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_REPAID", 3 * 60_000)
    monkeypatch.setenv("TWOFOLD_TIERS", "1")
    family, x = copying(np.float32), some(0, (300, 200), np.float32)
    for _ in range(2):
        family((x.T,), (200, 300))
    tiers.wait()
    assert turns(family) == [False]
    family((x.T,), (200, 300))
    tiers.wait()
    assert turns(family) == [True]
    check(family, x.T, [x.T])


def test_transposed_tensors() -> None:
    x, y = some(0, (300, 200), np.float32), some(1, (200, 300), np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(tf.transpose(tf.constant(x)) * tf.constant(y) + 1.0, x.T * y + np.float32(1))
