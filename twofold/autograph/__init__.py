"""`tf.autograph`: how `tf.function` turns Python's control flow into graphs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twofold._front.api import public
from twofold._front.namespace import publish
from twofold.tracer import autograph as _autograph

from . import experimental

__all__ = ["experimental", "set_verbosity", "to_code", "to_graph"]

_TOPICS = ("retrace", "fallback")


def _function(entity: Any) -> Any:
    return getattr(entity, "python_function", entity)


@public
def to_graph(entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None) -> Any:
    """The converted form of a function, as `tf.function` traces it.

    Args:
        entity: a Python function or method.
        recursive, experimental_optional_features: have no effect: calls are always converted.
    Returns:
        A function of the same signature. On tensors with values it does what `entity` does.
    Raises:
        ValueError: the function cannot be converted.

    >>> import twofold as tf
    >>> def absolute(x):
    ...     if x < 0:
    ...         x = -x
    ...     return x
    >>> int(tf.autograph.to_graph(absolute)(tf.constant(-3)))
    3
    """
    entity = _function(entity)
    _autograph.to_code(entity)
    return _autograph.convert(entity)


@public
def to_code(entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None) -> str:
    """The source of the converted form of a function.

    Args:
        entity: a Python function or method, or what `tf.function` made of one.
        recursive, experimental_optional_features: have no effect.
    Raises:
        ValueError: the function cannot be converted.

    >>> import twofold as tf
    >>> def absolute(x):
    ...     if x < 0:
    ...         x = -x
    ...     return x
    >>> "if_stmt" in tf.autograph.to_code(absolute)
    True
    """
    return _autograph.to_code(_function(entity))


@public
def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """How much is told on stderr of functions that are traced; the variable `TWOFOLD_LOG` says it more finely.

    Args:
        level: above 0, which functions are traced again, and which run as they are; 0, nothing of that.
        alsologtostdout: has no effect.

    >>> import twofold as tf
    >>> tf.autograph.set_verbosity(0)
    """
    others = [topic for topic in os.environ.get("TWOFOLD_LOG", "").replace(" ", "").split(",")
              if topic not in ("", *_TOPICS)]
    os.environ["TWOFOLD_LOG"] = ",".join([*others, *(_TOPICS if level > 0 else ())])


publish(__name__)
