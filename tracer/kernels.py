"""The kernels that a graph is compiled to, each with the nodes that were fused into it, for `explain`, the graph page
and the command line.

The kernels are those of the programs that run (`runtime/program.py: pieces`, `codegen/planner.py: plan`): nothing
is compiled to find them. A step that holds no node of its own (a copy for the kernel after it, the sums of what a
reduction's shares gave) counts as part of its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from twofold.codegen import planner
from twofold.codegen.backend import Backend
from twofold.codegen.operands import Library
from twofold.codegen.plan import Plan, Step
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.data_class import data_class, field
from twofold.ir.dims import Dim, DimLike
from twofold.runtime.cpu import cpu
from twofold.runtime.program import pieces

__all__ = ["PlannedKernel", "kernels_of", "seconds_by_line", "amount", "title_of"]

_NAMED = 3  # ops that a title names


@data_class(eq=False)
class PlannedKernel:
    """One kernel.

    Attributes:
        number: its place in the order in which a function's kernels run.
        name: of its loops, or of the library kernel.
        nodes: the nodes that were fused into it, in order.
        runs: over how many elements, rows or units of work.
        reads, writes: bytes of the values that it takes from memory, and leaves there.
        because: for each value that it leaves for another kernel, why the two were not fused.
        loops: the loops around it, the outermost first: it runs in every round.
        code: its loops, as text.
        steps: the steps that it is: graph, number of the program in it, number of the step.
        seconds: the time of a run, where that was measured.
    """

    number: int
    name: str
    nodes: list[g.Node]
    runs: DimLike
    reads: DimLike = 0
    writes: DimLike = 0
    because: list[str] = field(default_factory=list)
    loops: tuple[g.Node, ...] = ()
    code: str = ""
    steps: list[tuple[g.Graph, int, int]] = field(default_factory=list)
    seconds: float | None = None

    @property
    def title(self) -> str:
        """The ops that it is made of, in short."""
        return title_of(self.nodes)

    @property
    def lines(self) -> list[g.Location]:
        """The user's lines that it computes, in order."""
        return list(dict.fromkeys(node.loc for node in self.nodes if node.loc is not None))


def title_of(nodes: Iterable[g.Node]) -> str:
    """The ops of nodes, in short."""
    names = list(dict.fromkeys(node.op.name for node in nodes))
    more = f" +{len(names) - _NAMED}" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def kernels_of(graph: g.Graph, backend: Backend = cpu) -> tuple[list[PlannedKernel], list[Plan]]:
    """The kernels of `graph`, which is run as it stands: passes have been through it; and its programs, in order.

    Args:
        backend: on which it runs.
    """
    kernels: list[PlannedKernel] = []
    plans: list[Plan] = []
    _collect(graph, backend, kernels, plans, ())
    for number, kernel in enumerate(kernels):
        kernel.number = number
    return kernels, plans


def _collect(graph: g.Graph, backend: Backend, kernels: list[PlannedKernel], plans: list[Plan],
             loops: tuple[g.Node, ...]) -> None:
    origins: dict[g.Node, g.Node] = {}
    programs = 0
    for piece in pieces(graph, backend, origins):
        if isinstance(piece, g.Graph):
            plans.append(planner.plan(piece, backend))
            planned = _of_plan(plans[-1], origins, (graph, programs))
            for kernel in planned:
                kernel.loops = (*loops, *kernel.loops)
            kernels += planned
            programs += 1
            continue
        if not isinstance(piece, g.Node):
            continue
        inside = (*loops, origins.get(piece, piece)) if piece.op is g.WHILE else loops
        for region in piece.regions:
            _collect(region, backend, kernels, plans, inside)


