"""`Native`: a compiled program in memory, from this process or an earlier one, called with arrays.

Its machine code belongs to it alone and goes when it does. On disk an entry is found by the text of the graph and
everything else that code depends on (`environment`), so that a later process neither lowers nor compiles. How
programs are called from Python without any Python is `program_call.py`'s affair.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import math
import os
import platform
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, cast

import numpy as np

from twofold.codegen import library
from twofold.codegen.kernels import indexing
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.graph_text import text

from . import cache, identity, interrupts, memory, sharing, threads
from . import products as _products  # noqa: F401 - provides the library kernels of matrix products
from .calls import NodeFailure, address_of
from .description import Description, DetailArguments, describe, pack, unpack
from .image import Image

if TYPE_CHECKING:
    from twofold.codegen import program
    from twofold.codegen.backend import Backend, CompiledGraph
    from twofold.codegen.plan import Plan

__all__ = ["Native", "native", "compile_program", "environment", "key"]

_ALIGNED = 64
_PARTS = 2  # modules of a long program for each processor: more than one, since libraries are compiled beside them
_ENTRY = [ctypes.c_int64, *[ctypes.c_void_p] * 4]


class Native:
    """A program in memory.

    Attributes:
        about: what it takes and gives.
        entry, plan: addresses of its functions; `plan` is 0 where all sizes are known.
        words: address of the words that the entry takes as its last argument.
        cached: whether it was found on disk.
        types: the dtypes of the outputs.
    """

    __slots__ = ("graph", "about", "cached", "entry", "plan", "words", "constants", "_image", "_table", "_lines",
                 "_call", "_call_locked", "_shapes", "types", "_static", "_small", "__weakref__")

    def __init__(self, graph: g.Graph, about: Description, code: Sequence[bytes], origin: g.Graph | None = None,
                 cached: bool = False) -> None:
        """Args:
            graph: of native nodes only.
            about, code: what it takes and gives, and its object files.
            origin: the graph that passes made `graph` of, whose lines `about` counts.
            cached: whether both were found on disk.
        """
        self.graph, self.about, self.cached = graph, about, cached
        self._lines = [node.loc for node in (graph if origin is None else origin).walk()]
        names = ["entry", "plan"] if about.symbols else ["entry"]
        self._image = Image(code, names)
        self.entry = self._image.address("entry")
        self.plan = self._image.address("plan") if about.symbols else 0
        if any(key[0] == "conv" for key in about.libraries):  # a program from disk met no lowering that imports this
            from . import convolutions  # noqa: F401
        links = [library.address(key) for key in about.libraries]
        self._table = (ctypes.c_int64 * (4 + len(links)))(*threads.table(_is_shared(about.work)), *links,
                                                          interrupts.poll_words())
        self.words = ctypes.addressof(self._table)
        self._call = ctypes.CFUNCTYPE(*_ENTRY)(self.entry)
        self._call_locked = ctypes.PYFUNCTYPE(*_ENTRY)(self.entry)
        self.constants = [address_of(c) for c in about.constants]
        self._shapes = [dims for dims, _ in about.outputs]
        self.types = [dt.as_dtype(name).np for _, name in about.outputs]
        self._static = not any(isinstance(d, Dim) for s in self._shapes for d in s)
        self._small = not isinstance(about.work, Dim) and about.work < sharing.SMALL

    @classmethod
    def of_graph(cls, graph: g.Graph, backend: Backend, donate: dict[int, int] | None = None,
             origin: g.Graph | None = None, label: str = "") -> Native:
        """The program of a graph, from disk or compiled now.

        Args:
            graph: of native nodes only.
            backend: that plans it.
            donate: see `codegen/planner.py: plan`; not used where a check could fail after memory given away was
                written, so that a failed run leaves everything as it was.
            origin: the graph that passes made `graph` of, by which it is found on disk.
            label: stands for those passes.
        """
        origin = graph if origin is None else origin
        stored = _read_stored(origin, donate or {}, label)
        about, code = stored or _compiled(graph, backend, donate or {}, origin, label)
        return cls(graph, about, code, origin, stored is not None)

    @classmethod
    def stored(cls, graph: g.Graph, donate: dict[int, int], label: str) -> Native | None:
        """The program of what passes make of `graph`, where it is on disk."""
        stored = _read_stored(graph, donate, label)
        return None if stored is None else cls(graph, *stored, cached=True)

    @classmethod
    def of(cls, plan: Plan) -> Native:
        """The program of a plan; it is not kept on disk."""
        from twofold.codegen import llvm_module, program

        lines = {id(node): n for n, node in enumerate(plan.graph.walk())}
        code = llvm_module.object_code(llvm_module.optimise(program.emit(plan, "entry").module), quick=plan.is_long)
        return cls(plan.graph, describe(plan, lambda node: lines.get(id(node))), [code])

    @property
    def donated(self) -> dict[int, int]:
        """Output number -> the number of the input whose memory it takes."""
        return self.about.donated

    def run_alone(self) -> None:
        """Have the calling thread do all the work."""
        self._table[2] = threads.ONE

    def __call__(self, arrays: Sequence[np.ndarray], sizes: dict[str, int]) -> list[np.ndarray]:
        """The outputs for row-major arrays. Those whose memory an output takes (`about.donated`) are overwritten.

        Raises:
            NodeFailure: a check failed.
        """
        about = self.about
        arrays = [a if a.flags.c_contiguous else np.ascontiguousarray(a) for a in arrays]
        shapes = self._shapes if self._static else [dm.evaluate(s, sizes) for s in self._shapes]
        outs: list[np.ndarray] = []
        for n, (shape, dtype) in enumerate(zip(shapes, self.types, strict=True)):
            donor = about.donated.get(n)
            outs.append(arrays[donor].reshape(shape) if donor is not None  # type: ignore[arg-type]
                        else memory.empty(shape, dtype))  # type: ignore[arg-type]
        need = about.arena if not isinstance(about.arena, Dim) else about.arena.evaluate(sizes)
        arena = memory.empty((need + _ALIGNED,), np.dtype(np.uint8)) if need else None
        at = (address_of(arena) + _ALIGNED - 1) // _ALIGNED * _ALIGNED if arena is not None else 0
        buffers = (ctypes.c_int64 * (len(arrays) + len(outs) + len(self.constants)))(
            *map(address_of, arrays), *map(address_of, outs), *self.constants)
        numbers = (ctypes.c_int64 * (len(about.symbols) or 1))(*[sizes[s] for s in about.symbols])
        call = self._call_locked if self._small else self._call
        status = call(ctypes.addressof(buffers), ctypes.addressof(numbers), at, self.words)
        if status == interrupts.INTERRUPTED:
            interrupts.raise_interrupt()
        if status:
            check, more = about.failed(status)
            code = check.code if more is None else _explained(more, buffers, at, sizes)
            raise NodeFailure(check.op, None if check.line is None else self._lines[check.line], code)
        return outs


def native(run: CompiledGraph | None) -> Native | None:
    """`run` itself where it is a program of the processor, else None."""
    return run if isinstance(run, Native) else None


def _explained(more: DetailArguments, buffers: ctypes.Array[ctypes.c_int64], arena: int, sizes: dict[str, int]) -> str:
    """The text of a failed check, from the operands that lie in memory still."""
    arrays = []
    for buffer, begin, name, first, dims in more.arrays:
        dtype = dt.as_dtype(name)
        at, start, *shape = dm.evaluate((begin, first, *dims), sizes)
        address = (arena if buffer is None else buffers[buffer]) + at + start * dtype.size
        words = (ctypes.c_char * (dtype.size * math.prod(shape))).from_address(address)
        arrays.append(np.frombuffer(memoryview(words), dtype.np).reshape(shape))
    return indexing.detail(more.kind, arrays, dm.evaluate(more.sizes, sizes))


# -- from disk, or made now ---------------------------------------------------------------------------
def key() -> str:
    """The part of a cache key that has all that a program depends on besides its graph."""
    return f"{bool(interrupts.poll_words())} {threads.get_num_threads()} {environment()}"


def _key(graph: g.Graph, donate: dict[int, int], label: str) -> str:
    return cache.digest("program", label, text(graph, locations=False, names=False), sorted(donate.items()), key())


def _read_stored(graph: g.Graph, donate: dict[int, int], label: str) -> tuple[Description, list[bytes]] | None:
    """The stored program of a graph, if there is one; none is looked for where the graph calls Python, which its text
    does not have."""
    if not cache.enabled() or any(node.op is g.HOST for node in graph.walk()):
        return None
    stored = cache.read("programs", _key(graph, donate, label))
    return None if stored is None else unpack(stored)


def _compiled(graph: g.Graph, backend: Backend, donate: dict[int, int], origin: g.Graph,
              label: str) -> tuple[Description, list[bytes]]:
    """The description and object files of a graph's program, which are stored for `origin`."""
    lines = {id(node.loc): n for n, node in enumerate(origin.walk())}  # passes keep the objects
    # The names of functions are the same in every program: each is linked by itself.
    with _without_collections():
        compiled = compile_program(graph, backend, "entry", donate, interruptible=bool(interrupts.poll_words()),
                                   parts=_PARTS * threads.available_cpus())
    code = _object_files([compiled.module, *compiled.others], [lib.key for lib in compiled.plan.libraries],
                         _is_shared(compiled.plan.work), compiled.plan.is_long)
    about = describe(compiled.plan, lambda node: None if node.loc is None else lines.get(id(node.loc)))
    if cache.enabled() and _SOURCES.unchanged():  # else it is unknown which of both compiled this
        cache.write("programs", _key(origin, donate, label), pack(about, code))
    return about, code


