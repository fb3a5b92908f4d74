"""`tf.train.CheckpointManager`: numbered checkpoints of a folder, of which the latest few are kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import twofold as tf
from twofold._front.api import public, public_class

from . import files, state
from .checkpoint import Checkpoint, called_back

__all__ = ["CheckpointManager", "checkpoints_iterator"]


@public_class
class CheckpointManager:
    """Keeps the latest checkpoints of a folder, and deletes older ones.

    Args:
        checkpoint: the `tf.train.Checkpoint` to save.
        directory: the folder; it is made when the first checkpoint is saved.
        max_to_keep: how many are kept; None for all.
        keep_checkpoint_every_n_hours: a checkpoint is kept for good when the last such one is this old.
        checkpoint_name: the names are this, "-" and a number.
        step_counter: a variable that counts steps, for `checkpoint_interval`.
        checkpoint_interval: the steps from one checkpoint to the next; `save` in between does nothing.
        init_fn: called by `restore_or_initialize` where there is no checkpoint.
    Raises:
        ValueError: an argument is out of range, or the interval has no counter.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1)), tempfile.mkdtemp(), max_to_keep=2)
    >>> for _ in range(3):
    ...     _ = manager.save()
    >>> [os.path.basename(path) for path in manager.checkpoints]
    ['ckpt-2', 'ckpt-3']
    """

    def __init__(self, checkpoint: Checkpoint, directory: Any, max_to_keep: int | None,
                 keep_checkpoint_every_n_hours: float | None = None, checkpoint_name: str = "ckpt",
                 step_counter: Any = None, checkpoint_interval: int | None = None,
                 init_fn: Callable[[], Any] | None = None, last_checkpoint_step: int | None = None):
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self._checkpoint = checkpoint
        self._directory = os.fspath(directory)
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._max_to_keep = max_to_keep
        self._hours = keep_checkpoint_every_n_hours
        self._step_counter, self._interval = step_counter, checkpoint_interval
        self._init_fn = init_fn
        self._last_step = last_checkpoint_step
        self._kept: dict[str, float] = {}  # path -> when it was written, the oldest first
        self._doomed: dict[str, int] = {}  # path -> its time: what an earlier process was about to delete
        earlier = state.get_checkpoint_state(self._directory)
        self._preserved = time.time() if earlier is None or not earlier.last_preserved_timestamp \
            else earlier.last_preserved_timestamp
        if earlier is not None:
            self._adopt(earlier)

    def _adopt(self, earlier: state.CheckpointState) -> None:
        """Go on with the checkpoints of an earlier process, as far as they are still there."""
        paths, times = earlier.all_model_checkpoint_paths, earlier.all_model_checkpoint_timestamps
        if len(times) != len(paths):
            times = [time.time()] * len(paths)
        self._kept = {path: at for path, at in zip(paths, times, strict=True) if files.exists(path)}
        self._doomed = earlier.doomed

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint that is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The steps from one checkpoint to the next."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints that are kept and may be deleted later, the oldest first."""
        return list(self._kept)

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint; None where there is none."""
        return next(reversed(self._kept), None)

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint; where there is none, call `init_fn`.

        Returns:
            The path of what was restored, or None.
        """
        latest = self.latest_checkpoint
        if latest is not None:
            self._checkpoint.restore(latest)
            if self._step_counter is not None:
                self._last_step = int(self._step_counter)
            return latest
        if self._init_fn is not None:
            self._init_fn()
        return None

    def save(self, checkpoint_number: Any = None, check_interval: bool = True,
             options: Any = None) -> str | None:
        """Save a checkpoint, and delete those that are too many.

        Args:
            checkpoint_number: the number in its name, an integer, variable or tensor; by default the next one.
            check_interval: whether nothing is saved before the interval is over.
            options: a `CheckpointOptions`, for what is called when it is written.
        Returns:
            The path, or None where nothing was saved.
        Raises:
            OSError: it cannot be written.
        """
        step = None if self._step_counter is None else int(self._step_counter)
        if check_interval and self._interval is not None and self._last_step is not None and step is not None \
                and self._last_step <= step < self._last_step + self._interval:
            return None
        left = {old: at for old, at in self._doomed.items() if old not in self._kept and files.time_of(old) == at}
        self._delete(left)  # first, so that processes which are killed while they save do not pass on more and more
        with tf.init_scope():
            counter = self._checkpoint.save_counter
            counter.assign_add(1)
            number = int(counter) if checkpoint_number is None else int(checkpoint_number)
            path = self._checkpoint._write(f"{self._prefix}-{number}")
        self._last_step = step
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        doomed = {old: files.time_of(old) for old in self._surplus()}
        state.update(self._directory, path, list(self._kept), list(self._kept.values()), self._preserved, doomed=doomed)
        self._delete(doomed)  # after the list is without them, so that it never names what is not there
        called_back(options, path)
        return path

    def _delete(self, doomed: dict[str, int]) -> None:
        """Delete checkpoints that are on the list no more: now, or at the next save where this is interrupted."""
        self._doomed = doomed
        for old in doomed:
            for file in reversed(files.files_of(old)):
                file.unlink(missing_ok=True)
        self._doomed = {}

    def _surplus(self) -> list[str]:
        """The checkpoints to delete, which are taken off the list; those kept for good are too."""
        doomed: list[str] = []
        while self._max_to_keep is not None and len(self._kept) > self._max_to_keep:
            path = next(iter(self._kept))
            written = self._kept.pop(path)
            if self._hours is not None and written - self._hours * 3600 >= self._preserved:
                self._preserved = written
            else:
                doomed.append(path)
        return doomed

    def sync(self) -> None:
        """Nothing is left to do: checkpoints are written when `save` returns."""


@public
def checkpoints_iterator(checkpoint_dir: Any, min_interval_secs: float = 0, timeout: float | None = None,
                         timeout_fn: Callable[[], bool] | None = None) -> Iterator[str]:
    """The checkpoints of a folder as they are written, the latest each time.

    Args:
        checkpoint_dir: the folder.
        min_interval_secs: seconds from one to the next, at least.
        timeout: seconds to wait for another; None for ever.
        timeout_fn: called when they are over; the wait ends if it gives True.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> folder = tempfile.mkdtemp()
    >>> _ = tf.train.Checkpoint(v=tf.Variable(1)).save(folder + "/ckpt")
    >>> [os.path.basename(path) for path in tf.train.checkpoints_iterator(folder, timeout=0)]
    ['ckpt-1']
    """
    return _iterate(os.fspath(checkpoint_dir), min_interval_secs, timeout, timeout_fn)


def _iterate(folder: str, interval: float, timeout: float | None, told: Callable[[], bool] | None) -> Iterator[str]:
    seen: str | None = None
    while True:
        path = _another(folder, seen, timeout)
        if path is None:
            if told is None or told():
                return
            continue
        seen = path
        begun = time.monotonic()
        yield path
        time.sleep(max(0.0, interval - (time.monotonic() - begun)))


def _another(folder: str, seen: str | None, timeout: float | None) -> str | None:
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        path = files.latest_checkpoint(folder)
        if path is not None and path != seen:
            return path
        if end is not None and time.monotonic() >= end:
            return None
        time.sleep(0.05 if end is None else min(0.05, max(0.0, end - time.monotonic())))
