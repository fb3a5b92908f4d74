"""Native entries: Python callables whose C function is our own machine code.

`guard` wraps a public function so that an error shows the user's frames only. `entry` answers small elementwise
ops without running any Python. Both have plain Python forms with the same results, which take over where native
code is off (`available()` is False): see `native_core.py`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

from twofold.ir import dtypes
from twofold.ir.errors import SymbolicOperand

from . import locks, memory, operator_slots
from . import random as streams
from .leaving import leave
from .native_core import Core, core, disable, reason
from .native_layout import (
    KIND,
    ROWS,
    SHARED,
    TABLE,
    Bound,
    HasMemory,
    PythonFunction,
    array_constructor,
    capi,
    slot_offset,
)
from .signatures import documented

if TYPE_CHECKING:
    from twofold.ir.op import Op

__all__ = ["available", "reason", "guard", "unguarded", "as_method", "OpTable", "entry", "operators", "bind",
           "set_recorder", "change_recorders", "change_tracers", "stand_in"]

P = ParamSpec("P")
R = TypeVar("R")
# `recorder(op, inputs, output)`; inputs and output are tensors, whose class is made in a room above.
EntryRecorder: TypeAlias = "Callable[[Op, tuple[Any, ...], Any], object]"



def available() -> bool:
    """Whether native entries are in use in this process."""
    return core() is not None


def guard(fn: Callable[P, R], name: str | None = None, doc: str | None = None,
          direct: PythonFunction | None = None) -> Callable[P, R]:
    """A builtin that calls `fn` and trims the traceback of what it raises to the user's frames.

    Args:
        fn: the Python function.
        name, doc: the builtin's `__name__` and `__doc__`; those of `fn` by default.
        direct: what `entry` gave for an op; it answers calls with just the op's operands, all by position, which
            saves Python's part. Its errors say its own name.
    Returns:
        A builtin, or a plain function where native entries are off. `unguarded` gives `fn` back.
    """
    name = name or fn.__name__
    doc = fn.__doc__ if doc is None else doc
    native = core()
    if native is None:
        return _recovering(_renamed(fn, name, doc))
    module = getattr(fn, "__module__", None)
    bound, function = _with_again(native.bound(fn, name), fn), "guard"
    if direct is not None:
        bound.direct = _in_place_of(bound, direct.__self__)  # type: ignore[attr-defined]
        function = f"direct_{bound.direct.kind}"
    return native.builtin(function, bound, name, documented(fn, name, doc), module)


def _in_place_of(guarded: Bound, entry: Bound) -> Bound:
    """What an entry works with where it answers for a guard: what stands for a tensor is for the guard's function."""
    bound = Bound(guarded.__name__)
    for name in ("fn", "raw", "op", "keep", "kind"):
        setattr(bound, name, getattr(entry, name))
    bound.again = guarded.again
    return bound


Handler: TypeAlias = Callable[[PythonFunction, tuple[object, ...], dict[str, object], SymbolicOperand], object]
_handlers: dict[type[SymbolicOperand], Handler] = {}


def stand_in(handler: Handler | None, error: type[SymbolicOperand] = SymbolicOperand) -> None:
    """Set the function that is called where a public function raises `error`.

    Args:
        handler: gets the Python function, its arguments, its keyword arguments and the error, and gives the result;
            the frame that called the public function is two above its own. None for nobody.
        error: `SymbolicOperand` or a class of it; the handler of the nearest class is asked.
    """
    if handler is None:
        _handlers.pop(error, None)
    else:
        _handlers[error] = handler


def _again(fn: PythonFunction, *args: object, **kwargs: object) -> object:
    try:
        return fn(*args, **kwargs)  # raises again: what the native code has met is not handed on
    except SymbolicOperand as error:
        met = error
    return _handler(met)(fn, args, kwargs, met)


def _handler(error: SymbolicOperand) -> Handler:
    """The handler for `error`, which is raised again where there is none."""
    for kind in type(error).__mro__:
        if kind in _handlers:
            return _handlers[kind]
    raise error


