"""The block that a layer of a mixed policy is for its call; see `ir/surroundings.py`."""

from __future__ import annotations

from contextlib import AbstractContextManager

from twofold.ir.dtypes import DType
from twofold.ir.precision import MIXED
from twofold.ir.surroundings import said, within

__all__ = ["computing_in", "dtype_of_reads"]


def computing_in(dtype: DType) -> AbstractContextManager[None]:
    """A block in which weights of mixed layers are read as `dtype`, and in which products of 16-bit floats may be those
    of tensor cores, where they do not say."""
    return within(reads=dtype, precision=MIXED)


def dtype_of_reads() -> DType | None:
    """The dtype in which the weights of mixed layers are read here; None for their own."""
    dtype: DType | None = said("reads")
    return dtype
