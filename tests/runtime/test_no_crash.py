"""Programs that must end in their own way, or with a Python error, and never take the process down.

Each runs in a process of its own, with a time limit and with the fault handler on.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

START = """
import gc, os, signal, sys, threading, time
import numpy as np
import twofold as tf

x = tf.constant([1.0, 2.0, 3.0])
big = tf.fill((300_000,), 0.5)

def step():
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x + x * 2.0)
    return tape.gradient(y, x)

def use():
    return step(), np.array(x), memoryview(x), x + x, x * 2.0, -x

use()
"""


def start(program: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-X", "faulthandler", "-c", START + textwrap.dedent(program)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment})


def finish(process: subprocess.Popen[str]) -> None:
    try:
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert out.strip().endswith("done"), (out, err)


PROGRAMS = {
    "recursion that is too deep": """
        seen = set()
        def deep(n):
            if n:
                return deep(n - 1)
            try:
                return use()
            except RecursionError as error:
                seen.add(type(error))
        for n in range(600, 1000):
            try:
                deep(n)
            except RecursionError:
                pass
        assert seen
        use()
        print("done")
    """,
    "a collection at every allocation": """
        gc.set_threshold(1, 1, 1)
        for _ in range(10):
            use()
        print("done")
    """,
    "objects that compute when they are deleted": """
        class Late:
            def __init__(self, t):
                self.t, self.me = t, self
            def __del__(self):
                self.t + self.t
        gc.set_threshold(2)
        for i in range(200):
            t = tf.constant([float(i)] * 4)
            Late(t)
            t = t + t
            del t
        print("done")
    """,
    "profilers and tracers that fail": """
        counted = 0
        def observe(frame, event, arg):
            global counted
            counted += 1
            if counted % 5 == 0:
                raise ValueError("from a profiler")
            return observe
        failed = 0
        for install in (sys.setprofile, sys.settrace):
            for _ in range(40):
                install(observe)
                try:
                    use()
                except ValueError:
                    failed += 1
                finally:
                    install(None)
        assert failed
        import cProfile
        profile = cProfile.Profile()
        profile.runcall(use)
        use()
        print("done")
    """,
    "a recorder that fails": """
        from twofold.eager import record
        class Recorder:
            def _record(self, *args):
                raise ValueError("from a recorder")
            _record_custom = _record_further = _variable_read = _record
        recorder, failed = Recorder(), 0
        record.push(recorder)
        for _ in range(50):
            try:
                x + x
            except ValueError:
                failed += 1
        record.pop(recorder)
        assert failed == 50
        use()
        print("done")
    """,
    "interrupts": """
        ready = False  # whether the code that runs takes interrupts: what counts them does not
        def interrupt(signum, frame):
            global ready
            if ready:
                ready = False
                raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
        count, end = 0, time.time() + 1.5
        while time.time() < end:
            try:
                ready = True
                while time.time() < end:
                    use()
                    big + big
                ready = False
            except KeyboardInterrupt:
                count += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        assert count
        use()
        print("done")
    """,
    "threads that compute and compile": """
        from twofold.ir import dtypes as dt
        from twofold.runtime.launch import MapFamily
        errors = []
        def work(n):
            try:
                for k in range(2):
                    use()
                    big * big
                    number = n + k / 4 + os.getpid() % 1000 / 1024  # so that it is in no cache
                    add = MapFamily("add", lambda s, v, number=number: s.add(v, number), (dt.float64,), (dt.float64,))
                    assert (add((np.ones(100_000),), (100_000,))[0] == 1 + number).all()
            except BaseException as error:
                errors.append(error)
        workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        assert not errors, errors
        print("done")
    """,
    "exit with threads, a tape and finalizers at work": """
        v = tf.Variable([1.0, 2.0])
        tape = tf.GradientTape(persistent=True)
        tape.__enter__()
        y = v * v
        class Late:
            def __init__(self):
                self.kept = tape, v, y, x, tf.add
            def __del__(self):
                self.kept[4](self.kept[3], self.kept[3])
                memoryview(self.kept[3])
        late = Late()
        sys.late = np.array([Late()], object)
        def work():
            while True:
                big * big
                x + x
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
        print("done", flush=True)
    """,
    "memory that outlives its tensor": """
        views = []
        for n in range(100, 400):
            t = tf.range(n * 1000)
            views.append((n, np.frombuffer(t, np.int32), memoryview(t)))
            del t
            if len(views) > 5:
                n, array, view = views.pop(0)
                assert view.readonly and not array.flags.writeable
                assert array[-1] == view[n * 1000 - 1] == n * 1000 - 1
        print("done")
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_process_survives(name: str) -> None:
    finish(start(PROGRAMS[name]))


def test_processes_that_fill_one_cache_together(tmp_path: Path) -> None:
    for process in [start('print("done")', TWOFOLD_CACHE_DIR=str(tmp_path)) for _ in range(3)]:
        finish(process)
    finish(start('assert "llvmlite.binding" not in sys.modules; print("done")', TWOFOLD_CACHE_DIR=str(tmp_path)))


def test_a_cache_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    from twofold.runtime import cache

    old, new = b"old" * 5000, b"newer" * 5000
    writer = subprocess.Popen([sys.executable, "-c", textwrap.dedent("""
        from twofold.runtime import cache
        while True:
            cache.write("kernels", "ab" * 32, b"old" * 5000)
            cache.write("kernels", "ab" * 32, b"newer" * 5000)
    """)], env={**os.environ, "TWOFOLD_CACHE_DIR": str(tmp_path)})
    before = os.environ.get("TWOFOLD_CACHE_DIR")
    os.environ["TWOFOLD_CACHE_DIR"] = str(tmp_path)
    try:
        seen = {cache.read("kernels", "ab" * 32) for _ in range(200)}
        while len(seen - {None}) < 2 and writer.poll() is None:
            seen.add(cache.read("kernels", "ab" * 32))
    finally:
        writer.kill()
        writer.wait()
        if before is None:
            del os.environ["TWOFOLD_CACHE_DIR"]
        else:
            os.environ["TWOFOLD_CACHE_DIR"] = before
    assert seen <= {None, old, new} and {old, new} <= seen
