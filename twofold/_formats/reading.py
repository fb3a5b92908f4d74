"""Reading files from elsewhere: bounds that come from a file's size, and one error for damaged files.

A file may be cut short, changed, or made to do harm. So nothing is read, inflated or made before its size was compared
with what the file can hold, and whatever a parser of the standard library raises becomes an error of this package with
the file's name. What the contents mean is for each format.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, BinaryIO

from twofold.ir.errors import DataLossError, NotFoundError, OpError

__all__ = ["INFLATED", "SMALL", "bound", "damaged", "makes", "member", "opened", "parsed_json", "reads", "spend"]

SMALL = 16 << 20  # bytes that anything may take
INFLATED = 64  # bytes that a byte of a file may become; texts and arrays that people write become fewer
_DEEP = 200  # brackets within brackets; Python's parser of JSON uses the stack of the process for them

# What the parsers of the standard library, and arithmetic on damaged numbers, raise.
_FAULTS = (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError, EOFError,
           MemoryError, RuntimeError, struct.error, zlib.error, zipfile.BadZipFile, zipfile.LargeZipFile)


def bound(size: int) -> int:
    """How many bytes the contents of a file of `size` bytes may take."""
    return max(SMALL, INFLATED * size)


def damaged(path: Any, problem: Any) -> DataLossError:
    """The error for a damaged file."""
    return DataLossError(None, None, f"{os.fspath(path)} is damaged: {problem}")


@contextlib.contextmanager
def reads(path: Any, *kept: type[Exception]) -> Iterator[None]:
    """A block that parses a file: the errors it raises become a DataLossError with the file's name.

    Args:
        path: of the file.
        kept: classes of errors that stay as they are.

    Raises:
        DataLossError: the block raised one of the errors that damaged contents lead to. Errors of this package, and of
            the system, are as they were.
    """
    passed: tuple[type[Exception], ...] = (OpError, *kept)
    try:
        yield
    except passed:
        raise
    except OSError as e:
        if e.filename is not None:  # of the system; parsers have no file's name
            raise
        raise damaged(path, _short(e)) from None
    except _FAULTS as e:
        raise damaged(path, _short(e)) from None


def _short(error: BaseException) -> str:
    text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return text if len(text) <= 300 else text[:297] + "..."


@contextlib.contextmanager
def makes(path: Any, room: int) -> Iterator[None]:
    """A block that makes an object from a description in a file, with `room` bytes for its variables.

    Raises:
        ValueError: what the file describes cannot be made, or is larger; with the file's name. TypeError: as before,
            with the file's name.
    """
    token = _room.set([room, room])
    try:
        yield
    except OpError:
        raise
    except _FAULTS as e:
        if type(e) in (ValueError, TypeError):
            raise type(e)(f"{e}\n(while reading {os.fspath(path)})") from e
        raise ValueError(f"{os.fspath(path)}: what it describes cannot be made: {_short(e)}") from e
    finally:
        _room.reset(token)


def spend(count: int) -> None:
    """Take `count` bytes of the room that the description of a file has, where one is read.

    Raises:
        ValueError: there are not so many left.
    """
    room = _room.get()
    if room is not None:
        room[0] -= count
        if room[0] < 0:
            raise ValueError(f"it asks for variables of more than {room[1]:,} bytes, which a file of its size does not "
                             "hold")


_room: ContextVar[list[int] | None] = ContextVar("room_for_variables", default=None)


def opened(path: Any) -> BinaryIO:
    """A regular file to read bytes from; it does not wait for anybody, as a pipe would.

    Raises:
        NotFoundError: there is none. DataLossError: it is something else. OSError: it cannot be opened.
    """
    path = os.fspath(path)
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise NotFoundError(None, None, f"{path}: no such file") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise DataLossError(None, None, f"{path} is no regular file")
    return os.fdopen(handle, "rb")


def parsed_json(data: bytes | str, path: Any, kind: type = dict) -> Any:
    """The value of a JSON text.

    Args:
        data: the text.
        path: of the file, for errors.
        kind: what it must be.
    Raises:
        DataLossError: it is no JSON, too deep, or something else.
    """
    with reads(path):
        text = data if isinstance(data, str) else data.decode("utf-8")
        _check_depth(text)
        value = json.loads(text)
        if not isinstance(value, kind):
            raise ValueError(f"it holds a JSON {type(value).__name__} where a {kind.__name__} is expected")
        return value


def _check_depth(text: str) -> None:
    """Raise ValueError for brackets that are nested too deeply; those in strings do not count."""
    if text.count("[") + text.count("{") <= _DEEP:
        return
    depth, within, skip = 0, False, False
    for c in text:
        if skip:
            skip = False
        elif within:
            skip, within = c == "\\", c != '"'
        elif c == '"':
            within = True
        elif c in "[{":
            depth += 1
            if depth > _DEEP:
                raise ValueError(f"its JSON has more than {_DEEP} brackets within one another")
        elif c in "]}":
            depth -= 1


def member(archive: zipfile.ZipFile, name: str, path: Any, more: int = 0) -> bytes:
    """The contents of a member of a zip archive.

    Args:
        archive: open for reading.
        name: of the member.
        path: of the archive, for errors.
        more: bytes that it may have at least.
    Raises:
        DataLossError: there is no such member, it is damaged, or it is larger than a file of this size may hold.
    """
    with reads(path):
        try:
            about = archive.getinfo(name)
        except KeyError:
            raise ValueError(f"the archive has no {name}") from None
        room = max(bound(os.path.getsize(path)), more)
        if about.file_size > room:
            raise ValueError(f"{name} inflates to {about.file_size:,} bytes; {room:,} are expected at most in an "
                             f"archive of {os.path.getsize(path):,}")
        with archive.open(about) as file:
            data = file.read(room + 1)
        if len(data) > room:
            raise ValueError(f"{name} inflates to more than the {about.file_size:,} bytes that the archive says")
        return data
