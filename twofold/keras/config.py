"""`tf.keras.config`: the settings that layers and metrics fall back to."""

from __future__ import annotations

from twofold._front.api import public
from twofold._front.namespace import publish

from ._settings import epsilon, floatx, image_data_format, set_epsilon, set_floatx, set_image_data_format
from .dtype_policies import dtype_policy, set_dtype_policy

__all__ = ["dtype_policy", "epsilon", "floatx", "image_data_format", "is_traceback_filtering_enabled",
           "set_dtype_policy", "set_epsilon", "set_floatx", "set_image_data_format"]


@public
def is_traceback_filtering_enabled() -> bool:
    """Whether tracebacks show the user's frames only: always."""
    return True


publish(__name__)
