"""The settings that layers and metrics fall back to: the dtype of floats, a small number, where channels are.

`tf.keras.config` shows them; dtype policies, which begin with the dtype of floats, are `dtype_policies.py`'s.
"""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public

__all__ = ["epsilon", "floatx", "image_data_format", "set_epsilon", "set_floatx", "set_image_data_format"]

_settings: dict[str, Any] = {"floatx": "float32", "epsilon": 1e-7, "image_data_format": "channels_last"}


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
