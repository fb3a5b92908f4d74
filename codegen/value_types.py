"""Types of values that only kernels have: vectors of a known number of lanes, masks, and addresses of typed memory.

Each is a `DType`, so that instructions are recorded, checked and written for it as for numbers. What is said of a
vector's dtype (kind, size, NumPy type) is said of each of its lanes; a mask is a vector of bool. There is one object
per type. Element types of tensors are `ir/dtypes.py`'s.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from twofold.ir.dtypes import DType

__all__ = ["Vector", "Address", "vector", "address", "lanes_of", "lane_type", "like"]


class Vector(DType):
    """`lanes` values of type `element`, side by side in a register."""

    __slots__ = ("element", "lanes")

    def __init__(self, element: DType, lanes: int) -> None:
        super().__init__(f"{element.name}x{lanes}", element.np, element.kind, element.index, f"{element.short}x{lanes}")
        self.element, self.lanes = element, lanes

    def __reduce__(self) -> tuple[Callable[[DType, int], Vector], tuple[DType, int]]:
        return (vector, (self.element, self.lanes))


class Address(DType):
    """Where elements of type `element` lie."""

    __slots__ = ("element",)

    def __init__(self, element: DType) -> None:
        super().__init__(f"{element.name}*", "int64", "p", 0, f"{element.short}*")
        self.element = element

    def __reduce__(self) -> tuple[Callable[[DType], Address], tuple[DType]]:
        return (address, (self.element,))


@functools.cache
def vector(element: DType, lanes: int) -> Vector:
    """The type of vectors.

    Raises:
        ValueError: `lanes` is not positive, or `element` is no real type that kernels compute in.

    >>> from twofold.ir.dtypes import float32
    >>> vector(float32, 8).short
    'f32x8'
    """
    if lanes < 1 or element.compute is not element or element.kind not in "biuf":
        raise ValueError(f"no vectors of {lanes} x {element.short}")
    return Vector(element, lanes)


@functools.cache
def address(element: DType) -> Address:
    """The type of addresses of elements in memory, 16-bit floats included."""
    return Address(element)


def lanes_of(dtype: DType) -> int:
    """How many lanes a value has; 0 if it is not a vector."""
    return dtype.lanes if isinstance(dtype, Vector) else 0


def lane_type(dtype: DType) -> DType:
    """The type of one lane of a vector; any other type is its own."""
    return dtype.element if isinstance(dtype, Vector) else dtype


def like(dtype: DType, of: DType) -> DType:
    """`dtype`, in as many lanes as `of` has; a vector stays what it is."""
    return vector(dtype, of.lanes) if isinstance(of, Vector) and not isinstance(dtype, Vector) else dtype

