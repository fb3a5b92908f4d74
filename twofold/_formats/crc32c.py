"""CRC-32C (Castagnoli), which TensorFlow's record files and checkpoints carry.

The polynomial and the bit order are those of RFC 3720, appendix B.4; the masked form is that of TensorFlow's and
LevelDB's record formats. Native code (`crc32c_native.py`) takes one word after another. Without it, bytes go through
the table in many lanes side by side, one NumPy step a byte of each lane; the lanes' remainders are then joined pair by
pair, because appending zeros to a message is a linear map of its remainder.
"""

from __future__ import annotations

import functools

import numpy as np

__all__ = ["crc32c", "masked"]

_POLYNOMIAL = 0x82F63B78  # bits reversed
_MASK = 0xA282EAD8
_FEW = 2048  # bytes that plain Python takes, where native code is off
_TINY = 32  # bytes that plain Python takes anyway


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


@functools.cache
def _zeros(exponent: int) -> np.ndarray:
    """What 2**exponent zero bytes after it make of a remainder: by the place of a byte in it, and the byte."""
    if exponent == 0:
        bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
        columns = bits >> np.uint32(8) ^ _table()[bits & np.uint32(0xFF)]
    else:
        half = _zeros(exponent - 1)
        columns = _applied(half, half[[n // 8 for n in range(32)], [1 << n % 8 for n in range(32)]])
    made = np.zeros((4, 256), np.uint32)
    for n in range(32):
        made[n // 8, np.arange(256) >> n % 8 & 1 == 1] ^= columns[n]
    return made


def _applied(zeros: np.ndarray, values: np.ndarray) -> np.ndarray:
    out = zeros[0][values & np.uint32(0xFF)]
    for n in (1, 2, 3):
        out = out ^ zeros[n][values >> np.uint32(8 * n) & np.uint32(0xFF)]
    return out


def _after(state: int, size: int) -> int:
    """The remainder with `size` zero bytes after it."""
    values = np.array([state], np.uint32)
    for exponent in range(size.bit_length()):
        if size >> exponent & 1:
            values = _applied(_zeros(exponent), values)
    return int(values[0])


def _remainder(data: np.ndarray, state: int) -> int:
    if data.size <= _FEW:
        table = _numbers()
        for byte in data.tolist():
            state = state >> 8 ^ table[(state ^ byte) & 0xFF]
        return state
    exponent = min(data.size.bit_length() // 2 - 1, 10)  # lanes of a power of two, more of them than each has bytes
    length = 1 << exponent
    lanes = 1 << (data.size // length).bit_length() - 1
    whole = lanes * length
    remainders, bytes_ = _table(), np.ascontiguousarray(data[:whole].reshape(lanes, length).T)
    states = np.zeros(lanes, np.uint32)
    for row in bytes_:
        states = states >> np.uint32(8) ^ remainders[(states ^ row) & np.uint32(0xFF)]
    while states.size > 1:
        states = _applied(_zeros(exponent), states[::2]) ^ states[1::2]
        exponent += 1
    return _remainder(data[whole:], _after(state, whole) ^ int(states[0]))


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
    from .crc32c_native import entry  # the compiler's modules, which few programs need for this
    run = entry()
    if run is None:
        return _remainder(data, state)
    address: int = data.__array_interface__["data"][0]
    return run(_table_address(), address, data.size, state)


@functools.cache
def _tables() -> np.ndarray:
    """The remainder of each byte with none to seven zero bytes after it."""
    rows = [_table()]
    for _ in range(7):
        rows.append(rows[-1] >> np.uint32(8) ^ _table()[rows[-1] & np.uint32(0xFF)])
    return np.stack(rows)


@functools.cache
def _table_address() -> int:
    address: int = _tables().__array_interface__["data"][0]
    return address


def masked(crc: int) -> int:
    """The form in which files store a CRC, so that a CRC of data that holds CRCs is a good one."""
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF
