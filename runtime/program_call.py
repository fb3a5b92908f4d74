"""Calling compiled programs from Python without running any Python: what each program looks like to native code.

`variant` writes the table that the machine code of `program_ir.py` reads, and gives a builtin that takes the tensors of
a program. Traced functions hold variants in a slot, which their `__call__` (`function_entry`) tries in order. Where
native entries are off there are no variants, and all calls take the Python path with the same results.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from twofold.ir import graph as g
from twofold.ir import surroundings
from twofold.ir.dims import Dim, DimLike

from . import claims, interrupts, locks, memory, native, sharing, system
from .calls import address_of
from .claims import Claimable
from .native_core import Core, MethodDef, core
from .native_layout import Bound, PythonFunction, slot_offset
from .program_table import CLAIM, HEAD, INPUT, KIND, MODE, OUTPUT, RESULT, STEP

if TYPE_CHECKING:
    from .compiled import Native

__all__ = ["variant", "for_arguments", "direct", "function_entry", "bind_variables", "turn_off", "LEAF", "Variant"]

_off: set[str] = set()  # why calls go to Python
_blocks = 0  # that are under way, in any thread, and for which they do
_counting = locks.Lock()


class LeafMark(enum.Enum):
    """Its one member stands for an argument that is a tensor."""

    LEAF = enum.auto()


LEAF: Final = LeafMark.LEAF

Variant = Bound
# Of an input: LEAF, an array that stays what it is, or the variable that it is read from.
InputSource: TypeAlias = np.ndarray | Claimable | LeafMark
# How a result is put together: a Python function of the tensors, or steps, each with its operand (`STEP`); None where
# it is the one tensor.
Result: TypeAlias = PythonFunction | list[tuple[str, object]] | None


def bind_variables(cls: type) -> None:
    """Tells native code which slots of instances of `cls` hold a variable's tensor, and the word that claims it."""
    global _variables
    _variables = slot_offset(cls, "_value")
    claims.bind(cls)


def turn_off(reason: str, off: bool) -> None:
    """Set or clear a reason for which all calls go to Python."""
    with _counting:
        (_off.add if off else _off.discard)(reason)
        _count()


def _change_blocks(by: int) -> None:
    """Counts the blocks that decide what calls compute, up or down: variants look at arguments alone."""
    global _blocks
    with _counting:
        _blocks += by
        _count()


def _count() -> None:
    native_core = core()
    if native_core is not None:
        native_core.set("functions_off", len(_off) + _blocks)


surroundings.tells(_change_blocks)


def function_entry(cls: type, slot: str, fn: PythonFunction, name: str) -> PythonFunction:
    """The `__call__` of a class whose instances hold a tuple of variants in `slot`.

    Args:
        fn: called with the instance and all arguments where no variant serves a call.
    """
    native_core = core()
    if native_core is None or not _ready(native_core):
        return native.as_method(native.guard(fn, name))
    native_core.hold("function", cls)
    native_core.set("function.quick", slot_offset(cls, slot))
    bound = native_core.bound(fn, name)
    return native.as_method(native_core.builtin("function", bound, name, fn.__doc__ or "", fn.__module__))


def variant(program: Native, inputs: Sequence[g.Value], sources: Sequence[InputSource], slow: PythonFunction, *,
            updates: Sequence[Claimable] = (), result: Result = None,
            arguments: Sequence[object] | None = None) -> tuple[Bound, PythonFunction] | None:
    """The variant by which native code calls a program, and a builtin that takes its tensors.

    Args:
        program: what to call.
        inputs: of its graph.
        sources: for each, LEAF, an array that stays what it is, or the variable that it is read from.
        slow: called with the tensors where the program cannot be called natively; it raises the errors.
        updates: the variables that take the last outputs.
        result: how it is put together.
        arguments: for each argument of a function LEAF, or the bool, int, float, str, bytes or None that it must
            equal; by default LEAF for each leaf.
    Returns:
        None where native code cannot call it.
    """
    native_core = core()
    if native_core is None or not _ready(native_core):
        return None
    table = _ProgramTable(program, inputs, sources, updates, result, arguments)
    if not table.fits:
        return None
    bound = native_core.bound(slow, "compiled", ctypes.addressof(table.words))
    bound.keep = table
    return bound, _builtin(native_core, bound)


