"""Stored machine code: loaded without a compiler, rebuilt when damaged, and native entries off when unsure."""

from __future__ import annotations

import ast
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from twofold.runtime import machine, system

START = """
import sys
from twofold.runtime import native
def fn(x, y=2):
    return x + y
print(native.available(), native.guard(fn)(1), "llvmlite" in sys.modules, native.reason())
"""


# The package without its front door, which would start the native entries before a program can change anything.
BARE = """
import importlib.util, sys, types
spec = importlib.util.find_spec("twofold")
sys.modules["twofold"] = types.ModuleType("twofold")
sys.modules["twofold"].__path__ = spec.submodule_search_locations
"""


def start(folder, program=START, **environment):
    variables = {k: v for k, v in os.environ.items() if k != "TWOFOLD_NATIVE_CALL"}
    done = subprocess.run([sys.executable, "-c", BARE + program], capture_output=True, text=True, check=True,
                          env=variables | {"TWOFOLD_CACHE_DIR": str(folder)} | environment)
    return done.stdout.strip()


def stored(folder):
    return sorted(path for path in (folder / "machine").rglob("*") if path.is_file())


@pytest.mark.skipif(not system.fills_code_pages(), reason="code is linked by LLVM on this platform")
def test_the_second_process_compiles_nothing_and_loads_no_compiler(tmp_path):
    assert start(tmp_path) == "True 3 True"
    entries = [(path, path.read_bytes()) for path in stored(tmp_path)]
    assert len(entries) == 1
    assert start(tmp_path) == "True 3 False"
    assert [(path, path.read_bytes()) for path in stored(tmp_path)] == entries


@pytest.mark.parametrize("damage", [b"", b"not code", None])
def test_damaged_code_is_built_again(tmp_path, damage):
    start(tmp_path)
    (path,) = stored(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7] + b"garbage" if damage is None else damage)
    assert start(tmp_path) == "True 3 True"
    assert stored(tmp_path) == [path]
    assert path.read_bytes() == whole


def test_keys_cover_the_files_that_all_code_is_written_with():
    room = pathlib.Path(machine.__file__).parent
    tree = ast.parse((room / "emit.py").read_text())
    modules = [f"{node.module}.{alias.name}" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
               for alias in node.names if node.module is not None and node.module.startswith("twofold")]
    files = {pathlib.Path(importlib.util.find_spec(module).origin) for module in modules}
    assert files and files <= {room.joinpath(name).resolve() for name in machine._COMMON}


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    assert start(tmp_path / "file") == "True 3 True"


LINKED = "from twofold.runtime import system\nsystem.fills_code_pages = lambda: False\n"


def test_code_that_llvm_links(tmp_path):
    assert start(tmp_path, LINKED + START) == "True 3 True"
    assert start(tmp_path, LINKED + START) == "True 3 True"
    assert len(stored(tmp_path)) == 1


@pytest.mark.parametrize(("change", "why"), [
    ("import numpy\nfrom twofold.runtime import native_layout\nnative_layout._FLOAT = 1\n", "float"),
    ("from twofold.runtime import native_core\nnative_core.PYTHON_API += ('Py_NoSuchFunction',)\n", "does not export"),
    ("from twofold.runtime import machine\ndef none(*a): raise OSError('no pages')\n"
     "machine._map = machine._link = none\n", "no pages"),
    ("import sys\nsys.abiflags += 't'\n", "free-threaded"),
    ("import sys\nsys.implementation.name = 'other'\n", "not CPython"),
    ("import os\nos.environ['TWOFOLD_NATIVE_CALL'] = '0'\n", "TWOFOLD_NATIVE_CALL"),
], ids=["layout", "function", "mapping", "threads", "implementation", "setting"])
def test_without_native_entries_functions_are_plain(tmp_path, change, why):
    answer = start(tmp_path, change + START)
    assert answer.startswith("False 3 ")
    assert why in answer


BIND = """
import numpy as np
from twofold.runtime import native
class Tensor:
    __slots__ = ("_memory",)
def slow(x, y):
    return "slow"
entry = native.entry(native.OpTable(), slow, 2, "op")
{change}
native.bind(Tensor)
t = Tensor()
t._memory = np.ones(3)
print(native.available(), entry(t, t), native.entry(native.OpTable(), slow, 2, "op")(t, t), native.reason())
"""


@pytest.mark.parametrize(("change", "available", "why"), [
    ("", True, ""),
    ("class Tensor:\n    __slots__ = ('_b', '__dict__')\n", False, "not a slot"),
    ("class Tensor:\n    _memory = property(lambda s: 1, lambda s, v: None)\n", False, "not a slot"),
    ("def fail(*a): raise RuntimeError('trial')\nnative._try_entry = fail\n", False, "trial"),
], ids=["good", "no slot", "property", "failure"])
def test_a_class_that_cannot_be_bound(tmp_path, change, available, why):
    answer = start(tmp_path, BIND.format(change=change))
    assert answer.startswith(f"{available} slow slow")
    assert why in answer
