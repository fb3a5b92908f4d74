"""Machine code of the runtime's own: compiled once, kept on disk, mapped executable in later processes.

In: a name, a function that writes an LLVM module, and everything the code depends on (the key). Out: the addresses
of its functions. The code is *position independent without relocations*: it reaches the outside world only through
addresses handed to it, so that a stored copy runs wherever it is mapped and a warm process never loads LLVM. Where
the target cannot do that the object file is stored instead and LLVM links it.

What the code does belongs to `native_ir.py` and `threads.py`; kernels belong to codegen.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from twofold.codegen.apart import apart

from . import cache, elf, loading, system

if TYPE_CHECKING:
    from llvmlite import binding, ir

__all__ = ["load", "keep"]

_DEFINITION = re.compile(r"^(define [^\n]*)\n\{", re.MULTILINE)  # tables of addresses would need relocations
_KINDS = ("code", "object")  # what is stored: code that runs wherever it is mapped, or an object file to link
_immortal: list[object] = []  # see `keep`
_loaded: dict[str, dict[str, int]] = {}
_COMMON = ("machine.py", "emit.py", "../codegen/llvm_loops.py")  # on which all code depends


def load(name: str, build: Callable[[], ir.Module], sources: Iterable[str], depends: object = None,
         plain: bool = False) -> dict[str, int]:
    """Addresses by name of the functions of the module that `build` returns.

    Args:
        name: what the module is called, for the cache.
        build: makes the module, from `emit.new_module`; called only when no stored code is found. Functions meant
            for callers have external linkage.
        sources: files of this folder that write the code with `emit.Code`; their contents, and those of the files that
            `emit.Code` is made of, are part of the key.
        depends: whatever else the code depends on, with a `repr` that says it.
        plain: whether so little time is spent in it that it is best made without LLVM's care, in a fraction of the
            time.
    Raises:
        OSError, RuntimeError, ImportError: the code can be neither loaded nor compiled here.
        InternalError: it calls something that the process does not have.
    """
    if name not in _loaded:
        key = _key(name, sources, depends)
        stored = cache.read("machine", key)
        functions = _unpack(stored) if stored is not None else None
        if functions is None:
            stored, functions = _compile(build(), plain)
            if key == _key(name, sources, depends):  # else sources changed on disk: which of both compiled this?
                cache.write("machine", key, stored)
        _loaded[name] = functions
    return _loaded[name]


def keep(thing: object) -> None:
    """Keeps `thing` until the process ends, for code that may still run when the interpreter has emptied its modules:
    in daemon threads and finalizers."""
    _immortal.append(thing)
    if sys.implementation.name == "cpython":
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _key(name: str, sources: Iterable[str], depends: object) -> str:
    texts = []
    for source in (*sources, *_COMMON):
        with open(os.path.join(os.path.dirname(__file__), source), "rb") as file:
            texts.append(file.read())
    return cache.digest(name, platform.machine(), sys.platform, repr(depends), *texts)


def _unpack(stored: bytes) -> dict[str, int] | None:
    """Makes stored code callable; None when it is not in a form this version writes."""
    head, _, code = stored.partition(b"\n")
    kind, *pairs = head.decode(errors="replace").split(" ")
    try:
        offsets = {name: int(offset) for name, offset in (pair.split("=") for pair in pairs)}
    except ValueError:
        return None
    if kind not in _KINDS:
        return None
    if kind == "object":
        return _link(code, offsets)
    if not system.fills_code_pages():
        return None
    base = _map(code)
    return {name: base + offset for name, offset in offsets.items()}


def _map(code: bytes) -> int:
    """The address of an executable copy of `code`."""
    def fill(memory: bytearray, base: int) -> None:
        memory[:] = code

    area, address = loading.executable(len(code), fill)
    keep(area)
    return address


@apart
def _compile(module: ir.Module, plain: bool) -> tuple[bytes, dict[str, int]]:
    """The form to store, and the addresses, of a new module."""
    import llvmlite.binding as llvm

    names = [f.name for f in module.functions if not f.is_declaration and f.linkage == ""]
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        opt=0 if plain else 2, reloc="pic", codemodel="small")
    # Functions begin on lines of their own: where they began elsewhere, small calls took up to a tenth longer.
    parsed = llvm.parse_assembly(_DEFINITION.sub(r'\1 "no-jump-tables"="true" align 64\n{', str(module)))
    parsed.verify()
    if not plain:
        _simplify(parsed, machine)
    image = machine.emit_object(parsed)
    code = _free_of_places(image) if system.fills_code_pages() else None
    if code is None:
        return _packed("object", dict.fromkeys(names, 0), image), _link(image, dict.fromkeys(names, 0))
    text, offsets = code
    functions = {name: offsets[name] for name in names}
    base = _map(text)
    return _packed("code", functions, text), {name: base + offset for name, offset in functions.items()}


def _free_of_places(image: bytes) -> tuple[bytes, dict[str, int]] | None:
    """The code of an object file and where in it each function begins; None where its bytes depend on where it lies."""
    file = elf.read(image)
    if file is None:
        return None
    texts = [n for n, section in enumerate(file.sections) if section.flags & elf.EXECUTABLE and section.length]
    if len(texts) != 1 or file.relocations(texts):
        return None
    section = file.sections[texts[0]]
    return (file.data[section.start:section.start + section.length],
            {symbol.name: symbol.value for symbol in file.symbols if symbol.section == texts[0]})


def _packed(kind: str, functions: dict[str, int], content: bytes) -> bytes:
    """The form to store: a line with the kind of what follows, and where in it each function begins."""
    return " ".join([kind, *[f"{name}={offset}" for name, offset in functions.items()]]).encode() + b"\n" + content


def _simplify(module: binding.ModuleRef, machine: binding.TargetMachine) -> None:
    """Cleans up without turning loops into calls of library functions, which would need relocations."""
    import llvmlite.binding as llvm

    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


@apart
def _link(image: bytes, functions: dict[str, int]) -> dict[str, int]:
    engine = loading.linked([image], "the compiled module")
    keep(engine)
    addresses = {name: engine.get_function_address(name) for name in functions}
    missing = [name for name, address in addresses.items() if not address]
    if missing:
        raise RuntimeError(f"the compiled module lacks {', '.join(missing)}")
    return addresses
