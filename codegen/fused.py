"""Loop nests for fused groups: one kernel for a map, one or two for a reduction, one with passes for rows.

Every element is computed by the items of its group in order, from loads at the places that their layouts give. Values
of 16-bit floats are rounded after each item, and reductions keep the order of `codegen/reduce.py`, so that the bits
are those of the ops run one by one.

The range of a kernel counts elements (maps), rows, or chunks of rows: what threads may share.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.ir import graph as g

from . import gpu_fused
from .fused_base import FusedKernel
from .fused_map import Map
from .fused_reduce import Reduce
from .fused_rows import RowPasses
from .target import Caches
from .units import Group

__all__ = ["FusedKernel", "kernels_of"]


def kernels_of(group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value],
               caches: Caches, teams: bool = False) -> list[FusedKernel]:
    """The kernels that compute a group.

    Args:
        group: what to compute.
        stored: the values of the group that others need.
        overwrites: values that are stored over an operand's memory.
        caches: what tiles are cut for.
        teams: whether they are for a GPU, whose threads take an element each, or rows together.
    """
    if teams:
        return gpu_fused.kernels_of(group, stored, overwrites, caches)
    if group.axes is None:
        return [Map(group, stored, overwrites, caches).kernel()]
    if group.rowwise:
        return [RowPasses(group, stored, overwrites).kernel()]
    return Reduce(group, stored, overwrites).kernels()
