"""The folder of compiled code: whole entries or none, nothing untrusted, bounded, never an error."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from twofold.runtime import cache


@pytest.fixture
def folder(empty_cache: Path) -> Path:
    return empty_cache


KEY = cache.digest("some", "parts")


def entry(folder: Path, suffix: str = ".bin") -> Path:
    return folder / "kinds" / KEY[:2] / (KEY[2:] + suffix)


def test_what_was_written_is_read(folder: Path) -> None:
    assert cache.read("kinds", KEY) is None
    cache.write("kinds", KEY, b"data", "a text", ".py")
    assert cache.read("kinds", KEY) == b"data"
    assert entry(folder, ".py").read_text() == "a text"
    assert cache.read("others", KEY) is None
    assert cache.read("kinds", cache.digest("other parts")) is None
    assert sorted(p.name for p in entry(folder).parent.iterdir()) == sorted([KEY[2:] + ".bin", KEY[2:] + ".py"])


def test_keys_tell_parts_apart() -> None:
    keys = {cache.digest(*parts) for parts in [("a", "b"), ("ab",), ("a", "b", ""), ("b", "a"), ("a", b"b"), (1,)]}
    assert len(keys) == 6


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TWOFOLD_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.folder() == Path("/somewhere/twofold")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/at/home")
    assert cache.folder() == Path("/at/home/.cache/twofold")


def test_damaged_entries_are_ignored_and_replaced(folder: Path) -> None:
    cache.write("kinds", KEY, bytes(range(256)))
    good = entry(folder).read_bytes()
    for bad in [b"", good[:20], good[:-1], good + b"x", b"x" + good[1:], good[:100] + b"?" + good[101:]]:
        entry(folder).write_bytes(bad)
        assert cache.read("kinds", KEY) is None
    cache.write("kinds", KEY, b"again")
    assert cache.read("kinds", KEY) == b"again"


def test_entries_of_another_user_are_not_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write("kinds", KEY, b"data")
    owner = entry(folder).stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert cache.read("kinds", KEY) == (b"data" if owner == 0 else None)
    monkeypatch.setattr(cache, "_own", lambda uid: False)
    assert cache.read("kinds", KEY) is None


def test_an_entry_is_of_its_key_and_kind(folder: Path) -> None:
    """A whole entry under another's name, or in another kind's folder, is not that other."""
    other = cache.digest("other")
    cache.write("kinds", KEY, b"data")
    cache.write("kinds", other, b"of the other")
    whole = folder / "kinds" / other[:2] / f"{other[2:]}.bin"
    moved = folder / "more" / KEY[:2] / f"{KEY[2:]}.bin"
    moved.parent.mkdir(parents=True)
    moved.write_bytes(entry(folder).read_bytes())
    moved.chmod(0o600)
    entry(folder).write_bytes(whole.read_bytes())
    assert cache.read("kinds", KEY) is None and cache.read("more", KEY) is None
    assert cache.read("kinds", other) == b"of the other"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_entries_that_others_may_write_to_are_not_run_but_replaced(folder: Path, mode: int) -> None:
    cache.write("kinds", KEY, b"data")
    entry(folder).chmod(mode)
    assert cache.read("kinds", KEY) is None
    cache.write("kinds", KEY, b"data")
    assert cache.read("kinds", KEY) == b"data"


def test_what_is_no_regular_file_is_neither_waited_for_nor_read(folder: Path) -> None:
    cache.write("kinds", KEY, b"data")
    whole = entry(folder).rename(folder / "whole")
    for make in (lambda: os.mkfifo(entry(folder)), lambda: entry(folder).symlink_to("/dev/zero"),
                 lambda: entry(folder).symlink_to(whole), lambda: entry(folder).symlink_to(entry(folder)),
                 lambda: entry(folder).mkdir()):
        make()
        assert cache.read("kinds", KEY) is None
        cache.write("kinds", KEY, b"new")  # where it can be
        assert cache.read("kinds", KEY) in (None, b"new")
        entry(folder).rmdir() if entry(folder).is_dir() else entry(folder).unlink()


def test_an_oversized_entry_is_not_read(folder: Path) -> None:
    cache.write("kinds", KEY, b"data")
    with open(entry(folder), "r+b") as file:
        file.truncate(1 << 40)  # of holes
    assert cache.read("kinds", KEY) is None


def test_programs_run_right_though_entries_are_under_each_others_names(folder: Path) -> None:
    script = """
import twofold as tf
x = tf.reshape(tf.range(12.), [3, 4])
f, g = tf.function(lambda x: tf.reduce_sum(tf.exp(x) * 2.)), tf.function(lambda x: tf.matmul(x, x, transpose_b=True))
print(float(f(x)), g(x).numpy().tolist(), tf.sin(x[:, ::2]).numpy().tolist(), tf.cast(x, tf.int32).numpy().tolist())
"""
    def run() -> str:
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    expected = run()
    for kind in folder.iterdir():
        entries = sorted(kind.glob("*/*.bin"))
        contents = [e.read_bytes() for e in entries]
        for path, content in zip(entries, contents[1:] + contents[:1], strict=True):
            path.write_bytes(content)
    assert run() == expected


def test_a_folder_that_cannot_be_used_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TWOFOLD_CACHE_DIR", str(tmp_path / "file"))
    cache.write("kinds", KEY, b"data")
    assert cache.read("kinds", KEY) is None
    cache.trim(0)


def test_a_failed_write_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write("kinds", KEY, b"data")

    def refuse(source: str, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    cache.write("kinds", KEY, b"new data")
    assert cache.read("kinds", KEY) == b"data"
    assert [p.name for p in entry(folder).parent.iterdir()] == [entry(folder).name]


def test_the_longest_unused_go_first(folder: Path) -> None:
    keys = [cache.digest(n) for n in range(6)]
    for age, key in enumerate(keys):
        cache.write("kinds", key, bytes(1000))
        path = folder / "kinds" / key[:2] / (key[2:] + ".bin")
        then = time.time() - 86400 * (10 - age)
        os.utime(path, (then, then))
    assert cache.read("kinds", keys[0]) is not None  # now the most recently used
    cache.trim(3500)
    assert [cache.read("kinds", k) is not None for k in keys] == [True, False, False, False, True, True]


def test_some_writes_check_the_size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 3000)
    for n in range(20):
        cache.write("kinds", f"{n + 1:02x}" + KEY, bytes(1000))
    assert sum(p.stat().st_size for p in folder.rglob("*.bin")) > 20000
    cache.write("kinds", "000" + KEY[1:], bytes(1000))
    assert sum(p.stat().st_size for p in folder.rglob("*.bin")) <= 3000


def test_readers_see_whole_entries_while_others_write(folder: Path) -> None:
    contents = [bytes([n]) * 50_000 for n in range(4)]
    cache.write("kinds", KEY, contents[0])
    torn: list[bytes | None] = []
    done = threading.Event()

    def reader() -> None:
        while not done.is_set():
            entry = cache.read("kinds", KEY)
            if entry not in contents:
                torn.append(entry)

    watch = threading.Thread(target=reader)
    watch.start()
    for n in range(60):
        cache.write("kinds", KEY, contents[n % 4])
    done.set()
    watch.join()
    assert not torn
