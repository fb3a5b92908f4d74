"""Errors of layers name the layer and the user's line, and nothing raw comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twofold as tf

layers = tf.keras.layers
CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "constructor": (lambda: layers.UpSampling1D("\0"), "UpSampling1D: "),
    "constructor's check": (lambda: layers.Dense("a"), "Dense: Invalid value for argument `units`"),
    "call": (lambda: layers.Dense(2)("abc"), "Dense: "),
    "inner op": (lambda: layers.Dense(2)(tf.ones([2, 2], tf.complex64)), "Dense, in matmul: dtypes differ"),
    "rank": (lambda: layers.Softmax()(tf.constant(2.5)), "Softmax, in softmax: x has rank 0"),
}


@pytest.mark.parametrize("name", list(CASES))
def test_the_layer_is_named(name: str) -> None:
    call, told = CASES[name]
    with pytest.raises((tf.errors.OpError, ValueError, TypeError)) as caught:
        call()
    assert str(caught.value).startswith(told)
    assert "At test_errors_tell.py:" in str(caught.value)


K = tf.keras
LOOPED: list[Any] = []
LOOPED.append(LOOPED)
# What was raised raw, or did not say who raised it, in each part of the library.
OTHERS: dict[str, tuple[Callable[[], Any], str]] = {
    "loss": (lambda: K.losses.mean_squared_error([[1.0]], object()), "mean_squared_error"),
    "loss object": (lambda: K.losses.Huber()([[1.0]], object()), "Huber"),
    "metric": (lambda: K.metrics.Mean().update_state(object()), "Mean.update_state"),
    "metric function": (lambda: K.metrics.binary_accuracy([[1.0]], object()), "binary_accuracy"),
    "optimizer": (lambda: K.optimizers.Adam().apply_gradients(7), "Adam.apply_gradients"),
    "schedule": (lambda: K.optimizers.schedules.PiecewiseConstantDecay(3, [1.0]), "PiecewiseConstantDecay"),
    "operation": (lambda: K.ops.softmax([1.0], axis="a"), "softmax"),
    "activation": (lambda: K.activations.relu(LOOPED), "relu"),
    "initializer": (lambda: K.initializers.Zeros()(object()), "Zeros"),
    "regularizer": (lambda: K.regularizers.get(3), "get"),
    "utils": (lambda: K.utils.to_categorical("a", 3), "to_categorical"),
    "shape rule": (lambda: layers.Dense(2).compute_output_shape(3), "Dense.compute_output_shape: A shape must"),
    "build": (lambda: layers.Dense(2).build("a"), "Dense.build"),
    "from_config": (lambda: layers.Dense.from_config(3), "from_config"),
    "setter": (lambda: setattr(layers.Dense(2), "dtype_policy", "none"), "Dense.dtype_policy"),
    "spec": (lambda: tf.TensorSpec.from_tensor(3), "from_tensor"),
    "asset": (lambda: tf.saved_model.Asset(3), "Asset"),
    "data set's spec": (lambda: tf.data.DatasetSpec.from_value(3), "from_value"),
    "example": (lambda: tf.train.BytesList(value=3), "BytesList"),
    "threads": (lambda: tf.config.threading.set_intra_op_parallelism_threads("a"), "set_intra_op_parallelism_threads"),
    "variable's name": (lambda: tf.Variable(1.0, name=[1]), "Variable"),
    "loop": (lambda: tf.while_loop(lambda x: [x, x], lambda x: [x], [tf.constant(1)]), "while_loop"),
}


@pytest.mark.parametrize("name", list(OTHERS))
def test_every_part_names_what_was_called(name: str) -> None:
    call, told = OTHERS[name]
    with pytest.raises((tf.errors.OpError, ValueError, TypeError)) as caught:
        call()
    assert told in str(caught.value).partition("\n")[0]
    assert "At test_errors_tell.py:" in str(caught.value)


def test_errors_take_any_message() -> None:
    assert str(tf.errors.NotFoundError(None, None, tf.TensorShape([2]))) == "(2,)"


@pytest.mark.parametrize("metric", [K.metrics.F1Score, K.metrics.FBetaScore])
def test_a_metric_that_refuses_a_batch_is_what_it_was(metric: Any) -> None:
    score = metric()
    score.update_state([[1.0, 0.0]], [[0.8, 0.2]])
    before = [v.numpy().tolist() for v in score.variables]
    for labels, said, weight in (([1.0], [0.5], None), ([[1.0, 0.0]], [[0.8, 0.2, 0.1]], None),
                                 ([[1.0, 0.0]], [[0.8, 0.2]], [1.0, 2.0, 3.0])):
        with pytest.raises((ValueError, TypeError)):
            score.update_state(labels * 2 if weight else labels, said * 2 if weight else said, weight)
        assert [v.numpy().tolist() for v in score.variables] == before


def test_a_random_layer_that_refuses_images_has_drawn_nothing() -> None:
    for cls in (layers.RandomColorDegeneration, layers.RandomGrayscale, layers.RandomHue, layers.RandomSaturation):
        layer = cls(0.5, seed=1)
        before = [v.numpy().tolist() for v in layer.variables]
        with pytest.raises(ValueError, match=f"{cls.__name__}: Expected images of"):
            layer(tf.ones([1, 4, 4, 2]), training=True)
        assert [v.numpy().tolist() for v in layer.variables] == before


def test_classes_made_in_functions_have_their_names() -> None:
    with pytest.raises(ValueError, match="^SGD: "):
        K.optimizers.legacy.SGD(decay=tf.constant([True, False]))


def test_a_users_own_layer_raises_its_own_error() -> None:
    class Own(layers.Layer):
        def __init__(self, fails: bool) -> None:
            super().__init__()
            if fails:
                raise KeyError("mine")

        def call(self, x: Any) -> Any:
            return [][1]
    with pytest.raises(KeyError, match="mine"):
        Own(True)
    with pytest.raises(IndexError) as caught:
        Own(False)(tf.ones([2]))
    assert type(caught.value) is IndexError
