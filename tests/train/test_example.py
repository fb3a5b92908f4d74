"""`tf.train.Example` and what reads it: TensorFlow's own bytes, pipelines, and what is refused."""

import numpy as np
import pytest

import twofold as tf
from twofold._formats.wire import fields

# what TensorFlow 2.21 writes for the messages below
EXAMPLE = bytes.fromhex(
    "0a640a0b0a05656d70747912021a000a130a046e616d65120b0a090a0261620a000a01ff0a080a046e6f6e6512000a1f0a01"
    "6e121a1a180a1600ffffffffffffffffff01ac02ffffffffffffffff7f0a150a01781210120e0a0c0000c03f000000c0e6b1617f")
SEQUENCE = bytes.fromhex(
    "0a0d0a0b0a02696412051a030a0105122d0a0c0a017412070a050a030a01710a1d0a017712180a061a040a0200010a061a040a0201020a061a040a020203")
T, FIXED, VARIABLE = tf.train, tf.io.FixedLenFeature, tf.io.FixedLenSequenceFeature


def ints(*values):
    return T.Feature(int64_list=T.Int64List(value=values))


def example(**features):
    return T.Example(features=T.Features(feature=features)).SerializeToString()


def entries(data):
    [(_, features)] = fields(data)
    return sorted(entry for _, entry in fields(features))


def test_tensorflows_bytes():
    made = T.Example(features=T.Features(feature={
        "name": T.Feature(bytes_list=T.BytesList(value=[b"ab", b"", b"\xff"])),
        "x": T.Feature(float_list=T.FloatList(value=[1.5, -2.0, 3e38])), "n": ints(0, -1, 300, 2 ** 63 - 1),
        "none": T.Feature(), "empty": ints()}))
    assert entries(made.SerializeToString()) == entries(EXAMPLE)  # in whatever order
    read = T.Example.FromString(EXAMPLE)
    assert read == made
    feature = read.features.feature
    assert feature["name"].bytes_list.value == [b"ab", b"", b"\xff"]
    assert feature["n"].int64_list.value == [0, -1, 300, 2 ** 63 - 1]
    np.testing.assert_array_equal(feature["x"].float_list.value, np.float32([1.5, -2.0, 3e38]))
    assert feature["none"].WhichOneof("kind") is None
    assert feature["empty"].HasField("int64_list")
    sequences = {"w": [ints(k, k + 1) for k in range(3)], "t": [T.Feature(bytes_list=T.BytesList(value=[b"q"]))]}
    made = T.SequenceExample(context=T.Features(feature={"id": ints(5)}), feature_lists=T.FeatureLists(
        feature_list={name: T.FeatureList(feature=values) for name, values in sequences.items()}))
    assert made.SerializeToString() == SEQUENCE
    assert T.SequenceExample.FromString(SEQUENCE) == made


def test_messages_that_are_filled_later():
    made = T.Example()
    made.features.feature["n"].int64_list.value.extend(np.arange(3))
    made.features.feature["s"].bytes_list.value.append(b"x")
    assert made.SerializeToString() == example(n=ints(0, 1, 2), s=T.Feature(bytes_list=T.BytesList(value=[b"x"])))
    lists = T.FeatureLists()
    lists.feature_list["w"].add().float_list.value.append(0.5)
    assert lists.feature_list["w"].feature[0].float_list.value == [0.5]
    for wrong in (lambda: T.BytesList(value=["text"]), lambda: T.Int64List(value=[1.5]),
                  lambda: T.FloatList(value=["1"]), lambda: T.Feature(int64_list=T.FloatList())):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="range"):
        T.Int64List(value=[2 ** 63])
    with pytest.raises(ValueError, match="one list"):
        T.Feature(int64_list=T.Int64List(), float_list=T.FloatList())


