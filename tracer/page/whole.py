"""The page of a graph: as it is compiled, with its kernels, and as it was traced."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twofold.codegen.program import Outline
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir import passes
from twofold.ir.dims import DimLike
from twofold.ir.replay import bind_sizes
from twofold.runtime.description import named

from . import html, svg
from .kernels import Kernel, amount, kernels_of
from .scene import duration, scene_of
from .timing import measure

__all__ = ["compiled_kernels", "page_of", "picture_of"]


def page_of(graph: g.Graph, inputs: Sequence[np.ndarray] | None = None, fast_math: bool = False) -> str:
    """The HTML page of a traced graph.

    Args:
        graph: as it was traced.
        inputs: one array for each of its inputs, to measure what kernels take; None measures nothing.
        fast_math: whether it is compiled so.
    """
    compiled, kernels, plans = compiled_kernels(graph, fast_math)
    spent = {} if inputs is None else measure(compiled, kernels, inputs)
    if inputs is not None:
        _know_sizes(compiled, kernels, inputs)
    views = [html.View("Compiled", scene_of(compiled, kernels, spent), graph.name, _note(kernels, inputs is not None),
                       _facts(compiled, kernels, plans, spent), _memory(plans)),
             html.View("Traced", scene_of(graph), graph.name, "as it was traced, before any pass",
                       [("nodes", f"{sum(1 for _ in graph.walk()):,}")])]
    return html.page(graph.name, _signature(graph), views)


def picture_of(graph: g.Graph, fast_math: bool = False) -> str:
    """A traced graph as it is compiled, as an SVG picture."""
    compiled, kernels, _ = compiled_kernels(graph, fast_math)
    return svg.picture(scene_of(compiled, kernels))


def compiled_kernels(graph: g.Graph, fast_math: bool = False) -> tuple[g.Graph, list[Kernel], list[Outline]]:
    """A traced graph after the passes, its kernels and its programs."""
    compiled = graph.copy()
    passes.run(compiled, fast_math=fast_math)
    return compiled, *kernels_of(compiled)


def _know_sizes(graph: g.Graph, kernels: list[Kernel], inputs: Sequence[np.ndarray]) -> None:
    """Puts numbers for what the shapes of the inputs decide."""
    sizes: dict[str, DimLike] = {}
    for value, array in zip(graph.inputs, inputs, strict=True):
        bind_sizes(value.dims, array.shape, sizes)
    for kernel in kernels:
        found = dm.substitute((kernel.runs, kernel.reads, kernel.writes), sizes)
        kernel.runs, kernel.reads, kernel.writes = found


def _note(kernels: list[Kernel], measured: bool) -> str:
    if measured:
        return "as it runs; a box around nodes is one kernel, with the median of its times in some runs"
    return "as it runs; a box around nodes is one kernel" if kernels else "as it runs, by Python alone"


def _facts(graph: g.Graph, kernels: list[Kernel], plans: list[Outline], spent: dict[g.Node, float]
           ) -> list[tuple[str, str]]:
    facts = [("nodes", f"{sum(1 for _ in graph.walk()):,}"), ("kernels", f"{len(kernels):,}")]
    found = [k.seconds for k in kernels if k.seconds is not None]
    if found:
        facts.append(("time in kernels", duration(sum(found))))
    if spent:
        facts.append(("time in Python", duration(sum(spent.values()))))
    if len(plans) > 1:
        facts.append(("programs", f"{len(plans)}, with Python in between"))
    if plans:
        facts.append(("memory between", " + ".join(amount(p.arena) for p in plans if p.arena != 0) or "none"))
    return facts


def _memory(plans: list[Outline]) -> list[str]:
    lines = []
    for n, plan in enumerate(plans):
        head = f"program {n}: " if len(plans) > 1 else ""
        lines += [f"{head}{named(b.owner)}: {amount(b.size)} at {plan.offsets[b.owner]}, steps {b.first} to {b.last}"
                  for b in plan.blocks]
    return lines


def _signature(graph: g.Graph) -> str:
    given = ", ".join(f"{v.name or n}: {v.spec.short()}" for n, v in enumerate(graph.inputs))
    return f"({given}) -> {', '.join(v.spec.short() for v in graph.outputs)}"
