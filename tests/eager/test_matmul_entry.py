"""Products of small matrices, which native entries compute without Python, beside all that they leave to it."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import twofold as tf
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.runtime.products import Product

FLOATS = [dt.float32, dt.float64]


def draw(seed, *shape, dtype=dt.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype.np)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_entry_and_planned_product_have_the_same_bits(dtype):
    for m, n, k in [(1, 1, 1), (10, 10, 10), (1, 33, 40), (33, 1, 40), (30, 40, 50), (16, 16, 300), (29, 129, 17)]:
        a, b = draw(0, m, k, dtype=dtype), draw(1, k, n, dtype=dtype)
        expected = Product(dtype, a.shape, b.shape)((a, b))
        for result in (tf.constant(a) @ tf.constant(b), tf.matmul(a, b), ops.matmul(tf.constant(a), tf.constant(b))):
            assert result.dtype.name == dtype.name
            np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("size", [39, 64, 65, 161, 162, 163])
def test_around_the_limit(size):
    a, b = draw(0, size, 40), draw(1, 40, size)
    np.testing.assert_array_equal(tf.matmul(a, b).numpy(), Product(dt.float32, a.shape, b.shape)((a, b)))


@pytest.mark.parametrize("m, n, k, is_planned", [
    (64, 64, 64, False), (2, 256, 256, False), (1, 200, 200, False), (200, 1, 200, False),
    (1, 300, 300, True), (300, 1, 300, True), (128, 128, 128, True)])
def test_a_row_or_column_is_planned_sooner(m, n, k, is_planned, monkeypatch):
    """The entry's one kernel is made for tiles: a product with a vector takes a kernel of its own, and threads."""
    a, b = tf.constant(draw(0, m, k)), tf.constant(draw(1, k, n))
    expected, calls, call = (a @ b).numpy(), [], Product.__call__
    monkeypatch.setattr(Product, "__call__", lambda *args: calls.append(args) or call(*args))
    np.testing.assert_array_equal((a @ b).numpy(), expected)
    assert bool(calls) is is_planned


def test_operands_that_are_not_contiguous():
    a, b = tf.constant(draw(0, 8, 5)), tf.constant(draw(1, 8, 6))
    np.testing.assert_array_equal((tf.transpose(a) @ b).numpy(), tf.matmul(a, b, transpose_a=True).numpy())
    np.testing.assert_allclose((a[::2, ::-1] @ b[3:]).numpy(), a.numpy()[::2, ::-1] @ b.numpy()[3:], rtol=1e-5)


def test_empty_matrices():
    for m, n, k in [(0, 2, 3), (2, 0, 3), (2, 3, 0), (0, 0, 0)]:
        result = tf.zeros([m, k]) @ tf.zeros([k, n])
        np.testing.assert_array_equal(result.numpy(), np.zeros((m, n), np.float32))


def test_what_does_not_fit_raises_as_before():
    a = tf.ones([3, 4])
    a @ tf.ones([4, 5])
    for wrong in (tf.ones([3, 4]), tf.ones([4]), tf.constant(2.0), tf.ones([4, 5], tf.float64), 2.0):
        with pytest.raises(tf.errors.InvalidArgumentError):
            a @ wrong
    with pytest.raises(TypeError):
        a @ {}


def test_arrays_and_variables_on_either_side():
    a, b = draw(0, 3, 4), draw(1, 4, 5)
    expected = (tf.constant(a) @ tf.constant(b)).numpy()
    for x, y in [(tf.constant(a), b), (a, tf.constant(b)), (tf.Variable(a), tf.constant(b)), (a, tf.Variable(b))]:
        np.testing.assert_array_equal((x @ y).numpy(), expected)


def test_tapes_hear_of_it():
    a, b = tf.constant(draw(0, 3, 4)), tf.Variable(draw(1, 4, 5))
    a @ b
    with tf.GradientTape() as tape:
        tape.watch(a)
        out = tf.reduce_sum(a @ b * 2.0)
    at_a, at_b = tape.gradient(out, [a, b])
    np.testing.assert_allclose(at_a.numpy(), 2 * np.ones((3, 5)) @ b.numpy().T, rtol=1e-5)
    np.testing.assert_allclose(at_b.numpy(), 2 * a.numpy().T @ np.ones((3, 5)), rtol=1e-5)


def test_other_dtypes_and_stacks_beside_it():
    for dtype in (dt.int32, dt.complex64, dt.float16, dt.bfloat16):
        a, b = (np.arange(6).reshape(shape).astype(dtype.np) for shape in ((2, 3), (3, 2)))
        np.testing.assert_array_equal((tf.constant(a) @ tf.constant(b)).numpy().astype(np.complex128),
                                      [[10, 13], [28, 40]])
    assert (tf.ones([2, 3, 4]) @ tf.ones([4, 5])).shape == (2, 3, 5)


def test_results_are_given_back():
    import resource

    a = tf.ones([100, 4])
    a @ tf.ones([4, 100])
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(2000):
        a @ tf.ones([4, 100])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # KiB; all results would take 80 MB
