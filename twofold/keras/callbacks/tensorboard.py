"""`TensorBoard`: the values, weights, graphs and profiles of a training as event files.

What an event file holds and how a profile is taken is `tf.summary`'s and `tf.profiler`'s. Summaries that a model writes
in its own steps go through a relay, which a compiled step keeps: it hands them to the file of the training that is
under way, and to none where there is no callback.
"""

from __future__ import annotations

import os
import time
import warnings
import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

import twofold as tf
from twofold import summary
from twofold.summary.writer import SummaryWriter

from .base import Callback

__all__ = ["TensorBoard"]

_MODEL_PLUGIN = "graph_keras_model"  # what TensorBoard calls the configs of models
_EMBEDDINGS = "embeddings.tsv"


class TensorBoard(Callback):
    """Writes what happens in a training for TensorBoard: `tensorboard --logdir logs` shows it.

    Training goes into `train`, validation and evaluation into `validation` below the folder. Values of epochs are
    `epoch_loss` and its like, those of batches `batch_loss`; `evaluation_loss_vs_iterations` is over the optimizer's
    steps. Summaries in a model's `call` or `train_step` (`tf.summary.histogram("outputs", x)`) are written every
    `update_freq` batches.

    Args:
        log_dir: the folder.
        histogram_freq: after how many epochs histograms of the weights are written; 0 for never.
        write_graph: whether the model and the graph of its compiled step are written, for the tab Graphs.
        write_images: whether weights of up to three axes are written as images as well, with the histograms.
        write_steps_per_second: whether the speed is written.
        update_freq: "epoch", "batch", or a number of batches.
        profile_batch: the number of a batch to profile, counted from 1, or a pair: the first and the last of them.
            0 for none.
        embeddings_freq: after how many epochs the tables of `Embedding` layers are written for the projector, as
            `train/NAME_embeddings.tsv`; 0 for never.
        embeddings_metadata: the file that names the rows of a table, or a dict of files by the names of layers.
    Raises:
        ValueError: `profile_batch` is no batch and no pair in order; `embeddings_metadata` names no Embedding layer.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> folder = tempfile.mkdtemp()
    >>> board = tf.keras.callbacks.TensorBoard(folder, histogram_freq=1)
    >>> history = model.fit(tf.ones([8, 2]), tf.zeros([8, 1]), verbose=0, callbacks=[board])
    >>> os.listdir(folder)
    ['train']
    """

    _by_chief_alone = True

    def __init__(self, log_dir: Any = "logs", histogram_freq: int = 0, write_graph: bool = True,
                 write_images: bool = False, write_steps_per_second: bool = False, update_freq: Any = "epoch",
                 profile_batch: Any = 0, embeddings_freq: int = 0, embeddings_metadata: Any = None):
        super().__init__()
        self.log_dir, self.histogram_freq = os.fspath(log_dir), histogram_freq
        self.write_graph, self.write_images = write_graph, write_images
        self.write_steps_per_second = write_steps_per_second
        self.update_freq = 1 if update_freq == "batch" else update_freq
        self.embeddings_freq, self.embeddings_metadata = embeddings_freq, embeddings_metadata
        self._first, self._last = _range_of(profile_batch)
        self._writers: dict[str, Any] = {}
        self._batches = {"train": 0, "validation": 0}
        self._context = self._outer = ExitStack()
        self._training = self._profiling = self._graph_due = False
        self._batch_began = self._epoch_began = 0.0
        self._steps_before = 0

    # -- files ------------------------------------------------------------------------------------
    def set_model(self, model: Any) -> None:
        """Be told the model; its config is written for the tab Graphs."""
        super().set_model(model)
        self._context.close()  # of a training that an error ended
        self._close()
        self._training = False
        self._graph_due = self.write_graph
        if self.write_graph and (model.__dict__.get("_graph") is not None or isinstance(model, tf.keras.Sequential)):
            self._write_model()
        if self.embeddings_freq:
            self._describe_embeddings()

    def _folder(self, name: str) -> str:
        return os.path.join(self.log_dir, name)

    def _writer(self, name: str) -> Any:
        writer = self._writers.get(name)
        if writer is None:
            writer = self._writers[name] = summary.create_file_writer(self._folder(name))
        return writer

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def _write(self, name: str, values: Mapping[str, Any], step: Any) -> None:
        """Write numbers, those of them that are numbers."""
        with summary.record_if(True), self._writer(name).as_default():
            for key, value in values.items():
                if np.ndim(value) == 0:
                    summary.scalar(key, value, step=step)

    def _write_model(self) -> None:
        from tensorboard.compat.proto import summary_pb2
        try:
            config = self.model.to_json()
        except Exception as e:  # noqa: BLE001 - whatever a layer of the user's own raises
            warnings.warn(f"TensorBoard: the model has no config to write: {e}", stacklevel=2)
            return
        about = summary_pb2.SummaryMetadata()
        about.plugin_data.plugin_name, about.plugin_data.content = _MODEL_PLUGIN, b"1"
        with self._writer("train").as_default():
            summary.write("keras", config, step=0, metadata=about)

    # -- summaries of the model's own -------------------------------------------------------------
    def _enter(self, name: str) -> None:
        """From now on, summaries of a step go to a file."""
        if self.update_freq == "epoch":
            return
        relay = _relay_of(self.model)
        self._context.callback(setattr, relay, "target", relay.target)
        relay.target = self._writer(name)
        self._context.enter_context(relay.as_default(relay.step))
        self._context.enter_context(summary.record_if(relay.wanted.read_value))

    def _batch(self, name: str) -> int:
        """Count a batch, and say whether its summaries are wanted."""
        number = self._batches[name] = self._batches[name] + 1
        if self.update_freq != "epoch":
            relay = _relay_of(self.model)
            relay.step.assign(number)
            relay.wanted.assign(number % self.update_freq == 0)
        return number

    # -- training ---------------------------------------------------------------------------------
    def on_train_begin(self, logs: Any = None) -> None:
        """Begin to count."""
        self._training = True
        self._batches["train"] = 0
        self._enter("train")

    def on_train_end(self, logs: Any = None) -> None:
        """Write everything that is still to be written, and close the files."""
        self._training = False
        self._context.close()
        if self._profiling:
            self._end_profile()
        self._close()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Note the time."""
        self._epoch_began, self._steps_before = time.perf_counter(), self._steps()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Note the time, and begin a profile where one is due."""
        number = self._batch("train")
        if number == self._first and self._first:
            self._begin_profile()
        self._batch_began = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Write the values of a batch, and what else is due."""
        spent = time.perf_counter() - self._batch_began
        number = self._batches["train"]
        if self._graph_due:
            self._graph_due = False
            self._write_graph()
        if self.update_freq != "epoch" and number % self.update_freq == 0:
            values = {f"batch_{k}": v for k, v in (logs or {}).items()}
            if self.write_steps_per_second:
                values["batch_steps_per_second"] = 1.0 / spent
            self._write("train", values, number)
        if self._profiling and number >= self._last:
            self._end_profile()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write the values of an epoch, and the weights' histograms and images where they are due."""
        logs = logs or {}
        train = {f"epoch_{k}": v for k, v in logs.items() if not k.startswith("val_")}
        held = {f"epoch_{k.removeprefix('val_')}": v for k, v in logs.items() if k.startswith("val_")}
        if train:
            train.update({f"epoch_{k}": v for k, v in _rates(self.model.optimizer).items()})
            if self.write_steps_per_second:
                spent = time.perf_counter() - self._epoch_began
                train["epoch_steps_per_second"] = (self._steps() - self._steps_before) / spent
            self._write("train", train, epoch)
        if held:
            self._write("validation", held, epoch)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            self._write_weights(epoch)
        if self.embeddings_freq and epoch % self.embeddings_freq == 0:
            self._write_embeddings()

    def _steps(self) -> int:
        """How many steps the optimizer has taken."""
        return int(getattr(self.model.optimizer, "iterations", 0))

    # -- evaluation -------------------------------------------------------------------------------
    def on_test_begin(self, logs: Any = None) -> None:
        """Let summaries of the model go to the file of the validation."""
        self._outer, self._context = self._context, ExitStack()
        self._enter("validation")

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Count a batch."""
        self._batch("validation")

    def on_test_end(self, logs: Any = None) -> None:
        """Write the values over the optimizer's steps."""
        self._context.close()
        self._context = self._outer
        if getattr(self.model.optimizer, "iterations", None) is not None:
            values = {f"evaluation_{k}_vs_iterations": v for k, v in (logs or {}).items()}
            self._write("validation", values, self._steps())
        if not self._training:
            self._close()

    # -- graphs, weights, profiles ----------------------------------------------------------------
    def _write_graph(self) -> None:
        """The graph of the compiled step, where there is one."""
        function = self.model.train_function
        graphs = function.graphs() if hasattr(function, "graphs") else ()
        if graphs:
            with summary.record_if(True), self._writer("train").as_default():
                summary.graph(graphs[0])

    def _write_weights(self, epoch: int) -> None:
        seen: dict[str, int] = {}
        with summary.record_if(True), self._writer("train").as_default():
            for layer in self.model.layers:
                for weight in layer.weights:
                    name = weight.name.removesuffix(":0").replace(":", "_")
                    number = seen[name] = seen.get(name, -1) + 1
                    name = f"{name}_{number}" if number else name
                    summary.histogram(f"{name}/histogram", weight, step=epoch)
                    image = _image_of(weight) if self.write_images else None
                    if image is not None:
                        summary.image(f"{name}/image", image, step=epoch)

    def _begin_profile(self) -> None:
        from twofold.profiler import experimental as profiler  # a look at compilers, which few trainings need
        try:
            profiler.start(self._folder("train"))
        except tf.errors.AlreadyExistsError as e:  # somebody else's: training goes on
            warnings.warn(f"TensorBoard: no profile of batch {self._first}: {e}", stacklevel=2)
            return
        self._profiling = True
        summary.trace_on(graph=True, profiler=False)

    def _end_profile(self) -> None:
        from twofold.profiler import experimental as profiler
        self._profiling = False
        with summary.record_if(True), self._writer("train").as_default():
            summary.trace_export(f"batch_{self._last}", step=self._last)
        profiler.stop()

    # -- embeddings -------------------------------------------------------------------------------
    def _embeddings(self) -> list[Any]:
        return [layer for layer in self.model.layers if isinstance(layer, tf.keras.layers.Embedding)]

    def _describe_embeddings(self) -> None:
        """Write the configuration of the projector: where tables and the names of their rows are."""
        from tensorboard.plugins import projector
        config, named = projector.ProjectorConfig(), self.embeddings_metadata
        layers = self._embeddings()
        if isinstance(named, Mapping):
            unknown = sorted(set(named) - {layer.name for layer in layers})
            if unknown:
                raise ValueError("Unrecognized `Embedding` layer names passed to `TensorBoard` `embeddings_metadata` "
                                 f"argument: {unknown}")
        for layer in layers:
            entry = config.embeddings.add(tensor_name=layer.name, tensor_path=f"train/{layer.name}_{_EMBEDDINGS}")
            entry.tensor_shape.extend([layer.input_dim, layer.output_dim])
            path = named.get(layer.name) if isinstance(named, Mapping) else named
            if path is not None:
                entry.metadata_path = os.fspath(path)
        os.makedirs(self.log_dir, exist_ok=True)
        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "w", encoding="utf-8") as file:
            file.write(str(config))

    def _write_embeddings(self) -> None:
        os.makedirs(self._folder("train"), exist_ok=True)
        for layer in self._embeddings():
            path = os.path.join(self._folder("train"), f"{layer.name}_{_EMBEDDINGS}")
            np.savetxt(path, np.asarray(layer.embeddings), fmt="%.9g", delimiter="\t")


