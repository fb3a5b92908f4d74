"""Prologues of products on a GPU: threads compute an operand from what it is made of, while they load its tiles.

Which maps become prologues is `prologues.py`'s affair. They are no kernels of their own: the product's kernel
(`gpu_gemm.py`, `gpu_conv.py`) is recorded once more, and where it would load an element of the operand it loads those
that the element is computed from. The bits are those of the map that the group would be otherwise; the operand itself
is in no memory.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .fused_base import FusedBuilder
from .fused_map import Map
from .gpu_fused import FusedTeamBuilder
from .gpu_operand import VECTOR
from .layout import Layout
from .loop import LoopBuilder, Pointer
from .operands import Run, Tiles, operand_of
from .prologues import walks
from .target import CACHES
from .units import Group

__all__ = ["TilePrologue", "begun"]


class TilePrologue(Map):
    """A group that makes an operand of a product whose kernel is being recorded."""

    def __init__(self, group: Group, value: g.Value) -> None:
        super().__init__(group, [value], {}, CACHES)
        self.value = value
        self.items = self.needed([value])
        self.sources = self.external(self.items)

    def builder(self, name: str, threads: int) -> FusedTeamBuilder:
        """The builder of the product's kernel, for a team of so many threads."""
        b = FusedTeamBuilder(name, {}, {})
        b.threads = threads
        return b

    def elements(self, b: LoopBuilder, compute: DType) -> _Computed:
        """The elements of the operand, from further arguments of the kernel."""
        assert isinstance(b, FusedBuilder)
        self.b = b
        return _Computed(self, compute)


class _ElementPart(NamedTuple):
    """What an element is computed from: memory, the first element there, and whether it moves from element to element.
    """

    memory: Pointer
    first: Scalar
    moves: bool


class _Computed:
    """Elements that are computed (`gpu_operand.Elements`)."""

    def __init__(self, prologue: TilePrologue, compute: DType) -> None:
        self.prologue, self.b, self.compute = prologue, prologue.b, compute
        self.lanes, space = VECTOR // compute.size, prologue.group.space
        self.parts = [_ElementPart(self.b.memory(s.base), self.b.number(s.layout.offset), walks(s.layout, space))
                      for s in prologue.sources]

    def near(self, at: Scalar) -> Scalar:
        b, near = self.b, self.b.const(True, dt.bool_)
        for memory, first, moves in self.parts:
            if moves:
                near = b.and_(near, b.aligned(b.at(memory, first + at), memory.dtype.size * self.lanes))
        return near

    def element(self, at: Scalar) -> Scalar:
        return self._computed([self.b.load(part.memory, part.first + at if part.moves else part.first)
                               for part in self.parts])

    def vector(self, at: Scalar) -> list[Scalar]:
        b = self.b
        loaded = [b.load(part.memory, part.first + at, self.lanes, aligned=True) if part.moves else
                  b.load(part.memory, part.first) for part in self.parts]
        return [self._computed([b.extract(x, lane) if part.moves else x
                                for x, part in zip(loaded, self.parts, strict=True)]) for lane in range(self.lanes)]

    def _computed(self, values: list[Scalar]) -> Scalar:
        of = self.prologue
        given: dict[tuple[g.Value, Layout], Scalar] = {
            (s.base, s.layout): value for s, value in zip(of.sources, values, strict=True)}
        x = of.compute_items(of.items, given)[of.value]
        return x if x.dtype is self.compute else self.b.cast(x, self.compute)


def begun(run: Run, groups: Mapping[g.Value, Group]) -> Run:
    """A run of a product, in which operands that groups make are computed as they are loaded; itself if it loads none
    of them."""
    if run.loads is None:
        return run
    places = {place: value for place in run.loads.times if (value := operand_of(run.arguments[place])) in groups}
    prologues = {place: TilePrologue(groups[value], value) for place, value in places.items() if value is not None}
    if not prologues:
        return run
    build = functools.partial(run.loads.build, beginnings=prologues)
    kernel, b = build(), next(iter(prologues.values())).b
    own = [0 if place in prologues else a for place, a in enumerate(run.arguments)]
    further = [b.arguments[n] for n in range(len(own), b.next_slot)]
    t = run.tiles
    tiles = None if t is None else Tiles(t.matrices, t.rows, t.columns, t.tall, t.wide, t.once, t.hurried, build)
    return Run(kernel, [*own, *further], run.total, run.weight, tiles=tiles)
