"""Callbacks: when they are called, and what each does."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from twofold import keras

callbacks, layers = keras.callbacks, keras.layers
X = np.random.RandomState(0).rand(16, 3).astype(np.float32)
Y = X.sum(1, keepdims=True)


def model_of(**compiled):
    model = keras.Sequential([layers.Dense(1, input_shape=(3,), kernel_initializer="zeros")])
    model.compile(**{"optimizer": keras.optimizers.SGD(0.1), "loss": "mse", **compiled})
    return model


def fit(model, *given, **options):
    return model.fit(X, Y, **{"verbose": 0, "shuffle": False, "callbacks": list(given), **options}).history


class Script(callbacks.Callback):
    """Puts values of its own into the logs, for those that come after it."""

    def __init__(self, name, values):
        super().__init__()
        self.name, self.values = name, values

    def on_epoch_end(self, epoch, logs=None):
        logs[self.name] = self.values[epoch]


def test_the_order_of_the_hooks():
    told = []

    class Noting(callbacks.Callback):
        pass

    for name in [n for n in dir(callbacks.Callback) if n.startswith("on_") and n not in ("on_batch_begin",
                                                                                         "on_batch_end")]:
        setattr(Noting, name, lambda self, *args, _name=name, **kwargs: told.append(_name.removeprefix("on_")))
    model = model_of()
    fit(model, Noting(), batch_size=8, validation_data=(X[:2], Y[:2]))
    assert told == ["train_begin", "epoch_begin", "train_batch_begin", "train_batch_end", "train_batch_begin",
                    "train_batch_end", "test_begin", "test_batch_begin", "test_batch_end", "test_end", "epoch_end",
                    "train_end"]
    told.clear()
    model.predict(X, batch_size=16, verbose=0, callbacks=[Noting()])
    assert told == ["predict_begin", "predict_batch_begin", "predict_batch_end", "predict_end"]


def test_lambdas_and_the_older_names_of_batches():
    seen = []

    class Older(callbacks.Callback):
        def on_batch_end(self, batch, logs=None):
            seen.append((batch, sorted(logs)))

    ends = []
    fit(model_of(), Older(), callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: ends.append(logs["loss"])),
        batch_size=8, epochs=2)
    assert seen == [(0, ["loss"]), (1, ["loss"])] * 2 and len(ends) == 2 and ends[1] < ends[0]


def test_early_stopping():
    values = [3.0, 2.0, 2.5, 2.4, 1.0]
    stop = callbacks.EarlyStopping(monitor="value", patience=2)
    history = fit(model_of(), Script("value", values), stop, epochs=5)
    assert history["value"] == values[:4] and stop.stopped_epoch == 3
    rising = callbacks.EarlyStopping(monitor="val_accuracy", patience=1)
    assert fit(model_of(), Script("val_accuracy", [0.1, 0.2, 0.15, 0.9]), rising, epochs=4)["val_accuracy"] == [
        0.1, 0.2, 0.15]
    with pytest.warns(UserWarning, match="`nothing`, which is not there"):
        fit(model_of(), callbacks.EarlyStopping(monitor="nothing"))


def test_early_stopping_brings_back_the_best_weights(capsys):
    model = model_of()
    kept = []
    save = callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: kept.append(model.get_weights()))
    stop = callbacks.EarlyStopping("value", patience=2, restore_best_weights=True, verbose=1)
    fit(model, save, Script("value", [3.0, 1.0, 2.0, 2.0]), stop, epochs=4)
    assert np.array_equal(model.get_weights()[0], kept[1][0])
    assert capsys.readouterr().out.splitlines() == [
        "Epoch 4: early stopping", "Restoring model weights from the end of the best epoch: 2."]


def test_the_rate_falls_on_a_plateau():
    plateau = callbacks.ReduceLROnPlateau("value", factor=0.5, patience=2, cooldown=1, min_lr=0.03)
    rates = fit(model_of(), Script("value", [1.0] * 8), plateau, epochs=8)["learning_rate"]
    assert np.allclose(rates, [0.1, 0.1, 0.1, 0.05, 0.05, 0.03, 0.03, 0.03])
    with pytest.raises(ValueError, match="factor >= 1.0"):
        callbacks.ReduceLROnPlateau(factor=1.0)


def test_the_rate_follows_a_schedule_in_the_compiled_step():
    model = model_of(optimizer=keras.optimizers.SGD(1.0))
    fit(model, callbacks.LearningRateScheduler(lambda epoch: 0.0 if epoch else 0.1), epochs=3)
    other = model_of()
    fit(other, epochs=1)
    assert np.array_equal(model.get_weights()[0], other.get_weights()[0])  # the later epochs changed nothing


def test_training_ends_where_the_loss_is_no_number(capsys):
    model = model_of(optimizer=keras.optimizers.SGD(1e30))
    history = fit(model, callbacks.TerminateOnNaN(), epochs=10, batch_size=8)
    assert len(history["loss"]) < 10 and "Invalid loss, terminating training" in capsys.readouterr().out


def test_checkpoints_of_the_best_model(tmp_path, capsys):
    model = model_of()
    best = callbacks.ModelCheckpoint(tmp_path / "deep" / "best.keras", monitor="value", save_best_only=True, verbose=1)
    kept = []
    save = callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: kept.append(model.get_weights()))
    fit(model, save, Script("value", [2.0, 1.0, 3.0]), best, epochs=3)
    again = keras.models.load_model(tmp_path / "deep" / "best.keras")
    assert np.array_equal(again.get_weights()[0], kept[1][0])
    out = capsys.readouterr().out
    assert "Epoch 2: value improved from 2.00000 to 1.00000" in out and "Epoch 3: value did not improve from" in out


def test_checkpoints_by_epoch_and_batch(tmp_path):
    model = model_of()
    every = callbacks.ModelCheckpoint(str(tmp_path / "{epoch:02d}-{loss:.1f}.weights.h5"), save_weights_only=True)
    batches = callbacks.ModelCheckpoint(str(tmp_path / "b{epoch}-{batch}.weights.h5"), save_weights_only=True,
                                        save_freq=3)
    history = fit(model, every, batches, epochs=2, batch_size=4)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == sorted([f"{n + 1:02d}-{loss:.1f}.weights.h5" for n, loss in enumerate(history["loss"])]
                           + ["b1-3.weights.h5", "b2-2.weights.h5"])
    with pytest.raises(ValueError, match="must end in `.weights.h5`"):
        callbacks.ModelCheckpoint("x.keras", save_weights_only=True)


def test_the_older_file_of_the_guide(tmp_path, capsys):
    model = model_of()
    fit(model, callbacks.ModelCheckpoint(str(tmp_path / "logs" / "cnn_model.h5"), verbose=1))
    assert f"saving model to {tmp_path}/logs/cnn_model.h5" in capsys.readouterr().out
    again = keras.models.load_model(tmp_path / "logs" / "cnn_model.h5")
    assert np.array_equal(again.predict(X, verbose=0), model.predict(X, verbose=0))


def test_tables_of_values(tmp_path):
    file = tmp_path / "log.csv"
    history = fit(model_of(metrics=["mae"]), callbacks.CSVLogger(file), epochs=2)
    fit(model_of(metrics=["mae"]), callbacks.CSVLogger(file, append=True), epochs=1)
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["epoch"] for row in rows] == ["0", "1", "0"]
    assert [float(row["loss"]) for row in rows[:2]] == history["loss"]


def test_an_interrupted_training_goes_on(tmp_path):
    class Fails(callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                raise KeyboardInterrupt

    def new():
        return model_of(optimizer=keras.optimizers.Adam(0.05))

    want = new()
    fit(want, epochs=4)
    with pytest.raises(KeyboardInterrupt):
        fit(new(), callbacks.BackupAndRestore(tmp_path / "backup"), Fails(), epochs=4)
    again = new()
    history = again.fit(X, Y, epochs=4, verbose=0, shuffle=False,
                        callbacks=[callbacks.BackupAndRestore(tmp_path / "backup")])
    assert history.epoch == [2, 3]
    assert all(np.array_equal(a, b) for a, b in zip(want.get_weights(), again.get_weights(), strict=True))
    assert not (tmp_path / "backup").exists()


def test_a_loss_that_is_no_number_may_be_an_error():
    model = model_of(optimizer=keras.optimizers.SGD(1e30))
    with pytest.raises(RuntimeError, match="NaN or Inf loss"):
        fit(model, callbacks.TerminateOnNaN(raise_error=True), epochs=10, batch_size=8)


class _Weights(keras.callbacks.Callback):
    """Notes the weights at some hooks."""

    def __init__(self):
        super().__init__()
        self.seen = {"train": [], "test": [], "epoch": []}

    def on_train_batch_end(self, batch, logs=None):
        self.seen["train"].append(float(self.model.weights[0].numpy()[0, 0]))

    def on_test_batch_end(self, batch, logs=None):
        self.seen["test"].append(float(self.model.weights[0].numpy()[0, 0]))

    def on_epoch_end(self, epoch, logs=None):
        self.seen["epoch"].append(float(self.model.weights[0].numpy()[0, 0]))


@pytest.mark.parametrize("on_epoch", [False, True])
def test_averages_of_weights_are_in_the_model_while_it_is_judged(on_epoch):
    def trained(**options):
        model = keras.Sequential([keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", input_shape=(1,))])
        model.compile(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5), "mse")
        x, seen = np.ones((2, 1), np.float32), _Weights()
        model.fit(x, 0 * x, epochs=3, verbose=0, validation_data=(x, x), callbacks=[*options.get("first", ()), seen])
        return model, seen.seen

    plain_model, plain = trained()
    model, seen = trained(first=[callbacks.SwapEMAWeights(swap_on_epoch=on_epoch)])
    assert seen["train"] == plain["train"]  # the training is the same
    averages, average = [], None
    for value in plain["train"]:
        average = value if average is None else 0.5 * average + 0.5 * value
        averages.append(average)
    assert seen["test"] == pytest.approx(averages, rel=1e-6)
    assert seen["epoch"] == pytest.approx(averages if on_epoch else plain["train"], rel=1e-6)
    np.testing.assert_array_equal(model.get_weights()[0], plain_model.get_weights()[0])
    assert float(model.get_weights()[0][0, 0]) == pytest.approx(averages[-1], rel=1e-6)
    without = keras.Sequential([keras.layers.Dense(1, input_shape=(1,))])
    without.compile("sgd", "mse")
    with pytest.raises(ValueError, match="use_ema"):
        without.evaluate(np.ones((2, 1)), np.ones((2, 1)), verbose=0, callbacks=[callbacks.SwapEMAWeights()])
