"""Relocations of object files: what is written where code refers to the address of something, on each processor.

The kinds and their arithmetic are those of the ELF supplements for x86-64 ("System V ABI, AMD64 Supplement", chapter 4)
and AArch64 ("ELF for the Arm 64-bit Architecture", chapter 5). Which places and symbols there are is `image.py`'s.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from twofold.ir.data_class import data_class

__all__ = ["BY_MACHINE", "Processor", "Rule"]

# Writes to a place in a buffer: (buffer, index in it, address of the place, address that is referred to).
Write = Callable[[bytearray, int, int, int], None]


@data_class(frozen=True)
class Rule:
    """One kind of relocation.

    Attributes:
        write: puts the address, or what tells it, in its place; a `struct.error` where it is out of reach.
        near: whether what it refers to must lie in the same mapping.
        call: whether it is a call, which may go by way of a stub.
    """

    write: Write
    near: bool = False
    call: bool = False


@data_class(frozen=True)
class Processor:
    """The relocations of a processor.

    Attributes:
        rules: by the kind's number.
        stub: instructions that jump to the address which lies behind them, in the 8 bytes that follow.
    """

    rules: Mapping[int, Rule]
    stub: bytes = b""


def _word(memory: bytearray, at: int, place: int, value: int) -> None:
    struct.pack_into("<Q", memory, at, value & (1 << 64) - 1)


def _distance(memory: bytearray, at: int, place: int, value: int) -> None:
    struct.pack_into("<q", memory, at, value - place)


def _short_distance(memory: bytearray, at: int, place: int, value: int) -> None:
    struct.pack_into("<i", memory, at, value - place)


_X86_64 = Processor({1: Rule(_word), 24: Rule(_distance), 2: Rule(_short_distance, near=True),
                     4: Rule(_short_distance, near=True)})


def _field(memory: bytearray, at: int, mask: int, bits: int) -> None:
    """Replaces the bits of `mask` of an instruction."""
    before, = struct.unpack_from("<I", memory, at)
    struct.pack_into("<I", memory, at, before & ~mask | bits & mask)


def _within(number: int, bits: int) -> int:
    """`number`, which must be a signed one of so many bits."""
    if not -1 << bits - 1 <= number < 1 << bits - 1:
        raise struct.error(f"a distance of more than {bits} bits")
    return number


def _branch(memory: bytearray, at: int, place: int, value: int) -> None:
    """B and BL: 26 bits of words."""
    _field(memory, at, 0x03FFFFFF, _within(value - place, 28) >> 2)


def _page(memory: bytearray, at: int, place: int, value: int) -> None:
    """ADRP: the distance in pages of 4 KiB, whatever the system's; its two lowest bits lie apart."""
    pages = _within((value >> 12) - (place >> 12), 21)
    _field(memory, at, 0x60FFFFE0, (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5)


def _in_page(shift: int) -> Write:
    """ADD, or a load or store of 1 << shift bytes: the place within a page."""
    def write(memory: bytearray, at: int, place: int, value: int) -> None:
        if value & (1 << shift) - 1:
            raise struct.error(f"an address that is no multiple of {1 << shift}")
        _field(memory, at, 0xFFF << 10, (value & 0xFFF) >> shift << 10)
    return write


def _quarter(number: int) -> Write:
    """MOVZ and MOVK: 16 bits of the address."""
    def write(memory: bytearray, at: int, place: int, value: int) -> None:
        _field(memory, at, 0xFFFF << 5, (value >> 16 * number & 0xFFFF) << 5)
    return write


_AARCH64 = Processor(
    {257: Rule(_word), 260: Rule(_distance), 261: Rule(_short_distance, near=True),
     275: Rule(_page, near=True), 277: Rule(_in_page(0)), 278: Rule(_in_page(0)),
     284: Rule(_in_page(1)), 285: Rule(_in_page(2)), 286: Rule(_in_page(3)), 299: Rule(_in_page(4)),
     282: Rule(_branch, call=True), 283: Rule(_branch, call=True),
     264: Rule(_quarter(0)), 266: Rule(_quarter(1)), 268: Rule(_quarter(2)), 269: Rule(_quarter(3))},
    stub=struct.pack("<II", 0x58000050, 0xD61F0200))  # ldr x16, .+8; br x16

BY_MACHINE = {62: _X86_64, 183: _AARCH64}  # by the number of the processor in the head of a file
