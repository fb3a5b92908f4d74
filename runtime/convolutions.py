"""The code of `codegen/conv.py`, loaded. Which runs of it a convolution becomes is `lowerings.py`'s affair."""

from __future__ import annotations

from twofold.codegen import conv_shapes, library
from twofold.ir.dtypes import DType, as_dtype

from . import generated

__all__ = ["functions", "install"]


def functions(dtype: DType) -> generated.Functions:
    """The addresses of the kernels for float32 or float64; see `codegen/conv.py`."""
    return generated.functions("conv", dtype)


def install() -> None:
    """Does nothing: importing the module provides the kernels as library kernels."""


library.provide("conv", lambda dtype, name: functions(as_dtype(dtype))[name],
                lambda dtype, name: functions(as_dtype(dtype)).settle(name), conv_shapes.WIDER)

