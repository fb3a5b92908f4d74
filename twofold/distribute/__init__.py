"""`tf.distribute`: one program as several replicas, in processes that MPI connects.

A strategy says which replicas there are; `run` calls a function for each, `reduce` makes one value of theirs.
"""

from __future__ import annotations

from twofold._front.namespace import publish

from . import cluster_resolver, experimental
from ._context import get_replica_context, get_strategy, has_strategy, in_cross_replica_context
from ._datasets import DistributedDataset, DistributedIterator, InputContext, InputOptions, InputReplicationMode
from ._extended import StrategyExtended
from ._replica import ReplicaContext
from ._strategy import (
    MirroredStrategy,
    MultiWorkerMirroredStrategy,
    OneDeviceStrategy,
    RunOptions,
    Strategy,
    experimental_set_strategy,
)
from ._values import (
    CrossDeviceOps,
    DistributedValues,
    HierarchicalCopyAllReduce,
    NcclAllReduce,
    ReduceOp,
    ReductionToOneDevice,
)
from .experimental import ParameterServerStrategy, TPUStrategy

__all__ = ["CrossDeviceOps", "DistributedDataset", "DistributedIterator", "DistributedValues",
           "HierarchicalCopyAllReduce", "InputContext", "InputOptions", "InputReplicationMode", "MirroredStrategy",
           "MultiWorkerMirroredStrategy", "NcclAllReduce", "OneDeviceStrategy", "ParameterServerStrategy", "ReduceOp",
           "ReductionToOneDevice", "ReplicaContext", "RunOptions", "Strategy", "StrategyExtended", "TPUStrategy",
           "cluster_resolver", "experimental", "experimental_set_strategy", "get_replica_context", "get_strategy",
           "has_strategy", "in_cross_replica_context"]

publish(__name__)
