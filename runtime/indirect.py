"""Functions whose code may be exchanged: an address that stays, and jumps to where a word says.

Whoever has the address keeps it, be it in a table, in machine code or in a call that is under way: from the next call
on it leads to the code that was set last. The jump takes less than a nanosecond. x86-64 only, on systems that
run code which this process wrote (`system.py`); which code there is, and when it is exchanged, says `generated.py`.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping

from twofold.codegen.target import architecture

from . import loading, machine, system

__all__ = ["Indirect", "supported"]

_JUMP = b"\x49\xbb%s\x41\xff\x23"  # mov r11, address of the word; jmp [r11]
_APART = 16  # bytes from one to the next


def supported() -> bool:
    """Whether there are such functions here."""
    return architecture() == "x86_64" and system.fills_code_pages()


class Indirect:
    """Some functions by name, each of which jumps to code that `set` says.

    Attributes:
        addresses: theirs, which stay the same and may be called for as long as the process lives.
    """

    def __init__(self, targets: Mapping[str, int]) -> None:
        """Args:
            targets: the addresses of the code to begin with.
        Raises:
            OSError: the system allows no such code.
        """
        self._words = (ctypes.c_int64 * len(targets))()
        self._numbers = {name: number for number, name in enumerate(targets)}
        self.set(targets)
        first = ctypes.addressof(self._words)

        def fill(memory: bytearray, _: int) -> None:
            for number in self._numbers.values():
                jump = _JUMP % struct.pack("<Q", first + 8 * number)
                memory[_APART * number:_APART * number + len(jump)] = jump

        area, base = loading.executable(_APART * len(targets), fill)
        self.addresses = {name: base + _APART * number for name, number in self._numbers.items()}
        machine.keep((area, self._words))

    def set(self, targets: Mapping[str, int]) -> None:
        """Has calls from now on run other code; those at work end in the code in which they began."""
        for name, number in self._numbers.items():
            self._words[number] = targets[name]
