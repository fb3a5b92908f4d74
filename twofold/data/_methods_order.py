"""The steps of `tf.data.Dataset` that choose and order elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold._front import iteration as engine

from ._caching import FileCache, MemoryCache
from ._combining import IgnoreErrors, Prefetch, Unique
from ._order import Repeat, Shard, Shuffle, Skip, Take

__all__ = ["OrderMethods"]


@engine.guarded
class OrderMethods:
    """Methods that look at no element."""

    _node: Any
    _then: Callable[..., Any]

    def take(self, count: Any, name: str | None = None) -> Any:
        """The first elements.

        Args:
            count: how many at most; all where it is negative.
            name: accepted, without effect.

        >>> import twofold as tf
        >>> [x.item() for x in tf.data.Dataset.range(10).take(3).as_numpy_iterator()]
        [0, 1, 2]
        """
        return self._then(Take(self._node, count))

    def skip(self, count: Any, name: str | None = None) -> Any:
        """The elements after the first ones.

        Args:
            count: how many are left out; all where it is negative.
            name: accepted, without effect.

        >>> import twofold as tf
        >>> [x.item() for x in tf.data.Dataset.range(5).skip(3).as_numpy_iterator()]
        [3, 4]
        """
        return self._then(Skip(self._node, count))

    def repeat(self, count: Any = None, name: str | None = None) -> Any:
        """The elements again and again.

        Args:
            count: how often; for ever where it is None or negative.
            name: accepted, without effect.

        >>> import twofold as tf
        >>> [x.item() for x in tf.data.Dataset.range(2).repeat(2).as_numpy_iterator()]
        [0, 1, 0, 1]
        """
        return self._then(Repeat(self._node, count))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Any:
        """Every `num_shards`-th element, for one of several workers.

        Args:
            num_shards: how many workers there are.
            index: which of them this is, from 0.
            name: accepted, without effect.
        Raises:
            InvalidArgumentError: the index is not below the number.

        >>> import twofold as tf
        >>> [x.item() for x in tf.data.Dataset.range(7).shard(3, 1).as_numpy_iterator()]
        [1, 4]
        """
        return self._then(Shard(self._node, num_shards, index))

    def shuffle(self, buffer_size: Any, seed: int | None = None, reshuffle_each_iteration: bool | None = True,
                name: str | None = None) -> Any:
        """The elements in random order.

        A buffer holds the next `buffer_size` elements; each time, one of them is drawn, and the next takes its place.
        An order is uniform where the buffer holds all elements.

        Args:
            buffer_size: of the buffer; `tf.data.UNKNOWN_CARDINALITY` for one that holds everything.
            seed: with it, the orders are the same in each run; see `tf.random.set_seed`.
            reshuffle_each_iteration: whether each iteration has an order of its own.
            name: accepted, without effect.
        Raises:
            InvalidArgumentError: the buffer has no room.

        >>> import twofold as tf
        >>> dataset = tf.data.Dataset.range(100).shuffle(100, seed=1)
        >>> first, second = ([x.item() for x in dataset.as_numpy_iterator()] for _ in range(2))
        >>> first != second, sorted(first) == sorted(second) == list(range(100))
        (True, True)
        """
        renewed = True if reshuffle_each_iteration is None else bool(reshuffle_each_iteration)
        return self._then(Shuffle(self._node, buffer_size, seed, renewed))

    def cache(self, filename: Any = "", name: str | None = None) -> Any:
        """The elements, kept when they have been read once to the end.

        Args:
            filename: where to keep them: a file of this name and the ending `.elements`; in memory by default. What a
                file holds is read by later processes too.
            name: accepted, without effect.

        >>> import twofold as tf
        >>> calls = []
        >>> def generate():
        ...     calls.append("called")
        ...     yield 1
        >>> dataset = tf.data.Dataset.from_generator(generate, output_types=tf.int32).cache()
        >>> list(dataset) == list(dataset), calls
        (True, ['called'])
        """
        if isinstance(filename, str) and not filename:
            return self._then(MemoryCache(self._node))
        return self._then(FileCache(self._node, filename))

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Any:
        """The elements, made ahead by a thread while others are used.

        The thread starts when an element takes longer than 0.1 ms to make.

        Args:
            buffer_size: how many are made ahead at most; `tf.data.AUTOTUNE` leaves it open.
            name: accepted, without effect.

        >>> import twofold as tf
        >>> [x.item() for x in tf.data.Dataset.range(3).prefetch(2).as_numpy_iterator()]
        [0, 1, 2]
        """
        return self._then(Prefetch(self._node, buffer_size))

    def unique(self, name: str | None = None) -> Any:
        """The elements that were not there before; all that were are remembered.

        Args:
            name: accepted, without effect.
        Raises:
            TypeError: elements are not single tensors.

        >>> import twofold as tf
        >>> data = tf.data.Dataset.from_tensor_slices([3, 1, 3, 2, 1])
        >>> [x.item() for x in data.unique().as_numpy_iterator()]
        [3, 1, 2]
        """
        return self._then(Unique(self._node))

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        """The elements whose making raises no error.

        Args:
            log_warning: whether errors are told as warnings.
            name: accepted, without effect.

        >>> import twofold as tf
        >>> data = tf.data.Dataset.from_tensor_slices([1.0, 0.0, 4.0])
        >>> data = data.map(lambda x: tf.debugging.check_numerics(1.0 / x, "no number")).ignore_errors()
        >>> [x.item() for x in data.as_numpy_iterator()]
        [1.0, 0.25]
        """
        return self._then(IgnoreErrors(self._node, _warn if log_warning else None))

    def apply(self, transformation_func: Callable[[Any], Any], name: str | None = None) -> Any:
        """The result of a function for this dataset.

        Args:
            transformation_func: from a dataset to a dataset.
            name: accepted, without effect.
        Raises:
            TypeError: it gives something else.

        >>> import twofold as tf
        >>> def evens(dataset):
        ...     return dataset.filter(lambda x: x % 2 == 0)
        >>> [x.item() for x in tf.data.Dataset.range(5).apply(evens).as_numpy_iterator()]
        [0, 2, 4]
        """
        transformed = transformation_func(self)
        if not isinstance(transformed, OrderMethods):
            raise TypeError(f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(transformed)}.")
        return transformed


def _warn(text: str) -> None:
    import warnings
    warnings.warn(f"an element is left out: {text}", RuntimeWarning, stacklevel=2)
