"""Kernels that programs share in their two tiers: made, exchanged while they run, kept on disk, and across forks."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from quick.start import python

from twofold.ir import dtypes as dt
from twofold.runtime import generated, indirect, kernels, tiers
from twofold.runtime.generated import Functions
from twofold.runtime.image import Image

pytestmark = pytest.mark.skipif(not (tiers.enabled() and indirect.supported()), reason="there is one tier here")

HERE = Path(__file__).parent
HEAD = f"""
import sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent)!r}]
import hashlib, os, threading
import numpy as np
import twofold as tf
from twofold.runtime import generated, tiers

def first():
    return sorted((f.family, f.dtype.name, part) for f in generated._families.values() for part in f.first)
def digest(x):
    return hashlib.sha256(repr(x).encode()).hexdigest()
"""


def told(tmp_path: Path, program: str, **more: str) -> list[str]:
    """What a process prints whose cache is in the folder."""
    ran = subprocess.run(python("-W", "ignore", "-c", HEAD + program), capture_output=True, text=True,
                         timeout=600, env={**os.environ, "TWOFOLD_CACHE_DIR": str(tmp_path / "cache"), **more})
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


TABLE = """
import kernel_table
generated._LATER = 1e9  # nothing is exchanged but where it is said
kept = []
before = kernel_table.everything(kept)
print(len(before), len(first()))
if "exchange" in os.environ.get("DO", ""):
    tiers.wait()
    assert not first()
    after = kernel_table.everything(kept)
    assert len(after) == len(before)
    for x, y in zip(before, after):
        assert len(x) == len(y)
        print([n for n, (a, b) in enumerate(zip(x, y)) if a != b])
print(digest(before))
"""


def test_results_are_equal_in_both_tiers_and_on_disk_the_better_stays(tmp_path: Path) -> None:
    count, *rest, begun = told(tmp_path, TABLE, DO="exchange")
    assert count.startswith("4 ") and int(count.split()[1]) > 10  # parts that began in the first tier
    assert rest == ["[]", "[]", "[]", "[]"]
    files = len(list(tmp_path.glob("cache/kernels/*/*.bin")))
    assert told(tmp_path, TABLE) == ["4 0", begun]  # no other process has need of the first tier
    assert len(list(tmp_path.glob("cache/kernels/*/*.bin"))) == files


LARGE = """
generated._LATER = 1e9
x = tf.ones([64, 64])
x @ x
print(first())
large = tf.ones([1600, 1600])
assert (large @ large).numpy()[0, 0] == 1600
print(first())

@tf.function
def step(images, filters):
    return tf.nn.conv2d(images, filters, 1, "SAME")
step(tf.ones([2, 8, 8, 16]), tf.ones([3, 3, 16, 32]))
print(("conv", "float32", "forward_2") in first())
step(tf.ones([2, 64, 64, 64]), tf.ones([3, 3, 64, 256]))
print(("conv", "float32", "forward_2") in first())
"""


def test_runs_that_do_much_wait_for_tiled_code(tmp_path: Path) -> None:
    assert told(tmp_path, LARGE) == ["[('gemm', 'float32', 'tall')]", "[]", "True", "False"]


SOON = """
import time
x = tf.ones([64, 64])
x @ x
assert first()
end = time.monotonic() + 120
while first() and time.monotonic() < end:
    time.sleep(0.01)
print(first())
"""


def test_tiled_code_is_made_in_the_background(tmp_path: Path) -> None:
    assert told(tmp_path, SOON) == ["[]"]


FORK = """
generated._LATER = 0.05
x = tf.constant(np.random.default_rng(0).normal(size=(70, 80)).astype(np.float32))
product = lambda: tf.matmul(x, x, transpose_a=True).numpy().tobytes()
wanted = product()
assert first()

