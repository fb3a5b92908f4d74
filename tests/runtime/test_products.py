"""Plans of matrix products: batches that are one long product, units of work, and that no plan changes a bit."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.codegen import gemm_shapes, planner
from twofold.codegen.matrices import Matrices, with_longer_rows
from twofold.codegen.target import CACHES, Caches
from twofold.ir import dtypes as dt
from twofold.runtime import caches, products
from twofold.runtime.cpu import cpu
from twofold.tracer.traced import trace


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 0, 1), (0, 2, 1)])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.float16], ids=lambda d: d.name)
@pytest.mark.parametrize("columns", [1, 20, 64])
def test_batches_of_turned_operands(axes: tuple[int, ...], dtype: Any, columns: int) -> None:
    rng = np.random.default_rng(0)
    x = tf.cast(tf.constant(rng.normal(size=(6, 9, 12))), dtype)
    turned = tf.transpose(x, axes)
    w = tf.cast(tf.constant(rng.normal(size=(turned.shape[-1], columns))), dtype)
    each = np.stack([tf.matmul(tf.constant(np.ascontiguousarray(m)), w).numpy() for m in turned.numpy()])
    assert tf.matmul(turned, w).numpy().tobytes() == each.tobytes()
    assert tf.function(lambda x, w: tf.matmul(tf.transpose(x, axes), w))(x, w).numpy().tobytes() == each.tobytes()
    tolerance = {tf.float16: 2e-2, tf.float32: 1e-5, tf.float64: 1e-13}[dtype]
    want = turned.numpy().astype(np.float64) @ w.numpy().astype(np.float64)
    np.testing.assert_allclose(each.astype(np.float64), want, atol=tolerance)


def test_what_is_copied_first() -> None:
    turned = Matrices(32, 512, 64, (3200, 1), (512, 1), 512, ((50, 64, 0, 32 * 512),))
    assert products.is_scattered(turned)
    assert not products.is_scattered(turned._replace(batch=((50, 64, 64 * 512, 32 * 512),)))  # each has a B of its own
    long = turned._replace(m=4096, batch=((50, 64, 0, 4096 * 512),))
    assert not products.is_scattered(long)  # B is packed for many rows anyway
    assert not products.is_scattered(turned._replace(n=1, ldc=1, batch=((50, 64, 0, 32),)))
    whole = with_longer_rows(turned._replace(a=(64, 1), batch=((50, 32 * 64, 0, 32 * 512),)))
    assert whole.m == 1600 and not products.is_scattered(whole)


@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize("repeated", [(), (0,), (1,), (0, 1)], ids=str)
def test_batches_of_one_matrix(flip: bool, repeated: tuple[int, ...]) -> None:
    """Operands that are one matrix for all products, by a stride of 0, in memory of their own or turned."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 20, 20)), rng.normal(size=(3, 20, 40))
    operands = [tf.broadcast_to(tf.constant(x[:1]), x.shape) if n in repeated else tf.constant(x)
                for n, x in enumerate((a, b))]
    alone = [[tf.constant(x.numpy()) for x in pair] for pair in zip(*operands, strict=True)]
    want = [tf.matmul(x, y, transpose_a=flip) for x, y in alone]
    assert tf.matmul(*operands, transpose_a=flip).numpy().tobytes() == tf.stack(want).numpy().tobytes()
    turned = tf.transpose(tf.transpose(operands[0], [0, 2, 1]), [0, 2, 1])
    assert tf.matmul(turned, operands[1], transpose_a=flip).numpy().tobytes() == tf.stack(want).numpy().tobytes()
    np.testing.assert_allclose(want[0], (operands[0][0].numpy().T if flip else operands[0][0].numpy()) @
                               operands[1][0].numpy(), rtol=1e-12)


@pytest.mark.parametrize("shapes", [((2, 3, 17, 5), (2, 3, 5, 9)), ((4, 1, 40, 300), (3, 300, 33)), ((5, 6), (4, 6, 7)),
                                    ((3, 2, 1, 8), (3, 2, 8, 40)), ((3, 2, 20, 8), (3, 2, 8, 1))], ids=str)
