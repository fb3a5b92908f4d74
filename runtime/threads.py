"""Running a kernel over a range: on one thread or split over OpenMP's, with the interpreter lock released.

Kernel ABI: `int64 kernel(int64 start, int64 stop, int64* args)`, 0 on success. Threads begin with even ranges and
help each other when done. A kernel's result for an element does not depend on its range, so results depend neither on
the number of threads nor on who did what.

OpenMP's library is loaded on the first parallel run, never at import. A child forked after that runs on one thread:
OpenMP's worker threads do not survive a fork and waiting for them would never end. Idle workers spin for tens
of microseconds only; OMP_WAIT_POLICY and GOMP_SPINCOUNT override that. Which work is worth splitting is
decided by the caller.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple

from . import locks, machine, system

if TYPE_CHECKING:
    from llvmlite import ir

    from .emit import Code

__all__ = ["parallel_for", "serial", "get_num_threads", "set_num_threads", "fork_join_module", "MAX_THREADS",
           "ONE"]

MAX_THREADS = 256
_GRAIN = 64  # elements: threads share no cache line of an output when ranges are long
_LIBRARIES = ("libgomp.so.1", "libomp.so", "libomp.so.5", "libiomp5.so", "libomp.dylib", "libgomp.so")
_SPINS = "5000"  # tens of microseconds: long enough for the next of a row of ops, short enough for other threads
_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


class _ForkJoin(NamedTuple):
    """The compiled function `fork_join` of `fork_join_module`, its last argument, and its address."""

    call: Callable[[int, int, int, int, ctypes.Array[ctypes.c_int64]], int]
    context: ctypes.Array[ctypes.c_int64]
    address: int


_lock = locks.Lock()
_threads = 0  # 0: not asked yet
_count = ctypes.c_int64(1)  # how many threads compiled programs use: they read it where it lies
_one = ctypes.c_int64(1)
ONE = ctypes.addressof(_one)  # stands for `_count` in programs that use one thread whatever is set
# None: not loaded yet; False: cannot be had, or must not be used in this process
_fork_join: _ForkJoin | Literal[False] | None = None


def parallel_for(kernel: int, total: int, args: int, threads: int) -> int:
    """Runs `kernel` over [0, total) on at most `threads` threads.

    Args:
        kernel, args: addresses of the kernel and of its int64 arguments, which must stay alive meanwhile.
        total: number of outermost iterations.
        threads: how many threads to use at most.
    Returns:
        The first nonzero status in the order of the range, or 0.
    """
    if threads <= 1 or total <= 1:
        return serial(kernel, total, args)
    fork_join = _start() if _fork_join is None else _fork_join
    if fork_join is False:
        return serial(kernel, total, args)
    return fork_join.call(kernel, total, args, min(threads, total, MAX_THREADS), fork_join.context)


def serial(kernel: int, total: int, args: int) -> int:
    """Runs `kernel` over [0, total) on this thread with the interpreter lock released; returns its status."""
    return _KERNEL(kernel)(0, total, args)


def get_num_threads() -> int:
    """The number of threads that parallel work uses at most."""
    global _threads
    if not _threads:
        _threads = _from_environment() or available_cpus()
        _tell()
    return _threads


def set_num_threads(count: int) -> None:
    """Sets the number of threads that parallel work uses at most; 0 returns to the default.

    Raises:
        ValueError: `count` is negative.
    """
    global _threads
    if count < 0:
        raise ValueError(f"the number of threads must not be negative, got {count}")
    _threads = min(int(count), MAX_THREADS)
    _tell()


def _tell() -> None:
    """Tells compiled programs how many threads there are: one where there is nothing to share work with."""
    _count.value = _threads or get_num_threads() if _fork_join else 1


def _from_environment() -> int:
    for name in ("TWOFOLD_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").split(",")[0].strip()
        if text.isdigit() and int(text):
            return min(int(text), MAX_THREADS)
    return 0


def available_cpus() -> int:
    """How many processors this process may use: its affinity mask, and its control group's quota rounded up."""
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # not offered by this operating system
        cpus = os.cpu_count() or 1
    quota = _quota()
    return max(1, min(cpus, math.ceil(quota) if quota else cpus, MAX_THREADS))


