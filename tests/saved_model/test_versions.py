"""Models of older versions load for ever, those of newer ones say so, and no op changes without a decision."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from saved_model import cases, record
from saved_model.hostile import rewritten

import twofold as tf
from twofold.ir.op import REGISTRY
from twofold.saved_model import op_sets, reader

GOLDEN = sorted(record.DATA.glob("golden_*"))


@pytest.mark.parametrize("folder", GOLDEN, ids=[p.name for p in GOLDEN])
def test_golden_models_load_and_run(folder):
    """What a golden model gives is what it gave when it was written, to the last bits of its arithmetic."""
    loaded = tf.saved_model.load(folder / "model")
    actual = {f"{name}/{n}": leaf for name, leaves in cases.results(loaded).items() for n, leaf in enumerate(leaves)}
    with np.load(folder / "results.npz", allow_pickle=False) as kept:
        assert set(actual) == set(kept.files) and len(actual) > 40
        for name in kept.files:
            assert actual[name].dtype == kept[name].dtype and actual[name].shape == kept[name].shape, name
            if kept[name].dtype.kind in "fc":
                np.testing.assert_allclose(actual[name], kept[name], rtol=1e-6, atol=1e-7, err_msg=name)
            else:
                assert np.array_equal(actual[name], kept[name]), name


def test_there_is_a_golden_model_for_each_op_set():
    assert [p.name for p in GOLDEN] == [f"golden_{n}" for n in range(1, op_sets.CURRENT + 1)]
    assert sorted(op_sets.READERS) == list(range(1, op_sets.CURRENT))


def test_recorded_ops_are_still_the_same():
    """An op that is gone or changed breaks saved models: it needs a new version of the op set, and a reader."""
    kept = json.loads((record.DATA / f"op_set_{op_sets.CURRENT}.json").read_text())
    now = record.op_set()
    for kind in ("ops", "constructs"):
        for name, about in kept[kind].items():
            assert now[kind].get(name) == about, f"{kind[:-1]} {name}: see twofold/saved_model/op_sets.py"


def test_all_ops_are_recorded():
    kept = json.loads((record.DATA / f"op_set_{op_sets.CURRENT}.json").read_text())
    new = {name for kind, ops in record.op_set().items() for name in ops if name not in kept[kind]}
    assert not new, "run: python tests/saved_model/record.py ops"


def test_what_older_versions_do_not_know_is_written_where_it_is_used(tmp_path):
    """Attributes that ops got later are left out at their defaults: graphs of before that are read by older versions,
    which knew none of them."""
    model = tf.Module()
    model.exact = tf.function(lambda x, w: (x[0] @ x[0], tf.nn.conv1d(x, w, 1, "SAME")),
                              input_signature=[tf.TensorSpec([2, 3, 3]), tf.TensorSpec([2, 3, 1])])
    model.fast = tf.function(lambda x: tf.matmul(x, x, precision="fast"), input_signature=[tf.TensorSpec([3, 3])])
    tf.saved_model.save(model, tmp_path)
    saved = {("fast" if "precision" in text else "exact"): text
             for path in tmp_path.glob("data-*/graphs/*.txt") for text in [path.read_text()]}
    assert "transpose_b: false" in saved["exact"] and 'precision: "fast"' in saved["fast"]
    loaded = tf.saved_model.load(tmp_path)
    nodes = {name: getattr(loaded, name).get_concrete_function().graph.nodes for name in saved}
    found = {name: {node.op.name: node.attrs["precision"] for node in nodes[name] if "precision" in node.attrs}
             for name in nodes}
    assert found == {"exact": {"matmul": "exact", "conv": "exact"}, "fast": {"matmul": "fast"}}


@pytest.mark.parametrize("name", op_sets.LATER)
def test_later_attributes_are_left_out_at_the_defaults_of_their_ops(name):
    assert {op.defaults[name] for op in REGISTRY.values() if name in op.defaults} == {op_sets.LATER[name]}


def test_readers_bring_older_graphs_up_to_date(tmp_path, monkeypatch):
    """A graph of version 1 in a time in which version 3 has another name for an op."""
    model = tf.Module()
    model.f = tf.function(lambda x: tf.exp(x), input_signature=[tf.TensorSpec([2])])
    tf.saved_model.save(model, tmp_path)
    graph, = tmp_path.glob("data-*/graphs/*.txt")
    rewritten(tmp_path, {f"graphs/{graph.name}": graph.read_text().replace("exp(", "oldest(").encode()})
    with pytest.raises(tf.errors.DataLossError, match="there is no op 'oldest'"):
        tf.saved_model.load(tmp_path)
    monkeypatch.setattr(op_sets, "CURRENT", 3)
    monkeypatch.setattr(op_sets, "READERS", {1: lambda text: text.replace("oldest(", "older("),
                                             2: lambda text: text.replace("older(", "exp(")})
    assert tf.saved_model.load(tmp_path).f([0.0, 1.0]).numpy()[0] == 1.0


@pytest.mark.parametrize("changes, text", [
    ({"format_version": 2}, "format version 2, written by twofold '9.1'; .* reads up to 1"),
    ({"op_set": 99}, "op-set version 99, written by twofold '9.1'; .* reads 1 to"),
])
def test_newer_versions_are_named(tmp_path, changes, text):
    tf.saved_model.save(tf.Module(), tmp_path)
    rewritten(tmp_path, {}, twofold="9.1", **changes)
    with pytest.raises(tf.errors.FailedPreconditionError, match=text):
        tf.saved_model.load(tmp_path)


def test_the_manifest_says_what_the_format_document_says(tmp_path):
    tf.saved_model.save(tf.Module(), tmp_path)
    body = json.loads((tmp_path / "manifest.json").read_text())
    assert list(body) == ["format", "format_version", "op_set", "twofold", "data", "files", "checksum"]
    assert body["format"] == "twofold saved model" and body["twofold"] == tf.__version__
    for name, about in body["files"].items():
        data = (tmp_path / body["data"] / name).read_bytes()
        assert about == {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert reader.read(tmp_path).manifest.files.keys() == body["files"].keys()
