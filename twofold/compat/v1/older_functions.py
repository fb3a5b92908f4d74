"""Functions that TensorFlow 1 has beside its modules: strings, files, quantisation, patches, sets and scopes.

As in `functions.py`, arguments are renamed and put in order here, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import twofold as tf
from twofold._front.api import public

from .building import name_scope
from .dimension import Dimension
from .functions import one_of
from .variables import VariableScope, variable_scope

__all__ = [
    "convert_to_tensor_or_sparse_tensor", "decode_csv", "dimension_at_index", "dimension_value",
    "extract_image_patches", "no_regularizer", "op_scope", "quantize_v2", "reduce_join", "resource_variables_enabled",
    "setdiff1d", "string_split", "string_to_hash_bucket", "tf_record_iterator", "variable_op_scope",
]


# -- strings and files ------------------------------------------------------------------------------------
@public
def decode_csv(records: Any, record_defaults: Any, field_delim: str = ",", use_quote_delim: bool = True,
               name: str | None = None, na_value: str = "", select_cols: Any = None) -> Any:
    """`tf.io.decode_csv`. `name` has no effect."""
    return tf.io.decode_csv(records, record_defaults, field_delim, use_quote_delim, na_value, select_cols)


@public
def reduce_join(inputs: Any, axis: Any = None, keep_dims: bool | None = None, separator: str = "",
                name: str | None = None, reduction_indices: Any = None, keepdims: bool | None = None) -> Any:
    """`tf.strings.reduce_join`, with older names of its arguments. `name` has no effect."""
    return tf.strings.reduce_join(inputs, one_of(axis, reduction_indices, "axis", "reduction_indices"),
                                  bool(one_of(keepdims, keep_dims, "keepdims", "keep_dims")), separator)


@public
def string_split(source: Any, sep: str | None = None, skip_empty: bool = True, delimiter: str | None = None,
                 result_type: str = "SparseTensor", name: str | None = None) -> Any:
    """The parts of strings, at any of the bytes of `sep`; of no bytes, each byte is a part.

    Args:
        source: a vector of strings.
        sep: bytes that part; a space by default.
        skip_empty: whether empty parts are left out.
        delimiter: the older name of `sep`.
        result_type: "SparseTensor" or "RaggedTensor".
        name: accepted, without effect.
    Raises:
        ValueError: another type of result.

    >>> import twofold as tf
    >>> tf.compat.v1.string_split(["a b", "c"], result_type="RaggedTensor").to_list()
    [[b'a', b'b'], [b'c']]
    """
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")
    sep = one_of(sep, delimiter, "sep", "delimiter")
    parts = tf.raw_ops.StringSplit(input=source, delimiter=" " if sep is None else sep, skip_empty=skip_empty)
    if result_type == "SparseTensor":
        return tf.SparseTensor(*parts)
    indices, values, shape = parts
    return tf.RaggedTensor.from_value_rowids(values, indices[:, 0], shape[0])


@public
def string_to_hash_bucket(string_tensor: Any = None, num_buckets: Any = None, name: str | None = None,
                          input: Any = None) -> Any:
    """`tf.strings.to_hash_bucket`; `string_tensor` is the older name of `input`. `name` has no effect."""
    return tf.strings.to_hash_bucket(one_of(input, string_tensor, "input", "string_tensor"), num_buckets)


@public
def tf_record_iterator(path: str, options: Any = None) -> Iterator[bytes]:
    """The records of a file, one after the other.

    Args:
        path: of the file.
        options: `tf.io.TFRecordOptions`, which say how it is compressed.
    """
    for record in tf.data.TFRecordDataset(path, getattr(options, "compression_type", options)):
        yield record.numpy()


# -- arrays -----------------------------------------------------------------------------------------------
class ListDiff(NamedTuple):
    """What is in one list and not in another, and where it was."""

    out: Any
    idx: Any


@public
def setdiff1d(x: Any, y: Any, index_dtype: Any = tf.int32, name: str | None = None) -> ListDiff:
    """Those of the numbers of one vector that are not in another, in their order, and where they were.

    `name` has no effect.

    >>> import twofold as tf
    >>> out, idx = tf.compat.v1.setdiff1d([1, 2, 3, 2], [1, 3])
    >>> out.numpy().tolist(), idx.numpy().tolist()
    ([2, 2], [1, 3])
    """
    return ListDiff(*tf.raw_ops.ListDiff(x=x, y=y, out_idx=index_dtype))


@public
def extract_image_patches(images: Any, ksizes: Any = None, strides: Any = None, rates: Any = None,
                          padding: Any = None, name: str | None = None, sizes: Any = None) -> Any:
    """`tf.image.extract_patches`; `ksizes` is the older name of `sizes`. `name` has no effect."""
    return tf.image.extract_patches(images, one_of(sizes, ksizes, "sizes", "ksizes"), strides, rates, padding)


@public
def quantize_v2(input: Any, min_range: Any, max_range: Any, T: Any, mode: str = "MIN_COMBINED",
                name: str | None = None, round_mode: str = "HALF_AWAY_FROM_ZERO", narrow_range: bool = False,
                axis: Any = None, ensure_minimum_range: float = 0.01) -> Any:
    """`tf.quantization.quantize`. `name` has no effect."""
    return tf.quantization.quantize(input, min_range, max_range, T, mode, round_mode, narrow_range=narrow_range,
                                    axis=axis, ensure_minimum_range=ensure_minimum_range)


@public
def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A sparse tensor as it is or of its value, all else as a tensor. `name` has no effect.

    Raises:
        RuntimeError: a sparse tensor has values of another dtype.
    """
    if isinstance(value, tf.compat.v1.SparseTensorValue):
        value = tf.SparseTensor.from_value(value)
    if not isinstance(value, tf.SparseTensor):
        return tf.convert_to_tensor(value, dtype)
    if dtype is not None and value.dtype != tf.as_dtype(dtype):
        raise RuntimeError(f"Sparse dtype mismatch. Requested: {tf.as_dtype(dtype).name}, Actual: {value.dtype.name}")
    return value


# -- sizes, scopes and settings ---------------------------------------------------------------------------
@public
def dimension_value(dimension: Any) -> int | None:
    """The number of a `Dimension`; an integer, and None, as they are."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


@public
def dimension_at_index(shape: Any, index: int) -> Dimension:
    """A size of a shape as a `Dimension`, which is unknown if the rank is."""
    return Dimension(None if shape.rank is None else dimension_value(shape[index]))


@public
def op_scope(values: Any, name: str | None, default_name: str | None = None) -> AbstractContextManager[str]:
    """`name_scope`, with its arguments in an older order."""
    return name_scope(name, default_name, values)


@public
def variable_op_scope(values: Any, name_or_scope: Any, default_name: str | None = None,
                      **settings: Any) -> AbstractContextManager[VariableScope]:
    """`variable_scope`, with its arguments in an older order."""
    return variable_scope(name_or_scope, default_name, values, **settings)


@public
def no_regularizer(_: Any) -> None:
    """The regulariser that adds nothing to a loss."""


@public
def resource_variables_enabled() -> bool:
    """Whether variables are resources: always."""
    return True
