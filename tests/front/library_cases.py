"""Calls of tables, hashes, files and quantisation that TensorFlow has made and twofold makes: both run what is here.

`python tests/front/library_cases.py FILE`, where TensorFlow 2.21 is installed, writes what TensorFlow gives; the tests
compare with `data/library.json`, which was written so. Of a call that is refused there is the class of the error.
"""

from __future__ import annotations

import gzip
import json
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable
from typing import Any

Case = Callable[[Any], Any]

# -- tables -------------------------------------------------------------------------------------------
TERMS = "emerson 10\nlake 20\r\npalmer 30"


_FOLDER = tempfile.TemporaryDirectory()


def _file(text: str) -> str:
    path = os.path.join(_FOLDER.name, str(len(os.listdir(_FOLDER.name))))  # TensorFlow shares tables of one file
    with open(path, "w", newline="") as file:
        file.write(text)
    return path


def _static(tf: Any, keys: Any, values: Any, default: Any) -> Any:
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)


def _lines(tf: Any, text: str, *columns: Any, **settings: Any) -> Any:
    return tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(_file(text), *columns, **settings), -1)


def _vocabulary(tf: Any, keys: Any, values: Any, buckets: int, **settings: Any) -> Any:
    return tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(keys, values, value_dtype=tf.int64), buckets, **settings)


def _mutable(tf: Any, value: Any = -1, value_dtype: str = "int64") -> Any:
    return tf.lookup.experimental.MutableHashTable(tf.string, tf.as_dtype(value_dtype), value)


def _changed(tf: Any) -> Any:
    table = _mutable(tf)
    table.insert(tf.constant(["a", "b", "a"]), tf.constant([1, 2, 3], tf.int64))
    table.remove(tf.constant(["b", "never"]))
    table.insert(tf.constant([["c"]]), tf.constant([[4]], tf.int64))
    return table


def _dense(tf: Any, **settings: Any) -> Any:
    return tf.lookup.experimental.DenseHashTable(tf.string, tf.int64, -1, "", "$", **settings)


def _pairs(tf: Any) -> Any:
    table = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.float32, [0.0, 0.5], tf.constant([-1, -1], tf.int64), tf.constant([-2, -2], tf.int64))
    table.insert(tf.constant([[1, 2], [3, 4]], tf.int64), tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    return table


WHOLE, NUMBER = -2, -1
WORDS = ["a", "lake", "king crimson", "x" * 40, "", "é"]
TABLES: dict[str, Case] = {
    "static": lambda tf: _static(tf, ["a", "b"], [1, 2], -1).lookup(tf.constant([["a", "z"], ["b", "a"]])),
    "static floats": lambda tf: _static(tf, tf.constant([3, 5]), [0.5, 1.5], -1.0)[tf.constant([5, 4])],
    "static strings": lambda tf: _static(tf, tf.constant([3, 5], tf.int64), ["x", "y"], "?")[
        tf.constant([5, 4], tf.int64)],
    "static size": lambda tf: _static(tf, ["a", "a"], [1, 1], -1).size(),
    "static twice": lambda tf: _static(tf, ["a", "a"], [1, 2], -1),
    "static of other keys": lambda tf: _static(tf, ["a"], [1], -1).lookup(tf.constant([1])),
    "static default": lambda tf: _static(tf, ["a"], [1], "x"),
    "static vector": lambda tf: _static(tf, ["a"], [1], [1, 2]),
    "static of sizes": lambda tf: _static(tf, ["a", "b"], [1, 2, 3], -1),
    "file": lambda tf: _lines(tf, TERMS, tf.string, 0, tf.int64, 1, delimiter=" ")[
        tf.constant(["lake", "palmer", "x"])],
    "file lines": lambda tf: _lines(tf, TERMS, tf.string, WHOLE, tf.int64, NUMBER)[tf.constant(["lake 20", "lake"])],
    "file offset": lambda tf: _lines(tf, TERMS, tf.string, WHOLE, tf.int64, NUMBER, value_index_offset=5)[
        tf.constant("palmer 30")],
    "file part": lambda tf: _lines(tf, TERMS, tf.string, WHOLE, tf.int64, NUMBER, vocab_size=2).size(),
    "file too short": lambda tf: _lines(tf, TERMS, tf.string, WHOLE, tf.int64, NUMBER, vocab_size=9),
    "file with nothing": lambda tf: _lines(tf, "a\n\nb", tf.string, WHOLE, tf.int64, NUMBER),
    "file of few columns": lambda tf: _lines(tf, "a 1\nb", tf.string, 0, tf.int64, 1, delimiter=" "),
    "file of no numbers": lambda tf: _lines(tf, "a 1\nb x", tf.string, 0, tf.int64, 1, delimiter=" "),
    "file delimiter": lambda tf: _lines(tf, TERMS, tf.string, 0, tf.int64, 1, delimiter="ab"),
    "file missing": lambda tf: tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer("/none/such", tf.string, WHOLE, tf.int64, NUMBER), -1),
    "file name": lambda tf: tf.lookup.TextFileInitializer("", tf.string, WHOLE, tf.int64, NUMBER),
    "file dtype": lambda tf: tf.lookup.TextFileInitializer("x", tf.string, NUMBER, tf.int64, NUMBER),
    "file column": lambda tf: tf.lookup.TextFileInitializer("x", tf.string, -3, tf.int64, NUMBER),
    "vocabulary": lambda tf: _vocabulary(tf, ["a", "lake"], [0, 1], 3)[tf.constant(WORDS)],
    "vocabulary size": lambda tf: _vocabulary(tf, ["a", "lake"], [0, 1], 3).size(),
    "vocabulary of none": lambda tf: tf.lookup.StaticVocabularyTable(None, 3)[tf.constant(WORDS)],
    "vocabulary of integers": lambda tf: _vocabulary(tf, tf.constant([5, 6], tf.int64), [0, 1], 3,
                                                     lookup_key_dtype=tf.int32)[tf.constant([5, -7, 8, 9])],
    "vocabulary of other keys": lambda tf: _vocabulary(tf, ["a"], [0], 3)[tf.constant([1])],
    "vocabulary without buckets": lambda tf: _vocabulary(tf, ["a"], [0], 0),
    "vocabulary of int32": lambda tf: tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(["a"], [0]), 1),
    "vocabulary of floats": lambda tf: _vocabulary(tf, [1.0], [0], 1),
    "mutable": lambda tf: _changed(tf).lookup(tf.constant([["a", "b"], ["c", "d"]])),
    "mutable size": lambda tf: _changed(tf).size(),
    "mutable defaults": lambda tf: _changed(tf).lookup(tf.constant(["a", "b"]), tf.constant([7, 8], tf.int64)),
    "mutable default": lambda tf: _changed(tf).lookup(tf.constant(["a", "b"]), tf.constant(7, tf.int64)),
    "mutable wrong defaults": lambda tf: _changed(tf).lookup(tf.constant(["a"]), tf.constant([7, 8], tf.int64)),
    "mutable of sizes": lambda tf: _mutable(tf).insert(tf.constant(["a"]), tf.constant([1, 2], tf.int64)),
    "mutable of dtypes": lambda tf: _mutable(tf).insert(tf.constant(["a"]), tf.constant([1], tf.int32)),
    "mutable of keys": lambda tf: _mutable(tf).lookup(tf.constant([1])),
    "mutable removes keys": lambda tf: _mutable(tf).remove(tf.constant([1])),
    "mutable vectors": lambda tf: _mutable(tf, [1.0, 2.0], "float32").lookup(tf.constant([["a"]])),
    "mutable of shapes": lambda tf: _mutable(tf, [1.0, 2.0], "float32").insert(
        tf.constant(["a", "b"]), tf.constant([1.0, 2.0])),
    "dense": lambda tf: _pairs(tf).lookup(tf.constant([[3, 4], [4, 3]], tf.int64)),
    "dense size": lambda tf: _pairs(tf).size(),
    "dense of shapes": lambda tf: _pairs(tf).lookup(tf.constant([[3, 4, 5]], tf.int64)),
    "dense empty": lambda tf: _dense(tf).lookup(tf.constant([""])),
    "dense deleted": lambda tf: _dense(tf).insert(tf.constant(["$"]), tf.constant([1], tf.int64)),
    "dense buckets": lambda tf: _dense(tf, initial_num_buckets=7),
    "dense keys": lambda tf: tf.lookup.experimental.DenseHashTable(tf.string, tf.int64, -1, "a", "a"),
}

