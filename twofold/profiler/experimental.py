"""`tf.profiler.experimental`: start and stop a profile, and name parts of a program in it."""

from __future__ import annotations

import os
from collections import namedtuple
from types import TracebackType
from typing import Any

from twofold._front.api import public, public_class
from twofold._front.namespace import publish
from twofold.ir.errors import AlreadyExistsError, UnavailableError
from twofold.runtime import locks

from .recording import Recording

__all__ = ["Profile", "ProfilerOptions", "Trace", "start", "stop"]

ProfilerOptions = namedtuple("ProfilerOptions", ["host_tracer_level", "python_tracer_level", "device_tracer_level",
                                                 "delay_ms"], defaults=[2, 0, 1, None])
ProfilerOptions.__doc__ = """Options of a profile: `device_tracer_level=0` leaves GPUs out. The others are accepted for
TensorFlow's sake, as there is one level here.

>>> import twofold as tf
>>> tf.profiler.experimental.ProfilerOptions(host_tracer_level=3).python_tracer_level
0
"""

_changing = locks.Lock()
_current: Recording | None = None


@public
def start(logdir: Any, options: Any = None) -> None:
    """Start a profile: of every op that runs eagerly, every call of a compiled function, and every named part.

    Ops and calls take longer while they are profiled, by some microseconds each. What runs on a GPU is shown as it
    runs there, by the GPU's clock, kernel by kernel and copy by copy.

    Args:
        logdir: the folder that gets the trace, under `plugins/profile/`.
        options: `ProfilerOptions`.
    Raises:
        AlreadyExistsError: a profile is under way. OSError: the folder cannot be made.

    >>> import tempfile
    >>> import twofold as tf
    >>> tf.profiler.experimental.start(tempfile.mkdtemp())
    >>> _ = tf.tanh(tf.ones([3]))
    >>> tf.profiler.experimental.stop()
    """
    global _current
    with _changing:
        if _current is not None:
            raise AlreadyExistsError("Another profiler is running.")
        folder = os.fsdecode(os.fspath(logdir))
        os.makedirs(folder, exist_ok=True)  # what cannot be written is told before anything is measured
        _current = Recording(folder, getattr(options, "device_tracer_level", 1) != 0)
        _current.start()


@public
def stop(save: bool = True) -> None:
    """End the profile, and write its trace: `LOGDIR/plugins/profile/TIME/HOST.trace.json.gz`.

    The kernels of compiled functions are measured now, one by one, in some more runs for the arguments of a call; in
    the trace each has its share of the call's time. A function that draws random numbers or calls Python is not run
    again, and shows as a whole.

    Args:
        save: whether to write it.
    Raises:
        UnavailableError: no profile is under way.
        OSError: the trace cannot be written.

    >>> import tempfile
    >>> import twofold as tf
    >>> tf.profiler.experimental.start(tempfile.mkdtemp())
    >>> tf.profiler.experimental.stop(save=False)
    """
    global _current
    with _changing:
        if _current is None:
            raise UnavailableError("Cannot export profiling results. No profiler is running.")
        profile, _current = _current, None
        profile.stop()
    if save:
        profile.write()
    else:
        profile.drop()


@public_class
class Profile:
    """A block that is profiled.

    Args:
        logdir: the folder that gets the trace.
        options: `ProfilerOptions`.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> folder = tempfile.mkdtemp()
    >>> with tf.profiler.experimental.Profile(folder):
    ...     _ = tf.tanh(tf.ones([3]))
    >>> os.listdir(folder)
    ['plugins']
    """

    def __init__(self, logdir: Any, options: Any = None):
        self._logdir, self._options = logdir, options

    def __enter__(self) -> Profile:
        start(self._logdir, self._options)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        stop()


@public_class
class Trace:
    """A named part of a program, which the profile shows around what runs in it.

    Args:
        name: its name.
        kwargs: what else to show, such as `step_num=3`.

    >>> import twofold as tf
    >>> with tf.profiler.experimental.Trace("train", step_num=1):
    ...     _ = tf.tanh(tf.ones([3]))
    """

    def __init__(self, name: str, **kwargs: Any):
        self._name, self._more = name, kwargs
        self._begun: list[int] = []

    def __enter__(self) -> Trace:
        profile = _current
        self._begun.append(-1 if profile is None else profile.now())
        return self

    def set_metadata(self, **kwargs: Any) -> None:
        """Add to the metadata that is shown."""
        self._more.update(kwargs)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        profile, begun = _current, self._begun.pop()
        if profile is not None and begun >= 0:
            profile.add(self._name, "part", begun, {k: str(v) for k, v in self._more.items()})


publish(__name__)
