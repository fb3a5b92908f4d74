"""The steps of `tf.data.Dataset` that call functions of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold._front import iteration as engine

from ._grouping import GroupByWindow, bucketed, constant_size
from ._mapping import Filter, Interleave, Map, Scan, TakeWhile
from ._parallel import AUTOTUNE, cores
from ._resampling import Resample

__all__ = ["MapMethods"]


@engine.guarded
class MapMethods:
    """Methods that take a function.

    Functions are traced once, when they are given, as `tf.function` traces: `if`, `while` and `for` over tensors
    work, and Python runs once. What needs Python for each element is called through `tf.py_function` or
    `tf.numpy_function`. The parts of an element that is a tuple are arguments of their own; a dict, or a named tuple,
    is one argument.
    """

    _node: Any
    _then: Callable[..., Any]

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: bool | None = None,
            synchronous: bool | None = None, use_unbounded_threadpool: bool = False, name: str | None = None) -> Any:
        """The results of a function for each element.

        Args:
            map_func: of an element; gives tensors in a structure, or datasets.
            num_parallel_calls: how many elements may be worked on at once, each in a thread; `tf.data.AUTOTUNE`
                leaves it open. Threads start when a call takes longer than 0.1 ms. None: one after another.
            deterministic: whether the order stays where it is faster to change it; by the options if None.
            synchronous, use_unbounded_threadpool, name: accepted, without effect.
        Raises:
            TypeError: the function gives something that is neither.

        >>> import twofold as tf
        >>> data = tf.data.Dataset.range(3).map(lambda x: (x, x * x))
        >>> [(a.item(), b.item()) for a, b in data.as_numpy_iterator()]
        [(0, 0), (1, 1), (2, 4)]
        """
        return self._then(Map(self._node, map_func, num_parallel_calls, deterministic))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Any:
        """The elements for which a function gives true.

        Args:
            predicate: of an element; gives a bool scalar.
            name: accepted, without effect.
        Raises:
            ValueError: it gives something else.

        >>> import twofold as tf
        >>> [x.item() for x in tf.data.Dataset.range(6).filter(lambda x: x % 2 == 0).as_numpy_iterator()]
        [0, 2, 4]
        """
        return self._then(Filter(self._node, predicate))

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Any:
        """The elements before the first for which a function gives false.

        Args:
            predicate: of an element; gives a bool scalar.
            name: accepted, without effect.
        Raises:
            ValueError: it gives something else.

        >>> import twofold as tf
        >>> [x.item() for x in tf.data.Dataset.range(9).take_while(lambda x: x < 2).as_numpy_iterator()]
        [0, 1]
        """
        return self._then(TakeWhile(self._node, predicate))

    def scan(self, initial_state: Any, scan_func: Callable[[Any, Any], Any], name: str | None = None) -> Any:
        """The results of a function for a state and each element; it also gives the next state.

        Args:
            initial_state: a structure of tensors.
            scan_func: of a state and an element, neither unpacked; gives a pair: next state, and element.
            name: accepted, without effect.
        Raises:
            TypeError: it gives no pair, or changes the structure or the dtypes of the state.

        >>> import twofold as tf
        >>> sums = tf.data.Dataset.range(5).scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s + x))
        >>> [x.item() for x in sums.as_numpy_iterator()]
        [0, 1, 3, 6, 10]
        """
        return self._then(Scan(self._node, initial_state, scan_func))

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Any:
        """The elements of the datasets that a function makes, one dataset after another.

        Args:
            map_func: of an element; gives a dataset.
            name: accepted, without effect.
        Raises:
            TypeError: it gives something else.

        >>> import twofold as tf
        >>> data = tf.data.Dataset.range(4).flat_map(tf.data.Dataset.range)
        >>> [x.item() for x in data.as_numpy_iterator()]
        [0, 0, 1, 0, 1, 2]
        """
        return self._then(Interleave(self._node, map_func, name="FlatMap"))

    def interleave(self, map_func: Callable[..., Any], cycle_length: Any = None, block_length: Any = None,
                   num_parallel_calls: Any = None, deterministic: bool | None = None, name: str | None = None) -> Any:
        """The elements of the datasets that a function makes, several of which are open and take turns.

        Args:
            map_func: of an element; gives a dataset.
            cycle_length: how many are open; by default as many as there are processors.
            block_length: how many elements each gives in its turn; 1 by default.
            num_parallel_calls: where it is given, open datasets make elements ahead, each in a thread.
            deterministic, name: accepted, without effect: the order is always that of the turns.
        Raises:
            TypeError: the function gives no dataset.

        >>> import twofold as tf
        >>> data = tf.data.Dataset.range(1, 4)
        >>> data = data.interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=2)
        >>> [x.item() for x in data.as_numpy_iterator()]
        [1, 1, 2, 2, 1, 2, 3, 3, 3]
        """
        open_ = cores() if cycle_length is None or (isinstance(cycle_length, int) and cycle_length == AUTOTUNE) \
            else cycle_length
        return self._then(Interleave(self._node, map_func, open_, 1 if block_length is None else block_length,
                                     num_parallel_calls, deterministic))

    def group_by_window(self, key_func: Callable[..., Any], reduce_func: Callable[[Any, Any], Any],
                        window_size: Any = None, window_size_func: Callable[[Any], Any] | None = None,
                        name: str | None = None) -> Any:
        """Elements gathered by a key; each full group becomes elements.

        Args:
            key_func: of an element; gives an integer scalar, the key.
            reduce_func: of a key and a dataset of the group's elements; gives a dataset.
            window_size: how many elements fill a group.
            window_size_func: of a key; gives that number, instead.
            name: accepted, without effect.
        Raises:
            ValueError: both sizes are given, or none, or a function gives something else.

        >>> import twofold as tf
        >>> data = tf.data.Dataset.range(5).group_by_window(lambda x: x % 2, lambda key, group: group.batch(2), 2)
        >>> [x.tolist() for x in data.as_numpy_iterator()]
        [[0, 2], [1, 3], [4]]
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError("Either the `window_size` argument or the `window_size_func` argument must be specified, "
                             "and not both.")
        size = window_size_func if window_size_func is not None else constant_size(window_size)
        return self._then(GroupByWindow(self._node, key_func, reduce_func, size))

    def bucket_by_sequence_length(self, element_length_func: Callable[..., Any], bucket_boundaries: Any,
                                  bucket_batch_sizes: Any, padded_shapes: Any = None, padding_values: Any = None,
                                  pad_to_bucket_boundary: bool = False, no_padding: bool = False,
                                  drop_remainder: bool = False, name: str | None = None) -> Any:
        """Batches of elements of similar length, padded.

        Args:
            element_length_func: of an element; gives its length, an int32 scalar.
            bucket_boundaries: rising lengths at which a new bucket begins.
            bucket_batch_sizes: a size for each bucket: one more than there are boundaries.
            padded_shapes, padding_values: see `padded_batch`.
            pad_to_bucket_boundary: whether unknown sizes are padded to the largest of the bucket, rather than of the
                batch.
            no_padding: whether elements of a batch have one shape anyway.
            drop_remainder: whether batches that are not full are left out.
            name: accepted, without effect.
        Raises:
            ValueError: the numbers of boundaries and sizes do not go together.

        >>> import twofold as tf
        >>> def generate():
        ...     yield from ([0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [13, 14, 15, 16, 19, 20], [21, 22])
        >>> data = tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec([None], tf.int32))
        >>> data = data.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 5], [2, 2, 2])
        >>> for batch in data.as_numpy_iterator():
        ...     print(batch)
        [[1 2 3 4]
         [5 6 7 0]]
        [[ 7  8  9 10 11  0]
         [13 14 15 16 19 20]]
        [[ 0  0]
         [21 22]]
        """
        return bucketed(self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes,
                        padding_values, pad_to_bucket_boundary, no_padding, drop_remainder)

    def rejection_resample(self, class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None,
                           seed: int | None = None, name: str | None = None) -> Any:
        """Pairs of a class and an element, of which some are left out so that classes come as often as is wanted.

        Args:
            class_func: of an element; gives its class, an int32 scalar.
            target_dist: how often each class is to come: numbers that sum to one.
            initial_dist: how often it comes in the data; learnt on the way where it is None.
            seed: with it, the same elements stay in each run.
            name: accepted, without effect.

        >>> import twofold as tf
        >>> data = tf.data.Dataset.range(1000)
        >>> data = data.rejection_resample(lambda x: tf.cast(x % 10 > 0, tf.int32), [0.5, 0.5], [0.1, 0.9], seed=1)
        >>> 0.4 < sum(int(kind) for kind, _ in data) / len(list(data)) < 0.6
        True
        """
        return self._then(Resample(self._node, class_func, target_dist, initial_dist, seed))
