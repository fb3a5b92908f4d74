"""Lengths: norms of vectors and matrices and division by them. Re-exported by `twofold/linalg.py`."""

from __future__ import annotations

import math
from typing import Any

from twofold._front.api import axis_arg, public, tensor
from twofold.ir import grad, ops
from twofold.ir.errors import InvalidArgumentError, op_error

__all__ = ["norm", "normalize", "l2_normalize"]


def _axes(x: Any, ord: Any, axis: Any) -> tuple[int, ...] | None:
    """The axes of a norm from 0; two of them mean a matrix norm."""
    axes = axis_arg(axis, x)
    if axes is None:
        return None
    rank, given = len(x.dims), [("tensor", x), ("ord", ord), ("axis", axis)]
    if len(axes) not in (1, 2) or any(not -rank <= i < rank for i in axes):
        raise op_error(InvalidArgumentError, "norm", f"axis must be None or name one or two of {rank} axes.", given)
    axes = tuple(i % rank for i in axes)
    if len(set(axes)) < len(axes):
        raise op_error(InvalidArgumentError, "norm", "axis names an axis twice.", given)
    return axes


def _euclidean(x: Any, axes: tuple[int, ...] | None, keepdims: bool) -> Any:
    if not x.dtype.is_complex:
        return ops.reduce_euclidean_norm(x, axis=axes, keepdims=keepdims)
    length = ops.reduce_euclidean_norm(ops.abs(x), axis=axes, keepdims=keepdims)
    return ops.cast(length, dtype=x.dtype)


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord == 2:
        rest = tuple(i for i in range(len(x.dims)) if i not in axes)
        values = ops.svd(ops.transpose(x, perm=(*rest, *axes)), full_matrices=False, compute_uv=False)
        largest = ops.reduce_max(ops.abs(values), axis=(len(rest),))  # the slope of abs at 0 is 0, so that of the norm
        return ops.expand_dims(largest, axis=tuple(sorted(axes))) if keepdims else largest
    added, other = axes if ord == 1 else axes[::-1]
    sums = ops.reduce_sum(ops.abs(x), axis=(added,), keepdims=True)
    return _dropped(ops.reduce_max(sums, axis=(other,), keepdims=True), axes, keepdims)


def _dropped(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return x if keepdims else ops.squeeze(x, axis=axes)


def _vector_norm(x: Any, ord: float, axes: tuple[int, ...] | None, keepdims: bool) -> Any:
    size = ops.abs(x)
    if ord == 1:
        return ops.reduce_sum(size, axis=axes, keepdims=keepdims)
    if ord == math.inf:
        return ops.reduce_max(size, axis=axes, keepdims=keepdims)
    power = grad.scalar(ord, size)
    total = ops.reduce_sum(ops.pow(size, power), axis=axes, keepdims=keepdims)
    none = ops.equal(total, 0)  # there the root's slope is infinite, that of the norm counts as 0
    root = ops.pow(ops.where(none, grad.scalar(1, size), total), grad.scalar(1 / ord, size))
    return ops.where(none, grad.scalar(0, size), root)


@public
def norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: str | None = None) -> Any:
    """The norm of vectors or matrices.

    Args:
        tensor: floating or complex.
        ord: "euclidean" (or "fro" for matrices), 1, 2, infinity, or for vectors any p > 0.
        axis: None for the vector of all elements; an axis for vectors along it; a pair for matrices in these axes.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        Tensor of the same dtype; real for complex operands, but not for the euclidean norm.
    Raises:
        tf.errors.InvalidArgumentError: axes do not exist, or there is no such norm for them.

    >>> import twofold as tf
    >>> tf.norm(tf.constant([3.0, 4.0])).numpy().item()
    5.0
    >>> tf.norm(tf.constant([[1.0, 2.0], [3.0, 4.0]]), ord=1, axis=[0, 1]).numpy().item()
    6.0
    """
    x, keepdims = _tensor(tensor), bool(keepdims)
    axes = _axes(x, ord, axis)
    is_matrix = axes is not None and len(axes) == 2
    if ord == "euclidean" or (ord == "fro" and is_matrix) or (ord == 2 and not is_matrix):
        return _euclidean(x, axes, keepdims)
    numeric = isinstance(ord, (int, float)) and not isinstance(ord, bool) and ord > 0
    if not numeric or (is_matrix and ord not in (1, 2, math.inf)):
        raise op_error(InvalidArgumentError, "norm", f"'ord' {ord!r} is not supported for "
                       f"{'matrices' if is_matrix else 'vectors'}.", [("tensor", x), ("axis", axis)])
    if is_matrix:
        return _matrix_norm(x, ord, axes, keepdims)  # type: ignore[arg-type]
    return _vector_norm(x, ord, axes, keepdims)


_tensor = tensor  # an argument above bears its name


@public
def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """`tensor` divided by its norm, and that norm.

    Args:
        tensor: floating or complex.
        ord, axis: as for `tf.norm`.
        name: has no effect.
    Returns:
        A pair: a tensor of the same shape, and the norms, reduced axes kept with size 1.
    Raises:
        tf.errors.InvalidArgumentError: as `tf.norm`.

    >>> import twofold as tf
    >>> unit, length = tf.linalg.normalize(tf.constant([3.0, 4.0]))
    >>> unit.numpy().round(3).tolist(), length.numpy().tolist()
    ([0.6000000238418579, 0.800000011920929], [5.0])
    """
    x = _tensor(tensor)
    length = norm(x, ord, axis_arg(axis, x), keepdims=True)
    divisor = length if length.dtype is x.dtype else ops.cast(length, dtype=x.dtype)
    return ops.divide(x, divisor), length


@public
def l2_normalize(x: Any, axis: Any = None, epsilon: Any = 1e-12, name: str | None = None) -> Any:
    """x / sqrt(max(sum(x**2), epsilon)) along axes.

    Args:
        x: floating or complex tensor.
        axis: axis or axes of the sum; None for all.
        epsilon: the least sum of squares, so that zeros stay zero.
        name: has no effect.
    Returns:
        Tensor like `x`.
    Raises:
        tf.errors.InvalidArgumentError: an axis does not exist, or the dtype is neither floating nor complex.

    >>> import twofold as tf
    >>> tf.math.l2_normalize(tf.constant([[3.0, 4.0], [0.0, 2.0]]), axis=1).numpy().round(2).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 1.0]]
    """
    x = tensor(x)
    axes = axis_arg(axis, x)
    squares = ops.add(ops.square(ops.real(x)), ops.square(ops.imag(x))) if x.dtype.is_complex else ops.square(x)
    total = ops.maximum(ops.reduce_sum(squares, axis=axes, keepdims=True), epsilon)
    factor = ops.rsqrt(total)
    return ops.multiply(x, ops.cast(factor, dtype=x.dtype) if x.dtype.is_complex else factor)
