"""CRC-32C against the values of RFC 3720 and a bitwise definition."""

import numpy as np
import pytest

from twofold._formats.crc32c import crc32c


def bitwise(data: bytes) -> int:
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


@pytest.mark.parametrize(("data", "crc"), [
    (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C), (b"123456789", 0xE3069283)])
def test_published_values(data, crc):
    """RFC 3720, B.4, and the usual check value."""
    assert crc32c(data) == crc


@pytest.mark.parametrize("size", [0, 1, *range(33, 42), 2047, 2048, 2049, 4096, 5000, 65_537, 100_003])
def test_any_length_in_one_piece_or_two(size):
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    assert crc32c(data) == bitwise(data)
    assert crc32c(data[size // 3:], crc32c(data[:size // 3])) == crc32c(data)
    assert crc32c(np.frombuffer(b"odd" + data, np.uint8)[3:]) == bitwise(data)


def test_arrays_by_their_bytes():
    array = np.arange(6.0).reshape(2, 3)
    assert crc32c(array.T) == crc32c(array.T.copy().tobytes())
    assert crc32c(np.zeros((0, 3))) == 0
