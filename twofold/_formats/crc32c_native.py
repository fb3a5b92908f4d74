"""CRC-32C through tables, eight bytes a step, as machine code: what `crc32c.py` uses where native code runs.

The eight tables hold what each byte leaves with none to seven bytes after it, so that the parts of a word do not wait
for one another ("slicing by 8": Kounavis and Berry, A systematic approach to building high performance software-based
CRC generators, 2005).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

from twofold.codegen import llvm_module
from twofold.runtime import kernels, native

__all__ = ["entry"]

_NAME = "twofold_crc32c"


def _lookups() -> str:
    """Code that takes the word %word, from its first byte on, to what is left of it, %left7."""
    lines = []
    for n in range(8):
        lines += [f"  %shifted{n} = lshr i64 %word, {8 * n}", f"  %part{n} = and i64 %shifted{n}, 255",
                  f"  %index{n} = add i64 %part{n}, {256 * (7 - n)}",
                  f"  %row{n} = getelementptr i32, ptr %tables, i64 %index{n}", f"  %found{n} = load i32, ptr %row{n}",
                  f"  %left{n} = xor i32 %found{n}, {f'%left{n - 1}' if n else 0}"]
    return "\n".join(lines)


# The tables are an argument, so that the code needs no data of its own.
_TEXT = f"""
define i32 @{_NAME}(ptr %tables, ptr %data, i64 %size, i32 %state) {{
entry:
  %whole = and i64 %size, -8
  br label %words
words:
  %first = phi i64 [0, %entry], [%further, %step]
  %so_far = phi i32 [%state, %entry], [%left7, %step]
  %full = icmp ult i64 %first, %whole
  br i1 %full, label %step, label %bytes
step:
  %start = getelementptr i8, ptr %data, i64 %first
  %read = load i64, ptr %start, align 1
  %extended = zext i32 %so_far to i64
  %word = xor i64 %read, %extended
{_lookups()}
  %further = add i64 %first, 8
  br label %words
bytes:
  %at = phi i64 [%whole, %words], [%after, %body]
  %now = phi i32 [%so_far, %words], [%next, %body]
  %more = icmp ult i64 %at, %size
  br i1 %more, label %body, label %done
body:
  %place = getelementptr i8, ptr %data, i64 %at
  %byte = load i8, ptr %place
  %wide = zext i8 %byte to i32
  %mixed = xor i32 %now, %wide
  %low = and i32 %mixed, 255
  %index = zext i32 %low to i64
  %row = getelementptr i32, ptr %tables, i64 %index
  %known = load i32, ptr %row
  %high = lshr i32 %now, 8
  %next = xor i32 %high, %known
  %after = add i64 %at, 1
  br label %bytes
done:
  ret i32 %now
}}
"""


@functools.cache
def entry() -> Callable[[int, int, int, int], int] | None:
    """The function of the addresses of tables and data, the number of bytes and the remainder before them; None where
    native code is off."""
    if native.core() is None:
        return None
    addresses = kernels.functions([_NAME], [_TEXT], lambda: llvm_module.object_code(llvm_module.optimise(_TEXT)))
    kind = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32)
    return kind(addresses[_NAME])
