"""Functions that run on whole batches: the same bits as element by element, and only where that can be proved."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

Dataset = tf.data.Dataset
RNG = np.random.default_rng(1)
IMAGES = RNG.integers(0, 255, (23, 4), np.uint8)
ROWS = (RNG.normal(size=(23, 3, 5)).astype(np.float32) * 3, RNG.integers(0, 9, 23), IMAGES)
COLUMN = tf.constant([[1.0], [0.5], [0.1]])
V = tf.Variable(2.0)


def branch(x, y, z):
    """A branch that Python decides when it is traced."""
    return (x * 2.0 if x.shape[0] == 3 else x), y, z


WHOLE = {
    "images": lambda x, y, z: (tf.cast(z, tf.float32) / 255.0 - 0.5, y),
    "functions": lambda x, y, z: (tf.exp(tf.sin(x)) / (1.0 + tf.tanh(x) ** 2), tf.math.lgamma(tf.abs(x))),
    "rows_of_constants": lambda x, y, z: x * COLUMN + tf.constant([1.0, 2.0, 3.0, 4.0, 5.0]),
    "choice": lambda x, y, z: tf.where(x > 0, tf.clip_by_value(x, 0.5, 2.0), -x),
    "sizes": lambda x, y, z: (x / x.shape[0], tf.cast(y, tf.bfloat16) * 3),
    "python_branch": branch,
    "same": lambda x, y, z: {"z": z, "x": x},
    "halves": lambda x, y, z: tf.cast(tf.cast(x, tf.float16) * 1.1 + 0.3, tf.float32),
}
SINGLE = {
    "rank": lambda x, y, z: x * tf.cast(y, tf.float32),
    "sum": lambda x, y, z: tf.reduce_sum(x, axis=0),
    "product": lambda x, y, z: tf.matmul(x, x, transpose_b=True),
    "turned": lambda x, y, z: tf.transpose(x),
    "constant": lambda x, y, z: (x, 1.0),
    "size": lambda x, y, z: x + tf.cast(tf.size(x), tf.float32) * tf.ones([3, 5]) + tf.zeros_like(x),
    "division": lambda x, y, z: y // 2,
    "power": lambda x, y, z: y ** 2,
    "random": lambda x, y, z: x + tf.random.uniform([3, 5], seed=1) * 0.0,
    "variable": lambda x, y, z: x * V,
    "checked": lambda x, y, z: tf.debugging.check_numerics(x, "x"),
    "loop": lambda x, y, z: tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, x])[1],
    "read_out": lambda x, y, z: tf.numpy_function(lambda a: a, [x], tf.TensorSpec([3, 5], tf.float32)),
}


def bits(dataset):
    """The bytes of all elements."""
    return [[a.tobytes() for a in tf.nest.flatten(e)] for e in dataset.as_numpy_iterator()]


def plain(dataset):
    """The same without fusion."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


@pytest.mark.parametrize("name", [*WHOLE, *SINGLE])
def test_bits_are_the_same(name):
    fn = {**WHOLE, **SINGLE}[name]
    data = Dataset.from_tensor_slices(ROWS).shuffle(7, seed=1, reshuffle_each_iteration=False).map(fn)
    assert (data._node.rows() is not None) is (name in WHOLE)
    data = data.shuffle(9, seed=2, reshuffle_each_iteration=False).repeat(2)
    assert bits(data.batch(4)) == bits(plain(data.batch(4)))
    assert bits(data.take(5)) == bits(plain(data.take(5)))


def test_several_functions_one_after_another():
    data = Dataset.range(10).map(lambda x: x * 3).skip(1).map(lambda x: (x + 1, -x)).shard(2, 1).batch(3)
    assert [(a.tolist(), b.tolist()) for a, b in data.as_numpy_iterator()] == [
        ([7, 13, 19], [-6, -12, -18]), ([25], [-24])]


def test_an_iterator_over_whole_batches_goes_on():
    def make():
        return Dataset.from_tensor_slices(ROWS).map(WHOLE["images"]).shuffle(5).batch(4)
    iterator = iter(make())
    for _ in range(2):
        next(iterator)
    saved = iterator._saved_values()
    rest = [y.numpy().tolist() for _, y in iterator]
    other = iter(make())
    other._restore_values(saved)
    assert [y.numpy().tolist() for _, y in other] == rest
