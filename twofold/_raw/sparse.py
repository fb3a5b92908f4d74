"""Raw ops of sparse tensors, whose indices, values and shapes are operands and results of their own."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._ops import nn_ctc

from .declared import known, op, rank_of, refuse_others

__all__ = ["ROWS", "parts"]

ROWS = ""


def parts(st: Any) -> tuple[Any, Any, Any]:
    """Indices, values and shape."""
    return st.indices, st.values, st.dense_shape


def _of(indices: Any, values: Any, shape: Any) -> Any:
    return tf.SparseTensor(tf.cast(indices, tf.int64), values, tf.cast(shape, tf.int64))


def _several(indices: Any, values: Any, shapes: Any) -> list[Any]:
    return [_of(*each) for each in zip(indices, values, shapes, strict=True)]


# -- arithmetic ---------------------------------------------------------------------------------------
@op("sum_indices sum_values sum_shape")
def sparse_add(a_indices: Any, a_values: Any, a_shape: Any, b_indices: Any, b_values: Any, b_shape: Any,
               thresh: Any) -> Any:
    return parts(tf.sparse.add(_of(a_indices, a_values, a_shape), _of(b_indices, b_values, b_shape), thresh))


@op("a_val_grad b_val_grad")
def sparse_add_grad(backprop_val_grad: Any, a_indices: Any, b_indices: Any, sum_indices: Any) -> Any:
    return tuple([_at(sum_indices, backprop_val_grad, places) for places in (a_indices, b_indices)])


def _at(indices: Any, values: Any, places: Any) -> Any:
    """The values that stand at places, 0 where none does."""
    indices, places = (tf.cast(x, tf.int64) for x in (indices, places))
    same = tf.reduce_all(places[:, None, :] == indices[None, :, :], -1)
    values = tf.convert_to_tensor(values)
    return tf.reduce_sum(tf.where(same, values[None, :], tf.zeros([], values.dtype)), 1)


def _by_dense(function: Any, sp_indices: Any, sp_values: Any, sp_shape: Any, dense: Any) -> Any:
    wide = tf.broadcast_to(dense, tf.cast(sp_shape, tf.int32))
    return function(tf.convert_to_tensor(sp_values), tf.gather_nd(wide, sp_indices))


@op()
def sparse_dense_cwise_add(sp_indices: Any, sp_values: Any, sp_shape: Any, dense: Any) -> Any:
    return _by_dense(tf.add, sp_indices, sp_values, sp_shape, dense)


@op()
def sparse_dense_cwise_mul(sp_indices: Any, sp_values: Any, sp_shape: Any, dense: Any) -> Any:
    return _by_dense(tf.multiply, sp_indices, sp_values, sp_shape, dense)


@op()
def sparse_dense_cwise_div(sp_indices: Any, sp_values: Any, sp_shape: Any, dense: Any) -> Any:
    return _by_dense(tf.math.divide, sp_indices, sp_values, sp_shape, dense)


@op("output_indices output_values")
def sparse_sparse_maximum(a_indices: Any, a_values: Any, a_shape: Any, b_indices: Any, b_values: Any,
                          b_shape: Any) -> Any:
    return parts(tf.sparse.maximum(_of(a_indices, a_values, a_shape), _of(b_indices, b_values, b_shape)))[:2]


@op("output_indices output_values")
def sparse_sparse_minimum(a_indices: Any, a_values: Any, a_shape: Any, b_indices: Any, b_values: Any,
                          b_shape: Any) -> Any:
    return parts(tf.sparse.minimum(_of(a_indices, a_values, a_shape), _of(b_indices, b_values, b_shape)))[:2]


@op()
def sparse_tensor_dense_add(a_indices: Any, a_values: Any, a_shape: Any, b: Any) -> Any:
    return tf.tensor_scatter_nd_add(tf.convert_to_tensor(b), a_indices, a_values)


@op()
def sparse_tensor_dense_mat_mul(a_indices: Any, a_values: Any, a_shape: Any, b: Any, adjoint_a: bool = False,
                                adjoint_b: bool = False) -> Any:
    return tf.sparse.sparse_dense_matmul(_of(a_indices, a_values, a_shape), b, adjoint_a, adjoint_b)


@op()
def sparse_softmax(sp_indices: Any, sp_values: Any, sp_shape: Any) -> Any:
    return tf.sparse.softmax(_of(sp_indices, sp_values, sp_shape)).values


# -- reductions ---------------------------------------------------------------------------------------
def _axes(axes: Any) -> Any:
    return [int(n) for n in known(axes, "reduction_axes").ravel()]


@op()
def sparse_reduce_sum(input_indices: Any, input_values: Any, input_shape: Any, reduction_axes: Any,
                      keep_dims: bool = False) -> Any:
    return tf.sparse.reduce_sum(_of(input_indices, input_values, input_shape), _axes(reduction_axes), keep_dims)


@op()
def sparse_reduce_max(input_indices: Any, input_values: Any, input_shape: Any, reduction_axes: Any,
                      keep_dims: bool = False) -> Any:
    return tf.sparse.reduce_max(_of(input_indices, input_values, input_shape), _axes(reduction_axes), keep_dims)


@op("output_indices output_values output_shape")
def sparse_reduce_sum_sparse(input_indices: Any, input_values: Any, input_shape: Any, reduction_axes: Any,
                             keep_dims: bool = False) -> Any:
    st = _of(input_indices, input_values, input_shape)
    return parts(tf.sparse.reduce_sum(st, _axes(reduction_axes), keep_dims, output_is_sparse=True))


@op("output_indices output_values output_shape")
def sparse_reduce_max_sparse(input_indices: Any, input_values: Any, input_shape: Any, reduction_axes: Any,
                             keep_dims: bool = False) -> Any:
    st = _of(input_indices, input_values, input_shape)
    return parts(tf.sparse.reduce_max(st, _axes(reduction_axes), keep_dims, output_is_sparse=True))


@op()
def sparse_bincount(indices: Any, values: Any, dense_shape: Any, size: Any, weights: Any,
                    binary_output: bool = False) -> Any:
    st = _of(indices, values, dense_shape)
    rows = tf.zeros([tf.shape(st.values)[0]], tf.int64) if st.dense_shape.shape[0] == 1 else st.indices[:, 0]
    count = 1 if st.dense_shape.shape[0] == 1 else st.dense_shape[0]
    counted = counts(rows, st.values, count, size, weights, binary_output)
    return counted[0] if st.dense_shape.shape[0] == 1 else counted


def counts(rows: Any, values: Any, count: Any, size: Any, weights: Any, binary: bool) -> Any:
    """How often each number below `size` stands in each of `count` rows; the sums of weights where there are any."""
    weights = tf.convert_to_tensor(weights)
    values, size = tf.cast(values, tf.int64), tf.cast(size, tf.int64)
    given = tf.size(weights) > 0
    ones = tf.ones([tf.size(values)], weights.dtype)
    told = tf.cond(given, lambda: tf.reshape(weights, [-1]), lambda: ones) if not binary else ones
    inside = values < size
    places = tf.boolean_mask(tf.stack([tf.cast(rows, tf.int64), values], -1), inside)
    shape = tf.stack([tf.cast(count, tf.int64), size])
    counted = tf.scatter_nd(places, tf.boolean_mask(told, inside), shape)
    return tf.minimum(counted, 1) if binary else counted


# -- order and parts ----------------------------------------------------------------------------------
@op("output_indices output_values output_shape", lists="indices values shapes")
def sparse_concat(indices: Any, values: Any, shapes: Any, concat_dim: int) -> Any:
    return parts(tf.sparse.concat(concat_dim, _several(indices, values, shapes)))


@op("output_indices output_values")
def sparse_reorder(input_indices: Any, input_values: Any, input_shape: Any) -> Any:
    return parts(tf.sparse.reorder(_of(input_indices, input_values, input_shape)))[:2]


@op("output_indices output_shape")
def sparse_reshape(input_indices: Any, input_shape: Any, new_shape: Any) -> Any:
    indices = tf.convert_to_tensor(input_indices)
    made = tf.sparse.reshape(_of(indices, tf.zeros([tf.shape(indices)[0]]), input_shape), new_shape)
    return made.indices, made.dense_shape


@op("output_indices output_values output_shape")
def sparse_slice(indices: Any, values: Any, shape: Any, start: Any, size: Any) -> Any:
    return parts(tf.sparse.slice(_of(indices, values, shape), start, size))


@op()
def sparse_slice_grad(backprop_val_grad: Any, input_indices: Any, input_start: Any, output_indices: Any) -> Any:
    return _at(tf.convert_to_tensor(output_indices) + input_start, backprop_val_grad, input_indices)


@op("output_indices output_values output_shape")
def sparse_split(split_dim: Any, indices: Any, values: Any, shape: Any, num_split: int) -> Any:
    made = tf.sparse.split(_of(indices, values, shape), num_split, int(known(split_dim, "split_dim")))
    return [list(each) for each in zip(*map(parts, made), strict=True)]


@op("output_indices output_values empty_row_indicator reverse_index_map")
def sparse_fill_empty_rows(indices: Any, values: Any, dense_shape: Any, default_value: Any) -> Any:
    st = _of(indices, values, dense_shape)
    filled, empty = tf.sparse.fill_empty_rows(st, default_value)
    before = tf.cumsum(tf.cast(empty, tf.int64))  # rows that were filled up to each
    rank = tf.argsort(tf.argsort(st.indices[:, 0], stable=True), stable=True)
    return filled.indices, filled.values, empty, tf.cast(rank, tf.int64) + tf.gather(before, st.indices[:, 0])


@op("d_values d_default_value")
def sparse_fill_empty_rows_grad(reverse_index_map: Any, grad_values: Any) -> Any:
    places, grads = tf.cast(reverse_index_map, tf.int64), tf.convert_to_tensor(grad_values)
    own = tf.scatter_nd(places[:, None], tf.ones_like(places), [tf.size(grads, tf.int64)]) > 0
    return tf.gather(grads, places), tf.reduce_sum(tf.where(own, tf.zeros([], grads.dtype), grads))


@op()
def sparse_to_dense(sparse_indices: Any, output_shape: Any, sparse_values: Any, default_value: Any,
                    validate_indices: bool = True) -> Any:
    indices, values = tf.convert_to_tensor(sparse_indices), tf.convert_to_tensor(sparse_values)
    if rank_of(indices) < 2:
        indices = tf.reshape(indices, [-1, 1])
    values = tf.broadcast_to(values, [tf.shape(indices)[0]])
    return tf.sparse.to_dense(_of(indices, values, output_shape), default_value, validate_indices)


def _segment_grads(grad: Any, indices: Any, segment_ids: Any, size: Any, mean: bool, root: bool) -> Any:
    grad, ids = tf.convert_to_tensor(grad), tf.cast(segment_ids, tf.int32)
    if mean or root:
        members = tf.math.unsorted_segment_sum(tf.ones([tf.size(ids)], grad.dtype), ids, tf.shape(grad)[0])
        members = tf.maximum(tf.sqrt(members) if root else members, 1)
        grad /= tf.reshape(members, tf.concat([tf.shape(members), tf.ones([tf.rank(grad) - 1], tf.int32)], 0))
    return tf.math.unsorted_segment_sum(tf.gather(grad, ids), tf.cast(indices, tf.int32), size)


@op()
def sparse_segment_sum_grad(grad: Any, indices: Any, segment_ids: Any, output_dim0: Any) -> Any:
    return _segment_grads(grad, indices, segment_ids, output_dim0, mean=False, root=False)


@op()
def sparse_segment_mean_grad(grad: Any, indices: Any, segment_ids: Any, output_dim0: Any) -> Any:
    return _segment_grads(grad, indices, segment_ids, output_dim0, mean=True, root=False)


@op(name="SparseSegmentSqrtNGrad")
def sparse_segment_sqrt_n_grad(grad: Any, indices: Any, segment_ids: Any, output_dim0: Any) -> Any:
    return _segment_grads(grad, indices, segment_ids, output_dim0, mean=False, root=True)


# -- counts, sets and sequences -----------------------------------------------------------------------
@op("output_indices output_values output_dense_shape")
def sparse_count_sparse_output(indices: Any, values: Any, dense_shape: Any, weights: Any, binary_output: bool,
                               minlength: int = -1, maxlength: int = -1) -> Any:
    st = _of(indices, values, dense_shape)
    weights = tf.convert_to_tensor(weights)
    kept = None if weights.shape[0] == 0 else tf.SparseTensor(st.indices, weights, st.dense_shape)
    return _counted(st, kept, weights.dtype, binary_output, minlength, maxlength)


@op("output_indices output_values output_dense_shape")
def dense_count_sparse_output(values: Any, weights: Any, binary_output: bool, minlength: int = -1,
                              maxlength: int = -1) -> Any:
    weights = tf.convert_to_tensor(weights)
    kept = None if 0 in weights.shape else weights
    return _counted(tf.convert_to_tensor(values), kept, weights.dtype, binary_output, minlength, maxlength)


def _counted(values: Any, weights: Any, dtype: Any, binary: bool, least: int, most: int) -> Any:
    axis = 0 if values.shape.rank == 1 else -1
    made = tf.sparse.bincount(values, weights, axis, None if least < 0 else least, None if most < 0 else most, binary)
    return made.indices, tf.cast(made.values, dtype), made.dense_shape


@op("result_indices result_values result_shape")
def dense_to_dense_set_operation(set1: Any, set2: Any, set_operation: str, validate_indices: bool = True) -> Any:
    return _set(set1, set2, set_operation, validate_indices)


@op("result_indices result_values result_shape")
def dense_to_sparse_set_operation(set1: Any, set2_indices: Any, set2_values: Any, set2_shape: Any,
                                  set_operation: str, validate_indices: bool = True) -> Any:
    return _set(set1, _of(set2_indices, set2_values, set2_shape), set_operation, validate_indices)


@op("result_indices result_values result_shape")
def sparse_to_sparse_set_operation(set1_indices: Any, set1_values: Any, set1_shape: Any, set2_indices: Any,
                                   set2_values: Any, set2_shape: Any, set_operation: str,
                                   validate_indices: bool = True) -> Any:
    return _set(_of(set1_indices, set1_values, set1_shape), _of(set2_indices, set2_values, set2_shape),
                set_operation, validate_indices)


def _set(one: Any, other: Any, kind: str, validate: bool) -> Any:
    if kind in ("a-b", "b-a"):
        return parts(tf.sets.difference(one, other, kind == "a-b", validate))
    return parts({"intersection": tf.sets.intersection, "union": tf.sets.union}[kind](one, other, validate))


@op()
def set_size(set_indices: Any, set_values: Any, set_shape: Any, validate_indices: bool = True) -> Any:
    return tf.sets.size(_of(set_indices, set_values, set_shape), validate_indices)


@op()
def edit_distance(hypothesis_indices: Any, hypothesis_values: Any, hypothesis_shape: Any, truth_indices: Any,
                  truth_values: Any, truth_shape: Any, normalize: bool = True) -> Any:
    return nn_ctc.edit_distance(_of(hypothesis_indices, hypothesis_values, hypothesis_shape),
                                _of(truth_indices, truth_values, truth_shape), normalize)


@op("decoded_indices decoded_values decoded_shape log_probability", name="CTCGreedyDecoder")
def ctc_greedy_decoder(inputs: Any, sequence_length: Any, merge_repeated: bool = False, blank_index: int = -1) -> Any:
    inputs = tf.convert_to_tensor(inputs)
    blank = blank_index if blank_index >= 0 else inputs.shape[2] + blank_index
    (decoded,), scores = tf.nn.ctc_greedy_decoder(inputs, sequence_length, merge_repeated, blank)
    return *parts(decoded), scores


@op("decoded_indices decoded_values decoded_shape log_probability", name="CTCBeamSearchDecoder")
def ctc_beam_search_decoder(inputs: Any, sequence_length: Any, beam_width: int, top_paths: int,
                            merge_repeated: bool = True) -> Any:
    refuse_others("CTCBeamSearchDecoder", merge_repeated=(merge_repeated, False))
    decoded, scores = tf.nn.ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths)
    return *[list(each) for each in zip(*map(parts, decoded), strict=True)], scores


@op("loss gradient", name="CTCLoss")
def ctc_loss(inputs: Any, labels_indices: Any, labels_values: Any, sequence_length: Any,
             preprocess_collapse_repeated: bool = False, ctc_merge_repeated: bool = True,
             ignore_longer_outputs_than_inputs: bool = False) -> Any:
    return _ctc("CTCLoss", -1, inputs, labels_indices, labels_values, sequence_length, preprocess_collapse_repeated,
                ctc_merge_repeated, ignore_longer_outputs_than_inputs)


@op("loss gradient", name="CTCLossV2")
def ctc_loss_v2(inputs: Any, labels_indices: Any, labels_values: Any, sequence_length: Any,
                preprocess_collapse_repeated: bool = False, ctc_merge_repeated: bool = True,
                ignore_longer_outputs_than_inputs: bool = False) -> Any:
    return _ctc("CTCLossV2", 0, inputs, labels_indices, labels_values, sequence_length, preprocess_collapse_repeated,
                ctc_merge_repeated, ignore_longer_outputs_than_inputs)


def _ctc(name: str, blank: int, inputs: Any, indices: Any, values: Any, lengths: Any, collapse: bool, merge: bool,
         longer: bool) -> Any:
    refuse_others(name, preprocess_collapse_repeated=(collapse, False), ctc_merge_repeated=(merge, True),
                  ignore_longer_outputs_than_inputs=(longer, False))
    inputs = tf.convert_to_tensor(inputs)
    indices = tf.cast(indices, tf.int64)
    batch = tf.cast(tf.shape(inputs)[1], tf.int64)
    width = tf.reduce_max(indices[:, 1]) + 1
    labels = tf.SparseTensor(indices, values, tf.stack([batch, width]))
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        loss = tf.nn.ctc_loss(labels, inputs, None, lengths, blank_index=inputs.shape[2] - 1 if blank < 0 else blank)
    return loss, tape.gradient(loss, inputs)


# -- as texts -----------------------------------------------------------------------------------------
@op()
def serialize_sparse(sparse_indices: Any, sparse_values: Any, sparse_shape: Any, out_type: Any = tf.string) -> Any:
    refuse_others("SerializeSparse", out_type=(tf.as_dtype(out_type), tf.string))
    return tf.io.serialize_sparse(_of(sparse_indices, sparse_values, sparse_shape))


@op()
def serialize_many_sparse(sparse_indices: Any, sparse_values: Any, sparse_shape: Any,
                          out_type: Any = tf.string) -> Any:
    refuse_others("SerializeManySparse", out_type=(tf.as_dtype(out_type), tf.string))
    return tf.io.serialize_many_sparse(_of(sparse_indices, sparse_values, sparse_shape))


@op("sparse_indices sparse_values sparse_shape")
def deserialize_many_sparse(serialized_sparse: Any, dtype: Any) -> Any:
    return parts(tf.io.deserialize_many_sparse(serialized_sparse, dtype))
