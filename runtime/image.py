"""Machine code in memory: an object file laid out, linked and made executable, until its owner lets go of it.

Object files of x86-64 ELF are linked here: the sections of those that belong together go into one mapping, which is
given back when the `Image` dies, and loading takes a fraction of what LLVM's linker needs. Other files, and those with
a relocation that is not known here, go to an LLVM engine of their own.

Whoever calls the code keeps its `Image` alive. What the code is called with is no affair of this module.
"""

from __future__ import annotations

import atexit
import mmap
import struct
import sys
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from twofold.ir.errors import InternalError

from . import elf, loading, machine, objects

if TYPE_CHECKING:
    from llvmlite import binding

__all__ = ["Image"]

# The System V ABI, supplement for x86-64: relocations, and the processor's number.
_R_64, _R_PC32, _R_PLT32, _R_PC64 = 1, 2, 4, 24
_X86_64 = 62


class Image:
    """The code of object files that belong together. Its functions may be called for as long as it lives."""

    __slots__ = ("_addresses", "_memory", "size", "__weakref__")

    def __init__(self, data: Sequence[bytes], functions: list[str]) -> None:
        """Args:
            data: the object files. Each may call what the others define, under names that occur once.
            functions: the names of the functions wanted.
        Raises:
            InternalError: the code calls something that the process does not have, or lacks a function.
        """
        self._memory: mmap.mmap | binding.ExecutionEngine  # holds the code
        self.size = 0
        files = [elf.read(one) for one in data] if sys.platform == "linux" else []
        ours = [file for file in files if file is not None and file.machine == _X86_64]
        layout = _SectionLayout(ours) if len(ours) == len(data) else None
        if layout is not None and layout.can_link:
            self._addresses = self._map(layout, functions)
        else:
            self._addresses = self._hand_over(data, functions)
        _living.add(self)

    def address(self, name: str) -> int:
        """The address of a function.

        Raises:
            InternalError: the object file has none of this name.
        """
        address = self._addresses.get(name, 0)
        if not address:
            raise InternalError(f"the object code lacks {name}")
        return address

    def _map(self, layout: _SectionLayout, functions: list[str]) -> dict[str, int]:
        self._memory, base = loading.executable(layout.size, layout.link)
        self.size = layout.size
        return {name: base + at for name in functions if (at := layout.place(name)) is not None}

    def _hand_over(self, data: Sequence[bytes], functions: list[str]) -> dict[str, int]:
        self._memory = engine = loading.linked(data, "a compiled program")
        return {name: engine.get_function_address(name) for name in functions}


class _SectionLayout:
    """The places of object files' sections in memory, and the bytes that are written there.

    Attributes:
        size: bytes of memory for all sections, in whole pages.
        can_link: whether all relocations are known here.
    """

    def __init__(self, files: Sequence[elf.File]) -> None:
        self.files = files
        self.offsets: dict[tuple[int, int], int] = {}  # by the numbers of file and section
        at = 0
        for owner, file in enumerate(files):
            for number, section in enumerate(file.sections):
                if section.flags & elf.ALLOC and section.kind in (elf.PROGBITS, elf.NOBITS) and section.length:
                    align = max(section.align, 16)
                    at = -(-at // align) * align
                    self.offsets[owner, number] = at
                    at += section.length
        self.size = -(-max(at, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        # What files define for each other; definitions of a file's own come first (`_place`).
        self.defined = {symbol.name: self.offsets[owner, symbol.section] + symbol.value
                        for owner, file in enumerate(files) for symbol in file.symbols
                        if symbol.is_global and (owner, symbol.section) in self.offsets}
        self.relocations = [(owner, relocation) for owner, file in enumerate(files) for relocation in
                            file.relocations({number for n, number in self.offsets if n == owner})]
        are_known = all(kind in (_R_64, _R_PC64, _R_PC32, _R_PLT32) for _, (_, _, kind, _, _) in self.relocations)
        far = any(kind in (_R_PC32, _R_PLT32) and self._place(owner, symbol) is None
                  for owner, (_, _, kind, symbol, _) in self.relocations)
        self.can_link = are_known and not far

    def place(self, name: str) -> int | None:
        """Where in the memory a function begins that files show to others."""
        return self.defined.get(name)

    def _place(self, owner: int, symbol: elf.Symbol) -> int | None:
        """Where in the memory the thing lies that a file refers to by a symbol; None where no file has it."""
        section = self.offsets.get((owner, symbol.section))
        return self.defined.get(symbol.name) if section is None else section + symbol.value

    def link(self, memory: bytearray, base: int) -> None:
        """Fill `memory`, which will lie at address `base`.

        Raises:
            InternalError: a function is missing, or a relocation lies outside of its section.
        """
        for (owner, number), at in self.offsets.items():
            file = self.files[owner]
            section = file.sections[number]
            if section.kind == elf.PROGBITS:
                memory[at:at + section.length] = file.data[section.start:section.start + section.length]
        try:
            for owner, (number, offset, kind, symbol, addend) in self.relocations:
                at = self.offsets[owner, number] + offset
                place = self._place(owner, symbol)
                value = addend + (objects.address(symbol.name) if place is None else base + place)
                if kind == _R_64:
                    struct.pack_into("<Q", memory, at, value & (1 << 64) - 1)
                elif kind == _R_PC64:
                    struct.pack_into("<q", memory, at, value - base - at)
                else:
                    struct.pack_into("<i", memory, at, value - base - at)
        except struct.error as error:
            raise InternalError(f"damaged object code: {error}") from None


_living: weakref.WeakSet[Image] = weakref.WeakSet()


def _keep_all() -> None:
    """Threads that are daemons may be in the code while the interpreter takes its modules apart."""
    for image in list(_living):
        machine.keep(image._memory)


atexit.register(_keep_all)
