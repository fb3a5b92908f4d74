"""Maps over transposed operands, whose tiles are turned in registers: every element arrives where NumPy has it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import thread_orders
from thread_orders import traced_for

import twofold as tf
from twofold.codegen import gemm_shapes, lockstep, planner, squares, statements
from twofold.codegen.loop import LoopBuilder
from twofold.codegen.target import CACHES
from twofold.ir import dtypes as dt
from twofold.ir import passes
from twofold.runtime import reference, threads
from twofold.runtime.compiled import Native
from twofold.runtime.cpu import cpu
from twofold.tracer.traced import Traced

DTYPES = [np.float32, np.float64, np.int32, np.int64, np.uint32, np.uint64, np.float16, ml_dtypes.bfloat16,
          np.int8, np.uint16, np.bool_, np.complex64]
# On both sides of what squares and tiles hold: 16 or 8 lanes, 64 elements of a row, and 16 or 32 rows.
SIZES = [(8, 16), (16, 16), (33, 65), (32, 64), (15, 100), (70, 17), (129, 31)]


@pytest.fixture(params=[None, (8, True), (8, False), (4, False)], ids=["host", "8", "8 unmasked", "4 unmasked"])
def lanes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Vectors of the host, and of processors with so many elements of four bytes, with masks or without."""
    if request.param is not None:
        count, masks = request.param

        def tiling(dtype: dt.DType) -> gemm_shapes.Tiling:
            return gemm_shapes.Tiling(4 * count // gemm_shapes.summed(dtype).size, (4, 2), masks)
        monkeypatch.setattr(squares, "tiling", tiling)
    yield


@pytest.fixture
def three_threads() -> Iterator[None]:
    threads.set_num_threads(3)
    yield
    threads.set_num_threads(0)


def holds(fn: Callable[..., Any], wanted: Sequence[np.ndarray], arrays: Sequence[np.ndarray],
          shapes: Sequence[Sequence[int | None]] | None = None) -> None:
    """Runs a function with its parts taken in two orders, and holds it to the bits of arrays."""
    traced = traced_for(fn, arrays, shapes)
    runs(traced, Native.of(planner.plan(passes.optimise(traced.graph), cpu)), wanted, arrays)


def runs(traced: Traced, native: Native, wanted: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> None:
    """The same of a function that is compiled."""
    sizes = traced.accepts([a.shape for a in arrays])
    assert sizes is not None
    for order in ((0,), (2, 0, 1)):
        results = thread_orders.run(native, arrays, sizes, order)
        assert [(r.shape, r.dtype) for r in results] == [(w.shape, w.dtype) for w in wanted]
        for result, want in zip(results, wanted, strict=True):
            assert result.tobytes() == np.ascontiguousarray(want).tobytes()


def some(seed: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Any bytes that a dtype has, none of them a NaN that signals, which arithmetic changes."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype) == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    bits = rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
    values = np.ascontiguousarray(bits).view(dtype)[..., 0]
    if np.dtype(dtype).kind in "iu":
        return values
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(values), values, np.array(1.5, dtype))


def turned(dtype: Any) -> None:
    for rows, columns in SIZES:
        x = some(rows, (rows, columns), dtype)
        holds(lambda x: tf.transpose(x), [x.T], [x])


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_matrices_are_turned(dtype: Any) -> None:
    turned(dtype)


@pytest.mark.usefixtures("lanes", "three_threads")
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float16, np.int8], ids=lambda d: np.dtype(d).name)
def test_matrices_are_turned_by_vectors_of_other_processors(dtype: Any) -> None:
    turned(dtype)


def test_dtypes_whose_elements_fill_vectors_are_turned() -> None:
    for dtype in DTYPES:
        graph = traced_for(lambda x: tf.transpose(x), [some(1, (40, 40), dtype)]).graph
        step, = planner.plan(passes.optimise(graph), cpu).steps
        assert statements.accesses(step.kernel) == ({0}, {1})
        assert ("shuffle" in str(step.kernel)) == (np.dtype(dtype).kind != "c" and dt.as_dtype(dtype).compute.size >= 4)


