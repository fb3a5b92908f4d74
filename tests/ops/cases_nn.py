"""Cases of neural networks: softmax and losses, means and normalisation. Windows are in `cases_windows.py`."""

from __future__ import annotations

from functools import partial

import numpy as np
from ops.case import Bad, Case

import twofold as tf
from twofold.ir import dtypes as dt

INVALID = tf.errors.InvalidArgumentError
WIDE = (dt.float32, dt.float64)
Row = partial(Case, elementwise=False)  # none of these takes operands of any shape


def log_softmax(x, axis=-1):
    top = x - x.max(axis=axis, keepdims=True, initial=-np.inf)
    return top - np.log(np.exp(top).sum(axis=axis, keepdims=True))


def softmax(x, axis=-1):
    return np.exp(log_softmax(x, axis))


def sparse_loss(labels, logits):
    return -np.take_along_axis(log_softmax(logits), labels[..., None].astype(np.int64), -1)[..., 0]


def sigmoid_loss(z, x):
    return np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x)))


def weighted_loss(z, x, q):
    return (1 - z) * x + (1 + (q - 1) * z) * (np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0))


def poisson_loss(z, c):
    safe = np.where((z < 0) | (z > 1), z, 1.0)
    extra = safe * np.log(safe) - safe + 0.5 * np.log(2 * np.pi * safe)
    return np.exp(c) - z * c + np.where((z < 0) | (z > 1), extra, 0)


def moments(x, axes, keepdims=False):
    return x.mean(axes, keepdims=keepdims), x.var(axes, keepdims=keepdims)


def weighted_moments(x, w):
    w = np.broadcast_to(w, x.shape)
    mean = (w * x).sum(0) / w.sum(0)
    return mean, (w * (x - mean) ** 2).sum(0) / w.sum(0)


def normalized(x, mean, variance, offset, scale):
    return (x - mean) / np.sqrt(variance + 0.1) * scale + offset


def layer_norm(x, scale, offset):
    return normalized(x, x.mean(-1, keepdims=True), x.var(-1, keepdims=True), offset, scale)


def fused(x, scale, offset):
    n, over = x[..., 0].size, tuple(range(x.ndim - 1))
    mean, variance = x.mean(over), x.var(over)
    return normalized(x, mean, variance, offset, scale), mean, variance * n / (n - 1)


def response(x):
    padded = np.pad(x**2, [(0, 0)] * 3 + [(2, 2)])
    sums = sum(padded[..., i : i + x.shape[-1]] for i in range(5))
    return x / (1 + 0.5 * sums) ** 0.75


def embedded(params, ids):
    rows = params[ids]
    return rows * np.minimum(1, 1 / np.linalg.norm(rows, axis=-1, keepdims=True))


def inference_norm(x, mean, variance):
    one = tf.ones_like(mean)
    return tf.nn.fused_batch_norm(x, one, 0 * one, mean, variance, 0.1, is_training=False)[0]


def dropped(x):
    """Whether each result of dropout is 0 or the operand over 1 - rate, with the share of zeros that the rate says."""
    y = tf.nn.dropout(x, 0.25, seed=3)
    kept = tf.cast(y != 0, y.dtype)
    near = tf.abs(tf.reduce_mean(kept) - 0.75) < 0.05
    return y - kept * x / tf.cast(0.75, x.dtype), near, tf.nn.dropout(x, 0.25, noise_shape=[None, 1], seed=3)[0, 0] * 0


