"""Steps of training as compiled functions, and how batches are grouped for callbacks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import twofold as tf

__all__ = ["StepFunctions", "several_steps"]


class StepFunctions:
    """The compiled steps of a model by what they depend on. Copies of a model have none: they compile their own."""

    def __init__(self) -> None:
        self._functions: dict[Hashable, Callable[[Any], Any]] = {}

    def get(self, key: Hashable, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The compiled function of a key; it is made of `step` where there is none."""
        found = self._functions.get(key)
        if found is None:
            found = self._functions[key] = tf.function(step)
        return found

    def __deepcopy__(self, memo: Any) -> StepFunctions:
        return StepFunctions()


def several_steps(batches: Iterator[Any], count: int) -> Iterator[list[Any]]:
    """Batches in groups of `count`; the last group may be smaller."""
    while group := list(itertools.islice(batches, count)):
        yield group
