"""Integer arguments: every public function that takes one, in the forms that an integer has, wherever it may stand.

`TABLE` and `FORWARDED` name the functions with the calls that give them integers `{k}` and `{m}`. A program puts a call
into a nest of branches, loops, maps and functions. `check` runs it with Python integers, NumPy's, scalar tensors and
traced tensors: what is not an error in one form is the same in all, to the bit; what is an error in one is an error in
all.
"""

from __future__ import annotations

import random
import re
import warnings
from typing import NamedTuple

import numpy as np

import twofold as tf

from .compare import same_bits

__all__ = ["TABLE", "FORWARDED", "NESTS", "Entry", "draw", "source_of", "check", "difference"]

SIZE, AXIS, ANY = (-1, 5), (-4, 3), (-7, 7)
_PLACES = "tf.constant([[0, 2], [5, 1]])"
_RAGGED = "tf.ragged.constant([[1, 2, 3], [], [4, 5]])"
_SPARSE = "tf.SparseTensor([[0, 1], [2, 0], [2, 3]], [1.0, 2.0, 3.0], [3, 4])"
_WAVE = "tf.reshape(tf.concat([x, x, x], 0), [-1])"


class Entry(NamedTuple):
    """A call of a function: `x` is a tensor, `{k}` and `{m}` are integers drawn from `values`."""

    name: str
    text: str
    values: tuple[int, int] = SIZE
    dtype: str = "float32"  # of x
    ranks: tuple[int, ...] = (1, 2, 3)  # of x
    smooth: bool = False  # whether gradients by x are compared, too


def _axes(names: str, *, smooth: bool = True, dtype: str = "float32") -> list[Entry]:
    return [Entry(name, f"tf.{name}(x, axis={{k}})", AXIS, dtype, smooth=smooth) for name in names.split()]


