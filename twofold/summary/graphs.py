"""Graphs for TensorBoard: `graph`, and `trace_on` ... `trace_export`, which take those of the functions that run.

TensorBoard draws `GraphDef` messages. A graph of ours becomes one: a node for each of its nodes, regions of control
flow as nodes in the name scope of the construct they belong to.
"""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold.runtime import locks
from twofold.tracer import watching

from .ops import emit

__all__ = ["graph", "trace_export", "trace_off", "trace_on"]

_PLUGIN = "graph_run_metadata_graph"  # what TensorBoard calls graphs with a tag
_lock = locks.Lock()
_current: _Trace | None = None
_profiled = False


class _Trace:
    """The functions that ran since `trace_on`, each once, in order."""

    def __init__(self) -> None:
        self.seen: dict[int, Any] = {}

    def __call__(self, traced: Any, inputs: Any) -> None:
        self.seen.setdefault(id(traced), traced)


@public
def graph(graph_data: Any) -> Any:
    """Write a graph, which TensorBoard shows in its tab Graphs. No step is needed: there is one for a run.

    Args:
        graph_data: the graph of a concrete function, or what its `as_graph_def()` gives.
    Returns:
        A bool tensor: whether it was written.
    Raises:
        TypeError: it is no graph.

    >>> import twofold as tf
    >>> concrete = tf.function(lambda x: x * x).get_concrete_function(tf.TensorSpec([None]))
    >>> bool(tf.summary.graph(concrete.graph))  # without a writer
    False
    """
    definition = graph_data.as_graph_def() if hasattr(graph_data, "as_graph_def") else graph_data
    if not hasattr(definition, "node"):
        raise TypeError(f"tf.summary.graph: expected a graph or a graph definition; got {type(graph_data).__name__}")
    return emit([], 0, lambda: {"graph_def": _message(definition).SerializeToString()})


@public
def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: str | None = None) -> None:
    """Start to collect the graphs of the compiled functions that run, until `trace_export` or `trace_off`.

    Args:
        graph: whether to collect them.
        profiler: whether to profile as well (`tf.profiler.experimental.start`).
        profiler_outdir: the folder for the profile.
    Raises:
        RuntimeError: called while a function is traced.
        ValueError: a profile has no folder.

    >>> import twofold as tf
    >>> tf.summary.trace_on()
    >>> tf.summary.trace_off()
    """
    global _current, _profiled
    if profiler and profiler_outdir is None:
        raise ValueError("tf.summary.trace_on: a profile needs a folder, profiler_outdir")
    if tf.inside_function():
        raise RuntimeError("tf.summary.trace_on cannot be called inside a tf.function")
    with _lock:
        if _current is None and graph:
            _current = _Trace()
            watching.start(_current)
    if profiler:
        tf.profiler.experimental.start(profiler_outdir)
        _profiled = True


@public
def trace_off() -> None:
    """Stop collecting, and forget what was collected.

    >>> import twofold as tf
    >>> tf.summary.trace_off()
    """
    _stop(save=False)


def _stop(save: bool) -> _Trace | None:
    global _current, _profiled
    if _profiled:
        _profiled = False
        tf.profiler.experimental.stop(save)
    with _lock:
        trace, _current = _current, None
        if trace is not None:
            watching.stop(trace)
    return trace


@public
def trace_export(name: str, step: Any = None, profiler_outdir: str | None = None) -> None:
    """Write the graphs of the functions that ran since `trace_on`, under a name, and stop collecting.

    Args:
        name: the tag that TensorBoard offers them under.
        step: an integer, tensor or variable; by default the context's.
        profiler_outdir: accepted, without effect.
    Raises:
        ValueError: nothing is collected, or there is no step.

    >>> import twofold as tf
    >>> tf.summary.trace_on()
    >>> _ = tf.function(lambda x: x * x)(tf.constant(2.0))
    >>> with tf.summary.create_noop_writer().as_default():
    ...     tf.summary.trace_export("square", step=0)
    """
    trace = _stop(save=True)
    if trace is None:
        raise ValueError("Must enable trace before export through tf.summary.trace_on.")

    def make() -> dict[str, Any]:
        from tensorboard.compat.proto import config_pb2, summary_pb2, tensor_pb2, types_pb2
        told = config_pb2.RunMetadata()
        for traced in trace.seen.values():
            definition = _message(traced.graph.as_graph_def())
            told.function_graphs.add(pre_optimization_graph=definition, post_optimization_graph=definition)
            told.partition_graphs.add().CopyFrom(definition)
        summary = summary_pb2.Summary()
        value = summary.value.add(tag=name)
        value.metadata.plugin_data.plugin_name = _PLUGIN
        value.metadata.plugin_data.content = b"1"
        value.tensor.CopyFrom(tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, string_val=[told.SerializeToString()]))
        return {"summary": summary}
    emit([], step, make)


def _message(definition: Any) -> Any:
    """A `GraphDef` message of a graph definition of ours."""
    from tensorboard.compat.proto import graph_pb2, versions_pb2
    made = graph_pb2.GraphDef(versions=versions_pb2.VersionDef(producer=1087))
    _add(made, definition, "", {})
    return made


def _add(made: Any, definition: Any, scope: str, taken: dict[str, str]) -> None:
    """Add the nodes of a graph; inputs of a region are named by the operands of its construct, as far as these are
    known."""
    for node in definition.node:
        message = made.node.add(name=scope + node.name, op=node.op)
        message.input.extend([scope + name for name in node.input])
        for key, value in node.attr.items():
            if hasattr(value, "node"):
                _add(made, value, f"{scope}{node.name}/{key}/", taken)
            elif key == "dtype":
                message.attr[key].type = tf.as_dtype(value).as_datatype_enum
            else:
                message.attr[key].s = str(value).encode()
