"""Functions that C programs call: the arguments checked, memory handed to a compiled program, its statuses told.

In: what a program takes from where (`CFunction`), and its `Plan`. Out: an LLVM module with two functions,

    int32 NAME_sizes(in*, out*, int64* workspace)         the shapes of the results and the bytes of workspace
    int32 NAME(in*, out*, state*, weights*, workspace, int64 workspace_size)

without those arguments that a function does not need. Neither allocates, aborts or keeps anything: memory is the
caller's, and what is wrong comes back as a status, whose text `write_texts` tells. Structs are plain: for a tensor the
address of its elements and, where it has dimensions, its shape. In memory, all tensors are row-major.

How structs, names and texts look in C is the affair of `twofold/export`; machine code is `llvm_module.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir

from twofold.ir import dims as dm
from twofold.ir.data_class import data_class, field
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType

from . import target as targets
from .arena import ALIGNED
from .llvm_cpu import KERNEL
from .plan import Plan
from .sizes import Arithmetic

__all__ = ["Member", "Place", "CFunction", "Texts", "KINDS", "write_entry", "write_texts", "write_state",
           "workspace_of", "declared_bytes", "write_number", "address_words"]

_I1, _I8, _I32, _I64, _PTR = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.PointerType()
_FORK = ir.FunctionType(_I64, [_I64, _I64, _I64, _I64, _PTR])  # `runtime/threads.py`
# What a status means at large: its low byte. The rest is the number of its text.
KINDS = {"null": 1, "shape": 2, "workspace": 3, "weights": 4, "invalid_argument": 5, "internal": 6}


class Member(NamedTuple):
    """A tensor in a struct."""

    name: str
    dims: tuple[DimLike, ...]
    dtype: DType


class Place(NamedTuple):
    """Where an operand of a program lies: number `at` of the struct `input`, `output` or `state`; byte `at` of the
    `weights`; or the constant `symbol`."""

    kind: str
    at: int = 0
    symbol: str = ""


@data_class(eq=False)
class CFunction:
    """One function for C.

    Attributes:
        name: its symbol.
        inputs, outputs: the members of its structs.
        places: of each input of the program.
        results: of each output of the program.
        sizes: what symbols are that no input decides.
        state: how many variables the struct of the state has; None where the function takes none.
        guards: what is assumed of sizes, with the text of the error.
        weights: whether it takes the address of weights.
        plan: of its code, whose entry is `symbol`.
        symbol: of the program's entry.
        constants: the symbols of the program's constants.
        libraries: the symbols of the library kernels that it calls.
        checks: for each result of the entry that is not 0, the text.
        fork: the symbols of the function that shares work between threads and of its context, and how many threads
            there are, or the symbol of an int64 that says so; None to run on the caller's alone.
    """

    name: str
    inputs: list[Member]
    outputs: list[Member]
    places: list[Place]
    results: list[Place]
    sizes: dict[str, int]
    state: int | None
    guards: list[tuple[dm.Guard, str]]
    weights: bool
    plan: Plan
    symbol: str
    constants: list[str]
    libraries: list[str]
    checks: list[tuple[int, str]]
    fork: tuple[str, str, int | str] | None = None

    @property
    def spare(self) -> list[int]:
        """The results that are computed beside the variable that they are for, and copied there in the end."""
        return [n for n, place in enumerate(self.results) if place.kind == "state" and n not in self.plan.donated]


@data_class(eq=False)
class Texts:
    """The meanings of statuses, by number."""

    texts: list[str] = field(default_factory=lambda: ["no error"])

    def status(self, kind: str, text: str) -> int:
        """The status for an error; equal ones are one."""
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) << 8 | KINDS[kind]


def declared_bytes(member: Member) -> DimLike:
    """Bytes of a tensor."""
    return dm.numel(member.dims) * member.dtype.size


def _rounded(size: DimLike) -> DimLike:
    return dm.ceil_div(size, ALIGNED) * ALIGNED


def workspace_of(entry: CFunction) -> DimLike:
    """Bytes of memory that a call needs besides its arguments; a number where all sizes are known."""
    total = _rounded(entry.plan.arena)
    for n in entry.spare:
        total = total + _rounded(declared_bytes(_result(entry, n)))
    return total + ALIGNED if isinstance(total, Dim) or total else 0  # it need not be aligned


def _result(entry: CFunction, n: int) -> Member:
    value = entry.plan.outputs[n]
    return Member("", tuple(value.dims), value.dtype)


def struct_type(members: Sequence[Member]) -> ir.LiteralStructType:
    """The struct of tensors."""
    return ir.LiteralStructType([
        ir.LiteralStructType([_PTR, ir.ArrayType(_I64, len(m.dims))] if m.dims else [_PTR]) for m in members])


def write_entry(module: ir.Module, entry: CFunction, texts: Texts) -> None:
    """Writes both functions of `entry` into `module`, which then needs the program, constants and library kernels."""
    bind = _BindFunction(module, entry, texts).fn
    _SizesFunction(module, entry, texts, bind)
    _CallFunction(module, entry, texts, bind)


class _StatusFunction:
    """A function that gives a status, being written: checks follow one another, the first that fails ends it."""

    def __init__(self, module: ir.Module, name: str, arguments: Sequence[tuple[str, ir.Type]], entry: CFunction,
                 texts: Texts, internal: bool = False) -> None:
        self.module, self.entry, self.texts = module, entry, texts
        self.fn = ir.Function(module, ir.FunctionType(_I32, [kind for _, kind in arguments]), name)
        self.fn.attributes.add("nounwind")
        if internal:
            self.fn.linkage = "internal"
        self.arguments = dict(zip([name for name, _ in arguments], self.fn.args, strict=True))
        for (name_, _), argument in zip(arguments, self.fn.args, strict=True):
            argument.name = name_
        self.b = ir.IRBuilder(self.fn.append_basic_block("entry"))
        self.out = self.fn.append_basic_block("failed")
        after = ir.IRBuilder(self.out)
        self.status = after.phi(_I32)
        after.ret(self.status)

    def require(self, holds: ir.Value, kind: str, text: str) -> None:
        """Ends the function with a status unless `holds`."""
        self.require_status(holds, _I32(self.texts.status(kind, f"{self.entry.name}: {text}")))

    def require_status(self, holds: ir.Value, status: ir.Value) -> None:
        follow = self.fn.append_basic_block("next")
        self.status.add_incoming(status, self.b.block)
        self.b.cbranch(holds, follow, self.out)
        self.b.position_at_end(follow)

    def done(self) -> None:
        """Ends the function well."""
        self.b.ret(_I32(0))
        if not self.status.incomings:
            self.fn.blocks.remove(self.out)

    def not_null(self, pointer: ir.Value, what: str) -> None:
        null = ir.Constant(_PTR, None)
        self.require(self.b.icmp_unsigned("!=", pointer, null), "null", f"{what} is a null pointer")

    def member(self, struct: ir.Value, members: Sequence[Member], n: int) -> ir.Value:
        """The address of a tensor's elements."""
        at = self.b.gep(struct, [_I32(0), _I32(n), _I32(0)], source_etype=struct_type(members))
        return self.b.load(at, typ=_PTR)

    def size_at(self, struct: ir.Value, members: Sequence[Member], n: int, axis: int) -> ir.Value:
        """Where a size of a tensor's shape is."""
        return self.b.gep(struct, [_I32(0), _I32(n), _I32(1), _I32(axis)], source_etype=struct_type(members))

    def symbols(self) -> ir.Value:
        """Memory for the values of the program's symbols."""
        values = self.b.alloca(_I64, len(self.entry.plan.symbols) or 1)
        values.align = 8
        return values

    def equal(self, numbers: Arithmetic, size: ir.Value, wanted: DimLike) -> ir.Value:
        return self.b.icmp_signed("==", size, numbers.size(wanted))


