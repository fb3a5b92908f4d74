"""Algebraic rules: each fires where it should and keeps the bits of special values; inexact ones are not applied."""

from __future__ import annotations

import re

import numpy as np
import pytest
from rewrites import check, same_bits, specials

import twofold as tf
from twofold.eager.constructs import run_graph
from twofold.ir import dtypes as dt
from twofold.ir import passes
from twofold.ir.graph_literals import array_text
from twofold.ir.graph_text import parse, text
from twofold.ir.passes.rewriting import rewrite
from twofold.ir.passes.simplify import EXACT, FAST, simplify, simplify_fast
from twofold.ir.verify import verify

FLOATS = [dt.float32, dt.float64, dt.float16, dt.bfloat16]
SIGNED = [dt.int32, dt.int8]
INTS = [*SIGNED, dt.uint8, dt.int64]
REAL = [*FLOATS, *INTS]
COMPLEX = [dt.complex64]

# integers that go through a float are cut to the limits of a narrower type, where directly they wrap around
SATURATING = [("i32", "f64", "i8"), ("i32", "f64", "u16"), ("i8", "bf16", "u16"), ("u8", "f16", "i8")]

WIDER = [(dt.float32, "f64"), (dt.float16, "f32"), (dt.bfloat16, "f64"), (dt.int8, "i32"), (dt.uint8, "i16"),
         (dt.int32, "f64"), (dt.int8, "bf16"), (dt.uint8, "f16"), (dt.int32, "i64")]