@pytest.mark.usefixtures("lanes", "three_threads")
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: np.dtype(d).name)
def test_several_operands_are_turned(dtype: Any) -> None:
    """More of them than have room at once, beside some that lie as the result, or repeat rows and columns."""
    for count, (rows, columns) in itertools.product((2, 5), SIZES[2:5]):
        arrays = [some(n, (rows, columns), np.int32).astype(dtype) for n in range(count)]
        plain, row, column = (some(9 + n, shape, np.int16).astype(dtype)
                              for n, shape in enumerate(((columns, rows), (rows,), (columns, 1))))

        def total(plain: Any, row: Any, column: Any, *turned: Any) -> Any:
            return functools.reduce(lambda s, x: s + tf.transpose(x), turned, plain * row + column)

        want = functools.reduce(lambda s, x: s + x.T, arrays, plain * row + column)
        holds(total, [want], [plain, row, column, *arrays])


@pytest.mark.usefixtures("lanes", "three_threads")
@pytest.mark.parametrize("perm", [(0, 2, 1), (0, 3, 1, 2), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 3, 2)], ids=str)
def test_axes_are_exchanged(perm: tuple[int, ...]) -> None:
    for shape in ((3, 9, 35, 66), (2, 64, 4, 8), (1, 33, 17, 40)):
        x = some(1, shape[-len(perm):], np.float32)
        holds(lambda x: tf.transpose(x, perm) * 0.5, [x.transpose(perm) * np.float32(0.5)], [x])


@pytest.mark.usefixtures("lanes", "three_threads")
def test_sizes_that_only_a_call_tells() -> None:
    traced = traced_for(lambda x: tf.transpose(x), [some(0, (1, 1), np.float32)], [(None, None)])
    native = Native.of(planner.plan(passes.optimise(traced.graph), cpu))
    for rows, columns in (*SIZES, (1, 1), (1, 100), (100, 1), (0, 5), (3, 2)):
        x = some(rows, (rows, columns), np.float32)
        runs(traced, native, [x.T], [x])


@pytest.mark.usefixtures("lanes", "three_threads")
def test_parts_of_arrays_and_reversed_ones() -> None:
    x = some(4, (2, 90, 80), np.float32)
    cases: list[tuple[Callable[[Any], Any], np.ndarray]] = [
        (lambda x: tf.transpose(x[1, 3:69, 5:70]), x[1, 3:69, 5:70].T),
        (lambda x: tf.transpose(x[0, ::-1, :40]), x[0, ::-1, :40].T),
        (lambda x: tf.transpose(x[0, :40, ::-1]), x[0, :40, ::-1].T),
        (lambda x: tf.transpose(x[1, ::2, ::2]), x[1, ::2, ::2].T),
        (lambda x: tf.transpose(x[1, ::3, :]), x[1, ::3, :].T),
        (lambda x: tf.concat([tf.transpose(x[0]), tf.transpose(x[1])], 0), np.concatenate([x[0].T, x[1].T])),
    ]
    for fn, want in cases:
        holds(fn, [want], [x])


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda d: np.dtype(d).name)
def test_all_iterations_in_lockstep(dtype: Any) -> None:
    for rows, columns in SIZES:
        x = some(rows, (rows, columns), dtype)
        plan = planner.plan(passes.optimise(traced_for(lambda x: tf.transpose(x), [x]).graph), reference.reference)
        result, = reference.reference.compile(plan)([x], {})
        assert result.tobytes() == np.ascontiguousarray(x.T).tobytes()


def test_nothing_beyond_an_operand_is_read() -> None:
    """The last square of a matrix at the end of its memory: what lies behind may belong to nobody."""
    for dtype in (dt.float32, dt.float64, dt.bfloat16):
        tile = squares.height([dtype], CACHES.line), CACHES.tile[1]
        for across, down in itertools.product((1, 7, tile[1] - 1, tile[1]), (1, 5, tile[0] - 1, tile[0])):
            b = LoopBuilder("turned")
            source, target = b.pointer("source", dtype), b.pointer("target", dtype.compute)
            buffer = b.scratch(dtype.compute, tile[0] * tile[1])
            squares.turn(b, dtype, b.at(source, 0), b.const(down, dt.int64), buffer, tile,
                         b.const(across, dt.int64), b.const(down, dt.int64))
            with b.for_(0, down) as y, b.for_(0, across) as x:
                b.store(target, y * across + x, b.load(buffer, y * tile[1] + x))
            given = some(across, (across, down), dtype.np)
            result = np.zeros((down, across), dtype.compute.np)
            memory = [lockstep.ByteMemory(a.reshape(-1).view(np.uint8)) for a in (given, result)]
            assert lockstep.run(b.finish(), 1, memory) == 0
            np.testing.assert_array_equal(result, given.T.astype(dtype.compute.np))
