"""When results are computed that replace inputs: as soon as what they read is there, where that frees memory. And when
indices are checked: before such results, as far as that can be.

A step of training ends with the updates of all variables, and a gradient lives from where it is made to there. Put
behind the gradient, an update finds it in the caches, and its memory serves the gradients after it. An input that the
update overwrites must have been read by all others before, and all that can fail must have been checked. So checks of
indices come as early as they can, with what makes the indices, and behind all that could fail before, because the first
of several errors is the one that is told.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import Dim
from twofold.ir.passes.failing import may_fail

from .operands import Library
from .units import Group, Single, Source

__all__ = ["early"]

_LARGE = 1 << 18  # bytes that are worth it: small updates are better run side by side


def early(graph: g.Graph, units: Sequence[Group | Single], hidden: set[g.Value]) -> list[Group | Single]:
    """The units of a graph, with updates where their operands are there.

    Args:
        graph: what they compute.
        units: in an order that respects every dependence.
        hidden: values that are read or written by other names as well.
    """
    units = _checks_early(units, hidden)
    known = _Uses(graph, units, hidden)
    behind: dict[int, list[Group | Single]] = {}
    for at, unit in enumerate(units):
        place = known.earliest(at) if isinstance(unit, Group) and known.is_update(unit, at) else at
        behind.setdefault(place if place < at - 1 else at, []).append(unit)
    # what stays has its own number, and comes before what moves there
    return [unit for at in sorted(behind) for unit in sorted(behind[at], key=lambda unit: units[at] is not unit)]


def _checks_early(units: Sequence[Group | Single], hidden: set[g.Value]) -> list[Group | Single]:
    """The units, with those that only check, and those that make what they read, behind the last one before them that
    can fail."""
    order: list[Group | Single] = []
    for unit in units:
        order.append(unit)
        if isinstance(unit, Single) and unit.runs and not unit.outs and unit.node.outputs:
            _move_forward(order, hidden)
    return order


def _move_forward(order: list[Group | Single], hidden: set[g.Value]) -> None:
    """Moves the last unit, and what it needs, before all that it does not need, up to the last that can fail."""
    needed, others = [order[-1]], []
    touched = _touched(order[-1])
    place = len(order) - 1
    while place and touched.isdisjoint(hidden) and not _can_fail(order[place - 1]):
        place -= 1
        if touched.isdisjoint(_written(order[place])):
            others.append(order[place])
        else:
            needed.append(order[place])
            touched |= _touched(order[place])
    if touched.isdisjoint(hidden):
        order[place:] = [*reversed(needed), *reversed(others)]


class _Uses:
    """Which units make and read each value, by their numbers, and the last that may fail."""

    def __init__(self, graph: g.Graph, units: Sequence[Group | Single], hidden: set[g.Value]) -> None:
        self.units, self.hidden = units, hidden
        self.inputs, self.outputs = set(graph.inputs), set(graph.outputs)
        self.made: dict[g.Value, int] = {}
        self.readers: dict[g.Value, set[int]] = {}
        self.failing = -1
        for at, unit in enumerate(units):
            self.made.update(dict.fromkeys(_made(unit), at))
            for source in _sources(unit):
                self.readers.setdefault(source.base, set()).add(at)
            if _can_fail(unit):
                self.failing = at

    def is_update(self, group: Group, at: int) -> bool:
        """Whether a group makes results that nobody reads, and is the last to need a value of some size."""
        made = _made(group)
        if group.axes is not None or group.into or made.isdisjoint(self.outputs):
            return False
        read = self.read(at)
        alone = all(self.readers.get(value, {at}) == {at} for value in made)
        return alone and read.isdisjoint(self.hidden) and any(self.frees(value, at) for value in read)

    def frees(self, value: g.Value, at: int) -> bool:
        """Whether memory of some size is needed no more after a unit."""
        size = dm.numel(value.dims) * value.dtype.size
        return value in self.made and value not in self.outputs and self.readers[value] == {at} and \
            not isinstance(size, Dim) and size >= _LARGE

    def read(self, at: int) -> set[g.Value]:
        """What a unit reads of others'."""
        return {source.base for source in _sources(self.units[at])} - _made(self.units[at])

    def earliest(self, at: int) -> int:
        """The unit behind which a unit can run: what makes its operands, the last other one that reads an input of
        its, and all that may fail are before."""
        read = self.read(at)
        others = {n for value in read & self.inputs for n in self.readers[value]} - {at}
        return max(self.failing, *[self.made.get(value, -1) for value in read], *others)


def _made(unit: Group | Single) -> set[g.Value]:
    return {*unit.full, *unit.outer} if isinstance(unit, Group) else set(unit.outs)


def _written(unit: Group | Single) -> set[g.Value]:
    """What a unit makes, and what it makes parts of."""
    return _made(unit) | ({part.base for part in unit.into.values()} if isinstance(unit, Group) else set())


def _touched(unit: Group | Single) -> set[g.Value]:
    return {source.base for source in _sources(unit)} | _written(unit)


def _sources(unit: Group | Single) -> list[Source]:
    return [s for item in unit.items for s in item.sources] if isinstance(unit, Group) else unit.sources


def _can_fail(unit: Group | Single) -> bool:
    """Whether a run of a unit can fail. What an item moves for a node of several parts, it moves without a check."""
    if isinstance(unit, Group):
        nodes = [item.node for item in unit.items if item.node is not None]
        return any(not isinstance(node.op, g.Construct) and node.op.body is not None and may_fail(node)
                   for node in nodes)
    if unit.runs:
        return any(not isinstance(run.kernel, Library) and bool(run.kernel.codes) for run in unit.runs)
    return may_fail(unit.node)
