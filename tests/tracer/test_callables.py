"""What can be called is converted and traced, whatever kind of callable it is; decorators take arguments first."""

from __future__ import annotations

import contextlib
import functools
import operator

import numpy as np
import pytest

import twofold as tf


def folded(x, k=1.0):
    if x > 0:
        y = x * k
    else:
        y = -2.0 * x * k
    return y


class Plain:
    k = 2.0

    def __call__(self, x):
        if x > 0:
            y = x * self.k
        else:
            y = -x
        return y

    def method(self, x):
        return self(x)

    @classmethod
    def of_class(cls, x):
        return x * cls.k if x > 0 else -x

    @staticmethod
    def static(x):
        return x if x > 0 else -x

    partial = functools.partialmethod(lambda self, k, x: folded(x, k), 4.0)


class Inheriting(Plain):
    pass


class StaticCall:
    @staticmethod
    def __call__(x):
        return x if x > 0 else -x


class ClassCall:
    @classmethod
    def __call__(cls, x):
        return x if x > 0 else -x


class Slots:
    __slots__ = ("k",)

    def __call__(self, x):
        return x if x > 0 else -x


class Guarded:
    def __getattr__(self, name):
        raise AttributeError(name)

    def __call__(self, x):
        return x if x > 0 else -x


class CalledClass(type):
    def __call__(cls, x):
        return x if x > 0 else -x


class OfCalledClass(metaclass=CalledClass):
    pass


class Module(tf.Module):
    def __call__(self, x):
        return x if x > 0 else -x


class Layer(tf.keras.layers.Layer):
    def call(self, x):
        return x if x > 0 else -x


class Nested:
    def __init__(self):
        self.inner = Plain()

    def __call__(self, x):
        return self.inner(x) + self.inner.method(x) + functools.partial(folded, k=2.0)(x)


def plus_one(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs) + 1.0
    return inner


class Decorator:
    def __init__(self, fn):
        functools.update_wrapper(self, fn)
        self.fn = fn

    def __call__(self, *args):
        return self.fn(*args)


@contextlib.contextmanager
def nothing():
    yield


@functools.singledispatch
def by_kind(x):
    return x if x > 0 else -x


