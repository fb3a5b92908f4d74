"""Optimizers of TensorFlow before Keras 3: their states are taken over, and training goes on as it did there."""

import json
from pathlib import Path

import numpy as np
import pytest

import twofold as tf

FOLDER = Path(__file__).parent / "data" / "slots"
AFTER = json.loads((FOLDER / "after.json").read_text())
X = np.array([[1.0, -1.0], [0.5, 2.0]], np.float32)
OPTIMIZERS, V1 = tf.keras.optimizers, tf.compat.v1.train
MAKE = {
    "Adam": lambda: OPTIMIZERS.Adam(amsgrad=True), "SGD": lambda: OPTIMIZERS.SGD(momentum=0.9),
    "RMSprop": lambda: OPTIMIZERS.RMSprop(momentum=0.5, centered=True), "Adagrad": lambda: OPTIMIZERS.Adagrad(),
    "Adadelta": lambda: OPTIMIZERS.Adadelta(), "Adamax": lambda: OPTIMIZERS.Adamax(), "Ftrl": lambda: OPTIMIZERS.Ftrl(),
    "keras2-Adam": lambda: OPTIMIZERS.Adam(amsgrad=True),
    "keras2-SGD": lambda: OPTIMIZERS.SGD(momentum=0.9), "v1-AdamOptimizer": lambda: V1.AdamOptimizer(0.1),
    "v1-RMSPropOptimizer": lambda: V1.RMSPropOptimizer(0.1, momentum=0.5),
}


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = tf.Variable([[1.0, 2.0], [3.0, 4.0]]), tf.Variable([0.5, -0.5])


def step(model, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((X @ model.w + model.b) ** 2)
    variables = [model.w, model.b]
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


def check(name, model, optimizer):
    for _ in range(2):
        step(model, optimizer)
    for part in ("w", "b"):
        np.testing.assert_allclose(getattr(model, part).numpy(), AFTER[name][part], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", MAKE)
def test_slots_that_are_there(name):
    model, optimizer = Model(), MAKE[name]()
    step(model, optimizer)
    tf.train.Checkpoint(model=model, optimizer=optimizer).restore(FOLDER / name).assert_consumed()
    check(name, model, optimizer)


@pytest.mark.parametrize("name", MAKE)
def test_slots_that_are_made_later(name):
    model, optimizer = Model(), MAKE[name]()
    status = tf.train.Checkpoint(model=model, optimizer=optimizer).restore(FOLDER / name)
    check(name, model, optimizer)
    status.assert_consumed()


@pytest.mark.parametrize("name", ["Adam", "keras2-Adam", "v1-AdamOptimizer"])
def test_slots_and_variables_that_are_made_later(name):
    checkpoint = tf.train.Checkpoint()
    status = checkpoint.restore(FOLDER / name)
    checkpoint.optimizer = MAKE[name]()
    checkpoint.model = Model()
    train = tf.function(step)
    for _ in range(2):
        train(checkpoint.model, checkpoint.optimizer)
    status.assert_consumed()
    np.testing.assert_allclose(checkpoint.model.w.numpy(), AFTER[name]["w"], rtol=2e-5, atol=2e-6)


def test_nadam_whose_formula_is_another_one_now():
    model, optimizer = Model(), OPTIMIZERS.Nadam()
    tf.train.Checkpoint(model=model, optimizer=optimizer).restore(FOLDER / "Nadam")
    optimizer.build([model.w, model.b])
    stored = tf.train.load_checkpoint(FOLDER / "Nadam")

    def value(name):
        return stored.get_tensor(f"{name}/.ATTRIBUTES/VARIABLE_VALUE")
    for n, of in enumerate("wb"):
        np.testing.assert_array_equal(optimizer._momentums[n], value(f"model/{of}/.OPTIMIZER_SLOT/optimizer/m"))
        np.testing.assert_array_equal(optimizer._velocities[n], value(f"model/{of}/.OPTIMIZER_SLOT/optimizer/v"))
    assert optimizer._u_product.numpy() == value("optimizer/momentum_cache")
    assert optimizer.iterations.numpy() == 3


def test_what_has_no_place_is_told():
    model, optimizer = Model(), OPTIMIZERS.SGD()  # without momentum
    status = tf.train.Checkpoint(model=model, optimizer=optimizer).restore(FOLDER / "SGD")
    step(model, optimizer)
    with pytest.raises(AssertionError, match="optimizer.momentum of node"):
        status.assert_consumed()
    assert optimizer.iterations.numpy() == 4
    assert optimizer.learning_rate.numpy() == np.float32(0.1)
    status.expect_partial()


def test_nothing_changes_where_a_slot_does_not_fit():
    class Other(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = tf.Variable([[1.0, 2.0], [3.0, 4.0]]), tf.Variable([0.5, -0.5])

    model, optimizer = Other(), OPTIMIZERS.Adam(amsgrad=True)
    step(model, optimizer)
    optimizer._velocities[1]._value = tf.constant([0.0, 0.0, 0.0])
    optimizer._velocities[1]._shape = tf.TensorShape([3])
    before = model.w.numpy()
    with pytest.raises(ValueError, match="incompatible tensor"):
        tf.train.Checkpoint(model=model, optimizer=optimizer).restore(FOLDER / "Adam")
    np.testing.assert_array_equal(model.w.numpy(), before)
    assert optimizer.iterations.numpy() == 1
