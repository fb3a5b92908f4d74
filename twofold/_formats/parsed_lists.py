"""Features of any number of values: `tf.io.VarLenFeature`, `RaggedFeature` and `SparseFeature`, and how they are put
together.

A record's values of such a feature come one behind the other, with their number in each record; sparse and ragged
tensors are made of these by functions of tensors, so that everything after the reading is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import twofold as tf

__all__ = ["RaggedFeature", "SparseFeature", "VarLenFeature", "assembled", "keys_of"]


class VarLenFeature(NamedTuple):
    """A feature of any number of values, as a sparse tensor.

    Attributes:
        dtype: tf.float32, tf.int64 or tf.string.

    >>> import twofold as tf
    >>> tf.io.VarLenFeature(tf.string)
    VarLenFeature(dtype=tf.string)
    """

    dtype: Any


class SparseFeature(NamedTuple):
    """Values at coordinates, which features of their own tell, as a sparse tensor.

    Attributes:
        index_key: the name of the feature of the coordinates; several names for several axes.
        value_key: the name of the feature of the values.
        dtype: of the values: tf.float32, tf.int64 or tf.string.
        size: of the axis; several for several axes.
        already_sorted: whether coordinates are in order; they are sorted otherwise.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class _RowSplits(NamedTuple):
    """Where the rows begin and end, by the feature of a name."""

    key: str


class _RowLengths(NamedTuple):
    """How long the rows are, by the feature of a name."""

    key: str


class _RowStarts(NamedTuple):
    """Where the rows begin, by the feature of a name."""

    key: str


class _RowLimits(NamedTuple):
    """Where the rows end, by the feature of a name."""

    key: str


class _ValueRowIds(NamedTuple):
    """The row of each value, by the feature of a name."""

    key: str


class _UniformRowLength(NamedTuple):
    """Rows of one length."""

    length: int


class RaggedFeature(NamedTuple):
    """A feature of any number of values, as a ragged tensor.

    Attributes:
        dtype: tf.float32, tf.int64 or tf.string.
        value_key: the name of the feature of the values; by default its own.
        partitions: how the values of a record are cut into rows, from the outside in: `RaggedFeature.RowLengths("key")`
            and the like; none for a row for each record.
        row_splits_dtype: int32 or int64.
        validate: has no effect: partitions are checked by what is made of them.

    >>> import twofold as tf
    >>> data = tf.train.Example(features=tf.train.Features(feature={
    ...     "x": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2]))})).SerializeToString()
    >>> tf.io.parse_example([data, data], {"x": tf.io.RaggedFeature(tf.int64)})["x"]
    <tf.RaggedTensor [[1, 2],
     [1, 2]]>
    """

    dtype: Any
    value_key: str | None = None
    partitions: Sequence[Any] = ()
    row_splits_dtype: Any = tf.int32
    validate: bool = False


for _part in (_RowSplits, _RowLengths, _RowStarts, _RowLimits, _ValueRowIds, _UniformRowLength):
    setattr(RaggedFeature, _part.__name__.removeprefix("_"), _part)

Lists = Mapping[tuple[str, str], tuple[Any, Any]]  # values and their numbers, by the names of features and of dtypes


def keys_of(name: str, form: Any) -> list[tuple[str, str]]:
    """The features of records that a feature is made of, each with the name of its dtype.

    Raises:
        ValueError: it asks for what cannot be.
    """
    dtype = tf.as_dtype(form.dtype).name
    if dtype not in ("float32", "int64", "string"):
        raise ValueError(f"parse_example: {name!r}: dtype must be float32, int64 or string; got {dtype}")
    if isinstance(form, VarLenFeature):
        return [(name, dtype)]
    if isinstance(form, SparseFeature):
        indices, sizes = _listed(form.index_key), _listed(form.size)
        if len(indices) != len(sizes):
            raise ValueError(f"parse_example: {name!r}: a SparseFeature has a size for each index_key; got "
                             f"{len(indices)} keys and {len(sizes)} sizes")
        return [(form.value_key, dtype), *[(key, "int64") for key in indices]]
    keys = [(form.value_key or name, dtype)]
    for part in form.partitions:
        if isinstance(part, (_RowSplits, _RowLengths, _RowStarts, _RowLimits, _ValueRowIds)):
            keys.append((part.key, "int64"))
        elif not isinstance(part, _UniformRowLength):
            raise ValueError(f"parse_example: {name!r}: {part!r} is no partition of a tf.io.RaggedFeature")
    return keys


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def assembled(name: str, form: Any, lists: Lists, alone: bool) -> Any:
    """A feature, made of the lists of the records.

    Args:
        name: of the feature.
        form: what is asked for.
        lists: the values of all records, and their numbers in each.
        alone: whether there is one record, which has no axis of its own in the result.
    """
    if isinstance(form, VarLenFeature):
        return _sparse(*lists[name, tf.as_dtype(form.dtype).name], alone)
    if isinstance(form, SparseFeature):
        return _at_coordinates(form, lists, alone)
    return _ragged(name, form, lists, alone)


