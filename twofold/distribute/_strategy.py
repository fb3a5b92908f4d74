"""Strategies: how many replicas a program runs as, where, and what they have in common.

A strategy knows the replicas of this process, by their devices, and the group of processes that it belongs to. Each
process runs the same program. What replicas exchange is `_collective.py`'s; how data are shared out, `_datasets.py`'s;
what libraries ask of a strategy beside its methods, `_extended.py`'s.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import replica
from twofold._front.api import listed, public, staged, tensor
from twofold.ir import nest
from twofold.runtime import devices as placement
from twofold.tracer.function import Function
from twofold.tracer.trace import current

from . import _collective as collective
from . import _datasets as datasets
from . import _line as line
from . import _transport as transport
from . import _variables
from ._context import Meeting, Place, _outside, _place
from ._extended import StrategyExtended
from ._replica import ReplicaContext
from ._values import DistributedValues, Mirrored, PerReplica, ReduceOp, local, part, regroup

__all__ = ["MirroredStrategy", "MultiWorkerMirroredStrategy", "OneDeviceStrategy", "RunOptions", "Strategy",
           "ValueContext", "experimental_set_strategy"]


class RunOptions:
    """Options of `Strategy.run`, which have no effect here.

    Args:
        experimental_enable_dynamic_batch_size, experimental_bucketizing_dynamic_shape, experimental_xla_options:
            without effect.
    """

    def __init__(self, experimental_enable_dynamic_batch_size: bool = True,
                 experimental_bucketizing_dynamic_shape: bool = False, experimental_xla_options: Any = None) -> None:
        self.experimental_enable_dynamic_batch_size = experimental_enable_dynamic_batch_size
        self.experimental_bucketizing_dynamic_shape = experimental_bucketizing_dynamic_shape
        self.experimental_xla_options = experimental_xla_options


class Strategy:
    """How a program runs as several replicas; programs use one of those that derive from it.

    >>> import twofold as tf
    >>> strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    >>> with strategy.scope():
    ...     w = tf.Variable(2.0)
    >>> @tf.function
    ... def step(x):
    ...     return strategy.run(lambda x: x * w, args=(x,))
    >>> strategy.reduce("SUM", step(tf.constant([1.0, 2.0])), axis=0).numpy()
    np.float32(6.0)
    """

    _is_default = _is_set = _mirrors = False
    _pack = 1 << 22  # bytes that are exchanged at once, where nobody says how many

    def __init__(self, devices: Sequence[str], group: transport.Group = transport.alone) -> None:
        """Args:
            devices: those of this process's replicas.
            group: the processes.
        """
        self._devices, self._group = tuple(listed(devices, "devices")), group
        collective.known(group)
        self._scopes: list[Any] = []

    # -- what there is ----------------------------------------------------------------------------
    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are in all processes."""
        return len(self._devices) * self._group.size

    @property
    def extended(self) -> StrategyExtended:
        """What libraries ask of a strategy beside these methods."""
        return StrategyExtended(self)

    @property
    def cluster_resolver(self) -> Any:
        """What tells the processes and this one's place among them; None where there is one process."""
        return None

    def _replica(self, number: int, meeting: Meeting | None) -> ReplicaContext:
        """The context of a replica of this process."""
        return ReplicaContext(self, self._group.rank * len(self._devices) + number, meeting, number)

    # -- scopes and calls -------------------------------------------------------------------------
    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """A block in which this strategy holds: variables are made for all replicas, with the first one's values.

        Raises:
            RuntimeError: this is in the scope of another strategy, or in a replica.
        """
        place = _place.get()
        if place is not None and place.strategy is not self and not place.strategy._is_set:
            raise RuntimeError("Must not enter a strategy's scope within that of another one.")
        if place is not None and place.replica is not None:
            raise RuntimeError("Must not enter a strategy's scope in what strategy.run calls.")
        if place is not None and place.strategy is self:
            yield self
            return
        before, outer = _place.set(Place(self, None)), replica.scope.set(self)
        try:
            with tf.variable_creator_scope(self._create), tf.device(self._devices[0]):
                yield self
        finally:
            _place.reset(before)
            replica.scope.reset(outer)

    def _create(self, make: Callable[..., tf.Variable], **kwargs: Any) -> tf.Variable:
        """A variable, which has the value of the first process in all, and a copy for each replica of this one. In a
        replica all but the first get what the first one made."""
        place = _place.get()
        context: Any = None if place is None else place.replica
        shares = context is not None and context._meeting is not None and not context._meeting.at_once
        if shares and context._number:
            return context._made(kwargs.get("name"))
        variable = self._for_all(make, kwargs)
        if shares:
            context._meeting.made.setdefault(kwargs.get("name"), []).append(variable)
        return variable

    def _for_all(self, make: Callable[..., tf.Variable], kwargs: dict[str, Any]) -> tf.Variable:
        variable = make(**kwargs)
        if isinstance(variable, _variables.DistributedVariable):
            return variable
        if self._group.size > 1:
            with tf.init_scope():
                variable.assign(tensor(self._group.broadcast(variable.numpy()), variable.dtype))
        if self.num_replicas_in_sync == 1 and not self._mirrors:
            variable._distribute_strategy = self  # type: ignore[attr-defined]  # libraries ask for it
            return variable
        return _variables.copied(variable, lambda initial_value: make(**{**kwargs, "initial_value": initial_value}),
                                 self)

    def run(self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None, options: Any = None) -> Any:
        """Calls a function for each replica, with that replica's part of the arguments.

        Args:
            fn: the function.
            args, kwargs: its arguments; of a `tf.distribute.DistributedValues` among them each replica gets its own.
            options: `tf.distribute.RunOptions`, without effect.
        Returns:
            What it gives; a `DistributedValues` where this process has several replicas.
        Raises:
            RuntimeError: this is in a replica.
        """
        del options
        if not isinstance(args, (list, tuple)):
            raise ValueError(f"positional args must be a list or tuple, got {type(args)}")
        place = _place.get()
        if place is not None and place.replica is not None and not place.replica.strategy._is_default:
            raise RuntimeError("strategy.run must not be called in what strategy.run calls.")
        if isinstance(fn, Function) and len(self._devices) > 1:
            if not self._on_gpus:
                return self._of_all(fn)(*args, **(kwargs or {}))
            return self._run_each(fn, args, kwargs, at_once=current() is None)  # a program runs on one of them
        return self._run_each(fn, args, kwargs)

    @property
    def _on_gpus(self) -> bool:
        return any(placement.parse(name)[0] == "GPU" for name in self._devices)

    def _of_all(self, fn: Function) -> Function:
        """A function that is called in each replica as one of all of them: their exchanges are parts of its graph."""
        known: Any = fn.__dict__.setdefault("_of_all", weakref.WeakKeyDictionary())
        made: Any = known.get(self)
        if made is None:
            strategy, function = weakref.ref(self), weakref.ref(fn)  # which have this one

            def run(*args: Any, **kwargs: Any) -> Any:
                of, called = strategy(), function()
                assert of is not None and called is not None
                return of._run_each(called.plain, args, kwargs)
            made = known[self] = Function(run, fn._settings._replace(input_signature=None))
        return made

    def _run_each(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Any, at_once: bool = False) -> Any:
        """The results of a function for each replica; see `run`.

        Args:
            at_once: whether they run side by side rather than in turns.
        """
        fn, given = fn if current() is None else staged(fn), (tuple(args), dict(kwargs or {}))
        if len(self._devices) == 1:
            return self._run_one(fn, part(given, 0), self._replica(0, None))
        meeting = Meeting(len(self._devices), current(), at_once)
        calls = [functools.partial(self._run_one, fn, part(given, n), self._replica(n, meeting))
                 for n in range(len(self._devices))]
        return regroup(collective.run_replicas(calls, meeting))

    def _run_one(self, fn: Callable[..., Any], given: tuple[tuple[Any, ...], dict[str, Any]],
                 replica: ReplicaContext) -> Any:
        args, kwargs = given
        with replica, tf.device(replica.devices[0]):
            return fn(*args, **kwargs)

    @contextlib.contextmanager
    def _outside(self) -> Iterator[None]:
        """A block in which code runs for all replicas, from within one."""
        place, here = _place.set(None), replica.here.set(replica.Replica(0, 1))
        try:
            with self.scope():
                yield
        finally:
            _place.reset(place)
            replica.here.reset(here)

    # -- values -----------------------------------------------------------------------------------
    def reduce(self, reduce_op: Any, value: Any, axis: int | None) -> Any:
        """What `run` gave for all replicas as one value.

        Args:
            reduce_op: a `tf.distribute.ReduceOp`, or its name.
            value: a tensor for each replica, or a structure of them.
            axis: an axis of each replica's tensor that is reduced, too; None for none.
        Returns:
            Tensors in the structure of `value`, the same in all processes.

        >>> import twofold as tf
        >>> strategy = tf.distribute.get_strategy()
        >>> strategy.reduce("MEAN", tf.constant([1.0, 3.0]), axis=0).numpy()
        np.float32(2.0)
        """
        kind = collective.operation(reduce_op)
        place = _place.get()
        if place is not None and place.replica is not None and not self._is_default:
            raise RuntimeError("strategy.reduce is called outside of what strategy.run calls; a replica has "
                               "get_replica_context().all_reduce.")
        if axis is not None:
            rows = _Rows(value, len(self._devices))
            return nest.pack(rows.structure, self._over_axis(rows, kind, axis))
        leaves = nest.flatten(value, expand_composites=False)
        own = [self._own(kind, leaf) for leaf in leaves]
        dense = [n for n, rows in enumerate(own) if len(rows) and not isinstance(rows[0], tf.IndexedSlices)]
        totals = collective.reduced(self, [[tensor(rows[k]) for rows in map(own.__getitem__, dense)]
                                           for k in range(len(self._devices))], kind) if dense else []
        results = dict(zip(dense, totals, strict=True))
        return nest.pack(value, [
            results[n] if n in results else self._reduced_slices(kind, own[n]) if own[n] else _whole(leaf)
            for n, leaf in enumerate(leaves)], expand_composites=False)

    def _own(self, kind: ReduceOp, value: Any) -> tuple[Any, ...]:
        """What is to be reduced of this process's replicas; nothing where the mean is what all have.

        Raises:
            ValueError: it is the same for all of several, which have no sum.
        """
        one = not isinstance(value, DistributedValues)
        if isinstance(value, Mirrored) or one and len(self._devices) > 1:
            if kind is ReduceOp.MEAN:
                return ()
            if self.num_replicas_in_sync > 1:
                raise ValueError(f"A non-DistributedValues value {value} cannot be reduced with the given reduce op "
                                 f"{kind}.")
        return (value,) if one else value.values

    def _reduced_slices(self, kind: ReduceOp, own: Sequence[Any]) -> Any:
        """The slices of all replicas, whose sum or mean they are."""
        values, indices = collective.gathered(self, [[one.values, one.indices] for one in own], 0)
        if kind is ReduceOp.MEAN:
            values = values / tf.constant(self.num_replicas_in_sync, values.dtype)
        return tf.IndexedSlices(values, indices, own[0].dense_shape)

    def _over_axis(self, rows: _Rows, kind: ReduceOp, axis: int) -> list[Any]:
        """Sums or means of elements along an axis, of all replicas."""
        sums = [[tf.reduce_sum(t, axis) for t in row] for row in rows.tensors]
        totals = collective.reduced(self, sums, ReduceOp.SUM)
        if kind is ReduceOp.SUM:
            return totals
        counts = [[tf.cast(tf.shape(t)[axis], tf.int64) for t in row] for row in rows.tensors]
        return [total / tf.cast(count, total.dtype) for total, count in zip(
            totals, collective.reduced(self, counts, ReduceOp.SUM), strict=True)]

    def gather(self, value: Any, axis: int) -> Any:
        """What `run` gave for all replicas, joined along an axis in the order of the replicas.

        Args:
            value: a tensor for each replica, or a structure of them; sizes may differ along the axis.
            axis: the axis.

        >>> import twofold as tf
        >>> tf.distribute.get_strategy().gather(tf.constant([1, 2]), axis=0).numpy().tolist()
        [1, 2]
        """
        if self._group.size == 1 and len(self._devices) > 1 and not any(
                isinstance(leaf, DistributedValues) for leaf in nest.flatten(value, expand_composites=False)):
            return value
        rows = _Rows(value, len(self._devices))
        return nest.pack(rows.structure, collective.gathered(self, rows.tensors, axis))

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of this process's replicas.

        Args:
            value: what `run` gave, a structure of such values, or a variable.

        >>> import twofold as tf
        >>> tf.distribute.get_strategy().experimental_local_results(3)
        (3,)
        """
        if isinstance(value, DistributedValues):
            return value.values
        if not nest.is_nested(value, expand_composites=False):
            return (value,)
        return tuple([local(value, n) for n in range(len(self._devices))])

    # -- data -------------------------------------------------------------------------------------
    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """A dataset of batches for all replicas together, whose elements are parts for this process's replicas.

        Args:
            dataset: of batches, which are those of all replicas together; its `AutoShardPolicy` says which process
                reads what.
            options: `tf.distribute.InputOptions`, without effect.
        Returns:
            An iterable whose elements `run` takes as arguments.
        """
        del options
        return datasets.distributed(self, dataset)

    def distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any = None) -> Any:
        """A dataset of which each process makes its own.

        Args:
            dataset_fn: called with a `tf.distribute.InputContext`, gives a dataset of batches for one replica each.
            options: `tf.distribute.InputOptions`, without effect.
        Returns:
            An iterable whose elements `run` takes as arguments.
        """
        del options
        about = datasets.InputContext(self._group.size, self._group.rank, self.num_replicas_in_sync)
        return datasets.per_replica(self, dataset_fn(about))

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(self, value_fn: Callable[[Any], Any]) -> Any:
        """A value for each replica of this process.

        Args:
            value_fn: called with a `tf.distribute.experimental.ValueContext`.
        """
        first = self._group.rank * len(self._devices)
        values = [value_fn(ValueContext(first + n, self.num_replicas_in_sync)) for n in range(len(self._devices))]
        if len(values) == 1 and not self._mirrors:
            return values[0]
        return nest.map_structure(lambda *leaves: PerReplica(leaves), *values, expand_composites=False)

    def experimental_make_numpy_dataset(self, numpy_input: Any) -> Any:
        """A `tf.data.Dataset` of the rows of arrays.

        Args:
            numpy_input: an array, or a structure of them.
        """
        return tf.data.Dataset.from_tensor_slices(numpy_input)

    def __deepcopy__(self, memo: Any) -> Strategy:
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.num_replicas_in_sync} replicas>"


class _Rows:
    """A structure of values of replicas as tensors, a row for each replica.

    Attributes:
        structure: that of one replica's value.
        tensors: the rows.
    """

    def __init__(self, value: Any, count: int) -> None:
        given = [local(value, n) for n in range(count)]
        self.structure = given[0]
        self.tensors = [[tensor(leaf) for leaf in nest.flatten(one)] for one in given]


def _whole(value: Any) -> Any:
    """What all replicas have."""
    return value.values[0] if isinstance(value, DistributedValues) else value


class ValueContext:
    """What a function knows that gives a replica's value.

    Args:
        replica_id_in_sync_group: the replica's number.
        num_replicas_in_sync: how many replicas there are.
    """

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group, self.num_replicas_in_sync = replica_id_in_sync_group, num_replicas_in_sync


class _DefaultStrategy(Strategy):
    """The strategy outside of any scope: one replica, on whatever device ops choose."""

    _is_default = True

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        yield self

    def run(self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None, options: Any = None) -> Any:
        return fn(*args, **(kwargs or {}))

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        return dataset

    def distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any = None) -> Any:
        return dataset_fn(datasets.InputContext())

    def reduce(self, reduce_op: Any, value: Any, axis: int | None) -> Any:
        return value if axis is None and collective.operation(reduce_op) else super().reduce(reduce_op, value, axis)

    def gather(self, value: Any, axis: int) -> Any:
        return value

    @contextlib.contextmanager
    def _outside(self) -> Iterator[None]:
        place = _place.set(Place(self, None))
        try:
            yield
        finally:
            _place.reset(place)


_default = _DefaultStrategy(["/cpu:0"])
_outside.append(Place(_default, _default._replica(0, None)))


@public
def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Has a strategy hold from here on, without a block.

    Args:
        strategy: None for the default one.
    Raises:
        RuntimeError: this is in the scope of another one.
    """
    place = _place.get()
    if place is not None and not getattr(place.strategy, "_is_set", False):
        raise RuntimeError("experimental_set_strategy must not be called inside of a strategy's scope.")
    if place is not None:
        place.strategy._scopes.pop().close()
        place.strategy._is_set = False
    if strategy is not None:
        stack = contextlib.ExitStack()
        stack.enter_context(strategy.scope())
        strategy._scopes.append(stack)
        strategy._is_set = True


