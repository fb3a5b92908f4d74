"""Tables whose keys never change: `StaticHashTable`, `StaticVocabularyTable`; and what all tables share."""

from __future__ import annotations

import abc
from typing import Any

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import one_int, tensor
from twofold.ir.dtypes import DType
from twofold.ir.type_spec import CompositeTensor
from twofold.tracking import Trackable

from ._contents import Contents, table_export, table_find, table_size
from ._initializers import Initializer

__all__ = ["StaticHashTable", "StaticVocabularyTable", "Table"]


class Table(Trackable, abc.ABC):
    """What tables share: the handle of their contents, and what is asked of it."""

    _saved_kind = "table"
    _default: Any

    def __init__(self, contents: Contents, name: str | None) -> None:
        self._contents, self._handle, self._given_name = contents, engine.handle(contents), name

    def __getstate__(self) -> dict[str, Any]:  # a copy has contents of its own, and a handle for them
        return {name: value for name, value in vars(self).items() if name != "_handle"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _handle=engine.handle(state["_contents"]))

    @property
    def name(self) -> str | None:
        """The name that the table was given."""
        return self._given_name

    @property
    def key_dtype(self) -> DType:
        """The dtype of keys."""
        return self._contents.key_dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of values."""
        return self._contents.value_dtype

    def size(self, name: str | None = None) -> Any:
        """How many keys there are, int64. `name` has no effect."""
        return table_size(self._handle)

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """All keys and their values, two tensors. `name` has no effect."""
        about = self._contents
        return table_export(self._handle, about.key_dtype.name, about.value_dtype.name, list(about.key_shape),
                            list(about.value_shape))

    @abc.abstractmethod
    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys; see the class."""

    def __getitem__(self, keys: Any) -> Any:
        """The values of keys, as `lookup` gives them."""
        return self.lookup(keys)

    def _values_of(self, keys: Any, default: Any) -> Any:
        about = self._contents
        return table_find(self._handle, keys, default, len(about.key_shape), list(about.value_shape))


def of_values(keys: Any, look_up: Any) -> Any:
    """What is found for the values of a ragged or sparse tensor, at their places; None where `keys` is neither."""
    if not isinstance(keys, CompositeTensor):
        return None
    if isinstance(keys, tf.RaggedTensor):
        return keys.with_flat_values(look_up(keys.flat_values))
    return keys.with_values(look_up(keys.values)) if isinstance(keys, tf.SparseTensor) else None


def keys_of(keys: Any, dtype: DType) -> Any:
    """A tensor of keys.

    Raises:
        TypeError: it has another dtype.
    """
    given = tensor(keys, None if hasattr(keys, "dtype") else dtype)
    if given.dtype is not dtype:
        raise TypeError(f"Dtype of argument `keys` must be {dtype}, received: {given.dtype}")
    return given


