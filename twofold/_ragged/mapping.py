"""`tf.map_fn` over rows that are ragged, or with results that are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.dispatch import Holds, implements
from twofold.ir import nest

from .arrays import ragged_stack
from .ragged_tensor import RaggedTensor, RaggedTensorSpec, is_ragged

__all__ = ["map_rows"]

_UNROLLED = 32  # rows, up to which a trace has the function once for each


@implements(tf.map_fn, {"elems": Holds((RaggedTensor, RaggedTensorSpec))},
            {"fn_output_signature": Holds(RaggedTensorSpec)}, {"dtype": Holds(RaggedTensorSpec)})
def map_rows(fn: Callable[[Any], Any], elems: Any, dtype: Any = None, parallel_iterations: Any = None,
             back_prop: bool = True, swap_memory: bool = False, infer_shape: bool = True, name: str | None = None,
             fn_output_signature: Any = None) -> Any:
    """The results of a function for each row, stacked; see `tf.map_fn`."""
    signature = dtype if fn_output_signature is None else fn_output_signature
    leaves = nest.flatten(elems, expand_composites=False)
    tensors: list[Any] = [x if is_ragged(x) else tf.convert_to_tensor(x) for x in leaves]
    sizes: set[Any] = {len(t) if is_ragged(t) and t._row_partition.static_nrows is not None else
             None if is_ragged(t) else t.shape[0] for t in tensors} - {None}
    if len(sizes) > 1:
        raise ValueError(f"map_fn: first axes have different sizes: {sorted(sizes)}")
    whole = nest.pack(elems, tensors, expand_composites=False)

    def row(n: Any) -> Any:
        return nest.map_structure(lambda t: t[n], whole, expand_composites=False)
    staged = tf.inside_function()
    specs = _signature(signature, tensors, elems)
    if sizes and (not staged or min(sizes) <= _UNROLLED):
        results = [_as_signed(fn(row(n)), specs) for n in range(sizes.pop())]
        return nest.map_structure(_stacked, specs, *results, expand_composites=False) if results else _none(specs)
    return _in_a_loop(fn, row, tensors[0].nrows() if is_ragged(tensors[0]) else tf.shape(tensors[0])[0], specs)


def _stacked(spec: Any, *results: Any) -> Any:
    """Results of one spec along a new first axis."""
    if isinstance(spec, RaggedTensorSpec) and spec.ragged_rank == 0:  # rows of lengths of their own
        return ragged_stack(list(results))
    return tf.stack(list(results))


def _signature(signature: Any, tensors: list[Any], elems: Any) -> Any:
    """The specs of results: those that were asked for, or like the rows."""
    if signature is None:
        rows = [_row_spec(t) for t in tensors]
        return nest.pack(elems, rows, expand_composites=False)
    return nest.map_structure(lambda s: s if isinstance(s, tf.TypeSpec) else tf.TensorSpec(None, s), signature,
                              expand_composites=False)


def _row_spec(t: Any) -> Any:
    if not is_ragged(t):
        return tf.TensorSpec(t.shape[1:], t.dtype)
    return RaggedTensorSpec(t.shape[1:], t.dtype, t.ragged_rank - 1, t.row_splits.dtype)


def _as_signed(result: Any, signature: Any) -> Any:
    """A result with tensors for leaves, of the dtypes that were asked for."""
    nest.assert_same_structure(signature, result, expand_composites=False)

    def leaf(spec: Any, value: Any) -> Any:
        if isinstance(spec, RaggedTensorSpec):
            return _as_ragged(value, spec)
        return tf.convert_to_tensor(value, spec.dtype if isinstance(spec, tf.TensorSpec) else spec)
    return nest.map_structure(leaf, signature, result, expand_composites=False)


def _as_ragged(value: Any, spec: RaggedTensorSpec) -> Any:
    """A result of a function for which a ragged spec was given: a spec of no ragged axis stands for rows of any length.
    """
    if not is_ragged(value):
        value = tf.convert_to_tensor(value, spec.dtype)
        if spec.ragged_rank:
            value = RaggedTensor.from_tensor(value, ragged_rank=spec.ragged_rank,
                                             row_splits_dtype=spec.row_splits_dtype)
    if value.dtype is not spec.dtype or not value.shape.is_compatible_with(spec.shape):
        raise ValueError(f"map_fn: the function gave {value!r} where {spec!r} was asked for")
    return value


def _none(signature: Any) -> Any:
    """The result for no rows at all."""
    return nest.map_structure(_empty, signature, expand_composites=False)


def _empty(spec: Any) -> Any:
    if isinstance(spec, RaggedTensorSpec):
        inner = [n or 0 for n in (spec.shape[spec.ragged_rank + 1:] if spec.shape.rank is not None else [])]
        flat = tf.zeros([0, *inner], spec.dtype)
        return RaggedTensor.from_nested_row_splits(
            flat, [tf.zeros([1], spec.row_splits_dtype)] * (spec.ragged_rank + 1), validate=False)
    if spec.shape.rank is None:
        return tf.zeros([0], spec.dtype)
    return tf.zeros([0, *[n or 0 for n in spec.shape]], spec.dtype)


def _in_a_loop(fn: Callable[[Any], Any], row: Callable[[Any], Any], count: Any, signature: Any) -> Any:
    """The results of a loop that puts each behind those before it."""
    specs = nest.flatten(signature, expand_composites=False)
    start = nest.flatten(_none(signature), expand_composites=False)
    invariants = [RaggedTensorSpec(tf.TensorShape([None]).concatenate(s.shape), s.dtype, s.ragged_rank + 1,
                                   s.row_splits_dtype) if isinstance(s, RaggedTensorSpec) else tf.TensorShape(
        None if s.shape.rank is None else [None, *s.shape]) for s in specs]

    def body(n: Any, *so_far: Any) -> Any:
        results = nest.flatten(_as_signed(fn(row(n)), signature), expand_composites=False)
        return (n + 1, *[tf.concat([a, _one(s, r)], 0) for a, r, s in zip(so_far, results, specs, strict=True)])
    count = tf.cast(count, tf.int64)
    _, *values = tf.while_loop(lambda n, *_: n < count, body, [tf.zeros([], tf.int64), *start],
                               shape_invariants=[tf.TensorShape([]), *invariants])
    return nest.pack(signature, values, expand_composites=False)


def _one(spec: Any, result: Any) -> Any:
    """A result as the only one of a stack."""
    if isinstance(spec, RaggedTensorSpec) and spec.ragged_rank == 0:
        return RaggedTensor.from_row_lengths(result, tf.reshape(tf.shape(result, spec.row_splits_dtype)[0], [1]),
                                             validate=False)
    return tf.stack([result])
