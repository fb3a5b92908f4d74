"""Scatters into the memory of a variable's value, where nobody but the variable refers to that: a few rows of a large
table then cost what they cost, and not a copy of the table.

What fails leaves the memory as it is: indices are checked by kernels that run before (`codegen/kernels/indexing.py`).
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.dims import Shape
from twofold.ir.dtypes import DType
from twofold.ir.spec import spec
from twofold.runtime import memory

from .tensor import Tensor, wrap

__all__ = ["is_alone", "is_worth_it", "scattered"]

_LEAST = 1 << 16  # bytes of a value that are worth finding out who else has it


def is_worth_it(tensor: Tensor, *others: Tensor) -> bool:
    """Whether a value is large, and all is on the host."""
    memory_of_all = [t._memory for t in (tensor, *others)]
    return all(type(m) is np.ndarray for m in memory_of_all) and tensor.dtype is not dt.string and \
        tensor._memory.nbytes >= _LEAST


def _references(tensor: Tensor) -> tuple[int, int]:
    return sys.getrefcount(tensor), sys.getrefcount(tensor._memory)


def _of_one_name() -> tuple[int, int]:
    """The references of a tensor that has one name; some are those of the calls that count them."""
    tensor = wrap(np.empty(1))
    return _references(tensor)


_ALONE = _of_one_name()


def is_alone(tensor: Tensor) -> bool:
    """Whether nobody but the one name in the caller refers to a tensor of the host, and nobody else to its memory."""
    if type(tensor._memory) is not np.ndarray or weakref.getweakrefcount(tensor):
        return False
    counts = _references(tensor)
    return counts[0] - 1 <= _ALONE[0] and counts[1] <= _ALONE[1] and memory.is_unshared(tensor._memory)


def scattered(tensor: Tensor, places: Tensor, values: Tensor, mode: str) -> Tensor:
    """`tensor_scatter` of tensors of the host whose first one is needed no more: the result has its memory, if that is
    row-major and nothing is computed in another dtype.

    Raises:
        KernelCheck: an index is out of range. Nothing has changed.
    """
    run = _plan(tensor.dims, tensor.dtype, places.dims, places.dtype, values.dims, mode)
    return wrap(run([tensor._memory, places._memory, values._memory]))


@lru_cache(256)
def _plan(dims: Shape, dtype: DType, place_dims: Shape, place_dtype: DType, value_dims: Shape,
          mode: str) -> Callable[[list[np.ndarray]], np.ndarray]:
    from . import placing

    inputs = [spec(dims, dtype), spec(place_dims, place_dtype), spec(value_dims, dtype)]
    return placing.prepare(ops.tensor_scatter, inputs, [inputs[0]], {"mode": mode}, in_place=True)
