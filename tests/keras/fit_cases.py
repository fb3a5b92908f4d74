"""What `fit`, `evaluate` and the callbacks are asked in the same way here and of Keras: each case gives plain values.

A case is a function of `tf`, whose `tf.keras` is Keras or ours; `run` gives its result, or the class of its error.
"""

from __future__ import annotations

import io
import math
import os
import re
import tempfile
import warnings
from contextlib import redirect_stdout

import numpy as np

rng = np.random.RandomState(0)
X, WEIGHT = rng.rand(20, 3).astype(np.float32), rng.rand(20).astype(np.float32)
Y = (X @ np.array([[2.0], [-1.0], [0.5]]) + 0.3).astype(np.float32)
CLASS, SIDE = rng.randint(0, 3, 20), rng.rand(20, 2).astype(np.float32)
HOT = np.eye(3, dtype=np.float32)[CLASS]
HELD = {"validation_data": (X[:6], Y[:6])}
QUIET = {"verbose": 0, "shuffle": False, "batch_size": 8}
CASES = {}


def case(fn):
    CASES[fn.__name__] = fn
    return fn


def plain(value):
    """Numbers of seven digits in lists and dicts."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (bool, str, int)) or value is None:
        return value
    number = float(value)
    return str(number) if math.isnan(number) or math.isinf(number) else float(f"{number:.7g}")


def run(name, tf):
    """The result of a case, or `{"error": the class's name}`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(CASES[name](tf))
        except Exception as e:  # noqa: BLE001 - which error it is, is the result
            return {"error": type(e).__name__}


def linear(tf, units=1, activation=None, **compiled):
    keras = tf.keras
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(units, activation, kernel_initializer="ones")])
    model.compile(**{"optimizer": keras.optimizers.SGD(0.1), "loss": "mse", **compiled})
    return model


def classes(tf, loss="sparse_categorical_crossentropy", **compiled):
    return linear(tf, 3, "softmax", loss=loss, **compiled)


def two(tf, named=False, **compiled):
    """Inputs `a` and `b`, outputs `p` and `q`."""
    keras = tf.keras
    a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b")
    joined = keras.layers.Concatenate()([a, b])
    p = keras.layers.Dense(1, name="p", kernel_initializer="ones")(joined)
    q = keras.layers.Dense(3, "softmax", name="q", kernel_initializer="ones")(joined)
    model = keras.Model([a, b], {"p": p, "q": q} if named else [p, q])
    model.compile(**{"optimizer": keras.optimizers.SGD(0.1), **compiled})
    return model


def batches(tf, *parts, size=8):
    return tf.data.Dataset.from_tensor_slices(parts or (X, Y)).batch(size)


# -- weights --------------------------------------------------------------------------------------
@case
def class_weights_of_numbers(tf):
    return classes(tf).fit(X, CLASS, class_weight={0: 2.0, 1: 0.5}, **QUIET).history


@case
def class_weights_of_hot_rows(tf):
    model = classes(tf, "categorical_crossentropy", metrics=["accuracy"], weighted_metrics=["accuracy"])
    return model.fit(X, HOT, class_weight={0: 2.0, 2: 0.5}, **QUIET).history


@case
def class_weights_of_columns_of_floats(tf):
    model = linear(tf, 1, "sigmoid", loss="binary_crossentropy", metrics=["accuracy", "AUC"])
    return model.fit(X, (Y > 1).astype(np.float32) * 0.9999, class_weight={0: 2.0, 1: 0.5}, **QUIET).history


@case
def class_weights_of_batches(tf):
    return classes(tf).fit(batches(tf, X, CLASS), class_weight={0: 2.0, 1: 1.0, 2: 0.5}, verbose=0).history


@case
def class_weights_of_two_outputs(tf):
    return two(tf, loss=["mse", "mse"]).fit([X, SIDE], [Y, HOT], class_weight={0: 1.0}, **QUIET).history


@case
def class_weights_of_one_batch(tf):
    return classes(tf).train_on_batch(X, CLASS, class_weight={0: 3.0})


