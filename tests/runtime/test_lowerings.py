"""Structured ops inside of programs: each gives the bits, and the errors, of eager execution."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compiled import assert_same_bits, compiled, left_to_python
from quick.start import python

import twofold as tf
from twofold.ir import ops
from twofold.runtime import threads

RNG = np.random.default_rng
FLOATS = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
I = np.array  # noqa: E741 - indices


def draw(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray:
    """Numbers of `dtype`, small enough for products of integers."""
    values = RNG(seed).standard_normal(shape) * 3
    if np.dtype(dtype) == np.bool_:
        return values > 0
    if np.dtype(dtype).kind in "iu":
        return np.abs(values * 5).astype(dtype)
    if np.dtype(dtype).kind == "c":
        return (values + 1j * RNG(seed + 99).standard_normal(shape)).astype(dtype)
    return values.astype(dtype)


def gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with the gradients of the sum of its squares."""
    def run(*xs: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(xs)
            out = f(*xs)
            loss = tf.reduce_sum(out * out)
        return (out, *tape.gradient(loss, xs))
    return run


WINDOW = {"ksize": (3, 2), "strides": (2, 1), "dilations": (1, 1)}
CONV = {"strides": (2, 1), "dilations": (1, 2)}


def case(fn: Callable[..., Any], *shapes: tuple[int, ...], rest: tuple[np.ndarray, ...] = (), dtypes: Any = FLOATS,
         known: bool = False, steady: tuple[int, ...] = ()) -> Any:
    """A function of operands of `shapes` and of the arrays `rest`.

    Args:
        known: whether it needs all sizes known. steady: operands, by number, that need theirs.
    """
    return fn, shapes, rest, dtypes, known, steady


REAL = (*FLOATS, np.int8, np.uint32, np.int64)
EVERY = (*REAL, np.bool_, np.complex64, np.complex128)
CASES = {
    "softmax": case(lambda x: tf.nn.softmax(x), (5, 70)),
    "softmax of an outer axis": case(lambda x: tf.nn.softmax(x * 2, axis=1) + 1, (3, 40, 2)),
    "softmax of rank 1": case(lambda x: tf.nn.softmax(x), (33,)),
    "softmax of nothing": case(lambda x: tf.nn.softmax(x), (0, 4)),
    "softmax of empty rows": case(lambda x: tf.nn.softmax(x), (4, 0)),
    "log_softmax": case(gradient(lambda x: tf.nn.log_softmax(x, axis=0)), (5, 7)),
    "cross entropy": case(gradient(lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(I([0, 3, 1]), x)), (3, 40)),
    "gather": case(lambda x, i: tf.gather(x + x, i), (5, 4), rest=(I([[1, 0], [4, 4]], np.uint8),),
                   dtypes=(*FLOATS, np.int8, np.complex128)),
    "gather of an inner axis": case(lambda x, i: tf.gather(x, i, axis=1), (5, 4, 3), rest=(I([3, 0, 0], np.int32),),
                                    dtypes=EVERY),
    "gather of elements": case(lambda x, i: tf.gather(x, i), (9,), rest=(I([3, 0, 8]),), dtypes=EVERY),
    "gather with batches": case(lambda x, i: tf.gather(x, i, axis=2, batch_dims=1), (2, 3, 4, 2),
                                rest=(I([[3, 0], [1, 1]]),)),
    "gather of nothing": case(lambda x, i: tf.gather(x, i), (5, 4), rest=(np.zeros((0,), np.int32),)),
    "gradient of gather": case(gradient(lambda x: tf.gather(x, I([[1, 0], [4, 1]]))), (5, 4)),
    "gather_nd": case(lambda x, i: tf.gather_nd(x, i), (5, 4, 2), rest=(I([[1, 0], [4, 3]], np.int16),),
                      dtypes=EVERY, steady=(1,)),
    "gather_nd with batches": case(lambda x, i: tf.gather_nd(x, i, batch_dims=1), (2, 4, 3), rest=(I([[[1]], [[3]]]),),
                                   steady=(1,)),
    "gather_nd of the whole": case(lambda x, i: tf.gather_nd(x, i), (2, 3), rest=(np.zeros((2, 0), np.int32),),
                                   steady=(1,)),
    "scatter_nd": case(lambda u, i: tf.scatter_nd(i, u, [7, 4]) + tf.scatter_nd(i, u, [7, 4]), (3, 4),
                       rest=(I([[1], [1], [3]]),), dtypes=(*REAL, np.complex64), known=True),
    "tensor_scatter_nd_add": case(tf.tensor_scatter_nd_add, (5, 4), rest=(I([[1, 0], [1, 0], [4, 3]]), None),
                                  dtypes=(*REAL, np.complex64), steady=(1,)),
    "tensor_scatter_nd_update": case(lambda x, i, u: tf.tensor_scatter_nd_update(x, i, u), (5, 4),
                                     rest=(I([[1, 0], [1, 0], [4, 3]], np.int32), None), dtypes=EVERY, steady=(1,)),
    "tensor_scatter_nd_max": case(tf.tensor_scatter_nd_max, (5, 4), rest=(I([[1, 0], [1, 0], [4, 3]]), None),
                                  dtypes=REAL, steady=(1,)),
    "concat": case(lambda x, y: tf.concat([x, y[:, ::-1], x + x], 1), (3, 4), (3, 7), dtypes=REAL),
    "concat of one axis": case(lambda x, y: tf.concat([x, y], 0), (3,), (0,), dtypes=EVERY),
    "concat of numbers": case(lambda x: tf.stack([x[0, 0], x[1, 1] * x[0, 1], x[0, 0]]), (2, 2)),
    "stack": case(lambda x, y: tf.stack([x, y, x], 1) + 1, (3, 4), (3, 4)),
    "pad": case(lambda x: tf.pad(x, [[1, 2], [0, 3]], constant_values=2) + tf.pad(x * x, [[0, 3], [2, 1]]), (3, 4),
                dtypes=REAL),
    "gradient of a slice": case(gradient(lambda x: x[1:3, ::-2]), (5, 4)),
    "assignment to a slice": case(lambda x, v: ops.strided_slice_assign(x + x, v, spec=((1, None, 2), (None, None, -1)))
                                  + x, (5, 4), (2, 4), dtypes=REAL),
    "assignment twice": case(lambda x: ops.strided_slice_assign(ops.strided_slice_assign(x, x[:1] * 2, spec=(
        (0, 2, 1),)), x[2], spec=(1,)), (5, 4)),
    "cumsum": case(lambda x: tf.cumsum(x, axis=0, reverse=True) + tf.cumsum(x, axis=1, exclusive=True), (5, 70),
                   dtypes=(*REAL, np.complex64)),
    "cumprod": case(gradient(lambda x: tf.math.cumprod(x, axis=1)), (3, 4, 2)),
    "cumulative_logsumexp": case(lambda x: tf.math.cumulative_logsumexp(x, axis=-1), (5, 4)),
    "segment sum": case(lambda x, i: tf.math.unsorted_segment_sum(x, i, 4), (5, 4), rest=(I([1, -1, 0, 2, 2]),),
                        dtypes=(*REAL, np.complex64)),
    "segment max": case(gradient(lambda x: tf.math.unsorted_segment_max(x, I([1, 1, 0, 2, 2]), 3)), (5, 4)),
    "segment mean": case(lambda x: tf.math.unsorted_segment_mean(x, I([[1, 1], [0, 2], [2, 1]]), 3), (3, 2, 300)),
    "max_pool": case(gradient(lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME")), (2, 7, 8, 19), steady=(0,)),
    "max_pool of known channels": case(lambda x: tf.nn.max_pool2d(x, (3, 2), (2, 1), "VALID"), (2, 7, 8, 3),
                                       dtypes=REAL[:4]),
    "avg_pool": case(gradient(lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME")), (2, 7, 8, 3)),
    "argmax of windows": case(lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "SAME")[1], (2, 7, 8, 3)),
    "convolution": case(gradient(lambda x, w: tf.nn.conv2d(x, w, 2, "SAME")), (2, 7, 8, 4), (3, 3, 4, 6), known=True),
    "convolution in one axis": case(gradient(lambda x, w: tf.nn.conv1d(x, w, 1, "VALID")), (2, 9, 4), (3, 4, 5),
                                    known=True),
    "convolution of pixels": case(gradient(lambda x, w: tf.nn.conv2d(x, w, 1, "VALID")), (2, 3, 4, 4), (1, 1, 4, 6),
                                  known=True),
    "convolution in groups": case(gradient(lambda x, w: tf.nn.conv2d(x, w, 1, "SAME")), (2, 5, 4, 4), (3, 3, 2, 6),
                                  known=True),
    "convolution to one channel": case(gradient(lambda x, w: tf.nn.conv2d(x, w, 1, "SAME")), (3, 5, 4, 2), (3, 3, 2, 1),
                                       known=True),
    "convolution to one place": case(gradient(lambda x, w: tf.nn.conv2d(x, w, 1, "VALID")), (3, 3, 2, 2), (3, 2, 2, 5),
                                     known=True),
    "depthwise convolution": case(gradient(lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 2, 2, 1], "SAME")),
                                  (2, 5, 4, 3), (3, 3, 3, 2), known=True),
    "matmul": case(gradient(lambda x, y: tf.matmul(x, y, transpose_a=True)), (2, 7, 5), (2, 7, 6)),
    "matmul of other numbers": case(lambda x, y: tf.matmul(x, y, adjoint_b=True), (3, 7, 5), (6, 5),
                                    dtypes=(np.int8, np.uint32, np.int64, np.complex64, np.complex128)),
    "matmul of empty": case(lambda x, y: tf.matmul(x, y) + 1, (3, 0), (0, 4), dtypes=(*FLOATS, np.int32)),
    "range": case(lambda x: ops.range_(tf.constant(2.0), tf.constant(0.0), tf.constant(0.5), size=x.shape[0] or 5),
                  (5,), dtypes=FLOATS[:1], known=True),
    "shape": case(lambda x: (tf.shape(x), tf.size(x * 2), tf.shape(x)[1] * 2, tf.stack([tf.shape(x)[0], 7])), (5, 4)),
}
PARAMS = [pytest.param(name, dtype, id=f"{name}-{np.dtype(dtype).name}") for name, c in CASES.items() for dtype in c[3]]


def operands(name: str, dtype: Any) -> list[np.ndarray]:
    _, shapes, rest, *_ = CASES[name]
    arrays = [draw(shape, dtype, n) for n, shape in enumerate(shapes)]
    return [*arrays, *[draw((3,), dtype, 50) if r is None else r for r in rest]]


@pytest.mark.parametrize(("name", "dtype"), PARAMS)
def test_known_sizes(name: str, dtype: Any) -> None:
    assert_same_bits(CASES[name][0], operands(name, dtype))


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if not c[4]])
def test_unknown_sizes(name: str) -> None:
    """One program serves operands of several sizes."""
    fn, _, _, dtypes, _, steady = CASES[name]
    arrays = operands(name, dtypes[0])
    shapes = [[*[None] * (a.ndim - 1), a.shape[-1]] if n in steady else [None] * a.ndim for n, a in enumerate(arrays)]
    assert_same_bits(fn, arrays, shapes)


