"""Functions give what TensorFlow gave, eagerly and compiled, with the same bits in both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from front.peer_cases import CASES

import twofold as tf

STORED = np.load(Path(__file__).parent / "data" / "peer.npz")


@pytest.mark.parametrize("name", CASES)
def test_it_is_what_tensorflow_gives(name):
    call, arrays = CASES[name]
    tensors = [tf.constant(a) for a in arrays]
    results = tf.nest.flatten(call(tf, *tensors))
    wanted = [STORED[f"{name}/{n}"] for n in range(len(results))]
    assert f"{name}/{len(results)}" not in STORED
    for result, want in zip(results, wanted, strict=True):
        assert (result.dtype.name, tuple(result.shape)) == (want.dtype.name, want.shape)
        if want.dtype.kind == "f":
            size = np.abs(want[np.isfinite(want)]).max(initial=0.0)
            np.testing.assert_allclose(result.numpy(), want, rtol=2e-5, atol=5e-5 * size)
        else:
            np.testing.assert_array_equal(result.numpy(), want)
    compiled = tf.nest.flatten(tf.function(lambda *x: call(tf, *x))(*tensors))
    for result, again in zip(results, compiled, strict=True):
        np.testing.assert_array_equal(result.numpy(), again.numpy())