# rule -> (dtypes, statements over %0 and %1 of dtype T[n] and %2 of T[]; `#c` is the constant c, %9 the result)
CASES = [
    ("drop_identity", REAL, "%9 = identity(%0) : T[n]"),
    ("drop_identity", FLOATS, "%9 = stop_gradient(%0) : T[n]"),
    ("add_nothing", INTS, "%9 = add(%0, #0) : T[n]"),
    ("add_nothing", INTS, "%9 = add(#0, %0) : T[n]"),
    ("add_nothing", FLOATS, "%9 = add(%0, #-0.0) : T[n]"),
    ("add_nothing", FLOATS, "%3 = fill(#-0.0) {shape: [n]} : T[n] %9 = add(%2, %3) : T[n]"),
    ("subtract_nothing", REAL, "%9 = subtract(%0, #0) : T[n]"),
    ("subtract_nothing", FLOATS, "%9 = subtract(#-0.0, %0) : T[n]"),
    ("subtract_nothing", SIGNED, "%9 = subtract(#0, %0) : T[n]"),
    ("add_negative", [*FLOATS, *SIGNED, *COMPLEX], "%3 = negative(%1) : T[n] %9 = add(%0, %3) : T[n]"),
    ("add_negative", [*FLOATS, *SIGNED, *COMPLEX], "%3 = negative(%1) : T[n] %9 = add(%3, %0) : T[n]"),
    ("subtract_negative", [*FLOATS, *SIGNED, *COMPLEX], "%3 = negative(%1) : T[n] %9 = subtract(%0, %3) : T[n]"),
    ("subtract_itself", INTS, "%9 = subtract(%0, %0) : T[n]"),
    ("subtract_itself", INTS, "%9 = bitwise_xor(%0, %0) : T[n]"),
    ("add_one", REAL, "%9 = add_n(%0) : T[n]"),
    ("add_one", REAL, "%9 = add_n(%0, %1) : T[n]"),
    ("multiply_by_one", REAL, "%9 = multiply(%0, #1) : T[n]"),
    ("multiply_by_one", REAL, "%9 = multiply(#1, %0) : T[n]"),
    ("multiply_by_one", REAL, "%3 = fill(#1) {shape: [n]} : T[n] %9 = multiply(%2, %3) : T[n]"),
    ("multiply_by_one", [*FLOATS, *SIGNED], "%9 = multiply(%0, #-1) : T[n]"),
    ("multiply_by_zero", INTS, "%9 = multiply(%0, #0) : T[n]"),
    ("multiply_by_zero", INTS, "%9 = bitwise_and(#0, %0) : T[n]"),
    ("two_signs", [*FLOATS, *SIGNED],
     "%3 = negative(%0) : T[n] %4 = negative(%1) : T[n] %9 = multiply(%3, %4) : T[n]"),
    ("two_signs", FLOATS, "%3 = negative(%0) : T[n] %4 = negative(%1) : T[n] %9 = divide(%3, %4) : T[n]"),
    ("multiply_no_nan_known", [*FLOATS, *COMPLEX], "%9 = multiply_no_nan(%0, #3) : T[n]"),
    ("multiply_no_nan_known", [*FLOATS, *COMPLEX], "%9 = multiply_no_nan(%0, #-0.0) : T[n]"),
    ("masked_multiply_known", FLOATS, "%9 = masked_multiply(%0, #3) : T[n]"),
    ("masked_multiply_known", FLOATS, "%9 = masked_multiply(#-2, %0) : T[n]"),
    ("masked_multiply_known", [*FLOATS, *COMPLEX], "%9 = masked_multiply(%0, #0) : T[n]"),
    ("masked_divide_known", [*FLOATS, *COMPLEX], "%9 = masked_divide(#3, %0) : T[n]"),
    ("masked_divide_known", [*FLOATS, *COMPLEX], "%9 = masked_divide(#0, %0) : T[n]"),
    ("divide_no_nan_known", [*FLOATS, *COMPLEX], "%9 = divide_no_nan(%0, #3) : T[n]"),
    ("divide_no_nan_known", [*FLOATS, *COMPLEX], "%9 = divide_no_nan(%0, #0) : T[n]"),
    ("divide_by_power", FLOATS, "%9 = divide(%0, #1) : T[n]"),
    *[("divide_by_power", FLOATS, f"%9 = divide(%0, #{c}) : T[n]") for c in (2, -0.5, 1024, 2.0 ** -14, 2.0 ** 14)],
    *[("divide_by_power", [dt.float32], f"%9 = divide(%0, #{c}) : T[n]") for c in (2.0 ** 126, -2.0 ** -126)],
    ("power_of_known", REAL, "%9 = pow(%0, #1) : T[n]"),
    ("power_of_known", REAL, "%9 = pow(%0, #2) : T[n]"),
    ("derivative_of_square", FLOATS, "%9 = pow_derivative(%0, #2) : T[n]"),
    ("twice", [*FLOATS, *SIGNED, *COMPLEX], "%3 = negative(%0) : T[n] %9 = negative(%3) : T[n]"),
    ("twice", INTS, "%3 = invert(%0) : T[n] %9 = invert(%3) : T[n]"),
    ("twice", [dt.bool_], "%3 = logical_not(%0) : T[n] %9 = logical_not(%3) : T[n]"),
    ("twice", COMPLEX, "%3 = conj(%0) : T[n] %9 = conj(%3) : T[n]"),
    ("negative_of_difference", SIGNED, "%3 = subtract(%0, %1) : T[n] %9 = negative(%3) : T[n]"),
    *[("once_is_enough", FLOATS, f"%3 = {f}(%0) : T[n] %9 = {f}(%3) : T[n]")
      for f in ("abs", "relu", "floor", "ceil", "rint", "round", "relu6", "sign")],
    ("once_is_enough", SIGNED, "%3 = abs(%0) : T[n] %9 = abs(%3) : T[n]"),
    ("sign_does_not_matter", [*FLOATS, *SIGNED], "%3 = negative(%0) : T[n] %9 = abs(%3) : T[n]"),
    ("sign_does_not_matter", [*FLOATS, *SIGNED], "%3 = negative(%0) : T[n] %9 = square(%3) : T[n]"),
    ("sign_does_not_matter", [*FLOATS, *SIGNED], "%3 = abs(%0) : T[n] %9 = square(%3) : T[n]"),
    ("of_itself", REAL, "%9 = maximum(%0, %0) : T[n]"),
    ("of_itself", REAL, "%9 = minimum(%0, %0) : T[n]"),
    ("of_itself", [dt.bool_], "%9 = logical_and(%0, %0) : T[n]"),
    ("of_itself", INTS, "%9 = bitwise_or(%0, %0) : T[n]"),
    *[("logic_with_known", [dt.bool_], f"%9 = logical_{f}({a}) : T[n]")
      for f in ("and", "or", "xor") for a in ("%0, #true", "%0, #false", "#true, %0", "#false, %0")],
    *[("opposite", [*REAL, *COMPLEX], f"%3 = {f}(%0, %1) : i1[n] %9 = logical_not(%3) : i1[n]")
      for f in ("equal", "not_equal")],
    *[("opposite", INTS, f"%3 = {f}(%0, %1) : i1[n] %9 = logical_not(%3) : i1[n]")
      for f in ("less", "less_equal", "greater", "greater_equal")],
    ("one_choice", REAL, "%3 = constant true : i1[] %9 = select(%3, %0, %1) : T[n]"),
    ("one_choice", REAL, "%3 = less(%0, %1) : i1[n] %4 = reduce_all(%3) : i1[] %9 = select(%4, %0, %2) : T[n]"),
    ("known_choice", REAL, "%3 = less(%0, %1) : i1[n] %9 = where(%3, %0, %0) : T[n]"),
    ("known_choice", REAL, "%3 = constant true : i1[] %9 = where(%3, %0, %1) : T[n]"),
    ("known_choice", REAL, "%3 = constant false : i1[] %9 = where(%3, %0, %2) : T[n]"),
    ("turned_choice", REAL, "%3 = equal(%0, %1) : i1[n] %4 = logical_not(%3) : i1[n] %9 = where(%4, %0, %2) : T[n]"),
    ("same_dtype", REAL, "%9 = cast(%0) {dtype: T} : T[n]"),
    *[("through_wider", [narrow],
       f"%3 = cast(%0) {{dtype: {wide}}} : {wide}[n] %9 = cast(%3) {{dtype: {to}}} : {to}[n]")
      for narrow, wide in WIDER for to in ("f16", "bf16", "f32", "f64", "i8", "u16", "i32", "i64", "i1", "c64")
      if to != wide and (narrow.short, wide, to) not in SATURATING],
    ("part_of_parts", [dt.float32], "%3 = complex(%0, %2) : c64[n] %9 = real(%3) : T[n]"),
    ("part_of_parts", [dt.float64], "%3 = complex(%0, %2) : c128[n] %9 = imag(%3) : T[n]"),
    ("concat_one", REAL, "%9 = concat(%0) {axis: 0} : T[n]"),
    ("concat_one", REAL, "%3 = constant [] : T[0] %9 = concat(%0, %3, %1) {axis: -1} : T[2*n]"),
    ("pad_nothing", REAL, "%9 = pad(%0, %2) {paddings: [[0, 0]]} : T[n]"),
    *[("reduce_all_of_reshaped", FLOATS, f"%3 = expand_dims(%0) {{axis: 1}} : T[n,1] %9 = {f}(%3) : T[]")
      for f in ("reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_logsumexp", "reduce_euclidean_norm")],
    ("reduce_all_of_reshaped", INTS,
     "%3 = reshape(%0) {shape: [1, n]} : T[1,n] %9 = reduce_sum(%3) {axis: [0, 1]} : T[]"),
    *[("reduce_one", REAL, f"%3 = expand_dims(%0) {{axis: 1}} : T[n,1] %9 = {f}(%3) {{axis: [1]}} : T[n]")
      for f in ("reduce_max", "reduce_min", "reduce_prod")],
]

