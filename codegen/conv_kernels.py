"""The kernels of convolutions in loop IR, by what is compiled together; `conv.py` says what they compute."""

from __future__ import annotations

from twofold.ir.dtypes import DType

from .conv_depthwise import depthwise, depthwise_filters
from .conv_filters import filters
from .conv_forward import forward, panels
from .conv_narrow import narrow
from .conv_shapes import KERNELS, PARTS
from .gemm_shapes import Tiling
from .loop import Kernel

__all__ = ["kernels"]


def kernels(dtype: DType, shape: Tiling, part: str) -> dict[str, Kernel]:
    """The kernels of a key of PARTS, by name.

    Args:
        dtype: float32 or float64.
        shape: the tile shapes of matrix products, also for another processor than the host.
    """
    record = {"forward": forward, "filters": filters, "panels": panels, "depthwise": depthwise,
              "depthwise_filters": depthwise_filters, "narrow": narrow}
    return {name: record[KERNELS[name][0]](dtype, shape, KERNELS[name][1]) for name in PARTS[part]}
