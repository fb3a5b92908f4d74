"""Calls are replaced by their callees' nodes, with the caller's sizes."""

from __future__ import annotations

import numpy as np
from rewrites import check

import twofold as tf
from twofold.eager.constructs import run_graph
from twofold.ir import symbols
from twofold.ir.graph_text import parse, text
from twofold.ir.passes import inlining
from twofold.ir.passes.inlining import inline_calls
from twofold.ir.verify import verify


def test_calls_within_calls():
    check(inline_calls, """
graph f(%0: f32[n], %1: f32[2*n,3]) {
  %2 = call(%0) {name: "h", sizes: [["m", n]]} : f32[2*n] {
    graph h(%0: f32[m]) {
      %1 = call(%0) {name: "k", sizes: [["n", m]]} : f32[m] {
        graph k(%0: f32[n]) {
          %1 = size_of() {size: n, dtype: i32} : i32[]
          %2 = cast(%1) {dtype: f32} : f32[]
          %3 = multiply(%0, %2) : f32[n]
          return %3
        }
      }
      %2 = concat(%1, %0) {axis: 0} : f32[2*m]
      return %2
    }
  }
  return %2
}
---
graph f(%0: f32[n], %1: f32[2*n,3]) {
  %2 = size_of() {size: n, dtype: i32} : i32[]
  %3 = cast(%2) {dtype: f32} : f32[]
  %4 = multiply(%0, %3) : f32[n]
  %5 = concat(%4, %0) {axis: 0} : f32[2*n]
  return %5
}""")


HITS = """
graph hits(%0: f32[m]) {
  %1 = is_nan(%0) : i1[m]
  %2 = nonzero(%1) : i64[k_0,1]
  %3 = fill(%4) {shape: [k_0, m]} : f32[k_0,m]
  return %2, %3
}""".replace("  %3 = fill(%4)", "  %4 = constant 2.0 : f32[]\n  %3 = fill(%4)")


def test_sizes_made_by_the_callee_get_names_of_their_own():
    graph = verify(parse(f"""
graph f(%0: f32[n], %1: f32[k_0]) {{
  %2, %3 = call(%0) {{name: "hits", sizes: [["m", n]]}} : i64[a,1], f32[a,n] {{{HITS}}}
  %4, %5 = call(%1) {{name: "hits", sizes: [["m", k_0]]}} : i64[b,1], f32[b,k_0] {{{HITS}}}
  return %2, %3, %4, %5
}}"""))
    given = [tf.constant(np.array(v, "f")) for v in ([np.nan, 1, np.nan], [np.nan, np.nan, np.nan, np.nan])]
    before = [np.asarray(t) for t in run_graph(graph, given)]
    assert inline_calls(graph)
    verify(graph)
    assert [node.op.name for node in graph.nodes] == ["is_nan", "nonzero", "constant", "fill"] * 2
    assert graph.outputs[1].dims[0] == graph.outputs[0].dims[0] != graph.outputs[2].dims[0]
    for a, b in zip(before, run_graph(graph, given), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_callers_name_for_an_expression_of_the_callees_sizes():
    """A later call and a branch speak of the size of the first call's result."""
    double = """
    graph double(%0: f32[m]) {
      %1 = is_nan(%0) : i1[m]
      %2 = nonzero(%1) : i64[hits,1]
      %3 = concat(%2, %2) {axis: 0} : i64[2*hits,1]
      %4 = cast(%3) {dtype: f32} : f32[2*hits,1]
      %5 = reshape(%4) {shape: [-1]} : f32[2*hits]
      return %5
    }
"""
    graph = verify(parse(f"""
graph f(%0: f32[n], %1: i1[]) {{
  %2 = call(%0) {{name: "double", sizes: [["m", n]]}} : f32[d] {{{double}}}
  %3 = cond(%1, %2) : f32[d] {{
    graph then(%0: f32[d]) {{
      %1 = exp(%0) : f32[d]
      return %1
    }}
    graph otherwise(%0: f32[d]) {{
      return %0
    }}
  }}
  %4 = fill(%5) {{shape: [d]}} : f32[d]
  %6 = call(%3) {{name: "double", sizes: [["m", d]]}} : f32[e] {{{double}}}
  return %3, %4, %6
}}""".replace("  %4 = fill", "  %5 = constant 2.0 : f32[]\n  %4 = fill")))
    given = [tf.constant(np.array([np.nan, 1, np.nan], "f")), tf.constant(True)]
    before = [np.asarray(t) for t in run_graph(graph, given)]
    assert inline_calls(graph)
    verify(graph)
    assert "d" not in symbols.used(graph)
    for a, b in zip(before, run_graph(graph, given), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_callee_that_is_shared_is_not_written_to():
    graph = parse("""graph f(%0: f32[n]) {
  %1 = call(%0) {name: "h", sizes: [["m", n]]} : f32[m] { graph h(%0: f32[m]) { return %0 } }
  return %1 }""".replace(": f32[m] {", ": f32[n] {", 1))
    callee = graph.nodes[0].regions[0]
    shown = text(callee)
    assert inline_calls(graph) and graph.outputs == graph.inputs
    assert text(callee) == shown


def test_guards_of_the_callee_are_the_callers():
    check(inline_calls, """
graph f(%0: f32[n], %1: f32[3*k], %2: f32[k]) {
  assume n == 3*k
  %3 = call(%0, %1) {name: "h", sizes: [["a", n], ["b", 3*k]]} : f32[n] {
    graph h(%0: f32[a], %1: f32[b]) {
      assume a == b
      assume a <= 100
      %2 = add(%0, %1) : f32[a]
      return %2
    }
  }
  return %3
}
---
graph f(%0: f32[n], %1: f32[3*k], %2: f32[k]) {
  assume n == 3*k
  assume n <= 100
  %3 = add(%0, %1) : f32[n]
  return %3
}""")


def test_calls_in_regions():
    check(inline_calls, """
graph f(%0: i1[], %1: f32[n]) {
  %2 = cond(%0, %1) : f32[n] {
    graph then(%0: f32[n]) {
      %1 = call(%0) {name: "h", sizes: [["m", n]]} : f32[n] {
        graph h(%0: f32[m]) {
          %1 = exp(%0) : f32[m]
          return %1
        }
      }
      return %1
    }
    graph otherwise(%0: f32[n]) {
      return %0
    }
  }
  return %2
}
---
graph f(%0: i1[], %1: f32[n]) {
  %2 = cond(%0, %1) : f32[n] {
    graph then(%0: f32[n]) {
      %1 = exp(%0) : f32[n]
      return %1
    }
    graph otherwise(%0: f32[n]) {
      return %0
    }
  }
  return %2
}""")


def test_names_are_asked_for_once_needed():
    graph = parse("graph f(%0: f32[s_0]) { return %0 }")
    names = inlining.Names(graph)
    assert [str(names()), str(names())] == ["s_1", "s_2"]