@case
def sample_weights(tf):
    model = linear(tf, metrics=["mae"], weighted_metrics=["mae"])
    return model.fit(X, Y, sample_weight=WEIGHT, **QUIET).history


@case
def sample_weights_as_column(tf):
    return linear(tf, weighted_metrics=["mae"]).fit(X, Y, sample_weight=WEIGHT[:, None], **QUIET).history


@case
def sample_weights_and_validation(tf):
    model = linear(tf, weighted_metrics=["mae"])
    split = model.fit(X, Y, sample_weight=WEIGHT, validation_split=0.25, **QUIET).history
    return [split, model.fit(X, Y, validation_data=(X, Y, WEIGHT), **QUIET).history]


@case
def one_sample_weight_for_two_outputs(tf):
    return two(tf, loss=["mse", "mse"]).fit([X, SIDE], [Y, HOT], sample_weight=WEIGHT, **QUIET).history["loss"]


@case
def sample_weights_by_name(tf):
    model = two(tf, True, loss={"p": "mse", "q": "mse"})
    weights = {"p": WEIGHT, "q": WEIGHT * 2}
    return model.fit([X, SIDE], {"p": Y, "q": HOT}, sample_weight=weights, **QUIET).history["loss"]


# -- several outputs ------------------------------------------------------------------------------
@case
def losses_and_metrics_in_lists(tf):
    model = two(tf, loss=["mse", "categorical_crossentropy"], loss_weights=[1.0, 0.5], metrics=[["mae"], ["accuracy"]])
    return model.fit([X, SIDE], [Y, HOT], verbose=0, shuffle=False, batch_size=20, epochs=2).history


@case
def losses_and_metrics_by_name(tf):
    model = two(tf, True, loss={"p": "mse", "q": "categorical_crossentropy"}, loss_weights={"p": 2.0, "q": 0.5},
                metrics={"p": "mae", "q": ["accuracy", "mse"]})
    return model.fit({"a": X, "b": SIDE}, {"p": Y, "q": HOT}, verbose=0, shuffle=False, batch_size=10).history


@case
def a_loss_for_one_of_two_outputs(tf):
    by_name = two(tf, True, loss={"p": "mse"}, metrics={"q": ["accuracy"]})
    by_place = two(tf, loss=["mse", None])
    return [by_name.fit({"a": X, "b": SIDE}, {"p": Y, "q": HOT}, **QUIET).history,
            by_place.fit([X, SIDE], [Y, HOT], **QUIET).history]


@case
def one_loss_for_two_outputs(tf):
    model = two(tf, loss="mse", metrics=[["mae"], ["mae"]])
    return model.fit([X, SIDE], [Y, HOT], validation_split=0.5, verbose=0, shuffle=False, batch_size=10).history


@case
def evaluation_of_two_outputs(tf):
    model = two(tf, loss=["mse", "categorical_crossentropy"], metrics=[["mae"], ["accuracy"]])
    return [model.evaluate([X, SIDE], [Y, HOT], verbose=0),
            model.evaluate([X, SIDE], [Y, HOT], verbose=0, return_dict=True)]


# -- names of metrics -----------------------------------------------------------------------------
@case
def names_of_metrics(tf):
    keras = tf.keras

    def own(y_true, y_pred):
        return tf.reduce_mean(tf.abs(y_true - y_pred), -1)
    kinds = [["acc"], ["mse"], ["MeanSquaredError"], [keras.metrics.MeanSquaredError()], ["binary_crossentropy"],
             [keras.metrics.MeanSquaredError(name="mine")], [own], [lambda a, b: own(a, b)], ["mean_squared_error"],
             ["mae", keras.metrics.MeanAbsoluteError()], ["mae", "mae"]]
    return [linear(tf, metrics=kind).evaluate(X, Y, verbose=0, return_dict=True) for kind in kinds]


@case
def losses_of_ones_own(tf):
    def each(y_true, y_pred):
        return tf.reduce_mean(tf.abs(y_true - y_pred), -1)
    whole = linear(tf, loss=lambda a, b: tf.reduce_mean(each(a, b)))
    return [linear(tf, loss=each).fit(X, Y, **QUIET).history, whole.fit(X, Y, sample_weight=WEIGHT, **QUIET).history]