def shape_text(dims: Sequence[DimLike]) -> str:
    """A shape as texts show it."""
    return f"[{', '.join(map(str, dims))}]"


class _BindFunction(_StatusFunction):
    """`int32 bind(in*, int64* symbols)`: sizes from the shapes of the inputs, all of which are checked."""

    def __init__(self, module: ir.Module, entry: CFunction, texts: Texts) -> None:
        super().__init__(module, f"{entry.symbol}_bind", [("in", _PTR), ("symbols", _PTR)], entry, texts, True)
        b, symbols = self.b, entry.plan.symbols
        struct, values = self.arguments["in"], self.arguments["symbols"]
        for symbol, number in entry.sizes.items():
            if symbol in symbols:
                b.store(_I64(number), b.gep(values, [_I64(symbols.index(symbol))], source_etype=_I64))
        bound, later = set(entry.sizes), []
        for n, member in enumerate(entry.inputs):
            text = f"input {member.name} must have shape {shape_text(member.dims)}"
            for axis, dim in enumerate(member.dims):
                size = b.load(self.size_at(struct, entry.inputs, n, axis), typ=_I64)
                name = dim.name_alone() if isinstance(dim, Dim) else None
                if name is None or name in bound:
                    later.append((size, dim, text))
                    continue
                bound.add(name)
                self.require(b.icmp_signed(">=", size, _I64(0)), "shape", f"{text}; a size is negative")
                if name in symbols:
                    b.store(size, b.gep(values, [_I64(symbols.index(name))], source_etype=_I64))
        numbers = Arithmetic(b, values, symbols, checked=True)
        for size, dim, text in later:
            self.require(self.equal(numbers, size, dim), "shape", text)
        self.check_bytes(numbers)
        for guard, text in entry.guards:
            holds = b.icmp_signed(guard.op, numbers.size(guard.left), numbers.size(guard.right))
            self.require(holds, "shape", text)
        self.done()


    def check_bytes(self, numbers: Arithmetic) -> None:
        """Requires that all sizes and all memory are less than 2^62, so that what follows computes with them."""
        for member in (*self.entry.inputs, *self.entry.outputs):
            for size in (*member.dims, declared_bytes(member)):
                numbers.bounded(size)
        numbers.bounded(workspace_of(self.entry))
        self.require(self.b.not_(numbers.overflow), "shape", "a shape is too large: its bytes, or those of what is "
                     "computed from it, are 2^62 or more")