# -- hashes -------------------------------------------------------------------------------------------
TEXTS = ["", "a", "four", "eight by", "sixteen letters.", "x" * 17, "y" * 33, "z" * 65, "é" * 70, "w" * 129]
HASHES: dict[str, Case] = {
    "bucket": lambda tf: tf.strings.to_hash_bucket(TEXTS, 2**62),
    "bucket fast": lambda tf: tf.strings.to_hash_bucket_fast(TEXTS, 2**62),
    "bucket strong": lambda tf: tf.strings.to_hash_bucket_strong(TEXTS, 2**62, [1, -2]),
    "bucket of few": lambda tf: tf.strings.to_hash_bucket_fast([TEXTS[:3], TEXTS[3:6]], 5),
    "bucket none": lambda tf: tf.strings.to_hash_bucket_fast(TEXTS, 0),
    "bucket key": lambda tf: tf.strings.to_hash_bucket_strong(TEXTS, 5, [1]),
    "fingerprint": lambda tf: tf.fingerprint([[1, 2], [3, 4]]),
    "fingerprint bytes": lambda tf: tf.fingerprint([True, False]),
    "fingerprint texts": lambda tf: tf.fingerprint(["a", "bcd"]),
    "fingerprint rows of texts": lambda tf: tf.fingerprint([["a", "b"], ["c", "d"]]),
    "fingerprint deep": lambda tf: tf.fingerprint([[[1.5], [2.5]], [[0.5], [-1.0]]]),
    "fingerprint scalar": lambda tf: tf.fingerprint(1),
    "fingerprint method": lambda tf: tf.fingerprint([1], method="other"),
}

# -- sparse tensors as strings --------------------------------------------------------------------------
def _sparse(tf: Any, values: Any = (1.5, 2.5, 3.5), shape: Any = (3, 4)) -> Any:
    return tf.SparseTensor([[0, 1], [0, 3], [2, 0]], tf.constant(values), shape)


def _entries(tf: Any) -> Any:
    return tf.stack([tf.io.serialize_sparse(tf.SparseTensor([[1], [2]], ["ab", ""], [3])),
                     tf.io.serialize_sparse(tf.SparseTensor([[4]], ["c" * 200], [5]))])


