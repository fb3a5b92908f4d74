"""Which caches the processor at hand has, as the system tells.

How they are used is the affair of who plans loops; `codegen/target.py: Caches` says what is assumed where nothing is
known, and of processors that code is only made for.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from twofold.codegen.target import CACHES, Caches

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["of_host", "read"]

_FOLDER = "/sys/devices/system/cpu/cpu0/cache"  # https://docs.kernel.org/ABI/testing/sysfs-devices-system-cpu
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@functools.cache
def of_host() -> Caches:
    """The caches of the processor at hand, as far as the system tells."""
    from pathlib import Path
    return read(Path(_FOLDER))


def read(folder: Path) -> Caches:
    """The caches that a folder of the system describes; the usual ones where it does not, or not sensibly.

    A cache that several processors share counts with the part of one of those that this process may use.
    """
    levels = {}
    try:
        for entry in sorted(folder.glob("index[0-9]*")):
            if _text(entry, "type") != "Instruction":
                levels[int(_text(entry, "level"))] = (_size(_text(entry, "size")) // _sharers(entry),
                                                      int(_text(entry, "ways_of_associativity")))
    except (OSError, ValueError, KeyError):
        return CACHES
    nearest, ways = levels.get(1, (0, 0))
    second, second_ways = levels.get(2, (0, 0))
    if not (4 << 10 <= nearest <= 4 << 20 and nearest <= second <= 1 << 30 and 0 < ways <= 64 and
            0 < second_ways <= 64):
        return CACHES
    return Caches(CACHES.line, nearest, second, ways, second_ways)


def _text(entry: Path, name: str) -> str:
    with open(entry / name, encoding="ascii", errors="replace") as file:
        return file.read(1024).strip()


def _size(text: str) -> int:
    """Bytes: a number of them, or with a unit."""
    unit = _UNITS.get(text[-1:], 0)
    return int(text[:-1]) * unit if unit else int(text)


def _sharers(entry: Path) -> int:
    """How many processors that this process may use share a cache: the threads of one core, for the near ones."""
    processors: set[int] = set()
    for part in _text(entry, "shared_cpu_list").split(","):
        first, _, last = part.partition("-")
        processors.update(range(int(first), min(int(last or first), int(first) + 4096) + 1))
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else processors
    return max(len(processors & usable), 1)
