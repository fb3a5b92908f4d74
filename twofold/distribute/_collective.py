"""Sums, means and joins over replicas, at once or as a node of a graph: `collective_all_reduce`.

Where replicas run when values are there (op by op, or as nodes of compiled functions do), they meet in this process,
and one of them exchanges packs with other processes (`_transport.py`). Where all replicas of a process are traced into
one graph, they meet while it is traced, and the sum is part of it. Additions are made in the order of the replicas'
numbers each time.
"""

from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import tensor
from twofold.eager import record
from twofold.eager.tensor import Tensor, wrap
from twofold.ir import nest
from twofold.ir.spec import TensorSpec
from twofold.tracer import host
from twofold.tracer.trace import current

from ._context import Left, Place, _here, _place
from ._values import PerReplica, ReduceOp

__all__ = ["all_gather", "all_reduce", "gathered", "merge_call", "reduced"]

def all_reduce(context: Any, reduce_op: Any, value: Any, options: Any = None) -> Any:
    """See `ReplicaContext.all_reduce`."""
    kind = operation(reduce_op)
    tensors = [tensor(leaf) for leaf in nest.flatten(value)]
    strategy, pack = context.strategy, getattr(options, "bytes_per_pack", 0)
    if strategy.num_replicas_in_sync == 1 or not tensors:
        return nest.pack(value, tensors)

    @tf.custom_gradient
    def reduce(*tensors: Tensor) -> Any:
        def gradient(*cts: Tensor) -> list[Tensor]:
            return _joined(context, list(cts), kind, pack)
        return _joined(context, list(tensors), kind, pack), gradient
    results = reduce(*tensors)
    return nest.pack(value, [results] if isinstance(results, Tensor) else list(results))


def operation(reduce_op: Any) -> ReduceOp:
    """A reduction from a member of `ReduceOp` or its name.

    Raises:
        ValueError: there is no such reduction.
    """
    if isinstance(reduce_op, ReduceOp):
        return reduce_op
    try:
        return ReduceOp(str(reduce_op).upper())
    except ValueError:
        raise ValueError(f"reduce_op must be a tf.distribute.ReduceOp, SUM or MEAN; got {reduce_op!r}.") from None


def _joined(context: Any, tensors: list[Tensor], kind: ReduceOp, pack: int) -> list[Tensor]:
    """The reduced tensors, for one replica of those that come here."""
    strategy, meeting = context.strategy, context._meeting
    if meeting is None:
        return reduced(strategy, [tensors], kind, pack)
    if current() is meeting.trace:  # as the replicas began: all of them are traced, or none
        totals: list[Tensor] = meeting.join(context._number, tensors,
                                            lambda values: reduced(strategy, values, kind, pack))
        return totals
    return _call(_Meeting(strategy, kind, pack), tensors, [TensorSpec(t.shape, t.dtype) for t in tensors])


def reduced(strategy: Any, values: Sequence[Sequence[Tensor]], kind: ReduceOp, pack: int = 0) -> list[Tensor]:
    """The reductions of tensors over all replicas.

    Args:
        values: for each replica of this process its tensors.
        pack: how many bytes are exchanged at once; 0 for as many as the strategy says.
    """
    if strategy._group.size > 1:
        specs = [TensorSpec(t.shape, t.dtype) for t in values[0]]
        exchange = _Exchange(strategy, len(values), kind, pack or strategy._pack)
        return _call(exchange, [t for row in values for t in row], specs)
    totals = [functools.reduce(tf.add, of_replicas) for of_replicas in zip(*values, strict=True)]
    return [_mean(total, strategy) for total in totals] if kind is ReduceOp.MEAN else totals


def _mean(total: Tensor, strategy: Any) -> Tensor:
    count = strategy.num_replicas_in_sync
    return total // count if total.dtype.is_integer else total / tf.constant(count, total.dtype)


def _call(fn: Callable[..., Any], tensors: Sequence[Tensor], specs: Sequence[TensorSpec]) -> list[Tensor]:
    return host.call(fn, "collective_all_reduce", tensors, specs)


class _Exchange:
    """The reduction of tensors that are there, with other processes."""

    def __init__(self, strategy: Any, local: int, kind: ReduceOp, pack: int) -> None:
        self.strategy, self.local, self.kind, self.pack = strategy, local, kind, pack

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        count = len(tensors) // self.local
        rows = [tensors[n * count:(n + 1) * count] for n in range(self.local)]
        totals: list[Any] = [None] * count
        with record.telling(()):
            for numbers in _packs(rows[0], self.pack):
                flat = np.stack([_flat([row[n] for n in numbers]) for row in rows])
                total, at = self.strategy._group.sum(flat, _added), 0
                for n in numbers:
                    like = rows[0][n]._array
                    totals[n] = wrap(total[at:at + like.size].reshape(like.shape).copy())
                    at += like.size
            return [_mean(t, self.strategy) for t in totals] if self.kind is ReduceOp.MEAN else totals


