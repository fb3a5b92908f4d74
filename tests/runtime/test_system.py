"""Systems that lack what Linux has take plain paths: the same results, linked by LLVM, without locks and forks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from twofold.codegen import target
from twofold.runtime import replacing, system

# What Windows lacks of the modules that the package uses: taken away before anything of it is imported.
WITHOUT = """
import ctypes, json, mmap, os, shutil, subprocess, sys, tempfile, time
import sysconfig, llvmlite.binding, numpy, ml_dtypes
sysconfig.get_config_vars()
for module, names in ((os, "register_at_fork fork sched_getaffinity fchmod getuid O_DIRECTORY O_NOFOLLOW O_NONBLOCK "
                           "O_CLOEXEC"),
                      (mmap, "PROT_READ PROT_WRITE PROT_EXEC"), (time, "CLOCK_MONOTONIC clock_gettime")):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
os.supports_dir_fd, shutil._use_fd_functions = set(), False
sys.modules["fcntl"] = None
sys.platform = "win32"
whole = ctypes.CDLL.__init__
def opened(self, name, *args, **options):
    if name is None:
        raise TypeError("argument 1 must be str, not None")
    whole(self, name, *args, **options)
ctypes.CDLL.__init__ = opened
open_file = os.open
def no_folders(path, *args, **options):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return open_file(path, *args, **options)
os.open = no_folders
"""

PROGRAM = """
import twofold as tf
from twofold.runtime import image, native, system, threads
assert not system.fills_code_pages() and system.c_function("memcpy") is None
x = tf.constant(np.arange(12, dtype=np.float32).reshape(3, 4) / 7)
w = tf.Variable(tf.ones([4, 2]) * 0.5)

class Model(tf.Module):
    def __init__(self):
        self.w = w
    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    def step(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.relu(x @ self.w - 1.0) ** 2)
        total = 0.0
        for _ in tf.range(3):
            total += loss
        return loss, total, tape.gradient(loss, self.w)

model = Model()
results = [tf.exp(x), tf.reduce_sum(x, axis=0), x @ w, *model.step(x)]
with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(model, folder + "/model")
    tf.saved_model.save(model, folder + "/model")
    results += tf.saved_model.load(folder + "/model").step(x)
    left = sorted(name for _, folders, files in os.walk(folder) for name in (*folders, *files) if "tmp" in name)
print(json.dumps([[np.asarray(r).tolist() for r in results], left]))
"""


def run(program: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", "import json, os, tempfile\nimport numpy as np\n" + program],
                          capture_output=True, text=True, env=os.environ | {"TWOFOLD_CACHE_DIR": str(folder)})
    assert not done.returncode, done.stderr
    return done.stdout


def test_a_process_without_what_windows_lacks(tmp_path: Path) -> None:
    checked = PROGRAM.replace("assert not system.fills_code_pages() and system.c_function(\"memcpy\") is None\n", "")
    wanted = run(checked, tmp_path / "own")
    for _ in range(2):  # compiled, then from disk
        assert run(WITHOUT + PROGRAM, tmp_path / "other") == wanted


@pytest.mark.parametrize(("platform", "machine", "flush", "fills"), [
    ("linux", "x86_64", None, True), ("linux", "aarch64", print, True), ("linux", "aarch64", None, False),
    ("linux", "riscv64", print, False), ("darwin", "arm64", print, False), ("darwin", "x86_64", None, False),
    ("win32", "AMD64", None, False), ("win32", "ARM64", None, False)])
def test_where_code_pages_are_filled(platform, machine, flush, fills, monkeypatch) -> None:
    monkeypatch.setattr(system.sys, "platform", platform)
    monkeypatch.setattr(target.platform, "machine", lambda: machine)
    monkeypatch.setattr(system, "_flush", lambda: flush)
    assert system.fills_code_pages() is fills


def test_instructions_are_fetched_anew_where_they_have_a_cache_of_their_own(monkeypatch) -> None:
    flushed: list[tuple[int, int]] = []
    monkeypatch.setattr(system, "_flush", lambda: lambda begin, end: flushed.append((begin, end)))
    for machine in ("x86_64", "aarch64"):
        monkeypatch.setattr(target.platform, "machine", lambda machine=machine: machine)
        system.flush_instructions(4096, 100)
    assert flushed == [(4096, 4196)]


def test_files_are_closed_before_they_are_moved_where_open_ones_cannot_be(tmp_path, monkeypatch) -> None:
    """As on Windows: neither a rename nor a removal of what is open."""
    def closed(path: str) -> str:
        held = [os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")]
        assert os.path.realpath(path) not in held
        return path

    move, remove = os.replace, os.unlink
    monkeypatch.setattr(replacing, "fcntl", None)
    monkeypatch.setattr(replacing.os, "replace", lambda source, to: move(closed(source), to))
    monkeypatch.setattr(replacing.os, "unlink", lambda path: remove(closed(path)))
    replacing.replace(tmp_path / "file", b"contents")
    with pytest.raises(ZeroDivisionError):
        replacing.replace(tmp_path / "file", lambda file: 1 / 0)
    with replacing.alone(tmp_path) as certain, replacing.folder_beside(tmp_path / "folder") as folder:
        assert not certain and os.path.isdir(folder)
    assert os.listdir(tmp_path) == ["file"] and (tmp_path / "file").read_bytes() == b"contents"


def test_vectors_of_a_known_length_are_those_of_the_processor() -> None:
    """What tiles are made of on AArch64: vectors of 128 bits, or of what SVE has beyond that."""
    vectors = [target.arm("", "", "", bits) for bits in (0, 128, 256, 512, 2048)]
    assert [(t.vector_bits, t.granules, t.by_lane) for t in vectors] == [
        (128, 0, True), (128, 0, True), (256, 2, False), (512, 4, False), (512, 16, False)]
    assert np.all([t.many_registers and t.fused and not t.masks for t in vectors])


def test_the_processor_is_the_same_to_the_system_and_to_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system describes it, LLVM is not asked, which takes longer to load than most code."""
    told = target.host.__wrapped__()
    monkeypatch.setattr(target, "described", lambda: ())
    assert told == target.host.__wrapped__()
