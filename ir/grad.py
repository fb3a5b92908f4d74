"""What gradient rules share: undoing broadcasts, and constants shaped or typed like another tensor.

Everything takes tensors or specs (what a rule gets for an operand whose value it does not save) and is
made of ops, so that rules hold in every mode and to every order. The rules stand beside their ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import ops
from .dim_expr import Dim
from .op import Op

__all__ = ["apply_rule", "chain", "conj", "needed", "nothing", "ones_like", "scalar", "unbroadcast", "where_there",
           "zeros_like"]


def apply_rule(op: Op, attrs: dict[str, Any], inputs: Sequence[Any], outputs: Sequence[Any],
               cts: Sequence[Any]) -> Sequence[Any]:
    """What the gradient rule of an op gives: per operand a cotangent, None, or a function that computes it.

    Args:
        op: a differentiable op; attrs: all its attributes.
        inputs, outputs: its operands and results, or their specs where the rule reads no value.
        cts: a cotangent or None per result.
    """
    if len(outputs) == 1:
        cotangents = op.vjp(cts[0], outputs[0], *inputs, **attrs)  # type: ignore[misc]
    else:
        cotangents = op.vjp(tuple(cts), tuple(outputs), *inputs, **attrs)  # type: ignore[misc]
    return cotangents if isinstance(cotangents, (tuple, list)) else (cotangents,)


def needed(cotangent: Any) -> Any:
    """An entry of what a rule gives that is wanted: functions are called."""
    return cotangent() if callable(cotangent) else cotangent


def unbroadcast(ct: Any, like: Any) -> Any:
    """`ct` added up over the axes along which `like` was repeated to the shape of `ct`.

    Args:
        ct: tensor of a shape to which that of `like` broadcasts.
        like: tensor or spec.
    Returns:
        Tensor of the shape of `like`.
    """
    have, want = ct.dims, like.dims
    if have == want:
        return ct
    missing = len(have) - len(want)
    axes = tuple(i for i, d in enumerate(have) if i < missing or (_is_one(want[i - missing]) and not _is_one(d)))
    if not axes:
        return ct
    return ops.reduce_sum(ct, axis=axes) if axes == tuple(range(missing)) else ops.reshape(
        ops.reduce_sum(ct, axis=axes), shape=tuple(want))


def _is_one(size: Any) -> bool:
    return type(size) is int and size == 1


def chain(ct: Any, derivative: Any) -> Any:
    """`ct * derivative`, and an exact 0 where `ct` is 0, be the derivative infinite or NaN.

    The product of every rule whose derivative may be either: what was not taken (by a `where`, a `maximum`, a
    mask) has a cotangent of 0 and must not answer it with NaN. Quotients have `ops.masked_divide`. Both are
    differentiated as what they stand for, so that second derivatives and tangents are right where `ct` is 0.
    """
    return ops.multiply_no_nan(derivative, ct)


def conj(x: Any) -> Any:
    """Complex conjugate; a real tensor is itself."""
    return ops.conj(x) if x.dtype.is_complex else x


def scalar(value: Any, like: Any) -> Any:
    """The number `value` as an operand of the dtype of `like`.

    Beside a tensor of that dtype a Python number does as well; this is for operands that stand alone.
    """
    if isinstance(value, Dim):
        return ops.cast(value, dtype=like.dtype)
    return np.array(value, like.dtype.np)


def nothing(like: Any) -> Any:
    """What a sum begins with that has no parts yet: zeros of the sign that changes nothing, -0.0 + x being x."""
    return ops.fill(_negative_zero(like), shape=tuple(like.dims))


def where_there(exists: Any, ct: Any) -> Any:
    """`ct` where the bool scalar `exists` holds, else -0.0, which changes no sum."""
    return ops.where(exists, ct, _negative_zero(ct))


def _negative_zero(like: Any) -> np.ndarray:
    return np.array(complex(-0.0, -0.0) if like.dtype.is_complex else -0.0).astype(like.dtype.np)


def zeros_like(x: Any) -> Any:
    """Zeros of the shape and dtype of `x`."""
    return ops.fill(scalar(0, x), shape=tuple(x.dims))


def ones_like(x: Any) -> Any:
    """Ones of the shape and dtype of `x`."""
    return ops.fill(scalar(1, x), shape=tuple(x.dims))
