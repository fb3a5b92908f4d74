"""The version of Keras whose names and behaviour `tf.keras` follows."""

from __future__ import annotations

from .._front.api import public

__all__ = ["__version__", "version"]

__version__ = "3.15.1"


@public
def version() -> str:
    """The version of Keras whose names and behaviour `tf.keras` follows.

    >>> import twofold as tf
    >>> tf.keras.version().startswith("3.")
    True
    """
    return __version__