def compile_program(graph: g.Graph, backend: Backend, name: str, donate: dict[int, int],
                    interruptible: bool = False, parts: int = 1) -> program.Program:
    """`program.compile_graph`, with memory given away only where a run that fails leaves it as it was."""
    from twofold.codegen import program

    return program.compile_graph(graph, backend, name, donate, interruptible=interruptible, intact=True,
                                 parts=parts)


def _is_shared(work: DimLike) -> bool:
    """Whether a program may share its work among threads."""
    return isinstance(work, Dim) or work >= sharing.IN_PROGRAMS


@contextmanager
def _without_collections() -> Iterator[None]:
    """Has Python look for no garbage while the block runs, which makes much and leaves little: a plan and its code are
    some hundred thousand objects, and each search would go through all that the process has."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _object_files(modules: Sequence[str], libraries: Sequence[tuple[str, ...]], shared: bool,
                  quick: bool = False) -> list[bytes]:
    """The object files of a program's modules. What else it needs (library kernels, the sharing of work) is made ready
    at the same time; what fails there fails again, and is reported, where it is asked for.

    Raises:
        RuntimeError: a module is not valid LLVM.
    """
    from twofold.codegen import llvm_module

    files: dict[int, bytes | Exception] = {}

    def compile_one(number: int) -> None:
        try:
            files[number] = llvm_module.object_code(llvm_module.optimise(modules[number]), quick=quick)
        except Exception as error:  # noqa: BLE001 (it is raised below, in the thread that asked)
            files[number] = error

    def start_threads() -> None:
        with suppress(Exception):
            threads.table(shared)

    def load(key: tuple[str, ...]) -> None:
        with suppress(Exception):
            library.address(key)
    _run_all([*([start_threads] if shared else []), *[functools.partial(compile_one, n) for n in range(len(modules))],
              *[functools.partial(load, key) for key in libraries]])
    results = [files[n] for n in range(len(modules))]
    for result in results:
        if isinstance(result, Exception):
            raise result
    return cast("list[bytes]", results)


def _run_all(tasks: Sequence[Callable[[], None]]) -> None:
    """Runs tasks, which raise nothing, on as many threads as there are processors; this thread is one of them."""
    waiting = deque(tasks)

    def work() -> None:
        while waiting:
            try:
                task = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            task()
    helpers = []
    with suppress(RuntimeError):  # no more threads, or the interpreter is about to end
        for _ in range(min(len(tasks), threads.available_cpus()) - 1):
            helper = threading.Thread(target=copy_context().run, args=(work,), name="twofold-compile")
            helper.start()
            helpers.append(helper)
    try:
        work()
    finally:
        waiting.clear()  # of an interrupted call
        for helper in helpers:
            helper.join()


@functools.cache
def environment() -> str:
    """The part of a cache key that has all that code depends on besides its graph, computed when first asked for."""
    return cache.digest(*_SOURCES.digests(), platform.python_version(), np.__version__,
                        identity.release("llvmlite"), sys.platform, *identity.processor())


def _modules(folder: str) -> Iterator[str]:
    """The modules in a folder and those inside of it, in one order."""
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.endswith(".py"):
            yield entry.path
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _modules(entry.path)


_SOURCES = identity.Sources(
    lambda: (path for room in (cache, library, g) for path in _modules(os.path.dirname(room.__file__ or ""))))
