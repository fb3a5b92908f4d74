"""Maps that follow a matrix product and run on its tiles: which do, that bits stay, and what memory they need.

Results are held to the ops one by one, to NumPy in float64, to the same program without epilogues, and to the reference
backend. Programs run here with a fork-join that has "threads" take their parts one after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import thread_orders
from thread_orders import same_bits, traced_for

import twofold as tf
from twofold.codegen import epilogues, gemm_shapes, plan_text, planner, row_blocks, target
from twofold.codegen.plan import Plan, Step
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import passes
from twofold.runtime import reference
from twofold.runtime.compiled import Native
from twofold.runtime.cpu import cpu
from twofold.tracer.traced import trace

_BLOCK = gemm_shapes.BLOCK


@pytest.fixture
def small_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small products have epilogues, and threads share small steps."""
    monkeypatch.setattr(epilogues, "_LEAST", 0)
    with thread_orders.three_share_all(monkeypatch):
        yield


def finished(plan: Plan) -> list[Step]:
    """The steps that have an epilogue."""
    return [step for step in plan.steps if step.epilogue is not None]


def held(fn: Callable[..., Any], arrays: Sequence[np.ndarray], count: int = 1,
         shapes: Sequence[Sequence[int | None]] | None = None, donate: dict[int, int] | None = None) -> Plan:
    """Holds a function to itself op by op, and without epilogues, in any number of threads; `count` of its products
    have one."""
    traced = traced_for(fn, arrays, shapes)
    graph = passes.optimise(traced.graph)
    plan = planner.plan(graph, cpu, donate)
    assert len(finished(plan)) == count, plan_text.text(plan)
    want = [value.numpy() for value in tf.nest.flatten(fn(*map(tf.constant, arrays)))]
    sizes = traced.accepts([a.shape for a in arrays])
    assert sizes is not None
    every = [*arrays, *[np.asarray(value) for value in traced.captures]]
    native = Native.of(plan)
    for number in (1, 2, 3):
        for order in itertools.permutations(range(number)):
            same_bits(thread_orders.run(native, every, sizes, order), want)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epilogues, "attach", lambda *arguments: None)
        apart = planner.plan(graph, cpu, donate)
    assert not finished(apart)
    same_bits(thread_orders.run(Native.of(apart), every, sizes, [0]), want)
    return plan


def interpreted(fn: Callable[..., Any], arrays: Sequence[np.ndarray],
                shapes: Sequence[Sequence[int | None]] | None = None) -> None:
    """Holds a function on the reference backend to itself op by op."""
    traced = traced_for(fn, arrays, shapes)
    plan = planner.plan(passes.optimise(traced.graph), reference.reference)
    assert finished(plan)
    sizes = traced.accepts([a.shape for a in arrays])
    assert sizes is not None
    every = [*arrays, *[np.asarray(value) for value in traced.captures]]
    same_bits(reference.reference.compile(plan)([a.copy() for a in every], sizes),
              [value.numpy() for value in tf.nest.flatten(fn(*map(tf.constant, arrays)))])


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=shape)
    return (drawn * 40).astype(dtype) if np.dtype(dtype).kind in "iu" else drawn.astype(dtype)


def dense(x: Any, w: Any, bias: Any) -> Any:
    return tf.nn.relu(tf.matmul(x, w) + bias)


