"""`tf.data.experimental`, with what TensorFlow gives."""

import pytest

import twofold as tf

experimental, Dataset = tf.data.experimental, tf.data.Dataset
ZERO = tf.constant(0, tf.int64)


def values(data):
    return [tf.nest.map_structure(lambda x: x.item(), element) for element in data.as_numpy_iterator()]


def test_group_by_reducer_gives_an_element_for_each_key():
    sums = experimental.Reducer(lambda key: ZERO, lambda state, x: state + x, lambda state: state * 10)
    assert values(Dataset.range(7).apply(experimental.group_by_reducer(lambda x: x % 3, sums))) == [90, 50, 70]
    counts = experimental.Reducer(lambda key: (key, 0), lambda state, x: (state[0], state[1] + 1),
                                  lambda key, count: {"k": key, "n": count})
    numbers = Dataset.from_tensor_slices(tf.constant([5, 1, 5, 2, 1], tf.int64))
    assert values(numbers.apply(experimental.group_by_reducer(lambda x: x, counts))) == [
        {"k": 1, "n": 2}, {"k": 2, "n": 1}, {"k": 5, "n": 2}]


def test_pad_to_cardinality():
    data = Dataset.from_tensor_slices({"a": [1, 2]})
    padded = data.apply(experimental.pad_to_cardinality(3))
    assert values(padded) == [{"a": 1, "valid": True}, {"a": 2, "valid": True}, {"a": 0, "valid": False}]
    assert int(padded.cardinality()) == 3
    for bad, count in ((data, 1), (Dataset.range(3), 9), (data.filter(lambda x: True), 9)):
        with pytest.raises(ValueError, match="pad_to_cardinality"):
            bad.apply(experimental.pad_to_cardinality(count))


def test_at_and_from_list():
    assert int(experimental.at(Dataset.range(5), 2)) == 2
    for place in (7, -1):
        with pytest.raises(tf.errors.OutOfRangeError):
            experimental.at(Dataset.range(5), place)
    data = experimental.from_list([({"x": 1}, [1.0, 2.0]), ({"x": 2}, [3.0, 4.0])])
    assert [(int(a["x"]), b.tolist()) for a, b in data.as_numpy_iterator()] == [(1, [1.0, 2.0]), (2, [3.0, 4.0])]
    with pytest.raises(ValueError, match="a list of one element"):
        experimental.from_list([])


def test_save_load_and_ragged_batches(tmp_path):
    experimental.save(Dataset.range(3), str(tmp_path / "d"))
    assert values(experimental.load(str(tmp_path / "d"))) == [0, 1, 2]
    ragged = Dataset.range(1, 4).map(tf.range).apply(experimental.dense_to_ragged_batch(2))
    assert [batch.to_list() for batch in ragged] == [[[0], [0, 1]], [[0, 1, 2]]]
