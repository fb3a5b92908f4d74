"""Files that are replaced as a whole: how everything that lasts gets to its place.

The new contents are written to a file beside the old one, which takes its place by one rename; whoever is killed, or
finds the disk full, leaves the old file as it was. All writers of the package use this, so that there is one policy:

- **Durability.** The new file is flushed and synced before the rename, and its folder after it: when a call returns,
  the new contents outlast a loss of power, and at no moment is there neither the old nor the new file. What can be
  computed again and carries a checksum (the folder of compiled code) is written without the syncs.
- **What the dead leave.** A file that is being written is named `.NAME.PID.HEX.tmp` and locked. Each call deletes
  whatever has such a name in its folder and is not locked, as a lock ends with its process. Where a file system has no
  locks nothing is deleted.
- **Permissions.** The new file has those of the one that it replaces, unless others are asked for.

What is in a file is its owner's affair.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["Contents", "Replacement", "alone", "folder_beside", "replace", "replace_all", "replaced", "sync_folder"]

Contents = bytes | Callable[[BinaryIO], object]  # of a file: bytes, or what writes them

_NAME = re.compile(r"\..+\.\d+\.[0-9a-f]{8}\.tmp", re.DOTALL)
_KEPT = 40  # characters of a file's name in that of the one beside it, which must not get too long


def replace(path: str | os.PathLike[str], contents: Contents, durable: bool = True, mode: int | None = None) -> None:
    """Put contents in the place of a file in one step.

    Args:
        path: the file, which need not exist; its folder does.
        contents: bytes, or a function that writes to the open file that it is given.
        durable: whether the file and its folder are synced.
        mode: permissions of the new file, less the process's mask; None for those of the one that it replaces.
    Raises:
        OSError: it cannot be written; what was there is as it was.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "file")
    >>> replace(path, b"contents")
    >>> os.listdir(os.path.dirname(path))
    ['file']
    """
    with replaced(path, durable, mode) as file:
        _fill(file, contents)


def replace_all(files: Mapping[str | os.PathLike[str], Contents]) -> None:
    """Replace several files, each in one step, after all of them have been written.

    Raises:
        OSError: one cannot be written; all are as they were, unless a rename failed.
    """
    with contextlib.ExitStack() as stack:
        replacements = [stack.enter_context(contextlib.closing(Replacement(path))) for path in files]
        for each, contents in zip(replacements, files.values(), strict=True):
            _fill(each.file, contents)
            each.finish()
        for each in replacements:
            each.commit()


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str], durable: bool = True, mode: int | None = None) -> Iterator[BinaryIO]:
    """A file, open for writing and reading, that takes the place of the one at `path` when the block ends.

    Raises:
        OSError: as of `replace`. Where the block raises, what was there is as it was.
    """
    with contextlib.closing(Replacement(path, durable, mode)) as replacement:
        yield replacement.file
        replacement.commit()


def _fill(file: BinaryIO, contents: Contents) -> None:
    if callable(contents):
        contents(file)
    else:
        file.write(contents)


class Replacement:
    """New contents of a file on their way: written to `file`, then put in place by `commit`, or dropped by `close`.

    Args:
        path: the file, which need not exist; its folder does.
        durable: whether the file and its folder are synced.
        mode: permissions of the new file, less the process's mask; None for those of the one that it replaces.
    Attributes:
        file: open for writing and reading, until the commit.
    Raises:
        OSError: there is no such folder, or something else than a file at `path`.
    """

    def __init__(self, path: str | os.PathLike[str], durable: bool = True, mode: int | None = None) -> None:
        self.path, self.durable = os.fspath(path), durable
        old = _status(self.path)
        if old is not None and not (stat.S_ISREG(old.st_mode) or stat.S_ISLNK(old.st_mode)):
            raise FileExistsError(17, "There is something else than a file", self.path)
        self._folder = os.path.dirname(self.path) or "."
        _sweep(self._folder)
        self.beside, handle = _beside(self.path, 0o666 if mode is None else mode)
        self.file: BinaryIO = os.fdopen(handle, "w+b")
        self._finished = False
        if mode is None and old is not None and stat.S_ISREG(old.st_mode) and hasattr(os, "fchmod"):
            with contextlib.suppress(OSError):
                os.fchmod(handle, stat.S_IMODE(old.st_mode))

    def finish(self) -> None:
        """Bring what was written to the disk, as far as that can fail: for several files that come together."""
        self.file.flush()
        if self.durable:
            os.fsync(self.file.fileno())
        self._finished = True

    def commit(self) -> None:
        """Put the new contents in place."""
        if not self._finished:
            self.finish()
        if fcntl is None:
            self.file.close()  # Windows moves no file that is open
        os.replace(self.beside, self.path)  # before the lock is gone, so that nobody takes it for a leftover
        self.beside = ""
        self.file.close()
        if self.durable:
            sync_folder(self._folder)

    def close(self) -> None:
        """Delete what was written; after a commit, nothing."""
        steps: list[Callable[[], object]] = [self.file.close]
        if self.beside:
            steps.insert(1 if fcntl is None else 0, functools.partial(os.unlink, self.beside))
            self.beside = ""
        for step in steps:
            with contextlib.suppress(OSError):  # what is still in its buffer may find the disk full
                step()


@contextlib.contextmanager
def folder_beside(path: str | os.PathLike[str]) -> Iterator[str]:
    """A new folder in the folder of `path`, for a block that fills it and renames it; whatever remains of it is
    deleted.

    Raises:
        OSError: it cannot be made.
    """
    path = os.fspath(path)
    _sweep(os.path.dirname(path) or ".")
    while True:
        folder = _name_beside(path)
        os.mkdir(folder)
        handle = _folder_handle(folder)
        if handle is None or _locked(handle) and os.path.isdir(folder):
            break
        os.close(handle)  # another process has seen it before it was locked
    try:
        yield folder
    finally:
        _delete_folder(folder)
        if handle is not None:
            os.close(handle)


@contextlib.contextmanager
def alone(folder: str | os.PathLike[str]) -> Iterator[bool]:
    """A block that no other process or thread is in with the same folder; gives whether that is certain."""
    handle = _folder_handle(folder)
    try:
        yield handle is not None and _locked(handle, unsure=False, wait=True)
    finally:
        if handle is not None:
            os.close(handle)


def _folder_handle(folder: str | os.PathLike[str]) -> int | None:
    """A handle of a folder, which can be locked; None where there are no locks, and folders cannot be opened."""
    return None if fcntl is None else os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make renames in a folder last, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


# -- names and locks --------------------------------------------------------------------------------
def _name_beside(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:_KEPT]}.{os.getpid()}.{os.urandom(4).hex()}.tmp")


def _beside(path: str, mode: int) -> tuple[str, int]:
    """A new file in the same folder, locked for as long as its handle is open."""
    while True:
        name = _name_beside(path)
        handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), mode)
        if _locked(handle) and os.path.lexists(name):
            return name, handle
        os.close(handle)  # another process has seen it before it was locked


def _sweep(folder: str) -> None:
    """Delete what dead processes have left in a folder."""
    try:
        with os.scandir(folder) as entries:
            left = [entry.path for entry in entries if entry.name.endswith(".tmp") and _NAME.fullmatch(entry.name)]
    except OSError:
        return
    for path in left:
        _delete_unlocked(path)


def _delete_folder(path: str) -> None:
    """Delete a folder and all that is in it, as far as that can be done."""
    import shutil
    shutil.rmtree(path, ignore_errors=True)


def _delete_unlocked(path: str) -> None:
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return
    try:
        kind = os.fstat(handle).st_mode
        if not _locked(handle, unsure=False):
            return
        if stat.S_ISDIR(kind):
            _delete_folder(path)
        elif stat.S_ISREG(kind):
            with contextlib.suppress(OSError):
                os.unlink(path)
    finally:
        os.close(handle)


def _locked(handle: int, unsure: bool = True, wait: bool = False) -> bool:
    """Whether this handle has its file's lock now; `unsure` where there are no locks."""
    if fcntl is None:
        return unsure
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return unsure
    return True


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
