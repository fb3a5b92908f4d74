"""The generated matrix product against NumPy in float64, and its one order of additions against a loop."""

from __future__ import annotations

import ctypes
import itertools

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

from twofold.codegen import gemm, gemm_kernels, gemm_shapes, gemm_tile, llvm_module, lockstep, lockstep_memory
from twofold.codegen import target as targets
from twofold.codegen.loop_verify import verify
from twofold.codegen.matrices import Matrices
from twofold.ir import dtypes as dt
from twofold.ir.data_class import replace
from twofold.runtime import products, threads
from twofold.runtime.products import Product

FLOATS = [dt.float32, dt.float64]
HALVES = [dt.float16, dt.bfloat16]
WORDS = [dt.int32, dt.uint32, dt.int64, dt.uint64]
BYTES = [dt.int8]
ids = {"ids": lambda d: getattr(d, "name", None)}


def draw(seed, *shape, dtype=dt.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype.np)


def whole(seed, *shape, dtype):
    """Integers over all of a dtype's range."""
    ends = np.iinfo(dtype.np)
    return np.random.default_rng(seed).integers(ends.min, ends.max, shape, dtype.np, endpoint=True)


def multiply(a, b, dtype):
    return Product(dtype, a.shape, b.shape)((a, b))


def assert_close(result, a, b, dtype):
    """Within k units of rounding of the sum of the magnitudes: Higham, Accuracy and Stability, section 3.5."""
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    unit = np.finfo(dtype.compute.np).eps
    # The reference is rounded too, in float64.
    bound = (a.shape[-1] + 2) * (unit + np.finfo(np.float64).eps) * (np.abs(wide_a) @ np.abs(wide_b))
    assert result.shape == (wide_a @ wide_b).shape
    assert (np.abs(result - wide_a @ wide_b) <= bound).all(), (a.shape, b.shape, a.strides, b.strides)


def assert_same(x, y):
    assert x.dtype == y.dtype
    np.testing.assert_array_equal(x.view(f"u{x.itemsize}"), y.view(f"u{y.itemsize}"))


def layouts(x):
    """The same matrix, or stack of them, in memory walked in several ways."""
    spaced = np.zeros((*x.shape[:-2], x.shape[-2] * 2, x.shape[-1] * 3), x.dtype)
    spaced[..., ::2, ::3] = x
    return {
        "rows": np.ascontiguousarray(x),
        "columns": np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
        "spaced": spaced[..., ::2, ::3],
        "backward": np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1],
        "columns backward": np.ascontiguousarray(x[..., :, ::-1].swapaxes(-1, -2)).swapaxes(-1, -2)[..., :, ::-1],
    }


# -- values -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", FLOATS, **ids)
@pytest.mark.parametrize("k", [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 20])
def test_small_shapes(k, dtype):
    for m, n in itertools.product(range(21), range(21)):
        a, b = draw(m, m, k, dtype=dtype), draw(n + 100, k, n, dtype=dtype)
        assert_close(multiply(a, b, dtype), a, b, dtype)


@pytest.mark.parametrize("dtype", FLOATS + HALVES, **ids)
@pytest.mark.parametrize("shape", [(133, 97, 517), (1, 1001, 300), (999, 1, 257), (301, 1025, 40), (29, 33, 1500),
                                   (300, 300, 300)], ids=str)
def test_large_shapes_and_layouts(shape, dtype):
    m, n, k = shape
    a, b = draw(0, m, k, dtype=dtype), draw(1, k, n, dtype=dtype)
    first = multiply(a, b, dtype)
    assert_close(first, a, b, dtype)
    for x, y in itertools.product(layouts(a).values(), layouts(b).values()):
        assert_same(multiply(x, y, dtype), first)


@pytest.mark.parametrize("dtype", WORDS, **ids)
@pytest.mark.parametrize("shape", [(1, 70, 300), (70, 1, 300), (5, 3, 2), (133, 97, 517), (40, 30, 0)], ids=str)
def test_products_of_integers_wrap_around(shape, dtype):
    m, n, k = shape
    a, b = whole(0, m, k, dtype=dtype), whole(1, k, n, dtype=dtype)
    for x, y in itertools.product(layouts(a).values(), layouts(b).values()):
        assert_same(multiply(x, y, dtype), a @ b)


