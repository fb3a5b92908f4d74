"""Epilogues of products on a GPU: threads go on with their parts of a tile while these are in registers.

Which maps become epilogues is `epilogues.py`'s affair. Here they are no kernels of their own: the product's kernel
(`gpu_gemm.py`, `gpu_conv.py`) is recorded once more, and where it would store its result it computes the items of the
group for each element. The bits are those of the map that the group would be otherwise. The product's own result is
stored only if somebody else needs it.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.scalar import Scalar

from .fused_base import FusedBuilder
from .fused_tile import axes_of
from .gpu_fused import FusedTeamBuilder, NeighbourMap, divides
from .gpu_tile import TilePart
from .layout import contiguous, merged
from .operands import Argument, Run, Tiles
from .target import CACHES
from .units import Group

__all__ = ["TileEpilogue", "finished"]


class TileEpilogue(NeighbourMap):
    """A group that goes on with the result of a product, whose kernel is being recorded.

    Attributes:
        kept: whether the product's own result is stored besides.
    """

    def __init__(self, group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value], product: g.Value,
                 tiles: Tiles, kept: bool) -> None:
        super().__init__(group, stored, overwrites, CACHES)
        self.product, self.tiles_of, self.kept, self._overwrites = product, tiles, kept, overwrites
        items = self.needed(self.stored)
        every = self.external(items)
        self.items = items
        self.sources = [s for s in every if s.base is not product]
        self.results = {(s.base, s.layout) for s in every if s.base is product}
        self.layouts = [*[s.layout for s in self.sources], *[contiguous(group.space)] * len(self.stored)]
        self.offsets = [*[s.layout.offset for s in self.sources], *[0] * len(self.stored)]

    def builder(self, name: str, threads: int) -> FusedBuilder:
        """The builder of the product's kernel, for a team of so many threads, or for one."""
        name, how = f"{name} then {self.name}", (self._overwrites, self.group.into)
        if threads == 1:
            self.b = FusedBuilder(name, *how)
        else:
            team = self.b = FusedTeamBuilder(name, *how)
            team.threads = threads
        return self.b

    def arguments(self, own: Sequence[Argument]) -> list[Argument]:
        """What fills the args array of the recorded kernel, of which the product's own is the beginning."""
        further = [self.b.arguments[n] for n in range(len(own), self.b.next_slot)]
        return [own[0] if self.kept else 0, *own[1:], *further]

    def element(self, number: Scalar, value: Scalar) -> None:
        """Goes on with element `number` of the result."""
        dims = merged(self.group.space, [la.strides for la in self.layouts]) or [(1, (0,) * len(self.layouts))]
        coords = self.b.split(number, [d for d, _ in dims])
        starts = self.starts(coords, [way for _, way in dims])
        self.neighbours(starts, [0] * len(starts), self.sources, self.items, None, [None],
                        [dict.fromkeys(self.results, value)])

    def starts(self, coords: Sequence[Scalar], ways: Sequence[Sequence[dm.DimLike]]) -> list[Scalar]:
        """Where operands and results lie at some coordinates, along which they move in these ways."""
        starts = []
        for n, offset in enumerate(self.offsets):
            at = self.begin(self.b.affine(None, coords, [way[n] for way in ways]), offset)
            assert at is not None
            starts.append(at)
        return starts

    def tile(self, part: TilePart, matrix: Scalar, corner: tuple[Scalar, Scalar], sizes: tuple[Scalar, Scalar],
             shift: Scalar | None = None) -> None:
        """Goes on with a thread's part of a tile.

        Args:
            matrix: the number of the matrix that the tile is of.
            corner: the row and the column at which the tile begins.
            sizes: rows and columns that there are.
            shift: the column of the result that is counted as the first one.
        """
        axes = axes_of(self.group.space, self.tiles_of)
        assert axes is not None
        b, lanes, (top, left), (height, width) = self.b, part.together, corner, sizes
        matrices, rows, columns = axes.parts(self.layouts)
        steps = columns[0][1] if columns else (0,) * len(self.layouts)
        above = [*matrices, *rows]
        fits = lanes > 1 and all(divides(lanes, n) for at, step in enumerate(steps) if step == 1
                                 for n in (self.offsets[at], *[way[at] for _, way in above]))
        near = self.near(self.places_of(self.sources), steps, lanes) if fits else None
        if near is not None and shift is not None:
            near = b.and_(near, b.eq(b.and_(shift, lanes - 1), 0))
        for row, values in zip(part.rows, part.values, strict=True):
            line = top + row  # here, not before: what is the same for all tiles would stay in registers
            with b.if_(b.lt(line, height)):
                coords = [*b.split(matrix, [d for d, _ in matrices]), *b.split(line, [d for d, _ in rows])]
                starts = self.starts(coords, [way for _, way in above])
                for first in range(0, len(values), lanes):
                    column = left + part.columns[first]
                    at = column if shift is None else shift + column
                    places = [b.affine(start, [at], [step]) for start, step in zip(starts, steps, strict=True)]
                    whole = None if near is None else b.and_(near, b.le(column + lanes, width))
                    self.neighbours(places, steps, self.sources, self.items, whole,
                                    [b.lt(column + lane, width) for lane in range(lanes)],
                                    [dict.fromkeys(self.results, value) for value in values[first:first + lanes]])


def finished(run: Run, group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value], product: g.Value,
             kept: bool) -> Run:
    """A run of a product with an epilogue, with arguments as `epilogues.finished` takes them."""
    assert run.tiles is not None and run.tiles.held is not None
    epilogue = TileEpilogue(group, stored, overwrites, product, run.tiles, kept)
    kernel = run.tiles.held(epilogue)
    return Run(kernel, epilogue.arguments(run.arguments), run.total, run.weight, tiles=run.tiles)
