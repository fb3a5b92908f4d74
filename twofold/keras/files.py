"""Files from the network: downloaded once, checked, kept in a folder of the user's."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from .progress import Progbar

__all__ = ["get_file", "home"]

_CHUNK = 1 << 16


def home() -> Path:
    """The folder of Keras's files: `KERAS_HOME`, or `~/.keras`."""
    return Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras")


def get_file(fname: Any = None, origin: str | None = None, untar: bool = False, md5_hash: str | None = None,
             file_hash: str | None = None, cache_subdir: str = "datasets", hash_algorithm: str = "auto",
             extract: bool = False, archive_format: Any = "auto", cache_dir: Any = None,
             force_download: bool = False) -> str:
    """A file of the network, from the cache where it is there.

    Args:
        fname: its name in the cache; by default the last part of the address. A full path is taken as it is.
        origin: the address: http, https, ftp or file.
        untar, extract: whether an archive is taken apart, into a folder beside it.
        md5_hash, file_hash: what the file's hash must be.
        cache_subdir: the folder within the cache.
        hash_algorithm: "sha256", "md5", or "auto", by the length of the hash.
        archive_format: "auto", "tar", "zip", or a list of them.
        cache_dir: the cache, instead of `~/.keras`.
        force_download: whether the file is fetched where it is there, too.
    Returns:
        The path of the file, or of the folder that the archive was taken apart into.
    Raises:
        ValueError: there is no address, or the hash of what came is another.
        OSError: the file cannot be fetched; the text names the address and the place where it may be put by hand.
    """
    if origin is None:
        raise ValueError('Please specify the "origin" argument (URL of the file to download).')
    file_hash = file_hash or md5_hash
    algorithm = _algorithm(hash_algorithm if md5_hash is None or file_hash is not md5_hash else "md5", file_hash)
    name = os.fspath(fname) if fname else os.path.basename(urlparse(origin).path)
    if not name:
        raise ValueError(f"The address {origin} names no file: give `fname`.")
    folder = Path(cache_dir if cache_dir is not None else home()) / cache_subdir
    target = Path(name) if os.path.isabs(name) else folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    stale = target.exists() and file_hash is not None and _digest(target, algorithm) != file_hash
    if stale:
        sys.stdout.write(f"A local file was found, but it seems to be incomplete or outdated because the {algorithm} "
                         f"file hash does not match the original value of {file_hash} so we will re-download the "
                         "data.\n")
    if force_download or stale or not target.exists():
        _fetch(origin, target, file_hash, algorithm)
    if not (extract or untar):
        return str(target)
    return str(_taken_apart(target, "tar" if untar and archive_format == "auto" else archive_format))


def _algorithm(named: str, file_hash: str | None) -> str:
    if named == "auto":
        return "sha256" if file_hash is None or len(file_hash) == 64 else "md5"
    if named not in ("sha256", "md5"):
        raise ValueError(f"Unknown hash algorithm: {named!r}. Expected 'auto', 'sha256' or 'md5'.")
    return named


def _digest(path: Path, algorithm: str) -> str:
    found = hashlib.new(algorithm, usedforsecurity=False)
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _fetch(origin: str, target: Path, file_hash: str | None, algorithm: str) -> None:
    """Download into a file of another name, check it, and put it in its place."""
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    sys.stdout.write(f"Downloading data from {origin}\n")
    try:
        with urllib.request.urlopen(origin, timeout=60) as source, open(part, "wb") as file:
            _copy(source, file)
        if file_hash is not None and _digest(part, algorithm) != file_hash:
            raise ValueError(f"Incomplete or corrupted file detected. The {algorithm} file hash of {origin} does not "
                             f"match the provided value of {file_hash}.")
        os.replace(part, target)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as e:
        raise OSError(f"{origin} cannot be fetched: {e}. Without a network, put the file '{target.name}' into the "
                      f"folder {target.parent}.") from e
    finally:
        if part.exists():
            part.unlink()


def _copy(source: Any, file: Any) -> None:
    length = source.headers.get("Content-Length")
    total = int(length) if length and length.isdigit() else None
    bar, done = Progbar(total, unit_name="byte"), 0
    while chunk := source.read(_CHUNK):
        file.write(chunk)
        done += len(chunk)
        bar.update(done, finalize=False)
    bar.update(done, finalize=True)
    if total is not None and done < total:
        raise ConnectionError(f"the connection ended after {done} of {total} bytes")


def _taken_apart(path: Path, kinds: Any) -> Path:
    """The folder with what is in an archive; nothing in it is written outside of that folder."""
    folder = path.with_name(f"{path.name}_extracted") if path.suffix else path.with_name(f"{path.name}_extracted")
    kinds = ("tar", "zip") if kinds == "auto" else () if kinds is None else [kinds] if isinstance(kinds, str) else kinds
    if folder.exists():
        return folder
    part = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    part.mkdir()
    try:
        if "tar" in kinds and tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                archive.extractall(part, filter="data")
        elif "zip" in kinds and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                archive.extractall(part)
        else:
            part.rmdir()
            return path
        os.replace(part, folder)
    finally:
        if part.exists():
            shutil.rmtree(part)
    return folder
