"""Files: TFRecords in both directions with TensorFlow, damage, compression, caches, and what checkpoints hold."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import os
import re
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from quick.start import python

import twofold as tf
from twofold._formats.crc32c import crc32c
from twofold.data._state import decoded, encoded

Dataset = tf.data.Dataset
RECORDS = [b"first", b"", bytes(range(256)) * 20, "é".encode()]
# Written once by TensorFlow 2.21: tf.io.TFRecordWriter with RECORDS[0], RECORDS[1] and RECORDS[3].
WRITTEN = base64.b64decode("BQAAAAAAAADqsgQ+Zmlyc3RV/yPlAAAAAAAAAAApA5gH2OqCogIAAAAAAAAAeCcLNMOpLyI7vg==")


def write(path, records, options=None):
    with tf.io.TFRecordWriter(path, options) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def read(path, **options):
    return list(tf.data.TFRecordDataset(path, **options).as_numpy_iterator())


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_records_come_back(tmp_path, kind):
    path = write(tmp_path / "r", RECORDS, tf.io.TFRecordOptions(kind, compression_level=3))
    assert read(path, compression_type=kind) == RECORDS
    raw = {"": lambda b: b, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}[kind](Path(path).read_bytes())
    assert struct.unpack("<Q", raw[:8])[0] == 5


def test_a_file_is_what_tensorflow_writes(tmp_path):
    path = write(tmp_path / "r", [RECORDS[0], RECORDS[1], RECORDS[3]])
    assert Path(path).read_bytes() == WRITTEN


def test_damage_is_told(tmp_path):
    path = Path(write(tmp_path / "r", RECORDS))
    whole = path.read_bytes()
    for at in (0, 9, 13, 18, len(whole) - 1):  # length, its checksum, data, their checksum
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        with pytest.raises(tf.errors.DataLossError, match="corrupted record|truncated record"):
            read(str(path))
    for size in (5, 15, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(tf.errors.DataLossError, match="truncated record"):
            read(str(path))


def divided(data: bytes) -> int:
    """The CRC by its definition: the remainder of a division of polynomials, bit by bit."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