SPARSE: dict[str, Case] = {
    "sparse": lambda tf: tf.io.serialize_sparse(_sparse(tf)),
    "sparse texts": lambda tf: tf.io.serialize_sparse(_sparse(tf, ("ab", "", "c" * 200))),
    "sparse rows": lambda tf: tf.io.serialize_many_sparse(_sparse(tf, (True, False, True))),
    "sparse empty": lambda tf: tf.io.serialize_many_sparse(
        tf.SparseTensor(tf.zeros([0, 2], tf.int64), tf.zeros([0]), [2, 4])),
    "sparse vector": lambda tf: tf.io.serialize_many_sparse(tf.SparseTensor([[1]], [1.0], [3])),
    "sparse order": lambda tf: tf.io.serialize_many_sparse(tf.SparseTensor([[2, 0], [0, 1]], [1.0, 2.0], [3, 4])),
    "sparse outside": lambda tf: tf.io.serialize_many_sparse(tf.SparseTensor([[5, 0]], [1.0], [3, 4])),
    "sparse of dense": lambda tf: tf.io.serialize_sparse(tf.ones([2])),
    "sparse read": lambda tf: tf.io.deserialize_many_sparse(_entries(tf), tf.string),
    "sparse read rows": lambda tf: tf.io.deserialize_many_sparse(
        tf.io.serialize_many_sparse(_sparse(tf)), tf.float32, rank=2),
    "sparse read dtype": lambda tf: tf.io.deserialize_many_sparse(_entries(tf), tf.float32),
    "sparse read rank": lambda tf: tf.io.deserialize_many_sparse(_entries(tf), tf.string, rank=3),
    "sparse read ranks": lambda tf: tf.io.deserialize_many_sparse(
        tf.concat([_entries(tf), [tf.io.serialize_sparse(_sparse(tf, ("a", "b", "c")))]], 0), tf.string),
    "sparse read others": lambda tf: tf.io.deserialize_many_sparse([["a", "b", "c"]], tf.string),
    "sparse read none": lambda tf: tf.io.deserialize_many_sparse(tf.zeros([0, 3], tf.string), tf.string),
}

# -- queues -------------------------------------------------------------------------------------------
def _fifo(tf: Any, **settings: Any) -> Any:
    return tf.queue.FIFOQueue(3, [tf.int32, tf.string], [[], [2]], **settings)


def _filled(tf: Any, queue: Any, *values: Any, **named: Any) -> Any:
    queue.enqueue_many(named or values)
    return queue


def _taken(queue: Any) -> Any:
    return queue.dequeue_many(2), queue.dequeue(), queue.size()


def _shuffled(tf: Any) -> Any:
    tf.random.set_seed(1)  # which a process has or has not set before
    return _filled(tf, tf.queue.RandomShuffleQueue(30, 2, [tf.int32], [[]], seed=1), list(range(20)))


def _padded(tf: Any) -> Any:
    queue = tf.queue.PaddingFIFOQueue(5, [tf.string, tf.float32], [[None, 2], []])
    queue.enqueue((tf.constant([["a", "b"]]), 1.0))
    queue.enqueue((tf.constant([["c", "d"], ["e", "f"]]), 2.0))
    return queue


def _prioritised(tf: Any) -> Any:
    queue = tf.queue.PriorityQueue(10, [tf.string], [[]])
    return _filled(tf, queue, tf.constant([5, 1, 3], tf.int64), ["five", "one", "three"])


def _closed(tf: Any) -> Any:
    queue = _filled(tf, _fifo(tf), [1, 2], [["a", "b"], ["c", "d"]])
    queue.close()
    return queue


QUEUES: dict[str, Case] = {
    "queue": lambda tf: (_closed(tf).dequeue(), _closed(tf).dequeue_many(2), _closed(tf).dequeue_up_to(9)),
    "queue size": lambda tf: (_closed(tf).size(), _closed(tf).is_closed(), _fifo(tf).is_closed()),
    "queue end": lambda tf: _closed(tf).dequeue_many(3),
    "queue closed": lambda tf: _closed(tf).enqueue((1, ["a", "b"])),
    "queue names": lambda tf: _filled(tf, _fifo(tf, names=["a", "b"]), a=[1], b=[["c", "d"]]).dequeue(),
    "queue no names": lambda tf: _fifo(tf, names=["a", "b"]).enqueue((1, ["c", "d"])),
    "queue other names": lambda tf: _fifo(tf, names=["a", "b"]).enqueue({"a": 1, "c": ["c", "d"]}),
    "queue components": lambda tf: _fifo(tf).enqueue(1),
    "queue shapes": lambda tf: _fifo(tf).enqueue((1, ["a"])),
    "queue scalar": lambda tf: _fifo(tf).enqueue_many((1, [["a", "b"]])),
    "queue of any shape": lambda tf: tf.queue.FIFOQueue(3, tf.int32).dequeue_many(1),
    "queue shuffled": lambda tf: _taken(_shuffled(tf)),
    "queue shuffled least": lambda tf: tf.queue.RandomShuffleQueue(10, 11, tf.int32),
    "queue padded": lambda tf: _padded(tf).dequeue_many(2),
    "queue padded one": lambda tf: _padded(tf).dequeue(),
    "queue prioritised": lambda tf: _taken(_prioritised(tf)),
}

