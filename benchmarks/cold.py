"""Cold starts: the processor time that a fresh process spends until the first step of a large program has run.

Each case runs in a process of its own with an empty cache and counts what all threads of that process spend after the
package is imported: building the model, tracing, optimising, generating code, and a step or two. They are shaped like
TensorFlow's tutorials: DeepDream (the gradient of InceptionV3 up to its fifth mixed block, in a staged loop), forecasts
by 24 unrolled LSTM cells, and segmentation (a U-Net on MobileNetV2, trained by `fit`). The structures are the
published ones (Szegedy et al. 2015, arXiv:1512.00567; Sandler et al. 2018, arXiv:1801.04381), the weights random.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import compiled
import numpy as np

CASES: dict[str, tuple[str, float]] = {}
PROCESS_CASES: dict[str, tuple[str, bool]] = {
    "dream": ("DeepDream's gradient of InceptionV3 in a loop, cold", True),
    "forecast": ("24 unrolled LSTM cells by fit, cold", True),
    "segment": ("U-Net on MobileNetV2 by fit, cold", True),
    "convert": ("conversion of 8 functions with loops and branches, cold", True),
}


class TensorFlow(compiled.TensorFlow):
    """TensorFlow 2: the version is all that the runner asks for; the cases run in processes of their own."""


class Twofold(TensorFlow):
    """This library."""

    def __init__(self) -> None:
        import twofold as tf

        self.tf, self.version = tf, tf.__version__


PEERS = {"tensorflow": TensorFlow, "twofold": Twofold}


def process_code(case: str, peer: str) -> str:
    """Python code that prints the processor seconds of `case`."""
    here = str(Path(__file__).parent)
    return f"import sys; sys.path.insert(0, {here!r}); import cold; cold.measure({case!r}, {peer!r})"


def measure(case: str, peer: str) -> None:
    """Run `case` with the package named `peer` and print the processor seconds that it took."""
    import importlib

    tf = importlib.import_module(peer)
    tf.keras  # noqa: B018  some packages load parts when they are first asked for
    begin = time.process_time()
    globals()[case](tf)
    print(time.process_time() - begin)


def _convolved(tf: Any, x: Any, filters: int, rows: int, columns: int, strides: int = 1, padding: str = "same") -> Any:
    """A convolution without a bias, normalised, without negative values: what Inception is made of."""
    x = tf.keras.layers.Conv2D(filters, (rows, columns), strides, padding, use_bias=False)(x)
    x = tf.keras.layers.BatchNormalization(scale=False)(x)
    return tf.keras.layers.Activation("relu")(x)


def _mixed35(tf: Any, x: Any, pooled: int) -> Any:
    """The block over 35 x 35 places."""
    layers = tf.keras.layers
    one = _convolved(tf, x, 64, 1, 1)
    five = _convolved(tf, _convolved(tf, x, 48, 1, 1), 64, 5, 5)
    three = _convolved(tf, _convolved(tf, _convolved(tf, x, 64, 1, 1), 96, 3, 3), 96, 3, 3)
    pool = _convolved(tf, layers.AveragePooling2D(3, 1, "same")(x), pooled, 1, 1)
    return layers.Concatenate()([one, five, three, pool])


def _mixed17(tf: Any, x: Any, width: int) -> Any:
    """The block over 17 x 17 places."""
    layers = tf.keras.layers
    one = _convolved(tf, x, 192, 1, 1)
    seven = _convolved(tf, x, width, 1, 1)
    seven = _convolved(tf, _convolved(tf, seven, width, 1, 7), 192, 7, 1)
    twice = _convolved(tf, x, width, 1, 1)
    for rows, columns, filters in ((7, 1, width), (1, 7, width), (7, 1, width), (1, 7, 192)):
        twice = _convolved(tf, twice, filters, rows, columns)
    pool = _convolved(tf, layers.AveragePooling2D(3, 1, "same")(x), 192, 1, 1)
    return layers.Concatenate()([one, seven, twice, pool])


def _inception(tf: Any) -> Any:
    """InceptionV3 up to its fifth mixed block, with the third and the fifth as results."""
    layers = tf.keras.layers
    image = x = tf.keras.Input((None, None, 3))
    x = _convolved(tf, x, 32, 3, 3, 2, "valid")
    x = _convolved(tf, x, 32, 3, 3, 1, "valid")
    x = layers.MaxPooling2D(3, 2)(_convolved(tf, x, 64, 3, 3))
    x = _convolved(tf, x, 80, 1, 1, 1, "valid")
    x = layers.MaxPooling2D(3, 2)(_convolved(tf, x, 192, 3, 3, 1, "valid"))
    for pooled in (32, 64, 64):
        x = _mixed35(tf, x, pooled)
    three = _convolved(tf, x, 384, 3, 3, 2, "valid")
    twice = _convolved(tf, _convolved(tf, x, 64, 1, 1), 96, 3, 3)
    third = layers.Concatenate()([three, _convolved(tf, twice, 96, 3, 3, 2, "valid"), layers.MaxPooling2D(3, 2)(x)])
    fifth = _mixed17(tf, _mixed17(tf, third, 128), 160)
    return tf.keras.Model(image, [third, fifth])


def dream(tf: Any) -> None:
    """Two steps of ascent on an image: a loop of an unknown number of rounds around the network's gradient."""
    model = _inception(tf)

    @tf.function(input_signature=[tf.TensorSpec([None, None, 3]), tf.TensorSpec([], tf.int32), tf.TensorSpec([])])
    def ascend(image: Any, steps: Any, size: Any) -> Any:
        loss = tf.constant(0.0)
        for _ in tf.range(steps):
            with tf.GradientTape() as tape:
                tape.watch(image)
                loss = tf.add_n([tf.reduce_mean(seen) for seen in model(image[tf.newaxis])])
            gradient = tape.gradient(loss, image)
            gradient /= tf.math.reduce_std(gradient) + 1e-8
            image = tf.clip_by_value(image + gradient * size, -1.0, 1.0)
        return loss, image

    pixels = np.random.default_rng(0).random((96, 96, 3), np.float32)
    ascend(tf.constant(pixels), tf.constant(2), tf.constant(0.01))[1].numpy()


