"""The kernels of convolutions in loop IR, by what is compiled together; `conv.py` says what they compute."""

from __future__ import annotations

from collections.abc import Callable

from twofold.ir.dtypes import DType

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
    return {name: _recorder(KERNELS[name][0])(dtype, shape, KERNELS[name][1]) for name in PARTS[part]}


def _recorder(name: str) -> Callable[[DType, Tiling, int], Kernel]:
    """What records a kernel; only its module is imported, as the first one is waited for."""
    if name in ("forward", "panels"):
        from . import conv_forward
        return conv_forward.forward if name == "forward" else conv_forward.panels
    if name == "filters":
        from . import conv_filters
        return conv_filters.filters
    if name == "inside":
        from . import conv_inside
        return conv_inside.inside
    if name == "lines":
        from . import conv_lines
        return conv_lines.lines
    if name == "line_filters":
        from . import conv_line_filters
        return conv_line_filters.line_filters
    if name == "narrow":
        from . import conv_narrow
        return conv_narrow.narrow
    if name == "grouped_filters":
        from . import conv_grouped
        return conv_grouped.grouped_filters
    from . import conv_depthwise
    recorders: dict[str, Callable[[DType, Tiling, int], Kernel]] = {
        "depthwise": conv_depthwise.depthwise, "depthwise_phases": conv_depthwise.depthwise_phases,
        "depthwise_filters": conv_depthwise.depthwise_filters}
    return recorders[name]