# -- characters ---------------------------------------------------------------------------------------
BAD = b"G\xffa\xe4\xbdb\n\x7f\xed\xa0\x80\xef\xbf\xbd"
PAIRS = b"\x00a\xd8=\xde\n\xd8=\x00b"
CODES = [71, -1, 0x110000, 0xD800, 0xFFFD, 0x1F600]
CHARACTERS: dict[str, Case] = {
    **{f"decode {errors}": (lambda tf, errors=errors: tf.strings.unicode_decode_with_offsets(
        BAD, "UTF-8", errors=errors, replacement_char=63)) for errors in ("replace", "ignore", "strict", "other")},
    "decode control": lambda tf: tf.strings.unicode_decode(BAD, "UTF-8", replace_control_characters=True),
    "decode strict control": lambda tf: tf.strings.unicode_decode(b"a\nb", "UTF-8", "strict",
                                                                  replace_control_characters=True),
    "decode no control": lambda tf: tf.strings.unicode_decode_with_offsets(
        b"a\nb", "UTF-8", "ignore", replace_control_characters=True),
    "decode 16": lambda tf: tf.strings.unicode_decode_with_offsets(b"\x00a\xd8=\xde\n\xd8=\x00b", "UTF-16-BE"),
    "decode 16 odd": lambda tf: tf.strings.unicode_decode_with_offsets(b"\x00a\xd8", "UTF-16-BE"),
    "decode 32": lambda tf: tf.strings.unicode_decode_with_offsets(b"\x00\x00\x00a\x00\x11\x00\x00", "UTF-32-BE"),
    "decode latin": lambda tf: tf.strings.unicode_decode_with_offsets(b"a\xe9b", "latin1"),
    "decode empty": lambda tf: tf.strings.unicode_decode("", "UTF-8"),
    "decode unknown": lambda tf: tf.strings.unicode_decode("a", "foo"),
    "decode to no code": lambda tf: tf.strings.unicode_decode("a", "UTF-8", replacement_char=0x110000),
    "split characters": lambda tf: tf.strings.unicode_split_with_offsets(b"G\xc3\xb6\xf0\x9f\x98\x8a\xff", "UTF-8"),
    "split 16": lambda tf: tf.strings.unicode_split(b"\0a\0b", "UTF-16-BE"),
    "split latin": lambda tf: tf.strings.unicode_split(b"a\xe9", "latin1"),
    **{f"encode {errors}": (lambda tf, errors=errors: tf.strings.unicode_encode(
        CODES, "UTF-8", errors=errors, replacement_char=63)) for errors in ("replace", "ignore", "strict")},
    "encode 16": lambda tf: tf.strings.unicode_encode([[97, 0x1F600], [98, 99]], "UTF-16-BE"),
    "encode latin": lambda tf: tf.strings.unicode_encode([97], "latin1"),
    "encode scalar": lambda tf: tf.strings.unicode_encode(97, "UTF-8"),
    "transcode": lambda tf: tf.strings.unicode_transcode(["a\xe9", b"\xff"], "UTF-8", "UTF-16-BE"),
    "transcode 32": lambda tf: tf.strings.unicode_transcode("aé", "UTF-8", "UTF-32-BE"),
    "transcode Japanese": lambda tf: tf.strings.unicode_transcode([b"\x82\xa0"], "shift_jis", "UTF-8"),
    "transcode latin": lambda tf: tf.strings.unicode_transcode("a", "UTF-8", "latin1"),
    "transcode strict": lambda tf: tf.strings.unicode_transcode(BAD, "UTF-8", "UTF-8", errors="strict"),
    "transcode control": lambda tf: tf.strings.unicode_transcode(BAD, "UTF-8", "UTF-8",
                                                                 replace_control_characters=True),
    "script": lambda tf: tf.strings.unicode_script([-1, 0, *range(31, 0x110000, 7919), 0x10FFFF, 0x110000]),
}

# -- words --------------------------------------------------------------------------------------------
WORDS_2 = [["A", "B", "C", "D"], ["E", "F", "G", "H"]]
JOINED: dict[str, Case] = {
    "ngrams": lambda tf: tf.strings.ngrams(WORDS_2[0], 2), "ngrams short": lambda tf: tf.strings.ngrams(["A", "B"], 3),
    "ngrams rows": lambda tf: tf.strings.ngrams(WORDS_2, [2, 3], pad_values=("<", ">"), padding_width=1),
    "ngrams kept": lambda tf: tf.strings.ngrams(["A", "B"], [3, 5], preserve_short_sequences=True),
    "ngrams not kept": lambda tf: tf.strings.ngrams(["A", "B", "C"], [2, 5], preserve_short_sequences=True),
    "ngrams wide": lambda tf: tf.strings.ngrams(["A", "B"], (1, 3), pad_values="*", padding_width=5, separator="-"),
    "ngrams padded": lambda tf: tf.strings.ngrams(["A", "B"], [1, 4], pad_values="p", padding_width=1),
    "ngrams padded full": lambda tf: tf.strings.ngrams(["A", "B"], 3, pad_values="p"),
    "ngrams of none": lambda tf: tf.strings.ngrams(tf.zeros([0], tf.string), 2, pad_values="x"),
    "ngrams 0": lambda tf: tf.strings.ngrams(["A"], 0), "ngrams scalar": lambda tf: tf.strings.ngrams("A", 1),
    "ngrams no pads": lambda tf: tf.strings.ngrams(["A"], 2, padding_width=2),
    "ngrams padding 0": lambda tf: tf.strings.ngrams(["A"], 2, pad_values="p", padding_width=0),
    "join": lambda tf: tf.strings.unsorted_segment_join(["this", "a", "test", "is"], [0, 1, 0, 1], 2, separator=" "),
    "join rows": lambda tf: tf.strings.unsorted_segment_join(WORDS_2, [0, 2], 3, separator=":"),
    "join deep": lambda tf: tf.strings.unsorted_segment_join([["a", "b"], ["c", "d"]], [[0, 1], [1, 0]], 2, "-"),
    "join negative": lambda tf: tf.strings.unsorted_segment_join(["a", "b"], [0, -1], 1),
    "join outside": lambda tf: tf.strings.unsorted_segment_join(["a", "b"], [0, 1], 1),
    "join sizes": lambda tf: tf.strings.unsorted_segment_join(["a", "b"], [0, 0, 0], 1),
}

# -- rows of several lengths --------------------------------------------------------------------------
LINES = [["a b c", ""], ["d", "e  f"]]


