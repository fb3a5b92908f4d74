"""Datasets and iterators inside of traced functions, and the functions of elements."""

from __future__ import annotations

import collections
import gc
import weakref

import numpy as np
import pytest

import twofold as tf
from twofold.runtime import program_call

Dataset = tf.data.Dataset


def test_a_function_takes_any_dataset_of_one_spec():
    @tf.function
    def total(data):
        actual = tf.constant(0, tf.int64)
        for x in data:
            actual += x
        return actual
    assert [int(total(Dataset.range(n).shuffle(3))) for n in (4, 9, 0)] == [6, 36, 0]
    assert total.experimental_get_tracing_count() == 1
    assert int(total(Dataset.range(4).map(lambda x: x * 2))) == 12
    assert total.experimental_get_tracing_count() == 1
    total(Dataset.range(4).batch(2).map(tf.reduce_sum))
    assert total.experimental_get_tracing_count() == 1


def test_concrete_functions_of_datasets():
    @tf.function
    def total(start, pair):
        for x in pair["data"]:
            start += x
        return start
    concrete = total.get_concrete_function(tf.TensorSpec([], tf.int64), {"data": Dataset.range(3)})
    assert int(concrete(tf.constant(10, tf.int64), {"data": Dataset.range(5).skip(1)})) == 20
    with pytest.raises(TypeError, match="when it was traced; got <_RangeDataset"):
        concrete(tf.constant(10, tf.int64), {"data": Dataset.range(3, output_type=tf.int32)})


def test_an_iterator_as_an_argument_moves_on():
    @tf.function
    def pair(iterator):
        return next(iterator), iterator.get_next()
    iterator = iter(Dataset.range(5))
    assert [int(x) for x in pair(iterator)] == [0, 1]
    assert int(next(iterator)) == 2
    assert [int(x) for x in pair(iterator)] == [3, 4]
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        pair(iterator)
    assert [int(x) for x in pair(iter(Dataset.range(7, 9)))] == [7, 8]
    assert pair.experimental_get_tracing_count() == 1


def test_a_loop_that_breaks_leaves_the_next_element():
    iterator = iter(Dataset.range(10))

    @tf.function
    def some():
        total = tf.constant(0, tf.int64)
        for x in iterator:
            total += x
            if total > 5:
                break
        return total
    assert int(some()) == 6
    assert int(next(iterator)) == 4
    assert int(some()) == 11
    assert [int(x) for x in iterator] == [7, 8, 9]


def test_datasets_made_of_tensors_of_the_trace():
    @tf.function
    def build(x, n):
        total = tf.constant(0.0)
        for i, (row, k) in enumerate(zip(Dataset.from_tensor_slices(x).skip(n), Dataset.range(n, 99), strict=False)):
            total += tf.reduce_sum(row) * tf.cast(i * 10 + k, tf.float32)
        for batch in Dataset.range(n).map(lambda v: v + n).batch(n):
            total += tf.cast(tf.reduce_sum(batch), tf.float32)
        return total

    def expected(x, n):
        return sum(row.sum() * (i * 10 + k) for i, (row, k) in enumerate(zip(x[n:], range(n, 99), strict=False))
                   ) + sum(range(n, 2 * n))
    for size, n in ((4, 1), (5, 2), (6, 3)):
        x = np.arange(size * 2, dtype=np.float32).reshape(size, 2)
        assert float(build(tf.constant(x), tf.constant(n, tf.int64))) == pytest.approx(expected(x, n))


def test_gradients_in_a_loop_over_a_dataset():
    v = tf.Variable(1.0)
    data = Dataset.from_tensor_slices(([1.0, 2.0, 1.0], [2.0, 4.0, 2.0]))

    def train(rows):
        for x, y in rows:
            with tf.GradientTape() as tape:
                loss = (v * x - y) ** 2
            v.assign_sub(0.1 * tape.gradient(loss, v))
        return v.read_value()
    expected = float(train(data))
    v.assign(1.0)
    assert float(tf.function(train)(data)) == expected
    w = tf.Variable(3.0)

    @tf.function
    def whole(rows):
        with tf.GradientTape() as tape:
            loss = tf.constant(0.0)
            for x, y in rows:
                loss += w * x * y
        return tape.gradient(loss, w)
    assert float(whole(data)) == 12.0


