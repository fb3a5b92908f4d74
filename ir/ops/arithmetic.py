"""Arithmetic: sums, products, quotients, remainders, powers, extremes and roots, elementwise.

Owns their declarations and gradients. What a function does to one number is in `ir/scalar_math.py`;
rounding, exponentials and their like are in `math.py`, choice between tensors in `casting.py`.
Gradients of complex tensors follow TensorFlow: the cotangent times the conjugate of the derivative.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import dims as dm
from .. import dtypes as dt
from .. import ops, rules
from ..dtypes import DType
from ..grad import chain, conj, unbroadcast, zeros_like
from ..op import Op, primitive
from ..scalar import Scalar, ScalarBuilder
from ..spec import spec
from ..types import AnyTensor, Cotangents, GradientRule, Spec

__all__ = ["abs_", "add", "add_n", "cbrt", "clip_by_value", "divide", "divide_no_nan", "floordiv", "floormod",
           "hypot", "masked_divide", "masked_multiply", "maximum", "minimum", "multiply", "multiply_no_nan", "negative",
           "pow_", "pow_derivative", "reciprocal", "rsqrt", "sign", "sqrt", "square", "squared_difference",
           "subtract", "truncatediv", "truncatemod"]

_NO_ZERO = "Integer division by zero"
_SIGNED = dt.SIGNED | dt.FLOATING | dt.COMPLEX


def _bare(x: Spec) -> bool:
    return not x.dtype.is_differentiable


# -- sums and products --------------------------------------------------------------------------------
def _add_vjp(ct: AnyTensor, out: Spec, x: Spec, y: Spec) -> Cotangents:
    return lambda: unbroadcast(ct, x), lambda: unbroadcast(ct, y)


@primitive(infer=rules.elementwise(dt.NUMERIC), vjp=_add_vjp, saves=(), body=lambda s, x, y: s.add(x, y))
def add(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x + y`, elementwise; integers wrap around.

    Args:
        x, y: numeric tensors of one dtype that broadcast together.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        DTypeError: dtypes differ or are not numeric. ShapeError: shapes do not broadcast.
    Gradient: the cotangent, to both.
    """


def _subtract_vjp(ct: AnyTensor, out: Spec, x: Spec, y: Spec) -> Cotangents:
    return lambda: unbroadcast(ct, x), lambda: ops.negative(unbroadcast(ct, y))


@primitive(infer=rules.elementwise(dt.NUMERIC), vjp=_subtract_vjp, saves=(), body=lambda s, x, y: s.sub(x, y))
def subtract(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x - y`, elementwise; integers wrap around. Operands and errors as `add`."""


def _multiply_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, y: AnyTensor) -> Cotangents:
    return (lambda: unbroadcast(chain(ct, conj(y)), x),
            lambda: unbroadcast(chain(ct, conj(x)), y))


@primitive(infer=rules.elementwise(dt.NUMERIC), vjp=_multiply_vjp, saves=("x", "y"), body=lambda s, x, y: s.mul(x, y))
def multiply(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x * y`, elementwise; integers wrap around. Operands and errors as `add`."""


def _multiply_no_nan_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, y: AnyTensor) -> Cotangents:
    return (lambda: unbroadcast(ops.masked_multiply(ct, conj(y)), x),
            lambda: unbroadcast(chain(ct, conj(x)), y))


@primitive(infer=rules.elementwise(dt.DIFFERENTIABLE), vjp=_multiply_no_nan_vjp, saves=("x", "y"),
           body=lambda s, x, y: s.select(s.eq(y, 0), s.const(0, y.dtype), s.mul(x, y)))
def multiply_no_nan(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x * y`, and 0 where `y` is 0, even where `x` is NaN or infinite; float or complex."""


def _masked_multiply_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, y: AnyTensor) -> Cotangents:
    return (lambda: unbroadcast(ops.masked_multiply(ct, conj(y)), x),
            lambda: unbroadcast(ops.masked_multiply(ct, conj(x)), y))


@primitive(infer=rules.elementwise(dt.DIFFERENTIABLE), vjp=_masked_multiply_vjp, saves=("x", "y"),
           body=lambda s, x, y: s.select(s.or_(s.eq(x, 0), s.eq(y, 0)), s.const(0, y.dtype), s.mul(x, y)))
