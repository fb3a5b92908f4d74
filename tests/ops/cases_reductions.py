"""Cases of the reductions, scans and segments."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from ops.case import Bad, Case

import twofold as tf
from twofold._front.api import axis_arg
from twofold.ir import dtypes as dt
from twofold.ir import ops

INVALID = tf.errors.InvalidArgumentError
F = dt.FLOATING
WIDE = {dt.float32, dt.float64}
SHAPES = [[(3, 4, 5)], [(2, 0, 3)], [(1, 1, 1)], [(2, 40, 3)]]
AXES = ({}, {"axis": 1}, {"axis": (0, -1)}, {"axis": [2], "keepdims": True}, {"axis": ()})


# -- oracles ------------------------------------------------------------------------------------------
def over(fn, **extra):
    """An oracle out of a NumPy reduction."""
    def oracle(x, axis=None, keepdims=False, **kwargs):
        return fn(x, axis=tuple(axis) if isinstance(axis, (tuple, list)) else axis, keepdims=keepdims, **extra)
    return oracle


def mean(x, axis, keepdims):
    total = np.sum(x, axis=axis, keepdims=keepdims)
    count = int(np.prod([x.shape[a] for a in (range(x.ndim) if axis is None else np.atleast_1d(axis).astype(int))]))
    if x.dtype.kind not in "iu":
        return total / count if count else np.full_like(total, np.nan)
    count = max(count, 1)
    return np.sign(total) * (np.abs(total) // count) if x.dtype.kind == "i" else total // count


def extreme(fn, last):
    def oracle(x, axis, keepdims):
        limits = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
        worst = last * np.inf if limits is None else limits.min if last < 0 else limits.max
        return fn(x, axis=axis, keepdims=keepdims, initial=worst)
    return oracle


def logsumexp(x, axis, keepdims):
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else total.reshape(np.sum(x, axis=axis).shape)


def norm(x, axis, keepdims):
    length = np.sqrt(np.sum(np.abs(np.asarray(x, np.result_type(x, np.float64))) ** 2, axis=axis, keepdims=keepdims))
    return length.astype(x.dtype) if x.dtype.kind in "iuc" else length


def centred_variance(x, axis=None, keepdims=False):
    return ops.centred_variance(x, axis=axis_arg(axis, x), keepdims=keepdims)


def variance(x, axis, keepdims):
    return mean(np.abs(x - mean(x, axis, True)) ** 2, axis, keepdims)


def deviation(x, axis, keepdims):
    return np.sqrt(variance(x, axis, keepdims))


def scanned(fn, start):
    """An oracle out of a NumPy scan, with TensorFlow's exclusive and reverse."""
    def oracle(x, axis=0, exclusive=False, reverse=False):
        x = np.moveaxis(x, axis, 0)[::-1 if reverse else 1]
        out = fn(x)
        if exclusive:
            out = np.concatenate([np.full_like(out[:1], start), out[:-1]])
        return np.moveaxis(out[::-1 if reverse else 1], 0, axis)
    return oracle


def recurrence(a, b, axis=0, reverse=False):
    a, b = (np.moveaxis(v, axis, 0)[::-1 if reverse else 1] for v in (a, b))
    out, held = np.empty_like(b), 0
    for k in range(len(b)):
        held = a[k] * held + b[k]
        out[k] = held
    return np.moveaxis(out[::-1 if reverse else 1], 0, axis)


def segments(fn, count, empty, ids=None):
    """An oracle: `fn` over the rows of each segment."""
    def oracle(data, given=None, **kwargs):
        names = ids if given is None else given
        rest = data.shape[names.ndim:]
        rows, flat = data.reshape(-1, *rest), names.reshape(-1)
        size = count if count is not None else int(flat[-1]) + 1
        blank = empty(data.dtype) if callable(empty) else empty
        picked = [rows[flat == n] for n in range(size)]
        return np.array([fn(p, axis=0) if len(p) else np.full(rest, blank) for p in picked], data.dtype)
    return oracle


def all_ids(rng, shape):
    """Each of 0 to 3, and the -1 of rows that are dropped, as often as there is room."""
    return rng.permutation((np.arange(int(np.prod(shape))) + 1) % 5 - 1).reshape(shape)


