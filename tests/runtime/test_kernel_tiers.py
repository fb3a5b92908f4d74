"""Kernels of eager ops in two tiers: when better code is made, who runs it, and that results stay the same."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quick.start import python

import twofold as tf
from twofold.codegen import llvm_cpu
from twofold.eager import entries
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.scalar import Reduction
from twofold.runtime import kernels, native, tiers
from twofold.runtime.launch import MapFamily, ReduceFamily

pytestmark = pytest.mark.skipif(not tiers.enabled(), reason="there is one tier here")

Made = list[bool]  # for each kernel that was compiled, whether for the first tier


@pytest.fixture
def made(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    tiers_of: Made = []
    compile_kernel = llvm_cpu.compile_kernel

    def compiled(kernel: Any, name: str, *, first: bool = False) -> bytes:
        tiers_of.append(first)
        return compile_kernel(kernel, name, first=first)
    monkeypatch.setattr(llvm_cpu, "compile_kernel", compiled)
    return tiers_of


def a_map(factor: int = 10) -> MapFamily:
    """A map that no other test has: bodies are told apart by identity in a process, and by their kernels on disk."""
    return MapFamily("growth", lambda s, x: s.mul(s.exp(x), factor), (dt.float32,), (dt.float32,))


def a_sum() -> ReduceFamily:
    return ReduceFamily("total", Reduction(lambda s, a, b: s.add(a[0], b[0]), lambda dtypes: (0,)), (dt.float32,),
                        (dt.float32,))


def sample(count: int) -> np.ndarray:
    return np.linspace(-3, 3, count, dtype=np.float32)


def test_many_runs_repay_better_code(made: Made) -> None:
    family, x = a_map(), sample(100)
    results = {family((x,), x.shape)[0].tobytes() for _ in range(900)}
    assert made == [True]
    for _ in range(200):
        results.add(family((x,), x.shape)[0].tobytes())
    tiers.wait()
    assert made == [True, False]
    results.update(family((x,), x.shape)[0].tobytes() for _ in range(3))
    assert len(results) == 1


def test_a_run_that_does_much_waits_for_better_code(made: Made) -> None:
    family, x = a_map(), sample(1 << 20)
    few = family((x[:1000],), (1000,))[0]
    assert made == [True]
    whole = family((x,), x.shape)[0]
    assert made == [True, False]
    assert few.tobytes() == whole[:1000].tobytes()


def test_a_first_run_that_does_much_is_of_better_code(made: Made) -> None:
    family, x = a_sum(), sample(1 << 23).reshape(8, -1)
    family((x,), (1,))
    assert made[0] is False and made.count(True) <= 1  # what joins the sums of parts


@pytest.mark.parametrize("axes", [(), (0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_reductions(axes: tuple[int, ...], made: Made) -> None:
    family, x = a_sum(), np.random.default_rng(0).normal(size=(5, 7, 40)).astype(np.float32)
    before = family((x,), axes)[0]
    for compiled in family._variants.values():
        assert compiled.is_first
        compiled.settle()
    after = family((x,), axes)[0]
    assert before.tobytes() == after.tobytes() and set(made) == {True, False}


def test_without_tiers_there_is_one(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOFOLD_TIERS", "0")
    a_map()((sample(10),), (10,))
    assert made == [False]


def test_the_code_on_disk_is_the_best_that_was_made(made: Made, empty_cache: Path) -> None:
    family, x = a_map(), sample(10)
    wanted = family((x,), x.shape)[0].tobytes()
    assert len(list(empty_cache.glob("kernels/*/*.bin"))) == len(list(empty_cache.glob("kernels/*/*.py"))) == 1
    assert a_map()((x,), x.shape)[0].tobytes() == wanted and made == [True]  # found there
    for compiled in family._variants.values():
        compiled.settle()
    assert len(list(empty_cache.glob("kernels/*/*.bin"))) == len(list(empty_cache.glob("kernels/*/*.py"))) == 1
    later = a_map()
    assert later((x,), x.shape)[0].tobytes() == wanted and made == [True, False]
    assert not any(c.is_first for c in later._variants.values())


def test_code_that_cannot_be_made_leaves_what_there_is(made: Made, monkeypatch: pytest.MonkeyPatch,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    family, x = a_map(), sample(10)
    wanted = family((x,), x.shape)[0].tobytes()

    def fails(*args: Any, **kwargs: Any) -> bytes:
        raise MemoryError("no room")
    monkeypatch.setattr(llvm_cpu, "compile_kernel", fails)
    monkeypatch.setenv("TWOFOLD_LOG", "cache")
    for _ in range(1100):
        assert family((x,), x.shape)[0].tobytes() == wanted
    tiers.wait()
    assert family((x,), x.shape)[0].tobytes() == wanted
    assert "no better code: MemoryError: no room" in capsys.readouterr().err


@pytest.mark.skipif(not native.available(), reason="native entries are off")
def test_entries_take_code_that_stays(made: Made) -> None:
    addresses: list[int] = []
    family = a_map()
    family.when_best("v", addresses.append)
    assert addresses == []
    compiled, = family._variants.values()
    first = compiled.address
    compiled.settle()
    family.when_best("v", addresses.append)
    assert addresses == [compiled.address] * 2 and compiled.address != first


@pytest.mark.skipif(not native.available(), reason="native entries are off")
def test_an_op_comes_to_its_entry() -> None:
    """The table of an op's entry gets the kernel when that has its best code; it has one from then on."""
    x = tf.constant([1, 2], tf.uint16)
    slot: Callable[[], list[int]] = lambda: list(entries.TABLES[ops.multiply]._memory)  # noqa: E731
    before = slot()
    for _ in range(1100):
        assert (x * x).numpy().tolist() == [1, 4]
    tiers.wait()
    assert before != slot() or any(before)
    assert (x * x).numpy().tolist() == [1, 4]


