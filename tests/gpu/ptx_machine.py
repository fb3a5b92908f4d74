"""A machine that runs PTX with NumPy: what is really emitted is run, slowly and exactly, where there is no GPU.

`load` makes the text of a module ready (once for each text), `Loaded.launch` runs a kernel over a grid. What a kernel
does wrong is a `PtxError`, whose `kind` says what and whose text names the line: "illegal address", "misaligned
address", "freed memory", "uninitialised", "race", "shuffle", "barrier", "trap", "endless", "unknown instruction",
"resources". The parts: `ptx_text.py` takes text apart, `ptx_decode.py` makes it steps, `ptx_ops.py` says what
instructions give, `ptx_run.py` says where threads are, `ptx_memory.py` holds memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from gpu.ptx_decode import Program
from gpu.ptx_memory import Memory
from gpu.ptx_run import Checks, Dim, Run
from gpu.ptx_text import Module, PtxError, parse

__all__ = ["Checks", "Loaded", "Memory", "PtxError", "decode", "fits", "load"]

_AT_ONCE = 16384  # threads that run at once: what they hold fits the processor's caches
_THREADS, _SHARED = 1024, 227 * 1024  # of a block at most


class Loaded:
    """A module in memory: its kernels, and where its variables lie."""

    def __init__(self, module: Module, memory: Memory, device: int = 0) -> None:
        self.module, self.memory, self.device = module, memory, device
        self.symbols = {v.name: memory.allocate(v.size, v.name, v.data or bytes(v.size), device)
                        for v in module.variables.values() if v.space in ("global", "const")}

    def program(self, name: str) -> Program:
        """A kernel, decoded once for each module.

        Raises:
            KeyError: there is none of that name.
            PtxError: it has an instruction that is not known.
        """
        return _program(self.module, name)

    def launch(self, name: str, grid: Dim, block: Dim, parameters: bytes, dynamic: int = 0,
               checks: Checks | None = None, seed: int = 0) -> None:
        """Runs a kernel to its end.

        Args:
            parameters: the bytes of the parameters, as the kernel's declaration lays them out (`packed`).
            dynamic: bytes of shared memory beside what the kernel declares.
            seed: of the order of atomic updates.
        """
        program = self.program(name)
        threads, blocks = block[0] * block[1] * block[2], grid[0] * grid[1] * grid[2]
        fits(program, threads, blocks, dynamic)
        at_once = max(_AT_ONCE // threads, 1)
        with np.errstate(all="ignore"):
            for first in range(0, blocks, at_once):
                Run(program, self.memory, self.symbols, grid, block, first, min(at_once, blocks - first), dynamic,
                    parameters, checks or Checks(), seed + first).go()

    def packed(self, name: str, values: Sequence[int | float | bytes | np.generic]) -> bytes:
        """The bytes of parameters: integers are those of the declared size, others are given by NumPy or as bytes."""
        parameters = self.module.entries[name].parameters.values()
        out = bytearray(max((p.offset + p.size for p in parameters), default=0))
        for parameter, value in zip(parameters, values, strict=True):
            if isinstance(value, int):
                value = (value & (1 << 8 * parameter.size) - 1).to_bytes(parameter.size, "little")
            data = value if isinstance(value, bytes) else np.asarray(value).tobytes()
            assert len(data) == parameter.size, (name, data, parameter)
            out[parameter.offset:parameter.offset + parameter.size] = data
        return bytes(out)


def load(text: str, memory: Memory, device: int = 0) -> Loaded:
    """A module, its variables in the memory of a device."""
    return Loaded(parse(text), memory, device)


def decode(text: str) -> None:
    """Decodes all kernels of a module.

    Raises:
        PtxError: one has an instruction that is not known.
    """
    for name in parse(text).entries:
        _program(parse(text), name)


@lru_cache(maxsize=200)
def _program(module: Module, name: str) -> Program:
    """A decoded kernel; texts that are equal are one module."""
    return Program(module, module.entries[name])


def fits(program: Program, threads: int, blocks: int, dynamic: int) -> None:
    """Raises where a launch asks for more than there is."""
    most = program.entry.directives.get("maxntid", (_THREADS,))
    needed = program.entry.directives.get("reqntid")
    if not blocks or not 0 < threads <= _THREADS or threads > int(np.prod(most)):
        raise PtxError("resources", f"{program.name}: {blocks} blocks of {threads} threads")
    if needed is not None and threads != int(np.prod(needed)):
        raise PtxError("resources", f"{program.name} needs blocks of {needed}, not of {threads} threads")
    if program.shared_size + dynamic > _SHARED:
        raise PtxError("resources", f"{program.name}: {program.shared_size + dynamic} bytes of shared memory")