def test_reduction_optional_and_single_element_in_a_function():
    @tf.function
    def all_of(data, iterator):
        optional = iterator.get_next_as_optional()
        first = tf.constant(-1, tf.int64)
        if optional.has_value():
            first = optional.get_value()
        return data.reduce(np.int64(1), lambda s, x: s * x), data.batch(9).get_single_element(), first
    data = Dataset.range(1, 5)
    assert [x.numpy().tolist() for x in all_of(data, iter(data))] == [24, [1, 2, 3, 4], 1]
    assert int(all_of(data, iter(Dataset.range(0)))[2]) == -1
    assert Dataset.range(3).reduce((0, 0.0), lambda s, x: (s[0] + 1, s[1] + 2.0))[1].numpy() == 6.0


def test_python_loops_over_datasets_in_traces_end():
    @tf.function(autograph=False)
    def endless(data):
        return [x + 1 for x in data]
    with pytest.raises(RuntimeError, match="never ends there"):
        endless(Dataset.range(3))

    @tf.function
    def counted(data):
        total = tf.constant(0, tf.int64)
        for i, x in enumerate(data, start=10):
            total += i * x
        return total
    assert int(counted(Dataset.range(3))) == 11 + 24


def test_windows_in_a_function():
    @tf.function
    def digits(data):
        number = tf.constant(0, tf.int64)
        for window in data:
            for x in window:
                number = number * 10 + x
        return number
    assert int(digits(Dataset.range(1, 8).window(3))) == 1234567


def test_python_of_a_mapped_function_runs_once():
    calls = []

    def double(x):
        calls.append(x)
        return x * 2
    data = Dataset.range(50).map(double)
    assert len(calls) == 1
    assert [int(x) for x in data] == list(range(0, 100, 2))
    assert len(calls) == 1


Point = collections.namedtuple("Point", "x y")


def test_structures_come_to_functions_as_they_are():
    rows = {"a": [1, 2], "b": ([3.0, 4.0], ["x", "y"])}
    data = Dataset.from_tensor_slices(rows).map(lambda d: (d["b"][1], Point(d["a"], d["b"][0])))
    assert isinstance(data.element_spec[1], Point)
    actual = list(data.map(lambda text, point: Point(text, point)).as_numpy_iterator())
    assert actual[1] == Point(b"y", Point(2, 4.0))
    merged = data.map(lambda text, point: {"p": point, "n": tf.size(point.x)})
    assert next(iter(merged))["p"].y.numpy() == 3.0
    assert list(merged.batch(2).as_numpy_iterator())[0]["p"].x.tolist() == [1, 2]


def test_a_function_reads_variables_when_it_runs():
    v = tf.Variable(1, dtype=tf.int64)
    data = Dataset.range(3).map(lambda x: x * v)
    assert [int(x) for x in data] == [0, 1, 2]
    v.assign(5)
    assert [int(x) for x in data] == [0, 5, 10]


def test_what_a_function_may_give():
    data = Dataset.range(2)
    assert data.map(lambda x: (37.0, [42, 16])).element_spec == (
        tf.TensorSpec([], tf.float32), tf.TensorSpec([2], tf.int32))
    assert data.map(lambda x: [x, x]).element_spec == (tf.TensorSpec([], tf.int64),) * 2
    with pytest.raises(TypeError, match="Unsupported return value"):
        data.map(lambda x: None)
    with pytest.raises(TypeError, match="Unsupported return value"):
        data.map(lambda x: (x, object()))
    with pytest.raises(TypeError, match="takes a function; got int 3"):
        data.map(3)
    with pytest.raises(TypeError, match="must return a `Dataset`"):
        data.flat_map(lambda x: x)


def test_functions_of_elements_of_unknown_rank():
    data = Dataset.from_generator(lambda: iter([1, [2, 3], [[4]]]), output_types=tf.int32)
    assert data.element_spec == tf.TensorSpec(None, tf.int32)
    squares = data.map(lambda x: x * x)
    assert squares.element_spec == tf.TensorSpec(None, tf.int32)
    assert [x.tolist() for x in squares.as_numpy_iterator()] == [1, [4, 9], [[16]]]
    vectors = Dataset.from_generator(lambda: iter([[1, 2], [3]]), output_types=tf.int32)
    assert [int(x) for x in vectors.map(lambda x: x[0])] == [1, 3]
    assert vectors.map(lambda x: tf.size(x)).element_spec == tf.TensorSpec([], tf.int32)


