"""Steps of training as compiled programs: of one batch, of several, for batches of every form."""

from __future__ import annotations

import io

import numpy as np
import pytest

import twofold as tf
from twofold import keras

layers = keras.layers
RNG = np.random.default_rng(5)
X = RNG.random((50, 6)).astype(np.float32)
Y = RNG.integers(0, 3, 50)


def classifier(count, **compiled):
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(8, "relu"), layers.BatchNormalization(),
                              layers.Dropout(0.3), layers.Dense(3)])
    model.compile(**{"optimizer": "adam", "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                     "metrics": ["accuracy"], "steps_per_execution": count, **compiled})
    return model


class Batches(keras.callbacks.Callback):
    """Notes the numbers of batches and the values after them."""

    def __init__(self):
        super().__init__()
        self.begun, self.ended, self.losses, self.outputs = [], [], [], []

    def on_train_batch_begin(self, batch, logs=None):
        self.begun.append(batch)

    def on_train_batch_end(self, batch, logs=None):
        self.ended.append(batch)
        self.losses.append(logs["loss"])

    def on_test_batch_end(self, batch, logs=None):
        self.ended.append(batch)

    def on_predict_batch_end(self, batch, logs=None):
        self.ended.append(batch)
        self.outputs.append(logs["outputs"].shape)


def trained(count):
    """The history, all weights and the losses that callbacks are told, with so many steps in an execution."""
    model, seen = classifier(count), Batches()
    history = model.fit(X, Y, batch_size=4, epochs=3, shuffle=False, verbose=0, validation_split=0.2,
                        callbacks=[seen]).history
    return history, model.get_weights() + [v.numpy() for v in model.optimizer.variables], seen.losses


@pytest.fixture(scope="module")
def step_by_step():
    return trained(1)


@pytest.mark.parametrize("count", [2, 3, 7, 100])
def test_several_steps_in_one_program_give_the_same_bits(count, step_by_step):
    history, weights, losses = trained(count)
    assert history == step_by_step[0]
    for a, b in zip(weights, step_by_step[1], strict=True):
        assert np.array_equal(a, b)
    ends = [min(n + count, 10) - 1 for n in range(0, 10, count)]  # the values that are told are those of the last step
    assert losses == [step_by_step[2][10 * epoch + n] for epoch in range(3) for n in ends]


def test_callbacks_are_told_once_for_each_execution():
    model, seen = classifier(3), Batches()
    model.fit(X, Y, batch_size=6, shuffle=False, verbose=0, callbacks=[seen])  # 8 batches of 6 and one of 2
    assert (seen.begun, seen.ended) == ([0, 3, 6], [2, 5, 8])
    seen = Batches()
    model.evaluate(X, Y, batch_size=6, verbose=0, callbacks=[seen])
    assert seen.ended == [2, 5, 8]
    seen = Batches()
    actual = model.predict(X, batch_size=6, verbose=0, callbacks=[seen])
    assert seen.ended == [2, 5, 8] and seen.outputs == [(18, 3), (18, 3), (14, 3)]
    assert np.array_equal(actual, classifier_like(model).predict(X, batch_size=6, verbose=0))


def classifier_like(model):
    made = classifier(1)
    made.set_weights(model.get_weights())
    return made


def test_the_steps_of_an_execution_are_one_native_program():
    model = classifier(4)
    model.fit(X[:32], Y[:32], batch_size=8, verbose=0)
    (loop,) = model.make_train_function()._loops.values()
    told = loop._function.explain(tf.zeros([4, 8, 6]), tf.zeros([4, 8], tf.int64), file=io.StringIO())
    assert not told.fallback and not told.host
    assert "while" in str(loop.graph)


def test_evaluation_and_prediction_agree_with_single_steps():
    one, several = classifier(1), classifier(4)
    for model in (one, several):
        model.fit(X, Y, batch_size=8, epochs=1, verbose=0, shuffle=False)
    assert one.evaluate(X, Y, batch_size=8, verbose=0) == several.evaluate(X, Y, batch_size=8, verbose=0)
    assert np.array_equal(one.predict(X, batch_size=8, verbose=0), several.predict(X, batch_size=8, verbose=0))


def test_datasets_and_generators_make_executions():
    want = classifier(1)
    want.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)

    def forever():
        while True:
            yield from ((X[n:n + 8], Y[n:n + 8]) for n in range(0, 50, 8))

    for source, options in [(tf.data.Dataset.from_tensor_slices((X, Y)).batch(8), {}),
                            (forever(), {"steps_per_epoch": 7})]:
        model = classifier(3)
        model.fit(source, epochs=2, verbose=0, **options)
        assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), want.get_weights(), strict=True))


