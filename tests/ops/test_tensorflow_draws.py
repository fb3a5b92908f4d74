"""Draws are TensorFlow's: those that `record_draws.py` recorded with TensorFlow 2.21 on a processor.

All are equal to the bit, but for a few of float64 that logarithms, sines and cosines are in: the C library rounds these
its own way.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ops import draw_cases

import twofold as tf

KEPT: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "tensorflow_draws.json").read_text())
_UNEQUAL = 0.03  # of the float64 numbers of a case that need not be equal


def recorded(name: str) -> list[np.ndarray]:
    def dtype_of(kind: str) -> Any:
        return getattr(ml_dtypes, kind) if kind == "bfloat16" else np.dtype(kind)
    return [np.frombuffer(bytes.fromhex(data), dtype_of(kind)).reshape(shape) for kind, shape, data in KEPT[name]]


def test_all_cases_are_recorded() -> None:
    assert {*KEPT} == {*draw_cases.EXACT, *draw_cases.CLOSE}


@pytest.mark.parametrize("name", draw_cases.EXACT)
def test_draws_are_equal(name: str) -> None:
    actual, wanted = draw_cases.run(draw_cases.EXACT[name], tf), recorded(name)
    assert len(actual) == len(wanted)
    for n, (a, w) in enumerate(zip(actual, wanted, strict=True)):
        np.testing.assert_array_equal(np.asarray(a), w, err_msg=f"number {n}")
        assert np.asarray(a).dtype == w.dtype or w.dtype.kind in "iu", n


IN_FUNCTIONS = ("stateless uniform float16 small", "stateless integers int64 1000000000000 small", "split and fold_in",
                "stateless normal float32", "stateless normal float64", "stateless truncated_normal bfloat16",
                "stateless truncated_normal float64", "stateless gamma", "stateless poisson", "stateless binomial",
                "stateless categorical", "stateless shuffle", "index_shuffle", "parameterized truncated normal")


def test_compiled_draws_have_the_bits_of_eager_ones() -> None:
    """One function makes those that need no new variables; what they are, tests above and below compare."""
    cases = {**draw_cases.EXACT, **draw_cases.CLOSE}
    generator = tf.random.Generator.from_seed(1234)

    def draws() -> list[Any]:
        made = [cases[name](tf) for name in IN_FUNCTIONS]
        return [*made, generator.normal([2, 3]), generator.truncated_normal([30]), generator.binomial([5], 40.0, 0.5)]
    compiled = tf.nest.flatten(tf.function(draws, fallback=False)())
    generator.reset_from_seed(1234)
    for n, (a, b) in enumerate(zip(compiled, tf.nest.flatten(draws()), strict=True)):
        assert a.dtype == b.dtype and a.numpy().tobytes() == b.numpy().tobytes(), n


@pytest.mark.parametrize("name", draw_cases.CLOSE)
def test_draws_are_equal_but_for_roundings(name: str) -> None:
    actual, wanted = draw_cases.run(draw_cases.CLOSE[name], tf), recorded(name)
    assert len(actual) == len(wanted)
    for n, (a, w) in enumerate(zip(actual, wanted, strict=True)):
        a = np.asarray(a)
        assert a.dtype == w.dtype and a.shape == w.shape, n
        unit = np.spacing(np.abs(w)).astype(np.float64)
        off = np.abs(a.astype(np.float64) - w.astype(np.float64)) / unit
        assert off.max() <= 1, n
        assert np.count_nonzero(off) <= (w.dtype == np.float64) * _UNEQUAL * off.size, n
