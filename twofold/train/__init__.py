"""`tf.train`: checkpoints of objects that hold state."""

from typing import Any

from .checkpoint import Checkpoint, CheckpointOptions
from .files import list_variables, load_checkpoint, load_variable
from .manager import CheckpointManager, checkpoints_iterator
from .state import CheckpointState, get_checkpoint_state, latest_checkpoint

__all__ = [
    "Checkpoint", "CheckpointManager", "CheckpointOptions", "CheckpointState", "checkpoints_iterator",
    "get_checkpoint_state", "latest_checkpoint", "list_variables", "load_checkpoint", "load_variable",
]

_FROM_V1 = frozenset({"AdagradOptimizer", "AdamOptimizer", "GradientDescentOptimizer", "MomentumOptimizer", "Optimizer",
                      "RMSPropOptimizer", "create_global_step", "exponential_decay", "get_global_step",
                      "get_or_create_global_step", "global_step"})


def __getattr__(name: str) -> Any:
    if name not in _FROM_V1:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from twofold.compat.v1 import train
    return getattr(train, name)
