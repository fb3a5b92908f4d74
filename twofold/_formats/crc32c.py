"""CRC-32C (Castagnoli), which TensorFlow's record files and checkpoints carry.

The polynomial and the bit order are those of RFC 3720, appendix B.4; the masked form is that of TensorFlow's and
LevelDB's record formats. A kernel (`codegen/kernels/file_bytes.py`) takes one word after another; a few bytes Python
takes.
"""

from __future__ import annotations

import functools
from array import array

import numpy as np

from twofold.codegen.kernels import file_bytes as generated
from twofold.runtime import kernels
from twofold.runtime.calls import address_of, run_alone

__all__ = ["crc32c", "masked"]

_POLYNOMIAL = 0x82F63B78  # bits reversed
_MASK = 0xA282EAD8
_TINY = 32  # bytes that plain Python takes


@functools.cache
def _table() -> np.ndarray:
    """The remainder of each byte."""
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = np.where(values & 1, values >> 1 ^ np.uint32(_POLYNOMIAL), values >> 1)
    return values


@functools.cache
def _numbers() -> list[int]:
    return _table().tolist()


def _remainder(data: np.ndarray, state: int) -> int:
    table = _numbers()
    for byte in data.tolist():
        state = state >> 8 ^ table[(state ^ byte) & 0xFF]
    return state


def crc32c(data: bytes | bytearray | memoryview | np.ndarray, before: int = 0) -> int:
    """The CRC-32C of `data`, as an unsigned number of 32 bits.

    Args:
        data: bytes, or an array whose memory is contiguous.
        before: the CRC of what comes before `data`.

    >>> from twofold._formats import crc32c
    >>> hex(crc32c.crc32c(b"123456789"))
    '0xe3069283'
    """
    if isinstance(data, np.ndarray):
        data = np.ascontiguousarray(data).reshape(-1).view(np.uint8).data if data.size else b""
    given = np.frombuffer(data, np.uint8)
    remainder = _natively if given.size > _TINY else _remainder
    return remainder(given, before ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


def _natively(data: np.ndarray, state: int) -> int:
    address = address_of(data)
    lead = min(-address % 8, data.size)
    held = array("I", [state])
    run_alone(kernels.get("crc32c", generated.crc32c), data.size,
              [held.buffer_info()[0], address_of(_tables()), address, address + lead, lead, (data.size - lead) // 8],
              data.size)
    return held[0]


@functools.cache
def _tables() -> np.ndarray:
    """The remainder of each byte with none to seven zero bytes after it."""
    rows = [_table()]
    for _ in range(7):
        rows.append(rows[-1] >> np.uint32(8) ^ _table()[rows[-1] & np.uint32(0xFF)])
    return np.stack(rows)


def masked(crc: int) -> int:
    """The form in which files store a CRC, so that a CRC of data that holds CRCs is a good one."""
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF
