"""The processor's backend: plans become LLVM programs, kept on disk; memory is NumPy's."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from twofold.codegen import backend, gemm_shapes, library, target
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike

from . import memory, sharing, threads

if TYPE_CHECKING:
    from twofold.codegen.layout import Layout
    from twofold.codegen.operands import Run
    from twofold.codegen.placer import Placer
    from twofold.codegen.plan import Plan, Shares
    from twofold.codegen.units import Source

    from .compiled import Native

__all__ = ["CPU", "cpu"]


class CPU(backend.Backend):
    """The processor at hand, or the one that a block asks for (`codegen/target.py`).

    Eager execution asks it for memory; what runs programs is loaded when a program is asked for.
    """

    name = "cpu"
    own = library.LOWERINGS
    reorders = True
    most_batches = gemm_shapes.MAX_BATCH_RANK

    def prepare(self) -> None:
        """A process that finds its programs on disk does without the planner and all lowerings."""
        from twofold.codegen import planner  # noqa: F401 - registers the lowerings of all backends

        from . import lowerings  # noqa: F401 - registers the processor's

    def product(self, p: Placer, out: g.Value, left: Source, right: Source, layout: Layout | None) -> list[Run]:
        return library.product_runs(p, out, left, right, layout)

    def wider(self, keys: Collection[tuple[str, ...]]) -> dict[tuple[str, ...], tuple[str, ...]]:
        return library.wider(keys)

    def shares(self, work: DimLike) -> Shares | None:
        from twofold.codegen.plan import Shares

        if _alone():
            return None
        worth = isinstance(work, Dim) or work >= sharing.IN_PROGRAMS
        return Shares(work, sharing.IN_PROGRAMS, sharing.GRAIN) if worth else None

    def threads(self) -> int:
        wanted = target.current().threads
        return threads.get_num_threads() if wanted is None else wanted

    def shares_rounds(self, works: Sequence[int], parts: int) -> Shares | None:
        from twofold.codegen.plan import Shares

        least, enough = sharing.IN_ROUNDS, parts >= self.threads()
        if _alone() or sum(works) < least or (
                not enough and max(works) >= sharing.IN_PROGRAMS):  # more share its steps
            return None
        return Shares(sum(works), least, least // 2)

    def key(self) -> str:
        from .compiled import key

        return key()

    def compile(self, plan: Plan) -> Native:
        from .compiled import Native

        return Native.of(plan)

    def program(self, graph: g.Graph, donate: dict[int, int], origin: g.Graph, label: str,
                sizes: Mapping[str, int]) -> Native:
        from .compiled import Native

        return Native.of_graph(graph, self, donate, origin, label, sizes)

    def stored(self, graph: g.Graph, donate: dict[int, int], label: str, improve: Callable[[], g.Graph]
               ) -> Native | None:
        from .compiled import Native

        return Native.stored(graph, self, donate, label, improve)

    empty = staticmethod(memory.empty)  # itself: a call in between would be felt by small ops

    def allocator(self, shape: Sequence[int], dtype: np.dtype) -> Callable[[tuple[int, ...], np.dtype], np.ndarray]:
        small = math.prod(shape) * dtype.itemsize < memory.POOLED_FROM or dtype.hasobject
        return np.empty if small else memory.empty

    def copy_to(self, array: np.ndarray) -> np.ndarray:
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)

    def copy_from(self, memory: np.ndarray) -> np.ndarray:
        return memory


cpu = CPU()


def _alone() -> bool:
    """Whether code is for one thread for good: a library of WebAssembly without workers, which has nothing to call."""
    of = target.current()
    return of.threads == 1 and of.address_bits == 32
