"""Code of two tiers: equal bits in both, exchanged while programs are called, kept on disk and across forks."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from fuzz.programs import Program, programs
from fuzz.worker import Workshop
from hypothesis import HealthCheck, given, settings
from ops.case import Case, named
from ops.table import cases
from quick.start import python

import twofold as tf
from twofold.codegen import llvm_module
from twofold.eager.tensor import Tensor, wrap
from twofold.ir.graph_text import parse
from twofold.runtime import compiled, tiers
from twofold.runtime.compiled import Native
from twofold.runtime.cpu import cpu
from twofold.runtime.identity import Sources
from twofold.tracer.function import Function

pytestmark = pytest.mark.skipif(not tiers.enabled(), reason="there is one tier here")

GRAPH = """graph f(%0: f32[n,3], %1: f32[3]) {
  %2 = multiply(%0, %1) : f32[n,3]
  %3 = tanh(%2) : f32[n,3]
  %4 = reduce_sum(%3) {axis: [0]} : f32[3]
  return %3, %4
}"""


@pytest.fixture
def folder(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(compiled, "_SOURCES", Sources(list))  # ours may be edited while tests run
    monkeypatch.setattr(compiled, "environment", lambda: "of the tests")
    return empty_cache


def program(more: str = "") -> Native:
    """The program of a graph in the first tier."""
    return Native.of_graph(parse(GRAPH.replace("tanh", more) if more else GRAPH), cpu)


def bits(native: Native) -> list[bytes]:
    x, y = np.linspace(-2, 2, 21, dtype=np.float32).reshape(7, 3), np.array([2, 0.5, 4], np.float32)
    return [a.tobytes() for a in native([x, y], {"n": 7})]


def natives(function: Function) -> list[Native]:
    """The programs of a traced function."""
    wholes = [trace.runner.program.whole for family in function._families.values() for trace in family.traces]
    return [whole for whole in wholes if isinstance(whole, Native)]


def test_both_tiers_have_one_result(folder: Path) -> None:
    native = program()
    before = bits(native)
    assert native.is_first
    native.promote()
    assert not native.is_first and bits(native) == before
    native.promote()  # nothing more to do
    assert bits(native) == before


@pytest.mark.parametrize("case", [c for c in cases() if c.main.is_floating][::5], ids=str)
def test_ops(case: Case) -> None:
    """A sample of the op table; all of it runs in either tier in `tests/tracer/test_function_ops.py`."""
    tensors = [wrap(np.asarray(a)) for a in case.arrays(case.main, case.shapes[0], salt="tiers")]
    function = tf.function(lambda *t: named(case.fn)(*t, **case.kwargs), autograph=False, fallback=False)

    def call() -> list[object]:
        tf.random.set_seed(5)
        flat = [tf.convert_to_tensor(t)._array for t in tf.nest.flatten(function(*tensors))]
        return [a.tolist() if a.dtype == object else a.tobytes() for a in flat]

    first = call()
    for native in natives(function):
        native.promote()
    assert call() == first


def test_random_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the second tier; `tests/fuzz/test_fuzz.py` runs the like in the first."""
    monkeypatch.setenv("TWOFOLD_TIERS", "0")
    with Workshop() as shop:
        @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
        @given(programs())
        def check(made: Program) -> None:
            assert shop.check(made.source()) is None
        check()


def test_what_runs_often_gets_better_code(folder: Path) -> None:
    native = program()
    before = bits(native)
    while native.is_first:
        assert bits(native) == before
    tiers.wait()
    assert bits(native) == before and len(native._images) == 2


def test_what_is_called_without_python_is_counted(folder: Path) -> None:
    function = tf.function(lambda x: tf.tanh(x) * 2.0)
    x = tf.constant([1.0, 2.0])
    before = function(x).numpy().tobytes()
    (native,) = natives(function)
    while native.is_first:
        assert function(x).numpy().tobytes() == before
    tiers.wait()
    assert function(x).numpy().tobytes() == before and len(native._images) == 2


def test_runs_that_do_much_are_compiled_in_full(folder: Path) -> None:
    large = parse("graph f(%0: f32[4096,4096]) {\n  %1 = tanh(%0) : f32[4096,4096]\n  return %1\n}")
    assert not Native.of_graph(large, cpu).is_first
    open_ended = parse("graph f(%0: f32[n]) {\n  %1 = tanh(%0) : f32[n]\n  return %1\n}")
    native = Native.of_graph(open_ended, cpu)
    x = np.ones(7, np.float32)
    small = native([x], {"n": 7})[0]
    assert native.is_first
    much = native([np.ones(1 << 20, np.float32)], {"n": 1 << 20})[0]
    assert not native.is_first and (much == small[0]).all()


@pytest.mark.parametrize("taped", [False, True])
def test_no_first_tier_is_made_for_a_first_call_that_does_much(folder: Path, monkeypatch: pytest.MonkeyPatch,
                                                               taped: bool) -> None:
    made = list[bool]()
    before = llvm_module.first_tier

    def first_tier(module: str) -> tuple[bytes, bytes]:
        made.append(True)
        return before(module)
    monkeypatch.setattr(llvm_module, "first_tier", first_tier)
    for count, firsts in ((1 << 20, 0), (7, 1)):
        made.clear()
        function = tf.function(lambda x, c=count: tf.tanh(x) * c, input_signature=[tf.TensorSpec([None])])
        with tf.GradientTape() if taped else contextlib.nullcontext():
            result = function(tf.fill([count], 0.5))
        assert len(made) == firsts
        np.testing.assert_allclose(result.numpy(), count * np.tanh(0.5), rtol=1e-6)


