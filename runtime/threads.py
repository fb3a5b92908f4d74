"""Running a kernel over a range: on one thread or split over OpenMP's, with the interpreter lock released.

Kernel ABI: `int64 kernel(int64 start, int64 stop, int64* args)`, 0 on success. The split is static and even, and a
kernel's result for an element does not depend on its range, so results do not depend on the number of threads.

OpenMP's library is loaded on the first parallel run, never at import. A child forked after that runs on one thread:
OpenMP's worker threads do not survive a fork and waiting for them would never end. Idle workers spin for some
microseconds only; OMP_WAIT_POLICY and GOMP_SPINCOUNT override that. Which work is worth splitting is
decided by the caller.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import machine

__all__ = ["parallel_for", "serial", "get_num_threads", "set_num_threads", "fork_join_module", "MAX_THREADS"]

MAX_THREADS = 256
_GRAIN = 64  # elements: threads share no cache line of an output when ranges are long
_LIBRARIES = ("libgomp.so.1", "libomp.so", "libomp.so.5", "libiomp5.so", "libomp.dylib", "libgomp.so")
_SPINS = "1000"  # some microseconds: long enough for the next of a row of ops, short enough for other threads
_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

_lock = threading.Lock()
_threads = 0  # 0: not asked yet
_count = ctypes.c_int64(1)  # how many threads compiled programs use: they read it where it lies
_fork_join: Any = None  # None: not loaded yet; False: cannot be had, or must not be used in this process


def parallel_for(kernel: int, total: int, args: int, threads: int) -> int:
    """Runs `kernel` over [0, total) split into at most `threads` even ranges.

    Args:
        kernel, args: addresses of the kernel and of its int64 arguments, which must stay alive meanwhile.
        total: number of outermost iterations.
        threads: how many threads to use at most.
    Returns:
        The first nonzero status in the order of the ranges, or 0.
    """
    if threads <= 1 or total <= 1:
        return serial(kernel, total, args)
    if _fork_join is None:
        _start()
    if _fork_join is False:
        return serial(kernel, total, args)
    call, context = _fork_join
    return call(kernel, total, args, min(threads, total, MAX_THREADS), context)


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
    quota = _cgroup_quota()
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
    found = [limit for limit in limits if limit]
    return min(found) if found else None


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
    """What compiled programs share work with: the addresses of the fork-join function, of its context, and of the
    number of threads to use, which is one where OpenMP cannot be had. Both functions are 0 for a program that shares
    nothing (not `shared`), so that small programs start no threads."""
    if shared and _fork_join is None:
        _start()
    get_num_threads()
    _tell()
    if not shared or _fork_join is False:
        return 0, 0, ctypes.addressof(_count)
    call, context = _fork_join
    return ctypes.cast(call, ctypes.c_void_p).value or 0, ctypes.addressof(context), ctypes.addressof(_count)


def _start() -> None:
    global _fork_join
    with _lock:
        if _fork_join is None:
            _fork_join = _load() or False


def _load() -> Any:
    """The compiled fork-join with its context, or None where OpenMP or machine code cannot be had."""
    library = _openmp()
    if library is None:
        return None
    try:
        address = machine.load("threads", fork_join_module, ("threads.py", "emit.py"))["fork_join"]
    except (OSError, RuntimeError, ImportError):
        return None
    names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
    context = (ctypes.c_void_p * 3)(*[ctypes.cast(getattr(library, n), ctypes.c_void_p).value for n in names])
    i64 = ctypes.c_int64
    call = ctypes.CFUNCTYPE(i64, i64, i64, i64, i64, ctypes.c_void_p)(address)
    return call, context


def _openmp() -> Any:
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
    global _fork_join, _lock
    _lock = threading.Lock()
    if _fork_join is not None:
        _fork_join = False
        _count.value = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_STATUSES = 5  # index of the first status in the shared data, after the words listed in `fork_join_module`


def fork_join_module() -> Any:
    """`fork_join(kernel, total, args, threads, context)`, and the body that every thread runs.

    Shared data, eight bytes each: kernel, total, args, omp_get_thread_num, omp_get_num_threads, then one status a
    thread. Thread `t` of `n` takes the units [units * t / n, units * (t + 1) / n), a unit being one iteration, or
    `_GRAIN` of them when every thread has many.
    """
    from .emit import Code, i32, i64, new_module, ptr, void

    module = new_module("threads")
    entry = Code(module, "fork_join", i64, [i64, i64, i64, i64, ptr])
    region = Code(module, "region", void, [ptr], internal=True)
    _region(region, region.fn.args[0])
    c = entry
    kernel, total, args, threads, context = c.fn.args
    data = c.room(i64, c.add(threads, i64(_STATUSES)))
    for index in (1, 2):
        c.store(c.load(c.word(context, index), typ=i64), c.word(data, index + 2))
    for index, value in enumerate((kernel, total, args)):
        c.store(value, c.word(data, index))
    statuses = c.word(data, _STATUSES)
    c.each(threads, lambda i: c.store(i64(0), c.word(statuses, i)))
    c.to(c.load(c.word(context, 0), typ=i64), void, region.fn, data, c.trunc(threads, i32), i32(0))
    first = c.room(i64)
    c.store(i64(0), first)

    def keep_first(i: Any) -> None:
        status, found = c.load(c.word(statuses, i), typ=i64), c.load(first, typ=i64)
        c.store(c.select(c.same(found, i64(0)), status, found), first)

    c.each(threads, keep_first)
    c.ret(c.load(first, typ=i64))
    return module


def _region(c: Any, data: Any) -> None:
    """What each thread runs: its own range of the kernel."""
    from .emit import i32, i64

    kernel, total, args, thread_num, num_threads = (c.load(c.word(data, i), typ=i64) for i in range(_STATUSES))
    thread, threads = (c.sext(c.to(f, i32), i64) for f in (thread_num, num_threads))
    many = c.icmp_signed(">=", total, c.mul(threads, i64(16 * _GRAIN)))
    grain = c.select(many, i64(_GRAIN), i64(1))
    units = c.sdiv(c.add(total, c.sub(grain, i64(1))), grain)

    def bound(number: Any) -> Any:
        at = c.mul(c.sdiv(c.mul(units, number), threads), grain)
        return c.select(c.icmp_signed("<", at, total), at, total)

    start, stop = bound(thread), bound(c.add(thread, i64(1)))
    with c.if_then(c.icmp_signed("<", start, stop)):
        c.store(c.to(kernel, i64, start, stop, args), c.word(data, c.add(thread, i64(_STATUSES))))
    c.ret_void()
