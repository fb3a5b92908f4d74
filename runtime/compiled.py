"""`Native`: a compiled program in memory, from this process or an earlier one, called with arrays.

Its machine code belongs to it alone and goes when it does; it may come in two tiers (`tiers.py`). On disk an entry is
found by the text of the graph and everything else that code depends on (`environment`), so that a later process neither
lowers nor compiles. How programs are called from Python without any Python is `program_call.py`'s affair.
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
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from twofold.codegen import library
from twofold.codegen.apart import apart
from twofold.codegen.backend import AGAIN
from twofold.codegen.kernels import indexing
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.graph_text import text

from . import cache, generated, identity, interrupts, memory, packed, sharing, threads, tiers
from . import products as _products  # noqa: F401 - provides the library kernels of matrix products
from .calls import NodeFailure, address_of
from .description import Description, DetailArguments, ProgramCode, describe, pack, unpack
from .image import Image
from .log import log
from .program_table import CODE

if TYPE_CHECKING:
    from twofold.codegen import program
    from twofold.codegen.backend import Backend, CompiledGraph
    from twofold.codegen.plan import Plan

__all__ = ["Native", "native", "compile_program", "environment", "is_stored", "key"]

_ALIGNED = 64
_PARTS = 2  # modules of a long program for each processor: more than one, since libraries are compiled beside them
_ENTRY = [ctypes.c_int64, *[ctypes.c_void_p] * 4]
_BEFORE = len(CODE)  # words before those of threads and libraries


class Native:
    """A program in memory.

    Attributes:
        about: what it takes and gives.
        words: address of the words that the entry takes as its last argument; those of `program_table.py: CODE` lie
            before them, among them the addresses of its functions.
        charge: what a call counts (`tiers.charge`).
        cached: whether it was found on disk.
        types: the dtypes of the outputs.
    """

    __slots__ = ("graph", "about", "cached", "words", "charge", "constants", "_images", "_table", "_lines", "_later",
                 "_call", "_call_locked", "_shapes", "types", "_static", "_small", "_keeper", "_kept", "__weakref__")

    def __init__(self, graph: g.Graph, about: Description, code: ProgramCode, origin: g.Graph | None = None,
                 cached: bool = False, key: str | None = None, again: Replan | None = None) -> None:
        """Args:
            graph: of native nodes only.
            about, code: what it takes and gives, and its machine code.
            origin: the graph that passes made `graph` of, whose lines `about` counts.
            cached: whether both were found on disk.
            key: under which better code goes there.
            again: plans the program for inputs that stay the same; None where it is not to be done.
        """
        self.graph, self.about, self.cached, self.charge = graph, about, cached, tiers.charge(about.work, about.own)
        self._lines = [node.loc for node in (graph if origin is None else origin).walk()]
        if any(key[0] == "conv" for key in about.libraries):  # a program from disk met no lowering that imports this
            from . import convolutions  # noqa: F401
        links = [library.address(key, _settled(about)) for key in about.libraries]
        poll = interrupts.poll_words_of_first_tier() if code.modules else interrupts.poll_words()
        words = [0] * _BEFORE + [*threads.table(_is_shared(about.work)), *links, poll]
        self._table = (ctypes.c_int64 * len(words))(*words)
        self.words = ctypes.addressof(self._table) + 8 * _BEFORE
        self._images: list[Image] = []
        self._run_by(code.files)
        self._later = [(code, key)] if code.modules else []  # a list, from which one thread takes it
        self._kept: packed.PackedOperands | None = None
        self._keeper: packed.Keeper | None = None
        if again is not None and about.worth_packing and packed.enabled():
            self._keeper = packed.Keeper(self, functools.partial(_packing, again, about, key))
        self._table[_BEFORE + CODE["left"]] = tiers.budget(code.modules) if code.modules else self._budget()
        self.constants: list[int] = [address_of(c) for c in about.constants]
        self._shapes = [dims for dims, _ in about.outputs]
        self.types = [dt.as_dtype(name).np for _, name in about.outputs]
        self._static = not any(isinstance(d, Dim) for s in self._shapes for d in s)
        self._small = not isinstance(about.work, Dim) and about.work < sharing.SMALL

    @classmethod
    def of_graph(cls, graph: g.Graph, backend: Backend, donate: dict[int, int] | None = None,
                 origin: g.Graph | None = None, label: str = "", sizes: Mapping[str, int] | None = None) -> Native:
        """The program of a graph, from disk or compiled now.

        Args:
            graph: of native nodes only.
            backend: that plans it.
            donate: see `codegen/planner.py: plan`; not used where a check could fail after memory given away was
                written, so that a failed run leaves everything as it was.
            origin: the graph that passes made `graph` of, by which it is found on disk.
            label: stands for those passes.
            sizes: what symbols stand for in the first run, as far as that is known. Where that does much, no code of
                the first tier is made.
        """
        origin = graph if origin is None else origin
        key = _key(origin, donate or {}, label)
        stored = _read_stored(key)
        about, code = stored or _compiled(graph, backend, donate or {}, origin, key, sizes or {})
        return cls(graph, about, code, origin, stored is not None, key,
                   Replan(lambda: graph, backend, donate or {}, origin))

    @classmethod
    def stored(cls, graph: g.Graph, backend: Backend, donate: dict[int, int], label: str,
               improve: Callable[[], g.Graph]) -> Native | None:
        """The program of what passes make of `graph`, where it is on disk; `improve` gives that graph."""
        key = _key(graph, donate, label)
        stored = _read_stored(key)
        again = Replan(improve, backend, donate, graph)
        return None if stored is None else cls(graph, *stored, cached=True, key=key, again=again)

    @classmethod
    def of(cls, plan: Plan) -> Native:
        """The program of a plan; it is not kept on disk."""
        from twofold.codegen import llvm_module, program

        lines = {id(node): n for n, node in enumerate(plan.graph.walk())}
        code = llvm_module.machine_code(program.emit(plan, "entry").module, quick=plan.is_long)
        return cls(plan.graph, describe(plan, lambda node: lines.get(id(node))), ProgramCode([code]))

    @property
    def donated(self) -> dict[int, int]:
        """Output number -> the number of the input whose memory it takes."""
        return self.about.donated

    def run_alone(self) -> None:
        """Have the calling thread do all the work."""
        self._table[_BEFORE + 2] = threads.ONE

    @property
    def is_first(self) -> bool:
        """Whether it has code of the first tier alone."""
        return bool(self._later)

    def promote(self) -> None:
        """Makes its code of the second tier here and now, where it has none and nobody else is about to."""
        promotion = self._promotion()
        if promotion is not None:
            promotion()

    def _promotion(self) -> Callable[[], None] | None:
        """What makes code of the second tier; None where that is made or asked for."""
        try:
            code, key = self._later.pop()
        except IndexError:
            return None
        self._table[_BEFORE + CODE["left"]] = self._budget()
        weak = weakref.ref(self)

        def make() -> None:
            if weak() is None:
                return
            try:
                better = _better(code)
                program = weak()
                if program is not None:
                    program._run_by(better.files)
                    _store(key, program.about, better)
            except Exception as error:  # noqa: BLE001 - the program has code, which it keeps
                log("cache", f"no better code: {type(error).__name__}: {error}")
        return make

    def _run_by(self, files: Sequence[bytes]) -> None:
        """Has calls from now on run these object files; those at work end in the code that they are in."""
        image = Image(files, ["entry", "plan"] if self.about.symbols else ["entry"])
        self._images.append(image)
        entry = image.address("entry")
        self._call = ctypes.CFUNCTYPE(*_ENTRY)(entry)
        self._call_locked = ctypes.PYFUNCTYPE(*_ENTRY)(entry)
        if self.about.symbols:
            self._table[_BEFORE + CODE["plan"]] = image.address("plan")
        self._table[_BEFORE + CODE["entry"]] = entry

    def _end_first(self) -> None:
        """Leaves the first tier before the next call, and has loops run to their end in any case."""
        self.promote()
        tiers.wait(lambda: len(self._images) > 1)  # for another thread that makes the code
        self._table[len(self._table) - 1] = interrupts.poll_words()

    def code(self, name: str) -> int:
        """The address of its function of this name, or 0 (`program_table.py: CODE`)."""
        return self._table[_BEFORE + CODE[name]]

    def _budget(self) -> int:
        """What calls of the second tier may count until inputs are looked at."""
        return tiers.NEVER if self._keeper is None else self._keeper.budget()

    def _count(self, arrays: Sequence[np.ndarray], sizes: dict[str, int]) -> None:
        """Counts a call that Python makes; it asks for better code where there is need of it."""
        about, at = self.about, _BEFORE + CODE["left"]
        if self._later and isinstance(about.own, Dim) and about.own.evaluate(sizes) >= tiers.AT_ONCE:
            self.promote()
            return
        self._table[at] -= self.charge if self.charge > 0 else cast("Dim", about.work).evaluate(sizes) - self.charge
        if self._table[at] >= 0:
            return
        if (promotion := self._promotion()) is not None:
            tiers.request(promotion)
        elif self._keeper is not None:
            self._table[at] = self._budget()  # before, as the background may be done at any time
            self._keeper.look(arrays)

    # -- operands that are packed once (`packed.py`) ----------------------------------------------------------------
    def keep(self, kept: packed.PackedOperands) -> None:
        """Has calls from now on read these, where their inputs allow it."""
        _own(kept)._table[_BEFORE + 2] = self._table[_BEFORE + 2]  # whether it runs alone
        self._kept = kept
        self._table[_BEFORE + CODE["packed"]] = ctypes.addressof(kept.words)
        self._table[_BEFORE + CODE["left"]] = tiers.NEVER

    def drop(self, kept: packed.PackedOperands) -> None:
        """Has calls from now on do without these."""
        if self._kept is kept:
            self._table[_BEFORE + CODE["packed"]] = 0
            self._table[_BEFORE + CODE["left"]] = self._budget()
            self._kept = None

    def __call__(self, arrays: Sequence[np.ndarray], sizes: dict[str, int]) -> list[np.ndarray]:
        """The outputs for row-major arrays. Those whose memory an output takes (`about.donated`) are overwritten.

        Raises:
            NodeFailure: a check failed.
        """
        kept = self._kept
        if kept is not None:
            if kept.serves(arrays):
                self._table[_BEFORE + CODE["left"]] = tiers.NEVER
                return _own(kept)._run(arrays, sizes, kept.rest)
            self.drop(kept)
        elif self._later or self._keeper is not None:
            self._count(arrays, sizes)
        return self._run(arrays, sizes, self.constants)

    def _run(self, arrays: Sequence[np.ndarray], sizes: dict[str, int], rest: Sequence[int]) -> list[np.ndarray]:
        """The outputs; `rest` are the addresses of buffers behind those of inputs and outputs."""
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
        buffers = (ctypes.c_int64 * (len(arrays) + len(outs) + len(rest)))(
            *map(address_of, arrays), *map(address_of, outs), *rest)
        numbers = (ctypes.c_int64 * (len(about.symbols) or 1))(*[sizes[s] for s in about.symbols])
        call = self._call_locked if self._small else self._call
        status = call(ctypes.addressof(buffers), ctypes.addressof(numbers), at, self.words)
        if status == AGAIN:
            self._end_first()
            status = self._call(ctypes.addressof(buffers), ctypes.addressof(numbers), at, self.words)
        if status == interrupts.INTERRUPTED:
            interrupts.raise_interrupt()
        if status:
            check, more = about.failed(status)
            code = check.code if more is None else _explained(more, buffers, at, sizes)
            raise NodeFailure(check.op, None if check.line is None else self._lines[check.line], code)
        return outs


def _own(kept: packed.PackedOperands) -> Native:
    """The program that reads packed operands."""
    return cast("Native", kept.program)


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


def _key(graph: g.Graph, donate: dict[int, int], label: str) -> str | None:
    """Under which a program is kept on disk; None where it is not, as where its graph calls Python, which its text does
    not have."""
    if not cache.enabled() or any(node.op is g.HOST for node in graph.walk()):
        return None
    return cache.digest("program", label, text(graph, locations=False, names=False), sorted(donate.items()), key())


def is_stored(graph: g.Graph, donate: dict[int, int], label: str) -> bool:
    """Whether the program of what passes make of a graph is on disk."""
    return _read_stored(_key(graph, donate, label)) is not None


def _of_first_tier(key: str) -> str:
    """The key of a program's code of the first tier."""
    return cache.digest("first tier", key)


