"""Tables in functions, pipelines, checkpoints and saved models; what they hold says `test_library.py`."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from house.tree import ROOT
from saved_model.hostile import edited

import twofold as tf

Static, Values = tf.lookup.StaticHashTable, tf.lookup.KeyValueTensorInitializer
Mutable, Dense = tf.lookup.experimental.MutableHashTable, tf.lookup.experimental.DenseHashTable
TEXTS = tf.TensorSpec([None], tf.string)


def counting() -> Any:
    return Mutable(tf.string, tf.int64, 0)


def as_dict(table: Any) -> dict[Any, Any]:
    keys, values = table.export()
    return dict(zip(keys.numpy().tolist(), values.numpy().tolist(), strict=True))


def test_a_function_finds_what_the_table_holds_when_it_runs() -> None:
    table = counting()

    @tf.function(input_signature=[TEXTS])
    def count(words):
        for n in tf.range(tf.size(words)):
            table.insert(words[n], table.lookup(words[n]) + 1)
        table.remove(tf.constant(["the"]))
        return table.size()

    assert count(tf.constant(["the", "cat", "the", "dog"])).numpy() == 2
    table.insert(tf.constant(["cow"]), tf.constant([7], tf.int64))
    assert count(tf.constant(["cow", "dog"])).numpy() == 3
    assert as_dict(table) == {b"cat": 1, b"dog": 2, b"cow": 8}
    keys, values = tf.function(table.export)()
    assert keys.shape == values.shape == (3,)


def test_keys_come_and_go() -> None:
    """Against a dict, over many random changes."""
    rng = np.random.default_rng(0)
    table, known = Dense(tf.int64, tf.float32, [0.0, 0.0], -1, -2), {}
    for _ in range(40):
        keys = rng.integers(0, 60, 12)
        values = rng.normal(size=(12, 2)).astype(np.float32)
        table.insert(keys, values)
        known.update(zip(keys.tolist(), values, strict=True))
        gone = rng.integers(0, 60, 8)
        table.remove(gone)
        for key in gone.tolist():
            known.pop(key, None)
        expected = np.array([known.get(key, np.zeros(2, np.float32)) for key in range(60)])
        np.testing.assert_array_equal(table.lookup(tf.range(60, dtype=tf.int64)), expected, strict=True)
    assert table.size().numpy() == len(known)


def test_pipelines_look_up() -> None:
    table = Static(Values(["a", "b"], [1, 2]), -1)
    words = tf.data.Dataset.from_tensor_slices(["b", "x", "a"])
    assert [int(n) for n in words.map(table.lookup, num_parallel_calls=2)] == [2, -1, 1]
    numbers = tf.data.experimental.index_table_from_dataset(words, num_oov_buckets=1)
    assert numbers[tf.constant(["a", "?"])].numpy().tolist() == [2, 3]
    assert tf.data.experimental.index_table_from_dataset(words, vocab_size=2)[tf.constant("a")].numpy() == -1
    with pytest.raises(tf.errors.FailedPreconditionError):
        tf.data.experimental.index_table_from_dataset(words, vocab_size=4)
    with pytest.raises(ValueError, match="key, value"):
        tf.data.experimental.table_from_dataset(words)
    with pytest.raises(ValueError, match="default_value"):
        tf.data.experimental.table_from_dataset(words.map(lambda x: (x, x)))


def test_a_table_is_made_while_a_function_is_traced() -> None:
    made: list[Any] = []

    @tf.function
    def find(key):
        if not made:
            made.append(Static(Values(["a"], [1]), -1))
        return made[0][key]
    assert find(tf.constant("a")).numpy() == 1


def test_checkpoints_hold_what_changes(tmp_path: Path) -> None:
    table, pairs = counting(), Dense(tf.int64, tf.int64, -1, [0, 0], [-1, -1])
    table.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
    pairs.insert(tf.constant([[1, 2]], tf.int64), tf.constant([3], tf.int64))
    left_out = Mutable(tf.string, tf.int64, 0, checkpoint=False)
    path = tf.train.Checkpoint(table=table, pairs=pairs, left_out=left_out).save(tmp_path / "c")
    assert ("table/.ATTRIBUTES/table-keys", [2]) in tf.train.list_variables(path)
    again, others = counting(), Dense(tf.int64, tf.int64, -1, [0, 0], [-1, -1])
    again.insert(tf.constant(["gone"]), tf.constant([9], tf.int64))
    tf.train.Checkpoint(table=again, pairs=others).restore(path).assert_existing_objects_matched()
    assert as_dict(again) == {b"a": 1, b"b": 2}
    assert others.lookup(tf.constant([[1, 2], [2, 1]], tf.int64)).numpy().tolist() == [3, -1]
    with pytest.raises(ValueError, match="no keys int64"):
        tf.train.Checkpoint(table=Mutable(tf.int64, tf.int64, 0)).restore(path)


def test_checkpoints_of_tensorflow_are_read() -> None:
    """`data/tables/c-1`: of `table` and `dense`, written by `make_tables.py`."""
    table, dense = counting(), Dense(tf.string, tf.int64, -1, "", "$", initial_num_buckets=4)
    folder = ROOT / "tests" / "front" / "data" / "tables"
    tf.train.Checkpoint(table=table, dense=dense).restore(folder / "c-1").expect_partial()
    assert as_dict(table) == {b"a": 1, b"b": 2} and as_dict(dense) == {b"c": 3}


class Words(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.static = Static(Values(["a", "b"], [0.5, 1.5]), -1.0)
        self.vocabulary = tf.lookup.StaticVocabularyTable(Values(["a", "b"], [0, 1], value_dtype=tf.int64), 2)
        self.counts = counting()
        self.dense = Dense(tf.string, tf.int64, -1, "", "$")

    @tf.function(input_signature=[TEXTS])
    def find(self, keys):
        return self.static[keys], self.vocabulary[keys], self.dense.lookup(keys)

    @tf.function(input_signature=[TEXTS])
    def count(self, keys):
        self.counts.insert(keys, self.counts.lookup(keys) + 1)
        return self.counts.size()


def test_saved_models_hold_tables(tmp_path: Path) -> None:
    words, keys = Words(), tf.constant(["b", "x"])
    words.count(keys)
    words.dense.insert(keys, tf.constant([5, 6], tf.int64))
    tf.saved_model.save(words, tmp_path / "1")
    loaded = tf.saved_model.load(tmp_path / "1")
    for actual, expected in zip(loaded.find(keys), words.find(keys), strict=True):
        np.testing.assert_array_equal(actual, expected, strict=True)
    assert loaded.count(tf.constant(["b", "y"])).numpy() == 3
    assert as_dict(loaded.counts) == {b"b": 2, b"x": 1, b"y": 1} and as_dict(words.counts) == {b"b": 1, b"x": 1}
    assert loaded.static[keys].numpy().tolist() == [1.5, -1.0]
    tf.saved_model.save(loaded, tmp_path / "2")
    assert as_dict(tf.saved_model.load(tmp_path / "2").counts) == as_dict(loaded.counts)
    with pytest.raises(AssertionError, match="untracked"):
        holder = tf.Module()
        holder.find = words.find
        tf.saved_model.save(holder, tmp_path / "3")


@pytest.mark.parametrize("change", [{"form": "other"}, {"value_dtype": "int64"}, {"arrays": "tables/none"},
                                    {"key_dtype": "float32"}, {"checkpoint": 1}, {"name": 5}])
def test_damaged_tables_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    module = tf.Module()
    module.table = Static(Values(["a", "b"], [0.5, 1.5]), -1.0)
    tf.saved_model.save(module, tmp_path)

    def alter(body: dict[str, Any]) -> None:
        next(node for node in body["nodes"] if node["kind"] == "table").update(change)
    edited(tmp_path, alter)
    with pytest.raises(tf.errors.DataLossError):
        tf.saved_model.load(tmp_path)


def test_copies_have_contents_of_their_own() -> None:
    table = counting()
    table.insert(tf.constant(["a"]), tf.constant([1], tf.int64))
    for again in (copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
        again.insert(tf.constant(["a", "b"]), tf.constant([2, 3], tf.int64))
        assert as_dict(again) == {b"a": 2, b"b": 3} and as_dict(table) == {b"a": 1}
    with pytest.raises(tf.errors.InvalidArgumentError, match="empty_key"):
        pickle.loads(pickle.dumps(Dense(tf.string, tf.int64, 0, "", "-"))).lookup(tf.constant(["a", ""]))


def test_a_handle_that_is_none_is_refused() -> None:
    from twofold.lookup._contents import table_find, table_size
    with pytest.raises(tf.errors.InvalidArgumentError, match="no handle"):
        table_size(tf.constant("MutableHashTable at 0x0"))
    table = Static(Values(["a"], [1]), -1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be int32"):
        table_find(table._handle, tf.constant(["a"]), tf.constant(0.5), 0, [])




@pytest.mark.parametrize(("dtype", "shape"), [("int64", ()), ("uint8", ()), ("int32", (3,)), ("string", ()),
                                              ("string", (2,))])
def test_many_keys_against_a_dict(dtype: str, shape: tuple[int, ...]) -> None:
    """A table grows, is emptied again, and numbers its rows anew; texts have all lengths about eight."""
    rng = np.random.default_rng(0)

    def some(count: int) -> np.ndarray:
        numbers = rng.integers(2, 200 if dtype == "uint8" else 900, (count, *shape))
        if shape:
            numbers[:, 1:] %= 3
        if dtype != "string":
            return numbers.astype(dtype)
        texts = np.empty(numbers.shape, object)
        texts.reshape(-1)[:] = [b"k%d" % n + bytes(n % 13) for n in numbers.ravel().tolist()]
        return texts

    def spelt(keys: np.ndarray) -> list[Any]:
        return [tuple(key) if shape else key for key in keys.tolist()]
    never = np.array([0, 1], dtype) if dtype != "string" else np.array([b"", b"-"], object)
    table = Dense(dtype, tf.string, b"?", *(np.full(shape, n, never.dtype) for n in never))
    known: dict[Any, bytes] = {}
    for count, gone in ((3, 1), (700, 0), (20, 600), (5, 5), (900, 300)):
        keys = some(count)
        values = [b"%d" % n for n in range(count)]
        table.insert(keys, values)
        known.update(zip(spelt(keys), values, strict=True))
        removed = some(gone)
        table.remove(removed)
        for key in spelt(removed):
            known.pop(key, None)
        asked = some(500)
        assert table.lookup(asked).numpy().tolist() == [known.get(key, b"?") for key in spelt(asked)]
        keys, values = table.export()
        assert spelt(keys.numpy()) == list(known) and values.numpy().tolist() == list(known.values())


@pytest.mark.parametrize("dtype", ["float64", "float16", "bool", "complex128"])
@pytest.mark.parametrize("size", [(), (3,)])
def test_values_of_all_sizes(dtype: str, size: tuple[int, ...]) -> None:
    values = np.arange(10 * int(np.prod(size))).reshape(10, *size).astype(dtype)
    table = Mutable(tf.int64, dtype, np.zeros(size, dtype))
    table.insert(tf.range(10, dtype=tf.int64), values)
    asked = np.array([3, 99, 0, 3])
    each = np.ones((4, *size), dtype)
    np.testing.assert_array_equal(table.lookup(asked), np.stack([values[3], np.zeros(size), values[0], values[3]]))
    np.testing.assert_array_equal(table.lookup(asked, each), np.stack([values[3], each[1], values[0], values[3]]))


def test_keys_of_classes_derived_from_bytes() -> None:
    class Text(bytes):
        pass
    from twofold._front.iteration import tensor_of
    texts = np.array([Text(b"a"), b"b"], object)
    table = counting()
    table.insert(tensor_of(texts), tf.constant([1, 2], tf.int64))
    del texts
    assert as_dict(table) == {b"a": 1, b"b": 2} and table[tf.constant(["b", "a"])].numpy().tolist() == [2, 1]
    hashes = tf.strings.to_hash_bucket_fast(tensor_of(np.array([Text(b"a"), b"b"], object)), 9)
    assert hashes.numpy().tolist() == tf.strings.to_hash_bucket_fast(["a", "b"], 9).numpy().tolist()


def test_an_initializer_fills_the_table_itself():
    class None_(tf.lookup.KeyValueTensorInitializer):
        key_dtype, value_dtype = "string", tf.int64

        def __init__(self):
            """Has no keys."""

        def initialize(self, table):
            """Leaves the table empty."""

    table = tf.lookup.StaticHashTable(None_(), -1)
    assert (table.key_dtype, table.value_dtype, int(table.size())) == (tf.string, tf.int64, 0)
