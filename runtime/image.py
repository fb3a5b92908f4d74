"""Machine code in memory: an object file laid out, linked and made executable, until its owner lets go of it.

Object files of ELF for this processor are linked here, where the system allows it (`system.py`): the sections of those
that belong together go into one mapping, which is given back when the `Image` dies, and loading takes a fraction of
what LLVM's linker needs. Other files, and those with a relocation that is not known here (`relocations.py`), go to an
LLVM engine of their own.

Whoever calls the code keeps its `Image` alive. What the code is called with is no affair of this module.
"""

from __future__ import annotations

import atexit
import mmap
import struct
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from twofold.codegen.apart import apart
from twofold.codegen.target import architecture
from twofold.ir.errors import InternalError

from . import elf, loading, machine, objects, system
from .relocations import BY_MACHINE, Processor, Rule

if TYPE_CHECKING:
    from llvmlite import binding

__all__ = ["Image"]

_MACHINES = {"x86_64": 62, "aarch64": 183}  # the number of a processor in the head of a file


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
        layout = _layout(data)
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

    def _map(self, layout: SectionLayout, functions: list[str]) -> dict[str, int]:
        self._memory, base = loading.executable(layout.size, layout.link)
        self.size = layout.size
        return {name: base + at for name in functions if (at := layout.place(name)) is not None}

    @apart
    def _hand_over(self, data: Sequence[bytes], functions: list[str]) -> dict[str, int]:
        self._memory = engine = loading.linked(data, "a compiled program")
        return {name: engine.get_function_address(name) for name in functions}


def _layout(data: Sequence[bytes]) -> SectionLayout | None:
    """How object files lie in memory; None where LLVM's engine has to link them."""
    if not system.fills_code_pages():
        return None
    number = _MACHINES[architecture()]
    files = [file for file in map(elf.read, data) if file is not None and file.machine == number]
    return SectionLayout(files, BY_MACHINE[number]) if len(files) == len(data) else None


class SectionLayout:
    """The places of object files' sections in memory, and the bytes that are written there.

    Calls of functions of the process go by way of stubs behind the sections where the processor's calls do not reach
    everywhere.

    Attributes:
        size: bytes of memory for all sections, in whole pages.
        can_link: whether all relocations are known here.
    """

    def __init__(self, files: Sequence[elf.File], processor: Processor) -> None:
        self.files, self.processor = files, processor
        self.offsets: dict[tuple[int, int], int] = {}  # by the numbers of file and section
        at = 0
        for owner, file in enumerate(files):
            for number, section in enumerate(file.sections):
                if section.flags & elf.ALLOC and section.kind in (elf.PROGBITS, elf.NOBITS) and section.length:
                    align = max(section.align, 16)
                    at = -(-at // align) * align
                    self.offsets[owner, number] = at
                    at += section.length
        # What files define for each other; definitions of a file's own come first (`_place`).
        self.defined = {symbol.name: self.offsets[owner, symbol.section] + symbol.value
                        for owner, file in enumerate(files) for symbol in file.symbols
                        if symbol.is_global and (owner, symbol.section) in self.offsets}
        relocations = [(owner, relocation) for owner, file in enumerate(files) for relocation in
                       file.relocations({number for n, number in self.offsets if n == owner})]
        known = [(owner, processor.rules[one[2]], one) for owner, one in relocations if one[2] in processor.rules]
        self.can_link = len(known) == len(relocations) and not any(
            rule.near and self._place(owner, symbol) is None for owner, rule, (_, _, _, symbol, _) in known)
        self.relocations: list[tuple[int, Rule, elf.Relocation]] = known
        self.stubs: dict[str, int] = {}
        at = -(-at // 16) * 16
        for owner, rule, (_, _, _, symbol, _) in known:
            if rule.call and self._place(owner, symbol) is None and symbol.name not in self.stubs:
                self.stubs[symbol.name] = at
                at += len(processor.stub) + 8
        self.size = -(-max(at, 1) // mmap.PAGESIZE) * mmap.PAGESIZE

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
            for name, at in self.stubs.items():
                memory[at:at + len(self.processor.stub)] = self.processor.stub
                struct.pack_into("<Q", memory, at + len(self.processor.stub), objects.address(name))
            for owner, rule, (number, offset, _, symbol, addend) in self.relocations:
                at = self.offsets[owner, number] + offset
                rule.write(memory, at, base + at, addend + self._address(owner, symbol, rule, base))
        except struct.error as error:
            raise InternalError(f"damaged object code: {error}") from None

    def _address(self, owner: int, symbol: elf.Symbol, rule: Rule, base: int) -> int:
        """The address that a relocation means, in memory at address `base`."""
        place = self._place(owner, symbol)
        if place is None and rule.call:
            place = self.stubs[symbol.name]
        return objects.address(symbol.name) if place is None else base + place


_living: weakref.WeakSet[Image] = weakref.WeakSet()


def _keep_all() -> None:
    """Threads that are daemons may be in the code while the interpreter takes its modules apart."""
    for image in list(_living):
        machine.keep(image._memory)


atexit.register(_keep_all)
