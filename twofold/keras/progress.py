"""`Progbar`: the line that shows how far an epoch is, its speed, and the metrics."""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from collections.abc import Iterable
from typing import Any

from twofold._front.api import listed

from ._settings import is_interactive_logging_enabled

__all__ = ["Progbar", "tell"]


def tell(text: str) -> None:
    """Write a line on standard output, or to the log where interactive logging is off."""
    if is_interactive_logging_enabled():
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    else:
        logging.getLogger("twofold").info(text)


class Progbar:
    """A progress bar with metrics behind it.

    Args:
        target: the number of steps, None if it is not known.
        width: of the bar in characters.
        verbose: 0 for silence, 1 for the bar, 2 for a line at the end.
        interval: seconds between two drawings.
        stateful_metrics: names of values that are shown as they are; others are averaged over the steps.
        unit_name: what a step is called.

    >>> import twofold as tf
    >>> bar = tf.keras.utils.Progbar(3, verbose=0)
    >>> for step in range(3):
    ...     bar.update(step + 1, [("loss", 0.5 - 0.1 * step)])
    """

    def __init__(self, target: int | None, width: int = 20, verbose: int = 1, interval: float = 0.05,
                 stateful_metrics: Iterable[str] | None = None, unit_name: str = "step"):
        self.target, self.width, self.verbose, self.interval = target, width, verbose, interval
        self.unit_name = unit_name
        self.stateful_metrics = set(listed(stateful_metrics or (), "stateful_metrics"))
        self._sums: dict[str, list[float]] = {}
        self._seen = 0
        self._start = time.perf_counter()
        self._last = -math.inf
        self._shown = 0
        self._live = _is_live()

    def update(self, current: int, values: Iterable[tuple[str, Any]] | None = None,
               finalize: bool | None = None) -> None:
        """Show a step.

        Args:
            current: how many steps are done.
            values: pairs of a name and a number.
            finalize: whether this is the end; by default when `current` reaches the target.
        """
        steps = current - self._seen
        for name, value in listed(values or (), "values"):
            if name in self.stateful_metrics:
                self._sums[name] = [float(value), 1.0]
            else:
                entry = self._sums.setdefault(name, [0.0, 0.0])
                entry[0] += float(value) * max(steps, 1)
                entry[1] += max(steps, 1)
        self._seen = current
        if finalize is None:
            finalize = self.target is not None and current >= self.target
        if not self.verbose:
            return
        now = time.perf_counter()
        if not finalize and (self.verbose == 2 or not self._live or now - self._last < self.interval):
            return
        self._last = now
        self._draw(current, now, finalize)

    def add(self, n: int, values: Iterable[tuple[str, Any]] | None = None) -> None:
        """Show `n` further steps."""
        self.update(self._seen + n, values)

    def _draw(self, current: int, now: float, finalize: bool) -> None:
        line = self._line(current, now, finalize)
        if not is_interactive_logging_enabled():
            if finalize:
                logging.getLogger("twofold").info(line)
            return
        if self._live and self.verbose == 1:
            line = "\r" + line + " " * max(0, self._shown - len(line) + 1)
            self._shown = len(line)
        sys.stdout.write(line + ("\n" if finalize else ""))
        sys.stdout.flush()

    def _line(self, current: int, now: float, finalize: bool) -> str:
        elapsed = now - self._start
        each = elapsed / current if current else 0.0
        if self.target is None:
            count, bar = f"{current}/Unknown", ""
        else:
            digits = len(str(self.target))
            done = min(1.0, current / self.target) if self.target else 1.0
            count, bar = f"{current:{digits}d}/{self.target}", self._bar(done)
        if finalize or self.target is None or not current:
            told = f"{elapsed:.0f}s {_duration(each)}/{self.unit_name}"
        else:
            told = f"{_clock(each * (self.target - current))} {_duration(each)}/{self.unit_name}"
        if self.verbose == 2:
            told, bar = f"{elapsed:.0f}s - {_duration(each)}/{self.unit_name}", "- "
        return f"{count} {bar}{told}" + "".join([f" - {name}: {_number(total / count_)}" for name, (total, count_)
                                                 in self._sums.items()])

    def _bar(self, done: float) -> str:
        filled = int(done * self.width)
        if _speaks_unicode():
            return "━" * filled + ("─" * (self.width - filled)) + " "
        head = ">" if 0 < filled < self.width else ""
        return "[" + "=" * max(0, filled - len(head)) + head + "." * (self.width - filled) + "] "


def _is_live() -> bool:
    """Whether a line can be drawn over itself."""
    return (hasattr(sys.stdout, "isatty") and sys.stdout.isatty()) or "ipykernel" in sys.modules or (
        os.environ.get("PYCHARM_HOSTED") is not None)


def _speaks_unicode() -> bool:
    return "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()


def _duration(seconds: float) -> str:
    if seconds >= 1 or seconds == 0:
        return f"{seconds:.0f}s"
    return f"{seconds * 1e3:.0f}ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us"


def _clock(seconds: float) -> str:
    whole = int(seconds)
    if whole > 3600:
        return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
    return f"{whole // 60}:{whole % 60:02d}" if whole > 60 else f"{whole}s"


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) > 1e-3 or value == 0 else f"{value:.4e}"