def _with_again(bound: Bound, fn: PythonFunction) -> Bound:
    bound.again = functools.partial(_again, fn)
    return bound


def _recovering(fn: PythonFunction) -> PythonFunction:
    """`fn` as a plain Python function that does what native entries do where `SymbolicOperand` is raised."""
    if not isinstance(fn, types.FunctionType):
        return fn

    @functools.wraps(fn)
    def call(*args: object, **kwargs: object) -> object:
        since = streams.mark()
        try:
            try:
                return fn(*args, **kwargs)
            except SymbolicOperand as error:
                met = error
            return _handler(met)(fn, args, kwargs, met)
        except Exception as error:  # noqa: BLE001 (whatever it is, it goes on)
            raise leave(error, fn, since, sys._getframe(1))  # noqa: B904
    call.__unguarded__ = fn  # type: ignore[attr-defined]
    return call


def unguarded(function: PythonFunction) -> PythonFunction:
    """The Python function behind a builtin made here; any other callable is its own."""
    owner = getattr(function, "__self__", None)
    return owner.fn if type(owner) is Bound and owner.fn is not None else getattr(function, "__unguarded__", function)


def as_method(function: PythonFunction) -> PythonFunction:
    """`function` in a form that binds to instances when it is an attribute of a class."""
    if not isinstance(function, types.BuiltinFunctionType):
        return function
    method: PythonFunction = capi("PyInstanceMethod_New", ctypes.py_object, ctypes.py_object)(function)
    return method


