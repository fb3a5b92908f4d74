"""Cases of sliding windows: convolution in every form, and pooling."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
from ops.case import Bad, Case

import twofold as tf
from twofold.ir import dtypes as dt

INVALID = tf.errors.InvalidArgumentError
WIDE = (dt.float32, dt.float64)
Row = partial(Case, elementwise=False)  # none of these takes operands of any shape


def pads(sizes, window, strides, dilations, padding):
    """Padding before and after, by TensorFlow's rule for SAME."""
    if padding == "VALID":
        return [(0, 0)] * len(sizes)
    if padding != "SAME":
        return padding
    totals = [
        max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        for n, k, s, d in zip(sizes, window, strides, dilations, strict=True)
    ]
    return [(t // 2, t - t // 2) for t in totals]


def taps(x, window, strides, dilations, padding, filler):
    """For each element of the window: its index, and what it sees at every place."""
    sizes = x.shape[1:-1]
    margins = pads(sizes, window, strides, dilations, padding)
    padded = np.pad(x, [(0, 0), *margins, (0, 0)], constant_values=filler)
    counts = [
        (n + sum(m) - (k - 1) * d - 1) // s + 1
        for n, m, k, s, d in zip(sizes, margins, window, strides, dilations, strict=True)
    ]
    for index in itertools.product(*map(range, window)):
        cut = [
            slice(i * d, i * d + (n - 1) * s + 1, s)
            for i, d, n, s in zip(index, dilations, counts, strides, strict=True)
        ]
        yield index, padded[(slice(None), *cut)] if min(counts) else np.zeros((x.shape[0], *counts, x.shape[-1]))


def conv(x, w, strides, padding, dilations):
    groups = x.shape[-1] // w.shape[-2]
    total = 0
    for index, seen in taps(x, w.shape[:-2], strides, dilations, padding, 0.0):
        parts = zip(np.split(seen, groups, -1), np.split(w[index], groups, -1), strict=True)
        total = total + np.concatenate([a @ b for a, b in parts], -1)
    return total


def conv_input_grad(ct, w, input_shape, strides, padding, dilations):
    """By the definition of a transpose: the inner product with the convolution of every unit input."""
    shape = (ct.shape[0], *input_shape)
    out = np.zeros(shape)
    for index in np.ndindex(*input_shape):
        unit = np.zeros((1, *input_shape))
        unit[(0, *index)] = 1
        out[(slice(None), *index)] = (ct * conv(unit, w, strides, padding, dilations)).sum(tuple(range(1, ct.ndim)))
    return out


def conv_filter_grad(x, ct, filter_shape, strides, padding, dilations):
    out = np.zeros(filter_shape)
    for index in np.ndindex(*filter_shape):
        unit = np.zeros(filter_shape)
        unit[index] = 1
        out[index] = (ct * conv(x, unit, strides, padding, dilations)).sum()
    return out


def max_pool(x, ksize, strides, padding, dilations):
    seen = [s for _, s in taps(x.astype(np.float64), ksize, strides, dilations, padding, -np.inf)]
    return np.max(np.stack(seen), 0).astype(x.dtype)


def avg_pool(x, ksize, strides, padding, dilations):
    seen = np.stack([s for _, s in taps(x, ksize, strides, dilations, padding, 0.0)])
    count = np.stack([s for _, s in taps(np.ones_like(x), ksize, strides, dilations, padding, 0.0)])
    return seen.sum(0) / count.sum(0)


def argmax(x, ksize, strides, padding, dilations):
    """The number in its image of each window's first largest element."""
    numbers = np.broadcast_to(np.arange(x[0].size, dtype=np.float64).reshape(x[0].shape), x.shape)
    values = np.stack([s for _, s in taps(x, ksize, strides, dilations, padding, -np.inf)])
    places = np.stack([s for _, s in taps(numbers, ksize, strides, dilations, padding, -1.0)])
    return np.take_along_axis(places, values.argmax(0)[None], 0)[0].astype(np.int64)


def gathered(g, x, **window):
    places = argmax(x, **window)
    return np.stack([g[n].reshape(-1)[places[n]] for n in range(len(g))])


def scattered(ct, x, **window):
    places, out = argmax(x, **window), np.zeros(x.shape)
    for n in range(len(x)):
        np.add.at(out[n].reshape(-1), places[n], ct[n])
    return out


def averaged_back(ct, input_shape, **window):
    out = np.zeros((ct.shape[0], *input_shape))
    for index in np.ndindex(*input_shape):
        unit = np.zeros((1, *input_shape))
        unit[(0, *index)] = 1
        out[(slice(None), *index)] = (ct * avg_pool(unit, **window)).sum(tuple(range(1, ct.ndim)))
    return out


def distinct(rng, shape):
    """Numbers apart from each other, so that a step of finite differences changes no maximum."""
    return rng.permutation(int(np.prod(shape))).reshape(shape) / 8.0


def first(x):
    """Channels second."""
    return np.moveaxis(x, -1, 1)


def last(x):
    return np.moveaxis(x, 1, -1)


CONVS = [  # x, w, strides, dilations, padding
    ((2, 4, 5, 3), (3, 2, 3, 4), (1, 1), (1, 1), "SAME"),
    ((2, 4, 5, 2), (2, 3, 2, 3), (2, 1), (1, 1), "VALID"),
    ((1, 6, 5, 4), (2, 2, 2, 4), (2, 2), (1, 2), "SAME"),  # two groups
    ((2, 4, 4, 3), (2, 2, 1, 3), (1, 1), (1, 1), "SAME"),  # depthwise
    ((1, 4, 5, 2), (2, 3, 1, 6), (1, 2), (1, 1), ((1, 2), (0, 3))),  # depthwise with a multiplier
    ((2, 3, 4, 3), (1, 1, 3, 2), (1, 1), (1, 1), "SAME"),
    ((2, 3, 4, 3), (1, 1, 3, 2), (2, 2), (1, 1), "VALID"),
    ((2, 7, 2), (3, 2, 3), (2,), (2,), "SAME"),
    ((1, 3, 3, 3, 2), (2, 2, 2, 2, 2), (1, 2, 1), (1, 1, 2), "SAME"),
    ((0, 4, 4, 2), (2, 2, 2, 3), (1, 1), (1, 1), "VALID"),
    ((1, 2, 2, 2), (3, 3, 2, 3), (1, 1), (1, 1), "VALID"),  # no place for the window
]


def _conv_cases():
    cases = []
    for n, (x, w, strides, dilations, padding) in enumerate(CONVS):
        window = {"strides": strides, "padding": padding, "dilations": dilations}
        places = conv(np.zeros(x), np.zeros(w), **window).shape if n < 10 else (1, 0, 0, 3)
        oracles = (
            (conv, conv_input_grad, conv_filter_grad)
            if n < 10
            else (
                lambda x, w, **_: np.zeros((1, 0, 0, 3)),
                lambda ct, w, input_shape, **_: np.zeros((1, *input_shape)),
                lambda x, ct, filter_shape, **_: np.zeros(filter_shape),
            )
        )
        some = dt.FLOATING if n in (0, 3) else WIDE
        for op, shapes, extra, oracle in (
            ("conv", [x, w], {}, oracles[0]),
            ("conv_input_grad", [places, w], {"input_shape": x[1:]}, oracles[1]),
            ("conv_filter_grad", [x, places], {"filter_shape": w}, oracles[2]),
        ):
            cases.append(
                Row(
                    op,
                    f"ops.{op}",
                    shapes,
                    oracle,
                    some,
                    {**extra, **window},
                    ulps=8,
                    half_ulps=1,
                    atol=200,
                    domain=(-1, 1),
                    id=f"{op}-{n}",
                )
            )
    return cases


POOLS = [  # x, ksize, strides, dilations, padding
    ((2, 4, 5, 3), (2, 2), (2, 2), (1, 1), "VALID"),
    ((2, 4, 5, 3), (3, 2), (2, 1), (1, 1), "SAME"),
    ((1, 5, 5, 2), (2, 2), (1, 1), (2, 1), "SAME"),
    ((1, 4, 4, 18), (2, 3), (1, 2), (1, 1), ((1, 0), (1, 2))),
    ((2, 7, 2), (3,), (2,), (1,), "SAME"),
    ((2, 4, 6, 35), (2, 3), (2, 3), (1, 1), "VALID"),
    ((1, 3, 4, 3, 2), (2, 2, 2), (1, 2, 1), (1, 1, 1), "VALID"),
]


def _pool_cases():
    cases = []
    for n, (x, ksize, strides, dilations, padding) in enumerate(POOLS):
        window = {"ksize": ksize, "strides": strides, "padding": padding, "dilations": dilations}
        places = avg_pool(np.zeros(x), **window).shape
        some = dt.FLOATING if n == 1 else WIDE
        common = {"ulps": 4, "half_ulps": 1, "atol": 16, "kwargs": window}
        cases += [
            Row(
                "max_pool",
                "ops.max_pool",
                [x],
                max_pool,
                dt.REAL - {dt.float16, dt.bfloat16} if n == 0 else some,
                domain=distinct if n else (-50, 50),
                grad_domain=distinct,
                kwargs=window,
                id=f"max_pool-{n}",
            ),
            Row(
                "max_pool_argmax",
                "ops.max_pool_argmax",
                [x],
                argmax,
                some,
                domain=distinct,
                grad=False,
                result=dt.int64,
                kwargs=window,
                id=f"max_pool_argmax-{n}",
            ),
            Row(
                "max_pool_gather",
                "ops.max_pool_gather",
                [x, x],
                gathered,
                some,
                domain=[(-3, 3), distinct],
                grad=(0,),
                kwargs=window,
                id=f"max_pool_gather-{n}",
            ),
            Row(
                "max_pool_grad",
                "ops.max_pool_grad",
                [places, x],
                scattered,
                some,
                domain=[(-3, 3), distinct],
                grad=(0,),
                **common,
                id=f"max_pool_grad-{n}",
            ),
            Row("avg_pool", "ops.avg_pool", [x], avg_pool, some, **common, id=f"avg_pool-{n}"),
            Row(
                "avg_pool_grad",
                "ops.avg_pool_grad",
                [places],
                averaged_back,
                some,
                **{**common, "kwargs": {**window, "input_shape": x[1:]}},
                id=f"avg_pool_grad-{n}",
            ),
        ]
    return cases


PLAIN = {"strides": (1, 1), "padding": "SAME", "dilations": (1, 1)}
SUMS = {"ulps": 8, "half_ulps": 1, "atol": 200, "domain": (-1, 1)}

CASES = [
    *_conv_cases(),
    *_pool_cases(),
    Row(
        "conv",
        lambda x, w: tf.nn.conv1d(x, w, 2, "SAME"),
        [(2, 5, 3), (2, 3, 4)],
        lambda x, w: conv(x, w, (2,), "SAME", (1,)),
        WIDE,
        **SUMS,
        id="conv1d",
    ),
    Row(
        "conv",
        lambda x, w: tf.nn.conv1d(x, w, 1, "VALID", "NCW"),
        [(2, 3, 5), (2, 3, 4)],
        lambda x, w: first(conv(last(x), w, (1,), "VALID", (1,))),
        WIDE,
        **SUMS,
        id="conv1d-first",
    ),
    Row(
        "conv",
        lambda x, w: tf.nn.conv2d(x, w, [1, 2, 1, 1], "SAME"),
        [(2, 4, 5, 3), (2, 3, 3, 2)],
        lambda x, w: conv(x, w, (2, 1), "SAME", (1, 1)),
        WIDE,
        **SUMS,
        id="conv2d",
    ),
    Row(
        "conv",
        lambda x, w: tf.nn.conv2d(x, w, 1, [[0, 0], [0, 0], [1, 0], [2, 1]], "NCHW", 2),
        [(2, 3, 4, 5), (2, 2, 3, 2)],
        lambda x, w: first(conv(last(x), w, (1, 1), ((1, 0), (2, 1)), (2, 2))),
        WIDE,
        **SUMS,
        id="conv2d-first",
    ),
    Row(
        "conv",
        lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"),
        [(2, 2, 4, 5, 3), (2, 3, 3, 2)],
        lambda x, w: conv(x.reshape(4, 4, 5, 3), w, **PLAIN).reshape(2, 2, 4, 5, 2),
        WIDE,
        **SUMS,
        id="conv2d-batches",
    ),
    Row(
        "conv",
        lambda x, w: tf.nn.conv3d(x, w, 1, "VALID"),
        [(1, 3, 3, 3, 2), (2, 2, 2, 2, 2)],
        lambda x, w: conv(x, w, (1, 1, 1), "VALID", (1, 1, 1)),
        WIDE,
        **SUMS,
        id="conv3d",
    ),
    Row(
        "conv",
        lambda x, w: tf.nn.convolution(x, w, padding="SAME", dilations=2),
        [(1, 5, 5, 2), (2, 2, 2, 2)],
        lambda x, w: conv(x, w, (1, 1), "SAME", (2, 2)),
        WIDE,
        **SUMS,
        id="convolution",
    ),
    Row(
        "conv",
        lambda x, w: tf.nn.atrous_conv2d(x, w, 2, "VALID"),
        [(1, 5, 5, 2), (2, 2, 2, 2)],
        lambda x, w: conv(x, w, (1, 1), "VALID", (2, 2)),
        WIDE,
        **SUMS,
        id="atrous_conv2d",
    ),
    Row(
        "conv",
        lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
        [(2, 4, 4, 3), (2, 2, 3, 2)],
        lambda x, w: conv(x, w.reshape(2, 2, 1, 6), **PLAIN),
        WIDE,
        **SUMS,
        id="depthwise_conv2d",
    ),
    Row(
        "conv",
        lambda x, w: tf.nn.depthwise_conv2d(x, w, 1, "SAME", "NCHW"),
        [(2, 3, 4, 4), (2, 2, 3, 1)],
        lambda x, w: first(conv(last(x), w.reshape(2, 2, 1, 3), **PLAIN)),
        WIDE,
        **SUMS,
        id="depthwise_conv2d-first",
    ),
    Row(
        "conv",
        lambda x, d, p: tf.nn.separable_conv2d(x, d, p, 1, "SAME"),
        [(1, 4, 4, 2), (2, 2, 2, 2), (1, 1, 4, 3)],
        lambda x, d, p: conv(conv(x, d.reshape(2, 2, 1, 4), **PLAIN), p, **PLAIN),
        WIDE,
        **SUMS,
        id="separable_conv2d",
    ),
    Row(
        "conv_input_grad",
        lambda x, w: tf.nn.conv2d_transpose(x, w, [2, 4, 6, 2], 2),
        [(2, 2, 3, 3), (3, 3, 2, 3)],
        lambda x, w: conv_input_grad(x, w, (4, 6, 2), (2, 2), "SAME", (1, 1)),
        WIDE,
        **SUMS,
        id="conv2d_transpose",
    ),
    Row(
        "conv_input_grad",
        lambda x, w: tf.nn.conv2d_transpose(x, w, [2, 2, 4, 6], 2, data_format="NCHW"),
        [(2, 3, 2, 3), (3, 3, 2, 3)],
        lambda x, w: first(conv_input_grad(last(x), w, (4, 6, 2), (2, 2), "SAME", (1, 1))),
        WIDE,
        **SUMS,
        id="conv2d_transpose-first",
    ),
    Row(
        "conv_input_grad",
        lambda x, w: tf.nn.conv1d_transpose(x, w, [1, 5, 2], 1, "VALID"),
        [(1, 3, 3), (3, 2, 3)],
        lambda x, w: conv_input_grad(x, w, (5, 2), (1,), "VALID", (1,)),
        WIDE,
        **SUMS,
        id="conv1d_transpose",
    ),
    Row(
        "conv_input_grad",
        lambda x, w: tf.nn.conv3d_transpose(x, w, [1, 2, 4, 2, 1], (1, 2, 1)),
        [(1, 2, 2, 2, 2), (2, 2, 1, 1, 2)],
        lambda x, w: conv_input_grad(x, w, (2, 4, 2, 1), (1, 2, 1), "SAME", (1, 1, 1)),
        WIDE,
        **SUMS,
        id="conv3d_transpose",
    ),
    Row(
        "max_pool",
        lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID", "NCHW"),
        [(2, 3, 4, 5)],
        lambda x: first(max_pool(last(x), (2, 2), (2, 2), "VALID", (1, 1))),
        WIDE,
        domain=distinct,
        id="max_pool2d-first",
    ),
    Row(
        "max_pool",
        lambda x: tf.nn.max_pool1d(x, 2, 1, "SAME"),
        [(2, 5, 3)],
        lambda x: max_pool(x, (2,), (1,), "SAME", (1,)),
        WIDE,
        domain=distinct,
        id="max_pool1d",
    ),
    Row(
        "avg_pool",
        lambda x: tf.nn.avg_pool3d(x, 2, 1, "SAME"),
        [(1, 3, 3, 3, 2)],
        lambda x: avg_pool(x, (2, 2, 2), (1, 1, 1), "SAME", (1, 1, 1)),
        WIDE,
        ulps=8,
        atol=16,
        id="avg_pool3d",
    ),
    Row(
        "avg_pool",
        lambda x: tf.nn.pool(x, [2, 2], "AVG", dilations=[2, 1]),
        [(1, 4, 4, 2)],
        lambda x: avg_pool(x, (2, 2), (1, 1), "VALID", (2, 1)),
        WIDE,
        ulps=8,
        atol=16,
        id="pool-dilated",
    ),
    Row(
        "max_pool",
        lambda x: tf.nn.max_pool(x, 2, 1, "VALID"),
        [(1, 3, 3, 2)],
        lambda x: max_pool(x, (2, 2), (1, 1), "VALID", (1, 1)),
        WIDE,
        domain=distinct,
        grad_domain=distinct,
        special=[np.nan, np.inf, -np.inf],
        id="max_pool-special",
    ),
    Row(
        ("max_pool", "max_pool_argmax"),
        lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "SAME", include_batch_in_index=True),
        [(2, 3, 3, 2)],
        lambda x: (
            max_pool(x, (2, 2), (2, 2), "SAME", (1, 1)),
            argmax(x, (2, 2), (2, 2), "SAME", (1, 1)) + np.array([0, 18]).reshape(2, 1, 1, 1),
        ),
        WIDE,
        domain=distinct,
        id="max_pool_with_argmax",
    ),
]

_X, _W = np.ones((1, 4, 4, 2), np.float32), np.ones((2, 2, 2, 3), np.float32)

ERRORS = [
    Bad(
        "conv2d: channels", lambda: tf.nn.conv2d(_X, np.ones((2, 2, 3, 3), np.float32), 1, "SAME"), INVALID, "channels"
    ),
    Bad("conv2d: groups", lambda: tf.nn.conv2d(_X, np.ones((2, 2, 1, 3), np.float32), 1, "SAME"), INVALID, "groups"),
    Bad(
        "conv2d: no channels",
        lambda: tf.nn.conv2d(_X, np.ones((2, 2, 0, 3), np.float32), 1, "SAME"),
        INVALID,
        "channels",
    ),
    Bad("conv2d: rank", lambda: tf.nn.conv2d(_X[0], _W, 1, "SAME"), INVALID, "rank 4"),
    Bad("conv2d: filters", lambda: tf.nn.conv2d(_X, _W[0], 1, "SAME"), INVALID, "rank 4"),
    Bad("conv2d: padding", lambda: tf.nn.conv2d(_X, _W, 1, "FULL"), INVALID, "padding"),
    Bad(
        "conv2d: negative padding",
        lambda: tf.nn.conv2d(_X, _W, 1, [(0, 0), (-1, 0), (0, 0), (0, 0)]),
        INVALID,
        "padding",
    ),
    Bad("conv2d: strides", lambda: tf.nn.conv2d(_X, _W, 0, "SAME"), INVALID, "strides"),
    # A compiled function went out of its memory: addresses are products of strides.
    Bad("conv2d: far strides", lambda: tf.function(
        lambda x: tf.nn.conv2d(x, _W, [1 << 62, 1], [[0, 0], [1, 1], [1, 1], [0, 0]]))(_X), INVALID, "at most"),
    Bad("conv2d: batch strides", lambda: tf.nn.conv2d(_X, _W, [2, 1, 1, 1], "SAME"), INVALID, "strides"),
    Bad("conv2d: format", lambda: tf.nn.conv2d(_X, _W, 1, "SAME", "HWCN"), INVALID, "data_format"),
    Bad(
        "conv2d: dtype",
        lambda: tf.nn.conv2d(tf.constant(_X), tf.constant(_W, tf.float64), 1, "SAME"),
        INVALID,
        "float64",
    ),
    Bad(
        "conv2d: large window",
        lambda: tf.nn.conv2d(_X, np.ones((6, 2, 2, 3), np.float32), 1, "VALID"),
        INVALID,
        "window",
    ),
    Bad(
        "depthwise: channels",
        lambda: tf.nn.depthwise_conv2d(_X, np.ones((2, 2, 3, 1), np.float32), 1, "SAME"),
        INVALID,
        "3 channels",
    ),
    Bad(
        "transpose: shape",
        lambda: tf.nn.conv2d_transpose(_X, np.ones((2, 2, 3, 2), np.float32), [1, 9, 8, 3], 2),
        INVALID,
        "conv_input_grad",
    ),
    Bad(
        "transpose: batch",
        lambda: tf.nn.conv2d_transpose(_X, np.ones((2, 2, 3, 2), np.float32), [2, 8, 8, 3], 2),
        INVALID,
        "batch",
    ),
    Bad("max_pool: ksize", lambda: tf.nn.max_pool2d(_X, 0, 1, "SAME"), INVALID, "ksize"),
    Bad("max_pool: rank", lambda: tf.nn.max_pool(np.ones((2, 2), np.float32), 1, 1, "SAME"), INVALID, "spatial"),
    Bad("avg_pool: dtype", lambda: tf.nn.avg_pool2d(_X.astype(np.int32), 2, 2, "SAME"), INVALID, "int32"),
    Bad("avg_pool: padding", lambda: tf.nn.avg_pool2d(_X, 2, 2, [(0, 0), (2, 0), (0, 0), (0, 0)]), INVALID, "smaller"),
]
