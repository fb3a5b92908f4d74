"""Loops that read and write items of arrays where they lie: NumPy's results, TensorFlow's errors, and no copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.codegen import loop_info, planner
from twofold.ir import graph as g
from twofold.ir import passes
from twofold.runtime.cpu import cpu
from twofold.tracer.traced import trace

X = np.random.default_rng(0).normal(size=(6, 2, 3)).astype(np.float32)


def array(x: Any, count: Any = None) -> tf.TensorArray:
    return tf.TensorArray(x.dtype, size=len(X) if count is None else count, element_shape=x.shape[1:])


def running_sums(x: Any) -> Any:
    def body(i: Any, total: Any, kept: Any) -> Any:
        total = total + x[i]
        return i + 1, total, kept.write(i, total)
    return tf.while_loop(lambda i, *_: i < 6, body, (0, tf.zeros(x.shape[1:], x.dtype), array(x)))[2].stack()


def backwards(x: Any) -> Any:
    items = tf.TensorArray(x.dtype, size=6, element_shape=x.shape[1:]).unstack(x)

    def body(i: Any, total: Any, kept: Any) -> Any:
        total = total + items.read(i)
        return i - 1, total, kept.write(i, total)
    return tf.while_loop(lambda i, *_: i >= 0, body, (5, tf.zeros(x.shape[1:], x.dtype), array(x)))[2].stack()


def from_the_second(x: Any) -> Any:
    """The first item is never written."""
    body = lambda i, kept: (i + 1, kept.write(i, x[i] * 2))  # noqa: E731
    return tf.while_loop(lambda i, _: i < 6, body, (1, array(x)))[1].stack()


def every_other(x: Any) -> Any:
    body = lambda i, kept: (i + 1, kept.write(2 * i, x[i] + 1))  # noqa: E731
    return tf.while_loop(lambda i, _: i < 3, body, (0, array(x)))[1].stack()


def shifted(x: Any) -> Any:
    body = lambda i, kept: (i + 1, kept.write(i - 3, x[i - 1]))  # noqa: E731
    return tf.while_loop(lambda i, _: i <= 6, body, (3, array(x)))[1].stack()


def at_given_places(x: Any) -> Any:
    places = tf.constant([3, 1, 4, 0, 5, 2])
    body = lambda i, kept: (i + 1, kept.write(places[i], x[i]))  # noqa: E731
    return tf.while_loop(lambda i, _: i < 6, body, (0, array(x)))[1].stack()


def until_a_value(x: Any) -> Any:
    """How many rounds there are is not known."""
    body = lambda i, kept: (i + 1, kept.write(i, x[i]))  # noqa: E731
    return tf.while_loop(lambda i, _: x[i, 0, 0] > -1.2, body, (0, array(x)))[1].stack()


def turned(x: Any) -> Any:
    kept = tf.TensorArray(x.dtype, size=6, element_shape=(3, 2))
    body = lambda i, kept: (i + 1, kept.write(i, tf.transpose(x[i])))  # noqa: E731
    return tf.while_loop(lambda i, _: i < 6, body, (0, kept))[1].stack()


def columns(x: Any) -> Any:
    """Items that do not lie in one piece."""
    wide = tf.transpose(x, (1, 0, 2))
    seen = tf.transpose(wide, (1, 0, 2))
    body = lambda i, kept: (i + 1, kept.write(i, seen[i] + seen[0]))  # noqa: E731
    return tf.while_loop(lambda i, _: i < 6, body, (0, array(x)))[1].stack()


def twice(x: Any) -> Any:
    """One item in two arrays, and carried on."""
    def body(i: Any, last: Any, a: Any, b: Any) -> Any:
        last = last * 0.5 + x[i]
        return i + 1, last, a.write(i, last), b.write(5 - i, last)
    _, last, a, b = tf.while_loop(lambda i, *_: i < 6, body, (0, tf.zeros_like(x[0]), array(x), array(x)))
    return tf.concat([a.stack(), b.stack(), last[tf.newaxis]], 0)


def reads_what_it_wrote(x: Any) -> Any:
    def body(i: Any, kept: Any) -> Any:
        return i + 1, kept.write(i, kept.read(i - 1) + x[i])
    return tf.while_loop(lambda i, _: i < 6, body, (1, array(x).write(0, x[0])))[1].stack()


def swaps(x: Any) -> Any:
    """Reads an item that it replaces before it is read again."""
    def body(i: Any, kept: Any) -> Any:
        a, b = kept.read(i), kept.read(5 - i)
        return i + 1, kept.write(i, b).write(5 - i, a)
    return tf.while_loop(lambda i, _: i < 3, body, (0, array(x).unstack(x)))[1].stack()


def products(x: Any) -> Any:
    """Items that a matrix product makes."""
    w = tf.reshape(tf.range(9, dtype=tf.float32), (3, 3)) / 9

    def body(i: Any, h: Any, kept: Any) -> Any:
        h = tf.matmul(h + tf.cast(x[i], tf.float32), w)
        return i + 1, h, kept.write(i, h)
    kept = tf.TensorArray(tf.float32, size=6, element_shape=(2, 3))
    return tf.while_loop(lambda i, *_: i < 6, body, (0, tf.ones((2, 3)), kept))[2].stack()


def nested(x: Any) -> Any:
    def inner(j: Any, i: Any, row: Any) -> Any:
        return j + 1, i, row.write(j, x[i, j] * tf.cast(j + 1, x.dtype))

    def outer(i: Any, kept: Any) -> Any:
        row = tf.TensorArray(x.dtype, size=2, element_shape=(3,))
        return i + 1, kept.write(i, tf.while_loop(lambda j, *_: j < 2, inner, (0, i, row))[2].stack())
    return tf.while_loop(lambda i, _: i < 6, outer, (0, array(x)))[1].stack()


def in_a_branch(x: Any) -> Any:
    def body(i: Any, kept: Any) -> Any:
        item = tf.cond(i % 2 == 0, lambda: x[i], lambda: -x[i] + x[0])
        return i + 1, kept.write(i, item)
    return tf.while_loop(lambda i, _: i < 6, body, (0, array(x)))[1].stack()


def test_sums(x: np.ndarray = X) -> None:
    np.testing.assert_allclose(tf.function(running_sums)(tf.constant(x)), np.cumsum(x, 0), rtol=1e-5)
    np.testing.assert_allclose(tf.function(backwards)(tf.constant(x)), np.cumsum(x[::-1], 0)[::-1], rtol=1e-5)


def _first(x: np.ndarray) -> np.ndarray:
    stop = next(i for i in range(6) if not x[i, 0, 0] > -1.2)
    return np.concatenate([x[:stop], np.zeros_like(x[stop:])])


REFERENCES: list[tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = [
    (from_the_second, lambda x: np.concatenate([np.zeros_like(x[:1]), x[1:] * 2])),
    (every_other, lambda x: np.stack([x[i // 2] + 1 if i % 2 == 0 else np.zeros_like(x[0]) for i in range(6)])),
    (shifted, lambda x: np.concatenate([x[2:6], np.zeros_like(x[:2])])),
    (at_given_places, lambda x: x[[3, 1, 5, 0, 2, 4]]),
    (until_a_value, _first),
    (turned, lambda x: x.transpose(0, 2, 1)),
    (columns, lambda x: x + x[0]),
    (swaps, lambda x: x[::-1]),
    (nested, lambda x: x * np.array([[1], [2]], x.dtype)),
    (in_a_branch, lambda x: np.stack([x[i] if i % 2 == 0 else -x[i] + x[0] for i in range(6)])),
]


@pytest.mark.parametrize("fn, reference", REFERENCES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.bfloat16, tf.complex128], ids=lambda d: d.name)
def test_what_numpy_gives(fn: Callable[[Any], Any], reference: Callable[[np.ndarray], np.ndarray], dtype: Any) -> None:
    if dtype.is_complex and fn is until_a_value:
        dtype = tf.float16
    x = tf.cast(tf.constant(X), dtype)
    wide = np.complex128 if dtype.is_complex else np.float64
    want = reference(x.numpy().astype(wide))
    got = tf.function(fn)(x)
    np.testing.assert_array_equal(got.numpy().astype(wide), tf.cast(tf.constant(want), dtype).numpy().astype(wide))
    assert got.numpy().tobytes() == fn(x).numpy().tobytes()


@pytest.mark.parametrize("fn", [twice, reads_what_it_wrote, products, running_sums, backwards])
def test_bits_of_eager_execution(fn: Callable[[Any], Any]) -> None:
    x = tf.constant(X)
    assert tf.function(fn)(x).numpy().tobytes() == fn(x).numpy().tobytes()


def test_unknown_numbers_of_steps() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, 2, 3], tf.float32)])
    def sums(x: Any) -> Any:
        count = tf.shape(x)[0]
        kept = tf.TensorArray(tf.float32, size=count, element_shape=(2, 3))

        def body(i: Any, total: Any, kept: Any) -> Any:
            total = total + x[i]
            return i + 1, total, kept.write(i, total)
        return tf.while_loop(lambda i, *_: i < count, body, (0, tf.zeros((2, 3)), kept))[2].stack()
    for n in (6, 1, 0, 3):
        np.testing.assert_allclose(sums(tf.constant(X[:n])), np.cumsum(X[:n], 0), rtol=1e-5)


@pytest.mark.parametrize("start", [-1, 1, 2**31 - 3, -(2**31)])
def test_a_read_outside_is_an_error(start: int) -> None:
    @tf.function
    def f(x: Any, start: Any) -> Any:
        def body(i: Any, n: Any, kept: Any) -> Any:
            return i + 1, n + 1, kept.write(n, tf.gather(x, i))
        return tf.while_loop(lambda i, n, _: n < 6, body, (start, 0, array(x)))[2].stack()
    x = tf.constant(X)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices = -?[0-9]+ is not in \[0, 6\)"):
        f(x, tf.constant(start))
    np.testing.assert_array_equal(f(x, tf.constant(0)), X)


def test_a_write_outside_is_an_error() -> None:
    @tf.function
    def f(x: Any, start: Any) -> Any:
        body = lambda i, n, kept: (i + 2, n + 1, kept.write(i, x[n]))  # noqa: E731
        return tf.while_loop(lambda i, n, _: n < 6, body, (start, 0, array(x, 12)))[2].stack()
    x = tf.constant(X)
    np.testing.assert_array_equal(f(x, tf.constant(1))[1::2], X)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices.* does not index into shape \[12"):
        f(x, tf.constant(2))


def kernels(fn: Callable[[Any], Any]) -> list[str]:
    graph = passes.optimise(trace(fn, [tf.TensorSpec(X.shape, tf.float32)]).graph)
    return [str(step.kernel) for step in planner.plan(graph, cpu).steps]


@pytest.mark.parametrize("fn", [running_sums, backwards, every_other, from_the_second, products, twice])
def test_items_are_not_copied(fn: Callable[[Any], Any]) -> None:
    """No gather, no scatter, and no check where the counter's range is known."""
    assert not [k for k in kernels(fn) if k.startswith(("kernel gather", "kernel scatter", "kernel within"))]


