"""Memory of kernels that NumPy runs: bytes behind addresses, which are numbers as in a machine; and kernels by number.

Every piece of memory has a range of numbers of its own, far from all others, so that an address that leaves its piece
is parts. What runs over it is `lockstep.py`'s affair.
"""

from __future__ import annotations

from types import EllipsisType
from typing import NamedTuple

import numpy as np

from twofold.ir.dtypes import DType

from .statements import Kernel

__all__ = ["ByteMemory", "AddressSpace"]

_APART = 40  # bits of the range of one piece, half of them below its first byte
_HALF = 1 << _APART - 1
_BELOW = -1 << 62  # bits of negative numbers


class ByteMemory(NamedTuple):
    """Bytes that a pointer points into, and the number of the byte that it points to."""

    array: np.ndarray
    at: int = 0

    def beside(self, offset: int) -> ByteMemory:
        """The memory so many bytes further on."""
        return ByteMemory(self.array, self.at + offset)


class AddressSpace:
    """Pieces of memory, by their addresses."""

    def __init__(self) -> None:
        self.pieces: list[np.ndarray] = []
        self.kernels: list[Kernel] = []

    def word(self, thing: ByteMemory | Kernel) -> int:
        """The word of an args array that stands for memory, or for a kernel: its address, or its number."""
        if isinstance(thing, ByteMemory):
            return self.place(thing)
        self.kernels.append(thing)
        return len(self.kernels) - 1

    def place(self, memory: ByteMemory) -> int:
        """The address of memory that is new here."""
        self.pieces.append(memory.array)
        return (len(self.pieces) << _APART) + memory.at

    def allocate(self, lanes: int, count: int, dtype: DType) -> np.ndarray:
        """Addresses of `count` elements for each of `lanes`: uninitialised, so NaN where they are floats.

        What was allocated last is released first (`release`).
        """
        size = -(-count * dtype.np.itemsize // 64) * 64
        start = self.place(ByteMemory(np.full(lanes * size, 0xFF, np.uint8)))
        return start + np.arange(lanes, dtype=np.int64) * size

    def release(self, count: int) -> None:
        """Forgets all pieces but the first `count`."""
        del self.pieces[count:]

    def load(self, addresses: np.ndarray, dtype: DType) -> np.ndarray:
        """The elements at some addresses.

        Raises:
            IndexError: one lies outside of all memory, or between elements.
        """
        out = np.empty(addresses.shape, dtype.np)
        for chosen, elements, places in self._parts(addresses, dtype):
            out[chosen] = elements[places]
        return out

    def store(self, addresses: np.ndarray, values: np.ndarray, dtype: DType) -> None:
        """Writes elements, the last of several at one address.

        Raises:
            IndexError: as for `load`.
        """
        for chosen, elements, places in self._parts(addresses, dtype):
            elements[places] = _rounded(values[chosen], dtype)

    def _parts(self, addresses: np.ndarray,
               dtype: DType) -> list[tuple[np.ndarray | EllipsisType, np.ndarray, np.ndarray]]:
        """For each piece that addresses lie in: which do, its elements, and their numbers."""
        if not addresses.size:
            return []
        part = self._elements((addresses.item(0) + _HALF) >> _APART, addresses, dtype)
        if part is not None:
            return [(..., *part)]
        parts: list[tuple[np.ndarray | EllipsisType, np.ndarray, np.ndarray]] = []
        numbers = (addresses + _HALF) >> _APART
        for number in np.unique(numbers).tolist():
            chosen = numbers == number
            part = self._elements(number, addresses[chosen], dtype)
            if part is None:
                raise IndexError("outside of memory")
            parts.append((chosen, *part))
        return parts

    def _elements(self, number: int, addresses: np.ndarray, dtype: DType) -> tuple[np.ndarray, np.ndarray] | None:
        """A piece as elements of a type, and which of them lie at some addresses; None where some lie outside of it, or
        between elements."""
        if not 0 < number <= len(self.pieces):
            return None
        base, size = number << _APART, dtype.np.itemsize  # which is a power of two
        first = (addresses.item(0) - base) % size
        at = addresses - (base + first)
        bits = int(np.bitwise_or.reduce(at, None))  # no number is larger
        if bits & (_BELOW | size - 1):
            return None
        piece = self.pieces[number - 1][first:]
        elements = piece[:len(piece) // size * size].view(dtype.np)
        if bits >= len(elements) * size and np.maximum.reduce(at, None) >= len(elements) * size:
            return None
        return elements, at >> size.bit_length() - 1


def _rounded(values: np.ndarray, dtype: DType) -> np.ndarray:
    """`values` as memory of `dtype` holds them, rounded once."""
    if values.dtype == np.float64 and dtype.name == "bfloat16":  # whose conversion goes by way of float32
        values = _odd(values)
    return values.astype(dtype.np)


def _odd(x: np.ndarray) -> np.ndarray:
    """float32 of float64, toward zero, with the last bit set where anything was lost: rounding it again to fewer bits
    is then rounding once (Boldo and Melquiond, 2008)."""
    near = x.astype(np.float32)
    bits = near.view(np.uint32)
    bits = np.where(np.abs(near.astype(np.float64)) > np.abs(x), bits - np.uint32(1), bits)
    toward = bits.view(np.float32)
    lost = np.isfinite(x) & (toward.astype(np.float64) != x)
    return np.where(lost, bits | np.uint32(1), bits).view(np.float32)
