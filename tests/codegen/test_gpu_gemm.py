"""Matrix products on a GPU, in lockstep: the bits of the processor's products, and what the assembler says of them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import gpu_reference
import ml_dtypes
import numpy as np
import pytest
from ptx_checks import clean

import twofold as tf
from twofold.codegen import gpu_gemm, lockstep, loop_verify
from twofold.codegen.gemm_shapes import summed
from twofold.codegen.gpu_gemm import APART, INNER, OUTER, SHAPES, TileShape
from twofold.codegen.loop import TeamBuilder
from twofold.codegen.matrices import Matrices
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.runtime.products import Product

DTYPES = [dt.float32, dt.float64, dt.float16, dt.bfloat16, dt.int8, dt.int32, dt.uint64]
EVERY = [(dtype, shape) for dtype in DTYPES for shape in SHAPES[summed(dtype).size]]
FEW = [(dtype, shape) for dtype, shape in EVERY if dtype is dt.float32 or shape.rows == 32]
names = {"ids": lambda x: f"{x.rows}x{x.columns}" if isinstance(x, TileShape) else getattr(x, "name", None)}


def some(seed: int, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """Random numbers; floats have subnormal products and infinite ones among them, which NaN comes of."""
    rng = np.random.default_rng(seed)
    if dtype.is_integer:
        ends = np.iinfo(dtype.np)
        return rng.integers(ends.min, ends.max, shape, dtype.np, endpoint=True)
    x = rng.normal(size=shape)
    if dtype is not dt.bfloat16:  # of which the processor's instructions take and give subnormal numbers as 0
        x.reshape(-1)[::7] *= float(ml_dtypes.finfo(dtype.np).tiny) ** 0.6
    return x.astype(dtype.np)


def memory(x: np.ndarray, how: str) -> tuple[np.ndarray, tuple[int, int], int]:
    """A matrix in memory, the strides of its rows and columns, and where it begins: with neighbours as `how` says, in a
    row or in a column."""
    if how == APART:
        spaced = np.zeros((2 * x.shape[0], 3 * x.shape[1]), x.dtype)
        spaced[::2, ::3] = x
        return spaced, (2 * spaced.shape[1], 3), 0
    wide = -(-x.shape[how == INNER] // 8) * 8
    if how == INNER:
        padded = np.zeros((x.shape[0], wide), x.dtype)
        padded[:, :x.shape[1]] = x
        return padded, (wide, 1), 0
    padded = np.zeros((x.shape[1], wide), x.dtype)
    padded[:, :x.shape[0]] = x.T
    return padded, (1, wide), 0


def multiplied(a: np.ndarray, b: np.ndarray, how: tuple[str, str], dtype: DType, shape: TileShape,
               parts: bool = False, shift: int = 0) -> np.ndarray:
    """The product of two matrices by a kernel, whose operands begin `shift` elements behind where they are aligned."""
    (m, k), n = a.shape, b.shape[1]
    compute, count = summed(dtype), -(-k // 256)
    ldc = n if parts else n + 3
    out = np.full((count if parts else 1, m, ldc), 7, compute.np)
    left, of_a, _ = memory(a, how[0])
    right, of_b, _ = memory(b.T, how[1])
    places = [np.concatenate([np.zeros(shift, dtype.np), x.reshape(-1)]) for x in (left, right)]
    kernel = gpu_gemm.kernel(dtype, how, shape, 0, parts)
    loop_verify.verify(kernel)
    total = -(-m // shape.rows) * -(-n // shape.columns) * (count if parts else 1)
    args = [lockstep.ByteMemory(out.reshape(-1).view(np.uint8)),
            *[lockstep.ByteMemory(x.view(np.uint8), shift * dtype.size) for x in places],
            m, n, k, ldc, *of_a, *of_b[::-1], *([count] if parts else [])]
    assert lockstep.run(kernel, total, args) == 0
    if parts:
        joined = np.zeros((m, n), compute.np)
        args = [lockstep.ByteMemory(x.reshape(-1).view(np.uint8)) for x in (joined, out)]
        assert lockstep.run(gpu_gemm.joined(compute), m * n, [*args, count, m * n]) == 0
        return joined
    assert (out[0, :, n:] == 7).all()
    return out[0, :, :n]


def assert_same(a: np.ndarray, b: np.ndarray, got: np.ndarray, dtype: DType) -> None:
    want = Product(dtype, a.shape, b.shape)((a, b))
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)  # the signs of zeros, too, and NaN where it is:
    assert np.where(np.isnan(got), 0, got).tobytes() == np.where(np.isnan(want), 0, want).tobytes()


@pytest.mark.parametrize(("dtype", "shape"), EVERY, **names)
def test_tiles_at_edges(dtype: DType, shape: TileShape) -> None:
    """Whole tiles and parts of some, and an inner index that ends inside a slab."""
    columns = shape.columns + 3 if shape.columns > 1 else 1
    a, b = some(0, (shape.rows + 5, 27), dtype), some(1, (27, columns), dtype)
    assert_same(a, b, multiplied(a, b, (INNER, OUTER), dtype, shape), dtype)


@pytest.mark.parametrize(("dtype", "shape"), FEW, **names)
def test_more_than_one_block(dtype: DType, shape: TileShape) -> None:
    a, b = some(2, (9, 530), dtype), some(3, (530, 1 if shape.columns == 1 else 8), dtype)
    assert_same(a, b, multiplied(a, b, (INNER, OUTER), dtype, shape), dtype)
    assert_same(a, b, multiplied(a, b, (INNER, OUTER), dtype, shape, parts=True), dtype)


HOW = list(itertools.product((INNER, OUTER, APART), repeat=2))


# Each way for one dtype, and every second one for each of the others, other ones from dtype to dtype.
@pytest.mark.parametrize(("dtype", "how"), [(d, how) for n, d in enumerate(DTYPES) for m, how in enumerate(HOW)
                                            if not n or (n + m) % 2],
                         ids=lambda v: "-".join(v) if isinstance(v, tuple) else v.name)
def test_how_operands_lie(dtype: DType, how: tuple[str, str]) -> None:
    shape = next(s for s in SHAPES[summed(dtype).size] if s.rows == 32)
    a, b = some(4, (40, 50), dtype), some(5, (50, 36), dtype)
    for shift in (0, 1):
        assert_same(a, b, multiplied(a, b, how, dtype, shape, shift=shift), dtype)


@pytest.mark.parametrize("k", [0, 1, 255, 256, 257])
def test_inner_sizes(k: int) -> None:
    a, b = some(6, (3, k), dt.float32), some(7, (k, 5), dt.float32)
    assert_same(a, b, multiplied(a, b, (INNER, OUTER), dt.float32, SHAPES[4][2]), dt.float32)


def test_sums_of_negative_zeros() -> None:
    """What underflows to -0 in a block is +0 in the end, also where zeros follow it inside of a slab."""
    a, b = np.full((2, 17), -1e-30, np.float32), np.full((17, 2), 1e-30, np.float32)
    got = multiplied(a, b, (INNER, OUTER), dt.float32, SHAPES[4][2])
    assert_same(a, b, got, dt.float32)
    assert not np.signbit(got).any()


def test_nothing_beyond_an_operand_is_multiplied() -> None:
    a, b = np.full((3, 5), np.inf, np.float32), np.full((5, 3), np.inf, np.float32)
    assert_same(a, b, multiplied(a, b, (APART, APART), dt.float32, SHAPES[4][2]), dt.float32)


# -- plans ------------------------------------------------------------------------------------------------------
def tensor(seed: int, *shape: int, dtype: Any = tf.float32) -> tf.Tensor:
    return tf.cast(np.random.default_rng(seed).normal(size=shape) * 3, dtype)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.bfloat16, tf.float16, tf.complex64, tf.int32, tf.int8],
                         ids=lambda d: d.name)
def test_programs(dtype: Any) -> None:
    a, b = tensor(0, 2, 3, 300, dtype=dtype), tensor(1, 300, 5, dtype=dtype)
    plan = gpu_reference.check(tf.matmul, [a, b])
    assert any(kernel.team > 32 for kernel in gpu_reference.kernels(plan))
    gpu_reference.check(lambda a, b: tf.matmul(b, a, transpose_a=True, transpose_b=True), [a, b])


def test_batches_that_broadcast() -> None:
    a, b = tensor(0, 3, 1, 4, 7), tensor(1, 2, 7, 5)
    gpu_reference.check(tf.matmul, [a, b])
    gpu_reference.check(lambda a, b: tf.matmul(a[:, 0, ::2, ::-1], b[0]), [a, b])
    gpu_reference.check(lambda a, b: tf.einsum("xyij,zjk->zxik", a, b), [a, b])


@pytest.mark.parametrize(("m", "n"), [(1, 40), (40, 1), (1, 1)])
def test_rows_and_columns(m: int, n: int) -> None:
    a, b = tensor(0, m, 600), tensor(1, 600, n)
    plan = gpu_reference.check(tf.matmul, [a, b])
    assert len(gpu_reference.kernels(plan)) == 2  # of parts, which are added up
    gpu_reference.check(lambda a, b: tf.matmul(a, b, transpose_b=True), [a, tensor(2, n, 600)])


def test_unknown_sizes() -> None:
    a, b = tensor(0, 2, 5, 30), tensor(1, 30, 40)
    gpu_reference.check(tf.matmul, [a, b], [[None, None, 30], [30, 40]])
    gpu_reference.check(tf.matmul, [a, b], [[None, None, None], [None, None]])


def test_which_tiles_are_chosen() -> None:
    def chosen(m: Any, n: Any, k: Any) -> tuple[int, int, int]:
        shape, parts = gpu_gemm.choose(Matrices(m, n, k, (k, 1), (n, 1), n), 4)
        return shape.rows, shape.columns, parts

    assert chosen(4096, 4096, 4096) == (128, 128, 1)
    assert chosen(64, 64, 16384) == (32, 32, 64)
    assert chosen(4096, 1, 4096) == (128, 1, 16)
    assert chosen(100000, 10, 512)[:2] == (128, 16)
    assert chosen(10, 100000, 512)[:2] == (16, 128)


# -- code -------------------------------------------------------------------------------------------------------
# All tiles of float32, and for each of the others some, which are other ones from dtype to dtype.
ASSEMBLED = [one for n, one in enumerate(EVERY) if one[0] is dt.float32 or n % 4 == 1]


@pytest.mark.parametrize(("dtype", "shape", "architecture"),
                         [*[(*one, "sm_90") for one in ASSEMBLED], *[(*one, "sm_75") for one in EVERY[::8]]], **names)
def test_kernels_assemble(dtype: DType, shape: TileShape, architecture: str, tmp_path: Path) -> None:
    cases = {"plain": ((INNER, OUTER), 0, False), "turned": ((OUTER, INNER), 2, True),
             "apart": ((APART, APART), 1, True)}
    other = ("turned", "apart")[EVERY.index((dtype, shape)) % 2]
    table = {name: gpu_gemm.kernel(dtype, how, shape, rank, parts) for name, (how, rank, parts) in cases.items()
             if gpu_gemm.takes(shape, how) and name in ("plain", other)}
    text, registers = clean(table, tmp_path, architecture)
    assert max(registers) * shape.threads <= 65536
    assert "ld.shared.v" in text or shape.columns == 1


def test_builders_know_their_threads() -> None:
    assert TeamBuilder("block", SHAPES[4][0].threads).finish().team == 256
