"""Square brackets, views, and gathers and scatters large enough for threads; `tests/ops` has the small ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import twofold as tf
from twofold.eager import indexing

X = np.arange(60).reshape(3, 4, 5)
ITEMS = (0, -1, slice(None), slice(1, None), slice(-2, None), slice(None, None, -1), slice(9, None), slice(3, 0, -2),
         slice(2, 1), None, Ellipsis)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_keys_agree_with_numpy(count: int) -> None:
    """Under a tape (the op) and without one (the shorter way)."""
    x = tf.constant(X)
    for key in itertools.product(ITEMS, repeat=count):
        if sum(k is Ellipsis for k in key) > 1:
            continue
        got = x[key]
        with tf.GradientTape():
            taped = x[key]
        assert got.shape == taped.shape == X[key].shape, key
        assert np.array_equal(got, X[key]) and np.array_equal(taped, X[key]), key


def test_bounds_may_be_tensors() -> None:
    x, two = tf.constant(X), tf.constant(2)
    assert np.array_equal(x[two], X[2])
    assert np.array_equal(x[:, two:, np.int64(1)], X[:, 2:, 1])
    assert np.array_equal(x[two - 1:two:two], X[1:2:2])


def test_a_list_is_a_tuple_of_indices() -> None:
    """As in TensorFlow; to NumPy it is an array of integers."""
    x, v = tf.constant(X), tf.Variable([[1, 2], [3, 4]])
    for key in ([slice(None), slice(0, 2)], [0, 1], [None, 0], [..., 0], []):
        with tf.GradientTape():
            taped = x[key]
        staged = tf.function(lambda x, key=key: x[key])(x)
        assert np.array_equal(x[key], X[tuple(key)]) and np.array_equal(taped, X[tuple(key)])
        assert np.array_equal(staged, X[tuple(key)])
    assert v[[slice(None), 0]].assign([7, 8]).numpy().tolist() == [[7, 2], [8, 4]]
    assert tf.function(lambda n: x[[n, 2]])(tf.constant(1)).numpy().tolist() == X[1, 2].tolist()
    with pytest.raises(TypeError, match="valid indices"):
        x[[[0, 1]]]


def test_slices_share_memory() -> None:
    x = tf.constant(X)
    for view in (x[1:, ::-2], tf.transpose(x), tf.reshape(x, [12, 5]), tf.expand_dims(x, 0), tf.reverse(x, [1]),
                 tf.slice(x, [1, 0, 0], [1, 2, 3]), tf.linalg.diag_part(x), *tf.split(x, 2, axis=1), *tf.unstack(x)):
        assert np.shares_memory(view, x)


def test_assignment_makes_a_new_tensor() -> None:
    x = tf.constant([1, 2, 3, 4])
    assert indexing.strided_slice_assign(x, slice(None, None, -2), [8, 9]).numpy().tolist() == [1, 9, 3, 8]
    assert x.numpy().tolist() == [1, 2, 3, 4]


def test_strings_are_moved_too() -> None:
    s = tf.constant([["a", "b"], ["c", "d"]])
    assert tf.gather(s, [1, 0]).numpy().tolist() == [[b"c", b"d"], [b"a", b"b"]]
    assert tf.gather_nd(s, [[0, 1]]).numpy().tolist() == [b"b"]
    assert tf.concat([s, s[:1]], 0)[2].numpy().tolist() == [b"a", b"b"]
    assert tf.pad(s[0], [[0, 1]]).numpy().tolist() == [b"a", b"b", b""]
    assert tf.tensor_scatter_nd_update(s[0], [[1]], ["z"]).numpy().tolist() == [b"a", b"z"]
    assert tf.boolean_mask(s, [False, True]).numpy().tolist() == [[b"c", b"d"]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="nonzero: x has dtype string"):
        tf.where(s)


RNG = np.random.default_rng(0)
LARGE = RNG.normal(size=(400, 600)).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.complex128, np.bool_])
@pytest.mark.parametrize("axis", [0, 1])
def test_large_gathers(dtype: type, axis: int) -> None:
    x, i = LARGE.astype(dtype), RNG.integers(0, 400, (7, 90))
    assert np.array_equal(tf.gather(x, i, axis=axis), np.take(x, i, axis))


def test_a_bad_index_is_found_among_many() -> None:
    i = RNG.integers(0, 400, 5000)
    i[4321] = 400
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[4321\] = 400 is not in \[0, 400\)"):
        tf.gather(LARGE, i)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("batches", [0, 1])
def test_single_elements_are_gathered_for_good_indices_alone(dtype: type, batches: int) -> None:
    """Along the last axis: each index is looked at, in vectors and in what is left of them, and the ends of types."""
    x, rows = LARGE[:3, :7], 3 if batches else 1
    good = RNG.integers(0, 7, (rows, 67)).astype(dtype)
    i = good if batches else good[0]
    want = np.take_along_axis(x, good.astype(int), 1) if batches else np.take(x, i, 1)
    assert np.array_equal(tf.gather(x, i, axis=1, batch_dims=batches), want)
    ends = np.iinfo(dtype)
    for place, bad in itertools.product((0, 15, 16, 63, 66), {max(ends.min, -1), 7, ends.min, ends.max} - {0}):
        wrong = good.copy()
        wrong[-1, place] = bad
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"{place}\] = {bad} is not in \[0, 7\)"):
            tf.gather(x, wrong if batches else wrong[0], axis=1, batch_dims=batches)


@pytest.mark.parametrize("known", [True, False])
def test_nothing_is_gathered_from_an_axis_without_elements(known: bool) -> None:
    sizes = None if known else [tf.TensorSpec([None, None]), tf.TensorSpec([None], tf.int32)]
    f = tf.function(lambda x, i: tf.gather(x, i, axis=1), input_signature=sizes)
    assert f(tf.zeros([3, 0]), tf.zeros([0], tf.int32)).shape == (3, 0)
    assert f(tf.constant([[1.0, 2.0, 3.0]]), tf.constant([2, 0])).numpy().tolist() == [[3.0, 1.0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[0\] = 0 is not in \[0, 0\)"):
        f(tf.zeros([3, 0]), tf.constant([0]))


def test_large_scatters_add_in_order() -> None:
    """The same bits as adding one row after the other, whatever the number of threads."""
    i = RNG.integers(0, 50, 400)
    want = np.zeros((50, 600), np.float32)
    for row, place in zip(LARGE, i, strict=True):
        want[place] += row
    assert np.array_equal(tf.scatter_nd(i[:, None], LARGE, [50, 600]), want)


def test_of_large_updates_the_last_wins() -> None:
    i = RNG.integers(0, 50, 400)
    want = np.zeros((50, 600), np.float32)
    for row, place in zip(LARGE, i, strict=True):
        want[place] = row
    assert np.array_equal(tf.tensor_scatter_nd_update(tf.zeros([50, 600]), i[:, None], LARGE), want)


def test_half_precision_sums_are_rounded_once() -> None:
    ones = tf.ones([3000, 1], tf.float16)  # one by one the sum would stop at 2048
    assert float(tf.scatter_nd(tf.zeros([3000, 1], tf.int32), ones, [1, 1])[0, 0]) == 3000.0


@pytest.mark.parametrize("shape", [(70000,), (300, 333), (9, 90, 100)])
def test_large_where(shape: tuple[int, ...]) -> None:
    c = RNG.random(shape) < 0.3
    assert np.array_equal(tf.where(c), np.argwhere(c))


def test_large_moves() -> None:
    x = tf.constant(LARGE)
    assert np.array_equal(tf.concat([x, tf.transpose(tf.transpose(x))[:, ::-1]], 1),
                          np.concatenate([LARGE, LARGE[:, ::-1]], 1))
    around = [[3, 0], [1, 2]]
    assert np.array_equal(tf.pad(x, around, constant_values=7), np.pad(LARGE, around, constant_values=7))
    assert np.array_equal(tf.tile(x, [2, 3]), np.tile(LARGE, (2, 3)))


def test_an_update_has_a_gradient_where_it_remains() -> None:
    x, u = tf.constant([1.0, 2.0, 3.0]), tf.constant([10.0, 20.0])
    with tf.GradientTape() as tape:
        tape.watch([x, u])
        y = tf.tensor_scatter_nd_update(x, [[1], [1]], u)
    dx, du = tape.gradient(y, [x, u])
    assert (dx.numpy().tolist(), du.numpy().tolist()) == ([1.0, 0.0, 1.0], [0.0, 1.0])


def test_an_extremum_is_shared() -> None:
    x, u = tf.constant([5.0, 5.0]), tf.constant([5.0, 7.0])
    with tf.GradientTape() as tape:
        tape.watch([x, u])
        y = tf.tensor_scatter_nd_max(x, [[0], [1]], u)
    dx, du = tape.gradient(y, [x, u])
    assert (dx.numpy().tolist(), du.numpy().tolist()) == ([0.5, 0.0], [0.5, 1.0])
