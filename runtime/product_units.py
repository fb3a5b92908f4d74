"""Into which units of work a matrix product falls, and how it reads B: the way that costs least, by `costs.py`.

A unit is some rows and columns of one product of a batch. What is chosen decides how long a product takes, never what
it gives: the order of a sum is fixed (`codegen/gemm.py`). Calls are planned in `products.py`.
"""

from __future__ import annotations

import math

from twofold.codegen import gemm_shapes as gemm
from twofold.codegen import target
from twofold.codegen.matrices import Matrices
from twofold.ir.dtypes import DType

from . import caches
from . import costs as costs_of

__all__ = ["choose"]

_FEW_THREADS = 8  # up to which it is found exactly who does what
# Of a unit: how long a thread waits until the last one is done, where they do not get as many, and where they do.
_IDLE, _LATE = 0.25, 0.1


def choose(x: Matrices, dtype: DType, count: int, often: bool, given: int | None = None,
           ready: bool = False) -> tuple[int, int, int]:
    """Rows and columns of a unit of work, and how it reads B.

    Args:
        count: how many threads there are.
        often: the same B has many products: what packing it beforehand costs is nothing.
        given: the rows of a unit that has all columns, where these are given.
        ready: whether a packed B would be there already.
    """
    shape, flat = gemm.tiling(dtype), x.m == 1
    width = gemm.panel_width(shape, flat)
    readable = x.b[1] == 1 and shape.masks and gemm.summed(dtype) is dtype
    if flat:
        batches = x.batches
        share = math.ceil(math.ceil(x.n / width) / max(math.ceil(count / batches), 1))
        mode = gemm.DIRECT if readable else gemm.TURNED if x.b[0] == 1 and shape.masks else gemm.HERE
        mode = gemm.PACKED if ready else mode
        return 1, max(share, 1) * width, mode
    search = _UnitSearch(x, dtype, count, often, ready)
    mode = search.mode(readable, given)
    if given is not None:
        return given, search.panels * width, mode
    units = [(tall, wide) for tall in search.heights() for wide in search.widths()]
    rows, wide = min(units, key=lambda unit: search.cost(unit[0], unit[1], mode))  # of equal ones the first
    return rows, wide * width, mode


