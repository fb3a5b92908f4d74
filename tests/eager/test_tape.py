"""`tf.GradientTape`: what it watches, what it gives and when, persistence and nesting, Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from derivatives import CLOSE, f64, gradient, jacobian

import twofold as tf

ONCE = "GradientTape.gradient can only be called once on non-persistent tapes."


def curved(x: Any) -> Any:
    """A smooth function of a vector that mixes elements."""
    return tf.exp(tf.sin(x)) * tf.reduce_sum(x * x) + tf.reverse(x, axis=[0])


def tape_gradient(f: Any, x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


# -- what is differentiated -------------------------------------------------------------------------
def test_gradient_against_differences() -> None:
    x = [0.3, -1.2, 0.7]
    derivative = tape_gradient(lambda x: tf.reduce_sum(curved(x)), f64(x))
    np.testing.assert_allclose(derivative, gradient(lambda x: tf.reduce_sum(curved(x)), x), **CLOSE)


def test_the_elements_of_a_target_are_added_up() -> None:
    assert tape_gradient(lambda x: x * x, tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]


def test_unwatched_tensors_have_no_gradient() -> None:
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(y)
        y = y * 1.0  # has been seen by a tape, though not by the one that is asked
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = x * y
        assert tape.gradient(z, [x, y])[1] is None


def test_operands_that_are_never_watched_record_nothing() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x) is None


def test_watching_starts_when_watch_is_called() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        before = x * x
        tape.watch(x)
        after = x * x
    assert tape.gradient(before, x) is None
    assert float(tape.gradient(after, x)) == 6.0


def test_watch_before_the_block() -> None:
    x, tape = tf.constant(3.0), tf.GradientTape()
    tape.watch(x)
    with tape:
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


def test_integers_have_no_gradient() -> None:
    n, x = tf.constant(3), tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([n, x])
        m, y = n * n, x * tf.cast(n, tf.float32)
        cut = tf.cast(tf.cast(x, tf.int32), tf.float32)
    assert tape.gradient(m, n) is None
    assert tape.gradient(y, n) is None
    assert tape.gradient(m, x) is None
    assert tape.gradient(cut, x) is None
    assert float(tape.gradient(y, x)) == 3.0


def test_watch_rejects_what_is_no_tensor() -> None:
    with pytest.raises(ValueError, match="Passed in object 3.0 of type 'float'"):
        tf.GradientTape().watch(3.0)


def test_a_source_may_be_an_intermediate_value() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert [float(g) for g in tape.gradient(z, [x, y, z])] == [32.0, 8.0, 1.0]
    assert float(tape.gradient(x, x)) == 1.0
    assert tape.gradient(x, z) is None


def test_many_uses_add_up() -> None:
    x = tf.constant(1.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = sum([x * float(k) for k in range(10)], x)
    assert float(tape.gradient(y, x)) == 46.0


def test_results_of_several_outputs() -> None:
    x = f64([[2.0, 0.5], [0.1, 3.0]])

    def f(x: Any) -> Any:
        sign, log = tf.linalg.slogdet(x)
        return log + sign
    np.testing.assert_allclose(tape_gradient(f, x), np.linalg.inv(x.numpy()).T, rtol=1e-12)


def test_structures() -> None:
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch({"a": x, "b": (y,)})
        targets = {"p": x * y, "q": [x * x]}
    gradients = tape.gradient(targets, {"b": (y,), "a": [x]})
    assert gradients.keys() == {"a", "b"}
    assert isinstance(gradients["b"], tuple) and float(gradients["b"][0]) == 2.0
    assert isinstance(gradients["a"], list) and float(gradients["a"][0]) == 7.0
    weighted = tape.gradient(targets, x, output_gradients={"p": tf.constant(10.0), "q": [tf.constant(100.0)]})
    assert float(weighted) == 430.0
    assert tape.gradient(targets, []) == []


def test_output_gradients() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = x * x, x * 3.0
    assert tape.gradient(y, x, output_gradients=tf.constant([1.0, 10.0])).numpy().tolist() == [2.0, 40.0]
    assert tape.gradient([y, z], x, output_gradients=[None, np.float32([0.0, 1.0])]).numpy().tolist() == [2.0, 7.0]
    with pytest.raises(ValueError, match="shape"):
        tape.gradient(y, x, output_gradients=tf.constant(1.0))
    with pytest.raises(ValueError, match="2 entries for 1 targets"):
        tape.gradient(y, x, output_gradients=[None, None])


def test_unconnected_gradients() -> None:
    x, y = tf.constant([1.0, 2.0]), tf.Variable(np.ones((2, 3)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        z = x * x
    assert tape.gradient(z, y) is None
    for zero in ("zero", tf.UnconnectedGradients.ZERO):
        gradients = tape.gradient(z, [x, y], unconnected_gradients=zero)
        assert gradients[0].numpy().tolist() == [2.0, 4.0]
        assert (gradients[1].shape, gradients[1].dtype) == ((2, 3), tf.float64) and not gradients[1].numpy().any()
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'nought'"):
        tape.gradient(z, y, unconnected_gradients="nought")


def test_bad_targets_and_sources() -> None:
    x = tf.constant(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(TypeError, match="received None"):
        tape.gradient(None, x)
    with pytest.raises(TypeError, match="sources must be tensors or variables"):
        tape.gradient(y, 2.0)


def test_nan_on_the_side_not_taken_does_not_leak() -> None:
    x, y = tf.constant([2.0, 4.0]), tf.constant([np.nan, 1.0])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.where(tf.constant([True, False]), x * x, y * y) * x
    dx, dy = tape.gradient(z, [x, y])
    assert dx.numpy().tolist() == [12.0, 1.0]
    assert np.isnan(dy.numpy()[0]) or dy.numpy()[0] == 0.0
    assert dy.numpy()[1] == 8.0


# -- variables --------------------------------------------------------------------------------------
def test_trainable_variables_are_watched() -> None:
    v, still = tf.Variable(3.0), tf.Variable(5.0, trainable=False)
    with tf.GradientTape() as tape:
        y = v * v * still
    assert [w is v for w in tape.watched_variables()] == [True]
    dv, dstill = tape.gradient(y, [v, still])
    assert float(dv) == 30.0 and dstill is None
    assert [w is v for w in tape.watched_variables()] == [True]


def test_watch_accessed_variables_off() -> None:
    v, w = tf.Variable(2.0), tf.Variable(3.0, trainable=False)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(w)
        y = v * w
    dv, dw = tape.gradient(y, [v, w])
    assert dv is None and float(dw) == 2.0


def test_watched_variables_come_in_the_order_they_were_made() -> None:
    a, b, c = (tf.Variable(float(i)) for i in range(3))
    with tf.GradientTape() as tape:
        _ = c * a * b
    assert [w is v for w, v in zip(tape.watched_variables(), (a, b, c), strict=True)] == [True] * 3


def test_a_variable_assigned_between_reads() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v  # 2 * 2
        v.assign(10.0)
        z = v * v * v + y  # 3 * 100 more
    assert float(tape.gradient(z, v)) == 304.0


def test_assigning_a_result_does_not_connect() -> None:
    v, x = tf.Variable(2.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        v.assign(x * x)
        y = v * 2.0
    assert tape.gradient(y, x) is None
    assert float(tape.gradient(y, v)) == 2.0


def test_the_value_of_a_variable_may_be_watched_as_a_tensor() -> None:
    v = tf.Variable(2.0)
    value = v.value()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(value)
        y = v * v
    assert float(tape.gradient(y, v)) == 4.0


def test_parts_of_variables() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = v[1] * v[1] + v[2]
    assert tape.gradient(y, v).numpy().tolist() == [0.0, 4.0, 1.0]


# -- life of a tape ---------------------------------------------------------------------------------
def test_second_use() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    for again in (lambda: tape.gradient(y, x), lambda: tape.jacobian(y, x)):
        with pytest.raises(RuntimeError) as error:
            again()
        assert str(error.value) == ONCE


def test_a_rejected_call_does_not_use_the_tape_up() -> None:
    x = tf.constant([3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(ValueError, match="entries"):
        tape.gradient(y, x, output_gradients=[None, None])
    assert float(tape.gradient(y, x)[0]) == 6.0


def test_gradient_inside_the_block() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = 3.0 * x * x
        assert float(tape.gradient(y, x)) == 18.0
        with pytest.raises(RuntimeError, match="not recording"), tape.stop_recording():
            pass


def test_second_order_with_one_persistent_tape() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = 3.0 * x * x * x
        dy = tape.gradient(y, x)
        d2y = tape.gradient(dy, x)
    assert [float(dy), float(d2y), float(tape.gradient(d2y, x))] == [81.0, 54.0, 18.0]


def test_nested_tapes_to_the_fourth_order() -> None:
    def derivative(f: Any) -> Any:
        return lambda x: tape_gradient(f, x)
    f, x = tf.sin, f64(0.8)
    expected = [np.cos(0.8), -np.sin(0.8), -np.cos(0.8), np.sin(0.8)]
    for value in expected:
        f = derivative(f)
        np.testing.assert_allclose(f(x), value, rtol=1e-14)


def test_hessian_against_differences() -> None:
    x = [0.4, -0.9, 1.1]

    def slope(x: Any) -> Any:
        return tape_gradient(lambda x: tf.reduce_sum(curved(x)), x)
    at = f64(x)
    with tf.GradientTape() as tape:
        tape.watch(at)
        g = slope(at)
    np.testing.assert_allclose(tape.jacobian(g, at), jacobian(slope, x), **CLOSE)


def test_an_inner_tape_may_use_what_an_outer_one_follows() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        y = x * x
        with tf.GradientTape() as inner:
            inner.watch(y)
            z = y * y * x
        dz = inner.gradient(z, y)  # 2 y x = 2 x^3
    assert float(dz) == 16.0
    assert float(outer.gradient(dz, x)) == 24.0


def test_persistent_tapes_answer_repeatedly_and_for_any_target() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * x
    assert [float(tape.gradient(t, x)) for t in (y, z, y, z)] == [4.0, 12.0, 4.0, 12.0]


def test_persistent_tapes_can_be_entered_again() -> None:
    x = tf.constant(2.0)
    tape = tf.GradientTape(persistent=True)
    with tape:
        tape.watch(x)
        y = x * x
    with tape:
        z = y * x
    assert float(tape.gradient(z, x)) == 12.0


def test_a_used_tape_starts_anew() -> None:
    x, v, w = tf.constant(2.0), tf.Variable(1.0), tf.Variable(1.0)
    tape = tf.GradientTape()
    for variable in (v, w):
        with tape:
            tape.watch(x)
            y = x * x * variable
        assert float(tape.gradient(y, x)) == 4.0
        assert [u is variable for u in tape.watched_variables()] == [True]


def test_an_open_tape_cannot_be_entered() -> None:
    with tf.GradientTape() as tape, pytest.raises(ValueError, match="still recording"), tape:
        pass


def test_stop_recording() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            hidden = x * y
            inside = tape.gradient(y, x)
        z = y * x
    assert float(inside) == 6.0
    assert tape.gradient(hidden, x) is None
    assert tape.gradient(inside, x) is None
    assert float(tape.gradient(z, x)) == 27.0


def test_an_error_in_stop_recording_leaves_the_tape_recording() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(KeyError), tape.stop_recording():
            raise KeyError
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


def test_reset_forgets() -> None:
    x, v = tf.constant(3.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * v
        tape.reset()
        assert tape.watched_variables() == ()
        z = x * x * v
        w = z * v
    assert tape.gradient(y, x) is None
    assert tape.gradient(w, x) is None
    assert float(tape.gradient(w, v)) == 36.0


def test_an_error_in_the_block_closes_the_tape() -> None:
    x = tf.constant(3.0)
    tape = tf.GradientTape(persistent=True)
    with pytest.raises(KeyError), tape:
        tape.watch(x)
        y = x * x
        raise KeyError
    z = y * x
    assert float(tape.gradient(y, x)) == 6.0
    assert tape.gradient(z, x) is None


def test_complex_gradients_are_conjugated() -> None:
    z = tf.constant(1.0 + 2.0j, tf.complex128)
    derivative = tape_gradient(lambda z: z * z, z)
    assert complex(derivative) == np.conj(2 * (1 + 2j))


# -- Jacobians --------------------------------------------------------------------------------------
def test_jacobian_against_differences() -> None:
    x = [[0.3, -1.2], [0.7, 0.1]]

    def f(x: Any) -> Any:
        return tf.linalg.matmul(tf.sin(x), x)[:, 0]
    at = f64(x)
    with tf.GradientTape() as tape:
        tape.watch(at)
        y = f(at)
    derivatives = tape.jacobian(y, at)
    assert derivatives.shape == (2, 2, 2)
    np.testing.assert_allclose(derivatives, jacobian(f, x), **CLOSE)


def test_jacobian_of_structures_and_unconnected_sources() -> None:
    x, v, w = tf.constant([1.0, 2.0]), tf.Variable([[3.0]]), tf.Variable([1.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * v[0, 0]
    derivatives = tape.jacobian(y, {"x": x, "v": v, "w": w})
    assert derivatives["x"].numpy().tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert derivatives["v"].numpy().tolist() == [[[1.0]], [[4.0]]]
    assert derivatives["w"] is None
    zero = tape.jacobian(y, w, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert zero.numpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_jacobian_of_a_scalar_and_of_nothing() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, none = tf.reduce_sum(x * x), x[:0] * 2.0
    assert tape.jacobian(y, x).numpy().tolist() == [2.0, 4.0]
    assert tape.jacobian(none, x).shape == (0, 2)


def test_jacobian_in_part_unconnected() -> None:
    x, y = tf.constant([1.0, 2.0]), tf.constant([5.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = tf.concat([x * x, y], axis=0)
    assert tape.jacobian(z, y).numpy().tolist() == [[0.0], [0.0], [1.0]]


def test_jacobian_is_differentiable() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x * x
        diagonal = tf.linalg.diag_part(tape.jacobian(y, x))
    assert outer.gradient(diagonal, x).numpy().tolist() == [6.0, 12.0]


def test_batch_jacobian() -> None:
    x = [[0.3, -1.2], [0.7, 0.1], [0.5, 0.5]]

    def f(x: Any) -> Any:
        return tf.stack([x[:, 0] * x[:, 1], tf.exp(x[:, 0]), x[:, 1]], axis=1)
    at = f64(x)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(at)
        y = f(at)
    derivatives = tape.batch_jacobian(y, at)
    assert derivatives.shape == (3, 3, 2)
    whole = jacobian(f, x)
    np.testing.assert_allclose(derivatives, [whole[b, :, b] for b in range(3)], **CLOSE)
    assert tape.batch_jacobian(y, f64(np.ones((3, 2)))) is None
    with pytest.raises(ValueError, match="first dimension"):
        tape.batch_jacobian(y, f64(np.ones((2, 2))))


def test_sources_may_be_objects_that_act_for_variables() -> None:
    class Holder:  # Keras has a class of its own for variables
        _should_act_as_resource_variable = True

        def __init__(self, variable: Any) -> None:
            self.handle = variable

    first, second = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = first * first * second
    assert [g.numpy() for g in tape.gradient(y, [Holder(first), second])] == [12.0, 4.0]
    assert tape.gradient(y, Holder(second)).numpy() == tape.jacobian(y, Holder(second)).numpy() == 4.0
    assert first._unique_id != second._unique_id
