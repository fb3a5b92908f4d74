"""Features of records with any number of values: sparse and ragged ones, as TensorFlow 2.21 reads the same records."""

import pytest

import twofold as tf

R = tf.io.RaggedFeature


def record(**lists):
    kinds = {bytes: ("bytes_list", tf.train.BytesList), float: ("float_list", tf.train.FloatList),
             int: ("int64_list", tf.train.Int64List)}
    features = {}
    for name, values in lists.items():
        field, kind = kinds[type(values[0])]
        features[name] = tf.train.Feature(**{field: kind(value=values)})
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


RECORDS = [record(c=[b"r", b"b"], v=[1, 2, 3, 4], l=[1, 3], s=[0, 1, 4], ids=[0, 0, 1, 3], i=[5, 1, 2, 3], st=[0, 1],
                  li=[1, 4]),
           record(v=[7], l=[1], s=[0, 1], ids=[1], i=[4], st=[0], li=[1])]
FORMS = {
    "rows": (R(tf.int64, "v"), [[1, 2, 3, 4], [7]]),
    "lengths": (R(tf.int64, "v", [R.RowLengths("l")]), [[[1], [2, 3, 4]], [[7]]]),
    "splits": (R(tf.int64, "v", [R.RowSplits("s")]), [[[1], [2, 3, 4]], [[7]]]),
    "starts": (R(tf.int64, "v", [R.RowStarts("st")]), [[[1], [2, 3, 4]], [[7]]]),
    "limits": (R(tf.int64, "v", [R.RowLimits("li")]), [[[1], [2, 3, 4]], [[7]]]),
    "rowids": (R(tf.int64, "v", [R.ValueRowIds("ids")]), [[[1, 2], [3], [], [4]], [[], [7]]]),
    "uniform": (R(tf.int64, "v", [R.UniformRowLength(1)]), [[[1], [2], [3], [4]], [[7]]]),
    "two": (R(tf.int64, "v", [R.RowLengths("l"), R.UniformRowLength(1)]), [[[[1]], [[2], [3], [4]]], [[[7]]]]),
}


@pytest.mark.parametrize("name", FORMS)
def test_ragged_features(name):
    form, want = FORMS[name]
    batch = tf.io.parse_example(RECORDS, {name: form})[name]
    assert batch.to_list() == want and batch.row_splits.dtype is tf.int32
    alone = tf.io.parse_single_example(RECORDS[0], {name: form})[name]
    assert (alone.to_list() if isinstance(alone, tf.RaggedTensor) else alone.numpy().tolist()) == want[0]


def test_sparse_features():
    batch = tf.io.parse_example(RECORDS, {"c": tf.io.VarLenFeature(tf.string),
                                          "at": tf.io.SparseFeature("i", "v", tf.int64, 10)})
    assert batch["c"].indices.numpy().tolist() == [[0, 0], [0, 1]] and batch["c"].shape == [2, 2]
    assert batch["c"].values.numpy().tolist() == [b"r", b"b"]
    assert batch["at"].indices.numpy().tolist() == [[0, 1], [0, 2], [0, 3], [0, 5], [1, 4]]
    assert batch["at"].values.numpy().tolist() == [2, 3, 4, 1, 7] and batch["at"].shape == [2, 10]
    alone = tf.io.parse_single_example(RECORDS[1], {"c": tf.io.VarLenFeature(tf.string),
                                                    "at": tf.io.SparseFeature("i", "v", tf.int64, 10)})
    assert alone["c"].shape == [0] and alone["at"].indices.numpy().tolist() == [[4]]


def test_pipelines_read_them_with_others():
    forms = {"v": FORMS["lengths"][0], "c": tf.io.VarLenFeature(tf.string),
             "ids": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
    data = tf.data.Dataset.from_tensor_slices(RECORDS).batch(2).map(lambda r: tf.io.parse_example(r, forms))
    item, = data
    assert item["v"].to_list() == [[[1], [2, 3, 4]], [[7]]]
    assert item["ids"].numpy().tolist() == [[0, 0, 1, 3], [1, 0, 0, 0]]
    assert isinstance(data.element_spec["v"], tf.RaggedTensorSpec)
    assert isinstance(data.element_spec["c"], tf.SparseTensorSpec)


def test_errors():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Data types don't match"):
        tf.io.parse_example(RECORDS, {"c": tf.io.VarLenFeature(tf.int64)})
    with pytest.raises(tf.errors.InvalidArgumentError, match="different sizes"):
        tf.io.parse_example(RECORDS, {"at": tf.io.SparseFeature("l", "v", tf.int64, 10)})
    with pytest.raises(ValueError, match="no partition"):
        tf.io.parse_example(RECORDS, {"v": R(tf.int64, partitions=["l"])})
    with pytest.raises(ValueError, match="dtype must be"):
        tf.io.parse_example(RECORDS, {"v": tf.io.VarLenFeature(tf.float64)})
