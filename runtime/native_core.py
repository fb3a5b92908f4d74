"""The state that native entries share: whether they can be used here, the loaded code, the context, making builtins.

Native entries are off when TWOFOLD_NATIVE_CALL=0, off CPython, on free-threaded builds, where the layout of objects
is not the one the code reads, where machine code cannot be had, and when a trial fails. `core()` is then None and
callers take plain Python paths with the same results.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import TYPE_CHECKING

from twofold.ir.errors import SymbolicOperand

from . import locks, machine
from . import random as streams
from .leaving import leave
from .native_layout import KIND, PYTHON_API, SHARED, SHARED_WORDS, TABLE, Bound, PythonFunction, capi, exported, layout

if TYPE_CHECKING:
    from llvmlite import ir

__all__ = ["core", "reason", "disable", "Core", "MethodDef"]

_METH_FASTCALL, _METH_KEYWORDS = 0x80, 0x02
_SOURCES = ("native_ir.py", "entry_ir.py", "program_ir.py", "claims_ir.py", "program_table.py", "native_layout.py")


class MethodDef(ctypes.Structure):
    """CPython's `PyMethodDef`: the name, C function, calling convention and docstring of builtins."""

    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]


class Core:
    """The loaded code with its context. There is one in a process."""

    def __init__(self) -> None:
        self.layout = layout()
        self.words = (ctypes.c_int64 * SHARED_WORDS)()
        self._address = ctypes.addressof(self.words)
        self._immortal: list[object] = [self.words]  # builtins point into these for as long as the process lives
        machine.keep(self._immortal)
        for name in PYTHON_API:
            self.set(name, exported(name))
        self.hold("leave", leave)
        self.hold("symbolic", SymbolicOperand)
        self.set("drawn", streams.count_address())
        self._new = capi("PyCFunction_NewEx", ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
        fields = [sorted(words.items()) for words in (self.layout, TABLE, KIND)]
        self.functions = machine.load("native", self._build, _SOURCES, fields)
        self._try_guard()

    def _build(self) -> ir.Module:
        from . import native_ir

        return native_ir.build(self.layout)

    def set(self, name: str, value: int, row: int = 0) -> None:
        """Sets the word `name` of the context, or the one for type number `row`."""
        self.words[SHARED[name] + row] = value

    def get(self, name: str) -> int:
        """The word `name` of the context."""
        return self.words[SHARED[name]]

    def hold(self, name: str, thing: object, row: int = 0) -> None:
        """Puts the address of a Python object into the context and keeps the object for ever."""
        self._immortal.append(thing)
        self.set(name, id(thing), row)

    def builtin(self, function: str, bound: Bound, name: str, doc: str, module: str | None) -> PythonFunction:
        """A builtin that runs the compiled `function` with `bound` as its `self`.

        Args:
            name, doc: its `__name__`, and its `__doc__` with the signature line CPython takes `__text_signature__`
                from.
            module: its `__module__`.
        """
        return self.new(self.definition(function, name, doc), bound, module)

    def definition(self, function: str, name: str, doc: str) -> MethodDef:
        """The definition that builtins of one function and name share; it lives for ever."""
        definition = MethodDef(name.encode(), self.functions[function], _METH_FASTCALL | _METH_KEYWORDS, doc.encode())
        self._immortal.append(definition)
        return definition

    def new(self, definition: MethodDef, bound: Bound, module: str | None) -> PythonFunction:
        """A builtin of a definition."""
        return self._new(ctypes.addressof(definition), bound, module)

    def bound(self, fn: PythonFunction | None, name: str, *words: int) -> Bound:
        """A `Bound` for `fn` whose raw words are the context's address and `words`."""
        builtin = Bound(name)
        builtin.fn = builtin.op = fn
        builtin.raw = struct.pack(f"={1 + len(words)}q", self._address, *words)
        return builtin

    def _try_guard(self) -> None:
        def trial(*args: object, **options: object) -> tuple[tuple[object, ...], dict[str, object]]:
            if options.pop("fails", False):
                raise KeyError(args)
            return args, options

        guarded = self.builtin("guard", self.bound(trial, "trial"), "trial", "", None)
        if guarded(1, 2.5, name="x") != ((1, 2.5), {"name": "x"}):
            raise RuntimeError("the trial of a guard gave a wrong result")
        try:
            guarded(3, fails=True)
        except KeyError as error:
            if error.args == ((3,),):
                return
        raise RuntimeError("the trial of a guard lost an error")


def _obstacle() -> str:
    """Why native entries cannot be tried at all; empty when they can."""
    if os.environ.get("TWOFOLD_NATIVE_CALL", "1") == "0":
        return "TWOFOLD_NATIVE_CALL=0"
    if sys.implementation.name != "cpython" or sys.version_info < (3, 11):
        return "not CPython 3.11 or later"
    if "t" in getattr(sys, "abiflags", ""):
        return "a free-threaded build"
    if struct.calcsize("P") != 8 or object.__basicsize__ != 16 or sys.byteorder != "little":
        return "not a 64-bit little-endian release build"
    return ""


def core() -> Core | None:
    """The native core, started on the first call; None where native entries are off (`reason()` says why)."""
    if _reason is None:
        with _starting:
            if _reason is None:
                _start()
    return _core


def _start() -> None:
    global _core, _reason
    why = _obstacle()
    if not why:
        try:
            _core = Core()
            _cores.append(_core)
        except (OSError, RuntimeError, ImportError) as error:
            why = f"{type(error).__name__}: {error}"
    _reason = why


def disable(why: str) -> None:
    """Turns native entries off for all functions that are made from now on."""
    global _core, _reason
    _core, _reason = None, why


def reason() -> str:
    """Why native entries are off; empty where they are in use."""
    core()
    return _reason or ""


_starting = locks.Lock()
_core: Core | None = None
_cores: list[Core] = []  # builtins already made go on using their core after `disable`
_reason: str | None = None  # None: not tried yet
