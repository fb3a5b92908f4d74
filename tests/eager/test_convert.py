"""How Python and NumPy values become tensors, and which dtype they take."""

from __future__ import annotations

import collections
import warnings
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.ir import ops
from twofold.runtime import memory


@pytest.mark.parametrize(("value", "dtype"), [
    (1, "int32"), (-(2**31), "int32"), (2**31, "int64"), (-(2**40), "int64"), (1.0, "float32"), (1e300, "float32"),
    (True, "bool"), (1j, "complex128"), ("a", "string"), (b"a", "string"),
    ([1, 2], "int32"), ([1, 2**40], "int64"), ([1, 2.0], "float32"), ([True, False], "bool"),
    ([], "float32"), ([[], []], "float32"), ((1, 2), "int32"), (range(3), "int32"), ([[1], [2]], "int32"),
    (np.array(1), "int64"), (np.array(2.0), "float64"), (np.array(2.0, np.float32), "float32"),
    (np.float16(1), "float16"), (np.int8(1), "int8"),
    (np.uint64(1), "uint64"), (np.bool_(True), "bool"), (np.array(["a"]), "string"),
    (np.complex64(1), "complex64"), (np.array([], np.int16), "int16"), ([np.float64(1.0)], "float64"),
    ([np.array([1.0]), np.array([2.0])], "float64"), (np.array([1, 2], ">i4"), "int32"),
])
def test_dtype_alone(value: Any, dtype: str) -> None:
    x = tf.constant(value)
    assert x.dtype.name == dtype
    assert x.shape == np.shape(value)


LEAVES = {"int": 1, "long": 2**40, "float": 2.0, "bool": True, "complex": 1j, "text": "a", "bytes": b"\xff"}
LEAVES |= {name: getattr(np, name)(1) for name in ("int8", "uint8", "int16", "int32", "int64", "uint32", "uint64",
                                                   "float16", "float32", "float64", "complex64", "complex128")}
LEAVES |= {f"0-d {name}": np.array(1, name) for name in ("int64", "uint8", "float32", "float64")}

# What TensorFlow 2.21 gives for lists of two values: the dtype by the kind of the first, for each kind of the second.
SECONDS = ("whole", "long", "float", "bool", "complex", "text")
LISTS = {
    "whole": ("int32", "int64", "float32", "int32", None, None),
    "long": ("int64", "int64", "float32", "int64", None, None),
    "float": ("float32",) * 4 + (None, None), "bool": (None, None, None, "bool", None, None),
    "complex": ("complex128",) * 5 + (None,), "text": (None,) * 5 + ("string",),
    **{name: (name,) * 4 + (None, None) for name in ("float16", "float32", "float64")}}


def _kind_of(name: str) -> str:
    name = name.removeprefix("0-d ")
    return {"int": "whole", "bytes": "text"}.get(name) or (
        "whole" if "int" in name else "complex" if "complex" in name else name)


@pytest.mark.parametrize("first", LEAVES)
def test_the_first_of_a_list_decides(first: str) -> None:
    for second, value in LEAVES.items():
        dtypes = LISTS[_kind_of(first)]
        kind = _kind_of(second)
        expected = dtypes[SECONDS.index("float" if kind.startswith("float") else kind)]
        for given in ([LEAVES[first], value], (LEAVES[first], value), [[LEAVES[first]], [value]]):
            if expected is None:
                with pytest.raises(ValueError, match="mixed types|unsupported element type"):
                    tf.constant(given)
                continue
            x = tf.constant(given)
            assert x.dtype.name == expected, second
            if expected != "string":
                with np.errstate(over="ignore"):
                    array = np.reshape([LEAVES[first], value], np.shape(given)).astype(expected)
                np.testing.assert_array_equal(x, array)


