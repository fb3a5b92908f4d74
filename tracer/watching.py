"""Watchers of compiled functions, which are told of each call: `tf.summary.trace_on`, and profiles.

While somebody watches, calls go through Python, so that none is missed; `traced.py` tells of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.runtime import program_call

__all__ = ["start", "stop", "told", "watchers"]

#: each is called with the `Traced` that is about to run and the tensors it is given, and gives what to call after it
watchers: list[Callable[[Any, Sequence[Any]], Callable[[], None] | None]] = []


def start(watcher: Callable[[Any, Sequence[Any]], Callable[[], None] | None]) -> None:
    """Tell `watcher` of every call of a compiled function from now on."""
    watchers.append(watcher)
    program_call.turn_off("functions are watched", True)


def stop(watcher: Callable[[Any, Sequence[Any]], Callable[[], None] | None]) -> None:
    """Tell `watcher` no more."""
    watchers.remove(watcher)
    program_call.turn_off("functions are watched", bool(watchers))


def told(traced: Any, inputs: Sequence[Any], run: Callable[[Sequence[Any]], Any]) -> Any:
    """What `run` gives for these inputs, with every watcher told before, and after where it asked for it."""
    after = [watcher(traced, inputs) for watcher in list(watchers)]
    try:
        return run(inputs)
    finally:
        for end in reversed(after):
            if end is not None:
                end()
