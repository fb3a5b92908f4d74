"""Axes of Keras's functions as tensors that only running can tell: results and gradients are those of plain numbers.

A function that hands its axis on to several others must be staged as a whole for each value, since the sizes between
those would be unknown.
"""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

K = tf.keras
X = np.array([[1.0, 0.5, -3.0], [2.0, 4.0, 0.25], [0.5, 0.5, 1.5]], np.float32)
Y = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0], [0.1, 0.1, 0.8]], np.float32)
NAN = np.where(X > 3, np.nan, X).astype(np.float32)
CALLS = {
    "sparsemax": lambda x, axis: K.activations.sparsemax(x, axis=axis),
    "ops.sparsemax": lambda x, axis: K.ops.sparsemax(x, axis=axis),
    "softmax": lambda x, axis: K.ops.softmax(x, axis=axis),
    "ops.normalize": lambda x, axis: K.ops.normalize(x, axis=axis),
    "ops.normalize, of order 3": lambda x, axis: K.ops.normalize(x, axis=axis, order=3),
    "nanstd": lambda x, axis: K.ops.nanstd(NAN * x, axis=axis),
    "nanvar": lambda x, axis: K.ops.nanvar(NAN * x, axis=axis, keepdims=True),
    "nanmax": lambda x, axis: K.ops.nanmax(NAN * x, axis=axis, keepdims=True),
    "ptp": lambda x, axis: K.ops.ptp(x, axis=axis),
    "std": lambda x, axis: K.ops.std(x, axis=axis, keepdims=True),
    "ops.categorical_crossentropy": lambda x, axis: K.ops.categorical_crossentropy(Y, tf.exp(x), axis=axis),
    "categorical_crossentropy": lambda x, axis: K.losses.categorical_crossentropy(Y, tf.exp(x), axis=axis),
    "of logits": lambda x, axis: K.losses.categorical_crossentropy(Y, x, from_logits=True, axis=axis),
    "focal": lambda x, axis: K.losses.categorical_focal_crossentropy(Y, tf.exp(x), axis=axis),
    "sparse": lambda x, axis: K.losses.sparse_categorical_crossentropy([0, 2, 1], tf.exp(x), axis=axis),
    "cosine_similarity": lambda x, axis: K.losses.cosine_similarity(Y, x, axis=axis),
    "pearson": lambda x, axis: K.metrics.pearson_correlation(Y, x, axis=axis),
    "concordance": lambda x, axis: K.metrics.concordance_correlation(Y, x, axis=axis),
}


@pytest.mark.parametrize("name", CALLS)
def test_axes(name):
    def value_and_gradient(x, axis):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = CALLS[name](x, axis)
            total = tf.reduce_sum(y * tf.cast(tf.range(1, tf.size(y) + 1), y.dtype)[..., None] if not y.shape.rank
                                  else tf.square(y))
        return y, tape.gradient(total, x)

    traced = tf.function(value_and_gradient, input_signature=[
        tf.TensorSpec([3, 3], tf.float32), tf.TensorSpec([], tf.int32)], fallback=False)
    for axis in (0, 1, -1, -2):
        for got, want in zip(traced(X, axis), value_and_gradient(tf.constant(X), axis), strict=True):
            np.testing.assert_array_equal(got, want, f"axis {axis}")
    for axis in (2, -3):
        with pytest.raises(tf.errors.InvalidArgumentError):
            traced(X, axis)


SETTINGS = {
    "fold": lambda v: K.ops.fold(tf.ones([1, 2, 2]), v, (1, 2)),
    "fold's stride": lambda v: K.ops.fold(tf.ones([1, 2, 2]), (2, 2), (1, 2), stride=tf.minimum(v, 1)),
    "unfold": lambda v: K.ops.unfold(tf.ones([1, 1, 4, 4]), v),
    "max_pool": lambda v: K.ops.max_pool(tf.ones([1, 4, 4, 1]), (2, 2), strides=v),
    "conv": lambda v: K.layers.Conv2D(2, v, kernel_initializer="ones")(tf.ones([1, 4, 4, 1])),
    "UpSampling2D": lambda v: K.layers.UpSampling2D(v)(tf.ones([1, 2, 2, 1])),
    "build": lambda v: K.layers.Dense(2, kernel_initializer="ones").compute_output_shape(v)[0] + tf.zeros([]),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # that it runs eagerly
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_must_be_known_run_as_without_a_function(name):
    for given in (tf.Variable([2, 2]), tf.constant([2, 2])):
        want = SETTINGS[name](given)
        got = tf.function(lambda v: SETTINGS[name](v), autograph=False)(given)
        np.testing.assert_array_equal(got, want)
        held = tf.function(lambda v=given: SETTINGS[name](v), autograph=False)()
        np.testing.assert_array_equal(held, want)
