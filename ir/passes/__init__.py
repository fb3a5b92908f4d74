"""Passes: graphs into cheaper graphs with the same results.

Each pass is a function `(graph) -> bool` in a file of its own that works in place and says whether anything changed.
Results stay equal to the bit, and so does what fails and with which error; the gradient does not, as `stop_gradient`
and custom gradients go: differentiate first. `optimise` applies all of `pipeline.py: PIPELINE`, in rounds until nothing
changes. It imports them when it is called: a program that is on disk needs none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .. import graph as g

if TYPE_CHECKING:
    from .pipeline import Pass

__all__ = ["Trace", "checking", "optimise"]

Trace = Callable[[str, g.Graph, bool, float], None]

_ROUNDS = 4
_LARGE = 100  # nodes from which graphs are verified once, behind all passes: it takes longer than the passes do
# Whether `optimise` verifies the graph before the first pass and after each one. The tests switch it on, for themselves
# and for the processes they start.
checking = [os.environ.get("TWOFOLD_VERIFY") == "1"]


def optimise(graph: g.Graph, trace: Trace | None = None, fast_math: bool = False,
             passes: Sequence[Pass] | None = None) -> g.Graph:
    """Apply all passes to `graph`, in place.

    Args:
        graph: what to improve.
        trace: told after each pass: its name, the graph, whether it changed, and the seconds it took.
        fast_math: whether rules that round otherwise are used too.
        passes: which passes, in the place of the usual ones.
    Returns:
        `graph` itself.

    >>> from twofold.ir.graph_text import parse
    >>> graph = parse("graph f(%0: f32[2]) { %1 = negative(%0) : f32[2] %2 = negative(%1) : f32[2] return %2 }")
    >>> print(optimise(graph))
    graph f(%0: f32[2]) {
      return %0
    }
    """
    from ..verify import verify
    from . import pipeline

    wanted = passes if passes is not None else pipeline.FAST_PIPELINE if fast_math else pipeline.PIPELINE
    after_each = False
    if checking[0]:
        verify(graph)
        after_each = sum(1 for _ in graph.walk()) <= _LARGE
    for _ in range(_ROUNDS):
        changed = False
        for step in wanted:
            start = time.perf_counter()
            did = step(graph)
            changed |= did and step is not pipeline.remove_dead
            if trace is not None:
                trace(step.__name__, graph, did, time.perf_counter() - start)
            if after_each and did:
                verify(graph)
        if not changed:
            break
    if checking[0] and not after_each:
        verify(graph)
    return graph
