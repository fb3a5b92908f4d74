"""Functions in TensorFlow 1's names, with positional arguments in its order, that TensorFlow has done and twofold does.

`python tests/compat/v1_names.py FILE`, where TensorFlow 2.21 is installed, writes what TensorFlow gives; the tests
compare with `data/v1_names.json`, which was written so.
"""

import json
import sys

import numpy as np


def cases(v1):
    """Functions that compute something, by a name for each."""
    a = v1.SparseTensor([[0, 1], [1, 0], [2, 2]], [1.0, -0.25, 3.0], [3, 4])
    b = v1.SparseTensor([[0, 1], [2, 0]], [-1.0, 2.0], [3, 4])
    ids = v1.SparseTensor([[0, 0], [0, 1], [1, 0]], [4, 2, 1], [2, 2])
    more = v1.SparseTensor([[0, 0], [0, 1], [1, 0]], [0, 1, 1], [2, 2])
    weights = v1.SparseTensor([[0, 0], [0, 1], [1, 0]], [0.5, 2.0, 1.0], [2, 2])
    data = np.arange(12, dtype=np.float32).reshape(4, 3) - 4
    rows = v1.stack([v1.serialize_sparse(a, "name"), v1.serialize_sparse(b, "name")])
    image = (np.arange(2 * 4 * 4 * 1) % 7).astype(np.float32).reshape(2, 4, 4, 1)
    kernel = np.arange(2 * 2 * 1 * 3, dtype=np.float32).reshape(2, 2, 1, 3) - 5
    ct = (np.arange(2 * 3 * 3 * 3) % 5).astype(np.float32).reshape(2, 3, 3, 3)

    def scattered(name, updates):
        v = v1.Variable(data, use_resource=True)
        getattr(v1, name)(v, [0, 2], updates)
        return v1.convert_to_tensor(v)
    return {
        "add": lambda: v1.sparse_add(a, b, 0.5),
        "add_thresh": lambda: v1.sparse_add(a, b, thresh=0.5),
        "add_dense": lambda: v1.sparse_add(a, np.ones((3, 4), np.float32)),
        "concat": lambda: v1.sparse_concat(1, [a, b], "name"),
        "concat_expand": lambda: v1.sparse_concat(0, [a, v1.SparseTensor([[0, 5]], [9.0], [1, 6])], None, True),
        "concat_dim": lambda: v1.sparse_concat(axis=None, sp_inputs=[a, b], concat_dim=0),
        "reduce_sum": lambda: v1.sparse_reduce_sum(a, 1, True),
        "reduce_sum_old": lambda: v1.sparse_reduce_sum(a, reduction_axes=0, keep_dims=False),
        "reduce_sum_all": lambda: v1.sparse_reduce_sum(a),
        "reduce_max": lambda: v1.sparse_reduce_max(a, [1]),
        "reduce_sum_sparse": lambda: v1.sparse_reduce_sum_sparse(a, 1),
        "reduce_max_sparse": lambda: v1.sparse_reduce_max_sparse(a, 0, True),
        "merge": lambda: v1.sparse_merge(ids, weights, 5),
        "merge_sorted": lambda: v1.sparse_merge(ids, weights, 5, None, True),
        "merge_two": lambda: v1.sparse_merge([ids, more], weights, [5, 3]),
        "sparse.merge": lambda: v1.sparse.merge(ids, weights, 5),
        "to_dense": lambda: v1.sparse_to_dense([[0, 1], [1, 0]], [2, 2], [5, 6], -1),
        "to_dense_one": lambda: v1.sparse_to_dense(2, [4], 1.5),
        "to_dense_all": lambda: v1.sparse_to_dense([3, 1], [4], 1, 0, False),
        "matmul": lambda: v1.sparse_matmul(data, data, False, True),
        "sparse.matmul": lambda: v1.sparse.matmul(a, np.eye(4, dtype=np.float32)),
        "segment_sum": lambda: v1.sparse_segment_sum(data, [0, 1, 3], [0, 0, 2], "name", 4),
        "segment_mean": lambda: v1.sparse_segment_mean(data, [0, 1, 3], [0, 0, 1]),
        "segment_sqrt_n": lambda: v1.sparse_segment_sqrt_n(data, [0, 1, 3], [0, 0, 1], None),
        "serialize": lambda: v1.serialize_sparse(a),
        "serialize_many": lambda: v1.serialize_many_sparse(a, "name"),
        "deserialize": lambda: v1.deserialize_many_sparse(rows, v1.float32, 3, "name"),
        "csv": lambda: v1.decode_csv(["1,x", "2,"], [[0], ["z"]], ",", True, None, ""),
        "join": lambda: v1.reduce_join([["a", "b"], ["c", "d"]], 0, True, "-"),
        "join_old": lambda: v1.reduce_join([["a", "b"], ["c", "d"]], reduction_indices=[0, 1]),
        "split_text": lambda: v1.string_split(["a b", " c", ""]),
        "split_chars": lambda: v1.string_split(["ab", "c"], ""),
        "split_set": lambda: v1.string_split(["a,b;c"], delimiter=",;"),
        "split_keep": lambda: v1.string_split(["a,,b"], ",", False),
        "split_ragged": lambda: v1.string_split(["a b", "", "c"], result_type="RaggedTensor").to_sparse(),
        "bucket": lambda: v1.string_to_hash_bucket(["a", "b"], 7, "name"),
        "bucket_fast": lambda: v1.string_to_hash_bucket_fast(["a", "b"], 7),
        "bucket_strong": lambda: v1.string_to_hash_bucket_strong(["a", "b"], 7, [1, 2]),
        "base64": lambda: v1.decode_base64(v1.encode_base64(["abc"], True)),
        "parse": lambda: v1.parse_tensor(v1.serialize_tensor(data), v1.float32),
        "setdiff": lambda: v1.setdiff1d([1, 2, 3, 2], [1, 3], v1.int64),
        "patches": lambda: v1.extract_image_patches(image, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
        "quantize": lambda: v1.quantize_v2(data, -4.0, 8.0, v1.quint8, "MIN_COMBINED", "name")[1:],
        "fake_quant": lambda: v1.fake_quant_with_min_max_args(data, -3, 3, 4),
        "union": lambda: v1.sets.set_union([[1, 2]], [[2, 5]]),
        "roll": lambda: v1.manip.roll(data, 1, 0),
        "fft": lambda: v1.spectral.fft(v1.to_complex64([1.0, 2.0])),
        "scatter_max": lambda: scattered("scatter_max", np.zeros((2, 3), np.float32)),
        "scatter_min": lambda: scattered("scatter_min", np.zeros((2, 3), np.float32)),
        "scatter_max_one": lambda: scattered("scatter_max", 0.5),
        "bicubic": lambda: v1.image.resize_bicubic(image, [3, 5], True),
        "transposed": lambda: v1.image.transpose_image(image),
        "backprop_input": lambda: v1.nn.conv2d_backprop_input([2, 4, 4, 1], kernel, ct, [1, 1, 1, 1], "VALID"),
        "backprop_filters": lambda: v1.nn.conv2d_backprop_input(
            input_sizes=[2, 4, 4, 1], filters=kernel, out_backprop=ct[:, :2, :2], strides=[1, 2, 2, 1],
            padding="SAME"),
        "backprop_filter": lambda: v1.nn.conv2d_backprop_filter(
            image, [2, 2, 1, 3], ct, [1, 1, 1, 1], [[0, 0], [0, 0], [0, 0], [0, 0]]),
        "depthwise_input": lambda: v1.nn.depthwise_conv2d_native_backprop_input(
            [2, 4, 4, 1], kernel, ct, [1, 1, 1, 1], "VALID"),
        "depthwise_filter": lambda: v1.nn.depthwise_conv2d_native_backprop_filter(
            image, [2, 2, 1, 3], ct, [1, 1, 1, 1], "VALID"),
        "conv3d": lambda: v1.nn.conv3d_backprop_filter(
            image[..., None], [2, 2, 1, 1, 3], ct[:, :, :, None, :], [1] * 5, "VALID"),
        "monotone": lambda: [v1.is_non_decreasing([1, 1, 2]), v1.is_strictly_increasing([1, 1, 2])],
        "dimension": lambda: [
            v1.dimension_value(v1.Dimension(3)), v1.dimension_at_index(v1.TensorShape([3, 4]), 1).value],
        "stateless": lambda: v1.random.stateless_multinomial([[0.0, 1.0]], 3, [1, 2], v1.int32),
        "split": lambda: v1.sparse_split(sp_input=a, num_split=2, axis=1),
        "join_axes": lambda: v1.reduce_join([["a", "b"], ["c", "d"]], [1, 0], None, "."),
        "join_kept": lambda: v1.reduce_join([[["a", "b"], ["c", "d"]]], [0, 2], True),
    }


def plain(x, tf):
    """A value as lists and numbers."""
    if isinstance(x, tf.SparseTensor):
        return [plain(part, tf) for part in (x.indices, x.values, x.dense_shape)]
    if isinstance(x, list | tuple):
        return [plain(y, tf) for y in x]
    if not hasattr(x, "numpy"):
        return x
    value = np.asarray(x.numpy())
    return [x.dtype.name, repr(value.tolist())]


if __name__ == "__main__":
    import tensorflow

    with open(sys.argv[1], "w") as file:
        values = {name: plain(case(), tensorflow) for name, case in cases(tensorflow.compat.v1).items()}
        file.write("{" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in values.items()) + "}\n")
