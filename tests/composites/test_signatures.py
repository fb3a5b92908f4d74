"""What functions say of composite arguments and results, and what they do with other values in their places."""

import pytest

import twofold as tf

ROWS = tf.ragged.constant([[1, 2], [3]])


def test_concrete_functions_show_specs_and_take_other_rows_only_where_sizes_are_open():
    function = tf.function(lambda x: {"twice": x * 2})
    fixed = function.get_concrete_function(ROWS)
    assert fixed.structured_outputs == {"twice": ROWS._type_spec}
    assert fixed.structured_input_signature[0] == (ROWS._type_spec,)
    assert "RaggedTensorSpec(TensorShape([2, None]), tf.int32, 1, tf.int64)" in repr(fixed.function_type)
    assert fixed(ROWS)["twice"].to_list() == [[2, 4], [6]]
    open_ = function.get_concrete_function(tf.RaggedTensorSpec([None, None], tf.int32))
    assert open_(tf.ragged.constant([[], [5], [6, 7]], dtype=tf.int32))["twice"].to_list() == [[], [10], [12, 14]]
    with pytest.raises(TypeError):
        open_(tf.ragged.constant([[1.0]]))
    with pytest.raises(TypeError):
        open_(tf.constant([[1, 2]]))


def test_saved_traces_of_known_and_open_sizes(tmp_path):
    module = tf.Module()
    module.run = tf.function(lambda x, s: (x[:, :1], tf.sparse.reduce_sum(s, 1)))
    sparse = tf.SparseTensor([[0, 1]], [2.0], [2, 2])
    module.run.get_concrete_function(ROWS, sparse)
    module.run.get_concrete_function(tf.RaggedTensorSpec([None, None], tf.int64), sparse)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    rows, sums = loaded.run(ROWS, sparse)
    assert rows.to_list() == [[1], [3]] and sums.numpy().tolist() == [2.0, 0.0]
    assert loaded.run(tf.ragged.constant([[5, 6], [], [7]], tf.int64), sparse)[0].to_list() == [[5], [], [7]]
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.run(tf.ragged.constant([["a"]]), sparse)


def test_rows_of_a_ragged_tensor_are_batched_as_rows():
    data = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1, 2], [3], []]))
    assert data.element_spec == tf.RaggedTensorSpec([None], tf.int32, 0)
    assert [x.to_list() for x in data.batch(2)] == [[[1, 2], [3]], [[]]]
    assert [x.numpy().tolist() for x in data.batch(2).unbatch()] == [[1, 2], [3], []]
    with pytest.raises(TypeError, match="Padded batching"):
        data.padded_batch(2)
