"""Crosses of sparse and dense matrices: for each row all combinations of one value of each, as strings or as hashes."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._ragged.conversions import sparse_from_ragged
from twofold._ragged.crossing import cross_rows, key_of

from .sparse_tensor import SparseTensor, is_sparse

__all__ = ["cross", "cross_hashed"]


def _cross_input(number: int, value: Any) -> Any:
    if not (is_sparse(value) or tf.is_tensor(value)):
        raise TypeError("All inputs must be Tensor or SparseTensor.")
    return value if value.dtype is tf.string else tf.cast(value, tf.int64)


def _crossed(inputs: Any, num_buckets: int | None, key: int, separator: Any = b"_X_") -> SparseTensor:
    if isinstance(inputs, (list, tuple)):
        inputs = sorted(inputs, key=lambda x: not is_sparse(x))  # sparse ones first, as TensorFlow takes them
    return sparse_from_ragged(cross_rows(inputs, num_buckets, key, _cross_input, separator))


@public
def cross(inputs: Any, name: str | None = None, separator: Any = None) -> SparseTensor:
    """For each row of several inputs, all combinations of one value of each as strings.

    Args:
        inputs: a list of sparse and dense matrices of strings or numbers, with one number of rows. Sparse ones come
            first in the combinations, wherever they are.
        name: has no effect.
        separator: between the values; "_X_" by default.
    Returns:
        A sparse matrix, each row of which begins with its combinations.
    Raises:
        TypeError: `inputs` is no list of tensors. InvalidArgumentError: the numbers of rows differ.

    >>> import twofold as tf
    >>> a, b = tf.constant([["a"], ["b"]]), tf.constant([["d", "e"], ["f", "g"]])
    >>> tf.sparse.to_dense(tf.sparse.cross([a, b], separator="+")).numpy().tolist()
    [[b'a+d', b'a+e'], [b'b+f', b'b+g']]
    """
    return _crossed(inputs, None, key_of(None), b"_X_" if separator is None else separator)


@public
def cross_hashed(inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
                 ) -> SparseTensor:
    """For each row of several inputs, the hashes of all combinations of one value of each.

    Args:
        inputs: as of `tf.sparse.cross`.
        num_buckets: how many buckets there are; 0 for the hashes as they are.
        hash_key: a number that the hashes begin with; one of TensorFlow's by default.
        name: has no effect.
    Returns:
        A sparse matrix of int64, TensorFlow's numbers, each row of which begins with its combinations.
    Raises:
        As `tf.sparse.cross`.

    >>> import twofold as tf
    >>> a, b = tf.constant([["a"], ["b"]]), tf.constant([["d", "e"], ["f", "g"]])
    >>> tf.sparse.to_dense(tf.sparse.cross_hashed([a, b], 100)).numpy().tolist()
    [[82, 17], [89, 6]]
    """
    return _crossed(inputs, num_buckets, key_of(hash_key) or key_of(None))
