"""All passes together, on what the tracer makes: the same bits, fewer nodes, well-formed after each step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rewrites import same_bits, specials

import twofold as tf
from twofold.eager.constructs import run_graph
from twofold.ir import graph as g
from twofold.ir import passes
from twofold.ir.graph_text import parse, text
from twofold.ir.passes import pipeline
from twofold.ir.verify import VerifyError, verify
from twofold.tracer.trace import Trace


def graph_of(fn, specs):
    """The graph of `fn` for inputs of these specs, without passes."""
    tracing = Trace("f")
    with tracing.active():
        result = fn(*[tracing.input(s.dims, s.dtype) for s in specs])
        tracing.graph.outputs = [tracing.lift(tf.convert_to_tensor(r)) for r in tf.nest.flatten(result)]
    return tracing.graph


def improved(graph, **more):
    after = graph.copy()
    assert passes.checking[0], "the suite verifies graphs around passes"
    passes.optimise(after, **more)
    return after


def same(before, after, inputs):
    a, b = run_graph(before, inputs), run_graph(after, inputs)
    for x, y in zip(a, b, strict=True):
        assert same_bits(np.asarray(x), np.asarray(y)), text(after)


def gelu(x, w):
    return tf.nn.gelu(tf.matmul(x, w), approximate=True)


def loss(x, w):
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = tf.reduce_mean(tf.nn.softmax(tf.matmul(x, tf.transpose(w)))[:, 0] ** 2) + tf.reduce_sum(w / 4.0) * 1.0
    return (y, *tape.gradient(y, [x, w]))


def second_order(x, w):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(tf.exp(tf.sin(x)) * x * 1.0 + tf.where(x > 0, x, 0.0))
        first = inner.gradient(y, x)
    return first, outer.gradient(first, x)


def shapes(x, w):
    rows = tf.shape(x)[0]
    flat = tf.reshape(tf.reshape(x, [rows, -1, 1]), [rows * 3])
    return flat, tf.zeros([rows, 2]) + 1, tf.cast(rows, tf.float32) * tf.ones_like(x), tf.transpose(tf.transpose(x))


@pytest.mark.parametrize("fn", [gelu, loss, second_order, shapes])
@pytest.mark.parametrize("rows", [1, 5])
def test_traced_functions_keep_their_bits(fn, rows):
    columns = (4, 3) if fn is loss else (3, 4)
    before = graph_of(fn, [tf.TensorSpec([None, 3]), tf.TensorSpec(columns)])
    after = improved(before)
    assert len(after.nodes) <= len(before.nodes)
    rng = np.random.default_rng(rows)
    plain = [rng.normal(size=(rows, 3)).astype("f"), rng.normal(size=columns).astype("f")]
    odd = [rng.choice(specials(tf.float32), a.shape) for a in plain]
    for arrays in (plain, odd):
        same(before, after, [tf.constant(a) for a in arrays])
    assert text(parse(text(after))) == text(after)


def test_a_second_run_finds_nothing():
    after = improved(graph_of(loss, [tf.TensorSpec([None, 3]), tf.TensorSpec([4, 3])]))
    shown = text(after)
    passes.optimise(after)
    assert text(after) == shown


def test_trace_is_told_of_each_pass():
    told = []
    graph = parse("graph f(%0: f32[2]) { %1 = identity(%0) : f32[2] return %1 }")
    passes.optimise(graph, trace=lambda name, graph, changed, seconds: told.append((name, changed, len(graph.nodes))))
    assert [name for name, *_ in told[:len(pipeline.PIPELINE)]] == [p.__name__ for p in pipeline.PIPELINE]
    assert ("simplify", True, 0) in told and len(told) == 2 * len(pipeline.PIPELINE)


def test_a_pass_that_breaks_the_graph_is_seen():
    def break_it(graph):
        graph.outputs = [g.Value((2,), tf.float32)]
        return True
    chain = "".join(f"%{n + 1} = exp(%{n}) : f32[2] " for n in range(500))
    for small_or_large in ("graph f(%0: f32[2]) { return %0 }", f"graph f(%0: f32[2]) {{ {chain} return %500 }}"):
        with pytest.raises(VerifyError, match="output 0 is no value"):
            passes.optimise(parse(small_or_large), passes=[break_it])


def test_fast_math_is_asked_for():
    source = "graph f(%0: f32[n]) { %1 = constant 0.0 : f32[] %2 = add(%0, %1) : f32[n] return %2 }"
    assert len(improved(parse(source)).nodes) == 2
    assert len(improved(parse(source), fast_math=True).nodes) == 0


UNARY = ["negative", "abs", "square", "exp", "relu", "sign", "identity", "floor", "reciprocal"]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "multiply_no_nan", "divide_no_nan", "masked_divide",
          "masked_multiply", "pow"]
NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, float("inf"), float("nan")]


@st.composite
def programs(draw):
    """A straight-line graph over x[n,3] and y[n,3] with constants, views, sums and repeated parts."""
    rows = ["%0", "%1"]
    lines = []

    def emit(expression: str, kind: str = "f32[n,3]") -> str:
        lines.append(f"%{len(lines) + 2} = {expression} : {kind}")
        return f"%{len(lines) + 1}"
    for _ in range(draw(st.integers(1, 12))):
        choice = draw(st.integers(0, 6))
        x = draw(st.sampled_from(rows))
        if choice == 0:
            made = emit(f"{draw(st.sampled_from(UNARY))}({x})")
        elif choice <= 2:
            made = emit(f"{draw(st.sampled_from(BINARY))}({x}, {draw(st.sampled_from(rows))})")
        elif choice <= 4:
            number = emit(f"constant {draw(st.sampled_from(NUMBERS))!r}", "f32[]")
            if draw(st.booleans()):
                number = emit(f"fill({number}) {{shape: [n, 3]}}")
            pair = [x, number] if draw(st.booleans()) else [number, x]
            made = emit(f"{draw(st.sampled_from(BINARY))}({', '.join(pair)})")
        elif choice == 5:
            turned = emit(f"transpose({x})", "f32[3,n]")
            made = emit(f"transpose({turned})") if draw(st.booleans()) else emit(
                f"reshape({turned}) {{shape: [n, 3]}}")
        else:
            total = emit(f"reduce_max({x}) {{axis: [1], keepdims: true}}", "f32[n,1]")
            made = emit(f"broadcast_to({total}) {{shape: [n, 3]}}")
        rows.append(made)
    body = "\n  ".join(lines)
    return f"graph f(%0: f32[n,3], %1: f32[n,3]) {{\n  {body}\n  return {rows[-1]}, {draw(st.sampled_from(rows))}\n}}"


@given(programs())
@settings(max_examples=150)
def test_random_programs_keep_their_bits(source):
    before = verify(parse(source))
    after = improved(before)
    rng = np.random.default_rng(7)
    for rows in (1, 4):
        arrays = [rng.choice(specials(tf.float32), (rows, 3)) for _ in range(2)]
        same(before, after, [tf.constant(a) for a in arrays])


def test_long_chains_are_one_walk_each():
    """Work grows with the graph, not with its square: nodes are looked at a fixed number of times."""
    looked = [0]

    class Counted(list):
        def __iter__(self):
            for node in super().__iter__():
                looked[0] += 1
                yield node

    def count(length):
        graph = parse("graph f(%0: f32[n]) {\n" + "".join(
            f"  %{i + 1} = sin(%{i}) : f32[n]\n" for i in range(length)) + f"  return %{length}\n}}")
        looked[0] = 0
        for step in pipeline.PIPELINE:
            graph.nodes = Counted(graph.nodes)
            step(graph)
        return looked[0]
    assert count(400) <= 4.1 * count(100)
