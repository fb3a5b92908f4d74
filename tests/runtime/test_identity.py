"""What code depends on: source files count as changed by what they hold, however they were written."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from twofold.runtime.identity import Sources, digest


def _in_place(folder: Path) -> None:
    """Another text of the same size, with the time of the last."""
    status = (folder / "a.py").stat()
    (folder / "a.py").write_text("aa = 2")
    os.utime(folder / "a.py", ns=(status.st_atime_ns, status.st_mtime_ns))


def _replaced(folder: Path) -> None:
    (folder / "new").write_text("aa = 2")
    os.replace(folder / "new", folder / "a.py")


CHANGES: list[Callable[[Path], object]] = [
    _in_place, _replaced, lambda folder: (folder / "a.py").unlink(), lambda folder: (folder / "c.py").write_text("")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("aa = 1")
    (tmp_path / "b.py").write_text("b = 1" * 100_000)
    return tmp_path


def in_folder(folder: Path) -> Sources:
    return Sources(lambda: sorted(map(str, folder.glob("*.py"))))


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_seen(folder: Path, change: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a module was imported afterwards, which may be of a changed file."""
    sources = in_folder(folder)
    first = sources.digests()
    assert first == [digest(path.read_bytes()) for path in sorted(folder.glob("*.py"))]
    assert sources.unchanged()
    change(folder)
    assert sources.unchanged()  # all modules were imported before
    monkeypatch.setitem(sys.modules, "imported_afterwards", types.ModuleType("imported_afterwards"))
    assert not sources.unchanged() and not sources.unchanged()
    assert sources.digests() == first != in_folder(folder).digests()


def test_what_is_written_again_as_it_was_is_no_change(folder: Path) -> None:
    sources = in_folder(folder)
    sources.digests()
    _in_place(folder)
    _replaced(folder)
    (folder / "a.py").write_text("aa = 1")
    assert sources.unchanged()


def test_a_file_that_is_gone_is_a_change(folder: Path) -> None:
    paths = [str(folder / "a.py"), str(folder / "b.py")]
    sources = Sources(lambda: paths)
    sources.digests()
    (folder / "b.py").unlink()
    assert not sources.unchanged()
