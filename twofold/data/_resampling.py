"""Rejection resampling: elements left out so that classes come in wanted proportions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import as_numpy

from ._functions import scalar_of
from ._node import INFINITE, UNKNOWN, Node, check, number
from ._stream import Draws, Run, Stream
from ._structure import Form

__all__ = ["Resample"]


class Resample(Node):
    """Pairs of class and element. An element of class c stays with probability target[c] / initial[c], scaled so that
    the largest of these is 1; `initial` is counted on the way where it is not given."""

    name = "RejectionResample"

    def __init__(self, source: Node, fn: Callable[..., Any], target: Any, initial: Any, seed: Any) -> None:
        self.source = source
        self.fn = scalar_of(fn, source.form, "rejection_resample", "class_func", (tf.int32, tf.int64))
        self.target = as_numpy(target, np.float64).ravel()
        self.initial = None if initial is None else as_numpy(initial, np.float64).ravel()
        check(self.target.size > 0 and bool((self.target >= 0).all()) and self.target.sum() > 0,
              f"target_dist must hold probabilities; got {self.target}.")
        check(self.initial is None or self.initial.shape == self.target.shape,
              f"initial_dist must have the shape of target_dist, {self.target.shape}.")
        self.seeds = engine.random_seeds(None if seed is None else number(seed, "seed"))
        self.form = Form((self.fn.form.spec, source.form.spec))

    def cardinality(self) -> int:
        return INFINITE if self.source.cardinality() == INFINITE else UNKNOWN

    def start(self, run: Run) -> Stream:
        return _Resampled(self, self.source.start(run))


class _Resampled(Stream):
    def __init__(self, node: Resample, source: Stream) -> None:
        self.node, self.input = node, source
        self.draws = Draws(node.seeds)
        self.counts = np.ones(node.target.size) if node.initial is None else None

    def next(self) -> Any:
        while (item := self.input.next()) is not None:
            kind = self.node.fn(item)[0]
            at = int(kind)
            check(0 <= at < self.node.target.size, f"class_func gave class {at}; there are {self.node.target.size}.")
            if self.counts is not None:
                self.counts[at] += 1
            if self.draws.fraction() < self._stays(at):
                return (kind, *item)
        return None

    def _stays(self, at: int) -> float:
        initial = self.node.initial if self.counts is None else self.counts / self.counts.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(initial > 0, self.node.target / initial, 0.0)  # type: ignore[operator]
        largest = float(ratios.max())
        return float(ratios[at]) / largest if largest > 0 else 0.0

    def save(self) -> Any:
        return [self.draws.save(), self.counts, self.input.save()]

    def load(self, state: Any) -> None:
        self.draws.load(state[0])
        self.counts = state[1]
        self.input.load(state[2])
