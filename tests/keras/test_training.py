"""fit, evaluate and predict: against a loop in NumPy, with all kinds of data, as one compiled program."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf
from twofold import keras

layers = keras.layers


def data(n=64, seed=0):
    rng = np.random.RandomState(seed)
    x = rng.rand(n, 3).astype(np.float32)
    return x, (x @ [[1.0], [-2.0], [0.5]] + 0.3).astype(np.float32)


def linear(**compiled):
    model = keras.Sequential([layers.Dense(1, input_shape=(3,), kernel_initializer="zeros")])
    model.compile(**{"optimizer": keras.optimizers.SGD(0.1), "loss": "mse", **compiled})
    return model


def reference(x, y, epochs, batch, rate, weight=None):
    """Gradient descent on the mean squared error in float64: the mean loss of each epoch, and the parameters."""
    w, b = np.zeros((3, 1)), np.zeros(1)
    weight = np.ones(len(x)) if weight is None else weight
    means = []
    for _ in range(epochs):
        losses, counts = [], []
        for i in range(0, len(x), batch):
            xs, ys, ws = x[i:i + batch].astype(float), y[i:i + batch].astype(float), weight[i:i + batch, None]
            error = xs @ w + b - ys
            losses.append((ws * error ** 2).mean())
            counts.append(len(xs))
            w -= rate * 2 * xs.T @ (ws * error) / len(xs)
            b -= rate * 2 * (ws * error).sum() / len(xs)
        means.append(np.average(losses, weights=counts))
    return means, w, b


def test_fit_does_what_a_loop_in_numpy_does():
    x, y = data(50)
    model = linear(metrics=["mae"])
    history = model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0)
    means, w, b = reference(x, y, 3, 16, 0.1)
    assert history.epoch == [0, 1, 2]
    assert np.allclose(history.history["loss"], means, rtol=1e-5)
    assert np.allclose(model.get_weights()[0], w, atol=1e-6) and np.allclose(model.get_weights()[1], b, atol=1e-6)
    loss, mae = model.evaluate(x, y, verbose=0)
    error = x @ w + b - y
    assert (loss, mae) == pytest.approx((float((error ** 2).mean()), float(np.abs(error).mean())), rel=1e-5)
    assert np.allclose(model.predict(x, verbose=0), x @ w + b, atol=1e-6)


@pytest.mark.parametrize("options", [{"run_eagerly": True}, {"steps_per_execution": 2}, {"jit_compile": True}])
def test_other_ways_to_run_the_steps_give_the_same(options):
    x, y = data(50)
    one, other = linear(), linear(**options)
    for model in (one, other):
        model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    assert all(np.array_equal(a, b) for a, b in zip(one.get_weights(), other.get_weights(), strict=True))


def test_a_step_is_one_native_program():
    model = keras.Sequential([layers.Dense(4, "relu", input_shape=(3,)), layers.BatchNormalization(),
                              layers.Dropout(0.5), layers.Dense(2)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    ran = []
    original = layers.Dense.call
    layers.Dense.call = lambda self, x: ran.append(1) or original(self, x)
    try:
        x, y = np.ones((8, 3), np.float32), np.zeros(8, np.int64)
        model.fit(x, y, epochs=1, verbose=0)
        traced = len(ran)
        model.fit(x, y, epochs=5, verbose=0)
        assert len(ran) == traced  # no Python of a layer runs again
    finally:
        layers.Dense.call = original
    step = model.make_train_function().compiled
    assert step.experimental_get_tracing_count() == 1
    import io
    told = step.explain(tf.constant(x), tf.constant(y), file=io.StringIO())
    assert told.fallback is None or told.fallback == ""
    assert not told.host


def test_sample_and_class_weights():
    x, y = data(32)
    weight = np.random.RandomState(1).rand(32).astype(np.float32)
    model = linear()
    losses = model.fit(x, y, sample_weight=weight, batch_size=8, epochs=2, shuffle=False, verbose=0).history["loss"]
    means, w, _ = reference(x, y, 2, 8, 0.1, weight.astype(float))
    assert np.allclose(losses, means, rtol=1e-5) and np.allclose(model.get_weights()[0], w, atol=1e-6)
    labels = (y > 0).astype(np.float32)
    by_class, by_sample = linear(), linear()
    by_class.fit(x, labels, class_weight={0: 2.0, 1: 0.5}, shuffle=False, verbose=0)
    by_sample.fit(x, labels, sample_weight=np.where(labels[:, 0] > 0, 0.5, 2.0), shuffle=False, verbose=0)
    assert np.allclose(by_class.get_weights()[0], by_sample.get_weights()[0], atol=1e-7)


def test_validation_is_the_last_part_or_what_is_given():
    x, y = data(40)
    model = linear()
    history = model.fit(x, y, validation_split=0.25, epochs=2, verbose=0, shuffle=False)
    means, w, b = reference(x[:30], y[:30], 2, 32, 0.1)
    assert np.allclose(history.history["loss"], means, rtol=1e-5)
    assert history.history["val_loss"][-1] == pytest.approx(float(((x[30:] @ w + b - y[30:]) ** 2).mean()), rel=1e-5)
    history = model.fit(x, y, validation_data=(x, y), validation_freq=2, epochs=4, verbose=0)
    assert len(history.history["val_loss"]) == 2
    with pytest.raises(ValueError, match="not sufficient to split"):
        model.fit(x[:1], y[:1], validation_split=0.5, verbose=0)


def test_datasets_generators_and_sequences():
    x, y = data(48)
    batches = [(x[i:i + 16], y[i:i + 16]) for i in range(0, 48, 16)]
    want = linear()
    want.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)

    class Batches(keras.utils.Sequence):
        ended = 0

        def __len__(self):
            return 3

        def __getitem__(self, n):
            return batches[n]

        def on_epoch_end(self):
            self.ended += 1

    def endless():
        while True:
            yield from batches

    sequence = Batches(workers=3)
    sources = [(sequence, {"shuffle": False}), (endless(), {"steps_per_epoch": 3}),
               (tf.data.Dataset.from_tensor_slices((x, y)).batch(16), {})]
    for source, options in sources:
        model = linear()
        model.fit(source, epochs=2, verbose=0, **options)
        assert np.array_equal(model.get_weights()[0], want.get_weights()[0]), source
    assert sequence.ended == 2
    assert model.evaluate(sequence, verbose=0) == pytest.approx(want.evaluate(x, y, verbose=0), rel=1e-6)
    assert model.predict(iter([b[0] for b in batches]), verbose=0).shape == (48, 1)
    with pytest.raises(ValueError, match="`y` cannot be passed separately"):
        model.fit(sequence, y, verbose=0)


def test_steps_per_epoch_go_on_where_the_last_epoch_stopped():
    x, y = data(64)
    one, other = linear(), linear()
    one.fit(x, y, batch_size=16, epochs=1, shuffle=False, verbose=0)
    other.fit(x, y, batch_size=16, steps_per_epoch=2, epochs=2, shuffle=False, verbose=0)
    assert np.array_equal(one.get_weights()[0], other.get_weights()[0])


def test_data_that_run_out_end_the_training():
    x, y = data(48)

    def some(count):
        yield from ((x[n:n + 8], y[n:n + 8]) for n in range(0, 8 * count, 8))

    want = linear()
    losses = want.fit(x[:24], y[:24], batch_size=8, shuffle=False, verbose=0).history["loss"]
    model = linear()
    with pytest.warns(UserWarning, match="ran out of data; training ends before epoch 2 of 5"):
        assert model.fit(some(3), epochs=5, verbose=0).history["loss"] == losses
    model = linear()
    with pytest.warns(UserWarning, match="ran out of data") as told:
        history = model.fit(some(3), steps_per_epoch=2, epochs=5, verbose=0)
    assert history.epoch == [0, 1] and int(model.optimizer.iterations) == 3
    assert ["after 1 of 2 steps" in str(w.message) for w in told] == [True, False, False]
    with pytest.raises(ValueError, match="empty"):
        linear().fit(some(0), verbose=0)
    unknown = tf.data.Dataset.from_generator(lambda: some(4), output_signature=(
        tf.TensorSpec((8, 3)), tf.TensorSpec((8, 1))))
    model = linear()
    model.fit(unknown, steps_per_epoch=2, epochs=4, verbose=0)  # every second epoch begins anew
    assert int(model.optimizer.iterations) == 8


def test_validation_begins_with_the_first_batch_each_time():
    x, y = data(32)
    seen = []

    class Seeing(keras.callbacks.Callback):
        def on_test_batch_end(self, batch, logs=None):
            seen.append(logs["loss"])

    model = linear(optimizer=keras.optimizers.SGD(0.0))
    model.fit(x, y, epochs=3, verbose=0, validation_data=(x, y), validation_batch_size=8, validation_steps=2,
              callbacks=[Seeing()])
    assert seen == seen[:2] * 3 and seen[0] != seen[1]


def test_weights_of_samples_and_classes_multiply():
    x, y = data(16)
    labels, weight = (y > 0).astype(np.float32), np.random.RandomState(1).rand(16).astype(np.float32)
    both, one = linear(), linear()
    both.fit(x, labels, class_weight={1: 3.0}, sample_weight=weight, shuffle=False, verbose=0)
    one.fit(x, labels, sample_weight=weight * np.where(labels[:, 0] > 0, 3.0, 1.0), shuffle=False, verbose=0)
    assert np.allclose(both.get_weights()[0], one.get_weights()[0], atol=1e-7)
    odd = linear()
    odd.fit(x, -labels, class_weight={1: 3.0}, shuffle=False, verbose=0)  # -1 is no class that is named
    plain = linear()
    plain.fit(x, -labels, shuffle=False, verbose=0)
    assert np.array_equal(odd.get_weights()[0], plain.get_weights()[0])


def test_a_model_without_trainable_weights_is_told_of():
    x, y = data(8)
    model = linear()
    model.trainable = False
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match="does not have any trainable weights"):
        assert model.fit(x, y, verbose=0).history["loss"] == [pytest.approx(float((y ** 2).mean()), rel=1e-6)]


def test_several_outputs_have_losses_by_name():
    a = keras.Input((3,), name="a")
    model = keras.Model(a, {"one": layers.Dense(1, name="one")(a), "two": layers.Dense(2, name="two")(a)})
    model.compile("sgd", {"one": "mse", "two": "mae"}, loss_weights={"one": 2.0, "two": 0.5},
                  metrics={"two": ["mse"]})
    x, y = data(16)
    logs = model.train_on_batch(x, {"one": y, "two": np.zeros((16, 2))}, return_dict=True)
    assert sorted(logs) == ["loss", "one_loss", "two_loss", "two_mse"]
    assert logs["loss"] == pytest.approx(2 * logs["one_loss"] + 0.5 * logs["two_loss"], rel=1e-6)
    with pytest.raises(ValueError, match="do not correspond to any model output"):
        model.compile("sgd", {"three": "mse"})
        model.train_on_batch(x, {"one": y, "two": y})


def test_accuracy_is_of_the_kind_that_the_shapes_ask_for():
    x = np.eye(4, 3, dtype=np.float32)
    kinds = []
    for units, y in ((1, np.ones((4, 1))), (3, np.array([0, 1, 2, 0])), (3, np.eye(4, 3))):
        model = keras.Sequential([layers.Dense(units, input_shape=(3,))])
        model.compile("sgd", "mse" if units == 1 else keras.losses.SparseCategoricalCrossentropy(from_logits=True)
                      if y.ndim == 1 else keras.losses.CategoricalCrossentropy(from_logits=True), metrics=["acc"])
        assert "acc" in model.fit(x, y, verbose=0).history
        kinds.append(type(model.metrics[1].metrics[0]).__name__)
    assert kinds == ["BinaryAccuracy", "SparseCategoricalAccuracy", "CategoricalAccuracy"]


def test_a_train_step_of_ones_own():
    class Custom(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(1, kernel_initializer="zeros")
            self.tracker = keras.metrics.Mean(name="mine")

        @property
        def metrics(self):
            return [self.tracker]

        def call(self, x):
            return self.dense(x)

        def train_step(self, batch):
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            self.tracker.update_state(loss)
            return {"mine": self.tracker.result()}

    x, y = data(32)
    model = Custom()
    model.compile(optimizer=keras.optimizers.SGD(0.1))
    mine = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
    assert list(mine) == ["mine"] and np.allclose(mine["mine"], reference(x, y, 2, 8, 0.1)[0], rtol=1e-5)


def test_losses_of_layers_and_regularizers_count():
    x, y = data(8)
    model = keras.Sequential([layers.Dense(1, input_shape=(3,), kernel_initializer="ones",
                                           kernel_regularizer=keras.regularizers.L2(0.5))])
    model.compile("sgd", "mse")
    error = x.sum(1, keepdims=True) - y
    assert model.test_on_batch(x, y) == pytest.approx(float((error ** 2).mean()) + 1.5, rel=1e-5)


def test_freezing_after_training_is_seen():
    x, y = data(8)
    model = keras.Sequential([layers.Dense(3, input_shape=(3,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)
    model.layers[0].trainable = False
    before = model.get_weights()
    model.fit(x, y, verbose=0)
    same = [np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True)]
    assert same == [True, True, False, False]


def test_what_is_missing_is_told():
    x, y = data(8)
    model = keras.Sequential([layers.Dense(1)])
    with pytest.raises(ValueError, match=r"must call `compile\(\)`"):
        model.fit(x, y)
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="same number of samples"):
        model.fit(x, y[:3], verbose=0)
    with pytest.raises(ValueError, match="There are no labels"):
        model.fit(x, verbose=0)
    with pytest.raises(ValueError, match="There is no data"):
        model.fit(verbose=0)
    model.compile("sgd")
    with pytest.raises(ValueError, match="No loss to compute"):
        model.fit(x, y, verbose=0)


def test_the_lines_that_are_printed(capsys):
    x, y = data(64)
    model = linear(metrics=["mae"])
    model.fit(x, y, epochs=2, validation_split=0.5, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Epoch 1/2" and lines[2] == "Epoch 2/2" and len(lines) == 4
    assert lines[1].startswith("1/1 ━━━━━━━━━━━━━━━━━━━━ ") and "/step - loss: " in lines[1]
    assert [part.partition(":")[0] for part in lines[1].split(" - ")[1:]] == ["loss", "mae", "val_loss", "val_mae"]
    model.fit(x, y, verbose=2)
    assert capsys.readouterr().out.startswith("2/2 - 0s - ")
    model.fit(x, y, verbose=0)
    assert capsys.readouterr().out == ""


def test_a_progress_bar_is_drawn_over_itself(capsys, monkeypatch):
    monkeypatch.setattr("twofold.keras.progress._is_live", lambda: True)
    bar = keras.utils.Progbar(4, width=4, interval=0)
    for n in range(4):
        bar.update(n + 1, [("loss", float(n))])
    drawn = capsys.readouterr().out.split("\r")[1:]
    assert [line.split()[1] for line in drawn] == ["━───", "━━──", "━━━─", "━━━━"]
    assert drawn[-1].endswith("\n") and "loss: 1.5000" in drawn[-1]  # the mean of 0, 1, 2, 3


def test_weighted_metrics_regard_the_weights_and_others_do_not():
    x, y = data(16)
    weight = np.random.RandomState(1).rand(16).astype(np.float32)
    model = linear(metrics=["mae"], weighted_metrics=[keras.metrics.MeanAbsoluteError(name="weighted")])
    logs = model.test_on_batch(x, y, sample_weight=weight, return_dict=True)
    error = np.abs(y[:, 0]).astype(float)  # the model gives zeros
    assert logs["mae"] == pytest.approx(error.mean(), rel=1e-5)
    assert logs["weighted"] == pytest.approx(np.average(error, weights=weight), rel=1e-5)
    assert logs["loss"] == pytest.approx((weight * error ** 2).mean(), rel=1e-5)


def test_inputs_alone_come_to_the_step_as_they_are():
    seen = []

    class Custom(keras.Model):
        def train_step(self, batch):
            seen.append(type(batch).__name__)
            return {"mean": tf.reduce_mean(batch)}

        def call(self, x):
            return x

    model = Custom()
    model.compile(run_eagerly=True)
    assert model.fit(np.ones((8, 2)), batch_size=4, verbose=0).history == {"mean": [1.0]}
    assert seen == ["Tensor"] * 2


def test_numbers_in_one_axis_are_columns_where_the_model_says_so():
    model = keras.Sequential([keras.Input((1,)), layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    assert model.predict(np.arange(3.0), verbose=0).tolist() == [[0.0], [1.0], [2.0]]
    assert model.evaluate(np.arange(3.0), np.arange(3.0), verbose=0) == 0.0


def test_weighted_metrics_have_names_of_their_own():
    x, y = data(6)
    model = keras.Sequential([layers.Dense(1, input_shape=(3,), kernel_initializer="ones")])
    model.compile("sgd", "mse", metrics=["mae", "mae"], weighted_metrics=["mae"])
    weight = np.arange(6, dtype=np.float32)
    logs = model.test_on_batch(x, y, sample_weight=weight, return_dict=True)
    error = np.abs(x.sum(1, keepdims=True) - y)[:, 0]
    assert sorted(logs) == ["loss", "mae", "mae_1", "weighted_mae"]
    assert logs["mae"] == logs["mae_1"] == pytest.approx(float(error.mean()), rel=1e-5)
    assert logs["weighted_mae"] == pytest.approx(float((error * weight).sum() / weight.sum()), rel=1e-5)


@pytest.mark.parametrize("eagerly", [False, True])
def test_a_step_of_a_subclass_finds_the_metrics_of_compile(eagerly):
    class Own(keras.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                predicted = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=predicted)
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, predicted)
            return {metric.name: metric.result() for metric in self.metrics}

    x, y = data(8)
    entry = keras.Input((3,))
    model = Own(entry, layers.Dense(1, kernel_initializer="ones")(entry))
    model.compile(keras.optimizers.SGD(0.0), "mse", metrics=["mae"], run_eagerly=eagerly)
    history = model.fit(x, y, verbose=0).history
    assert history["mae"] == [pytest.approx(float(np.abs(x.sum(1, keepdims=True) - y).mean()), rel=1e-5)]


def test_a_step_of_a_subclass_need_not_call_the_model():
    class Own(keras.Model):
        def train_step(self, data):
            return {"seen": tf.cast(tf.shape(data[0])[0], tf.float32)}

    model = Own()
    model.compile("sgd", "mse", metrics=["mae"])
    assert model.fit(*data(8), verbose=0).history["seen"] == [8.0]


def test_single_batches_report_their_own_values():
    x, y = data(8)
    model = keras.Sequential([layers.Dense(1, input_shape=(3,), kernel_initializer="ones")])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    error = (x.sum(1, keepdims=True) - y) ** 2
    model.train_on_batch(x[:4], y[:4])
    assert model.train_on_batch(x[4:], y[4:]) == pytest.approx(float(error[4:].mean()), rel=1e-5)
    assert model.test_on_batch(x[:4], y[:4]) == pytest.approx(float(error[:4].mean()), rel=1e-5)
    model.train_on_batch(x[4:], y[4:], reset_metrics=False)
    assert model.train_on_batch(x[:4], y[:4], reset_metrics=False) != pytest.approx(float(error[:4].mean()), rel=1e-5)


def test_metrics_and_logs_have_keras_names_and_order():
    x, y = data(8)
    model = linear(metrics=["mae", "mape"], weighted_metrics=["mse", "mae"])
    order = []
    own = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: order.append(list(logs)))
    history = model.fit(x, y, verbose=0, validation_data=(x, y), callbacks=[own]).history
    names = ["loss", "mae", "mape", "mse", "weighted_mae"]
    assert list(history) == [*names, *[f"val_{name}" for name in names]] and order[0] == names
    assert [type(m).__name__ for m in model.metrics] == ["Mean", "CompileMetrics"]
    assert model.metrics_names == ["loss", "compile_metrics"]
    values = model.evaluate(x, y, verbose=0, return_dict=True)
    assert list(values) == names and model.evaluate(x, y, verbose=0) == [
        values[n] for n in ("loss", "mae", "mape", "mse", "weighted_mae")]

    entry = keras.Input((3,))
    two = keras.Model(entry, [layers.Dense(1, name="z")(entry), layers.Dense(1, name="b")(entry)])
    two.compile("sgd", ["mse", "mae"], metrics=[["mae"], ["mse", "mape"]])
    assert list(two.fit(x, [y, y], verbose=0).history) == ["b_loss", "b_mape", "b_mse", "loss", "z_loss", "z_mae"]
    assert two.metrics_names == ["loss", "compile_metrics", "z_loss", "b_loss"]
    values = two.evaluate(x, [y, y], verbose=0, return_dict=True)
    assert two.evaluate(x, [y, y], verbose=0) == [
        values[n] for n in ("loss", "z_loss", "b_loss", "b_mape", "b_mse", "z_mae")]
    assert [m.name for m in two.metrics[1].metrics] == ["mae", "mse", "mape"]
    assert set(two.metrics[1].result()) == {"z_mae", "b_mse", "b_mape"}
