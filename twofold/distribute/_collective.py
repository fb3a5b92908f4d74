"""Sums, means and joins over replicas: by additions, or by the ops `collective_all_reduce` and `collective_all_gather`.

Where all replicas of a process are traced into one graph, or run op by op, they meet there, and what they have is added
up by ops. What processes exchange, and replicas of which each runs a compiled function, are the ops of
`ir/ops/collective.py`: how these reach the others is said here (`Processes`, `Replicas`). Additions are made in the
order of the replicas' numbers each time. Tensors are exchanged in packs, which are cut when a function is traced.
"""

from __future__ import annotations

import contextvars
import functools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import tensor
from twofold.eager import record
from twofold.eager.tensor import Tensor, wrap
from twofold.ir import graph as g
from twofold.ir import groups, nest, ops
from twofold.ir.dims import Dim
from twofold.runtime.log import log
from twofold.tracer.trace import current

from ._context import Left, _here
from ._line import Line
from ._transport import Group
from ._values import ReduceOp, part, regroup

__all__ = ["all_gather", "all_reduce", "gathered", "known", "merge_call", "of_first", "operation", "reduced",
           "run_replicas"]


PROCESSES, REPLICAS = "processes", "replicas"  # groups, as graphs name them


def all_reduce(context: Any, reduce_op: Any, value: Any, options: Any = None) -> Any:
    """See `ReplicaContext.all_reduce`."""
    kind = operation(reduce_op)
    leaves = nest.flatten(value, expand_composites=False)
    if any(isinstance(leaf, tf.IndexedSlices) for leaf in leaves):
        return nest.pack(value, [
            _slices(context, kind, leaf) if isinstance(leaf, tf.IndexedSlices) else
            all_reduce(context, kind, leaf, options) for leaf in leaves], expand_composites=False)
    tensors = [tensor(leaf) for leaf in nest.flatten(value)]
    strategy = context.strategy
    pack = getattr(options, "bytes_per_pack", 0) or strategy._pack
    if strategy.num_replicas_in_sync == 1 or not tensors:
        return nest.pack(value, tensors)
    if kind is ReduceOp.MEAN and any(t.dtype.is_integer for t in tensors):
        totals = [all_reduce(context, _kind_for(t, kind), t, options) for t in tensors]
        return nest.pack(value, [_mean(total, strategy.num_replicas_in_sync) if t.dtype.is_integer else total
                                 for t, total in zip(tensors, totals, strict=True)])
    return nest.pack(value, _told(context, tensors, kind, pack))


def _kind_for(t: Tensor, kind: ReduceOp) -> ReduceOp:
    """The reduction that is exchanged: the mean of integers is of another dtype, and made of their sum."""
    return ReduceOp.SUM if t.dtype.is_integer else kind


def _slices(context: Any, kind: ReduceOp, slices: Any) -> Any:
    """The slices of all replicas, one after another, whose sum or mean they are."""
    if context.num_replicas_in_sync == 1:
        return slices
    values, indices = all_gather(context, [slices.values, slices.indices], 0)
    if kind is ReduceOp.MEAN:
        values = _mean(values, context.num_replicas_in_sync)
    return tf.IndexedSlices(values, indices, slices.dense_shape)


def _told(context: Any, tensors: Sequence[Tensor], kind: ReduceOp, pack: int) -> list[Tensor]:
    """The reduced tensors, for one replica of those that come here; tapes know of it."""
    meeting = context._meeting
    if meeting is None or current() is not meeting.trace:
        return _joined(context, tensors, tensors, kind, pack)

    @tf.custom_gradient
    def joined(*operands: Tensor) -> Any:  # each replica has its own tapes
        return _joined(context, operands, tensors, kind, pack), lambda *cts: _joined(context, cts, cts, kind, pack)
    results = joined(*tensors)
    return [results] if isinstance(results, Tensor) else list(results)


