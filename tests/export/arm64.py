"""Running shared libraries for AArch64 on any machine: a loader of ELF files around the processor of `unicorn`.

Enough of a process for libraries that need the memory functions of C and nothing else: segments are mapped, symbols
bound, and each call runs until it returns.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

_BASE, _HEAP, _STACK, _HOOKS, _END = 0x10_0000, 0x1000_0000, 0x4000_0000, 0x5000_0000, 0x5000_F000
_LOAD, _DYNAMIC = 1, 2
_RELATIVE, _ABSOLUTE, _GLOBAL, _JUMP = 1027, 257, 1025, 1026


class Arm64:
    """A library in the memory of an emulated processor."""

    def __init__(self, path: Path) -> None:
        import unicorn
        from unicorn import arm64_const as registers

        self.r = registers
        self.cpu = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        self.cpu.mem_map(_BASE, 8 << 20)
        self.cpu.mem_map(_HEAP, 64 << 20)
        self.cpu.mem_map(_STACK - (4 << 20), 4 << 20)
        self.cpu.mem_map(_HOOKS, 1 << 16)
        self.top = _HEAP
        self.hooks: dict[int, str] = {}
        self.load(path.read_bytes())
        self.cpu.hook_add(unicorn.UC_HOOK_CODE, self.called, begin=_HOOKS, end=_END - 4)

    def load(self, image: bytes) -> None:
        """Maps segments, and binds what the library needs."""
        assert image[:4] == b"\x7fELF" and struct.unpack_from("<H", image, 18)[0] == 183
        start, = struct.unpack_from("<Q", image, 0x20)
        size, count = struct.unpack_from("<HH", image, 0x36)
        dynamic: dict[int, int] = {}
        for n in range(count):
            kind, _, offset, address, _, length, _, _ = struct.unpack_from("<IIQQQQQQ", image, start + n * size)
            if kind == _LOAD:
                self.cpu.mem_write(_BASE + address, image[offset:offset + length])
            elif kind == _DYNAMIC:
                for at in range(offset, offset + length, 16):
                    tag, value = struct.unpack_from("<qQ", image, at)
                    dynamic.setdefault(tag, value)
        names, symbols = dynamic[5], dynamic[6]
        self.symbols: dict[str, int] = {}
        count = struct.unpack("<II", bytes(self.cpu.mem_read(_BASE + dynamic[4], 8)))[1] if 4 in dynamic else \
            (names - symbols) // 24
        actual = []
        for n in range(count):
            name, _, _, section, value, _ = struct.unpack("<IBBHQQ", bytes(self.cpu.mem_read(_BASE + symbols + 24 * n,
                                                                                               24)))
            text = self.text(_BASE + names + name)
            actual.append((text, section, value))
            if section:
                self.symbols[text] = _BASE + value
        for table, length in ((7, 8), (23, 2)):
            for at in range(0, dynamic.get(length, 0), 24):
                place, info, more = struct.unpack("<QQq", bytes(self.cpu.mem_read(_BASE + dynamic[table] + at, 24)))
                self.cpu.mem_write(_BASE + place, struct.pack("<Q", self.target(info, more, actual)))

    def target(self, info: int, more: int, symbols: list[tuple[str, int, int]]) -> int:
        """What a relocation puts in place."""
        if info & 0xFFFFFFFF == _RELATIVE:
            return _BASE + more
        assert info & 0xFFFFFFFF in (_ABSOLUTE, _GLOBAL, _JUMP), info
        name, section, value = symbols[info >> 32]
        if section:
            return _BASE + value + more
        assert name in ("memcpy", "memset", "memmove"), name
        at = _HOOKS + 16 * len(self.hooks)
        self.hooks[at] = name
        self.cpu.mem_write(at, struct.pack("<I", 0xD65F03C0))  # ret
        return at

    def called(self, cpu: Any, address: int, size: int, data: Any) -> None:
        """Does what a function of C does."""
        to, second, count = (cpu.reg_read(getattr(self.r, f"UC_ARM64_REG_X{n}")) for n in range(3))
        if count and self.hooks[address] == "memset":
            cpu.mem_write(to, bytes([second & 0xFF]) * count)
        elif count:
            cpu.mem_write(to, bytes(cpu.mem_read(second, count)))

    def put(self, data: bytes) -> int:
        """The address of bytes in the library's memory."""
        at, self.top = self.top, (self.top + len(data) + 127) // 64 * 64
        self.cpu.mem_write(at, data)
        return at

    def text(self, at: int) -> str:
        """The text that ends with a zero."""
        actual = bytearray()
        while (byte := self.cpu.mem_read(at + len(actual), 1)[0]):
            actual.append(byte)
        return actual.decode()

    def call(self, name: str, *arguments: int) -> int:
        """The result of a function of up to eight words, as a signed word of 32 bits."""
        for n, value in enumerate(arguments):
            self.cpu.reg_write(getattr(self.r, f"UC_ARM64_REG_X{n}"), value)
        self.cpu.reg_write(self.r.UC_ARM64_REG_SP, _STACK - 256)
        self.cpu.reg_write(self.r.UC_ARM64_REG_X30, _END)
        self.cpu.emu_start(self.symbols[name], _END)
        result = self.cpu.reg_read(self.r.UC_ARM64_REG_X0) & 0xFFFFFFFF
        return result - (1 << 32) if result >> 31 else result

    def struct(self, tensors: list[tuple[int, tuple[int, ...]]]) -> int:
        """The address of a struct of tensors, given by address and shape."""
        return self.put(b"".join(struct.pack(f"<Q{len(s)}q", at, *s) for at, s in tensors))

    def run(self, prefix: str, name: str, inputs: list[np.ndarray], outputs: list[tuple[Any, int]]) -> list[np.ndarray]:
        """The results of an exported function; see `calling.Library.call`."""
        ins = self.struct([(self.put(a.tobytes()), a.shape) for a in inputs])
        asked, need = self.struct([(0, (0,) * rank) for _, rank in outputs]), self.put(bytes(8))
        self.check(prefix, self.call(f"{prefix}_{name}_sizes", ins, asked, need))
        shapes, at = [], asked
        for _, rank in outputs:
            shapes.append(struct.unpack(f"<{rank}q", bytes(self.cpu.mem_read(at + 8, 8 * rank))))
            at += 8 + 8 * rank
        space, = struct.unpack("<q", bytes(self.cpu.mem_read(need, 8)))
        sizes = [int(np.prod(s)) * np.dtype(d).itemsize for s, (d, _) in zip(shapes, outputs, strict=True)]
        places = [self.put(bytes(size)) for size in sizes]
        outs = self.struct(list(zip(places, shapes, strict=True)))
        workspace = [self.put(bytes(space)), space] if space else []
        self.check(prefix, self.call(f"{prefix}_{name}", ins, outs, *workspace))
        return [np.frombuffer(bytes(self.cpu.mem_read(p, size)), d).reshape(s)
                for p, size, s, (d, _) in zip(places, sizes, shapes, outputs, strict=True)]

    def check(self, prefix: str, status: int) -> None:
        """Raises what a status says."""
        if status:
            self.cpu.reg_write(self.r.UC_ARM64_REG_X0, status)
            self.call(f"{prefix}_strerror", status)
            raise RuntimeError(self.text(self.cpu.reg_read(self.r.UC_ARM64_REG_X0)))
