"""The package works wherever its tree lies and however Python runs.

In a clone of the package's own name; installed, while Python runs at the tree's root; and without docstrings and
assertions (`python -OO`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from house.test_wheel import build_wheel
from house.tree import FLOORS, ROOT, module_name, shipped_modules

# Prints where the package and one of its rooms came from, and what shows whether a file counts as the user's own: the
# branch of a traced function and the line of an error.
PROGRAM = """
import os
import numpy as np
import twofold as tf
import twofold.ir.errors as room

@tf.function(fallback=False)
def halved(x):
    if tf.reduce_sum(x) > 1.0:
        x = x / 2.0
    return x

@tf.function
def wrong(x):
    return x + tf.ones([3])

print(os.path.dirname(tf.__file__), os.path.dirname(os.path.dirname(room.__file__)))
print(halved(tf.constant([4.0, 2.0])).numpy())
try:
    wrong(tf.ones([2]))
except tf.errors.InvalidArgumentError as error:
    print([line.strip() for line in str(error).splitlines() if line.strip().startswith("At ")])
with tf.GradientTape() as tape:
    v = tf.Variable(3.0)
    y = halved(v * v)
print(tape.gradient(y, v).numpy())
"""
RESULTS = ["[2. 1.]", "['At program.py:15 in wrong(): return x + tf.ones([3])']", "3.0"]


def lines_of(program: Path, *options: str, cwd: Path, path: str = "") -> list[str]:
    """What a fresh process prints that runs `program` with the modules of `path`, then of `cwd`, before all others."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [path, str(cwd)]))}
    done = subprocess.run([sys.executable, *options, str(program)], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def copied_tree(folder: Path) -> Path:
    """The rooms of this tree in a folder that bears the package's name, as `git clone` makes it."""
    clone = folder / "twofold"
    for room in FLOORS:
        shutil.copytree(ROOT / room, clone / room, ignore=shutil.ignore_patterns("__pycache__"))
    return clone


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    return copied_tree(tmp_path_factory.mktemp("clone"))


def test_in_a_clone_of_its_own_name_files_are_the_users(clone):
    program = clone / "program.py"
    program.write_text(PROGRAM)
    home, *results = lines_of(program, cwd=clone)
    assert (home.split(), results) == ([str(clone / "twofold"), str(clone)], RESULTS)


def test_beside_a_clone_files_are_the_users(clone, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    home, *results = lines_of(program, cwd=clone)
    assert (home.split(), results) == ([str(clone / "twofold"), str(clone)], RESULTS)


def test_an_installed_package_is_used_as_a_whole(clone, tmp_path):
    """From a folder of its own; and at the root of a tree the tree's floor and rooms are used, never half of each."""
    with zipfile.ZipFile(build_wheel(ROOT, tmp_path)) as wheel:
        wheel.extractall(tmp_path / "site")
    site, program = tmp_path / "site", tmp_path / "program.py"
    program.write_text(PROGRAM)
    home, *results = lines_of(program, cwd=tmp_path, path=str(site))
    assert (home.split(), results) == ([str(site / "twofold")] * 2, RESULTS)
    [home] = lines_of_command("import twofold, twofold.ir; print(twofold.__file__, twofold.ir.__file__)", cwd=clone,
                              path=str(site))
    assert home.split() == [str(clone / room / "__init__.py") for room in ("twofold", "ir")]


def lines_of_command(text: str, cwd: Path, path: str) -> list[str]:
    """What `python -c` prints at `cwd`, whose modules come first, with those of `path` after them."""
    done = subprocess.run([sys.executable, "-c", text], cwd=cwd, env={**os.environ, "PYTHONPATH": path},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_without_docstrings_and_assertions(clone, tmp_path):
    program = tmp_path / "program.py"
    modules = sorted(module_name(path) for path in shipped_modules() if path.name != "__main__.py")
    program.write_text(PROGRAM + f"\nimport importlib\nfor name in {modules}:\n    importlib.import_module(name)\n"
                       "model = tf.keras.Sequential([tf.keras.layers.Dense(2), tf.keras.layers.Dropout(0.5)])\n"
                       "model.compile('adam', 'mse')\n"
                       "model.fit(np.ones((8, 3), np.float32), np.ones((8, 2), np.float32), verbose=0)\n"
                       "tf.saved_model.save(model, 'saved')\n"
                       "print(tf.saved_model.load('saved')(tf.ones([1, 3])).shape)\n")
    _, *results = lines_of(program, "-OO", "-W", "error", cwd=tmp_path, path=str(clone))
    assert results == [*RESULTS, "(1, 2)"]
