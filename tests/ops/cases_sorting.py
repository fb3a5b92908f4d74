"""Cases of sorting, distinct values, search, and of Fourier transforms."""

from __future__ import annotations

import numpy as np
from ops.case import Bad, Case

import twofold as tf
from twofold.ir import dtypes as dt

INVALID = tf.errors.InvalidArgumentError
WIDE = {dt.float32, dt.float64}
ORDERED = dt.REAL | dt.BOOL


# -- sorting ------------------------------------------------------------------------------------------
def ordered(x, axis=-1, direction="ASCENDING"):
    out = np.sort(x, axis=axis, kind="stable")
    return out if direction == "ASCENDING" else np.flip(out, axis)


def order(x, axis=-1, direction="ASCENDING"):
    """Of equal elements the first comes first, in either direction."""
    if direction == "ASCENDING":
        return np.argsort(x, axis=axis, kind="stable")
    positions = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(positions, axis)


def largest(x, k):
    indices = order(x, -1, "DESCENDING")[..., :k]
    return np.take_along_axis(x, indices, -1), indices


def distinct(x, counts=False):
    _, first, inverse, number = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    places = np.argsort(first)
    rank = np.argsort(places)
    return (x[first[places]], rank[inverse], number[places])[:3 if counts else 2]


def insertion_points(rows, values, side="left"):
    out = np.zeros(values.shape, int)
    for place in np.ndindex(rows.shape[:-1]):
        out[place] = np.searchsorted(rows[place], values[place], side)
    return out


def in_order(rng, shape):
    return np.sort(rng.integers(-4, 4, shape), axis=-1)


def apart(rng, shape):
    """Distinct numbers, each far enough from the next for finite differences."""
    return (rng.permutation(int(np.prod(shape))) / 7.0 - 2.0).reshape(shape)


def permutation(rng, shape):
    return rng.permutation(shape[0])


def places_of_equals(x):
    return np.array([x.tolist().index(number) for number in x.tolist()], np.int64)


def sorting():
    for kwargs in ({}, {"axis": 0}, {"axis": 1, "direction": "DESCENDING"}):
        shapes = [[(3, 4, 5)], [(2, 0, 3)], [(1, 20)]]
        yield Case("sort", "sort", shapes, ordered, dtypes=ORDERED, kwargs=kwargs, grad_domain=apart,
                   special=[np.inf, -np.inf, np.nan])
        yield Case("argsort", "argsort", shapes, order, dtypes=ORDERED, kwargs=kwargs, grad=False, result=dt.int32,
                   special=[np.inf, -np.inf, np.nan])
    for k in (0, 1, 3, 5):
        yield Case("top_k", "math.top_k", [[(4, 5)], [(2, 2, 300)], [(9,)]], largest, dtypes=dt.REAL, kwargs={"k": k},
                   domain=(-4, 4), grad_domain=apart)
    yield Case("top_k", "nn.top_k", [(2, 1000)], largest, dtypes=dt.INTEGER, kwargs={"k": 5}, domain=(-10**9, 10**9),
               grad=False)
    yield Case("unique", "unique", [[(12,)], [(0,)], [(1,)]], distinct, dtypes=ORDERED, domain=(-3, 3), grad=False)
    yield Case("unique", "unique", [(12,)], distinct, dtypes={dt.int32, dt.int64, dt.uint32}, domain=(0, 10**9),
               grad=False)
    yield Case("first_equal", "ops.first_equal", [[(40,)], [(0,)], [(1,)]], places_of_equals,
               dtypes={dt.int32, dt.int64}, domain=(-9, 9), grad=False, result=dt.int32)
    yield Case("first_equal", "ops.first_equal", [(400,)], places_of_equals, dtypes=dt.int64,
               domain=lambda rng, shape: rng.integers(-3, 3, shape) << rng.integers(0, 60, shape), grad=False,
               result=dt.int32)
    yield Case("unique", "unique_with_counts", [[(30,)]], lambda x: distinct(x, True), dtypes=dt.INTEGER,
               domain=(-3, 3), grad=False)
    for side in ("left", "right"):
        yield Case("searchsorted", "searchsorted", [[(3, 6), (3, 4)], [(2, 1, 9), (2, 1, 0)], [(8,), (5,)]],
                   insertion_points, dtypes=dt.REAL, kwargs={"side": side}, domain=[in_order, (-5, 5)],
                   grad=False, result=dt.int32, layouts="operands on other memory need not be sorted")
    yield Case("invert_permutation", "math.invert_permutation", [[(7,)], [(0,)]], np.argsort,
               dtypes={dt.int32, dt.int64}, domain=permutation, grad=False, layouts="must hold a permutation")


