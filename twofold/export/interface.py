"""The interface of a library in C: names and their spelling, the structs of each function, C's names of dtypes.

The header (`header.py`), the code (`codegen/native_entry.py`) and the loader for JavaScript (`wasm.py`) are all written
from the `Interface`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from twofold.codegen.native_entry import Member
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType

__all__ = ["ABI", "Interface", "Signature", "c_type", "identifier", "unique"]

ABI = 1  # the form of structs, functions and statuses; raised when a library of an older form would be misread

_C_TYPES = {"float32": "float", "float64": "double", "bool": "uint8_t", "float16": "uint16_t", "bfloat16": "uint16_t",
            "complex64": "float", "complex128": "double"}
# Of C99, C++ and JavaScript, and the names of arguments.
_KEYWORDS = frozenset(re.findall(r"\w+", """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const constexpr
    continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend
    function goto if import in inline int let long mutable namespace new noexcept not not_eq nullptr operator or or_eq
    private protected public register reinterpret_cast requires restrict return shape short signed sizeof static
    static_assert static_cast struct super switch template this thread_local throw true try typedef typeid typename
    union unsigned using var virtual void volatile wchar_t while with xor xor_eq yield data state weights workspace out
"""))


@dataclass(eq=False)
class Signature:
    """One function.

    Attributes:
        name: its symbol.
        title: how the user called it.
        inputs, outputs: its tensors.
        sizes: the unknown sizes, by the names that shapes give them.
        workspace: bytes, or an expression of those sizes.
        state, weights: whether it takes them. `writes`: the numbers of the variables that it assigns.
    """

    name: str
    title: str
    inputs: list[Member]
    outputs: list[Member]
    workspace: DimLike
    state: bool
    weights: bool
    writes: list[int] = field(default_factory=list)

    @property
    def takes_workspace(self) -> bool:
        """Whether calls may need memory."""
        return isinstance(self.workspace, Dim) or self.workspace > 0


@dataclass(eq=False)
class Interface:
    """A library.

    Attributes:
        prefix: what its symbols begin with.
        signatures: its functions.
        state: the variables that it reads and writes.
        state_bytes: of the memory that they need.
        weights_bytes: of the file with weights; 0 where there is none.
        platform: for whom it was made.
    """

    prefix: str
    signatures: list[Signature]
    state: list[Member]
    state_bytes: int
    weights_bytes: int
    platform: str

    @property
    def upper(self) -> str:
        """What its macros begin with."""
        return self.prefix.upper()

    @property
    def fingerprint(self) -> int:
        """A number that stands for everything in the interface that a program compiled against the header relies on."""
        told = [ABI, [tuple(map(str, m)) for m in self.state], self.state_bytes, self.weights_bytes]
        told += [(s.name, [tuple(map(str, m)) for m in s.inputs], [tuple(map(str, m)) for m in s.outputs],
                  str(s.workspace), s.state, s.weights) for s in self.signatures]
        return int.from_bytes(hashlib.sha256(repr(told).encode()).digest()[:8], "little") >> 1

    @property
    def exported(self) -> list[str]:
        """The symbols that can be seen from outside."""
        symbols = [n for s in self.signatures for n in (s.name, f"{s.name}_sizes")]
        symbols += [f"{self.prefix}_{n}" for n in ("strerror", "abi", "interface")]
        if self.state:
            symbols.append(f"{self.prefix}_state_init")
        if self.weights_bytes:
            symbols.append(f"{self.prefix}_weights_check")
        return symbols


def c_type(dtype: DType) -> str:
    """C's name of an element's type; complex numbers are pairs of reals."""
    return _C_TYPES.get(dtype.name) or f"{dtype.name}_t"


def identifier(text: str, default: str, alone: bool = True) -> str:
    """`text` as a name of C, or, where it does not stand `alone`, as a part of one."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", text.removesuffix(":0")).strip("_")
    if not name or name[0].isdigit():
        name = f"{default}_{name}" if name else default
    return f"{name}_" if alone and name in _KEYWORDS else name


def unique(names: Iterable[str]) -> list[str]:
    """The names with numbers behind those that are taken already."""
    taken: list[str] = []
    for name in names:
        tried, n = name, 1
        while tried in taken:
            tried, n = f"{name}_{n}", n + 1
        taken.append(tried)
    return taken
