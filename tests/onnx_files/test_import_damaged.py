"""Damaged ONNX files: a sample of what `tests/fuzz/onnx_mutations.py` tries, under its limits on memory and time."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from quick.start import python

SCRIPT = Path(__file__).resolve().parents[1] / "fuzz" / "onnx_mutations.py"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size of a process is read there")
def test_changed_files_end_with_a_model_or_a_clear_error():
    done = subprocess.run(python(SCRIPT, "--count", "180", "--seed", "3"), capture_output=True, text=True,
                          env={**os.environ, "TWOFOLD_VERIFY": "0"})  # as files are imported elsewhere
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "'model'" in done.stdout and "'DataLossError'" in done.stdout