def _read_stored(key: str | None) -> tuple[Description, ProgramCode] | None:
    """The stored program of a key, in the second tier if there is that."""
    for one in () if key is None else (key, *([_of_first_tier(key)] if tiers.enabled() else [])):
        data = cache.read("programs", one)
        stored = None if data is None else unpack(data)
        if stored is not None:
            return stored
    return None


def _store(key: str | None, about: Description, code: ProgramCode) -> None:
    """Keeps a program on disk, its second tier in place of the first, unless it is unknown what compiled it."""
    if key is not None and _SOURCES.unchanged():
        cache.write("programs", _of_first_tier(key) if code.modules else key, pack(about, code))
        if not code.modules:
            cache.remove("programs", _of_first_tier(key))


class Replan(NamedTuple):
    """How to plan a program once more.

    graph: gives its graph, after the passes. backend, donate, origin: as for `Native.of_graph`.
    """

    graph: Callable[[], g.Graph]
    backend: Backend
    donate: dict[int, int]
    origin: g.Graph


def _packing(again: Replan, about: Description, key: str | None, steady: Sequence[int]) -> Native | None:
    """The program that finds packed what it needs of inputs that stay the same, from disk or compiled now; None where
    there is nothing to pack, or native code could not run it in place of the program that is described."""
    key = None if key is None else cache.digest("packed", key, threads.get_num_threads(), list(steady))
    stored = _read_stored(key)
    graph = again.origin if stored is not None else again.graph()
    better, code = stored or _compiled(graph, again.backend, again.donate, again.origin, key, {}, steady)
    if not better.packings or better.donated != about.donated or better.symbols != about.symbols:
        return None
    return Native(graph, better, code, again.origin, stored is not None, key)


