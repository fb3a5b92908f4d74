"""Libraries of `tf.export.native` as servables.

The header beside a library says what its functions are: names, structs with dtypes and shapes, which arguments there
are besides. Library and header must belong together (`PREFIX_interface`). Functions are called by ctypes, which gives
up the interpreter's lock meanwhile. What is loaded stays in memory until the process ends, as other code might still
run in it.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from twofold.ir.dtypes import as_dtype
from twofold.ir.errors import DataLossError, InternalError, InvalidArgumentError
from twofold.runtime.locks import Lock

from .servable import DEFAULT, Arrays, Function, Servable, TensorInfo

__all__ = ["files_of", "load"]

_I64 = ctypes.c_int64
_ALIGNED = 64
_BLAMELESS = {2, 5}  # kinds of statuses that the caller's arguments bring about: shapes and values
_MEMBER = re.compile(r"struct \{[^}]*\} (\w+); /\* (\w+) \[([^\]]*)\] \*/")
_MEMORY = 1 << 40  # bytes of a workspace that no machine has


def files_of(folder: Path) -> list[Path] | None:
    """The library in a folder, its header and, where there is one, the file of its weights."""
    libraries = sorted(path for path in folder.iterdir() if path.suffix in (".so", ".dylib") and path.is_file())
    if not libraries:
        return None
    stem = libraries[0].stem
    for prefix in (re.sub(r"^lib(?=.)", "", stem), stem):
        header = folder / f"{re.sub(r'[^0-9A-Za-z]+', '_', prefix).strip('_').lower()}.h"
        if header.is_file():
            weights = header.with_suffix(".safetensors")
            return [libraries[0], header, *([weights] if weights.is_file() else [])]
    return None


def load(files: Sequence[Path], joins: bool | None) -> Servable:
    """The functions of a library.

    Args:
        files: what `files_of` gave.
        joins: whether requests may be joined, which a library does not tell; None counts as no.
    Raises:
        DataLossError: header and library do not belong together, or weights are damaged. OSError: a file cannot be
            read.
    """
    library = _Library(files[0], files[1].stem, files[1].read_text(), files[2] if len(files) > 2 else None)
    functions = library.functions(bool(joins))
    if len(functions) == 1 or "predict" in functions:
        functions[DEFAULT] = functions.get("predict") or next(iter(functions.values()))
    return Servable(functions, "native library")


@dataclass(frozen=True)
class _Declared:
    """A function of C: its symbol, its tensors, and the names of the arguments after the structs."""

    symbol: str
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    further: list[str]
    writes: bool


class _Library:
    def __init__(self, path: Path, prefix: str, header: str, weights: Path | None) -> None:
        self.prefix, self.header = prefix, " ".join(header.split())
        self.lib = ctypes.CDLL(str(path))
        for macro, function in (("ABI", "abi"), ("INTERFACE", "interface")):
            number = re.search(rf"#define {prefix.upper()}_{macro} (?:INT64_C\()?(0x[0-9a-f]+|\d+)", self.header)
            asked = self.lib[f"{prefix}_{function}"]
            asked.restype = _I64
            if number is None or int(number[1], 0) != asked():
                raise DataLossError(None, None, f"{path.name} and {prefix}.h do not belong together")
        self.strerror = self.lib[f"{prefix}_strerror"]
        self.strerror.restype = ctypes.c_char_p
        self.weights = self._read_weights(weights)
        self.state = self._begin_state()
        self.lock = Lock()

    def _size(self, macro: str) -> int:
        number = re.search(rf"#define {self.prefix.upper()}_{macro} INT64_C\((\d+)\)", self.header)
        return 0 if number is None else int(number[1])

    def _read_weights(self, path: Path | None) -> np.ndarray[Any, Any] | None:
        size = self._size("WEIGHTS_SIZE")
        if not size:
            return None
        if path is None:
            raise DataLossError(None, None, f"{self.prefix}.safetensors, which holds the weights, is missing")
        read = np.fromfile(path, np.uint8)
        weights = _memory(read.size)
        weights[:] = read
        self.check(self.lib[f"{self.prefix}_weights_check"](_pointer(weights), _I64(weights.size)))
        return weights

    def _begin_state(self) -> Any:
        """The variables that functions read or assign, at the values that the library was made with."""
        size = self._size("STATE_SIZE")
        struct = re.search(rf"typedef struct {self.prefix}_state \{{(.*?)\}} {self.prefix}_state;", self.header)
        if struct is None:
            return None
        self.state_memory = _memory(max(size, 1))
        state = (ctypes.c_void_p * struct[1].count(";"))()
        given = [] if self.weights is None else [_pointer(self.weights)]
        self.check(self.lib[f"{self.prefix}_state_init"](ctypes.byref(state), *given, _pointer(self.state_memory),
                                                         _I64(size)))
        return state

    def check(self, status: int) -> None:
        """Raises the error of a status that is not 0."""
        if status:
            text = self.strerror(status).decode(errors="replace")
            raise (InvalidArgumentError if status & 0xFF in _BLAMELESS else InternalError)(None, None, text)

    # -- functions --------------------------------------------------------------------------------
    def functions(self, joins: bool) -> dict[str, Function]:
        """All functions by their names without the prefix."""
        declared = [self._declared(symbol) for symbol in re.findall(r"int32_t (\w+)_sizes\(", self.header)]
        writes = any(d.writes for d in declared)
        return {d.symbol.removeprefix(f"{self.prefix}_"): Function(
            d.inputs, d.outputs, self._runner(d, alone=writes and "state" in d.further),
            joins and not d.writes and _in_rows(d)) for d in declared}

    def _declared(self, symbol: str) -> _Declared:
        arguments = re.search(rf"int32_t {symbol}\(\s*(.*?)\s*\);", self.header)
        if arguments is None:
            raise DataLossError(None, None, f"{self.prefix}.h does not declare {symbol}")
        parts = [part.strip() for part in arguments[1].split(",")]
        names = [part.rpartition(" ")[2].lstrip("*") for part in parts]
        state = [part for part, name in zip(parts, names, strict=True) if name == "state"]
        return _Declared(symbol, self._members(symbol, "inputs"), self._members(symbol, "outputs"),
                         [n for n in names if n not in ("in", "out", "void")],
                         bool(state) and not state[0].startswith("const"))

    def _members(self, symbol: str, struct: str) -> list[TensorInfo]:
        text = re.search(rf"typedef struct {symbol}_{struct} \{{(.*?)\}} {symbol}_{struct};", self.header)
        if text is None:
            return []
        return [TensorInfo(name, as_dtype(dtype), tuple([int(d) if d.isdecimal() else None for d in _split(dims)]))
                for name, dtype, dims in _MEMBER.findall(text[1])]

    def _runner(self, declared: _Declared, alone: bool) -> Any:
        sizes, call = self.lib[f"{declared.symbol}_sizes"], self.lib[declared.symbol]

        def run(arrays: Arrays) -> list[np.ndarray[Any, Any]]:
            given = [np.ascontiguousarray(a) for a in arrays]
            ins = [ctypes.byref(_struct(given))] * bool(given)
            asked, need = _struct([np.zeros((0,) * len(info.dims or ()), info.dtype.np)
                                   for info in declared.outputs]), _I64()
            self.check(sizes(*ins, *[ctypes.byref(asked)] * bool(declared.outputs), ctypes.byref(need)))
            if not 0 <= need.value < _MEMORY:
                raise InternalError(None, None, f"{declared.symbol} asks for {need.value} bytes of workspace")
            results = [np.empty(tuple(part.shape) if info.dims else (), info.dtype.np)
                       for info, part in zip(declared.outputs, _parts(asked), strict=True)]
            workspace = _memory(need.value)
            further: dict[str, Any] = {
                "state": self.state and ctypes.byref(self.state), "workspace": _pointer(workspace),
                "weights": None if self.weights is None else _pointer(self.weights), "workspace_size": need}
            outs = [ctypes.byref(_struct(results))] * bool(results)
            with self.lock if alone else nullcontext():
                self.check(call(*ins, *outs, *[further[name] for name in declared.further]))
            return results
        return run


def _split(dims: str) -> list[str]:
    return [d.strip() for d in dims.split(",") if d.strip()]


def _in_rows(declared: _Declared) -> bool:
    """Whether the first size of all tensors is open."""
    tensors = [*declared.inputs, *declared.outputs]
    return all(info.dims and info.dims[0] is None for info in tensors)


def _memory(size: int) -> np.ndarray[Any, Any]:
    """Bytes at an address that suits any element."""
    held = np.empty(size + _ALIGNED, np.uint8)
    start = -held.ctypes.data % _ALIGNED
    return held[start:start + size]


def _pointer(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _struct(arrays: Sequence[np.ndarray[Any, Any]]) -> Any:
    """The struct that stands for arrays, which must stay alive: for each its address and, where it has one, its
    shape."""
    made = _struct_type(tuple([a.ndim for a in arrays]))()
    for array, part in zip(arrays, _parts(made), strict=True):
        part.data = array.ctypes.data
        if array.ndim:
            part.shape = (_I64 * array.ndim)(*array.shape)
    return made


def _parts(struct: Any) -> list[Any]:
    return [getattr(struct, name) for name, _ in struct._fields_]


_TYPES: dict[tuple[int, ...], Any] = {}


def _struct_type(ranks: tuple[int, ...]) -> Any:
    """The type of a struct of tensors of these ranks; there are as many as there are kinds of signatures."""
    made = _TYPES.get(ranks)
    if made is None:
        members = [(f"m{n}", _member_type(rank)) for n, rank in enumerate(ranks)]
        made = _TYPES[ranks] = type("Tensors", (ctypes.Structure,), {"_fields_": members})
    return made


def _member_type(rank: int) -> Any:
    fields: list[Any] = [("data", ctypes.c_void_p), *([("shape", _I64 * rank)] if rank else [])]
    return type("Tensor", (ctypes.Structure,), {"_fields_": fields})
