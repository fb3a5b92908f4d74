"""What functions of `tf.keras.ops` do with ragged and sparse tensors.

Of ragged tensors, functions of elements give ragged ones with the same rows. Of sparse ones, functions for which 0
stays 0 give sparse tensors, others that Keras gives them to dense ones; all others raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.dispatch import CompositeTensor, Holds, implements

__all__ = ["register"]

Op = Callable[..., Any]

#: functions of one tensor for which 0 stays 0; sparse tensors stay sparse
_ZERO_TO_ZERO = """abs absolute arcsin arcsinh arctan arctanh cast ceil conj conjugate copy expm1 fabs floor imag log1p
    negative real round sign signbit sin sinh sqrt square stop_gradient tan tanh"""
#: functions of one tensor that give dense tensors for sparse ones
_DENSE = "arccos arccosh cos cosh exp exp2 isfinite log log10 log2 reciprocal"
#: further functions of the elements of one tensor, which take ragged ones
_ELEMENTS = """angle bitwise_invert bitwise_not cbrt celu clip deg2rad digitize elu erf erfinv gelu hard_sigmoid
    hard_silu hard_swish hard_tanh isinf isnan leaky_relu log_sigmoid logical_not nan_to_num ones_like rad2deg relu
    relu6 saturate_cast selu sigmoid silu soft_shrink softplus softsign sparse_plus sparse_sigmoid squareplus swish
    tanh_shrink threshold trunc zeros_like"""
#: functions of two tensors, element by element
_PAIRS = """add arctan2 bitwise_and bitwise_or bitwise_xor divide divide_no_nan equal floor_divide greater greater_equal
    less less_equal logaddexp logical_and logical_or logical_xor maximum minimum mod multiply not_equal power subtract
    true_divide"""


def _is_sparse(x: Any) -> bool:
    return isinstance(x, tf.SparseTensor)


def _dense(x: Any) -> Any:
    return tf.sparse.to_dense(tf.sparse.reorder(x)) if _is_sparse(x) else x


def _refused(op: Op) -> TypeError:
    return TypeError(f"keras.ops.{op.__name__} does not take sparse tensors: tf.sparse.to_dense gives a dense one.")


# -- element by element -------------------------------------------------------------------------------------------
def _of_one(op: Op, x: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(x, tf.RaggedTensor):
        return x.with_flat_values(op(x.flat_values, *args, **kwargs))
    if op.__name__ in _ZERO_TO_ZERO.split():
        return x.with_values(op(x.values, *args, **kwargs))
    if op.__name__ in _DENSE.split():
        return op(_dense(x), *args, **kwargs)
    raise _refused(op)


def _of_two(op: Op, x1: Any, x2: Any) -> Any:
    if not (_is_sparse(x1) or _is_sparse(x2)):
        from twofold._ragged.elementwise import flat_map
        from twofold._ragged.ragged_tensor import ragged_or_dense
        if isinstance(x1, (int, float)) or isinstance(x2, (int, float)):  # numbers give way to tensors
            rows = x2 if isinstance(x1, (int, float)) else x1
            return rows.with_flat_values(op(*[x.flat_values if x is rows else x for x in (x1, x2)]))
        return flat_map(op, [ragged_or_dense(x) for x in (x1, x2)])
    rule = _SPARSE_PAIRS.get(op.__name__)
    if rule is None:
        raise _refused(op)
    return rule(op, x1, x2)


def _met(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two sparse tensors in the dtype in which they meet."""
    dtype = tf.keras.backend.result_type(x1.dtype, x2.dtype)
    return tf.cast(x1, dtype), tf.cast(x2, dtype)


def _union(joined: Callable[[Any, Any], Any]) -> Op:
    """A function whose values are 0 where both operands have none."""
    def pair(op: Op, x1: Any, x2: Any) -> Any:
        return joined(*_met(x1, x2)) if _is_sparse(x1) and _is_sparse(x2) else op(_dense(x1), _dense(x2))
    return pair


def _product(op: Op, x1: Any, x2: Any) -> Any:
    if _is_sparse(x1) and _is_sparse(x2):
        x1, x2 = _met(x1, x2)
        return _common(x1, x2, op)
    return _by_dense(op, x1, x2) if _is_sparse(x1) else _by_dense(lambda a, b: op(b, a), x2, x1)


