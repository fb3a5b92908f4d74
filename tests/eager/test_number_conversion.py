"""Numbers and arrays beside tensors and with a dtype, in both modes; against TensorFlow's documented results."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

BOTH = pytest.mark.parametrize("mode", [lambda f: f, tf.function], ids=["eager", "compiled"])
SMALL = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767),
         "uint32": (0, 2**32 - 1), "int32": (-2**31, 2**31 - 1)}
COMPARE = {
    "==": lambda x, n: x == n, "!=": lambda x, n: x != n, "<": lambda x, n: x < n, "<=": lambda x, n: x <= n,
    ">": lambda x, n: x > n, ">=": lambda x, n: x >= n, "n <": lambda x, n: n < x,
}


@BOTH
@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("how", COMPARE)
def test_comparisons_with_numbers_beyond_the_range(how, dtype, mode):
    low, high = SMALL[dtype]
    values = [low, 0, 44, high]
    x = tf.constant(values, dtype)
    for n in (high + 1, low - 1, 2**40, -2**40, np.int64(high + 45), high):
        got = mode(lambda x: COMPARE[how](x, n))(x)  # noqa: B023
        assert got.numpy().tolist() == [bool(COMPARE[how](v, int(n))) for v in values]


@BOTH
def test_functions_compare_as_operators_do(mode):
    x = tf.constant([1, 44], tf.uint8)
    got = mode(lambda x: (tf.equal(x, 300), tf.not_equal(300, x), tf.less(x, 300), x == [300, 44],
                          tf.greater(np.array([300, 0]), x)))(x)
    assert [g.numpy().tolist() for g in got] == [[False] * 2, [True] * 2, [True] * 2, [False, True], [True, False]]


def test_other_ops_refuse_numbers_beyond_the_range():
    x = tf.constant([1], tf.uint8)
    for f in (lambda: x + 300, lambda: 300 * x, lambda: tf.maximum(x, -1)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="0 to 255"):
            f()


ARRAYS = [np.array([True, False]), np.array([1, 2]), np.array([1.7, -2.0]), np.array([300]), np.array([1 + 2j]),
          np.float64(1.5), np.int64(300), np.array(1.5), np.True_]
NUMBERS = ["float32", "float64", "int32", "int64", "uint8", "bool", "complex64", "float16"]


@pytest.mark.parametrize("array", ARRAYS, ids=repr)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_arrays_are_cast_to_a_dtype_that_is_asked_for(array, dtype):
    want = tf.cast(tf.constant(array), dtype).numpy()
    in_range = np.all(array.real >= 0) or dtype != "uint8"  # where TensorFlow's is NumPy's
    if in_range:
        whole = array if dtype in ("complex64", "bool") else array.real
        np.testing.assert_array_equal(want, whole.astype(dtype))
    for make in (tf.constant, tf.convert_to_tensor, tf.Variable, lambda a, dtype: tf.function(
            lambda: tf.constant(a, dtype))()):
        got = make(array, dtype=dtype)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got.numpy(), want)


def test_lists_and_numbers_are_not_cast_where_more_than_precision_is_lost():
    for value, dtype in (([1.5], "int32"), (1.5, "int32"), ([1], "bool"), (1, "bool"), (1j, "float32"),
                         (np.array(["1"]), "int32"), ([np.float64(1.5)], "int32")):
        with pytest.raises(TypeError, match="Cannot convert"):
            tf.constant(value, dtype)


@BOTH
def test_true_counts_as_one(mode):
    assert mode(lambda: tf.constant(True, tf.float32))().numpy() == 1
    assert mode(lambda: tf.constant([True, False], "int32"))().numpy().tolist() == [1, 0]
    for dtype in ("float32", "float64", "float16", "int32", "uint8", "complex64"):
        x = tf.constant([2, 3], dtype)
        for f, want in ((lambda x: x + True, [3, 4]), (lambda x: True + x, [3, 4]),
                        (lambda x: x * True + False, [2, 3]), (lambda x: x + np.array([True, False]), [3, 3])):
            got = mode(f)(x)
            assert got.dtype == x.dtype
            assert got.numpy().tolist() == want
    v = tf.Variable(0.0)
    mode(lambda: v.assign(True))()
    assert v.numpy() == 1


@BOTH
def test_strings_are_added(mode):
    x = tf.constant(["a", "c"])
    assert mode(lambda x: x + "z")(x).numpy().tolist() == [b"az", b"cz"]
    assert mode(lambda x: "z" + x)(x).numpy().tolist() == [b"za", b"zc"]
    assert mode(lambda x: tf.add(x, [["b"], ["d"]]))(x).numpy().tolist() == [[b"ab", b"cb"], [b"ad", b"cd"]]
    assert mode(lambda x: tf.math.add("z", x) + x[0])(x).numpy().tolist() == [b"zaa", b"zca"]
    v = tf.Variable("v")
    assert mode(lambda: v + "w" + v)().numpy() == b"vwv"
    with pytest.raises(TypeError, match="string_add"):
        mode(lambda x: x + 1)(x)


@BOTH
def test_shifts_stop_at_the_width(mode):
    """As TensorFlow's kernels: counts below 0 count as 0, beyond the width as all but one."""
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        info, width = np.iinfo(dtype), 8 * np.dtype(dtype).itemsize
        counts = [0, 1, 3, width - 1, width, width + 1, 100, 127] + ([-1, -3, -128] if info.min else [255 - 1])
        for value in (5, 100, info.max, info.min):
            x, n = np.full(len(counts), value, dtype), np.array(counts, dtype)
            clipped = np.clip(n, 0, width - 1).astype(dtype)
            left, right = mode(lambda x, n: (tf.bitwise.left_shift(x, n), tf.bitwise.right_shift(x, n)))(x, n)
            np.testing.assert_array_equal(left.numpy(), np.left_shift(x, clipped))
            np.testing.assert_array_equal(right.numpy(), np.right_shift(x, clipped))


@BOTH
def test_products_in_a_wider_dtype(mode):
    a, b = np.full((2, 40), 100, np.int8), np.full((40, 3), 100, np.int8)
    got = mode(lambda a, b: tf.matmul(a, b, output_type=tf.int32))(a, b)
    np.testing.assert_array_equal(got.numpy(), np.full((2, 3), 400000, np.int32))
    unsigned = np.full((40, 3), 200, np.uint8)
    got = mode(lambda a, b: tf.matmul(a, b, output_type="int32"))(-a, unsigned)
    np.testing.assert_array_equal(got.numpy(), np.full((2, 3), -800000, np.int32))
    half = tf.constant(np.full((1, 3), 1 + 2**-10), tf.float16)
    got = mode(lambda a: tf.matmul(a, a, transpose_b=True, output_type=tf.float32))(half)
    np.testing.assert_array_equal(got.numpy(), np.float32([[3 * (1 + 2**-10) ** 2]]))
    got = mode(lambda a: tf.matmul(a, a, transpose_b=True, output_type=tf.bfloat16))(tf.ones([1, 3]))
    assert got.dtype == tf.bfloat16


@BOTH
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_softmax_of_infinite_logits(mode, dtype):
    inf, nan = np.inf, np.nan
    for row, want in (([inf, 1, -inf], [nan, 0, 0]), ([inf, inf, 1], [nan, nan, 0]), ([-inf, -inf], [nan, nan]),
                      ([-inf, 1], [0, 1])):
        for n in (1, 40):
            x = np.array(row * 1 + [-inf] * (n - 1), dtype)
            got = mode(tf.nn.softmax)(tf.constant(x)).numpy()[:len(row)]
            np.testing.assert_array_equal(got, np.array(want, dtype))
