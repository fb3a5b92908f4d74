"""The largest elements are those that a stable sort of all puts first, with their places: ties, NaN, zeros of both
signs, infinities, few elements of many and many of few."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf


def first_of_sorted(a: np.ndarray, k: int) -> np.ndarray:
    """The places that a sort gives which keeps equal elements in order; NaN comes first."""
    key = a.astype(np.float64)
    nan = np.isnan(key)
    return np.lexsort((np.arange(a.shape[-1])[None].repeat(len(a), 0), -np.where(nan, 0, key), ~nan), axis=-1)[:, :k]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.int8, np.uint16])
def test_the_first_of_a_stable_sort(dtype: type) -> None:
    rng = np.random.default_rng(7)
    for _ in range(60):
        length = int(rng.integers(1, 90))
        k = int(rng.integers(0, length + 1) if rng.random() < 0.4 else rng.integers(0, length // 8 + 1))
        a = rng.normal(size=(3, length)) * rng.choice([1, 3, 1000])
        a = (np.round(a) if rng.random() < 0.7 else a).astype(dtype)
        if a.dtype.kind == "f":
            for value in (np.nan, np.inf, -np.inf, 0.0, -0.0):
                a[rng.random(a.shape) < rng.choice([0, 0.04])] = value
        places = first_of_sorted(a, k)
        values, indices = tf.math.top_k(a, k)
        assert np.array_equal(indices, places), (a, k)
        assert values.numpy().tobytes() == np.take_along_axis(a, places, -1).tobytes()
