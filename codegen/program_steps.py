"""What the entry of a program runs, in order: kernel runs as steps, and branches, loops and copies of them.

`program.py` finds them, `program_entry.py` writes them as LLVM instructions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike

from . import fused, fusion, library

__all__ = ["INTERRUPTED", "Step", "Batch", "If", "Loop", "Copy", "bytes_of", "is_shared"]

INTERRUPTED = 1 << 62  # the status of a program that a signal has ended in one of its loops


@dataclass(eq=False)
class Step:
    """One kernel run: what fills its args array, its range, and the work of an iteration."""

    kernel: Any  # loop.Kernel, or a library kernel's name and builder
    arguments: list[Any]
    total: DimLike
    weight: Any
    items: list[fusion.Item] = field(default_factory=list)
    node: g.Node | None = None
    codes: tuple[str, ...] = ()
    detail: library.Detail | None = None
    loops: tuple[g.Node, ...] = ()  # around it, the outermost first

    def memory(self) -> list[Any]:
        """The values, and other memory, that the arguments are addresses of."""
        found = [a.value if isinstance(a, library.Within) else a for a in self.arguments]
        return [a for a in found if isinstance(a, (g.Value, fused.Partial, library.Work))]

    def failed(self, status: int) -> tuple[g.Node | None, str]:
        """The node whose check a nonzero status reports, and the check's text."""
        code = self.codes[status - 1] if 0 < status <= len(self.codes) else f"status {status}"
        number, colon, text = code.partition(":")
        if colon and number.isdigit() and self.items:
            return self.items[int(number)].node, text
        return self.node, code


@dataclass(eq=False)
class Batch:
    """Independent maps run as one kernel, so that threads share the work of all: their ranges, one after another.

    args: the length of each range, then the args of each map.
    """

    parts: list[Step]

    @property
    def name(self) -> str:
        """The names of the maps."""
        return " | ".join(part.kernel.name for part in self.parts)

    def __str__(self) -> str:
        return "\n".join(str(part.kernel) for part in self.parts)


@dataclass(eq=False, slots=True)
class If:
    """Runs one of two trees of steps, as the bool in memory of `test` says."""

    test: g.Value
    then: list[Any]
    otherwise: list[Any]


@dataclass(eq=False, slots=True)
class Loop:
    """Runs `before`, and while the bool in memory of `test` holds then `body` and `before` again."""

    before: list[Any]
    test: g.Value
    body: list[Any]


@dataclass(eq=False, slots=True)
class Copy:
    """Copies the whole memory of one value to another's."""

    source: g.Value
    to: g.Value


def batch_arguments(parts: list[Step]) -> list[Any]:
    """The args of a `Batch`."""
    return [part.total for part in parts] + [a for part in parts for a in part.arguments]


def bytes_of(of: Any) -> DimLike:
    size = of.size if isinstance(of, (fused.Partial, library.Work)) else dm.numel(of.dims)
    return size * of.dtype.size


def is_shared(step: Step) -> bool:
    """Whether threads may share the work of a step."""
    work = step.total * step.weight
    alone = not isinstance(step.total, Dim) and step.total <= 1
    return not alone and (isinstance(work, Dim) or work >= library.SHARED_FROM)
