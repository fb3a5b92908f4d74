"""Measures what parts of a matrix product cost on the processor at hand, for `costs.py`.

Each cost is what a product takes longer than another that differs from it in that part alone: whose B lies far, say, or
with rows that crowd one place of a cache. Products are small, one thread computes them, the quickest of several runs
counts, and then the median over operands at several places, so that what else the machine does disturbs little.
"""

from __future__ import annotations

import statistics
import time
from array import array
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from twofold.codegen import gemm_shapes as gemm
from twofold.ir import dtypes as dt

from . import caches, products, threads
from .calls import address_of
from .costs import USUAL, Costs

__all__ = ["measured"]

_DTYPE = dt.float32
_SAMPLES, _ROUNDS = 9, 6
_PANELS = 4  # columns of the small products
_SLOW = 10  # how many times as long as usual threads take to start at most, where nothing else runs


class _Trial(NamedTuple):
    """A product to measure.

    rows: of A and C, whole tiles. depth: inner indices. columns: of B and C. row: elements from a row of B to the next.
    mode: how B is read. packs: whether packing B is measured instead.
    """

    rows: int
    depth: int
    columns: int
    row: int
    mode: int = gemm.DIRECT
    packs: bool = False


def measured() -> Costs:
    """The costs on this processor; it takes about a second.

    Raises:
        OSError, RuntimeError, ImportError: the code of matrix products can be neither loaded nor compiled here.
    """
    products.functions(_DTYPE).settle("tall")
    samples = [_sample() for _ in range(_SAMPLES)]
    costs = Costs(*map(statistics.median, zip(*samples, strict=True)))
    start = min(sample.start for sample in samples)  # threads wait for whatever else runs: what takes long, did
    return costs._replace(far=statistics.fmean(sample.far for sample in samples),  # it depends on the place most
                          start=min(start, _SLOW * USUAL.start))


def _sample() -> Costs:
    """The costs with operands where they happen to lie in memory: far ones differ from place to place."""
    shape, near = gemm.tiling(_DTYPE), caches.of_host()
    width, tall = gemm.panel_width(shape, False), shape.tall
    size, tiles = _DTYPE.size, 4
    columns = _PANELS * width
    plain = columns + near.line // size  # an odd number of lines: rows lie everywhere in a cache
    crowded = near.nearest // near.ways // size
    thrashed = near.second // near.second_ways // size
    depth = 4 * gemm.BLOCK
    far = 4 * near.second // size // depth // width * width
    trials = {
        "base": _Trial(tiles * tall, gemm.BLOCK, columns, plain),
        "crowded": _Trial(tiles * tall, gemm.BLOCK, columns, _multiple(crowded, columns)),
        "thrashed": _Trial(tiles * tall, gemm.BLOCK, columns, _multiple(thrashed, columns)),
        "far": _Trial(tiles * tall, depth, far, far + near.line // size),
        "far packed": _Trial(tiles * tall, depth, far, far, gemm.PACKED),
        "packed": _Trial(tiles * tall, gemm.BLOCK, width, plain, gemm.PACKED),
        "lying": _Trial(tiles * tall, gemm.BLOCK, width, plain),
        "packing": _Trial(tiles * tall, gemm.BLOCK, columns, plain, gemm.PACKED, True),
    }
    seconds = _quickest({name: _runner(trial) for name, trial in trials.items()})
    per = {name: seconds[name] / (trial.depth * (trial.columns // width)) for name, trial in trials.items()}
    step = per["base"] / (tiles * (tall + USUAL.tile) + USUAL.near)  # seconds of one

    def cost(name: str, of: str, parts: int = 1) -> float:
        return max(per[name] - per[of], 0.0) / step / parts

    return USUAL._replace(
        pack_a=cost("packed", "lying", tiles), pack_b=per["packing"] / step, far=cost("far", "far packed"),
        crowded=cost("crowded", "base", tiles), thrashed=cost("thrashed", "base", tiles), start=_start() / step)


def _multiple(stride: int, least: int) -> int:
    """The least multiple of `stride` that is `least` or more."""
    return -(-least // stride) * stride


def _runner(trial: _Trial) -> Callable[[], None]:
    """Runs a trial once, on this thread."""
    shape = gemm.tiling(_DTYPE)
    width = gemm.panel_width(shape, False)
    panels = -(-trial.columns // width)
    a = np.ones((trial.rows, trial.depth + 16), np.float32)[:, :trial.depth]
    b = np.ones((trial.depth, trial.row), np.float32)
    c = np.empty((trial.rows, trial.columns), np.float32)
    packed = np.ones(panels * -(-trial.depth // gemm.BLOCK) * gemm.BLOCK * width, np.float32)
    integers = (trial.mode, trial.rows, trial.columns, trial.depth, trial.columns, a.strides[0] // _DTYPE.size, 1,
                trial.row, 1, trial.rows, trial.columns, 0)
    functions = products.functions(_DTYPE)
    kernel, total = functions["tall"], 1
    arrays: list[np.ndarray] = [c, a, packed if trial.mode == gemm.PACKED else b]
    if trial.packs:
        kernel, total, arrays = functions["pack_b"], panels, [packed, b, b]
    words = array("q", [*map(address_of, arrays), *integers])

    def run(_: list[np.ndarray] = arrays) -> None:  # which must live as long as their addresses are used
        threads.serial(kernel, total, words.buffer_info()[0])
    return run


def _start() -> float:
    """Seconds to start threads for something that takes no time, and to wait for them."""
    count = threads.get_num_threads()
    if count < 2:
        return 0.0
    function = products.functions(_DTYPE)["tall"]
    words = array("q", [0, 0, 0, gemm.DIRECT, *[0] * (gemm.HEADER - 4)])
    address = words.buffer_info()[0]

    def run() -> None:
        threads.parallel_for(function, count, address, count)
    return _quickest({"start": run})["start"]


def _quickest(runs: dict[str, Callable[[], None]]) -> dict[str, float]:
    """The quickest of many times of each, taken in turns."""
    best = dict.fromkeys(runs, float("inf"))
    for run in runs.values():
        run()
    for _ in range(_ROUNDS):
        for name, run in runs.items():
            run()
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
