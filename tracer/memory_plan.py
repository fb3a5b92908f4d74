"""`MemoryPlan`: the memory that a compiled function needs besides its arguments, and when.

The numbers are those of the program itself (`runtime/description.py`): buffers of its scratch memory with the steps
during which they live. Placing them is `codegen/arena.py`'s work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from twofold.codegen.arena import ALIGNED
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir.data_class import data_class
from twofold.ir.dims import Dim, DimLike

if TYPE_CHECKING:
    from twofold.runtime.program import Executable

__all__ = ["MemoryPlan", "PlannedBuffer", "memory_plan"]


@data_class(frozen=True)
class PlannedBuffer:
    """One value in scratch memory.

    Attributes:
        name: the op that makes it, or its purpose.
        size: bytes.
        first, last: the steps between which it lives, both included.
        offset: where it begins, in bytes.
    """

    name: str
    size: int
    first: int
    last: int
    offset: int


@data_class(frozen=True)
class MemoryPlan:
    """The memory of one compiled function, in bytes.

    Attributes:
        buffers: what lies in scratch memory.
        arena: the scratch memory of a run.
        live: the most that buffers need at one time; no arena can be smaller.
        outputs: new memory for results and variables.
        in_place: memory of variables that is written over, where nobody else has it.
        constants: the constants that the program holds.
        peak: the most that a run needs besides its arguments: `arena` and `outputs`.
    """

    buffers: tuple[PlannedBuffer, ...]
    arena: int
    live: int
    outputs: int
    in_place: int
    constants: int
    peak: int

    def __str__(self) -> str:
        lines = [f"arena {self.arena} bytes (live {self.live}), outputs {self.outputs}, in place {self.in_place}, "
                 f"constants {self.constants}, peak {self.peak}"]
        lines += [f"  {b.offset:>10} {b.size:>10}  steps {b.first}-{b.last}  {b.name}" for b in self.buffers]
        return "\n".join(lines)


def memory_plan(program: Executable, sizes: Mapping[str, int]) -> MemoryPlan:
    """The plan of a compiled program.

    Args:
        program: of the function.
        sizes: the values of unknown sizes, by the names of their symbols.
    Raises:
        ValueError: Python runs between parts of the program, or a size is missing.
    """
    from twofold.runtime.compiled import native  # imports compilers, which eager code does not need

    compiled = native(program.whole)
    if compiled is None:
        raise ValueError("this function has no plan of its memory: Python runs between its compiled parts")
    about = compiled.about
    missing = sorted(set(about.symbols) - set(sizes))
    if missing:
        raise ValueError(f"sizes are unknown: give {', '.join(missing)}")

    def number(size: DimLike) -> int:
        return size.evaluate(sizes) if isinstance(size, Dim) else int(size)

    buffers = tuple([PlannedBuffer(b.name, number(b.size), b.first, b.last, number(b.offset)) for b in about.buffers])
    arena = number(about.arena)
    steps = {b.first for b in buffers}
    live = max([sum(-(-b.size // ALIGNED) * ALIGNED for b in buffers if b.first <= n <= b.last) for n in steps],
               default=0)
    sizes_of_outputs = [dm.numel(dm.evaluate(dims, sizes)) * dt.as_dtype(name).size for dims, name in about.outputs]
    in_place = sum(size for n, size in enumerate(sizes_of_outputs) if n in about.donated)
    outputs = sum(sizes_of_outputs) - in_place
    return MemoryPlan(buffers, arena, live, outputs, in_place, sum(c.nbytes for c in about.constants), arena + outputs)
