"""Where weights lie: constants of the code, or a file in the format of `safetensors` that a program reads or maps.

The library holds the length of the file and a sum over its words, and checks both on request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
from llvmlite import ir

from twofold.codegen.native_entry import Texts
from twofold.ir import dtypes as dt

__all__ = ["Writer", "module", "write_check", "checksum"]

_NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
          "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8",
          "bool": "BOOL", "complex64": "C64"}
_ALIGNED = 64
_I8, _I32, _I64, _PTR = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.PointerType()
_PRIME, _STEP = 0xBF58476D1CE4E5B9, 0x9E3779B97F4A7C15  # of SplitMix64


class Writer:
    """The file of weights, put together: all values are added, then the file is closed, then they are placed.

    Each value begins at a multiple of 64 bytes of the file, behind bytes that belong to a tensor `pad_N` where there is
    a gap, as the format has none.
    """

    def __init__(self) -> None:
        self._values: list[tuple[str, np.ndarray]] = []
        self._places: dict[bytes, int] = {}
        self._size = 0
        self._head = b""

    def add(self, name: str, array: np.ndarray) -> None:
        """Takes up a value; equal ones are kept once."""
        if _key(array) in self._places:
            return
        if array.dtype == np.complex128:
            raise ValueError(f"{name}: complex128 cannot be kept in a file of weights; use weights=\"embedded\".")
        self._pad(-self._size % _ALIGNED)
        taken = {n for n, _ in self._values}
        self._places[_key(array)] = self._size
        self._values.append((name if name not in taken else f"{name}#{len(self._values)}", array))
        self._size += array.nbytes

    def place(self, array: np.ndarray) -> int:
        """The byte of the closed file at which a value lies."""
        return len(self._head) + self._places[_key(array)]

    def _pad(self, gap: int) -> None:
        if gap:
            self._values.append((f"pad_{len(self._values)}", np.zeros(gap, np.uint8)))
            self._size += gap

    def close(self) -> bytes:
        """The file."""
        self._pad(-self._size % 8)
        head, at = {}, 0
        for name, array in self._values:
            dtype = dt.from_numpy(array.dtype).name
            head[name] = {"dtype": _NAMES[dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
            at += array.nbytes
        text = json.dumps(head).encode()
        text += b" " * (-(len(text) + 8) % _ALIGNED)
        self._head = len(text).to_bytes(8, "little") + text
        return self._head + b"".join([a.tobytes() for _, a in self._values])


def _key(array: np.ndarray) -> bytes:
    return f"{array.dtype} {array.shape} ".encode() + array.tobytes()


def checksum(file: bytes) -> int:
    """The sum of the words of a file, each mixed with its place, as the library computes it."""
    words = np.frombuffer(file, "<u8")
    z = words + np.arange(len(words), dtype=np.uint64) * np.uint64(_STEP)
    z = (z ^ (z >> np.uint64(29))) * np.uint64(_PRIME)
    return int((z ^ (z >> np.uint64(32))).sum(dtype=np.uint64))


def write_check(module: ir.Module, name: str, file: bytes, texts: Texts) -> None:
    """Writes `int32 NAME(const void* weights, int64 size)`: 0 if that is `file`."""
    fn = ir.Function(module, ir.FunctionType(_I32, [_PTR, _I64]), name)
    fn.attributes.add("nounwind")
    b = ir.IRBuilder(fn.append_basic_block("entry"))
    pointer, size = fn.args
    wrong = _I32(texts.status("weights", f"{name}: these are not the {len(file)} bytes of weights that the library "
                              "was made with"))
    fits = b.and_(b.icmp_signed("==", size, _I64(len(file))), b.icmp_unsigned("!=", pointer, ir.Constant(_PTR, None)))
    before, loop, done, bad = b.block, *(fn.append_basic_block(n) for n in ("loop", "done", "bad"))
    b.cbranch(fits, loop, bad)
    ir.IRBuilder(bad).ret(wrong)
    b.position_at_end(loop)
    index, total = b.phi(_I64), b.phi(_I64)
    word = b.load(b.gep(pointer, [index], source_etype=_I64), typ=_I64, align=1)
    z = b.add(word, b.mul(index, _I64(_STEP)))
    z = b.mul(b.xor(z, b.lshr(z, _I64(29))), _I64(_PRIME))
    mixed = b.add(total, b.xor(z, b.lshr(z, _I64(32))))
    following = b.add(index, _I64(1))
    for phi, first, value in ((index, _I64(0), following), (total, _I64(0), mixed)):
        phi.add_incoming(first, before)
        phi.add_incoming(value, loop)
    b.cbranch(b.icmp_unsigned("<", following, _I64(len(file) // 8)), loop, done)
    b.position_at_end(done)
    same = b.icmp_unsigned("==", mixed, _I64(checksum(file)))
    b.ret(b.select(same, _I32(0), wrong))


def module(values: Mapping[str, np.ndarray]) -> str:
    """A module of LLVM with constants, as text: a builder would take long over many bytes."""
    escaped = np.array([f"\\{n:02X}" for n in range(256)], "S3")
    lines = ['target triple = "unknown-unknown-unknown"', 'target datalayout = ""']
    for symbol, array in values.items():
        data = np.frombuffer(array.tobytes() or b"\0", np.uint8)
        text = escaped[data].tobytes().decode()
        lines.append(f'@"{symbol}" = constant [{len(data)} x i8] c"{text}", align {_ALIGNED}')
    return "\n".join(lines) + "\n"


