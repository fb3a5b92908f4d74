"""The directory of a saved model: the manifest, files that are checked as they are read, and the atomic exchange.

    DIR/manifest.json          names the folder below, and each file in it with size and SHA-256
    DIR/data-0123456789ab/     objects.json, graphs/, weights.safetensors, assets/

A save writes a new data folder, makes it durable, and then replaces the manifest by renaming: that one step decides,
so whoever dies before or after it leaves a whole model. Data folders that no manifest names, and what dead processes
left unfinished (`runtime.replacing`), are removed by the next save. Nothing else in DIR is touched.

Files are opened one component at a time without following links, must be regular, and their sizes and checksums are
compared before their contents are used. What the files say is for `reader.py` and `writing.py`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

from twofold.ir.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from twofold.runtime.replacing import alone, folder_beside, replace, sync_folder
from twofold.version import __version__

__all__ = ["MANIFEST", "FORMAT_VERSION", "Manifest", "Stored", "Writer", "exists", "read_manifest", "exchange",
           "written_by_tensorflow"]

MANIFEST = "manifest.json"
FORMAT_VERSION = 1
_FORMAT = "twofold saved model"
_MANIFEST_SIZE = 16 << 20  # bytes; some hundred thousand files
_DATA = re.compile(r"data-[0-9a-f]{12}(-\d{1,6})?")
_OWN = frozenset({"objects.json", "graphs", "weights.safetensors", "assets"})
_OPENS_BELOW = os.open in os.supports_dir_fd  # not on Windows
_DIGEST = re.compile(r"[0-9a-f]{64}")


class NoModelError(NotFoundError, OSError):
    """There is no saved model; an OSError, too, as TensorFlow raises."""


@dataclass(frozen=True)
class Manifest:
    """The contents of a manifest.

    Attributes:
        data: the folder of the files.
        files: size and SHA-256 of each, by its path in that folder, with "/".
        op_set: the version of the ops that graphs are made of.
        twofold: the version that wrote it.
    """

    data: str
    files: dict[str, tuple[int, str]]
    op_set: int
    twofold: str = __version__

    def text(self) -> bytes:
        """The file, of which there is one form only."""
        body = {"format": _FORMAT, "format_version": FORMAT_VERSION, "op_set": self.op_set, "twofold": self.twofold,
                "data": self.data, "files": {name: {"size": size, "sha256": digest}
                                             for name, (size, digest) in sorted(self.files.items())}}
        return _dumped({**body, "checksum": hashlib.sha256(_dumped(body)).hexdigest()})


def _dumped(body: dict[str, Any]) -> bytes:
    return json.dumps(body, indent=1, ensure_ascii=True).encode("ascii") + b"\n"


def exists(path: str) -> bool:
    """Whether `path` is a directory with a manifest."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def written_by_tensorflow(path: str) -> bool:
    """Whether `path` is a directory with a saved model of TensorFlow's."""
    return os.path.isfile(os.path.join(path, "saved_model.pb"))


# -- reading ------------------------------------------------------------------------------------------
def read_manifest(path: str, newest_op_set: int) -> Manifest:
    """The manifest of a saved model.

    Args:
        path: of the directory.
        newest_op_set: the newest version of the ops that can be read.
    Raises:
        NotFoundError: there is none. DataLossError: it is damaged. FailedPreconditionError: it is of a newer version.
    """
    if not exists(path):
        hint = (". TensorFlow wrote what is there: tf.saved_model.load gives it, and tf.saved_model.save writes that "
                "as a model for this") if written_by_tensorflow(path) else ""
        raise NoModelError(None, None, f"SavedModel file does not exist at: {path}{os.sep}{{{MANIFEST}}}{hint}")
    try:
        with _opened(path, (MANIFEST,)) as file:
            data = file.read(_MANIFEST_SIZE + 1)
    except OSError as e:
        raise DataLossError(None, None, f"{path}: {MANIFEST} cannot be read: {e.strerror}.") from None
    try:
        return _manifest(data, path, newest_op_set)
    except (ValueError, RecursionError, KeyError, TypeError) as e:
        if isinstance(e, (FailedPreconditionError, DataLossError)):
            raise
        raise DataLossError(None, None, f"{path}: {MANIFEST} is damaged: {e}.") from None


