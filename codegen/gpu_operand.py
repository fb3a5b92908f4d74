"""What a product on a GPU loads its operands from: memory, or what it computes from some meanwhile (`gpu_prologue.py`).

Tiles ask for elements by their number in the operand's memory, one or some neighbours (`gpu_gemm.py`, `gpu_conv.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, TypeAlias

from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .loop import LoopBuilder, Pointer, TeamBuilder

__all__ = ["NONE", "VECTOR", "Beginning", "Beginnings", "Elements", "InMemory", "elements_of"]

VECTOR = 16  # bytes of what is multiplied that a thread loads at once


class Elements(Protocol):
    """The elements of an operand.

    Attributes:
        compute: the type in which they are multiplied.
        lanes: how many neighbours a vector has.
    """

    compute: DType
    lanes: int

    def near(self, at: Scalar) -> Scalar:
        """Whether vectors can be loaded whose numbers are element `at`'s and a multiple of `lanes`."""

    def element(self, at: Scalar) -> Scalar:
        """Element number `at`."""

    def vector(self, at: Scalar) -> list[Scalar]:
        """The neighbours from element `at` on."""


class Beginning(Protocol):
    """What an operand is computed from, as a kernel that is being recorded loads it; `name` says what that is."""

    name: str

    def builder(self, name: str, threads: int) -> LoopBuilder:
        """The builder of a kernel that begins so, for a team of so many threads."""

    def elements(self, b: LoopBuilder, compute: DType) -> Elements:
        """The elements; what they are computed from become further arguments."""


Beginnings: TypeAlias = Mapping[int, Beginning]  # by the operand's place among a kernel's arguments
NONE: Beginnings = MappingProxyType({})


class InMemory:
    """Elements that lie in memory, which are widened as they are loaded."""

    def __init__(self, b: LoopBuilder, memory: Pointer, compute: DType) -> None:
        self.b, self.memory, self.compute = b, memory, compute
        self.lanes = VECTOR // compute.size

    def near(self, at: Scalar) -> Scalar:
        return self.b.aligned(self.b.at(self.memory, at), self.memory.dtype.size * self.lanes)

    def element(self, at: Scalar) -> Scalar:
        return self._taken(self.b.load(self.memory, at))

    def vector(self, at: Scalar) -> list[Scalar]:
        vector = self.b.load(self.memory, at, self.lanes, aligned=True)
        return [self._taken(self.b.extract(vector, lane)) for lane in range(self.lanes)]

    def _taken(self, x: Scalar) -> Scalar:
        return x if x.dtype is self.compute else self.b.cast(x, self.compute)


def elements_of(b: TeamBuilder, memory: Pointer, compute: DType, beginnings: Beginnings) -> Elements:
    """The elements of an operand that is an argument of a kernel."""
    beginning = None if memory.slot is None else beginnings.get(memory.slot)
    return InMemory(b, memory, compute) if beginning is None else beginning.elements(b, compute)
