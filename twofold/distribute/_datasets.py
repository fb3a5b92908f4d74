"""How data are shared out: batches are split along their first axis, a part for each replica.

Each process reads what it is given, and takes its rows of each batch, so that all of them together see the batches
that one process would see. Or it reads files, or elements, of its own (`AutoShardPolicy`); batches are as many rows of
all processes together then, too, and who comes to the end first goes on with batches without rows.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np

import twofold as tf
from twofold.data import _sharding as sharding
from twofold.data._node import INFINITE, UNKNOWN, Node
from twofold.data._optional import Optional, OptionalSpec
from twofold.data._sharding import AutoShardPolicy
from twofold.data._stream import Stream
from twofold.ir import nest
from twofold.runtime import random as streams

from ._values import PerReplica, PerReplicaSpec

if TYPE_CHECKING:
    from ._transport import Group

__all__ = ["InputContext", "InputOptions", "InputReplicationMode"]


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


class InputReplicationMode(enum.Enum):
    """Whether an input function is called for each process or each replica; it is called for each process here.

    >>> import twofold as tf
    >>> mode = tf.distribute.InputReplicationMode.PER_WORKER
    >>> tf.distribute.InputOptions(experimental_replication_mode=mode).experimental_replication_mode.value
    'PER_WORKER'
    """

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


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
    """The rows of a batch, from and to, that a replica takes: as many as the first, as long as there are some.

    Args:
        rows: how many there are, an integer or a scalar tensor.
        replica: its number of `count`.
    """
    most = (rows + count - 1) // count
    if isinstance(rows, int):
        return min(most * replica, rows), min(most * (replica + 1), rows)
    return tf.minimum(most * replica, rows), tf.minimum(most * (replica + 1), rows)


def part_of(batch: Any, replica: int, count: int) -> Any:
    """A replica's rows of a batch, in the batch's structure; what has no rows is given to all."""
    def rows_of(leaf: Any) -> Any:
        if getattr(leaf, "shape", None) is None or len(leaf.shape) == 0:
            return leaf
        known = leaf.shape[0]
        start, stop = bounds(_rows_of(leaf) if known is None else int(known), replica, count)
        if isinstance(leaf, tf.SparseTensor):
            size = leaf.dense_shape
            return tf.sparse.slice(leaf, tf.concat([[start], tf.zeros_like(size[1:])], 0),
                                   tf.concat([[stop - start], size[1:]], 0))
        return leaf[start:stop]
    return nest.map_structure(rows_of, batch, expand_composites=False)


def _rows_of(leaf: Any) -> Any:
    """How many rows a leaf has, where that is not known."""
    if isinstance(leaf, tf.RaggedTensor):
        return leaf.nrows()
    return leaf.dense_shape[0] if isinstance(leaf, tf.SparseTensor) else tf.shape(leaf)[0]


def distributed(strategy: Any, dataset: Any) -> Any:
    """A dataset of batches as one of parts for this process's replicas, by the dataset's `AutoShardPolicy`."""
    if is_part(dataset):
        return dataset
    local = len(strategy._devices)
    own = of_process(strategy, dataset)
    if own is not None:
        return own if local == 1 else DistributedDataset(own, lambda batch: [part_of(batch, n, local)
                                                                             for n in range(local)], local)
    count, first = strategy.num_replicas_in_sync, strategy._group.rank * local
    if local == 1:
        return _marked(dataset.map(lambda *batch: part_of(batch[0] if len(batch) == 1 else batch, first, count)))
    return DistributedDataset(dataset, lambda batch: [part_of(batch, first + n, count) for n in range(local)], local)


def of_process(strategy: Any, dataset: Any) -> Any:
    """A dataset of batches as one of batches for this process's replicas together, of whose files or elements it reads
    its own; None where all processes read the same, and take their rows of each batch.

    Raises:
        ValueError: the dataset cannot be shared in the way that its `AutoShardPolicy` says.
    """
    group, local = strategy._group, len(strategy._devices)
    policy = dataset.options().experimental_distribute.auto_shard_policy or AutoShardPolicy.AUTO
    if group.size == 1 or policy is AutoShardPolicy.DATA:
        return None
    node = dataset._node
    rows = sharding.batch_size_of(node)
    own = 0 if rows is None else bounds(rows, group.rank, group.size)[1] - bounds(rows, group.rank, group.size)[0]
    try:
        if policy in (AutoShardPolicy.AUTO, AutoShardPolicy.FILE):
            node = sharding.by_files(node, group.size, group.rank)
        elif policy is AutoShardPolicy.HINT:
            node = sharding.by_hints(node, group.size, group.rank)
        if rows is None:
            raise sharding.NotByFile("nothing tells how many rows its batches have")
        if rows < group.size * local:
            raise sharding.NotByFile(f"batches of {rows} rows are too few for {group.size * local} replicas")
    except sharding.NotByFile as error:
        if policy is AutoShardPolicy.AUTO:
            return None
        raise ValueError(f"AutoShardPolicy.{policy.name}: the dataset cannot be shared: {error}.") from None
    return together(strategy, tf.data.Dataset(node, dataset.options()).rebatch(own))


def together(strategy: Any, dataset: Any) -> Any:
    """A dataset of this process's own that ends when those of all processes have: it goes on with batches without
    rows."""
    if strategy._group.size == 1:
        return dataset
    return _marked(tf.data.Dataset(Together(dataset._node, strategy._group), dataset.options()))


def _marked(dataset: Any) -> Any:
    """A dataset that is marked as this process's part."""
    dataset._is_part = True
    return dataset


