"""tf.TensorArray in both modes, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

BOTH = pytest.mark.parametrize("mode", ["eager", "traced"])


def run(mode, fn, *args):
    return fn(*args) if mode == "eager" else tf.function(fn, fallback=False)(*args)


@BOTH
def test_write_read_stack_gather_concat_size(mode):
    def fn(x):
        ta = tf.TensorArray(tf.float32, size=3)
        ta = ta.write(0, x).write(2, x * 3).write(1, x * 2)
        return ta.stack(), ta.read(1), ta.gather([2, 0]), ta.concat(), ta.size()
    x = np.array([1.0, 2.0], np.float32)
    stacked, item, some, joined, size = run(mode, fn, tf.constant(x))
    np.testing.assert_array_equal(stacked, [x, x * 2, x * 3])
    np.testing.assert_array_equal(item, x * 2)
    np.testing.assert_array_equal(some, [x * 3, x])
    np.testing.assert_array_equal(joined, np.concatenate([x, x * 2, x * 3]))
    assert int(size) == 3
    assert size.dtype == tf.int32


@BOTH
def test_unstack_scatter_split(mode):
    def fn(m):
        rows = tf.TensorArray(tf.float32, size=3).unstack(m)
        placed = tf.TensorArray(tf.float32, size=3).scatter([2, 0, 1], m)
        parts = tf.TensorArray(tf.float32, size=3).split(m, [1, 1, 1])
        return rows.read(1), placed.stack(), parts.stack()
    m = np.arange(6, dtype=np.float32).reshape(3, 2)
    row, placed, parts = run(mode, fn, tf.constant(m))
    np.testing.assert_array_equal(row, m[1])
    np.testing.assert_array_equal(placed, m[[1, 2, 0]])
    np.testing.assert_array_equal(parts, m[:, None])


@BOTH
@pytest.mark.parametrize("n", [0, 1, 2, 3, 9, 33])
def test_growing_in_a_loop(mode, n):
    def fn(n):
        ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True, element_shape=[])
        for i in tf.range(n):
            ta = ta.write(ta.size(), i * i)
        return ta.stack()
    np.testing.assert_array_equal(run(mode, fn, tf.constant(n)), np.arange(n) ** 2)


@BOTH
def test_items_never_written_are_zeros(mode):
    def fn(x):
        return tf.TensorArray(tf.float32, size=3).write(1, x).stack()
    np.testing.assert_array_equal(run(mode, fn, tf.constant([5.0])), [[0], [5], [0]])


@BOTH
def test_written_in_branches(mode):
    def fn(v):
        ta = tf.TensorArray(tf.float32, size=2)
        if v[0] > 0:
            ta = ta.write(0, v)
        else:
            ta = ta.write(1, v * 2)
        return ta.stack()
    np.testing.assert_array_equal(run(mode, fn, tf.constant([1.0, 2.0])), [[1, 2], [0, 0]])
    np.testing.assert_array_equal(run(mode, fn, tf.constant([-1.0, 2.0])), [[0, 0], [-2, 4]])


@BOTH
def test_in_while_loop(mode):
    def fn(n):
        _, ta = tf.while_loop(lambda i, ta: i < n, lambda i, ta: (i + 1, ta.write(i, tf.cast(i, tf.float32))),
                              (tf.constant(0), tf.TensorArray(tf.float32, size=n)))
        return ta.stack()
    np.testing.assert_array_equal(run(mode, fn, tf.constant(4)), [0, 1, 2, 3])


@BOTH
def test_in_nested_loops(mode):
    def fn(n):
        outer = tf.TensorArray(tf.int32, size=n)
        for i in tf.range(n):
            inner = tf.TensorArray(tf.int32, size=3)
            for j in tf.range(3):
                inner = inner.write(j, i * 10 + j)
            outer = outer.write(i, inner.stack())
        return outer.stack()
    np.testing.assert_array_equal(run(mode, fn, tf.constant(2)), [[0, 1, 2], [10, 11, 12]])


@BOTH
def test_gradients_flow_through(mode):
    def fn(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            ta = tf.TensorArray(tf.float32, size=3)
            for i in range(3):
                ta = ta.write(i, x * float(i + 1))
            y = tf.reduce_sum(ta.stack() ** 2)
        return tape.gradient(y, x)
    assert float(run(mode, fn, tf.constant(2.0))) == 2 * 2.0 * (1 + 4 + 9)


@BOTH
def test_errors(mode):
    with pytest.raises((tf.errors.OutOfRangeError, tf.errors.InvalidArgumentError)):
        run(mode, lambda i: tf.TensorArray(tf.float32, size=2).write(i, 1.0).stack(), tf.constant(2))
    with pytest.raises((tf.errors.OutOfRangeError, tf.errors.InvalidArgumentError)):
        run(mode, lambda i: tf.TensorArray(tf.float32, size=2).write(0, 1.0).read(i), tf.constant(5))
    with pytest.raises(tf.errors.InvalidArgumentError, match="dtype"):
        run(mode, lambda x: tf.TensorArray(tf.float32, size=2).write(0, x).stack(), tf.constant(2))
    with pytest.raises(ValueError, match="shape"):
        run(mode, lambda x: tf.TensorArray(tf.float32, size=2).write(0, x).write(1, [x, x]).stack(), tf.constant(2.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="element_shape"):
        run(mode, lambda: tf.TensorArray(tf.float32, size=2).stack())


def test_an_array_from_outside_is_not_changed_by_a_trace():
    ta = tf.TensorArray(tf.float32, size=2).write(0, 1.0)
    traced = tf.function(lambda x: ta.write(1, x).stack(), fallback=False)
    assert traced(tf.constant(5.0)).numpy().tolist() == [1, 5]
    assert ta.stack().numpy().tolist() == [1, 0]


def test_gradients_add_up_in_one_order() -> None:
    """An item that is used otherwise too, before and after it is written and read."""
    def written(x):
        array = tf.TensorArray(tf.float32, size=1)
        for i in tf.range(1):
            array = array.write(i, x)
            x = x + x
        return array.stack(), tf.tanh(x)

    def read(x):
        array = tf.TensorArray(tf.float32, size=2).write(0, x).write(1, tf.sin(x))
        first, again = array.read(0), array.read(0)
        return tf.exp(first) * array.read(1), tf.tanh(x), first * again * 1.7, tf.sin(first), array.stack() * 0.3

    def gradient(fn):
        def taped(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                result = fn(x)
            return tape.gradient(result, x)
        return taped

    x = tf.constant(np.random.default_rng(5).normal(size=(9, 7)).astype(np.float32))
    for fn in (written, read):
        want = gradient(fn)(x).numpy().tobytes()
        assert tf.function(gradient(fn))(x).numpy().tobytes() == want
        assert gradient(tf.function(fn))(x).numpy().tobytes() == want
