"""The buffer protocol for a Python class on CPython 3.11, which knows `__buffer__` only from 3.12 on.

The class's own slot is filled with machine code that asks the array in an instance to export its memory, read-only.
Python code cannot serve there: where it fails before it starts, as when recursion is too deep, nobody would tell the
caller, who would go on with a buffer that was never filled in.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.ir.errors import InternalError

from . import machine
from .native_layout import slot_offset

if TYPE_CHECKING:
    from llvmlite import ir

__all__ = ["export_buffers"]

_TYPE, _TP_AS_BUFFER = 8, 160  # offsets of PyObject.ob_type and PyTypeObject.tp_as_buffer on 64-bit CPython 3.11
_OBJ, _READONLY, _WRITABLE = 8, 32, 1  # offsets of Py_buffer.obj and .readonly; PyBUF_WRITABLE


def export_buffers(cls: type, slot: str) -> None:
    """Let `memoryview` and its like read the array in `slot` of instances of `cls`, and keep it alive meanwhile.

    Nothing is done where the interpreter does so itself by `__buffer__`, is not 64-bit CPython, or machine code cannot
    be had. A request for writable memory is a SystemError on 3.11 and a BufferError later.

    Raises:
        RuntimeError: `cls` has no such slot.
    """
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 12) or sys.maxsize < 1 << 32:
        return
    offset = slot_offset(cls, slot)
    try:
        address = machine.load("buffers", lambda: _build(offset), ("buffers.py",), offset)["getbuffer"]
    except (OSError, RuntimeError, ImportError, InternalError):
        return
    procs = ctypes.c_void_p.from_address(id(cls) + _TP_AS_BUFFER).value
    if not procs:
        return
    place = ctypes.c_void_p.from_address(procs)
    before, place.value = place.value, address
    if not _works(cls, slot):
        place.value = before


def _works(cls: type, slot: str) -> bool:
    instance: Any = object.__new__(cls)  # which exports its memory from here on, unknown to type checkers
    setattr(instance, slot, np.arange(6, dtype=np.int16).reshape(2, 3)[:, ::2])
    try:
        view = memoryview(instance)
    except (TypeError, ValueError, BufferError, SystemError):
        return False
    exported: tuple[str, object] = (view.format, view.tolist())
    return view.readonly and exported == ("h", [[0, 2], [3, 5]])


def _build(offset: int) -> ir.Module:
    """`getbuffer(instance, view, flags)`: a `getbufferproc` that hands the request to the object at `offset`.

    That object becomes the owner of the view, so that nothing has to be released here.
    """
    from .emit import Code, i32, i64, new_module, ptr

    module = new_module("buffers")
    c = Code(module, "getbuffer", i32, [ptr, ptr, i32])
    instance, view, flags = c.fn.args
    refuse = c.fn.append_basic_block("refuse")
    c.put(ptr(None), view, _OBJ)
    c.unless(c.same(c.and_(flags, i32(_WRITABLE)), i32(0)), refuse)
    owner = c.get(instance, offset)
    c.leave_if(c.is_null(owner), refuse)
    procs = c.get(c.get(owner, _TYPE), _TP_AS_BUFFER)
    c.leave_if(c.is_null(procs), refuse)
    export = c.get(procs, 0, i64)
    c.leave_if(c.same(export, i64(0)), refuse)
    status = c.to(export, i32, owner, view, flags)
    c.unless(c.same(status, i32(0)), refuse)
    c.put(i32(1), view, _READONLY)
    c.ret(i32(0))
    c.position_at_end(refuse)
    c.ret(i32(-1))
    return module
