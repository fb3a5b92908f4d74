"""Hashes of bytes as TensorFlow's layers take them: FarmHash's 64-bit fingerprint, and SipHash-2-4 with a key."""

from __future__ import annotations

__all__ = ["concatenated", "fingerprint", "keyed"]

_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_ALL = (1 << 64) - 1


def _at(data: bytes, start: int, size: int = 8) -> int:
    return int.from_bytes(data[start:start + size], "little")


def _turned(value: int, by: int) -> int:
    """Rotated to the right."""
    value &= _ALL
    return (value >> by) | (value << (64 - by)) & _ALL


def _mixed(value: int) -> int:
    value &= _ALL
    return value ^ (value >> 47)


def _joined(u: int, v: int, factor: int) -> int:
    """Two numbers as one."""
    a = _mixed((u ^ v) * factor)
    return _mixed((v ^ a) * factor) * factor & _ALL


def fingerprint(data: bytes) -> int:
    """The 64-bit fingerprint of FarmHash (Pike & Alakuijala 2014), by which TensorFlow puts strings into buckets."""
    size = len(data)
    if size <= 16:
        return _short(data, size)
    factor = _K2 + size * 2
    if size <= 32:
        a, b = _at(data, 0) * _K1, _at(data, 8)
        c, d = _at(data, size - 8) * factor, _at(data, size - 16) * _K2
        return _joined(_turned(a + b, 43) + _turned(c, 30) + d & _ALL, a + _turned(b + _K2, 18) + c & _ALL, factor)
    if size <= 64:
        return _middling(data, size, factor)
    return _long(data, size)


def _short(data: bytes, size: int) -> int:
    factor = _K2 + size * 2
    if size >= 8:
        a, b = _at(data, 0) + _K2, _at(data, size - 8)
        return _joined(_turned(b, 37) * factor + a & _ALL, (_turned(a, 25) + b) * factor & _ALL, factor)
    if size >= 4:
        return _joined(size + (_at(data, 0, 4) << 3) & _ALL, _at(data, size - 4, 4), factor)
    if size:
        y = data[0] + (data[size >> 1] << 8)
        z = size + (data[size - 1] << 2)
        return _mixed(y * _K2 ^ z * _K0) * _K2 & _ALL
    return _K2


def _middling(data: bytes, size: int, factor: int) -> int:
    a, b = _at(data, 0) * _K2, _at(data, 8)
    c, d = _at(data, size - 8) * factor, _at(data, size - 16) * _K2
    y = _turned(a + b, 43) + _turned(c, 30) + d & _ALL
    z = _joined(y, a + _turned(b + _K2, 18) + c & _ALL, factor)
    e, f = _at(data, 16) * factor, _at(data, 24)
    g, h = (y + _at(data, size - 32)) * factor, (z + _at(data, size - 24)) * factor
    return _joined(_turned(e + f, 43) + _turned(g, 30) + h & _ALL, e + _turned(f + a, 18) + g & _ALL, factor)


def _weak(data: bytes, start: int, a: int, b: int) -> tuple[int, int]:
    """32 bytes and two numbers as two numbers."""
    w, x, y, z = (_at(data, start + 8 * n) for n in range(4))
    a = a + w & _ALL
    b = _turned(b + a + z, 21)
    total = a + x + y & _ALL
    return total + z & _ALL, b + _turned(total, 44) + a & _ALL


def _long(data: bytes, size: int) -> int:
    x, y = 81, 81 * _K1 + 113 & _ALL
    z = _mixed(y * _K2 + 113) * _K2 & _ALL
    v, w = (0, 0), (0, 0)
    x = x * _K2 + _at(data, 0) & _ALL
    for start in range(0, (size - 1) // 64 * 64, 64):
        x, y, z, v, w = _round(data, start, x, y, z, v, w, _K1, 1)
    factor = _K1 + ((z & 0xFF) << 1)
    w = (w[0] + (size - 1 & 63) & _ALL, w[1])
    v = (v[0] + w[0] & _ALL, v[1])
    w = (w[0] + v[0] & _ALL, w[1])
    x, y, z, v, w = _round(data, size - 64, x, y, z, v, w, factor, 9)
    return _joined(_joined(v[0], w[0], factor) + _mixed(y) * _K0 + z & _ALL, _joined(v[1], w[1], factor) + x & _ALL,
                   factor)


def _round(data: bytes, start: int, x: int, y: int, z: int, v: tuple[int, int], w: tuple[int, int], factor: int,
           times: int) -> tuple[int, int, int, tuple[int, int], tuple[int, int]]:
    """64 bytes more."""
    x = _turned(x + y + v[0] + _at(data, start + 8), 37) * factor & _ALL
    y = _turned(y + v[1] + _at(data, start + 48), 42) * factor & _ALL
    x ^= w[1] * times & _ALL
    y = y + v[0] * times + _at(data, start + 40) & _ALL
    z = _turned(z + w[0], 33) * factor & _ALL
    v = _weak(data, start, v[1] * factor & _ALL, x + w[0] & _ALL)
    w = _weak(data, start + 32, z + w[1] & _ALL, y + _at(data, start + 16) & _ALL)
    return z, y, x, v, w


def concatenated(first: int, second: int) -> int:
    """The fingerprint of two fingerprints one after the other, of 64 bits.

    Source: `FingerprintCat64` of tensorflow/core/platform/fingerprint.h.
    """
    factor = 0xC6A4A7935BD1E995
    mixed = first ^ factor
    mixed ^= _mixed((second & _ALL) * factor & _ALL) * factor & _ALL
    mixed = _mixed(mixed * factor & _ALL) * factor & _ALL
    return _mixed(mixed)


def keyed(data: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4 (Aumasson & Bernstein 2012) with a key of two 64-bit numbers."""
    k0, k1 = key[0] & _ALL, key[1] & _ALL
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    whole = len(data) // 8 * 8
    words = [_at(data, n) for n in range(0, whole, 8)]
    words.append(_at(data, whole) | (len(data) & 0xFF) << 56)
    for word in words:
        v[3] ^= word
        _sip(v, 2)
        v[0] ^= word
    v[2] ^= 0xFF
    _sip(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _left(value: int, by: int) -> int:
    return _turned(value, 64 - by)


def _sip(v: list[int], rounds: int) -> None:
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
