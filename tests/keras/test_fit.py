"""`fit`, `evaluate` and the callbacks give what Keras gives: values, names, files, lines and the order of the hooks.

The cases are in `fit_cases.py`, and Keras's results in `data/fit.json`, which `make_fit_reference.py` wrote.
"""

from __future__ import annotations

import json

import pytest
from house.tree import ROOT

import twofold as tf

from keras import fit_cases as cases  # isort: skip

REFERENCE = json.loads((ROOT / "tests" / "keras" / "data" / "fit.json").read_text())


def near(value):
    """What equals a value but for float32's rounding."""
    if isinstance(value, dict):
        return {key: near(child) for key, child in value.items()}
    if isinstance(value, list):
        return [near(child) for child in value]
    return pytest.approx(value, rel=2e-5, abs=1e-7) if isinstance(value, float) else value


def test_all_cases_have_a_reference():
    assert set(REFERENCE) == set(cases.CASES)


@pytest.mark.parametrize("name", sorted(cases.CASES))
def test_as_keras(name):
    assert cases.run(name, tf) == near(REFERENCE[name])
