"""Kernels of fused groups for GPUs: in lockstep they have the bits of eager execution, over the whole op table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from ops.case import Case, named
from ops.table import cases

import twofold as tf
from twofold.codegen import fused_gpu
from twofold.codegen.fused_base import FusedKernel
from twofold.codegen.units import Group
from twofold.eager.executing import executable, execute
from twofold.eager.tensor import Tensor, wrap
from twofold.ir import graph as g
from twofold.ir import nest, passes
from twofold.runtime.program import Executable
from twofold.runtime.reference import Reference
from twofold.tracer.function import trace


class Lockstep(Reference):
    """The reference backend with kernels for GPUs, all threads of which go through their statements together."""

    name = "lockstep"

    def kernels_of(self, group: Group, stored: Sequence[g.Value],
                   overwrites: dict[g.Value, g.Value]) -> list[FusedKernel]:
        return fused_gpu.kernels_of(group, stored, overwrites)


lockstep = Lockstep()


def check(f: Callable[..., Any], tensors: list[Tensor], dims: list[Any] | None = None) -> Executable:
    """Requires the bits of eager execution; gives what ran."""
    tf.random.set_seed(5)
    expected = [tf.convert_to_tensor(want)._array for want in nest.flatten(f(*tensors))]
    tf.random.set_seed(5)
    traced = trace(f, [tf.TensorSpec(t.shape if dims is None else dims[n], t.dtype) for n, t in enumerate(tensors)])
    program = executable(traced.graph, improve=passes.optimise, backend=lockstep)
    given = [tf.convert_to_tensor(t)._array for t in (*tensors, *traced.captures)]
    for want, result in zip(expected, execute(program, given), strict=True):
        assert (result.dtype, result.shape) == (want.dtype, want.shape)
        assert result.tolist() == want.tolist() if want.dtype == object else result.tobytes() == want.tobytes()
    return program


@pytest.mark.parametrize("case", cases(), ids=str)
def test_the_op_table(case: Case) -> None:
    check(lambda *t: named(case.fn)(*t, **case.kwargs),
          [wrap(np.asarray(a)) for a in case.arrays(case.main, case.shapes[0], salt="function")])