TABLE: list[Entry] = [
    # sizes of new tensors
    Entry("zeros", "tf.zeros([{k}, 2])"), Entry("ones", "tf.ones([{k}])"),
    Entry("fill", "tf.fill([2, {k}], x[0])", ranks=(1,)),
    Entry("zeros", "tf.zeros([{k}, {m}], tf.int32)"), Entry("ones", "tf.ones(tf.stack([{k}, {m}]))"),
    Entry("eye", "tf.eye({k})"), Entry("eye", "tf.eye({k}, {m})"), Entry("eye", "tf.eye(2, {k}, batch_shape=[{m}])"),
    Entry("one_hot", "tf.one_hot([0, 2, 5, -1], {k})"), Entry("one_hot", "tf.one_hot([0, 1], 3, axis={k})", AXIS),
    Entry("linspace", "tf.linspace(x, x + 2.0, {k})", smooth=True), Entry("linspace", "tf.linspace(0, 3, {k})"),
    Entry("linspace", "tf.linspace(x, 3.0 * x, 4, axis={k})", AXIS, smooth=True),
    Entry("range", "tf.range({k})"), Entry("range", "tf.range({k}, {m})"), Entry("range", "tf.range(7, {k}, {m})", ANY),
    Entry("sequence_mask", "tf.sequence_mask([1, 0, 3], {k})"),
    Entry("constant", "tf.constant(1.0, shape=[2, 3]) + tf.cast({k}, tf.float32)"),
    # shapes
    Entry("reshape", "tf.reshape(x, [{k}, -1])", smooth=True), Entry("reshape", "tf.reshape(x, [2, {k}])", ANY),
    Entry("reshape", "tf.reshape(x, [{k}, {m}])", smooth=True), Entry("reshape", "tf.reshape(x, tf.stack([{k}, 2]))"),
    Entry("broadcast_to", "tf.broadcast_to(x[0], [{k}])", ranks=(1,), smooth=True),
    Entry("broadcast_to", "tf.broadcast_to(tf.reduce_sum(x), [{k}, {m}])", smooth=True),
    Entry("tile", "tf.tile(x, [{k}])", ranks=(1,), smooth=True), Entry("tile", "tf.tile(x, [{k}, {m}])", ranks=(2,)),
    Entry("repeat", "tf.repeat(x, {k}, axis=0)", smooth=True), Entry("repeat", "tf.repeat(x, {k})"),
    Entry("repeat", "tf.repeat(x, 2, axis={k})", AXIS, smooth=True),
    Entry("repeat", "tf.repeat(x[:2], [{k}, {m}], axis=0)", smooth=True),
    Entry("transpose", "tf.transpose(x, [{k}, {m}])", (-2, 2), ranks=(2,), smooth=True),
    Entry("transpose", "tf.transpose(x, [{k}, {m}, 1])", (-1, 3), ranks=(3,), smooth=True),
    Entry("expand_dims", "tf.expand_dims(x, {k})", AXIS, smooth=True),
    Entry("squeeze", "tf.squeeze(tf.reshape(x, [1, -1, 1]), {k})", AXIS, smooth=True),
    Entry("squeeze", "tf.squeeze(tf.reshape(x, [1, -1, 1]), [{k}])", AXIS),
    Entry("broadcast_dynamic_shape", "tf.broadcast_dynamic_shape([{k}, 1], [1, {m}])"),
    # parts
    Entry("slice", "tf.slice(x, [{k}], [{m}])", ranks=(1,), smooth=True),
    Entry("slice", "tf.slice(x, [0, {k}], [-1, {m}])", ranks=(2,), smooth=True),
    Entry("strided_slice", "tf.strided_slice(x, [{k}], [{m}])", ANY, ranks=(1, 2), smooth=True),
    Entry("strided_slice", "tf.strided_slice(x, [{k}], [0], end_mask=1)", ANY, ranks=(1, 2)),
    Entry("getitem", "x[{k}]", ANY, smooth=True), Entry("getitem", "x[{k}:{m}]", ANY, smooth=True),
    Entry("getitem", "x[..., {k}:]", ANY, smooth=True), Entry("getitem", "x[:, {k}]", ANY, ranks=(2, 3), smooth=True),
    Entry("gather", "tf.gather(x, {k})", ANY, smooth=True),
    Entry("gather", "tf.gather(x, [0, 0], axis={k})", AXIS, smooth=True),
    Entry("gather", "tf.gather(x, tf.zeros([2, 1], tf.int32), batch_dims={k})", (-2, 2), ranks=(2,)),
    Entry("gather", "tf.gather(x, tf.range({k})[::-1])", (0, 4), smooth=True),
    Entry("gather_nd", "tf.gather_nd(x, [[{k}], [{m}]])", ANY, smooth=True),
    Entry("scatter_nd", "tf.scatter_nd([[0], [2]], [1.0, 2.0], [{k}])"),
    Entry("scatter_nd", "tf.scatter_nd([[{m}]], [3], [{k}])"),
    Entry("tensor_scatter_nd_update", "tf.tensor_scatter_nd_update(x, [[{k}]], [5.0])", ANY, ranks=(1,), smooth=True),
    Entry("boolean_mask", "tf.boolean_mask(tf.reshape(x, [-1, 1]), [True], axis={k})", (0, 2)),
    Entry("pad", "tf.pad(x, [[{k}, {m}]])", ranks=(1,), smooth=True),
    Entry("pad", "tf.pad(x, [[0, {k}], [{m}, 1]])", ranks=(2,), smooth=True),
    Entry("pad", "tf.pad(x, [[{k}, {m}]], 'REFLECT')", (-1, 3), ranks=(1,), smooth=True),
    Entry("pad", "tf.pad(x, [[{k}, {m}]], 'SYMMETRIC')", (-1, 3), ranks=(1,), smooth=True),
    Entry("split", "tf.concat(tf.split(x, [{k}, {m}], axis=0)[::-1], 0)", (-1, 4), smooth=True),
    Entry("split", "tf.split(x, [{k}, -1], axis=0)[1]", smooth=True),
    Entry("split", "tf.split(tf.stack([x, x]), 2, axis={k})[0]", (0, 1)),
    Entry("concat", "tf.concat([x, x], {k})", AXIS, smooth=True),
    Entry("stack", "tf.stack([x, x + 1.0], {k})", AXIS, smooth=True),
    Entry("unstack", "tf.unstack(tf.ones([2, 2, 2]), axis={k})[1]", AXIS),
    Entry("reverse", "tf.reverse(x, [{k}])", AXIS, smooth=True),
    Entry("roll", "tf.roll(x, {k}, 0)", ANY, smooth=True), Entry("roll", "tf.roll(x, 1, {k})", AXIS, smooth=True),
    Entry("roll", "tf.roll(x, [{k}, {m}], [0, -1])", ANY, smooth=True),
    Entry("reverse_sequence", "tf.reverse_sequence(x, tf.ones_like(x[:, 0], tf.int32) * {k}, seq_axis=1)", (-1, 3),
          ranks=(2,)),
    Entry("unravel_index", "tf.unravel_index([1, 0], [{k}, 3])", (1, 4)),
    Entry("dynamic_stitch", "tf.dynamic_stitch([[{k}], [0]], [[1.0], [2.0]])"),
    Entry("ensure_shape", "tf.ensure_shape(tf.zeros([{k}]), [None])"),
    Entry("space_to_batch", "tf.space_to_batch(tf.ones([1, 4, 4, 1]), [2, 2], [[0, {k}], [0, {m}]])", (-1, 3)),
    Entry("batch_to_space", "tf.batch_to_space(tf.ones([4, 2, 2, 1]), [2, 2], [[0, {k}], [{m}, 0]])", (-1, 3)),
    # reductions, scans, orders
    *_axes("reduce_sum reduce_mean reduce_prod reduce_max reduce_min math.reduce_std math.reduce_variance "
           "reduce_logsumexp math.reduce_euclidean_norm cumsum math.cumprod math.cumulative_logsumexp norm "
           "nn.softmax nn.log_softmax math.l2_normalize sort nn.layer_normalization nn.crelu"),
    *_axes("argmax argmin math.count_nonzero argsort", smooth=False),
    Entry("reduce_any", "tf.reduce_any(x > 0.0, axis={k})", AXIS),
    Entry("reduce_all", "tf.reduce_all(x > 0.0, {k})", AXIS),
    Entry("reduce_sum", "tf.reduce_sum(x, [{k}], keepdims=True)", AXIS, smooth=True),
    Entry("reduce_mean", "tf.reduce_mean(x, [{k}, {m}])", (-2, 1), ranks=(2, 3), smooth=True),
    Entry("cumsum", "tf.cumsum(x, {k}, exclusive=True, reverse=True)", AXIS, smooth=True),
    Entry("nn.moments", "tf.nn.moments(x, [{k}])[1]", AXIS, smooth=True),
    Entry("linalg.normalize", "tf.linalg.normalize(x, axis={k})[0]", AXIS, smooth=True),
    Entry("clip_by_norm", "tf.clip_by_norm(x, 1.0, axes=[{k}])", AXIS, smooth=True),
    Entry("nn.softmax_cross_entropy_with_logits",
          "tf.nn.softmax_cross_entropy_with_logits(tf.ones_like(x), x, axis={k})", AXIS, smooth=True),
    Entry("math.top_k", "tf.math.top_k(x, {k})[0]", (-1, 4), smooth=True),
    Entry("math.top_k", "tf.math.top_k(x, {k})[1]", (0, 4)),
    Entry("math.in_top_k", "tf.math.in_top_k([0, 0], tf.constant([[0.5, 0.1], [0.2, 0.3]]), {k})", (0, 3)),
    Entry("searchsorted", "tf.searchsorted([1, 3, 5], [{k}])", ANY),
    # matrices
    Entry("linalg.band_part", "tf.linalg.band_part(x, {k}, {m})", (-3, 4), ranks=(2, 3), smooth=True),
    Entry("linalg.diag", "tf.linalg.diag(x, k={k})", (-4, 4), ranks=(1, 2), smooth=True),
    Entry("linalg.diag", "tf.linalg.diag(x, num_rows={k}, num_cols={m})", (-1, 6), ranks=(1,)),
    Entry("linalg.diag", "tf.linalg.diag(x[:{k}])", (0, 4), ranks=(1, 2), smooth=True),
    Entry("linalg.diag_part", "tf.linalg.diag_part(x, k={k})", (-4, 4), ranks=(2, 3), smooth=True),
    Entry("linalg.set_diag", "tf.linalg.set_diag(tf.ones([{k}, 3]), tf.zeros([tf.minimum({k}, 3)]))", (0, 5)),
    Entry("tensordot", "tf.tensordot(x, x, {k})", (0, 1), ranks=(1,), smooth=True),
    Entry("tensordot", "tf.tensordot(x, x, [[{k}], [{k}]])", (-2, 1), ranks=(1, 2), smooth=True),
    # segments and bins
    *[Entry(f"math.unsorted_segment_{how}", f"tf.math.unsorted_segment_{how}(x, tf.zeros_like(x, tf.int32), {{k}})",
            (-1, 3), smooth=how in ("sum", "mean", "max")) for how in ("sum", "mean", "prod", "max", "min", "sqrt_n")],
    Entry("math.bincount", "tf.math.bincount([0, 3, 1, 1], minlength={k})", (-1, 7)),
    Entry("math.bincount", "tf.math.bincount([0, 3, 1, 1], maxlength={k})", (-1, 7)),
    Entry("math.bincount", "tf.math.bincount([0, 3, 1], minlength={k}, maxlength={m})", (0, 7)),
    Entry("math.confusion_matrix", "tf.math.confusion_matrix([0, 2], [1, 2], num_classes={k})", (0, 5)),
    Entry("histogram_fixed_width", "tf.histogram_fixed_width(x, [-2.0, 2.0], nbins={k})", (0, 6)),
    Entry("histogram_fixed_width_bins", "tf.histogram_fixed_width_bins(x, [-2.0, 2.0], nbins={k})", (0, 6)),
    # random numbers: of one seed they are the same in every form
    *[Entry(f"random.stateless_{how}", f"tf.random.stateless_{how}([{{k}}, 2], seed=[1, 2])", (-1, 4))
      for how in ("normal", "uniform", "truncated_normal")],
    Entry("random.stateless_uniform", "tf.random.stateless_uniform([3], seed=[{k}, {m}], maxval=9, dtype=tf.int32)",
          ANY),
    Entry("random.stateless_categorical", "tf.random.stateless_categorical(tf.ones([2, 3]), {k}, seed=[1, 2])",
          (-1, 4)),
    Entry("random.normal", "tf.shape(tf.random.normal([{k}, 3]))"),
    Entry("random.uniform", "tf.shape(tf.random.uniform([{k}]))"),
    Entry("random.categorical", "tf.shape(tf.random.categorical(tf.ones([2, 3]), {k}))"),
    Entry("random.split", "tf.random.split([1, 2], {k})", (0, 4)),
    Entry("random.fold_in", "tf.cast(tf.random.fold_in([1, 2], {k}), tf.int32)", (0, 9)),
    Entry("nn.dropout", "tf.shape(tf.nn.dropout(tf.ones([2, {k}]), 0.5, noise_shape=[1, {k}]))", (0, 4)),
    # signals and images
    Entry("signal.frame", f"tf.signal.frame({_WAVE}, {{k}}, {{m}})", (0, 4)),
    Entry("signal.frame", f"tf.signal.frame({_WAVE}, {{k}}, {{m}}, pad_end=True)", (1, 4)),
    Entry("signal.rfft", f"tf.abs(tf.signal.rfft({_WAVE}, [{{k}}]))", (0, 8)),
    Entry("signal.fftnd", "tf.abs(tf.signal.fftnd(tf.complex(x, x), axes=[{k}]))", AXIS),
    Entry("signal.rfftnd", f"tf.abs(tf.signal.rfftnd({_WAVE}, [{{k}}]))", (0, 8)),
    Entry("signal.fftshift", "tf.signal.fftshift(x, [{k}])", AXIS, smooth=True),
    Entry("signal.hann_window", "tf.signal.hann_window({k})", (0, 6)),
    Entry("signal.overlap_and_add", "tf.signal.overlap_and_add(tf.ones([3, 4]), {k})", (1, 4)),
    Entry("image.resize", "tf.image.resize(tf.ones([1, 3, 4, 1]), [{k}, {m}])", (1, 5)),
    Entry("image.crop_to_bounding_box", "tf.image.crop_to_bounding_box(tf.ones([5, 5, 1]), {k}, {m}, 2, 3)", (-1, 4)),
    Entry("image.pad_to_bounding_box", "tf.image.pad_to_bounding_box(tf.ones([2, 2, 1]), {k}, {m}, 6, 5)", (-1, 5)),
    Entry("image.resize_with_crop_or_pad", "tf.image.resize_with_crop_or_pad(tf.ones([3, 4, 1]), {k}, {m})", (0, 6)),
    Entry("image.rot90", "tf.image.rot90(tf.reshape(tf.range(6.0), [2, 3, 1]), {k})", ANY),
    # numbers
    Entry("bitwise.left_shift", "tf.bitwise.left_shift([1, 5], {k})", (0, 8)),
    Entry("pow", "tf.pow([2, 3], {k})", (0, 5)), Entry("floormod", "tf.math.floormod([7, -7], {k})", ANY),
    Entry("cast", "tf.cast({k}, tf.float32) * x", ANY, smooth=True),
    Entry("clip_by_value", "tf.clip_by_value([1, 9], {k}, {m})", ANY),
    # ragged tensors
    Entry("ragged.range", "tf.ragged.range([0, 1], [{k}, {m}]).to_tensor()", (-1, 5)),
    Entry("ragged.range", "tf.ragged.range({k}, [3, 9], {m}).to_tensor()", (1, 5)),
    Entry("ragged.segment_ids_to_row_splits", "tf.ragged.segment_ids_to_row_splits([0, 0, 2], {k})", (3, 6)),
    Entry("ragged.stack_dynamic_partitions",
          "tf.ragged.stack_dynamic_partitions([1, 2, 3], [0, 2, 0], {k}).to_tensor()",
          (3, 5)),
    Entry("RaggedTensor.to_tensor", f"{_RAGGED}.to_tensor(shape=tf.stack([{{k}}, {{m}}]))", (-1, 4)),
    Entry("RaggedTensor.to_tensor", f"{_RAGGED}.to_tensor(shape=[{{k}}, {{m}}])", (0, 4)),
    Entry("RaggedTensor.from_row_lengths",
          "tf.RaggedTensor.from_row_lengths(tf.ones([{k} + {m}]), [{k}, {m}]).to_tensor()", (0, 4)),
    Entry("RaggedTensor.from_row_splits",
          "tf.RaggedTensor.from_row_splits(tf.range(9), [0, {k}, 9]).to_tensor()", (0, 9)),
    Entry("RaggedTensor.from_value_rowids",
          "tf.RaggedTensor.from_value_rowids([4, 5, 6], [0, 0, 2], nrows={k}).to_tensor()", (3, 6)),
    Entry("RaggedTensor.from_uniform_row_length",
          "tf.RaggedTensor.from_uniform_row_length(tf.range(12), {k}).to_tensor()", (1, 4)),
    Entry("RaggedTensor.getitem", f"{_RAGGED}[{{k}}]", (-4, 3)),
    Entry("RaggedTensor.getitem", f"{_RAGGED}[{{k}}:{{m}}].to_tensor()", (-4, 4)),
    Entry("RaggedTensor.getitem", f"{_RAGGED}[:, {{k}}:{{m}}].to_tensor()", (-4, 4)),
    Entry("gather", f"tf.gather({_RAGGED}, [{{k}}, {{m}}]).to_tensor()", (-1, 3)),
    Entry("tile", f"tf.tile({_RAGGED}, [{{k}}, {{m}}]).to_tensor()", (0, 3)),
    Entry("reduce_sum", f"tf.reduce_sum({_RAGGED}, axis=1)[{{k}}:]", (-3, 3)),
    # sparse tensors
    Entry("sparse.eye", "tf.sparse.to_dense(tf.sparse.eye({k}, {m}))", (0, 4)),
    Entry("sparse.slice", f"tf.sparse.to_dense(tf.sparse.slice({_SPARSE}, [{{k}}, 0], [2, {{m}}]))", (0, 4)),
    Entry("sparse.reshape", f"tf.sparse.to_dense(tf.sparse.reshape({_SPARSE}, [{{k}}, -1]))", (-1, 6)),
    Entry("sparse.reset_shape", f"tf.sparse.to_dense(tf.sparse.reset_shape({_SPARSE}, [{{k}}, {{m}}]))", (2, 6)),
    Entry("sparse.to_indicator",
          "tf.sparse.to_indicator(tf.SparseTensor([[0, 0], [1, 1]], tf.constant([1, 2], tf.int64), [2, 2]), {k})",
          (3, 6)),
    Entry("sparse.transpose", f"tf.sparse.to_dense(tf.sparse.transpose({_SPARSE}, [{{k}}, {{m}}]))", (0, 1)),
    Entry("sparse.reduce_sum", f"tf.sparse.reduce_sum({_SPARSE}, {{k}})", (-3, 2)),
    Entry("sparse.reduce_max", f"tf.sparse.reduce_max({_SPARSE}, [{{k}}], keepdims=True)", (-3, 2)),
    Entry("sparse.expand_dims", f"tf.sparse.to_dense(tf.sparse.expand_dims({_SPARSE}, {{k}}))", (-3, 2)),
    Entry("sparse.concat", f"tf.sparse.to_dense(tf.sparse.concat({{k}}, [{_SPARSE}, {_SPARSE}]))", (-2, 1)),
    Entry("sparse.split", f"tf.sparse.to_dense(tf.sparse.split({_SPARSE}, 2, {{k}})[1])", (-2, 1)),
    Entry("sparse.bincount", "tf.sparse.to_dense(tf.sparse.bincount([0, 3, 1, 1], minlength={k}))", (0, 7)),
    Entry("sparse.segment_sum", "tf.sparse.segment_sum(x, [0, 0], [0, 1], num_segments={k})", (2, 5)),
    Entry("sparse.segment_mean", "tf.sparse.segment_mean(x, [0, 0], [0, 1], num_segments={k})", (2, 5)),
    Entry("SparseTensor", "tf.sparse.to_dense(tf.SparseTensor([[{k}, 1], [{k}, 2]], [1.0, 2.0], [5, {m}]))", (0, 4)),
    # strings
    Entry("strings.substr", "tf.strings.length(tf.strings.substr('twofold', {k}, {m}))", (-8, 7)),
    Entry("strings.reduce_join", "tf.strings.length(tf.strings.reduce_join([['a', 'b'], ['c', 'd']], {k}))", (-3, 2)),
    Entry("strings.unsorted_segment_join",
          "tf.strings.length(tf.strings.unsorted_segment_join(['a', 'b'], [0, 1], {k}))", (2, 5)),
    Entry("strings.unicode_encode",
          "tf.strings.length(tf.strings.unicode_encode([{k} + 70, {m} + 300], 'UTF-8'))", ANY),
    # NumPy's names
    *[Entry(f"experimental.numpy.{how}", f"tf.experimental.numpy.{how}(x, axis={{k}})", AXIS, smooth=how != "argmax")
      for how in ("sum", "mean", "max", "cumsum", "argmax", "flip", "std", "sort", "diff", "expand_dims")],
    Entry("experimental.numpy.squeeze", "tf.experimental.numpy.squeeze(tf.reshape(x, [1, -1, 1]), {k})", AXIS),
    Entry("experimental.numpy.moveaxis", "tf.experimental.numpy.moveaxis(x, {k}, {m})", (-2, 1), ranks=(2, 3)),
    Entry("experimental.numpy.reshape", "tf.experimental.numpy.reshape(x, [{k}, -1])", smooth=True),
    Entry("experimental.numpy.roll", "tf.experimental.numpy.roll(x, {k}, 0)", ANY, smooth=True),
    Entry("experimental.numpy.eye", "tf.experimental.numpy.eye({k}, {m})", (0, 4)),
    Entry("experimental.numpy.tri", "tf.experimental.numpy.tri(3, 4, {k})", (-4, 4)),
    Entry("experimental.numpy.tril", "tf.experimental.numpy.tril(x, {k})", (-4, 4), ranks=(2, 3), smooth=True),
    Entry("experimental.numpy.full", "tf.experimental.numpy.full([{k}, {m}], 2.5)", (0, 4)),
    Entry("experimental.numpy.arange", "tf.experimental.numpy.arange({k}, {m})", (-1, 5)),
    Entry("experimental.numpy.swapaxes", "tf.experimental.numpy.swapaxes(x, {k}, 0)", AXIS, smooth=True),
    Entry("experimental.numpy.take", "tf.experimental.numpy.take(x, [{k}], axis=0)", (0, 3), ranks=(1, 2), smooth=True),
    Entry("experimental.numpy.repeat", "tf.experimental.numpy.repeat(x, {k})", (0, 4)),
    Entry("experimental.numpy.tile", "tf.experimental.numpy.tile(x, [{k}, {m}])", (0, 3), ranks=(1, 2)),
]

