"""Plays the entries of a tape backwards: op by op or, for a backward pass that recurs, as one compiled program.

A tape's entries are played by their ops' gradient rules, each rule's ops running at once. A training loop plays the
same again and again: the same ops on the same shapes, joined in the same way, on other values. Time spent on such a
pass is added up; when it would have paid for compiling the pass, it is compiled (`compile_with` says by whom), so that
never more than about twice the least possible time is spent on it: to rent until the rent has reached the price is the
2-competitive rule of ski rental (A. Karlin and others, "Competitive snoopy caching", 1988). The results are the same to
the bit; nothing of users' own Python (custom gradients) is ever compiled. What is recorded is `tape.py`'s affair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from twofold.ir import ops
from twofold.ir.grad import apply_rule, copied, needed
from twofold.ir.op import interpreter
from twofold.ir.recent import Recent
from twofold.ir.spec import TensorSpec
from twofold.ir.sums import Exists, Holds, Link, Start, Sums, continued, filled, present, shared, taken
from twofold.ir.types import AnyTensor
from twofold.runtime.log import log

from . import dispatch, record
from .tensor import Tensor, wrap
from .types import Saved

__all__ = ["CONTINUES", "NOTHING", "Entry", "Path", "compile_with", "connection", "gradients", "is_followed", "one_of",
           "path", "play"]

# One recorded op: op, attributes, numbers of the operands, numbers of the results (0 where not differentiable),
# operands and results, or specs of those that the rule does not read. A function with a gradient of its own has its
# rule `vjp(cts)` in the place of the op and None in that of the attributes, or `vjp(cts, starts, links)` and
# `CONTINUES` where the rule continues the sums so far. A plain tuple: made for every op.
Entry: TypeAlias = tuple[Any, Any, tuple[int, ...], Sequence[int], Sequence[Saved], Sequence[Saved]]

CONTINUES = False  # in the place of the attributes


class _Nothing:
    """The type of `NOTHING`."""


# In the place of a cotangent: there is none, as only running told. It has no part in anything; what has no other
# contribution gets zeros in the end, where what is unconnected has None.
NOTHING: Any = _Nothing()

# What is played: the numbers of each source; the set of these; the set with all that depends on them; and the entries
# between sources and targets, in order.
Path: TypeAlias = tuple[Sequence[Sequence[int]], set[int], set[int], list[Entry]]

CotangentsByNumber: TypeAlias = dict[int, Tensor]  # by the numbers of tensors
Connection: TypeAlias = bool | tuple[Tensor, ...]  # whether one depends on another, or bool scalars of which any tells


def path(entries: Sequence[Entry], numbers: Sequence[Sequence[int]]) -> Path:
    """The entries that depend on sources of these numbers."""
    starts = {n for ns in numbers for n in ns}
    if interpreter() is not dispatch.eager:
        _add_values(entries, starts)
    wanted = set(starts)
    on_path = []
    if wanted:
        for entry in entries:
            if not wanted.isdisjoint(entry[2]):
                wanted.update(entry[3])
                on_path.append(entry)
        wanted.discard(0)
    return numbers, starts, wanted, on_path


def _add_values(entries: Sequence[Entry], numbers: set[int]) -> None:
    """Add to the numbers of sources those of the values that they are other names of, since uses of these count too."""
    for op, attrs, ins, outs, _, _ in reversed(entries):
        if attrs is CONTINUES and not numbers.isdisjoint(outs) and hasattr(op, "joined"):
            more = [(name, value) for name, value, _ in _joined(op, ins, outs)]
            while values := {value for name, value in more if name in numbers} - numbers - {0}:
                numbers |= values


def _joined(op: Any, ins: Sequence[int], outs: Sequence[int]) -> list[tuple[int, int, Holds]]:
    """The numbers of results that may be other values, those of these, and the conditions; further results that nobody
    has told of, since the tape has given its entries away, have no part in anything."""
    return [(outs[k], ins[at] if at >= 0 else outs[-1 - at], holds) for k, at, holds in op.joined()
            if max(k, -1 - at) < len(outs)]


def play(way: Path, cts: CotangentsByNumber, free: bool) -> list[Tensor | None]:
    """Cotangents of the path's sources from those of its targets, `cts`; with `free` the path is used up.

    None for those that are unconnected, `NOTHING` for those to which what ran added nothing.
    """
    numbers, starts, wanted, entries = way
    if interpreter() is not dispatch.eager and (sums := _sums(entries, wanted, cts)) is not None:
        return _play_sums(way, sums)
    follows = bool(record.active.get()) or interpreter() is not dispatch.eager  # whether somebody follows the gradient
    get, pop = cts.get, lambda n: cts.pop(n, None)
    missing: set[int] = set()  # numbers whose cotangents are `NOTHING`, unless there are others
    at = len(entries)
    while at:
        at -= 1
        op, attrs, ins, outs, inputs, outputs = entries.pop() if free else entries[at]
        if attrs is CONTINUES:
            _play_continued(op, ins, [get(n) if n in starts else pop(n) for n in outs], outs, wanted, cts, missing)
            continue
        if len(outs) == 1:
            n = outs[0]
            ct = get(n) if n in starts else cts.pop(n, None)
            if ct is None:
                if n in missing:
                    missing.update(wanted.intersection(ins))
                continue
            if follows:
                output_cts: list[Any] = [ct]
            if attrs is None:
                input_cts = op((ct,))
            elif op is ops.select:
                input_cts = _taken(ct, inputs)
            else:  # `apply_rule` for one result, spelt out: this runs for every op
                input_cts = op.vjp(ct, outputs[0], *inputs, **attrs)
                if type(input_cts) is not tuple and type(input_cts) is not list:
                    input_cts = (input_cts,)
        else:
            output_cts = [get(n) if n in starts else pop(n) for n in outs]
            if all(ct is None for ct in output_cts):
                if not missing.isdisjoint(outs):
                    missing.update(wanted.intersection(ins))
                continue
            input_cts = apply_rule(op, attrs, inputs, outputs, output_cts) if attrs is not None else op(output_cts)
        for n, part in zip(ins, input_cts, strict=True):
            if part is None or n not in wanted:
                continue
            if type(part) is not Tensor:
                part = needed(part)
                if part is NOTHING:
                    missing.add(n)
                if part is NOTHING or part is None:
                    continue
            before = cts.get(n)
            if before is not None:
                part = before + part
            elif follows:
                part = copied(part, output_cts)
            cts[n] = part
    totals = [get(ns[0]) if len(ns) == 1 else _sum([ct for n in ns if (ct := get(n)) is not None]) for ns in numbers]
    return [NOTHING if total is None and not missing.isdisjoint(ns) else total
            for total, ns in zip(totals, numbers, strict=True)] if missing else totals


def _play_continued(op: Any, ins: Sequence[int], output_cts: list[Any], outs: Sequence[int], wanted: set[int],
                    cts: CotangentsByNumber, missing: set[int]) -> None:
    """Plays an entry that continues the sums so far of what it reads, which are in `cts`, as does a compiled function;
    `missing` are the numbers whose cotangents are `NOTHING`."""
    if missing:
        output_cts = [NOTHING if ct is None and n in missing else ct for n, ct in zip(outs, output_cts, strict=True)]
    if all(ct is None for ct in output_cts):
        return
    places = _first_places(ins, wanted)
    so_far = [cts.get(n) if places.get(n) == at else None for at, n in enumerate(ins)]
    links = [Link(at, places[n], _always) for at, n in enumerate(ins) if places.get(n, at) != at]
    totals = op(output_cts, so_far, links)
    for n, at_first in places.items():
        total = totals[at_first]
        if total is NOTHING:
            missing.add(n)
        elif total is not None:
            cts[n] = total


def _taken(ct: Tensor, inputs: Sequence[Any]) -> list[Any]:
    """The cotangents of a `select`'s operands: `NOTHING` for the value that was not taken."""
    parts: list[Any] = [None]
    for value, holds in _values_of_select(inputs):
        part, there = taken(ct, value, holds, None)
        parts.append(part if there is None or bool(there()) else NOTHING)
    return parts