# Which dtypes TensorFlow 2.21 makes of a list, by the kind of what it holds; Python's bools become numbers of more
# dtypes here, and bfloat16 scalars stand in lists.
WHOLE, FLOATS, COMPLEX = (("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
                          ("float16", "bfloat16", "float32", "float64"), ("complex64", "complex128"))
TAKEN = {"iu": (*WHOLE, *FLOATS, *COMPLEX), "fV": (*FLOATS, *COMPLEX), "c": COMPLEX, "US": ("string",),
         "?": ("bool", *WHOLE, *FLOATS, *COMPLEX), "b": ("bool",)}  # by NumPy's letters of kinds; ? is Python's bool
SCALARS = LEAVES | {name: getattr(np, name)(1) for name in ("bool_", "int16", "uint16", "str_", "bytes_")} | {
    "bfloat16": tf.bfloat16.as_numpy_dtype(1)}
SCALARS |= {f"0-d {name}": np.array(value) for name, value in SCALARS.items() if not name.startswith("0-d")}


@pytest.mark.parametrize("name", SCALARS)
def test_which_dtypes_lists_become(name: str) -> None:
    value = SCALARS[name]
    array = np.array([value])
    kind = "?" if name == "bool" else next(k for k in TAKEN if array.dtype.kind in k)
    lists = [[value], (value, value), [[value]], [(value,), [value]]]
    for dtype in ("bool", *WHOLE, *FLOATS, *COMPLEX, "string"):
        for given in lists if name == "bool" else [*lists, [array]]:
            if dtype in TAKEN[kind] and not ("long" in name and dtype in WHOLE and dtype[-2:] != "64"):
                assert tf.constant(given, dtype).dtype == dtype, given
            else:
                with pytest.raises((TypeError, ValueError), match="Cannot convert|Failed to convert|Can't convert"):
                    tf.constant(given, dtype)


def test_numpy_bools_stand_among_bools_only() -> None:
    assert tf.constant([True, np.False_, np.array(True)]).numpy().tolist() == [True, False, True]
    for other in (1, 1.0, 1j, np.int8(1), np.float32(1.0)):
        for given in ([other, np.True_], [np.True_, other], [[other], np.array([True])], (other, np.array(True))):
            for dtype in (None, "int32", "float32", "complex128"):
                with pytest.raises(ValueError, match="mixed types"):
                    tf.constant(given, dtype)
    with pytest.raises(TypeError, match="dtypes differ: float32 and bool"):
        tf.concat([tf.ones([2]), [np.True_]], 0)


def test_ranges_in_lists() -> None:
    assert tf.constant([range(3), [0.5, 1.5, 2.5]]).dtype is tf.float32  # the first number is an integer
    for given, want in (([range(2), range(2, 4)], [[0, 1], [2, 3]]), ([[1, 2], range(2)], [[1, 2], [0, 1]]),
                        ([(range(2), [5, 6])], [[[0, 1], [5, 6]]]), (([range(0)],), [[[]]])):
        assert tf.constant(given).numpy().tolist() == want
        assert tf.convert_to_tensor(given, tf.float64).numpy().tolist() == want
    pair = collections.namedtuple("pair", "a b")
    assert tf.constant(pair(range(2), pair(3, 4))).numpy().tolist() == [[0, 1], [3, 4]]
    for given in ([range(2**45)], [[1], range(2**45)], pair(range(2**45), 1), [[[range(2**45)]]]):
        with pytest.raises(tf.errors.ResourceExhaustedError, match="memory"):
            tf.constant(given)


@pytest.mark.parametrize(("value", "dtype"), [  # what TensorFlow 2.21 gives
    ([np.ones(2, np.float32), [1.0, 2.0]], "float32"), ([[1.0, 2.0], np.ones(2)], "float32"),
    ([np.arange(2), [1, 2]], "int32"), ([np.ones(2, np.float32), np.ones(2)], "float32"),
    ([np.ones(2), np.ones(2, np.float32)], "float64"), ([[1, 2], np.ones(2)], "float32"),
    ([np.arange(2), [1.5, 2.0]], "float32"), ([1, 2.0, np.float64(3)], "float32"), ([np.zeros(0)] * 2, "float32"),
    ([np.float16(1), 1, 2.0], "float16"), ([np.uint64(3), 1], "int32"), ([np.uint64(2**40), -1], "int64"),
    ([[[np.float32(1), 2.0]], [[3.0, 4]]], "float32"), ([np.int8(1), True, 2**40], "int64"),
])
def test_lists_of_arrays_and_numbers(value: Any, dtype: str) -> None:
    x = tf.constant(value)
    assert x.dtype.name == dtype
    np.testing.assert_array_equal(x, np.array(value).astype(dtype))


def test_integers_of_all_sizes_in_a_list_take_a_dtype() -> None:
    for dtype in ("int32", "int64", "uint8"):
        assert tf.constant([np.uint64(3), 1, np.int8(2)], dtype).numpy().tolist() == [3, 1, 2]


def test_a_float_too_large_for_float32_is_infinite() -> None:
    assert np.isinf(tf.constant(1e300).numpy())


@pytest.mark.parametrize(("value", "dtype"), [
    (1, tf.float32), (1, tf.float64), (1, tf.int8), (1.5, tf.float64), (1.5, tf.float16), (1.5, tf.bfloat16),
    (1, tf.complex64), (1.5, tf.complex128), ([1, 2], tf.float32),
    ([], tf.int32), (np.arange(3), tf.int32), (np.ones(2), tf.float32),
    (True, tf.bool), ("a", tf.string), (np.arange(3, dtype=np.uint8), tf.int64), (2**63, tf.uint64),
])
def test_dtype_asked_for(value: Any, dtype: tf.DType) -> None:
    for x in (tf.constant(value, dtype), tf.constant(value, dtype=dtype.name), tf.convert_to_tensor(value, dtype)):
        assert x.dtype is dtype
        if dtype.is_differentiable or dtype.is_integer:
            np.testing.assert_array_equal(x.numpy(), np.asarray(value).astype(dtype.np))


@pytest.mark.parametrize(("value", "dtype"), [
    (1.5, tf.int32), ([1.0], tf.int64), (1j, tf.float32), ("a", tf.int32), (1, tf.string),
    (1, tf.bool), ([np.float64(1)], tf.int32),
])
def test_dtype_that_would_lose_more_than_precision(value: Any, dtype: tf.DType) -> None:
    with pytest.raises(TypeError, match=dtype.name):
        tf.constant(value, dtype)


@pytest.mark.parametrize(("value", "dtype"), [(300, tf.uint8), (-1, tf.uint8), (-129, tf.int8), ([1, 2**31], tf.int32)])
def test_integers_that_do_not_fit(value: Any, dtype: tf.DType) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=dtype.name):
        tf.constant(value, dtype)