def test_small_layouts():
    for m, n, k in [(1, 1, 5), (1, 9, 5), (9, 1, 5), (3, 5, 1), (17, 35, 18), (2, 130, 31)]:
        a, b = draw(0, m, k), draw(1, k, n)
        for x, y in itertools.product(layouts(a).values(), layouts(b).values()):
            assert_same(multiply(x, y, dt.float32), multiply(a, b, dt.float32))


def test_repeated_rows_and_columns():
    a, b = np.broadcast_to(draw(0, 1, 40), (30, 40)), np.broadcast_to(draw(1, 40, 1), (40, 50))
    assert_close(multiply(a, b, dt.float32), a, b, dt.float32)
    c, d = np.broadcast_to(draw(2, 30, 1), (30, 40)), np.broadcast_to(draw(3, 1, 50), (40, 50))
    assert_close(multiply(c, d, dt.float32), c, d, dt.float32)


def test_strides_that_are_not_whole_elements():
    packed = np.zeros((5, 3), np.dtype([("flag", "u1"), ("x", "<f4")]))
    packed["x"] = draw(0, 5, 3)
    b = draw(1, 3, 4)
    assert packed["x"].strides[1] == 5
    assert_same(multiply(packed["x"], b, dt.float32), multiply(packed["x"].copy(), b, dt.float32))


def test_flipped_operands():
    a, b = draw(0, 3, 20, 12), draw(1, 3, 31, 20)
    product = Product(dt.float32, a.shape, b.shape, True, True)
    assert_same(product((a, b)), multiply(a.swapaxes(-1, -2), b.swapaxes(-1, -2), dt.float32))


