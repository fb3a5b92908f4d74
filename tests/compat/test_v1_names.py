"""TensorFlow 1's names against what TensorFlow 2.21 gives for them (`v1_names.py`, `data/v1_names.json`)."""

import importlib.util
import json
from pathlib import Path

import pytest

import twofold as tf

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("v1_names", HERE / "v1_names.py")
names = importlib.util.module_from_spec(spec)
spec.loader.exec_module(names)
v1 = tf.compat.v1
CASES = names.cases(v1)
KNOWN = json.loads((HERE / "data" / "v1_names.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_as_tensorflow(name):
    assert names.plain(CASES[name](), tf) == KNOWN[name]


def test_parts_are_named_when_they_are_split():
    with pytest.raises(TypeError):
        v1.sparse_split(tf.sparse.from_dense([[1, 2]]), 2, 1)
    with pytest.raises(ValueError, match="Cannot specify both 'reduction_axes' and 'axis'"):
        v1.sparse_reduce_sum(tf.sparse.from_dense([[1, 2]]), 0, reduction_axes=0)


def test_merged_ids_are_checked():
    ids = tf.sparse.from_dense([[1, 2]])
    for wrong, error in ((([ids], ids, 3), TypeError), ((ids, ids, [3]), TypeError),
                         (([ids, ids], ids, [3]), ValueError), ((ids, [1, 2], 3), TypeError)):
        with pytest.raises(error):
            v1.sparse_merge(*wrong)


def test_records_one_after_the_other(tmp_path):
    path = str(tmp_path / "records")
    with v1.python_io.TFRecordWriter(path, v1.python_io.TFRecordOptions("GZIP")) as writer:
        writer.write(b"one")
        writer.write(b"two")
    assert list(v1.python_io.tf_record_iterator(path, v1.python_io.TFRecordOptions("GZIP"))) == [b"one", b"two"]


def test_scopes_with_older_orders():
    with v1.Graph().as_default(), v1.variable_op_scope([], "outer"), v1.op_scope([], "inner"):
        assert v1.get_variable("w", [2]).name == "outer/w:0"
        assert v1.placeholder(tf.float32, [2], name="x").name == "outer/inner/x:0"


def test_names_that_a_graph_computes():
    with v1.Graph().as_default(), v1.Session() as session:
        st = v1.sparse_placeholder(tf.float32, [2, 3])
        total = v1.sparse_reduce_sum(v1.sparse_add(st, st), 1)
        fed = v1.SparseTensorValue([[0, 1], [1, 2]], [1.0, 2.0], [2, 3])
        assert session.run(total, {st: fed}).tolist() == [2.0, 4.0]
