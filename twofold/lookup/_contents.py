"""What tables hold: keys and their values, and the calls of Python that read and change them.

A table's contents are an object behind a handle (`iteration.handle`), a scalar tensor that graphs take like any other;
so a compiled function finds what the table holds when it runs. Each call is one of the `hosted` functions below, which
is why saved models can hold it; whose contents a handle of theirs stands for says `saved_model/loading.py`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from twofold._front import iteration as engine
from twofold._front.hosted import hosted
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.errors import FailedPreconditionError, InvalidArgumentError
from twofold.ir.spec import TensorSpec
from twofold.runtime.locks import RLock

__all__ = ["Contents", "Forbidden", "table_export", "table_find", "table_insert", "table_remove", "table_size"]

_FIRST = 8  # rows of memory of a table that is empty


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
            self._rows: dict[Any, int] = {}
            self._free: list[int] = []
            self._values = np.empty((_FIRST, *self.value_shape), self.value_dtype.np)

    def __len__(self) -> int:
        return len(self._rows)

    def __getstate__(self) -> dict[str, Any]:  # locks cannot be pickled
        with self._lock:
            return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())

    def check_keys(self, keys: list[Any]) -> None:
        """Refuse keys that no call may name; any is allowed here."""

    def _spelt(self, keys: np.ndarray) -> list[Any]:
        """Keys as a dict takes them."""
        rank = keys.ndim - len(self.key_shape)
        if rank < 0 or keys.shape[rank:] != self.key_shape:
            raise InvalidArgumentError(None, "table", f"Expected keys of shape {list(self.key_shape)}; "
                                                      f"got a tensor of shape {list(keys.shape)}.")
        if not self.key_shape:
            spelt = keys.ravel().tolist()
        else:
            spelt = list(map(tuple, keys.reshape(-1, int(np.prod(self.key_shape))).tolist()))
        self.check_keys(spelt)
        return spelt

    def find(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """The values of keys.

        Args:
            keys: of any number.
            default: the value of those that are missing, or one for each key.
        """
        spelt = self._spelt(keys)
        outer = keys.shape[:keys.ndim - len(self.key_shape)]
        shape = (*outer, *self.value_shape)
        if default.shape not in (self.value_shape, shape):
            raise InvalidArgumentError(None, "table", f"Expected shape {list(self.value_shape)} or {list(shape)} for "
                                                      f"default value, got {list(default.shape)}")
        with self._lock:
            rows = np.fromiter(map(self._rows.get, spelt, itertools.repeat(-1)), np.intp, len(spelt))
            values = self._values[rows]
        missing = rows < 0
        if missing.any():
            each = default.shape != self.value_shape
            values[missing] = default.reshape(-1, *self.value_shape)[missing] if each else default
        return values.reshape(shape)

    def insert(self, keys: np.ndarray, values: np.ndarray, once: bool = False) -> None:
        """Give keys values; the last one of a key that comes several times.

        Args:
            once: whether a key keeps the value that it has.
        Raises:
            InvalidArgumentError: there is not one value for each key. FailedPreconditionError: with `once`, a key has
                another value already. Nothing has changed then.
        """
        spelt = self._spelt(keys)
        shape = (*keys.shape[:keys.ndim - len(self.key_shape)], *self.value_shape)
        if values.shape != shape:
            raise InvalidArgumentError(None, "table", f"Expected shape {list(shape)} for value, got "
                                                      f"{list(values.shape)}")
        given = values.reshape(-1, *self.value_shape)
        if once:
            _refuse_changes(spelt, given)
        with self._lock:
            rows = self._rows_for(spelt)
            self._values[rows] = given

    def _rows_for(self, keys: list[Any]) -> list[int]:
        """A row for each key; its own, or a new one."""
        rows, known, free = [], self._rows, self._free
        for key in keys:
            row = known.get(key)
            if row is None:
                row = known[key] = free.pop() if free else len(known)
            rows.append(row)
        capacity = len(known) + len(free)
        if capacity > len(self._values):
            grown = np.empty((max(capacity, 2 * len(self._values)), *self.value_shape), self.value_dtype.np)
            grown[:len(self._values)] = self._values
            self._values = grown
        return rows

    def replace(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Forget everything, and give keys values."""
        with self._lock:
            self.clear()
            self.insert(keys, values)

    def remove(self, keys: np.ndarray) -> None:
        """Forget keys; those that are not there are passed over."""
        spelt = self._spelt(keys)
        with self._lock:
            for key in spelt:
                row = self._rows.pop(key, None)
                if row is not None:
                    self._free.append(row)

    def export(self) -> tuple[np.ndarray, np.ndarray]:
        """All keys, in the order in which they came, and their values."""
        with self._lock:
            rows = list(self._rows.values())
            keys = np.empty((len(rows), *self.key_shape), self.key_dtype.np)
            if rows:
                keys[:] = np.array(list(self._rows), self.key_dtype.np).reshape(keys.shape)
            return keys, self._values[rows]


def _refuse_changes(keys: list[Any], values: np.ndarray) -> None:
    """Refuse keys that come with two values."""
    known = dict(zip(keys, range(len(keys)), strict=True))
    if len(known) == len(keys):
        return
    for n, key in enumerate(keys):
        one, other = values[n], values[known[key]]
        if not np.array_equal(one, other):
            raise FailedPreconditionError(None, "table", f"HashTable has different value for same key. Key {key!r} has "
                                                         f"{one!r} and trying to add value {other!r}")


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
        self._names: dict[Any, str] = {}
        empty, deleted = self._spelt(empty_key)[0], self._spelt(deleted_key)[0]
        if empty == deleted:
            raise InvalidArgumentError(None, "DenseHashTable", "Empty and deleted keys cannot be equal")
        self._names = {empty: "empty_key", deleted: "deleted_key"}

    def check_keys(self, keys: list[Any]) -> None:
        """Refuse the two keys."""
        for key, name in self._names.items():
            if key in keys:
                raise InvalidArgumentError(None, "DenseHashTable", f"Using the {name} as a table key is not allowed")

    def replace(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Forget everything, and give keys values; the two keys, which TensorFlow's files hold, are left out."""
        flat = keys.reshape(len(keys), -1)
        never = [(flat == key.reshape(1, -1)).all(axis=1) for key in (self.empty_key, self.deleted_key)]
        kept = ~np.logical_or(*never)
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