# -- the order of additions -------------------------------------------------------------------------------------
def in_order(a, b):
    """The sum of products as `codegen/gemm.py` states it, for float32 operands whose products and sums float64 holds
    exactly, so that each fused multiply-add rounds once."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for start in range(0, a.shape[1], gemm.BLOCK):
        part = np.zeros_like(total)
        for t in range(start, min(start + gemm.BLOCK, a.shape[1])):
            exact = a[:, t, None].astype(np.float64) * b[t] + part
            part = exact.astype(np.float32)
        total = total + part
    return total


@pytest.mark.parametrize("shape", [(15, 33, 700), (1, 40, 600), (40, 1, 600), (200, 70, 513)], ids=str)
def test_order_of_additions(shape):
    m, n, k = shape
    rng = np.random.default_rng(5)
    # Multiples of 2**-11, so that products and sums are multiples of 2**-22: far within the 53 bits of float64.
    a, b = (rng.integers(-2048, 2048, size).astype(np.float32) / 2048 for size in ((m, k), (k, n)))
    expected = in_order(a, b)
    assert_same(multiply(a, b, dt.float32), expected)
    assert (a.astype(np.float64) @ b != expected).any()  # sums do round, so that the order matters


def test_a_sum_of_nothing_and_of_negative_zeros_is_zero():
    assert_same(multiply(np.zeros((3, 0), np.float32), np.zeros((0, 2), np.float32), dt.float32),
                np.zeros((3, 2), np.float32))
    assert_same(multiply(np.full((3, 4), -0.0, np.float32), np.ones((4, 2), np.float32), dt.float32),
                np.zeros((3, 2), np.float32))


@pytest.mark.parametrize("dtype", FLOATS, **ids)
def test_parts_have_the_bits_of_the_whole(dtype):
    a, b = draw(0, 150, 600, dtype=dtype), draw(1, 600, 170, dtype=dtype)
    whole = multiply(a, b, dtype)
    for rows, columns in [(slice(3, 4), slice(None)), (slice(None), slice(5, 6)), (slice(7, 9), slice(1, 40)),
                          (slice(20, 150), slice(33, 170)), (slice(149, 150), slice(169, 170))]:
        x, y = a[rows], b[:, columns]
        assert_same(multiply(x, y, dtype), np.ascontiguousarray(whole[rows, columns]))


@pytest.mark.parametrize("shape", [(400, 410, 300), (1, 3000, 700), (3000, 1, 700), (20, 2000, 300), (2000, 20, 300)],
                         ids=str)
def test_threads_do_not_change_bits(shape):
    m, n, k = shape
    a, b = draw(0, m, k), draw(1, k, n)
    before, results = threads.get_num_threads(), []
    product = Product(dt.float32, a.shape, b.shape)
    try:
        for count in (1, 2, 3):
            threads.set_num_threads(count)
            results.append(product((a, b)))
    finally:
        threads.set_num_threads(before)
    assert_same(results[0], results[1])
    assert_same(results[0], results[2])


# -- special values ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(1, 50, 20), (50, 1, 20), (17, 35, 20), (100, 130, 300)], ids=str)
@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_special_values_stay_in_their_row_and_column(shape, special):
    m, n, k = shape
    a, b = draw(0, m, k), draw(1, k, n)
    a[m // 2, k - 1] = special
    b[k - 1, n // 3] = 0
    result = multiply(a, b, dt.float32)
    assert not np.isfinite(result[m // 2]).any()
    assert np.isnan(result[m // 2, n // 3])  # 0 times infinity counts
    assert np.isfinite(np.delete(result, m // 2, axis=0)).all()


def test_nothing_around_the_operands_is_read_into_the_result_or_written():
    for m, n, k in itertools.product((1, 2, 5, 15, 29), (1, 3, 17, 40, 129), (1, 6, 19)):
        frames = [np.full((rows + 40, columns + 140), np.nan, np.float32) for rows, columns in ((m, k), (k, n))]
        a, b = (f[20:20 + rows, 70:70 + columns] for f, (rows, columns) in zip(frames, ((m, k), (k, n)), strict=True))
        a[...], b[...] = draw(0, m, k), draw(1, k, n)
        for x, y in ((a, b), (np.asfortranarray(a), np.asfortranarray(b))):
            room = np.full(m * n + 400, np.nan, np.float32)
            out = room[200:200 + m * n].reshape(m, n)
            Product(dt.float32, x.shape, y.shape).into(out, x, y)
            assert_close(out, a, b, dt.float32)
            assert np.isnan(room[:200]).all() and np.isnan(room[200 + m * n:]).all()


def test_halves_are_summed_in_float32():
    a, b = np.full((3, 4000), 1, np.float16), np.full((4000, 5), 1, np.float16)
    result = multiply(a, b, dt.float16)
    assert result.dtype == np.float32
    assert (result == 4000).all()  # float16 would stay at 2048


# -- batches ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("batches", [((3,), (3,)), ((3,), (1,)), ((), (4,)), ((4,), ()), ((2, 1, 3), (5, 1)),
                                     ((1,), (1,)), ((2, 3), (2, 1)), ((0,), (1,)), ((600,), (600,))], ids=str)
@pytest.mark.parametrize("sizes", [(5, 6, 7), (1, 40, 9), (40, 1, 9), (1, 1, 3)], ids=str)
def test_batches(batches, sizes):
    m, n, k = sizes
    a, b = draw(0, *batches[0], m, k), draw(1, *batches[1], k, n)
    first = multiply(a, b, dt.float32)
    assert_close(first, a, b, dt.float32)
    for x, y in itertools.product(layouts(a).values(), layouts(b).values()):
        assert_same(multiply(x, y, dt.float32), first)


def test_batches_of_large_matrices():
    a, b = draw(0, 3, 300, 280), draw(1, 3, 280, 310)
    result = multiply(a, b, dt.float32)
    for n in range(3):
        assert_same(result[n], multiply(a[n], b[n], dt.float32))


def test_too_many_batch_dimensions():
    with pytest.raises(ValueError, match="at most 16 batch dimensions, got 17"):
        products.plan(Matrices(1, 1, 1, (1, 1), (1, 1), 1, ((2, 1, 1, 1),) * 17), dt.float32, 1)


# -- other processors -------------------------------------------------------------------------------------------
def shapes_for_other_processors(dtype):
    size = gemm_shapes.summed(dtype).size
    shapes = [gemm.Tiling(width // size, heights, masks) for width in (16, 32, 64)
              for heights, masks in (((6, 4, 2), False), ((14, 8, 4), True), ((3, 2, 1), False))]
    return [*shapes, gemm.Tiling(16 // size, (14, 8, 4), False)]


def run(start, mode, a, b, dtype, shape):
    """One product by the functions of another tile shape, in units of little work.

    Args:
        start: runs the function of a name over a range, with integers after the addresses of arrays; gives its status.
    """
    (m, k), n, size = a.shape, b.shape[1], a.itemsize
    nothing = np.nan if dtype.is_floating else -1
    sums = gemm_shapes.summed(dtype).np
    out = np.full((m, n), nothing).astype(sums)
    width = gemm.panel_width(shape, False)
    sizes = (mode, m, n, k, n, *(s // size for s in (*a.strides, *b.strides)), shape.tall, width, 0)
    blocks, panels = -(-k // gemm_shapes.block(dtype)), -(-n // width)
    right = b
    if mode == gemm.PACKED:
        right = np.full(blocks * panels * max(gemm_shapes.words(dtype), gemm.BLOCK) * width, nothing).astype(sums)
        assert start("pack_b", blocks * panels, sizes, (right, a, b)) == 0
    assert start("tall" if m > 1 else "flat", -(-m // shape.tall) * panels, sizes, (out, a, right)) == 0
    return out


@pytest.mark.parametrize("dtype", FLOATS + HALVES, **ids)
@pytest.mark.parametrize("width", [16, 32])
def test_multiply_adds_that_take_a_lane_for_all_give_the_same_bits(width, dtype):
    """As on AArch64, where packed rows of A are loaded as vectors."""
    shape = gemm.Tiling(width // dtype.compute.size, (12, 8, 4), False)
    with targets.use(replace(targets.host(), registers_only=True)):
        engine, start = load(dtype, shape)
    for m, n, k in [(12, 16, 20), (40, 70, 300)]:
        a, b = draw(0, m, k, dtype=dtype), draw(1, k, n, dtype=dtype)
        for mode in (gemm.HERE, gemm.PACKED):
            assert_same(run(start, mode, a, b, dtype, shape), multiply(a, b, dtype))
    assert engine is not None


@pytest.mark.parametrize(("number", "dtype"), [(number, dtype) for number in range(10) for dtype in FLOATS + HALVES
                                               if dtype in FLOATS or number % 2 == (dtype is dt.float16)], **ids)
def test_other_widths_and_heights_give_the_same_bits(number, dtype):
    shape = shapes_for_other_processors(dtype)[number]
    engine, start = load(dtype, shape, parts=gemm.PARTS)
    for m, n, k in [(1, 30, 20), (5, 3, 2), (40, 70, 300)]:
        a, b = draw(0, m, k, dtype=dtype), draw(1, k, n, dtype=dtype)
        expected = multiply(a, b, dtype)
        direct = [gemm.DIRECT] if shape.masks and dtype in FLOATS else []
        turned = [gemm.TURNED] if shape.masks and m == 1 else []
        for mode in turned:
            assert_same(run(start, mode, a, np.asfortranarray(b), dtype, shape), expected)
        for mode in ([gemm.HERE, gemm.PACKED] if m > 1 else [gemm.HERE]) + direct:
            assert_same(run(start, mode, a, b, dtype, shape), expected)
            if mode != gemm.DIRECT:
                assert_same(run(start, mode, np.asfortranarray(a), np.asfortranarray(b), dtype, shape), expected)
    assert engine is not None


@pytest.mark.parametrize("dtype", FLOATS, **ids)
def test_the_largest_units_without_a_heap(dtype):
    """As exported libraries compute them: all packed operands are on the stack."""
    shape = gemm.Tiling(16 // dtype.size, (14, 8, 4), False)
    engine, start = load(dtype, shape, heap=False)
    for k in (30, 100, 300):
        rows = gemm.tiles_at_once(shape, dtype, k) * shape.tall
        a, b = draw(0, rows, 2 * k, dtype=dtype)[:, ::2], draw(1, k, 40, dtype=dtype)
        out = np.full((rows, 40), np.nan, dtype.np)
        assert start("tall", 1, (gemm.HERE, rows, 40, k, 40, 2 * k, 2, 40, 1, rows, 40, 0), (out, a, b)) == 0
        assert_same(out, multiply(a, b, dtype))
    assert engine is not None


def load(dtype, shape, heap=True, parts=("tall",)):
    """The functions of a tile shape in an engine of their own: their names are taken in the process's."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, use_lmm=True)
    for part in parts:
        module = ir.Module()
        gemm.build(module, dtype, shape, part, heap)
        image = llvm_module.object_code(llvm_module.verified(module))
        engine.add_object_file(llvm.ObjectFileRef.from_data(image))
    engine.finalize_object()
    names = [name for part in parts for name in gemm.PARTS[part]]
    addresses = {name: engine.get_function_address(gemm.symbol(name, dtype)) for name in names}
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

    def start(name, total, integers, arrays):
        words = np.array([*(a.ctypes.data for a in arrays), *integers], np.int64)
        return call(addresses[name])(0, total, words.ctypes.data)
    return engine, start


