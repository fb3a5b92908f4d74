"""Shapes of traced tensors as Python sees them.

A size that the user declared unknown, or that only running can tell, is None, as in TensorFlow. A size that we made
unknown ourselves, so that one trace serves all sizes, is a number to Python: code may branch on it. Asking for it
ends the trace, and the function is traced for that very size.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, SupportsIndex

from twofold.ir.dims import Dim, Shape
from twofold.ir.errors import is_ours
from twofold.ir.spec import TensorShape

__all__ = ["Relaxed", "SizeAskedError", "shape_of"]


class SizeAskedError(TypeError):
    """Python asked for a size that a trace leaves open."""


class Relaxed:
    """The sizes that a trace leaves open by our choice.

    Attributes:
        names: the symbols.
        asked: whether Python asked for one.
    """

    __slots__ = ("names", "asked")

    def __init__(self, names: frozenset[str]) -> None:
        self.names, self.asked = names, False


class RelaxedShape(TensorShape):
    """A shape with sizes that are numbers to the user, which a trace leaves open."""

    __slots__ = ("_relaxed", "_open")

    _relaxed: Relaxed
    _open: tuple[bool, ...]

    def _ask(self, asked: bool | tuple[bool, ...]) -> None:
        """End the trace if the user's own code asks for a size that was left open."""
        if asked and not is_ours(sys._getframe(2).f_code.co_filename):
            self._relaxed.asked = True
            raise SizeAskedError("Python asked for a size that was left open.")

    @property
    def dims(self) -> list[int | None] | None:
        """The sizes as a list."""
        self._ask(True)
        return super().dims

    def as_list(self) -> list[int | None]:
        """The sizes as a list."""
        self._ask(True)
        return super().as_list()

    def num_elements(self) -> int | None:
        """The number of elements."""
        self._ask(True)
        return super().num_elements()

    def is_fully_defined(self) -> bool:
        """Whether every size is known."""
        self._ask(True)
        return super().is_fully_defined()

    def index(self, size: int | None, *bounds: int) -> int:
        """The first axis of this size, as a tuple's `index`."""
        self._ask(True)
        return super().index(size, *bounds)

    def count(self, size: int | None) -> int:
        """How many axes have this size."""
        self._ask(True)
        return super().count(size)

    def __getitem__(self, key: SupportsIndex | slice) -> Any:  # a size, or a shape
        if isinstance(key, slice):
            assert self._dims is not None, "a traced tensor has a rank"
            return _shape(self._dims[key], self._open[key], self._relaxed)
        self._ask(self._open[key])
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[int | None]:
        self._ask(True)
        return super().__iter__()

    def __contains__(self, size: object) -> bool:
        self._ask(True)
        return super().__contains__(size)

    def __eq__(self, other: object) -> bool:
        self._ask(True)
        return super().__eq__(other)

    __hash__ = TensorShape.__hash__

    def __str__(self) -> str:
        self._ask(True)
        return super().__str__()


def _shape(sizes: tuple[int | None, ...], left_open: tuple[bool, ...], relaxed: Relaxed) -> TensorShape:
    if not any(left_open):
        return TensorShape._of(sizes)
    shape = RelaxedShape.__new__(RelaxedShape)
    shape._dims, shape._open, shape._relaxed = sizes, left_open, relaxed
    return shape


def shape_of(dims: Shape, relaxed: Relaxed | None) -> TensorShape:
    """The shape of a traced tensor.

    Args:
        dims: its sizes.
        relaxed: the sizes that the trace leaves open by our choice, or None.
    """
    sizes = tuple([None if isinstance(d, Dim) else d for d in dims])
    if relaxed is None or None not in sizes:
        return TensorShape._of(sizes)
    names = relaxed.names
    return _shape(sizes, tuple([isinstance(d, Dim) and not names.isdisjoint(d.symbols()) for d in dims]), relaxed)