VIEWS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[Any], Any]]] = {
    "reversed": (lambda a: a[::-1].copy() if a.ndim else a, lambda t: t[::-1] if len(t.shape) else t),
    "transposed": (lambda a: a.T.copy(), tf.transpose),
    "every other": (lambda a: np.repeat(a, 2, 0) if a.ndim else a, lambda t: t[1::2] if len(t.shape) else t),
    "inside": (lambda a: np.pad(a, [(2, 1)] * a.ndim), lambda t: t[(slice(2, -1),) * len(t.shape)]),
}


@pytest.mark.parametrize("view", ["reversed", "transposed", "every other", "inside"])
@pytest.mark.parametrize("name", list(CASES))
def test_operands_that_are_views(name: str, view: str) -> None:
    fn, _, _, dtypes, *_ = CASES[name]
    before, after = VIEWS[view]
    assert_same_bits(lambda *xs: fn(*map(after, xs)), [before(a) for a in operands(name, dtypes[0])])


def test_operands_that_repeat_themselves() -> None:
    x = draw((1, 40), np.float32, 0)
    assert_same_bits(lambda x: (tf.nn.softmax(tf.broadcast_to(x, (5, 40))), tf.cumsum(tf.broadcast_to(x, (5, 40))),
                                tf.gather(tf.broadcast_to(x, (5, 40)), [4, 0])), [x])


