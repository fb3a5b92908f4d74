"""Parsed kernels as programs: blocks of instructions, each a function of a run and of a mask of its threads.

A block begins at a label, behind a branch or a barrier, and at each instruction that names threads, which may have to
wait for them. Operands are numbers of registers; literals and addresses of variables are registers, too, which nothing
writes. An instruction that is not known here nor in the table of `ptx_ops.py` is an error that names its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from gpu.ptx_mma import kind_of, multiplied
from gpu.ptx_ops import DTYPES, rule
from gpu.ptx_run import SPECIAL, WARP, Mask, Run, Step
from gpu.ptx_text import Entry, Module, PtxError, Statement, size_of

__all__ = ["Program"]

End = Callable[[Run, Mask], tuple[int, Mask]]
Reader = Callable[[list[np.ndarray]], np.ndarray]

_ENDS = re.compile(r"bra(\.uni)?|brx\.idx(\.uni)?|ret(\.uni)?|exit|trap|bar\.sync|bar(rier)?(\.cta)?\.sync(\.aligned)?")
_BARRIER = re.compile(r"bar(rier)?(\.cta)?\.sync(\.aligned)?")
_NAMES = re.compile(r"shfl\.sync\..*|vote\.sync\..*|bar\.warp\.sync|mma\.sync\..*")
_ADDRESS = re.compile(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\w+))?\s*\]")
_SPACES = {"param", "global", "shared", "local", "const", "shared::cta"}
_IGNORED = {"volatile", "relaxed", "acquire", "release", "acq_rel", "weak", "cta", "cluster", "gpu", "sys", "nc", "ca",
            "cg", "cs", "lu", "cv", "wb", "wt", "noftz"}  # which memory model and caches: here each step is seen by all
_NOTHING = re.compile(r"(membar|fence|prefetch|prefetchu)\..*|nanosleep\.u32")


@dataclass
class Block:
    """Instructions that run one after another, where threads go then, and the register of the threads it names."""

    steps: list[tuple[Step, int]]
    end: End
    first: int
    names: int | None = None


class Program:
    """A kernel that is ready to run."""

    def __init__(self, module: Module, entry: Entry) -> None:
        self.module, self.entry, self.name = module, entry, entry.name
        self.types = dict(entry.registers)
        self.numbers: dict[str, int] = {}
        self.registers: list[np.ndarray] = []
        self.specials: dict[str, int] = {}
        self.symbols: dict[str, int] = {}  # registers of addresses that loading tells
        self.grain, self.widest = 4, 0
        self.variables: dict[str, tuple[str, int]] = {}  # space and offset
        self.shared_size = self.local_size = 0
        self._lay_out()
        self.parameter_bytes = max((p.offset + p.size for p in entry.parameters.values()), default=0)
        for name, kind in entry.registers.items():
            self._register(name, np.array([False]) if kind == "pred" else np.array(
                [0xBAD0BAD0BAD0BAD1 & (1 << 8 * size_of(kind)) - 1], f"u{size_of(kind)}"))
        self.blocks = self._blocks()

    def fresh_registers(self, symbols: dict[str, int]) -> list[np.ndarray]:
        """The registers of a run, given where the module's variables lie."""
        registers = list(self.registers)
        for name, number in self.symbols.items():
            registers[number] = np.array([symbols[name]], np.uint64)
        return registers

    def fault(self, place: int, kind: str, text: str, before: bool = False) -> PtxError:
        """An error at a block's first instruction, or at the one before."""
        statement = self.entry.statements[min(self.blocks[place].first, len(self.entry.statements)) - before]
        return PtxError(kind, f"{text}\n  {self.name}, line {statement.line}: {statement.text}")

    # -- variables and operands -------------------------------------------------------------------
    def _lay_out(self) -> None:
        """Places shared and local variables: those of the module that the kernel names, and its own."""
        used = set(re.findall(r"[\w$]+", " ".join(o for s in self.entry.statements for o in s.operands)))
        variables = [v for v in self.module.variables.values() if v.name in used] + self.entry.variables
        sizes = {"shared": 0, "local": 0}
        for variable in sorted(variables, key=lambda v: not v.size):  # what a launch adds lies behind all others
            if variable.space in sizes:
                start = -(-sizes[variable.space] // variable.align) * variable.align
                self.variables[variable.name] = (variable.space, start)
                sizes[variable.space] = start + variable.size
        self.shared_size, self.local_size = sizes["shared"], sizes["local"]

    def _register(self, name: str, value: np.ndarray) -> int:
        self.numbers[name] = len(self.registers)
        self.registers.append(value)
        return self.numbers[name]

    def operand(self, text: str, kind: str) -> int:
        """The number of the register that holds an operand."""
        if text in self.numbers:
            return self.numbers[text]
        if text.startswith("%") or text == "WARP_SZ":
            if text != "WARP_SZ" and not SPECIAL.fullmatch(text):
                raise ValueError(text)
            number = self._register(text, np.array([WARP], np.uint32))
            if text != "WARP_SZ":
                self.specials[text] = number
            return number
        width = size_of(kind)
        name = f"{text}:{width}{kind == 'pred'}"
        if name in self.numbers:
            return self.numbers[name]
        if text in self.variables:
            return self._register(name, np.array([self.variables[text][1]], f"u{width}"))
        if text in self.module.variables:
            self.symbols[text] = self._register(name, np.zeros(1, np.uint64))
            return self.symbols[text]
        return self._register(name, _literal(text, kind))

    def reader(self, text: str, kind: str) -> Reader:
        """A function that gives an operand as values of a type."""
        number, dtype = self.operand(text, kind), DTYPES[kind]
        own = self.registers[number].dtype
        if own == dtype:
            return lambda r: r[number]
        if own.itemsize == dtype.itemsize:
            return lambda r: r[number].view(dtype)
        narrow = np.dtype(f"u{dtype.itemsize}")
        return lambda r: r[number].astype(narrow).view(dtype)

    def writer(self, text: str) -> tuple[int, Callable[[np.ndarray], np.ndarray]]:
        """The number of a register, and what makes a value fit it."""
        number = self.numbers[text]
        own = self.registers[number].dtype

        def fit(value: np.ndarray) -> np.ndarray:
            if value.dtype == own:
                return value
            return value.view(own) if value.dtype.itemsize == own.itemsize else value.astype(own)
        return number, fit

    def address(self, text: str) -> tuple[Reader, np.uint64]:
        """Where an operand in brackets lies: a register, and a distance."""
        found = _ADDRESS.fullmatch(text)
        if found is None:
            raise PtxError("unknown instruction", f"the address {text}")
        number, offset = self.operand(found[1], "b64"), int(found[2] or "0", 0)
        distance = np.uint64(offset & (1 << 64) - 1)
        if self.registers[number].dtype == np.uint64:
            return (lambda r: r[number] + distance) if offset else (lambda r: r[number]), distance
        short = np.uint32(offset & (1 << 32) - 1)  # addresses of shared memory may have 32 bits
        return lambda r: (r[number] + short).astype(np.uint64), distance

    # -- blocks -----------------------------------------------------------------------------------
    def _blocks(self) -> list[Block]:
        statements = self.entry.statements
        leaders = {0, *self.entry.labels.values()}
        leaders |= {n + 1 for n, s in enumerate(statements) if _ENDS.fullmatch(s.opcode)}
        leaders |= {n for n, s in enumerate(statements) if _NAMES.fullmatch(s.opcode)}
        starts = sorted(n for n in leaders if n <= len(statements))
        self.places = {start: number for number, start in enumerate(starts)}
        return [self._block(number, start, stop) for number, (start, stop) in enumerate(
            zip(starts, [*starts[1:], len(statements)], strict=True))]

    def _block(self, number: int, start: int, stop: int) -> Block:
        statements = self.entry.statements
        last = statements[stop - 1] if stop > start and _ENDS.fullmatch(statements[stop - 1].opcode) else None
        names = None
        if start < stop and _NAMES.fullmatch(statements[start].opcode):
            whole = statements[start].opcode.startswith("mma.")  # which is all threads' of a warp
            names = self.operand("-1" if whole else statements[start].operands[-1], "b32")
            if statements[start].guard:
                raise self._unknown(statements[start])
        steps = [(step, n) for n in range(start, stop - (last is not None))
                 if (step := self._step(statements[n])) is not None]
        end = self._end(last, number) if last is not None else _goes_on(number + 1)
        return Block(steps, _returns if last is None and stop == len(statements) else end, start, names)

    def _unknown(self, statement: Statement) -> PtxError:
        return PtxError("unknown instruction", f"{self.name}, line {statement.line}: {statement.text}")

    def _guard(self, statement: Statement) -> Reader:
        number, negated = self.numbers[statement.guard], statement.negated
        return lambda r: ~r[number] if negated else r[number]

    def _end(self, statement: Statement, number: int) -> End:
        """What an instruction does that ends a block."""
        guard = self._guard(statement) if statement.guard else None
        if statement.opcode.startswith("brx"):
            table = [self.places[self.entry.labels[name]] for name in self.entry.tables[statement.operands[1]]]
            if guard is None:
                return partial(_branches, self.operand(statement.operands[0], "b32"), table)
        elif statement.opcode.startswith("bra"):
            there = self.places[self.entry.labels[statement.operands[0]]]
            if guard is None:
                return _goes_on(there)
            return lambda run, mask: run.split(guard(run.r), mask, there, number + 1)
        elif statement.opcode == "trap":
            if guard is None:
                return _traps
        elif _BARRIER.fullmatch(statement.opcode):
            if guard is None and len(statement.operands) <= 2:
                count = int(statement.operands[1]) if len(statement.operands) == 2 else None
                return partial(_waits, number + 1, count)
        else:
            return _returns if guard is None else partial(_some_return, guard, number + 1)
        raise self._unknown(statement)

    # -- instructions -----------------------------------------------------------------------------
    def _step(self, statement: Statement) -> Step | None:
        """What an instruction does within a block."""
        try:
            step = self._plain_step(statement)
        except (KeyError, IndexError, ValueError, TypeError):
            raise self._unknown(statement) from None
        if step is None or not statement.guard:
            return step
        guard = self._guard(statement)

        def guarded(run: Run, mask: Mask) -> None:
            chosen = guard(run.r)
            if len(chosen) == 1:
                if chosen[0]:
                    step(run, mask)
                return
            own = chosen if mask is None else chosen & mask
            if own.any():
                step(run, None if own.all() else own)
        return guarded

    def _plain_step(self, statement: Statement) -> Step | None:
        opcode = statement.opcode
        if _NOTHING.fullmatch(opcode):
            return None
        name = opcode.split(".")[0]
        special = {"ld": self._load, "st": self._store, "atom": self._atomic, "red": self._atomic,
                   "shfl": self._shuffle, "vote": self._vote, "activemask": self._active,
                   "isspacep": self._isspacep, "mma": self._mma}.get(name)
        if special is not None:
            return special(statement)
        if opcode == "bar.warp.sync":
            return _warps_meet
        if name == "mov" and "{" in "".join(statement.operands):
            return self._packing(statement)
        return self._pure(statement)

    def _pure(self, statement: Statement) -> Step:
        """An instruction of the table."""
        found = rule(statement.opcode)
        target, *operands = statement.operands
        if found is None or len(operands) != len(found.sources):
            raise self._unknown(statement)
        function = found.function
        sources = [self.reader(o, kind) for o, kind in zip(operands, found.sources, strict=True)]
        first, *others = target.split("|")
        number, fit = self.writer(first)
        negated = self.numbers[others[0]] if others else None
        if negated is not None and (found.result != "pred" or len(sources) != 2):
            raise self._unknown(statement)
        if len(sources) == 1 and negated is None:
            (one,) = sources

            def unary(run: Run, mask: Mask) -> None:
                r = run.r
                value = fit(function(one(r)))
                r[number] = value if mask is None else np.where(mask, value, r[number])
            return unary
        if len(sources) == 2 and negated is None:
            left, right = sources

            def binary(run: Run, mask: Mask) -> None:
                r = run.r
                value = fit(function(left(r), right(r)))
                r[number] = value if mask is None else np.where(mask, value, r[number])
            return binary

        def step(run: Run, mask: Mask) -> None:
            value = fit(function(*[source(run.r) for source in sources]))
            run.put(number, value, mask)
            if negated is not None:
                run.put(negated, ~value, mask)
        return step

    def _packing(self, statement: Statement) -> Step:
        """A move between a register and the parts of it."""
        target, source = statement.operands
        width = size_of(statement.opcode.split(".")[1])
        if target.startswith("{"):
            names = _parts(target)
            own, part = self.reader(source, f"b{8 * width}"), f"u{width // len(names)}"
            targets = [None if name == "_" else self.numbers[name] for name in names]

            def unpack(run: Run, mask: Mask) -> None:
                parts = np.ascontiguousarray(own(run.r)).view(part).reshape(-1, len(targets))
                for n, number in enumerate(targets):
                    if number is not None:
                        run.put(number, np.ascontiguousarray(parts[:, n]), mask)
            return unpack
        names = _parts(source)
        sources = [self.reader(name, f"b{8 * width // len(names)}") for name in names]
        number, fit = self.writer(target)

        def pack(run: Run, mask: Mask) -> None:
            parts = np.broadcast_arrays(*[s(run.r) for s in sources])
            run.put(number, fit(np.stack(parts, 1).reshape(-1).view(f"u{width}")), mask)
        return pack

    def _access(self, statement: Statement) -> tuple[str, list[str], str]:
        """The space, what else it says, and the type of an access to memory."""
        *words, kind = statement.opcode.split(".")[1:]
        spaces = [w.removesuffix("::cta") for w in words if w in _SPACES]
        rest = [w for w in words if w not in _SPACES and w not in _IGNORED and not w.startswith(("L1::", "L2::"))]
        space = {"const": "global"}.get(spaces[0], spaces[0]) if spaces else "generic"
        if space in ("shared", "generic"):
            self.grain = min(self.grain, size_of(kind))
        return space, rest, kind

    def _load(self, statement: Statement) -> Step:
        space, rest, kind = self._access(statement)
        target, place = statement.operands
        names, width, dtype = _parts(target), size_of(kind), DTYPES[kind]
        if rest not in ([], [f"v{len(names)}"]):
            raise self._unknown(statement)
        writers = [self.writer(name) if name != "_" else None for name in names]
        if space == "param":
            return self._parameter(place, writers, dtype)
        at = self.address(place)[0]

        def step(run: Run, mask: Mask) -> None:
            for value, writer in zip(run.load(space, at(run.r), width, len(writers), mask), writers, strict=True):
                if writer is not None:
                    run.put(writer[0], writer[1](value.view(dtype)), mask)
        return step

    def _parameter(self, place: str, writers: list[tuple[int, Callable] | None], dtype: np.dtype) -> Step:
        found = _ADDRESS.fullmatch(place)
        assert found is not None
        offset = self.entry.parameters[found[1]].offset + int(found[2] or "0", 0)

        def step(run: Run, mask: Mask) -> None:
            for value, writer in zip(np.frombuffer(run.parameters, dtype, len(writers), offset), writers, strict=True):
                if writer is not None:
                    run.put(writer[0], writer[1](np.array([value])), mask)
        return step

    def _store(self, statement: Statement) -> Step:
        space, rest, kind = self._access(statement)
        place, source = statement.operands
        names, width = _parts(source), size_of(kind)
        if rest not in ([], [f"v{len(names)}"]) or space == "param":
            raise self._unknown(statement)
        at, sources = self.address(place)[0], [self.reader(name, f"b{8 * width}") for name in names]
        return lambda run, mask: run.store(space, at(run.r), [s(run.r) for s in sources], width, mask)

    def _atomic(self, statement: Statement) -> Step:
        space, (name,), kind = self._access(statement)
        if kind not in _UPDATED[name]:
            raise self._unknown(statement)
        update = _UPDATES[name]
        operands = list(statement.operands)
        target = operands.pop(0) if statement.opcode.startswith("atom") else "_"
        at, sources = self.address(operands[0])[0], [self.reader(o, kind) for o in operands[1:]]
        writer = None if target == "_" else self.writer(target)

        def step(run: Run, mask: Mask) -> None:
            old = run.atomic(space, at(run.r), kind, mask, update, [s(run.r) for s in sources])
            if writer is not None:
                run.put(writer[0], writer[1](old), mask)
        return step

    def _shuffle(self, statement: Statement) -> Step:
        mode, kind = statement.opcode.split(".")[2:]
        target, *operands = statement.operands
        if kind != "b32" or mode not in ("up", "down", "bfly", "idx"):
            raise self._unknown(statement)
        value, by, clamp, named = (self.reader(o, "u32") for o in operands)
        first, *inside = target.split("|")
        number = None if first == "_" else self.numbers[first]

        def step(run: Run, mask: Mask) -> None:
            r = run.r
            lane, ok = _source_lane(mode, (run.slot % WARP).astype(np.int64), by(r).astype(np.int64),
                                    clamp(r).astype(np.int64))
            _told(run, lane, named(r), mask)
            if number is not None:
                at = run.position[run.slot - run.slot % WARP + lane]
                run.put(number, run.every(value(r))[at], mask)
            if inside:
                run.put(self.numbers[inside[0]], ok, mask)
        return step

    def _mma(self, statement: Statement) -> Step:
        kind = kind_of(statement.opcode)
        target, *fragments = statement.operands
        if kind is None or len(fragments) != 3:
            raise self._unknown(statement)
        targets = [self.numbers[name] for name in _parts(target)]
        a, b, c = ([self.reader(name, "u32" if n < 2 else "b32") for name in _parts(text)]
                   for n, text in enumerate(fragments))

        def step(run: Run, mask: Mask) -> None:
            warps = np.unique((run.slot if mask is None else run.slot[mask]) // WARP)
            at = run.position[warps[:, None] * WARP + np.arange(WARP)]
            values = [[run.every(read(run.r))[at] for read in fragment] for fragment in (a, b, c)]
            for number, result in zip(targets, multiplied(kind, *values), strict=True):
                whole = np.zeros(run.count, np.uint32)
                whole[at] = result
                run.put(number, whole, mask)
        return step

    def _vote(self, statement: Statement) -> Step:
        mode, kind = statement.opcode.split(".")[2:]
        number, _ = self.writer(statement.operands[0])
        source, negated = statement.operands[1], statement.operands[1].startswith("!")
        value, named = self.reader(source.lstrip("!"), "pred"), self.reader(statement.operands[2], "u32")
        if (mode, kind) not in [("ballot", "b32"), ("all", "pred"), ("any", "pred"), ("uni", "pred")]:
            raise self._unknown(statement)

        def step(run: Run, mask: Mask) -> None:
            active = np.ones(run.count, bool) if mask is None else mask
            votes = run.every(value(run.r)) ^ negated
            own = run.every(named(run.r))
            yes = run.words(active & votes)[run.slot // WARP] & own
            everyone = yes == own
            result = {"ballot": yes, "any": yes != 0, "all": everyone, "uni": everyone | (yes == 0)}[mode]
            run.put(number, result, mask)
        return step

    def _active(self, statement: Statement) -> Step:
        number, _ = self.writer(statement.operands[0])

        def step(run: Run, mask: Mask) -> None:
            active = np.ones(run.count, bool) if mask is None else mask
            run.put(number, run.words(active)[run.slot // WARP], mask)
        return step

    def _isspacep(self, statement: Statement) -> Step:
        top = {"global": 0, "shared": 1, "local": 2}[statement.opcode.split(".")[1]]
        number, value = self.numbers[statement.operands[0]], self.reader(statement.operands[1], "u64")
        return lambda run, mask: run.put(number, value(run.r) >> np.uint64(60) == top, mask)


# -- what ends a block --------------------------------------------------------------------------------
def _goes_on(place: int) -> End:
    return lambda run, mask: (place, mask)


def _returns(run: Run, mask: Mask) -> tuple[int, Mask]:
    run.leave(mask)
    return -1, None


def _some_return(guard: Reader, place: int, run: Run, mask: Mask) -> tuple[int, Mask]:
    chosen = run.every(guard(run.r))
    leaving = chosen if mask is None else chosen & mask
    staying = ~leaving if mask is None else mask & ~leaving
    if leaving.any():
        run.leave(leaving)
        staying = staying[~leaving]
    return (place, None if staying.all() else staying) if staying.any() else (-1, None)


def _waits(place: int, count: int | None, run: Run, mask: Mask) -> tuple[int, Mask]:
    """Has threads wait until as many are there as a barrier names, or all of their block."""
    run.expected[place] = count or run.block_size
    run.arrive(run.waiting, place, mask)
    return -1, None


def _traps(run: Run, mask: Mask) -> tuple[int, Mask]:
    raise PtxError("trap", f"{run.program.name} comes to a trap")


def _branches(index: int, table: list[int], run: Run, mask: Mask) -> tuple[int, Mask]:
    """A branch by number."""
    numbers = run.every(run.r[index])
    active = np.ones(run.count, bool) if mask is None else mask
    if int(numbers[active].max()) >= len(table):
        raise PtxError("illegal instruction", f"{run.program.name}: a branch by number has no such place")
    for n, place in enumerate(table):
        chosen = active & (numbers == n)
        if chosen.any():
            run.arrive(run.ready, place, chosen)
    return -1, None


# -- threads of a warp --------------------------------------------------------------------------------
def _warps_meet(run: Run, mask: Mask) -> None:
    slots = run.slot if mask is None else run.slot[mask]
    run.shared.warp_barrier(np.unique(slots // WARP))


def _source_lane(mode: str, lane: np.ndarray, by: np.ndarray, clamp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lane that each reads, and whether it is in range: as NVIDIA's document of `shfl.sync` says."""
    by, end, segment = by & 31, clamp & 31, clamp >> 8 & 31
    most, least = (lane & segment) | (end & ~segment), lane & segment
    source = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": least | (by & ~segment)}[mode]
    inside = source >= most if mode == "up" else source <= most
    return np.where(inside, source, lane), np.broadcast_to(inside, lane.shape)


def _told(run: Run, lane: np.ndarray, named: np.ndarray, mask: Mask) -> None:
    """Raises where a thread reads one that is not named."""
    if len(named) == 1 and named[0] == 0xFFFFFFFF:
        return
    missing = (run.every(named) >> lane.astype(np.uint32) & np.uint32(1)) == 0
    if (missing if mask is None else missing & mask).any():
        raise PtxError("shuffle", "a thread reads from one that is not named")


# -- literals and updates -----------------------------------------------------------------------------
def _parts(text: str) -> list[str]:
    """The names between braces, or the one name."""
    return [name.strip() for name in text.strip("{}").split(",")]


def _literal(text: str, kind: str) -> np.ndarray:
    width = size_of(kind)
    if re.fullmatch(r"0[fF][0-9A-Fa-f]{8}|0[dD][0-9A-Fa-f]{16}", text):
        bits = int(text[2:], 16)
        if len(text) != 2 + 2 * width:
            raise ValueError(text)
    else:
        bits = int(text.rstrip("U"), 0)
    if kind == "pred":
        return np.array([bool(bits)])
    return np.array([bits & (1 << 8 * width) - 1], f"u{width}")


_UPDATES: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "exch": lambda old, new: new,
    "cas": lambda old, expected, new: np.select([old == expected], [new], old),
    "inc": lambda old, most: np.where(old >= most, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, most: np.where((old == 0) | (old > most), most, old - old.dtype.type(1)),
}
_WORDS, _BITS = {"u32", "s32", "u64", "s64"}, {"b32", "b64"}
_UPDATED = {"add": {"u32", "s32", "u64", "f16", "f32", "f64"}, "min": _WORDS, "max": _WORDS, "and": _BITS, "or": _BITS,
            "xor": _BITS, "exch": _BITS, "cas": {"b16", *_BITS}, "inc": {"u32"}, "dec": {"u32"}}  # types of each