@pytest.mark.parametrize("value", [None, [1, None], [[1], None], [[1, 2], [3]], [1, [2]], {"a": 1}, {1, 2},
                                   [object], 2**70, ["a", 1]], ids=repr)
def test_values_that_are_no_tensors(value: Any) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        tf.constant(value)


def test_constant_with_a_shape() -> None:
    assert tf.constant(-1.0, shape=[2, 3]).numpy().tolist() == [[-1.0] * 3] * 2
    assert tf.constant([1, 2, 3, 4], shape=(2, 2)).numpy().tolist() == [[1, 2], [3, 4]]
    assert tf.constant(5, tf.int64, ()).shape == ()
    for shape in ([3], [2, 3]):
        with pytest.raises((TypeError, ValueError)):
            tf.constant([1, 2], shape=shape)


def test_a_tensor_keeps_its_dtype() -> None:
    x = tf.constant(1.0)
    assert tf.convert_to_tensor(x) is x
    with pytest.raises(ValueError, match=r"float64 for Tensor with dtype float32(.|\n)*tf\.cast"):
        tf.convert_to_tensor(x, tf.float64)


def test_dtype_hint() -> None:
    assert tf.convert_to_tensor(1, dtype_hint=tf.float64).dtype is tf.float64
    assert tf.convert_to_tensor(1.5, dtype_hint=tf.int32).dtype is tf.float32
    assert tf.convert_to_tensor(np.int64(1), dtype_hint=tf.int32).dtype is tf.int32


