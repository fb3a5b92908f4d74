"""Tensors in a file: one `safetensors` file with checksums, written whole or not at all.

Owned here: the dtype and the checksum of every tensor, which stand in the file's metadata, and the replacement of a
file in one step. The format, and how dtypes that it lacks are spelt, is `_safetensors`'s; what tensors are called, and
what other metadata says, is for checkpoints.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from twofold import _safetensors
from twofold.ir import dtypes as dt
from twofold.ir.errors import DataLossError, NotFoundError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["replace", "read", "write"]

_TABLE = "twofold.tensors"  # the metadata entry that holds dtypes and checksums
_SUM = "twofold.checksum"  # and the checksum of all metadata
_MANY = 1 << 22  # bytes from which threads are worth their while


def write(path: str | os.PathLike[str], tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write a file of tensors in one step: a process that ends before leaves what was there.

    Args:
        path: the file; its folder exists.
        tensors: arrays by name, of any dtype of twofold's; strings are object arrays of bytes.
        metadata: text by name.
    Raises:
        OSError: the file cannot be written.
    """
    dtypes = {name: dt.as_dtype(array.dtype) for name, array in tensors.items()}
    parts = {name: _safetensors.spelt(name, np.asarray(array), dtypes[name]) for name, array in tensors.items()}
    stored = {key: array for each in parts.values() for key, array in each.items()}
    table = {name: {"dtype": dtypes[name].name, "sha256": digest} for name, digest in _digests(parts).items()}
    texts = {**metadata, _TABLE: json.dumps(table, separators=(",", ":"))}
    texts[_SUM] = _text_digest(texts)
    replace(Path(path), lambda file: _safetensors.write(file, stored, texts, hashed=False))


def read(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The tensors and the metadata of a file that `write` wrote.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: the file is damaged, or something else.
    """
    path = Path(path)
    if not path.is_file():
        raise NotFoundError(f"{path}: no such file")
    try:
        with path.open("rb") as file:
            arrays, _, texts = _safetensors.read_all(file, path.stat().st_size, hashed=False)
        _check_metadata(path, texts)
        table = json.loads(texts.pop(_TABLE))
        texts.pop(_SUM)
        dtypes = {name: dt.as_dtype(about["dtype"]) for name, about in table.items()}
        found = {name: _safetensors.restored(name, arrays, dtype) for name, dtype in dtypes.items()}
        digests = _digests({name: _safetensors.spelt(name, array, dtypes[name]) for name, array in found.items()})
        for name, digest in digests.items():
            if digest != table[name]["sha256"]:
                raise DataLossError(f"{path} is damaged: the checksum of tensor {name!r} does not match its data")
        return found, texts
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as e:
        raise DataLossError(f"{path} is damaged: {type(e).__name__}: {e}") from None


def replace(path: Path, content: bytes | Callable[[BinaryIO], object]) -> None:
    """Put `content`, or what it writes, in the place of a file in one step.

    What processes that were killed while they wrote this file have left beside it is deleted.
    """
    temporary, handle = _beside(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content) if isinstance(content, bytes) else content(file)
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, path)  # before the lock is gone, so that nobody takes it for a leftover
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _beside(path: Path) -> tuple[Path, int]:
    """A new file in the same folder, locked for as long as its handle is open."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        _delete_unlocked(left)
    while True:
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        if _locked(handle) and temporary.exists():
            return temporary, handle
        os.close(handle)  # another process has found it before it was locked


def _delete_unlocked(left: Path) -> None:
    try:
        handle = os.open(left, os.O_WRONLY)
    except OSError:
        return
    try:
        if _locked(handle, unsure=False):
            left.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _locked(handle: int, unsure: bool = True) -> bool:
    """Whether this handle has its file's lock now; `unsure` where there are no locks."""
    if fcntl is None:
        return unsure
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return unsure
    return True


def _sync_folder(folder: Path) -> None:
    """Make a rename last, where the system can."""
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


def _digests(parts: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, str]:
    """The checksum of each tensor, of the arrays it is stored as; large ones side by side."""
    if sum(array.nbytes for each in parts.values() for array in each.values()) < _MANY:
        return {name: _digest(each) for name, each in parts.items()}
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(parts, pool.map(_digest, parts.values()), strict=True))


def _digest(parts: Mapping[str, np.ndarray]) -> str:
    found = hashlib.sha256()
    for name in sorted(parts):
        part = parts[name]
        found.update(f"{part.dtype.newbyteorder('<').str} {part.shape} ".encode())
        found.update(_safetensors.row_major(part))
    return found.hexdigest()


def _text_digest(texts: Mapping[str, str]) -> str:
    told = json.dumps({k: v for k, v in texts.items() if k != _SUM}, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def _check_metadata(path: Path, texts: Mapping[str, str]) -> None:
    if _TABLE not in texts or _SUM not in texts:
        raise DataLossError(f"{path} holds tensors, but not of a checkpoint or model of twofold's")
    if texts[_SUM] != _text_digest(texts):
        raise DataLossError(f"{path} is damaged: the checksum of its metadata does not match")
