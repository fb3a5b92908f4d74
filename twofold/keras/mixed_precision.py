"""Mixed precision (`tf.keras.mixed_precision`): computing in 16 bits with variables in float32.

The policies are those of `dtype_policies.py`, under the names that `tf.keras.mixed_precision` gives them. bfloat16 has
float32's range and needs nothing more; float16 needs a scaled loss, which `LossScaleOptimizer` is for.
"""

from __future__ import annotations

from twofold._front.namespace import publish

from .dtype_policies import DTypePolicy, dtype_policy, set_dtype_policy
from .optimizers.loss_scale import LossScaleOptimizer

__all__ = ["DTypePolicy", "LossScaleOptimizer", "Policy", "dtype_policy", "global_policy", "set_dtype_policy",
           "set_global_policy"]

Policy = DTypePolicy
global_policy = dtype_policy
set_global_policy = set_dtype_policy

publish(__name__)