def _cgroup_quota(root: str = "/sys/fs/cgroup", membership: str = "/proc/self/cgroup") -> float | None:
    """The processor quota of the innermost limited control group, version 2 or 1; None without a limit."""
    limits = []
    for line in _read(membership).splitlines():
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if controllers == "":
            limits += [_quota_v2(os.path.join(root, p)) for p in _with_parents(path)]
        elif "cpu" in controllers.split(","):
            limits += [_quota_v1(os.path.join(root, c, p)) for c in ("cpu", "cpu,cpuacct") for p in _with_parents(path)]
    quotas = [limit for limit in limits if limit]
    return min(quotas) if quotas else None


_quota = functools.cache(_cgroup_quota)  # programs ask for it, and files of the system take longer than many of these


def _with_parents(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part]
    return ["/".join(parts[:n]) for n in range(len(parts), -1, -1)]


def _quota_v2(folder: str) -> float | None:
    fields = _read(os.path.join(folder, "cpu.max")).split()
    if len(fields) != 2 or not all(f.isdigit() for f in fields):
        return None
    return int(fields[0]) / int(fields[1])


def _quota_v1(folder: str) -> float | None:
    quota, period = (_read(os.path.join(folder, f"cpu.cfs_{part}_us")).strip() for part in ("quota", "period"))
    if not quota.isdigit() or not period.isdigit():  # -1: no limit
        return None
    return int(quota) / int(period)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def table(shared: bool = True) -> tuple[int, int, int]:
    """The words with which compiled programs share work: the addresses of the fork-join function, of its context, and
    of the number of threads to use, which is one where OpenMP cannot be had. Both of the former are 0 for a program
    that shares nothing (not `shared`), so that small programs start no threads."""
    fork_join = (_fork_join if _fork_join is not None else _start()) if shared else False
    get_num_threads()
    _tell()
    if fork_join is False:
        return 0, 0, ctypes.addressof(_count)
    return fork_join.address, ctypes.addressof(fork_join.context), ctypes.addressof(_count)


def _start() -> _ForkJoin | Literal[False]:
    """The fork-join, which is loaded when it is first asked for; False where there is none."""
    global _fork_join
    with _lock:
        if _fork_join is None:
            _fork_join = _load() or False
        return _fork_join


def _load() -> _ForkJoin | None:
    """The compiled fork-join with its context, or None where OpenMP or machine code cannot be had."""
    library = _openmp()
    if library is None:
        return None
    names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
    try:
        functions = [getattr(library, n) for n in names]
        clock = system.c_function("clock_gettime")
        if clock is None:
            return None
        address = machine.load("threads", _timed_module, ("threads.py",), plain=True)["fork_join"]
    except (OSError, RuntimeError, ImportError, AttributeError):
        return None
    addresses = [ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions]
    context = (ctypes.c_int64 * 6)(*addresses, clock, time.CLOCK_MONOTONIC, 0)
    i64 = ctypes.c_int64
    call = ctypes.CFUNCTYPE(i64, i64, i64, i64, i64, ctypes.c_void_p)(address)
    return _ForkJoin(call, context, address)


def _timed_module() -> ir.Module:
    return fork_join_module(timed=True)


def _openmp() -> ctypes.CDLL | None:
    for name in _LIBRARIES:
        try:
            with _short_waits():
                library = ctypes.CDLL(name)
        except OSError:
            continue
        if hasattr(library, "GOMP_parallel"):
            return library
    return None


@contextmanager
def _short_waits() -> Iterator[None]:
    """Has OpenMP, when it is loaded here for the first time, let idle threads sleep soon, unless the user said how.

    By default they spin for milliseconds after each region, on cores that the threads of the BLAS need: a training
    step of a small network took 16 ms in place of 0.33 ms on two cores.
    """
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = _SPINS
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _after_fork() -> None:
    global _fork_join
    if _fork_join is not None:
        _fork_join = False
        _count.value = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_COMMON = 5  # words of the shared data before those of the threads, which `fork_join_module` lists
