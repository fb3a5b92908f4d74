"""CRC-32C byte by byte through a table, as machine code: what `_crc32c.py` uses where native code runs."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

from twofold.codegen import llvm_module
from twofold.runtime import kernels, native

__all__ = ["entry"]

_NAME = "twofold_crc32c"
# The table is an argument, so that the code needs no data of its own.
_TEXT = f"""
define i32 @{_NAME}(ptr %table, ptr %data, i64 %size, i32 %state) {{
entry:
  br label %loop
loop:
  %at = phi i64 [0, %entry], [%after, %body]
  %now = phi i32 [%state, %entry], [%next, %body]
  %more = icmp ult i64 %at, %size
  br i1 %more, label %body, label %done
body:
  %place = getelementptr i8, ptr %data, i64 %at
  %byte = load i8, ptr %place
  %wide = zext i8 %byte to i32
  %mixed = xor i32 %now, %wide
  %low = and i32 %mixed, 255
  %index = zext i32 %low to i64
  %row = getelementptr i32, ptr %table, i64 %index
  %known = load i32, ptr %row
  %high = lshr i32 %now, 8
  %next = xor i32 %high, %known
  %after = add i64 %at, 1
  br label %loop
done:
  ret i32 %now
}}
"""


@functools.cache
def entry() -> Callable[[int, int, int, int], int] | None:
    """The function of the addresses of table and data, the number of bytes and the remainder before them; None where
    native code is off."""
    if native.core() is None:
        return None
    found = kernels.functions([_NAME], [_TEXT], lambda: llvm_module.object_code(llvm_module.optimise(_TEXT)))
    kind = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32)
    return kind(found[_NAME])
