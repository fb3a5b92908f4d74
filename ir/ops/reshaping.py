"""Ops that only change how a tensor's elements are arranged: reshape, transpose, axes of size 1, broadcasting.

All are views: no data moves. Slices and reversals are in `slicing.py`. The ops that read a shape as data are here too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import dims as dm
from .. import dtypes as dt
from .. import grad, layout, ops, rules
from ..dims import DimLike, Shape
from ..dtypes import DType
from ..errors import InvalidArgumentError
from ..layout import Strided
from ..op import Op, primitive
from ..spec import spec
from ..types import AnyTensor, Axes, Cotangents, Spec

__all__ = ["reshape", "transpose", "expand_dims", "squeeze", "broadcast_to", "fill", "shape", "size"]


# -- reshape ------------------------------------------------------------------------------------------
def _text(dims: Sequence[DimLike]) -> str:
    return f"[{','.join(map(str, dims))}]"


def _checked_size(op: Op, operands: Sequence[Spec], place: int, shape: Shape) -> DimLike:
    size = shape[place]
    if isinstance(size, int) and size < -1:
        raise rules.fail(op, operands, f"Size {place} must be non-negative, not {size}, in shape {_text(shape)}; only "
                         "-1 stands for a size to be found.", InvalidArgumentError)
    return size


def _beside_zeros(op: Op, x: Spec, shape: Shape) -> DimLike:
    """The size left open where others are 0, which only known sizes tell."""
    if not dm.all_static((*x.dims, *shape)):
        raise rules.fail(op, (x,), f"the size left open in {_text(shape)} cannot be found: other sizes are 0.",
                         InvalidArgumentError)
    return dm.left_open(x.dims, shape)


def _reshaped(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if -1 in shape and 0 in shape and isinstance(a, np.ndarray):  # NumPy does not find it; a layout has its sizes
        size = dm.left_open(a.shape, shape)
        return a.reshape([size if s == -1 else s for s in shape])  # type: ignore[misc]  # of numbers alone
    return a.reshape(shape)


def _reshape_infer(op: Op, x: Spec, *, shape: Shape) -> Spec:
    sizes = [_checked_size(op, (x,), n, shape) for n in range(len(shape))]
    unknown = [i for i, s in enumerate(sizes) if type(s) is int and s == -1]
    have, count = dm.numel(x.dims), dm.numel(s for i, s in enumerate(sizes) if i not in unknown)
    if len(unknown) > 1:
        raise rules.fail(op, (x,), f"shape {_text(shape)} leaves more than one size to be found.", InvalidArgumentError)
    if unknown:
        nothing = type(count) is int and count == 0
        sizes[unknown[0]] = _beside_zeros(op, x, shape) if nothing else have // count
        count = count * sizes[unknown[0]]
    if not dm.require_eq(have, count):
        wanted = f"{'a multiple of ' if unknown else ''}{dm.numel(s for s in shape if s != -1)}"
        raise rules.fail(op, (x,), f"Input to reshape is a tensor with {have} values, but the requested shape has "
                         f"{wanted}: {_text(shape)}.")
    return spec(tuple(sizes), x.dtype)


@primitive(infer=_reshape_infer, view=_reshaped, saves=(),
           vjp=lambda ct, out, x, *, shape: ops.reshape(ct, shape=x.dims))
def reshape(x: AnyTensor, *, shape: Shape) -> AnyTensor:
    """The elements of `x`, row-major, in another shape.

    Args:
        x: any tensor.
        shape: sizes; one may be -1 and is then found from the others.
    Returns:
        A tensor of `shape`; it shares memory with `x` where strides allow that.
    Raises:
        ShapeError: the number of elements differs. InvalidArgumentError: the shape is none.
    """


# -- transpose ----------------------------------------------------------------------------------------
def _order(perm: tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    return tuple(range(rank))[::-1] if perm is None else tuple(p + rank if p < 0 else p for p in perm)


def _transpose_infer(op: Op, x: Spec, *, perm: tuple[int, ...] | None) -> Spec:
    rank = len(x.dims)
    order = _order(perm, rank)
    if sorted(order) != list(range(rank)):
        raise rules.fail(op, (x,), f"perm {list(perm or ())} is no permutation of the axes 0 to {rank - 1}.",
                         InvalidArgumentError)
    return spec(tuple(x.dims[p] for p in order), x.dtype)


def _transpose_vjp(ct: AnyTensor, out: Spec, x: Spec, *, perm: tuple[int, ...] | None) -> Cotangents:
    order = _order(perm, len(x.dims))
    return ops.transpose(ct, perm=tuple(order.index(i) for i in range(len(order))))


@primitive(infer=_transpose_infer, view=lambda a, perm: a.transpose(perm), vjp=_transpose_vjp, saves=())
def transpose(x: AnyTensor, *, perm: tuple[int, ...] | None = None) -> AnyTensor:
    """`x` with its axes in another order: axis i of the result is axis `perm[i]` of `x`; reversed by default.

    Raises:
        InvalidArgumentError: `perm` is no permutation of the axes.
    """


# -- axes of size 1 -----------------------------------------------------------------------------------
def _axes(axis: tuple[int, ...] | int) -> tuple[int, ...]:
    return axis if isinstance(axis, tuple) else (axis,)


def _expanded(op: Op, x: Spec, axis: tuple[int, ...] | int) -> tuple[int, ...]:
    rank = len(x.dims) + len(_axes(axis))
    return rules.normalize_axes(op, (x,), _axes(axis), rank)


def _expand_dims_infer(op: Op, x: Spec, *, axis: tuple[int, ...] | int) -> Spec:
    new, left = _expanded(op, x, axis), iter(x.dims)
    return spec(tuple(1 if i in new else next(left) for i in range(len(x.dims) + len(new))), x.dtype)


def _expand_dims_view(a: Strided, axis: tuple[int, ...] | int) -> Strided:
    rank = len(a.shape) + len(_axes(axis))
    new = {i % rank for i in _axes(axis)}
    return a[(*[None if i in new else slice(None) for i in range(rank)], Ellipsis)]


@primitive(infer=_expand_dims_infer, view=_expand_dims_view, saves=(),
           vjp=lambda ct, out, x, *, axis: ops.reshape(ct, shape=x.dims))
def expand_dims(x: AnyTensor, *, axis: tuple[int, ...] | int) -> AnyTensor:
    """`x` with new axes of size 1 at the places `axis` (an integer or several) of the result.

    Raises:
        InvalidArgumentError: an axis is out of range.
    """


def _squeezed(op: Op, x: Spec, axis: Axes) -> tuple[int, ...]:
    if axis is None or axis == ():
        return tuple(i for i, d in enumerate(x.dims) if dm.decide_eq(d, 1))
    return rules.normalize_axes(op, (x,), _axes(axis), len(x.dims))


def _squeeze_infer(op: Op, x: Spec, *, axis: Axes) -> Spec:
    gone = _squeezed(op, x, axis)
    for i in gone:
        if not dm.require_eq(x.dims[i], 1):
            raise rules.fail(op, (x,), f"Can not squeeze dim[{i}], expected a dimension of 1, got {x.dims[i]}.")
    return spec(rules.reduced_dims(x.dims, gone, False), x.dtype)


def _squeeze_view(a: Strided, axis: Axes) -> Strided:
    rank = len(a.shape)
    gone = {i % rank for i in _axes(axis)} if axis else {i for i, d in enumerate(a.shape) if d == 1}
    return a[(*[0 if i in gone else slice(None) for i in range(rank)], Ellipsis)]


@primitive(infer=_squeeze_infer, view=lambda a, axis: _squeeze_view(a, None if axis is None else _axes(axis)), saves=(),
           vjp=lambda ct, out, x, *, axis: ops.reshape(ct, shape=x.dims))
def squeeze(x: AnyTensor, *, axis: Axes = None) -> AnyTensor:
    """`x` without axes of size 1: those given, or all.

    Raises:
        ShapeError: a given axis has another size. InvalidArgumentError: an axis is out of range.
    """


# -- broadcasting -------------------------------------------------------------------------------------
def _require_sizes(op: Op, x: Spec, shape: Shape) -> None:
    """Raises InvalidArgumentError where a size is negative."""
    for size in shape:
        if type(size) is int and size < 0:
            raise rules.fail(op, (x,), f"size {size} in shape {_text(shape)} is negative.", InvalidArgumentError)


def _broadcast_infer(op: Op, x: Spec, *, shape: Shape) -> Spec:
    _require_sizes(op, x, shape)
    if not rules.broadcasts_to(x.dims, shape):
        raise rules.fail(op, (x,), f"Incompatible shapes: {_text(x.dims)} does not broadcast to {_text(shape)}.")
    return spec(tuple(shape), x.dtype)


@primitive(infer=_broadcast_infer, view=lambda a, shape: layout.broadcast_to(a, shape), saves=(),
           vjp=lambda ct, out, x, *, shape: grad.unbroadcast(ct, like=x))
def broadcast_to(x: AnyTensor, *, shape: Shape) -> AnyTensor:
    """`x` repeated along new axes in front and along axes of size 1, so that it has `shape`.

    Raises:
        ShapeError: `x` does not broadcast to `shape`. InvalidArgumentError: a size is negative.
    """


def _fill_infer(op: Op, value: Spec, *, shape: Shape) -> Spec:
    rules.require_rank(op, (value,), 0, 0, 0)
    _require_sizes(op, value, shape)
    return spec(tuple(shape), value.dtype)


@primitive(infer=_fill_infer, view=lambda a, shape: layout.broadcast_to(a, shape), saves=(),
           vjp=lambda ct, out, value, *, shape: ops.reduce_sum(ct, axis=None, keepdims=False))
def fill(value: AnyTensor, *, shape: Shape) -> AnyTensor:
    """A tensor of `shape` whose elements all are the scalar `value`.

    Raises:
        ShapeError: `value` is no scalar. InvalidArgumentError: a size is negative.
    """


# -- shapes as data -----------------------------------------------------------------------------------
@primitive(infer=lambda op, x, *, out_type: spec((len(x.dims),), out_type), vjp=None,
           host=lambda a, out_type: np.array(a.shape, out_type.np), traits=("shape_only", "total"))
def shape(x: AnyTensor, *, out_type: DType = dt.int32) -> AnyTensor:
    """The sizes of `x` as a vector of `out_type`."""


@primitive(infer=lambda op, x, *, out_type: spec((), out_type), vjp=None,
           host=lambda a, out_type: np.array(a.size, out_type.np), traits=("shape_only", "total"))
def size(x: AnyTensor, *, out_type: DType = dt.int32) -> AnyTensor:
    """How many elements `x` has, as a scalar of `out_type`."""
