"""`TensorBoard`: the values of a training as event files."""

from __future__ import annotations

import importlib
import os
from typing import Any

from .base import Callback

__all__ = ["TensorBoard"]


def _summary() -> Any:
    return importlib.import_module("twofold.summary")


class TensorBoard(Callback):
    """Writes the values of epochs, and of batches where asked for, as summaries for TensorBoard.

    Args:
        log_dir: the folder; training goes into `train`, validation into `validation` below it.
        histogram_freq: after how many epochs histograms of the weights are written; 0 for never.
        write_graph, write_images, write_steps_per_second, profile_batch, embeddings_freq, embeddings_metadata:
            accepted, without effect.
        update_freq: "epoch", "batch", or a number of batches.

    >>> import twofold as tf
    >>> tf.keras.callbacks.TensorBoard(log_dir="logs").log_dir
    'logs'
    """

    def __init__(self, log_dir: Any = "logs", histogram_freq: int = 0, write_graph: bool = True,
                 write_images: bool = False, write_steps_per_second: bool = False, update_freq: Any = "epoch",
                 profile_batch: Any = 0, embeddings_freq: int = 0, embeddings_metadata: Any = None):
        super().__init__()
        self.log_dir, self.histogram_freq = os.fspath(log_dir), histogram_freq
        self.update_freq = 1 if update_freq == "batch" else update_freq
        self._writers: dict[str, Any] = {}
        self._step = 0

    def _writer(self, name: str) -> Any:
        found = self._writers.get(name)
        if found is None:
            found = self._writers[name] = _summary().create_file_writer(os.path.join(self.log_dir, name))
        return found

    def on_train_begin(self, logs: Any = None) -> None:
        """Begin anew."""
        self._step = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Write the values of a batch where asked for."""
        self._step += 1
        if isinstance(self.update_freq, int) and self._step % self.update_freq == 0:
            self._write("train", {f"batch_{k}": v for k, v in (logs or {}).items()}, self._step)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write the values of an epoch."""
        logs = dict(logs or {})
        train = {f"epoch_{k}": v for k, v in logs.items() if not k.startswith("val_")}
        held = {f"epoch_{k.removeprefix('val_')}": v for k, v in logs.items() if k.startswith("val_")}
        self._write("train", train, epoch)
        if held:
            self._write("validation", held, epoch)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            with self._writer("train").as_default():
                for layer in self.model.layers:
                    for weight in layer.weights:
                        _summary().histogram(weight.name.replace(":", "_"), weight, step=epoch)

    def _write(self, name: str, values: dict[str, Any], step: int) -> None:
        with self._writer(name).as_default():
            for key, value in values.items():
                if isinstance(value, (int, float)):
                    _summary().scalar(key, value, step=step)

    def on_train_end(self, logs: Any = None) -> None:
        """Close the files."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}
