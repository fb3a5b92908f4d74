"""Memory of the machine that runs PTX: bytes behind addresses, which are numbers that are no addresses of the host.

`Memory` is what all threads share: pieces that are allocated and freed. No address is given twice, so the use of freed
memory is always seen. `Banks` is memory of which each block (shared) or thread (local) has a part of its own; it knows
what was written, and for shared memory which accesses no barrier separates.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from types import EllipsisType

import numpy as np

from .ptx_text import PtxError

__all__ = ["FIRST", "Allocation", "Banks", "Memory", "device_of", "garbage"]

FIRST = 1 << 56  # no address of a process: the processor refuses it
_DEVICE = 48  # bits of the range of one device
_ALIGNMENT = 256
_APART = 4096  # bytes between pieces, so that what runs over one does not reach the next
# Who touched shared memory since the last barrier, if not a thread by its number: nobody, threads of several warps,
# several threads of a warp, or a warp whose threads have met since.
_NONE, _MANY, _SOME, _WARP = -1, -2, 1 << 29, 1 << 30


def garbage(size: int) -> np.ndarray:
    """What new memory holds: bytes that are NaN in every type of floats, at a multiple of 16 bytes' length."""
    return np.full(-(-max(size, 1) // 16) * 8, 0x7FFB, np.uint16).view(np.uint8)


def device_of(address: int) -> int:
    """The number of the device that an address belongs to; negative where it is none of a device."""
    return (address - FIRST) >> _DEVICE


class Allocation:
    """A piece of memory; one that is not `born` is promised, and the streams have not come to it yet."""

    def __init__(self, start: int, size: int, name: str) -> None:
        self.start, self.size, self.name, self.data, self.freed = start, size, name, garbage(size), False
        self.born = True
        self.views = {width: self.data.view(f"u{width}") for width in (1, 2, 4, 8)}

    def __str__(self) -> str:
        return f"{self.name} of {self.size} bytes at {self.start:#x}"


class Memory:
    """Pieces of memory, by address."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.pieces: list[Allocation] = []
        self.next: dict[int, int] = defaultdict(int)  # by device
        self.reachable: set[int] | None = None  # devices whose memory may be used now; None: all

    def allocate(self, size: int, name: str = "memory", data: bytes = b"", device: int = 0) -> int:
        """The address of new memory of a device, which holds garbage or `data`."""
        piece = Allocation(FIRST + (device << _DEVICE) + self.next[device], size, name)
        self.next[device] += -(-(size + _APART) // _ALIGNMENT) * _ALIGNMENT
        piece.data[:len(data)] = np.frombuffer(data, np.uint8)
        number = bisect_right(self.starts, piece.start)
        self.starts.insert(number, piece.start)
        self.pieces.insert(number, piece)
        return piece.start

    def free(self, address: int) -> Allocation:
        """Ends the use of a piece; its bytes are gone.

        Raises:
            PtxError: there is none at the address, or no longer.
        """
        piece = self.piece(address)
        if piece.start != address:
            raise PtxError("illegal address", f"{address:#x} lies inside of {piece} and is not its beginning")
        piece.freed, piece.data, piece.views = True, np.empty(0, np.uint8), {}
        return piece

    def known(self, address: int) -> Allocation:
        """What lies at an address, or will.

        Raises:
            PtxError: nothing, or freed memory.
        """
        number = bisect_right(self.starts, address) - 1
        found = self.pieces[number] if number >= 0 else None
        if found is None or address >= found.start + max(found.size, 1):
            near = f", {address - found.start - found.size} bytes behind {found}" if found is not None else ""
            raise PtxError("illegal address", f"{address:#x} is no memory{near}")
        if found.freed:
            raise PtxError("freed memory", f"{address:#x} is {found}, which was freed")
        return found

    def piece(self, address: int) -> Allocation:
        """What lies at an address, and may be used.

        Raises:
            PtxError: nothing, or what is freed, not allocated yet, or another device's.
        """
        found = self.known(address)
        if not found.born:
            raise PtxError("freed memory", f"{address:#x} is {found}, which is not allocated yet in the order of the "
                           "streams")
        if self.reachable is not None and device_of(address) not in self.reachable:
            raise PtxError("illegal address", f"{address:#x} is {found} of another device")
        return found

    def bytes(self, address: int, size: int) -> np.ndarray:
        """The bytes of a range, which may be written.

        Raises:
            PtxError: the range is not within one piece.
        """
        if not size:
            return np.empty(0, np.uint8)
        piece = self.piece(address)
        at = address - piece.start
        if at + size > piece.size:
            raise PtxError("illegal address", f"{size} bytes at {address:#x} run over the end of {piece}")
        return piece.data[at:at + size]

    def parts(self, addresses: np.ndarray, width: int,
              count: int = 1) -> Iterator[tuple[np.ndarray | EllipsisType, np.ndarray, np.ndarray, Allocation]]:
        """For each piece that addresses lie in: which do, its elements, their numbers, and the piece itself."""
        _aligned(addresses, width * count)
        rest = None
        while rest is None or rest.any():
            own = addresses if rest is None else addresses[rest]
            piece = self.piece(int(own[0]))
            low, high = np.uint64(piece.start), piece.start + piece.size - width * count
            if int(own.min()) >= piece.start and int(own.max()) <= high:
                here = ... if rest is None else rest
                yield here, piece.views[width], ((own - low) // np.uint64(width)).view(np.int64), piece
                return
            if int(own[0]) > high:
                raise PtxError("illegal address", f"{width * count} bytes at {int(own[0]):#x} run over the end of "
                               f"{piece}")
            rest = np.ones(len(addresses), bool) if rest is None else rest
            chosen = rest & (addresses >= low) & (addresses <= np.uint64(high))
            yield chosen, piece.views[width], ((addresses[chosen] - low) // np.uint64(width)).view(np.int64), piece
            rest = rest & ~chosen

    def gather(self, addresses: np.ndarray, width: int, count: int) -> list[np.ndarray]:
        """`count` neighbouring elements at each address."""
        out = [np.empty(len(addresses), f"u{width}") for _ in range(count)]
        for chosen, elements, places, _ in self.parts(addresses, width, count):
            for n in range(count):
                out[n][chosen] = elements[places + n] if n else elements[places]
        return out

    def scatter(self, addresses: np.ndarray, values: Sequence[np.ndarray], width: int, conflicts: bool) -> None:
        """Writes neighbouring elements at each address.

        Raises:
            PtxError: two threads write different values to one address, if that is asked for.
        """
        for chosen, elements, places, piece in self.parts(addresses, width, len(values)):
            for n, value in enumerate(values):
                own, at = value[chosen], places + n
                elements[at] = own
                if conflicts and (elements[at] != own).any():
                    raise PtxError("race", f"threads write different values to one address of {piece} at once")


class Banks:
    """Memory in rows: of blocks, or of threads. It is watched in grains of so many bytes."""

    def __init__(self, name: str, rows: int, size: int, grain: int, races: bool) -> None:
        self.name, self.size, self.grain, self.stride = name, size, grain, -(-max(size, 1) // 16) * 16
        self.data = np.tile(garbage(size), rows)
        self.views = {width: self.data.view(f"u{width}") for width in (1, 2, 4, 8)}
        grains = rows * self.stride // grain
        self.written = np.zeros(grains, bool)
        self.writer = np.full(grains, _NONE, np.int32) if races else None
        self.reader = np.full(grains, _NONE, np.int32) if races else None

    def places(self, rows: np.ndarray, offsets: np.ndarray, width: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the elements at some offsets of rows, and those of the grains that each touches."""
        _aligned(offsets, width * count)
        if int(offsets.max()) + width * count > self.size:
            raise PtxError("illegal address", f"{width * count} bytes at {int(offsets.max()):#x} of {self.size} bytes "
                           f"of {self.name} memory")
        first = rows * self.stride + offsets.astype(np.int64)
        touched = first[:, None] // self.grain
        grains = width * count // self.grain
        return first // width, touched + np.arange(grains) if grains > 1 else touched

    def gather(self, rows: np.ndarray, offsets: np.ndarray, width: int, count: int, threads: np.ndarray,
               uninitialised: bool) -> list[np.ndarray]:
        """As `Memory.gather`; tells of what was never written, and of what others write."""
        places, touched = self.places(rows, offsets, width, count)
        if uninitialised and not self.written.take(touched).all():
            bad = int(offsets[~self.written[touched].all(1)][0])
            raise PtxError("uninitialised", f"{self.name} memory at {bad:#x} is read, and was never written")
        if self.writer is not None:
            own = threads.astype(np.int32)[:, None]
            self.alone(self.writer, touched, own, "reads what another wrote")
            self.note_readers(touched, own)
        return [self.views[width].take(places + n if n else places) for n in range(count)]

    def scatter(self, rows: np.ndarray, offsets: np.ndarray, values: Sequence[np.ndarray], width: int,
                threads: np.ndarray, conflicts: bool) -> None:
        """As `Memory.scatter`; tells of what others read or write."""
        places, touched = self.places(rows, offsets, width, len(values))
        if self.writer is not None and self.reader is not None:
            own = threads.astype(np.int32)[:, None]
            self.alone(self.writer, touched, own, "writes where another wrote")
            self.alone(self.reader, touched, own, "writes what another read")
            self.writer[touched] = own
        elements = self.views[width]
        for n, value in enumerate(values):
            at = places + n if n else places
            elements[at] = value
            if conflicts and (elements.take(at) != value).any():
                raise PtxError("race", f"threads write different values to one address of {self.name} memory at once")
        self.written[touched] = True

    def note_readers(self, touched: np.ndarray, threads: np.ndarray) -> None:
        """Keeps who reads: a thread, or that there are several."""
        table, own = self.reader, np.broadcast_to(threads, touched.shape)
        assert table is not None
        before = table.take(touched)
        if (before == _NONE).all():
            now = own
        else:
            news = (before != _MANY) & (before != own)
            if not news.any():
                return
            touched, own, before = touched[news], own[news], before[news]
            warp = own // 32
            alone = (before == _NONE) | (before == _WARP | warp)
            now = np.where(alone, own, np.where(_warps(before) == warp, _SOME | warp, _MANY))
        table[touched] = now
        after = table.take(touched)
        lost = after != now  # to others of this instruction
        if lost.any():
            touched, warp = touched[lost], own[lost] // 32
            some = _SOME | warp
            table[touched] = np.where(_warps(after[lost]) == warp, some, _MANY)
            table[touched[table.take(touched) != some]] = _MANY

    def alone(self, table: np.ndarray, touched: np.ndarray, threads: np.ndarray, what: str) -> None:
        """Raises where somebody else touched memory since the last barrier."""
        who = table.take(touched)
        used = who != _NONE
        if not used.any():
            return
        others = used & (who != threads) & (who != (_WARP | threads // 32))
        if others.any():
            at = np.argwhere(others)[0]
            offset = int(touched[tuple(at)]) * self.grain % self.stride
            raise PtxError("race", f"thread {int(threads[at[0], 0])} {what} without a barrier between, at {offset:#x} "
                           f"of {self.name} memory")

    def barrier(self, rows: np.ndarray | None) -> None:
        """All threads of some blocks (all of them: None) have met."""
        for table in (self.writer, self.reader):
            if table is not None:
                table.reshape(-1, self.stride // self.grain)[... if rows is None else rows] = _NONE

    def warp_barrier(self, warps: np.ndarray) -> None:
        """The threads of some warps have met: what one did is no longer apart from what the others do."""
        for table in (self.writer, self.reader):
            if table is not None:
                own = (table != _NONE) & (table != _MANY) & np.isin(_warps(table), warps)
                table[own] = _WARP | _warps(table[own])


def _warps(who: np.ndarray) -> np.ndarray:
    """The warp of those who touched memory; -1 where they are of several, or nobody."""
    return np.where(who >= _SOME, who & _SOME - 1, np.where(who < 0, -1, who // 32))


def _aligned(addresses: np.ndarray, size: int) -> None:
    """Raises where an address is no multiple of the size of what lies there."""
    if (addresses & np.uint64(size - 1)).any():
        bad = int(addresses[(addresses & np.uint64(size - 1)) != 0][0])
        raise PtxError("misaligned address", f"{size} bytes at {bad:#x}")
