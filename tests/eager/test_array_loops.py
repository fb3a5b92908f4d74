"""Maps, scans and folds over slices: structures, order, gradients, and what goes wrong."""

from __future__ import annotations

from typing import Any

import pytest

import twofold as tf

X = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def test_map_fn_takes_and_gives_structures() -> None:
    elems = {"a": tf.constant(X), "b": tf.constant([10, 20, 30])}
    out = tf.map_fn(lambda e: (e["b"], {"sum": tf.reduce_sum(e["a"])}), elems,
                    fn_output_signature=(tf.int32, {"sum": tf.float32}))
    assert out[0].numpy().tolist() == [10, 20, 30]
    assert out[1]["sum"].numpy().tolist() == [3.0, 7.0, 11.0]


def test_map_fn_is_differentiable() -> None:
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.map_fn(lambda row: tf.reduce_sum(row * row), x)
    assert tape.gradient(y, x).numpy().tolist() == [[2.0, 4.0], [6.0, 8.0], [10.0, 12.0]]


def test_map_fn_of_nothing_has_the_signature() -> None:
    out = tf.map_fn(lambda row: tf.cast(row, tf.int32), tf.zeros([0, 2]),
                    fn_output_signature=tf.TensorSpec([2], tf.int32))
    assert (out.shape, out.dtype) == ((0, 2), tf.int32)


def test_map_fn_checks_the_signature() -> None:
    with pytest.raises(TypeError, match="int32"):
        tf.map_fn(lambda row: row, tf.constant(X), fn_output_signature=tf.int32)


@pytest.mark.parametrize(("elems", "exception", "match"), [
    (1.0, ValueError, "not scalars"),
    ([], ValueError, "does not contain any Tensors"),
    ((tf.zeros([2]), tf.zeros([3])), tf.errors.InvalidArgumentError, "different sizes"),
])
def test_map_fn_rejects(elems: object, exception: type[Exception], match: str) -> None:
    with pytest.raises(exception, match=match):
        tf.map_fn(lambda e: e, elems)


def test_map_fn_needs_results_of_one_shape() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shapes of all inputs must match"):
        tf.map_fn(lambda n: tf.range(n), tf.constant([1, 2]))


def test_vectorized_map_repeats_a_first_axis_of_one() -> None:
    out = tf.vectorized_map(lambda ab: ab[0] * ab[1], (tf.constant(X), tf.constant([[2.0, 10.0]])))
    assert out.numpy().tolist() == [[2.0, 20.0], [6.0, 40.0], [10.0, 60.0]]


def test_scan_keeps_every_accumulator() -> None:
    n = tf.constant([1, 2, 3, 4])
    assert tf.scan(lambda a, x: a * x, n).numpy().tolist() == [1, 2, 6, 24]
    assert tf.scan(lambda a, x: a * x, n, reverse=True).numpy().tolist() == [24, 24, 12, 4]
    assert tf.scan(lambda a, x: a + x, n, initializer=10).numpy().tolist() == [11, 13, 16, 20]


def test_scan_of_structures() -> None:
    fib = tf.scan(lambda a, _: (a[1], a[0] + a[1]), tf.zeros([6]), initializer=(0, 1))
    assert fib[0].numpy().tolist() == [1, 1, 2, 3, 5, 8]


def test_scan_of_nothing() -> None:
    assert tf.scan(lambda a, x: a + x, tf.zeros([0, 2]), initializer=tf.zeros([2])).shape == (0, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="scan: there is neither"):
        tf.scan(lambda a, x: a + x, tf.zeros([0, 2]))


def test_scan_needs_one_structure() -> None:
    with pytest.raises((TypeError, ValueError)):
        tf.scan(lambda a, x: (a, x), tf.constant([1, 2]))


def test_folds_go_in_their_directions() -> None:
    n = tf.constant([1, 2, 3])
    assert int(tf.foldl(lambda a, x: 10 * a + x, n)) == 123
    assert int(tf.foldr(lambda a, x: 10 * a + x, n)) == 321
    assert int(tf.foldl(lambda a, x: 10 * a + x, n, initializer=9)) == 9123


def test_folds_are_differentiable() -> None:
    x = tf.constant([2.0, 3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.foldl(lambda a, e: a * e, x)
    assert tape.gradient(y, x).numpy().tolist() == [12.0, 8.0, 6.0]


@pytest.mark.parametrize("mapped", [tf.map_fn, tf.vectorized_map])
@pytest.mark.parametrize("fn, elems", [
    (tf.reduce_sum, tf.zeros([0, 2])), (lambda row: (row * 2.0, tf.argmax(row)), tf.zeros([0, 3])),
    (lambda rows: {"y": rows[0] @ rows[1]}, (tf.zeros([0, 3, 4]), tf.zeros([0, 4, 5])))], ids=["one", "two", "dict"])
def test_maps_of_nothing_give_what_slices_would(mapped: Any, fn: Any, elems: Any) -> None:
    """Op by op, compiled, and as of one slice."""
    def kinds(result: Any) -> Any:
        return tf.nest.map_structure(lambda t: (t.dtype, tuple(t.shape[1:]), len(t)), result)
    one = tf.nest.map_structure(lambda t: tf.zeros([1, *t.shape[1:]]), elems)
    expected = tf.nest.map_structure(lambda t: (t.dtype, tuple(t.shape[1:]), 0), mapped(fn, one))
    assert kinds(mapped(fn, elems)) == kinds(tf.function(lambda: mapped(fn, elems))()) == expected


def test_a_function_that_no_trace_can_run_maps_nothing() -> None:
    assert tf.map_fn(lambda row: tf.constant(row.numpy() * 2.0), tf.zeros([0, 2])).shape == (0, 2)


def test_nothing_is_not_repeated() -> None:
    pair = tf.zeros([0, 2]), tf.zeros([1, 2])
    assert tf.vectorized_map(lambda rows: rows[0] + rows[1], pair).shape == (0, 2)
