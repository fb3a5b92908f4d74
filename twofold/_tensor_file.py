"""Tensors in a file: one `safetensors` file with checksums, written whole or not at all.

Owned here: how dtypes that the format lacks are stored (bfloat16 as its bits; strings as lengths and bytes), the
checksum of every tensor, and the replacement of a file in one step. What tensors are called, and what other metadata
says, is for checkpoints and saved models.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from twofold.ir import dtypes as dt
from twofold.ir.errors import DataLossError, NotFoundError

__all__ = ["replace", "read", "write"]

_TABLE = "twofold.tensors"  # the metadata entry that holds dtypes and checksums
_SUM = "twofold.checksum"  # and the checksum of all metadata
_LENGTHS = ".lengths"  # what a tensor of strings has beside its bytes


def write(path: str | os.PathLike[str], tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write a file of tensors in one step: a process that ends before leaves what was there.

    Args:
        path: the file; its folder exists.
        tensors: arrays by name, of any dtype of twofold's; strings are object arrays of bytes.
        metadata: text by name.
    Raises:
        OSError: the file cannot be written.
    """
    from safetensors.numpy import save

    table: dict[str, Any] = {}
    stored: dict[str, np.ndarray] = {}
    for name, array in tensors.items():
        dtype = dt.as_dtype(array.dtype)
        parts = _encoded(name, np.asarray(array), dtype)
        stored.update(parts)
        table[name] = {"dtype": dtype.name, "shape": list(array.shape), "sha256": _digest(parts)}
    texts = {**metadata, _TABLE: json.dumps(table, separators=(",", ":"))}
    texts[_SUM] = _text_digest(texts)
    replace(Path(path), save(stored, texts))


def read(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The tensors and the metadata of a file that `write` wrote.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: the file is damaged, or something else.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise NotFoundError(f"{path}: no such file")
    try:
        with safe_open(path, framework="numpy") as file:
            texts = dict(file.metadata() or {})
            _check_metadata(path, texts)
            table = json.loads(texts.pop(_TABLE))
            texts.pop(_SUM)
            held = set(file.keys())
            tensors = {}
            for name, about in table.items():
                parts = {key: file.get_tensor(key) for key in (name, name + _LENGTHS) if key in held}
                tensors[name] = _decoded(path, name, parts, about)
    except (SafetensorError, ValueError, TypeError, KeyError, RecursionError) as e:
        raise DataLossError(f"{path} is damaged: {type(e).__name__}: {e}") from None
    return tensors, texts


def replace(path: Path, content: bytes) -> None:
    """Put `content` in the place of a file in one step."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


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


def _encoded(name: str, array: np.ndarray, dtype: dt.DType) -> dict[str, np.ndarray]:
    if dtype.kind == "s":
        items = [bytes(item) for item in array.reshape(-1)]
        return {name: np.frombuffer(b"".join(items), np.uint8),
                name + _LENGTHS: np.array([len(item) for item in items], np.uint64)}
    array = np.ascontiguousarray(array).reshape(array.shape)
    if dtype == dt.bfloat16:
        return {name: array.view(np.uint16)}
    if dtype.is_complex:
        return {name: array.reshape(-1).view(array.real.dtype)}
    return {name: array}


def _decoded(path: Path, name: str, parts: dict[str, np.ndarray], about: dict[str, Any]) -> np.ndarray:
    if _digest(parts) != about["sha256"]:
        raise DataLossError(f"{path} is damaged: the checksum of tensor {name!r} does not match its data")
    dtype, shape = dt.as_dtype(about["dtype"]), tuple(about["shape"])
    array = parts[name]
    if dtype.kind == "s":
        ends = np.cumsum(parts[name + _LENGTHS], dtype=np.int64).tolist()
        data, out = array.tobytes(), np.empty(len(ends), object)
        out[:] = [data[begin:end] for begin, end in itertools.pairwise([0, *ends])]
        return out.reshape(shape)
    return array.view(dtype.np).reshape(shape)


def _digest(parts: Mapping[str, np.ndarray]) -> str:
    found = hashlib.sha256()
    for name in sorted(parts):
        part = parts[name]
        found.update(f"{part.dtype.str} {part.shape} ".encode())
        found.update(part.reshape(-1).view(np.uint8).data if part.size else b"")
    return found.hexdigest()


def _text_digest(texts: Mapping[str, str]) -> str:
    told = json.dumps({k: v for k, v in texts.items() if k != _SUM}, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def _check_metadata(path: Path, texts: Mapping[str, str]) -> None:
    if _TABLE not in texts or _SUM not in texts:
        raise DataLossError(f"{path} holds tensors, but not of a checkpoint or model of twofold's")
    if texts[_SUM] != _text_digest(texts):
        raise DataLossError(f"{path} is damaged: the checksum of its metadata does not match")
