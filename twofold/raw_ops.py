"""`tf.raw_ops`: TensorFlow's ops by the names and arguments that they have in its graphs, all by keyword.

Each is a row of a table that says its arguments and results, and the call that it stands for, both written as Python
writes them; those that work element by element follow from the declarations of the ops (`ir/ops/`) by a rule, and those
that take more than a call are functions (`_raw/`, which has further rows by theme). A row becomes a function when it
is asked for. An argument with a star is several tensors. One that a row's call does not use must have its default,
unless it has no meaning here (`_WITHOUT_EFFECT`), or says the result's dtype (`_RESULT_TYPES`).
"""

from __future__ import annotations

import ast
import collections
import importlib
import inspect
import sys
import typing
from collections.abc import Callable

from twofold._front.api import listed, public
from twofold._front.namespace import publish
from twofold._raw import (
    arrays,
    convolutions,
    images,
    linalg,
    networks,
    quantized,
    ragged,
    randoms,
    sparse,
    texts,
    training,
)
from twofold._raw.declared import FUNCTIONS, RawFunction
from twofold.ir import ops
from twofold.ir.errors import InvalidArgumentError, op_error
from twofold.ir.op import REGISTRY
from twofold.tracer.operation import title

_ROWS = """
AccumulateNV2(*inputs, shape) = math.accumulate_n(inputs, shape)
AddN(*inputs) = add_n(inputs)
AddV2(x, y) = add(x, y)
AdjustContrastv2(images, contrast_factor) = image.adjust_contrast(images, contrast_factor)
AdjustHue(images, delta) = image.adjust_hue(images, delta)
AdjustSaturation(images, scale) = image.adjust_saturation(images, scale)
All(input, axis, keep_dims=False) = reduce_all(input, axis, keep_dims)
Any(input, axis, keep_dims=False) = reduce_any(input, axis, keep_dims)
ArgMax(input, dimension, output_type=tf.int64) = argmax(input, dimension, output_type)
ArgMin(input, dimension, output_type=tf.int64) = argmin(input, dimension, output_type)
AsString(input, precision=-1, scientific=False, shortest=False, width=-1, fill='') \
= strings.as_string(input, precision, scientific, shortest, width, fill)
Assert(condition, *data, summarize=3) = debugging.Assert(condition, data, summarize)
AvgPool(value, ksize, strides, padding, data_format='NHWC') = nn.avg_pool2d(value, ksize, strides, padding, data_format)
AvgPool3D(input, ksize, strides, padding, data_format='NDHWC') \
= nn.avg_pool3d(input, ksize, strides, padding, data_format)
BandedTriangularSolve(matrix, rhs, lower=True, adjoint=False) \
= linalg.banded_triangular_solve(matrix, rhs, lower, adjoint)
BatchMatMul(x, y, adj_x=False, adj_y=False, grad_x=False, grad_y=False) \
= matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y)
BatchMatMulV2(x, y, adj_x=False, adj_y=False, grad_x=False, grad_y=False) \
= matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y)
BatchMatMulV3(x, y, Tout, adj_x=False, adj_y=False, grad_x=False, grad_y=False) \
= matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y, output_type=Tout)
BatchToSpaceND(input, block_shape, crops) = batch_to_space(input, block_shape, crops)
BiasAdd(value, bias, data_format='NHWC') = nn.bias_add(value, bias, data_format)
BiasAddGrad(out_backprop, data_format='NHWC') = raw.bias_add_grad(out_backprop, data_format)
BiasAddV1(value, bias) = nn.bias_add(value, bias)
Bitcast(input, type) = bitcast(input, type)
BroadcastArgs(s0, s1) = broadcast_dynamic_shape(s0, s1)
BroadcastGradientArgs(s0, s1) -> r0, r1 = raw.broadcast_gradient_args(s0, s1)
BroadcastTo(input, shape) = broadcast_to(input, shape)
Cast(x, DstT, Truncate=False) = cast(x, DstT)
CheckNumerics(tensor, message) = debugging.check_numerics(tensor, message)
Cholesky(input) = linalg.cholesky(input)
ClipByValue(t, clip_value_min, clip_value_max) = clip_by_value(t, clip_value_min, clip_value_max)
CombinedNonMaxSuppression(boxes, scores, max_output_size_per_class, max_total_size, iou_threshold, score_threshold, \
pad_per_class=False, clip_boxes=True) -> nmsed_boxes, nmsed_scores, nmsed_classes, valid_detections \
= image.combined_non_max_suppression(boxes, scores, max_output_size_per_class, max_total_size, iou_threshold, \
score_threshold, pad_per_class, clip_boxes)
Concat(concat_dim, *values) = concat(values, concat_dim)
ConcatV2(*values, axis) = concat(values, axis)
ConjugateTranspose(x, perm) = transpose(x, perm, conjugate=True)
Conv(input, filter, strides, padding, explicit_paddings=[], data_format='CHANNELS_LAST', dilations=[], batch_dims=1, \
groups=1) = conv(input, filter, strides, padding, explicit_paddings, data_format, dilations, batch_dims, groups)
Conv2D(input, filter, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=[], data_format='NHWC', \
dilations=[1, 1, 1, 1]) = raw.conv2d(input, filter, strides, padding, explicit_paddings, data_format, dilations)
Conv2DBackpropFilter(input, filter_sizes, out_backprop, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=[], \
data_format='NHWC', dilations=[1, 1, 1, 1]) = raw.conv2d_backprop_filter(input, filter_sizes, out_backprop, strides, \
padding, explicit_paddings, data_format, dilations)
Conv2DBackpropFilterV2(input, filter, out_backprop, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=[], \
data_format='NHWC', dilations=[1, 1, 1, 1]) = conv2d_backprop_filter_v2(input, filter, out_backprop, strides, padding, \
explicit_paddings=explicit_paddings, data_format=data_format, dilations=dilations)
Conv2DBackpropInput(input_sizes, filter, out_backprop, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=[], \
data_format='NHWC', dilations=[1, 1, 1, 1]) = raw.conv2d_backprop_input(input_sizes, filter, out_backprop, strides, \
padding, explicit_paddings, data_format, dilations)
Conv2DBackpropInputV2(input, filter, out_backprop, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=[], \
data_format='NHWC', dilations=[1, 1, 1, 1]) = conv2d_backprop_input_v2(input, filter, out_backprop, strides, padding, \
explicit_paddings=explicit_paddings, data_format=data_format, dilations=dilations)
Conv3D(input, filter, strides, padding, data_format='NDHWC', dilations=[1, 1, 1, 1, 1]) \
= nn.conv3d(input, filter, strides, padding, data_format, dilations)
Conv3DBackpropInputV2(input_sizes, filter, out_backprop, strides, padding, data_format='NDHWC', \
dilations=[1, 1, 1, 1, 1]) = raw.conv3d_backprop_input(input_sizes, filter, out_backprop, strides, padding, \
data_format, dilations)
CropAndResize(image, boxes, box_ind, crop_size, method='bilinear', extrapolation_value=0) \
= image.crop_and_resize(image, boxes, box_ind, crop_size, method, extrapolation_value)
Cross(a, b) = linalg.cross(a, b)
Cumprod(x, axis, exclusive=False, reverse=False) = math.cumprod(x, axis, exclusive, reverse)
Cumsum(x, axis, exclusive=False, reverse=False) = math.cumsum(x, axis, exclusive, reverse)
CumulativeLogsumexp(x, axis, exclusive=False, reverse=False) = math.cumulative_logsumexp(x, axis, exclusive, reverse)
DecodeAndCropJpeg(contents, crop_window, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False, \
acceptable_fraction=1, dct_method='') = io.decode_and_crop_jpeg(contents, crop_window, channels, ratio, \
fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method)
DecodeBase64(input) = io.decode_base64(input)
DecodeBmp(contents, channels=0) = io.decode_bmp(contents, channels)
DecodeCompressed(bytes, compression_type='') = io.decode_compressed(bytes, compression_type)
DecodeGif(contents) = io.decode_gif(contents)
DecodeImage(contents, channels=0, dtype=tf.uint8, expand_animations=True) \
= io.decode_image(contents, channels, dtype, expand_animations)
DecodeJSONExample(json_examples) = io.decode_json_example(json_examples)
DecodeJpeg(contents, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False, acceptable_fraction=1, \
dct_method='') = io.decode_jpeg(contents, channels, ratio, fancy_upscaling, try_recover_truncated, \
acceptable_fraction, dct_method)
DecodePng(contents, channels=0, dtype=tf.uint8) = io.decode_png(contents, channels, dtype)
DecodeRaw(bytes, out_type, little_endian=True) = io.decode_raw(bytes, out_type, little_endian)
DecodeWav(contents, desired_channels=-1, desired_samples=-1) -> audio, sample_rate \
= audio.decode_wav(contents, desired_channels, desired_samples)
DenseBincount(input, size, weights, binary_output=False) = raw.dense_bincount(input, size, weights, binary_output)
DepthToSpace(input, block_size, data_format='NHWC') = nn.depth_to_space(input, block_size, data_format)
DepthwiseConv2dNative(input, filter, strides, padding, explicit_paddings=[], data_format='NHWC', \
dilations=[1, 1, 1, 1]) \
= raw.depthwise_conv2d(input, filter, strides, padding, explicit_paddings, data_format, dilations)
Diag(diagonal) = linalg.tensor_diag(diagonal)
DiagPart(input) = linalg.tensor_diag_part(input)
DrawBoundingBoxesV2(images, boxes, colors) = image.draw_bounding_boxes(images, boxes, colors)
DynamicPartition(data, partitions, num_partitions) = dynamic_partition(data, partitions, num_partitions)
DynamicStitch(*indices, *data) = dynamic_stitch(indices, data)
Einsum(*inputs, equation) = einsum(equation, *inputs)
EncodeBase64(input, pad=False) = io.encode_base64(input, pad)
EncodeJpeg(image, format='', quality=95, progressive=False, optimize_size=False, chroma_downsampling=True, \
density_unit='in', x_density=300, y_density=300, xmp_metadata='') = io.encode_jpeg(image, format, quality, \
progressive, optimize_size, chroma_downsampling, density_unit, x_density, y_density, xmp_metadata)
EncodePng(image, compression=-1) = io.encode_png(image, compression)
EncodeWav(audio, sample_rate) = audio.encode_wav(audio, sample_rate)
EnsureShape(input, shape) = ensure_shape(input, shape)
EuclideanNorm(input, axis, keep_dims=False) = math.reduce_euclidean_norm(input, axis, keep_dims)
ExpandDims(input, axis) = expand_dims(input, axis)
ExtractImagePatches(images, ksizes, strides, rates, padding) \
= image.extract_patches(images, ksizes, strides, rates, padding)
ExtractJpegShape(contents, output_type=tf.int32) = io.extract_jpeg_shape(contents, output_type)
ExtractVolumePatches(input, ksizes, strides, padding) = extract_volume_patches(input, ksizes, strides, padding)
FFT(input) = signal.fft(input)
FFT2D(input) = signal.fft2d(input)
FFT3D(input) = signal.fft3d(input)
FFTND(input, fft_length, axes) = signal.fftnd(input, fft_length, axes)
FakeQuantWithMinMaxArgs(inputs, min=-6, max=6, num_bits=8, narrow_range=False) \
= quantization.fake_quant_with_min_max_args(inputs, min, max, num_bits, narrow_range)
FakeQuantWithMinMaxArgsGradient(gradients, inputs, min=-6, max=6, num_bits=8, narrow_range=False) \
= quantization.fake_quant_with_min_max_args_gradient(gradients, inputs, min, max, num_bits, narrow_range)
FakeQuantWithMinMaxVars(inputs, min, max, num_bits=8, narrow_range=False) \
= quantization.fake_quant_with_min_max_vars(inputs, min, max, num_bits, narrow_range)
FakeQuantWithMinMaxVarsPerChannel(inputs, min, max, num_bits=8, narrow_range=False) \
= quantization.fake_quant_with_min_max_vars_per_channel(inputs, min, max, num_bits, narrow_range)
Fill(dims, value) = fill(dims, value)
Fingerprint(data, method) = fingerprint(data, method)
Gather(params, indices, validate_indices=True) = gather(params, indices, axis=0)
GatherNd(params, indices, bad_indices_policy='') = gather_nd(params, indices, bad_indices_policy=bad_indices_policy)
GatherV2(params, indices, axis, batch_dims=0) = gather(params, indices, axis=axis, batch_dims=batch_dims)
GuaranteeConst(input) = guarantee_const(input)
HSVToRGB(images) = image.hsv_to_rgb(images)
HistogramFixedWidth(values, value_range, nbins, dtype=tf.int32) \
= histogram_fixed_width(values, value_range, nbins, dtype)
IFFT(input) = signal.ifft(input)
IFFT2D(input) = signal.ifft2d(input)
IFFT3D(input) = signal.ifft3d(input)
IFFTND(input, fft_length, axes) = signal.ifftnd(input, fft_length, axes)
IRFFT(input, fft_length, Treal=tf.float32) = signal.irfft(input, fft_length)
IRFFT2D(input, fft_length, Treal=tf.float32) = signal.irfft2d(input, fft_length)
IRFFT3D(input, fft_length, Treal=tf.float32) = signal.irfft3d(input, fft_length)
IRFFTND(input, fft_length, axes, Treal=tf.float32) = signal.irfftnd(input, fft_length, axes)
Identity(input) = identity(input)
IdentityN(*input) = identity_n(input)
InTopK(predictions, targets, k) = raw.in_top_k(predictions, targets, k)
InTopKV2(predictions, targets, k) = nn.in_top_k(targets, predictions, k)
Inv(x) = math.reciprocal(x)
InvertPermutation(x) = math.invert_permutation(x)
L2Loss(t) = nn.l2_loss(t)
LRN(input, depth_radius=5, bias=1, alpha=1, beta=0.5) = nn.lrn(input, depth_radius, bias, alpha, beta)
LeakyRelu(features, alpha=0.2) = nn.leaky_relu(features, alpha)
LeakyReluGrad(gradients, features, alpha=0.2) = ops.leaky_relu_grad(gradients, features, alpha)
LinSpace(start, stop, num) = linspace(start, stop, num)
LogMatrixDeterminant(input) -> sign, log_abs_determinant = linalg.slogdet(input)
LogSoftmax(logits) = nn.log_softmax(logits)
LowerBound(sorted_inputs, values, out_type=tf.int32) \
= searchsorted(sorted_inputs, values, side='left', out_type=out_type)
Lu(input, output_idx_type=tf.int32) -> lu, p = linalg.lu(input, output_idx_type)
MatMul(a, b, transpose_a=False, transpose_b=False, grad_a=False, grad_b=False) \
= _matmul(a, b, transpose_a, transpose_b)
MatchingFiles(pattern) = io.matching_files(pattern)
MatrixBandPart(input, num_lower, num_upper) = linalg.band_part(input, num_lower, num_upper)
MatrixDeterminant(input) = linalg.det(input)
MatrixDiag(diagonal) = linalg.diag(diagonal)
MatrixDiagPart(input) = linalg.diag_part(input)
MatrixDiagPartV2(input, k, padding_value) \
= linalg.diag_part(input, k=k, padding_value=padding_value, align='LEFT_LEFT')
MatrixDiagPartV3(input, k, padding_value, align='RIGHT_LEFT') \
= linalg.diag_part(input, k=k, padding_value=padding_value, align=align)
MatrixDiagV2(diagonal, k, num_rows, num_cols, padding_value) \
= linalg.diag(diagonal, k=k, num_rows=num_rows, num_cols=num_cols, padding_value=padding_value, align='LEFT_LEFT')
MatrixDiagV3(diagonal, k, num_rows, num_cols, padding_value, align='RIGHT_LEFT') \
= linalg.diag(diagonal, k=k, num_rows=num_rows, num_cols=num_cols, padding_value=padding_value, align=align)
MatrixExponential(input) = linalg.expm(input)
MatrixInverse(input, adjoint=False) = linalg.inv(input, adjoint)
MatrixLogarithm(input) = linalg.logm(input)
MatrixSetDiag(input, diagonal) = linalg.set_diag(input, diagonal)
MatrixSetDiagV2(input, diagonal, k) = linalg.set_diag(input, diagonal, k=k, align='LEFT_LEFT')
MatrixSetDiagV3(input, diagonal, k, align='RIGHT_LEFT') = linalg.set_diag(input, diagonal, k=k, align=align)
MatrixSolve(matrix, rhs, adjoint=False) = linalg.solve(matrix, rhs, adjoint)
MatrixSquareRoot(input) = linalg.sqrtm(input)
MatrixTriangularSolve(matrix, rhs, lower=True, adjoint=False) = linalg.triangular_solve(matrix, rhs, lower, adjoint)
Max(input, axis, keep_dims=False) = reduce_max(input, axis, keep_dims)
MaxPool3D(input, ksize, strides, padding, data_format='NDHWC') \
= nn.max_pool3d(input, ksize, strides, padding, data_format)
MaxPoolV2(input, ksize, strides, padding, data_format='NHWC') \
= nn.max_pool2d(input, ksize, strides, padding, data_format)
MaxPoolWithArgmax(input, ksize, strides, padding, Targmax=tf.int64, include_batch_in_index=False) -> output, argmax \
= nn.max_pool_with_argmax(input, ksize, strides, padding, output_dtype=Targmax, \
include_batch_in_index=include_batch_in_index)
Mean(input, axis, keep_dims=False) = reduce_mean(input, axis, keep_dims)
Min(input, axis, keep_dims=False) = reduce_min(input, axis, keep_dims)
MirrorPad(input, paddings, mode) = pad(input, paddings, mode)
NonMaxSuppression(boxes, scores, max_output_size, iou_threshold=0.5) \
= image.non_max_suppression(boxes, scores, max_output_size, iou_threshold)
NonMaxSuppressionV2(boxes, scores, max_output_size, iou_threshold) \
= image.non_max_suppression(boxes, scores, max_output_size, iou_threshold)
NonMaxSuppressionV3(boxes, scores, max_output_size, iou_threshold, score_threshold) \
= image.non_max_suppression(boxes, scores, max_output_size, iou_threshold, score_threshold)
NonMaxSuppressionV4(boxes, scores, max_output_size, iou_threshold, score_threshold, pad_to_max_output_size=False) \
-> selected_indices, valid_outputs = image.non_max_suppression_padded(boxes, scores, max_output_size, iou_threshold, \
score_threshold, pad_to_max_output_size)
NonMaxSuppressionWithOverlaps(overlaps, scores, max_output_size, overlap_threshold, score_threshold) \
= image.non_max_suppression_overlaps(overlaps, scores, max_output_size, overlap_threshold, score_threshold)
OneHot(indices, depth, on_value, off_value, axis=-1) = one_hot(indices, depth, on_value, off_value, axis)
OnesLike(x) = ones_like(x)
Pack(*values, axis=0) = stack(values, axis)
Pad(input, paddings) = pad(input, paddings)
PadV2(input, paddings, constant_values) = pad(input, paddings, constant_values=constant_values)
ParallelDynamicStitch(*indices, *data) = dynamic_stitch(indices, data)
ParseTensor(serialized, out_type) = io.parse_tensor(serialized, out_type)
Polygamma(a, x) = math.polygamma(a, x)
PreventGradient(input, message='') = stop_gradient(input)
Prod(input, axis, keep_dims=False) = reduce_prod(input, axis, keep_dims)
Qr(input, full_matrices=False) -> q, r = linalg.qr(input, full_matrices)
RFFT(input, fft_length, Tcomplex=tf.complex64) = signal.rfft(input, fft_length)
RFFT2D(input, fft_length, Tcomplex=tf.complex64) = signal.rfft2d(input, fft_length)
RFFT3D(input, fft_length, Tcomplex=tf.complex64) = signal.rfft3d(input, fft_length)
RFFTND(input, fft_length, axes, Tcomplex=tf.complex64) = signal.rfftnd(input, fft_length, axes)
RGBToHSV(images) = image.rgb_to_hsv(images)
RaggedRange(starts, limits, deltas, Tsplits=tf.int64) -> rt_nested_splits, rt_dense_values \
= raw.ragged_range(starts, limits, deltas, Tsplits)
RaggedTensorToTensor(shape, values, default_value, *row_partition_tensors, row_partition_types) \
= raw.ragged_to_tensor(shape, values, default_value, row_partition_tensors, row_partition_types)
RandomGammaGrad(alpha, sample) = raw.random_gamma_grad(alpha, sample)
Range(start, limit, delta) = range(start, limit, delta)
Rank(input) = rank(input)
ReadFile(filename) = io.read_file(filename)
ReduceJoin(inputs, reduction_indices, keep_dims=False, separator='') \
= raw.reduce_join(inputs, reduction_indices, keep_dims, separator)
RegexFullMatch(input, pattern) = strings.regex_full_match(input, pattern)
RegexReplace(input, pattern, rewrite, replace_global=True) \
= strings.regex_replace(input, pattern, rewrite, replace_global)
Reshape(tensor, shape) = reshape(tensor, shape)
ResizeBilinear(images, size, align_corners=False, half_pixel_centers=False) \
= raw.resize_bilinear(images, size, align_corners, half_pixel_centers)
ResizeNearestNeighbor(images, size, align_corners=False, half_pixel_centers=False) \
= raw.resize_nearest(images, size, align_corners, half_pixel_centers)
ReverseSequence(input, seq_lengths, seq_dim, batch_dim=0) = reverse_sequence(input, seq_lengths, seq_dim, batch_dim)
ReverseV2(tensor, axis) = reverse(tensor, axis)
Roll(input, shift, axis) = roll(input, shift, axis)
ScatterNd(indices, updates, shape, bad_indices_policy='') = scatter_nd(indices, updates, shape, bad_indices_policy)
ScatterNdNonAliasingAdd(input, indices, updates, bad_indices_policy='') \
= tensor_scatter_nd_add(input, indices, updates, bad_indices_policy)
SegmentMax(data, segment_ids) = math.segment_max(data, segment_ids)
SegmentMean(data, segment_ids) = math.segment_mean(data, segment_ids)
SegmentMin(data, segment_ids) = math.segment_min(data, segment_ids)
SegmentProd(data, segment_ids) = math.segment_prod(data, segment_ids)
SegmentSum(data, segment_ids) = math.segment_sum(data, segment_ids)
Select(condition, x, y) = raw.select(condition, x, y)
SelectV2(condition, t, e) = where(condition, t, e)
SerializeTensor(tensor) = io.serialize_tensor(tensor)
Shape(input, out_type=tf.int32) = shape(input, out_type)
ShapeN(*input, out_type=tf.int32) = shape_n(input, out_type)
Size(input, out_type=tf.int32) = size(input, out_type)
Slice(input, begin, size) = slice(input, begin, size)
Snapshot(input) = identity(input)
Softmax(logits) = nn.softmax(logits)
SoftmaxCrossEntropyWithLogits(features, labels) -> loss, backprop = raw.softmax_loss(features, labels)
SpaceToBatchND(input, block_shape, paddings) = space_to_batch(input, block_shape, paddings)
SpaceToDepth(input, block_size, data_format='NHWC') = nn.space_to_depth(input, block_size, data_format)
SparseSegmentMean(data, indices, segment_ids, sparse_gradient=False) = sparse.segment_mean(data, indices, segment_ids)
SparseSegmentMeanWithNumSegments(data, indices, segment_ids, num_segments, sparse_gradient=False) \
= sparse.segment_mean(data, indices, segment_ids, num_segments)
SparseSegmentSqrtN(data, indices, segment_ids, sparse_gradient=False) \
= sparse.segment_sqrt_n(data, indices, segment_ids)
SparseSegmentSqrtNWithNumSegments(data, indices, segment_ids, num_segments, sparse_gradient=False) \
= sparse.segment_sqrt_n(data, indices, segment_ids, num_segments)
SparseSegmentSum(data, indices, segment_ids, sparse_gradient=False) = sparse.segment_sum(data, indices, segment_ids)
SparseSegmentSumWithNumSegments(data, indices, segment_ids, num_segments, sparse_gradient=False) \
= sparse.segment_sum(data, indices, segment_ids, num_segments)
SparseSoftmaxCrossEntropyWithLogits(features, labels) -> loss, backprop = raw.sparse_softmax_loss(features, labels)
Split(axis, value, num_split) = split(value, num_split, axis)
SplitV(value, size_splits, axis, num_split) = split(value, size_splits, axis, num_split)
Squeeze(input, axis=[]) = _squeeze(input, axis)
StatelessMultinomial(logits, num_samples, seed, output_dtype=tf.int64) \
= random.stateless_categorical(logits, num_samples, seed, output_dtype)
StatelessParameterizedTruncatedNormal(shape, seed, means, stddevs, minvals, maxvals) \
= random.stateless_parameterized_truncated_normal(shape, seed, means, stddevs, minvals, maxvals)
StatelessRandomBinomial(shape, seed, counts, probs, dtype=tf.int64) \
= random.stateless_binomial(shape, seed, counts, probs, dtype)
StatelessRandomGetKeyCounter(seed) -> key, counter = raw.key_counter(seed)
StatelessRandomNormal(shape, seed, dtype=tf.float32) = random.stateless_normal(shape, seed, dtype=dtype)
StatelessRandomNormalV2(shape, key, counter, alg, dtype=tf.float32) \
= raw.stateless_normal(shape, key, counter, alg, dtype)
StatelessRandomPoisson(shape, seed, lam, dtype) = random.stateless_poisson(shape, seed, lam, dtype)
StatelessRandomUniform(shape, seed, dtype=tf.float32) = random.stateless_uniform(shape, seed, dtype=dtype)
StatelessRandomUniformFullInt(shape, seed, dtype=tf.uint64) \
= random.stateless_uniform(shape, seed, minval=None, maxval=None, dtype=dtype)
StatelessRandomUniformFullIntV2(shape, key, counter, alg, dtype=tf.uint64) \
= raw.stateless_full(shape, key, counter, alg, dtype)
StatelessRandomUniformIntV2(shape, key, counter, alg, minval, maxval) \
= raw.stateless_integers(shape, key, counter, alg, minval, maxval)
StatelessRandomUniformV2(shape, key, counter, alg, dtype=tf.float32) \
= raw.stateless_uniform(shape, key, counter, alg, dtype)
StatelessTruncatedNormal(shape, seed, dtype=tf.float32) = random.stateless_truncated_normal(shape, seed, dtype=dtype)
StatelessTruncatedNormalV2(shape, key, counter, alg, dtype=tf.float32) \
= raw.stateless_truncated(shape, key, counter, alg, dtype)
StaticRegexFullMatch(input, pattern) = strings.regex_full_match(input, pattern)
StaticRegexReplace(input, pattern, rewrite, replace_global=True) \
= strings.regex_replace(input, pattern, rewrite, replace_global)
StopGradient(input) = stop_gradient(input)
StridedSlice(input, begin, end, strides, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, \
shrink_axis_mask=0) = strided_slice(input, begin, end, strides, begin_mask, end_mask, ellipsis_mask, new_axis_mask, \
shrink_axis_mask)
StridedSliceGrad(shape, begin, end, strides, dy, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, \
shrink_axis_mask=0) = raw.strided_slice_grad(shape, begin, end, strides, dy, begin_mask, end_mask, ellipsis_mask, \
new_axis_mask, shrink_axis_mask)
StringJoin(*inputs, separator='') = strings.join(inputs, separator)
StringLength(input, unit='BYTE') = strings.length(input, unit)
StringLower(input, encoding='') = strings.lower(input, encoding)
StringSplitV2(input, sep, maxsplit=-1) -> indices, values, shape = raw.split_texts(input, sep, maxsplit)
StringStrip(input) = strings.strip(input)
StringToHashBucket(string_tensor, num_buckets) = strings.to_hash_bucket(string_tensor, num_buckets)
StringToHashBucketFast(input, num_buckets) = strings.to_hash_bucket_fast(input, num_buckets)
StringToHashBucketStrong(input, num_buckets, key) = strings.to_hash_bucket_strong(input, num_buckets, key)
StringToNumber(string_tensor, out_type=tf.float32) = strings.to_number(string_tensor, out_type)
StringUpper(input, encoding='') = strings.upper(input, encoding)
Substr(input, pos, len, unit='BYTE') = strings.substr(input, pos, len, unit)
Sum(input, axis, keep_dims=False) = reduce_sum(input, axis, keep_dims)
TensorScatterAdd(tensor, indices, updates, bad_indices_policy='') \
= tensor_scatter_nd_add(tensor, indices, updates, bad_indices_policy)
TensorScatterMax(tensor, indices, updates, bad_indices_policy='') \
= tensor_scatter_nd_max(tensor, indices, updates, bad_indices_policy)
TensorScatterMin(tensor, indices, updates, bad_indices_policy='') \
= tensor_scatter_nd_min(tensor, indices, updates, bad_indices_policy)
TensorScatterSub(tensor, indices, updates, bad_indices_policy='') \
= tensor_scatter_nd_sub(tensor, indices, updates, bad_indices_policy)
TensorScatterUpdate(tensor, indices, updates, bad_indices_policy='') \
= tensor_scatter_nd_update(tensor, indices, updates, bad_indices_policy)
Tile(input, multiples) = tile(input, multiples)
Timestamp() = timestamp()
TopK(input, k, sorted=True) -> values, indices = math.top_k(input, k, sorted)
TopKV2(input, k, sorted=True, index_type=tf.int32) -> values, indices = math.top_k(input, k, sorted, index_type)
Transpose(x, perm) = transpose(x, perm)
TridiagonalSolve(diagonals, rhs, partial_pivoting=True, perturb_singular=False) = linalg.tridiagonal_solve(diagonals, \
rhs, partial_pivoting=partial_pivoting, perturb_singular=perturb_singular)
UnicodeScript(input) = strings.unicode_script(input)
UnicodeTranscode(input, input_encoding, output_encoding, errors='replace', replacement_char=65533, \
replace_control_characters=False) = strings.unicode_transcode(input, input_encoding, output_encoding, errors, \
replacement_char, replace_control_characters)
Unique(x, out_idx=tf.int32) -> y, idx = unique(x, out_idx)
UniqueWithCounts(x, out_idx=tf.int32) -> y, idx, count = unique_with_counts(x, out_idx)
Unpack(value, num, axis=0) = unstack(value, num, axis)
UnravelIndex(indices, dims) = unravel_index(indices, dims)
UnsortedSegmentJoin(inputs, segment_ids, num_segments, separator='') \
= strings.unsorted_segment_join(inputs, segment_ids, num_segments, separator)
UnsortedSegmentMax(data, segment_ids, num_segments) = math.unsorted_segment_max(data, segment_ids, num_segments)
UnsortedSegmentMin(data, segment_ids, num_segments) = math.unsorted_segment_min(data, segment_ids, num_segments)
UnsortedSegmentProd(data, segment_ids, num_segments) = math.unsorted_segment_prod(data, segment_ids, num_segments)
UnsortedSegmentSum(data, segment_ids, num_segments) = math.unsorted_segment_sum(data, segment_ids, num_segments)
UpperBound(sorted_inputs, values, out_type=tf.int32) \
= searchsorted(sorted_inputs, values, side='right', out_type=out_type)
Where(condition) = where(condition)
WriteFile(filename, contents) = io.write_file(filename, contents)
ZerosLike(x) = zeros_like(x)
"""

