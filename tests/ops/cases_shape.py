"""Cases of the shape family: arranging, joining, creating. Slices and gathers are in `cases_indexing.py`."""

from __future__ import annotations

import numpy as np
from ops.case import Bad, Case

import twofold as tf
from twofold.ir import dtypes as dt

INVALID = tf.errors.InvalidArgumentError


def tiled(x, multiples):
    return np.tile(x, multiples)


def space_to_batch(x):
    x = np.pad(x, ((0, 0), (0, 0), (1, 0)))
    return np.concatenate([x[:, i::2, j::2] for i in range(2) for j in range(2)])


CASES = [
    Case("reshape", "reshape", [[(2, 6)], [(0, 6)], [(12,)]], lambda x, shape: x.reshape(x.size // 3, 3), dt.ALL,
         {"shape": [-1, 3]}),
    Case("reshape", "reshape", [(0, 6)], lambda x, shape: x.reshape(0, 2, 3), dt.ALL, {"shape": (0, 2, -1)},
         id="reshape-nothing"),  # as TensorFlow finds the size left open
    Case("reshape", "reshape", [()], lambda x, shape: x.reshape(1, 1), dt.ALL, {"shape": (1, 1)}, id="reshape-scalar"),
    Case("transpose", "transpose", [[(2, 3, 4)], [(0, 3)], [()], [(5,)]], np.transpose, dt.ALL),
    Case("transpose", "transpose", [(2, 3, 4)], lambda x, perm: np.transpose(x, perm), dt.ALL, {"perm": [2, 0, 1]},
         id="transpose-perm"),
    Case(("transpose", "conj"), "transpose", [(2, 3)], lambda x: x.conj().T, dt.COMPLEX, {"conjugate": True},
         oracle_kwargs={}, id="transpose-conjugate"),
    Case("expand_dims", "expand_dims", [[(2, 3)], [()], [(0,)]], np.expand_dims, dt.ALL, {"axis": -1}),
    Case("expand_dims", "ops.expand_dims", [(2, 3)], np.expand_dims, dt.ALL, {"axis": (0, 2)},
         id="expand_dims-several"),
    Case("squeeze", "squeeze", [[(2, 1, 3, 1)], [(1, 1)], [(2,)], [(0, 1)]], np.squeeze, dt.ALL),
    Case("squeeze", "squeeze", [(2, 1, 3, 1)], lambda x, axis: np.squeeze(x, tuple(axis)), dt.ALL, {"axis": [1, -1]},
         id="squeeze-axis"),
    Case("broadcast_to", "broadcast_to", [[(3, 1)], [(2, 1, 4)], [()], [(4,)]],
         lambda x, shape: np.broadcast_to(x, shape), dt.ALL, {"shape": (2, 3, 4)}),
    Case("fill", lambda x: tf.fill([2, 3], x), [()], lambda x: np.full((2, 3), x), dt.ALL),
    Case("fill", lambda x: tf.zeros_like(x), [[(2, 3)], [()]], np.zeros_like, dt.ALL, grad=False, result=lambda d: d,
         id="zeros_like"),
    Case("fill", lambda x: tf.ones_like(x, tf.int16), [(2, 3)], lambda x: np.ones(x.shape, np.int16), dt.ALL,
         grad=False, id="ones_like"),
    Case("shape", "shape", [[(2, 3)], [()], [(0, 4)]], lambda x, out_type: np.array(x.shape, np.int64), dt.ALL,
         {"out_type": tf.int64}, grad=False),
    Case("size", "size", [[(2, 3)], [()], [(0, 4)]], lambda x: np.array(x.size, np.int32), dt.ALL, grad=False),
    Case(("broadcast_to", "reshape"), "tile", [(2, 3)], tiled, dt.ALL, {"multiples": [2, 3]}, id="tile"),
    Case("broadcast_to", "tile", [[(2, 3)], [(0, 3)]], tiled, dt.ALL, {"multiples": [0, 1]}, id="tile-none"),
    Case("broadcast_to", "repeat", [(2, 3)], np.repeat, dt.ALL, {"repeats": 2, "axis": 1}, id="repeat"),
    Case("gather", "repeat", [(2, 3)], np.repeat, dt.ALL, {"repeats": [2, 0, 3], "axis": -1}, id="repeat-each"),
    Case("broadcast_to", "repeat", [(2, 3)], np.repeat, dt.ALL, {"repeats": 2}, id="repeat-flat"),
    # -- joining
    Case("concat", lambda *v, axis: tf.concat(v, axis), [[(2, 3), (2, 1), (2, 4)], [(1, 3), (1, 0), (1, 1)], [(2, 3)]],
         lambda *v, axis: np.concatenate(v, axis), dt.ALL, {"axis": -1}),
    Case("concat", lambda *v: tf.concat(v, 0), [[(2, 3, 2), (1, 3, 2)], [(0, 2), (3, 2)]], lambda *v: np.concatenate(v),
         dt.ALL, id="concat-first"),
    Case("concat", lambda *v, axis: tf.stack(v, axis), [[(2, 3), (2, 3)], [(0, 3), (0, 3)]],
         lambda *v, axis: np.stack(v, axis), dt.ALL, {"axis": -2}, id="stack"),
    Case("concat", lambda *v: tf.stack(v), [(), (), ()], lambda *v: np.stack(v), dt.ALL, id="stack-scalars"),
    Case("strided_slice", "unstack", [(3, 2)], lambda x, axis: tuple(x.T), dt.ALL, {"axis": 1}, id="unstack"),
    Case("strided_slice", "split", [(2, 6)], lambda x, n, axis: tuple(np.split(x, n, axis)), dt.ALL,
         {"num_or_size_splits": 3, "axis": 1}, {"n": 3, "axis": 1}, id="split"),
    Case("strided_slice", "split", [(6, 2)], lambda x: (x[:1], x[1:4], x[4:]), dt.ALL,
         {"num_or_size_splits": [1, -1, 2]}, {}, id="split-sizes"),
    Case("pad", "ops.pad", [[(2, 3), ()], [(0, 1), ()]],
         lambda x, v, paddings: np.pad(x, paddings, constant_values=v), dt.ALL, {"paddings": ((1, 2), (0, 3))}),
    Case("pad", "pad", [(2, 3)], lambda x, paddings: np.pad(x, paddings), dt.ALL, {"paddings": [[0, 0], [2, 1]]},
         id="pad-zeros"),
    Case("concat", "pad", [(3, 4)], lambda x: np.pad(x, ((2, 1), (0, 3)), "reflect"), dt.ALL,
         {"paddings": [[2, 1], [0, 3]], "mode": "reflect"}, {}, id="pad-reflect"),
    Case("concat", "pad", [(3, 4)], lambda x: np.pad(x, ((3, 1), (0, 4)), "symmetric"), dt.ALL,
         {"paddings": [[3, 1], [0, 4]], "mode": "SYMMETRIC"}, {}, id="pad-symmetric"),
    Case("reverse", "reverse", [[(2, 3, 2)], [(0, 2, 1)]], lambda x, axis: np.flip(x, axis), dt.ALL, {"axis": [0, -1]}),
    Case("concat", "roll", [(3, 4)], lambda x, shift, axis: np.roll(x, shift, axis), dt.ALL,
         {"shift": [1, -6], "axis": [0, 1]}, id="roll"),
    # -- creation
    Case("range", "ops.range_", [(), (), ()], np.arange, dt.REAL, domain=[(1, 3), (8, 20), (2, 3)], grad=False,
         layouts="scalars", half_ulps=1, ulps=1),
    Case("range", lambda x: tf.range(7.0, 2.0, -0.5), [()], lambda x: np.arange(7, 2, -0.5), dt.float32, grad=False,
         id="range-down"),
    Case("multiply", lambda a, b: tf.linspace(a, b, 5, axis=-1), [[(2,), (2,)], [(), ()]],
         lambda a, b: np.linspace(a, b, 5, axis=-1), dt.FLOATING, elementwise=False,
         id="linspace", atol=4, half_ulps=4, ulps=8),
    Case("expand_dims", lambda a: tf.linspace(a, a, 1), [()], lambda a: a[None], id="linspace-one"),
    Case("equal", lambda x: tf.eye(3, 4, [2], x.dtype), [()], lambda x: np.broadcast_to(np.eye(3, 4), (2, 3, 4)),
         dt.NUMERIC, grad=False, result=lambda d: d, elementwise=False, id="eye"),
    Case("where", lambda i, a, b: tf.one_hot(i, 4, a, b), [(2, 3), (), ()],
         lambda i, a, b: np.where(i[..., None] == np.arange(4), a, b), dt.ALL, domain=[(-1, 5), (1, 2), (3, 4)],
         dtypes_per_operand=[dt.int32, None, None], grad=(1, 2), elementwise=False, id="one_hot"),
    Case("where", lambda i: tf.one_hot(i, 3, axis=0), [[(2, 3)], [()]],
         lambda i: (i == np.arange(3).reshape(3, *[1] * i.ndim)).astype(np.float64), dt.INTEGER, domain=(0, 2),
         grad=False, result=dt.float32, elementwise=False, id="one_hot-axis"),
    Case("broadcast_to", lambda *v: tf.meshgrid(*v), [(2,), (3,), (4,)], lambda *v: tuple(np.meshgrid(*v)), dt.ALL,
         id="meshgrid"),
    Case("broadcast_to", lambda *v: tf.meshgrid(*v, indexing="ij"), [(2,), (3,)],
         lambda *v: tuple(np.meshgrid(*v, indexing="ij")), dt.ALL, id="meshgrid-ij"),
    Case("less", "sequence_mask", [[(2, 3)], [()]], lambda n, maxlen: np.arange(maxlen) < n[..., None],
         {dt.int32, dt.int64}, {"maxlen": 4}, domain=(0, 5), grad=False, elementwise=False, id="sequence_mask"),
    # -- blocks
    Case("transpose", "space_to_batch", [(2, 4, 3)], space_to_batch, dt.ALL,
         {"block_shape": [2, 2], "paddings": [[0, 0], [1, 0]]}, {}, id="space_to_batch"),
    Case("transpose", lambda x: tf.batch_to_space(tf.space_to_batch(x, [2, 3], [[1, 1], [0, 2]]), [2, 3],
                                                  [[1, 1], [0, 2]]), [(2, 4, 4, 2)], lambda x: x, dt.ALL,
         id="batch_to_space"),
]

ERRORS = [
    Bad("reshape: size", lambda: tf.reshape(tf.ones([2, 3]), [4]), INVALID, "a tensor with 6 values, but"),
    Bad("reshape: negative", lambda: tf.reshape(tf.ones([2, 3]), [6, -2]), INVALID, "Size 1 must be non-negative, not"),
    Bad("reshape: divide", lambda: tf.reshape(tf.ones([2, 3]), [4, -1]), INVALID, "multiple of 4"),
    Bad("reshape: two", lambda: tf.reshape(tf.ones([2, 3]), [-1, -1]), INVALID, "more than one size"),
    Bad("reshape: open", lambda: tf.reshape(tf.ones([2, 3]), [0, -1]), INVALID, "a tensor with 6 values, but"),
    Bad("reshape: float", lambda: tf.reshape(tf.ones([2, 3]), [2.0, 3.0]), TypeError, "integer"),
    Bad("transpose: perm", lambda: tf.transpose(tf.ones([2, 3]), [0, 0]), INVALID, "transpose: perm"),
    Bad("transpose: length", lambda: tf.transpose(tf.ones([2, 3]), [0]), INVALID, "transpose: perm"),
    Bad("expand_dims: axis", lambda: tf.expand_dims(tf.ones([2]), 3), INVALID, "expand_dims: axis 3"),
    Bad("squeeze: size", lambda: tf.squeeze(tf.ones([2, 1]), 0), INVALID, r"squeeze: Can not squeeze dim\[0\]"),
    Bad("squeeze: axis", lambda: tf.squeeze(tf.ones([2, 1]), 2), INVALID, "squeeze: axis 2"),
    Bad("broadcast_to", lambda: tf.broadcast_to(tf.ones([2]), [3]), INVALID, "broadcast_to: Incompatible shapes"),
    Bad("broadcast_to: rank", lambda: tf.broadcast_to(tf.ones([2, 3]), [3]), INVALID, "broadcast_to: Incompatible"),
    Bad("broadcast_static_shape", lambda: tf.broadcast_static_shape([2], [3]), ValueError, "Incompatible shapes"),
    Bad("broadcast_dynamic_shape", lambda: tf.broadcast_dynamic_shape([2], [3]), INVALID, "do not broadcast"),
    Bad("broadcast_to: size", lambda: tf.broadcast_to(2.0, [-1]), INVALID, "broadcast_to: size -1 in shape"),
    Bad("fill: size", lambda: tf.fill([-1], 2.0), INVALID, "fill: size -1"),
    Bad("fill: value", lambda: tf.fill([1], [2.0]), INVALID, "fill: value has rank 1"),
    Bad("ensure_shape", lambda: tf.ensure_shape(tf.ones([2, 3]), [2, 2]), INVALID, "ensure_shape"),
    Bad("tile: count", lambda: tf.tile([1, 2], [1, 2]), INVALID, "tile: Expected multiples"),
    Bad("tile: negative", lambda: tf.tile([1, 2], [-1]), INVALID, "non-negative"),
    Bad("repeat: count", lambda: tf.repeat([1, 2, 3], [1, 2]), INVALID, "repeats has 2 entries"),
    Bad("concat: rank", lambda: tf.concat([tf.ones([2]), tf.ones([2, 1])], 0), INVALID, "concat: Ranks"),
    Bad("concat: size", lambda: tf.concat([tf.ones([2, 2]), tf.ones([2, 1])], 0), INVALID, "Dimension 1 must match"),
    Bad("concat: axis", lambda: tf.concat([tf.ones([2]), tf.ones([2])], 1), INVALID, "concat: axis 1"),
    Bad("concat: dtype", lambda: tf.concat([tf.ones([2]), tf.ones([2], tf.int32)], 0), INVALID, "dtypes differ"),
    Bad("concat: scalars", lambda: tf.concat([tf.ones([]), tf.ones([])], 0), INVALID, "tf.stack"),
    Bad("stack: shapes", lambda: tf.stack([tf.ones([2]), tf.ones([3])]), INVALID, "Shapes of all inputs must match"),
    Bad("stack: axis", lambda: tf.stack([tf.ones([2])], 2), ValueError, "not in range"),
    Bad("unstack: num", lambda: tf.unstack(tf.ones([2]), num=3), ValueError, "num is 3"),
    Bad("split: equal", lambda: tf.split(tf.ones([5]), 2), INVALID, "evenly divide"),
    Bad("split: sizes", lambda: tf.split(tf.ones([5]), [2, 2]), INVALID, "do not add up to 5"),
    Bad("pad: negative", lambda: tf.pad(tf.ones([2]), [[-1, 0]]), INVALID, "non-negative"),
    Bad("pad: pairs", lambda: tf.pad(tf.ones([2]), [[1, 0], [0, 0]]), INVALID, "pad: paddings must be 1 pairs"),
    Bad("pad: reflect", lambda: tf.pad(tf.ones([2]), [[2, 0]], "REFLECT"), INVALID, "between 0 and 1"),
    Bad("pad: mode", lambda: tf.pad(tf.ones([2]), [[2, 0]], "WRAP"), ValueError, "SYMMETRIC"),
    Bad("reverse: axis", lambda: tf.reverse(tf.ones([2]), [1]), INVALID, "reverse: axis 1"),
    Bad("roll: count", lambda: tf.roll(tf.ones([2]), [1, 2], [0]), INVALID, "same size"),
    Bad("range: delta", lambda: tf.range(0, 5, 0), INVALID, "Requires delta != 0"),
    Bad("range: direction", lambda: tf.range(5, 0), INVALID, "Requires start <= limit"),
    Bad("linspace", lambda: tf.linspace(0.0, 1.0, -1), INVALID, "num must not be negative"),
    Bad("eye", lambda: tf.eye(-1), INVALID, "non-negative"),
    Bad("one_hot: depth", lambda: tf.one_hot([1], -1), INVALID, "depth must be non-negative"),
    Bad("one_hot: indices", lambda: tf.one_hot([1.0], 2), INVALID, "indices must be integers"),
    Bad("one_hot: dtypes", lambda: tf.one_hot([1], 2, 1.0, tf.constant(0)), TypeError, "does not match"),
    Bad("meshgrid", lambda: tf.meshgrid([1], [2], indexing="yx"), ValueError, "'xy' or 'ij'"),
    Bad("space_to_batch", lambda: tf.space_to_batch(tf.ones([1, 3, 1]), [2], [[0, 0]]), INVALID, "not divisible"),
]
