"""Random indexing, random shape arguments and random programs: as NumPy has them, or a Python error of the right class.

Nothing that a user can type may bring the process down; `HYPOTHESIS_PROFILE=explore` tries more of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twofold as tf

ERRORS = (tf.errors.OpError, ValueError, TypeError)  # TensorFlow's classes; IndexError only where Python asks for it

sides = st.integers(0, 4)
shapes = st.lists(sides, max_size=4).map(tuple)
odd_ints = st.integers(-7, 7)


def array_of(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) + 1).reshape(shape).astype(dtype)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """Arrays of some dtype in some layout."""
    a = array_of(draw(shapes), draw(st.sampled_from([np.float32, np.int64, np.bool_, np.float64])))
    layout = draw(st.sampled_from(["plain", "transposed", "reversed", "broadcast"]))
    if layout == "transposed":
        return a.T
    if layout == "reversed" and a.ndim:
        return a[::-1]
    if layout == "broadcast" and a.ndim and a.shape[0]:
        return np.broadcast_to(a[:1], a.shape)
    return a


def on(array: np.ndarray) -> tf.Tensor:
    """A tensor of that value, in that layout."""
    from twofold.eager.tensor import wrap
    return wrap(array)


def agree(ours: Callable[[], Any], theirs: Callable[[], Any], exact: bool = True) -> None:
    """The same value as NumPy, or an error from both."""
    try:
        want = theirs()
    except (ValueError, IndexError, TypeError, OverflowError):
        with pytest.raises(ERRORS + (IndexError,)):
            ours()
        return
    got = ours()
    assert isinstance(got, tf.Tensor)
    assert got.shape == np.shape(want)
    (np.testing.assert_array_equal if exact else np.testing.assert_allclose)(got.numpy(), want)


# -- indexing ---------------------------------------------------------------------------------------
bounds = st.none() | odd_ints
slices = st.builds(slice, bounds, bounds, st.none() | st.integers(-3, 3))
parts = odd_ints | slices | st.just(None) | st.just(Ellipsis)
keys = parts | st.lists(parts, max_size=6).map(tuple)


@given(arrays(), keys)
def test_indexing(a: np.ndarray, key: Any) -> None:
    x = on(a)
    agree(lambda: x[key], lambda: a[key])


@given(arrays(), keys)
def test_indexing_under_a_tape(a: np.ndarray, key: Any) -> None:
    """The general way, which records, takes and refuses the same keys; its gradient counts what was taken."""
    a = a.astype(np.float64)
    x = on(a)

    def ours() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x[key]
        want = np.zeros_like(a)
        want[key] += 1.0
        np.testing.assert_array_equal(tape.gradient(y, x), want)
        return y
    agree(ours, lambda: a[key])


@given(arrays(), keys)
def test_indices_may_be_tensors(a: np.ndarray, key: Any) -> None:
    def tensors(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(tensors, part))
        if isinstance(part, slice):
            return slice(*[v if v is None else tf.constant(v) for v in (part.start, part.stop, part.step)])
        return tf.constant(part) if isinstance(part, int) else part
    x = on(a)
    agree(lambda: x[tensors(key)], lambda: a[key])


@given(arrays(), st.data())
def test_masks(a: np.ndarray, data: st.DataObject) -> None:
    depth = data.draw(st.integers(1, max(a.ndim, 1)))
    shape = a.shape[:depth] if data.draw(st.integers(0, 4)) else data.draw(shapes.filter(len))
    count = int(np.prod(shape))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool).reshape(shape)
    x = on(a)
    if mask.ndim and mask.shape == a.shape[:mask.ndim]:
        np.testing.assert_array_equal(x[tf.constant(mask)], a[mask])
        np.testing.assert_array_equal(tf.boolean_mask(x, mask), a[mask])
    else:
        with pytest.raises(ERRORS):
            x[tf.constant(mask)]
        with pytest.raises(ERRORS):
            tf.boolean_mask(x, mask)


strange = st.sampled_from([
    1.5, "a", b"a", {}, set(), object(), [0], [[0]], True, 2**40, -(2**70), 1j, np.float32(1), float("nan"),
    np.arange(2), slice("a"), slice(1.5), slice(None, None, 0), slice(2**70), (), ((),), int, tf.float32])


@given(arrays(), strange | st.lists(strange | parts, max_size=4).map(tuple))
def test_strange_keys(a: np.ndarray, key: Any) -> None:
    """Whatever stands in the brackets, there is a value or a Python error."""
    x = on(a)
    try:
        got = x[key]
    except (*ERRORS, IndexError, OverflowError):
        return
    assert isinstance(got, tf.Tensor)
    assert got.numpy().size >= 0


@given(arrays(), keys, st.data())
def test_sliced_assign(a: np.ndarray, key: Any, data: st.DataObject) -> None:
    a = a.astype(np.float32)
    v = tf.Variable(a)
    want = a.copy()
    value = np.float32(data.draw(odd_ints))
    try:
        want[key] = value
        taken = want[key]
    except (ValueError, IndexError, TypeError):
        with pytest.raises((*ERRORS, IndexError)):
            v[key].assign(value)
        np.testing.assert_array_equal(v, a)
        return
    v[key].assign(value)
    np.testing.assert_array_equal(v, want)
    np.testing.assert_array_equal(v[key], taken)


# -- arguments of the shape functions ---------------------------------------------------------------
axis_or_none = st.none() | odd_ints
axes = axis_or_none | st.lists(st.integers(-5, 5), max_size=4)
numbers = st.lists(st.integers(-2, 5), max_size=5)


def numpy_axis(a: np.ndarray, axis: Any) -> Any:
    if not a.ndim and isinstance(axis, int):
        raise ValueError("a scalar has no axes, though NumPy takes 0 and -1")
    return tuple(axis) if isinstance(axis, list) else axis


def numpy_reshape(a: np.ndarray, shape: list[int]) -> np.ndarray:
    if any(s < -1 for s in shape):
        raise ValueError("negative")
    return a.reshape(shape)


def numpy_slice(a: np.ndarray, begin: list[int], size: list[int]) -> np.ndarray:
    if not len(begin) == len(size) == a.ndim:
        raise ValueError("rank")
    ends = [n if s == -1 else b + s for b, s, n in zip(begin, size, a.shape, strict=True)]
    if any(b < 0 or s < -1 or e > n or b > n for b, s, e, n in zip(begin, size, ends, a.shape, strict=True)):
        raise ValueError("bounds")
    return a[tuple(slice(b, e) for b, e in zip(begin, ends, strict=True))]


def numpy_transpose(a: np.ndarray, perm: list[int] | None) -> np.ndarray:
    return a.transpose() if perm is None else a.transpose(perm)


def numpy_broadcast_to(a: np.ndarray, shape: list[int]) -> np.ndarray:
    new = len(shape) - a.ndim
    return np.broadcast_to(a, [a.shape[i - new] if n == -1 and i >= new else n for i, n in enumerate(shape)])


def numpy_tile(a: np.ndarray, multiples: list[int]) -> np.ndarray:
    if len(multiples) != a.ndim or any(m < 0 for m in multiples):
        raise ValueError("multiples")
    return np.tile(a, multiples)


def numpy_reverse(a: np.ndarray, axis: list[int]) -> np.ndarray:
    normal = [np.lib.array_utils.normalize_axis_index(i, a.ndim) for i in axis]
    if len(set(normal)) != len(normal):
        raise ValueError("twice")
    return np.flip(a, tuple(normal))


def numpy_gather(a: np.ndarray, indices: list[int], axis: int) -> np.ndarray:
    shape = (*a.shape[:axis], len(indices), *a.shape[axis:][1:]) if a.ndim else (1,)
    if 0 in shape and -a.ndim <= axis < a.ndim:  # of nothing no index is looked at, as in TensorFlow
        return np.zeros(shape, a.dtype)
    if not a.ndim or any(not 0 <= i < a.shape[axis] for i in indices):
        raise IndexError("bounds")
    return np.take(a, np.array(indices, int), axis)


def numpy_pad(a: np.ndarray, widths: list[list[int]]) -> np.ndarray:
    if len(widths) != a.ndim:
        raise ValueError("rank")
    return np.pad(a, widths) if a.ndim else a


def numpy_split(a: np.ndarray, count: int, axis: int) -> np.ndarray:
    if count <= 0 or not a.ndim or a.shape[axis] % count:
        raise ValueError("parts")
    return np.split(a, count, axis)[0]


def numpy_along(f: Callable[..., np.ndarray], a: np.ndarray, *arguments: Any) -> np.ndarray:
    if not a.ndim:
        raise ValueError("a scalar has no axes, though NumPy takes it for a vector")
    return f(a, *arguments)


FUNCTIONS: dict[str, tuple[Any, Any, list[st.SearchStrategy]]] = {
    "reshape": (lambda x, s: tf.reshape(x, s), numpy_reshape, [numbers]),
    "transpose": (lambda x, p: tf.transpose(x, p), numpy_transpose,
                  [st.none() | st.lists(st.integers(-4, 4), max_size=4)]),
    "expand_dims": (lambda x, a: tf.expand_dims(x, a), lambda x, a: np.expand_dims(x, a), [odd_ints]),
    "squeeze": (lambda x, a: tf.squeeze(x, a), lambda x, a: np.squeeze(x, numpy_axis(x, a)), [axis_or_none]),
    "broadcast_to": (lambda x, s: tf.broadcast_to(x, s), numpy_broadcast_to, [numbers]),
    "tile": (lambda x, m: tf.tile(x, m), numpy_tile, [numbers]),
    "reverse": (lambda x, a: tf.reverse(x, a), numpy_reverse, [st.lists(st.integers(-5, 5), max_size=3)]),
    "roll": (lambda x, s, a: tf.roll(x, s, a), lambda x, s, a: numpy_along(np.roll, x, s, a), [odd_ints, odd_ints]),
    "concat": (lambda x, a: tf.concat([x, x], a), lambda x, a: np.concatenate([x, x], a), [odd_ints]),
    "stack": (lambda x, a: tf.stack([x, x], a), lambda x, a: np.stack([x, x], a), [odd_ints]),
    "split": (lambda x, n, a: tf.split(x, n, a)[0], numpy_split, [st.integers(-1, 4), odd_ints]),
    "slice": (lambda x, b, s: tf.slice(x, b, s), numpy_slice, [numbers, numbers]),
    "pad": (lambda x, w: tf.pad(x, w), numpy_pad,
            [st.lists(st.lists(st.integers(-1, 3), min_size=2, max_size=2), max_size=4)]),
    "gather": (lambda x, i, a: tf.gather(x, np.array(i, int) if i == [] else i, axis=a), numpy_gather,
               [st.lists(st.integers(-2, 4), max_size=4), odd_ints]),
    "reduce_sum": (lambda x, a, k: tf.reduce_sum(x, a, k), lambda x, a, k: x.sum(numpy_axis(x, a), keepdims=k),
                   [axes, st.booleans()]),
    "reduce_max": (lambda x, a: tf.reduce_max(x, a), lambda x, a: x.max(numpy_axis(x, a), initial=-np.inf), [axes]),
    "cumsum": (lambda x, a: tf.cumsum(x, a), lambda x, a: numpy_along(np.cumsum, x, a), [odd_ints]),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@given(data=st.data())
def test_shape_arguments(name: str, data: st.DataObject) -> None:
    ours, theirs, arguments = FUNCTIONS[name]
    a = data.draw(arrays()).astype(np.float32)
    given_ = [data.draw(s) for s in arguments]
    agree(lambda: ours(on(a), *given_), lambda: theirs(a, *given_))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@given(data=st.data())
def test_strange_arguments(name: str, data: st.DataObject) -> None:
    """Whatever is given for an argument, there is a value or a Python error."""
    ours, _, arguments = FUNCTIONS[name]
    a = data.draw(arrays())
    anything = strange | st.lists(strange | odd_ints, max_size=3) | st.just(None)
    given_ = [data.draw(s | anything) for s in arguments]
    try:
        got = ours(on(a), *given_)
    except (*ERRORS, IndexError, OverflowError, MemoryError):
        return
    assert isinstance(got, tf.Tensor)
    assert got.numpy().size >= 0


# -- programs ---------------------------------------------------------------------------------------
UNARY: dict[str, tuple[Any, Any]] = {
    "neg": (lambda x: -x, np.negative), "abs": (abs, np.abs), "tanh": (lambda x: tf.tanh(x), np.tanh),
    "sin": (lambda x: tf.sin(x), np.sin), "square": (lambda x: tf.square(x * 0.5), lambda x: np.square(x * 0.5)),
    "transpose": (lambda x: tf.transpose(x), np.transpose), "reversed": (lambda x: x[::-1], lambda x: x[::-1]),
    "sum": (lambda x: tf.reduce_sum(x, 0, keepdims=True), lambda x: x.sum(0, keepdims=True)),
    "mean": (lambda x: tf.reduce_mean(x, -1, keepdims=True), lambda x: x.mean(-1, keepdims=True)),
    "max": (lambda x: tf.reduce_max(x, 1, keepdims=True), lambda x: x.max(1, keepdims=True)),
    "halved": (lambda x: 1 - x / 2, lambda x: 1 - x / 2),
    "clipped": (lambda x: tf.maximum(x, 0.0), lambda x: np.maximum(x, 0)),
}
BINARY: dict[str, tuple[Any, Any]] = {
    "add": (lambda x, y: x + y, np.add), "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply), "min": (lambda x, y: tf.minimum(x, y), np.minimum),
    "where": (lambda x, y: tf.where(x > y, x, y * 2), lambda x, y: np.where(x > y, x, y * 2)),
}


@given(st.data())
def test_programs(data: st.DataObject) -> None:
    """Programs over matrices of one size, in float64, compute what NumPy computes; so does running them again."""
    side = data.draw(st.integers(1, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    theirs: list[np.ndarray] = [rng.uniform(-2, 2, (side, side)) for _ in range(2)]
    starts = [on(a.copy()) for a in theirs]
    steps = data.draw(st.lists(st.tuples(st.sampled_from([*UNARY, *BINARY]), st.integers(0, 99), st.integers(0, 99)),
                               min_size=1, max_size=8))

    def program() -> list[Any]:
        values: list[Any] = list(starts)
        for name, i, j in steps:
            x, y = values[i % len(values)], values[j % len(values)]
            values.append(UNARY[name][0](x) if name in UNARY else BINARY[name][0](x, y))
        return values
    for name, i, j in steps:
        a, b = theirs[i % len(theirs)], theirs[j % len(theirs)]
        theirs.append(UNARY[name][1](a) if name in UNARY else BINARY[name][1](a, b))
    first = program()
    with tf.GradientTape() as tape:
        tape.watch(starts)
        again = program()
    for x, y, a in zip(first, again, theirs, strict=True):
        np.testing.assert_allclose(x, a, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(x, y)
    for start, g in zip(starts, tape.gradient(again[-1], starts), strict=True):
        assert g is None or (g.shape == start.shape and g.dtype is tf.float64)
