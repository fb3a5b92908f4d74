"""Hashes of bytes as TensorFlow takes them: FarmHash's 64-bit fingerprint, SipHash-2-4 with a key, MurmurHash64A.

Each is written once, for one text as well as for many of one length side by side: a word is then a Python integer, or
a row of NumPy's, which wraps around by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["concatenated", "fingerprint", "fingerprints", "keyed", "keyed_all", "legacy_all"]

_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_ALL = (1 << 64) - 1
_FEW = 4  # texts of one length that are quicker one by one

Word = Any  # an integer below 2**64, or a uint64 array of such


class _Texts:
    """The bytes of texts of one length, as words.

    Args:
        texts: one of bytes, or an array of rows.
        size: their length.
    """

    def __init__(self, texts: bytes | np.ndarray, size: int) -> None:
        self.size, self._one = size, texts if isinstance(texts, bytes) else None
        if not isinstance(texts, bytes):
            self._rows = np.zeros((len(texts), size + 8), np.uint8)  # so that the last word can be read as a whole
            self._rows[:, :size] = texts

    def word(self, start: int, size: int = 8) -> Word:
        """Up to eight bytes as a number, the first one lowest; zeros behind the end."""
        if self._one is not None:
            return int.from_bytes(self._one[start:start + size], "little")
        whole = np.ascontiguousarray(self._rows[:, start:start + 8]).view("<u8")[:, 0].astype(np.uint64)
        return whole if size == 8 else whole & ((1 << 8 * size) - 1)


def _hashed(texts: Sequence[bytes], of: Callable[[_Texts], Word]) -> np.ndarray:
    """A hash of each text, uint64."""
    by_size: dict[int, list[int]] = {}
    for n, text in enumerate(texts):
        by_size.setdefault(len(text), []).append(n)
    made = np.empty(len(texts), np.uint64)
    for size, places in by_size.items():
        if len(places) < _FEW:
            made[places] = [of(_Texts(texts[n], size)) for n in places]
        else:
            joined = np.frombuffer(b"".join([texts[n] for n in places]), np.uint8)
            made[places] = of(_Texts(joined.reshape(len(places), size), size))
    return made


def _turned(value: Word, by: int) -> Word:
    """Rotated to the right."""
    value = value & _ALL
    return (value >> by) | (value << (64 - by)) & _ALL


def _mixed(value: Word) -> Word:
    value = value & _ALL
    return value ^ (value >> 47)


def _times(value: Word, factor: Word) -> Word:
    return value * factor & _ALL


def _joined(u: Word, v: Word, factor: Word) -> Word:
    """Two numbers as one."""
    a = _mixed(_times(u ^ v, factor))
    return _times(_mixed(_times(v ^ a, factor)), factor)


# -- FarmHash -----------------------------------------------------------------------------------------
def fingerprint(data: bytes) -> int:
    """The 64-bit fingerprint of FarmHash (Pike & Alakuijala 2014), by which TensorFlow puts strings into buckets."""
    return int(_fingerprint(_Texts(data, len(data))))


def fingerprints(texts: Sequence[bytes]) -> np.ndarray:
    """The fingerprint of each text, uint64."""
    return _hashed(texts, _fingerprint)


def _fingerprint(data: _Texts) -> Word:
    size = data.size
    if size <= 16:
        return _short(data, size)
    factor = _K2 + size * 2
    if size <= 32:
        a, b = _times(data.word(0), _K1), data.word(8)
        c, d = _times(data.word(size - 8), factor), _times(data.word(size - 16), _K2)
        return _joined(_turned(a + b, 43) + _turned(c, 30) + d & _ALL, a + _turned(b + _K2, 18) + c & _ALL, factor)
    if size <= 64:
        return _middling(data, size, factor)
    return _long(data, size)


def _short(data: _Texts, size: int) -> Word:
    factor = _K2 + size * 2
    if size >= 8:
        a, b = data.word(0) + _K2 & _ALL, data.word(size - 8)
        return _joined(_turned(b, 37) * factor + a & _ALL, _times(_turned(a, 25) + b & _ALL, factor), factor)
    if size >= 4:
        return _joined(size + (data.word(0, 4) << 3) & _ALL, data.word(size - 4, 4), factor)
    if size:
        y = data.word(0, 1) + (data.word(size >> 1, 1) << 8)
        z = size + (data.word(size - 1, 1) << 2)
        return _times(_mixed(y * _K2 ^ z * _K0), _K2)
    return _K2


def _middling(data: _Texts, size: int, factor: int) -> Word:
    a, b = _times(data.word(0), _K2), data.word(8)
    c, d = _times(data.word(size - 8), factor), _times(data.word(size - 16), _K2)
    y = _turned(a + b, 43) + _turned(c, 30) + d & _ALL
    z = _joined(y, a + _turned(b + _K2, 18) + c & _ALL, factor)
    e, f = _times(data.word(16), factor), data.word(24)
    g, h = _times(y + data.word(size - 32) & _ALL, factor), _times(z + data.word(size - 24) & _ALL, factor)
    return _joined(_turned(e + f, 43) + _turned(g, 30) + h & _ALL, e + _turned(f + a, 18) + g & _ALL, factor)


def _weak(data: _Texts, start: int, a: Word, b: Word) -> tuple[Word, Word]:
    """32 bytes and two numbers as two numbers."""
    w, x, y, z = (data.word(start + 8 * n) for n in range(4))
    a = a + w & _ALL
    b = _turned(b + a + z, 21)
    total = a + x + y & _ALL
    return total + z & _ALL, b + _turned(total, 44) + a & _ALL


def _long(data: _Texts, size: int) -> Word:
    y = 81 * _K1 + 113 & _ALL
    z = _times(_mixed(_times(y, _K2) + 113), _K2)
    v: tuple[Word, Word] = (0, 0)
    w: tuple[Word, Word] = (0, 0)
    x = data.word(0) + (81 * _K2 & _ALL) & _ALL
    for start in range(0, (size - 1) // 64 * 64, 64):
        x, y, z, v, w = _round(data, start, x, y, z, v, w, _K1, 1)
    factor = _K1 + ((z & 0xFF) << 1)
    w = (w[0] + (size - 1 & 63) & _ALL, w[1])
    v = (v[0] + w[0] & _ALL, v[1])
    w = (w[0] + v[0] & _ALL, w[1])
    x, y, z, v, w = _round(data, size - 64, x, y, z, v, w, factor, 9)
    return _joined(_joined(v[0], w[0], factor) + _times(_mixed(y), _K0) + z & _ALL,
                   _joined(v[1], w[1], factor) + x & _ALL, factor)


def _round(data: _Texts, start: int, x: Word, y: Word, z: Word, v: tuple[Word, Word], w: tuple[Word, Word],
           factor: Word, times: int) -> tuple[Word, Word, Word, tuple[Word, Word], tuple[Word, Word]]:
    """64 bytes more."""
    x = _times(_turned(x + y + v[0] + data.word(start + 8), 37), factor)
    y = _times(_turned(y + v[1] + data.word(start + 48), 42), factor)
    x = x ^ _times(w[1], times)
    y = y + _times(v[0], times) + data.word(start + 40) & _ALL
    z = _times(_turned(z + w[0], 33), factor)
    v = _weak(data, start, _times(v[1], factor), x + w[0] & _ALL)
    w = _weak(data, start + 32, z + w[1] & _ALL, y + data.word(start + 16) & _ALL)
    return z, y, x, v, w


def concatenated(first: Word, second: Word) -> Word:
    """The fingerprint of two fingerprints one after the other, of 64 bits; also of arrays of them.

    Source: `FingerprintCat64` of tensorflow/core/platform/fingerprint.h.
    """
    factor = 0xC6A4A7935BD1E995
    mixed = first ^ factor
    mixed = mixed ^ _times(_mixed(_times(second, factor)), factor)
    return _mixed(_times(_mixed(_times(mixed, factor)), factor))


# -- SipHash ------------------------------------------------------------------------------------------
def keyed(data: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4 (Aumasson & Bernstein 2012) with a key of two 64-bit numbers."""
    return int(_keyed(_Texts(data, len(data)), key))


