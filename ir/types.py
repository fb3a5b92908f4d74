"""The names of types that signatures of the engine share: tensors in any mode, what ops take and give, and attributes.

Owns no behaviour. Dimensions are named in `ir/dims.py`, scalars of bodies in `ir/instructions.py`; what each part of
an op's declaration means is said by `ir/op.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from .dims import Dim, Shape
from .dtypes import DType

__all__ = ["AnyTensor", "Attr", "Attrs", "Axes", "Cotangent", "Cotangents", "GradientRule", "HasShape", "HostFunction",
           "Operand", "Results", "ShapeRule", "Spec", "TangentRule", "ViewRule"]


class Spec(Protocol):
    """A shape of known rank and a dtype: all that rules read of an operand. Tensors, graph values and `TensorSpec`s of
    known rank are of this form.

    A gradient rule gets a mere spec for an operand whose value it does not save.
    """

    @property
    def dims(self) -> Shape: ...

    @property
    def dtype(self) -> DType: ...


class AnyTensor(Spec, Protocol):
    """A tensor in whatever mode: an eager tensor, a symbolic one of a trace, or a value of a graph.

    Gradient rules and rewrites read its spec and leave all else to ops, so that they hold in every mode.
    """


class HasShape(Protocol):
    """An array, tensor or variable, of this library or another: whatever says its shape and dtype in its own way."""

    @property
    def shape(self) -> Any: ...

    @property
    def dtype(self) -> Any: ...


# What an op takes in the place of a tensor; the interpreter makes tensors of numbers, arrays and sizes.
Operand: TypeAlias = AnyTensor | np.ndarray | np.generic | complex | Dim
# What an op gives: one tensor, or a tuple of them where it has several results. Which of these, the op alone tells.
Results: TypeAlias = Any

# The value of an attribute: a number, string, dtype, size, array, None, or a tuple of these. An op's signature, or the
# text of a construct, tells which.
Attr: TypeAlias = Any
Attrs: TypeAlias = dict[str, Attr]
Axes: TypeAlias = tuple[int, ...] | int | None  # axes of a tensor; None for all

# What a gradient rule gives for an operand: its cotangent, None for 0, or a function that computes it if it is wanted.
Cotangent: TypeAlias = AnyTensor | None | Callable[[], AnyTensor | None]
# What a gradient rule gives: a cotangent for each operand, or the one of a single operand.
Cotangents: TypeAlias = Cotangent | Sequence[Cotangent]

ShapeRule: TypeAlias = Callable[..., Spec | tuple[Spec, ...]]  # (op, *specs, **attrs)
GradientRule: TypeAlias = Callable[..., Cotangents]  # (ct, out, *operands, **attrs)
TangentRule: TypeAlias = Callable[..., Results]  # (tangents, out, *operands, **attrs)
ViewRule: TypeAlias = Callable[..., Any]  # (array or layout, **attrs) -> the same kind
HostFunction: TypeAlias = Callable[..., np.ndarray | tuple[np.ndarray, ...]]  # (*arrays, **attrs)
