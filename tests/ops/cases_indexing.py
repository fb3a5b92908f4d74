"""Cases of the indexing family: slices, gather, scatter, masks, tf.linalg."""

from __future__ import annotations

import numpy as np
from ops.case import Bad, Case

import twofold as tf
from twofold.ir import dtypes as dt

INVALID = tf.errors.InvalidArgumentError
INT32, INT64 = [None, dt.int32], [None, dt.int64]
S = slice
KEYS = {
    "int": (1,), "last": (-1,), "slice": (S(1, None),), "negative": (S(None, -1), S(-2, None)),
    "step": (S(None, None, 2),), "back": (S(None, None, -1), Ellipsis, S(3, None, -2)),
    "new": (None, S(None), None, 0), "ellipsis": (Ellipsis, 1),
    "beyond": (S(1, 99), S(-99, 2)),
    "empty": (S(2, 1),), "all": (1, 2, 3)}


def taken(x, i, axis=0):
    return np.take(x, i, axis)


def gathered(x, i):
    """gather(axis=2, batch_dims=1)"""
    return np.stack([np.take(x[b], i[b], 1) for b in range(len(x))])


def added(base, i, updates):
    """scatter_add(axis=1)"""
    out = base.copy()
    np.add.at(out, (slice(None), i), updates)
    return out


def scattered(i, u, shape):
    out = np.zeros(shape, u.dtype)
    np.add.at(out, tuple(np.moveaxis(i, -1, 0)), u)
    return out


def combined(ufunc):
    """An oracle: `ufunc` at every place in order."""
    def oracle(x, i, u):
        out = x.copy()
        ufunc.at(out, tuple(np.moveaxis(i, -1, 0)), u)
        return out
    return oracle


def updated(x, i, u):
    out = x.copy()
    for row, value in zip(i.reshape(-1, i.shape[-1]), u.reshape(-1, *u.shape[i.ndim - 1:]), strict=True):
        out[tuple(row)] = value
    return out


def assigned(x, v):
    out = x.copy()
    out[::-2, 1:] = v
    return out


def apart(rng, shape):
    """Values that no two of are near each other."""
    return rng.permutation(int(np.prod(shape))).reshape(shape) * 0.37 + rng.uniform(0, 50)


def rows_of(i):
    """A domain of coordinates: given once and for all."""
    return lambda rng, shape: np.array(i)


SCATTER = {"shapes": [(4, 3), (3, 1), (3, 3)], "dtypes_per_operand": [None, dt.int32, None], "grad": (0, 2),
           "domain": [(-3, 3), rows_of([[2], [0], [2]]), (-3, 3)]}
EXTREMUM = {**SCATTER, "domain": [apart, rows_of([[2], [0], [3]]), apart]}

