"""Programs on disk: found by equal graphs in other processes, never trusted when damaged, errors at the live line."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from quick.start import python

from twofold.codegen import llvm_module, program
from twofold.ir import dims as dm
from twofold.ir.graph_text import parse
from twofold.runtime import cache, compiled
from twofold.runtime.compiled import Native
from twofold.runtime.cpu import cpu
from twofold.runtime.description import Buffer, CheckInfo, Description, DetailArguments, ProgramCode, pack, unpack
from twofold.runtime.identity import Sources

GRAPH = """graph f(%0: f32[n,3], %1: f32[3]) {
  %2 = multiply(%0, %1) : f32[n,3]
  %3 = constant [1.5, -0.0, nan] : f32[3]
  %4 = add(%2, %3) : f32[n,3]
  %5 = reduce_sum(%4) {axis: [0]} : f32[3]
  return %4, %5
}"""


@pytest.fixture
def folder(empty_cache, monkeypatch):
    monkeypatch.setattr(compiled, "_SOURCES", Sources(list))  # ours may be edited while tests run
    monkeypatch.setattr(compiled, "environment", lambda: "of the tests")
    return empty_cache


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("programs/*/*.bin"))


def run(native: Native) -> list[bytes]:
    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([2, 3, 4], np.float32)
    return [a.tobytes() for a in native([x, y], {"n": 4})]


def never(*args, **kwargs):
    raise AssertionError("it was compiled again")


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_looked_for_as_before(folder, enabled, monkeypatch):
    try:
        (gc.enable if enabled else gc.disable)()
        Native.of_graph(parse(GRAPH), cpu)
        assert gc.isenabled() is enabled
        monkeypatch.setattr(program, "emit", never)
        with pytest.raises(AssertionError, match="compiled again"):
            Native.of_graph(parse(GRAPH.replace("1.5", "1.25")), cpu)
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_a_stored_program_is_neither_lowered_nor_compiled(folder, monkeypatch):
    first = Native.of_graph(parse(GRAPH), cpu)
    assert not first.cached and len(entries(folder)) == 1
    monkeypatch.setattr(program, "emit", never)
    monkeypatch.setattr(llvm_module, "object_code", never)
    second = Native.of_graph(parse(GRAPH), cpu)
    assert second.cached and run(second) == run(first)
    with pytest.raises(AssertionError, match="compiled again"):
        Native.of_graph(parse(GRAPH.replace("1.5", "1.25")), cpu)


_DENSE = """
import twofold as tf
w = tf.Variable(tf.ones([3, 2]))
@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.softmax(tf.matmul(x, w)))
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss
step(tf.ones([4, 3]))
step(tf.ones([4, 3]) * 0.5 + tf.ones([3]))
"""
_CONVOLUTION = """
import twofold as tf
@tf.function
def loss(x, kernel):
    return tf.reduce_sum(tf.nn.conv2d(x, kernel, 1, "SAME"))