def sorted_ids(rng, shape):
    return np.sort(rng.integers(0, 5, shape))


def some_zeros(rng, shape):
    x = rng.uniform(-2, 2, shape)
    return np.where(rng.random(shape) < 0.3, 0, x)


def apart(rng, shape):
    """Distinct numbers, each far enough from the next for finite differences."""
    return (rng.permutation(int(np.prod(shape))) / 7.0 - 2.0).reshape(shape)


# -- the table ----------------------------------------------------------------------------------------
def reductions():
    for attrs in AXES:
        def each(name, fn, oracle, attrs=attrs, **more):
            full = {"axis": None, "keepdims": False, **attrs}
            full["axis"] = tuple(full["axis"]) if isinstance(full["axis"], (list, tuple)) else full["axis"]
            label = f"{name}-{full['axis']}-{full['keepdims']}"
            return Case(name, fn, SHAPES, oracle, kwargs=attrs, oracle_kwargs=full, id=label, **more)

        yield each("reduce_sum", "reduce_sum", over(np.sum), dtypes=dt.NUMERIC, ulps=2, atol=64,
                   special=[np.inf, -np.inf, np.nan])
        yield each("reduce_mean", "reduce_mean", mean, dtypes=dt.NUMERIC, ulps=4, atol=4)
        yield each("reduce_prod", "reduce_prod", over(np.prod), dtypes=dt.NUMERIC, ulps=80, half_ulps=1,
                   domain=(-1.5, 1.5), grad_domain=some_zeros)
        yield each("reduce_max", "reduce_max", extreme(np.max, -1), dtypes=dt.REAL, special=[np.inf, -np.inf, np.nan],
                   grad_domain=apart)
        yield each("reduce_min", "reduce_min", extreme(np.min, 1), dtypes=dt.REAL, special=[np.inf, -np.inf, np.nan],
                   grad_domain=apart)
        yield each("reduce_any", "reduce_any", over(np.any), dtypes=dt.BOOL, grad=False)
        yield each("reduce_all", "reduce_all", over(np.all), dtypes=dt.BOOL, grad=False)
        yield each("reduce_logsumexp", "reduce_logsumexp", logsumexp, dtypes=F, ulps=2, atol=2,
                   special=[np.inf, -np.inf, np.nan])
        yield each("reduce_euclidean_norm", "math.reduce_euclidean_norm", norm, dtypes=dt.NUMERIC, ulps=4,
                   domain=(-5, 5), grad_domain=(0.5, 3))
        yield each("count_nonzero", "math.count_nonzero", over(np.count_nonzero), dtypes=dt.ALL, domain=(-1, 1),
                   grad=False, result=dt.int64)
        yield each("centred_variance", centred_variance, variance, dtypes=F, ulps=8, atol=32, half_ulps=1)
        yield each(("reduce_mean", "centred_variance"), "math.reduce_variance", variance, dtypes=WIDE, ulps=8, atol=8)
        if attrs != {"axis": ()}:  # the deviation of one number is zero, but for rounding
            yield each(("reduce_mean", "sqrt"), "math.reduce_std", deviation, dtypes=F, ulps=8, atol=8,
                       half_ulps=4)
    yield Case(("reduce_mean", "centred_variance"), "math.reduce_variance", SHAPES[:1], over(np.var), dtypes=dt.COMPLEX,
               ulps=8)
    for rows in (4095, 4096, 4097, 12289):  # about the size of a chunk
        yield Case("reduce_sum", "reduce_sum", [(rows,)], math.fsum, dtypes=WIDE, ulps=2, atol=1024)
        yield Case("reduce_max", "reduce_max", [(rows, 2)], over(np.max), kwargs={"axis": 0}, grad_domain=apart)
        yield Case("argmax", "argmax", [(2, rows)], over(np.argmax), kwargs={"axis": 1}, grad=False)


