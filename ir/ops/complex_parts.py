"""Complex numbers and their parts, elementwise.

Owns what joins and takes apart complex tensors. Arithmetic and functions that take complex tensors among
others are declared with their families.
"""

from __future__ import annotations

from .. import dtypes as dt
from .. import ops, rules
from ..grad import chain, unbroadcast, zeros_like
from ..op import primitive
from ..types import AnyTensor, Cotangents, Spec

__all__ = ["angle", "complex_", "conj", "imag", "real"]

_PARTS = frozenset({dt.float32, dt.float64})
_INEXACT = dt.FLOATING | dt.COMPLEX


def _complex_vjp(ct: AnyTensor, out: Spec, real: Spec, imag: Spec) -> Cotangents:
    return lambda: unbroadcast(ops.real(ct), real), lambda: unbroadcast(ops.imag(ct), imag)


@primitive(infer=rules.elementwise(_PARTS, lambda d: dt.complex64 if d is dt.float32 else dt.complex128),
           vjp=_complex_vjp, saves=(), body=lambda s, real, imag: s.complex(real, imag))
def complex_(real: AnyTensor, imag: AnyTensor) -> AnyTensor:
    """`real + i imag`, elementwise, of float32 or float64 tensors that broadcast together."""


@primitive(infer=rules.unary(dt.COMPLEX, lambda d: d.real_dtype), saves=(), body=lambda s, x: s.real(x),
           vjp=lambda ct, out, x: ops.cast(ct, dtype=x.dtype))
def real(x: AnyTensor) -> AnyTensor:
    """Real part of a complex tensor."""


@primitive(infer=rules.unary(dt.COMPLEX, lambda d: d.real_dtype), saves=(), body=lambda s, x: s.imag(x),
           vjp=lambda ct, out, x: ops.complex(zeros_like(ct), ct))
def imag(x: AnyTensor) -> AnyTensor:
    """Imaginary part of a complex tensor."""


@primitive(infer=rules.unary(dt.COMPLEX), vjp=lambda ct, out, x: ops.conj(ct), saves=(),
           body=lambda s, x: s.complex(s.real(x), -s.imag(x)))
def conj(x: AnyTensor) -> AnyTensor:
    """Complex conjugate of a complex tensor."""


def _angle_vjp(ct: AnyTensor, out: Spec, x: AnyTensor) -> Cotangents:
    if not x.dtype.is_complex:
        return zeros_like(x)
    re, im = ops.real(x), ops.imag(x)
    share = ops.divide_no_nan(ct, ops.add(ops.square(re), ops.square(im)))
    return ops.complex(ops.negative(chain(share, im)), chain(share, re))


@primitive(infer=rules.unary(_INEXACT, lambda d: d.real_dtype), vjp=_angle_vjp, saves=("x",),
           body=lambda s, x: s.angle(x))
def angle(x: AnyTensor) -> AnyTensor:
    """Argument of a complex number, between -pi and pi; of a float pi below 0, else 0; NaN stays NaN.

    Gradient: 0 at 0.
    """