# -- Fourier transforms -------------------------------------------------------------------------------
def real_part(x, axes, size):
    """irfft with the sizes of the axes but the last as they are."""
    return np.fft.irfftn(x, s=(*x.shape[x.ndim - len(axes):-1], size), axes=axes)


def transforms():
    common = {"ulps": 8, "atol": 64}
    for rank in (1, 2, 3):
        axes, suffix = tuple(range(-rank, 0)), "" if rank == 1 else f"{rank}d"
        for sizes in ((2, 3, 4), (3, 2, 5), (1, 1, 1)):
            shape = [(2, *sizes)]
            yield Case("fft", f"signal.fft{suffix}", shape, lambda x, axes=axes: np.fft.fftn(x, axes=axes),
                       dtypes=dt.COMPLEX, **common)
            yield Case("ifft", f"signal.ifft{suffix}", shape, lambda x, axes=axes: np.fft.ifftn(x, axes=axes),
                       dtypes=dt.COMPLEX, **common)
            yield Case("rfft", f"signal.rfft{suffix}", shape, lambda x, axes=axes: np.fft.rfftn(x, axes=axes),
                       dtypes=WIDE, result=lambda d: dt.complex128 if d is dt.float64 else dt.complex64, **common)
        for size in (6, 7):
            yield Case("irfft", f"signal.irfft{suffix}", [(2, 2, 3, 4)],
                       lambda x, fft_length, axes=axes, size=size: real_part(x, axes, size), dtypes=dt.COMPLEX,
                       kwargs={"fft_length": [2, 3, size][-rank:] if rank < 3 else [2, 3, size]}, **common)
    for length in (3, 9):
        yield Case("rfft", "signal.rfft", [(2, 6)], lambda x, fft_length: np.fft.rfft(x, fft_length[0]),
                   dtypes=dt.float64, kwargs={"fft_length": [length]}, result=dt.complex128, **common)
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 1, (0, -1)):
            yield Case(("slice", "concat"), f"signal.{name}", [[(3, 4, 5)]], getattr(np.fft, name),
                       kwargs={"axes": axes}, dtypes={dt.float32, dt.int32})


CASES = [*sorting(), *transforms()]

ERRORS = [
    Bad("sort: direction", lambda: tf.sort([1], direction="UP"), ValueError, match="UP"),
    Bad("sort: axis", lambda: tf.sort([1], axis=1), INVALID, match="axis 1"),
    Bad("sort: complex", lambda: tf.sort(tf.ones([2], tf.complex64)), INVALID, match="complex64"),
    Bad("argsort: scalar", lambda: tf.argsort(1), INVALID, match="axis"),
    Bad("top_k: k", lambda: tf.math.top_k([1, 2], 3), INVALID, match="top_k.*k is 3"),
    Bad("top_k: negative", lambda: tf.math.top_k([1, 2], -1), INVALID, match="-1"),
    Bad("top_k: scalar", lambda: tf.math.top_k(1), INVALID, match="rank"),
    Bad("in_top_k", lambda: tf.math.in_top_k([1, 2], [[1.0]], 1), INVALID, match="in_top_k"),
    Bad("unique: rank", lambda: tf.unique([[1]]), INVALID, match="rank"),
    Bad("searchsorted: side", lambda: tf.searchsorted([1], [1], "middle"), INVALID, match="middle"),
    Bad("searchsorted: dtypes", lambda: tf.searchsorted(tf.ones([1]), tf.constant([1])), TypeError, match="int32"),
    Bad("searchsorted: rows", lambda: tf.searchsorted([[1], [2]], [[1]]), INVALID, match="leading"),
    Bad("invert_permutation", lambda: tf.math.invert_permutation([0, 0]), INVALID, match="each number"),
    Bad("fft: real", lambda: tf.signal.fft(tf.ones([4])), TypeError, match="float32"),
    Bad("fft2d: rank", lambda: tf.signal.fft2d(tf.ones([4], tf.complex64)), INVALID, match="rank"),
    Bad("rfft: empty", lambda: tf.signal.rfft(tf.ones([2, 0])), INVALID, match="elements"),
    Bad("rfft: length", lambda: tf.signal.rfft(tf.ones([4]), [0]), INVALID, match="fft_length"),
    Bad("irfft: one", lambda: tf.signal.irfft(tf.ones([1], tf.complex64)), INVALID, match="empty"),
    Bad("fftshift", lambda: tf.signal.fftshift(tf.ones([1]), 1), INVALID, match="axis 1"),
]
