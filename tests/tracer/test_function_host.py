"""Python called at run time: `tf.print`, `tf.py_function` and `tf.numpy_function`, in both modes."""

from __future__ import annotations

import functools
import logging
import sys

import numpy as np
import pytest

import twofold as tf


def printed(capsys, *inputs, **kwargs) -> list[str]:
    """What is printed eagerly, and from within a function."""
    texts = []
    for run in (lambda f: f(), lambda f: tf.function(f)()):
        run(lambda: tf.print(*inputs, **kwargs))
        texts.append(capsys.readouterr().err)
    return texts


@pytest.mark.parametrize(("inputs", "kwargs", "text"), [
    ((tf.range(10),), {}, "[0 1 2 ... 7 8 9]\n"),
    ((tf.range(10),), {"summarize": 1}, "[0 ... 9]\n"),
    ((tf.range(10),), {"summarize": -1}, "[0 1 2 3 4 5 6 7 8 9]\n"),
    ((tf.range(10), tf.range(10) * 10), {}, "[0 1 2 ... 7 8 9] [0 10 20 ... 70 80 90]\n"),
    ((tf.range(2), tf.range(2) * 2), {"sep": ","}, "[0 1],[0 2]\n"),
    ((tf.constant("scalar"),), {"end": "<customend>"}, "scalar<customend>"),
    ((tf.constant(list("abcdefgh")),), {}, '["a" "b" "c" ... "f" "g" "h"]\n'),
    (("tensors:", tf.range(10), {2: tf.range(10) * 2}), {}, "tensors: [0 1 2 ... 7 8 9] {2: [0 2 4 ... 14 16 18]}\n"),
    (({"b": tf.constant(1), "a": [tf.constant(2.5), "x"]}, (1, None)), {}, "{'a': [2.5, 'x'], 'b': 1} (1, None)\n"),
    ((tf.zeros([2, 2, 2]),), {}, "[[[0 0]\n  [0 0]]\n\n [[0 0]\n  [0 0]]]\n"),
    ((tf.constant(0.1), tf.constant(1 / 3), tf.constant(1 / 3, tf.float64)), {},
     "0.1 0.333333343 0.33333333333333331\n"),
    ((tf.constant([True, False]), tf.constant(1e10), tf.constant(np.inf), tf.constant(np.nan)), {},
     "[1 0] 1e+10 inf nan\n"),
    ((True, 2.0, "text"), {}, "True 2.0 text\n"),
    ((tf.ones([0, 2]),), {}, "[]\n"),
    ((tf.Variable([1.5]),), {}, "[1.5]\n"),
], ids=range(15))
def test_text(capsys, inputs, kwargs, text) -> None:
    assert printed(capsys, *inputs, **kwargs) == [text, text]


def test_streams(capsys, tmp_path, caplog) -> None:
    tf.print("out", output_stream=sys.stdout)
    assert capsys.readouterr().out == "out\n"
    path = tmp_path / "log"
    for n in range(2):
        tf.print(tf.range(n, n + 2), output_stream=f"file://{path}")
    assert path.read_text() == "[0 1]\n[1 2]\n"
    with caplog.at_level(logging.INFO):
        tf.print("logged", tf.constant(1), output_stream=logging.info)
    assert caplog.messages == ["logged 1"]
    with pytest.raises(ValueError, match="Could not process the provided output_stream"):
        tf.print(1, output_stream=3)
    with pytest.raises(ValueError, match="Unrecognized keyword arguments"):
        tf.print(1, colour="red")


def test_effects_happen_in_every_call_and_in_order(capsys) -> None:
    v = tf.Variable(0)

    @tf.function
    def f(x):
        tf.print("before", v)
        v.assign_add(x)
        tf.print("after", v, x)
        return x
    f(tf.constant(2))
    f(tf.constant(3))
    assert capsys.readouterr().err == "before 0\nafter 2 2\nbefore 2\nafter 5 3\n"


def test_py_function() -> None:
    seen = []

    def double(x, y):
        seen.append(x.numpy())
        return x.numpy() * 2, y + 1

    @tf.function
    def f(x):
        a, b = tf.py_function(double, [x, 3.0], [tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.float32)])
        assert a.shape.as_list() == [None]
        return a + b, tf.shape(a)
    for values in ([1.0], [1.0, 2.0], [1.0, 2.0, 3.0]):
        got, shape = f(tf.constant(values))
        np.testing.assert_array_equal(got, np.array(values) * 2 + 4)
        assert shape.numpy().tolist() == [len(values)]
    assert [len(s) for s in seen] == [1, 2, 3]
    assert tf.py_function(lambda x: x + 1, [1.0], tf.float32).numpy() == 2
    assert [t.numpy() for t in tf.py_function(lambda: (1, 2.0), [], [tf.int32, tf.float32])] == [1, 2]


def test_side_effects_of_py_function() -> None:
    seen = []

    @tf.function
    def f(x):
        tf.py_function(seen.append, [x], [])
        tf.py_function(lambda t: t, [x], tf.float32)
        return x * 2
    for v in (1.0, 2.0, 2.0):
        f(tf.constant(v))
    assert [s.numpy() for s in seen] == [1, 2, 2]


