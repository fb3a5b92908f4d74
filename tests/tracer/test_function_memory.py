"""What traced functions keep alive: nothing that only they hold."""

from __future__ import annotations

import gc
import itertools
import warnings
import weakref

import pytest
from leaks import memory_after

import twofold as tf


def gone(ref: weakref.ref) -> bool:
    gc.collect()
    return ref() is None


def test_a_dropped_function_is_collected() -> None:
    f = tf.function(lambda x: x * 2 + tf.ones([1000]))
    f(tf.ones([3, 1000]))
    f.get_concrete_function(tf.TensorSpec([None, 1000]))
    function, python = weakref.ref(f), weakref.ref(f.python_function)
    del f
    assert gone(function) and gone(python)


def test_methods_do_not_hold_their_instance() -> None:
    class Model:
        def __init__(self):
            self.v = None

        @tf.function
        def step(self, x):
            if self.v is None:
                self.v = tf.Variable(1.0)
            return self.v.assign_add(x)

    m = Model()
    m.step(1.0)
    model, method, variable = weakref.ref(m), weakref.ref(m.step), weakref.ref(m.v)
    del m
    assert gone(model) and gone(method) and gone(variable)


def test_arguments_are_held_weakly() -> None:
    class Thing:
        value = 2.0

    f = tf.function(lambda thing, v, x: x * thing.value + v)
    thing, v = Thing(), tf.Variable(1.0)
    f(thing, v, 1.0)
    refs = [weakref.ref(thing), weakref.ref(v)]
    assert len(f._families) == 1
    del thing, v
    assert all(gone(r) for r in refs)
    assert not f._families


def test_a_new_object_in_the_place_of_a_dead_one() -> None:
    class Thing:
        def __init__(self, value):
            self.value = value

    f = tf.function(lambda thing: tf.constant(thing.value))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [f(Thing(n)).numpy() for n in range(20)] == list(range(20))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_memory_stays_flat_over_retraces_with_dropped_functions() -> None:
    count = itertools.count()

    def step() -> None:
        n = next(count)
        f = tf.function(lambda x: x * 2.0 + float(n > 0), autograph=False)
        f(tf.ones([n % 7 + 1]))
    assert memory_after(step, 100) < 50_000  # what a trace holds is kilobytes; other tests leave tables of the process