def work(children):
    for _ in range(children):
        pid = os.fork()
        if not pid:
            right = product() == wanted
            tiers.wait()
            os._exit(0 if right and not first() and product() == wanted else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
work(3)  # before it is made, while it is, and perhaps after
tiers.wait()
work(1)
assert product() == wanted and not first()
tf.cast(x, tf.float64) @ tf.ones([80, 3], tf.float64)  # and the process ends before, or meanwhile
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forks_and_the_end_of_a_process(tmp_path: Path) -> None:
    assert told(tmp_path, FORK) == ["done"]


MEANWHILE = """
generated._LATER = 1e9
rng = np.random.default_rng(0)
x = tf.constant(rng.normal(size=(3, 20, 21, 16)).astype(np.float32))
w = tf.constant(rng.normal(size=(3, 3, 16, 40)).astype(np.float32))
m = tf.constant(rng.normal(size=(150, 190)).astype(np.float32))

@tf.function
def both(x, w, m):
    return tf.nn.conv2d(x, w, 1, "SAME"), tf.matmul(m, m, transpose_b=True)

def results():
    return [r.numpy().tobytes() for r in (*both(x, w, m), tf.nn.conv2d(x, w, 1, "SAME"), tf.matmul(m, m, False, True))]

wanted, wrong, stop, begun = results(), [], threading.Event(), threading.Barrier(7)
assert first()

def work():
    begun.wait(60)
    while not stop.wait(0.001):  # while better code is made at a lower priority than theirs
        if results() != wanted:
            wrong.append(1)
workers = [threading.Thread(target=work) for _ in range(6)]
for worker in workers:
    worker.start()
begun.wait(60)
tiers.wait()
for _ in range(20):
    assert results() == wanted
stop.set()
for worker in workers:
    worker.join()
print(wrong, first())
"""


def test_threads_that_call_while_code_is_exchanged(tmp_path: Path) -> None:
    assert told(tmp_path, MEANWHILE) == ["[] []"]


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A cache of its own, and what the background would be asked for."""
    asked: list[object] = []
    monkeypatch.setenv("TWOFOLD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tiers, "request", lambda task, delay=0.0: asked.append(task))
    return asked


def test_addresses_stay(held: list[object]) -> None:
    functions = Functions("gemm", dt.float32)
    before = {name: functions[name] for name in ("tall", "pack_b", "small")}
    assert set(functions.first) == {"tall"} and len(held) == 1
    functions.settle("pack_b")
    assert not functions.first and {name: functions[name] for name in before} == before
    functions.settle("pack_b")  # nothing more to do
    held[0]()  # nor in the background
    assert {name: functions[name] for name in before} == before
    other = Functions("gemm", dt.float32)
    assert other["tall"] and not other.first and len(held) == 1  # from disk


def test_what_was_never_asked_for_is_settled_at_once(held: list[object]) -> None:
    functions = Functions("gemm", dt.float32)
    functions.settle("tall")
    assert functions["tall"] and not functions.first and not held


def test_code_that_cannot_be_made_leaves_the_first(held: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    functions = Functions("gemm", dt.float32)
    address = functions["tall"]

    def fail(*_: object) -> None:
        raise RuntimeError("no memory left")
    monkeypatch.setattr(Functions, "_tiled", fail)
    held[0]()
    assert functions["tall"] == address and set(functions.first) == {"tall"}
    with pytest.raises(RuntimeError, match="no memory left"):
        functions.settle("tall")


def test_without_pages_of_code_there_is_one_tier(held: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("not allowed")
    monkeypatch.setattr(indirect, "Indirect", fail)
    functions = Functions("gemm", dt.float32)
    assert functions["small"] and not functions.first and not held


def test_the_switch(held: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOFOLD_TIERS", "0")
    functions = Functions("gemm", dt.float32)
    assert functions["tall"] and not functions.first and not held


def test_threads_that_ask_for_one_part_make_it_once(held: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    made, compiled = [], Functions._compiled

    def counted(self: Functions, part: str, first: bool) -> bytes:
        made.append((part, first))
        return compiled(self, part, first)
    monkeypatch.setattr(Functions, "_compiled", counted)
    functions, seen = Functions("gemm", dt.float64), []
    workers = [threading.Thread(target=lambda name=name: seen.append(functions[name]))
               for name in ("tall", "small", "tall", "pack_b")]
    settling = [threading.Thread(target=lambda: functions.settle("tall")) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for worker in settling:
        worker.start()
    for worker in settling:
        worker.join()
    assert made == [("tall", True), ("tall", False)] and len(set(seen)) == 3


def test_an_indirect_function_runs_what_was_set_last() -> None:
    import ctypes

    from twofold.codegen import llvm_module
    text = "\n".join(f"define i64 @f{n}(i64 %a, i64 %b) {{\n  %c = add i64 %a, {n}\n  %d = mul i64 %c, %b\n"
                     "  ret i64 %d\n}" for n in range(4))
    image = Image([llvm_module.object_code(llvm_module.verified(text))], [f"f{n}" for n in range(4)])
    code = [image.address(f"f{n}") for n in range(4)]
    functions = indirect.Indirect({"x": code[0], "y": code[1]})
    calls = {name: ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(address)
             for name, address in functions.addresses.items()}
    assert (calls["x"](5, 7), calls["y"](5, 7)) == (35, 42)
    functions.set({"x": code[2], "y": code[3]})
    assert (calls["x"](5, 7), calls["y"](5, 7)) == (49, 56)


def test_what_is_due_later_waits_unless_somebody_does(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    tiers.wait()
    tiers.request(lambda: done.append("later"), 1e6)
    tiers.request(lambda: done.append("now"))
    tiers.request(lambda: done.append("soon"), 0.01)
    while len(done) < 2:
        threading.Event().wait(0.001)
    assert done == ["now", "soon"]
    tiers.wait()
    assert done == ["now", "soon", "later"]
    tiers.request(lambda: done.append("late"), 1e6)  # the hurry has ended
    threading.Event().wait(0.05)
    assert done[-1] == "later"
    tiers.wait()
    assert done[-1] == "late"


def test_stored_code_is_forgotten(held: list[object]) -> None:
    functions = Functions("gemm", dt.float32)
    functions["tall"]
    symbols, depends = functions._symbols("tall"), functions._depends()
    assert kernels.stored(symbols, depends) is None and kernels.stored(symbols, [*depends, "first tier"])
    functions.settle("tall")
    assert kernels.stored(symbols, depends) and kernels.stored(symbols, [*depends, "first tier"]) is None
    assert np.all([a > 0 for a in functions.values()]) and generated.AT_ONCE > tiers.AT_ONCE
