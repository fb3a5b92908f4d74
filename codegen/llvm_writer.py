"""A builder of llvmlite's that writes most instructions as text at once, in a third of the time.

llvmlite keeps an object for each instruction, with operands, flags and metadata, and makes text of these when the
module is printed. Kernels are thousands of instructions that nobody looks at before LLVM reads them: here each is its
text from the beginning, or, of phis, what that is made of. What is looked at (some calls, allocations) is llvmlite's
own, and both may stand in one block.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from llvmlite import ir

__all__ = ["TextLine", "TextPhi", "TextBuilder", "used_up"]

_I1, _VOID = ir.IntType(1), ir.VoidType()
_COMPARED = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def used_up(module: ir.Module) -> str:
    """The text of a module that nobody needs any more: its instructions go at once, and not when garbage is looked for
    the next time, as functions and their module know each other."""
    text = str(module)
    for function in module.functions:
        for block in function.blocks:
            block.instructions.clear()
            block.terminator = None
    return text


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


class TextEnd(TextLine):
    """The end of a block, by which llvmlite finds the block."""

    __slots__ = ("parent",)

    def __init__(self, block: ir.Block, text: str) -> None:
        super().__init__(_VOID, "", text)
        self.parent = block

    def set_weights(self, weights: Sequence[int]) -> None:
        """Tells how often each of the ways is taken, compared with the others."""
        module = self.parent.function.module
        words = [ir.MetaDataString(module, "branch_weights"), *map(ir.IntType(32), weights)]
        self.set_metadata("prof", module.add_metadata(words))


class TextPhi(TextLine):
    """A phi, which is told later what leads to it."""

    __slots__ = ("incomings",)

    def __init__(self, type: ir.Type, reference: str) -> None:
        super().__init__(type, reference, f"{reference} = phi {type}")
        self.incomings: list[tuple[ir.Value, ir.Block]] = []

    def add_incoming(self, value: ir.Value, block: ir.Block) -> None:
        """Gives the value that it has where a block leads to it."""
        self.incomings.append((value, block))

    def __str__(self) -> str:
        ways = ", ".join([f"[{value.get_reference()}, {block.get_reference()}]" for value, block in self.incomings])
        return f"{self.text} {ways}"


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
        self._add(line)
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

    def phi(self, typ: ir.Type, name: str = "", flags: Sequence[str] = ()) -> TextPhi:
        """A value that depends on where the block is reached from."""
        phi = TextPhi(typ, f"%v{next(self._numbers)}")
        self._add(phi)
        return phi

    def branch(self, target: ir.Block) -> TextLine:
        """Goes on in another block."""
        return self._set_terminator_text(f"br label {target.get_reference()}")

    def cbranch(self, cond: ir.Value, truebr: ir.Block, falsebr: ir.Block) -> TextLine:
        """Goes on in one of two blocks."""
        return self._set_terminator_text(f"br {cond.type} {cond.get_reference()}, label {truebr.get_reference()}, "
                                         f"label {falsebr.get_reference()}")

    def insert_element(self, vector: ir.Value, value: ir.Value, idx: ir.Value, name: str = "") -> TextLine:
        """A vector with another value in one lane."""
        return self.write(vector.type, f"insertelement {vector.type} {vector.get_reference()}, {value.type} "
                                       f"{value.get_reference()}, {idx.type} {idx.get_reference()}")

    def shuffle_vector(self, vector1: ir.Value, vector2: ir.Value, mask: ir.Constant, name: str = "") -> TextLine:
        """Lanes of two vectors."""
        kind, count = vector1.type, mask.type.count
        out = kind if kind.count == count else ir.VectorType(kind.element, count)
        return self.write(out, f"shufflevector {kind} {vector1.get_reference()}, {vector2.type} "
                               f"{vector2.get_reference()}, {mask.type} {mask.get_reference()}")

    def _set_terminator_text(self, text: str) -> TextLine:
        """Ends the block."""
        assert not self._block.is_terminated, "a block ends once"
        self._block.terminator = line = TextEnd(self._block, text)
        self._add(line)
        return line

    def _done(self, text: str) -> TextLine:
        """Adds an instruction without a value."""
        line = TextLine(_VOID, "", text)
        self._add(line)
        return line

    def _add(self, line: TextLine) -> None:
        self._block.instructions.insert(self._anchor, line)
        self._anchor += 1
