"""The body of an elementwise op, written as ONNX nodes.

An op has one definition: a scalar body (`ir/scalar.py`). Here a builder takes it that writes a node for each
instruction, and for the mathematical functions that ONNX has an operator of, that operator. So all elementwise ops have
their meaning in ONNX from where they have all others. Functions that ONNX lacks are written by formulas that cancel
nothing (`expm1`, `log1p`, ...), or, where there is none, by the instructions of their own bodies, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.instructions import Scalar, ScalarLike
from twofold.ir.scalar import ScalarBuilder
from twofold.ir.scalar_math import function

from .export_writer import NoMeaning, Ref, Writer, require_real
from .types import ELEMENT_TYPES

__all__ = ["Scalars", "bits_as", "saturated"]

_PLAIN = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "neg": "Neg", "abs": "Abs", "sqrt": "Sqrt",
          "floor": "Floor", "ceil": "Ceil", "rint": "Round", "eq": "Equal", "lt": "Less", "le": "LessOrEqual",
          "gt": "Greater", "ge": "GreaterOrEqual"}
_LOGIC = {"and": ("And", "BitwiseAnd"), "or": ("Or", "BitwiseOr"), "xor": ("Xor", "BitwiseXor"),
          "not": ("Not", "BitwiseNot")}
_BITCAST_OPSET = 26


class Scalars(ScalarBuilder):
    """Writes the instructions of a body as nodes; its values stand for tensors that broadcast."""

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer
        self._refs: dict[int, Ref] = {}

    def value(self, x: Ref) -> Scalar:
        """A tensor as a value of the body."""
        require_real(x.dtype)
        x = self._writer.cast(x, x.dtype.compute)
        scalar = self.new(x.dtype)
        self._refs[scalar.id] = x
        return scalar

    def ref(self, value: Scalar) -> Ref:
        """The tensor that a value stands for."""
        return self._refs[value.id]

    def known(self, value: Scalar) -> np.ndarray | None:
        """The array of a constant; None for any other value."""
        return self._writer.value_of(self.ref(value))

    def _emit(self, op: str, args: tuple[Scalar, ...], dtype: DType, const: Any = None) -> Scalar:
        key = (op, tuple([a.id for a in args]), id(dtype), repr(const))
        if key in self._memo:
            return self._memo[key]
        if op == "const":
            written = self._writer.constant(const, dtype)
        else:
            written = self._instruction(op, [self._refs[a.id] for a in args], dtype)
        return self._kept(key, written)

    def _kept(self, key: tuple[Any, ...], ref: Ref) -> Scalar:
        out = self.new(ref.dtype)
        self._refs[out.id] = ref
        self._memo[key] = out
        return out

    # -- instructions -----------------------------------------------------------------------------
    def _instruction(self, op: str, args: list[Ref], dtype: DType) -> Ref:
        w = self._writer
        if op in _PLAIN:
            if op in ("neg", "abs") and dtype.is_unsigned:
                return args[0] if op == "abs" else w.op("Sub", w.constant(0, dtype), args[0])
            return w.op(_PLAIN[op], *args, dtype=dtype)
        if op in _LOGIC:
            return w.op(_LOGIC[op][dtype.is_integer], *args)
        if op == "ne":
            return w.op("Not", w.op("Equal", *args, dtype=dt.bool_))
        if op == "fma":
            return w.op("Add", w.op("Mul", args[0], args[1]), args[2])
        if op == "select":
            return _chosen(w, *args)
        if op == "trunc":
            down, up = w.op("Floor", args[0]), w.op("Ceil", args[0])
            return w.op("Where", w.op("Less", args[0], w.constant(0, dtype), dtype=dt.bool_), up, down, dtype=dtype)
        if op == "cast":
            return saturated(w, args[0], dtype)
        other: Callable[[list[Ref], DType], Ref] | None = getattr(self, f"_write_{op}", None)
        if other is None:
            raise NoMeaning(f"ONNX has no operator for the instruction {op}", "compute it before or after the model")
        return other(args, dtype)

    def _write_copysign(self, args: list[Ref], dtype: DType) -> Ref:
        w = self._writer
        size, zero = w.op("Abs", args[0]), w.constant(0, dtype)
        below = w.op("Less", args[1], zero, dtype=dt.bool_)
        minus_zero = w.op("Less", w.op("Reciprocal", args[1]), zero, dtype=dt.bool_)  # 1 / -0.0 is -inf
        return w.op("Where", w.op("Or", below, minus_zero), w.op("Neg", size), size, dtype=dtype)

    def _write_idiv(self, args: list[Ref], dtype: DType) -> Ref:
        """Toward zero, without what traps: division by 0 gives 0, and the lowest number by -1 itself."""
        w = self._writer
        x, y = args
        divisor, unusual = self._divisor(y, dtype)
        quotient = w.op("Div", x, divisor)
        if unusual is None:
            return quotient
        zero, minus = unusual
        if minus is not None:
            quotient = w.op("Where", minus, w.op("Neg", x), quotient, dtype=dtype)
        return w.op("Where", zero, w.constant(0, dtype), quotient, dtype=dtype)

    def _write_irem(self, args: list[Ref], dtype: DType) -> Ref:
        w = self._writer
        x, y = args
        divisor, unusual = self._divisor(y, dtype)
        rest = w.op("Mod", x, divisor, fmod=1)
        if unusual is None:
            return rest
        never = unusual[0] if unusual[1] is None else w.op("Or", *unusual)
        return w.op("Where", never, w.constant(0, dtype), rest, dtype=dtype)

    def _divisor(self, y: Ref, dtype: DType) -> tuple[Ref, tuple[Ref, Ref | None] | None]:
        """A divisor with which nothing traps, and where `y` is 0 and where it is -1."""
        w = self._writer
        known = w.value_of(y)
        if known is not None and ((known != 0) & (known.astype(np_int(dtype)) != -1)).all():
            return y, None
        zero = w.op("Equal", y, w.constant(0, dtype), dtype=dt.bool_)
        minus = None if dtype.is_unsigned else w.op("Equal", y, w.constant(-1, dtype), dtype=dt.bool_)
        either = zero if minus is None else w.op("Or", zero, minus)
        return w.op("Where", either, w.constant(1, dtype), y, dtype=dtype), (zero, minus)

    def _write_shl(self, args: list[Ref], dtype: DType) -> Ref:
        w, bits = self._writer, _UNSIGNED[dtype.size]
        return w.cast(w.op("BitShift", w.cast(args[0], bits), self._count(args[1], bits), direction="LEFT"), dtype)

    def _write_shr(self, args: list[Ref], dtype: DType) -> Ref:
        w, bits = self._writer, _UNSIGNED[dtype.size]
        count = self._count(args[1], bits)
        if dtype.is_unsigned:
            return w.op("BitShift", args[0], count, direction="RIGHT")
        below = w.op("Less", args[0], w.constant(0, dtype), dtype=dt.bool_)
        turned = w.op("Where", below, w.op("BitwiseNot", args[0]), args[0], dtype=dtype)
        moved = w.cast(w.op("BitShift", w.cast(turned, bits), count, direction="RIGHT"), dtype)
        return w.op("Where", below, w.op("BitwiseNot", moved), moved, dtype=dtype)

    def _count(self, y: Ref, bits: DType) -> Ref:
        w = self._writer
        known = w.value_of(y)
        if known is not None:
            return w.constant(known & (8 * bits.size - 1), bits)
        return w.op("BitwiseAnd", w.cast(y, bits), w.constant(8 * bits.size - 1, bits))

    def _write_bitcast(self, args: list[Ref], dtype: DType) -> Ref:
        return bits_as(self._writer, args[0], dtype)

    # -- functions --------------------------------------------------------------------------------
    def isnan(self, x: Scalar) -> Scalar:
        return self._one("IsNaN", x, dt.bool_)

    def isinf(self, x: Scalar) -> Scalar:
        return self._one("IsInf", x, dt.bool_)

    def minimum(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._two("Min", *self._pair(x, y))

    def maximum(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._two("Max", *self._pair(x, y))

    def _one(self, kind: str, x: Scalar, dtype: DType | None = None) -> Scalar:
        key = (kind, x.id)
        if key in self._memo:
            return self._memo[key]
        return self._kept(key, self._writer.op(kind, self.ref(x), dtype=dtype))

    def _two(self, kind: str, x: Scalar, y: Scalar, **attrs: Any) -> Scalar:
        key = (kind, x.id, y.id)
        if key in self._memo:
            return self._memo[key]
        return self._kept(key, self._writer.op(kind, self.ref(x), self.ref(y), **attrs))

    def __getattr__(self, name: str) -> Callable[..., Scalar]:
        """A mathematical function: an operator of ONNX, a formula, or else its own body."""
        if name in _OPERATORS and not (name == "erf" and self._writer.opset >= _BITCAST_OPSET):
            return lambda x: self._one(_OPERATORS[name], x)
        formula = _FORMULAS.get(name)
        if formula is not None:
            return lambda *args, **kwargs: formula(self, *args, **kwargs)
        return super().__getattr__(name)


def np_int(dtype: DType) -> Any:
    """A NumPy type in which -1 can be told from the numbers of `dtype`."""
    return object if dtype.size == 8 else "int64"


_UNSIGNED = {1: dt.uint8, 2: dt.uint16, 4: dt.uint32, 8: dt.uint64}

_OPERATORS = {"exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos",
              "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh",
              "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "complex_sqrt": "Sqrt"}


def _chosen(w: Writer, condition: Ref, x: Ref, y: Ref) -> Ref:
    if x.dtype is not dt.bool_:
        return w.op("Where", condition, x, y, dtype=x.dtype)
    return w.op("Or", w.op("And", condition, x), w.op("And", w.op("Not", condition), y))


def bits_as(w: Writer, x: Ref, dtype: DType) -> Ref:
    """The bits of `x` as a dtype of the same width."""
    if x.dtype.is_integer and dtype.is_integer:
        return w.cast(x, dtype)  # between integers of one width a cast keeps the bits
    if w.opset < _BITCAST_OPSET:
        raise NoMeaning(f"ONNX reads the bits of a {x.dtype.name} as {dtype.name} from opset {_BITCAST_OPSET} on",
                        f"give opset={_BITCAST_OPSET} or more")
    return w.op("BitCast", x, dtype=dtype, to=ELEMENT_TYPES[dtype])


def saturated(w: Writer, x: Ref, dtype: DType) -> Ref:
    """`x` converted as `cast` does it: floats beyond the limits of an integer become the limits, and NaN 0."""
    if x.dtype is dtype:
        return x
    if dtype.is_bool:
        wide = w.cast(x, x.dtype.compute)
        return w.op("Not", w.op("Equal", wide, w.constant(0, wide.dtype), dtype=dt.bool_))
    if dtype.size <= 2 and dtype.is_floating and x.dtype is not dt.float32:
        return w.cast(w.cast(x, dt.float32), dtype)
    if not (x.dtype.is_floating and dtype.is_integer):
        return w.cast(x, dtype)
    x = w.cast(x, x.dtype.compute)
    low, high = int(dtype.min), int(dtype.max)
    nearest = float(x.dtype.np.type(high))
    number = w.op("Where", w.op("IsNaN", x, dtype=dt.bool_), w.constant(0, x.dtype), x, dtype=x.dtype)
    if nearest <= high:
        return w.cast(w.op("Min", w.op("Max", number, w.constant(low, x.dtype)), w.constant(high, x.dtype)), dtype)
    above = w.op("GreaterOrEqual", number, w.constant(nearest, x.dtype), dtype=dt.bool_)
    inside = w.op("Where", above, w.constant(0, x.dtype), w.op("Max", number, w.constant(low, x.dtype)), dtype=x.dtype)
    return w.op("Where", above, w.constant(high, dtype), w.cast(inside, dtype), dtype=dtype)


# -- formulas for what ONNX has no operator of -----------------------------------------------------------
def _erf(s: Scalars, x: Scalar) -> Scalar:
    """Of float64 by the instructions of its own body: runtimes know the operator for float32 alone."""
    return s._one("Erf", x) if x.dtype is dt.float32 else _in_float64("erf")(s, x)


def _expm1(s: Scalars, x: Scalar) -> Scalar:
    """With t = tanh(x/2) it is 2t / (1 - t), in which nothing cancels for small x."""
    t = s.tanh(x * 0.5)
    return s.select(s.lt(s.abs(x), 1.0), (t + t) / (1.0 - t), s.exp(x) - 1.0)


def _log1p(s: Scalars, x: Scalar) -> Scalar:
    """log(u) * x / (u - 1) with u = 1 + x as it was rounded: the errors of both factors cancel.

    Source: Higham, "Accuracy and Stability of Numerical Algorithms" (2nd ed., 2002), section 1.14.1.
    """
    u = x + 1.0
    rounded = u - 1.0
    plain = s.or_(s.eq(rounded, 0.0), s.gt(u, 1e10 if x.dtype is dt.float32 else 1e20))
    near = s.log(u) * (x / s.select(plain, 1.0, rounded))
    return s.select(s.eq(rounded, 0.0), x, s.select(plain, s.log(u), near))


def _log_to(base: float) -> Callable[[Scalars, Scalar], Scalar]:
    def formula(s: Scalars, x: Scalar) -> Scalar:
        return s.cast(s.log(s.cast(x, dt.float64)) * (1 / math.log(base)), x.dtype)
    return formula


def _softplus(s: Scalars, x: Scalar) -> Scalar:
    return s.maximum(x, 0.0) + s.log1p(s.exp(-s.abs(x)))


def _log_sigmoid(s: Scalars, x: Scalar) -> Scalar:
    return -_softplus(s, -x)


def _silu(s: Scalars, x: Scalar) -> Scalar:
    return s.select(s.eq(x, -math.inf), x * 0.0, x * s.sigmoid(x))


def _silu_slope(s: Scalars, x: Scalar) -> Scalar:
    p = s.sigmoid(x)
    rest = s.select(s.isinf(x), 0.0, x) * (1.0 - p)
    return s.select(s.eq(x, -math.inf), x * 0.0, p * (rest + 1.0))


def _normal(s: Scalars, x: Scalar) -> Scalar:
    """The probability that a standard normal variable stays below x."""
    return (s.erf(x * math.sqrt(0.5)) + 1.0) * 0.5


def _gelu(s: Scalars, x: Scalar) -> Scalar:
    return s.select(s.eq(x, -math.inf), x * 0.0, x * _normal(s, x))


def _gelu_slope(s: Scalars, x: Scalar) -> Scalar:
    finite = s.select(s.isinf(x), 0.0, x)
    density = s.exp(finite * finite * -0.5) * (1 / math.sqrt(2 * math.pi))
    return s.select(s.eq(x, -math.inf), x * 0.0, _normal(s, x) + finite * density)


def _rsqrt(s: Scalars, x: Scalar) -> Scalar:
    return 1.0 / s.sqrt(x)


def _hypot(s: Scalars, x: Scalar, y: Scalar) -> Scalar:
    a, b = s.abs(x), s.abs(y)
    large, small = s.maximum(a, b), s.minimum(a, b)
    ratio = small / s.select(s.eq(large, 0.0), 1.0, large)
    value = large * s.sqrt(ratio * ratio + 1.0)
    return s.select(s.or_(s.isinf(x), s.isinf(y)), math.inf, value)


def _cbrt(s: Scalars, x: Scalar) -> Scalar:
    """A power, mended by one step of Newton's, in float64."""
    wide = s.cast(x, dt.float64)
    size = s.abs(wide)
    plain = s.or_(s.eq(size, 0.0), s.or_(s.isinf(size), s.isnan(size)))
    root = s.pow(size, s.const(1 / 3, dt.float64))
    y = s.select(plain, 1.0, root)
    y = y - (y * y * y - size) / (y * y * 3.0)
    return s.cast(s.select(plain, wide, s.select(s.lt(wide, 0.0), -y, y)), x.dtype)


