"""Models of the common kinds, built without another library: an image classifier, a text encoder, a recurrent net."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

__all__ = ["Builder", "bert", "lstm", "resnet"]


class Builder:
    """Collects the nodes and weights of a graph; values are names.

    Args:
        opset: the version of ONNX's ops.
        seed: of the weights.
    """

    def __init__(self, opset: int = 17, seed: int = 0) -> None:
        self.opset, self.random = opset, np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def add(self, op: str, *inputs: str, outputs: int = 1, **attrs: Any) -> Any:
        """The name, or the names, of what a node gives."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attrs))
        return names[0] if outputs == 1 else names

    def weight(self, shape: Sequence[int], scale: float | None = None, shift: float = 0.0) -> str:
        """Random floats, by default of a size that keeps what flows through a layer as large as it is."""
        if scale is None:
            scale = 1 / np.sqrt(max(np.prod(shape[1:]) if len(shape) > 2 else shape[0], 1))
        return self.constant((self.random.standard_normal(shape) * scale + shift).astype(np.float32))

    def constant(self, value: Any) -> str:
        """An array that is given."""
        name = f"w{len(self.weights)}"
        self.weights.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def model(self, inputs: Sequence[tuple[str, int, Sequence[Any]]], outputs: Sequence[tuple[str, int, Any]]) -> bytes:
        """The file of a model: name, element type and shape of each input and output are given."""
        graph = helper.make_graph(self.nodes, "main", [helper.make_tensor_value_info(*i) for i in inputs],
                                  [helper.make_tensor_value_info(*o) for o in outputs], self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        onnx.checker.check_model(made)
        return made.SerializeToString()


def resnet(width: int = 64, blocks: Sequence[int] = (2, 2, 2, 2), size: int = 224, classes: int = 1000,
           batch: Any = "batch") -> bytes:
    """Residual blocks of convolutions with batch normalisation, as in ResNet-18."""
    b = Builder()

    def conv(x: str, have: int, want: int, k: int, stride: int) -> str:
        y = b.add("Conv", x, b.weight((want, have, k, k)), kernel_shape=[k, k], strides=[stride] * 2,
                  pads=[k // 2] * 4)
        return b.add("BatchNormalization", y, b.weight((want,), 0.1, 1.0), b.weight((want,), 0.1),
                     b.weight((want,), 0.1), b.constant(b.random.uniform(0.5, 1.5, want).astype(np.float32)))

    x = b.add("Relu", conv("image", 3, width, 7, 2))
    x = b.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    have = width
    for level, count in enumerate(blocks):
        want = width << level
        for block in range(count):
            stride = 2 if level and not block else 1
            inner = b.add("Relu", conv(x, have, want, 3, stride))
            inner = conv(inner, want, want, 3, 1)
            x = conv(x, have, want, 1, stride) if stride > 1 or have != want else x
            x = b.add("Relu", b.add("Add", inner, x))
            have = want
    x = b.add("Flatten", b.add("GlobalAveragePool", x))
    y = b.add("Gemm", x, b.weight((classes, have), 1 / np.sqrt(have)), b.weight((classes,), 0.1), transB=1)
    return b.model([("image", 1, [batch, 3, size, size])], [(y, 1, [batch, classes])])


def bert(layers: int = 4, width: int = 256, heads: int = 4, words: int = 1000, length: Any = "length",
         batch: Any = "batch") -> bytes:
    """A text encoder with attention, as older exporters write it: norms and activations in parts, shapes computed."""
    b = Builder(opset=14)
    one, two, half = b.constant(np.float32(1)), b.constant(np.float32(2)), b.constant(np.float32(0.5))

    def norm(x: str) -> str:
        centred = b.add("Sub", x, b.add("ReduceMean", x, axes=[-1]))
        spread = b.add("ReduceMean", b.add("Pow", centred, two), axes=[-1])
        y = b.add("Div", centred, b.add("Sqrt", b.add("Add", spread, b.constant(np.float32(1e-5)))))
        return b.add("Add", b.add("Mul", y, b.weight((width,), 0.1, 1.0)), b.weight((width,), 0.1))

    def dense(x: str, have: int, want: int) -> str:
        return b.add("Add", b.add("MatMul", x, b.weight((have, want))), b.weight((want,), 0.1))

    def part(shape: str, place: int) -> str:
        taken = b.add("Gather", shape, b.constant(np.array(place, np.int64)), axis=0)
        return b.add("Unsqueeze", taken, b.constant(np.array([0], np.int64)))

    def split(x: str, perm: Sequence[int]) -> str:
        shape = b.add("Shape", x)
        target = b.add("Concat", part(shape, 0), part(shape, 1), b.constant(np.array([heads], np.int64)),
                       b.constant(np.array([width // heads], np.int64)), axis=0)
        return b.add("Transpose", b.add("Reshape", x, target), perm=perm)

    def attention(x: str, mask: str) -> str:
        q, v = (split(dense(x, width, width), [0, 2, 1, 3]) for _ in range(2))
        k = split(dense(x, width, width), [0, 2, 3, 1])
        scores = b.add("Div", b.add("MatMul", q, k), b.constant(np.float32(np.sqrt(width // heads))))
        shares = b.add("Softmax", b.add("Add", scores, mask), axis=-1)
        mixed = b.add("Transpose", b.add("MatMul", shares, v), perm=[0, 2, 1, 3])
        shape = b.add("Shape", mixed)
        flat = b.add("Concat", part(shape, 0), part(shape, 1), b.constant(np.array([width], np.int64)), axis=0)
        return dense(b.add("Reshape", mixed, flat), width, width)

    def gelu(x: str) -> str:
        curve = b.add("Add", b.add("Erf", b.add("Div", x, b.constant(np.float32(np.sqrt(2))))), one)
        return b.add("Mul", b.add("Mul", x, curve), half)

    axes = b.constant(np.array([1, 2], np.int64))
    hidden = b.add("Sub", one, b.add("Cast", b.add("Unsqueeze", "mask", axes), to=1))
    mask = b.add("Mul", hidden, b.constant(np.float32(-10000)))
    count = part(b.add("Shape", "words"), 1)
    places = b.add("Slice", b.constant(np.arange(512, dtype=np.int64)[None]), b.constant(np.array([0], np.int64)),
                   count, b.constant(np.array([1], np.int64)))
    x = norm(b.add("Add", b.add("Gather", b.weight((words, width), 1.0), "words"),
                   b.add("Gather", b.weight((512, width), 1.0), places)))
    for _ in range(layers):
        x = norm(b.add("Add", x, attention(x, mask)))
        x = norm(b.add("Add", x, dense(gelu(dense(x, width, 4 * width)), 4 * width, width)))
    return b.model([("words", 7, [batch, length]), ("mask", 7, [batch, length])], [(x, 1, [batch, length, width])])


def lstm(layers: int = 2, size: int = 128, hidden: int = 256, classes: int = 10, steps: Any = "steps",
         batch: Any = "batch") -> bytes:
    """A recurrent net, forward and then both ways, with a classifier of its last step."""
    b = Builder(opset=14)
    x, have = "x", size
    for layer in range(layers):
        both = layer > 0
        d = 1 + both
        y = b.add("LSTM", x, b.weight((d, 4 * hidden, have), 1 / np.sqrt(have)),
                  b.weight((d, 4 * hidden, hidden), 1 / np.sqrt(hidden)), b.weight((d, 8 * hidden), 0.1),
                  hidden_size=hidden, direction="bidirectional" if both else "forward")
        y = b.add("Transpose", y, perm=[0, 2, 1, 3])
        have = d * hidden
        x = b.add("Reshape", y, b.constant(np.array([0, 0, have], np.int64)))
    last = b.add("Gather", x, b.constant(np.array(-1, np.int64)), axis=0)
    y = b.add("Gemm", last, b.weight((have, classes)), b.weight((classes,), 0.1))
    return b.model([("x", 1, [steps, batch, size])], [(y, 1, [batch, classes])])
