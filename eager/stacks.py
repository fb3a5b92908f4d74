"""Stacks of the graph IR in eager execution: vectors that grow, written in place by whoever made them.

A graph reads a stack through its last version only, so a push may write into what an earlier push made. Anything else
that serves as a stack (zeros, a tensor of the user's, elements that a backend copied to the host) is copied before the
first write. Elements are read by `_array`, as everywhere; only memory that was made here is ever written.

Where somebody records, what was pushed is there as a tensor, too, and a pop gives that very tensor: to a tape the
value is the one that it was, with one sum of cotangents. Stacks that come from elsewhere, or go there, hand gradients
on by their elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twofold.ir import ops

from . import record
from .tensor import Tensor, wrap

__all__ = ["push", "pop"]


class _StackMemory(np.ndarray):
    """Memory that only pushes write; stacks are plain views of all of it.

    Attributes:
        items: by their places, the tensors that were pushed while somebody recorded.
    """

    items: dict[int, Tensor]


def _zeros(size: int, dtype: np.dtype) -> np.ndarray:
    """A view of new stack memory."""
    memory = np.ndarray.__new__(_StackMemory, (size,), dtype)
    memory.items = {}
    memory.fill(0)
    return memory.view(np.ndarray)


def _items(elements: np.ndarray) -> dict[int, Tensor]:
    return elements.base.items if type(elements.base) is _StackMemory else {}


def push(stack: Tensor, value: Tensor, at: int, add: bool) -> Tensor:
    """`stack` with the elements of `value` from `at` on; see `ir.graph.PUSH`."""
    recorded = bool(record.active.get())
    if recorded and add:
        value = ops.add(pop(stack, at, value.dims), value)
    elements, new = stack._array, value._array.reshape(-1)
    end = at + new.size
    owned = type(elements.base) is _StackMemory and elements.flags.writeable
    if not owned or end > elements.size:
        grown = _zeros(elements.size if end <= elements.size else max(end, 2 * elements.size), elements.dtype)
        grown[:elements.size] = elements
        _items(grown).update(_items(elements))
        elements = grown
    if add and not recorded:
        elements[at:end] += new
    else:
        elements[at:end] = new
    result = wrap(elements)
    _items(elements).pop(at, None)
    if recorded:
        _items(elements)[at] = value
        _tell(stack, value, at, result)
    return result


def _tell(stack: Tensor, value: Tensor, at: int, result: Tensor) -> None:
    """Tell recorders of a push, for where the stack itself has a cotangent."""
    room, dims = stack.dims[0], value.dims

    def vjp(cts: Sequence[Tensor]) -> list[Tensor]:
        ct, = cts
        return [ops.slice_(ct, begin=(0,), size=(room,)), _part(ct, at, dims)]
    record.record_custom(vjp, (stack, value), (result,))


def _part(stack: Tensor, at: int, dims: tuple[int, ...]) -> Tensor:
    """The elements from `at` on, as recorders are told."""
    part: Tensor = ops.reshape(ops.slice_(stack, begin=(at,), size=(int(np.prod(dims, dtype=np.int64)),)), shape=dims)
    return part


def pop(stack: Tensor, at: int, dims: tuple[int, ...]) -> Tensor:
    """The elements from `at` on, as a tensor of its own of shape `dims`, or the very tensor that was pushed."""
    if record.active.get():
        item = _items(stack._array).get(at)
        return _part(stack, at, dims) if item is None or item.dims != dims else item
    return wrap(stack._array[at:at + int(np.prod(dims, dtype=np.int64))].reshape(dims).copy())