def _of_plan(plan: Plan, origins: dict[g.Node, g.Node], which: tuple[g.Graph, int]) -> list[PlannedKernel]:
    kernels: list[PlannedKernel] = []
    taken: dict[g.Node, PlannedKernel] = {}
    waiting: list[tuple[int, Step]] = []
    why, memory_of = plan.reasons(), plan.memory_of
    for at, step in enumerate(plan.steps):
        nodes = [origins.get(node, node) for node in step.nodes]
        own = [node for node in dict.fromkeys(nodes) if node not in taken]
        if own and step.epilogue is not None and nodes[0] in taken:  # what has packed an operand is of this kernel
            kernel = taken[nodes[0]]
            kernel.name, kernel.runs, kernel.nodes = step.name, step.total, [*kernel.nodes, *own]
            taken.update(dict.fromkeys(own, kernel))
            _extend(kernel, which, at, step, why, memory_of)
            continue
        if not own:
            if nodes:
                _extend(taken[nodes[-1]], which, at, step, why, memory_of)
            else:
                waiting.append((at, step))
            continue
        kernel = PlannedKernel(0, step.name, own, step.total,
                               loops=tuple([origins.get(node, node) for node in step.loops]))
        taken.update(dict.fromkeys(own, kernel))
        kernels.append(kernel)
        for earlier, helper in [*waiting, (at, step)]:
            _extend(kernel, which, earlier, helper, why, memory_of)
        waiting = []
    for at, step in waiting if kernels else ():
        _extend(kernels[-1], which, at, step, why, memory_of)
    return kernels


def _extend(kernel: PlannedKernel, which: tuple[g.Graph, int], at: int, step: Step, why: dict[g.Value, str],
            memory_of: Callable[[g.Value], object]) -> None:
    """Counts `step` as a part of `kernel`."""
    kernel.steps.append((*which, at))
    reads, writes = _traffic(step, memory_of)
    kernel.reads, kernel.writes = kernel.reads + reads, kernel.writes + writes
    reasons = [f"leaves {v.node.op.name if v.node else 'a copy'} in memory: {why[v]}" for v in _values(step)
               if v in why and _makes(step, v)]
    kernel.because += [text for text in dict.fromkeys(reasons) if text not in kernel.because]
    kernel.code = "\n\n".join(text for text in (kernel.code, _code(step)) if text)


def _makes(step: Step, value: g.Value) -> bool:
    return any(value in item.outs for item in step.items) or (step.node is not None and value in step.node.outputs)


def _traffic(step: Step, memory_of: Callable[[g.Value], object]) -> tuple[DimLike, DimLike]:
    """Bytes of the values that a step reads and of those that it writes."""
    computed = {out for item in step.items for out in item.outs}
    if step.node is not None:
        computed |= set(step.node.outputs)
    placed = {item.into.base: item for item in step.items if item.into is not None}  # parts of a larger value
    values = _values(step)
    memory = {memory_of(value) for value in values}
    inplace = [v for v in computed if v not in values and memory_of(v) is not v and memory_of(v) in memory]
    reads: DimLike = 0
    writes = _bytes(inplace)
    for value in values:
        if value in placed:
            writes = writes + _bytes(placed[value].outs)
        elif value in computed:
            writes = writes + _bytes([value])
        else:
            reads = reads + _bytes([value])
    return reads, writes


def _values(step: Step) -> list[g.Value]:
    return list(dict.fromkeys(a for a in step.memory() if isinstance(a, g.Value)))


def _bytes(values: Iterable[g.Value]) -> DimLike:
    total: DimLike = 0
    for value in values:
        total = total + dm.numel(value.dims) * value.dtype.size
    return total


def _code(step: Step) -> str:
    if not isinstance(step.kernel, Library):
        return str(step.kernel)
    then = "" if step.epilogue is None else f", which runs for each tile of its result:\n\n{step.epilogue.kernel}"
    return f"library kernel {step.kernel.name}{then}"


def seconds_by_line(kernels: Iterable[PlannedKernel], spent: Mapping[g.Node, float]) -> list[tuple[g.Location, float]]:
    """The seconds that the user's lines take, the slowest first, where they were measured.

    A kernel of several lines counts for each by the number of its nodes of that line.

    Args:
        kernels: with their `seconds`.
        spent: the seconds of nodes that Python runs.
    """
    total: dict[g.Location, float] = {}
    parts = [(kernel.nodes, kernel.seconds) for kernel in kernels if kernel.seconds is not None]
    for nodes, seconds in [*parts, *[([node], seconds) for node, seconds in spent.items()]]:
        located = [node.loc for node in nodes if node.loc is not None]
        for loc in located:
            total[loc] = total.get(loc, 0.0) + seconds / len(located)
    return sorted(total.items(), key=lambda pair: -pair[1])


def amount(size: DimLike) -> str:
    """Bytes for people: 4.2 kB, or an expression of unknown sizes."""
    if isinstance(size, Dim):
        return f"{size} B"
    value, units = float(size), ["B", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" else f"{value:.1f} {units[0]}"