def places():
    for name, fn in (("argmax", np.argmax), ("argmin", np.argmin)):
        for axis in (0, 1, -1):
            yield Case(name, name, [[(3, 4, 5)], [(1, 2, 3)], [(2, 100, 2)]], over(fn), dtypes=dt.REAL | dt.BOOL,
                       kwargs={"axis": axis}, grad=False, special=[np.nan, np.inf, -np.inf], result=dt.int64)
        yield Case(name, name, [[(50,)], [(1,)]], over(fn), dtypes={dt.int8, dt.float32, dt.float16}, domain=(-3, 3),
                   kwargs={"output_type": tf.int32}, oracle_kwargs={}, grad=False, result=dt.int32)


def scans():
    for axis in (0, 1, -1):
        for exclusive in (False, True):
            for reverse in (False, True):
                kwargs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
                shapes = [[(3, 4, 5)], [(2, 70, 2)], [(1, 1, 0)]]
                yield Case("cumsum", "cumsum", shapes, scanned(lambda x: np.cumsum(x, 0), 0), kwargs=kwargs,
                           dtypes=dt.NUMERIC, ulps=2, atol=128)
                yield Case("cumprod", "math.cumprod", shapes, scanned(lambda x: np.cumprod(x, 0), 1), kwargs=kwargs,
                           dtypes=dt.NUMERIC, ulps=150, half_ulps=1, domain=(-1.5, 1.5), grad_domain=some_zeros)
                sums = scanned(lambda x: np.logaddexp.accumulate(x, 0), -np.inf)
                if not exclusive:
                    yield Case("cumulative_logsumexp", "math.cumulative_logsumexp", shapes, sums, kwargs=kwargs,
                               dtypes=F, ulps=8, atol=8, half_ulps=1, special=[-np.inf])
                # of its exponential, which is finite at the open end
                yield Case(("cumulative_logsumexp", "exp"),
                           lambda x, **kw: tf.exp(tf.math.cumulative_logsumexp(x, **kw)), shapes,
                           lambda x, sums=sums, **kw: np.exp(sums(x, **kw)), kwargs=kwargs, dtypes=WIDE, ulps=16,
                           atol=8)
    for axis in (0, 1):
        for reverse in (False, True):
            yield Case("linear_recurrence", "ops.linear_recurrence", [[(4, 3), (4, 3)], [(2, 5, 3), (2, 5, 3)]],
                       recurrence, kwargs={"axis": axis, "reverse": reverse}, dtypes=dt.NUMERIC, ulps=8, atol=32,
                       half_ulps=1, domain=(-1.2, 1.2))


def _is_limit(kind, limit, data, ids):
    extremes = getattr(tf.math, f"unsorted_segment_{kind}")(data, ids, 9)
    return tf.equal(extremes, getattr(data.dtype, limit))


def segmented():
    kinds = (("sum", np.sum, 0), ("prod", np.prod, 1), ("max", np.max, 0), ("min", np.min, 0))
    for kind, fn, empty in kinds:
        extreme = kind in ("max", "min")
        domain = apart if extreme else some_zeros
        common = {"dtypes": dt.REAL if extreme else dt.NUMERIC, "ulps": 4, "atol": 16, "half_ulps": 1, "grad": (0,)}
        for shapes in ([(6, 3), (6,)], [(5,), (5,)], [(7, 300), (7,)]):
            yield Case(f"segment_{kind}", f"math.segment_{kind}", shapes, segments(fn, None, empty),
                       dtypes_per_operand=[None, dt.int32], domain=[(-3, 3), sorted_ids],
                       grad_domain=[domain, sorted_ids], **common)
        for shapes in ([(6, 2), (6,)], [(2, 3), (2, 3)], [(7, 300), (7,)]):
            yield Case(f"unsorted_segment_{kind}", f"math.unsorted_segment_{kind}", shapes, segments(fn, 4, empty),
                       kwargs={"num_segments": 4}, dtypes_per_operand=[None, dt.int64],
                       domain=[(-3, 3), all_ids], grad_domain=[domain, all_ids], **common)
    for kind, limit in (("max", "min"), ("min", "max")):  # what a segment without rows holds
        yield Case((f"unsorted_segment_{kind}", "equal"), partial(_is_limit, kind, limit), [(3, 2), (3,)],
                   lambda data, ids: np.tile(np.arange(9)[:, None] > 2, 2), dtypes=dt.REAL, grad=False,
                   dtypes_per_operand=[None, dt.int32], domain=[(1, 3), all_ids])
    for name, fn in (("mean", np.mean), ("sqrt_n", lambda x, axis: np.sum(x, axis) / np.sqrt(len(x)))):
        yield Case(("unsorted_segment_sum", "divide"), f"math.unsorted_segment_{name}", [(6, 2), (6,)],
                   segments(fn, 6, 0), kwargs={"num_segments": 6}, dtypes=WIDE, ulps=4, atol=8,
                   dtypes_per_operand=[None, dt.int32], domain=[(-3, 3), all_ids], grad=(0,))
    yield Case(("segment_sum", "divide"), "math.segment_mean", [(6, 2), (6,)], segments(np.mean, None, 0), dtypes=WIDE,
               ulps=4, atol=8, dtypes_per_operand=[None, dt.int32], domain=[(-3, 3), sorted_ids], grad=(0,))


