"""Imported ONNX models beside onnxruntime, both on one thread: the time of a call, and of import and first call.

    python benchmarks/onnx.py [--rounds 20]

Results are compared before anything is timed. The packages take turns, and the least processor time of a call counts.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.pop(0)  # this folder has a file of the package's name
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import onnxruntime
from onnx_files import models

import twofold as tf


def _cases() -> dict[str, tuple[bytes, dict[str, np.ndarray]]]:
    random = np.random.default_rng(0)
    words = random.integers(0, 1000, (1, 128))
    return {
        "ResNet-18, 1 image of 224x224": (models.resnet(), {
            "image": random.standard_normal((1, 3, 224, 224)).astype(np.float32)}),
        "BERT-like, 4 layers of 256, 128 words": (models.bert(), {"words": words, "mask": np.ones_like(words)}),
        "LSTM, 256 forward, then both ways, 64 steps of 8": (models.lstm(), {
            "x": random.standard_normal((64, 8, 128)).astype(np.float32)}),
    }


def _session(file: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def _taken(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
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
        for _ in range(rounds):
            model(**tensors)
        time.sleep(2)  # better code of what runs often is made in the background
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
