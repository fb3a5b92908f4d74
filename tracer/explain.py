"""How a function was compiled: `fn.explain(*args)`.

The trace for the arguments is taken through passes, fusion and code generation once more, with a watch on each
stage, so that the account is of what happens, and costs a call nothing.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from twofold.codegen import llvm_module, program
from twofold.codegen.apart import apart
from twofold.codegen.backend import Backend
from twofold.eager import sized
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir import passes
from twofold.ir.data_class import data_class, field
from twofold.ir.dims import DimLike
from twofold.runtime.cpu import cpu
from twofold.runtime.program import Begin, End, pieces

from .kernels import PlannedKernel, amount, kernels_of

__all__ = ["ExchangeNote", "Explanation", "KernelNote", "LaunchNote", "PassNote", "explain_graph"]

_NAMES = 12  # ops of a kernel that a line shows


@data_class(frozen=True)
class PassNote:
    """One pass: its name, how many nodes it left, its seconds, and the graph after it where it changed anything."""

    name: str
    nodes: int
    seconds: float
    text: str | None


@data_class(frozen=True)
class KernelNote:
    """One kernel, as `kernels.py` finds it.

    Attributes:
        name: of the kernel.
        ops: the ops that were fused into it, in order, each with the user's line.
        runs: over how many elements, rows or units of work, as text.
        because: for each value that it leaves in memory for another kernel, why the two were not fused.
        loops: the user's lines of the loops that it runs in every round of, the outermost first.
        code: its loops.
    """

    name: str
    ops: tuple[tuple[str, str], ...]
    runs: str
    because: tuple[str, ...]
    loops: tuple[str, ...]
    code: str


@data_class(frozen=True)
class LaunchNote:
    """One launch on a GPU.

    Attributes:
        name: of the kernel.
        ops: that it computes, in order.
        blocks, threads: how many blocks there are, and the threads of each.
        registers, local: what a thread takes: registers, and bytes of memory of its own.
        shared: bytes that the threads of a block share.
    """

    name: str
    ops: tuple[str, ...]
    blocks: int
    threads: int
    registers: int
    local: int
    shared: int


@data_class()
class ExchangeNote:
    """What replicas exchange at once, beside kernels.

    Attributes:
        name: of the op.
        line: the user's.
        tensors: how many each replica has part in it with.
        bytes: of these, as text.
        replicas: how many there are.
        begins: how many kernels have run then.
        ends: how many have run when its results are waited for.
    """

    name: str
    line: str
    tensors: int
    bytes: str
    replicas: int
    begins: int
    ends: int = 0


@data_class()
class Explanation:
    """The result of `explain`; `print` shows it.

    Attributes:
        signature: of the trace.
        reason: why it was traced.
        before, after: the graph as it was traced, and as it is run, as text.
        passes: a note of each pass, in order.
        kernels: what runs natively, in order.
        host: what Python runs: op or function, and the user's line.
        exchanges: what replicas exchange, in the order in which that begins.
        launches: where the call runs on a GPU, what is launched there.
        control: of branches and loops on a GPU, the user's line, and who decides them.
        arena: bytes of memory between kernels, as text.
        seconds: of each stage: passes, lowering, optimising, code.
        fallback: why the function runs eagerly; then there is nothing else. None where it is compiled.
    """

    signature: str
    reason: str
    before: str
    after: str = ""
    passes: list[PassNote] = field(default_factory=list)
    kernels: list[KernelNote] = field(default_factory=list)
    host: list[tuple[str, str]] = field(default_factory=list)
    exchanges: list[ExchangeNote] = field(default_factory=list)
    launches: list[LaunchNote] = field(default_factory=list)
    control: list[tuple[str, str]] = field(default_factory=list)
    arena: str = "0"
    seconds: dict[str, float] = field(default_factory=dict)
    fallback: str | None = None

    def __str__(self) -> str:
        if self.fallback is not None:
            return f"{self.signature} runs eagerly, because it cannot be traced: {self.fallback}"
        return "\n".join([*self._head(), "", "passes", *self._passes(), "", "graph", self.after, "",
                          f"native kernels: {len(self.kernels)} ({self.arena} bytes of memory between them)",
                          *self._kernels(), "", *self._exchanges(), *self._launches(),
                          "calls of Python", *(self._host() or ["  none"])])

    def _head(self) -> list[str]:
        stages = ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in self.seconds.items())
        return [self.signature, f"  traced because: {self.reason}", f"  compile times: {stages}"]

    def _passes(self) -> list[str]:
        shown = [f"  {p.name:20s} {p.nodes:5d} nodes  {p.seconds * 1e3:6.2f} ms" for p in self.passes if p.text]
        return shown or ["  nothing to change"]

    def _kernels(self) -> list[str]:
        lines = []
        for n, kernel in enumerate(self.kernels):
            names = [name for name, _ in kernel.ops]
            rest = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
            lines.append(f"  {n}. {', '.join(names[:_NAMES])}{rest}  over {kernel.runs}")
            where = sorted({line for _, line in kernel.ops if line})
            if where:
                lines.append(f"     of {', '.join(where[:6])}{' ...' if len(where) > 6 else ''}")
            if kernel.loops:
                lines.append(f"     in every round of the loop at {', in that at '.join(kernel.loops)}")
            lines += [f"     {text}" for text in kernel.because]
        return lines or ["  none"]

    def _exchanges(self) -> list[str]:
        if not self.exchanges:
            return []
        lines = []
        for n, e in enumerate(self.exchanges):
            what = f"{e.tensors} tensor{'s' if e.tensors > 1 else ''}, {e.bytes}, of {e.replicas} replicas"
            lines += [f"  {n}. {e.name} of {what}{f'  at {e.line}' if e.line else ''}",
                      f"     begins after {e.begins} kernels, ends after {e.ends}"]
        return [f"exchanges: {len(self.exchanges)}", *lines, ""]

    def _launches(self) -> list[str]:
        if not self.launches:
            return []
        lines = [f"  {n}. {', '.join(launch.ops[:_NAMES]) or launch.name}  {launch.blocks} blocks of {launch.threads} "
                 f"threads, {launch.registers} registers, {launch.shared} bytes shared, {launch.local} bytes local"
                 for n, launch in enumerate(self.launches)]
        who = ["branches and loops", *[f"  {line}: {text}" for line, text in self.control], ""] if self.control else []
        return [f"launches on a GPU: {len(lines)}", *lines, "", *who]

    def _host(self) -> list[str]:
        return [f"  {name}{f'  at {line}' if line else ''}" for name, line in self.host]


def explain_graph(graph: g.Graph, signature: str, reason: str, fast_math: bool = False, backend: Backend | None = None,
                  sizes: dict[str, int] | None = None) -> Explanation:
    """How a traced `graph` is compiled.

    Args:
        backend: of the GPU on which it is called, if it is.
        sizes: that the symbols of its inputs stand for then.
    """
    explanation = Explanation(signature, reason, _text(graph))
    copy = graph.copy()

    def watch(name: str, now: g.Graph, changed: bool, seconds: float) -> None:
        explanation.passes.append(PassNote(name, len(now.nodes), seconds, _text(now) if changed else None))

    start = time.perf_counter()
    passes.optimise(copy, watch, fast_math)
    explanation.seconds["passes"] = time.perf_counter() - start
    explanation.after = _text(copy)
    explanation.seconds.update({"lowering": 0.0, "optimising": 0.0, "code": 0.0})
    where = cpu if backend is None else backend
    kernels = kernels_of(copy, where)[0]
    explanation.kernels = [_note(kernel) for kernel in kernels]
    ran = Counter(kernel.steps[0][:2] for kernel in kernels)
    arena = _Pieces(explanation, where, sizes or {}, ran).describe(copy)
    explanation.arena = " + ".join(str(a) for a in arena if a != 0) or "0"
    return explanation


class _Pieces:
    """Notes the nodes that Python runs, exchanges, the seconds of code generation, and what a GPU is given.

    Args:
        sizes: that symbols stand for.
        kernels: how many there are, by graph and number of the program in it.
    """

    def __init__(self, explanation: Explanation, backend: Backend, sizes: dict[str, int],
                 kernels: Mapping[tuple[g.Graph, int], int]) -> None:
        self.explanation, self.backend, self.sizes, self.kernels = explanation, backend, sizes, kernels
        self.ran = 0

    def describe(self, graph: g.Graph) -> list[DimLike]:
        """The arenas of the programs of a graph, the pieces of which are noted."""
        arena: list[DimLike] = []
        programs = 0
        begun: dict[g.Node, ExchangeNote] = {}
        for piece in pieces(graph, self.backend):
            if isinstance(piece, g.Node):
                self._python(piece)
                arena += [size for region in piece.regions for size in self.describe(region)]
            elif isinstance(piece, Begin):
                begun[piece.node] = note = _exchange(piece.node, self.ran)
                self.explanation.exchanges.append(note)
            elif isinstance(piece, End):
                begun[piece.node].ends = self.ran
            else:
                self.ran += self.kernels[graph, programs]
                programs += 1
                arena.append(_compiled(self.explanation, piece) if self.backend.is_host else
                             _launched(self.explanation, piece, self.backend, self.sizes))
        return arena

    def _python(self, node: g.Node) -> None:
        name = node.attrs["name"] if node.op is g.HOST else node.op.name
        if not self.backend.is_host and sized.computes(node):
            name += ", whose size the host reads"
        self.explanation.host.append((name, _line(node)))


def _exchange(node: g.Node, ran: int) -> ExchangeNote:
    count = len(node.outputs)
    size = sum((dm.numel(v.dims) * v.dtype.size for v in node.inputs[:count]), start=0)
    return ExchangeNote(node.op.name, _line(node), count, amount(size), node.attrs["replicas"], ran)


def _compiled(explanation: Explanation, piece: g.Graph) -> DimLike:
    """Compiles a program for the processor, and notes how long that takes; its arena."""
    start = time.perf_counter()
    lowered = program.compile_graph(piece, cpu, "entry")
    after = time.perf_counter()
    last = _optimised(lowered)
    explanation.seconds["lowering"] += after - start
    explanation.seconds["optimising"] += last - after
    explanation.seconds["code"] += time.perf_counter() - last
    return lowered.plan.arena


@apart
def _optimised(lowered: program.Program) -> float:
    """Makes machine code of a program; the time when it was optimised."""
    optimised = llvm_module.optimise(lowered.module)
    last = time.perf_counter()
    llvm_module.object_code(optimised, quick=lowered.plan.is_long)
    return last


def _launched(explanation: Explanation, piece: g.Graph, backend: Backend, sizes: dict[str, int]) -> DimLike:
    """Notes what a program of a GPU launches, as far as sizes are known before it runs; its arena."""
    start = time.perf_counter()
    made: Any = backend.program(piece, {}, piece, "", sizes)  # a GPU's
    after = time.perf_counter()
    told = made.told(sizes)
    for part, decision in () if told is None else told.decisions.items():
        explanation.control.append((f"{part.node.op.name} at {_line(part.node) or 'an unknown line'}", decision.text))
    for launch in () if told is None else told.launched():
        ops = tuple([node.op.name for node in launch.step.nodes])
        explanation.launches.append(LaunchNote(launch.step.name, ops, launch.grid, launch.block,
                                               *launch.function.resources))
    explanation.seconds["lowering"] += after - start
    explanation.seconds["code"] += time.perf_counter() - after
    return made.plan.arena


_FOLDER = re.compile(r"(# )\S*[/\\]")


def _text(graph: g.Graph) -> str:
    """The text of a graph, with the names of files alone."""
    return _FOLDER.sub(r"\1", str(graph))


def _note(kernel: PlannedKernel) -> KernelNote:
    ops = tuple([(node.op.name, _line(node)) for node in kernel.nodes])
    loops = tuple([_line(node) or "an unknown line" for node in kernel.loops])
    return KernelNote(kernel.name, ops, str(kernel.runs), tuple(kernel.because), loops, kernel.code)


def _line(node: g.Node) -> str:
    return "" if node.loc is None else str(node.loc)
