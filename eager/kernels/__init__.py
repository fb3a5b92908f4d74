"""Drivers: how eager execution runs the structured ops that no lowering fits.

These are ops whose result has a size that only values decide, the streams of random numbers, which the process owns,
and indexing of strings, which no kernel reads. An elementwise op, a reduction, a view or a host op needs nothing here:
the dispatcher derives it from the declaration. All other structured ops run by their lowerings (`eager/placing.py`).

A driver is `(arrays, outs, attrs) -> array`: the operands as ndarrays of any strides, the specs of the results, and all
attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from twofold.ir import dtypes as dt
from twofold.ir.op import Op
from twofold.ir.types import Attrs, Spec

__all__ = ["Driver", "Outs", "register", "driver"]

Outs: TypeAlias = Sequence[Any]  # specs of the results, in whose shapes all sizes that are known are numbers
Driver: TypeAlias = Callable[[list[np.ndarray], Outs, Attrs], np.ndarray]

_DRIVERS: dict[tuple[Op, bool], tuple[Driver, Callable[[Attrs], bool]]] = {}


def register(op: Op, strings: bool = False,
             where: Callable[[Attrs], bool] = lambda attrs: True) -> Callable[[Driver], Driver]:
    """Register the decorated function as the driver of `op`: on strings, or on all other dtypes; for the attributes
    that `where` allows.

    Raises:
        ValueError: the op has such a driver already, or is not declared with `lower`.
    """
    def add(run: Driver) -> Driver:
        if op.lower is None or (op, strings) in _DRIVERS:
            raise ValueError(f"{op!r} takes no driver: it is not a structured op, or has one already")
        _DRIVERS[op, strings] = run, where
        return run
    return add


def driver(op: Op, inputs: Sequence[Spec], attrs: Attrs) -> Driver | None:
    """The driver that runs `op` on operands of these specs; None where its lowering does."""
    run, where = _DRIVERS.get((op, any(x.dtype is dt.string for x in inputs)), (None, None))
    return run if where is not None and where(attrs) else None
