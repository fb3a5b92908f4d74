"""Ops that select or replace a box of elements: slices of any step, reversal, and writing to a slice.

The `spec` of a strided slice says what becomes of each axis in order, once an ellipsis is spelt out: an integer takes
that index and drops the axis, a tuple (start, stop, step) is a Python slice (each part may be None), and None is a new
axis of size 1. Axes that it does not mention stay whole. Negative numbers count from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import TypeAlias

from .. import dims as dm
from .. import grad, ops, rules
from ..dims import DimLike, Shape
from ..errors import InvalidArgumentError
from ..layout import Strided
from ..op import Op, primitive
from ..spec import spec as spec_of
from ..types import AnyTensor, Cotangents, Spec

__all__ = ["strided_slice", "strided_slice_assign", "slice_", "reverse", "selected", "span"]

# What a strided slice does along each axis: (start, stop, step), an index, or None for a new axis of size 1
Entries: TypeAlias = tuple[tuple[DimLike | None, DimLike | None, int | None] | DimLike | None, ...]


def span(size: DimLike, start: DimLike | None, stop: DimLike | None, step: int | None) -> DimLike:
    """How many elements `range(size)[start:stop:step]` has; `size` and bounds may be symbolic.

    >>> span(10, None, -1, 2), span(10, None, None, -3)
    (5, 4)
    """
    step = 1 if step is None else step
    if type(size) is int and not any(isinstance(v, dm.Dim) for v in (start, stop)):
        return len(range(*slice(start, stop, step).indices(size)))
    forward = step > 0
    low, high = (0, size) if forward else (-1, size - 1)
    first = _bound(start, size, low, high, low if forward else high)
    last = _bound(stop, size, low, high, high if forward else low)
    gap = last - first if forward else first - last
    return dm.ceil_div(dm.maximum(gap, 0), abs(step))


def _bound(value: DimLike | None, size: DimLike, low: DimLike, high: DimLike, default: DimLike) -> DimLike:
    if value is None:
        return default
    if type(value) is int and value < 0:
        return dm.maximum(size + value, low)
    return dm.minimum(value, high)


def _index_in_range(index: DimLike, size: DimLike) -> bool:
    if type(index) is int and index < 0:
        return dm.require(-index, "<=", size)
    return dm.require(index, "<", size)


def _sliced_dims(op: Op, operands: Sequence[Spec], entries: Entries) -> Shape:
    dims = operands[0].dims
    taken = sum(e is not None for e in entries)
    if taken > len(dims):
        raise rules.fail(op, operands, f"Index out of range using input dim {len(dims)}; input has only {len(dims)} "
                         "dims", InvalidArgumentError)
    for axis, (entry, size) in enumerate(zip((e for e in entries if e is not None), dims, strict=False)):
        if isinstance(entry, tuple):
            if entry[2] == 0:
                raise rules.fail(op, operands, f"strides[{axis}] must be non-zero", InvalidArgumentError)
        elif not _index_in_range(entry, size):
            raise rules.fail(op, operands, f"slice index {entry} of dimension {axis} out of bounds.",
                             InvalidArgumentError)
    return selected(dims, entries)


def selected(dims: Shape, entries: Entries) -> Shape:
    """The dimensions of what a strided slice selects, whose spec is in order."""
    out: list[DimLike] = []
    left = iter(dims)
    for entry in entries:
        if entry is None:
            out.append(1)
            continue
        size = next(left)
        if isinstance(entry, tuple):
            out.append(span(size, *entry))
    return (*out, *left)


def key_of(entries: Entries) -> tuple[slice | DimLike | None | EllipsisType, ...]:
    """A strided slice's spec as an index of arrays that always gives an array."""
    return (*[slice(*e) if isinstance(e, tuple) else e for e in entries], Ellipsis)


def _strided_slice_vjp(ct: AnyTensor, out: Spec, x: Spec, *, spec: Entries) -> Cotangents:
    return ops.strided_slice_assign(grad.zeros_like(x), ct, spec=spec)


@primitive(infer=lambda op, x, *, spec: spec_of(_sliced_dims(op, (x,), spec), x.dtype),
           view=lambda a, spec: a[key_of(spec)], vjp=_strided_slice_vjp, saves=())
def strided_slice(x: AnyTensor, *, spec: Entries) -> AnyTensor:
    """The elements of `x` that a Python-like index selects; `spec` is described in this module's head.

    Raises:
        InvalidArgumentError: an index is out of bounds, a step is 0, or `spec` names more axes than there are.
    """


