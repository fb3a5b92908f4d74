"""What the operating system and the processor allow: pages of code filled here, and C functions by address.

Whoever depends on either asks here, so that there is one place that says where plain paths are taken. Objects of the
operating system's own format are linked in pages of code only where both the system and the processor are known here;
elsewhere LLVM's own engine links and maps them.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

from twofold.codegen.target import architecture

__all__ = ["c_function", "fills_code_pages", "flush_instructions"]

_LIBRARIES = {"win32": ("ucrtbase", "msvcrt", "vcruntime140")}  # of C, where a process is not asked as a whole


def fills_code_pages() -> bool:
    """Whether memory that this process fills with code can be made executable, and its code be run.

    Systems other than Linux allow it to signed code only, or in other ways; and processors other than x86-64 fetch
    instructions by a cache of their own, which has to be told.
    """
    return sys.platform == "linux" and (architecture() == "x86_64" or
                                        architecture() == "aarch64" and _flush() is not None)


def flush_instructions(start: int, size: int) -> None:
    """Has the processor fetch anew what was written to `size` bytes from the address `start` on."""
    flush = None if architecture() == "x86_64" else _flush()
    if flush is not None:
        flush(start, start + size)


@functools.cache
def _flush() -> Callable[[int, int], None] | None:
    """`__clear_cache(begin, end)` of the compiler's library; None where there is none."""
    try:
        function: Any = ctypes.CDLL("libgcc_s.so.1")["__clear_cache"]
    except (OSError, AttributeError):
        return None
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_void_p), None
    return function


def c_function(name: str) -> int | None:
    """The address of a function of the process, that is of the C library and of what else has been loaded; None where
    there is no such function."""
    for library in _libraries(sys.platform):
        function = getattr(library, name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value
    return None


@functools.cache
def _libraries(system: str) -> tuple[ctypes.CDLL, ...]:
    loaded = []
    for name in _LIBRARIES.get(system, (None,)):
        try:
            loaded.append(ctypes.CDLL(name))
        except OSError:
            continue
    return tuple(loaded)