def test_records_of_a_pipeline(tmp_path):
    path = str(tmp_path / "data.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for n in range(5):
            writer.write(example(image=T.Feature(bytes_list=T.BytesList(value=[bytes([n] * 4)])), label=ints(n),
                                 box=T.Feature(float_list=T.FloatList(value=np.full(4, n / 2))),
                                 words=ints(*range(n))))
    features = {"image": FIXED([], tf.string), "label": FIXED([], tf.int64), "box": FIXED([2, 2], tf.float32),
                "words": VARIABLE([], tf.int64, allow_missing=True), "weight": FIXED([], tf.float32, 0.5)}

    def parse(record):
        found = tf.io.parse_single_example(record, features)
        return tf.io.decode_raw(found["image"], tf.uint8), found["label"], found["box"], found["words"], found["weight"]
    dataset = tf.data.TFRecordDataset(path)
    for n, (image, label, box, words, weight) in enumerate(dataset.map(parse)):
        assert image.numpy().tolist() == [n] * 4
        assert (label.numpy(), weight.numpy()) == (n, 0.5)
        assert box.numpy().tolist() == [[n / 2] * 2] * 2
        assert words.numpy().tolist() == list(range(n))
    [batch] = dataset.batch(5).map(lambda records: tf.io.parse_example(records, features))
    assert batch["box"].shape == (5, 2, 2)
    assert batch["words"].numpy().tolist() == [[0] * 4, [0] * 4, [0, 1, 0, 0], [0, 1, 2, 0], [0, 1, 2, 3]]
    assert dataset.map(lambda r: tf.io.parse_single_example(r, features)).element_spec["words"] == tf.TensorSpec(
        [None], tf.int64)


def test_sequences():
    context, lists = tf.io.parse_single_sequence_example(
        SEQUENCE, {"id": FIXED([], tf.int64)}, {"w": VARIABLE([2], tf.int64), "t": VARIABLE([], tf.string),
                                                "none": VARIABLE([3], tf.float32, allow_missing=True)})
    assert context["id"].numpy() == 5
    assert lists["w"].numpy().tolist() == [[0, 1], [1, 2], [2, 3]]
    assert lists["t"].numpy().tolist() == [b"q"]
    assert lists["none"].shape == (0, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="'none' is required"):
        tf.io.parse_single_sequence_example(SEQUENCE, None, {"none": VARIABLE([3], tf.float32)})
    with pytest.raises(tf.errors.InvalidArgumentError, match="Index: 0. Expected 3 values"):
        tf.io.parse_single_sequence_example(SEQUENCE, None, {"w": VARIABLE([3], tf.int64)})


def test_what_does_not_fit():
    data = example(n=ints(1, 2))
    for features, text in (({"m": FIXED([], tf.int64)}, "required but could not be found"),
                           ({"n": FIXED([2], tf.float32)}, "Data types don't match"),
                           ({"n": FIXED([3], tf.int64)}, "Values size: 2 but output shape"),
                           ({"n": VARIABLE([3], tf.int64)}, "Values size: 2")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            tf.io.parse_single_example(data, features)
    for features, text in (({}, "empty"), ({"n": FIXED([None], tf.int64)}, "unknown"),
                           ({"n": FIXED([], tf.int32)}, "float32, int64 or string"), ({"n": 3}, "FixedLenFeature"),
                           ({"n": FIXED([2], tf.int64, [1, 2, 3])}, "default value")):
        with pytest.raises(ValueError, match=text):
            tf.io.parse_single_example(data, features)


def test_damage_is_told():
    """Every length, and every byte changed in turn: a record is read, or it is told that it cannot be."""
    for at in range(len(EXAMPLE)):
        for bad in (EXAMPLE[:at], EXAMPLE[:at] + bytes([EXAMPLE[at] ^ 0x55]) + EXAMPLE[at + 1:]):
            try:
                T.Example.FromString(bad).SerializeToString()
            except tf.errors.DataLossError as e:
                assert "Error parsing message" in str(e)
    with pytest.raises(tf.errors.DataLossError):
        T.Example.FromString(EXAMPLE[:-1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse"):
        tf.io.parse_single_example(EXAMPLE[:-1], {"n": FIXED([4], tf.int64)})


def test_messages_print_as_text():
    made = T.Example(features=T.Features(feature={
        "n": T.Feature(int64_list=T.Int64List(value=[1, -2])),
        "f": T.Feature(float_list=T.FloatList(value=[1.5, 1e10, 0.1, 1 / 3, float("inf")])),
        "s": T.Feature(bytes_list=T.BytesList(value=[b"x\n\"\xff'\\", "ä".encode()])), "e": T.Feature()}))
    text = r'''features {
  feature {
    key: "n"
    value {
      int64_list {
        value: 1
        value: -2
      }
    }
  }
  feature {
    key: "f"
    value {
      float_list {
        value: 1.5
        value: 1e+10
        value: 0.1
        value: 0.333333343
        value: inf
      }
    }
  }
  feature {
    key: "s"
    value {
      bytes_list {
        value: "x\n\"\377\'\\"
        value: "\303\244"
      }
    }
  }
  feature {
    key: "e"
    value {
    }
  }
}
'''
    assert str(made) == repr(made) == text and str(T.Example()) == ""
    numbers = {1e-7: "1e-07", 123456789.0: "123456792", -1321048.6: "-1321048.62", 1e6: "1e+06", -0.0: "-0",
               1e-45: "1.4013e-45", 16777216.0: "16777216", float("nan"): "nan", float("-inf"): "-inf"}
    for number, digits in numbers.items():  # as TensorFlow's protocol buffers print them
        assert str(T.FloatList(value=[number])) == f"value: {digits}\n"
    assert str(made.features.feature["n"].int64_list) == "value: 1\nvalue: -2\n"
    lists = T.FeatureLists(feature_list={"q": T.FeatureList(feature=[made.features.feature["e"]])})
    assert str(T.SequenceExample(feature_lists=lists)) == """feature_lists {
  feature_list {
    key: "q"
    value {
      feature {
      }
    }
  }
}
"""
