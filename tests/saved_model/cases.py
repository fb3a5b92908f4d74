"""A model with functions of many kinds, and calls of them: what tests save, reload elsewhere, and compare."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf

Point = collections.namedtuple("Point", "x y")
DTYPES = [tf.bool, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.float16,
          tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128]


@dataclasses.dataclass
class Both:
    """A record that the process which loads does not know."""

    one: Any
    two: Any


@tf.custom_gradient
def halved_gradient(x):
    """The square of x, with half of its gradient."""
    def gradient(ct):
        return ct * x
    return x * x, gradient


def some(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers from -1 to 1."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


class Everything(tf.Module):
    """A function for each thing that a saved function must keep."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(some(3, 4), name="kernel")
        self.momentum = tf.Variable(tf.zeros([3, 4]), trainable=False, name="momentum")
        self.all_dtypes = [tf.cast(tf.constant([1.0, 0.0, 3.25]), d) for d in DTYPES]
        self.all_dtypes = [tf.Variable(t) for t in self.all_dtypes]
        self.words = tf.Variable([b"a", "b\u00e4".encode(), b"\xff\x00z", b""])
        self.empty = tf.Variable(tf.zeros([0, 3]))
        self.open = tf.Variable([1.0, 2.0], shape=[None])
        self.generator = tf.random.Generator.from_seed(3)
        self.table = some(100, 4, seed=5)

    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([], tf.int32)])
    def loop(self, x, rounds):
        y, n = tf.matmul(x, self.w), tf.constant(0)
        while n < rounds:
            y, n = tf.tanh(y) * 1.5, n + 1
            if tf.reduce_sum(y) > 1.0:
                y = y / 2.0
        return y, n

    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None, 4])])
    def step(self, x, target):
        with tf.GradientTape() as tape:
            y = x @ self.w
            for _ in tf.range(3):
                y = tf.tanh(y)
            loss = tf.reduce_mean((y - target) ** 2)
        self.momentum.assign(self.momentum * 0.5 + tape.gradient(loss, self.w))
        self.w.assign_sub(self.momentum)
        return loss

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def custom(self, x):
        return tf.reduce_sum(halved_gradient(x) * x)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def lookup(self, numbers):
        return tf.gather(tf.constant(self.table), numbers)

    @tf.function(input_signature=[])
    def draw(self):
        return self.generator.normal([3]), tf.random.stateless_uniform([2], [1, 2])

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def text(self, word):
        return self.words, word

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def grow(self, x):
        self.open.assign(x)
        return tf.shape(self.open)

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def decided(self, x):
        return tf.boolean_mask(x, x > 2.0), tf.unique(x)

    @tf.function
    def nested(self, point, both, option=None, *, scale=2.0):
        return Point(point.x * scale, point.y), Both(both.two, both.one), {"k": [point.x, ()]}, option

    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def algebra(self, a):
        return tf.linalg.svd(a)[0], tf.sort(a), tf.einsum("ij,kj->ik", a, a), tf.nn.softmax(a)

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def array(self, x):
        items = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(tf.shape(x)[0]):
            items = items.write(i, x[i] * 2.0)
        return items.stack()

    @tf.function
    def general(self, x, power=2):
        return x ** power

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 3])])
    def image(self, x):
        y = tf.nn.conv2d(x, tf.reshape(tf.constant(some(2 * 2 * 3 * 4, seed=2)), [2, 2, 3, 4]), 1, "SAME")
        return tf.nn.max_pool2d(tf.nn.relu(y), 2, 2, "VALID")

    @tf.function
    def dtypes(self):
        return [tf.stack([v, v]) for v in self.all_dtypes]


CALLS: dict[str, Callable[[], list[tuple[tuple[Any, ...], dict[str, Any]]]]] = {
    "loop": lambda: [((some(5, 3), np.int32(4)), {}), ((some(2, 3, seed=3), np.int32(0)), {})],
    "step": lambda: [((some(5, 3), some(5, 4, seed=1)), {}), ((some(7, 3, seed=4), some(7, 4, seed=1)), {})] * 2,
    "custom": lambda: [((some(6),), {})],
    "lookup": lambda: [((np.array([4, 99, 0], np.int32),), {})],
    "draw": lambda: [((), {}), ((), {})],
    "text": lambda: [(("h\u00e9",), {})],
    "grow": lambda: [((some(7),), {})],
    "decided": lambda: [((np.array([1, 3, 3, 5], np.float32),), {})],
    "nested": lambda: [((Point(some(2), some(3)), Both(some(1), some(4))), {})],
    "algebra": lambda: [((some(4, 3),), {}), ((some(2, 2),), {})],
    "array": lambda: [((some(4),), {})],
    "general": lambda: [((some(4),), {}), ((some(4),), {"power": 3}), ((np.arange(3, dtype=np.int32),), {})],
    "image": lambda: [((some(2, 8, 8, 3),), {})],
    "dtypes": lambda: [((), {})],
}


def leaves(model: Any) -> dict[str, list[Any]]:
    """The tensors of all results, by function."""
    actual: dict[str, list[Any]] = {}
    for name, calls in CALLS.items():
        actual[name] = []
        for args, kwargs in calls():
            tensors = tf.nest.map_structure(lambda x: x if isinstance(x, str) else tf.constant(x), args)
            actual[name] += tf.nest.flatten(getattr(model, name)(*tensors, **kwargs))
    return actual


def run(model: Any) -> dict[str, list[bytes]]:
    """The bytes of all results, by function."""
    return {name: [bits(leaf) for leaf in actual] for name, actual in leaves(model).items()}


def results(model: Any) -> dict[str, list[np.ndarray]]:
    """All results as arrays of NumPy's own types, by function; what is None is left out."""
    return {name: [plain(leaf) for leaf in actual if leaf is not None] for name, actual in leaves(model).items()}


def plain(leaf: Any) -> np.ndarray:
    """A tensor as an array that every file format takes."""
    array = np.asarray(leaf)
    if leaf.dtype == tf.bfloat16:
        return array.astype(np.float32)
    return np.array([repr(item) for item in array.reshape(-1)]) if leaf.dtype == tf.string else array


def bits(leaf: Any) -> bytes:
    """What a tensor holds, with dtype and shape."""
    if leaf is None:
        return b"none"
    array = np.asarray(leaf)
    data = b"|".join(array.reshape(-1).tolist()) if array.dtype == object else array.tobytes()
    return f"{leaf.dtype.name}{array.shape}".encode() + data


def gradients(model: Any) -> list[bytes]:
    """The bytes of first and second gradients, through functions with loops and gradients of their own."""
    x = tf.constant(some(5, 3))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(model.loop(x, tf.constant(3))[0])
        first = tape.gradient(y, model.w)
        total = tf.reduce_sum(first * first)
    second = outer.gradient(total, model.w)
    z = tf.constant(some(6))
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = model.custom(z)
    return [bits(first), bits(second), bits(tape.gradient(y, z))]