# Other names of functions that stand above, which hand their integers on.
FORWARDED: list[Entry] = [
    *[Entry(f"compat.v1.{how}", f"tf.compat.v1.{how}(x, {{k}})", AXIS, smooth=how not in ("argmax", "argmin"))
      for how in ("reduce_sum", "reduce_max", "reduce_logsumexp", "argmax", "argmin", "expand_dims")],
    Entry("compat.v1.squeeze", "tf.compat.v1.squeeze(tf.reshape(x, [1, -1, 1]), [{k}])", AXIS),
    Entry("compat.v1.random_uniform", "tf.shape(tf.compat.v1.random_uniform([{k}, 2]))", (0, 4)),
    Entry("compat.v1.truncated_normal", "tf.shape(tf.compat.v1.truncated_normal([{k}]))", (0, 4)),
    *[Entry(f"raw_ops.{call.partition('(')[0]}", f"tf.raw_ops.{call}", AXIS, ranks=(1, 2), smooth=True) for call in (
        "Cumsum(x=x, axis={k})", "Sum(input=x, axis={k})", "Max(input=x, axis=[{k}])",
        "ReverseV2(tensor=x, axis=[{k}])",
        "ConcatV2(values=[x, x], axis={k})", "GatherV2(params=x, indices=[0], axis={k})",
        "ExpandDims(input=x, axis={k})")],
    *[Entry(f"raw_ops.{call.partition('(')[0]}", f"tf.raw_ops.{call}", ranks=(1,), smooth=True) for call in (
        "Slice(input=x, begin=[{k}], size=[{m}])", "Tile(input=x, multiples=[{k}])",
        "Reshape(tensor=x, shape=[{k}, -1])",
        "Pad(input=x, paddings=[[{k}, {m}]])", "BroadcastTo(input=x[0], shape=[{k}])", "TopKV2(input=x, k={k})[0]",
        "UnsortedSegmentSum(data=x, segment_ids=tf.zeros_like(x, tf.int32), num_segments={k})")],
    *[Entry(f"raw_ops.{call.partition('(')[0]}", f"tf.raw_ops.{call}", (0, 5), ranks=(1,)) for call in (
        "Fill(dims=[{k}, {m}], value=1)", "OneHot(indices=[0, 2], depth={k}, on_value=1, off_value=0)",
        "LinSpace(start=0.0, stop=1.0, num={k})", "StatelessRandomUniform(shape=[{k}], seed=[1, 2])",
        "Bincount(arr=[0, 2, 1], size={k}, weights=[1.0, 2.0, 3.0])")],
    Entry("raw_ops.ArgMax", "tf.raw_ops.ArgMax(input=x, dimension={k})", AXIS),
    Entry("raw_ops.Range", "tf.raw_ops.Range(start=0, limit={k}, delta={m})", ANY),
    Entry("raw_ops.Roll", "tf.raw_ops.Roll(input=x, shift={k}, axis=0)", ANY, smooth=True),
    Entry("raw_ops.StridedSlice", "tf.raw_ops.StridedSlice(input=x, begin=[{k}], end=[{m}], strides=[1])", ANY,
          smooth=True),
    Entry("raw_ops.MatrixBandPart", "tf.raw_ops.MatrixBandPart(input=x, num_lower={k}, num_upper={m})", (-1, 4),
          ranks=(2, 3), smooth=True),
    Entry("raw_ops.Split", "tf.raw_ops.Split(axis={k}, value=tf.ones([2, 2, 2]), num_split=2)[1]", AXIS),
    Entry("raw_ops.Transpose", "tf.raw_ops.Transpose(x=x, perm=[{k}, {m}])", (0, 1), ranks=(2,), smooth=True),
]

