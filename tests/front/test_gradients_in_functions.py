"""`tf.gradients` inside of traced functions, against tapes and formulas."""

import numpy as np
import pytest

import twofold as tf

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], np.float32)


def test_against_a_tape_to_the_bit():
    w = tf.Variable(np.linspace(-1, 1, 6).reshape(3, 2).astype(np.float32))
    x = tf.constant(X)

    def loss_of(x):
        return tf.reduce_mean(tf.nn.softplus(tf.matmul(tf.sin(x), w)) ** 2)

    @tf.function
    def by_gradients(x):
        y = loss_of(x)
        return [y, *tf.gradients(y, [x, w])]

    @tf.function
    def by_tape(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loss_of(x)
        return [y, *tape.gradient(y, [x, w])]
    for have, want in zip(by_gradients(x), by_tape(x), strict=True):
        assert have.numpy().tobytes() == want.numpy().tobytes()
    assert by_gradients.experimental_get_tracing_count() == 1


def test_several_ys_weights_and_shapes_that_are_not_known():
    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None, 3])])
    def f(x, weight):
        return tf.gradients([x * x, 3.0 * x], x, grad_ys=[weight, None])[0]
    weight = X + 1.0
    np.testing.assert_allclose(f(X, weight), 2 * X * weight + 3.0, rtol=1e-6)
    np.testing.assert_allclose(f(X[:1], weight[:1]), 2 * X[:1] * weight[:1] + 3.0, rtol=1e-6)


def test_by_tensors_inside_of_the_function():
    @tf.function
    def f(x):
        a = x * 2.0
        b = a * a
        return tf.gradients(b + a, [a, x, b])
    da, dx, db = f(tf.constant(3.0))
    assert (float(da), float(dx), float(db)) == (13.0, 26.0, 1.0)


def test_stopped_tensors_are_constants():
    @tf.function
    def f(a):
        b = 2.0 * a
        total = a + b
        both = tf.gradients(total, [a, b])
        partial = tf.gradients(total, [a, b], stop_gradients=[a, b])
        after = tf.gradients(total * b, a, stop_gradients=b)
        return both, partial, after
    both, partial, after = f(tf.constant(5.0))
    assert [float(x) for x in both] == [3.0, 1.0]
    assert [float(x) for x in partial] == [1.0, 1.0]
    assert [float(x) for x in after] == [10.0]


def test_unconnected():
    @tf.function
    def f(x, y):
        assert tf.gradients(x, y) == [None]
        assert tf.gradients(tf.stop_gradient(x) * 2.0, x) == [None]
        return tf.gradients(x * x, [x, y], unconnected_gradients="zero")
    dx, dy = f(tf.constant(2.0), tf.constant([1.0, 1.0]))
    assert float(dx) == 4.0
    assert dy.numpy().tolist() == [0.0, 0.0]


def test_higher_orders_and_tapes_around():
    @tf.function
    def third(x):
        y = x ** 4
        for _ in range(3):
            y = tf.gradients(y, x)[0]
        return y

    @tf.function
    def mixed(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            slope = tf.gradients(tf.exp(2.0 * x) * x, x)[0]
        return tape.gradient(slope, x)
    assert float(third(tf.constant(2.0))) == pytest.approx(48.0, rel=1e-6)
    assert float(mixed(tf.constant(0.5))) == pytest.approx((4 + 4 * 0.5) * np.exp(1.0), rel=1e-5)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = third(x)
    assert float(tape.gradient(y, x)) == pytest.approx(24.0, rel=1e-6)


def test_through_control_flow_and_custom_gradients():
    @tf.custom_gradient
    def odd(x):
        return x * 1.0, lambda ct: ct * 7.0

    @tf.function
    def f(x, n):
        y = x
        for _ in tf.range(n):
            y = y * x
        if tf.reduce_sum(x) > 0.0:
            y = odd(y)
        else:
            y = -y
        return tf.gradients(y, x)[0]
    assert float(f(tf.constant(2.0), tf.constant(2))) == 7 * 3 * 4.0
    assert float(f(tf.constant(-2.0), tf.constant(3))) == -4 * -8.0
    second = tf.function(lambda x: tf.gradients(tf.gradients(tf.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x])[1], x)[0], x)[0])
    assert float(second(tf.constant(2.0))) == 12 * 4.0


