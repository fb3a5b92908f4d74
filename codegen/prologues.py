"""Which maps become the prologue of a product: they compute its operand while that is loaded, element by element.

A map whose result one product alone reads (a cast, a scale, relu, a mask) writes all of it, and the product reads it.
As the product's prologue it does neither, but each element is computed as often as the product loads it: once for each
tile along the other operand. So a map becomes one where it is light, and where that reads no more than it saves. With
elements of d bytes that are made of s bytes and loaded n times, memory is spared 2 d bytes, and the cache, from which
all but the first loads come, has (n - 1) (s - d) more to give; at half the price of memory, by a guess, that pays where
(n - 1) (s - d) <= 4 d: always, where s is no more than d, and else where n is known and small.

In: the units of a graph in order, epilogues attached. Out: the same, with such groups in their products' units. What a
group reads must stay until the product runs: values that change in place are none that it may read. Only products that
say how often they load an operand (`operands.Loads`) have prologues: those of GPUs (`gpu_prologue.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.passes.failing import may_fail

from .epilogues import instructions
from .layout import Layout
from .operands import operand_of
from .units import Group, Grouping, Single, Source, is_inline

__all__ = ["attach", "walks"]

_LIGHT = 8  # instructions for an element: a thread multiplies 16 times for each that it loads, or waits for memory
_OPERANDS = 2  # that are read element by element: a thread of the largest tiles has few registers left


def attach(grouping: Grouping, outputs: Collection[g.Value], changing: Collection[g.Value]) -> None:
    """Makes groups of a graph prologues of its products.

    Args:
        grouping: the units, which are changed.
        outputs: the values whose memory the graph's results are.
        changing: values whose memory is changed in place.
    """
    if not any(run.loads is not None for unit in grouping.units if isinstance(unit, Single) for run in unit.runs):
        return
    finder = _PrologueFinder(grouping, outputs, changing)
    for unit in list(grouping.units):
        if isinstance(unit, Single):
            finder.take(unit)
    gone = {id(group) for unit in grouping.units if isinstance(unit, Single) for group in unit.prologues.values()}
    grouping.units[:] = [unit for unit in grouping.units if id(unit) not in gone]
    grouping.number()


class _PrologueFinder:
    """The units of a graph, with who makes and reads what."""

    def __init__(self, grouping: Grouping, outputs: Collection[g.Value], changing: Collection[g.Value]) -> None:
        self.outputs, self.changing = set(outputs), {*changing, *grouping.slots}
        self.made: dict[g.Value, Group] = {}
        self.readers: dict[g.Value, list[Group | Single]] = {}
        for unit in grouping.units:
            if isinstance(unit, Group):
                self.made.update(dict.fromkeys(unit.full, unit))
            for base in dict.fromkeys(_reads(unit)):
                self.readers.setdefault(base, []).append(unit)

    def take(self, product: Single) -> None:
        """Makes groups prologues of a unit."""
        for run in product.runs:
            for place, times in ({} if run.loads is None else run.loads.times).items():
                value = operand_of(run.arguments[place])
                group = None if value is None else self.made.get(value)
                if value is not None and group is not None and self.is_own(product, group, value) and \
                        _pays(group, value, times):
                    product.prologues[value] = group
                    product.sources = [*[s for s in product.sources if s.base is not value], *_external(group)]

    def is_own(self, product: Single, group: Group, value: g.Value) -> bool:
        """Whether a group makes nothing but an operand of a product, which reads it in one place."""
        read = [operand for run in product.runs for a in run.arguments if (operand := operand_of(a, anywhere=True))]
        if read.count(value) != 1 or (product.epilogue is not None and value in product.epilogue.reads):
            return False
        if group.axes is not None or group.into or any(
                item.node is not None and may_fail(item.node) for item in group.items):
            return False
        if any(v in self.outputs or self.readers.get(v, []) != [product] * (v is value) for v in group.full):
            return False
        return self.changing.isdisjoint(group.full) and self.changing.isdisjoint(group.reads)


def _reads(unit: Group | Single) -> Iterator[g.Value]:
    """The memory that a unit reads, apart from what it makes itself."""
    if isinstance(unit, Single):
        yield from [s.base for s in unit.sources]
    group = unit.epilogue if isinstance(unit, Single) else unit
    if group is not None:
        yield from [base for base in group.reads if base not in group.full and base not in group.outer]


def _external(group: Group) -> list[Source]:
    """The operands of a group that lie in memory, each once."""
    sources = {(s.base, s.layout): s for item in group.items for s in item.sources
               if s.base not in group.full and not is_inline(s.base)}
    return list(sources.values())


def walks(layout: Layout, space: Sequence[DimLike]) -> bool:
    """Whether a layout goes over the elements of a space in their order."""
    return layout.shape == tuple(space) and layout.is_dense()


def _pays(group: Group, value: g.Value, times: DimLike) -> bool:
    """Whether a group costs less as a prologue, where each element is loaded so often."""
    sources = _external(group)
    moving = [s for s in sources if walks(s.layout, group.space)]
    if group.space != value.dims or len(moving) > _OPERANDS or any(
            s not in moving and any(step != 0 for step in s.layout.strides) for s in sources):
        return False
    if any(v.dtype.is_complex for v in (*group.reads, *group.full)) or instructions(group) > _LIGHT:
        return False
    made = value.dtype.size
    more = sum(s.base.dtype.size for s in moving) - made
    return more <= 0 or not isinstance(times, Dim) and (times - 1) * more <= 4 * made