def _atan2(s: Scalars, y: Scalar, x: Scalar) -> Scalar:
    one = s.const(1.0, x.dtype)
    both = s.and_(s.isinf(x), s.isinf(y))
    top, base = s.select(both, s.copysign(one, y), y), s.select(both, s.copysign(one, x), x)
    none = s.and_(s.eq(top, 0.0), s.eq(base, 0.0))
    turn = s.atan(top / s.select(none, s.copysign(one, base), base))
    left = s.lt(s.copysign(one, base), 0.0)
    return s.select(left, turn + s.copysign(s.const(math.pi, x.dtype), top), turn)


def _pow(s: Scalars, x: Scalar, y: Scalar) -> Scalar:
    """Of integers by repeated squaring, as runtimes compute theirs in float64; of floats the operator."""
    if not x.dtype.is_integer:
        return s._two("Pow", x, y)
    exponent = s.known(y)
    if exponent is not None and exponent.size == 1 and exponent.item() > 0:
        return _whole_power(x, int(exponent.item()))
    body = function("pow")
    assert body is not None
    return body(s, x, y)


def _whole_power(x: Scalar, exponent: int) -> Scalar:
    power = x if exponent % 2 else None
    while exponent := exponent // 2:
        x = x * x
        if exponent % 2:
            power = x if power is None else power * x
    assert power is not None
    return power


