"""Object files of ELF read: sections, symbols and relocations of 64-bit little-endian files, of any processor.

The format is that of the System V ABI, chapters 4 and 5. What is linked from it, and where to, is for others.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator
from typing import NamedTuple

from twofold.ir.errors import InternalError

__all__ = ["ALLOC", "EXECUTABLE", "NOBITS", "PROGBITS", "File", "Relocation", "Section", "Symbol", "read"]

PROGBITS, _SYMTAB, _RELA, NOBITS = 1, 2, 4, 8  # kinds of sections
_LOCAL = 0  # binding of a symbol that other files do not see
ALLOC, EXECUTABLE = 2, 4  # flags of a section that has memory while the program runs, and of one with instructions
_MAGIC = b"\x7fELF\x02\x01"


class Section(NamedTuple):
    """A section's header: what there is of it in the file, and what it needs in memory."""

    kind: int
    flags: int
    start: int
    length: int
    link: int
    info: int
    align: int
    entry: int


class Symbol(NamedTuple):
    """A name, the number of the section that defines it (0 for none), where in it, and whether other files see it."""

    name: str
    section: int
    value: int
    is_global: bool


#: (section, offset in it, kind, symbol, addend): where the address of a symbol goes, in the way that the kind says
Relocation = tuple[int, int, int, Symbol, int]


class File:
    """An object file.

    Attributes:
        data: its bytes.
        machine: the number of the processor.
        sections, symbols: in their order.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.machine: int = struct.unpack_from("<H", data, 18)[0]
        table, = struct.unpack_from("<Q", data, 0x28)
        size, count = struct.unpack_from("<HH", data, 0x3A)
        fields = [struct.unpack_from("<IIQQQQIIQQ", data, table + n * size) for n in range(count)]
        self.sections = [Section(f[1], f[2], f[4], f[5], f[6], f[7], f[8], f[9]) for f in fields]
        if any(s.kind != NOBITS and s.start + s.length > len(data) for s in self.sections):
            raise ValueError("a section is cut off")
        self.symbols = list(self._symbols())

    def _symbols(self) -> Iterator[Symbol]:
        for section in self.sections:
            if section.kind != _SYMTAB:
                continue
            names = self.sections[section.link].start
            for at in range(section.start, section.start + section.length, section.entry):
                name, info, _, where, value, _ = struct.unpack_from("<IBBHQQ", self.data, at)
                text = self.data[names + name:self.data.index(b"\0", names + name)].decode()
                yield Symbol(text, where, value, info >> 4 != _LOCAL)

    def relocations(self, sections: Container[int]) -> list[Relocation]:
        """The relocations in some of the sections, which are given by their numbers.

        Raises:
            InternalError: the file is damaged.
        """
        try:
            return list(self._relocations(sections))
        except (struct.error, IndexError, ValueError) as error:
            raise InternalError(f"damaged object code: {error}") from None

    def _relocations(self, sections: Container[int]) -> Iterator[Relocation]:
        for section in self.sections:
            if section.kind != _RELA or section.info not in sections:
                continue
            for at in range(section.start, section.start + section.length, section.entry):
                offset, info, addend = struct.unpack_from("<QQq", self.data, at)
                yield section.info, offset, info & 0xFFFFFFFF, self.symbols[info >> 32], addend


def read(data: bytes) -> File | None:
    """An object file; None where it is no 64-bit little-endian ELF file.

    Raises:
        InternalError: the file is cut off or damaged.
    """
    if not data.startswith(_MAGIC):
        return None
    try:
        return File(data)
    except (struct.error, IndexError, ValueError) as error:
        raise InternalError(f"damaged object code: {error}") from None
