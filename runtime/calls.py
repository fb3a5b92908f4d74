"""Running one kernel on given memory: in place or on threads, over one row or an index space, errors reported.

Which kernel and which memory is decided in `launch.py`; how an index space is walked, in `codegen/schedule.py`.
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Callable, Sequence

import numpy as np

from twofold.codegen import schedule
from twofold.ir.graph import Location

from . import kernels, threads
from .geometry import Grid
from .kernels import Compiled
from .sharing import AT_ONCE, SMALL, threads_for

__all__ = ["KernelCheck", "NodeFailure", "RowCall", "execute", "run", "run_alone", "address_of"]


class KernelCheck(Exception):
    """A check of a kernel failed; `code` is the text that its body gave it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def execute(compiled: Compiled, total: int, args: int, work: int) -> int:
    """Runs a kernel over [0, total) and returns its status.

    Args:
        args: address of the kernel's int64 arguments.
        work: about how many simple operations on an element that is; decides about threads, and about better code.
    Raises:
        RecursionError: the stack ends here.
    """
    if compiled.is_first:
        compiled.charge(work)
    try:
        if work < SMALL:
            return compiled.call(0, total, args)
        if work < AT_ONCE:
            return compiled.call_released(0, total, args)
    except ctypes.ArgumentError as error:  # the arguments are integers: it was their conversion that had no stack left
        raise RecursionError("maximum recursion depth exceeded in the call of a kernel") from error
    return threads.parallel_for(compiled.address, total, args, threads_for(work, threads.get_num_threads()))


def run(compiled: Compiled, total: int, args: Sequence[int], work: int) -> None:
    """Runs a kernel over [0, total) with the integers `args`.

    Raises:
        KernelCheck: one of its checks failed.
    """
    buffer = array("q", args)
    status = execute(compiled, total, buffer.buffer_info()[0], work)
    if status:
        raise KernelCheck(compiled.codes[status - 1])


def run_alone(compiled: Compiled, total: int, args: Sequence[int], work: int) -> None:
    """Runs a kernel over [0, total) with the integers `args` in this thread, where each step waits for the one before.

    Raises:
        KernelCheck: one of its checks failed.
    """
    buffer = array("q", args)
    if compiled.is_first:
        compiled.charge(work)
    status = (compiled.call if work < SMALL else compiled.call_released)(0, total, buffer.buffer_info()[0])
    if status:
        raise KernelCheck(compiled.codes[status - 1])


def _address_by_interface(value: np.ndarray) -> int:
    return value.__array_interface__["data"][0]


def _find_pointer_field() -> int | None:
    """The offset, in an array object, of the address of its data: in CPython right after the header. None where that is
    not so."""
    offset = object.__basicsize__
    probes: list[np.ndarray] = [np.empty(3, np.float32), np.empty((2, 0, 2), np.int8), np.arange(6)[::-2]]
    if sys.implementation.name != "cpython" or tuple.__itemsize__ != 8:
        return None
    addresses = [ctypes.c_int64.from_address(id(p) + offset).value for p in probes]
    return offset if addresses == [_address_by_interface(p) for p in probes] and offset % 8 == 0 else None


_pointer_field = _find_pointer_field()
_word_at = ctypes.c_int64.from_address


def address_of(value: np.ndarray) -> int:
    """The address of an array's first element.

    Raises:
        TypeError: `value` is no array. (A NumPy scalar has all of an array's attributes and none of its memory.)
    """
    if not isinstance(value, np.ndarray):
        raise TypeError(f"expected an array, got {type(value).__name__}")
    return _address_by_interface(value) if _pointer_field is None else _word_at(id(value) + _pointer_field).value


class NodeFailure(KernelCheck):
    """A check of a compiled node failed: the op, the user's line, and the check's text in `code`."""

    def __init__(self, op: str | None, loc: Location | None, code: str) -> None:
        super().__init__(code)
        self.op, self.loc = op, loc

    def __reduce__(self) -> tuple[object, ...]:
        return (NodeFailure, (self.op, self.loc, self.code), vars(self))


class RowCall:
    """A row kernel, planned for operands of known shapes and strides.

    `integers` follow the addresses of the operands; with a grid, its driver puts them there. Calls of one row that
    threads do not share hand array objects over as they are: `direct` takes `head`, then the objects' addresses. What
    runs once does without the driver for that, which takes longer to load than it saves.
    """

    __slots__ = ("compiled", "operands", "total", "work", "integers", "grid", "direct", "head", "_runs")

    def __init__(self, compiled: Compiled, operands: int, total: int, work: int, integers: Sequence[int],
                 grid: Grid | None) -> None:
        """Args:
            operands: how many there are; for a direct call they must be exactly ndarrays.
        """
        self.compiled, self.operands, self.total, self.work = compiled, operands, total, work
        self.integers, self.grid = tuple(integers), grid
        self.direct: Callable[[int, int, int], int] | None = None
        self.head: tuple[int, ...] = ()
        self._runs = 0

    def prepare(self) -> RowCall:
        """Has the direct call ready, where there can be one, which runs only code that stays; gives the planned call
        itself."""
        if self.grid is None and self.work < AT_ONCE and _pointer_field is not None and not self.compiled.is_first:
            driver = kernels.get("on_objects", schedule.on_objects)
            driver.settle()
            self.head = (self.compiled.address, self.operands, len(self.integers), _pointer_field // 8, 0,
                         *self.integers)
            self.direct = driver.call if self.work < SMALL else driver.call_released
        return self

    def run(self, operands: Sequence[np.ndarray]) -> None:
        """Runs it on arrays of the planned shapes and strides.

        Raises:
            KernelCheck: one of the kernel's checks failed.
        """
        # The arguments are new for each call: a signal handler may run ops between writing and reading them.
        if self.direct is not None:
            buffer = array("q", (*self.head, *map(id, operands)))
            status = self.direct(0, self.total, buffer.buffer_info()[0])
        elif self.grid is None:
            if self._runs == 1 and not self.compiled.is_first:
                self.prepare()
            self._runs = 1
            buffer = array("q", [*map(address_of, operands), *self.integers])
            status = execute(self.compiled, self.total, buffer.buffer_info()[0], self.work)
        else:
            driver, words, slots = self.grid
            if self.compiled.is_first:
                self.compiled.charge(self.work)
            buffer = array("q", words)
            buffer[0] = self.compiled.address
            for slot, operand in zip(slots, operands, strict=True):
                buffer[slot] = address_of(operand)
            drive = kernels.get(driver, getattr(schedule, driver), self.work)
            status = execute(drive, self.total, buffer.buffer_info()[0], self.work)
        if status:
            raise KernelCheck(self.compiled.codes[status - 1])