def _assign_infer(op: Op, x: Spec, value: Spec, *, spec: Entries) -> Spec:
    dtype = rules.same_dtype(op, (x, value))
    target = _sliced_dims(op, (x, value), spec)
    missing = len(target) - len(value.dims)
    if missing < 0 or not all(dm.decide_eq(v, 1) or dm.require_eq(v, t)
                              for v, t in zip(value.dims, target[missing:], strict=True)):
        raise rules.fail(op, (x, value), f"the value has shape [{','.join(map(str, value.dims))}] and does not "
                         f"broadcast to that of the slice, [{','.join(map(str, target))}].")
    return spec_of(x.dims, dtype)


def _assign_vjp(ct: AnyTensor, out: Spec, x: Spec, value: Spec, *, spec: Entries) -> Cotangents:
    return (lambda: ops.strided_slice_assign(ct, grad.scalar(0, like=ct), spec=spec),
            lambda: grad.unbroadcast(ops.strided_slice(ct, spec=spec), like=value))


@primitive(infer=_assign_infer, lower="assign", vjp=_assign_vjp, saves=(), traits=("total",))
def strided_slice_assign(x: AnyTensor, value: AnyTensor, *, spec: Entries) -> AnyTensor:
    """A copy of `x` in which the slice `spec` (as in `strided_slice`) holds `value`, broadcast to the slice's shape.

    Raises:
        ShapeError: `value` does not broadcast to the slice. DTypeError: dtypes differ. InvalidArgumentError: as for
            `strided_slice`.
    """


# -- boxes --------------------------------------------------------------------------------------------
def _ends(x: Spec, begin: Shape, size: Shape) -> list[DimLike]:
    return [d if type(s) is int and s == -1 else b + s for b, s, d in zip(begin, size, x.dims, strict=True)]


def _slice_infer(op: Op, x: Spec, *, begin: Shape, size: Shape) -> Spec:
    if not len(begin) == len(size) == len(x.dims):
        raise rules.fail(op, (x,), f"begin and size must have {len(x.dims)} entries, one for each axis; "
                         f"got {len(begin)} and {len(size)}.", InvalidArgumentError)
    for i, (first, end, dim) in enumerate(zip(begin, _ends(x, begin, size), x.dims, strict=True)):
        if not dm.require(first, ">=", 0) or not dm.require(first, "<=", dim):
            raise rules.fail(op, (x,), f"Expected begin[{i}] in [0, {dim}], but got {first}", InvalidArgumentError)
        if not dm.require(end, ">=", first) or not dm.require(end, "<=", dim):
            raise rules.fail(op, (x,), f"Expected size[{i}] in [0, {dim - first}], but got {end - first}",
                             InvalidArgumentError)
    return spec_of(tuple(e - b for b, e in zip(begin, _ends(x, begin, size), strict=True)), x.dtype)


def _slice_view(a: Strided, begin: Shape, size: Shape) -> Strided:
    return a[(*[slice(b, None if s == -1 else b + s) for b, s in zip(begin, size, strict=True)], Ellipsis)]


def _slice_vjp(ct: AnyTensor, out: Spec, x: Spec, *, begin: Shape, size: Shape) -> Cotangents:
    around = tuple((b, d - e) for b, e, d in zip(begin, _ends(x, begin, size), x.dims, strict=True))
    return ops.pad(ct, grad.scalar(0, like=ct), paddings=around)


@primitive(infer=_slice_infer, view=_slice_view, vjp=_slice_vjp, saves=())
def slice_(x: AnyTensor, *, begin: Shape, size: Shape) -> AnyTensor:
    """The box of `x` that begins at `begin` and has `size`; a size of -1 reaches to the end of its axis.

    Raises:
        InvalidArgumentError: the box is not inside `x`.
    """


def _reverse_view(a: Strided, axis: tuple[int, ...]) -> Strided:
    rank = len(a.shape)
    turned = {i % rank for i in axis}
    return a[(*[slice(None, None, -1 if i in turned else None) for i in range(rank)], Ellipsis)]


def _reverse_infer(op: Op, x: Spec, *, axis: tuple[int, ...]) -> Spec:
    rules.normalize_axes(op, (x,), axis, len(x.dims))
    return spec_of(x.dims, x.dtype)


@primitive(infer=_reverse_infer, view=_reverse_view, saves=(),
           vjp=lambda ct, out, x, *, axis: ops.reverse(ct, axis=axis))
def reverse(x: AnyTensor, *, axis: tuple[int, ...]) -> AnyTensor:
    """`x` with the order of elements reversed along each of the axes `axis`.

    Raises:
        InvalidArgumentError: an axis is out of range or named twice.
    """
