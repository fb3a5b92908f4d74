"""What traced functions, tapes and the cache tell of themselves: `TWOFOLD_LOG=retrace,cache` prints lines to stderr.

Topics are words, separated by commas; `all` means every one. The variable is read at each line, so that it can be
set while a program runs.
"""

from __future__ import annotations

import os
import sys

__all__ = ["log", "wanted"]


def wanted(topic: str) -> bool:
    """Whether lines of this topic are printed."""
    topics = os.environ.get("TWOFOLD_LOG", "")
    return bool(topics) and not {topic, "all"}.isdisjoint(topics.replace(" ", "").split(","))


def log(topic: str, text: str) -> None:
    """Print `twofold TOPIC: TEXT` where the topic is wanted."""
    if wanted(topic):
        sys.stderr.write(f"twofold {topic}: {text}\n")
        sys.stderr.flush()
