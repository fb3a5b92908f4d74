"""The steps of `tf.data.Dataset` that join elements and take them apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front import iteration as engine

from ._batching import Batch, RaggedBatch, Rebatch, Unbatch, Window
from ._padding import padded, padded_shapes

__all__ = ["BatchMethods"]


@engine.guarded
class BatchMethods:
    """Methods that change how many elements make one."""

    _node: Any
    _then: Callable[..., Any]

    def batch(self, batch_size: Any, drop_remainder: bool = False, num_parallel_calls: Any = None,
              deterministic: bool | None = None, name: str | None = None) -> Any:
        """Elements stacked along a new first axis.

        Args:
            batch_size: how many; the last batch may have fewer.
            drop_remainder: whether a last batch with fewer is left out.
            num_parallel_calls, deterministic, name: accepted, without effect.
        Raises:
            InvalidArgumentError: the size is not above zero; (when iterated over) shapes in a batch differ.

        >>> import twofold as tf
        >>> [x.tolist() for x in tf.data.Dataset.range(5).batch(2).as_numpy_iterator()]
        [[0, 1], [2, 3], [4]]
        """
        return self._then(Batch(self._node, batch_size, drop_remainder))

    def padded_batch(self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None,
                     drop_remainder: bool = False, name: str | None = None) -> Any:
        """Elements padded at the ends of their axes to one shape, and stacked.

        Args:
            batch_size: how many; the last batch may have fewer.
            padded_shapes: the shape, or a structure of shapes like that of an element; None or -1 stands for the
                largest size in a batch. None: unknown sizes are padded to that.
            padding_values: a scalar for each component, or one for all; 0 by default, "" for strings.
            drop_remainder: whether a last batch with fewer is left out.
            name: accepted, without effect.
        Raises:
            ValueError: a shape does not go with its component. TypeError: a value has another dtype.
                DataLossError: (when iterated over) an element is larger than the shape.

        >>> import twofold as tf
        >>> data = tf.data.Dataset.range(1, 4).map(lambda x: tf.fill([x], x)).padded_batch(2)
        >>> [x.tolist() for x in data.as_numpy_iterator()]
        [[[1, 0], [2, 2]], [[3, 3, 3]]]
        """
        return padded(self, batch_size, _shapes(self._node.form, padded_shapes), padding_values, drop_remainder)

    def ragged_batch(self, batch_size: Any, drop_remainder: bool = False, row_splits_dtype: Any = tf.int64,
                     name: str | None = None) -> Any:
        """Elements stacked along a new first axis; axes whose sizes are not known are ragged in the batches.

        Args:
            batch_size: how many; the last batch may have fewer.
            drop_remainder: whether a last batch with fewer is left out.
            row_splits_dtype: of the ragged tensors: int64 or int32.
            name: accepted, without effect.
        Raises:
            InvalidArgumentError: the size is not above zero. ValueError: a rank is not known.

        >>> import twofold as tf
        >>> data = tf.data.Dataset.range(1, 4).map(lambda x: tf.fill([x], x)).ragged_batch(2)
        >>> [x.to_list() for x in data]
        [[[1], [2, 2]], [[3, 3, 3]]]
        """
        return self._then(RaggedBatch(self._node, batch_size, drop_remainder, row_splits_dtype))

    def unbatch(self, name: str | None = None) -> Any:
        """The slices of elements along their first axis.

        Args:
            name: accepted, without effect.
        Raises:
            ValueError: a component is a scalar, or first axes differ.

        >>> import twofold as tf
        >>> [x.item() for x in tf.data.Dataset.range(5).batch(2).unbatch().as_numpy_iterator()]
        [0, 1, 2, 3, 4]
        """
        return self._then(Unbatch(self._node))

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Any:
        """The rows of batches, in batches of another size.

        Args:
            batch_size: the size, or a vector of sizes that take turns.
            drop_remainder: whether a last batch with fewer rows is left out.
            name: accepted, without effect.

        >>> import twofold as tf
        >>> [x.tolist() for x in tf.data.Dataset.range(6).batch(4).rebatch(3).as_numpy_iterator()]
        [[0, 1, 2], [3, 4, 5]]
        """
        return self._then(Rebatch(self._node, batch_size, drop_remainder))

    def window(self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False,
               name: str | None = None) -> Any:
        """Datasets of neighbouring elements; for elements of several tensors, a structure of datasets.

        Args:
            size: how many elements a window has; the last ones may have fewer.
            shift: how far from one window's start to the next; `size` by default.
            stride: how far from element to element of a window.
            drop_remainder: whether windows with fewer are left out.
            name: accepted, without effect.
        Raises:
            InvalidArgumentError: a number is not above zero.

        >>> import twofold as tf
        >>> windows = tf.data.Dataset.range(5).window(3, shift=1, drop_remainder=True)
        >>> [x.tolist() for x in windows.flat_map(lambda w: w.batch(3)).as_numpy_iterator()]
        [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        """
        return self._then(Window(self._node, size, shift, stride, drop_remainder))


def _shapes(form: Any, given: Any) -> Any:
    return padded_shapes(form, given)
