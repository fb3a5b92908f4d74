"""The folder of compiled code on disk.

It is `TWOFOLD_CACHE_DIR`, else `twofold` in the user's cache folder; with `TWOFOLD_CACHE=0` there is none. An entry
is written whole or not at all, carries a checksum, and is ignored when it is damaged or belongs to another user, since
it will be run. A folder that cannot be read or written costs time, never an error. When the folder grows over its
limit the entries longest unused go.

What an entry holds and when it is the right one is its owner's affair: the key must name everything it depends on.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from pathlib import Path

from .log import log

__all__ = ["enabled", "folder", "digest", "read", "write", "trim", "usage", "clear", "LIMIT"]

LIMIT = 512 << 20  # bytes kept on disk
_MAGIC = b"twofold1"
_HEADER = len(_MAGIC) + 32
_FRESH = 3600  # seconds: an entry used within them is not marked as used again


def enabled() -> bool:
    """Whether anything is read or written: not with TWOFOLD_CACHE=0."""
    return os.environ.get("TWOFOLD_CACHE", "1") != "0"


def folder() -> Path:
    """Where entries are kept; it need not exist yet."""
    chosen = os.environ.get("TWOFOLD_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "twofold"


def digest(*parts: object) -> str:
    """The key that stands for `parts`, whose texts must tell them apart."""
    return hashlib.sha256("\0".join(str(p) for p in parts).encode()).hexdigest()


def read(kind: str, key: str) -> bytes | None:
    """The data stored under `key`, or None where there is none that can be trusted."""
    found = _read(kind, key) if enabled() else None
    log("cache", f"{kind} {key[:16]}: {'not there' if found is None else f'{len(found)} bytes read'}")
    return found


def _read(kind: str, key: str) -> bytes | None:
    try:
        path = _path(kind, key)
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            content = file.read()
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        return None
    if not _own(status.st_uid) or content[:len(_MAGIC)] != _MAGIC:
        return None
    checksum, data = content[len(_MAGIC):_HEADER], content[_HEADER:]
    if hashlib.sha256(data).digest() != checksum:
        return None
    if time.time() - status.st_mtime > _FRESH:
        with contextlib.suppress(OSError):
            os.utime(path)
    return data


def write(kind: str, key: str, data: bytes, text: str = "", suffix: str = ".txt") -> None:
    """Store `data` under `key`, and beside it `text` for people to read."""
    if not enabled():
        return
    try:
        path = _path(kind, key)
        os.makedirs(os.path.dirname(path), exist_ok=True, mode=0o700)
        if text:
            _replace(path.removesuffix(".bin") + suffix, text.encode())
        _replace(path, _MAGIC + hashlib.sha256(data).digest() + data)
        log("cache", f"{kind} {key[:16]}: {len(data)} bytes stored")
        if int(key[:2], 16) == 0:  # one write in 256
            trim(LIMIT)
    except (OSError, RuntimeError):
        return


def trim(limit: int) -> None:
    """Delete the entries longest unused until at most `limit` bytes are left."""
    entries = []
    for path in folder().glob("*/*/*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            entries.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size


def usage() -> dict[str, tuple[int, int]]:
    """How many entries of each kind there are, and their bytes with the texts beside them."""
    found: dict[str, tuple[int, int]] = {}
    for kind, path in _files():
        with contextlib.suppress(OSError):
            count, size = found.get(kind, (0, 0))
            found[kind] = count + (path.suffix == ".bin"), size + path.stat().st_size
    return found


def clear() -> dict[str, tuple[int, int]]:
    """Deletes all entries, and nothing else that may be in the folder; what was deleted, as `usage` counts it."""
    found: dict[str, tuple[int, int]] = {}
    for kind, path in _files():
        with contextlib.suppress(OSError):
            size, (count, total) = path.stat().st_size, found.get(kind, (0, 0))
            path.unlink()
            found[kind] = count + (path.suffix == ".bin"), total + size
    return found


def _files() -> list[tuple[str, Path]]:
    """The files of entries, with the kind of each: those whose names only `write` gives."""
    hexadecimal = set("0123456789abcdef")
    found = []
    for path in sorted(folder().glob("*/??/*")):
        name = path.parent.name + path.name.partition(".")[0]
        if len(name) == 64 and hexadecimal.issuperset(name) and path.is_file() and not path.is_symlink():
            found.append((path.parent.parent.name, path))
    return found


def _path(kind: str, key: str) -> str:
    # A string: each part of a `Path` is interned, and the table of interned strings grows with them for good.
    return os.path.join(folder(), kind, key[:2], f"{key[2:]}.bin")


def _own(uid: int) -> bool:
    return not hasattr(os, "getuid") or uid in (0, os.getuid())


def _replace(path: str, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
