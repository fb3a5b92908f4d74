"""What users read when control flow cannot be staged, or fails when it runs: the variable, the line, the remedy."""

from __future__ import annotations

import inspect
import traceback

import pytest

import twofold as tf


def shape_changes(n):
    v = tf.constant([1.0])
    for _ in tf.range(n):  # HERE
        v = tf.concat([v, v], 0)
    return v


def while_loop_shape(n):
    return tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, tf.concat([v, v], 0)),  # HERE
                         (tf.constant(0), tf.constant([1.0])))


def dtype_changes(n):
    s = tf.constant(0)
    for _ in tf.range(n):  # HERE
        s = tf.cast(s, tf.float32) + 0.5
    return s


def none_after_break(n):
    s = None
    for i in tf.range(n):  # HERE
        if i > 3:
            break
        s = n if s is None else s + n
    return s


def structure_changes(n):
    s = (n, n)
    while n > 0:  # HERE
        s = (n, n, n)
        n -= 1
    return s


def list_grows(n):
    out = []
    for i in tf.range(n):  # HERE
        out.append(i)
    return out


def branch_dtypes(n):
    if n > 0:  # HERE
        y = tf.constant(1.0)
    else:
        y = tf.constant(1)
    return y


def branch_structures(n):
    if n > 0:  # HERE
        y = (n, n)
    else:
        y = n
    return y


def branch_ranks(n):
    if n > 0:  # HERE
        y = tf.zeros([2])
    else:
        y = tf.zeros([2, 2])
    return y


def branch_texts(n):
    if n > 0:  # HERE
        y = "a"
    else:
        y = "b"
    return y


def branch_none(n):
    if n > 0:  # HERE
        y = None
    else:
        y = n
    return y


def cond_results(n):
    return tf.cond(n > 0, lambda: tf.constant(1.0), lambda: tf.constant(1))  # HERE


def missing_return(n):  # HERE
    if n > 0:
        return n


def vector_condition(n):
    if tf.fill([2], n) > 0:  # HERE
        n = n + 1
    return n


def undefined_after_branch(n):
    if n < 0:
        t = n * 2
    return t  # HERE


def undefined_after_loop(n):
    for i in range(n - 100):
        last = i
    return last  # HERE


def undefined_before(n):
    if n > 0:
        n = missing_name + n  # noqa: F821  # HERE
    return n


def failed_assert(n):
    assert n > 100, "n is too small"  # HERE
    return n


def failed_debugging(n):
    if n > 0:
        tf.debugging.assert_greater(n, 100, message="n is too small")  # HERE
    return n


def failed_op(n):
    s = 0
    for i in tf.range(n + 2):
        s += tf.gather([1, 2, 3], i)  # HERE
    return s


def failed_shape(n):
    for _ in tf.range(n):
        tf.matmul(n, n)  # HERE
    return n


def dtype_in_helper(n):
    return branch_dtypes(n)


CASES = [
    (shape_changes, ValueError, ["'v'", "(1,)", "(2,)", "shape_invariants"]),
    (while_loop_shape, ValueError, ["loop_vars[1]", "(1,)", "(2,)", "shape_invariants"]),
    (dtype_changes, TypeError, ["'s'", "int32", "float32", "tf.cast"]),
    (none_after_break, TypeError, ["'s' is int32[] on one side and NoneType None on the other"]),
    (structure_changes, TypeError, ["'s'", "structure"]),
    (list_grows, TypeError, ["'out'", "tf.TensorArray"]),
    (branch_dtypes, TypeError, ["'y'", "float32", "int32"]),
    (branch_structures, TypeError, ["'y'", "structure"]),
    (branch_ranks, TypeError, ["'y'", "(2)", "(2, 2)"]),
    (branch_texts, TypeError, ["'y'", "'a'", "'b'"]),
    (branch_none, TypeError, ["'y'", "None"]),
    (cond_results, TypeError, ["tf.cond", "float32", "int32"]),
    (missing_return, ValueError, ["missing_return", "every path"]),
    (vector_condition, ValueError, ["(2,)", "tf.reduce_any"]),
    (undefined_after_branch, UnboundLocalError, ["'t'"]),
    (undefined_after_loop, UnboundLocalError, ["'last'"]),
    (failed_assert, AssertionError, ["n is too small"]),
    (failed_assert, tf.errors.InvalidArgumentError, ["n is too small"]),
    (failed_debugging, tf.errors.InvalidArgumentError, ["n is too small", "x > y"]),
    (failed_op, tf.errors.InvalidArgumentError, ["gather", "3"]),
    (failed_shape, tf.errors.InvalidArgumentError, ["matmul"]),
]


def marked_line(fn):
    lines, first = inspect.getsourcelines(fn)
    return first + next(n for n, line in enumerate(lines) if "# HERE" in line)


@pytest.mark.parametrize(("fn", "kind", "parts"), CASES, ids=[f"{c[0].__name__}-{c[1].__name__}" for c in CASES])
def test_error_names_the_variable_the_line_and_the_remedy(fn, kind, parts):
    with pytest.raises(kind) as error:
        tf.function(fn, fallback=False)(tf.constant(3))
    text = str(error.value)
    for part in (*parts, f"test_control_errors.py:{marked_line(fn)}"):
        assert part in text, text


def test_python_errors_keep_their_kind_and_show_the_line():
    with pytest.raises(NameError, match="missing_name") as error:
        tf.function(undefined_before, fallback=False)(tf.constant(3))
    last = traceback.extract_tb(error.value.__traceback__)[-1]
    assert last.lineno == marked_line(undefined_before)
    assert last.name == "undefined_before"


def test_tracebacks_show_the_users_frames_only():
    with pytest.raises(TypeError) as error:
        tf.function(dtype_in_helper, fallback=False)(tf.constant(3))
    frames = traceback.extract_tb(error.value.__traceback__)[1:]
    assert [f.name for f in frames] == ["dtype_in_helper", "branch_dtypes"]
    assert {f.filename for f in frames} == {__file__}


def test_nodes_have_the_users_lines_and_function_names():
    def nested(n):
        total = 0
        for i in tf.range(n):
            if i > 1:
                total += i * 7
        return total
    graph = tf.function(nested).get_concrete_function(tf.constant(3)).graph
    places = {(node.op.name, node.loc.function) for node in graph.walk() if node.loc is not None}
    assert ("multiply", "nested") in places
    assert {function for _, function in places} == {"nested"}
    _, first = inspect.getsourcelines(nested)
    assert {node.loc.line for node in graph.walk() if node.op.name == "multiply"} == {first + 4}


def test_a_failed_trace_leaves_the_next_one_right():
    switch = [True]

    def sometimes(n):
        s = tf.constant(0)
        for _ in tf.range(n):
            s = s + 1 if not switch[0] else tf.cast(s, tf.float32)
        return s
    traced = tf.function(sometimes, fallback=False)
    with pytest.raises(TypeError):
        traced(tf.constant(3))
    switch[0] = False
    assert int(traced(tf.constant(3))) == 3


def test_assertions_in_a_branch_not_taken_do_not_fail():
    traced = tf.function(failed_debugging, fallback=False)
    assert int(traced(tf.constant(-5))) == -5
    assert int(traced(tf.constant(500))) == 500
