"""The verifier accepts what is well-formed and names what is not; views of graphs for other programs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import twofold as tf
from twofold.ir import graph as g
from twofold.ir import ops
from twofold.ir.graph_text import parse, text
from twofold.ir.verify import VerifyError, verify
from twofold.tracer.function import trace

GOOD = [
    "graph f(%0: f32[n,3], %1: f32[3]) { %2 = add(%0, %1) : f32[n,3] return %2 }",
    "graph f(%0: f32[n], %1: f32[m]) {\n assume n == m\n %2 = add(%0, %1) : f32[n] return %2 }",
    "graph f(%0: f32[n], %1: f32[m]) {\n assume n == m\n %2 = add(%0, %1) : f32[m] return %2 }",
    "graph f(%0: f32[n]) { %1 = is_nan(%0) : i1[n] %2 = nonzero(%1) : i64[hits_1,1] "
    "%3 = cast(%2) {dtype: f32} : f32[hits_1,1] return %3 }",
    """graph f(%0: i64[], %1: f32[]) {
      bind(%0) {symbol: "k"}
      %2 = fill(%1) {shape: [k, 2*k]} : f32[k,2*k]
      return %2
    }""",
    """graph f(%0: f32[n], %1: i32[]) {
      %2, %3 = while(%0, %1, %1) {carried: 2, trips: none} : f32[n], i32[] {
        graph test(%0: f32[n], %1: i32[], %2: i32[]) { %3 = less(%1, %2) : i1[] return %3 }
        graph body(%0: f32[n], %1: i32[], %2: i32[]) {
          %3 = exp(%0) : f32[n]
          %4 = constant 1 : i32[]
          %5 = add(%1, %4) : i32[]
          return %3, %5
        }
      }
      return %2
    }""",
    """graph f(%0: f32[3], %1: i1[]) {
      %2 = while(%0, %1) {carried: 1, trips: none} : f32[w] {
        graph test(%0: f32[k], %1: i1[]) { return %1 }
        graph body(%0: f32[k], %1: i1[]) { %2 = concat(%0, %0) {axis: 0} : f32[2*k] return %2 }
      }
      return %2
    }""",
    """graph f(%0: f32[n]) {
      %1 = call(%0) {name: "h", sizes: [["m", n]]} : f32[2*n] {
        graph h(%0: f32[m]) { %1 = concat(%0, %0) {axis: 0} : f32[2*m] return %1 }
      }
      return %1
    }""",
]

BAD = [
    ("graph f(%0: f32[n,3], %1: f32[3]) { %2 = add(%0, %1) : f32[3] return %2 }", "result 0 is"),
    ("graph f(%0: f32[n]) { %1 = exp(%0) : f64[n] return %1 }", "result 0 is"),
    ("graph f(%0: f32[n], %1: f32[m]) { %2 = add(%0, %1) : f32[n] return %2 }", "it assumes n == m"),
    ("graph f(%0: f32[2], %1: f32[3]) { %2 = add(%0, %1) : f32[3] return %2 }", "the op rejects it"),
    ("graph f(%0: f32[2]) { %1 = add(%0) : f32[2] return %1 }", "1 operands; the op takes 2"),
    ("graph f(%0: f32[]) { %1 = fill(%0) {shape: [k]} : f32[k] return %1 }", "use the size k"),
    ("graph f() { %0 = size_of() {size: n, dtype: i32} : i32[] return %0 }", "use the size n"),
    ("graph f(%0: i32[n]) { bind(%0) {symbol: \"k\"} return }", "integer scalar"),
    ("graph f(%0: i32[], %1: f32[n]) { bind(%0) {symbol: \"n\"} return }", "bound already"),
    ("graph f(%0: f32[]) { %1 = cond(%0) : f32[] { graph a() { return } graph b() { return } } return %1 }",
     "bool scalar"),
    ("""graph f(%0: i1[], %1: f32[3]) { %2 = cond(%0, %1) : f32[3] {
        graph a(%0: f32[3]) { return %0 } graph b(%0: f32[4]) { return %0 } } return %2 }""", "operands of b"),
    ("""graph f(%0: i1[], %1: f32[3]) { %2 = cond(%0, %1) : f32[3] {
        graph a(%0: f32[3]) { return %0 } graph b(%0: f32[3]) { return } } return %2 }""", "results of b"),
    ("graph f(%0: i1[]) { %1 = cond(%0) : i1[] { graph a() { return } } return %1 }", "1 regions; 2"),
    ("""graph f(%0: f32[]) { %1 = while(%0) {carried: 1, trips: none} : f32[] {
        graph test(%0: f32[]) { return %0 } graph body(%0: f32[]) { return %0 } } return %1 }""", "one bool scalar"),
    ("""graph f(%0: f32[2]) { %1 = call(%0) {name: "h", sizes: []} : f32[2] {
        graph h(%0: f32[3]) { return %0 } } return %1 }""", "operands"),
]


@pytest.mark.parametrize("good", GOOD)
def test_accepts(good):
    graph = verify(parse(good))
    assert text(verify(graph.copy())) == text(graph)


@pytest.mark.parametrize(("bad", "told"), BAD)
def test_rejects(bad, told):
    with pytest.raises(VerifyError, match=told):
        verify(parse(bad))


def test_values_must_be_of_the_graph_and_before():
    graph = parse("graph f(%0: f32[2]) { %1 = exp(%0) : f32[2] %2 = sin(%1) : f32[2] return %2 }")
    graph.nodes.reverse()
    with pytest.raises(VerifyError, match="operand 0 is not defined before"):
        verify(graph)
    other = parse("graph g(%0: f32[2]) { return %0 }")
    graph.nodes.reverse()
    graph.outputs = other.inputs
    with pytest.raises(VerifyError, match="output 0 is no value of this graph"):
        verify(graph)


def test_a_region_sees_nothing_of_the_graph_around_it():
    graph = parse("""graph f(%0: i1[], %1: f32[3]) { %2 = cond(%0, %1) : f32[3] {
        graph a(%0: f32[3]) { return %0 } graph b(%0: f32[3]) { return %0 } } return %2 }""")
    graph.nodes[0].regions[0].outputs = [graph.inputs[1]]
    with pytest.raises(VerifyError, match="graph a: output 0 is no value"):
        verify(graph)


def test_attributes_must_be_complete():
    graph = g.Graph("f")
    x = graph.add_input((2, 3), tf.float32)
    graph.add(ops.transpose, (x,), {}, (graph.inputs[0],))
    with pytest.raises(VerifyError, match="the op declares"):
        verify(graph)


def test_what_the_tracer_makes_is_well_formed():
    w = tf.Variable(np.ones((3, 4), "f"))

    def step(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.nn.softmax(tf.matmul(x, w)) ** 2)
        w.assign_sub(0.1 * tape.gradient(y, w))
        return y, tf.reshape(x, [tf.shape(x)[0] * 3])
    graph = trace(step, [tf.TensorSpec([None, 3])]).graph
    verify(graph)
    back = parse(text(graph))
    assert text(verify(back)) == text(graph)
    assert all(node.loc.file == __file__ and node.loc.function == "step" for node in back.nodes)


def test_networkx_has_data_and_order():
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.random.uniform([3]) * x + tf.random.uniform([3])
        return tape.gradient(y, x)
    graph = trace(step, [tf.TensorSpec([3])]).graph
    network = graph.to_networkx()
    assert nx.is_directed_acyclic_graph(network)
    numbers = [n for n in network if isinstance(n, int)]
    assert [network.nodes[n]["op"] for n in numbers] == [node.op.name for node in graph.nodes]
    draws = [n for n in numbers if network.nodes[n]["op"] in ("random_state", "random_op_state")]
    assert len(draws) == 2 and network.edges[draws[0], draws[1]]["kind"] == "effect"
    operands = sum(len(d["values"]) for _, _, d in network.edges(data=True))
    assert operands == sum(len(node.inputs) for node in graph.nodes) + len(graph.outputs)


def test_dot_names_every_node_and_region():
    graph = parse(GOOD[5])
    shown = graph.to_dot()
    assert shown.count("{") == shown.count("}") and 'subgraph cluster_n0_1 { label="body";' in shown
    assert all(f'label="{op}' in shown for op in ("while", "less", "exp", "add"))
