"""Strategies: how many replicas a program runs as, where, and what they have in common.

A strategy knows the replicas of this process, by their devices, and the group of processes that it belongs to. Each
process runs the same program. What replicas exchange is `_collective.py`'s; how data are shared out, `_datasets.py`'s.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import replica
from twofold._front.api import staged, tensor
from twofold.ir import nest
from twofold.tracer.trace import current

from . import _collective as collective
from . import _datasets as datasets
from . import _line as line
from . import _transport as transport
from . import _variables
from ._context import Meeting, Place, _outside, _place
from ._replica import ReplicaContext
from ._values import PerReplica, ReduceOp

__all__ = ["MirroredStrategy", "MultiWorkerMirroredStrategy", "OneDeviceStrategy", "RunOptions", "Strategy",
           "StrategyExtended", "ValueContext", "experimental_set_strategy"]


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

    _is_default = _is_set = False
    _pack = 1 << 22  # bytes that are exchanged at once, where nobody says how many

    def __init__(self, devices: Sequence[str], group: transport.Group = transport.alone) -> None:
        """Args:
            devices: those of this process's replicas.
            group: the processes.
        """
        self._devices, self._group = tuple(devices), group
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
        before, outer = _place.set(Place(self, None)), replica.scope.set(self)
        try:
            with tf.variable_creator_scope(self._create), tf.device(self._devices[0]):
                yield self
        finally:
            _place.reset(before)
            replica.scope.reset(outer)

    def _create(self, make: Callable[..., tf.Variable], **kwargs: Any) -> tf.Variable:
        """A variable, which has the value of the first process in all, and a copy for each replica of this one."""
        variable = make(**kwargs)
        if self._group.size > 1:
            with tf.init_scope():
                variable.assign(tensor(self._group.broadcast(variable.numpy()), variable.dtype))
        if self.num_replicas_in_sync == 1:
            return variable
        return _variables.copied(variable, lambda initial_value: make(**{**kwargs, "initial_value": initial_value}),
                                 self, kwargs.get("synchronization"), kwargs.get("aggregation"))

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
        place = _place.get()
        if place is not None and place.replica is not None and not place.replica.strategy._is_default:
            raise RuntimeError("strategy.run must not be called in what strategy.run calls.")
        fn, given = fn if current() is None else staged(fn), (tuple(args), dict(kwargs or {}))
        if len(self._devices) == 1:
            return self._run_one(fn, given, self._replica(0, None))
        meeting = Meeting(len(self._devices), current())
        calls = [functools.partial(self._run_one, fn, collective.part(given, n), self._replica(n, meeting))
                 for n in range(len(self._devices))]
        return _together(collective.run_replicas(calls, meeting))

    def _run_one(self, fn: Callable[..., Any], given: tuple[tuple[Any, ...], dict[str, Any]],
                 replica: ReplicaContext) -> Any:
        args, kwargs = given
        with replica, tf.device(replica.devices[0]):
            return fn(*args, **kwargs)

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
        rows = self._rows(value)
        if axis is not None:
            return nest.pack(rows.structure, self._over_axis(rows, kind, axis))
        return nest.pack(rows.structure, collective.reduced(self, rows.tensors, kind))

    def _rows(self, value: Any) -> _Rows:
        return _Rows(value, len(self._devices))

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
        rows = self._rows(value)
        return nest.pack(rows.structure, collective.gathered(self, rows.tensors, axis))

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of this process's replicas.

        Args:
            value: what `run` gave.

        >>> import twofold as tf
        >>> tf.distribute.get_strategy().experimental_local_results(3)
        (3,)
        """
        return value.values if isinstance(value, PerReplica) else (value,)

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
        return _together([value_fn(ValueContext(first + n, self.num_replicas_in_sync))
                          for n in range(len(self._devices))])

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
        given = [collective.part(value, n) for n in range(count)]
        self.structure = given[0]
        self.tensors = [[tensor(leaf) for leaf in nest.flatten(one)] for one in given]


def _together(results: list[Any]) -> Any:
    """The results of replicas as one structure."""
    if len(results) == 1:
        return results[0]
    if any(result is None for result in results):
        return None
    return nest.map_structure(lambda *leaves: PerReplica(leaves), *results)


class ValueContext:
    """What a function knows that gives a replica's value.

    Args:
        replica_id_in_sync_group: the replica's number.
        num_replicas_in_sync: how many replicas there are.
    """

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group, self.num_replicas_in_sync = replica_id_in_sync_group, num_replicas_in_sync


class StrategyExtended:
    """What libraries ask of a strategy beside its methods.

    Args:
        strategy: the strategy.
    """

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of this process's replicas."""
        return self._strategy._devices

    parameter_devices = worker_devices

    @property
    def should_checkpoint(self) -> bool:
        """Whether this process writes checkpoints: the first one does."""
        return self._strategy._group.rank == 0

    should_save_summary = should_checkpoint

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any = None, options: Any = None) -> Any:
        """Like `Strategy.reduce` without an axis; `destinations` and `options` have no effect."""
        del destinations, options
        return self._strategy.reduce(reduce_op, value, None)

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Sequence[tuple[Any, Any]],
                        options: Any = None) -> list[Any]:
        """The reductions of several values, exchanged together.

        Args:
            reduce_op: a `tf.distribute.ReduceOp`, or its name.
            value_destination_pairs: values, each with a destination, which has no effect.
            options: without effect.
        """
        del options
        values: list[Any] = self._strategy.reduce(reduce_op, [value for value, _ in value_destination_pairs], None)
        return values

    def update(self, var: Any, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None,
               group: bool = True) -> Any:
        """Calls `fn(var, *args, **kwargs)`; `group` has no effect."""
        del group
        return fn(var, *args, **(kwargs or {}))

    def colocate_vars_with(self, colocate_with_variable: Any) -> contextlib.AbstractContextManager[None]:
        """A block whose variables lie where another does; a variable lies where its initial value does.

        Args:
            colocate_with_variable: a variable of this strategy.
        """
        del colocate_with_variable
        return contextlib.nullcontext()

    def _in_multi_worker_mode(self) -> bool:  # which Keras asks
        return self._strategy._group.size > 1

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable is one for all replicas: all are."""
        return isinstance(v, tf.Variable)

    def call_for_each_replica(self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """The same as `Strategy.run`."""
        return self._strategy.run(fn, args, kwargs)


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


_default = _DefaultStrategy(["/cpu:0"])
_outside.append(Place(_default, _default._replica(0, None)))


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
        super().__init__([device])


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

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None) -> None:
        del cross_device_ops
        if devices is None:
            devices = _own_devices()
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
