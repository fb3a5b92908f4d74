"""Initialisers, regularisers and constraints: distributions, formulas in NumPy, names and configs."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import twofold as tf

init = tf.keras.initializers
SHAPE = (200, 300)
INPUTS, OUTPUTS = SHAPE


@pytest.mark.parametrize(
    ("name", "variance"),
    [("glorot_uniform", 2 / (INPUTS + OUTPUTS)), ("glorot_normal", 2 / (INPUTS + OUTPUTS)), ("he_uniform", 2 / INPUTS),
     ("he_normal", 2 / INPUTS), ("lecun_uniform", 1 / INPUTS), ("lecun_normal", 1 / INPUTS),
     ("random_normal", 0.05**2), ("random_uniform", 0.1**2 / 12),
     # a normal variable that is known to be within two deviations has this part of its variance
     ("truncated_normal", 0.05**2 * 0.87962566103423978**2)])
def test_mean_and_variance(name, variance):
    tf.random.set_seed(5)
    x = init.get(name)(SHAPE).numpy().astype(np.float64)
    error = 5 / math.sqrt(x.size)  # five standard errors
    assert abs(x.mean()) < error * math.sqrt(variance)
    assert abs(x.var() / variance - 1) < error * 2


@pytest.mark.parametrize("name", ["glorot_uniform", "he_uniform", "lecun_uniform"])
def test_uniform_limits(name):
    x = np.abs(init.get(name)(SHAPE).numpy())
    limit = math.sqrt(3 * {"glorot_uniform": 2 / (INPUTS + OUTPUTS), "he_uniform": 2 / INPUTS,
                           "lecun_uniform": 1 / INPUTS}[name])
    assert limit * 0.999 < x.max() <= limit * (1 + 1e-6)


@pytest.mark.parametrize(
    ("mode", "distribution", "fan"),
    [("fan_in", "uniform", 3 * 3 * 40), ("fan_out", "untruncated_normal", 3 * 3 * 60),
     ("fan_avg", "truncated_normal", 3 * 3 * 50)])
def test_variance_scaling_of_kernels_with_windows(mode, distribution, fan):
    x = init.VarianceScaling(3.0, mode, distribution, seed=1)((3, 3, 40, 60)).numpy().astype(np.float64)
    assert abs(x.var() * fan / 3.0 - 1) < 10 / math.sqrt(x.size)


def test_axes_of_inputs_and_outputs():
    x = init.GlorotUniform(1, input_axes=[0, 1], output_axes=[2])((4, 5, 300)).numpy()
    limit = math.sqrt(6 / (20 + 300))
    assert limit * 0.99 < np.abs(x).max() <= limit * (1 + 1e-6)


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (2, 3, 4)])
def test_orthogonal(shape):
    q = init.Orthogonal(2.0, seed=3)(shape).numpy().reshape(-1, shape[-1]).astype(np.float64)
    product = q.T @ q if q.shape[0] >= q.shape[1] else q @ q.T
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_seeds():
    one = init.GlorotUniform(seed=7)
    np.testing.assert_array_equal(one([3, 4]), one([3, 4]))
    np.testing.assert_array_equal(one([3, 4]), init.GlorotUniform(seed=7)([3, 4]))
    assert not np.array_equal(init.GlorotUniform()([3, 4]), init.GlorotUniform()([3, 4]))
    tf.random.set_seed(3)
    first = init.GlorotUniform()([3, 4])
    tf.random.set_seed(3)
    np.testing.assert_array_equal(first, init.GlorotUniform()([3, 4]))
    moving = init.RandomNormal(seed=tf.keras.random.SeedGenerator(1))
    assert not np.array_equal(moving([3]), moving([3]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", ["zeros", "ones", "constant", "glorot_uniform", "he_normal", "orthogonal", "identity",
                                  "random_normal"])
def test_dtypes(name, dtype):
    assert init.get(name)([4, 4], dtype=dtype).dtype.name == dtype


@pytest.mark.parametrize("window", [None, "hann", np.linspace(0.1, 1, 8)])
@pytest.mark.parametrize("side", ["real", "imag"])
def test_stft_is_a_fourier_transform(side, window):
    kernel = init.STFT(side, window, scaling=None)((8, 1, 5)).numpy()[:, 0]
    shape = np.ones(8) if window is None else np.hanning(8) if isinstance(window, str) else window
    spectrum = np.fft.rfft(np.eye(8) * shape[:, None], axis=1)
    np.testing.assert_allclose(kernel, spectrum.real if side == "real" else spectrum.imag, atol=1e-6)


def test_arrays_are_their_own_initializer():
    given = np.arange(6.0).reshape(2, 3)
    layer = tf.keras.layers.Dense(3, kernel_initializer=given)
    layer.build((None, 2))
    np.testing.assert_array_equal(layer.kernel, given)
    with pytest.raises(ValueError, match=r"shape \(2, 3\); the weight needs \(4, 3\)"):
        tf.keras.layers.Dense(3, kernel_initializer=given).build((None, 4))
    config = json.loads(json.dumps(tf.keras.layers.serialize(layer)))
    again = tf.keras.layers.deserialize(config)
    again.built or again.build((None, 2))
    np.testing.assert_array_equal(again.kernel, given)


W = np.sin(np.arange(12.0)).reshape(3, 4).astype(np.float32)


def test_regularizers():
    reg = tf.keras.regularizers
    np.testing.assert_allclose(reg.L1(0.3)(W), 0.3 * np.abs(W).sum(), rtol=1e-6)
    np.testing.assert_allclose(reg.get("l2")(W), 0.01 * (W**2).sum(), rtol=1e-6)
    np.testing.assert_allclose(reg.L1L2(0.3, 0.2)(W), 0.3 * np.abs(W).sum() + 0.2 * (W**2).sum(), rtol=1e-6)
    for mode, rows in (("rows", W), ("columns", W.T)):
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        n = len(unit)
        expected = 0.5 * np.abs((unit @ unit.T) * (1 - np.eye(n))).sum() / (n * (n - 1) / 2)
        np.testing.assert_allclose(reg.OrthogonalRegularizer(1.0, mode)(W), expected, rtol=1e-5)


def test_constraints():
    con = tf.keras.constraints
    lengths = np.linalg.norm(W, axis=0, keepdims=True)
    np.testing.assert_array_equal(con.NonNeg()(W), np.maximum(W, 0))
    np.testing.assert_allclose(con.UnitNorm()(W), W / lengths, rtol=1e-5)
    np.testing.assert_allclose(con.MaxNorm(1.0)(W), W * np.minimum(lengths, 1) / lengths, rtol=1e-5)
    wanted = 0.3 * np.clip(lengths, 0.9, 1.2) + 0.7 * lengths
    np.testing.assert_allclose(con.MinMaxNorm(0.9, 1.2, 0.3)(W), W * wanted / lengths, rtol=1e-5)
    np.testing.assert_allclose(con.UnitNorm(axis=1)(W), W / np.linalg.norm(W, axis=1, keepdims=True), rtol=1e-5)


EXAMPLES = [
    (init, init.Constant(2.5)), (init, init.Identity(2.0)), (init, init.RandomNormal(1.0, 2.0, seed=3)),
    (init, init.VarianceScaling(2.0, "fan_out", "uniform")), (init, init.HeNormal(4)), (init, init.Orthogonal(0.5)),
    (init, init.STFT("imag", None)), (tf.keras.regularizers, tf.keras.regularizers.L1L2(0.1, 0.2)),
    (tf.keras.regularizers, tf.keras.regularizers.OrthogonalRegularizer(0.1, "columns")),
    (tf.keras.constraints, tf.keras.constraints.MinMaxNorm(0.1, 0.9, 0.5, axis=1)),
    (tf.keras.constraints, tf.keras.constraints.MaxNorm(3, axis=[0, 1])),
]


@pytest.mark.parametrize(("module", "made"), EXAMPLES, ids=lambda x: type(x).__name__)
def test_configs(module, made):
    config = json.loads(json.dumps(module.serialize(made)))
    assert config["module"] == module.__name__.replace("twofold.", "") and config["registered_name"] is None
    again = module.deserialize(config)
    assert type(again) is type(made) and again.get_config() == made.get_config()
    assert module.get(config).get_config() == made.get_config()


@pytest.mark.parametrize(("module", "kind"), [("initializers", "initializer"), ("regularizers", "regularizer"),
                                              ("constraints", "constraint"), ("activations", "activation")])
def test_unknown_names(module, kind):
    with pytest.raises(ValueError, match=f"Could not interpret {kind} identifier: 'no_such'"):
        getattr(tf.keras, module).get("no_such")
    with pytest.raises(ValueError, match=f"Could not interpret {kind} identifier: 3"):
        getattr(tf.keras, module).get(3)


def test_activations_by_name():
    act = tf.keras.activations
    assert act.get("swish") is act.silu and act.get(None) is act.linear
    assert act.serialize(tf.nn.relu) == "relu" and act.serialize(act.hard_swish) == "hard_silu"
    assert act.get(tf.nn.elu) is tf.nn.elu


def test_sparsemax():
    """The nearest point of the simplex: by bisection for the threshold, in float64."""
    x = 2 * np.sin(1.7 * np.arange(24.0)).reshape(4, 6)
    low, high = x.min(axis=1, keepdims=True) - 1, x.max(axis=1, keepdims=True)
    for _ in range(60):
        middle = (low + high) / 2
        above = np.maximum(x - middle, 0).sum(axis=1, keepdims=True) > 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    actual = tf.keras.activations.sparsemax(tf.constant(x, tf.float32))
    np.testing.assert_allclose(actual, np.maximum(x - low, 0), atol=1e-6)
    np.testing.assert_allclose(tf.keras.activations.sparsemax(tf.constant(x.T, tf.float32), axis=0),
                               np.maximum(x - low, 0).T, atol=1e-6)
