"""`RaggedTensor`: a tensor with one or more axes whose slices have different lengths; and its spec.

A ragged tensor is values, and a partition of their first axis into rows; the values may be ragged themselves. So it
consists of dense tensors: the flat values, and the row splits of each ragged axis from the outside in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import public_class
from twofold._front.demands import demand
from twofold._front.registry import Registry
from twofold.ir.type_spec import CompositeTensor, TypeSpec, register

from .row_partition import RowPartition, is_known

__all__ = ["PARTS", "RaggedTensor", "RaggedTensorSpec", "is_ragged", "ragged_or_dense", "same_splits_dtype"]


#: what methods do; the files that stand on this one provide it
PARTS = Registry()


def is_ragged(x: Any) -> bool:
    """Whether a value is a ragged tensor."""
    return isinstance(x, RaggedTensor)


def ragged_or_dense(value: Any, dtype: Any = None, hint: Any = None) -> Any:
    """A ragged tensor as it is, anything else as a dense tensor."""
    if isinstance(value, RaggedTensor):
        if dtype is not None and value.dtype is not tf.as_dtype(dtype):
            raise ValueError(f"Tensor conversion requested dtype {tf.as_dtype(dtype).name} for RaggedTensor with dtype "
                             f"{value.dtype.name}: {value!r}")
        return value
    return tf.convert_to_tensor(value, dtype, hint)


def same_splits_dtype(tensors: Sequence[Any]) -> list[Any]:
    """Tensors of which the ragged ones have row splits of one dtype: int64 where they differ."""
    dtypes = {t.row_splits.dtype for t in tensors if isinstance(t, RaggedTensor)}
    if len(dtypes) < 2:
        return list(tensors)
    return [t.with_row_splits_dtype(tf.int64) if isinstance(t, RaggedTensor) else t for t in tensors]


class RaggedTensor(CompositeTensor):
    """A tensor with axes whose slices have different lengths.

    Made by `tf.ragged.constant` and the class methods `from_...`; public functions, operators, indices and slices, and
    functions under `@tf.function` take it.

    >>> import twofold as tf
    >>> rows = tf.RaggedTensor.from_row_splits([3, 1, 4, 1, 5, 9, 2], [0, 4, 4, 7])
    >>> rows
    <tf.RaggedTensor [[3, 1, 4, 1], [], [5, 9, 2]]>
    >>> tf.reduce_sum(rows, axis=1).numpy().tolist()
    [9, 0, 16]
    """

    __slots__ = ("__weakref__", "_row_partition", "_values")

    __array_priority__ = 100
    _counts_as_tensor = True
    _values: Any
    _row_partition: RowPartition

    def __init__(self, values: Any, row_partition: RowPartition) -> None:
        """Made by `tf.ragged.constant` and the class methods `from_...`.

        Args:
            values: a tensor of rank 1 or more, or a ragged tensor.
            row_partition: how its first axis is grouped into rows.
        """
        if not isinstance(row_partition, RowPartition):
            raise TypeError(f"Argument `row_partition` must be a RowPartition. Received {row_partition!r}.")
        if isinstance(values, RaggedTensor) and values._row_partition.dtype is not row_partition.dtype:
            values = values.with_row_splits_dtype(tf.int64)
            row_partition = row_partition.with_dtype(tf.int64)
        self._values, self._row_partition = values, row_partition

    # -- making ---------------------------------------------------------------------------------------------------
    @classmethod
    def _from_row_partition(cls, values: Any, row_partition: RowPartition, validate: bool = True) -> RaggedTensor:
        values = ragged_or_dense(values)
        if values.shape.rank == 0:
            raise ValueError(f"Shape {values.shape} must have rank at least 1")
        if validate:
            have = values.nrows() if isinstance(values, RaggedTensor) else tf.shape(values, tf.int64)[0]
            demand(tf.equal(tf.cast(have, tf.int64), tf.cast(row_partition.nvals(), tf.int64)),
                  "Arguments to _from_row_partition do not form a valid RaggedTensor: the number of values is not that "
                  "of the partition")
        return cls(values, row_partition)

    @classmethod
    def from_row_splits(cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
                        ) -> RaggedTensor:
        """Rows by where they begin, and where the last one ends.

        Args:
            values: a tensor of rank 1 or more, or a ragged tensor: the rows one behind the other.
            row_splits: an integer vector that begins with 0, does not decrease and ends with the number of values.
            name: has no effect.
            validate: whether that is checked.
        Raises:
            InvalidArgumentError: it is not so. ValueError: another dtype or rank.

        >>> import twofold as tf
        >>> tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 2, 3])
        <tf.RaggedTensor [[1, 2], [], [3]]>
        """
        return cls._from_row_partition(values, RowPartition.from_row_splits(row_splits, validate), validate)

    @classmethod
    def from_row_lengths(cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
                         ) -> RaggedTensor:
        """Rows by their lengths; see `from_row_splits`. `name` has no effect.

        >>> import twofold as tf
        >>> tf.RaggedTensor.from_row_lengths([1, 2, 3], [2, 0, 1])
        <tf.RaggedTensor [[1, 2], [], [3]]>
        """
        return cls._from_row_partition(values, RowPartition.from_row_lengths(row_lengths, validate), validate)

    @classmethod
    def from_row_starts(cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
                        ) -> RaggedTensor:
        """Rows by where each begins; see `from_row_splits`. `name` has no effect."""
        values = ragged_or_dense(values)
        return cls._from_row_partition(values, RowPartition.from_row_starts(row_starts, _count(values), validate),
                                       validate)

    @classmethod
    def from_row_limits(cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
                        ) -> RaggedTensor:
        """Rows by where each ends; see `from_row_splits`. `name` has no effect."""
        return cls._from_row_partition(values, RowPartition.from_row_limits(row_limits, validate), validate)

    @classmethod
    def from_value_rowids(cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None,
                          validate: bool = True) -> RaggedTensor:
        """Rows by the row of each value.

        Args:
            values: a tensor of rank 1 or more, or a ragged tensor.
            value_rowids: an integer vector that does not decrease.
            nrows: how many rows there are; by default one more than the last with a value.
            name: has no effect.
            validate: whether that is checked.

        >>> import twofold as tf
        >>> tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2])
        <tf.RaggedTensor [[1, 2], [], [3]]>
        """
        return cls._from_row_partition(values, RowPartition.from_value_rowids(value_rowids, nrows, validate), validate)

    @classmethod
    def from_uniform_row_length(cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True,
                                name: str | None = None) -> RaggedTensor:
        """Rows of one length.

        Args:
            values: a tensor of rank 1 or more, or a ragged tensor.
            uniform_row_length: the length.
            nrows: how many rows there are, which the length 0 does not tell.
            validate: whether that fits the values.
            name: has no effect.

        >>> import twofold as tf
        >>> tf.RaggedTensor.from_uniform_row_length(tf.ragged.constant([[1], [2, 3], [], [4]]), 2)
        <tf.RaggedTensor [[[1], [2, 3]], [[], [4]]]>
        """
        values = ragged_or_dense(values)
        partition = RowPartition.from_uniform_row_length(uniform_row_length, _count(values), nrows, validate)
        return cls._from_row_partition(values, partition, validate)

    @classmethod
    def from_nested_value_rowids(cls, flat_values: Any, nested_value_rowids: Sequence[Any],
                                 nested_nrows: Sequence[Any] | None = None, name: str | None = None,
                                 validate: bool = True) -> Any:
        """A tensor with several ragged axes, by the rows of values at each; the outermost axis first.

        `name` has no effect.
        """
        _must_list(nested_value_rowids, "nested_value_rowids")
        counts = [None] * len(nested_value_rowids) if nested_nrows is None else list(nested_nrows)
        if len(counts) != len(nested_value_rowids):
            raise ValueError("nested_nrows must have the same length as nested_value_rowids")
        result = flat_values
        for rowids, count in zip(reversed(nested_value_rowids), reversed(counts), strict=True):
            result = cls.from_value_rowids(result, rowids, count, validate=validate)
        return result

    @classmethod
    def from_nested_row_splits(cls, flat_values: Any, nested_row_splits: Sequence[Any], name: str | None = None,
                               validate: bool = True) -> Any:
        """A tensor with several ragged axes, by the row splits of each; the outermost axis first.

        `name` has no effect.

        >>> import twofold as tf
        >>> tf.RaggedTensor.from_nested_row_splits([3, 1, 4], [[0, 1, 2], [0, 2, 3]])
        <tf.RaggedTensor [[[3, 1]], [[4]]]>
        """
        _must_list(nested_row_splits, "nested_row_splits")
        result = flat_values
        for splits in reversed(nested_row_splits):
            result = cls.from_row_splits(result, splits, validate=validate)
        return result

    @classmethod
    def from_nested_row_lengths(cls, flat_values: Any, nested_row_lengths: Sequence[Any], name: str | None = None,
                                validate: bool = True) -> Any:
        """A tensor with several ragged axes, by the row lengths of each; the outermost axis first.

        `name` has no effect.
        """
        _must_list(nested_row_lengths, "nested_row_lengths")
        result = flat_values
        for lengths in reversed(nested_row_lengths):
            result = cls.from_row_lengths(result, lengths, validate=validate)
        return result

    @classmethod
    def _from_nested_row_partitions(cls, flat_values: Any, partitions: Sequence[RowPartition], validate: bool = True
                                    ) -> Any:
        result = flat_values
        for partition in reversed(partitions):
            result = cls._from_row_partition(result, partition, validate)
        return result

    @classmethod
    def from_tensor(cls, tensor: Any, lengths: Any = None, padding: Any = None, ragged_rank: int = 1,
                    name: str | None = None, row_splits_dtype: Any = None) -> RaggedTensor:
        """The rows of a dense tensor, without what pads them.

        Args:
            tensor: of rank `ragged_rank + 1` or more.
            lengths: the length of each row; or a tuple of such vectors, for several ragged axes.
            padding: a value; at the end of a row it is left out. Not together with `lengths`.
            ragged_rank: how many axes after the first become ragged.
            name: has no effect.
            row_splits_dtype: int64 by default.
        Raises:
            ValueError: both are given, or the rank does not fit.

        >>> import twofold as tf
        >>> tf.RaggedTensor.from_tensor([[5, 7, 0], [0, 3, 0], [6, 0, 0]], padding=0)
        <tf.RaggedTensor [[5, 7], [0, 3], [6]]>
        """
        return PARTS.ask("from_tensor")(tensor, lengths, padding, ragged_rank, row_splits_dtype or tf.int64)

    @classmethod
    def from_sparse(cls, st_input: Any, name: str | None = None, row_splits_dtype: Any = None) -> RaggedTensor:
        """The rows of a sparse tensor of rank 2, whose values stand at the beginnings of its rows.

        `name` has no effect.

        Raises:
            InvalidArgumentError: a row has a gap. ValueError: another rank. TypeError: it is no sparse tensor.
        """
        return PARTS.ask("from_sparse")(st_input, row_splits_dtype or tf.int64)

    @classmethod
    def from_variant(cls, variant: Any, dtype: Any, output_ragged_rank: Any, input_ragged_rank: Any = None,
                     row_splits_dtype: Any = None, name: str | None = None) -> RaggedTensor:
        """Refused: there are no variant tensors; ragged tensors pass through functions and datasets as they are."""
        raise tf.errors.UnimplementedError(None, None, "There are no variant tensors here: ragged tensors pass through "
                                                       "functions, loops and datasets as they are.")

    # -- what it is -----------------------------------------------------------------------------------------------
    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self._values.dtype

    @property
    def values(self) -> Any:
        """The rows one behind the other: a tensor, or a ragged tensor."""
        return self._values

    @property
    def _nested_row_partitions(self) -> tuple[RowPartition, ...]:
        partitions, inner = [self._row_partition], self._values
        while isinstance(inner, RaggedTensor):
            partitions.append(inner._row_partition)
            inner = inner._values
        return tuple(partitions)

    @property
    def row_splits(self) -> Any:
        """Where rows begin in `values`, and where the last one ends."""
        return self._row_partition.row_splits()

    @property
    def uniform_row_length(self) -> Any:
        """The length of all rows, where it is one by construction; else None."""
        return self._row_partition.uniform_row_length()

    @property
    def flat_values(self) -> Any:
        """The innermost values: a dense tensor."""
        inner = self._values
        while isinstance(inner, RaggedTensor):
            inner = inner._values
        return inner

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The row splits of all ragged axes, the outermost first."""
        return tuple([p.row_splits() for p in self._nested_row_partitions])

    @property
    def ragged_rank(self) -> int:
        """How many axes are partitioned into rows."""
        return len(self._nested_row_partitions)

    @property
    def shape(self) -> Any:
        """The static shape: None for sizes that are ragged or unknown."""
        inner = self._values.shape
        lengths = self._row_partition.static_uniform_row_length
        if inner.rank is None:
            return tf.TensorShape(None)
        return tf.TensorShape([self._row_partition.static_nrows, lengths, *inner.as_list()[1:]])

    def get_shape(self) -> Any:
        """The same as `shape`."""
        return self.shape

    @property
    def name(self) -> str | None:
        """None: what is computed has no name."""
        return None

    @property
    def op(self) -> Any:
        """The op behind the values, where there is a graph."""
        return self.flat_values.op

    def consumers(self) -> list[Any]:
        """Nothing: there is no record of who reads a tensor."""
        return []

    def nrows(self, out_type: Any = None, name: str | None = None) -> Any:
        """The number of rows. `name` has no effect."""
        return self._row_partition.nrows(None if out_type is None else tf.as_dtype(out_type))

    def row_starts(self, name: str | None = None) -> Any:
        """Where rows begin in `values`. `name` has no effect."""
        return self._row_partition.row_starts()

    def row_limits(self, name: str | None = None) -> Any:
        """Where rows end in `values`. `name` has no effect."""
        return self._row_partition.row_limits()

    def value_rowids(self, name: str | None = None) -> Any:
        """The row of each of `values`. `name` has no effect."""
        return self._row_partition.rowids_for(_count(self._values))

    def nested_value_rowids(self, name: str | None = None) -> tuple[Any, ...]:
        """The rows of values at all ragged axes, the outermost first. `name` has no effect."""
        levels, inner = [], self
        while isinstance(inner, RaggedTensor):
            levels.append(inner.value_rowids())
            inner = inner._values
        return tuple(levels)

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The lengths of rows.

        Args:
            axis: of which axis; 1 gives a vector, others ragged tensors or, beyond the ragged axes, what has the form
                of the outer ones.
            name: has no effect.

        >>> import twofold as tf
        >>> tf.ragged.constant([[1, 2], [], [3]]).row_lengths().numpy().tolist()
        [2, 0, 1]
        """
        axis = _axis(axis, self.shape.rank)
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return self._row_partition.row_lengths()
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.row_lengths(axis - 1))
        shape = tf.shape(self._values, out_type=self._row_partition.dtype)
        return self.with_values(tf.ones(shape[:axis - 1], shape.dtype) * shape[axis - 1])

    def nested_row_lengths(self, name: str | None = None) -> tuple[Any, ...]:
        """The lengths of rows at all ragged axes, the outermost first. `name` has no effect."""
        return tuple([p.row_lengths() for p in self._nested_row_partitions])

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: Any = None) -> Any:
        """The shape of the smallest dense tensor that holds all rows.

        Args:
            axis: of these axes alone: a number gives a scalar, a sequence a vector.
            name: has no effect.
            out_type: int64 by default, or the dtype of the row splits.

        >>> import twofold as tf
        >>> tf.ragged.constant([[1, 2], [], [3]]).bounding_shape().numpy().tolist()
        [3, 2]
        """
        sizes = [self.nrows()]
        for partition in self._nested_row_partitions:
            sizes.append(tf.reduce_max(tf.concat([partition.row_lengths(), tf.zeros([1], partition.dtype)], 0)))
        inner = tf.shape(self.flat_values, out_type=self._row_partition.dtype)[1:]
        shape = tf.concat([tf.stack(sizes), inner], 0)
        if out_type is not None:
            shape = tf.cast(shape, out_type)
        if axis is None:
            return shape
        rank = self.shape.rank
        if isinstance(axis, int):
            return shape[_axis(axis, rank)]
        return tf.gather(shape, [_axis(int(a), rank) for a in axis])

    # -- others like it -------------------------------------------------------------------------------------------
    def with_values(self, new_values: Any) -> RaggedTensor:
        """The same rows with other values, as many as there are.

        >>> import twofold as tf
        >>> tf.ragged.constant([[1, 2], [3]]).with_values([7, 8, 9])
        <tf.RaggedTensor [[7, 8], [9]]>
        """
        values = ragged_or_dense(new_values)
        if values.shape.rank == 0:
            raise ValueError(f"Shape {values.shape} must have rank at least 1")
        have, want = values.shape[0], self._values.shape[0]
        if have is not None and want is not None and have != want:
            raise ValueError(f"Shapes {values.shape[:1]} and {self._values.shape[:1]} are incompatible: new values "
                             "must be as many as the old ones.")
        return RaggedTensor(values, self._row_partition)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """The same rows with other innermost values."""
        if isinstance(self._values, RaggedTensor):
            return RaggedTensor(self._values.with_flat_values(new_values), self._row_partition)
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """The same with row splits of another dtype, int32 or int64."""
        dtype = tf.as_dtype(dtype)
        values = self._values.with_row_splits_dtype(dtype) if isinstance(self._values, RaggedTensor) else self._values
        return RaggedTensor(values, self._row_partition.with_dtype(dtype))

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """The axes from `outer_axis` to `inner_axis` as one.

        >>> import twofold as tf
        >>> tf.ragged.constant([[[1, 2], [3]], [[4]]]).merge_dims(1, 2)
        <tf.RaggedTensor [[1, 2, 3], [4]]>
        """
        rank = self.shape.rank
        outer, inner = _axis(outer_axis, rank), _axis(inner_axis, rank)
        if outer > inner:
            raise ValueError(f"Expected outer_axis ({outer_axis}) to be less than or equal to inner_axis "
                             f"({inner_axis})")
        return PARTS.ask("merged_axes")(self, outer, inner)

    def _set_shape(self, shape: Any) -> None:
        """Raise where the static shape contradicts `shape`; sizes that are not known stay so."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"Shape {self.shape} is not compatible with shape {shape}")

    # -- values ---------------------------------------------------------------------------------------------------
    def to_tensor(self, default_value: Any = None, name: str | None = None, shape: Any = None) -> Any:
        """A dense tensor, with rows padded.

        Args:
            default_value: what to pad with: a scalar, or of the shape of the inner values; 0 or "" by default.
            name: has no effect.
            shape: of the result: longer rows are cut off; None, or None at an axis, for the largest.
        Returns:
            Tensor of `shape`, or the bounding shape.

        >>> import twofold as tf
        >>> tf.ragged.constant([[9, 8, 7], [], [6, 5], [4]]).to_tensor().numpy().tolist()
        [[9, 8, 7], [0, 0, 0], [6, 5, 0], [4, 0, 0]]
        """
        return PARTS.ask("to_tensor")(self, default_value, shape)

    def to_sparse(self, name: str | None = None) -> Any:
        """A `tf.SparseTensor` with the values at their places. `name` has no effect."""
        return PARTS.ask("to_sparse")(self)

    def to_list(self) -> Any:
        """Nested Python lists of the values.

        Raises:
            ValueError: in a function that is traced, where there are no values.
        """
        if not is_known(self.flat_values):
            raise ValueError("to_list can only be used in eager mode.")
        return _listed(self)

    def numpy(self) -> Any:
        """A NumPy array: of rows as arrays where they have different lengths, else of the values."""
        if not is_known(self.flat_values):
            raise ValueError("RaggedTensor.numpy() is only supported in eager mode.")
        values, splits = self._values.numpy(), self.row_splits.numpy()
        lengths = np.diff(splits)
        if len(lengths) and lengths.min() == lengths.max() and not (values.dtype == object and isinstance(
                self._values, RaggedTensor)):
            return values.reshape((len(lengths), lengths[0], *values.shape[1:]))
        rows = np.empty(len(lengths), object)
        for n in range(len(lengths)):
            rows[n] = values[splits[n]:splits[n + 1]]
        if len(lengths) and lengths.min() == lengths.max() and all(isinstance(r, np.ndarray) for r in rows):
            try:
                return np.stack(list(rows))
            except ValueError:
                return rows
        return rows

    def __len__(self) -> int:
        size = self._row_partition.static_nrows
        if size is None:
            raise TypeError("The number of rows is known when the function runs: use nrows().")
        return size

    def __iter__(self) -> Iterator[Any]:
        size = self._row_partition.static_nrows
        if size is None:
            raise TypeError("Iterating over a ragged tensor of unknown length in a function: use tf.map_fn or "
                            "a loop over tf.range(x.nrows()).")
        return (self[n] for n in range(size))

    def __bool__(self) -> bool:
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def __getitem__(self, key: Any) -> Any:
        return PARTS.ask("item")(self, key)

    def __repr__(self) -> str:
        if is_known(self.flat_values):
            with np.printoptions(formatter={"all": _element_text}):
                return f"<tf.RaggedTensor {_element_text(self.numpy())}>"
        return f"tf.RaggedTensor(values={self._values!r}, row_splits={self.row_splits!r})"

    __str__ = __repr__

    @property
    def _type_spec(self) -> RaggedTensorSpec:
        return RaggedTensorSpec(self.shape, self.dtype, self.ragged_rank, self._row_partition.dtype,
                                tf.TensorSpec(self.flat_values.shape, self.dtype))

    def __hash__(self) -> int:
        return hash(self._values)  # tensors of graphs have one, so that what is fed is a dict by them


