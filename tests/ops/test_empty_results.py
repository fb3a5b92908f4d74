"""Indices that are out of range where the result has no elements: one behaviour in all modes, which is TensorFlow's.

What each call does in TensorFlow 2.21, eagerly and in functions, was asked there and is noted with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twofold as tf

NONE = tf.zeros([0, 1], tf.int32)


def zeros(*shape: int) -> Any:
    return tf.zeros(shape)


def index(*numbers: Any) -> Any:
    return tf.constant(numbers, tf.int32)


# What is called, with which tensors, and the shape of the result; None for an error.
CASES: dict[str, tuple[Callable[..., Any], list[Any], tuple[int, ...] | None]] = {
    "gather: rows of nothing": (tf.gather, [zeros(3, 0), index(5)], (1, 0)),
    "gather: below": (tf.gather, [zeros(3, 0), index(-1)], (1, 0)),
    "gather: a scalar": (tf.gather, [zeros(3, 0), tf.constant(7)], (0,)),
    "gather: no rows": (tf.gather, [zeros(0, 2), index(0)], None),
    "gather: no rows of nothing": (tf.gather, [zeros(0, 0), index(0)], (1, 0)),
    "gather: columns of nothing": (lambda x, i: tf.gather(x, i, axis=1), [zeros(0, 3), index(5)], (0, 1)),
    "gather: no columns": (lambda x, i: tf.gather(x, i, axis=1), [zeros(2, 0), index([0, 1])], None),
    "gather: no batch": (lambda x, i: tf.gather(x, i, batch_dims=1), [zeros(0, 3), NONE], (0, 1)),
    "gather: batches of nothing": (lambda x, i: tf.gather(x, i, batch_dims=1), [zeros(2, 3, 0), index([9], [0])],
                                   (2, 1, 0)),
    "gather: no indices": (tf.gather, [zeros(0, 2), tf.zeros([0], tf.int32)], (0, 2)),
    "gather: texts": (tf.gather, [tf.zeros([3, 0], tf.string), index(5)], (1, 0)),
    "gather: no texts": (tf.gather, [tf.zeros([0], tf.string), index(0)], None),
    "embedding_lookup": (tf.nn.embedding_lookup, [zeros(3, 0), index(5)], (1, 0)),
    "gather_nd: rows of nothing": (tf.gather_nd, [zeros(3, 0), index([5])], None),
    "gather_nd: no rows": (tf.gather_nd, [zeros(0, 2), index([0])], None),
    "gather_nd: no elements": (tf.gather_nd, [zeros(0, 2), index([0, 0])], None),
    "gather_nd: batches": (lambda x, i: tf.gather_nd(x, i, batch_dims=1), [zeros(2, 3, 0), index([[9]], [[0]])], None),
    "gather_nd: no batch": (lambda x, i: tf.gather_nd(x, i, batch_dims=1),
                            [zeros(0, 3), tf.zeros([0, 1, 1], tf.int32)], (0, 1)),
    "scatter_nd: rows of nothing": (lambda u, i: tf.scatter_nd(i, u, [3, 0]), [zeros(1, 0), index([5])], None),
    "scatter_nd: no rows": (lambda u, i: tf.scatter_nd(i, u, [0, 2]), [zeros(1, 2), index([0])], None),
    "scatter_nd: no updates": (lambda u, i: tf.scatter_nd(i, u, [0, 2]), [zeros(0, 2), NONE], (0, 2)),
    **{f"{name}: rows of nothing": (lambda x, u, i, name=name: getattr(tf, name)(x, i, u),
                                    [zeros(3, 0), zeros(1, 0), index([5])], None)
       for name in ("tensor_scatter_nd_update", "tensor_scatter_nd_add", "tensor_scatter_nd_sub",
                    "tensor_scatter_nd_max", "tensor_scatter_nd_min")},
    "tensor_scatter_nd_update: no rows": (lambda x, u, i: tf.tensor_scatter_nd_update(x, i, u),
                                          [zeros(0, 2), zeros(1, 2), index([0])], None),
    "x[i] of rows of nothing": (lambda x, i: x[i], [zeros(3, 0), tf.constant(5)], None),
    "x[:, i] of no rows": (lambda x, i: x[:, i], [zeros(0, 3), tf.constant(5)], None),
    "x[:, i] within": (lambda x, i: x[:, i], [zeros(0, 3), tf.constant(-1)], (0,)),
    "x[5]": (lambda x: x[5], [zeros(3, 0)], None),
    "x[:, 5]": (lambda x: x[:, 5], [zeros(0, 3)], None),
    "x[5:5]": (lambda x: x[5:5], [zeros(3)], (0,)),
    "slice: begins behind": (lambda x, b: tf.slice(x, b, [0]), [zeros(3), index(5)], None),
    "slice: rows of nothing": (lambda x, b: tf.slice(x, b, [1, 0]), [zeros(3, 0), index(5, 0)], None),
    "slice: columns of no rows": (lambda x, b: tf.slice(x, b, [0, 5]), [zeros(0, 3), index(0, 2)], None),
    "segment_sum: ids that fall": (tf.math.segment_sum, [zeros(2, 0), index(1, 0)], None),
    "segment_sum: ids below 0": (tf.math.segment_sum, [zeros(2, 0), index(-1, 0)], None),
    "dynamic_partition": (lambda x, p: tf.dynamic_partition(x, p, 2)[0], [zeros(2, 0), index(5, 0)], None),
    "dynamic_stitch": (lambda i, x: tf.dynamic_stitch([i], [x]), [index(-1), zeros(1, 0)], None),
}
# What only running can tell is not looked at there (docs/limits.md).
UNSEEN = {"x[i] of rows of nothing", "x[:, i] of no rows"}


@pytest.mark.parametrize("name, mode", [(name, mode) for name in CASES for mode in ("eager", "known", "unknown")
                                        if mode != "unknown" or name not in UNSEEN])
def test_indices_into_nothing(name: str, mode: str) -> None:
    fn, given, shape = CASES[name]
    if mode == "unknown":
        specs = [tf.TensorSpec([None] * x.shape.rank, x.dtype) for x in given]
        fn = tf.function(lambda *args, fn=fn: fn(*args), input_signature=specs)
    elif mode == "known":
        fn = tf.function(lambda *args, fn=fn: fn(*args))
    if shape is None:
        with pytest.raises((tf.errors.InvalidArgumentError, IndexError)):
            fn(*given)
        return
    assert tuple(fn(*given).shape) == shape


def test_items_of_an_array_in_a_loop() -> None:
    """A native loop, in which items are read where they lie."""
    @tf.function
    def total(x: Any, count: Any) -> Any:
        result = tf.zeros(x.shape[1:])
        for i in tf.range(count):
            result += tf.gather(x, i)
        return result
    assert tuple(total(zeros(3, 0), tf.constant(7)).shape) == (0,)
    with pytest.raises(tf.errors.InvalidArgumentError):
        total(zeros(3, 2), tf.constant(7))


def test_gradients_of_gathers_of_nothing() -> None:
    for wrapped in (lambda f: f, tf.function):
        x = zeros(3, 0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = wrapped(lambda x: tf.gather(x, index(5)))(x)
        assert tuple(tape.gradient(y, x).shape) == (3, 0)


def test_rows_of_variables_of_nothing() -> None:
    from types import SimpleNamespace
    variable = tf.Variable(zeros(3, 0))
    for method in (variable.scatter_update, variable.scatter_add, variable.scatter_div):
        with pytest.raises(tf.errors.InvalidArgumentError):
            method(SimpleNamespace(indices=index(5), values=zeros(1, 0)))