# -- nests ------------------------------------------------------------------------------------------------------------
# `CALL` is the call, `OTHER` the call with k and m exchanged, `NEXT` with k + i; p is a bool, n a number of rounds.
NESTS: dict[str, str] = {
    "plain": "return CALL",
    "cond": "return tf.cond(p, lambda: CALL, lambda: OTHER)",
    "if": "if p:\n    y = CALL\nelse:\n    y = OTHER\nreturn y",
    "guarded": "y = tf.zeros([0], tf.float64)\nif k > 0:\n"
               "    y = tf.reshape(tf.cast(CALL, tf.float64), [-1])\nreturn y",
    "for": "s = tf.constant(0.0, tf.float64)\nfor i in tf.range(n):\n    s += TOTAL(CALL)\nreturn s",
    "for next": "s = tf.constant(0.0, tf.float64)\nfor i in tf.range(n):\n    s += TOTAL(NEXT)\nreturn s",
    "for carried": "y = CALL\nfor i in tf.range(n):\n    tf.autograph.experimental.set_loop_options(shape_invariants=["
                   "(y, tf.TensorShape([None] * len(y.shape)))])\n    y = CALL\nreturn y",
    "while": "s, i = tf.constant(0.0, tf.float64), tf.constant(0)\nwhile i < n:\n    s += TOTAL(CALL)\n    i += 1\n"
             "return s",
    "if in for": "s = tf.constant(0.0, tf.float64)\nfor i in tf.range(n):\n    if p:\n        s += TOTAL(CALL)\n"
                 "    else:\n        s -= 1.0\nreturn s",
    "for in for": "s = tf.constant(0.0, tf.float64)\nfor i in tf.range(n):\n    for j in tf.range(i):\n"
                  "        s += TOTAL(CALL)\nreturn s",
    "map": "return tf.map_fn(lambda i: tf.cast(CALL, tf.float64), tf.range(1 + tf.abs(n)), "
           "fn_output_signature=tf.float64)",
    "fold": "return tf.foldl(lambda a, i: a + TOTAL(CALL), tf.range(n), tf.constant(0.0, tf.float64))",
    "array": "a = tf.TensorArray(tf.float64, size=0, dynamic_size=True, infer_shape=False)\nfor i in tf.range(n):\n"
             "    a = a.write(i, tf.reshape(tf.cast(CALL, tf.float64), [-1]))\nreturn a.concat() if n > 0 else "
             "tf.zeros([0], tf.float64)",
    "call": "return INNER(x, k, m)",
    "derived": "k, m = k * 1 + 0, m + 2 - 2\nreturn CALL",
}
_PLAIN = ("plain", "cond", "if", "for carried", "call", "derived")  # those whose result is that of the call
_HEAD = "def TOTAL(y):\n    return tf.reduce_sum(tf.cast(y, tf.float64))\n\n"


