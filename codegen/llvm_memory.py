"""Memory in LLVM's terms: which accesses of a kernel never meet, and memory of a kernel's own of any size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from . import llvm_ops
from .statements import Load, Pointer, Room, Statement, Store
from .target import CACHES

__all__ = ["AliasScopes", "Unique", "room"]

_ON_STACK = 32 << 10  # bytes: more comes from the heap, so that threads may have small stacks
_I8, _I64, _POINTER = ir.IntType(8), ir.IntType(64), ir.PointerType()


class AliasScopes:
    """Which accesses may overlap, as LLVM's alias scopes: one for each argument that is stored to.

    An access names the scope it belongs to, and those it has nothing to do with. The declarations at the head of the
    function keep scopes of several inlined copies, or of several rounds of a loop around them, apart. What an address
    leads to may be any argument's memory: where there are addresses, nothing is said.
    """

    def __init__(self, module: ir.Module, statements: Sequence[Statement], apart: bool) -> None:
        """Args:
            statements: all of the kernel.
            apart: whether memory that is stored to never overlaps what other pointers lead to.
        """
        self.module = module
        used = [s.ptr for s in statements if isinstance(s, (Load, Store))]
        stored = [s.ptr for s in statements if isinstance(s, Store)]
        self.slots = sorted({p.slot for p in stored if p.slot is not None})
        if not apart or len({(p.slot, p.name) for p in used}) < 2 or any(p.at is not None for p in used):
            self.slots = []
        domain = Unique(module, ()) if self.slots else None
        self.scopes = {slot: Unique(module, (domain,)) for slot in self.slots}
        self.lists: dict[tuple[int, ...], ir.MDValue] = {}

    def declare(self, b: ir.IRBuilder) -> None:
        """Writes the declarations."""
        for slot in self.slots:
            kind = ir.FunctionType(ir.VoidType(), [ir.MetaDataType()])
            fn = self.module.declare_intrinsic("llvm.experimental.noalias.scope.decl", (), kind)
            b.call(fn, [self.list((slot,))])

    def mark(self, access: ir.Instruction, ptr: Pointer) -> None:
        """Says of a load or store through `ptr` what it does not touch."""
        if ptr.slot in self.scopes:
            access.set_metadata("alias.scope", self.list((ptr.slot,)))
        others = tuple(s for s in self.slots if s != ptr.slot)
        if others:
            access.set_metadata("noalias", self.list(others))

    def list(self, slots: tuple[int, ...]) -> ir.MDValue:
        """The list of some scopes."""
        scopes = self.lists.get(slots)
        if scopes is None:
            scopes = self.lists[slots] = self.module.add_metadata([self.scopes[s] for s in slots])
        return scopes


class Unique(ir.MDValue):
    """A metadata node whose first operand is itself, which makes it one of its kind."""

    def __init__(self, module: ir.Module, operands: tuple[ir.Value, ...]) -> None:
        super().__init__(module, (), str(len(module.metadata)))
        self.operands = (self, *operands)

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


def room(b: ir.IRBuilder, of: Room, count: ir.Value, heap: bool, write: Callable[[ir.Value], None]) -> None:
    """Memory for `count` elements, on a cache line of its own.

    Args:
        heap: whether C's `malloc` and `free` are there for more than a little; if not, all that `of` may need is on the
            stack.
        write: writes what is done with it, from its address.
    """
    kind = llvm_ops.llvm_type(of.dtype, memory=True)
    if not heap:
        with b.goto_entry_block():
            elements = b.alloca(ir.ArrayType(kind, of.most))
        elements.align, elements.type = CACHES.line, _POINTER
        write(elements)
        return
    need = b.add(b.mul(count, _I64(of.dtype.size)), _I64(CACHES.line))
    much = b.icmp_signed("<", _I64(_ON_STACK), need)
    start = _allocated(b, need, much)
    missing, rest = b.append_basic_block("missing"), b.append_basic_block("rest")
    b.cbranch(b.icmp_unsigned("==", start, ir.Constant(_POINTER, None)), missing, rest)
    b.position_at_end(missing)
    b.ret(_I64(1))
    b.position_at_end(rest)
    write(b.inttoptr(b.and_(b.add(b.ptrtoint(start, _I64), _I64(CACHES.line - 1)), _I64(-CACHES.line)), _POINTER))
    with b.if_then(much):
        b.call(_c_function(b.module, "free", ir.VoidType(), _POINTER), [start])


def _allocated(b: ir.IRBuilder, need: ir.Value, much: ir.Value) -> ir.Value:
    """The address of so many bytes, of the heap where they are `much`; null where there is no memory."""
    with b.if_else(much) as (large, small):
        with large:
            allocated = b.call(_c_function(b.module, "malloc", _POINTER, _I64), [need])
            from_large = b.block
        with small:
            local = b.alloca(_I8, need)
            local = b.inttoptr(b.ptrtoint(local, _I64), _POINTER)
            from_small = b.block
    start = b.phi(_POINTER)
    start.add_incoming(allocated, from_large)
    start.add_incoming(local, from_small)
    return start


def _c_function(module: ir.Module, name: str, result: ir.Type, argument: ir.Type) -> ir.Function:
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, [argument]), name)
