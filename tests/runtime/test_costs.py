"""What products cost here: the caches that the system tells of, costs that are measured and kept, plans that follow."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quick.start import python

import twofold as tf
from twofold.codegen import gemm_shapes as gemm
from twofold.codegen.matrices import Matrices
from twofold.codegen.target import CACHES, Caches
from twofold.ir import dtypes as dt
from twofold.runtime import cache, caches, costs, product_units, products, tuning
from twofold.runtime.costs import USUAL, Costs

# Costs under which products take each of the ways that there are.
CHEAP, DEAR = 0.0, 1e6
EXTREMES = {
    "usual": USUAL,
    "packing costs nothing": USUAL._replace(pack_a=CHEAP, pack_b=CHEAP, start=CHEAP, far=DEAR, crowded=DEAR),
    "packing costs most": USUAL._replace(pack_a=DEAR, pack_b=DEAR, start=DEAR),
    "tiles cost most": USUAL._replace(tile=DEAR, near=DEAR),
    "nothing costs anything": Costs(*[CHEAP] * len(Costs._fields)),
}
SIZES = [(3, 5, 7), (64, 64, 64), (120, 512, 300), (130, 96, 257), (200, 33, 16), (40, 1024, 260), (600, 64, 300)]


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has products planned by given costs."""
    def choose(values: Costs) -> None:
        monkeypatch.setattr(costs, "current", lambda: values)
    return choose


def system(folder: Path, *levels: tuple[int, str, str, str, str]) -> Path:
    """A folder like the system's, with (level, type, size, ways, processors that share it) of each cache."""
    for number, values in enumerate(levels):
        entry = folder / f"index{number}"
        entry.mkdir()
        for name, value in zip(("level", "type", "size", "ways_of_associativity", "shared_cpu_list"), values,
                               strict=True):
            (entry / name).write_text(f"{value}\n")
    return folder


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64, dt.bfloat16, dt.int8],
                         ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("flips", list(itertools.product([False, True], repeat=2)), ids=str)
