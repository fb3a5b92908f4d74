"""`tf.train`: checkpoints of objects that hold state."""

from .checkpoint import Checkpoint, CheckpointOptions
from .files import list_variables, load_checkpoint, load_variable
from .manager import CheckpointManager, checkpoints_iterator
from .state import CheckpointState, get_checkpoint_state, latest_checkpoint

__all__ = [
    "Checkpoint", "CheckpointManager", "CheckpointOptions", "CheckpointState", "checkpoints_iterator",
    "get_checkpoint_state", "latest_checkpoint", "list_variables", "load_checkpoint", "load_variable",
]
