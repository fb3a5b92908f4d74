"""Calls of `tf.experimental.numpy`, as text that TensorFlow, NumPy and this library evaluate.

`np` is the module of functions; `a` and `b` are matrices [2, 3], `v` and `w` vectors [3], `m` a square matrix and `s` a
scalar, all of the dtype that is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy

_UNARY = """abs absolute angle arccosh arcsinh arctan around bitwise_not cbrt ceil conj conjugate cos cosh deg2rad exp
exp2 expm1 fabs fix floor imag iscomplex isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 logical_not
negative positive rad2deg real reciprocal round sign signbit sin sinc sinh sqrt square tan tanh all amax amin any argmax
argmin argsort count_nonzero cumprod cumsum max mean min nanmean nanprod nansum prod ptp sort std sum var average copy
diagflat diff flip fliplr flipud ravel ndim shape size squeeze transpose ones_like zeros_like empty_like
nonzero tril triu trace diagonal where"""
#: those whose operands are below 1
SMALL = ["arccos", "arcsin", "arctanh"]
_BINARY = """add arctan2 bitwise_and bitwise_or bitwise_xor divide equal float_power floor_divide gcd greater
greater_equal
heaviside hypot isclose lcm less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor maximum
minimum mod multiply nextafter not_equal power remainder subtract true_divide allclose array_equal inner outer
vdot append kron tensordot broadcast_arrays divmod"""
REDUCTIONS = ["all", "amax", "amin", "any", "max", "mean", "min", "nanmean", "nanprod", "nansum", "prod", "ptp", "std",
              "sum", "var"]
_OTHERS = """np.angle(a, True)|np.around(a, 1)|np.clip(a, b, 3)|np.clip(a, None, 2)|np.isclose(a, b, equal_nan=True)
np.argmax(a, 0)|np.argmin(a, 1)|np.argsort(a, 0)|np.sort(a, 0)|np.cumsum(a, 0)|np.cumprod(a, 1)|np.count_nonzero(a, 0)
np.diff(a, 2, 1)|np.var(a, ddof=1)|np.average(a, 1, v)|np.average(v, weights=w, returned=True)
np.sum(a, dtype='float64')|np.mean(a, dtype='float64')|np.prod(a, dtype='float32')|np.cumsum(a, dtype='float64')
np.atleast_1d(s)|np.atleast_2d(v, s)|np.atleast_3d(a)|np.broadcast_to(v, (2, 3))|np.concatenate([a, b], 1)
np.concatenate([a, v], None)|np.stack([v, w])|np.stack([v, w], -1)|np.hstack([v, w])|np.hstack([a, b])
np.vstack([v, w])|np.dstack([v, w])|np.append(a, b, 0)|np.split(v, 3)|np.split(a, [1], 1)|np.hsplit(a, 3)
np.vsplit(a, 2)|np.dsplit(np.reshape(a, (1, 2, 3)), 3)|np.repeat(a, 2)|np.repeat(a, [1, 2], 0)|np.tile(v, 2)
np.tile(a, (2, 1, 2))|np.meshgrid(v, w)|np.meshgrid(v, w, indexing='ij')|np.pad(a, [[1, 1], [0, 2]], 'constant')
np.pad(v, [[1, 2]], 'reflect')|np.pad(v, [[2, 1]], 'symmetric')|np.pad(v, [[1, 1]], 'constant', constant_values=2)
np.reshape(a, (3, 2))|np.reshape(a, (3, -1), order='F')|np.expand_dims(v, 0)|np.squeeze(np.reshape(v, (1, 3)), 0)
np.transpose(a, (1, 0))|np.swapaxes(a, 0, 1)|np.moveaxis(np.reshape(a, (1, 2, 3)), 0, -1)|np.flip(a, 1)|np.rot90(a)
np.rot90(a, -1)|np.rot90(a, 2)|np.roll(a, 1)|np.roll(a, 1, 0)|np.roll(a, (1, 2), (0, 1))|np.take(a, [0, 2], 1)
np.take(a, [1, 3])|np.take(v, [0, 4], mode='wrap')|np.take_along_axis(a, np.argsort(a, 1), 1)|np.where(a > a, a, b)
np.where(a, a, 2.5)|np.compress([True, False, True], v)|np.compress([True, False], a, 0)
np.select([np.equal(a, b), np.not_equal(a, b)], [a, b])|np.diagonal(m, 1)|np.tril(m, -1)|np.triu(a, 1)|np.diag(v)
np.diag(m)|np.diag(v, 1)|np.matmul(a, v)|np.matmul(m, m)|np.matmul(v, w)|np.dot(a, v)|np.dot(v, w)|np.dot(s, a)
np.inner(a, b)|np.cross(v, w)|np.tensordot(a, b, ([1], [1]))|np.einsum('ij,ij->i', a, b)|np.trace(m, 1)
np.polyval(v, s)|np.vander(v)|np.vander(v, 2, increasing=True)|np.full_like(a, 2)|np.full((2,), s)
np.ones_like(a, float)
np.array(a)|np.asarray(a, 'float32')|np.asanyarray(v)|np.ascontiguousarray(s)|np.array(v, ndmin=2)|np.array([s, s])
np.linspace(s, 5, 3)|np.linspace(0, s, 4, endpoint=False)|np.logspace(0, s, 3)|np.geomspace(s, 8, 3)|np.ix_([0, 1], [2])
np.add(a, 1)|np.add(a, 1.5)|np.multiply(2, a)|np.divide(a, 2)|np.power(a, 2)|np.floor_divide(a, 2)|np.mod(a, 2.5)
np.maximum(a, 1.5)|np.equal(a, 1)|np.hypot(a, 1)|np.subtract(a, True)|np.nansum(a, 0)|np.iscomplexobj(a)|np.isrealobj(a)
np.isscalar(s)|np.size(a)|np.max(a, (0, 1))|np.sum(a, (0, 1), keepdims=True)"""
#: calls that take no operand
_MADE = """np.array(1)|np.array(1.5)|np.array([1, 2.5])|np.array([True])|np.array(1j)|np.arange(3)|np.arange(1.5, 4)
np.arange(0, 1, 0.25)|np.arange(3, dtype='int32')|np.ones(2)|np.ones((2, 1), int)|np.zeros(2)|np.zeros((2,), bool)
np.empty((2, 3)).shape|np.full(2, 3)|np.full((2,), 1.5)|np.eye(2)|np.eye(2, 3, 1)|np.identity(2)|np.tri(2)
np.tri(2, 3, 1)
np.linspace(0, 1, 3)|np.linspace(0, 1, 3, retstep=True)|np.logspace(0, 1, 3)|np.geomspace(1, 8, 4)|np.diag_indices(2)
np.add(1, 2)|np.sin(1)|np.mean([1, 2])|np.sum([True, True])|np.where(True, 1, 2.5)|np.concatenate([[1], [2.5]])
np.result_type(1, 2.5)|np.result_type(1)|np.iinfo('int8').max|np.finfo('float32').bits|np.e|np.pi|np.inf|np.newaxis
np.issubdtype(np.float32, np.inexact)|np.promote_types('int32', 'float32')|np.isscalar(1)|np.ndim([[1]])
np.shape([[1, 2]])"""

def lines(text: str) -> list[str]:
    """The calls of a text, which stand in lines or with bars between."""
    return text.replace("\n", "|").split("|")


MADE = lines(_MADE)
DTYPES = ["bool", "int8", "uint8", "int32", "float16", "float32", "float64", "complex64"]


def calls() -> list[str]:
    """The calls with operands."""
    more = [f"np.{name}(a, 1, keepdims=True)" for name in REDUCTIONS]
    return [*[f"np.{name}(a)" for name in _UNARY.split()], *[f"np.{name}(a / 8)" for name in SMALL],
            *[f"np.{name}(a, b)" for name in _BINARY.split()], *more, *lines(_OTHERS)]


def run(call: str, names: dict[str, Any]) -> Any:
    """What a call gives."""
    return eval(call, names)  # noqa: S307 (texts of our own)


def operands(dtype: str, fractions: bool = False) -> dict[str, Any]:
    """The arrays that calls name."""
    values = {"a": [[1, 2, 3], [4, 6, 5]], "b": [[2, 1, 3], [1, 3, 2]], "v": [1, 3, 2], "w": [2, 1, 3],
              "m": [[1, 2], [3, 4]], "s": 2}
    arrays = {name: numpy.array(value, "float64") for name, value in values.items()}
    if fractions:
        arrays = {name: numpy.asarray(value + 0.25 * (value % 2)) for name, value in arrays.items()}
    return {name: numpy.asarray(value, dtype) for name, value in arrays.items()}


def kinds(result: Any) -> str:
    """What a result is: dtypes and shapes, or the value of what is no tensor."""
    if isinstance(result, (list, tuple)) and not hasattr(result, "as_list"):
        return "(" + " ".join(kinds(item) for item in result) + ")"
    if hasattr(result, "dtype") and hasattr(result, "shape") and hasattr(result.dtype, "name"):
        return f"{result.dtype.name}{list(result.shape)}".replace(" ", "")
    return str(getattr(result, "name", result)).replace(" ", "")