def test_operands_that_are_constants() -> None:
    x = draw((4, 3), np.float32, 0)
    table = tf.constant(draw((6, 3), np.float32, 1))
    assert_same_bits(lambda x: (tf.gather(table, [5, 0, 0, 2]) + x, tf.concat([table, x], 0),
                                tf.matmul(x, tf.constant([[2.0]] * 3)), tf.pad(x, [[1, 0], [0, 0]])), [x])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_threads(count: int) -> None:
    x, i = draw((300, 1000), np.float32, 0), RNG(0).integers(0, 300, 5000)
    before = threads.get_num_threads()
    threads.set_num_threads(count)
    try:
        assert_same_bits(lambda x, i: (tf.nn.softmax(x), tf.cumsum(x, axis=0), tf.gather(x, i),
                                       tf.concat([x, x * 2], 1), tf.math.unsorted_segment_sum(x, i[:300], 300),
                                       tf.reduce_logsumexp(x),
                                       tf.tensor_scatter_nd_add(x, i[:, None], tf.gather(x, i))), [x, i])
    finally:
        threads.set_num_threads(before)


def test_draws_follow_their_state() -> None:
    def draws(state: Any) -> Any:
        one, ten = tf.constant(1.0), tf.constant([1.0, 20.0, 3.0])
        return (ops.random_uniform(state, shape=(3, 5)), ops.random_normal(state, shape=(4, 4), dtype=tf.float64),
                ops.random_bits(state, shape=(7,)), ops.random_truncated_normal(state, shape=()),
                ops.random_integers(state, tf.constant(-3), tf.constant(9), shape=(50,)),
                ops.random_gamma(state, one, shape=(6,)), ops.random_poisson(state, ten, shape=(4, 3)),
                ops.random_binomial(state, ten, tf.constant(0.5), shape=(2, 3), dtype=tf.int32))
    assert_same_bits(draws, [np.array([5, 0, 77])])


