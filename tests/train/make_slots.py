"""Writes `data/slots/`: checkpoints of optimizers before Keras 3, and what comes of going on from them.

Run it with a Python that has TensorFlow 2.21 and tf_keras, and TF_USE_LEGACY_KERAS=1: `python
tests/train/make_slots.py`. The tests read what it wrote and need neither.
"""

import json
import pathlib

import numpy as np
import tensorflow as tf
import tf_keras

FOLDER = pathlib.Path(__file__).parent / "data" / "slots"
X = np.array([[1.0, -1.0], [0.5, 2.0]], np.float32)
OLD, NEW, V1 = tf_keras.optimizers.legacy, tf_keras.optimizers, tf.compat.v1.train
MAKE = {
    "Adam": lambda: OLD.Adam(0.1, amsgrad=True), "SGD": lambda: OLD.SGD(0.1, momentum=0.9),
    "RMSprop": lambda: OLD.RMSprop(0.1, momentum=0.5, centered=True), "Adagrad": lambda: OLD.Adagrad(0.1),
    "Adadelta": lambda: OLD.Adadelta(1.0), "Adamax": lambda: OLD.Adamax(0.1), "Ftrl": lambda: OLD.Ftrl(0.1),
    "Nadam": lambda: OLD.Nadam(0.1), "keras2-Adam": lambda: NEW.Adam(0.1, amsgrad=True),
    "keras2-SGD": lambda: NEW.SGD(0.1, momentum=0.9), "v1-AdamOptimizer": lambda: V1.AdamOptimizer(0.1),
    "v1-RMSPropOptimizer": lambda: V1.RMSPropOptimizer(0.1, momentum=0.5),
}


class Model(tf.Module):
    """A dense layer."""

    def __init__(self):
        super().__init__()
        self.w, self.b = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w"), tf.Variable([0.5, -0.5], name="b")


def step(model, optimizer):
    """One step of training."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((X @ model.w + model.b) ** 2)
    variables = [model.w, model.b]
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


def main():
    """Write all."""
    FOLDER.mkdir(exist_ok=True)
    told = {}
    for name, make in MAKE.items():
        model, optimizer = Model(), make()
        for _ in range(3):
            step(model, optimizer)
        tf.train.Checkpoint(model=model, optimizer=optimizer).write(str(FOLDER / name))
        for _ in range(2):
            step(model, optimizer)
        told[name] = {"w": model.w.numpy().tolist(), "b": model.b.numpy().tolist()}
    (FOLDER / "after.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
