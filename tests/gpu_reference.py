"""The reference backend with a GPU's kernels: plans as a GPU has them, run in lockstep, for the tests of those kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold.codegen import (
    backend,
    gpu_epilogue,
    gpu_fused,
    gpu_gemm,
    gpu_lowerings,
    gpu_prologue,
    loop_verify,
    planner,
)
from twofold.codegen.fused_base import FusedKernel
from twofold.codegen.layout import Layout
from twofold.codegen.loop import Kernel
from twofold.codegen.operands import Library, Run
from twofold.codegen.placer import Placer
from twofold.codegen.plan import Plan, parts_of
from twofold.codegen.units import Group, Source
from twofold.eager.executing import executable, execute
from twofold.eager.tensor import Tensor
from twofold.ir import graph as g
from twofold.ir import nest, passes
from twofold.runtime.program import Executable
from twofold.runtime.reference import Interpreted, Reference
from twofold.tracer.function import trace

__all__ = ["GpuReference", "interpreted", "check", "planned", "kernels", "tensor",
           "check_steps"]


class GpuReference(Reference):
    """Plans of a GPU, by NumPy."""

    name = "gpu reference"
    own: dict[str, backend.Lowering] = gpu_lowerings.LOWERINGS
    most_batches = None

    def kernels_of(self, group: Group, stored: Sequence[g.Value],
                   overwrites: dict[g.Value, g.Value]) -> list[FusedKernel]:
        return gpu_fused.kernels_of(group, stored, overwrites, self.caches)

    def product(self, p: Placer, out: g.Value, left: Source, right: Source, layout: Layout | None) -> list[Run]:
        """The runs of a product."""
        return gpu_gemm.product_runs(p, out, left, right, layout)

    def finished(self, run: Run, group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value],
                 product: g.Value, kept: bool) -> Run:
        """A run of a product with an epilogue."""
        return gpu_epilogue.finished(run, group, stored, overwrites, product, kept)

    def begun(self, run: Run, groups: Mapping[g.Value, Group]) -> Run:
        """A run of a product that computes operands."""
        return gpu_prologue.begun(run, groups)


def interpreted(f: Callable[..., Any], tensors: list[Tensor],
                dims: list[Any] | None = None) -> tuple[list[np.ndarray], Executable]:
    """The results of a function, and what gave them. Args: as for `check`."""
    traced = trace(f, [tf.TensorSpec(t.shape if dims is None else dims[n], t.dtype) for n, t in enumerate(tensors)])
    if traced.accepts([t.shape for t in tensors]) is None:  # of unknown sizes it assumes others
        return interpreted(f, tensors)
    program = executable(traced.graph, improve=lambda copy: passes.optimise(copy), backend=GpuReference())
    given = [tf.convert_to_tensor(t)._array for t in (*tensors, *traced.captures)]
    return execute(program, given), program


def check(f: Callable[..., Any], tensors: list[Tensor], dims: list[Any] | None = None,
          native: bool = True) -> Plan | None:
    """Requires the bits of eager execution on the processor; gives the plan, if that has all of the function.

    Args:
        dims: of the operands; their own by default.
        native: whether one plan must have all of it.
    """
    tf.random.set_seed(5)
    expected = nest.flatten(f(*tensors))
    tf.random.set_seed(5)
    results, program = interpreted(f, tensors, dims)
    for want, result in zip(expected, results, strict=True):
        want = tf.convert_to_tensor(want)._array
        assert (result.dtype, result.shape) == (want.dtype, want.shape)
        if want.dtype == object:
            assert result.tolist() == want.tolist()
        else:
            assert np.ascontiguousarray(result).tobytes() == np.ascontiguousarray(want).tobytes()
    whole = program.whole
    if native:
        assert isinstance(whole, Interpreted)
    return whole.plan if isinstance(whole, Interpreted) else None


def planned(f: Callable[..., Any], specs: Sequence[tf.TensorSpec]) -> Plan:
    """The plan of a function, which is not run."""
    return planner.plan(passes.optimise(trace(f, list(specs)).graph), GpuReference())


def kernels(plan: Plan | None) -> list[Kernel]:
    """The kernels of a plan, none of which is a library's."""
    assert plan is not None
    every = [part.kernel for step in plan.steps for part in parts_of(step) or [step]]
    assert not any(isinstance(kernel, Library) for kernel in every)
    return every


def tensor(seed: int, *shape: int, dtype: Any = tf.float32) -> tf.Tensor:
    """Random numbers, always the same ones."""
    return tf.cast(np.random.default_rng(seed).normal(size=shape), dtype)


def check_steps(f: Callable[..., Any], *tensors: Tensor, steps: int, dims: list[Any] | None = None) -> list[Kernel]:
    """Requires the processor's bits in so many steps; the kernels."""
    checked = kernels(check(f, list(tensors), dims))
    for kernel in checked:
        loop_verify.verify(kernel)
    assert len(checked) == steps, [kernel.name for kernel in checked]
    return checked