def for_arguments(bound: Bound, arguments: Sequence[object]) -> Bound:
    """The same variant for calls whose arguments are these: LEAF for a tensor, or what must be there."""
    native_core = core()
    assert native_core is not None
    table = _table(bound).with_arguments(arguments)
    bound_variant = native_core.bound(bound.fn, "compiled", ctypes.addressof(table.words))
    bound_variant.keep = table
    return bound_variant


def direct(bound: Bound, slow: PythonFunction) -> PythonFunction:
    """A builtin that takes the tensors of a variant, with another Python function for what it cannot do."""
    native_core = core()
    assert native_core is not None
    table = _table(bound)
    builtin = native_core.bound(slow, "compiled", ctypes.addressof(table.words))
    builtin.keep = table
    return _builtin(native_core, builtin)


def _table(bound: Bound) -> _ProgramTable:
    """The table of a variant."""
    table = bound.keep
    assert isinstance(table, _ProgramTable)
    return table


_variables = 0
_definitions: dict[str, MethodDef] = {}


def _ready(native_core: Core) -> bool:
    """Fills in what programs need of the context; False where variables or tensors are not known."""
    if not _variables or not native_core.get("tensor"):
        return False
    if not native_core.get("memcpy"):
        native_core.hold("lease", memory._Lease)
        copy = system.c_function("memcpy")
        if copy is None:
            return False
        native_core.set("interrupts", interrupts.poll_words())
        native_core.set("interrupts.raise", interrupts.raiser())
        native_core.set("memcpy", copy)
    return True


def _builtin(native_core: Core, bound: Bound) -> PythonFunction:
    """A builtin that runs one variant; all of them share one definition, so that they leave nothing behind."""
    if "run" not in _definitions:
        _definitions["run"] = native_core.definition("run", "compiled", "")
    return native_core.new(_definitions["run"], bound, None)


