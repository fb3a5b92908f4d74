"""Models in checkpoints and saved models."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf
from twofold import keras
from twofold.tracking import children

layers = keras.layers
X = np.random.RandomState(0).rand(8, 3).astype(np.float32)


@pytest.fixture(autouse=True)
def fresh_names():
    keras.backend.clear_session()


def trained(**first):
    model = keras.Sequential([layers.Dense(4, "relu", **first), layers.Dropout(0.5), layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.05), "mse")
    model.fit(X, X[:, :1], epochs=2, verbose=0, shuffle=False)
    return model


def test_the_names_in_the_graph_of_objects_are_tensorflows():
    model = trained()
    names = list(children(model))
    assert names[:5] == ["layer_with_weights-0", "layer_with_weights-1", "layer-0", "layer-1", "layer-2"]
    assert list(children(model.layers[0]))[:2] == ["kernel", "bias"] and "optimizer" in names


def test_checkpoints_go_into_models_that_have_no_weights_yet(tmp_path):
    model = trained()
    path = tf.train.Checkpoint(model=model).save(tmp_path / "ckpt")
    new = keras.Sequential([layers.Dense(4, "relu"), layers.Dropout(0.5), layers.Dense(1)])
    new.compile(keras.optimizers.Adam(0.05), "mse")
    status = tf.train.Checkpoint(model=new).restore(path)
    assert np.array_equal(new(X), model(X))
    assert all(np.array_equal(a, b) for a, b in zip(new.get_weights(), model.get_weights(), strict=True))
    status.assert_existing_objects_matched()


def test_saved_models_compute_what_the_model_does(tmp_path):
    class Twice(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(2)

        def call(self, x, training=None):
            return self.dense(x) * (2.0 if not training else 1.0)

    subclassed = Twice()
    subclassed(X)
    a, b = keras.Input((3,), name="a"), keras.Input((1,), name="b")
    functional = keras.Model({"a": a, "b": b}, layers.Concatenate()([layers.Dense(2)(a), b]))
    for n, (model, given) in enumerate([(trained(), X), (subclassed, X), (functional, {"a": X, "b": X[:, :1]})]):
        tf.saved_model.save(model, tmp_path / f"s{n}")
        assert np.array_equal(tf.saved_model.load(tmp_path / f"s{n}")(given), model(given))
        model.export(tmp_path / f"e{n}", verbose=False)
        assert np.array_equal(tf.saved_model.load(tmp_path / f"e{n}").serve(given), model(given))
    with pytest.raises(ValueError, match="has not been called or built"):
        Twice().export(tmp_path / "none")


def test_gradients_by_hand_train_what_fit_trains():
    model, other = trained(), trained(input_shape=(3,))
    other.set_weights(model.get_weights())
    model.layers[1].rate = other.layers[1].rate = 0.0
    model.compile(keras.optimizers.SGD(0.1), "mse")
    optimizer = keras.optimizers.SGD(0.1)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((other(x, training=True) - y) ** 2)
        variables = other.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    model.fit(X, X[:, :1], batch_size=8, shuffle=False, verbose=0)
    step(tf.constant(X), tf.constant(X[:, :1]))
    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(model.get_weights(), other.get_weights(), strict=True))
