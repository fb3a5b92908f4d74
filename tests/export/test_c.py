"""Programs of C and C++ with exported libraries: the compiler of this machine builds them, and they run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import twofold as tf

F32 = np.float32
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def compiled(folder, name, *arguments, compiler="cc"):
    """The program that a compiler makes; its warnings are errors."""
    program = Path(folder) / name
    done = subprocess.run([compiler, *STRICT, f"-I{folder}", "-o", str(program), *map(str, arguments)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def told(program, *arguments):
    """What a program prints; it must end well."""
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def training():
    w = tf.Variable(np.linspace(-1, 1, 18, dtype=F32).reshape(6, 3), name="w")
    steps = tf.Variable(0, dtype=tf.int64, name="steps")

    @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32, "x"), tf.TensorSpec([None], tf.int32, "labels")])
    def step(x, labels):
        with tf.GradientTape() as tape:
            chosen = tf.gather(tf.nn.log_softmax(x @ w), labels, batch_dims=1, axis=1)
            loss = -tf.reduce_mean(chosen)
        w.assign_sub(0.5 * tape.gradient(loss, w))
        steps.assign_add(1)
        return loss
    return step, w


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    step, w = training()
    folder = tmp_path_factory.mktemp("train")
    tf.export.native({"step": step}, folder / "libtrain.a")
    return step, w, folder


def test_training_on_eight_threads_with_sanitizers(library):
    step, w, folder = library
    source = Path(__file__).with_name("harness.c")
    plain = compiled(folder, "plain", "-std=gnu99", "-O1", source, folder / "libtrain.a", "-lm", "-lpthread")
    flags = ["-std=gnu99", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DSTACK=(2<<20)"]
    program = compiled(folder, "harness", *flags, source, folder / "libtrain.a", "-lm", "-lpthread")
    actual = [float.fromhex(line) for line in told(program).split()]
    assert told(plain).split() == told(program).split()
    x = (np.arange(42) * 37 % 11).astype(F32) / F32(11) - F32(0.4)
    losses = [step(x.reshape(7, 6), np.arange(7, dtype=np.int32) % 3).numpy() for _ in range(20)]
    np.testing.assert_array_equal(np.array(actual, F32), [*losses, *w.numpy().reshape(-1)])


def test_header_is_c99_and_cpp(library):
    folder = library[2]
    text = '#include "train.h"\n#include "train.h"\nint main(void) { return train_abi() != TRAIN_ABI; }\n'
    for name, compiler, options in (("plain.c", "cc", ["-std=c99"]), ("plain.cpp", "c++", ["-std=c++11"])):
        if shutil.which(compiler) is None:
            pytest.skip(f"there is no {compiler}")
        (folder / name).write_text(text)
        program = compiled(folder, f"{name}.out", *options, folder / name, folder / "libtrain.a", "-lm",
                           compiler=compiler)
        told(program)


def test_equal_functions_give_equal_files(tmp_path):
    step, _ = training()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        tf.export.native({"step": step}, tmp_path / name / "libtrain.a")
    for name in ("libtrain.a", "train.h"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_archives_are_read_by_ar(library):
    if shutil.which("ar") is None or shutil.which("nm") is None:
        pytest.skip("there is no ar")
    archive = str(library[2] / "libtrain.a")
    assert told("ar", "t", archive).split() == ["train.o"]
    index = told("nm", "-s", archive)
    assert "train_step in train.o" in index and "train_strerror in train.o" in index


def test_the_benchmark_measures(tmp_path):
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, str(root / "benchmarks" / "deploy.py"), "--rounds", "1", "--out",
                           str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    actual = json.loads((tmp_path / "deploy.json").read_text())
    assert actual["bytes"]["library"] - actual["bytes"]["weights"] < 100 << 10
    assert {"twofold 1", "twofold 64"} <= actual["samples"].keys() and min(actual["load"]) > 0
    assert "| 64 |" in done.stdout