def test_a_carried_tensor_is_changed_where_it_lies() -> None:
    """What was read before keeps its value, and nothing else is overwritten."""
    def f(x: Any) -> Any:
        held = x * 2
        changed = ops.strided_slice_assign(held, tf.constant(0.0), spec=(1,))
        again = ops.strided_slice_assign(changed, held[0], spec=(2,))
        return held + 1, again, ops.scatter_add(again, tf.constant([0, 0]), x[:2])
    assert_same_bits(f, [draw((4, 3), np.float32, 0)])
    assert_same_bits(lambda x: ops.strided_slice_assign(x * 2, x[0], spec=(1,)), [draw((4, 3), np.float32, 0)])


def test_two_changes_of_one_tensor() -> None:
    """Only one of them may have its memory."""
    def f(x: Any) -> Any:
        held = x * 2
        return (ops.scatter_add(held, tf.constant([0, 0]), x[:2]), ops.scatter_add(held, tf.constant([1]), x[3:]),
                ops.strided_slice_assign(held, x[0], spec=(1,)))
    assert_same_bits(f, [draw((4, 3), np.float32, 0)])


def test_a_tensor_that_a_loop_changes() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, table: Any, total: Any) -> Any:
            row = table[0] * tf.cast(i, x.dtype)
            return i + 1, tf.tensor_scatter_nd_update(table, [[i]], [row]), total + table[1]
        return tf.while_loop(lambda i, *rest: i < 4, body, (tf.constant(0), x + 1, tf.zeros_like(x[0])))
    assert_same_bits(f, [draw((4, 3), np.float32, 0)])


def test_convolution_of_any_number_of_images() -> None:
    x, w = draw((3, 6, 5, 4), np.float32, 0), draw((3, 3, 4, 6), np.float32, 1)

    def f(x: Any, w: Any) -> Any:
        out = tf.nn.conv2d(x, w, 2, "SAME")
        return out, ops.conv_input_grad(out, w, input_shape=tuple(x.dims[1:]), strides=(2, 2), padding="SAME",
                                        dilations=(1, 1))
    assert_same_bits(f, [x, w], [[None, 6, 5, 4], w.shape])
    assert_same_bits(lambda x, w: tf.nn.conv2d(x, w, 2, "SAME"), [x, w], [[None, None, None, 4], w.shape])


