"""Losses, metrics, optimizers and schedules give what Keras gives: values, gradients, state, slot names and configs.

The cases are in `formula_cases.py`, and Keras's results in `data/formulas.json`, which `make_formula_reference.py`
wrote. Each case runs op by op and in a `tf.function`.
"""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from house.tree import ROOT

import twofold as tf

from keras import formula_cases as cases  # isort: skip

REFERENCE = json.loads((ROOT / "tests" / "keras" / "data" / "formulas.json").read_text())
MODES = [pytest.param(lambda fn: fn, id="eager"), pytest.param(tf.function, id="function")]


def named(listed):
    return [pytest.param(*case, id=cases.key(*case)) for case in listed]


def near(actual, expected):
    """Equal but for float32's rounding, of numbers or of the sums behind them."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6 * largest)


def check_config(made, expected):
    """What Keras has in a config is in ours, and a config makes an equal object.

    Keras leaves some settings out (`delta` of `Huber`), which we do not.
    """
    config = json.loads(json.dumps(made.get_config()))
    assert {k: v for k, v in config.items() if k in expected} == expected
    assert json.loads(json.dumps(type(made).from_config(config).get_config())) == config


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "settings", "kind", "weights"), named(cases.LOSSES))
def test_loss(name, settings, kind, weights, mode):
    expected = REFERENCE["losses"][cases.key(name, settings, kind, weights)]
    y_true, y_pred = cases.KINDS[kind](1)
    loss = getattr(tf.keras.losses, name)(**settings)

    @mode
    def run(x, weight):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = loss(y_true, x, sample_weight=weight)
            total = tf.reduce_sum(value)
        return value, tape.gradient(total, x)

    value, gradient = run(tf.constant(y_pred), cases.weights_for(kind, weights, 1))
    near(value, expected["value"])
    near(gradient, expected["gradient"])
    check_config(loss, expected["config"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "settings", "kind", "weights"), named(cases.METRICS))
def test_metric(name, settings, kind, weights, mode):
    expected = REFERENCE["metrics"][cases.key(name, settings, kind, weights)]
    metric = getattr(tf.keras.metrics, name)(**settings)

    @mode
    def update(y_true, y_pred, weight):
        metric.update_state(y_true, y_pred, sample_weight=weight)
        return metric.result()

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "R2Score: 2 regressors|.*weights are floats")
        for n, result in enumerate(expected["results"]):
            near(update(*map(tf.constant, cases.KINDS[kind](n)), cases.weights_for(kind, weights, n)), result)
    for variable, value in zip(metric.variables, expected["variables"], strict=True):
        near(variable, value)
    check_config(metric, expected["config"])
    metric.reset_state()
    assert not any(np.any(v.numpy()) for v in metric.variables)


@pytest.mark.parametrize("mode", [*MODES, pytest.param("at once", id="compiled_eagerly")])
@pytest.mark.parametrize(("name", "settings"), named(cases.OPTIMIZERS))
def test_optimizer(name, settings, mode, monkeypatch):
    if mode == "at once":
        monkeypatch.setattr("twofold.keras.optimizers.eager_update._PATIENCE", 1)
        mode = MODES[0].values[0]
    expected = REFERENCE["optimizers"][cases.key(name, settings)]
    variables = [tf.Variable(cases.wave(20 + i, *shape), name=f"v{i}") for i, shape in enumerate(cases.SHAPES)]
    optimizer = getattr(tf.keras.optimizers, name)(**settings)

    @mode
    def step(*gradients):
        return optimizer.apply_gradients(zip(gradients, variables, strict=True))

    actual = []
    for n in range(cases.STEPS):
        step(*map(tf.constant, cases.gradients(n)))
        if n in (0, 1, cases.STEPS - 1):
            actual.append([v.numpy() for v in variables])
    optimizer.finalize_variable_values(variables)
    for at, values in zip(actual, expected["steps"], strict=True):
        for value, wanted in zip(at, values, strict=True):
            near(value, wanted)
    for variable, wanted in zip(variables, expected["final"], strict=True):
        near(variable, wanted)
    for slot, wanted in zip(optimizer.variables, expected["slots"], strict=True):
        near(slot, wanted)
    names = [v.name.split("/", 1)[1].removesuffix(":0") for v in optimizer.variables]
    assert names == [name.replace("variable", "u_product") for name in expected["names"]]
    check_config(optimizer, expected["config"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "settings"), named(cases.SCHEDULES))
def test_schedule(name, settings, mode):
    expected = REFERENCE["schedules"][cases.key(name, settings)]
    schedule = getattr(tf.keras.optimizers.schedules, name)(**settings)
    rate = mode(lambda step: schedule(step))
    near([rate(tf.constant(step, tf.int64)) for step in cases.SCHEDULE_STEPS], expected["rates"])
    check_config(schedule, expected["config"])


def test_every_case_has_a_reference():
    for part, listed in (("losses", cases.LOSSES), ("metrics", cases.METRICS), ("optimizers", cases.OPTIMIZERS),
                         ("schedules", cases.SCHEDULES)):
        assert set(REFERENCE[part]) == {cases.key(*case) for case in listed}


def test_every_class_has_a_case():
    def missing(module, listed, *left_out):
        classes = {n for n in module.__all__ if n[0].isupper() and isinstance(getattr(module, n), type)}
        return classes - {case[0] for case in listed} - set(left_out)

    assert not missing(tf.keras.losses, cases.LOSSES, "Loss", "LossFunctionWrapper", "Reduction")
    assert not missing(tf.keras.metrics, cases.METRICS, "Mean", "MeanMetricWrapper", "Metric", "Sum")
    own = ("LossScaleOptimizer", "MultiOptimizer", "Optimizer", "OptimizerMap",
           "ScheduleFreeAdamW")  # Keras's reads a slot after it has changed it
    assert not missing(tf.keras.optimizers, cases.OPTIMIZERS, *own)
    assert not missing(tf.keras.optimizers.schedules, cases.SCHEDULES, "LearningRateSchedule")
