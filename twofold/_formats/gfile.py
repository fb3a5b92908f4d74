"""`tf.io.gfile`: files and folders of this machine, with TensorFlow's names and errors; and files as string tensors."""

from __future__ import annotations

import glob as _glob
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twofold import errors
from twofold._front import iteration as engine
from twofold._front.namespace import publish
from twofold.ir import dtypes as dt
from twofold.ir.spec import TensorSpec

from .._front.api import describe, public, public_class, tensor
from .._front.hosted import hosted

__all__ = ["GFile", "copy", "exists", "get_registered_schemes", "glob", "isdir", "join", "listdir", "makedirs",
           "matching_files", "mkdir", "read_file", "remove", "rename", "rmtree", "stat", "walk", "write_file"]


def _path(path: Any) -> str:
    plain = path.numpy() if hasattr(path, "numpy") else path
    return os.fsdecode(plain)


def _told(fn: Callable[[], Any], path: str) -> Any:
    """The result of `fn`; an OSError becomes TensorFlow's error for it."""
    try:
        return fn()
    except FileNotFoundError as e:
        raise errors.NotFoundError(None, None, f"{path}; No such file or directory ({e})") from None
    except FileExistsError as e:
        raise errors.AlreadyExistsError(None, None, f"{path}; file already exists ({e})") from None
    except PermissionError as e:
        raise errors.PermissionDeniedError(None, None, f"{path}; {e}") from None
    except (IsADirectoryError, NotADirectoryError, OSError) as e:
        raise errors.FailedPreconditionError(None, None, f"{path}; {e}") from None


@public_class
class GFile:
    """A file, opened as `open` does; a context manager, and an iterator over lines.

    Args:
        name: the path.
        mode: "r", "w", "a", "r+", or these with "b" for bytes.
    Raises:
        NotFoundError: there is no such file or folder.
        TypeError: the mode is no string.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "notes")
    >>> with tf.io.gfile.GFile(path, "w") as file:
    ...     file.write("a line")
    >>> tf.io.gfile.GFile(path).read()
    'a line'
    """

    def __init__(self, name: Any, mode: str = "r"):
        if not isinstance(mode, str):
            raise TypeError(f"mode must be a string such as 'r' or 'wb'; got {describe(mode)}.")
        self.name, self.mode = _path(name), mode
        text = "b" not in mode
        how: dict[str, Any] = {"encoding": "utf-8", "newline": ""} if text else {}
        self._file = _told(lambda: open(self.name, mode, **how), self.name)  # noqa: SIM115 - `close` is the caller's

    def read(self, n: int = -1) -> Any:
        """The next `n` characters, or bytes; the rest by default."""
        return self._file.read(n)

    def readline(self) -> Any:
        """The next line, with its end."""
        return self._file.readline()

    def readlines(self) -> list[Any]:
        """The lines that are left."""
        return list(self._file.readlines())

    def write(self, file_content: Any) -> None:
        """Append text, or bytes."""
        text = isinstance(file_content, bytes) and "b" not in self.mode
        self._file.write(file_content.decode() if text else file_content)

    def seek(self, offset: int = 0, whence: int = 0) -> None:
        """Go to a place."""
        self._file.seek(offset, whence)

    def tell(self) -> int:
        """The place where it is."""
        return int(self._file.tell())

    def seekable(self) -> bool:
        """Whether it can go to places."""
        return bool(self._file.seekable())

    def size(self) -> int:
        """The size of the file in bytes."""
        if not self._file.closed and self._file.writable():
            self._file.flush()
        return os.path.getsize(self.name)

    def flush(self) -> None:
        """Bring what was written to the file."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __del__(self) -> None:
        file = self.__dict__.get("_file")  # none where it could not be opened
        if file is not None:
            file.close()

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *details: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)


class _Stat(NamedTuple):
    """Properties of a file: `length` in bytes, `mtime_nsec` when it was changed, `is_directory`."""

    length: int
    mtime_nsec: int
    is_directory: bool


@public
def exists(path: Any) -> bool:
    """Whether there is such a file or folder.

    >>> import twofold as tf
    >>> tf.io.gfile.exists("/nowhere/at/all")
    False
    """
    return os.path.exists(_path(path))


@public
def isdir(path: Any) -> bool:
    """Whether there is such a folder."""
    return os.path.isdir(_path(path))


@public
def glob(pattern: Any) -> list[str]:
    """The paths that match a pattern, or a list of patterns, in order."""
    several = pattern if isinstance(pattern, (list, tuple)) else [pattern]
    return [path for each in several for path in sorted(_glob.glob(_path(each)))]


@public
def listdir(path: Any) -> list[str]:
    """The names in a folder.

    Raises:
        NotFoundError: there is no such folder.
    """
    return list(_told(lambda: sorted(os.listdir(_path(path))), _path(path)))


@public
def makedirs(path: Any) -> None:
    """Make a folder, and those that it lies in; nothing happens where it is there."""
    _told(lambda: os.makedirs(_path(path), exist_ok=True), _path(path))


@public
def mkdir(path: Any) -> None:
    """Make a folder.

    Raises:
        AlreadyExistsError: it is there. NotFoundError: the one that it lies in is not.
    """
    _told(lambda: os.mkdir(_path(path)), _path(path))


@public
def remove(path: Any) -> None:
    """Delete a file.

    Raises:
        NotFoundError: there is none.
    """
    _told(lambda: os.remove(_path(path)), _path(path))


@public
def rmtree(path: Any) -> None:
    """Delete a folder with all that is in it.

    Raises:
        NotFoundError: there is none.
    """
    _told(lambda: shutil.rmtree(_path(path)), _path(path))


def _free(path: str, overwrite: bool) -> None:
    if not overwrite and os.path.exists(path):
        raise errors.AlreadyExistsError(None, None, f"{path}; file already exists")


@public
def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copy a file.

    Args:
        src, dst: from where and to where.
        overwrite: whether a file there is replaced.
    Raises:
        NotFoundError: there is none. AlreadyExistsError: there is one at the other place.
    """
    _free(_path(dst), overwrite)
    _told(lambda: shutil.copyfile(_path(src), _path(dst)), _path(src))


