"""`tf.keras.ops` gives what Keras 3 gives: values, shapes and dtypes; eagerly, and the same in a `tf.function`.

The calls are in `ops_cases.py` and `ops_shape_cases.py`, and Keras's results in `data/ops.npz`.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from house.tree import ROOT

import twofold as tf

from . import ops_cases, ops_shape_cases

with np.load(ROOT / "tests" / "keras" / "data" / "ops.npz") as _stored:
    KINDS, VALUES = json.loads(str(_stored["kinds"])), _stored["values"]


def stored():
    """Keras's results by the key of the call: `(dtype, array)` for each tensor."""
    actual, at = {}, 0
    for key, kinds in KINDS.items():
        actual[key] = []
        for kind, shape in kinds:
            count = int(np.prod(shape))
            values = VALUES[at:at + count]
            at += count
            if kind.startswith("complex"):
                values = values + 1j * VALUES[at:at + count]
                at += count
            actual[key].append((kind, values.reshape(shape)))
    assert at == len(VALUES)
    return actual


REFERENCE = stored()
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5, "float64": 1e-12, "complex64": 2e-5,
             "complex128": 1e-12}


def given(value):
    if isinstance(value, ops_cases.Half):
        return tf.cast(value.values, tf.bfloat16)
    if isinstance(value, np.ndarray):
        return tf.constant(value)
    if isinstance(value, list):
        return [given(v) for v in value]
    return tuple(given(v) for v in value) if isinstance(value, tuple) else value


def function_of(name):
    actual = tf.keras.ops
    for part in name.split("."):
        actual = getattr(actual, part)
    return actual


def call(case):
    name, args, kwargs = case
    settings = {k: v if isinstance(v, (tuple, list)) else given(v) for k, v in kwargs.items()}
    return function_of(name), [given(a) for a in args], settings


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, (list, tuple)) else [value]


def kind_of(x):
    return x.dtype.name if isinstance(x, tf.Tensor) else type(x).__name__


def check(name, actual, expected):
    assert [kind_of(x) for x in actual] == [kind for kind, _ in expected], name
    for x, (kind, values) in zip(actual, expected, strict=True):
        array = np.asarray(tf.cast(x, tf.float32) if kind == "bfloat16" else x)
        wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        if kind in TOLERANCE:
            finite = np.abs(values[np.isfinite(values)])
            scale = max(finite.max(initial=0.0), 1e-3)
            np.testing.assert_allclose(wide, values, rtol=TOLERANCE[kind], atol=TOLERANCE[kind] * scale, err_msg=name)
        else:
            np.testing.assert_array_equal(wide, values, err_msg=name)


def by_name(cases):
    actual = {}
    for case in cases:
        if ops_cases.key(case) in REFERENCE:
            actual.setdefault(case[0], []).append(case)
    return [pytest.param(each, id=name) for name, each in actual.items()]


@pytest.mark.parametrize("cases", by_name(ops_cases.dtype_cases()))
def test_dtypes(cases):
    for case in cases:
        function, args, settings = call(case)
        check(f"{case[0]} {ops_cases.described(case[1])}", flat(function(*args, **settings)),
              REFERENCE[ops_cases.key(case)])


@pytest.mark.parametrize("cases", by_name(ops_shape_cases.setting_cases()))
def test_settings(cases):
    for case in cases:
        function, args, settings = call(case)
        check(f"{case[0]} {ops_cases.described(case[1:])[:300]}", flat(function(*args, **settings)),
              REFERENCE[ops_cases.key(case)])
