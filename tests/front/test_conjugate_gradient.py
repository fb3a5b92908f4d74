"""The method of conjugate gradients, by products alone."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

RNG = np.random.default_rng(2)
FACTOR = RNG.normal(size=(2, 5, 5))
MATRIX = FACTOR @ FACTOR.swapaxes(1, 2) + 2 * np.eye(5)
RIGHT = RNG.normal(size=(2, 5))


class Product:
    """Products by matrices."""

    is_self_adjoint = is_positive_definite = True

    def __init__(self, matrix):
        self.matrix = tf.constant(matrix)

    def matvec(self, x):
        return tf.linalg.matvec(self.matrix, x)


def test_it_solves_in_as_many_rounds_as_there_are_unknowns():
    solve = lambda r: tf.linalg.experimental.conjugate_gradient(Product(MATRIX), r, tol=1e-12)  # noqa: E731
    state = solve(tf.constant(RIGHT))
    np.testing.assert_allclose(state.x, np.linalg.solve(MATRIX, RIGHT[..., None])[..., 0], rtol=1e-9)
    assert 3 <= int(state.i) <= 7
    for one, other in zip(state, tf.function(solve)(tf.constant(RIGHT)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_preconditioner_a_beginning_and_one_right_side_for_all():
    inverse = Product(np.linalg.inv(MATRIX))
    state = tf.linalg.experimental.conjugate_gradient(Product(MATRIX), RIGHT[0], inverse, tol=1e-10)
    assert int(state.i) <= 2
    np.testing.assert_allclose(state.x, np.linalg.solve(MATRIX, np.broadcast_to(RIGHT[0], (2, 5))[..., None])[..., 0],
                               rtol=1e-9)
    again = tf.linalg.experimental.conjugate_gradient(Product(MATRIX), RIGHT[0], x=state.x, tol=1e-6)
    assert int(again.i) == 0
    bad = Product(MATRIX)
    bad.is_self_adjoint = False
    with pytest.raises(ValueError, match="self-adjoint, positive definite"):
        tf.linalg.experimental.conjugate_gradient(bad, RIGHT)


def test_dropout_by_given_numbers():
    x = tf.reshape(tf.range(1.0, 9.0), [2, 4])
    numbers = tf.constant([[0.1, 0.6, 0.4, 0.9]])
    y = tf.nn.experimental.general_dropout(x, 0.5, lambda shape, dtype: tf.cast(numbers, dtype), noise_shape=[1, 4])
    np.testing.assert_array_equal(y, [[0, 4, 0, 8], [0, 12, 0, 16]])
    draw = lambda seed: tf.nn.experimental.stateless_dropout(tf.ones([400]), 0.25, seed)  # noqa: E731
    first, same, other = draw([1, 2]).numpy(), tf.function(draw)([1, 2]).numpy(), draw([1, 3]).numpy()
    np.testing.assert_array_equal(first, same)
    assert (first != other).any() and 0.6 < (first > 0).mean() < 0.9
