"""Steps that run block by block of rows: which they are, that bits stay, and how little memory they take.

Programs run here with a fork-join that has "threads" take their parts one after the other, in the order that a test
says, each with windows of its own.
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
from twofold.codegen import plan_text, planner, row_blocks
from twofold.codegen.plan import Plan
from twofold.ir import dims as dm
from twofold.ir import passes
from twofold.runtime import reference, threads
from twofold.runtime.compiled import Native
from twofold.runtime.cpu import cpu


@pytest.fixture
def small_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Windows are worth it for small matrices, and threads share small steps."""
    monkeypatch.setattr(row_blocks, "_WORTH", 0)
    monkeypatch.setattr(row_blocks, "_EACH", 0)
    with thread_orders.three_share_all(monkeypatch):
        yield


def planned(fn: Callable[..., Any], arrays: Sequence[np.ndarray],
            shapes: Sequence[Sequence[int | None]] | None = None) -> Plan:
    return planner.plan(passes.optimise(traced_for(fn, arrays, shapes).graph), cpu)


def held_together(fn: Callable[..., Any], arrays: Sequence[np.ndarray], regions: int | None = 1,
                  shapes: Sequence[Sequence[int | None]] | None = None) -> Plan:
    """Holds a function to itself op by op, in any number of threads; `regions` of it run block by block."""
    return held_in_calls(fn, [arrays], regions, shapes)


def held_in_calls(fn: Callable[..., Any], calls: Sequence[Sequence[np.ndarray]], regions: int | None,
                  shapes: Sequence[Sequence[int | None]] | None) -> Plan:
    """The same of several calls of one program."""
    traced = traced_for(fn, calls[0], shapes)
    plan = planner.plan(passes.optimise(traced.graph), cpu)
    if regions is not None:
        assert len(list(plan.row_blocks())) == regions, plan_text.text(plan)
    native, captured = Native.of(plan), [np.asarray(value) for value in traced.captures]
    for arrays in calls:
        want = [value.numpy() for value in tf.nest.flatten(fn(*map(tf.constant, arrays)))]
        sizes = traced.accepts([a.shape for a in arrays])
        assert sizes is not None
        for count in (1, 2, 3):
            for order in itertools.permutations(range(count)):
                same_bits(thread_orders.run(native, [*arrays, *captured], sizes, order), want)
    return plan


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def operands(heads: tuple[int, ...], queries: int, keys: int, size: int = 8,
             dtype: Any = np.float32) -> list[np.ndarray]:
    return [numbers(*heads, length, size, dtype=dtype, seed=n) for n, length in enumerate((queries, keys, keys))]


def attention(q: Any, k: Any, v: Any) -> Any:
    return tf.matmul(tf.nn.softmax(tf.matmul(q * tf.cast(0.35, q.dtype), k, transpose_b=True)), v)


# -- attention, as it is written ------------------------------------------------------------------------
def with_a_mask(q: Any, k: Any, v: Any) -> Any:
    scores = tf.matmul(q, k, transpose_b=True)
    seen = tf.range(tf.shape(scores)[-2])[:, tf.newaxis] >= tf.range(tf.shape(scores)[-1])
    return tf.matmul(tf.nn.softmax(tf.where(seen, scores, tf.cast(-1e4, q.dtype))), v)


def with_a_bias(q: Any, k: Any, v: Any) -> Any:
    scores = tf.matmul(q, k, transpose_b=True) / tf.cast(3.0, q.dtype)
    bias = tf.cast(tf.range(tf.shape(k)[-2]), q.dtype) * tf.cast(-0.1, q.dtype)
    return tf.matmul(tf.nn.softmax(tf.tanh(scores + bias)), v)


def heads_apart(q: Any, k: Any, v: Any) -> Any:
    """Of [batch, rows, heads, size]."""
    scores = tf.einsum("bqhd,bkhd->bhqk", q, k) * tf.cast(0.35, q.dtype)
    return tf.einsum("bhqk,bkhd->bqhd", tf.nn.softmax(scores), v)


def written_out(q: Any, k: Any, v: Any) -> Any:
    scores = tf.matmul(q, k, transpose_b=True)
    shifted = tf.exp(scores - tf.reduce_max(scores, -1, keepdims=True))
    return tf.matmul(shifted / tf.reduce_sum(shifted, -1, keepdims=True), v)


def with_dropout(q: Any, k: Any, v: Any) -> Any:
    weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True))
    kept = tf.random.stateless_uniform(tf.shape(weights), [1, 2]) > 0.3
    return tf.matmul(tf.where(kept, weights * tf.cast(1.5, q.dtype), tf.cast(0, q.dtype)), v)