class Case(NamedTuple):
    """A program, and what it is called with."""

    entry: Entry
    nest: str
    shape: tuple[int, ...]
    calls: tuple[tuple[int, int, bool, int], ...]  # k, m, p, n
    wide: bool  # int64 instead of int32
    unknown: bool  # whether the sizes of x are unknown
    taped: bool  # whether gradients by x are compared
    seed: int


def draw(rng: random.Random, entry: Entry | None = None, nest: str | None = None) -> Case:
    """A random case, of an entry and in a nest where they are given."""
    entry = entry or rng.choice(TABLE + FORWARDED)
    nest = nest or rng.choice(list(NESTS))
    rank = rng.choice(entry.ranks)
    low, high = entry.values
    calls = []
    for _ in range(rng.choice((2, 3))):
        k, m = (rng.choice((0, 1, 2)) if rng.random() < 0.3 else rng.randint(low, high) for _ in range(2))
        calls.append((k, m, rng.random() < 0.6, rng.choice((0, 1, 2, 3))))
    shape = tuple(rng.choice((1, 2, 3, 4, 4)) for _ in range(rank))
    return Case(entry, nest, shape, tuple(calls), rng.random() < 0.3, rng.random() < 0.4,
                entry.smooth and nest in _PLAIN and rng.random() < 0.5, rng.randrange(1 << 20))


