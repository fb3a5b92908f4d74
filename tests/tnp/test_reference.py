"""Dtypes, shapes and promotion are TensorFlow's (`make_reference.py`), but for what is told here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tnp.cases import DTYPES, MADE, calls, kinds, operands, run

import twofold as tf

tnp = tf.experimental.numpy
REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())

#: where TensorFlow's dtype is an accident of how it computes, and ours is that of the rules; by mode and call
OURS = [
    (r"np\.angle", "TensorFlow's is float32 for all, float64 too"),
    (r"np\.(fabs|isinf|isneginf|isposinf|rad2deg)\(a\)", "integers count as numbers; TensorFlow's give Python's False"),
    (r"np\.(log2|log10|logaddexp2)", "a float64 constant makes TensorFlow's results float64"),
    (r"np\.(geomspace|hypot\(a, 1)", "a float64 constant, too"),
    (r"np\.hypot", "not of complex numbers, as in NumPy"),
    (r"np\.(round|around)", "bools are floats"),
    (r"all np\.\w+\((a|2|1|None|0), .*(1|1.5|2|2.5|a|0.25)\)", "in \"all\" TensorFlow's functions take a Python number "
     "beside a bool or another for float64 or int64, and its operators do not"),
    (r"all np\.clip\(a, None", "the same"),
    (r"all np\.maximum", "the same"),
]


def told(call: str, names: dict[str, Any]) -> str:
    """The kinds of a call's results, or "!" for an error."""
    try:
        return kinds(run(call, {"np": tnp, **names})).replace(" ", "_")
    except Exception as error:  # noqa: BLE001 (any error is one)
        return f"! {error}"


@pytest.mark.parametrize("mode", ["legacy", "all"])
def test_dtypes_and_shapes(mode, enable):
    """What TensorFlow cannot compute is not compared."""
    enable(dtype_conversion_mode=mode)
    ours = re.compile("|".join(pattern for pattern, _ in OURS))
    made = {dtype: {k: tf.constant(v) for k, v in operands(dtype).items()} for dtype in DTYPES}
    wrong = []
    for call in calls():
        for dtype, expected in zip(DTYPES, REFERENCE[mode][call].split(), strict=True):
            if expected != "!" and not ours.search(f"{mode} {call}"):
                got = told(call, made[dtype])
                wrong += [f"{call} of {dtype}: {got}, expected {expected}"] * (got != expected)
    for call in MADE:
        expected = REFERENCE[f"{mode} made"][call].replace(" ", "_")
        if expected != "!" and not ours.search(f"{mode} {call}"):
            got = told(call, {})
            wrong += [f"{call}: {got}, expected {expected}"] * (got != expected)
    assert wrong == []


@pytest.mark.parametrize("mode", ["legacy", "all", "safe"])
def test_dtypes_meet(mode, enable):
    enable(dtype_conversion_mode=mode)
    names = REFERENCE["names"]
    values = [run(name, {}) if name[0] == "1" else tf.zeros((), name) for name in names]
    wrong = []
    for x, row in zip(names, REFERENCE["joins"][mode], strict=True):
        for y, expected in zip(names, row.split(), strict=True):
            got = told("np.result_type(x, y)", {"x": values[names.index(x)], "y": values[names.index(y)]})
            wrong += [f"{x} and {y}: {got}, expected {expected}"] * (got[:len(expected)] != expected)
    assert wrong == []


def test_every_name_of_tensorflow_is_there():
    names = set(REFERENCE["public"])
    assert names - {*tnp.__all__, *[f"random.{name}" for name in tnp.random.__all__]} == set()
