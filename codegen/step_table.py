"""The steps of a long program as data, and the function that runs them.

Instructions that fill arguments and call kernels, some twenty for each of hundreds of steps, took LLVM longer than many
of the kernels. So a long entry keeps all that steps get in one array, `values`, in which each number, address and size
has a place, and a step is a row of a constant table: its kernel, and the places of what it gets. One loop runs rows.
What must be computed, and when, is the entry's affair (`program_entry.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from llvmlite import ir

from . import step_calls
from .llvm_loops import each
from .llvm_writer import TextBuilder
from .operands import Argument
from .step_calls import word

__all__ = ["Base", "Row", "StepTable"]

_I64, _PTR = ir.IntType(64), ir.PointerType()
_FIELDS = 8  # words of a row before the places of its arguments


class Base(NamedTuple):
    """A number that is known but for where memory begins.

    Attributes:
        of: 0 for a number as it is, 1 for one behind the arena's address, n + 2 behind that of buffer n.
        number: the number.
    """

    of: int
    number: int


class Row(NamedTuple):
    """A step.

    Attributes:
        kernel: its function, or the number of a library kernel.
        total, work: the places of the length of its range, and of its work in simple operations, 0 for one thread's.
        grain, least: see `plan.Shares`.
        reports: whether its status counts.
        number: of the step.
        arguments: the places of its args.
    """

    kernel: ir.Function | int
    total: int
    work: int
    grain: int
    least: int
    reports: bool
    number: int
    arguments: Sequence[int]

    @property
    def words(self) -> list[int]:
        """The words of the table that are the row."""
        library = self.kernel + step_calls.LIBRARIES if isinstance(self.kernel, int) else 0
        return [library, self.total, self.work, self.grain, self.least, -int(self.reports), self.number + 1 << 16,
                len(self.arguments), *self.arguments]


class StepTable:
    """The table of one entry: rows and values are added, then what reads them is written.

    Attributes:
        computed: what the entry has to store, by its place.
    """

    def __init__(self, module: ir.Module, name: str) -> None:
        """Args:
            name: the entry's, with which those of what is written begin.
        """
        self.module, self.name = module, name
        self.computed: dict[int, Argument | ir.Function] = {}
        self._places: dict[Hashable, int] = {}
        self._bases: list[Base] = []
        self._rows: list[Row] = []

    def place(self, key: Hashable, value: Base | Argument | ir.Function) -> int:
        """The place of what `key` stands for, a new one at first.

        Args:
            value: its `Base`, or what the entry computes it of.
        """
        at = self._places.get(key)
        if at is None:
            at = self._places[key] = self.reserve()
            if isinstance(value, Base):
                self._bases[at] = value
            else:
                self.computed[at] = value
        return at

    def reserve(self) -> int:
        """A place of its own."""
        self._bases.append(Base(0, 0))
        return len(self._bases) - 1

    def add(self, row: Row) -> int:
        """Adds a row; its number."""
        self._rows.append(row)
        return len(self._rows) - 1

    def begin(self, b: ir.IRBuilder, arena: ir.Value, buffers: ir.Value, count: int) -> None:
        """Writes the memory that runs need, and what fills in all values that have a base.

        Args:
            b: where the entry begins, after which nothing is added.
            count: of buffers.
        """
        self.values = b.alloca(_I64, max(len(self._bases), 1))
        self.row = b.alloca(_I64, max([len(row.arguments) for row in self._rows], default=0) or 1)
        bases = b.alloca(_I64, count + 2)
        b.store(_I64(0), bases)
        b.store(b.ptrtoint(arena, _I64), b.gep(bases, [_I64(1)], source_etype=_I64))
        if count:
            move = self.module.declare_intrinsic("llvm.memcpy", [_PTR, _PTR, _I64])
            b.call(move, [b.gep(bases, [_I64(2)], source_etype=_I64), buffers, _I64(8 * count), ir.IntType(1)(0)])
        constants = self._numbers("values", [n for base in self._bases for n in base])
        b.call(self._filler(), [self.values, bases, constants, _I64(len(self._bases))])

    def store(self, b: ir.IRBuilder, place: int, value: ir.Value) -> None:
        """Writes a value into its place."""
        b.store(value, b.gep(self.values, [_I64(place)], source_etype=_I64))

    def write(self, libraries: int, timed: bool) -> None:
        """Writes the table and the loop over it.

        Args:
            libraries, timed: see `program.emit` and `step_calls.nanoseconds`.
        """
        pointers = [ir.Constant(_PTR, None) if isinstance(row.kernel, int) else row.kernel.bitcast(_PTR)
                    for row in self._rows]
        self.kernels = self._constant("kernels", ir.Constant(ir.ArrayType(_PTR, len(pointers)), pointers))
        self.table = self._numbers("table", [n for row in self._rows for n in row.words])
        self.begins = [0]
        for row in self._rows:
            self.begins.append(self.begins[-1] + len(row.words))
        self.runner = self._runner(libraries, timed)

    def run(self, b: ir.IRBuilder, threads: ir.Value, first: int, count: int) -> ir.Value:
        """Writes the run of `count` rows from number `first` on; 0, or the status of the run."""
        table = b.gep(self.table, [_I64(0), _I64(self.begins[first])])
        kernels = b.gep(self.kernels, [_I64(0), _I64(first)])
        return b.call(self.runner, [threads, self.values, self.row, b.bitcast(table, _PTR), b.bitcast(kernels, _PTR),
                                    _I64(count)])

    def _numbers(self, what: str, numbers: Sequence[int]) -> ir.GlobalVariable:
        """A constant of words, as text at once: an object of llvmlite for each of thousands takes long to make."""
        text = ", ".join([f"i64 {n}" for n in numbers])
        return self._constant(what, ir.FormattedConstant(ir.ArrayType(_I64, len(numbers)), f"[{text}]"))

    def _constant(self, what: str, elements: ir.Constant) -> ir.GlobalVariable:
        table = ir.GlobalVariable(self.module, elements.type, f"{self.name}_{what}")
        table.linkage, table.global_constant, table.unnamed_addr = "private", True, True
        table.initializer = elements
        return table

    def _function(self, what: str, result: ir.Type, arguments: Sequence[ir.Type]) -> tuple[ir.IRBuilder, ir.Function]:
        fn = ir.Function(self.module, ir.FunctionType(result, arguments), f"{self.name}_{what}")
        fn.linkage = "internal"
        for attribute in ("nounwind", "noinline"):
            fn.attributes.add(attribute)
        return TextBuilder(fn.append_basic_block("begin")), fn

    def _filler(self) -> ir.Function:
        """The function `(values, bases, constants, count)` that computes all that have a base."""
        b, fn = self._function("fill", ir.VoidType(), [_PTR, _PTR, _PTR, _I64])
        values, bases, constants, count = fn.args
        with each(b, count) as n:
            base, number = (word(b, constants, b.add(b.mul(n, _I64(2)), _I64(k))) for k in range(2))
            b.store(b.add(word(b, bases, base), number), b.gep(values, [n], source_etype=_I64))
        b.ret_void()
        return fn

    def _runner(self, libraries: int, timed: bool) -> ir.Function:
        """The function `(threads, values, row, table, kernels, count)` that runs rows up to one that fails."""
        b, fn = self._function("steps", _I64, [_PTR, _PTR, _PTR, _PTR, _PTR, _I64])
        threads, values, row, table, kernels, count = fn.args
        place = b.alloca(_PTR)
        b.store(table, place)
        with each(b, count) as n:
            here = b.load(place, typ=_PTR)
            library, total, work, grain, least, mask, number, length = (word(b, here, _I64(k)) for k in range(_FIELDS))
            places = b.gep(here, [_I64(_FIELDS)], source_etype=_I64)
            b.store(b.gep(places, [length], source_etype=_I64), place)
            with each(b, length) as k:
                b.store(word(b, values, word(b, places, k)), b.gep(row, [k], source_etype=_I64))
            own = b.load(b.gep(kernels, [n], source_etype=_PTR), typ=_PTR)
            linked = b.inttoptr(word(b, threads, library), _PTR)  # of a kernel of the program's own, any word
            kernel = b.select(b.icmp_unsigned("==", library, _I64(0)), own, linked)
            since = step_calls.nanoseconds(b, threads, libraries) if timed else None
            target, extent, needed = step_calls.kernel_at(kernel), word(b, values, total), word(b, values, work)
            with b.if_else(b.icmp_unsigned("<", needed, least)) as (short, long):  # without the division
                with short:
                    alone, by_one = b.call(target, [_I64(0), extent, row]), b.block
                with long:
                    shared = step_calls.shared_call(b, threads, target, extent, row, needed, grain, least)
                    by_many = b.block
            result = b.phi(_I64)
            result.add_incoming(alone, by_one)
            result.add_incoming(shared, by_many)
            if since is not None:
                step = b.sub(b.lshr(number, _I64(16)), _I64(1))
                step_calls.add_time(b, threads, libraries, step, since)
            status = b.and_(result, mask)
            with b.if_then(b.icmp_unsigned("!=", status, _I64(0))):
                b.ret(b.or_(status, number))
        b.ret(_I64(0))
        return fn
