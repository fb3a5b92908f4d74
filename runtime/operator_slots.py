"""Operators that CPython runs by machine code at once: the C functions in a class, in place of its own.

`x + y` of a class written in Python calls a C function of CPython's, which looks up `__add__` among the class's
attributes, binds it to `x` and calls that. `install` puts a *stub* there instead, a few instructions that hand the
operands and the `self` of a native entry to the code of entries (`entry_ir.py`). The attributes stay, for whoever asks
for them. CPython itself puts its own function back where one of them is assigned later, and gives it to subclasses; so
both behave as ever.

Where the C functions lie in a class is checked against what CPython tells of it. Where it differs, or the system runs
no code that this process wrote, operators go by way of the attributes.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping

from twofold.codegen.target import architecture

from . import loading, machine, system
from .native_core import Core
from .native_layout import Bound, PythonFunction, capi

__all__ = ["install", "stub"]

# Words of a class (`PyTypeObject`), and of its table of numeric functions (`PyNumberMethods`).
_NUMERIC, _COMPARE = 12, 25
_COMPARE_ID = 67  # Py_tp_richcompare of typeslots.h
# Operator -> (its id in typeslots.h, the word of the table). Not `__pow__`, which may have three operands.
_WORDS = {"__abs__": (6, 8), "__add__": (7, 0), "__floordiv__": (12, 29), "__mul__": (29, 2), "__neg__": (30, 6),
          "__mod__": (34, 3), "__sub__": (36, 1), "__truediv__": (37, 30), "__matmul__": (75, 34)}
_UNARY = ("__abs__", "__neg__")
_COMPARISONS = ("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__")  # by the number that CPython gives them
_STUB = 64  # bytes from one to the next: each has a cache line


def stub(processor: str, given: int, last: int, target: int) -> bytes:
    """Instructions that call `target` with what they were called with and one argument more.

    Args:
        processor: "x86_64" or "aarch64", as `architecture` says it.
        given: how many arguments there are already, at most three.
        last: what the further argument is.
        target: the address of a C function, whose result is the stub's.
    """
    if processor == "x86_64":  # mov rsi, rdx or rcx, last; mov r11, target; jmp r11
        return {1: b"\x48\xbe", 2: b"\x48\xba", 3: b"\x48\xb9"}[given] + struct.pack("<Q", last) + \
            b"\x49\xbb" + struct.pack("<Q", target) + b"\x41\xff\xe3"
    # ldr x1, x2 or x3, .+16; ldr x16, .+20; br x16; nop; and what these load
    return struct.pack("<IIIIQQ", 0x58000080 | given, 0x580000B0, 0xD61F0200, 0xD503201F, last, target)


def install(native: Core, cls: type, entries: Mapping[str, PythonFunction]) -> None:
    """Has operators of `cls` run native entries. To be called when `cls` has its attributes.

    Args:
        entries: the builtins of `native.entry` by the operator, such as "__add__"; of comparisons all or none.
            An entry answers its operator on either side: as `__radd__`, too.
    """
    if not system.fills_code_pages():
        return
    places = {name: place for name in entries if name in _WORDS and (place := _place(cls, *_WORDS[name]))}
    stubs = [(place, 1 if name in _UNARY else 2, id(_owner(entries[name])), native.functions[_code(name)])
             for name, place in places.items()]
    compare = ctypes.addressof(_head(cls)) + 8 * _COMPARE
    if all(name in entries for name in _COMPARISONS) and _holds(cls, compare, _COMPARE_ID):
        owners = (ctypes.c_int64 * len(_COMPARISONS))(*(id(_owner(entries[name])) for name in _COMPARISONS))
        machine.keep(owners)
        stubs.append((compare, 3, ctypes.addressof(owners), native.functions["comparison"]))
    machine.keep([_owner(entry) for entry in entries.values()])

    def fill(memory: bytearray, _: int) -> None:
        for number, (_, given, last, target) in enumerate(stubs):
            code = stub(architecture(), given, last, target)
            memory[_STUB * number:_STUB * number + len(code)] = code

    if stubs:
        area, base = loading.executable(_STUB * len(stubs), fill)
        machine.keep(area)
        for number, (place, *_) in enumerate(stubs):
            ctypes.c_int64.from_address(place).value = base + _STUB * number


def _head(cls: type) -> ctypes.Array[ctypes.c_int64]:
    """The words of a class up to the one of its comparison."""
    return (ctypes.c_int64 * (_COMPARE + 1)).from_address(id(cls))


def _place(cls: type, number: int, word: int) -> int:
    """The address of a numeric function's word; 0 where it does not hold what CPython says."""
    table = _head(cls)[_NUMERIC]
    return table + 8 * word if table and _holds(cls, table + 8 * word, number) else 0


def _holds(cls: type, place: int, number: int) -> bool:
    """Whether the word at an address is the class's function of this id."""
    value: int | None = capi("PyType_GetSlot", ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(cls, number)
    return value is not None and ctypes.c_int64.from_address(place).value == value


def _code(name: str) -> str:
    """Which function of `entry_ir.py` answers an operator."""
    return "unary_operator" if name in _UNARY else "product_operator" if name == "__matmul__" else "binary_operator"


def _owner(entry: PythonFunction) -> Bound:
    owner: Bound = entry.__self__  # type: ignore[attr-defined]
    return owner
