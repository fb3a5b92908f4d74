"""Threads of pipelines: they overlap with what uses the elements, and end; nothing hangs, and errors come out."""

from __future__ import annotations

import gc
import subprocess
import textwrap
import threading
import time
import traceback
import weakref

import numpy as np
import pytest
from quick.start import python

import twofold as tf

Dataset = tf.data.Dataset


def ours():
    """The threads of pipelines that live."""
    return [t for t in threading.enumerate() if t.name.startswith("tf.data")]


def none_left(seconds=60.0):
    """Whether all threads of pipelines end in some time."""
    gc.collect()
    end = time.monotonic() + seconds
    while ours() and time.monotonic() < end:
        time.sleep(0.01)
    return not ours()


@pytest.fixture(autouse=True)
def threads_end():
    assert none_left()
    yield
    assert none_left(), ours()


def slow(count, seconds=0.004, then=None):
    """A dataset whose elements take their time."""
    def generate():
        for i in range(count):
            time.sleep(seconds)
            yield i
        if then is not None:
            raise then
    return Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int64))


def pausing(x, seconds=0.004):
    """The identity, after a pause."""
    def pause(value):
        time.sleep(seconds)
        return value
    return tf.numpy_function(pause, [x], tf.TensorSpec([], tf.int64))


def numbers(dataset):
    return [x.item() for x in dataset.as_numpy_iterator()]


def test_prefetch_overlaps_with_the_consumer():
    """While an element is in use the next ones are made, as many as are asked for; without it, none."""
    made, fifth = [], threading.Event()

    def generate():
        for i in range(9):
            time.sleep(0.02)  # elements that take no time are not worth a thread
            made.append(i)
            if i == 4:
                fifth.set()
            yield i
    dataset = Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int64))
    alone = iter(dataset)
    assert [next(alone).numpy() for _ in range(2)] == made == [0, 1]
    made.clear()
    ahead = iter(dataset.prefetch(3))
    assert [next(ahead).numpy() for _ in range(2)] == [0, 1]
    assert fifth.wait(60)  # nobody asked for it yet
    assert made[:5] == [0, 1, 2, 3, 4]
    assert [x.numpy() for x in ahead] == list(range(2, 9))


def test_a_function_runs_on_several_elements_at_once():
    at_once, most = [0], [0]
    lock = threading.Lock()

    def count(value):
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        time.sleep(0.01)
        with lock:
            at_once[0] -= 1
        return value
    dataset = Dataset.range(24).map(lambda x: tf.numpy_function(count, [x], tf.TensorSpec([], tf.int64)),
                                    num_parallel_calls=4)
    assert numbers(dataset) == list(range(24))
    assert 2 <= most[0] <= 4


def test_order_may_change_where_that_is_allowed():
    def pause(value):
        time.sleep(0.03 if value % 4 == 3 else 0.004)
        return value
    dataset = Dataset.range(24).map(lambda x: tf.numpy_function(pause, [x], tf.TensorSpec([], tf.int64)),
                                    num_parallel_calls=4, deterministic=False)
    actual = numbers(dataset)
    assert sorted(actual) == list(range(24))
    assert actual != sorted(actual)
    options = tf.data.Options()
    options.deterministic = True  # what the function says itself wins
    assert sorted(numbers(dataset.with_options(options))) == list(range(24))


@pytest.mark.parametrize("make", [
    lambda: slow(1000).prefetch(4),
    lambda: Dataset.range(1000).map(pausing, num_parallel_calls=3),
    lambda: Dataset.range(1000).map(pausing, num_parallel_calls=3).batch(2).prefetch(2),
    lambda: Dataset.range(9).interleave(lambda x: slow(50), cycle_length=3, num_parallel_calls=3),
])
def test_threads_end_when_the_consumer_stops(make):
    for count, _ in enumerate(make()):
        if count == 5:
            assert ours()
            break
    assert none_left()


def test_an_iterator_that_is_dropped_takes_its_threads_and_data_with_it():
    rows = np.zeros(1000)
    dataset = Dataset.from_generator(lambda: iter(rows), output_signature=tf.TensorSpec([], tf.float64))
    iterator = iter(dataset.map(lambda x: (time.sleep(0.0), x)[1]).map(
        lambda x: tf.numpy_function(lambda v: (time.sleep(0.002), v)[1], [x], tf.TensorSpec([], tf.float64)),
        num_parallel_calls=2).prefetch(2))
    for _ in range(5):
        next(iterator)
    stream = weakref.ref(iterator._stream)
    assert ours()
    del iterator
    assert none_left()
    assert stream() is None


def test_threads_end_with_the_elements():
    assert numbers(slow(8).prefetch(2)) == list(range(8))
    iterator = iter(slow(6).prefetch(2))
    assert len(list(iterator)) == 6
    assert none_left()  # while the iterator lives
    assert next(iterator, None) is None


@pytest.mark.parametrize("parallel", [None, 3])
@pytest.mark.parametrize("ahead", [0, 2])
def test_an_error_comes_where_the_element_would(parallel, ahead):
    def fail(value):
        time.sleep(0.001)
        if value == 7:
            raise ValueError("seven")
        return value
    dataset = Dataset.range(10).map(lambda x: tf.numpy_function(fail, [x], tf.TensorSpec([], tf.int64)),
                                    num_parallel_calls=parallel).prefetch(ahead)
    iterator = iter(dataset)
    assert [next(iterator).numpy().item() for _ in range(7)] == list(range(7))
    with pytest.raises(ValueError, match="seven") as caught:
        next(iterator)
    assert any(f.name == "fail" and "raise ValueError" in (f.line or "")
               for f in traceback.extract_tb(caught.value.__traceback__))
    assert [x.numpy().item() for x in iterator] == [8, 9]  # and the next one goes on


