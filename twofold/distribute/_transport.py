"""How the processes of a program exchange tensors: by MPI, in one order of additions.

A `Group` is what processes share who run one program. Sums are taken in the order of the replicas' numbers, whatever
the transport and the number of processes, so that they have the same bits each time. Where a pack is large, each
process gets its part of all packs, sums that, and gives the result to all: every byte is sent twice, as in a ring (R.
Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", 2005). What is
summed and when is `_collective.py`'s.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from twofold._front.together import locks

from . import _connecting as connecting

__all__ = ["PATIENCE", "SMALL", "SOON", "Group", "MpiGroup", "Turns", "alone", "give_way", "world"]

SMALL = 1 << 15  # bytes of a pack that each process gets from all others: one exchange is quicker than two
SOON = 100  # looks, of a microsecond or less each where nobody else wants the processor
give_way: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))
PATIENCE = 1e-4  # seconds between looks whether others have come, where the processor has other work: at least
LONG = 0.01  # seconds after which it counts as having some: who has not come by then may be compiling, on it, too

Add = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Group:
    """The processes of a program: here, one.

    Attributes:
        rank: the number of this process, from 0.
        size: how many there are.
        launched: whether a launcher has started them, which knows them.
        concurrent: whether a thread may make exchanges while others are at work.
    """

    rank, size, launched = 0, 1, False
    concurrent = False

    def sum(self, rows: np.ndarray, add: Add) -> np.ndarray:
        """The sum of the rows of all processes, those of the first process first.

        Args:
            rows: C-contiguous, a row for each replica of this process, as many in each.
            add: adds two arrays.
        """
        return functools.reduce(add, rows)

    def gather(self, value: np.ndarray) -> list[np.ndarray]:
        """The arrays of all processes, of one dtype and rank, in the order of their numbers."""
        return [value]

    def broadcast(self, value: Any) -> Any:
        """What the first process has, an array or anything that pickles between the program's own processes."""
        return value

    def marks(self, mark: bytes, is_urgent: Callable[[], bool]) -> list[bytes]:
        """The marks of all processes, of one length, when all have come here.

        Args:
            is_urgent: whether nobody has a better use for the processor than waiting for the others, for a while.
        """
        return [mark]

    def texts(self, text: str) -> list[str]:
        """The texts of all processes."""
        return [text]


alone = Group()


