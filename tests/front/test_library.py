"""Tables, hashes, files and quantisation against TensorFlow 2.21 (`library_cases.py`), in both modes."""

from __future__ import annotations

import builtins
import json
from pathlib import Path

import pytest
from front import library_cases as cases

import twofold as tf

KNOWN = json.loads((Path(__file__).parent / "data" / "library.json").read_text())


def agrees(case, expected):
    """A case gives what TensorFlow gave, or raises an error of its class."""
    if not isinstance(expected, dict) or set(expected) != {"error"}:
        assert cases.plain(case(tf)) == expected
        return
    name = expected["error"]
    with pytest.raises(getattr(tf.errors, name, getattr(builtins, name, None))):
        case(tf)


@pytest.mark.parametrize("name", cases.CASES)
def test_against_tensorflow(name):
    agrees(cases.CASES[name], KNOWN[name])


# Tables are made outside of functions.
WITHOUT_TABLES = [n for n in cases.CASES if n not in cases.TABLES and not n.startswith(("lookup ", "vocabulary "))]


@pytest.mark.parametrize("name", WITHOUT_TABLES)
def test_in_functions(name):
    agrees(lambda module: tf.function(lambda: cases.CASES[name](module))(), KNOWN[name])
