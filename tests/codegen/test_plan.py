"""Plans as text: a graph goes in, and what a run of it does comes out, without any machine code."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from compiled import assert_same_bits
from house.tree import ROOT

import twofold as tf
from twofold.codegen import plan_text, planner, target
from twofold.ir import passes
from twofold.ir.graph import Graph
from twofold.ir.graph_text import parse
from twofold.runtime.cpu import cpu

# Tiles of products depend on the processor: these plans are for one with vectors of 256 bits, and for one thread.
PROCESSOR = target.Target("x86_64-unknown-linux-gnu", "", "", 256, True, True, True, True, False, threads=1)


def check(graph: str | Graph, expected: str, **options: Any) -> None:
    with target.use(PROCESSOR):
        plan = planner.plan(parse(graph) if isinstance(graph, str) else graph, backend=cpu, **options)
    assert plan_text.text(plan) == expected.strip()


def test_values_share_memory_and_scratch_memory_is_placed() -> None:
    check("""
graph chain(%0 x: f32[64,32], %1: f32[32,8], %2: f32[8]) {
  %3 = matmul(%0, %1) : f32[64,8]
  %4 = add(%3, %2) : f32[64,8]
  %5 = relu(%4) : f32[64,8]
  %6 = softmax(%5) {axis: -1} : f32[64,8]
  %7 = reduce_sum(%6) {axis: [0]} : f32[8]
  return %6, %7
}""", """
plan chain {
  %0 x: f32[64,32] is input 0
  %1: f32[32,8] is input 1
  %2: f32[8] is input 2
  %3: f32[64,8] is output 0 holds softmax
  %4: f32[8] is output 1 holds reduce_sum
  arena 2048 bytes
  %5: f32[64,8] at 0 in steps 0-2 holds matmul, relu
  0: %5 = gemm/float32/tall(%0, %1; 0, 64, 8, 32, 8, 32, 1, 8, 1, 66, 16, 0) over 1 x 1024
  1: %5 = add_relu(%5, %2) over 64 x 8
  2: %3 = softmax f32(%3, %5; 8) over 64 x 128
  3: %4 = reduce_sum(%3) over 1 x 129
  work 9857
}""")


def test_steps_that_go_over_the_same_rows_run_block_by_block() -> None:
    check("""
graph attention(%0 q: f32[9,199,4], %1 k: f32[9,199,4], %2 v: f32[9,199,4]) {
  %3 = constant 0.125 : f32[]
  %4 = matmul(%0, %1) {transpose_b: true} : f32[9,199,199]
  %5 = multiply(%4, %3) : f32[9,199,199]
  %6 = softmax(%5) {axis: -1} : f32[9,199,199]
  %7 = sin(%2) : f32[9,199,4]
  %8 = matmul(%6, %7) : f32[9,199,4]
  return %8
}""", """
plan attention {
  %0 q: f32[9,199,4] is input 0
  %1 k: f32[9,199,4] is input 1
  %2 v: f32[9,199,4] is input 2
  %3: f32[9,199,4] is output 0 holds matmul
  arena 191104 bytes
  %4: f32[9,199,4] at 162432 in steps 0-3 holds sin
  %5: f32[9,199,199] at 0 in steps 1-3 holds multiply, 102 rows of it
  %6: f32[9,199,199] at 81216 in steps 1-3 holds softmax, 102 rows of it
  shared from work 65536 on, in parts of 32768 or more
  0: %4 = sin(%2) over 7164 x 18, shared by 3 or less
  by 102 of 9 x 199 rows, shared by 18 or less {
    1: %5 = gemm/float32/tall then multiply(%0, %1; 0, 5, 199, 199, 4, 0, 4, 1, 1, 4, 102, 208, 1, 9, \
796, 796, 39601, multiply, 1) over 18 x 64351
    2: %6 = softmax f32(%6, %5; 199) over 1791 x 3184
    3: %3 = gemm/float32/tall(%6, %4; 0, 199, 4, 199, 4, 199, 1, 4, 1, 102, 16, 1, 9, 39601, 796, 796) over 18 x 4950
  }
  work 7078914
}""")


def test_what_several_steps_read_is_overwritten_by_the_last_pass_over_its_rows() -> None:
    check("""
