"""Writers of event files, and which of them is the one of this context.

The writer, the step and the condition of a context live in context variables: threads and tasks have their own. The
files are written by `tensorboard`'s own writer, from a thread of its own.
"""

from __future__ import annotations

import contextvars
import os
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import twofold as tf
from twofold._front.api import describe, public, public_class

__all__ = ["SummaryWriter", "condition", "create_file_writer", "create_noop_writer", "default", "message", "protos",
           "step_now", "steps"]

#: the writer of this context, or None
default: contextvars.ContextVar[SummaryWriter | None] = contextvars.ContextVar("summary_writer", default=None)
#: the step of this context: a number, variable or tensor, or None
steps: contextvars.ContextVar[Any] = contextvars.ContextVar("summary_step", default=None)
#: whether summaries are recorded in this context: a bool, tensor or function of no arguments
condition: contextvars.ContextVar[Any] = contextvars.ContextVar("summary_condition", default=True)


def protos() -> ModuleType:
    """The messages of event files.

    Raises:
        ImportError: `tensorboard` is not installed.
    """
    try:
        from tensorboard.compat.proto import event_pb2
    except ImportError:
        raise ImportError("tf.summary writes event files through the package 'tensorboard', which is not installed: "
                          "pip install 'twofold[tensorboard]'") from None
    return event_pb2


def message(name: str) -> type:
    """The class of a message that event files hold, such as "SummaryMetadata".

    Raises:
        AttributeError: `tensorboard`, which has it, is not installed.
    """
    try:
        event_pb2 = protos()
        from tensorboard.compat.proto import summary_pb2
    except ImportError as error:
        raise AttributeError(str(error)) from None
    kind: type = next(vars(m)[name] for m in (summary_pb2, event_pb2) if name in vars(m))
    return kind


def step_now(step: Any) -> Any:
    """The step given, or that of the context.

    Raises:
        ValueError: there is none.
    """
    number = steps.get() if step is None else step
    if number is None:
        raise ValueError("No step set. Please specify one either through the `step` argument or through "
                         "tf.summary.experimental.set_step()")
    return number


@public_class
class SummaryWriter:
    """Writes summaries to an event file; `tf.summary.create_file_writer` makes one.

    A writer closes its file when it is closed, or when nothing refers to it any more.
    """

    def __init__(self, logdir: str | None, max_queue: int = 10, flush_millis: int = 120_000,
                 filename_suffix: str = ".v2"):
        self._file: Any = None
        self._closed = False
        if logdir is not None:
            protos()
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
            self._file = EventFileWriter(logdir, max_queue, flush_millis / 1000, filename_suffix)
            self._finalizer = weakref.finalize(self, self._file.close)

    def set_as_default(self, step: Any = None) -> None:
        """Make this the writer of the context from now on.

        Args:
            step: the step of summaries that give none.
        """
        default.set(self)
        if step is not None:
            steps.set(step)

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        """Make this the writer of a block, which ends by flushing it.

        Args:
            step: the step of summaries in the block that give none: a number, tensor or variable.
        Raises:
            RuntimeError: the writer is closed.
        """
        if self._closed:
            raise RuntimeError("SummaryWriter is already closed")
        before, at = default.get(), steps.get()
        default.set(self)
        if step is not None:
            steps.set(step)
        try:
            yield self
        finally:
            self.flush()
            default.set(before)
            if step is not None:
                steps.set(at)

    def init(self) -> None:
        """Nothing is left to do: the file is open."""

    def flush(self) -> None:
        """Write everything so far to the file."""
        if self._file is not None and not self._closed:
            self._file.flush()

    def close(self) -> None:
        """Write everything so far, and close the file. A closed writer takes no more summaries."""
        if not self._closed and self._file is not None:
            self._finalizer()
        self._closed = True

    def _event(self, **content: Any) -> None:
        """Add an event; nothing happens where the writer has no file.

        Raises:
            RuntimeError: the writer is closed.
        """
        if self._closed:
            raise RuntimeError("SummaryWriter is already closed")
        if self._file is not None:
            self._file.add_event(protos().Event(wall_time=time.time(), **content))


@public
def create_file_writer(logdir: Any, max_queue: int | None = None, flush_millis: int | None = None,
                       filename_suffix: str | None = None, name: str | None = None,
                       experimental_trackable: bool = False) -> SummaryWriter:
    """A writer of an event file in a folder, which is made where there is none.

    Args:
        logdir: the folder that TensorBoard is given.
        max_queue: how many events wait at most before they are written; 10 by default.
        flush_millis: after how many milliseconds they are written at the latest; two minutes by default.
        filename_suffix: what the file's name ends in; ".v2" by default.
        name, experimental_trackable: accepted, without effect.
    Raises:
        ImportError: the package `tensorboard` is not installed.

    >>> import tempfile
    >>> import twofold as tf
    >>> writer = tf.summary.create_file_writer(tempfile.mkdtemp())
    >>> with writer.as_default(step=1):
    ...     print(bool(tf.summary.scalar("loss", 0.5)))
    True
    """
    if filename_suffix is not None and not isinstance(filename_suffix, str):
        raise TypeError(f"filename_suffix must be a string; got {describe(filename_suffix)}.")
    return SummaryWriter(os.fspath(logdir), 10 if max_queue is None else int(max_queue),
                         120_000 if flush_millis is None else int(flush_millis),
                         ".v2" if filename_suffix is None else filename_suffix)


@public
def create_noop_writer() -> SummaryWriter:
    """A writer that writes nothing, for code that wants one.

    >>> import twofold as tf
    >>> with tf.summary.create_noop_writer().as_default(step=1):
    ...     print(bool(tf.summary.scalar("loss", 0.5)))
    True
    """
    return SummaryWriter(None)


def recording() -> Any:
    """Whether summaries are recorded now: a bool, or a bool tensor where the condition is one."""
    if default.get() is None:
        return False
    recorded = condition.get()
    recorded = recorded() if callable(recorded) else recorded
    return recorded if tf.is_tensor(recorded) else bool(recorded)
