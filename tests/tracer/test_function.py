"""`tf.function`: what is traced again and what is not, forms of arguments and results, nesting, errors."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import inspect
import threading
import traceback
from typing import Any

import attr
import numpy as np
import pytest

import twofold as tf

Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Record:
    x: Any
    scale: Any = 2.0


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def count(fn: Any) -> int:
    return fn.experimental_get_tracing_count()


def test_one_trace_for_equal_calls_however_they_are_spelt() -> None:
    @tf.function
    def f(x, y=2.0, *, z=1.0):
        return x * y + z
    x = tf.ones([3])
    for result in (f(x), f(x, 2.0), f(x=x), f(x, y=2.0, z=1.0), f(z=1.0, x=x)):
        np.testing.assert_array_equal(result, np.full(3, 3.0, np.float32))
    assert count(f) == 1
    f(x, 3.0)
    assert count(f) == 2


@pytest.mark.parametrize("values", [(1, 1.0, True), (0.0, -0.0), ("a", b"a"), (None, False), ([1], (1,)),
                                    ({"a": 1}, {"b": 1}), (Colour.RED, Colour.BLUE), (tf.float32, tf.float64),
                                    (slice(1), slice(2)), ({1, 2}, {1, 3}), (range(2), range(3))], ids=repr)
def test_python_values_are_told_apart_by_type_and_value(values) -> None:
    seen = []

    @tf.function
    def f(v):
        seen.append(v)
        return tf.constant(0)
    for value in (*values, *values):
        f(value)
    assert count(f) == len(values)
    assert [repr(v) for v in seen] == [repr(v) for v in values]


def test_a_nan_is_one_value() -> None:
    f = tf.function(lambda v: tf.constant(v))
    f(float("nan"))
    f(float("nan"))
    assert count(f) == 1


def test_tensors_are_told_apart_by_dtype_and_rank() -> None:
    f = tf.function(lambda x: x + x)
    for x in (tf.ones([2]), tf.ones([2], tf.float64), tf.ones([2, 2]), tf.ones([2], tf.int32)):
        f(x)
        f(x)
    assert count(f) == 4


def test_arrays_are_tensors() -> None:
    @tf.function
    def f(x):
        assert isinstance(x, tf.Tensor)
        return x * 2
    assert f(np.ones(3, np.float32)).numpy().tolist() == [2, 2, 2]
    assert f(np.float32(3)).numpy() == 6
    f(tf.ones([3]))
    assert count(f) == 2


@pytest.mark.parametrize("make", [
    lambda x, y: (x, [y, {"k": x}]), lambda x, y: Pair(x, y), lambda x, y: {"b": x, "a": [y]},
    lambda x, y: Record(x, y), lambda x, y: collections.OrderedDict(z=x, a=y), lambda x, y: [Record(Pair(x, y))],
], ids=["tuple", "namedtuple", "dict", "dataclass", "ordered", "deep"])
def test_structures_go_in_and_come_out(make) -> None:
    f = tf.function(lambda s: s)
    given = make(tf.constant([1.0, 2.0]), tf.constant(3))
    got = f(given)
    tf.nest.assert_same_structure(given, got)
    for a, b in zip(tf.nest.flatten(given), tf.nest.flatten(got), strict=True):
        np.testing.assert_array_equal(a, b)
    f(make(tf.constant([5.0, 6.0]), tf.constant(4)))
    assert count(f) == 1


def test_attrs_classes_are_structures() -> None:
    @attr.s
    class Point:
        x = attr.ib()
        y = attr.ib()

    f = tf.function(lambda p: Point(p.y, p.x))
    got = f(Point(tf.constant(1), tf.constant(2)))
    assert (int(got.x), int(got.y)) == (2, 1)
    f(Point(tf.constant(3), tf.constant(4)))
    assert count(f) == 1


def test_results_of_all_kinds() -> None:
    v = tf.Variable(5.0)

    @tf.function
    def f(x):
        y = x + 1
        return {"none": None, "int": 3, "twice": [y, y], "input": x, "variable": v, "text": "a", "list": [1.5, y[0]]}
    got = f(tf.constant([1.0, 2.0]))
    assert got["none"] is None and got["int"].numpy() == 3 and got["int"].dtype is tf.int32
    np.testing.assert_array_equal(got["twice"][0], got["twice"][1])
    assert got["input"].numpy().tolist() == [1, 2] and got["variable"].numpy() == 5 and got["text"].numpy() == b"a"
    assert isinstance(got["variable"], tf.Tensor) and got["list"][1].numpy() == 2
    assert tf.function(lambda: None)() is None
    assert tf.function(lambda: ())() == ()


def test_what_cannot_be_returned() -> None:
    f = tf.function(lambda x: object())
    with pytest.raises(TypeError, match="must return zero or more Tensors or ExtensionTypes or None values; in "
                                        "compilation of .*, found return value of type object"):
        f(1)


# -- sizes --------------------------------------------------------------------------------------------
def test_a_second_shape_makes_the_size_unknown() -> None:
    f = tf.function(lambda x: tf.reduce_sum(x, axis=0) + tf.cast(tf.shape(x)[0], tf.float32))
    for n in (3, 4, 5, 1, 0, 7):
        np.testing.assert_array_equal(f(tf.ones([n, 2])), np.full(2, 2.0 * n, np.float32))
    assert count(f) == 2


def test_sizes_that_meet_in_broadcasting() -> None:
    f = tf.function(lambda x, y: x + y)
    shapes = [((3,), (3,)), ((4,), (4,)), ((1,), (4,)), ((5,), (5,)), ((0,), (1,)), ((4,), (1,)), ((0,), (0,)),
              ((1,), (1,)), ((1,), (9,))]
    for s, t in shapes:
        x, y = np.random.default_rng(1).random(s), np.random.default_rng(2).random(t)
        np.testing.assert_array_equal(f(x, y), x + y)
    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.ones([2], tf.float64), tf.ones([3], tf.float64))


def test_python_sees_sizes_that_we_left_open() -> None:
    @tf.function(autograph=False)
    def f(x):
        if x.shape[0] == 4:
            return x * 0
        return tf.zeros(x.shape) + x
    for n in (3, 4, 5, 4):
        assert f(tf.ones([n])).numpy().tolist() == [0.0 if n == 4 else 1.0] * n


@pytest.mark.parametrize("ask", [
    lambda x: len(x), lambda x: x.shape.num_elements(), lambda x: x.shape.as_list()[0], lambda x: list(x.shape)[0],
    lambda x: int(x.shape[0]), lambda x: 4 if x.shape == (4,) else 0, lambda x: sum(1 for _ in x),
    lambda x: 4 if 4 in x.shape else 1, lambda x: str(x.shape), lambda x: int(x.shape.is_fully_defined()),
], ids=range(10))
def test_every_way_to_ask_for_a_size(ask) -> None:
    f = tf.function(lambda x: tf.constant(ask(x)), autograph=False, fallback=False)
    for n in (3, 4, 5):
        assert f(tf.ones([n])).numpy() == tf.constant(ask(tf.ones([n]))).numpy()


def test_the_known_sizes_of_a_relaxed_shape_may_be_asked_for() -> None:
    f = tf.function(lambda x: tf.reshape(x, [-1, x.shape[1] // 2]) + tf.zeros(x.shape[1:])[0])
    for n in (3, 4, 5):
        assert f(tf.ones([n, 6])).shape == (2 * n, 3)
    assert count(f) == 2


def test_declared_unknown_sizes_are_none() -> None:
    seen = []

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def f(x):
        seen.append(x.shape.as_list())
        return x
    f(tf.ones([3, 2]))
    f(tf.ones([4, 2]))
    assert seen == [[None, 2]]


# -- input signatures ---------------------------------------------------------------------------------
def test_input_signature() -> None:
    @tf.function(input_signature=(tf.TensorSpec([None], tf.int32),))
    def f(x):
        return x + 1
    assert f(tf.constant([1])).numpy().tolist() == [2] and f([1, 2]).numpy().tolist() == [2, 3] and count(f) == 1
    with pytest.raises(TypeError, match=r"Binding inputs to tf.function failed due to `Can not cast "
                       r"TensorSpec\(shape=\(2, 2\), dtype=tf.int32, name=None\) to TensorSpec\(shape=\(None,\), "
                       r"dtype=tf.int32, name=None\)`. Received args: "):
        f(tf.constant([[1, 2], [3, 4]]))
    with pytest.raises(TypeError, match="Can not cast"):
        f(tf.constant([1.0]))
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        f()
    with pytest.raises(TypeError, match="input_signature must be either a tuple or a list"):
        tf.function(lambda x: x, input_signature=tf.TensorSpec([]))


def test_input_signature_of_structures_and_any_rank() -> None:
    f = tf.function(lambda d: d["a"] + d["b"][0], [{"a": tf.TensorSpec([]), "b": [tf.TensorSpec(None)]}])
    assert f({"a": 1.0, "b": [tf.ones([2])]}).numpy().tolist() == [2, 2]
    assert f({"a": 1.0, "b": [2.0]}).numpy() == 3
    with pytest.raises(TypeError, match="Can not cast"):
        f({"a": 1.0, "c": [2.0]})


# -- forms of functions -------------------------------------------------------------------------------
def test_signature_and_docs_are_kept() -> None:
    @tf.function
    def f(x: Any, y: int = 1) -> Any:
        """Docs."""
        return x

    assert f.__name__ == "f" and f.__doc__ == "Docs." and f.python_function is f.__wrapped__
    assert str(inspect.signature(f)) == str(inspect.signature(f.python_function))
    assert tf.function(f).python_function is f.python_function


def test_methods_of_all_kinds() -> None:
    class Model:
        def __init__(self, k):
            self.k = tf.constant(k)

        @tf.function
        def scaled(self, x):
            return x * self.k

        @staticmethod
        @tf.function
        def double(x):
            return x * 2

        @tf.function
        @classmethod
        def name(cls, x):
            return x, cls.__name__

        @property
        @tf.function
        def twice(self):
            return self.k * 2

        @tf.function
        def branch(self, x):
            if x > 0:
                return x * self.k
            return -x

    a, b = Model(2.0), Model(3.0)
    assert [m.scaled(10.0).numpy() for m in (a, b, a)] == [20, 30, 20]
    assert Model.scaled(b, 10.0).numpy() == 30
    assert a.double(4.0).numpy() == 8 and a.name(1)[1].numpy() == b"Model" and b.twice.numpy() == 6
    assert a.scaled is a.scaled and a.scaled.experimental_get_tracing_count() == 1
    assert [b.branch(tf.constant(x)).numpy() for x in (2.0, -2.0)] == [6, 2]
    assert tf.function(b.branch)(tf.constant(2.0)).numpy() == 6


def test_callables_partials_and_builtins() -> None:
    class Add:
        def __call__(self, x):
            return x + 1

    assert tf.function(Add())(1.0).numpy() == 2
    assert tf.function(functools.partial(lambda x, y: x - y, y=2.0))(5.0).numpy() == 3
    assert tf.function(tf.exp)(0.0).numpy() == 1
    with pytest.raises(TypeError, match="takes a callable"):
        tf.function(3)


# -- nesting ------------------------------------------------------------------------------------------
def test_functions_within_functions() -> None:
    inner = tf.function(lambda x, k: x * k)

    @tf.function
    def outer(x):
        return inner(x, 2.0) + inner(x, 3.0) + inner(x, 2.0)
    assert outer(tf.constant([1.0, 2.0])).numpy().tolist() == [7, 14]
    assert count(inner) == 2
    assert [n.op.name for n in outer.get_concrete_function(tf.ones([2])).graph.nodes].count("call") == 3


def test_a_function_defined_within_one_sees_its_tensors() -> None:
    @tf.function
    def outer(x):
        @tf.function
        def inner(y):
            return x + y
        return inner(x) * inner(2 * x)
    assert outer(tf.ones([3])).numpy().tolist() == [6, 6, 6]
    assert outer(2 * tf.ones([4])).numpy().tolist() == [24, 24, 24, 24]
    assert outer(2 * tf.ones([5])).numpy().tolist() == [24] * 5


def test_nested_unknown_sizes() -> None:
    inner = tf.function(lambda x, y: tf.concat([x, y], 0) + 1)
    outer = tf.function(lambda x, y: inner(inner(x, y), y)[1:])
    for n, m in ((1, 2), (3, 4), (5, 6), (0, 7)):
        got = outer(tf.zeros([n]), tf.zeros([m]))
        np.testing.assert_array_equal(got, np.concatenate([np.full(n + m, 2.0), np.ones(m)])[1:])
    assert count(outer) == 2


@pytest.mark.parametrize("use", [
    lambda n, x: tf.ones([n]) * x,
    lambda n, x: tf.reshape(tf.ones([n, 2]) * x, [2 * n]),
    lambda n, x: tf.cast(tf.range(n), tf.float32) * x,
    lambda n, x: tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * tf.reduce_sum(tf.ones([n]))), [0, x])[1],
], ids=["size", "sizes", "range", "loop"])
@pytest.mark.parametrize("count", [3, tf.constant(3), tf.Variable(3), np.int32(3)],
                         ids=["int", "tensor", "variable", "numpy"])
def test_a_size_of_a_call_within_a_function_may_be_a_constant(use, count) -> None:
    inner = tf.function(use)

    def gradient(x, call):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(call(count, x))
        return y, tape.gradient(y, x)
    x = tf.constant(2.0)
    expected = [t.numpy() for t in gradient(x, use)]
    assert [t.numpy() for t in tf.function(lambda x: gradient(x, inner))(x)] == expected


def test_recursion_ends_by_python_values_or_is_an_error() -> None:
    @tf.function
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)
    assert power(tf.constant(2.0), 5).numpy() == 32

    @tf.function(autograph=False)
    def endless(x):
        return endless(x)
    with pytest.raises(RecursionError, match="calls itself while it is traced"):
        endless(1.0)


# -- modes --------------------------------------------------------------------------------------------
def test_python_runs_when_traced() -> None:
    lines = []

    @tf.function
    def f(x):
        lines.append((tf.executing_eagerly(), tf.inside_function()))
        with tf.init_scope():
            lines.append((tf.executing_eagerly(), tf.inside_function(), tf.constant(1).numpy()))
        return x
    f(1)
    f(1)
    assert lines == [(False, True), (True, False, 1)] and tf.executing_eagerly() and not tf.inside_function()


def test_static_values() -> None:
    seen = []

    @tf.function
    def f(x):
        seen.extend([tf.get_static_value(x), tf.get_static_value(tf.shape(x)), tf.get_static_value(tf.constant(3))])
    f(tf.ones([2, 3]))
    assert seen[0] is None and seen[1].tolist() == [2, 3] and seen[2] == 3


def test_run_functions_eagerly() -> None:
    seen = []

    @tf.function
    def f(x):
        seen.append(x.numpy() if tf.executing_eagerly() else None)
        return x
    tf.config.run_functions_eagerly(True)
    try:
        assert tf.config.functions_run_eagerly()
        f(tf.constant(1))
        f(tf.constant(2))
    finally:
        tf.config.run_functions_eagerly(False)
    f(tf.constant(3))
    assert seen == [1, 2, None]


def test_two_threads_call_one_function() -> None:
    f = tf.function(lambda x: tf.reduce_sum(x * x))
    x = tf.ones([100])
    results: list[Any] = []

    def work() -> None:
        results.extend([f(x).numpy() for _ in range(50)])
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [100.0] * 150 and count(f) == 1


# -- errors and warnings ------------------------------------------------------------------------------
def frames(error: BaseException) -> list[str]:
    return [f.name for f in traceback.extract_tb(error.__traceback__)]


def test_errors_show_the_frames_of_the_user() -> None:
    @tf.function
    def broken(x):
        return tf.matmul(x, x)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"test_function.py:\d+ in broken\(\): ret") as e:
        broken(tf.ones([2, 3]))
    assert frames(e.value) == ["test_errors_show_the_frames_of_the_user", "broken"]
    with pytest.raises(TypeError, match="missing a required argument") as bad:
        broken()
    assert frames(bad.value) == ["test_errors_show_the_frames_of_the_user"]


def test_an_error_at_run_time_names_the_line_of_the_op() -> None:
    @tf.function
    def f(x, i):
        y = x + 1
        return tf.gather(y, i)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"At test_function.py:\d+ in f\(\): return tf.gather"):
        f(tf.ones([2]), tf.constant(7))


def test_fallback_warns_once_and_runs_eagerly() -> None:
    seen = []

    @tf.function(autograph=False)
    def f(x):
        seen.append(float(x))
        return x * 2
    with pytest.warns(RuntimeWarning, match=r"'f' runs eagerly, because it cannot be traced(.|\n)*float\(\) was called"
                      r"(.|\n)*At test_function.py:\d+ in f\(\): seen.append") as caught:
        assert [f(tf.constant(v)).numpy() for v in (1.0, 2.0)] == [2, 4]
    assert len(caught) == 1 and seen == [1.0, 2.0]
    assert caught[0].filename == __file__


def test_no_fallback_raises(monkeypatch) -> None:
    with pytest.raises(TypeError, match="has no value while tf.function traces"):
        tf.function(lambda x: x.numpy(), fallback=False)(tf.constant(1))
    monkeypatch.setenv("TWOFOLD_FALLBACK", "0")
    with pytest.raises(TypeError, match="has no value while tf.function traces"):
        tf.function(lambda x: np.sin(x))(tf.constant(1.0))


def test_many_traces_warn_once_and_name_the_argument() -> None:
    f = tf.function(lambda x, n: x * n)
    with pytest.warns(RuntimeWarning, match=r"has been traced 5 times(.|\n)*n = 5") as caught:
        for n in range(12):
            f(tf.constant(1), n)
    assert len(caught) == 1


def test_log(monkeypatch, capfd) -> None:
    monkeypatch.setenv("TWOFOLD_LOG", "retrace, fallback")
    f = tf.function(lambda x: x)
    f(1)
    f(2)
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == "twofold retrace: <lambda>: first trace"
    assert lines[1] == "twofold retrace: <lambda>: trace 2; what differs from the last: x = 2"


@pytest.mark.parametrize("function, signature, missing", [
    (lambda x: x, (), "x"), (lambda x, y: x, [tf.TensorSpec([])], "y"), (lambda *, x: x, [], "x"),
    (lambda self, x: x, [], "x")])
def test_signatures_have_a_spec_for_each_argument_that_calls_must_give(function, signature, missing):
    with pytest.raises(TypeError, match=f"input_signature missing type constraint for {missing}"):
        tf.function(function, input_signature=signature)
    assert tf.function(lambda x, y=2.0: x * y, input_signature=[tf.TensorSpec([])])(3.0).numpy() == 6.0

    class Holder:
        @tf.function(input_signature=[])
        def call(self):
            return tf.constant(1.0)

    assert Holder().call().numpy() == 1.0
