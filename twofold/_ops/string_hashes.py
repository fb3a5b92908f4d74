"""Hashes of strings and of tensors' bytes: `tf.strings.to_hash_bucket*` and `tf.fingerprint`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from twofold._formats.hashing import concatenated, fingerprints, keyed, legacy
from twofold._front import iteration as engine
from twofold._front.api import ints, one_int, public, tensor
from twofold._front.hosted import hosted
from twofold._front.texts import objects, same_shape, texts
from twofold.ir import dtypes as dt
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.spec import TensorSpec

__all__ = ["fingerprint", "to_hash_bucket", "to_hash_bucket_fast", "to_hash_bucket_strong"]


_CROSSED = 0xDECAFCAFFE  # where the hash of several values begins, as in tensorflow/python/ops/sparse_ops.py


def _bucketed(input: Any, num_buckets: Any, hashes: Callable[[np.ndarray, int], np.ndarray], what: str) -> Any:
    """The buckets of strings by their hashes."""
    given, count = texts(input, what), one_int(num_buckets, "num_buckets")
    if count < 1:
        raise InvalidArgumentError(None, what, f"{what}: num_buckets must be at least 1; got {count}")

    def hash_all(strings: Any) -> list[Any]:
        array = engine.array_of(strings)
        return [engine.tensor_of(hashes(array, count).view(np.int64))]
    return engine.host_call(hash_all, what, [given], [same_shape(given, dt.int64)])[0]


@public
@hosted
def to_hash_bucket(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """The numbers of buckets for strings, by an older hash; `to_hash_bucket_fast` is for new programs.

    Args:
        input: strings.
        num_buckets: how many buckets there are.
        name: accepted, without effect.
    Returns:
        int64, TensorFlow's numbers.
    Raises:
        InvalidArgumentError: there are no strings, or no buckets.

    >>> import twofold as tf
    >>> tf.strings.to_hash_bucket(["Hello", "TensorFlow", "2.x"], 3).numpy().tolist()
    [2, 0, 1]
    """
    return _bucketed(input, num_buckets, legacy, "StringToHashBucket")


@public
@hosted
def to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """The numbers of buckets for strings, by FarmHash.

    Args:
        input: strings.
        num_buckets: how many buckets there are.
        name: accepted, without effect.
    Returns:
        int64, TensorFlow's numbers.
    Raises:
        InvalidArgumentError: there are no strings, or no buckets.

    >>> import twofold as tf
    >>> tf.strings.to_hash_bucket_fast(["Hello", "TensorFlow", "2.x"], 3).numpy().tolist()
    [0, 2, 2]
    """
    return _bucketed(input, num_buckets, fingerprints, "StringToHashBucketFast")


@public
@hosted
def to_hash_bucket_strong(input: Any, num_buckets: int, key: Any, name: str | None = None) -> Any:
    """The numbers of buckets for strings, by SipHash with a key: who does not know it cannot aim at a bucket.

    Args:
        input: strings.
        num_buckets: how many buckets there are.
        key: two integers.
        name: accepted, without effect.
    Returns:
        int64, TensorFlow's numbers.
    Raises:
        InvalidArgumentError: there are no strings, no buckets, or not two numbers.

    >>> import twofold as tf
    >>> tf.strings.to_hash_bucket_strong(["Hello", "TF"], 3, [1, 2]).numpy().tolist()
    [2, 0]
    """
    numbers = [int(n) for n in ints(key, "key", (-(1 << 63), 1 << 63))]
    if len(numbers) != 2:
        raise InvalidArgumentError(None, "StringToHashBucketStrong", f"Key must have 2 elements; got {len(numbers)}")
    return _bucketed(input, num_buckets, lambda texts, buckets: keyed(texts, (numbers[0], numbers[1]), buckets),
                     "StringToHashBucketStrong")


@hosted
def crossed_buckets(columns: list[Any], num_buckets: int) -> Any:
    """The numbers of buckets for what stands at the same place of several tensors.

    Args:
        columns: integers, which are their own hashes, or strings; all of one shape.
        num_buckets: how many buckets there are.
    """
    def cross(*tensors: Any) -> list[Any]:
        total = crossed([_hashed(engine.array_of(t)) for t in tensors], _CROSSED)
        return [engine.tensor_of((total % np.uint64(num_buckets)).astype(np.int64))]
    return engine.host_call(cross, "SparseCross", columns, [same_shape(columns[0], dt.int64)])[0]


def _hashed(array: np.ndarray) -> np.ndarray:
    """The fingerprints of strings, and integers as they are: uint64."""
    if array.dtype == object:
        return fingerprints(array)
    return array.astype(np.int64).astype(np.uint64)


def crossed(hashes: list[np.ndarray], key: int) -> Any:
    """The fingerprints of what stands at the same place of several arrays of fingerprints.

    Args:
        hashes: uint64 arrays of one shape.
        key: where the fingerprints begin.
    """
    total: Any = np.uint64(key % (1 << 64))
    with np.errstate(over="ignore"):  # words of 64 bits wrap around
        for one in hashes:
            total = concatenated(total, one)
    return total


@hosted
def crossed_rows(values: list[Any], splits: list[Any], num_buckets: int | None, key: int,
                 separator: Any) -> tuple[Any, Any]:
    """For each row the combinations of one value of each column, of which the last column's change first.

    Args:
        values: of each column, a vector of strings or of int64.
        splits: int64 vectors; row `n` of a column has the values from `splits[n]` on, up to `splits[n + 1]`.
        num_buckets: of hashes; 0 for hashes below the largest int64; None for strings.
        key: where hashes begin.
        separator: between the parts of strings.
    Returns:
        The combinations of all rows, and their splits.
    """
    count = len(values)

    def cross(*tensors: Any) -> list[Any]:
        arrays = [engine.array_of(t) for t in tensors]
        between = arrays[2 * count].item()
        places, made_splits = _combinations([a.astype(np.int64) for a in arrays[count:2 * count]])
        if num_buckets is None:
            texts = [[v if isinstance(v, bytes) else b"%d" % v for v in a.tolist()] for a in arrays[:count]]
            made = objects([len(places[0])], [between.join(parts) for parts in zip(
                *[[of[p] for p in at.tolist()] for of, at in zip(texts, places, strict=True)], strict=True)])
        else:
            total = crossed([_hashed(a)[at] for a, at in zip(arrays[:count], places, strict=True)], key)
            made = (total % np.uint64(num_buckets or np.iinfo(np.int64).max)).astype(np.int64)
        return [engine.tensor_of(made), engine.tensor_of(made_splits)]
    specs = [TensorSpec([None], dt.string if num_buckets is None else dt.int64), TensorSpec(splits[0].shape, dt.int64)]
    return tuple(engine.host_call(cross, "RaggedCross", [*values, *splits, tensor(separator)], specs))


def _combinations(splits: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """The place in each column of each combination, and the splits of the combinations.

    Raises:
        InvalidArgumentError: columns have different numbers of rows.
    """
    if len({len(s) for s in splits}) != 1:
        raise InvalidArgumentError(None, "RaggedCross", "inputs must all have the same batch dimension size; got "
                                   f"{[len(s) - 1 for s in splits]}")
    lengths = [np.diff(s) for s in splits]
    made = np.concatenate([[0], np.cumsum(np.prod(lengths, axis=0))]).astype(np.int64)
    rows = np.repeat(np.arange(len(made) - 1), np.diff(made))
    left, places = np.arange(made[-1]) - made[rows], []
    for column, sizes in zip(reversed(splits), reversed(lengths), strict=True):
        places.append(column[rows] + left % sizes[rows])
        left = left // sizes[rows]
    return places[::-1], made


@public
@hosted
def fingerprint(data: Any, method: Any = "farmhash64", name: str | None = None) -> Any:
    """Fingerprints of the rows of a tensor, by its bytes.

    Args:
        data: a tensor of at least one axis; each entry along the first one is a row.
        method: "farmhash64".
        name: accepted, without effect.
    Returns:
        uint8 [rows, 8]: the bytes of a 64-bit number for each row, the lowest first.
    Raises:
        InvalidArgumentError: the tensor is a scalar, or there is no such method.

    >>> import twofold as tf
    >>> tf.fingerprint(["a", "b"]).shape
    TensorShape([2, 8])
    """
    given = tensor(data)
    known = engine.array_of(method).item() if not isinstance(method, (str, bytes)) else method
    if known not in ("farmhash64", b"farmhash64"):
        raise InvalidArgumentError(None, "Fingerprint", f"Unsupported fingerprint method: {known!r}")
    if given.shape.rank == 0:
        raise InvalidArgumentError(None, "Fingerprint", "`data` should have at least one dimension: []")

    def of_rows(rows: Any) -> list[Any]:
        return [engine.tensor_of(_row_fingerprints(engine.array_of(rows)))]
    return engine.host_call(of_rows, "Fingerprint", [given], [TensorSpec([given.shape[0], 8], dt.uint8)])[0]


def _row_fingerprints(array: np.ndarray) -> np.ndarray:
    if array.dtype == object:
        made = fingerprints(array)
        if array.ndim == 1:
            return made.view(np.uint8).reshape(-1, 8)
        array = made  # of several strings in a row, those of their fingerprints' bytes
    return fingerprints(objects([len(array)], [row.tobytes() for row in array])).view(np.uint8).reshape(-1, 8)
