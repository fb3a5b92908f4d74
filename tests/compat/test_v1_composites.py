"""Sparse and ragged tensors in graphs of TensorFlow 1: placeholders, what is fed for them and what sessions give."""

import numpy as np
import pytest

import twofold as tf

v1 = tf.compat.v1
VALUE = v1.SparseTensorValue(np.array([[0, 1], [1, 2]]), np.array([3.0, 4.0], np.float32), np.array([2, 3]))
DENSE = [[0.0, 3.0, 0.0], [0.0, 0.0, 4.0]]


@pytest.fixture
def session():
    with v1.Graph().as_default(), v1.Session() as session:
        yield session


@pytest.mark.parametrize("shape", [[2, 3], [None, 3], [None, None], "tensor"])
def test_sparse_placeholders_are_fed_by_values(session, shape):
    x = v1.sparse_placeholder(tf.float32, tf.constant([2, 3], tf.int64) if shape == "tensor" else shape)
    dense, twice = tf.sparse.to_dense(x), x * 2.0
    lists = tuple(part.tolist() for part in VALUE)
    for fed in (VALUE, tuple(VALUE), lists, v1.SparseTensorValue(*lists), session.run(tf.sparse.from_dense(DENSE))):
        value, (given, doubled) = session.run([dense, [x, twice]], {x: fed})
        assert value.tolist() == DENSE and isinstance(given, v1.SparseTensorValue)
        assert given.indices.tolist() == [[0, 1], [1, 2]] and given.dense_shape.tolist() == [2, 3]
        assert doubled.values.tolist() == [6.0, 8.0]
    assert session.make_callable(dense, [x])(VALUE).tolist() == DENSE
    parts = {x.indices: VALUE.indices, x.values: VALUE.values, x.dense_shape: VALUE.dense_shape}
    assert session.run(dense, parts).tolist() == DENSE


def test_names_and_shapes_of_sparse_placeholders(session):  # those that TensorFlow gives
    x = v1.sparse.placeholder(tf.float32, [None, 3], name="q")
    assert x.shape.as_list() == [None, 3] and x.indices.shape.as_list() == [None, 2]
    assert [t.name for t in (x.indices, x.values, x.dense_shape)] == ["q/indices:0", "q/values:0", "q/shape:0"]
    y = v1.sparse_placeholder(tf.int32)
    assert y.shape.rank is None and y.dtype is tf.int32 and y.dense_shape.name == "Placeholder:0"


def test_sparse_placeholders_of_unknown_rank_are_matrices_where_only_these_are_taken(session):
    x = v1.sparse_placeholder(tf.float32)
    product = v1.sparse_tensor_dense_matmul(x, tf.constant([[1.0], [10.0], [100.0]]))
    assert session.run(product, {x: VALUE}).tolist() == [[30.0], [400.0]]
    with pytest.raises(ValueError, match="rank of a sparse tensor must be known"):
        tf.sparse.reorder(x)


def test_what_is_no_value_of_a_sparse_or_ragged_tensor_is_not_fed(session):
    x, rows = v1.sparse_placeholder(tf.float32, [2, 3]), v1.ragged.placeholder(tf.int32, 1)
    for key, wrong in ((x, np.zeros([2, 3])), (x, tuple(VALUE)[:2]), (x, 3.0), (rows, [[1], [2, 3]]), (rows, VALUE)):
        with pytest.raises(ValueError, match="TensorValue that fits"):
            session.run(key, {key: wrong})
    with pytest.raises(ValueError, match="Cannot feed value of shape"):
        session.run(x.values, {x: v1.SparseTensorValue([[0, 1, 2]], [1.0], [2, 3, 4])})
    with pytest.raises(tf.errors.InvalidArgumentError, match="You must feed a value for placeholder"):
        session.run(rows)


def test_ragged_placeholders_are_fed_by_values(session):
    x, nested = v1.ragged.placeholder(tf.int32, 1), v1.ragged.placeholder(tf.float32, 2, [2], name="n")
    assert x.shape.as_list() == [None, None] and nested.shape.as_list() == [None, None, None, 2]
    assert nested.flat_values.name == "n/flat_values:0" and nested.nested_row_splits[1].name == "n/row_splits_1:0"
    fed = {x: v1.ragged.constant_value([[1, 2], [], [3]]),
           nested: v1.ragged.constant_value([[[[1.0, 2.0]]], [], [[], [[3.0, 4.0]]]], ragged_rank=2)}
    doubled, sums, inner, whole = session.run([x * 2, tf.reduce_sum(x, 1), nested + 1.0, tf.ragged.constant([[5], []])],
                                              fed)
    assert str(doubled) == "<tf.RaggedTensorValue [[2, 4], [], [6]]>" and sums.tolist() == [3, 0, 3]
    assert inner.to_list() == [[[[2.0, 3.0]]], [], [[], [[4.0, 5.0]]]] and whole.to_list() == [[5], []]
    assert v1.ragged.placeholder(tf.int32, 0, [3]).shape.as_list() == [3]


def test_values_of_ragged_tensors():  # as TensorFlow shows them
    value = v1.ragged.constant_value([[[1, 2]], [], [[3], []]])
    assert value.ragged_rank == 2 and value.shape == (3, None, None) and value.dtype == np.int64
    assert value.flat_values.tolist() == [1, 2, 3]
    assert [splits.tolist() for splits in value.nested_row_splits] == [[0, 1, 1, 3], [0, 2, 3, 3]]
    assert repr(value) == ("tf.RaggedTensorValue(values=tf.RaggedTensorValue(values=array([1, 2, 3]), "
                           "row_splits=array([0, 2, 3, 3])), row_splits=array([0, 1, 1, 3]))")
    assert v1.ragged.constant_value([1, 2]).tolist() == [1, 2]
    assert v1.ragged.constant_value([["a"], []]).values.tolist() == [b"a"]
    assert v1.ragged.constant_value([[1.5], []], row_splits_dtype="int32").row_splits.dtype == np.int32
    for values, splits in (([1, 2, 3], np.array([0, 3])), (np.array([1, 2, 3]), [0, 3]),
                           (np.array([1]), np.array([0.0, 1.0]))):
        with pytest.raises(TypeError, match="numpy array"):
            v1.ragged.RaggedTensorValue(values, splits)


def test_where_ops_run_at_once_there_are_no_placeholders():
    for make in (lambda: v1.sparse_placeholder(tf.float32), lambda: v1.ragged.placeholder(tf.int32, 1)):
        with pytest.raises(RuntimeError, match="not compatible with eager execution"):
            make()