class OneDeviceStrategy(Strategy):
    """One replica, on a device by name.

    Args:
        device: such as "/cpu:0" or "/gpu:0".

    >>> import twofold as tf
    >>> tf.distribute.OneDeviceStrategy("/cpu:0").num_replicas_in_sync
    1
    """

    def __init__(self, device: str) -> None:
        super().__init__([placement.canonical(device)])


class MirroredStrategy(Strategy):
    """One replica on each of several devices of this process, which run in threads.

    Variables that are made in the scope have a copy for each. Gradients are summed over all in the order of the
    devices, so that results are those of as many processes.

    Args:
        devices: their names; by default all GPUs, or all CPUs where there are none
            (`tf.config.set_logical_device_configuration` makes several of one).
        cross_device_ops: accepted, without effect.
    Raises:
        ValueError: a device is named twice.

    >>> import twofold as tf
    >>> tf.distribute.MirroredStrategy(["/cpu:0"]).num_replicas_in_sync
    1
    """

    _mirrors = True

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None) -> None:
        del cross_device_ops
        if devices is None:
            devices = _own_devices()
        devices = [placement.canonical(device) for device in devices]
        if len(set(devices)) != len(devices):
            raise ValueError(f"MirroredStrategy: devices must differ; got {list(devices)}.")
        super().__init__(devices)


