"""`StrategyExtended`: what libraries that update variables by themselves, such as Keras, ask of a strategy.

Values are reduced by the strategy (`_strategy.py`); the copies that are updated are the variable's (`_variables.py`).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import staged
from twofold.ir import nest, surroundings
from twofold.tracer.trace import current

from . import _variables
from ._context import Place, _here, _place
from ._values import DistributedValues, MirroredValues, container_of, part, regroup

__all__ = ["StrategyExtended"]


class StrategyExtended:
    """What libraries ask of a strategy beside its methods.

    Args:
        strategy: the strategy.
    """

    def __init__(self, strategy: Any) -> None:
        self._strategy = strategy

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of this process's replicas.

        Raises:
            RuntimeError: it is the default strategy, which has none of its own.
        """
        if self._strategy._is_default:
            raise RuntimeError("worker_devices() method unsupported by default tf.distribute.Strategy.")
        return self._strategy._devices

    parameter_devices = worker_devices

    @property
    def should_checkpoint(self) -> bool:
        """Whether this process writes checkpoints: the first one does."""
        return self._strategy._group.rank == 0

    should_save_summary = should_checkpoint

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """The sum or mean of the values of all replicas, for devices.

        Args:
            reduce_op: a `tf.distribute.ReduceOp`, or its name.
            value: a value of each replica, or a structure of them.
            destinations: for which devices. A variable or another value of several replicas stands for the devices of
                all of them: there is a tensor for each, in a `tf.distribute.DistributedValues`. The name of a device,
                or a tensor, stands for one.
            options: without effect.
        Raises:
            RuntimeError: this is in a replica. ValueError: `destinations` is none of these.

        >>> import twofold as tf
        >>> strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
        >>> strategy.extended.reduce_to("SUM", tf.constant(2.0), "/cpu:0").numpy()
        np.float32(2.0)
        """
        del options
        total = self._strategy.reduce(reduce_op, value, None)
        return nest.map_structure(lambda leaf: self.broadcast_to(leaf, destinations), total, expand_composites=False)

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Sequence[tuple[Any, Any]],
                        options: Any = None) -> list[Any]:
        """The reductions of several values, exchanged together; see `reduce_to`.

        Args:
            reduce_op: a `tf.distribute.ReduceOp`, or its name.
            value_destination_pairs: values, each with its destinations.
            options: without effect.
        """
        del options
        totals = self._strategy.reduce(reduce_op, [value for value, _ in value_destination_pairs], None)
        return [self.broadcast_to(total, destinations) for total, (_, destinations) in zip(
            totals, value_destination_pairs, strict=True)]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """A tensor, or as many of it as there are devices; see `reduce_to`.

        Args:
            tensor: the tensor.
            destinations: see `reduce_to`.
        """
        if not isinstance(destinations, (DistributedValues, str, tf.Tensor, tf.Variable, tf.IndexedSlices)):
            raise ValueError("destinations must be one of a `DistributedValues` object, a tf.Variable object, or a "
                             f"device string; got {destinations!r}.")
        if not isinstance(destinations, DistributedValues) or len(destinations.values) == 1:
            return tensor
        return MirroredValues([_copy_of(tensor) for _ in destinations.values])

    def update(self, var: Any, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None,
               group: bool = True) -> Any:
        """Calls a function for each copy of a variable, on its device.

        Args:
            var: a variable of this strategy.
            fn: called as `fn(copy, *args, **kwargs)`. Values of replicas among its arguments are those of the copy's
                replica, and other variables are read and assigned as that replica's copies.
            args, kwargs: its arguments.
            group: whether results are one value, rather than tuples with one for each copy.
        Returns:
            The function's result, or a `tf.distribute.DistributedValues` of results where there are several copies.
            Where the function returns the copy, as `assign` does, it is the variable.
        Raises:
            ValueError: the variable has no copies for the replicas of this strategy.

        >>> import twofold as tf
        >>> v = tf.Variable(1.0)
        >>> tf.distribute.get_strategy().extended.update(v, lambda v, x: v.assign_add(x), args=(2.0,)).numpy()
        np.float32(3.0)
        """
        replica, given = _here().replica, (tuple(args), dict(kwargs or {}))
        if replica is not None and not replica.strategy._is_default:
            return replica.merge_call(lambda _, *merged, **named: self.update(var, fn, merged, named, group),
                                      given[0], given[1])
        strategy = self._strategy
        if isinstance(var, _variables.DistributedVariable):
            copies = var.values
        elif len(strategy._devices) == 1:
            copies = (var,)
        else:
            raise ValueError(f"`update` takes variables that were made in the scope of the strategy; got {var!r}.")
        fn = fn if current() is None else staged(fn)
        results = [self._updated(n, functools.partial(fn, copy), part(given, n)) for n, copy in enumerate(copies)]
        result = regroup(results, MirroredValues)
        return result if group else nest.map_structure(strategy.experimental_local_results, result,
                                                       expand_composites=False)

    def _updated(self, number: int, fn: Callable[..., Any], given: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
        """The result of a function for a copy, by its number."""
        args, kwargs = given
        strategy = self._strategy
        if strategy._is_default:
            return fn(*args, **kwargs)
        with strategy.scope(), tf.device(strategy._devices[number]), surroundings.within(update=number):
            place = _place.set(Place(strategy, None, number))
            try:
                return fn(*args, **kwargs)
            finally:
                _place.reset(place)

    def read_var(self, v: Any) -> Any:
        """The value of a variable, of all replicas.

        Args:
            v: a variable of this strategy.
        """
        return v.read_value()

    def value_container(self, value: Any) -> Any:
        """The variable of which a value is a copy, or the value where it is none.

        Args:
            value: a value.
        """
        container = container_of(value)
        return value if container is None else container

    @property
    def experimental_require_static_shapes(self) -> bool:
        """Whether sizes must be known in traces: they need not."""
        return False

    def colocate_vars_with(self, colocate_with_variable: Any) -> contextlib.AbstractContextManager[None]:
        """A block whose variables lie where another does; a variable lies where its initial value does.

        Args:
            colocate_with_variable: a variable of this strategy.
        Raises:
            RuntimeError: this is not in the strategy's scope. ValueError: it is no variable of this strategy.
        """
        if self._strategy._is_default:
            return contextlib.nullcontext()
        if _here().strategy is not self._strategy:
            raise RuntimeError("Need to be inside \"with strategy.scope()\" for colocate_vars_with.")
        if not self.variable_created_in_scope(colocate_with_variable):
            raise ValueError("`colocate_vars_with` must only be passed a variable created in this "
                             f"tf.distribute.Strategy.scope(), not: {colocate_with_variable!r}")
        return contextlib.nullcontext()

    def _in_multi_worker_mode(self) -> bool:  # which Keras asks
        return self._strategy._group.size > 1

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was made in the scope of this strategy."""
        of = getattr(v, "_distribute_strategy", None)
        return of is None if self._strategy._is_default else of is self._strategy

    def call_for_each_replica(self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """The same as `Strategy.run`."""
        return self._strategy.run(fn, args, kwargs)


def _copy_of(value: Any) -> Any:
    """A tensor, or slices, that are another object."""
    if isinstance(value, tf.IndexedSlices):
        return tf.IndexedSlices(tf.identity(value.values), tf.identity(value.indices), value.dense_shape)
    return tf.identity(value)
