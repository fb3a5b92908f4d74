"""Hashes of strings and of tensors' bytes: `tf.strings.to_hash_bucket*` and `tf.fingerprint`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from twofold._formats.hashing import concatenated, fingerprints, keyed_all, legacy_all
from twofold._front import iteration as engine
from twofold._front.api import ints, one_int, public, tensor
from twofold._front.hosted import hosted
from twofold._front.texts import same_shape, texts
from twofold.ir import dtypes as dt
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.spec import TensorSpec

__all__ = ["fingerprint", "to_hash_bucket", "to_hash_bucket_fast", "to_hash_bucket_strong"]


_CROSSED = 0xDECAFCAFFE  # where the hash of several values begins, as in tensorflow/python/ops/sparse_ops.py


def _bucketed(input: Any, num_buckets: Any, hashes: Callable[[list[bytes]], np.ndarray], what: str) -> Any:
    """The buckets of strings by their hashes."""
    given, count = texts(input, what), one_int(num_buckets, "num_buckets")
    if count < 1:
        raise InvalidArgumentError(None, what, f"{what}: num_buckets must be at least 1; got {count}")

    def hash_all(strings: Any) -> list[Any]:
        array = engine.array_of(strings)
        buckets = hashes(array.ravel().tolist()) % np.uint64(count)
        return [engine.tensor_of(buckets.astype(np.int64).reshape(array.shape))]
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
    return _bucketed(input, num_buckets, legacy_all, "StringToHashBucket")


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
    return _bucketed(input, num_buckets, lambda texts: keyed_all(texts, (numbers[0], numbers[1])),
                     "StringToHashBucketStrong")


@hosted
def crossed_buckets(columns: list[Any], num_buckets: int) -> Any:
    """The numbers of buckets for what stands at the same place of several tensors.

    Args:
        columns: integers, which are their own hashes, or strings; all of one shape.
        num_buckets: how many buckets there are.
    """
    def cross(*tensors: Any) -> list[Any]:
        total: Any = _CROSSED
        for array in map(engine.array_of, tensors):
            strings = array.dtype == object
            total = concatenated(total, fingerprints(array.ravel().tolist()).reshape(array.shape) if strings
                                 else array.astype(np.int64).astype(np.uint64))
        return [engine.tensor_of((total % np.uint64(num_buckets)).astype(np.int64))]
    return engine.host_call(cross, "SparseCross", columns, [same_shape(columns[0], dt.int64)])[0]


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
        made = fingerprints(array.ravel().tolist()).astype("<u8")
        if array.ndim == 1:
            return made.view(np.uint8).reshape(-1, 8)
        array = made.reshape(array.shape)  # of several strings in a row, those of their fingerprints' bytes
    rows = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return fingerprints([row.tobytes() for row in rows]).astype("<u8").view(np.uint8).reshape(-1, 8)
