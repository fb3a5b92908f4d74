"""Arithmetic of sizes in generated code, and `plan`, the function that computes the sizes that a caller needs.

    int64 plan(ptr symbols, ptr out)

`plan` writes the numbers that a caller needs before it can call a program, and gives 1, or 0 where what a graph
assumes of its sizes does not hold: then nothing that was written counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from llvmlite import ir

from twofold.ir import graph as g
from twofold.ir.dim_expr import Atom, Mono, divided, without_number
from twofold.ir.dims import Dim, DimLike

from .llvm_writer import TextBuilder

__all__ = ["BOUND", "Arithmetic", "write_plan", "compiled_as_written"]

_LONG = 400  # instructions from which optimising them would take longer than running them ever will
_BLOCK = 100  # instructions of a block at most, where there are many
_I64, _F64, _PTR = ir.IntType(64), ir.DoubleType(), ir.PointerType()
BOUND = 1 << 62  # of sizes that are checked: half of what int64 holds


class Arithmetic:
    """Computes sizes in a function.

    Sizes are computed where they are first asked for and known from there on, so that must be where the code passes
    before all later uses: a function that branches asks for all of them where it begins.
    """

    def __init__(self, builder: ir.IRBuilder, values: ir.Value, symbols: Sequence[str], checked: bool = False) -> None:
        """Args:
            builder: writes the function.
            values: points to the values of `symbols`.
            checked: whether `overflow` says, as one bit, whether anything computed so far is `BOUND` or more.
        """
        self.b, self._values, self._symbols, self._checked = builder, values, list(symbols), checked
        self.overflow: ir.Value = ir.IntType(1)(0)
        self._computed: dict[Dim | Atom | Mono, ir.Value] = {}
        self._factors: dict[DimLike, tuple[Dim, Dim, Dim]] = {}  # by products without their numbers

    def size(self, size: DimLike) -> ir.Value:
        """The value of a size."""
        if not isinstance(size, Dim):
            return _I64(int(size))
        value = self._computed.get(size)
        if value is None:
            value = self._computed[size] = self._sum(size)
        return value

    def _sum(self, size: Dim) -> ir.Value:
        """The value of a size that is not known yet. Strides of an array are multiples of one sum, and sizes are often
        the same but for a number: the sum is computed once."""
        scale = _content(size)
        if scale > 1 and len(size.terms) > 1:
            return self._mul(self.size(divided(size, scale)), _I64(scale))
        whole, rest = without_number(size)
        product, *factors = self._factors.get(whole, (None,))
        if product == size:
            return self._mul(*map(self.size, factors))
        if product is not None:
            return self._add(self.size(product), _I64(rest - without_number(product)[1]))
        if rest and len(size.terms) > 2:
            return self._add(self.size(whole), _I64(rest))
        total: ir.Value | None = None
        for mono, factor in size.terms:
            part = self._product(mono)
            if factor != 1:
                part = _I64(factor) if part is None else self._mul(part, _I64(factor))
            elif part is None:
                part = _I64(1)
            total = part if total is None else self._add(total, part)
            self.cut()
        return total

    def sums(self, running: Sequence[tuple[DimLike, DimLike, DimLike]]) -> None:
        """Computes each third size as the sum of the first two: of a row of places, each is one addition."""
        for first, second, both in running:
            if isinstance(both, Dim) and both not in self._computed:
                self._computed[both] = self._add(self.size(first), self.size(second))
                self.cut()

    def products(self, graph: g.Graph) -> None:
        """Notes of how many elements a graph's values are, to compute that as the products that it is: multiplied out,
        as expressions are kept, that of two sums of three parts has nine."""
        if not self._symbols:
            return
        values = [*graph.inputs, *[v for node in graph.walk() for v in node.outputs]]
        for dims in dict.fromkeys([tuple([d for d in v.dims if isinstance(d, Dim)]) for v in values]):
            product: Dim | None = None
            for d in dims:
                factor = divided(d, _content(d))  # a product of factors without a common number has none, either
                if product is None:
                    product = factor
                    continue
                both = product * factor
                assert isinstance(both, Dim)
                if len(both.terms) > 2:
                    self._factors.setdefault(without_number(both)[0], (both, product, factor))
                product = both

    def cut(self) -> None:
        """Goes on in a block of its own where the one at hand is long: what LLVM takes for code that is compiled as it
        is written grows with the square of the length of blocks. Where code is optimised, they become one again."""
        if len(self.b.block.instructions) >= _BLOCK:
            following = self.b.append_basic_block("more")
            self.b.branch(following)
            self.b.position_at_end(following)

    def bounded(self, size: DimLike) -> ir.Value:
        """The value of a size; `overflow` says whether it is within the bounds, too."""
        value = self.size(size)
        self._note(self.b.sitofp(value, _F64))
        return value

    def _mul(self, x: ir.Value, y: ir.Value) -> ir.Value:
        if self._checked:
            self._note(self.b.fmul(self.b.sitofp(x, _F64), self.b.sitofp(y, _F64)))
        return self.b.mul(x, y)

    def _add(self, x: ir.Value, y: ir.Value) -> ir.Value:
        if self._checked:
            self._note(self.b.fadd(self.b.sitofp(x, _F64), self.b.sitofp(y, _F64)))
        return self.b.add(x, y)

    def _note(self, result: ir.Value) -> None:
        """Records whether a result is too large, by its value as float64: checks for overflow of integers call library
        functions on some processors."""
        b, most = self.b, float(BOUND)
        beyond = b.or_(b.fcmp_ordered(">=", result, _F64(most)), b.fcmp_ordered("<=", result, _F64(-most)))
        self.overflow = b.or_(self.overflow, beyond)

    def _product(self, atoms: Mono) -> ir.Value | None:
        """The value of a product; None for that of nothing."""
        if not atoms:
            return None
        product = self._computed.get(atoms)
        if product is None:
            product, last = self._product(atoms[:-1]), self._atom(atoms[-1])
            product = self._computed[atoms] = last if product is None else self._mul(product, last)
        return product

    def _atom(self, atom: Atom) -> ir.Value:
        b = self.b
        value = self._computed.get(atom)
        if value is None:
            if atom.kind == "sym":
                n = self._symbols.index(atom.name)
                value = b.load(b.gep(self._values, [_I64(n)], source_etype=_I64), typ=_I64)
            elif atom.kind == "pos":
                a = self.size(atom.a)
                value = b.select(b.icmp_signed(">", a, _I64(0)), a, _I64(0))
            else:
                value = _floor_divided(b, self.size(atom.a), self.size(atom.b))
            self._computed[atom] = value
        return value


def _content(d: Dim) -> int:
    """The largest number that divides all of a size's parts."""
    return math.gcd(*[factor for _, factor in d.terms])


