"""Where things lie: fields of CPython's and NumPy's objects, words of the context, rows of an op's table.

The offsets are those of the public headers. `layout()` checks each by reading objects whose contents are known, and
refuses when one differs, before any code that relies on them runs.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

__all__ = ["Bound", "HasMemory", "PythonFunction", "layout", "slot_offset", "capi", "exported", "array_constructor",
           "ROWS", "SHARED", "SHARED_WORDS", "PYTHON_API", "KIND", "TABLE", "CONTIGUOUS_ALIGNED", "OWNDATA",
           "WRITEABLE"]

# A function of the user's or of ours, or a builtin that stands for one: its own signature says what it takes and gives.
PythonFunction: TypeAlias = Callable[..., Any]
CType: TypeAlias = "type[ctypes._SimpleCData]"  # such as `ctypes.c_int64`

CONTIGUOUS_ALIGNED = 0x0001 | 0x0100  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
OWNDATA, WRITEABLE = 0x0004, 0x0400  # NPY_ARRAY_OWNDATA, NPY_ARRAY_WRITEABLE

# Bytes in the memory of an `OpTable`: a limit of elements, then a row for each NumPy type number. A row holds kernels
# by mask and the dtype of the result. The row `extra` is for bfloat16, whose number NumPy gives out when it is loaded.
TABLE = {"limit": 0, "rows": 32, "row": 32, "v": 0, "vv": 0, "vs": 8, "sv": 16, "out": 24, "extra": 24}
ROWS = TABLE["extra"] + 1

KIND = {"other": 0, "f32": 1, "f64": 2, "integer": 3, "bool": 4}

PYTHON_API: tuple[str, ...] = (
    "PyObject_Vectorcall", "Py_IncRef", "Py_DecRef", "PyErr_Clear", "PyTuple_New", "PyLong_AsLongLongAndOverflow",
    "PyList_New", "PyList_SetItem", "PyLong_FromLongLong", "PyDict_New", "PyDict_SetItem", "PyEval_SaveThread",
    "PyEval_RestoreThread", "PyObject_RichCompareBool", "PyErr_ExceptionMatches")
if sys.version_info >= (3, 12):
    PYTHON_API += ("PyErr_GetRaisedException", "PyErr_SetRaisedException")
else:
    PYTHON_API += ("PyErr_Fetch", "PyErr_NormalizeException", "PyErr_Restore", "PyException_SetTraceback",
                   "PyException_GetTraceback")
_SINGLE = (*PYTHON_API, "PyArray_NewFromDescr",
           "leave", "recorder", "recorders", "tracers",  # flags, and Python functions called back
           "symbolic",  # the exception that `again` answers
           "tensor", "tensor.array", "tensor.alloc",  # the Tensor type, the offset of its array, its tp_alloc
           "ndarray", "float", "int", "bool", "true",
           "functions_off", "function", "function.quick", "variable.value", "tensor.id", "tensor.weak",  # for programs
           "empty", "pooled_from", "drawn", "lease", "memcpy",
           "variable.word", "claims.waiting", "claims.running", "claims.changed",
           "interrupts", "interrupts.raise")
_ROWED = ("descrs", "kinds", "least", "most")  # by type number: canonical dtype, kind, range of an integer type
SHARED = {name: index for index, name in enumerate(_SINGLE)}
SHARED |= {name: len(_SINGLE) + ROWS * index for index, name in enumerate(_ROWED)}
SHARED_WORDS = len(_SINGLE) + ROWS * len(_ROWED)


class HasMemory(Protocol):
    """A tensor as native code sees it: its array lies in a slot. Its class is made in a room above."""

    _memory: np.ndarray


class Bound(types.ModuleType):
    """The `self` of a native builtin: what its C function works with.

    A kind of module, so that the builtin is a function to Python and not a method: it prints, documents and pickles
    by name.
    """

    __slots__ = ("fn", "raw", "op", "keep", "again", "direct", "kind")
    fn: PythonFunction | None  # the Python function behind the entry; None where machine code does everything
    raw: bytes  # addresses, that of the context first
    op: object  # the op that recorders are told of
    keep: object  # owns the memory that `raw` points to
    again: PythonFunction  # called with the same arguments where `fn` raised SymbolicOperand; empty for most
    direct: Bound  # of an entry, which answers calls in the place of `fn`; empty for most
    kind: str  # the name of an entry's C function


_SLOTS = ("fn", "raw", "op", "again", "direct")  # those that native code reads


def layout() -> dict[str, int]:
    """Offsets of fields in bytes and indices of context words, for `native_ir.build`.

    Raises:
        RuntimeError: objects are laid out in another way here.
    """
    offsets = {f"context.{name}": index for name, index in SHARED.items()}
    offsets |= {"raised_exceptions": int(sys.version_info >= (3, 12)), "object.type": 8}
    offsets |= {"bytes.payload": bytes.__basicsize__ - 1, "tuple.items": tuple.__basicsize__, "float.value": 16}
    offsets |= {"tuple.size": 16}
    offsets |= {"array.data": 16, "array.rank": 24, "array.dims": 32, "array.base": 48, "array.descr": 56}
    offsets |= {"array.flags": 64, "array.weak": 72}
    offsets |= {"descr.number": 28, "descr.size": 40}
    offsets |= {f"bound.{name}": slot_offset(Bound, name) for name in _SLOTS}
    _check_python(offsets)
    _check_numpy(offsets)
    return offsets


def _check_python(at: dict[str, int]) -> None:
    probe = Bound("probe")
    probe.fn, probe.raw, probe.op, probe.again, probe.direct = print, b"twofold's probe", object(), repr, probe
    for name in _SLOTS:
        _expect(_word(probe, at[f"bound.{name}"]) == id(getattr(probe, name)), f"slot {name}")
    _expect(_word(probe, at["object.type"]) == id(Bound), "type of an object")
    _expect(ctypes.string_at(id(probe.raw) + at["bytes.payload"], len(probe.raw)) == probe.raw, "bytes")
    _expect(ctypes.c_double.from_address(id(_FLOAT) + at["float.value"]).value == _FLOAT, "float")
    pair = (probe, at)
    _expect([_word(pair, at["tuple.items"] + 8 * n) for n in range(2)] == [id(probe), id(at)], "tuple")
    _expect(_word(pair, at["tuple.size"]) == 2, "size of a tuple")
    # Not compared with `getrefcount`, which counts its own argument in some versions only.
    count = ctypes.c_int32.from_address(id(pair))
    before = count.value
    more = [pair, pair]
    _expect(0 < before == count.value - len(more), "reference count")


_FLOAT = 1234.5678


def _check_numpy(at: dict[str, int]) -> None:
    array = np.zeros((2, 3), np.float32)
    _expect(_word(array, at["array.data"]) == array.__array_interface__["data"][0], "data of an array")
    _expect(ctypes.c_int32.from_address(id(array) + at["array.rank"]).value == 2, "rank of an array")
    dims = _word(array, at["array.dims"])
    _expect([ctypes.c_int64.from_address(dims + 8 * n).value for n in range(2)] == [2, 3], "shape of an array")
    _expect(_word(array, at["array.descr"]) == id(array.dtype), "dtype of an array")
    flags = array.flags.num
    _expect(ctypes.c_int32.from_address(id(array) + at["array.flags"]).value == flags, "flags of an array")
    _expect(bool(flags & OWNDATA and flags & WRITEABLE), "flags of an array")
    _expect(flags & CONTIGUOUS_ALIGNED == CONTIGUOUS_ALIGNED and not array.T.flags.num & 1, "flags of an array")
    view, marked = array[:1], np.zeros(2)
    mark = weakref.ref(marked)
    _expect(_word(view, at["array.base"]) == id(array) and not _word(array, at["array.base"]), "base of an array")
    _expect(_word(marked, at["array.weak"]) == id(mark) and not _word(array, at["array.weak"]), "weak references")
    for name in ("bool", "int64", "float32", "complex128"):
        dtype = np.dtype(name)
        _expect(ctypes.c_int32.from_address(id(dtype) + at["descr.number"]).value == dtype.num, "number of a dtype")
        _expect(_word(dtype, at["descr.size"]) == dtype.itemsize, "size of a dtype")


def _word(thing: object, offset: int) -> int:
    return ctypes.c_int64.from_address(id(thing) + offset).value


def _expect(condition: bool, what: str) -> None:
    if not condition:
        raise RuntimeError(f"this interpreter or NumPy lays objects out in an unknown way: {what}")


def slot_offset(owner: type, name: str) -> int:
    """Where instances of `owner` hold the value of the slot `name`, in bytes from their start.

    Raises:
        RuntimeError: `name` is not such a slot, or the interpreter keeps it elsewhere.
    """
    descriptor = next((c.__dict__[name] for c in owner.__mro__ if name in c.__dict__), None)
    _expect(type(descriptor) is types.MemberDescriptorType, f"{owner.__name__}.{name} is not a slot")
    # PyMemberDescrObject: the object's head, d_type, d_name and d_qualname, then d_member, whose third word is it.
    member = _word(descriptor, object.__basicsize__ + 3 * 8)
    offset = ctypes.c_ssize_t.from_address(member + 16).value
    _expect(object.__basicsize__ <= offset <= owner.__basicsize__ - 8, f"slot {owner.__name__}.{name}")
    return offset


def exported(name: str) -> int:
    """The address of a function of CPython's C API.

    Raises:
        RuntimeError: the interpreter does not export it.
    """
    try:
        return ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value or 0
    except AttributeError:
        raise RuntimeError(f"this interpreter does not export {name}") from None


def capi(name: str, result: CType, *arguments: CType) -> PythonFunction:
    """A function of CPython's C API, as Python calls it; errors it sets are raised."""
    return ctypes.PYFUNCTYPE(result, *arguments)(exported(name))


def array_constructor() -> int:
    """The address of NumPy's `PyArray_NewFromDescr`.

    Raises:
        RuntimeError: NumPy's table of functions is not the known one.
    """
    capsule = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
    table = capi("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(capsule, None)
    entries = (ctypes.c_int64 * 95).from_address(table)
    _expect(entries[2] == id(np.ndarray) and entries[3] == id(np.dtype), "NumPy's table of functions")
    number = np.dtype(np.float32).num
    _expect(ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_int)(entries[45])(number) is np.dtype(np.float32),
            "NumPy's table of functions")
    return entries[94]