class _SizesFunction(_StatusFunction):
    """`int32 NAME_sizes(in*, out*, int64* workspace)`."""

    def __init__(self, module: ir.Module, entry: CFunction, texts: Texts, bind: ir.Function) -> None:
        arguments = [("in", _PTR)] * bool(entry.inputs) + [("out", _PTR)] * bool(entry.outputs) + [("workspace", _PTR)]
        super().__init__(module, f"{entry.name}_sizes", arguments, entry, texts)
        b = self.b
        for name in self.arguments:
            self.not_null(self.arguments[name], f"`{name}`")
        values = self.symbols()
        status = b.call(bind, [self.arguments.get("in", ir.Constant(_PTR, None)), values])
        self.require_status(b.icmp_unsigned("==", status, _I32(0)), status)
        numbers = Arithmetic(b, values, entry.plan.symbols)
        for n, member in enumerate(entry.outputs):
            for axis, dim in enumerate(member.dims):
                b.store(numbers.size(dim), self.size_at(self.arguments["out"], entry.outputs, n, axis))
        b.store(numbers.size(workspace_of(entry)), self.arguments["workspace"])
        self.done()


class _CallFunction(_StatusFunction):
    """The function itself."""

    def __init__(self, module: ir.Module, entry: CFunction, texts: Texts, bind: ir.Function) -> None:
        self.needs = workspace_of(entry)
        self.elements: dict[str, list[ir.Value]] = {}  # addresses
        super().__init__(module, entry.name, arguments_of(entry, self.needs), entry, texts)
        b, passed = self.b, self.arguments
        for name in ("in", "out", "state", "weights"):
            if name in passed:
                self.not_null(passed[name], f"`{name}`")
        values = self.symbols()
        status = b.call(bind, [passed.get("in", ir.Constant(_PTR, None)), values])
        self.require_status(b.icmp_unsigned("==", status, _I32(0)), status)
        self.numbers = Arithmetic(b, values, entry.plan.symbols)
        self.tensors("in", entry.inputs, "input")
        self.tensors("out", entry.outputs, "output")
        self.variables()
        self.arena = self.workspace()
        self.call_program(values)
        self.done()

    def tensors(self, struct: str, members: Sequence[Member], what: str) -> None:
        """Loads addresses, none of which may be null; checks the shapes of results."""
        pointers = []
        for n, member in enumerate(members):
            pointer = self.member(self.arguments[struct], members, n)
            pointers.append(pointer)
            text = f"{what} {member.name} must have shape {shape_text(member.dims)}"
            for axis, dim in enumerate(member.dims if struct == "out" else ()):
                size = self.b.load(self.size_at(self.arguments[struct], members, n, axis), typ=_I64)
                self.require(self.equal(self.numbers, size, dim), "shape", text)
            self.filled(pointer, declared_bytes(member), f"the data of {what} {member.name}")
        self.elements[struct] = pointers

    def filled(self, pointer: ir.Value, size: DimLike, what: str) -> None:
        """Requires an address where there are elements."""
        b = self.b
        holds = b.icmp_unsigned("!=", pointer, ir.Constant(_PTR, None))
        if isinstance(size, Dim) or size == 0:
            holds = b.or_(holds, b.icmp_signed("==", self.numbers.size(size), _I64(0)))
        self.require(holds, "null", f"{what} is a null pointer")

    def variables(self) -> None:
        """Loads the addresses of the variables that the function has to do with."""
        b, entry = self.b, self.entry
        self.state: dict[int, ir.Value] = {}
        for place in (*entry.places, *entry.results):
            if place.kind == "state" and place.at not in self.state:
                kind = ir.ArrayType(_PTR, entry.state or 1)
                at = b.gep(self.arguments["state"], [_I32(0), _I32(place.at)], source_etype=kind)
                self.state[place.at] = b.load(at, typ=_PTR)
                self.not_null(self.state[place.at], "a variable of `state`")

    def workspace(self) -> ir.Value:
        """The aligned address of the workspace, which must be large enough."""
        b, zero = self.b, _I64(0)
        if "workspace" not in self.arguments:
            return zero
        need, have = self.numbers.size(self.needs), self.arguments["workspace_size"]
        self.require(b.icmp_signed(">=", have, need), "workspace",
                     f"the workspace is smaller than {self.entry.name}_sizes tells")
        at = b.ptrtoint(self.arguments["workspace"], _I64)
        self.require(b.or_(b.icmp_unsigned("!=", at, zero), b.icmp_signed("==", need, zero)), "null",
                     "`workspace` is a null pointer")
        return b.and_(b.add(at, _I64(ALIGNED - 1)), _I64(-ALIGNED))

    def call_program(self, values: ir.Value) -> None:
        """Calls the program, and stores variables once nothing can fail any more."""
        b, entry, p = self.b, self.entry, self.entry.plan
        spare, end = {}, _rounded(p.arena)
        for n in entry.spare:
            spare[n] = b.add(self.arena, self.numbers.size(end))
            end = end + _rounded(declared_bytes(_result(entry, n)))
        addresses = [self.address(place) for place in entry.places]
        addresses += [spare[n] if n in spare else self.address(place) for n, place in enumerate(entry.results)]
        addresses += [b.ptrtoint(_external(self.module, symbol), _I64) for symbol in entry.constants]
        buffers = b.alloca(_I64, len(addresses) or 1)
        for n, address in enumerate(addresses):
            b.store(address, b.gep(buffers, [_I64(n)], source_etype=_I64))
        kind = ir.FunctionType(_I64, [_PTR] * 4)
        target = ir.Function(self.module, kind, entry.symbol)
        result = b.call(target, [buffers, values, b.inttoptr(self.arena, _PTR), self.table()])
        self.leave_if_failed(result)
        copy = self.module.declare_intrinsic("llvm.memcpy", [_PTR, _PTR, _I64])
        for n, source in spare.items():
            size = self.numbers.size(declared_bytes(_result(entry, n)))
            to = self.state[entry.results[n].at]
            b.call(copy, [to, b.inttoptr(source, _PTR), size, _I1(0)])

    def address(self, place: Place) -> ir.Value:
        b = self.b
        if place.kind == "constant":
            return b.ptrtoint(_external(self.module, place.symbol), _I64)
        if place.kind == "weights":
            return b.add(b.ptrtoint(self.arguments["weights"], _I64), _I64(place.at))
        pointer = self.state[place.at] if place.kind == "state" else \
            self.elements["in" if place.kind == "input" else "out"][place.at]
        return b.ptrtoint(pointer, _I64)

    def table(self) -> ir.GlobalVariable:
        """The words that the program's entry takes last: threads, and library kernels."""
        module, entry = self.module, self.entry
        fork, context, threads = entry.fork or ("", "", 1)
        if isinstance(threads, str):
            count = module.globals.get(threads) or ir.GlobalVariable(module, _I64, threads)
        else:
            count = ir.GlobalVariable(module, _I64, f"{entry.symbol}_threads")
            count.linkage, count.global_constant, count.initializer = "internal", True, _I64(threads)
        null = ir.Constant(_PTR, None)
        words = [null, null] if entry.fork is None else [_function(module, fork, _FORK), _external(module, context)]
        words += [count, *[_function(module, s, KERNEL) for s in entry.libraries]]
        table = address_words(module, f"{entry.symbol}_table", words)
        table.linkage = "internal"
        return table

    def leave_if_failed(self, result: ir.Value) -> None:
        """Ends the function where a result of the program says that a check failed, with the status of the check."""
        b, entry = self.b, self.entry
        if not entry.checks:
            return
        bad, follow = self.fn.append_basic_block("bad"), self.fn.append_basic_block("fine")
        b.cbranch(b.icmp_unsigned("==", result, _I64(0)), follow, bad)
        b.position_at_end(bad)
        choose = b.switch(result, self.out)
        self.status.add_incoming(_I32(self.texts.status("internal", f"{entry.name}: an unknown check failed")), bad)
        for number, text in entry.checks:
            block = self.fn.append_basic_block("check")
            choose.add_case(_I64(number), block)
            status = self.texts.status("invalid_argument", f"{entry.name}: {text}")
            self.status.add_incoming(_I32(status), block)
            ir.IRBuilder(block).branch(self.out)
        b.position_at_end(follow)


