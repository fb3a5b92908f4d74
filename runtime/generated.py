"""Kernels that all programs share, in families: compiled part by part when first asked for, or read from disk.

A family has two modules in `codegen` for this: one that compiles, with `object_code(dtype, tiling, part)`, and
`X_shapes`, with `PARTS`, which says what is compiled together, and `symbol`. What the kernels compute is theirs to say.

Parts that are not on disk begin in a *first tier* (`tiers.py`), with other tile shapes: code that is made in a
seventh of the time and gives the same bits. The tiled code is made in the background a little later, and takes its
place under the same addresses (`indirect.py`); a run that does much has it made before (`settle`).
"""

from __future__ import annotations

import functools
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

from twofold import codegen
from twofold.codegen import gemm_shapes
from twofold.ir.dtypes import DType

from . import identity, indirect, kernels, tiers
from .locks import RLock
from .log import log

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["AT_ONCE", "functions", "sources_of", "Functions", "GeneratedFunction"]

AT_ONCE = 1 << 27  # simple operations of a run of library kernels from which the first tier is left out
_LATER = 0.2  # seconds until tiled code is made: what a first step has to do goes before it


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
        self.first: dict[str, indirect.Indirect] = {}  # parts whose code is that of the first tier

    def __missing__(self, name: str) -> int:
        part = self._part(name)
        with self._locked(part):
            if name not in self:
                self.update(self._begun(part))
        return self[name]

    def settle(self, name: str) -> None:
        """Sees to it that a function runs tiled code from now on."""
        part = self._part(name)
        with self._locked(part):
            if name not in self:
                self.update(self._named(part, self._tiled(part)))
            self._exchange(part)

    def _locked(self, part: str) -> threading.RLock:
        return self.locks.setdefault(part, RLock())

    @functools.cached_property
    def _shapes(self) -> Any:
        return import_module(f"{codegen.__name__}.{self.family}_shapes")

    def _part(self, name: str) -> str:
        return next(part for part, names in self._shapes.PARTS.items() if name in names)

    def _symbols(self, part: str) -> list[str]:
        return [self._shapes.symbol(name, self.dtype) for name in self._shapes.PARTS[part]]

    def _named(self, part: str, addresses: dict[str, int]) -> dict[str, int]:
        """The addresses of symbols, by the functions' names."""
        return {name: addresses[self._shapes.symbol(name, self.dtype)] for name in self._shapes.PARTS[part]}

    def _begun(self, part: str) -> dict[str, int]:
        """The addresses of a part's functions: of tiled code where that is on disk, else of the first tier, if any."""
        if not tiers.enabled() or not indirect.supported():
            return self._named(part, self._tiled(part))
        symbols, depends = self._symbols(part), self._depends()
        stored = kernels.stored(symbols, depends)
        if stored is not None:
            return self._named(part, stored)
        made = kernels.functions(symbols, [*depends, "first tier"], lambda: self._compiled(part, first=True))
        try:
            self.first[part] = indirect.Indirect(made)
        except OSError as error:
            log("cache", f"no first tier: {error}")
            return self._named(part, self._tiled(part))
        tiers.request(lambda: self._later(part), _LATER)
        return self._named(part, self.first[part].addresses)

    def _later(self, part: str) -> None:
        """Makes tiled code in the background."""
        try:
            with self._locked(part):
                self._exchange(part)
        except Exception as error:  # noqa: BLE001 - there is code, which stays
            log("cache", f"no better code: {type(error).__name__}: {error}")

    def _exchange(self, part: str) -> None:
        """Has the functions of a part run tiled code, if they do not yet; the part is locked."""
        if part in self.first:
            self.first[part].set(self._tiled(part))
            del self.first[part]
            kernels.forget(self._symbols(part), [*self._depends(), "first tier"])

    def _tiled(self, part: str) -> dict[str, int]:
        """The addresses of a part's tiled code, from disk or made now."""
        return kernels.functions(self._symbols(part), self._depends(), lambda: self._compiled(part, first=False))

    def _depends(self) -> tuple[str, ...]:
        return _sources(self.family)

    def _compiled(self, part: str, first: bool) -> bytes:
        # A compiler, which a process with a filled cache does not need.
        module = import_module(f"{codegen.__name__}.{self.family}")
        shape = gemm_shapes.tiling(self.dtype)
        return module.object_code(self.dtype, gemm_shapes.first_tier(shape) if first else shape, part)


class GeneratedFunction(kernels.Compiled):
    """One of the functions, to be run like other kernels."""

    def __init__(self, name: str, address: int) -> None:
        self.name, self.codes = name, ()
        self._run(address)


_families: dict[tuple[str, DType], Functions] = {}


@functools.cache
def _sources(family: str) -> tuple[str, ...]:
    """What stands for the files of a family in keys, of which each kernel has several."""
    return tuple([identity.digest(path.read_bytes()) for path in sources_of(family)])