RAGGED: dict[str, Case] = {
    "split": lambda tf: tf.strings.split(["a b  c", "", "d"]),
    "split by": lambda tf: tf.strings.split(["a,b", ",c"], ","),
    "split rows": lambda tf: tf.strings.split(LINES), "split bytes": lambda tf: tf.strings.bytes_split(["ab", "", "c"]),
    "split once": lambda tf: tf.strings.split(["a b c", "d e"], maxsplit=1),
    "split ragged": lambda tf: tf.strings.split(tf.ragged.constant([["a b", "c"], [], ["d e f"]])),
    "decode several": lambda tf: tf.strings.unicode_decode(["hé", "", "x"], "UTF-8"),
    "decode rows": lambda tf: tf.strings.unicode_decode_with_offsets([["hé", "a"], ["", "b"]], "UTF-8"),
    "decode ragged": lambda tf: tf.strings.unicode_decode(tf.ragged.constant([["hé"], [], ["a", "b"]]), "UTF-8"),
    "characters": lambda tf: tf.strings.unicode_split(["hé", "", b"\xffx"], "UTF-8"),
    "characters and places": lambda tf: tf.strings.unicode_split_with_offsets(["hé", "x"], "UTF-8"),
    "encode ragged": lambda tf: tf.strings.unicode_encode(tf.ragged.constant([[104, 233], [], [0x1F600]]), "UTF-8"),
    "encode deep": lambda tf: tf.strings.unicode_encode(tf.ragged.constant([[[104, 233], []], [[120]]]), "UTF-8"),
    "ngrams ragged": lambda tf: tf.strings.ngrams(tf.ragged.constant([["a", "b", "c"], ["d"], []]), [2, 3]),
    "ngrams ragged padded": lambda tf: tf.strings.ngrams(
        tf.ragged.constant([["a", "b", "c"], ["d"], []]), 2, pad_values=("<", ">")),
    "ngrams ragged kept": lambda tf: tf.strings.ngrams(
        tf.ragged.constant([[["a", "b"], ["d"]], [[]]]), 2, preserve_short_sequences=True),
    "hashes ragged": lambda tf: tf.strings.to_hash_bucket_fast(tf.ragged.constant([["a"], ["b", "c"]]), 1000),
    "lookup ragged": lambda tf: _static(tf, ["a", "b"], [1, 2], -1)[tf.ragged.constant([["a", "x"], [], ["b"]])],
    "lookup sparse": lambda tf: _static(tf, ["a", "b"], [1, 2], -1).lookup(
        tf.SparseTensor([[0, 1], [2, 0]], ["b", "x"], [3, 2])),
    "vocabulary ragged": lambda tf: _vocabulary(tf, ["a", "b"], [0, 1], 2)[tf.ragged.constant([["a", "x"], ["b"]])],
}

# -- sets ---------------------------------------------------------------------------------------------
SETS = [[[1, 2, 2], [3, 4, 5]], [[7, 7, 7], [0, -1, 9]]]
OTHERS = [[[2, 3], [5, 3]], [[8, 8], [9, 0]]]


def _sparse_sets(tf: Any, dtype: str = "int32") -> Any:
    values = tf.constant([4, 2, 2, 3], dtype) if dtype != "string" else tf.constant(["d", "b", "b", "c"])
    return tf.SparseTensor([[0, 0, 0], [0, 0, 2], [0, 1, 1], [1, 1, 0]], values, [2, 2, 3])


SET_CASES: dict[str, Case] = {
    **{f"{name} dense": (lambda tf, name=name: getattr(tf.sets, name)(SETS, OTHERS))
       for name in ("intersection", "difference", "union")},
    **{f"{name} dense and sparse": (lambda tf, name=name: getattr(tf.sets, name)(SETS, _sparse_sets(tf)))
       for name in ("intersection", "difference", "union")},
    **{f"{name} sparse": (lambda tf, name=name: getattr(tf.sets, name)(
        _sparse_sets(tf, "string"), tf.SparseTensor([[0, 0, 1], [1, 0, 0]], tf.constant(["b", "x"]), [2, 2, 3])))
       for name in ("intersection", "difference", "union")},
    "difference turned": lambda tf: tf.sets.difference(SETS, OTHERS, aminusb=False),
    "set sizes": lambda tf: tf.sets.size(_sparse_sets(tf)), "set sizes of dense": lambda tf: tf.sets.size(SETS),
    "sets of floats": lambda tf: tf.sets.union([[1.0]], [[2.0]]),
    "sets of other dtypes": lambda tf: tf.sets.union(SETS, tf.constant(OTHERS, tf.int64)),
    "sets of other rows": lambda tf: tf.sets.union(SETS, OTHERS[:1]),
    "sets of vectors": lambda tf: tf.sets.union([1, 2], [2, 3]),
    "sets out of order": lambda tf: tf.sets.size(tf.SparseTensor([[1, 0], [0, 0]], [1, 2], [2, 2])),
}

# -- files --------------------------------------------------------------------------------------------
def _csv(records: Any, defaults: Any, **settings: Any) -> Case:
    return lambda tf: tf.io.decode_csv(records, defaults, **settings)


def _typed(records: Any, dtype: str, value: Any) -> Case:
    return lambda tf: tf.io.decode_csv(records, [tf.constant(value, dtype)])


BYTES = ["", "a", "ab", "abc", b"\xff\xfe\xfd"]
GZIP, ZLIB = gzip.compress(b"hello"), zlib.compress(b"hello" * 100)
JSON = ('{"features": {"feature": {"a": {"int64List": {"value": ["1", 2]}}, "b": {"bytes_list": {"value": ["YWI="]}}, '
        '"c": {"floatList": {"value": [1.5, "NaN", "-Infinity", 3]}}}}}')


def _of_json(tf: Any, text: str) -> Any:
    return tf.io.parse_single_example(tf.io.decode_json_example(text), {
        "a": tf.io.FixedLenFeature([2], tf.int64, [8, 9]), "b": tf.io.FixedLenFeature([], tf.string, "none"),
        "c": tf.io.FixedLenFeature([4], tf.float32, [0.0] * 4)})


