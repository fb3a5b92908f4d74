"""The functions that object code needs of the process that links it.

LLVM may turn an instruction into a call of a library function. A linker that does not find it leaves a jump to
nowhere, so `require` looks before linking: at the process, then at the C library of mathematics. Only ELF is read;
of other formats nothing is known, and nothing refused.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

from twofold.ir.errors import InternalError

from . import elf, system

__all__ = ["undefined", "require", "address"]

_OWN = ("", "_GLOBAL_OFFSET_TABLE_")  # the empty symbol, and what linkers define themselves


def undefined(*images: bytes) -> list[str]:
    """The symbols that object files use and none of them defines, sorted; those of files that are no 64-bit ELF files
    are not known.

    Raises:
        InternalError: the file is cut off or damaged.
    """
    symbols = [symbol for file in map(elf.read, images) if file is not None for symbol in file.symbols]
    defined = {symbol.name for symbol in symbols if symbol.section != 0 and symbol.is_global}
    return sorted({symbol.name for symbol in symbols if symbol.section == 0}.difference(defined, _OWN))


def require(images: Sequence[bytes], what: str) -> None:
    """Makes sure that LLVM's linker finds all that object files need.

    Args:
        images: the object files, which may call each other's functions.
        what: what it is, for the error.
    Raises:
        InternalError: a function is neither in the process nor in the C library of mathematics.
    """
    import llvmlite.binding as llvm

    missing = []
    for name in undefined(*images):
        if llvm.address_of_symbol(name):
            continue
        function = getattr(_mathematics(), name, None)
        if function is None:
            missing.append(name)
        else:
            llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    if missing:
        raise InternalError(f"{what} cannot be linked: its code calls {', '.join(missing)}, "
                            "which this process does not have")


def address(name: str) -> int:
    """The address of a function of the process, or of the C library of mathematics.

    Raises:
        InternalError: neither has it.
    """
    location = system.c_function(name)
    if location is None:
        function = getattr(_mathematics(), name, None)
        location = None if function is None else ctypes.cast(function, ctypes.c_void_p).value
    if location:
        return location
    raise InternalError(f"compiled code cannot be linked: it calls {name}, which this process does not have")


@functools.cache
def _mathematics() -> ctypes.CDLL | None:
    import ctypes.util
    name = ctypes.util.find_library("m")
    try:
        return ctypes.CDLL(name) if name else None
    except OSError:
        return None