def is_part(dataset: Any) -> bool:
    """Whether a dataset is this process's part of one already."""
    return isinstance(dataset, DistributedDataset) or getattr(dataset, "_is_part", False)


def per_replica(strategy: Any, dataset: Any) -> Any:
    """A dataset of batches for a replica each as one of parts for this process's replicas."""
    local = len(strategy._devices)
    if local == 1:
        return together(strategy, dataset)
    return DistributedDataset(together(strategy, dataset.batch(local, drop_remainder=True)), lambda batch: [
        nest.map_structure(lambda leaf, n=n: leaf[n] if len(leaf) else leaf, batch) for n in range(local)], local,
        lambda spec: tf.TensorSpec(spec.shape[1:], spec.dtype))


class Together(Node):
    """Batches, and then ones without rows, until all processes have come to their end.

    Args:
        source: this process's batches.
        group: the processes.
    """

    name = "Together"

    def __init__(self, source: Node, group: Group) -> None:
        self.source, self.group = source, group
        self.form = source.form.map_specs(_any_rows)

    def cardinality(self) -> int:
        return INFINITE if self.own_count() == INFINITE else UNKNOWN

    def own_count(self) -> int:
        """How many batches this process has, INFINITE or UNKNOWN; batches of other sizes than endless ones are endless,
        though a dataset that cuts them does not say so."""
        endless = self.source.name == "Rebatch" and self.source.inputs()[0].cardinality() == INFINITE
        return INFINITE if endless else self.source.cardinality()

    def start(self, run: Any) -> Any:
        return _Ending(self, self.source.start(run))


def _any_rows(spec: Any) -> Any:
    shape = spec.shape if isinstance(spec, tf.TensorSpec) else None
    return tf.TensorSpec([None, *shape[1:]], spec.dtype) if shape is not None and shape.rank else spec


class _Ending(Stream):
    """See `Together`. Where all know how many batches they have, processes tell one another once; else at each."""

    def __init__(self, node: Together, input_: Any) -> None:
        self.node, self.input = node, input_
        self.last: Any = None
        self.at, self.ended = 0, False
        counts = np.concatenate(node.group.gather(np.array([node.own_count()])))
        self.end: int | None = int(counts.max()) if (counts >= 0).all() else None
        self.endless = bool((counts == INFINITE).all())

    def next(self) -> Any:
        item = None if self.ended else self.input.next()
        self.ended = item is None
        self.last = item if item is not None else self.last
        if not self.endless and not self._goes_on():
            return None
        self.at += 1
        return self._without_rows() if item is None else item

    def _goes_on(self) -> bool:
        if self.end is not None:
            return self.at < self.end
        return bool(self.node.group.sum(np.array([[not self.ended]], np.int64), np.add)[0])

    def _without_rows(self) -> Any:
        if self.last is not None:
            return tuple([x[:0] if x.ndim else x for x in self.last])
        return tuple([np.zeros([0 if not n else d or 1 for n, d in enumerate(spec.shape)], spec.dtype.as_numpy_dtype)
                      for spec in self.node.form.flat])

    def save(self) -> Any:
        return [self.at, self.ended, self.input.save()]

    def load(self, state: Any) -> None:
        self.at, self.ended = state[:2]
        self.input.load(state[2])


class DistributedDataset:
    """An iterable whose elements have a part for each replica of this process.

    Args:
        dataset: of elements for all of them.
        split: gives the parts of an element.
        count: how many parts there are.
        part: gives the spec of a part of what has a spec.
    """

    def __init__(self, dataset: Any, split: Any, count: int, part: Any = _any_rows) -> None:
        self._dataset, self._split, self._specs = dataset, split, (count, part)

    @property
    def element_spec(self) -> Any:
        """The specs of an element: for each tensor those of its parts."""
        return _specs_of(self._dataset.element_spec, *self._specs)

    def __iter__(self) -> DistributedIterator:
        return DistributedIterator(iter(self._dataset), self._split, *self._specs)

    def __staged_sequence__(self) -> Any:
        return _staged(self._dataset, self._split)

    def __trace_token__(self) -> tuple[Any, Any]:
        form, token = self._dataset.__trace_token__()
        return (form, self._split), token

    def __with_trace_token__(self, token: Any) -> DistributedDataset:
        return DistributedDataset(self._dataset.__with_trace_token__(token), self._split, *self._specs)

    def parts(self) -> Any:
        """The same, with a list of the parts in place of each element."""
        return _PartsOf(self)

    def __len__(self) -> int:
        return len(self._dataset)

    def cardinality(self) -> Any:
        """How many elements there are; see `tf.data.Dataset.cardinality`."""
        return self._dataset.cardinality()


