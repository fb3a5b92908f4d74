"""`tf.train`: checkpoints of objects that hold state, and the messages that records hold."""

from typing import Any

from twofold._front import older as _older
from twofold._front.namespace import publish

from .checkpoint import Checkpoint, CheckpointOptions
from .cluster import ClusterSpec
from .coordinator import Coordinator
from .example import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from .files import latest_checkpoint, list_variables, load_checkpoint, load_variable
from .manager import CheckpointManager, checkpoints_iterator
from .state import CheckpointState, get_checkpoint_state
from .views import TrackableView

__all__ = [
    "BytesList", "Checkpoint", "CheckpointManager", "CheckpointOptions", "CheckpointState", "ClusterSpec",
    "Coordinator", "Example", "Feature", "FeatureList", "FeatureLists", "Features", "FloatList", "Int64List",
    "SequenceExample", "checkpoints_iterator", "get_checkpoint_state", "latest_checkpoint", "list_variables",
    "load_checkpoint", "load_variable", "TrackableView",
]

_FROM_V1 = frozenset({
    "AdadeltaOptimizer", "AdagradOptimizer", "AdamOptimizer", "ExponentialMovingAverage", "FtrlOptimizer",
    "GradientDescentOptimizer", "MomentumOptimizer", "Optimizer", "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer", "RMSPropOptimizer", "Saver", "checkpoint_exists", "cosine_decay",
    "cosine_decay_restarts", "create_global_step", "exponential_decay", "get_global_step", "get_or_create_global_step",
    "global_step", "init_from_checkpoint", "inverse_time_decay", "linear_cosine_decay", "natural_exp_decay",
    "piecewise_constant", "piecewise_constant_decay", "polynomial_decay", "summary_iterator", "update_checkpoint_state",
})  # ExponentialMovingAverage is a name of TensorFlow 2, too; all others are looked for by older programs


def __getattr__(name: str) -> Any:
    if name not in _FROM_V1:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_older.module("train"), name)


publish(__name__)
