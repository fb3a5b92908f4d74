"""Calls of raw ops with numbers, for TensorFlow and for twofold alike: `record_raw_results.py` keeps what the one
gives, `test_raw_results.py` compares what the other gives.
"""

import inspect

import numpy as np

_RNG = np.random.default_rng(17)


def _floats(*shape):
    return np.round(_RNG.normal(size=shape) * 2, 2).astype(np.float32)


IMAGE, FILTER, BOXES = _floats(2, 4, 5, 2), _floats(2, 2, 2, 3), np.float32([[0, 0, 1, 1], [0.1, 0.2, 0.8, 0.7]])
LOW, WIDE, ROWS, VOLUME = _floats(2, 3, 2, 2), _floats(1, 3, 4, 3), _floats(3, 4), _floats(1, 3, 3, 3, 1)
VECTOR, ONE_HOT = np.float32([1, 2.5, -3, 0.5]), np.eye(4, dtype=np.float32)[[0, 2, 3]]
SPD = np.float32([[4, 1, 0.5], [1, 3, -0.5], [0.5, -0.5, 2]])
IDX, VAL, SHAPE = np.int64([[0, 1], [1, 0], [1, 3], [3, 2]]), np.float32([1, -2, 3, 4]), np.int64([4, 5])
IDX2, VAL2 = np.int64([[0, 1], [2, 2]]), np.float32([5, -6])
SET, SET_VALUES, SET_SHAPE = np.int64([[0, 0], [0, 1], [1, 0]]), np.int64([3, 5, 2]), np.int64([2, 2])
ONES, TWOS, POOL = [1, 1, 1, 1], [1, 2, 2, 1], {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
CELL = {"x": _floats(2, 3), "h_prev": _floats(2, 2)}
LSTM = {"w": _floats(5, 8), "wci": _floats(2), "wcf": _floats(2), "wco": _floats(2), "b": _floats(8)}
SEQUENCE, LABELS = _floats(5, 2, 4), {"labels_indices": np.int64([[0, 0], [0, 1], [1, 0]]),
                                      "labels_values": np.int32([1, 2, 2])}
NORM = {"scale": np.float32([1, 2]), "offset": np.float32([0.5, -1]), "mean": np.float32([0, 0.1]),
        "variance": np.float32([1, 2])}
MAPS = np.float32([[1, 0.2, -0.5, 0.1, 0.9, 0.3, 0, 0], [0.8, 0, 0.4, -0.3, 1.1, 0, 0.01, 0.02]])
SEED, KEY, COUNTER = np.int32([3, 5]), np.uint64([1234567]), np.uint64([0, 9])
KEYED = {"key": KEY, "counter": COUNTER, "alg": np.int32(1)}
QUANTISED = {"input": ROWS, "input_min": np.float32(-2), "input_max": np.float32(3)}
TEXTS = np.array(["a b", "c", "", "d é f"], object)
DRAWS = np.int32([4])


def _sp(prefix="", indices="indices", values="values", shape="shape"):
    return {f"{prefix}{indices}": IDX, f"{prefix}{values}": VAL, f"{prefix}{shape}": SHAPE}


def _two():
    return {"a_indices": IDX, "a_values": VAL, "a_shape": SHAPE, "b_indices": IDX2, "b_values": VAL2, "b_shape": SHAPE}


def cases(tf):
    """The arguments of each call by the name of its op, behind which there may be a word of what is special."""
    example = tf.train.Example(features=tf.train.Features(feature={
        "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[7])),
        "f": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5, 1.5]))})).SerializeToString()
    return {
        # -- images
        **{f"Resize{kind} {n}": {"images": IMAGE, "size": [3, 7], **settings} for kind in (
            "Bilinear", "Bicubic", "NearestNeighbor") for n, settings in enumerate((
                {}, {"align_corners": True}, {"half_pixel_centers": True}))},
        "ResizeArea": {"images": IMAGE, "size": [2, 3]},
        "ResizeBilinearGrad": {"grads": WIDE, "original_image": WIDE[:, :2, :2], "half_pixel_centers": True},
        "ResizeBicubicGrad": {"grads": WIDE, "original_image": WIDE[:, :2, :2]},
        "ResizeNearestNeighborGrad": {"grads": WIDE, "size": [2, 2]},
        **{f"ScaleAndTranslate {kind}": {"images": IMAGE, "size": [4, 3], "scale": [1.2, 0.6], "translation": [
            0.3, -0.4], "kernel_type": kind} for kind in ("lanczos3", "triangle", "keyscubic", "gaussian")},
        "ScaleAndTranslateGrad": {"grads": WIDE, "original_image": WIDE[:, :2], "scale": [1.5, 1.0],
                                  "translation": [0.0, 0.2], "kernel_type": "triangle"},
        "CropAndResizeGradImage": {"grads": LOW, "boxes": BOXES, "box_ind": [1, 0], "image_size": [2, 4, 4, 2],
                                   "T": tf.float32},
        "CropAndResizeGradBoxes": {"grads": LOW, "image": IMAGE, "boxes": BOXES, "box_ind": [1, 0]},
        **{f"ImageProjectiveTransformV3 {how} {fill}": {
            "images": IMAGE, "transforms": MAPS, "output_shape": [3, 6], "fill_value": 0.5, "interpolation": how,
            "fill_mode": fill} for how in ("BILINEAR", "NEAREST")
           for fill in ("CONSTANT", "REFLECT", "WRAP", "NEAREST")},
        "ImageProjectiveTransformV2": {"images": IMAGE, "transforms": MAPS[:1], "output_shape": [4, 4],
                                       "interpolation": "BILINEAR"},
        "DrawBoundingBoxes": {"images": np.ones([1, 5, 5, 3], np.float32), "boxes": BOXES[None]},
        **{f"NonMaxSuppressionV{v} {padded}": {
            "boxes": np.float32([[0, 0, 1, 1], [0, 0.1, 1, 1], [2, 2, 3, 3]]), "scores": np.float32([0.6, 0.9, 0.5]),
            "max_output_size": 4, "iou_threshold": 0.5, "score_threshold": 0.1, "pad_to_max_output_size": padded,
            **({"soft_nms_sigma": 0.5} if v == 5 else {})} for v in (4, 5) for padded in (False, True)},
        # -- matrices
        "MatrixSolveLs": {"matrix": ROWS.T, "rhs": ROWS.T[:, :2], "l2_regularizer": np.float64(0.1)},
        "SparseMatMul": {"a": ROWS, "b": ROWS, "transpose_b": True},
        "CholeskyGrad": {"l": np.linalg.cholesky(SPD).astype(np.float32), "grad": np.tril(SPD)},
        "TridiagonalMatMul": {"superdiag": ROWS[:, None, :][0], "maindiag": ROWS[1:2], "subdiag": ROWS[2:3],
                              "rhs": _cached("rhs", 4, 2)},
        "MatrixDiagV3": {"diagonal": ROWS, "k": [-1, 1], "num_rows": -1, "num_cols": -1,
                         "padding_value": np.float32(9)},
        "MatrixDiagPartV3": {"input": SPD, "k": [-1, 1], "padding_value": np.float32(9), "align": "LEFT_RIGHT"},
        "MatrixSetDiagV3": {"input": SPD, "diagonal": np.float32([7, 8]), "k": 1},
        # -- arrays
        "Polygamma": {"a": np.float32([1, 2]), "x": np.float32([0.5, 3])}, "Equal": {"x": VECTOR, "y": VECTOR},
        "NotEqual": {"x": VECTOR, "y": VECTOR[:3], "incompatible_shape_error": False},
        "ApproximateEqual": {"x": VECTOR, "y": VECTOR + np.float32([0, 1e-6, 0.1, 0])},
        "BatchToSpace": {"input": np.arange(8, dtype=np.float32).reshape(4, 1, 2, 1), "crops": [[0, 0], [1, 0]],
                         "block_size": 2},
        "SpaceToBatch": {"input": IMAGE[:1], "paddings": [[0, 0], [1, 0]], "block_size": 2},
        "BroadcastGradientArgs": {"s0": [2, 1, 3], "s1": [1, 4, 1]}, "BroadcastGradientArgs short": {
            "s0": [3], "s1": [2, 1, 1]}, "BroadcastGradientArgs same": {"s0": [2, 3], "s1": [2, 3]},
        "ConcatOffset": {"concat_dim": 1, "shape": [[2, 3], [2, 4], [2, 1]]},
        "DataFormatDimMap": {"x": np.int32([0, 1, -1])}, "DataFormatVecPermute": {"x": np.int32([7, 8, 9, 10])},
        "DataFormatVecPermute two": {"x": np.int32([[1, 2], [3, 4]]), "src_format": "NCHW", "dst_format": "NHWC"},
        # TensorFlow writes into these operands
        "InplaceUpdate": {"x": ROWS.copy(), "i": np.int32([2, 0]), "v": ROWS[:2]},
        "InplaceAdd": {"x": ROWS.copy(), "i": np.int32([2, 0]), "v": ROWS[:2]}, "InplaceSub": {
            "x": ROWS.copy(), "i": np.int32([1]), "v": ROWS[:1]},
        "ListDiff": {"x": np.int32([1, 2, 3, 2, 5]), "y": np.int32([2, 7])}, "InTopK": {
            "predictions": ROWS, "targets": np.int32([0, 1, 3]), "k": 2},
        "MirrorPadGrad": {"input": ROWS, "paddings": [[1, 0], [1, 1]], "mode": "REFLECT"},
        "NthElement": {"input": ROWS, "n": 1}, "NthElement largest": {"input": ROWS, "n": 0, "reverse": True},
        "Reverse": {"tensor": ROWS, "dims": [True, False]},
        "StridedSliceGrad": {"shape": [4, 5], "begin": [0, 1], "end": [4, 4], "strides": [2, 1], "dy": ROWS[:2, :3]},
        "TensorStridedSliceUpdate": {"input": ROWS, "begin": [0, 3], "end": [2, 0], "strides": [1, -2],
                                     "value": ROWS[:2, :2]},
        "Select": {"condition": [True, False, True], "x": ROWS, "y": -ROWS}, "UniqueV2": {
            "x": np.int32([3, 1, 3, 2]), "axis": np.int64([])}, "UniqueV2 rows": {
                "x": np.int32([[1, 2], [3, 4], [1, 2]]), "axis": np.int64([0])}, "UniqueV2 no rows": {
                    "x": np.zeros([0, 3], np.float32), "axis": np.int64([0])}, "UniqueV2 nan": {
                        "x": np.float32([[1, np.nan], [2, 1], [1, np.nan], [2, 1]]), "axis": np.int64([0])},
        "UniqueWithCountsV2": {"x": np.int32([[1, 2, 1], [3, 4, 3]]), "axis": np.int64([1])},
        "Bucketize": {"input": ROWS, "boundaries": [-1.0, 0.0, 2.5]}, "Bucketize integers": {
            "input": np.int32([-1, 0, 5]), "boundaries": [0.0, 5.0]},
        "Bincount": {"arr": np.int32([1, 1, 3, 7]), "size": 5, "weights": np.float32([])},
        "DenseBincount": {"input": np.int32([[1, 1, 3], [0, 2, 9]]), "size": 4, "weights": np.float32([])},
        "DenseBincount weighted": {"input": np.int32([1, 1, 3]), "size": 4, "weights": np.float32([0.5, 1, 2])},
        "DenseBincount binary": {"input": np.int32([1, 1, 3]), "size": 4, "weights": np.float32([]),
                                 "binary_output": True},
        "Div": {"x": np.int32([7, -7]), "y": np.int32([2, 2])}, "Mod": {"x": np.int32([7, -7]), "y": np.int32([3, 3])},
        "InvGrad": {"y": VECTOR, "dy": VECTOR}, "ReciprocalGrad": {"y": VECTOR, "dy": VECTOR[::-1].copy()},
        "SqrtGrad": {"y": VECTOR, "dy": VECTOR}, "RsqrtGrad": {"y": VECTOR, "dy": VECTOR},
        "SoftplusGrad": {"gradients": VECTOR, "features": VECTOR[::-1].copy()},
        "PopulationCount": {"x": np.int16([0, 1, -1, 300])}, "ToBool": {"input": np.float32(0)},
        "NearestNeighbors": {"points": ROWS, "centers": -ROWS[:2], "k": 2},
        "AudioSpectrogram": {"input": np.sin(np.arange(64, dtype=np.float32)).reshape(32, 2), "window_size": 12,
                             "stride": 7}, "AudioSpectrogram squared": {
            "input": np.cos(np.arange(20, dtype=np.float32))[:, None], "window_size": 8, "stride": 5,
            "magnitude_squared": True},
        "ComplexAbs": {"x": np.complex64([3 + 4j, 1j])},
        "IsotonicRegression": {"input": ROWS},
        # -- networks
        **{f"FusedBatchNormV3 {n}": {"x": IMAGE, **NORM, **more} for n, more in enumerate((
            {}, {"is_training": False}, {"exponential_avg_factor": 0.3}))},
        "FusedBatchNorm": {"x": IMAGE, **NORM}, "FusedBatchNormV2": {"x": IMAGE, **NORM},
        "FusedBatchNormGradV3": {"y_backprop": IMAGE[::-1].copy(), "x": IMAGE, "scale": NORM["scale"],
                                 "reserve_space_1": IMAGE.mean((0, 1, 2)), "reserve_space_2": IMAGE.var((0, 1, 2)),
                                 "reserve_space_3": np.float32([])},
        "FusedBatchNormGradV3 given": {"y_backprop": IMAGE[::-1].copy(), "x": IMAGE, "scale": NORM["scale"],
                                       "reserve_space_1": NORM["mean"], "reserve_space_2": NORM["variance"],
                                       "reserve_space_3": np.float32([]), "is_training": False},
        "LRNGrad": {"input_grads": WIDE, "input_image": WIDE, "output_image": tf.nn.lrn(WIDE, 1).numpy(),
                    "depth_radius": 1},
        "BiasAddGrad": {"out_backprop": IMAGE}, "SoftmaxCrossEntropyWithLogits": {"features": ROWS, "labels": ONE_HOT},
        "SparseSoftmaxCrossEntropyWithLogits": {"features": ROWS, "labels": np.int32([1, 0, 3])},
        "GRUBlockCell": {**CELL, "w_ru": LSTM["w"][:, :4], "w_c": LSTM["w"][:, 4:6], "b_ru": LSTM["b"][:4],
                         "b_c": LSTM["b"][4:6]},
        "LSTMBlockCell": {**CELL, "cs_prev": CELL["h_prev"] / 2, **LSTM}, "LSTMBlockCell peephole": {
            **CELL, "cs_prev": CELL["h_prev"], **LSTM, "use_peephole": True, "cell_clip": 0.5},
        "BlockLSTM": {"seq_len_max": np.int64(3), "x": SEQUENCE[:3, :, :3], "cs_prev": CELL["h_prev"],
                      "h_prev": CELL["h_prev"], **LSTM},
        "BlockLSTMV2": {"seq_len_max": np.int64(3), "x": SEQUENCE[:3, :, :3], "cs_prev": CELL["h_prev"],
                        "h_prev": CELL["h_prev"], **LSTM},
        # -- windows
        "DepthwiseConv2dNative": {"input": IMAGE, "filter": FILTER, "strides": ONES, "padding": "SAME"},
        "DepthwiseConv2dNativeBackpropFilter": {"input": IMAGE, "filter_sizes": [2, 2, 2, 1], "out_backprop": IMAGE,
                                                "strides": ONES, "padding": "SAME"},
        "DepthwiseConv2dNativeBackpropInput": {"input_sizes": [2, 4, 5, 2], "filter": FILTER[..., :1],
                                               "out_backprop": IMAGE, "strides": ONES, "padding": "SAME"},
        "Conv2DBackpropInput": {"input_sizes": [1, 3, 4, 2], "filter": FILTER, "out_backprop": WIDE, "strides": ONES,
                                "padding": "SAME"},
        "Conv2DBackpropFilter": {"input": IMAGE[:1, :3, :4], "filter_sizes": [2, 2, 2, 3], "out_backprop": WIDE,
                                 "strides": ONES, "padding": "SAME"},
        "Conv3DBackpropInputV2": {"input_sizes": [1, 3, 3, 3, 1], "filter": VOLUME[0, :2, :2, :2, :, None],
                                  "out_backprop": VOLUME[:, :2, :2, :2], "strides": [1] * 5, "padding": "VALID"},
        "Conv3DBackpropFilterV2": {"input": VOLUME, "filter_sizes": [2, 2, 2, 1, 1],
                                   "out_backprop": VOLUME[:, :2, :2, :2], "strides": [1] * 5, "padding": "VALID"},
        "Dilation2D": {"input": IMAGE, "filter": FILTER[..., 0], "strides": ONES, "rates": ONES, "padding": "VALID"},
        "Dilation2DBackpropInput": {"input": IMAGE, "filter": FILTER[..., 0], "out_backprop": IMAGE[:, :3, :4],
                                    "strides": ONES, "rates": ONES, "padding": "VALID"},
        "Dilation2DBackpropFilter": {"input": IMAGE, "filter": FILTER[..., 0], "out_backprop": IMAGE[:, :3, :4],
                                     "strides": ONES, "rates": ONES, "padding": "VALID"},
        "FusedPadConv2D": {"input": IMAGE[:1], "paddings": [[0, 0], [1, 1], [2, 0], [0, 0]], "filter": FILTER,
                           "mode": "REFLECT", "strides": ONES, "padding": "VALID"},
        "FusedResizeAndPadConv2D": {"input": IMAGE[:1], "size": [5, 5], "paddings": [[0, 0], [1, 1], [2, 0], [0, 0]],
                                    "filter": FILTER, "mode": "SYMMETRIC", "strides": ONES, "padding": "VALID"},
        **{f"MaxPoolGradGrad{v}": {"orig_input": IMAGE[:, :, :4], "orig_output": _pooled(IMAGE[:, :, :4]),
                                   "grad": IMAGE[:, ::-1, :4].copy(), **POOL} for v in ("", "V2")},
        "FractionalMaxPoolGrad": {
            "orig_input": IMAGE[:1, :, :, :1], "orig_output": _pooled_at(IMAGE[:1, :, :, :1], [0, 1, 4], [0, 2, 3, 5]),
            "out_backprop": WIDE[:, :2, :3, :1], "row_pooling_sequence": np.int64([0, 1, 4]),
            "col_pooling_sequence": np.int64([0, 2, 3, 5])},
        "FractionalAvgPoolGrad": {
            "orig_input_tensor_shape": np.int64([1, 4, 5, 1]), "out_backprop": WIDE[:, :2, :3, :1],
            "row_pooling_sequence": np.int64([0, 1, 4]), "col_pooling_sequence": np.int64([0, 2, 3, 5]),
            "overlapping": True},
        "AvgPoolGrad": {"orig_input_shape": [2, 4, 4, 2], "grad": LOW[:, :2], **POOL},
        "AvgPool3DGrad": {"orig_input_shape": [1, 3, 3, 3, 1], "grad": VOLUME[:, :1, :1, :1], "ksize": [1, 2, 2, 2, 1],
                          "strides": [1, 2, 2, 2, 1], "padding": "VALID"},
        "MaxPoolGrad": {"orig_input": IMAGE[:, :, :4], "orig_output": _pooled(IMAGE[:, :, :4]), "grad": LOW[:, :2],
                        **POOL},
        "MaxPoolGradV2": {"orig_input": IMAGE[:, :, :4], "orig_output": _pooled(IMAGE[:, :, :4]), "grad": LOW[:, :2],
                          **POOL},
        "MaxPool3DGrad": {"orig_input": VOLUME, "orig_output": VOLUME[:, :2, :2, :2].max((1, 2, 3), keepdims=True),
                          "grad": VOLUME[:, :1, :1, :1], "ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1],
                          "padding": "VALID"},
        # -- quantisation
        "FakeQuantWithMinMaxVarsGradient": {"gradients": ROWS, "inputs": ROWS, "min": -1.0, "max": 2.0},
        "FakeQuantWithMinMaxVarsPerChannelGradient": {"gradients": ROWS, "inputs": ROWS, "min": np.float32([-1] * 4),
                                                      "max": np.float32([0.5, 1, 2, 3])},
        **{f"QuantizeAndDequantizeV{v}": {**QUANTISED, "range_given": True} for v in (2, 4)},
        "QuantizeAndDequantizeV3": {**QUANTISED, "num_bits": 4}, "QuantizeAndDequantizeV4Grad": {
            **QUANTISED, "gradients": ROWS},
        "QuantizeV2": {"input": ROWS, "min_range": -3.0, "max_range": 3.0, "T": tf.qint8},
        "QuantizeV2 scaled": {"input": ROWS, "min_range": -3.0, "max_range": 3.0, "T": tf.qint8, "mode": "SCALED"},
        "Dequantize": {"input": tf.bitcast(np.int8([-128, -5, 0, 100]), tf.qint8), "min_range": -3.0,
                       "max_range": 2.0},
        # -- draws
        **{f"{name} seeded": {"shape": DRAWS, "dtype": tf.float32, "seed": 3, "seed2": 7} for name in (
            "RandomStandardNormal", "TruncatedNormal", "RandomUniform")},
        "RandomUniformInt": {"shape": DRAWS, "minval": 3, "maxval": 90, "seed": 3, "seed2": 7},
        "RandomShuffle": {"value": np.arange(9), "seed": 1, "seed2": 2}, "RandomPoissonV2": {
            "shape": DRAWS, "rate": np.float32([2, 30]), "seed": 1, "seed2": 2},
        "RandomGamma": {
            "shape": DRAWS, "alpha": np.float32([0.5, 4]), "seed": 1, "seed2": 2},
        "Multinomial": {"logits": ROWS[:1], "num_samples": 6, "seed": 1, "seed2": 2},
        "RandomGammaGrad": {"alpha": np.float32([0.5, 2, 7]), "sample": np.float32([0.2, 3, 5])},
        "RandomIndexShuffle": {"index": 3, "seed": np.int32([498247692, 2, 3]), "max_index": 9},
        "StatelessRandomGetKeyCounter": {"seed": SEED}, "StatelessRandomGetKeyCounterAlg": {"seed": SEED},
        "StatelessRandomGetAlg": {},
        **{f"Stateless{name}": {"shape": DRAWS, **KEYED} for name in (
            "RandomNormalV2", "TruncatedNormalV2", "RandomUniformV2", "RandomUniformFullIntV2")},
        "StatelessRandomUniformIntV2": {"shape": DRAWS, **KEYED, "minval": -5, "maxval": 99},
        "StatelessRandomUniformInt": {"shape": DRAWS, "seed": SEED, "minval": -5, "maxval": 99},
        "StatelessRandomUniformFullInt": {"shape": DRAWS, "seed": SEED}, "StatelessShuffle": {
            "value": np.arange(9), **KEYED},
        "StatelessRandomGammaV2": {"shape": DRAWS, "seed": SEED, "alpha": np.float32(2)},
        "StatelessRandomGammaV3": {"shape": DRAWS, **KEYED, "alpha": np.float32(2)},
        # -- sparse tensors
        "SparseAdd": {**_two(), "thresh": np.float32(0)}, "SparseAddGrad": {
            "backprop_val_grad": np.float32([1, 2, 3, 4, 5]), "a_indices": IDX, "b_indices": IDX2,
            "sum_indices": np.int64([[0, 1], [1, 0], [1, 3], [2, 2], [3, 2]])},
        **{f"SparseDenseCwise{kind}": {**_sp("sp_"), "dense": np.float32([1, 2, 3, 4, 5])} for kind in (
            "Add", "Mul", "Div")},
        "SparseSparseMaximum": _two(), "SparseSparseMinimum": _two(), "SparseTensorDenseAdd": {
            "a_indices": IDX, "a_values": VAL, "a_shape": SHAPE, "b": np.ones([4, 5], np.float32)},
        "SparseTensorDenseMatMul": {"a_indices": IDX, "a_values": VAL, "a_shape": SHAPE,
                                    "b": np.arange(10, dtype=np.float32).reshape(5, 2)},
        "SparseSoftmax": _sp("sp_"), **{f"SparseReduce{kind}": {**_sp("input_"), "reduction_axes": [1]} for kind in (
            "Sum", "Max", "SumSparse", "MaxSparse")},
        "SparseBincount": {"indices": IDX, "values": np.int64([1, 2, 2, 0]), "dense_shape": SHAPE, "size": np.int64(4),
                           "weights": np.float32([])},
        "SparseConcat": {"indices": [IDX, IDX2], "values": [VAL, VAL2], "shapes": [SHAPE, SHAPE], "concat_dim": 1},
        "SparseReorder": {"input_indices": IDX[::-1].copy(), "input_values": VAL, "input_shape": SHAPE},
        "SparseReshape": {"input_indices": IDX, "input_shape": SHAPE, "new_shape": np.int64([2, -1])},
        "SparseSlice": {**_sp(), "start": np.int64([1, 0]), "size": np.int64([3, 3])},
        "SparseSliceGrad": {"backprop_val_grad": np.float32([7, 8]), "input_indices": IDX,
                            "input_start": np.int64([1, 0]), "output_indices": np.int64([[0, 0], [2, 2]])},
        "SparseSplit": {"split_dim": np.int64(1), **_sp(), "num_split": 2},
        "SparseFillEmptyRows": {**_sp(shape="dense_shape"), "default_value": np.float32(9)},
        "SparseFillEmptyRowsGrad": {"reverse_index_map": np.int64([0, 1, 2, 4]),
                                    "grad_values": np.float32([1, 2, 3, 4, 5])},
        "SparseToDense": {"sparse_indices": IDX, "output_shape": SHAPE, "sparse_values": VAL,
                          "default_value": np.float32(-1)},
        **{f"SparseSegment{kind}Grad": {"grad": ROWS[:2], "indices": [0, 2, 1], "segment_ids": [0, 0, 1],
                                        "output_dim0": 4} for kind in ("Sum", "Mean", "SqrtN")},
        "SparseCountSparseOutput": {**_sp(shape="dense_shape"), "values": np.int64([1, 2, 2, 0]), "weights":
                                    np.float32([]), "binary_output": False},
        "DenseCountSparseOutput": {"values": np.int64([[1, 1, 3], [0, 2, 2]]), "weights": np.float32([]),
                                   "binary_output": False, "maxlength": 3},
        **{f"DenseToDenseSetOperation {kind}": {"set1": np.int64([[1, 2], [3, 4]]), "set2": np.int64([[2, 5], [4, 3]]),
                                                "set_operation": kind} for kind in (
            "a-b", "b-a", "intersection", "union")},
        "DenseToSparseSetOperation": {"set1": np.int64([[3, 2], [3, 4]]), "set2_indices": SET,
                                      "set2_values": SET_VALUES, "set2_shape": SET_SHAPE, "set_operation": "union"},
        "SparseToSparseSetOperation": {
            "set1_indices": SET, "set1_values": SET_VALUES, "set1_shape": SET_SHAPE, "set2_indices": SET[1:],
            "set2_values": SET_VALUES[1:], "set2_shape": SET_SHAPE, "set_operation": "a-b"},
        "SetSize": {"set_indices": SET, "set_values": SET_VALUES, "set_shape": SET_SHAPE},
        "EditDistance": {"hypothesis_indices": SET, "hypothesis_values": SET_VALUES, "hypothesis_shape": SET_SHAPE,
                         "truth_indices": SET, "truth_values": SET_VALUES[::-1].copy(), "truth_shape": SET_SHAPE},
        "CTCGreedyDecoder": {"inputs": SEQUENCE, "sequence_length": np.int32([5, 3]), "merge_repeated": True},
        "CTCBeamSearchDecoder": {"inputs": SEQUENCE, "sequence_length": np.int32([5, 3]), "beam_width": 8,
                                 "top_paths": 1, "merge_repeated": False},
        "CTCLoss": {"inputs": SEQUENCE, **LABELS, "sequence_length": np.int32([5, 4])},
        # -- ragged tensors
        "RaggedRange": {"starts": np.int32([0, 5]), "limits": np.int32([3, 1]), "deltas": np.int32([1, -2])},
        "RaggedGather": {"params_nested_splits": [np.int64([0, 2, 3, 3])], "params_dense_values": VAL[:3],
                         "indices": np.int32([2, 0]), "OUTPUT_RAGGED_RANK": 1},
        "RaggedTensorToSparse": {"rt_nested_splits": [np.int64([0, 2, 2, 3])], "rt_dense_values": VAL[:3]},
        "RaggedTensorToTensor": {"shape": np.int64([-1, 3]), "values": VAL, "default_value": np.float32(-1),
                                 "row_partition_tensors": [np.int64([0, 2, 2, 4])],
                                 "row_partition_types": ["ROW_SPLITS"]},
        "RaggedTensorToTensor ids": {"shape": np.int64([-1, -1]), "values": VAL, "default_value": np.float32(0),
                                     "row_partition_tensors": [np.int64(4), np.int64([0, 0, 2, 2])],
                                     "row_partition_types": ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]},
        "RaggedBincount": {"splits": np.int64([0, 2, 3]), "values": np.int32([1, 1, 4]), "size": 3,
                           "weights": np.float32([])},
        "RaggedCountSparseOutput": {"splits": np.int64([0, 2, 3]), "values": np.int32([1, 1, 4]),
                                    "weights": np.float32([]), "binary_output": False},
        "RaggedFillEmptyRows": {"value_rowids": np.int64([0, 2, 2]), "values": VAL[:3], "nrows": np.int64(4),
                                "default_value": np.float32(9)},
        "RaggedFillEmptyRowsGrad": {"reverse_index_map": np.int64([0, 2]), "grad_values": np.float32([1, 2, 3])},
        # -- strings and records
        "StringSplit": {"input": np.array(["a,b. c", ",x", ""], object), "delimiter": ",."}, "StringSplit all": {
            "input": np.array(["a,b", ",x,"], object), "delimiter": ",", "skip_empty": False},
        "StringSplit bytes": {"input": np.array(["ab", "c"], object), "delimiter": ""},
        "StringSplitV2": {"input": TEXTS, "sep": ""}, "StringSplitV2 once": {"input": TEXTS, "sep": " ", "maxsplit": 1},
        **{f"StringNGrams {n}": {"data": np.array(["a", "b", "c"], object), "data_splits": np.int64([0, 2, 3]),
                                 "separator": "-", "ngram_widths": [2, 3], "left_pad": "<", "right_pad": ">",
                                 "pad_width": n, "preserve_short_sequences": n == 0} for n in (0, 1, -1)},
        "ReduceJoin": {"inputs": np.array([["a", "b"], ["c", "d"]], object), "reduction_indices": [0],
                       "separator": "."}, "ReduceJoin both": {
            "inputs": np.array([["a", "b"], ["c", "d"]], object), "reduction_indices": [1, 0], "keep_dims": True},
        "ShardedFilename": {"basename": "w", "shard": 3, "num_shards": 12}, "ShardedFilespec": {
            "basename": "w", "num_shards": 12}, "StringFormat": {"inputs": [VECTOR], "template": "x %s"},
        "UnicodeDecode": {"input": TEXTS, "input_encoding": "UTF-8"}, "UnicodeDecodeWithOffsets": {
            "input": TEXTS[2:], "input_encoding": "UTF-8"}, "UnicodeEncode": {
            "input_values": np.int32([97, 233, 98]), "input_splits": np.int64([0, 2, 3]), "output_encoding": "UTF-8"},
        "DecodeCSV": {"records": ["1,2.5", ",3"], "record_defaults": [np.int32([7]), np.float32([])]},
        "DecodePaddedRaw": {"input_bytes": [b"\x01\x02\x03\x04", b"\x05"], "fixed_length": 4, "out_type": tf.uint8},
        "ParseExample": {"serialized": [example], "names": [], "sparse_keys": ["f"], "dense_keys": ["n"],
                         "dense_defaults": [np.int64([])], "sparse_types": [tf.float32], "dense_shapes": [[1]]},
        "ParseSingleExample": {"serialized": example, "dense_defaults": [np.int64([])], "num_sparse": 1,
                               "sparse_keys": ["f"], "dense_keys": ["n"], "sparse_types": [tf.float32],
                               "dense_shapes": [[1]]},
        "ParseExampleV2": {"serialized": [example], "names": [], "sparse_keys": [], "dense_keys": ["n"],
                           "ragged_keys": ["f"], "dense_defaults": [np.int64([])], "num_sparse": 0,
                           "sparse_types": [], "ragged_value_types": [tf.float32], "ragged_split_types": [tf.int64],
                           "dense_shapes": [[1]]},
        "ParseExampleV2 one": {"serialized": example, "names": [], "sparse_keys": [], "dense_keys": ["n"],
                               "ragged_keys": [], "dense_defaults": [np.int64([])], "num_sparse": 0,
                               "sparse_types": [], "ragged_value_types": [], "ragged_split_types": [],
                               "dense_shapes": [[1]]},
    }


