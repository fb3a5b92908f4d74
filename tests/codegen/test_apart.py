"""Work that no signal ends halfway: LLVM's objects are freed once, whenever an interrupt comes, and interrupts come
through at once."""

from __future__ import annotations

import _thread
import contextvars
import os
import signal
import subprocess
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from quick.start import python

from twofold.codegen.apart import apart, settle
from twofold.runtime import compiled, tiers

has_signals = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="signals of POSIX")

# Interrupts at calls, and at returns from them, in the part of llvmlite that holds LLVM's objects, while a kernel is
# compiled: at every second one, one a round. Nothing is freed indeed, so that each object has an address of its own.
INTERRUPTS = """
    import _thread, ctypes, os, signal, sys
    from llvmlite.binding import ffi
    from twofold.codegen import llvm_cpu, schedule
    from twofold.codegen.apart import settle
    from twofold.ir import dtypes as dt, ops

    kernel = schedule.map_rows("negative", ops.negative.body, (dt.float32,), (dt.float32,), {}, "v")
    llvm_cpu.compile_kernel(kernel, "first")
    freed, twice, call = set(), [], ffi._lib_fn_wrapper.__call__

    def note(self, *args):
        name = self._cfn.__name__
        if "Dispose" not in name or name == "LLVMPY_DisposeMemoryBuffer":
            return call(self, *args)
        thing = getattr(args[0], "_ptr", args[0])
        address = ctypes.cast(thing, ctypes.c_void_p).value
        if address in freed:
            twice.append(name)
        elif address:
            freed.add(address)

    ffi._lib_fn_wrapper.__call__ = note
    seen = wanted = interrupts = 0

    def observe(frame, event, _):
        global seen
        code = frame.f_code
        if os.path.basename(os.path.dirname(code.co_filename)) == "binding" or code is note.__code__:
            seen += 1
            if seen == wanted:
                os.kill(os.getpid(), signal.SIGUSR1)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    def start_observed(function, args):
        def run():
            sys.setprofile(observe)
            function(*args)
        return start(run, ())

    start, _thread.start_new_thread = _thread.start_new_thread, start_observed
    signal.signal(signal.SIGUSR1, interrupt)
    while wanted <= seen:
        wanted, seen = wanted + 4, 0
        try:
            sys.setprofile(observe)
            llvm_cpu.compile_kernel(kernel, f"kernel_{wanted}")
            settle()
        except KeyboardInterrupt:
            interrupts += 1
        sys.setprofile(None)
        settle()
    assert interrupts > 20
    assert not twice, (len(twice), set(twice))
    print("done")
"""




@has_signals
def test_no_object_is_freed_twice() -> None:
    done = subprocess.run(python("-c", textwrap.dedent(INTERRUPTS)), capture_output=True, text=True,
                          timeout=300)
    assert done.stdout.strip().endswith("done"), (done.returncode, done.stderr[-3000:])


FREED = """
    import sys, threading
    import twofold as tf
    from llvmlite.binding import ffi
    from twofold.runtime import tiers

    main, places, close = threading.get_ident(), [], ffi.ObjectRef.close
    makers = []

    def note(self):
        if not self.closed:
            makers.append(threading.get_ident())
            if makers[-1] == main:
                places.append([type(self).__name__, sys._getframe(2).f_code.co_qualname])
        close(self)

    ffi.ObjectRef.close = note
    x = tf.ones([20, 20])
    y = tf.exp(x) @ x + tf.nn.conv2d(tf.ones([2, 8, 8, 4]), tf.ones([3, 3, 4, 40]), 1, "SAME")[0, 0, 0, 0]
    step = tf.function(lambda x: tf.reduce_sum(tf.sin(x) @ x))
    step(x)
    step.explain(x)
    tiers.wait()
    print(len(makers) > 8, places)
"""


def test_the_main_thread_frees_no_object(tmp_path: Path) -> None:
    """An interrupt that comes while an object's `__del__` runs is lost."""
    done = subprocess.run(python("-c", textwrap.dedent(FREED)), capture_output=True, text=True, timeout=300,
                          env={**os.environ, "TWOFOLD_CACHE_DIR": str(tmp_path), "TWOFOLD_TIERS": "0"})
    assert done.stdout.splitlines()[-1:] == ["True []"], (done.stdout, done.stderr[-3000:])


@pytest.fixture
def interrupted() -> Iterator[list[int]]:
    """The signals that came; the handler raises an exception for each."""
    seen: list[int] = []

    def handle(number: int, frame: object) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, handle)
    yield seen
    signal.signal(signal.SIGUSR1, before)


@has_signals
def test_an_interrupt_does_not_wait_for_the_work(interrupted: list[int]) -> None:
    begun, on, ended = threading.Event(), threading.Event(), threading.Event()

    @apart
    def work() -> None:
        begun.set()
        assert on.wait(60)
        ended.set()

    def interrupt() -> None:
        begun.wait(60)
        os.kill(os.getpid(), signal.SIGUSR1)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        work()
    assert interrupted == [signal.SIGUSR1]
    assert not ended.is_set()
    on.set()
    settle()
    assert ended.is_set()


def test_results_and_errors_are_those_of_the_function() -> None:
    class Odd(BaseException):
        pass

    @apart
    def work(x: int, *, fails: bool = False) -> tuple[int, int, bool]:
        """Works."""
        if fails:
            raise Odd(x)
        return x, variable.get(), threading.current_thread() is threading.main_thread()

    variable = contextvars.ContextVar[int]("variable")
    token = variable.set(7)
    assert work(3) == (3, 7, False)
    assert (work.__name__, work.__doc__) == ("work", "Works.")
    with pytest.raises(Odd, match="4") as error:
        work(4, fails=True)
    assert error.traceback[-1].name == "work"
    variable.reset(token)


def test_other_threads_do_the_work_themselves() -> None:
    threads: list[threading.Thread] = []

    @apart
    def work() -> None:
        threads.append(threading.current_thread())
    other = threading.Thread(target=lambda: (work(), apart(work)()))
    other.start()
    other.join()
    assert threads == [other, other]


def test_without_a_thread_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(_thread, "start_new_thread", fail)
    assert apart(threading.current_thread)() is threading.main_thread()
    settle()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_forks_wait_for_work_that_nobody_waits_for() -> None:
    program = textwrap.dedent("""
        import os, signal, threading, time
        import twofold as tf
        from twofold.codegen.apart import apart
        tf.constant(1.0) + 1.0
        ended = []
        @apart
        def work():
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.3)
            ended.append(1)
        def handle(number, frame):
            raise KeyboardInterrupt
        signal.signal(signal.SIGUSR1, handle)
        try:
            work()
        except KeyboardInterrupt:
            early = not ended
        child = os.fork()
        if not child:
            os._exit(10 + len(ended))
        print(early, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "done")
    """)
    done = subprocess.run(python("-c", program), capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["True", "11", "done"], done.stderr


def test_threads_are_started_where_no_signal_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    starters: dict[str, set[int]] = {}
    start = threading.Thread.start

    def note(thread: threading.Thread) -> None:
        starters.setdefault(thread.name.rstrip("-0123456789"), set()).add(threading.get_ident())
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", note)
    monkeypatch.setenv("TWOFOLD_CACHE", "0")
    tiers.request(lambda: None)
    tiers.wait()
    monkeypatch.setattr("twofold.runtime.threads.available_cpus", lambda: 2)
    with compiled._Tasks() as tasks:
        tasks.add([lambda: None, lambda: None])
    assert "twofold-tiers" in starters
    assert all(threading.get_ident() not in idents for idents in starters.values()), starters
