"""`tfe.Iterator`: the way to iterate over a data set before data sets could be iterated over themselves."""

from __future__ import annotations

from collections.abc import Iterator as _Iterator
from typing import Any

__all__ = ["Iterator"]


class Iterator:
    """The elements of a data set, one after another.

    Args:
        dataset: a `tf.data.Dataset`.

    >>> import twofold as tf
    >>> import twofold.contrib.eager as tfe
    >>> [int(x) for x in tfe.Iterator(tf.data.Dataset.range(3))]
    [0, 1, 2]
    """

    def __init__(self, dataset: Any):
        self._iterator = iter(dataset)

    def __iter__(self) -> _Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._iterator)

    def next(self) -> Any:
        """The next element.

        Raises:
            StopIteration: there is none.
        """
        return next(self)
