"""Ragged and sparse tensors against what TensorFlow gave for the same expressions (`recorded/record.py`)."""

import importlib.util
import json
import pathlib

import pytest

import twofold as tf

DATA = pathlib.Path(__file__).parent / "recorded"
_script = importlib.util.spec_from_file_location("record_composites", DATA / "record.py")
record = importlib.util.module_from_spec(_script)
_script.loader.exec_module(record)

CASES = [(kind, e, want) for kind in record.SETUP
         for e, want in json.loads((DATA / f"{kind}.json").read_text())["cases"].items()]
NAMES = {}
for _kind, _setup in record.SETUP.items():
    NAMES[_kind] = {"tf": tf}
    exec(_setup, NAMES[_kind])
SPECS = {
    "ragged": [tf.RaggedTensorSpec([None, None], tf.int32), tf.RaggedTensorSpec([None, None], tf.string),
               tf.RaggedTensorSpec([None, None, None], tf.int32)],
    "sparse": [tf.SparseTensorSpec([None, None], tf.int32)] * 4,
    "embedding": [tf.TensorSpec([None, 2]), tf.SparseTensorSpec([None, None], tf.int32),
                  tf.SparseTensorSpec([None, None]), tf.RaggedTensorSpec([None, None], tf.int32)],
    "keras": [tf.SparseTensorSpec([None, 4]), *[tf.SparseTensorSpec([None, 4], d) for d in (tf.int32, tf.string)],
              *[tf.RaggedTensorSpec([None, None], d) for d in (tf.int32, tf.float32, tf.string)]],
}
ARGUMENTS = {"ragged": ["digits", "words", "rt3"], "sparse": ["a", "b", "c", "wide"],
             "embedding": ["table", "ids", "weights", "rows"],
             "keras": ["numbers", "ids", "names", "rows", "floats", "words"]}
TOGETHER = 12  # expressions in one function


@pytest.mark.parametrize("kind, expression, want", CASES, ids=[f"{k}: {e}" for k, e, _ in CASES])
def test_eager(kind, expression, want):
    got = record.evaluated(expression, NAMES[kind])
    if want.startswith("raises"):  # classes of the library's own are the errors of TensorFlow, or Python's
        assert got.startswith("raises")
    else:
        assert got == want


def _staged(kind):
    """The expressions of tensors that functions take."""
    return [(e, want) for k, e, want in CASES if k == kind and any(n in e for n in ARGUMENTS[kind])
            and want.startswith(("<tf.", "[<tf.", "(<tf.", "SparseTensor(")) and "Dataset" not in e]


GROUPS = [(kind, n) for kind in SPECS for n in range(0, len(_staged(kind)), TOGETHER)]


@pytest.mark.parametrize("kind, first", GROUPS, ids=[f"{k}-{n}" for k, n in GROUPS])
def test_compiled_for_all_sizes(kind, first):
    group = _staged(kind)[first:first + TOGETHER]
    source = f"lambda {', '.join(ARGUMENTS[kind])}: [{', '.join(e for e, _ in group)}]"
    traced = eval(source, NAMES[kind])  # noqa: S307 - the expressions are ours
    run = tf.function(traced, input_signature=SPECS[kind], fallback=False)
    results = run(*[NAMES[kind][name] for name in ARGUMENTS[kind]])
    for (expression, want), result in zip(group, results, strict=True):
        assert repr(result) == want, expression
