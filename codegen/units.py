"""The results of fusion: the units of a graph in order, each a group of ops that share a kernel, or a node by itself.

Data alone. Which nodes are put together is `fusion.py`'s affair, what becomes of a unit the planner's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.data_class import data_class, field
from twofold.ir.dims import Dim, DimLike, Shape
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Reduction, ScalarBody
from twofold.ir.types import Attrs

from . import reduce
from .layout import Layout
from .operands import Run, Slot

__all__ = ["Source", "FusionItem", "Group", "Single", "About", "Apart", "Grouping", "by_rows", "scalar_constant",
           "is_inline"]

_SHORT = reduce.CHUNK  # elements of a row that several passes go over
_ROWS = 8  # rows from which passes over each are worth it


@data_class(frozen=True)
class Source:
    """Where an operand comes from: the value that holds the memory, and where its elements lie in it."""

    base: g.Value
    layout: Layout


@data_class(eq=False)
class FusionItem:
    """One node inside a group, or a copy that a view needs."""

    name: str
    sources: list[Source]
    outs: list[g.Value]
    attrs: Attrs
    body: ScalarBody | None
    reduction: Reduction | None
    node: g.Node | None
    into: Source | None = None  # where in the memory of another value the one result goes


@data_class(eq=False)
class Group:
    """Items over one index space; `axes` are the reduced ones, or None where nothing is reduced."""

    at: int
    space: Shape
    axes: tuple[int, ...] | None = None
    items: list[FusionItem] = field(default_factory=list)
    outer: set[g.Value] = field(default_factory=set)
    full: dict[g.Value, int] = field(default_factory=dict)  # with the pass in which it can be computed first
    reads: set[g.Value] = field(default_factory=set)
    into: dict[g.Value, Source] = field(default_factory=dict)  # values that are parts of others
    read: bool = False  # whether other units read what it makes
    passes: dict[g.Value, int] = field(default_factory=dict)  # of outer values: the pass after which they are known

    @property
    def unreduced(self) -> Shape:
        """The sizes that are not reduced."""
        gone = self.axes or ()
        return tuple([d for n, d in enumerate(self.space) if n not in gone])

    def reduced(self) -> set[g.Value]:
        """The values that reductions take, and those that these are computed from."""
        values: set[g.Value] = set()
        for item in reversed(self.items):
            if item.reduction is not None or not values.isdisjoint(item.outs):
                values.update(s.base for s in item.sources)
        return values

    @property
    def rowwise(self) -> bool:
        """Whether the group may go over its rows in several passes."""
        return self.axes is not None and by_rows(self.space, self.axes)


@data_class(eq=False)
class Single:
    """A node that is a unit of its own, or a part of one, with its operands and the values that it fills.

    `runs` are its kernels; control flow has none. `epilogue` is the group that goes on with the result of the last
    one, tile by tile (`epilogues.py`), `prologues` are those that make operands of them while these are loaded, by the
    operand (`prologues.py`).
    """

    at: int
    node: g.Node
    sources: list[Source]
    outs: list[g.Value]
    runs: list[Run] = field(default_factory=list)
    epilogue: Group | None = None
    prologues: dict[g.Value, Group] = field(default_factory=dict)

    @property
    def groups(self) -> list[Group]:
        """Those that are part of it, in the order in which they are computed."""
        return [*self.prologues.values(), *([] if self.epilogue is None else [self.epilogue])]


About: TypeAlias = g.Value | Shape | str | int  # an operand of the text that says why two units are apart


class Apart(NamedTuple):
    """Why a reader of a value is not in the unit that makes the value: a text with places for operands, and the
    operands.

    reader: an item of a group, or a unit that is none.
    """

    value: g.Value
    reader: FusionItem | Single
    text: str
    about: Sequence[About]


@data_class(eq=False)
class Grouping:
    """The units in order, the source of every value, which values lie in slots, what kept units apart, as it was
    decided, which values are worth packing once for many runs, if they stay the same, and which are copies of a piece
    of another one's memory."""

    units: list[Group | Single]
    sources: dict[g.Value, Source]
    slots: dict[g.Value, Slot]
    apart: list[Apart]
    packed: set[g.Value] = field(default_factory=set)
    pieces: dict[g.Value, Source] = field(default_factory=dict)

    def number(self) -> None:
        """Numbers the units by their places."""
        for at, unit in enumerate(self.units):
            unit.at = at
            for group in unit.groups if isinstance(unit, Single) else ():
                group.at = at

    def reasons(self) -> dict[g.Value, str]:
        """For each value that one unit leaves in memory for others, why the last of them is not one with it."""
        home: dict[g.Value, Group | Single] = {}
        readers: dict[FusionItem | Single, Group | Single] = {}
        for unit in self.units:
            if isinstance(unit, Single):
                home.update(dict.fromkeys(unit.outs, unit))
            for group in unit.groups if isinstance(unit, Single) else [unit]:
                readers.update(dict.fromkeys(group.items, unit))
                home.update((v, unit) for item in group.items for v in item.outs)
        return {a.value: a.text.format(*map(_in_words, a.about)) for a in self.apart
                if home.get(a.value) is not readers.get(a.reader, a.reader)}


def _in_words(part: About) -> str:
    """A part of a reason in words: the op that makes a value, a shape."""
    if isinstance(part, g.Value):
        return "a copy" if part.node is None else part.node.op.name
    return f"[{','.join(map(str, part))}]" if isinstance(part, tuple) else str(part)


def by_rows(space: Sequence[DimLike], axes: Sequence[int]) -> bool:
    """Whether the reduced axes are the last ones and short, of known size, and there are rows enough."""
    first = len(space) - len(axes)
    if tuple(axes) != tuple(range(first, len(space))):
        return False
    count, rows = dm.numel(space[first:]), dm.numel(space[:first])
    if isinstance(count, Dim) or count > _SHORT:
        return False
    return isinstance(rows, Dim) or rows >= _ROWS or rows * count <= _SHORT


def scalar_constant(value: g.Value) -> complex | None:
    """The one element of a constant as a Python number; None where the value is anything else."""
    array = g.constant_of(value)
    if array is None or array.size != 1 or array.dtype == object:
        return None
    item: complex = array.reshape(-1).astype(_wide(value.dtype))[0].item()
    return item


def is_inline(value: g.Value) -> bool:
    """Whether kernels hold the value themselves: a scalar constant, or a size."""
    return (value.node is not None and value.node.op is g.SIZE) or scalar_constant(value) is not None


def _wide(dtype: DType) -> np.dtype:
    return dtype.compute.np