def test_arrays_are_copied() -> None:
    a = np.arange(3.0)
    x, y = tf.constant(a), tf.convert_to_tensor(a)
    z = x + a
    a[0] = 9
    assert x.numpy()[0] == y.numpy()[0] == z.numpy()[0] == 0


def test_lists_of_tensors_are_stacked() -> None:
    a, b, v = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]), tf.Variable([5.0, 6.0])
    assert tf.convert_to_tensor([a, b, v]).numpy().tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert tf.convert_to_tensor([tf.constant(1.0), 2]).numpy().tolist() == [1.0, 2.0]
    assert tf.convert_to_tensor([[tf.constant(1.0), 2.0], [3.0, 4.0]]).numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = tf.convert_to_tensor([a, b]) * [[1.0, 2.0], [3.0, 4.0]]
    assert tape.gradient(y, a).numpy().tolist() == [1.0, 2.0]


def test_shapes_are_values() -> None:
    assert tf.convert_to_tensor(tf.constant([[1, 2]]).shape).numpy().tolist() == [1, 2]


# -- beside a tensor --------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.int64, tf.uint8,
                                   tf.complex64], ids=lambda d: d.name)
def test_numbers_take_the_tensors_dtype(dtype: tf.DType) -> None:
    x = tf.constant([1, 2], dtype)
    for y in (x + 1, 1 + x, x * [1, 2], x + np.array([1, 2]), np.int64(1) * x):
        assert y.dtype is dtype
    if not dtype.is_integer:
        assert (x * 0.5).dtype is (x + np.array([1.0, 2.0])).dtype is dtype


def test_adoption_reaches_every_operand() -> None:
    cond, x = tf.constant([True, False]), tf.constant([1.0, 2.0], tf.float64)
    assert ops.where(cond, 0, x).dtype is tf.float64
    assert ops.where(cond, x, 0).dtype is tf.float64
    assert ops.where([True, False], 0, x).dtype is tf.float64
    assert ops.concat(x, [3.0], axis=0).dtype is tf.float64
    assert ops.matmul(ops.expand_dims(x, axis=0), [[1.0], [2.0]]).dtype is tf.float64


def test_without_a_tensor_the_widest_kind_wins() -> None:
    assert ops.add(1, 2).dtype is tf.int32
    assert ops.add(1, 2.5).dtype is tf.float32
    assert ops.add(2.5, 1).dtype is tf.float32
    assert ops.add(np.array(1), np.array(1)).dtype is tf.int64
    assert ops.add(np.float64(1), 1).dtype is tf.float64
    assert ops.add(1, np.float64(1)).dtype is tf.float64
    assert ops.matmul([[1, 2]], [[3], [4]]).dtype is tf.int32


def test_floats_do_not_become_integers() -> None:
    for bad in (1.5, [1.5, 2.5], np.array([1.5, 2.5])):
        with pytest.raises(TypeError, match="add"):
            tf.constant([1, 2]) + bad


def test_numbers_that_do_not_fit_beside_a_tensor() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="uint8"):
        tf.constant([1], tf.uint8) + 300


def test_zero_keeps_its_sign() -> None:
    x = tf.constant([-0.0])
    assert np.signbit((x + 0.0).numpy()) == [False]
    assert np.signbit((x + -0.0).numpy()) == [True]
    assert np.signbit((x * 1).numpy()) == [True]