@pytest.mark.parametrize("known", [True, False])
def test_results_are_laid_out_as_a_transpose_wants_them(shapes: Any, known: bool) -> None:
    rng = np.random.default_rng(0)
    a, b = (tf.constant(rng.normal(size=shape).astype(np.float32)) for shape in shapes)
    product = tf.matmul(a, b)
    rank = len(product.shape)
    specs = [tf.TensorSpec(x.shape if known else [None] * len(x.shape), x.dtype) for x in (a, b)]
    for order in itertools.permutations(range(rank)):
        def both(a: Any, b: Any, order: Any = order) -> Any:
            turned = tf.transpose(tf.matmul(a, b), order)
            return turned, tf.reshape(turned, [-1]) * 2.0
        turned, flat = tf.function(both, input_signature=specs)(a, b)
        want = product.numpy().transpose(order)
        assert turned.numpy().tobytes() == np.ascontiguousarray(want).tobytes()
        assert flat.numpy().tobytes() == (want.reshape(-1) * 2).tobytes()


def test_a_transpose_of_products_is_no_copy() -> None:
    spec = tf.TensorSpec([4, 8, 40, 40], tf.float32)

    def mixed(a: Any, b: Any) -> Any:
        return tf.reshape(tf.transpose(tf.matmul(a, b), [0, 2, 1, 3]), [4, 40, 320])
    importlib.import_module("twofold.runtime.lowerings")  # which a process with a filled cache does without
    x = tf.ones(spec.shape)
    assert tf.function(mixed)(x, x).numpy().tobytes() == np.full([4, 40, 320], 40, np.float32).tobytes()
    compiled = trace(mixed, [spec, spec], "mixed").graph
    assert [step.node.op.name for step in planner.plan(compiled, cpu).steps if step.node] == ["matmul"]
    assert len(planner.plan(compiled, cpu).steps) == 1


@pytest.mark.parametrize("m, n, k", [(128, 512, 1600), (32, 512, 128), (200, 64, 300), (17, 33, 65), (1, 5, 9)])
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("often", [False, True])
@pytest.mark.parametrize("near", [None, CACHES, Caches(64, 24 << 10, 640 << 10, 12, 20)], ids=["here", "usual", "half"])
def test_units_are_all_of_the_product(m: int, n: int, k: int, threads: int, often: bool, near: Caches | None,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    if near is not None:
        monkeypatch.setattr(caches, "of_host", lambda: near)
    x = Matrices(m, n, k, (k, 1), (n, 1), n)
    plan = products.plan(x, dt.float32, threads, often)
    rows, columns = plan.integers[9:11]
    assert plan.total == -(-m // rows) * -(-n // columns)
    shape = gemm_shapes.tiling(dt.float32)
    assert rows <= gemm_shapes.tiles_at_once(shape, dt.float32) * shape.tall
    assert columns % gemm_shapes.panel_width(shape, m == 1) == 0
    if m == 128 and threads == 2:  # as many rows and columns for one thread as for the other
        assert m % rows == 0 and n % columns == 0 and plan.total % threads == 0


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(1, 300, 700), (37, 70, 1030), (530, 301, 257), (700, 1, 600)], ids=str)
def test_products_of_int8_in_calls_and_programs(sizes: tuple[int, int, int], threads: int) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(0)
    before = tf.config.threading.get_intra_op_parallelism_threads()
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    try:
        for flip_a, flip_b in itertools.product([False, True], repeat=2):
            a, b = (tf.constant(rng.integers(-128, 128, shape[::-1] if flip else shape, np.int8))
                    for shape, flip in (((m, k), flip_a), ((k, n), flip_b)))
            wide = [x.numpy().astype(np.int64).T if flip else x.numpy().astype(np.int64)
                    for x, flip in ((a, flip_a), (b, flip_b))]
            exact = wide[0] @ wide[1]
            for kind in (tf.int32, tf.int8):
                def product(a: tf.Tensor, b: tf.Tensor, flips: Any = (flip_a, flip_b), kind: Any = kind) -> tf.Tensor:
                    return tf.matmul(a, b, *flips, output_type=kind)
                for fn in (product, tf.function(product)):
                    np.testing.assert_array_equal(fn(a, b).numpy(), exact.astype(kind.as_numpy_dtype))
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(before)