def test_costs_decide_the_way_and_never_the_bits(dtype: Any, flips: tuple[bool, bool], chosen: Any) -> None:
    rng, modes = np.random.default_rng(0), set()
    for m, n, k in SIZES:
        a, b = ((40 * rng.standard_normal(shape[::-1] if flip else shape)).astype(dtype.np)
                for shape, flip in zip(((m, k), (k, n)), flips, strict=True))
        results = {}
        for name, values in EXTREMES.items():
            chosen(values)
            results[name] = products.Product(dtype, a.shape, b.shape, *flips)([a, b]).tobytes()
            x = Matrices(m, n, k, (1, m) if flips[0] else (k, 1), (1, k) if flips[1] else (n, 1), n)
            modes.add(products.plan(x, dtype, 1).integers[0])
        assert len(set(results.values())) == 1, results.keys()
    assert gemm.PACKED in modes and len(modes) == 2  # else the costs decided nothing


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_programs_and_batches_have_the_bits_of_calls(threads: int, chosen: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = (tf.constant(rng.standard_normal(shape), tf.float32) for shape in ((3, 150, 280), (280, 544)))
    before = tf.config.threading.get_intra_op_parallelism_threads()
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    try:
        results = set()
        for values in EXTREMES.values():
            chosen(values)
            results |= {fn(a, b).numpy().tobytes() for fn in (
                tf.function(lambda a, b: tf.matmul(a, b)), lambda a, b: tf.reshape(tf.matmul(a, b), [3, 150, 544]))}
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(before)
    assert len(results) == 1


def test_hostile_rows_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """B is packed before many rows of A read it, where its rows crowd one place of the caches or it lies far away."""
    near = Caches(64, 48 << 10, 1280 << 10, 12, 20)
    monkeypatch.setattr(caches, "of_host", lambda: near)
    monkeypatch.setattr(costs, "current", lambda: USUAL)
    row = near.second // near.second_ways // 4

    def mode(m: int, k: int, n: int, step: int) -> int:
        return products.plan(Matrices(m, n, k, (k, 1), (step, 1), n), dt.float32, 1).integers[0]
    assert mode(512, 256, 256, 256 + 16) == gemm.DIRECT
    assert mode(512, 256, 256, row) == gemm.PACKED
    assert mode(14, 256, 256, row) == gemm.DIRECT  # nobody reads it twice
    assert mode(1024, 1000, 1000, 1000) == gemm.PACKED


def test_rows_that_caches_hold() -> None:
    x = Caches(nearest=32 << 10, ways=8, second=1 << 20, second_ways=16)
    assert [x.rows_held(stride) for stride in (64, 128, 4000, 4096, 12288)] == [512, 256, 512, 8, 8]
    assert [x.rows_held(stride, second=True) for stride in (4096, 1 << 16, 3 << 16)] == [256, 16, 16]
    assert x.rows_held(0) == 8


@pytest.mark.skipif(sys.platform != "linux", reason="reads folders as Linux has them")
def test_caches_are_those_of_the_system(tmp_path: Path) -> None:
    usable = sorted(os.sched_getaffinity(0))
    mine = str(usable[0])
    folder = system(tmp_path, (1, "Data", "48K", "12", mine), (1, "Instruction", "32K", "8", mine),
                    (2, "Unified", "1280K", "20", mine), (3, "Unified", "48M", "12", "0-1"))
    assert caches.read(folder) == Caches(64, 48 << 10, 1280 << 10, 12, 20)
    assert caches.of_host().nearest <= caches.of_host().second
    if len(usable) > 1:  # two threads of one core share its caches
        for level in ("index0", "index2"):
            (folder / level / "shared_cpu_list").write_text(f"{usable[0]},{usable[1]}")
        assert caches.read(folder) == Caches(64, 24 << 10, 640 << 10, 12, 20)


@pytest.mark.parametrize("levels", [
    [], [(1, "Data", "48K", "12", "0")], [(1, "Data", "", "12", "0"), (2, "Unified", "1M", "8", "0")],
    [(1, "Data", "48K", "0", "0"), (2, "Unified", "1M", "8", "0")],
    [(1, "Data", "2M", "8", "0"), (2, "Unified", "1M", "8", "0")],
    [(1, "Data", "32K", "8", "0"), (2, "Unified", "99999999999G", "8", "0")],
    [(1, "Data", "32K", "8", "x"), (2, "Unified", "1M", "8", "0")],
    [(1, "Data", "32K", "8", "0-99999999999"), (2, "Unified", "1M", "8", "\0")]], ids=str)
def test_caches_that_make_no_sense_are_the_usual_ones(levels: list[Any], tmp_path: Path) -> None:
    assert caches.read(system(tmp_path, *levels)) == CACHES
    assert caches.read(tmp_path / "nowhere") == CACHES


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("TWOFOLD_CACHE", "1")
    monkeypatch.setenv("TWOFOLD_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TWOFOLD_TUNING", raising=False)
    costs._kept.cache_clear()
    yield tmp_path
    costs._kept.cache_clear()


def test_costs_are_kept_until_they_make_no_sense(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert costs.current() is USUAL
    mine = USUAL._replace(far=3.25, start=17.0)
    costs.keep(mine)
    costs._kept.cache_clear()
    assert costs.current() == costs.kept() == mine
    monkeypatch.setenv("TWOFOLD_TUNING", "0")
    assert costs.current() is USUAL
    monkeypatch.delenv("TWOFOLD_TUNING")
    for damaged in (b"", b"null", b"[]", b"{}", b"{", b'{"tile": "x"}', b"\xff", mine._replace(far=float("nan")),
                    mine._replace(near=-1.0), mine._replace(near=float("inf")), mine._replace(near=1e300)):
        if isinstance(damaged, Costs):
            costs.keep(damaged)
        else:
            cache.write(costs.KIND, costs._key(), damaged)
        assert costs.kept() is None, damaged


def test_measured_costs_are_sensible() -> None:
    values = tuning.measured()
    assert all(np.isfinite(value) and value >= 0 for value in values)
    assert values.pack_b > 0
    assert values._replace(**{name: getattr(USUAL, name) for name in (
        "pack_a", "pack_b", "far", "crowded", "thrashed", "start")}) == USUAL


def test_threads_that_wait_for_other_programs_are_not_what_starting_them_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_SAMPLES", 1)
    monkeypatch.setattr(tuning, "_start", lambda: 1.0)  # a second
    assert USUAL.start < tuning.measured().start <= 100 * USUAL.start


def test_the_command_keeps_what_it_measures(folder: Path) -> None:
    def twofold(*words: str, **variables: str) -> str:
        run = subprocess.run(python("-m", "twofold", *words), capture_output=True, text=True,
                             env={**os.environ, **variables}, check=False)
        return run.stdout if run.returncode == 0 else run.stderr
    cache.write("programs", "ab" * 32, b"an old plan")
    assert "pack b" in twofold("tune")
    assert costs.kept() not in (None, USUAL)
    assert "programs" not in cache.usage()
    assert '"measured": false' in twofold("tune", "--reset", "--json")
    assert costs.kept() is None
    assert "nowhere to keep" in twofold("tune", TWOFOLD_CACHE="0")


def test_other_processors_are_planned_for_by_the_usual_costs(chosen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from twofold.codegen import target

    chosen(EXTREMES["packing costs nothing"])
    monkeypatch.setattr(caches, "of_host", lambda: Caches(nearest=8 << 10, second=16 << 10))
    x = Matrices(512, 256, 256, (256, 1), (272, 1), 256)
    here = product_units.choose(x, dt.float32, 1, False)
    with target.use(target.of("x86_64-unknown-linux-gnu", "skylake-avx512")):
        mode = product_units.choose(x, dt.float32, 1, False)[2]
    assert here[2] == gemm.PACKED and mode == gemm.DIRECT
