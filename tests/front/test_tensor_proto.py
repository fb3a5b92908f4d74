"""Tensors as bytes: TensorFlow 2.21's own, in pipelines, and what is refused."""

import numpy as np
import pytest

import twofold as tf

# what TensorFlow 2.21 writes
KNOWN = [
    (tf.constant([[1.5, -2.0]]), "08011208120208011202080222080000c03f000000c0"),
    (tf.constant(7, tf.int64), "0809120022080700000000000000"),
    (tf.constant(["ab", ""]), "0807120412020802420261624200"),
    (tf.zeros([2, 0], tf.uint8), "08041206120208021200"),
    (tf.constant([True, False]), "080a12041202080222020100"),
    (tf.constant([1.5], tf.bfloat16), "080e1204120208012202c03f"),
    (tf.constant([1 + 2j], tf.complex64), "080812041202080122080000803f00000040"),
]


@pytest.mark.parametrize(("tensor", "data"), KNOWN, ids=[t.dtype.name for t, _ in KNOWN])
def test_tensorflows_bytes(tensor, data):
    assert tf.io.serialize_tensor(tensor).numpy() == bytes.fromhex(data)
    actual = tf.io.parse_tensor(bytes.fromhex(data), tensor.dtype)
    assert actual.dtype == tensor.dtype
    np.testing.assert_array_equal(actual, tensor)


def test_tensors_of_records(tmp_path):
    path = str(tmp_path / "data")
    arrays = [np.random.RandomState(n).rand(2, n + 1).astype(np.float32) for n in range(3)]
    with tf.io.TFRecordWriter(path) as writer:
        for array in arrays:
            writer.write(tf.io.serialize_tensor(array))
    dataset = tf.data.TFRecordDataset(path).map(
        lambda record: tf.ensure_shape(tf.io.parse_tensor(record, tf.float32), [2, None]))
    for actual, array in zip(dataset, arrays, strict=True):
        np.testing.assert_array_equal(actual, array)


def test_damage_and_other_dtypes():
    data = bytes.fromhex(KNOWN[0][1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Type mismatch"):
        tf.io.parse_tensor(data, tf.float64)
    for bad in (data[:-1], data[:-4], b"\xff", b"", bytes([*data[:6], 99, *data[7:]])):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.io.parse_tensor(bad, tf.float32)
