"""`RowPartition`: how the rows of a tensor are grouped into rows of an outer axis.

A partition of `nvals` values into `nrows` rows is kept as its row splits: row `i` has the values from `splits[i]` up to
`splits[i + 1]`. Everything else is computed from these, and kept where it was given.
"""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.demands import demand
from twofold.ir.type_spec import CompositeTensor, TypeSpec, register

__all__ = ["RowPartition", "RowPartitionSpec", "is_known", "known", "split_lengths"]

_DTYPES = (tf.int32, tf.int64)


def known(x: Any) -> Any:
    """The value of a tensor as a NumPy array; None in a trace that does not know it."""
    return tf.get_static_value(x)


def is_known(x: Any) -> bool:
    """Whether a tensor has a value here and now."""
    return not tf.is_symbolic_tensor(x)


def split_lengths(lengths: Any) -> Any:
    """The splits of rows of these lengths."""
    return tf.concat([tf.zeros([1], lengths.dtype), tf.cumsum(lengths)], 0)


def _integers(value: Any, name: str, dtype: Any = None) -> Any:
    """A vector or scalar of int32 or int64."""
    hint = dtype or (None if hasattr(value, "dtype") else tf.int64)
    tensor = tf.convert_to_tensor(value, dtype_hint=hint)
    if tensor.dtype not in _DTYPES:
        if tensor.shape.num_elements() == 0:
            return tf.cast(tensor, dtype or tf.int64)
        raise ValueError(f"{name} must have dtype int32 or int64; got {tensor.dtype.name}.")
    return tf.cast(tensor, dtype) if dtype is not None and dtype is not tensor.dtype else tensor


