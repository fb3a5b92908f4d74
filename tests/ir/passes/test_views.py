"""Chains of views become one view or none."""

from __future__ import annotations

import pytest
from rewrites import check, same_results

from twofold.ir.graph_text import parse
from twofold.ir.passes.views import fold_views
from twofold.ir.verify import verify

# (inputs, statements before, statements after); the last value is returned
CASES = [
    ("f32[n,3,4]", "%1 = reshape(%0) {shape: [n, 12]} : f32[n,12] %2 = reshape(%1) {shape: [12*n]} : f32[12*n]",
     "%1 = reshape(%0) {shape: [12*n]} : f32[12*n]"),
    ("f32[n,3]", "%1 = reshape(%0) {shape: [3*n]} : f32[3*n] %2 = reshape(%1) {shape: [n, 3]} : f32[n,3]", ""),
    ("f32[n,3]", "%1 = expand_dims(%0) {axis: 1} : f32[n,1,3] %2 = squeeze(%1) {axis: [1]} : f32[n,3]", ""),
    ("f32[n,1,3]", "%1 = squeeze(%0) {axis: [1]} : f32[n,3] %2 = expand_dims(%1) {axis: [0, 2]} : f32[1,n,1,3]",
     "%1 = reshape(%0) {shape: [1, n, 1, 3]} : f32[1,n,1,3]"),
    ("f32[n,3,4]", "%1 = transpose(%0) {perm: [1, 2, 0]} : f32[3,4,n] "
     "%2 = transpose(%1) {perm: [1, 0, 2]} : f32[4,3,n]",
     "%1 = transpose(%0) {perm: [2, 1, 0]} : f32[4,3,n]"),
    ("f32[n,3]", "%1 = transpose(%0) : f32[3,n] %2 = transpose(%1) {perm: [-1, 0]} : f32[n,3]", ""),
    ("f32[n,1,3]", "%1 = transpose(%0) {perm: [1, 0, 2]} : f32[1,n,3]",
     "%1 = reshape(%0) {shape: [1, n, 3]} : f32[1,n,3]"),
    ("f32[n,3]", "%1 = transpose(%0) {perm: [0, 1]} : f32[n,3]", ""),
    ("f32[3]", "%1 = broadcast_to(%0) {shape: [1, 3]} : f32[1,3] %2 = broadcast_to(%1) {shape: [n, 3]} : f32[n,3]",
     "%1 = broadcast_to(%0) {shape: [n, 3]} : f32[n,3]"),
    ("f32[n,3]", "%1 = broadcast_to(%0) {shape: [n, 3]} : f32[n,3]", ""),
    ("f32[]", "%1 = broadcast_to(%0) {shape: [2, 3]} : f32[2,3]", "%1 = fill(%0) {shape: [2, 3]} : f32[2,3]"),
    ("f32[]", "%1 = fill(%0) {shape: [2, 3]} : f32[2,3] %2 = transpose(%1) : f32[3,2] "
     "%3 = strided_slice(%2) {spec: [[none, none, -2], 0]} : f32[2] %4 = reverse(%3) {axis: [0]} : f32[2]",
     "%1 = fill(%0) {shape: [2]} : f32[2]"),
    ("f32[]", "%1 = fill(%0) {shape: []} : f32[]", ""),
    ("f32[]", "%1 = fill(%0) {shape: [1]} : f32[1] %2 = squeeze(%1) : f32[]", ""),
    ("f32[n,3]", "%1 = reverse(%0) {axis: [0, 1]} : f32[n,3] %2 = reverse(%1) {axis: [-1]} : f32[n,3]",
     "%1 = reverse(%0) {axis: [0]} : f32[n,3]"),
    ("f32[n,3]", "%1 = reverse(%0) {axis: [0]} : f32[n,3] %2 = reverse(%1) {axis: [0]} : f32[n,3]", ""),
    ("f32[n,1]", "%1 = reverse(%0) {axis: [1]} : f32[n,1]", ""),
    ("f32[n,3]", "%1 = slice(%0) {begin: [0, 0], size: [n, 3]} : f32[n,3]", ""),
    ("f32[n,3]", "%1 = slice(%0) {begin: [0, 0], size: [-1, -1]} : f32[n,3]", ""),
    ("f32[9,5]", "%1 = slice(%0) {begin: [2, 1], size: [6, -1]} : f32[6,4] "
     "%2 = slice(%1) {begin: [1, 2], size: [3, 1]} : f32[3,1]",
     "%1 = slice(%0) {begin: [3, 3], size: [3, 1]} : f32[3,1]"),
    ("f32[n,3]", "%1 = strided_slice(%0) {spec: [[none, none, none], [0, none, 1]]} : f32[n,3]", ""),
    ("f32[n,3]", "%1 = constant 0.5 : f32[] %2 = fill(%1) {shape: [n, 3]} : f32[n,3] %3 = add(%2, %0) : f32[n,3]",
     "%1 = constant 0.5 : f32[] %2 = add(%1, %0) : f32[n,3]"),
    ("f32[]", "%1 = fill(%0) {shape: [2]} : f32[2] %2 = fill(%0) {shape: [2]} : f32[2] %3 = add(%1, %2) : f32[2]",
     "%1 = fill(%0) {shape: [2]} : f32[2] %2 = add(%0, %1) : f32[2]"),
]

