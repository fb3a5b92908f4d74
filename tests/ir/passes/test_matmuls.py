"""Transposes become attributes of the products that read them, with the same bits."""

from __future__ import annotations

import itertools

import pytest
from rewrites import check, same_results

from twofold.ir.graph_text import parse, text
from twofold.ir.passes.dead import remove_dead
from twofold.ir.passes.matmuls import fold_transposes
from twofold.ir.verify import verify


def test_transposes_fold():
    check(fold_transposes, """
graph f(%0: f32[n,3], %1: f32[4,3]) {
  %2 = transpose(%1) {perm: [1, 0]} : f32[3,4]
  %3 = matmul(%0, %2) : f32[n,4]
  return %3
}
---
graph f(%0: f32[n,3], %1: f32[4,3]) {
  %2 = matmul(%0, %1) {transpose_b: true} : f32[n,4]
  return %2
}""")


def test_transposes_fold_into_products_of_int8():
    check(fold_transposes, """
graph f(%0: i8[n,3], %1: i8[4,3]) {
  %2 = transpose(%0) {perm: [1, 0]} : i8[3,n]
  %3 = transpose(%1) {perm: [1, 0]} : i8[3,4]
  %4 = int8_matmul(%2, %3) {transpose_a: true} : i32[n,4]
  return %4
}
---
graph f(%0: i8[n,3], %1: i8[4,3]) {
  %2 = int8_matmul(%0, %1) {transpose_b: true} : i32[n,4]
  return %2
}""")


def test_a_transposed_transpose_is_plain():
    check(fold_transposes, """
graph f(%0: f32[n,3], %1: f32[2,5,3]) {
  %2 = transpose(%0) : f32[3,n]
  %3 = transpose(%1) {perm: [0, -1, 1]} : f32[2,3,5]
  %4 = matmul(%2, %3) {transpose_a: true} : f32[2,n,5]
  return %4
}
---
graph f(%0: f32[n,3], %1: f32[2,5,3]) {
  %2 = matmul(%0, %1) {transpose_b: true} : f32[2,n,5]
  return %2
}""")


def test_other_transposes_stay():
    check(fold_transposes, """
graph f(%0: f32[3,n,2], %1: f32[4,3]) {
  %2 = transpose(%0) {perm: [2, 1, 0]} : f32[2,n,3]
  %3 = matmul(%2, %1) {transpose_b: true} : f32[2,n,4]
  return %3
}""")


BEFORE = ["transpose", "conj", "conj transpose", "transpose conj", "transpose transpose"]
FLAGS = ["", "transpose_a: true", "adjoint_a: true"]


@pytest.mark.parametrize(("before", "flag"), list(itertools.product(BEFORE, FLAGS)))
def test_every_way_round(before, flag):
    """Square operands, so that each combination of ops and attributes is a product."""
    for dtype in ("f32", "i32", "c64") if "conj" not in before else ("c64",):
        lines, last = [], "%0"
        for i, op in enumerate(before.split(), 2):
            lines.append(f"%{i} = {op}({last}) : {dtype}[3,3]")
            last = f"%{i}"
        body = " ".join(lines) + f" %9 = matmul({last}, %1) {{{flag}}} : {dtype}[3,3]"
        graph = verify(parse(f"graph f(%0: {dtype}[3,3], %1: {dtype}[3,3]) {{ {body} return %9 }}"))
        after = graph.copy()
        changed = fold_transposes(after)
        remove_dead(verify(after))
        assert changed == (text(after) != text(graph))
        assert changed or dtype == "c64"
        same_results(graph, after)


def test_an_adjoint_of_a_conjugate_is_a_transpose():
    check(fold_transposes, """
graph f(%0: c64[3,n], %1: c64[3,n]) {
  %2 = conj(%0) : c64[3,n]
  %3 = matmul(%2, %1) {adjoint_a: true} : c64[n,n]
  return %3
}
---
graph f(%0: c64[3,n], %1: c64[3,n]) {
  %2 = matmul(%0, %1) {transpose_a: true} : c64[n,n]
  return %2
}""")
