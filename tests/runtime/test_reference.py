"""The reference backend runs the op table, control flow and failures as the processor's does: equal bits, equal errors.

The processor's programs are held to eager execution by `tests/tracer/test_function_ops.py`, over the same table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.case import Case, named
from ops.table import cases, samples

import twofold as tf
from twofold.codegen import lockstep, loop, planner, schedule
from twofold.eager.executing import executable, execute
from twofold.eager.tensor import Tensor, wrap
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir import nest, ops, passes
from twofold.ir.graph_text import parse
from twofold.runtime.cpu import cpu
from twofold.runtime.program import Executable, pieces
from twofold.runtime.reference import Interpreted, reference
from twofold.tracer.function import trace


def interpreted(f: Callable[..., Any], tensors: list[Tensor],
                dims: list[Any] | None = None) -> tuple[Executable, list[Any]]:
    """The graph of `f` on the reference backend, and what it captures.

    Args:
        dims: of the operands; their own by default.
    """
    traced = trace(f, [tf.TensorSpec(t.shape if dims is None else dims[n], t.dtype) for n, t in enumerate(tensors)])
    return executable(traced.graph, improve=lambda copy: passes.optimise(copy), backend=reference), traced.captures


def check(f: Callable[..., Any], tensors: list[Tensor], dims: list[Any] | None = None) -> Executable:
    """Requires the bits of eager execution; gives what ran."""
    tf.random.set_seed(5)
    expected = nest.flatten(f(*tensors))
    tf.random.set_seed(5)
    program, captures = interpreted(f, tensors, dims)
    given = [tf.convert_to_tensor(t)._array for t in (*tensors, *captures)]
    for want, result in zip(expected, execute(program, given), strict=True):
        want = tf.convert_to_tensor(want)._array
        assert (result.dtype, result.shape) == (want.dtype, want.shape)
        if want.dtype == object:
            assert result.tolist() == want.tolist()
        else:
            assert np.ascontiguousarray(result).tobytes() == np.ascontiguousarray(want).tobytes()
    return program


def operands(case: Case) -> list[Tensor]:
    return [wrap(np.asarray(a)) for a in case.arrays(case.main, case.shapes[0], salt="function")]


@pytest.mark.parametrize("case", samples(), ids=str)
def test_the_op_table(case: Case) -> None:
    check(lambda *t: named(case.fn)(*t, **case.kwargs), operands(case))


def test_what_is_native_on_the_processor_is_so_here() -> None:
    """Nodes that the processor's programs run and that are left to Python here."""
    left: set[str] = set()
    for case in cases():
        specs = [tf.TensorSpec(t.shape, t.dtype) for t in operands(case)]
        graph = trace(lambda *t, case=case: named(case.fn)(*t, **case.kwargs), specs).graph
        cpu.prepare()
        left |= {n.op.name for n in passes.optimise(graph).nodes if cpu.supports(n) and not reference.supports(n)}
    assert left == set()


def test_loops_branches_and_slots() -> None:
    def running(x: Any) -> Any:
        def body(i: Any, total: Any, kept: Any) -> Any:
            total = tf.cond(tf.reduce_sum(total) > 1.0, lambda: total - x[i], lambda: total + tf.gather(x, i))
            return i + 1, total, kept.write(i, tf.tanh(total))
        kept = tf.TensorArray(tf.float32, size=6, element_shape=[3])
        return tf.while_loop(lambda i, *_: i < 6, body, (0, tf.zeros([3]), kept))[2].stack()
    x = tf.constant(np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32))
    assert isinstance(check(running, [x]).whole, Interpreted)


def test_unknown_sizes_and_partial_results() -> None:
    x = tf.constant(np.random.default_rng(0).normal(size=(90, 100)).astype(np.float32))
    program = check(lambda x: x / tf.reduce_sum(tf.square(x)), [x], [[None, 100]])
    assert isinstance(program.whole, Interpreted)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64, dt.bfloat16, dt.float16, dt.complex64, dt.int32],
                         ids=lambda d: d.name)
