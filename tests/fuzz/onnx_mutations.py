"""Damaged ONNX files: each import, and a call of what it gives, ends with results or with a clear error, within bounds
of time and memory.

    python tests/fuzz/onnx_mutations.py --count 10000 [--seed 0]

Files are changed byte by byte, and as messages: sizes, names, attributes, element types, nodes (`damaged.py`).
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz import damaged

__all__ = ["mutations", "outcome", "seeds"]

_BATCH = 250  # files that one process imports
_SECONDS = 20  # that one import may take
_MEMORY = 3 << 30  # bytes that a process may take beside what it has when it starts

Number = (0, 1, -1, 2, 255, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 62), (1 << 63) - 1, -(1 << 63))


def seeds() -> list[bytes]:
    """Small files with all that a file can have: weights, shapes that are computed, control flow, functions."""
    from onnx_files import models

    from twofold.onnx_files.package import onnx_package
    onnx = onnx_package()
    texts = [_LOOP, _IF, _SHAPES, _FUNCTION, _IMAGES, _TREES]
    return [models.resnet(4, (1, 1), 16, 5), models.bert(1, 8, 2, 20), models.lstm(1, 4, 8, 3),
            *[onnx.parser.parse_model(t).SerializeToString() for t in texts]]


_HEAD = '<ir_version: 8, opset_import: ["" : 17, "own" : 1]>'
_LOOP = _HEAD + """
g (int64 n, float[2] x) => (float[2] y, float[k, 2] all) {
  yes = Constant <value = bool {1}> ()
  y, all = Loop (n, yes, x) <body = b (int64 i, bool c, float[2] now) => (bool c2, float[2] after, float[2] out) {
    c2 = Identity (c)
    after = Add (now, now)
    out = Mul (after, now)
  }>
}"""
_IF = _HEAD + """
g (bool which, float[n, 3] x) => (float[n, 3] y) {
  y = If (which) <then_branch = a () => (float[n, 3] t) { t = Relu (x) },
                  else_branch = b () => (float[n, 3] e) { e = Neg (x) }>
}"""
_SHAPES = _HEAD + """
g (float[n, 4, 6] x) => (float[n, 2, 12] y, float[3] z) {
  two = Constant <value = int64[2] {2, 12}> ()
  zero = Constant <value = int64 {0}> ()
  one = Constant <value = int64[1] {0}> ()
  s = Shape (x)
  first = Gather (s, zero)
  row = Unsqueeze (first, one)
  all = Concat <axis = 0> (row, two)
  y = Reshape (x, all)
  count = Constant <value = int64[1] {3}> ()
  z = ConstantOfShape <value = float[1] {1.5}> (count)
}"""
_FUNCTION = _HEAD + """
g (float[n, 4] x) => (float[n, 4] y, float[n, 2] v, int64[n, 2] i) {
  y = own.twice <by = 2.0> (x)
  k = Constant <value = int64[1] {2}> ()
  v, i = TopK (y, k)
}
<domain: "own", opset_import: ["" : 17]>
twice <by> (a) => (b) {
  c = Constant <value_float: float = @by> ()
  d = Mul (a, c)
  b = Softmax <axis = -1> (d)
}"""

_IMAGES = _HEAD + """
g (float[n, 2, 6, 6] x, float[n, 3, 3, 2] at) => (float[n, 2, 3, 3] a, float[n, 2, 12, 12] b, float[n, 2, 7, 3] c,
                                                   float[n, 2, 3, 3] d, float[n, k] e) {
  scales = Constant <value = float[4] {1.0, 1.0, 2.0, 2.0}> ()
  pads = Constant <value = int64[8] {0, 0, 1, 0, 0, 0, 0, 0}> ()
  from = Constant <value = int64[1] {0}> ()
  to = Constant <value = int64[1] {6}> ()
  along = Constant <value = int64[1] {3}> ()
  by = Constant <value = int64[1] {2}> ()
  a = AveragePool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x)
  b = Resize <mode = "linear", coordinate_transformation_mode = "asymmetric"> (x, , scales)
  padded = Pad <mode = "reflect"> (x, pads)
  c = Slice (padded, from, to, along, by)
  d = GridSample <mode = "bicubic", padding_mode = "reflection"> (x, at)
  e = Einsum <equation = "nchw,nchw->nw"> (x, x)
}"""
_TREES = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
g (float[n, 2] x) => (float[n, 1] y) {
  y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_treeids = [0, 0, 0, 0, 0], nodes_nodeids = [0, 1, 2, 3, 4],
    nodes_featureids = [0, 0, 1, 0, 0], nodes_values = [0.5, 0.0, 1.5, 0.0, 0.0],
    nodes_modes = ["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = [1, 0, 3, 0, 0],
    nodes_falsenodeids = [2, 0, 4, 0, 0], target_treeids = [0, 0, 0], target_nodeids = [1, 3, 4],
    target_ids = [0, 0, 0], target_weights = [1.0, 2.0, 3.0]> (x)
}"""


