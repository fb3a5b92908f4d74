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
        self.begin = int(first[0])
        count = len(space.pieces[-1])
        self.bytes = count // len(first)  # of a team
        self.readers, self.writers = (np.full(count, _NOBODY, np.int64) for _ in range(2))
        self.end, self.threads = self.begin + count, np.arange(total)

    def settle(self, teams: np.ndarray) -> None:
        """A barrier, to which some teams have come."""
        for who in (self.readers, self.writers):
            who.reshape(-1, self.bytes)[teams] = _NOBODY

    def touch(self, addresses: np.ndarray, touched: np.ndarray | None, writes: bool) -> bool:
        """Notes an access to addresses, of which those in this piece of memory count; whether threads that have not
        waited for one another meet there.

        Args:
            touched: where the addresses are among those of all threads; None where there is one row of them for each.
        """
        places, threads = addresses - self.begin, self.threads
        inside = (places >= 0) & (addresses < self.end)
        count = np.count_nonzero(inside)
        if not count:
            return False
        if touched is not None or addresses.ndim == 2:
            shape = addresses.shape if touched is None else touched.shape
            threads = np.broadcast_to(threads[:, None] if len(shape) == 2 else threads, shape)
            threads = threads if touched is None else threads[touched]
        if count != inside.size:
            places, threads = places[inside], threads[inside]
        return self.note(places, threads, writes)

    def note(self, places: np.ndarray, threads: np.ndarray, writes: bool) -> bool:
        """Notes an access by threads to bytes of this piece; whether it meets another one."""
        where = self.writers if writes else self.readers
        before = where[places]
        theirs = (before == _NOBODY) | (before == threads)
        wrote = before if writes else self.writers[places]
        met = np.count_nonzero(~theirs if writes else (wrote != _NOBODY) & (wrote != threads))
        if writes:
            read = self.readers[places]
            met += np.count_nonzero((read != _NOBODY) & (read != threads))
        now = np.where(theirs, threads, _SEVERAL)
        where[places] = now
        again = where[places] != now  # several in this access: the last one is noted
        several = np.count_nonzero(again)
        if several:
            where[places[again]] = _SEVERAL
        return bool(met or writes and several)


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