def source_of(case: Case) -> str:
    """The program as text: it defines `function` and `case`."""
    text, body = case.entry.text, NESTS[case.nest]
    other = text.format(k="m", m="k")
    inner = ""
    if "INNER" in body:
        inner = f"@tf.function\ndef INNER(x, k, m):\n    return {text.format(k='k', m='m')}\n\n"
    body = body.replace("CALL", text.format(k="k", m="m")).replace("OTHER", other).replace(
        "NEXT", text.format(k="(k + tf.cast(i, getattr(k, 'dtype', tf.int32)))", m="m"))
    lines = "\n".join("    " + line for line in body.splitlines())
    told = f"(shape={case.shape!r}, dtype={case.entry.dtype!r}, calls={case.calls!r}, wide={case.wide}, " \
           f"unknown={case.unknown}, taped={case.taped}, seed={case.seed})"
    return f"{_HEAD}{inner}def function(x, k, m, p, n):\n{lines}\n\n\ncase = dict{told}\n"


# -- comparing --------------------------------------------------------------------------------------------------------
_ERRORS = (tf.errors.OpError, ValueError, TypeError, IndexError, NotImplementedError, OverflowError, ZeroDivisionError)
_LIMITS = ("was assumed of sizes that only running can tell", "must be known when tf.function traces",
           "the number of axes must be one", "must have one structure on both sides", "has shape")


