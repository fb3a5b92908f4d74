"""Children of a process whose other threads trace, compile and run: none may wait for a lock that nobody has."""

import subprocess
import threading

import pytest
from quick.start import python

from twofold.runtime import kernels, locks, tiers
from twofold.tracer import function

PROGRAM = """
import faulthandler, os, sys, threading, time
import twofold as tf

v = tf.Variable(tf.zeros([1 << 17]))

@tf.function
def add():
    v.assign_add(tf.ones([1 << 17]))

def trace():
    n = 0
    while True:
        n += 1
        tf.function(lambda x, n=n: tf.reduce_sum(tf.sin(x) * float(n)))(tf.ones([n % 5 + 1]))

def eager():
    while True:
        tf.exp(tf.ones([3])) + tf.random.normal([3])

def run():
    while True:
        add()

def child(n):
    faulthandler.dump_traceback_later(240, exit=True)
    f = tf.function(lambda x: tf.reduce_sum(x * 2.0) + float(n))
    right = float(f(tf.ones([3]))) == 6.0 + n
    before = v.numpy()
    add()
    tf.sqrt(tf.ones([7, n + 1])), tf.random.normal([3])
    layer = tf.keras.layers.Dropout(0.5)
    layer(tf.ones([3]), training=True)
    return right and bool((v.numpy() == before[0] + 1.0).all())

assert child(0)  # modules are imported before there are threads: Python's own locks of them do not survive a fork
faulthandler.cancel_dump_traceback_later()
for work in (trace, trace, eager, run):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
codes = []
for n in range(12):
    pid = os.fork()
    if not pid:
        try:
            os._exit(0 if child(n) else 3)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(4)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(codes)
sys.stdout.flush()
os._exit(0)
"""


def test_children_end(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    ran = subprocess.run(python("-W", "ignore", str(path)), capture_output=True, text=True, timeout=300)
    assert ran.stdout == f"{[0] * 12}\n", ran.stderr


def test_locks_are_taken_in_the_order_in_which_code_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else who forks and who compiles would wait for each other, until the fork gives up."""
    monkeypatch.setattr(locks, "_PATIENCE", 5.0)
    monkeypatch.setattr(locks, "_settling", [])
    lower, upper = locks.RLock(), locks.RLock()
    held, begun = threading.Event(), threading.Event()

    def given(lock: threading.RLock) -> threading.RLock:
        if lock is lower:
            lock.acquire()
        begun.set()
        return lock

    def work() -> None:
        with upper:
            held.set()
            begun.wait(60)
            with lower:
                pass

    locks.settled_before_fork(lambda: given(lower))
    locks.settled_before_fork(lambda: given(upper))
    thread = threading.Thread(target=work)
    thread.start()
    held.wait(60)
    locks._before()
    try:
        assert locks._acquired == [upper, lower]
    finally:
        lower.release()
        locks._after_in_parent()
        thread.join()


def test_the_background_is_waited_for_before_the_locks_that_its_work_takes() -> None:
    taken = [get() for get in reversed(locks._settling)]
    places = [taken.index(lock) for lock in (function.making, tiers.at_work(), kernels._lock)]
    assert places == sorted(places)
