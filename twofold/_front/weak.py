"""Weak tensors: those whose dtype gives way to that of others, in the modes "all" and "safe" of promotion.

They are tensors of a class of their own, which nothing else tells apart: what ops make of them are tensors, and the
functions and operators of `tf.experimental.numpy` say whether their results are weak.
"""

from __future__ import annotations

from typing import Any

from twofold.eager.tensor import Tensor
from twofold.tracer.symbolic import SymbolicTensor

__all__ = ["WeakTensor", "SymbolicWeakTensor", "constants", "is_weak", "numbers_are_weak", "weak"]

_PYTHON = frozenset({int, float, complex})


class WeakTensor(Tensor):
    """A tensor whose dtype gives way to that of others."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, weak=True>"


class SymbolicWeakTensor(SymbolicTensor):
    """A tensor of a function that is being traced whose dtype gives way to that of others."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, weak=True>"


_WEAK: dict[type, type] = {Tensor: WeakTensor, SymbolicTensor: SymbolicWeakTensor}


def weak(tensor: Any) -> Any:
    """A tensor that was just made, and that nobody else has, as a weak one; others as they are."""
    cls = _WEAK.get(type(tensor))
    if cls is not None:
        tensor.__class__ = cls
    return tensor


def is_weak(value: Any) -> bool:
    """Whether a value is a weak tensor."""
    return isinstance(value, (WeakTensor, SymbolicWeakTensor))


class constants:
    """Whether `tf.constant` makes weak tensors of Python's numbers."""

    weak = False


def numbers_are_weak(value: Any) -> bool:
    """Whether a constant of a value is weak: a Python number that is no bool, or a list with such ones alone."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(numbers_are_weak, value))
    return type(value) in _PYTHON
