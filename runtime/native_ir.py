"""The LLVM code of the native entries, which calls run before, or instead of, any Python.

`build(layout)` gives one module for `machine.load`. Every entry is a C function of the METH_FASTCALL kind whose
`self` is a `native_layout.Bound` object; its slots hold the Python objects of the entry, and the bytes in its slot
`raw` hold addresses, the first of which is that of the *context*: a table of C API functions, objects and flags that
all entries share. Nothing else is reached, so the code needs no relocation.

Objects are read at the offsets of the public CPython and NumPy headers; `native_layout.py` checks them before any of
this runs. Guards are here, the entries of ops in `entry_ir.py`, those of compiled programs in `program_ir.py`.
"""

from __future__ import annotations

from llvmlite import ir

from .claims_ir import add_claims
from .emit import Glue, i32, i64, new_module, ptr, void
from .entry_ir import add_entries
from .program_ir import add_program_entries

__all__ = ["build"]


def build(layout: dict[str, int]) -> ir.Module:
    """The module of all native entries for one interpreter.

    Args:
        layout: offsets of fields in bytes, and the indices of the context's words, by name.
    """
    module = new_module("native")
    strip = _strip(module, layout)
    recover = _recover(module, layout, strip)
    fresh = _fresh(module, layout)
    guard = _guard(module, layout, recover)
    add_entries(module, layout, strip, recover, fresh, guard)
    add_program_entries(module, layout, strip, fresh)
    add_claims(module, layout)
    return module


def _strip(module: ir.Module, layout: dict[str, int]) -> ir.Function:
    """`strip(context, self, since)`: puts what the Python function `leave` gives in place of the exception raised.

    `since` is the number of random draws before the call, or -1 where none are made.
    """
    c = Glue(module, layout, "strip", ir.VoidType(), [ptr, ptr, i64], internal=True)
    c.context, owner, since = c.fn.args
    void, null = ir.VoidType(), ptr(None)
    error = c.room(ptr, 3)  # type, value, traceback
    operands = c.room(ptr, 3)
    value = c.at(error, 8)
    if layout["raised_exceptions"]:
        c.store(c.api("PyErr_GetRaisedException", ptr), value)
    else:
        c.api("PyErr_Fetch", void, error, value, c.at(error, 16))
        c.api("PyErr_NormalizeException", void, error, value, c.at(error, 16))
        traceback = c.get(error, 16)
        with c.if_then(c.not_(c.is_null(traceback))):
            c.api("PyException_SetTraceback", i32, c.load(value, typ=ptr), traceback)
            c.release(traceback)
    c.put(c.load(value, typ=ptr), operands, 0)
    c.put(owner, operands, 8)
    number = c.api("PyLong_FromLongLong", ptr, since)
    c.put(number, operands, 16)
    result = c.api("PyObject_Vectorcall", ptr, c.shared("leave"), operands, i64(3), null)
    c.release(number)
    with c.if_else(c.is_null(result)) as (failed, left):
        with failed:
            c.api("PyErr_Clear", void)
        with left:
            c.release(c.load(value, typ=ptr))
            c.store(result, value)
    exception = c.load(value, typ=ptr)
    if layout["raised_exceptions"]:
        c.api("PyErr_SetRaisedException", void, exception)
    else:
        kind = c.get(exception, layout["object.type"])
        c.api("Py_IncRef", void, kind)
        c.release(c.load(error, typ=ptr))
        c.api("PyErr_Restore", void, kind, exception, c.api("PyException_GetTraceback", ptr, exception))
    c.ret_void()
    return c.fn


def _recover(module: ir.Module, layout: dict[str, int], strip: ir.Function) -> ir.Function:
    """`recover(context, self, args, nargs, kwnames, since)`: for a call that has raised; `since` as in `strip`.

    Where what it was given stands for a tensor, the result of `again`; else NULL, with the traceback shortened.
    """
    c = Glue(module, layout, "recover", ptr, [ptr, ptr, ptr, i64, ptr, i64], internal=True)
    context, owner, args, count, names, since = c.fn.args
    c.context = context
    failed = c.fn.append_basic_block("failed")
    again = c.slot(owner, "bound.again")
    c.leave_if(c.is_null(again), failed)
    c.leave_if(c.same(c.api("PyErr_ExceptionMatches", i32, c.shared("symbolic")), i32(0)), failed)
    c.api("PyErr_Clear", void)
    result = c.api("PyObject_Vectorcall", ptr, again, args, count, names)
    c.leave_if(c.is_null(result), failed)
    c.ret(result)
    c.position_at_end(failed)
    c.call(strip, [context, owner, since])
    c.ret(ptr(None))
    return c.fn


