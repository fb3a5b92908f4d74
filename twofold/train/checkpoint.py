"""`tf.train.Checkpoint`: saving and restoring the state of objects."""

from __future__ import annotations

import inspect
import os
import weakref
from typing import Any

import twofold as tf
from twofold import tracking
from twofold._front import replica
from twofold._front.api import listed, public_class

from . import files, state
from .objects import SHOWN, Restoration, describe, names_text, paths_of

__all__ = ["Checkpoint", "CheckpointLoadStatus", "CheckpointOptions", "InitializationOnlyStatus", "called_back"]


class CheckpointOptions:
    """How to write or read a checkpoint.

    Args:
        experimental_write_callbacks: functions that are called after a checkpoint was written, in this order, with its
            path, or without arguments where they take none.
        experimental_io_device, experimental_enable_async_checkpoint, enable_async, experimental_sharding_callback,
            experimental_skip_slot_variables: accepted for TensorFlow's sake, without effect.
    Raises:
        ValueError: a callback takes more than one argument.

    >>> import tempfile
    >>> import twofold as tf
    >>> options = tf.train.CheckpointOptions(experimental_write_callbacks=[lambda: print("written")])
    >>> _ = tf.train.Checkpoint(v=tf.Variable(1)).save(tempfile.mkdtemp() + "/ckpt", options)
    written
    """

    def __init__(self, experimental_io_device: str | None = None, experimental_enable_async_checkpoint: bool = False,
                 experimental_write_callbacks: Any = None, enable_async: bool = False,
                 experimental_sharding_callback: Any = None, experimental_skip_slot_variables: bool = False):
        self.experimental_io_device = experimental_io_device
        self.experimental_enable_async_checkpoint = experimental_enable_async_checkpoint
        for callback in listed(experimental_write_callbacks or (), "experimental_write_callbacks"):
            if len(inspect.signature(callback).parameters) > 1:
                raise ValueError(f"CheckpointOptions: a write callback takes the path or nothing; got {callback!r}")
        self.experimental_write_callbacks = experimental_write_callbacks
        self.enable_async = enable_async
        self.experimental_sharding_callback = experimental_sharding_callback
        self.experimental_skip_slot_variables = experimental_skip_slot_variables


def called_back(options: Any, path: str) -> None:
    """Call the callbacks that the options have for after writing."""
    for callback in getattr(options, "experimental_write_callbacks", None) or ():
        callback(path) if inspect.signature(callback).parameters else callback()


@public_class
class CheckpointLoadStatus:
    """The state of a restore: values for attributes that do not exist yet are kept until they do."""

    def __init__(self, root: Any, restoration: Restoration) -> None:
        self._root = root
        self._restoration = restoration

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Assert that every value of the checkpoint has found its object, and every object its value.

        Raises:
            AssertionError: some have not; the text names them.
        """
        if self._restoration.untaken:
            names = paths_of(self._restoration.nodes, self._restoration.untaken)
            raise AssertionError(f"Unresolved objects in checkpoint {self._restoration.source}: {names_text(names)}")
        return self._matched()

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Assert that every object with state has found its value; the checkpoint may hold more.

        Raises:
            AssertionError: some have not; the text names them.
        """
        return self._matched()

    def _matched(self) -> CheckpointLoadStatus:
        taken = {id(value) for value in self._restoration.bound.values()}
        missing = [value for path, value in tracking.walk(self._root)
                   if id(value) not in taken and _has_state(value) and path != ("save_counter",)]
        if missing:
            raise AssertionError(
                f"Found {len(missing)} Python objects that were not bound to checkpointed values, likely due to "
                f"changes in the Python program. Showing {min(SHOWN, len(missing))} of {len(missing)} unmatched "
                f"objects: {missing[:SHOWN]}")
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Assert that something beside the root has found its value.

        Raises:
            AssertionError: nothing has.
        """
        if not any(_has_state(value) for value in self._restoration.bound.values()):
            raise AssertionError("Nothing except the root object matched a checkpointed value "
                                 f"({self._restoration.source})")
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Say that it is right if parts of the checkpoint are not used, so that nothing is told of them."""
        self._restoration.finalizer.detach()
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Nothing is left to do: values are restored at once, or when their objects are made."""

    def run_restore_ops(self, session: Any = None) -> None:
        """Nothing is left to do: values are restored at once, or when their objects are made."""


def _has_state(value: Any) -> bool:
    return isinstance(value, tf.Variable) or (isinstance(value, tracking.Trackable) and bool(value._saved_values()))


@public_class
class InitializationOnlyStatus:
    """The status of `restore(None)`: nothing was restored, and asserting otherwise fails."""

    def _fail(self) -> Any:
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    def assert_consumed(self) -> Any:
        """Fails.

        Raises:
            AssertionError: always.
        """
        return self._fail()

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed

    def expect_partial(self) -> InitializationOnlyStatus:
        """Does nothing."""
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Does nothing: variables have their first values."""

    def run_restore_ops(self, session: Any = None) -> None:
        """Fails.

        Raises:
            AssertionError: always.
        """
        self._fail()


