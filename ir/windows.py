"""Sizes of sliding windows: what convolution and pooling share.

A window slides over the spatial axes of a tensor laid out [batch, spatial.., channels]. `padding` is "SAME", "VALID",
or a pair (before, after) for every spatial axis. Sizes may be symbolic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from . import dims as dm
from . import rules
from .dims import DimLike, Shape
from .errors import InvalidArgumentError
from .op import Op
from .types import Spec

# "SAME", "VALID", or for each spatial axis a pair (before, after)
Padding: TypeAlias = str | Sequence[tuple[int, int]]

__all__ = ["Padding", "output_sizes", "pads", "check"]

_FAR = 1 << 40  # steps of a window: products with sizes in bytes stay within 64 bits


def check(op: Op, operands: Sequence[Spec], spatial: int, strides: Sequence[int], dilations: Sequence[int],
          padding: Padding) -> None:
    """Raise InvalidArgumentError unless the attributes of a window over `spatial` axes make sense."""
    for name, values in (("strides", strides), ("dilations", dilations)):
        if len(values) != spatial or any(v < 1 for v in values):
            raise rules.fail(op, operands, f"{name} must be {spatial} positive integers; got {tuple(values)}.",
                             InvalidArgumentError)
        if any(v > _FAR for v in values):
            raise rules.fail(op, operands, f"{name} must be at most {_FAR}; got {tuple(values)}.",
                             InvalidArgumentError)
    if isinstance(padding, str):
        if padding not in ("SAME", "VALID"):
            raise rules.fail(op, operands, f"padding must be 'SAME', 'VALID' or explicit; got {padding!r}.",
                             InvalidArgumentError)
    elif len(padding) != spatial or any(len(p) != 2 or min(p) < 0 for p in padding):
        raise rules.fail(op, operands, f"explicit padding must be {spatial} pairs of integers from 0; got {padding!r}.",
                         InvalidArgumentError)


def output_sizes(op: Op, operands: Sequence[Spec], sizes: Sequence[DimLike], window: Sequence[DimLike],
                 strides: Sequence[int], dilations: Sequence[int], padding: Padding) -> Shape:
    """How many places the window has along each axis; ShapeError where it is larger than the padded input."""
    out = []
    for i, (size, k, stride, dilation) in enumerate(zip(sizes, window, strides, dilations, strict=True)):
        if padding == "SAME":
            out.append(dm.ceil_div(size, stride))
            continue
        extent = (k - 1) * dilation + 1
        room = size if isinstance(padding, str) else size + sum(padding[i])
        if not dm.require(extent, "<=", room + stride):
            raise rules.fail(op, operands, f"the window spans {extent} along spatial axis {i}, which has size {room} "
                             "with its padding.")
        out.append((room - extent + stride) // stride)
    return tuple(out)


def pads(sizes: Sequence[DimLike], window: Sequence[DimLike], strides: Sequence[int], dilations: Sequence[int],
         padding: Padding) -> tuple[tuple[DimLike, DimLike], ...]:
    """The padding (before, after) of each axis; "SAME" puts the odd one after."""
    if padding == "VALID":
        return ((0, 0),) * len(sizes)
    if not isinstance(padding, str):
        return tuple((int(a), int(b)) for a, b in padding)
    out = []
    for size, k, stride, dilation in zip(sizes, window, strides, dilations, strict=True):
        total = dm.maximum((dm.ceil_div(size, stride) - 1) * stride + (k - 1) * dilation + 1 - size, 0)
        out.append((total // 2, total - total // 2))
    return tuple(out)
