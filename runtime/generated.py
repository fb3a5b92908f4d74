"""Kernels that all programs share, in families: compiled part by part when first asked for, or read from disk.

A family has two modules in `codegen` for this: one that compiles, with `object_code(dtype, tiling, part)`, and
`X_shapes`, with `PARTS`, which says what is compiled together, and `symbol`. What the kernels compute is theirs to say.
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import TYPE_CHECKING

from twofold import codegen
from twofold.codegen.gemm_shapes import tiling
from twofold.ir.dtypes import DType

from . import kernels
from .locks import RLock

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["functions", "sources_of", "Functions", "GeneratedFunction"]


def functions(family: str, dtype: DType) -> Functions:
    """The functions of a family for one dtype."""
    functions = _families.get((family, dtype))
    return _families.setdefault((family, dtype), Functions(family, dtype)) if functions is None else functions


def sources_of(family: str) -> list[Path]:
    """The files that say what the code of a family is, beside those that compile any kernel (`kernels.COMPILERS`)."""
    from pathlib import Path
    here = Path(codegen.__file__ or "").parent
    return [path for path in sorted(here.glob("*.py")) if path.name.startswith(("gemm", "loop_sizes", family))
            ] + [here / "kernels" / "windows.py"]


class Functions(dict[str, int]):
    """The addresses of a family's functions for one dtype, by name."""

    def __init__(self, family: str, dtype: DType) -> None:
        """Args:
            family: the compiling module's name.
            dtype: what they are compiled for.
        """
        super().__init__()
        self.family, self.dtype = family, dtype
        self.locks: dict[str, threading.RLock] = {}  # for each part: threads may compile several at once

    def __missing__(self, name: str) -> int:
        shapes = import_module(f"{codegen.__name__}.{self.family}_shapes")
        part = next(part for part, names in shapes.PARTS.items() if name in names)
        symbols = {n: shapes.symbol(n, self.dtype) for n in shapes.PARTS[part]}
        sources = [path.read_text() for path in sources_of(self.family)]
        with self.locks.setdefault(part, RLock()):
            if name not in self:
                addresses = kernels.functions(symbols.values(), sources, lambda: self._compiled(part))
                self.update({n: addresses[symbol] for n, symbol in symbols.items()})
        return self[name]

    def _compiled(self, part: str) -> bytes:
        # A compiler, which a process with a filled cache does not need.
        module = import_module(f"{codegen.__name__}.{self.family}")
        return module.object_code(self.dtype, tiling(self.dtype), part)


class GeneratedFunction(kernels.Compiled):
    """One of the functions, to be run like other kernels."""

    def __init__(self, name: str, address: int) -> None:
        self.name, self.address, self.codes = name, address, ()


_families: dict[tuple[str, DType], Functions] = {}


