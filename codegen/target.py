"""Targets of machine code: the processor at hand, or another one that a block asks for (`use`).

A `Target` says what generated code depends on beyond LLVM: how wide vectors are, whether the processor has fused
multiply-add, converts float16, loads under a mask. For the host these are read off its features, which Linux tells;
for any other processor LLVM is asked, by compiling a few instructions and looking at what became of them.

`Caches` is what loops assume of the memory near a processor, in one place, since no backend asks which caches there
are. The target machines and the pipeline are `llvm_module.py`'s.
"""

from __future__ import annotations

import ctypes
import functools
import math
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from twofold.ir.data_class import data_class

from .apart import apart

if TYPE_CHECKING:
    from llvmlite import binding

__all__ = ["Caches", "CACHES", "Target", "host", "of", "current", "use", "host_machine", "machine_for", "probe",
           "architecture", "described", "arm", "sve_bits", "assembles_x86"]


@data_class(frozen=True)
class Caches:
    """Sizes in bytes of memory near a processor: how quick loops are follows from them, never what they give.

    Attributes:
        line: what is fetched at once.
        nearest: what the nearest cache holds.
        second: what the caches hold that no other processor shares.
        ways: how many lines at the same place of its parts the nearest cache can hold.
        second_ways: the same for the caches behind it.
    """

    line: int = 64
    nearest: int = 32 << 10
    second: int = 512 << 10
    ways: int = 8
    second_ways: int = 8

    @property
    def tile(self) -> tuple[int, int]:
        """Rows, and elements of a row, of a tile in which an operand is transposed: both ways they fill lines."""
        return self.line // 4, self.line

    @property
    def clash(self) -> int:
        """The distance of rows that crowd few places of the nearest cache, as do multiples of it."""
        return self.nearest // self.ways // 2

    def rows_held(self, stride: int, second: bool = False) -> int:
        """How many lines that lie `stride` bytes apart the nearest cache can hold at once, or the second.

        A line has one place in each way of a cache, which its address decides: rows whose distance has a large power of
        2 as a factor share few places.

        >>> [Caches().rows_held(stride) for stride in (64, 4000, 4096, 8192)]
        [512, 512, 8, 8]
        """
        size, ways = (self.second, self.second_ways) if second else (self.nearest, self.ways)
        span = size // ways
        return ways * max(span // max(math.gcd(stride, span), self.line), 1)

    @property
    def places(self) -> int:
        """The pixels that the nearest cache holds, at two lines each."""
        return self.nearest // (2 * self.line)


CACHES = Caches()  # what processors of today have at least


@data_class(frozen=True)
class Target:
    """A kind of processor, and how code for it is made.

    Attributes:
        triple, cpu, features: as LLVM names them; the triple is empty for code that runs in this process.
        vector_bits: of the widest vectors that code is generated for.
        fused: whether a x b + c is rounded once by an instruction; else the product is rounded too, but where the
            meaning of an instruction needs what rounding lost (`llvm_ops`).
        half: whether float16 is converted by instructions.
        wide: whether products of 64-bit integers with 128 bits are.
        masks: whether loads under a mask are quick.
        many_registers: whether there are more than 16 vectors in registers.
        pairs: whether an instruction adds the products of pairs of bfloat16 numbers (`add_pairs` of the loop IR).
        quads: the same for four numbers of 8 bits (`add_quads`).
        threads: how many threads code is planned for; None for as many as this process uses.
        registers_only: whether arithmetic takes operands from registers alone, so that what is loaded needs some.
        granules: how many times 128 bits the vectors of SVE have that code is made for; 0 for none of SVE's.
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int
    fused: bool
    half: bool
    wide: bool
    masks: bool
    many_registers: bool
    pairs: bool = False
    quads: bool = False
    threads: int | None = None
    registers_only: bool = False
    granules: int = 0

    @property
    def is_host(self) -> bool:
        """Whether code is to run in this process."""
        return not self.triple

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU, whose threads come in teams."""
        return self.triple.startswith("nvptx")

    @property
    def address_bits(self) -> int:
        """How many bits addresses have."""
        return 32 if self.triple.startswith("wasm32") else 64

    @property
    def saturates(self) -> bool:
        """Whether instructions that make integers of floats saturate: those of x86-64 do not."""
        return not (self.triple or architecture()).startswith("x86_64")

    @property
    def by_lane(self) -> bool:
        """Whether a multiply-add takes one lane of a vector for all: those of NEON do."""
        return self.registers_only and not self.granules


_GET_VECTOR_LENGTH = 51  # prctl.h: PR_SVE_GET_VL
# What `described` takes of /proc/cpuinfo, which has much that changes or differs among alike processors.
_DESCRIBES = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU implementer",
              "CPU variant", "CPU part")

_chosen: ContextVar[Target | None] = ContextVar("target", default=None)


def current() -> Target:
    """The target of this context: the host, unless a block says otherwise."""
    return _chosen.get() or host()


@contextmanager
def use(target: Target) -> Iterator[Target]:
    """Code generated inside of the block is for `target`."""
    token = _chosen.set(target)
    try:
        yield target
    finally:
        _chosen.reset(token)


def architecture() -> str:
    """That of the processor at hand: "x86_64", "aarch64", or as the system calls it."""
    machine = platform.machine()
    return {"AMD64": "x86_64", "arm64": "aarch64", "ARM64": "aarch64"}.get(machine, machine)


@functools.cache
def host() -> Target:
    """The processor at hand."""
    has = _instructions()
    if architecture() == "aarch64":
        return arm("", "", "", sve_bits() if "sve" in has else 0)
    x86 = architecture() == "x86_64"
    bits = 512 if "avx512f" in has else 256 if "avx2" in has else 128
    return Target("", "", "", bits, True, not x86 or "f16c" in has, True, "avx2" in has,
                  "avx512f" in has or "sse2" not in has, "avx512bf16" in has,
                  ("avx512vnni" if bits == 512 else "avxvnni") in has)


