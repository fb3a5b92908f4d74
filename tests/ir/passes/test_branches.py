"""Branches that are known are taken."""

from __future__ import annotations

from rewrites import check

from twofold.ir.passes.branches import take_known_branches

COND = """
  %3 = cond(%2, %1, %0) : f32[n] {
    graph then(%0: f32[n], %1: i1[]) {
      %2 = exp(%0) : f32[n]
      return %2
    }
    graph otherwise(%0: f32[n], %1: i1[]) {
      %2 = cond(%1, %0) : f32[n] {
        graph a(%0: f32[n]) {
          %1 = sin(%0) : f32[n]
          return %1
        }
        graph b(%0: f32[n]) {
          return %0
        }
      }
      return %2
    }
  }
  return %3
}"""


def test_true_takes_the_first():
    check(take_known_branches, "graph f(%0: i1[], %1: f32[n]) {\n  %2 = constant true : i1[]" + COND + """
---
graph f(%0: i1[], %1: f32[n]) {
  %2 = exp(%1) : f32[n]
  return %2
}""")


def test_false_takes_the_second_with_what_is_inside():
    check(take_known_branches, "graph f(%0: i1[], %1: f32[n]) {\n  %2 = constant false : i1[]" + COND + """
---
graph f(%0: i1[], %1: f32[n]) {
  %2 = cond(%0, %1) : f32[n] {
    graph a(%0: f32[n]) {
      %1 = sin(%0) : f32[n]
      return %1
    }
    graph b(%0: f32[n]) {
      return %0
    }
  }
  return %2
}""")


def test_unknown_stays():
    check(take_known_branches, "graph f(%0: i1[], %1: f32[n]) {\n  %2 = logical_not(%0) : i1[]" + COND)


def test_what_both_branches_hand_through_is_the_operand():
    check(take_known_branches, """
graph f(%0: i1[], %1: f32[n], %2: f32[]) {
  %3, %4 = cond(%0, %1, %2) : f32[n], f32[] {
    graph then(%0: f32[n], %1: f32[]) {
      %2 = exp(%0) : f32[n]
      return %2, %1
    }
    graph otherwise(%0: f32[n], %1: f32[]) {
      return %0, %1
    }
  }
  return %3, %4
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
  return %3, %2
}""")


def test_a_loop_that_never_runs():
    check(take_known_branches, """
graph f(%0: f32[n], %1: f32[]) {
  %2 = while(%0, %1) {carried: 1, trips: none} : f32[n] {
    graph test(%0: f32[n], %1: f32[]) {
      %2 = constant false : i1[]
      return %2
    }
    graph body(%0: f32[n], %1: f32[]) {
      %2 = multiply(%0, %1) : f32[n]
      return %2
    }
  }
  return %2
}
---
graph f(%0: f32[n], %1: f32[]) {
  return %0
}""")


def test_sizes_that_a_taken_branch_makes_keep_the_names_of_the_results():
    check(take_known_branches, """
graph f(%0: f32[n]) {
  %1 = constant true : i1[]
  %2 = cond(%1, %0) : i64[h,1] {
    graph then(%0: f32[n]) {
      %1 = is_nan(%0) : i1[n]
      %2 = nonzero(%1) : i64[k,1]
      return %2
    }
    graph otherwise(%0: f32[n]) {
      %1 = constant [[3]] : i64[1,1]
      return %1
    }
  }
  %3 = cast(%2) {dtype: f32} : f32[h,1]
  %4 = size_of() {size: h, dtype: i32} : i32[]
  return %3, %4
}
---
graph f(%0: f32[n]) {
  %1 = is_nan(%0) : i1[n]
  %2 = nonzero(%1) : i64[h,1]
  %3 = cast(%2) {dtype: f32} : f32[h,1]
  %4 = size_of() {size: h, dtype: i32} : i32[]
  return %3, %4
}""")


def test_sizes_of_a_taken_branch_that_are_no_names():
    """What reads the result, in regions too, speaks of the size that it has."""
    check(take_known_branches, """
graph f(%0: f32[n], %1: i1[]) {
  assume h <= 100
  %2 = constant true : i1[]
  %3 = cond(%2, %0) : f32[h] {
    graph then(%0: f32[n]) {
      %1 = concat(%0, %0) {axis: 0} : f32[2*n]
      return %1
    }
    graph otherwise(%0: f32[n]) {
      %1 = constant [3.0] : f32[1]
      return %1
    }
  }
  %4 = cond(%1, %3) : f32[h] {
    graph then(%0: f32[h]) {
      %1 = exp(%0) : f32[h]
      return %1
    }
    graph otherwise(%0: f32[h]) {
      return %0
    }
  }
  return %4
}
---
graph f(%0: f32[n], %1: i1[]) {
  assume 2*n <= 100
  %2 = concat(%0, %0) {axis: 0} : f32[2*n]
  %3 = cond(%1, %2) : f32[2*n] {
    graph then(%0: f32[2*n]) {
      %1 = exp(%0) : f32[2*n]
      return %1
    }
    graph otherwise(%0: f32[2*n]) {
      return %0
    }
  }
  return %3
}""")