def _compiled(graph: g.Graph, backend: Backend, donate: dict[int, int], origin: g.Graph,
              key: str | None, sizes: Mapping[str, int], steady: Sequence[int] = ()) -> tuple[Description, ProgramCode]:
    """The description and code of a graph's program, which are stored under `key`; `steady` as for `planner.plan`,
    which is worth the best code at once."""
    lines = {id(node.loc): n for n, node in enumerate(origin.walk())}  # passes keep the objects
    with _without_collections():
        plan = _planned(graph, backend, donate, interruptible=bool(interrupts.poll_words()), steady=steady)
        about = describe(plan, lambda node: None if node.loc is None else lines.get(id(node.loc)))
        endable = bool(interrupts.poll_words()) or not any(step.loops for step in plan.steps)
        own = about.own
        if isinstance(own, Dim) and own.symbols() <= sizes.keys():
            own = own.evaluate(sizes)
        first = not steady and tiers.enabled() and endable and (isinstance(own, Dim) or own < tiers.AT_ONCE)
        # The names of functions are the same in every program: each is linked by itself.
        code = _machine_code(lambda: _modules_of(plan), about.libraries, _is_shared(about.work), plan.is_long, first,
                             _settled(about))
    _store(key, about, code)
    return about, code


def _better(code: ProgramCode) -> ProgramCode:
    """Code of the second tier, made of what code of the first was made of."""
    from twofold.codegen import llvm_module

    return ProgramCode([llvm_module.machine_code(one, quick=code.quick) for one in code.modules])