def _own_devices() -> list[str]:
    """The names of the devices of which each has a replica: all GPUs, or all CPUs where there are none."""
    there = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    return [device.name for device in there]


def _check_alike(group: transport.Group, devices: int) -> None:
    """Raises ValueError where processes have different numbers of replicas."""
    counts = np.concatenate(group.gather(np.array([devices]))).tolist()
    if len(set(counts)) > 1:
        raise ValueError(f"All processes must have as many devices; their numbers are {counts}.")


class MultiWorkerMirroredStrategy(Strategy):
    """One replica in each of several processes, which MPI connects; several, where a process has several GPUs
    (`CUDA_VISIBLE_DEVICES` says which are its own), or no GPU and several CPUs
    (`tf.config.set_logical_device_configuration` makes several of one).

    Each process runs the same program. Either `mpiexec -n 4 python train.py` starts all of them, or their user starts
    each, with the environment variable `TF_CONFIG` that names all and says which it is. Variables that are made in the
    scope begin with the first process's values; gradients are summed over all, so that they stay equal. Without
    `mpiexec` and `TF_CONFIG` there is one replica.

    Args:
        cluster_resolver: what names the processes; by default `TFConfigClusterResolver`. Where `mpiexec` has started
            them, MPI knows them.
        communication_options: `tf.distribute.experimental.CommunicationOptions`, of which `bytes_per_pack` and
            `timeout_seconds` count.
    Raises:
        ImportError: there is no mpi4py (`pip install 'twofold[mpi]'`).
        ValueError: what names the processes makes no sense.
        DeadlineExceededError: not all of them have come in time.
        FailedPreconditionError: they contradict each other.
        UnavailableError: the first one's address cannot be used, or it was lost.
    """

    _mirrors = True

    def __init__(self, cluster_resolver: Any = None, communication_options: Any = None) -> None:
        from .cluster_resolver import MpiClusterResolver, TFConfigClusterResolver
        resolver = TFConfigClusterResolver() if cluster_resolver is None else cluster_resolver
        group = transport.world(resolver, getattr(communication_options, "timeout_seconds", None))
        self._resolver = MpiClusterResolver(group) if group.launched else resolver
        devices = _own_devices()
        super().__init__(devices, line.of(group))
        self._pack = getattr(communication_options, "bytes_per_pack", 0) or self._pack
        if group.size > 1:
            _check_alike(group, len(devices))
            datasets.share_randomness(group)

    @property
    def cluster_resolver(self) -> Any:
        """What tells the processes and this one's place among them."""
        return self._resolver
