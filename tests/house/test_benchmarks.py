"""The benchmark runner measures what is there, refuses to time results that differ, and asserts no time."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys

import pytest
from house.tree import ROOT

_SPEC = importlib.util.spec_from_file_location("benchmark_runner", ROOT / "benchmarks" / "runner.py")
runner = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(runner)


def test_a_run_prints_a_table_and_writes_json(tmp_path):
    command = [sys.executable, ROOT / "benchmarks" / "runner.py", "eager", "--rounds", "1", "--out", tmp_path,
               "--peers", "numpy,twofold", "--cases", "add_10,matmul_10,import"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads((tmp_path / "eager.json").read_text())
    assert set(report["median"]) == {"add_10", "matmul_10", "import"}
    for row in report["median"].values():
        assert row["numpy"]["seconds"] > 0
        assert row["twofold"]["seconds"] > 0
        assert row["numpy"]["ratio"] > 0
    assert "a + b, 10 floats" in done.stdout


def test_a_version_before_is_a_peer_where_an_interpreter_of_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("TWOFOLD_BENCH_PYTHON_BEFORE", sys.executable)
    command = [sys.executable, ROOT / "benchmarks" / "runner.py", "eager", "--rounds", "1", "--out", tmp_path,
               "--peers", "twofold,before", "--cases", "add_10,first_op"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    for row in json.loads((tmp_path / "eager.json").read_text())["median"].values():
        assert set(row) == {"twofold", "before"}
        assert row["before"]["ratio"] > 0


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