# -- the kernels as loop IR -------------------------------------------------------------------------------------
def test_text_of_a_micro_kernel():
    assert str(gemm_tile.micro(gemm.Tiling(4, (2, 1), True), dt.float32, 2, 1)) == """\
function micro_2x1(a: f32*, a_m: i64, a_k: i64, b: f32*, ldb: i64, old: f32*, ldo: i64, c: f32*, ldc: i64, k: i64, \
m: i64, n: i64, next: f32*) {
  %0 = first n : i1x4
  var0 = 0.0
  var1 = 0.0
  %1 = mul a_m 1 : i64
  %2 = mul a_m 3 : i64
  var2 = a
  var3 = b
  var4 = next
  for %3 in k..0 by -1 {
    %4 = var3
    %5 = load %4[0] where %0 : f32x4
    %6 = var4
    prefetch %6[0]
    %7 = var2
    prefetch %7[%2]
    %8 = load %7[0]
    %9 = splat %8 : f32x4
    %10 = var0
    %11 = fma %9 %5 %10 : f32x4
    var0 = %11
    %12 = load %7[%1]
    %13 = splat %12 : f32x4
    %14 = var1
    %15 = fma %13 %5 %14 : f32x4
    var1 = %15
    %16 = var2
    %17 = at %16[a_k]
    var2 = %17
    %18 = var3
    %19 = at %18[ldb]
    var3 = %19
    %20 = var4
    %21 = at %20[ldb]
    var4 = %21
  }
  %22 = lt 0 m : i1
  if %22 {
    %23 = var0
    %24 = load old[0] where %0 : f32x4
    %25 = add %24 %23 : f32x4
    store c[0] where %0 = %25
    %26 = lt 1 m : i1
    if %26 {
      %27 = mul ldo 1 : i64
      %28 = at old[%27]
      %29 = mul ldc 1 : i64
      %30 = at c[%29]
      %31 = var1
      %32 = load %28[0] where %0 : f32x4
      %33 = add %32 %31 : f32x4
      store %30[0] where %0 = %33
    }
  }
}"""


