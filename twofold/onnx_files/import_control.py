"""ONNX's control flow: `If`, `Loop` and `Scan`, whose bodies are graphs that see the values around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold.ir.spec import TensorSpec

from .import_graph import Graph
from .import_reductions import one_axis
from .import_table import Call, op
from .import_values import Value, dims_of, dtype_of, plain, sizes_of, tensor_of

__all__: list[str] = []

_UNROLLED = 8  # rounds up to which a loop of a known number of them is laid out


@op("If", static=(0,), folds=False)
def _if(call: Call, condition: Value) -> Any:
    then, otherwise = call.need("then_branch"), call.need("else_branch")
    if isinstance(condition, np.ndarray):
        return tuple(call.run_graph(then if condition.item() else otherwise, []))
    made = tf.cond(tf.reshape(tensor_of(condition), ()), lambda: _tensors(call.run_graph(then, [])),
                   lambda: _tensors(call.run_graph(otherwise, [])))
    return tuple(made)


def _tensors(values: Sequence[Value]) -> list[Any]:
    return [tensor_of(v) for v in values]


# -- loops --------------------------------------------------------------------------------------------
@op("Loop", static=(0, 1), folds=False)
def _loop(call: Call, limit: Value, condition: Value, *first: Value) -> Any:
    body: Graph = call.need("body")
    carried = len(first)
    if len(body.inputs) != carried + 2 or len(body.outputs) < carried + 1:
        raise call.fail(f"its body takes {len(body.inputs)} inputs and gives {len(body.outputs)} outputs for {carried} "
                        "carried values")
    if isinstance(limit, np.ndarray) and 0 < limit.item() <= _UNROLLED and (
            condition is None or isinstance(condition, np.ndarray) and condition.item()):
        laid = _laid_out(call, body, int(limit.item()), first)
        if laid is not None:
            return laid
    states = [tensor_of(plain(v)) for v in first]
    start = True if condition is None else tf.reshape(tensor_of(condition), ())
    return _staged(call, body, limit, start, states)


def _laid_out(call: Call, body: Graph, rounds: int, first: Sequence[Value]) -> tuple[Value, ...] | None:
    """The rounds of a loop one after another; None where only running can tell whether there is a next one."""
    states: list[Value] = list(first)
    scanned: list[list[Any]] = [[] for _ in body.outputs[len(first) + 1:]]
    for i in range(rounds):
        goes_on, *after = call.run_graph(body, [np.array(i, np.int64), np.array(True), *states])
        if not isinstance(goes_on, np.ndarray):
            return None
        states = after[:len(first)]
        for kept, value in zip(scanned, after[len(first):], strict=True):
            kept.append(tensor_of(value))
        if not goes_on.item():
            break
    return (*states, *[tf.stack(s) for s in scanned])


def _staged(call: Call, body: Graph, limit: Value, start: Any, states: list[Any]) -> tuple[Any, ...]:
    carried = len(states)
    arrays = _arrays(call, body, states)
    most = None if limit is None else tf.reshape(tf.cast(tensor_of(limit), tf.int64), ())

    def goes_on(i: Any, holds: Any, *rest: Any) -> Any:
        return holds if most is None else tf.logical_and(holds, i < most)

    def one(i: Any, holds: Any, now: Any, kept: Any) -> Any:
        after = _tensors(call.run_graph(body, [i, holds, *now]))
        written = [a.write(tf.cast(i, tf.int32), v) for a, v in zip(kept, after[carried + 1:], strict=True)]
        return i + 1, tf.reshape(after[0], ()), after[1:carried + 1], written

    begin = (tf.constant(0, tf.int64), tf.convert_to_tensor(start), states, arrays)
    try:
        _, _, last, kept = tf.while_loop(goes_on, one, begin)
    except ValueError:
        open_shapes = (tf.TensorShape([]), tf.TensorShape([]),
                       [tf.TensorShape([None] * len(s.dims)) for s in states], [None] * len(arrays))
        _, _, last, kept = tf.while_loop(goes_on, one, begin, shape_invariants=open_shapes)
    return (*last, *[a.stack() for a in kept])


def _arrays(call: Call, body: Graph, states: Sequence[Any]) -> list[Any]:
    """An array for each output that is collected over the rounds."""
    specs: list[TensorSpec | None] = [s for _, s in body.outputs[len(states) + 1:]]
    if any(s is None or s.shape.rank is None for s in specs):
        probe = call.run_graph(body, [np.array(0, np.int64), np.array(True), *states])[len(states) + 1:]
        specs = [TensorSpec([d if isinstance(d, int) else None for d in dims_of(v)], dtype_of(v)) for v in probe]
    return [tf.TensorArray(s.dtype, size=0, dynamic_size=True, element_shape=s.shape) for s in specs if s is not None]


# -- scans --------------------------------------------------------------------------------------------
@op("Scan", since=9, folds=False)
def _scan(call: Call, *values: Any) -> Any:
    body: Graph = call.need("body")
    count = call.need("num_scan_inputs")
    states, inputs = list(values[:len(values) - count]), list(values[len(values) - count:])
    collected = len(body.outputs) - len(states)
    axes, backward = call.attr("scan_input_axes") or [0] * count, call.attr("scan_input_directions") or [0] * count
    out_axes = call.attr("scan_output_axes") or [0] * collected
    out_backward = call.attr("scan_output_directions") or [0] * collected
    lines = [_steps_first(call, x, a, b) for x, a, b in zip(inputs, axes, backward, strict=True)]
    made = _over(call, body, states, lines)
    shown = [_steps_back(call, y, a, b) for y, a, b in zip(made[len(states):], out_axes, out_backward, strict=True)]
    return (*made[:len(states)], *shown)


def _steps_first(call: Call, x: Any, axis: int, backward: int) -> Any:
    axis = one_axis(call, axis, len(x.dims))
    x = tf.transpose(x, (axis, *(i for i in range(len(x.dims)) if i != axis))) if axis else x
    return tf.reverse(x, [0]) if backward else x


def _steps_back(call: Call, y: Any, axis: int, backward: int) -> Any:
    y = tf.reverse(y, [0]) if backward else y
    axis = one_axis(call, axis, len(y.dims))
    return tf.transpose(y, [*range(1, axis + 1), 0, *range(axis + 1, len(y.dims))]) if axis else y


def _over(call: Call, body: Graph, states: list[Any], lines: list[Any]) -> list[Any]:
    """The last states, and all outputs with the steps first."""
    steps = lines[0].dims[0]
    specs = [s for _, s in body.outputs[len(states):]]
    if any(s is None or s.shape.rank is None for s in specs):
        probe = call.run_graph(body, [*states, *[x[0] for x in lines]])[len(states):]
        specs = [TensorSpec([d if isinstance(d, int) else None for d in dims_of(v)], dtype_of(v)) for v in probe]
    arrays = [tf.TensorArray(s.dtype, size=steps, element_shape=s.shape) for s in specs if s is not None]

    def one(i: Any, now: Any, kept: Any) -> Any:
        after = _tensors(call.run_graph(body, [*now, *[tf.gather(x, i) for x in lines]]))
        return i + 1, after[:len(now)], [a.write(i, v) for a, v in zip(kept, after[len(now):], strict=True)]

    count = tf.cast(tensor_of(sizes_of((steps,), tf.int64))[0], tf.int32)
    _, last, kept = tf.while_loop(lambda i, *_: i < count, one, (tf.constant(0), states, arrays))
    return [*last, *[a.stack() for a in kept]]


@op("Scan", since=8, folds=False)
def _older_scan(call: Call, lengths: Any, *values: Any) -> Any:
    """Version 8: a scan of each example of a batch."""
    if lengths is not None:
        raise call.fail("lengths of sequences are not supported")
    body: Graph = call.need("body")
    count = call.need("num_scan_inputs")
    batch = values[0].dims[0]
    if not isinstance(batch, int):
        raise call.fail("the size of the batch must be known")
    backward = call.attr("directions") or [0] * count
    states = len(values) - count
    each = []
    for b in range(batch):
        lines = [_steps_first(call, v[b], 0, back) for v, back in zip(values[states:], backward, strict=True)]
        each.append(_over(call, body, [v[b] for v in values[:states]], lines))
    return tuple(tf.stack(parts) for parts in zip(*each, strict=True))


# -- optional values ----------------------------------------------------------------------------------
@op("OptionalHasElement", layout=True)
def _has_element(call: Call, x: Value = None) -> np.ndarray:
    return np.array(x is not None)


@op("OptionalGetElement", layout=True)
def _get_element(call: Call, x: Value) -> Value:
    return x
