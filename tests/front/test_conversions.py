"""Values of the user's own types as tensors; variables made by functions of the user's; names of `tf.compat`.

Expected values are what TensorFlow 2.21 gives for the same calls.
"""

from __future__ import annotations

import numbers
import pathlib

import numpy as np
import pytest

import twofold as tf


class Own:
    def __init__(self, value):
        self.value = value


class Derived(Own):
    pass


class Unknown:
    pass


class Method:
    def __tf_tensor__(self, dtype=None, name=None):
        return tf.constant([9], dtype=dtype)


asked = []


def convert_own(value, dtype=None, name=None, as_ref=False):
    asked.append(dtype)
    return tf.constant(value.value, dtype or tf.float32)


tf.register_tensor_conversion_function(Own, convert_own)
tf.register_tensor_conversion_function(Derived, lambda value, **kwargs: NotImplemented, priority=50)
tf.register_tensor_conversion_function(Unknown, lambda value, **kwargs: NotImplemented)


def test_a_registered_conversion_serves_wherever_a_tensor_is_taken():
    assert tf.convert_to_tensor(Own([1, 2])).numpy().tolist() == [1.0, 2.0]
    assert tf.convert_to_tensor(Own([1, 2]), dtype=tf.int32).dtype == tf.int32 and asked[-1] is tf.int32
    assert float(tf.constant(2.0) + Own(1.0)) == float(Own(1.0) + tf.constant(2.0)) == 3.0
    assert float(tf.add(Own(1), 1.0)) == 2.0 and float(tf.multiply(Own(2.0), Own(3.0))) == 6.0
    assert int(tf.add(tf.constant(2), Own(1))) == 3  # it takes the dtype of the tensor beside it
    assert float(tf.reduce_sum(Own([1.0, 2.0]))) == 3.0 and tf.cast(Own([1.5]), tf.int32).numpy().tolist() == [1]
    assert tf.stack([Own([1.0, 2.0]), Own([3.0, 4.0])]).numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert tf.concat([Own([1.0]), [2.0]], 0).numpy().tolist() == [1.0, 2.0]
    assert float(tf.Variable(2.0).assign(Own(1.0))) == float(tf.Variable(Own(1.0))) == 1.0
    assert float(tf.function(lambda: tf.add(Own(1.0), 1.0), fallback=False)()) == 2.0
    assert [float(x) for x in tf.data.Dataset.from_tensors(Own(4.0))] == [4.0]
    assert tf.convert_to_tensor(Derived(1.0)).numpy() == 1.0  # the other function leaves it to this one
    assert tf.convert_to_tensor(Method()).numpy().tolist() == [9]
    assert (Method() + tf.constant([1], tf.int64)).dtype == tf.int64
    assert (tf.constant([1.0]) + Method()).numpy().tolist() == [10.0]


def test_conversions_that_fail():
    with pytest.raises(ValueError, match="Unknown"):
        tf.convert_to_tensor(Unknown())

    class Wrong:
        pass
    tf.register_tensor_conversion_function(Wrong, lambda value, **kwargs: 3)
    with pytest.raises(RuntimeError, match="returned non-Tensor: 3"):
        tf.convert_to_tensor(Wrong())

    class Integral:
        pass
    tf.register_tensor_conversion_function(Integral, lambda value, **kwargs: tf.constant(3))
    with pytest.raises(RuntimeError, match="requested = float32, actual = int32"):
        tf.convert_to_tensor(Integral(), dtype=tf.float32)
    for kind, function in ((3, convert_own), ((), convert_own), (Own, 3), (int, convert_own),
                           (np.ndarray, convert_own)):
        with pytest.raises(TypeError):
            tf.register_tensor_conversion_function(kind, function)


def test_earlier_priorities_come_first():
    class Two:
        pass
    tf.register_tensor_conversion_function(Two, lambda value, **kwargs: tf.constant(1.0))
    tf.register_tensor_conversion_function((Two,), lambda value, **kwargs: tf.constant(2.0), priority=10)
    assert float(tf.convert_to_tensor(Two())) == 2.0