@pytest.mark.parametrize("dtype", FLOATS + HALVES + WORDS + BYTES, **ids)
@pytest.mark.parametrize("part", gemm.PARTS)
def test_kernels_are_well_formed(part, dtype):
    for shape in shapes_for_other_processors(dtype):
        for kernel in gemm_kernels.kernels(dtype, shape, part).values():
            verify(kernel)


def in_lockstep(dtype, shape):
    """The functions of a tile shape, run by NumPy."""
    kernels = {name: k for part in gemm.PARTS for name, k in gemm_kernels.kernels(dtype, shape, part).items()}

    def start(name, total, words, arrays):
        held = [lockstep.ByteMemory(np.lib.stride_tricks.as_strided(a, (a.size,), (a.itemsize,)).view(np.uint8))
                for a in arrays]
        return lockstep.run(kernels[name], total, [*held, *words])
    return start


def orders(k):
    """The orders of two operands in memory: all pairs, and for long sums, which take long here, both orders of each,
    since where an element of one lies does not depend on the order of the other."""
    return ["CC", "FF"] if k > gemm.BLOCK else ["CC", "CF", "FC", "FF"]


@pytest.mark.parametrize(("number", "dtype"), [*((n, dt.float32) for n in (0, 4, 8)), (4, dt.float64), (8, dt.float64),
                                               (0, dt.float16), (4, dt.bfloat16), (8, dt.bfloat16)], **ids)