@public
def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Move a file or folder; see `copy`."""
    _free(_path(dst), overwrite)
    _told(lambda: os.replace(_path(src), _path(dst)), _path(src))


@public
def stat(path: Any) -> _Stat:
    """The size of a file, when it was changed, and whether it is a folder.

    Raises:
        NotFoundError: there is none.
    """
    status = _told(lambda: os.stat(_path(path)), _path(path))
    return _Stat(status.st_size, status.st_mtime_ns, os.path.isdir(_path(path)))


@public
def walk(top: Any, topdown: bool = True, onerror: Any = None) -> Iterator[tuple[str, list[str], list[str]]]:
    """The folders in a folder, each with the names of folders and files in it; see `os.walk`."""
    return os.walk(_path(top), topdown, onerror)


@public
def get_registered_schemes() -> list[str]:
    """The kinds of file systems that paths may name: those of the system alone.

    >>> import twofold as tf
    >>> tf.io.gfile.get_registered_schemes()
    ['', 'file']
    """
    return ["", "file"]


@public
def join(path: Any, *paths: Any) -> str:
    """Parts of a path together; see `os.path.join`."""
    return os.path.join(_path(path), *[_path(p) for p in paths])


# -- in graphs -----------------------------------------------------------------------------------------
@public
@hosted
def read_file(filename: Any, name: str | None = None) -> Any:
    """The contents of a file, a string scalar; in a traced function it is read each time that the function runs.

    Args:
        filename: a path, or a string scalar.
        name: has no effect.
    Raises:
        NotFoundError: there is no such file.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "notes")
    >>> tf.io.write_file(path, "a line")
    >>> tf.io.read_file(path).numpy()
    b'a line'
    """
    def read(path: Any) -> list[Any]:
        content = np.empty((), object)
        text = os.fsdecode(engine.array_of(path).item())
        content[()] = _told(lambda: Path(text).read_bytes(), text)
        return [engine.tensor_of(content)]
    return engine.host_call(read, "ReadFile", [_string(filename)], [TensorSpec((), dt.string)])[0]


def _string(value: Any) -> Any:
    given = tensor(os.fspath(value) if isinstance(value, os.PathLike) else value)
    if given.dtype is not dt.string or given.shape.rank not in (0, None):
        raise errors.InvalidArgumentError(None, None, f"expected a string scalar; got {given!r}")
    return given


@public
@hosted
def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Write a file anew, and the folders that it lies in; in a function, each time that it runs.

    Args:
        filename: a path, or a string scalar.
        contents: a string scalar.
        name: has no effect.
    """
    def replace(path: Any, content: Any) -> list[Any]:
        text = os.fsdecode(engine.array_of(path).item())

        def write() -> None:
            Path(text).parent.mkdir(parents=True, exist_ok=True)
            Path(text).write_bytes(engine.array_of(content).item())
        _told(write, text)
        return []
    engine.host_effect(replace, "WriteFile", [_string(filename), _string(contents)])


@public
@hosted
def matching_files(pattern: Any, name: str | None = None) -> Any:
    """The paths that match patterns, in order: a string vector; in a function, each time that it runs.

    Args:
        pattern: a string scalar, or a vector of strings.
        name: has no effect.
    """
    def matching(given: Any) -> list[Any]:
        paths = [p.encode() for each in engine.array_of(given).ravel().tolist() for p in sorted(
            _glob.glob(os.fsdecode(each)))]
        array = np.empty(len(paths), object)
        array[:] = paths
        return [engine.tensor_of(array)]
    return engine.host_call(matching, "MatchingFiles", [tensor(pattern)], [TensorSpec((None,), dt.string)])[0]


publish(__name__)