CASES = [
    Row(
        "where",
        dropped,
        [(40, 50)],
        lambda x: (np.zeros(x.shape), np.array(True), np.array(0.0)),
        WIDE,
        domain=(1, 2),
        atol=4,
        grad=(),
        layouts="every call draws other numbers",
        id="dropout",
    ),
    Row(
        "where",
        lambda x: (tf.random.set_seed(5), tf.nn.dropout(x, 0.25, seed=3))[1],
        [(4, 5)],
        None,
        id="dropout-gradient",
    ),
    Row(
        "softmax",
        "nn.softmax",
        [[(3, 5)], [(5,)], [(2, 3, 70)], [(0, 3)], [(3, 0)], [(2, 1)]],
        softmax,
        ulps=16,
        half_ulps=1,
        special=[0.0, np.nan, -np.inf],
    ),
    Row("softmax", "nn.softmax", [(3, 5, 2)], softmax, WIDE, {"axis": 1}, ulps=16, id="softmax-axis"),
    Row(
        "softmax",
        "nn.softmax",
        [(3, 5)],
        softmax,
        WIDE,
        domain=(800, 1000),
        grad_domain=(-3, 3),
        ulps=256,
        id="softmax-large",
    ),
    Row(
        "log_softmax",
        "nn.log_softmax",
        [[(3, 5)], [(5,)], [(2, 3, 70)], [(0, 3)]],
        log_softmax,
        ulps=8,
        half_ulps=1,
        atol=16,
        special=[0.0, np.nan],
    ),
    Row(
        "log_softmax",
        "nn.log_softmax",
        [(3, 5, 2)],
        log_softmax,
        WIDE,
        {"axis": 0},
        ulps=8,
        atol=16,
        id="log_softmax-axis",
    ),
    Row(
        "sparse_cross_entropy",
        "nn.sparse_softmax_cross_entropy_with_logits",
        [[(4,), (4, 5)], [(2, 2), (2, 2, 40)], [(), (5,)], [(0,), (0, 3)]],
        sparse_loss,
        dtypes_per_operand=[dt.int32, None],
        domain=[(0, 4), (-3, 3)],
        ulps=8,
        half_ulps=1,
        atol=16,
    ),
    Row(
        "sparse_cross_entropy",
        "nn.sparse_softmax_cross_entropy_with_logits",
        [(4,), (4, 5)],
        sparse_loss,
        WIDE,
        dtypes_per_operand=[dt.uint8, None],
        domain=[(0, 4), (-3, 3)],
        ulps=8,
        atol=16,
        id="sparse-uint8",
    ),
    Row(
        "log_softmax",
        "nn.softmax_cross_entropy_with_logits",
        [[(4, 5), (4, 5)], [(2, 3, 4), (2, 3, 4)]],
        lambda z, x: -(z * log_softmax(x)).sum(-1),
        WIDE,
        domain=[(0, 1), (-3, 3)],
        ulps=8,
        atol=32,
        id="softmax_cross_entropy",
    ),
    Row(
        "log_softmax",
        "nn.softmax_cross_entropy_with_logits",
        [(4, 5), (4, 5)],
        lambda z, x, axis: -(z * log_softmax(x, 0)).sum(0),
        WIDE,
        {"axis": 0},
        domain=[(0, 1), (-3, 3)],
        ulps=8,
        atol=32,
        id="softmax_cross_entropy-axis",
    ),
    Row(
        ("where", "log1p"),
        "nn.sigmoid_cross_entropy_with_logits",
        [[(3, 4), (3, 4)], [(), ()]],
        sigmoid_loss,
        WIDE,
        domain=[(0, 1), (-5, 5)],
        ulps=8,
        atol=8,
        id="sigmoid_cross_entropy",
    ),
    Row(
        "log1p",
        "nn.weighted_cross_entropy_with_logits",
        [(3, 4), (3, 4), (4,)],
        weighted_loss,
        WIDE,
        domain=[(0, 1), (-5, 5), (0.5, 3)],
        ulps=8,
        atol=32,
        id="weighted_cross_entropy",
    ),
    Row(
        "exp",
        "nn.log_poisson_loss",
        [(3, 4), (3, 4)],
        lambda z, c: np.exp(c) - z * c,
        WIDE,
        domain=[(0, 5), (-2, 2)],
        ulps=8,
        atol=32,
        id="log_poisson_loss",
    ),
    Row(
        "log",
        lambda z, c: tf.nn.log_poisson_loss(z, c, True),
        [(3, 4), (3, 4)],
        poisson_loss,
        WIDE,
        domain=[(0, 5), (-2, 2)],
        ulps=8,
        atol=64,
        id="log_poisson_loss-full",
    ),
    Row(
        "reduce_sum",
        "nn.l2_loss",
        [[(3, 4)], [()], [(0,)]],
        lambda x: (x**2).sum() / 2,
        ulps=4,
        half_ulps=1,
        id="l2_loss",
    ),
    Row(
        "reduce_mean",
        "nn.zero_fraction",
        [(3, 4)],
        lambda x: np.mean(x == 0),
        dt.REAL,
        domain=(-1, 1),
        grad=False,
        result=dt.float32,
        ulps=1,
        half_ulps=0,
        id="zero_fraction",
    ),
    # -- means and normalisation
    Row(
        "centred_variance",
        "nn.moments",
        [(2, 3, 4)],
        moments,
        kwargs={"axes": (0, 2)},
        ulps=8,
        half_ulps=1,
        atol=8,
        id="moments",
    ),
    Row(
        "centred_variance",
        "nn.moments",
        [(2, 3, 4)],
        moments,
        WIDE,
        {"axes": (1,), "keepdims": True},
        ulps=8,
        atol=8,
        id="moments-keepdims",
    ),
    Row(
        "squared_difference",
        lambda x, w: tf.nn.weighted_moments(x, [0], w),
        [[(4, 3), (4, 3)], [(4, 3), (4, 1)]],
        weighted_moments,
        WIDE,
        domain=[(-3, 3), (0.5, 2)],
        ulps=16,
        atol=16,
        id="weighted_moments",
    ),
    Row(
        "reduce_sum",
        lambda x: tf.nn.normalize_moments(*tf.nn.sufficient_statistics(x, [0], 0.5)),
        [(5, 3)],
        lambda x: moments(x, 0),
        WIDE,
        ulps=16,
        atol=32,
        id="sufficient_statistics",
    ),
    Row(
        "rsqrt",
        lambda *a: tf.nn.batch_normalization(*a, 0.1),
        [(4, 3), (3,), (3,), (3,), (3,)],
        normalized,
        WIDE,
        domain=[(-3, 3), (-1, 1), (0.5, 2), (-1, 1), (0.5, 2)],
        ulps=16,
        atol=16,
        id="batch_normalization",
    ),
    Row(
        "rsqrt",
        lambda x, s, o: tf.nn.fused_batch_norm(x, s, o, epsilon=0.1),
        [(2, 2, 3, 2), (2,), (2,)],
        fused,
        WIDE,
        ulps=16,
        atol=16,
        id="fused_batch_norm",
    ),
    Row(
        "rsqrt",
        lambda x, s, o: tf.nn.fused_batch_norm(x, s, o, epsilon=0.1, data_format="NCHW"),
        [(2, 2, 2, 3), (2,), (2,)],
        lambda x, s, o: (lambda y, m, v: (y.transpose(0, 3, 1, 2), m, v))(*fused(x.transpose(0, 2, 3, 1), s, o)),
        WIDE,
        ulps=16,
        atol=16,
        id="fused_batch_norm-first",
    ),
    Row(
        "rsqrt",
        lambda x, s, o: tf.nn.fused_batch_norm(x, s, o, epsilon=0.1, data_format="NCDHW"),
        [(2, 2, 2, 1, 3), (2,), (2,)],
        lambda x, s, o: (lambda y, m, v: (y.transpose(0, 4, 1, 2, 3), m, v))(*fused(x.transpose(0, 2, 3, 4, 1), s, o)),
        WIDE,
        ulps=16,
        atol=16,
        id="fused_batch_norm-volumes",
    ),
    Row(
        "rsqrt",
        inference_norm,
        [(2, 2, 3, 2), (2,), (2,)],
        lambda x, m, v: normalized(x, m, v, 0, 1),
        WIDE,
        domain=[(-3, 3), (-1, 1), (0.5, 2)],
        ulps=16,
        atol=16,
        id="fused_batch_norm-test",
    ),
    Row(
        "rsqrt",
        lambda x, s, o: tf.nn.layer_normalization(x, s, o, epsilon=0.1),
        [(2, 3, 4), (4,), (4,)],
        layer_norm,
        ulps=16,
        half_ulps=1,
        atol=16,
        id="layer_normalization",
    ),
    Row(
        "pow",
        lambda x: tf.nn.local_response_normalization(x, 2, 1.0, 0.5, 0.75),
        [(1, 2, 2, 7)],
        response,
        WIDE,
        ulps=16,
        id="local_response_normalization",
    ),
    Row("add", "nn.bias_add", [[(2, 3, 4), (4,)], [(3, 2), (2,)]], np.add, dt.NUMERIC, id="bias_add"),
    Row(
        "add",
        "nn.bias_add",
        [(2, 4, 3, 3), (4,)],
        lambda x, b, data_format: x + b[:, None, None],
        WIDE,
        {"data_format": "NCHW"},
        id="bias_add-first",
    ),
    Row(
        "gather",
        "nn.embedding_lookup",
        [(5, 3), (2, 4)],
        lambda p, i: p[i],
        dtypes_per_operand=[None, dt.int32],
        domain=[(-3, 3), (0, 4)],
        id="embedding_lookup",
    ),
    Row(
        "gather",
        lambda p, i: tf.nn.embedding_lookup(p, i, max_norm=1.0),
        [(5, 3), (4,)],
        embedded,
        WIDE,
        dtypes_per_operand=[None, dt.int64],
        domain=[(0.5, 3), (0, 4)],
        ulps=8,
        id="embedding_lookup-norm",
    ),
]

