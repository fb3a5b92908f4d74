"""A builder of llvmlite's that writes most instructions as text at once, in a third of the time.

llvmlite keeps an object for each instruction, with operands, flags and metadata, and makes text of these when the
module is printed. Kernels are thousands of instructions that nobody looks at before LLVM reads them: here each is its
text from the beginning. What is changed later (phis) or looked at (calls, branches, allocations) is llvmlite's own, and
both may stand in one block.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from llvmlite import ir

__all__ = ["TextLine", "TextBuilder"]

_I1, _VOID = ir.IntType(1), ir.VoidType()
_COMPARED = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class TextLine(ir.Value):
    """An instruction that is written already."""

    __slots__ = ("type", "reference", "text")

    def __init__(self, type: ir.Type, reference: str, text: str) -> None:
        self.type, self.reference, self.text = type, reference, text

    def get_reference(self) -> str:
        """What stands for its value."""
        return self.reference

    @property
    def function_type(self) -> ir.Type:
        """Of the function that it is the address of."""
        return self.type.pointee

    def set_metadata(self, name: str, node: ir.MDValue) -> None:
        """Adds what LLVM is told about it."""
        self.text += f", !{name} {node.get_reference()}"

    def __str__(self) -> str:
        return self.text


def _binary(op: str) -> Callable[..., TextLine]:
    def wrapped(self: TextBuilder, lhs: ir.Value, rhs: ir.Value, name: str = "", flags: Sequence[str] = ()) -> TextLine:
        kind = lhs.type
        if kind is not rhs.type and kind != rhs.type:
            raise ValueError(f"{op} of {kind} and {rhs.type}")
        words = " ".join((op, *flags)) if flags else op
        return self.write(kind, f"{words} {kind} {lhs.get_reference()}, {rhs.get_reference()}")
    return wrapped


def _cast(op: str) -> Callable[..., ir.Value]:
    def wrapped(self: TextBuilder, value: ir.Value, to: ir.Type, name: str = "") -> ir.Value:
        kind = value.type
        if kind is to or kind == to:
            return value
        return self.write(to, f"{op} {kind} {value.get_reference()} to {to}")
    return wrapped


class TextBuilder(ir.IRBuilder):
    """The builder."""

    def __init__(self, block: ir.Block) -> None:
        super().__init__(block)
        function = block.parent
        if not hasattr(function, "line_numbers"):
            function.line_numbers = itertools.count()
        self._numbers = function.line_numbers  # of a function, whose blocks others may write to as well

    def write(self, kind: ir.Type, text: str) -> TextLine:
        """Adds an instruction with a value."""
        reference = f"%v{next(self._numbers)}"
        line = TextLine(kind, reference, f"{reference} = {text}")
        self._block.instructions.insert(self._anchor, line)
        self._anchor += 1
        return line

    add, sub, mul = _binary("add"), _binary("sub"), _binary("mul")
    udiv, sdiv, urem, srem = _binary("udiv"), _binary("sdiv"), _binary("urem"), _binary("srem")
    shl, lshr, ashr = _binary("shl"), _binary("lshr"), _binary("ashr")
    and_, or_, xor = _binary("and"), _binary("or"), _binary("xor")
    fadd, fsub, fmul, fdiv, frem = _binary("fadd"), _binary("fsub"), _binary("fmul"), _binary("fdiv"), _binary("frem")
    trunc, zext, sext = _cast("trunc"), _cast("zext"), _cast("sext")
    fptrunc, fpext, bitcast = _cast("fptrunc"), _cast("fpext"), _cast("bitcast")
    fptoui, fptosi, uitofp, sitofp = _cast("fptoui"), _cast("fptosi"), _cast("uitofp"), _cast("sitofp")
    ptrtoint, inttoptr = _cast("ptrtoint"), _cast("inttoptr")

    def _compare(self, op: str, lhs: ir.Value, rhs: ir.Value) -> TextLine:
        kind = lhs.type
        out = ir.VectorType(_I1, kind.count) if isinstance(kind, ir.VectorType) else _I1
        return self.write(out, f"{op} {kind} {lhs.get_reference()}, {rhs.get_reference()}")

    def icmp_signed(self, cmpop: str, lhs: ir.Value, rhs: ir.Value, name: str = "") -> TextLine:
        """A comparison of integers."""
        return self._compare(f"icmp {'' if cmpop in ('==', '!=') else 's'}{_COMPARED[cmpop]}", lhs, rhs)

    def icmp_unsigned(self, cmpop: str, lhs: ir.Value, rhs: ir.Value, name: str = "") -> TextLine:
        """A comparison of integers without a sign, or of addresses."""
        return self._compare(f"icmp {'' if cmpop in ('==', '!=') else 'u'}{_COMPARED[cmpop]}", lhs, rhs)

    def fcmp_ordered(self, cmpop: str, lhs: ir.Value, rhs: ir.Value, name: str = "",
                     flags: Sequence[str] = ()) -> TextLine:
        """A comparison of floats, false for NaN."""
        return self._compare(f"fcmp {'o' + _COMPARED[cmpop] if cmpop in _COMPARED else cmpop}", lhs, rhs)

    def fcmp_unordered(self, cmpop: str, lhs: ir.Value, rhs: ir.Value, name: str = "",
                       flags: Sequence[str] = ()) -> TextLine:
        """A comparison of floats, true for NaN."""
        return self._compare(f"fcmp {'u' + _COMPARED[cmpop] if cmpop in _COMPARED else cmpop}", lhs, rhs)

    def select(self, cond: ir.Value, lhs: ir.Value, rhs: ir.Value, name: str = "",
               flags: Sequence[str] = ()) -> TextLine:
        """One of two values."""
        return self.write(lhs.type, f"select {cond.type} {cond.get_reference()}, {lhs.type} {lhs.get_reference()}, "
                                    f"{rhs.type} {rhs.get_reference()}")

    def gep(self, ptr: ir.Value, indices: Sequence[ir.Value], inbounds: bool = False, name: str = "",
            source_etype: ir.Type | None = None) -> ir.Value:
        """An address."""
        if source_etype is None:
            return super().gep(ptr, indices, inbounds, name)
        steps = ", ".join([f"{i.type} {i.get_reference()}" for i in indices])
        return self.write(ptr.type, f"getelementptr {'inbounds ' if inbounds else ''}{source_etype}, {ptr.type} "
                                    f"{ptr.get_reference()}, {steps}")

    def load(self, ptr: ir.Value, name: str = "", align: int | None = None, typ: ir.Type | None = None) -> ir.Value:
        """A value from memory."""
        if typ is None:
            return super().load(ptr, name, align)
        end = "" if align is None else f", align {align}"
        return self.write(typ, f"load {typ}, {ptr.type} {ptr.get_reference()}{end}")

    def call(self, fn: ir.Value, args: Sequence[ir.Value], name: str = "", **more: object) -> ir.Value:
        """A call; of functions of the module it is written at once."""
        if more or not isinstance(fn, ir.Function) or fn.calling_convention or fn.function_type.var_arg \
                or [a.type for a in args] != list(fn.function_type.args):
            return super().call(fn, args, name, **more)
        given = ", ".join([f"{a.type} {a.get_reference()}" for a in args])
        result = fn.function_type.return_type
        text = f"call {result} {fn.get_reference()}({given})"
        return self._done(text) if isinstance(result, ir.VoidType) else self.write(result, text)

    def store(self, value: ir.Value, ptr: ir.Value, align: int | None = None) -> TextLine:
        """Puts a value into memory."""
        end = "" if align is None else f", align {align}"
        return self._done(f"store {value.type} {value.get_reference()}, {ptr.type} {ptr.get_reference()}{end}")

    def _done(self, text: str) -> TextLine:
        """Adds an instruction without a value."""
        line = TextLine(_VOID, "", text)
        self._block.instructions.insert(self._anchor, line)
        self._anchor += 1
        return line