_OWN = 16  # words of a thread: two cache lines, since the neighbouring line is fetched too
_CLAIMED, _STATUS, _WHERE = range(3)
_PIECES = 8  # of a thread's range
_LATE = 300_000  # nanoseconds that threads may be waited for: waking up takes less
_ALONE = 8  # for how many times as long as they were waited for they are left alone


def fork_join_module(timed: bool = False) -> ir.Module:
    """`fork_join(kernel, total, args, threads, context)`, and the body that every thread runs.

    `context` holds the addresses of GOMP_parallel, omp_get_thread_num and omp_get_num_threads; and if `timed` that of
    clock_gettime, the number of a clock, and the nanosecond until which this thread works alone.

    Thread `t` of `n` begins with the units [units * t / n, units * (t + 1) / n), a unit being one iteration, or
    `_GRAIN` of them when every thread has many. It takes them piece by piece, and what is left of the others' ranges
    after that, so that nobody waits long for a thread that wakes late or loses its processor. Where there are few units
    all threads take them in their order, since those that are less work come last.

    Where other processes want the processors, the end of a kernel may wait for a thread that is not running, and for
    longer than all of it takes. Then the caller's thread does better alone for a while.

    Shared data, eight bytes each: kernel, total, args, omp_get_thread_num, omp_get_num_threads; clock_gettime, the
    number of the clock, and when the caller's thread had nothing more to do; then for each thread how many pieces of
    its range are taken, and of the calls that it made, the status of the first that failed in the order of the range,
    and where that began.
    """
    from .emit import Code, i32, i64, new_module, ptr, void

    module = new_module("threads")
    entry = Code(module, "fork_join", i64, [i64, i64, i64, i64, ptr])
    region = Code(module, "region", void, [ptr], internal=True)
    _region(region, region.fn.args[0], timed)
    c = entry
    kernel, total, args, threads, context = c.fn.args
    begin = _alone(c, kernel, total, args, context) if timed else None
    data = c.room(i64, c.add(c.mul(threads, i64(_OWN)), i64(2 * _OWN)))
    for index in (1, 2):
        c.store(c.load(c.word(context, index), typ=i64), c.word(data, index + 2))
    for index, value in enumerate((kernel, total, args)):
        c.store(value, c.word(data, index))

    def clear(i: ir.Value) -> None:
        for index, value in ((_CLAIMED, i64(0)), (_STATUS, i64(0)), (_WHERE, total)):
            c.store(value, _own(c, data, i, index))

    c.each(threads, clear)
    for index in (3, 4) if timed else ():
        c.store(c.load(c.word(context, index), typ=i64), c.word(data, index + 2))
    c.to(c.load(c.word(context, 0), typ=i64), void, region.fn, data, c.trunc(threads, i32), i32(0))
    if timed:
        _judge(c, context, begin, c.load(c.word(data, _COMMON + 2), typ=i64))
    first, where = c.room(i64), c.room(i64)
    c.store(i64(0), first)
    c.store(total, where)

    def keep_first(i: ir.Value) -> None:
        _keep(c, first, where, *(c.load(_own(c, data, i, index), typ=i64) for index in (_STATUS, _WHERE)))

    c.each(threads, keep_first)
    c.ret(c.load(first, typ=i64))
    return module


def _now(c: Code, clock: ir.Value, number: ir.Value) -> ir.Value:
    """Nanoseconds by a clock."""
    from .emit import i32, i64

    moment = c.room(i64, i64(2))
    c.to(clock, i32, c.trunc(number, i32), moment)
    seconds, rest = (c.load(c.word(moment, n), typ=i64) for n in range(2))
    return c.add(c.mul(seconds, i64(1_000_000_000)), rest)


def _alone(c: Code, kernel: ir.Value, total: ir.Value, args: ir.Value, context: ir.Value) -> ir.Value:
    """Runs all of the kernel here and returns, where that is the time for it; else gives the time."""
    from .emit import i64, ptr

    now = _now(c, *(c.load(c.word(context, n), typ=i64) for n in (3, 4)))
    with c.if_then(c.icmp_signed("<", now, c.load(c.word(context, 5), typ=i64))):
        c.ret(c.to(kernel, i64, i64(0), total, c.inttoptr(args, ptr)))
    return now


