"""What losses do beside the formulas: masks, labels of all kinds, sizes that are not known, names and configs."""

from __future__ import annotations

import json

import numpy as np
import pytest

import twofold as tf
from twofold.keras.call_context import set_mask

losses = tf.keras.losses
MODES = [pytest.param(lambda fn: fn, id="eager"), pytest.param(tf.function, id="function")]


def near(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


# -- against formulas in float64 ---------------------------------------------------------------------
def test_cross_entropies_agree():
    rng = np.random.default_rng(0)
    logits, classes = rng.normal(size=(6, 5)), np.arange(6) % 5
    one_hot = np.eye(5)[classes]
    expected = -log_softmax(logits)[np.arange(6), classes]
    probabilities = np.exp(log_softmax(logits))
    near(losses.sparse_categorical_crossentropy(classes, logits, from_logits=True), expected)
    near(losses.sparse_categorical_crossentropy(classes[:, None], probabilities), expected)
    near(losses.categorical_crossentropy(one_hot, logits, from_logits=True), expected)
    near(losses.categorical_crossentropy(one_hot, 7 * probabilities), expected)
    near(losses.categorical_crossentropy(one_hot.T, probabilities.T, axis=0), expected)
    near(losses.sparse_categorical_crossentropy(classes, probabilities.T, axis=0), expected)


def test_ctc_against_all_paths():
    """The probability of a labelling is the sum over all sequences that collapse to it."""
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(3, 4, 3))
    labels = [[1, 2], [2, 2], [1, 0]]
    actual = losses.ctc(labels, logits).numpy()
    for row, label, value in zip(log_softmax(logits), labels, actual, strict=True):
        total = 0.0
        for path in np.ndindex(3, 3, 3, 3):
            collapsed = [s for n, s in enumerate(path) if s and (n == 0 or s != path[n - 1])]
            if collapsed == [s for s in label if s]:
                total += np.exp(sum(row[n, s] for n, s in enumerate(path)))
        near(value, -np.log(total))


@pytest.mark.parametrize("mode", MODES)
def test_ctc_of_what_is_impossible(mode):
    value = mode(losses.ctc)([[1, 1], [1, 2]], tf.zeros([2, 2, 3]))
    assert np.isinf(value.numpy()[0]), "two equal labels need a blank between them"
    near(value[1], 2 * np.log(3))


def test_large_class_numbers_are_exact():
    """A label is not converted to float32, which has no number for every class."""
    logits = tf.concat([tf.zeros([1, 2**24 + 1]), [[50.0]]], axis=1)
    near(losses.SparseCategoricalCrossentropy(from_logits=True)([2**24 + 1], logits), 0.0)


@pytest.mark.parametrize("logit", [-1000.0, 1000.0])
def test_logits_never_overflow(logit):
    with tf.GradientTape() as tape:
        x = tf.constant([[logit]])
        tape.watch(x)
        value = losses.BinaryCrossentropy(from_logits=True)([[1.0]], x) + losses.LogCosh()([[0.0]], x)
    near(value, max(-logit, 0.0) + abs(logit) - np.log(2.0))
    assert np.isfinite(tape.gradient(value, x).numpy()).all()


# -- reductions, weights and masks -------------------------------------------------------------------
@pytest.mark.parametrize("mode", MODES)
def test_masks_count_for_nothing(mode):
    y_true, y_pred = tf.zeros([2, 3, 4]), tf.constant(np.arange(24.0).reshape(2, 3, 4), tf.float32)
    mask = np.array([[True, True, False], [True, False, False]])

    def run(loss, weight=None):
        def call(x):
            x = x + 0.0
            set_mask(x, tf.constant(mask))
            return loss(y_true, x, sample_weight=weight)
        return mode(call)(y_pred).numpy()

    values = (np.arange(24.0).reshape(2, 3, 4) ** 2).mean(-1)
    near(run(losses.MeanSquaredError()), values[mask].mean())
    near(run(losses.MeanSquaredError(reduction="sum")), values[mask].sum())
    near(run(losses.MeanSquaredError(reduction="none")), values * mask)
    weight = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    near(run(losses.MeanSquaredError(), weight), (values * weight)[mask].mean())


@pytest.mark.parametrize("mode", MODES)
def test_ignored_classes_do_not_count(mode):
    logits = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    labels = np.array([[0, -1, 2], [-1, -1, 1]])
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    valid = labels >= 0
    values = -log_softmax(logits)[valid, labels[valid]]
    near(mode(lambda y, x: loss(y, x))(labels, logits), values.mean())


