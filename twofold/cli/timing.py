"""`twofold bench DIR`: how long calls of a function take, by batch size."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .common import Misuse, add_model, progress, say, say_json, sizes_of, table
from .models import Entry, check_sizes, choose, dims_of, random_arrays, read

__all__ = ["add", "run"]

_POINTS = (50, 90, 99)  # percentiles
_BATCHES = (1, 8, 64)
_LEAST, _MOST = 20, 200_000  # calls
_BLOCK = 0.02  # seconds between two steps of the bar


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    add_model(parser)
    parser.add_argument("--batch", metavar="N,N,...", help="batch sizes, by default 1,8,64: what the first size is "
                        "that the inputs leave open")
    parser.add_argument("--size", metavar="NAME=N", action="append", default=[],
                        help="what another open size is; may be repeated")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to measure each, 1 by default")
    parser.add_argument("--threads", type=int, help="how many threads a call may use; all processors by default")


def run(args: argparse.Namespace) -> None:
    """Measures and prints."""
    if not 0 < args.seconds <= 3600:
        raise Misuse(f"--seconds must be above 0 and at most 3600; got {args.seconds:g}")
    if args.threads is not None and args.threads < 1:
        raise Misuse(f"--threads must be at least 1; got {args.threads}")
    batches, sizes = _numbers(args.batch), sizes_of(args.size)
    model = read(args.dir)
    entry = choose(model, args.signature)
    check_sizes([entry], sizes)
    symbol = _batch_symbol(entry, sizes)
    if symbol is None and args.batch is not None:
        raise Misuse(f"{entry.name} leaves no size open that could be the batch's")
    if args.threads is not None:
        from twofold.runtime import threads
        threads.set_num_threads(args.threads)
    call = entry.call(model)
    rows: list[dict[str, Any]] = []
    if symbol is None:
        rows.append({"batch": None, **_measured(call, random_arrays(entry, sizes), args.seconds, None)})
    else:
        for batch in batches:
            arrays = random_arrays(entry, {**sizes, symbol: batch})
            rows.append({"batch": batch, **_measured(call, arrays, args.seconds, batch)})
    document = {"function": entry.name, "size": symbol, "seconds": args.seconds, "results": rows}
    if args.json:
        say_json(document)
        return
    say(f"{entry.name}: time of a call in microseconds" + ("" if symbol is None else f", by batch size ({symbol})"))
    head = ("batch", *[f"p{p}" for p in _POINTS], "mean", "most", "calls", "items/s")
    say(*table([head, *[("-" if r["batch"] is None else r["batch"], *[f"{r[f'p{p}']:.1f}" for p in _POINTS],
                         f"{r['mean']:.1f}", f"{r['max']:.1f}", r["calls"], f"{r['items_per_second']:,.0f}")
                        for r in rows]], right=range(len(head))))


def _numbers(text: str | None) -> list[int]:
    if text is None:
        return list(_BATCHES)
    parts = text.split(",")
    if not all(p.strip().isdecimal() and int(p) > 0 for p in parts):
        raise Misuse(f"--batch wants positive numbers, such as 1,8,64; got {text!r}")
    return [int(p) for p in parts]


def _batch_symbol(entry: Entry, sizes: dict[str, int]) -> str | None:
    """The first size that the inputs leave open and that is not given."""
    for dims in dims_of(entry):
        for d in dims:
            name = None if isinstance(d, int) else d.name_alone()
            if name is not None and name not in sizes:
                return name
    return None


def _measured(call: Callable[..., Any], arrays: list[np.ndarray], seconds: float, batch: int | None
              ) -> dict[str, float]:
    """Microseconds of calls, after some that count for nothing."""
    import twofold as tf

    tensors = [tf.constant(a) for a in arrays]
    for _ in range(3):
        call(*tensors)
    durations: list[float] = []
    clock = time.perf_counter
    what = "measuring" if batch is None else f"batch {batch}"
    for _ in progress(range(max(int(seconds / _BLOCK), 1)), what, "block"):
        end = clock() + min(_BLOCK, seconds)
        while (now := clock()) < end and len(durations) < _MOST:
            call(*tensors)
            durations.append(clock() - now)
    while len(durations) < _LEAST:
        now = clock()
        call(*tensors)
        durations.append(clock() - now)
    times = np.array(durations) * 1e6
    mean = float(times.mean())
    return {**{f"p{p}": float(np.percentile(times, p)) for p in _POINTS}, "mean": mean, "max": float(times.max()),
            "calls": len(durations), "items_per_second": (batch or 1) * 1e6 / mean}