def _element_text(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return np.array2string(x, separator=", ") if x.size else repr(x.tolist())
    return str(x)


def _listed(x: Any) -> Any:
    if not isinstance(x, RaggedTensor):
        return x.numpy().tolist()
    values, splits = _listed(x.values), x.row_splits.numpy().tolist()
    return [values[a:b] for a, b in zip(splits[:-1], splits[1:], strict=True)]


def _count(values: Any) -> Any:
    return values.nrows() if isinstance(values, RaggedTensor) else tf.shape(values, tf.int64)[0]


def _axis(axis: int, rank: int | None) -> int:
    if rank is None or 0 <= axis < rank:
        return axis
    if -rank <= axis < 0:
        return axis + rank
    raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")


def _must_list(value: Any, name: str) -> None:
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"Argument `{name}` must be a list of Tensors. Received {value!r}")


@register("tf.RaggedTensorSpec")
class RaggedTensorSpec(TypeSpec):
    """The spec of ragged tensors.

    Args:
        shape: the static shape: None at ragged and unknown axes.
        dtype: of the values.
        ragged_rank: how many axes are partitioned; by default all but the first.
        row_splits_dtype: int32 or int64.
        flat_values_spec: of the innermost values; by default what follows from the others.

    >>> import twofold as tf
    >>> tf.RaggedTensorSpec([None, None], tf.int32)
    RaggedTensorSpec(TensorShape([None, None]), tf.int32, 1, tf.int64)
    """

    __slots__ = ("_dtype", "_flat_spec", "_ragged_rank", "_row_splits_dtype", "_shape")

    def __init__(self, shape: Any = None, dtype: Any = tf.float32, ragged_rank: int | None = None,
                 row_splits_dtype: Any = tf.int64, flat_values_spec: Any = None) -> None:
        self._shape, self._row_splits_dtype = tf.TensorShape(shape), tf.as_dtype(row_splits_dtype)
        self._dtype = flat_values_spec.dtype if flat_values_spec is not None and dtype is None else tf.as_dtype(dtype)
        rank = self._shape.rank
        if ragged_rank is None:
            if rank is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = rank - 1
        if not isinstance(ragged_rank, int):
            raise TypeError(f"Argument `ragged_rank` must be an int. Received {ragged_rank!r}.")
        if rank is not None and ragged_rank >= rank:
            raise ValueError(f"Argument `ragged_rank` ({ragged_rank}) must be less than rank ({rank}).")
        self._ragged_rank, self._flat_spec = ragged_rank, flat_values_spec

    value_type = RaggedTensor

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self._dtype

    @property
    def shape(self) -> Any:
        """The static shape."""
        return self._shape

    @property
    def ragged_rank(self) -> int:
        """How many axes are partitioned."""
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> Any:
        """The dtype of the row splits."""
        return self._row_splits_dtype

    @property
    def flat_values_spec(self) -> Any:
        """The spec of the innermost values, where it was given."""
        return self._flat_spec

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype

    @property
    def _component_specs(self) -> Any:
        rank, ranks = self._shape.rank, self._ragged_rank
        inner = tf.TensorShape(None) if rank is None else tf.TensorShape([None, *self._shape.as_list()[ranks + 1:]])
        if ranks == 0:
            return [tf.TensorSpec(self._shape, self._dtype)]
        rows = None if rank is None else self._shape[0]
        splits = [tf.TensorSpec([None if rows is None else rows + 1], self._row_splits_dtype)]
        splits += [tf.TensorSpec([None], self._row_splits_dtype)] * (ranks - 1)
        return [tf.TensorSpec(inner, self._dtype), *splits]

    def _to_components(self, value: Any) -> Any:
        return [value.flat_values, *value.nested_row_splits] if isinstance(value, RaggedTensor) else [value]

    def _from_components(self, components: Any) -> Any:
        result, *splits = components
        rank = self._shape.rank
        for n in range(len(splits) - 1, -1, -1):
            uniform = None if rank is None else self._shape[n + 1]
            result = RaggedTensor(result if isinstance(result, RaggedTensor) else tf.convert_to_tensor(result),
                                  RowPartition(tf.convert_to_tensor(splits[n]), None, uniform))
        return result

    def _form(self) -> Any:
        shape = self._shape
        uniform = None if shape.rank is None else tuple(shape.as_list()[1:self._ragged_rank + 1])
        return shape.rank, uniform, self._dtype, self._ragged_rank, self._row_splits_dtype

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value of this spec could be the other value, or one of the other spec; also a dense one, where no
        axis is partitioned."""
        if self._ragged_rank == 0:
            other = spec_or_value if isinstance(spec_or_value, tf.TensorSpec) else None
            if other is None and isinstance(spec_or_value, tf.Tensor):
                other = tf.TensorSpec(spec_or_value.shape, spec_or_value.dtype)
            if other is not None:
                return bool(other.dtype is self._dtype and self._shape.is_compatible_with(other.shape))
        return super().is_compatible_with(spec_or_value)

    @classmethod
    def from_value(cls, value: Any) -> Any:
        """The spec of a ragged tensor."""
        return value._type_spec

    # -- batches --------------------------------------------------------------------------------------------------
    def _batched(self, size: int | None) -> Any:
        shape = tf.TensorShape([size]).concatenate(self._shape)
        return RaggedTensorSpec(shape, self._dtype, self._ragged_rank + 1, self._row_splits_dtype)

    def _unbatched(self) -> Any:
        if self._ragged_rank == 0:
            return tf.TensorSpec(self._shape[1:], self._dtype)
        return RaggedTensorSpec(self._shape[1:], self._dtype, self._ragged_rank - 1, self._row_splits_dtype)

    def _stacked(self, values: Sequence[Any]) -> Any:
        if self._ragged_rank == 0:  # rows of lengths of their own
            return PARTS.ask("stack")(list(values)).with_row_splits_dtype(self._row_splits_dtype)
        return tf.stack(list(values))

    def _rows(self, value: Any) -> Sequence[Any]:
        return [value[n] for n in range(len(value))] if isinstance(value, RaggedTensor) else tf.unstack(value)

    def _row_reader(self, value: Any) -> tuple[Any, Callable[[Any], Any]]:
        count = value._row_partition.static_nrows
        return value.nrows() if count is None else count, value.__getitem__

    def _converted(self, value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            return value
        value = tf.convert_to_tensor(value, self._dtype)
        return value if not self._ragged_rank else RaggedTensor.from_tensor(
            value, ragged_rank=self._ragged_rank, row_splits_dtype=self._row_splits_dtype)

    def _empty_batch(self) -> Any:
        inner = [n or 0 for n in (self._shape[self._ragged_rank + 1:] if self._shape.rank is not None else [])]
        splits = [tf.zeros([1], self._row_splits_dtype)] * (self._ragged_rank + 1)
        return RaggedTensor.from_nested_row_splits(tf.zeros([0, *inner], self._dtype), splits, validate=False)

    def _joined(self, rows: Any, more: Any) -> Any:
        return tf.concat([rows, more], 0)

    def __repr__(self) -> str:
        return (f"RaggedTensorSpec({self._shape!r}, {self._dtype!r}, {self._ragged_rank}, {self._row_splits_dtype!r})")


public_class(RaggedTensor)
