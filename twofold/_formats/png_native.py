"""The filters of PNG rows undone, as machine code: what `png.py` uses where native code runs.

The five filters are those of the W3C's recommendation (PNG, third edition, section 9). Rows are written with as many
zero bytes before them as a pixel has, below a row of zeros, so that no byte needs a case of its own.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

from twofold.codegen import llvm_module
from twofold.runtime import kernels, native

__all__ = ["entry"]

_NAME = "twofold_png_unfilter"

# Each guesses %guess_N, an i32, from the bytes to the left, above, and above the left one.
_GUESSES = {
    0: "  %guess_0 = add i32 0, 0",
    1: "  %guess_1 = add i32 %left_1, 0",
    2: "  %guess_2 = add i32 %up_2, 0",
    3: "  %sum_3 = add i32 %left_3, %up_3\n  %guess_3 = lshr i32 %sum_3, 1",
    4: """  %by_left_s = sub i32 %up_4, %corner_4
  %by_left = call i32 @llvm.abs.i32(i32 %by_left_s, i1 false)
  %by_up_s = sub i32 %left_4, %corner_4
  %by_up = call i32 @llvm.abs.i32(i32 %by_up_s, i1 false)
  %by_corner_s = add i32 %by_left_s, %by_up_s
  %by_corner = call i32 @llvm.abs.i32(i32 %by_corner_s, i1 false)
  %left_up = icmp ule i32 %by_left, %by_up
  %left_corner = icmp ule i32 %by_left, %by_corner
  %take_left = and i1 %left_up, %left_corner
  %take_up = icmp ule i32 %by_up, %by_corner
  %other = select i1 %take_up, i32 %up_4, i32 %corner_4
  %guess_4 = select i1 %take_left, i32 %left_4, i32 %other""",
}
_READ = {"left": "%here, i64 %at_{n}", "up": "%above, i64 %to_{n}", "corner": "%above, i64 %at_{n}"}


def _filter(n: int) -> str:
    """The loop over a row's bytes with filter `n`."""
    reads = "".join([f"""  %{name}_p_{n} = getelementptr i8, ptr {place.format(n=n)}
  %{name}_b_{n} = load i8, ptr %{name}_p_{n}
  %{name}_{n} = zext i8 %{name}_b_{n} to i32
""" for name, place in _READ.items() if f"%{name}_{n}" in _GUESSES[n]])
    return f"""filter_{n}:
  %at_{n} = phi i64 [0, %row], [%next_{n}, %byte_{n}]
  %more_{n} = icmp ult i64 %at_{n}, %size
  br i1 %more_{n}, label %byte_{n}, label %after
byte_{n}:
  %to_{n} = add i64 %at_{n}, %ahead
  %given_p_{n} = getelementptr i8, ptr %given, i64 %at_{n}
  %given_b_{n} = load i8, ptr %given_p_{n}
  %given_{n} = zext i8 %given_b_{n} to i32
{reads}{_GUESSES[n]}
  %value_{n} = add i32 %given_{n}, %guess_{n}
  %byte_v_{n} = trunc i32 %value_{n} to i8
  %to_p_{n} = getelementptr i8, ptr %here, i64 %to_{n}
  store i8 %byte_v_{n}, ptr %to_p_{n}
  %next_{n} = add i64 %at_{n}, 1
  br label %filter_{n}
"""


_TEXT = f"""
declare i32 @llvm.abs.i32(i32, i1)

define i64 @{_NAME}(ptr noalias %data, ptr noalias %out, i64 %rows, i64 %size, i64 %ahead) {{
entry:
  %wide = add i64 %size, %ahead
  %whole = add i64 %size, 1
  br label %start
start:
  %y = phi i64 [0, %entry], [%number, %after]
  %further = icmp ult i64 %y, %rows
  br i1 %further, label %row, label %done
row:
  %number = add i64 %y, 1
  %read = mul i64 %y, %whole
  %kind_p = getelementptr i8, ptr %data, i64 %read
  %given = getelementptr i8, ptr %kind_p, i64 1
  %before = mul i64 %y, %wide
  %above = getelementptr i8, ptr %out, i64 %before
  %here = getelementptr i8, ptr %above, i64 %wide
  %kind = load i8, ptr %kind_p
  switch i8 %kind, label %wrong [ {" ".join([f"i8 {n}, label %filter_{n}" for n in _GUESSES])} ]
{"".join([_filter(n) for n in _GUESSES])}
after:
  br label %start
wrong:
  ret i64 %number
done:
  ret i64 0
}}
"""


@functools.cache
def entry() -> Callable[[int, int, int, int, int], int] | None:
    """The function of the addresses of filtered rows and of the array for the others, the number of rows, their bytes,
    and the bytes of a pixel; it gives one more than the number of a row whose filter does not exist, or 0. None where
    native code is off."""
    if native.core() is None:
        return None
    addresses = kernels.functions([_NAME], [_TEXT], lambda: llvm_module.object_code(llvm_module.optimise(_TEXT)))
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                            ctypes.c_int64)
    return kind(addresses[_NAME])
