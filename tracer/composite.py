"""Values that pass through staged control flow: the tensors that they are made of, and how they are put together again.

Structures of `ir/nest.py` come apart into leaves. Two more kinds of values are made of tensors: a `TensorArray`, and
`MaybeDefined`, the value of a variable that only one side of a branch, or a loop that may not run, has assigned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import nest
from twofold.ir.spec import TensorShape

from .types import Captured, PythonValue, Structure

__all__ = ["Composite", "Undefined", "MaybeDefined", "flatten", "pack", "free_shapes", "adapt", "same_form",
           "same_value", "is_number", "is_tensor", "becomes_tensor"]


class Composite(ABC):
    """A leaf of a structure that is itself made of leaves."""

    @abstractmethod
    def parts(self) -> list[PythonValue]:
        """The leaves: tensors, numbers and other values."""

    @abstractmethod
    def rebuilt(self, parts: list[PythonValue]) -> Composite:
        """A value like this one with other leaves."""

    def form(self) -> object:
        """A description that two values must have in common to be joined by a branch or a loop."""
        return type(self)

    def adapted(self, before: PythonValue) -> PythonValue:
        """A value from before a loop, in the form that this value has at the loop's end."""
        return before

    def invariants(self) -> list[TensorShape | None]:
        """For each part None, or the shape with None where a loop may change it."""
        return [None] * len(self.parts())


class Undefined:
    """The value of a variable that is not assigned yet. Reading it raises Python's error."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<undefined {self.name}>"


class MaybeDefined(Composite):
    """The value of a variable that has one only where `defined` (a bool or a bool tensor) is true.

    `defined` is None for the value of `return`: whether there is one the converted code knows by a flag of its own.
    """

    def __init__(self, value: Structure, defined: bool | Tensor | None, name: str) -> None:
        self.value, self.defined, self.name = value, defined, name

    def parts(self) -> list[PythonValue]:
        return [*flatten(self.value), self.defined]

    def rebuilt(self, parts: list[PythonValue]) -> MaybeDefined:
        *leaves, defined = parts
        assert defined is None or isinstance(defined, (bool, Tensor)), "what tells is a truth value"
        return MaybeDefined(pack(self.value, leaves), defined, self.name)

    def form(self) -> object:
        return MaybeDefined, nest.map_structure(lambda _: None, self.value)


def flatten(value: Structure) -> list[Any]:  # leaves are of any kind, which callers ask
    """The leaves of a value."""
    leaves: list[PythonValue] = []
    for leaf in nest.flatten(value):
        if isinstance(leaf, Composite):
            leaves.extend(leaf.parts())
        else:
            leaves.append(leaf)
    return leaves


def pack(value: Structure, leaves: Sequence[PythonValue]) -> Structure:
    """A value like `value` with other leaves."""
    rest = iter(leaves)
    built: list[PythonValue] = []
    for leaf in nest.flatten(value):
        if isinstance(leaf, Composite):
            built.append(leaf.rebuilt([next(rest) for _ in leaf.parts()]))
        else:
            built.append(next(rest))
    return nest.pack(value, built)


def free_shapes(value: Structure) -> list[TensorShape | None]:
    """For each leaf of a value None, or its shape with None where its kind lets loops change it."""
    invariants: list[TensorShape | None] = []
    for leaf in nest.flatten(value, expand_composites=False):
        invariants.extend(leaf.invariants() if hasattr(leaf, "invariants") else [None] * len(nest.flatten(leaf)))
    return invariants


def adapt(before: Structure, after: Structure) -> Structure:
    """A value from before a loop in the form of the one after it; None where that cannot be."""
    try:
        adapted = nest.map_structure(lambda a, b: b.adapted(a) if hasattr(b, "adapted") else a, before, after,
                                     expand_composites=False)
    except (TypeError, ValueError):
        return None
    return adapted if same_form(adapted, after) else None


def same_form(a: Structure, b: Structure) -> bool:
    """Whether two values have the same containers in the same places."""
    try:
        nest.assert_same_structure(a, b)
    except (TypeError, ValueError):
        return False
    return all(_form(x) == _form(y) for x, y in zip(nest.flatten(a), nest.flatten(b), strict=True))


def _form(leaf: PythonValue) -> object:
    return leaf.form() if isinstance(leaf, Composite) else None


def is_number(value: PythonValue) -> bool:
    """Whether a value is a Python number or truth value, which a tensor can stand for."""
    return isinstance(value, (bool, int, float, complex))


def is_tensor(value: PythonValue) -> TypeGuard[Captured]:
    """Whether a value is a tensor or a variable."""
    return isinstance(value, (Tensor, Variable))


def becomes_tensor(value: PythonValue) -> bool:
    """Whether a value is a tensor or can be one without a change of meaning."""
    return is_tensor(value) or is_number(value) or isinstance(value, (np.ndarray, np.generic))


def same_value(a: PythonValue, b: PythonValue) -> bool:
    """Whether two Python values of one type are equal; values that cannot be compared are not."""
    try:
        return bool(a == b)
    except Exception:  # noqa: BLE001 - the comparison is the user's
        return False