class RowPartition(CompositeTensor):
    """A partition of values into rows. Made by the class methods `from_...`.

    >>> import twofold as tf
    >>> partition = tf.experimental.RowPartition.from_row_lengths([2, 0, 1])
    >>> partition.row_splits().numpy().tolist(), partition.value_rowids().numpy().tolist()
    ([0, 2, 2, 3], [0, 0, 2])
    """

    __slots__ = ("_nvals", "_rowids", "_splits", "_uniform")

    def __init__(self, row_splits: Any, value_rowids: Any = None, uniform_row_length: Any = None, nvals: Any = None
                 ) -> None:
        self._splits, self._rowids, self._uniform, self._nvals = row_splits, value_rowids, uniform_row_length, nvals

    # -- making ---------------------------------------------------------------------------------------------------
    @classmethod
    def from_row_splits(cls, row_splits: Any, validate: bool = True, dtype: Any = None) -> RowPartition:
        """A partition by where rows begin, and where the last one ends.

        Args:
            row_splits: an integer vector that begins with 0 and does not decrease.
            validate: whether that is checked.
            dtype: of the row splits; their own by default.
        Raises:
            InvalidArgumentError: it is not so. ValueError: another dtype or rank.
        """
        splits = _integers(row_splits, "row_splits", dtype)
        _check_rank(splits, 1, "row_splits")
        if splits.shape[0] == 0:
            raise ValueError("row_splits must have at least one element")
        if validate:
            demand(tf.equal(splits[0], 0), "Arguments to from_row_splits do not form a valid RaggedTensor: "
                                           "row_splits must begin with 0")
            demand(tf.reduce_all(splits[1:] >= splits[:-1]), "Arguments to from_row_splits do not form a valid "
                                                             "RaggedTensor: row_splits must not decrease")
        return cls(splits)

    @classmethod
    def from_row_lengths(cls, row_lengths: Any, validate: bool = True, dtype: Any = None) -> RowPartition:
        """A partition by the number of values in each row.

        Args:
            row_lengths: an integer vector, not negative.
            validate: whether that is checked.
            dtype: of the row splits.
        """
        lengths = _integers(row_lengths, "row_lengths", dtype)
        _check_rank(lengths, 1, "row_lengths")
        if validate:
            demand(tf.reduce_all(lengths >= 0), "Arguments to from_row_lengths do not form a valid RaggedTensor: "
                                                "row_lengths must not be negative")
        return cls(split_lengths(lengths))

    @classmethod
    def from_row_starts(cls, row_starts: Any, nvals: Any, validate: bool = True, dtype: Any = None) -> RowPartition:
        """A partition by where each row begins.

        Args:
            row_starts: an integer vector that begins with 0, if it has elements, and does not decrease.
            nvals: how many values there are.
            validate: whether that is checked.
            dtype: of the row splits.
        """
        starts = _integers(row_starts, "row_starts", dtype)
        _check_rank(starts, 1, "row_starts")
        return cls.from_row_splits(tf.concat([starts, [tf.cast(nvals, starts.dtype)]], 0), validate)

    @classmethod
    def from_row_limits(cls, row_limits: Any, validate: bool = True, dtype: Any = None) -> RowPartition:
        """A partition by where each row ends.

        Args:
            row_limits: an integer vector that does not decrease.
            validate: whether that is checked.
            dtype: of the row splits.
        """
        limits = _integers(row_limits, "row_limits", dtype)
        _check_rank(limits, 1, "row_limits")
        return cls.from_row_splits(tf.concat([tf.zeros([1], limits.dtype), limits], 0), validate)

    @classmethod
    def from_value_rowids(cls, value_rowids: Any, nrows: Any = None, validate: bool = True, dtype: Any = None
                          ) -> RowPartition:
        """A partition by the row of each value.

        Args:
            value_rowids: an integer vector that does not decrease.
            nrows: how many rows there are; by default one more than the last row with a value.
            validate: whether that is checked.
            dtype: of the row splits.
        """
        rowids = _integers(value_rowids, "value_rowids", dtype)
        _check_rank(rowids, 1, "value_rowids")
        if nrows is None:
            nrows = tf.reduce_max(tf.concat([rowids, [tf.constant(-1, rowids.dtype)]], 0)) + 1
        else:
            fixed = known(nrows) if hasattr(nrows, "dtype") else nrows
            if fixed is not None and int(fixed) < 0:
                raise ValueError(f"Expected nrows >= 0; got {int(fixed)}")
            nrows = tf.cast(nrows, rowids.dtype)
        if validate:
            text = "Arguments to from_value_rowids do not form a valid RaggedTensor: "
            demand(tf.reduce_all(rowids[1:] >= rowids[:-1]), text + "value_rowids must not decrease")
            demand(tf.reduce_all(rowids >= 0) & tf.reduce_all(rowids < nrows), text + "value_rowids must be rows")
        lengths = tf.math.unsorted_segment_sum(tf.ones_like(rowids), rowids, nrows)
        return cls(split_lengths(lengths), rowids)

    @classmethod
    def from_uniform_row_length(cls, uniform_row_length: Any, nvals: Any = None, nrows: Any = None,
                                validate: bool = True, dtype: Any = None) -> RowPartition:
        """A partition into rows of one length.

        Args:
            uniform_row_length: the length.
            nvals: how many values there are. nrows: how many rows there are. One of them may be left out.
            validate: whether they fit.
            dtype: of the row splits; int64 by default.
        Raises:
            ValueError: neither is given, or (as far as it is known) they do not fit.
        """
        if nvals is None and nrows is None:
            raise ValueError("Either nvals or nrows must be specified")
        dtype = dtype or next((x.dtype for x in (uniform_row_length, nvals, nrows)
                               if getattr(x, "dtype", None) in _DTYPES), tf.int64)
        length = tf.cast(uniform_row_length, dtype)
        fixed = known(length)
        if fixed is not None and int(fixed) < 0:
            raise ValueError("uniform_row_length must be greater than or equal to 0.")
        if nrows is None:
            if fixed is not None and int(fixed) == 0:
                rows = tf.zeros([], dtype)
            else:
                rows = tf.cast(nvals, dtype) // tf.maximum(length, 1)
        else:
            rows = tf.cast(nrows, dtype)
        if validate and nvals is not None:
            demand(tf.equal(rows * length, tf.cast(nvals, dtype)),
                   "Arguments to from_uniform_row_length do not form a valid RaggedTensor: uniform_row_length does not "
                   "divide the number of values")
        return cls(tf.range(rows + 1) * length, None, int(fixed) if fixed is not None else length)

    # -- what it is -----------------------------------------------------------------------------------------------
    @property
    def dtype(self) -> Any:
        """The dtype of the row splits: int32 or int64."""
        return self._splits.dtype

    def row_splits(self) -> Any:
        """Where rows begin, and where the last one ends: an integer vector of `nrows + 1` elements."""
        return self._splits

    def row_starts(self) -> Any:
        """Where rows begin."""
        return self._splits[:-1]

    def row_limits(self) -> Any:
        """Where rows end."""
        return self._splits[1:]

    def row_lengths(self) -> Any:
        """The number of values in each row."""
        return self._splits[1:] - self._splits[:-1]

    def nrows(self, out_type: Any = None) -> Any:
        """The number of rows."""
        return tf.shape(self._splits, out_type=out_type or self.dtype)[0] - 1

    def nvals(self) -> Any:
        """The number of values."""
        return self._splits[-1]

    def uniform_row_length(self) -> Any:
        """The length of all rows, where it is one by construction; else None."""
        return None if self._uniform is None else tf.cast(self._uniform, self.dtype)

    @property
    def static_nrows(self) -> int | None:
        """The number of rows, if it is known."""
        size = self._splits.shape[0]
        return None if size is None else size - 1

    @property
    def static_nvals(self) -> int | None:
        """The number of values, if it is known."""
        if is_known(self._splits):
            return int(self._splits[-1])
        return self._nvals

    @property
    def static_uniform_row_length(self) -> int | None:
        """The length of all rows, where it is one by construction and known."""
        return self._uniform if isinstance(self._uniform, int) else None

    def value_rowids(self) -> Any:
        """The row of each value."""
        return self.rowids_for(self.nvals())

    def rowids_for(self, count: Any) -> Any:
        """The row of each value, whose number is `count`: a tensor of that size, also where it is not known.

        Row boundaries are counted: a value's row is the number of rows that have ended at it or before.
        """
        if self._rowids is None:
            none = tf.zeros([tf.cast(count, tf.int64) + 1], self.dtype)
            ends = tf.tensor_scatter_nd_add(none, self._splits[1:, None], tf.ones_like(self._splits[1:]))
            self._rowids = tf.cumsum(ends)[:-1]
        return self._rowids

    def offsets_in_rows(self, rowids: Any = None) -> Any:
        """The place of each value in its row.

        Args:
            rowids: the row of each value, where that is known already.
        """
        rowids = self.value_rowids() if rowids is None else rowids
        return tf.range(tf.shape(rowids, out_type=self.dtype)[0]) - tf.gather(self._splits, rowids)

    def is_uniform(self) -> bool:
        """Whether all rows have one length by construction."""
        return self._uniform is not None

    def with_dtype(self, dtype: Any) -> RowPartition:
        """The partition with row splits of another dtype."""
        dtype = tf.as_dtype(dtype)
        if dtype not in _DTYPES:
            raise ValueError("dtype must be int32 or int64")
        if dtype is self.dtype:
            return self
        rowids = None if self._rowids is None else tf.cast(self._rowids, dtype)
        uniform = self._uniform if self._uniform is None or isinstance(self._uniform, int) else tf.cast(
            self._uniform, dtype)
        return RowPartition(tf.cast(self._splits, dtype), rowids, uniform, self._nvals)

    @property
    def _type_spec(self) -> RowPartitionSpec:
        return RowPartitionSpec(self.static_nrows, None, self.static_uniform_row_length, self.dtype)

    def __eq__(self, other: object) -> Any:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        if is_known(self._splits):
            uniform = "" if self._uniform is None else f"uniform_row_length={self._uniform}, "
            return f"tf.RowPartition({uniform}row_splits={self._splits.numpy()})"
        return f"tf.RowPartition(row_splits={self._splits!r})"


