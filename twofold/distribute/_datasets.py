"""How data are shared out: batches are split along their first axis, a part for each replica.

Each process reads what it is given, and takes its rows of each batch, so that all of them together see the batches
that one process would see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import twofold as tf
from twofold.ir import nest
from twofold.runtime import random as streams

from ._values import PerReplica

if TYPE_CHECKING:
    from ._transport import Group

__all__ = ["InputContext", "InputOptions"]


class InputContext:
    """What a function knows that makes the dataset of one process.

    Args:
        num_input_pipelines: how many processes there are.
        input_pipeline_id: the number of this one.
        num_replicas_in_sync: how many replicas there are in all.

    >>> import twofold as tf
    >>> about = tf.distribute.InputContext(num_input_pipelines=2, input_pipeline_id=1, num_replicas_in_sync=4)
    >>> about.get_per_replica_batch_size(64)
    16
    """

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.num_input_pipelines, self.input_pipeline_id = num_input_pipelines, input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The batch of a replica where all have one of this size together.

        Args:
            global_batch_size: a multiple of the number of replicas.
        Raises:
            ValueError: it is none.
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` "
                             f"{self.num_replicas_in_sync}.")
        return global_batch_size // self.num_replicas_in_sync

    def __repr__(self) -> str:
        return f"tf.distribute.InputContext(input pipeline id {self.input_pipeline_id}, total: " \
               f"{self.num_input_pipelines})"


class InputOptions:
    """Options of distributed datasets, which have no effect here.

    Args:
        experimental_fetch_to_device, experimental_replication_mode, experimental_place_dataset_on_device,
            experimental_per_replica_buffer_size: without effect.
    """

    def __init__(self, experimental_fetch_to_device: bool | None = None, experimental_replication_mode: Any = None,
                 experimental_place_dataset_on_device: bool = False,
                 experimental_per_replica_buffer_size: int = 1) -> None:
        self.experimental_fetch_to_device = experimental_fetch_to_device
        self.experimental_replication_mode = experimental_replication_mode
        self.experimental_place_dataset_on_device = experimental_place_dataset_on_device
        self.experimental_per_replica_buffer_size = experimental_per_replica_buffer_size


def bounds(rows: Any, replica: int, count: int) -> tuple[Any, Any]:
    """The rows of a batch, from and to, that a replica takes: as many as the others, or one more.

    Args:
        rows: how many there are, an integer or a scalar tensor.
        replica: its number of `count`.
    """
    return rows * replica // count, rows * (replica + 1) // count


def part_of(batch: Any, replica: int, count: int) -> Any:
    """A replica's rows of a batch, in the batch's structure; what has no rows is given to all."""
    def rows_of(leaf: Any) -> Any:
        if getattr(leaf, "shape", None) is None or len(leaf.shape) == 0:
            return leaf
        known = leaf.shape[0]
        start, stop = bounds(tf.shape(leaf)[0] if known is None else int(known), replica, count)
        return leaf[start:stop]
    return nest.map_structure(rows_of, batch)


def distributed(strategy: Any, dataset: Any) -> Any:
    """A dataset of batches as one of parts for this process's replicas."""
    count, local = strategy.num_replicas_in_sync, len(strategy._devices)
    first = strategy._group.rank * local
    if local == 1:
        return dataset.map(lambda *batch: part_of(batch[0] if len(batch) == 1 else batch, first, count))
    return DistributedDataset(dataset, lambda batch: [part_of(batch, first + n, count) for n in range(local)])


def per_replica(strategy: Any, dataset: Any) -> Any:
    """A dataset of batches for a replica each as one of parts for this process's replicas."""
    if len(strategy._devices) == 1:
        return dataset
    return DistributedDataset(dataset.batch(len(strategy._devices), drop_remainder=True), lambda batch: [
        nest.map_structure(lambda leaf, n=n: leaf[n], batch) for n in range(len(strategy._devices))])


class DistributedDataset:
    """An iterable whose elements have a part for each replica of this process.

    Args:
        dataset: of elements for all of them.
        split: gives the parts of an element.
    """

    def __init__(self, dataset: Any, split: Any) -> None:
        self._dataset, self._split = dataset, split

    def __iter__(self) -> Any:
        for element in self._dataset:
            yield nest.map_structure(lambda *leaves: PerReplica(leaves), *self._split(element))

    def __len__(self) -> int:
        return len(self._dataset)

    def cardinality(self) -> Any:
        """How many elements there are; see `tf.data.Dataset.cardinality`."""
        return self._dataset.cardinality()


def share_randomness(group: Group) -> None:
    """Has all processes draw the first one's numbers where no seed is set: the same initial values, the same order of
    shuffled data. Replicas draw each their own (`_front/replica.py`)."""
    streams.share(int(group.broadcast(np.array(streams.fresh_key(), np.uint64))))