ERRORS = [
    Bad("dropout: rate", lambda: tf.nn.dropout([1.0], 1.0), INVALID, "rate"),
    Bad("dropout: dtype", lambda: tf.nn.dropout([1], 0.5), INVALID, "int32"),
    Bad("dropout: noise", lambda: tf.nn.dropout([1.0], 0.5, noise_shape=[1, 1]), INVALID, "noise_shape"),
    Bad("softmax: scalar", lambda: tf.nn.softmax(1.0), INVALID, "rank"),
    Bad("softmax: axis", lambda: tf.nn.softmax([1.0], axis=1), INVALID, "axis"),
    Bad("softmax: dtype", lambda: tf.nn.softmax([1]), INVALID, "int32"),
    Bad("sparse: range", lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([2], [[1.0, 2.0]]), INVALID, "label"),
    Bad(
        "sparse: negative", lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([-1], [[1.0, 2.0]]), INVALID, "label"
    ),
    Bad(
        "sparse: shapes", lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([1, 1], [[1.0, 2.0]]), INVALID, "shape"
    ),
    Bad(
        "sparse: labels",
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([1.0], [[1.0, 2.0]]),
        INVALID,
        "integer",
    ),
    Bad("sigmoid: shapes", lambda: tf.nn.sigmoid_cross_entropy_with_logits([1.0], [1.0, 2.0]), INVALID, "same shape"),
    Bad("sigmoid: missing", lambda: tf.nn.sigmoid_cross_entropy_with_logits(logits=[1.0]), INVALID, "labels"),
    Bad("moments: axis", lambda: tf.nn.moments([1.0], [1]), INVALID, "axis"),
    Bad("bias_add: size", lambda: tf.nn.bias_add([[1.0, 2.0]], [1.0]), INVALID, "bias_add"),
    Bad("bias_add: format", lambda: tf.nn.bias_add([[1.0]], [1.0], "XYZ"), INVALID, "data_format"),
    Bad("embedding: range", lambda: tf.nn.embedding_lookup([[1.0]], [1]), INVALID, "gather"),
    Bad("lrn: rank", lambda: tf.nn.local_response_normalization([1.0]), INVALID, "rank 4"),
    Bad("fused_batch_norm: rank", lambda: tf.nn.fused_batch_norm([1.0], [1.0], [1.0]), INVALID, "rank 4 or 5"),
]