def test_loops_that_run_long_begin_again_in_better_code(folder: Path) -> None:
    """Both when Python calls them and when native code does, with a variable that they assign."""
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def count(rounds):
        kept = total.read_value()
        i = tf.constant(0, tf.int64)
        while i < rounds:
            i += 1
            kept = kept * 3 + i
        total.assign(kept)
        return i

    few = [int(count(tf.constant(n, tf.int64))) for n in (3, 4)]
    (native,) = natives(count)
    assert few == [3, 4] and native.is_first
    before = int(total)
    rounds = 100_000_000
    assert int(count(tf.constant(rounds, tf.int64))) == rounds and not native.is_first
    after = int(total)
    total.assign(before)
    assert int(count(tf.constant(rounds, tf.int64))) == rounds and int(total) == after


def test_the_switch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = program()
    monkeypatch.setenv("TWOFOLD_TIERS", "0")
    full = program()
    assert first.is_first and not full.is_first and not full.cached and bits(first) == bits(full)
    monkeypatch.delenv("TWOFOLD_TIERS")
    again = program()
    assert again.cached and not again.is_first and bits(again) == bits(full)


def test_on_disk_better_code_takes_the_place_of_the_first(folder: Path) -> None:
    first = program()
    other = program()
    assert other.cached and other.is_first
    other.promote()  # of what lay on disk
    assert bits(other) == bits(first)
    third = program()
    assert third.cached and not third.is_first and bits(third) == bits(first)
    assert len(list(folder.glob("programs/*/*.bin"))) == 1


def test_code_that_cannot_be_made_leaves_the_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("no memory left")

    native = program()
    before = bits(native)
    monkeypatch.setattr(llvm_module, "optimise", fail)
    native.promote()
    assert bits(native) == before and len(native._images) == 1


def test_threads_that_call_meanwhile(folder: Path) -> None:
    """Eight threads, of which each call assigns a variable."""
    count = tf.Variable(0)

    @tf.function
    def step(x: Tensor) -> Tensor:
        count.assign_add(1)
        return tf.reduce_sum(tf.tanh(x), axis=0)

    x = tf.constant(np.linspace(-1, 1, 3 * (1 << 12), dtype=np.float32).reshape(-1, 3))
    expected = step(x).numpy().tobytes()
    (native,) = natives(step)
    begun, wrong = threading.Barrier(9), []

    def work() -> None:
        begun.wait(60)
        wrong.extend([n for n in range(200) if step(x).numpy().tobytes() != expected])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    begun.wait(60)
    native.promote()
    for thread in threads:
        thread.join()
    tiers.wait()
    assert not wrong and int(count) == 1601 and len(native._images) == 2


def test_programs_that_are_gone_need_no_better_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    native = program()
    better = native._promotion()
    del native
    monkeypatch.setattr(llvm_module, "optimise", lambda module: pytest.fail("it was made"))
    better()


def test_a_segment_between_calls_of_python() -> None:
    function = tf.function(lambda x: tf.sort(tf.tanh(x)) * 2.0)
    x = tf.constant([2.0, 1.0, 3.0])
    before = function(x).numpy().tobytes()
    (trace,) = [t for family in function._families.values() for t in family.traces]
    runs = [part.run for part in trace.runner.program.parts if hasattr(part, "run")]
    assert runs
    for native in runs:
        native.promote()
    assert function(x).numpy().tobytes() == before


FORK = """
import os, twofold as tf
from twofold.runtime import tiers

def make(n):
    f = tf.function(lambda x: tf.tanh(x) * float(n))
    x = tf.constant([1.0, 2.0])
    f(x)
    (trace,) = next(iter(f._families.values())).traces
    return f, x, trace.runner.program.whole

made = [make(n) for n in range(6)]
wanted = [f(x).numpy().tobytes() for f, x, _ in made]
for _, _, native in made[:4]:
    tiers.request(native._promotion())
pid = os.fork()
if not pid:
    for _, _, native in made[4:]:
        tiers.request(native._promotion())
    tiers.wait()
    right = [f(x).numpy().tobytes() for f, x, _ in made] == wanted and not any(n.is_first for _, _, n in made)
    os._exit(0 if right else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
tiers.wait()
assert [f(x).numpy().tobytes() for f, x, _ in made] == wanted
assert [len(native._images) for _, _, native in made] == [2] * 4 + [1] * 2
for _, _, native in made[4:]:
    tiers.request(native._promotion())  # and the process ends meanwhile
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forks_and_the_end_of_a_process(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(FORK)
    ran = subprocess.run(python("-W", "ignore", str(path)), capture_output=True, text=True, timeout=300,
                         env={**os.environ, "TWOFOLD_CACHE_DIR": str(tmp_path / "cache")})
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr


ANOTHER = """
import sys, numpy as np, twofold as tf
f = tf.function(lambda x: tf.reduce_sum(tf.tanh(x) * 2.0))
x = tf.constant(np.linspace(-1, 1, 50, dtype=np.float32))
print(f(x).numpy().tobytes().hex())
(trace,) = next(iter(f._families.values())).traces
native = trace.runner.program.whole
print(native.cached, native.is_first)
if "promote" in sys.argv:
    native.promote()
    print(f(x).numpy().tobytes().hex())
"""


def test_another_process_goes_on_where_one_ended(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(ANOTHER)

    def told(*arguments: str, **more: str) -> list[str]:
        return subprocess.run(python(str(path), *arguments), capture_output=True, text=True, timeout=300,
                              env={**os.environ, "TWOFOLD_CACHE_DIR": str(tmp_path / "cache"), **more},
                              check=True).stdout.splitlines()

    first = told()
    assert first[1] == "False True"
    assert told("promote") == [first[0], "True True", first[0]]
    assert told() == [first[0], "True False"]
    assert told(TWOFOLD_TIERS="0") == [first[0], "True False"]