class _ProgramTable:
    """The words that describe a program, and all that they point to."""

    def __init__(self, program: Native, inputs: Sequence[g.Value], sources: Sequence[InputSource],
                 updates: Sequence[Claimable], result: Result, arguments: Sequence[object] | None) -> None:
        about = program.about
        self.fits = True
        self.program = program
        self.owned: list[object] = [result, *sources, *updates, arguments]  # the table has addresses of these
        self._symbols = {name: n for n, name in enumerate(about.symbols)}
        leaves = sum(s is LEAF for s in sources)
        head = dict.fromkeys(HEAD, 0)
        head |= {"words": program.words, "small": sharing.SMALL, "charge": program.charge}
        head |= {"arena": _number(about.arena), "work": _number(about.work), "leaves": leaves, "inputs": len(inputs)}
        head |= {"outputs": len(about.outputs), "constants": len(program.constants), "symbols": len(about.symbols)}
        head["buffers"] = len(inputs) + len(about.outputs) + len(program.constants)
        head["sizes"] = sum(len(dims) for dims, _ in about.outputs)
        head["results"] = len(about.outputs) - len(updates)
        self.result(head, result)
        head["bytes"] = id(np.dtype(np.uint8))
        donors = set(about.donated.values())
        rows = [self.input(v, s, n in donors) for n, (v, s) in enumerate(zip(inputs, sources, strict=True))]
        claimed = self.claims(sources, {id(v) for v in updates})
        head["claims"], head["claim_rows"] = len(claimed), self.array([w for row in claimed for w in row])
        head["input_rows"] = self.array([w for row in rows for w in row])
        head["output_rows"] = self.array(self.outputs(program, updates))
        head["constant_rows"] = self.array(program.constants)
        self.head = head
        self.finish([LEAF] * leaves if arguments is None else list(arguments))

    def result(self, head: dict[str, int], result: Result) -> None:
        if result is None:
            head["result_kind"] = RESULT["one"]
        elif callable(result):
            head["result_kind"], head["result"] = RESULT["packer"], id(result)
        else:
            words = [w for name, what in result for w in (STEP[name], what if isinstance(what, int) else id(what))]
            head["result_kind"], head["result"], head["steps"] = RESULT["built"], self.array(words), len(result)

    def finish(self, arguments: list[object]) -> None:
        self.owned.append(arguments)
        head = self.head
        head["arguments"] = len(arguments)
        head["objects"] = self.array([0 if a is LEAF else id(a) for a in arguments])
        self.words = (ctypes.c_int64 * len(HEAD))(*[head[name] for name in HEAD])

    def with_arguments(self, arguments: Sequence[object]) -> _ProgramTable:
        """The same table for other arguments."""
        table = object.__new__(_ProgramTable)
        table.fits, table.program, table.owned = True, self.program, [self]
        table.head = dict(self.head)
        table.finish(list(arguments))
        return table

    def array(self, values: Sequence[int]) -> int:
        """The address of words that live as long as the table."""
        words = (ctypes.c_int64 * max(len(values), 1))(*values)
        self.owned.append(words)
        return ctypes.addressof(words)

    def input(self, value: g.Value, source: InputSource, donor: bool) -> list[int]:
        row = dict.fromkeys(INPUT, 0)
        if isinstance(source, np.ndarray):
            row |= {"kind": KIND["fixed"], "what": address_of(source)}
            self.fits &= source.flags.c_contiguous and source.flags.aligned
            return [row[name] for name in INPUT]
        if source is not LEAF:
            row |= {"kind": KIND["variable"], "what": id(source)}
        dtype = value.dtype.np
        self.owned.append(dtype)
        row |= {"descr": id(dtype), "rank": len(value.dims), "donor": int(donor)}
        row["dims"] = self.array([self.dim(d) for d in value.dims])
        return [row[name] for name in INPUT]

    def claims(self, sources: Sequence[InputSource], assigned: set[int]) -> list[list[int]]:
        """A row for each variable, where any is assigned."""
        rows = []
        for n, source in enumerate(sources):
            if assigned and source is not LEAF and not isinstance(source, np.ndarray):
                mode = MODE["assigned" if id(source) in assigned else "read"]
                row = {"slot": id(source) + _variables, "word": claims.address(source._word), "mode": mode, "input": n}
                rows.append([row[name] for name in CLAIM])
        return rows

    def dim(self, size: DimLike) -> int:
        if not isinstance(size, Dim):
            return int(size)
        number = self._symbols.get(size.name_alone() or "")
        if number is None:
            self.fits = False
            return 0
        return -1 - number

    def outputs(self, program: Native, updates: Sequence[Claimable]) -> list[int]:
        about, words, place = program.about, [], 2
        results = len(about.outputs) - len(updates)
        for n, ((dims, _), dtype) in enumerate(zip(about.outputs, program.types, strict=True)):
            static = not any(isinstance(d, Dim) for d in dims)
            row = {"descr": id(dtype), "rank": len(dims), "static": int(static), "size": dtype.itemsize,
                   "dims": self.array([d for d in dims if isinstance(d, int)]) if static else 8 * place,
                   "bytes": int(np.prod(dims)) * dtype.itemsize if static else 0,  # type: ignore[arg-type]
                   "donor": about.donated.get(n, -1), "variable": 0}
            if n >= results:
                row["variable"] = id(updates[n - results])
            self.owned.append(dtype)
            place += len(dims)
            words += [row[name] for name in OUTPUT]
        return words


def _number(size: DimLike) -> int:
    """A size as a word of the table: -1 where only the call tells it."""
    return -1 if isinstance(size, Dim) else int(size)