FILES: dict[str, Case] = {
    "csv": _csv(["1,2.5,a", "3,,b"], [0, 0.5, "x"]), "csv scalar": _csv("1,2", [0, 0.5]),
    "csv matrix": _csv([["1,2"], ["3,4"]], [0, 0]),
    "csv quotes": _csv(['"a,b",2', '"say ""hi""",3', '"a\nb",1', '"",4'], ["x", 0]),
    "csv last": _csv(["a,", '"a",'], ["x", "y"]), "csv two empty": _csv(",", ["x", "y"]),
    "csv of no quotes": _csv(['a"b,2'], ["", 0], use_quote_delim=False),
    "csv delimiter": _csv(["a|2"], ["", 0], field_delim="|"), "csv empty": _csv(["NA,NA"], ["d", 5], na_value="NA"),
    "csv columns": _csv(["a,b,3"], ["", 0], select_cols=[0, 2]),
    "csv columns of few": _csv(["a"], ["", 0], select_cols=[0, 2]), "csv spaces": _csv(" 1 , 2.5 ", [0, 0.5]),
    "csv leading lines": _csv("\n\r1,2", [0, 0]), "csv int64": _typed("3000000000", "int64", [0]),
    "csv float64": _typed(["0.1", "inf", ""], "float64", [2.0]), "csv required": _typed("", "float32", []),
    "csv missing": _csv(["1,"], [0, []]),
    "csv unordered": _csv(["a,b,3"], [0, ""], select_cols=[2, 0]),
    "csv uncounted": _csv(["a,b,3"], [""], select_cols=[0, 2]), "csv few": _csv("a", ["", 0]),
    "csv many": _csv("a,1,2", ["", 0]), "csv line end": _csv("a,1\n", ["", 0]),
    "csv quote inside": _csv('a"b,2', ["", 0]), "csv quote unescaped": _csv('"a"b,2', ["", 0]),
    "csv quote open": _csv('"ab,2', ["", 0]), "csv no number": _csv("x", [0]), "csv no float": _csv("x", [0.5]),
    "csv large": _csv("3000000000", [0]), "csv bool": _csv("1", [True]), "csv defaults": _csv("1", [[1, 2]]),
    "csv delimiters": _csv("a||2", ["", 0], field_delim="||"),
    "base64": lambda tf: tf.io.encode_base64(BYTES), "base64 padded": lambda tf: tf.io.encode_base64(BYTES, pad=True),
    "from base64": lambda tf: tf.io.decode_base64(["", "YQ", "YWI", "YWJj", "YQ==", "__79", "YR"]),
    "decode 16": lambda tf: tf.strings.unicode_decode_with_offsets(PAIRS, "UTF-16-BE"),
    "from base64 short": lambda tf: tf.io.decode_base64("Y"),
    "from base64 half": lambda tf: tf.io.decode_base64("YQ="),
    "from base64 line": lambda tf: tf.io.decode_base64("YW\nI"),
    "from base64 inner": lambda tf: tf.io.decode_base64("YQ==YQ=="),
    "compressed none": lambda tf: tf.io.decode_compressed(["ab"]),
    "compressed gzip": lambda tf: tf.io.decode_compressed([GZIP, GZIP + GZIP], "GZIP"),
    "compressed zlib": lambda tf: tf.io.decode_compressed([ZLIB, ZLIB + b"more"], "ZLIB"),
    "compressed other": lambda tf: tf.io.decode_compressed(GZIP, "ZLIB"),
    "compressed bad": lambda tf: tf.io.decode_compressed("xx", "ZLIB"),
    "compressed name": lambda tf: tf.io.decode_compressed("xx", "FOO"),
    "json": lambda tf: _of_json(tf, JSON), "json empty": lambda tf: _of_json(tf, "{}"),
    "json bad": lambda tf: _of_json(tf, "{"), "json unknown": lambda tf: _of_json(tf, '{"x": 1}'),
    "json number": lambda tf: _of_json(tf, '{"features": {"feature": {"a": {"int64List": {"value": [1.5]}}}}}'),
    "json texts": lambda tf: _of_json(
        tf, '{"features": {"feature": {"a": {"int64List": {"value": [1e3, "2.0"]}}, "b": {"bytesList": null}}}}'),
    "json large": lambda tf: _of_json(tf, '{"features": {"feature": {"c": {"floatList": {"value": [1e300]}}}}}'),
    "json two": lambda tf: _of_json(
        tf, '{"features": {"feature": {"a": {"int64List": {"value": [1]}, "floatList": {"value": [1]}}}}}'),
    "json bytes": lambda tf: _of_json(tf, '{"features": {"feature": {"b": {"bytesList": {"value": ["!"]}}}}}'),
}

def _steps(tf: Any, *lengths: int, context: float = 0.5) -> list[bytes]:
    """Records of sequences of some lengths."""
    train, records = tf.train, []
    for n in lengths:
        steps = [train.Feature(int64_list=train.Int64List(value=[k, k * k])) for k in range(n)]
        records.append(train.SequenceExample(
            context=train.Features(feature={"c": train.Feature(float_list=train.FloatList(value=[context]))}),
            feature_lists=train.FeatureLists(feature_list={"s": train.FeatureList(feature=steps)})).SerializeToString())
    return records


def _sequences(tf: Any, records: Any, size: int = 2, name: str = "s", **settings: Any) -> Any:
    parsed = tf.io.parse_sequence_example(
        records, {"c": tf.io.FixedLenFeature([], tf.float32)},
        {name: tf.io.FixedLenSequenceFeature([size], tf.int64, **settings)})
    return list(parsed)


FILES |= {
    "sequences": lambda tf: _sequences(tf, _steps(tf, 2, 0, 3)),
    "sequences missing": lambda tf: _sequences(tf, _steps(tf, 1), name="t"),
    "sequences allowed to miss": lambda tf: _sequences(tf, _steps(tf, 1, 1), name="t", allow_missing=True),
    "sequences of another size": lambda tf: _sequences(tf, _steps(tf, 1), 3),
    "sequences damaged": lambda tf: _sequences(tf, [b"no record"]),
}