def loop_of(fn: Callable[[Any], Any]) -> loop_info.LoopInfo:
    graph = passes.optimise(trace(fn, [tf.TensorSpec(X.shape, tf.float32)]).graph)
    return loop_info.analyse(next(node for node in graph.nodes if node.op is g.WHILE))


@pytest.mark.parametrize("fn, filled", [(running_sums, 1), (backwards, 1), (twice, 2), (products, 1),
                                        (nested, 1), (from_the_second, 0), (every_other, 0), (shifted, 0),
                                        (until_a_value, 0), (at_given_places, 0)])
def test_arrays_that_are_filled_need_no_zeros(fn: Callable[[Any], Any], filled: int) -> None:
    assert len(loop_of(fn).filled) == filled


def test_an_array_that_is_read_too_is_not_written_in_place() -> None:
    assert loop_of(swaps).writers == {} == loop_of(reads_what_it_wrote).writers


def test_gradients_of_loops_have_the_bits_of_a_tape() -> None:
    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = running_sums(tf.tanh(x)) * backwards(x)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, x)
    x = tf.constant(X)
    assert tf.function(gradient)(x).numpy().tobytes() == gradient(x).numpy().tobytes()


def eliminated(x: Any) -> Any:
    """Rows that read what they are subtracted from: `x` is not overwritten row by row."""
    for n in range(4):
        x = x - tf.gather(x, tf.constant(n) * 2)
    return x


