"""Models under a strategy of several processes: who takes which rows, and what becomes one over all of them.

Each process runs the same program. A batch is one of all replicas: each takes its rows, and gradients are weighted by
how many these are, so that a step moves weights as one process does with the whole batch. What metrics have counted is
summed when it is reported; statistics of layers become their mean then. The strategies are `twofold/distribute`'s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front import replica

from .composites import joined
from .data_adapter import Source

__all__ = ["agreed", "from_chief", "is_chief", "means_of_statistics", "of_all_replicas", "of_process", "over_replicas",
           "predicted", "several", "shared", "step", "sums_of_metrics", "within"]


def several(strategy: Any) -> bool:
    """Whether a strategy, or None, has more than one replica."""
    return strategy is not None and strategy.num_replicas_in_sync > 1


def is_chief(strategy: Any) -> bool:
    """Whether this process writes files and shows progress."""
    return strategy is None or bool(strategy.extended.should_checkpoint)


def within(strategy: Any) -> contextlib.AbstractContextManager[Any]:
    """A block that runs for this process's replica, where it has one of several."""
    alone = several(strategy) and len(strategy._devices) == 1
    return strategy._replica(0, None) if alone else contextlib.nullcontext()


def from_chief(strategy: Any, make: Callable[[], Any]) -> Any:
    """What `make` gives in the first process, in all."""
    if not several(strategy):
        return make()
    with replica.reading_own():
        made = make() if is_chief(strategy) else None
    return strategy._group.broadcast(made)


def agreed(strategy: Any, array: np.ndarray) -> np.ndarray:
    """What the first process has, in all."""
    return np.asarray(strategy._group.broadcast(array)) if several(strategy) else array


class Idle:
    """What a replica gets that has no rows of a batch: one of another's, which is not to count.

    Args:
        data: a batch of one row.
    """

    def __init__(self, data: Any) -> None:
        self.data = data


class Parts:
    """A batch of a process with several replicas.

    Args:
        parts: their rows.
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = parts

    def each(self, strategy: Any, fn: Callable[[Any], Any]) -> list[Any]:
        """What a function gives for each part, called in the part's replica."""
        from twofold.distribute import _values as values
        results: list[Any] = [None] * len(self._parts)

        def one(numbered: Any) -> None:
            number, part = numbered
            results[number] = fn(part)
        strategy._run_each(one, (values.PerReplica(list(enumerate(self._parts))),), None, at_once=True)
        return results


def step(model: Any, kind: str, run: Callable[[Any], Any], batch: Any) -> Any:
    """A step on a batch, or one that comes along without rows: None then.

    Args:
        kind: "train" or "test".
        run: takes the step.
    """
    if isinstance(batch, Parts):
        results = batch.each(model._strategy, lambda part: step(model, kind, run, part))
        return next((result for result in reversed(results) if result is not None), None)
    if not isinstance(batch, Idle):
        return run(batch)
    if kind == "train":  # others wait for the gradients
        states = [*model.non_trainable_weights, *(v for metric in model.metrics for v in metric.variables)]
        before = [v.value() for v in states]
        with replica.assigning_alike():
            model._share.assign(0.0)
            try:
                run(batch.data)
            finally:
                model._share.assign(1.0)
                for variable, value in zip(states, before, strict=False):  # metrics may have been built meanwhile
                    variable.assign(value)
    return None


def of_process(strategy: Any, x: Any) -> Any:
    """Data of which this process reads its own files or elements, where that is how a dataset is shared."""
    from twofold.distribute import _datasets as datasets
    if not isinstance(x, tf.data.Dataset) or datasets.is_part(x):
        return x
    own = datasets.of_process(strategy, x)
    return x if own is None else own


def shared(strategy: Any, x: Any, source_of: Callable[[Any], Source]) -> Source:
    """This process's part of data.

    Args:
        x: the data.
        source_of: gives their batches.
    """
    from twofold.distribute import _datasets as datasets
    if isinstance(x, datasets.DistributedDataset):
        return SharedSource(source_of(x.parts()), strategy, lambda parts: parts)
    count, local = strategy.num_replicas_in_sync, len(strategy._devices)
    first = 0 if datasets.is_part(x) else strategy._group.rank * local
    of = local if datasets.is_part(x) else count
    return SharedSource(source_of(x), strategy, lambda batch: [
        datasets.part_of(batch, first + n, of) for n in range(local)])


