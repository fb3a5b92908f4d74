"""Values, variables and updates of replicas, beside what TensorFlow gives (`semantics.py`)."""

from __future__ import annotations

import json

import pytest
from distribute import semantics
from distribute.cpus import logical_cpus

import twofold as tf


@pytest.mark.parametrize("way", semantics.WAYS)
def test_results_are_those_of_tensorflow(way: str) -> None:
    with open(semantics.PATH) as file:
        wanted = json.load(file)[way]
    with logical_cpus(2):
        given = semantics.results(tf, way)
    assert {name: json.dumps(value) for name, value in given.items()} == wanted