def test_empty_batches():
    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def run(x):
        return losses.MeanSquaredError()(tf.zeros_like(x), x), losses.Huber(reduction="sum")(tf.zeros_like(x), x)

    assert [v.numpy() for v in run(np.zeros((0, 3), np.float32))] == [0.0, 0.0]
    near(run(np.ones((2, 3), np.float32)), [1.0, 1.0])
    assert losses.MeanSquaredError()(tf.zeros([0, 3]), tf.zeros([0, 3])).shape == (0,)


def test_dtypes():
    assert losses.mean_squared_error([[0, 1]], [[1, 1]]).dtype == tf.float32
    assert losses.MeanSquaredError()([[0, 1]], tf.constant([[1.0, 1.0]], tf.bfloat16)).dtype == tf.float32
    assert losses.MeanSquaredError(dtype="float64")([[0.0]], [[1e-9]]).numpy() == 1e-18
    assert losses.MeanSquaredError(dtype="mixed_bfloat16")([[0.0]], [[1.0]]).dtype == tf.bfloat16


def test_a_loss_of_ones_own():
    class Weighted(losses.Loss):
        def call(self, y_true, y_pred):
            assert y_true.dtype == y_pred["a"].dtype == tf.float32
            return tf.reduce_mean(tf.abs(y_true - y_pred["a"]), axis=-1) + y_pred["b"]

    near(Weighted()([[1, 2]], {"a": tf.constant([[0, 0]]), "b": np.array([1.0])}), 2.5)
    with pytest.raises(NotImplementedError, match="call"):
        losses.Loss()([1.0], [1.0])


# -- what does not fit -------------------------------------------------------------------------------
@pytest.mark.parametrize(("run", "match"), [
    (lambda: losses.CategoricalCrossentropy()([1, 2], [[0.5, 0.5], [0.5, 0.5]]), "sparse_categorical_crossentropy"),
    (lambda: losses.BinaryCrossentropy()([[1.0, 0.0]], [[0.5, 0.5, 0.5]]), "same shape"),
    (lambda: losses.SparseCategoricalCrossentropy()([[1, 0]], [[0.5, 0.5]]), "without the axis of the classes"),
    (lambda: losses.MeanSquaredError(reduction="median"), "reduction"),
    (lambda: losses.CategoricalGeneralizedCrossEntropy(q=1.0), "interval"),
    (lambda: losses.ctc([1, 2], tf.zeros([1, 2, 3])), "most labels"),
    (lambda: losses.ctc([[1, 2]], tf.zeros([2, 3])), "time steps"),
    (lambda: losses.get("mean_cubic_error"), "mean_cubic_error"),
])
def test_what_does_not_fit_is_told(run, match):
    with pytest.raises(ValueError, match=match):
        run()


def test_a_class_that_is_not_there():
    with pytest.raises(tf.errors.InvalidArgumentError):
        losses.SparseCategoricalCrossentropy()([3], [[0.5, 0.5]])


# -- names and configs -------------------------------------------------------------------------------
def test_names():
    same = [("mse", "MSE", "mean_squared_error"), ("mae", "MAE", "mean_absolute_error"),
            ("mape", "MAPE", "mean_absolute_percentage_error"), ("msle", "MSLE", "mean_squared_logarithmic_error"),
            ("kld", "KLD", "kl_divergence"), ("bce", "BCE", "binary_crossentropy"), ("logcosh", "log_cosh")]
    for names in same:
        assert len({losses.get(name) for name in names}) == 1
    assert isinstance(losses.get("Huber"), losses.Huber)
    assert isinstance(losses.get(losses.Huber), losses.Huber)
    assert losses.get(None) is None
    assert losses.get(np.mean) is np.mean
    assert losses.MeanSquaredError().name == "mean_squared_error"
    assert losses.Huber(name="h").name == "h"


@pytest.mark.parametrize("loss", [
    losses.Huber(delta=0.25), losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.1),
    losses.SparseCategoricalCrossentropy(ignore_class=2, reduction="sum"), losses.CosineSimilarity(axis=0),
    losses.LossFunctionWrapper(losses.huber, delta=0.25, name="wrapped")], ids=lambda loss: loss.name)
def test_configs(loss):
    config = json.loads(json.dumps(losses.serialize(loss)))
    again = losses.deserialize(config)
    assert type(again) is type(loss)
    assert again.get_config() == loss.get_config()
    y = [[0, 1]] if "sparse" in loss.name else [[0.0, 1.0]]
    x = [[[0.1, 0.2, 0.7]] * 2] if "sparse" in loss.name else [[0.1, 2.0]]
    assert again(y, x).numpy() == loss(y, x).numpy()


def test_configs_of_functions():
    assert losses.deserialize(losses.serialize(losses.mse)) is losses.mean_squared_error