def test_a_rank_that_is_told_later() -> None:
    @tf.function(fallback=False)
    def f(x):
        y = tf.numpy_function(np.cumsum, [x], tf.float32)
        assert y.shape.rank is None
        y.set_shape([None])
        return y * 2
    assert f(tf.constant([1.0, 2.0])).numpy().tolist() == [2, 6]


def test_sizes_that_are_told_later() -> None:
    """`set_shape` is what image pipelines say after decoding: the tensor itself tells its shape from there on."""
    seen = []

    @tf.function(input_signature=[tf.TensorSpec([None, None])], fallback=False)
    def f(x):
        y = tf.numpy_function(np.transpose, [x], tf.float32)
        for shape in ([None, None], [None, 2], [3, 2]):
            y.set_shape(shape)
            seen.append(y.shape.as_list())
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = tf.sin(x)
            x.set_shape([2, None])
            z.set_shape([None, 3])
            total = tf.reduce_sum(z * x)
        seen.append((x.shape.as_list(), z.shape.as_list(), (z * x).shape.as_list()))
        if total > 0.0:
            x.set_shape([2, 3])  # within a branch nothing outside of it learns
        seen.append(x.shape.as_list())
        return y, tape.gradient(total, x)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y, derivative = f(x)
    assert seen == [[None, None], [None, 2], [3, 2], ([2, None], [None, 3], [2, 3]), [2, None]]
    assert y.numpy().tolist() == x.T.tolist()
    np.testing.assert_allclose(derivative, np.cos(x) * x + np.sin(x), rtol=1e-5)
    with pytest.raises(ValueError, match="not compatible"):
        f(np.zeros((2, 4), np.float32))
    dataset = tf.data.Dataset.range(2).map(lambda n: (lambda t: (t.set_shape([4]), t)[1])(
        tf.numpy_function(lambda v: np.full(4, v), [n], tf.int64)))
    assert dataset.element_spec == tf.TensorSpec([4], tf.int64)


def test_a_rank_that_is_never_told() -> None:
    f = tf.function(lambda x: tf.numpy_function(np.cumsum, [x], tf.float32) * 2)
    with pytest.warns(RuntimeWarning, match="its rank is not known; give Tout as tf.TensorSpec"):
        assert f(tf.constant([1.0, 2.0])).numpy().tolist() == [2, 6]


def test_results_are_checked() -> None:
    spec = tf.TensorSpec([2], tf.float32)
    wrong = tf.function(lambda x: tf.py_function(lambda t: [1.0, 2.0, 3.0], [x], spec))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"gave a result of shape \(3,\); expected \(2,\)"):
        wrong(1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="0-th value returned by .* is float64, but expects"):
        tf.numpy_function(lambda x: x.astype(np.float64), [1.0], tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="returns 1 values, but expects to see 2"):
        tf.py_function(lambda: 1, [], [tf.int32, tf.int32])
    with pytest.raises(ZeroDivisionError):
        tf.function(lambda x: tf.py_function(lambda t: 1 / 0, [x], tf.TensorSpec([])))(1.0)


def cube(x):
    return x * x * x


@pytest.mark.parametrize("where", ["eager", "tape around", "tape inside", "nested"])
def test_gradients_of_py_function(where) -> None:
    call = functools.partial(tf.py_function, cube, Tout=tf.TensorSpec([], tf.float32))

    def plain(x):
        return call(inp=[x])
    inner = tf.function(plain) if where in ("tape around", "nested") else plain

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = inner(x) * 2
        return tape.gradient(y, x)
    run = tf.function(gradient) if where in ("tape inside", "nested") else gradient
    assert [run(tf.constant(v)).numpy() for v in (2.0, 3.0)] == [24, 54]


@pytest.mark.parametrize("call", [tf.py_function, tf.numpy_function])
@pytest.mark.parametrize("inside", [False, True])
def test_results_have_the_shapes_that_were_declared(call, inside):
    def run(function, declared):
        body = functools.partial(call, function, [tf.constant([0.0])], declared)
        return (tf.function(body) if inside else body)()

    one, vector = tf.TensorSpec([1], tf.float32), tf.TensorSpec([None], tf.float32)
    for declared in (one, vector):
        assert run(lambda x: x, declared).shape == [1]
    two, rows, scalar = (tf.TensorSpec(shape, tf.float32) for shape in ([2], [None, None], []))
    for function, declared in ((lambda x: x, two), (lambda x: x, rows), (lambda x: x, scalar),
                               (lambda x: (x, x), [one, two]), (lambda x: (x, x), [rows, one])):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"gave a result of shape \(1,\); expected"):
            run(function, declared)


@pytest.mark.parametrize("inside", [False, True])
def test_shapes_that_hold_no_integers(inside):
    for vector in (tf.zeros([0]), tf.constant([1.0]), tf.constant([True])):
        for call in (lambda v: tf.broadcast_dynamic_shape([1, 2], v), lambda v: tf.broadcast_dynamic_shape(v, [2]),
                     tf.zeros, lambda v: tf.broadcast_to(1.0, v), lambda v: tf.reshape([1.0], v)):
            with pytest.raises(TypeError, match="hold integers"):
                (tf.function(call) if inside else call)(vector)
