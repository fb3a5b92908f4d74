"""LLVM modules to machine code: one pipeline for every backend of the CPU, and the target machines.

In: the text of a module, or llvmlite's `ir.Module`. Out: the module optimised, an object file, or assembly text.
Object code needs no library but the C runtime. Which processor it is for says `target.py`: the host, unless a block
asks for another. Each module lives in an LLVM context of its own, so that nothing of it stays behind, and whoever works
on one has a target machine to himself, so that threads may optimise and emit modules for the host at once. No signal
ends such work halfway (`apart.py`).

What the modules hold is the affair of `llvm_cpu.py` and `numba_cpu.py`; loading object code that of the runtime.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from . import target as targets
from .apart import apart

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from llvmlite import binding, ir

__all__ = ["verified", "optimise", "object_code", "machine_code", "first_tier", "optimised_assembly", "assembly",
           "vector_bits", "linked"]


@apart
def verified(module: ir.Module | str | bytes) -> binding.ModuleRef:
    """The module as it is written.

    Args:
        module: a module of llvmlite, or LLVM's text or bitcode; where it names no target, it gets the current one.
    Raises:
        RuntimeError: the module is not valid LLVM.
    """
    import llvmlite.binding as llvm

    if isinstance(module, bytes):
        return llvm.parse_bitcode(module, llvm.create_context())
    with _lent() as target:
        text = _with_target(str(module), target)
    parsed = llvm.parse_assembly(text, llvm.create_context())
    parsed.verify()
    return parsed


@apart
def first_tier(module: ir.Module | str) -> tuple[bytes, bytes]:
    """An object file of the module that is made in a fraction of the time, and the module as bitcode.

    Args and errors: as for `verified`.
    """
    import llvmlite.binding as llvm

    parsed = verified(module)
    kept = parsed.as_bitcode()
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()  # the one pass that instructions may need
    _run(parsed, passes)
    return object_code(parsed, first=True), kept


@apart
def optimise(module: ir.Module | str | bytes) -> binding.ModuleRef:
    """The module, verified and optimised.

    Loops are vectorised but not unrolled: unrolling first would leave the lanes of a reduction as scalars.

    Args and errors: as for `verified`.
    """
    parsed = verified(module)
    _run(parsed)
    return parsed


def _run(parsed: binding.ModuleRef, passes: binding.ModulePassManager | None = None) -> None:
    """Runs passes over a module in place, by default those of the pipeline."""
    import llvmlite.binding as llvm

    with _lent() as target:
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


@apart
def object_code(module: binding.ModuleRef, *, quick: bool = False, first: bool = False) -> bytes:
    """The object file of an optimised module.

    Args:
        module: what to emit.
        quick: whether to emit it in about half the time: addresses stay as the loops have them, which makes most loops
            no slower, and few by some hundredths. For programs of many kernels, and for loops written with the
            addresses that they are to have.
        first: whether to emit it in a fraction of the time, as code of the first tier.
    """
    with _lent() as target:
        if first:
            return _emitted(module, target, target.cheap, None if target.is_host else target.is_quick)
        return _emitted(module, target, target.machine, quick and target.is_quick)


@apart
def machine_code(module: ir.Module | str | bytes, *, optimised: bool = True, quick: bool = False,
                 first: bool = False) -> bytes:
    """The object file of a module that nobody needs any more, all of whose objects are made and freed apart.

    Args:
        module: as for `verified`.
        optimised: whether it goes through LLVM's optimisations before.
        quick, first: as for `object_code`.
    """
    return object_code(optimise(module) if optimised else verified(module), quick=quick, first=first)


def _emitted(module: binding.ModuleRef, target: _TargetMachine, machine: binding.TargetMachine,
             without: bool | None) -> bytes:
    """The object file of a module; `without` is as for `_Emission.turn`."""
    from llvmlite.binding import ffi

    with _emission.turn(without), ffi.OutputString() as error:
        buffer = target.function("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


@apart
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

    context = llvm.create_context()

    def parsed(module: ir.Module | str) -> binding.ModuleRef:
        with _lent() as target:
            text = _with_target(str(module), target)
        in_context = llvm.parse_assembly(text, context)
        in_context.verify()
        return in_context

    whole, *others = [parsed(m) for m in modules]
    for other in others:
        whole.link_in(other)
    _hide(whole, exported)
    _run(whole)
    for other in ready:
        whole.link_in(parsed(other))
    _hide(whole, exported)
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    _run(whole, passes)
    return whole


def _hide(module: binding.ModuleRef, exported: Collection[str]) -> None:
    """Makes all that a module defines its own, but for the symbols `exported`."""
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name not in exported:
            value.linkage = "internal"


@apart
def optimised_assembly(module: ir.Module | str | bytes) -> str:
    """The assembly text of a module that nobody needs any more, after it is optimised."""
    return assembly(optimise(module))


@apart
def assembly(module: binding.ModuleRef) -> str:
    """The assembly text of an optimised module."""
    with _lent() as target:
        return target.machine.emit_assembly(module)


def vector_bits() -> int:
    """The width of the widest vectors that code is generated for."""
    return targets.current().vector_bits


class _Emission:
    """Who emits machine code, and whether with loop strength reduction, LLVM's search for better addresses in loops.

    The search takes as long as all else of code generation. Where addresses may be a base, an index times the size of
    an element, and a number, it seldom finds better ones. LLVM has no switch for it but one of the whole process, an
    option of its command line. So threads that want it one way go together, and others wait for them; in between it is
    on, as other users of LLVM have it.
    """

    def __init__(self) -> None:
        self.without = False  # as LLVM has it
        self.begin()

    def begin(self) -> None:
        """Nobody emits, as in a child process, where other threads are gone."""
        self.changed, self.at_work = threading.Condition(), 0

    @contextmanager
    def turn(self, without: bool | None) -> Iterator[None]:
        """A block that emits; with None as it happens to be, for code that is made without the search in any case."""
        with self.changed:
            self.changed.wait_for(lambda: not self.at_work or without in (None, self.without))
            if without is not None:
                self.switch(without)
            self.at_work += 1
        try:
            yield
        finally:
            with self.changed:
                self.at_work -= 1
                if not self.at_work:
                    self.switch(False)
                    self.changed.notify_all()

    def switch(self, without: bool) -> None:
        import llvmlite.binding as llvm

        if self.without != without:
            llvm.set_option("twofold", f"-disable-lsr={'true' if without else 'false'}")
            self.without = without


_emission = _Emission()
_TRIED = 22  # the newest LLVM that has been seen to have the option: one without it would end the process

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_emission.begin)


class _TargetMachine:
    """A target machine and the pipeline's settings, which hold no state between modules."""

    def __init__(self, target: targets.Target) -> None:
        import llvmlite.binding as llvm

        x86 = targets.architecture() == "x86_64"
        if target.is_host:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            cpu, features = targets.host_machine()
            # All that code refers to on AArch64 lies in one mapping, but for functions, which are called by stubs.
            near = targets.architecture() == "aarch64" and sys.platform == "linux"
            self.machine, self.cheap = [llvm.Target.from_default_triple().create_target_machine(
                cpu=cpu, features=features, opt=level, jit=True, reloc="static" if x86 else "default",
                codemodel="small" if near else "jitdefault") for level in (3, 0)]
        else:
            self.machine = self.cheap = targets.machine_for(target.triple, target.cpu, target.features)
        self.is_host, self.granules = target.is_host, target.granules
        # Where `quick` is heard. On AArch64 the search makes chains of addresses, on which all loads of a tile wait.
        heard = x86 and target.is_host or target.registers_only
        self.is_quick = heard and llvm.llvm_version_info[0] <= _TRIED
        self.tuning = llvm.create_pipeline_tuning_options(speed_level=3)
        self.tuning.loop_unrolling = False

    def function(self, name: str) -> Callable[..., int | None]:
        """A function of llvmlite's library, without llvmlite's lock where threads share nothing: each is lent a machine
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

    They must be there when it is parsed: accesses get the alignment of their types then. Of vectors of SVE LLVM is told
    how long they are, function by function.
    """
    if target.granules:
        text = _DEFINITION.sub(rf"\1 vscale_range({target.granules},{target.granules})", text)
    text = text.replace('target triple = "unknown-unknown-unknown"', f'target triple = "{target.machine.triple}"', 1)
    return text.replace('target datalayout = ""', f'target datalayout = "{target.machine.target_data}"', 1)


_DEFINITION = re.compile(r"^(define [^\n{]*\))", re.MULTILINE)
_idle: dict[targets.Target, list[_TargetMachine]] = {}  # that nobody works with: to make one takes two milliseconds


@contextmanager
def _lent() -> Iterator[_TargetMachine]:
    """A block that has a machine for the current target to itself."""
    machines = _idle.setdefault(targets.current(), [])
    try:
        machine = machines.pop()
    except IndexError:
        machine = _TargetMachine(targets.current())
    try:
        yield machine
    finally:
        machines.append(machine)
