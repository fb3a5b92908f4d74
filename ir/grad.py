"""The parts that gradient rules share: undoing broadcasts, and constants shaped or typed like another tensor.

Everything takes tensors or specs (what a rule gets for an operand whose value it does not save) and is
made of ops, so that rules hold in every mode and to every order. The rules stand beside their ops.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import dims as dm
from . import ops
from .dim_expr import Dim
from .op import Op
from .types import AnyTensor, Attrs, Cotangent, Results, Spec

__all__ = ["apply_rule", "chain", "conj", "copied", "needed", "nothing", "ones_like", "refitted", "scalar",
           "unbroadcast", "where_there", "zeros_like"]


def apply_rule(op: Op, attrs: Attrs, inputs: Sequence[Spec], outputs: Sequence[Spec],
               cts: Sequence[AnyTensor | None]) -> Sequence[Cotangent]:
    """The cotangents that the gradient rule of an op gives: per operand one, None, or a function that computes it.

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


def needed(cotangent: Cotangent) -> AnyTensor | None:
    """The cotangent that an entry of a rule's result stands for, which is wanted: functions are called."""
    return cotangent() if callable(cotangent) else cotangent


def copied(part: AnyTensor, cts: Sequence[AnyTensor | None]) -> AnyTensor:
    """A contribution to a sum as a value of its own: a cotangent that a rule hands on unchanged is copied.

    The sum that begins with it is then another value than the cotangent, as it is where it began before. Only gradients
    of this gradient can tell.

    Args:
        part: what a rule gives for an operand.
        cts: what the rule was given.
    """
    return ops.identity(part) if any(part is ct for ct in cts) else part


def unbroadcast(ct: AnyTensor, like: Spec) -> AnyTensor:
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
    axes = tuple(i for i, d in enumerate(have) if i < missing or (
        dm.is_exactly(want[i - missing], 1) and not dm.is_exactly(d, 1)))
    if not axes:
        return ct
    return ops.reduce_sum(ct, axis=axes) if axes == tuple(range(missing)) else ops.reshape(
        ops.reduce_sum(ct, axis=axes), shape=tuple(want))


def chain(ct: AnyTensor, derivative: AnyTensor) -> AnyTensor:
    """`ct * derivative`, and an exact 0 where `ct` is 0, be the derivative infinite or NaN.

    The product of every rule whose derivative may be either: what was not taken (by a `where`, a `maximum`, a
    mask) has a cotangent of 0 and must not answer it with NaN. Quotients have `ops.masked_divide`. Both are
    differentiated as what they stand for, so that second derivatives and tangents are right where `ct` is 0.
    """
    return ops.multiply_no_nan(derivative, ct)


def conj(x: AnyTensor) -> AnyTensor:
    """Complex conjugate; a real tensor is itself."""
    return ops.conj(x) if x.dtype.is_complex else x


def scalar(value: complex | Dim, like: Spec) -> AnyTensor | np.ndarray:
    """The number `value` as an operand of the dtype of `like`.

    Beside a tensor of that dtype a Python number does as well; this is for operands that stand alone.
    """
    if isinstance(value, Dim):
        return ops.cast(value, dtype=like.dtype)
    return np.array(value, like.dtype.np)


def nothing(like: Spec) -> AnyTensor:
    """The beginning of a sum without parts: zeros of the sign that changes nothing, -0.0 + x being x."""
    return ops.fill(_negative_zero(like), shape=tuple(like.dims))


def where_there(exists: AnyTensor, ct: AnyTensor) -> AnyTensor:
    """`ct` where the bool scalar `exists` holds, else -0.0, which changes no sum."""
    return ops.select(exists, ct, _negative_zero(ct))


def _negative_zero(like: Spec) -> np.ndarray:
    return np.array(complex(-0.0, -0.0) if like.dtype.is_complex else -0.0).astype(like.dtype.np)


def zeros_like(x: Spec) -> Results:
    """Zeros of the shape and dtype of `x`."""
    return ops.fill(scalar(0, x), shape=tuple(x.dims))


def refitted(ct: AnyTensor, like: Spec) -> Results:
    """`ct` in the sizes of `like`, which are its own where that matters, as only running tells.

    Elsewhere it is cut, or filled up with what changes no sum.
    """
    for axis, size in enumerate(like.dims):
        if ct.dims[axis] != size:
            dims = [*ct.dims[:axis], size, *ct.dims[axis + 1:]]
            more = ops.fill(_negative_zero(ct), shape=tuple(dims))
            ct = ops.slice_(ops.concat(ct, more, axis=axis), begin=(0,) * len(dims), size=tuple(dims))
    return ct


def ones_like(x: Spec) -> AnyTensor:
    """Ones of the shape and dtype of `x`."""
    return ops.fill(scalar(1, x), shape=tuple(x.dims))