def _truncatemod(s: Scalars, x: Scalar, y: Scalar) -> Scalar:
    if x.dtype.is_integer:
        return s.irem(x, y)
    return s._two("Mod", x, y, fmod=1)


def _floormod(s: Scalars, x: Scalar, y: Scalar) -> Scalar:
    rest = _truncatemod(s, x, y)
    if x.dtype.is_unsigned:
        return rest
    differ = s.and_(s.ne(rest, 0), s.xor(s.lt(rest, 0), s.lt(y, 0)))
    return s.select(differ, rest + y, rest)


def _in_float64(name: str) -> Callable[..., Scalar]:
    """The instructions of a function's own body, recorded for float64, whatever is given."""
    def formula(s: Scalars, *args: Scalar, **kwargs: Any) -> Scalar:
        body = function(name)
        assert body is not None
        return s.cast(body(s, *[s.cast(x, dt.float64) for x in args], **kwargs), args[0].dtype)
    return formula


_FORMULAS: dict[str, Callable[..., Scalar]] = {
    "erf": _erf, "expm1": _expm1, "log1p": _log1p, "log2": _log_to(2), "log10": _log_to(10), "softplus": _softplus,
    "log_sigmoid": _log_sigmoid, "silu": _silu, "silu_slope": _silu_slope, "gelu": _gelu, "gelu_slope": _gelu_slope,
    "rsqrt": _rsqrt, "hypot": _hypot, "cbrt": _cbrt, "atan2": _atan2, "pow": _pow, "truncatemod": _truncatemod,
    "floormod": _floormod,
    **{name: _in_float64(name) for name in ("erfc", "erfinv", "ndtri", "lgamma", "digamma", "polygamma")},
}