#: elementwise ops that are no raw ops of TensorFlow, or whose rows are above, since they take more than operands
_NOT_BY_RULE = frozenset({
    "add_n", "cast", "cbrt", "clip_by_value", "equal", "gelu", "gelu_grad", "gelu_tanh", "gelu_tanh_grad", "hypot",
    "leaky_relu", "leaky_relu_grad", "log10", "log2", "log_sigmoid", "logical_xor", "masked_divide", "masked_exp",
    "masked_multiply", "not_equal", "polygamma", "pow_derivative", "reinterpret", "select", "silu", "silu_grad",
    "where"})
#: arguments of those that are not `x`, or `x` and `y`, in the order of the op's operands
_ARGUMENTS = {
    **dict.fromkeys(("angle", "imag", "real"), ("input", "Tout=tf.float32")), "atan2": ("y", "x"),
    "betainc": ("a", "b", "x"), "complex": ("real", "imag", "Tout=tf.complex64"), "conj": ("input",),
    **dict.fromkeys(("igamma", "igamma_grad_a", "igammac"), ("a", "x")), "nextafter": ("x1", "x2"),
    **dict.fromkeys(("elu", "relu", "relu6", "selu", "softplus", "softsign"), ("features",)), "zeta": ("x", "q"),
    **dict.fromkeys(("relu_grad", "relu6_grad", "softsign_grad"), ("gradients", "features")),
    **dict.fromkeys(("elu_grad", "selu_grad"), ("gradients", "outputs")),
    **dict.fromkeys(("sigmoid_grad", "tanh_grad"), ("y", "dy"))}