def _joined(context: Any, tensors: Sequence[Tensor], given: Sequence[Tensor], kind: ReduceOp,
            pack: int) -> list[Tensor]:
    """The reduced tensors, for one replica of those that come here.

    Args:
        given: the tensors as the replica has them, by which those are known that all replicas share.
    """
    strategy, meeting = context.strategy, context._meeting
    if meeting is None:
        return reduced(strategy, [tensors], kind, pack)
    if current() is meeting.trace:  # as the replicas began: all of them are traced, or none
        totals: list[Tensor] = meeting.join(context._number, (tensors, given),
                                            lambda values: _together(strategy, values, kind, pack))
        return totals
    return _reduced(REPLICAS, [tensors], kind, strategy.num_replicas_in_sync, pack)


def _together(strategy: Any, values: Sequence[tuple[Sequence[Tensor], Sequence[Tensor]]], kind: ReduceOp,
              pack: int) -> list[Tensor]:
    """The reductions of the tensors of replicas; one tensor that all share is one value, as in TensorFlow, and not one
    of each."""
    rows, given = [tensors for tensors, _ in values], [known for _, known in values]
    shared = [strategy._group.size == 1 and all(row[n] is given[0][n] for row in given) for n in range(len(rows[0]))]
    others = [n for n, is_one in enumerate(shared) if not is_one]
    totals = list(rows[0])
    if others:
        for n, total in zip(others, reduced(strategy, [[row[n] for n in others] for row in rows], kind, pack),
                            strict=True):
            totals[n] = total
    return totals


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


def reduced(strategy: Any, values: Sequence[Sequence[Tensor]], kind: ReduceOp, pack: int = 0) -> list[Tensor]:
    """The reductions of tensors over all replicas.

    Args:
        values: for each replica of this process its tensors.
        pack: how many bytes are exchanged at once; 0 for as many as the strategy says.
    """
    if kind is ReduceOp.MEAN and any(t.dtype.is_integer for t in values[0]):
        kinds = [_kind_for(t, kind) for t in values[0]]
        totals = [reduced(strategy, [[row[n]] for row in values], own, pack)[0] for n, own in enumerate(kinds)]
        return [total if own is kind else _mean(total, strategy.num_replicas_in_sync)
                for own, total in zip(kinds, totals, strict=True)]
    if strategy._group.size > 1:
        return _reduced(PROCESSES, values, kind, strategy.num_replicas_in_sync, pack or strategy._pack)
    totals = [functools.reduce(tf.add, of_replicas) for of_replicas in zip(*values, strict=True)]
    return [_mean(total, strategy.num_replicas_in_sync) for total in totals] if kind is ReduceOp.MEAN else totals


def _mean(total: Tensor, count: int) -> Tensor:
    """The mean of so many from their sum; that of integers is in float64."""
    return total / (count if total.dtype.is_integer else tf.constant(count, total.dtype))


def _mean_alike(total: Tensor, count: int) -> Tensor:
    """The mean in the dtype of the sum, as the op gives it; that of integers is rounded down."""
    return total // count if total.dtype.is_integer else _mean(total, count)


def _reduced(group: str, values: Sequence[Sequence[Tensor]], kind: ReduceOp, replicas: int,
             pack: int) -> list[Tensor]:
    """The reductions by the op, of which there is one for each pack."""
    totals: list[Any] = [None] * len(values[0])
    for numbers in _packs(values[0], pack):
        results: Any = ops.collective_all_reduce(*[row[n] for row in values for n in numbers], reduction=kind.value,
                                                 group=group, replicas=replicas, rows=len(values))
        for n, total in zip(numbers, results, strict=True):
            totals[n] = total
    return totals


def _packs(tensors: Sequence[Tensor], most: int) -> list[list[int]]:
    """The numbers of tensors that are exchanged together: of one dtype, up to some bytes, in the order in which they
    are computed."""
    packs: list[list[int]] = []
    filled: dict[Any, tuple[list[int], float]] = {}
    place = _places(tensors)
    for n in sorted(range(len(tensors)), key=place.__getitem__):
        pack, size = filled.get(tensors[n].dtype, ([], math.inf))
        size += _bytes(tensors[n])
        if size > most:
            pack, size = [], _bytes(tensors[n])
            packs.append(pack)
        pack.append(n)
        filled[tensors[n].dtype] = pack, size
    return sorted(packs, key=lambda pack: place[pack[-1]])