graph centred(%0: f32[16,8], %1: f32[8,8]) {
  %2 = matmul(%0, %1) : f32[16,8]
  %3 = matmul(%2, %1) : f32[16,8]
  %4 = reduce_sum(%2) {axis: [1], keepdims: true} : f32[16,1]
  %5 = subtract(%2, %4) : f32[16,8]
  %6 = matmul(%5, %1) : f32[16,8]
  return %3, %6
}""", """
plan centred {
  %0: f32[16,8] is input 0
  %1: f32[8,8] is input 1
  %2: f32[16,8] is output 0 holds matmul
  %3: f32[16,8] is output 1 holds matmul
  arena 512 bytes
  %4: f32[16,8] at 0 in steps 0-3 holds matmul, subtract
  0: %4 = gemm/float32/tall(%0, %1; 0, 16, 8, 8, 8, 8, 1, 8, 1, 18, 16, 0) over 1 x 64
  1: %2 = gemm/float32/tall(%4, %1; 0, 16, 8, 8, 8, 8, 1, 8, 1, 18, 16, 0) over 1 x 64
  2: %4 = reduce_sum_subtract(%4) over 16 x 17
  3: %3 = gemm/float32/tall(%4, %1; 0, 16, 8, 8, 8, 8, 1, 8, 1, 18, 16, 0) over 1 x 64
  work 464
}""")


@pytest.mark.parametrize("rows, columns", [(16, 8), (40, 130)])
def test_passes_over_rows_that_overwrite_what_they_read(rows: int, columns: int) -> None:
    """Values that a reduction takes, or that are read in several ways, keep memory of their own."""
    def fn(x: Any, w: Any) -> Any:
        a = tf.matmul(x, w)
        low = a - tf.reduce_mean(a, -1, keepdims=True)
        norm = low / tf.sqrt(tf.reduce_mean(low * low, -1, keepdims=True) + 1.0)
        both = norm + tf.sin(low) * tf.reduce_max(norm, -1, keepdims=True)
        turned = a - tf.reduce_sum(both, -1, keepdims=True)
        return [tf.matmul(value, w) for value in (a, low, norm, both, turned)]
    rng = np.random.default_rng(0)
    assert_same_bits(fn, [rng.normal(size=shape).astype(np.float32) for shape in ((rows, columns), (columns, columns))])


def test_unknown_sizes_are_named_and_steps_that_may_be_long_are_shared() -> None:
    check("""