def test_threads_that_run_while_code_is_exchanged(made: Made) -> None:
    for factor in range(10):
        family, x = a_map(factor), sample(4000).reshape(40, 100)
        wanted, wrong = family((x,), x.shape)[0].tobytes(), []

        def work(family: MapFamily = family, x: np.ndarray = x, wanted: bytes = wanted,
                 wrong: list[int] = wrong) -> None:
            for n in range(400):
                y = family((x[:, ::2] if n % 2 else x,), (40, 50) if n % 2 else x.shape)[0]
                if not n % 2 and y.tobytes() != wanted:
                    wrong.append(n)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
    tiers.wait()
    assert made.count(False) >= 10


FORK = """
import os, sys
import twofold as tf
from twofold.runtime import kernels, tiers
x = tf.ones([50])
wanted = tf.exp(x).numpy().tobytes()
for _ in range(1100):
    tf.exp(x)
child = os.fork()
for _ in range(1100):
    assert (tf.exp(x).numpy().tobytes(), tf.sin(x).shape) == (wanted, (50,))
tiers.wait()
assert not any(c.is_first for c in kernels._compiled.values() if c.name.startswith(("exp", "sin")))
if child:
    assert os.waitpid(child, 0)[1] == 0
    print("done")
else:
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forks(tmp_path: Path) -> None:
    done = subprocess.run(python("-W", "ignore", "-c", FORK), capture_output=True, text=True, timeout=120,
                          env={**os.environ, "TWOFOLD_CACHE_DIR": str(tmp_path)})
    assert (done.stdout.strip(), done.stderr) == ("done", "")


def test_kernels_of_an_op_can_be_settled(made: Made) -> None:
    x = sample(10)
    family, other = a_map(), a_sum()
    family((x,), x.shape)
    other((x,), (0,))
    kernels.settle("growth")
    assert not any(c.is_first for c in family._variants.values())
    assert all(c.is_first for c in other._variants.values())
