"""One item among zeros is added as one item, where that gives the same bits; what might not stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rewrites import check

import twofold as tf
from twofold.ir import passes
from twofold.ir.passes.accumulating import add_items
from twofold.tracer.traced import trace

SUM = """
      %5 = fill(%4) {shape: [3, 2]} : DT[3,2]
      %6 = scatter_add(%5, %1, %7) : DT[3,2]
      %9 = add(%0, %6) : DT[3,2]"""
ITEM = "%9 = scatter_add(%0, %1, %7) : DT[3,2]"


def loop(body: str, start: str = "-0.0", zero: str = "0.0", rounds: int = 3, dtype: str = "f32") -> str:
    """A loop over x[3, 2] and a counter, with y[3, 2] that stays; `body` computes %9 from %0, the counter %1 and item
    %7 of y."""
    return f"""
graph f(%0: DT[3,2]) {{
  %1 = constant 0 : i32[]
  %2 = constant {start} : DT[]
  %3 = fill(%2) {{shape: [3, 2]}} : DT[3,2]
  %8, %9 = while(%3, %1, %0) {{carried: 2, trips: none}} : DT[3,2], i32[] {{
    graph test(%0: DT[3,2], %1: i32[], %2: DT[3,2]) {{
      %20 = constant {rounds} : i32[]
      %21 = less(%1, %20) : i1[]
      return %21
    }}
    graph body(%0: DT[3,2], %1: i32[], %2: DT[3,2]) {{
      %4 = constant {zero} : DT[]
      %7 = gather(%2, %1) : DT[2]
      {body}
      %20 = constant 1 : i32[]
      %21 = add(%1, %20) : i32[]
      return %9, %21
    }}
  }}
  return %8
}}""".replace("DT", dtype)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("start", ["-0.0", "0.0"])
def test_an_item_is_added_alone(dtype: str, rounds: int, start: str) -> None:
    want = loop("PART", "0.0", rounds=rounds, dtype=dtype)
    want = want.replace(f"%4 = constant 0.0 : {dtype}[]\n", "").replace("PART", ITEM.replace("DT", dtype))
    check(add_items, loop(SUM, start, rounds=rounds, dtype=dtype) + "\n---\n" + want)
    turned = SUM.replace("add(%0, %6)", "add(%6, %0)")
    check(add_items, loop(turned, start, rounds=rounds, dtype=dtype) + "\n---\n" + want)


def test_two_items_of_a_round() -> None:
    two = SUM.replace("%9 =", "%10 =") + """
      %11 = subtract(%20, %1) : i32[]
      %12 = scatter_add(%5, %11, %7) : f32[3,2]
      %9 = add(%10, %12) : f32[3,2]"""
    two = "%20 = constant 2 : i32[]" + two
    alone = """%20 = constant 2 : i32[]
      %10 = scatter_add(%0, %1, %7) : f32[3,2]
      %11 = subtract(%20, %1) : i32[]
      %9 = scatter_add(%10, %11, %7) : f32[3,2]"""
    text = loop(two).replace("%20 = constant 1", "%22 = constant 1").replace("%21 = add(%1, %20)", "%21 = add(%1, %22)")
    want = loop(alone, "0.0").replace("%20 = constant 1", "%22 = constant 1").replace(
        "%21 = add(%1, %20)", "%21 = add(%1, %22)").replace("%4 = constant 0.0 : f32[]\n", "")
    check(add_items, text + "\n---\n" + want)


def test_no_round_at_all_leaves_what_was_there() -> None:
    check(add_items, loop(SUM, rounds=0))


def test_zeros_of_another_sign_and_other_numbers_stay() -> None:
    check(add_items, loop(SUM, zero="-0.0"))
    check(add_items, loop(SUM, zero="1.0"))
    check(add_items, loop(SUM, start="1.0"))


def test_sums_that_are_rounded_elsewhere_stay() -> None:
    check(add_items, loop(SUM, dtype="f16"))
    check(add_items, loop(SUM, dtype="bf16"))


def test_several_updates_of_one_place_stay() -> None:
    check(add_items, loop("""
      %5 = fill(%4) {shape: [3, 2]} : f32[3,2]
      %10 = constant [0, 0] : i32[2]
      %11 = strided_slice(%2) {spec: [[none, 2, none]]} : f32[2,2]
      %6 = scatter_add(%5, %10, %11) : f32[3,2]
      %9 = add(%0, %6) : f32[3,2]"""))


def test_what_is_read_too_stays() -> None:
    check(add_items, loop(SUM.replace("%9 =", "%10 =") + "\n      %9 = multiply(%10, %6) : f32[3,2]"))
    check(add_items, loop(SUM.replace("%9 =", "%10 =") + "\n      %9 = add(%10, %0) : f32[3,2]"))


def gradient(x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.while_loop(lambda i, _: i < 5, lambda i, h: (i + 1, tf.tanh(h + x[i]) * x[i]), (0, x[0]))[1]
        loss = tf.reduce_sum(y)
    return tape.gradient(loss, x)


def test_gradients_of_reading_items() -> None:
    """The array of the gradient is touched item by item."""
    graph = passes.optimise(trace(gradient, [tf.TensorSpec([5, 3])]).graph)
    nodes = [inner for node in graph.nodes for region in node.regions for inner in region.walk()]
    assert not [n for n in nodes if n.op.name == "add" and n.outputs[0].dims == (5, 3)]
    assert [n for n in nodes if n.op.name == "scatter_add"]
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    x[2] = [-0.0, 0.0, -0.0]
    assert tf.function(gradient)(tf.constant(x)).numpy().tobytes() == gradient(tf.constant(x)).numpy().tobytes()