graph scaled(%0: f32[n,3]) {
  %1 = square(%0) : f32[n,3]
  %2 = reduce_sum(%1) : f32[]
  %3 = divide(%0, %2) : f32[n,3]
  return %3
}""", """
plan scaled {
  sizes of n
  n0 = max((3*n + 4095)//4096, 1)
  n1 = 64*((max((3*n + 131071)//4096, 32))//16)
  n2 = 2*((3*n)//(max((3*n + 4095)//4096, 1))) + 1
  n3 = max((3*n + 20479)//4096, 5) + 2*((3*n)//(max((3*n + 4095)//4096, 1))) + \
2*max((3*n - 1)//4096, 0)*((3*n)//(max((3*n + 4095)//4096, 1))) + 3*n
  %0: f32[n,3] is input 0
  %1: f32[n,3] is output 0 holds divide
  arena n1 bytes
  %2: f32[n0] at 64 in steps 0-1 holds partial results
  %3: f32[] at 0 in steps 1-2 holds reduce_sum
  shared from work 65536 on, in parts of 32768 or more
  0: %2 = square_reduce_sum(%0; n0, 3*n) over n0 x n2, shared
  1: %3 = reduce_sum tree(%2; 3*n, n0, 1) over 1 x 4
  2: %1 = divide(%3, %0) over 3*n x 1, shared
  work n3
}""")


UPDATE = """
graph update(%0 w: f32[4096], %1 g: f32[4096], %2 i: i32[2]) {
  %3 = constant 0.5 : f32[]
  %4 = multiply(%1, %3) : f32[4096]
  %5 = subtract(%0, %4) : f32[4096]
  %6 = gather(%1, %2) {axis: 0, batch_dims: 0} : f32[2]
  return %5, %6
}"""
APART = """
plan update {
  %0 w: f32[4096] is input 0
  %1 g: f32[4096] is input 1
  %2 i: i32[2] is input 2
  %3: f32[4096] is output 0 holds subtract
  %4: f32[2] is output 1 holds gather
  0: %3 = multiply_subtract(%1, %0) over 4096 x 1
  1: %4 = gather u32 i32 flat single(%1, %2; 1, 4096, 2, 1) over 2 x 2, checks an index is out of range
  work 4100
}"""


def test_a_result_has_memory_of_its_own_unless_an_input_gives_its_away() -> None:
    check(UPDATE, APART)
    check(UPDATE, """
plan update {
  %0 w: f32[4096] is input 0, output 0 holds subtract
  %1 g: f32[4096] is input 1
  %2 i: i32[2] is input 2
  %3: f32[2] is output 1 holds gather
  0: %0 = multiply_subtract(%1, %0) over 4096 x 1
  1: %3 = gather u32 i32 flat single(%1, %2; 1, 4096, 2, 1) over 2 x 2, checks an index is out of range
  work 4100
}""", donate={0: 0})


def test_inputs_that_must_stay_intact_are_not_written_before_a_check() -> None:
    check(UPDATE, APART, donate={0: 0}, intact=True)


def test_branches() -> None:
    check("""
graph sides(%0 yes: i1[], %1 x: f32[3]) {
  %2 = cond(%0, %1) : f32[3] {
    graph then(%0: f32[3]) {
      %1 = exp(%0) : f32[3]
      return %1
    }
    graph otherwise(%0: f32[3]) {
      return %0
    }
  }
  return %2
}""", """
plan sides {
  %0 yes: i1[] is input 0
  %1 x: f32[3] is input 1
  %2: f32[3] is output 0 holds cond, exp
  if %0 {
    0: %2 = exp(%1) over 3 x 5
  } else {
    1: %2 = copy(%1) over 3 x 1
  }
  work 18
}""")


def test_parts_of_a_result_and_constants() -> None:
    check("""
graph parts(%0: f32[2,3], %1: f32[4,3]) {
  %2 = exp(%0) : f32[2,3]
  %3 = concat(%2, %1) {axis: 0} : f32[6,3]
  %4 = constant [1.0, 2.0, 3.0] : f32[3]
  %5 = add(%3, %4) : f32[6,3]
  return %3, %5
}""", """
plan parts {
  %0: f32[2,3] is input 0
  %1: f32[4,3] is input 1
  %2: f32[6,3] is output 0 holds concat
  %3: f32[6,3] is output 1 holds add
  %4: f32[3] is constant 0
  0: %2 = exp_part(%0) over 6 x 5
  1: %2[6:] = part(%1) over 12 x 1
  2: %3 = add(%2, %4) over 6 x 3
  work 60
}""")


def test_maps_side_by_side_are_shared_as_one() -> None:
    check("""
graph many(%0: f32[9000], %1: f32[8000]) {
  %2 = exp(%0) : f32[9000]
  %3 = tanh(%1) : f32[8000]
  return %2, %3
}""", """
plan many {
  %0: f32[9000] is input 0
  %1: f32[8000] is input 1
  %2: f32[9000] is output 0 holds exp
  %3: f32[8000] is output 1 holds tanh
  shared from work 65536 on, in parts of 32768 or more
  0: side by side, shared by 3 or less {
    %2 = exp(%0) over 9000 x 5
    %3 = tanh(%1) over 8000 x 6
  }
  work 102000
}""")


def test_the_loops_of_kernels_follow_where_asked_for() -> None:
    graph = parse("graph f(%0: f32[4]) { %1 = negative(%0) : f32[4] \n return %1 }")
    told = plan_text.text(planner.plan(graph, backend=cpu), kernels=True)
    assert told.partition("}\n")[2].startswith("kernel negative(start, stop, m0: f32* = args[0], m1: f32* = args[1]) {")


def test_planning_loads_no_llvm() -> None:
    program = "import sys; from twofold.codegen import planner; from twofold.runtime.cpu import cpu; cpu.prepare(); " \
              "print([m for m in sys.modules if m.partition('.')[0] in ('llvmlite', 'numba')])"
    process = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120)
    assert process.stdout.strip() == "[]"


STEP = """
plan train_step {
  %0 x: f32[32,64] is input 0
  %1 y: i32[32] is input 1
  %2 weights: f32[64,128] is input 2, output 1 holds subtract
  %3 bias: f32[128] is input 3, output 2 holds subtract
  %4 weights: f32[128,64] is input 4, output 3 holds subtract
  %5 bias: f32[64] is input 5, output 4 holds subtract
  %6 weights: f32[64,10] is input 6, output 5 holds subtract
  %7 bias: f32[10] is input 7, output 6 holds subtract
  %8 Variable: f32[64,128] is input 8, output 7 holds add
  %9 Variable: f32[128] is input 9, output 8 holds add
  %10 Variable: f32[128,64] is input 10, output 9 holds add
  %11 Variable: f32[64] is input 11, output 10 holds add
  %12 Variable: f32[64,10] is input 12, output 11 holds add
  %13 Variable: f32[10] is input 13, output 12 holds add
  %14: f32[] is output 0 holds reduce_mean
  arena 52544 bytes
  %15: f32[32,128] at 0 in steps 0-17 holds relu
  %16: f32[32,64] at 16384 in steps 1-14 holds matmul, relu
  %17: f32[32,10] at 24576 in steps 3-7 holds matmul, add
  %18: f32[32] at 25856 in steps 5-6 holds sparse_cross_entropy
  %19: f32[32,10] at 25856 in steps 7-8 holds softmax
  %20: f32[32,10] at 32768 in steps 8-13 holds scatter_add
  %21: f32[32,1] at 24576 in steps 9-10
  %22: f32[10] at 52480 in steps 11-22 holds reduce_sum
  %23: f32[32,64] at 24576 in steps 12-14 holds matmul
  %24: f32[64,10] at 49152 in steps 13-21 holds matmul
  %25: f32[32,64] at 32768 in steps 14-16 holds relu_grad
  %26: f32[64] at 52224 in steps 14-20 holds reduce_sum
  %27: f32[32,128] at 16384 in steps 15-17 holds matmul
  %28: f32[32,128] at 32768 in steps 17-18 holds relu_grad
  %29: f32[128] at 51712 in steps 17-19 holds reduce_sum
  0: %15 = gemm/float32/tall then add_relu(%0, %2, %3; 0, 4, 32, 128, 64, 0, 64, 1, 128, 1, 36, 128, 0, add_relu, 2) \
over 1 x 24576
  1: %16 = gemm/float32/tall(%15, %4; 0, 32, 64, 128, 64, 128, 1, 64, 1, 36, 64, 0) over 1 x 16384
  2: %16 = add_relu(%16, %5) over 2048 x 3
  3: %17 = gemm/float32/tall(%16, %6; 0, 32, 10, 64, 10, 64, 1, 10, 1, 36, 16, 0) over 1 x 1280
  4: %17 = add(%17, %7) over 32 x 10
  5: %18 = cross_entropy f32 i32(%17, %1; 10) over 32 x 160, checks a label is outside of the valid range [0, number \
of classes).
  6: %14 = reduce_mean(%18) over 1 x 33
  7: %19 = softmax f32(%19, %17; 10) over 32 x 160
  8: %20 = multiply_carry(%19) over 320 x 1
  9: %21 = copy() over 32 x 1
  10: %20 = scatter add f32 i32(%20, %21, %1; 1, 10, 1, 1) over 32 x 1
  11: %22 = reduce_sum(%20) over 1 x 81
  12: %23 = gemm/float32/tall(%20, %6; 1, 32, 64, 10, 64, 10, 1, 1, 10, 36, 64, 0) over 1 x 1280
  13: %24 = gemm/float32/tall(%16, %20; 0, 64, 10, 32, 10, 1, 64, 10, 1, 66, 16, 0) over 1 x 1280
  14: %25, %26 = relu_grad_reduce_sum(%23, %16) over 1 x 1025
  15: %27 = gemm/float32/tall(%25, %4; 1, 32, 128, 64, 128, 64, 1, 1, 64, 36, 128, 0) over 1 x 16384
  16: %10, %4 = gemm/float32/tall then multiply_add_multiply_subtract(%15, %25, %10, %4; 0, 4, 128, 64, 32, 0, 1, \
128, 64, 1, 132, 64, 0, multiply_add_multiply_subtract, 2) over 1 x 32768
  17: %28, %29 = relu_grad_reduce_sum(%27, %15) over 2 x 1025
  18: %8, %2 = gemm/float32/tall then multiply_add_multiply_subtract(%0, %28, %8, %2; 0, 4, 64, 128, 32, 0, 1, 64, \
128, 1, 66, 128, 0, multiply_add_multiply_subtract, 2) over 1 x 32768
  19: %9, %3 = multiply_add_multiply_subtract(%9, %29, %3) over 128 x 1
  20: %11, %5 = multiply_add_multiply_subtract(%11, %26, %5) over 64 x 1
  21: %12, %6 = multiply_add_multiply_subtract(%12, %24, %6) over 640 x 1
  22: %13, %7 = multiply_add_multiply_subtract(%13, %22, %7) over 10 x 1
  work 147839
}
"""


def test_the_training_step_of_the_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward, backward and update of `examples/digits.py`, whose variables are written over."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    import digits

    _, train_step = digits.make_step(tf.function)
    graph = train_step.get_concrete_function(tf.TensorSpec([32, 64]), tf.TensorSpec([32], tf.int32)).graph
    variables = {n: n + 1 for n in range(1, 13)}  # results behind the loss are the variables behind the batch
    check(passes.optimise(graph.copy()), STEP, donate=variables, intact=True)


def test_a_kernel_for_many_columns_serves_few_where_both_are_needed() -> None:
    def kernels(*widths: int) -> list[str]:
        def convolved(x: tf.Tensor) -> tf.Tensor:
            for n in widths:
                x = tf.nn.conv2d(x, tf.ones([3, 3, x.shape[-1], n]), 1, "SAME")
            return x
        graph = tf.function(convolved).get_concrete_function(tf.TensorSpec([2, 16, 16, 3])).graph
        with target.use(PROCESSOR):
            steps = planner.plan(graph, cpu).steps
        keys = [step.kernel.key[-1] for step in steps if step.kernel.name.startswith("conv/")]
        return [key for key in keys if key != "panels"]

    assert kernels(6) == ["forward_1"] and kernels(64) == ["forward_2"]
    assert kernels(6, 64, 6) == ["forward_2"] * 3