FORMS: dict[str, Callable[..., Any]] = {
    "plain": attention, "a mask": with_a_mask, "a bias": with_a_bias, "heads apart": heads_apart,
    "written out": written_out, "dropout": with_dropout,
    "keras.ops": lambda q, k, v: tf.keras.ops.dot_product_attention(q, k, v, is_causal=True),
    "Attention": lambda q, k, v: tf.keras.layers.Attention()([q[0], v[0], k[0]], use_causal_mask=True),
    "weights, too": lambda q, k, v: (w := tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), tf.matmul(w, v)),
}


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    held_together(FORMS[form], operands((2, 3), 33, 33) if form != "Attention" else operands((1, 5), 33, 33))


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("queries, keys", [(2, 2), (13, 3), (14, 40), (15, 31), (29, 65), (57, 300), (130, 7)])
def test_sizes(queries: int, keys: int, dtype: Any) -> None:
    plan = held_together(with_a_bias, operands((2, 2), queries, keys, dtype=dtype))
    (part,) = plan.row_blocks()
    assert sum(plan.steps[n].kernel.name.endswith("tall") for n in part.steps) == 2


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("heads", [(), (1,), (5,), (2, 1, 3)])
def test_batches(heads: tuple[int, ...]) -> None:
    held_together(attention, operands(heads, 40, 21))


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("queries, keys", [(0, 5), (5, 0), (1, 1), (1, 9), (0, 0)])
def test_next_to_nothing(queries: int, keys: int) -> None:
    held_together(attention, operands((2, 3), queries, keys), None)
    unknown = [(None, None, None, 8)] * 3
    held_together(attention, operands((2, 3), queries, keys), None, unknown)


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("form", ["plain", "a mask", "heads apart", "keras.ops"])
@pytest.mark.parametrize("batches", [None, 2])
def test_unknown_sizes(form: str, batches: int | None, dtype: Any) -> None:
    apart = form in ("heads apart", "keras.ops")
    calls = []
    for batch, length in ((1, 3), (2, 61), (3, 120)):
        arrays = [numbers(batches or batch, length, 4, 8, dtype=dtype, seed=n) for n in range(3)]
        calls.append(arrays if apart else [a.transpose(0, 2, 1, 3).copy() for a in arrays])
    shape = (batches, None, 4, 8) if apart else (batches, 4, None, 8)
    held_in_calls(FORMS[form], calls, 1, [shape] * 3)


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("form", ["plain", "a mask", "heads apart", "written out", "keras.ops"])
def test_gradients(form: str) -> None:
    def gradients(q: Any, k: Any, v: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([q, k, v])
            loss = tf.reduce_sum(tf.square(FORMS[form](q, k, v)))
        return [loss, *tape.gradient(loss, [q, k, v])]

    arrays = operands((2, 3), 33, 33)
    held_together(gradients, arrays, 2)
    if form != "keras.ops":  # which asks how many heads there are
        held_together(gradients, arrays, None, [(None, None, None, 8)] * 3)


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_layers_of_several_heads(dropout: float) -> None:
    layer = tf.keras.layers.MultiHeadAttention(2, 8, dropout=dropout)
    x = numbers(3, 20, 12)
    layer(x, x)
    plan = held_together(lambda x: layer(x, x, use_causal_mask=True), [x], None)
    assert any(memory.dims[-2:] == (20, 20) for part in plan.row_blocks() for memory in part.windows)


@pytest.mark.usefixtures("small_is_worth_it")
def test_rows_of_dense_layers() -> None:
    first, second = (tf.constant(numbers(*shape, seed=n)) for n, shape in enumerate([(12, 40), (40, 12)]))
    held_together(lambda x: tf.matmul(tf.nn.gelu(tf.matmul(x, first)), second) + x, [numbers(3, 50, 12)])


@pytest.mark.usefixtures("small_is_worth_it")
def test_in_control_flow() -> None:
    def rounds(q: Any, k: Any, v: Any) -> Any:
        _, q = tf.while_loop(lambda i, _: i < 3, lambda i, q: (i + 1, attention(k, q, q) + q), (0, q))
        return tf.cond(tf.reduce_sum(q) > 0, lambda: attention(q, v, k), lambda: attention(k, q, v))
    held_together(rounds, operands((2, 3), 33, 33), 3)


# -- rows that meet -------------------------------------------------------------------------------------
MEETING: dict[str, Callable[..., Any]] = {
    "down the columns": lambda q, k, v: tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True), axis=-2), v),
    "turned over": lambda q, k, v: tf.matmul(tf.matmul(q, k, transpose_b=True)[:, ::-1], v),
    "as columns": lambda q, k, v: tf.matmul(tf.tanh(tf.matmul(q, k, transpose_b=True)), v, transpose_a=True),
    "on the right": lambda q, k, v: tf.matmul(v, tf.tanh(tf.matmul(q, k, transpose_b=True)), transpose_a=True),
    "less their mean": lambda q, k, v: tf.matmul((s := tf.matmul(q, k, transpose_b=True)) - tf.reduce_mean(s, 1,
                                                                                                   keepdims=True), v),
    "with themselves": lambda q, k, v: tf.matmul(s := tf.tanh(tf.matmul(q, k, transpose_b=True)), s),
}


