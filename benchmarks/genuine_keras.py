"""`fit` of the genuine Keras, with twofold as its TensorFlow and with TensorFlow.

    python benchmarks/runner.py genuine_keras

A case is an epoch of `STEPS` steps by Adam, with the mean of the accuracy where there are classes; its losses must
agree. The environments of both peers hold Keras (TWOFOLD_BENCH_PYTHON_TENSORFLOW, TWOFOLD_BENCH_PYTHON_TWOFOLD).
`own` is `tf.keras`, twofold's own, on the same models: what the genuine one costs above it. Programs of Keras's
documentation (`tests/clients/keras_programs.py`) run as a whole, each in a process of its own, from an empty cache;
`tests/clients/hub_suite.py` compares their losses.

Times are the processor's, of all threads: pipelines of both have threads of their own, and what a step costs is asked.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from worker import SMALL

from eager import Built

STEPS = 4 if SMALL else 64
BATCH = 32

CASES = {
    "mlp": (f"{STEPS} steps of an MLP 784-128-10", 1e-3),
    "cnn": (f"{STEPS} steps of two convolutions of 16 on 28x28", 1e-3),
    "lstm": (f"{STEPS} steps of an LSTM 64, sequence 30", 1e-3),
    "transformer": (f"{STEPS} steps of a transformer block 64, sequence 32", 1e-3),
}
PROCESS_CASES: dict[str, tuple[str, bool]] = {
    "convnet": ("the program of a convnet for digits, whole", True),
    "sentences": ("the program of a transformer for sentences, whole", True),
    "characters": ("the program of an LSTM for characters, whole", True),
    "autoencoder": ("the program of a variational autoencoder, whole", True),
}
CLOCK = time.process_time
WARM_SECONDS = 1.0
SAMPLE_SECONDS = 0.25


def process_code(case: str, peer: str) -> str:
    """A program that prints the processor seconds of a process that runs one of Keras's programs."""
    name = "transformer" if case == "sentences" else case
    programs = str(Path(__file__).resolve().parents[1] / "tests" / "clients")
    before = {"twofold": "import twofold.as_tensorflow", "tensorflow": "import tensorflow"}.get(peer)
    if before is None:
        return f"raise SystemExit('{peer} has no programs')"
    return f"""
import os, sys, time
os.environ["KERAS_BACKEND"] = "tensorflow"
sys.path.append({programs!r})
{before}
import keras_programs
keras_programs.{name}()
print(time.process_time())
"""


def classes(*shape: int, words: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs for an epoch, of floats or of numbers of words, and a class of ten for each."""
    rng = np.random.default_rng(1)
    sizes = (STEPS * BATCH, *shape)
    x = rng.integers(0, words, sizes) if words else rng.random(sizes, np.float32)
    return x, rng.integers(0, 10, len(x))


class Keras:
    """Models of the genuine Keras on TensorFlow."""

    def __init__(self) -> None:
        os.environ["KERAS_BACKEND"] = "tensorflow"
        import keras
        import tensorflow as tf

        self.keras, self.version = keras, f"{keras.__version__} on {tf.__version__}"

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        """A result as an array."""
        return np.asarray(value)

    def _epoch(self, make: Any, x: np.ndarray, y: np.ndarray) -> Built:
        keras = self.keras

        def compiled() -> Any:
            keras.utils.set_random_seed(3)
            model = make(keras.layers)
            model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
            return model

        settings = {"batch_size": BATCH, "shuffle": False, "verbose": 0}
        losses = compiled().fit(x, y, epochs=2, **settings).history["loss"]
        return "model.fit(x, y, **settings)", {
            "model": compiled(), "x": x, "y": y, "settings": settings, "losses": losses}, "losses"

    def mlp(self) -> Built:
        return self._epoch(lambda layers: self.keras.Sequential([
            self.keras.Input((784,)), layers.Dense(128, activation="relu"), layers.Dense(10)]), *classes(784))

    def cnn(self) -> Built:
        return self._epoch(lambda layers: self.keras.Sequential([
            self.keras.Input((28, 28, 1)), layers.Conv2D(16, 3, activation="relu"),
            layers.Conv2D(16, 3, activation="relu"), layers.GlobalAveragePooling2D(), layers.Dense(10)]),
            *classes(28, 28, 1))

    def lstm(self) -> Built:
        return self._epoch(lambda layers: self.keras.Sequential([
            self.keras.Input((30, 32)), layers.LSTM(64), layers.Dense(10)]), *classes(30, 32))

    def transformer(self) -> Built:
        def make(layers: Any) -> Any:
            words = self.keras.Input((32,))
            x = layers.Embedding(500, 64)(words)
            x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 16)(x, x))
            x = layers.LayerNormalization()(x + layers.Dense(64)(layers.Dense(128, activation="relu")(x)))
            return self.keras.Model(words, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))

        return self._epoch(make, *classes(32, words=500))


class OnTwofold(Keras):
    """The same with twofold as the TensorFlow of Keras."""

    def __init__(self) -> None:
        import twofold.as_tensorflow  # noqa: F401 - before Keras, which imports TensorFlow

        super().__init__()


class Own(Keras):
    """twofold's own Keras."""

    def __init__(self) -> None:
        import twofold

        self.keras, self.version = twofold.keras, twofold.__version__

    transformer: Any = None  # where a word comes twice in a batch, its Adam squares the sum of the gradients


PEERS = {"tensorflow": Keras, "own": Own, "twofold": OnTwofold}
