"""Writing the runtime's own LLVM functions: words at addresses, calls through addresses, guards first.

A thin layer over `llvmlite.ir.IRBuilder` for the glue of `threads.py` and the native entries, where everything is a
64-bit word, a pointer or a field at a known offset. Numeric kernels are written by codegen, not with this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from llvmlite import ir

from twofold.codegen import llvm_loops

__all__ = ["Code", "Glue", "Offset", "new_module", "i8", "i16", "i32", "i64", "f32", "f64", "ptr", "void"]

i8, i16, i32, i64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
f32, f64, ptr, void = ir.FloatType(), ir.DoubleType(), ir.PointerType(), ir.VoidType()

Offset: TypeAlias = ir.Value | int  # bytes or words from an address: an int64 value, or a number


def new_module(name: str, *writers: Callable[[ir.Module], None]) -> ir.Module:
    """A module that opens with a function `begin` of no effect: where it lies, the code starts.

    Args:
        writers: each adds functions to it.
    """
    module = ir.Module(name=name)
    Code(module, "begin", void, []).ret_void()
    for write in writers:
        write(module)
    return module


class Code(ir.IRBuilder):
    """A builder at the start of a new function's body."""

    def __init__(self, module: ir.Module, name: str, result: ir.Type, arguments: Sequence[ir.Type],
                 internal: bool = False):
        self.fn = ir.Function(module, ir.FunctionType(result, arguments), name)
        self.fn.attributes.add("nounwind")
        if internal:  # reached from this module only, and so callable without a relocation
            self.fn.linkage = "internal"
        super().__init__(self.fn.append_basic_block("entry"))

    def at(self, base: ir.Value, offset: Offset) -> ir.Value:
        """The address `offset` bytes after `base`."""
        return self.gep(base, [i64(offset) if isinstance(offset, int) else offset], source_etype=i8)

    def word(self, base: ir.Value, index: Offset) -> ir.Value:
        """The address of the 64-bit word number `index` from `base`."""
        return self.gep(base, [i64(index) if isinstance(index, int) else index], source_etype=i64)

    def get(self, base: ir.Value, offset: Offset, kind: ir.Type = ptr) -> ir.Value:
        """The field of type `kind` at `offset` bytes from `base`."""
        return self.load(self.at(base, offset), typ=kind)

    def put(self, value: ir.Value, base: ir.Value, offset: Offset) -> None:
        """Stores `value` at `offset` bytes from `base`."""
        self.store(value, self.at(base, offset))

    def room(self, kind: ir.Type, count: ir.Value | None = None) -> ir.Value:
        """The address of room on the stack for `count` values of type `kind`, one by default."""
        return self.inttoptr(self.ptrtoint(self.alloca(kind, count), i64), ptr)

    def to(self, address: ir.Value, result: ir.Type, *args: ir.Value) -> ir.Value:
        """Calls the function at `address`, a pointer or an int64, whose arguments have the types of `args`."""
        kind = ir.FunctionType(result, [a.type for a in args]).as_pointer()
        if address.type == ptr:
            address = self.ptrtoint(address, i64)
        return self.call(self.inttoptr(address, kind), args)

    def is_null(self, pointer: ir.Value) -> ir.Value:
        """Whether `pointer` is NULL."""
        return self.icmp_unsigned("==", pointer, ptr(None))

    def same(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """Whether two words or pointers are equal."""
        return self.icmp_unsigned("==", left, right)

    def leave_if(self, condition: ir.Value, target: ir.Block) -> None:
        """Jumps to `target` if `condition`, else goes on in a new block: a guard."""
        rest = self.fn.append_basic_block()
        self.cbranch(condition, target, rest)
        self.position_at_end(rest)

    def unless(self, condition: ir.Value, target: ir.Block) -> None:
        """Jumps to `target` unless `condition` holds, else goes on in a new block."""
        rest = self.fn.append_basic_block()
        self.cbranch(condition, rest, target)
        self.position_at_end(rest)

    def each(self, count: ir.Value, body: Callable[[ir.Value], object]) -> None:
        """Runs `body(index)` for every index below `count`, an int64."""
        with llvm_loops.each(self, count) as index:
            body(index)


class Glue(Code):
    """A native entry: its `self` is a `native_layout.Bound`, and the context gives it the C API."""

    context: ir.Value  # its address, which whoever writes the function sets before anything asks the context

    def __init__(self, module: ir.Module, layout: dict[str, int], name: str, result: ir.Type,
                 arguments: Sequence[ir.Type], internal: bool = False):
        super().__init__(module, name, result, arguments, internal)
        self.layout = layout

    def slot(self, owner: ir.Value, name: str) -> ir.Value:
        """The object in slot `name` of a `Bound`, borrowed."""
        return self.get(owner, self.layout[name])

    def raw(self, owner: ir.Value) -> ir.Value:
        """The address of the raw words of a `Bound`."""
        return self.at(self.slot(owner, "bound.raw"), self.layout["bytes.payload"])

    def shared(self, name: str, kind: ir.Type = ptr) -> ir.Value:
        """The word `name` of the context."""
        return self.get(self.context, 8 * self.layout["context." + name], kind)

    def api(self, name: str, result: ir.Type, *args: ir.Value) -> ir.Value:
        """Calls the C API function `name`."""
        return self.to(self.shared(name, i64), result, *args)

    def release(self, thing: ir.Value) -> None:
        """Gives up one reference to `thing`, which may be NULL."""
        self.api("Py_DecRef", void, thing)