class StaticHashTable(Table):
    """A table that is filled when it is made, and never changes.

    Functions that look something up in it can be compiled and saved; `tf.saved_model.save` keeps the table's contents.

    Args:
        initializer: gives keys and values, such as `tf.lookup.KeyValueTensorInitializer`.
        default_value: what keys have that are not in the table; a scalar.
        name: of the table.
        experimental_is_anonymous: accepted, without effect.
    Raises:
        FailedPreconditionError: a key comes with two values. TypeError: the default has another dtype than values.
        ValueError: it is no scalar.

    >>> import twofold as tf
    >>> table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [7, 8]), default_value=-1)
    >>> table.lookup(tf.constant([["a", "z"], ["b", "b"]])).numpy().tolist()
    [[7, -1], [8, 8]]
    >>> int(tf.function(lambda x: table[x] + 1)(tf.constant("b")))
    9
    """

    def __init__(self, initializer: Initializer, default_value: Any, name: str | None = None,
                 experimental_is_anonymous: bool = False) -> None:
        contents = Contents(tf.as_dtype(initializer.key_dtype), tf.as_dtype(initializer.value_dtype))
        self._default = tensor(default_value, contents.value_dtype)
        if self._default.shape.rank != 0:
            raise ValueError(f"Shapes {self._default.shape} and () are not compatible: default_value must be a scalar.")
        super().__init__(contents, name)
        initializer.initialize(self)

    @property
    def default_value(self) -> Any:
        """What keys have that are not in the table."""
        return self._default

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys.

        Args:
            keys: a tensor of any shape, a ragged or a sparse one.
            name: accepted, without effect.
        Returns:
            The like of it; the default value for keys that are not in the table.
        Raises:
            TypeError: keys have another dtype than those of the table.
        """
        mapped = of_values(keys, self.lookup)
        return self._values_of(keys_of(keys, self.key_dtype), self._default) if mapped is None else mapped


class StaticVocabularyTable(Trackable):
    """A vocabulary: numbers of known terms, and buckets for all others by their hash.

    Args:
        initializer: gives terms (string or int64) and numbers (int64), which should be those from 0 on; None for
            buckets alone.
        num_oov_buckets: how many buckets there are, at least 1.
        lookup_key_dtype: of the keys that are looked up; of the initializer's by default.
        name: of the table.
        experimental_is_anonymous: accepted, without effect.
    Raises:
        ValueError: there are no buckets. TypeError: dtypes are others.

    >>> import twofold as tf
    >>> terms = tf.lookup.KeyValueTensorInitializer(["lake", "palmer"], tf.constant([0, 1], tf.int64))
    >>> table = tf.lookup.StaticVocabularyTable(terms, num_oov_buckets=3)
    >>> table.lookup(tf.constant(["palmer", "king", "crimson"])).numpy().tolist(), int(table.size())
    ([1, 3, 2], 5)
    """

    def __init__(self, initializer: Initializer | None, num_oov_buckets: int, lookup_key_dtype: Any = None,
                 name: str | None = None, experimental_is_anonymous: bool = False) -> None:
        self.num_oov_buckets = one_int(num_oov_buckets, "num_oov_buckets")
        if self.num_oov_buckets <= 0:
            raise ValueError("`num_oov_buckets` must be > 0; use StaticHashTable.")
        self._given_name = name.rstrip("/").split("/")[-1] if name else None
        wanted = None if lookup_key_dtype is None else tf.as_dtype(lookup_key_dtype)
        self._key_dtype = tf.string if initializer is None else _key_dtype(initializer, wanted)
        self._table = None if initializer is None else StaticHashTable(initializer, -1)

    @property
    def name(self) -> str | None:
        """The name that the table was given."""
        return self._given_name

    @property
    def key_dtype(self) -> DType:
        """The dtype of keys that are looked up."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of numbers: int64."""
        return tf.int64

    def size(self, name: str | None = None) -> Any:
        """How many numbers there are, buckets included, int64. `name` has no effect."""
        terms = tf.constant(0, tf.int64) if self._table is None else self._table.size()
        return terms + self.num_oov_buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The numbers of keys.

        Args:
            keys: a tensor of any shape, a ragged or a sparse one.
            name: accepted, without effect.
        Returns:
            int64 values in their places.
        Raises:
            TypeError: keys have another dtype.
        """
        mapped = of_values(keys, self.lookup)
        if mapped is not None:
            return mapped
        given = keys_of(keys, self._key_dtype)
        texts = tf.strings.as_string(given)
        buckets = tf.strings.to_hash_bucket_fast(texts, self.num_oov_buckets)
        if self._table is None:
            return buckets
        known = tf.cast(given, tf.int64) if self._table.key_dtype.is_integer else given
        numbers = self._table.lookup(known)
        return tf.where(numbers != -1, numbers, buckets + self._table.size())

    def __getitem__(self, keys: Any) -> Any:
        """The numbers of keys, as `lookup` gives them."""
        return self.lookup(keys)


def _key_dtype(initializer: Initializer, wanted: DType | None) -> DType:
    """The dtype of the keys that a vocabulary is asked for."""
    have = initializer.key_dtype
    asked = have if wanted is None else wanted
    if have not in (tf.int64, tf.string):
        raise TypeError(f"Invalid `key_dtype`, expected one of (tf.int64, tf.string), but got {have}.")
    if have.is_integer != asked.is_integer or not (asked.is_integer or asked is tf.string):
        raise TypeError(f"Invalid `key_dtype`, expected {'integer' if asked.is_integer else 'non-integer'} but got "
                        f"{have}.")
    if initializer.value_dtype is not tf.int64:
        raise TypeError(f"Invalid `value_dtype`, expected {tf.int64} but got {initializer.value_dtype}.")
    return asked