def _by_dense(op: Op, x: Any, y: Any) -> Any:
    """A function of the values of a sparse tensor and of those of a dense one in their places."""
    y = y if isinstance(y, (int, float)) else tf.convert_to_tensor(y)
    if not isinstance(y, (int, float)) and y.shape.rank:
        if y.shape.rank > len(x.shape):
            return op(_dense(x), y)
        y = tf.gather_nd(tf.broadcast_to(y, x.dense_shape), x.indices)
    return x.with_values(op(x.values, y))


def _common(x1: Any, x2: Any, op: Op) -> Any:
    """A function of the values in the places at which two sparse tensors have some."""
    ones = [x.with_values(tf.ones_like(x.values, tf.int32)) for x in (x1, x2)]
    both = tf.sparse.add(*ones).values > 1
    first, second = (tf.sparse.add(a, b.with_values(tf.zeros_like(b.values, a.dtype)))
                     for a, b in ((x1, x2), (x2, x1)))
    kept, other = tf.sparse.retain(first, both), tf.sparse.retain(second, both)
    return kept.with_values(op(kept.values, other.values))


def _quotient(op: Op, x1: Any, x2: Any) -> Any:
    return op(_dense(x1), _dense(x2)) if _is_sparse(x2) else _by_dense(op, x1, x2)


_SPARSE_PAIRS: dict[str, Op] = {
    "add": _union(lambda a, b: tf.sparse.add(a, b)),
    "subtract": _union(lambda a, b: tf.sparse.add(a, tf.negative(b))),
    "maximum": _union(lambda a, b: tf.sparse.maximum(a, b)), "minimum": _union(lambda a, b: tf.sparse.minimum(a, b)),
    "multiply": _product, "divide": _quotient, "true_divide": _quotient,
}


# -- others -------------------------------------------------------------------------------------------------------
def _convert_to_tensor(op: Op, x: Any, dtype: Any = None, sparse: Any = None, ragged: Any = None) -> Any:
    if _is_sparse(x):
        x = _dense(x) if sparse is not None and not sparse else x
    elif ragged is not None and not ragged:
        x = x.to_tensor()
    return x if dtype is None else tf.cast(x, dtype)


def _shape(op: Op, x: Any) -> Any:
    if _is_sparse(x):
        return tuple([x.dense_shape[n] if size is None else size for n, size in enumerate(x.shape)])
    return tuple(x.shape)


def _matmul(op: Op, x1: Any, x2: Any) -> Any:
    if not (_is_sparse(x1) or _is_sparse(x2)):
        return tf.matmul(x1, x2)
    both = tf.keras.backend.result_type(x1.dtype, x2.dtype)
    x1, x2 = tf.cast(x1, both), tf.cast(x2, both)
    if _is_sparse(x1) and _is_sparse(x2):
        return tf.sparse.from_dense(tf.sparse.sparse_dense_matmul(x1, _dense(x2)))
    if _is_sparse(x2):
        if len(x2.shape) != 2 or len(x1.shape) != 2:
            return tf.matmul(x1, _dense(x2))
        return tf.linalg.matrix_transpose(tf.sparse.sparse_dense_matmul(
            x2, x1, adjoint_a=True, adjoint_b=True))
    if len(x2.shape) != 2:
        return tf.matmul(_dense(x1), x2)
    rows = tf.sparse.reshape(x1, tf.stack([tf.reduce_prod(x1.dense_shape[:-1]), x1.dense_shape[-1]]))
    product = tf.sparse.sparse_dense_matmul(rows, x2)
    shape = tf.concat([x1.dense_shape[:-1], tf.shape(x2, tf.int64)[1:]], 0)
    return tf.ensure_shape(tf.reshape(product, shape), [*x1.shape[:-1], x2.shape[1]])


def _transpose(op: Op, x: Any, axes: Any = None) -> Any:
    return tf.sparse.transpose(x, axes) if _is_sparse(x) else tf.transpose(x, axes)


