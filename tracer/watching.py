"""Watchers of compiled functions, to whom each call is reported: `tf.summary.trace_on`, and profiles.

While somebody watches, calls go through Python, so that none is missed; `traced.py` reports each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from twofold.eager.tensor import Tensor
from twofold.runtime import program_call

__all__ = ["Watcher", "start", "stop", "watched", "watchers"]

_Trace = TypeVar("_Trace")  # a `Traced`, which is defined above this module
_Result = TypeVar("_Result")

#: called with the `Traced` that is about to run and its tensors; gives a function to call after the run, or None
Watcher: TypeAlias = Callable[[Any, Sequence[Tensor]], Callable[[], None] | None]
watchers: list[Watcher] = []


def start(watcher: Watcher) -> None:
    """Report every call of a compiled function to `watcher` from now on."""
    watchers.append(watcher)
    program_call.turn_off("functions are watched", True)


def stop(watcher: Watcher) -> None:
    """Report no more calls to `watcher`."""
    watchers.remove(watcher)
    program_call.turn_off("functions are watched", bool(watchers))


def watched(traced: _Trace, inputs: Sequence[Tensor], run: Callable[[Sequence[Tensor]], _Result]) -> _Result:
    """The result of `run` for these inputs; every watcher is called before, and after where it asked for it."""
    after = [watcher(traced, inputs) for watcher in list(watchers)]
    try:
        return run(inputs)
    finally:
        for end in reversed(after):
            if end is not None:
                end()
