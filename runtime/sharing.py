"""From how much work on threads share it, and how much each of them gets: one definition for all that runs kernels.

Work is counted in simple operations on an element, five to twelve of which take a nanosecond. How threads share a range
is `threads.py`'s; which units a product falls into, `products.py`'s.
"""

from __future__ import annotations

__all__ = ["SMALL", "GRAIN", "IN_PROGRAMS", "IN_ROUNDS", "AT_ONCE", "IN_BACKWARD", "threads_for"]

SMALL = 1 << 14  # below it a kernel or program runs with the interpreter's lock held
GRAIN = 1 << 15  # what a thread gets at least
IN_PROGRAMS = 1 << 16  # from which a step of a compiled program is shared: its kernels follow at once
IN_ROUNDS = 1 << 14  # from which as a round a loop is shared as a whole: threads start once for all rounds
# From which an op that runs at once is shared: 20 to 50 microseconds. Between two ops a thread that waits falls asleep,
# and waking it takes 10 to 60 of them.
AT_ONCE = 1 << 18
# From which a step of a compiled backward pass is. Eager ops run before and after it, in which threads fall asleep, and
# so it takes more to be worth waking them than in a loop of calls.
IN_BACKWARD = 4 * AT_ONCE


def threads_for(work: int, most: int) -> int:
    """How many of `most` threads share `work`, where they do."""
    return max(min(most, work // GRAIN), 1)
