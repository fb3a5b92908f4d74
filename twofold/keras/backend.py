"""`tf.keras.backend`: the backend functions that Keras still has: settings, names, the learning phase, values."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import as_numpy, public
from twofold._front.namespace import publish

from . import _registry, naming
from .call_context import learning_phase, set_learning_phase
from .config import (
    epsilon,
    floatx,
    image_data_format,
    set_epsilon,
    set_floatx,
    set_image_data_format,
)
from .promotion import result_type

__all__ = ["clear_session", "epsilon", "floatx", "get_uid", "get_value", "image_data_format", "is_keras_tensor",
           "learning_phase", "result_type", "set_epsilon", "set_floatx", "set_image_data_format",
           "set_learning_phase", "set_value", "standardize_dtype"]


@public
def clear_session(free_memory: bool = True) -> None:
    """Let the numbers in names of layers begin anew, and unset the learning phase.

    Args:
        free_memory: accepted, without effect: models are freed when nothing refers to them.

    >>> import twofold as tf
    >>> tf.keras.backend.clear_session()
    >>> tf.keras.layers.Dense(1).name
    'dense'
    """
    naming.reset_uids()
    set_learning_phase(None)


@public
def get_uid(prefix: str = "") -> int:
    """A new number for names that begin with `prefix`, from 1."""
    name = naming.uniquify(f"uid>{prefix}")
    return int(name.rpartition("_")[2]) + 1 if name != f"uid>{prefix}" else 1


@public
def get_value(x: Any) -> Any:
    """The value of a variable or tensor as a NumPy array."""
    return as_numpy(x)


@public
def set_value(x: tf.Variable, value: Any) -> None:
    """Assign a value, of any dtype that converts, to a variable."""
    x.assign(tf.cast(as_numpy(value), x.dtype))


@public
def is_keras_tensor(x: Any) -> bool:
    """Whether something is a symbolic tensor of a functional model.

    >>> import twofold as tf
    >>> tf.keras.backend.is_keras_tensor(tf.keras.Input([2])), tf.keras.backend.is_keras_tensor(tf.ones([2]))
    (True, False)
    """
    from .keras_tensor import KerasTensor
    return isinstance(x, KerasTensor)


@public
def standardize_dtype(dtype: Any) -> str:
    """The name of a dtype; that of `floatx()` for None."""
    return floatx() if dtype is None else tf.as_dtype(dtype).name


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        older = _registry.ask("older_backend")
        if name in older:
            return older[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


publish(__name__)
