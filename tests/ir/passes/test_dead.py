"""What nothing reads goes; effects, and what brings a size that is spoken of, stay."""

from __future__ import annotations

from rewrites import check

from twofold.ir import graph as g
from twofold.ir.graph_text import parse, text
from twofold.ir.op import REGISTRY
from twofold.ir.passes import failing
from twofold.ir.passes.dead import remove_dead
from twofold.ir.verify import verify


def test_unread_nodes_go():
    check(remove_dead, """
graph f(%0: f32[n], %1: f32[n]) {
  %2 = exp(%0) : f32[n]
  %3 = sin(%2) : f32[n]
  %4 = cos(%2) : f32[n]
  %5 = constant 1.0 : f32[]
  return %4
}
---
graph f(%0: f32[n], %1: f32[n]) {
  %2 = exp(%0) : f32[n]
  %3 = cos(%2) : f32[n]
  return %3
}""")


def test_effects_stay_with_what_they_read():
    check(remove_dead, """
graph f(%0: f32[], %1: i64[]) {
  %2 = constant 1.0 : f32[]
  %3 = less(%0, %2) : i1[]
  assert(%3, %0) {message: "large", summarize: 3}
  %4 = random_state(%1) {seed: 7} : i64[3]
  bind(%1) {symbol: "k"}
  return %0
}""")


def test_host_calls_stay():
    graph = parse("graph f(%0: f32[2]) { %1 = exp(%0) : f32[2] return %0 }")
    graph.add(g.HOST, graph.nodes[0].outputs, {"fn": print, "name": "print"}, ())
    assert not remove_dead(graph)
    assert [node.op.name for node in graph.nodes] == ["exp", "host"]


def test_what_brings_a_size_stays_while_it_is_spoken_of():
    check(remove_dead, """
graph f(%0: f32[n]) {
  %1 = is_nan(%0) : i1[n]
  %2 = nonzero(%1) : i64[a,1]
  %3 = nonzero(%1) : i64[b,1]
  %4 = size_of() {size: 2*b, dtype: i32} : i32[]
  return %4
}
---
graph f(%0: f32[n]) {
  %1 = is_nan(%0) : i1[n]
  %2 = nonzero(%1) : i64[b,1]
  %3 = size_of() {size: 2*b, dtype: i32} : i32[]
  return %3
}""")


def test_what_brings_a_size_in_a_round_keeps_what_it_reads():
    """A round speaks of the size alone; what it is found in is carried."""
    check(remove_dead, """
graph f(%0: f32[n], %1: i32[]) {
  %2 = constant 0 : i64[]
  %3, %4, %5, %6 = while(%0, %1, %2, %0) {carried: 4, trips: none} : f32[n], i32[], i64[], f32[n] {
    graph test(%0: f32[n], %1: i32[], %2: i64[], %3: f32[n]) { %4 = constant 5 : i32[] %5 = less(%1, %4) : i1[]
      return %5 }
    graph body(%0: f32[n], %1: i32[], %2: i64[], %3: f32[n]) {
      %4 = constant 1 : i32[]
      %5 = add(%1, %4) : i32[]
      %6 = is_nan(%0) : i1[n]
      %7 = nonzero(%6) : i64[b,1]
      %8 = size_of() {size: b, dtype: i64} : i64[]
      %9 = sin(%0) : f32[n]
      %10 = cos(%3) : f32[n]
      return %9, %5, %8, %10
    }
  }
  return %5
}
---
graph f(%0: f32[n], %1: i32[]) {
  %2 = constant 0 : i64[]
  %3, %4, %5 = while(%0, %1, %2) {carried: 3, trips: none} : f32[n], i32[], i64[] {
    graph test(%0: f32[n], %1: i32[], %2: i64[]) { %3 = constant 5 : i32[] %4 = less(%1, %3) : i1[]
      return %4 }
    graph body(%0: f32[n], %1: i32[], %2: i64[]) {
      %3 = constant 1 : i32[]
      %4 = add(%1, %3) : i32[]
      %5 = is_nan(%0) : i1[n]
      %6 = nonzero(%5) : i64[b,1]
      %7 = size_of() {size: b, dtype: i64} : i64[]
      %8 = sin(%0) : f32[n]
      return %8, %4, %7
    }
  }
  return %5
}""")


def test_results_and_operands_of_cond():
    check(remove_dead, """
graph f(%0: i1[], %1: f32[n], %2: f32[]) {
  %3, %4 = cond(%0, %2, %1) : f32[n], f32[] {
    graph then(%0: f32[], %1: f32[n]) {
      %2 = exp(%1) : f32[n]
      %3 = sin(%0) : f32[]
      return %2, %3
    }
    graph otherwise(%0: f32[], %1: f32[n]) {
      return %1, %0
    }
  }
  return %3
}
---
graph f(%0: i1[], %1: f32[n], %2: f32[]) {
  %3 = cond(%0, %1) : f32[n] {
    graph then(%0: f32[n]) {
      %1 = exp(%0) : f32[n]
      return %1
    }
    graph otherwise(%0: f32[n]) {
      return %0
    }
  }
  return %3
}""")