CASES = [
    *[Case("strided_slice", lambda x, key=key: x[key], [(3, 4, 5)], lambda x, key=key: x[key], dt.ALL,
           id=f"index-{name}") for name, key in KEYS.items()],
    Case("strided_slice", "strided_slice", [(3, 4, 5)], lambda x: x[:2, None, ..., 4], dt.ALL,
         {"begin": [1, 0, 0, 4], "end": [2, 9, 9, 9], "strides": [1, 1, 1, 1], "begin_mask": 1, "new_axis_mask": 2,
          "ellipsis_mask": 4, "shrink_axis_mask": 8}, {}, id="strided_slice"),
    Case("strided_slice", "strided_slice", [(5, 4)], lambda x: x[4:0:-2, 1:], dt.ALL,
         {"begin": [4, 1], "end": [0, 2], "strides": [-2, 1], "end_mask": 2}, {}, id="strided_slice-back"),
    Case("slice", "slice", [(3, 4)], lambda x: x[1:, 1:3], dt.ALL, {"begin": [1, 1], "size": [-1, 2]}, {}),
    Case("slice", "slice", [(3, 4)], lambda x: x[3:, 1:1], dt.ALL, {"begin": [3, 1], "size": [0, 0]}, {},
         id="slice-empty"),
    Case("strided_slice_assign", "ops.strided_slice_assign", [[(5, 4), (3, 3)], [(5, 4), ()], [(4, 2), (2, 1)]],
         assigned, dt.ALL, {"spec": ((None, None, -2), (1, None, None))}, {}),
    # -- gather
    Case("gather", "gather", [[(4, 3), (2, 2)], [(4,), ()], [(4, 0), (3,)]], taken, dt.ALL, domain=[(-3, 3), (0, 3)],
         dtypes_per_operand=INT32, grad=(0,)),
    Case("gather", "gather", [(2, 4, 3), (5,)], taken, dt.ALL, {"axis": 1}, domain=[(-3, 3), (0, 3)],
         dtypes_per_operand=INT64, grad=(0,), id="gather-axis"),
    Case("gather", "gather", [(2, 4), (3,)], taken, dt.FLOATING, {"axis": -1}, domain=[(-3, 3), (0, 3)],
         dtypes_per_operand=[None, dt.uint8], grad=(0,), id="gather-last"),
    Case("gather", "gather", [(2, 3, 4, 2), (2, 5)], gathered, dt.ALL, {"axis": 2, "batch_dims": 1}, {},
         domain=[(-3, 3), (0, 3)], dtypes_per_operand=INT64, grad=(0,), id="gather-batch"),
    Case("scatter_add", "ops.scatter_add", [(2, 4, 3), (5,), (2, 5, 3)], added, dt.NUMERIC, {"axis": 1}, {},
         domain=[(-3, 3), (0, 3), (-3, 3)], dtypes_per_operand=[None, dt.int32, None], grad=(0, 2), atol=8, ulps=2),
    Case("gather_nd", "gather_nd", [[(3, 4, 2), (5, 2)], [(3, 4), (2, 5, 1)], [(3, 3), (2,)], [(4,), (2, 0)]],
         lambda x, i: x[tuple(np.moveaxis(i, -1, 0))] if i.shape[-1] else np.broadcast_to(x, (*i.shape[:-1], *x.shape)),
         dt.ALL, domain=[(-3, 3), (0, 2)], dtypes_per_operand=INT32, grad=(0,)),
    Case("gather_nd", "gather_nd", [(2, 3, 4), (2, 5, 1)], lambda x, i: np.stack([x[b][i[b, :, 0]] for b in range(2)]),
         dt.ALL, {"batch_dims": 1}, {}, domain=[(-3, 3), (0, 2)], dtypes_per_operand=INT64, grad=(0,),
         id="gather_nd-batch"),
    # -- scatter
    Case("scatter_nd", "scatter_nd", [[(5, 1), (5, 3)], [(2, 2, 2), (2, 2)], [(0, 1), (0, 3)]],
         lambda i, u, shape: scattered(i, u, shape), dt.NUMERIC, {"shape": (4, 3)}, domain=[(0, 2), (-3, 3)],
         dtypes_per_operand=[dt.int32, None], grad=(1,), atol=8, ulps=2),
    Case("tensor_scatter", "tensor_scatter_nd_update", oracle=updated, dtypes=dt.ALL, id="update", **SCATTER),
    Case("tensor_scatter", "tensor_scatter_nd_add", oracle=combined(np.add), dtypes=dt.NUMERIC, id="scatter-add",
         atol=8, ulps=2, **SCATTER),
    Case("tensor_scatter", "tensor_scatter_nd_sub", oracle=combined(np.subtract), dtypes=dt.NUMERIC, id="scatter-sub",
         atol=8, ulps=2, **SCATTER),
    Case("tensor_scatter", "tensor_scatter_nd_min", oracle=combined(np.minimum), dtypes=dt.REAL, id="scatter-min",
         **EXTREMUM),
    Case("tensor_scatter", "tensor_scatter_nd_max", oracle=combined(np.maximum), dtypes=dt.REAL, id="scatter-max",
         **EXTREMUM),
    # -- conditions
    Case("nonzero", "where", [[(4, 5)], [()], [(0, 3)], [(2, 3, 2)]], lambda c: np.argwhere(c), dt.ALL, domain=(0, 1),
         grad=False),
    Case(("nonzero", "gather"), lambda x: tf.boolean_mask(x, [[True, False, True], [False, False, True]]), [(2, 3, 2)],
         lambda x: x[[0, 0, 1], [0, 2, 2]], dt.ALL, id="boolean_mask"),
    Case("gather", lambda x: tf.boolean_mask(x, [True, False, True], axis=1), [(2, 3, 2)], lambda x: x[:, [0, 2]],
         dt.ALL, id="boolean_mask-axis"),
    Case("gather", lambda x: x[tf.constant([True, False, True])], [(3, 2)], lambda x: x[[0, 2]], dt.ALL,
         id="index-mask"),
    Case("where", lambda c, x: tf.where(c, x, 0), [(2, 3), (3,)], lambda c, x: np.where(c, x, 0), dt.NUMERIC,
         dtypes_per_operand=[dt.bool_, None], grad=(1,), elementwise=False, id="where-number"),
    Case("gather", lambda x: tf.dynamic_partition(x, [1, 0, 1, 2], 4), [(4, 2)],
         lambda x: (x[1:2], x[::2], x[3:], x[:0]), dt.ALL, id="dynamic_partition"),
    Case("tensor_scatter", lambda x, y: tf.dynamic_stitch([[0, 3], [[1, 0]]], [x, y]), [(2, 2), (1, 2, 2)],
         lambda x, y: np.stack([y[0, 1], y[0, 0], np.zeros_like(x[0]), x[1]]), dt.ALL, id="dynamic_stitch"),
    # -- diagonals
    Case("strided_slice", "linalg.diag_part", [[(2, 3, 4)], [(4, 3)], [(0, 0)]],
         lambda x: np.diagonal(x, axis1=-2, axis2=-1), dt.ALL, id="diag_part"),
    Case("strided_slice", "linalg.diag_part", [(2, 3, 4)], lambda x, k: np.diagonal(x, k, -2, -1), dt.ALL, {"k": 2},
         id="diag_part-above"),
    Case("pad", "linalg.diag_part", [(3, 4)],
         lambda x: np.array([[0, x[0, 2], x[1, 3]], np.diagonal(x, 1), np.diagonal(x), [x[1, 0], x[2, 1], 0]]), dt.ALL,
         {"k": (-1, 2)}, {}, id="diag_part-several"),
    Case("strided_slice_assign", "linalg.diag", [[(2, 3)], [(3,)]],
         lambda x: x[..., None] * np.eye(x.shape[-1], dtype=x.dtype), dt.ALL, id="diag"),
    Case("strided_slice_assign", "linalg.diag", [(2,)], lambda x: np.array([[0, x[0], 0], [0, 0, x[1]]]), dt.NUMERIC,
         {"k": 1, "num_rows": 2}, {}, id="diag-above"),
    Case("strided_slice_assign", "linalg.set_diag", [(2, 3), (2,)],
         lambda x, d: np.where(np.eye(2, 3, dtype=bool), d[:, None], x), dt.ALL, id="set_diag"),
    Case("strided_slice_assign", "linalg.set_diag", [(3, 3), (2, 3)],
         lambda x, d: np.array([[x[0, 0] * 0 + d[0, 0], x[0, 1], x[0, 2]], [d[1, 0], d[0, 1], x[1, 2]],
                                [x[2, 0], d[1, 1], d[0, 2]]]), dt.NUMERIC, {"k": (-1, 0)}, {}, id="set_diag-several"),
    Case("strided_slice_assign", "linalg.tensor_diag", [[(2, 2)], [(3,)]],
         lambda x: (x.reshape(-1, 1) * np.eye(x.size, dtype=x.dtype)).reshape(x.shape * 2), dt.ALL, id="tensor_diag"),
    Case("strided_slice", "linalg.tensor_diag_part", [[(2, 3, 2, 3)], [(3, 3)]],
         lambda x: x.reshape(int(x.size ** 0.5), -1).diagonal().reshape(x.shape[:x.ndim // 2]), dt.ALL,
         id="tensor_diag_part"),
    Case("where", "linalg.band_part", [(2, 4, 5)], lambda x: np.triu(np.tril(x, 2), -1), dt.ALL,
         {"num_lower": 1, "num_upper": 2}, {}, elementwise=False, id="band_part"),
]

ERRORS = [
    Bad("index: bounds", lambda: tf.ones([3])[5], INVALID, "slice index 5 of dimension 0 out of bounds"),
    Bad("index: negative", lambda: tf.ones([3])[-4], INVALID, "slice index -4 of dimension 0 out of bounds"),
    Bad("index: many", lambda: tf.ones([3])[0, 0], INVALID, "input has only 1 dims"),
    Bad("index: step", lambda: tf.ones([3])[::0], INVALID, r"strides\[0\] must be non-zero"),
    Bad("index: list", lambda: tf.ones([3])[[[0, 1]]], TypeError, "Only integers, slices"),
    Bad("index: float", lambda: tf.ones([3])[1.0], TypeError, "Only integers, slices"),
    Bad("index: vector", lambda: tf.ones([3])[tf.constant([0])], TypeError, "Only integers, slices"),
    Bad("index: ellipses", lambda: tf.ones([3])[..., ...], ValueError, "Multiple ellipses"),
    Bad("index: mask", lambda: tf.ones([3])[tf.constant([True])], ValueError, "incompatible"),
    Bad("index: bool", lambda: tf.ones([3])[True], ValueError, "mask cannot be scalar"),
    Bad("slice: begin", lambda: tf.slice(tf.ones([3]), [4], [0]), INVALID, r"Expected begin\[0\] in \[0, 3\]"),
    Bad("slice: size", lambda: tf.slice(tf.ones([3]), [1], [3]), INVALID, r"Expected size\[0\] in \[0, 2\]"),
    Bad("slice: rank", lambda: tf.slice(tf.ones([3]), [1, 0], [1, 1]), INVALID, "slice: begin and size"),
    Bad("gather: index", lambda: tf.gather(tf.ones([3]), [[0], [7]]), INVALID,
        r"indices\[1,0\] = 7 is not in \[0, 3\)"),
    Bad("gather: negative", lambda: tf.gather(tf.ones([3]), -1), INVALID, r"indices = -1 is not in \[0, 3\)"),
    Bad("gather: of none", lambda: tf.gather(tf.ones([0, 2]), [0]), INVALID, r"indices\[0\] = 0 is not in \[0, 0\)"),
    Bad("gather: axis", lambda: tf.gather(tf.ones([3]), [0], axis=1), INVALID, "gather: axis 1"),
    Bad("gather: dtype", lambda: tf.gather(tf.ones([3]), [0.0]), INVALID, "gather: indices has dtype float32"),
    Bad("gather: batch", lambda: tf.gather(tf.ones([3, 2]), tf.zeros([2, 1], tf.int32), batch_dims=1), INVALID,
        "batch"),
    Bad("gather_nd: index", lambda: tf.gather_nd(tf.ones([3, 2]), [[0, 2]]), INVALID,
        r"indices\[0\] = \[0, 2\] does not index into shape \[3, 2\]"),
    Bad("gather_nd: depth", lambda: tf.gather_nd(tf.ones([3]), [[0, 2]]), INVALID, "innermost dimension length"),
    Bad("scatter_nd: index", lambda: tf.scatter_nd([[4]], [1.0], [4]), INVALID,
        r"indices\[0\] = \[4\] does not index into shape \[4\]"),
    Bad("scatter_nd: updates", lambda: tf.scatter_nd([[1]], [1.0, 2.0], [4]), INVALID, r"updates have shape \[2\]"),
    Bad("tensor_scatter: dtype", lambda: tf.tensor_scatter_nd_add(tf.ones([2]), [[0]], tf.constant([1])), INVALID,
        "dtypes"),
    Bad("tensor_scatter: bool", lambda: tf.tensor_scatter_nd_add([True], [[0]], [True]), INVALID, "has dtype bool"),
    Bad("scatter: policy", lambda: tf.scatter_nd([[1]], [1.0], [4], bad_indices_policy="IGNORE"), NotImplementedError,
        "IGNORE"),
    Bad("boolean_mask: shape", lambda: tf.boolean_mask(tf.ones([3]), [True]), ValueError, "incompatible"),
    Bad("where: one", lambda: tf.where([True], [1.0]), ValueError, "both be non-None"),
    Bad("dynamic_partition", lambda: tf.dynamic_partition([1, 2], [0, 2], 2), INVALID, r"not in \[0, 2\)"),
    Bad("diag_part: k", lambda: tf.linalg.diag_part(tf.ones([2, 2]), k=2), INVALID, "diagonal 2"),
    Bad("diag_part: rank", lambda: tf.linalg.diag_part(tf.ones([2])), INVALID, "at least 2-dim"),
    Bad("set_diag: shape", lambda: tf.linalg.set_diag(tf.ones([2, 2]), [1.0]), INVALID, "set_diag: diagonal has shape"),
    Bad("diag: size", lambda: tf.linalg.diag([1.0, 2.0], num_rows=1), INVALID, "do not fit a matrix"),
]
