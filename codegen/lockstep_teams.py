"""What threads of a team share while NumPy runs them in lockstep, and who may read and write it between barriers.

Threads of a GPU wait for one another only at barriers, so a thread must not read what another one has written since the
last barrier, nor write what another one has read or written. In lockstep that would go unnoticed: here it is found.
What a warp's tensor core does is here, too.
"""

from __future__ import annotations

import numpy as np

from .lockstep_memory import AddressSpace
from .statements import Pointer

__all__ = ["SharedMemory", "mma"]

_NOBODY, _SEVERAL = -1, -2


class SharedMemory:
    """One piece of shared memory, for each of the teams that run.

    Attributes:
        name: of its pointer.
        addresses: where it begins, for each thread.
    """

    def __init__(self, space: AddressSpace, pointer: Pointer, total: int, team: int) -> None:
        """Args:
            total: how many threads run, in teams of `team`.
        """
        self.name = pointer.name
        first = space.allocate(total // team, pointer.size, pointer.dtype)
        self.addresses = np.repeat(first, team)
        self.begin, self.piece = int(first[0]), int(space.number(first[:1])[0])
        count = len(space.pieces[-1])
        self.bytes = count // len(first)  # of a team
        self.readers, self.writers = (np.full(count, _NOBODY, np.int64) for _ in range(2))

    def settle(self, teams: np.ndarray) -> None:
        """A barrier, to which some teams have come."""
        for who in (self.readers, self.writers):
            who.reshape(-1, self.bytes)[teams] = _NOBODY

    def touch(self, addresses: np.ndarray, own: np.ndarray, writes: bool) -> bool:
        """Notes an access by each thread to those of its addresses that are in `own`, all of them in this piece of
        memory; whether threads that have not waited for one another meet there."""
        threads = np.arange(len(addresses))
        threads = np.broadcast_to(threads[:, None] if addresses.ndim == 2 else threads, addresses.shape)[own]
        places = addresses[own] - self.begin
        where = self.writers if writes else self.readers
        met = (self.writers[places] != _NOBODY) & (self.writers[places] != threads)
        if writes:
            met |= (self.readers[places] != _NOBODY) & (self.readers[places] != threads)
        before = where[places]
        now = np.where((before == _NOBODY) | (before == threads), threads, _SEVERAL)
        where[places] = now
        again = where[places] != now  # several in this access: the last one is noted
        where[places[again]] = _SEVERAL
        return bool(met.any()) or writes and bool(again.any())


def mma(of: str, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The fragments of z + x y, for every warp (`loop.TeamBuilder.mma`): in float64, rounded once."""
    left = x.reshape(-1, 8, 4, 2, 2).transpose(0, 4, 1, 3, 2).reshape(-1, 16, 8)  # (g, t, half of k, half of rows)
    right = y.reshape(-1, 8, 4, 2).transpose(0, 1, 3, 2).reshape(-1, 8, 8)  # a row for each column
    product = _numbers(of, left) @ _numbers(of, right).transpose(0, 2, 1)
    sums = product.reshape(-1, 2, 8, 4, 2).transpose(0, 2, 3, 1, 4).reshape(z.shape) + z
    return sums.astype(np.float32)


def _numbers(of: str, words: np.ndarray) -> np.ndarray:
    """What words of rows hold, along the rows."""
    words = np.ascontiguousarray(words.astype(np.uint32))
    if of == "tf32":
        return (words & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    halves = words.view(np.uint16)
    if of == "f16":
        return halves.view(np.float16).astype(np.float64)
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