def _manifest(data: bytes, path: str, newest_op_set: int) -> Manifest:
    body = json.loads(data.decode("ascii"))
    if type(body) is not dict or body.get("format") != _FORMAT:
        raise ValueError(f"it is not of the format {_FORMAT!r}")
    version = body.get("format_version")
    if type(version) is int and version > FORMAT_VERSION:
        raise FailedPreconditionError(
            None, None, f"{path} has format version {version}, written by twofold {_shown(body.get('twofold'))}; this "
            f"version of twofold ({__version__}) reads up to {FORMAT_VERSION}. A newer twofold reads it.")
    checksum = body.pop("checksum", None)
    if type(version) is not int or hashlib.sha256(_dumped(body)).hexdigest() != checksum:
        raise ValueError("its checksum does not fit")
    files = {_path(name): _file(about) for name, about in _typed(body["files"], dict).items()}
    folder = _typed(body["data"], str)
    if _DATA.fullmatch(folder) is None:
        raise ValueError(f"{_shown(folder)} is no data folder")
    manifest = Manifest(folder, files, _typed(body["op_set"], int), _typed(body["twofold"], str))
    if manifest.text() != data:
        raise ValueError("it is not spelt as manifests are")
    if not 1 <= manifest.op_set <= newest_op_set:
        raise FailedPreconditionError(
            None, None, f"{path} has graphs of op-set version {manifest.op_set}, written by twofold "
            f"{_shown(manifest.twofold)}; this version of twofold ({__version__}) reads 1 to {newest_op_set}.")
    return manifest


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{_shown(value)} is found where {kind.__name__} is expected")
    return value


def _file(about: Any) -> tuple[int, str]:
    size, digest = _typed(about, dict)["size"], about["sha256"]
    if type(size) is not int or not 0 <= size < 1 << 62 or _DIGEST.fullmatch(_typed(digest, str)) is None:
        raise ValueError("a file has no size and checksum")
    return size, digest


def _path(name: str) -> str:
    parts = name.split("/")
    if len(name) > 1000 or any(not p or p in (".", "..") or "\\" in p or not p.isprintable() for p in parts):
        raise ValueError(f"{_shown(name)} is no path of a file in the data folder")
    return name


class Stored:
    """The files of a saved model, each of which is compared with the manifest as it is read.

    Args:
        path: of the directory.
        manifest: its manifest.
    """

    def __init__(self, path: str, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest

    def check_sizes(self) -> None:
        """Raise DataLossError unless each file is there, regular, and of the right size."""
        for name, (size, _) in self.manifest.files.items():
            with self._open(name) as file:
                there = os.fstat(file.fileno()).st_size
            if there != size:
                raise self.damaged(name, f"has {there} bytes; the manifest says {size}")

    def read(self, name: str) -> bytes:
        """The contents of one file.

        Raises:
            DataLossError: it is not what the manifest says.
        """
        def whole(file: BinaryIO, size: int) -> tuple[bytes, str]:
            data = file.read(size + 1)
            if len(data) != size:
                raise self.damaged(name, "has changed while it was read")
            return data, hashlib.sha256(data).hexdigest()
        return self.parsed(name, whole)

    def check(self, name: str) -> None:
        """Compare the contents of one file, of any size, with the manifest.

        Raises:
            DataLossError: they differ.
        """
        self.parsed(name, lambda file, size: (None, hashlib.file_digest(
            file, "sha256").hexdigest()))  # type: ignore[arg-type]

    def parsed(self, name: str, parse: Callable[[BinaryIO, int], tuple[Any, str]]) -> Any:
        """What `parse` makes of a file.

        Args:
            name: of the file.
            parse: from the file and its size to a result and the SHA-256 of all bytes that it read.
        Raises:
            DataLossError: the file is not what the manifest says, or `parse` raised ValueError.
        """
        if name not in self.manifest.files:
            raise self.damaged(name, "is not in the manifest")
        size, expected = self.manifest.files[name]
        with self._open(name) as file:
            if os.fstat(file.fileno()).st_size != size:
                raise self.damaged(name, f"does not have the {size} bytes that the manifest says")
            try:
                content, digest = parse(file, size)
            except ValueError as e:
                if isinstance(e, DataLossError):
                    raise
                raise self.damaged(name, f"cannot be read: {e}") from None
        if digest != expected:
            raise self.damaged(name, "is damaged: its checksum does not fit")
        return content

    def full_path(self, name: str) -> str:
        """Where a file of the data folder lies."""
        return os.path.join(os.path.abspath(self.path), self.manifest.data, *name.split("/"))

    def _open(self, name: str) -> contextlib.AbstractContextManager[BinaryIO]:
        try:
            return _opened(self.path, (self.manifest.data, *name.split("/")))
        except OSError as e:
            raise self.damaged(name, f"cannot be read: {e.strerror}") from None

    def damaged(self, name: str, problem: str) -> DataLossError:
        """The error for a file."""
        return DataLossError(None, None, f"{self.path}: {_shown(name)} {problem}.")


def _opened(root: str, parts: tuple[str, ...]) -> BinaryIO:
    """A regular file below `root`, opened without following links and without waiting.

    Raises:
        OSError: there is none.
    """
    if not _OPENS_BELOW:
        return _opened_by_path(root, parts)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        number = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(0, "it is no regular file")
    return os.fdopen(number, "rb")


def _opened_by_path(root: str, parts: tuple[str, ...]) -> BinaryIO:
    """The same where files cannot be opened by their folder's handle: links are looked for beforehand, part by part."""
    path = root
    for part in parts:
        path = os.path.join(path, part)
        status = os.lstat(path)
        is_link = getattr(status, "st_file_attributes", 0) & stat.FILE_ATTRIBUTE_REPARSE_POINT
        if stat.S_ISLNK(status.st_mode) or is_link or os.path.basename(part) != part or ":" in part:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "it is no regular file")
    return open(path, "rb")