def multiplied(rows, columns, values, dense, size):
    matrix = np.zeros((size, len(dense)))
    np.add.at(matrix, (rows, columns), values)
    return matrix @ dense


def dots(rows, columns, left, right):
    return np.sum(left[rows] * right[columns], axis=1)


def sparse():
    """Elements in the order of their rows, and in any order, also of more elements than a block has."""
    for rows, shapes, size in ((sorted_ids, [[(7,), (7,), (7,), (5, 3)], [(0,), (0,), (0,), (2, 3)]], 6),
                               (sorted_ids, [(4200,), (4200,), (4200,), (5, 1)], 5),
                               (lambda rng, shape: all_ids(rng, shape) % 4, [(9,), (9,), (9,), (5, 40)], 4)):
        yield Case("sparse_matmul", "ops.sparse_matmul", shapes, multiplied, kwargs={"size": size}, dtypes=WIDE, ulps=4,
                   atol=2048, dtypes_per_operand=[dt.int64, dt.int64, None, None], grad=(2, 3) if size != 5 else False,
                   domain=[rows, sorted_ids, (-3, 3), (-3, 3)])
    for shapes, grad in (([[(7,), (7,), (5, 3), (4, 3)], [(0,), (0,), (2, 3), (2, 3)]], (2, 3)),
                         ([(9,), (9,), (4, 70), (4, 70)], False)):
        yield Case("sparse_dots", "ops.sparse_dots", shapes, dots, dtypes=WIDE, ulps=4, atol=256, grad=grad,
                   dtypes_per_operand=[dt.int64, dt.int64, None, None],
                   domain=[*[lambda rng, shape: all_ids(rng, shape) % 4] * 2, (-3, 3), (-3, 3)])


# -- bins ---------------------------------------------------------------------------------------------
def counted(values, weights, minlength=0, maxlength=None, **kwargs):
    if values.ndim == 2:
        size = max(values.max() + 1, minlength)
        size = size if maxlength is None else min(size, maxlength)
        return np.array([counted(v, w, size, size) for v, w in zip(values, weights, strict=True)])
    keep = values < (maxlength if maxlength is not None else values.max(initial=0) + 1)
    return np.bincount(values[keep], weights[keep], minlength).astype(weights.dtype)


def bins():
    for kwargs in ({}, {"minlength": 9}, {"maxlength": 3}):
        for shape in ((7,), (3, 5)):
            yield Case("bincount", "ops.bincount", [shape, shape], counted, dtypes=dt.REAL, kwargs=kwargs,
                       dtypes_per_operand=[dt.int32, None], domain=[(0, 5), (-2, 2)], grad=(1,), ulps=4, atol=8,
                       half_ulps=1)
    yield Case("bincount", "math.bincount", [(40,)], np.bincount, dtypes=dt.INTEGER, domain=(0, 9), grad=False,
               result=dt.int32)
    yield Case("bincount", "math.bincount", [(3, 5)],
               lambda x, **kw: (counted(x, np.ones(x.shape)) > 0).astype(np.int32), dtypes=dt.int64, domain=(0, 6),
               kwargs={"axis": -1, "binary_output": True}, grad=False)
    yield Case("unsorted_segment_sum", "histogram_fixed_width", [(50,)],
               lambda x, value_range, nbins: np.histogram(np.clip(x, -2, 1), nbins, value_range)[0],
               kwargs={"value_range": [-2.0, 1.0], "nbins": 7}, dtypes=WIDE, grad=False)
    yield Case("unsorted_segment_sum", "math.confusion_matrix", [(9,), (9,)], confused, dtypes=dt.int32, domain=(0, 3),
               kwargs={"num_classes": 4}, grad=False)


