"""Values that differ from replica to replica, and how they become one.

A value of a strategy with one replica in this process is that replica's. Several come as a `PerReplica`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import twofold as tf

__all__ = ["CrossDeviceOps", "DistributedValues", "HierarchicalCopyAllReduce", "NcclAllReduce", "PerReplica",
           "ReduceOp", "ReductionToOneDevice"]


class ReduceOp(enum.Enum):
    """How values of replicas become one: their sum, or their mean.

    >>> import twofold as tf
    >>> tf.distribute.ReduceOp("MEAN")
    <ReduceOp.MEAN: 'MEAN'>
    """

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: Any) -> ReduceOp:
        """The reduction that a `tf.VariableAggregation` asks for.

        Raises:
            ValueError: it asks for none.
        """
        known = {tf.VariableAggregation.SUM: ReduceOp.SUM, tf.VariableAggregation.MEAN: ReduceOp.MEAN}
        if aggregation not in known:
            raise ValueError(f"Could not convert from `tf.VariableAggregation` {aggregation} to "
                             "`tf.distribute.ReduceOp`.")
        return known[aggregation]


class CrossDeviceOps:
    """How replicas of a process exchange values, for `MirroredStrategy`; all ways are one here."""


class ReductionToOneDevice(CrossDeviceOps):
    """Accepted, without effect: sums are taken in the order of the replicas in any case.

    Args:
        reduce_to_device, accumulation_fn: without effect.
    """

    def __init__(self, reduce_to_device: Any = None, accumulation_fn: Any = None) -> None:
        del reduce_to_device, accumulation_fn


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Accepted, without effect: sums are taken in the order of the replicas in any case.

    Args:
        num_packs: without effect.
    """

    def __init__(self, num_packs: int = 1) -> None:
        del num_packs


class NcclAllReduce(HierarchicalCopyAllReduce):
    """Accepted, without effect: sums are taken in the order of the replicas in any case."""


class DistributedValues:
    """The base of values that have a part for each replica of this process."""


class PerReplica(DistributedValues):
    """A value for each replica of this process.

    Args:
        values: in the order of the replicas.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = tuple(values)

    @property
    def values(self) -> tuple[Any, ...]:
        """The replicas' values in order."""
        return self._values

    def __trace_parts__(self) -> tuple[Any, ...]:
        return self._values  # which traced functions take and give as tensors

    def __repr__(self) -> str:
        lines = ",\n".join(f"  {n}: {value!r}" for n, value in enumerate(self._values))
        return f"PerReplica:{{\n{lines}\n}}"
