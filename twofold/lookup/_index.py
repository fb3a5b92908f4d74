"""Which row belongs to a key: hash tables that kernels read and change (`codegen/kernels/tables.py`).

Rows are numbered in the order in which keys came. Those of keys that were removed stay empty until there are more of
them than others; then all are numbered anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from twofold._formats import text_memory
from twofold.codegen.kernels import tables as generated
from twofold.codegen.loop import Kernel
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.runtime import kernels, memory
from twofold.runtime.calls import address_of, run, run_alone

__all__ = ["Index"]

_FIRST = 8  # rows that there is room for in a table that is empty
_GROWTH = 8  # as many times, at most, a table grows at once
_UNITS = {1: dt.uint8, 2: dt.uint16, 4: dt.uint32, 8: dt.uint64}


class Index:
    """The rows of keys. Who calls it sees to it that one thread does at a time.

    Args:
        dtype: of elements of keys.
        shape: of one key.
    Attributes:
        used: how many rows there are, empty ones included.
        room: how many there can be before the table grows.
    """

    def __init__(self, dtype: DType, shape: tuple[int, ...]) -> None:
        self._dtype, self._shape = dtype, shape
        self._width = int(np.prod(shape, dtype=np.int64))
        self._single = not shape
        self._is_text = dtype is dt.string
        self._work = (text_memory.WORK if self._is_text else 16) * self._width
        self.used, self._empty = 0, 0
        self._keys, self._addresses = np.empty(0, dtype.np), np.empty(0, np.int64)
        self._allocate(_FIRST)

    def __reduce__(self) -> tuple[Any, ...]:  # an index of texts holds addresses
        return _filled, (self._dtype, self._shape, self.keys(self.in_order()))

    def __len__(self) -> int:
        return self.used - self._empty

    def _allocate(self, room: int) -> None:
        """Slots without keys, and room for the keys of rows, which keep theirs."""
        self.room = room
        self._slots = memory.empty((4 * room,), np.dtype(np.int64))
        self._slots.fill(0)
        keys = np.empty((room, *self._shape), self._dtype.np)
        addresses = np.empty(keys.shape if self._is_text else 0, np.int64)
        if self.used:
            keys[:self.used], addresses[:self.used] = self._keys[:self.used], self._addresses[:self.used]
        self._keys, self._addresses = keys, addresses

    # -- kernels --------------------------------------------------------------------------------------
    def _kernel(self, make: Callable[..., Kernel], *more: Any) -> kernels.Compiled:
        key = ("table", make.__name__, self._dtype, self._single, *more)
        return kernels.get(key, lambda: make(self._dtype, self._single, *more))

    def _key_args(self, keys: np.ndarray) -> list[int]:
        if self._is_text:
            pointers = [*text_memory.kernel_args(keys), address_of(self._addresses)]
        else:
            pointers = [address_of(keys), address_of(self._keys)]
        return pointers if self._single else [*pointers, self._width]

    # -- keys -----------------------------------------------------------------------------------------
    def rows(self, keys: np.ndarray) -> np.ndarray:
        """The row of each key, int64; -1 for those that are missing.

        Args:
            keys: an array of `count` keys.
        """
        rows = memory.empty((len(keys),), np.dtype(np.int64))
        kernel = self._kernel(generated.find, kernels.with_vectors())

        def find(given: np.ndarray) -> None:
            run(kernel, len(given), [address_of(rows), *_slot_args(self._slots), *self._key_args(given)],
                len(given) * self._work)
        self._reading(find, keys)
        return rows

    def values(self, keys: np.ndarray, values: np.ndarray, missing: np.ndarray, each: bool) -> np.ndarray:
        """The value of each key.

        Args:
            keys: an array of `count` keys.
            values: of rows, numbers.
            missing: the value of keys that are missing, or one for each key.
            each: whether it is one for each.
        """
        picked = memory.empty((len(keys), *values.shape[1:]), values.dtype)
        size = values.dtype.itemsize * int(np.prod(values.shape[1:], dtype=np.int64))
        unit = next(_UNITS[n] for n in (8, 4, 2, 1) if size % n == 0)
        width = size // unit.size
        kernel = self._kernel(generated.find, kernels.with_vectors(), unit, width == 1, not each)
        missing = np.ascontiguousarray(missing)

        def find(given: np.ndarray) -> None:
            run(kernel, len(given),
                [address_of(picked), *_slot_args(self._slots), *self._key_args(given), address_of(values),
                 address_of(missing), width], len(given) * (self._work + width))
        self._reading(find, keys)
        return picked

    def _reading(self, find: Callable[[np.ndarray], None], keys: np.ndarray) -> None:
        if self._is_text:
            text_memory.reading(find, keys)
        else:
            find(np.ascontiguousarray(keys))

    def insert(self, keys: np.ndarray) -> np.ndarray:
        """The row of each key, int64: its own, or a new one."""
        keys = text_memory.checked(keys) if self._is_text else np.ascontiguousarray(keys)
        before, rows, state = self.used, np.empty(len(keys), np.int64), np.array([0, self.used])
        kernel = self._kernel(generated.insert)
        while True:
            run_alone(kernel, len(keys), [address_of(rows), address_of(state), self.room, *_slot_args(self._slots),
                                          *self._key_args(keys)], len(keys) * self._work)
            done, self.used = state.tolist()
            if done == len(keys):
                break
            self._grow(len(keys) - done)
        if self._is_text:
            new = np.flatnonzero(rows >= before)[::-1]  # of equal ones the first is written last: its address is known
            self._keys[rows[new]] = keys[new]
        return rows

    def _grow(self, wanted: int) -> None:
        before, numbers = self._slots, np.arange(self.used)
        self._allocate(min(1 << (self.used + wanted - 1).bit_length(), self.room * _GROWTH))
        self._move(before, numbers)

    def _move(self, before: np.ndarray, numbers: np.ndarray) -> None:
        """Takes the keys from other slots, which have a new number for each of their rows."""
        run_alone(kernels.get("table moved", generated.moved), len(before) // 2,
                  [*_slot_args(self._slots), *_slot_args(before), address_of(numbers)], 8 * len(before))

    def remove(self, keys: np.ndarray) -> None:
        """Forget keys; those that are not there are passed over."""
        keys = text_memory.checked(keys) if self._is_text else np.ascontiguousarray(keys)
        rows = np.empty(len(keys), np.int64)
        run_alone(self._kernel(generated.remove), len(keys),
                  [address_of(rows), *_slot_args(self._slots), *self._key_args(keys)], len(keys) * self._work)
        gone = rows[rows >= 0]
        self._empty += len(gone)
        if self._is_text:
            self._keys[gone] = None

    # -- rows -----------------------------------------------------------------------------------------
    def in_order(self) -> np.ndarray:
        """The rows that have keys, in the order in which these came."""
        if not self._empty:
            return np.arange(self.used)
        numbers = self._slots.reshape(-1, 2, generated.GROUP)[:, 1]
        return np.sort(numbers[numbers > 0]) - 1

    def keys(self, rows: np.ndarray) -> np.ndarray:
        """The keys of rows."""
        return self._keys[rows]

    def packed(self) -> np.ndarray | None:
        """The rows that are left, in the order of their new numbers, where most had become empty; else None."""
        if self._empty <= max(len(self), _FIRST):
            return None
        kept, slots, numbers = self.in_order(), self._slots, np.empty(self.used, np.int64)
        numbers[kept] = np.arange(len(kept))
        keys, addresses = self._keys[kept], self._addresses[kept] if self._is_text else self._addresses
        self.used = self._empty = 0
        self._allocate(max(_FIRST, 1 << len(kept).bit_length()))
        self.used = len(kept)
        self._keys[:self.used] = keys
        if self._is_text:
            self._addresses[:self.used] = addresses
        self._move(slots, numbers)
        return kept


def _filled(dtype: DType, shape: tuple[int, ...], keys: np.ndarray) -> Index:
    made = Index(dtype, shape)
    made.insert(keys)
    return made


def _slot_args(slots: np.ndarray) -> list[int]:
    count = slots.size // 2
    return [address_of(slots), count - 1, 65 - (count // generated.GROUP).bit_length()]
