"""The settings that layers and metrics fall back to: the dtype of floats, a small number, where channels are.

`tf.keras.config` shows them; dtype policies, which begin with the dtype of floats, are `dtype_policies.py`'s.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, TypeVar

import twofold as tf
from twofold._front.api import one_int, public

__all__ = ["disable_interactive_logging", "enable_interactive_logging", "epsilon", "floatx", "image_data_format",
           "is_interactive_logging_enabled", "limited", "max_epochs", "max_steps_per_epoch", "set_epsilon",
           "set_floatx", "set_image_data_format", "set_max_epochs", "set_max_steps_per_epoch"]

Asked = TypeVar("Asked", bound=int | None)


def _of_environment(name: str) -> int | None:
    """A limit that the environment sets, for a trial of a script without a change of it."""
    text = os.environ.get(name)
    return int(text) if text else None


_settings: dict[str, Any] = {"floatx": "float32", "epsilon": 1e-7, "image_data_format": "channels_last",
                             "max_epochs": _of_environment("KERAS_MAX_EPOCHS"),
                             "max_steps_per_epoch": _of_environment("KERAS_MAX_STEPS_PER_EPOCH")}


@public
def floatx() -> str:
    """The name of the dtype that floats have by default.

    >>> import twofold as tf
    >>> tf.keras.config.floatx()
    'float32'
    """
    return _settings["floatx"]


@public
def set_floatx(value: str) -> None:
    """Make `value` ("float16", "bfloat16", "float32" or "float64") the default dtype of floats.

    Raises:
        ValueError: it is another.
    """
    name = tf.as_dtype(value).name
    if name not in ("float16", "bfloat16", "float32", "float64"):
        raise ValueError(f"Unknown `floatx` value: {value}. Expected one of float16, bfloat16, float32, float64.")
    _settings["floatx"] = name


@public
def epsilon() -> float:
    """The small number that keeps divisions and logarithms finite.

    >>> import twofold as tf
    >>> tf.keras.config.epsilon()
    1e-07
    """
    return _settings["epsilon"]


@public
def set_epsilon(value: float) -> None:
    """Make `value` the small number that keeps divisions and logarithms finite."""
    _settings["epsilon"] = float(value)


@public
def image_data_format() -> str:
    """Where the channels of images are: "channels_last" or "channels_first".

    >>> import twofold as tf
    >>> tf.keras.config.image_data_format()
    'channels_last'
    """
    return _settings["image_data_format"]


@public
def set_image_data_format(data_format: str) -> None:
    """Say where the channels of images are by default.

    Args:
        data_format: "channels_last" or "channels_first".
    Raises:
        ValueError: it is neither.
    """
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError("The `data_format` argument must be one of {'channels_first', 'channels_last'}. "
                         f"Received: data_format={data_format!r}")
    _settings["image_data_format"] = data_format


@public
def max_epochs() -> int | None:
    """How many epochs `fit` takes at most, None for as many as it is told."""
    return _settings["max_epochs"]


@public
def set_max_epochs(max_epochs: int | None) -> None:
    """Have `fit` take so many epochs at most, for a trial; the environment's KERAS_MAX_EPOCHS does the same.

    Args:
        max_epochs: a number, or None for no limit.

    >>> import twofold as tf
    >>> tf.keras.config.set_max_epochs(2)
    >>> tf.keras.config.max_epochs()
    2
    >>> tf.keras.config.set_max_epochs(None)
    """
    _settings["max_epochs"] = _limit(max_epochs, "max_epochs")


@public
def max_steps_per_epoch() -> int | None:
    """How many steps an epoch of `fit`, `evaluate` and `predict` takes at most, None for as many as there are."""
    return _settings["max_steps_per_epoch"]


@public
def set_max_steps_per_epoch(max_steps_per_epoch: int | None) -> None:
    """Have `fit`, `evaluate` and `predict` take so many steps at most, for a trial.

    The environment's KERAS_MAX_STEPS_PER_EPOCH does the same.

    Args:
        max_steps_per_epoch: a number, or None for no limit.

    >>> import twofold as tf
    >>> tf.keras.config.set_max_steps_per_epoch(2)
    >>> tf.keras.config.max_steps_per_epoch()
    2
    >>> tf.keras.config.set_max_steps_per_epoch(None)
    """
    _settings["max_steps_per_epoch"] = _limit(max_steps_per_epoch, "max_steps_per_epoch")


_interactive = [True]  # whether progress is drawn, and not logged


@public
def enable_interactive_logging() -> None:
    """Draw progress on standard output, as is done from the beginning.

    >>> import twofold as tf
    >>> tf.keras.config.enable_interactive_logging()
    >>> tf.keras.config.is_interactive_logging_enabled()
    True
    """
    _interactive[:] = [True]


@public
def disable_interactive_logging() -> None:
    """Tell of progress by a line an epoch in Python's logging, under "twofold", and draw nothing."""
    _interactive[:] = [False]


@public
def is_interactive_logging_enabled() -> bool:
    """Whether progress is drawn on standard output, and not logged."""
    return _interactive[0]


def _limit(value: Any, name: str) -> int | None:
    if value is None:
        return None
    number = one_int(value, name)
    if number < 1:
        raise ValueError(f"{name} must be at least 1, or None for no limit; got {number}.")
    return number


def limited(asked: Asked, name: str) -> Asked | int:
    """A number of epochs or steps, or the limit of that name where it is less; a warning says so."""
    limit = _settings[name]
    if limit is None or (asked is not None and asked <= limit):
        return asked
    warnings.warn(f"Limiting {name.removeprefix('max_')} to {limit}.", stacklevel=2)
    return limit
