"""The kernels of matrix products as they are in the first tier: short ones, which are made in a fraction of the time.

They take and mean what `gemm.py` says, and may stand for the tiled ones (`gemm_kernels.py`) in any run: units, panels
of B and the order of additions are the same, hence the bits. What they leave out is what makes those quick: rows of A
are read wherever they lie, a few at a time; B is packed an element at a time where it cannot be copied; and a product
of one row packs a B that is TURNED.
"""

from __future__ import annotations

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from . import gemm_kernels
from .gemm_kernels import ProductKernel, ProductPanel, Unit, UnitRows
from .gemm_pack import HIGHEST, beginnings, pack
from .gemm_shapes import FLAT_VECTORS, TURNED, VECTORS, Tiling, most_packed, together
from .gemm_tile import micro
from .loop import Kernel, LoopFunction

__all__ = ["kernels"]


def kernels(dtype: DType, shape: Tiling, part: str) -> dict[str, Kernel]:
    """The kernels of a key of PARTS, by name, for tile shapes (`gemm_shapes.first_tier`)."""
    if part == "flat":
        packing = pack(shape, dtype)
        return {"flat": _FirstFlat(dtype, shape, packing, None, "flat").recorded(),
                "pack_flat": gemm_kernels.pack_flat(dtype, shape, packing)}
    held = together(dtype)
    packing, begin = pack(shape, dtype, held), beginnings(shape) if held == 4 else None
    tall = _FirstTall(dtype, shape, packing, begin, "tall").recorded()
    return {"tall": tall, "pack_b": gemm_kernels.pack_b(dtype, shape, packing, begin),
            "small": gemm_kernels.small(dtype, shape, tall)}


class _First(ProductKernel):
    """Products whose A is packed only where it must be widened, all rows of a unit as one panel.

    Attributes:
        vectors: of a panel of B.
    """

    vectors: int

    def __init__(self, dtype: DType, shape: Tiling, packing: LoopFunction, begin: LoopFunction | None,
                 name: str) -> None:
        super().__init__(dtype, shape, packing, begin, name)
        self.heights = (1,) if name == "flat" else shape.heights
        self.tiles = {rows: micro(shape, self.compute, rows, self.vectors, held=self.held) for rows in self.heights}

    def whole(self, rows: Scalar) -> Scalar:
        """The width of a panel of so many rows: whole vectors."""
        return self.b.and_(rows + (self.shape.lanes - 1), -self.shape.lanes)

    def room_for_rows(self) -> tuple[Scalar, int]:
        if self.plain:
            return self.b.const(0, dt.int64), 0
        width = self.whole(self.b.minimum(self.x.m, self.x.rows))
        return width * self.words(self.b.minimum(self.x.k, self.block_size)), most_packed(self.shape, self.dtype)

    def words(self, depth: Scalar) -> Scalar:
        """The words that hold so many inner indices."""
        return (depth + (self.held - 1)) >> self.held.bit_length() - 1 if self.held > 1 else depth

    def rows(self, unit: Unit, of: UnitRows) -> None:
        """All of them become one panel, if any does."""
        if not self.plain:
            flipped = [self.b.const(HIGHEST, dt.int32)] if self.held == 4 else []
            self.b.invoke(self.packing, self.left, self.whole(unit.rows), of.source, self.x.a_m, self.x.a_k, unit.rows,
                          of.depth, *flipped)

    def columns(self, unit: Unit, of: UnitRows, panel: ProductPanel) -> None:
        """The tiles of C beside one panel of B: tall ones, and then lower ones of what is left."""
        b, done = self.b, self.b.local(0)
        for rows in self.heights:
            with b.for_(done.get(), unit.rows - (rows - 1), rows) as row:
                self.tile(unit, of, panel, row, rows)
                done.set(row + rows)

    def tile(self, unit: Unit, of: UnitRows, panel: ProductPanel, row: Scalar, rows: int) -> None:
        """The tile of some rows from `row` on."""
        b, x = self.b, self.x
        a = (b.at(of.source, row * x.a_m), x.a_m, x.a_k) if self.plain else \
            (b.at(self.left, row), 1, self.whole(unit.rows))
        out, ldc = self.tile_of_c(panel, row)
        old, ldo = b.select(of.fresh, b.at(self.zeros, 0), out), b.select(of.fresh, 0, ldc)
        b.invoke(self.tiles[rows], *a, panel.base, panel.ldb, old, ldo, out, ldc, self.words(of.depth), rows,
                 panel.columns, panel.base)
        self.finish(unit, of, panel, (out, ldc), row, b.const(rows, dt.int64))


class _FirstTall(_First):
    """Products of any height."""

    vectors = VECTORS

    def sizes(self) -> None:
        super().sizes()
        self.prepare_epilogue()


class _FirstFlat(_First):
    """Products of one row."""

    vectors = FLAT_VECTORS

    def tile_of_c(self, panel: ProductPanel, row: Scalar) -> tuple[Scalar, Scalar]:
        return self.b.at(panel.out, row * self.x.ldc), self.x.ldc

    def finish(self, *_: object) -> None:
        """Products of one row have no epilogues."""

    def sizes(self) -> None:
        super().sizes()
        self.here = self.b.or_(self.here, self.b.eq(self.x.mode, TURNED))
