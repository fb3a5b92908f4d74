"""`SparseTensor`: a tensor of which only the values at some coordinates are kept; and its spec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import public_class, told
from twofold._front.demands import demand
from twofold.ir.type_spec import CompositeTensor, TypeSpec, register

__all__ = ["SparseTensor", "SparseTensorSpec", "is_sparse", "linear", "sparse_of"]


def is_sparse(x: Any) -> bool:
    """Whether a value is a sparse tensor."""
    return isinstance(x, SparseTensor)


def sparse_of(x: Any, name: str = "sp_input") -> SparseTensor:
    """A sparse tensor as it is.

    Raises:
        TypeError: it is none.
    """
    if isinstance(x, SparseTensor):
        return x
    if type(x).__name__ == "SparseTensorValue":
        return SparseTensor(x.indices, x.values, x.dense_shape)
    raise TypeError(f"Input must be a SparseTensor ({name}); got {type(x).__name__}.")


def linear(indices: Any, shape: Any) -> Any:
    """The places of coordinates in row-major order: an int64 vector."""
    rank = indices.shape[1]
    if rank is None:
        raise ValueError("the rank of a sparse tensor must be known here")
    place = tf.zeros_like(indices[:, 0]) if rank else tf.zeros([tf.shape(indices)[0]], tf.int64)
    for axis in range(rank):
        place = place * shape[axis] + indices[:, axis]
    return place


class SparseTensor(CompositeTensor):
    """A tensor of which only the values at some coordinates are kept; all others are 0.

    Most functions expect coordinates in row-major order, and none twice; `tf.sparse.reorder` sorts them.

    Args:
        indices: int64 tensor of shape `[n, rank]`: the coordinates.
        values: tensor of shape `[n]`.
        dense_shape: int64 vector of `rank` elements: the shape.
    Raises:
        ValueError: the shapes do not fit one another.

    >>> import twofold as tf
    >>> st = tf.SparseTensor(indices=[[0, 1], [1, 0]], values=[7, 8], dense_shape=[2, 2])
    >>> tf.sparse.to_dense(st).numpy().tolist()
    [[0, 7], [8, 0]]
    """

    __slots__ = ("__weakref__", "_dense_shape", "_entry", "_indices", "_static", "_values")

    __array_priority__ = 100
    _counts_as_tensor = True

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        indices = tf.convert_to_tensor(indices, tf.int64) if not hasattr(indices, "dtype") else tf.cast(
            indices, tf.int64)
        if isinstance(dense_shape, (tuple, list)):  # of numbers and of tensors, whose dtypes may differ
            dense_shape = tf.convert_to_tensor([tf.cast(n, tf.int64) if tf.is_tensor(n) else n for n in dense_shape],
                                               tf.int64)
        dense_shape = tf.cast(tf.convert_to_tensor(dense_shape, dtype_hint=tf.int64), tf.int64)
        values = tf.convert_to_tensor(values)
        if not indices.shape.num_elements() and indices.shape.rank == 1 and dense_shape.shape.rank == 1:
            indices = tf.reshape(indices, [0, dense_shape.shape[0]])
        for tensor, rank in ((indices, 2), (values, 1), (dense_shape, 1)):
            if tensor.shape.rank not in (None, rank):
                raise ValueError(f"Shape {tensor.shape} must have rank {rank}")
        for one, other in ((indices.shape[0], values.shape[0]), (indices.shape[1], dense_shape.shape[0])):
            if one is not None and other is not None and one != other:
                raise ValueError(f"Dimensions {one} and {other} are not compatible")
        self._indices, self._values, self._dense_shape = indices, values, dense_shape
        self._entry: Any = None  # the shape that functions may count on; None for all of the static one but the rows
        known = tf.get_static_value(dense_shape, partial=True)
        self._static = tf.TensorShape([None] * dense_shape.shape[0] if known is None else known.tolist()) if (
            dense_shape.shape[0] is not None) else tf.TensorShape(None)

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """A sparse tensor of one, or of a `tf.compat.v1.SparseTensorValue`."""
        if not (isinstance(sparse_tensor_value, SparseTensor) or hasattr(sparse_tensor_value, "dense_shape")):
            raise TypeError(f"Neither a SparseTensor nor SparseTensorValue: {sparse_tensor_value}.")
        return cls(sparse_tensor_value.indices, sparse_tensor_value.values, sparse_tensor_value.dense_shape)

    @classmethod
    def from_scipy(cls, matrix: Any, copy: bool = True) -> SparseTensor:
        """The sparse tensor of a sparse array or matrix of SciPy, of any format; elements that come twice are added.

        Args:
            matrix: such as a `scipy.sparse.csr_array`.
            copy: whether its values are copied in any case. Else they are shared where they come in row-major order,
                none twice, as those of most CSR and COO arrays; then nobody may write to `matrix.data` any more.
        Raises:
            TypeError: it is something else.

        >>> import scipy.sparse
        >>> import twofold as tf
        >>> st = tf.SparseTensor.from_scipy(scipy.sparse.csr_array([[0, 7], [8, 0]]))
        >>> st.indices.numpy().tolist(), st.values.numpy().tolist()
        ([[0, 1], [1, 0]], [7, 8])
        """
        from .scipy_matrices import from_scipy
        return cls(*from_scipy(matrix, bool(copy)))

    def to_scipy(self, format: str = "csr") -> Any:
        """A sparse array of SciPy on the same values, which cannot be written.

        Args:
            format: "csr", of a matrix, or "coo". Values are copied for "csr" where they are not in row-major order.
        Raises:
            ValueError: there is no such format.

        >>> import scipy.sparse
        >>> import twofold as tf
        >>> st = tf.SparseTensor([[0, 1], [1, 0]], [7, 8], [2, 2])
        >>> (st.to_scipy() @ [1, 10]).tolist()
        [70, 8]
        """
        from .scipy_matrices import to_scipy
        return to_scipy(self, format)

    @property
    def indices(self) -> Any:
        """The coordinates: int64 tensor of shape `[n, rank]`."""
        return self._indices

    @property
    def values(self) -> Any:
        """The values: a vector."""
        return self._values

    @property
    def dense_shape(self) -> Any:
        """The shape as a tensor: int64 vector."""
        return self._dense_shape

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self._values.dtype

    @property
    def shape(self) -> Any:
        """The static shape."""
        return self._static

    def get_shape(self) -> Any:
        """The same as `shape`."""
        return self._static

    def set_shape(self, shape: Any) -> None:
        """Say what is known of the shape.

        Raises:
            ValueError: it contradicts what is known.
        """
        shape = tf.TensorShape(shape)
        if not self._static.is_compatible_with(shape):
            raise ValueError(f"Shapes {self._static} and {shape} are not compatible")
        self._static = shape if self._static.rank is None else tf.TensorShape(
            [a if a is not None else b for a, b in zip(self._static, shape, strict=True)]) if (
                shape.rank is not None) else self._static

    @property
    def op(self) -> Any:
        """The op behind the values, where there is a graph."""
        return self._values.op

    @property
    def graph(self) -> Any:
        """The graph of the values, where there is one."""
        return self._indices.graph

    def consumers(self) -> list[Any]:
        """Nothing: there is no record of who reads a tensor."""
        return []

    def with_values(self, new_values: Any) -> SparseTensor:
        """The same coordinates with other values."""
        return like(self, new_values)

    @told
    def __mul__(self, y: Any) -> Any:
        return _by_dense(self, y, tf.multiply)

    @told
    def __truediv__(self, y: Any) -> Any:
        return _by_dense(self, y, tf.truediv)

    __div__ = __truediv__

    def __bool__(self) -> bool:
        raise TypeError("SparseTensor may not be used as a boolean.")

    def __repr__(self) -> str:
        return (f"SparseTensor(indices={self._indices!s}, values={self._values!s}, "
                f"dense_shape={self._dense_shape!s})")

    @property
    def _type_spec(self) -> SparseTensorSpec:
        return SparseTensorSpec(self._static, self.dtype)

    @property
    def __composite_spec__(self) -> SparseTensorSpec:
        """The spec without sizes: branches and loops give sparse tensors of others, too."""
        rank = self._static.rank
        return SparseTensorSpec(None if rank is None else [None] * rank, self.dtype)

    def _joined_spec(self, other: Any) -> SparseTensorSpec:
        return self._type_spec.most_specific_common_supertype([other._type_spec]) or self.__composite_spec__

    @property
    def __entry_spec__(self) -> SparseTensorSpec:
        """The spec without the number of rows: functions have a trace for each other size."""
        if self._entry is not None:
            return SparseTensorSpec(self._entry, self.dtype)
        rank = self._static.rank
        return SparseTensorSpec([None, *self._static[1:]] if rank else self._static, self.dtype)


def like(st: SparseTensor, values: Any) -> SparseTensor:
    """A sparse tensor with the coordinates of another one."""
    made = SparseTensor(st.indices, values, st.dense_shape)
    made._static = st._static
    return made


def _by_dense(st: SparseTensor, y: Any, function: Any) -> Any:
    """A sparse tensor times, or divided by, a dense one, which broadcasts to its shape."""
    if is_sparse(y):
        raise TypeError("Expected a dense tensor beside the sparse one.")
    dense = tf.convert_to_tensor(y, dtype_hint=st.dtype)
    if dense.dtype is not st.dtype:
        raise TypeError(f"SparseTensor op Tensor: dtypes {st.dtype.name} and {dense.dtype.name} differ.")
    if dense.shape.rank == 0:
        return like(st, function(st.values, dense))
    rank = st.indices.shape[1]
    if rank is None or dense.shape.rank is None or dense.shape.rank > rank:
        raise tf.errors.InvalidArgumentError(None, None, "SparseDenseBinaryOpShared broadcasts dense to sparse only; "
                                             f"got incompatible shapes: {st.shape} vs. {dense.shape}")
    columns = []
    for axis in range(dense.shape.rank):
        at = axis + rank - dense.shape.rank
        size = tf.shape(dense, tf.int64)[axis]
        fits = tf.equal(size, 1) | tf.equal(size, st.dense_shape[at])
        tf.debugging.Assert(fits, ["the shape of the dense operand does not broadcast to that of the sparse one"])
        columns.append(tf.minimum(st.indices[:, at], size - 1))
    return like(st, function(st.values, tf.gather_nd(dense, tf.stack(columns, 1))))


@register("tf.SparseTensorSpec")
class SparseTensorSpec(TypeSpec):
    """The spec of sparse tensors.

    Args:
        shape: the static shape.
        dtype: of the values.

    >>> import twofold as tf
    >>> tf.SparseTensorSpec([None, 3], tf.int32)
    SparseTensorSpec(TensorShape([None, 3]), tf.int32)
    """

    __slots__ = ("_dtype", "_shape")

    def __init__(self, shape: Any = None, dtype: Any = tf.float32) -> None:
        self._shape, self._dtype = tf.TensorShape(shape), tf.as_dtype(dtype)

    value_type = SparseTensor

    @property
    def shape(self) -> Any:
        """The static shape."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self._dtype

    @property
    def rank(self) -> int | None:
        """The number of axes, or None."""
        return self._shape.rank

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype

    def _sizes(self) -> Any:
        return None if self._shape.rank is None else tuple(self._shape.as_list())

    @property
    def _component_specs(self) -> Any:
        rank = self._shape.rank
        return [tf.TensorSpec([None, rank], tf.int64), tf.TensorSpec([None], self._dtype),
                tf.TensorSpec([rank], tf.int64)]

    def _to_components(self, value: Any) -> Any:
        return [value.indices, value.values, value.dense_shape]

    def _from_components(self, components: Any) -> Any:
        made = SparseTensor(*components)
        made._entry = self._shape
        if made.shape.rank is None or not made.shape.is_fully_defined():
            made.set_shape(self._shape)
        return made

    @classmethod
    def from_value(cls, value: Any) -> Any:
        """The spec of a sparse tensor."""
        return value._type_spec

    # -- batches --------------------------------------------------------------------------------------------------
    def _batched(self, size: int | None) -> Any:
        return SparseTensorSpec(tf.TensorShape([size]).concatenate(self._shape), self._dtype)

    def _unbatched(self) -> Any:
        return SparseTensorSpec(self._shape[1:], self._dtype)

    def _stacked(self, values: Sequence[Any]) -> Any:
        counts = [tf.shape(v.values)[0] if v.values.shape[0] is None else v.values.shape[0] for v in values]
        rows = tf.repeat(tf.range(len(values), dtype=tf.int64), tf.stack(counts))
        indices = tf.concat([rows[:, tf.newaxis], tf.concat([v.indices for v in values], 0)], 1)
        largest = tf.reduce_max(tf.stack([self._sizes_with(v.dense_shape) for v in values]), 0)
        made = SparseTensor(indices, tf.concat([v.values for v in values], 0), tf.concat([[len(values)], largest], 0))
        made.set_shape(tf.TensorShape([len(values)]).concatenate(self._shape))
        return made

    def _sizes_with(self, sizes: Any) -> Any:
        """Sizes that are at least those of this spec."""
        return sizes if self._shape.rank is None else tf.maximum(sizes, [n or 0 for n in self._shape])

    def _rows(self, value: Any) -> Sequence[Any]:
        indices, shape = value.indices.numpy(), value.dense_shape.numpy()
        order = np.argsort(indices[:, 0], kind="stable")
        places = np.searchsorted(indices[order, 0], np.arange(shape[0] + 1))
        return [SparseTensor(indices[order[a:b], 1:], tf.gather(value.values, order[a:b]), shape[1:])
                for a, b in zip(places[:-1], places[1:], strict=True)]

    def _row_reader(self, value: Any) -> tuple[Any, Callable[[Any], Any]]:
        if value.indices.shape[1] == 1:
            raise tf.errors.InvalidArgumentError(None, None, "rows of a SparseTensor need a rank above 1")
        first = value.indices[:, 0]
        demand(tf.reduce_all(first[1:] >= first[:-1]), "indices are out of order. Many sparse ops require sorted "
               "indices. Use `tf.sparse.reorder` to create a correctly ordered copy.")
        splits = tf.searchsorted(first, tf.range(value.dense_shape[0] + 1))
        count = value.shape[0] if value.shape.rank else None

        def take(n: Any) -> Any:
            begin, end = splits[n], splits[n + 1]
            row = SparseTensor(value.indices[begin:end, 1:], value.values[begin:end], value.dense_shape[1:])
            row.set_shape(value.shape[1:] if value.shape.rank else None)
            return row
        return value.dense_shape[0] if count is None else count, take

    def _empty_batch(self) -> Any:
        sizes = [] if self._shape.rank is None else [n or 0 for n in self._shape]
        return SparseTensor(tf.zeros([0, 1 + len(sizes)], tf.int64), tf.zeros([0], self._dtype), [0, *sizes])

    def _joined(self, rows: Any, more: Any) -> Any:
        count = rows.dense_shape[:1]
        indices = tf.concat([more.indices[:, :1] + count[0], more.indices[:, 1:]], 1)
        largest = tf.maximum(rows.dense_shape[1:], more.dense_shape[1:])
        return SparseTensor(tf.concat([rows.indices, indices], 0), tf.concat([rows.values, more.values], 0),
                            tf.concat([count + more.dense_shape[:1], largest], 0))


public_class(SparseTensor)
