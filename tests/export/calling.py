"""Calling exported libraries with ctypes: structs are made from arrays, without looking at the header."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

I64 = ctypes.c_int64


def struct_of(arrays: Sequence[np.ndarray]) -> Any:
    """The struct of tensors that stands for arrays, which must stay alive."""
    parts = []
    for n, a in enumerate(arrays):
        fields: list[Any] = [("data", ctypes.c_void_p)]
        if a.ndim:
            fields.append(("shape", I64 * a.ndim))
        part = type(f"T{n}", (ctypes.Structure,), {"_fields_": fields})()
        part.data = a.ctypes.data
        if a.ndim:
            part.shape = (I64 * a.ndim)(*a.shape)
        parts.append(part)
    made = type("S", (ctypes.Structure,), {"_fields_": [(f"m{n}", type(p)) for n, p in enumerate(parts)]})()
    for n, part in enumerate(parts):
        setattr(made, f"m{n}", part)
    return made


class NativeError(Exception):
    """A status that is not 0."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.kind = status, status & 0xFF


class Library:
    """A shared library; `state` and `weights` are handed to functions that take them."""

    def __init__(self, path: Path, prefix: str) -> None:
        self.lib, self.prefix = ctypes.CDLL(str(path)), prefix
        self.text = self.lib[f"{prefix}_strerror"]
        self.text.restype = ctypes.c_char_p
        self.state: Any = None
        self.weights: np.ndarray | None = None
        self.kept: list[Any] = []

    def checked(self, status: int) -> None:
        if status:
            raise NativeError(status, self.text(status).decode())

    def number(self, name: str) -> int:
        fn = self.lib[f"{self.prefix}_{name}"]
        fn.restype = I64
        return fn()

    def sizes(self, name: str, inputs: Sequence[np.ndarray], outputs: Sequence[tuple[Any, int]]) -> tuple[Any, int]:
        """The shapes of results, given by dtype and rank, and bytes of workspace."""
        asked = struct_of([np.zeros((0,) * rank, dtype) for dtype, rank in outputs])
        need = I64(-1)
        given = [ctypes.byref(struct_of(inputs))] * bool(inputs) + [ctypes.byref(asked)] * bool(outputs)
        self.checked(self.lib[f"{self.prefix}_{name}_sizes"](*given, ctypes.byref(need)))
        shapes = [tuple(getattr(asked, f"m{n}").shape) if rank else () for n, (_, rank) in enumerate(outputs)]
        return shapes, need.value

    def call(self, name: str, inputs: Sequence[np.ndarray], outputs: Sequence[tuple[Any, int]],
             space: int | None = None) -> list[np.ndarray]:
        """The results for arrays; the workspace is exactly as large as asked for, and lies at an odd address."""
        shapes, need = self.sizes(name, inputs, outputs)
        space = need if space is None else space
        results = [np.full(s, 77).astype(d) for s, (d, _) in zip(shapes, outputs, strict=True)]
        ins, outs = struct_of(inputs), struct_of(results)
        given: list[Any] = [ctypes.byref(ins)] * bool(inputs) + [ctypes.byref(outs)] * bool(outputs)
        if self.state is not None:
            given.append(ctypes.byref(self.state))
        if self.weights is not None:
            given.append(ctypes.c_void_p(self.weights.ctypes.data))
        if need:
            memory = np.full(space + 16, 0xA5, np.uint8)
            given += [ctypes.c_void_p(memory.ctypes.data + 1), I64(space)]
        self.checked(self.lib[f"{self.prefix}_{name}"](*given))
        if need:
            assert (memory[[0, *range(space + 1, space + 16)]] == 0xA5).all(), "written outside of the workspace"
        return results

    def new_state(self, specs: Sequence[tuple[Any, tuple[int, ...]]], size: int) -> list[np.ndarray]:
        """Begins a state; its variables, of the dtypes and shapes, as arrays that show what is in it."""
        state = (ctypes.c_void_p * len(specs))()
        memory = np.zeros(size, np.uint8)
        given = [] if self.weights is None else [ctypes.c_void_p(self.weights.ctypes.data)]
        self.checked(self.lib[f"{self.prefix}_state_init"](
            ctypes.byref(state), *given, ctypes.c_void_p(memory.ctypes.data), I64(size)))
        self.state, self.kept = state, [memory]
        views = []
        for address, (dtype, shape) in zip(state, specs, strict=True):
            start = address - memory.ctypes.data
            count = int(np.prod(shape)) * np.dtype(dtype).itemsize
            views.append(memory[start:start + count].view(dtype).reshape(shape))
        return views