# -- sound --------------------------------------------------------------------------------------------
SOUND = [[0.0, 1.0], [0.5, -1.0], [-0.25, 2.0], [1.5, -2.0], [1.6e-5, -1.6e-5], [4.6e-5, 7.7e-5]]


def _riff(*chunks: tuple[bytes, bytes]) -> bytes:
    body = b"".join(name + struct.pack("<I", len(data)) + data for name, data in chunks)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def _form(kind: int = 1, channels: int = 1, rate: int = 8000, in_second: int = 16000, in_sample: int = 2,
          bits: int = 16, more: bytes = b"") -> tuple[bytes, bytes]:
    return b"fmt ", struct.pack("<HHIIHH", kind, channels, rate, in_second, in_sample, bits) + more


DATA = (b"data", struct.pack("<3h", 1, -2, 300))
WAVES = {
    "plain": _riff(_form(), DATA), "skipped": _riff((b"JUNK", b"abcd"), _form(), (b"LIST", b"ab"), DATA),
    "of 18": _riff(_form(more=b"ab"), DATA), "extensible": _riff(_form(kind=0xFFFE, more=b"x" * 24), DATA),
    "of nothing": _riff(_form(), (b"data", b"")), "odd": _riff(_form(), (b"data", b"abcde")),
    "unknown before": _riff((b"abcd", b"abcd"), _form(), DATA), "no data": _riff(_form()),
    "two": _riff(_form(), DATA, DATA), "cut": _riff(_form(), DATA)[:-1], "cut early": _riff(_form(), DATA)[:30],
    "8 bits": _riff(_form(bits=8, in_sample=1, in_second=8000), DATA), "float": _riff(_form(kind=3), DATA),
    "channels": _riff(_form(channels=0), DATA), "sample size": _riff(_form(in_sample=4), DATA),
    "rate": _riff(_form(in_second=1), DATA), "of 20": _riff(_form(more=b"abcd"), DATA), "empty": b"",
    "other": b"RIFX" + _riff(_form(), DATA)[4:], "trailing": _riff(_form(), DATA) + b"ab",
    "larger": _riff(_form())[:-16] + b"data" + struct.pack("<I", 1 << 31)}
AUDIO: dict[str, Case] = {
    **{f"wav {name}": (lambda tf, wave=wave: tf.audio.decode_wav(wave)) for name, wave in WAVES.items()},
    "wav written": lambda tf: tf.audio.encode_wav(SOUND, 8000),
    "wav read": lambda tf: tf.audio.decode_wav(tf.audio.encode_wav(SOUND, 8000)),
    "wav channel": lambda tf: tf.audio.decode_wav(tf.audio.encode_wav(SOUND, 8000), desired_channels=1),
    "wav channels": lambda tf: tf.audio.decode_wav(tf.audio.encode_wav(SOUND, 8000), desired_channels=3),
    "wav samples": lambda tf: tf.audio.decode_wav(tf.audio.encode_wav(SOUND, 8000), desired_samples=2),
    "wav more samples": lambda tf: tf.audio.decode_wav(tf.audio.encode_wav(SOUND, 8000), desired_samples=9),
    "wav of none": lambda tf: tf.audio.encode_wav(tf.zeros([0, 1]), 8000),
    "wav rank": lambda tf: tf.audio.encode_wav([0.0], 8000), "wav no rate": lambda tf: tf.audio.encode_wav(SOUND, 0),
    "wav no channels": lambda tf: tf.audio.encode_wav(tf.zeros([1, 0]), 8000),
}

# -- quantisation -------------------------------------------------------------------------------------
VALUES = [[0.5, -0.5, 0.0, 1.5], [2.5, -2.5, 0.1, -3.7], [0.25, 7.0, -0.3, 1.0]]
UPSTREAM = [[1.0, 2.0, -4.0, 8.0], [0.5, -0.25, 16.0, 32.0], [-1.0, 64.0, 0.125, 3.0]]
LOW, HIGH = [-1.0, 0.0, -3.0, -0.1], [1.0, 1.5, 0.7, 4.0]
RANGES = ((-1.0, 1.0), (-3.0, 0.7), (1.0, 2.0), (0.0, 0.0))


def _back(tf: Any, fn: Any, *operands: Any, **settings: Any) -> Any:
    with tf.GradientTape() as tape:
        tensors = [tf.constant(operand) for operand in operands]
        tape.watch(tensors)
        result = fn(*tensors, **settings) * UPSTREAM
    return tape.gradient(result, tensors)


def _quantised(kind: str, low: Any, high: Any, mode: str, **settings: Any) -> Case:
    return lambda tf: tf.quantization.quantize(VALUES, low, high, getattr(tf, kind), mode, **settings)[:3]


def _restored(kind: str, low: Any, high: Any, mode: str, axis: Any = None, **settings: Any) -> Case:
    return lambda tf: tf.quantization.dequantize(
        tf.quantization.quantize(VALUES, low, high, getattr(tf, kind), mode, axis=axis).output, low, high, mode,
        axis=axis, **settings)


def _both(low: Any, high: Any, **settings: Any) -> Case:
    return lambda tf: tf.quantization.quantize_and_dequantize_v2(VALUES, low, high, **settings)


def _fake(tf: Any, way: str, *operands: Any, **settings: Any) -> Any:
    return getattr(tf.quantization, f"fake_quant_with_min_max_{way}")(*operands, **settings)


