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
