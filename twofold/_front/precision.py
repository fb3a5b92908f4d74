"""How public functions say how exact products are; what that means is `ir/precision.py`'s."""

from __future__ import annotations

from typing import Any

from twofold.ir.errors import InvalidArgumentError, op_error
from twofold.ir.precision import EXACT, FAST, is_known

__all__ = ["precision_arg"]


def precision_arg(op: str, precision: Any) -> dict[str, str]:
    """The attribute for the argument `precision` of a product: none where it is None.

    Raises:
        InvalidArgumentError: it is no precision.
    """
    if precision is None:
        return {}
    if not is_known(precision):
        problem = f'precision must be "{EXACT}" or "{FAST}".'
        raise op_error(InvalidArgumentError, op, problem, [("precision", precision)])
    return {"precision": str(precision)}
