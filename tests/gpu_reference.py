"""The reference backend with a GPU's kernels: plans as a GPU has them, run in lockstep, for the tests of those kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold.codegen import backend, fused_gpu, gpu_gemm, gpu_lowerings
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
from twofold.runtime.reference import Interpreted, Reference
from twofold.tracer.function import trace

__all__ = ["GpuReference", "interpreted", "check", "kernels"]


class GpuReference(Reference):
    """Plans of a GPU, by NumPy."""

    name = "gpu reference"
    own: dict[str, backend.Lowering] = gpu_lowerings.LOWERINGS
    most_batches = None

    def kernels_of(self, group: Group, stored: Sequence[g.Value],
                   overwrites: dict[g.Value, g.Value]) -> list[FusedKernel]:
        return fused_gpu.kernels_of(group, stored, overwrites)

    def product(self, p: Placer, out: g.Value, left: Source, right: Source, layout: Layout | None) -> list[Run]:
        """The runs of a product."""
        return gpu_gemm.product_runs(p, out, left, right, layout)


def interpreted(f: Callable[..., Any], tensors: list[Tensor], dims: list[Any] | None = None) -> list[Any]:
    """The results of a function, and the plan that gave them, which has all of it. Args: as for `check`."""
    traced = trace(f, [tf.TensorSpec(t.shape if dims is None else dims[n], t.dtype) for n, t in enumerate(tensors)])
    program = executable(traced.graph, improve=lambda copy: passes.optimise(copy), backend=GpuReference())
    given = [tf.convert_to_tensor(t)._array for t in (*tensors, *traced.captures)]
    results = execute(program, given)
    assert isinstance(program.whole, Interpreted)
    return [*results, program.whole.plan]


def check(f: Callable[..., Any], tensors: list[Tensor], dims: list[Any] | None = None) -> Plan:
    """Requires the bits of eager execution on the processor; gives the plan, which has all of the function.

    Args:
        dims: of the operands; their own by default.
    """
    expected = nest.flatten(f(*tensors))
    *results, plan = interpreted(f, tensors, dims)
    for want, result in zip(expected, results, strict=True):
        want = tf.convert_to_tensor(want)._array
        assert (result.dtype, result.shape) == (want.dtype, want.shape)
        assert np.ascontiguousarray(result).tobytes() == np.ascontiguousarray(want).tobytes()
    return plan


def kernels(plan: Plan) -> list[Kernel]:
    """The kernels of a plan, none of which is a library's."""
    every = [part.kernel for step in plan.steps for part in parts_of(step) or [step]]
    assert not any(isinstance(kernel, Library) for kernel in every)
    return every
