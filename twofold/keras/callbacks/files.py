"""Callbacks that write files: checkpoints, tables of values, backups of a training."""

from __future__ import annotations

import csv
import json
import os
import shutil
from typing import Any

import numpy as np

from twofold._formats import replacing as _replacing
from twofold._formats.reading import opened, parsed_json, reads

from ..distribution import from_chief, is_chief
from .base import Callback
from .monitors import Monitor, tell

__all__ = ["BackupAndRestore", "CSVLogger", "ModelCheckpoint"]


class ModelCheckpoint(Monitor):
    """Saves the model, or its weights, while it is trained.

    Args:
        filepath: where to; `{epoch}` and the names of values are filled in. Folders are made. It ends in `.keras`
            (or `.h5`) for models, in `.weights.h5` for weights.
        monitor: the name of the value that says which model is best.
        verbose: 1 to tell of each file.
        save_best_only: whether only a model better than all before is saved; every one where there is no value.
        save_weights_only: whether only weights are saved.
        mode: "min", "max" or "auto".
        save_freq: "epoch", or a number of batches.
        initial_value_threshold: what the first saved value must be better than.
    Raises:
        ValueError: the file's ending does not go with what is saved, or `save_freq` is neither.

    >>> import twofold as tf
    >>> tf.keras.callbacks.ModelCheckpoint("best.weights.h5", save_weights_only=True).monitor
    'val_loss'
    """

    _by_chief_alone = True

    def __init__(self, filepath: Any, monitor: str = "val_loss", verbose: int = 0, save_best_only: bool = False,
                 save_weights_only: bool = False, mode: str = "auto", save_freq: Any = "epoch",
                 initial_value_threshold: float | None = None, **kwargs: Any):
        super().__init__(monitor, mode, best=initial_value_threshold)
        unknown = set(kwargs) - {"period", "options"}
        if unknown:
            raise TypeError(f"ModelCheckpoint takes no arguments {sorted(unknown)}.")
        self.filepath = os.fspath(filepath)
        self.verbose, self.save_best_only, self.save_weights_only = verbose, save_best_only, save_weights_only
        self.save_freq, self.period = save_freq, kwargs.get("period", 1)
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(f"Unrecognized save_freq: {save_freq}. Expected save_freq are 'epoch' or integer values")
        if save_weights_only and not self.filepath.endswith(".weights.h5"):
            raise ValueError("When using `save_weights_only=True` in `ModelCheckpoint`, the filepath provided must end "
                             f"in `.weights.h5` (Keras weights format). Received: filepath={self.filepath}")
        if not save_weights_only and not self.filepath.endswith((".keras", ".h5", ".hdf5")):
            raise ValueError("The filepath provided must end in `.keras` (Keras model format). Received: "
                             f"filepath={self.filepath}")
        self._batches, self._epoch, self._last_batch = 0, 0, 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Note the number of the epoch."""
        self._epoch = epoch
        self._last_batch = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Save where a number of batches is done."""
        if self.save_freq == "epoch":
            return
        self._batches += batch + 1 - self._last_batch
        self._last_batch = batch + 1
        if self._batches >= self.save_freq:
            self._batches = 0
            self._save(self._epoch, batch, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Save where an epoch is done."""
        if self.save_freq == "epoch" and (epoch + 1) % self.period == 0:
            self._save(epoch, None, logs)

    def _save(self, epoch: int, batch: int | None, logs: Any) -> None:
        path = self._path(epoch, batch, logs)
        if self.save_best_only:
            value = self.value_in(logs)
            if value is None:
                self._store(epoch, path)
                return
            if not self.is_better(value, self.best):
                if self.verbose:
                    tell(f"\nEpoch {epoch + 1}: {self.monitor} did not improve from {self.best:.5f}")
                return
            if self.verbose:
                old = np.inf if self.best is None else self.best
                tell(f"\nEpoch {epoch + 1}: {self.monitor} improved from {old:.5f} to {value:.5f}, saving model to "
                     f"{path}")
            self.best = value
        elif self.verbose:
            tell(f"\nEpoch {epoch + 1}: saving model to {path}")
        self._store(epoch, path)

    def _store(self, epoch: int, path: str) -> None:
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        if self.save_weights_only:
            self.model.save_weights(path, overwrite=True)
        else:
            self.model.save(path, overwrite=True)
        if self.verbose:
            tell(f"\nEpoch {epoch + 1}: finished saving model to {path}")

    def _path(self, epoch: int, batch: int | None, logs: Any) -> str:
        """The file's name with the values filled in.

        Raises:
            KeyError: it names a value that is not there.
        """
        values = dict(logs or {})
        if batch is not None:
            values["batch"] = batch + 1
        try:
            return self.filepath.format(epoch=epoch + 1, **values)
        except KeyError as e:
            raise KeyError(f'Failed to format this callback filepath: "{self.filepath}". There is no value {e}.'
                           ) from e


class CSVLogger(Callback):
    """Writes the values of each epoch into a table.

    Args:
        filename: the file.
        separator: between values.
        append: whether a file that is there is continued.

    >>> import twofold as tf
    >>> tf.keras.callbacks.CSVLogger("log.csv").sep
    ','
    """

    _by_chief_alone = True

    def __init__(self, filename: Any, separator: str = ",", append: bool = False):
        super().__init__()
        self.filename, self.sep, self.append_to = os.fspath(filename), separator, append
        self._names: list[str] | None = None
        self._file: Any = None
        self._headed = False

    def on_train_begin(self, logs: Any = None) -> None:
        """Open the file."""
        self._headed = False
        if self.append_to and os.path.exists(self.filename):
            with open(self.filename, encoding="utf-8") as file:
                self._headed = bool(file.readline().strip())
        self._file = open(self.filename, "a" if self.append_to else "w", newline="", encoding="utf-8")  # noqa: SIM115
        self._names = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write the values of an epoch."""
        logs = logs or {}
        if self._names is None:
            self._names = sorted(logs)
            if not any(name.startswith("val_") for name in logs):  # a validation may come in a later epoch
                self._names += [f"val_{name}" for name in self._names]
            if not self._headed:
                csv.writer(self._file, delimiter=self.sep, lineterminator="\n").writerow(["epoch", *self._names])
        row = [epoch, *[_text(logs.get(name, "NA")) for name in self._names]]
        csv.writer(self._file, delimiter=self.sep, lineterminator="\n").writerow(row)
        self._file.flush()

    def on_train_end(self, logs: Any = None) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _text(value: Any) -> Any:
    return f'"[{", ".join(map(str, value))}]"' if isinstance(value, (list, tuple, np.ndarray)) else value


class BackupAndRestore(Callback):
    """Keeps the state that a training needs to go on after it was interrupted.

    A `fit` with the same folder goes on after the last epoch that was kept: weights, the optimizer's state and the
    number of the epoch come back. The folder is removed when the training ends. Of several processes (`tf.distribute`)
    the first one keeps and reads it.

    Args:
        backup_dir: the folder.
        save_freq: "epoch", or a number of batches.
        double_checkpoint: accepted, without effect: a backup takes the place of the one before in one step, so that
            there is always a whole one.
        delete_checkpoint: whether the folder is removed at the end.
    Raises:
        ValueError: there is no folder, or `save_freq` is neither.

    >>> import twofold as tf
    >>> backup = tf.keras.callbacks.BackupAndRestore("backups")
    """

    def __init__(self, backup_dir: Any, save_freq: Any = "epoch", double_checkpoint: bool = False,
                 delete_checkpoint: bool = True):
        super().__init__()
        if not backup_dir:
            raise ValueError("Empty `backup_dir` argument passed")
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(f"`save_freq` must be 'epoch' or an integer; got {save_freq!r}.")
        self.backup_dir, self.save_freq = os.fspath(backup_dir), save_freq
        self.delete_checkpoint = delete_checkpoint
        self.restored_epoch: int | None = None
        self._epoch, self._batches = 0, 0

    def _file(self) -> str:
        return os.path.join(self.backup_dir, "latest.npz")

    def on_train_begin(self, logs: Any = None) -> None:
        """Restore the state that was kept."""
        self.restored_epoch = None
        kept = from_chief(self.model._strategy,
                          lambda: _kept_state(self._file()) if os.path.exists(self._file()) else None)
        if kept is None:
            return
        about, weights, slots = kept
        if not self.model.built:
            raise ValueError("The model to restore has no weights yet: call it, or `build` it, before `fit`.")
        self.model.set_weights(weights)
        optimizer = self.model.optimizer
        optimizer.build(self.model.trainable_variables)
        for variable, value in zip(optimizer.variables, slots, strict=True):
            variable.assign(value)
        self.restored_epoch = about["epoch"] + 1

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Note the number of the epoch."""
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Keep the state where a number of batches is done."""
        self._batches += 1
        if self.save_freq != "epoch" and self._batches >= self.save_freq:
            self._batches = 0
            self._keep(self._epoch - 1)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Keep the state where an epoch is done."""
        if self.save_freq == "epoch":
            self._keep(epoch)

    def _keep(self, epoch: int) -> None:
        from_chief(self.model._strategy, lambda: self._write(epoch))  # all others wait until it is there

    def _write(self, epoch: int) -> None:
        os.makedirs(self.backup_dir, exist_ok=True)
        weights = self.model.get_weights()
        slots = [np.asarray(v.numpy()) for v in self.model.optimizer.variables]
        about = json.dumps({"epoch": epoch, "weights": len(weights), "slots": len(slots)})
        arrays: dict[str, Any] = {"about": np.array(about)}
        arrays.update({f"weight_{n}": _storable(w) for n, w in enumerate(weights)})
        arrays.update({f"slot_{n}": _storable(s) for n, s in enumerate(slots)})
        _replacing.replace(self._file(), lambda file: np.savez(file, **arrays))

    def on_train_end(self, logs: Any = None) -> None:
        """Remove what was kept."""
        if self.delete_checkpoint and is_chief(self.model._strategy) and os.path.exists(self.backup_dir):
            shutil.rmtree(self.backup_dir)


def _kept_state(path: str) -> tuple[dict[str, Any], list[np.ndarray], list[np.ndarray]]:
    """What `BackupAndRestore` wrote: the epoch, the weights, and the variables of the optimizer.

    Raises:
        DataLossError: the file is damaged.
    """
    with opened(path) as file, reads(path):
        stored = np.load(file, allow_pickle=False)
        about = parsed_json(str(stored["about"]), path)
        if not len(stored.files) == 1 + about["weights"] + about["slots"] or type(about["epoch"]) is not int:
            raise ValueError("it has other arrays than it says")
        return (about, [stored[f"weight_{n}"] for n in range(about["weights"])],
                [stored[f"slot_{n}"] for n in range(about["slots"])])


def _storable(array: np.ndarray) -> np.ndarray:
    """An array of a dtype that NumPy's files know."""
    return array.astype(np.float32) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array