def _argument(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    return tf.constant(rng.uniform(-2.0, 2.0, shape).astype(dtype))


def _outcome(function, x, rest, taped):
    """Results of a call as arrays, or the error."""
    try:
        if not taped:
            return [t.numpy() for t in tf.nest.flatten(function(x, *rest))]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x, *rest)
        return [y.numpy(), tape.gradient(y, x, unconnected_gradients="zero").numpy()]
    except _ERRORS as error:
        return error


_SIGNED = (np.int32, np.int64)  # some results have the dtype of the integers that are given


def difference(want, have):
    """What differs between two outcomes, in words; None where they agree."""
    if isinstance(have, tf.errors.OpError) and "Nothing is promoted" in str(have):
        return None
    if isinstance(want, Exception):
        return None if isinstance(have, Exception) else f"raises {_short(want)}; else gives {have}"
    if isinstance(have, Exception):
        return f"gives results; else raises {_short(have)}"
    for a, b in zip(want, have, strict=True):
        if np.asarray(a).dtype in _SIGNED and np.asarray(b).dtype in _SIGNED:
            b = np.asarray(b).astype(np.asarray(a).dtype)
        if not same_bits(np.asarray(a), np.asarray(b)):
            return f"{_shown(a)} against {_shown(b)}"
    return None


