"""Structured nodes that programs run natively: kernels shared by all programs, reached through their address.

A library kernel is compiled once and kept like any eager kernel; a program's entry finds its address in a table. Both
modes call the same machine code, so their results agree to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twofold.ir import graph as g
from twofold.ir.dims import DimLike
from twofold.ir.dtypes import DType

__all__ = ["Library", "Work", "Within", "Run", "Detail", "handles", "register_placed", "is_placed", "placed",
           "provide", "address", "SHARED_FROM"]

SHARED_FROM = 1 << 16  # simple operations from which threads share a step's work: a program of fewer needs no threads


@dataclass(frozen=True, slots=True)
class Library:
    """A kernel outside of the program: its key is a kind that somebody provides, then text and numbers."""

    key: tuple[Any, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Work:
    """Scratch memory of a step: `size` elements of `dtype`."""

    dtype: DType
    size: DimLike


@dataclass(frozen=True, eq=False, slots=True)
class Within:
    """A place in the memory of `value`: `offset` elements from its beginning."""

    value: Any
    offset: DimLike


@dataclass(frozen=True, eq=False, slots=True)
class Detail:
    """What tells, once a check has failed, more than its text does.

    `codegen/kernels/indexing.py: detail` makes the text, from `kind`, the arrays that `arrays` describe, (a `Within`,
    its shape) each, and the integers `sizes`.
    """

    kind: str
    arrays: tuple[tuple[Within, tuple[Any, ...]], ...]
    sizes: tuple[DimLike, ...] = ()


@dataclass(eq=False, slots=True)
class Run:
    """A kernel run as a lowering asks for it: what fills its args array, its range, and the work of an iteration.

    fixed: it does the same in every round of the loop around it, and may run once, before.
    """

    kernel: Any  # a loop.Kernel or a Library
    arguments: list[Any]
    total: DimLike
    weight: Any
    detail: Detail | None = None
    fixed: bool = False

    def values(self) -> list[g.Value]:
        """The values whose memory the kernel gets."""
        found = [a.value if isinstance(a, Within) else a for a in self.arguments]
        return [a for a in found if isinstance(a, g.Value)]


_PROVIDERS: dict[str, Callable[..., int]] = {}
_PLACED: dict[str, tuple[Callable[[g.Node], bool], Callable[[Any, g.Node], None]]] = {}


def provide(kind: str, load: Callable[..., int]) -> None:
    """Lets programs use the library kernels of `kind`: `load(*rest of the key)` gives their address in this process."""
    _PROVIDERS[kind] = load


def address(key: tuple[Any, ...]) -> int:
    """The address of a library kernel."""
    return _PROVIDERS[key[0]](*key[1:])


def register_placed(name: str, handles: Callable[[g.Node], bool], place: Callable[[Any, g.Node], None]) -> None:
    """Lets programs run op `name` where `handles(node)`; `place(fuser, node)` puts it into the plan.

    See `codegen/structured.py: Placer` for what a plan takes.
    """
    _PLACED[name] = handles, place


def is_placed(name: str) -> bool:
    """Whether some nodes of op `name` can be put into a plan."""
    return name in _PLACED


def placed(node: g.Node) -> Callable[[Any, g.Node], None] | None:
    """What puts a structured node into a plan; None where it is a unit as it is."""
    found = _PLACED.get(node.op.name)
    return found[1] if found is not None and found[0](node) else None


def handles(node: g.Node) -> bool:
    """Whether a program can run a structured node."""
    found = _PLACED.get(node.op.name)
    return found is not None and found[0](node)
