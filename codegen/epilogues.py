"""Which maps become the epilogue of a matrix product: they go on with its result tile by tile.

A map over the elements of a product's result (a bias, an activation, a residual, a cast) reads and writes all of it
once more, where one behind the other. As the product's epilogue it gets each tile while that is in the nearest cache,
and where nobody else needs the product's result, and its sums are of one block, that result is in no memory at all.

In: the units of a graph in order. Out: the same, with such groups in their products' units, at the place of the
product. So all else that a group reads must be there before the product; what it reads may not be needed longer than it
was, where the group is to take over its memory. `fused_tile.py` makes the kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence

from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike, numel
from twofold.ir.passes.failing import may_fail
from twofold.ir.scalar import Instr

from . import fused_tile, gemm_shapes
from .fused_base import FusedBuilder
from .layout import Layout, contiguous
from .operands import Argument, Blocking, Epilogue, Rows, Run, Tiles, Within
from .target import Caches
from .units import Group, Grouping, Single, is_inline

__all__ = ["attach", "finished", "instructions"]

_LEAST = 1 << 12  # elements of a result from which a step of its own costs more than handing over its tiles
_LIGHT = 24  # instructions for an element up to which two vectors side by side keep the processor busy
_NEAR = 2  # times what the second cache holds: what is surely near
_OPERANDS = 8  # of an epilogue in memory, and as many results: far fewer than it has room for args


def attach(grouping: Grouping, inputs: Sequence[g.Value], outputs: Sequence[g.Value], donate: Mapping[int, int],
           caches: Caches) -> None:
    """Makes groups of a graph epilogues of its products.

    Args:
        grouping: the units, which are changed.
        inputs: of the graph.
        outputs: the values whose memory its results are.
        donate: output number -> number of an input whose memory it may take.
        caches: that what epilogues read and write may have to fit in.
    """
    donors = {outputs[n]: inputs[of] for n, of in donate.items()}
    finder = _Finder(grouping, outputs, donors, _NEAR * caches.second)
    taken = [finder.take(unit) for unit in list(grouping.units) if isinstance(unit, Single)]
    gone = {id(group) for group in taken if group is not None}
    grouping.units[:] = [unit for unit in grouping.units if id(unit) not in gone]
    grouping.number()


class _Finder:
    """The units of a graph, with who makes and reads what."""

    def __init__(self, grouping: Grouping, outputs: Sequence[g.Value], donors: Mapping[g.Value, g.Value],
                 near: int) -> None:
        """Args:
            outputs: as for `attach`.
            donors: the inputs whose memory values may take.
            near: bytes that the caches hold.
        """
        self.grouping, self.units, self.donors, self.near = grouping, grouping.units, donors, near
        self.outputs = set(outputs)
        self.made: dict[g.Value, int] = {}
        self.readers: dict[g.Value, list[int]] = {}
        for at, unit in enumerate(self.units):
            values = unit.outs if isinstance(unit, Single) else \
                [*unit.full, *unit.outer, *[s.base for s in unit.into.values()]]
            self.made.update(dict.fromkeys(values, at))
            for base in dict.fromkeys(_reads(unit)):
                self.readers.setdefault(base, []).append(at)

    def take(self, product: Single) -> Group | None:
        """Makes a group the epilogue of a unit, if there is one for it; gives the group."""
        if not product.runs or product.runs[-1].tiles is None or len(product.outs) != 1:
            return None
        for at in self.readers.get(product.outs[0], ()):
            group = self.units[at]
            if isinstance(group, Group) and self.pays(product, group, product.runs[-1].tiles) and \
                    self.is_free(product, group):
                product.epilogue = group
                self.move(group, product.at)
                return group
        return None

    def move(self, group: Group, at: int) -> None:
        """Notes that a group runs at another place."""
        for value in group.full:
            self.made[value] = at
        for base in dict.fromkeys(_reads(group)):
            self.readers[base] = sorted(at if n == group.at else n for n in self.readers[base])

    def pays(self, product: Single, group: Group, tiles: Tiles) -> bool:
        """Whether a group goes over the elements of a product's result in their order, and costs less as its
        epilogue."""
        size, axes = numel(group.space), fused_tile.axes_of(group.space, tiles)
        if group.axes is not None or group.into or axes is None or not _is_worth(size, tiles):
            return False
        if any(value.dtype.is_complex for value in (*group.reads, *group.full)):
            return False
        operands = {(s.base, s.layout) for item in group.items for s in item.sources
                    if not is_inline(s.base) and s.base not in group.full}
        if max(len(operands), len(group.full)) > _OPERANDS or not all(
                _walks(layout, group, base) for base, layout in operands if base in product.outs):
            return False
        along = axes.parts([contiguous(group.space), *[layout for _, layout in operands]])[2]
        return len(along) < 2 and self.is_near(product, group, tiles, axes, operands) and instructions(group) <= _LIGHT

    def is_near(self, product: Single, group: Group, tiles: Tiles, axes: fused_tile.TileAxes,
                operands: Collection[tuple[g.Value, Layout]]) -> bool:
        """Whether all that a group goes over element by element is one result, or fits into the caches: tiles of
        several arrays come slower from memory than their rows, one after another. Where tiles are in registers, and
        memory is read by many threads, that makes no difference."""
        if tiles.held is not None:
            return True
        values = [value for value in (*product.outs, *group.full) if value in self.outputs or any(
            at != group.at for at in self.readers.get(value, ()))]
        values += {base for base, layout in operands if base not in product.outs and all(
            any(way[0] != 0 for _, way in part) for part in axes.parts([layout])[1:])}
        total: DimLike = 0
        for value in values:
            total = total + numel(value.dims) * value.dtype.size
        return len(values) < 2 or not isinstance(total, Dim) and total <= self.near

    def is_free(self, product: Single, group: Group) -> bool:
        """Whether a group may run at the place of a product, and finds all that it reads there."""
        slots, own = self.grouping.slots, product.outs[0]
        if own in slots or not slots.keys().isdisjoint(group.full) or any(
                item.node is not None and may_fail(item.node) for item in group.items):
            return False
        for base in group.reads:
            if base not in group.full and base is not own and (base in slots or self.made.get(base, -1) >= product.at):
                return False
        donors = {self.donors[value] for value in group.full if value in self.donors}
        return not any(self.loses(product, group, donor) for donor in donors & group.reads)

    def loses(self, product: Single, group: Group, donor: g.Value) -> bool:
        """Whether a group can take over the memory of an input at its own place, and not at the product's: there others
        still need it, or what fails behind would leave it changed."""
        others = [at for at in self.readers[donor] if at != group.at]
        if any(at > group.at for at in others):
            return False
        return any(at >= product.at for at in others) or any(
            may_fail(node) for unit in self.units[product.at:group.at] for node in _nodes(unit))


def _reads(unit: Group | Single) -> Iterator[g.Value]:
    """The memory that a unit reads, apart from what it makes itself."""
    if isinstance(unit, Single):
        yield from [s.base for s in unit.sources]
    else:
        yield from [base for base in unit.reads if base not in unit.full and base not in unit.outer]


def _nodes(unit: Group | Single) -> list[g.Node]:
    if isinstance(unit, Single):
        return [unit.node]
    return [item.node for item in unit.items if item.node is not None]


def _walks(layout: Layout, group: Group, result: g.Value) -> bool:
    """Whether a layout over the space of a group is all of a result, in its order."""
    return layout.shape == group.space and layout.is_contiguous() and numel(layout.shape) == numel(result.dims)


def _is_worth(size: DimLike, tiles: Tiles) -> bool:
    """Whether a product is one whose tiles are handed over at less cost than its result has in memory."""
    if tiles.held is not None:
        return True
    small = not isinstance(size, Dim) and size < _LEAST
    return tiles.once and not small and isinstance(tiles.columns, int) and tiles.columns >= tiles.wide


def instructions(group: Group) -> int:
    """How many instructions an element takes."""
    b = FusedBuilder("epilogue", {}, {})
    for item in group.items:
        assert item.body is not None
        item.body(b, *[b.new(s.base.dtype.compute) for s in item.sources], **item.attrs)
    return sum(isinstance(s, Instr) and s.op != "const" for s in b._blocks[0])


# -- runs ---------------------------------------------------------------------------------------------
def finished(run: Run, group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value],
             product: g.Value, kept: bool) -> Run:
    """A run of a product with an epilogue, a kernel of its own to which it hands its tiles.

    Args:
        group, stored, overwrites: as for `fused_tile.epilogue`.
        product: its result.
        kept: whether that is needed besides.
    """
    assert run.tiles is not None
    return _finished(run, fused_tile.epilogue(group, stored, overwrites, product, run.tiles),
                     kept or not run.tiles.once)


def _finished(run: Run, epilogue: Epilogue, stored: bool) -> Run:
    """The run with an epilogue; `stored` says whether the product's own result has memory."""
    assert run.tiles is not None
    arguments = list(run.arguments)
    how, left = arguments[gemm_shapes.MODE], _value(arguments[1])
    assert isinstance(how, int)
    arguments[gemm_shapes.MODE] = how + gemm_shapes.FINISHED
    gone = None if stored else _value(arguments[0])
    anywhere = {_value(arguments[2]), *(set(map(_value, epilogue.arguments)) - epilogue.spans.keys())}
    if not stored:
        arguments[0], arguments[gemm_shapes.ROW] = 0, 0
    arguments += [epilogue.kernel, len(epilogue.arguments), *epilogue.arguments]
    rows = []
    for way in run.rows:
        if left not in way.spans:
            anywhere.add(left)
        spans = {value: span for value, span in (*way.spans.items(), *epilogue.spans.items())
                 if value not in anywhere and value is not gone and
                 way.spans.get(value, span) == epilogue.spans.get(value, span)}
        rows.append(Rows(way.count, way.grain, way.steps, spans, way.matrices,
                         _blocking(way.blocking, epilogue, stored)))
    return Run(run.kernel, arguments, run.total, _weight(run, epilogue), run.detail, run.fixed, rows,
               run.tiles, epilogue)


def _blocking(blocking: Blocking | None, epilogue: Epilogue, stored: bool) -> Blocking | None:
    if blocking is None:
        return None
    return Blocking(blocking.tall, blocking.most, functools.partial(_for_blocks, blocking, epilogue, stored))


def _for_blocks(blocking: Blocking, epilogue: Epilogue, stored: bool, rows: int) -> list[Run]:
    """The runs of a product with an epilogue for blocks of so many rows."""
    *ahead, last = blocking.runs(rows)
    return [*ahead, _finished(last, epilogue, stored)]


def _value(argument: Argument) -> object:
    return argument.value if isinstance(argument, Within) else argument


def _weight(run: Run, epilogue: Epilogue) -> DimLike:
    """The work of an iteration, with the epilogue's where sizes are known."""
    if any(isinstance(size, Dim) for size in (run.total, run.weight, epilogue.work)) or run.total == 0:
        return run.weight
    return run.weight + epilogue.work // run.total
