"""Parts of variables by index: `scatter_nd_add` and `scatter_add` with their like, `gather_nd` and `sparse_read`.

The `scatter_` methods without `nd` take slices: an object with `indices`, the numbers of rows, and `values`, the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, Self

from twofold.ir import ops
from twofold.ir.dtypes import DType
from twofold.ir.op import Op, tracing

from . import convert, in_place
from .dispatch import inferred
from .record import active
from .tensor import Tensor

__all__ = ["ScatterMethods"]


if TYPE_CHECKING:
    class _OfVariable(Protocol):
        """The members of a variable that the methods here use."""

        @property
        def dtype(self) -> DType: ...

        def _current(self) -> Tensor: ...

        def _read_tensor(self) -> Tensor: ...

        def _change(self, change: Callable[[Tensor], Tensor]) -> Self: ...

        def _overwrite(self, change: Callable[[Tensor], Tensor]) -> bool: ...
else:
    _OfVariable = object


class ScatterMethods(_OfVariable):
    """The part of `tf.Variable` that reads and writes by index."""

    __slots__ = ()

    def _scatter(self, indices: object, updates: object, mode: str) -> Self:
        places, values = convert.as_tensor(indices), convert.as_tensor(updates, dtype=self.dtype)
        if tracing() is None and not active.get() and in_place.is_worth_it(self._current(), places, values):
            inferred(ops.tensor_scatter, (self._current(), places, values), {"mode": mode})
            if self._overwrite(lambda value: in_place.scattered(value, places, values, mode)):
                return self
        return self._change(lambda value: ops.tensor_scatter(value, places, values, mode=mode))

    def scatter_nd_update(self, indices: object, updates: object, name: str | None = None) -> Self:
        """Set values at coordinates; of several for one place the last remains.

        Args:
            indices: integers; each vector along the last axis names the leading axes of the variable.
            updates: of shape `indices.shape[:-1] + variable.shape[indices.shape[-1]:]`.
            name: accepted, without effect.
        Returns:
            The variable.
        Raises:
            InvalidArgumentError: an index is out of range, or shapes do not fit.
        """
        return self._scatter(indices, updates, "update")

    def scatter_nd_add(self, indices: object, updates: object, name: str | None = None) -> Self:
        """Add values at coordinates, in order; see `scatter_nd_update`. `name` has no effect."""
        return self._scatter(indices, updates, "add")

    def scatter_nd_sub(self, indices: object, updates: object, name: str | None = None) -> Self:
        """Subtract values at coordinates, in order; see `scatter_nd_update`. `name` has no effect."""
        return self._scatter(indices, updates, "sub")

    def scatter_nd_max(self, indices: object, updates: object, name: str | None = None) -> Self:
        """Take the larger of what is there and values at coordinates; see `scatter_nd_update`. `name` has no effect."""
        return self._scatter(indices, updates, "max")

    def scatter_nd_min(self, indices: object, updates: object, name: str | None = None) -> Self:
        """Take the smaller of what is there and values at coordinates; see `scatter_nd_update`.

        `name` has no effect.
        """
        return self._scatter(indices, updates, "min")

    def _slices(self, slices: object) -> tuple[Tensor, Tensor]:
        """The indices and values of slices, as tensors."""
        indices, values = getattr(slices, "indices", None), getattr(slices, "values", None)
        if indices is None or values is None or callable(values):
            raise TypeError("Argument `sparse_delta` must have the `indices` and `values` of slices, as a "
                            f"tf.IndexedSlices has. Received arg: {slices!r}")
        return convert.as_tensor(indices), convert.as_tensor(values, dtype=self.dtype)

    def _rows(self, slices: object) -> tuple[Tensor, Tensor]:
        """The numbers of rows, and the rows, which a scalar fills."""
        places, rows = self._slices(slices)
        if rows.dims:
            return places, rows
        return places, ops.broadcast_to(rows, shape=(*places.dims, *self._current().dims[1:]))

    def _scatter_rows(self, slices: object, mode: str) -> Self:
        places, rows = self._rows(slices)
        return self._scatter(ops.expand_dims(places, axis=-1), rows, mode)

    def scatter_update(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Self:
        """Set rows; of several for one row the last remains.

        Args:
            sparse_delta: an object with `indices`, integers of any shape, and `values`, of shape
                `indices.shape + variable.shape[1:]` or a scalar.
            use_locking, name: accepted, without effect.
        Returns:
            The variable.
        Raises:
            TypeError: it has no indices and values. InvalidArgumentError: an index is out of range, or shapes do not
                fit.
        """
        return self._scatter_rows(sparse_delta, "update")

    def scatter_add(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Self:
        """Add to rows, in order; see `scatter_update`. `use_locking` and `name` have no effect."""
        return self._scatter_rows(sparse_delta, "add")

    def scatter_sub(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Self:
        """Subtract from rows, in order; see `scatter_update`. `use_locking` and `name` have no effect."""
        return self._scatter_rows(sparse_delta, "sub")

    def scatter_max(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Self:
        """Take the larger of what is in rows and the values; see `scatter_update`.

        `use_locking` and `name` have no effect.
        """
        return self._scatter_rows(sparse_delta, "max")

    def scatter_min(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Self:
        """Take the smaller of what is in rows and the values; see `scatter_update`.

        `use_locking` and `name` have no effect.
        """
        return self._scatter_rows(sparse_delta, "min")

    def scatter_mul(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Self:
        """Multiply rows, by the product of the values where there are several for one; see `scatter_update`.

        `use_locking` and `name` have no effect.
        """
        return self._scatter_factors(sparse_delta, ops.multiply)

    def scatter_div(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Self:
        """Divide rows, by the product of the values where there are several for one; see `scatter_update`.

        `use_locking` and `name` have no effect.
        """
        return self._scatter_factors(sparse_delta, ops.divide)

    def _scatter_factors(self, slices: object, combine: Op) -> Self:
        places, rows = self._rows(slices)

        def changed(value: Tensor) -> Tensor:
            ops.gather_nd(value, ops.expand_dims(places, axis=-1))  # an index out of range is an error
            count = 1
            for size in places.dims:
                count = count * size
            flat = ops.reshape(rows, shape=(count, *value.dims[1:]))
            return combine(value, ops.unsorted_segment_prod(flat, ops.reshape(places, shape=(count,)),
                                                            num_segments=value.dims[0]))
        return self._change(changed)

    def batch_scatter_update(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Self:
        """Set parts along the last axis of the indices, whose other axes are the variable's first ones.

        Args:
            sparse_delta: an object with `indices` [d0, .., n], integers, and `values` [d0, .., n, ..]:
                `variable[i, .., indices[i, .., j]] = values[i, .., j]`.
            use_locking, name: accepted, without effect.
        Returns:
            The variable.
        """
        places, rows = self._slices(sparse_delta)
        last = len(places.dims) - 1
        axes = []
        for axis in range(last):
            numbers = ops.cast(ops.range(0, places.dims[axis], 1), dtype=places.dtype)
            shape = tuple([places.dims[axis] if a == axis else 1 for a in range(last + 1)])
            axes.append(ops.broadcast_to(ops.reshape(numbers, shape=shape), shape=places.dims))
        coordinates = ops.concat(*[ops.expand_dims(x, axis=-1) for x in (*axes, places)], axis=-1)
        return self._scatter(coordinates, rows, "update")

    def gather_nd(self, indices: object, name: str | None = None) -> Tensor:
        """The parts at coordinates; see `tf.gather_nd`.

        Args:
            indices: integers; each vector along the last axis names the leading axes of the variable.
            name: accepted, without effect.
        """
        return ops.gather_nd(self._read_tensor(), convert.as_tensor(indices), batch_dims=0)

    def sparse_read(self, indices: object, name: str | None = None) -> Tensor:
        """The rows of these numbers; see `tf.gather`.

        Args:
            indices: integers.
            name: accepted, without effect.
        """
        return ops.gather(self._read_tensor(), convert.as_tensor(indices), axis=0, batch_dims=0)