def _values_of_select(inputs: Sequence[Any]) -> list[tuple[Any, Holds]]:
    """The two values of a `select`, each with what tells whether it was taken."""
    condition, *values = inputs
    conditions: tuple[Holds, Holds] = (lambda: condition, cache(lambda: ops.logical_not(condition)))
    return list(zip(values, conditions, strict=True))


def _always() -> Tensor:
    """That two operands are one tensor, as a condition (`ir.sums.Link`)."""
    return wrap(np.array(True))


def _first_places(ins: Sequence[int], wanted: set[int]) -> dict[int, int]:
    """Of the operands that are wanted the first places."""
    return {n: place for place, n in reversed(list(enumerate(ins))) if n in wanted}


def _play_sums(way: Path, sums: Sums) -> list[Tensor | None]:
    """`play` in a trace with control flow, of whose sums only running tells some things (`ir/sums.py`)."""
    numbers, starts, wanted, entries = way
    for op, attrs, ins, outs, inputs, outputs in reversed(entries):
        if attrs is CONTINUES and op.only_names:
            continue
        ends: list[Start] = [(sums.get(n), sums.exists.get(n)) if n in starts else sums.pop(n) for n in outs]
        if attrs is CONTINUES:
            for n in outs:
                if n not in starts:  # a source is another value to the end, where it is that
                    sums.part(n)
        if all(ct is None for ct, _ in ends):
            continue
        ends, exists = shared(ends)
        if attrs is CONTINUES:
            places = _first_places(ins, wanted)
            so_far = [sums.begun(n) if places.get(n) == at else (None, None) for at, n in enumerate(ins)]
            links = sums.links([n if places.get(n) == at else None for at, n in enumerate(ins)])
            totals, added = continued(so_far, op.continued(ends, so_far, links), exists, op.moves)
            sums.totals({n: totals[place] for n, place in places.items() if totals[place] is not None},
                        {n: added[place] for n, place in places.items()})
            continue
        output_cts = [None if ct is None else filled(ct, there) for ct, there in ends]
        if op is ops.select:
            _select(sums, wanted, ins, inputs, output_cts[0], exists)
            continue
        input_cts = apply_rule(op, attrs, inputs, outputs, output_cts) if attrs is not None else op(output_cts)
        for n, ct in zip(ins, input_cts, strict=True):
            if ct is not None and n in wanted and (ct := needed(ct)) is not None:
                sums.add(n, present(copied(ct, output_cts), exists), exists)
    return _as_one(sums, numbers, [_sum([ct for n in ns if (ct := sums.result(n)) is not None]) for ns in numbers])


