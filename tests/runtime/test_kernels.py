"""Compiled kernels across processes: compiled once, then loaded without the compiler."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap
import threading
import types
from pathlib import Path

import numpy as np
import pytest
from house.test_circles import shipped_edges
from house.tree import module_name
from quick.start import python

from twofold.codegen.loop import Kernel, LoopBuilder
from twofold.ir import dtypes as dt
from twofold.runtime import generated, identity, kernels, launch

_PROGRAM = """
    import sys
    import numpy as np
    from twofold.ir import dtypes as dt
    from twofold.ir.scalar import Reduction
    from twofold.runtime.launch import MapFamily, ReduceFamily

    add = MapFamily("add", lambda s, x, y: s.add(x, y), (dt.float32,) * 2, (dt.float32,))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert (add((x, x), (3, 4))[0] == x + x).all() and (add((x.T, x[:, 1]), (4, 3))[0] == x.T + x[:, 1]).all()
    plus = Reduction(lambda s, a, b: s.add(a[0], b[0]), lambda dtypes: (0,))
    total = ReduceFamily("sum", plus, (dt.float32,), (dt.float32,))
    assert (total((x,), (0,))[0] == x.sum(0)).all()
    print(*[name for name in ("numba", "llvmlite.binding") if name in sys.modules])
"""

_GENERATED = """
    import sys
    import numpy as np
    import twofold as tf

    for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
        a, b = tf.ones([40, 300], dtype), tf.ones([300, 50], dtype)
        tf.matmul(a, b), tf.matmul(a[:1], b), tf.matmul(a, a, transpose_b=True), tf.einsum("ij,jk->k", a, b)
    x, k = tf.ones([2, 9, 9, 8]), tf.ones([3, 3, 8, 4])
    with tf.GradientTape() as tape:
        tape.watch([x, k])
        y = tf.nn.conv2d(x, k, 2, "SAME") @ tf.ones([4, 2])
    tape.gradient(y, [x, k])
    tf.nn.depthwise_conv2d(x, tf.ones([3, 3, 8, 1]), [1, 1, 1, 1], "VALID"), tf.nn.max_pool2d(x, 2, 2, "SAME")
    tf.nn.softmax(x), tf.cumsum(x), tf.sort(x), tf.gather(x, [1, 0]), tf.random.normal([4]), tf.linalg.inv(tf.eye(3))
    print(*[name for name in ("numba", "llvmlite.binding") if name in sys.modules])
