"""The interface of lowerings: `Placer`, of which they ask kernels and memory; `PlanPlacer`, which puts these into a
plan; and the decorator `lowering`, which registers them.

A lowering says which kernels a structured op becomes. It takes a `Placer`: it has operands brought to what a kernel
reads (row-major, a wider type, an axis last), asks for runs of kernels, and says how the result lies in memory. Results
that are put together from parts, such as a concatenation, are no kernels: each part is written to its place.

In a plan, what brings operands there are copy items, which fuse with what makes them. Where an op runs at once,
`eager/placing.py` makes steps of the same requests. So an op has one lowering for both modes; sizes may be `Dim`s in
it, or numbers. The lowerings are in `structured.py` and `structured_windows.py`, and, where the runtime plans them, in
`runtime/lowerings.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import DimLike
from twofold.ir.dtypes import DType

from . import loop
from .backend import EVERY, Backend, Lowering
from .layout import Layout, contiguous
from .operands import Run, Within
from .units import Item, Source

__all__ = ["Placer", "PlanPlacer", "lowering", "same", "moved", "moved_back"]

_INDEX = (dt.int32, dt.int64)


def same(s: Any, x: Any) -> Any:
    """The body of a copy, which converts where the result has another dtype."""
    return x


def _narrowed(s: Any, x: Any) -> Any:
    """A uint64 as int64: what that cannot hold is out of range in any case."""
    return s.cast(s.minimum(x, (1 << 63) - 1), dt.int64)


class Placer(ABC):
    """What a lowering may ask for while it lowers one node.

    Attributes:
        node, attrs: the node and its attributes.
        operands: where the operands come from.
    """

    def __init__(self, node: g.Node, operands: list[Source]) -> None:
        self.node, self.attrs, self.operands = node, node.attrs, operands

    @property
    def out(self) -> g.Value:
        """The first result."""
        return self.node.outputs[0]

    # -- operands ---------------------------------------------------------------------------------
    def dense(self, source: Source, dtype: DType | None = None) -> Source:
        """`source` row-major and of `dtype`: itself, or a copy."""
        dtype = dtype or source.base.dtype
        if dtype is source.base.dtype and source.layout.is_dense():
            return self.in_memory(source)
        return self.copy(source, dtype)

    @abstractmethod
    def in_memory(self, source: Source) -> Source:
        """`source`, or a copy of it where it is a number that only kernels hold."""

    @abstractmethod
    def kept(self, source: Source) -> Source:
        """`source` row-major, where it is read again to tell of a check that failed."""

    def copy(self, source: Source, dtype: DType | None = None, body: Callable[..., Any] = same) -> Source:
        """A new value with the elements of `source`, converted to `dtype`, or as `body` makes them.

        `body` is a function of a module: what is compiled for it is kept by its identity.
        """
        return self.item([source], g.Value(source.layout.shape, dtype or source.base.dtype), body, "copy")

    @abstractmethod
    def item(self, sources: Sequence[Source], out: g.Value, body: Callable[..., Any], name: str = "part") -> Source:
        """Computes `out` element by element; `body` as for `copy`."""

    def index(self, source: Source) -> Source:
        """Integers as kernels take them as indices: int32 or int64, row-major."""
        if source.base.dtype in _INDEX:
            return self.kept(source)
        return self.copy(source, dt.int64, _narrowed if source.base.dtype is dt.uint64 else same)

    def last(self, source: Source, axis: int) -> Source:
        """`source` seen with `axis` last."""
        return Source(source.base, source.layout.transpose(moved(len(source.layout.shape), axis)))

    def at(self, source: Source) -> Within:
        """The address of a row-major operand, as an argument of a run."""
        return Within(source.base, source.layout.offset)

    def is_fixed(self, source: Source) -> bool:
        """Whether an operand stays the same in every round of the loop around the op."""
        return False

    # -- kernels ----------------------------------------------------------------------------------
    def kernel(self, build: Callable[..., loop.Kernel], *args: Any) -> Any:
        """The kernel that `build(*args)` makes, as a run takes it."""
        return build(*args)

    def weight(self, kernel: Any) -> int:
        """The work of an iteration of a kernel, in simple operations."""
        return 1 + loop.instruction_count(kernel.body) // 8

    @abstractmethod
    def fill(self, outs: Sequence[g.Value], *runs: Run) -> None:
        """Adds kernel runs that fill `outs`."""

    def change(self, whole: g.Value, *runs: Run) -> None:
        """Adds kernel runs that read and write `whole`."""
        self.fill([whole], *runs)

    @abstractmethod
    def product(self, out: g.Value, left: Source, right: Source, layout: Layout | None = None) -> None:
        """Fills `out` with the products of two sources of real floats, of any strides.

        They broadcast to the batch of `layout`, which says how `out` holds the result, columns as neighbours; None
        for one product, row-major. `out` is of their compute type.
        """

    # -- results ----------------------------------------------------------------------------------
    def target(self, dtype: DType | None = None, dims: Sequence[DimLike] | None = None) -> g.Value:
        """The value that a kernel fills: the result itself where it has this type and shape, else a new one."""
        dtype, dims = dtype or self.out.dtype, self.out.dims if dims is None else tuple(dims)
        if dtype is self.out.dtype and dims == self.out.dims:
            return self.out
        return g.Value(dims, dtype)

    def wanted_order(self) -> tuple[int, ...] | None:
        """The order of axes in which the result is read, where that is by one transpose alone."""
        return None

    @abstractmethod
    def give(self, value: g.Value, layout: Layout | None = None) -> None:
        """The result has the elements of `value`, as `layout` orders them; converted to the result's type."""

    # -- parts of a result ------------------------------------------------------------------------
    @abstractmethod
    def part(self, whole: g.Value, layout: Layout, source: Source, after: g.Value | None = None,
             name: str = "part") -> None:
        """Writes `source`, repeated to the shape of `layout`, to a place in the memory of `whole`; later than what
        was written to `after`."""

    def carry(self, source: Source, dtype: DType | None = None) -> g.Value:
        """A value that begins as a copy of `source`, to be changed; it takes over memory that is needed no more."""
        whole = self.target(dtype)
        self.part(whole, contiguous(whole.dims), source, name="carry")
        return whole

    @abstractmethod
    def zeros(self, dtype: DType | None = None, dims: Sequence[DimLike] | None = None) -> g.Value:
        """A value that begins as zeros, to be changed."""


