"""Which graphs treat rows apart: those that do, and none that does not."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf
from twofold.serve.rows import rows_apart

LIMIT = tf.Variable(0.5)
TABLE = tf.reshape(tf.range(12.0), [4, 3])
X = tf.TensorSpec([None, 4], tf.float32)
IMAGES = tf.TensorSpec([None, 6, 6, 2], tf.float32)
INDICES = tf.TensorSpec([None, 2], tf.int32)

APART = [
    (lambda x: tf.nn.softmax(tf.nn.relu(x @ TABLE + 1.0) * 2.0), [X]),
    (lambda x: tf.matmul(x, TABLE, transpose_b=False) / tf.reduce_sum(x, axis=1, keepdims=True), [X]),
    (lambda x: tf.reshape(x[:, ::-1], [-1, 2, 2]), [X]),
    (lambda x: tf.concat([x[:, 1:], tf.zeros([tf.shape(x)[0], 2])], axis=1), [X]),
    (lambda x: tf.transpose(tf.reshape(x, [-1, 2, 2]), [0, 2, 1]) @ tf.reshape(x, [-1, 2, 2]), [X]),
    (lambda x: tf.where(x > 0, x, tf.zeros_like(x)) + tf.constant([1.0, 2.0, 3.0, 4.0]), [X]),
    (lambda x: tf.math.top_k(x, 2)[0] + tf.cumsum(x, axis=1)[:, :2], [X]),
    (lambda x: tf.nn.max_pool2d(tf.nn.conv2d(x, tf.ones([3, 3, 2, 4]), 1, "SAME"), 2, 2, "VALID"), [IMAGES]),
    (lambda i: tf.reduce_mean(tf.gather(TABLE, i), axis=1), [INDICES]),
    (lambda x, i: x[:, :2] + tf.cast(i, tf.float32), [X, INDICES]),
    (lambda x: tf.gather(x, [2, 0], axis=1), [X]),
]
LSTM = tf.keras.layers.LSTM(5, return_sequences=True)
GRU = tf.keras.layers.Bidirectional(tf.keras.layers.GRU(3))
SEQUENCES = tf.TensorSpec([None, None, 4], tf.float32)


def powers(x):
    for _ in tf.range(3):
        x = x * 0.5 + x @ TABLE[:, :1]
    return x


APART += [
    (lambda x: tf.reshape(tf.reshape(x, [4, -1]), [-1, 4]), [X]),
    (lambda x: tf.transpose(tf.cumsum(tf.transpose(x), axis=0)), [X]),
    (lambda x: tf.transpose(tf.reshape(tf.transpose(x), [2, 2, -1]), [2, 0, 1]), [X]),
    (lambda x: LSTM(x), [SEQUENCES]),
    (lambda x: GRU(x), [SEQUENCES]),
    (powers, [X]),
    (lambda x: tf.cond(LIMIT < 1.0, lambda: tf.nn.relu(x), lambda: x - 1.0), [X]),
    (lambda x: tf.transpose(tf.map_fn(tf.nn.softplus, tf.transpose(x))), [X]),
]


def until_each_is_large(x):
    while tf.reduce_max(x) < 10.0:
        x = x + 1.0
    return x


def rolled(x):
    for _ in tf.range(2):
        x = tf.roll(x, 1, axis=0)
    return x


MIXED = [
    (until_each_is_large, [X]),
    (rolled, [X]),
    (lambda x: tf.cond(x[0, 0] < 1.0, lambda: x, lambda: x - 1.0), [X]),
    (lambda x: tf.cond(LIMIT < 1.0, lambda: x, lambda: x - tf.reduce_mean(x)), [X]),
    (lambda x: tf.map_fn(lambda row: row * 2.0, x), [X]),
    (lambda x: tf.transpose(tf.cumsum(tf.transpose(x), axis=1)), [X]),
    (lambda x: tf.reshape(tf.transpose(x), [-1, 4]), [X]),
    (lambda x: x + tf.reshape(tf.transpose(x), [-1, 4]), [X]),
    (lambda x: tf.tensor_scatter_nd_update(x, [[0]], x[:1]), [X]),
    (lambda x: x[:, :tf.shape(x)[0] // 8 + 1], [X]),
    (lambda x: tf.keras.layers.LSTM(5)(tf.transpose(x, [1, 0, 2])), [SEQUENCES]),
    (lambda x: x - tf.reduce_mean(x), [X]),
    (lambda x: x - tf.reduce_mean(x, axis=0), [X]),
    (lambda x: x[::-1], [X]),
    (lambda x: x[1:], [X]),
    (lambda x: tf.reverse(x, [0]), [X]),
    (lambda x: tf.cumsum(x), [X]),
    (lambda x: tf.nn.softmax(x, axis=0), [X]),
    (lambda x: x * tf.cast(tf.shape(x)[0], tf.float32), [X]),
    (lambda x: x + tf.reshape(tf.range(tf.cast(tf.shape(x)[0], tf.float32)), [-1, 1]), [X]),
    (lambda x: tf.matmul(tf.matmul(x, x, transpose_b=True), x), [X]),
    (lambda x: tf.gather(x, tf.argsort(x[:, 0])), [X]),
    (lambda x, i: tf.gather(x, i[:, 0]), [X, INDICES]),
    (lambda x: x + tf.random.normal([4]), [X]),
    (lambda x: tf.transpose(x), [X]),
    (lambda x: x, [tf.TensorSpec([3, 4], tf.float32)]),
    (lambda x: tf.constant(1.0), [X]),
    (lambda x: tf.sort(x[:, 0]), [X]),
    (lambda x: tf.while_loop(lambda y: tf.reduce_sum(y) < 10.0, lambda y: [y + 1.0], [x])[0], [X]),
]


def traced(fn, specs):
    return tf.function(fn, input_signature=specs).get_concrete_function()


@pytest.mark.parametrize(("fn", "specs"), APART)
def test_rows_are_apart(fn, specs):
    concrete = traced(fn, specs)
    assert rows_apart(concrete.graph, len(specs))
    rng = np.random.default_rng(1)
    numbers = [rng.integers(0, 4, [5, *[d or 3 for d in s.shape[1:]]]) for s in specs]
    given = [tf.constant((n if s.dtype.is_integer else n / 3).astype(s.dtype.np))
             for n, s in zip(numbers, specs, strict=True)]
    whole = concrete(*given).numpy()
    alone = [concrete(*[x[n:n + 1] for x in given]).numpy() for n in range(5)]
    assert np.array_equal(whole.view(np.uint32), np.concatenate(alone).view(np.uint32))


@pytest.mark.parametrize(("fn", "specs"), MIXED)
def test_rows_are_mixed(fn, specs):
    assert not rows_apart(traced(fn, specs).graph, len(specs))