"""


def run(folder: Path, compiler: str = "llvm", program: str = _PROGRAM) -> str:
    """What compilers a process loads that runs eager ops with a cache in `folder`."""
    environment = {**os.environ, "TWOFOLD_CACHE_DIR": str(folder), "TWOFOLD_KERNELS": compiler}
    done = subprocess.run(python("-c", textwrap.dedent(program)), capture_output=True, text=True,
                          timeout=120, env=environment)
    return done.stdout.strip() if done.returncode == 0 else done.stderr


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    assert run(tmp_path) == "llvmlite.binding"
    sources = sorted(p.read_text() for p in tmp_path.glob("kernels/*/*.py"))
    assert len(sources) == len(list(tmp_path.glob("kernels/*/*.bin"))) >= 4
    assert any(s.startswith("# add vvv\n") and "v0 + v1" in s for s in sources)
    assert run(tmp_path) == ""


def test_kernels_that_programs_share_need_no_compiler_again(tmp_path: Path) -> None:
    """Products and convolutions, whose tiles depend on the processor, and structured ops beside them."""
    assert [run(tmp_path, program=_GENERATED) for _ in range(2)] == ["llvmlite.binding", ""]


def test_numba_compiles_where_it_is_named(tmp_path: Path) -> None:
    run(tmp_path)
    assert run(tmp_path, "numba") == "numba llvmlite.binding"  # the other's code is not taken
    assert run(tmp_path, "numba") == ""
    assert "TWOFOLD_KERNELS=gcc: one of llvm, numba is expected." in run(tmp_path, "gcc")


def test_damaged_object_code_is_compiled_again(tmp_path: Path) -> None:
    run(tmp_path)
    for n, path in enumerate(sorted(tmp_path.glob("kernels/*/*.bin"))):
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2] if n % 2 else content[:200] + b"\xff" * 8 + content[208:])
    assert run(tmp_path) == "llvmlite.binding"
    assert run(tmp_path) == ""


def test_without_a_writable_folder_kernels_live_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run(tmp_path / "file") == "llvmlite.binding"
    assert (tmp_path / "file").read_text() == "in the way"


def fill(value: int) -> Kernel:
    b = LoopBuilder("fill")
    out = b.pointer("out", dt.int64)
    with b.for_(b.start, b.stop) as i:
        b.store(out, i, b.const(value, dt.int64))
    return b.finish()


def test_a_kernel_of_sources_that_changed_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOFOLD_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "source.py").write_text("1")
    sources = identity.Sources(lambda: [str(tmp_path / "source.py")])
    sources.digests()
    monkeypatch.setattr(kernels, "_sources", lambda compiler: sources)
    kernels.make(lambda: fill(5), "llvm")
    assert len(list(tmp_path.glob("cache/kernels/*/*.bin"))) == 1
    (tmp_path / "source.py").write_text("2")
    monkeypatch.setitem(sys.modules, "imported_afterwards", types.ModuleType("imported_afterwards"))
    kernels.make(lambda: fill(6), "llvm")
    assert len(list(tmp_path.glob("cache/kernels/*/*.bin"))) == 1


def test_a_kernel_is_built_once_for_all_threads() -> None:
    built: list[int] = []

    def build() -> Kernel:
        built.append(1)
        return fill(77)

    compiled: list[kernels.Compiled] = []
    workers = [threading.Thread(target=lambda: compiled.append(kernels.get("test once", build))) for _ in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert len(built) == 1 and len({id(f) for f in compiled}) == 1
    assert "fill" in repr(compiled[0]) and compiled[0].weight == 1


def test_both_ways_to_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = kernels.get("test calls", lambda: fill(5))
    out = np.zeros(4, np.int64)
    args = np.array([launch.address_of(out)])
    assert compiled.call(0, 2, launch.address_of(args)) == 0 and out.tolist() == [5, 5, 0, 0]
    assert compiled.call_released(1, 4, launch.address_of(args)) == 0 and out.tolist() == [5, 5, 5, 5]


def test_a_failing_build_leaves_no_trace() -> None:
    def fail() -> Kernel:
        raise TypeError("not this way")

    with pytest.raises(TypeError, match="not this way"):
        kernels.get("test failing", fail)
    assert kernels.get("test failing", lambda: fill(3)).name == "fill"


def test_numba_keeps_its_settings_and_its_users() -> None:
    from numba import config, njit

    before = config.OPT
    kernels.make(functools.partial(fill, int.from_bytes(os.urandom(4), "little")), "numba")  # never in the cache
    assert config.OPT is before

    @njit
    def square(x: int) -> int:
        return x * x

    assert square(12) == 144


def test_the_key_covers_everything_that_code_depends_on() -> None:
    import llvmlite
    import numba

    releases = {"llvm": (llvmlite,), "numba": (llvmlite, numba)}
    assert releases.keys() == kernels.COMPILERS.keys()
    for compiler, packages in releases.items():
        key = " ".join(map(str, kernels.identity(compiler)))
        assert sys.version.split()[0] in key and compiler in key
        for package in packages:
            assert identity.digest(Path(package.__file__).with_name("_version.py").read_bytes()) in key


@pytest.mark.parametrize("family", ["gemm", "conv"])
def test_the_key_of_a_family_covers_every_file_that_says_its_code(family: str) -> None:
    room, edges = "twofold.codegen.", shipped_edges("codegen")
    reached, todo = set(), [room + family]
    while todo:
        module = todo.pop()
        if module.startswith(room) and module not in reached:
            reached.add(module)
            todo += edges[module]
    covered = {module_name(path) for path in generated.sources_of(family)}
    covered |= {room + name for name in kernels.COMPILERS["llvm"][0]}
    assert reached - covered <= {f"{room}loop_verify"}  # which checks kernels and adds nothing to their code