#: of these the gradient is the op's first operand, and the raw op's last argument
_GRADIENT_LAST = frozenset({"sigmoid_grad", "tanh_grad"})
#: where the function of an elementwise op is looked for, before the op itself
_MODULES = ("math", "nn", "math.special", "bitwise", "")
#: arguments that say how TensorFlow is to compute, that it is to compute gradients, or what it tells who looks on
_WITHOUT_EFFECT = frozenset({
    "circular_buffer_size", "debug_ops_spec", "debug_urls", "device_name", "gated_grpc", "grad_a", "grad_b", "grad_x",
    "grad_y", "io_index", "io_of_node", "is_input", "message", "name", "op_name", "output_slot", "sparse_gradient",
    "tensor_debug_mode", "tensor_name", "tfdbg_context_id", "tfdbg_run_id", "use_cudnn_on_gpu", "validate_indices"})
#: arguments that say the result's dtype, which follows here from the operands
_RESULT_TYPES = frozenset({"Tcomplex", "Tout", "Treal"})


#: the files whose rows and functions there are, too
_THEMES = (arrays, convolutions, images, linalg, networks, quantized, ragged, randoms, sparse, texts, training)


def _by_rule(name: str) -> tuple[str, str]:
    """The name and the row of an elementwise op."""
    raw = title(name)
    count = len(REGISTRY[name].params)
    arguments = _ARGUMENTS.get(name, ("x", "y")[:count])
    given = arguments[:count][::-1] if name in _GRADIENT_LAST else arguments[:count]
    home = next((home for home in _MODULES if hasattr(_resolved(home), name)), "ops")
    call = f"{home}.{name}" if home else name
    return raw, f"{raw}({', '.join(arguments)}) = {call}({', '.join(given)})"


