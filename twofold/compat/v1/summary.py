"""`tf.compat.v1.summary`: summaries as tensors, which hold a message that a `FileWriter` puts into an event file.

What a summary holds is made when it runs, by `tensorboard`'s own modules, as `tf.summary` does it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import describe, listed, public, public_class
from twofold._front.namespace import publish
from twofold.summary import ops as _ops
from twofold.summary.writer import SummaryWriter, message, protos

from .graph import current_graph
from .keys import GraphKeys

__all__ = ["FileWriter", "FileWriterCache", "audio", "histogram", "image", "merge", "merge_all", "scalar",
           "summary_iterator", "tensor_summary", "text"]


def _summary(inputs: Sequence[Any], make: Callable[..., Any], collections: Any) -> Any:
    """A string scalar that holds the message which `make` gives for the values of tensors; it is collected."""
    def run(*values: np.ndarray) -> Any:
        protos()
        return np.array(make(*values).SerializeToString(), object)
    summary = tf.numpy_function(run, [tf.convert_to_tensor(x) for x in inputs], tf.TensorSpec([], tf.string))
    graph = current_graph()
    if graph is not None:
        for key in [GraphKeys.SUMMARIES] if collections is None else collections:
            graph.add_to_collection(key, summary)
    return summary


def _captured(content: Callable[[], Any], values: Sequence[Any]) -> Any:
    """The message that a summary of `tf.summary` writes for values."""
    from tensorboard.compat.proto import summary_pb2
    events: list[Any] = []

    class Kept(SummaryWriter):
        def _event(self, **fields: Any) -> None:
            events.append(fields)
    with tf.init_scope(), Kept(None).as_default(step=0), _ops.record_if(True):
        content()
    return events[0]["summary"] if events else summary_pb2.Summary()


@public
def scalar(name: str, tensor: Any, collections: Any = None, family: str | None = None) -> Any:
    """A summary of a number.

    Args:
        name: its tag, in the name scopes around it.
        tensor: a numeric tensor with one element.
        collections: where it is put; by default where `merge_all` looks.
        family: a further part of the tag, before it.
    Returns:
        A string scalar.

    >>> import twofold as tf
    >>> tf.compat.v1.summary.scalar("loss", 0.5).dtype
    tf.string
    """
    tag = _tag(name, family)

    def make(value: np.ndarray) -> Any:
        from tensorboard.compat.proto import summary_pb2
        summary = summary_pb2.Summary()
        summary.value.add(tag=tag, simple_value=float(np.ravel(value)[0]))
        return summary
    return _summary([tensor], make, collections)


def _tag(name: str, family: str | None) -> str:
    return _ops.tag_of(f"{family}/{name}" if family else name)


def _as_now(tag: str, write: Callable[[str, Any], Any], inputs: Sequence[Any], collections: Any) -> Any:
    def make(*values: np.ndarray) -> Any:
        def content() -> None:
            with tf.name_scope(""):
                write(tag, tf.constant(values[0]))
        return _captured(content, values)
    return _summary(inputs, make, collections)


@public
def histogram(name: str, values: Any, collections: Any = None, family: str | None = None) -> Any:
    """A summary of how the elements of a tensor are spread; see `scalar`.

    Args:
        name: its tag, in the name scopes around it.
        values: a numeric tensor.
        collections: where it is put.
        family: a further part of the tag.
    """
    return _as_now(_tag(name, family), tf.summary.histogram, [values], collections)


@public
def image(name: str, tensor: Any, max_outputs: int = 3, collections: Any = None, family: str | None = None) -> Any:
    """A summary of images; see `scalar`.

    Args:
        name: its tag, in the name scopes around it.
        tensor: [count, height, width, channels]: uint8, or floats, which are scaled so that the largest is 255.
        max_outputs: how many of them at most.
        collections: where it is put.
        family: a further part of the tag.
    """
    def write(tag: str, data: Any) -> Any:
        return tf.summary.image(tag, data if data.dtype == tf.uint8 else _scaled(data), max_outputs=max_outputs)
    return _as_now(_tag(name, family), write, [tensor], collections)


def _scaled(images: Any) -> Any:
    """Each image in [0, 1]: the largest becomes 1; where there are negative ones, 0 becomes the middle."""
    pixels = tf.cast(images, tf.float32)
    low = tf.reduce_min(pixels, axis=[1, 2, 3], keepdims=True)
    high = tf.reduce_max(pixels, axis=[1, 2, 3], keepdims=True)
    both = tf.maximum(tf.abs(low), tf.abs(high))
    signed = tf.math.divide_no_nan(pixels, both) * (127.0 / 255.0) + 128.0 / 255.0
    return tf.where(low < 0.0, signed, tf.math.divide_no_nan(pixels, high))


@public
def audio(name: str, tensor: Any, sample_rate: Any, max_outputs: int = 3, collections: Any = None,
          family: str | None = None) -> Any:
    """A summary of sound; see `scalar`.

    Args:
        name: its tag, in the name scopes around it.
        tensor: floats in [-1, 1]: [count, frames] or [count, frames, channels].
        sample_rate: frames per second.
        max_outputs: how many clips at most.
        collections: where it is put.
        family: a further part of the tag.
    """
    def write(tag: str, data: Any) -> Any:
        clips = tf.expand_dims(data, -1) if data.shape.rank == 2 else data
        return tf.summary.audio(tag, clips, int(sample_rate), max_outputs=max_outputs)
    return _as_now(_tag(name, family), write, [tensor], collections)


@public
def text(name: str, tensor: Any, collections: Any = None) -> Any:
    """A summary of text; see `scalar`.

    Args:
        name: its tag, in the name scopes around it.
        tensor: of strings.
        collections: where it is put.
    """
    return _as_now(_tag(name, None), tf.summary.text, [tensor], collections)


@public
def tensor_summary(name: str, tensor: Any, summary_description: Any = None, collections: Any = None,
                   summary_metadata: Any = None, family: str | None = None, display_name: str | None = None) -> Any:
    """A summary that holds a tensor; see `scalar`.

    Args:
        name: its tag, in the name scopes around it.
        tensor: of any dtype and shape.
        summary_metadata: a `SummaryMetadata` message, or one as bytes.
        collections: where it is put.
        family: a further part of the tag.
        summary_description, display_name: accepted, without effect.
    """
    return _as_now(_tag(name, family), lambda tag, data: tf.summary.write(tag, data, metadata=summary_metadata),
                   [tensor], collections)


@public
def merge(inputs: Sequence[Any], collections: Any = None, name: str | None = None) -> Any:
    """One summary of several.

    Args:
        inputs: string scalars.
        collections: where it is put; by default nowhere.
        name: accepted, without effect.
    Raises:
        ValueError: one is no summary, or two have one tag; when it runs.
    """
    def make(*parts: np.ndarray) -> Any:
        from tensorboard.compat.proto import summary_pb2
        merged = summary_pb2.Summary()
        for part in parts:
            try:
                merged.MergeFromString(bytes(np.asarray(part, object)[()]))
            except Exception:  # noqa: BLE001 (an error of the library that reads messages)
                raise ValueError(f"merge: {describe(part)} is no summary.") from None
        tags = [value.tag for value in merged.value]
        if len(set(tags)) < len(tags):
            raise ValueError(f"Duplicate tag in summary inputs: {sorted({t for t in tags if tags.count(t) > 1})}")
        return merged
    return _summary(listed(inputs, "inputs"), make, collections or [])


@public
def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Any:
    """One summary of all that the current graph has; None where there are none, and where ops run at once.

    Args:
        key: the collection that they are in.
        scope: takes those alone whose name begins with it.
        name: accepted, without effect.
    """
    graph = current_graph()
    summaries = [] if graph is None else graph.get_collection(key, scope)
    return merge(summaries) if summaries else None


@public_class
class FileWriter:
    """Writes summaries that a session has run to an event file.

    Args:
        logdir: the folder that TensorBoard is given.
        graph: accepted, without effect: graphs of sessions are not drawn.
        max_queue: how many events wait at most before they are written.
        flush_secs: after how many seconds they are written at the latest.
        filename_suffix: what the file's name ends in.
        graph_def, session: accepted, without effect.
    Raises:
        ImportError: the package `tensorboard` is not installed.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> folder = tempfile.mkdtemp()
    >>> with tf.compat.v1.Session() as session, tf.compat.v1.summary.FileWriter(folder) as writer:
    ...     loss = tf.compat.v1.summary.scalar("loss", tf.constant(0.5))
    ...     writer.add_summary(session.run(loss), global_step=3)
    >>> events = tf.compat.v1.train.summary_iterator(os.path.join(folder, os.listdir(folder)[0]))
    >>> [(event.step, value.tag, value.simple_value) for event in events for value in event.summary.value]
    [(3, 'loss', 0.5)]
    """

    def __init__(self, logdir: Any, graph: Any = None, max_queue: int = 10, flush_secs: int = 120,
                 graph_def: Any = None, filename_suffix: str | None = None, session: Any = None):
        self._logdir = os.fspath(logdir)
        self._settings = (max_queue, flush_secs * 1000, filename_suffix or "")
        self._writer = SummaryWriter(self._logdir, *self._settings)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *details: Any) -> None:
        self.close()

    def get_logdir(self) -> str:
        """The folder."""
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write a summary.

        Args:
            summary: what a session gave for one, or a `Summary` message.
            global_step: the number of the step.
        Raises:
            TypeError: it is none. DataLossError: its bytes are those of something else.
        """
        from tensorboard.compat.proto import summary_pb2
        content = summary.numpy() if hasattr(summary, "numpy") else summary
        if isinstance(content, np.ndarray) and content.shape == ():
            content = content[()]
        if isinstance(content, bytes):
            try:
                content = summary_pb2.Summary.FromString(content)
            except Exception as error:  # noqa: BLE001 (of a class of the parser's own)
                raise tf.errors.DataLossError(
                    None, None, f"add_summary: these are not the bytes of a summary: {error}") from None
        if not isinstance(content, summary_pb2.Summary):
            raise TypeError(f"summary must be what a session gave for one, or a Summary; got {describe(summary)}.")
        self._write(global_step, summary=content)

    def _write(self, step: Any, **content: Any) -> None:
        step = None if step is None else int(step)
        if self._writer._closed:
            self.reopen()
        self._writer._event(**content, **({} if step is None else {"step": step}))

    def add_event(self, event: Any) -> None:
        """Write an `Event` message.

        Raises:
            TypeError: it is none.
        """
        from tensorboard.compat.proto import event_pb2
        if not isinstance(event, event_pb2.Event):
            raise TypeError(f"event must be an Event message; got {describe(event)}.")
        if self._writer._closed:
            self.reopen()
        if self._writer._file is not None:
            self._writer._file.add_event(event)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Write a `SessionLog` message.

        Args:
            session_log: the message.
            global_step: the number of the step.
        Raises:
            TypeError: it is none.
        """
        from tensorboard.compat.proto import event_pb2
        if not isinstance(session_log, event_pb2.SessionLog):
            raise TypeError(f"session_log must be a SessionLog message; got {describe(session_log)}.")
        self._write(global_step, session_log=session_log)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Accepted, without effect: graphs of sessions are not drawn."""

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Accepted, without effect: there is none."""

    def flush(self) -> None:
        """Write everything so far to the file."""
        self._writer.flush()

    def close(self) -> None:
        """Write everything so far, and close the file."""
        self._writer.close()

    def reopen(self) -> None:
        """Go on in a new file, where the old one is closed."""
        if self._writer._closed:
            self._writer = SummaryWriter(self._logdir, *self._settings)


class FileWriterCache:
    """One writer for each folder."""

    _known: dict[str, FileWriter] = {}

    @classmethod
    def get(cls, logdir: Any) -> FileWriter:
        """The writer of a folder.

        Args:
            logdir: the folder.
        """
        path = os.fspath(logdir)
        if path not in cls._known:
            cls._known[path] = FileWriter(path)
        return cls._known[path]

    @classmethod
    def clear(cls) -> None:
        """Close all writers, and forget them."""
        for writer in cls._known.values():
            writer.close()
        cls._known.clear()


@public
def summary_iterator(path: Any) -> Iterator[Any]:
    """The `Event` messages of an event file.

    Args:
        path: the file.
    Raises:
        ImportError: the package `tensorboard` is not installed.
        NotFoundError: there is no such file.
    """
    events = protos()
    with tf.init_scope():
        return iter([events.Event.FromString(bytes(record)) for record in
                     tf.data.TFRecordDataset([os.fspath(path)]).as_numpy_iterator()])


def __getattr__(name: str) -> Any:
    if name in ("Event", "SessionLog", "Summary", "SummaryDescription", "TaggedRunMetadata"):
        return message(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


publish(__name__)
