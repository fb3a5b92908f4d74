"""`tf.autograph.experimental`: what converted code may assume, and what is not converted."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from twofold._front.api import public
from twofold._front.namespace import publish
from twofold.tracer import autograph as _autograph
from twofold.tracer import loop_options as _loop_options

__all__ = ["Feature", "do_not_convert", "set_loop_options"]


set_loop_options = _loop_options.set_loop_options


class Feature(enum.Enum):
    """Names of conversions that TensorFlow makes optional. Here they have no effect: all conversions are made."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"


@public
def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """A function whose Python control flow is left as it is, also where converted code calls it.

    Args:
        func: a function; without one a decorator is given back.

    >>> import twofold as tf
    >>> @tf.autograph.experimental.do_not_convert
    ... def plain(x):
    ...     return x + 1
    >>> int(tf.function(plain)(tf.constant(1)))
    2
    """
    return do_not_convert if func is None else _autograph.do_not_convert(func)


publish(__name__)