# -- errors -------------------------------------------------------------------------------------------
X = draw((5, 4), np.float32, 0)
ERRORS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "gather": (lambda x, i: tf.gather(x * 2, i), (X, I([[1, 0], [3, 7]]))),
    "gather of an inner axis": (lambda x, i: tf.gather(x, i + 1, axis=1), (X, I([0, 3], np.int8))),
    "gather below": (lambda x, i: tf.gather(x, i), (X, I(-1))),
    "gather from nothing": (lambda x, i: tf.gather(x, i), (X[:0], I([0]))),
    "gather_nd": (lambda x, i: tf.gather_nd(x, i), (X, I([[1, 0], [3, -7]]))),
    "tensor_scatter": (lambda x, i: tf.tensor_scatter_nd_add(x, i, x), (X, I([[0], [1], [2], [3], [5]]))),
    "scatter_nd": (lambda x, i: tf.scatter_nd(i, x, [5, 4]), (X, I([[0], [1], [2], [3], [5]]))),
    "segments": (lambda x, i: tf.math.unsorted_segment_sum(x, i, 2), (X, I([0, 1, 2, 0, 0]))),
    "labels": (lambda x, i: tf.nn.sparse_softmax_cross_entropy_with_logits(i, x), (X, I([0, 1, 2, 0, 4]))),
    "bounds": (lambda x, i: ops.random_integers(i, i[0], i[1], shape=(2,)), (X, I([7, 3, 0]))),
}


@pytest.mark.parametrize("sizes", ["known", "unknown"])
@pytest.mark.parametrize("name", list(ERRORS))
def test_errors_are_those_of_eager_execution(name: str, sizes: str) -> None:
    fn, arrays = ERRORS[name]
    last = name in ("gather_nd", "tensor_scatter", "scatter_nd")
    shapes = [[*[None] * (a.ndim - 1), a.shape[-1] if n and last else None][-a.ndim:] if a.ndim else []
              for n, a in enumerate(arrays)] if sizes == "unknown" and name != "bounds" else None
    with pytest.raises(tf.errors.InvalidArgumentError) as eager:
        fn(*map(tf.constant, arrays))
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        compiled(fn, arrays, shapes)
    assert str(error.value).splitlines()[0] == str(eager.value).splitlines()[0]
    assert "test_lowerings.py" in str(error.value), "the user's line is missing"


def test_a_training_step_is_one_piece() -> None:
    def step(x: Any, y: Any, w: Any, b: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch((w, b))
            hidden = tf.nn.relu(tf.matmul(x, w) + b)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, hidden))
        return (loss, *[v - 0.1 * g for v, g in zip((w, b), tape.gradient(loss, (w, b)), strict=True)])
    arrays = [draw((8, 20), np.float32, 0), RNG(1).integers(0, 10, 8), draw((20, 10), np.float32, 2),
              draw((10,), np.float32, 3)]
    assert_same_bits(step, arrays)
    assert_same_bits(step, arrays, [[None, 20], [None], [20, 10], [10]])


def test_every_structured_op_has_a_lowering() -> None:
    """Save those whose sizes depend on values, and the streams of random numbers, which the process owns.

    A fresh process tells: lowerings are registered when the first program is compiled, and other tests declare ops.
    """
    by_value = {"nonzero", "segment_sum", "segment_prod", "segment_max", "segment_min", "bincount", "random_state",
                "random_op_state"}
    program = """
import twofold
from twofold.runtime.cpu import cpu
from twofold.ir.op import REGISTRY
from twofold.runtime import compiled
cpu.prepare()
print(*[name for name, op in REGISTRY.items() if op.lower is not None and cpu.lowering(name) is None])
"""
    done = subprocess.run(python("-c", program), capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == by_value


def test_what_stays_with_python_is_named() -> None:
    program = assert_same_bits(lambda x: tf.sort(x * 2) + 1, [X], native=False)
    assert left_to_python(program)
