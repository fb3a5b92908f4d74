"""`tf.compat.v1.logging`: the logger of the package, with TensorFlow 1's names."""

from __future__ import annotations

import logging as _logging
from collections.abc import Callable
from typing import Any

from twofold._front.api import public
from twofold._front.namespace import publish

__all__ = ["DEBUG", "ERROR", "FATAL", "INFO", "WARN", "TaskLevelStatusMessage", "debug", "error", "fatal", "flush",
           "get_verbosity", "info", "log", "log_every_n", "log_first_n", "log_if", "set_verbosity", "vlog", "warn",
           "warning"]

DEBUG, INFO, WARN, ERROR, FATAL = (_logging.DEBUG, _logging.INFO, _logging.WARNING, _logging.ERROR, _logging.CRITICAL)
_logger = _logging.getLogger("twofold")
_counted: dict[str, int] = {}

def _telling(name: str, level: int) -> Callable[..., None]:
    def tell(msg: str, *args: Any) -> None:
        _logger.log(level, msg, *args, stacklevel=2)
    tell.__name__ = tell.__qualname__ = name
    tell.__doc__ = f"Tell a text, with places for `args`, of the level {_logging.getLevelName(level)}."
    return public(tell)


debug, info, warning, error = (
    _telling("debug", DEBUG), _telling("info", INFO), _telling("warning", WARN), _telling("error", ERROR))
warn, fatal = warning, _telling("fatal", FATAL)


def _level(level: Any) -> int:
    known = _logging.getLevelName(level) if isinstance(level, str) else level
    if not isinstance(known, int) or isinstance(known, bool) or known < 0:
        raise ValueError(f"A level is one of DEBUG, INFO, WARN, ERROR and FATAL, or an integer; got {level!r}.")
    return known


@public
def log(level: int, msg: str, *args: Any) -> None:
    """Tell something.

    Args:
        level: its level.
        msg: the text, with places for `args`.
        args: what is put there.
    Raises:
        ValueError: there is no such level.
    """
    _logger.log(_level(level), msg, *args)


@public
def set_verbosity(v: int) -> None:
    """Tell what is at least of a level; to standard error, where nothing else was set up.

    Args:
        v: one of DEBUG, INFO, WARN, ERROR and FATAL, or its name.
    Raises:
        ValueError: it is none of these.
    """
    _logger.setLevel(_level(v))
    if not _logger.handlers and not _logging.getLogger().handlers:
        _logger.addHandler(_logging.StreamHandler())


@public
def get_verbosity() -> int:
    """The level from which on something is told."""
    return _logger.getEffectiveLevel()


@public
def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Tell something the first `n` times.

    Args:
        level: its level.
        msg: the text, with places for `args`.
        n: how often.
        args: what is put there.
    """
    _counted[msg] = _counted.get(msg, 0) + 1
    if _counted[msg] <= n:
        _logger.log(_level(level), msg, *args)


@public
def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Tell something the first time, and then every `n`-th time.

    Args:
        level: its level.
        msg: the text, with places for `args`.
        n: how often.
        args: what is put there.
    """
    _counted[msg] = _counted.get(msg, 0) + 1
    if (_counted[msg] - 1) % n == 0:
        _logger.log(_level(level), msg, *args)


@public
def log_if(level: int, msg: str, condition: Any, *args: Any) -> None:
    """Tell something where a condition holds.

    Args:
        level: its level.
        msg: the text, with places for `args`.
        condition: whether to tell it.
        args: what is put there.
    """
    if condition:
        _logger.log(_level(level), msg, *args)


@public
def vlog(level: int, msg: str, *args: Any) -> None:
    """Tell something; levels are those of `log`.

    Args:
        level: its level.
        msg: the text, with places for `args`.
        args: what is put there.
    """
    _logger.log(_level(level), msg, *args)


@public
def TaskLevelStatusMessage(msg: str) -> None:
    """Tell something as an error.

    Args:
        msg: the text.
    """
    _logger.error(msg)


@public
def flush() -> None:
    """Have what was told written out."""
    for handler in _logger.handlers:
        handler.flush()


publish(__name__)
