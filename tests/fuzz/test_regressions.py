"""What random programs found, each as small as it could be made: both modes agree."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf


def both(fn, *args, unknown=False):
    """The results of `fn`, which must be the same bits in both modes."""
    specs = [tf.TensorSpec([None] * len(a.shape), a.dtype) for a in args] if unknown else None
    eager = [t.numpy() for t in tf.nest.flatten(fn(*args))]
    compiled = tf.function(fn, input_signature=specs, fallback=False)(*args)
    for a, b in zip(eager, tf.nest.flatten(compiled), strict=True):
        assert a.dtype == b.numpy().dtype
        np.testing.assert_array_equal(b.numpy(), a)
    return eager


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.bfloat16])
@pytest.mark.parametrize("size", [1, 5, 40])
def test_product_with_one_column_of_unknown_length(dtype, size):
    """It was planned as a row, for another kernel: results were those of memory nobody had written."""
    x = tf.cast(tf.range(size) + 1, dtype)
    [actual] = both(lambda x: tf.tensordot(x, x, 1), x, unknown=True)
    assert actual == tf.reduce_sum(x * x).numpy()
    both(lambda x: tf.linalg.matvec(tf.stack([x, -x]), x), x, unknown=True)


def test_range_of_numbers_has_a_known_length():
    """Its elements can be axes."""
    [actual] = both(lambda x: tf.reduce_sum(x, axis=tf.range(1)), tf.ones([2, 3]))
    assert actual.tolist() == [2.0, 2.0, 2.0]
    assert tf.function(lambda: tf.range(4, 10, 2)).get_concrete_function().structured_outputs.shape == [3]


def raised(fn, *args):
    """The error of `fn`, which must be the same in both modes; the last lines, which name lines of the user, apart."""
    told = []
    for run in (fn, tf.function(fn, fallback=False)):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            run(*args)
        told.append((type(caught.value), str(caught.value).splitlines()[0]))
    assert told[0] == told[1]
    return told[1]


VALUES, REPEATED = [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 1.0, 2.0, 2.0, 3.0]
inner = tf.function(lambda x, y: x + tf.unique(y)[0])


def in_branch(x, y):
    if x[0] > 0:
        x = x + tf.unique(y)[0]
    return x


def in_loop(x, y):
    for _ in tf.range(2):
        x = x + tf.unique(y)[0]
    return x


def from_outside(x, y):
    distinct = tf.unique(y)[0]
    for _ in tf.range(2):
        x = x + distinct
    return x


def grown(x, y):
    u = tf.unique(y)[0]
    for _ in tf.range(3):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(u, tf.TensorShape([None]))])
        u = tf.concat([u, u], 0)
    return u + tf.tile(x, [8])


@pytest.mark.parametrize("fn", [
    inner.python_function, lambda x, y: inner(x, x) + inner(x, y), in_branch, in_loop, from_outside, grown,
    lambda x, y: tf.concat([tf.stack([x, x]), tf.stack([tf.unique(y)[0]] * 2)], 0),
    lambda x, y: tf.matmul(tf.stack([x, x]), tf.unique(y)[0][:, None]),
    lambda x, y: tf.reshape(tf.unique(y)[0], [5, 1]), lambda x, y: tf.unique(y)[0][4]])
def test_sizes_that_values_decide_are_tested(fn):
    """Native code read memory that was not there: what was assumed of such sizes was tested by nobody."""
    x, y = tf.constant(VALUES), tf.constant(REPEATED)
    both(fn, x, x)
    raised(fn, x, y)


def test_branches_that_do_not_run_assume_nothing():
    both(in_branch, -tf.constant(VALUES), tf.constant(REPEATED))


@pytest.mark.parametrize(("fn", "good", "bad"), [
    (lambda x, n: tf.reshape(x, [n, 2]) * 2, 3, 4), (lambda x, n: tf.broadcast_to(x, [n]) * 2, 6, 4),
    (lambda x, n: tf.slice(x, [n], [3]) * 2, 3, 4), (lambda x, n: x[:n] + x[n:], 3, 2)])
def test_sizes_given_as_tensors_are_tested(fn, good, bad):
    x = tf.constant([*VALUES, 6.0])
    both(fn, x, tf.constant(good))
    raised(fn, x, tf.constant(bad))


def test_errors_of_late_sizes_name_the_line():
    @tf.function
    def adds(x, y):
        return x + tf.unique(y)[0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"test_regressions.py:\d+ in adds\(\): return x \+ tf.un"):
        adds(tf.constant(VALUES), tf.constant(REPEATED))


def test_ensure_shape_tells_the_trace_and_tests():
    x, y = tf.constant(VALUES), tf.constant(REPEATED)
    fn = tf.function(lambda x: tf.ensure_shape(tf.unique(x)[0], [5]), fallback=False)
    assert fn.get_concrete_function(x).structured_outputs.shape == [5]
    assert fn(x).numpy().tolist() == VALUES
    with pytest.raises(tf.errors.InvalidArgumentError, match="distinct_0 = 3"):
        fn(y)
    both(lambda x: tf.tanh(tf.ensure_shape(tf.numpy_function(np.copy, [x], x.dtype), [None])), x)


def written(x):
    """Items of a size that values decided before the loop."""
    item, array = tf.unique(x)[0], tf.TensorArray(tf.float32, size=2)
    for i in tf.range(2):
        array = array.write(i, item)
        item = item + 1
    return array.stack()


def test_arrays_of_items_whose_size_values_decide():
    """There was no room for the items."""
    [actual] = both(written, tf.constant(REPEATED))
    assert actual.tolist() == [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]
    both(written, tf.constant(REPEATED), unknown=True)


def grown(x, y):
    """An array that starts empty, with items of a size that only another argument tells."""
    root, array = x ** 0.5, tf.TensorArray(tf.uint16, size=0, dynamic_size=True)
    for _ in tf.range(4):
        array = array.write(array.size(), y)
        y = y + y
    return root, array.stack()


def test_an_empty_array_of_items_of_an_unknown_size_under_a_tape():
    """No input of the piece that makes the empty array had the items' size."""
    x, y = tf.constant([1.0, 4.0]), tf.constant([1, 2, 3], tf.uint16)
    fn = tf.function(grown, fallback=False,
                     input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([None], tf.uint16)])
    with tf.GradientTape() as tape:
        tape.watch(x)
        root, rows = fn(x, y)
    assert rows.numpy().tolist() == [[1, 2, 3], [2, 4, 6], [4, 8, 12], [8, 16, 24]]
    assert tape.gradient(root, x).numpy().tolist() == [0.5, 0.25]