def _as_one(sums: Sums[int, Any], numbers: Sequence[Sequence[int]],
            totals: list[Tensor | None]) -> list[Tensor | None]:
    """The gradients of sources, of which those of one value are one tensor for gradients of this gradient."""
    firsts: dict[int, Tensor] = {}  # the gradients so far, by the sources' numbers
    joins = is_followed()
    for i, ns in enumerate(numbers):
        total = totals[i]
        if len(ns) != 1 or total is None:
            continue
        if ns[0] not in firsts:
            others = sums.same(ns[0]) if joins else {}
            for m, then in firsts.items() if others else ():
                if m in others and then.dims == total.dims:
                    total = one_of(others[m](), then, total)
            firsts[ns[0]] = total
        totals[i] = firsts[ns[0]]
    return totals


def is_followed() -> bool:
    """Whether recorders follow what is computed here."""
    return record.is_followed(interpreter())


def one_of(condition: Tensor, then: Tensor, otherwise: Tensor) -> Tensor:
    """In a trace one of two tensors, by a branch that gives it back, so that it is that very tensor for recorders."""
    running: Any = interpreter()
    tensor: Tensor = running.one_of(condition, then, otherwise)
    return tensor


def _select(sums: Sums[int, Any], wanted: set[int], ins: Sequence[int], inputs: Sequence[Any], ct: AnyTensor | None,
            exists: Exists) -> None:
    """Hand the cotangent of a `select` on to the value that was taken, which alone has a part in it."""
    for n, (value, holds) in zip(ins[1:], _values_of_select(inputs), strict=True):
        if n in wanted:
            sums.add(n, *taken(ct, value, holds, exists))