def masked_multiply(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x * y`, and 0 where either is 0, even where the other is NaN or infinite; float or complex.

    For gradients of gradients, where either factor may be what was not taken.
    """


def _add_n_rule(op: Op, *values: Spec) -> Spec:
    if not values:
        raise rules.fail(op, values, "needs at least one tensor.")
    dtype = rules.same_dtype(op, values)
    rules.require_dtype(op, values, 0, dt.NUMERIC)
    first = values[0].dims
    for other in values[1:]:
        same = len(other.dims) == len(first)
        if not (same and all(dm.require_eq(a, b) for a, b in zip(first, other.dims, strict=True))):
            raise rules.fail(op, values, "shapes differ; all must have one shape.")
    return spec(first, dtype)


def _add_n_body(s: ScalarBuilder, *values: Scalar) -> Scalar:
    total = values[0]
    for value in values[1:]:
        total = s.add(total, value)
    return total


@primitive(infer=_add_n_rule, vjp=lambda ct, out, *values: (ct,) * len(values), saves=(), body=_add_n_body)
def add_n(*values: AnyTensor) -> AnyTensor:
    """Sum of tensors of one dtype and shape, from the first to the last, without broadcasting."""


def _square_vjp(ct: AnyTensor, out: Spec, x: AnyTensor) -> Cotangents:
    return chain(ct, ops.multiply(conj(x), 2))


@primitive(infer=rules.unary(dt.NUMERIC), vjp=_square_vjp, saves=("x",), body=lambda s, x: s.mul(x, x))
def square(x: AnyTensor) -> AnyTensor:
    """`x * x`, elementwise, of a numeric tensor."""


def _squared_difference_body(s: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    d = s.sub(x, y)
    if not d.dtype.is_complex:
        return s.mul(d, d)
    re, im = s.real(d), s.imag(d)
    return s.complex(re * re + im * im, s.const(0, re.dtype))


def _squared_difference_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, y: AnyTensor) -> Cotangents:
    if ct.dtype.is_complex:  # the result is real, whatever its dtype
        ct = ops.cast(ops.real(ct), dtype=ct.dtype)
    to_x = ops.multiply(ops.multiply(ct, 2), ops.subtract(x, y))
    return lambda: unbroadcast(to_x, x), lambda: ops.negative(unbroadcast(to_x, y))


@primitive(infer=rules.elementwise(dt.NUMERIC), vjp=_squared_difference_vjp, saves=("x", "y"),
           body=_squared_difference_body)
def squared_difference(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`(x - y)**2`, elementwise; for complex numbers `abs(x - y)**2`. Operands and errors as `add`."""


# -- signs --------------------------------------------------------------------------------------------
@primitive(infer=rules.unary(_SIGNED), vjp=lambda ct, out, x: ops.negative(ct), saves=(), body=lambda s, x: s.neg(x))
def negative(x: AnyTensor) -> AnyTensor:
    """`-x`, elementwise, of a signed, float or complex tensor; the most negative integer stays itself."""


def _abs_body(s: ScalarBuilder, x: Scalar) -> Scalar:
    return x if x.dtype.is_unsigned else s.complex_abs(x)


def _abs_vjp(ct: AnyTensor, out: Spec, x: AnyTensor) -> Cotangents:
    if x.dtype.is_complex:
        ct = ops.cast(ct, dtype=x.dtype)
    return chain(ct, ops.sign(x))


@primitive(infer=rules.unary(dt.NUMERIC, lambda d: d.real_dtype), vjp=_abs_vjp, saves=("x",), body=_abs_body)
def abs_(x: AnyTensor) -> AnyTensor:
    """Magnitude, elementwise; of a complex tensor it is real. The most negative integer stays itself."""


def _sign_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor) -> Cotangents:
    if not ct.dtype.is_complex:
        return zeros_like(ct)
    # only a turn moves the result: out' = i out dtheta, with dtheta = Re(conj(i out) dx) / |x|
    turn = ops.divide_no_nan(ops.imag(chain(conj(ct), out)), ops.abs(x))
    return chain(ops.complex(zeros_like(turn), ops.negative(turn)), out)


@primitive(infer=rules.unary(dt.NUMERIC), vjp=_sign_vjp, saves=("x", "out"), body=lambda s, x: s.sign(x))
def sign(x: AnyTensor) -> AnyTensor:
    """-1, 0 or 1 by the sign of `x`; for complex numbers `x / abs(x)`; NaN stays NaN."""


# -- quotients ----------------------------------------------------------------------------------------
def _quotient_dtype(dtype: DType) -> DType:
    """The dtype that true division gives: a float that is wide enough for the integers up to 16 bits, else float64."""
    if not dtype.is_integer:
        return dtype
    return dt.float32 if dtype.size <= 2 else dt.float64


def _as_quotient(s: ScalarBuilder, x: Scalar) -> Scalar:
    return s.cast(x, _quotient_dtype(x.dtype))


def _divide_vjp(ct: AnyTensor, out: AnyTensor, x: Spec, y: AnyTensor) -> Cotangents:
    if _bare(y):
        return None, None
    to_x = ops.masked_divide(ct, conj(y))
    return (lambda: unbroadcast(to_x, x),
            lambda: ops.negative(unbroadcast(chain(to_x, conj(out)), y)))


@primitive(infer=rules.elementwise(dt.NUMERIC, _quotient_dtype), vjp=_divide_vjp, saves=("y", "out"),
           body=lambda s, x, y: s.div(_as_quotient(s, x), _as_quotient(s, y)))
def divide(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x / y`, elementwise, never rounded to an integer.

    Args:
        x, y: numeric tensors of one dtype that broadcast together.
    Returns:
        Tensor of that dtype; of 8- and 16-bit integers float32, of wider ones float64.
    Raises:
        DTypeError: dtypes differ or are not numeric. ShapeError: shapes do not broadcast.
    Gradient: `ct / y` and `-ct * (x / y) / y`.
    """


def _masked_divide_vjp(ct: AnyTensor, out: AnyTensor, x: Spec, y: AnyTensor) -> Cotangents:
    def to_y() -> AnyTensor:
        return ops.negative(unbroadcast(ops.masked_divide(ops.masked_multiply(ct, conj(out)), conj(y)), y))
    return lambda: unbroadcast(ops.masked_divide(ct, conj(y)), x), to_y


def masked_quotient(s: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """`x / y`, and 0 where `x` is 0."""
    return s.select(s.eq(x, 0), s.const(0, x.dtype), s.div(x, y))


@primitive(infer=rules.elementwise(dt.DIFFERENTIABLE), vjp=_masked_divide_vjp, saves=("y", "out"),
           body=masked_quotient)
def masked_divide(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x / y`, and 0 where `x` is 0, even where `y` is 0 or NaN; float or complex. For gradients: `x` a cotangent.

    Gradient: that of `x / y`, also where `x` is 0; that of `xdivy` is 0 there.
    """


def _divide_no_nan_body(s: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    x, y = _as_quotient(s, x), _as_quotient(s, y)
    none = s.eq(y, 0)
    return s.select(none, s.const(0, x.dtype), s.div(x, s.select(none, s.const(1, y.dtype), y)))


def _divide_no_nan_vjp(ct: AnyTensor, out: AnyTensor, x: Spec, y: AnyTensor) -> Cotangents:
    if _bare(y):
        return None, None
    return (lambda: unbroadcast(ops.divide_no_nan(ct, conj(y)), x),
            lambda: ops.negative(unbroadcast(ops.divide_no_nan(ops.masked_multiply(ct, conj(out)), conj(y)), y)))


@primitive(infer=rules.elementwise(dt.NUMERIC, _quotient_dtype), vjp=_divide_no_nan_vjp, saves=("y", "out"),
           body=_divide_no_nan_body)
def divide_no_nan(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x / y`, and 0 where `y` is 0, whatever `x` is there. Operands, result and errors as `divide`."""


def _whole_body(name: str) -> Callable[[ScalarBuilder, Scalar, Scalar], Scalar]:
    """The body of the op `name`: a whole quotient or its remainder, which integers have only where `y` is not 0."""
    def body(s: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.is_integer:
            s.check(s.ne(y, 0), _NO_ZERO)
        return getattr(s, name)(x, y)
    return body


def _remainder_vjp(quotient: str) -> GradientRule:
    """The gradient of `x - quotient(x, y) * y`, the quotient held constant."""
    def vjp(ct: AnyTensor, out: Spec, x: AnyTensor, y: AnyTensor) -> Cotangents:
        return (lambda: unbroadcast(ct, x),
                lambda: ops.negative(unbroadcast(chain(ct, getattr(ops, quotient)(x, y)), y)))
    return vjp


@primitive(infer=rules.elementwise(dt.REAL), vjp=None, body=_whole_body("floordiv"))
def floordiv(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x / y` rounded down, elementwise, of real tensors of one dtype.

    Raises:
        InvalidArgumentError: an integer `y` is 0.
    """


@primitive(infer=rules.elementwise(dt.REAL), vjp=_remainder_vjp("floordiv"), saves=("x", "y"),
           body=_whole_body("floormod"))
def floormod(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Remainder of `floordiv`, with the sign of `y`. Operands and errors as `floordiv`."""


@primitive(infer=rules.elementwise(dt.REAL), vjp=None, body=_whole_body("truncatediv"))
def truncatediv(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x / y` rounded toward zero. Operands and errors as `floordiv`."""


@primitive(infer=rules.elementwise(dt.REAL), vjp=_remainder_vjp("truncatediv"), saves=("x", "y"),
           body=_whole_body("truncatemod"))
def truncatemod(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Remainder of `truncatediv`, with the sign of `x`. Operands and errors as `floordiv`."""


def _reciprocal_vjp(ct: AnyTensor, out: AnyTensor, x: Spec) -> Cotangents:
    y = conj(out)
    return ops.negative(chain(chain(ct, y), y))


def _reciprocal_body(s: ScalarBuilder, x: Scalar) -> Scalar:
    return s.reciprocal(x) if x.dtype.is_complex else s.div(1, x)


@primitive(infer=rules.unary(dt.DIFFERENTIABLE), vjp=_reciprocal_vjp, saves=("out",), body=_reciprocal_body)
def reciprocal(x: AnyTensor) -> AnyTensor:
    """`1 / x`, elementwise, of a float or complex tensor."""


# -- powers and roots ---------------------------------------------------------------------------------
def _pow_body(s: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    if x.dtype.is_integer and not x.dtype.is_unsigned:
        s.check(s.ge(y, 0), "Integers to negative integer powers are not allowed")
    return s.pow(x, y)


def _log_base(x: AnyTensor) -> tuple[AnyTensor, AnyTensor]:
    """Where log(x) counts in the gradient by the exponent, and `x` with 1 elsewhere."""
    counts = ops.not_equal(x, 0) if x.dtype.is_complex else ops.greater(x, 0)
    return counts, ops.where(counts, x, 1)


def _pow_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, y: AnyTensor) -> Cotangents:
    def to_y() -> AnyTensor:
        counts, base = _log_base(x)
        slope = chain(ops.log(base), ops.pow(base, y))
        return unbroadcast(ops.where(counts, chain(ct, conj(slope)), 0), y)
    return lambda: unbroadcast(chain(ct, conj(ops.pow_derivative(x, y))), x), to_y


@primitive(infer=rules.elementwise(dt.NUMERIC), vjp=_pow_vjp, saves=("x", "y"), body=_pow_body)
def pow_(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`x**y`, elementwise, of numeric tensors of one dtype; NaN for a negative `x` and a fractional `y`.

    Raises:
        InvalidArgumentError: an integer `y` is negative.
    Gradient: `y * x**(y-1)`, 0 where x and y are 0; by `y`, `x**y * log(x)`, 0 where `x <= 0`.
    """


def _pow_derivative_body(s: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    both_zero = s.and_(s.eq(x, 0), s.eq(y, 0))
    base = s.select(both_zero, s.const(1, x.dtype), x)
    return s.mul(y, s.pow(base, s.sub(y, 1)))


def _pow_derivative_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, y: AnyTensor) -> Cotangents:
    def to_y() -> AnyTensor:
        counts, base = _log_base(x)
        slope = chain(ops.add(ops.multiply(y, ops.log(base)), 1), ops.pow(base, ops.subtract(y, 1)))
        return unbroadcast(ops.where(counts, chain(ct, conj(slope)), 0), y)

    def to_x() -> AnyTensor:
        second = chain(y, ops.pow_derivative(x, ops.subtract(y, 1)))
        return unbroadcast(chain(ct, conj(second)), x)
    return to_x, to_y


@primitive(infer=rules.elementwise(dt.DIFFERENTIABLE), vjp=_pow_derivative_vjp, saves=("x", "y"),
           body=_pow_derivative_body)
def pow_derivative(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Derivative of `x**y` by `x`: `y * x**(y-1)`, and 0 where both are 0; float or complex."""


def _sqrt_vjp(ct: AnyTensor, out: AnyTensor, x: Spec) -> Cotangents:
    return ops.masked_divide(ops.multiply(ct, 0.5), conj(out))


@primitive(infer=rules.unary(dt.DIFFERENTIABLE), vjp=_sqrt_vjp, saves=("out",), body=lambda s, x: s.complex_sqrt(x))
def sqrt(x: AnyTensor) -> AnyTensor:
    """Square root, elementwise, of a float or complex tensor; NaN for negative floats."""


def _rsqrt_vjp(ct: AnyTensor, out: AnyTensor, x: Spec) -> Cotangents:
    y = conj(out)
    return chain(chain(chain(ops.multiply(ct, -0.5), y), y), y)


@primitive(infer=rules.unary(dt.DIFFERENTIABLE), vjp=_rsqrt_vjp, saves=("out",), body=lambda s, x: s.rsqrt(x))
def rsqrt(x: AnyTensor) -> AnyTensor:
    """`1 / sqrt(x)`, elementwise, of a float or complex tensor."""


@primitive(infer=rules.unary(dt.FLOATING), saves=("out",),
           vjp=lambda ct, out, x: ops.masked_divide(ct, ops.multiply(ops.square(out), 3)), body=lambda s, x: s.cbrt(x))
def cbrt(x: AnyTensor) -> AnyTensor:
    """Cube root, elementwise, of a float tensor, with the sign of `x`. Gradient: infinite at 0."""


def _hypot_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor, y: AnyTensor) -> Cotangents:
    return (lambda: unbroadcast(chain(ct, ops.divide_no_nan(x, out)), x),
            lambda: unbroadcast(chain(ct, ops.divide_no_nan(y, out)), y))


@primitive(infer=rules.elementwise(dt.FLOATING), vjp=_hypot_vjp, saves=("x", "y", "out"),
           body=lambda s, x, y: s.hypot(x, y))
def hypot(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """`sqrt(x**2 + y**2)`, elementwise, where the squares would overflow or vanish too.

    Args:
        x, y: float tensors of one dtype that broadcast together.
    Returns:
        Tensor of that dtype; infinite where either operand is, even where the other is NaN.
    Gradient: `x / out` and `y / out`, 0 where both operands are 0.
    """


# -- extremes -----------------------------------------------------------------------------------------
def _maximum_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, y: AnyTensor) -> Cotangents:
    wins = ops.greater_equal(x, y)
    return (lambda: unbroadcast(ops.where(wins, ct, 0), x), lambda: unbroadcast(ops.where(wins, 0, ct), y))


@primitive(infer=rules.elementwise(dt.REAL), vjp=_maximum_vjp, saves=("x", "y"), body=lambda s, x, y: s.maximum(x, y))
def maximum(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Larger of `x` and `y`, elementwise; NaN where either is NaN, `x` where they compare equal.

    Args:
        x, y: real tensors of one dtype that broadcast together.
    Gradient: to the larger operand, ties to `x`.
    """


def _minimum_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, y: AnyTensor) -> Cotangents:
    wins = ops.less_equal(x, y)
    return (lambda: unbroadcast(ops.where(wins, ct, 0), x), lambda: unbroadcast(ops.where(wins, 0, ct), y))


@primitive(infer=rules.elementwise(dt.REAL), vjp=_minimum_vjp, saves=("x", "y"), body=lambda s, x, y: s.minimum(x, y))
def minimum(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Smaller of `x` and `y`, elementwise; NaN where either is NaN, `x` where they compare equal. As `maximum`."""


def _clip_rule(op: Op, *operands: Spec) -> Spec:
    out = rules.elementwise(dt.REAL)(op, *operands)
    want, dims = operands[0].dims, rules.broadcast(op, operands)
    if len(dims) != len(want) or not all(dm.require_eq(a, b) for a, b in zip(dims, want, strict=True)):
        raise rules.fail(op, operands, "the bounds must broadcast to the shape of x, not the other way round.")
    return out


def _clip_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, low: AnyTensor, high: AnyTensor) -> Cotangents:
    below, above = ops.less(x, low), ops.greater(x, high)
    return (lambda: ops.where(ops.logical_or(below, above), 0, ct),
            lambda: unbroadcast(ops.where(below, ct, 0), low),
            lambda: unbroadcast(ops.where(above, ct, 0), high))


@primitive(infer=_clip_rule, vjp=_clip_vjp, saves=("x", "low", "high"),
           body=lambda s, x, low, high: s.maximum(s.minimum(x, high), low))
def clip_by_value(x: AnyTensor, low: AnyTensor, high: AnyTensor) -> AnyTensor:
    """`x` moved into `[low, high]`, elementwise; NaN stays NaN. The bounds broadcast to the shape of `x`.

    Gradient: to `x` where it lies within, else to the bound that took its place.
    """
