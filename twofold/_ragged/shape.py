"""`DynamicRaggedShape`: the shape of a ragged tensor, with the lengths of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold._front.dispatch import implements
from twofold.ir.type_spec import CompositeTensor, TypeSpec, register

from .elementwise import aligned
from .ragged_tensor import RaggedTensor, is_ragged, ragged_or_dense
from .row_partition import RowPartition, is_known

__all__ = ["DynamicRaggedShape", "DynamicRaggedShapeSpec"]


class DynamicRaggedShape(CompositeTensor):
    """The shape of a dense or ragged tensor: how its outer axes are partitioned into rows, and the sizes of the others.

    Args:
        row_partitions: the partitions of the ragged axes, from the outside in.
        inner_shape: an integer vector: the shape of the flat values.
        dtype: of the sizes: int32 or int64.
        validate: whether the partitions and the inner shape must fit.
        static_inner_shape: what is known of the inner shape.

    >>> import twofold as tf
    >>> tf.experimental.DynamicRaggedShape.from_lengths([2, (2, 0), 3])
    <DynamicRaggedShape lengths=[2, (2, 0), 3] num_row_partitions=1>
    """

    __slots__ = ("_inner", "_partitions")

    def __init__(self, row_partitions: Sequence[RowPartition], inner_shape: Any, dtype: Any = None,
                 validate: bool = False, static_inner_shape: Any = None) -> None:
        dtype = tf.as_dtype(dtype) if dtype is not None else (
            row_partitions[0].dtype if row_partitions else getattr(inner_shape, "dtype", tf.int64))
        self._partitions = tuple([p.with_dtype(dtype) for p in row_partitions])
        self._inner = tf.cast(tf.convert_to_tensor(inner_shape, dtype_hint=dtype), dtype)
        if static_inner_shape is not None and not self.static_inner_shape.is_compatible_with(static_inner_shape):
            raise ValueError(f"inner_shape {self.static_inner_shape} does not fit {static_inner_shape}")
        if validate and self._partitions and not bool(self._partitions[-1].nvals() == self._inner[0]):
            raise ValueError("the last partition has another number of values than the inner shape")

    @classmethod
    def from_lengths(cls, lengths: Sequence[Any], num_row_partitions: int | None = None, dtype: Any = tf.int64
                     ) -> DynamicRaggedShape:
        """A shape by the sizes of its axes: numbers, and for ragged axes tuples with the length of each row.

        Args:
            lengths: sizes, the first and the last of which are numbers unless the last axis is ragged.
            num_row_partitions: how many axes are kept as partitions; by default those up to the last ragged one.
            dtype: of the sizes.
        Raises:
            ValueError: rows do not fit one another.
        """
        if not lengths:
            return cls([], tf.zeros([0], dtype), dtype)
        ragged = [n for n, size in enumerate(lengths) if not isinstance(size, int)]
        if 0 in ragged:
            raise ValueError("the first axis has one size")
        count = (ragged[-1] if ragged else 0) if num_row_partitions is None else int(num_row_partitions)
        if ragged and count < ragged[-1]:
            raise ValueError(f"num_row_partitions ({count}) must be at least {ragged[-1]}, since an axis is ragged")
        rows, partitions = int(lengths[0]), []
        for size in lengths[1:count + 1]:
            if isinstance(size, int):
                partitions.append(RowPartition.from_uniform_row_length(size, nrows=rows, dtype=dtype))
                rows *= size
            else:
                if len(size) != rows:
                    raise ValueError(f"{len(size)} lengths are given for {rows} rows")
                partitions.append(RowPartition.from_row_lengths(tf.constant(list(size), dtype), dtype=dtype))
                rows = sum(size)
        return cls(partitions, tf.constant([rows, *lengths[count + 1:]], dtype), dtype)

    @classmethod
    def from_tensor(cls, t: Any, dtype: Any = None) -> DynamicRaggedShape:
        """The shape of a dense or ragged tensor."""
        t = ragged_or_dense(t)
        if not is_ragged(t):
            dtype = dtype or tf.int64
            return cls([], tf.shape(t, tf.as_dtype(dtype)), dtype)
        dtype = tf.as_dtype(dtype or t.row_splits.dtype)
        return cls(t._nested_row_partitions, tf.shape(t.flat_values, dtype), dtype)

    @classmethod
    def from_row_partitions(cls, row_partitions: Sequence[RowPartition], dtype: Any = None) -> DynamicRaggedShape:
        """The shape of a tensor all of whose axes but the first are partitioned."""
        if not row_partitions:
            raise ValueError("row_partitions cannot be empty")
        return cls(row_partitions, tf.reshape(row_partitions[-1].nvals(), [1]), dtype)

    # -- what it is -----------------------------------------------------------------------------------------------
    @property
    def dtype(self) -> Any:
        """The dtype of the sizes."""
        return self._inner.dtype

    @property
    def row_partitions(self) -> tuple[RowPartition, ...]:
        """The partitions of the ragged axes, from the outside in."""
        return self._partitions

    @property
    def num_row_partitions(self) -> int:
        """How many axes are kept as partitions."""
        return len(self._partitions)

    @property
    def inner_shape(self) -> Any:
        """The shape of the flat values: an integer vector."""
        return self._inner

    @property
    def static_inner_shape(self) -> Any:
        """What is known of the inner shape."""
        value = tf.get_static_value(self._inner)
        if value is not None:
            return tf.TensorShape(value.tolist())
        return tf.TensorShape(None if self.inner_rank is None else [None] * self.inner_rank)

    @property
    def inner_rank(self) -> int | None:
        """The number of axes of the flat values."""
        return self._inner.shape[0]

    @property
    def rank(self) -> int | None:
        """The number of axes."""
        return None if self.inner_rank is None else self.inner_rank + len(self._partitions)

    @property
    def static_lengths_tuple(self) -> Any:
        """See `static_lengths`."""
        return tuple(self.static_lengths())

    def static_lengths(self, ragged_lengths: bool = True) -> list[Any]:
        """The sizes of axes: numbers, None where they are not known, and tuples of the lengths of rows.

        Args:
            ragged_lengths: whether ragged axes give their lengths; else None.
        """
        sizes: list[Any] = []
        if self._partitions:
            sizes.append(self._partitions[0].static_nrows)
            for p in self._partitions:
                if p.static_uniform_row_length is not None:
                    sizes.append(p.static_uniform_row_length)
                elif ragged_lengths and is_known(p.row_splits()):
                    sizes.append(tuple(p.row_lengths().numpy().tolist()))
                else:
                    sizes.append(None)
            return sizes + list(self.static_inner_shape)[1:]
        return list(self.static_inner_shape)

    def is_uniform(self, axis: int) -> bool:
        """Whether all slices of an axis have one size by construction."""
        axis = axis % self.rank if self.rank is not None else axis
        return axis == 0 or axis > len(self._partitions) or self._partitions[axis - 1].is_uniform()

    def __len__(self) -> int:
        if self.rank is None:
            raise ValueError("the rank is not known")
        return self.rank

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            rank = self.rank
            if rank is None:
                raise ValueError("the rank is not known")
            begin, end, step = index.indices(rank)
            if step != 1:
                raise IndexError("Cannot stride through a shape")
            if begin == 0:
                return self._head(end)
            if begin <= len(self._partitions):
                raise ValueError("a slice of a shape that begins at a ragged axis is no shape")
            inner = self._inner[begin - len(self._partitions):end - len(self._partitions)]
            return DynamicRaggedShape([], inner, self.dtype)
        index = int(index)
        if self.rank is not None:
            if not -self.rank <= index < self.rank:
                raise IndexError(f"index {index} is out of range for a shape of rank {self.rank}")
            index %= self.rank
        if index == 0 and self._partitions:
            return self._partitions[0].nrows()
        if index > len(self._partitions) or not self._partitions:
            return self._inner[index - len(self._partitions)]
        uniform = self._partitions[index - 1].uniform_row_length()
        if uniform is None:
            raise ValueError(f"Index {index} is not uniform")
        return uniform

    def _head(self, rank: int) -> DynamicRaggedShape:
        if rank == 0:
            return DynamicRaggedShape([], tf.zeros([0], self.dtype), self.dtype)
        count = len(self._partitions)
        if rank > count:
            return DynamicRaggedShape(self._partitions, self._inner[:rank - count], self.dtype)
        kept = self._partitions[:rank - 1]
        rows = kept[-1].nvals() if kept else self._partitions[0].nrows()
        return DynamicRaggedShape(kept, tf.reshape(rows, [1]), self.dtype)

    def _num_elements(self) -> Any:
        return tf.reduce_prod(self._inner)

    def with_dtype(self, dtype: Any) -> DynamicRaggedShape:
        """The shape with sizes of another dtype."""
        return DynamicRaggedShape(self._partitions, self._inner, dtype)

    @property
    def _type_spec(self) -> DynamicRaggedShapeSpec:
        return DynamicRaggedShapeSpec(tuple([p._type_spec for p in self._partitions]), self.static_inner_shape,
                                      self.dtype)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, DynamicRaggedShape):
            return False
        if not is_known(self._inner) or not is_known(other._inner):
            return self is other
        return self._full_lengths() == other._full_lengths()

    def _full_lengths(self) -> list[Any]:
        """The sizes of axes, in which those of uniform rows are numbers, however they are kept."""
        return [size[0] if isinstance(size, tuple) and size and min(size) == max(size) else size
                for size in self.static_lengths()]

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        lengths = ", ".join([str(n) for n in self.static_lengths()])
        return f"<DynamicRaggedShape lengths=[{lengths}] num_row_partitions={len(self._partitions)}>"


@register("tf.DynamicRaggedShapeSpec")
class DynamicRaggedShapeSpec(TypeSpec):
    """The spec of shapes of ragged tensors.

    Args:
        row_partitions: the specs of the partitions.
        static_inner_shape: what is known of the inner shape.
        dtype: of the sizes.
    """

    __slots__ = ("_dtype", "_inner", "_partitions")

    def __init__(self, row_partitions: Sequence[Any], static_inner_shape: Any, dtype: Any) -> None:
        self._partitions, self._dtype = tuple(row_partitions), tf.as_dtype(dtype)
        self._inner = tf.TensorShape(static_inner_shape)

    value_type = DynamicRaggedShape

    def _serialize(self) -> tuple[Any, ...]:
        return self._partitions, self._inner, self._dtype

    @property
    def _component_specs(self) -> Any:
        return tuple(self._partitions), tf.TensorSpec([self._inner.rank], self._dtype)

    def _to_components(self, value: Any) -> Any:
        return tuple(value.row_partitions), value.inner_shape

    def _from_components(self, components: Any) -> Any:
        return DynamicRaggedShape(components[0], components[1], self._dtype)


@implements(tf.shape, {"input": RaggedTensor})
def shape(input: Any, out_type: Any = None, name: Any = None) -> Any:
    """The shape of a ragged tensor."""
    return DynamicRaggedShape.from_tensor(input, out_type)


@implements(tf.broadcast_to, {"shape": DynamicRaggedShape}, {"input": RaggedTensor})
def broadcast_to(input: Any, shape: Any, name: Any = None) -> Any:
    """A tensor broadcast to the shape of a ragged one."""
    if not isinstance(shape, DynamicRaggedShape):
        raise ValueError("a ragged tensor is broadcast to a tf.experimental.DynamicRaggedShape")
    if not shape.row_partitions:
        return tf.broadcast_to(input, shape.inner_shape)
    zeros = RaggedTensor._from_nested_row_partitions(tf.zeros(shape.inner_shape, tf.int32), shape.row_partitions,
                                                     validate=False)
    rows, (value, like) = aligned([ragged_or_dense(input), zeros])
    return rows.with_flat_values(tf.broadcast_to(value, tf.shape(like)))


@implements(tf.reshape, {"shape": DynamicRaggedShape}, {"tensor": RaggedTensor})
def reshape(tensor: Any, shape: Any, name: Any = None) -> Any:
    """The values of a tensor in another shape, of which one is ragged."""
    flat = tensor.flat_values if is_ragged(tensor) else tf.convert_to_tensor(tensor)
    if not isinstance(shape, DynamicRaggedShape):
        return tf.reshape(flat, shape)
    flat = tf.reshape(flat, shape.inner_shape)
    return RaggedTensor._from_nested_row_partitions(flat, shape.row_partitions) if shape.row_partitions else flat


@implements(tf.broadcast_dynamic_shape, {"shape_x": DynamicRaggedShape}, {"shape_y": DynamicRaggedShape})
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Any:
    """The shape to which two shapes broadcast."""
    zeros = [_zeros(s) for s in (shape_x, shape_y)]
    if not any(map(is_ragged, zeros)):
        return DynamicRaggedShape([], tf.broadcast_dynamic_shape(tf.shape(zeros[0]), tf.shape(zeros[1])))
    return DynamicRaggedShape.from_tensor(zeros[0] + zeros[1])


def _zeros(shape: Any) -> Any:
    if not isinstance(shape, DynamicRaggedShape):
        return tf.zeros(shape, tf.int32)
    flat = tf.zeros(shape.inner_shape, tf.int32)
    return RaggedTensor._from_nested_row_partitions(flat, shape.row_partitions, validate=False) if (
        shape.row_partitions) else flat


def _filled(value: int) -> Any:
    def like(shape: Any, dtype: Any = tf.float32, name: Any = None, layout: Any = None) -> Any:
        flat = tf.fill(shape.inner_shape, tf.cast(value, dtype))
        return RaggedTensor._from_nested_row_partitions(flat, shape.row_partitions, validate=False) if (
            shape.row_partitions) else flat
    return like


implements(tf.zeros, {"shape": DynamicRaggedShape})(_filled(0))
implements(tf.ones, {"shape": DynamicRaggedShape})(_filled(1))