def arguments_of(entry: CFunction, workspace: DimLike) -> list[tuple[str, ir.Type]]:
    """The arguments of the function of `entry`."""
    arguments: list[tuple[str, ir.Type]] = [("in", _PTR)] * bool(entry.inputs) + [("out", _PTR)] * bool(entry.outputs)
    arguments += [("state", _PTR)] * (entry.state is not None) + [("weights", _PTR)] * entry.weights
    if isinstance(workspace, Dim) or workspace:
        arguments += [("workspace", _PTR), ("workspace_size", _I64)]
    return arguments


def address_words(module: ir.Module, name: str, addresses: Sequence[ir.Constant]) -> ir.GlobalVariable:
    """A constant array of addresses in words of 64 bits.

    Where addresses have 32 bits no object file has a wider one: they are the low halves of the words.
    """
    if targets.current().address_bits == 32:
        parts = [part for address in addresses for part in (address, _I32(0))]
    else:
        parts = [address.ptrtoint(_I64) for address in addresses]
    kind = ir.LiteralStructType([part.type for part in parts])
    table = ir.GlobalVariable(module, kind, name)
    table.global_constant, table.align, table.initializer = True, 8, ir.Constant(kind, parts)
    return table


def _external(module: ir.Module, symbol: str) -> ir.GlobalVariable:
    """A symbol that another module defines."""
    variable = module.globals.get(symbol)
    if variable is None:
        variable = ir.GlobalVariable(module, _I8, symbol)
        variable.linkage, variable.global_constant = "external", True
    return variable


