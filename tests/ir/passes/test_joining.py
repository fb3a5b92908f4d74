"""Parts of an array that are added up among zeros become a concatenation."""

from __future__ import annotations

import pytest
from rewrites import check

from twofold.ir.passes.joining import join_parts

HALVES = """
graph f(%0: f32[n,4], %1: f32[n,2]) {{
  %2 = constant {zero} : f32[]
  %3 = fill(%2) {{shape: [n, 6]}} : f32[n,6]
  %4 = strided_slice_assign(%3, %1) {{spec: [[none, none, none], [{begin}, none, none]]}} : f32[n,6]
  %5 = strided_slice_assign(%3, %0) {{spec: [[none, none, none], [none, 4, 1]]}} : f32[n,6]
  %6 = add(%4, %5) : f32[n,6]
  return %6
}}
"""

TO_HALVES = """---
graph f(%0: f32[n,4], %1: f32[n,2]) {
  %2 = constant 0.0 : f32[]
  %3 = add(%0, %2) : f32[n,4]
  %4 = add(%1, %2) : f32[n,2]
  %5 = concat(%3, %4) {axis: 1} : f32[n,6]
  return %5
}
"""

ITEMS = """
graph f(%0: i32[2], %1: i32[2], %2: i32[2]) {
  %3 = constant 0 : i32[]
  %4 = fill(%3) {shape: [3, 2]} : i32[3,2]
  %5 = strided_slice_assign(%4, %0) {spec: [-3]} : i32[3,2]
  %6 = strided_slice_assign(%4, %1) {spec: [1]} : i32[3,2]
  %7 = add(%6, %5) : i32[3,2]
  %8 = strided_slice_assign(%4, %2) {spec: [[2, 3, none]]} : i32[3,2]
  %9 = strided_slice_assign(%4, %2) {spec: [2]} : i32[3,2]
  %10 = add(%9, %7) : i32[3,2]
  return %10
}
---
graph f(%0: i32[2], %1: i32[2], %2: i32[2]) {
  %3 = expand_dims(%0) {axis: 0} : i32[1,2]
  %4 = expand_dims(%1) {axis: 0} : i32[1,2]
  %5 = expand_dims(%2) {axis: 0} : i32[1,2]
  %6 = concat(%3, %4, %5) {axis: 0} : i32[3,2]
  return %6
}
"""


def test_slices_and_items_are_joined() -> None:
    check(join_parts, HALVES.format(zero="0.0", begin=4) + TO_HALVES)
    check(join_parts, ITEMS)


def test_places_may_count_from_the_end() -> None:
    check(join_parts, HALVES.format(zero="0.0", begin=-2) + TO_HALVES)


@pytest.mark.parametrize("zero, first", [("-0.0", "[none, 4, 1]"), ("0.5", "[none, 4, 1]"), ("0.0", "[1, 5, 1]"),
                                         ("0.0", "[3, none, -1]")])
def test_what_is_no_sum_of_parts_stays(zero: str, first: str) -> None:
    check(join_parts, HALVES.format(zero=zero, begin=4).replace("[none, 4, 1]", first))


def test_parts_of_one_place_are_added_up() -> None:
    check(join_parts, """
graph f(%0: i32[2], %1: i32[2]) {
  %2 = constant 0 : i32[]
  %3 = fill(%2) {shape: [3, 2]} : i32[3,2]
  %4 = strided_slice_assign(%3, %0) {spec: [1]} : i32[3,2]
  %5 = strided_slice_assign(%3, %1) {spec: [1]} : i32[3,2]
  %6 = add(%4, %5) : i32[3,2]
  return %6
}
""")
