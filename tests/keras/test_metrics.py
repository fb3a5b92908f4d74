"""What metrics do beside the formulas: how they are called, kept and reset, and what they refuse."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import metrics as sk

import twofold as tf
from twofold import tracking
from twofold.keras.call_context import set_mask

metrics = tf.keras.metrics
MODES = [pytest.param(lambda fn: fn, id="eager"), pytest.param(tf.function, id="function")]


@pytest.mark.parametrize("mode", MODES)
def test_mean_as_in_the_guides(mode):
    m = metrics.Mean("loss")
    step = mode(lambda x: m(x))
    assert float(step(tf.constant(0.0))) == 0.0
    assert float(step(tf.constant(5.0))) == 2.5
    step(tf.constant([8, 9]))
    assert float(m.result()) == 5.5
    m.reset_state()
    assert float(m.result()) == 0.0
    m.update_state([[1, 2], [3, 4]], sample_weight=[1, 0])
    assert float(m.result()) == 1.5
    m.reset_states()
    m.update_state(7, sample_weight=2)
    assert (float(m.total), float(m.count)) == (14.0, 2.0)


def test_mean_of_all_shapes_and_weights():
    rng = np.random.default_rng(0)
    for shape, weights in (((4,), (4,)), ((4, 3), (4, 3)), ((4, 3, 2), (4, 3)), ((4, 3), (4, 1)), ((4, 1), (4,))):
        x, w = rng.normal(size=shape), rng.uniform(size=weights)
        m = metrics.Mean(dtype="float64")
        m.update_state(x, sample_weight=w)
        while x.ndim > w.ndim:
            x = x.mean(-1)
        wide = np.broadcast_to(w, x.shape)
        rows = (x * wide).reshape(4, -1).mean(1).sum(), wide.reshape(4, -1).mean(1).sum()
        np.testing.assert_allclose(m.result().numpy(), rows[0] / rows[1], rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_masks_count_for_nothing(mode):
    m = metrics.MeanSquaredError()

    def update(x):
        x = x + 0.0
        set_mask(x, tf.constant([True, False, True]))
        m.update_state(tf.zeros_like(x), x)

    mode(update)(tf.constant([[1.0], [50.0], [3.0]]))
    assert float(m.result()) == 5.0


def test_against_scikit_learn():
    rng = np.random.default_rng(3)
    y, p = rng.integers(0, 2, 500), rng.uniform(size=500)
    p = np.clip(p + 0.3 * (y - 0.5), 0, 1)
    np.testing.assert_allclose(float(metrics.AUC(num_thresholds=2000)(y, p)), sk.roc_auc_score(y, p), atol=1e-3)
    for made, expected in ((metrics.Precision(0.4), sk.precision_score(y, p > 0.4)),
                           (metrics.Recall(0.4), sk.recall_score(y, p > 0.4)),
                           (metrics.BinaryCrossentropy(), sk.log_loss(y, p)),
                           (metrics.BinaryAccuracy(), sk.accuracy_score(y, p > 0.5)),
                           (metrics.MeanIoU(2), sk.jaccard_score(y, p > 0.5, average="macro"))):
        shown = p > 0.5 if isinstance(made, metrics.MeanIoU) else p
        np.testing.assert_allclose(float(made(y, shown)), expected, rtol=1e-5)
    a, b = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    weight = rng.uniform(size=50)
    np.testing.assert_allclose(float(metrics.R2Score()(a, b, sample_weight=weight)),
                               sk.r2_score(a, b, sample_weight=weight), rtol=1e-4)
    classes, scores = rng.integers(0, 4, 60), rng.normal(size=(60, 4)).astype(np.float32)
    np.testing.assert_allclose(float(metrics.F1Score("macro")(np.eye(4)[classes], scores)),
                               sk.f1_score(classes, scores.argmax(1), average="macro"), rtol=1e-5)
    np.testing.assert_allclose(float(metrics.SparseTopKCategoricalAccuracy(2)(classes, scores)),
                               sk.top_k_accuracy_score(classes, scores, k=2), rtol=1e-6)


def test_updates_compile_to_programs_without_python():
    made = [metrics.Mean(), metrics.AUC(), metrics.Precision(), metrics.SparseCategoricalAccuracy(), metrics.MeanIoU(3),
            metrics.F1Score(), metrics.R2Score()]
    y, p = tf.constant(np.arange(12) % 3), tf.constant(np.random.default_rng(0).uniform(size=(12, 3)), tf.float32)
    for metric in made:
        @tf.function
        def update(y, p, metric=metric):
            if isinstance(metric, metrics.Mean) and type(metric) is metrics.Mean:
                metric.update_state(p)
            elif isinstance(metric, metrics.SparseCategoricalAccuracy):
                metric.update_state(y, p)
            elif isinstance(metric, metrics.MeanIoU):
                metric.update_state(y, tf.argmax(p, axis=-1))
            else:
                metric.update_state(tf.one_hot(y, 3), p)
            return metric.result()
        update(y, p)
        assert "calls of Python\n  none" in str(update.explain(y, p)), metric


def test_sizes_that_are_not_known():
    made = [metrics.SparseCategoricalAccuracy(), metrics.AUC(), metrics.Recall(), metrics.Mean(),
            metrics.TopKCategoricalAccuracy(2), metrics.MeanIoU(5)]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64), tf.TensorSpec([None, 5])])
    def update(y, p):
        one_hot = tf.one_hot(y, 5)
        made[0].update_state(y, p)
        made[1].update_state(one_hot, p)
        made[2].update_state(one_hot, p)
        made[3].update_state(p)
        made[4].update_state(one_hot, p)
        made[5].update_state(y, tf.argmax(p, axis=-1))

    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 5, 20), rng.uniform(size=(20, 5)).astype(np.float32)
    for part in (slice(0, 3), slice(3, 15), slice(15, 15), slice(15, 20)):
        update(y[part], p[part])
    whole = [metrics.SparseCategoricalAccuracy()(y, p), metrics.AUC()(np.eye(5)[y], p),
             metrics.Recall()(np.eye(5)[y], p), metrics.Mean()(p), metrics.TopKCategoricalAccuracy(2)(np.eye(5)[y], p),
             metrics.MeanIoU(5)(y, p.argmax(1))]
    np.testing.assert_allclose([float(m.result()) for m in made], [float(v) for v in whole], rtol=1e-5)


def test_a_metric_of_ones_own():
    class Wins(metrics.Metric):
        def __init__(self, name="wins", **kwargs):
            super().__init__(name=name, **kwargs)
            self.wins = self.add_weight(name="w", initializer="zeros", dtype=tf.int32)
            self.games = self.add_weight("games", shape=(2,), initializer="ones")
            self.mean = metrics.Mean()

        def update_state(self, won):
            self.wins.assign_add(tf.cast(won, tf.int32))
            self.mean.update_state(won)

        def result(self):
            return {"wins": tf.identity(self.wins), "part": self.mean.result()}

    m = Wins()
    m(True)
    assert {k: float(v) for k, v in m(False).items()} == {"wins": 1.0, "part": 0.5}
    assert [v.name for v in m.variables] == ["wins/w:0", "wins/games:0", "mean/total:0", "mean/count:0"]
    assert m.games.numpy().tolist() == [1.0, 1.0]
    paths = ["/".join(path) for path, value in tracking.walk(m) if isinstance(value, tf.Variable)]
    assert paths == ["wins", "games", "mean/total", "mean/count"]
    m.reset_state()
    assert not m.variables[0].numpy()
    with pytest.raises(NotImplementedError):
        metrics.Metric().result()


def test_super_must_be_called_first():
    class Hasty(metrics.Metric):
        def __init__(self):
            self.total = tf.Variable(0.0)

    with pytest.raises(RuntimeError, match="super"):
        Hasty()


def test_state_can_be_stored():
    first, second = metrics.AUC(num_thresholds=5), metrics.AUC(num_thresholds=5)
    first.update_state([0, 1, 1], [0.2, 0.4, 0.9])
    store: dict[str, np.ndarray] = {}
    first.save_own_variables(store)
    second.load_own_variables(store)
    assert float(first.result()) == float(second.result()) > 0
    assert ["/".join(path) for path, _ in tracking.walk(first)][1:5] == [
        "true_positives", "false_positives", "true_negatives", "false_negatives"]
    with pytest.raises(ValueError, match="4 variables"):
        first.load_own_variables({})


@pytest.mark.parametrize(("run", "match"), [
    (lambda: metrics.AUC(curve="DET"), "curve"),
    (lambda: metrics.AUC(summation_method="simpson"), "summation_method"),
    (lambda: metrics.AUC(num_thresholds=1), "num_thresholds"),
    (lambda: metrics.AUC(num_labels=3), "multi_label"),
    (lambda: metrics.AUC(multi_label=True)([0, 1], [0.1, 0.2]), r"\(batch, labels\)"),
    (lambda: metrics.Precision(thresholds=[0.5, 2.0]), r"\[2.0\]"),
    (lambda: metrics.Recall(class_id=1)([0, 1], [0.1, 0.2]), "class_id"),
    (lambda: metrics.F1Score(average="mean"), "average"),
    (lambda: metrics.F1Score(threshold=1), "threshold"),
    (lambda: metrics.FBetaScore(beta=0.0), "beta"),
    (lambda: metrics.F1Score()([0, 1], [0.1, 0.2]), "batch_size, output_dim"),
    (lambda: metrics.R2Score(class_aggregation="sum"), "class_aggregation"),
    (lambda: metrics.R2Score(num_regressors=-1), "num_regressors"),
    (lambda: metrics.IoU(2, [2]), "out of range"),
    (lambda: metrics.SensitivityAtSpecificity(1.5), "specificity"),
    (lambda: metrics.PrecisionAtRecall(0.5, num_thresholds=0), "num_thresholds"),
    (lambda: metrics.get("goodness"), "goodness"),
])
def test_wrong_settings(run, match):
    with pytest.raises(ValueError, match=match):
        run()


def test_warnings():
    with pytest.warns(UserWarning, match="rounded towards 0"):
        metrics.MeanIoU(2)([0, 1], [0, 1], sample_weight=[0.5, 0.5])
    with pytest.warns(UserWarning, match="2 regressors are too many"):
        metrics.R2Score(num_regressors=2)([[1.0], [2.0]], [[1.0], [2.5]])


def test_names():
    assert isinstance(metrics.get("AUC"), metrics.AUC)
    assert isinstance(metrics.get("mse"), metrics.MeanSquaredError)
    assert isinstance(metrics.get("sparse_categorical_accuracy"), metrics.SparseCategoricalAccuracy)
    assert metrics.get("huber") is tf.keras.losses.huber
    assert metrics.get(None) is None
    assert metrics.Precision().name.startswith("precision")
    assert repr(metrics.Mean("m")) == "<Mean name=m>"


@pytest.mark.parametrize("metric", [
    metrics.AUC(thresholds=[0.2, 0.7], curve="PR", label_weights=[1.0, 2.0]), metrics.Recall(top_k=2, class_id=1),
    metrics.MeanMetricWrapper(tf.keras.losses.huber, name="h", delta=0.5), metrics.CosineSimilarity(axis=0),
    metrics.RecallAtPrecision(0.25, num_thresholds=7), metrics.BinaryIoU([1], 0.25), metrics.Sum(dtype="float64")],
    ids=lambda metric: type(metric).__name__)
def test_configs(metric):
    config = json.loads(json.dumps(metrics.serialize(metric)))
    again = metrics.deserialize(config)
    assert type(again) is type(metric)
    assert again.get_config() == metric.get_config()
    assert [v.shape for v in again.variables] == [v.shape for v in metric.variables]
