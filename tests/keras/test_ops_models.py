"""`tf.keras.ops` in a `tf.function` and in functional models: what comes out is what comes out eagerly, to the bit.

The calls are those of `ops_shape_cases.py`, one for each function.
"""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf
from twofold import keras

from . import ops_shape_cases
from .test_ops import flat, function_of, given

ops = keras.ops
#: functions whose results have shapes that only values tell, or that take numbers alone
UNTRACED = {"arange", "zeros", "ones", "empty", "eye", "identity", "tri", "bartlett", "blackman", "hamming", "hanning",
            "kaiser", "convert_to_tensor", "linspace", "logspace", "geomspace", "array", "full"}


@pytest.fixture(autouse=True)
def fresh_names():
    keras.backend.clear_session()


def chosen():
    """A call of each function, with an array of floats among the arguments."""
    actual = {}
    for case in ops_shape_cases.setting_cases():
        if case[0] not in UNTRACED and not actual.setdefault(case[0], []) and any(floating(a) for a in
                                                                                      tf.nest.flatten(case[1])):
            actual[case[0]].append(case)
    return [pytest.param(*case, id=f"{name}-{n}") for name, cases in actual.items() for n, case in enumerate(cases)]


def floating(value):
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def parts(args, kwargs):
    """The floating arrays among the arguments, and a function that gives all arguments with others in their places."""
    leaves = [a for a in tf.nest.flatten(args) if floating(a)]

    def filled(values):
        rest = iter(values)
        return (tf.nest.map_structure(lambda a: next(rest) if floating(a) else given(a), args),
                {k: v if isinstance(v, (tuple, list)) else given(v) for k, v in kwargs.items()})
    return leaves, filled


def same(actual, expected):
    actual, expected = flat(actual), flat(expected)
    assert len(actual) == len(expected)
    for x, y in zip(actual, expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize(("name", "args", "kwargs"), chosen())
def test_compiled_is_eager(name, args, kwargs):
    leaves, filled = parts(args, kwargs)

    def run(*tensors):
        more, settings = filled(tensors)
        return function_of(name)(*more, **settings)
    tensors = [tf.constant(a) for a in leaves]
    same(tf.function(run, fallback=False)(*tensors), run(*tensors))


@pytest.mark.parametrize(("name", "args", "kwargs"), chosen())
def test_models(name, args, kwargs):
    """A functional model of the call, and one made of its config."""
    leaves, filled = parts(args, kwargs)
    inputs = [keras.Input(batch_shape=a.shape, dtype=a.dtype.name) for a in leaves]
    more, settings = filled(inputs)
    symbolic = function_of(name)(*more, **settings)
    if name in ("ndim",):
        return
    model = keras.Model(inputs, flat(symbolic))
    more, settings = filled([tf.constant(a) for a in leaves])
    eager = flat(function_of(name)(*more, **settings))
    assert [tuple(x.shape) for x in flat(symbolic)] == [tuple(x.shape) for x in eager] or name in ("unique", "nonzero")
    same(model([tf.constant(a) for a in leaves]), eager)
    again = keras.Model.from_config(model.get_config())
    same(again([tf.constant(a) for a in leaves]), eager)


def test_functions_that_give_none_beside_tensors():
    x = keras.Input([3])
    clipped, norm = tf.clip_by_global_norm([x, None, tf.constant([2.0])], 1.0)
    assert clipped[1] is None
    model = keras.Model(x, [clipped[0], norm])
    given = tf.ones([1, 3])
    want = tf.clip_by_global_norm([given, None, tf.constant([2.0])], 1.0)
    for actual in (model(given), keras.Model.from_config(model.get_config())(given)):
        np.testing.assert_array_equal(actual[0], want[0][0])
        np.testing.assert_array_equal(actual[1], want[1])
    assert "global_norm" in keras.utils.model_to_dot(model)
    model.summary(print_fn=lambda *args: None)