def _table() -> dict[str, str | RawFunction]:
    """The rows, and the functions of `_raw/`, by the names of their ops."""
    rows: dict[str, str | RawFunction] = {row.partition("(")[0]: row for row in _ROWS.strip().split("\n")}
    rows.update(_by_rule(name) for name, op in REGISTRY.items()
                if "elementwise" in op.traits and name not in _NOT_BY_RULE)
    for theme in _THEMES:
        for row in filter(None, theme.ROWS.strip().split("\n")):
            rows[row.partition("(")[0]] = row
    return rows | FUNCTIONS


def _resolved(path: str) -> typing.Any:
    """What a dotted path of `tf`, of the ops, or of this file's own functions leads to."""
    if path.startswith("_"):
        return globals()[path]
    if path.startswith("ops."):
        return getattr(ops, path[4:])
    if path.startswith("raw."):
        return getattr(importlib.import_module("twofold._ops.raw_functions"), path[4:])
    value: typing.Any = sys.modules[__package__]  # which loads this file when it is asked for it
    for part in path.split(".") if path else ():
        value = getattr(value, part)
    return value


def _squeeze(input: typing.Any, axis: typing.Any) -> typing.Any:
    """`tf.squeeze`, of which no axes means all."""
    return _resolved("squeeze")(input, list(axis) or None)


