"""Kernels of groups that go on with the elements of a product, tile by tile: epilogues.

A matrix product calls its epilogue for each tile of its result once the sums are complete (`gemm.py` says with which
arguments), while the tile is in the nearest cache or has no other memory. The items of the group, and the bits of their
results, are those of the map that the group would be otherwise (`fused_map.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import DimLike, Shape
from twofold.ir.scalar import Scalar

from . import gemm_shapes as gemm
from .fused_base import spans_of
from .fused_map import Map
from .layout import Dimensions, Layout, contiguous, merged
from .operands import Epilogue, Tiles
from .statements import accesses
from .target import CACHES
from .units import FusionItem, Group, Source

__all__ = ["TileAxes", "axes_of", "epilogue"]


class TileAxes(NamedTuple):
    """Which axes of a space number the rows of a product's matrices, from `rows` on, and the columns, from `columns`
    on; those before number the matrices."""

    rows: int
    columns: int

    def parts(self, layouts: Sequence[Layout]) -> list[Dimensions]:
        """How layouts over the space walk matrices, rows, and columns."""
        bounds = (0, self.rows, self.columns, len(layouts[0].shape))
        return [merged(layouts[0].shape[first:last], [layout.strides[first:last] for layout in layouts])
                for first, last in zip(bounds, bounds[1:], strict=False)]


def axes_of(space: Shape, tiles: Tiles) -> TileAxes | None:
    """How the axes of a space are those of a product's result; None where some are neither."""
    columns = next((n for n in reversed(range(len(space))) if dm.numel(space[n:]) == tiles.columns), None)
    if columns is None:
        return None
    rows = next((n for n in reversed(range(columns + 1)) if dm.numel(space[n:columns]) == tiles.rows), None)
    if rows is None or dm.numel(space[:rows]) != tiles.matrices:
        return None
    return TileAxes(rows, columns)


def epilogue(group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value], product: g.Value,
             tiles: Tiles) -> Epilogue:
    """The epilogue that computes a group.

    Args:
        group: a map over a space with `axes_of` the product.
        stored: the values of the group that others need.
        overwrites: values that are stored over an operand's memory.
        product: the result of the product.
        tiles: of the product.
    """
    return _TileMap(group, stored, overwrites, product, tiles).epilogue()


class _TileMap(Map):
    """Elementwise items over one tile."""

    def __init__(self, group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value], product: g.Value,
                 tiles: Tiles) -> None:
        super().__init__(group, stored, overwrites, CACHES)
        self.product, self.tiles_of = product, tiles
        self.b.memory(product)  # the first argument
        self.ldc, self.matrix, self.row, self.column, self.columns = (self.b.integer() for _ in range(5))

    def epilogue(self) -> Epilogue:
        """What the product takes."""
        b, space = self.b, self.group.space
        axes = axes_of(space, self.tiles_of)
        assert axes is not None
        items = self.needed(self.stored)
        sources = self.external(items)
        layouts = [*[s.layout for s in sources], *[contiguous(space)] * len(self.stored)]
        of_tile = [*[s.base is self.product for s in sources], *[False] * len(self.stored)]
        matrices, rows, columns = axes.parts(layouts)
        steps = columns[0][1] if columns else (0,) * len(layouts)
        with b.for_(b.start, b.stop) as n:
            coords = [*b.split(self.matrix, [d for d, _ in matrices]), *b.split(self.row + n, [d for d, _ in rows]),
                      self.column]
            starts = []
            for at, tile in enumerate(of_tile):
                ways = [*[way[at] for _, way in (*matrices, *rows)], steps[at]]
                starts.append(n * self.ldc if tile else b.affine(None, coords, ways))
            self.fetch(starts, rows, len(sources))
            self.row_of_tile(starts, steps, sources, items)
        work = dm.numel(space) * (1 + self.instructions() // 8)
        kernel = b.finish()
        arguments = [b.arguments[n] for n in range(gemm.TILE_WORDS, b.next_slot)]
        memory = [(value, layout) for value, layout, tile in zip(
            [*[s.base for s in sources], *self.stored], layouts, of_tile, strict=True) if not tile]
        writes = [slot - gemm.TILE_WORDS for slot in sorted(accesses(kernel)[1])]
        return Epilogue(kernel, arguments, writes, spans_of(memory, axes.columns), work)

    def row_of_tile(self, starts: list[Scalar], steps: Sequence[DimLike], sources: list[Source],
                    items: list[FusionItem]) -> None:
        """One row: of a whole tile as vectors, of one at the edge element by element."""
        b, wide = self.b, self.tiles_of.wide
        zero = b.const(0, dt.int64)
        if isinstance(self.tiles_of.columns, int) and self.tiles_of.columns % wide == 0:
            self.rows(starts, steps, sources, items, zero, b.const(wide, dt.int64))
            return
        with b.if_(b.eq(self.columns, wide)):
            self.rows(starts, steps, sources, items, zero, b.const(wide, dt.int64))
        with b.else_():
            self.rows(starts, steps, sources, items, zero, self.columns)

    def fetch(self, starts: list[Scalar], rows: Dimensions, first: int) -> None:
        """Asks for the lines that the tile below will write, where these would not come by themselves by then."""
        if len(rows) != 1 or not self.tiles_of.hurried:
            return
        b = self.b
        for at, value in enumerate(self.stored, start=first):
            below = starts[at] + b.number(rows[0][1][at], stride=True) * self.tiles_of.tall
            for n in range(0, self.tiles_of.wide, CACHES.line // value.dtype.size):
                b.prefetch(b.memory(value), below + n, write=True)
