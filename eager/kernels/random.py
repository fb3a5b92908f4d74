"""Eager streams of random numbers: each draw takes its positions from the process's counter."""

from __future__ import annotations

import numpy as np

from twofold.eager.kernels import Outs, register
from twofold.ir import ops
from twofold.ir.ops.random import mix
from twofold.ir.types import Attrs
from twofold.runtime import random as streams

__all__: list[str] = []


@register(ops.random_state)
def _state(arrays: list[np.ndarray], outs: Outs, attrs: Attrs) -> np.ndarray:
    return streams.take(int(arrays[0]), attrs["seed"], attrs["purpose"], mix)


@register(ops.random_op_state)
def _op_state(arrays: list[np.ndarray], outs: Outs, attrs: Attrs) -> np.ndarray:
    first, second = attrs["seeds"]
    return streams.take_seeded(int(arrays[0]), (first, second), attrs["kind"], tuple(attrs["place"]))