def _function(module: ir.Module, symbol: str, kind: ir.FunctionType) -> ir.Function:
    """A function that another module defines."""
    return module.globals.get(symbol) or ir.Function(module, kind, symbol)


# -- what libraries have besides ----------------------------------------------------------------------
def write_texts(module: ir.Module, name: str, texts: Texts) -> None:
    """Writes `const char* NAME(int32 status)`: the text of a status, in UTF-8."""
    unknown = "not a status of this library"
    blob, offsets = bytearray(), []
    for text in (*texts.texts, unknown):
        offsets.append(len(blob))
        blob += text.encode() + b"\0"
    characters = _constant(module, f"{name}_text", ir.ArrayType(_I8, len(blob)), blob)
    table = _constant(module, f"{name}_offsets", ir.ArrayType(_I32, len(offsets)), [_I32(n) for n in offsets])
    fn = ir.Function(module, ir.FunctionType(_PTR, [_I32]), name)
    fn.attributes.add("nounwind")
    b = ir.IRBuilder(fn.append_basic_block("entry"))
    number = b.lshr(fn.args[0], _I32(8))
    in_table = b.icmp_unsigned("<", number, _I32(len(texts.texts)))
    number = b.select(in_table, number, _I32(len(texts.texts)))
    offset = b.load(b.gep(table, [b.zext(number, _I64)], source_etype=_I32), typ=_I32)
    b.ret(b.gep(characters, [b.zext(offset, _I64)], source_etype=_I8))


