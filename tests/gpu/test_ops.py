"""The op table on a GPU, with samples of Keras's layers and of gradients: op by op and compiled, with the host's bits.

`everywhere.py` has all tests of these, and those of other folders, run there.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from gpu.devices import HARDWARE, device
from ops.case import Case, named
from ops.check import Watcher
from ops.table import cases, samples

import twofold as tf
from twofold.eager.tensor import Tensor, wrap
from twofold.ir import nest

from keras import layer_cases  # isort: skip


@pytest.fixture(scope="module", autouse=True)
def _gpu() -> Iterator[None]:
    with device():
        yield


def arrays(result: Any) -> list[np.ndarray]:
    return [tf.convert_to_tensor(r)._array for r in nest.flatten(result)]


def same(results: Any, wanted: list[np.ndarray]) -> None:
    for got, want in zip(arrays(results), wanted, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert got.tolist() == want.tolist() if want.dtype == object else got.tobytes() == np.ascontiguousarray(
            want).tobytes()


@pytest.mark.parametrize("case", cases() if HARDWARE else samples(), ids=str)
def test_the_op_table(case: Case) -> None:
    def f(*tensors: Tensor) -> Any:
        return named(case.fn)(*tensors, **case.kwargs)
    operands = [wrap(np.array(a)) for a in case.arrays(case.main, case.shapes[0], salt="function")]
    tf.random.set_seed(5)
    with Watcher() as watcher:
        wanted = arrays(f(*operands))
    there = [t.gpu() for t in operands]
    with tf.device("/gpu:0"):
        tf.random.set_seed(5)
        same(f(*there), wanted)
    if watcher.calls > 1:  # else it is the program that has just run
        tf.random.set_seed(5)
        with tf.device("/gpu:0"):
            same(tf.function(f)(*there), wanted)


LAYERS = ["dense", "embedding", "conv2d same strides", "max pooling 2d same", "batch normalization training",
          "layer normalization", "LSTM masked", "multi-head attention causal"]


def derived(f: Any, inputs: list[tf.Tensor], weights: list[tf.Variable]) -> list[Any]:
    """What a function gives, and the gradients of the sum of its squares."""
    watched = [x for x in inputs if x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        results = nest.flatten(f(*inputs))
        total = tf.add_n([tf.reduce_sum(tf.cast(y, tf.float32) * y) for y in results])
    return [*results, *tape.gradient(total, [*watched, *weights], unconnected_gradients="zero")]


def both_ways(f: Any, given: Sequence[np.ndarray], weights: Sequence[tf.Variable] = ()) -> Iterator[list[np.ndarray]]:
    """Results, gradients and what variables hold then, op by op and compiled, on the device that is asked for."""
    inputs = [tf.constant(x) for x in given]
    trained = [w for w in weights if w.trainable]
    for run in (derived, tf.function(derived, fallback=False)):
        for number, weight in enumerate(weights):
            if weight.dtype.is_floating:
                weight.assign(layer_cases.weight(number, tuple(weight.shape), weight.name))
        yield [*arrays(run(f, inputs, trained)), *[w.numpy() for w in weights]]


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    """A sample of those that tests of Keras compare with Keras's own."""
    case, told = layer_cases.CASES[name], []
    for where in ("/cpu:0", "/gpu:0"):
        with tf.device(where):
            layer = case.make(tf.keras.layers)
            case.call(layer, *map(tf.constant, case.inputs))
            told += both_ways(functools.partial(case.call, layer), case.inputs, layer.weights)
    for results in told[1:]:
        same(results, told[0])


def branching(x: Any, y: Any) -> Any:
    """Rounds of a known number, and rounds that values end, with branches in them."""
    total = x
    for i in tf.range(3):
        total = tf.sin(total) * y if i % 2 == 0 else total * total + x
    while tf.reduce_sum(total) < 9.0:
        total += tf.exp(y)
    return total


def collected(x: Any, y: Any) -> Any:
    """Items of arrays, read and written in rounds."""
    items = tf.TensorArray(tf.float32, 4, element_shape=[])
    for i in tf.range(4):
        items = items.write((i * 3) % 4, x[i % 2] * y[(i + 1) % 2])
    return tf.cumsum(items.stack())


@pytest.mark.parametrize("f", [branching, collected])
def test_gradients_of_control_flow(f: Any) -> None:
    told = []
    for where in ("/cpu:0", "/gpu:0"):
        with tf.device(where):
            told += both_ways(f, np.float32([[0.3, 0.7], [0.9, 0.4]]))
    for results in told[1:]:
        same(results, told[0])
