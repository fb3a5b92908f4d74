"""Graphs as lists of named nodes: names are unique, operands are named, regions are graphs of their own."""

from __future__ import annotations

from twofold.ir.graph_text import parse

GRAPH = """
graph f(%0 x: f32[n,3], %1 add: f32[3], %2: i1[]) {
  %3 = add(%0, %1) : f32[n,3]
  %4 = add(%3, %1) : f32[n,3]
  %5, %6 = svd(%4) {compute_uv: false} : f32[3], f32[3]
  %7 = constant [1.0, 2.0, 3.0] : f32[3]
  %8 = cond(%2, %6, %7) : f32[3] {
    graph then(%0: f32[3], %1: f32[3]) {
      return %0
    }
    graph otherwise(%0: f32[3], %1: f32[3]) {
      %2 = negative(%1) : f32[3]
      return %2
    }
  }
  return %4, %8
}
"""


def test_nodes_and_operands_have_names():
    definition = parse(GRAPH).as_graph_def()
    assert [(n.name, n.op, n.input) for n in definition.node] == [
        ("x", "Placeholder", []),
        ("add", "Placeholder", []),
        ("input", "Placeholder", []),
        ("add_1", "add", ["x", "add"]),
        ("add_2", "add", ["add_1", "add"]),
        ("svd", "svd", ["add_2"]),
        ("Const", "Const", []),
        ("cond", "cond", ["input", "svd:1", "Const"]),
        ("Identity", "Identity", ["add_2"]),
        ("Identity_1", "Identity", ["cond"]),
    ]
    regions = definition.node[7].attr
    assert [n.op for n in regions["region_0"].node] == ["Placeholder", "Placeholder", "Identity"]
    assert [(n.op, n.input) for n in regions["region_1"].node[2:]] == [("negative", ["input_1"]),
                                                                      ("Identity", ["negative"])]


def test_text():
    graph = parse("graph f(%0 x: f32[n]) { %1 = reduce_sum(%0) {axis: [0], keepdims: false} : f32[] return %1 }")
    assert str(graph.as_graph_def()) == """\
node {
  name: "x"
  op: "Placeholder"
  attr {
    key: "dtype"
    value: float32
  }
  attr {
    key: "shape"
    value: [n]
  }
}
node {
  name: "reduce_sum"
  op: "reduce_sum"
  input: "x"
  attr {
    key: "axis"
    value: (0,)
  }
  attr {
    key: "keepdims"
    value: False
  }
}
node {
  name: "Identity"
  op: "Identity"
  input: "reduce_sum"
  attr {
    key: "dtype"
    value: float32
  }
  attr {
    key: "shape"
    value: []
  }
}"""