def _constant(module: ir.Module, name: str, kind: ir.Type,
              value: bytes | bytearray | list[ir.Constant]) -> ir.GlobalVariable:
    constant = ir.GlobalVariable(module, kind, name)
    constant.linkage, constant.global_constant, constant.initializer = "internal", True, ir.Constant(kind, value)
    constant.unnamed_addr = True
    return constant


def write_number(module: ir.Module, name: str, value: int) -> None:
    """Writes `int64 NAME(void)`."""
    fn = ir.Function(module, ir.FunctionType(_I64, []), name)
    fn.attributes.add("nounwind")
    ir.IRBuilder(fn.append_basic_block("entry")).ret(_I64(value))


def write_state(module: ir.Module, name: str, variables: Sequence[tuple[Member, Place]], weights: bool,
                texts: Texts) -> int:
    """Writes `int32 NAME(state*, weights*, memory, int64 size)`: lays variables out in memory, at their first values.

    Args:
        variables: each with the place of its value.
        weights: whether the function takes the address of weights.
    Returns:
        The bytes of memory that it needs.
    """
    entry = CFunction(name, [], [], [], [], {}, len(variables), [], weights, None, "", [], [], [])  # type: ignore[arg-type]
    arguments = [("state", _PTR), *[("weights", _PTR)] * weights, ("memory", _PTR), ("size", _I64)]
    f = _StatusFunction(module, name, arguments, entry, texts)
    b, at = f.b, 0
    for argument in ("state", "weights", "memory"):
        if argument in f.arguments:
            f.not_null(f.arguments[argument], f"`{argument}`")
    lengths = dm.evaluate([declared_bytes(m) for m, _ in variables], {})
    total = sum(dm.evaluate(map(_rounded, lengths), {})) + ALIGNED
    f.require(b.icmp_signed(">=", f.arguments["size"], _I64(total)), "workspace", f"the state needs {total} bytes")
    start = b.and_(b.add(b.ptrtoint(f.arguments["memory"], _I64), _I64(ALIGNED - 1)), _I64(-ALIGNED))
    copy = module.declare_intrinsic("llvm.memcpy", [_PTR, _PTR, _I64])
    for n, ((_, place), length) in enumerate(zip(variables, lengths, strict=True)):
        to = b.inttoptr(b.add(start, _I64(at)), _PTR)
        b.store(to, b.gep(f.arguments["state"], [_I32(0), _I32(n)], source_etype=ir.ArrayType(_PTR, len(variables))))
        source = _external(module, place.symbol) if place.kind == "constant" else \
            b.gep(f.arguments["weights"], [_I64(place.at)], source_etype=_I8)
        b.call(copy, [to, source, _I64(length), _I1(0)])
        at += -(-length // ALIGNED) * ALIGNED
    f.done()
    return total