@public_class
class Checkpoint(tracking.Trackable):
    """Saves the state of objects, and restores it by the names that lead to them.

    Objects are found through attributes of `tf.Module`s, layers, models, optimizers, metrics and other trackable
    objects, and through lists, tuples and dicts of them. A program that restores need not make them in the same order,
    and may make them later: a value waits until its variable is made.

    Args:
        root: an object whose attributes are saved as those of the checkpoint itself.
        **kwargs: the objects to save, by the names they have in the checkpoint.
    Raises:
        ValueError: one of them holds no state that can be saved.

    >>> import tempfile
    >>> import twofold as tf
    >>> folder = tempfile.mkdtemp()
    >>> v = tf.Variable(1.0)
    >>> path = tf.train.Checkpoint(v=v).save(folder + "/ckpt")
    >>> w = tf.Variable(0.0)
    >>> _ = tf.train.Checkpoint(v=w).restore(path).assert_consumed()
    >>> float(w)
    1.0
    """

    _root: Any
    _save_counter: Any

    def __init__(self, root: Any = None, **kwargs: Any):
        root = root() if isinstance(root, weakref.ref) else root
        if root is not None and not isinstance(root, tracking.Trackable):
            raise ValueError(f"tf.train.Checkpoint: root must be a trackable object, got {root!r}")
        there = {} if root is None else tracking.children(root)
        for name, value in sorted(kwargs.items()):
            if not tracking.is_tracked(value) and not isinstance(value, (list, dict)):
                raise ValueError(f"`Checkpoint` was expecting {name} to be a trackable object (a variable, module, "
                                 f"layer, model, optimizer, metric, iterator, list or dict of such), got {value!r}")
            if name in there and there[name] is not value:
                raise ValueError(f"tf.train.Checkpoint: root has another child named {name!r} than the one given")
        object.__setattr__(self, "_root", root)
        object.__setattr__(self, "_save_counter", None)
        for name, value in kwargs.items():
            setattr(self, name, value)

    def _tracked_children(self) -> dict[str, Any]:
        children = {name: value for name, value in super()._tracked_children().items() if not name.startswith("_")}
        if self._root is not None:
            children = {**tracking.children(self._root), **children}
        if self._save_counter is not None:
            children["save_counter"] = self._save_counter
        return children

    def _saved_values(self) -> dict[str, Any]:
        return {} if self._root is None else self._root._saved_values()

    def _restore_values(self, values: dict[str, Any]) -> None:
        if self._root is not None:
            self._root._restore_values(values)

    @property
    def save_counter(self) -> tf.Variable:
        """How often `save` was called: an int64 variable, which is part of the checkpoint."""
        if self._save_counter is None:
            with tf.init_scope():
                made = tf.Variable(0, dtype=tf.int64, trainable=False, name="save_counter")
            object.__setattr__(self, "_save_counter", made)
            waiting = self.__dict__.get("_waiting_for_children") or {}
            if "save_counter" in waiting:
                waiting.pop("save_counter")(made)
        return self._save_counter

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Write the state to `file_prefix`, exactly. The counter of `save` stays as it is.

        Args:
            file_prefix: the path, without suffix. What was there is replaced in one step.
            options: a `CheckpointOptions`, for what is called when it is written.
        Returns:
            The path, to give to `read`.
        Raises:
            OSError: it cannot be written.
        """
        path = self._write(file_prefix)
        called_back(options, path)
        return path

    def _write(self, file_prefix: Any) -> str:
        prefix = os.fspath(file_prefix)
        with tf.init_scope(), replica.reading_own():
            files.write(prefix, *describe(self))
        return prefix

    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Write the state to `file_prefix` with a number behind it, and note it as the latest of its folder.

        Args:
            file_prefix: the start of the path, such as "/tmp/training/ckpt".
            options: a `CheckpointOptions`, for what is called when it is written.
        Returns:
            The path, to give to `restore`, such as "/tmp/training/ckpt-1".
        Raises:
            OSError: it cannot be written.
        """
        with tf.init_scope():
            self.save_counter.assign_add(1)
            path = self._write(f"{os.fspath(file_prefix)}-{int(self.save_counter)}")
            state.update(os.path.dirname(path) or ".", path, [path])
        called_back(options, path)
        return path

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> CheckpointLoadStatus:
        """Restore the state that `write` wrote.

        Args:
            save_path: the path that `write` gave; one of TensorFlow's checkpoints is read too.
            options: accepted, without effect.
        Raises:
            NotFoundError: there is no such checkpoint.
            DataLossError: it is damaged.
            ValueError: a variable has another shape than its value.
            InvalidArgumentError: a variable has another dtype than its value. No object has changed in any case.
        """
        reader = files.open_checkpoint(save_path)
        variables = {v.name.removesuffix(":0"): v for _, v in tracking.walk(self) if isinstance(v, tf.Variable)}
        nodes = reader.nodes
        if nodes is None:
            nodes = files.by_names(reader, variables)
        restoration = Restoration(nodes, reader.array, reader.prefix)
        try:
            if reader.nodes is None:
                restoration.bound[0] = self
                for name, number in nodes[0].children.items():
                    restoration.bind(variables[name], number)
            else:
                restoration.bind(self, 0)
        except BaseException:
            restoration.finalizer.detach()  # the error says enough
            raise
        return CheckpointLoadStatus(self, restoration)

    def restore(self, save_path: Any,
                options: CheckpointOptions | None = None) -> CheckpointLoadStatus | InitializationOnlyStatus:
        """Restore the state that `save` wrote. Values for attributes that do not exist yet wait until they do.

        Args:
            save_path: the path that `save` gave, or a folder, for its latest checkpoint, or one of TensorFlow's
                checkpoints. None restores nothing, as `tf.train.latest_checkpoint` of an empty folder asks for.
            options: accepted, without effect.
        Returns:
            An object with `assert_consumed()`, `assert_existing_objects_matched()`, `assert_nontrivial_match()` and
            `expect_partial()`.
        Raises:
            NotFoundError: there is no such checkpoint.
            DataLossError: it is damaged.
            ValueError: a variable has another shape than its value.
            InvalidArgumentError: a variable has another dtype than its value. No object has changed in any case.
        """
        if save_path is None:
            return InitializationOnlyStatus()
        status = self.read(save_path)
        _ = self.save_counter  # made here, so that the checkpoint's number is taken and counting goes on
        return status