def test_random_functions_draw_anew_for_each_element():
    actual = [float(x) for x in Dataset.range(20).map(lambda x: tf.random.uniform([]), num_parallel_calls=2)]
    assert len(set(actual)) == 20


def test_a_dataset_goes_with_its_function():
    """Neither traces nor registries keep a dataset, an iterator or its arrays alive."""
    @tf.function
    def total(data):
        actual = tf.constant(0.0)
        for x in data:
            actual += tf.reduce_sum(x)
        return actual
    data = Dataset.from_tensor_slices(np.ones((10, 3), np.float32)).map(lambda x: x * 2.0)
    node, iterator = weakref.ref(data._node), iter(data)
    stream = weakref.ref(iterator._stream)
    assert float(total(data)) == 60.0
    del data, iterator
    gc.collect()
    assert stream() is None
    assert node() is None


def test_elements_cannot_be_written_through():
    rows = np.arange(6.0)
    data = Dataset.from_tensor_slices(rows).batch(3)
    rows[:] = -1.0
    for array in data.as_numpy_iterator():
        array[:] = 0.0
    assert [x.tolist() for x in data.as_numpy_iterator()] == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_messages_that_people_know():
    data = Dataset.range(3)
    with pytest.raises(TypeError, match="The dataset is infinite"):
        len(data.repeat())
    with pytest.raises(TypeError, match="The dataset length is unknown"):
        len(data.filter(lambda x: True))
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than one element"):
        data.get_single_element()
    with pytest.raises(tf.errors.InvalidArgumentError, match="was empty"):
        data.take(0).get_single_element()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"component 0.*shape \[1\] and element 1 had shape \[2\]"):
        list(Dataset.range(1, 3).map(lambda x: tf.fill([x], x)).batch(2))
    with pytest.raises(ValueError, match="Dimensions 2 and 3 are not compatible"):
        Dataset.from_tensor_slices(([1, 2], [1, 2, 3]))
    with pytest.raises(TypeError, match="made by tf.data.Dataset.from_tensor_slices"):
        Dataset([1, 2])
    assert repr(data.batch(2)) == "<_BatchDataset element_spec=TensorSpec(shape=(None,), dtype=tf.int64, name=None)>"
    assert data
    with pytest.raises(StopIteration):
        next(iter(data.take(0)))


def test_the_old_way_to_make_a_dataset_of_ones_own():
    class Squares(tf.data.Dataset):
        def __new__(cls, count):
            return tf.data.Dataset.from_generator(lambda: (i * i for i in range(count)),
                                                  output_signature=tf.TensorSpec([], tf.int64))
    assert [int(x) for x in Squares(3)] == [0, 1, 4]


def test_results_of_python_whose_rank_is_not_declared_pass():
    numbers = tf.data.Dataset.range(4)
    rows = numbers.map(lambda i: tf.py_function(lambda n: tf.ones([int(n), 2]), [i], tf.float32))
    assert rows.element_spec.shape.rank is None and rows.element_spec.dtype == tf.float32
    assert [x.shape.as_list() for x in rows] == [[0, 2], [1, 2], [2, 2], [3, 2]]
    sums = rows.map(tf.reduce_sum, num_parallel_calls=2).prefetch(1)
    assert [float(x) for x in sums] == [0.0, 2.0, 4.0, 6.0]

    def both(i):
        actual = tf.numpy_function(lambda n: (n * 2, np.float32(n) / 2), [i], [tf.int64, tf.float32])
        return actual[0], {"half": actual[1], "same": actual[0], "number": i}

    pairs = numbers.map(both).batch(2)
    first, rest = next(iter(pairs))
    assert first.numpy().tolist() == [0, 2] and rest["same"].numpy().tolist() == [0, 2]
    assert rest["half"].numpy().tolist() == [0.0, 0.5] and rest["number"].numpy().tolist() == [0, 1]
    kept = numbers.filter(lambda i: tf.py_function(lambda n: n > 1, [i], tf.bool))
    assert [int(x) for x in kept] == [2, 3]