class MpiGroup(Group):
    """The processes of an MPI communicator.

    Args:
        communicator: of `mpi4py.MPI`.
        members: the processes, as this one is told of them.
        launched: see `Group`.
    """

    def __init__(self, communicator: Any, members: connecting.Members | None = None, launched: bool = True) -> None:
        self._comm, self._members = communicator.Dup(), members
        self.rank, self.size = communicator.Get_rank(), communicator.Get_size()
        self._lock, self.launched = Turns(), launched
        if members is not None:
            members.exchange = self._lock.current
        self.concurrent = _takes_threads()

    def sum(self, rows: np.ndarray, add: Add) -> np.ndarray:
        with self._lock:
            return self._all(rows, add) if rows.nbytes <= SMALL or self.size == 1 else self._in_parts(rows, add)

    def _all(self, rows: np.ndarray, add: Add) -> np.ndarray:
        """The sum, of which each process adds all up."""
        from mpi4py import MPI
        everything = np.empty((self.size, *rows.shape), rows.dtype)
        _finish(self._comm.Iallgather([_bytes(rows), MPI.BYTE], [_bytes(everything), MPI.BYTE]))
        return functools.reduce(add, everything.reshape(self.size * rows.shape[0], rows.shape[1]))

    def _in_parts(self, rows: np.ndarray, add: Add) -> np.ndarray:
        """The sum, of which each process adds a part up."""
        from mpi4py import MPI
        local, length = rows.shape
        bounds = [length * n // self.size for n in range(self.size + 1)]
        parts = [rows[:, a:b] for a, b in zip(bounds, bounds[1:], strict=False)]
        sent = _bytes(rows) if local == 1 else np.concatenate([_bytes(np.ascontiguousarray(p)) for p in parts])
        own = bounds[self.rank + 1] - bounds[self.rank]
        received = np.empty((self.size, local, own), rows.dtype)
        _finish(self._comm.Ialltoallv([sent, [part.nbytes for part in parts], MPI.BYTE],
                                      [_bytes(received), [received[0].nbytes] * self.size, MPI.BYTE]))
        total = functools.reduce(add, received.reshape(self.size * local, own))
        out = np.empty(length, rows.dtype)
        counts = [(b - a) * rows.itemsize for a, b in zip(bounds, bounds[1:], strict=False)]
        _finish(self._comm.Iallgatherv([_bytes(total), MPI.BYTE], [_bytes(out), counts, MPI.BYTE]))
        return out

    def gather(self, value: np.ndarray) -> list[np.ndarray]:
        from mpi4py import MPI
        with self._lock:
            shapes = self._comm.allgather(value.shape)
            arrays = [np.empty(shape, value.dtype) for shape in shapes]
            counts = [array.nbytes for array in arrays]
            flat = np.empty(sum(counts), np.uint8)
            self._comm.Allgatherv([_bytes(np.ascontiguousarray(value)), MPI.BYTE], [flat, counts, MPI.BYTE])
            ends = np.cumsum(counts)
            return [flat[end - count:end].view(value.dtype).reshape(shape)
                    for end, count, shape in zip(ends, counts, shapes, strict=True)]

    def broadcast(self, value: Any) -> Any:
        from mpi4py import MPI
        with self._lock:
            if not isinstance(value, np.ndarray) or value.dtype.hasobject:
                return self._comm.bcast(value)
            out = np.array(value, order="C")
            self._comm.Bcast([_bytes(out), MPI.BYTE])
            return out

    def marks(self, mark: bytes, is_urgent: Callable[[], bool]) -> list[bytes]:
        from mpi4py import MPI
        everybodys = np.empty((self.size, len(mark)), np.uint8)
        with self._lock:
            _finish(self._comm.Iallgather([np.frombuffer(mark, np.uint8), MPI.BYTE], [everybodys, MPI.BYTE]),
                    is_urgent)
        return [row.tobytes() for row in everybodys]

    def texts(self, text: str) -> list[str]:
        with self._lock:
            texts: list[str] = self._comm.allgather(text)
            return texts

    def end_job(self, error: BaseException) -> None:
        """Ends all processes at once, for an error of this one."""
        if self._members is not None:
            self._members.fail(error)
        if self.launched:
            self._comm.Abort(1)
        connecting.give_up()


class Turns:
    """A lock that exchanges take one after another, and that tells which is in progress."""

    def __init__(self) -> None:
        self._lock = locks.RLock()
        self._number = self._depth = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._number += 1
        self._depth += 1

    def __exit__(self, *exc: object) -> None:
        self._depth -= 1
        self._lock.release()

    def current(self) -> int | None:
        """The number of the exchange in progress; None where there is none."""
        return self._number if self._depth else None


def _finish(request: Any, is_urgent: Callable[[], bool] | None = None) -> None:
    """Waits for others without keeping a processor from those who have work, as MPI's own calls do.

    Args:
        is_urgent: whether it is worth a processor that nobody else wants; else, and where it takes long, it is looked
            after now and then. None where all are there, and what is exchanged only moves while somebody looks.
    """
    looks, began = 0, time.monotonic()
    while not request.Test():
        looks += 1
        waited = time.monotonic() - began
        if looks < SOON or is_urgent is None or waited < LONG and is_urgent():
            give_way()
        else:
            time.sleep(min(max(PATIENCE, waited / 100), 10 * PATIENCE))


def _takes_threads() -> bool:
    """Whether MPI was started so that other threads than the main one may call it."""
    from mpi4py import MPI
    return bool(MPI.Query_thread() >= MPI.THREAD_SERIALIZED)


def _bytes(array: np.ndarray) -> np.ndarray:
    """The memory of a C-contiguous array, as MPI takes it whatever the dtype."""
    return array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)


def world(resolver: Any, patience: float | None = None) -> Group:
    """All processes of this program: those that `mpiexec` has started, or that a resolver names; or this one alone.

    An error that ends one of them ends all: the others would wait for it.

    Args:
        resolver: a `tf.distribute.cluster_resolver.ClusterResolver`, which counts where no launcher of MPI's does.
        patience: seconds to wait for the others; None for the usual.
    Raises:
        ImportError: there is no mpi4py.
        OpError: not all processes come, or not as one program.
        ValueError: the cluster is none.
    """
    with _making:
        if not _made:
            group = _world(connecting.cluster_of(resolver), patience)
            if group is alone:
                return alone
            _made.append(group)
        return _made[0]


def _world(cluster: connecting.Cluster | None, patience: float | None) -> Group:
    try:
        members = None if cluster is None else connecting.connect(cluster, patience)
        from mpi4py import MPI
    except ImportError as error:
        raise ImportError("Programs of several processes need mpi4py, and an MPI library: pip install 'twofold[mpi]'."
                          ) from error
    if MPI.COMM_WORLD.Get_size() == 1:
        return alone
    group = MpiGroup(MPI.COMM_WORLD, members or connecting.look_after(MPI), members is None)
    _end_all_on_errors(group)
    return group


_made: list[Group] = []
_making = locks.RLock()


def _end_all_on_errors(group: MpiGroup) -> None:
    """Has an error that nobody catches end the job, after it was shown with the number of its process."""
    before = sys.excepthook

    def ended(kind: Any, error: Any, trace: Any) -> None:
        try:
            before(kind, error, trace)
            sys.stderr.write(f"twofold: process {group.rank} of {group.size} ended with the error above, and with it "
                             "the job.\n")
            sys.stderr.flush()
        finally:
            group.end_job(error)
    sys.excepthook = ended
