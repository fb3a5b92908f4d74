"""Threads that run a program: where each of them is, and what they share.

A `Run` holds the registers of all threads of some blocks, each register an array with an element for each thread that
has not returned, or of one element where it is the same in all. Threads go apart at branches: those of the lowest place
in the program run first, as long as they do not wait for others at a barrier or for those that an instruction names.
Every step is given a mask of the threads that take part, or None where all do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from gpu.ptx_memory import Banks, Memory
from gpu.ptx_ops import DTYPES, GENERIC
from gpu.ptx_text import PtxError

if TYPE_CHECKING:
    from gpu.ptx_decode import Program

__all__ = ["SPECIAL", "WARP", "Checks", "Dim", "Mask", "Run", "Step"]

WARP = 32
SPECIAL = re.compile(r"%(n?tid|n?ctaid)\.[xyz]|%(laneid|n?warpid|dynamic_smem_size|lanemask_(eq|lt|le|gt|ge))")
Mask = np.ndarray | None
Step = Callable[["Run", Mask], None]
Dim = tuple[int, int, int]


@dataclass(frozen=True)
class Checks:
    """What a run looks for beside bad addresses: reads of shared or local memory that was not written, accesses to
    shared memory that no barrier separates, threads that write different values to one address at once; and how many
    blocks of instructions a run may take."""

    uninitialised: bool = True
    races: bool = True
    conflicts: bool = True
    steps: int = 2_000_000


class Run:
    """The threads of the blocks from `first` on, so many of them."""

    def __init__(self, program: Program, memory: Memory, symbols: dict[str, int], grid: Dim, block: Dim,
                 first: int, blocks: int, dynamic: int, parameters: bytes, checks: Checks, seed: int) -> None:
        self.program, self.memory, self.checks = program, memory, checks
        self.parameters, self.rng = parameters, np.random.default_rng(seed)
        size = block[0] * block[1] * block[2]
        self.block_size, self.blocks, self.warps = size, blocks, -(-size // WARP)
        within = np.tile(np.arange(size), blocks)
        self.block = np.repeat(np.arange(blocks), size)  # of each thread, among these blocks
        self.slot = self.block * (self.warps * WARP) + within  # numbers by which whole warps lie side by side
        self.count = len(within)
        self.position = np.full(blocks * self.warps * WARP, -1)
        self.position[self.slot] = np.arange(self.count)
        self.r: list[np.ndarray] = program.fresh_registers(symbols)
        for name, index in program.specials.items():
            self.r[index] = _special(name, grid, block, within, self.block + first, dynamic)
        shared = program.shared_size + dynamic
        self.shared = Banks("shared", blocks, shared, program.grain, checks.races)
        self.local = Banks("local", self.count, program.local_size, 1, False)
        self.threads = np.arange(self.count)  # the row of each thread's local memory
        self.ready: dict[int, Mask] = {0: None}
        self.stalled: dict[int, Mask] = {}  # threads that an instruction names, where others are not there yet
        self.waiting: dict[int, Mask] = {}  # at barriers
        self.expected: dict[int, int] = {}  # how many threads of a block a barrier waits for
        self.whole = size % WARP == 0  # all warps have all their threads

    # -- where threads are ------------------------------------------------------------------------
    def go(self) -> None:
        """Runs all threads to their end."""
        blocks, left = self.program.blocks, self.checks.steps
        while self.ready or self.released():
            place = min(self.ready)
            mask = self.ready.pop(place)
            while place >= 0:
                left -= 1
                if left < 0:
                    raise PtxError("endless", f"{self.program.name} does not end")
                block = blocks[place]
                if block.names is not None:
                    some, mask = self.assembled(place, mask, block.names)
                    if not some:
                        break
                place, mask = self.through(block.steps, block.end, mask)

    def through(self, steps: Sequence[tuple[Step, int]], end: Callable[[Run, Mask], tuple[int, Mask]],
                mask: Mask) -> tuple[int, Mask]:
        """Runs a block of instructions; gives where its threads go on, if they are the next to run."""
        done = 0
        try:
            for step, _ in steps:
                step(self, mask)
                done += 1
        except PtxError as error:
            statement = self.program.entry.statements[steps[done][1]]
            raise PtxError(error.kind, f"{str(error).removeprefix(error.kind + ': ')}\n  {self.program.name}, line "
                           f"{statement.line}: {statement.text}") from None
        place, mask = end(self, mask)
        if place >= 0 and self.ready and min(self.ready) <= place:
            self.arrive(self.ready, place, mask)
            return -1, None
        return place, mask

    def arrive(self, table: dict[int, Mask], place: int, mask: Mask) -> None:
        """Threads come to a place, where others may be."""
        if place in table:
            other = table[place]
            mask = None if mask is None or other is None else mask | other
        table[place] = None if mask is None or mask.all() else mask

    def split(self, condition: np.ndarray, mask: Mask, there: int, here: int) -> tuple[int, Mask]:
        """Those of a condition go to one place, the others to another."""
        if len(condition) == 1:
            return (there if condition[0] else here), mask
        taken = condition if mask is None else condition & mask
        others = ~condition if mask is None else mask & ~condition
        if not taken.any():
            return here, mask
        if not others.any():
            return there, mask
        self.arrive(self.ready, max(there, here), taken if there > here else others)
        return min(there, here), (others if there > here else taken)

    def leave(self, mask: Mask) -> None:
        """Threads return: their elements are dropped everywhere."""
        if mask is None:  # then none are elsewhere
            self.count = 0
            return
        keep = ~mask
        self.position[self.slot[~keep]] = -1
        self.r = [v if len(v) == 1 else v[keep] for v in self.r]
        self.block, self.slot, self.threads = self.block[keep], self.slot[keep], self.threads[keep]
        self.count = len(self.slot)
        self.position[self.slot] = np.arange(self.count)
        sizes = np.bincount(self.slot // WARP)
        self.whole = bool(((sizes == 0) | (sizes == WARP)).all())
        for table in (self.ready, self.stalled, self.waiting):
            for place, other in table.items():
                if other is not None:
                    left = other[keep]
                    table[place] = None if left.all() else left

    # -- threads that wait for others -------------------------------------------------------------
    def every(self, values: np.ndarray) -> np.ndarray:
        """Values with an element for each thread."""
        return values if len(values) == self.count else np.broadcast_to(values, self.count)

    def words(self, active: np.ndarray) -> np.ndarray:
        """For each warp a word with a bit for each of its threads."""
        flags = np.zeros(len(self.position), bool)
        flags[self.slot[active]] = True
        return np.packbits(flags.reshape(-1, WARP), axis=1, bitorder="little").view(np.uint32)[:, 0]

    def assembled(self, place: int, mask: Mask, names: int) -> tuple[bool, Mask]:
        """Whether some of the threads at an instruction that names threads go on, and which: those of which all that
        they name are there; the others wait."""
        if place in self.stalled:
            other = self.stalled.pop(place)
            mask = None if mask is None or other is None else mask | other
            mask = None if mask is None or mask.all() else mask
        named = self.r[names]
        if mask is None and self.whole and len(named) == 1 and named[0] == 0xFFFFFFFF:
            return True, None
        active = np.ones(self.count, bool) if mask is None else mask
        own, here = self.every(named), self.words(active)[self.slot // WARP]
        if not (own >> (self.slot % WARP).astype(np.uint32) & np.uint32(1))[active].all():
            raise self.program.fault(place, "shuffle", "a thread runs it that is not named")
        lonely = (own & ~here) != 0
        words = np.zeros(len(self.position) // WARP, bool)
        words[self.slot[active & lonely] // WARP] = True  # warps of which some are missed
        going = active & ~words[self.slot // WARP]
        waiting = active & ~going
        if waiting.any():
            self.arrive(self.stalled, place, waiting)
        return bool(going.any()), None if going.all() else going

    def released(self) -> bool:
        """Lets the blocks go on of which all threads that it waits for are at a barrier; False if all have returned.

        Raises:
            PtxError: those that wait wait for ever.
        """
        for place, mask in list(self.waiting.items()):
            active = np.ones(self.count, bool) if mask is None else mask
            here = np.bincount(self.block[active], minlength=self.blocks)
            full = here == self.expected[place]
            go = active & full[self.block]
            if go.any():
                del self.waiting[place]
                if (active & ~go).any():
                    self.waiting[place] = active & ~go
                self.shared.barrier(None if full.all() else np.flatnonzero(full))
                self.arrive(self.ready, place, None if go.all() else go)
                return True
        if self.stalled:
            raise self.program.fault(min(self.stalled), "shuffle", "threads that it names do not take part")
        if self.waiting:
            place = min(self.waiting)
            raise self.program.fault(place, "barrier", "some threads of a block never come to it", before=True)
        return False

    # -- registers and memory ---------------------------------------------------------------------
    def put(self, index: int, value: np.ndarray, mask: Mask) -> None:
        """Sets a register of the threads of a mask."""
        self.r[index] = value if mask is None else np.where(mask, value, self.r[index])

    def spaced(self, space: str, address: np.ndarray, mask: Mask) -> list[tuple[str, np.ndarray, Mask]]:
        """The spaces that addresses lie in, the addresses there, and those who have them."""
        if space != "generic":
            return [(space, address, mask)]
        parts: list[tuple[str, np.ndarray, Mask]] = []
        chosen = address if mask is None or len(address) == 1 else address[mask]
        tops = np.unique(chosen >> np.uint64(60))
        for top, name in ((0, "global"), (1, "shared"), (2, "local")):
            if top in tops:
                own = mask
                if len(tops) > 1:
                    here = self.every(address >> np.uint64(60) == top)
                    own = here if mask is None else mask & here
                parts.append((name, address - np.uint64(GENERIC[name]), own))
        if len(tops) and tops[-1] > 2:
            raise PtxError("illegal address", f"{int(chosen.max()):#x} lies in no space")
        return parts

    def load(self, space: str, address: np.ndarray, width: int, count: int, mask: Mask) -> list[np.ndarray]:
        """Elements at each thread's address, for the threads of a mask."""
        parts = [(own, self.loaded(name, at, width, count, own)) for name, at, own in self.spaced(space, address, mask)]
        if len(parts) == 1:
            return parts[0][1]
        masks = [self.every(np.array([True]) if own is None else own) for own, _ in parts]
        return [np.select(masks, [values[n] for _, values in parts]) for n in range(count)]

    def loaded(self, space: str, address: np.ndarray, width: int, count: int, mask: Mask) -> list[np.ndarray]:
        banks = {"shared": self.shared, "local": self.local}.get(space)
        if banks is None and (mask is None or len(address) == 1):
            return self.memory.gather(address, width, count)
        own: np.ndarray | slice = slice(None) if mask is None else mask
        if banks is None:
            values = self.memory.gather(address[own], width, count)
        else:
            rows = self.block if space == "shared" else self.threads
            values = banks.gather(rows[own], self.every(address)[own], width, count, self.slot[own],
                                  self.checks.uninitialised)
        if mask is None:
            return values
        out = [np.zeros(self.count, v.dtype) for v in values]
        for full, value in zip(out, values, strict=True):
            full[mask] = value
        return out

    def store(self, space: str, address: np.ndarray, values: Sequence[np.ndarray], width: int, mask: Mask) -> None:
        """Writes elements at each thread's address, for the threads of a mask."""
        for name, at, chosen in self.spaced(space, address, mask):
            own: np.ndarray | slice = slice(None) if chosen is None else chosen
            to, what = self.every(at)[own], [self.every(v)[own] for v in values]
            if name == "shared":
                self.shared.scatter(self.block[own], to, what, width, self.slot[own], self.checks.conflicts)
            elif name == "local":
                self.local.scatter(self.threads[own], to, what, width, self.slot[own], False)
            else:
                self.memory.scatter(to, what, width, self.checks.conflicts)

    def atomic(self, space: str, address: np.ndarray, kind: str, mask: Mask,
               update: Callable[..., np.ndarray], operands: Sequence[np.ndarray]) -> np.ndarray:
        """Updates the elements at each thread's address one thread after another; gives what was there before."""
        dtype = DTYPES[kind]
        result = np.zeros(self.count, dtype)
        for name, at, chosen in self.spaced(space, address, mask):
            left = np.arange(self.count) if chosen is None else np.flatnonzero(chosen)
            left, at = self.rng.permutation(left), self.every(at)
            inputs = [self.every(o) for o in operands]
            while len(left):
                rows = self.block[left] << 40 if name == "shared" else 0
                first = np.unique(at[left].astype(np.int64) + rows, return_index=True)[1]
                now = left[first]
                result[now] = self.updated(name, now, at[now], dtype, update, [i[now] for i in inputs])
                left = np.delete(left, first)
        return result

    def updated(self, space: str, threads: np.ndarray, address: np.ndarray, dtype: np.dtype,
                update: Callable[..., np.ndarray], operands: Sequence[np.ndarray]) -> np.ndarray:
        """Updates elements at addresses that differ."""
        width = dtype.itemsize
        if space == "shared":
            places, touched = self.shared.places(self.block[threads], address, width, 1)
            if self.checks.uninitialised and not self.shared.written[touched].all():
                raise PtxError("uninitialised", "shared memory is updated that was never written")
            old = self.shared.views[width][places].view(dtype)
            self.shared.views[width][places] = update(old, *operands).astype(dtype).view(f"u{width}")
            return old
        old = self.memory.gather(address, width, 1)[0].view(dtype)
        self.memory.scatter(address, [update(old, *operands).astype(dtype).view(f"u{width}")], width, False)
        return old


