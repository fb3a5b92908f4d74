"""The processor's backend: plans become LLVM programs, kept on disk; memory is NumPy's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from twofold.codegen import backend, gemm_shapes, library
from twofold.codegen.operands import Run
from twofold.codegen.plan import Plan, Shares
from twofold.ir import graph as g
from twofold.ir.dims import Dim

from . import memory, sharing
from .compiled import Native, key

__all__ = ["CPU", "cpu"]


class CPU(backend.Backend):
    """The processor at hand, or the one that a block asks for (`codegen/target.py`)."""

    name = "cpu"
    own = library.LOWERINGS
    reorders = True
    most_batches = gemm_shapes.MAX_BATCH_RANK

    def prepare(self) -> None:
        """A process that finds its programs on disk does without the planner and all lowerings."""
        from twofold.codegen import planner  # noqa: F401 - registers the lowerings of all backends

        from . import lowerings  # noqa: F401 - registers the processor's

    def product(self, p: Any, out: g.Value, left: Any, right: Any, layout: Any) -> list[Run]:
        return library.product_runs(p, out, left, right, layout)

    def wider(self, keys: Collection[tuple[Any, ...]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        return library.wider(keys)

    def shares(self, work: Any) -> Shares | None:
        worth = isinstance(work, Dim) or work >= sharing.IN_PROGRAMS
        return Shares(work, sharing.IN_PROGRAMS, sharing.GRAIN) if worth else None

    def key(self) -> str:
        return key()

    def compile(self, plan: Plan) -> Native:
        return Native.of(plan)

    def program(self, graph: g.Graph, donate: dict[int, int], origin: g.Graph, label: str) -> Native:
        return Native.made(graph, self, donate, origin, label)

    def stored(self, graph: g.Graph, donate: dict[int, int], label: str) -> Native | None:
        return Native.stored(graph, donate, label)

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        return memory.empty(tuple(shape), dtype)

    def copy_to(self, array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array)

    def copy_from(self, memory: np.ndarray) -> np.ndarray:
        return memory


cpu = CPU()