def _sparse(values: Any, lengths: Any, alone: bool) -> Any:
    rows = tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
    if alone:
        count = tf.shape(values, tf.int64)[0]
        return tf.SparseTensor(tf.range(count)[:, None], values, tf.reshape(count, [1]))
    return rows.to_sparse()


def _at_coordinates(form: SparseFeature, lists: Lists, alone: bool) -> Any:
    values, lengths = lists[form.value_key, tf.as_dtype(form.dtype).name]
    columns = [] if alone else [tf.ragged.row_splits_to_segment_ids(tf.concat([[0], tf.cumsum(lengths)], 0))]
    for key in _listed(form.index_key):
        places, counts = lists[key, "int64"]
        tf.debugging.assert_equal(counts, lengths, f"the features {form.value_key!r} and {key!r} have different sizes")
        columns.append(places)
    sizes = tf.constant(_listed(form.size), tf.int64)
    shape = sizes if alone else tf.concat([tf.shape(lengths, tf.int64), sizes], 0)
    made = tf.SparseTensor(tf.stack(columns, 1), values, shape)
    return made if form.already_sorted else tf.sparse.reorder(made)


def _ragged(name: str, form: RaggedFeature, lists: Lists, alone: bool) -> Any:
    values, counts = lists[form.value_key or name, tf.as_dtype(form.dtype).name]
    if alone and form.partitions and all(isinstance(part, _UniformRowLength) for part in form.partitions):
        return tf.reshape(values, [-1, *[part.length for part in form.partitions]])
    for part in reversed(form.partitions):
        lengths = _row_lengths(part, counts, lists)
        values = tf.RaggedTensor.from_row_lengths(values, lengths.values)
        counts = lengths.row_lengths()
    if alone:
        result = values
    else:
        result = tf.RaggedTensor.from_row_lengths(values, counts, validate=False)
    return result.with_row_splits_dtype(form.row_splits_dtype) if isinstance(result, tf.RaggedTensor) else result


def _row_lengths(part: Any, counts: Any, lists: Lists) -> Any:
    """The lengths of the rows in each record, as a ragged tensor; `counts` are the numbers of values in each."""
    if isinstance(part, _UniformRowLength):
        rows = counts // part.length
        lengths = tf.fill([tf.reduce_sum(rows)], tf.constant(part.length, tf.int64))
        return tf.RaggedTensor.from_row_lengths(lengths, rows, validate=False)
    values, numbers = lists[part.key, "int64"]
    told = tf.RaggedTensor.from_row_lengths(values, numbers, validate=False)
    if isinstance(part, _RowLengths):
        return told
    if isinstance(part, _RowSplits):
        return told[:, 1:] - told[:, :-1]
    if isinstance(part, _RowStarts):
        return tf.concat([told, counts[:, None]], 1)[:, 1:] - told
    if isinstance(part, _RowLimits):
        return told - tf.concat([tf.zeros_like(counts)[:, None], told], 1)[:, :-1]
    rows = tf.maximum(tf.reduce_max(told, axis=1), -1) + 1
    begins = tf.cumsum(rows, exclusive=True)
    ids = told.values + tf.gather(begins, told.value_rowids())
    lengths = tf.math.unsorted_segment_sum(tf.ones_like(ids), ids, tf.reduce_sum(rows))
    return tf.RaggedTensor.from_row_lengths(lengths, rows, validate=False)