def _special(name: str, grid: Dim, block: Dim, within: np.ndarray, number: np.ndarray, dynamic: int) -> np.ndarray:
    """The value of a register that `SPECIAL` describes."""
    axis = {"x": 0, "y": 1, "z": 2}.get(name[-1], 0)
    strides = (1, block[0], block[0] * block[1]), (1, grid[0], grid[0] * grid[1])
    lane = within % WARP
    match name.removeprefix("%").split(".")[0]:
        case "tid":
            value = within // strides[0][axis] % block[axis]
        case "ctaid":
            value = number // strides[1][axis] % grid[axis]
        case "ntid":
            value = np.array([block[axis]])
        case "nctaid":
            value = np.array([grid[axis]])
        case "laneid":
            value = lane
        case "warpid":
            value = within // WARP
        case "nwarpid":
            value = np.array([-(-block[0] * block[1] * block[2] // WARP)])
        case "dynamic_smem_size":
            value = np.array([dynamic])
        case "lanemask_eq":
            value = 1 << lane
        case "lanemask_lt":
            value = (1 << lane) - 1
        case "lanemask_le":
            value = (2 << lane) - 1
        case "lanemask_gt":
            value = ~((2 << lane) - 1)
        case _:
            value = ~((1 << lane) - 1)
    value = value.astype(np.int64)
    return (value[:1] if (value == value[0]).all() else value).astype(np.uint32)