def test_a_python_function_of_another_dtype_than_declared_is_an_error_that_names_it():
    wrong = tf.data.Dataset.range(2).map(lambda i: tf.numpy_function(lambda n: np.float64(n), [i], tf.int32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="float64"):
        list(wrong)


def test_functions_that_only_make_datasets_still_run_what_else_is_in_them():
    seen = []

    def noted(i):
        tf.py_function(lambda n: seen.append(int(n)), [i], [])
        return tf.data.Dataset.range(i)

    plain = tf.data.Dataset.range(4).flat_map(tf.data.Dataset.range)
    assert [int(x) for x in plain] == [int(x) for x in tf.data.Dataset.range(4).flat_map(noted)] == [0, 0, 1, 0, 1, 2]
    assert seen == [0, 1, 2, 3]
    one = tf.data.Dataset.range(2)
    assert [int(x) for x in tf.data.Dataset.range(3).flat_map(lambda _: one)] == [0, 1] * 3


def test_options_of_one_dataset_are_not_those_of_others():
    first, second = tf.data.Dataset.range(1), tf.data.Dataset.range(1)
    first.options().deterministic = False
    assert first.options().deterministic is False and second.options().deterministic is None


def test_the_experimental_choice_goes_on_past_the_end_of_a_dataset():
    parts = [tf.data.Dataset.range(1), tf.data.Dataset.range(10, 14)]
    order = tf.data.Dataset.from_tensor_slices(np.array([0, 0, 1, 1], np.int64))
    assert [int(x) for x in tf.data.experimental.choose_from_datasets(parts, order)] == [0, 10, 11]
    assert [int(x) for x in tf.data.Dataset.choose_from_datasets(parts, order)] == [0]


def test_seeded_draws_of_a_function_begin_anew_with_each_iteration():
    """As in TensorFlow 2.21, whose orders these are."""
    tf.random.set_seed(7)
    data = Dataset.range(2).map(lambda _: tf.random.shuffle(tf.range(8)))
    epochs = [[x.numpy().tolist() for x in data] for _ in range(2)]
    assert epochs == [[[5, 6, 2, 3, 7, 0, 4, 1], [0, 2, 1, 6, 3, 7, 5, 4]]] * 2
    tf.random.set_seed(None)


@pytest.mark.parametrize("captured", [False, True])
def test_functions_that_begin_with_the_next_element_are_native_behind_it(captured):
    values = np.random.default_rng(0).normal(size=(14, 2)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((values, values[:, 0])).batch(4)  # the last one is smaller

    def steps(wrap, off=False):
        weights, iterator = tf.Variable([0.5, 2.0]), iter(data)

        def step(source):
            x, y = (iterator if captured else source).get_next()
            weights.assign_sub(0.1 * tf.reduce_sum(x * weights, 0))
            return tf.reduce_mean(y), {"weights": weights + 0.0}
        function = wrap(step)
        program_call.turn_off("a test", off)
        results = []
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                mean, rest = function(iterator)
                results.append(mean.numpy().tobytes() + rest["weights"].numpy().tobytes() + weights.numpy().tobytes())
        return [*results, weights.numpy().tobytes()], (function, iterator)

    try:
        want = steps(lambda fn: fn)[0]
        assert steps(tf.function)[0] == steps(tf.function, off=True)[0] == want and len(want) == 5
        function, iterator = steps(tf.function)[1]
    finally:
        program_call.turn_off("a test", False)
    program = function.get_concrete_function(iterator)._traced.runner.program
    assert program.rest is not None and program.rest.whole is not None and program.rest.donated


def test_elements_that_come_later_in_a_function_are_taken_there():
    """A function that prints before, or that takes two elements of which the second is not sure to be there."""
    seen = []

    @tf.function
    def step(iterator):
        tf.py_function(lambda: seen.append(1), [], [])
        x = iterator.get_next()
        return x + iterator.get_next() if x > 1 else x
    iterator = iter(tf.data.Dataset.range(4))
    assert [int(step(iterator)) for _ in range(3)] == [0, 1, 5] and seen == [1, 1, 1]