def test_kernels_in_lockstep_give_the_bits_of_machine_code(number, dtype):
    shape = shapes_for_other_processors(dtype)[number]
    start = in_lockstep(dtype, shape)
    for m, n, k in [(1, 30, 20), (5, 3, 2), (2 * shape.tall + 3, 2 * shape.lanes + 3, 5), (3, 5, 259)]:
        a, b = draw(0, m, k, dtype=dtype), draw(1, k, n, dtype=dtype)
        expected = multiply(a, b, dtype)
        direct = [gemm.DIRECT] if shape.masks and dtype in FLOATS else []
        for mode in ([gemm.HERE, gemm.PACKED] if m > 1 else [gemm.HERE]) + direct:
            assert_same(run(start, mode, a, b, dtype, shape), expected)
            if mode != gemm.DIRECT:
                assert_same(run(start, mode, np.asfortranarray(a), np.asfortranarray(b), dtype, shape), expected)
        if shape.masks and m == 1:
            assert_same(run(start, gemm.TURNED, a, np.asfortranarray(b), dtype, shape), expected)


# -- pairs of bfloat16 ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 5, 1), (14, 32, 2), (17, 33, 257), (4, 16, 512), (1, 70, 300),
                                   (128, 128, 784), (300, 200, 513)], ids=str)
def test_bfloat16_products_have_the_bits_of_float32(shape):
    m, n, k = shape
    a, b = draw(0, m, k, dtype=dt.bfloat16), draw(1, k, n, dtype=dt.bfloat16)
    wide = multiply(a.astype(np.float32), b.astype(np.float32), dt.float32)
    for x, y in itertools.product(layouts(a).values(), layouts(b).values()):
        assert_same(multiply(x, y, dt.bfloat16), wide)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("shape", [(3, 5, 1), (7, 19, 6), (5, 3, 259)], ids=str)
def test_products_in_pairs_on_processors_that_have_them_and_others(shape, pairs):
    m, n, k = shape
    a, b = draw(0, m, k, dtype=dt.bfloat16), draw(1, k, n, dtype=dt.bfloat16)
    wide = multiply(a.astype(np.float32), b.astype(np.float32), dt.float32)
    with targets.use(replace(targets.host(), pairs=pairs)):
        for tiles in (gemm.Tiling(4, (3, 2, 1), False), gemm.Tiling(8, (6, 4, 2), True)):
            start = in_lockstep(dt.bfloat16, tiles)
            for mode, (order_a, order_b) in itertools.product([gemm.HERE, gemm.PACKED], orders(k)):
                x, y = np.array(a, order=order_a), np.array(b, order=order_b)
                assert_same(run(start, mode, x, y, dt.bfloat16, tiles), wide)