def _matmul(a: typing.Any, b: typing.Any, transpose_a: bool, transpose_b: bool) -> typing.Any:
    """`tf.matmul` of two matrices: stacks of them are multiplied by `BatchMatMulV2`."""
    a, b = _resolved("convert_to_tensor")(a), _resolved("convert_to_tensor")(b)
    for operand in (a, b):
        if operand.shape.rank not in (2, None):
            raise op_error(InvalidArgumentError, "MatMul", "multiplies two matrices.", [("a", a), ("b", b)],
                           "BatchMatMulV2 multiplies stacks of matrices.")
    return _resolved("matmul")(a, b, transpose_a, transpose_b)


def _default(node: ast.expr) -> typing.Any:
    """The value of a default: a literal, or a dtype `tf.name`."""
    return _resolved(node.attr) if isinstance(node, ast.Attribute) else ast.literal_eval(node)


def _name(node: ast.expr) -> str:
    """The name of an argument in the table."""
    inner = node.value if isinstance(node, ast.Starred) else node
    assert isinstance(inner, ast.Name)
    return inner.id


class _Row:
    """A row of the table, read.

    Attributes:
        name, signature: of the raw op.
        lists: the names of the arguments that are several tensors.
        results: a namedtuple, of several results.
    """

    def __init__(self, row: str) -> None:
        head, _, call = row.partition(" = ")
        signature, _, results = head.partition(" -> ")
        left, right = _call(signature), _call(call)
        assert isinstance(left.func, ast.Name)
        self.name, self.target, self.call, self.function = left.func.id, _resolved(ast.unparse(right.func)), right, call
        self.lists = frozenset({_name(argument) for argument in left.args if isinstance(argument, ast.Starred)})
        names = [_name(argument) for argument in left.args]
        defaults = {str(keyword.arg): _default(keyword.value) for keyword in left.keywords} | {"name": None}
        self.signature = inspect.Signature([inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name, inspect.Parameter.empty))
            for name in [*names, *defaults]])
        used = {node.id for argument in [*right.args, *[keyword.value for keyword in right.keywords]]
                for node in ast.walk(argument) if isinstance(node, ast.Name)}
        self.held = {name: default for name, default in defaults.items() if name not in used | _WITHOUT_EFFECT}
        self.results = collections.namedtuple(self.name, results.split(", ")) if results else None

    def __call__(self, values: dict[str, typing.Any]) -> typing.Any:
        """The call with the values of the raw op's arguments."""
        for name, default in self.held.items():
            if name not in _RESULT_TYPES and values[name] != default:
                raise InvalidArgumentError(f"{self.name}: {name} must be {default!r} here, got {values[name]!r}.")
        positional: list[typing.Any] = []
        for argument in self.call.args:
            if isinstance(argument, ast.Starred):
                positional += listed(_value(argument.value, values), _name(argument))
            else:
                positional.append(_value(argument, values))
        result = self.target(*positional, **{str(k.arg): _value(k.value, values) for k in self.call.keywords})
        for name in self.held.keys() & _RESULT_TYPES:
            if result.dtype != values[name]:
                raise InvalidArgumentError(f"{self.name}: the result is {result.dtype!r}, where {name} is "
                                           f"{values[name]!r}; pass {name}={result.dtype!r}.")
        return result if self.results is None else self.results(*result)


