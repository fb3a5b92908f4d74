"""The tour in docs/native.md: its Python makes the libraries, its programs are compiled, and print what it shows."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import linecache
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TOUR = (Path(__file__).parents[2] / "docs" / "native.md").read_text()
BLOCKS = re.findall(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", TOUR, re.M | re.S)
CONSOLES = [text for kind, _, text in BLOCKS if kind == "console"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the libraries and the sources of the programs are."""
    made = tmp_path_factory.mktemp("tour")
    source, shown = (next(text for kind, _, text in BLOCKS if kind == wanted) for wanted in ("python", "text"))
    linecache.cache["native.py"] = len(source), None, source.splitlines(True), "native.py"
    with contextlib.chdir(made), contextlib.redirect_stdout(io.StringIO()) as printed:
        names = {"__name__": "tour"}
        exec(compile(source, "native.py", "exec"), names)  # the text of our own page
        if importlib.util.find_spec("ziglang") is not None:
            exec([text for kind, _, text in BLOCKS if kind == "python"][1], names)
    assert printed.getvalue() == shown
    for _, name, text in BLOCKS:
        if name:
            (made / name).write_text(text)
    return made


@pytest.mark.parametrize("console", CONSOLES, ids=[re.search(r"\w+\.\w+", c)[0] for c in CONSOLES])
def test_program(folder, console):
    command, _, shown = console.partition("\n")
    words = command.removeprefix("$ ").split()
    if shutil.which(words[0]) is None or (words[0] == "node" and not (folder / "iris.wasm").exists()):
        pytest.skip(f"there is no {words[0]}")
    done = subprocess.run(["sh", "-c", command.removeprefix("$ ")], cwd=folder, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown


def test_structs_are_those_of_the_header(folder):
    header = (folder / "iris.h").read_text()
    shown = next(text for kind, name, text in BLOCKS if kind == "c" and not name)
    assert shown in header
