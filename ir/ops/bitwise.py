"""Bits of integers, elementwise: and, or, xor, complement and shifts. None is differentiable."""

from __future__ import annotations

from .. import dtypes as dt
from .. import rules
from ..op import primitive
from ..scalar import Scalar, ScalarBuilder
from ..types import AnyTensor

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]

_RULE = rules.elementwise(dt.INTEGER)


def _places(s: ScalarBuilder, y: Scalar) -> Scalar:
    """By how many places a shift goes: at least none and at most all but one, as in TensorFlow."""
    most = 8 * y.dtype.size - 1
    y = y if y.dtype.is_unsigned else s.select(s.lt(y, 0), s.const(0, y.dtype), y)
    return s.select(s.gt(y, most), s.const(most, y.dtype), y)


@primitive(infer=_RULE, vjp=None, body=lambda s, x, y: s.and_(x, y))
def bitwise_and(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Bits set in both, elementwise, of integer tensors of one dtype that broadcast together."""


@primitive(infer=_RULE, vjp=None, body=lambda s, x, y: s.or_(x, y))
def bitwise_or(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Bits set in either, elementwise. Operands as `bitwise_and`."""


@primitive(infer=_RULE, vjp=None, body=lambda s, x, y: s.xor(x, y))
def bitwise_xor(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Bits set in exactly one, elementwise. Operands as `bitwise_and`."""


@primitive(infer=_RULE, vjp=None, body=lambda s, x: s.not_(x))
def invert(x: AnyTensor) -> AnyTensor:
    """Bits that are not set in `x`, an integer tensor."""


@primitive(infer=_RULE, vjp=None, body=lambda s, x, y: s.shl(x, _places(s, y)))
def left_shift(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x` with its bits moved up by `y` places, 0 to the width less 1: others count as the nearer of these."""


@primitive(infer=_RULE, vjp=None, body=lambda s, x, y: s.shr(x, _places(s, y)))
def right_shift(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x` with its bits moved down by `y` places, which count as in `left_shift`; signed numbers keep their sign."""