KINDS = ("qint8", "quint8", "qint16", "quint16")
QUANTISED: dict[str, Case] = {
    **{f"fake {low} {high} {bits} {narrow}": (
        lambda tf, low=low, high=high, bits=bits, narrow=narrow: [
            _fake(tf, "vars", VALUES, low, high, num_bits=bits, narrow_range=narrow),
            _fake(tf, "vars_gradient", UPSTREAM, VALUES, low, high, num_bits=bits, narrow_range=narrow)])
       for low, high in RANGES for bits in (2, 8, 16) for narrow in (False, True)},
    "fake args": lambda tf: [_fake(tf, "args", VALUES), _fake(tf, "args", VALUES, -1.0, 2.0, 3, True)],
    "fake args gradient": lambda tf: _fake(tf, "args_gradient", UPSTREAM, VALUES, -1.0, 2.0, 3, True),
    "fake args back": lambda tf: _back(tf, lambda x: _fake(tf, "args", x, -1.0, 2.0), VALUES),
    "fake vars back": lambda tf: _back(tf, lambda x, low, high: _fake(tf, "vars", x, low, high), VALUES, -1.0, 2.0),
    "fake channels": lambda tf: _fake(tf, "vars_per_channel", VALUES, LOW, HIGH, num_bits=4),
    "fake channels gradient": lambda tf: _fake(tf, "vars_per_channel_gradient", UPSTREAM, VALUES, LOW, HIGH),
    "fake channels back": lambda tf: _back(
        tf, lambda x, low, high: _fake(tf, "vars_per_channel", x, low, high), VALUES, LOW, HIGH),
    "fake 17 bits": lambda tf: _fake(tf, "args", VALUES, num_bits=17),
    "fake 1 bit": lambda tf: _fake(tf, "args", VALUES, num_bits=1),
    "fake nothing": lambda tf: _fake(tf, "args", VALUES, 1.0, 1.0),
    "fake vectors": lambda tf: _fake(tf, "vars", VALUES, [1.0], [2.0]),
    "fake few channels": lambda tf: _fake(tf, "vars_per_channel", VALUES, [1.0], [2.0]),
    "fake other size": lambda tf: _fake(tf, "args_gradient", UPSTREAM[:1], VALUES),
    **{f"quantise {kind} {low} {high} {mode}": _quantised(kind, low, high, mode)
       for kind in KINDS for low, high in RANGES for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED")},
    **{f"quantise {kind} even": _quantised(kind, -3.0, 0.7, "SCALED", round_mode="HALF_TO_EVEN") for kind in KINDS},
    **{f"quantise {kind} narrow": _quantised(kind, -3.0, 0.7, "SCALED", narrow_range=True) for kind in KINDS},
    **{f"quantise {kind} axis": _quantised(kind, LOW, HIGH, "SCALED", axis=1) for kind in KINDS},
    "quantise other mode": _quantised("qint8", 0.0, 1.0, "OTHER"),
    "quantise floats": _quantised("float32", 0.0, 1.0, "SCALED"),
    "quantise even first": _quantised("qint8", 0.0, 1.0, "MIN_FIRST", round_mode="HALF_TO_EVEN"),
    **{f"restore {kind} {low} {high} {mode}": _restored(kind, low, high, mode)
       for kind in KINDS for low, high in RANGES for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED")},
    **{f"restore {kind} axis": _restored(kind, LOW, HIGH, "SCALED", 1, narrow_range=True) for kind in KINDS},
    **{f"both {low} {high} {signed} {bits} {given}": _both(
        low, high, signed_input=signed, num_bits=bits, range_given=given)
       for low, high in RANGES for signed in (True, False) for bits in (2, 8) for given in (True, False)},
    "both up": _both(-3.0, 0.7, round_mode="HALF_UP", range_given=True), "both axis": _both(LOW, HIGH, axis=1),
    "both float64": lambda tf: tf.quantization.quantize_and_dequantize_v2(
        tf.constant(VALUES, tf.float64), -1.0, 2.0, range_given=True),
    "both without bits": _both(0.0, 1.0, num_bits=0), "both 63 bits": _both(0.0, 1.0, num_bits=63),
    "both other mode": _both(0.0, 1.0, round_mode="OTHER"), "both turned": _both(2.0, 1.0, range_given=True),
    "both back": lambda tf: _back(tf, tf.quantization.quantize_and_dequantize_v2, VALUES, -1.0, 2.0),
    "all back": lambda tf: _back(tf, tf.quantization.quantize_and_dequantize, VALUES, -1.0, 2.0),
}

CASES: dict[str, Case] = {**TABLES, **HASHES, **SPARSE, **QUEUES, **CHARACTERS, **JOINED, **RAGGED, **SET_CASES,
                          **FILES, **AUDIO, **QUANTISED}


def plain(value: Any) -> Any:
    """Tensors as what JSON has: dtype, shape, and the elements, with bytes as text of the same codes."""
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "dense_shape"):
        return {"sparse": plain([value.indices, value.values, value.dense_shape])}
    if hasattr(value, "row_splits"):
        return {"ragged": plain([value.values, value.row_splits])}
    if not hasattr(value, "numpy"):
        return None
    array = value.numpy()
    flat = array.ravel().tolist() if value.shape.rank else [array.item() if hasattr(array, "item") else array]
    name = value.dtype.name.removeprefix("q")  # integers of quantised values are those of twofold's integer dtypes
    return [name, value.shape.as_list(), [_element(x) for x in flat]]


def _element(x: Any) -> Any:
    if isinstance(x, bytes):
        return x.decode("latin-1")
    if x != x:
        return "nan"
    return [x.real, x.imag] if isinstance(x, complex) else x


def outcome(case: Case, tf: Any) -> Any:
    """What a case gives, or the class of the error that it raises."""
    try:
        return plain(case(tf))
    except Exception as error:  # noqa: BLE001 (which is the outcome)
        return {"error": type(error).__name__}


if __name__ == "__main__":
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # whose integers are others for some settings
    import tensorflow

    rows = [f" {json.dumps(name)}: {json.dumps(outcome(case, tensorflow))}" for name, case in CASES.items()]
    with open(sys.argv[1], "w") as written:
        written.write("{\n" + ",\n".join(rows) + "\n}\n")
