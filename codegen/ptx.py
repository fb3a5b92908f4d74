"""Kernels of the loop IR as PTX, the assembly language of NVIDIA's GPUs, through LLVM's NVPTX target.

In: a finished `loop.Kernel`. Out: PTX text that the driver, or `ptxas`, turns into machine code. The instructions are
those of the processor's code (`llvm_ops.py`), so that results are the same to the bit: products are not contracted with
sums, subnormal numbers are kept, and division and square roots are rounded exactly. A kernel's result for an iteration
of its outermost range does not depend on the range, so each thread, warp, or block of threads, runs it over one
iteration at a time.

This is code alone: which kernels suit a GPU, memory and launching are not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from llvmlite import ir

from twofold.ir.scalar import Instr

from . import llvm_cpu, llvm_module, llvm_teams
from . import target as targets
from .llvm_teams import special_register
from .loop import TEAM
from .statements import IntegerArgument, Kernel, Spread, walk

__all__ = ["OLDEST", "TENSOR_CORES", "Threads", "target", "threads", "parameters", "text", "module", "assembly"]

_TRIPLE = "nvptx64-nvidia-cuda"
_VERSION = "+ptx63"  # the oldest that knows `OLDEST`; every driver of today takes it
OLDEST = "sm_75"  # Turing; code for it also runs on what came later
TENSOR_CORES = 8, 0  # the capability of Ampere, the oldest whose tensor cores take TF32 and bfloat16
_TENSOR_CORES_VERSION = "+ptx70"
_BLOCK = 128  # threads of a block, where its size makes no difference
_I64, _GENERIC, _GLOBAL = ir.IntType(64), ir.PointerType(), ir.PointerType(addrspace=1)


def target(tensor_cores: bool = False) -> targets.Target:
    """GPUs from `OLDEST` on, or those whose tensor cores we know, for `target.use`. Threads have no vectors."""
    architecture, version = OLDEST, _VERSION
    if tensor_cores:
        architecture, version = "sm_{}{}".format(*TENSOR_CORES), _TENSOR_CORES_VERSION
    return targets.Target(_TRIPLE, architecture, version, 0, fused=True, half=True, wide=True, masks=False,
                          many_registers=True)


class Threads(NamedTuple):
    """How a kernel is launched: the threads of each block, and how many iterations these run at once. Memory that
    blocks share is in the code."""

    block: int
    iterations: int


def threads(kernel: Kernel) -> Threads:
    """The blocks that run a kernel: so many as there are iterations, or fewer, each of which then runs several."""
    block = max(kernel.team, _BLOCK)
    return Threads(block, block // kernel.team) if kernel.team <= TEAM else Threads(kernel.team, 1)


def parameters(kernel: Kernel, count: int = 0) -> list[bool]:
    """For each of the kernel's arguments whether it is the address of memory; else it is an integer.

    Args:
        count: how many there are, with those that it reads as a table.
    """
    memory = {p.slot for p in kernel.pointers if p.slot is not None}
    integers = {s.index for s in walk(kernel.body) if isinstance(s, IntegerArgument)}
    return [n in memory for n in range(max(1 + max([*memory, *integers], default=-1), count))]


def text(kernels: Mapping[str, Kernel]) -> str:
    """PTX with an entry for each kernel, by its name.

    An entry takes the length of the kernel's range and the address of a status word, both of 64 bits, then the kernel's
    arguments (`parameters`). Any number of blocks share the range, in one dimension, each of as many threads as
    `threads` says. The word must be -1 before; afterwards it is one less than the least status that an iteration had,
    so -1 still where no check failed.

    Args:
        kernels: what runs on one thread: kernels that call others (`Call`) are not among them.
    Raises:
        RuntimeError: LLVM has no code generator for NVIDIA's GPUs.

    >>> from twofold.codegen import schedule
    >>> from twofold.ir import dtypes as dt
    >>> double = schedule.map_rows("double", lambda s, x: s.add(x, x), (dt.float32,), (dt.float32,), {}, "v")
    >>> ".visible .entry double(" in text({"double": double})
    True
    """
    return assembly(module(kernels))


def module(kernels: Mapping[str, Kernel], count: int = 0) -> str:
    """The LLVM module that `text` is made of: all that it depends on, at a tenth of the time.

    Args:
        count: of arguments, as for `parameters`.
    """
    with targets.use(target(any(_uses_tensor_cores(kernel) for kernel in kernels.values()))):
        written = ir.Module()
        for name, kernel in kernels.items():
            _entry(written, kernel, name, count)
        return str(written)


def assembly(written: str) -> str:
    """PTX of a `module`."""
    with targets.use(target("llvm.nvvm.mma." in written)):
        return llvm_module.optimised_assembly(written)


def _uses_tensor_cores(kernel: Kernel) -> bool:
    """Whether a kernel needs a GPU whose capability is no less than `TENSOR_CORES`."""
    return any(isinstance(s, Instr) and s.op == "mma" or isinstance(s, Spread) and _uses_tensor_cores(s.kernel)
               for s in walk(kernel.body))


def _entry(module: ir.Module, kernel: Kernel, name: str, count: int) -> None:
    """Writes the function that threads begin in."""
    inner = llvm_cpu.emit_kernel(module, kernel, f"{name}_iteration", inline=True, short=True)
    are_memory = parameters(kernel, count)
    kinds = [_GLOBAL if is_memory else _I64 for is_memory in are_memory]
    fn = ir.Function(module, ir.FunctionType(ir.VoidType(), [_I64, _GLOBAL, *kinds]), name)
    fn.calling_convention = "ptx_kernel"
    total, status, *arguments = fn.args
    b = ir.IRBuilder(fn.append_basic_block("entry"))
    args = b.alloca(_I64, max(len(arguments), 1))  # which LLVM dissolves, as the kernel is written in place
    for n, (argument, is_memory) in enumerate(zip(arguments, are_memory, strict=True)):
        word = b.ptrtoint(b.addrspacecast(argument, _GENERIC), _I64) if is_memory else argument
        b.store(word, b.gep(args, [_I64(n)], source_etype=_I64))
    with _own_iterations(b, total, kernel.team) as iteration:
        if kernel.shared:
            llvm_teams.barrier(b)  # all have read what they shared for the iteration before
        result = b.call(inner, [iteration, b.add(iteration, _I64(1), flags=("nsw",)), args])
        if kernel.codes:
            llvm_teams.reported(b, result, status)
    b.ret_void()


@contextmanager
def _own_iterations(b: ir.IRBuilder, total: ir.Value, team: int) -> Iterator[ir.Value]:
    """Writes a loop over the iterations that this thread's team has: as many apart as there are teams."""
    count, first = special_register(b, "nctaid.x"), special_register(b, "ctaid.x")
    if team <= TEAM:
        block = special_register(b, "ntid.x")
        count, first = b.mul(count, block), b.add(b.mul(first, block), special_register(b, "tid.x"))
        if team > 1:
            count, first = b.udiv(count, _I64(team)), b.udiv(first, _I64(team))
    with llvm_teams.each(b, first, count, total) as iteration:
        yield iteration
