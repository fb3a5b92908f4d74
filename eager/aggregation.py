"""What variables say of their copies in the replicas of a strategy (`twofold/distribute`): when these become equal, and
how."""

from __future__ import annotations

import enum

__all__ = ["VariableAggregation", "VariableSynchronization"]


class VariableAggregation(enum.Enum):
    """What becomes of what replicas assign to a variable (`tf.distribute`)."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class VariableSynchronization(enum.Enum):
    """When the copies of a variable become equal (`tf.distribute`)."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3
