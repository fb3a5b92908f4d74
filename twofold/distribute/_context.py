"""Where a program is: which strategy holds, and whether code runs for all replicas or for one of them.

Outside of any strategy the default one holds, of one replica, and code runs in it. In `strategy.scope()` code runs for
all replicas at once (the cross-replica context); in what `strategy.run` calls, for one. Replicas of one process run in
threads, and meet where they exchange something (`Meeting`). Strategies are `_strategy.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, NamedTuple

from twofold._front.api import public
from twofold._front.together import locks, making

__all__ = ["Left", "Meeting", "Place", "get_replica_context", "get_strategy", "has_strategy",
           "in_cross_replica_context"]


class Place(NamedTuple):
    """A strategy, and the replica that code runs for; None where it runs for all. There, the number of the replica on
    whose device a variable is updated (`StrategyExtended.update`), or None."""

    strategy: Any
    replica: Any
    update: int | None = None


class Meeting:
    """Where the replicas of a process exchange values: each comes with one, and gets what is made of all.

    Replicas run in turns: one goes on until it comes to a meeting, or ends, and then the next. What one makes, such as
    the weights of a layer, the next finds. While a function is traced the lock of traces goes with the turn.

    Args:
        count: how many replicas there are.
        trace: in which they begin.
        at_once: whether they run side by side, which they cannot in a trace.
    Attributes:
        outside: the context in which they were begun, for what is computed for all of them.
        made: the variables that the first replica has made, by name.
    """

    def __init__(self, count: int, trace: Any, at_once: bool = False) -> None:
        self.trace, self.at_once = trace, at_once
        self.outside = copy_context()
        self.made: dict[str | None, list[Any]] = {}
        self._values: list[Any] = [None] * count
        self._turn = locks.Condition(None if trace is None else making)
        self._next = -1 if at_once else 0
        self._count, self._here, self._round = count, 0, 0
        self._done: set[int] = set()
        self._result: Any = None
        self._begun = [0] * count  # how many exchanges each replica has begun
        self._open: dict[int, _Exchange] = {}  # those that not all have begun, by number
        self._ended: int | None = None  # a replica that has
        self.error: BaseException | None = None

    def begin(self, number: int) -> None:
        """Waits for a replica's first turn."""
        with self._turn:
            self._turn.wait_for(lambda: self._next in (-1, number) or self.error is not None)
            if self.trace is not None:
                self._turn.acquire()  # until the end
            self._fail()

    def join(self, number: int, value: Any, combine: Callable[[list[Any]], Any]) -> Any:
        """What `combine` gives for the values of all replicas, of which the last one to come calls it.

        Args:
            number: of the replica in this process.
        Raises:
            RuntimeError: another replica has failed, or ended without coming here.
        """
        with self._turn:
            self._fail()
            self._values[number] = value
            self._here += 1
            self._nobody_missing()
            self._fail()
            this = self._round
            if self._here == self._count:
                values, self._values = self._values, [None] * self._count
                try:
                    self._result = combine(values)
                except BaseException as error:
                    self.fail(error)
                    raise
                self._here, self._round = 0, this + 1
            self._pass_on(number)
            self._turn.wait_for(lambda: self.error is not None or (
                self._round != this and self._next in (-1, number)))
            self._fail()
            return self._result

    def begin_exchange(self, number: int, value: Any, combine: Callable[[list[Any]], Callable[[], Any]]
                       ) -> Callable[[], Any]:
        """Brings a value, and goes on; what is given waits for what is made of the values of all replicas.

        Args:
            number: of the replica in this process.
            combine: begins to make it when all have come, called by the last one; gives what waits for it.
        Raises:
            RuntimeError: another replica has failed, or ended without coming here; also where it is waited for.
        """
        with self._turn:
            self._fail()
            at = self._begun[number]
            exchange = self._open.setdefault(at, _Exchange(self._count))
            self._begun[number] += 1
            exchange.values[number] = value
            exchange.missing -= 1
            if exchange.missing:
                self._nobody_missing()
            else:
                del self._open[at]
        if not exchange.missing:
            self._settle(exchange, combine)
        return lambda: self._end_exchange(number, exchange)

    def _settle(self, exchange: _Exchange, combine: Callable[[list[Any]], Callable[[], Any]]) -> None:
        try:
            wait = combine(exchange.values)
        except BaseException as error:
            self.fail(error)
            raise
        with self._turn:
            exchange.wait = wait
            self._turn.notify_all()

    def _end_exchange(self, number: int, exchange: _Exchange) -> Any:
        with self._turn:
            if exchange.wait is None:
                self._pass_on(number)
            self._turn.wait_for(lambda: self.error is not None or (
                exchange.wait is not None and self._next in (-1, number)))
            self._fail()
        return exchange.wait()  # type: ignore[misc]  # it is there

    def end(self, number: int) -> None:
        """A replica has ended; the others must not wait for it."""
        with self._turn:
            self._done.add(number)
            self._ended = number
            self._nobody_missing()
            self._pass_on(number)
            if self.trace is not None:
                self._turn.release()

    def wait(self) -> None:
        """Waits for the end of all replicas."""
        with self._turn:
            self._turn.wait_for(lambda: len(self._done) == self._count)

    def _pass_on(self, number: int) -> None:
        """Gives the turn to the next replica that has not ended."""
        if self._next != -1:
            following = [n % self._count for n in range(number + 1, number + 1 + self._count)]
            self._next = next((n for n in following if n not in self._done), number)
        self._turn.notify_all()

    def _nobody_missing(self) -> None:
        """Fails where a replica has ended for which others wait."""
        if self._ended is not None and (self._here or self._open):
            self.fail(RuntimeError(f"Replica {self._ended} ended, while others wait for it to reduce a value: all "
                                   "replicas must come to the same reductions in the same order."))

    def fail(self, error: BaseException) -> None:
        """Ends the wait of all replicas."""
        with self._turn:
            self.error = self.error or error
            self._turn.notify_all()

    def _fail(self) -> None:
        if self.error is not None:
            raise Left from self.error


class _Exchange:
    """An exchange of the replicas of a process."""

    def __init__(self, count: int) -> None:
        self.values: list[Any] = [None] * count
        self.missing = count
        self.wait: Callable[[], Any] | None = None


class Left(RuntimeError):
    """Another replica has failed, whose error is that of all."""


def _here() -> Place:
    """Where this context is."""
    place = _place.get()
    return _outside[-1] if place is None else place


_place: ContextVar[Place | None] = ContextVar("place_in_strategy", default=None)
_outside: list[Place] = []  # outside of any scope: of the default strategy, in its one replica


@public
def get_strategy() -> Any:
    """The strategy that holds here: the default one, of one replica, outside of any scope.

    >>> import twofold as tf
    >>> tf.distribute.get_strategy().num_replicas_in_sync
    1
    """
    return _here().strategy


@public
def has_strategy() -> bool:
    """Whether a strategy other than the default one holds here.

    >>> import twofold as tf
    >>> with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
    ...     print(tf.distribute.has_strategy())
    True
    """
    place = _place.get()
    return place is not None and not place.strategy._is_default


@public
def get_replica_context() -> Any:
    """The replica that code runs for; None where it runs for all, as in a strategy's scope.

    >>> import twofold as tf
    >>> with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
    ...     print(tf.distribute.get_replica_context())
    None
    """
    return _here().replica


@public
def in_cross_replica_context() -> bool:
    """Whether code runs for all replicas at once, as in a strategy's scope.

    >>> import twofold as tf
    >>> tf.distribute.in_cross_replica_context()
    False
    """
    return _here().replica is None