def _messages(proto: Any) -> Iterator[Any]:
    """A message and all in it."""
    yield proto
    for kind, value in proto.ListFields():
        if kind.message_type is not None:
            inner = value if hasattr(value, "add") else [value]
            for one in inner:
                yield from _messages(one)


def _message_changed(data: bytes, rng: random.Random) -> bytes:
    """A file in which fields of messages were changed; it still parses."""
    import onnx
    model = onnx.ModelProto.FromString(data)
    places = list(_messages(model))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        message = rng.choice(places)
        fields = message.ListFields()
        if fields:
            kind, value = rng.choice(fields)
            _field_changed(message, kind, value, rng, places)
    return model.SerializeToString()


def _field_changed(message: Any, kind: Any, value: Any, rng: random.Random, places: list[Any]) -> None:
    numbers = kind.cpp_type in (kind.CPPTYPE_INT32, kind.CPPTYPE_INT64, kind.CPPTYPE_ENUM, kind.CPPTYPE_UINT64)
    try:
        if kind.is_repeated if hasattr(kind, "is_repeated") else kind.label == kind.LABEL_REPEATED:
            _list_changed(value, kind, numbers, rng)
        elif numbers:
            setattr(message, kind.name, rng.choice((*Number, value + 1, value - 1, rng.randrange(30))))
        elif kind.cpp_type == kind.CPPTYPE_FLOAT:
            setattr(message, kind.name, rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e30)))
        elif kind.cpp_type == kind.CPPTYPE_STRING:
            names = [getattr(p, "name", "") for p in places if getattr(p, "name", "")]
            setattr(message, kind.name, rng.choice(("", "x", "Add", "Loop", *names[:20])))
        else:
            message.ClearField(kind.name)
    except (ValueError, TypeError, OverflowError):
        message.ClearField(kind.name)


def _list_changed(value: Any, kind: Any, numbers: bool, rng: random.Random) -> None:
    at = rng.randrange(len(value))
    how = rng.randrange(3)
    if how == 0 or kind.message_type is not None and how == 1:
        del value[at]
    elif kind.message_type is not None:
        value.add().CopyFrom(value[at])
    elif numbers:
        value[at] = rng.choice((*Number, value[at] + 1, rng.randrange(8)))
    elif how == 1:
        value.append(value[at])
    else:
        value[at], value[0] = value[0], value[at]


def mutations(count: int, seed: int = 0) -> Iterator[tuple[int, bytes]]:
    """Changed files, each with its number."""
    files = seeds()
    for number in range(count):
        yield number, mutation(files, number, seed)


def mutation(files: list[bytes], number: int, seed: int) -> bytes:
    """The changed file of a number."""
    rng = random.Random(seed * 1_000_003 + number)
    data = files[number % len(files)]
    return _message_changed(data, rng) if rng.random() < 0.6 else damaged.bytes_changed(data, rng)


def outcome(data: bytes) -> str:
    """The class of error that importing a file, or a call of the model, ends with, and "model" if there is none; a text
    that begins with "wrong" for what must not be."""
    import twofold as tf
    try:
        model = tf.import_onnx(data)
        shapes = [[3 if d is None else d for d in (s.shape.as_list() if s.shape.rank is not None else [3])]
                  for s in model.inputs]
        if max([math.prod(s) for s in shapes], default=0) < 1 << 20:
            model(*[np.ones(shape, s.dtype.np) for shape, s in zip(shapes, model.inputs, strict=True)])
    except tf.errors.OpError as e:
        return type(e).__name__ if str(e).strip() else "wrong: an error without a text"
    except Exception as e:  # noqa: BLE001 (a report of what it is)
        return f"wrong: {type(e).__module__}.{type(e).__name__}: {str(e)[:200]}"
    return "model"


def _child(first: int, count: int, seed: int) -> None:
    """Import some files, and print a line for each."""
    import twofold as tf
    files = seeds()
    tf.import_onnx(files[0])
    damaged.watched(lambda number: outcome(mutation(files, number, seed)), first, count, _SECONDS, _MEMORY)


if __name__ == "__main__":
    sys.exit(damaged.main(__file__, __doc__, 10_000, _BATCH, _child))
