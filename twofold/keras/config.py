"""`tf.keras.config`: the settings that layers and metrics fall back to."""

from __future__ import annotations

from twofold import debugging
from twofold._front.api import public
from twofold._front.namespace import publish

from ._settings import (
    disable_interactive_logging,
    enable_interactive_logging,
    epsilon,
    floatx,
    image_data_format,
    is_interactive_logging_enabled,
    max_epochs,
    max_steps_per_epoch,
    set_epsilon,
    set_floatx,
    set_image_data_format,
    set_max_epochs,
    set_max_steps_per_epoch,
)
from .dtype_policies import dtype_policy, set_dtype_policy

__all__ = ["backend", "disable_flash_attention", "disable_interactive_logging", "disable_traceback_filtering",
           "dtype_policy", "enable_flash_attention", "enable_interactive_logging", "enable_traceback_filtering",
           "epsilon", "floatx", "image_data_format", "is_flash_attention_enabled", "is_interactive_logging_enabled",
           "is_traceback_filtering_enabled", "max_epochs", "max_steps_per_epoch",
           "set_dtype_policy", "set_epsilon", "set_floatx", "set_image_data_format", "set_max_epochs",
           "set_max_steps_per_epoch"]

_flash: list[bool] = []  # what was asked for last


@public
def backend() -> str:
    """The name of the backend: always "tensorflow", whose names and meanings these are.

    >>> import twofold as tf
    >>> tf.keras.config.backend()
    'tensorflow'
    """
    return "tensorflow"


@public
def enable_flash_attention() -> None:
    """Say that flash attention is wanted: it has no effect, one kernel computes attention.

    >>> import twofold as tf
    >>> tf.keras.config.enable_flash_attention()
    >>> tf.keras.config.is_flash_attention_enabled()
    True
    """
    _flash[:] = [True]


@public
def disable_flash_attention() -> None:
    """Say that flash attention is not wanted: it has no effect, one kernel computes attention."""
    _flash[:] = [False]


@public
def is_flash_attention_enabled() -> bool | None:
    """What was asked for last, None if nothing was."""
    return _flash[0] if _flash else None


enable_traceback_filtering = debugging.enable_traceback_filtering
disable_traceback_filtering = debugging.disable_traceback_filtering
is_traceback_filtering_enabled = debugging.is_traceback_filtering_enabled


publish(__name__)