def _fresh(module: ir.Module, layout: dict[str, int]) -> ir.Function:
    """`fresh(context, descr, rank, dims, size)`: a new array, with elements of `size` bytes; large ones of the pool."""
    c = Glue(module, layout, "fresh", ptr, [ptr, ptr, i64, ptr, i64], internal=True)
    context, descr, rank, dims, size = c.fn.args
    c.context = context
    operands = c.room(ptr, 2)
    total = _product(c, size, rank, dims)
    large, failed = c.fn.append_basic_block(), c.fn.append_basic_block()
    c.leave_if(c.icmp_signed(">=", total, c.shared("pooled_from", i64)), large)
    c.api("Py_IncRef", void, descr)  # the new array takes this reference
    null = ptr(None)
    c.ret(c.api("PyArray_NewFromDescr", ptr, c.shared("ndarray"), descr, c.trunc(rank, i32), dims, null, null, i32(0),
                null))
    c.position_at_end(large)
    shape = c.api("PyTuple_New", ptr, rank)
    c.leave_if(c.is_null(shape), failed)

    def put(n: ir.Value) -> None:
        number = c.api("PyLong_FromLongLong", ptr, c.load(c.word(dims, n), typ=i64))
        c.store(number, c.word(c.at(shape, layout["tuple.items"]), n))
        ok = c.fn.append_basic_block()
        bad = c.fn.append_basic_block()
        c.cbranch(c.is_null(number), bad, ok)
        c.position_at_end(bad)
        c.release(shape)
        c.branch(failed)
        c.position_at_end(ok)

    c.each(rank, put)
    c.put(shape, operands, 0)
    c.put(descr, operands, 8)
    array = c.api("PyObject_Vectorcall", ptr, c.shared("empty"), operands, i64(2), null)
    c.release(shape)
    c.ret(array)
    c.position_at_end(failed)
    c.ret(null)
    return c.fn


def _product(c: Glue, first: ir.Value, count: ir.Value, words: ir.Value) -> ir.Value:
    """`first` times the `count` int64 numbers at `words`. Nothing waits for memory that was just written."""
    before = c.block
    test, inside, after = (c.fn.append_basic_block() for _ in range(3))
    c.branch(test)
    c.position_at_end(test)
    index, total = c.phi(i64), c.phi(i64)
    c.cbranch(c.icmp_signed("<", index, count), inside, after)
    c.position_at_end(inside)
    for phi, start, following in ((index, i64(0), c.add(index, i64(1))),
                                  (total, first, c.mul(total, c.load(c.word(words, index), typ=i64)))):
        phi.add_incoming(start, before)
        phi.add_incoming(following, inside)
    c.branch(test)
    c.position_at_end(after)
    return total


def _guard(module: ir.Module, layout: dict[str, int], recover: ir.Function) -> ir.Function:
    """`guard(self, args, nargs, kwnames)`: calls the Python function of `self`. Gives what this module calls."""
    c = Glue(module, layout, "run_guard", ptr, [ptr, ptr, i64, ptr], internal=True)
    owner, args, count, names = c.fn.args
    c.context = c.get(c.raw(owner), 0)
    since = c.get(c.shared("drawn"), 0, i64)
    result = c.api("PyObject_Vectorcall", ptr, c.slot(owner, "bound.fn"), args, count, names)
    failed = c.fn.append_basic_block("failed")
    c.leave_if(c.is_null(result), failed)
    c.ret(result)
    c.position_at_end(failed)
    c.ret(c.call(recover, [c.context, owner, args, count, names, since]))
    shown = Glue(module, layout, "guard", ptr, [ptr, ptr, i64, ptr])
    shown.ret(shown.call(c.fn, shown.fn.args, tail=True))
    return c.fn
