"""What a lowering does to a plan for one node: `Placer`, and the registry's decorator, `lowering`.

A lowering takes a `Placer`. It brings operands to what a kernel reads (row-major, a wider type, an axis last) by copy
items, which fuse with what makes them; it adds kernel runs; and it says how the result lies in memory. Results that
are put together from parts, such as a concatenation, are no kernels: each part is an item that writes its place.

The lowerings are in `structured.py` and `structured_windows.py`, and, where the runtime plans them, in
`runtime/lowerings.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import DimLike
from twofold.ir.dtypes import DType

from . import loop
from .layout import Layout, contiguous
from .library import register_placed
from .operands import Run, Within
from .units import Item, Source

__all__ = ["Placer", "lowering", "moved", "moved_back", "weight_of"]

_INDEX = (dt.int32, dt.int64)


def _same(s: Any, x: Any) -> Any:
    return x


class Placer:
    """What a lowering does to a plan for one node."""

    def __init__(self, fuser: Any, node: g.Node) -> None:
        self.fuser, self.node, self.attrs = fuser, node, node.attrs
        self.operands: list[Source] = [fuser.sources[v] for v in node.inputs]
        self.out = node.outputs[0]

    # -- operands ---------------------------------------------------------------------------------
    def dense(self, source: Source, dtype: DType | None = None) -> Source:
        """`source` row-major and of `dtype`: itself, or a copy."""
        dtype = dtype or source.base.dtype
        if dtype is source.base.dtype and source.layout.is_dense():
            return self.in_memory(source)
        return self.copy(source, dtype)

    def in_memory(self, source: Source) -> Source:
        """`source`, or a copy of it where it is a number that only kernels hold."""
        base = source.base
        sized = base.node is not None and base.node.op is g.SIZE
        return self.copy(source) if sized else source

    def copy(self, source: Source, dtype: DType | None = None, body: Callable[..., Any] = _same) -> Source:
        """A new value with the elements of `source`, converted to `dtype`."""
        return self.item([source], g.Value(source.layout.shape, dtype or source.base.dtype), body, "copy")

    def item(self, sources: Sequence[Source], out: g.Value, body: Callable[..., Any], name: str = "part") -> Source:
        """Computes `out` element by element."""
        self.fuser.place(Item(name, list(sources), [out], {}, body, None, self.node))
        return Source(out, contiguous(out.dims))

    def index(self, source: Source) -> Source:
        """Integers as kernels take them as indices: int32 or int64, row-major."""
        if source.base.dtype in _INDEX:
            return self.kept(source)
        if source.base.dtype is dt.uint64:  # what int64 cannot hold is out of range in any case
            return self.copy(source, dt.int64, lambda s, x: s.cast(s.minimum(x, (1 << 63) - 1), dt.int64))
        return self.copy(source, dt.int64, lambda s, x: s.cast(x, dt.int64))

    def kept(self, source: Source) -> Source:
        """`source` row-major, where it is found after the program has failed."""
        found = self.dense(source)
        return self.copy(found) if found.base in self.fuser.slots else found

    def last(self, source: Source, axis: int) -> Source:
        """`source` seen with `axis` last."""
        return Source(source.base, source.layout.transpose(moved(len(source.layout.shape), axis)))

    def at(self, source: Source) -> Within:
        """The address of a row-major operand, as an argument of a run."""
        return Within(source.base, source.layout.offset)

    # -- results ----------------------------------------------------------------------------------
    def target(self, dtype: DType | None = None, dims: Sequence[DimLike] | None = None) -> g.Value:
        """The value that a kernel fills: the result itself where it has this type and shape, else a new one."""
        dtype, dims = dtype or self.out.dtype, self.out.dims if dims is None else tuple(dims)
        if dtype is self.out.dtype and dims == self.out.dims:
            return self.out
        return g.Value(dims, dtype)

    def run(self, outs: Sequence[g.Value], *runs: Run) -> None:
        """Adds kernel runs that fill `outs`."""
        reads = {v: Source(v, contiguous(v.dims)) for run in runs for v in run.values() if v not in outs}
        self.fuser.unit(self.node, list(reads.values()), list(outs), list(runs))

    def give(self, value: g.Value, layout: Layout | None = None) -> None:
        """The result has the elements of `value`, as `layout` orders them; converted to the result's type."""
        source = Source(value, layout or contiguous(self.out.dims))
        if value is self.out:
            return
        if value.dtype is self.out.dtype:
            self.fuser.sources[self.out] = source
        else:
            self.fuser.place(Item("cast", [source], [self.out], {}, _same, None, self.node))

    # -- parts of a result ------------------------------------------------------------------------
    def part(self, whole: g.Value, layout: Layout, source: Source | None, body: Callable[..., Any] = _same,
             after: int = -1, name: str = "part") -> None:
        """Writes `source`, or what `body` gives without it, to a place in the memory of `whole`."""
        made = g.Value(layout.shape, whole.dtype)
        sources = [] if source is None else [Source(source.base, source.layout.broadcast_to(layout.shape))]
        item = Item(name, sources, [made], {}, body, None, self.node, Source(whole, layout))
        self.fuser.place(item, after=after)
        at = self.fuser.made_at
        self.fuser.own(whole, max(at.get(whole, -1), at[made]))

    def carry(self, source: Source, dtype: DType | None = None) -> g.Value:
        """A value that begins as a copy of `source`, to be changed; it takes over memory that is needed no more."""
        whole = self.target(dtype)
        self.part(whole, contiguous(whole.dims), source, name="carry")
        return whole

    def zeros(self, dtype: DType | None = None, dims: Sequence[DimLike] | None = None) -> g.Value:
        """A value that begins as zeros, to be changed."""
        whole = self.target(dtype, dims)
        self.part(whole, contiguous(whole.dims), None, lambda s: s.const(0, whole.dtype), name="zeros")
        return whole

    def change(self, whole: g.Value, *runs: Run) -> None:
        """Adds kernel runs that read and write `whole`."""
        self.run([whole], *runs)


def moved(rank: int, axis: int) -> tuple[int, ...]:
    """The order of axes in which `axis` comes last."""
    axis %= rank
    return (*range(axis), *range(axis + 1, rank), axis)


def moved_back(rank: int, axis: int) -> tuple[int, ...]:
    """The order of axes that undoes `moved`."""
    axis %= rank
    return (*range(axis), rank - 1, *range(axis, rank - 1))


def weight_of(kernel: loop.Kernel) -> int:
    """The work of an iteration, in simple operations."""
    return 1 + loop.instruction_count(kernel.body) // 8


def lowering(*names: str, handles: Callable[[g.Node], bool] = lambda node: True) -> Callable[[Any], Any]:
    """Makes the decorated function of a `Placer` what puts the ops `names` into plans."""
    def add(lower: Callable[[Placer], None]) -> Any:
        for name in names:
            register_placed(name, handles, lambda fuser, node: lower(Placer(fuser, node)))
        return lower
    return add