class PlanPlacer(Placer):
    """The placer that puts kernels and copies into a plan."""

    def __init__(self, fuser: Any, node: g.Node) -> None:
        super().__init__(node, [fuser.sources[v] for v in node.inputs])
        self.fuser = fuser

    def in_memory(self, source: Source) -> Source:
        base = source.base
        sized = base.node is not None and base.node.op is g.SIZE
        return self.copy(source) if sized else source

    def kept(self, source: Source) -> Source:
        dense = self.dense(source)
        return self.copy(dense) if dense.base in self.fuser.slots else dense

    def item(self, sources: Sequence[Source], out: g.Value, body: Callable[..., Any], name: str = "part") -> Source:
        self.fuser.place(Item(name, list(sources), [out], {}, body, None, self.node))
        return Source(out, contiguous(out.dims))

    def is_fixed(self, source: Source) -> bool:
        return source.base in self.fuser.loop.fixed

    def fill(self, outs: Sequence[g.Value], *runs: Run) -> None:
        reads = {v: Source(v, contiguous(v.dims)) for run in runs for v in run.values() if v not in outs}
        self.fuser.unit(self.node, list(reads.values()), list(outs), list(runs))

    def product(self, out: g.Value, left: Source, right: Source, layout: Layout | None = None) -> None:
        runs = self.fuser.backend.product(self, out, self.in_memory(left), self.in_memory(right), layout)
        self.fill([out], *runs)

    def wanted_order(self) -> tuple[int, ...] | None:
        return self.fuser.orders.get(self.out) if self.fuser.backend.reorders else None

    def give(self, value: g.Value, layout: Layout | None = None) -> None:
        source = Source(value, layout or contiguous(self.out.dims))
        if value is self.out:
            return
        if value.dtype is self.out.dtype:
            self.fuser.sources[self.out] = source
        else:
            self.fuser.place(Item("cast", [source], [self.out], {}, same, None, self.node))

    def part(self, whole: g.Value, layout: Layout, source: Source, after: g.Value | None = None,
             name: str = "part") -> None:
        repeated = Source(source.base, source.layout.broadcast_to(layout.shape))
        self._write(whole, layout, [repeated], same, -1 if after is None else self.fuser.made_at[after], name)

    def zeros(self, dtype: DType | None = None, dims: Sequence[DimLike] | None = None) -> g.Value:
        whole = self.target(dtype, dims)
        self._write(whole, contiguous(whole.dims), [], lambda s: s.const(0, whole.dtype), -1, "zeros")
        return whole

    def _write(self, whole: g.Value, layout: Layout, sources: list[Source], body: Callable[..., Any], after: int,
               name: str) -> None:
        part = g.Value(layout.shape, whole.dtype)
        self.fuser.place(Item(name, sources, [part], {}, body, None, self.node, Source(whole, layout)), after=after)
        at = self.fuser.made_at
        self.fuser.own(whole, max(at.get(whole, -1), at[part]))


def moved(rank: int, axis: int) -> tuple[int, ...]:
    """The order of axes in which `axis` comes last."""
    axis %= rank
    return (*range(axis), *range(axis + 1, rank), axis)


def moved_back(rank: int, axis: int) -> tuple[int, ...]:
    """The order of axes that undoes `moved`."""
    axis %= rank
    return (*range(axis), rank - 1, *range(axis, rank - 1))


def lowering(*names: str, handles: Callable[[g.Node, Backend], bool] = lambda node, backend: True,
             table: dict[str, Lowering] = EVERY) -> Callable[[Any], Any]:
    """Registers the decorated function of a `Placer` as the lowering of the ops `names`.

    Args:
        handles: which of their nodes in graphs, on a backend.
        table: of a backend, where it needs kernels that others have not.
    """
    def add(lower: Callable[[Any], None]) -> Any:
        for name in names:
            table[name] = Lowering(handles, lower)
        return lower
    return add
