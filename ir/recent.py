"""A dictionary that keeps what came last, in programs of many threads.

Who remembers what was planned, compiled or traced for a key does so by this. That the entries are right for their keys
is the owner's affair.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

__all__ = ["Recent"]

K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """A dictionary of at most `most` entries (one more for each further thread that adds one at the same moment): for a
    new one the oldest goes.

    Threads may share it without a lock. That is why the oldest is taken by `popitem`, which is one step: between two
    steps of an iteration other threads may add and remove entries, even within `list(d.items())`, since the tuples
    made there may start a garbage collection, which runs finalizers. Reading an entry costs what it costs in any
    dictionary.

    Args:
        most: how many entries there are at most.
        preferred: tells by a value whether others go before it.

    >>> squares = Recent(2)
    >>> for n in 1, 2, 3:
    ...     _ = squares.remember(n, n * n)
    >>> dict(squares)
    {2: 4, 3: 9}
    """

    def __init__(self, most: int, preferred: Callable[[V], bool] | None = None) -> None:
        super().__init__()
        self._most, self._preferred = most, preferred

    def remember(self, key: K, value: V) -> V:
        """Adds an entry, or gives the one of `key` another value; returns `value`."""
        if key not in self:
            self._make_room()
        self[key] = value
        return value

    def _make_room(self) -> None:
        spared = 0
        while len(self) >= self._most:
            try:
                key, value = self.popitem(last=False)
            except KeyError:  # other threads have emptied it
                return
            if self._preferred is not None and spared < self._most and self._preferred(value):
                self[key] = value  # once more, as the newest: if all are such, it is the oldest again in the end
                spared += 1