# by name: a callable, and what it gives for 3 and -3
KINDS = {
    "function": (folded, 3.0, 6.0), "lambda": (lambda x: x if x > 0 else -x, 3.0, 3.0),
    "object": (Plain(), 6.0, 3.0), "inherited": (Inheriting(), 6.0, 3.0), "method": (Plain().method, 6.0, 3.0),
    "bound __call__": (Plain().__call__, 6.0, 3.0), "classmethod": (Plain.of_class, 6.0, 3.0),
    "classmethod of an instance": (Plain().of_class, 6.0, 3.0), "staticmethod": (Plain.static, 3.0, 3.0),
    "partialmethod": (Plain().partial, 12.0, 24.0), "partial": (functools.partial(folded, k=3.0), 9.0, 18.0),
    "partial of partial": (functools.partial(functools.partial(folded), k=3.0), 9.0, 18.0),
    "partial of an object": (functools.partial(Plain()), 6.0, 3.0),
    "partial of a method": (functools.partial(Plain().method), 6.0, 3.0),
    "partial by position": (functools.partial(lambda k, x: folded(x, k), 2.0), 6.0, 12.0),
    "partial of wrapped": (functools.partial(plus_one(folded)), 4.0, 7.0),
    "static __call__": (StaticCall(), 3.0, 3.0), "class __call__": (ClassCall(), 3.0, 3.0),
    "wrapped": (plus_one(folded), 4.0, 7.0), "decorator object": (Decorator(folded), 3.0, 6.0),
    "wrapped by the standard library": (nothing()(folded), 3.0, 6.0), "singledispatch": (by_kind, 3.0, 3.0),
    "slots": (Slots(), 3.0, 3.0), "attributes that raise": (Guarded(), 3.0, 3.0),
    "class that is called": (OfCalledClass, 3.0, 3.0), "module": (Module(), 3.0, 3.0), "layer": (Layer(), 3.0, 3.0),
    "nested": (Nested(), 18.0, 18.0), "built in": (operator.methodcaller("__neg__"), -3.0, 3.0),
    "recompute_grad": (tf.recompute_grad(folded), 3.0, 6.0),
    "recompute_grad of an object": (tf.recompute_grad(Plain()), 6.0, 3.0),
    "grad_pass_through of an object": (tf.grad_pass_through(operator.neg), -3.0, 3.0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_callable_is_converted(kind):
    fn, positive, negative = KINDS[kind]
    compiled = tf.function(fn, fallback=False)  # what cannot be traced is an error
    within = tf.function(lambda x: fn(x), fallback=False)
    for call in (compiled, within, tf.function(compiled)):
        assert float(call(tf.constant(3.0))) == positive and float(call(tf.constant(-3.0))) == negative
    assert float(compiled.get_concrete_function(tf.TensorSpec([], tf.float32))(tf.constant(-3.0))) == negative
    assert [float(y) for y in tf.data.Dataset.from_tensor_slices([3.0, -3.0]).map(fn)] == [positive, negative]


def test_gradients_through_custom_gradients_with_control_flow():
    @tf.custom_gradient
    def f(x):
        if x > 0:
            y = x * x
        else:
            y = -x
        return y, lambda dy: 7.0 * dy

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)
    assert float(tf.function(slope, fallback=False)(tf.constant(-2.0))) == float(slope(tf.constant(-2.0))) == 7.0


def test_objects_with_any_attributes_have_gradients_of_their_own():
    class Square:
        def __init__(self):
            self._f = self._call = self.function = "mine"

        def __call__(self, x):
            return x * x

    squared = tf.recompute_grad(Square())
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = squared(x)
    assert (float(y), float(tape.gradient(y, x))) == (9.0, 6.0)


@pytest.mark.parametrize("fn", [folded, Plain(), functools.partial(folded, k=2.0), Plain().method, tf.function(folded)])
def test_whatever_can_be_called_can_be_left_unconverted(fn):
    left = tf.autograph.experimental.do_not_convert(fn)
    assert float(left(tf.constant(-3.0))) == float(fn(tf.constant(-3.0)))
    if not hasattr(fn, "get_concrete_function"):
        with pytest.raises(TypeError, match="has no value"):
            tf.function(lambda x: left(x), fallback=False)(tf.constant(-3.0))
    with pytest.raises(TypeError, match="callable"):
        tf.autograph.experimental.do_not_convert(3)


@pytest.mark.parametrize("decorate", [tf.function(), tf.autograph.experimental.do_not_convert(),
                                      tf.function(input_signature=[tf.TensorSpec([], tf.float32)])])
def test_decorators_without_a_function_wait_for_it(decorate):
    assert float(decorate(lambda x: x * 2.0)(tf.constant(1.0))) == 2.0
    assert float(tf.custom_gradient()(lambda x: (x * 2.0, lambda dy: dy))(tf.constant(1.0))) == 2.0


@pytest.mark.parametrize("kind", [tf.py_function, tf.numpy_function])
def test_python_called_at_run_time_as_a_decorator(kind):
    @kind(Tout=tf.float32)
    def scaled(x, y):
        """Scales."""
        assert hasattr(x, "numpy") == (kind is tf.py_function)  # a tensor with a value, or an array
        return x * y if y > 0 else -x

    @kind(Tout=[tf.float64, tf.int64])
    def both(x):
        return np.asarray(x) * 2.0, np.int64(3)

    assert scaled.__name__ == "scaled" and scaled.__doc__ == "Scales."
    assert scaled(tf.constant(2.0), tf.constant(3.0)).numpy() == 6.0
    assert scaled(tf.constant([2.0]), 3.0).numpy().tolist() == [6.0]
    declared = kind(Tout=tf.TensorSpec([None], tf.float32))(lambda x: x * 3.0 if x[0] > 0 else -x)
    called = tf.function(lambda x: declared(x) + 1.0, fallback=False)
    assert called(tf.constant([1.0, 2.0])).numpy().tolist() == [4.0, 7.0]
    assert called(tf.constant([-1.0, 2.0])).numpy().tolist() == [2.0, -1.0]
    first, second = both(np.ones(2))
    assert first.numpy().tolist() == [2.0, 2.0] and second.numpy() == 3 and first.dtype == tf.float64
    with pytest.raises(TypeError, match="Tout"):
        kind(lambda x: x, [tf.constant(1.0)])
    with pytest.raises(TypeError, match="Tout"):
        @kind()
        def without(x):
            return x


def test_gradients_pass_through_a_decorated_py_function():
    @tf.py_function(Tout=tf.TensorSpec([], tf.float32))
    def cube(x):
        return x ** 3

    v = tf.Variable(2.0)

    def slope():
        with tf.GradientTape() as tape:
            y = cube(v)
        return tape.gradient(y, v)
    assert float(slope()) == float(tf.function(slope)()) == 12.0


def test_attributes_of_a_function_are_those_of_what_was_decorated():
    def f(x):
        return x
    f.kept = 5

    class Own:
        shared = 1

        def __init__(self):
            self.mine, self._name, self.__name__ = 2, "odd", "own"

        def __call__(self, x):
            return x
    compiled = tf.function(f)
    assert compiled.kept == 5
    compiled.later = 3
    assert not hasattr(f, "later")
    of_object = tf.function(Own())
    assert of_object.mine == 2 and float(of_object(tf.constant(1.0))) == 1.0
    with pytest.raises(AttributeError):  # of the class, as in TensorFlow
        of_object.shared  # noqa: B018
