"""Pipelines against TensorFlow: specs, cardinalities, elements in order, and kinds of errors."""

import json
from pathlib import Path

import pytest
from data.pipelines import OWN_COUNTS, PIPELINES, described

import twofold as tf

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())


def test_every_pipeline_has_a_reference():
    assert set(PIPELINES) == set(REFERENCE) - {"tensorflow"}


@pytest.mark.parametrize("name", PIPELINES)
def test_pipeline_gives_what_tensorflow_gives(name, tmp_path):
    expected, actual = dict(REFERENCE[name]), described(tf, PIPELINES[name], tmp_path)
    if name in OWN_COUNTS:
        expected.pop("cardinality"), actual.pop("cardinality")
    assert actual == expected