def _call(text: str) -> ast.Call:
    """A call that is written in the table."""
    node = ast.parse(text.strip(), mode="eval").body
    assert isinstance(node, ast.Call)
    return node


def _value(node: ast.expr, values: dict[str, typing.Any]) -> typing.Any:
    """An argument of a row's call: one of the raw op's, or a literal."""
    return values[node.id] if isinstance(node, ast.Name) else ast.literal_eval(node)


def _row(name: str) -> _Row | RawFunction | None:
    """What declares a raw op; None where there is none."""
    if name in _TABLE and name not in _READ:
        declared = _TABLE[name]
        _READ[name] = _Row(declared) if isinstance(declared, str) else declared
    return _READ.get(name)


def _function(row: _Row | RawFunction) -> Callable[..., typing.Any]:
    """The function of a row, or of a function whose arguments have places."""
    def raw_op(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        bound = row.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return row(bound.arguments)
    raw_op.__name__ = raw_op.__qualname__ = row.name
    raw_op.__signature__ = row.signature  # type: ignore[attr-defined]
    raw_op.__doc__ = (f"TensorFlow's raw op {row.name}, whose arguments are given by keyword.\n\n"
                      f"Returns:\n    What `{row.function}` gives.\n")
    return public(raw_op)


_TABLE = _table()
_READ: dict[str, _Row | RawFunction] = {}
_MADE: dict[str, Callable[..., typing.Any]] = {}


def __getattr__(name: str) -> typing.Any:
    row = _row(name)
    if row is None:
        raise AttributeError(f"tf.raw_ops.{name} is not among the raw ops of twofold ({len(_TABLE)} of TensorFlow's); "
                             "dir(tf.raw_ops) lists them.")
    if name not in _MADE:
        _MADE[name] = _function(row)
    return _MADE[name]


__all__ = [*sorted(_TABLE)]

publish(__name__)
