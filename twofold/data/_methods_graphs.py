"""Methods of datasets that TensorFlow 1's programs call: iterators of graphs, and what elements are."""

from __future__ import annotations

from typing import Any

from twofold._front import older as _older

__all__ = ["GraphMethods"]


def _graphs() -> Any:
    return _older.module("data")


class GraphMethods:
    """Iterators of graphs over a dataset; see `tf.compat.v1.data`."""

    def make_one_shot_iterator(self) -> Any:
        """An iterator that needs no initialiser; where ops run at once, one of `tf.data`.

        Raises:
            ValueError: the dataset depends on tensors of a graph.
        """
        return _graphs().make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Any:
        """An iterator of a graph that its `initializer` starts.

        Args:
            shared_name: accepted, without effect.
        Raises:
            RuntimeError: ops run at once.
        """
        return _graphs().make_initializable_iterator(self)

    @property
    def output_types(self) -> Any:
        """The structure of dtypes of an element."""
        return _graphs().get_output_types(self)

    @property
    def output_shapes(self) -> Any:
        """The structure of shapes of an element."""
        return _graphs().get_output_shapes(self)

    @property
    def output_classes(self) -> Any:
        """The structure of classes of an element."""
        return _graphs().get_output_classes(self)
