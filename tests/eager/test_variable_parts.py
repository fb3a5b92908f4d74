"""Parts of variables by index, against NumPy: eagerly, in functions and in graphs."""

import numpy as np
import pytest

import twofold as tf

START = np.arange(12, dtype=np.float32).reshape(4, 3)
AT = np.array([[1], [3], [1]])
ROWS = np.array([[1, 2, 3], [40, -50, 60], [7, -8, 9]], np.float32)


def changed(mode):
    expected = START.copy()
    for at, row in zip(AT[:, 0], ROWS, strict=True):
        expected[at] = {"update": lambda a, b: b, "add": np.add, "sub": np.subtract, "max": np.maximum,
                        "min": np.minimum}[mode](expected[at], row)
    return expected


@pytest.mark.parametrize("mode", ["update", "add", "sub", "max", "min"])
def test_writing(mode):
    for wrap in (lambda fn: fn, tf.function):
        v = tf.Variable(START)
        assert wrap(lambda v=v: getattr(v, f"scatter_nd_{mode}")(AT, ROWS))() is not None
        np.testing.assert_array_equal(v, changed(mode))
    with tf.compat.v1.Session() as session:
        v = tf.Variable(START)
        step = getattr(v, f"scatter_nd_{mode}")(AT, ROWS)
        session.run(v.initializer)
        session.run(step)
        np.testing.assert_array_equal(session.run(v), changed(mode))


def test_reading_and_gradients():
    v = tf.Variable(START)
    np.testing.assert_array_equal(v.gather_nd([[0, 1], [3, 2]]), [1.0, 11.0])
    np.testing.assert_array_equal(v.sparse_read([2, 0]), START[[2, 0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v.sparse_read([2, 2, 0]))
    of_rows = tf.convert_to_tensor(tape.gradient(y, v))
    np.testing.assert_array_equal(of_rows, np.float32([1, 0, 2, 0])[:, None] * np.ones(3, np.float32))


def test_nothing_changes_where_an_index_is_wrong():
    v = tf.Variable(START)
    for wrong in ([[4]], [[-1]]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            v.scatter_nd_add(wrong, ROWS[:1])
    with pytest.raises(tf.errors.InvalidArgumentError):
        v.scatter_nd_add(AT, ROWS[:2])
    np.testing.assert_array_equal(v, START)
