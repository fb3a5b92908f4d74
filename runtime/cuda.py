"""The backend of a GPU: plans become launches (`cuda_program.py`), memory is the GPU's (`cuda_device.py`).

Kernels are the loop IR that all backends share; those of fused groups have a thread for each element, or for each lane
of a reduction (`codegen/gpu_fused.py`), and products and convolutions are of tiles (`codegen/gpu_gemm.py`,
`codegen/gpu_conv.py`). What has none runs on the host, between programs (`eager/executing.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from twofold.codegen import backend, gpu_lowerings
from twofold.ir import graph as g
from twofold.ir.dims import DimLike

from . import cuda_device, tensor_cores
from .cuda_device import DeviceArray, Gpu

if TYPE_CHECKING:
    from twofold.codegen.fused_base import FusedKernel
    from twofold.codegen.layout import Layout
    from twofold.codegen.operands import Run
    from twofold.codegen.placer import Placer
    from twofold.codegen.plan import Plan, Shares
    from twofold.codegen.units import Group, Source

    from .cuda_program import CudaProgram

__all__ = ["CUDA", "backend_of", "copy_from", "index_of"]


class CUDA(backend.Backend):
    """One GPU."""

    name = "cuda"
    is_host = False
    own = gpu_lowerings.LOWERINGS

    def __init__(self, gpu: Gpu, fast: bool) -> None:
        self.gpu, self.fast = gpu, fast

    @functools.cached_property
    def tensor_cores(self) -> bool:  # type: ignore[override]
        from twofold.codegen import ptx  # imports LLVM

        return self.gpu.capability >= ptx.TENSOR_CORES

    def prepare(self) -> None:
        from twofold.codegen import planner  # noqa: F401 - registers the lowerings of all backends

    def kernels_of(self, group: Group, stored: Sequence[g.Value],
                   overwrites: dict[g.Value, g.Value]) -> list[FusedKernel]:
        from twofold.codegen import gpu_fused

        return gpu_fused.kernels_of(group, stored, overwrites, self.caches)

    def product(self, p: Placer, out: g.Value, left: Source, right: Source, layout: Layout | None) -> list[Run]:
        from twofold.codegen import gpu_gemm

        return gpu_gemm.product_runs(p, out, left, right, layout)

    def finished(self, run: Run, group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value],
                 product: g.Value, kept: bool) -> Run:
        from twofold.codegen import gpu_epilogue

        return gpu_epilogue.finished(run, group, stored, overwrites, product, kept)

    def begun(self, run: Run, groups: Mapping[g.Value, Group]) -> Run:
        from twofold.codegen import gpu_prologue

        return gpu_prologue.begun(run, groups)

    def shares(self, work: DimLike) -> Shares | None:
        return None  # a launch is over all iterations

    def key(self) -> str:
        return f"{self.name} {self.gpu.architecture}{' fast' * (self.fast and self.tensor_cores)}"

    def compile(self, plan: Plan) -> CudaProgram:
        from .cuda_program import CudaProgram

        return CudaProgram(plan, self.gpu)

    def program(self, graph: g.Graph, donate: dict[int, int], origin: g.Graph, label: str,
                sizes: Mapping[str, int]) -> CudaProgram:
        from twofold.codegen import planner

        return self.compile(planner.plan(graph, self))  # no input gives its memory away: a run that fails goes on

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> DeviceArray:
        return self.gpu.empty(shape, dtype)

    def keep(self, memory: np.ndarray | DeviceArray) -> None:
        if isinstance(memory, np.ndarray) and not memory.dtype.hasobject:
            self.gpu.keep(memory)

    def copy_to(self, array: np.ndarray) -> DeviceArray:
        return self.gpu.here(array)

    def copy_from(self, memory: DeviceArray) -> np.ndarray:
        return copy_from(memory)


_of = functools.lru_cache(64)(CUDA)


def backend_of(index: int) -> CUDA:
    """The backend of GPU number `index`, with tensor cores for all products where these are asked for.

    Raises:
        RuntimeError: there is no such GPU.
    """
    gpu = cuda_device.gpu(index)
    if gpu is None:
        raise RuntimeError(f"GPU:{index} is not available")
    return _of(gpu, tensor_cores.enabled())


def index_of(memory: np.ndarray | DeviceArray) -> int | None:
    """The number of the GPU that memory is on; None for the host's."""
    return memory.gpu.index if isinstance(memory, DeviceArray) else None


def copy_from(memory: np.ndarray | DeviceArray) -> np.ndarray:
    """An array of the host with the elements of memory of any device; itself where it is one."""
    return memory.gpu.copy_from(memory) if isinstance(memory, DeviceArray) else memory