@functools.cache
def described() -> tuple[str, ...]:
    """What Linux says of the processor at hand, in lines such as "model name : ..."; none where it does not say."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n\n", 1)[0].splitlines()
    except OSError:
        return ()
    return tuple(line for line in lines if line.partition(":")[0].strip() in _DESCRIBES)


def _instructions() -> frozenset[str]:
    """The kinds of instructions that the processor at hand has, under LLVM's names.

    They are read where the system tells them: a process that finds all its code on disk loads no LLVM.
    """
    for line in described():
        name, _, kinds = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(kinds.replace("_", "").split())
    return frozenset(kind for kind, there in _features().items() if there)


@apart
def _features() -> dict[str, bool]:
    """What LLVM finds that the processor at hand has."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_features()


def arm(triple: str, cpu: str, features: str, sve: int = 0, threads: int | None = None) -> Target:
    """A target of AArch64, which has 32 vectors of 128 bits, or of `sve` bits where those are more.

    Vectors of SVE are used at the one length that a processor has: then they are vectors of a known number of lanes, as
    everywhere. Whatever is read in whole vectors is packed first, since masks would need registers that tiles have.

    >>> [(t.vector_bits, t.granules, t.by_lane) for t in (arm("", "", ""), arm("", "", "", 128), arm("", "", "", 512))]
    [(128, 0, True), (128, 0, True), (512, 4, False)]
    """
    wide = sve > 128
    return Target(triple, cpu, features, min(sve, 512) if wide else 128, True, True, True, False, True,
                  threads=threads, registers_only=True, granules=sve // 128 if wide else 0)


@functools.cache
def sve_bits() -> int:
    """The length of the vectors of SVE that this process has; 0 without SVE, or where the system does not tell."""
    if sys.platform != "linux" or architecture() != "aarch64":
        return 0
    length: int = ctypes.CDLL(None).prctl(_GET_VECTOR_LENGTH)
    bits = 8 * (length & 0xFFFF) if length > 0 else 0
    return bits if bits & bits - 1 == 0 else 128  # lanes are powers of 2 everywhere


@functools.cache
@apart
def host_machine() -> tuple[str, str]:
    """The name and the features of the processor at hand, as target machines take them."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    if architecture() == "x86_64" and host().vector_bits == 512:
        features += ",-prefer-256-bit"  # a default for processors whose clock falls in 512-bit code
    return llvm.get_host_cpu_name(), features


@functools.cache
@apart
def machine_for(triple: str, cpu: str, features: str) -> binding.TargetMachine:
    """The target machine for position-independent code of another program than this process.

    Raises:
        RuntimeError: LLVM has no code generator for it.
    """
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic",
                                                                 codemodel="default")


def assembles_x86() -> bool:
    """Whether modules may hold assembly text for x86-64: LLVM reads only that of the processor at hand."""
    import llvmlite.binding as llvm

    if architecture() != "x86_64":
        return False
    llvm.initialize_native_asmparser()
    return True


_PROBE = """
target triple = "{triple}"
define <16 x float> @wide(<16 x float> %x, <16 x float> %y) {{
  %z = fmul <16 x float> %x, %y
  ret <16 x float> %z
}}
define <8 x i32> @integers(<8 x i32> %x, <8 x i32> %y) {{
  %z = mul <8 x i32> %x, %y
  ret <8 x i32> %z
}}
define float @fused(float %x, float %y, float %z) {{
  %r = call float @llvm.fma.f32(float %x, float %y, float %z)
  ret float %r
}}
define float @half(half %x) {{
  %r = fpext half %x to float
  ret float %r
}}
declare float @llvm.fma.f32(float, float, float)
"""


def probe(triple: str) -> str:
    """A module that shows which instructions there are."""
    return _PROBE.format(triple=triple)


@functools.cache
def of(triple: str, cpu: str = "", features: str = "", threads: int | None = None) -> Target:
    """Another processor.

    Args:
        triple, cpu, features: as LLVM names them.
        threads: how many threads code is planned for.
    Raises:
        RuntimeError: LLVM has no code generator for it.
    """
    machine = machine_for(triple, cpu, features)
    text = _assembly(machine, probe(triple))
    body = {name: text.partition(f"{name}:")[2] for name in ("wide", "integers", "fused", "half")}
    if re.match(r"x86_64|amd64", triple):
        bits = 512 if "zmm" in _first(body["wide"]) else 256 if "ymm" in _first(body["integers"]) and \
            "ymm" in _first(body["wide"]) else 128
        masks = "ymm" in _first(body["integers"])
        return Target(triple, cpu, features, bits, "vfmadd" in _first(body["fused"]), "vcvtph2ps" in _first(
            body["half"]), True, masks, bits == 512, threads=threads)
    if re.match(r"aarch64|arm64", triple):
        return arm(triple, cpu, features, 0, threads)  # libraries run on processors with vectors of any length
    wasm = triple.startswith("wasm")
    fused = not re.search(r"\bfmaf\b", _first(body["fused"]))
    half = not re.search(r"extendhfsf", _first(body["half"]))
    return Target(triple, cpu, features, 128, fused, half, not wasm, False, not wasm, threads=threads)


def _first(text: str) -> str:
    """The lines of assembly up to the end of a function."""
    return re.split(r"\bret[q]?\b|end_function", text, maxsplit=1)[0]


@apart
def _assembly(machine: binding.TargetMachine, text: str) -> str:
    import llvmlite.binding as llvm

    parsed = llvm.parse_assembly(text, llvm.create_context())
    return machine.emit_assembly(parsed)