def _sums(entries: Sequence[Entry], wanted: set[int], cts: CotangentsByNumber) -> Sums | None:
    """The sums in a trace of which only running tells some things; None where there are none.

    Such are those of control flow, where results may be other values, and of what a `select` chooses from.

    A rule that continues sums says so by `joined`: for results the place of an operand, or -1 - that of another result,
    and what gives the condition. The rule leaves out what such a result has in common with the other value. One that
    has `only_names` tells of values that had several names before the tape began, and has no gradient.
    """
    constructs = [entry for entry in entries if entry[1] is CONTINUES and hasattr(entry[0], "joined")]
    constructs.sort(key=lambda entry: entry[0].only_names)
    if not constructs and all(entry[0] is not ops.select for entry in entries):
        return None
    specs: dict[int, Any] = {}
    sums: Sums[int, Any] = Sums({}, lambda n: specs[n])
    for op, _, ins, outs, _, _ in constructs:
        specs.update([*zip(ins, op.inputs, strict=True), *zip(outs, op.outputs, strict=False)])
        for name, value, holds in _joined(op, ins, outs):
            if value in wanted and name and not (op.only_names and sums.is_joined(name, value)):
                sums.join(name, value, holds)
    for n, ct in cts.items():  # the targets' first cotangents count for their other names, too
        sums.add(n, ct)
    return sums


def connection(entries: Sequence[Entry], tracked: set[int], watched: set[int], number: int) -> Connection:
    """Whether a value that was recorded depends on what was watched: True, or bool scalars of which any tells.

    In a trace only running tells of what branches and loops give, and their rules say by `connected` whether it
    does: for operands and results True, False, or such scalars.
    """
    open_: dict[int, Connection] = {}
    for op, attrs, ins, outs, _, _ in entries:
        connected = [n in watched or open_.get(n, n in tracked) for n in ins]
        if attrs is CONTINUES and hasattr(op, "connected"):
            connections = op.connected(connected, surely=True)
        elif True in connected:
            for n in outs:
                open_.pop(n, None)
            continue
        else:
            parts = {id(flag): flag for x in connected if x is not False for flag in x}  # type: ignore[union-attr]
            connections = [tuple(parts.values())] * len(outs)
        for n, x in zip(outs, connections, strict=False):
            if x is True:
                open_.pop(n, None)
            elif n and n not in watched and x is not None:
                open_[n] = (*(open_.get(n) or ()), *(x or ())) or False  # type: ignore[misc]  # neither is True
    return open_.get(number, True)


def _sum(parts: list[Tensor]) -> Tensor | None:
    total = parts[0] if parts else None
    for p in parts[1:]:
        total = total + p
    return total


# -- what is played again and again ---------------------------------------------------------------
_REMEMBERED = 256  # backward passes that are remembered
_LEAST = 1  # entries from which a pass is remembered
_MOST_BYTES = 1 << 28  # a program keeps saved values to its end; played op by op, each is freed once it was read
# Seconds that compiling takes, about: for a pass, and for each entry; and reading what is on disk, with the trace.
_PRICE, _PRICE_OF_ENTRY, _PRICE_OF_READING = 0.3, 0.02, 0.05

BackwardProgram: TypeAlias = Callable[..., list[Tensor | None]]  # of the tensors of a pass in order
Compiler: TypeAlias = Callable[[Sequence[Entry], Sequence[Sequence[int]], CotangentsByNumber, bool],
                               "BackwardProgram | None"]
_compiler: list[Compiler] = []


def compile_with(compiler: Compiler) -> None:
    """Set the function that compiles backward passes.

    Args:
        compiler: from entries, the numbers of each source, the targets' cotangents, and whether only what is on disk
            will do, gives what takes all tensors of the entries in order, then the cotangents, and returns what `play`
            does; None where it cannot be had.
    """
    _compiler[:] = [compiler]


