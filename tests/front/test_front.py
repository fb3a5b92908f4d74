"""The front door's smaller rooms: dtypes, nested structures, configuration, and questions about tensors."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

import twofold as tf

Pair = namedtuple("Pair", "left right")


def test_dtypes_by_any_name() -> None:
    for name in ("float32", np.float32, np.dtype("float32"), float, 1, tf.float32):
        assert tf.as_dtype(name) is tf.dtypes.as_dtype(name) is tf.float32
    assert tf.as_dtype("half") is tf.half is tf.float16
    assert tf.float32 == np.float32 and tf.float32 != "int32" and tf.float32 != None  # noqa: E711
    assert repr(tf.int8) == "tf.int8" and str(tf.int8) == "<dtype: 'int8'>"
    for bad in ("float33", object(), 99, None, "x::y, (1"):  # NumPy reads the last one as formats, and cannot
        assert tf.float32 != bad
        with pytest.raises(TypeError):
            tf.as_dtype(bad)


def test_dtype_limits() -> None:
    assert (tf.int8.min, tf.int8.max, tf.uint16.max) == (-128, 127, 65535)
    assert float(tf.float32.max) == float(np.finfo(np.float32).max)
    assert tf.bfloat16.size == 2 and tf.complex64.real_dtype is tf.float32
    with pytest.raises(TypeError):
        _ = tf.complex64.min


def test_nested_structures() -> None:
    tree = {"b": [1, (2, 3)], "a": Pair(4, None)}
    assert tf.nest.flatten(tree) == [4, None, 1, 2, 3]  # keys in order
    doubled = tf.nest.map_structure(lambda x: x and 2 * x, tree)
    assert doubled == {"b": [2, (4, 6)], "a": Pair(8, None)}
    assert type(doubled["a"]) is Pair
    assert tf.nest.pack_sequence_as(tree, [1, 2, 3, 4, 5]) == {"b": [3, (4, 5)], "a": Pair(1, 2)}
    assert tf.nest.is_nested([1]) and not tf.nest.is_nested(tf.constant([1])) and not tf.nest.is_nested("ab")
    assert tf.nest.map_structure(lambda x, y: x + y, [1, 2], [10, 20]) == [11, 22]


def test_structures_that_differ() -> None:
    tf.nest.assert_same_structure([1, (2,)], [3, (4,)])
    for other in ([1, 2], [1, (2, 3)], {"a": 1}, 1):
        with pytest.raises((ValueError, TypeError)):
            tf.nest.assert_same_structure([1, (2,)], other)
        with pytest.raises((ValueError, TypeError)):
            tf.nest.map_structure(lambda x, y: x, [1, (2,)], other)
    with pytest.raises(ValueError):
        tf.nest.pack_sequence_as([1, 2], [1])


def test_placement_of_missing_devices() -> None:
    assert tf.config.get_soft_device_placement() is True
    tf.config.set_soft_device_placement(False)
    try:
        assert tf.config.get_soft_device_placement() is False
    finally:
        tf.config.set_soft_device_placement(True)


def test_devices() -> None:
    assert tf.config.get_visible_devices() == tf.config.list_physical_devices()
    assert [d.name for d in tf.config.list_logical_devices()] == ["/device:CPU:0"]
    assert tf.test.gpu_device_name() == ""
    assert tf.test.is_built_with_cuda() is True


def test_questions_about_tensors() -> None:
    x, y = tf.ones([2, 3]), tf.zeros([4])
    assert tf.get_static_value(x).tolist() == [[1.0] * 3] * 2
    assert [s.numpy().tolist() for s in tf.shape_n([x, y])] == [[2, 3], [4]]
    assert not tf.is_tensor(np.ones(2)) and tf.is_tensor(x)
    assert tf.is_tensor(SimpleNamespace(is_tensor_like=True)) and not tf.is_tensor(SimpleNamespace())


@pytest.mark.parametrize("mode", [lambda fn: fn, tf.function], ids=["eager", "function"])
def test_where_chooses_strings(mode) -> None:
    chosen = mode(lambda *args: tf.where(*args))
    letters = np.array([["a", "b"], ["c", "d"]])
    cases = [([True, False], "?", letters), (True, letters, "x"), ([[True], [False]], ["p", "q"], letters)]
    for condition, x, y in cases:
        expected = np.where(condition, x, y).astype("S").tolist()
        assert chosen(tf.constant(condition), tf.constant(x), tf.constant(y)).numpy().tolist() == expected
