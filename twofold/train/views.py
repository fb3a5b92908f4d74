"""The graph of objects that checkpoints hold, to look at."""

from __future__ import annotations

from typing import Any

from twofold import tracking

__all__ = ["TrackableView"]


class TrackableView:
    """The objects that a checkpoint of `root` would hold, and their names.

    Args:
        root: a module, a layer, an optimizer, a variable, or a `tf.train.Checkpoint`.

    >>> import twofold as tf
    >>> step = tf.Variable(0, name="step")
    >>> root = tf.train.Checkpoint(step=step)
    >>> view = tf.train.TrackableView(root)
    >>> list(view.children(root)), len(view.descendants())
    (['step'], 2)
    """

    def __init__(self, root: Any) -> None:
        self._root = root

    @property
    def root(self) -> Any:
        """The object that all others are reached from."""
        return self._root

    @classmethod
    def children(cls, obj: Any, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """The objects that an object refers to, by name.

        Args:
            obj: an object of the graph.
            save_type, kwargs: have no effect.
        """
        return tracking.children(obj)

    def descendants(self) -> list[Any]:
        """All objects, breadth first, the root first."""
        return [value for _, value in tracking.walk(self._root)]