def test_products_in_pairs_of_infinities_and_nan():
    a, b = draw(0, 20, 40, dtype=dt.bfloat16), draw(1, 40, 37, dtype=dt.bfloat16)
    a[3, 7], a[4, 39], a[5, :2], b[7, 5], b[39, 8] = np.inf, np.nan, (np.inf, -np.inf), 0, np.inf
    wide = multiply(a.astype(np.float32), b.astype(np.float32), dt.float32)
    np.testing.assert_array_equal(multiply(a, b, dt.bfloat16), wide)
    assert np.isnan(wide[4]).all() and np.isinf(wide).any()


def test_products_in_pairs_take_subnormal_numbers_as_zero():
    least = np.finfo(np.float32).smallest_normal
    a = np.array([[2.0**-130, 1.0], [2.0**-70, 0.0], [2.0**-126, 1.0]]).astype(dt.bfloat16.np)
    b = np.array([[1.0, 2.0**-70], [0.0, 2.0**-126]]).astype(dt.bfloat16.np)
    with targets.use(replace(targets.host(), pairs=True)):
        tiles = gemm.Tiling(4, (3, 2, 1), False)
        got = run(in_lockstep(dt.bfloat16, tiles), gemm.HERE, a, b, dt.bfloat16, tiles)
    assert_same(got, np.array([[0, least], [2.0**-70, 0], [least, least]], np.float32))
    if targets.host().pairs:
        assert_same(multiply(a, b, dt.bfloat16), got)


# -- quads of int8 ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(1, 70, 300), (70, 1, 300), (2, 2, 1), (5, 3, 2), (14, 32, 3), (17, 33, 257),
                                   (133, 97, 1517), (40, 30, 0), (300, 200, 1025), (128, 128, 64)], ids=str)
def test_products_of_int8_are_those_of_int64(shape):
    m, n, k = shape
    a, b = whole(0, m, k, dtype=dt.int8), whole(1, k, n, dtype=dt.int8)
    expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    for x, y in itertools.product(layouts(a).values(), layouts(b).values()):
        assert_same(multiply(x, y, dt.int8), expected)


def test_batches_of_products_of_int8():
    a, b = whole(0, 2, 3, 20, 70, dtype=dt.int8), whole(1, 3, 70, 45, dtype=dt.int8)
    assert_same(multiply(a, b, dt.int8), (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32))


def test_sums_of_products_of_int8_wrap_around():
    a, b = np.full((3, 1 << 18), -128, np.int8), np.full((1 << 18, 2), -128, np.int8)
    b[:, 1] = 127
    exact = a.astype(np.int64) @ b.astype(np.int64)
    assert (exact[0] == (1 << 32, -127 << 25)).all()
    assert_same(multiply(a, b, dt.int8), exact.astype(np.int32))


@pytest.mark.parametrize("quads", [False, True])
@pytest.mark.parametrize("shape", [(1, 30, 20), (3, 5, 1), (7, 19, 6), (3, 5, 519)], ids=str)
def test_products_in_quads_on_processors_that_have_them_and_others(shape, quads):
    m, n, k = shape
    a, b = whole(0, m, k, dtype=dt.int8), whole(1, k, n, dtype=dt.int8)
    expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    with targets.use(replace(targets.host(), quads=quads)):
        for tiles in (gemm.Tiling(4, (3, 2, 1), False), gemm.Tiling(8, (6, 4, 2), True)):
            start = in_lockstep(dt.int8, tiles)
            for mode in (gemm.HERE, gemm.PACKED) if m > 1 else (gemm.HERE,):
                for x, y in [(np.array(a, order=i), np.array(b, order=j)) for i, j in orders(k)]:
                    assert_same(run(start, mode, x, y, dt.int8, tiles), expected)


