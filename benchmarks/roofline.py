"""A roofline picture of kernels: how much each computes in a second, over how much it computes for a byte it must move.

    python benchmarks/roofline.py build/bench/kernels.json build/bench/kernels.svg

Both roofs are measurements of the same run (`floors.py`): multiply-adds, and copied bytes times the operations on each.
No kernel can get above them; one far below either waits for something else. After Williams, Waterman and Patterson,
"Roofline: an insightful visual performance model for multicore architectures", Communications of the ACM 52, 2009.
Needs matplotlib.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import kernels

__all__ = ["Point", "points", "draw"]

OURS = "twofold"
_KINDS = {"matmul": "matrix products", "convgrad": "gradients of convolutions", "conv": "convolutions"}
_MARKS = {"matrix products": "o", "convolutions": "s", "gradients of convolutions": "^"}


class Point(NamedTuple):
    """A kernel in the picture: what kind it is, operations for a byte that it must move, operations in a second."""

    kind: str
    intensity: float
    rate: float


def points(report: Mapping[str, Any]) -> Iterator[Point]:
    """The kernels of a report of `runner.py` that count operations, in float32, as this library computes them."""
    for case, row in report["median"].items():
        work, seconds = kernels.WORK.get(case), row.get(OURS, {}).get("seconds")
        if work is not None and work.flops and work.dtype == "float32" and seconds:
            kind = next(kind for start, kind in _KINDS.items() if case.startswith(start))
            yield Point(kind, work.flops / work.moved, work.flops / seconds)


def draw(report: Mapping[str, Any], path: Path) -> None:
    """Draws the picture as SVG.

    Args:
        report: of `runner.py`, for the area `kernels`, with at least one of `points`.
        path: the file to write.
    Raises:
        ImportError: there is no matplotlib.
    """
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "roofline"  # the same picture of the same figures
    limits, there = report["limits"], list(points(report))
    peak, copied = limits["float32"], limits["copy"]
    first, last = min(p.intensity for p in there) / 2, max(p.intensity for p in there) * 2
    figure, axes = pyplot.subplots(figsize=(8, 5))
    corner = peak / copied
    if first < corner:
        axes.plot([first, corner], [first * copied / 1e9, peak / 1e9], color="black")
    axes.plot([max(first, corner), last], [peak / 1e9] * 2, color="black")
    axes.annotate(f"{peak / 1e9:.0f} GFLOP/s of multiply-adds", (last, peak / 1e9), (0, 4), ha="right",
                  textcoords="offset points")
    axes.annotate(f"{copied / 1e9:.0f} GB/s copied", (max(first, corner / 8), max(first, corner / 8) * copied / 1e9),
                  (6, -12), textcoords="offset points")
    for kind in dict.fromkeys(p.kind for p in there):
        chosen = [p for p in there if p.kind == kind]
        axes.plot([p.intensity for p in chosen], [p.rate / 1e9 for p in chosen], _MARKS[kind], label=kind, alpha=0.7)
    axes.set(xscale="log", yscale="log", xlabel="operations for a byte that must move", ylabel="GFLOP/s",
             title=f"float32 kernels on {report['machine']['processor']}, {report['machine']['cores']} cores")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
