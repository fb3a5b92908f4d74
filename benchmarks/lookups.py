"""Tables of keys and values, hashes of strings, and rows that a variable's table changes, eager.

A peer is a class with one method a case, as in `eager.py`. PyTorch has neither tables nor strings; what it has is a
change of rows in place. TWOFOLD_BENCH_SMALL=1 has small sizes, which show that all of it runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from worker import SMALL

from eager import Built

KEYS = 1_000 if SMALL else 1_000_000  # of the large table
FEW_KEYS = 100 if SMALL else 10_000
ASKED = 2_000 if SMALL else 1_000_000
WORDS = 500 if SMALL else 100_000
TABLE = (500, 64) if SMALL else (1_000_000, 64)
ROWS = 128

PROCESS_CASES: dict[str, tuple[str, bool]] = {}

CASES = {
    "find_static": ("1e6 int64 keys, all known, in a static table of 1e6", 0.0),
    "find_static_few": ("1e6 int64 keys, a quarter known, in a static table of 1e4", 0.0),
    "find_mutable": ("1e6 int64 keys, a quarter known, in a mutable table of 1e6 floats", 0.0),
    "find_dense": ("1e6 int64 keys, a quarter known, in a dense table of 1e6", 0.0),
    "insert": ("1e6 int64 keys into an empty mutable table", 0.0),
    "find_strings": ("1e5 words, all known, in a static table of 1e5", 0.0),
    "find_string_values": ("1e5 int64 keys in a static table of 1e5 words", 0.0),
    "hash_fast": ("1e5 words into buckets, FarmHash", 0.0),
    "hash_strong": ("1e5 words into buckets, SipHash", 0.0),
    "rows_in_place": ("128 rows added to a variable of 1e6 x 64", 0.0),
}


def keys(count: int) -> np.ndarray:
    """Different keys."""
    return np.random.default_rng(0).permutation(4 * count)[:count].astype(np.int64)


def asked(count: int, known: bool) -> np.ndarray:
    """Keys to be looked up: of a table of `count`, all known ones, or a quarter."""
    rng = np.random.default_rng(1)
    return rng.choice(keys(count), ASKED) if known else rng.integers(0, 4 * count, ASKED)


def words() -> np.ndarray:
    """Different words of 5 to 9 letters."""
    return np.array([b"word%d" % n for n in np.random.default_rng(2).permutation(WORDS)], object)


def rows() -> np.ndarray:
    """Numbers of rows."""
    return np.random.default_rng(3).integers(0, TABLE[0], ROWS)


class Torch:
    """PyTorch."""

    def __init__(self) -> None:
        import torch

        self.torch, self.version = torch, torch.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return value.numpy()

    def rows_in_place(self) -> Built:
        torch = self.torch
        names = {"v": torch.zeros(TABLE), "n": torch.tensor(rows()), "x": torch.ones(ROWS, TABLE[1])}
        return "v.index_add_(0, n, x)", names, "v.zero_().index_add_(0, n, x)[n]"


class TensorFlow:
    """TensorFlow, eager."""

    def __init__(self) -> None:
        import tensorflow as tf

        self.tf, self.version = tf, tf.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        array = value.numpy()
        return np.array([len(text) for text in array], np.int64) if array.dtype == object else array

    def _static(self, of: Any, values: Any, default: Any) -> Any:
        tf = self.tf
        pairs = tf.lookup.KeyValueTensorInitializer(tf.constant(of), tf.constant(values))
        return tf.lookup.StaticHashTable(pairs, default)

    def find_static(self) -> Built:
        table = self._static(keys(KEYS), np.arange(KEYS), -1)
        return "f(x)", {"f": table.lookup, "x": self.tf.constant(asked(KEYS, True))}, "f(x)"

    def find_static_few(self) -> Built:
        table = self._static(keys(FEW_KEYS), np.arange(FEW_KEYS), -1)
        return "f(x)", {"f": table.lookup, "x": self.tf.constant(asked(FEW_KEYS, False))}, "f(x)"

    def find_mutable(self) -> Built:
        tf = self.tf
        table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, -1.0)
        table.insert(tf.constant(keys(KEYS)), tf.range(KEYS, dtype=tf.float32))
        return "f(x)", {"f": table.lookup, "x": tf.constant(asked(KEYS, False))}, "f(x)"

    def find_dense(self) -> Built:
        tf = self.tf
        table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, empty_key=-1, deleted_key=-2)
        table.insert(tf.constant(keys(KEYS)), tf.range(KEYS, dtype=tf.int64))
        return "f(x)", {"f": table.lookup, "x": tf.constant(asked(KEYS, False))}, "f(x)"

    def insert(self) -> Built:
        tf = self.tf

        def fill(of: Any, values: Any) -> Any:
            table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1)
            table.insert(of, values)
            return table
        names = {"f": fill, "x": tf.constant(keys(KEYS)), "y": tf.range(KEYS, dtype=tf.int64)}
        return "f(x, y)", names, "f(x, y).lookup(x)"

    def find_strings(self) -> Built:
        table = self._static(words(), np.arange(WORDS), -1)
        numbers = np.random.default_rng(4).integers(0, WORDS, WORDS)
        new = [bytes(bytearray(word)) for word in words()[numbers]]  # as texts from a file: no object of the table's
        return "f(x)", {"f": table.lookup, "x": self.tf.constant(new)}, "f(x)"

    def find_string_values(self) -> Built:
        table = self._static(np.arange(WORDS), words(), b"")
        numbers = np.random.default_rng(4).integers(0, WORDS, WORDS)
        return "f(x)", {"f": table.lookup, "x": self.tf.constant(numbers)}, "f(x)"

    def hash_fast(self) -> Built:
        return "f(x, 1000)", {"f": self.tf.strings.to_hash_bucket_fast, "x": self.tf.constant(words())}, "f(x, 1000)"

    def hash_strong(self) -> Built:
        names = {"f": self.tf.strings.to_hash_bucket_strong, "x": self.tf.constant(words())}
        return "f(x, 1000, [1, 2])", names, "f(x, 1000, [1, 2])"

    def rows_in_place(self) -> Built:
        tf = self.tf
        slices = tf.IndexedSlices(tf.ones([ROWS, TABLE[1]]), tf.constant(rows()))
        names = {"v": tf.Variable(tf.zeros(TABLE)), "d": slices, "zeros": tf.zeros(TABLE), "tf": tf}
        return "v.scatter_add(d)", names, "tf.gather(v.assign(zeros).scatter_add(d), d.indices)"


class Twofold(TensorFlow):
    """The same with twofold."""

    def __init__(self) -> None:
        import twofold

        self.tf, self.version = twofold, twofold.__version__


PEERS = {"torch": Torch, "tensorflow": TensorFlow, "twofold": Twofold}
