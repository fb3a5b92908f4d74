"""`tf.compat.v1.train`: TensorFlow 1's optimizers, rates that fall, the global step, savers and moving averages."""

from __future__ import annotations

from typing import Any

from twofold._front.namespace import publish
from twofold.train import (
    BytesList,
    Checkpoint,
    CheckpointManager,
    CheckpointOptions,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
    checkpoints_iterator,
    get_checkpoint_state,
    latest_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)

from .averages import ExponentialMovingAverage
from .optimizer import Optimizer
from .optimizers import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    ProximalAdagradOptimizer,
    ProximalGradientDescentOptimizer,
    RMSPropOptimizer,
)
from .rates import (
    cosine_decay,
    cosine_decay_restarts,
    exponential_decay,
    inverse_time_decay,
    linear_cosine_decay,
    natural_exp_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)
from .saver import (
    Saver,
    checkpoint_exists,
    get_checkpoint_mtimes,
    init_from_checkpoint,
    remove_checkpoint,
    update_checkpoint_state,
)
from .steps import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)

__all__ = [
    "AdadeltaOptimizer", "AdagradOptimizer", "AdamOptimizer", "BytesList", "Checkpoint", "CheckpointManager",
    "CheckpointOptions", "Example", "ExponentialMovingAverage", "Feature", "FeatureList", "FeatureLists", "Features",
    "FloatList", "FtrlOptimizer", "GradientDescentOptimizer", "Int64List", "MomentumOptimizer", "NewCheckpointReader",
    "Optimizer", "ProximalAdagradOptimizer", "ProximalGradientDescentOptimizer", "RMSPropOptimizer", "Saver",
    "SequenceExample", "assert_global_step", "checkpoint_exists", "checkpoints_iterator", "cosine_decay",
    "cosine_decay_restarts", "create_global_step", "exponential_decay", "get_checkpoint_mtimes", "get_checkpoint_state",
    "get_global_step", "get_or_create_global_step", "global_step", "init_from_checkpoint", "inverse_time_decay",
    "latest_checkpoint", "linear_cosine_decay", "list_variables", "load_checkpoint", "load_variable",
    "natural_exp_decay", "piecewise_constant", "piecewise_constant_decay", "polynomial_decay", "remove_checkpoint",
    "update_checkpoint_state",
]

NewCheckpointReader = load_checkpoint


def __getattr__(name: str) -> Any:
    if name == "summary_iterator":
        from ..summary import summary_iterator
        return summary_iterator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


publish(__name__)