def _reshape(op: Op, x: Any, newshape: Any) -> Any:
    if not _is_sparse(x):
        return tf.reshape(x, newshape)
    made = tf.sparse.reshape(x, newshape)
    made.set_shape([None if n == -1 or not isinstance(n, int) else n for n in newshape])
    return made


def _expand_dims(op: Op, x: Any, axis: int) -> Any:
    return tf.sparse.expand_dims(x, axis) if _is_sparse(x) else tf.expand_dims(x, axis)


def _squeeze(op: Op, x: Any, axis: Any = None) -> Any:
    if not _is_sparse(x):
        return tf.squeeze(x, axis)
    gone = [n for n, size in enumerate(x.shape) if size == 1] if axis is None else [
        a % len(x.shape) for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    kept = [n for n in range(len(x.shape)) if n not in gone]
    made = tf.SparseTensor(tf.gather(x.indices, kept, axis=1), x.values, tf.gather(x.dense_shape, kept))
    made.set_shape([x.shape[n] for n in kept])
    return made


def _concatenate(op: Op, xs: Any, axis: int = 0) -> Any:
    if all(map(_is_sparse, xs)):
        return tf.sparse.concat(axis, list(xs))
    return tf.concat([_dense(x) for x in xs], axis)


def _reduction(ragged: Callable[..., Any]) -> Op:
    def reduce(op: Op, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if not _is_sparse(x):
            return ragged(x, axis, keepdims)
        if op.__name__ != "sum":
            raise _refused(op)
        return tf.sparse.reduce_sum(x, axis, keepdims, output_is_sparse=True)
    return reduce


def _take(op: Op, x: Any, indices: Any, axis: Any = None) -> Any:
    if isinstance(x, CompositeTensor):
        raise _refused(op)
    if _is_sparse(indices):
        return op(x, _dense(indices), axis)
    if axis not in (0, -len(x.shape)):
        raise ValueError(f"take at ragged indices is along the first axis; got axis={axis}")
    return tf.gather(x, indices)


def _softmax(op: Op, x: Any, axis: Any = -1) -> Any:
    if _is_sparse(x):
        raise _refused(op)
    return tf.nn.softmax(x, axis)


def _bincount(op: Op, x: Any, weights: Any = None, minlength: int = 0, sparse: bool = False) -> Any:
    made = tf.sparse.bincount(x, weights, axis=-1, minlength=minlength or None)
    return made if sparse or _is_sparse(x) else _dense(made)


_OTHERS: dict[str, Op] = {
    "bincount": _bincount, "concatenate": _concatenate,
    "convert_to_tensor": _convert_to_tensor, "expand_dims": _expand_dims, "matmul": _matmul, "reshape": _reshape,
    "shape": _shape, "softmax": _softmax, "squeeze": _squeeze, "take": _take, "transpose": _transpose,
    "sum": _reduction(tf.reduce_sum), "mean": _reduction(tf.reduce_mean), "max": _reduction(tf.reduce_max),
    "min": _reduction(tf.reduce_min), "prod": _reduction(tf.reduce_prod), "any": _reduction(tf.reduce_any),
    "all": _reduction(tf.reduce_all),
}


def _answer(op: Op, rule: Op, parameters: list[str]) -> None:
    """Have `rule` answer calls of a function with a composite value in one of the parameters."""
    def answer(*args: Any, **kwargs: Any) -> Any:
        return rule(op, *args, **kwargs)
    implements(op, *[{name: Holds(CompositeTensor)} for name in parameters])(answer)


def register(operations: dict[str, Op]) -> None:
    """Have the functions take ragged and sparse tensors.

    Args:
        operations: by their names.
    """
    for names, rule, parameters in ((" ".join([_ZERO_TO_ZERO, _DENSE, _ELEMENTS]), _of_one, ["x"]),
                                    (_PAIRS, _of_two, ["x1", "x2"])):
        for name in names.split():
            _answer(operations[name], rule, parameters)
    for name, rule in _OTHERS.items():
        parameters = {"matmul": ["x1", "x2"], "concatenate": ["xs"], "take": ["x", "indices"]}.get(name, ["x"])
        _answer(operations[name], rule, parameters)
