"""LLVM modules to machine code: one pipeline for every backend of the CPU, and the target machines.

In: the text of a module, or llvmlite's `ir.Module`. Out: the module optimised, an object file, or assembly text.
Object code needs no library but the C runtime. Which processor it is for says `target.py`: the host, unless a block
asks for another. Target machines are made once a thread; each module lives in an LLVM context of its own, so that
nothing of it stays behind, and threads may optimise and emit modules for the host at once.

What the modules hold is the affair of `llvm_cpu.py` and `numba_cpu.py`; loading object code that of the runtime.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import threading
from typing import TYPE_CHECKING

from . import target as targets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from llvmlite import binding, ir

__all__ = ["verified", "optimise", "object_code", "assembly", "vector_bits", "linked"]


def verified(module: ir.Module | str) -> binding.ModuleRef:
    """The module as it is written.

    Args:
        module: a module of llvmlite, or LLVM's text; where it names no target, it gets the current one.
    Raises:
        RuntimeError: the module is not valid LLVM.
    """
    import llvmlite.binding as llvm

    parsed = llvm.parse_assembly(_with_target(str(module), _target()), llvm.create_context())
    parsed.verify()
    return parsed


def optimise(module: ir.Module | str) -> binding.ModuleRef:
    """The module, verified and optimised.

    Loops are vectorised but not unrolled: unrolling first would leave the lanes of a reduction as scalars.

    Args and errors: as for `verified`.
    """
    parsed = verified(module)
    _run(parsed, _target())
    return parsed


def _run(parsed: binding.ModuleRef, target: _TargetMachine, passes: binding.ModulePassManager | None = None) -> None:
    """Runs passes over a module in place, by default those of the pipeline."""
    import llvmlite.binding as llvm

    # A run leaves callbacks behind in the builder that must not be called again, and uses the manager up.
    builder = llvm.create_pass_builder(target.machine, target.tuning)
    passes = passes or builder.getModulePassManager()
    target.function("LLVMPY_RunNewModulePassManager")(passes, parsed, builder)
    _free(passes)


def _free(passes: binding.ModulePassManager) -> None:
    """Gives the memory of a pass manager back, some 70 KB, which llvmlite keeps: the method of its class that does so
    is hidden by an empty one of another base."""
    from llvmlite.binding import ffi, newpassmanagers

    if type(passes)._dispose is ffi.ObjectRef._dispose:
        newpassmanagers.NewPassManager._dispose(passes)
    passes.close()


def object_code(module: binding.ModuleRef) -> bytes:
    """The object file of an optimised module."""
    from llvmlite.binding import ffi

    target = _target()
    with ffi.OutputString() as error:
        buffer = target.function("LLVMPY_TargetMachineEmitToMemory")(target.machine, module, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def linked(modules: Sequence[ir.Module | str], ready: Sequence[ir.Module | str],
           exported: Collection[str]) -> binding.ModuleRef:
    """One module of several, optimised, in which only the symbols `exported` can be seen from outside.

    Args:
        modules: to be optimised together.
        ready: modules that are written as LLVM's optimisations would leave them.
        exported: the symbols.
    Raises:
        RuntimeError: a module is not valid LLVM.
    """
    import llvmlite.binding as llvm

    target, context = _target(), llvm.create_context()

    def parsed(module: ir.Module | str) -> binding.ModuleRef:
        in_context = llvm.parse_assembly(_with_target(str(module), target), context)
        in_context.verify()
        return in_context

    whole, *others = [parsed(m) for m in modules]
    for other in others:
        whole.link_in(other)
    _hide(whole, exported)
    _run(whole, target)
    for other in ready:
        whole.link_in(parsed(other))
    _hide(whole, exported)
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    _run(whole, target, passes)
    return whole


def _hide(module: binding.ModuleRef, exported: Collection[str]) -> None:
    """Makes all that a module defines its own, but for the symbols `exported`."""
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name not in exported:
            value.linkage = "internal"


def assembly(module: binding.ModuleRef) -> str:
    """The assembly text of an optimised module."""
    return _target().machine.emit_assembly(module)


def vector_bits() -> int:
    """The width of the widest vectors that code is generated for."""
    return targets.current().vector_bits


class _TargetMachine:
    """A target machine and the pipeline's settings, which hold no state between modules."""

    def __init__(self, target: targets.Target) -> None:
        import llvmlite.binding as llvm

        if target.is_host:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            x86 = platform.machine() in ("x86_64", "AMD64")
            cpu, features = targets.host_machine()
            self.machine = llvm.Target.from_default_triple().create_target_machine(
                cpu=cpu, features=features, opt=3, jit=True, reloc="static" if x86 else "default",
                codemodel="jitdefault")
        else:
            self.machine = targets.machine_for(target.triple, target.cpu, target.features)
        self.is_host = target.is_host
        self.tuning = llvm.create_pipeline_tuning_options(speed_level=3)
        self.tuning.loop_unrolling = False

    def function(self, name: str) -> Callable[..., int | None]:
        """A function of llvmlite's library, without llvmlite's lock where threads share nothing: each has a machine
        for the host, and modules have contexts of their own. Under the lock all would wait for the largest module."""
        from llvmlite.binding import ffi

        return _unlocked(name) if self.is_host else getattr(ffi.lib, name)


@functools.cache
def _unlocked(name: str) -> Callable[..., int | None]:
    from llvmlite.binding import ffi

    locked = getattr(ffi.lib, name)
    function = ctypes.CDLL(ffi.lib._name)[name]
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function


def _with_target(text: str, target: _TargetMachine) -> str:
    """The text of a module with the triple and data layout of the target in place of those that llvmlite leaves open.

    They must be there when it is parsed: accesses get the alignment of their types then.
    """
    text = text.replace('target triple = "unknown-unknown-unknown"', f'target triple = "{target.machine.triple}"', 1)
    return text.replace('target datalayout = ""', f'target datalayout = "{target.machine.target_data}"', 1)


_own = threading.local()


def _target() -> _TargetMachine:
    """The machine of this thread for the current target."""
    wanted = targets.current()
    machines: dict[targets.Target, _TargetMachine] = _own.__dict__.setdefault("machines", {})
    if wanted not in machines:
        machines[wanted] = _TargetMachine(wanted)
    return machines[wanted]
