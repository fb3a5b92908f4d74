"""Calls at the same time: whatever assigns variables reads, runs and assigns as one step for everybody else."""

import threading

import numpy as np
import pytest

import twofold as tf

SIZES = [1, 1 << 10, 1 << 17]  # run with the interpreter's lock held, and without it


def at_once(work, threads=4):
    """Run `work(number)` on several threads at once; the first error is raised here."""
    errors = []
    ready = threading.Barrier(threads)

    def run(number):
        try:
            ready.wait()
            work(number)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)
    running = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
    assert not any(thread.is_alive() for thread in running), "a thread waits for ever"
    if errors:
        raise errors[0]


@pytest.mark.parametrize("size", SIZES)
def test_no_update_is_lost(size):
    v, count = tf.Variable(tf.zeros([size])), tf.Variable(0)

    @tf.function
    def add(x):
        v.assign_add(x)
        count.assign_add(1)
        return tf.reduce_sum(v)
    one = tf.ones([size])
    add(one)
    at_once(lambda _: [add(one) for _ in range(60)])
    np.testing.assert_array_equal(v.numpy(), np.full(size, 241.0, np.float32))
    assert count.numpy() == 241


@pytest.mark.parametrize("size", SIZES)
def test_compiled_and_eager_updates_meet(size):
    v = tf.Variable(tf.zeros([size]))

    @tf.function
    def add():
        v.assign_add(tf.ones([size]))
    add()
    one = tf.ones([size])
    ways = [add, lambda: v.assign_add(one), lambda: v[:].assign_add(one),
            lambda: (v.scatter_nd_add([[0]], one[:1]), v[1:].assign_add(one[1:]))]
    at_once(lambda n: [ways[n]() for _ in range(30)])
    np.testing.assert_array_equal(v.numpy(), np.full(size, 121.0, np.float32))


@pytest.mark.parametrize("size", SIZES)
def test_what_a_call_assigns_is_seen_as_a_whole(size):
    a, b = tf.Variable(tf.zeros([size])), tf.Variable(tf.zeros([size]))

    @tf.function
    def move():
        a.assign_add(tf.ones([size]))
        b.assign_sub(tf.ones([size]))

    @tf.function
    def total():
        return tf.reduce_max(tf.abs(a + b))
    move(), total()

    def work(number):
        for _ in range(40):
            if number % 2:
                move()
            else:
                assert total().numpy() == 0.0
    at_once(work)
    assert a.numpy()[0] == 81.0


@pytest.mark.parametrize("size", SIZES)
def test_values_that_go_in_a_circle_are_one_step_each(size):
    a, b = tf.Variable(tf.ones([size])), tf.Variable(tf.zeros([size]))

    @tf.function
    def forth():
        b.assign(a + 1.0)

    @tf.function
    def back():
        a.assign(b + 1.0)
    forth(), back()
    seen = []

    def work(number):
        for _ in range(40):
            (forth if number % 2 else back)()
            seen.append((a.numpy()[-1], b.numpy()[-1]))
    at_once(work)
    assert abs(a.numpy()[0] - b.numpy()[0]) == 1.0


@pytest.mark.parametrize("size", SIZES)
def test_under_tapes_too(size):
    v, w = tf.Variable(tf.zeros([size])), tf.Variable(tf.ones([size]))

    @tf.function
    def step(x):
        v.assign_add(x)
        return tf.reduce_sum(w * x)
    one = tf.ones([size])

    def work(_):
        for _ in range(20):
            with tf.GradientTape() as tape:
                y = step(one)
            np.testing.assert_array_equal(tape.gradient(y, w), one)
    at_once(work)
    np.testing.assert_array_equal(v.numpy(), np.full(size, 80.0, np.float32))


@pytest.mark.parametrize("size", SIZES)
def test_draws_of_a_generator_never_repeat(size):
    generator = tf.random.Generator.from_seed(1)
    draw = tf.function(lambda: generator.normal([size]))
    draw()
    seen = []
    at_once(lambda n: [seen.append((draw if n % 2 else lambda: generator.normal([size]))().numpy().tobytes())
                       for _ in range(40)])
    assert len(set(seen)) == 160


def test_python_inside_of_a_call_may_assign_the_same_variables():
    v = tf.Variable(0.0)

    def inner():
        v.assign(5.0)
        other()
        return np.float32(1.0)
    other = tf.function(lambda: v.assign_add(1.0))

    @tf.function
    def outer():
        one = tf.py_function(inner, [], tf.TensorSpec([], tf.float32))
        v.assign_add(one)
    at_once(lambda _: [outer() for _ in range(10)])
    assert v.numpy() == 40.0  # what the outer call read when it began, and one


def test_errors_leave_everything_as_it_was():
    v = tf.Variable(tf.zeros([1 << 17]))

    @tf.function
    def add(i):
        v.assign_add(tf.gather(tf.ones([2, 1 << 17]), i))
    add(tf.constant(0))

    def work(number):
        for _ in range(20):
            if number % 2:
                add(tf.constant(1))
            else:
                with pytest.raises(tf.errors.InvalidArgumentError):
                    add(tf.constant(7))
    at_once(work)
    np.testing.assert_array_equal(v.numpy(), np.full(1 << 17, 41.0, np.float32))


def test_functions_are_traced_once():
    counts = [0] * 20

    def made(n):
        @tf.function
        def f(x):
            counts[n] += 1
            return x + n
        return f
    functions = [made(n) for n in range(20)]

    def work(_):
        for n, f in enumerate(functions):
            assert f(tf.constant(1.0)).numpy() == n + 1.0
    at_once(work, 8)
    assert counts == [1] * 20