def test_carried_values_that_nothing_needs():
    """The sum of squares goes; the counter, which the test reads, and the step that the result reads stay."""
    check(remove_dead, """
graph f(%0: f32[n], %1: i32[], %2: f32[n], %3: f32[n]) {
  %4, %5, %6, %7 = while(%0, %1, %2, %0, %3, %1) {carried: 4, trips: none} : f32[n], i32[], f32[n], f32[n] {
    graph test(%0: f32[n], %1: i32[], %2: f32[n], %3: f32[n], %4: f32[n], %5: i32[]) {
      %6 = constant 3 : i32[]
      %7 = less(%1, %6) : i1[]
      return %7
    }
    graph body(%0: f32[n], %1: i32[], %2: f32[n], %3: f32[n], %4: f32[n], %5: i32[]) {
      %6 = constant 1 : i32[]
      %7 = add(%1, %6) : i32[]
      %8 = square(%0) : f32[n]
      %9 = add(%2, %8) : f32[n]
      %10 = sin(%3) : f32[n]
      %11 = add(%0, %10) : f32[n]
      return %11, %7, %9, %10
    }
  }
  return %4
}
---
graph f(%0: f32[n], %1: i32[], %2: f32[n], %3: f32[n]) {
  %4, %5, %6 = while(%0, %1, %0) {carried: 3, trips: none} : f32[n], i32[], f32[n] {
    graph test(%0: f32[n], %1: i32[], %2: f32[n]) {
      %3 = constant 3 : i32[]
      %4 = less(%1, %3) : i1[]
      return %4
    }
    graph body(%0: f32[n], %1: i32[], %2: f32[n]) {
      %3 = constant 1 : i32[]
      %4 = add(%1, %3) : i32[]
      %5 = sin(%2) : f32[n]
      %6 = add(%0, %5) : f32[n]
      return %6, %4, %5
    }
  }
  return %4
}""")


def test_inputs_that_name_a_size_stay():
    graph = verify(parse("""
graph f(%0: f32[n], %1: i1[]) {
  %2 = cond(%1, %0) : i32[] {
    graph then(%0: f32[m]) { %1 = size_of() {size: m, dtype: i32} : i32[] return %1 }
    graph otherwise(%0: f32[m]) { %1 = constant 0 : i32[] return %1 }
  }
  return %2
}"""))
    shown = text(graph)
    assert not remove_dead(graph)
    assert text(graph) == shown


def test_an_unread_loop_goes_and_one_with_an_effect_stays():
    loop = """
graph f(%0: i32[]) {{
  %1 = while(%0) {{carried: 1, trips: none}} : i32[] {{
    graph test(%0: i32[]) {{ %1 = constant 3 : i32[] %2 = less(%0, %1) : i1[] return %2 }}
    graph body(%0: i32[]) {{ %1 = constant 1 : i32[] %2 = add(%0, %1) : i32[] {} return %2 }}
  }}
  return %0
}}"""
    check(remove_dead, loop.format("") + "\n---\ngraph f(%0: i32[]) {\n  return %0\n}")
    check(remove_dead, loop.format('%3 = less(%0, %2) : i1[] assert(%3) {message: "m", summarize: 3}'))


def test_what_may_fail_stays():
    """An error is part of what a program does, whoever reads the result."""
    check(remove_dead, """
graph f(%0: i32[n], %1: f32[2,2], %2: i32[]) {
  %3 = floordiv(%0, %0) : i32[n]
  %4 = cholesky(%1) : f32[2,2]
  %5 = gather(%1, %0) : f32[n,2]
  %6 = constant 1 : i32[]
  %7 = range(%6, %2, %6) : i32[range_1]
  return %0
}""")


def test_what_is_known_not_to_fail_goes():
    check(remove_dead, """
graph f(%0: i32[n]) {
  %1 = constant 2 : i32[]
  %2 = constant 9 : i32[]
  %3 = floordiv(%0, %1) : i32[n]
  %4 = pow(%0, %1) : i32[n]
  %5 = range(%1, %2, %1) : i32[range_1]
  %6 = is_nan(%7) : i1[n]
  %8 = nonzero(%6) : i64[hits_1,1]
  return %0
}
---
graph f(%0: i32[n]) {
  return %0
}""".replace("  %6 = is_nan(%7)", "  %7 = cast(%0) {dtype: f32} : f32[n]\n  %6 = is_nan(%7)"))


def test_a_loop_with_what_may_fail_stays():
    check(remove_dead, """
graph f(%0: i32[], %1: i32[n]) {
  %2, %3 = while(%0, %1) {carried: 2, trips: none} : i32[], i32[n] {
    graph test(%0: i32[], %1: i32[n]) {
      %2 = constant 3 : i32[]
      %3 = less(%0, %2) : i1[]
      return %3
    }
    graph body(%0: i32[], %1: i32[n]) {
      %2 = constant 1 : i32[]
      %3 = add(%0, %2) : i32[]
      %4 = floormod(%1, %1) : i32[n]
      return %3, %4
    }
  }
  return %0
}
---
graph f(%0: i32[], %1: i32[n]) {
  %2, %3 = while(%0, %1) {carried: 2, trips: none} : i32[], i32[n] {
    graph test(%0: i32[], %1: i32[n]) {
      %2 = constant 3 : i32[]
      %3 = less(%0, %2) : i1[]
      return %3
    }
    graph body(%0: i32[], %1: i32[n]) {
      %2 = constant 1 : i32[]
      %3 = add(%0, %2) : i32[]
      %4 = floormod(%1, %1) : i32[n]
      return %3, %4
    }
  }
  return %0
}""")


def test_only_ops_of_a_lowering_or_of_the_host_are_declared_total():
    """The others tell by their bodies whether they check values, and views and reductions never do."""
    total = [op for op in REGISTRY.values() if "total" in op.traits]
    assert [op.name for op in total if op.lower is None and op.host is None] == []
    assert {"sort", "matmul", "concat"} <= {op.name for op in total} and "gather" not in {op.name for op in total}
    assert set(REGISTRY) >= failing._DIVISIONS
