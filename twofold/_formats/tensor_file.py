"""Tensors in a file: one `safetensors` file with checksums, written whole or not at all.

Owned here: the dtype and the checksum of every tensor, which stand in the file's metadata. The format, and how dtypes
that it lacks are spelt, is `safetensors`'s; how the file gets to its place is `runtime.replacing`'s; what tensors are
called, and what other metadata says, is for checkpoints.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from twofold._formats import replacing as _replacing
from twofold._formats import safetensors as _safetensors
from twofold.ir import dtypes as dt
from twofold.ir.errors import DataLossError, NotFoundError

__all__ = ["read", "write"]

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
    _replacing.replace(path, lambda file: _safetensors.write(file, stored, texts, hashed=False))


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
        tensors = {name: _safetensors.restored(name, arrays, dtype) for name, dtype in dtypes.items()}
        digests = _digests({name: _safetensors.spelt(name, array, dtypes[name]) for name, array in tensors.items()})
        for name, digest in digests.items():
            if digest != table[name]["sha256"]:
                raise DataLossError(f"{path} is damaged: the checksum of tensor {name!r} does not match its data")
        return tensors, texts
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as e:
        raise DataLossError(f"{path} is damaged: {type(e).__name__}: {e}") from None


def _digests(parts: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, str]:
    """The checksum of each tensor, of the arrays it is stored as; large ones side by side."""
    if sum(array.nbytes for each in parts.values() for array in each.values()) < _MANY:
        return {name: _digest(each) for name, each in parts.items()}
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(parts, pool.map(_digest, parts.values()), strict=True))


def _digest(parts: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(parts):
        part = parts[name]
        digest.update(f"{part.dtype.newbyteorder('<').str} {part.shape} ".encode())
        digest.update(_safetensors.row_major(part))
    return digest.hexdigest()


def _text_digest(texts: Mapping[str, str]) -> str:
    told = json.dumps({k: v for k, v in texts.items() if k != _SUM}, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def _check_metadata(path: Path, texts: Mapping[str, str]) -> None:
    if _TABLE not in texts or _SUM not in texts:
        raise DataLossError(f"{path} holds tensors, but not of a checkpoint or model of twofold's")
    if texts[_SUM] != _text_digest(texts):
        raise DataLossError(f"{path} is damaged: the checksum of its metadata does not match")