# -- batches and epochs ---------------------------------------------------------------------------
@case
def steps_of_arrays(tf):
    return [linear(tf).fit(X, Y, steps_per_epoch=2, epochs=3, verbose=0, shuffle=False).history,
            linear(tf).fit(X, Y, steps_per_epoch=2, epochs=3, **QUIET).history,
            linear(tf).fit(X, Y, steps_per_epoch=5, epochs=2, **QUIET).history]


@case
def steps_of_datasets(tf):
    return [linear(tf).fit(batches(tf), epochs=2, verbose=0).history,
            linear(tf).fit(batches(tf), steps_per_epoch=2, epochs=3, verbose=0).history,
            linear(tf).fit(batches(tf).repeat(), steps_per_epoch=2, epochs=3, verbose=0).history]


@case
def steps_of_validation(tf):
    options = {"validation_data": (X, Y), "validation_steps": 2, "validation_batch_size": 4, "epochs": 3}
    return linear(tf).fit(X, Y, **options, **QUIET).history


@case
def epochs_with_validation(tf):
    history = linear(tf).fit(X, Y, validation_data=(X, Y), validation_freq=[1, 3], epochs=4, **QUIET).history
    return {name: len(values) for name, values in history.items()}


@case
def later_epochs(tf):
    model = linear(tf)
    actual = model.fit(X, Y, epochs=4, initial_epoch=2, **QUIET)
    return [actual.epoch, actual.history, actual.params, model.fit(X, Y, epochs=0, **QUIET).history]


@case
def single_batches(tf):
    model = linear(tf, metrics=["mae"])
    return [model.train_on_batch(X, Y), model.train_on_batch(X, Y, return_dict=True), model.test_on_batch(X, Y),
            model.test_on_batch(X, Y, sample_weight=WEIGHT), list(model.predict_on_batch(X).shape)]


@case
def nothing_to_train(tf):
    model = linear(tf)
    model.layers[0].trainable = False
    model.compile("sgd", "mse")
    return model.fit(X, Y, **QUIET).history


# -- steps of the model's own ---------------------------------------------------------------------
def own(tf, **methods):
    """A model of one layer, with methods of its own."""
    keras = tf.keras

    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1, kernel_initializer="ones")
            self.mean = keras.metrics.Mean(name="mine")

        def call(self, x):
            return self.dense(x)

    for name, method in methods.items():
        setattr(Own, name, method)
    return Own()


@case
def losses_that_models_compute(tf):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = tf.reduce_mean((y - y_pred) ** 2)
        self.mean.update_state(loss)
        return loss * 2.0
    model = own(tf, compute_loss=compute_loss, metrics=property(lambda self: [self.mean]))
    model.compile(tf.keras.optimizers.SGD(0.1))
    return [model.fit(X, Y, epochs=2, **QUIET).history, model.evaluate(X, Y, verbose=0)]


@case
def steps_that_models_define(tf):
    def train_step(self, data):
        x, y, weight = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True), sample_weight=weight)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        self.mean.update_state(loss)
        return {"own": self.mean.result()}

    def test_step(self, data):
        return {"sum": tf.reduce_sum(self(data[0])), "two": tf.constant(2.0)}

    def predict_step(self, data):
        return {"outputs": self(data[0] if isinstance(data, tuple) else data) * 2.0}
    model = own(tf, train_step=train_step, test_step=test_step, predict_step=predict_step,
                metrics=property(lambda self: [self.mean]))
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    fitted = model.fit(X, Y, sample_weight=WEIGHT, epochs=2, validation_data=(X, Y), **QUIET).history
    return [fitted, model.evaluate(X, Y, verbose=0, return_dict=True), model.predict(X[:2], verbose=0)]


