"""Who is told which compiled functions run, as `tf.summary.trace_on` asks for.

While somebody watches, calls go through Python, so that none is missed; `traced.py` tells of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.runtime import program_call

__all__ = ["start", "stop", "watchers"]

watchers: list[Callable[[Any], None]] = []


def start(told: Callable[[Any], None]) -> None:
    """Call `told` with the `Traced` of every call of a compiled function, before it runs."""
    watchers.append(told)
    program_call.turn_off("functions are watched", True)


def stop(told: Callable[[Any], None]) -> None:
    """Stop calling `told`."""
    watchers.remove(told)
    program_call.turn_off("functions are watched", bool(watchers))