def _judge(c: Code, context: ir.Value, begin: ir.Value, done: ir.Value) -> None:
    """Decides whether this thread works alone for a while, since it waited longer for the others than it worked."""
    from .emit import i64

    now = _now(c, *(c.load(c.word(context, n), typ=i64) for n in (3, 4)))
    waited = c.sub(now, done)
    late = c.and_(c.icmp_signed(">", waited, i64(_LATE)), c.icmp_signed(">", waited, c.sub(done, begin)))
    with c.if_then(late):
        c.store(c.add(now, c.mul(waited, i64(_ALONE))), c.word(context, 5))


def _own(c: Code, data: ir.Value, thread: ir.Value, index: int) -> ir.Value:
    """The address of a word of a thread."""
    from .emit import i64

    return c.word(data, c.add(c.mul(thread, i64(_OWN)), i64(_OWN + index)))


def _keep(c: Code, first: ir.Value, where: ir.Value, status: ir.Value, at: ir.Value) -> None:
    """Stores `status` to `first`, and to `where` the start `at` of its piece, if it is an error that comes before the
    one stored so far."""
    from .emit import i64

    earlier = c.icmp_signed("<", at, c.load(where, typ=i64))
    with c.if_then(c.and_(c.icmp_signed("!=", status, i64(0)), earlier)):
        c.store(status, first)
        c.store(at, where)


def _region(c: Code, data: ir.Value, timed: bool) -> None:
    """The body that each thread runs."""
    from .emit import i32, i64, ptr

    kernel, total, args, thread_num, num_threads = (c.load(c.word(data, i), typ=i64) for i in range(_COMMON))
    thread, threads = (c.sext(c.to(f, i32), i64) for f in (thread_num, num_threads))
    many = c.icmp_signed(">=", total, c.mul(threads, i64(16 * _GRAIN)))
    grain = c.select(many, i64(_GRAIN), i64(1))
    units = c.sdiv(c.add(total, c.sub(grain, i64(1))), grain)
    few = c.icmp_signed("<=", units, c.mul(threads, i64(_PIECES)))
    ranges = c.select(few, i64(1), threads)
    status, where = (_own(c, data, thread, index) for index in (_STATUS, _WHERE))

    def least(x: ir.Value, y: ir.Value) -> ir.Value:
        return c.select(c.icmp_signed("<", x, y), x, y)

    def pieces_of(after: ir.Value) -> None:
        """Runs the rest of the range of the thread that comes `after` this one."""
        number = c.select(few, after, c.srem(c.add(thread, after), threads))
        begin, end = (c.sdiv(c.mul(units, least(n, ranges)), ranges) for n in (number, c.add(number, i64(1))))
        step = c.select(few, i64(1), c.sdiv(c.add(c.sub(end, begin), i64(_PIECES - 1)), i64(_PIECES)))
        claimed = _own(c, data, number, _CLAIMED)
        claim, run, done = (c.fn.append_basic_block(name) for name in ("claim", "run", "done"))
        c.branch(claim)
        c.position_at_end(claim)
        piece = c.add(begin, c.mul(c.atomic_rmw("add", claimed, i64(1), "monotonic"), step))
        c.cbranch(c.icmp_signed("<", piece, end), run, done)
        c.position_at_end(run)
        start, stop = c.mul(piece, grain), least(c.mul(least(c.add(piece, step), end), grain), total)
        _keep(c, status, where, c.to(kernel, i64, start, stop, c.inttoptr(args, ptr)), start)
        c.branch(claim)
        c.position_at_end(done)

    c.each(threads, pieces_of)
    if timed:
        with c.if_then(c.icmp_signed("==", thread, i64(0))):
            done = _now(c, *(c.load(c.word(data, _COMMON + n), typ=i64) for n in range(2)))
            c.store(done, c.word(data, _COMMON + 2))
    c.ret_void()