@pytest.mark.parametrize("size", [0, 1, 32, 33, 40, 1000, 2049, 70_001])
def test_checksums_are_remainders(size):
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    expected = divided(data.tobytes())
    assert crc32c(data.tobytes()) == expected
    assert crc32c(data[size // 2:], crc32c(data[:size // 2])) == expected
    for start in range(1, min(size, 8)):  # words that begin anywhere
        assert crc32c(data[start:], crc32c(data[:start])) == expected


def test_several_files_one_missing(tmp_path):
    paths = [write(tmp_path / name, [name.encode()] * 2) for name in "ab"]
    assert read(paths) == [b"a", b"a", b"b", b"b"]
    assert read(paths, num_parallel_reads=2) == [b"a", b"b", b"a", b"b"]
    assert read(Dataset.from_tensor_slices(paths)) == [b"a", b"a", b"b", b"b"]
    between = [paths[0], str(tmp_path / "none"), paths[1]]
    with pytest.raises(tf.errors.NotFoundError, match="none; No such file"):
        read(between)
    data = tf.data.TFRecordDataset(between).ignore_errors()
    assert list(data.as_numpy_iterator()) == [b"a", b"a", b"b", b"b"]


def test_the_writer(tmp_path):
    writer = tf.io.TFRecordWriter(str(tmp_path / "r"))
    writer.write(tf.constant("text"))
    writer.flush()
    assert read(str(tmp_path / "r")) == [b"text"]
    with pytest.raises(TypeError, match="a record is bytes"):
        writer.write(3)
    writer.close()
    with pytest.raises(tf.errors.FailedPreconditionError):
        writer.write(b"more")
    with pytest.raises(tf.errors.NotFoundError):
        tf.io.TFRecordWriter(str(tmp_path / "no" / "folder"))
    with pytest.raises(ValueError, match="compression_type"):
        tf.io.TFRecordWriter(str(tmp_path / "r"), "LZ4")


def test_records_of_numbers(tmp_path):
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    path = write(tmp_path / "r", [row.tobytes() for row in rows])
    data = tf.data.TFRecordDataset(path).map(lambda r: tf.reshape(tf.io.decode_raw(r, tf.float32), [3])).batch(4)
    assert data.element_spec == tf.TensorSpec([None, 3], tf.float32)
    assert data.get_single_element().numpy().tolist() == rows.tolist()
    assert tf.io.decode_raw([b"\x01\x02", b"\x03\x04"], tf.uint16, little_endian=False).numpy().tolist() == [
        [0x102], [0x304]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="multiple of 4"):
        tf.io.decode_raw(b"abc", tf.int32)


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_lines_however_long(tmp_path, kind):
    lines = [b"x" * 70_000, b"", b"y\r z", b"last"]
    data = b"\n".join(lines)
    packed = {"": lambda b: b, "GZIP": gzip.compress, "ZLIB": zlib.compress}[kind](data)
    (tmp_path / "t").write_bytes(packed)
    assert list(tf.data.TextLineDataset(tmp_path / "t", kind).as_numpy_iterator()) == lines
    fixed = tf.data.FixedLengthRecordDataset(str(tmp_path / "t"), 5, header_bytes=70_000, footer_bytes=1,
                                             compression_type=kind)
    assert b"".join(fixed.as_numpy_iterator()) == data[70_000:-1]


def test_list_files(tmp_path):
    for name in ("b.x", "a.x", "c.y"):
        (tmp_path / name).touch()
    sorted_ = Dataset.list_files([str(tmp_path / "*.x"), str(tmp_path / "c.*")], shuffle=False)
    assert [os.path.basename(f) for f in sorted_.as_numpy_iterator()] == [b"a.x", b"b.x", b"c.y"]
    assert len(sorted_) == 3
    orders = {tuple(Dataset.list_files(str(tmp_path / "*")).as_numpy_iterator()) for _ in range(40)}
    assert len(orders) > 1


def test_tables(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,0.5,x\n2,,y\n3,2.5,z\n4,3.5,w\n")
    data = tf.data.experimental.make_csv_dataset(
        str(tmp_path / "*.csv"), 2, label_name="a", select_columns=["a", "b"], num_epochs=1, shuffle=False)
    (features, labels), _ = list(data)
    assert list(features) == ["b"]
    assert features["b"].numpy().tolist() == [0.5, 0.0]
    assert labels.numpy().tolist() == [1, 2]
    endless = tf.data.experimental.make_csv_dataset(str(tmp_path / "t.csv"), 3, shuffle_seed=1)
    assert endless.element_spec["c"] == tf.TensorSpec([3], tf.string)
    assert len(list(endless.take(5))) == 5
    with pytest.raises(ValueError, match="label_name"):
        tf.data.experimental.make_csv_dataset(str(tmp_path / "t.csv"), 2, label_name="z")
    with pytest.raises(ValueError, match="select_columns"):
        tf.data.experimental.make_csv_dataset(str(tmp_path / "t.csv"), 2, select_columns=["z"])


# -- caches ---------------------------------------------------------------------------------------
def counted(calls, count=4):
    def generate():
        calls.append("begun")
        for i in range(count):
            yield i, [f"{i}"] * i
    return Dataset.from_generator(generate, output_signature=(
        tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.string)))


def plain(dataset):
    return [(int(a), b.tolist()) for a, b in dataset.as_numpy_iterator()]


@pytest.mark.parametrize("where", ["memory", "file"])
def test_a_cache_counts_when_it_is_whole(tmp_path, where):
    calls = []
    data = counted(calls).cache("" if where == "memory" else str(tmp_path / "sub" / "cache"))
    for _ in data:
        break
    assert plain(data.take(2)) == plain(data)[:2]
    assert len(calls) == 3
    first = plain(data)
    assert first == [(0, []), (1, [b"1"]), (2, [b"2"] * 2), (3, [b"3"] * 3)]
    assert plain(data.repeat(2)) == first * 2
    assert len(calls) == 3
    if where == "file":
        assert os.listdir(tmp_path / "sub") == ["cache.elements"]
        other = []
        assert plain(counted(other).cache(str(tmp_path / "sub" / "cache"))) == first
        assert other == []


def test_a_cache_keeps_an_order():
    data = Dataset.range(30).shuffle(30).cache()
    first = [int(x) for x in data]
    assert [int(x) for x in data] == first
    fused = Dataset.range(30).shuffle(30).cache().batch(30)
    assert list(fused)[0].numpy().tolist() == list(fused)[0].numpy().tolist()
    after = Dataset.range(30).cache().shuffle(30)
    assert [int(x) for x in after] != [int(x) for x in after]


@pytest.mark.parametrize("at", [0, 2, 4, 6])
def test_an_iterator_over_a_cache_goes_on(tmp_path, at):
    for where in ("", str(tmp_path / "cache")):
        data = Dataset.range(4).map(lambda x: x * 7).cache(where).repeat(2)
        iterator = iter(data)
        for _ in itertools.islice(iterator, at):
            pass
        saved = iterator._saved_values()
        rest = [int(x) for x in iterator]
        other = iter(Dataset.range(4).map(lambda x: x * 7).cache(where).repeat(2))
        other._restore_values(saved)
        assert [int(x) for x in other] == rest


# -- folders --------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [None, "GZIP", "ZLIB"])
def test_a_saved_dataset_comes_back(tmp_path, kind):
    rows = {"a": np.arange(6, dtype=np.int16).reshape(3, 2), "b": (["x", "", "z"], [True, False, True])}
    data = Dataset.from_tensor_slices(rows)
    data.save(tmp_path / "d", compression=kind)
    actual = Dataset.load(str(tmp_path / "d"))
    assert actual.element_spec == data.element_spec
    assert len(actual) == 3
    assert str(list(actual.as_numpy_iterator())) == str(list(data.as_numpy_iterator()))
    twice = Dataset.load(tmp_path / "d", reader_func=lambda parts: parts.repeat(2).flat_map(lambda part: part))
    assert [int(e["a"][0]) for e in twice] == [0, 2, 4] * 2
    iterator = iter(actual.batch(2))
    next(iterator)
    saved = iterator._saved_values()
    other = iter(actual.batch(2))
    other._restore_values(saved)
    assert next(other)["b"][0].numpy().tolist() == [b"z"]
    Dataset.range(2).save(tmp_path / "d")
    assert [int(x) for x in Dataset.load(tmp_path / "d", tf.TensorSpec([], tf.int64))] == [0, 1]
    with pytest.raises(ValueError, match="does not describe"):
        Dataset.load(tmp_path / "d", tf.TensorSpec([], tf.int32))


def test_a_dataset_that_fails_leaves_the_folder_as_it_was(tmp_path):
    Dataset.range(2).save(tmp_path / "d")
    bad = Dataset.range(4).map(lambda x: tf.debugging.check_numerics(1.0 / tf.cast(2 - x, tf.float32), "no number"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="no number"):
        bad.save(tmp_path / "d")
    index, elements = sorted(os.listdir(tmp_path / "d"))
    assert index == "dataset.json" and re.fullmatch(r"elements-[0-9a-f]{8}\.tfrecord", elements)
    assert [int(x) for x in Dataset.load(tmp_path / "d")] == [0, 1]
    with pytest.raises(tf.errors.NotFoundError, match="Could not find a saved dataset"):
        Dataset.load(tmp_path / "none")
    with pytest.raises(TypeError, match=r"Dataset.save writes tuples and dicts"):
        Dataset.range(4).window(2).save(tmp_path / "w")


# -- checkpoints ----------------------------------------------------------------------------------
SCRIPT = """
import json, sys
import twofold as tf
folder, count = sys.argv[1], int(sys.argv[2])
data = tf.data.Dataset.from_tensor_slices({"x": [[float(i)] for i in range(20)]}).shuffle(7).repeat(2)
iterator = iter(data.map(lambda d: d["x"] * 2.0, num_parallel_calls=2).batch(3).prefetch(2))
checkpoint = tf.train.Checkpoint(iterator=iterator)
latest = tf.train.latest_checkpoint(folder)
if latest:
    checkpoint.restore(latest).assert_consumed()
for _ in range(count):
    print(json.dumps(next(iterator).numpy().ravel().tolist()))
checkpoint.save(folder + "/at")
print(json.dumps([x.numpy().ravel().tolist() for x in iterator]))
"""


def test_another_process_goes_on(tmp_path):
    """Unseeded shuffling: what is left in one process is what the next one gives."""
    def run(count):
        done = subprocess.run(python("-c", SCRIPT, str(tmp_path), str(count)), capture_output=True,
                              text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]
    *first, rest = run(4)
    *second, rest_of_second = run(5)
    assert second + rest_of_second == rest
    every = [x for batch in first + rest for x in batch]
    assert sorted(every) == sorted([2.0 * i for i in range(20)] * 2)


def test_a_state_of_another_pipeline_is_refused():
    saved = iter(Dataset.range(9).shuffle(3).batch(2))._saved_values()
    for other in (Dataset.range(9).batch(2), Dataset.range(9).batch(2).shuffle(3), Dataset.range(9).shuffle(3)):
        iterator = iter(other)
        first = next(iterator)
        del first
        with pytest.raises(ValueError, match=r"another pipeline.*\['Batch', 'Shuffle', 'Range', 'fused'\]"):
            iterator._restore_values(saved)
        assert next(iterator) is not None
    with pytest.raises(tf.errors.DataLossError):
        iter(Dataset.range(9).shuffle(3).batch(2))._restore_values({"ITERATOR_STATE": b"12345678"})


def test_states_are_data():
    state = {"a": [1, None, True, 2.5, "x", b"\xff"], "b": (np.arange(6, dtype=np.int16).reshape(2, 3),),
             "c": np.array([[b"s", b""]], object), "d": np.zeros((0, 3), np.float32), "e": np.array(True)}
    actual = decoded(encoded(state))
    assert actual["a"] == state["a"]
    assert isinstance(actual["b"], tuple)
    for got, want in ((actual["b"][0], state["b"][0]), (actual["c"], state["c"]), (actual["d"], state["d"]),
                      (actual["e"], state["e"])):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        assert got.tolist() == want.tolist()
    with pytest.raises(tf.errors.DataLossError):
        decoded(encoded(state)[:-3])
    with pytest.raises(tf.errors.DataLossError):
        decoded(b"nonsense")
    with pytest.raises(TypeError, match="cannot hold"):
        encoded(object())