def test_a_step_that_cannot_be_traced_runs_batch_by_batch():
    class Asking(keras.Sequential):
        def train_step(self, data):
            logs = super().train_step(data)
            if logs["loss"].numpy() < 0:  # Python asks for the value
                logs["loss"] = logs["loss"] * 0
            return logs

    actual = []
    for count in (1, 3):
        keras.utils.set_random_seed(3)
        model = Asking([keras.Input((6,)), layers.Dense(3)])
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), steps_per_execution=count)
        with pytest.warns(RuntimeWarning, match="runs eagerly"):
            actual.append(model.fit(X, Y, batch_size=10, epochs=2, shuffle=False, verbose=0).history["loss"])
    assert actual[0] == actual[1]


def structures():
    a, b = X[:, :2], X[:, 2:]
    return {"list": [a, b], "tuple": (a, b), "dict": {"first": a, "second": b}}


@pytest.mark.parametrize("kind", ["list", "tuple", "dict"])
@pytest.mark.parametrize("count", [1, 2])
def test_batches_of_every_structure_arrive_as_they_are(kind, count):
    seen = []

    class Noting(keras.Model):
        def train_step(self, data):
            x, y = data
            seen.append((type(x).__name__, tf.is_tensor(y)))
            return super().train_step(data)

    inputs = {"first": keras.Input((2,), name="first"), "second": keras.Input((4,), name="second")}
    joined = layers.Dense(3, kernel_initializer="ones")(layers.Concatenate()(list(inputs.values())))
    model = Noting(inputs if kind == "dict" else list(inputs.values()), joined)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss, steps_per_execution=count)
    losses = model.fit(structures()[kind], Y, batch_size=10, shuffle=False, verbose=0).history["loss"]
    assert set(seen) == {(kind, True)}
    plain = keras.Sequential([keras.Input((6,)), layers.Dense(3, kernel_initializer="ones")])
    plain.compile(keras.optimizers.SGD(0.1), loss)
    assert np.allclose(losses, plain.fit(X, Y, batch_size=10, shuffle=False, verbose=0).history["loss"], rtol=1e-6)


def test_a_model_may_make_the_function_that_fit_calls():
    calls = []

    class Own(keras.Sequential):
        def make_train_function(self, force=False):
            def train_function(iterator):
                batch = next(iterator)
                calls.append(len(batch[0]))
                return self.train_step(batch)
            self.train_function = train_function

    model = Own([keras.Input((6,)), layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(X, Y, batch_size=20, verbose=0)
    assert calls == [20, 20, 10]


def test_the_functions_take_iterators_of_batches():
    model = classifier(2)
    step = model.make_train_function()
    assert model.train_function is step
    batches = iter([(tf.constant(X[n:n + 10]), tf.constant(Y[n:n + 10])) for n in range(0, 30, 10)])
    step(batches)
    assert int(model.optimizer.iterations) == 2
    step(batches)
    assert int(model.optimizer.iterations) == 3
    with pytest.raises(StopIteration):
        step(batches)


def test_an_epoch_can_be_ended_in_between():
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch >= 1

    class Cut(keras.callbacks.Callback):
        def on_test_batch_end(self, batch, logs=None):
            self.model.stop_evaluating = True

        def on_predict_batch_end(self, batch, logs=None):
            self.model.stop_predicting = True

    model = classifier(1)
    model.fit(X, Y, batch_size=10, epochs=4, verbose=0, callbacks=[Stop()])
    assert int(model.optimizer.iterations) == 2
    assert model.predict(X, batch_size=10, verbose=0, callbacks=[Cut()]).shape == (10, 3)
    short = model.evaluate(X, Y, batch_size=10, verbose=0, callbacks=[Cut()])
    assert short == model.evaluate(X[:10], Y[:10], verbose=0)


def test_steps_for_writers_that_are_gone_are_not_kept():
    model = classifier(1)
    kept = model.make_train_function()
    for _ in range(40):
        with tf.summary.create_noop_writer().as_default(step=0):
            model.make_train_function()
        assert len(model._functions._functions) <= 16
        assert model.make_train_function() is kept  # what is used stays