def eliminated_in_rounds(x: Any) -> Any:
    body = lambda i, x: (i + 1, x - 0.5 * tf.gather(x, 2 * i))  # noqa: E731
    return tf.while_loop(lambda i, _: i < 4, body, (0, x))[1]


def item_of_an_item(x: Any, i: Any) -> Any:
    x = tf.reshape(tf.cumsum(x), (10, 20, -1))
    return tf.cumsum(x - tf.gather(tf.gather(x, i), 2 * i))


def closures(x: Any, k: Any) -> Any:
    """Floyd and Warshall's shortest ways, a round of them for each node."""
    x = tf.abs(x[:, :200])
    body = lambda k, d: (k + 1, tf.minimum(d, d[:, k, None] + d[k]))  # noqa: E731
    return tf.while_loop(lambda k, _: k < 9, body, (k, x))[1]


def test_what_is_read_elsewhere_too_is_not_overwritten() -> None:
    """A kernel that reads an item of an operand, for all its rows, leaves the operand as it is."""
    x, i = tf.constant(np.random.default_rng(2).normal(size=(200, 300)).astype(np.float32)), tf.constant(4)
    for fn, given in ((eliminated, (x,)), (eliminated_in_rounds, (x,)), (item_of_an_item, (x, i)), (closures, (x, i))):
        assert tf.function(fn)(*given).numpy().tobytes() == fn(*given).numpy().tobytes(), fn.__name__
    want = x.numpy().astype(np.float64)
    for n in range(4):
        want = want - want[2 * n]
    np.testing.assert_allclose(tf.function(eliminated)(x), want, rtol=1e-4, atol=1e-5)