class SharedSource(Source):
    """This process's rows of the batches of a source.

    Args:
        source: gives batches.
        strategy: whose replicas share them.
        split: gives the parts of a batch that are this process's replicas'.
    """

    def __init__(self, source: Source, strategy: Any, split: Callable[[Any], list[Any]]) -> None:
        self._source, self._strategy, self._split = source, strategy, split
        self.num_batches, self.batch_size = source.num_batches, source.batch_size
        self._last: Any = None  # a part, with rows where there was one
        source.agree = lambda order: agreed(strategy, order)

    def epoch(self) -> Iterator[Any]:
        """The parts of the batches of the next epoch."""
        for batch in self._source.epoch():
            parts = self._split(batch)
            some = next((part for part in parts if rows_of(part)), None)
            if some is not None or self._last is None:
                self._last = parts[0] if some is None else some
            parts = [part if rows_of(part) else Idle(_one_row(self._last)) for part in parts]
            yield parts[0] if len(parts) == 1 else Parts(parts)

    def restart(self) -> None:
        """Let the next epoch begin with the first batch."""
        self._source.restart()

    def on_epoch_begin(self) -> None:
        """Told before an epoch."""
        self._source.on_epoch_begin()

    def on_epoch_end(self) -> None:
        """Told after an epoch."""
        self._source.on_epoch_end()


def _one_row(batch: Any) -> Any:
    """A batch of one row: the first of a batch, or zeros where it has none."""
    def row(leaf: Any) -> Any:
        if leaf is None or not len(leaf.shape):
            return leaf
        return leaf[:1] if leaf.shape[0] else tf.zeros([1, *leaf.shape[1:]], leaf.dtype)
    return tf.nest.map_structure(row, batch)


def rows_of(batch: Any) -> int:
    """How many samples a batch of tensors has."""
    leaves = [leaf for leaf in tf.nest.flatten(batch) if leaf is not None and len(leaf.shape)]
    return int(leaves[0].shape[0]) if leaves else 1


def of_all_replicas(loss: Any) -> Any:
    """The loss of a replica's rows, from its part of the loss of all."""
    count = replica.here.get().of
    return loss if count == 1 else loss * tf.constant(count, loss.dtype)


def over_replicas(gradients: Sequence[Any], rows: Any, share: Any) -> list[Any]:
    """Gradients of the loss of all samples, from those of each replica's part of it.

    Args:
        gradients: None where there is none, in the same places in all replicas.
        rows: how many samples this replica had, a scalar; None for as many as the others.
        share: 0 where they are not to count (`Idle`), else 1.
    """
    count = replica.here.get().of
    there = [n for n, gradient in enumerate(gradients) if gradient is not None]
    own = tf.identity(share) if rows is None else tf.cast(rows, tf.float32) * share
    weighted = [tensor * tf.cast(own * count, tensor.dtype) for n in there
                for tensor in [tf.convert_to_tensor(gradients[n])]]
    context: Any = tf.distribute.get_replica_context()
    *totals, all_rows = context.all_reduce(tf.distribute.ReduceOp.SUM, [*weighted, own])
    whole: list[Any] = list(gradients)
    for n, total in zip(there, totals, strict=True):
        whole[n] = total / tf.cast(all_rows, total.dtype)
    return whole


def sums_of_metrics(strategy: Any, metrics: Sequence[Any]) -> None:
    """Gives metrics the sums of what all processes have counted."""
    _reduce(strategy, tf.distribute.ReduceOp.SUM, [v for metric in metrics for v in metric.variables])


def means_of_statistics(strategy: Any, model: Any) -> None:
    """Gives weights that are not trained, such as moving averages, their mean over all processes."""
    _reduce(strategy, tf.distribute.ReduceOp.MEAN, [v for v in model.non_trainable_weights if v.dtype.is_floating])


def _reduce(strategy: Any, kind: Any, variables: Sequence[Any]) -> None:
    own = list({id(v): v for v in variables}.values())
    if several(strategy) and own:
        values = [v.value() for v in own] if len(strategy._devices) == 1 else strategy.run(
            lambda: [v.value() for v in own])
        for variable, value in zip(own, strategy.reduce(kind, values, None), strict=True):
            variable.assign(value)


def _outputs(run: Callable[[Any], Any], batch: Any) -> Any:
    """The outputs for a batch, as arrays; of no rows where it comes along without."""
    outputs = tf.nest.map_structure(engine.array_of, run([batch.data if isinstance(batch, Idle) else batch]))
    return tf.nest.map_structure(lambda output: output[:0], outputs) if isinstance(batch, Idle) else outputs


def predicted(strategy: Any, run: Callable[[Any], Any], batches: Sequence[Any]) -> Any:
    """The outputs for batches, of all processes, in the order of the rows, as arrays; ragged and sparse ones as such.

    Args:
        run: gives this process's.
    """
    if not several(strategy):
        return tf.nest.map_structure(lambda x: joined([x]), run(batches))
    parts_of_batches = []
    for batch in batches:
        if isinstance(batch, Parts):
            of_parts = batch.each(strategy, lambda part: _outputs(run, part))
            outputs = tf.nest.map_structure(lambda *rows: np.concatenate(rows), *of_parts)
        else:
            outputs = _outputs(run, batch)
        gathered = tf.nest.map_structure(lambda output: np.concatenate(strategy._group.gather(output)), outputs)
        parts_of_batches.append(gathered)
    return tf.nest.map_structure(lambda *parts: np.concatenate(parts), *parts_of_batches)
