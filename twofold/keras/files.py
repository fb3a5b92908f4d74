"""Files from the network, kept in a folder of the user's: `tf.keras.utils.get_file`.

A download goes to a file of its own beside the place it is for, and takes that place once it is whole and its checksum
is right; an archive is unpacked in the same way. So nothing that is half done is ever found there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import urllib.parse
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from twofold._formats.replacing import folder_beside, replaced
from twofold._front.api import public

from .progress import Progbar

__all__ = ["get_file", "keras_home"]

_TIMEOUT = 30.0  # seconds without an answer
_PIECE = 1 << 16


def keras_home() -> Path:
    """The folder for files that are kept: `$KERAS_HOME`, by default `~/.keras`."""
    return Path(os.environ.get("KERAS_HOME") or "~/.keras").expanduser()


@public
def get_file(fname: str | os.PathLike[str] | None = None, origin: str | None = None, untar: bool = False,
             md5_hash: str | None = None, file_hash: str | None = None, cache_subdir: str = "datasets",
             hash_algorithm: str = "auto", extract: bool = False, archive_format: str | Sequence[str] | None = "auto",
             cache_dir: str | os.PathLike[str] | None = None, force_download: bool = False) -> str:
    """Download a file, unless it is in the cache already.

    Args:
        fname: its name in the cache; by default that in the address. With `extract` it is the name of the folder.
        origin: the address: http, https, ftp or file.
        untar: the older name of `extract`, for tar archives.
        md5_hash: the older name of `file_hash`, for MD5.
        file_hash: the checksum, SHA-256 or MD5; a file in the cache that has another is downloaded anew.
        cache_subdir: the folder in the cache.
        hash_algorithm: "sha256", "md5", or "auto" to go by the length of the checksum.
        extract: whether to unpack an archive.
        archive_format: "tar", "zip", several of them, or "auto" for both.
        cache_dir: the cache; by default `$KERAS_HOME`, or `~/.keras`.
        force_download: whether to download it in any case.
    Returns:
        The path of the file, with `extract` that of the folder.
    Raises:
        ValueError: there is no address or no name, the name is a path, or the checksum is wrong.
        OSError: the file cannot be downloaded; the message names the file and the folder to put it in.

    >>> import pathlib, tempfile, twofold as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     origin = pathlib.Path(folder, "notes.txt")
    ...     _ = origin.write_text("seen")
    ...     path = tf.keras.utils.get_file(origin=origin.as_uri(), cache_dir=folder)  # doctest: +ELLIPSIS
    ...     print(pathlib.Path(path).relative_to(folder).as_posix(), pathlib.Path(path).read_text())
    Downloading data from file:...
    4/4 ...
    datasets/notes.txt seen
    """
    if origin is None:
        raise ValueError('Please specify the "origin" argument (URL of the file to download).')
    if md5_hash is not None and file_hash is None:
        file_hash, hash_algorithm = md5_hash, "md5"
    unpack = extract or untar
    folder = _folder(cache_dir, cache_subdir)
    target, unpacked = _places(folder, fname, origin, unpack)
    fresh = force_download or not _is_whole(target, file_hash, hash_algorithm)
    if fresh:
        _download(origin, target, file_hash, hash_algorithm)
    if not unpack:
        return str(target)
    if fresh or not unpacked.is_dir():
        _unpack(target, unpacked, "tar" if untar and not extract else archive_format)
    return str(unpacked)


def _folder(cache_dir: Any, cache_subdir: str) -> Path:
    """The folder for the file, made where there is none; one for temporary files where it cannot be written."""
    folder = (Path(cache_dir).expanduser() if cache_dir is not None else keras_home()) / cache_subdir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    folder = Path(tempfile.gettempdir()) / ".keras" / cache_subdir
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _places(folder: Path, fname: Any, origin: str, unpack: bool) -> tuple[Path, Path]:
    """Where the file goes, and the folder that it is unpacked into; the names are Keras's."""
    name = os.fspath(fname) if fname else Path(urllib.parse.unquote(urllib.parse.urlsplit(origin).path)).name
    if not name:
        raise ValueError(f"The address {origin!r} has no file name; give one as `fname`.")
    if Path(name).name != name or name in (".", ".."):
        raise ValueError(f"`fname` must be a name without folders; got {name!r}. The folder is for `cache_dir` and "
                         "`cache_subdir`.")
    if not unpack:
        return folder / name, folder
    if fname and "." in name:
        return folder / name, folder / f"{name[:name.find('.')]}_extracted"
    return folder / f"{name}_archive", folder / name


