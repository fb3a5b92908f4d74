"""How window functions of `tf.nn` read their arguments: layouts, and numbers for every spatial axis.

Ops work channels last; a tensor that is channels first is turned before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from twofold._front.api import ANY, ints, listed
from twofold.ir import dims as dm
from twofold.ir import ops
from twofold.ir.errors import InvalidArgumentError, user_line

__all__ = ["Layout", "layout", "per_axis", "padding_arg", "channels_last", "refuse_both", "with_channels_last"]

_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


class Layout(NamedTuple):
    """`spatial` axes, and whether channels come before them."""

    spatial: int
    first: bool


def layout(op: str, data_format: Any, spatial: int) -> Layout:
    """Raises InvalidArgumentError unless `data_format` is one for that many spatial axes."""
    if spatial not in _LAST:
        raise InvalidArgumentError(f"{op}: expected 1 to 3 spatial axes; got {spatial}.")
    if data_format is None or data_format == _LAST[spatial]:
        return Layout(spatial, False)
    if data_format == _FIRST[spatial]:
        return Layout(spatial, True)
    raise InvalidArgumentError(f"{op}: data_format must be {_LAST[spatial]!r} or {_FIRST[spatial]!r}; got "
                               f"{data_format!r}.")


def per_axis(op: str, what: str, value: Any, form: Layout) -> tuple[int, ...]:
    """A number for every spatial axis, from one for all, one for each, or one for every axis of the tensor."""
    n = form.spatial
    if value is None:
        return (1,) * n
    numbers = ints(value, what, ANY)
    if len(numbers) == 1:
        return numbers * n
    if len(numbers) == n:
        return numbers
    if len(numbers) != n + 2:
        raise InvalidArgumentError(f"{op}: {what} must have length 1, {n} or {n + 2}; got {numbers}.")
    batch, channels = (numbers[0], numbers[1]) if form.first else (numbers[0], numbers[-1])
    if batch != 1 or channels != 1:
        raise InvalidArgumentError(f"{op}: {what} must be 1 for batch and channels; got {numbers}.")
    return numbers[2:] if form.first else numbers[1:-1]


def padding_arg(op: str, padding: Any, form: Layout) -> Any:
    """"SAME", "VALID", or pairs for the spatial axes, given for these or for every axis of the tensor."""
    if isinstance(padding, str):
        return padding.upper()
    pairs = tuple(ints(p, "padding") for p in listed(padding, "padding"))
    if any(len(p) != 2 for p in pairs) or len(pairs) not in (form.spatial, form.spatial + 2):
        raise InvalidArgumentError(f"{op}: padding must be 'SAME', 'VALID' or a pair for every axis; got {padding!r}.")
    if len(pairs) == form.spatial:
        return pairs
    batch, channels = (pairs[0], pairs[1]) if form.first else (pairs[0], pairs[-1])
    if batch != (0, 0) or channels != (0, 0):
        raise InvalidArgumentError(f"{op}: batch and channels take no padding; got {padding!r}.")
    return pairs[2:] if form.first else pairs[1:-1]


def channels_last(x: Any, form: Layout) -> Any:
    """`x` with its channels moved last."""
    rank = form.spatial + 2
    return ops.transpose(x, perm=(0, *range(2, rank), 1)) if form.first else x


def channels_back(x: Any, form: Layout) -> Any:
    """`x` with its last axis moved to where the layout has channels."""
    rank = form.spatial + 2
    return ops.transpose(x, perm=(0, rank - 1, *range(1, rank - 1))) if form.first else x


def with_channels_last(op: str, fn: Callable[[Any], Any], x: Any, form: Layout) -> Any:
    """`fn` applied to `x` [batch.., as the layout says], channels last; several batch axes count as one."""
    rank = form.spatial + 2
    if len(x.dims) < rank:
        raise InvalidArgumentError(f"{op}: input has shape {x.shape}; expected rank {rank} or more.")
    batch = x.dims[:len(x.dims) - rank + 1]
    if len(batch) > 1:
        x = ops.reshape(x, shape=(dm.numel(batch), *x.dims[len(batch):]))
    out = channels_back(fn(channels_last(x, form)), form)
    return ops.reshape(out, shape=(*batch, *out.dims[1:])) if len(batch) > 1 else out


def refuse_both(op: str, strides: Any, dilations: Any, form: Layout) -> None:
    """Refuse strides together with dilations, as `tf.nn.convolution` and `tf.nn.pool` do.

    Raises:
        ValueError: there are strides and dilations above 1.
    """
    steps, rates = per_axis(op, "strides", strides, form), per_axis(op, "dilations", dilations, form)
    if max(steps) > 1 and max(rates) > 1:
        raise ValueError(f"{op}: `strides > 1` not supported in conjunction with `dilations > 1`. Received: "
                         f"strides={list(steps)} and dilations={list(rates)}\n  {user_line()}")
