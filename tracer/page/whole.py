"""The page of a graph: as it is compiled, with its kernels, and as it was traced."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twofold.codegen.backend import Backend
from twofold.codegen.plan import Plan
from twofold.eager.executing import backend_for
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir import passes
from twofold.ir.dims import DimLike
from twofold.ir.replay import bind_sizes
from twofold.runtime.cpu import cpu
from twofold.runtime.description import named

from ..kernels import PlannedKernel, amount, kernels_of, seconds_by_line
from . import html, svg
from .scene import duration, scene_of
from .timing import measure

__all__ = ["compiled_kernels", "page_of", "picture_of"]

_LINES = 8  # the slowest lines of the user that a page names


def page_of(graph: g.Graph, inputs: Sequence[np.ndarray] | None = None, fast_math: bool = False) -> str:
    """The HTML page of a traced graph.

    Args:
        graph: as it was traced.
        inputs: memory for each of its inputs, to measure what kernels take where they would run with it; None measures
            nothing, and shows those of the device that `tf.device` asks for.
        fast_math: whether it is compiled so.
    """
    backend = backend_for(() if inputs is None else inputs) or cpu
    compiled, kernels, plans = compiled_kernels(graph, fast_math, backend)
    spent = {} if inputs is None else measure(compiled, kernels, inputs, backend)
    sizes = _known_sizes(compiled, inputs)
    for kernel in kernels:
        kernel.runs, kernel.reads, kernel.writes = dm.substitute((kernel.runs, kernel.reads, kernel.writes), sizes)
    note = _note(kernels, inputs is not None, backend)
    views = [html.View("Compiled", scene_of(compiled, kernels, spent), graph.name, note,
                       _facts(compiled, kernels, plans, spent, sizes), [_memory(plan, sizes) for plan in plans]),
             html.View("Traced", scene_of(graph), graph.name, "as it was traced, before any pass",
                       [("nodes", f"{sum(1 for _ in graph.walk()):,}")])]
    return html.page(graph.name, _signature(graph), views)


def picture_of(graph: g.Graph, fast_math: bool = False) -> str:
    """A traced graph as it is compiled, as an SVG picture."""
    compiled, kernels, _ = compiled_kernels(graph, fast_math, backend_for(()) or cpu)
    return svg.picture(scene_of(compiled, kernels))


def compiled_kernels(graph: g.Graph, fast_math: bool = False,
                     backend: Backend = cpu) -> tuple[g.Graph, list[PlannedKernel], list[Plan]]:
    """A traced graph after the passes, its kernels on a backend, and its programs."""
    compiled = graph.copy()
    passes.optimise(compiled, fast_math=fast_math)
    return compiled, *kernels_of(compiled, backend)


def _known_sizes(graph: g.Graph, inputs: Sequence[np.ndarray] | None) -> dict[str, DimLike]:
    """The sizes that the shapes of the inputs bind."""
    sizes: dict[str, DimLike] = {}
    for value, array in zip(graph.inputs, inputs or (), strict=inputs is not None):
        bind_sizes(value.dims, array.shape, sizes)
    return sizes


def _note(kernels: list[PlannedKernel], measured: bool, backend: Backend) -> str:
    if not kernels and not measured:
        return "as it runs, by Python alone"
    where, times = "" if backend.is_host else f" on {backend.key()}", ", with the median of its times in some runs"
    return f"as it runs{where}; a box around nodes is one kernel{times * measured}"


def _facts(graph: g.Graph, kernels: list[PlannedKernel], plans: list[Plan], spent: dict[g.Node, float],
           sizes: dict[str, DimLike]) -> list[tuple[str, str]]:
    facts = [("nodes", f"{sum(1 for _ in graph.walk()):,}"), ("kernels", f"{len(kernels):,}")]
    timed = [k.seconds for k in kernels if k.seconds is not None]
    if timed:
        facts.append(("time in kernels", duration(sum(timed))))
    if spent:
        facts.append(("time in Python", duration(sum(spent.values()))))
    lines = seconds_by_line(kernels, spent)
    whole = sum(seconds for _, seconds in lines)
    facts += [(f"time of {loc}", f"{duration(seconds)}, {seconds / whole:.0%}") for loc, seconds in lines[:_LINES]
              if whole]
    if len(plans) > 1:
        facts.append(("programs", f"{len(plans)}, with Python in between"))
    if plans:
        arenas = dm.substitute([p.arena for p in plans if p.arena != 0], sizes)
        facts.append(("memory between", " + ".join(map(amount, arenas)) or "none"))
    return facts


def _memory(plan: Plan, sizes: dict[str, DimLike]) -> html.ProgramMemory:
    blocks = []
    for b in plan.blocks:
        size, offset = dm.substitute((b.size, plan.offsets[b.owner]), sizes)
        blocks.append((named(b.owner), amount(size), b.first, b.last, size if isinstance(size, int) else None,
                       offset if isinstance(offset, int) else None))
    [arena] = dm.substitute((plan.arena,), sizes)
    return html.ProgramMemory(len(plan.steps), arena if isinstance(arena, int) else None, blocks)


def _signature(graph: g.Graph) -> str:
    inputs = ", ".join(f"{v.name or n}: {v.spec.short()}" for n, v in enumerate(graph.inputs))
    return f"({inputs}) -> {', '.join(v.spec.short() for v in graph.outputs)}"
