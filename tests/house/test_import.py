"""`import twofold` is quick and quiet: slow libraries wait for their first use, and nothing is printed or warned of."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

# What must not be loaded by the import alone.
SLOW = {"numba", "llvmlite", "networkx", "scipy", "malt", "sklearn", "matplotlib", "pandas", "torch", "jax",
        "tensorflow"}
# Modules of Python's own that take a millisecond or more, unless what we stand on loads them anyway; and of ours what
# only a function that is compiled needs.
SLOW_STANDARD = {"asyncio", "base64", "concurrent", "dataclasses", "decimal", "fractions", "hashlib", "json", "logging",
                 "pathlib", "pprint", "random", "secrets", "shutil", "subprocess", "tempfile", "unittest"}
COMPILER = {"twofold.codegen.fusion", "twofold.codegen.gemm", "twofold.codegen.llvm_cpu", "twofold.codegen.planner",
            "twofold.ir.autodiff", "twofold.ir.graph_text", "twofold.ir.linearise", "twofold.ir.passes",
            "twofold.runtime.compiled", "twofold.runtime.program", "twofold.tracer.function",
            "twofold.tracer.gradients"}


def run(code: str) -> subprocess.CompletedProcess[str]:
    """`code` in an interpreter of its own, where every warning is an error."""
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)


def loaded_by(code: str) -> set[str]:
    """The modules that are loaded after `code`."""
    probe = run(f"import sys\n{code}\nprint(*sys.modules)")
    assert probe.returncode == 0, probe.stderr
    return set(probe.stdout.splitlines()[-1].split())


def test_import_loads_nothing_slow():
    loaded = loaded_by("import twofold")
    assert "twofold" in loaded
    assert loaded & SLOW == set()
    assert loaded & SLOW_STANDARD <= loaded_by("import numpy, ml_dtypes")
    assert loaded & COMPILER == set()


def test_what_must_not_be_loaded_is_there():
    assert all(importlib.util.find_spec(name) is not None for name in SLOW_STANDARD | COMPILER)


def test_an_op_from_the_cache_loads_no_compiler():
    code = "import twofold as tf\ntf.ones([3]) + tf.ones([3])"
    loaded_by(code)  # compiles where nothing is stored yet
    assert loaded_by(code) & (SLOW | COMPILER) == set()


def test_the_probe_sees_what_is_loaded():
    assert "networkx" in loaded_by("import networkx")


def test_import_prints_nothing():
    done = run("import twofold")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
