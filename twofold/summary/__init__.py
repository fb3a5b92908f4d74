"""`tf.summary`: what TensorBoard shows, written to event files through the package `tensorboard`."""

from twofold._front.namespace import publish

from . import experimental
from .graphs import graph, trace_export, trace_off, trace_on
from .ops import audio, flush, histogram, image, record_if, scalar, should_record_summaries, text, write
from .writer import SummaryWriter, create_file_writer, create_noop_writer

__all__ = [
    "SummaryWriter", "audio", "create_file_writer", "create_noop_writer", "experimental", "flush", "graph", "histogram",
    "image", "record_if", "scalar", "should_record_summaries", "text", "trace_export", "trace_off", "trace_on", "write",
]

publish(__name__)
