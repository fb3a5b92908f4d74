"""Tables from datasets, which `tf.data.experimental` shows."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import one_int, public

from ._initializers import Initializer
from ._tables import StaticHashTable, StaticVocabularyTable

__all__ = ["DatasetInitializer", "index_table_from_dataset", "table_from_dataset"]


class DatasetInitializer(Initializer):
    """Keys and values from a dataset of pairs.

    Args:
        dataset: whose elements are pairs of scalars.
    Raises:
        ValueError: its elements are something else.

    >>> import twofold as tf
    >>> pairs = tf.data.experimental.DatasetInitializer(tf.data.Dataset.from_tensor_slices((["a", "b"], [1, 2])))
    >>> int(tf.lookup.StaticHashTable(pairs, -1).lookup(tf.constant("b")))
    2
    """

    def __init__(self, dataset: Any) -> None:
        spec = getattr(dataset, "element_spec", None)
        if not isinstance(spec, tuple) or len(spec) != 2 or not all(
                isinstance(s, tf.TensorSpec) and s.shape.rank in (0, None) for s in spec):
            raise ValueError("Datasets used to initialize lookup tables must produce elements in the form (key, "
                             f"value), where the keys and values are scalar tensors; got elements {spec!r}")
        self._dataset = dataset
        super().__init__(spec[0].dtype, spec[1].dtype)

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The keys, and a value for each."""
        pairs = [tuple([engine.array_of(part).item() for part in element]) for element in self._dataset]
        keys, values = (np.array([pair[n] for pair in pairs], dtype.as_numpy_dtype)
                        for n, dtype in enumerate(self._dtypes))
        return keys, values


class _Counted(DatasetInitializer):
    """Keys and values from a dataset of a known number of pairs."""

    def __init__(self, dataset: Any, count: int) -> None:
        super().__init__(dataset)
        self._count = count

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The keys, and a value for each."""
        keys, values = super().pairs()
        if len(keys) < self._count:
            raise tf.errors.FailedPreconditionError(
                None, "table_from_dataset", f"Input dataset was expected to contain {self._count} elements but "
                f"contained only {len(keys)} elements.")
        return keys, values


@public
def table_from_dataset(dataset: Any = None, num_oov_buckets: int = 0, vocab_size: Any = None, default_value: Any = None,
                       hasher_spec: Any = None, key_dtype: Any = tf.string, name: str | None = None) -> Any:
    """A table of the pairs of a dataset.

    Args:
        dataset: whose elements are pairs of a key and a value, scalars.
        num_oov_buckets: if not 0, keys that are not in the dataset get the numbers from the table's size on, by their
            hashes; values must then be int64.
        vocab_size: how many elements are taken; all by default.
        default_value: what other keys have, -1 by default.
        hasher_spec: accepted, without effect: the hash is FarmHash.
        key_dtype: of the keys that are looked up, where there are buckets.
        name: of the table.
    Returns:
        A `tf.lookup.StaticHashTable`; a `tf.lookup.StaticVocabularyTable` where there are buckets.
    Raises:
        ValueError: elements are no pairs of scalars, or a number is negative. FailedPreconditionError: the dataset
            has fewer elements than `vocab_size`.

    >>> import twofold as tf
    >>> pairs = tf.data.Dataset.range(100).map(lambda x: (x, tf.strings.as_string(x * 2)))
    >>> tf.data.experimental.table_from_dataset(pairs, default_value="n/a")[tf.constant([2, 100], tf.int64)].numpy()
    array([b'4', b'n/a'], dtype=object)
    """
    buckets = one_int(num_oov_buckets, "num_oov_buckets")
    if buckets < 0:
        raise ValueError(f"`num_oov_buckets` must be greater than or equal to 0, got {buckets}.")
    if vocab_size is not None:
        size = one_int(vocab_size, "vocab_size")
        if size < 1:
            raise ValueError(f"`vocab_size` must be greater than 0, got {size}.")
        pairs: DatasetInitializer = _Counted(dataset.take(size), size)
    else:
        pairs = DatasetInitializer(dataset)
    if default_value is None and not (pairs.value_dtype.is_integer or pairs.value_dtype.is_floating):
        raise ValueError("`default_value` must be specified when creating a table from a dataset that produces values "
                         f"of type {pairs.value_dtype}.")
    if buckets:
        return StaticVocabularyTable(pairs, buckets, key_dtype, name)
    return StaticHashTable(pairs, -1 if default_value is None else default_value, name)


@public
def index_table_from_dataset(dataset: Any = None, num_oov_buckets: int = 0, vocab_size: Any = None,
                             default_value: Any = -1, hasher_spec: Any = None, key_dtype: Any = tf.string,
                             name: str | None = None) -> Any:
    """A table of the numbers of a dataset's elements, from 0 on.

    Args:
        dataset: of keys, scalars.
        num_oov_buckets, vocab_size, default_value, hasher_spec, key_dtype, name: see `table_from_dataset`.
    Raises:
        ValueError, FailedPreconditionError: as of `table_from_dataset`.

    >>> import twofold as tf
    >>> words = tf.data.Dataset.from_tensor_slices(["lake", "palmer"])
    >>> tf.data.experimental.index_table_from_dataset(words, 1)[tf.constant(["palmer", "king"])].numpy().tolist()
    [1, 2]
    """
    return table_from_dataset(dataset.enumerate().map(lambda number, key: (key, number)), num_oov_buckets, vocab_size,
                              default_value, hasher_spec, key_dtype, name)
