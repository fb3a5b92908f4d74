"""Kernels of the first tier against the tiled ones: equal bits for all sizes, layouts, values and ways to read B, also
where one of them packs what the other multiplies."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.codegen import conv, conv_kernels, gemm, gemm_first, gemm_shapes
from twofold.codegen.loop_verify import verify
from twofold.codegen.matrices import Matrices
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.runtime import indirect, products
from twofold.runtime.image import Image

pytestmark = pytest.mark.skipif(not indirect.supported(), reason="there is one tier here")

DTYPES = [dt.float32, dt.float64, dt.float16, dt.bfloat16, dt.int8, dt.int32, dt.uint64]
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-42, 1e30, -1e30]
ids = {"ids": lambda d: getattr(d, "name", None)}


@functools.cache
def start(dtype: DType, first: bool, shape: gemm.Tiling | None = None) -> Callable[..., None]:
    """Runs a kernel of one of the tiers: (name, range, integers, arrays)."""
    shape = gemm.tiling(dtype) if shape is None else shape
    shape = gemm_shapes.first_tier(shape) if first else shape
    symbols = {name: gemm.symbol(name, dtype) for names in gemm.PARTS.values() for name in names}
    images = [Image([gemm.object_code(dtype, shape, part)], [symbols[n] for n in names])
              for part, names in gemm.PARTS.items()]
    addresses = {n: image.address(symbols[n]) for image, names in zip(images, gemm.PARTS.values(), strict=True)
                 for n in names}
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

    def run(name: str, part: range, integers: tuple[int, ...], arrays: list[tuple[np.ndarray, int]]) -> None:
        words = np.array([*(a.ctypes.data + at for a, at in arrays), *integers], np.int64)
        assert images and kind(addresses[name])(part.start, part.stop, words.ctypes.data) == 0
    return run


def numbers(rng: np.random.Generator, dtype: DType, count: int, special: float) -> np.ndarray:
    """Elements of a dtype, so many of them special."""
    if not dtype.is_floating:
        ends = np.iinfo(dtype.np)
        return rng.integers(ends.min, ends.max, count, dtype.np, endpoint=True)
    values = rng.normal(size=count)
    where = rng.random(count) < special
    values[where] = rng.choice(SPECIAL, int(where.sum()))
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(dtype.np)


def bits(x: np.ndarray) -> bytes:
    """With one NaN for all: its sign and payload are not specified."""
    return np.where(np.isnan(x), np.asarray(np.nan, x.dtype), x).tobytes() if x.dtype.kind == "f" else x.tobytes()


def strided(rng: np.random.Generator, dtype: DType, rows: int, columns: int, layout: str,
            special: float) -> tuple[np.ndarray, int, tuple[int, int]]:
    """Memory of a matrix, the bytes before its first element, and its strides in elements."""
    steps = {"rows": (columns, 1), "columns": (1, rows), "spaced": (3 * columns, 2), "far": (columns + 7, 1),
             "backward": (-columns, -1), "repeated": (0, 1), "one": (0, 0)}[layout]
    reach = [(n - 1) * s for n, s in zip((rows, columns), steps, strict=True)]
    begin = -sum(min(r, 0) for r in reach)
    size = begin + sum(max(r, 0) for r in reach) + 1
    return numbers(rng, dtype, max(size, 1), special), begin * dtype.size, steps


LAYOUTS = ["rows", "columns", "spaced", "far", "backward", "repeated", "one"]
SIZES = st.one_of(st.integers(1, 20), st.sampled_from([31, 32, 33, 64, 65, 130, 255, 256, 257]))


@settings(max_examples=120)
@given(st.sampled_from(DTYPES), SIZES, SIZES, st.one_of(st.integers(0, 20), st.sampled_from([255, 256, 257, 700])),
       st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS), st.integers(1, 3), st.sampled_from([0.0, 0.02, 0.5]),
       st.integers(0, 2**30), st.booleans(), st.sampled_from([None, None, (16, False), (32, True)]))
def test_products(dtype: DType, m: int, n: int, k: int, of_a: str, of_b: str, batch: int, special: float, seed: int,
                  flat: bool, vectors: tuple[int, bool] | None) -> None:
    """With units of all sizes, also of vectors of other processors: each way to read B, and each tier to pack it."""
    rng = np.random.default_rng(seed)
    summed = gemm_shapes.summed(dtype)
    shape = gemm.tiling(dtype) if vectors is None else gemm.Tiling(vectors[0] // summed.size, (6, 4, 2), vectors[1])
    m = 1 if flat else m
    a, at_a, (a_m, a_k) = strided(rng, dtype, batch * m, k, of_a, special)
    b, at_b, (b_k, b_n) = strided(rng, dtype, k, n, of_b, special)
    width = gemm.panel_width(shape, flat)
    tiles = int(rng.integers(1, gemm.tiles_at_once(shape, dtype, k) + 1))
    rows, columns = min(tiles * shape.tall, int(rng.integers(1, 2 * m + 1))), width * int(rng.integers(1, 4))
    total = batch * -(-m // rows) * -(-n // columns)
    size, held = (gemm.BLOCK, gemm.BLOCK) if flat else (gemm_shapes.block(dtype), gemm_shapes.words(dtype))
    panels, room = max(-(-k // size), 1) * -(-n // width), held * width
    modes = [gemm.HERE, gemm.PACKED]
    if b_n == 1 and summed is dtype and shape.masks:
        modes.append(gemm.DIRECT)
    if flat and b_k == 1 and shape.masks:
        modes.append(gemm.TURNED)

    def words(mode: int) -> tuple[int, ...]:
        return mode, m, n, k, n, a_m, a_k, b_k, b_n, rows, columns, 1, batch, m * a_m, 0, m * n

    def computed(multiplies: bool, packs: bool, mode: int) -> bytes:
        out = np.full(batch * m * n, 77, summed.np)
        right = (b, at_b)
        if mode == gemm.PACKED:
            packed = np.zeros(batch * panels * room, summed.np)
            packing = "pack_flat" if flat else "pack_b"
            start(dtype, packs, shape)(packing, range(batch * panels), words(mode), [(packed, 0), right, right])
            right = (packed, 0)
        name = "flat" if flat else "tall"
        for unit in range(total):  # as threads take them, last first
            part = range(total - 1 - unit, total - unit)
            start(dtype, multiplies, shape)(name, part, words(mode), [(out, 0), (a, at_a), right])
        return bits(out)

    expected = computed(False, False, gemm.HERE)
    for mode in modes:
        for packs in (False, True) if mode == gemm.PACKED else (False,):
            assert computed(True, packs, mode) == expected, (mode, packs)
        assert computed(False, True, mode) == expected, mode


@pytest.mark.parametrize("dtype", DTYPES, **ids)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (4, 4, 4), (5, 3, 2), (10, 10, 10), (17, 40, 300)], ids=str)
def test_small_products(sizes: tuple[int, int, int], dtype: DType) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(0)
    a, b = numbers(rng, dtype, m * k, 0.1), numbers(rng, dtype, k * n, 0.1)
    results = []
    for first in (False, True):
        out = np.full(m * n, 77, gemm_shapes.summed(dtype).np)
        start(dtype, first)("small", range(1), sizes, [(out, 0), (a, 0), (b, 0)])
        results.append(bits(out))
    assert results[0] == results[1]


@pytest.mark.parametrize("dtype", DTYPES, **ids)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_products_as_they_are_planned(threads: int, dtype: DType) -> None:
    rng = np.random.default_rng(threads)
    for m, n, k in [(300, 200, 260), (1, 700, 90), (530, 301, 257), (64, 64, 1100), (700, 1, 90), (3, 4, 0)]:
        a, b = numbers(rng, dtype, m * k or 1, 0.01), numbers(rng, dtype, k * n or 1, 0.01)
        plan = products.plan(Matrices(m, n, k, (k, 1), (n, 1), n, ()), dtype, threads)
        summed, results = gemm_shapes.summed(dtype).np, []
        a, b = (b, a) if plan.swapped else (a, b)
        for first in (False, True):
            out, right = np.full(m * n, 77, summed), b
            if plan.packs:
                right = np.zeros(plan.room, summed)
                start(dtype, first)("pack_b", range(plan.packs), plan.integers, [(right, 0), (b, 0), (b, 0)])
            start(dtype, not first if plan.packs else first)(
                plan.kernel, range(plan.total), plan.integers, [(out, 0), (a, 0), (right, 0)])
            results.append(bits(out))
        assert results[0] == results[1], (m, n, k)


@pytest.mark.parametrize("dtype", DTYPES, **ids)
@pytest.mark.parametrize("part", gemm.PARTS)
def test_kernels_of_products_are_well_formed(part: str, dtype: DType) -> None:
    for kernel in gemm_first.kernels(dtype, gemm_shapes.first_tier(gemm.tiling(dtype)), part).values():
        verify(kernel)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], **ids)
@pytest.mark.parametrize("part", conv.PARTS)
def test_kernels_of_convolutions_are_well_formed(part: str, dtype: DType) -> None:
    for kernel in conv_kernels.kernels(dtype, gemm_shapes.first_tier(conv.tiling(dtype)), part).values():
        verify(kernel)