@pytest.mark.parametrize("pick", [
    lambda v: tf.cond(tf.constant(True), lambda: v, lambda: v * 2.0), lambda v: tf.switch_case(0, [lambda: v]),
    lambda v: tf.case([(tf.constant(False), lambda: v * 2.0)], default=lambda: v)])
def test_a_branch_gives_the_value_of_a_variable(pick):
    """What was assigned afterwards showed in the result, where ops run at once."""
    def program(v):
        actual = pick(v)
        v.assign([5.0])
        return actual + 0.0, actual
    for fn in (program, tf.function(program, fallback=False)):
        assert [t.numpy().tolist() for t in fn(tf.Variable([1.0]))] == [[1.0], [1.0]]


def test_intrinsics_of_shuffled_vectors_have_names():
    """Instructions on vectors that a shuffle had made could not be written."""
    def program(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            unit = tf.nn.l2_normalize(x, axis=-1)
        by = tape.gradient(unit, x)
        return by, unit % by
    both(program, tf.reshape(tf.range(24.0), [3, 8]) / 7.0 - 1.0)
    both(program, tf.reshape(tf.range(24.0), [3, 8]) / 7.0 - 1.0, unknown=True)


def test_arrays_that_grow_under_a_tape_beside_arrays_that_do_not():
    """A size of an input of the backward graph, which only the forward graph knew, was taken for damage."""
    def program(x):
        first = tf.TensorArray(tf.float32, size=2)
        for i in tf.range(2):
            first = first.write(i, x)
            x = x - x
        tiled = tf.tile(x, tf.ones_like(tf.shape(x)) * 2)
        square = tiled * tiled
        second = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for _ in tf.range(2):
            second = second.write(second.size(), square)
            square = square * tiled
        return first.stack(), second.stack()
    x = tf.reshape(tf.range(8.0), [2, 2, 2])
    actual = []
    for fn in (program, tf.function(program, fallback=False)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            results = fn(x)
        actual.append([t.numpy().tolist() for t in (*results, tape.gradient(results, x))])
    assert actual[0] == actual[1]


def positive(x):
    return tf.boolean_mask(x, x > 0.0)


def outer(x):
    return positive(x)[:, None] * positive(x)


DIAGONALS = {
    "diag": lambda x: tf.linalg.diag(positive(x)),
    "diag above": lambda x: tf.linalg.diag(positive(x), k=1),
    "diag below": lambda x: tf.linalg.diag(positive(x), k=-2, padding_value=7.0),
    "diag of a batch": lambda x: tf.linalg.diag(tf.stack([positive(x), positive(x) * 2.0])),
    "diags": lambda x: tf.linalg.diag(tf.stack([positive(x), positive(x) * 2.0, positive(x) * 3.0]), k=(-1, 1)),
    "diag of a rectangle": lambda x: tf.linalg.diag(positive(x), num_rows=4, num_cols=9),
    "diag of a part": lambda x: tf.linalg.diag(x[:3]),
    "diag_part": lambda x: tf.linalg.diag_part(outer(x)),
    "diag_part above": lambda x: tf.linalg.diag_part(outer(x), k=1),
    "diag_parts": lambda x: tf.linalg.diag_part(outer(x), k=(-1, 1)),
    "diag_part, wide": lambda x: tf.linalg.diag_part(positive(x)[:, None] * x),
    "diag_part, high": lambda x: tf.linalg.diag_part(x[:, None] * positive(x), k=-1),
    "set_diag": lambda x: tf.linalg.set_diag(outer(x), positive(x)),
    "set_diags": lambda x: tf.linalg.set_diag(outer(x), tf.linalg.diag_part(outer(x), k=(-1, 0)) * 3.0, k=(-1, 0)),
    "tensor_diag": lambda x: tf.linalg.tensor_diag(positive(x)),
    "tensor_diag_part": lambda x: tf.linalg.tensor_diag_part(outer(x)),
    "trace": lambda x: tf.linalg.trace(outer(x))[None],
}


@pytest.mark.parametrize("size", [None, 6])
@pytest.mark.parametrize("name", list(DIAGONALS))
def test_diagonals_of_sizes_that_values_decide(name, size):
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = DIAGONALS[name](x)
        return y, tape.gradient(y, x)

    x = tf.constant([1.0, 2.0, -3.0, 4.0, 5.0, -6.0])
    compiled = tf.function(both, input_signature=[tf.TensorSpec([size])], fallback=False)
    for actual, wanted in zip(compiled(x), both(x), strict=True):
        assert np.array_equal(actual, wanted)


def test_diagonals_of_sizes_that_values_decide_against_numpy():
    compiled = tf.function(lambda x: (tf.linalg.diag(positive(x), k=1), tf.linalg.diag_part(outer(x), k=-1)),
                           input_signature=[tf.TensorSpec([None])], fallback=False)
    x = np.array([1.0, 2.0, -3.0, 4.0, 5.0, -6.0], np.float32)
    kept = x[x > 0]
    made, read = compiled(x)
    assert made.numpy().tolist() == np.diag(kept, 1).tolist()
    assert read.numpy().tolist() == np.diagonal(np.outer(kept, kept), -1).tolist()