assert loss(tf.ones([2, 16, 16, 3]), tf.ones([3, 3, 3, 4])) == 50784.0
"""
_LOADED = """
import sys
print([m for m in ("llvmlite.binding", "numba", "malt", "twofold.codegen.program") if m in sys.modules])
"""


@pytest.mark.parametrize("source", [_DENSE, _CONVOLUTION])
def test_a_process_with_a_filled_cache_loads_no_compiler(tmp_path, source):
    """Nor does it meet the lowerings, which load what provides the kernels that all programs share."""
    environment = {**os.environ, "TWOFOLD_CACHE_DIR": str(tmp_path)}
    (tmp_path / "program.py").write_text(source + _LOADED)
    said = [subprocess.run(python(tmp_path / "program.py"), env=environment, check=True, timeout=120,
                           capture_output=True, text=True).stdout.strip() for _ in range(2)]
    assert said == ["['llvmlite.binding', 'twofold.codegen.program']", "[]"]  # and numba never, nor malt


def test_without_a_cache_nothing_is_written(folder, monkeypatch):
    monkeypatch.setenv("TWOFOLD_CACHE", "0")
    assert run(Native.of_graph(parse(GRAPH), cpu)) and not list(folder.rglob("*.bin"))


@pytest.mark.parametrize("damage", [
    lambda b: b[:-1], lambda b: b[:60], lambda b: b"", lambda b: b[:100] + bytes([b[100] ^ 1]) + b[101:],
    lambda b: b + b"x"])
def test_damaged_entries_are_made_again(folder, damage):
    want = run(Native.of_graph(parse(GRAPH), cpu))
    (path,) = entries(folder)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    again = Native.of_graph(parse(GRAPH), cpu)
    assert not again.cached and run(again) == want and path.read_bytes() == whole


def test_a_program_is_found_whatever_its_values_are_called(folder):
    want = run(Native.of_graph(parse(GRAPH), cpu))
    renamed = parse(GRAPH.replace("graph f(%0:", "graph other(%0 x:").replace("%4 = add", "%4 total = add"))
    again = Native.of_graph(renamed, cpu)
    assert again.cached and run(again) == want and len(entries(folder)) == 1


def test_nothing_is_kept_of_sources_that_changed(folder, tmp_path, monkeypatch):
    source = tmp_path / "source.py"
    source.write_text("1")
    sources = Sources(lambda: [str(source)])
    sources.digests()
    monkeypatch.setattr(compiled, "_SOURCES", sources)
    Native.of_graph(parse(GRAPH), cpu)
    assert len(entries(folder)) == 1
    source.write_text("2")
    monkeypatch.setitem(sys.modules, "imported_afterwards", types.ModuleType("imported_afterwards"))
    Native.of_graph(parse(GRAPH.replace("1.5", "1.25")), cpu)
    assert len(entries(folder)) == 1


@pytest.mark.parametrize("stored", [b"", b"{}\n", b"[]\n", b'{"format": 1}\n', b"null\n", b"\xff\n",
                                    b'{"format": 99}\n'])
def test_other_forms_are_not_read(stored):
    assert unpack(stored) is None


def test_a_whole_entry_of_another_form_is_made_again(folder):
    want = run(Native.of_graph(parse(GRAPH), cpu))
    (path,) = entries(folder)
    key = path.parent.name + path.stem
    for data in (b"rubbish", b"{\"format\": 1}\nmore"):
        cache.write("programs", key, data)
        assert run(Native.of_graph(parse(GRAPH), cpu)) == want


def test_a_description_comes_back_as_it_was():
    n = dm.symbol("n")
    checks = [CheckInfo("gather", 4, "index"), CheckInfo(None, None, "")]
    about = Description([((n + 1, 3), "float32"), ((), "bfloat16")], ["n"], 64 * n, 5, n + 2,
                        [np.array([[1.5]], np.float64)], {1: 0}, [("gemm", "float32", "tall")],
                        {2: (checks, DetailArguments("k", [(None, 8 * n, "int32", 0, [n, 2])], [n // 2]))},
                        [Buffer("add", 4 * n, 0, 1, 0)])
    first = ProgramCode([b"\x7fcode\n\n", b"", b"more"], [b"module", b"", b"\n"], quick=True)
    stored = pack(about, first)
    back, code = unpack(stored)
    assert code == first
    assert unpack(stored[:-1]) is None and unpack(stored + b"x") is None
    for name in Description.__slots__:
        if name != "constants":
            assert getattr(back, name) == getattr(about, name), name
    assert back.constants[0].tolist() == [[1.5]] and back.constants[0].dtype == np.float64


PROGRAM = """
import sys, numpy as np, twofold as tf
{blank}
@tf.function
def f(x, i):
    y = tf.tanh(x) * 2.0
    return tf.gather(y, i)
x = tf.constant(np.arange(5, dtype=np.float32))
print(f(x, tf.constant([1, 3])).numpy().tobytes().hex())
try:
    f(x, tf.constant([1, 9]))
except tf.errors.InvalidArgumentError as e:
    print(str(e).splitlines()[-1])
run = list(f._families.values())[0].traces[0].runner
print(run.program.whole.cached)
"""


def process(folder: Path, name: str, blank: str = "", **more: str) -> subprocess.Popen:
    path = folder / name
    path.write_text(PROGRAM.replace("{blank}", blank))
    return subprocess.Popen(python(str(path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "TWOFOLD_CACHE_DIR": str(folder / "cache"), **more})


def told(p: subprocess.Popen) -> list[str]:
    out, err = p.communicate(timeout=120)
    assert p.returncode == 0, err
    return out.splitlines()


def test_another_process_finds_it_and_tells_its_own_line(tmp_path):
    first = told(process(tmp_path, "one.py"))
    second = told(process(tmp_path, "two.py", "\n\n\n"))
    assert [first[2], second[2]] == ["False", "True"] and first[0] == second[0]
    assert "one.py:7 in f(): return tf.gather(y, i)" in first[1]
    assert "two.py:10 in f(): return tf.gather(y, i)" in second[1]


def test_processes_at_one_time_and_killed_writers(tmp_path):
    many = [process(tmp_path, f"p{n}.py") for n in range(3)]
    killed = [process(tmp_path, f"k{n}.py") for n in range(2)]
    for p in killed:
        p.kill()
        p.communicate(timeout=300)
    results = [told(p) for p in many]
    assert len({r[0] for r in results}) == 1
    assert told(process(tmp_path, "last.py"))[2] == "True"


def test_the_folder_is_bounded(folder):
    for n in range(6):
        Native.of_graph(parse(GRAPH.replace("1.5", f"{n}.5")), cpu)
    size = sum(p.stat().st_size for p in entries(folder))
    cache.trim(size // 2)
    left = entries(folder)
    assert 0 < sum(p.stat().st_size for p in left) <= size // 2 and len(left) < 6
