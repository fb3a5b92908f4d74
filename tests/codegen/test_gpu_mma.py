"""Products and convolutions by tensor cores, in lockstep: held to NumPy in float64 within the error that is stated."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gpu_reference
import numpy as np
import pytest
from codegen.test_gpu_gemm import memory
from codegen.test_teams import run
from ptx_checks import assembled

import twofold as tf
from twofold.codegen import gpu_conv, gpu_gemm, gpu_mma, loop_verify, ptx
from twofold.codegen.gpu_gemm import APART, INNER, OUTER
from twofold.codegen.gpu_mma import WarpShape
from twofold.codegen.loop import Kernel
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.tracer.function import trace

DTYPES = [dt.float32, dt.bfloat16, dt.float16]
HOW = [(INNER, OUTER), (OUTER, INNER), (APART, INNER)]
shapes = pytest.mark.parametrize("shape", gpu_mma.SHAPES, ids=lambda s: f"{s.rows}x{s.columns}")
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)


def bound(x: np.ndarray, y: np.ndarray, rounds: bool) -> np.ndarray:
    """How far products may be off, as docs/numerics.md says."""
    x, y = np.abs(x.astype(np.float64)), np.abs(y.astype(np.float64))
    return (2.0 ** -10 * rounds + x.shape[-1] * 2.0 ** -23) * (x @ y) + 1e-37


@dtypes
@shapes
@pytest.mark.parametrize("how", HOW, ids="-".join)
def test_products(how: tuple[str, str], shape: WarpShape, dtype: DType) -> None:
    kernel = gpu_gemm.kernel(dtype, how, shape, 0, False)
    loop_verify.verify(kernel)
    for m, n, k in ((70, 66, 40), (128, 64, 64), (5, 130, 1), (3, 3, 0)):
        rng = np.random.default_rng(m)
        a, b = (rng.normal(size=size).astype(dtype.np) for size in ((m, k), (k, n)))
        (left, by_a, _), (right, by_b, _) = memory(a, how[0]), memory(b, OUTER if how[1] == INNER else INNER)
        c, tiles = np.full((m, n), np.nan, np.float32), -(-m // shape.rows) * -(-n // shape.columns)
        assert run(kernel, tiles, [c, left, right], [m, n, k, n, *by_a, *by_b]) == 0
        assert (np.abs(c - a.astype(np.float64) @ b.astype(np.float64)) <= bound(a, b, dtype is dt.float32)).all()


def test_numbers_are_rounded_to_nearest() -> None:
    """To 10 bits of a fraction; what is not finite stays so."""
    given = np.array([1 + 2**-11, 1 + 2**-11 - 2**-23, -1 - 2**-11, 3e38, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    a = np.zeros((8, 8), np.float32)
    np.fill_diagonal(a, 1)
    c = np.zeros((8, 1), np.float32)
    kernel = gpu_gemm.kernel(dt.float32, (INNER, OUTER), gpu_mma.SHAPES[1], 0, False)
    for n, x in enumerate(given):
        b = np.zeros((8, 1), np.float32)
        b[n] = x
        assert run(kernel, 1, [c, a, b], [8, 1, 8, 1, 8, 1, 1, 1]) == 0
        want = {0: 1 + 2**-10, 1: 1.0, 2: -1 - 2**-10}.get(n, float(x))
        np.testing.assert_allclose(c[n, 0], want, rtol=0 if n < 3 else 2.0 ** -11, atol=2.0 ** -137)


# -- by lowerings ---------------------------------------------------------------------------------------
def layer(x: Any, w: Any, bias: Any) -> Any:
    return tf.nn.relu(tf.matmul(x, w) + bias)


def tensor(seed: int, *shape: int, dtype: Any = tf.float32) -> tf.Tensor:
    return tf.cast(np.random.default_rng(seed).normal(size=shape), dtype)


def by_tensor_cores(monkeypatch: pytest.MonkeyPatch, f: Any, *tensors: tf.Tensor,
                    fast: bool = True) -> tuple[list[np.ndarray], list[str]]:
    """The results of a function, and the names of its kernels that are tensor cores'.

    Args:
        fast: whether the program as a whole asks for them.
    """
    monkeypatch.setattr(gpu_reference.GpuReference, "tensor_cores", True)
    monkeypatch.setattr(gpu_reference.GpuReference, "fast", fast)
    results, program = gpu_reference.interpreted(f, list(tensors))
    assert program.whole is not None
    names = [kernel.name for kernel in gpu_reference.kernels(program.whole.plan)]
    return results, [name for name in names if "tensor cores" in name]


@dtypes
def test_a_layer_with_its_epilogue(dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, bias = tensor(0, 2, 33, 48, dtype=dtype), tensor(1, 48, 40, dtype=dtype), tensor(2, 40, dtype=dtype)
    (got,), names = by_tensor_cores(monkeypatch, layer, x, w, bias)
    assert names == [f"product {dtype.short} 64x64 inner outer 0 by tensor cores then " + (
        "add_relu" if dtype is dt.float32 else "cast_add_relu")]
    exact = [t.numpy().astype(np.float64) for t in (x, w, bias)]
    want = np.maximum(exact[0] @ exact[1] + exact[2], 0)
    rounds = {dt.float32: 0.0, dt.bfloat16: 2.0**-8, dt.float16: 2.0**-10}[dtype] * (
        np.abs(exact[0] @ exact[1]) + np.abs(want))
    assert (np.abs(got.astype(np.float64) - want) <= bound(exact[0], exact[1], dtype is dt.float32) + rounds).all()


def test_what_is_not_asked_for_stays_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without asking nothing changes; doubles and integers have no such products."""
    gpu_reference.check(layer, [tensor(0, 33, 48), tensor(1, 48, 40), tensor(2, 40)])
    for dtype in (tf.float64, tf.int32):
        x, w = tensor(0, 33, 48, dtype=dtype), tensor(1, 48, 40, dtype=dtype)
        (got,), names = by_tensor_cores(monkeypatch, lambda x, w: tf.matmul(x, w), x, w)
        assert names == [] and got.tobytes() == tf.matmul(x, w).numpy().tobytes()


