"""String tensors: what there is for them so far is comparison.

Strings exist in eager execution only and lie in host memory, so these are host ops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes as dt
from .. import rules
from ..op import primitive
from ..spec import TensorSpec, spec

__all__ = ["string_equal"]


def _string_rule(op: Any, *operands: Any, **attrs: Any) -> TensorSpec:
    for i in range(len(operands)):
        rules.require_dtype(op, operands, i, (dt.string,))
    return spec(rules.broadcast(op, operands), dt.bool_)


@primitive(infer=_string_rule, vjp=None, host=np.equal, match=(0, 1), traits=("total",))
def string_equal(x, y):
    """Whether strings are the same bytes, elementwise.

    Args:
        x, y: string tensors whose shapes broadcast.
    Returns:
        bool tensor of the broadcast shape.
    Raises:
        DTypeError: an operand is not a string tensor. ShapeError: the shapes do not broadcast.
    """