def _bytes(t: Tensor) -> float:
    """How large a tensor is: as large as can be where some size is unknown."""
    return math.inf if any(isinstance(d, Dim) for d in t.dims) else math.prod(t.dims) * t.dtype.size


def _places(tensors: Sequence[Tensor]) -> list[int]:
    """Where the trace has computed each tensor: of gradients, those of the last layers first. What is done to them
    afterwards, element by element, does not count."""
    trace = current()
    if trace is None:
        return [0] * len(tensors)
    place: dict[g.Value, int] = {}
    for n, node in enumerate(trace.graph.nodes):
        at = n
        if node.op in (g.CONSTANT, g.SIZE) or not isinstance(node.op, g.Construct) and "shape_only" in node.op.traits:
            at = -1
        elif not isinstance(node.op, g.Construct) and (node.op.body is not None or node.op.view is not None):
            at = max([place.get(v, -1) for v in node.inputs], default=-1)
        place.update(dict.fromkeys(node.outputs, at))
    return [place.get(trace.lift(t), -1) for t in tensors]


# -- exchanges --------------------------------------------------------------------------------------
class Processes:
    """The replicas of all processes, of which each has as many.

    Args:
        line: what processes exchange with one another.
    """

    def __init__(self, line: Line) -> None:
        self._line = line

    def takes(self, op: str, arrays: Sequence[Any], attrs: dict[str, Any]) -> bool:
        """Whether an exchange takes arrays as they lie on a GPU; see `ir.groups.ReplicaGroup`."""
        if attrs.get("rows", 1) > 1:
            _tell_of_rows()
            return False
        if self._line.gpus is None:
            from . import _gpus  # imports what is for GPUs
            self._line.gpus = gpus = _gpus.Gpus()
            self._line.closing.append(gpus.close)
        offered: int = self._line.gpus.offer(arrays)
        return offered > 0

    def begin(self, op: str, arrays: Sequence[np.ndarray], attrs: dict[str, Any]) -> Any:
        """Begins an exchange; see `ir.groups.ReplicaGroup`.

        Raises:
            FailedPreconditionError: there are not as many processes as it takes.
        """
        replicas, rows = attrs["replicas"], attrs.get("rows", 1)
        if replicas != self._line.size * rows:
            raise tf.errors.FailedPreconditionError(
                None, op, f"{op}: it is of {replicas} replicas, {rows} in each process; there are {self._line.size} "
                "processes.")
        stays = not isinstance(arrays[0], np.ndarray)
        if op == "collective_all_gather":
            about, axis = _about(op, "", tuple([(a.dtype, None) for a in arrays])), attrs["axis"]
            if stays:
                return _OnGpu(self._line, about, self._line.gpus.packed(arrays), self._line.gpus.gather,
                              lambda group, arrays: _gathered(group, arrays, axis),
                              functools.partial(_joined_there, axis=axis))
            return self._line.begin(about, lambda group: _gathered(group, arrays, axis))
        count, kind = len(arrays) // rows, attrs["reduction"]
        about = _about(op, f" ({kind})", tuple([(a.dtype, a.shape) for a in arrays[:count]]))
        divided_by = replicas if kind == "MEAN" else 1
        if stays:
            return _OnGpu(self._line, about, self._line.gpus.packed(arrays, are_summed=True), self._line.gpus.sum,
                          lambda group, arrays: _summed(group, [arrays], divided_by),
                          functools.partial(_divided, by=divided_by))
        return self._line.begin(about, lambda group: _summed(
            group, [arrays[n * count:(n + 1) * count] for n in range(rows)], divided_by))


