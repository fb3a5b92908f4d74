"""Stacks of the graph IR in eager execution: vectors that grow, written in place by whoever made them.

A graph reads a stack through its last version only, so a push may write into what an earlier push made. Anything else
that serves as a stack (zeros, a tensor of the user's, elements that a backend copied to the host) is copied before the
first write. Elements are read by `_array`, as everywhere; only memory that was made here is ever written.
"""

from __future__ import annotations

import numpy as np

from .tensor import Tensor, wrap

__all__ = ["push", "pop"]


class _StackMemory(np.ndarray):
    """Memory that only pushes write; stacks are plain views of all of it."""


def _zeros(size: int, dtype: np.dtype) -> np.ndarray:
    """A view of new stack memory."""
    memory = np.ndarray.__new__(_StackMemory, (size,), dtype)
    memory.fill(0)
    return memory.view(np.ndarray)


def push(stack: Tensor, value: Tensor, at: int, add: bool) -> Tensor:
    """`stack` with the elements of `value` from `at` on; see `ir.graph.PUSH`."""
    elements, new = stack._array, value._array.reshape(-1)
    end = at + new.size
    owned = type(elements.base) is _StackMemory and elements.flags.writeable
    if not owned or end > elements.size:
        grown = _zeros(elements.size if end <= elements.size else max(end, 2 * elements.size), elements.dtype)
        grown[:elements.size] = elements
        elements = grown
    if add:
        elements[at:end] += new
    else:
        elements[at:end] = new
    return wrap(elements)


def pop(stack: Tensor, at: int, dims: tuple[int, ...]) -> Tensor:
    """The elements from `at` on, as a tensor of its own of shape `dims`."""
    return wrap(stack._array[at:at + int(np.prod(dims, dtype=np.int64))].reshape(dims).copy())
