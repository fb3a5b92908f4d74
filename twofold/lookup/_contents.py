"""What tables hold: the values of keys, whose rows an index finds (`_index.py`), and the calls of Python that read and
change them.

A table's contents are an object behind a handle (`iteration.handle`), a scalar tensor that graphs take like any other;
so a compiled function finds what the table holds when it runs. Each call is one of the `hosted` functions below, which
is why saved models can hold it; whose contents a handle of theirs stands for says `saved_model/loading.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from twofold._front import iteration as engine
from twofold._front.hosted import hosted
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.errors import FailedPreconditionError, InvalidArgumentError
from twofold.ir.spec import TensorSpec
from twofold.runtime.locks import RLock

from ._index import Index

__all__ = ["Contents", "Forbidden", "table_export", "table_find", "table_insert", "table_remove", "table_size"]


class Contents:
    """Keys and the row of each in one array of values.

    Args:
        key_dtype, value_dtype: of elements.
        key_shape, value_shape: of one key and of one value.
    Raises:
        InvalidArgumentError: keys can be no floats, bools or complex numbers.
    """

    def __init__(self, key_dtype: DType, value_dtype: DType, key_shape: tuple[int, ...] = (),
                 value_shape: tuple[int, ...] = ()) -> None:
        if not key_dtype.is_integer and key_dtype is not dt.string:
            raise InvalidArgumentError(None, "table", f"keys of a table are integers or strings; got {key_dtype.name}.")
        self.key_dtype, self.value_dtype = key_dtype, value_dtype
        self.key_shape, self.value_shape = key_shape, value_shape
        self._lock = RLock()
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._index = Index(self.key_dtype, self.key_shape)
            self._values = np.empty((self._index.room, *self.value_shape), self.value_dtype.np)

    def __len__(self) -> int:
        return len(self._index)

    def __getstate__(self) -> dict[str, Any]:  # locks cannot be pickled, and an index holds addresses
        with self._lock:
            left_out = ("_lock", "_index", "_values")
            return {name: value for name, value in vars(self).items() if name not in left_out} | {
                "pairs": self.export()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        keys, values = state.pop("pairs")
        self.__dict__.update(state, _lock=RLock())
        self.clear()
        self._put(keys, values)

    def check_keys(self, keys: np.ndarray) -> None:
        """Refuse keys that no call may name; any is allowed here."""

    def _given(self, keys: np.ndarray) -> np.ndarray:
        """Keys one after another."""
        rank = keys.ndim - len(self.key_shape)
        if rank < 0 or keys.shape[rank:] != self.key_shape:
            raise InvalidArgumentError(None, "table", f"Expected keys of shape {list(self.key_shape)}; "
                                                      f"got a tensor of shape {list(keys.shape)}.")
        given = keys.reshape(math.prod(keys.shape[:rank]), *self.key_shape)
        self.check_keys(given)
        return given

    def find(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """The values of keys.

        Args:
            keys: of any number.
            default: the value of those that are missing, or one for each key.
        """
        given = self._given(keys)
        shape = (*keys.shape[:keys.ndim - len(self.key_shape)], *self.value_shape)
        if default.shape not in (self.value_shape, shape):
            raise InvalidArgumentError(None, "table", f"Expected shape {list(self.value_shape)} or {list(shape)} for "
                                                      f"default value, got {list(default.shape)}")
        each = default.shape != self.value_shape
        missing = default.reshape(-1, *self.value_shape) if each else default
        with self._lock:
            if self.value_dtype is not dt.string:
                return self._index.values(given, self._values, missing, each).reshape(shape)
            rows = self._index.rows(given)
            values = self._values[rows]
        lost = rows < 0
        if lost.any():
            values[lost] = missing[lost] if each else missing
        return values.reshape(shape)

    def insert(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Give keys values; the last one of a key that comes several times.

        Raises:
            InvalidArgumentError: there is not one value for each key.
        """
        given, values = self._pairs(keys, values)
        with self._lock:
            self._put(given, values)

    def fill(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Give the first keys their values.

        Raises:
            InvalidArgumentError: there is not one value for each key. FailedPreconditionError: a key comes with two
                values; there are no keys then.
        """
        given, values = self._pairs(keys, values)
        with self._lock:
            rows = self._put(given, values)
            if len(self) < len(given):
                changes = np.flatnonzero(self._values[rows] != values)
                if len(changes):
                    self.clear()
                    _refuse_change(given, values, rows, int(changes[0]))

    def _pairs(self, keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        given = self._given(keys)
        shape = (*keys.shape[:keys.ndim - len(self.key_shape)], *self.value_shape)
        if values.shape != shape:
            raise InvalidArgumentError(None, "table", f"Expected shape {list(shape)} for value, got "
                                                      f"{list(values.shape)}")
        return given, values.reshape(len(given), *self.value_shape)

    def _put(self, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Give keys values, and give their rows."""
        rows = self._index.insert(keys)
        if self._index.room > len(self._values):
            self._values = self._with_room(self._values)
        self._values[rows] = values
        return rows

    def _with_room(self, values: np.ndarray) -> np.ndarray:
        """Values of rows, with memory for as many as the index has room for."""
        grown = np.empty((self._index.room, *self.value_shape), self.value_dtype.np)
        grown[:len(values)] = values
        return grown

    def replace(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Forget everything, and give keys values."""
        with self._lock:
            self.clear()
            self.insert(keys, values)

    def remove(self, keys: np.ndarray) -> None:
        """Forget keys; those that are not there are passed over."""
        given = self._given(keys)
        with self._lock:
            self._index.remove(given)
            kept = self._index.packed()
            if kept is not None:
                self._values = self._with_room(self._values[kept])

    def export(self) -> tuple[np.ndarray, np.ndarray]:
        """All keys, in the order in which they came, and their values."""
        with self._lock:
            rows = self._index.in_order()
            return self._index.keys(rows), self._values[rows]


def _refuse_change(keys: np.ndarray, values: np.ndarray, rows: np.ndarray, at: int) -> None:
    last = values[np.flatnonzero(rows == rows[at])[-1]]
    raise FailedPreconditionError(None, "table", f"HashTable has different value for same key. Key {keys[at]!r} has "
                                                 f"{values[at]!r} and trying to add value {last!r}")


class Forbidden(Contents):
    """The contents of a dense table: two keys are never in it.

    Args:
        empty_key, deleted_key: those.
    Raises:
        InvalidArgumentError: they are the same, or of different shapes.
    """

    def __init__(self, key_dtype: DType, value_dtype: DType, value_shape: tuple[int, ...], empty_key: np.ndarray,
                 deleted_key: np.ndarray) -> None:
        super().__init__(key_dtype, value_dtype, empty_key.shape, value_shape)
        if deleted_key.shape != empty_key.shape:
            raise InvalidArgumentError(None, "DenseHashTable", "Empty and deleted keys must have same shape, got "
                                       f"shapes: {list(empty_key.shape)} and {list(deleted_key.shape)}")
        self.empty_key, self.deleted_key = empty_key, deleted_key
        self._never = Index(key_dtype, self.key_shape)
        if len(set(self._never.insert(np.stack([empty_key, deleted_key])).tolist())) < 2:
            raise InvalidArgumentError(None, "DenseHashTable", "Empty and deleted keys cannot be equal")

    def check_keys(self, keys: np.ndarray) -> None:
        """Refuse the two keys."""
        for number, (key, name) in enumerate(((self.empty_key, "empty_key"), (self.deleted_key, "deleted_key"))):
            # To compare all with one number takes less time than to look them up.
            are = keys == key if not self.key_shape and self.key_dtype is not dt.string else \
                self._never.rows(keys) == number
            if are.any():
                raise InvalidArgumentError(None, "DenseHashTable", f"Using the {name} as a table key is not allowed")

    def replace(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Forget everything, and give keys values; the two keys, which TensorFlow's files hold, are left out."""
        kept = self._never.rows(keys) < 0
        super().replace(keys.reshape(-1, *self.key_shape)[kept], values.reshape(-1, *self.value_shape)[kept])


# -- calls --------------------------------------------------------------------------------------------
def _behind(handle: Any) -> Contents:
    """The contents that a handle stands for.

    Raises:
        InvalidArgumentError: it is no handle of a table.
    """
    array = engine.array_of(handle)
    contents = getattr(array[()], "target", None) if array.shape == () else None
    if not isinstance(contents, Contents):
        raise InvalidArgumentError(None, "table", "the tensor is no handle of a table.")
    return contents


def _of_dtype(tensor: Any, dtype: DType, what: str) -> np.ndarray:
    array = engine.array_of(tensor)
    if engine.dtype_of(array) is not dtype:
        raise InvalidArgumentError(None, "table", f"{what} must be {dtype.name}; got {array.dtype}.")
    return array


def _sizes(keys: Any, without: int, more: list[Any]) -> list[Any] | None:
    """The sizes of a tensor without the last few, and more; None where the rank is not known."""
    return None if keys.shape.rank is None else [*keys.dims[:keys.shape.rank - without], *more]


@hosted
def table_find(handle: Any, keys: Any, default: Any, key_rank: int, value_shape: list[int]) -> Any:
    """The values of keys in the table behind a handle.

    Args:
        handle: of the table.
        keys: a tensor.
        default: a value for those that are missing, or a value for each key.
        key_rank: how many axes a key has.
        value_shape: the sizes of a value.
    """
    def find(*tensors: Any) -> list[Any]:
        table = _behind(tensors[0])
        asked = _of_dtype(tensors[1], table.key_dtype, "keys")
        return [engine.tensor_of(table.find(asked, _of_dtype(tensors[2], table.value_dtype, "the default value")))]
    return engine.host_call(find, "LookupTableFind", [handle, keys, default],
                            [TensorSpec(_sizes(keys, key_rank, value_shape), default.dtype)])[0]


@hosted
def table_insert(handle: Any, keys: Any, values: Any) -> None:
    """Give keys values in the table behind a handle."""
    def insert(*tensors: Any) -> list[Any]:
        table = _behind(tensors[0])
        table.insert(_of_dtype(tensors[1], table.key_dtype, "keys"), _of_dtype(tensors[2], table.value_dtype, "values"))
        return []
    engine.host_call(insert, "LookupTableInsert", [handle, keys, values], [])


@hosted
def table_remove(handle: Any, keys: Any) -> None:
    """Forget keys in the table behind a handle."""
    def remove(*tensors: Any) -> list[Any]:
        table = _behind(tensors[0])
        table.remove(_of_dtype(tensors[1], table.key_dtype, "keys"))
        return []
    engine.host_call(remove, "LookupTableRemove", [handle, keys], [])


@hosted
def table_size(handle: Any) -> Any:
    """How many keys there are in the table behind a handle, int64."""
    def count(tensor: Any) -> list[Any]:
        return [engine.tensor_of(np.array(len(_behind(tensor)), np.int64))]
    return engine.host_call(count, "LookupTableSize", [handle], [TensorSpec([], dt.int64)])[0]


@hosted
def table_export(handle: Any, key_dtype: Any, value_dtype: Any, key_shape: list[int], value_shape: list[int]) -> Any:
    """All keys and values of the table behind a handle.

    Args:
        handle: of the table.
        key_dtype, value_dtype, key_shape, value_shape: of its keys and values.
    """
    def export(tensor: Any) -> list[Any]:
        return [engine.tensor_of(array) for array in _behind(tensor).export()]
    return tuple(engine.host_call(export, "LookupTableExport", [handle], [
        TensorSpec([None, *key_shape], dt.as_dtype(key_dtype)), TensorSpec([None, *value_shape],
                                                                           dt.as_dtype(value_dtype))]))