class _UnitSearch:
    """The cost of the ways to take a product of several rows; what the names mean, `choose` says."""

    def __init__(self, x: Matrices, dtype: DType, count: int, often: bool, ready: bool) -> None:
        self.x, self.count, self.often, self.ready = x, count, often, ready
        host = target.current().is_host  # another processor's costs are not measured here
        self.costs = costs_of.current() if host else costs_of.USUAL
        if (held := gemm.together(dtype)) == 4:  # a step multiplies four of them, packing takes as many instructions
            self.costs = self.costs._replace(pack_a=held * self.costs.pack_a, pack_b=held * self.costs.pack_b,
                                             start=held * self.costs.start)
        self.shape = gemm.tiling(dtype)
        self.limit = gemm.tiles_at_once(self.shape, dtype, x.k)
        self.batches = x.batches
        self.panels = -(-x.n // gemm.panel_width(self.shape, False))
        self.lies = 1 in x.a and gemm.summed(dtype) is dtype  # A need not be packed
        self.first, self.again, packing = self._reads(caches.of_host() if host else target.CACHES, dtype.size)
        self.packed = self.batches * self.panels * (self.costs.pack_b + packing) / count * x.k

    def _reads(self, near: target.Caches, size: int) -> tuple[float, float, float]:
        """What reading a panel of B as it lies costs for each unit and for each tile, and what packing it costs more
        than packing a near one."""
        x, costs = self.x, self.costs
        far = costs.far if x.k * x.n * size > near.second else 0.0
        rows, stride = min(x.k, gemm.BLOCK), abs(x.b[0]) * size
        if rows <= near.rows_held(stride):
            return costs.near + far, 0.0, far
        fits = 2 * rows <= near.rows_held(stride, second=True)  # A and C are there, too
        return costs.near + far, costs.crowded if fits else costs.thrashed, far

    def heights(self) -> list[int]:
        """Rows that units may have, the best of equal ones first: of the tallest tiles, or as near to equal parts as
        the shortest allow."""
        m, tall, short = self.x.m, self.shape.tall, self.shape.heights[-1]
        tiles = -(-m // tall)
        least = -(-tiles // self.limit)
        heights = {self.shape.heights[1]} if self.often else set()
        for parts in range(least, min(2 * least + 2 * self.count, tiles) + 1):
            heights |= {-(-tiles // parts) * tall, -(-m // (parts * short)) * short}
        return sorted([rows for rows in heights if rows <= self.limit * tall], reverse=not self.often)

    def widths(self) -> list[int]:
        """Panels that units may have."""
        return sorted({-(-self.panels // parts) for parts in range(1, self.count + 1)})

    def mode(self, readable: bool, given: int | None) -> int:
        """How B is read: as costs least for units of the given rows, or for the tallest, since their shape matters
        little here."""
        if self.often:
            return gemm.PACKED
        rows, wide = (max(self.heights()), self.widths()[0]) if given is None else (given, self.panels)
        return min((gemm.DIRECT if readable else gemm.HERE, gemm.PACKED), key=lambda mode: self.cost(rows, wide, mode))

    def cost(self, tall: int, wide: int, mode: int) -> float:
        """The cost of units of so many rows and panels."""
        costs, of_a = self.costs, 0.0 if self.lies else self.costs.pack_a
        if mode == gemm.DIRECT:
            return self._longest(tall, wide, self.first, self.again, of_a)
        if mode == gemm.HERE:
            return self._longest(tall, wide, costs.near, 0.0, of_a) + -(-self.x.m // tall) * self.packed
        longest = self._longest(tall, wide, costs.near, 0.0, costs.pack_a)
        if self.often:  # threads that share columns read what others have made before
            return longest + (wide < self.panels) * self.x.m * costs.foreign * self.x.k
        if self.ready:
            return longest
        lines = self.batches * self.panels * gemm.VECTORS * self.x.k  # of packed B, most from where others packed them
        return longest + self.packed + lines * costs.foreign_b * (1 - 1 / self.count) + costs.start

    def _longest(self, tall: int, wide: int, first: float, again: float, packing: float) -> float:
        """The work of the busiest thread where reading a panel costs `first` for a unit, and `again` for each tile, and
        packing a tile of A `packing`."""
        rows, columns = -(-self.x.m // tall), -(-self.panels // wide)
        units = []
        for height_count, high in ((rows - 1, tall), (1, self.x.m - (rows - 1) * tall)):
            tiles = -(-high // self.shape.tall)
            panel = _cost(high, self.shape, self.costs.tile) + first + tiles * again
            units += [(self.batches * height_count * width_count, long * panel + tiles * packing)
                      for width_count, long in ((columns - 1, wide), (1, self.panels - (columns - 1) * wide))]
        costs = {cost for number, cost in units if number}
        even = len(costs) == 1 and sum(number for number, _ in units) % self.count == 0
        share = _IDLE if not even else 0.0 if self.often else _LATE
        idle = max(costs) * share if self.count > 1 else 0.0
        return (_longest(units, self.count) + idle) * self.x.k


def _longest(units: list[tuple[int, float]], count: int) -> float:
    """The work of the busiest of `count` threads that share `units`: pairs of how many equal units there are and the
    cost of one, the largest first."""
    if count > _FEW_THREADS:
        return max(sum(n * cost for n, cost in units) / count, *[-(-n // count) * cost for n, cost in units])
    loads = [0.0] * count
    for number, cost in units:
        each, rest = divmod(number, count)
        loads = sorted([load + each * cost for load in loads])
        for n in range(rest):
            loads[n] += cost
    return max(loads)


def _cost(rows: int, shape: gemm.Tiling, tile: float) -> float:
    """The cost of the tiles for so many rows, for each panel and inner index; `tile` as in `Costs`."""
    whole, rest = divmod(rows, shape.tall)
    last = min(h for h in shape.heights if h >= rest) + tile if rest else 0.0
    return whole * (shape.tall + tile) + last
