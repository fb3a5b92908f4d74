"""Steps of training as compiled functions, and how batches are grouped for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import twofold as tf

__all__ = ["compiled_step", "several_steps"]


def compiled_step(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of a batch, compiled as a whole."""
    return tf.function(step)


def several_steps(batches: Iterator[Any], count: int) -> Iterator[list[Any]]:
    """Batches in groups of `count`; the last group may be smaller."""
    while group := list(itertools.islice(batches, count)):
        yield group
