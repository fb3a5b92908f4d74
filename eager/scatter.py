"""Parts of variables by index: `scatter_nd_add` and `scatter_add` with their like, `gather_nd` and `sparse_read`.

The `scatter_` methods without `nd` take slices: an object with `indices`, the numbers of rows, and `values`, the rows.
"""

from __future__ import annotations

from typing import Any

from twofold.ir import ops

from . import convert

__all__ = ["ScatterMethods"]


class ScatterMethods:
    """The part of `tf.Variable` that reads and writes by index."""

    __slots__ = ()

    def _scatter(self, indices: Any, updates: Any, mode: str) -> Any:
        own: Any = self
        places, given = convert.as_tensor(indices), convert.as_tensor(updates, dtype=own.dtype)
        return own._change(lambda value: ops.tensor_scatter(value, places, given, mode=mode))

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
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

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Add values at coordinates, in order; see `scatter_nd_update`. `name` has no effect."""
        return self._scatter(indices, updates, "add")

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtract values at coordinates, in order; see `scatter_nd_update`. `name` has no effect."""
        return self._scatter(indices, updates, "sub")

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Take the larger of what is there and values at coordinates; see `scatter_nd_update`. `name` has no effect."""
        return self._scatter(indices, updates, "max")

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Take the smaller of what is there and values at coordinates; see `scatter_nd_update`.

        `name` has no effect.
        """
        return self._scatter(indices, updates, "min")

    def _slices(self, slices: Any) -> tuple[Any, Any]:
        """The indices and values of slices, as tensors."""
        indices, values = getattr(slices, "indices", None), getattr(slices, "values", None)
        if indices is None or values is None or callable(values):
            raise TypeError("Argument `sparse_delta` must have the `indices` and `values` of slices, as a "
                            f"tf.IndexedSlices has. Received arg: {slices!r}")
        own: Any = self
        return convert.as_tensor(indices), convert.as_tensor(values, dtype=own.dtype)

    def _rows(self, slices: Any) -> tuple[Any, Any]:
        """The numbers of rows, and the rows, which a scalar fills."""
        own: Any = self
        places, rows = self._slices(slices)
        if rows.dims:
            return places, rows
        return places, ops.broadcast_to(rows, shape=(*places.dims, *own._current().dims[1:]))

    def _scatter_rows(self, slices: Any, mode: str) -> Any:
        places, rows = self._rows(slices)
        return self._scatter(ops.expand_dims(places, axis=-1), rows, mode)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
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

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Add to rows, in order; see `scatter_update`. `use_locking` and `name` have no effect."""
        return self._scatter_rows(sparse_delta, "add")

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtract from rows, in order; see `scatter_update`. `use_locking` and `name` have no effect."""
        return self._scatter_rows(sparse_delta, "sub")

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Take the larger of what is in rows and the values; see `scatter_update`.

        `use_locking` and `name` have no effect.
        """
        return self._scatter_rows(sparse_delta, "max")

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Take the smaller of what is in rows and the values; see `scatter_update`.

        `use_locking` and `name` have no effect.
        """
        return self._scatter_rows(sparse_delta, "min")

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiply rows, by the product of the values where there are several for one; see `scatter_update`.

        `use_locking` and `name` have no effect.
        """
        return self._scatter_factors(sparse_delta, ops.multiply)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Divide rows, by the product of the values where there are several for one; see `scatter_update`.

        `use_locking` and `name` have no effect.
        """
        return self._scatter_factors(sparse_delta, ops.divide)

    def _scatter_factors(self, slices: Any, combine: Any) -> Any:
        places, rows = self._rows(slices)
        own: Any = self

        def changed(value: Any) -> Any:
            ops.gather_nd(value, ops.expand_dims(places, axis=-1))  # an index out of range is an error
            count = 1
            for size in places.dims:
                count = count * size
            flat = ops.reshape(rows, shape=(count, *value.dims[1:]))
            return combine(value, ops.unsorted_segment_prod(flat, ops.reshape(places, shape=(count,)),
                                                            num_segments=value.dims[0]))
        return own._change(changed)

    def batch_scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
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

    def gather_nd(self, indices: Any, name: str | None = None) -> Any:
        """The parts at coordinates; see `tf.gather_nd`.

        Args:
            indices: integers; each vector along the last axis names the leading axes of the variable.
            name: accepted, without effect.
        """
        own: Any = self
        return ops.gather_nd(own._read_tensor(), convert.as_tensor(indices), batch_dims=0)

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """The rows of these numbers; see `tf.gather`.

        Args:
            indices: integers.
            name: accepted, without effect.
        """
        own: Any = self
        return ops.gather(own._read_tensor(), convert.as_tensor(indices), axis=0, batch_dims=0)
