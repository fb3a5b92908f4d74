"""The benchmark runner measures what is there, refuses to time results that differ, and asserts no time."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys

import pytest
from house.tree import ROOT

_SPEC = importlib.util.spec_from_file_location("benchmark_runner", ROOT / "benchmarks" / "runner.py")
runner = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(runner)


def run(command, **more):
    """What a run of the benchmark says that only shows that all of it works."""
    return subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, "TWOFOLD_BENCH_SMALL": "1", **more})


def test_a_run_prints_a_table_and_writes_json(tmp_path):
    command = [sys.executable, ROOT / "benchmarks" / "runner.py", "eager", "--rounds", "1", "--out", tmp_path,
               "--peers", "numpy,twofold", "--cases", "add_10,matmul_10"]
    done = run(command)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads((tmp_path / "eager.json").read_text())
    assert set(report["median"]) == {"add_10", "matmul_10"}
    for row in report["median"].values():
        assert row["numpy"]["seconds"] > 0
        assert row["twofold"]["seconds"] > 0
        assert row["numpy"]["ratio"] > 0
    assert "a + b, 10 floats" in done.stdout


def test_a_version_before_is_a_peer_where_an_interpreter_of_it_is_named(tmp_path):
    command = [sys.executable, ROOT / "benchmarks" / "runner.py", "eager", "--rounds", "1", "--out", tmp_path,
               "--peers", "twofold,before", "--cases", "add_10,first_op"]
    done = run(command, TWOFOLD_BENCH_PYTHON_BEFORE=sys.executable)
    assert (done.returncode, done.stderr) == (0, "")
    for row in json.loads((tmp_path / "eager.json").read_text())["median"].values():
        assert set(row) == {"twofold", "before"}
        assert row["before"]["ratio"] > 0


def test_kernels_are_measured_beside_the_limits_of_the_machine(tmp_path):
    command = [sys.executable, ROOT / "benchmarks" / "runner.py", "kernels", "--rounds", "1", "--out", tmp_path,
               "--peers", "numpy,twofold", "--cases",
               "matmul_f32_64,matmul_at,matmul_bias_relu,conv_1x1_7_2048_512_b1,convgrad_3x3_56_128_128_b1,moments_1e7"]
    done = run(command)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads((tmp_path / "kernels.json").read_text())
    assert set(report["limits"]) == {"float32", "float64", "bfloat16", "int8", "copy"}
    assert min(report["limits"].values()) > 0
    assert all(row["twofold"]["seconds"] > 0 for row in report["median"].values())
    assert set(report["median"]["matmul_at"]) == {"numpy", "twofold"}
    assert done.stdout.count("of arithmetic") >= 3 and done.stdout.count("of memory") >= 1
    picture = (tmp_path / "kernels.svg").read_text()
    assert "</svg>" in picture and picture.count("<use ") >= 5  # a mark for each of the products and convolutions


def test_the_least_time_is_that_of_the_narrower_limit():
    spec = importlib.util.spec_from_file_location("benchmark_floors", ROOT / "benchmarks" / "floors.py")
    floors = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(floors)
    limits = {"float32": 1e11, "float64": 5e10, "copy": 1e10}
    assert floors.least((2e9, 8e6, "float32"), limits) == (0.02, "arithmetic")
    assert floors.least((2e9, 8e6, "float64"), limits) == (0.04, "arithmetic")
    assert floors.least((0, 8e7, "float32"), limits) == (0.008, "memory")
    assert runner.floor_cell({"twofold": {"seconds": 0.03}}, (0.02, "memory")) == "1.50 of memory"
    assert runner.floor_cell({}, (0.02, "memory")) == runner.floor_cell({"twofold": {"seconds": 1.0}}, None) == "-"
    assert runner.highest({"copy": 1.0}, None, {"copy": 2.0}) == {"copy": 2.0} and runner.highest(None) == {}


def test_areas_may_measure_bytes():
    row = runner.summary({"torch": [3 << 20, 2 << 20], "twofold": [1 << 20, 1 << 20]}, "bytes")
    assert (runner.cell(row, "torch"), runner.cell(row, "twofold"), runner.cell(row, "jax")) == (
        "2.5 MiB (0.42)", "1 MiB", "-")
    assert [runner.as_size(n) for n in (512, 3 << 30)] == ["0.5 KiB", "3 GiB"]


def test_memory_of_steps_is_measured(tmp_path):
    command = [sys.executable, ROOT / "benchmarks" / "runner.py", "memory", "--rounds", "1", "--out", tmp_path,
               "--peers", "twofold", "--cases", "cnn_b_step"]
    done = run(command)
    assert (done.returncode, done.stderr) == (0, "")
    row, = json.loads((tmp_path / "memory.json").read_text())["median"].values()
    assert row["twofold"]["bytes"] > 1 << 20  # the first convolution's result alone is 3 MiB


def test_what_touches_few_of_many_is_measured(tmp_path):
    command = [sys.executable, ROOT / "benchmarks" / "runner.py", "sparse", "--rounds", "1", "--out", tmp_path,
               "--peers", "twofold"]
    done = run(command)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads((tmp_path / "sparse.json").read_text())["median"]) == 4


def test_figures_are_kept_by_processor(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "RESULTS", tmp_path / "results")

    def report(case, seconds, processor="Some CPU @ 2.80GHz"):
        return {"area": "eager", "date": "2026-01-02", "rounds": 3, "limits": {}, "versions": {"twofold": "1"},
                "machine": {"processor": processor, "cores": 2}, "median": {case: {"twofold": {"seconds": seconds}}}}
    path = runner.keep(report("add", 1.0))
    assert path.name == "some-cpu-2-80ghz-2.json"
    assert runner.keep(report("exp", 2.0)) == runner.keep(report("add", 3.0)) == path
    assert runner.keep(report("add", 4.0, "Other")) != path
    cases = json.loads(path.read_text())["areas"]["eager"]["cases"]
    assert {case: row["twofold"]["seconds"] for case, row in cases.items()} == {"add": 3.0, "exp": 2.0}


@pytest.mark.parametrize(
    ("other", "tolerance", "agrees"),
    [
        ([1.0, 2.0, 3.0], 0.0, True),
        ([1.0, 2.001, 3.001], 1e-3, True),
        ([1.0, 2.1, 3.1], 1e-3, False),
        ([1.0, math.nan, 3.0], 1e-3, False),
        ([1.0, 3.0], 1e-3, False),
    ],
)
def test_results_are_compared(other, tolerance, agrees):
    told = runner.disagreement({"numpy": [1.0, 2.0, 3.0], "torch": other}, tolerance)
    assert (told == "") is agrees


def test_ratios_are_of_the_same_round():
    row = runner.summary({"torch": [1.0, 10.0, 4.0], "twofold": [0.5, 5.0, 8.0]})
    assert row["torch"] == {"seconds": 4.0, "ratio": 0.5}
    assert row["twofold"] == {"seconds": 5.0, "ratio": None}


def test_a_missing_peer_is_a_dash():
    row = runner.summary({"numpy": [2e-6], "twofold": [1e-6]})
    text = runner.table({"add": "a + b"}, {"add": row}, ["numpy", "torch", "twofold"],
                        {"numpy": "2.4", "torch": None, "twofold": "0.1"})
    assert [part.strip() for part in text.splitlines()[-1].split("|")[1:-1]] == ["a + b", "2 us (0.50)", "-", "1 us"]


def test_every_peer_takes_its_turn_at_being_first():
    assert [runner.turned(["a", "b", "c"], n)[0] for n in range(4)] == ["a", "b", "c", "a"]
