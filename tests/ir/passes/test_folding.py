"""Constant folding: what is computed early, what stays, and that the bits are those of kernels."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check, same_bits, specials

import twofold as tf
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.graph_text import parse, text
from twofold.ir.op import REGISTRY, apply
from twofold.ir.passes.folding import computed, fold_constants


def test_chains_fold():
    check(fold_constants, """
graph f(%0: f32[3]) {
  %1 = constant 2.0 : f32[]
  %2 = multiply(%1, %1) : f32[]
  %3 = exp(%2) : f32[]
  %4 = multiply(%0, %2) : f32[3]
  return %4
}
---
graph f(%0: f32[3]) {
  %1 = constant 4.0 : f32[]
  %2 = multiply(%0, %1) : f32[3]
  return %2
}""")


def test_sizes_fold():
    check(fold_constants, """
graph f(%0: f32[n,3], %1: f32[2,5]) {
  %2 = shape(%0) : i32[2]
  %3 = strided_slice(%2) {spec: [0]} : i32[]
  %4 = strided_slice(%2) {spec: [-1]} : i32[]
  %5 = size(%0) {out_type: i64} : i64[]
  %6 = shape(%1) : i32[2]
  %7 = size(%1) : i32[]
  %8 = size_of() {size: 7, dtype: i64} : i64[]
  return %2, %3, %4, %5, %6, %7, %8
}
---
graph f(%0: f32[n,3], %1: f32[2,5]) {
  %2 = constant 3 : i32[]
  %3 = constant [2, 5] : i32[2]
  %4 = constant 10 : i32[]
  %5 = constant 7 : i64[]
  %6 = shape(%0) : i32[2]
  %7 = size_of() {size: n, dtype: i32} : i32[]
  %8 = size_of() {size: 3*n, dtype: i64} : i64[]
  return %6, %7, %2, %8, %3, %4, %5
}""")


def test_repeated_numbers_fold_to_a_view():
    check(fold_constants, """
graph f(%0: f32[n,3]) {
  %1 = constant 1.0 : f32[]
  %2 = fill(%1) {shape: [n, 3]} : f32[n,3]
  %3 = constant 3.0 : f32[]
  %4 = add(%2, %3) : f32[n,3]
  %5 = square(%4) : f32[n,3]
  return %5
}
---
graph f(%0: f32[n,3]) {
  %1 = constant 16.0 : f32[]
  %2 = fill(%1) {shape: [n, 3]} : f32[n,3]
  return %2
}""")


@pytest.mark.parametrize("stays", [
    # constants do not grow
    """graph f() {
  %0 = constant 1.0 : f32[]
  %1 = fill(%0) {shape: [1000]} : f32[1000]
  return %1
}""",
    """graph f() {
  %0 = constant [[1.0], [2.0]] : f32[2,1]
  %1 = constant [[1.0, 3.0]] : f32[1,2]
  %2 = add(%0, %1) : f32[2,2]
  return %2
}""",
    # the order of additions is the kernels'
    """graph f() {
  %0 = constant [0.1, 0.2, 0.3] : f32[3]
  %1 = reduce_sum(%0) : f32[]
  return %1
}""",
    # what fails goes on failing when it runs
    """graph f() {
  %0 = constant [1, 2] : i32[2]
  %1 = constant [1, 0] : i32[2]
  %2 = floordiv(%0, %1) : i32[2]
  return %2
}""",
    # a draw is no constant
    """graph f() {
  %0 = constant 1 : i64[]
  %1 = random_state(%0) {seed: 3} : i64[3]
  return %1
}""",
])
def test_stays(stays):
    graph = parse(stays)
    assert not fold_constants(graph)
    assert text(graph) == stays


def test_views_integers_and_host_ops_fold():
    check(fold_constants, """
graph f() {
  %0 = constant [[1, 2, 3], [4, 5, 6]] : i32[2,3]
  %1 = transpose(%0) : i32[3,2]
  %2 = reduce_sum(%0) {axis: [1]} : i32[2]
  %3 = constant [1, 0] : i32[2]
  %4 = invert_permutation(%3) : i32[2]
  %5 = concat(%2, %3) {axis: 0} : i32[4]
  %6 = reduce_prod(%5) {keepdims: true} : i32[1]
  return %1, %4, %5, %6
}
---
graph f() {
  %0 = constant [[1, 4], [2, 5], [3, 6]] : i32[3,2]
  %1 = constant [1, 0] : i32[2]
  %2 = constant [6, 15, 1, 0] : i32[4]
  %3 = constant [0] : i32[1]
  return %0, %1, %2, %3
}""")


def test_large_results_stay():
    graph = g.Graph("f")
    x = graph.constant(np.zeros(20000, "f"))
    node = graph.add(REGISTRY["exp"], (x,), {}, (x,))
    graph.outputs = node.outputs
    assert not fold_constants(graph)


UNARY = [op for op in REGISTRY.values() if op.body is not None and op.params == ("x",) and not op.defaults]
BINARY = [op for op in REGISTRY.values() if op.body is not None and len(op.params) == 2 and not op.variadic]


@pytest.mark.parametrize("op", UNARY + BINARY, ids=lambda op: op.name)
def test_folded_bits_are_those_of_kernels(op):
    """Each elementwise op on special values of every dtype it takes."""
    tried = 0
    for dtype in (dt.float32, dt.float16, dt.bfloat16, dt.float64, dt.int32, dt.uint8, dt.bool_, dt.complex64):
        values = specials(dtype)
        pair = np.meshgrid(values, values)
        arrays = [values] if len(op.params) == 1 else [np.ascontiguousarray(p.ravel()) for p in pair]
        graph = g.Graph("f")
        inputs = [graph.constant(a) for a in arrays]
        try:
            spec = op.infer(op, *inputs)
        except tf.errors.OpError:
            continue
        node = graph.add(op, inputs, {}, (spec,))
        folded = computed(node, arrays)
        try:
            kernel = np.asarray(apply(op, tuple(tf.constant(a) for a in arrays), {}))
        except tf.errors.OpError:
            assert folded is None
            continue
        assert same_bits(folded[0], kernel), (dtype, arrays, folded[0], kernel)
        tried += 1
    assert tried
