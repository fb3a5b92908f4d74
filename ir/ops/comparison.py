"""Comparisons and logic, elementwise: what gives or takes truth values.

Owns equality, order, and/or/xor/not of truth values, and the tests for NaN and infinity. None of them
is differentiable. Choosing by a truth value is `where` in `casting.py`.
"""

from __future__ import annotations

from .. import dtypes as dt
from .. import rules
from ..op import primitive
from ..types import AnyTensor

__all__ = ["equal", "greater", "greater_equal", "is_finite", "is_inf", "is_nan", "less", "less_equal", "logical_and",
           "logical_not", "logical_or", "logical_xor", "not_equal"]

_EQUALITY = rules.elementwise(dt.ALL, dt.bool_)
_ORDER = rules.elementwise(dt.REAL, dt.bool_)
_LOGIC = rules.elementwise(dt.BOOL)
_TEST = rules.unary(dt.FLOATING, dt.bool_)


@primitive(infer=_EQUALITY, vjp=None, traits=("compares",), body=lambda s, x, y: s.eq(x, y))
def equal(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Whether `x == y`, elementwise, as bool; NaN equals nothing.

    Args:
        x, y: tensors of one dtype, any but string, that broadcast together.
    Raises:
        DTypeError: dtypes differ. ShapeError: shapes do not broadcast.
    """


@primitive(infer=_EQUALITY, vjp=None, traits=("compares",), body=lambda s, x, y: s.ne(x, y))
def not_equal(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Whether `x != y`, elementwise, as bool; NaN differs from everything. Operands and errors as `equal`."""


@primitive(infer=_ORDER, vjp=None, traits=("compares",), body=lambda s, x, y: s.lt(x, y))
def less(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Whether `x < y`, elementwise, as bool; of real tensors of one dtype that broadcast together."""


@primitive(infer=_ORDER, vjp=None, traits=("compares",), body=lambda s, x, y: s.le(x, y))
def less_equal(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Whether `x <= y`, elementwise, as bool. Operands and errors as `less`."""


@primitive(infer=_ORDER, vjp=None, traits=("compares",), body=lambda s, x, y: s.gt(x, y))
def greater(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Whether `x > y`, elementwise, as bool. Operands and errors as `less`."""


@primitive(infer=_ORDER, vjp=None, traits=("compares",), body=lambda s, x, y: s.ge(x, y))
def greater_equal(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Whether `x >= y`, elementwise, as bool. Operands and errors as `less`."""


@primitive(infer=_LOGIC, vjp=None, body=lambda s, x, y: s.and_(x, y))
def logical_and(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Whether both hold, elementwise, of bool tensors that broadcast together."""


@primitive(infer=_LOGIC, vjp=None, body=lambda s, x, y: s.or_(x, y))
def logical_or(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Whether either holds, elementwise, of bool tensors that broadcast together."""


@primitive(infer=_LOGIC, vjp=None, body=lambda s, x, y: s.xor(x, y))
def logical_xor(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Whether exactly one holds, elementwise, of bool tensors that broadcast together."""


@primitive(infer=_LOGIC, vjp=None, body=lambda s, x: s.not_(x))
def logical_not(x: AnyTensor) -> AnyTensor:
    """Whether `x` does not hold, elementwise, of a bool tensor."""


@primitive(infer=_TEST, vjp=None, body=lambda s, x: s.isnan(x))
def is_nan(x: AnyTensor) -> AnyTensor:
    """Whether `x` is NaN, elementwise, as bool; of a float tensor."""


@primitive(infer=_TEST, vjp=None, body=lambda s, x: s.isinf(x))
def is_inf(x: AnyTensor) -> AnyTensor:
    """Whether `x` is infinite, elementwise, as bool; of a float tensor."""


@primitive(infer=_TEST, vjp=None, body=lambda s, x: s.isfinite(x))
def is_finite(x: AnyTensor) -> AnyTensor:
    """Whether `x` is neither infinite nor NaN, elementwise, as bool; of a float tensor."""