@pytest.mark.skipif(not targets.host().quads, reason="the processor multiplies no quads")
@pytest.mark.parametrize("width", [16, 32, 64])
def test_products_in_quads_of_other_widths(width):
    """Vectors of all lengths, masked ones among them, as processors without AVX-512 take them."""
    for heights, masks in (((6, 4, 2), True), ((14, 8, 4), True), ((3, 2, 1), False)):
        shape = gemm.Tiling(width // 4, heights, masks)
        engine, start = load(dt.int8, shape)
        for m, n, k in [(5, 3, 2), (40, 70, 300), (17, 9, 1100)]:
            a, b = whole(0, m, k, dtype=dt.int8), whole(1, k, n, dtype=dt.int8)
            expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
            for mode, i, j in itertools.product((gemm.HERE, gemm.PACKED), "CF", "CF"):
                assert_same(run(start, mode, np.array(a, order=i), np.array(b, order=j), dt.int8, shape), expected)
        assert engine is not None


@pytest.mark.parametrize("dtype", [dt.int32, dt.uint64], **ids)
def test_products_of_integers_in_lockstep(dtype):
    for tiles in (gemm.Tiling(4, (3, 2, 1), False), gemm.Tiling(8, (6, 4, 2), True)):
        start = in_lockstep(dtype, tiles)
        for m, n, k in [(1, 30, 20), (7, 19, 6), (3, 5, 259)]:
            a, b = whole(0, m, k, dtype=dtype), whole(1, k, n, dtype=dtype)
            for mode in (gemm.HERE, gemm.PACKED) if m > 1 else (gemm.HERE,):
                assert_same(run(start, mode, a, np.asfortranarray(b), dtype, tiles), a @ b)


def test_a_small_product_in_lockstep():
    a, b = draw(0, 20, 6), draw(1, 6, 7)
    kernel = gemm_kernels.kernels(dt.float32, gemm.Tiling(4, (3, 2, 1), True), "tall")["small"]
    out = np.full((20, 7), np.nan, np.float32)
    arrays = [lockstep.ByteMemory(x.reshape(-1).view(np.uint8)) for x in (out, a, b)]
    assert lockstep.run(kernel, 1, [*arrays, 20, 7, 6]) == 0
    assert_same(out, multiply(a, b, dt.float32))


def test_room_for_packed_rows_is_enough_for_every_inner_size():
    for dtype in FLOATS + HALVES + BYTES:
        for shape in shapes_for_other_processors(dtype):
            square = gemm_shapes.square(shape, dtype)
            for inner in range(1, 1100):
                depth = min(-(-inner // square) * square, gemm_shapes.block(dtype)) * shape.lanes // square
                packed = gemm.tiles_at_once(shape, dtype, inner) * depth * shape.depth
                assert packed <= gemm_shapes.most_packed(shape, dtype)


def test_panels_hold_no_leftovers():
    """What micro-kernels read beside the rows of a product are zeros, not whatever lies there."""
    for shape, m, spaced in [(gemm.Tiling(4, (6, 4, 2), True), 3, 1), (gemm.Tiling(8, (14, 8, 4), True), 8, 1),
                             (gemm.Tiling(8, (6, 4, 2), True), 2, 2)]:
        kernel = gemm_kernels.kernels(dt.float64, shape, "tall")["tall"]
        a, b, out = draw(0, m, 5 * spaced, dtype=dt.float64), draw(1, 5, 3, dtype=dt.float64), np.zeros((m, 3))
        seen = []

        class Watched(lockstep_memory.AddressSpace):
            def load(self, addresses, dtype, seen=seen):
                values = super().load(addresses, dtype)
                seen.extend(values[np.isnan(values)] if dtype is dt.float64 else ())
                return values

        arrays = [lockstep.ByteMemory(x.reshape(-1).view(np.uint8)) for x in (out, a, b)]
        words = (gemm.HERE, m, 3, 5, 3, 5 * spaced, spaced, 3, 1, shape.tall, gemm.panel_width(shape, False), 0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lockstep, "AddressSpace", Watched)
            assert lockstep.run(kernel, 1, [*arrays, *words]) == 0
        assert_close(out, a[:, ::spaced], b, dt.float64)
        assert not seen


def test_the_tile_shape_fits_the_registers():
    for dtype in FLOATS:
        shape = gemm.tiling(dtype)
        assert shape.lanes * dtype.size * 8 == llvm_module.vector_bits()
        assert shape.tall * 2 + 3 <= (16 if shape.tall <= 6 else 32)
