"""`ReplicaContext`: what code knows that runs for one replica, and what it may ask of the others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from twofold._front import replica
from twofold._front.scopes import variable_creator_scope
from twofold.ir import surroundings

from . import _collective as collective
from ._context import Meeting, Place, _place

__all__ = ["ReplicaContext"]


class ReplicaContext:
    """What code knows that runs for one replica; `tf.distribute.get_replica_context` gives it.

    >>> import twofold as tf
    >>> context = tf.distribute.get_replica_context()
    >>> context.replica_id_in_sync_group, context.num_replicas_in_sync
    (0, 1)
    """

    def __init__(self, strategy: Any, replica_id_in_sync_group: int, meeting: Meeting | None = None,
                 number: int = 0) -> None:
        """Args:
            strategy: that runs the replica.
            replica_id_in_sync_group: its number among all replicas.
            meeting: where it meets the others of its process, where there are any.
            number: its number among those.
        """
        self._strategy, self._id, self._meeting, self._number = strategy, replica_id_in_sync_group, meeting, number
        self._taken: dict[str | None, int] = {}  # how many of the first replica's variables this one has, by name

    @property
    def strategy(self) -> Any:
        """The strategy that runs the replica."""
        return self._strategy

    @property
    def replica_id_in_sync_group(self) -> int:
        """The replica's number, from 0."""
        return self._id

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are."""
        count: int = self._strategy.num_replicas_in_sync
        return count

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that the replica runs on: one."""
        return (self._strategy._devices[self._number],)

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """The sum or mean over all replicas of what each calls this with, which each gets.

        Additions are made in the order of the replicas' numbers. Gradients pass: they are reduced in the same way.

        Args:
            reduce_op: a `tf.distribute.ReduceOp`, or its name.
            value: a tensor, or a structure of them, of the same shapes in all replicas.
            options: `tf.distribute.experimental.CommunicationOptions`.
        Returns:
            Reduced tensors in the structure of `value`.

        >>> import twofold as tf
        >>> context = tf.distribute.get_replica_context()
        >>> context.all_reduce("SUM", tf.constant(3.0)).numpy()
        np.float32(3.0)
        """
        return collective.all_reduce(self, reduce_op, value, options)

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """What all replicas call this with, joined along an axis in the order of their numbers, which each gets.

        Args:
            value: a tensor, or a structure of them; sizes may differ along the axis.
            axis: the axis, of tensors that have one.
            options: accepted, without effect.
        """
        del options
        return collective.all_gather(self, value, axis)

    def merge_call(self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """Calls a function once for all replicas, when all have come here.

        Args:
            merge_fn: called as `merge_fn(strategy, *args, **kwargs)` in the cross-replica context; of each argument it
                gets the values of all replicas of this process, as `tf.distribute.DistributedValues` where there are
                several.
            args, kwargs: this replica's.
        Returns:
            This replica's part of the result.
        """
        return collective.merge_call(self, merge_fn, args, kwargs or {})

    def _made(self, name: str | None) -> Any:
        """The variable that the first replica has made where this one would make one.

        Raises:
            RuntimeError: it has made none of this name.
        """
        made, at = self._meeting.made.get(name, []), self._taken.get(name, 0)  # type: ignore[union-attr]
        if at >= len(made):
            raise RuntimeError(f"Tried to create variable {name} with mismatching name on device {self._number}")
        self._taken[name] = at + 1
        return made[at]

    def __enter__(self) -> ReplicaContext:
        with contextlib.ExitStack() as stack:
            place = _place.set(Place(self._strategy, self))
            stack.callback(_place.reset, place)
            here = replica.here.set(replica.Replica(self._id, self.num_replicas_in_sync))
            stack.callback(replica.here.reset, here)
            if self.num_replicas_in_sync > 1:  # a function that is called here and elsewhere has a trace for each
                stack.enter_context(surroundings.within(replica=(self._id, self.num_replicas_in_sync)))
            if not self._strategy._is_default:
                stack.enter_context(variable_creator_scope(self._strategy._create))
            self._entered = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._entered.close()