def test_variables_are_made_by_creators():
    told = []

    def frozen(next_creator, **kwargs):
        told.append(("inner", kwargs["name"]))
        return next_creator(**{**kwargs, "trainable": False, "name": "made"})

    def outer(next_creator, **kwargs):
        told.append(("outer", kwargs["name"]))
        return next_creator(**kwargs)

    with tf.variable_creator_scope(outer):
        with tf.variable_creator_scope(frozen):
            v = tf.Variable(lambda: tf.ones([2]), name="a")
        w = tf.Variable(1.0)
    assert (v.name, v.trainable, v.numpy().tolist()) == ("made:0", False, [1.0, 1.0])
    assert w.trainable and told == [("inner", "a"), ("outer", "made"), ("outer", None)]
    with tf.variable_creator_scope(lambda next_creator, **kwargs: 5):
        assert tf.Variable(1.0) == 5
    assert isinstance(tf.Variable(1.0), tf.Variable)

    made = []

    @tf.function(fallback=False)
    def f(x):
        if not made:
            made.append(tf.Variable(3.0))
        return made[0] * x
    with tf.variable_creator_scope(frozen):
        assert float(f(2.0)) == 6.0
    assert made[0].name == "made:0"
    with tf.variable_creator_scope(frozen):
        layer = tf.keras.layers.Dense(2)
        layer.build([1, 2])
    assert not any(weight.trainable for weight in layer.weights)


def test_names_of_compat():
    assert isinstance(np.int8(1), tf.compat.integral_types) and isinstance(True, tf.compat.integral_types)
    assert tf.compat.real_types == (numbers.Real, np.integer, np.floating)
    assert isinstance(1j, tf.compat.complex_types) and tf.compat.bytes_or_text_types == (bytes, str)
    assert tf.compat.path_to_str(pathlib.Path("a") / "b") == "a/b" and tf.compat.path_to_str(3) == 3
    assert tf.compat.dimension_value(3) == 3 and tf.compat.dimension_value(None) is None
    assert tf.compat.forward_compatible(2020, 1, 1)


def test_seeds_may_be_floats():
    for draw in (tf.random.uniform, tf.random.normal, tf.random.truncated_normal):
        tf.random.set_seed(1)
        first = draw([4], seed=124.0)
        tf.random.set_seed(np.float64(1.0))
        assert np.array_equal(first, draw([4], seed=124))
        for seed in ("3", float("nan"), [1.5]):
            with pytest.raises(TypeError):
                draw([4], seed=seed)


def test_scattered_bools():
    places, shape = [[1], [1], [0], [2], [2]], [4]
    actual = tf.scatter_nd(places, [True, False, False, True, True], shape)
    assert actual.dtype == tf.bool and actual.numpy().tolist() == [False, True, True, False]
    assert tf.scatter_nd(tf.zeros([256, 1], tf.int32), tf.ones([256], tf.bool), [1]).numpy().tolist() == [True]
    compiled = tf.function(lambda v: tf.scatter_nd(places, v, shape), fallback=False)
    assert compiled(tf.constant([False, True, True, False, False])).numpy().tolist() == [True, True, False, False]


def test_sizes_may_be_computed_as_floats():
    x, size = tf.ones([3, 2]), tf.constant(2.0)
    assert tf.reshape(x, (size, 3)).shape == (2, 3)
    assert tf.reshape(x, (tf.constant(2.5), 3)).shape == (2, 3)  # as TensorFlow makes an integer of it
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.reshape(x, (tf.constant(float("inf")), 3))
    for wrong in ((2.0, 3), tf.constant([2.0, 3.0])):
        with pytest.raises(TypeError):
            tf.reshape(x, wrong)
    with pytest.raises(TypeError):
        tf.reduce_sum(x, axis=(tf.constant(0.0),))


def test_numeric_dtypes():
    names = [d.name for d in (tf.float32, tf.bfloat16, tf.int8, tf.complex64, tf.bool, tf.string) if d.is_numeric]
    assert names == ["float32", "bfloat16", "int8", "complex64"]
    assert all(d.is_numpy_compatible for d in (tf.float32, tf.bfloat16, tf.bool, tf.string))
