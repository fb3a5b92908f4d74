"""What gradient graphs look like: residuals, pruning, sizes, and time in the size of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir import ops, symbols
from twofold.ir.autodiff import Linearised, vjp
from twofold.ir.build import Builder
from twofold.ir.graph_text import parse, text
from twofold.ir.op import use_interpreter
from twofold.ir.verify import verify


def graph_of(build: Callable[..., Any], *shapes: Any) -> g.Graph:
    """The graph of a function of ops over float32 tensors."""
    graph = g.Graph("f")
    inputs = [graph.add_input(s, dt.float32) for s in shapes]
    with use_interpreter(Builder(graph)), dm.recording() as guards:
        results = build(*inputs)
        graph.outputs = list(results) if isinstance(results, tuple) else [results]
    graph.guards = list(guards)
    return verify(graph)


def names(graph: g.Graph) -> list[str]:
    return [n.op.name for n in graph.nodes]


def checked(both: Linearised) -> Linearised:
    """Both graphs are well-formed and have text that parses back."""
    for graph in (both.forward, both.backward().graph):
        verify(graph)
        assert text(verify(parse(text(graph)))) == text(graph)
    return both


def test_only_what_rules_read_is_kept() -> None:
    both = checked(vjp(graph_of(lambda x: ops.sin(ops.add(x, 1.0)), (3,)), [True]))
    assert names(both.forward) == ["constant", "add", "sin"]
    assert both.sources == [-1]  # the sum is one instruction from the input
    assert names(both.backward().graph) == ["constant", "add", "cos", "multiply_no_nan", "identity"]


def test_long_ways_are_kept() -> None:
    both = checked(vjp(graph_of(lambda x: ops.sin(ops.exp(x)), (3,)), [True]))
    assert both.sources == [1]  # e = exp(x) serves sin and exp
    assert "exp" not in names(both.backward().graph)


def test_chains_are_recomputed_up_to_two_instructions() -> None:
    def f(x: Any) -> Any:
        for _ in range(4):
            x = ops.negative(x)
        return ops.sin(x)
    both = checked(vjp(graph_of(f, (3,)), [True]))
    assert both.sources == [1]
    two = checked(vjp(graph_of(lambda x: ops.sin(ops.negative(ops.negative(x))), (3,)), [True]))
    assert two.sources == [-1]


def test_pruned_to_what_is_wanted() -> None:
    graph = graph_of(lambda x, w: ops.matmul(x, w), (2, 3), (3, 4))
    assert names(vjp(graph, [False, True]).backward().graph) == ["matmul"]
    both = vjp(graph, [False, True])
    assert both.sources == [-1] and both.backward().connected == (False, True)
    none = vjp(graph, [False, False])
    assert none.backward().connected == (False, False) and not none.backward().graph.nodes


def test_unconnected_is_known_statically() -> None:
    graph = graph_of(lambda x, y: (ops.sin(x), ops.stop_gradient(y), ops.greater(x, y)), (3,), (3,))
    both = checked(vjp(graph, [True, True]))
    assert both.seeded == (True, True, False)
    assert both.backward().connected == (True, False)
    assert both.backward((False, True, False)).connected == (False, False)


def test_cotangents_of_some_results_need_no_further_residuals() -> None:
    graph = graph_of(lambda x, y: (ops.exp(x), ops.multiply(ops.exp(x), ops.sin(y))), (3,), (3,))
    both = checked(vjp(graph, [True, True]))
    count = len(both.forward.outputs)
    for seeded in ((True, False), (False, True)):
        back = both.backward(seeded)
        verify(back.graph)
        assert set(back.reads) <= set(range(len(both.residuals)))
        assert back.connected == (True, seeded[1])
    assert len(both.forward.outputs) == count


def test_totals_continue_what_is_given() -> None:
    both = vjp(graph_of(lambda x: ops.sin(x), (3,)), [True])
    back = both.backward((True,), (True,))
    verify(back.graph)
    assert len(back.graph.inputs) == len(back.reads) + 2
    assert names(back.graph)[-1] == "add" and back.graph.nodes[-1].inputs[0] is back.graph.inputs[-1]


def test_sizes_that_nothing_tells_are_residuals() -> None:
    n = dm.symbol("n")
    both = checked(vjp(graph_of(lambda x: ops.reduce_sum(x, axis=None, keepdims=False), (n,)), [True]))
    assert names(both.forward) == ["reduce_sum", "size_of"]
    assert names(both.backward().graph)[0] == "bind"
    told = checked(vjp(graph_of(lambda x: ops.reduce_sum(ops.sin(x), axis=None, keepdims=False), (n,)), [True]))
    assert told.sources == [-1]  # whose shape tells it


def test_new_sizes_are_not_under_guards_of_others() -> None:
    """A name that only a guard still has, of the graph or of a region, is not given again."""
    graph, region = g.Graph("f"), g.Graph("side")
    graph.guards = [dm.Guard(dm.symbol("r_0"), "==", dm.symbol("r_2"))]
    region.guards = [dm.Guard(dm.symbol("r_3"), ">", 0)]
    condition = graph.add_input((), dt.bool_)
    graph.add(g.COND, [condition], {}, (), [region, g.Graph("side")])
    fresh = symbols.fresh_names(graph)
    assert [str(fresh()) for _ in range(3)] == ["r_1", "r_4", "r_5"]


def test_lines_are_those_of_the_op() -> None:
    graph = graph_of(lambda x: ops.sin(x), (3,))
    graph.nodes[0].loc = g.Location("a.py", 7, "f")
    assert {n.loc for n in vjp(graph, [True]).backward().graph.nodes} == {graph.nodes[0].loc}


def test_the_graph_stays_as_it_is() -> None:
    graph = graph_of(lambda x: ops.sin(ops.exp(x)), (3,))
    before = text(graph)
    vjp(graph, [True])
    assert text(graph) == before


def test_integers_and_numbers_become_constants_of_the_right_dtype() -> None:
    graph = g.Graph("f")
    x, i = graph.add_input((3,), dt.bfloat16), graph.add_input((3,), dt.int8)
    with use_interpreter(Builder(graph)):
        ops.multiply(x, 2.5)
        ops.add(i, 2)
        ops.subtract(1, i)
        ops.multiply(x, 2.5)
    verify(graph)
    constants = [n.attrs["value"] for n in graph.nodes if n.op is g.CONSTANT]
    assert [c.dtype for c in constants] == [dt.bfloat16.np, np.int8, np.int8]  # equal ones are one


@pytest.mark.parametrize("kind", ["chain", "fan"])
def test_every_node_is_visited_once(kind: str) -> None:
    def f(x: Any) -> Any:
        total = x
        for _ in range(1000):
            total = ops.multiply(ops.sin(total), x) if kind == "chain" else ops.add(total, ops.sin(x))
        return total
    both = vjp(graph_of(f, (3,)), [True])
    assert len(both.forward.nodes) == 2000
    assert len(both.backward().graph.nodes) <= 6000
