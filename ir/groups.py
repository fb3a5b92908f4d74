"""Groups of replicas by name: what the ops of `ops/collective.py` exchange tensors with.

A graph holds the name of a group and how many replicas it reduces over; a process says what a name stands for
(`register`), and an exchange resolves it when it begins. An exchange has a begin and an end, between which others
compute. What groups there are, and how their members reach one another, is `tf.distribute`'s.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .errors import FailedPreconditionError, op_error
from .types import Attrs

__all__ = ["Pending", "ReplicaGroup", "begin", "exchanged", "register", "takes"]


class Pending(Protocol):
    """An exchange that has begun."""

    def wait(self) -> Sequence[np.ndarray]:
        """The results, when they are there.

        Raises:
            Exception: whatever went wrong with the exchange.
        """


class ReplicaGroup(Protocol):
    """Replicas that exchange tensors."""

    def takes(self, op: str, arrays: Sequence[Any], attrs: Attrs) -> bool:
        """Whether an exchange may begin with arrays that lie in memory of another device, as they are. Its results may
        lie there, too. Else it begins with copies on the host."""

    def begin(self, op: str, arrays: Sequence[np.ndarray], attrs: Attrs) -> Pending:
        """Begins an exchange. All members begin the same ones in the same order.

        Args:
            op: the name of an op of `ops/collective.py`.
            arrays: its operands, which nobody changes as long as it is not done; on the host, unless `takes` was asked.
            attrs: all of its attributes.
        """


_groups: dict[str, ReplicaGroup] = {}


def register(name: str, group: ReplicaGroup) -> None:
    """Has graphs that name a group exchange with this one from now on."""
    _groups[name] = group


def begin(op: str, arrays: Sequence[np.ndarray], attrs: Attrs) -> Pending:
    """Begins an exchange in the group that `attrs` name.

    Raises:
        FailedPreconditionError: this process is in no such group.
    """
    if attrs["replicas"] == attrs.get("rows", 1):
        return _Alone(op, arrays, attrs)
    group = _groups.get(attrs["group"])
    if group is None:
        raise op_error(FailedPreconditionError, op, f"it is of {attrs['replicas']} replicas, the group "
                       f"{attrs['group']!r}, to which this process does not belong.", hint="make the strategy of "
                       "tf.distribute under which the function was traced, in as many processes, before it is called.")
    return group.begin(op, arrays, attrs)


def takes(op: str, arrays: Sequence[Any], attrs: Attrs) -> bool:
    """Whether an exchange takes arrays that lie in memory of another device; see `ReplicaGroup`."""
    group = None if attrs["replicas"] == attrs.get("rows", 1) else _groups.get(attrs["group"])
    return group is not None and group.takes(op, arrays, attrs)


def exchanged(op: str, *arrays: np.ndarray, **attrs: object) -> tuple[np.ndarray, ...]:
    """The results of an exchange from its begin to its end."""
    return tuple(begin(op, arrays, attrs).wait())


class _Alone:
    """The exchange of replicas that are all of this process."""

    def __init__(self, op: str, arrays: Sequence[np.ndarray], attrs: Attrs) -> None:
        self._arrays, self._rows, self._mean = arrays, attrs.get("rows", 1), attrs.get("reduction") == "MEAN"

    def wait(self) -> list[np.ndarray]:
        count = len(self._arrays) // self._rows
        rows = [self._arrays[n * count:(n + 1) * count] for n in range(self._rows)]
        totals = [functools.reduce(np.add, of_rows) for of_rows in zip(*rows, strict=True)]
        return [_divided(total, self._rows) for total in totals] if self._mean and self._rows > 1 else totals


def _divided(total: np.ndarray, count: int) -> np.ndarray:
    if total.dtype.kind in "iu":
        return np.asarray(total // count, total.dtype)
    return np.asarray(total / np.asarray(count, total.dtype), total.dtype)
