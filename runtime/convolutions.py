"""Convolutions on given memory: the code of `codegen/conv.py` loaded, and the runs that `conv_shapes.py` cuts made.

Shapes, allocation, padding and depthwise filters are the callers' affair.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping

import numpy as np

from twofold.codegen import conv_shapes, library
from twofold.codegen.conv_shapes import Cut
from twofold.ir.dtypes import DType, as_dtype

from . import generated, memory, products
from .calls import address_of, execute

__all__ = ["functions", "prepared"]


def functions(dtype: DType) -> Mapping[str, int]:
    """The addresses of the kernels for float32 or float64; see `codegen/conv.py`."""
    return generated.functions("conv", dtype)


library.provide("conv", lambda dtype, name: functions(as_dtype(dtype))[name])


def prepared(cut: Cut, dtype: DType) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    """What makes a run of known sizes on contiguous arrays of `dtype`: a function of the result, x and B."""
    kernel = generated.Function(conv_shapes.symbol(cut.kernel, dtype), functions(dtype)[cut.kernel])
    head = (0, 0, 0) if cut.kernel.startswith("filters") else (0, 0, 0, 0)
    template = array("q", (*head, *cut.integers))
    offsets = [dtype.size * at for at in (cut.out, cut.x, cut.b)]
    total, work = cut.total, cut.total * cut.weight
    pack = None
    if cut.packs is not None:
        integers, panels, size = cut.packs
        pack = generated.Function("pack_b", products.functions(dtype)["pack_b"])

    def run(out: np.ndarray, x: np.ndarray, b: np.ndarray) -> None:
        at_b = address_of(b) + offsets[2]
        if pack is not None:
            packed = memory.empty((size,), dtype.np)
            words = array("q", (address_of(packed), at_b, at_b, *integers))
            execute(pack, panels, words.buffer_info()[0], size)
            at_b = address_of(packed)
        words = template[:]  # new for each call: a signal handler may run ops in between
        words[0], words[1], words[2] = address_of(out) + offsets[0], address_of(x) + offsets[1], at_b
        if cut.work:
            room = memory.empty((cut.work,), dtype.np)
            words[3] = address_of(room)
        execute(kernel, total, words.buffer_info()[0], work)
    return run
