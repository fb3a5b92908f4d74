"""Kernels that differ in sizes and places alone: one that takes these as arguments serves all.

The convolutions of a network, or the cells of a recurrence that is written out, leave many kernels of one form, and
LLVM would take its time for each. In: the kernels of a program. Out: for each, the kernel to write in its place, which
of that kernel's constants are arguments, and their values. Integers are exact, so results do not change.

Constants stay where code is made for them: as bounds of loops, in loops of known length, and as divisors and in bit
operations inside of loops.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from twofold.ir import dtypes as dt
from twofold.ir.scalar import Instr

from .loop import For, Kernel, Printer, Statement

__all__ = ["Shared", "shared"]

ALIKE = 3  # kernels from which one for all of them is worth its arguments
_MARK = re.compile(r"<(\d+)\|(-?\d+)>")
_KEPT = {"idiv", "irem", "shl", "shr", "and", "or", "xor"}


@dataclass
class Shared:
    """What to write for a kernel.

    Attributes:
        kernel: this one, or one like it.
        slots: which constants of it are arguments: number of the value -> place in args, which holds the constant less
            1, as strides are passed (`LoopBuilder.stride`).
        values: what this one adds to its args.
    """

    kernel: Kernel
    slots: Mapping[int, int] = field(default_factory=dict)
    values: tuple[int, ...] = ()


class _Form(Printer):
    """The text of a kernel in which integers that may be arguments are marked."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.kept: set[int] = set()  # constants that some code is made for
        self.depth = self.known = 0  # loops around, and those of known length

    def block(self, block: list[Statement], depth: int) -> None:
        for statement in block:
            if isinstance(statement, Instr) and statement.op == "const" and statement.out.dtype is dt.int64:
                self.names[statement.out.id] = f"<{statement.out.id}|{int(statement.const)}>"
            elif isinstance(statement, For):
                line = self.plain(self.line(statement))
                self.lines.append("  " * depth + line)
                known = re.search(r" in -?\d+\.\.-?\d+", line) is not None
                self.depth, self.known = self.depth + 1, self.known + known
                self.block(statement.body, depth + 1)
                self.depth, self.known = self.depth - 1, self.known - known
                self.lines.append("  " * depth + "}")
            else:
                before = len(self.lines)
                super().block([statement], depth)
                kept = self.known or self.depth and isinstance(statement, Instr) and statement.op in _KEPT
                if kept and not hasattr(statement, "body"):
                    self.lines[before:] = map(self.plain, self.lines[before:])

    def plain(self, line: str) -> str:
        """A line whose integers are no arguments."""
        self.kept.update(int(mark.group(1)) for mark in _MARK.finditer(line))
        return _MARK.sub(r"\2", line)


def shared(kernels: Sequence[tuple[Kernel, Hashable, int]]) -> list[Shared]:
    """What to write for each of some kernels.

    Args:
        kernels: each with what else its code depends on, and how many args it takes; two that may be one agree in it.
    """
    groups: dict[Hashable, list[tuple[int, _Form, list[tuple[int, int]]]]] = {}
    for number, (kernel, rest, count) in enumerate(kernels):
        form = _Form(kernel)
        text = form.text().removeprefix(f"kernel {kernel.name}")
        marks = [(int(m.group(1)), int(m.group(2))) for m in _MARK.finditer(text)]
        groups.setdefault((_MARK.sub("#", text), rest, count), []).append((number, form, marks))
    found = [Shared(kernel) for kernel, _, _ in kernels]
    for group in groups.values():
        if len({tuple([value for _, value in marks]) for _, _, marks in group}) >= ALIKE:
            _share(kernels, group, found)
    return found


def _share(kernels: Sequence[tuple[Kernel, Hashable, int]], group: list[tuple[int, _Form, list[tuple[int, int]]]],
           found: list[Shared]) -> None:
    """Has one kernel stand for a group of one form, where one of them tells all that differ apart."""
    columns = list(zip(*[[value for _, value in marks] for _, _, marks in group], strict=True))  # one for each place
    for number, form, marks in group:
        places: dict[int, set[tuple[int, ...]]] = {}
        for (constant, _), column in zip(marks, columns, strict=True):
            places.setdefault(constant, set()).add(column)
        varying = {constant: next(iter(ways)) for constant, ways in places.items()
                   if len(ways) == 1 and len(set(next(iter(ways)))) > 1}
        if any(len(ways) > 1 for ways in places.values()) or not form.kept.isdisjoint(varying):
            continue  # a constant of this one stands for two numbers of another
        given = list(dict.fromkeys(varying.values()))
        kernel, _, count = kernels[number]
        slots = {constant: count + given.index(way) for constant, way in varying.items()}
        for n, (member, _, _) in enumerate(group):
            found[member] = Shared(kernel, slots, tuple([way[n] - 1 for way in given]))
        return
