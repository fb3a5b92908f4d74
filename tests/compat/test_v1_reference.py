"""TensorFlow 1's names against what TensorFlow 2.21 gives for the same computations (`v1_cases.py`, `data/v1.npz`)."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import twofold as tf
from twofold._front import tensors as _tensors

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("v1_cases", HERE / "v1_cases.py")
cases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cases)
v1 = tf.compat.v1
KNOWN = np.load(HERE / "data" / "v1.npz")


@pytest.fixture(autouse=True)
def nobody_asked_for_eager(monkeypatch):
    monkeypatch.setattr(_tensors, "eager_for_good", [])


@pytest.mark.parametrize("name", cases.OPTIMIZERS)
def test_optimizers(name):
    steps, kept, names = cases.optimised(v1, name)
    np.testing.assert_allclose(steps, KNOWN[f"optimizer/{name}"], rtol=2e-5, atol=1e-6)
    assert names == KNOWN[f"optimizer/{name}/names"].tolist()
    for n, value in enumerate(kept):
        np.testing.assert_allclose(value, KNOWN[f"optimizer/{name}/{n}"], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", cases.OPTIMIZERS)
def test_optimizers_where_ops_run_at_once_and_in_functions(name):
    for wrap in (lambda fn: fn, tf.function):
        w, optimizer = tf.Variable(cases.START), cases.OPTIMIZERS[name](v1.train)

        def step(w=w, optimizer=optimizer):
            optimizer.minimize(lambda: tf.reduce_sum(w * w * w * 0.1 + tf.sin(3.0 * w)), var_list=[w])
        step = wrap(step)
        values = []
        for _ in range(cases.STEPS):
            step()
            values.append(w.numpy())
        np.testing.assert_allclose(values, KNOWN[f"optimizer/{name}"], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", cases.LOSSES)
def test_losses(name):
    np.testing.assert_allclose(cases.loss_values(v1, name), KNOWN[f"loss/{name}"], rtol=1e-5)


def test_pairwise_losses_and_totals():
    np.testing.assert_allclose(cases.pairwise(v1), KNOWN["pairwise"], rtol=1e-5)


@pytest.mark.parametrize("name", cases.RATES)
def test_rates(name):
    np.testing.assert_allclose(cases.rates(v1, name), KNOWN[f"rate/{name}"], rtol=1e-5)
    step = tf.Variable(7)
    assert float(cases.RATES[name](v1.train, step)()) == pytest.approx(float(KNOWN[f"rate/{name}"][7]), rel=1e-5)


def test_moving_averages():
    np.testing.assert_allclose(cases.averages(v1), KNOWN["averages"], rtol=1e-5)


@pytest.mark.parametrize("rank", [2, 4])
def test_batch_normalisation_with_a_fed_switch(rank):
    actual, moving = cases.normalised(v1, rank)
    np.testing.assert_allclose(actual, KNOWN[f"normalised/{rank}"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(moving, KNOWN[f"moving/{rank}"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["basic", "gru", "lstm", "full", "stack"])
def test_recurrent_networks(kind):
    outputs, state, names = cases.recurrent(v1, kind)
    assert names == KNOWN[f"rnn/{kind}/names"].tolist()
    np.testing.assert_allclose(outputs, KNOWN[f"rnn/{kind}"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state, KNOWN[f"state/{kind}"], rtol=1e-5, atol=1e-6)


def test_layers():
    outputs, names = cases.convolved(v1)
    assert names == KNOWN["layers/names"].tolist()
    np.testing.assert_allclose(outputs, KNOWN["layers"], rtol=1e-4, atol=1e-5)


def test_metrics():
    np.testing.assert_allclose(cases.metrics(v1), KNOWN["metrics"], rtol=1e-5)
