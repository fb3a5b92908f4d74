"""The benchmark of GPUs runs: each case in a small size, held to NumPy in float64 or to the processor's bits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu.devices import HARDWARE

GELU = 0.7978845608028654


def drawn(seed: int, *shape: int) -> np.ndarray:
    """The numbers that the benchmark draws."""
    return np.random.default_rng(seed).normal(size=int(np.prod(shape))).astype(np.float32).astype(
        np.float64).reshape(shape)


def expected() -> dict[str, np.ndarray]:
    """What cases that are formulas give."""
    x, rows = drawn(1, 512), drawn(1, 3, 40)
    e, d = np.exp(rows - rows.max(1, keepdims=True)), rows - rows.mean(1, keepdims=True)
    steps = drawn(0, 16, 16)
    for n in range(1, 4):
        steps = steps @ (drawn(n, 16, 16) * 0.25)
    results = {"copy": -x, "gelu": 0.5 * x * (1 + np.tanh(GELU * (x + 0.044715 * x**3))), "softmax": e / e.sum(
        1, keepdims=True), "layer_norm": d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5),
        "sum": drawn(1, 9000).sum(), "small_steps": steps}
    for name, size in (("4096", 40), ("8192", 48)):
        for kind in ("", "_tf32", "_bf16"):
            results[f"matmul_{name}{kind}"] = drawn(1, size, size) @ drawn(2, size, size)
    return results


def far(case: str) -> float:
    return {"_tf32": 4e-3, "_bf16": 2e-2}.get(case[-5:], 1e-4)


def test_cases_run_and_give_what_they_should() -> None:
    script = Path(__file__).with_name("measured.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    results = said["results"]
    assert results.keys() >= expected().keys()
    for case, want in expected().items():
        flat = np.asarray(want).reshape(-1)
        some = flat[::max(1, len(flat) // 512)]
        np.testing.assert_allclose(results[case][:-1], some, rtol=0, atol=far(case) * np.abs(flat).max(), err_msg=case)
    for case in ("cnn_b_step", "transformer_step"):
        assert results[case] == results[f"{case} on the host"]
    assert results["mlp_step"][0] > results["mlp_step"][2] > 0
    assert "copy, twofold: 0.004096 GB/s, 1.00 of copying" in said["rates"] and "TFLOP/s" in said["rates"]


def test_without_a_gpu_peers_are_dashes(tmp_path: Path) -> None:
    runner = Path(__file__).parents[2] / "benchmarks" / "runner.py"
    if HARDWARE:
        pytest.skip("this machine has one")
    command = [sys.executable, runner, "gpu", "--rounds", "1", "--peers", "twofold,cupy", "--cases", "call_10", "--out",
               tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "gpu.json").read_text())["median"] == {"call_10": {}}
