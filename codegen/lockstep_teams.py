"""What threads of a team share while NumPy runs them in lockstep, and who may read and write it between barriers.

Threads of a GPU wait for one another only at barriers, so a thread must not read what another one has written since the
last barrier, nor write what another one has read or written. In lockstep that would go unnoticed: here it is found.
"""

from __future__ import annotations

import numpy as np

from .lockstep_memory import AddressSpace
from .statements import Pointer

__all__ = ["SharedMemory"]

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
        self.space, self.name = space, pointer.name
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

    def touch(self, addresses: np.ndarray, touched: np.ndarray, size: int, writes: bool) -> bool:
        """Notes an access by each thread to `size` bytes at its addresses, where `touched`; whether threads that have
        not waited for one another meet there."""
        own = touched & (self.space.number(addresses) == self.piece)
        if not own.any():
            return False
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