# -- writing ------------------------------------------------------------------------------------------
class Writer:
    """The new data folder of a save: files that are made durable, with their sizes and checksums.

    Attributes:
        files: size and SHA-256 of what was written, by path.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.files: dict[str, tuple[int, str]] = {}
        self._folders = {folder}

    def put(self, name: str, data: bytes) -> None:
        """Write a file."""
        def whole(file: BinaryIO) -> tuple[int, str]:
            file.write(data)
            return len(data), hashlib.sha256(data).hexdigest()
        self.write(name, whole)

    def copy(self, name: str, source: str) -> None:
        """Copy a file from elsewhere."""
        def whole(file: BinaryIO) -> tuple[int, str]:
            digest, count = hashlib.sha256(), 0
            with open(source, "rb") as given:
                while piece := given.read(1 << 20):
                    file.write(piece)
                    digest.update(piece)
                    count += len(piece)
            return count, digest.hexdigest()
        self.write(name, whole)

    def write(self, name: str, fill: Callable[[BinaryIO], tuple[int, str]]) -> None:
        """Write a file by a function that gives its size and SHA-256."""
        path = os.path.join(self.folder, *_path(name).split("/"))
        parent = os.path.dirname(path)
        os.makedirs(parent, exist_ok=True)
        self._folders.add(parent)
        with open(path, "xb") as file:
            self.files[name] = fill(file)
            file.flush()
            os.fsync(file.fileno())

    def finish(self) -> None:
        """Make the folders durable, too."""
        for folder in sorted(self._folders, reverse=True):
            sync_folder(folder)


def exchange(path: str, op_set: int, fill: Callable[[Writer], None]) -> None:
    """Make `path` the saved model that `fill` writes; until that is whole, what was there stays.

    Args:
        path: of the directory, which is made when it is not there.
        op_set: the version of the ops of the graphs.
        fill: writes the files.
    Raises:
        InvalidArgumentError: there is something else than a directory.
    """
    if os.path.exists(path) and not os.path.isdir(path):
        raise InvalidArgumentError(None, None, f"{path} is no directory: a saved model cannot be written there.")
    if not os.path.isdir(path):
        os.makedirs(path, exist_ok=True)
        sync_folder(os.path.dirname(os.path.abspath(path)))
    with alone(path) as certain:
        with folder_beside(os.path.join(path, "data")) as folder:
            writer = Writer(folder)
            fill(writer)
            writer.finish()
            before = _named(path)
            manifest = _placed(path, folder, writer.files, op_set, before)
        replace(os.path.join(path, MANIFEST), manifest.text())
        _tidy(path, {manifest.data}, None if certain else before)


def _placed(path: str, folder: str, files: dict[str, tuple[int, str]], op_set: int, before: str | None) -> Manifest:
    """The manifest, after the folder has got its name, which its contents give."""
    listing = json.dumps([op_set, sorted(files.items())]).encode()
    stem = f"data-{hashlib.sha256(listing).hexdigest()[:12]}"
    for name in (stem, *[f"{stem}-{n}" for n in range(1, 1000)]):
        target = os.path.join(path, name)
        if name != before and os.path.isdir(target) and not os.path.islink(target) and _ours(target):
            shutil.rmtree(target, ignore_errors=True)  # left by a save that did not end
        if not os.path.lexists(target):
            os.rename(folder, target)
            sync_folder(path)
            return Manifest(name, files, op_set)
    raise FailedPreconditionError(None, None, f"{path} has too many data folders of one name.")


def _named(path: str) -> str | None:
    """The data folder that the manifest in `path` names, as far as that can be told."""
    try:
        with open(os.path.join(path, MANIFEST), "rb") as file:
            folder = json.loads(file.read(_MANIFEST_SIZE))["data"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return folder if isinstance(folder, str) and _DATA.fullmatch(folder) else None


def _tidy(path: str, keep: set[str], only: str | None) -> None:
    """Remove what saves have left: data folders that are not named.

    Args:
        keep: the folders that stay.
        only: the one folder that may go, where other saves may be under way; None for all.
    """
    for entry in list(os.scandir(path)):
        name = entry.name
        if name in keep or (only is not None and name != only) or entry.is_symlink():
            continue
        if entry.is_dir() and _DATA.fullmatch(name) and _ours(entry.path):
            shutil.rmtree(entry.path, ignore_errors=True)


def _ours(folder: str) -> bool:
    """Whether a folder holds nothing but what saves write."""
    return all(name in _OWN for name in os.listdir(folder))
