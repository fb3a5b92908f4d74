"""The steps of `tf.data.Dataset` over several datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import listed

from ._combining import Choose, Concatenate, Sample, Zip
from ._node import check
from ._sources import Counter
from ._value import dataset_from, is_dataset

__all__ = ["CombineMethods"]


@engine.guarded
class CombineMethods:
    """Methods that take other datasets."""

    _node: Any
    _then: Callable[..., Any]

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Any:
        """Structures of the elements of several datasets, as many as the shortest has.

        Args:
            args: datasets, or one structure of them.
            datasets: the older name of that structure.
            name: accepted, without effect.
        Raises:
            TypeError: there is no dataset, or something that is none.

        >>> import twofold as tf
        >>> pairs = tf.data.Dataset.zip(tf.data.Dataset.range(3), tf.data.Dataset.range(3, 9))
        >>> [(a.item(), b.item()) for a, b in pairs.as_numpy_iterator()]
        [(0, 3), (1, 4), (2, 5)]
        """
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        if args and datasets is not None:
            raise TypeError("Both `*args` and `datasets` cannot be set.")
        structure = datasets if datasets is not None else args[0] if len(args) == 1 else args
        leaves = engine.nest.flatten(structure)
        for leaf in leaves:
            if not is_dataset(leaf):
                raise TypeError(f"Invalid input to `zip`. Inputs are expected to be (nested) structures of "
                                f"`tf.data.Dataset` objects. Encountered object of type {type(leaf)}.")
        if isinstance(structure, list):
            raise TypeError("Invalid input to `zip`. Lists are not structures of elements: give a tuple.")
        return leaves[0]._then(Zip(structure), *leaves[1:])

    def concatenate(self, dataset: Any, name: str | None = None) -> Any:
        """The elements of this dataset, then those of another.

        Args:
            dataset: one whose elements have the same structure and dtypes.
            name: accepted, without effect.
        Raises:
            TypeError: they have not.

        >>> import twofold as tf
        >>> [x.item() for x in tf.data.Dataset.range(2).concatenate(tf.data.Dataset.range(7, 9)).as_numpy_iterator()]
        [0, 1, 7, 8]
        """
        if not is_dataset(dataset):
            raise TypeError(f"concatenate takes a tf.data.Dataset; got {type(dataset).__name__}.")
        return self._then(Concatenate(self._node, dataset._node), dataset)

    def enumerate(self, start: Any = 0, name: str | None = None) -> Any:
        """Pairs of a number and an element.

        Args:
            start: the first number; int64.
            name: accepted, without effect.

        >>> import twofold as tf
        >>> pairs = tf.data.Dataset.from_tensor_slices(["a", "b"]).enumerate(5)
        >>> [(int(i), s) for i, s in pairs.as_numpy_iterator()]
        [(5, b'a'), (6, b'b')]
        """
        return self._then(Zip((dataset_from(Counter(start, 1, tf.int64)), self)))

    @staticmethod
    def sample_from_datasets(datasets: Any, weights: Any = None, seed: int | None = None,
                             stop_on_empty_dataset: bool = False, rerandomize_each_iteration: bool | None = None,
                             name: str | None = None) -> Any:
        """Elements of several datasets, each time from one of them at random.

        Args:
            datasets: a list of datasets with one structure and dtypes.
            weights: how often each comes, relative to the others: numbers, or a dataset of vectors of numbers, one
                for each draw. Alike by default.
            seed: with it, the choices are the same in each run.
            stop_on_empty_dataset: whether all ends with the first dataset that ends, rather than with the last.
            rerandomize_each_iteration: whether each iteration has choices of its own; not, by default.
            name: accepted, without effect.
        Raises:
            ValueError: there are no datasets, or not as many weights. TypeError: elements differ.

        >>> import twofold as tf
        >>> a, b = tf.data.Dataset.range(0, 50), tf.data.Dataset.range(50, 100)
        >>> mixed = tf.data.Dataset.sample_from_datasets([a, b], weights=[0.9, 0.1], seed=3)
        >>> sorted(x.item() for x in mixed.as_numpy_iterator()) == list(range(100))
        True
        """
        parts = listed(datasets, "datasets")
        if not parts:
            raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
        given: Any
        if is_dataset(weights):
            given = weights._node
        else:
            given = np.ones(len(parts)) if weights is None else np.asarray(engine.array_of(weights), np.float64)
            if given.shape != (len(parts),):
                raise ValueError(f"Invalid `weights`. The shape of `weights` should be `[{len(parts)}]` but is "
                                 f"{list(given.shape)}.")
            check(bool((given >= 0).all()) and given.sum() > 0, f"weights must be numbers from 0 on; got {given}.")
            parts = [p for p, w in zip(parts, given, strict=True) if w > 0]
            given = given[given > 0]
        if len(parts) == 1:
            return parts[0]
        choice = Sample(len(parts), given, seed, bool(rerandomize_each_iteration))
        return parts[0]._then(Choose([p._node for p in parts], choice, stop_on_empty_dataset), *parts[1:])

    @staticmethod
    def choose_from_datasets(datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = True) -> Any:
        """Elements of several datasets, each time from the one that a dataset of numbers names.

        Args:
            datasets: a list of datasets with one structure and dtypes.
            choice_dataset: a dataset of int64 scalars, 0 for the first.
            stop_on_empty_dataset: whether all ends when a dataset is asked for more than it has; otherwise such
                choices are passed over.
        Raises:
            TypeError: the choices are not int64 scalars, or elements differ. ValueError: there are no datasets.

        >>> import twofold as tf
        >>> letters = [tf.data.Dataset.from_tensors(x).repeat() for x in ("a", "b")]
        >>> choice = tf.data.Dataset.from_tensor_slices(tf.constant([0, 1, 1], tf.int64))
        >>> list(tf.data.Dataset.choose_from_datasets(letters, choice).as_numpy_iterator())
        [b'a', b'b', b'b']
        """
        parts = listed(datasets, "datasets")
        if not parts:
            raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
        if not is_dataset(choice_dataset) or choice_dataset.element_spec != tf.TensorSpec([], tf.int64):
            raise TypeError("Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` tensors.")
        node = Choose([p._node for p in parts], choice_dataset._node, stop_on_empty_dataset)
        return parts[0]._then(node, *parts[1:])
