"""The wheel holds every file of the tree, under the name it is imported by, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from house.tree import FLOORS, ROOT, installed_path, label, module_name, project, shipped_files, shipped_modules

_BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


def build_wheel(tree: Path, folder: Path) -> Path:
    """A wheel of a copy of `tree`: setuptools writes beside its sources, and packs what older builds left."""
    copy = folder / "tree"
    copy.mkdir()
    for name in (*FLOORS, "pyproject.toml", "LICENSE", "README.md"):
        source = tree / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.is_file():
            shutil.copy(source, copy / name)
    out = folder / "out"
    out.mkdir()
    command = [sys.executable, "-c", _BUILD, str(out)]
    built = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    [wheel] = out.glob("*.whl")
    return wheel


def compare(wheel: Path, expected: set[str]) -> tuple[list[str], list[str]]:
    """The files that `wheel` lacks, and those it should not have."""
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if not name.partition("/")[0].endswith(".dist-info")}
    return sorted(expected - inside), sorted(inside - expected)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


def test_wheel_is_the_tree(wheel):
    missing, extra = compare(wheel, {installed_path(path) for path in shipped_files()})
    assert (missing, extra) == ([], [])


def test_wheel_is_typed_and_licensed(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "twofold/py.typed" in names
    assert any(name.endswith("/LICENSE") for name in names)


def test_a_missing_file_is_seen(wheel):
    assert compare(wheel, {"twofold/__init__.py", "twofold/nowhere.py"})[0] == ["twofold/nowhere.py"]
    assert "twofold/py.typed" in compare(wheel, {"twofold/__init__.py"})[1]


def test_every_package_of_the_tree_is_listed():
    folders = {path.parent for path in shipped_modules()}
    without_init = sorted(label(folder) for folder in folders if not (folder / "__init__.py").is_file())
    assert without_init == []
    packages = {module_name(folder / "__init__.py") for folder in folders}
    assert set(project()["tool"]["setuptools"]["packages"]) == packages
