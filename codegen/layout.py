"""Where the elements of a value lie in memory, with sizes that may be unknown: shape, strides, offset.

The compiler's counterpart of a NumPy view: the view functions of ops (`ir/layout.py`) take a `Layout` as they take an
array. Strides and offsets count elements and are integers or Dims. What is no view raises `NotAView`.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import TypeAlias

from twofold.ir import dims as dm
from twofold.ir.data_class import data_class
from twofold.ir.dims import Dim, DimLike, Size, Sizes

__all__ = ["Layout", "NotAView", "Dimensions", "contiguous", "merged", "row_span"]

Dimensions: TypeAlias = list[tuple[DimLike, Sizes]]  # each with the stride of every operand along it
_Index: TypeAlias = Size | slice | None


class NotAView(Exception):
    """The result cannot be described by strides over the same memory: it needs a copy."""


def contiguous(shape: Sequence[DimLike]) -> Layout:
    """Row-major elements without gaps."""
    return Layout(tuple(shape), _row_major(shape), 0)


def _row_major(shape: Sequence[DimLike]) -> Sizes:
    strides: list[DimLike] = []
    step: DimLike = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(strides[::-1])


@data_class(frozen=True)
class Layout:
    """A box of elements: number `i` along axis `a` lies `i * strides[a]` elements from `offset`.

    >>> contiguous((2, 3)).transpose((1, 0))
    Layout(shape=(3, 2), strides=(1, 3), offset=0)
    >>> contiguous((4,))[::-1]
    Layout(shape=(4,), strides=(-1,), offset=3)
    """

    shape: Sizes
    strides: Sizes
    offset: Size

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def is_contiguous(self) -> bool:
        """Whether this is row-major without gaps from the beginning of its memory."""
        return self.offset == 0 and self.is_dense()

    def is_dense(self) -> bool:
        """Whether this is row-major without gaps; it may begin anywhere."""
        want: DimLike = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != want:
                return False
            want = want * size
        return True

    def transpose(self, perm: Sequence[int] | None) -> Layout:
        perm = range(len(self.shape))[::-1] if perm is None else perm
        return Layout(tuple([self.shape[p] for p in perm]), tuple([self.strides[p] for p in perm]), self.offset)

    def broadcast_to(self, shape: Sequence[DimLike]) -> Layout:
        """Repeated along new axes and those of size 1."""
        missing = len(shape) - len(self.shape)
        strides: list[DimLike] = [0] * missing
        for have, want, stride in zip(self.shape, shape[missing:], self.strides, strict=True):
            strides.append(0 if type(have) is int and have == 1 and want != 1 else stride)
        return Layout(tuple(shape), tuple(strides), self.offset)

    def reshape(self, shape: Sequence[DimLike]) -> Layout:
        """The same elements in row-major order under another shape.

        Raises:
            NotAView: strides cannot say that.
        """
        shape = _completed(self.shape, shape)
        if self.is_dense():
            return Layout(shape, _row_major(shape), self.offset)
        groups = merged(self.shape, [self.strides])
        strides: list[DimLike] = []
        at = 0
        for size, (stride,) in groups:
            inside: list[DimLike] = []
            total: DimLike = 1
            while at < len(shape) and (total != size or dm.is_exactly(shape[at], 1)):
                total = total * shape[at]
                inside.append(shape[at])
                at += 1
            if total != size:
                raise NotAView
            strides += [s * stride for s in _row_major(inside)]
        if any(not dm.is_exactly(d, 1) for d in shape[at:]):
            raise NotAView
        return Layout(shape, (*strides, *[1] * (len(shape) - at)), self.offset)

    def __getitem__(self, key: _Index | EllipsisType | tuple[_Index | EllipsisType, ...]) -> Layout:
        keys = key if isinstance(key, tuple) else (key,)
        taken = sum(k is not None and k is not Ellipsis for k in keys)
        at = next((n for n, k in enumerate(keys) if k is Ellipsis), len(keys))
        filled = (*keys[:at], *[slice(None)] * (len(self.shape) - taken), *keys[at + 1:])
        shape: list[DimLike] = []
        strides: list[DimLike] = []
        offset, axis = self.offset, 0
        for k in filled:
            if k is None:
                shape.append(1)
                strides.append(0)
                continue
            size, stride = self.shape[axis], self.strides[axis]
            axis += 1
            if isinstance(k, slice):
                first, count, step = _bounds(k, size)
                shape.append(count)
                strides.append(stride * step)
                offset = offset + first * stride
            else:
                offset = offset + (_from_end(k, size)) * stride
        return Layout(tuple(shape), tuple(strides), offset)


def _completed(old: Sequence[DimLike], shape: Sequence[DimLike]) -> Sizes:
    if not any(dm.is_exactly(d, -1) for d in shape):
        return tuple(shape)
    size = dm.left_open(old, shape)
    return tuple([size if dm.is_exactly(d, -1) else d for d in shape])


def _from_end(index: DimLike, size: DimLike) -> DimLike:
    return size + index if type(index) is int and index < 0 else index


def _bounds(key: slice, size: DimLike) -> tuple[DimLike, DimLike, int]:
    """First element, number of elements, and step of a slice of an axis of `size`, as Python counts."""
    step = 1 if key.step is None else int(key.step)
    if type(size) is int and all(b is None or type(b) is int for b in (key.start, key.stop)):
        taken = range(*slice(key.start, key.stop, step).indices(size))
        return taken.start if len(taken) else 0, len(taken), step
    if step > 0:
        first = _clamped(key.start, size, 0, size, 0)
        last = _clamped(key.stop, size, 0, size, size)
        return first, dm.maximum(dm.ceil_div(last - first, step), 0), step
    first = _clamped(key.start, size, -1, size - 1, size - 1)
    last = _clamped(key.stop, size, -1, size - 1, -1)
    return first, dm.maximum(dm.ceil_div(first - last, -step), 0), step


def _clamped(bound: DimLike | None, size: DimLike, low: DimLike, high: DimLike, default: DimLike) -> DimLike:
    if bound is None:
        return default
    bound = _from_end(bound, size)
    if dm.decide_le(low, bound) is not True:
        bound = dm.maximum(bound, low)
    if dm.decide_le(bound, high) is not True:
        bound = dm.minimum(bound, high)
    return bound


def merged(shape: Sequence[DimLike], strides: Sequence[Sequence[DimLike]]) -> Dimensions:
    """The fewest dimensions `(size, each operand's stride)` that walk the same elements in the same order.

    >>> merged((2, 1, 3), [(3, 3, 1), (0, 0, 1)])
    [(2, (3, 0)), (3, (1, 1))]
    """
    out: Dimensions = []
    for size, *steps in zip(shape, *strides, strict=True):
        if dm.is_exactly(size, 1):
            continue
        if out and all(a == s * size for a, s in zip(out[-1][1], steps, strict=True)):
            out[-1] = (out[-1][0] * size, tuple(steps))
        else:
            out.append((size, tuple(steps)))
    return out


def row_span(layout: Layout, axes: int = 1) -> DimLike | None:
    """How far rows, numbered by the first axes, lie apart, where each stays before the beginning of the next: row n
    then has nothing but elements of the `row_span` ones from number n times that on. None where that is not known."""
    inside = Layout(layout.shape[axes:], layout.strides[axes:], layout.offset)
    rows = merged(layout.shape[:axes], [layout.strides[:axes]])
    if not layout.shape or len(rows) > 1:
        return None
    size = dm.numel(inside.shape)
    span = rows[0][1][0] if rows else size
    if inside.is_contiguous() and span == size:
        return size
    reach = [(length - 1) * stride for length, stride in zip(inside.shape, inside.strides, strict=True)]
    if any(isinstance(n, Dim) for n in (*reach, layout.offset, span)):
        return None
    first = layout.offset + sum(min(r, 0) for r in reach)
    last = layout.offset + sum(max(r, 0) for r in reach)
    return span if first >= 0 and last < span else None
