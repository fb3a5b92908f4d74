"""`Variable.scatter_update` and its like, against NumPy's unbuffered operations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import twofold as tf


class Slices(NamedTuple):
    values: Any
    indices: Any


BASE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
AT = {"add": np.add.at, "sub": np.subtract.at, "mul": np.multiply.at, "div": np.divide.at, "max": np.maximum.at,
      "min": np.minimum.at}


def expected(kind, rows, places):
    value = BASE.copy()
    if kind == "update":
        value[np.asarray(places)] = rows
    else:
        AT[kind](value, np.asarray(places), rows)
    return value


@pytest.mark.parametrize("kind", ["update", *AT])
@pytest.mark.parametrize("places", [[2, 0], [2, 2], [[0], [1]]])
def test_rows_are_changed(kind, places):
    rows = np.array([[10.0, 1.0], [3.0, 4.0]], np.float32).reshape(*np.shape(places), 2)
    slices = Slices(tf.constant(rows), tf.constant(places))
    v = tf.Variable(BASE)
    assert getattr(v, f"scatter_{kind}")(slices) is v
    np.testing.assert_allclose(v, expected(kind, rows, places), rtol=1e-6)
    w = tf.Variable(BASE)

    @tf.function(fallback=False)
    def compiled(values, indices):
        return tf.identity(getattr(w, f"scatter_{kind}")(Slices(values, indices)))
    assert np.array_equal(compiled(*slices), v) and np.array_equal(w, v)


@pytest.mark.parametrize("kind", ["update", *AT])
def test_a_scalar_fills_rows_and_bad_slices_are_refused(kind):
    v = tf.Variable(BASE)
    change = getattr(v, f"scatter_{kind}")
    change(Slices(2.0, [1]))
    np.testing.assert_allclose(v, expected(kind, 2.0, [1]), rtol=1e-6)
    before = v.numpy()
    with pytest.raises(TypeError, match="sparse_delta"):
        change([1.0])
    with pytest.raises(TypeError, match="sparse_delta"):
        change({"values": 1.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="7"):
        change(Slices([[10.0, 1.0]], [7]))
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        change(Slices([[10.0, 1.0, 2.0]], [1]))
    assert np.array_equal(v, before)


def test_parts_of_batches_are_set():
    v = tf.Variable(BASE)
    v.batch_scatter_update(Slices(tf.constant([[9.0], [8.0], [7.0]]), tf.constant([[1], [0], [1]])))
    assert v.numpy().tolist() == [[1.0, 9.0], [8.0, 4.0], [5.0, 7.0]]
    v.batch_scatter_update(Slices(tf.constant([[0.0, 0.0]]), tf.constant([2])))  # without batches: rows
    assert v.numpy().tolist() == [[1.0, 9.0], [8.0, 4.0], [0.0, 0.0]]


@pytest.mark.parametrize("compiled", [False, True])
def test_nothing_has_changed_where_an_index_is_wrong(compiled):
    v, w = tf.Variable(BASE), tf.Variable(BASE)

    def change(places, others):
        v.scatter_add(Slices(tf.ones([2, 2]), places))
        w.scatter_sub(Slices(tf.ones([2, 2]), others))
    run = tf.function(change, fallback=False) if compiled else change
    run(tf.constant([2, 2]), tf.constant([0, 1]))
    before = v.numpy()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = \[3\] does not index into shape \[3\]"):
        run(tf.constant([2, 2] if compiled else [0, 3]), tf.constant([0, 3]))
    assert np.array_equal(v, before) and np.array_equal(w, expected("sub", [[1, 1], [1, 1]], [0, 1]))


def place(v):
    return np.asarray(v).__array_interface__["data"][0]


def test_rows_are_changed_where_they_lie_also_after_a_tape_has_read_the_variable():
    v = tf.Variable(np.ones((300, 300), np.float32))

    @tf.function(fallback=False)
    def change(rows, places):
        v.scatter_sub(Slices(rows, places))
    rows, places = tf.ones([2, 300]), tf.constant([7, 7])
    change(rows, places)
    before = place(v)
    with tf.GradientTape(persistent=True) as tape:
        first = tf.reduce_sum(v)  # which needs no elements for its gradient
    change(rows, places)
    assert place(v) == before
    with tape:
        second = tf.reduce_sum(v * 3.0)
    assert float(first) == 90000 - 600 and float(second) == 3 * (90000 - 1200)
    assert (tape.gradient(first, v).numpy() == 1).all() and (tape.gradient(second, v).numpy() == 3).all()
    kept = v.value()
    change(rows, places)
    assert kept.numpy()[7, 0] == -3 and v.numpy()[7, 0] == -5 and place(v) != before


# -- in place -----------------------------------------------------------------------------------------
LARGE = (300, 64)  # floats that are worth it


def address(variable: tf.Variable) -> int:
    return variable._value._memory.ctypes.data


def one_row(number: int = 7) -> tf.IndexedSlices:
    return tf.IndexedSlices(tf.ones([1, 64]), [number])


def test_a_large_table_that_nobody_else_has_is_changed_where_it_lies() -> None:
    table = tf.Variable(tf.zeros(LARGE))
    table.scatter_add(one_row())  # the tensor of zeros may live on
    place = address(table)
    table.scatter_sub(one_row(9)).scatter_nd_update([[3, 2]], [5.0])
    assert address(table) == place
    expected = np.zeros(LARGE, np.float32)
    expected[7], expected[9], expected[3, 2] = 1, -1, 5
    np.testing.assert_array_equal(table, expected)
    for wrong in (-1, 300):
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not index"):
            table.scatter_add(tf.IndexedSlices(tf.ones([2, 64]), [0, wrong]))
    np.testing.assert_array_equal(table, expected)
    half = tf.Variable(tf.zeros([600, 64], tf.float16))  # sums are those of float32
    half.scatter_add(tf.IndexedSlices(tf.ones([2, 64], tf.float16), [1, 1]))
    assert half[1, 0].numpy() == 2 and half.dtype is tf.float16


@pytest.mark.parametrize("hold", [
    lambda table: table.value(), lambda table: table.numpy(), lambda table: np.asarray(table)[3:9],
    lambda table: memoryview(table.value()), lambda table: tf.Variable(table), lambda table: table[5:9],
    lambda table: tf.reshape(table, [-1]), lambda table: np.from_dlpack(table.value())])
def test_what_was_read_before_stays_as_it_was(hold) -> None:
    table = tf.Variable(tf.zeros(LARGE))
    table.assign_add(tf.ones(LARGE))
    held = hold(table)
    table.scatter_add(one_row())
    assert np.asarray(held).min() == np.asarray(held).max() == 1
    assert table[7, 0].numpy() == 2


def test_tapes_know_the_value_before() -> None:
    table = tf.Variable(tf.ones(LARGE))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(table * table)
        table.scatter_add(one_row())
    assert tape.gradient(y, table)[7, 0].numpy() == 2
