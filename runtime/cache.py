"""The folder of compiled code on disk.

It is `TWOFOLD_CACHE_DIR`, else `twofold` in the user's cache folder; with `TWOFOLD_CACHE=0` there is none. An entry
is written whole or not at all and carries a checksum of its kind, its key and its data, so that it is one thing's code
and no other's, wherever it is copied. As it will be run, it is ignored when it is damaged, no regular file, larger than
all entries may be, or when another user owns it or may write to it; it is opened without following a link in its place
and without waiting, so that nothing there can hold a process up. A folder that cannot be read or written costs time,
never an error. When the folder grows over its limit the entries longest unused go.

What an entry holds and when it is the right one is its owner's affair: the key must name everything it depends on.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from typing import TYPE_CHECKING

from . import identity
from .log import log
from .replacing import replace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["enabled", "folder", "digest", "read", "write", "remove", "trim", "usage", "clear", "LIMIT"]

LIMIT = 512 << 20  # bytes kept on disk
_MAGIC = b"twofold2"
_HEADER = len(_MAGIC) + 32
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) \
    | getattr(os, "O_BINARY", 0)
_OTHERS = (stat.S_IWGRP | stat.S_IWOTH) if os.name == "posix" else 0  # permissions of others to write
_FRESH = 3600  # seconds: an entry used within them is not marked as used again


def enabled() -> bool:
    """Whether anything is read or written: not with TWOFOLD_CACHE=0."""
    return os.environ.get("TWOFOLD_CACHE", "1") != "0"


def folder() -> Path:
    """Where entries are kept; it need not exist yet.

    Raises:
        RuntimeError: there is no home folder.
    """
    from pathlib import Path
    return Path(_folder())


def _folder() -> str:
    chosen = os.environ.get("TWOFOLD_CACHE_DIR")
    if chosen:
        return chosen
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if base.startswith("~"):
        raise RuntimeError("the home folder cannot be determined")
    return os.path.join(base, "twofold")


def digest(*parts: object) -> str:
    """The key of `parts`, whose texts must tell them apart."""
    return identity.digest("\0".join(str(p) for p in parts).encode())


def read(kind: str, key: str) -> bytes | None:
    """The data stored under `key`, or None where there is none that can be trusted."""
    data = _read(kind, key) if enabled() else None
    log("cache", f"{kind} {key[:16]}: {'not there' if data is None else f'{len(data)} bytes read'}")
    return data


def _read(kind: str, key: str) -> bytes | None:
    try:
        path = _path(kind, key)
        handle = os.open(path, _OPEN)
        try:
            status = os.fstat(handle)
            content = _content(handle, status) if _trusted(status) else b""
        finally:
            os.close(handle)
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        return None
    if content[:len(_MAGIC)] != _MAGIC:
        return None
    checksum, data = content[len(_MAGIC):_HEADER], content[_HEADER:]
    if _checksum(kind, key, data) != checksum:
        return None
    if time.time() - status.st_mtime > _FRESH:
        with contextlib.suppress(OSError):
            os.utime(path)
    return data


def _trusted(status: os.stat_result) -> bool:
    """Whether a file is one that only this user, or the system's, can have written."""
    return stat.S_ISREG(status.st_mode) and _own(status.st_uid) and not status.st_mode & _OTHERS \
        and status.st_size <= LIMIT


def _content(handle: int, status: os.stat_result) -> bytes:
    """The contents of a file; empty where it is not of the size that `status` says."""
    content = os.read(handle, status.st_size + 1)
    if len(content) != status.st_size:  # large ones come in pieces
        with open(handle, "rb", closefd=False) as file:
            content += file.read(max(0, status.st_size + 1 - len(content)))
    return content if len(content) == status.st_size else b""


def _checksum(kind: str, key: str, data: bytes) -> bytes:
    return identity.sha256(f"{kind}\0{key}\0".encode(), data)


def write(kind: str, key: str, data: bytes, text: str = "", suffix: str = ".txt") -> None:
    """Store `data` under `key`, and beside it `text` for people to read."""
    if not enabled():
        return
    try:
        path = _path(kind, key)
        os.makedirs(os.path.dirname(path), exist_ok=True, mode=0o700)
        if text:
            replace(path.removesuffix(".bin") + suffix, text.encode(), durable=False, mode=0o600)
        replace(path, b"".join([_MAGIC, _checksum(kind, key, data), data]), durable=False, mode=0o600)
        log("cache", f"{kind} {key[:16]}: {len(data)} bytes stored")
        if int(key[:3], 16) < 4:  # one write in 1,024
            trim(LIMIT)
    except (OSError, RuntimeError):
        return


def remove(kind: str, key: str, suffix: str = "") -> None:
    """Deletes what is stored under `key`, if anything is, and the text beside it that was written with a suffix."""
    with contextlib.suppress(OSError, RuntimeError):
        path = _path(kind, key)
        os.unlink(path)
        if suffix:
            os.unlink(path.removesuffix(".bin") + suffix)


def trim(limit: int) -> None:
    """Delete the entries longest unused until at most `limit` bytes are left."""
    entries = []
    for entry in _entries(_folder(), 2):
        with contextlib.suppress(OSError):
            status = entry.stat()
            entries.append((status.st_mtime, status.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size


def _entries(folder: str, depth: int) -> Iterator[os.DirEntry[str]]:
    """What lies so many folders deep in a folder; without a `Path` for each of thousands of files."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if depth:
                yield from _entries(entry.path, depth - 1)
            else:
                yield entry


def usage() -> dict[str, tuple[int, int]]:
    """How many entries of each kind there are, and their bytes with the texts beside them."""
    totals: dict[str, tuple[int, int]] = {}
    for kind, path in _files():
        with contextlib.suppress(OSError):
            count, size = totals.get(kind, (0, 0))
            totals[kind] = count + (path.suffix == ".bin"), size + path.stat().st_size
    return totals


def clear(*kinds: str) -> dict[str, tuple[int, int]]:
    """Deletes all entries, or those of some kinds, and nothing else that may be in the folder; what was deleted, as
    `usage` counts it."""
    totals: dict[str, tuple[int, int]] = {}
    for kind, path in _files():
        if kinds and kind not in kinds:
            continue
        with contextlib.suppress(OSError):
            size, (count, total) = path.stat().st_size, totals.get(kind, (0, 0))
            path.unlink()
            totals[kind] = count + (path.suffix == ".bin"), total + size
    return totals


def _files() -> list[tuple[str, Path]]:
    """The files of entries, with the kind of each: those whose names only `write` gives."""
    hexadecimal = set("0123456789abcdef")
    entries = []
    for path in sorted(folder().glob("*/??/*")):
        name = path.parent.name + path.name.partition(".")[0]
        if len(name) == 64 and hexadecimal.issuperset(name) and path.is_file() and not path.is_symlink():
            entries.append((path.parent.parent.name, path))
    return entries


def _path(kind: str, key: str) -> str:
    # A string: each part of a `Path` is interned, and the table of interned strings grows with them for good.
    return os.path.join(_folder(), kind, key[:2], f"{key[2:]}.bin")


def _own(uid: int) -> bool:
    return not hasattr(os, "getuid") or uid in (0, os.getuid())