class _Meeting:
    """The reduction of tensors by which a replica that runs a compiled function meets the others."""

    def __init__(self, strategy: Any, kind: ReduceOp, pack: int) -> None:
        self.strategy, self.kind, self.pack = strategy, kind, pack

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        context = _here().replica
        if context is None or context._meeting is None or context.strategy is not self.strategy:
            raise RuntimeError("A function that reduces a value over replicas was traced in strategy.run, and is "
                               "called outside of it.")
        with record.telling(()):
            totals: list[Tensor] = context._meeting.join(
                context._number, list(tensors), lambda values: reduced(self.strategy, values, self.kind, self.pack))
        return totals


def _added(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total: np.ndarray = (wrap(a) + wrap(b))._array
    return total


def _flat(tensors: Sequence[Tensor]) -> np.ndarray:
    return np.concatenate([np.ascontiguousarray(t._array).reshape(-1) for t in tensors])


def _packs(tensors: Sequence[Tensor], most: int) -> Iterator[list[int]]:
    """The numbers of tensors that are exchanged together: of one dtype, in their order, up to some bytes."""
    open_: dict[Any, tuple[list[int], int]] = {}
    for n, t in enumerate(tensors):
        size = t._array.nbytes
        numbers, filled = open_.get(t.dtype, ([], 0))
        if numbers and filled + size > most:
            yield numbers
            numbers, filled = [], 0
        open_[t.dtype] = ([*numbers, n], filled + size)
    for numbers, _ in open_.values():
        yield numbers


# -- joins ----------------------------------------------------------------------------------------
def all_gather(context: Any, value: Any, axis: int) -> Any:
    """See `ReplicaContext.all_gather`."""
    tensors = [tensor(leaf) for leaf in nest.flatten(value)]
    strategy, meeting = context.strategy, context._meeting
    if meeting is None:
        return nest.pack(value, gathered(strategy, [tensors], axis))
    if current() is not meeting.trace:
        raise NotImplementedError("all_gather within a tf.function that strategy.run calls: let the function that "
                                  "calls strategy.run be the tf.function.")
    return nest.pack(value, meeting.join(context._number, tensors, lambda values: gathered(strategy, values, axis)))


def gathered(strategy: Any, values: Sequence[Sequence[Tensor]], axis: int) -> list[Tensor]:
    """Tensors joined over all replicas, in their order.

    Raises:
        ValueError: a tensor is a scalar.
    """
    if any(t.shape.rank == 0 for row in values for t in row):
        raise ValueError("A scalar cannot be gathered along an axis: give it one, as by tf.expand_dims(value, 0).")
    here = [row[0] if len(row) == 1 else tf.concat(row, axis) for row in zip(*values, strict=True)]
    if strategy._group.size == 1:
        return here
    rank_of = [len(t.shape) for t in here]
    specs = [TensorSpec([None if n == axis % rank else d for n, d in enumerate(t.shape)], t.dtype)
             for t, rank in zip(here, rank_of, strict=True)]

    def exchange(*tensors: Tensor) -> list[Tensor]:
        return [wrap(np.concatenate(strategy._group.gather(t._array), axis)) for t in tensors]
    return host.call(exchange, "collective_all_gather", here, specs)


# -- calls ----------------------------------------------------------------------------------------
def merge_call(context: Any, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """See `ReplicaContext.merge_call`."""
    strategy, meeting = context.strategy, context._meeting

    def once(given: list[Any]) -> Any:
        merged_args = [_merged([args[n] for args, _ in given]) for n in range(len(args))]
        merged_kwargs = {name: _merged([kwargs[name] for _, kwargs in given]) for name in kwargs}
        before = _place.set(Place(strategy, None))
        try:
            return fn(strategy, *merged_args, **merged_kwargs)
        finally:
            _place.reset(before)
    if meeting is None:
        return once([(args, kwargs)])
    result = meeting.join(context._number, (args, kwargs), once)
    return part(result, context._number)


def part(value: Any, number: int) -> Any:
    """A replica's part of a structure."""
    return nest.map_structure(lambda leaf: leaf.values[number] if isinstance(leaf, PerReplica) else leaf, value)


def _merged(values: list[Any]) -> Any:
    """An argument of all replicas as one: it itself where it is the same."""
    if len(values) == 1 or all(value is values[0] for value in values):
        return values[0]
    return nest.map_structure(lambda *leaves: leaves[0] if all(leaf is leaves[0] for leaf in leaves)
                              else PerReplica(leaves), *values)


def run_replicas(calls: Sequence[Callable[[], Any]], meeting: Any) -> list[Any]:
    """The results of a function for each replica of this process, which run in threads.

    Raises the error of the replica that failed first.
    """
    results: list[Any] = [None] * len(calls)

    def work(number: int, call: Callable[[], Any]) -> None:
        try:
            meeting.begin(number)
            results[number] = call()
        except Left:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again for the caller
            meeting.fail(error)
        finally:
            meeting.end(number)
    threads = [threading.Thread(target=contextvars.copy_context().run, args=(work, n, call), daemon=True)
               for n, call in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if meeting.error is not None:
        raise meeting.error
    return results
