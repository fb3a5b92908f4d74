"""Where the memory of a plan lies on a GPU, once its sizes are numbers.

Most of it lies in a buffer of the run, at a byte that is the same in all runs (`BufferPlace`); that of an item of an
array, where an index on the GPU says (`SlotPlace`). What lies there is not known here (`cuda_known.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from twofold.codegen.operands import Argument, Library, Memory, Slot, memory_in
from twofold.codegen.plan import Plan
from twofold.codegen.statements import Kernel
from twofold.ir.dims import Dim, DimLike

__all__ = ["BufferPlace", "SlotPlace", "Place", "PlanPlaces", "slots_of"]


class BufferPlace(NamedTuple):
    """Memory of a run: the number of a buffer, and the byte in it."""

    buffer: int
    offset: int


class SlotPlace(NamedTuple):
    """Memory whose place an index on the GPU decides: `base`, and bytes further on for each unit of the index."""

    base: Place
    stride: int
    at: Place
    wide: bool  # whether the index has 64 bits


Place: TypeAlias = BufferPlace | SlotPlace


def slots_of(place: Place) -> Iterator[SlotPlace]:
    """The slots that decide where a place is, the outermost last."""
    if isinstance(place, SlotPlace):
        yield from slots_of(place.base)
        yield from slots_of(place.at)
        yield place


class PlanPlaces:
    """The places of a plan.

    Attributes:
        plan, sizes: whose memory it is, for which sizes.
        arena: the number of the buffer that is scratch memory.
    """

    def __init__(self, plan: Plan, sizes: Mapping[str, int], arena: int) -> None:
        self.plan, self.sizes, self.arena = plan, sizes, arena
        self._owners: dict[Memory, Memory] = {}

    def number(self, size: DimLike) -> int:
        """A size as a number."""
        return size.evaluate(self.sizes) if isinstance(size, Dim) else int(size)

    def owner(self, of: Memory) -> Memory:
        """The memory in which a value is found: for one in a slot, the array."""
        owner = self._owners.get(of)
        if owner is None:
            memory = self.plan.memory_of(of)
            owner = self._owners[of] = self.owner(memory.base) if isinstance(memory, Slot) else memory
        return owner

    def place(self, of: Memory, offset: int = 0) -> Place:
        """Where byte `offset` of some memory lies."""
        memory = self.plan.memory_of(of)
        return self._slot(memory, offset) if isinstance(memory, Slot) else self.beside(memory, offset)

    def beside(self, owner: Memory, offset: int) -> BufferPlace:
        """The same for memory that is its own."""
        number = self.plan.buffers.get(owner)
        if number is not None:
            return BufferPlace(number, offset)
        return BufferPlace(self.arena, self.number(self.plan.offsets[owner]) + offset)

    def _slot(self, slot: Slot, offset: int) -> SlotPlace:
        size = slot.base.dtype.size
        base = self.place(slot.base, self.number(slot.offset) * size + offset)
        index = self.place(slot.index, self.number(slot.skip) * slot.index.dtype.size)
        return SlotPlace(base, self.number(slot.stride) * size, index, slot.index.dtype.size == 8)

    def word(self, argument: Argument) -> Place | int:
        """What a kernel gets for an argument: a place, or a number."""
        memory = memory_in(argument)
        if memory is not None:
            of, first = memory
            return self.place(of, self.number(first) * of.dtype.size)
        if isinstance(argument, (Kernel, Library)):
            raise NotImplementedError(f"{argument.name}: a kernel of another backend")
        assert isinstance(argument, (int, Dim))
        return self.number(argument)
