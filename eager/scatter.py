"""Parts of variables by index: `scatter_nd_add` and its like, `gather_nd` and `sparse_read`."""

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
        """Add values at coordinates, in order; see `scatter_nd_update`."""
        return self._scatter(indices, updates, "add")

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtract values at coordinates, in order; see `scatter_nd_update`."""
        return self._scatter(indices, updates, "sub")

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Take the larger of what is there and values at coordinates; see `scatter_nd_update`."""
        return self._scatter(indices, updates, "max")

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Take the smaller of what is there and values at coordinates; see `scatter_nd_update`."""
        return self._scatter(indices, updates, "min")

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
