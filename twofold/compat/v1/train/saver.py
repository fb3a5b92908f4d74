"""`Saver`: checkpoints of variables by their names, numbered by steps, of which the latest few are kept."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import listed, public, public_class
from twofold.train import files, state

from .. import variables as own
from ..graph import current_graph

__all__ = ["Saver", "checkpoint_exists", "get_checkpoint_mtimes", "init_from_checkpoint", "remove_checkpoint",
           "update_checkpoint_state"]


@public_class
class Saver:
    """Saves variables under their names, and restores them; TensorFlow's own checkpoints are restored, too.

    Args:
        var_list: variables, or variables by the names to save them under; by default all of the current graph.
        max_to_keep: how many checkpoints are kept; None or 0 for all.
        keep_checkpoint_every_n_hours: a checkpoint is kept for good when the last such one is this old.
        pad_step_number: whether the numbers of steps are written with eight digits.
        allow_empty: whether there may be no variables.
        sharded, name, restore_sequentially, saver_def, builder, write_version, save_relative_paths, filename:
            accepted, without effect.
    Raises:
        RuntimeError: ops run at once, and there is no list of variables.
        ValueError: there are no variables, or two of one name.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> folder = tempfile.mkdtemp()
    >>> with tf.compat.v1.Session() as session:
    ...     v = tf.compat.v1.get_variable("v", initializer=3.0)
    ...     saver = tf.compat.v1.train.Saver()
    ...     session.run(v.initializer)
    ...     path = saver.save(session, folder + "/model", global_step=7)
    ...     _ = session.run(v.assign(0.0))
    ...     saver.restore(session, path)
    ...     print(os.path.basename(path), session.run(v))
    model-7 3.0
    """

    def __init__(self, var_list: Any = None, reshape: bool = False, sharded: bool = False,
                 max_to_keep: int | None = 5, keep_checkpoint_every_n_hours: float = 10000.0, name: str | None = None,
                 restore_sequentially: bool = False, saver_def: Any = None, builder: Any = None,
                 defer_build: bool = False, allow_empty: bool = False, write_version: Any = None,
                 pad_step_number: bool = False, save_relative_paths: bool = False, filename: str | None = None):
        if var_list is None and current_graph() is None:
            raise RuntimeError("When eager execution is enabled, `var_list` must specify a list or dict of variables "
                               "to save")
        self._reshape, self._allow_empty, self._pad = reshape, allow_empty, pad_step_number
        self._variables: dict[str, Any] = {}
        if var_list is not None or not defer_build:
            self._take(var_list)
        self._max = max_to_keep or 0
        self._hours = keep_checkpoint_every_n_hours
        self._kept: dict[str, float] = {}  # path -> when it was written, the oldest first
        self._preserved = time.time()

    def build(self) -> None:
        """Take the variables of the current graph, where that was put off."""
        self._take(None)

    def _take(self, given: Any) -> None:
        variables: dict[str, Any] = {}
        if isinstance(given, Mapping):
            variables = dict(given)
        else:
            for variable in own.global_variables() if given is None else tf.nest.flatten(list(given)):
                name = variable.name.removesuffix(":0")
                if variables.setdefault(name, variable) is not variable:
                    raise ValueError(f"At least two variables have the same name: {name}")
        for name, variable in variables.items():
            if not isinstance(variable, tf.Variable):
                raise TypeError(f"names_to_saveables must be a dict mapping string names to variables. {name!r}: "
                                f"{variable!r}")
        if not variables and not self._allow_empty:
            raise ValueError("No variables to save")
        self._variables = variables

    # -- saving -----------------------------------------------------------------------------------
    def save(self, sess: Any, save_path: Any, global_step: Any = None, latest_filename: str | None = None,
             meta_graph_suffix: str = "meta", write_meta_graph: bool = True, write_state: bool = True,
             strip_default_attrs: bool = False, save_debug_info: bool = False) -> str:
        """Write the values of the variables, and delete the checkpoints that are too many.

        Args:
            sess: the session; None where ops run at once.
            save_path: the start of the path.
            global_step: a number for the end of the name: an integer, variable or tensor.
            latest_filename: another name of the file "checkpoint".
            write_state: whether that file is written, and checkpoints are deleted.
            meta_graph_suffix, write_meta_graph, strip_default_attrs, save_debug_info: accepted, without effect: graphs
                are not written.
        Returns:
            The path, to give to `restore`.
        Raises:
            FailedPreconditionError: a variable has no value yet.
            OSError: it cannot be written.
        """
        prefix = os.fspath(save_path)
        if global_step is not None:
            number = _number(global_step, sess)
            prefix = f"{prefix}-{number:08d}" if self._pad else f"{prefix}-{number}"
        graph = current_graph() if sess is None else sess.graph
        for name, variable in self._variables.items():
            if graph is not None and id(variable) in graph.uninitialised:
                raise tf.errors.FailedPreconditionError(f"Attempting to use uninitialized value {name}")
        with tf.init_scope():
            files.write(prefix, None, {name: np.asarray(v.numpy()) for name, v in self._variables.items()})
        if write_state:
            self._note(prefix, latest_filename)
        return prefix

    def _note(self, path: str, filename: str | None) -> None:
        folder = os.path.dirname(path) or "."
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        doomed = self._surplus()
        state.update(folder, path, list(self._kept), list(self._kept.values()), filename=filename or "checkpoint")
        for old in doomed:  # after the list is without them
            remove_checkpoint(old)

    def _surplus(self) -> list[str]:
        doomed: list[str] = []
        while self._max and len(self._kept) > self._max:
            path = next(iter(self._kept))
            written = self._kept.pop(path)
            if written - self._hours * 3600 >= self._preserved:
                self._preserved = written
            else:
                doomed.append(path)
        return doomed

    @property
    def last_checkpoints(self) -> list[str]:
        """The paths of the checkpoints that are kept and may be deleted later, the oldest first."""
        return list(self._kept)

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Say which checkpoints there are, the oldest first.

        Args:
            last_checkpoints: their paths.
        """
        self._kept = dict.fromkeys(listed(last_checkpoints, "last_checkpoints"), time.time())

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Sequence[tuple[str, float]]) -> None:
        """Say which checkpoints there are, the oldest first, and when they were written.

        Args:
            last_checkpoints_with_time: pairs of a path and a time in seconds since 1970.
        """
        self._kept = dict(listed(last_checkpoints_with_time, "last_checkpoints_with_time"))

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Take over the checkpoints of an earlier process that still exist.

        Args:
            checkpoint_paths: their paths, the oldest first.
        """
        paths = listed(checkpoint_paths, "checkpoint_paths")
        self._kept = dict(zip([p for p in paths if checkpoint_exists(p)], get_checkpoint_mtimes(paths), strict=True))

    # -- restoring --------------------------------------------------------------------------------
    def restore(self, sess: Any, save_path: Any) -> None:
        """Give the variables the values of a checkpoint; they need not be initialised.

        Args:
            sess: the session; None where ops run at once.
            save_path: the path that `save` gave, or one of TensorFlow's checkpoints.
        Raises:
            ValueError: there is no path, or no such checkpoint.
            NotFoundError: there is no value for a variable; none has changed.
            InvalidArgumentError: a value has another shape or dtype than its variable; none has changed.
            DataLossError: the checkpoint is damaged; none has changed.
        """
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        prefix = os.fspath(save_path)
        if not checkpoint_exists(prefix):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {prefix}")
        if not self._variables:
            self._take(None)
        _give(files.open_checkpoint(prefix), self._variables, None if sess is None else sess.graph, self._reshape)


def _number(step: Any, session: Any) -> int:
    if isinstance(step, tf.Variable):
        with tf.init_scope():
            return int(step)
    return int(session.run(step)) if hasattr(step, "trace") else int(step)


def _give(reader: files.CheckpointReader, variables: Mapping[str, Any], graph: Any, reshape: bool = False) -> None:
    """Give variables their values, after all of them were looked at."""
    pairs = []
    for name, variable in variables.items():
        if not reader.has_tensor(name):
            raise tf.errors.NotFoundError(f"Key {name} not found in checkpoint {reader.prefix}")
        array = reader.array(name)
        if reshape and array.size == int(np.prod(variable.shape.as_list())):
            array = array.reshape(variable.shape.as_list())
        if not variable.shape.is_compatible_with(array.shape):
            raise tf.errors.InvalidArgumentError(f"Assign requires shapes of both tensors to match. lhs shape = "
                                                 f"{variable.shape}, rhs shape = {array.shape} ({name})")
        if tf.as_dtype(array.dtype) != variable.dtype:
            raise tf.errors.InvalidArgumentError(f"{name} is {tf.as_dtype(array.dtype).name} in {reader.prefix}, and "
                                                 f"the variable is {variable.dtype.name}")
        pairs.append((variable, array))
    with tf.init_scope():
        for variable, array in pairs:
            variable.assign(tf.constant(array))
            if graph is not None:
                graph.uninitialised.discard(id(variable))


@public
def init_from_checkpoint(ckpt_dir_or_file: Any, assignment_map: Any) -> None:
    """Let variables of the current graph start from the values of a checkpoint.

    Args:
        ckpt_dir_or_file: the path of a checkpoint, or a folder.
        assignment_map: names, or scopes that end in a slash, of the checkpoint, and what they are for: variables, names
            of variables, or scopes of the graph.
    Raises:
        ValueError: there is no such variable, or no value for one, or it has another shape.
    """
    reader = files.open_checkpoint(ckpt_dir_or_file)
    graph = current_graph()
    known = {v.name[:-2]: v for v in own.global_variables()}
    pairs: dict[str, Any] = {}
    for theirs, ours in assignment_map.items():
        if theirs.endswith("/"):
            prefix, within = theirs.lstrip("/"), "" if ours == "/" else ours
            pairs.update({prefix + name.removeprefix(within): v for name, v in known.items()
                          if name.startswith(within) and reader.has_tensor(prefix + name.removeprefix(within))})
        elif isinstance(ours, str) and ours not in known:
            raise ValueError(f"Assignment map with variable {ours}: there is no such variable in the graph")
        else:
            pairs[theirs] = known[ours] if isinstance(ours, str) else ours
    for name, variable in pairs.items():
        if not reader.has_tensor(name):
            raise ValueError(f"Tensor {name} is not found in {reader.prefix}")
        array = reader.array(name)
        if not variable.shape.is_compatible_with(array.shape):
            raise ValueError(f"Shape of variable {variable.name} ({variable.shape}) doesn't match with shape of tensor "
                             f"{name} ({array.shape}) from checkpoint reader.")
        if graph is None:
            variable.assign(array)
        else:
            graph.initial[id(variable)] = tf.constant(array)


# -- files ---------------------------------------------------------------------------------------------
@public
def checkpoint_exists(checkpoint_prefix: Any) -> bool:
    """Whether there is a checkpoint of a name.

    Args:
        checkpoint_prefix: the path that `save` gave.
    """
    return files.exists(os.fspath(checkpoint_prefix))


@public
def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[Any]) -> list[float]:
    """When checkpoints were written, in seconds since 1970; those that are not there are left out.

    Args:
        checkpoint_prefixes: their paths.
    """
    return [max(file.stat().st_mtime for file in files.files_of(os.fspath(prefix)))
            for prefix in listed(checkpoint_prefixes, "checkpoint_prefixes") if checkpoint_exists(prefix)]


@public
def remove_checkpoint(checkpoint_prefix: Any, checkpoint_format_version: Any = None,
                      meta_graph_suffix: str = "meta") -> None:
    """Delete the files of a checkpoint.

    Args:
        checkpoint_prefix: its path.
        checkpoint_format_version, meta_graph_suffix: accepted, without effect.
    """
    for file in reversed(files.files_of(os.fspath(checkpoint_prefix))):
        file.unlink(missing_ok=True)


@public
def update_checkpoint_state(save_dir: Any, model_checkpoint_path: str,
                            all_model_checkpoint_paths: Sequence[str] | None = None,
                            latest_filename: str | None = None,
                            all_model_checkpoint_timestamps: Sequence[float] | None = None,
                            last_preserved_timestamp: float | None = None) -> None:
    """Write the file "checkpoint" of a folder.

    Args:
        save_dir: the folder.
        model_checkpoint_path: the latest checkpoint.
        all_model_checkpoint_paths: all of them, the oldest first.
        latest_filename: another name of the file.
        all_model_checkpoint_timestamps: when each was written.
        last_preserved_timestamp: when the last one was written that is kept for good.
    """
    every = listed(all_model_checkpoint_paths or (), "all_model_checkpoint_paths")
    if model_checkpoint_path not in every:
        every.append(model_checkpoint_path)
    state.update(os.fspath(save_dir), model_checkpoint_path, every,
                 listed(all_model_checkpoint_timestamps or (), "all_model_checkpoint_timestamps"),
                 last_preserved_timestamp or 0.0, latest_filename or "checkpoint")
