"""ONNX's sequences: Python lists of values, whose lengths are known when a graph is traced."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf

from .import_reductions import one_axis
from .import_table import Call, op
from .import_values import NeedsSizes, Value, int_list, tensor_of

__all__: list[str] = []


def _place(call: Call, sequence: list[Value], where: Value, more: int = 0) -> int:
    count = len(sequence) + more
    place = count - 1 if where is None else int(int_list(where, "position")[0])
    if not -count <= place < count:
        raise call.fail(f"place {place} in a sequence of {len(sequence)}")
    return place % count


@op("SequenceEmpty")
def _empty(call: Call) -> list[Value]:
    return []


@op("SequenceConstruct", layout=True, folds=False)
def _construct(call: Call, *values: Value) -> list[Value]:
    return list(values)


@op("SequenceAt", layout=True, folds=False)
def _at(call: Call, sequence: list[Value], where: Value) -> Value:
    return sequence[_place(call, sequence, where)]


@op("SequenceInsert", layout=True, folds=False)
def _insert(call: Call, sequence: list[Value], value: Value, where: Value = None) -> list[Value]:
    place = _place(call, sequence, where, 1)
    return [*sequence[:place], value, *sequence[place:]]


@op("SequenceErase", layout=True, folds=False)
def _erase(call: Call, sequence: list[Value], where: Value = None) -> list[Value]:
    place = _place(call, sequence, where)
    return [*sequence[:place], *sequence[place + 1:]]


@op("SequenceLength", layout=True, folds=False)
def _length(call: Call, sequence: list[Value]) -> np.ndarray:
    return np.array(len(sequence), np.int64)


@op("ConcatFromSequence", layout=True, folds=False)
def _concat(call: Call, sequence: list[Value]) -> Any:
    values = [tensor_of(v) for v in sequence]
    return tf.stack(values, call.need("axis")) if call.attr("new_axis", 0) else tf.concat(values, call.need("axis"))


@op("SplitToSequence", static=(1,), folds=False)
def _split(call: Call, x: Any, sizes: Value = None) -> list[Value]:
    """Pieces of given sizes, or of one size, the last of which may be smaller; by default of 1, without the axis."""
    axis = one_axis(call, call.attr("axis", 0), len(x.dims))
    whole = x.dims[axis]
    if not isinstance(whole, int):
        raise NeedsSizes(f"{call.node}: the size of its axis must be known")
    given = [1] if sizes is None else int_list(sizes, "split")
    if sizes is None or not getattr(sizes, "shape", (1,)):
        if given[0] < 1:
            raise call.fail(f"pieces of {given[0]}")
        given = [min(given[0], whole - i) for i in range(0, whole, given[0])]
    pieces = tf.split(x, given, axis=axis) if given else []
    return [tf.squeeze(p, axis=axis) for p in pieces] if sizes is None and not call.attr("keepdims", 1) else pieces
