"""Values that pass through staged control flow: which tensors they are made of, and how they are put together again.

Structures of `ir/nest.py` come apart into leaves. Two more kinds of values are made of tensors: a `TensorArray`, and
`Partial`, what a variable is that only one side of a branch, or a loop that may not run, has defined.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import nest

__all__ = ["Composite", "Undefined", "Partial", "flatten", "pack", "free_shapes", "adapt", "same_form", "same_value",
           "is_number", "is_tensor", "becomes_tensor"]


class Composite(ABC):
    """A leaf of a structure that is itself made of leaves."""

    @abstractmethod
    def parts(self) -> list[Any]:
        """The leaves: tensors, numbers and other values."""

    @abstractmethod
    def rebuilt(self, parts: list[Any]) -> Any:
        """A value like this one with other leaves."""

    def form(self) -> Any:
        """What two values must have in common to be joined by a branch or a loop."""
        return type(self)

    def adapted(self, before: Any) -> Any:
        """A value from before a loop, in the form that this value has at the loop's end."""
        return before

    def invariants(self) -> list[Any]:
        """For each part None, or the shape with None where a loop may change it."""
        return [None] * len(self.parts())


class Undefined:
    """The value of a variable that is not assigned yet. Reading it raises Python's error."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<undefined {self.name}>"


class Partial(Composite):
    """A variable that has a value only where `defined` (a bool or a bool tensor) is true.

    `defined` is None for the value of `return`: whether there is one the converted code knows by a flag of its own.
    """

    def __init__(self, value: Any, defined: Any, name: str) -> None:
        self.value, self.defined, self.name = value, defined, name

    def parts(self) -> list[Any]:
        return [*flatten(self.value), self.defined]

    def rebuilt(self, parts: list[Any]) -> Partial:
        return Partial(pack(self.value, parts[:-1]), parts[-1], self.name)

    def form(self) -> Any:
        return Partial, nest.map_structure(lambda _: None, self.value)


def flatten(value: Any) -> list[Any]:
    """The leaves of a value."""
    leaves: list[Any] = []
    for leaf in nest.flatten(value):
        if isinstance(leaf, Composite):
            leaves.extend(leaf.parts())
        else:
            leaves.append(leaf)
    return leaves


def pack(value: Any, leaves: list[Any]) -> Any:
    """A value like `value` with other leaves."""
    rest = iter(leaves)
    built = []
    for leaf in nest.flatten(value):
        if isinstance(leaf, Composite):
            built.append(leaf.rebuilt([next(rest) for _ in leaf.parts()]))
        else:
            built.append(next(rest))
    return nest.pack(value, built)


def free_shapes(value: Any) -> list[Any]:
    """For each leaf of a value None, or what its kind lets loops change of its shape."""
    invariants: list[Any] = []
    for leaf in nest.flatten(value):
        invariants.extend(leaf.invariants() if isinstance(leaf, Composite) else [None])
    return invariants


def adapt(before: Any, after: Any) -> Any:
    """A value from before a loop in the form of the one after it; None where that cannot be."""
    try:
        adapted = nest.map_structure(lambda a, b: b.adapted(a) if isinstance(b, Composite) else a, before, after)
    except (TypeError, ValueError):
        return None
    return adapted if same_form(adapted, after) else None


def same_form(a: Any, b: Any) -> bool:
    """Whether two values have the same containers in the same places."""
    try:
        nest.assert_same_structure(a, b)
    except (TypeError, ValueError):
        return False
    return all(_form(x) == _form(y) for x, y in zip(nest.flatten(a), nest.flatten(b), strict=True))


def _form(leaf: Any) -> Any:
    return leaf.form() if isinstance(leaf, Composite) else None


def is_number(value: Any) -> bool:
    """Whether a value is a Python number or truth value, which a tensor can stand for."""
    return isinstance(value, (bool, int, float, complex))


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor or a variable."""
    return isinstance(value, (Tensor, Variable))


def becomes_tensor(value: Any) -> bool:
    """Whether a value is a tensor or can be one without a change of meaning."""
    return is_tensor(value) or is_number(value) or isinstance(value, (np.ndarray, np.generic))


def same_value(a: Any, b: Any) -> bool:
    """Whether two Python values of one type are equal; what cannot be compared is not."""
    try:
        return bool(a == b)
    except Exception:  # noqa: BLE001 - the comparison is the user's
        return False