def _check_rank(x: Any, rank: int, name: str) -> None:
    if x.shape.rank is not None and x.shape.rank != rank:
        raise ValueError(f"Shape {x.shape} must have rank {rank} ({name})")


@register("tf.RowPartitionSpec")
class RowPartitionSpec(TypeSpec):
    """The spec of row partitions.

    Args:
        nrows, nvals: the number of rows and of values, or None.
        uniform_row_length: the length of all rows, where it is one by construction; else None.
        dtype: of the row splits.
    """

    __slots__ = ("_dtype", "_nrows", "_nvals", "_uniform")

    def __init__(self, nrows: Any = None, nvals: Any = None, uniform_row_length: Any = None, dtype: Any = tf.int64
                 ) -> None:
        self._nrows, self._nvals = _size(nrows), _size(nvals)
        self._uniform, self._dtype = _size(uniform_row_length), tf.as_dtype(dtype)
        if self._dtype not in _DTYPES:
            raise ValueError("dtype must be tf.int32 or tf.int64")

    value_type = RowPartition

    @property
    def nrows(self) -> int | None:
        """The number of rows, or None."""
        return self._nrows

    @property
    def nvals(self) -> int | None:
        """The number of values, or None."""
        return self._nvals

    @property
    def uniform_row_length(self) -> int | None:
        """The length of all rows, or None."""
        return self._uniform

    @property
    def dtype(self) -> Any:
        """The dtype of the row splits."""
        return self._dtype

    def _serialize(self) -> tuple[Any, ...]:
        return tf.TensorShape([self._nrows]), tf.TensorShape([self._nvals]), self._uniform, self._dtype

    @property
    def _component_specs(self) -> Any:
        return tf.TensorSpec([None if self._nrows is None else self._nrows + 1], self._dtype)

    def _to_components(self, value: Any) -> Any:
        return value.row_splits()

    def _from_components(self, components: Any) -> Any:
        return RowPartition(tf.convert_to_tensor(components), None, self._uniform)

    @classmethod
    def from_value(cls, value: RowPartition) -> RowPartitionSpec:
        """The spec of a row partition."""
        return value._type_spec

    def __repr__(self) -> str:
        return (f"RowPartitionSpec(nrows={self._nrows}, nvals={self._nvals}, uniform_row_length={self._uniform}, "
                f"dtype={self._dtype!r})")


def _size(value: Any) -> int | None:
    if isinstance(value, tf.TensorShape):
        value = value[0] if value.rank else None
    return None if value is None else int(value)
