"""The activations and other elementwise ops that are one operator of ONNX, which runtimes know by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.ir import dtypes as dt
from twofold.ir import graph as g

from .export_scalars import bits_as, saturated
from .export_table import elementwise, meaning
from .export_writer import NoMeaning, Ref, Writer, require_real

_TEXT_OPSET = 20
_SELU = {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}


@meaning("relu", "elu", "selu", "softsign")
def activation(w: Writer, node: g.Node, x: Ref) -> Ref:
    """Of float32 and float16 the operator; runtimes lack kernels for most other dtypes."""
    if x.dtype not in (dt.float32, dt.float16):
        return elementwise(w, node, x)
    kind = node.op.name.capitalize()
    attrs: dict[str, Any] = _SELU if kind == "Selu" else {}
    return w.op(kind, x, **attrs)


@meaning("gelu", "gelu_tanh")
def gelu(w: Writer, node: g.Node, x: Ref) -> Ref:
    """The operator, from the opset on that has it."""
    if w.opset < 20 or x.dtype not in (dt.float32, dt.float16):
        return elementwise(w, node, x)
    return w.op("Gelu", x, approximate="tanh" if node.op.name == "gelu_tanh" else "none")


@meaning("leaky_relu")
def leaky_relu(w: Writer, node: g.Node, x: Ref, alpha: Ref) -> Ref:
    """The operator where `alpha` is one known number."""
    slope = w.value_of(alpha)
    if slope is None or slope.size != 1 or x.dtype not in (dt.float32, dt.float16):
        return elementwise(w, node, x, alpha)
    return w.op("LeakyRelu", x, alpha=float(slope.item()))


@meaning("cast")
def cast(w: Writer, node: g.Node, x: Ref, *, dtype: dt.DType) -> Ref:
    """A cast that keeps all values is that of ONNX; others are spelt out."""
    require_real(x.dtype, dtype)
    return saturated(w, x, dtype)


@meaning("equal", "not_equal")
def equal(w: Writer, node: g.Node, x: Ref, y: Ref) -> Ref:
    """Of any dtype."""
    if x.dtype is dt.bfloat16 or x.dtype.is_complex:
        return elementwise(w, node, x, y)
    same = w.op("Equal", x, y, dtype=dt.bool_)
    return same if node.op.name == "equal" else w.op("Not", same)


@meaning("where", "select")
def where(w: Writer, node: g.Node, condition: Ref, x: Ref, y: Ref) -> Ref:
    """Values as they are: no cast changes them."""
    return w.op("Where", condition, x, y, dtype=x.dtype)


@meaning("add_n")
def add_n(w: Writer, node: g.Node, *values: Ref) -> Ref:
    """From the first to the last."""
    if len(values) == 1:
        return w.op("Identity", values[0])
    return elementwise(w, node, *values)


def _require_texts(w: Writer) -> None:
    if w.opset < _TEXT_OPSET:
        raise NoMeaning(f"ONNX has operators for text from opset {_TEXT_OPSET} on", f"give opset={_TEXT_OPSET} or more")


@meaning("string_add")
def string_add(w: Writer, node: g.Node, x: Ref, y: Ref) -> Ref:
    """One text behind the other."""
    _require_texts(w)
    return w.op("StringConcat", x, y)


@meaning("string_equal")
def string_equal(w: Writer, node: g.Node, x: Ref, y: Ref) -> Ref:
    """Of texts."""
    _require_texts(w)
    return w.op("Equal", x, y, dtype=dt.bool_)


@meaning("identity", "stop_gradient")
def identity(w: Writer, node: g.Node, x: Ref) -> Ref:
    """Nothing happens."""
    return x


@meaning("bitcast", "reinterpret")
def bitcast(w: Writer, node: g.Node, x: Ref, *, dtype: dt.DType) -> Ref:
    """Between dtypes of one width the operator; to narrower and wider ones by shifts of whole numbers."""
    have, want = x.dtype.size, dtype.size
    if have == want:
        return bits_as(w, x, dtype)
    if have > want:
        return _narrowed(w, node, x, dtype, have // want)
    whole, wide = _WORDS[have], _WORDS[want]
    parts = w.cast(bits_as(w, x, whole), wide)
    count = want // have
    steps = w.constant(8 * have * np.arange(count), wide)
    joined = w.op("ReduceSum", w.op("BitShift", parts, steps, direction="LEFT"), w.ints([-1]), keepdims=0)
    return bits_as(w, joined, dtype)


def _narrowed(w: Writer, node: g.Node, x: Ref, dtype: dt.DType, count: int) -> Ref:
    whole, narrow = _WORDS[x.dtype.size], _WORDS[dtype.size]
    column = w.op("Unsqueeze", bits_as(w, x, whole), w.ints([len(node.inputs[0].dims)]))
    steps = w.constant(8 * dtype.size * np.arange(count), whole)
    return bits_as(w, w.cast(w.op("BitShift", column, steps, direction="RIGHT"), narrow), dtype)


_WORDS: dict[int, Any] = {1: dt.uint8, 2: dt.uint16, 4: dt.uint32, 8: dt.uint64}
