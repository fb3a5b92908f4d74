"""Saving and loading a `tf.Module`: attributes, functions, signatures, and errors of TensorFlow's kinds."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf


class Model(tf.Module):
    """Variables in attributes and containers, and functions of several forms."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable([2.0, 1.0], name="w")
        self.layers = [tf.Variable(1.0), tf.Module(name="inner")]
        self.named = {"a": tf.Variable(3.0, trainable=False)}
        self.pair = (tf.Variable(4.0), 5)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="foo")])
    def scaled(self, x):
        return self.w[0] * x

    @tf.function
    def general(self, x, y=2, *, flag=True):
        return {"a": x * y if flag else x, "b": [x, (x + 1.0, None)]}

    @tf.function
    def __call__(self, x):
        return x + self.pair[0]


@pytest.fixture
def loaded(tmp_path):
    model = Model()
    x = tf.constant([1.0, 2.0])
    model.general(x)
    model.general(x, 3)
    model(tf.constant(1.0))
    tf.saved_model.save(model, tmp_path / "model")
    return tf.saved_model.load(tmp_path / "model")


def test_attributes(loaded):
    assert loaded.w.name == "w:0" and loaded.w.numpy().tolist() == [2.0, 1.0]
    assert loaded.layers[0].numpy() == 1.0 and loaded.layers[1].name == "inner"
    assert loaded.named["a"].numpy() == 3.0 and not loaded.named["a"].trainable
    assert loaded.pair[0].numpy() == 4.0 and loaded.pair[1] is None
    assert [v.numpy().tolist() for v in loaded.trainable_variables] == [1.0, 4.0, [2.0, 1.0]]
    assert len(loaded.variables) == 4 and loaded.name == "model"


def test_functions(loaded):
    x = tf.constant([1.0, 2.0])
    assert loaded.scaled([1.0, 2.0, 3.0]).numpy().tolist() == [2.0, 4.0, 6.0]
    assert loaded(2).numpy() == 6.0
    found = loaded.general(x, y=3)
    assert found["a"].numpy().tolist() == [3.0, 6.0]
    assert found["b"][1][0].numpy().tolist() == [2.0, 3.0] and found["b"][1][1] is None
    assert loaded.general([1.0, 2.0])["a"].numpy().tolist() == [2.0, 4.0]


def test_calls_that_fit_no_trace(loaded):
    with pytest.raises(ValueError, match=r"Could not find matching concrete function(.|\n)*Option 2"):
        loaded.general(tf.constant([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.general(tf.constant([1.0, 2.0]), flag=False)
    with pytest.raises(TypeError, match="missing a required argument"):
        loaded.general()
    with pytest.raises(TypeError, match="Can not cast"):
        loaded.scaled(tf.constant([1, 2]))


def test_the_default_signature(loaded):
    serve = loaded.signatures["serving_default"]
    assert serve.structured_input_signature == ((), {"foo": tf.TensorSpec([None], name="foo")})
    assert serve(foo=tf.constant([1.0]))["output_0"].numpy().tolist() == [2.0]
    assert serve(tf.constant([1.0]))["output_0"].numpy().tolist() == [2.0]
    with pytest.raises(TypeError, match="unexpected keyword arguments: x"):
        serve(x=tf.constant([1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a float32"):
        serve(foo=tf.constant([1]))


def test_gradients(loaded):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(loaded.scaled(x) ** 3)
        by_w = tape.gradient(y, loaded.w)
        first = by_w[0]
    assert np.allclose(by_w.numpy(), [3 * 4 * (1 + 8), 0.0])
    assert np.allclose(outer.gradient(first, x).numpy(), 3 * 4 * 3 * np.array([1.0, 4.0]))


def test_a_saved_loaded_model_is_the_same_bytes(loaded, tmp_path):
    tf.saved_model.save(loaded, tmp_path / "again")
    one, two = [{p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
                for folder in (tmp_path / "model", tmp_path / "again")]
    assert one == two and len(one) == 7


def test_functions_of_any_rank(tmp_path):
    model = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec(None, name="t")])
    def doubled(x):
        return x * 2.0

    @tf.function(input_signature=[tf.TensorSpec(None)])
    def first_row(x):
        return x[0, :]
    model.doubled, model.first_row = doubled, first_row
    tf.saved_model.save(model, tmp_path, signatures=doubled)
    loaded = tf.saved_model.load(tmp_path)
    for rank in range(6):
        x = tf.ones([2] * rank)
        assert loaded.doubled(x).shape == x.shape
        assert loaded.signatures["serving_default"](t=x)["output_0"].numpy().sum() == 2 * 2 ** rank
    assert loaded.first_row([[1.0, 2.0]]).numpy().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.first_row(tf.ones([2]))
    with pytest.raises(ValueError, match="not made for tensors of shapes"):
        loaded.signatures["serving_default"](t=tf.ones([1] * 6))