class OpTable:
    """The kernels of one op, in memory that its entries read: by NumPy type number and operand mask.

    Args:
        limit: with more elements than this an entry goes to the Python function, which may use threads.
    """

    def __init__(self, limit: int = 32768):
        self._memory = (ctypes.c_int64 * ((TABLE["rows"] + ROWS * TABLE["row"]) // 8))()
        self._dtypes: dict[int, np.dtype] = {}  # keeps alive what the rows point to
        self.allow(limit)
        self.address = ctypes.addressof(self._memory)

    def allow(self, limit: int) -> None:
        """Sets the limit."""
        self.limit = self._memory[TABLE["limit"] // 8] = limit

    def set(self, type_num: int, mask: str, address: int, out_dtype: np.dtype) -> None:
        """Makes `address` the contiguous map kernel for operands of one type.

        Args:
            type_num: `dtype.num` of the operands.
            mask: "v" for one operand; "vv", "vs" or "sv" for two (`s`: one element for all).
            address: the kernel, which must stay where it is for ever.
            out_dtype: dtype of the result, the same for all masks of the type.
        Raises:
            ValueError: the mask is unknown, or no entry takes operands of this type.
        """
        row = _row(type_num)
        if mask not in ("v", "vv", "vs", "sv"):
            raise ValueError(f"unknown operand mask {mask!r}")
        if row is None:
            raise ValueError(f"native entries take no operands of NumPy type number {type_num}")
        start = TABLE["rows"] + row * TABLE["row"]
        self._dtypes[row] = out_dtype
        self._memory[(start + TABLE["out"]) // 8] = id(out_dtype)
        self._memory[(start + TABLE[mask]) // 8] = address


def entry(table: OpTable, slow: PythonFunction, arity: int, name: str, doc: str | None = None, *,
          reflected: bool = False, total: bool = False, product: bool = False, op: Op | None = None) -> PythonFunction:
    """A builtin for an elementwise op that handles small plain Tensors itself.

    It computes when called with `arity` positional arguments that are Tensors (exactly of the bound type) of one
    dtype and shape, or one of them of rank 0, or one a Python number that the other's dtype holds exactly; when the
    table has a kernel for them; and when nothing is being traced. In all other cases, and where native entries are
    off, the result is that of `slow` with the same arguments.

    Args:
        table: the op's kernels; `slow` adds those it compiles.
        slow: the complete op in Python. It raises the op's errors and may return NotImplemented.
        arity: 1 or 2.
        name, doc: the builtin's `__name__` and `__doc__`.
        reflected: for `__radd__` and the like: the op's operands are the arguments in reverse order.
        total: the op, of arity 1, reduces all elements to one; its kernels are those of `codegen/reduce.py: rows`, and
            the table's limit must not pass a chunk.
        product: the op, of arity 2, multiplies two matrices; the table's kernels, under the mask "vv", are those named
            `small` in `codegen/gemm.py`, and its limit is one of multiplications.
        op: that the recorder is told of; by default `name`.
    """
    if arity not in (1, 2) or (reflected and arity == 1):
        raise ValueError(f"no native entry has arity {arity}" + (" and reflected operands" if reflected else ""))
    doc = slow.__doc__ if doc is None else doc
    native = core()
    if native is None:
        return _recovering(_renamed(_swapped(slow) if reflected else slow, name, doc))
    bound = _with_again(native.bound(slow, name, table.address), slow)
    bound.keep, bound.op = table, name if op is None else op
    special = "product" if product else "total" if total else ""
    bound.kind = special or ("reflected" if reflected else ("unary", "binary")[arity - 1])
    return native.builtin(bound.kind, bound, name, documented(slow, name, doc), getattr(slow, "__module__", None))


def operators(cls: type, entries: Mapping[str, PythonFunction]) -> None:
    """Has operators of `cls` run entries without a look at the class's attributes, which it must have by now.

    Args:
        entries: by the operator, such as "__add__", what `entry` gave; none is `reflected`. `operator_slots.py` says
            which there are.
    """
    native = core()
    if native is not None:
        with contextlib.suppress(OSError):  # no further code is allowed, and the attributes do the same
            operator_slots.install(native, cls, entries)


def bind(tensor_type: type[HasMemory] | None) -> type[HasMemory] | None:
    """Tells the entries which class their Tensors have: one with a slot `_memory` for an array; gives the one before.

    Tried before it is trusted: where a trial gives anything unexpected, native entries are off from then on. Without
    a class (None) every call goes to Python.
    """
    global _tensor_type
    before, _tensor_type = _tensor_type, tensor_type
    native = core()
    if native is None:
        return before
    native.set("tensor", 0)
    if tensor_type is None:
        return before
    try:
        for dtype in dtypes.ALL:
            _describe(native, dtype)
        _fill(native, tensor_type)
        _try_entry(native, tensor_type)
    except RuntimeError as error:
        native.set("tensor", 0)
        disable(str(error))
    return before


def set_recorder(recorder: EntryRecorder | None) -> EntryRecorder | None:
    """Sets what entries call, while there are recorders, with the op, its inputs and its output.

    Returns:
        The recorder before.
    """
    global _recorder
    before, _recorder = _recorder, recorder
    native = core()
    if native is not None:
        native.hold("recorder", recorder)
    return before


_tensor_type: type[HasMemory] | None = None
_recorder: EntryRecorder | None = None


def change_recorders(by: int) -> None:
    """Counts the active recorders (tapes, in any thread) up or down; entries tell the recorder while there are any.

    Raises:
        RuntimeError: no recorder was set.
    """
    native = core()
    if native is None:
        return
    if _recorder is None:
        raise RuntimeError("set_recorder comes before the first active recorder")
    with _counting:
        count = native.words[_RECORDERS] + by
        native.words[_RECORDERS] = count if count > 0 else 0


def change_tracers(by: int) -> None:
    """Counts the active tracers (in any thread) up or down; while there are any, entries leave all to Python."""
    native = core()
    if native is None:
        return
    with _counting:
        count = native.words[_TRACERS] + by
        native.words[_TRACERS] = count if count > 0 else 0


_RECORDERS, _TRACERS = SHARED["recorders"], SHARED["tracers"]
_counting = locks.Lock()


def _row(type_num: int) -> int | None:
    """The row of an op's table, and of the context, for a NumPy type number."""
    if 0 <= type_num < TABLE["extra"]:
        return type_num
    return TABLE["extra"] if type_num == dtypes.bfloat16.np.num else None


def _describe(native: Core, dtype: dtypes.DType) -> None:
    row = _row(dtype.np.num)
    if row is None:
        return
    kind = {"float32": "f32", "float64": "f64", "bool": "bool"}.get(dtype.name, "other")
    if dtype.is_integer:
        kind = "integer"
        native.set("least", int(dtype.min), row)
        native.set("most", min(int(dtype.max), 2**63 - 1), row)
    native.set("kinds", KIND[kind], row)
    native.hold("descrs", dtype.np, row)


def _fill(native: Core, tensor_type: type[HasMemory]) -> None:
    """Puts into the context what the entries need beyond what guards need."""
    native.set("PyArray_NewFromDescr", array_constructor())
    native.set("pooled_from", memory.POOLED_FROM)
    native.hold("empty", memory.empty)
    for name, thing in (("ndarray", np.ndarray), ("float", float), ("int", int), ("bool", bool), ("true", True)):
        native.hold(name, thing)
    offset = slot_offset(tensor_type, "_memory")
    tensor = object.__new__(tensor_type)
    array = np.zeros(3)
    place = ctypes.c_void_p.from_address(id(tensor) + offset)
    if place.value is not None:
        raise RuntimeError("a new Tensor's array slot is not empty")
    tensor._memory = array
    if place.value != id(array):
        raise RuntimeError("a Tensor's array slot is not where it was found")
    native.set("tensor.array", offset)
    native.set("tensor.id", _slot(tensor_type, "_id"))
    native.set("tensor.weak", tensor_type.__weakrefoffset__ or offset)
    native.set("tensor.alloc", capi("PyType_GetSlot", ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(
        tensor_type, _TP_ALLOC) or 0)
    native.hold("tensor", tensor_type)


def _slot(owner: type, name: str) -> int:
    """Where a slot lies; where there is none of this name, that of the array, which is never empty."""
    return slot_offset(owner, name if hasattr(owner, name) else "_memory")


_TP_ALLOC = 47  # Py_tp_alloc of typeslots.h


def _try_entry(native: Core, tensor_type: type[HasMemory]) -> None:
    """One op on the fast path, one scalar, and one call that must reach the Python function."""
    def tensor(value: object) -> HasMemory:
        result = object.__new__(tensor_type)
        result._memory = np.array(value, np.int64)
        return result

    table, number = OpTable(), np.dtype(np.int64).num
    for mask in ("vv", "vs"):
        table.set(number, mask, native.functions["trial"], np.dtype(np.int64))
    add = entry(table, lambda *args: args, 2, "trial")
    x, y = tensor([[1, 2, 3]]), tensor([[10, 20, 30]])
    total, more = add(x, y), add(tensor([5]), 2)
    if {type(total), type(more)} != {tensor_type} or total._memory.tolist() != [[11, 22, 33]] or \
            more._memory.tolist() != [7]:
        raise RuntimeError("the trial of an op entry gave a wrong result")
    if add(x, "y") != (x, "y") or add(x) != (x,) or add(object.__new__(tensor_type), y)[1] is not y:
        raise RuntimeError("the trial of an op entry did not reach its Python function")


def _swapped(slow: PythonFunction) -> PythonFunction:
    @functools.wraps(slow)
    def reflected(*args: object, **options: object) -> object:
        return slow(*(args[::-1] if len(args) == 2 and not options else args), **options)

    return reflected


def _renamed(fn: PythonFunction, name: str, doc: str | None) -> PythonFunction:
    """`fn` itself, or a copy where name or docstring differ."""
    if (name == fn.__name__ and doc == fn.__doc__) or not isinstance(fn, types.FunctionType):
        return fn
    copy = types.FunctionType(fn.__code__, fn.__globals__, name, fn.__defaults__, fn.__closure__)
    copy.__kwdefaults__, copy.__doc__, copy.__qualname__ = fn.__kwdefaults__, doc, name
    copy.__module__, copy.__annotations__ = fn.__module__, fn.__annotations__
    copy.__dict__.update(fn.__dict__)
    return copy