def test_an_error_of_a_compiled_function_tells_the_users_line():
    def fail(x):
        return tf.debugging.check_numerics(1.0 / tf.cast(3 - x, tf.float32), "no number")  # the line
    for dataset in (Dataset.range(5).map(fail), Dataset.range(5).map(fail, num_parallel_calls=2).prefetch(2)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"no number(.|\n)*At test_threads.py:\d+ in fail"):
            list(dataset)


def test_an_error_of_a_generator_comes_out():
    for dataset in (slow(3, then=KeyError("gone")), slow(3, then=KeyError("gone")).prefetch(2)):
        actual = []
        with pytest.raises(KeyError, match="gone") as caught:
            for x in dataset:
                actual.append(int(x))
        assert actual == [0, 1, 2]
        assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "generate"


def test_threads_end_with_a_compiled_loop():
    """Whether the loop comes to its end, breaks, or fails."""
    def numbers_of(*values):
        return [tf.constant(v, tf.int64) for v in values]

    @tf.function
    def total(data, limit, bad):
        actual = tf.constant(0, tf.int64)
        for x in data:
            if x == limit:
                break
            tf.debugging.assert_none_equal(x, bad, message="a bad element")
            actual += x
        return actual
    data = slow(12).prefetch(3)
    assert int(total(data, *numbers_of(99, -1))) == 66
    assert none_left()
    assert int(total(data, *numbers_of(5, -1))) == 10
    assert none_left()
    with pytest.raises(tf.errors.InvalidArgumentError, match="a bad element"):
        total(data, *numbers_of(99, 6))
    assert none_left()
    assert total.experimental_get_tracing_count() == 1


def test_what_is_made_ahead_is_bounded():
    made = []

    def generate():
        for i in range(1000):
            made.append(i)
            time.sleep(0.001)
            yield i
    dataset = Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int64)).prefetch(3)
    iterator = iter(dataset)
    for _ in range(6):
        next(iterator)
    time.sleep(0.1)
    assert len(made) <= 6 + 3 + 1
    calls = []

    def call(value):
        calls.append(value)
        time.sleep(0.001)
        return value
    mapped = iter(Dataset.range(1000).map(lambda x: tf.numpy_function(call, [x], tf.TensorSpec([], tf.int64)),
                                          num_parallel_calls=4))
    for _ in range(6):
        next(mapped)
    time.sleep(0.1)
    assert len(calls) <= 6 + 8 + 4


def test_several_threads_may_share_an_iterator():
    iterator, actual = iter(Dataset.range(400).map(lambda x: x + 1).prefetch(2)), []

    def consume():
        for x in iterator:
            actual.append(int(x))
    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(actual) == list(range(1, 401))


@pytest.mark.parametrize("last", ["pass", "next(iterator)", "raise SystemExit(3)", "del dataset"])
def test_the_process_ends_in_the_middle_of_a_pipeline(last):
    code = textwrap.dedent(f"""
        import time
        import twofold as tf
        def generate():
            while True:
                time.sleep(0.001)
                yield 1.0
        def wait(v):
            time.sleep(0.002)
            return v
        dataset = tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.float32))
        dataset = dataset.map(lambda x: tf.numpy_function(wait, [x], tf.TensorSpec([], tf.float32)),
                              num_parallel_calls=3).batch(2).prefetch(2)
        iterator = iter(dataset)
        for _ in range(5):
            next(iterator)
        {last}
    """)
    done = subprocess.run(python("-c", code), capture_output=True, text=True, timeout=300)
    assert done.returncode == (3 if "raise" in last else 0), done.stderr
    assert done.stderr == ""


def test_a_child_process_is_told_and_may_begin_anew():
    code = textwrap.dedent("""
        import os, sys, time, warnings
        import twofold as tf
        warnings.simplefilter("ignore")
        def generate():
            for i in range(100):
                time.sleep(0.001)
                yield i
        data = tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int32)).prefetch(2)
        iterator = iter(data)
        for _ in range(9):
            next(iterator)
        child = os.fork()
        if not child:
            try:
                next(iterator)
            except RuntimeError as error:
                told = "make an iterator" in str(error)
            os._exit(0 if told and len(list(data.take(5))) == 5 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert int(next(iterator)) == 9
    """)
    done = subprocess.run(python("-c", code), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_what_nobody_foresaw_ends_the_stream(monkeypatch):
    from twofold.data import _parallel
    iterator = iter(slow(50).prefetch(2))
    for _ in range(5):
        next(iterator)

    def broken(self, most):
        raise MemoryError("none left")
    monkeypatch.setattr(_parallel._Desk, "read", broken)
    with pytest.raises(MemoryError, match="none left"):
        list(iterator)
    assert next(iterator, None) is None


def test_state_is_taken_while_threads_run():
    """Elements that were made ahead are part of the state; the iterator goes on."""
    def make():
        return slow(30, 0.002).shuffle(5, seed=1).map(pausing, num_parallel_calls=2).prefetch(3)
    iterator = iter(make())
    first = [next(iterator).numpy().item() for _ in range(9)]
    saved = iterator._saved_values()
    rest = [x.numpy().item() for x in iterator]
    other = iter(make())
    other._restore_values(saved)
    assert [x.numpy().item() for x in other] == rest
    assert sorted(first + rest) == list(range(30))
