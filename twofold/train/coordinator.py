"""`tf.train.Coordinator`: threads that stop together, and the error of the first that fails."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import twofold as tf
from twofold._front.api import public_class
from twofold._front.together import locks

__all__ = ["Coordinator"]


@public_class
class Coordinator:
    """Has threads stop together.

    A thread asks `should_stop()` as it goes, and any may call `request_stop()`. An error that a thread hands over is
    raised where `join()` waits for them.

    Args:
        clean_stop_exception_types: classes of errors that end the work without being errors of it; by default
            `tf.errors.OutOfRangeError`.

    >>> import threading
    >>> import twofold as tf
    >>> coordinator, seen = tf.train.Coordinator(), []
    >>> def work():
    ...     while not coordinator.should_stop():
    ...         seen.append(len(seen))
    ...         if len(seen) == 3:
    ...             coordinator.request_stop()
    >>> thread = threading.Thread(target=work)
    >>> thread.start()
    >>> coordinator.join([thread])
    >>> seen
    [0, 1, 2]
    """

    def __init__(self, clean_stop_exception_types: Iterable[type[BaseException]] | None = None) -> None:
        self._clean = tuple(clean_stop_exception_types or (tf.errors.OutOfRangeError,))
        self._lock = locks.Condition()  # of all that follows; a request to stop wakes those that wait
        self._stopping = False
        self._error: BaseException | None = None
        self._joined = False
        self._threads: set[threading.Thread] = set()

    @property
    def joined(self) -> bool:
        """Whether `join` has come to its end."""
        return self._joined

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._stopping

    def request_stop(self, ex: Any = None) -> None:
        """Ask all threads to stop.

        Args:
            ex: an error, or what `sys.exc_info()` gives; the first that is handed over is raised by `join`.
        Raises:
            BaseException: the error, where `join` has come to its end already.
        """
        error = ex[1] if isinstance(ex, tuple) else ex
        with self._lock:
            if error is not None and not isinstance(error, self._clean):
                if self._joined:
                    raise error
                if self._error is None and not self._stopping:
                    self._error = error
            self._stopping = True
            self._lock.notify_all()

    def clear_stop(self) -> None:
        """Forget the request to stop, and the error."""
        with self._lock:
            self._joined, self._stopping, self._error = False, False, None

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until a stop is requested.

        Args:
            timeout: for so many seconds at most.
        Returns:
            Whether it was requested.
        """
        with self._lock:
            return self._lock.wait_for(self.should_stop, timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Have `join` wait for a thread, too."""
        with self._lock:
            self._threads.add(thread)

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A `with` block whose error requests a stop, and goes no further."""
        try:
            yield
        except BaseException:  # noqa: BLE001 (whatever it is, `join` raises it)
            self.request_stop(sys.exc_info())

    def raise_requested_exception(self) -> None:
        """Raise the error that was handed over, if there is one."""
        if self._error is not None:
            raise self._error

    def join(self, threads: Iterable[threading.Thread] | None = None, stop_grace_period_secs: float = 120,
             ignore_live_threads: bool = False) -> None:
        """Wait until all threads have ended.

        Args:
            threads: with those that were registered.
            stop_grace_period_secs: how long they may go on after a stop was requested.
            ignore_live_threads: whether those that go on after that are no error.
        Raises:
            BaseException: the error that a thread handed over. RuntimeError: threads go on.
        """
        with self._lock:
            awaited = [*self._threads.union(threads or ())]
        while any(thread.is_alive() for thread in awaited) and not self._stopping:
            for thread in awaited:
                thread.join(0.01)
        end = time.monotonic() + stop_grace_period_secs
        for thread in awaited:
            thread.join(max(0.0, end - time.monotonic()))
        left = [thread.name for thread in awaited if thread.is_alive()]
        with self._lock:
            self._joined, self._threads = True, set()
        self.raise_requested_exception()
        if left and not ignore_live_threads:
            raise RuntimeError(f"Coordinator stopped with threads still running: {' '.join(left)}")
