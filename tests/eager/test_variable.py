"""`tf.Variable`: value, name and identity; assignment, whole and by parts; its life."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import twofold as tf


def values(x: Any) -> Any:
    return x.numpy().tolist()


# -- making -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("value", "dtype", "shape"), [
    (5.0, tf.float32, ()), ([[1.0]], tf.float32, (1, 1)), ([1, 2], tf.int32, (2,)),
    (np.ones((2, 3)), tf.float64, (2, 3)), (True, tf.bool, ()), ("a", tf.string, ()),
    (tf.constant([1.0, 2.0]), tf.float32, (2,)),
    (lambda: tf.constant([3]), tf.int32, (1,)),
], ids=lambda v: "function" if callable(v) else str(v))
def test_initial_values(value: Any, dtype: tf.DType, shape: tuple[int, ...]) -> None:
    v = tf.Variable(value)
    assert (v.dtype, v.shape, v.ndim) == (dtype, shape, len(shape))


def test_names() -> None:
    assert tf.Variable(1.0).name == "Variable:0"
    assert tf.Variable(5.0, name="weight").name == "weight:0"


def test_repr() -> None:
    v = tf.Variable(2.0)
    assert repr(v) == str(v) == "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=2.0>"
    assert repr(tf.Variable([1, 2], name="n")) == \
        "<tf.Variable 'n:0' shape=(2,) dtype=int32, numpy=array([1, 2], dtype=int32)>"
    assert repr(tf.Variable([[1.0, 2.0], [3.0, 4.0]])) == (
        "<tf.Variable 'Variable:0' shape=(2, 2) dtype=float32, numpy=\n"
        "array([[1., 2.],\n       [3., 4.]], dtype=float32)>")


def test_format() -> None:
    v = tf.Variable(3.079099416732788)
    assert f"{v.numpy()}" == "3.079099416732788"
    assert f"{v:.3f}" == "3.079"


def test_dtype_converts_the_initial_value() -> None:
    assert tf.Variable(1, dtype=tf.float64).dtype is tf.float64
    assert tf.Variable([1, 2], dtype="float16").dtype is tf.float16
    with pytest.raises(TypeError):
        tf.Variable(1.5, dtype=tf.int32)


def test_an_initial_value_is_needed() -> None:
    with pytest.raises(ValueError, match="initial_value"):
        tf.Variable()


def test_trainable() -> None:
    assert tf.Variable(1.0).trainable
    assert not tf.Variable(1.0, trainable=False).trainable
    v, w = tf.Variable(2.0), tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        y = v * w
    assert [g and float(g) for g in tape.gradient(y, [v, w])] == [3.0, None]


def test_a_variable_of_a_variable_is_another() -> None:
    v = tf.Variable(1.0)
    w = tf.Variable(v)
    v.assign(2.0)
    assert float(w) == 1.0


# -- reading ----------------------------------------------------------------------------------------
def test_values_read_before_stay() -> None:
    v = tf.Variable([1.0, 2.0])
    before = [v.read_value(), v.value(), tf.convert_to_tensor(v), v + 0.0, v[:]]
    v.assign([5.0, 6.0])
    v.assign_add([1.0, 1.0])
    v[0].assign(9.0)
    assert [values(b) for b in before] == [[1.0, 2.0]] * 5
    assert all(isinstance(b, tf.Tensor) for b in before)


def test_a_variable_is_usable_as_a_tensor() -> None:
    v = tf.Variable([[1.0, 2.0]])
    assert values(v @ tf.constant([[3.0], [4.0]])) == [[11.0]]
    assert np.multiply(v, 2.0).tolist() == [[2.0, 4.0]]
    assert len(v) == 1 and [values(r) for r in v] == [[1.0, 2.0]]
    assert values(v[0, 1]) == 2.0
    assert tf.is_tensor(v) and not isinstance(v, tf.Tensor)
    assert bool(tf.Variable(True)) and int(tf.Variable(3)) == 3 and float(tf.Variable(0.5)) == 0.5
    assert [10, 20][tf.Variable(1)] == 20


def test_comparison_and_hash() -> None:
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    assert values(v == w) is True
    assert (v == None) is False  # noqa: E711
    assert (v != None) is True  # noqa: E711
    with pytest.raises(TypeError, match="unhashable"):
        hash(v)
    assert v.ref() != w.ref() and v.ref() == v.ref() and v.ref().deref() is v
    assert len({v.ref(), w.ref(), v.ref()}) == 2
    assert (v.ref() < w.ref()) is (w.ref() > v.ref()) is not (w.ref() < v.ref()) and not v.ref() < v.ref()


class Held(tf.Variable):
    """A class of users that holds its value itself, a tensor of a trace too, and never begins the variable."""

    def __init__(self, held: tf.Tensor) -> None:
        self.held = held

    dtype = property(lambda self: self.held.dtype)
    shape = property(lambda self: self.held.shape)


def test_a_class_that_holds_its_value_itself() -> None:
    def checked(x: tf.Tensor) -> tf.Tensor:
        held = Held(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum([2.0, 3.0] * held) + tf.reduce_sum(held) + tf.reduce_sum(tf.cast(held, tf.float32))
        return tape.gradient(y, x)

    with pytest.raises(AttributeError, match="_value"):
        tf.identity(Held(tf.constant(1.0)))
    tf.register_tensor_conversion_function(Held, lambda value, dtype=None, **kwargs: value.held)
    x = tf.constant([1.0, 2.0])
    assert values(tf.tensordot(Held(x), x, 1)) == 5.0
    assert values(checked(x)) == values(tf.function(checked)(x)) == [4.0, 5.0]


def test_items_cannot_be_set() -> None:
    v = tf.Variable([1.0])
    with pytest.raises(TypeError, match="assign"):
        v[0] = 2.0


# -- assigning --------------------------------------------------------------------------------------
def test_assign() -> None:
    v = tf.Variable([1.0, 2.0])
    assert v.assign([3.0, 4.0]) is v and values(v) == [3.0, 4.0]
    assert v.assign_add([1.0, 1.0]) is v and values(v) == [4.0, 5.0]
    assert v.assign_sub(tf.constant([0.5, 0.5])) is v and values(v) == [3.5, 4.5]
    v.assign(np.array([7.0, 8.0]))
    assert values(v) == [7.0, 8.0] and v.dtype is tf.float32
    v.assign(tf.Variable([1.0, 1.0]))
    assert values(v) == [1.0, 1.0]


def test_assign_copies_arrays() -> None:
    a = np.zeros(2, np.float32)
    v = tf.Variable(a)
    a[0] = 1
    v.assign(a)
    a[1] = 1
    assert values(v) == [1.0, 0.0]


@pytest.mark.parametrize("value", [[1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], 1.0], ids=repr)
def test_assign_checks_the_shape(value: Any) -> None:
    v = tf.Variable([1.0, 2.0], name="w")
    with pytest.raises(ValueError, match="w:0"):
        v.assign(value)
    assert values(v) == [1.0, 2.0]


@pytest.mark.parametrize("delta", [[[1.0, 2.0]], [1.0, 2.0, 3.0], [[1.0], [2.0]]], ids=repr)
@pytest.mark.parametrize("method", ["assign_add", "assign_sub"])
def test_updates_check_the_shape(method: str, delta: Any) -> None:
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError):
        getattr(v, method)(delta)
    assert values(v) == [1.0, 2.0]


@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
def test_assign_checks_the_dtype(method: str) -> None:
    v = tf.Variable([1, 2])
    for bad in (tf.constant([1.0, 2.0]), [1.5, 2.5], tf.constant([1, 2], tf.int64)):
        with pytest.raises((TypeError, ValueError)):
            getattr(v, method)(bad)
    assert values(v) == [1, 2]


def test_a_more_general_shape() -> None:
    v = tf.Variable([[1.0, 2.0]], shape=[None, 2])
    v.assign([[1.0, 2.0], [3.0, 4.0]])
    assert v.shape.as_list() == [None, 2] and len(v) == 2
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign([[1.0]])
    with pytest.raises(ValueError, match="shape"):
        tf.Variable([1.0], shape=[2])
    w = tf.Variable(1.0, validate_shape=False)
    w.assign([1.0, 2.0])
    assert values(w) == [1.0, 2.0]


@pytest.mark.parametrize("key", [0, -1, slice(None), slice(1, None), (0, 1), (slice(None), 0), (..., -1),
                                 slice(None, None, -1), (slice(0, 2), slice(None, None, 2))], ids=str)
def test_sliced_assign(key: Any) -> None:
    start = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for method in ("assign", "assign_add", "assign_sub"):
        v, want = tf.Variable(start), start.copy()
        new = np.asarray(100.0 + np.arange(want[key].size, dtype=np.float32)).reshape(want[key].shape)
        want[key] = {"assign": new, "assign_add": want[key] + new, "assign_sub": want[key] - new}[method]
        assert getattr(v[key], method)(new) is v
        np.testing.assert_array_equal(v, want)


def test_sliced_assign_broadcasts_and_checks() -> None:
    v = tf.Variable(np.zeros((2, 3), np.float32))
    v[0].assign(1.0)
    v[:, 1].assign([5.0, 6.0])
    assert values(v) == [[1.0, 5.0, 1.0], [0.0, 6.0, 0.0]]
    before = values(v)
    for key, value in ((0, [1.0, 2.0]), (5, 1.0), ((0, 0, 0), 1.0)):
        with pytest.raises((ValueError, IndexError)):
            v[key].assign(value)
    assert values(v) == before


def test_a_slice_of_a_variable_is_differentiable() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = v[1] * v[1] + v[0]
    assert values(tape.gradient(y, v)) == [1.0, 4.0, 0.0]


def test_gradients_do_not_pass_assignments() -> None:
    v, x = tf.Variable(1.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        v.assign(x * 2.0)
        y = v * v
    assert tape.gradient(y, x) is None


def test_a_variable_read_twice_around_an_assignment() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
        v.assign(3.0)
        z = y + v * v
    assert float(tape.gradient(z, v)) == 4.0 + 6.0


# -- life -------------------------------------------------------------------------------------------
def test_freed_with_the_last_reference() -> None:
    gc.disable()  # counting references must be enough: no cycles
    try:
        v = tf.Variable(np.zeros(1000, np.float32))
        v.assign_add(np.ones(1000, np.float32))
        part = v[3]
        gone, value = weakref.ref(v), weakref.ref(v.value())
        with tf.GradientTape() as tape:
            y = v * 2.0
        assert tape.gradient(y, v) is not None
        del tape, y, part
        assert gone() is v
        v = None
        assert gone() is None and value() is None
    finally:
        gc.enable()


def test_copies() -> None:
    v = tf.Variable([1.0], name="w", trainable=False)
    other = copy.deepcopy(v)
    v.assign([2.0])
    assert values(other) == [1.0] and other.name == "w:0" and not other.trainable


def test_threads_lose_no_update() -> None:
    v = tf.Variable(np.zeros(4, np.float64))

    def add() -> None:
        for _ in range(200):
            v.assign_add(np.ones(4))
    threads = [threading.Thread(target=add) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert values(v) == [1600.0] * 4


def test_placement() -> None:
    with tf.device("CPU:0"):
        v = tf.Variable([1.0])
    assert v.device.endswith("device:CPU:0")


@pytest.mark.parametrize("decorated", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(("change", "told"), [
    (lambda v: v.assign_add(tf.ones([4])), "Variable.assign_add of variable 'weights:0', in add: Incompatible shapes"),
    (lambda v: v.assign_sub(tf.ones([2, 3], tf.int32)), "Variable.assign_sub of variable 'weights:0': Tensor conv"),
    (lambda v: v.assign(tf.ones([4])), "Cannot assign value to variable 'weights:0': Shape mismatch"),
    (lambda v: v[0].assign(tf.ones([7])), "assign of a part of variable 'weights:0', in strided_slice_assign: the val"),
    (lambda v: v.scatter_nd_update([[1]], tf.ones([1, 2])), "scatter_nd_update of variable 'weights:0', in tensor_sc"),
])
def test_errors_of_assignments_name_the_variable(change, told, decorated):
    variable = tf.Variable(tf.ones([2, 3]), name="weights")
    call = tf.function(lambda: change(variable)) if decorated else lambda: change(variable)
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError, TypeError)) as caught:
        call()
    assert told in str(caught.value).partition("\n")[0] and "At test_variable.py:" in str(caught.value)
    assert (variable.numpy() == 1).all()