class DistributedIterator:
    """What `iter` gives of a distributed dataset: elements with a part for each replica of this process.

    Args:
        iterator: of elements for all of them.
        split, count, part: see `DistributedDataset`.
    """

    def __init__(self, iterator: Any, split: Any, count: int, part: Any) -> None:
        self._iterator, self._split, self._specs = iterator, split, (count, part)

    @property
    def element_spec(self) -> Any:
        """The specs of an element: for each tensor those of its parts."""
        return _specs_of(self._iterator.element_spec, *self._specs)

    def __iter__(self) -> DistributedIterator:
        return self

    def __next__(self) -> Any:
        return _of_replicas(self._split(next(self._iterator)))

    def get_next(self) -> Any:
        """The next element.

        Raises:
            OutOfRangeError: there is none.
        """
        return _of_replicas(self._split(self._iterator.get_next()))

    def get_next_as_optional(self) -> Any:
        """The next element as a `tf.experimental.Optional`, which has no value where there is none."""
        whole = self._iterator.get_next_as_optional()
        spec = _OptionalPartsSpec(whole.element_spec, self._split, *self._specs)
        return _OptionalParts(whole.element_spec, whole._leaves, whole._there, spec)

    def __staged_sequence__(self) -> Any:
        return _staged(self._iterator, self._split)

    def __trace_token__(self) -> tuple[Any, Any]:
        form, token = self._iterator.__trace_token__()
        return (form, self._split), token

    def __with_trace_token__(self, token: Any) -> DistributedIterator:
        return DistributedIterator(self._iterator.__with_trace_token__(token), self._split, *self._specs)


class _OptionalParts(Optional):
    """An element with a part for each replica of this process, or the knowledge that there is none."""

    _spec: _OptionalPartsSpec

    @property
    def element_spec(self) -> Any:
        """What the value is."""
        return _specs_of(self._element_spec, *self._spec._specs)

    def get_value(self, name: str | None = None) -> Any:
        """The value; see `tf.experimental.Optional.get_value`."""
        return _of_replicas(self._spec._split(super().get_value()))

    @property
    def _type_spec(self) -> _OptionalPartsSpec:
        return self._spec


class _OptionalPartsSpec(OptionalSpec):
    """The spec of `_OptionalParts`.

    Args:
        element_spec: that of an element for all replicas.
        split, count, part: see `DistributedDataset`.
    """

    __slots__ = ("_split", "_specs")

    def __init__(self, element_spec: Any, split: Any, count: int, part: Any) -> None:
        super().__init__(element_spec)
        self._split, self._specs = split, (count, part)

    @property
    def value_type(self) -> type:
        """The class of the values."""
        return _OptionalParts

    def _serialize(self) -> tuple[Any, ...]:
        return (self._element_spec, self._split, *self._specs)

    def _from_components(self, components: Any) -> Optional:
        there, *leaves = components
        return _OptionalParts(self._element_spec, leaves, there, self)

    def _with_component_specs(self, components: Any) -> OptionalSpec:
        _, *leaves = components
        return _OptionalPartsSpec(nest.pack(self._element_spec, leaves), self._split, *self._specs)


def _specs_of(whole: Any, count: int, part: Any) -> Any:
    """The specs of an element with so many parts, from those of an element for all replicas."""
    return nest.map_structure(lambda spec: PerReplicaSpec(*[part(spec)] * count), whole, expand_composites=False)


def _of_replicas(parts: Any) -> Any:
    """The parts of an element as one structure."""
    return nest.map_structure(lambda *leaves: PerReplica(leaves), *parts, expand_composites=False)


def _staged(source: Any, split: Any) -> Any:
    """The elements of a dataset or an iterator, with their parts, for a loop in a traced function."""
    elements = source.__staged_sequence__()
    whole = elements.pack
    elements.pack = lambda leaves: _of_replicas(split(whole(leaves)))
    return elements


class _PartsOf:
    """See `DistributedDataset.parts`."""

    def __init__(self, dataset: DistributedDataset) -> None:
        self._of = dataset
        self.cardinality = dataset.cardinality

    def __iter__(self) -> Any:
        return map(self._of._split, self._of._dataset)


def share_randomness(group: Group) -> None:
    """Has all processes draw the first one's numbers where no seed is set: the same initial values, the same order of
    shuffled data. Replicas draw each their own (`_front/replica.py`)."""
    streams.share(int(group.broadcast(np.array(streams.fresh_key(), np.uint64))))