@pytest.mark.usefixtures("small_is_worth_it")
@pytest.mark.parametrize("form", MEETING)
def test_rows_that_meet(form: str) -> None:
    plan = held_together(MEETING[form], operands((5,), 33, 33), None)
    for part in plan.row_blocks():  # what columns are read of is there as a whole
        assert not any(memory.dims[-2:] == (33, 33) for memory in part.windows)


@pytest.mark.usefixtures("small_is_worth_it")
def test_an_operand_that_is_made_meanwhile() -> None:
    """The values are computed behind the scores, and before the region."""
    def late(q: Any, k: Any, w: Any) -> Any:
        weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True))
        return tf.matmul(weights, tf.matmul(tf.sin(k), w))
    held_together(late, [*operands((2,), 33, 40)[:2], numbers(8, 6)])


@pytest.mark.usefixtures("small_is_worth_it")
def test_an_operand_that_rows_make() -> None:
    """The values are the scores of all rows: no block may begin the second product."""
    def meeting(q: Any, k: Any, v: Any) -> Any:
        scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True))
        return tf.matmul(tf.matmul(scores, v), scores)
    held_together(meeting, [numbers(2, 33, 8), numbers(2, 33, 8), numbers(2, 33, 33)], None)


# -- worth ----------------------------------------------------------------------------------------------
def test_what_stays_near_as_it_is_runs_step_by_step() -> None:
    assert not list(planned(attention, operands((2, 4), 64, 64)).row_blocks())
    assert list(planned(attention, operands((2, 4), 512, 512)).row_blocks())


def test_few_rows_are_left_to_threads_that_share_steps() -> None:
    threads.set_num_threads(8)
    try:
        assert not list(planned(attention, operands((3,), 14, 1 << 16)).row_blocks())
    finally:
        threads.set_num_threads(0)


@pytest.mark.parametrize("form", ["plain", "a bias", "a mask"])
def test_memory_does_not_grow_with_the_square(form: str) -> None:
    heads, size = (2, 4), 16
    arenas = []
    for length in (1024, 2048):
        plan = planned(FORMS[form], operands(heads, length, length, size))
        arenas.append(plan.arena)
        assert plan.arena < 8 * length * length * 4 / 2  # of scores
    if form != "a mask":  # of which there is one for all heads
        assert arenas[1] < 2.5 * arenas[0]
    plan = planned(FORMS[form], operands(heads, 64, 64, size), [(None, None, None, size)] * 3)
    known = dict.fromkeys(plan.symbols, 2048) | {plan.symbols[0]: 2, plan.symbols[1]: 4}
    (arena,) = dm.evaluate([plan.arena], known)
    assert arena < 2048 * 2048 * 4 * 2


# -- machines -------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("small_is_worth_it")
def test_the_reference_backend() -> None:
    arrays = operands((2, 2), 20, 17)
    plan = planner.plan(passes.optimise(traced_for(with_a_bias, arrays).graph), reference.reference)
    assert len(list(plan.row_blocks())) == 1
    want = with_a_bias(*map(tf.constant, arrays)).numpy()
    same_bits(reference.reference.compile(plan)(arrays, {}), [want])


@pytest.mark.parametrize("tiers", ["0", "1"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_real_threads(count: int, tiers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOFOLD_TIERS", tiers)
    arrays = [tf.constant(a) for a in operands((2, 4), 260, 300)]
    want = with_a_bias(*arrays).numpy().tobytes()
    threads.set_num_threads(count)
    try:
        program = tf.function(with_a_bias)
        for _ in range(10):
            assert program(*arrays).numpy().tobytes() == want
    finally:
        threads.set_num_threads(0)