def test_bool_and_int_scalars_are_not_mixed_up() -> None:
    """`True == 1` and `1.0 == 1` in Python; remembered scalars must not be."""
    assert ops.equal(True, True).dtype is tf.bool
    assert ops.add(1, 1).dtype is tf.int32
    assert ops.add(1.0, 1.0).dtype is tf.float32
    assert ops.logical_and(True, tf.constant([True])).numpy().tolist() == [True]
    assert (tf.constant([2]) + True).dtype is tf.int32
    assert (tf.constant([2.0]) + True).dtype is tf.float32
    assert (tf.constant([2]) + 1).dtype is tf.int32


def test_subclasses_of_arrays() -> None:
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    assert tf.constant(np.asarray(masked)).shape == (2,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        assert tf.constant(np.matrix([[1.0, 2.0]])).shape == (1, 2)


@pytest.mark.parametrize("compiled", [False, True])
def test_tensors_in_lists_become_the_dtype_that_is_asked_for(compiled: bool) -> None:
    """As TensorFlow 2.21 packs them: cast to the dtype, and to a hint or an operand's where only precision is lost."""
    def packed(whole: tf.Tensor, real: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.convert_to_tensor([whole, real, 3], tf.int64),
                tf.convert_to_tensor([[whole, 2], [real, 4]], tf.int8),
                tf.convert_to_tensor([whole, 2], dtype_hint=tf.int64), tf.constant([1.5, 2.5]) + [whole, 1],
                tf.SparseTensor([[0, whole]], [1.0], (whole, 4)).dense_shape)
    made = (tf.function(packed, fallback=False) if compiled else packed)(tf.constant(2), tf.constant(2.75))
    for tensor, dtype, values in zip(made, ("int64", "int8", "int64", "float32", "int64"), (
            [2, 2, 3], [[2, 2], [2, 4]], [2, 2], [3.5, 3.5], [2, 4]), strict=True):
        assert tensor.dtype == dtype and tensor.numpy().tolist() == values


def test_tensors_in_lists_that_would_lose_more_stay() -> None:
    whole, real = tf.constant(2), tf.constant(2.5)
    for pack in (lambda: tf.constant([1, 2]) + [real, real], lambda: tf.convert_to_tensor([whole, real]),
                 lambda: tf.constant([1, 2]) + [tf.constant(2, tf.int64), 1]):
        with pytest.raises(TypeError, match="dtypes differ"):
            pack()
    with pytest.raises(TypeError, match="Cannot convert float 2.5"):
        tf.convert_to_tensor([whole, 2.5], tf.int32)


def test_anything_with_array_converts() -> None:
    class Readable:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return np.array([1.0, 2.0], np.float32 if dtype is None else dtype)
    assert tf.constant(Readable()).dtype is tf.float32
    assert (tf.constant([1.0, 1.0]) + Readable()).numpy().tolist() == [2.0, 3.0]


def test_layouts_of_arrays() -> None:
    a = np.arange(24).reshape(2, 3, 4)
    for view in (a.T, a[::-1, :, ::2], np.broadcast_to(a[:1], a.shape), np.asfortranarray(a), a[:, :0]):
        np.testing.assert_array_equal(tf.constant(view), view)


LARGE = np.arange(512 * 300, dtype=np.float32).reshape(512, 300)


@pytest.mark.parametrize("array", [
    LARGE, LARGE.T, LARGE[::-1, ::2], LARGE.astype(">f4"), LARGE.astype(np.float64), np.asfortranarray(LARGE),
    np.frombuffer(bytes(1) + LARGE.tobytes(), np.uint8)[1:].view(np.float32), LARGE.view(np.matrix),
    np.ma.masked_array(LARGE, LARGE > 7)], ids=range(9))
def test_large_arrays_are_copied_to_whole_cache_lines(array: np.ndarray) -> None:
    values = np.asarray(array).copy()
    tensor = tf.constant(array)
    held = tensor.numpy()
    assert tensor.dtype.name == values.dtype.name and tensor.shape == values.shape
    assert not np.shares_memory(held, array)
    np.testing.assert_array_equal(held, values)
    assert values.nbytes < memory.POOLED_FROM or tensor._array.ctypes.data % memory.ALIGNMENT == 0
