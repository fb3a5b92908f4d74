"""What a program's products read again and again, packed once: the weights of a model that is called often.

A product packs its right operand, panel by panel, in the order in which it is read (`codegen/gemm_pack.py`), and a call
packs anew what the one before had packed. So a `Keeper` looks now and then, by way of the calls that a program counts,
which of its inputs are the arrays that they were before. For these, the background plans the program once more and
packs what it needs of them. From then on calls run that code, as long as their inputs lie where they lay: a
`PackedOperands` refers to the arrays, whose memory nobody can change or use otherwise meanwhile (whoever overwrites
memory makes sure that nobody else refers to it). A call with another array ends it, and the program runs as it did;
after some time it is looked at again. Bits do not depend on who packs.

Packed operands take memory: at most `MOST_OF_PROGRAM` bytes of each program, and `MOST` of all, of which those made
first go first. `TWOFOLD_PACKED=0` turns it off.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from twofold.codegen import library
from twofold.codegen.operands import PackedInput
from twofold.ir.dims import Dim, DimLike

from . import locks, tiers
from .calls import address_of
from .description import Description
from .log import log
from .program_table import PACKED

__all__ = ["MOST", "MOST_OF_PROGRAM", "Keeper", "PackedOperands", "enabled"]

MOST_OF_PROGRAM, MOST = 256 << 20, 512 << 20  # bytes
_BUDGET = 1 << 31  # simple operations that calls do between two looks, some tenths of a second
_FEWEST, _MOST_VAIN = 4, 16  # calls between two looks, and looks in vain, that count
_LINE = 64
_numbers = itertools.count(1)


class PackedProgram(Protocol):
    """A compiled program (`compiled.py: Native`), as what is packed for it sees it."""

    about: Description
    words: int
    constants: list[int]
    charge: int

    def code(self, name: str) -> int:
        """The address of its function of this name."""

    def keep(self, kept: PackedOperands) -> None:
        """Has calls from now on read these."""

    def drop(self, kept: PackedOperands) -> None:
        """Has calls from now on do without these."""


#: makes the program that finds operands of the inputs with these numbers packed; None where it gains nothing
Make: TypeAlias = "Callable[[Sequence[int]], PackedProgram | None]"


def enabled() -> bool:
    """Whether anything is packed once: not with TWOFOLD_PACKED=0."""
    return os.environ.get("TWOFOLD_PACKED", "1") != "0"


class PackedOperands:
    """Packed operands, and the program that reads them.

    Attributes:
        program: the program; its buffers are inputs, outputs, and what `rest` has the addresses of.
        arrays: by the numbers of inputs, the arrays that they must be.
        words: what native code reads (`program_table.py: PACKED`).
        bytes: how much memory it takes.
    """

    __slots__ = ("program", "arrays", "rest", "words", "bytes", "_memory", "__weakref__")

    def __init__(self, program: PackedProgram, arrays: dict[int, np.ndarray]) -> None:
        self.program, self.arrays = program, arrays
        packings = program.about.packings
        sizes = [-(-packing.bytes // _LINE) * _LINE for packing in packings]
        self.bytes = sum(sizes)
        self._memory = np.empty(self.bytes + _LINE, np.uint8)
        at = -(-address_of(self._memory) // _LINE) * _LINE
        places = [at + sum(sizes[:n]) for n in range(len(sizes))]
        for packing, place in zip(packings, places, strict=True):
            _fill(packing, place, address_of(arrays[packing.input]) + packing.offset)
        self.rest = [*program.constants, *places]
        guards = [word for n, array in arrays.items() for word in (n, address_of(array))]
        head = dict.fromkeys(PACKED, 0)
        arena = program.about.arena
        head |= {"number": next(_numbers), "memory": id(self._memory), "words": program.words,
                 "entry": program.code("entry"), "plan": program.code("plan"),
                 "arena": 0 if isinstance(arena, Dim) else arena, "guards": len(arrays), "rest": len(self.rest)}
        words = [*[head[name] for name in PACKED], *guards, *self.rest]
        self.words = (ctypes.c_int64 * len(words))(*words)

    def serves(self, arrays: Sequence[np.ndarray]) -> bool:
        """Whether a call with these inputs may read it."""
        return all(arrays[n] is array for n, array in self.arrays.items())


def _fill(packing: PackedInput, place: int, source: int) -> None:
    """Packs what lies at an address."""
    words = [place, *[source] * packing.addresses, *packing.integers]
    kernel = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    args = (ctypes.c_int64 * len(words))(*words)
    kernel(library.address(packing.kernel.key, settled=True))(0, packing.total, ctypes.addressof(args))


class Keeper:
    """Finds out which inputs of a program stay the same, and has what products need of them packed.

    Args:
        program: the program.
        make: see `Make`.
    """

    __slots__ = ("_program", "_make", "_seen", "_made", "_asked", "_vain")

    def __init__(self, program: PackedProgram, make: Make) -> None:
        self._program, self._make = weakref.ref(program), make
        self._seen: dict[int, weakref.ref[np.ndarray]] = {}
        self._made: dict[tuple[int, ...], PackedProgram | None] = {}
        self._asked = False  # whether the background is at it
        self._vain = 0  # how often there was nothing to gain, one time after another

    def budget(self) -> int:
        """What calls of the program count until the next look: twice as much after each in vain, since such a call goes
        by way of Python."""
        program = self._program()
        return tiers.NEVER if program is None else min(_budget(program.charge, program.about.work) << self._vain,
                                                       tiers.NEVER)

    def look(self, arrays: Sequence[np.ndarray]) -> None:
        """Looks at the inputs of a call; those that are what they were when it looked before stay the same."""
        program = self._program()
        if program is None or self._asked:
            return
        worth = program.about.worth_packing
        seen, self._seen = self._seen, {n: weakref.ref(arrays[n]) for n in worth}
        same = {n: arrays[n] for n in worth if n in seen and seen[n]() is arrays[n]}
        while sum(array.nbytes for array in same.values()) > MOST_OF_PROGRAM:
            same.popitem()
        gains = bool(same) and self._made.get(tuple(same), program) is not None
        if seen:
            self._vain = 0 if gains else min(self._vain + 1, _MOST_VAIN)
        if gains:
            self._asked = True
            tiers.request(lambda: self._keep(same))

    def _keep(self, arrays: dict[int, np.ndarray]) -> None:
        """Packs what is worth it of these inputs, and has the program run so."""
        try:
            key = tuple(arrays)
            if key not in self._made:
                self._made[key] = None  # where it fails now, it would fail again
                self._made[key] = self._make(key)
            better, program = self._made[key], self._program()
            if better is not None and program is not None:
                read = {packing.input for packing in better.about.packings}
                kept = PackedOperands(better, {n: array for n, array in arrays.items() if n in read})
                _note(program, kept)
                program.keep(kept)
        except Exception as error:  # noqa: BLE001 - the program has code, which it keeps
            log("cache", f"nothing packed: {type(error).__name__}: {error}")
        finally:
            self._asked, self._seen = False, {}


def _budget(charge: int, work: DimLike) -> int:
    """What calls of a program count between two looks, where one counts `charge`; see `tiers.charge`."""
    if charge < 0 or isinstance(work, Dim):
        return _BUDGET
    return max(_FEWEST, -(-_BUDGET // max(work, 1))) * charge


_all: list[tuple[weakref.ref[PackedProgram], weakref.ref[PackedOperands]]] = []  # in the order in which they were made
_noting = locks.Lock()


def _note(program: PackedProgram, kept: PackedOperands) -> None:
    """Notes what a program is about to keep; others give up theirs where it would be too much."""
    with _noting:
        alive = [(of, one) for of, one in _all if of() is not None and one() is not None]
        total = kept.bytes + sum(one.bytes for _, ref in alive if (one := ref()) is not None)
        while alive and total > MOST:
            of, ref = alive.pop(0)
            owner, one = of(), ref()
            if owner is not None and one is not None:
                total -= one.bytes
                owner.drop(one)
        _all[:] = [*alive, (weakref.ref(program), weakref.ref(kept))]