STAYS = [
    ("f32[n,3]", "%1 = transpose(%0) : f32[3,n] %2 = reshape(%1) {shape: [3*n]} : f32[3*n]"),
    ("f32[n,3]", "%1 = reverse(%0) {axis: [0]} : f32[n,3]"),
    ("f32[9]", "%1 = slice(%0) {begin: [1], size: [4]} : f32[4]"),
    ("f32[n]", "%1 = strided_slice(%0) {spec: [[none, none, -1]]} : f32[n]"),
    ("f32[3]", "%1 = broadcast_to(%0) {shape: [2, 3]} : f32[2,3] %2 = exp(%1) : f32[2,3]"),
    ("f32[]", "%1 = fill(%0) {shape: [2]} : f32[2] %2 = add(%0, %1) : f32[2]"),
]


def graph(given: str, body: str) -> str:
    last = max([0, *[int(word.partition(" ")[0]) for word in body.split("%") if " = " in word[:6]]])
    return f"graph f(%0: {given}, %99: f32[n]) {{ {body} return %{last} }}"


@pytest.mark.parametrize(("given", "before", "after"), CASES)
def test_folds(given, before, after):
    check(fold_views, f"{graph(given, before)}\n---\n{graph(given, after)}")


@pytest.mark.parametrize(("given", "body"), STAYS)
def test_stays(given, body):
    check(fold_views, graph(given, body))


def test_only_one_of_two_repeated_operands_is_dropped():
    before = parse(graph("f32[n,3]", """%1 = constant 2.0 : f32[] %2 = fill(%1) {shape: [n, 3]} : f32[n,3]
        %3 = less(%0, %2) : i1[n,3] %4 = where(%3, %2, %2) : f32[n,3]"""))
    after = before.copy()
    assert fold_views(verify(after))
    assert verify(after).outputs[0].dims == before.outputs[0].dims
    same_results(before, after)


def test_assigning_all_is_what_is_assigned():
    for spec in ("[[none, none, none]]", "[[none, none, none], [none, none, none]]", "[]"):
        check(fold_views, f"""
graph f(%0: f32[n,3], %1: f32[n,3]) {{
  %2 = exp(%1) : f32[n,3]
  %3 = strided_slice_assign(%0, %2) {{spec: {spec}}} : f32[n,3]
  return %3
}}
---
graph f(%0: f32[n,3], %1: f32[n,3]) {{
  %2 = exp(%1) : f32[n,3]
  return %2
}}""")
    for assign in ("strided_slice_assign(%0, %1) {spec: [[none, none, -1]]}",
                   "strided_slice_assign(%0, %1) {spec: [[none, none, none], [0, 3, none]]}",
                   "strided_slice_assign(%0, %2) {spec: [[none, none, none]]}"):
        check(fold_views, f"""
graph f(%0: f32[4,3], %1: f32[4,3], %2: f32[3]) {{
  %3 = {assign} : f32[4,3]
  return %3
}}""")