class _OnGpu:
    """An exchange of what lies on this process's GPU; where others have it elsewhere, by way of the host.

    Args:
        packed: what is exchanged (`_gpus.Packed`).
        there: makes it from GPU to GPU (`_gpus.Gpus`).
        here: makes it of arrays of the host.
        end: makes results of what `there` gives.
    """

    def __init__(self, line: Line, about: str, packed: Any, there: Callable[[Any, Group], Sequence[Any]],
                 here: Callable[[Group, list[np.ndarray]], list[np.ndarray]],
                 end: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        gpus, self._end = line.gpus, end

        def call(group: Group) -> Sequence[Any]:
            try:
                if gpus.meet(group, packed.gpu, line.offers):
                    return there(packed, group)
            except BaseException as error:
                line.broken = tf.errors.UnavailableError(None, None, f"An exchange before has failed: {error}")
                raise
            return here(group, packed.on_host())
        self._task = line.begin(about, call, lambda: gpus.offer(packed.arrays))

    def wait(self) -> Sequence[Any]:
        results: Sequence[Any] = self._task.wait()
        return results if isinstance(results[0], np.ndarray) else self._end(results)


def _divided(totals: Sequence[Any], by: int) -> Sequence[Any]:
    """Means from sums on a GPU."""
    return totals if by == 1 else [_mean_alike(wrap(total), by)._memory for total in totals]


def _joined_there(parts: Sequence[Callable[[], Sequence[Any]]], axis: int) -> Sequence[Any]:
    """What processes have, on a GPU."""
    return [tf.concat([wrap(part) for part in of_all()], axis)._memory for of_all in parts]


@functools.cache
def _tell_of_rows() -> None:
    """Says once why exchanges go by way of the host."""
    log("device", "sums of processes go by way of the host: there are several replicas in a process")


@functools.lru_cache(4096)
def _about(op: str, how: str, arrays: tuple[tuple[np.dtype, tuple[int, ...] | None], ...]) -> str:
    """What is exchanged, as text."""
    return f"{op}{how} of " + ", ".join([f"{dtype}{'' if shape is None else list(shape)}" for dtype, shape in arrays])


def _gathered(group: Group, arrays: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    return [np.concatenate(group.gather(a), axis) for a in arrays]


def _summed(group: Group, rows: Sequence[Sequence[np.ndarray]], divided_by: int) -> list[np.ndarray]:
    """The sums or means of arrays of one dtype, for each replica of this process a row of them."""
    total, at, results = group.sum(_laid_out(rows), _added), 0, []
    for like in rows[0]:
        part = total[at:at + like.size].reshape(like.shape)
        if divided_by > 1:
            part = _mean_alike(wrap(part), divided_by)._array
        elif part.size * 2 < total.size:  # else whoever keeps it would keep the pack
            part = part.copy()
        results.append(part)
        at += like.size
    return results


def _laid_out(rows: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
    """The elements of each row, one array's after another's."""
    if len(rows) == 1 and len(rows[0]) == 1:
        return np.ascontiguousarray(rows[0][0]).reshape(1, -1)
    flat = np.empty((len(rows), sum(a.size for a in rows[0])), rows[0][0].dtype)
    for n, row in enumerate(rows):
        at = 0
        for a in row:
            flat[n, at:at + a.size] = a.reshape(-1)
            at += a.size
    return flat


def _added(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total: np.ndarray = (wrap(a) + wrap(b))._array
    return total


class Replicas:
    """The replicas of a strategy where each of this process runs a compiled function of its own, by which they meet."""

    def takes(self, op: str, arrays: Sequence[Any], attrs: dict[str, Any]) -> bool:
        """Whether an exchange takes arrays as they lie on a GPU; see `ir.groups.ReplicaGroup`."""
        return False

    def begin(self, op: str, arrays: Sequence[np.ndarray], attrs: dict[str, Any]) -> Any:
        """Begins an exchange; see `ir.groups.ReplicaGroup`.

        Raises:
            FailedPreconditionError: this is no replica of that many.
        """
        context = _here().replica
        if context is None or context._meeting is None or context.num_replicas_in_sync != attrs["replicas"]:
            raise tf.errors.FailedPreconditionError(
                None, op, f"{op}: a function that was traced in strategy.run, for one of {attrs['replicas']} replicas, "
                "is called outside of it.")
        return _Met(context, list(map(wrap, arrays)), op, attrs)


class _Met:
    """An exchange of replicas of this process."""

    def __init__(self, context: Any, tensors: list[Tensor], op: str, attrs: dict[str, Any]) -> None:
        self._strategy, self._op, self._attrs = context.strategy, op, attrs
        self._end = context._meeting.begin_exchange(context._number, tensors, self._combined)

    def wait(self) -> Sequence[np.ndarray]:
        arrays: Sequence[np.ndarray] = self._end()
        return arrays

    def _combined(self, values: list[list[Tensor]]) -> Callable[[], Sequence[np.ndarray]]:
        attrs = self._attrs
        if "reduction" in attrs and self._strategy._group.size > 1:
            arrays = [t._array for row in values for t in row]
            return groups.begin(
                self._op, arrays, {**attrs, "group": PROCESSES, "rows": len(values)}).wait
        with record.telling(()):
            made = reduced(self._strategy, values, ReduceOp(attrs["reduction"])) if "reduction" in attrs else \
                gathered(self._strategy, values, attrs["axis"])
        return lambda: [t._array for t in made]


def known(group: Group) -> None:
    """Has graphs that name processes exchange with those of a group from now on."""
    if isinstance(group, Line):
        groups.register(PROCESSES, Processes(group))


groups.register(REPLICAS, Replicas())


# -- joins ----------------------------------------------------------------------------------------
def all_gather(context: Any, value: Any, axis: int) -> Any:
    """See `ReplicaContext.all_gather`."""
    tensors = [tensor(leaf) for leaf in nest.flatten(value)]
    strategy, meeting = context.strategy, context._meeting
    if not tensors:
        return value
    if meeting is None:
        return nest.pack(value, gathered(strategy, [tensors], axis))
    if current() is not meeting.trace:  # a function that this replica alone is in
        return nest.pack(value, ops.collective_all_gather(*tensors, axis=axis, group=REPLICAS,
                                                          replicas=strategy.num_replicas_in_sync))
    joined = meeting.join(context._number, tensors, lambda values: gathered(strategy, values, axis))
    return nest.pack(value, [tf.identity(t) for t in joined])  # each replica has a tensor of its own


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
    joined: Any = ops.collective_all_gather(*here, axis=axis, group=PROCESSES, replicas=strategy._group.size)
    return list(joined)


# -- calls ----------------------------------------------------------------------------------------
def merge_call(context: Any, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """See `ReplicaContext.merge_call`."""
    strategy, meeting = context.strategy, context._meeting

    def once(given: list[Any]) -> Any:
        merged_args, merged_kwargs = regroup(given)
        with strategy._outside():
            return fn(strategy, *merged_args, **merged_kwargs)
    given = (tuple(args), dict(kwargs))
    if meeting is None:
        return once([given])
    if current() is not meeting.trace:
        raise RuntimeError(
            "`merge_call` called while defining a new graph or a tf.function. This can often happen if the function "
            "`fn` passed to `strategy.run()` contains a nested `@tf.function`, and the nested `@tf.function` contains "
            "a synchronization point, or if `fn` uses a control flow statement that contains one in its body. Please "
            "call it in `fn` itself, or decorate `fn` with `@tf.function`.")
    result = meeting.join(context._number, given, lambda values: meeting.outside.copy().run(once, values))
    return part(result, context._number)


def of_first(context: Any, value: Any) -> Any:
    """What the first replica has, in all: a tensor, or slices."""
    strategy, meeting = context.strategy, context._meeting
    if strategy._group.size == 1:
        if meeting is None:
            return value
        if current() is meeting.trace:
            return meeting.join(context._number, value, lambda values: values[0])
    if isinstance(value, tf.IndexedSlices):
        value = value if context._id == 0 else tf.IndexedSlices(value.values[:0], value.indices[:0], value.dense_shape)
    elif context._id:
        value = tf.zeros_like(value)
    return all_reduce(context, ReduceOp.SUM, value)


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
    meeting.wait()
    for thread in threads:
        thread.join()
    if meeting.error is not None:
        raise meeting.error
    return results