#: draws from the state of a generator
FROM_STATES = {
    "StatefulStandardNormalV2": {}, "StatefulTruncatedNormal": {}, "StatefulUniform": {}, "StatefulUniformFullInt": {},
    "StatefulUniformInt": {"minval": -3, "maxval": 70}, "StatefulRandomBinomial": {"counts": 9.0, "probs": 0.4}}


def drawn(tf, name):
    """Two draws from a state, and what becomes of it when it moves on."""
    state = tf.random.Generator.from_seed(7).state
    given = {"resource": state.handle, "algorithm": np.int64(1)}
    made = [np.array(getattr(tf.raw_ops, name)(**given, shape=[3], **FROM_STATES[name])) for _ in range(2)]
    tf.raw_ops.RngSkip(**given, delta=np.int64(2))
    before = tf.raw_ops.RngReadAndSkip(resource=state.handle, alg=np.int32(1), delta=np.uint64(3))
    return [*made, np.array(before), np.array(state.numpy())]


#: operands of the steps of optimizers by their names; variables have three rows
_NUMBERS = {"alpha": 0.3, "lr": 0.1, "l1": 0.05, "l2": 0.2, "l2_shrinkage": 0.1, "lr_power": -0.5, "rho": 0.9,
            "epsilon": 0.01, "momentum": 0.8, "beta1": 0.9, "beta2": 0.99, "beta": 0.9, "beta1_power": 0.81,
            "beta2_power": 0.98, "sign_decay": 0.7, "logbase": 1.2}