def _floor_divided(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """x // y as Python rounds it; 0 where y is 0."""
    if isinstance(y, ir.Constant):
        quotient, rest = b.sdiv(x, y), b.srem(x, y)
        down = b.icmp_signed("<" if y.constant > 0 else ">", rest, _I64(0))
        return b.sub(quotient, b.zext(down, _I64))
    none = b.icmp_signed("==", y, _I64(0))
    by = b.select(none, _I64(1), y)
    quotient, rest = b.sdiv(x, by), b.srem(x, by)
    differ = b.icmp_signed("<", b.xor(rest, by), _I64(0))
    down = b.and_(b.icmp_signed("!=", rest, _I64(0)), differ)
    return b.select(none, _I64(0), b.sub(quotient, b.zext(down, _I64)))


def compiled_as_written(function: ir.Function) -> None:
    """Turns LLVM's optimisations off for a function, which then compiles in a fraction of the time: for long straight
    code that only stores numbers and calls kernels."""
    function.attributes.add("noinline")  # the other asks for it
    function.attributes.add("optnone")


def write_plan(module: ir.Module, symbols: Sequence[str], out: Sequence[DimLike], graph: g.Graph,
               sums: Sequence[tuple[DimLike, DimLike, DimLike]] = ()) -> None:
    """Adds the function `plan` to a module.

    Args:
        symbols: in the order in which callers give their values.
        out: what it writes.
        graph: whose assumptions it checks, as far as the sizes of the inputs decide them.
        sums: see `Arithmetic.sums`.
    """
    fn = ir.Function(module, ir.FunctionType(_I64, [_PTR, _PTR]), "plan")
    fn.attributes.add("nounwind")
    b = TextBuilder(fn.append_basic_block("plan"))
    numbers = Arithmetic(b, fn.args[0], symbols)
    numbers.products(graph)
    numbers.sums(sums)
    for n, size in enumerate(out):
        b.store(numbers.size(size), b.gep(fn.args[1], [_I64(n)], source_etype=_I64))
        numbers.cut()
    holds: ir.Value = ir.IntType(1)(1)
    bound = graph.symbols()
    for guard in graph.guards:
        if guard.symbols() <= bound:
            holds = b.and_(holds, b.icmp_signed(guard.op, numbers.size(guard.left), numbers.size(guard.right)))
            numbers.cut()
    b.ret(b.zext(holds, _I64))
    if sum([len(block.instructions) for block in fn.blocks]) >= _LONG:
        compiled_as_written(fn)