class _Relay(SummaryWriter):
    """The writer that compiled steps of one model keep.

    Attributes:
        target: the writer that takes the summaries now, or None.
        step: the number of the batch.
        wanted: whether the batch is one whose summaries are written.
    """

    def __init__(self) -> None:
        super().__init__(None)
        self.target: Any = None
        self.step = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.wanted = tf.Variable(False, trainable=False)

    def flush(self) -> None:
        """Write everything so far to the file."""
        if self.target is not None:
            self.target.flush()

    def _event(self, **content: Any) -> None:
        if self.target is not None:
            self.target._event(**content)


_relays: weakref.WeakKeyDictionary[Any, _Relay] = weakref.WeakKeyDictionary()


def _relay_of(model: Any) -> _Relay:
    relay = _relays.get(model)
    if relay is None:
        relay = _relays[model] = _Relay()
    return relay


def _range_of(profile_batch: Any) -> tuple[int, int]:
    """The first and the last batch to profile; both 0 for none.

    Raises:
        ValueError: it is neither a number nor a pair in order.
    """
    given = profile_batch
    if isinstance(given, str):
        given = [int(part) for part in given.split(",")]
        given = given[0] if len(given) == 1 else given
    pair = (given, given) if isinstance(given, int) else tuple(given) if isinstance(given, (tuple, list)) else ()
    if len(pair) != 2 or not all(isinstance(n, int) for n in pair) or not 0 <= pair[0] <= pair[1]:
        raise ValueError("profile_batch must be a non-negative integer or 2-tuple of positive integers. A pair of "
                         f"positive integers signifies a range of batches to profile. Found: {profile_batch}")
    return pair


def _rates(optimizer: Any) -> dict[str, float]:
    """The learning rates of an optimizer, by the names of values."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    several = getattr(optimizer, "optimizers", None)
    if several is not None:
        return {f"learning_rate_{each.name}": float(np.asarray(each.learning_rate)) for each in several}
    rate = getattr(optimizer, "learning_rate", None)
    return {} if rate is None else {"learning_rate": float(np.asarray(rate))}


def _image_of(weight: Any) -> Any:
    """A weight as images, [count, height, width, 1]; None where it has too many axes.

    A vector is a column. A matrix lies on its longer side; of three axes, the last counts the images.
    """
    array = np.squeeze(np.asarray(weight, np.float32))
    if array.ndim == 1:
        return array.reshape(1, -1, 1, 1)
    if array.ndim == 2:
        return (array.T if array.shape[0] > array.shape[1] else array)[None, :, :, None]
    if array.ndim == 3:
        return array.transpose(2, 0, 1)[..., None]
    return array if array.ndim == 4 and array.shape[-1] in (1, 3, 4) else None
