"""Imported ONNX models beside onnxruntime, both on one thread: the time of a call, and of import and first call.

    python benchmarks/onnx.py [--rounds 20]
    python benchmarks/onnx.py --exported        LSTMs that `tf.export.onnx` writes, beside ONNX's own operator for them

Results are compared before anything is timed, and each model is called for a while, since twofold makes better code of
what is called often, and packs its weights, in the background. The packages take turns, and the least processor time of
a call counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.pop(0)  # this folder has a file of the package's name
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx_files import models

import twofold as tf
from twofold.runtime import tiers

_WARM = 2.0  # seconds


def _cases() -> dict[str, tuple[bytes, dict[str, np.ndarray]]]:
    random = np.random.default_rng(0)
    words = random.integers(0, 1000, (1, 128))
    return {
        "ResNet-18, 1 image of 224x224": (models.resnet(), {
            "image": random.standard_normal((1, 3, 224, 224)).astype(np.float32)}),
        "BERT-like, 4 layers of 256, 128 words": (models.bert(), {"words": words, "mask": np.ones_like(words)}),
        "BERT-like, 4 layers of 768, 128 words": (models.bert(width=768, heads=12), {
            "words": words, "mask": np.ones_like(words)}),
        "LSTM, 256 forward, then both ways, 64 steps of 8": (models.lstm(), {
            "x": random.standard_normal((64, 8, 128)).astype(np.float32)}),
        "the same, 64 steps of 1": (models.lstm(), {
            "x": random.standard_normal((64, 1, 128)).astype(np.float32)}),
    }


def _session(file: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def _taken(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


# -- exported models ----------------------------------------------------------------------------------
def _recurrences(batch: int, steps: int, inputs: int, units: int) -> tuple[Any, Any, np.ndarray]:
    """Sessions of an exported LSTM and of the operator with its weights, and sequences for both."""
    layer = tf.keras.layers.LSTM(units, return_sequences=True)
    net = tf.keras.Sequential([tf.keras.layers.Input([None, inputs], name="x"), layer])
    with tempfile.TemporaryDirectory() as folder:
        file = tf.export.onnx(net, Path(folder) / "lstm.onnx", check=False).path.read_bytes()
    kernel, state, bias = [w.numpy() for w in layer.weights]

    def gates(w: np.ndarray) -> np.ndarray:  # Keras has input, forget, cell, output; ONNX input, output, forget, cell
        i, f, c, o = np.split(w, 4, axis=-1)
        return np.concatenate([i, o, f, c], -1).T[None]
    weights = {"W": gates(kernel), "R": gates(state), "B": np.concatenate([gates(bias), 0 * gates(bias)], 1)}
    nodes = [helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
             helper.make_node("LSTM", ["steps", "W", "R", "B"], ["each"], hidden_size=units),
             helper.make_node("Squeeze", ["each", "one"], ["inner"]),
             helper.make_node("Transpose", ["inner"], ["y"], perm=[1, 0, 2])]
    constants = [numpy_helper.from_array(np.ascontiguousarray(a), n) for n, a in weights.items()]
    graph = helper.make_graph(
        nodes, "lstm", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, steps, inputs])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, steps, units])],
        [*constants, numpy_helper.from_array(np.array([1]), "one")])
    own = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    x = np.random.default_rng(0).standard_normal((batch, steps, inputs)).astype(np.float32)
    return _session(file), _session(own.SerializeToString()), x


def _exported(rounds: int) -> None:
    """Print a row for each LSTM, all of them run by onnxruntime."""
    print("| sequences, steps, inputs, units | exported | the operator LSTM | ratio |")
    print("| --- | --- | --- | --- |")
    for sizes in ((8, 64, 128, 256), (8, 512, 64, 64), (32, 256, 128, 256)):
        *sessions, x = _recurrences(*sizes)
        results = [s.run(None, {"x": x})[0] for s in sessions]
        np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5)
        best = [min(_taken(lambda: s.run(None, {"x": x})) for _ in range(rounds)) for s in sessions]  # noqa: B023
        print(f"| {', '.join(map(str, sizes))} | {best[0] * 1e3:.2f} ms | {best[1] * 1e3:.2f} ms | "
              f"{best[0] / best[1]:.2f} |", flush=True)


def main() -> None:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--exported", action="store_true")
    args = parser.parse_args()
    rounds = args.rounds
    if args.exported:
        return _exported(rounds)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    print("| model | twofold | onnxruntime | ratio | import and first call | session and first run |")
    print("| --- | --- | --- | --- | --- | --- |")
    sums = [0.0, 0.0]
    for name, (file, given) in _cases().items():
        begin = time.process_time()
        model = tf.import_onnx(file)
        mine = model(**given).numpy()
        first = time.process_time() - begin
        begin = time.process_time()
        session = _session(file)
        theirs = session.run(None, given)[0]
        other = time.process_time() - begin
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-4)
        tensors = {k: tf.constant(v) for k, v in given.items()}
        end = time.process_time() + _WARM
        while time.process_time() < end:
            model(**tensors)
        tiers.wait()  # for what the background has begun
        best = [float("inf")] * 2
        for _ in range(rounds):
            for i, call in enumerate((lambda: model(**tensors), lambda: session.run(None, given))):  # noqa: B023
                best[i] = min(best[i], _taken(call))
        sums = [s + b for s, b in zip(sums, best, strict=True)]
        print(f"| {name} | {best[0] * 1e3:.2f} ms | {best[1] * 1e3:.2f} ms | {best[0] / best[1]:.2f} | {first:.2f} s | "
              f"{other:.2f} s |", flush=True)
    print(f"| all | {sums[0] * 1e3:.2f} ms | {sums[1] * 1e3:.2f} ms | {sums[0] / sums[1]:.2f} | | |")


if __name__ == "__main__":
    main()
