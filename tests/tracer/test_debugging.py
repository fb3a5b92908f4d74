"""tf.debugging in both modes."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

BOTH = pytest.mark.parametrize("mode", ["eager", "traced"])
D = tf.debugging
INVALID = tf.errors.InvalidArgumentError


def run(mode, fn, *args):
    return fn(*args) if mode == "eager" else tf.function(fn, fallback=False)(*args)


PAIRS = [
    (D.assert_equal, ([1, 2], [1, 2]), ([1, 2], [1, 3]), "x == y"),
    (D.assert_none_equal, ([1, 2], [2, 1]), ([1, 2], [1, 3]), "x != y"),
    (D.assert_less, ([1, 2], 3), ([1, 3], 3), "x < y"),
    (D.assert_less_equal, ([1, 3], 3), ([1, 4], 3), "x <= y"),
    (D.assert_greater, ([4, 5], 3), ([3, 5], 3), "x > y"),
    (D.assert_greater_equal, ([3, 5], 3), ([2, 5], 3), "x >= y"),
    (D.assert_near, ([1.0, 2.0], [1.0000001, 2.0]), ([1.0, 2.0], [1.1, 2.0]), "tolerance"),
    (D.assert_positive, ([1, 2],), ([1, 0],), "x > 0"),
    (D.assert_negative, ([-1, -2],), ([-1, 0],), "x < 0"),
    (D.assert_non_negative, ([1, 0],), ([1, -1],), "x >= 0"),
    (D.assert_non_positive, ([-1, 0],), ([1, -1],), "x <= 0"),
]


@BOTH
@pytest.mark.parametrize(("check", "good", "bad", "text"), PAIRS, ids=[p[0].__name__ for p in PAIRS])
def test_elementwise_assertions(mode, check, good, bad, text):
    def fn(*args):
        check(*args, message="the message")
        return args[0]
    run(mode, fn, *[tf.constant(a) for a in good])
    with pytest.raises(INVALID) as error:
        run(mode, fn, *[tf.constant(a) for a in bad])
    assert "the message" in str(error.value)
    assert text in str(error.value)
    assert "test_debugging.py" in str(error.value)


@BOTH
def test_both_modes_say_the_same(mode):
    def fn(x):
        tf.Assert(x > 5, ["x must be large:", x])
        return x
    with pytest.raises(INVALID) as error:
        run(mode, fn, tf.constant(3))
    assert str(error.value).splitlines()[:2] == ["assertion failed: x must be large:", "  3"]


def test_numbers_take_the_tensors_dtype():
    D.assert_equal(tf.constant(2.0, tf.float64), 2)
    D.assert_equal(2, tf.constant(2.0, tf.float64))
    D.assert_less(1, 2)


@BOTH
def test_check_numerics(mode):
    def fn(x):
        return D.check_numerics(x, "x here") + D.assert_all_finite(x, "again")
    np.testing.assert_array_equal(run(mode, fn, tf.constant([1.0])), [2.0])
    with pytest.raises(INVALID, match="x here : Tensor had NaN values"):
        run(mode, fn, tf.constant([1.0, np.nan]))
    with pytest.raises(INVALID, match="x here : Tensor had Inf values"):
        run(mode, fn, tf.constant([1.0, -np.inf]))


STATIC = [
    (lambda: D.assert_rank(tf.ones([2]), 1), lambda: D.assert_rank(tf.ones([2]), 2), ValueError),
    (lambda: D.assert_rank_at_least(tf.ones([2]), 1), lambda: D.assert_rank_at_least(tf.ones([2]), 2), ValueError),
    (lambda: D.assert_rank_in(tf.ones([2]), [0, 1]), lambda: D.assert_rank_in(tf.ones([2]), [0, 2]), ValueError),
    (lambda: D.assert_scalar(tf.ones([])), lambda: D.assert_scalar(tf.ones([1])), ValueError),
    (lambda: D.assert_type(1, tf.int32), lambda: D.assert_type(1, tf.int64), TypeError),
    (lambda: D.assert_integer(1), lambda: D.assert_integer(1.0), TypeError),
    (lambda: D.assert_proper_iterable([1]), lambda: D.assert_proper_iterable(tf.ones([1])), TypeError),
    (lambda: D.assert_same_float_dtype([1.0, None]), lambda: D.assert_same_float_dtype([1.0], tf.float64), ValueError),
    (lambda: D.assert_shapes([(tf.ones([2, 3]), ("N", "D")), (tf.ones([3]), "D")]),
     lambda: D.assert_shapes([(tf.ones([2, 3]), ("N", "D")), (tf.ones([2]), ["D"])]), ValueError),
    (lambda: D.assert_shapes({tf.ones([2, 3]).ref(): ("N", 3)} and [(tf.ones([2, 3]), ("...", 3))]),
     lambda: D.assert_shapes([(tf.ones([2, 3]), ("N",))]), ValueError),
]


@BOTH
@pytest.mark.parametrize(("good", "bad", "kind"), STATIC)
def test_what_shapes_and_dtypes_decide(mode, good, bad, kind):
    def calling(check):
        def fn():
            check()
            return tf.constant(0)
        return fn
    run(mode, calling(good))
    with pytest.raises(kind):
        run(mode, calling(bad))


def test_shapes_with_unknown_sizes_are_checked_when_the_function_runs():
    def fn(x, y):
        D.assert_shapes([(x, ("N", 3)), (y, ("N",))], message="batches")
        return tf.reduce_sum(x)
    traced = tf.function(fn, fallback=False, input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec([None])])
    assert float(traced(tf.ones([2, 3]), tf.ones([2]))) == 6.0
    for x, y in (([2, 3], [4]), ([2, 5], [2])):
        with pytest.raises(INVALID, match="batches"):
            traced(tf.ones(x), tf.ones(y))


def test_is_numeric_tensor():
    assert [D.is_numeric_tensor(x) for x in (tf.constant(1), tf.constant("a"), 1, tf.Variable(1.0))] == [
        True, False, False, True]


def bad_logarithm(x):
    y = x * 2.0
    z = tf.math.log(y)  # HERE
    return tf.where(z > 0, z, 0.0)


@BOTH
def test_the_watch_for_nan_names_the_op_and_the_line(mode):
    assert np.isfinite(float(run(mode, bad_logarithm, tf.constant(-1.0))))
    D.enable_check_numerics()
    try:
        D.enable_check_numerics()
        assert float(run(mode, bad_logarithm, tf.constant(0.5))) == 0.0
        with pytest.raises(INVALID) as error:
            run(mode, bad_logarithm, tf.constant(-1.0))
    finally:
        D.disable_check_numerics()
    assert '"log"' in str(error.value)
    assert "# HERE" in str(error.value)
    assert np.isfinite(float(run(mode, bad_logarithm, tf.constant(-1.0))))


def test_the_watch_for_nan_in_loops():
    def fn(x, n):
        for _ in tf.range(n):
            x = x * 1e30
        return x
    D.enable_check_numerics()
    try:
        traced = tf.function(fn, fallback=False)
        assert float(traced(tf.constant(1.0), tf.constant(1))) == np.float32(1e30)
        with pytest.raises(INVALID, match="multiply"):
            traced(tf.constant(1.0), tf.constant(3))
    finally:
        D.disable_check_numerics()