def keyed_all(texts: Sequence[bytes], key: tuple[int, int]) -> np.ndarray:
    """`keyed` of each text, uint64."""
    return _hashed(texts, lambda data: _keyed(data, key))


def _keyed(data: _Texts, key: tuple[int, int]) -> Word:
    k0, k1 = key[0] & _ALL, key[1] & _ALL
    v: list[Word] = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261,
                     k1 ^ 0x7465646279746573]
    whole = data.size // 8 * 8
    last = data.word(whole, data.size - whole) | (data.size & 0xFF) << 56
    for word in (*[data.word(n) for n in range(0, whole, 8)], last):
        v[3] = v[3] ^ word
        _sip(v, 2)
        v[0] = v[0] ^ word
    v[2] = v[2] ^ 0xFF
    _sip(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _left(value: Word, by: int) -> Word:
    return _turned(value, 64 - by)


def _sip(v: list[Word], rounds: int) -> None:
    for _ in range(rounds):
        v[0] = v[0] + v[1] & _ALL
        v[1] = _left(v[1], 13) ^ v[0]
        v[0] = _left(v[0], 32)
        v[2] = v[2] + v[3] & _ALL
        v[3] = _left(v[3], 16) ^ v[2]
        v[0] = v[0] + v[3] & _ALL
        v[3] = _left(v[3], 21) ^ v[0]
        v[2] = v[2] + v[1] & _ALL
        v[1] = _left(v[1], 17) ^ v[2]
        v[2] = _left(v[2], 32)


# -- MurmurHash ---------------------------------------------------------------------------------------
def legacy_all(texts: Sequence[bytes]) -> np.ndarray:
    """MurmurHash64A (Appleby 2008) of each text with the seed that TensorFlow's oldest hash has, uint64."""
    return _hashed(texts, _legacy)


def _legacy(data: _Texts) -> Word:
    factor, size = 0xC6A4A7935BD1E995, data.size
    made = 0xDECAFCAFFE ^ _times(size, factor)
    whole = size // 8 * 8
    for start in range(0, whole, 8):
        word = _times(_mixed(_times(data.word(start), factor)), factor)
        made = _times(made ^ word, factor)
    if size > whole:
        made = _times(made ^ data.word(whole, size - whole), factor)
    return _mixed(_times(_mixed(made), factor))