_SQUARES = ("accum", "accum_update", "gradient_squared_accumulator", "ms", "v", "vhat")  # are not negative
UPDATES = tuple(f"Resource{kind}Apply{name}" for kind, names in (
    ("", "AdaMax Adadelta Adagrad AdagradDA AdagradV2 Adam AdamWithAmsgrad AddSign CenteredRMSProp Ftrl FtrlV2 "
         "GradientDescent KerasMomentum Momentum PowerSign ProximalAdagrad ProximalGradientDescent RMSProp"),
    ("Sparse", "Adadelta Adagrad AdagradDA AdagradV2 CenteredRMSProp Ftrl FtrlV2 KerasMomentum Momentum "
               "ProximalAdagrad ProximalGradientDescent RMSProp")) for name in names.split())


def updated(tf, name, **settings):
    """The variables of a step after two of it."""
    step = getattr(tf.raw_ops, name)
    variables, given = [], dict(settings)
    for parameter in inspect.signature(step).parameters.values():
        if parameter.default is not parameter.empty:
            continue
        key = parameter.name
        if key == "global_step":
            given[key] = np.int64(3)
        elif key == "indices":
            given[key] = np.int32([2, 0])
        elif key in ("grad", "delta"):
            given[key] = ROWS[:2] if "Sparse" in name else ROWS
        elif key in _NUMBERS:
            given[key] = np.float32(_NUMBERS[key])
        else:
            start = np.abs(ROWS[::-1]) + 0.5 if key in _SQUARES or "DA" in name else ROWS[:, ::-1]
            start = start * 0 + 0.1 if key == "mg" else start
            variables.append(tf.Variable(start))
            given[key] = variables[-1].handle
    for _ in range(2):
        step(**given)
    return [np.array(v.numpy()) for v in variables]


def _cached(name, *shape, kept={}):  # noqa: B006  # the same numbers in each call
    if name not in kept:
        kept[name] = _floats(*shape)
    return kept[name]


def _pooled_at(x, rows, columns):
    return np.float32([[[[x[0, r0:r1, c0:c1, 0].max()] for c0, c1 in zip(columns, columns[1:], strict=False)]
                        for r0, r1 in zip(rows, rows[1:], strict=False)]])


def _pooled(x):
    return x.reshape(2, 2, 2, 2, 2, 2).max((2, 4))


def run(tf, name, arguments):
    """The results of a call as arrays, flat."""
    results = getattr(tf.raw_ops, name.split()[0])(**arguments)
    return [np.asarray(x) for x in tf.nest.flatten(results) if x is not None]
