"""Kernels that differ in sizes and places alone: one that takes these as arguments serves all.

The convolutions of a network, or the cells of a recurrence that is written out, leave many kernels of one form, and
LLVM would take its time for each. In: the kernels of a program. Out: for each, the kernel to write in its place, which
of that kernel's constants are arguments, and their values. Integers are exact, so results do not change.

Constants stay where code is made for them: as bounds of loops, in loops of known length, and as divisors and in bit
operations in loops that have no loops over rows inside. Of arguments that are known, such as the sizes of a window,
those that kernels agree in stay known, and small ones, for which loops are written out.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from twofold.ir import dtypes as dt
from twofold.ir.data_class import data_class, field
from twofold.ir.scalar import Instr

from .statements import For, If, Kernel, Printer, Room, Statement, blocks, walk

__all__ = ["Candidate", "Ranges", "Shared", "shared"]

ALIKE = 2  # kernels from which one for all of them is worth its arguments
_SMALL = 8  # known arguments below it tell kernels apart
_MARK = re.compile(r"<(\d+)\|(-?\d+)>")
_FIXED = {"idiv", "irem", "shl", "shr", "and", "or", "xor"}


@data_class()
class Shared:
    """The kernel to write in the place of one.

    Attributes:
        kernel: that one itself, or another of the same form.
        slots: which constants of it are arguments: number of the value -> place in args, which holds the constant less
            1, as strides are passed (`LoopBuilder.stride`).
        values: the constants that its run passes behind its other args.
        numbers: the arguments that code may take as known, by their place in args.
    """

    kernel: Kernel
    slots: Mapping[int, int] = field(default_factory=dict)
    values: tuple[int, ...] = ()
    numbers: Mapping[int, int] = field(default_factory=dict)


class Ranges(NamedTuple):
    """The ranges that a kernel runs over, as far as its code depends on them.

    Attributes:
        short: whether they are short.
        alone: whether they are [0, 1).
    """

    short: bool
    alone: bool


class Candidate(NamedTuple):
    """A run of a kernel that may share its code with other runs.

    Attributes:
        kernel: what runs.
        ranges: kernels that may be one agree in them.
        takes: how many args it takes.
        numbers: those that are known integers, by their place.
    """

    kernel: Kernel
    ranges: Ranges
    takes: int
    numbers: Mapping[int, int]


class _Form(Printer):
    """The text of a kernel in which integers that may be arguments are marked."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.fixed: set[int] = set()  # constants that some code is made for
        self.counted = 0  # loops around of known length
        self.levels: list[int] = []  # of loops inside of each loop around

    def block(self, block: list[Statement], depth: int) -> None:
        for statement in block:
            if isinstance(statement, Instr) and statement.op == "const" and statement.out.dtype is dt.int64:
                self.names[statement.out.id] = f"<{statement.out.id}|{int(statement.const)}>"
            elif isinstance(statement, For):
                line = self.plain(self.line(statement))
                self.lines.append("  " * depth + line)
                counted = re.search(r" in -?\d+\.\.-?\d+", line) is not None
                self.counted += counted
                self.levels.append(_levels(statement.body))
                self.block(statement.body, depth + 1)
                self.levels.pop()
                self.counted -= counted
                self.lines.append("  " * depth + "}")
            else:
                before = len(self.lines)
                super().block([statement], depth)
                inner = bool(self.levels) and self.levels[-1] < 2  # what is done for a row or an element
                fixed = self.counted or inner and isinstance(statement, Instr) and statement.op in _FIXED
                if fixed and not hasattr(statement, "body"):
                    self.lines[before:] = map(self.plain, self.lines[before:])

    def plain(self, line: str) -> str:
        """A line whose integers are no arguments."""
        self.fixed.update(int(mark.group(1)) for mark in _MARK.finditer(line))
        return _MARK.sub(r"\2", line)


def _levels(block: list[Statement]) -> int:
    """How deep loops are nested in a block."""
    inner = [_levels(b) + isinstance(s, For) for s in block if isinstance(s, (For, If, Room)) for b in blocks(s)]
    return max(inner, default=0)


class _FormMember(NamedTuple):
    """A run in a group of one form: its number, the form, and the constants marked in it with their values."""

    number: int
    form: _Form
    marks: list[tuple[int, int]]

    @property
    def constants(self) -> tuple[int, ...]:
        """The values of the constants, place by place."""
        return tuple([value for _, value in self.marks])


def shared(runs: Sequence[Candidate]) -> list[Shared]:
    """For each run, the kernel to write in the place of its own."""
    rough: dict[Hashable, list[int]] = {}  # what can be told without texts, which take far longer
    for number, run in enumerate(runs):
        small = frozenset((slot, n if abs(n) < _SMALL else None) for slot, n in run.numbers.items())
        length = sum(not (isinstance(s, Instr) and s.op == "const") for s in walk(run.kernel.body))
        rough.setdefault((run.ranges, run.takes, small, length), []).append(number)
    kernels = [Shared(run.kernel, numbers=run.numbers) for run in runs]
    for numbers in rough.values():
        if len(numbers) < ALIKE:
            continue
        groups: dict[str, list[_FormMember]] = {}
        for number in numbers:
            kernel = runs[number].kernel
            form = _Form(kernel)
            text = form.text().removeprefix(f"kernel {kernel.name}")
            marks = [(int(m.group(1)), int(m.group(2))) for m in _MARK.finditer(text)]
            groups.setdefault(_MARK.sub("#", text), []).append(_FormMember(number, form, marks))
        for group in groups.values():
            _settle(runs, group, kernels)
    return kernels


def _settle(runs: Sequence[Candidate], group: list[_FormMember], kernels: list[Shared]) -> None:
    """Decides what to write for a group of one form: one kernel for all, or for those with the same known arguments."""
    numbers = [runs[m.number].numbers for m in group]
    variants = {(m.constants, tuple(sorted(own.items()))) for m, own in zip(group, numbers, strict=True)}
    if len(variants) < ALIKE or _share(runs, group, kernels):
        return
    parts: dict[Hashable, list[_FormMember]] = {}
    for member, own in zip(group, numbers, strict=True):
        parts.setdefault(tuple(sorted(own.items())), []).append(member)
    if len(parts) > 1:
        for part in parts.values():
            _settle(runs, part, kernels)


def _share(runs: Sequence[Candidate], group: list[_FormMember], kernels: list[Shared]) -> bool:
    """Shares one kernel among a group of one form, if one of its kernels has a constant of its own for each number that
    differs between them; returns whether there is one."""
    columns = list(zip(*[m.constants for m in group], strict=True))  # one for each place
    agreed = {slot: n for slot, n in runs[group[0].number].numbers.items()
              if all(runs[m.number].numbers[slot] == n for m in group)}
    for member in group:
        places: dict[int, set[tuple[int, ...]]] = {}
        for (constant, _), column in zip(member.marks, columns, strict=True):
            places.setdefault(constant, set()).add(column)
        varying = {constant: next(iter(ways)) for constant, ways in places.items()
                   if len(ways) == 1 and len(set(next(iter(ways)))) > 1}
        if any(len(ways) > 1 for ways in places.values()) or not member.form.fixed.isdisjoint(varying):
            continue  # a constant of this one stands for two numbers of another
        arguments = list(dict.fromkeys(varying.values()))
        run = runs[member.number]
        slots = {constant: run.takes + arguments.index(way) for constant, way in varying.items()}
        for n, other in enumerate(group):
            kernels[other.number] = Shared(run.kernel, slots, tuple([way[n] - 1 for way in arguments]), agreed)
        return True
    return False
