"""String tensors: comparison and addition, which are operators.

Strings lie in host memory, so these are host ops. What else there is for them is `twofold/strings.py`.
"""

from __future__ import annotations

import numpy as np

from .. import dtypes as dt
from .. import rules
from ..op import Op, primitive
from ..spec import spec
from ..types import AnyTensor, Attr, Spec

__all__ = ["string_add", "string_equal"]


def _string_rule(op: Op, *operands: Spec, **attrs: Attr) -> Spec:
    for i in range(len(operands)):
        rules.require_dtype(op, operands, i, (dt.string,))
    return spec(rules.broadcast(op, operands), dt.bool_ if op.name == "string_equal" else dt.string)


@primitive(infer=_string_rule, vjp=None, host=np.add, match=(0, 1), traits=("total",))
def string_add(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Strings with those of `y` behind those of `x`, elementwise.

    Args:
        x, y: string tensors whose shapes broadcast.
    Raises:
        DTypeError: an operand is not a string tensor. ShapeError: the shapes do not broadcast.
    """


@primitive(infer=_string_rule, vjp=None, host=np.equal, match=(0, 1), traits=("total",))
def string_equal(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Whether strings are the same bytes, elementwise.

    Args:
        x, y: string tensors whose shapes broadcast.
    Returns:
        bool tensor of the broadcast shape.
    Raises:
        DTypeError: an operand is not a string tensor. ShapeError: the shapes do not broadcast.
    """
