"""Kernels over ranges: every element once, statuses in order, whatever the number of threads; forks."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time

import pytest

from twofold.runtime import threads

# Stores each index at its place; fails with status 7 + start in the range that holds args[1].
COUNT = """
define i64 @count(i64 %start, i64 %stop, ptr %args) {
entry:
  %out = load ptr, ptr %args
  %at.fail = getelementptr i64, ptr %args, i64 1
  %fail = load i64, ptr %at.fail
  %any = icmp slt i64 %start, %stop
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [%start, %entry], [%next, %loop]
  %place = getelementptr i64, ptr %out, i64 %i
  %old = load i64, ptr %place
  %new = add i64 %old, %i
  store i64 %new, ptr %place
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %stop
  br i1 %more, label %loop, label %done
done:
  %after = icmp sle i64 %start, %fail
  %before = icmp sgt i64 %stop, %fail
  %bad = and i1 %after, %before
  %status = add i64 %start, 7
  %result = select i1 %bad, i64 %status, i64 0
  ret i64 %result
}"""


@pytest.fixture(scope="module")
def count(assemble):
    return assemble(COUNT, "count")


def run(count, total, many, fail=-1, how=threads.parallel_for):
    out = (ctypes.c_int64 * max(total, 1))()
    args = (ctypes.c_int64 * 2)(ctypes.addressof(out), fail)
    rest = () if how is threads.serial else (many,)
    return how(count, total, ctypes.addressof(args), *rest), list(out)[:total]


@pytest.mark.parametrize("total", [0, 1, 2, 3, 7, 64, 1000, 4096, 100_003])
@pytest.mark.parametrize("many", [1, 2, 3, 5, 16])
def test_every_index_runs_once(count, total, many):
    status, out = run(count, total, many)
    assert status == 0
    assert out == list(range(total))


def test_serial_runs_the_whole_range(count):
    assert run(count, 1000, 1, how=threads.serial) == (0, list(range(1000)))


def test_the_status_of_the_failing_range_comes_back(count):
    assert run(count, 100_000, 4, fail=0)[0] == 7
    assert run(count, 100_000, 4, fail=99_999)[0] >= 7


FAIL_ALWAYS = """
define i64 @fail(i64 %start, i64 %stop, ptr %args) {
  %status = add i64 %start, 1
  ret i64 %status
}"""


def test_the_first_range_wins(assemble):
    fail = assemble(FAIL_ALWAYS, "fail")
    args = (ctypes.c_int64 * 1)()
    for _ in range(50):
        assert threads.parallel_for(fail, 10_000, ctypes.addressof(args), 8) == 1


def test_several_python_threads_at_once(count):
    results = []

    def work():
        results.extend(run(count, 5000, 3) == (0, list(range(5000))) for _ in range(20))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [True] * 80


# Counts indices in args[0]; the range that begins with 0 waits until all others are counted, or for very long.
PATIENT = """
define i64 @patient(i64 %start, i64 %stop, ptr %args) {
entry:
  %many = sub i64 %stop, %start
  %end = getelementptr i64, ptr %args, i64 1
  %total = load i64, ptr %end
  %first = icmp eq i64 %start, 0
  br i1 %first, label %wait, label %count
wait:
  %round = phi i64 [0, %entry], [%next, %wait]
  %next = add i64 %round, 1
  %seen = load atomic volatile i64, ptr %args seq_cst, align 8
  %with = add i64 %seen, %many
  %all = icmp eq i64 %with, %total
  %tired = icmp sgt i64 %next, 20000000000
  %go = or i1 %all, %tired
  br i1 %go, label %judge, label %wait
judge:
  %status = select i1 %all, i64 0, i64 1
  ret i64 %status
count:
  %old = atomicrmw add ptr %args, i64 %many seq_cst
  ret i64 0
}"""


@pytest.mark.parametrize("total", [2, 5, 16, 1000, 100_000])
def test_others_take_over_what_a_late_thread_would_have_done(assemble, total):
    patient = assemble(PATIENT, "patient")
    for _ in range(1000):  # not while this thread works alone
        args = (ctypes.c_int64 * 2)(0, total)
        assert threads.parallel_for(patient, total, ctypes.addressof(args), 2) == 0
        if args[0]:
            break
        time.sleep(0.001)
    assert 0 < args[0] < total


CALLS = """
define i64 @calls(i64 %start, i64 %stop, ptr %args) {
  %old = atomicrmw add ptr %args, i64 1 seq_cst
  ret i64 0
}"""


@pytest.fixture
def timed(assemble):
    """Returns a function that shares a kernel between two threads while the clock shows the given nanoseconds, one
    after the other, and says whether the kernel was run alone: by one call of all of its range."""
    calls = assemble(CALLS, "calls")
    fork_join = threads._start()
    assert fork_join
    shown = iter(())

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))
    def clock(number, moment):
        moment[0], moment[1] = divmod(next(shown), 10**9)
        return 0

    context = type(fork_join.context)(*fork_join.context)
    context[3], context[5] = ctypes.cast(clock, ctypes.c_void_p).value, 0

    def run_alone(*moments):
        nonlocal shown
        shown = iter(moments)
        args = (ctypes.c_int64 * 1)()
        assert fork_join.call(calls, 100, ctypes.addressof(args), 2, context) == 0
        assert not list(shown)  # as often as it is asked: where work is shared, at its begin, when done, at the end
        return args[0] == 1

    return run_alone


LATE = threads._LATE + 1


@pytest.mark.parametrize("begin", [0, 999_999_999, 7_000_000_123])
def test_who_waited_longer_than_it_worked_goes_alone_for_a_while(timed, begin):
    done = begin + 1000
    assert not timed(begin, done, done + LATE)
    until = done + LATE + threads._ALONE * LATE
    assert timed(done + LATE)
    assert timed(until - 1)
    assert not timed(until, until + 1, until + 2)


def test_who_worked_longer_or_waited_for_a_moment_only_goes_on_sharing(timed):
    assert not timed(0, LATE, 2 * LATE)
    assert not timed(3 * LATE, 3 * LATE + 1, 4 * LATE)
    assert not timed(5 * LATE, 5 * LATE + 1, 5 * LATE + 2)


# Spins until args[0] is set by another thread: ends only if the interpreter lock is released.
WAIT = """
define i64 @wait(i64 %start, i64 %stop, ptr %args) {
entry:
  br label %loop
loop:
  %flag = load atomic volatile i64, ptr %args seq_cst, align 8
  %set = icmp ne i64 %flag, 0
  br i1 %set, label %done, label %loop
done:
  ret i64 0
}"""


@pytest.mark.parametrize("many", [1, 2])
def test_the_interpreter_lock_is_released(assemble, many):
    wait = assemble(WAIT, "wait")
    args = (ctypes.c_int64 * 1)(0)
    timer = threading.Timer(0.02, lambda: args.__setitem__(0, 1))
    timer.start()
    assert threads.parallel_for(wait, 4, ctypes.addressof(args), many) == 0
    timer.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_runs_on_one_thread_and_ends(count):
    assert run(count, 1000, 2)[0] == 0
    child = os.fork()
    if child == 0:
        os._exit(0 if run(count, 1000, 2) == (0, list(range(1000))) else 1)
    timer = threading.Timer(20, lambda: os.kill(child, 9))
    timer.start()
    _, status = os.waitpid(child, 0)
    timer.cancel()
    assert status == 0


def test_the_number_of_threads_can_be_set_and_reset():
    default = threads.get_num_threads()
    assert default >= 1
    try:
        threads.set_num_threads(3)
        assert threads.get_num_threads() == 3
        with pytest.raises(ValueError, match="negative"):
            threads.set_num_threads(-1)
    finally:
        threads.set_num_threads(0)
    assert threads.get_num_threads() == default


@pytest.mark.parametrize(("variable", "expected"), [("TWOFOLD_NUM_THREADS", "5"), ("OMP_NUM_THREADS", "5")])
def test_the_environment_sets_the_number_of_threads(variable, expected):
    environment = {k: v for k, v in os.environ.items() if k not in ("TWOFOLD_NUM_THREADS", "OMP_NUM_THREADS")}
    program = "from twofold.runtime import threads; print(threads.get_num_threads(), threads._fork_join)"
    done = subprocess.run([sys.executable, "-c", program], env=environment | {variable: expected}, text=True,
                          capture_output=True, check=True)
    assert done.stdout.split() == [expected, "None"], "OpenMP must not start at import"


def write(folder, name, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_quota_of_a_control_group_version_2(tmp_path):
    write(tmp_path, "self", "0::/a/b\n")
    write(tmp_path / "fs/a", "cpu.max", "150000 100000\n")
    write(tmp_path / "fs/a/b", "cpu.max", "max 100000\n")
    assert threads._cgroup_quota(str(tmp_path / "fs"), str(tmp_path / "self")) == 1.5


def test_quota_of_a_control_group_version_1(tmp_path):
    write(tmp_path, "self", "4:cpu,cpuacct:/job\n0::/\n")
    write(tmp_path / "fs/cpu,cpuacct/job", "cpu.cfs_quota_us", "50000\n")
    write(tmp_path / "fs/cpu,cpuacct/job", "cpu.cfs_period_us", "100000\n")
    assert threads._cgroup_quota(str(tmp_path / "fs"), str(tmp_path / "self")) == 0.5


def test_no_quota(tmp_path):
    write(tmp_path, "self", "0::/\n")
    assert threads._cgroup_quota(str(tmp_path / "none"), str(tmp_path / "self")) is None