def test_products_of_more_than_one_block(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = (tf.cast(rng.normal(size=s) * 3, dtype) for s in ((2, 3, 300), (300, 5)))
    check(tf.matmul, [a, b])
    check(lambda a, b: tf.matmul(b, a, transpose_a=True, transpose_b=True), [a, b])


@pytest.mark.parametrize(("dtype", "known"), [(dt.float32, True), (dt.bfloat16, False)],
                         ids=["float32", "bfloat16-unknown-sizes"])
def test_convolutions_of_more_than_one_block_and_their_gradients(dtype: Any, known: bool) -> None:
    def convolved(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = tf.nn.conv2d(x, w, 1, "SAME")
        return y, tape.gradient(y, [x, w])
    rng = np.random.default_rng(4)
    x, w = (tf.cast(rng.normal(size=s) * 3, dtype) for s in ((2, 3, 4, 33), (3, 3, 33, 4)))
    program = check(convolved, [x, w], None if known else [[None, None, None, 33], [3, 3, 33, 4]])
    assert isinstance(program.whole, Interpreted)


def test_failed_checks_tell_the_same() -> None:
    def taken(x: Any, i: Any) -> Any:
        return tf.gather(x, i)
    x, i = tf.constant([1.0, 2.0]), tf.constant([0, 7])
    told = []
    for backend in (cpu, reference):
        traced = trace(taken, [tf.TensorSpec(t.shape, t.dtype) for t in (x, i)])
        with pytest.raises(tf.errors.InvalidArgumentError) as failure:
            execute(executable(traced.graph, backend=backend), [x._array, i._array])
        told.append(str(failure.value))
    assert told[0] == told[1]


def test_an_input_that_gives_its_memory_away_is_written_over() -> None:
    graph = parse("graph f(%0: f32[4], %1: f32[4]) { %2 = add(%0, %1) : f32[4] \n return %2 }")
    a, b = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    [out] = Executable(graph, lambda *_: [], reference, {0: 0})([a, b])
    assert np.shares_memory(out, a) and a.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_plan_runs_on_both_backends() -> None:
    """A plan for a machine without kernels of its own is a plan for the processor, too."""
    graph = parse("""
graph f(%0: f32[40,30], %1: f32[30,20]) {
  %2 = matmul(%0, %1) : f32[40,20]
  %3 = tanh(%2) : f32[40,20]
  %4 = reduce_sum(%3) {axis: [0]} : f32[20]
  return %3, %4
}""")
    rng = np.random.default_rng(2)
    arrays = [rng.normal(size=s).astype(np.float32) for s in ((40, 30), (30, 20))]
    plan = planner.plan(graph, backend=reference)
    for backend in (cpu, reference):
        memory = [backend.copy_to(a) for a in arrays]
        outputs = backend.compile(plan)(memory, {})
        told = [backend.copy_from(a).tobytes() for a in outputs]
        assert told == [t.tobytes() for t in cpu.compile(planner.plan(graph, backend=cpu))(arrays, {})]


def test_what_lies_outside_of_memory_is_an_error() -> None:
    b = loop.LoopBuilder("beyond")
    x = b.pointer("x", dt.float32)
    with b.for_(b.start, b.stop) as i:
        b.store(x, i - 1, 1.0)
    with pytest.raises(IndexError, match=r"x\[-1\.\.2\] lies outside"):
        lockstep.run(b.finish(), 4, [lockstep.ByteMemory(np.zeros(16, np.uint8))])


def test_pieces_are_those_that_the_backend_supports() -> None:
    graph = parse("graph f(%0: f32[4,3], %1: f32[3,2]) { %2 = matmul(%0, %1) : f32[4,2] \n return %2 }")
    assert [type(p) for p in pieces(graph, backend=reference)] == [g.Graph]


def test_products_of_more_batch_dimensions_than_kernels_take() -> None:
    """They take 16; products of more are Python's."""
    rng = np.random.default_rng(3)
    for batches, natively in ((16, True), (17, False)):
        a, b = (rng.normal(size=(*[1] * (batches - 2), 2, 3, *s)).astype(np.float32) for s in ((5, 4), (4, 2)))
        text = [f"f32[{','.join(map(str, x.shape))}]" for x in (a, b, np.zeros((*a.shape[:-1], 2)))]
        graph = parse(f"graph f(%0: {text[0]}, %1: {text[1]}) {{ %2 = matmul(%0, %1) : {text[2]} \n return %2 }}")
        for backend in (cpu, reference):
            assert [isinstance(p, g.Graph) for p in pieces(graph, backend)] == [natively]
        told = [execute(executable(graph, backend=backend), [a, b])[0] for backend in (cpu, reference)]
        assert told[0].tobytes() == told[1].tobytes()
        np.testing.assert_allclose(told[0], a @ b, rtol=1e-5, atol=1e-6)


def test_drivers_call_the_kernel_that_they_are_given() -> None:
    """Rows of an index space, one after another and in tiles: the row kernel is an argument, by whatever word."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(3, 40, 70)).astype(np.float32), rng.normal(size=(70, 40)).astype(np.float32)
    row = schedule.map_rows("add", ops.add.body, (dt.float32,) * 2, (dt.float32,), {}, "vvg")
    for driver in (schedule.grid(), schedule.tiles()):
        out = np.zeros_like(x)
        memory = [lockstep.ByteMemory(a.reshape(-1).view(np.uint8)) for a in (out, x, y)]
        if driver.name == "grid":
            head, total = [row, 3, 2, 70, 1, 3, 40], x.size
            ways = [[11200, 280], [11200, 280], [0, 4]]
        else:
            tall = 16
            head, total = [row, 3, 1, 40, tall, 70, 1, 3], 3 * -(-40 // tall) * -(-70 // schedule.TILE_WIDTH)
            ways = [[11200, 280, 4], [11200, 280, 4], [0, 4, 160]]
        table = [word for m, way in zip(memory, ways, strict=True) for word in (m, *way)]
        assert lockstep.run(driver, total, [*head, *table, 40 - 1]) == 0
        assert np.array_equal(out, x + y.T)