FAST_CASES = [
    ("fast_add_zero", "%9 = add(%0, #0) : T[n]"),
    ("fast_add_zero", "%9 = add(#0, %0) : T[n]"),
    ("fast_multiply_by_zero", "%9 = multiply(%0, #0) : T[n]"),
    ("fast_subtract_itself", "%9 = subtract(%0, %0) : T[n]"),
    ("fast_divide_by_known", "%9 = divide(%0, #3) : T[n]"),
    ("fast_multiply", "%9 = multiply_no_nan(%0, %1) : T[n]"),
    *[("fast_power", f"%9 = pow(%0, #{c}) : T[n]") for c in (0.5, -0.5, -1, 3)],
]


def written(body: str, dtype: dt.DType) -> str:
    """The text of a case's graph: constants in front, types filled in."""
    parts, constants = body.split("#"), ""
    out = parts[0]
    for number, part in enumerate(parts[1:], 20):
        spelt = re.match(r"true|false|[-+.e\d]+", part)[0]
        value = np.array(spelt == "true") if dtype.is_bool else np.array(float(spelt)).astype(dtype.np)
        constants += f"  %{number} = constant {array_text(value, dtype)} : {dtype.short}[]\n"
        out += f"%{number}{part[len(spelt):]}"
    body = out.replace("T[", f"{dtype.short}[").replace("dtype: T}", f"dtype: {dtype.short}}}")
    t = dtype.short
    return f"graph f(%0: {t}[n], %1: {t}[n], %2: {t}[]) {{\n{constants}  {body}\n  return %9\n}}"


