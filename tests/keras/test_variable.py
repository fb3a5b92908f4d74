"""`tf.keras.Variable`: as Keras 3's own class answers, and taken wherever a `tf.Variable` is."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

V = tf.keras.Variable


def test_values_and_dtypes():
    """What Keras 3 gives for each."""
    for value, dtype in (([1, 2], "int32"), (np.array([1, 2]), "int64"), (np.array([1.0]), "float64"), (1.0, "float32"),
                         (True, "bool"), (tf.constant([1], tf.int8), "int8")):
        v = V(value)
        assert v.dtype == dtype
        np.testing.assert_array_equal(v.numpy(), np.asarray(value))
    assert V("zeros", shape=(2,)).numpy().tolist() == [0.0, 0.0]
    assert V(initializer="ones", shape=[2, 1], dtype="int32").numpy().tolist() == [[1], [1]]
    assert V(tf.keras.initializers.Constant(0.1), shape=[], dtype="float64").numpy() == 0.1
    assert V(lambda shape, dtype: tf.fill(shape, tf.cast(3, dtype)), shape=(1,)).numpy().tolist() == [3.0]
    assert V([1.5], dtype="float64").dtype == "float64"


def test_attributes():
    v = V([1.0, 2.0], name="a", trainable=False)
    assert (v.name, v.path, v.ndim, tuple(v.shape), v.trainable) == ("a", "a", 1, (2,), False)
    assert (v.regularizer, v.constraint, v.overwrite_with_gradient, v.aggregation) == (None, None, False, "none")
    assert repr(v) == "<Variable path=a, shape=(2,), dtype=float32, value=[1. 2.]>"
    assert V(1.0).name != V(1.0).name
    assert V(1.0).name.startswith("variable")
    v.trainable, v.constraint = True, tf.abs
    assert v.trainable
    assert v.constraint is tf.abs
    for make in (lambda: V("zeros"), lambda: V([1.0], name="a/b"), lambda: V(None), lambda: V([1.0], shape=(2,))):
        with pytest.raises(ValueError):
            make()


def test_assignments_and_operators():
    v = V([1.0, 2.0])
    v.assign([3.0, 4.0])
    v.assign_add([1.0, 1.0])
    v.assign_sub([0.0, 2.0])
    assert (v + 1).numpy().tolist() == [5.0, 4.0]
    assert tf.add(v, v.value).numpy().tolist() == [8.0, 6.0]
    assert v[0].numpy() == 4.0
    assert np.asarray(v).tolist() == [4.0, 3.0]
    assert tf.keras.ops.sum(v).numpy() == 7.0
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        v.assign([1.0])
    assert isinstance(v, tf.Variable)


@pytest.mark.parametrize("mode", [lambda f: f, tf.function], ids=["eager", "compiled"])
def test_gradients_and_functions(mode):
    v = V(2.0)

    def step(x):
        with tf.GradientTape() as tape:
            y = v * v * x
        slope = tape.gradient(y, [v, v.value])
        v.assign_sub(slope[0])
        return slope

    a, b = mode(step)(tf.constant(0.25))
    assert (a.numpy(), b.numpy(), v.numpy()) == (1.0, 1.0, 1.0)


class Scale(tf.keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.k = V([1.0, 2.0], name="k")
        self.n = V([0], trainable=False, name="n")

    def call(self, x):
        self.n.assign_add([1])
        return x * self.k


def test_layers_train_save_and_mix(tmp_path):
    layer = Scale()
    model = tf.keras.Sequential([tf.keras.Input((2,)), layer])
    assert [w is v for w, v in zip(layer.trainable_weights, [layer.k], strict=True)] == [True]
    assert len(layer.non_trainable_weights) == 1
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 2)), np.zeros((4, 2)), verbose=0)
    assert (layer.k.numpy() < [1, 2]).all()
    assert layer.n.numpy().tolist() == [1]
    model.save_weights(str(tmp_path / "w.weights.h5"))
    other = Scale()
    again = tf.keras.Sequential([tf.keras.Input((2,)), other])
    again.load_weights(str(tmp_path / "w.weights.h5"))
    np.testing.assert_array_equal(other.k.numpy(), layer.k.numpy())
    mixed = Scale(dtype="mixed_float16")
    assert mixed(np.ones((1, 2), np.float16)).dtype == "float16"
    assert mixed.k.dtype == "float32"
    checkpoint = tf.train.Checkpoint(v=V([5.0]))
    path = checkpoint.write(str(tmp_path / "c"))
    restored = V([0.0])
    tf.train.Checkpoint(v=restored).read(path)
    assert restored.numpy().tolist() == [5.0]
