"""Ops that are NumPy's functions behave as those that are kernels: no value is warned of, layouts change no bit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import twofold as tf

MATRIX = np.array([[2, 1, 0], [1, 3, 1], [0, 1, 4]])
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "det": tf.linalg.det, "slogdet": tf.linalg.slogdet, "logdet": tf.linalg.logdet, "inv": tf.linalg.inv,
    "solve": lambda x: tf.linalg.solve(x, x), "triangular": lambda x: tf.linalg.triangular_solve(x, x),
    "cholesky": tf.linalg.cholesky, "expm": tf.linalg.expm, "pinv": tf.linalg.pinv, "qr": tf.linalg.qr,
    "svd": tf.linalg.svd, "eigh": tf.linalg.eigh, "eig": tf.linalg.eig,
    "fft": lambda x: tf.signal.fft2d(tf.cast(x, tf.complex64)), "ifft": lambda x: tf.signal.ifft(
        tf.cast(x, tf.complex64)), "rfft": lambda x: tf.signal.rfft(tf.math.real(x))}


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_value_is_warned_of(name: str, compiled: bool, dtype: type) -> None:
    """Overflow, infinities and NaN are results; warnings are errors in these tests."""
    function = tf.function(FUNCTIONS[name]) if compiled else FUNCTIONS[name]
    for factor in (1e30, 1e-30, 1e-42, 0, np.inf, np.nan):
        with np.errstate(all="ignore"):
            x = tf.constant(np.where(MATRIX == 0, 0, MATRIX * factor).astype(dtype))
        with suppress(tf.errors.InvalidArgumentError):
            function(x)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_are_of_rows_in_order(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's bits depend on how rows lie on some processors: it is given one layout alone."""
    given: list[np.ndarray] = []
    function = getattr(np.fft, name)
    monkeypatch.setattr(np.fft, name, lambda x, **more: given.append(x) or function(x, **more))
    x = np.random.default_rng(0).standard_normal((6, 4, 5)).astype(np.float32 if name == "rfftn" else np.complex64)
    transform = {"fftn": tf.signal.fft2d, "ifftn": tf.signal.ifft2d, "rfftn": tf.signal.rfft2d,
                 "irfftn": tf.signal.irfft2d}[name]
    transform(tf.constant(x)[::-1])
    transform(tf.transpose(tf.constant(x), [0, 2, 1]))
    assert [a.flags.c_contiguous for a in given] == [True, True]
    assert np.array_equal(given[0], x[::-1]) and np.array_equal(given[1], x.transpose(0, 2, 1))