class _Pass:
    """A backward pass that was seen before.

    Attributes:
        owned: the objects whose ids are part of its key.
        price: the seconds of playing after which it is compiled, or before that, looked for on disk.
        program: what it was compiled to.
    """

    __slots__ = ("owned", "price", "seconds", "program")

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.owned = [(e[1], [x for x in (*e[4], *e[5]) if type(x) is not Tensor]) for e in entries]
        self.price = min(_PRICE_OF_READING, _PRICE)
        self.seconds = 0.0
        self.program: BackwardProgram | None = None


_passes: Recent[tuple[Hashable, ...], _Pass] = Recent(_REMEMBERED, lambda p: p.program is not None)


def gradients(entries: list[Entry], numbers: Sequence[Sequence[int]], cts: CotangentsByNumber,
              free: bool) -> list[Tensor | None]:
    """A cotangent, None or `NOTHING` for each source; see `play`.

    Args:
        entries: what was recorded.
        numbers: for each source, the numbers of the values that were read of it.
        cts: cotangents by the targets' numbers; used up.
        free: whether nobody needs the entries afterwards.
    """
    if len(entries) < _LEAST or record.active.get() or interpreter() is not dispatch.eager:
        return play(path(entries, numbers), cts, free)
    leaves: list[Tensor] = []
    recurring = _remembered(entries, numbers, cts, leaves)
    if recurring is not None and recurring.seconds > recurring.price:
        _compile(recurring, entries, numbers, cts, leaves)
    if recurring is not None and recurring.program is not None:
        if free:
            entries.clear()
        return recurring.program(*leaves)
    del leaves
    begun = perf_counter()
    way = path(entries, numbers)
    if free:
        entries.clear()  # the path goes as it is played
    cotangents = play(way, cts, free)
    if recurring is not None:
        recurring.seconds += perf_counter() - begun
    return cotangents


def _remembered(entries: Sequence[Entry], numbers: Sequence[Sequence[int]], cts: CotangentsByNumber,
           leaves: list[Tensor]) -> _Pass | None:
    """The remembered pass with the key of these entries, and in `leaves` its tensors; None where it cannot be compiled.

    Tensors count by shape and dtype and by where they come from; attributes and specs, of which all calls of an op
    with the same operands share one object, by identity.
    """
    local = {0: 0}
    key: list[Hashable] = []
    add, keep, place = key.append, leaves.append, local.setdefault
    for op, attrs, ins, outs, inputs, outputs in entries:
        if attrs is None or attrs is CONTINUES:
            return None
        add(op)
        add(id(attrs))
        for n in ins:
            add(place(n, len(local)))
        for x in inputs:
            if type(x) is Tensor:
                a = x._memory
                add(a.shape)
                add(a.dtype.num)
                keep(x)
            elif type(x) is TensorSpec:
                add(id(x))
            else:
                return None
        for n in outs:
            add(place(n, len(local)))
        for x in outputs:
            if type(x) is Tensor:
                keep(x)
            elif type(x) is not TensorSpec:
                return None
    for ns in numbers:
        add(len(ns))
        for n in ns:
            add(place(n, len(local)))
    for n, ct in cts.items():
        if type(ct) is not Tensor:
            return None
        add(place(n, len(local)))
        add(ct._memory.shape)
        add(ct._memory.dtype.num)
        keep(ct)
    fingerprint = tuple(key)
    recurring = _passes.get(fingerprint)
    if recurring is None:
        recurring = _passes.remember(fingerprint, _Pass(entries))
    return recurring


def _compile(recurring: _Pass, entries: Sequence[Entry], numbers: Sequence[Sequence[int]], cts: CotangentsByNumber,
             leaves: Sequence[Tensor]) -> None:
    """Compile a pass, if that can be: it is tried once, after a look at what is on disk."""
    price = _PRICE + _PRICE_OF_ENTRY * len(entries)
    stored = recurring.price < price
    recurring.price = price if stored else math.inf
    size = sum(t._memory.nbytes for t in leaves)
    if not _compiler or size > _MOST_BYTES:
        return
    recurring.program = _compiler[0](entries, numbers, cts, stored)
    if recurring.program is not None or not stored:
        log("gradient", f"a backward pass of {len(entries)} ops "
                        f"{'is compiled' if recurring.program is not None else 'cannot be compiled'}")
