"""The error of a check that failed in a step of a plan, for backends that have the plan when it runs.

How they read memory is theirs; a program of the processor, which comes from disk without its plan, has a description of
the same (`description.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from twofold.codegen.kernels import indexing
from twofold.ir import dims as dm

from .calls import NodeFailure

if TYPE_CHECKING:
    from twofold.codegen.operands import Within
    from twofold.codegen.plan import Step

__all__ = ["failure"]


def failure(step: Step, status: int, sizes: Mapping[str, int],
            read: Callable[[Within, tuple[int, ...]], np.ndarray]) -> NodeFailure:
    """The error for a status of a step's kernel that is not 0.

    Args:
        sizes: of the run.
        read: gives the array of a shape that begins at a place in memory, which the message may show.
    """
    node, code = step.failed(status)
    detail = step.detail
    if detail is not None:
        arrays = [read(within, tuple(dm.evaluate(dims, sizes))) for within, dims in detail.arrays]
        code = indexing.detail(detail.kind, arrays, dm.evaluate(detail.sizes, sizes)) or code
    return NodeFailure(None if node is None else node.op.name, None if node is None else node.loc, code)
