"""`tf.lookup.experimental`: tables that change."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import one_int, tensor
from twofold._front.namespace import publish

from ._contents import Contents, Forbidden, table_insert, table_remove
from ._tables import Table, keys_of, of_values

__all__ = ["DenseHashTable", "MutableHashTable"]


class _Mutable(Table):
    """What tables that change share.

    Args:
        contents: empty.
        default: the value of keys that are missing.
        name: of the table.
        checkpoint: whether checkpoints hold the contents.
    """

    def __init__(self, contents: Contents, default: Any, name: str | None, checkpoint: bool) -> None:
        self._default, self._checkpoint = default, checkpoint
        super().__init__(contents, name)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Give keys values.

        Args:
            keys: a tensor of any number of keys.
            values: a value for each.
            name: accepted, without effect.
        Raises:
            ValueError: dtypes are others than the table's. InvalidArgumentError: there is not one value for each key.
        """
        about = self._contents
        table_insert(self._handle, tensor(keys, about.key_dtype), tensor(values, about.value_dtype))

    def remove(self, keys: Any, name: str | None = None) -> None:
        """Forget keys; those that are not in the table are passed over.

        Args:
            keys: a tensor of any number of keys.
            name: accepted, without effect.
        Raises:
            TypeError: they have another dtype than those of the table.
        """
        table_remove(self._handle, keys_of(keys, self.key_dtype))

    def _saved_values(self) -> dict[str, Any]:
        if not self._checkpoint:
            return {}
        keys, values = self._contents.export()
        return {"table-keys": keys, "table-values": values}

    def _restore_values(self, values: dict[str, Any]) -> None:
        """Take back what `_saved_values` gave, or what TensorFlow's checkpoints have for such a table."""
        keys, given = values.get("table-keys"), values.get("table-values")
        about = self._contents
        if keys is None or given is None or engine.dtype_of(keys) is not about.key_dtype or engine.dtype_of(
                given) is not about.value_dtype:
            raise ValueError(f"a checkpoint has no keys {about.key_dtype.name} and values {about.value_dtype.name} for "
                             "this table")
        self._replace(keys, given)

    def _replace(self, keys: np.ndarray, values: np.ndarray) -> None:
        self._contents.replace(keys, values)


class MutableHashTable(_Mutable):
    """A table that functions fill and change.

    Checkpoints and saved models hold its contents. Compiled functions read and change it in the order of the program.

    Args:
        key_dtype: of keys, an integer or string.
        value_dtype: of values.
        default_value: what keys have that are not in the table; its shape is that of values.
        name: of the table.
        checkpoint: whether checkpoints hold the contents.
        experimental_is_anonymous: accepted, without effect.

    >>> import twofold as tf
    >>> table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=-1)
    >>> table.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
    >>> table.remove(tf.constant(["a"]))
    >>> table.lookup(tf.constant(["a", "b"])).numpy().tolist(), int(table.size())
    ([-1, 2], 1)
    """

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any, name: str = "MutableHashTable",
                 checkpoint: bool = True, experimental_is_anonymous: bool = False) -> None:
        default = tensor(default_value, value_dtype)
        contents = Contents(tf.as_dtype(key_dtype), default.dtype, (), default._array.shape)
        super().__init__(contents, default, name, checkpoint)

    def lookup(self, keys: Any, dynamic_default_values: Any = None,  # type: ignore[override]  # as in TensorFlow
               name: str | None = None) -> Any:
        """The values of keys.

        Args:
            keys: a tensor of any shape.
            dynamic_default_values: in the place of the table's default: one value, or one for each key.
            name: accepted, without effect.
        Returns:
            A tensor of that shape, and that of a value behind it.
        Raises:
            ValueError: keys have another dtype than those of the table.
        """
        if dynamic_default_values is None and (mapped := of_values(keys, self.lookup)) is not None:
            return mapped
        default = self._default if dynamic_default_values is None else tensor(dynamic_default_values, self.value_dtype)
        return self._values_of(tensor(keys, self.key_dtype), default)


class DenseHashTable(_Mutable):
    """A table that functions fill and change, whose keys may be vectors. Two keys are never in it.

    Args:
        key_dtype: of keys, an integer or string.
        value_dtype: of values.
        default_value: what keys have that are not in the table; its shape is that of values.
        empty_key, deleted_key: two different keys that are never used; their shape is that of keys.
        initial_num_buckets: accepted, without effect; a power of 2, at least 4.
        name: of the table.
        checkpoint: whether checkpoints hold the contents.
        experimental_is_anonymous: accepted, without effect.
    Raises:
        InvalidArgumentError: the two keys are the same, or the number of buckets is another.

    >>> import twofold as tf
    >>> table = tf.lookup.experimental.DenseHashTable(
    ...     tf.int64, tf.int64, default_value=-1, empty_key=[0, 0], deleted_key=[-1, -1])
    >>> table.insert(tf.constant([[1, 2], [3, 4]], tf.int64), tf.constant([5, 6], tf.int64))
    >>> table.lookup(tf.constant([[3, 4], [4, 3]], tf.int64)).numpy().tolist()
    [6, -1]
    """

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any, empty_key: Any, deleted_key: Any,
                 initial_num_buckets: int | None = None, name: str = "MutableDenseHashTable", checkpoint: bool = True,
                 experimental_is_anonymous: bool = False) -> None:
        if initial_num_buckets is not None:
            count = one_int(initial_num_buckets, "initial_num_buckets")
            if count < 4 or count & count - 1:
                raise tf.errors.InvalidArgumentError(
                    None, "DenseHashTable", f"Number of buckets must be at least 4 and a power of 2, got: {count}")
        default = tensor(default_value, value_dtype)
        empty, deleted = (engine.array_of(tensor(key, key_dtype)) for key in (empty_key, deleted_key))
        contents = Forbidden(tf.as_dtype(key_dtype), default.dtype, default._array.shape, empty, deleted)
        super().__init__(contents, default, name, checkpoint)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys.

        Args:
            keys: a tensor of any number of keys.
            name: accepted, without effect.
        Returns:
            A tensor with a value for each.
        Raises:
            ValueError: keys have another dtype than those of the table. InvalidArgumentError: one is never used.
        """
        mapped = of_values(keys, self.lookup)
        return self._values_of(tensor(keys, self.key_dtype), self._default) if mapped is None else mapped

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Give keys values, as `insert` does. `name` has no effect."""
        self.insert(keys, values)

    def erase(self, keys: Any, name: str | None = None) -> None:
        """Forget keys, as `remove` does. `name` has no effect."""
        self.remove(keys)


publish(__name__)