def forecast(tf: Any) -> None:
    """An LSTM that reads 24 steps and then writes 24, each from the one before, by a Python loop."""
    class Feedback(tf.keras.Model):  # type: ignore[name-defined,misc]
        """Reads by a recurrence, writes by its cell."""

        def __init__(self) -> None:
            super().__init__()
            self.cell = tf.keras.layers.LSTMCell(32)
            self.reader = tf.keras.layers.RNN(self.cell, return_state=True)
            self.dense = tf.keras.layers.Dense(19)

        def call(self, inputs: Any, training: Any = None) -> Any:
            """The 24 steps that follow."""
            x, *state = self.reader(inputs)
            steps = [self.dense(x)]
            for _ in range(23):
                x, state = self.cell(steps[-1], states=state, training=training)
                steps.append(self.dense(x))
            return tf.transpose(tf.stack(steps), [1, 0, 2])

    series = np.random.default_rng(1).normal(size=(2, 64, 24, 19)).astype(np.float32)
    model = Feedback()
    model.compile(loss=tf.keras.losses.MeanSquaredError(), optimizer=tf.keras.optimizers.Adam(),
                  metrics=[tf.keras.metrics.MeanAbsoluteError()])
    model.fit(series[0], series[1], batch_size=32, epochs=1, verbose=0)


def _mobile(tf: Any, size: int) -> Any:
    """MobileNetV2 as an encoder: its expansions before each halving of the size, and its last block."""
    layers = tf.keras.layers
    image = tf.keras.Input((size, size, 3))
    x = layers.Conv2D(32, 3, 2, "same", use_bias=False)(image)
    x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
    kept, channels = [], 32
    groups = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for factor, filters, count, first in groups:
        for n in range(count):
            strides, start = first if n == 0 else 1, x
            if factor > 1:
                x = layers.Conv2D(factor * channels, 1, padding="same", use_bias=False)(x)
                x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
            if strides == 2:
                kept.append(x)
            x = layers.DepthwiseConv2D(3, strides, "same", use_bias=False)(x)
            x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
            x = layers.BatchNormalization()(layers.Conv2D(filters, 1, padding="same", use_bias=False)(x))
            if strides == 1 and channels == filters:
                x = layers.Add()([start, x])
            channels = filters
    return tf.keras.Model(image, [*kept, x])


def segment(tf: Any) -> None:
    """A step of a U-Net: the encoder stays as it is, four transposed convolutions widen what it gives."""
    layers = tf.keras.layers
    encoder = _mobile(tf, 128)
    encoder.trainable = False
    image = tf.keras.Input((128, 128, 3))
    *skips, x = encoder(image)
    for filters, skip in zip((512, 256, 128, 64), reversed(skips), strict=True):
        x = layers.Conv2DTranspose(filters, 3, 2, "same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
        x = layers.Concatenate()([x, skip])
    model = tf.keras.Model(image, layers.Conv2DTranspose(3, 3, 2, "same")(x))
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    rng = np.random.default_rng(2)
    x, y = rng.random((4, 128, 128, 3), np.float32), rng.integers(0, 3, (4, 128, 128, 1)).astype(np.int32)
    model.fit(x, y, batch_size=4, epochs=1, verbose=0)


def convert(tf: Any) -> None:
    """Functions that differ, each with a loop, a branch and a result: only AutoGraph's work, nothing is traced."""
    import linecache

    source = "".join(f"def f{i}(x, n):\n    for _ in range(n):\n        if x > {i}:\n            x = x - 1\n"
                     f"        else:\n            x = x + 1\n    return x\n" for i in range(8))
    linecache.cache["<eight>"] = (len(source), None, source.splitlines(True), "<eight>")
    space: dict[str, Any] = {}
    exec(compile(source, "<eight>", "exec"), space)  # noqa: S102 - the text above
    for i in range(8):
        tf.autograph.to_graph(space[f"f{i}"])