def confused(labels, predictions, num_classes):
    out = np.zeros((num_classes, num_classes), np.int32)
    np.add.at(out, (labels, predictions), 1)
    return out


CASES = [*reductions(), *places(), *scans(), *segmented(), *sparse(), *bins()]


def ones(*shape, dtype=tf.float32):
    return tf.ones(shape, dtype)


ERRORS = [
    Bad("reduce_sum: axis", lambda: tf.reduce_sum(ones(2, 3), 2), INVALID, match="reduce_sum.*axis 2"),
    Bad("reduce_sum: twice", lambda: tf.reduce_sum(ones(2, 3), [1, -1]), INVALID, match="twice"),
    Bad("reduce_sum: bool", lambda: tf.reduce_sum(ones(2, dtype=tf.bool)), TypeError, match="bool"),
    Bad("reduce_mean: string", lambda: tf.reduce_mean(["a"]), TypeError, match="string"),
    Bad("reduce_max: complex", lambda: tf.reduce_max(ones(2, dtype=tf.complex64)), INVALID, match="complex64"),
    Bad("reduce_any: int", lambda: tf.reduce_any([1, 0]), TypeError, match="int32"),
    Bad("reduce_sum: axis type", lambda: tf.reduce_sum(ones(2), 0.5), TypeError, match="axis"),
    Bad("reduce_variance: int", lambda: tf.math.reduce_variance([1, 2]), TypeError, match="int32"),
    Bad("argmax: empty", lambda: tf.argmax(ones(2, 0), 1), INVALID, match="empty"),
    Bad("argmax: scalar", lambda: tf.argmax(1.0), INVALID, match="axis"),
    Bad("argmax: output", lambda: tf.argmax([1.0], output_type=tf.float32), INVALID, match="float32"),
    Bad("cumsum: axis", lambda: tf.cumsum(ones(2), 1), INVALID, match="cumsum.*axis 1"),
    Bad("cumsum: scalar", lambda: tf.cumsum(1.0), INVALID, match="axis"),
    Bad("cumprod: bool", lambda: tf.math.cumprod([True]), TypeError, match="bool"),
    Bad("segment_sum: falls", lambda: tf.math.segment_sum(ones(3), [0, 2, 1]), INVALID, match="fall"),
    Bad("segment_sum: negative", lambda: tf.math.segment_sum(ones(2), [-1, 0]), INVALID, match="negative"),
    Bad("segment_sum: size", lambda: tf.math.segment_sum(ones(2), [0, 0, 0]), INVALID, match="shape"),
    Bad("segment_max: float ids", lambda: tf.math.segment_max(ones(2), [0.0, 1.0]), TypeError, match="float32"),
    Bad("sparse: column", lambda: tf.sparse.sparse_dense_matmul(
        tf.SparseTensor([[0, 0], [1, 2]], [1.0, 1.0], [2, 2]), ones(2, 2)), INVALID, match="= 2 is not in"),
    Bad("unsorted: beyond", lambda: tf.math.unsorted_segment_sum(ones(2), [0, 3], 3), INVALID, match="num_segments"),
    Bad("unsorted: count", lambda: tf.math.unsorted_segment_sum(ones(2), [0, 1], -3), INVALID, match="-3"),
    Bad("bincount: negative", lambda: tf.math.bincount([1, -1]), INVALID, match="negative"),
    Bad("bincount: axis", lambda: tf.math.bincount([1], axis=1), ValueError, match="axis"),
    Bad("bincount: shapes", lambda: tf.math.bincount([1, 2], weights=[[1.0]]), INVALID, match="shape"),
    Bad("histogram: range", lambda: tf.histogram_fixed_width([1.0], [1.0, 1.0]), INVALID, match="rise"),
    Bad("confusion_matrix", lambda: tf.math.confusion_matrix([0, 5], [1, 1], 3), INVALID, match="0 to 2"),
]