def _shown(value):
    array = np.asarray(value)
    return f"{array.dtype}{list(array.shape)} {array.tolist()}"


def _short(error):
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def check(function, case):
    """What differs between the forms of the integers, as text; None where all agree.

    Args:
        case: the fields of a `Case` that say how to call it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _checked(function, case)


def _checked(function, case):
    x = _argument(case["shape"], case["dtype"], case["seed"])
    kind = np.int64 if case["wide"] else np.int32
    spec = tf.TensorSpec([None] * len(case["shape"]) if case["unknown"] else case["shape"], case["dtype"])
    one = tf.TensorSpec([], kind)
    traced = tf.function(function, input_signature=[spec, one, one, tf.TensorSpec([], tf.bool),
                                                    tf.TensorSpec([], tf.int32)], fallback=False)
    for k, m, p, n in case["calls"]:
        rest = tf.constant(p), tf.constant(n)
        want = _outcome(function, x, (k, m, *rest), case["taped"])
        forms = {"NumPy integers": (function, (kind(k), kind(m))),
                 "scalar tensors": (function, (tf.constant(k, kind), tf.constant(m, kind))),
                 "traced tensors": (traced, (tf.constant(k, kind), tf.constant(m, kind)))}
        for name, (called, ints) in forms.items():
            have = _outcome(called, x, (*ints, *rest), case["taped"])
            if _is_limit(have):  # in a form that is not traced, of a function that is called
                continue
            actual = difference(want, have)
            if actual is not None and not _elsewhere(function, x, (k, m), want, have):
                return f"k={k} m={m} p={p} n={n}, Python integers, then {name}: {actual}"
    return None


def _elsewhere(function, x, ints, want, have):
    """Whether an error of a traced function is one of a part that did not run: it must fit all the same."""
    if isinstance(want, Exception) or not isinstance(have, Exception):
        return False
    parts = [(p, n) for p in (True, False) for n in (2, 3)]
    guarded = [(k, ints[1]) for k in (1, 2)] if ints[0] <= 0 else []  # what stands under `if k > 0`
    return any(isinstance(_outcome(function, x, (*given, tf.constant(p), tf.constant(n)), False), Exception)
               for p, n in parts for given in (ints, *guarded))


def _is_limit(have):
    """Whether an error is one that `docs/limits.md` names."""
    if not isinstance(have, Exception):
        return False
    text = str(have)
    return _LIMITS[0] in text and bool(re.search(r" = 1[.,]", text)) or any(part in text for part in _LIMITS[1:4])