def rules_named(table, name):
    by_op = {op: [rule for rule in rules if rule.__name__ == name] for op, rules in table.items()}
    return {op: rules for op, rules in by_op.items() if rules}


def every_input(dtype):
    """All pairs of special values and a few random ones, and a scalar."""
    values = specials(dtype)
    rng = np.random.default_rng(0)
    if not (dtype.is_bool or dtype.is_complex):
        drawn = rng.normal(size=20) * 50 if dtype.is_floating else rng.integers(0, 100, 20)
        values = np.concatenate([values, drawn.astype(dtype.np)])
    x, y = (np.ascontiguousarray(m.ravel()) for m in np.meshgrid(values, values))
    return [[tf.constant(x), tf.constant(y), tf.constant(scalar)] for scalar in values[:6]]


@pytest.mark.parametrize(("name", "dtypes", "body"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_exact_rule_keeps_bits(name, dtypes, body):
    rules = rules_named(EXACT, name)
    assert rules
    for dtype in dtypes:
        before = verify(parse(written(body, dtype)))
        after = before.copy()
        assert rewrite(after, rules), f"{name} does not fire for {dtype.name}"
        verify(after)
        assert text(after) != text(before)
        for given in every_input(dtype):
            a, b = (np.asarray(run_graph(graph, given)[0]) for graph in (before, after))
            assert same_bits(a, b), (dtype, text(after), a[:20], b[:20])


def test_every_rule_has_a_case():
    assert {rule.__name__ for rules in EXACT.values() for rule in rules} == {name for name, *_ in CASES} | {
        "drop_custom"}
    assert {rule.__name__ for rules in FAST.values() for rule in rules} == {name for name, _ in FAST_CASES}


@pytest.mark.parametrize(("name", "body"), FAST_CASES)
def test_fast_rule_fires_and_rounds_a_little(name, body):
    before = verify(parse(written(body, dt.float32)))
    exact, fast = before.copy(), before.copy()
    simplify(exact)
    assert text(exact) == text(before), "it is exact: it belongs to the other table"
    assert rewrite(fast, rules_named(FAST, name))
    verify(fast)
    rng = np.random.default_rng(1)
    given = [tf.constant(rng.uniform(0.1, 5, size).astype("f")) for size in ((50,), (50,), ())]
    a, b = (np.asarray(run_graph(graph, given)[0]) for graph in (before, fast))
    np.testing.assert_allclose(a, b, rtol=3e-7)
    assert simplify_fast(before)


@pytest.mark.parametrize(("narrow", "wide", "to"), SATURATING)
def test_saturating_casts_stay(narrow, wide, to):
    graph = verify(parse(f"""graph f(%0: {narrow}[n]) {{
      %1 = cast(%0) {{dtype: {wide}}} : {wide}[n]
      %2 = cast(%1) {{dtype: {to}}} : {to}[n]
      return %2
    }}"""))
    assert not simplify(graph)


@pytest.mark.parametrize("body", [
    "%9 = add(%0, #0) : T[n]", "%9 = subtract(#0, %0) : T[n]", "%9 = multiply(%0, #0) : T[n]",
    "%9 = subtract(%0, %0) : T[n]", "%9 = divide(%0, %0) : T[n]", "%9 = divide(%0, #3) : T[n]",
    "%9 = divide(%0, #1e-39) : T[n]", "%9 = divide(#0, %0) : T[n]", "%9 = pow(%0, #0.5) : T[n]",
    "%9 = multiply_no_nan(#1, %0) : T[n]", "%9 = masked_divide(%0, #1) : T[n]",
    "%3 = less(%0, %1) : i1[n] %9 = logical_not(%3) : i1[n]",
    "%3 = subtract(%0, %1) : T[n] %9 = negative(%3) : T[n]",
    "%3 = cast(%0) {dtype: f16} : f16[n] %9 = cast(%3) {dtype: T} : T[n]",
    "%3 = cast(%0) {dtype: i32} : i32[n] %9 = cast(%3) {dtype: T} : T[n]",
    "%3 = expand_dims(%0) {axis: 1} : T[n,1] %9 = reduce_sum(%3) {axis: [1]} : T[n]",
    "%9 = maximum(%0, %1) : T[n]",
])
def test_inexact_for_floats_stays(body):
    graph = parse(written(body, dt.float32))
    shown = text(graph)
    assert not simplify(graph)
    assert text(graph) == shown


def test_custom_gradients_go():
    graph = parse("""graph f(%0: f32[n]) {
      %1 = exp(%0) : f32[n]
      %2 = custom(%1, %0) {results: 1, inputs: 1, given: [true]} : f32[n] {
        graph backward(%0: f32[n], %1: f32[n]) {
          return %0
        }
      }
      return %2
    }""")
    assert simplify(verify(graph))
    assert [node.op.name for node in verify(graph).nodes] == ["exp"]


def test_complex_stays():
    for body in ("%9 = multiply(%0, #1) : T[n]", "%9 = subtract(%0, #0) : T[n]", "%9 = masked_multiply(%0, #2) : T[n]"):
        assert not simplify(parse(written(body, dt.complex64)))


def test_gradient_of_ones_is_cheap():
    """What the tape makes of sum(x**2 * y): no masked product with the cotangent of ones stays."""
    check(lambda graph: bool(passes.optimise(graph)) and True, """
graph f(%0: f32[n], %1: f32[n]) {
  %2 = constant 1.0 : f32[]
  %3 = fill(%2) {shape: [n]} : f32[n]
  %4 = multiply_no_nan(%1, %3) : f32[n]
  %5 = constant 2.0 : f32[]
  %6 = pow_derivative(%0, %5) : f32[n]
  %7 = multiply_no_nan(%6, %4) : f32[n]
  return %7
}
---
graph f(%0: f32[n], %1: f32[n]) {
  %2 = constant 2.0 : f32[]
  %3 = multiply(%0, %2) : f32[n]
  %4 = multiply_no_nan(%3, %1) : f32[n]
  return %4
}""")


def test_rules_work_inside_regions():
    check(simplify, """
graph f(%0: i1[], %1: f32[n]) {
  %2 = cond(%0, %1) : f32[n] {
    graph then(%0: f32[n]) {
      %1 = identity(%0) : f32[n]
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
      return %0
    }
    graph otherwise(%0: f32[n]) {
      return %0
    }
  }
  return %2
}""")


def test_nothing_new_is_assumed_of_sizes():
    """x * ones has the shape of x only where the sizes are known to agree."""
    body = "%2 = constant 1.0 : f32[] %3 = fill(%2) {shape: [m]} : f32[m] %4 = multiply(%0, %3) : f32[n] return %4 }"
    graph = verify(parse("graph f(%0: f32[n], %1: f32[m]) {\n assume n == m\n" + body))
    assert simplify(graph) and graph.outputs == [graph.inputs[0]]