@pytest.mark.parametrize(("channels", "strides"), [(8, 1), (3, 2)])
def test_convolutions(channels: int, strides: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And both gradients, near those of float64."""
    def f(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = tf.nn.conv2d(x, w, strides, "SAME")
            loss = tf.reduce_sum(y * y)
        return y, *tape.gradient(loss, [x, w])
    x, w = tensor(0, 2, 9, 10, channels), tensor(1, 3, 3, channels, 12)
    results, names = by_tensor_cores(monkeypatch, f, x, w)
    assert len(names) >= 3
    for got, want in zip(results, f(tf.cast(x, tf.float64), tf.cast(w, tf.float64)), strict=True):
        np.testing.assert_allclose(got, want.numpy(), atol=2.0 ** -8 * np.abs(want.numpy()).max())


# -- what asks for them -------------------------------------------------------------------------------
PRODUCTS: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...]]] = {
    "matmul": (tf.matmul, (20, 24), (24, 36)),
    "matvec": (tf.linalg.matvec, (40, 24), (24,)),
    "tensordot": (lambda x, w, **how: tf.tensordot(x, w, 1, **how), (20, 24), (24, 36)),
    "einsum": (lambda x, w, **how: tf.einsum("bij,bjk->bik", x, w, **how), (2, 20, 24), (2, 24, 36)),
    "convolution": (lambda x, w, **how: tf.nn.convolution(x, w, **how), (2, 9, 8), (3, 8, 12)),
    "conv1d": (lambda x, w, **how: tf.nn.conv1d(x, w, 1, "SAME", **how), (2, 9, 8), (3, 8, 12)),
    "conv2d": (lambda x, w, **how: tf.nn.conv2d(x, w, 1, "SAME", **how), (1, 5, 6, 8), (3, 3, 8, 12)),
    "conv3d": (lambda x, w, **how: tf.nn.conv3d(x, w, [1] * 5, "VALID", **how), (1, 3, 3, 3, 8), (2, 2, 2, 8, 12)),
    "conv_transpose": (lambda x, w, **how: tf.nn.conv_transpose(x, w, [2, 9, 12], 1, **how), (2, 9, 8), (3, 12, 8)),
    "conv1d_transpose": (lambda x, w, **how: tf.nn.conv1d_transpose(x, w, [2, 9, 12], 1, **how), (2, 9, 8), (3, 12, 8)),
    "conv2d_transpose": (lambda x, w, **how: tf.nn.conv2d_transpose(x, w, [1, 5, 6, 12], 1, **how),
                         (1, 5, 6, 8), (3, 3, 12, 8)),
    "conv3d_transpose": (lambda x, w, **how: tf.nn.conv3d_transpose(x, w, [1, 3, 3, 3, 12], [1] * 5, **how),
                         (1, 3, 3, 3, 8), (2, 2, 2, 12, 8)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_says_its_precision(name: str) -> None:
    """So do its gradients, of the second order, too; the processor's bits are the same."""
    product, *shapes_of = PRODUCTS[name]
    x, w = [tensor(n, *shape) for n, shape in enumerate(shapes_of)]
    for how in ({}, {"precision": "exact"}, {"precision": "fast"}):
        def f(x: Any, w: Any, how: Any = how) -> Any:
            with tf.GradientTape() as outer:
                outer.watch([x, w])
                with tf.GradientTape() as tape:
                    tape.watch([x, w])
                    loss = tf.reduce_sum(tf.square(product(x, w, **how)))
                return outer.gradient(tape.gradient(loss, [x, w]), [x, w])
        nodes = trace(f, [tf.TensorSpec(t.shape, t.dtype) for t in (x, w)]).graph.nodes
        said = [n.attrs["precision"] for n in nodes if "precision" in n.attrs]
        assert len(said) > 3 and set(said) == {how.get("precision", "exact")}
        assert product(x, w, **how).numpy().tobytes() == product(x, w).numpy().tobytes()


@pytest.mark.parametrize("name", ["matmul", "conv2d"])
def test_only_products_that_ask_are_by_tensor_cores(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With their gradients; an equal one beside them has the processor's bits, and so has all of it where there are no
    such cores."""
    product, *shapes_of = PRODUCTS[name]
    operands = [tensor(n, *shape) for n, shape in enumerate(shapes_of)]

    def f(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = product(x, w, precision="fast")
        return product(x, w), y, *tape.gradient(y, [x, w])
    exact, near = ([t.numpy() for t in f(*[tf.cast(t, dtype) for t in operands])] for dtype in (tf.float32, tf.float64))
    results, names = by_tensor_cores(monkeypatch, f, *operands, fast=False)
    assert len(names) == 3 and results[0].tobytes() == exact[0].tobytes() != results[1].tobytes()
    for got, want in zip(results, near, strict=True):
        np.testing.assert_allclose(got, want, atol=2.0 ** -8 * np.abs(want).max())
    monkeypatch.setattr(gpu_reference.GpuReference, "tensor_cores", False)
    gpu_reference.check(f, operands)


def test_what_is_no_precision() -> None:
    x = tf.ones([2, 2])
    for wrong in ("highest", True, 1, ["fast"], tf.constant("fast"), np.ones(2)):
        for call in (tf.matmul, tf.linalg.matvec, lambda x, w, **how: tf.tensordot(x, w, 1, **how),
                     lambda x, w, **how: tf.einsum("ij,jk->ik", x, w, **how)):
            with pytest.raises(tf.errors.InvalidArgumentError, match='precision must be "exact" or "fast"'):
                call(x, x, precision=wrong)


# -- code ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("shape", "architecture"), [(gpu_mma.SHAPES[0], "sm_80"), (gpu_mma.SHAPES[1], "sm_90")])
def test_kernels_assemble(shape: WarpShape, architecture: str, tmp_path: Path) -> None:
    """For GPUs that have such cores; they have no stacks and spill nothing."""
    table: dict[str, Kernel] = {f"{dtype.name}_{n}": gpu_gemm.kernel(dtype, how, shape, 1, False)
                                for dtype, n in ((dt.float32, 0), (dt.bfloat16, 2), (dt.float16, 0) if architecture
                                                 == "sm_80" else (dt.bfloat16, 1)) for how in [HOW[n]]}
    table |= {"conv": gpu_conv.forward(dt.float32, shape, (1, 3, 3), True, False),
              "filters": gpu_conv.filters(dt.float32, shape, (1, 3, 3), False)}
    said = assembled(ptx.text(table), tmp_path, architecture)
    assert said.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(table)
    assert max(int(n) for n in re.findall(r"Used (\d+) registers", said)) * shape.threads <= 65536
