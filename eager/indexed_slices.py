"""`IndexedSlices`: the gradient of a table of which only some rows were read; and its spec.

Where a tensor is asked for, it is the dense one: zeros, and the sum of the slices that each row has.
"""

from __future__ import annotations

from typing import Any

from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.dtypes import DType
from twofold.ir.spec import TensorShape, TensorSpec
from twofold.ir.type_spec import CompositeTensor, TypeSpec, register

from . import convert
from .tensor import Tensor

__all__ = ["IndexedSlices", "IndexedSlicesSpec"]


class IndexedSlices(CompositeTensor):
    """Some slices of a larger tensor along its first axis, of which a slice may be there several times: as a gradient,
    their sum.

    Args:
        values: tensor of shape `[n, ...]`: the slices.
        indices: integer vector of `n` elements: where they stand.
        dense_shape: the shape of the larger tensor, as a vector; None where it is not known.

    >>> import twofold as tf
    >>> slices = tf.IndexedSlices(tf.ones([2, 3]), tf.constant([1, 1]), dense_shape=[2, 3])
    >>> tf.convert_to_tensor(slices).numpy().tolist()
    [[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]]
    """

    __slots__ = ("__weakref__", "_dense_shape", "_indices", "_values")

    __array_priority__ = 100
    _counts_as_tensor = True

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values, self._indices = convert.as_tensor(values), convert.as_tensor(indices)
        self._dense_shape = None if dense_shape is None else convert.as_tensor(dense_shape, hint=dt.int32)

    @property
    def values(self) -> Tensor:
        """The slices: tensor of shape `[n, ...]`."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """Where the slices stand: integer vector of `n` elements."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the larger tensor, as a vector; None where it is not known."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """What is known of the larger tensor's shape."""
        shape = self._dense_shape
        if type(shape) is not Tensor:
            return TensorShape([None, *self._values.shape[1:]])
        return TensorShape(shape._array.tolist())

    @property
    def dtype(self) -> DType:
        """The dtype of the slices."""
        return self._values.dtype

    @property
    def name(self) -> str | None:
        """None: what is computed has no name."""
        return None

    @property
    def device(self) -> str:
        """Where the slices lie."""
        return str(self._values.device)

    @property
    def op(self) -> Any:
        """The op behind the slices, where there is a graph."""
        values: Any = self._values
        return values.op

    @property
    def graph(self) -> Any:
        """The graph of the slices, where there is one."""
        values: Any = self._values
        return values.graph

    def consumers(self) -> list[Any]:
        """Nothing: there is no record of who reads a tensor."""
        return []

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(ops.negative(self._values), self._indices, self._dense_shape)

    def __tf_tensor__(self, dtype: object = None, name: str | None = None) -> Tensor:
        """The dense tensor.

        Raises:
            ValueError: its shape is not known, or another dtype is asked for.
        """
        if dtype is not None and dtype is not self.dtype:
            raise ValueError(f"Tensor conversion requested dtype {dtype!r} for IndexedSlices with dtype "
                             f"{self.dtype!r}")
        if self._dense_shape is None:
            raise ValueError("Tensor conversion requested for IndexedSlices without dense_shape: its first size is not "
                             "known.")
        rows = convert_rows(self._dense_shape)
        return ops.unsorted_segment_sum(self._values, self._indices, num_segments=rows)

    def __repr__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape!s}"
        return f"IndexedSlices(indices={self._indices!s}, values={self._values!s}{shape})"

    @property
    def _type_spec(self) -> IndexedSlicesSpec:
        return IndexedSlicesSpec(self.shape, self.dtype, self._indices.dtype,
                                 None if self._dense_shape is None else self._dense_shape.dtype,
                                 TensorShape(self._indices.shape))


def convert_rows(dense_shape: Any) -> Any:
    """The first size of a shape that a tensor tells."""
    first = dense_shape[0]
    return first.sizes()[0] if hasattr(first, "sizes") else int(first._array)


@register("tf.IndexedSlicesSpec")
class IndexedSlicesSpec(TypeSpec):
    """The spec of `IndexedSlices`.

    Args:
        shape: the static shape of the larger tensor.
        dtype: of the slices.
        indices_dtype: of the indices.
        dense_shape_dtype: of the shape, or None where values have none.
        indices_shape: the static shape of the indices.
    """

    __slots__ = ("_dense_shape_dtype", "_dtype", "_indices_dtype", "_indices_shape", "_shape")

    def __init__(self, shape: Any = None, dtype: Any = dt.float32, indices_dtype: Any = dt.int64,
                 dense_shape_dtype: Any = None, indices_shape: Any = None) -> None:
        self._shape, self._dtype, self._indices_dtype = TensorShape(shape), dt.as_dtype(dtype), dt.as_dtype(
            indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else dt.as_dtype(dense_shape_dtype)
        self._indices_shape = TensorShape(indices_shape).with_rank(1)

    value_type = IndexedSlices

    @property
    def shape(self) -> TensorShape:
        """The static shape of the larger tensor."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The dtype of the slices."""
        return self._dtype

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._indices_dtype, self._dense_shape_dtype, self._indices_shape

    @property
    def _component_specs(self) -> Any:
        rank = self._shape.rank
        values = TensorShape(None) if rank is None else TensorShape([self._indices_shape[0], *self._shape[1:]])
        specs = [TensorSpec(values, self._dtype), TensorSpec(self._indices_shape, self._indices_dtype)]
        if self._dense_shape_dtype is not None:
            specs.append(TensorSpec([rank], self._dense_shape_dtype))
        return tuple(specs)

    def _to_components(self, value: Any) -> Any:
        parts = (value.values, value.indices)
        return parts if self._dense_shape_dtype is None else (*parts, value.dense_shape)

    def _from_components(self, components: Any) -> Any:
        return IndexedSlices(*components)
