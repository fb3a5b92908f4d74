"""What libraries written for TensorFlow rely on beside its functions; TensorFlow gives the same."""

from __future__ import annotations

import collections.abc
import random

import numpy as np

import twofold as tf


def test_what_is_no_tensor_is_its_own_static_value():
    assert tf.get_static_value([1, 2]) == [1, 2] and tf.get_static_value(3) == 3 and tf.get_static_value(None) is None
    assert tf.get_static_value(tf.Variable(2.0)) is None
    assert tf.get_static_value(tf.TensorShape([2])) == [2]
    assert tf.get_static_value(tf.constant(2.0)) == 2.0


def test_shapes_of_scalars_broadcast():
    assert tf.broadcast_dynamic_shape([], tf.constant([2, 3])).numpy().tolist() == [2, 3]
    assert tf.broadcast_dynamic_shape([], []).numpy().tolist() == []


def test_shapes_are_no_sequences_that_others_take_apart():
    assert not isinstance(tf.TensorShape([2, 3]), collections.abc.Sequence)
    assert list(tf.TensorShape([2, 3])) == [2, 3]


def test_variables_of_other_classes_are_made_without_creators():
    class Held(tf.Variable):
        def __init__(self, value):
            super().__init__(value + 1.0)

    seen = []

    def creator(make, **kwargs):
        seen.append(kwargs["initial_value"])
        return Held(kwargs["initial_value"])

    with tf.variable_creator_scope(creator):
        assert isinstance(tf.Variable(1.0), Held)
    assert seen == [1.0]


def test_a_test_case_begins_with_the_same_numbers():
    class Case(tf.test.TestCase):
        def test(self):
            drawn.append((random.random(), np.random.rand(), tf.random.uniform([]).numpy()))

    drawn: list[tuple[float, ...]] = []
    for _ in range(2):
        case = Case("test")
        case.setUp()
        case.test()
    assert drawn[0] == drawn[1]


def test_a_test_case_evaluates_in_the_graph_that_is_current():
    case = tf.test.TestCase()
    with case.cached_session() as session:
        assert session.run({"x": tf.constant(2.0) * 3.0}) == {"x": 6.0}
    assert tf.Variable(1.0).initializer is None
    with tf.compat.v1.Graph().as_default():
        v = tf.Variable([1.0, 2.0])
        case.evaluate(v.initializer)
        assert case.evaluate([v * 2.0, (v[0],)])[1] == (1.0,)
        case.assertAllClose(v * 2.0, [2.0, 4.0])
        case.assertAllEqual([v, 3], [tf.constant([1.0, 2.0]), 3])
        with case.session() as session:
            assert session.run(v + 1.0).tolist() == (v + 1.0).eval().tolist() == [2.0, 3.0]
        case.assertNotAllEqual(v, [1.0, 3.0])


def test_results_have_the_names_that_tensorflow_gives_them():
    matrix = tf.constant([[2.0, 0.0], [0.0, 3.0]])
    assert tf.linalg.slogdet(matrix).log_abs_determinant.numpy() == np.float32(np.log(6.0))
    assert tf.linalg.qr(matrix).r.shape == (2, 2)
    assert tf.convert_to_tensor(tf.TensorShape([])).dtype == tf.int32


def test_a_graph_gives_names_in_every_mode():
    names = [tf.compat.v1.get_default_graph().unique_name("taken", mark_as_used=False)]
    tf.function(lambda: names.append(
        tf.compat.v1.get_default_graph().unique_name("taken", mark_as_used=False)) or 1)()
    with tf.compat.v1.Graph().as_default() as graph:
        assert tf.compat.v1.get_default_graph() is graph
    assert names == ["taken", "taken"] and tf.executing_eagerly()


def test_operators_that_stand_ins_pass_on():
    assert {"__add__", "__getitem__", "__rsub__"} <= tf.Tensor.OVERLOADABLE_OPERATORS
    assert all(hasattr(tf.Tensor, name) for name in tf.Tensor.OVERLOADABLE_OPERATORS)


def test_places_of_the_largest_are_int64_where_nothing_is_said():
    assert tf.argmax([1, 3, 2]).dtype == tf.argmin([1, 3, 2], output_type=None).dtype == tf.int64


def test_seeds_are_as_large_as_users_like():
    tf.random.set_seed(1)
    drawn = tf.random.uniform([3], seed=7 + 5 * (2**31 - 1) * 2**80)
    tf.random.set_seed(1)
    np.testing.assert_array_equal(drawn, tf.random.uniform([3], seed=7))


def test_errors_of_ops_are_expected_by_their_text():
    with tf.test.TestCase().assertRaisesOpError("below zero"):
        tf.debugging.assert_non_negative(tf.constant(-1), message="below zero")
