"""`tf.autodiff.ForwardAccumulator`: tangents of ops of every kind, higher orders, together with tapes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from derivatives import CLOSE, f64, jacobian

import twofold as tf
from twofold.autodiff import ForwardAccumulator

RNG = np.random.default_rng(7)


def jvp(f: Callable[..., Any], x: Any, v: Any) -> Any:
    with ForwardAccumulator(x, v) as acc:
        y = f(x)
    return acc.jvp(y)


def curved(x: Any) -> Any:
    return tf.reduce_sum(tf.exp(tf.sin(x)) * x) * tf.reduce_sum(x * x)


# Functions of a [3, 4] matrix, one for each way in which a tangent comes about.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: tf.exp(tf.sin(x)) / (x * x + 1.0),
    "broadcasting": lambda x: x * x[:, :1] + x[0],
    "numbers": lambda x: 2.0 - x * 3.0,
    "where": lambda x: tf.where(x > 0.0, x * x, tf.exp(x)),
    "view": lambda x: tf.transpose(tf.reshape(x, [2, 6]))[::-1],
    "reduction": lambda x: tf.reduce_max(x, axis=1) + tf.reduce_prod(x, axis=1),
    "matmul": lambda x: tf.linalg.matmul(x, x, transpose_b=True),
    "gather": lambda x: tf.gather(x, [2, 0, 2], axis=1),
    "concat": lambda x: tf.concat([x, x * x], axis=0),
    "softmax": lambda x: tf.nn.softmax(x),
    "cast": lambda x: tf.cast(tf.cast(x, tf.complex128) * (1.0 + 2.0j), tf.complex128),
    "several outputs": lambda x: tf.linalg.slogdet(tf.linalg.matmul(x, x, transpose_b=True))[1],
    "cumulative": lambda x: tf.cumsum(x * x, axis=1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_against_differences(name: str) -> None:
    f = FUNCTIONS[name]
    x, v = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4))
    expected = np.tensordot(jacobian(f, x), v, axes=2)
    np.testing.assert_allclose(jvp(f, f64(x), f64(v)), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["elementwise", "broadcasting", "reduction", "matmul", "softmax"])
def test_second_tangents_against_differences(name: str) -> None:
    f = FUNCTIONS[name]
    x, u, v = (RNG.normal(size=(3, 4)) for _ in range(3))
    expected = np.tensordot(jacobian(lambda x: jvp(f, x, f64(u)), x), v, axes=2)
    second = jvp(lambda x: jvp(f, x, f64(u)), f64(x), f64(v))
    np.testing.assert_allclose(second, expected, rtol=1e-5, atol=1e-6)


def test_complex_tangents() -> None:
    z, t = 1.0 + 2.0j, 0.5 - 1.0j
    tangent = jvp(lambda z: z * z * tf.math.conj(z), tf.constant(z, tf.complex128), tf.constant(t, tf.complex128))
    np.testing.assert_allclose(complex(tangent), 2 * z * t * np.conj(z) + z * z * np.conj(t), rtol=1e-14)


def test_several_primals_and_structures() -> None:
    x, y = tf.constant(2.0), tf.constant(3.0)
    with ForwardAccumulator({"x": x, "y": [y]}, {"x": tf.constant(1.0), "y": [10.0]}) as acc:
        product, twice = x * y, x * 2.0
    tangents = acc.jvp({"product": product, "rest": (twice, x)})
    assert float(tangents["product"]) == 23.0
    assert [float(t) for t in tangents["rest"]] == [2.0, 1.0]


def test_variables_as_primals() -> None:
    v, other = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    with ForwardAccumulator(v, tf.constant([1.0, 0.0])) as acc:
        y = v * v * other
        v.assign([5.0, 5.0])
        z = v[0] * v[0]
    assert acc.jvp(y).numpy().tolist() == [6.0, 0.0]
    assert float(acc.jvp(z)) == 10.0
    assert acc.jvp(v).numpy().tolist() == [1.0, 0.0]
    assert acc.jvp(other) is None


def test_unconnected() -> None:
    x, y = tf.constant(2.0), tf.constant([3.0, 4.0])
    with ForwardAccumulator(x, tf.constant(1.0)) as acc:
        z, n, stopped = y * y, tf.cast(x, tf.int32), tf.stop_gradient(x) * 2.0
    after = x * x
    assert [acc.jvp(t) for t in (z, n, stopped, after)] == [None] * 4
    assert acc.jvp(z, unconnected_gradients="zero").numpy().tolist() == [0.0, 0.0]
    assert acc.jvp([z, x], tf.UnconnectedGradients.ZERO)[0].numpy().tolist() == [0.0, 0.0]


def test_custom_gradients_are_respected() -> None:
    f = tf.custom_gradient(lambda x, y: (x * y, lambda dy: (dy * 10.0, dy * 100.0)))
    x, y = tf.constant(2.0), tf.constant(3.0)
    with ForwardAccumulator([x, y], [tf.constant(1.0), tf.constant(2.0)]) as acc:
        z = f(x, y)
    assert float(acc.jvp(z)) == 210.0


# -- together with tapes and each other -------------------------------------------------------------
def hessian(x: np.ndarray) -> np.ndarray:
    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = curved(x)
        return tape.gradient(y, x)
    return jacobian(slope, x)


X, V = np.array([1.0, 2.0, -0.5]), np.array([1.0, 0.5, -1.0])


def test_forward_over_reverse() -> None:
    x = f64(X)
    with ForwardAccumulator(x, f64(V)) as acc:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = curved(x)
        slope = tape.gradient(y, x)
    np.testing.assert_allclose(acc.jvp(slope), hessian(X) @ V, **CLOSE)


@pytest.mark.parametrize("tape_first", [True, False])
def test_reverse_over_forward_in_either_nesting(tape_first: bool) -> None:
    x = f64(X)
    tape, acc = tf.GradientTape(), ForwardAccumulator(x, f64(V))
    outer, inner = (tape, acc) if tape_first else (acc, tape)
    with outer, inner:
        tape.watch(x)
        y = curved(x)
        slope = acc.jvp(y)
    np.testing.assert_allclose(tape.gradient(slope, x), hessian(X) @ V, **CLOSE)


def test_forward_over_forward() -> None:
    x = f64(X)
    with ForwardAccumulator(x, f64(V)) as outer, ForwardAccumulator(x, f64(V)) as inner:
        y = curved(x)
        slope = inner.jvp(y)
    np.testing.assert_allclose(outer.jvp(slope), V @ hessian(X) @ V, **CLOSE)


def test_third_order_mixed() -> None:
    x = f64(0.7)
    with ForwardAccumulator(x, f64(1.0)) as outer:
        with tf.GradientTape() as tape:
            tape.watch(x)
            with ForwardAccumulator(x, f64(1.0)) as inner:
                y = tf.sin(x)
            first = inner.jvp(y)
        second = tape.gradient(first, x)
    np.testing.assert_allclose(outer.jvp(second), -np.cos(0.7), rtol=1e-13)


# -- life -------------------------------------------------------------------------------------------
def test_errors() -> None:
    x = tf.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="specified as a primal multiple times"):
        ForwardAccumulator([x, x], [x, x])
    with pytest.raises(ValueError, match=r"shape \(\).*shape \(2,\)"):
        ForwardAccumulator(x, tf.constant(1.0))
    with pytest.raises(ValueError, match="structures differ"):
        ForwardAccumulator(x, [x])
    with pytest.raises(TypeError, match="int32"):
        ForwardAccumulator(tf.constant(1), tf.constant(1))
    with pytest.raises(TypeError, match="primals must be tensors or variables"):
        ForwardAccumulator(1.0, 1.0)
    with ForwardAccumulator(x, x) as acc, pytest.raises(ValueError, match="already recording"), acc:
        pass


def test_tangents_go_with_their_tensors() -> None:
    x = tf.constant([1.0, 2.0])
    with ForwardAccumulator(x, tf.ones([2])) as acc:
        y = x * x
        tangent = weakref.ref(acc.jvp(y))
        assert tangent() is not None
        del y
        gc.collect()
        assert tangent() is None
        for _ in range(100):
            _ = x * x
        assert len(acc._tangents) <= 2


def test_accumulators_go_without_the_garbage_collector() -> None:
    x = tf.constant([1.0, 2.0])
    gc.collect()
    gc.disable()
    try:
        acc = ForwardAccumulator(x, tf.ones([2]))
        with acc:
            y = tf.reduce_sum(x * x)
        seen, tangent = weakref.ref(acc), weakref.ref(acc.jvp(y))
        del acc
        assert (seen(), tangent()) == (None, None)
    finally:
        gc.enable()


def test_tangents_of_composite_values_are_like_them() -> None:
    rows = tf.RaggedTensor.from_row_lengths(tf.constant([1.0, 2.0, 3.0]), [1, 2])
    few = tf.SparseTensor([[0, 1]], [2.0], [2, 2])
    with tf.autodiff.ForwardAccumulator([rows, few.values], [rows, tf.constant([5.0])]) as acc:
        squares, more, other = rows * rows, few * 3.0, tf.RaggedTensor.from_row_lengths([1.0], [1])
    by_rows, by_few = acc.jvp([squares, more])
    assert isinstance(by_rows, tf.RaggedTensor) and by_rows.to_list() == [[2.0], [8.0, 18.0]]
    assert isinstance(by_few, tf.SparseTensor) and by_few.values.numpy().tolist() == [15.0]
    assert by_few.indices.numpy().tolist() == [[0, 1]] and acc.jvp(other) is None
    assert acc.jvp(other, "zero").to_list() == [[0.0]]
