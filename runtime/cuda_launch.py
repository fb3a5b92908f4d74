"""Handing work in to a GPU natively: kernels, copies and fills that follow one another, by one call of machine code;
and reading what they have left.

What is handed in stands in rows of words, which are written once (`LaunchRows`): a call fills in where its memory lies,
from the addresses of its buffers. What the rows do, and in which order, is the affair of `cuda_program.py`.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from twofold.ir.errors import OpError

from . import machine
from .cuda_driver import Driver

if TYPE_CHECKING:
    from llvmlite import ir

    from .emit import Code

__all__ = ["Launcher", "LaunchRows", "LaunchWord", "RowError", "copy_row", "fill_row", "kernel_row"]

# The words of a launcher's head: functions of the driver's, and what they are always given.
_HEAD = ["cuCtxSetCurrent", "context", "cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async", "cuGraphLaunch",
         "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"]
_AT = {name: 8 * n for n, name in enumerate(_HEAD)}
_KERNEL, _COPY, _FILL = range(3)
# The words of a row: its kind, a kernel's handle or a number of bytes, blocks and threads, and how many words follow;
# each of these as two: the number of a buffer, or -1, and what its address is added to.
_ROW = ["kind", "what", "grid", "block", "count"]
_MOST = 1024  # words of a row: kernels have no more than 4 KiB of arguments
_FAILED = 32  # bits of the status of a function of the driver's; the number of the row stands above
_NAMES = {_KERNEL: "cuLaunchKernel", _COPY: "cuMemcpyDtoDAsync_v2", _FILL: "cuMemsetD8Async"}


class LaunchWord(NamedTuple):
    """An argument: a number, added to the address of a buffer where one is given."""

    value: int
    buffer: int = -1


def kernel_row(handle: int, grid: int, block: int, words: Sequence[LaunchWord]) -> list[int]:
    """The launch of a kernel with these arguments."""
    return _row(_KERNEL, handle, grid, block, words)


def copy_row(to: LaunchWord, source: LaunchWord, size: int) -> list[int]:
    """A copy of so many bytes on the GPU."""
    return _row(_COPY, size, 0, 0, [to, source])


def fill_row(to: LaunchWord, size: int) -> list[int]:
    """Sets so many bytes to 0xFF."""
    return _row(_FILL, size, 0, 0, [to])


def _row(kind: int, what: int, grid: int, block: int, words: Sequence[LaunchWord]) -> list[int]:
    assert len(words) <= _MOST
    return [kind, what, grid, block, len(words), *[n for word in words for n in (word.buffer, word.value)]]


class LaunchRows:
    """What is handed in, one after another."""

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self._words = [array("q", row) for row in rows]
        self.kinds = [row[0] for row in rows]
        self._table = array("Q", [words.buffer_info()[0] for words in self._words])
        self.address, self.count = self._table.buffer_info()


class RowError(Exception):
    """The driver refuses row number `row`; `error` is what users see where nobody knows more."""

    def __init__(self, row: int, error: OpError) -> None:
        super().__init__(row, error)
        self.row, self.error = row, error

    def __str__(self) -> str:
        return str(self.error)


class Launcher:
    """Hands rows and graphs in to one GPU."""

    def __init__(self, driver: Driver, context: ctypes.c_void_p) -> None:
        functions = machine.load("cuda_launch", _build, ("cuda_launch.py",))
        words = {name: context.value if name == "context" else driver.address(name) for name in _HEAD}
        self._driver, self._words = driver, array("Q", [words[name] or 0 for name in _HEAD])
        self._head = self._words.buffer_info()[0]
        self._rows = _callable(functions["hand_in"], 5)
        self._graph = _callable(functions["launch"], 3)
        self._read = _callable(functions["read"], 5)

    def hand_in(self, rows: LaunchRows, buffers: array[int], stream: ctypes.c_void_p, only: int | None = None) -> None:
        """Hands rows in to a stream.

        Args:
            buffers: their addresses.
            only: the number of the one row that is handed in; all by default.
        Raises:
            RowError: the driver refuses one.
            FailedPreconditionError: this process was forked.
        """
        if self._driver.lost:
            raise self._driver.forked()
        first, count = (0, rows.count) if only is None else (only, 1)
        failed = self._rows(self._head, rows.address + 8 * first, count, buffers.buffer_info()[0], stream.value or 0)
        if failed:
            number = first + (failed >> _FAILED)
            raise RowError(number, self._error(_NAMES[rows.kinds[number]], failed))

    def launch(self, graph: int, stream: ctypes.c_void_p) -> None:
        """Has a stream run a graph.

        Raises:
            OpError: the driver refuses it.
        """
        if self._driver.lost:
            raise self._driver.forked()
        failed = self._graph(self._head, graph, stream.value or 0)
        if failed:
            raise self._error("cuGraphLaunch", failed)

    def read(self, places: array[int], to: int, stream: ctypes.c_void_p) -> None:
        """Copies what lies in some places to pinned memory, one after another, after all that a stream was given.

        Args:
            places: for each its address, and how many bytes.
            to: the address.
        Raises:
            OpError: something has failed.
        """
        if self._driver.lost:
            raise self._driver.forked()
        address, count = places.buffer_info()
        failed = self._read(self._head, address, count // 2, to, stream.value or 0)
        if failed:
            raise self._error("cuStreamSynchronize" if failed >> _FAILED else "cuMemcpyDtoHAsync_v2", failed)

    def _error(self, name: str, failed: int) -> OpError:
        return self._driver.error(name, failed & (1 << _FAILED) - 1)


def _callable(address: int, count: int) -> Callable[..., int]:
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * count)(address)


def _build() -> ir.Module:
    from .emit import new_module

    return new_module("cuda_launch", _write_hand_in, _write_launch, _write_read)


def _write_hand_in(module: ir.Module) -> None:
    """`hand_in(head, rows, count, buffers, stream)`: 0, or the status of what failed and the number of the row."""
    from .emit import Code, i32, i64, ptr

    c = Code(module, "hand_in", i64, [ptr, ptr, i64, ptr, ptr])
    head, rows, count, buffers, stream = c.fn.args
    words, pointers = c.room(i64, i64(_MOST)), c.room(i64, i64(_MOST))
    _make_current(c, head)

    def row(number: ir.Value) -> None:
        at = c.get(rows, c.mul(number, i64(8)))
        kind, what, grid, block, length = (c.get(at, 8 * n, i64) for n in range(len(_ROW)))

        def fill(n: ir.Value) -> None:
            given = c.at(at, c.add(i64(8 * len(_ROW)), c.mul(n, i64(16))))
            buffer, value = c.get(given, 0, i64), c.get(given, 8, i64)
            has_one = c.icmp_signed(">=", buffer, i64(0))
            known = c.load(c.word(buffers, c.select(has_one, buffer, i64(0))), typ=i64)
            place = c.word(words, n)
            c.store(c.add(value, c.select(has_one, known, i64(0))), place)
            c.store(c.ptrtoint(place, i64), c.word(pointers, n))
        c.each(length, fill)
        first, second = c.get(words, 0, i64), c.get(words, 8, i64)
        with c.if_then(c.same(kind, i64(_KERNEL))):
            one, none = i32(1), ptr(None)
            _ask(c, head, number, "cuLaunchKernel", c.inttoptr(what, ptr), c.trunc(grid, i32), one, one,
                 c.trunc(block, i32), one, one, i32(0), stream, pointers, none)
        with c.if_then(c.same(kind, i64(_COPY))):
            _ask(c, head, number, "cuMemcpyDtoDAsync_v2", first, second, what, stream)
        with c.if_then(c.same(kind, i64(_FILL))):
            _ask(c, head, number, "cuMemsetD8Async", first, i32(0xFF), what, stream)
    c.each(count, row)
    c.ret(i64(0))


def _write_launch(module: ir.Module) -> None:
    """`launch(head, graph, stream)`: the status."""
    from .emit import Code, i64, ptr

    c = Code(module, "launch", i64, [ptr, ptr, ptr])
    head, graph, stream = c.fn.args
    _make_current(c, head)
    _ask(c, head, i64(0), "cuGraphLaunch", graph, stream)
    c.ret(i64(0))


def _write_read(module: ir.Module) -> None:
    """`read(head, places, count, to, stream)`: the status, and 1 above it if it is that of waiting."""
    from .emit import Code, i64, ptr

    c = Code(module, "read", i64, [ptr, ptr, i64, ptr, ptr])
    head, places, count, to, stream = c.fn.args
    _make_current(c, head)
    at = c.room(ptr)
    c.store(to, at)

    def copy(n: ir.Value) -> None:
        place, here = c.at(places, c.mul(n, i64(16))), c.load(at, typ=ptr)
        size = c.get(place, 8, i64)
        _ask(c, head, i64(0), "cuMemcpyDtoHAsync_v2", here, c.get(place, 0, i64), size, stream)
        c.store(c.at(here, size), at)
    c.each(count, copy)
    _ask(c, head, i64(1), "cuStreamSynchronize", stream)
    c.ret(i64(0))


def _make_current(c: Code, head: ir.Value) -> None:
    """Has the driver's calls of this thread be about the GPU of a head."""
    from .emit import i64

    _ask(c, head, i64(0), "cuCtxSetCurrent", c.get(head, _AT["context"]))


def _ask(c: Code, head: ir.Value, number: ir.Value, name: str, *args: ir.Value) -> None:
    """Calls a function of the driver's, and ends ours, with its status and a number, if that is not 0."""
    from .emit import i32, i64

    status = c.to(c.get(head, _AT[name]), i32, *args)
    with c.if_then(c.icmp_unsigned("!=", status, i32(0)), likely=False):
        c.ret(c.or_(c.zext(status, i64), c.shl(number, i64(_FAILED))))