# -- checksums ------------------------------------------------------------------------------------
def _is_whole(path: Path, expected: str | None, algorithm: str) -> bool:
    """Whether a file is there, with the checksum where one is given."""
    if not path.is_file():
        return False
    if expected is None or _checksum(path, expected, algorithm) == expected.lower():
        return True
    _tell(f"{path} has not the checksum {expected}: it is incomplete or outdated, and downloaded again.")
    return False


def _checksum(path: Path, expected: str, algorithm: str) -> str:
    with path.open("rb") as file:
        return _checksum_of(file, expected, algorithm)


def _checksum_of(file: BinaryIO, expected: str, algorithm: str) -> str:
    if algorithm not in ("auto", "sha256", "md5"):
        raise ValueError(f"`hash_algorithm` must be 'sha256', 'md5' or 'auto'; got {algorithm!r}.")
    sha256 = algorithm == "sha256" or (algorithm == "auto" and len(expected) == 64)
    made = hashlib.sha256() if sha256 else hashlib.md5(usedforsecurity=False)
    while piece := file.read(_PIECE):
        made.update(piece)
    return made.hexdigest()


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


# -- downloads ------------------------------------------------------------------------------------
def _download(origin: str, target: Path, expected: str | None, algorithm: str) -> None:
    _tell(f"Downloading data from {origin}")
    with replaced(target) as file:
        _fetch(origin, file, target)
        file.seek(0)
        if expected is not None and (checksum := _checksum_of(file, expected, algorithm)) != expected.lower():
            raise ValueError(f"Incomplete or corrupted file: what {origin} gave has the checksum {checksum}; expected "
                             f"{expected}. Nothing was kept.")


def _fetch(origin: str, file: BinaryIO, target: Path) -> None:
    """Download an address into a file, with a progress bar.

    Raises:
        OSError: there is nothing, or it ends too early.
    """
    import urllib.error
    import urllib.request  # 40 ms, for those who download
    try:
        with urllib.request.urlopen(origin, timeout=_TIMEOUT) as answer:
            length = answer.headers.get("Content-Length")
            size = int(length) if length is not None else None
            done, bar = 0, Progbar(size, unit_name="byte")
            while piece := answer.read(_PIECE):
                file.write(piece)
                done += len(piece)
                bar.update(done)
            if size is None:
                bar.update(done, finalize=True)
            elif done < size:
                raise ConnectionError(f"the connection ended after {done} of {size} bytes")
    except urllib.error.HTTPError as error:
        with error:  # it is the response, too
            raise OSError(_unreachable(origin, target, f"{error.code} {error.reason}")) from None
    except urllib.error.URLError as error:
        raise OSError(_unreachable(origin, target, str(error.reason))) from None
    except (ConnectionError, TimeoutError) as error:
        raise OSError(_unreachable(origin, target, str(error) or type(error).__name__)) from None


def _unreachable(origin: str, target: Path, reason: str) -> str:
    return (f"Cannot download {target.name} from {origin}: {reason}. On a machine without a network, put the file "
            f"there yourself: {target}")


# -- archives -------------------------------------------------------------------------------------
def _unpack(archive: Path, folder: Path, formats: Any) -> None:
    """Unpack an archive into a folder that is there when all of it is.

    Raises:
        ValueError: it is no archive of these formats, or something in it would lie outside of the folder.
    """
    import tarfile
    import zipfile
    listed = ("tar", "zip") if formats == "auto" else (formats,) if isinstance(formats, str) else tuple(formats or ())
    try:
        with folder_beside(folder) as made:
            part = Path(made)
            _extract(archive, part, listed)
            if folder.is_dir():
                shutil.rmtree(folder)
            part.replace(folder)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{archive} cannot be unpacked: {error}") from None


def _extract(archive: Path, part: Path, formats: tuple[str, ...]) -> None:
    import tarfile
    import zipfile
    if "tar" in formats and tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            tar.extractall(part, filter="data")  # no links, owners or paths that lead out
    elif "zip" in formats and zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            _check_names(packed.namelist(), part)
            packed.extractall(part)
    else:
        raise ValueError(f"{archive} is no archive of the formats {list(formats)}.")


def _check_names(names: Sequence[str], folder: Path) -> None:
    inside = folder.resolve()
    for name in names:
        if not (inside / name).resolve().is_relative_to(inside):
            raise ValueError(f"The archive has a member that would lie outside of the folder: {name!r}.")