def compile_program(graph: g.Graph, backend: Backend, name: str, donate: dict[int, int],
                    parts: int = 1) -> program.Program:
    """`program.compile_graph`, with memory given away only where a run that fails leaves it as it was."""
    from twofold.codegen import program

    return program.emit(_planned(graph, backend, donate), name, parts=parts)


def _planned(graph: g.Graph, backend: Backend, donate: dict[int, int], interruptible: bool = False,
             steady: Sequence[int] = ()) -> Plan:
    """The plan of a graph, with memory given away only where a run that fails leaves it as it was."""
    from twofold.codegen import planner

    return planner.plan(graph, backend, donate, interruptible, intact=True, steady=steady)


def _modules_of(plan: Plan) -> list[str]:
    """The modules of a plan's program, the entry's first."""
    from twofold.codegen import program

    made = program.emit(plan, "entry", parts=_PARTS * threads.available_cpus())
    return [made.module, *made.others]


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


def _settled(about: Description) -> bool:
    """Whether a run does so much in library kernels that these are to run their best code from the first one on."""
    work = about.work - about.own
    return not isinstance(work, Dim) and work >= generated.AT_ONCE


def _machine_code(written: Callable[[], Sequence[str]], libraries: Sequence[tuple[str, ...]], shared: bool, quick: bool,
                  first: bool, settled: bool = False) -> ProgramCode:
    """The machine code of a program. What else it needs (library kernels, the sharing of work) is made ready at the
    same time, and before it is written; what fails there fails again, and is reported, where it is asked for.

    Args:
        written: writes its modules.
        quick: whether to emit code of the second tier in less time.
        first: whether to make code of the first tier.
        settled: whether library kernels are to run their best code from the first call on.
    Raises:
        RuntimeError: a module is not valid LLVM.
    """
    from twofold.codegen import llvm_module

    files: dict[int, tuple[bytes, bytes] | Exception] = {}

    def compile_one(number: int, module: str) -> None:
        try:
            files[number] = llvm_module.first_tier(module) if first else (
                llvm_module.machine_code(module, quick=quick), b"")
        except Exception as error:  # noqa: BLE001 (it is raised below, in the thread that asked)
            files[number] = error

    def start_threads() -> None:
        with suppress(Exception):
            threads.table(True)

    def load(key: tuple[str, ...]) -> None:
        with suppress(Exception):
            library.address(key, settled)

    with _Tasks() as tasks:
        tasks.add([functools.partial(load, key) for key in libraries])
        modules = written()
        tasks.add([functools.partial(compile_one, n, module) for n, module in enumerate(modules)], soon=True)
        # LLVM has most to do with the threads, last.
        tasks.add([start_threads] if shared else [])
    results = [files[n] for n in range(len(modules))]
    for result in results:
        if isinstance(result, Exception):
            raise result
    made = cast("list[tuple[bytes, bytes]]", results)
    return ProgramCode([file for file, _ in made], [module for _, module in made] if first else [], quick)


class _Tasks:
    """Tasks, which raise nothing, on as many threads as there are processors: as soon as they are added, and by this
    thread, too, at the end of the block. They are done when the block is left."""

    def __init__(self) -> None:
        self.waiting: deque[Callable[[], None]] = deque()
        self.helpers: list[threading.Thread] = []

    def add(self, tasks: Sequence[Callable[[], None]], soon: bool = False) -> None:
        """Adds tasks, behind those that wait, or before them."""
        self.waiting.extendleft(reversed(tasks)) if soon else self.waiting.extend(tasks)
        alive = sum(helper.is_alive() for helper in self.helpers)
        with suppress(RuntimeError):  # no more threads, or the interpreter is about to end
            for _ in range(min(len(self.waiting), threads.available_cpus() - 1 - alive)):
                helper = threading.Thread(target=copy_context().run, args=(self.work,), name="twofold-compile")
                apart(helper.start)()
                self.helpers.append(helper)

    def work(self) -> None:
        """Does what waits."""
        while self.waiting:
            try:
                task = self.waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            task()

    def __enter__(self) -> _Tasks:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        try:
            if error is None:
                self.work()
        finally:
            self.waiting.clear()  # of an interrupted call
            for helper in self.helpers:
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
