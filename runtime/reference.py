"""The reference backend: plans run as they are, their kernels by NumPy in lockstep. Slow, and exact.

It has no machine code, no threads and no memory but NumPy's. What it gives is what a plan means: other backends are
tested against it, also where their hardware is not at hand. Products and convolutions are planned as the processor's
are, and run by the same kernels, with tiles for the processor at hand.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from twofold.codegen import backend, conv_kernels, conv_shapes, gemm_kernels, gemm_shapes, library, lockstep
from twofold.codegen.lockstep import ByteMemory
from twofold.codegen.loop import Kernel
from twofold.codegen.operands import Argument, Library, Memory, PartialResults, Run, Slot, Within, Work, bytes_of
from twofold.codegen.plan import Branch, Copy, Plan, RowBlocks, Shares, Step, Tree, parts_of
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import as_dtype

from .failures import failure

if TYPE_CHECKING:
    from twofold.codegen.layout import Layout
    from twofold.codegen.placer import Placer
    from twofold.codegen.units import Source

__all__ = ["Reference", "Interpreted", "reference"]


class Interpreted:
    """A plan that runs step by step."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @property
    def donated(self) -> dict[int, int]:
        """Output number -> the number of the input whose memory it takes."""
        return self.plan.donated

    def __call__(self, arrays: Sequence[np.ndarray], sizes: dict[str, int]) -> list[np.ndarray]:
        """The outputs for row-major arrays. Those whose memory an output takes are overwritten.

        Raises:
            NodeFailure: a check failed.
        """
        plan = self.plan
        arrays = [np.ascontiguousarray(a) for a in arrays]
        outs = []
        for n, value in enumerate(plan.graph.outputs):
            shape, donor = tuple(dm.evaluate(value.dims, sizes)), plan.donated.get(n)
            outs.append(np.empty(shape, value.dtype.np) if donor is None else arrays[donor].reshape(shape))
        _Execution(plan, [*arrays, *outs, *plan.constants], sizes).tree(plan.tree)
        return outs


class _Execution:
    """One run of a plan."""

    def __init__(self, plan: Plan, buffers: list[np.ndarray], sizes: dict[str, int]) -> None:
        self.plan, self.sizes = plan, sizes
        self.buffers = [b.reshape(-1).view(np.uint8) for b in buffers]
        self.arena = np.zeros(self.size(plan.arena), np.uint8)
        self.windows = {memory: np.zeros(self.size(bytes_of(memory)), np.uint8)  # here all rows are one block
                        for blocks in plan.row_blocks() for memory in blocks.windows}

    def size(self, size: DimLike) -> int:
        return size.evaluate(self.sizes) if isinstance(size, Dim) else int(size)

    def memory(self, of: Memory) -> ByteMemory:
        """Where a value, or other memory, lies."""
        place = self.plan.memory_of(of)
        if isinstance(place, Slot):
            index = int(self.elements(place.index, place.skip, 1)[0])
            first = index * self.size(place.stride) + self.size(place.offset)
            return self.memory(place.base).beside(first * place.base.dtype.size)
        if place in self.windows:
            return ByteMemory(self.windows[place])
        number = self.plan.buffers.get(place)
        return ByteMemory(self.arena, self.size(self.plan.offsets[place])) if number is None else \
            ByteMemory(self.buffers[number])

    def elements(self, of: Memory, first: DimLike, count: int) -> np.ndarray:
        """Some elements of a value, from number `first` on."""
        memory = self.memory(of).beside(self.size(first) * of.dtype.size)
        return memory.array[memory.at:memory.at + count * of.dtype.size].view(of.dtype.np)

    def argument(self, a: Argument) -> ByteMemory | Kernel | int:
        if isinstance(a, Within):
            return self.memory(a.value).beside(self.size(a.offset) * a.value.dtype.size)
        if isinstance(a, (g.Value, PartialResults, Work)):
            return self.memory(a)
        if isinstance(a, Kernel):
            return a
        if isinstance(a, Library):
            raise NotImplementedError(f"{a.name}: a kernel of another backend")
        return self.size(a)

    def tree(self, tree: Tree) -> None:
        for part in tree:
            if isinstance(part, int):
                self.step(self.plan.steps[part])
            elif isinstance(part, RowBlocks):
                self.tree(list(part.steps))
            elif isinstance(part, Copy):
                count = self.size(dm.numel(part.to.dims))
                self.elements(part.to, 0, count)[:] = self.elements(part.source, 0, count).copy()
            elif isinstance(part, Branch):
                self.tree(part.then if self.holds(part.test) else part.otherwise)
            else:
                self.tree(part.before)
                while self.holds(part.test):
                    self.tree(part.body)
                    self.tree(part.before)

    def holds(self, test: g.Value) -> bool:
        return bool(self.elements(test, 0, 1)[0])

    def step(self, step: Step) -> None:
        for part in parts_of(step) or [step]:
            kernel = _library_kernel(part.kernel.key) if isinstance(part.kernel, Library) else part.kernel
            assert isinstance(kernel, Kernel)
            status = lockstep.run(kernel, self.size(part.total), [self.argument(a) for a in part.arguments])
            if status:
                raise failure(step, status, self.sizes, self.array)

    def array(self, within: Within, shape: tuple[int, ...]) -> np.ndarray:
        """The array that begins at a place in memory."""
        return self.elements(within.value, within.offset, math.prod(shape)).reshape(shape)


@functools.cache
def _library_kernel(key: tuple[str, ...]) -> Kernel:
    """A kernel that programs share, of matrix products or convolutions."""
    family, dtype, name = key
    parts, kernels = _FAMILIES[family]
    part = next(part for part, names in parts.items() if name in names)
    return kernels(as_dtype(dtype), gemm_shapes.tiling(as_dtype(dtype)), part)[name]


_FAMILIES: dict[str, tuple[Mapping[str, Sequence[str]], Callable[..., dict[str, Kernel]]]] = {
    "gemm": (gemm_shapes.PARTS, gemm_kernels.kernels), "conv": (conv_shapes.PARTS, conv_kernels.kernels)}


class Reference(backend.Backend):
    """The backend that runs plans with NumPy."""

    name = "reference"
    own: dict[str, backend.Lowering] = {}
    reorders = True
    most_batches = gemm_shapes.MAX_BATCH_RANK

    def prepare(self) -> None:
        from twofold.codegen import planner  # noqa: F401 - registers the lowerings of all backends

        from . import lowerings  # noqa: F401 - registers how products are planned

    def product(self, p: Placer, out: g.Value, left: Source, right: Source, layout: Layout | None) -> list[Run]:
        return library.product_runs(p, out, left, right, layout)

    def shares(self, work: DimLike) -> Shares | None:
        return None

    def key(self) -> str:
        return self.name

    def compile(self, plan: Plan) -> Interpreted:
        return Interpreted(plan)

    def program(self, graph: g.Graph, donate: dict[int, int], origin: g.Graph, label: str,
                sizes: Mapping[str, int]) -> Interpreted:
        from twofold.codegen import planner

        return Interpreted(planner.plan(graph, self, donate, intact=True))

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        return np.empty(tuple(shape), dtype)

    def copy_to(self, array: np.ndarray) -> np.ndarray:
        return np.array(array, order="C")

    def copy_from(self, memory: np.ndarray) -> np.ndarray:
        return memory.copy()


reference = Reference()