@pytest.mark.parametrize("hand_on", [
    lambda x, n: tf.cond(n > 1, lambda: x, lambda: tf.sin(x)),
    lambda x, n: tf.while_loop(lambda i, v: i < n - 1, lambda i, v: (i + 1, tf.sin(v) * x), [0, x])[1]])
@pytest.mark.parametrize("late", [False, True])
def test_between_a_construct_and_the_gradient_of_a_tape(hand_on, late):
    """A tape knows the construct, or asks for its names, after `tf.gradients` has made it give residuals."""
    def f(x, n, slope):
        with tf.GradientTape(persistent=True) as tape:
            if not late:
                tape.watch(x)
            y = hand_on(x, n)
            z = y * x * tf.cos(y)
        first = slope(x, n, y)
        if late:
            with tape:
                tape.watch(x)
                z = y * x * tf.cos(y)
        return tape.gradient(z, x) + first

    def by_tape(x, n, _):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = hand_on(x, n)
            z = y * y * x
        return tape.gradient(z, x)
    x = tf.constant([1.0, 2.0, 3.0])
    by_gradients = tf.function(lambda x, n: f(x, n, lambda x, _, y: tf.gradients(y * y * x, x)[0]))
    for n in map(tf.constant, (0, 2, 3)):
        assert by_gradients(x, n).numpy().tobytes() == f(x, n, by_tape).numpy().tobytes()


def test_through_calls_of_functions():
    @tf.function
    def kept(x):
        return tf.boolean_mask(x, x > 0.0) ** 3, tf.constant(2.0) * x

    @tf.function
    def doubled(x):
        kept_, twice = kept(x)
        return tf.concat([kept_, kept_], 0), twice

    @tf.function
    def both(x):
        parts, twice = doubled(x)
        total = tf.reduce_sum(parts) + tf.reduce_sum(parts[:1]) + tf.reduce_sum(twice)
        slope = tf.gradients(total, x)[0]
        return parts, slope, tf.gradients(slope, x)[0]
    x = np.array([-1.0, 2.0, 3.0], np.float32)
    parts, first, second = both(tf.constant(x))
    assert parts.numpy().tolist() == [8.0, 27.0, 8.0, 27.0]
    assert first.numpy().tolist() == [2.0, 3 * 4.0 * 3 + 2.0, 2 * 27.0 + 2.0]
    assert second.numpy().tolist() == [0.0, 6 * 2.0 * 3, 2 * 18.0]


def test_variables_that_are_assigned():
    v = tf.Variable(3.0)

    @tf.function
    def f():
        before = v * v
        v.assign(v + 1.0)
        after = v * v * v
        return tf.gradients(before, v) + tf.gradients(after, v)
    assert [float(x) for x in f()] == [6.0, 48.0]
    assert float(v) == 4.0


def test_hessians():
    a = np.array([[2.0, 1.0], [0.5, 3.0]], np.float32)

    @tf.function
    def f(x, s):
        quadratic = tf.reduce_sum(x * tf.linalg.matvec(a, x))
        return tf.hessians([quadratic, s ** 3], [x, s])
    first, second = f(tf.constant([1.0, -1.0]), tf.constant(2.0))
    np.testing.assert_allclose(first, a + a.T)
    assert float(second) == 12.0


def test_errors():
    with pytest.raises(RuntimeError, match="tf.GradientTape"):
        tf.gradients(tf.constant(1.0), tf.constant(1.0))
    with pytest.raises(RuntimeError, match="tf.GradientTape"):
        tf.hessians(tf.constant(1.0), tf.constant(1.0))
    x = tf.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="2 grad_ys for 1 ys"):
        tf.function(lambda x: tf.gradients(x, x, grad_ys=[x, x]))(x)
    with pytest.raises(ValueError, match="does not fit"):
        tf.function(lambda x: tf.gradients(x, x, grad_ys=[1.0]))(x)
    with pytest.raises(ValueError, match="another type"):
        tf.function(lambda x: tf.gradients(x, x, grad_ys=[tf.constant([1.0, 1.0], tf.float64)]))(x)
    with pytest.raises(tf.errors.UnimplementedError, match="py_function"):
        tf.function(lambda x: tf.gradients(tf.py_function(lambda t: t * 2, [x], tf.TensorSpec([2])), x))(x)
