"""The interface of lowerings: `Placer`, of which they ask kernels and memory.

A lowering says which kernels a structured op becomes. It takes a `Placer`: it has operands brought to what a kernel
reads (row-major, a wider type, an axis last), asks for runs of kernels, and says how the result lies in memory. Results
that are put together from parts, such as a concatenation, are no kernels: each part is written to its place.

`plan_placer.py` puts what they ask for into a plan; where an op runs at once, `eager/placing.py` makes steps of the
same requests. So an op has one lowering for both modes; sizes may be `Dim`s in it, or numbers. The lowerings are in
`structured.py` and `structured_windows.py`, and, where the runtime plans them, in `runtime/lowerings.py`; they are
registered by `backend.lowering`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence

from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import DimLike
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar, ScalarBody, ScalarBuilder

from . import loop
from .layout import Layout, contiguous
from .operands import Run, RunKernel, Within
from .units import Source

__all__ = ["Placer", "same", "moved", "moved_back"]

_INDEX = (dt.int32, dt.int64)


def same(s: ScalarBuilder, x: Scalar) -> Scalar:
    """The body of a copy, which converts where the result has another dtype."""
    return x


def _narrowed(s: ScalarBuilder, x: Scalar) -> Scalar:
    """A uint64 as int64: what that cannot hold is out of range in any case."""
    return s.cast(s.minimum(x, (1 << 63) - 1), dt.int64)


class Placer(ABC):
    """The requests that a lowering may make while it lowers one node.

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

    def by_tensor_cores(self) -> bool:
        """Whether products of floats that the node consists of are those of tensor cores."""
        return False

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
    def lasting(self, source: Source) -> Source:
        """`source` row-major, where it is read again to tell of a check that failed."""

    def copy(self, source: Source, dtype: DType | None = None, body: ScalarBody = same) -> Source:
        """A new value with the elements of `source`, converted to `dtype`, or as `body` makes them.

        `body` is a function of a module: what is compiled for it is kept by its identity.
        """
        return self.item([source], g.Value(source.layout.shape, dtype or source.base.dtype), body, "copy")

    @abstractmethod
    def item(self, sources: Sequence[Source], out: g.Value, body: ScalarBody, name: str = "part") -> Source:
        """Computes `out` element by element; `body` as for `copy`."""

    def index(self, source: Source) -> Source:
        """Integers as kernels take them as indices: int32 or int64, row-major."""
        if source.base.dtype in _INDEX:
            return self.lasting(source)
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

    def is_steady(self, source: Source) -> bool:
        """Whether an operand stays the same in many runs, so that it may be packed before the first."""
        return False

    def packs(self, source: Source, rows: DimLike, elements: DimLike) -> None:
        """Notes that an operand of so many elements is the right one of products of so many rows, of a kind for which
        it could be packed before."""
        return  # what runs at once is not planned again

    def is_checked(self, indices: Source, size: DimLike, now: bool) -> bool:
        """Whether a run before has checked row-major indices into an axis of that size. If not, and `now` is true, one
        that is asked for next does."""
        return False

    # -- kernels ----------------------------------------------------------------------------------
    def kernel(self, build: Callable[..., loop.Kernel], *args: Hashable) -> RunKernel:
        """The kernel that `build(*args)` makes, as a run takes it."""
        return build(*args)

    def weight(self, kernel: RunKernel) -> int:
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
        """Fills `out` with the products of two sources of floats, int8, or integers of 32 bits or more, of any strides.

        They broadcast to the batch of `layout`, which says how `out` holds the result, columns as neighbours; None
        for one product, row-major. `out` is of what they are summed in.
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


def moved(rank: int, axis: int) -> tuple[int, ...]:
    """The order of axes in which `axis` comes last."""
    axis %= rank
    return (*range(axis), *range(axis + 1, rank), axis)


def moved_back(rank: int, axis: int) -> tuple[int, ...]:
    """The order of axes that undoes `moved`."""
    axis %= rank
    return (*range(axis), rank - 1, *range(axis, rank - 1))
