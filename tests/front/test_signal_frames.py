"""Frames, windows and transforms of `tf.signal` against TensorFlow 2.21 (`signal_cases.py`), and what undoes what."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import twofold as tf

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("signal_cases", HERE / "signal_cases.py")
cases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cases)
KNOWN = np.load(HERE / "data" / "signal.npz")
X = cases.X


@pytest.mark.parametrize("name", cases.CASES)
def test_against_tensorflow(name):
    actual, want = cases.CASES[name](tf).numpy(), KNOWN[name]
    assert actual.dtype == want.dtype
    assert actual.shape == want.shape
    np.testing.assert_allclose(actual, want, rtol=1e-4, atol=3e-5)


def test_a_signal_comes_back():
    window = tf.signal.inverse_stft_window_fn(4)
    x = np.random.RandomState(1).randn(3, 64).astype(np.float32)
    back = tf.signal.inverse_stft(tf.signal.stft(x, 16, 4), 16, 4, window_fn=window)
    np.testing.assert_allclose(back[:, 12:-12], x[:, 12:-12], atol=1e-5)
    for kind in (2, 3, 4):
        np.testing.assert_allclose(tf.signal.idct(tf.signal.dct(X, kind, norm="ortho"), kind, norm="ortho"), X,
                                   atol=1e-5)


def test_for_any_length_and_gradients():
    spectrum = tf.function(lambda x: tf.abs(tf.signal.stft(x, 8, 4)), input_signature=[tf.TensorSpec([None, None])])
    for x in (X, X[:, :20]):
        np.testing.assert_allclose(spectrum(x), tf.abs(tf.signal.stft(x, 8, 4)), rtol=1e-5, atol=1e-5)
    padded = tf.function(lambda x: tf.signal.frame(x, 8, 3, pad_end=True), input_signature=[tf.TensorSpec([2, None])])
    np.testing.assert_array_equal(padded(X), tf.signal.frame(X, 8, 3, pad_end=True))
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.square(tf.signal.frame(x, 8, 4)))
    counted = np.zeros(X.shape[1])
    for begin in range(0, X.shape[1] - 7, 4):
        counted[begin:begin + 8] += 1
    np.testing.assert_allclose(tape.gradient(y, x), 2 * X * counted, rtol=1e-6)


def test_errors():
    for call, text in ((lambda: tf.signal.frame(X, 0, 1), "positive"), (lambda: tf.signal.dct(X, 5), "Types"),
                       (lambda: tf.signal.dct(X, 1, norm="ortho"), "Type-I"),
                       (lambda: tf.signal.dct(X, n=0), "positive"),
                       (lambda: tf.signal.dct(X, norm="half"), "normalization"),
                       (lambda: tf.signal.overlap_and_add(X[0], 2), "known length"),
                       (lambda: tf.signal.linear_to_mel_weight_matrix(0), "num_mel_bins"),
                       (lambda: tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=9000.0), "edges")):
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(AttributeError, match="nothing"):
        tf.signal.nothing  # noqa: B018


@pytest.mark.parametrize("settings", [{}, {"axes": [0, 2]}, {"s": [5, 2], "axes": [1, 2]},
                                      {"axes": [-1, 0], "norm": "ortho"}, {"norm": "forward"}], ids=str)
def test_transforms_over_any_axes_are_those_of_numpy(settings):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 4)) + 1j * rng.normal(size=(2, 3, 4))
    ours = {"axes": settings.get("axes"), "fft_length": settings.get("s"), "norm": settings.get("norm")}
    for name in ("fftn", "ifftn", "rfftn", "irfftn"):
        given = x.real if name == "rfftn" else x
        got = getattr(tf.signal, f"{name}d")(given, **ours)
        np.testing.assert_allclose(got.numpy(), getattr(np.fft, name)(given, **settings), atol=1e-13)
    with pytest.raises(ValueError, match="norm must be"):
        tf.signal.fftnd(x, norm="both")
    with pytest.raises(tf.errors.InvalidArgumentError, match="different axes"):
        tf.signal.fftnd(x, axes=[0, -3])