# -- sizes and dtypes -----------------------------------------------------------------------------------
@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("inner", [0, 1, 5, _BLOCK - 1, _BLOCK])
@pytest.mark.parametrize("rows", [2, 13, 14, 15, 28, 57, 300])
def test_rows_and_inner_indices(rows: int, inner: int) -> None:
    x, w, bias = numbers(rows, inner), numbers(inner, 64, seed=1), numbers(64, seed=2)
    held(dense, [x, w, bias])
    exact = np.maximum(x.astype(np.float64) @ w.astype(np.float64) + bias, 0)
    np.testing.assert_allclose(dense(x, w, bias).numpy(), exact, atol=1e-4)  # which has the same bits


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("inner", [_BLOCK + 1, 2 * _BLOCK, 700])
def test_sums_of_several_blocks(inner: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They could have one: it runs behind the last block."""
    arrays = [numbers(31, inner), numbers(inner, 70, seed=1), numbers(70, seed=2)]
    held(dense, arrays, 0)
    monkeypatch.setattr(epilogues, "_is_worth", lambda size, tiles: True)
    held(dense, arrays)
    held(dense, arrays, shapes=[[None, None], [None, 70], [70]])
    interpreted(dense, [numbers(15, inner), numbers(inner, 33, seed=1), numbers(33, seed=2)])


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("columns", [32, 33, 47, 48, 63, 65, 100, 257, 1000])
@pytest.mark.parametrize("rows", [3, 31, 126])
def test_columns(rows: int, columns: int) -> None:
    held(dense, [numbers(rows, 9), numbers(9, columns, seed=1), numbers(columns, seed=2)])


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("flips", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("sizes", [(31, 33, 15), (70, 64, 256)])
def test_turned_operands(flips: tuple[bool, bool], sizes: tuple[int, int, int]) -> None:
    rows, columns, inner = sizes
    a, b = (numbers(*(shape[::-1] if flip else shape), seed=n)
            for n, (shape, flip) in enumerate(zip([(rows, inner), (inner, columns)], flips, strict=True)))
    held(lambda a, b, c: tf.minimum(tf.matmul(a, b, *flips) * 3.0, c), [a, b, numbers(columns, seed=2)])


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int64],
                         ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("sizes", [(15, 33, 31), (50, 96, 200)])
def test_dtypes(dtype: Any, sizes: tuple[int, int, int]) -> None:
    rows, columns, inner = sizes
    held(dense, [numbers(rows, inner, dtype=dtype), numbers(inner, columns, dtype=dtype, seed=1),
                 numbers(columns, dtype=dtype, seed=2)])


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("inner", [3, 256, 1000, 1024])
def test_8_bit_integers(inner: int) -> None:
    def scaled(a: Any, b: Any, c: Any) -> Any:
        return tf.cast(tf.matmul(a, b, output_type=tf.int32) + c, tf.float32) * 0.25
    block = gemm_shapes.block(dt.int8)
    held(scaled, [numbers(30, inner, dtype=np.int8), numbers(inner, 40, dtype=np.int8, seed=1),
                  numbers(40, dtype=np.int32, seed=2)], int(inner <= block))


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("narrow", [tf.bfloat16, tf.float16, tf.float64, tf.int32], ids=lambda d: d.name)
def test_casts(narrow: Any) -> None:
    def cast(x: Any, w: Any, bias: Any) -> Any:
        return tf.cast(tf.matmul(x, w) + bias, narrow)
    plan = held(cast, [numbers(40, 64), numbers(64, 96, seed=1), numbers(96, seed=2)])
    assert not any(memory.dims == (40, 96) for memory in plan.offsets if hasattr(memory, "dims"))


@pytest.mark.usefixtures("small_is_worth_it")
def test_numbers_that_are_none() -> None:
    x, w = numbers(29, 40), numbers(40, 65, seed=1)
    x[3], x[4, 5], w[7, 8] = np.nan, np.inf, -np.inf
    held(dense, [x, w, numbers(65, seed=2)])
    held(lambda x, w: tf.where(tf.matmul(x, w) > 0.0, 1.0, -0.0), [x, w])


# -- operands and results -------------------------------------------------------------------------------
def columns_and_rows(x: Any, w: Any, row: Any, column: Any, full: Any, one: Any) -> Any:
    z = tf.matmul(x, w)
    return tf.maximum(z * column + row, full) - one


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("sizes", [(15, 33), (56, 64)])
def test_operands_that_broadcast(sizes: tuple[int, int]) -> None:
    rows, columns = sizes
    held(columns_and_rows, [numbers(rows, 9), numbers(9, columns, seed=1), numbers(1, columns, seed=2),
                            numbers(rows, 1, seed=3), numbers(rows, columns, seed=4), numbers(1, seed=5)])


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("bias", [(2, 3, 20, 40), (3, 20, 40), (2, 1, 20, 40), (1, 3, 1, 40), (2, 3, 20, 1), (40,),
                                  (2, 1, 1, 1)], ids=str)
@pytest.mark.parametrize("shared", [False, True])
def test_batches(bias: tuple[int, ...], shared: bool) -> None:
    right = numbers(9, 40, seed=1) if shared else numbers(2, 3, 9, 40, seed=1)
    held(lambda a, b, c: tf.nn.relu(tf.matmul(a, b) - c), [numbers(2, 3, 20, 9), right, numbers(*bias, seed=2)])


@pytest.mark.usefixtures("small_is_worth_it")
def test_views_of_leading_axes() -> None:
    def layer(x: Any, w: Any, bias: Any, scale: Any) -> Any:
        flat = tf.matmul(tf.reshape(x, [-1, 8]), w)
        return tf.nn.relu(tf.reshape(flat, [4, 5, 48]) + bias) * scale

    def heads(x: Any, w: Any, bias: Any) -> Any:
        return tf.reshape(tf.matmul(x, w), [4, 5, 6, 8]) * 2.0 + bias
    x, w = numbers(4, 5, 8), numbers(8, 48, seed=1)
    held(layer, [x, w, numbers(48, seed=2), numbers(4, 1, 1, seed=3)])
    held(heads, [x, w, numbers(6, 8, seed=2)])
    held(heads, [x, w, numbers(8, seed=2)], 0)  # columns repeat within a row of the product
    held(lambda x, w: tf.transpose(tf.matmul(x, w), [1, 0, 2]) + 1.0, [x, w], 0)


@pytest.mark.usefixtures("small_is_worth_it")
def test_the_product_is_needed_elsewhere() -> None:
    def kept(x: Any, w: Any, bias: Any) -> Any:
        z = tf.matmul(x, w)
        return z, tf.nn.relu(z + bias)

    def read_twice(x: Any, w: Any, bias: Any) -> Any:
        z = tf.matmul(x, w)
        return tf.nn.relu(z) * bias + z, tf.matmul(z, w, transpose_b=True)

    def before(x: Any, w: Any, bias: Any) -> Any:
        z = tf.matmul(x, w) + bias
        return z, tf.nn.relu(z)
    arrays = [numbers(33, 20), numbers(20, 70, seed=1), numbers(70, seed=2)]
    for fn in (kept, read_twice, before):
        held(fn, arrays)
    plan = held(lambda x, w, bias: tf.matmul(tf.nn.relu(tf.matmul(x, w) + bias), w, transpose_b=True), arrays)
    assert sum(v.dims == (33, 70) for v in plan.offsets if hasattr(v, "dims")) == 1  # the result of the epilogue


@pytest.mark.usefixtures("small_is_worth_it")
def test_what_is_made_later_is_no_operand() -> None:
    def both(x: Any, w: Any) -> Any:
        return tf.matmul(x, w) + tf.reduce_sum(tf.matmul(x, w * 2.0), 0)

    def two(x: Any, w: Any) -> Any:
        return tf.nn.relu(tf.matmul(x, w) - tf.matmul(x * 2.0, w))
    for fn, count in ((both, 0), (two, 1)):
        held(fn, [numbers(33, 20), numbers(20, 70, seed=1)], count)


@pytest.mark.usefixtures("small_is_worth_it")
def test_what_may_fail_is_no_epilogue() -> None:
    held(lambda x, w, d: tf.matmul(x, w) // d, [numbers(20, 9, dtype=np.int32), numbers(9, 40, dtype=np.int32, seed=1),
                                                np.arange(1, 41, dtype=np.int32)], 0)


@pytest.mark.usefixtures("small_is_worth_it")
def test_complex_products() -> None:
    a, b = (numbers(20, 32, seed=n) + 1j * numbers(20, 32, seed=n + 2) for n in range(2))
    held(lambda a, b: tf.matmul(a, b, adjoint_b=True) * 2.0, [a.astype(np.complex64), b.astype(np.complex64)], 0)


# -- memory that is taken over --------------------------------------------------------------------------
@pytest.mark.usefixtures("small_is_worth_it")
def test_operands_that_are_donated() -> None:
    def residual(x: Any, w: Any, r: Any) -> Any:
        return tf.nn.relu(tf.matmul(x, w)) + r

    def itself(x: Any, w: Any) -> Any:
        return x + tf.matmul(x, w)

    def right(w: Any, x: Any) -> Any:
        return tf.matmul(x, w) * 0.1 + w

    def read_behind(x: Any, w: Any, r: Any) -> Any:
        return tf.matmul(x, w) + r, tf.matmul(r, w)

    def read_between(x: Any, w: Any, r: Any) -> Any:
        z, other = tf.matmul(x, w), tf.matmul(r, w)
        return z + r, other
    x, square = numbers(64, 64), numbers(64, 64, seed=1)
    plan = held(residual, [x, square, numbers(64, 64, seed=2)], donate={0: 2})
    assert plan.donated == {0: 2}
    for fn in (itself, right):  # tiles are written while the product reads what lies there
        plan = held(fn, [x, square], 0, donate={0: 0})
        assert plan.donated == {0: 0}
        assert held(fn, [x, square]).donated == {}
    r = numbers(64, 64, seed=2)
    assert held(read_behind, [x, square, r], donate={0: 2}).donated == {}  # r is needed longer in any case
    assert held(read_between, [x, square, r], 0, donate={0: 2}).donated == {0: 2}
    assert held(read_between, [x, square, r]).donated == {}

    def fails_between(x: Any, w: Any, r: Any, d: Any) -> Any:
        z, other = tf.matmul(x, w), 7 // d
        return z + r, other
    d = np.ones(3, np.int32)
    traced = traced_for(fails_between, [x, square, r, d])
    assert planner.plan(passes.optimise(traced.graph), cpu, {0: 2}, intact=True).donated == {0: 2}
    held(fails_between, [x, square, r, d], 0, donate={0: 2})


def test_variables_that_share_memory() -> None:
    w, begin = tf.constant(numbers(128, 128)), numbers(256, 128, seed=1)
    v = tf.Variable(begin)

    @tf.function
    def step(x: Any) -> Any:
        return v.assign(tf.matmul(x, w) + v)
    for x in (v.read_value(), tf.identity(v)):
        before = x.numpy()
        want = (tf.matmul(x, w) + v).numpy()
        step(x)
        same_bits([v.numpy(), x.numpy()], [want, before])


@pytest.mark.usefixtures("small_is_worth_it")
def test_operands_that_die() -> None:
    def chain(x: Any, w: Any) -> Any:
        r = tf.exp(x)
        y = tf.matmul(x * 2.0, w) + r  # takes the memory of r
        z = tf.matmul(y, w) + y  # and not that of y
        return tf.matmul(z, w)
    held(chain, [numbers(48, 48) * 0.1, numbers(48, 48, seed=1)], 2)


# -- unknown sizes, loops, regions, long programs -------------------------------------------------------
@pytest.mark.usefixtures("small_is_worth_it")
def test_unknown_sizes() -> None:
    shapes = [[None, 20], [20, 48], [48]]
    for rows in (1, 2, 14, 33, 200):
        arrays = [numbers(rows, 20), numbers(20, 48, seed=1), numbers(48, seed=2)]
        held(dense, arrays, shapes=shapes)
    held(dense, arrays, 0, shapes=[[None, None], [None, 48], [48]])  # of who knows how many blocks
    held(dense, arrays, 0, shapes=[[None, 20], [20, None], [None]])
    held(dense, [numbers(5, 7, 20), *arrays[1:]], shapes=[[None, None, 20], [20, 48], [48]])
    held(lambda a, b, c: tf.matmul(a, b, transpose_b=True) * 0.5 + c, [
        numbers(5, 7, 20), numbers(5, 40, 20, seed=1), numbers(5, 1, 40, seed=2)],
        shapes=[[None, None, 20], [None, 40, 20], [None, 1, 40]])
    held(lambda x, w, c: tf.matmul(x, w) * c, [numbers(33, 20), numbers(20, 48, seed=1), numbers(33, 1, seed=2)],
         shapes=[[None, 20], [20, 48], [None, 1]])


@pytest.mark.usefixtures("small_is_worth_it")
def test_empty_results() -> None:
    held(dense, [numbers(0, 20), numbers(20, 48), numbers(48)], shapes=[[None, 20], [20, 48], [48]])
    held(dense, [numbers(0, 20), numbers(20, 48), numbers(48)], 0)


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("rows", [5, 30])
def test_loops(rows: int) -> None:
    def recurrence(x: Any, w: Any, v: Any, bias: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 4, lambda i, state: (
            i + 1, tf.nn.relu(tf.matmul(state, w) + bias) + tf.matmul(x, v)), (0, x))[1]

    def with_an_array(x: Any, w: Any, v: Any, bias: Any) -> Any:
        def body(i: Any, state: Any, kept: Any) -> Any:
            state = tf.nn.relu(tf.matmul(state, w) + bias) * kept.read(0)
            return i + 1, tf.matmul(state, v), kept.write(i, state)
        kept = tf.TensorArray(tf.float32, size=4, element_shape=[rows, 48]).write(0, x)
        _, state, kept = tf.while_loop(lambda i, *_: i < 4, body, (1, x, kept))
        return state, kept.stack()
    arrays = [numbers(rows, 48) * 0.1, numbers(48, 48, seed=1) * 0.1, numbers(48, 48, seed=2), numbers(48, seed=3)]
    held(recurrence, arrays)
    held(with_an_array, arrays, 0)  # places in it are told while the loop runs


@pytest.mark.usefixtures("small_is_worth_it")
def test_branches() -> None:
    def chosen(x: Any, w: Any, bias: Any) -> Any:
        return tf.cond(x[0, 0] > 0.0, lambda: dense(x, w, bias), lambda: tf.matmul(x, w) - bias)
    for sign in (1, -1):
        held(chosen, [numbers(30, 20) * sign, numbers(20, 48, seed=1), numbers(48, seed=2)], 2)


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("queries, keys", [(13, 40), (57, 300), (130, 64)])
def test_regions(queries: int, keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def attention(q: Any, k: Any, v: Any, bias: Any) -> Any:
        scores = tf.matmul(q, k, transpose_b=True) * 0.35 + bias
        return tf.nn.relu(tf.matmul(tf.nn.softmax(scores), v))
    monkeypatch.setattr(row_blocks, "_WORTH", 0)
    monkeypatch.setattr(row_blocks, "_EACH", 0)
    arrays = [numbers(2, 3, queries, 8), numbers(2, 3, keys, 8, seed=1), numbers(2, 3, keys, 32, seed=2)]
    plan = held(attention, [*arrays, numbers(keys, seed=3)], 1 + (keys <= _BLOCK))
    assert len(list(plan.row_blocks())) == 1
    plan = held(attention, [*arrays, numbers(queries, keys, seed=3)], 1 + (keys <= _BLOCK))
    assert len(list(plan.row_blocks())) == 1


@pytest.mark.usefixtures("small_is_worth_it")
def test_long_programs() -> None:
    def layers(x: Any, *weights: Any) -> Any:
        for n, w in enumerate(weights):
            x = tf.nn.relu(tf.matmul(x, w) * (0.1 + n % 5 * 0.01)) + w[n % 40]
        return x
    plan = held(layers, [numbers(20, 40), *[numbers(40, 40, seed=n) for n in range(50)]], 50)
    assert plan.is_long and len(plan.steps) == 50


@pytest.mark.usefixtures("small_is_worth_it")
def test_gradients() -> None:
    def slopes(x: Any, w: Any, bias: Any, v: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([w, v])
            loss = tf.reduce_sum(tf.matmul(dense(x, w, bias), v) ** 2)
        return loss, tape.gradient(loss, [w, v])
    held(slopes, [numbers(30, 20), numbers(20, 48, seed=1), numbers(48, seed=2), numbers(48, 32, seed=3)], 2)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_threads(count: int) -> None:
    x, w, bias = (tf.constant(a) for a in (numbers(700, 64), numbers(64, 256, seed=1), numbers(256, seed=2)))
    before = tf.config.threading.get_intra_op_parallelism_threads()
    tf.config.threading.set_intra_op_parallelism_threads(count)
    try:
        same_bits([tf.function(dense)(x, w, bias).numpy()], [dense(x, w, bias).numpy()])
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(before)


# -- which do -------------------------------------------------------------------------------------------
def count_of(fn: Callable[..., Any], *shapes: Sequence[int]) -> int:
    traced = trace(fn, [tf.TensorSpec(shape) for shape in shapes], "f")
    return len(finished(planner.plan(passes.optimise(traced.graph), cpu)))


def test_what_pays() -> None:
    assert count_of(dense, (1024, 64), (64, 256), (256,)) == 1
    assert count_of(dense, (1024, 512), (512, 256), (256,)) == 0  # sums of two blocks
    assert count_of(dense, (1024, 64), (64, 16), (16,)) == 0  # no whole tile
    assert count_of(dense, (8, 64), (64, 64), (64,)) == 0  # little to do
    assert count_of(lambda x, w, bias: tf.nn.gelu(tf.matmul(x, w) + bias), (1024, 64), (64, 256), (256,)) == 0
    assert count_of(lambda x, w, r: tf.matmul(x, w) + r, (256, 64), (64, 256), (256, 256)) == 1
    assert count_of(lambda x, w, r: tf.matmul(x, w) + r, (4096, 64), (64, 1024), (4096, 1024)) == 0  # r is far away


def test_the_result_of_the_product_is_nowhere() -> None:
    traced = trace(dense, [tf.TensorSpec([1024, 64]), tf.TensorSpec([64, 256]), tf.TensorSpec([256])], "f")
    plan = planner.plan(passes.optimise(traced.graph), cpu)
    (step,) = finished(plan)
    assert isinstance(plan.arena, int) and plan.arena < 1024 * 256 * 4
    assert step.written() == [plan.outputs[0]]
    assert "tall then add_relu" in plan_text.text(plan)
    assert dm.numel(plan.outputs[0].dims) == 1024 * 256


def test_what_explain_says() -> None:
    text = str(tf.function(dense).explain(tf.ones([1024, 64]), tf.ones([64, 256]), tf.ones([256])))
    assert "native kernels: 1 " in text and "matmul, add, relu" in text
    assert "leaves matmul in memory" not in text


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("sizes", [(15, 33, 20), (29, 64, 5)])
def test_the_reference_runs_them(sizes: tuple[int, int, int]) -> None:
    rows, columns, inner = sizes
    arrays = [numbers(rows, inner), numbers(inner, columns, seed=1), numbers(columns, seed=2)]
    interpreted(dense, arrays)
    interpreted(dense, arrays, [[None, inner], [inner, columns], [columns]])

    def kept(x: Any, w: Any, bias: Any) -> Any:
        z = tf.matmul(x, w)
        return z, tf.cast(z * 2.0 + bias, tf.bfloat16)
    interpreted(kept, arrays)


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("bits, masks, many", [(128, False, False), (256, True, False), (512, True, True)])
def test_tiles_of_other_processors(bits: int, masks: bool, many: bool) -> None:
    reference._library_kernel.cache_clear()
    try:
        with target.use(target.Target("x86_64-unknown-linux-gnu", "", "", bits, True, True, True, masks, many)):
            interpreted(dense, [numbers(23, 7), numbers(7, 40, seed=1), numbers(40, seed=2)])
    finally:
        reference._library_kernel.cache_clear()