@case
def two_optimizers_in_one_step(tf):
    keras = tf.keras

    class Both(keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = [keras.layers.Dense(1, kernel_initializer="ones") for _ in range(2)]

        def compile(self, first, second):
            super().compile()
            self.first, self.second = first, second

        def train_step(self, x):
            actual = {}
            for name, optimizer, part in zip("ab", (self.first, self.second), self.parts, strict=True):
                with tf.GradientTape() as tape:
                    actual[name] = tf.reduce_mean(part(x) ** 2)
                weights = part.trainable_weights
                optimizer.apply_gradients(zip(tape.gradient(actual[name], weights), weights, strict=True))
            return actual

    model = Both()
    model.compile(keras.optimizers.SGD(0.1), keras.optimizers.Adam(0.1))
    return [model.fit(X, epochs=2, **QUIET).history, model.fit(batches(tf, X).map(lambda x: x), verbose=0).history]


@case
def losses_of_layers(tf):
    class Adding(tf.keras.layers.Layer):
        def call(self, x):
            self.add_loss(tf.reduce_mean(x ** 2))
            return x
    inputs = tf.keras.Input((3,))
    model = tf.keras.Model(inputs, Adding()(tf.keras.layers.Dense(2, kernel_initializer="ones")(inputs)))
    model.compile(tf.keras.optimizers.SGD(0.1))
    return [model.fit(X, epochs=2, **QUIET).history, model.evaluate(X, verbose=0)]


@case
def gradients_of_two_batches(tf):
    model = linear(tf, optimizer=tf.keras.optimizers.SGD(0.1, gradient_accumulation_steps=2))
    return model.fit(X, Y, epochs=3, **QUIET).history


# -- other inputs ---------------------------------------------------------------------------------
@case
def batches_by_number(tf):
    class Batches(tf.keras.utils.PyDataset):
        ended = 0

        def __len__(self):
            return 3

        def __getitem__(self, n):
            return X[n * 6:n * 6 + 6], Y[n * 6:n * 6 + 6]

        def on_epoch_end(self):
            self.ended += 1

    data = Batches()
    fits = [linear(tf).fit(source, epochs=3, shuffle=False, verbose=0, **options).history
            for source, options in [(data, {}), (Batches(workers=2, max_queue_size=2), {}),
                                    (Batches(), {"steps_per_epoch": 2}),
                                    (Batches(), {"class_weight": {0: 2.0, 1: 1.0}}),
                                    (Batches(), {"validation_data": Batches(), "validation_steps": 2})]]
    model = linear(tf)
    return [fits, model.evaluate(data, verbose=0), list(model.predict(data, verbose=0).shape)]


@case
def inputs_by_name(tf):
    keras = tf.keras
    a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b")
    outputs = keras.layers.Dense(1, kernel_initializer="ones")(keras.layers.Concatenate()([a, b]))
    actual = []
    for inputs in ({"a": a, "b": b}, [a, b]):
        model = keras.Model(inputs, outputs)
        model.compile(keras.optimizers.SGD(0.0), "mse")
        actual.append(model.fit({"a": X, "b": SIDE}, Y, **QUIET).history)
        actual.append(model.fit(batches(tf, {"a": X, "b": SIDE}, Y), verbose=0).history)
    return actual


@case
def masks_and_weights_of_steps_in_time(tf):
    keras, layers = tf.keras, tf.keras.layers
    model = keras.Sequential([
        keras.Input((4,)), layers.Embedding(5, 2, mask_zero=True, embeddings_initializer="ones"),
        layers.LSTM(2, return_sequences=True, kernel_initializer="ones", recurrent_initializer="ones"),
        layers.Dense(1, kernel_initializer="ones")])
    model.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mae"], weighted_metrics=["mse"])
    x, y = np.array([[1, 2, 0, 0], [3, 4, 1, 0], [1, 1, 1, 1]]), np.arange(12, dtype=np.float32).reshape(3, 4, 1) / 9
    plain_fit = model.fit(x, y, verbose=0, shuffle=False).history
    return [plain_fit, model.fit(x, y, sample_weight=np.arange(12).reshape(3, 4) / 5, verbose=0, shuffle=False).history]


# -- callbacks ------------------------------------------------------------------------------------
def scripted(tf, values, *callbacks, **options):
    """What is printed, and the model, after epochs whose value `val_x` is given."""
    class Script(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs["val_x"] = values[epoch]
    model, out = linear(tf), io.StringIO()
    with redirect_stdout(out):
        model.fit(X, Y, epochs=len(values), callbacks=[Script(), *callbacks], **QUIET, **options)
    return out.getvalue(), model


@case
def early_stopping(tf):
    actual = []
    for values, options in [
            ([5, 4, 4.5, 4.2, 4.1, 3, 3], {}),
            ([5, 4, 4.5, 4.2, 4.1, 3, 3, 3.5, 3.6], {"patience": 2, "verbose": 1}),
            ([5, 4, 4.5, 4.2, 4.1, 3], {"patience": 2, "restore_best_weights": True, "verbose": 1}),
            ([5, 4, 4.5], {"patience": 5, "restore_best_weights": True, "verbose": 1}),
            ([0.1, 0.2, 0.15, 0.12, 0.3], {"mode": "max", "patience": 1, "restore_best_weights": True}),
            ([5, 4, 3, 2, 1], {"baseline": 2.5, "patience": 2}),
            ([5, 4, 3.5, 3.4, 1], {"baseline": 2.5, "patience": 2, "restore_best_weights": True}),
            ([5, 4.95, 4.9, 4.85, 4.8], {"min_delta": 0.1, "patience": 2}),
            ([1, 5, 6, 7, 8, 9], {"start_from_epoch": 3, "patience": 1, "restore_best_weights": True}),
            ([5, 6, 7], {"patience": 0})]:
        seen = []
        stop = tf.keras.callbacks.EarlyStopping(**{"monitor": "val_x", "mode": "min", **options})
        note = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs, seen=seen, stop=stop: seen.append(
            float(np.sum(stop.model.get_weights()[0]))))
        text, model = scripted(tf, values, note, stop)
        last = float(np.sum(model.get_weights()[0]))
        kept = [n for n, total in enumerate(seen) if abs(total - last) < 1e-6]
        actual.append([len(seen), stop.stopped_epoch, stop.wait, stop.best_epoch, stop.best, kept, text])
    return actual


@case
def rates_on_a_plateau(tf):
    actual = []
    for values, options in [([5] * 8, {"patience": 2}), ([5] * 10, {"patience": 1, "cooldown": 2, "factor": 0.5}),
                            ([5] * 10, {"patience": 1, "factor": 0.1, "min_lr": 0.005}),
                            ([5, 4.99995, 4.9999, 4.99985, 4.8, 4.7], {"patience": 2})]:
        reduce = tf.keras.callbacks.ReduceLROnPlateau(**{"monitor": "val_x", "mode": "min", **options})
        actual.append(scripted(tf, values, reduce)[1].history.history["learning_rate"])
    return actual


@case
def checkpoints(tf):
    actual = []
    for values, name, options in [
            ([3, 2, 4, 1], "best.keras", {"save_best_only": True}),
            ([3, 2], "m{epoch:02d}-{val_x:.2f}.keras", {}),
            ([3, 2], "m{epoch}.weights.h5", {"save_weights_only": True, "verbose": 1}),
            ([3, 2], "m{epoch}-{batch}.keras", {"save_freq": 2}),
            ([3, 2, 1], "m{epoch}.keras", {"save_best_only": True, "initial_value_threshold": 2.5, "verbose": 1}),
            ([3, 2], "m.keras", {"monitor": "nothing", "save_best_only": True}),
            ([1, 2, 1.5], "m{epoch}.keras", {"mode": "max", "save_best_only": True}),
            ([3], "m.h5", {}), ([3], "m.other", {}), ([3], "m.h5", {"save_weights_only": True}),
            ([3], "m.keras", {"save_freq": "often"}), ([3], "m{nothing}.keras", {})]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                given = {"monitor": "val_x", "mode": "min", **options}
                board = tf.keras.callbacks.ModelCheckpoint(os.path.join(folder, name), **given)
                text = scripted(tf, values, board)[0].replace(folder + os.sep, "")
                actual.append([sorted(os.listdir(folder)), text])
            except (ValueError, KeyError) as e:
                actual.append(type(e).__name__)
    return actual


@case
def tables(tf):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.csv")
        table = tf.keras.callbacks.CSVLogger(path)
        linear(tf).fit(X, Y, epochs=2, callbacks=[table], validation_freq=2, **HELD, **QUIET)
        linear(tf).fit(X, Y, callbacks=[tf.keras.callbacks.CSVLogger(path, append=True)], **QUIET)
        with open(path) as file:
            return [[part if not re.match(r"\d+\.", part) else "number" for part in line.split(",")]
                    for line in file.read().splitlines()]


@case
def a_schedule_that_gives_no_number(tf):
    schedule = tf.keras.callbacks.LearningRateScheduler(lambda epoch: "x")
    return linear(tf).fit(X, Y, callbacks=[schedule], **QUIET).history


@case
def hooks_in_order(tf):
    told = []

    class Noting(tf.keras.callbacks.Callback):
        def note(self, name, *args):
            told.append([name, *[a if isinstance(a, int) else sorted(a or ()) for a in args]])

    for name in [n for n in dir(tf.keras.callbacks.Callback) if n.startswith("on_")]:
        if name not in ("on_batch_begin", "on_batch_end"):
            setattr(Noting, name, lambda self, *args, _name=name, logs=None: self.note(
                _name, *args, *([] if logs is None else [logs])))
    model = linear(tf, metrics=["mae"])
    model.fit(X, Y, callbacks=[Noting()], **HELD, **QUIET)
    model.evaluate(X, Y, batch_size=8, verbose=0, callbacks=[Noting()])
    model.predict(X, batch_size=16, verbose=0, callbacks=[Noting()])
    return told


@case
def executions_of_several_steps(tf):
    told = []

    class Noting(tf.keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            told.append(["begin", batch])

        def on_train_batch_end(self, batch, logs=None):
            told.append(["end", batch, logs["loss"]])

        def on_predict_batch_end(self, batch, logs=None):
            told.append(["outputs", batch, list(np.shape(logs["outputs"]))])

    model = linear(tf, steps_per_execution=2)
    history = model.fit(X, Y, batch_size=5, verbose=0, shuffle=False, callbacks=[Noting()]).history
    model.predict(X, batch_size=5, verbose=0, callbacks=[Noting()])
    return [told, history, model.evaluate(X, Y, batch_size=5, verbose=0)]


@case
def training_that_is_stopped(tf):
    class Stop(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 1:
                self.model.stop_training = True
    actual = linear(tf).fit(X, Y, epochs=3, callbacks=[Stop()], **HELD, **QUIET)
    watch = tf.keras.callbacks.TerminateOnNaN()
    broken = linear(tf).fit(np.full_like(X, np.nan), Y, epochs=3, callbacks=[watch], **QUIET)
    return [actual.epoch, actual.history, broken.epoch]


@case
def what_is_printed(tf):
    class Text(io.StringIO):
        encoding = "utf-8"

    def printed(method, *args, **options):
        with redirect_stdout(Text()) as out:
            method(*args, **options)
        text = re.sub(r"\x1b\[[0-9;]*m|\x08", "", out.getvalue())
        lines = [line.split("\r")[-1].rstrip() for line in text.split("\n")]  # of lines drawn over, the last
        lines = [re.sub(r"\d+(us|ms|s)\b", "time", line) for line in lines]
        return [re.sub(r"\d+\.\d+(e-\d+)?", "number", line) for line in lines]

    model = linear(tf, metrics=["mae"])
    fits = [{"verbose": v, "epochs": n, **HELD} for v in (0, 1, 2) for n in (1, 2)]
    fits.append({"epochs": 5, "initial_epoch": 3})
    return [*[printed(model.fit, X, Y, batch_size=8, **options) for options in fits],
            printed(model.evaluate, X, Y, batch_size=8), printed(model.evaluate, X, Y, verbose=2),
            printed(model.predict, X, batch_size=8), printed(model.predict, X, verbose=0)]