def test_an_index_that_is_told_of_and_kept_on_a_stack() -> None:
    """The gradient's forward pass keeps the index of each round, which also tells of places out of range."""
    def written(x: Any) -> Any:
        kept = tf.TensorArray(x.dtype, size=2, element_shape=x.shape)
        body = lambda i, kept: (i + 1, kept.write(1 - i, tf.tanh(x + x[::-1])))  # noqa: E731
        return tf.while_loop(lambda i, _: i < 2, body, (0, kept))[1].stack()

    def damped(x: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, tf.tanh(x[i % 4] * x)), (0, x))[1]

    x = tf.constant(X[:4, 0])
    for fn in (written, damped):
        gradients = []
        for run in (fn, tf.function(fn)):
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = tf.reduce_sum(tf.square(run(x)))
            gradients.append(tape.gradient(loss, x).numpy())
        np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-6)


# -- products with the same matrix in every round ------------------------------------------------------
def recurrence(x: Any, w: Any) -> Any:
    body = lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w) + tf.matmul(h, w, transpose_b=True)))  # noqa: E731
    return tf.while_loop(lambda i, _: i < 3, body, (0, x))[1]


def changing(x: Any, w: Any) -> Any:
    body = lambda i, h, w: (i + 1, tf.tanh(tf.matmul(h, w)), w * 0.5)  # noqa: E731
    return tf.while_loop(lambda i, *_: i < 3, body, (0, x, w))[1]


def rounds_in_rounds(x: Any, w: Any) -> Any:
    return tf.while_loop(lambda i, _: i < 2, lambda i, h: (i + 1, recurrence(h, w) + 1), (0, x))[1]


@pytest.mark.parametrize("rows", [32, None, 1])
@pytest.mark.parametrize("fn, packed", [(recurrence, 2), (rounds_in_rounds, 2), (changing, None)])
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16], ids=lambda d: d.name)
def test_a_matrix_that_stays_is_packed_once(fn: Callable[..., Any], packed: int | None, rows: int | None,
                                            dtype: Any) -> None:
    rng = np.random.default_rng(1)
    x, w = (tf.cast(tf.constant(rng.normal(size=s) / 8), dtype) for s in ((rows or 32, 96), (96, 96)))
    traced = tf.function(fn, input_signature=[tf.TensorSpec([rows, 96], dtype), tf.TensorSpec([96, 96], dtype)])
    assert traced(x, w).numpy().tobytes() == fn(x, w).numpy().tobytes()
    want, factor = x.numpy().astype(np.float64), w.numpy().astype(np.float64)
    for _ in range(2 if fn is rounds_in_rounds else 1):
        for n in range(3):
            want = np.tanh(want @ (factor * 0.5**n) if fn is changing else want @ factor + want @ factor.T)
        want = want + 1 if fn is rounds_in_rounds else want
    np.testing.assert_allclose(traced(x, w).numpy().astype(np.float64), want, atol=2e-5 if dtype is tf.float32 else 0.1)
    plan = planner.plan(passes.optimise(traced.get_concrete_function().graph.copy()), cpu)
    packs = [n for n, step in enumerate(plan.steps) if getattr(step.kernel, "key", ("",))[-1] == "pack_b"]
    tests = [n for n, step in enumerate(plan.steps) if str(step.kernel).startswith("kernel less")]
    if packed is None or rows == 1:
        assert not [n for n in packs if n < max(tests)]
    else:
        assert len(packs) == packed and max(packs) < max(tests)
