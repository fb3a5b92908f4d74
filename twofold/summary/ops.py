"""Summaries: `scalar`, `histogram`, `image`, `text`, `audio`, and `write`, which the others end in.

A summary takes its writer where it is reached; inside a `tf.function`, where that is traced. Data, step and condition
are taken when it runs, and summaries of a function are written in program order. What a message of TensorBoard holds is
left to `tensorboard`'s own modules, which are imported when a first summary is written.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import twofold as tf
from twofold._formats import png as _png
from twofold._front.api import block, public

from .writer import SummaryWriter, condition, default, recording, step_now

__all__ = ["audio", "emit", "flush", "histogram", "image", "record_if", "scalar", "should_record_summaries", "tag_of",
           "text", "write"]


def tag_of(name: str) -> str:
    """The tag of a summary: its name, with whatever characters, in the name scopes around it."""
    around = tf.get_current_name_scope()
    return f"{around}/{name}" if around else name


def emit(inputs: list[Any], step: Any, make: Callable[..., dict[str, Any]]) -> Any:
    """Write an event when this is reached, if the context says so.

    Args:
        inputs: tensors that it is made of.
        make: gives the content of the event for their values.
    Returns:
        A bool tensor: whether it was written.
    """
    writer, wanted = default.get(), recording()
    if writer is None or wanted is False:
        return tf.constant(False)
    number = step_now(step)
    if not tf.inside_function():
        return tf.constant(_run(writer, make, bool(wanted), int(number), [np.asarray(x) for x in inputs]))

    def run(flag: np.ndarray, at: np.ndarray, *values: np.ndarray) -> np.bool_:
        return np.bool_(_run(writer, make, bool(flag), int(at), list(values)))
    done = tf.numpy_function(run, [wanted, tf.cast(number, tf.int64), *inputs], tf.bool)
    done.set_shape([])
    return done


def _run(writer: SummaryWriter, make: Callable[..., dict[str, Any]], wanted: bool, step: int,
         values: list[Any]) -> bool:
    if wanted:
        writer._event(step=step, **make(*values))
    return wanted


def _summary(tag: str, tensor: Any, metadata: Any) -> dict[str, Any]:
    """The content of an event with one summary."""
    from tensorboard.compat.proto import summary_pb2
    summary = summary_pb2.Summary()
    summary.value.add(tag=tag, tensor=tensor, metadata=metadata)
    return {"summary": summary}


def _described(summary: Any, description: str | None) -> dict[str, Any]:
    if description is not None:
        summary.value[0].metadata.summary_description = description
    return {"summary": summary}


def _tensor_of(array: Any) -> Any:
    from tensorboard.util.tensor_util import make_tensor_proto
    return make_tensor_proto(array)


@public
def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Any:
    """Write a number.

    Args:
        name: its tag, in the name scopes around it.
        data: a number, or a numeric tensor with one element.
        step: an integer, tensor or variable; by default the context's.
        description: a text for TensorBoard, in Markdown.
    Returns:
        A bool tensor: whether it was written.
    Raises:
        ValueError: there is no step, or `data` has several elements.

    >>> import twofold as tf
    >>> bool(tf.summary.scalar("loss", 0.5, step=1))  # without a writer
    False
    """
    tag = tag_of(name)
    tensor = tf.cast(tf.convert_to_tensor(data), tf.float32)
    if tensor.shape.rank != 0:
        raise ValueError(f"tf.summary.scalar: {name!r} is to be a scalar; got shape {tensor.shape}")

    def make(value: Any) -> dict[str, Any]:
        from tensorboard.plugins.scalar import summary_v2
        return _described(summary_v2.scalar_pb(tag, float(value)), description)
    return emit([tensor], step, make)


@public
def histogram(name: str, data: Any, step: Any = None, buckets: int | None = None,
              description: str | None = None) -> Any:
    """Write how the elements of a tensor are spread.

    Args:
        name: its tag, in the name scopes around it.
        data: a numeric tensor of any shape.
        step: an integer, tensor or variable; by default the context's.
        buckets: how many buckets of equal width; 30 by default.
        description: a text for TensorBoard, in Markdown.
    Returns:
        A bool tensor: whether it was written.
    Raises:
        ValueError: there is no step.

    >>> import twofold as tf
    >>> bool(tf.summary.histogram("weights", tf.zeros([3]), step=1))  # without a writer
    False
    """
    tag, count = tag_of(name), 30 if buckets is None else int(buckets)

    def make(values: Any) -> dict[str, Any]:
        from tensorboard.plugins.histogram import summary_v2
        return _described(summary_v2.histogram_pb(tag, np.asarray(values, np.float64), count), description)
    return emit([tf.cast(tf.convert_to_tensor(data), tf.float64)], step, make)


@public
def image(name: str, data: Any, step: Any = None, max_outputs: Any = 3, description: str | None = None) -> Any:
    """Write images.

    Args:
        name: their tag, in the name scopes around it.
        data: [count, height, width, channels] with 1 to 4 channels: floats in [0, 1], or uint8.
        step: an integer, tensor or variable; by default the context's.
        max_outputs: how many of them are written at most.
        description: a text for TensorBoard, in Markdown.
    Returns:
        A bool tensor: whether they were written.
    Raises:
        ValueError: there is no step, or `data` has another rank.

    >>> import twofold as tf
    >>> bool(tf.summary.image("digits", tf.zeros([1, 8, 8, 1]), step=1))  # without a writer
    False
    """
    tag, tensor = tag_of(name), tf.convert_to_tensor(data)
    if tensor.shape.rank != 4:
        raise ValueError(f"tf.summary.image: {name!r} is to have shape [count, height, width, channels]; got "
                         f"{tensor.shape}")
    if tensor.dtype != tf.uint8:
        tensor = tf.saturate_cast(tf.cast(tensor, tf.float32) * 255.5, tf.uint8)  # as TensorFlow scales
    limit = int(max_outputs)

    def make(pixels: Any) -> dict[str, Any]:
        from tensorboard.plugins.image import metadata
        size = [str(pixels.shape[2]).encode(), str(pixels.shape[1]).encode()]
        encoded = [*size, *[_png.encode(each) for each in pixels[:limit]]]
        return _summary(tag, _tensor_of(np.array(encoded, object)), metadata.create_summary_metadata(
            display_name=None, description=description))
    return emit([tensor], step, make)


@public
def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Any:
    """Write text, which TensorBoard shows as Markdown.

    Args:
        name: its tag, in the name scopes around it.
        data: a text, or a tensor of texts, which is shown as a table.
        step: an integer, tensor or variable; by default the context's.
        description: a text for TensorBoard, in Markdown.
    Returns:
        A bool tensor: whether it was written.
    Raises:
        ValueError: there is no step.
        TypeError: `data` is no text.

    >>> import twofold as tf
    >>> bool(tf.summary.text("notes", "the first run", step=1))  # without a writer
    False
    """
    tag, tensor = tag_of(name), tf.convert_to_tensor(data)
    if tensor.dtype != tf.string:
        raise TypeError(f"tf.summary.text: {name!r} is to be text; got {tensor.dtype.name}")

    def make(values: Any) -> dict[str, Any]:
        from tensorboard.plugins.text import summary_v2
        return _described(summary_v2.text_pb(tag, np.asarray(values, object)), description)
    return emit([tensor], step, make)


@public
def audio(name: str, data: Any, sample_rate: int, step: Any = None, max_outputs: Any = 3, encoding: str | None = None,
          description: str | None = None) -> Any:
    """Write sound, as 16-bit WAV.

    Args:
        name: its tag, in the name scopes around it.
        data: floats in [-1, 1], [count, frames, channels].
        sample_rate: frames per second.
        step: an integer, tensor or variable; by default the context's.
        max_outputs: how many clips are written at most.
        encoding: "wav" or None.
        description: a text for TensorBoard, in Markdown.
    Returns:
        A bool tensor: whether it was written.
    Raises:
        ValueError: there is no step, no such encoding, or `data` has another rank.

    >>> import twofold as tf
    >>> bool(tf.summary.audio("tone", tf.zeros([1, 100, 1]), 8000, step=1))  # without a writer
    False
    """
    tag, tensor = tag_of(name), tf.cast(tf.convert_to_tensor(data), tf.float32)
    if encoding not in (None, "wav"):
        raise ValueError(f"tf.summary.audio: encoding is 'wav'; got {encoding!r}")
    if tensor.shape.rank != 3:
        raise ValueError(f"tf.summary.audio: {name!r} is to have shape [count, frames, channels]; got {tensor.shape}")
    limit, rate = int(max_outputs), int(sample_rate)

    def make(values: Any) -> dict[str, Any]:
        from tensorboard.plugins.audio import metadata
        clips = [[_wav(clip, rate), b""] for clip in values[:limit]]
        array = np.empty((len(clips), 2), object)
        array[:] = clips if clips else array
        return _summary(tag, _tensor_of(array), metadata.create_summary_metadata(
            display_name=None, description=description, encoding=metadata.Encoding.Value("WAV")))
    return emit([tensor], step, make)


def _wav(clip: np.ndarray, rate: int) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(clip.shape[1])
        out.setsampwidth(2)
        out.setframerate(rate)
        scaled = np.round(clip * np.float32(1 << 15))
        out.writeframes(np.clip(scaled, -(1 << 15), (1 << 15) - 1).astype("<i2").tobytes())
    return file.getvalue()


@public
def write(tag: str, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None) -> Any:
    """Write a tensor for a plugin of TensorBoard that `metadata` names.

    Args:
        tag: the tag, as it is.
        tensor: of any shape and dtype.
        step: an integer, tensor or variable; by default the context's.
        metadata: a `SummaryMetadata` message, or one as bytes.
        name: accepted, without effect.
    Returns:
        A bool tensor: whether it was written.
    Raises:
        ValueError: there is no step.

    >>> import twofold as tf
    >>> bool(tf.summary.write("tag", tf.zeros([2]), step=1))  # without a writer
    False
    """
    def make(value: Any) -> dict[str, Any]:
        from tensorboard.compat.proto import summary_pb2
        about = summary_pb2.SummaryMetadata.FromString(metadata) if isinstance(metadata, bytes) else metadata
        return _summary(tag, _tensor_of(np.asarray(value)), about)
    return emit([tf.convert_to_tensor(tensor)], step, make)


@public
def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Write everything so far to the file.

    Args:
        writer: by default the context's; nothing happens where there is none.
        name: accepted, without effect.

    >>> import twofold as tf
    >>> tf.summary.flush()
    """
    target = default.get() if writer is None else writer
    if target is not None:
        target.flush()


@block
def record_if(condition_: Any) -> Iterator[None]:
    """Record summaries in a block only where the condition holds.

    Args:
        condition_: a bool, a bool tensor, or a function of no arguments that gives one.

    >>> import twofold as tf
    >>> with tf.summary.create_noop_writer().as_default(step=4), tf.summary.record_if(False):
    ...     print(bool(tf.summary.scalar("loss", 0.5)))
    False
    """
    token = condition.set(condition_)
    try:
        yield
    finally:
        condition.reset(token)


@public
def should_record_summaries() -> Any:
    """Whether summaries are recorded here: whether there is a writer, and the condition holds.

    Returns:
        A bool, or a bool tensor where the condition is one.

    >>> import twofold as tf
    >>> tf.summary.should_record_summaries()
    False
    """
    return recording()


def raw(content: bytes, step: Any) -> Any:
    """Write a `Summary` message that was made elsewhere."""
    def make() -> dict[str, Any]:
        from tensorboard.compat.proto import summary_pb2
        return {"summary": summary_pb2.Summary.FromString(content)}
    return emit([], step, make)
